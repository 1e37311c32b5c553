//! Resolution of host names.
//!
//! The system's resolver cannot be stopped, and takes half a minute if no name server answers. So each lookup
//! has a thread of its own. A dial abandons it when its time is over, and a room when it closes. The limit on
//! these threads belongs to the process, since they outlive rooms.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use thiserror::Error;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

use crate::fork::{Inherit, PerProcess};
use crate::quoted::Quoted;

use super::progress::Overdue;

/// Concurrent lookups of a room, including those whose dials have given up; others wait for their turn.
const MAX_LOOKUPS: usize = 16;
/// Lookup threads of the process, abandoned ones included.
const MAX_THREADS: usize = 64;
/// Resolvers that load modules need more than the smallest stack.
const STACK_BYTES: usize = 512 << 10;

/// The lookup function; it may block for any time.
pub(crate) type Lookup = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Resolves names with the system's resolver.
pub(crate) fn system_lookup() -> Lookup {
    Arc::new(|name, port| Ok((name, port).to_socket_addrs()?.collect()))
}

/// Reason why a name has no address.
#[derive(Debug, Error)]
pub(crate) enum LookupError {
    /// The resolver's own error.
    #[error(
        "the name {} does not resolve ({source}); check its spelling, or give an IP address",
        Quoted(name)
    )]
    Unknown {
        /// The name.
        name: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The name exists, without an address.
    #[error(
        "the name {} has no address; check its spelling, or give an IP address",
        Quoted(name)
    )]
    NoAddress {
        /// The name.
        name: String,
    },
    /// The resolver takes too long.
    #[error(
        "no name server answered for {} within {:.1} s; check the network connection, or give an IP address",
        Quoted(name),
        overdue.after.as_secs_f32()
    )]
    NoAnswer {
        /// The name.
        name: String,
        /// The time waited.
        overdue: Overdue,
    },
    /// The system gives no thread.
    #[error(
        "the name {} could not be looked up ({source}); end other programs, or give an IP address",
        Quoted(name)
    )]
    NoThread {
        /// The name.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// A bug of the resolver.
    #[error(
        "the name {} could not be looked up: the resolver failed; give an IP address",
        Quoted(name)
    )]
    Failed {
        /// The name.
        name: String,
    },
}

/// The lookups of a room.
pub(crate) struct Names {
    lookup: Lookup,
    threads: &'static Threads,
    turns: Arc<Semaphore>,
    stack_bytes: usize,
}

impl Names {
    /// Resolves names with `lookup`, on threads of this process.
    pub(crate) fn new(lookup: Lookup) -> Self {
        Self::on(threads(), lookup)
    }

    fn on(threads: &'static Threads, lookup: Lookup) -> Self {
        Self {
            lookup,
            threads,
            turns: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            stack_bytes: STACK_BYTES,
        }
    }

    /// Resolves a name: its addresses, in the resolver's order; at least one. Dropping the future abandons the lookup.
    ///
    /// # Errors
    /// [`LookupError`].
    pub(crate) async fn look_up(
        &self,
        name: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, LookupError> {
        let failed = |_| LookupError::Failed { name: name.into() };
        // The semaphores are never closed.
        let turn = Arc::clone(&self.turns).acquire_owned();
        let turn = turn.await.map_err(failed)?;
        let place = self.threads.places.acquire().await.map_err(failed)?;
        let (answer, answered) = oneshot::channel();
        let (lookup, wanted) = (Arc::clone(&self.lookup), name.to_owned());
        // The thread may outlive the room: it must not log, or call the host in another way.
        let run = move || {
            let found = lookup(&wanted, port);
            drop(turn);
            // Fails only for an abandoned lookup.
            let _ = answer.send(found);
        };
        let started = self.threads.start(self.stack_bytes, place, run);
        started.map_err(|source| LookupError::NoThread {
            name: name.into(),
            source,
        })?;
        let found = answered
            .await
            .map_err(|_| LookupError::Failed { name: name.into() })?;
        match found {
            Ok(addresses) if addresses.is_empty() => {
                Err(LookupError::NoAddress { name: name.into() })
            }
            Ok(addresses) => Ok(addresses),
            Err(source) => Err(LookupError::Unknown {
                name: name.into(),
                source,
            }),
        }
    }
}

/// Whether a lookup thread still runs: its code must stay in memory.
pub(crate) fn are_running() -> bool {
    threads().are_running()
}

/// The lookup threads. A forked child has none of its parent's.
struct Threads {
    places: Semaphore,
    /// Each running thread holds a permit, except while it is about to return.
    started: Mutex<Vec<JoinHandle<()>>>,
}

static THREADS: PerProcess<Threads> = PerProcess::new(Threads::new());

fn threads() -> &'static Threads {
    THREADS.get()
}

impl Threads {
    const fn new() -> Self {
        Self {
            places: Semaphore::const_new(MAX_THREADS),
            started: Mutex::new(Vec::new()),
        }
    }

    fn start(
        &self,
        stack_bytes: usize,
        place: SemaphorePermit<'static>,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let mut started = self.started();
        join_ended(&mut started);
        let builder = thread::Builder::new()
            .name("mmn-name".into())
            .stack_size(stack_bytes);
        started.push(builder.spawn(move || {
            let _place = place;
            run();
        })?);
        Ok(())
    }

    fn are_running(&self) -> bool {
        let mut started = self.started();
        join_ended(&mut started);
        !started.is_empty()
    }

    fn started(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inherit for Threads {
    fn inherit(_: &Self) -> Self {
        Self::new()
    }
}

/// Joins threads that have nothing left to do but to return: none of their code may run when the library is unloaded.
fn join_ended(started: &mut Vec<JoinHandle<()>>) {
    for ended in started.extract_if(.., |thread| thread.is_finished()) {
        // Its panic has reached the dial as `LookupError::Failed`.
        let _ = ended.join();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use tokio::task::JoinSet;

    use super::*;

    /// A resolver whose lookups wait for the test, and threads that no other test counts.
    struct Held {
        lookup: Lookup,
        threads: &'static Threads,
        asked: Arc<AtomicUsize>,
        release: mpsc::Sender<()>,
    }

    impl Held {
        fn new() -> Self {
            let (release, released) = mpsc::channel::<()>();
            let released = Mutex::new(released);
            let asked = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&asked);
            let lookup: Lookup = Arc::new(move |_, port| {
                count.fetch_add(1, Ordering::SeqCst);
                let released = released.lock().unwrap_or_else(PoisonError::into_inner);
                // At the end of the test all return.
                let _ = released.recv();
                Ok(vec![SocketAddr::from(([192, 0, 2, 1], port))])
            });
            let threads: &'static Threads = Box::leak(Box::new(Threads::new()));
            Self {
                lookup,
                threads,
                asked,
                release,
            }
        }

        /// Begins lookups in a new room each time.
        async fn begin(&self, count: usize) -> JoinSet<Result<Vec<SocketAddr>, LookupError>> {
            let names = Arc::new(Names::on(self.threads, Arc::clone(&self.lookup)));
            let mut lookups = JoinSet::new();
            for _ in 0..count {
                let names = Arc::clone(&names);
                lookups.spawn(async move { names.look_up("a.example", 9).await });
            }
            tokio::task::yield_now().await;
            lookups
        }

        fn wait_until_asked(&self, count: usize) {
            let until = Instant::now() + Duration::from_secs(30);
            while self.asked.load(Ordering::SeqCst) < count {
                assert!(Instant::now() < until, "{count} lookups never begin");
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(self.asked.load(Ordering::SeqCst), count);
        }
    }

    #[tokio::test]
    async fn lookups_beyond_16_wait_and_threads_are_64_with_those_abandoned() {
        let held = Held::new();
        for round in 1..=4 {
            let lookups = held.begin(40).await;
            held.wait_until_asked(round * MAX_LOOKUPS);
            assert_eq!(held.threads.started().len(), round * MAX_LOOKUPS);
            // The room closes; its threads remain.
            drop(lookups);
        }
        assert_eq!(held.threads.places.available_permits(), 0);
        let mut last = held.begin(1).await;
        assert!(last.try_join_next().is_none());
        held.wait_until_asked(MAX_THREADS);
        // One of the abandoned lookups returns.
        held.release.send(()).expect("it waits");
        let limit = Duration::from_secs(30);
        tokio::time::timeout(limit, async {
            while held.asked.load(Ordering::SeqCst) == MAX_THREADS {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("its place is free");
        assert!(held.threads.are_running());
        let Held {
            release, threads, ..
        } = held;
        drop(release);
        let found = last.join_next().await.expect("one").expect("no panic");
        assert_eq!(
            found.expect("found"),
            [SocketAddr::from(([192, 0, 2, 1], 9))]
        );
        let until = Instant::now() + limit;
        while threads.are_running() {
            assert!(Instant::now() < until, "the threads never end");
            tokio::task::yield_now().await;
        }
        assert_eq!(threads.places.available_permits(), MAX_THREADS);
    }

    #[tokio::test]
    async fn without_a_thread_a_lookup_fails_and_gives_its_place_back() {
        let held = Held::new();
        let names = Names {
            lookup: system_lookup(),
            threads: held.threads,
            turns: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            // More than there are addresses.
            stack_bytes: usize::MAX >> 1,
        };
        for _ in 0..=MAX_THREADS {
            let failed = names.look_up("a.example", 9).await.expect_err("no thread");
            assert!(matches!(failed, LookupError::NoThread { .. }), "{failed}");
        }
        assert_eq!(held.threads.places.available_permits(), MAX_THREADS);
        assert!(!held.threads.are_running());
    }
}
