//! What a forked child must not share with its parent.
//!
//! A child of `fork` has one thread: the one that forked. The library's threads are not in it, and a lock that
//! another thread held at that moment stays locked in it for ever. So a child touches nothing that its parent had:
//! the room, its queues and their locks stay where they are, unused, and are never dropped; what is the process's
//! own ([`PerProcess`]) begins anew.
//!
//! The C library tells that a process has been forked (`ffi/fork.rs`); what runs then may not lock or allocate. It
//! counts [`generation`] up and closes what [`closed_in_children`] knows, both without a lock.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use once_cell::race::OnceBox;

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
        let generation = generation();
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

/// Open descriptors that a forked child closes, at most; further ones stay open in it.
const MAX_KNOWN: usize = 256;
/// A place that is free, and one that is being filled.
const FREE: i32 = -1;
const TAKEN: i32 = -2;

/// What distinguishes an open file from one that has got its number since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// `st_dev`.
    pub(crate) device: u64,
    /// `st_ino`.
    pub(crate) inode: u64,
}

struct Place {
    descriptor: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

static KNOWN: [Place; MAX_KNOWN] = [const {
    Place {
        descriptor: AtomicI32::new(FREE),
        device: AtomicU64::new(0),
        inode: AtomicU64::new(0),
    }
}; MAX_KNOWN];

/// As long as this lives, a child that is forked closes its copy of the descriptor.
///
/// Drop it after the descriptor: until then the child recognises one that has its number and is another file.
#[derive(Debug)]
pub(crate) struct ClosedInChildren {
    place: Option<usize>,
    generation: u64,
}

/// Notes that `open` is the library's own.
#[cfg(unix)]
pub(crate) fn closed_in_children(open: &impl std::os::fd::AsFd) -> ClosedInChildren {
    use std::os::fd::AsRawFd as _;
    let open = open.as_fd();
    let place = identity(open)
        .map_err(|error| tracing::debug!(%error, "a forked child will keep a descriptor"))
        .ok()
        .and_then(|identity| take_place(open.as_raw_fd(), identity));
    ClosedInChildren {
        place,
        generation: generation(),
    }
}

/// Other systems do not fork.
#[cfg(not(unix))]
pub(crate) fn closed_in_children<T>(_: &T) -> ClosedInChildren {
    ClosedInChildren {
        place: None,
        generation: 0,
    }
}

#[cfg(unix)]
fn identity(open: std::os::fd::BorrowedFd<'_>) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    // A second descriptor for the same open file, because only a `File` of one's own can be asked.
    let metadata = File::from(open.try_clone_to_owned()?).metadata()?;
    Ok(Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}

fn take_place(descriptor: i32, identity: Identity) -> Option<usize> {
    let place = KNOWN.iter().position(|place| {
        place
            .descriptor
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    })?;
    KNOWN[place]
        .device
        .store(identity.device, Ordering::Relaxed);
    KNOWN[place].inode.store(identity.inode, Ordering::Relaxed);
    // Last, so that who sees the number sees the rest.
    KNOWN[place].descriptor.store(descriptor, Ordering::Release);
    Some(place)
}

impl Drop for ClosedInChildren {
    fn drop(&mut self) {
        // In a child the places are the child's, and empty.
        if let Some(place) = self.place
            && self.generation == generation()
        {
            KNOWN[place].descriptor.store(FREE, Ordering::Release);
        }
    }
}

/// Makes this process another one than its parent. For the child's only thread, before `fork` has returned: locks
/// nothing, allocates nothing. `close` is to close a descriptor if it is still that file.
pub(crate) fn begin_child(close: impl Fn(i32, Identity)) {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for place in &KNOWN {
        let descriptor = place.descriptor.swap(FREE, Ordering::Acquire);
        if descriptor >= 0 {
            let identity = Identity {
                device: place.device.load(Ordering::Relaxed),
                inode: place.inode.load(Ordering::Relaxed),
            };
            close(descriptor, identity);
        }
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
