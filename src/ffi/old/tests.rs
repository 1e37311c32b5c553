//! The structs of ABI version 11 keep their layout, their earlier versions, and their checks.

use super::*;
use crate::ffi::errors::tests::last_error;

#[test]
fn the_struct_has_no_hidden_padding() {
    let pointers = 3 * size_of::<usize>();
    let second = 2 * size_of::<usize>() + 8;
    let third = 48 + pointers + 32 + second;
    assert_eq!(
        size_of::<NetworkOptions>(),
        third + 32 + 3 * size_of::<usize>()
    );
    assert_eq!(FIRST_VERSION_BYTES, 48 + pointers + 32);
    assert_eq!(THIRD_VERSION_BYTES, third);
    assert_eq!(FOURTH_VERSION_BYTES, third + 8);
    assert_eq!(FIFTH_VERSION_BYTES, third + 16);
    assert_eq!(SIXTH_VERSION_BYTES, third + 16 + size_of::<usize>());
    assert_eq!(SEVENTH_VERSION_BYTES, third + 16 + 2 * size_of::<usize>());
    assert_eq!(EIGHTH_VERSION_BYTES, third + 16 + 3 * size_of::<usize>());
    assert_eq!(TENTH_VERSION_BYTES, EIGHTH_VERSION_BYTES + 8);
    macro_rules! at {
        ($($field:ident: $offset:expr),* $(,)?) => {
            $(assert_eq!(
                std::mem::offset_of!(NetworkOptions, $field),
                $offset,
                stringify!($field)
            );)*
        };
    }
    let rest = 48 + pointers;
    at!(
        struct_size: 0,
        config: 4,
        bind_address: 48,
        secret: 48 + size_of::<usize>(),
        identity_key: 48 + 2 * size_of::<usize>(),
        secret_length: rest,
        identity_key_length: rest + 4,
        member_hold_ms: rest + 8,
        queue_bytes: rest + 12,
        strategy: rest + 16,
        priority: rest + 20,
        bind_port: rest + 24,
        discovery_mode: rest + 26,
        dispatch_mode: rest + 27,
        merge_policy: rest + 28,
        set_leader_authority: rest + 29,
        host_mode: rest + 30,
        eligible: rest + 31,
        state_directory: rest + 32,
        trace_path: rest + 32 + size_of::<usize>(),
        quorum_policy: rest + 32 + pointers - size_of::<usize>(),
        quorum_voters: rest + 36 + pointers - size_of::<usize>(),
        strategy_flags: third,
        reserved: third + 4,
        max_peers: third + 8,
        reserved2: third + 12,
        quorum_roster: third + 16,
        seeded: third + 16 + size_of::<usize>(),
        etcd: third + 16 + 2 * size_of::<usize>(),
    );
}

#[test]
fn a_program_of_an_older_version_gets_its_own_fields_and_the_defaults_of_the_rest() {
    let first = FIRST_VERSION_BYTES as u32;
    let third = THIRD_VERSION_BYTES as u32;
    let fourth = FOURTH_VERSION_BYTES as u32;
    let fifth = FIFTH_VERSION_BYTES as u32;
    let sixth = SIXTH_VERSION_BYTES as u32;
    let seventh = SEVENTH_VERSION_BYTES as u32;
    let eighth = EIGHTH_VERSION_BYTES as u32;
    let tenth = TENTH_VERSION_BYTES as u32;
    for size in [tenth, tenth + 1, size_of::<NetworkOptions>() as u32 - 1] {
        let options = NetworkOptions {
            struct_size: size,
            topology: MMN_TOPOLOGY_STAR,
            entry: MMN_ENTRY_JOIN,
            yield_after_ms: 77,
            ..NetworkOptions::default()
        };
        // SAFETY: the struct is longer than its struct_size.
        let read = unsafe { read("options", &options) }.expect("a size");
        let expected = NetworkOptions {
            struct_size: size,
            topology: MMN_TOPOLOGY_STAR,
            ..NetworkOptions::default()
        };
        assert_eq!(read, expected, "{size}");
    }
    for size in [eighth, eighth + 1, tenth - 1] {
        let options = NetworkOptions {
            struct_size: size,
            etcd: ptr::dangling(),
            topology: MMN_TOPOLOGY_STAR,
            reserved3: 77,
            ..NetworkOptions::default()
        };
        // SAFETY: the struct is longer than its struct_size.
        let read = unsafe { read("options", &options) }.expect("a size");
        let expected = NetworkOptions {
            struct_size: size,
            etcd: ptr::dangling(),
            ..NetworkOptions::default()
        };
        assert_eq!(read, expected, "{size}");
    }
    for size in [seventh, seventh + 1, eighth - 1] {
        let options = NetworkOptions {
            struct_size: size,
            seeded: ptr::dangling(),
            etcd: ptr::dangling(),
            ..NetworkOptions::default()
        };
        // SAFETY: the struct is longer than its struct_size.
        let read = unsafe { read("options", &options) }.expect("a size");
        let expected = NetworkOptions {
            struct_size: size,
            seeded: ptr::dangling(),
            ..NetworkOptions::default()
        };
        assert_eq!(read, expected, "{size}");
    }
    for size in [sixth, sixth + 1, seventh - 1] {
        let options = NetworkOptions {
            struct_size: size,
            quorum_roster: ptr::dangling(),
            seeded: ptr::dangling(),
            ..NetworkOptions::default()
        };
        // SAFETY: the struct is longer than its struct_size.
        let read = unsafe { read("options", &options) }.expect("a size");
        let expected = NetworkOptions {
            struct_size: size,
            quorum_roster: ptr::dangling(),
            ..NetworkOptions::default()
        };
        assert_eq!(read, expected, "{size}");
    }
    for size in [fifth, fifth + 1, sixth - 1] {
        let options = NetworkOptions {
            struct_size: size,
            max_peers: 77,
            quorum_roster: ptr::dangling(),
            ..NetworkOptions::default()
        };
        // SAFETY: the struct is longer than its struct_size.
        let read = unsafe { read("options", &options) }.expect("a size");
        let expected = NetworkOptions {
            struct_size: size,
            max_peers: 77,
            ..NetworkOptions::default()
        };
        assert_eq!(read, expected, "{size}");
    }
    for size in [fourth, fourth + 1, fifth - 1] {
        let options = NetworkOptions {
            struct_size: size,
            strategy_flags: 77,
            max_peers: 77,
            reserved2: 77,
            ..NetworkOptions::default()
        };
        // SAFETY: the struct is longer than its struct_size.
        let read = unsafe { read("options", &options) }.expect("a size");
        let expected = NetworkOptions {
            struct_size: size,
            strategy_flags: 77,
            ..NetworkOptions::default()
        };
        assert_eq!(read, expected, "{size}");
    }
    for size in [third, third + 1, fourth - 1] {
        let options = NetworkOptions {
            struct_size: size,
            quorum_voters: 77,
            strategy_flags: 77,
            reserved: 77,
            ..NetworkOptions::default()
        };
        // SAFETY: the struct is longer than its struct_size.
        let read = unsafe { read("options", &options) }.expect("a size");
        let expected = NetworkOptions {
            struct_size: size,
            quorum_voters: 77,
            ..NetworkOptions::default()
        };
        assert_eq!(read, expected, "{size}");
    }
    for size in [first, first + 1, third - 1] {
        let options = NetworkOptions {
            struct_size: size,
            priority: 5,
            quorum_policy: 77,
            quorum_voters: 77,
            state_directory: ptr::dangling(),
            trace_path: ptr::dangling(),
            ..NetworkOptions::default()
        };
        // SAFETY: the struct is longer than its struct_size.
        let read = unsafe { read("options", &options) }.expect("a size");
        let expected = NetworkOptions {
            struct_size: size,
            priority: 5,
            ..NetworkOptions::default()
        };
        assert_eq!(read, expected, "{size}");
    }
}

#[test]
fn reserved_fields_must_be_zero() {
    let refused = |change: fn(&mut NetworkOptions)| {
        let mut options = NetworkOptions::default();
        change(&mut options);
        let (peer, session) = (c"a".as_ptr(), c"reserved".as_ptr());
        // SAFETY: strings with a NUL, and a whole struct.
        let code = unsafe { InitializeNetworkWithOptions(peer, session, &options) };
        assert_eq!(code, Code::InvalidArgument.value());
        last_error().1
    };
    assert_eq!(
        refused(|options| options.reserved = 7),
        "reserved is 7; allowed are 0 alone"
    );
    assert_eq!(
        refused(|options| options.reserved2 = 1),
        "reserved2 is 1; allowed are 0 alone"
    );
}

#[test]
fn a_send_keeps_its_priority_and_its_flags() {
    let given = SendOptions {
        priority: 3,
        ..SendOptions::default()
    };
    let converted =
        |given: &SendOptions| send_options(given, 0x80).map_err(|failure| failure.sentence);
    let options = converted(&given).expect("allowed");
    assert_eq!(
        (options.priority, options.user_flags),
        (MMN_PRIORITY_HIGHEST, 0x80)
    );
    let lowest = converted(&SendOptions {
        priority: 0,
        ..given
    })
    .expect("allowed");
    assert_eq!(lowest.priority, MMN_PRIORITY_LOW);
    let refused = |given| converted(&given).map(|_| ()).expect_err("refused");
    assert!(
        refused(SendOptions {
            priority: 4,
            ..given
        })
        .contains("options.priority is 4")
    );
    assert!(
        refused(SendOptions {
            reserved: 1,
            ..given
        })
        .contains("options.reserved is 1")
    );
}
