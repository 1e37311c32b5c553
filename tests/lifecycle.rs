//! The default room of a process, opened and closed by many threads at once.

use std::sync::Barrier;
use std::thread;

use meta_mystia_network::config::Config;
use meta_mystia_network::core::id::{PeerId, SessionId};
use meta_mystia_network::default_room;
use meta_mystia_network::error::{CloseError, StartError};
use meta_mystia_network::room::Closed;

const THREADS: usize = 8;

fn open() -> Result<(), StartError> {
    let peer = PeerId::new("a").expect("valid");
    let session = SessionId::new("lifecycle").expect("valid");
    default_room::open(peer, session, Config::default(), None, |_| ())?;
    Ok(())
}

fn close() -> Result<Closed, CloseError> {
    default_room::close(default_room::handle().ok_or(CloseError::NotOpen)?)
}

/// Runs `call` on all threads at once.
fn at_once<T: Send>(call: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (barrier, call) = (&barrier, &call);
                scope.spawn(move || {
                    barrier.wait();
                    call(number)
                })
            })
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, T>| thread.join().expect("no panic");
        threads.into_iter().map(join).collect()
    })
}

#[test]
fn exactly_one_of_many_opens_and_exactly_one_closes() {
    for _ in 0..10 {
        let opened = at_once(|_| open());
        let refused =
            |result: &Result<(), StartError>| matches!(result, Err(StartError::AlreadyInitialized));
        assert_eq!(opened.iter().filter(|result| result.is_ok()).count(), 1);
        assert_eq!(
            opened.iter().filter(|result| refused(result)).count(),
            THREADS - 1
        );
        assert!(default_room::is_open());

        let closed = at_once(|_| close());
        assert_eq!(closed.iter().filter(|result| result.is_ok()).count(), 1);
        let nothing_left = Err(CloseError::NotOpen);
        assert_eq!(
            closed
                .iter()
                .filter(|result| **result == nothing_left)
                .count(),
            THREADS - 1
        );
        assert!(default_room::room().is_none());
    }
    opening_waits_for_a_shutdown_that_is_under_way();
}

/// Part of the one test of this program, which has one room.
fn opening_waits_for_a_shutdown_that_is_under_way() {
    for _ in 0..10 {
        open().expect("opened");
        // Half of the threads close, half open: each open call gets a room or the error that there is one.
        let results = at_once(|number| {
            if number % 2 == 0 {
                close().is_ok()
            } else {
                match open() {
                    Ok(()) => true,
                    Err(StartError::AlreadyInitialized) => false,
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let (closed, opened): (Vec<_>, Vec<_>) = results
            .into_iter()
            .enumerate()
            .partition(|(number, _)| number % 2 == 0);
        let count = |results: Vec<(usize, bool)>| results.iter().filter(|(_, done)| *done).count();
        let (closed, opened) = (count(closed), count(opened));
        let open_now = usize::from(default_room::is_open());
        assert_eq!(1 + opened, closed + open_now);
        if open_now == 1 {
            close().expect("the last one");
        }
    }
}
