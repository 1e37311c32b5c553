//! Peers as numbers, addresses and keys through the C ABI, with a second member in this process. Alone in this program: a process
//! has one room.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use meta_mystia_network::config::{Config, DiscoveryMode};
use meta_mystia_network::core::id::{PeerId, SessionId};
use meta_mystia_network::ffi::classic::*;
use meta_mystia_network::ffi::events::*;
use meta_mystia_network::ffi::old::*;
use meta_mystia_network::ffi::stats::*;
use meta_mystia_network::ffi::values::{MMN_DISCOVERY_OFF, MMN_IDENTITY_KEY_BYTES, MMN_KICK_BAN};
use meta_mystia_network::room::Room;

/// Far longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(60);
const KEY_BYTES: usize = MMN_IDENTITY_KEY_BYTES as usize;

fn read(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: a string of the library, read before the next call for one.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_str().expect("UTF-8").to_owned())
}

fn last() -> (i32, String) {
    let code = GetLastErrorCode();
    (code, read(GetLastErrorMessage()).expect("a string"))
}

fn index_of(peer: &CStr) -> u32 {
    // SAFETY: it has a NUL.
    unsafe { GetPeerIndex(peer.as_ptr()) }
}

fn address_of(peer: &CStr) -> Option<String> {
    // SAFETY: it has a NUL.
    read(unsafe { GetPeerAddress(peer.as_ptr()) })
}

fn fingerprint_of(peer: &CStr) -> Option<String> {
    // SAFETY: it has a NUL.
    read(unsafe { GetPeerFingerprint(peer.as_ptr()) })
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let limit = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < limit, "it never came about: {what}");
        std::thread::yield_now();
    }
}

/// An event in its handler, with the results of queries inside it.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    kind: u32,
    peer: String,
    peer_index: u32,
    id: Option<String>,
}

extern "C" fn on_event(user_data: *mut c_void, event: *const NetworkEvent) {
    // SAFETY: the test leaks it.
    let seen = unsafe { &*user_data.cast::<Sender<Seen>>() };
    // SAFETY: it is valid during the call.
    let event = unsafe { &*event };
    if [MMN_EVENT_JOINED, MMN_EVENT_LEFT].contains(&event.kind) {
        let _ = seen.send(Seen {
            kind: event.kind,
            peer: read(event.peer).expect("never NULL"),
            peer_index: event.peer_index,
            id: read(GetPeerIdByIndex(event.peer_index)),
        });
    }
}

fn keys_are_made_without_a_room() -> [u8; KEY_BYTES] {
    let mut buffer = [0xaa_u8; KEY_BYTES + 8];
    for length in [i32::MIN, -1, 0, MMN_IDENTITY_KEY_BYTES - 1] {
        // SAFETY: the buffer is longer than that.
        let code = unsafe { GenerateIdentityKey(buffer.as_mut_ptr(), length) };
        assert_eq!(code, -3);
        let sentence = format!("length is {length}; an identity key has 48 bytes");
        assert_eq!(last(), (-3, sentence));
    }
    // SAFETY: NULL is refused.
    assert_eq!(unsafe { GenerateIdentityKey(null_mut(), 48) }, -3);
    assert_eq!(last().1, "buffer is NULL; give 48 writable bytes");
    assert!(
        buffer.iter().all(|byte| *byte == 0xaa),
        "nothing is written"
    );
    let mut another = [0; KEY_BYTES];
    // SAFETY: both have the size in their struct_size.
    unsafe {
        let length = buffer.len() as i32;
        assert_eq!(GenerateIdentityKey(buffer.as_mut_ptr(), length), 48);
        assert_eq!(GenerateIdentityKey(another.as_mut_ptr(), 48), 48);
    }
    assert_eq!(&buffer[KEY_BYTES..], [0xaa; 8]);
    assert_ne!(buffer[..KEY_BYTES], another);
    another
}

fn moderation_checks_its_arguments() {
    let refused = |answer: i32, code: i32, sentence: &str| {
        assert_eq!(answer, code, "{sentence}");
        assert_eq!(last(), (code, sentence.to_owned()));
    };
    let (unknown, long) = (c"unknown".as_ptr(), [0_u8; 16_385]);
    eventually("it leads alone", || IsLeader() == 1);
    // SAFETY: the strings have a NUL, and the data is as long as it is said to be.
    unsafe {
        let flags = "flags is 6; 0 and MMN_KICK_BAN (1) are allowed";
        refused(KickPeerEx(unknown, 6, 0, null(), 0), -3, flags);
        let absent = "the peer \"unknown\" is neither connected nor reconnecting";
        refused(KickPeerEx(unknown, MMN_KICK_BAN, 0, null(), 0), -5, absent);
        refused(KickPeerEx(unknown, 0, 0, null(), 0), -5, absent);
        let kick =
            "length is 3073; a peer that is removed or rejected can be sent at most 3072 bytes";
        refused(KickPeerEx(unknown, 0, 0, long.as_ptr(), 3073), -3, kick);
        let not_banned = "no peer \"unknown\" is banned from this room";
        refused(UnbanPeer(unknown), -5, not_banned);
        let end = "length is 3073; a peer that is disconnected can be sent at most 3072 bytes";
        refused(DisconnectPeerEx(unknown, 0, long.as_ptr(), 3073), -3, end);
        assert_eq!(DisconnectPeerEx(unknown, 0, long.as_ptr(), 3072), 0);
        let payload = "length is 16385; a join payload has at most 16384 bytes";
        refused(SetJoinPayload(long.as_ptr(), 16_385), -3, payload);
        assert_eq!(SetJoinPayload(long.as_ptr(), 16_384), 0);
        let oneself = DisconnectPeerEx(c"me".as_ptr(), 0, null(), 0);
        let me = "the peer \"me\" is this node itself; to leave the room call ShutdownNetwork";
        refused(oneself, -3, me);
    }
}

/// Alone, no member lacks a link; and nothing is written beyond what the caller or the library knows.
fn room_statistics_stay_within_their_struct() {
    #[repr(C)]
    struct Later {
        stats: RoomStats,
        beyond: u64,
    }
    let mut later = Later {
        stats: RoomStats {
            struct_size: size_of::<Later>() as u32,
            unlinked_peers: 7,
            missed_broadcasts: 7,
        },
        beyond: 7,
    };
    // SAFETY: `later` has the number of bytes in its `struct_size`.
    assert_eq!(unsafe { GetRoomStats((&raw mut later).cast()) }, 0);
    let RoomStats {
        struct_size,
        unlinked_peers,
        missed_broadcasts,
    } = later.stats;
    assert_eq!(struct_size as usize, size_of::<Later>());
    assert_eq!((unlinked_peers, missed_broadcasts, later.beyond), (0, 0, 7));
}

fn open(key: &[u8; KEY_BYTES]) {
    let mut options = NetworkOptions {
        identity_key: key.as_ptr(),
        identity_key_length: KEY_BYTES as u32,
        discovery_mode: MMN_DISCOVERY_OFF,
        bind_address: c"127.0.0.1".as_ptr(),
        ..NetworkOptions::default()
    };
    options.config.heartbeat_interval_ms = 100;
    // SAFETY: both strings have a NUL, and the options have the size in their struct_size.
    let opened =
        unsafe { InitializeNetworkWithOptions(c"me".as_ptr(), c"peers".as_ptr(), &options) };
    assert_eq!(opened, 0, "{:?}", last());
}

fn other(name: &str) -> Room {
    let config = Config {
        discovery: DiscoveryMode::Off,
        bind_address: Some([127, 0, 0, 1].into()),
        ..Config::default()
    };
    let (peer, session) = (PeerId::new(name), SessionId::new("peers"));
    Room::open(peer.expect("valid"), session.expect("valid"), config).expect("a room")
}

/// All in one test, which has one room.
#[test]
fn peers_have_numbers_addresses_and_keys() {
    let key = keys_are_made_without_a_room();
    let (sender, seen) = channel::<Seen>();
    let user_data = Box::into_raw(Box::new(sender));
    // SAFETY: the function fits its user data, which is never freed.
    unsafe { RegisterEventHandler(Some(on_event), user_data.cast(), None) };
    open(&key);
    let mine = read(GetIdentityFingerprint()).expect("a room is open");
    assert_eq!(mine.len(), 64);
    assert_eq!(read(GetMembers()).as_deref(), Some(""));
    assert_eq!(
        (
            index_of(c"me"),
            index_of(c"琪露诺"),
            read(GetPeerIdByIndex(0))
        ),
        (0, 0, None)
    );
    assert_eq!(last(), last(), "an unknown peer is no error");

    for session in 1..=2 {
        let peer = other("琪露诺");
        let address = CString::new(peer.local_address().to_string()).expect("no NUL");
        // SAFETY: it has a NUL.
        assert_eq!(unsafe { ConnectToPeer(address.as_ptr()) }, 0);
        let joined = Seen {
            kind: MMN_EVENT_JOINED,
            peer: "琪露诺".into(),
            peer_index: session,
            id: Some("琪露诺".into()),
        };
        assert_eq!(seen.recv_timeout(TIMEOUT), Ok(joined));
        let name = c"琪露诺";
        assert_eq!(index_of(name), session);
        assert_eq!(read(GetPeerIdByIndex(session)).as_deref(), Some("琪露诺"));
        assert_eq!(read(GetMembers()).as_deref(), Some("琪露诺"));
        assert_eq!(
            address_of(name),
            Some(address.to_str().expect("text").to_owned())
        );
        assert_eq!(fingerprint_of(name), Some(peer.key().to_string()));
        eventually("the other end has the link", || {
            peer.snapshot().connected == 1
        });
        let there = peer.snapshot().peer("me").and_then(|view| view.key);
        assert_eq!(there.map(|key| key.to_string()), Some(mine.clone()));
        peer.close();
        let left = Seen {
            kind: MMN_EVENT_LEFT,
            peer: "琪露诺".into(),
            peer_index: session,
            id: Some("琪露诺".into()),
        };
        assert_eq!(seen.recv_timeout(TIMEOUT), Ok(left));
        eventually("the number is free", || index_of(name) == 0);
        assert_eq!(read(GetPeerIdByIndex(session)), None);
        assert_eq!((address_of(name), fingerprint_of(name)), (None, None));
    }

    moderation_checks_its_arguments();
    room_statistics_stay_within_their_struct();

    // The key identifies the member: with an equal key it is this member, with another key a new one.
    assert_eq!(ShutdownNetwork(), 0);
    open(&key);
    assert_eq!(read(GetIdentityFingerprint()).as_deref(), Some(&*mine));
    // SAFETY: NULL is refused, and the string has a NUL.
    unsafe {
        for answer in [GetPeerAddress(null()), GetPeerFingerprint(c"".as_ptr())] {
            assert!(answer.is_null());
            assert_eq!(last().0, -3);
        }
        assert_eq!(GetPeerIndex(null()), 0);
        assert_eq!(
            last(),
            (
                -3,
                "peer_id is NULL; give a NUL-terminated UTF-8 string".into()
            )
        );
    }
    assert_eq!(ShutdownNetwork(), 0);
    let mut key = [0; KEY_BYTES];
    // SAFETY: it is as long as that.
    assert_eq!(unsafe { GenerateIdentityKey(key.as_mut_ptr(), 48) }, 48);
    open(&key);
    assert_ne!(read(GetIdentityFingerprint()).as_deref(), Some(&*mine));
    assert_eq!(ShutdownNetwork(), 0);
    assert_eq!(read(GetIdentityFingerprint()), None);
    assert_eq!(index_of(c"me"), 0);
    assert_eq!(last().0, -1);
}
