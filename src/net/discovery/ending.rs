//! Shutdown of the responder's thread.
//!
//! The host may unload the library after the room is closed, so no thread may be left in it. The crate gives
//! no handle to join its thread; it only reports when the thread is about to return. Before that, the thread
//! notifies every search that it has stopped, and that wakes each waiter on the responder's own thread. Our
//! waker runs there once and leaves a value in the thread's local storage. The thread drops that value after
//! everything else that it runs of this library, and this module observes the drop. On Linux it then also
//! waits until the system no longer lists the thread; elsewhere only the system's own code remains to run.

use std::cell::RefCell;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use mdns_sd::{DaemonStatus, Error, Receiver, ServiceDaemon, ServiceEvent};

/// Longest wait for the thread's end. It takes milliseconds, unless the machine is suspended or overloaded.
const LIMIT: Duration = Duration::from_secs(1);
/// Interval between checks whether the thread has exited, or whether a full queue has room.
const GLANCE: Duration = Duration::from_micros(500);
/// Wait for a thread that reported its end, but in which no value could be left.
const UNSEEN_END: Duration = Duration::from_millis(20);

/// A responder that was asked to end.
#[must_use = "its thread may still run"]
pub(super) struct Ending {
    began: Instant,
    /// Receives the thread's report that it is about to return.
    returns: Option<Receiver<DaemonStatus>>,
    /// Keeps the waker registered.
    waits: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Closed when the thread's local values are dropped.
    ended: mpsc::Receiver<()>,
    /// Path at which Linux lists the thread.
    shown_at: Arc<Mutex<Option<PathBuf>>>,
}

impl Ending {
    /// Withdraws announcements and asks the responder's thread to end, without waiting. `events`
    /// belong to a running search.
    pub(super) fn of(daemon: ServiceDaemon, events: Option<Receiver<ServiceEvent>>) -> Self {
        let (alive, ended) = mpsc::channel();
        let shown_at = Arc::default();
        let planter = Planter {
            alive: Mutex::new(Some(alive)),
            shown_at: Arc::clone(&shown_at),
        };
        let waits = events.and_then(|events| register(events, &Waker::from(Arc::new(planter))));
        Self {
            began: Instant::now(),
            returns: request_shutdown(&daemon),
            waits,
            ended,
            shown_at,
        }
    }

    /// Waits until the thread has exited, at most [`LIMIT`] after the request; logs a thread that takes longer.
    pub(super) fn wait(self) {
        let until = self.began + LIMIT;
        let left = || until.saturating_duration_since(Instant::now());
        if self.waits.is_none() {
            let outcome = self.returns.map(|returns| returns.recv_timeout(left()));
            // Without a queue the thread had ended before.
            tracing::debug!(?outcome, "the end of the discovery thread cannot be seen");
            thread::sleep(UNSEEN_END);
            return;
        }
        if self.ended.recv_timeout(left()) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::error!("the discovery thread does not end");
            return;
        }
        let shown_at = self
            .shown_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(shown_at) = shown_at {
            while shown_at.exists() && !left().is_zero() {
                thread::sleep(GLANCE);
            }
        }
    }
}

/// Registers `waker` for the next event; the thread that sends the event calls it. `None` if no event can follow.
fn register(
    events: Receiver<ServiceEvent>,
    waker: &Waker,
) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
    loop {
        let next = events.clone();
        let mut waits: Pin<Box<dyn Future<Output = _> + Send>> =
            Box::pin(async move { next.recv_async().await });
        match waits.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Pending => {
                return Some(Box::pin(async move {
                    // Never polled again.
                    let _ = waits.await;
                }));
            }
            Poll::Ready(Ok(_)) => {} // an event from before
            Poll::Ready(Err(_)) => return None,
        }
    }
}

/// Retries until there is room in the responder's queue; `None` if the thread has ended already.
fn request_shutdown(daemon: &ServiceDaemon) -> Option<Receiver<DaemonStatus>> {
    let until = Instant::now() + LIMIT;
    loop {
        match daemon.shutdown() {
            Ok(returns) => return Some(returns),
            Err(Error::Again) if Instant::now() < until => thread::sleep(GLANCE),
            Err(error) => {
                tracing::debug!(%error, "the discovery thread takes no order");
                return None;
            }
        }
    }
}

thread_local! {
    static PLANTED: RefCell<Vec<mpsc::Sender<()>>> = const { RefCell::new(Vec::new()) };
}

/// Leaves `alive` in the local storage of the thread that wakes it.
struct Planter {
    alive: Mutex<Option<mpsc::Sender<()>>>,
    shown_at: Arc<Mutex<Option<PathBuf>>>,
}

impl Wake for Planter {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let alive = self
            .alive
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(alive) = alive else {
            return;
        };
        if cfg!(target_os = "linux") {
            // "<process>/task/<thread>"
            *self.shown_at.lock().unwrap_or_else(PoisonError::into_inner) =
                std::fs::read_link("/proc/thread-self")
                    .ok()
                    .map(|link| PathBuf::from("/proc").join(link));
        }
        // A thread whose local values are destroyed runs no more code of this library.
        let _ = PLANTED.try_with(|planted| planted.borrow_mut().push(alive));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daemon() -> (ServiceDaemon, Receiver<ServiceEvent>) {
        let daemon = ServiceDaemon::new_with_port(0).expect("a daemon");
        let events = daemon.browse("_test._udp.local.").expect("a search");
        (daemon, events)
    }

    #[test]
    fn a_value_left_with_the_thread_is_dropped_at_its_end() {
        for _ in 0..20 {
            let (daemon, events) = daemon();
            let ending = Ending::of(daemon, Some(events));
            assert!(ending.waits.is_some());
            let (shown_at, began) = (Arc::clone(&ending.shown_at), ending.began);
            // `wait` consumes it; a copy of the path is needed to check it.
            ending
                .ended
                .recv_timeout(Duration::from_secs(30))
                .expect_err("closed");
            let shown = shown_at.lock().expect("not poisoned").clone();
            ending.wait();
            if cfg!(target_os = "linux") {
                let shown = shown.expect("the waker ran on the thread");
                assert!(!shown.exists(), "{} is still there", shown.display());
            }
            assert!(began.elapsed() < Duration::from_secs(30));
        }
    }

    #[test]
    fn a_search_without_a_listener_ends_all_the_same() {
        let (daemon, events) = daemon();
        drop(events);
        Ending::of(daemon.clone(), None).wait();
        assert!(daemon.shutdown().is_err(), "it has ended");
    }
}
