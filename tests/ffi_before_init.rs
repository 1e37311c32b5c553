//! Results of the exported functions before any room is open. No test in this file opens one.

use std::ffi::{CStr, c_char};
use std::mem::offset_of;
use std::ptr::{null, null_mut};

use meta_mystia_network::ffi::browse::*;
use meta_mystia_network::ffi::classic::callbacks::*;
use meta_mystia_network::ffi::classic::config::NetworkConfigFFI;
use meta_mystia_network::ffi::classic::*;
use meta_mystia_network::ffi::errors::*;
use meta_mystia_network::ffi::etcd::*;
use meta_mystia_network::ffi::events::*;
use meta_mystia_network::ffi::gossip::*;
use meta_mystia_network::ffi::identity::*;
use meta_mystia_network::ffi::leader::*;
use meta_mystia_network::ffi::lifecycle::*;
use meta_mystia_network::ffi::logs::*;
use meta_mystia_network::ffi::members::*;
use meta_mystia_network::ffi::options::*;
use meta_mystia_network::ffi::peers::*;
use meta_mystia_network::ffi::room_code::*;
use meta_mystia_network::ffi::seeded::*;
use meta_mystia_network::ffi::send::*;
use meta_mystia_network::ffi::simulation::*;
use meta_mystia_network::ffi::state::*;
use meta_mystia_network::ffi::stats::*;
use meta_mystia_network::ffi::transfers::*;
use meta_mystia_network::ffi::values::{
    MMN_GOSSIP_STRICT_LOWEST, MMN_QUORUM_STATIC, MMN_ROOM_CODE_BYTES, MMN_SEEDED_PROFILE_LAN,
    MMN_SEEDED_PROFILE_WAN, MMN_STRATEGY_ETCD, MMN_STRATEGY_GOSSIP, MMN_STRATEGY_SEEDED,
};
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
    assert_eq!(mmn_abi_version(), MMN_ABI_VERSION);
    assert_eq!(
        read(mmn_library_version()).as_deref(),
        Some(env!("CARGO_PKG_VERSION"))
    );
    assert!(read(mmn_describe_error(-1)).is_some_and(|text| text.contains("open one first")));
    assert!(read(mmn_describe_error(12345)).is_some_and(|text| text.contains("not a code")));
}

#[test]
fn constant_strings_leave_the_threads_string_valid() {
    on_fresh_thread(|| {
        ShutdownNetwork();
        let message = GetLastErrorMessage();
        mmn_describe_error(-3);
        mmn_library_version();
        assert!(read(message).is_some_and(|text| text.contains("no room is open")));
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

/// The answer of a function.
enum Answer {
    Number(i64),
    Flag(u8),
    Text(Option<String>),
    /// Whether the function lends any.
    Bytes(bool),
}

impl Answer {
    fn from_number(number: impl Into<i64>) -> Self {
        Self::Number(number.into())
    }

    fn from_room(room: u64) -> Self {
        Self::Number(room.cast_signed())
    }

    fn from_flag(flag: u8) -> Self {
        Self::Flag(flag)
    }

    fn from_bytes(bytes: *const u8) -> Self {
        Self::Bytes(!bytes.is_null())
    }

    fn from_text(text: *const c_char) -> Self {
        Self::Text(read(text))
    }
}

include!(concat!(env!("OUT_DIR"), "/calls.rs"));

/// Functions that need no room: browsers, new keys and codes, versions, options, logs, the last error, and the windows of gossip,
/// which belong to the process.
const WITHOUT_A_ROOM: [&str; 31] = [
    "mmn_abi_version",
    "mmn_browse_close",
    "mmn_browse_open",
    "mmn_browse_poll",
    "mmn_default_etcd_options",
    "mmn_default_options",
    "mmn_default_room",
    "mmn_default_seeded_options",
    "mmn_default_state_options",
    "mmn_describe_error",
    "mmn_generate_identity_key",
    "mmn_generate_room_code",
    "mmn_last_error_code",
    "mmn_last_error_message",
    "mmn_library_version",
    "mmn_normalize_room_code",
    "mmn_set_log",
    "mmn_set_log_stderr",
    "GetLastErrorCode",
    "GetLastErrorMessage",
    "EnableLogging",
    "GetStartupGracePeriod",
    "SetStartupGracePeriod",
    "GetMembershipSampleInterval",
    "SetMembershipSampleInterval",
    "GetLeaderAliveThreshold",
    "SetLeaderAliveThreshold",
    "GetLeaderElectionDuration",
    "SetLeaderElectionDuration",
    "GetMsgExpirationTimeout",
    "GetLeadershipDeclarationInterval",
];

#[test]
fn every_other_function_has_its_answer_without_a_room() {
    on_fresh_thread(|| {
        every_call(&WITHOUT_A_ROOM, |name, answer| match answer {
            Answer::Number(number) => {
                let is_index = name == "mmn_peer_index";
                let expected = if is_index { 0 } else { -1 };
                assert_eq!(number, expected, "{name}");
                let (code, sentence) = last();
                assert_eq!(code, -1, "{name}");
                assert!(sentence.contains("no room is open"), "{name}: {sentence}");
            }
            Answer::Flag(flag) => assert_eq!(flag, 0, "{name}"),
            Answer::Text(text) => assert_eq!(text, None, "{name}"),
            Answer::Bytes(any) => assert!(!any, "{name}"),
        });
        assert_eq!(last().0, -1);
    });
}

/// The code in a buffer of 16 bytes, whose last one the library must not write.
fn code_in(buffer: [u8; 16]) -> String {
    assert_eq!((buffer[14], buffer[15]), (0, 0xAA), "{buffer:?}");
    String::from_utf8(buffer[..14].to_vec()).expect("ASCII")
}

fn generated() -> String {
    let mut buffer = [0xAA_u8; 16];
    // SAFETY: the buffer has 16 bytes.
    let written = unsafe { mmn_generate_room_code(buffer.as_mut_ptr().cast(), 16) };
    assert_eq!(written, MMN_ROOM_CODE_BYTES);
    code_in(buffer)
}

fn normalized(text: &str) -> Result<String, (i32, String)> {
    let text = [text.as_bytes(), &[0]].concat();
    let mut buffer = [0xAA_u8; 16];
    // SAFETY: the text has a NUL, and the buffer 16 bytes.
    let written =
        unsafe { mmn_normalize_room_code(text.as_ptr().cast(), buffer.as_mut_ptr().cast(), 16) };
    match written {
        MMN_ROOM_CODE_BYTES => Ok(code_in(buffer)),
        code => {
            assert_eq!(buffer, [0xAA; 16]);
            assert_eq!(last().0, code);
            Err(last())
        }
    }
}

#[test]
fn a_room_code_is_made_and_read_without_a_room() {
    on_fresh_thread(|| {
        let code = generated();
        assert_ne!(code, generated());
        let typed = format!(" {} ", code.to_lowercase().replace('-', " "));
        assert_eq!(normalized(&typed), Ok(code));
        assert_eq!(last(), (0, String::new()));
        for (text, sentence) in [
            (
                "K7QM-3XU9-TRWF",
                "text is not a room code: the letter U at position 8 is in no room code; perhaps it is a V",
            ),
            (
                "K7QM-3X/9-TRWF",
                "text is not a room code: the character '/' at position 8 is in no room code; codes have digits and the letters A to Z without I, L, O and U",
            ),
            (
                "K7QM-3XP9",
                "text is not a room code: it has 8 letters and digits; a room code has 12",
            ),
            (
                "K7MQ-3XP9-TRWF",
                "text is not a room code: its characters do not match each other (a typo?); compare it with the room's code",
            ),
        ] {
            assert_eq!(normalized(text), Err((-3, sentence.to_owned())));
        }
    });
}

#[test]
fn a_room_code_needs_a_buffer_of_15_bytes() {
    on_fresh_thread(|| {
        let mut buffer = [0xAA_u8; 15];
        let place = buffer.as_mut_ptr().cast::<c_char>();
        let code = c"K7QM-3XP9-TRWF".as_ptr();
        // SAFETY: the buffer is NULL or has as many bytes as the length, and the code has a NUL.
        let answers = unsafe {
            [
                (mmn_generate_room_code(null_mut(), 15), last()),
                (mmn_generate_room_code(place, 14), last()),
                (mmn_generate_room_code(place, -1), last()),
                (mmn_normalize_room_code(code, null_mut(), 15), last()),
                (mmn_normalize_room_code(code, place, 14), last()),
                (mmn_normalize_room_code(null(), place, 15), last()),
            ]
        };
        let sentences = [
            "buffer is NULL; give 15 writable bytes",
            "length is 14; a room code has 15 bytes with its NUL",
            "length is -1; a room code has 15 bytes with its NUL",
            "buffer is NULL; give 15 writable bytes",
            "length is 14; a room code has 15 bytes with its NUL",
            "text is NULL; give a NUL-terminated UTF-8 string",
        ];
        for ((answer, last), sentence) in answers.into_iter().zip(sentences) {
            assert_eq!((answer, last), (-3, (-3, sentence.to_owned())));
        }
        assert_eq!(buffer, [0xAA; 15]);
        // The buffer may be the text's.
        buffer.copy_from_slice(b"k7qm3xp9trwf \0\0");
        // SAFETY: the buffer has a NUL and 15 bytes.
        assert_eq!(unsafe { mmn_normalize_room_code(place, place, 15) }, 15);
        assert_eq!(&buffer, b"K7QM-3XP9-TRWF\0");
    });
}

#[test]
fn a_room_with_relays_has_a_code() {
    on_fresh_thread(|| {
        let mut options = MmnOptions {
            relays: c"relay.invalid".as_ptr(),
            ..MmnOptions::default()
        };
        let open = |session: &CStr, options: &MmnOptions| {
            let mut room = 7;
            // SAFETY: the strings have a NUL, and the struct is as long as its struct_size.
            let code = unsafe { mmn_open(c"a".as_ptr(), session.as_ptr(), options, &raw mut room) };
            assert_eq!(room, 7);
            (code, last().1)
        };
        assert_eq!(
            open(c"tea", &options),
            (
                -3,
                "session_id is not a room code, which relays need: it has 3 letters and digits; a room code has 12"
                    .to_owned()
            )
        );
        options.relays = c"\n relay.invalid key=x\n".as_ptr();
        let (code, sentence) = open(c" k7qm 3xp9 trwf ", &options);
        assert_eq!(code, -3);
        assert!(
            sentence.starts_with("relays, line 2: key \"x\" is not a fingerprint"),
            "{sentence}"
        );
        options.relays = null();
        let (code, sentence) = open(c" k7qm 3xp9 trwf ", &options);
        assert_eq!(code, -3);
        assert!(sentence.contains("session_id \" k7qm 3xp9 trwf \" is not allowed"));
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
        let mut number = 0;
        // SAFETY: every string is NULL or has a NUL, and `data` has a byte.
        unsafe {
            invalid(ConnectToPeer(null()), -3, "addr is NULL");
            invalid(ConnectToPeer(c"host".as_ptr()), -3, "\"host\" has no port");
            invalid(DisconnectPeer(not_utf8), -3, "peer_id is not UTF-8");
            invalid(DisconnectPeer(c"".as_ptr()), -3, "it is empty");
            invalid(GetPeerRTT(null()), -1, "peer_id is NULL");
            invalid(GetPeerStatus(long), -1, "at most 64");
            invalid(SetLeader(c" a".as_ptr()), -3, "blank");
            invalid(mmn_transfer_leadership(0, null()), -3, "peer_id is NULL");
            invalid(mmn_proclaim(0, null()), -3, "value is NULL");
            let request = &raw mut number;
            invalid(mmn_acquire_lock(0, null(), 0, request), -3, "name is NULL");
            invalid(
                mmn_acquire_lock(0, not_utf8, 0, request),
                -3,
                "name is not UTF-8",
            );
            invalid(
                mmn_acquire_lock(0, peer, 0, null_mut()),
                -3,
                "request is NULL",
            );
            invalid(mmn_try_lock(0, peer, null_mut()), -3, "request is NULL");
            invalid(mmn_release_lock(0, null()), -3, "name is NULL");
            invalid(mmn_transfer_leadership(0, c"".as_ptr()), -3, "it is empty");
            invalid(BroadcastMessage(null(), 1, 1, 0), -3, "data is NULL");
            invalid(SendToPeer(peer, data, -5, 1, 0), -3, "length -5");
            invalid(SendToPeer(null(), null(), 5, 1, 0), -3, "peer_id");
            invalid(SendToLeader(data, -1, 1, 0), -3, "length -1");
            invalid(SendFromLeader(null(), 9, 1, 0), -3, "length is 9");
            let forward = |from, to| ForwardMessage(from, to, data, 1, 1, 0);
            invalid(forward(null(), peer), -3, "from is NULL");
            invalid(forward(peer, c"".as_ptr()), -3, "to \"\" is not allowed");
            invalid(forward(peer, not_utf8), -3, "to is not UTF-8");
            let simulate = |lag, jitter, loss| mmn_simulate_network(0, lag, jitter, loss);
            invalid(simulate(10_001, 0, 0), -3, "lag_ms is 10001; at most 10000");
            invalid(
                simulate(0, u32::MAX, 0),
                -3,
                "jitter_ms is 4294967295; at most 10000",
            );
            invalid(
                simulate(10_000, 10_000, 1001),
                -3,
                "loss_permille is 1001; at most 1000",
            );
            invalid(mmn_simulate_preset(0, null()), -3, "preset is NULL");
            let mut room_stats = MmnRoomStats {
                struct_size: 15,
                ..MmnRoomStats::default()
            };
            invalid(mmn_room_stats(0, null_mut()), -3, "stats is NULL");
            invalid(
                mmn_room_stats(0, &raw mut room_stats),
                -3,
                "stats.struct_size is 15; set it to sizeof(MmnRoomStats), which is 16 or more",
            );
            let mut stats = MmnPeerStats {
                struct_size: 7,
                ..MmnPeerStats::default()
            };
            let too_short = &raw mut stats;
            invalid(mmn_peer_stats(0, null(), too_short), -3, "peer_id is NULL");
            invalid(mmn_peer_stats(0, peer, null_mut()), -3, "stats is NULL");
            invalid(
                mmn_peer_stats(0, peer, too_short),
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
        // SAFETY: every pointer is NULL or points to a valid value.
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

/// All tests of the gossip strategy's windows, in one function: they belong to the process.
#[test]
fn the_windows_of_gossip_need_no_room() {
    type Window = (
        &'static str,
        extern "C" fn(u32) -> i32,
        extern "C" fn() -> u32,
    );
    let windows: [Window; 4] = [
        (
            "SetStartupGracePeriod",
            SetStartupGracePeriod,
            GetStartupGracePeriod,
        ),
        (
            "SetMembershipSampleInterval",
            SetMembershipSampleInterval,
            GetMembershipSampleInterval,
        ),
        (
            "SetLeaderAliveThreshold",
            SetLeaderAliveThreshold,
            GetLeaderAliveThreshold,
        ),
        (
            "SetLeaderElectionDuration",
            SetLeaderElectionDuration,
            GetLeaderElectionDuration,
        ),
    ];
    let all = move || windows.map(|(_, _, get)| get());
    on_fresh_thread(move || {
        assert_eq!(all(), [15_000, 1_000, 10_000, 5_000]);
        assert_eq!(GetMsgExpirationTimeout(), 100_000);
        assert_eq!(GetLeadershipDeclarationInterval(), 5_000);
        for (name, set, _) in windows {
            assert_eq!(set(0), -3, "{name}");
            assert_eq!(
                last(),
                (
                    -3,
                    format!("milliseconds is 0; {name} takes 1 to 4294967295")
                )
            );
        }
        assert_eq!(all(), [15_000, 1_000, 10_000, 5_000]);
        for (place, (name, set, _)) in windows.into_iter().enumerate() {
            let mut expected = all();
            for milliseconds in [1, u32::MAX, 500 + place as u32] {
                assert_eq!(set(milliseconds), 0, "{name}");
                expected[place] = milliseconds;
                assert_eq!(all(), expected, "{name}");
            }
        }
        assert_eq!(all(), [500, 501, 502, 503]);
        assert_eq!(GetMsgExpirationTimeout(), 5_020);
        assert_eq!(GetLeadershipDeclarationInterval(), 251);
        assert_eq!(SetLeaderAliveThreshold(u32::MAX), 0);
        assert_eq!(GetMsgExpirationTimeout(), u32::MAX);
        assert_eq!(GetLeadershipDeclarationInterval(), u32::MAX / 2);
        assert_eq!(SetLeaderAliveThreshold(1), 0);
        assert_eq!(GetMsgExpirationTimeout(), 10);
        assert_eq!(GetLeadershipDeclarationInterval(), 0);
    });
}

/// The default options for a program of this version.
fn default_options() -> MmnOptions {
    let mut options = MmnOptions {
        priority: 7,
        bind_port: 7,
        ..MmnOptions::default()
    };
    // SAFETY: the struct has the size in its struct_size.
    assert_eq!(unsafe { mmn_default_options(&raw mut options) }, 0);
    options
}

/// All fields. Pointers to functions cannot be compared.
fn shown(options: &MmnOptions) -> String {
    format!("{options:?}")
}

/// Bytes of the struct in version 100.
const VERSION_100: usize = offset_of!(MmnOptions, carry_bytes_per_second);

/// Result of mmn_open for options that no room can have.
fn open_with(options: *const MmnOptions) -> (i32, String) {
    let mut room = 7;
    // SAFETY: both strings have a NUL; the options are as long as their struct_size, and the number can be written.
    let code = unsafe {
        mmn_open(
            c"peer".as_ptr(),
            c"session".as_ptr(),
            options,
            &raw mut room,
        )
    };
    assert_eq!(room, 7, "no room was opened");
    (code, last().1)
}

#[test]
fn the_default_options_are_filled_in_and_keep_the_size_of_their_program() {
    let options = default_options();
    assert_eq!(shown(&options), shown(&MmnOptions::default()));
    assert_eq!(options.struct_size as usize, size_of::<MmnOptions>());
    assert_eq!(options.send_queue_capacity, 4096);
    assert_eq!(options.incoming_queue_capacity, 4096);
    assert_eq!(options.member_hold_ms, 60_000);
    assert_eq!(options.queue_bytes, 4 * 1024 * 1024);
    assert_eq!(options.discovery_mode, 0);
    assert_eq!(options.eligible, 1);
    assert_eq!(options.carry_bytes_per_second, 128 * 1024);
}

#[test]
fn the_intervals_of_the_seeded_strategy_come_in_two_profiles() {
    on_fresh_thread(|| {
        let mut options = MmnSeededOptions {
            is_seed: 7,
            ..MmnSeededOptions::default()
        };
        let pointer = &raw mut options;
        let fill = |profile| {
            // SAFETY: the struct has the size in its struct_size.
            let code = unsafe { mmn_default_seeded_options(profile, pointer) };
            // SAFETY: it lives.
            (code, unsafe { *pointer })
        };
        let (code, filled) = fill(MMN_SEEDED_PROFILE_WAN);
        assert_eq!((code, filled), (0, MmnSeededOptions::default()));
        let intervals = |filled: MmnSeededOptions| {
            [
                filled.probe_interval_ms,
                filled.heartbeat_interval_ms,
                filled.heartbeat_timeout_ms,
                filled.ttl_timeout_ms,
                filled.retry_interval_ms,
            ]
        };
        assert_eq!(intervals(filled), [500, 10_000, 30_000, 90_000, 5_000]);
        let (code, filled) = fill(MMN_SEEDED_PROFILE_LAN);
        assert_eq!((code, filled.is_seed, filled.seeds), (0, 0, null()));
        assert_eq!(intervals(filled), [50, 200, 600, 1_500, 250]);
        let (code, unchanged) = fill(2);
        assert_eq!((code, unchanged), (-3, filled));
        assert_eq!(last().1, "profile is 2; allowed are 0 (WAN) and 1 (LAN)");
        options.struct_size = 39;
        // SAFETY: as above, and NULL is allowed.
        unsafe {
            assert_eq!(mmn_default_seeded_options(0, &raw mut options), -3);
            assert!(last().1.starts_with("struct_size is 39;"), "{}", last().1);
            assert_eq!(mmn_default_seeded_options(0, null_mut()), -3);
        }
        assert!(last().1.starts_with("options is NULL;"), "{}", last().1);
    });
}

#[test]
fn a_longer_struct_of_a_newer_program_is_filled_and_read_as_far_as_it_is_known() {
    const KNOWN: usize = size_of::<MmnOptions>();
    #[repr(C)]
    struct Newer {
        options: MmnOptions,
        tail: [u8; 40],
    }
    on_fresh_thread(|| {
        let mut newer = Newer {
            options: MmnOptions {
                struct_size: (KNOWN + 40) as u32,
                ..MmnOptions::default()
            },
            tail: [0xAA; 40],
        };
        newer.options.priority = 9;
        // SAFETY: the struct has the size in its struct_size.
        let code = unsafe { mmn_default_options((&raw mut newer).cast()) };
        assert_eq!(code, 0);
        assert_eq!(newer.options.struct_size as usize, KNOWN + 40);
        assert_eq!(newer.options.priority, 0);
        assert_eq!(newer.tail, [0xAA; 40]);

        // It is read up to its last known field, and the error names the first broken rule.
        newer.options.host_mode = 3;
        let (code, sentence) = open_with((&raw const newer).cast());
        assert_eq!(code, -3);
        assert!(sentence.starts_with("host_mode is 3;"), "{sentence}");
    });
}

#[test]
fn a_shorter_struct_of_a_program_of_version_100_is_filled_and_read_up_to_its_end() {
    on_fresh_thread(|| {
        let mut older = MmnOptions {
            struct_size: VERSION_100 as u32,
            carry_bytes_per_second: 7,
            paths: 9,
            ..MmnOptions::default()
        };
        // SAFETY: the struct is longer than its struct_size.
        assert_eq!(unsafe { mmn_default_options(&raw mut older) }, 0);
        assert_eq!(older.struct_size as usize, VERSION_100);
        assert_eq!((older.carry_bytes_per_second, older.paths), (7, 9));
        // The fields behind its end would break a rule.
        older.host_mode = 3;
        let (code, sentence) = open_with(&raw const older);
        assert_eq!(code, -3);
        assert!(sentence.starts_with("host_mode is 3;"), "{sentence}");
        older.struct_size = size_of::<MmnOptions>() as u32;
        let (_, sentence) = open_with(&raw const older);
        let first = "carry_bytes_per_second is 7;";
        assert!(sentence.starts_with(first), "{sentence}");
        older.carry_bytes_per_second = 0;
        older.host_mode = 0;
        let (_, sentence) = open_with(&raw const older);
        assert!(sentence.starts_with("paths is 9;"), "{sentence}");
    });
}

#[test]
fn a_size_that_is_none_is_named() {
    on_fresh_thread(|| {
        for size in [
            0,
            1,
            44,
            // One less than the first version.
            VERSION_100 as u32 - 1,
            65_537,
            u32::MAX,
        ] {
            let mut options = MmnOptions {
                struct_size: size,
                priority: 9,
                ..MmnOptions::default()
            };
            let (code, sentence) = open_with(&raw const options);
            assert_eq!(code, -3, "{size}");
            assert!(
                sentence.starts_with(&format!("struct_size is {size}; set it to sizeof")),
                "{sentence}"
            );
            // SAFETY: the struct has its first four bytes, and the library touches no more if their size is invalid.
            assert_eq!(unsafe { mmn_default_options(&raw mut options) }, -3);
            assert_eq!(options.priority, 9);
        }
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { mmn_default_options(null_mut()) }, -3);
        assert!(last().1.starts_with("options is NULL;"));
    });
}

#[test]
fn options_may_lie_anywhere_in_memory() {
    on_fresh_thread(|| {
        let mut memory = [0_u8; size_of::<MmnOptions>() + 1];
        let odd = memory[1..].as_mut_ptr().cast::<MmnOptions>();
        // SAFETY: there is space for the struct, which the library reads and writes as bytes.
        unsafe {
            odd.cast::<u32>()
                .write_unaligned(size_of::<MmnOptions>() as u32);
            assert_eq!(mmn_default_options(odd), 0);
            assert_eq!(shown(&odd.read_unaligned()), shown(&MmnOptions::default()));
            (&raw mut (*odd).merge_policy).write(2);
        }
        let (code, sentence) = open_with(odd);
        assert_eq!(code, -3);
        assert!(sentence.starts_with("merge_policy is 2;"), "{sentence}");
    });
}

#[test]
fn r75_every_option_names_itself_when_it_is_wrong() {
    on_fresh_thread(|| {
        let refused = |code: i32, named: &str, change: &dyn Fn(&mut MmnOptions)| {
            let mut options = default_options();
            change(&mut options);
            let (answer, sentence) = open_with(&raw const options);
            assert_eq!(answer, code, "{sentence}");
            assert_eq!(last().0, code);
            assert!(sentence.contains(named), "{named} is not in {sentence}");
        };
        refused(-3, "heartbeat_interval_ms is 0", &|o| {
            o.heartbeat_interval_ms = 0
        });
        refused(-3, "reconnect_initial_ms 1000 is above", &|o| {
            o.reconnect_max_ms = 1
        });
        for text in [
            c"",
            c"localhost",
            c"127.0.0.1:80",
            c"[::1]",
            c"300.1.1.1",
            c"fe80::1%lo",
        ] {
            let quoted = format!("bind_address {text:?} is not an IPv4 or IPv6");
            refused(-3, &quoted, &|o| o.bind_address = text.as_ptr());
        }
        refused(-3, "bind_address is not UTF-8", &|o| {
            o.bind_address = c"\xff".as_ptr();
        });
        refused(-3, "secret is NULL while secret_length is 3", &|o| {
            o.secret_length = 3
        });
        let bytes = [7_u8; 1025];
        refused(-3, "secret_length is 1025; at most 1024", &|o| {
            (o.secret, o.secret_length) = (bytes.as_ptr(), 1025);
        });
        refused(
            -3,
            "identity_key is NULL while identity_key_length is 85",
            &|o| {
                o.identity_key_length = 85;
            },
        );
        refused(
            -3,
            "identity_key_length is 4294967295; at most 1024",
            &|o| {
                (o.identity_key, o.identity_key_length) = (bytes.as_ptr(), u32::MAX);
            },
        );
        refused(-3, "identity_key (85 bytes) cannot be used", &|o| {
            (o.identity_key, o.identity_key_length) = (bytes.as_ptr(), 85);
        });
        refused(-3, "member_hold_ms is 0", &|o| o.member_hold_ms = 0);
        refused(-3, "queue_bytes is 0", &|o| o.queue_bytes = 0);
        refused(-3, "carry_bytes_per_second is 1499; give 1500", &|o| {
            o.carry_bytes_per_second = 1499;
        });
        refused(-16, "strategy is 4; there are 0 (raft)", &|o| {
            o.strategy = 4
        });
        let mut etcd = MmnEtcdOptions {
            endpoints: c"http://127.0.0.1:9".as_ptr(),
            prefix: c"lobby/".as_ptr(),
            ..MmnEtcdOptions::default()
        };
        let pointer = &raw const etcd;
        refused(-3, "etcd is set, but strategy", &|o| o.etcd = pointer);
        let in_etcd = |o: &mut MmnOptions, etcd: *const MmnEtcdOptions| {
            (o.strategy, o.etcd) = (MMN_STRATEGY_ETCD, etcd);
        };
        match cfg!(feature = "etcd") {
            true => {
                refused(-3, "etcd.prefix \"lobby/\"", &|o| in_etcd(o, pointer));
                refused(-3, "etcd is NULL, but strategy 3", &|o| in_etcd(o, null()));
            }
            false => refused(-16, "`make server` builds", &|o| in_etcd(o, pointer)),
        }
        etcd.endpoints = null();
        let pointer = &raw const etcd;
        refused(-3, "etcd.endpoints is NULL", &|o| in_etcd(o, pointer));
        refused(-3, "seeded is NULL, but strategy 2", &|o| o.strategy = 2);
        let mut seeded = MmnSeededOptions::default();
        let pointer = &raw const seeded;
        refused(-3, "seeded.seeds is NULL", &|o| o.seeded = pointer);
        seeded.seeds = c"one.example.org:4433\n[::1]".as_ptr();
        let in_cluster = |o: &mut MmnOptions, seeded: *const MmnSeededOptions| {
            (o.strategy, o.seeded) = (MMN_STRATEGY_SEEDED, seeded);
            (o.quorum_roster, o.state_directory) = (c"peer".as_ptr(), c"/tmp".as_ptr());
        };
        let pointer = &raw const seeded;
        refused(-3, "seeded is set, but strategy", &|o| o.seeded = pointer);
        refused(
            -3,
            "seeded.seeds: the address \"[::1]\" has no port",
            &|o| in_cluster(o, pointer),
        );
        refused(-3, "quorum_roster is NULL, but strategy 2", &|o| {
            in_cluster(o, pointer);
            o.quorum_roster = null();
        });
        seeded.seeds = c"one.example.org:4433\n[::1]:9".as_ptr();
        let pointer = &raw const seeded;
        refused(-3, "state_directory is NULL, but strategy 2", &|o| {
            in_cluster(o, pointer);
            o.state_directory = null();
        });
        refused(-3, "strategy_flags is 1, but strategy 0", &|o| {
            o.strategy_flags = MMN_GOSSIP_STRICT_LOWEST;
        });
        refused(-3, "strategy_flags is 3; allowed", &|o| {
            (o.strategy, o.strategy_flags) = (MMN_STRATEGY_GOSSIP, 3);
        });
        refused(-3, "priority is 1, but strategy 1", &|o| {
            (o.strategy, o.priority) = (MMN_STRATEGY_GOSSIP, 1);
        });
        refused(-3, "quorum_policy is 1 (static), but strategy 1", &|o| {
            (o.strategy, o.quorum_policy) = (MMN_STRATEGY_GOSSIP, MMN_QUORUM_STATIC);
            o.quorum_roster = c"a".as_ptr();
        });
        refused(-3, "discovery_mode is 3; allowed", &|o| {
            o.discovery_mode = 3
        });
        refused(-3, "mdns_port is 0", &|o| {
            (o.discovery_mode, o.mdns_port) = (1, 0);
        });
        refused(-3, "dispatch_mode is 9; allowed", &|o| o.dispatch_mode = 9);
        refused(-3, "merge_policy is 2; allowed", &|o| o.merge_policy = 2);
        refused(-3, "set_leader_authority is 2; allowed", &|o| {
            o.set_leader_authority = 2
        });
        refused(-3, "host_mode is 200; allowed", &|o| o.host_mode = 200);
        refused(-3, "quorum_policy is 4294967295; allowed", &|o| {
            o.quorum_policy = u32::MAX
        });
        refused(-3, "quorum_voters is 3, but", &|o| o.quorum_voters = 3);
        refused(-3, "quorum_roster is NULL, but", &|o| o.quorum_policy = 1);
        refused(-3, "quorum_roster is set, but", &|o| {
            o.quorum_roster = c"a".as_ptr();
        });
        for (roster, states) in [
            (c"", "quorum_roster cannot be used: it names no voter"),
            (c"a\nb\na", "it names \"a\" twice"),
            (
                c" b\n\n\x07",
                "line 3 is not a peer id: it contains the control character U+0007; remove it (the line is \"\\u{7}\")",
            ),
            (c"\xff", "quorum_roster is not UTF-8 from byte 0 on"),
            (
                c"a\nb\nc\nd",
                "quorum_voters is 3, but quorum_roster names 4 voters;",
            ),
        ] {
            refused(-3, states, &|o| {
                (o.quorum_policy, o.quorum_voters) = (MMN_QUORUM_STATIC, 3);
                o.quorum_roster = roster.as_ptr();
            });
        }
        let in_directory = |path: &CStr, o: &mut MmnOptions| {
            (o.quorum_policy, o.quorum_roster) = (MMN_QUORUM_STATIC, c"a\nb".as_ptr());
            o.state_directory = path.as_ptr();
        };
        refused(-3, "state_directory is NULL, but", &|o| {
            (o.quorum_policy, o.quorum_roster) = (MMN_QUORUM_STATIC, c"a\nb".as_ptr());
        });
        refused(-3, "state_directory is set, but", &|o| {
            o.state_directory = c"/tmp".as_ptr()
        });
        refused(-3, "state_directory is empty", &|o| in_directory(c"", o));
        refused(-3, "state_directory is not UTF-8", &|o| {
            in_directory(c"\xff", o)
        });
        refused(-3, "trace_path is empty", &|o| o.trace_path = c"".as_ptr());
        refused(-3, "state_directory \"/no/such\" cannot be used", &|o| {
            in_directory(c"/no/such", o)
        });
    });
}
