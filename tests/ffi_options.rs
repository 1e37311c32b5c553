//! A room with a fixed address and port, through the C ABI. Alone in this program: a process has one room.

use std::ffi::CStr;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use meta_mystia_network::ffi::classic::*;
use meta_mystia_network::ffi::config::NetworkConfigFFI;
use meta_mystia_network::ffi::events::{MMN_MEMBER_ACTIVE, MMN_MEMBER_INIT};
use meta_mystia_network::ffi::old::*;
use meta_mystia_network::ffi::seeded::*;
use meta_mystia_network::ffi::values::{
    MMN_GOSSIP_STRICT_LOWEST, MMN_SEEDED_PROFILE_LAN, MMN_STRATEGY_GOSSIP, MMN_STRATEGY_RAFT,
    MMN_STRATEGY_SEEDED,
};

fn initialize(options: &NetworkOptions) -> i32 {
    // SAFETY: both strings have a NUL, and the options have the size in their struct_size.
    unsafe { InitializeNetworkWithOptions(c"peer".as_ptr(), c"options".as_ptr(), options) }
}

fn last_message() -> String {
    // SAFETY: a string of the library, read before the next call for one.
    let text = unsafe { CStr::from_ptr(GetLastErrorMessage()) };
    text.to_str().expect("UTF-8").to_owned()
}

fn local_address() -> SocketAddr {
    // SAFETY: as above; a room is open.
    let text = unsafe { CStr::from_ptr(GetLocalAddr()) };
    let text = text.to_str().expect("UTF-8");
    text.parse().expect("an address with a port")
}

/// `NetworkOptions` of ABI version 1.
#[repr(C)]
struct FirstOptions {
    struct_size: u32,
    config: NetworkConfigFFI,
    pointers: [*const u8; 3],
    numbers: [u32; 6],
    bind_port: u16,
    flags: [u8; 6],
    /// The memory behind it in that program.
    behind: [u8; 64],
}

/// Part of the one test of this program, which has one room.
fn a_program_of_the_first_version_opens_its_room() {
    let mut options = FirstOptions {
        struct_size: std::mem::offset_of!(FirstOptions, behind) as u32,
        config: NetworkConfigFFI::default(),
        pointers: [std::ptr::null(); 3],
        numbers: [77; 6],
        bind_port: 77,
        flags: [77; 6],
        behind: [0xAA; 64],
    };
    // SAFETY: it has the size in its struct_size.
    let code = unsafe { GetDefaultNetworkOptions((&raw mut options).cast()) };
    assert_eq!(code, 0);
    assert_eq!(options.numbers, [0, 0, 60_000, 4 * 1024 * 1024, 0, 0]);
    assert_eq!((options.bind_port, options.flags), (0, [0, 0, 0, 0, 0, 1]));
    assert_eq!(options.behind, [0xAA; 64]);
    // SAFETY: as above; both strings have a NUL.
    let code = unsafe {
        InitializeNetworkWithOptions(
            c"peer".as_ptr(),
            c"options".as_ptr(),
            (&raw const options).cast(),
        )
    };
    assert_eq!(code, 0, "{}", last_message());
    assert_eq!(ShutdownNetwork(), 0);
}

/// Part of the one test of this program.
fn a_room_elects_as_its_options_ask() {
    for (strategy, strategy_flags) in [
        (MMN_STRATEGY_RAFT, 0),
        (MMN_STRATEGY_GOSSIP, 0),
        (MMN_STRATEGY_GOSSIP, MMN_GOSSIP_STRICT_LOWEST),
    ] {
        let options = NetworkOptions {
            strategy,
            strategy_flags,
            ..NetworkOptions::default()
        };
        assert_eq!(initialize(&options), 0, "{}", last_message());
        assert_eq!(GetElectionStrategy(), strategy.cast_signed());
        assert_eq!(ShutdownNetwork(), 0);
    }
}

/// Additions of the etcd strategy, in a room of another strategy.
fn a_room_without_etcd_has_neither_tokens_nor_locks() {
    assert_eq!(initialize(&NetworkOptions::default()), 0);
    assert_eq!(GetFencingToken(), -1);
    let mut request = 7;
    let long = std::ffi::CString::new("x".repeat(129)).expect("no NUL");
    let longer = std::ffi::CString::new("x".repeat(4097)).expect("no NUL");
    let refused = |answer: i32, code: i32, expected: &str| {
        assert_eq!(answer, code, "{expected}");
        let sentence = last_message();
        assert!(sentence.contains(expected), "{sentence}");
    };
    // SAFETY: every string has a NUL, and the number can be written.
    unsafe {
        refused(Proclaim(c"here".as_ptr()), -16, "raft has nothing that");
        refused(TryLock(c"a".as_ptr(), &raw mut request), -16, "; etcd has");
        assert_eq!(request, 0);
        refused(
            AcquireLock(c"a".as_ptr(), 1, &raw mut request),
            -16,
            "raft has no locks",
        );
        refused(ReleaseLock(c"a".as_ptr()), -16, "raft has no locks");
        refused(ReleaseLock(c"".as_ptr()), -3, "name \"\" is empty; give 1");
        refused(ReleaseLock(c"a\n".as_ptr()), -3, "a control character");
        refused(ReleaseLock(long.as_ptr()), -3, "(129 bytes) is too long");
        refused(Proclaim(longer.as_ptr()), -3, "value has 4097 bytes");
    }
    assert_eq!(ShutdownNetwork(), 0);
}

/// Part of the one test of this program. A room of one voter, which is its own seed, addressed by name.
fn a_seeded_room_knows_its_members_and_refuses_what_others_decide() {
    let mut seeded = SeededOptions::default();
    // SAFETY: the struct has the size in its struct_size.
    let code = unsafe { GetDefaultSeededOptions(MMN_SEEDED_PROFILE_LAN, &raw mut seeded) };
    assert_eq!(code, 0);
    seeded.is_seed = 1;
    seeded.seeds = c"localhost:9\n[::1]:9".as_ptr();
    let directory = std::env::temp_dir().join(format!("mmn-options-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.to_str().expect("UTF-8");
    let path = std::ffi::CString::new(path).expect("no NUL");
    let mut options = NetworkOptions {
        strategy: MMN_STRATEGY_SEEDED,
        quorum_roster: c"other".as_ptr(),
        state_directory: path.as_ptr(),
        seeded: &raw const seeded,
        ..NetworkOptions::default()
    };
    assert_eq!(initialize(&options), -3);
    assert_eq!(
        last_message(),
        "seeded.is_seed is 1, but quorum_roster does not name \"peer\", and a seed is a voter; add the id to the roster of every member, or give is_seed 0"
    );
    let files = || std::fs::read_dir(&directory).expect("readable").count();
    assert_eq!(files(), 0);

    options.quorum_roster = c"peer".as_ptr();
    assert_eq!(initialize(&options), 0, "{}", last_message());
    assert_eq!(GetElectionStrategy(), MMN_STRATEGY_SEEDED.cast_signed());
    let deadline = Instant::now() + Duration::from_secs(20);
    while IsLeader() == 0 {
        assert!(Instant::now() < deadline, "a seed that is alone leads");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(
        (GetClusterVersion(), GetLeaderTerm(), GetLeaderEpoch()),
        (1, 1, 0)
    );
    // SAFETY: every string has a NUL, or is NULL.
    unsafe {
        assert_eq!(GetMemberState(c"peer".as_ptr()), MMN_MEMBER_ACTIVE);
        assert_eq!(GetMemberState(c"unknown".as_ptr()), MMN_MEMBER_INIT);
        assert_eq!(GetMemberState(std::ptr::null()), -1);
        assert_eq!(GetMemberState(c"".as_ptr()), -1);
        for (call, code) in [
            ("SetLeader", SetLeader(c"peer".as_ptr())),
            ("TransferLeadership", TransferLeadership(c"peer".as_ptr())),
            ("YieldLeadership", YieldLeadership()),
            ("EnableAutoLeaderElection", EnableAutoLeaderElection(0)),
            ("EnableAutoLeaderElection", EnableAutoLeaderElection(1)),
            ("SetElectionPriority", SetElectionPriority(1)),
            ("SetLeaderEligible", SetLeaderEligible(0)),
        ] {
            assert_eq!(code, -16, "{call}: {}", last_message());
        }
    }
    assert_eq!(ShutdownNetwork(), 0);
    assert!(files() > 0);
    std::fs::remove_dir_all(&directory).expect("removed");

    // And a room of another strategy has no cluster.
    assert_eq!(initialize(&NetworkOptions::default()), 0);
    assert_eq!(GetClusterVersion(), -1);
    // SAFETY: the string has a NUL.
    assert_eq!(unsafe { GetMemberState(c"peer".as_ptr()) }, -1);
    assert_eq!(ShutdownNetwork(), 0);
}

#[test]
fn a_fixed_address_and_port_are_the_rooms_own_and_are_named_when_they_are_taken() {
    let holder = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let fixed = holder.local_addr().expect("bound");
    let options = NetworkOptions {
        bind_address: c"127.0.0.1".as_ptr(),
        bind_port: fixed.port(),
        ..NetworkOptions::default()
    };
    assert_eq!(initialize(&options), -4);
    let sentence = last_message();
    assert!(sentence.contains(&fixed.to_string()), "{sentence}");
    assert_eq!(IsNetworkInitialized(), 0);

    drop(holder);
    assert_eq!(initialize(&options), 0, "{}", last_message());
    assert_eq!(local_address(), fixed);
    assert_eq!(initialize(&options), -2);
    assert_eq!(ShutdownNetwork(), 0);

    let v6 = NetworkOptions {
        bind_address: c"::1".as_ptr(),
        ..NetworkOptions::default()
    };
    assert_eq!(initialize(&v6), 0, "{}", last_message());
    let own = local_address();
    assert_eq!(own.ip().to_string(), "::1");
    assert_ne!(own.port(), 0);
    let own = std::ffi::CString::new(own.to_string()).expect("no NUL");
    // SAFETY: the string has a NUL.
    assert_eq!(unsafe { ConnectToPeer(own.as_ptr()) }, -3);
    assert!(
        last_message().contains("this node's own"),
        "{}",
        last_message()
    );
    assert_eq!(ShutdownNetwork(), 0);
    a_program_of_the_first_version_opens_its_room();
    a_room_elects_as_its_options_ask();
    a_seeded_room_knows_its_members_and_refuses_what_others_decide();
    a_room_without_etcd_has_neither_tokens_nor_locks();
}
