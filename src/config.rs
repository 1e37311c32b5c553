//! The room's settings, which are checked once, on entry.

mod error;
mod relays;
mod strategies;
mod turn;

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::core::election::Entry;
use crate::core::election::gossip::Windows;
use crate::core::election::seeded::Seeding;
use crate::core::quorum::Quorum;
use crate::core::wire::{Authority, HostMode, MergePolicy, Strategy, Topology};

pub use crate::state::limits::Options as StateOptions;
pub use error::ConfigError;
pub use relays::{Paths, Relay, RelayFault, RelaysError};
pub use strategies::{
    ETCD_TTL_SECONDS, Etcd, EtcdIdentity, EtcdLogin, EtcdSettings, MAX_ETCD_ADDRESS_BYTES,
    MAX_ETCD_ENDPOINTS, MAX_ETCD_PREFIX_BYTES, MAX_SEEDS,
};
pub use turn::{MAX_TURN_SERVERS, TurnError, TurnLineFault, TurnServer, TurnTransport};

/// Default limit of a queue in bytes, per peer and for the host.
pub const DEFAULT_QUEUE_BYTES: usize = 4 * 1024 * 1024;
/// Default limit of each queue in messages, in a room without a configuration: enough for a loading screen of 30 s at
/// 60 messages a second.
pub const DEFAULT_QUEUE_MESSAGES: usize = 4096;
/// Default time for which a lost member's place is kept.
pub const DEFAULT_MEMBER_HOLD: Duration = Duration::from_secs(60);
/// Default of [`Config::carry_bytes_per_second`].
pub const DEFAULT_CARRY_BYTES_PER_SECOND: u32 = 128 * 1024;
/// Lowest setting of [`Config::carry_bytes_per_second`] but 0: a full packet a second.
pub const MIN_CARRY_BYTES_PER_SECOND: u32 = 1500;
/// Shortest setting of [`Config::yield_after`].
pub const MIN_YIELD_AFTER: Duration = Duration::from_secs(1);
/// Settings of [`StateOptions::tail_entries`].
pub const STATE_TAIL_ENTRIES: RangeInclusive<u32> = 256..=65_536;
/// Settings of [`StateOptions::tail_bytes`].
pub const STATE_TAIL_BYTES: RangeInclusive<u32> = 64 * 1024..=64 * 1024 * 1024;
/// Settings of [`StateOptions::max_snapshot_bytes`].
pub const STATE_SNAPSHOT_BYTES: RangeInclusive<u32> = 0..=64 * 1024 * 1024;
/// Longest room secret, in bytes.
pub const MAX_SECRET_BYTES: usize = 1024;
/// Longest identity key, in bytes; one of Ed25519 in PKCS#8 has less than 100.
pub const MAX_IDENTITY_KEY_BYTES: usize = 1024;

/// Checked settings of a room. Every duration is above zero, and the rules of [`Config::validated`] hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Time between two heartbeats.
    pub heartbeat_interval: Duration,
    /// Number of missed heartbeats after which a peer counts as lost.
    pub heartbeat_timeout_multiplier: u32,
    /// Shortest election timeout; raised to [`Config::heartbeat_timeout`] where that is longer.
    pub election_timeout_min: Duration,
    /// Longest election timeout; raised by as much as the shortest.
    pub election_timeout_max: Duration,
    /// Longest message that is sent or accepted, in bytes.
    pub max_message_size: usize,
    /// Payloads longer than this are sent compressed when that saves a quarter, in bytes; 0 tries all.
    pub compression_threshold: usize,
    /// Limit of the time to enter a room, name resolution included.
    pub handshake_timeout: Duration,
    /// Longest time that a peer's network thread may read nothing before its link is dropped.
    pub write_timeout: Duration,
    /// Messages queued per peer.
    pub send_queue_capacity: usize,
    /// Messages queued for the host.
    pub incoming_queue_capacity: usize,
    /// Bytes queued per peer, and for the host.
    pub queue_bytes: usize,
    /// Whether messages wait, although there is an event handler, until the host takes them.
    pub hold_messages: bool,
    /// Most other members linked at a time.
    pub max_connections: usize,
    /// UDP port of multicast discovery; `None` is off.
    pub mdns_port: Option<u16>,
    /// Discovery mode, if discovery has a port.
    pub discovery: DiscoveryMode,
    /// This machine's address to bind; `None` is every address, IPv6 and IPv4.
    pub bind_address: Option<IpAddr>,
    /// The UDP port to bind; 0 is any free one.
    pub bind_port: u16,
    /// The secret that members must know besides the session id.
    pub secret: Option<Secret>,
    /// The Ed25519 private key in PKCS#8 (DER) that identifies this member; `None` makes a new one.
    pub identity_key: Option<Secret>,
    /// Thread that runs the host's callbacks.
    pub dispatch_mode: DispatchMode,
    /// Election strategy of the room.
    pub strategy: Strategy,
    /// The windows of the gossip strategy.
    pub windows: Windows,
    /// The seeds of the seeded strategy, as [`parse_target`](crate::target::parse_target) reads them, and whether this
    /// member is one. Its `address` may be empty: then the first of this member's addresses decides between two
    /// leaders.
    pub seeding: Seeding,
    /// The options of the etcd strategy; `None` with any other.
    pub etcd: Option<Etcd>,
    /// Leader that stays when two sides merge.
    pub merge_policy: MergePolicy,
    /// Members that count for a majority.
    pub quorum: Quorum,
    /// Directory of the state that must survive the process; it exists and is writable. Required with a static quorum,
    /// optional with the etcd strategy, else `None`.
    pub state_directory: Option<PathBuf>,
    /// Path of a trace of the elections, for people to read.
    pub trace_path: Option<PathBuf>,
    /// Members that may name a leader.
    pub authority: Authority,
    /// Whether one fixed member leads, and whether it is this one.
    pub host_mode: HostMode,
    /// Links between members: a star has a fixed host.
    pub topology: Topology,
    /// Longest time that the host may take no events while this member leads: then it yields to a member whose host
    /// does. `None` is unlimited.
    pub yield_after: Option<Duration>,
    /// Entry of this member into the room.
    pub entry: Entry,
    /// Most other members of the room while this member leads it and mmn_set_max_peers was not called; 0 is no limit.
    pub max_peers: u32,
    /// Time for which a lost member's place is kept.
    pub member_hold: Duration,
    /// Whether this member may lead; one that may not is an observer.
    pub eligible: bool,
    /// The election priority; higher is preferred.
    pub priority: i32,
    /// Whether the room elects a leader by itself.
    pub auto_election_enabled: bool,
    /// Behaviour when a leader that was set by hand is lost.
    pub manual_override_recovery: ManualOverrideRecovery,
    /// Whether lost links are dialled again.
    pub auto_reconnect_enabled: bool,
    /// Wait before the first dial after a loss; doubles from there.
    pub reconnect_initial: Duration,
    /// Longest wait between two dials.
    pub reconnect_max: Duration,
    /// Dials after a loss before the peer is given up; `None` is unlimited.
    pub reconnect_max_retries: Option<u32>,
    /// Whether the leader of a centralized room relays broadcasts to all members but their origin.
    pub centralized_auto_forward: bool,
    /// Bytes a second that this member forwards in all between members without a direct path while it does not lead; 0
    /// forwards nothing then. A leader forwards without a limit.
    pub carry_bytes_per_second: u32,
    /// Relays, in order of preference, at most [`MAX_RELAYS`](crate::core::path::MAX_RELAYS). With one, the session id is a
    /// [`RoomCode`](crate::room_code::RoomCode).
    pub relays: Vec<Relay>,
    /// Paths that this member uses.
    pub paths: Paths,
    /// Whether this member asks its router for a port that leads to it.
    pub port_mapping: bool,
    /// TURN servers, in order of preference, at most [`MAX_TURN_SERVERS`].
    pub turn: Vec<TurnServer>,
    /// The limits of the room's state, equal for all members; `None` is a room without one.
    pub state: Option<StateOptions>,
}

/// Thread that runs the host's callbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DispatchMode {
    /// On a thread of the library.
    #[default]
    Thread,
    /// On the thread of the host that calls mmn_poll, during the call.
    Poll,
}

/// Behaviour when a leader that was set by hand is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManualOverrideRecovery {
    /// No election until SetLeader or EnableAutoLeaderElection is called.
    Hold,
    /// An election as after any loss.
    AutoElect,
}

/// Mode of discovery in the local network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiscoveryMode {
    /// Off: sends no packet and reads none.
    #[default]
    Off,
    /// Announces this member, and reports the members that it finds to the host.
    Report,
    /// Announces this member, and dials the members that it finds.
    Connect,
}

/// Bytes that no log and no message shows, and that are wiped on drop. Never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// `None` if there are no bytes.
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
            hold_messages: false,
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
            carry_bytes_per_second: DEFAULT_CARRY_BYTES_PER_SECOND,
            relays: Vec::new(),
            paths: Paths::default(),
            port_mapping: false,
            turn: Vec::new(),
            state: None,
        }
    }

    /// Whether this member links to the fixed host alone.
    pub fn is_star_guest(&self) -> bool {
        self.topology == Topology::Star && self.host_mode == HostMode::Guest
    }

    /// Silence after which a peer counts as lost: the interval times the multiplier.
    pub fn heartbeat_timeout(&self) -> Duration {
        self.heartbeat_interval
            .saturating_mul(self.heartbeat_timeout_multiplier)
    }

    /// Checks the settings against each other, for settings made by hand:
    ///
    /// - Fields that must be above zero are.
    /// - The shortest election timeout is above the heartbeat interval and not above the longest.
    /// - The first wait before a reconnection is not above the longest.
    /// - A static quorum has voters, a state directory and no fixed host.
    /// - A fixed host may lead.
    /// - Gossip has neither a static quorum nor a priority, and windows that a clock can count.
    /// - The options of the seeded and the etcd strategy are present with these, and usable.
    /// - A member carries nothing, or at least a full packet a second.
    /// - There are no more relays than allowed, none with etcd, and links over relays alone need one.
    /// - The limits of the room's state are within theirs.
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
        self.check_relays()?;
        self.check_turn()?;
        self.check_state()?;
        let carried = self.carry_bytes_per_second;
        if (1..MIN_CARRY_BYTES_PER_SECOND).contains(&carried) {
            return Err(ConfigError::CarriesTooLittle {
                carry_bytes_per_second: carried,
            });
        }
        if let Some(after) = self.yield_after
            && after < MIN_YIELD_AFTER
        {
            return Err(ConfigError::YieldAfter {
                yield_after_ms: after.as_millis(),
            });
        }
        Ok(self)
    }

    fn check_state(&self) -> Result<(), ConfigError> {
        let Some(limits) = self.state else {
            return Ok(());
        };
        for (field, value, allowed) in [
            ("tail_entries", limits.tail_entries, STATE_TAIL_ENTRIES),
            ("tail_bytes", limits.tail_bytes, STATE_TAIL_BYTES),
            (
                "max_snapshot_bytes",
                limits.max_snapshot_bytes,
                STATE_SNAPSHOT_BYTES,
            ),
        ] {
            if !allowed.contains(&value) {
                let (least, most) = allowed.into_inner();
                return Err(ConfigError::StateLimit {
                    field,
                    value,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }

    /// An entry other than `Any` needs a room in which every member may come to lead by itself.
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

/// The lines of a list that are not empty, without the spaces around them, with their numbers from 1.
fn numbered_lines(text: &str) -> Vec<(usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.filter(|(_, line)| !line.is_empty()).collect()
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
