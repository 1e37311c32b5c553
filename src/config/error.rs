//! Rules that settings may break.

use thiserror::Error;

use super::relays::RelaysError;
use super::strategies::{
    ETCD_TTL_SECONDS, MAX_ETCD_ADDRESS_BYTES, MAX_ETCD_ENDPOINTS, MAX_ETCD_PREFIX_BYTES, MAX_SEEDS,
};
use super::turn::TurnError;
use super::{MIN_CARRY_BYTES_PER_SECOND, MIN_YIELD_AFTER};
use crate::core::election::Entry;
use crate::core::election::gossip::WindowError;
use crate::core::election::seeded::IntervalError;
use crate::core::quorum::{MAX_ROSTER_VOTERS, RosterError};
use crate::core::wire::{Authority, HostMode, MergePolicy};
use crate::error::{Code, Coded};
use crate::quoted::Quoted;
use crate::target::TargetError;

/// The first rule that a configuration breaks. Nothing was opened.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A field has a number without a meaning.
    #[error("{field} is {value}; allowed are {allowed}")]
    NotAllowed {
        /// The field, by its name in the header.
        field: &'static str,
        /// The number given.
        value: u32,
        /// The numbers that are allowed, with their meanings.
        allowed: &'static str,
    },
    /// Discovery without a port.
    #[error(
        "mdns_port is 0, but discovery_mode is {discovery_mode}, which needs a port; give one (5353 and 15353 are common), or discovery_mode 0"
    )]
    DiscoveryWithoutPort {
        /// The mode given.
        discovery_mode: u32,
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
        "etcd is NULL, but strategy 3 (etcd) needs it; give its settings, with the endpoints of the cluster and a prefix"
    )]
    EtcdWithoutOptions,
    /// A priority, which etcd does not support.
    #[error(
        "priority is {priority}, but strategy 3 (etcd) has no priorities; give 0, or strategy 0"
    )]
    PriorityWithEtcd {
        /// The number given.
        priority: i32,
    },
    /// A merge policy, with a strategy that merges no leaders.
    #[error(
        "merge_policy is {}, but with strategy 3 (etcd) the cluster alone decides who leads; give 0, or another strategy",
        *merge_policy as u8
    )]
    EtcdWithMergePolicy {
        /// The policy given.
        merge_policy: MergePolicy,
    },
    /// A rule for SetLeader, with a strategy without SetLeader.
    #[error(
        "set_leader_authority is {}, but with strategy 3 (etcd) no member may name a leader; give 0, or another strategy",
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
    /// A static quorum, though etcd decides.
    #[error(
        "quorum_policy is 1 (static), but with strategy 3 (etcd) no member votes; give quorum_policy 0, or strategy 0"
    )]
    StaticQuorumWithEtcd,
    /// A roster with a strategy without votes.
    #[error(
        "quorum_roster is set, but with strategy 3 (etcd) no member votes; give NULL, or strategy 0"
    )]
    RosterWithEtcd,
    /// No endpoints, or too many.
    #[error(
        "etcd.endpoints names {endpoints} servers; give 1 to {MAX_ETCD_ENDPOINTS}, one per line"
    )]
    EtcdEndpoints {
        /// Number of endpoints given.
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
        /// Its fault.
        fault: String,
    },
    /// Only some endpoints are encrypted.
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
        /// Its fault.
        fault: &'static str,
    },
    /// The time to live of a lease is out of range.
    #[error(
        "etcd.ttl_seconds is {seconds}; allowed are {} to {}",
        ETCD_TTL_SECONDS.start(),
        ETCD_TTL_SECONDS.end()
    )]
    EtcdTtl {
        /// The number given.
        seconds: u64,
    },
    /// The leader's address cannot be shown to clients of etcd.
    #[error(
        "etcd.address {} is too long or contains a control character; give at most {MAX_ETCD_ADDRESS_BYTES} bytes without these, or NULL for this member's own address",
        Quoted(address)
    )]
    EtcdAddress {
        /// The address.
        address: String,
    },
    /// A field that needs another one.
    #[error("{set} is set, but {missing} is not; give both, or neither")]
    EtcdHalf {
        /// The field that is set.
        set: &'static str,
        /// The field that belongs to it.
        missing: &'static str,
    },
    /// A file for encrypted connections, with endpoints that are not encrypted.
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
    /// A priority, which gossip ignores.
    #[error(
        "priority is {priority}, but strategy 1 (gossip) has no priorities; give 0, or strategy 0"
    )]
    PriorityWithGossip {
        /// The number given.
        priority: i32,
    },
    /// A static quorum, with a strategy without votes.
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
        /// Number of addresses given.
        seeds: usize,
    },
    /// The address of a seed cannot be dialled.
    #[error("seeded.seeds: {0}")]
    Seed(#[from] TargetError),
    /// Options of a strategy that is not the room's.
    #[error("seeded is set, but strategy is not 2 (seeded); give NULL, or strategy 2")]
    SeededWithoutStrategy,
    /// The seeded strategy without its options.
    #[error(
        "seeded is NULL, but strategy 2 (seeded) needs it; give its settings, with the addresses of the seeds"
    )]
    SeededWithoutOptions,
    /// A priority, which a seeded cluster ignores.
    #[error(
        "priority is {priority}, but strategy 2 (seeded) has no priorities; give 0, or strategy 0"
    )]
    PriorityWithSeeded {
        /// The number given.
        priority: i32,
    },
    /// A voter that may not lead: the roster alone decides which members vote and lead.
    #[error(
        "eligible is 0, but with strategy 2 (seeded) quorum_roster names the voters, which alone may lead; give 1, and leave the ids of observers out of the roster"
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
    /// The seeded strategy without a state directory.
    #[error(
        "state_directory is NULL, but strategy 2 (seeded) needs one; give an existing directory, where this member's votes survive a restart"
    )]
    SeededWithoutStateDirectory,
    /// A static quorum without voters.
    #[error(
        "quorum_roster is NULL, but quorum_policy 1 (static) needs it; give the ids of all voters of the room, one per line, 1 to {MAX_ROSTER_VOTERS}"
    )]
    StaticWithoutRoster,
    /// The roster is malformed.
    #[error("quorum_roster cannot be used: {source}{}", shown_line(line.as_deref()))]
    Roster {
        /// Its fault.
        source: RosterError,
        /// The faulty line, if the fault is in one line.
        line: Option<String>,
    },
    /// A number of voters that differs from the roster's.
    #[error(
        "quorum_voters is {voters}, but quorum_roster names {named} voters; give {named}, or 0 to count the roster"
    )]
    QuorumVoters {
        /// The number given.
        voters: u32,
        /// Number of voters in the roster.
        named: usize,
    },
    /// A roster that no policy uses.
    #[error(
        "quorum_roster is set, but quorum_policy 0 (dynamic) counts the connected members; give NULL, or quorum_policy 1"
    )]
    RosterWithoutStatic,
    /// A number of voters that no policy uses.
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
    /// A star without a fixed host.
    #[error(
        "topology is 1 (star), but host_mode is 0 (off), and a star has a fixed host to which all guests link; give host_mode 1 or 2, or topology 0"
    )]
    StarWithoutHost,
    /// A static quorum and a fixed host exclude each other.
    #[error(
        "quorum_policy is 1 (static), but host_mode is {}, and a room with a fixed host holds no elections; give host_mode 0, or quorum_policy 0",
        *host_mode as u8
    )]
    StaticQuorumWithHost {
        /// The mode given.
        host_mode: HostMode,
    },
    /// A static quorum without a state directory.
    #[error(
        "state_directory is NULL, but quorum_policy 1 (static) needs one; give an existing directory, where this member's votes survive a restart"
    )]
    StaticWithoutStateDirectory,
    /// A state directory without state to keep.
    #[error(
        "state_directory is set, but quorum_policy 0 (dynamic) stores nothing; give NULL, or quorum_policy 1"
    )]
    StateDirectoryWithoutStatic,
    /// Options without the defaults.
    #[error("the options are zero; fill them with the defaults first, then change what you need")]
    Zeroed,
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
    /// A limit so short that a host which takes its events now and then would lose its leadership.
    #[error(
        "yield_after_ms is {yield_after_ms}; give {} or more, or 0 to lead on",
        MIN_YIELD_AFTER.as_millis()
    )]
    YieldAfter {
        /// The number given.
        yield_after_ms: u128,
    },
    /// A limit too low for one packet a second: the number is in bytes.
    #[error(
        "carry_bytes_per_second is {carry_bytes_per_second}; give {} or more, or 0 to carry for no other members",
        MIN_CARRY_BYTES_PER_SECOND
    )]
    CarriesTooLittle {
        /// The number given.
        carry_bytes_per_second: u32,
    },
    /// A limit of the room's state that is too low or too high.
    #[error("state.{field} is {value}; give {least} to {most}")]
    StateLimit {
        /// The field, by its name in the header.
        field: &'static str,
        /// The number given.
        value: u32,
        /// The lowest number allowed.
        least: u32,
        /// The highest number allowed.
        most: u32,
    },
    /// The list of relays is malformed.
    #[error(transparent)]
    Relays(#[from] RelaysError),
    /// Relays for members that servers' addresses connect.
    #[error(
        "relays is set, but strategy 3 (etcd) is for servers, which reach each other's addresses; give NULL, or another strategy"
    )]
    RelaysWithEtcd,
    /// The list of TURN servers is malformed.
    #[error(transparent)]
    Turn(#[from] TurnError),
    /// A TURN server for members that servers' addresses connect.
    #[error(
        "turn is set, but strategy 3 (etcd) is for servers, which reach each other's addresses; give NULL, or another strategy"
    )]
    TurnWithEtcd,
    /// No path is left.
    #[error(
        "paths is 1 (relayed), but relays is NULL, and without a relay such a member reaches no other; give relays, or paths 0 (all)"
    )]
    RelayedWithoutRelays,
    /// Discovery shows what the paths are to hide.
    #[error(
        "paths is 1 (relayed), which hides this member's addresses, but discovery_mode is on and announces them in the local network; give discovery_mode 0, or paths 0 (all)"
    )]
    RelayedWithDiscovery,
    /// A mapped port shows what the paths are to hide.
    #[error(
        "paths is 1 (relayed), which hides this member's addresses, but port_mapping is 1 (on) and tells the others one; give port_mapping 0 (off), or paths 0 (all)"
    )]
    RelayedWithPortMapping,
    /// Seeds are dialled at their addresses.
    #[error(
        "paths is 1 (relayed), but members of strategy 2 (seeded) dial the addresses of the seeds; give paths 0 (all), or another strategy"
    )]
    RelayedWithSeeds,
    /// A creator that may not lead.
    #[error(
        "entry is 1 (create), but eligible is 0, and the member that creates a room leads it; give eligible 1, or another entry"
    )]
    CreatorNotEligible,
    /// Another rule decides which member leads first.
    #[error(
        "entry is {}, but with {with} that decides who leads first; give entry 0 (any)",
        *entry as u8
    )]
    EntryWith {
        /// The entry given.
        entry: Entry,
        /// The rule.
        with: &'static str,
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

fn shown_line(line: Option<&str>) -> String {
    line.map_or_else(String::new, |line| {
        format!(" (the line is {})", Quoted(line))
    })
}
