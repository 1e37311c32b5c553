//! Secrets and private keys are wiped before their memory is freed. Alone in this program, which has its own allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CString;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use meta_mystia_network::ffi::lifecycle::{mmn_close, mmn_open};
use meta_mystia_network::ffi::options::MmnOptions;
use meta_mystia_network::ffi::values::MMN_QUORUM_STATIC;
use sha2::{Digest, Sha256};

/// Secrets that freed memory must not contain. As statics they are never freed themselves.
static SECRET: [u8; 32] = *b"the secret of the room: 7f3a91c2";
/// An Ed25519 key in PKCS#8, version 1; the last 32 bytes are the private key.
static KEY: [u8; 48] = *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20\
    the private key of this process.";

/// The private key that a state file holds.
static KEPT: [u8; 32] = *b"the key of the state file: 1b9e7";

static KEPT_SEEN: AtomicUsize = AtomicUsize::new(0);
static SECRETS_SEEN: AtomicUsize = AtomicUsize::new(0);
static KEYS_SEEN: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which inspects freed memory.
struct Watching;

fn look(memory: &[u8]) {
    for (pattern, seen) in [
        (&SECRET[..], &SECRETS_SEEN),
        (&KEY[16..], &KEYS_SEEN),
        (&KEPT[..], &KEPT_SEEN),
    ] {
        if memory.windows(pattern.len()).any(|part| part == pattern) {
            seen.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of the system's allocator. Zeroed, so that all of it may be read when it is
        // freed.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // Larger blocks hold queues and tables, and inspecting them takes time.
        if layout.size() <= 1 << 16 {
            // SAFETY: the block is as long as its layout and was zeroed at first, and its former owner has given it up.
            look(unsafe { std::slice::from_raw_parts(memory, layout.size()) });
        }
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// The options point to as many bytes as their lengths.
fn open_and_close(options: &MmnOptions) {
    let mut room = 0;
    // SAFETY: all strings have a NUL, and the number can be written.
    let code = unsafe { mmn_open(c"peer".as_ptr(), c"wiped".as_ptr(), options, &mut room) };
    assert_eq!((code, mmn_close(room)), (0, 0));
}

#[test]
fn the_secret_and_the_private_key_are_wiped_when_the_room_is_closed() {
    // Checks that the allocator finds secrets.
    drop(std::hint::black_box(SECRET.to_vec()));
    drop(std::hint::black_box(KEY.to_vec()));
    assert_eq!(SECRETS_SEEN.swap(0, Ordering::Relaxed), 1);
    assert_eq!(KEYS_SEEN.swap(0, Ordering::Relaxed), 1);
    for _ in 0..3 {
        let options = MmnOptions {
            secret: SECRET.as_ptr(),
            secret_length: 32,
            identity_key: KEY.as_ptr(),
            identity_key_length: 48,
            ..MmnOptions::default()
        };
        open_and_close(&options);
    }
    assert_eq!(SECRETS_SEEN.load(Ordering::Relaxed), 0);
    assert_eq!(KEYS_SEEN.load(Ordering::Relaxed), 0);
}

#[test]
fn the_private_key_of_a_state_file_is_wiped_when_the_room_is_closed() {
    drop(std::hint::black_box(KEPT.to_vec()));
    assert_eq!(KEPT_SEEN.swap(0, Ordering::Relaxed), 1, "the watch works");
    let directory = std::env::temp_dir().join(format!("mmn-wiped-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let path = CString::new(directory.to_str().expect("UTF-8")).expect("no NUL");
    let open_with_state = || {
        let options = MmnOptions {
            quorum_policy: MMN_QUORUM_STATIC,
            quorum_roster: c"peer".as_ptr(),
            state_directory: path.as_ptr(),
            ..MmnOptions::default()
        };
        open_and_close(&options);
    };
    open_with_state();
    let state = fs::read_dir(&directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|kind| kind == "state"))
        .expect("a state file");
    put_key(&state);
    for _ in 0..3 {
        open_with_state();
        assert!(key_at(read(&state)).is_some_and(|at| read(&state)[at..].starts_with(&KEPT)));
    }
    assert_eq!(KEPT_SEEN.load(Ordering::Relaxed), 0);
    fs::remove_dir_all(directory).expect("removed");
}

/// Replaces the key that the library made by the known key.
fn put_key(state: &Path) {
    let bytes = read(state);
    let at = key_at(bytes).expect("a key");
    bytes[at..at + KEPT.len()].copy_from_slice(&KEPT);
    let (signed, digest) = bytes.split_at_mut(bytes.len() - 32);
    digest.copy_from_slice(&Sha256::digest(signed));
    fs::write(state, bytes).expect("written");
}

/// Offset of the private key: behind the roster, "peer" and a line feed, and a zero for a key that the library made.
fn key_at(bytes: &[u8]) -> Option<usize> {
    let before = b"\x05peer\n\0";
    let found = bytes.windows(before.len()).position(|part| part == before);
    found.map(|at| at + before.len())
}

/// The contents of the file, in memory that is never freed.
fn read(path: &Path) -> &'static mut [u8] {
    fs::read(path).expect("there").leak()
}
