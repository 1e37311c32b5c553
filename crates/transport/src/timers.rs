//! QUIC's timers, multiplexed on one timer of the runtime.
//!
//! quinn has a timer for each connection. It sets it to a probe timeout with every packet, and postpones it
//! when the packet is acknowledged. A postponed timer of tokio stays in place and wakes the thread at its
//! first time, for nothing. A timer that is set to an earlier time than all others costs a system call. A
//! fifth of the wakeups of an idle member of 32 were of the first kind. Here timers are entries of one table,
//! and only the first one is backed by a timer of the runtime.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant as StdInstant};

use quinn::AsyncTimer;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// The runtime's timer stays in place while the first timer is postponed by less than this: one useless
/// wakeup per this interval costs less than setting it for every packet of a transfer.
const TOLERANCE: Duration = Duration::from_millis(5);

/// The timers of QUIC's connections.
#[derive(Debug)]
pub struct Timers {
    table: Arc<Table>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Table {
    inner: Mutex<Inner>,
    /// Notified when the runtime's timer no longer fits the first timer.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    /// By time and number.
    set: BTreeMap<(Instant, u64), Waker>,
    numbers: u64,
    /// The time of the runtime's timer.
    armed: Option<Instant>,
}

impl Timers {
    /// Starts without timers. Requires a runtime, which serves them.
    pub fn start() -> Self {
        let table = Arc::new(Table::default());
        let task = tokio::spawn(Arc::clone(&table).serve());
        Self { table, task }
    }

    /// Makes a timer that is due at `at`.
    pub fn timer(&self, at: StdInstant) -> Pin<Box<dyn AsyncTimer>> {
        let mut inner = self.table.lock();
        inner.numbers += 1;
        Box::pin(Timer {
            table: Arc::clone(&self.table),
            at: at.into(),
            number: inner.numbers,
            is_set: false,
        })
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Table {
    /// Wakes the owners of due timers.
    async fn serve(self: Arc<Self>) {
        loop {
            let first = self.lock().arm();
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = until(first) => {
                    let due = self.lock().take_due(Instant::now());
                    due.into_iter().for_each(Waker::wake);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No panic can interrupt a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Inner {
    fn first(&self) -> Option<Instant> {
        self.set.first_key_value().map(|((at, _), _)| *at)
    }

    /// Sets the runtime's timer to the first timer, and returns its time.
    fn arm(&mut self) -> Option<Instant> {
        self.armed = self.first();
        self.armed
    }

    /// Whether the runtime's timer is due too late, or much too early.
    fn is_armed_wrongly(&self) -> bool {
        match (self.armed, self.first()) {
            (Some(armed), Some(first)) => first < armed || first > armed + TOLERANCE,
            (armed, first) => armed != first,
        }
    }

    fn take_due(&mut self, now: Instant) -> Vec<Waker> {
        let mut due = Vec::new();
        while let Some(first) = self.set.first_entry()
            && first.key().0 <= now
        {
            due.push(first.remove());
        }
        due
    }
}

/// A timer of a connection.
#[derive(Debug)]
struct Timer {
    table: Arc<Table>,
    at: Instant,
    /// Distinguishes timers that are due at the same time.
    number: u64,
    /// Whether it may be in the table.
    is_set: bool,
}

impl Timer {
    /// The runtime's timer stays in place: either this one is set again, or one last useless wakeup follows.
    fn unset(&mut self) {
        if std::mem::take(&mut self.is_set) {
            self.table.lock().set.remove(&(self.at, self.number));
        }
    }
}

impl AsyncTimer for Timer {
    fn reset(mut self: Pin<&mut Self>, at: StdInstant) {
        self.unset();
        self.at = at.into();
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.at <= Instant::now() {
            self.unset();
            return Poll::Ready(());
        }
        self.is_set = true;
        let mut inner = self.table.lock();
        inner.set.insert((self.at, self.number), cx.waker().clone());
        if inner.is_armed_wrongly() {
            self.table.changed.notify_one();
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.unset();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use tokio::task::yield_now;
    use tokio::time::sleep;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(60);

    /// Counts wakeups.
    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A connection with one timer.
    struct Owner {
        timer: Pin<Box<dyn AsyncTimer>>,
        wakes: Arc<Wakes>,
    }

    impl Owner {
        fn new(timers: &Timers, after: Duration) -> Self {
            Self {
                timer: timers.timer((Instant::now() + after).into_std()),
                wakes: Arc::default(),
            }
        }

        fn is_due(&mut self) -> bool {
            let waker = Waker::from(Arc::clone(&self.wakes));
            let mut cx = Context::from_waker(&waker);
            self.timer.as_mut().poll(&mut cx).is_ready()
        }

        /// Postpones the timer or sets it to an earlier time, as quinn does.
        fn reset(&mut self, after: Duration) {
            let at = Instant::now() + after;
            self.timer.as_mut().reset(at.into_std());
            assert!(!self.is_due());
        }

        async fn wakes(&self) -> usize {
            yield_now().await;
            self.wakes.0.load(Ordering::Relaxed)
        }
    }

    impl Timers {
        /// The delay of the runtime's timer from now.
        async fn armed(&self) -> Option<Duration> {
            yield_now().await;
            let armed = self.table.lock().armed;
            armed.map(|at| at - Instant::now())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_timer_is_due_at_its_time() {
        let timers = Timers::start();
        let start = Instant::now();
        let wait = async |ms| {
            let at = start + Duration::from_millis(ms);
            let mut timer = timers.timer(at.into_std());
            poll_fn(|cx| timer.as_mut().poll(cx)).await;
            assert_eq!(start.elapsed(), Duration::from_millis(ms));
        };
        tokio::join!(wait(30), wait(10), wait(20), wait(10), wait(0));
        assert!(timers.table.lock().set.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_postponed_timer_does_not_fire_at_its_first_time() {
        let timers = Timers::start();
        let mut one = Owner::new(&timers, SHORT);
        assert!(!one.is_due());
        assert_eq!(timers.armed().await, Some(SHORT));
        one.reset(LONG);
        assert_eq!(timers.armed().await, Some(LONG));
        sleep(SHORT * 2).await;
        assert_eq!(one.wakes().await, 0);
        one.reset(SHORT);
        assert_eq!(timers.armed().await, Some(SHORT));
        sleep(SHORT).await;
        assert_eq!(one.wakes().await, 1);
        assert!(one.is_due());
        assert_eq!(timers.armed().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_of_all_timers_is_the_runtimes() {
        let timers = Timers::start();
        let mut later = Owner::new(&timers, SHORT * 2);
        let mut first = Owner::new(&timers, SHORT);
        assert!(!later.is_due() && !first.is_due());
        assert_eq!(timers.armed().await, Some(SHORT));
        sleep(SHORT).await;
        assert_eq!((first.wakes().await, later.wakes().await), (1, 0));
        assert!(first.is_due());
        assert_eq!(timers.armed().await, Some(SHORT));
        sleep(SHORT).await;
        assert_eq!((first.wakes().await, later.wakes().await), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_is_put_off_a_little_keeps_the_runtimes_until_that_is_due() {
        let timers = Timers::start();
        let mut one = Owner::new(&timers, SHORT);
        assert!(!one.is_due());
        assert_eq!(timers.armed().await, Some(SHORT));
        one.reset(SHORT + TOLERANCE);
        assert_eq!(timers.armed().await, Some(SHORT));
        sleep(SHORT).await;
        assert_eq!(one.wakes().await, 0);
        assert_eq!(timers.armed().await, Some(TOLERANCE));
        sleep(TOLERANCE).await;
        assert_eq!(one.wakes().await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_timer_leaves_nothing() {
        let timers = Timers::start();
        let mut one = Owner::new(&timers, SHORT);
        assert!(!one.is_due());
        drop(one);
        assert!(timers.table.lock().set.is_empty());
        sleep(SHORT * 2).await;
        assert_eq!(timers.armed().await, None);
    }
}
