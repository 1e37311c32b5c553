//! What a forked child must not share with its parent.
//!
//! A child of `fork` has one thread: the one that forked. The library's threads are not in it, and a lock that
//! another thread held at that moment stays locked in it for ever. So a child touches nothing that its parent had:
//! the room, its queues and their locks stay where they are, unused, and are never dropped; what is the process's
//! own ([`PerProcess`]) begins anew.
//!
//! The C library tells that a process has been forked (`ffi/fork.rs`); what runs then may not lock or allocate. It
//! counts [`generation`] up and closes what [`closed_in_children`] knows, both without a lock.

#[cfg(unix)]
mod descriptors;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use once_cell::race::OnceBox;

#[cfg(unix)]
pub(crate) use descriptors::Identity;
pub(crate) use descriptors::{ClosedInChildren, closed_in_children};

/// How many forks lie between this process and the first that loaded the library.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Names this process among its ancestors: a number that changes with a fork, and never otherwise.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// A value of this process. A forked child has one of its own, and never touches that of its parent again, except to
/// look at it once for what it inherits.
///
/// Finding it takes no lock, and in a process that is not a child no step.
pub(crate) struct PerProcess<T: 'static> {
    first: T,
    children: OnceBox<Node<T>>,
}

struct Node<T: 'static> {
    generation: u64,
    value: T,
    next: OnceBox<Node<T>>,
}

/// What a child starts with.
pub(crate) trait Inherit {
    /// Made in the child. Other threads of the parent may have held any lock of `parent` when it forked: it must not
    /// be locked here, nor changed.
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

/// Makes this process another one than its parent. For the child's only thread, before `fork` has returned: locks
/// nothing, allocates nothing. `close` is to close a descriptor if it is still that file.
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

/// The calling thread is one of the library's.
pub(crate) fn enter_own_thread() {
    // A thread that begins has its variables.
    let _ = OWN_THREAD.try_with(|own| own.set(true));
}

/// Whether the calling thread is one of the library's that run callbacks.
pub(crate) fn on_own_thread() -> bool {
    OWN_THREAD.try_with(Cell::get).unwrap_or(false)
}

/// Ends a child whose only thread is one of the library's: it was forked inside a callback, the callback has
/// returned, and there is nothing that it could return to. As when the last thread of a process ends.
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
    fn every_process_has_a_value_of_its_own_made_from_that_of_its_parent() {
        let numbers = PerProcess::new(Number(7));
        assert_eq!(numbers.of(0).0, 7);
        assert_eq!(numbers.of(1).0, 71);
        // A process that never asked lies between.
        assert_eq!(numbers.of(3).0, 711);
        assert!(std::ptr::eq(numbers.of(3), numbers.of(3)));
        assert_eq!((numbers.of(0).0, numbers.of(1).0), (7, 71));
    }
}
