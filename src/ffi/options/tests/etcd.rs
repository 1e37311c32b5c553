//! The options of the etcd strategy.

use super::super::settings::{Etcd, supported};
use super::*;
use crate::config::{Etcd as Configured, EtcdIdentity, EtcdLogin, EtcdSettings};
use crate::core::election::etcd::{EtcdConfig, EtcdRules};

/// The first eight bytes of the SHA-256 of "rooms/lobby".
const PREFIX: u64 = 0xd36c_8e86_8deb_b6d5;

/// Targets of the pointers of a room with the etcd strategy.
fn given() -> Etcd {
    Etcd {
        options: MmnEtcdOptions::default(),
        endpoints: " https://one.example.org:2379\r\n\nhttps://[::1]:2379 ".into(),
        prefix: "rooms/lobby".into(),
        address: Some("play.example.org:4433".into()),
        ca_file: Some("ca.pem".into()),
        cert_file: Some("cert.pem".into()),
        key_file: Some("key.pem".into()),
        user: Some("game".into()),
        password: Secret::new(b"hunter2"),
    }
}

/// As [`given`], with required settings only.
fn plain() -> Etcd {
    Etcd {
        endpoints: "http://h:1".into(),
        address: None,
        ca_file: None,
        cert_file: None,
        key_file: None,
        user: None,
        password: None,
        ..given()
    }
}

fn options() -> MmnOptions {
    MmnOptions {
        strategy: MMN_STRATEGY_ETCD,
        ..MmnOptions::default()
    }
}

fn with(etcd: Etcd) -> Pointed {
    Pointed {
        etcd: Some(etcd),
        ..nothing()
    }
}

/// The error of a room with the etcd strategy after one invalid change.
fn refused(change: impl FnOnce(&mut MmnOptions, &mut Pointed)) -> ConfigError {
    let (mut options, mut pointed) = (options(), with(given()));
    change(&mut options, &mut pointed);
    config(&options, pointed).expect_err("a broken rule")
}

/// The error after one invalid change of its `MmnEtcdOptions`.
fn refused_field(change: impl FnOnce(&mut Etcd)) -> ConfigError {
    refused(|_, pointed| change(pointed.etcd.as_mut().expect("set")))
}

#[test]
fn relays_and_etcd_exclude_each_other() {
    assert_eq!(
        refused(|_, pointed| pointed.relays = Some("a".into())).to_string(),
        "relays is set, but strategy 3 (etcd) is for servers, which reach each other's addresses; give NULL, or another strategy"
    );
}

#[test]
fn the_struct_has_no_hidden_padding_either() {
    let pointer = size_of::<*const u8>();
    assert_eq!(size_of::<MmnEtcdOptions>(), 8 + pointer * 8);
    assert_eq!(std::mem::offset_of!(MmnEtcdOptions, ttl_seconds), 4);
    assert_eq!(std::mem::offset_of!(MmnEtcdOptions, endpoints), 8);
    let last = 8 + pointer * 7;
    assert_eq!(std::mem::offset_of!(MmnEtcdOptions, password), last);
}

#[test]
fn every_field_of_the_etcd_strategy_arrives() {
    let pointed = Pointed {
        state_directory: Some("state".into()),
        ..with(given())
    };
    let expected = Config {
        discovery: DiscoveryMode::Off,
        strategy: Strategy::Etcd(EtcdRules { prefix: PREFIX }),
        state_directory: Some("state".into()),
        etcd: Some(Configured {
            election: EtcdConfig {
                prefix: "rooms/lobby".into(),
                ttl: Duration::from_secs(10),
                address: "play.example.org:4433".into(),
            },
            settings: EtcdSettings {
                endpoints: vec![
                    "https://one.example.org:2379".into(),
                    "https://[::1]:2379".into(),
                ],
                ca_file: Some("ca.pem".into()),
                identity: Some(EtcdIdentity {
                    cert_file: "cert.pem".into(),
                    key_file: "key.pem".into(),
                }),
                login: Some(EtcdLogin {
                    user: "game".into(),
                    password: Secret::new(b"hunter2").expect("not empty"),
                }),
                request_timeout: Duration::from_secs(10) / 3,
            },
        }),
        ..Config::default()
    };
    assert_eq!(config(&options(), pointed), Ok(expected));
    let shown = format!("{:?}", config(&options(), with(given())));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn optional_settings_of_the_etcd_strategy_may_be_left_out() {
    for seconds in [2, 86_400] {
        let mut etcd = plain();
        etcd.options.ttl_seconds = seconds;
        let config = config(&options(), with(etcd)).expect("allowed");
        let etcd = config.etcd.expect("set");
        assert_eq!(etcd.election.address, "");
        let settings = etcd.settings;
        assert_eq!((settings.identity, settings.login), (None, None));
        assert!(settings.request_timeout <= Duration::from_secs(5));
        assert_eq!(config.state_directory, None);
    }
    // An observer.
    let options = MmnOptions {
        eligible: 0,
        ..options()
    };
    assert!(config(&options, with(plain())).is_ok_and(|config| !config.eligible));
}

#[test]
fn each_wrong_field_of_the_etcd_strategy_has_its_sentence() {
    const PREFIX_ADVICE: &str =
        "give 1 to 256 bytes without control characters and without a slash at either end";
    let long = "x".repeat(257);
    let sentences = [
        (
            refused(|_, pointed| pointed.etcd = None),
            "etcd is NULL, but strategy 3 (etcd) needs it; give its settings, with the endpoints of the cluster and a prefix".to_owned(),
        ),
        (
            refused(|options, _| options.strategy = MMN_STRATEGY_RAFT),
            "etcd is set, but strategy is not 3 (etcd); give NULL, or strategy 3".to_owned(),
        ),
        (
            refused(|options, _| options.strategy_flags = 1),
            "strategy_flags is 1; allowed are 0 alone, with strategy 3 (etcd)".to_owned(),
        ),
        (
            refused(|options, _| options.priority = 3),
            "priority is 3, but strategy 3 (etcd) has no priorities; give 0, or strategy 0".to_owned(),
        ),
        (
            refused(|options, _| options.merge_policy = MMN_MERGE_HIGHEST_TERM),
            "merge_policy is 1, but with strategy 3 (etcd) the cluster alone decides who leads; give 0, or another strategy".to_owned(),
        ),
        (
            refused(|options, _| options.set_leader_authority = MMN_AUTHORITY_LEADER_ONLY),
            "set_leader_authority is 1, but with strategy 3 (etcd) no member may name a leader; give 0, or another strategy".to_owned(),
        ),
        (
            refused(|options, _| options.host_mode = MMN_HOST_MODE_GUEST),
            "strategy is 3 (etcd), but host_mode is 2, and a room with a fixed host holds no elections; give host_mode 0, or another strategy".to_owned(),
        ),
        (
            refused(|options, _| options.quorum_policy = MMN_QUORUM_STATIC),
            "quorum_policy is 1 (static), but with strategy 3 (etcd) no member votes; give quorum_policy 0, or strategy 0".to_owned(),
        ),
        (
            refused(|_, pointed| pointed.quorum_roster = Some("a".into())),
            "quorum_roster is set, but with strategy 3 (etcd) no member votes; give NULL, or strategy 0".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.endpoints = " \n\n".into()),
            "etcd.endpoints names 0 servers; give 1 to 16, one per line".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.endpoints = "https://h:1\n".repeat(17)),
            "etcd.endpoints names 17 servers; give 1 to 16, one per line".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.endpoints = "h:1".into()),
            "etcd.endpoints: \"h:1\" does not begin with http:// or https://; give http://host:port or https://host:port".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.endpoints = "https://h".into()),
            "etcd.endpoints: \"https://h\" has no port; give http://host:port or https://host:port".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.endpoints = "https://h:1/v3".into()),
            "etcd.endpoints: \"https://h:1/v3\" has more than a host and a port; give http://host:port or https://host:port".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.endpoints = "https://h:1\nhttp://h:2".into()),
            "etcd.endpoints has http:// and https:// endpoints; give one kind, so that nothing goes unencrypted unnoticed".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.prefix = String::new()),
            format!("etcd.prefix \"\" is too short or too long; {PREFIX_ADVICE}"),
        ),
        (
            refused_field(|etcd| etcd.prefix.clone_from(&long)),
            format!("etcd.prefix \"{}\"... (257 bytes) is too short or too long; {PREFIX_ADVICE}", &long[..64]),
        ),
        (
            refused_field(|etcd| etcd.prefix = "a\nb".into()),
            format!("etcd.prefix \"a\\nb\" contains a control character; {PREFIX_ADVICE}"),
        ),
        (
            refused_field(|etcd| etcd.prefix = "/a".into()),
            format!("etcd.prefix \"/a\" begins or ends with a slash, and the library adds the slash that belongs behind it; {PREFIX_ADVICE}"),
        ),
        (
            refused_field(|etcd| etcd.prefix = "a/".into()),
            format!("etcd.prefix \"a/\" begins or ends with a slash, and the library adds the slash that belongs behind it; {PREFIX_ADVICE}"),
        ),
        (
            refused_field(|etcd| etcd.options.ttl_seconds = 1),
            "etcd.ttl_seconds is 1; allowed are 2 to 86400".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.options.ttl_seconds = u32::MAX),
            "etcd.ttl_seconds is 4294967295; allowed are 2 to 86400".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.address = Some("a\nb".into())),
            "etcd.address \"a\\nb\" is too long or contains a control character; give at most 256 bytes without these, or NULL for this member's own address".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.key_file = None),
            "etcd.cert_file is set, but etcd.key_file is not; give both, or neither".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.cert_file = None),
            "etcd.key_file is set, but etcd.cert_file is not; give both, or neither".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.password = None),
            "etcd.user is set, but etcd.password is not; give both, or neither".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.user = None),
            "etcd.password is set, but etcd.user is not; give both, or neither".to_owned(),
        ),
        (
            refused_field(|etcd| etcd.endpoints = "http://h:1".into()),
            "etcd.ca_file is set, but etcd.endpoints are http://, which nothing encrypts; give https:// endpoints, or NULL".to_owned(),
        ),
        (
            refused_field(|etcd| {
                etcd.endpoints = "http://h:1".into();
                etcd.ca_file = None;
            }),
            "etcd.cert_file is set, but etcd.endpoints are http://, which nothing encrypts; give https:// endpoints, or NULL".to_owned(),
        ),
    ];
    for (error, sentence) in sentences {
        assert_eq!(error.to_string(), sentence);
        assert_eq!(error.code(), Code::InvalidArgument, "{sentence}");
    }
}

#[test]
fn a_pointer_of_the_etcd_strategy_that_leads_nowhere_is_named() {
    let read = |etcd: *const MmnEtcdOptions| {
        let options = MmnOptions { etcd, ..options() };
        // SAFETY: NULL, or a struct with pointers that are NULL or lead to a text.
        unsafe { Pointed::read(&options) }
            .err()
            .map(|failure| failure.sentence)
    };
    let right = MmnEtcdOptions {
        endpoints: c"http://h:1".as_ptr(),
        prefix: c"p".as_ptr(),
        ..MmnEtcdOptions::default()
    };
    assert_eq!(read(&raw const right), None);
    assert_eq!(read(ptr::null()), None);
    let sentence = |change: fn(&mut MmnEtcdOptions)| {
        let mut wrong = right;
        change(&mut wrong);
        read(&raw const wrong).expect("refused")
    };
    type Change = fn(&mut MmnEtcdOptions);
    let wrong: [(Change, &str); 9] = [
        (|etcd| etcd.struct_size = 4, "etcd.struct_size is 4; set it"),
        (
            |etcd| etcd.endpoints = ptr::null(),
            "etcd.endpoints is NULL",
        ),
        (|etcd| etcd.prefix = ptr::null(), "etcd.prefix is NULL"),
        (
            |etcd| etcd.prefix = c"\xff".as_ptr(),
            "etcd.prefix is not UTF-8",
        ),
        (|etcd| etcd.address = c"".as_ptr(), "etcd.address is empty"),
        (|etcd| etcd.ca_file = c"".as_ptr(), "etcd.ca_file is empty"),
        (
            |etcd| etcd.key_file = c"\xff".as_ptr(),
            "etcd.key_file is not UTF-8",
        ),
        (|etcd| etcd.user = c"".as_ptr(), "etcd.user is empty"),
        (
            |etcd| etcd.password = c"".as_ptr(),
            "etcd.password is empty",
        ),
    ];
    for (change, states) in wrong {
        let sentence = sentence(change);
        assert!(sentence.starts_with(states), "{sentence}");
    }
}

#[test]
fn a_build_without_etcd_names_the_build_that_has_it() {
    assert_eq!(supported(&MmnOptions::default()), Ok(()));
    let error = ConfigError::EtcdNotBuilt;
    let expected = match cfg!(feature = "etcd") {
        true => Ok(()),
        false => Err(error.clone()),
    };
    assert_eq!(supported(&options()), expected);
    assert_eq!(error.code(), Code::NotSupported);
    assert_eq!(
        error.to_string(),
        "strategy is 3 (etcd), which this build of the library does not have; load the one for servers, which `make server` builds, or give another strategy"
    );
}
