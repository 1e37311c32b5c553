//! What the library has open, so that a forked child can close it. The places are found without a lock.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

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
pub(crate) fn closed_in_children(open: &impl AsFd) -> ClosedInChildren {
    let open = open.as_fd();
    let place = identity(open)
        .map_err(|error| tracing::debug!(%error, "a forked child will keep a descriptor"))
        .ok()
        .and_then(|identity| take_place(open.as_raw_fd(), identity));
    ClosedInChildren {
        place,
        generation: super::generation(),
    }
}

fn identity(open: BorrowedFd<'_>) -> io::Result<Identity> {
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
            && self.generation == super::generation()
        {
            KNOWN[place].descriptor.store(FREE, Ordering::Release);
        }
    }
}

/// Empties the places, and gives what was in them to `close`. Locks nothing, allocates nothing.
pub(super) fn close_all(close: impl Fn(i32, Identity)) {
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
