//! Turns the struct of the ABI into the settings of a room. Each rule of a field is checked here or in [`Config`].

use std::ffi::c_char;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use zeroize::Zeroizing;

use super::MmnOptions;
use crate::config::{
    Config, ConfigError, DiscoveryMode, DispatchMode, Etcd as ConfiguredEtcd, EtcdIdentity,
    EtcdLogin, EtcdSettings, MAX_IDENTITY_KEY_BYTES, MAX_SECRET_BYTES, ManualOverrideRecovery,
    Paths, Relay, Secret, TurnServer,
};
use crate::core::election::Entry;
use crate::core::election::etcd::EtcdConfig;
use crate::core::election::gossip::Windows;
use crate::core::election::seeded::{SeededRules, Seeding};
use crate::core::quorum::{Quorum, Roster, RosterError};
use crate::core::wire::{Authority, HostMode, MergePolicy, Strategy, Topology};
use crate::ffi::arguments::{bytes as bytes_argument, text};
use crate::ffi::etcd::MmnEtcdOptions;
use crate::ffi::failure::Failure;
use crate::ffi::growing::bytes;
use crate::ffi::growing::read;
use crate::ffi::seeded::MmnSeededOptions;
use crate::ffi::state::MmnStateOptions;
use crate::ffi::values::*;
use crate::quoted::Quoted;

/// Longest time that the options take, in milliseconds.
const A_DAY_MS: u32 = 86_400_000;

/// Targets of the options' pointers.
pub(in crate::ffi) struct Pointed {
    pub(super) bind_address: Option<IpAddr>,
    pub(super) secret: Option<Secret>,
    pub(super) identity_key: Option<Secret>,
    pub(super) state_directory: Option<PathBuf>,
    pub(super) trace_path: Option<PathBuf>,
    pub(super) quorum_roster: Option<String>,
    pub(super) seeded: Option<Seeded>,
    pub(super) etcd: Option<Etcd>,
    pub(super) relays: Option<String>,
    pub(super) turn: Option<Zeroizing<String>>,
    pub(super) state: Option<MmnStateOptions>,
}

/// A [`MmnSeededOptions`], with the target of its pointer.
pub(super) struct Seeded {
    pub(super) options: MmnSeededOptions,
    pub(super) seeds: String,
}

/// An [`MmnEtcdOptions`], with the targets of its pointers.
pub(super) struct Etcd {
    pub(super) options: MmnEtcdOptions,
    pub(super) endpoints: String,
    pub(super) prefix: String,
    pub(super) address: Option<String>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) cert_file: Option<PathBuf>,
    pub(super) key_file: Option<PathBuf>,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
}

impl Pointed {
    /// # Safety
    /// Each pointer is NULL, or leads to a NUL-terminated string or to the number of bytes in its length field.
    pub(in crate::ffi) unsafe fn read(options: &MmnOptions) -> Result<Self, Failure> {
        let bind_address = if options.bind_address.is_null() {
            None
        } else {
            // SAFETY: the caller's promise, passed on.
            let text = unsafe { text("bind_address", options.bind_address) }?;
            let address = text.parse::<IpAddr>().map_err(|_| {
                Failure::invalid(format!(
                    "bind_address {} is not an IPv4 or IPv6 address; give one without port and brackets, or NULL for every address",
                    Quoted(text)
                ))
            })?;
            Some(address.to_canonical())
        };
        // SAFETY: the caller's promise, passed on.
        let secret = unsafe {
            bytes_argument(
                "secret",
                options.secret,
                options.secret_length,
                MAX_SECRET_BYTES,
            )
        }?;
        // SAFETY: as above.
        let identity_key = unsafe {
            bytes_argument(
                "identity_key",
                options.identity_key,
                options.identity_key_length,
                MAX_IDENTITY_KEY_BYTES,
            )
        }?;
        Ok(Self {
            bind_address,
            secret: Secret::new(secret),
            identity_key: Secret::new(identity_key),
            // SAFETY: as above.
            state_directory: unsafe { path("state_directory", options.state_directory) }?,
            // SAFETY: as above.
            trace_path: unsafe { path("trace_path", options.trace_path) }?,
            quorum_roster: match options.quorum_roster.is_null() {
                true => None,
                // SAFETY: as above.
                false => Some(unsafe { text("quorum_roster", options.quorum_roster) }?.to_owned()),
            },
            seeded: match options.seeded.is_null() {
                true => None,
                // SAFETY: as above.
                false => Some(unsafe { seeded(options.seeded) }?),
            },
            etcd: match options.etcd.is_null() {
                true => None,
                // SAFETY: as above.
                false => Some(unsafe { etcd(options.etcd) }?),
            },
            relays: match options.relays.is_null() {
                true => None,
                // SAFETY: as above.
                false => Some(unsafe { text("relays", options.relays) }?.to_owned()),
            },
            turn: match options.turn.is_null() {
                true => None,
                // SAFETY: as above.
                false => Some(unsafe { text("turn", options.turn) }?.to_owned().into()),
            },
            state: match options.state.is_null() {
                true => None,
                // SAFETY: as above.
                false => Some(unsafe { read("state", options.state) }?),
            },
        })
    }
}

/// # Safety
/// `pointer` points to struct_size readable bytes, and its own pointer is NULL or ends with a NUL.
unsafe fn seeded(pointer: *const MmnSeededOptions) -> Result<Seeded, Failure> {
    // SAFETY: the caller's promise, passed on.
    let options = unsafe { read("seeded", pointer) }?;
    // SAFETY: as above.
    let seeds = unsafe { text("seeded.seeds", options.seeds) }?.to_owned();
    Ok(Seeded { options, seeds })
}

/// # Safety
/// `pointer` points to struct_size readable bytes, and its own pointers are NULL or end with a NUL.
unsafe fn etcd(pointer: *const MmnEtcdOptions) -> Result<Etcd, Failure> {
    // SAFETY: the caller's promise, passed on, here and below.
    let options = unsafe { read("etcd", pointer) }?;
    // SAFETY: as above.
    let password = unsafe { optional("etcd.password", options.password) }?;
    Ok(Etcd {
        options,
        // SAFETY: as above.
        endpoints: unsafe { text("etcd.endpoints", options.endpoints) }?.to_owned(),
        // SAFETY: as above.
        prefix: unsafe { text("etcd.prefix", options.prefix) }?.to_owned(),
        // SAFETY: as above.
        address: unsafe { optional("etcd.address", options.address) }?.map(str::to_owned),
        // SAFETY: as above.
        ca_file: unsafe { path("etcd.ca_file", options.ca_file) }?,
        // SAFETY: as above.
        cert_file: unsafe { path("etcd.cert_file", options.cert_file) }?,
        // SAFETY: as above.
        key_file: unsafe { path("etcd.key_file", options.key_file) }?,
        // SAFETY: as above.
        user: unsafe { optional("etcd.user", options.user) }?.map(str::to_owned),
        password: password.and_then(|password| Secret::new(password.as_bytes())),
    })
}

/// The string at `pointer`; NULL is none, and an empty one is refused.
///
/// # Safety
/// As [`text`].
unsafe fn optional<'a>(argument: &str, pointer: *const c_char) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise, passed on.
    match unsafe { text(argument, pointer) }? {
        "" => Err(Failure::invalid(format!(
            "{argument} is empty; give a text, or NULL for none"
        ))),
        text => Ok(Some(text)),
    }
}

/// The path at `pointer`; NULL is none.
///
/// # Safety
/// `pointer` is NULL or ends with a NUL.
unsafe fn path(argument: &str, pointer: *const c_char) -> Result<Option<PathBuf>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise, passed on.
    let text = unsafe { text(argument, pointer) }?;
    if text.is_empty() {
        return Err(Failure::invalid(format!(
            "{argument} is empty; give a path, or NULL for none"
        )));
    }
    Ok(Some(PathBuf::from(text)))
}

/// Whether this build has the strategy.
pub(in crate::ffi) fn supported(options: &MmnOptions) -> Result<(), ConfigError> {
    match options.strategy {
        MMN_STRATEGY_ETCD if !cfg!(feature = "etcd") => Err(ConfigError::EtcdNotBuilt),
        _ => Ok(()),
    }
}

/// Fails with the first broken rule: those of single numbers, then the others in the order of their fields.
pub(in crate::ffi) fn config(
    options: &MmnOptions,
    pointed: Pointed,
) -> Result<Config, ConfigError> {
    let numbers = numbers(options)?;
    if options.strategy > MMN_STRATEGY_ETCD {
        return Err(ConfigError::UnknownStrategy {
            strategy: options.strategy,
        });
    }
    let discovery = choice(
        "discovery_mode",
        options.discovery_mode,
        &[
            (MMN_DISCOVERY_OFF, DiscoveryMode::Off),
            (MMN_DISCOVERY_REPORT, DiscoveryMode::Report),
            (MMN_DISCOVERY_CONNECT, DiscoveryMode::Connect),
        ],
        "0 (off), 1 (report) and 2 (connect)",
    )?;
    if discovery != DiscoveryMode::Off && numbers.mdns_port.is_none() {
        return Err(ConfigError::DiscoveryWithoutPort {
            discovery_mode: options.discovery_mode,
        });
    }
    let dispatch_mode = dispatch_mode(options.dispatch_mode)?;
    let merge_policy = choice(
        "merge_policy",
        options.merge_policy,
        &[
            (MMN_MERGE_LARGEST_SIDE, MergePolicy::LargestSide),
            (MMN_MERGE_HIGHEST_TERM, MergePolicy::HighestTerm),
        ],
        "0 (largest side) and 1 (highest term)",
    )?;
    let authority = choice(
        "set_leader_authority",
        options.set_leader_authority,
        &[
            (MMN_AUTHORITY_ANYONE, Authority::Anyone),
            (MMN_AUTHORITY_LEADER_ONLY, Authority::LeaderOnly),
        ],
        "0 (anyone) and 1 (leader only)",
    )?;
    let host_mode = choice(
        "host_mode",
        options.host_mode,
        &[
            (MMN_HOST_MODE_OFF, HostMode::Off),
            (MMN_HOST_MODE_HOST, HostMode::Host),
            (MMN_HOST_MODE_GUEST, HostMode::Guest),
        ],
        "0 (off), 1 (host) and 2 (guest)",
    )?;
    let topology = match options.topology {
        MMN_TOPOLOGY_MESH => Topology::Mesh,
        MMN_TOPOLOGY_STAR => Topology::Star,
        value => {
            return Err(ConfigError::NotAllowed {
                field: "topology",
                value,
                allowed: "0 (mesh) and 1 (star)",
            });
        }
    };
    let entry = match options.entry {
        MMN_ENTRY_ANY => Entry::Any,
        MMN_ENTRY_CREATE => Entry::Create,
        MMN_ENTRY_JOIN => Entry::Join,
        value => {
            return Err(ConfigError::NotAllowed {
                field: "entry",
                value,
                allowed: "0 (any), 1 (create) and 2 (join)",
            });
        }
    };
    let paths = choice(
        "paths",
        options.paths,
        &[
            (MMN_PATHS_ALL, Paths::All),
            (MMN_PATHS_RELAYED, Paths::Relayed),
        ],
        "0 (all) and 1 (relayed)",
    )?;
    let port_mapping = choice(
        "port_mapping",
        options.port_mapping,
        &[(MMN_PORT_MAPPING_OFF, false), (MMN_PORT_MAPPING_ON, true)],
        "0 (off) and 1 (on)",
    )?;
    choice("reserved", options.reserved, &[(0, ())], "0")?;
    let relays = pointed.relays.as_deref().map(Relay::parse_list);
    let relays = relays.transpose()?.unwrap_or_default();
    let turn = pointed.turn.as_deref();
    let turn = turn.map(|text| TurnServer::parse_list(text)).transpose()?;
    let seeded = pointed.seeded.as_ref();
    if seeded.is_some() && options.strategy != MMN_STRATEGY_SEEDED {
        return Err(ConfigError::SeededWithoutStrategy);
    }
    if pointed.etcd.is_some() && options.strategy != MMN_STRATEGY_ETCD {
        return Err(ConfigError::EtcdWithoutStrategy);
    }
    let etcd = pointed.etcd.map(configured_etcd).transpose()?;
    let strategy = strategy(
        options.strategy,
        options.strategy_flags,
        seeded,
        etcd.as_ref(),
    )?;
    let quorum = match (&strategy, options.quorum_policy, &pointed.quorum_roster) {
        (Strategy::Seeded(_), MMN_QUORUM_DYNAMIC | MMN_QUORUM_STATIC, None) => {
            return Err(ConfigError::SeededWithoutRoster);
        }
        (Strategy::Seeded(_), MMN_QUORUM_DYNAMIC, Some(_)) => MMN_QUORUM_STATIC,
        (Strategy::Etcd(_), MMN_QUORUM_STATIC, _) => {
            return Err(ConfigError::StaticQuorumWithEtcd);
        }
        (Strategy::Etcd(_), MMN_QUORUM_DYNAMIC, Some(_)) => {
            return Err(ConfigError::RosterWithEtcd);
        }
        _ => options.quorum_policy,
    };
    let quorum = self::quorum(
        quorum,
        options.quorum_voters,
        pointed.quorum_roster.as_deref(),
    )?;
    Config {
        discovery,
        bind_address: pointed.bind_address,
        secret: pointed.secret,
        identity_key: pointed.identity_key,
        dispatch_mode,
        strategy,
        seeding: seeded.map_or_else(Seeding::default, seeding),
        etcd,
        merge_policy,
        quorum,
        state_directory: pointed.state_directory,
        trace_path: pointed.trace_path,
        authority,
        host_mode,
        topology,
        entry,
        yield_after: (options.yield_after_ms > 0)
            .then(|| Duration::from_millis(options.yield_after_ms.into())),
        relays,
        paths,
        port_mapping,
        turn: turn.unwrap_or_default(),
        state: pointed.state.as_ref().map(MmnStateOptions::limits),
        ..numbers
    }
    .validated()
}

/// The settings that are numbers, each within its limits, and flags.
fn numbers(options: &MmnOptions) -> Result<Config, ConfigError> {
    let millis = |field, value| match value {
        0 => Err(ConfigError::Zero { field }),
        1..=A_DAY_MS => Ok(Duration::from_millis(value.into())),
        _ => Err(ConfigError::NotAllowed {
            field,
            value,
            allowed: "1 to 86400000, which is a day",
        }),
    };
    let short = |field, value: u32| {
        u16::try_from(value).map_err(|_| ConfigError::NotAllowed {
            field,
            value,
            allowed: "0 to 65535",
        })
    };
    macro_rules! millis {
        ($field:ident) => {
            millis(stringify!($field), options.$field)?
        };
    }
    macro_rules! short {
        ($field:ident) => {
            short(stringify!($field), options.$field)?
        };
    }
    let recovery = choice(
        "manual_override_recovery",
        options.manual_override_recovery,
        &[
            (MMN_RECOVERY_HOLD, ManualOverrideRecovery::Hold),
            (MMN_RECOVERY_AUTO_ELECT, ManualOverrideRecovery::AutoElect),
        ],
        "0 (hold) and 1 (elect)",
    )?;
    if (options.heartbeat_interval_ms, options.max_connections) == (0, 0) {
        return Err(ConfigError::Zeroed);
    }
    let numbers = Config {
        reconnect_max: millis!(reconnect_max_ms),
        compression_threshold: bytes(options.compression_threshold),
        max_message_size: bytes(options.max_message_size),
        heartbeat_interval: millis!(heartbeat_interval_ms),
        heartbeat_timeout_multiplier: short!(heartbeat_timeout_multiplier).into(),
        election_timeout_min: millis!(election_timeout_min_ms),
        election_timeout_max: millis!(election_timeout_max_ms),
        reconnect_initial: millis!(reconnect_initial_ms),
        handshake_timeout: millis!(handshake_timeout_ms),
        write_timeout: millis!(write_timeout_ms),
        send_queue_capacity: short!(send_queue_capacity).into(),
        incoming_queue_capacity: short!(incoming_queue_capacity).into(),
        max_connections: short!(max_connections).into(),
        queue_bytes: bytes(options.queue_bytes),
        hold_messages: options.hold_messages != 0,
        mdns_port: Some(short!(mdns_port)).filter(|port| *port != 0),
        bind_port: short!(bind_port),
        member_hold: millis!(member_hold_ms),
        max_peers: options.max_peers,
        eligible: options.eligible != 0,
        priority: options.priority,
        auto_election_enabled: options.auto_election != 0,
        manual_override_recovery: recovery,
        auto_reconnect_enabled: options.auto_reconnect != 0,
        reconnect_max_retries: Some(options.reconnect_max_retries).filter(|most| *most != 0),
        centralized_auto_forward: options.centralized_auto_forward != 0,
        carry_bytes_per_second: options.carry_bytes_per_second,
        windows: Windows {
            startup_grace: millis!(startup_grace_ms),
            sample_interval: millis!(sample_interval_ms),
            alive_threshold: millis!(alive_threshold_ms),
            election_duration: millis!(election_duration_ms),
        },
        ..Config::default()
    };
    numbers.validated()
}

/// The mode with this number.
pub(in crate::ffi) fn dispatch_mode(value: u32) -> Result<DispatchMode, ConfigError> {
    choice(
        "dispatch_mode",
        value,
        &[
            (MMN_DISPATCH_THREAD, DispatchMode::Thread),
            (MMN_DISPATCH_POLL, DispatchMode::Poll),
        ],
        "0 (thread) and 1 (poll)",
    )
}

/// The meaning of the number in a field; fails if the number has none.
fn choice<T: Copy>(
    field: &'static str,
    value: u32,
    meanings: &[(u32, T)],
    allowed: &'static str,
) -> Result<T, ConfigError> {
    let found = meanings.iter().find(|(number, _)| *number == value);
    found
        .map(|(_, meaning)| *meaning)
        .ok_or(ConfigError::NotAllowed {
            field,
            value,
            allowed,
        })
}

/// The voters whose majority counts: from a policy, a number of voters (0 takes the number from the
/// list) and a list.
fn quorum(policy: u32, voters: u32, roster: Option<&str>) -> Result<Quorum, ConfigError> {
    match (policy, voters, roster) {
        (MMN_QUORUM_DYNAMIC, 0, None) => Ok(Quorum::Dynamic),
        (MMN_QUORUM_DYNAMIC, 0, Some(_)) => Err(ConfigError::RosterWithoutStatic),
        (MMN_QUORUM_DYNAMIC, voters, _) => Err(ConfigError::VotersWithoutStatic { voters }),
        (MMN_QUORUM_STATIC, _, None) => Err(ConfigError::StaticWithoutRoster),
        (MMN_QUORUM_STATIC, voters, Some(text)) => {
            let roster = roster_of(text)?;
            match (bytes(voters), roster.len()) {
                (given, named) if given == 0 || given == named => Ok(Quorum::Static(roster)),
                (_, named) => Err(ConfigError::QuorumVoters { voters, named }),
            }
        }
        (value, _, _) => Err(ConfigError::NotAllowed {
            field: "quorum_policy",
            value,
            allowed: "0 (dynamic) and 1 (static)",
        }),
    }
}

fn roster_of(text: &str) -> Result<Roster, ConfigError> {
    Roster::parse(text).map_err(|source| {
        let line = match &source {
            RosterError::Id { line, .. } => text.lines().nth(line - 1).map(str::to_owned),
            _ => None,
        };
        ConfigError::Roster { source, line }
    })
}

/// The number of a strategy.
pub(in crate::ffi) fn strategy_number(strategy: Strategy) -> u32 {
    match strategy {
        Strategy::Raft => MMN_STRATEGY_RAFT,
        Strategy::Gossip { .. } => MMN_STRATEGY_GOSSIP,
        Strategy::Seeded(_) => MMN_STRATEGY_SEEDED,
        Strategy::Etcd(_) => MMN_STRATEGY_ETCD,
    }
}

/// The strategy with this number and its flags.
fn strategy(
    strategy: u32,
    flags: u32,
    seeded: Option<&Seeded>,
    etcd: Option<&ConfiguredEtcd>,
) -> Result<Strategy, ConfigError> {
    let not_allowed = |allowed| ConfigError::NotAllowed {
        field: "strategy_flags",
        value: flags,
        allowed,
    };
    match strategy {
        MMN_STRATEGY_GOSSIP => match flags {
            0 | MMN_GOSSIP_STRICT_LOWEST => Ok(Strategy::Gossip {
                strict_lowest: flags == MMN_GOSSIP_STRICT_LOWEST,
            }),
            _ => Err(not_allowed("0 and 1 (strict lowest)")),
        },
        MMN_STRATEGY_SEEDED => {
            if flags & !(MMN_SEEDED_STRICT_START | MMN_SEEDED_NEVER_ALONE) != 0 {
                return Err(not_allowed(
                    "0, 1 (strict start), 2 (never alone) and 3 (both)",
                ));
            }
            let seeded = seeded.ok_or(ConfigError::SeededWithoutOptions)?;
            if seeded.options.reserved != 0 {
                return Err(ConfigError::NotAllowed {
                    field: "seeded.reserved",
                    value: seeded.options.reserved,
                    allowed: "0 alone",
                });
            }
            Ok(Strategy::Seeded(SeededRules {
                strict_start: flags & MMN_SEEDED_STRICT_START != 0,
                never_alone: flags & MMN_SEEDED_NEVER_ALONE != 0,
                intervals: seeded.options.intervals(),
            }))
        }
        MMN_STRATEGY_ETCD => match flags {
            0 => etcd
                .map(ConfiguredEtcd::strategy)
                .ok_or(ConfigError::EtcdWithoutOptions),
            _ => Err(not_allowed("0 alone, with strategy 3 (etcd)")),
        },
        _ if flags != 0 => Err(ConfigError::FlagsWithRaft { flags }),
        _ => Ok(Strategy::Raft),
    }
}

fn configured_etcd(given: Etcd) -> Result<ConfiguredEtcd, ConfigError> {
    let identity = both(
        ("etcd.cert_file", given.cert_file),
        ("etcd.key_file", given.key_file),
    )?;
    let login = both(("etcd.user", given.user), ("etcd.password", given.password))?;
    let ttl = Duration::from_secs(given.options.ttl_seconds.into());
    Ok(ConfiguredEtcd {
        election: EtcdConfig {
            prefix: given.prefix.into(),
            ttl,
            address: given.address.unwrap_or_default(),
        },
        settings: EtcdSettings {
            endpoints: lines(&given.endpoints).map(str::to_owned).collect(),
            ca_file: given.ca_file,
            identity: identity.map(|(cert_file, key_file)| EtcdIdentity {
                cert_file,
                key_file,
            }),
            login: login.map(|(user, password)| EtcdLogin { user, password }),
            request_timeout: ConfiguredEtcd::request_timeout(ttl),
        },
    })
}

/// Two fields that are valid only together.
fn both<A, B>(
    (field_a, a): (&'static str, Option<A>),
    (field_b, b): (&'static str, Option<B>),
) -> Result<Option<(A, B)>, ConfigError> {
    let half = |set, missing| Err(ConfigError::EtcdHalf { set, missing });
    match (a, b) {
        (Some(a), Some(b)) => Ok(Some((a, b))),
        (None, None) => Ok(None),
        (Some(_), None) => half(field_a, field_b),
        (None, Some(_)) => half(field_b, field_a),
    }
}

/// The lines that are not empty.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

fn seeding(seeded: &Seeded) -> Seeding {
    Seeding {
        seeds: lines(&seeded.seeds).map(Into::into).collect(),
        is_seed: seeded.options.is_seed != 0,
        address: String::new(),
    }
}
