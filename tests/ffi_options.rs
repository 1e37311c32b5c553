//! Rooms with options, through the C ABI.

use std::ffi::{CStr, CString};
use std::net::{SocketAddr, UdpSocket};
use std::ptr::null;
use std::time::{Duration, Instant};

use meta_mystia_network::ffi::errors::mmn_last_error_message;
use meta_mystia_network::ffi::etcd::*;
use meta_mystia_network::ffi::events::{MMN_MEMBER_ACTIVE, MMN_MEMBER_INIT};
use meta_mystia_network::ffi::leader::*;
use meta_mystia_network::ffi::lifecycle::*;
use meta_mystia_network::ffi::options::MmnOptions;
use meta_mystia_network::ffi::peers::{mmn_connect, mmn_local_address};
use meta_mystia_network::ffi::seeded::*;
use meta_mystia_network::ffi::values::{
    MMN_GOSSIP_STRICT_LOWEST, MMN_SEEDED_PROFILE_LAN, MMN_STRATEGY_GOSSIP, MMN_STRATEGY_RAFT,
    MMN_STRATEGY_SEEDED,
};

fn try_open(options: &MmnOptions) -> Result<MmnRoom, i32> {
    let mut room = 0;
    // SAFETY: both strings have a NUL, the options have the size in their struct_size, and the number can be written.
    match unsafe { mmn_open(c"peer".as_ptr(), c"options".as_ptr(), options, &mut room) } {
        0 => Ok(room),
        code => Err(code),
    }
}

fn open(options: &MmnOptions) -> MmnRoom {
    try_open(options).unwrap_or_else(|code| panic!("{code}: {}", last_message()))
}

fn last_message() -> String {
    // SAFETY: a string of the library, read before the next call for one.
    let text = unsafe { CStr::from_ptr(mmn_last_error_message()) };
    text.to_str().expect("UTF-8").to_owned()
}

fn local_address(room: MmnRoom) -> SocketAddr {
    // SAFETY: as above; the room is open.
    let text = unsafe { CStr::from_ptr(mmn_local_address(room)) };
    let text = text.to_str().expect("UTF-8");
    text.parse().expect("an address with a port")
}

#[test]
fn a_room_elects_as_its_options_ask() {
    for (strategy, strategy_flags) in [
        (MMN_STRATEGY_RAFT, 0),
        (MMN_STRATEGY_GOSSIP, 0),
        (MMN_STRATEGY_GOSSIP, MMN_GOSSIP_STRICT_LOWEST),
    ] {
        let options = MmnOptions {
            strategy,
            strategy_flags,
            ..MmnOptions::default()
        };
        let room = open(&options);
        assert_eq!(mmn_strategy(room), strategy.cast_signed());
        assert_eq!(mmn_close(room), 0);
    }
}

/// Additions of the etcd strategy, in a room of another strategy.
#[test]
fn a_room_without_etcd_has_neither_tokens_nor_locks() {
    let room = open(&MmnOptions::default());
    assert_eq!(mmn_fencing_token(room), -1);
    let mut request = 7;
    let long = CString::new("x".repeat(129)).expect("no NUL");
    let longer = CString::new("x".repeat(4097)).expect("no NUL");
    let refused = |answer: i32, code: i32, expected: &str| {
        assert_eq!(answer, code, "{expected}");
        let sentence = last_message();
        assert!(sentence.contains(expected), "{sentence}");
    };
    // SAFETY: every string has a NUL, and the number can be written.
    unsafe {
        refused(
            mmn_proclaim(room, c"here".as_ptr()),
            -16,
            "raft has nothing that",
        );
        refused(
            mmn_try_lock(room, c"a".as_ptr(), &raw mut request),
            -16,
            "; etcd has",
        );
        assert_eq!(request, 0);
        refused(
            mmn_acquire_lock(room, c"a".as_ptr(), 1, &raw mut request),
            -16,
            "raft has no locks",
        );
        refused(
            mmn_release_lock(room, c"a".as_ptr()),
            -16,
            "raft has no locks",
        );
        refused(
            mmn_release_lock(room, c"".as_ptr()),
            -3,
            "name \"\" is empty; give 1",
        );
        refused(
            mmn_release_lock(room, c"a\n".as_ptr()),
            -3,
            "a control character",
        );
        refused(
            mmn_release_lock(room, long.as_ptr()),
            -3,
            "(129 bytes) is too long",
        );
        refused(
            mmn_proclaim(room, longer.as_ptr()),
            -3,
            "value has 4097 bytes",
        );
    }
    assert_eq!(mmn_close(room), 0);
}

/// A room of one voter, which is its own seed, addressed by name.
#[test]
fn a_seeded_room_knows_its_members_and_refuses_what_others_decide() {
    let mut seeded = MmnSeededOptions::default();
    // SAFETY: the struct has the size in its struct_size.
    let code = unsafe { mmn_default_seeded_options(MMN_SEEDED_PROFILE_LAN, &raw mut seeded) };
    assert_eq!(code, 0);
    seeded.is_seed = 1;
    seeded.seeds = c"localhost:9\n[::1]:9".as_ptr();
    let directory = std::env::temp_dir().join(format!("mmn-options-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.to_str().expect("UTF-8");
    let path = CString::new(path).expect("no NUL");
    let mut options = MmnOptions {
        strategy: MMN_STRATEGY_SEEDED,
        quorum_roster: c"other".as_ptr(),
        state_directory: path.as_ptr(),
        seeded: &raw const seeded,
        ..MmnOptions::default()
    };
    assert_eq!(try_open(&options), Err(-3));
    assert_eq!(
        last_message(),
        "seeded.is_seed is 1, but quorum_roster does not name \"peer\", and a seed is a voter; add the id to the roster of every member, or give is_seed 0"
    );
    let files = || std::fs::read_dir(&directory).expect("readable").count();
    assert_eq!(files(), 0);

    options.quorum_roster = c"peer".as_ptr();
    let room = open(&options);
    assert_eq!(mmn_strategy(room), MMN_STRATEGY_SEEDED.cast_signed());
    let deadline = Instant::now() + Duration::from_secs(20);
    while mmn_is_leader(room) == 0 {
        assert!(Instant::now() < deadline, "a seed that is alone leads");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(
        (
            mmn_cluster_version(room),
            mmn_leader_term(room),
            mmn_leader_epoch(room)
        ),
        (1, 1, 0)
    );
    // SAFETY: every string has a NUL, or is NULL.
    unsafe {
        assert_eq!(mmn_member_state(room, c"peer".as_ptr()), MMN_MEMBER_ACTIVE);
        assert_eq!(mmn_member_state(room, c"unknown".as_ptr()), MMN_MEMBER_INIT);
        assert_eq!(mmn_member_state(room, null()), -1);
        assert_eq!(mmn_member_state(room, c"".as_ptr()), -1);
        for (call, code) in [
            ("mmn_set_leader", mmn_set_leader(room, c"peer".as_ptr())),
            (
                "mmn_transfer_leadership",
                mmn_transfer_leadership(room, c"peer".as_ptr()),
            ),
            ("mmn_yield_leadership", mmn_yield_leadership(room)),
            ("mmn_set_auto_election", mmn_set_auto_election(room, 0)),
            ("mmn_set_auto_election", mmn_set_auto_election(room, 1)),
            ("mmn_set_priority", mmn_set_priority(room, 1)),
            ("mmn_set_eligible", mmn_set_eligible(room, 0)),
        ] {
            assert_eq!(code, -16, "{call}: {}", last_message());
        }
    }
    assert_eq!(mmn_close(room), 0);
    assert!(files() > 0);
    std::fs::remove_dir_all(&directory).expect("removed");

    // And a room of another strategy has no cluster.
    let room = open(&MmnOptions::default());
    assert_eq!(mmn_cluster_version(room), -1);
    // SAFETY: the string has a NUL.
    assert_eq!(unsafe { mmn_member_state(room, c"peer".as_ptr()) }, -1);
    assert_eq!(mmn_close(room), 0);
}

#[test]
fn a_fixed_address_and_port_are_the_rooms_own_and_are_named_when_they_are_taken() {
    let holder = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let fixed = holder.local_addr().expect("bound");
    let options = MmnOptions {
        bind_address: c"127.0.0.1".as_ptr(),
        bind_port: fixed.port().into(),
        ..MmnOptions::default()
    };
    assert_eq!(try_open(&options), Err(-4));
    let sentence = last_message();
    assert!(sentence.contains(&fixed.to_string()), "{sentence}");

    drop(holder);
    let room = open(&options);
    assert_eq!(local_address(room), fixed);
    assert_eq!(try_open(&options), Err(-4), "its own room has it");
    assert_eq!(mmn_close(room), 0);

    let v6 = MmnOptions {
        bind_address: c"::1".as_ptr(),
        ..MmnOptions::default()
    };
    let room = open(&v6);
    let own = local_address(room);
    assert_eq!(own.ip().to_string(), "::1");
    assert_ne!(own.port(), 0);
    let own = CString::new(own.to_string()).expect("no NUL");
    // SAFETY: the string has a NUL.
    assert_eq!(unsafe { mmn_connect(room, own.as_ptr()) }, -3);
    assert!(
        last_message().contains("this node's own"),
        "{}",
        last_message()
    );
    assert_eq!(mmn_close(room), 0);
}
