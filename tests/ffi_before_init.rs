//! What the exported functions answer before any room is open. Nothing in this file opens one.

use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

use meta_mystia_network::ffi::callbacks::*;
use meta_mystia_network::ffi::config::NetworkConfigFFI;
use meta_mystia_network::ffi::errors::*;
use meta_mystia_network::ffi::leader::*;
use meta_mystia_network::ffi::lifecycle::*;
use meta_mystia_network::ffi::logs::*;
use meta_mystia_network::ffi::peers::*;
use meta_mystia_network::ffi::send::*;
use meta_mystia_network::ffi::stats::*;
use meta_mystia_network::ffi::version::*;

fn read(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the library gave the pointer, and has returned no other string to this thread since.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_str().expect("UTF-8").to_owned())
}

/// The calling thread's last error.
fn last() -> (i32, String) {
    (
        GetLastErrorCode(),
        read(GetLastErrorMessage()).expect("a string"),
    )
}

/// Runs `test` on a thread that has not failed yet.
fn on_fresh_thread(test: impl FnOnce() + Send + 'static) {
    let outcome = std::thread::spawn(test).join();
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn version_and_descriptions_need_no_room() {
    assert_eq!(GetAbiVersion(), MMN_ABI_VERSION);
    assert_eq!(
        read(GetLibraryVersion()).as_deref(),
        Some(env!("CARGO_PKG_VERSION"))
    );
    assert!(read(DescribeError(-1)).is_some_and(|text| text.contains("InitializeNetwork")));
    assert!(read(DescribeError(12345)).is_some_and(|text| text.contains("not a code")));
}

#[test]
fn constant_strings_leave_the_threads_string_valid() {
    on_fresh_thread(|| {
        ShutdownNetwork();
        let message = GetLastErrorMessage();
        DescribeError(-3);
        GetLibraryVersion();
        assert!(read(message).is_some_and(|text| text.contains("nothing to shut down")));
    });
}

#[test]
fn a_thread_that_never_failed_has_no_error() {
    on_fresh_thread(|| {
        assert_eq!(last(), (0, String::new()));
        assert_eq!(IsNetworkInitialized(), 0);
        assert_eq!(EnableLogging(0), 0);
        assert_eq!(last(), (0, String::new()));
    });
}

#[test]
fn every_function_has_its_answer_without_a_room() {
    on_fresh_thread(|| {
        let text = c"peer".as_ptr();
        let data = [1_u8, 2, 3].as_ptr();
        let mut stats = PeerStats {
            struct_size: 80,
            ..PeerStats::default()
        };
        // SAFETY: every string has a NUL, and `data` has three bytes.
        unsafe {
            for (name, answer) in [
                ("ConnectToPeer", ConnectToPeer(c"localhost:1".as_ptr())),
                ("DisconnectPeer", DisconnectPeer(text)),
                ("GetPeerCount", GetPeerCount()),
                ("GetPeerRTT", GetPeerRTT(text)),
                ("GetPeerStatus", GetPeerStatus(text)),
                ("SetLeader", SetLeader(text)),
                ("EnableAutoLeaderElection", EnableAutoLeaderElection(1)),
                // A reserved type and flags come after the room.
                ("BroadcastMessage", BroadcastMessage(data, 3, 1, 0xff)),
                ("SendToPeer", SendToPeer(text, data, 3, 1, 0)),
                ("SendToLeader", SendToLeader(data, 3, 0x100, 0)),
                ("SendFromLeader", SendFromLeader(null(), 0, 0x100, 0)),
                (
                    "ForwardMessage",
                    ForwardMessage(text, null(), data, 3, 1, 0),
                ),
                ("SetCentralizedMode", SetCentralizedMode(1)),
                ("SetCentralizedAutoForward", SetCentralizedAutoForward(1)),
                ("SetCompressionThreshold", SetCompressionThreshold(0)),
                ("GetPeerStats", GetPeerStats(text, &raw mut stats)),
                ("RegisterReceiveCallback", RegisterReceiveCallback(None)),
                (
                    "RegisterLeaderChangedCallback",
                    RegisterLeaderChangedCallback(None),
                ),
                (
                    "RegisterPeerStatusCallback",
                    RegisterPeerStatusCallback(None),
                ),
                (
                    "RegisterConnectionResultCallback",
                    RegisterConnectionResultCallback(None),
                ),
            ] {
                assert_eq!(answer, -1, "{name}");
                let (code, sentence) = last();
                assert_eq!(code, -1, "{name}");
                assert!(sentence.contains(" needs a room"), "{sentence}");
            }
        }
        assert_eq!(ShutdownNetwork(), -1);
        assert_eq!(IsLeader(), 0);
        assert_eq!(IsCentralizedMode(), 0);
        assert_eq!(IsCentralizedAutoForward(), 0);
        assert_eq!(IsNetworkInitialized(), 0);
        for text in [
            GetLocalAddr(),
            GetLocalPeerId(),
            GetSessionId(),
            GetPeerList(),
            GetCurrentLeader(),
        ] {
            assert!(text.is_null());
        }
        assert_eq!(last().0, -1);
    });
}

#[test]
fn arguments_are_checked_before_the_room() {
    on_fresh_thread(|| {
        let invalid = |answer: i32, expected: i32, named: &str| {
            assert_eq!(answer, expected, "{named}");
            let (code, sentence) = last();
            assert_eq!(code, -3, "{named}");
            assert!(sentence.contains(named), "{sentence}");
        };
        let long = [&[b'x'; 65][..], &[0]].concat();
        let long = long.as_ptr().cast::<c_char>();
        let not_utf8 = c"\xff".as_ptr();
        let peer = c"peer".as_ptr();
        let data = [1_u8].as_ptr();
        // SAFETY: every string is NULL or has a NUL, and `data` has a byte.
        unsafe {
            invalid(ConnectToPeer(null()), -3, "addr is NULL");
            invalid(ConnectToPeer(c"host".as_ptr()), -3, "\"host\" has no port");
            invalid(DisconnectPeer(not_utf8), -3, "peer_id is not UTF-8");
            invalid(DisconnectPeer(c"".as_ptr()), -3, "it is empty");
            invalid(GetPeerRTT(null()), -1, "peer_id is NULL");
            invalid(GetPeerStatus(long), -1, "at most 64");
            invalid(SetLeader(c" a".as_ptr()), -3, "blank");
            invalid(BroadcastMessage(null(), 1, 1, 0), -3, "data is NULL");
            invalid(SendToPeer(peer, data, -5, 1, 0), -3, "length -5");
            invalid(SendToPeer(null(), null(), 5, 1, 0), -3, "peer_id");
            invalid(SendToLeader(data, -1, 1, 0), -3, "length -1");
            invalid(SendFromLeader(null(), 9, 1, 0), -3, "length is 9");
            let forward = |from, to| ForwardMessage(from, to, data, 1, 1, 0);
            invalid(forward(null(), peer), -3, "from is NULL");
            invalid(forward(peer, c"".as_ptr()), -3, "to \"\" is not allowed");
            invalid(forward(peer, not_utf8), -3, "to is not UTF-8");
            let mut stats = PeerStats {
                struct_size: 7,
                ..PeerStats::default()
            };
            let too_short = &raw mut stats;
            invalid(GetPeerStats(null(), too_short), -3, "peer_id is NULL");
            invalid(GetPeerStats(peer, null_mut()), -3, "stats is NULL");
            invalid(
                GetPeerStats(peer, too_short),
                -3,
                "struct_size 7 is below 8",
            );
        }
    });
}

#[test]
fn initialization_names_the_argument_or_the_field() {
    on_fresh_thread(|| {
        let refused = |answer: i32, named: &str| {
            assert_eq!(answer, -3, "{named}");
            let (code, sentence) = last();
            assert_eq!(code, -3);
            assert!(sentence.contains(named), "{sentence}");
        };
        let (peer, session) = (c"peer".as_ptr(), c"session".as_ptr());
        let broken = NetworkConfigFFI {
            max_connections: 0,
            heartbeat_interval_ms: 1500,
            ..NetworkConfigFFI::default()
        };
        // SAFETY: every pointer is NULL or points to what it should.
        unsafe {
            refused(InitializeNetwork(null(), session), "peer_id is NULL");
            refused(InitializeNetwork(peer, null()), "session_id is NULL");
            refused(InitializeNetwork(c"a\nb".as_ptr(), session), "U+000A");
            refused(
                InitializeNetworkWithConfig(peer, session, null()),
                "config is NULL",
            );
            refused(
                InitializeNetworkWithConfig(c"".as_ptr(), session, null()),
                "peer_id",
            );
            refused(
                InitializeNetworkWithConfig(peer, session, &raw const broken),
                "max_connections is 0",
            );
        }
        assert_eq!(IsNetworkInitialized(), 0);
    });
}
