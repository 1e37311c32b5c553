//! The room's settings, checked once where they enter.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest, Sha256};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::core::election::etcd::{EtcdConfig, EtcdRules};
use crate::core::election::gossip::{WindowError, Windows};
use crate::core::election::seeded::{IntervalError, Seeding};
use crate::core::quorum::{MAX_ROSTER_VOTERS, Quorum, RosterError};
use crate::core::wire::{Authority, HostMode, MergePolicy, Strategy};
use crate::error::{Code, Coded};
use crate::quoted::Quoted;
use crate::target::{TargetError, parse_target};

/// Most addresses of seeds.
pub const MAX_SEEDS: usize = 32;
/// Most endpoints of an etcd cluster.
pub const MAX_ETCD_ENDPOINTS: usize = 16;
/// Longest prefix of an etcd cluster's keys, in bytes.
pub const MAX_ETCD_PREFIX_BYTES: usize = 256;
/// Longest address that a leader shows others through etcd, in bytes.
pub const MAX_ETCD_ADDRESS_BYTES: usize = 256;
/// Shortest and longest time to live of a lease, in seconds. A server with its defaults grants no shorter one.
pub const ETCD_TTL_SECONDS: RangeInclusive<u64> = 2..=86_400;
/// Longest wait for an answer of etcd.
const MAX_ETCD_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that a queue holds unless an option says otherwise, per peer and for the host.
pub const DEFAULT_QUEUE_BYTES: usize = 4 * 1024 * 1024;
/// Messages that each queue holds when the room is opened without a configuration: a loading screen of 30 s
/// at 60 messages a second fits.
pub const DEFAULT_QUEUE_MESSAGES: usize = 4096;
/// How long a lost member's place is kept unless an option says otherwise.
pub const DEFAULT_MEMBER_HOLD: Duration = Duration::from_secs(60);
/// Longest room secret, in bytes.
pub const MAX_SECRET_BYTES: usize = 1024;
/// Longest identity key, in bytes; one of Ed25519 in PKCS#8 has less than 100.
pub const MAX_IDENTITY_KEY_BYTES: usize = 1024;

/// Checked settings of a room. Every duration is above zero, and the rules of [`Config::validated`] hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Time between two heartbeats.
    pub heartbeat_interval: Duration,
    /// How many heartbeats may be missed before a peer counts as lost.
    pub heartbeat_timeout_multiplier: u32,
    /// Shortest election timeout; raised to [`Config::heartbeat_timeout`] where that is longer.
    pub election_timeout_min: Duration,
    /// Longest election timeout; raised by as much as the shortest.
    pub election_timeout_max: Duration,
    /// Longest message that is sent or taken, in bytes.
    pub max_message_size: usize,
    /// Payloads longer than this are sent compressed when that is shorter, in bytes; 0 tries all.
    pub compression_threshold: usize,
    /// How long entering a room may take, name resolution included.
    pub handshake_timeout: Duration,
    /// How long a peer's network thread may take nothing before its link is given up.
    pub write_timeout: Duration,
    /// Messages queued per peer.
    pub send_queue_capacity: usize,
    /// Messages queued for the host.
    pub incoming_queue_capacity: usize,
    /// Bytes queued per peer, and for the host.
    pub queue_bytes: usize,
    /// Most other members linked at a time.
    pub max_connections: usize,
    /// UDP port of multicast discovery; `None` is off.
    pub mdns_port: Option<u16>,
    /// What discovery does, where it has a port.
    pub discovery: DiscoveryMode,
    /// The own address to bind; `None` is every address, IPv6 and IPv4.
    pub bind_address: Option<IpAddr>,
    /// The UDP port to bind; 0 is any free one.
    pub bind_port: u16,
    /// What members must know beside the room's name.
    pub secret: Option<Secret>,
    /// The Ed25519 private key in PKCS#8 (DER) by which others know this process; `None` makes a new one.
    pub identity_key: Option<Secret>,
    /// On which thread the host's callbacks run.
    pub dispatch_mode: DispatchMode,
    /// How the room elects its leader.
    pub strategy: Strategy,
    /// The windows of the gossip strategy.
    pub windows: Windows,
    /// The seeds of the seeded strategy, as [`parse_target`] reads them, and whether this member is one. Its `address` may be
    /// empty: then the first of its own addresses decides between two leaders.
    pub seeding: Seeding,
    /// The options of the etcd strategy; there with it, and only there.
    pub etcd: Option<Etcd>,
    /// Which leader stays when two sides meet.
    pub merge_policy: MergePolicy,
    /// Who counts for a majority.
    pub quorum: Quorum,
    /// Where the strategy keeps what must survive the process: an existing directory that may be written. There
    /// with a static quorum, perhaps with the etcd strategy, and nowhere else.
    pub state_directory: Option<PathBuf>,
    /// Where a trace of the elections is written, for people to look at.
    pub trace_path: Option<PathBuf>,
    /// Who may name a leader.
    pub authority: Authority,
    /// Whether one fixed member leads, and whether that is this one.
    pub host_mode: HostMode,
    /// Most other members of the room, where this member leads it and SetMaxPeers was not called; 0 is no limit.
    pub max_peers: u32,
    /// How long a lost member's place is kept.
    pub member_hold: Duration,
    /// Whether this member may lead; one that may not is an observer.
    pub eligible: bool,
    /// The election priority; higher is preferred.
    pub priority: i32,
    /// Whether the room elects a leader by itself.
    pub auto_election_enabled: bool,
    /// What follows when a leader that was set by hand is lost.
    pub manual_override_recovery: ManualOverrideRecovery,
    /// Whether lost links are dialled again.
    pub auto_reconnect_enabled: bool,
    /// Wait before the first dial after a loss; doubles from there.
    pub reconnect_initial: Duration,
    /// Longest wait between two dials.
    pub reconnect_max: Duration,
    /// Dials after a loss before the peer is given up; `None` is unlimited.
    pub reconnect_max_retries: Option<u32>,
    /// Whether the leader of a centralized room sends broadcasts on to all but their origin.
    pub centralized_auto_forward: bool,
}

/// The options of the etcd strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etcd {
    /// What the election needs. Its `address` may be empty: then others read the first of this member's own addresses.
    pub election: EtcdConfig,
    /// How this member reaches the cluster.
    pub settings: EtcdSettings,
}

impl Etcd {
    /// The strategy with these options. Members with another prefix elect another leader, and are refused.
    pub fn strategy(&self) -> Strategy {
        let digest = Sha256::digest(self.election.prefix.as_bytes());
        let mut prefix = [0; 8];
        prefix.copy_from_slice(&digest[..8]);
        Strategy::Etcd(EtcdRules {
            prefix: u64::from_be_bytes(prefix),
        })
    }

    /// How long a request waits for its answer beside leases of that length: several fit into one.
    pub fn request_timeout(ttl: Duration) -> Duration {
        (ttl / 3).min(MAX_ETCD_REQUEST_TIMEOUT)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let Self { election, settings } = self;
        let endpoints = settings.endpoints.len();
        if endpoints == 0 || endpoints > MAX_ETCD_ENDPOINTS {
            return Err(ConfigError::EtcdEndpoints { endpoints });
        }
        let mut encrypted = 0;
        for endpoint in &settings.endpoints {
            let unusable = |fault| ConfigError::EtcdEndpoint {
                endpoint: endpoint.clone(),
                fault,
            };
            let server = match endpoint.split_once("://") {
                Some(("http", server)) => server,
                Some(("https", server)) => {
                    encrypted += 1;
                    server
                }
                _ => {
                    return Err(unusable(
                        "does not begin with http:// or https://".to_owned(),
                    ));
                }
            };
            if server.contains(['/', '?', '#', '@']) {
                return Err(unusable("has more than a host and a port".to_owned()));
            }
            parse_target(server).map_err(|error| unusable(error.fault.to_string()))?;
        }
        if encrypted != 0 && encrypted != endpoints {
            return Err(ConfigError::EtcdMixedEndpoints);
        }
        check_prefix(&election.prefix)?;
        let seconds = election.ttl.as_secs();
        if !ETCD_TTL_SECONDS.contains(&seconds) {
            return Err(ConfigError::EtcdTtl { seconds });
        }
        let address = &election.address;
        if address.len() > MAX_ETCD_ADDRESS_BYTES || address.contains(char::is_control) {
            return Err(ConfigError::EtcdAddress {
                address: address.clone(),
            });
        }
        let file = match (&settings.ca_file, &settings.identity) {
            (Some(_), _) => Some("etcd.ca_file"),
            (None, Some(_)) => Some("etcd.cert_file"),
            (None, None) => None,
        };
        match file {
            Some(field) if encrypted == 0 => Err(ConfigError::EtcdFileWithoutTls { field }),
            _ => Ok(()),
        }
    }
}

/// The library itself puts a slash behind the prefix: without one the keys of "test" were also keys of "testa" (A4.1). A slash
/// at either end would make two of one, and so other keys for what looks like the same prefix.
fn check_prefix(prefix: &str) -> Result<(), ConfigError> {
    let len = prefix.len();
    let fault = if len == 0 || len > MAX_ETCD_PREFIX_BYTES {
        "is too short or too long"
    } else if prefix.contains(char::is_control) {
        "contains a control character"
    } else if prefix.starts_with('/') || prefix.ends_with('/') {
        "begins or ends with a slash, and the library adds the slash that belongs behind it"
    } else {
        return Ok(());
    };
    Err(ConfigError::EtcdPrefix {
        prefix: prefix.to_owned(),
        fault,
    })
}

/// How this member reaches its etcd cluster. Files are read when the room opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdSettings {
    /// The servers of the cluster, 1 to [`MAX_ETCD_ENDPOINTS`], each `http://host:port` or `https://host:port`.
    pub endpoints: Vec<String>,
    /// The file with the certificates (PEM) that sign those of the servers; `None` is what the system trusts.
    pub ca_file: Option<PathBuf>,
    /// By which the servers know this client, where they ask.
    pub identity: Option<EtcdIdentity>,
    /// As whom this client logs in, where the cluster has users.
    pub login: Option<EtcdLogin>,
    /// How long a request waits for its answer. A watch waits so long for its beginning.
    pub request_timeout: Duration,
}

/// A client's certificate and its key, as files (PEM).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdIdentity {
    /// The certificate, with those between it and the servers' CA.
    pub cert_file: PathBuf,
    /// Its private key.
    pub key_file: PathBuf,
}

/// A user of etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdLogin {
    /// The name.
    pub user: String,
    /// The password.
    pub password: Secret,
}

/// On which thread the host's callbacks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DispatchMode {
    /// On a thread of the library.
    #[default]
    Thread,
    /// On the thread of the host that calls PollEvents, during the call.
    Poll,
}

/// What follows when a leader that was set by hand is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManualOverrideRecovery {
    /// No election until SetLeader or EnableAutoLeaderElection is called.
    Hold,
    /// An election as after any loss.
    AutoElect,
}

/// What discovery in the local network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiscoveryMode {
    /// Nothing: no packet is sent, none is read.
    #[default]
    Off,
    /// Announces this member, and tells the host which other members it finds.
    Report,
    /// Announces this member, and dials those that it finds.
    Connect,
}

/// Bytes that no log and no message shows, and that are wiped when they are dropped. Never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// `None` where there are no bytes.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (!bytes.is_empty()).then(|| Self(Zeroizing::new(bytes.to_vec())))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.0.len())
    }
}

impl Default for Config {
    /// The settings of `InitializeNetwork` without a configuration.
    fn default() -> Self {
        Self {
            send_queue_capacity: DEFAULT_QUEUE_MESSAGES,
            incoming_queue_capacity: DEFAULT_QUEUE_MESSAGES,
            ..Self::classic()
        }
    }
}

impl Config {
    /// The defaults of the 44-byte `NetworkConfigFFI`: as [`Config::default`], but with its shorter queues.
    pub fn classic() -> Self {
        Self {
            heartbeat_interval: Duration::from_millis(500),
            heartbeat_timeout_multiplier: 3,
            election_timeout_min: Duration::from_millis(1500),
            election_timeout_max: Duration::from_millis(3000),
            max_message_size: 262_144,
            compression_threshold: 512,
            handshake_timeout: Duration::from_millis(5000),
            write_timeout: Duration::from_millis(5000),
            send_queue_capacity: 128,
            incoming_queue_capacity: 256,
            queue_bytes: DEFAULT_QUEUE_BYTES,
            max_connections: 64,
            mdns_port: Some(15_353),
            discovery: DiscoveryMode::Connect,
            bind_address: None,
            bind_port: 0,
            secret: None,
            identity_key: None,
            dispatch_mode: DispatchMode::Thread,
            strategy: Strategy::default(),
            windows: Windows::default(),
            seeding: Seeding::default(),
            etcd: None,
            merge_policy: MergePolicy::default(),
            quorum: Quorum::Dynamic,
            state_directory: None,
            trace_path: None,
            authority: Authority::default(),
            host_mode: HostMode::default(),
            max_peers: 0,
            member_hold: DEFAULT_MEMBER_HOLD,
            eligible: true,
            priority: 0,
            auto_election_enabled: true,
            manual_override_recovery: ManualOverrideRecovery::Hold,
            auto_reconnect_enabled: true,
            reconnect_initial: Duration::from_millis(1000),
            reconnect_max: Duration::from_millis(30_000),
            reconnect_max_retries: None,
            centralized_auto_forward: true,
        }
    }

    /// How long a peer may be silent before it counts as lost: the interval times the multiplier.
    pub fn heartbeat_timeout(&self) -> Duration {
        self.heartbeat_interval
            .saturating_mul(self.heartbeat_timeout_multiplier)
    }

    /// Checks the settings against each other: nothing that must be above zero is zero, the shortest election
    /// timeout is above the heartbeat interval and not above the longest, the first wait before a
    /// reconnection is not above the longest, a static quorum has voters, a state directory and no fixed host, a fixed
    /// host may lead, gossip has neither a static quorum nor a priority, and windows that a clock can count, and the options of
    /// the seeded and the etcd strategy are there with these and usable. For settings that were made by hand.
    ///
    /// # Errors
    /// [`ConfigError`] with the first broken rule.
    pub fn validated(self) -> Result<Self, ConfigError> {
        for (field, value) in [
            ("reconnect_max_ms", self.reconnect_max.as_nanos()),
            ("max_message_size", self.max_message_size as u128),
            ("heartbeat_interval_ms", self.heartbeat_interval.as_nanos()),
            (
                "election_timeout_min_ms",
                self.election_timeout_min.as_nanos(),
            ),
            (
                "election_timeout_max_ms",
                self.election_timeout_max.as_nanos(),
            ),
            ("reconnect_initial_ms", self.reconnect_initial.as_nanos()),
            ("handshake_timeout_ms", self.handshake_timeout.as_nanos()),
            ("write_timeout_ms", self.write_timeout.as_nanos()),
            ("send_queue_capacity", self.send_queue_capacity as u128),
            (
                "incoming_queue_capacity",
                self.incoming_queue_capacity as u128,
            ),
            ("max_connections", self.max_connections as u128),
            (
                "heartbeat_timeout_multiplier",
                u128::from(self.heartbeat_timeout_multiplier),
            ),
            ("member_hold_ms", self.member_hold.as_nanos()),
            ("queue_bytes", self.queue_bytes as u128),
        ] {
            if value == 0 {
                return Err(ConfigError::Zero { field });
            }
        }
        if self.election_timeout_min <= self.heartbeat_interval {
            return Err(ConfigError::ElectionNotAboveHeartbeat {
                election_timeout_min_ms: millis(self.election_timeout_min),
                heartbeat_interval_ms: millis(self.heartbeat_interval),
            });
        }
        if self.election_timeout_min > self.election_timeout_max {
            return Err(ConfigError::ElectionMinAboveMax {
                election_timeout_min_ms: millis(self.election_timeout_min),
                election_timeout_max_ms: millis(self.election_timeout_max),
            });
        }
        if self.reconnect_initial > self.reconnect_max {
            return Err(ConfigError::ReconnectInitialAboveMax {
                reconnect_initial_ms: millis(self.reconnect_initial),
                reconnect_max_ms: millis(self.reconnect_max),
            });
        }
        self.check_gossip()?;
        self.check_seeded()?;
        self.check_etcd()?;
        self.check_quorum()?;
        if self.host_mode == HostMode::Host && !self.eligible {
            return Err(ConfigError::HostNotEligible);
        }
        Ok(self)
    }
}

impl Config {
    fn check_gossip(&self) -> Result<(), ConfigError> {
        self.windows.check()?;
        if !matches!(self.strategy, Strategy::Gossip { .. }) {
            return Ok(());
        }
        if self.priority != 0 {
            return Err(ConfigError::PriorityWithGossip {
                priority: self.priority,
            });
        }
        if self.quorum.is_static() {
            return Err(ConfigError::StaticQuorumWithGossip);
        }
        Ok(())
    }

    fn check_seeded(&self) -> Result<(), ConfigError> {
        let Strategy::Seeded(rules) = self.strategy else {
            return match self.seeding == Seeding::default() {
                true => Ok(()),
                false => Err(ConfigError::SeededWithoutStrategy),
            };
        };
        rules.intervals.check()?;
        if self.priority != 0 {
            return Err(ConfigError::PriorityWithSeeded {
                priority: self.priority,
            });
        }
        if !self.eligible {
            return Err(ConfigError::NotEligibleWithSeeded);
        }
        if !self.quorum.is_static() {
            return Err(ConfigError::SeededWithoutRoster);
        }
        let seeds = self.seeding.seeds.len();
        if seeds == 0 || seeds > MAX_SEEDS {
            return Err(ConfigError::Seeds { seeds });
        }
        for seed in &self.seeding.seeds {
            parse_target(seed)?;
        }
        Ok(())
    }

    fn check_etcd(&self) -> Result<(), ConfigError> {
        let etcd = match (self.strategy, &self.etcd) {
            (Strategy::Etcd(_), Some(etcd)) => etcd,
            (Strategy::Etcd(_), None) => return Err(ConfigError::EtcdWithoutOptions),
            (_, Some(_)) => return Err(ConfigError::EtcdWithoutStrategy),
            (_, None) => return Ok(()),
        };
        if self.priority != 0 {
            return Err(ConfigError::PriorityWithEtcd {
                priority: self.priority,
            });
        }
        if self.merge_policy != MergePolicy::default() {
            return Err(ConfigError::EtcdWithMergePolicy {
                merge_policy: self.merge_policy,
            });
        }
        if self.authority != Authority::default() {
            return Err(ConfigError::EtcdWithAuthority {
                authority: self.authority,
            });
        }
        let host_mode = self.host_mode;
        if host_mode != HostMode::Off {
            return Err(ConfigError::EtcdWithHost { host_mode });
        }
        if self.quorum.is_static() {
            return Err(ConfigError::StaticQuorumWithEtcd);
        }
        etcd.check()
    }

    fn check_quorum(&self) -> Result<(), ConfigError> {
        let seeded = matches!(self.strategy, Strategy::Seeded(_));
        if !self.quorum.is_static() {
            return match self.state_directory {
                Some(_) if matches!(self.strategy, Strategy::Etcd(_)) => Ok(()),
                Some(_) => Err(ConfigError::StateDirectoryWithoutStatic),
                None => Ok(()),
            };
        }
        let host_mode = self.host_mode;
        match (host_mode == HostMode::Off, seeded) {
            (true, _) => {}
            (false, true) => return Err(ConfigError::SeededWithHost { host_mode }),
            (false, false) => return Err(ConfigError::StaticQuorumWithHost { host_mode }),
        }
        match (self.state_directory.is_some(), seeded) {
            (true, _) => {}
            (false, true) => return Err(ConfigError::SeededWithoutStateDirectory),
            (false, false) => return Err(ConfigError::StaticWithoutStateDirectory),
        }
        Ok(())
    }
}

fn shown_line(line: Option<&str>) -> String {
    line.map_or_else(String::new, |line| {
        format!(" (the line is {})", Quoted(line))
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The first rule that a configuration breaks. Nothing was opened.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A field has a number that means nothing.
    #[error("{field} is {value}; allowed are {allowed}")]
    NotAllowed {
        /// The field, by its name in the header.
        field: &'static str,
        /// The number given.
        value: u32,
        /// The numbers that are allowed, with their meanings.
        allowed: &'static str,
    },
    /// Discovery without a port to do it on.
    #[error(
        "mdns_port is 0, but discovery_mode is {discovery_mode}, which needs a port; give one (5353 and 15353 are common), or discovery_mode 0"
    )]
    DiscoveryWithoutPort {
        /// The mode given.
        discovery_mode: u8,
    },
    /// An election strategy that this build does not have.
    #[error("strategy is {strategy}; there are 0 (raft), 1 (gossip), 2 (seeded) and 3 (etcd)")]
    UnknownStrategy {
        /// The number given.
        strategy: u32,
    },
    /// The etcd strategy in a build without it.
    #[error(
        "strategy is 3 (etcd), which this build of the library does not have; load the one for servers, which `make server` builds, or give another strategy"
    )]
    EtcdNotBuilt,
    /// The options of the etcd strategy with another.
    #[error("etcd is set, but strategy is not 3 (etcd); give NULL, or strategy 3")]
    EtcdWithoutStrategy,
    /// The etcd strategy without its options.
    #[error(
        "etcd is NULL, but strategy 3 (etcd) needs it; give an EtcdOptions with the endpoints of the cluster and a prefix"
    )]
    EtcdWithoutOptions,
    /// A preference that etcd does not know.
    #[error(
        "priority is {priority}, but strategy 3 (etcd) has no priorities; give 0, or strategy 0"
    )]
    PriorityWithEtcd {
        /// The number given.
        priority: i32,
    },
    /// A rule for leaders that meet, where none do.
    #[error(
        "merge_policy is {}, but with strategy 3 (etcd) the cluster alone decides who leads; give 0, or another strategy",
        *merge_policy as u8
    )]
    EtcdWithMergePolicy {
        /// The policy given.
        merge_policy: MergePolicy,
    },
    /// A rule for SetLeader, which there is not.
    #[error(
        "set_leader_authority is {}, but with strategy 3 (etcd) nobody may call SetLeader; give 0, or another strategy",
        *authority as u8
    )]
    EtcdWithAuthority {
        /// The rule given.
        authority: Authority,
    },
    /// The etcd strategy and a fixed host exclude each other.
    #[error(
        "strategy is 3 (etcd), but host_mode is {}, and a room with a fixed host holds no elections; give host_mode 0, or another strategy",
        *host_mode as u8
    )]
    EtcdWithHost {
        /// The mode given.
        host_mode: HostMode,
    },
    /// Votes of members, where etcd decides.
    #[error(
        "quorum_policy is 1 (static), but with strategy 3 (etcd) no member votes; give quorum_policy 0, or strategy 0"
    )]
    StaticQuorumWithEtcd,
    /// A list of voters, where nobody votes.
    #[error(
        "quorum_roster is set, but with strategy 3 (etcd) no member votes; give NULL, or strategy 0"
    )]
    RosterWithEtcd,
    /// No endpoints, or too many.
    #[error(
        "etcd.endpoints names {endpoints} servers; give 1 to {MAX_ETCD_ENDPOINTS}, one per line"
    )]
    EtcdEndpoints {
        /// How many were given.
        endpoints: usize,
    },
    /// An endpoint cannot be dialled.
    #[error(
        "etcd.endpoints: {} {fault}; give http://host:port or https://host:port",
        Quoted(endpoint)
    )]
    EtcdEndpoint {
        /// The line.
        endpoint: String,
        /// What is wrong with it.
        fault: String,
    },
    /// Some endpoints are encrypted.
    #[error(
        "etcd.endpoints has http:// and https:// endpoints; give one kind, so that nothing goes unencrypted unnoticed"
    )]
    EtcdMixedEndpoints,
    /// The prefix cannot be used.
    #[error(
        "etcd.prefix {} {fault}; give 1 to {MAX_ETCD_PREFIX_BYTES} bytes without control characters and without a slash at either end",
        Quoted(prefix)
    )]
    EtcdPrefix {
        /// The prefix.
        prefix: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// A lease of that length is not to be had.
    #[error(
        "etcd.ttl_seconds is {seconds}; allowed are {} to {}",
        ETCD_TTL_SECONDS.start(),
        ETCD_TTL_SECONDS.end()
    )]
    EtcdTtl {
        /// The number given.
        seconds: u64,
    },
    /// What others read of the leader cannot be read.
    #[error(
        "etcd.address {} is too long or contains a control character; give at most {MAX_ETCD_ADDRESS_BYTES} bytes without these, or NULL for this member's own address",
        Quoted(address)
    )]
    EtcdAddress {
        /// The address.
        address: String,
    },
    /// A field that says nothing without another one.
    #[error("{set} is set, but {missing} is not; give both, or neither")]
    EtcdHalf {
        /// The field that is set.
        set: &'static str,
        /// The field that belongs to it.
        missing: &'static str,
    },
    /// A file for encrypted connections, without these.
    #[error(
        "{field} is set, but etcd.endpoints are http://, which nothing encrypts; give https:// endpoints, or NULL"
    )]
    EtcdFileWithoutTls {
        /// The field.
        field: &'static str,
    },
    /// Flags of a strategy that has none.
    #[error(
        "strategy_flags is {flags}, but strategy 0 (raft) has no flags; give 0, or another strategy"
    )]
    FlagsWithRaft {
        /// The flags given.
        flags: u32,
    },
    /// A preference that gossip would not look at.
    #[error(
        "priority is {priority}, but strategy 1 (gossip) has no priorities; give 0, or strategy 0"
    )]
    PriorityWithGossip {
        /// The number given.
        priority: i32,
    },
    /// Votes of a fixed number of voters, where nobody votes.
    #[error(
        "quorum_policy is 1 (static), but strategy 1 (gossip) counts no votes; give quorum_policy 0, or strategy 0"
    )]
    StaticQuorumWithGossip,
    /// A window of gossip is too short or too long.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// An interval of the seeded strategy is too short.
    #[error("seeded.{0}")]
    Interval(#[from] IntervalError),
    /// The seeded strategy without voters.
    #[error(
        "quorum_roster is NULL, but strategy 2 (seeded) needs it; give the ids of all voters of the cluster, one per line, 1 to {MAX_ROSTER_VOTERS}"
    )]
    SeededWithoutRoster,
    /// No seeds, or too many.
    #[error("seeded.seeds names {seeds} addresses; give 1 to {MAX_SEEDS}, one per line")]
    Seeds {
        /// How many were given.
        seeds: usize,
    },
    /// The address of a seed cannot be dialled.
    #[error("seeded.seeds: {0}")]
    Seed(#[from] TargetError),
    /// The options of a strategy that is not the room's.
    #[error("seeded is set, but strategy is not 2 (seeded); give NULL, or strategy 2")]
    SeededWithoutStrategy,
    /// The seeded strategy without its options.
    #[error(
        "seeded is NULL, but strategy 2 (seeded) needs it; give a SeededOptions with the addresses of the seeds"
    )]
    SeededWithoutOptions,
    /// A preference that a seeded cluster would not look at.
    #[error(
        "priority is {priority}, but strategy 2 (seeded) has no priorities; give 0, or strategy 0"
    )]
    PriorityWithSeeded {
        /// The number given.
        priority: i32,
    },
    /// A voter that may not lead: the roster alone says who votes and leads.
    #[error(
        "eligible is 0, but with strategy 2 (seeded) quorum_roster says who votes and may lead; give 1, and leave the ids of observers out of the roster"
    )]
    NotEligibleWithSeeded,
    /// The seeded strategy and a fixed host exclude each other.
    #[error(
        "strategy is 2 (seeded), but host_mode is {}, and a room with a fixed host holds no elections; give host_mode 0, or another strategy",
        *host_mode as u8
    )]
    SeededWithHost {
        /// The mode given.
        host_mode: HostMode,
    },
    /// The seeded strategy without a place for its state.
    #[error(
        "state_directory is NULL, but strategy 2 (seeded) needs one; give an existing directory, where this member's votes survive a restart"
    )]
    SeededWithoutStateDirectory,
    /// A static quorum of nobody.
    #[error(
        "quorum_roster is NULL, but quorum_policy 1 (static) needs it; give the ids of all voters of the room, one per line, 1 to {MAX_ROSTER_VOTERS}"
    )]
    StaticWithoutRoster,
    /// The list of voters is none.
    #[error("quorum_roster cannot be used: {source}{}", shown_line(line.as_deref()))]
    Roster {
        /// What is wrong with it.
        source: RosterError,
        /// The line that is wrong, where it is one line.
        line: Option<String>,
    },
    /// A number of voters that is not that of the list.
    #[error(
        "quorum_voters is {voters}, but quorum_roster names {named} voters; give {named}, or 0 to count the roster"
    )]
    QuorumVoters {
        /// The number given.
        voters: u32,
        /// How many voters the list names.
        named: usize,
    },
    /// A list of voters that nobody would look at.
    #[error(
        "quorum_roster is set, but quorum_policy 0 (dynamic) counts the connected members; give NULL, or quorum_policy 1"
    )]
    RosterWithoutStatic,
    /// A number of voters that nobody would look at.
    #[error(
        "quorum_voters is {voters}, but quorum_policy 0 (dynamic) counts the connected members; give 0, or quorum_policy 1"
    )]
    VotersWithoutStatic {
        /// The number given.
        voters: u32,
    },
    /// A fixed host that may not lead.
    #[error(
        "eligible is 0, but host_mode 1 (host) makes this member the only one that leads; give eligible 1, or another host_mode"
    )]
    HostNotEligible,
    /// A static quorum and a fixed host exclude each other.
    #[error(
        "quorum_policy is 1 (static), but host_mode is {}, and a room with a fixed host holds no elections; give host_mode 0, or quorum_policy 0",
        *host_mode as u8
    )]
    StaticQuorumWithHost {
        /// The mode given.
        host_mode: HostMode,
    },
    /// A static quorum without a place for its state.
    #[error(
        "state_directory is NULL, but quorum_policy 1 (static) needs one; give an existing directory, where this member's votes survive a restart"
    )]
    StaticWithoutStateDirectory,
    /// A place for a state that there is not.
    #[error(
        "state_directory is set, but quorum_policy 0 (dynamic) stores nothing; give NULL, or quorum_policy 1"
    )]
    StateDirectoryWithoutStatic,
    /// A field that must be above zero is zero.
    #[error("{field} is 0; it must be at least 1")]
    Zero {
        /// The field, by its name in the header.
        field: &'static str,
    },
    /// The shortest election timeout must be longer than a heartbeat interval.
    #[error(
        "election_timeout_min_ms {election_timeout_min_ms} is not above heartbeat_interval_ms {heartbeat_interval_ms}; raise the first or lower the second"
    )]
    ElectionNotAboveHeartbeat {
        /// Shortest election timeout, in milliseconds.
        election_timeout_min_ms: u64,
        /// Heartbeat interval, in milliseconds.
        heartbeat_interval_ms: u64,
    },
    /// The shortest election timeout must not be longer than the longest.
    #[error(
        "election_timeout_min_ms {election_timeout_min_ms} is above election_timeout_max_ms {election_timeout_max_ms}; lower the first or raise the second"
    )]
    ElectionMinAboveMax {
        /// Shortest election timeout, in milliseconds.
        election_timeout_min_ms: u64,
        /// Longest election timeout, in milliseconds.
        election_timeout_max_ms: u64,
    },
    /// The first wait must not be longer than the longest.
    #[error(
        "reconnect_initial_ms {reconnect_initial_ms} is above reconnect_max_ms {reconnect_max_ms}; lower the first or raise the second"
    )]
    ReconnectInitialAboveMax {
        /// First wait before a reconnection, in milliseconds.
        reconnect_initial_ms: u64,
        /// Longest wait before a reconnection, in milliseconds.
        reconnect_max_ms: u64,
    },
}

impl Coded for ConfigError {
    fn code(&self) -> Code {
        match self {
            Self::UnknownStrategy { .. } | Self::EtcdNotBuilt => Code::NotSupported,
            _ => Code::InvalidArgument,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_keep_their_own_rules() {
        assert_eq!(Config::default().validated(), Ok(Config::default()));
        assert_eq!(Config::classic().validated(), Ok(Config::classic()));
        assert_eq!(Config::default().incoming_queue_capacity, 4096);
        assert_eq!(Config::classic().incoming_queue_capacity, 256);
    }

    #[test]
    fn what_is_secret_is_not_shown() {
        let config = Config {
            secret: Secret::new(b"hunter2"),
            ..Config::default()
        };
        let shown = format!("{config:?}");
        assert!(shown.contains("secret: Some(Secret(7 bytes))"), "{shown}");
        assert_eq!(Secret::new(b""), None);
    }
}
