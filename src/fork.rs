//! Separates a forked child from its parent.
//!
//! A child of `fork` has one thread: the one that forked. The library's other threads do not exist in it, and a lock
//! that another thread held at that moment stays locked for ever. So a child touches nothing of its parent: the room,
//! its queues and their locks stay in place, unused, and are never dropped. Values of one process ([`PerProcess`])
//! start anew.
//!
//! The C library calls a handler after a fork (`ffi/fork.rs`), which may not lock or allocate. It increments
//! [`generation`] and closes the descriptors in [`closed_in_children`], both without a lock.

#[cfg(unix)]
mod descriptors;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use once_cell::race::OnceBox;

#[cfg(unix)]
pub(crate) use descriptors::Identity;
pub(crate) use descriptors::{ClosedInChildren, closed_in_children};

/// Number of forks between this process and the first that loaded the library.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Distinguishes this process from its ancestors: a number that changes with a fork, and never otherwise.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// A value of one process. A forked child has a value of its own, and never touches its parent's again, except to read
/// it once for the part that it inherits.
///
/// Access takes no lock, and a single load in a process that is not a child.
pub(crate) struct PerProcess<T: 'static> {
    first: T,
    children: OnceBox<Node<T>>,
}

struct Node<T: 'static> {
    generation: u64,
    value: T,
    next: OnceBox<Node<T>>,
}

/// The initial value of a child.
pub(crate) trait Inherit {
    /// Makes the value in the child. Another thread of the parent may have held any lock of `parent` at the fork: this
    /// must neither lock nor change it.
    fn inherit(parent: &Self) -> Self;
}

impl<T: Inherit> PerProcess<T> {
    /// `first` is the value of a process that is not a forked child.
    pub(crate) const fn new(first: T) -> Self {
        Self {
            first,
            children: OnceBox::new(),
        }
    }

    /// The value of this process.
    pub(crate) fn get(&self) -> &T {
        self.of(generation())
    }

    fn of(&self, generation: u64) -> &T {
        if generation == 0 {
            return &self.first;
        }
        let (mut parent, mut place) = (&self.first, &self.children);
        loop {
            let node = place.get_or_init(|| {
                Box::new(Node {
                    generation,
                    value: T::inherit(parent),
                    next: OnceBox::new(),
                })
            });
            if node.generation == generation {
                return &node.value;
            }
            (parent, place) = (&node.value, &node.next);
        }
    }
}

/// Separates this process from its parent. For the child's only thread, before `fork` has returned: takes no lock and
/// allocates nothing. `close` closes a descriptor if it still refers to that file.
#[cfg(unix)]
pub(crate) fn begin_child(close: impl Fn(i32, Identity)) {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    descriptors::close_all(close);
}

/// Windows does not fork.
#[cfg(not(unix))]
mod descriptors {
    #[derive(Debug)]
    pub(crate) struct ClosedInChildren;

    pub(crate) fn closed_in_children<T>(_: &T) -> ClosedInChildren {
        ClosedInChildren
    }
}

thread_local! {
    static OWN_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Marks the calling thread as one of the library's.
pub(crate) fn enter_own_thread() {
    // A thread that starts has its thread-local variables.
    let _ = OWN_THREAD.try_with(|own| own.set(true));
}

/// Whether the calling thread is a library thread that runs callbacks.
pub(crate) fn on_own_thread() -> bool {
    OWN_THREAD.try_with(Cell::get).unwrap_or(false)
}

/// Ends a child whose only thread is one of the library's. It was forked inside a callback, and the callback has
/// returned: the thread has nowhere to return to. Exits as a process does when its last thread ends.
pub(crate) fn end_child() -> ! {
    std::process::exit(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Number(u64);

    impl Inherit for Number {
        fn inherit(parent: &Self) -> Self {
            Self(parent.0 * 10 + 1)
        }
    }

    #[test]
    fn each_process_inherits_its_own_value() {
        let numbers = PerProcess::new(Number(7));
        assert_eq!(numbers.of(0).0, 7);
        assert_eq!(numbers.of(1).0, 71);
        // A process that did not read the number lies between.
        assert_eq!(numbers.of(3).0, 711);
        assert!(std::ptr::eq(numbers.of(3), numbers.of(3)));
        assert_eq!((numbers.of(0).0, numbers.of(1).0), (7, 71));
    }
}
