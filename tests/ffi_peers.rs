//! Peers as numbers, addresses and keys through the C ABI, with a second member in this process.

use std::ffi::{CStr, CString, c_char, c_void};
use std::net::UdpSocket;
use std::ptr::{null, null_mut};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use meta_mystia_network::ffi::errors::*;
use meta_mystia_network::ffi::events::*;
use meta_mystia_network::ffi::identity::*;
use meta_mystia_network::ffi::leader::mmn_is_leader;
use meta_mystia_network::ffi::lifecycle::*;
use meta_mystia_network::ffi::members::*;
use meta_mystia_network::ffi::options::MmnOptions;
use meta_mystia_network::ffi::peers::*;
use meta_mystia_network::ffi::stats::*;
use meta_mystia_network::ffi::values::{
    MMN_HOST_MODE_GUEST, MMN_HOST_MODE_HOST, MMN_IDENTITY_KEY_BYTES, MMN_KICK_BAN,
    MMN_TOPOLOGY_STAR,
};

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
    let code = mmn_last_error_code();
    (code, read(mmn_last_error_message()).expect("a string"))
}

fn index_of(room: MmnRoom, peer: &CStr) -> u32 {
    // SAFETY: it has a NUL.
    unsafe { mmn_peer_index(room, peer.as_ptr()) }
}

fn id_of(room: MmnRoom, index: u32) -> Option<String> {
    read(mmn_peer_id(room, index))
}

/// The address and the key of a peer.
fn traits_of(room: MmnRoom, peer: &CStr) -> (Option<String>, Option<String>) {
    // SAFETY: it has a NUL.
    unsafe {
        let address = read(mmn_peer_address(room, peer.as_ptr()));
        (address, read(mmn_peer_fingerprint(room, peer.as_ptr())))
    }
}

/// The path to a peer, and the member that carries the packets.
fn path_to(room: MmnRoom, peer: &CStr) -> (i32, Option<String>) {
    // SAFETY: it has a NUL.
    unsafe {
        let carrier = read(mmn_peer_carrier(room, peer.as_ptr()));
        (mmn_peer_path(room, peer.as_ptr()), carrier)
    }
}

fn stats_path(room: MmnRoom, peer: &CStr) -> Option<u32> {
    let mut stats = MmnPeerStats {
        struct_size: size_of::<MmnPeerStats>() as u32,
        ..MmnPeerStats::default()
    };
    // SAFETY: the id has a NUL, and the struct has the size in its struct_size.
    let code = unsafe { mmn_peer_stats(room, peer.as_ptr(), &raw mut stats) };
    (code == 0).then_some(stats.path)
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

extern "C" fn on_event(user_data: *mut c_void, event: *const MmnEvent) {
    // SAFETY: the test leaks it.
    let seen = unsafe { &*user_data.cast::<Sender<Seen>>() };
    // SAFETY: it is valid during the call.
    let event = unsafe { &*event };
    if [MMN_EVENT_JOINED, MMN_EVENT_LEFT].contains(&event.kind) {
        let _ = seen.send(Seen {
            kind: event.kind,
            peer: read(event.peer).expect("never NULL"),
            peer_index: event.peer_index,
            id: id_of(event.room, event.peer_index),
        });
    }
}

fn keys_are_made_without_a_room() -> [u8; KEY_BYTES] {
    let mut buffer = [0xaa_u8; KEY_BYTES + 8];
    for length in [i32::MIN, -1, 0, MMN_IDENTITY_KEY_BYTES - 1] {
        // SAFETY: the buffer is longer than that.
        let code = unsafe { mmn_generate_identity_key(buffer.as_mut_ptr(), length) };
        assert_eq!(code, -3);
        let sentence = format!("length is {length}; an identity key has 48 bytes");
        assert_eq!(last(), (-3, sentence));
    }
    // SAFETY: NULL is refused.
    assert_eq!(unsafe { mmn_generate_identity_key(null_mut(), 48) }, -3);
    assert_eq!(last().1, "buffer is NULL; give 48 writable bytes");
    assert!(
        buffer.iter().all(|byte| *byte == 0xaa),
        "nothing is written"
    );
    let mut another = [0; KEY_BYTES];
    // SAFETY: both are as long as that.
    unsafe {
        let length = buffer.len() as i32;
        assert_eq!(mmn_generate_identity_key(buffer.as_mut_ptr(), length), 48);
        assert_eq!(mmn_generate_identity_key(another.as_mut_ptr(), 48), 48);
    }
    assert_eq!(&buffer[KEY_BYTES..], [0xaa; 8]);
    assert_ne!(buffer[..KEY_BYTES], another);
    another
}

fn moderation_checks_its_arguments(room: MmnRoom) {
    let refused = |answer: i32, code: i32, sentence: &str| {
        assert_eq!(answer, code, "{sentence}");
        assert_eq!(last(), (code, sentence.to_owned()));
    };
    let (unknown, long) = (c"unknown".as_ptr(), [0_u8; 16_385]);
    eventually("it leads alone", || mmn_is_leader(room) == 1);
    // SAFETY: the strings have a NUL, and the data is as long as it is said to be.
    unsafe {
        let flags = "flags is 6; give 0, or 1 for a ban";
        refused(mmn_kick(room, unknown, 6, 0, null(), 0), -3, flags);
        let absent = "the peer \"unknown\" is neither connected nor reconnecting";
        refused(
            mmn_kick(room, unknown, MMN_KICK_BAN, 0, null(), 0),
            -5,
            absent,
        );
        refused(mmn_kick(room, unknown, 0, 0, null(), 0), -5, absent);
        let kick =
            "length is 3073; a peer that is removed or rejected can be sent at most 3072 bytes";
        refused(mmn_kick(room, unknown, 0, 0, long.as_ptr(), 3073), -3, kick);
        let not_banned = "no peer \"unknown\" is banned from this room";
        refused(mmn_unban(room, unknown), -5, not_banned);
        let end = "length is 3073; a peer that is disconnected can be sent at most 3072 bytes";
        refused(
            mmn_disconnect(room, unknown, 0, long.as_ptr(), 3073),
            -3,
            end,
        );
        assert_eq!(mmn_disconnect(room, unknown, 0, long.as_ptr(), 3072), 0);
        let payload = "length is 16385; a join payload has at most 16384 bytes";
        refused(
            mmn_set_join_payload(room, long.as_ptr(), 16_385),
            -3,
            payload,
        );
        assert_eq!(mmn_set_join_payload(room, long.as_ptr(), 16_384), 0);
        let oneself = mmn_disconnect(room, c"me".as_ptr(), 0, null(), 0);
        let me = "the peer \"me\" is this node itself; to leave the room, close it";
        refused(oneself, -3, me);
    }
}

/// Alone, no member lacks a link; and nothing is written beyond what the caller or the library knows.
fn room_statistics_stay_within_their_struct(room: MmnRoom) {
    #[repr(C)]
    struct Later {
        stats: MmnRoomStats,
        beyond: u64,
    }
    let mut later = Later {
        stats: MmnRoomStats {
            struct_size: size_of::<Later>() as u32,
            unlinked_peers: 7,
            missed_broadcasts: 7,
            room_time_error_us: 7,
            reserved: 7,
        },
        beyond: 7,
    };
    // SAFETY: `later` has the number of bytes in its `struct_size`.
    assert_eq!(unsafe { mmn_room_stats(room, (&raw mut later).cast()) }, 0);
    let MmnRoomStats {
        struct_size,
        unlinked_peers,
        missed_broadcasts,
        reserved,
        ..
    } = later.stats;
    assert_eq!(struct_size as usize, size_of::<Later>());
    assert_eq!((unlinked_peers, missed_broadcasts, later.beyond), (0, 0, 7));
    assert_eq!(reserved, 0);
}

fn open(id: &CStr, options: MmnOptions) -> MmnRoom {
    let options = MmnOptions {
        bind_address: c"127.0.0.1".as_ptr(),
        heartbeat_interval_ms: 100,
        ..options
    };
    let mut room = 0;
    // SAFETY: strings with a NUL, a whole struct, and a place for the number.
    let code = unsafe { mmn_open(id.as_ptr(), c"peers".as_ptr(), &options, &mut room) };
    assert_eq!(code, 0, "{:?}", last());
    room
}

fn with_key(key: &[u8; KEY_BYTES]) -> MmnOptions {
    MmnOptions {
        identity_key: key.as_ptr(),
        identity_key_length: KEY_BYTES as u32,
        ..MmnOptions::default()
    }
}

fn in_star(host_mode: u32) -> MmnOptions {
    MmnOptions {
        topology: MMN_TOPOLOGY_STAR,
        host_mode,
        ..MmnOptions::default()
    }
}

/// The room's time, and how far it may be from the leader's, in milliseconds.
fn time_of(room: MmnRoom) -> (i64, i64) {
    let mut stats = MmnRoomStats {
        struct_size: size_of::<MmnRoomStats>() as u32,
        ..MmnRoomStats::default()
    };
    // SAFETY: the struct has the size in its struct_size.
    assert_eq!(unsafe { mmn_room_stats(room, &raw mut stats) }, 0);
    let error = i64::from(stats.room_time_error_us) / 1000 + 1;
    (mmn_room_time_ms(room), error)
}

#[test]
fn a_newcomer_shows_the_time_of_the_older_room_and_a_closed_room_none() {
    let older = open(c"older", MmnOptions::default());
    eventually("it leads alone", || mmn_is_leader(older) == 1);
    assert_eq!(time_of(older).1, 1, "a leader's own time");
    eventually("the room's age", || mmn_room_time_ms(older) > 1500);
    let younger = open(c"younger", MmnOptions::default());
    assert!((0..1000).contains(&mmn_room_time_ms(younger)));
    let address = read(mmn_local_address(older)).expect("the room is open");
    let address = CString::new(address).expect("no NUL");
    // SAFETY: it has a NUL.
    assert_eq!(unsafe { mmn_connect(younger, address.as_ptr()) }, 0);
    eventually("one time", || {
        let leads = mmn_is_leader(older) + mmn_is_leader(younger);
        let (before, error_before) = time_of(older);
        let (between, error_between) = time_of(younger);
        let (after, _) = time_of(older);
        let error = error_before.max(error_between);
        let agrees = (before - error..=after + error).contains(&between);
        leads == 1 && error < 1000 && between > 1500 && agrees
    });
    for room in [older, younger] {
        assert_eq!(mmn_close(room), 0);
        assert_eq!(mmn_room_time_ms(room), -1);
        assert_eq!(last().0, -1);
    }
}

/// The function and the statistics name the same path.
/// Calls of many threads at once; the last list counts.
#[test]
fn turn_servers_are_replaced_from_any_thread() {
    let room = open(c"turned", MmnOptions::default());
    // SAFETY: the list is NULL or has a NUL.
    let set =
        |list: Option<&CStr>| unsafe { mmn_set_turn(room, list.map_or_else(null, CStr::as_ptr)) };
    let server = || {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let limit = socket.set_read_timeout(Some(TIMEOUT));
        limit.expect("set");
        let at = socket.local_addr().expect("bound");
        let line = format!("turn:{at} username=ann password=word");
        (socket, CString::new(line).expect("no NUL"))
    };
    let (wanted, line) = server();
    for wrong in [
        c"turn:127.0.0.1:1",
        c"stun:127.0.0.1:1 username=a password=b",
    ] {
        assert_eq!(set(Some(wrong)), -3);
        assert!(last().1.contains("turn, line 1"), "{}", last().1);
    }
    std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || {
                let (_socket, other) = server();
                for round in 0..50 {
                    let list = (round % 8 != number).then_some(&*other);
                    assert_eq!(set(list), 0);
                }
            });
        }
    });
    assert_eq!(set(Some(&line)), 0);
    let mut request = [0; 1500];
    let length = wanted.recv(&mut request).expect("it is asked");
    // The magic cookie of STUN (RFC 8489).
    assert_eq!(request[4..8], [0x21, 0x12, 0xa4, 0x42], "{length} bytes");
    assert_eq!(mmn_close(room), 0);
    assert_eq!(set(None), -1);
}

#[test]
fn guests_of_a_star_reach_each_other_through_the_host() {
    let host = open(c"host", in_star(MMN_HOST_MODE_HOST));
    let guests = [c"a", c"b"].map(|id| open(id, in_star(MMN_HOST_MODE_GUEST)));
    let [a, b] = guests;
    let address = read(mmn_local_address(host)).expect("the room is open");
    let address = CString::new(address).expect("no NUL");
    for guest in guests {
        // SAFETY: it has a NUL.
        assert_eq!(unsafe { mmn_connect(guest, address.as_ptr()) }, 0);
    }
    eventually("all are linked", || {
        [host, a, b].iter().all(|room| mmn_peer_count(*room) == 2)
    });
    let carried = (
        MMN_PATH_THROUGH_LEADER.cast_signed(),
        Some("host".to_owned()),
    );
    let direct = (MMN_PATH_DIRECT.cast_signed(), None);
    for (room, peer, expected) in [
        (a, c"b", &carried),
        (b, c"a", &carried),
        (a, c"host", &direct),
        (b, c"host", &direct),
        (host, c"a", &direct),
        (host, c"b", &direct),
    ] {
        assert_eq!(path_to(room, peer), *expected);
        let path = stats_path(room, peer).map(u32::cast_signed);
        assert_eq!(path, Some(expected.0));
    }
    for room in [a, b, host] {
        assert_eq!(mmn_close(room), 0);
    }
}

#[test]
fn peers_have_numbers_addresses_and_keys() {
    let (me, name) = (c"me", c"琪露诺");
    let key = keys_are_made_without_a_room();
    let (sender, seen) = channel::<Seen>();
    let options = MmnOptions {
        on_event: Some(on_event),
        user_data: Box::into_raw(Box::new(sender)).cast(),
        ..with_key(&key)
    };
    let room = open(me, options);
    let mine = read(mmn_local_fingerprint(room)).expect("the room is open");
    assert_eq!(mine.len(), 64);
    assert_eq!(read(mmn_members(room)).as_deref(), Some(""));
    assert_eq!((index_of(room, me), index_of(room, name)), (0, 0));
    assert_eq!(id_of(room, 0), None);
    assert_eq!(last(), last(), "an unknown peer is no error");

    for session in 1..=2 {
        let peer = open(name, MmnOptions::default());
        let address = read(mmn_local_address(peer)).expect("the room is open");
        let key = read(mmn_local_fingerprint(peer)).expect("the room is open");
        let dialled = CString::new(address.clone()).expect("no NUL");
        // SAFETY: it has a NUL.
        assert_eq!(unsafe { mmn_connect(room, dialled.as_ptr()) }, 0);
        let has = |kind| Seen {
            kind,
            peer: "琪露诺".into(),
            peer_index: session,
            id: Some("琪露诺".into()),
        };
        assert_eq!(seen.recv_timeout(TIMEOUT), Ok(has(MMN_EVENT_JOINED)));
        assert_eq!(index_of(room, name), session);
        assert_eq!(id_of(room, session).as_deref(), Some("琪露诺"));
        assert_eq!(read(mmn_members(room)).as_deref(), Some("琪露诺"));
        assert_eq!(traits_of(room, name), (Some(address), Some(key)));
        // No member carries the packets of a direct link.
        assert_eq!(path_to(room, name), (MMN_PATH_DIRECT.cast_signed(), None));
        assert_eq!(read(mmn_public_address(room)), None, "loopback");
        eventually("the other end has the link", || mmn_peer_count(peer) == 1);
        assert_eq!(traits_of(peer, me).1.as_ref(), Some(&mine));
        assert_eq!(mmn_close(peer), 0);
        assert_eq!(seen.recv_timeout(TIMEOUT), Ok(has(MMN_EVENT_LEFT)));
        eventually("the number is free", || index_of(room, name) == 0);
        assert_eq!(id_of(room, session), None);
        assert_eq!(traits_of(room, name), (None, None));
        assert_eq!(path_to(room, name), (-5, None));
        let sentence = "this node has no link to the peer \"琪露诺\"";
        assert_eq!(last(), (-5, sentence.into()));
    }
    assert_eq!(path_to(room, me), (-5, None), "this node itself");

    moderation_checks_its_arguments(room);
    room_statistics_stay_within_their_struct(room);

    // The key identifies the member: with an equal key it is this member, with another key a new one.
    assert_eq!(mmn_close(room), 0);
    let again = open(me, with_key(&key));
    assert_eq!(read(mmn_local_fingerprint(again)).as_deref(), Some(&*mine));
    // SAFETY: NULL is refused, and the string has a NUL.
    unsafe {
        let answers = [
            mmn_peer_address(again, null()),
            mmn_peer_carrier(again, null()),
            mmn_peer_fingerprint(again, c"".as_ptr()),
        ];
        assert!(answers.iter().all(|answer| answer.is_null()));
        assert_eq!(mmn_peer_index(again, null()), 0);
        assert_eq!(mmn_peer_path(again, null()), -3);
    }
    let sentence = "peer_id is NULL; give a NUL-terminated UTF-8 string";
    assert_eq!(last(), (-3, sentence.into()));
    assert_eq!(mmn_close(again), 0);
    let new = open(me, with_key(&keys_are_made_without_a_room()));
    assert_ne!(read(mmn_local_fingerprint(new)).as_deref(), Some(&*mine));
    assert_eq!(mmn_close(new), 0);
    assert_eq!(read(mmn_local_fingerprint(new)), None);
    assert_eq!(index_of(new, me), 0);
    assert_eq!(last().0, -1);
    assert_eq!(path_to(new, name), (-1, None));
    assert_eq!(read(mmn_public_address(new)), None);
    assert_eq!(last().0, -1);
}
