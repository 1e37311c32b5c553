//! The room's settings, checked once where they enter.

mod error;
mod strategies;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::core::election::Entry;
use crate::core::election::gossip::Windows;
use crate::core::election::seeded::Seeding;
use crate::core::quorum::Quorum;
use crate::core::wire::{Authority, HostMode, MergePolicy, Strategy, Topology};

pub use error::ConfigError;
pub use strategies::{
    ETCD_TTL_SECONDS, Etcd, EtcdIdentity, EtcdLogin, EtcdSettings, MAX_ETCD_ADDRESS_BYTES,
    MAX_ETCD_ENDPOINTS, MAX_ETCD_PREFIX_BYTES, MAX_SEEDS,
};

/// Bytes that a queue holds unless an option says otherwise, per peer and for the host.
pub const DEFAULT_QUEUE_BYTES: usize = 4 * 1024 * 1024;
/// Messages that each queue holds when the room is opened without a configuration: a loading screen of 30 s
/// at 60 messages a second fits.
pub const DEFAULT_QUEUE_MESSAGES: usize = 4096;
/// How long a lost member's place is kept unless an option says otherwise.
pub const DEFAULT_MEMBER_HOLD: Duration = Duration::from_secs(60);
/// Shortest silence of a host for which a leader yields.
pub const MIN_YIELD_AFTER: Duration = Duration::from_secs(1);
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
    /// Payloads longer than this are sent compressed when that saves a quarter, in bytes; 0 tries all.
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
    /// The seeds of the seeded strategy, as [`parse_target`](crate::target::parse_target) reads them, and whether this member is one. Its `address` may be
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
    /// Who links to whom: a star has a fixed host.
    pub topology: Topology,
    /// How long the host may take no events while this member leads: then it yields to a member whose host does. `None` is
    /// for ever.
    pub yield_after: Option<Duration>,
    /// How this member enters the room.
    pub entry: Entry,
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
            topology: Topology::default(),
            yield_after: None,
            entry: Entry::default(),
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

    /// Whether this member links to the fixed host alone.
    pub fn is_star_guest(&self) -> bool {
        self.topology == Topology::Star && self.host_mode == HostMode::Guest
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
        if self.topology == Topology::Star && self.host_mode == HostMode::Off {
            return Err(ConfigError::StarWithoutHost);
        }
        self.check_entry()?;
        if let Some(after) = self.yield_after
            && after < MIN_YIELD_AFTER
        {
            return Err(ConfigError::YieldAfter {
                yield_after_ms: after.as_millis(),
            });
        }
        Ok(self)
    }

    /// Only where every member may come to lead by itself is there anything to decide.
    fn check_entry(&self) -> Result<(), ConfigError> {
        if self.entry == Entry::Any {
            return Ok(());
        }
        let with = match self.strategy {
            _ if self.host_mode != HostMode::Off => "a fixed host (host_mode)",
            Strategy::Seeded(_) => "strategy 2 (seeded)",
            Strategy::Etcd(_) => "strategy 3 (etcd)",
            _ if self.quorum.is_static() => "quorum_policy 1 (static)",
            _ if self.entry == Entry::Create && !self.eligible => {
                return Err(ConfigError::CreatorNotEligible);
            }
            _ => return Ok(()),
        };
        Err(ConfigError::EntryWith {
            entry: self.entry,
            with,
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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
    fn secrets_are_not_shown() {
        let config = Config {
            secret: Secret::new(b"hunter2"),
            ..Config::default()
        };
        let shown = format!("{config:?}");
        assert!(shown.contains("secret: Some(Secret(7 bytes))"), "{shown}");
        assert_eq!(Secret::new(b""), None);
    }
}
