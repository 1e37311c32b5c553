//! All settings of a room in one struct that may grow: `MmnOptions`.

mod settings;
#[cfg(test)]
mod tests;

use std::ffi::{c_char, c_void};
use std::mem::offset_of;
use std::ptr;

use super::etcd::MmnEtcdOptions;
use super::events::{MmnDropCallback, MmnEventCallback};
#[cfg(any(test, feature = "fuzzing"))]
use super::growing::bytes;
use super::growing::{Growing, fill};
#[cfg(any(test, feature = "fuzzing"))]
use super::growing::{MAX_STRUCT_BYTES, read};
use super::guard::command;
use super::seeded::MmnSeededOptions;
use super::state::MmnStateOptions;
use super::values::*;
use crate::config::{
    DEFAULT_CARRY_BYTES_PER_SECOND, DEFAULT_MEMBER_HOLD, DEFAULT_QUEUE_BYTES,
    DEFAULT_QUEUE_MESSAGES,
};
#[cfg(any(test, feature = "fuzzing"))]
use crate::config::{MAX_IDENTITY_KEY_BYTES, MAX_SECRET_BYTES};

pub(super) use settings::{Pointed, config, dispatch_mode, strategy_number, supported};

/// Settings of a room, for mmn_open. Later versions of the library append fields; a field that an
/// older host does not know keeps its default. Begin with the defaults, because 0 is no value for
/// many fields:
///
///     MmnOptions options = {0};
///     options.struct_size = sizeof options;
///     mmn_default_options(&options);
///
/// The library copies what the pointers refer to during the call. The default of each field is in
/// brackets. Times are 1 millisecond to a day, unless a field allows 0.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct MmnOptions {
    /// sizeof(MmnOptions) as the host was compiled, in bytes.
    pub struct_size: u32,
    /// Election strategy of the room: MMN_STRATEGY_RAFT, MMN_STRATEGY_GOSSIP, MMN_STRATEGY_SEEDED
    /// or MMN_STRATEGY_ETCD [MMN_STRATEGY_RAFT]. Any other value is MMN_NOT_SUPPORTED, and so is
    /// MMN_STRATEGY_ETCD in a build without it. The same for all members. With any strategy but
    /// MMN_STRATEGY_RAFT, election_timeout_min_ms, election_timeout_max_ms,
    /// manual_override_recovery, merge_policy and set_leader_authority have no effect. Gossip has
    /// no votes, and mmn_set_gossip_windows sets its times. MMN_STRATEGY_SEEDED needs seeded, which
    /// has its times, quorum_roster and state_directory. It excludes host_mode and eligible 0, and
    /// auto_election has no effect. MMN_STRATEGY_ETCD needs etcd, which has its times. It excludes
    /// host_mode, MMN_QUORUM_STATIC and any merge_policy and set_leader_authority but the defaults.
    /// The members need no link to each other for it: a room of one takes part in the election.
    pub strategy: u32,
    /// The handler of all events of the room, messages included, from the first one on. NULL is
    /// none [NULL].
    pub on_event: MmnEventCallback,
    /// Passed to on_event [NULL].
    pub user_data: *mut c_void,
    /// Called once with user_data, when the room needs it no more; see mmn_set_event_handler.
    /// Without on_event it has no effect. NULL is none [NULL].
    pub drop_fn: MmnDropCallback,
    /// The one address of this machine to use: IPv4 or IPv6, without port or brackets. NULL uses
    /// every address of both kinds [NULL].
    pub bind_address: *const c_char,
    /// The room secret, secret_length bytes, which members must know besides the session id. A dial
    /// between members with different secrets fails with MMN_AUTHENTICATION_FAILED. NULL is no
    /// secret [NULL].
    pub secret: *const u8,
    /// An Ed25519 private key in PKCS#8 (DER), identity_key_length bytes. Pass one to keep this
    /// member's identity from one room to the next. NULL makes a new key at every start [NULL].
    pub identity_key: *const u8,
    /// Directory of the state that must survive the process: the path of an existing directory that
    /// this member can write to. Each session id and peer id has a file of its own there. The file
    /// holds the roster, the votes and, if identity_key is NULL, the private key, which the first
    /// start makes and every later start reuses. A quorum_roster or identity_key that differs from
    /// the file is MMN_INVALID_ARGUMENT. Two processes cannot use one directory as the same member.
    /// Required with MMN_QUORUM_STATIC and MMN_STRATEGY_SEEDED. Allowed with MMN_STRATEGY_ETCD,
    /// where it keeps the lease: a process that restarts within ttl_seconds then leads on and does
    /// not wait for its own earlier key. Else NULL [NULL].
    pub state_directory: *const c_char,
    /// The path of a file for a trace of the room's elections, which `examples/simulate.rs` draws.
    /// The library overwrites the file, writes up to 256 MiB, and records nothing that the host
    /// sends. A path that cannot be written is MMN_INVALID_ARGUMENT. NULL is no trace [NULL].
    pub trace_path: *const c_char,
    /// The voters of a static quorum: 1 to MMN_MAX_QUORUM_VOTERS peer ids, one per line. A space
    /// and the fingerprint of a voter's key may follow its id: the SHA-256 of the public key
    /// (SubjectPublicKeyInfo, DER) in 64 hexadecimal digits. Then only the holder of that key is
    /// that voter. Spaces around a line and empty lines are ignored. The same voters for all
    /// members and for the whole session. A member that is not on the roster never leads and has no
    /// vote. Required with MMN_QUORUM_STATIC and MMN_STRATEGY_SEEDED, else NULL [NULL].
    pub quorum_roster: *const c_char,
    /// The settings of MMN_STRATEGY_SEEDED, which requires them. NULL with any other strategy
    /// [NULL].
    pub seeded: *const MmnSeededOptions,
    /// The settings of MMN_STRATEGY_ETCD, which requires them. NULL with any other strategy [NULL].
    ///
    pub etcd: *const MmnEtcdOptions,
    /// Length of secret in bytes, at most MMN_MAX_SECRET_BYTES. 0 is no secret [0].
    pub secret_length: u32,
    /// Length of identity_key in bytes, at most 1024. 0 makes a new key [0].
    pub identity_key_length: u32,
    /// 1 opens the default room, which the functions without a room act on; its classic callbacks
    /// run before on_event, and times that SetStartupGracePeriod and its like have set replace the
    /// ones of these options. 0 opens a room of its own [0].
    pub is_default: u32,
    /// Thread that runs the callbacks: MMN_DISPATCH_THREAD or MMN_DISPATCH_POLL
    /// [MMN_DISPATCH_THREAD].
    pub dispatch_mode: u32,
    /// The UDP port to bind, at most 65535 [0]. 0 is any free port.
    pub bind_port: u32,
    /// Discovery in the local network: MMN_DISCOVERY_OFF, MMN_DISCOVERY_REPORT or
    /// MMN_DISCOVERY_CONNECT [MMN_DISCOVERY_OFF].
    pub discovery_mode: u32,
    /// UDP port of multicast discovery, at most 65535 [15353]. Above 0 unless discovery_mode is
    /// MMN_DISCOVERY_OFF.
    pub mdns_port: u32,
    /// Most other members connected at a time, 1 to 65535 [64].
    pub max_connections: u32,
    /// Most other members that any member may have, as mmn_set_max_peers sets it, from the room's
    /// first leader on; 0 is no limit [0]. The leader's own value applies until a leader calls
    /// mmn_set_max_peers, so set the same value at all members that may lead.
    pub max_peers: u32,
    /// Longest message to send or accept, in bytes [262144]. Between two peers the smaller of both
    /// values applies.
    pub max_message_size: u32,
    /// Most messages queued for one peer, 1 to 65535 [4096]. A send beyond that returns
    /// MMN_SEND_QUEUE_FULL.
    pub send_queue_capacity: u32,
    /// Most messages queued for the host, 1 to 65535 [4096]. Beyond that, senders wait.
    pub incoming_queue_capacity: u32,
    /// Most bytes queued for one peer, and for the host, besides the limits in messages [4194304].
    /// Above 0. An empty queue accepts one message of any allowed size.
    pub queue_bytes: u32,
    /// Whether messages wait for mmn_take_messages although there is an event handler, for at most 5
    /// seconds after the room opens: 0 no, else yes [0]. For hosts that register their handler of
    /// messages after they open the room.
    pub hold_messages: u32,
    /// Payloads longer than this, in bytes, are compressed if that saves at least a quarter [512].
    /// 0 tries every payload.
    pub compression_threshold: u32,
    /// Time between two heartbeats, in milliseconds [500].
    pub heartbeat_interval_ms: u32,
    /// Heartbeat intervals of silence after which a peer is lost [3].
    pub heartbeat_timeout_multiplier: u32,
    /// Shortest time without a leader before an election, in milliseconds [1500]. Above
    /// heartbeat_interval_ms, at most election_timeout_max_ms. If it is below the product of
    /// heartbeat_interval_ms and heartbeat_timeout_multiplier, the library uses that product, and
    /// raises the longest time by the same amount.
    pub election_timeout_min_ms: u32,
    /// Longest time without a leader before an election, in milliseconds [3000].
    pub election_timeout_max_ms: u32,
    /// Wait before the first dial of a lost peer, in milliseconds [1000]. It doubles with each
    /// failed dial.
    pub reconnect_initial_ms: u32,
    /// Longest wait between two dials of a lost peer, in milliseconds [30000]. At least
    /// reconnect_initial_ms. In the first minute after a loss the waits are shorter
    /// (docs/life-of-a-peer.md, "Reconnection").
    pub reconnect_max_ms: u32,
    /// Dials of a lost peer before the library gives it up [0]. 0 is unlimited.
    pub reconnect_max_retries: u32,
    /// Whether the library dials lost peers again: 0 no, else yes [1].
    pub auto_reconnect: u32,
    /// Time for which the room keeps a lost member's place, in milliseconds [60000]. Above 0. With
    /// MMN_STRATEGY_SEEDED at least until the leader has removed the member from the cluster.
    pub member_hold_ms: u32,
    /// Longest time without an answer after which an mmn_connect ends, in milliseconds [5000]. Each
    /// step that gets an answer renews it, up to three times this in all; the first is the lookup
    /// of a host name.
    pub handshake_timeout_ms: u32,
    /// Longest time that a peer's library may read nothing before this one drops the link, in
    /// milliseconds [5000].
    pub write_timeout_ms: u32,
    /// Whether this member campaigns to become the leader: 0 no, else yes [1].
    pub auto_election: u32,
    /// Whether this member may lead: 0 makes it an observer, else yes [1].
    pub eligible: u32,
    /// Priority of this member in elections: the highest goes first [0]. Must be 0 with any
    /// strategy but MMN_STRATEGY_RAFT.
    pub priority: i32,
    /// Behaviour when a leader named by mmn_set_leader is lost: MMN_RECOVERY_HOLD or
    /// MMN_RECOVERY_AUTO_ELECT [MMN_RECOVERY_HOLD]. With MMN_AUTHORITY_LEADER_ONLY always the
    /// latter.
    pub manual_override_recovery: u32,
    /// Members that may call mmn_set_leader: MMN_AUTHORITY_ANYONE or MMN_AUTHORITY_LEADER_ONLY
    /// [MMN_AUTHORITY_ANYONE]. The same for all members.
    pub set_leader_authority: u32,
    /// Leader that stays when two parts of a room merge: MMN_MERGE_LARGEST_SIDE or
    /// MMN_MERGE_HIGHEST_TERM [MMN_MERGE_LARGEST_SIDE]. The same for all members.
    pub merge_policy: u32,
    /// Members whose majority elects: MMN_QUORUM_DYNAMIC or MMN_QUORUM_STATIC [MMN_QUORUM_DYNAMIC].
    /// The same for all members. A room with a static quorum never has two leaders, and has none
    /// without a majority of the voters in quorum_roster. It excludes MMN_STRATEGY_GOSSIP and
    /// host_mode. With MMN_STRATEGY_SEEDED the quorum is static in any case.
    pub quorum_policy: u32,
    /// 0, or with MMN_QUORUM_STATIC the number of voters in quorum_roster, at most
    /// MMN_MAX_QUORUM_VOTERS [0].
    pub quorum_voters: u32,
    /// Flags of the strategy [0], the same for all members: with MMN_STRATEGY_GOSSIP
    /// MMN_GOSSIP_STRICT_LOWEST or 0; with MMN_STRATEGY_SEEDED the sum of MMN_SEEDED_STRICT_START
    /// and MMN_SEEDED_NEVER_ALONE, one of them, or 0; else 0.
    pub strategy_flags: u32,
    /// Whether one fixed member leads: MMN_HOST_MODE_OFF, MMN_HOST_MODE_HOST or MMN_HOST_MODE_GUEST
    /// [MMN_HOST_MODE_OFF]. The fixed host leads when mmn_open returns,
    /// regardless of auto_election.
    pub host_mode: u32,
    /// Links of the room: MMN_TOPOLOGY_MESH or MMN_TOPOLOGY_STAR [MMN_TOPOLOGY_MESH]. The same for
    /// all members. In a star guests link to the fixed host alone, and everything that they send
    /// each other goes through it, encrypted from end to end. No guest learns the address of
    /// another, and one reachable port, the fixed host's, is enough. There is no host migration. A
    /// star needs host_mode.
    pub topology: u32,
    /// Entry of this member into the room: MMN_ENTRY_ANY, MMN_ENTRY_CREATE or MMN_ENTRY_JOIN
    /// [MMN_ENTRY_ANY]. Use MMN_ENTRY_CREATE behind a button "host a game" and MMN_ENTRY_JOIN
    /// behind "join a game": then a player whose dial fails does not become the leader of a room of
    /// its own, and its MMN_EVENT_LEADER_CHANGED means that it is in a room. Two members that both
    /// join refuse each other with MMN_LOOKING_FOR_ROOM. A member that joins and finds no room for
    /// 10 seconds receives MMN_EVENT_NO_ROOM_FOUND. Once it has followed a leader it is a member as
    /// any other. Other values than MMN_ENTRY_ANY exclude host_mode, MMN_QUORUM_STATIC,
    /// MMN_STRATEGY_SEEDED and MMN_STRATEGY_ETCD, and MMN_ENTRY_CREATE excludes eligible 0.
    pub entry: u32,
    /// Longest time that the host may take no events while this member leads, in milliseconds, at
    /// least 1000 [0, unlimited]. In poll mode the library measures from the last mmn_poll, else
    /// from the start of the running callback. After that time the member yields to one that may
    /// lead and whose host has taken events within half of that time. Without such a member it
    /// leads on. It yields once in ten times that time. With host_mode and MMN_STRATEGY_SEEDED it
    /// never yields.
    pub yield_after_ms: u32,
    /// In centralized mode, whether the leader relays each broadcast to all members but its origin:
    /// 0 no, else yes [1].
    pub centralized_auto_forward: u32,
    /// MMN_STRATEGY_GOSSIP, see mmn_set_gossip_windows: Longest time that this member waits after
    /// opening the room for the number of members to settle, before it takes part in elections, in
    /// milliseconds [15000].
    pub startup_grace_ms: u32,
    /// MMN_STRATEGY_GOSSIP, see mmn_set_gossip_windows: Interval at which this member samples the
    /// number of members during startup_grace_ms, in milliseconds [1000].
    pub sample_interval_ms: u32,
    /// MMN_STRATEGY_GOSSIP, see mmn_set_gossip_windows: Time that this member waits for a
    /// declaration of the leader before it proposes itself, in milliseconds [10000].
    pub alive_threshold_ms: u32,
    /// MMN_STRATEGY_GOSSIP, see mmn_set_gossip_windows: Time for which a member that proposed
    /// itself collects the proposals of others, in milliseconds [5000].
    pub election_duration_ms: u32,
    /// Most bytes a second that this member carries in all between members that have no direct path
    /// to each other, while it does not lead: 1500 or more, or 0 to carry for none [131072]. Packets
    /// beyond that wait, at most 150 milliseconds, and all pairs of members get the same share. A
    /// leader always carries, without this limit.
    pub carry_bytes_per_second: u32,
    /// Paths that this member uses: MMN_PATHS_ALL or MMN_PATHS_RELAYED [MMN_PATHS_ALL]. With
    /// MMN_PATHS_RELAYED no other member learns this one's address; the relays do. It then dials no
    /// address and answers no dial, mmn_connect is MMN_NOT_SUPPORTED, and everything goes through a
    /// relay, which adds to the round trip. It needs relays, and excludes discovery_mode and
    /// MMN_STRATEGY_SEEDED.
    pub paths: u32,
    /// The relays where members of this room meet: 1 or 2, one per line, in order of preference. A
    /// line is the address of a relay, `host:port`, `[ipv6]:port` or either without the port, which
    /// is 7843 then. Behind it may follow, after spaces, `key=` with the fingerprint that the relay
    /// shows (64 hexadecimal digits), so that no other process passes for the relay, and `token=`
    /// with its token (26 characters), if it asks for one. Spaces around a line and empty lines are
    /// ignored. The same for all members: members without a common relay do not meet there.
    ///
    /// With relays, the session id is a room code of mmn_generate_room_code, in any form that
    /// mmn_normalize_room_code reads; all these forms are the same room. Any other session id is
    /// MMN_INVALID_ARGUMENT. This member links to every relay that it can reach, and
    /// MMN_EVENT_RELAY reports each. It finds the others of its room there, without any
    /// mmn_connect, and a relay carries what finds no direct path. Relays exclude MMN_STRATEGY_ETCD.
    ///
    /// NULL contacts none, and the session id is any text, compared byte by byte: one that looks
    /// like a room code, too [NULL].
    pub relays: *const c_char,
    /// The settings of the room's state, which mmn_submit and mmn_set_properties change and which
    /// outlives its leader: the same for all members, else a dial between them fails with
    /// MMN_POLICY_MISMATCH. NULL is a room without a state, where these functions are
    /// MMN_NOT_SUPPORTED [NULL].
    pub state: *const MmnStateOptions,
    /// Whether this member asks its router for a port that leads to it: MMN_PORT_MAPPING_OFF or
    /// MMN_PORT_MAPPING_ON [MMN_PORT_MAPPING_OFF]. With MMN_PORT_MAPPING_ON it asks the default
    /// gateway of the network that it uses, and no other machine, by PCP or NAT-PMP, renews the port
    /// while the room is open, and gives it back when the room closes.
    /// MMN_EVENT_PORT_MAPPING reports the result, mmn_public_address returns the address, and the
    /// other members learn it. With such a port members link directly that could not, because
    /// their own routers admit only answers. IPv4 only. In a star only the host asks for a port, and the
    /// guests do not learn its address from the room: give it to the players. Excluded by
    /// MMN_PATHS_RELAYED.
    pub port_mapping: u32,
    /// 0.
    pub reserved: u32,
    /// TURN servers (RFC 8656), for members whose network lets no UDP out: 1 to MMN_MAX_TURN_SERVERS, one
    /// per line, tried in this order until one gives a port. A line is the URL of a server,
    /// `turn:host:port` (UDP), `turn:host:port?transport=tcp` or `turns:host:port` (TLS over TCP; 443 passes
    /// most networks); without the port it is 3478, or 5349 of `turns:`. Behind it follow, after
    /// spaces, `username=` and `password=`, at most 508 bytes each: the server's long-term
    /// credentials, which the game's server makes for a limited time. `turns:` verifies the server's
    /// certificate with the certificates that the system trusts, or, with `key=` and the SHA-256 of the
    /// certificate's public key (SubjectPublicKeyInfo, DER; 64 hexadecimal digits), accepts only a
    /// certificate with that key. Spaces around a line and empty lines are ignored.
    ///
    /// This member holds a port at the server while the room is open. Relays and addresses that do not
    /// answer within a second are dialled from there, too, and the other members learn the port's address
    /// if no other path to this member works. The server sees the addresses of both ends, and encrypted
    /// packets. MMN_EVENT_TURN reports its state, mmn_peer_path a path through it, and mmn_set_turn
    /// replaces the servers, as before their credentials expire. IPv4 between the server and the others.
    /// With MMN_PATHS_RELAYED it serves to reach the relays alone. Excluded by MMN_STRATEGY_ETCD. Members
    /// may have different ones, or none. NULL contacts none [NULL].
    pub turn: *const c_char,
}

impl Growing for MmnOptions {
    const NAME: &'static str = "MmnOptions";
    // Versions 106, 102, 101 and 100.
    const EARLIER: &'static [usize] = &[
        offset_of!(MmnOptions, turn),
        offset_of!(MmnOptions, port_mapping),
        offset_of!(MmnOptions, state),
        offset_of!(MmnOptions, carry_bytes_per_second),
    ];
}

impl Default for MmnOptions {
    fn default() -> Self {
        const QUEUE_MESSAGES: u32 = DEFAULT_QUEUE_MESSAGES as u32;
        Self {
            struct_size: size_of::<Self>() as u32,
            strategy: MMN_STRATEGY_RAFT,
            on_event: None,
            user_data: ptr::null_mut(),
            drop_fn: None,
            bind_address: ptr::null(),
            secret: ptr::null(),
            identity_key: ptr::null(),
            state_directory: ptr::null(),
            trace_path: ptr::null(),
            quorum_roster: ptr::null(),
            seeded: ptr::null(),
            etcd: ptr::null(),
            secret_length: 0,
            identity_key_length: 0,
            is_default: 0,
            dispatch_mode: MMN_DISPATCH_THREAD,
            bind_port: 0,
            discovery_mode: MMN_DISCOVERY_OFF,
            mdns_port: 15353,
            max_connections: 64,
            max_peers: 0,
            max_message_size: 262_144,
            send_queue_capacity: QUEUE_MESSAGES,
            incoming_queue_capacity: QUEUE_MESSAGES,
            queue_bytes: DEFAULT_QUEUE_BYTES as u32,
            hold_messages: 0,
            compression_threshold: 512,
            heartbeat_interval_ms: 500,
            heartbeat_timeout_multiplier: 3,
            election_timeout_min_ms: 1500,
            election_timeout_max_ms: 3000,
            reconnect_initial_ms: 1000,
            reconnect_max_ms: 30_000,
            reconnect_max_retries: 0,
            auto_reconnect: 1,
            member_hold_ms: DEFAULT_MEMBER_HOLD.as_millis() as u32,
            handshake_timeout_ms: 5000,
            write_timeout_ms: 5000,
            auto_election: 1,
            eligible: 1,
            priority: 0,
            manual_override_recovery: MMN_RECOVERY_HOLD,
            set_leader_authority: MMN_AUTHORITY_ANYONE,
            merge_policy: MMN_MERGE_LARGEST_SIDE,
            quorum_policy: MMN_QUORUM_DYNAMIC,
            quorum_voters: 0,
            strategy_flags: 0,
            host_mode: MMN_HOST_MODE_OFF,
            topology: MMN_TOPOLOGY_MESH,
            entry: MMN_ENTRY_ANY,
            yield_after_ms: 0,
            centralized_auto_forward: 1,
            startup_grace_ms: 15_000,
            sample_interval_ms: 1000,
            alive_threshold_ms: 10_000,
            election_duration_ms: 5000,
            carry_bytes_per_second: DEFAULT_CARRY_BYTES_PER_SECOND,
            paths: MMN_PATHS_ALL,
            relays: ptr::null(),
            state: ptr::null(),
            port_mapping: MMN_PORT_MAPPING_OFF,
            reserved: 0,
            turn: ptr::null(),
        }
    }
}

/// Fills `options` with the defaults. The caller sets struct_size first. The library writes no byte
/// beyond it, nor beyond the fields that this version knows, and leaves struct_size as it is.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT (`options` is NULL, or struct_size is not a valid size).
///
/// # Safety
/// `options` is NULL, or points to struct_size writable bytes, the first four of which are
/// struct_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_default_options(options: *mut MmnOptions) -> i32 {
    command("mmn_default_options", || {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            fill("options", options, |struct_size| MmnOptions {
                struct_size,
                ..MmnOptions::default()
            })
        }
    })
}

/// Strings that hosts may point to: an address, "", no UTF-8, an address in another notation, a
/// list with a control character, a list that is both a roster and a list of seeds, endpoints of
/// etcd, and a prefix of its keys.
#[cfg(any(test, feature = "fuzzing"))]
const TEXTS: [&[u8]; 8] = [
    b"127.0.0.1\0",
    b"\0",
    b"\xff\0",
    b"::ffff:1.2.3.4\0",
    b"a\n b \n\n\x07\0",
    b"a:1\n[::1]:9\n\0",
    b"https://a:1\n https://[::1]:9\n\0",
    b"rooms/here\0",
];

/// A fuzz target: a struct of any size with any values in it becomes settings, or a sentence. The
/// first two bytes are its size. The bytes that it does not hold become a `MmnSeededOptions` for its
/// pointer to one, likewise, and then an `MmnEtcdOptions` and an `MmnStateOptions`.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check(input: &[u8]) {
    let Some((size, fields)) = input.split_first_chunk::<2>() else {
        return;
    };
    let (size, mut given, rest) = any_struct(*size, fields);
    let (seeded_size, seeded_fields) = rest.split_first_chunk().unwrap_or((&[0, 0], &[]));
    let (seeded_size, mut seeded, rest) = any_struct(*seeded_size, seeded_fields);
    point(&mut seeded, offset_of!(MmnSeededOptions, seeds), text_of);
    seeded[..4].copy_from_slice(&seeded_size.to_ne_bytes());
    let (etcd_size, etcd_fields) = rest.split_first_chunk().unwrap_or((&[0, 0], &[]));
    let (etcd_size, mut etcd, rest) = any_struct(*etcd_size, etcd_fields);
    let pointers = offset_of!(MmnEtcdOptions, endpoints)..size_of::<MmnEtcdOptions>();
    for offset in pointers.step_by(size_of::<usize>()) {
        point(&mut etcd, offset, text_of);
    }
    etcd[..4].copy_from_slice(&etcd_size.to_ne_bytes());
    let (state_size, state_fields) = rest.split_first_chunk().unwrap_or((&[0, 0], &[]));
    let (state_size, mut state, _) = any_struct(*state_size, state_fields);
    state[..4].copy_from_slice(&state_size.to_ne_bytes());
    for (offset, length) in [
        (offset_of!(MmnOptions, bind_address), None),
        (offset_of!(MmnOptions, state_directory), None),
        (offset_of!(MmnOptions, trace_path), None),
        (offset_of!(MmnOptions, quorum_roster), None),
        (offset_of!(MmnOptions, relays), None),
        (offset_of!(MmnOptions, turn), None),
        (
            offset_of!(MmnOptions, secret),
            Some(offset_of!(MmnOptions, secret_length)),
        ),
        (
            offset_of!(MmnOptions, identity_key),
            Some(offset_of!(MmnOptions, identity_key_length)),
        ),
    ] {
        let Some(chosen) = point(&mut given, offset, text_of) else {
            continue;
        };
        let text = TEXTS[usize::from(chosen) % TEXTS.len()];
        if let Some(length) = length
            && let Some(length) = given.get_mut(length..length + 4)
            && u32::from_ne_bytes([length[0], length[1], length[2], length[3]])
                <= MAX_SECRET_BYTES.max(MAX_IDENTITY_KEY_BYTES) as u32
        {
            let len = text.len() as u32 % (u32::from(length[0]) + 1);
            length.copy_from_slice(&len.to_ne_bytes());
        }
    }
    let offset = offset_of!(MmnOptions, seeded);
    point(&mut given, offset, |_| seeded.as_ptr());
    let offset = offset_of!(MmnOptions, etcd);
    point(&mut given, offset, |_| etcd.as_ptr());
    let offset = offset_of!(MmnOptions, state);
    point(&mut given, offset, |_| state.as_ptr());
    given[..4].copy_from_slice(&size.to_ne_bytes());
    let options = given.as_ptr().cast::<MmnOptions>();
    // SAFETY: `struct_size` bytes, at least four, and pointers as above.
    let read = unsafe { read("options", options) };
    let Ok(options) = read else {
        assert!(!(MmnOptions::first()..=MAX_STRUCT_BYTES).contains(&given.len()));
        return;
    };
    // SAFETY: as above.
    if let Ok(pointed) = unsafe { Pointed::read(&options) }
        && let Err(error) = config(&options, pointed)
    {
        assert!(error.to_string().len() < 512, "a long sentence");
    }
    // Conversely, the defaults must not write beyond the size.
    let mut defaults = vec![0x5a_u8; bytes(size).max(4)];
    defaults[..4].copy_from_slice(&size.to_ne_bytes());
    let pointer = defaults.as_mut_ptr().cast::<MmnOptions>();
    // SAFETY: `struct_size` bytes that can be written.
    let code = unsafe { mmn_default_options(pointer) };
    let right = (MmnOptions::first()..=MAX_STRUCT_BYTES).contains(&bytes(size));
    assert_eq!(
        code == crate::ffi::codes::MMN_OK,
        right,
        "a struct of {size} bytes"
    );
}

/// A struct of `size` bytes, at least four, filled from `fields` behind its size, and the rest of
/// `fields`. Exactly as long as its size, so that a sanitizer notices a read beyond it.
#[cfg(any(test, feature = "fuzzing"))]
fn any_struct(size: [u8; 2], fields: &[u8]) -> (u32, Vec<u8>, &[u8]) {
    let size = u32::from(u16::from_le_bytes(size));
    let mut given = vec![0_u8; bytes(size).max(4)];
    let (fields, rest) = fields.split_at(fields.len().min(given.len() - 4));
    given[4..][..fields.len()].copy_from_slice(fields);
    (size, given, rest)
}

/// Replaces the bytes at `offset`, if the struct has them, with a pointer that a host may pass:
/// NULL, or the result of `target` for the first of these bytes. Returns that byte.
#[cfg(any(test, feature = "fuzzing"))]
fn point(given: &mut [u8], offset: usize, target: impl FnOnce(u8) -> *const u8) -> Option<u8> {
    let place = given.get_mut(offset..offset + size_of::<usize>())?;
    let chosen = place[0];
    let pointer = match chosen < 64 {
        true => 0,
        false => target(chosen).addr(),
    };
    place.copy_from_slice(&pointer.to_ne_bytes());
    Some(chosen)
}

#[cfg(any(test, feature = "fuzzing"))]
fn text_of(chosen: u8) -> *const u8 {
    TEXTS[usize::from(chosen) % TEXTS.len()].as_ptr()
}

/// First inputs of the fuzz target with a `MmnSeededOptions`: a valid one, and some with an invalid
/// field.
#[cfg(test)]
pub(crate) fn seeded_inputs() -> Vec<Vec<u8>> {
    // The list that is both a roster and a list of seeds.
    const LIST: usize = 69;
    let list = ptr::without_provenance(LIST);
    let options = MmnOptions {
        strategy: MMN_STRATEGY_SEEDED,
        state_directory: list,
        quorum_roster: list,
        seeded: ptr::without_provenance(LIST),
        ..MmnOptions::default()
    };
    let right = MmnSeededOptions {
        is_seed: 1,
        seeds: list,
        ..MmnSeededOptions::default()
    };
    let changed: [fn(&mut MmnSeededOptions); 9] = [
        |_| {},
        |seeded| seeded.struct_size = 39,
        |seeded| seeded.seeds = ptr::null(),
        |seeded| seeded.probe_interval_ms = 0,
        |seeded| seeded.heartbeat_interval_ms = 1,
        |seeded| seeded.heartbeat_timeout_ms = 1,
        |seeded| seeded.ttl_timeout_ms = 1,
        |seeded| seeded.retry_interval_ms = 0,
        |seeded| seeded.reserved = 1,
    ];
    let inputs = changed.map(|change| {
        let mut seeded = right;
        change(&mut seeded);
        [
            input_of(&options, options.struct_size),
            input_of(&seeded, seeded.struct_size),
        ]
        .concat()
    });
    inputs.into()
}

/// First inputs of the fuzz target with an `MmnEtcdOptions`.
#[cfg(test)]
pub(crate) fn etcd_inputs() -> Vec<Vec<u8>> {
    // The endpoints, and the prefix.
    const ENDPOINTS: usize = 70;
    const PREFIX: usize = 71;
    let options = MmnOptions {
        strategy: MMN_STRATEGY_ETCD,
        etcd: ptr::without_provenance(ENDPOINTS),
        ..MmnOptions::default()
    };
    let right = MmnEtcdOptions {
        endpoints: ptr::without_provenance(ENDPOINTS),
        prefix: ptr::without_provenance(PREFIX),
        address: ptr::without_provenance(PREFIX),
        ca_file: ptr::without_provenance(PREFIX),
        ..MmnEtcdOptions::default()
    };
    let changed: [fn(&mut MmnEtcdOptions); 6] = [
        |_| {},
        |etcd| etcd.struct_size = 71,
        |etcd| etcd.ttl_seconds = 1,
        |etcd| etcd.endpoints = ptr::without_provenance(PREFIX),
        |etcd| etcd.prefix = ptr::null(),
        |etcd| etcd.user = ptr::without_provenance(PREFIX),
    ];
    let inputs = changed.map(|change| {
        let mut etcd = right;
        change(&mut etcd);
        [
            input_of(&options, options.struct_size),
            input_of(&MmnSeededOptions::default(), 4),
            input_of(&etcd, etcd.struct_size),
        ]
        .concat()
    });
    inputs.into()
}

/// First inputs of the fuzz target with an `MmnStateOptions`.
#[cfg(test)]
pub(crate) fn state_inputs() -> Vec<Vec<u8>> {
    const STATE: usize = 72;
    let options = MmnOptions {
        state: ptr::without_provenance(STATE),
        ..MmnOptions::default()
    };
    let changed: [fn(&mut MmnStateOptions); 5] = [
        |_| {},
        |state| state.struct_size = 15,
        |state| state.tail_entries = 15,
        |state| state.tail_bytes = 0,
        |state| state.max_snapshot_bytes = u32::MAX,
    ];
    let inputs = changed.map(|change| {
        let mut state = MmnStateOptions::default();
        change(&mut state);
        [
            input_of(&options, options.struct_size),
            input_of(&MmnSeededOptions::default(), 4),
            input_of(&MmnEtcdOptions::default(), 4),
            input_of(&state, state.struct_size),
        ]
        .concat()
    });
    inputs.into()
}

/// Two bytes of size, and the bytes behind the size in the struct.
#[cfg(test)]
fn input_of<T: Growing>(given: &T, size: u32) -> Vec<u8> {
    // SAFETY: the structs of the ABI have no padding.
    let memory =
        unsafe { std::slice::from_raw_parts(ptr::from_ref(given).cast::<u8>(), size_of::<T>()) };
    let size = u16::try_from(size).expect("short");
    let end = usize::from(size).min(memory.len());
    [&size.to_le_bytes()[..], &memory[4..end]].concat()
}
