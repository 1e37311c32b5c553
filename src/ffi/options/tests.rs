//! Options as hosts pass them.

mod etcd;

use std::net::IpAddr;
use std::time::Duration;

use super::settings::Seeded;
use super::*;
use crate::config::{
    Config, ConfigError, DiscoveryMode, DispatchMode, Paths, Relay, Secret, StateOptions,
    TurnServer,
};
use crate::core::election::seeded::{Intervals, SeededRules, Seeding};
use crate::core::quorum::Quorum;
use crate::core::wire::{Authority, HostMode, MergePolicy, Strategy};
use crate::error::{Code, Coded};

fn nothing() -> Pointed {
    Pointed {
        bind_address: None,
        secret: None,
        identity_key: None,
        state_directory: None,
        trace_path: None,
        quorum_roster: None,
        seeded: None,
        etcd: None,
        relays: None,
        turn: None,
        state: None,
    }
}

/// The error of a room with these TURN servers.
fn turn_broken(turn: &str, options: &MmnOptions) -> ConfigError {
    let pointed = Pointed {
        turn: Some(turn.to_owned().into()),
        ..nothing()
    };
    config(options, pointed).expect_err("a broken rule")
}

/// The error of a room with these relays.
fn relays_broken(relays: &str, change: impl FnOnce(&mut MmnOptions, &mut Pointed)) -> ConfigError {
    let mut options = MmnOptions::default();
    let mut pointed = Pointed {
        relays: Some(relays.into()),
        ..nothing()
    };
    change(&mut options, &mut pointed);
    config(&options, pointed).expect_err("a broken rule")
}

fn roster(text: &str) -> Pointed {
    Pointed {
        quorum_roster: Some(text.to_owned()),
        ..nothing()
    }
}

/// As [`broken`], in a room with a static quorum of these voters.
fn static_broken(text: &str, change: impl FnOnce(&mut MmnOptions)) -> ConfigError {
    let mut options = MmnOptions {
        quorum_policy: MMN_QUORUM_STATIC,
        ..MmnOptions::default()
    };
    change(&mut options);
    config(&options, roster(text)).expect_err("a broken rule")
}

fn broken(change: impl FnOnce(&mut MmnOptions)) -> ConfigError {
    let mut options = MmnOptions::default();
    change(&mut options);
    config(&options, nothing()).expect_err("a broken rule")
}

/// As [`broken`], in a room with the gossip strategy.
fn gossip_broken(change: impl FnOnce(&mut MmnOptions)) -> ConfigError {
    broken(|options| {
        options.strategy = MMN_STRATEGY_GOSSIP;
        change(options);
    })
}

/// Targets of the pointers of a room with the seeded strategy, in which this node is "a".
fn seeded_pointed() -> Pointed {
    Pointed {
        state_directory: Some("state".into()),
        seeded: Some(Seeded {
            options: MmnSeededOptions {
                is_seed: 1,
                ..MmnSeededOptions::default()
            },
            seeds: "  one.example.org:4433 \n\n[::1]:4433\r\n127.0.0.1:1".into(),
        }),
        ..roster("a\nb\nc")
    }
}

fn seeded_options() -> MmnOptions {
    MmnOptions {
        strategy: MMN_STRATEGY_SEEDED,
        ..MmnOptions::default()
    }
}

/// The error of a room with the seeded strategy after one invalid change.
fn seeded_broken(change: impl FnOnce(&mut MmnOptions, &mut Pointed)) -> ConfigError {
    let (mut options, mut pointed) = (seeded_options(), seeded_pointed());
    change(&mut options, &mut pointed);
    config(&options, pointed).expect_err("a broken rule")
}

/// The error after one invalid change of its `MmnSeededOptions`.
fn seeded_field_broken(change: impl FnOnce(&mut Seeded)) -> ConfigError {
    seeded_broken(|_, pointed| change(pointed.seeded.as_mut().expect("set")))
}

#[test]
fn the_struct_has_no_hidden_padding() {
    let pointer = size_of::<usize>();
    let numbers = size_of::<MmnOptions>() - 14 * pointer;
    assert_eq!(numbers, 50 * size_of::<u32>());
    assert_eq!(std::mem::offset_of!(MmnOptions, on_event), 8);
    let turn = size_of::<MmnOptions>() - pointer;
    let last = turn - 8;
    assert_eq!(std::mem::offset_of!(MmnOptions, port_mapping), last);
    let relays = last - 2 * pointer;
    assert_eq!(
        MmnOptions::EARLIER,
        [turn, last, last - pointer, relays - 8]
    );
    assert_eq!(size_of::<MmnStateOptions>(), 16);
}

#[test]
fn the_struct_of_the_seeded_strategy_has_none_either() {
    macro_rules! at {
        ($($field:ident: $offset:expr),* $(,)?) => {
            $(assert_eq!(
                std::mem::offset_of!(MmnSeededOptions, $field),
                $offset,
                stringify!($field)
            );)*
        };
    }
    let rest = 8 + size_of::<usize>();
    assert_eq!(size_of::<MmnSeededOptions>(), rest + 24);
    at!(
        struct_size: 0,
        is_seed: 4,
        seeds: 8,
        probe_interval_ms: rest,
        heartbeat_interval_ms: rest + 4,
        heartbeat_timeout_ms: rest + 8,
        ttl_timeout_ms: rest + 12,
        retry_interval_ms: rest + 16,
        reserved: rest + 20,
    );
}

#[test]
fn defaults_equal_a_room_without_options_except_discovery() {
    let expected = Config {
        discovery: DiscoveryMode::Off,
        ..Config::default()
    };
    assert_eq!(config(&MmnOptions::default(), nothing()), Ok(expected));
}

#[test]
fn the_error_names_the_first_broken_rule_the_value_and_the_allowed_ones() {
    let sentences = [
        (
            broken(|options| options.max_connections = 0),
            "max_connections is 0; it must be at least 1",
        ),
        (
            broken(|options| options.member_hold_ms = 0),
            "member_hold_ms is 0; it must be at least 1",
        ),
        (
            broken(|options| {
                *options = MmnOptions {
                    max_connections: 0,
                    heartbeat_interval_ms: 0,
                    ..MmnOptions::default()
                };
            }),
            "the options are zero; fill them with the defaults first, then change what you need",
        ),
        (
            broken(|options| options.queue_bytes = 0),
            "queue_bytes is 0; it must be at least 1",
        ),
        (
            broken(|options| options.carry_bytes_per_second = 1499),
            "carry_bytes_per_second is 1499; give 1500 or more, or 0 to carry for no other members",
        ),
        (
            turn_broken("turn:a username=u", &MmnOptions::default()),
            "turn, line 1: it has no password=; give username= and password= behind the address",
        ),
        (
            broken(|options| options.port_mapping = 2),
            "port_mapping is 2; allowed are 0 (off) and 1 (on)",
        ),
        (
            broken(|options| options.reserved = 1),
            "reserved is 1; allowed are 0",
        ),
        (
            broken(|options| options.paths = 2),
            "paths is 2; allowed are 0 (all) and 1 (relayed)",
        ),
        (
            broken(|options| options.paths = MMN_PATHS_RELAYED),
            "paths is 1 (relayed), but relays is NULL, and without a relay such a member reaches no other; give relays, or paths 0 (all)",
        ),
        (
            relays_broken("relay.example", |options, _| {
                options.paths = MMN_PATHS_RELAYED;
                options.discovery_mode = MMN_DISCOVERY_REPORT;
            }),
            "paths is 1 (relayed), which hides this member's addresses, but discovery_mode is on and announces them in the local network; give discovery_mode 0, or paths 0 (all)",
        ),
        (
            config(
                &MmnOptions {
                    paths: MMN_PATHS_RELAYED,
                    port_mapping: MMN_PORT_MAPPING_ON,
                    ..MmnOptions::default()
                },
                Pointed {
                    relays: Some("a".into()),
                    ..nothing()
                },
            )
            .expect_err("a broken rule"),
            "paths is 1 (relayed), which hides this member's addresses, but port_mapping is 1 (on) and tells the others one; give port_mapping 0 (off), or paths 0 (all)",
        ),
        (
            relays_broken("relay.example", |options, pointed| {
                *options = MmnOptions {
                    paths: MMN_PATHS_RELAYED,
                    ..seeded_options()
                };
                let relays = pointed.relays.take();
                *pointed = Pointed {
                    relays,
                    ..seeded_pointed()
                };
            }),
            "paths is 1 (relayed), but members of strategy 2 (seeded) dial the addresses of the seeds; give paths 0 (all), or another strategy",
        ),
        (
            relays_broken(" \n", |_, _| {}),
            "relays names 0 relays; give 1 to 2, one per line, or NULL for none",
        ),
        (
            relays_broken("a\nb token=", |_, _| {}),
            "relays, line 2: the token cannot be used: it has 0 characters; a token has 26",
        ),
        (
            broken(|options| options.discovery_mode = 3),
            "discovery_mode is 3; allowed are 0 (off), 1 (report) and 2 (connect)",
        ),
        (
            broken(|options| options.dispatch_mode = 2),
            "dispatch_mode is 2; allowed are 0 (thread) and 1 (poll)",
        ),
        (
            broken(|options| options.merge_policy = 255),
            "merge_policy is 255; allowed are 0 (largest side) and 1 (highest term)",
        ),
        (
            broken(|options| options.set_leader_authority = 2),
            "set_leader_authority is 2; allowed are 0 (anyone) and 1 (leader only)",
        ),
        (
            broken(|options| {
                options.host_mode = MMN_HOST_MODE_HOST;
                options.eligible = 0;
            }),
            "eligible is 0, but host_mode 1 (host) makes this member the only one that leads; give eligible 1, or another host_mode",
        ),
        (
            broken(|options| options.bind_port = 80_000),
            "bind_port is 80000; allowed are 0 to 65535",
        ),
        (
            broken(|options| options.max_connections = u32::MAX),
            "max_connections is 4294967295; allowed are 0 to 65535",
        ),
        (
            broken(|options| options.handshake_timeout_ms = 86_400_001),
            "handshake_timeout_ms is 86400001; allowed are 1 to 86400000, which is a day",
        ),
        (
            broken(|options| options.alive_threshold_ms = 0),
            "alive_threshold_ms is 0; it must be at least 1",
        ),
        (
            broken(|options| options.host_mode = 3),
            "host_mode is 3; allowed are 0 (off), 1 (host) and 2 (guest)",
        ),
        (
            broken(|options| options.quorum_policy = 2),
            "quorum_policy is 2; allowed are 0 (dynamic) and 1 (static)",
        ),
        (
            broken(|options| options.quorum_voters = 3),
            "quorum_voters is 3, but quorum_policy 0 (dynamic) counts the connected members; give 0, or quorum_policy 1",
        ),
        (
            config(&MmnOptions::default(), roster("a")).expect_err("a list without voters"),
            "quorum_roster is set, but quorum_policy 0 (dynamic) counts the connected members; give NULL, or quorum_policy 1",
        ),
        (
            broken(|options| options.quorum_policy = MMN_QUORUM_STATIC),
            "quorum_roster is NULL, but quorum_policy 1 (static) needs it; give the ids of all voters of the room, one per line, 1 to 64",
        ),
        (
            static_broken("a\nb\nc", |options| options.quorum_voters = 2),
            "quorum_voters is 2, but quorum_roster names 3 voters; give 3, or 0 to count the roster",
        ),
        (
            static_broken("\n", |_| {}),
            "quorum_roster cannot be used: it names no voter; give 1 to 64, one per line",
        ),
        (
            static_broken("a\nb\na", |_| {}),
            "quorum_roster cannot be used: it names \"a\" twice",
        ),
        (
            static_broken("a\n\nb\u{7}", |_| {}),
            "quorum_roster cannot be used: line 3 is not a peer id: it contains the control character U+0007; remove it (the line is \"b\\u{7}\")",
        ),
        (
            static_broken("a\nb\nc", |options| options.quorum_voters = 3),
            "state_directory is NULL, but quorum_policy 1 (static) needs one; give an existing directory, where this member's votes survive a restart",
        ),
        (
            static_broken("a", |options| options.host_mode = MMN_HOST_MODE_GUEST),
            "quorum_policy is 1 (static), but host_mode is 2, and a room with a fixed host holds no elections; give host_mode 0, or quorum_policy 0",
        ),
        (
            broken(|options| options.strategy_flags = MMN_GOSSIP_STRICT_LOWEST),
            "strategy_flags is 1, but strategy 0 (raft) has no flags; give 0, or another strategy",
        ),
        (
            gossip_broken(|options| options.strategy_flags = 2),
            "strategy_flags is 2; allowed are 0 and 1 (strict lowest)",
        ),
        (
            gossip_broken(|options| options.strategy_flags = u32::MAX),
            "strategy_flags is 4294967295; allowed are 0 and 1 (strict lowest)",
        ),
        (
            gossip_broken(|options| options.priority = -5),
            "priority is -5, but strategy 1 (gossip) has no priorities; give 0, or strategy 0",
        ),
        (
            static_broken("a", |options| options.strategy = MMN_STRATEGY_GOSSIP),
            "quorum_policy is 1 (static), but strategy 1 (gossip) counts no votes; give quorum_policy 0, or strategy 0",
        ),
    ];
    for (error, sentence) in sentences {
        assert_eq!(error.to_string(), sentence);
        assert_eq!(error.code(), Code::InvalidArgument, "{sentence}");
    }
    let error = broken(|options| options.strategy = 4);
    assert_eq!(error.code(), Code::NotSupported);
    assert_eq!(
        error.to_string(),
        "strategy is 4; there are 0 (raft), 1 (gossip), 2 (seeded) and 3 (etcd)"
    );
}

#[test]
fn refuses_entry_and_yielding_without_meaning() {
    for entry in [MMN_ENTRY_CREATE, MMN_ENTRY_JOIN] {
        let with = |rule: &str| {
            format!(
                "entry is {entry}, but with {rule} that decides who leads first; give entry 0 (any)"
            )
        };
        let hosted = broken(|options| {
            (options.entry, options.host_mode) = (entry, MMN_HOST_MODE_GUEST);
        });
        assert_eq!(hosted.to_string(), with("a fixed host (host_mode)"));
        let seeded = seeded_broken(|options, _| options.entry = entry);
        assert_eq!(seeded.to_string(), with("strategy 2 (seeded)"));
        let options = MmnOptions {
            quorum_policy: MMN_QUORUM_STATIC,
            entry,
            ..MmnOptions::default()
        };
        let pointed = Pointed {
            state_directory: Some("here".into()),
            ..roster("a\nb\nc")
        };
        let error = config(&options, pointed).expect_err("a static quorum");
        assert_eq!(error.to_string(), with("quorum_policy 1 (static)"));
        for strategy in [MMN_STRATEGY_RAFT, MMN_STRATEGY_GOSSIP] {
            let options = MmnOptions {
                strategy,
                entry,
                ..MmnOptions::default()
            };
            assert!(config(&options, nothing()).is_ok());
        }
    }
    let observer = broken(|options| (options.entry, options.eligible) = (MMN_ENTRY_CREATE, 0));
    assert_eq!(
        observer.to_string(),
        "entry is 1 (create), but eligible is 0, and the member that creates a room leads it; give eligible 1, or another entry"
    );
    let unknown = broken(|options| options.entry = 3);
    assert_eq!(
        unknown.to_string(),
        "entry is 3; allowed are 0 (any), 1 (create) and 2 (join)"
    );
    let short = broken(|options| options.yield_after_ms = 999);
    assert_eq!(
        short.to_string(),
        "yield_after_ms is 999; give 1000 or more, or 0 to lead on"
    );
    for error in [observer, unknown, short] {
        assert_eq!(error.code(), Code::InvalidArgument);
    }
    let options = MmnOptions {
        yield_after_ms: 1000,
        ..MmnOptions::default()
    };
    let config = config(&options, nothing()).expect("right");
    assert_eq!(config.yield_after, Some(Duration::from_secs(1)));
}

#[test]
fn t1_each_wrong_field_of_the_seeded_strategy_has_its_sentence() {
    let many = |count: usize| "h:1\n".repeat(count);
    let sentences = [
        (
            seeded_broken(|_, pointed| pointed.seeded = None),
            "seeded is NULL, but strategy 2 (seeded) needs it; give its settings, with the addresses of the seeds",
        ),
        (
            seeded_broken(|options, _| options.strategy = MMN_STRATEGY_RAFT),
            "seeded is set, but strategy is not 2 (seeded); give NULL, or strategy 2",
        ),
        (
            seeded_broken(|options, pointed| {
                options.strategy = MMN_STRATEGY_GOSSIP;
                let seeded = pointed.seeded.as_mut().expect("set");
                (seeded.options.is_seed, seeded.seeds) = (0, String::new());
            }),
            "seeded is set, but strategy is not 2 (seeded); give NULL, or strategy 2",
        ),
        (
            seeded_broken(|options, _| options.strategy_flags = 4),
            "strategy_flags is 4; allowed are 0, 1 (strict start), 2 (never alone) and 3 (both)",
        ),
        (
            seeded_field_broken(|seeded| seeded.options.reserved = 9),
            "seeded.reserved is 9; allowed are 0 alone",
        ),
        (
            seeded_field_broken(|seeded| seeded.seeds = " \n\n".into()),
            "seeded.seeds names 0 addresses; give 1 to 32, one per line",
        ),
        (
            seeded_field_broken(|seeded| seeded.seeds = many(33)),
            "seeded.seeds names 33 addresses; give 1 to 32, one per line",
        ),
        (
            seeded_field_broken(|seeded| seeded.seeds = "h:1\nhost".into()),
            "seeded.seeds: the address \"host\" has no port; give ip:port, [v6]:port or name:port",
        ),
        (
            seeded_field_broken(|seeded| seeded.seeds = "h:0".into()),
            "seeded.seeds: the address \"h:0\" has the port \"0\", which is not a number from 1 to 65535; give ip:port, [v6]:port or name:port",
        ),
        (
            seeded_field_broken(|seeded| seeded.seeds = "fe80::1".into()),
            "seeded.seeds: the address \"fe80::1\" has a host with ':'; an IPv6 address must be in brackets; give ip:port, [v6]:port or name:port",
        ),
        (
            seeded_field_broken(|seeded| seeded.options.probe_interval_ms = 0),
            "seeded.probe_interval_ms is 0; it must be at least 1",
        ),
        (
            seeded_field_broken(|seeded| seeded.options.heartbeat_interval_ms = 499),
            "seeded.heartbeat_interval_ms is 499; it must be at least probe_interval_ms, which is 500",
        ),
        (
            seeded_field_broken(|seeded| seeded.options.heartbeat_timeout_ms = 10_000),
            "seeded.heartbeat_timeout_ms is 10000; it must be above heartbeat_interval_ms, which is 10000",
        ),
        (
            seeded_field_broken(|seeded| seeded.options.ttl_timeout_ms = 30_000),
            "seeded.ttl_timeout_ms is 30000; it must be above heartbeat_timeout_ms, which is 30000",
        ),
        (
            seeded_field_broken(|seeded| seeded.options.retry_interval_ms = 0),
            "seeded.retry_interval_ms is 0; it must be at least 1",
        ),
        (
            seeded_broken(|_, pointed| pointed.quorum_roster = None),
            "quorum_roster is NULL, but strategy 2 (seeded) needs it; give the ids of all voters of the cluster, one per line, 1 to 64",
        ),
        (
            seeded_broken(|options, pointed| {
                options.quorum_policy = MMN_QUORUM_STATIC;
                pointed.quorum_roster = None;
            }),
            "quorum_roster is NULL, but strategy 2 (seeded) needs it; give the ids of all voters of the cluster, one per line, 1 to 64",
        ),
        (
            seeded_broken(|_, pointed| pointed.quorum_roster = Some("a\na".into())),
            "quorum_roster cannot be used: it names \"a\" twice",
        ),
        (
            seeded_broken(|options, _| options.quorum_voters = 2),
            "quorum_voters is 2, but quorum_roster names 3 voters; give 3, or 0 to count the roster",
        ),
        (
            seeded_broken(|options, _| options.quorum_policy = 2),
            "quorum_policy is 2; allowed are 0 (dynamic) and 1 (static)",
        ),
        (
            seeded_broken(|_, pointed| pointed.state_directory = None),
            "state_directory is NULL, but strategy 2 (seeded) needs one; give an existing directory, where this member's votes survive a restart",
        ),
        (
            seeded_broken(|options, _| options.host_mode = MMN_HOST_MODE_HOST),
            "strategy is 2 (seeded), but host_mode is 1, and a room with a fixed host holds no elections; give host_mode 0, or another strategy",
        ),
        (
            seeded_broken(|options, _| options.priority = 3),
            "priority is 3, but strategy 2 (seeded) has no priorities; give 0, or strategy 0",
        ),
        (
            seeded_broken(|options, _| options.eligible = 0),
            "eligible is 0, but with strategy 2 (seeded) quorum_roster names the voters, which alone may lead; give 1, and leave the ids of observers out of the roster",
        ),
    ];
    for (error, sentence) in sentences {
        assert_eq!(error.to_string(), sentence);
        assert_eq!(error.code(), Code::InvalidArgument, "{sentence}");
    }
    let seeds = many(32);
    let mut pointed = seeded_pointed();
    pointed.seeded.as_mut().expect("set").seeds = seeds;
    assert!(config(&seeded_options(), pointed).is_ok());
}

#[test]
fn t1_a_pointer_of_the_seeded_strategy_that_leads_nowhere_is_named() {
    let read = |seeded: *const MmnSeededOptions| {
        let options = MmnOptions {
            seeded,
            ..seeded_options()
        };
        // SAFETY: NULL, or a struct with pointers that are NULL or lead to a text.
        unsafe { Pointed::read(&options) }
            .err()
            .map(|failure| failure.sentence)
    };
    let right = MmnSeededOptions {
        seeds: c"h:1".as_ptr(),
        ..MmnSeededOptions::default()
    };
    assert_eq!(read(&raw const right), None);
    assert_eq!(read(ptr::null()), None);
    let sentence = |change: fn(&mut MmnSeededOptions)| {
        let mut wrong = right;
        change(&mut wrong);
        read(&raw const wrong).expect("refused")
    };
    let without = sentence(|seeded| seeded.seeds = ptr::null());
    assert!(without.starts_with("seeded.seeds is NULL"), "{without}");
    let not_text = sentence(|seeded| seeded.seeds = c"\xff".as_ptr());
    assert!(
        not_text.starts_with("seeded.seeds is not UTF-8"),
        "{not_text}"
    );
    let size = size_of::<MmnSeededOptions>();
    assert_eq!(
        sentence(|seeded| seeded.struct_size -= 1),
        format!(
            "seeded.struct_size is {}; set it to sizeof(MmnSeededOptions), which is {size} or more",
            size - 1
        )
    );
    assert_eq!(
        sentence(|seeded| seeded.struct_size = 65_537)[..28],
        *"seeded.struct_size is 65537;"
    );
}

#[test]
fn each_limit_of_the_state_has_its_own_limits() {
    let broken = |change: fn(&mut MmnStateOptions)| {
        let mut state = MmnStateOptions::default();
        change(&mut state);
        let pointed = Pointed {
            state: Some(state),
            ..nothing()
        };
        let error = config(&MmnOptions::default(), pointed).expect_err("a broken rule");
        assert_eq!(error.code(), Code::InvalidArgument);
        error.to_string()
    };
    for (sentence, broken) in [
        (
            "state.tail_entries is 255; give 256 to 65536",
            broken(|state| state.tail_entries = 255),
        ),
        (
            "state.tail_entries is 65537; give 256 to 65536",
            broken(|state| state.tail_entries = 65_537),
        ),
        (
            "state.tail_bytes is 65535; give 65536 to 67108864",
            broken(|state| state.tail_bytes = 65_535),
        ),
        (
            "state.tail_bytes is 67108865; give 65536 to 67108864",
            broken(|state| state.tail_bytes = (64 << 20) + 1),
        ),
        (
            "state.max_snapshot_bytes is 67108865; give 0 to 67108864",
            broken(|state| state.max_snapshot_bytes = (64 << 20) + 1),
        ),
    ] {
        assert_eq!(broken, sentence);
    }
}

#[test]
fn discovery_needs_a_port_only_where_it_is_on() {
    let mut options = MmnOptions {
        mdns_port: 0,
        ..MmnOptions::default()
    };
    assert!(config(&options, nothing()).is_ok());
    options.discovery_mode = MMN_DISCOVERY_REPORT;
    let error = config(&options, nothing()).expect_err("no port");
    assert!(error.to_string().contains("but discovery_mode is 1"));
}

#[test]
fn a_state_directory_goes_with_a_static_quorum_alone() {
    let pointed = Pointed {
        state_directory: Some("here".into()),
        ..nothing()
    };
    let error = config(&MmnOptions::default(), pointed).expect_err("nothing to keep");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(
        error.to_string(),
        "state_directory is set, but quorum_policy 0 (dynamic) stores nothing; give NULL, or quorum_policy 1"
    );
}

#[test]
fn every_field_arrives() {
    let options = MmnOptions {
        member_hold_ms: 1500,
        queue_bytes: 77,
        carry_bytes_per_second: 1500,
        priority: -4,
        max_peers: 6,
        bind_port: 4433,
        discovery_mode: MMN_DISCOVERY_CONNECT,
        dispatch_mode: MMN_DISPATCH_POLL,
        merge_policy: MMN_MERGE_HIGHEST_TERM,
        set_leader_authority: MMN_AUTHORITY_LEADER_ONLY,
        eligible: 0,
        quorum_policy: MMN_QUORUM_STATIC,
        quorum_voters: 3,
        ..MmnOptions::default()
    };
    let pointed = Pointed {
        bind_address: Some(IpAddr::from([127, 0, 0, 1])),
        secret: Secret::new(b"s"),
        identity_key: Secret::new(b"k"),
        state_directory: Some("state".into()),
        trace_path: Some("trace".into()),
        quorum_roster: Some("c\na\nb\n".into()),
        seeded: None,
        etcd: None,
        relays: None,
        turn: None,
        state: Some(MmnStateOptions {
            tail_entries: 256,
            tail_bytes: 64 << 20,
            max_snapshot_bytes: 0,
            ..MmnStateOptions::default()
        }),
    };
    let expected = Config {
        member_hold: Duration::from_millis(1500),
        queue_bytes: 77,
        carry_bytes_per_second: 1500,
        priority: -4,
        max_peers: 6,
        bind_port: 4433,
        bind_address: Some(IpAddr::from([127, 0, 0, 1])),
        secret: Secret::new(b"s"),
        identity_key: Secret::new(b"k"),
        discovery: DiscoveryMode::Connect,
        dispatch_mode: DispatchMode::Poll,
        merge_policy: MergePolicy::HighestTerm,
        authority: Authority::LeaderOnly,
        quorum: Quorum::of(&["a", "b", "c"]),
        state_directory: Some("state".into()),
        trace_path: Some("trace".into()),
        eligible: false,
        state: Some(StateOptions {
            tail_entries: 256,
            tail_bytes: 64 << 20,
            max_snapshot_bytes: 0,
        }),
        ..Config::default()
    };
    assert_eq!(config(&options, pointed), Ok(expected));
    // Gossip excludes a priority and a static quorum.
    for (flags, strict_lowest) in [(0, false), (MMN_GOSSIP_STRICT_LOWEST, true)] {
        let options = MmnOptions {
            strategy: MMN_STRATEGY_GOSSIP,
            strategy_flags: flags,
            ..MmnOptions::default()
        };
        let expected = Config {
            discovery: DiscoveryMode::Off,
            strategy: Strategy::Gossip { strict_lowest },
            ..Config::default()
        };
        assert_eq!(config(&options, nothing()), Ok(expected));
    }
    // The seeded strategy excludes both, and has a static quorum whatever the policy.
    for (flags, quorum_policy) in [(0, MMN_QUORUM_DYNAMIC), (3, MMN_QUORUM_STATIC)] {
        let options = MmnOptions {
            strategy_flags: flags,
            quorum_policy,
            ..seeded_options()
        };
        let mut pointed = seeded_pointed();
        pointed
            .seeded
            .as_mut()
            .expect("set")
            .options
            .probe_interval_ms = 77;
        let seeds = ["one.example.org:4433", "[::1]:4433", "127.0.0.1:1"];
        let expected = Config {
            discovery: DiscoveryMode::Off,
            strategy: Strategy::Seeded(SeededRules {
                strict_start: flags == 3,
                never_alone: flags == 3,
                intervals: Intervals {
                    probe_interval_ms: 77,
                    ..Intervals::default()
                },
            }),
            seeding: Seeding {
                seeds: seeds.map(Into::into).into(),
                is_seed: true,
                address: String::new(),
            },
            quorum: Quorum::of(&["a", "b", "c"]),
            state_directory: Some("state".into()),
            ..Config::default()
        };
        assert_eq!(config(&options, pointed), Ok(expected));
    }
    // Relays, and links over them alone.
    let options = MmnOptions {
        paths: MMN_PATHS_RELAYED,
        ..MmnOptions::default()
    };
    let pointed = Pointed {
        relays: Some("a\nb:1".into()),
        ..nothing()
    };
    let expected = Config {
        discovery: DiscoveryMode::Off,
        relays: Relay::parse_list("a\nb:1").expect("relays"),
        paths: Paths::Relayed,
        ..Config::default()
    };
    assert_eq!(config(&options, pointed), Ok(expected));
    let turn = "turns:turn.example:443 username=u password=p";
    let pointed = Pointed {
        turn: Some(turn.to_owned().into()),
        ..nothing()
    };
    let expected = Config {
        discovery: DiscoveryMode::Off,
        turn: TurnServer::parse_list(turn).expect("a server"),
        ..Config::default()
    };
    assert_eq!(config(&MmnOptions::default(), pointed), Ok(expected));
    let options = MmnOptions {
        port_mapping: MMN_PORT_MAPPING_ON,
        ..MmnOptions::default()
    };
    let expected = Config {
        discovery: DiscoveryMode::Off,
        port_mapping: true,
        ..Config::default()
    };
    assert_eq!(config(&options, nothing()), Ok(expected));
    // A fixed host excludes a static quorum. A member may carry for no others.
    let options = MmnOptions {
        host_mode: MMN_HOST_MODE_GUEST,
        carry_bytes_per_second: 0,
        ..MmnOptions::default()
    };
    let expected = Config {
        discovery: DiscoveryMode::Off,
        host_mode: HostMode::Guest,
        carry_bytes_per_second: 0,
        ..Config::default()
    };
    assert_eq!(config(&options, nothing()), Ok(expected));
}
