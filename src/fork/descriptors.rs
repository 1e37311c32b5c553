//! The library's open descriptors, so that a forked child can close them. Access takes no lock.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// Limit of descriptors that a forked child closes; further ones stay open in it.
const MAX_KNOWN: usize = 256;
/// Markers of a free slot, and of one that is being filled.
const FREE: i32 = -1;
const TAKEN: i32 = -2;

/// Identity of an open file, which distinguishes it from a later one with the same descriptor.
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

/// While this value lives, a forked child closes its copy of the descriptor.
///
/// Drop it after the descriptor: until then the child can recognise another file that has received the same number.
#[derive(Debug)]
pub(crate) struct ClosedInChildren {
    place: Option<usize>,
    generation: u64,
}

/// Records that `open` belongs to the library.
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
    // A duplicate, because `metadata` needs an owned `File`.
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
    // Last, so that a reader of the descriptor also sees the rest.
    KNOWN[place].descriptor.store(descriptor, Ordering::Release);
    Some(place)
}

impl Drop for ClosedInChildren {
    fn drop(&mut self) {
        // A child has slots of its own, and they are empty.
        if let Some(place) = self.place
            && self.generation == super::generation()
        {
            KNOWN[place].descriptor.store(FREE, Ordering::Release);
        }
    }
}

/// Empties the slots, and passes their contents to `close`. Takes no lock and allocates nothing.
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
