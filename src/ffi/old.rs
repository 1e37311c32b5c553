//! The extended functions under their names of ABI version 11, for hosts that have not moved to the `mmn_` functions yet.

#[cfg(test)]
mod tests;

use std::ffi::{c_char, c_void};
use std::ptr;

use super::callbacks::DropCallback;
use super::config::NetworkConfigFFI;
use super::errors::mmn_describe_error;
use super::etcd::EtcdOptions;
use super::etcd::{
    mmn_acquire_lock, mmn_default_etcd_options, mmn_fencing_token, mmn_proclaim, mmn_release_lock,
    mmn_try_lock,
};
use super::events::mmn_poll;
use super::events::{EventCallback, handler};
use super::failure::Failure;
use super::growing::{Growing, fill, read};
use super::guard::{command, log_command};
use super::identity::{mmn_generate_identity_key, mmn_local_fingerprint, mmn_peer_fingerprint};
use super::leader::{
    mmn_leader_epoch, mmn_leader_term, mmn_set_eligible, mmn_set_priority, mmn_strategy,
    mmn_transfer_leadership, mmn_yield_leadership,
};
use super::lifecycle::{mmn_default_room, mmn_open};
use super::logs::verbosity;
use super::members::{
    mmn_accept_join, mmn_kick, mmn_reject_join, mmn_set_join_payload, mmn_set_join_requests,
    mmn_set_max_peers, mmn_unban,
};
use super::options::MmnOptions;
use super::peers::{
    mmn_disconnect, mmn_local_addresses, mmn_members, mmn_peer_address, mmn_peer_id, mmn_peer_index,
};
use super::seeded::SeededOptions;
use super::seeded::{mmn_cluster_version, mmn_default_seeded_options, mmn_member_state};
use super::send::MmnSendOptions;
use super::send::{mmn_broadcast, mmn_max_datagram_size, mmn_send};
use super::simulation::mmn_simulate_network;
use super::stats::{PeerStats, RoomStats};
use super::stats::{mmn_peer_stats, mmn_room_stats};
use super::user_data::UserData;
use super::values::*;
use super::version::{mmn_abi_version, mmn_library_version};
use crate::config::{DEFAULT_MEMBER_HOLD, DEFAULT_QUEUE_BYTES, DEFAULT_QUEUE_MESSAGES};
use crate::default_room;
use crate::error::Code;
use crate::logging;

/// Settings for InitializeNetworkWithOptions. Later versions of the library append fields; a field
/// that an older host does not know keeps its default. Begin with the defaults:
///
///     NetworkOptions options = {0};
///     options.struct_size = sizeof options;
///     GetDefaultNetworkOptions(&options);
///
/// The library copies what the pointers refer to during the call. The default of each field is in
/// brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct NetworkOptions {
    /// sizeof(NetworkOptions) as the host was compiled, in bytes.
    pub struct_size: u32,
    /// The settings of InitializeNetworkWithConfig, with the same rules [the same defaults, except
    /// that send_queue_capacity and incoming_queue_capacity are 4096]. mdns_port applies unless
    /// discovery_mode is MMN_DISCOVERY_OFF, and must then be above 0.
    pub config: NetworkConfigFFI,
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
    /// Length of secret in bytes, at most MMN_MAX_SECRET_BYTES. 0 is no secret [0].
    pub secret_length: u32,
    /// Length of identity_key in bytes, at most 1024. 0 makes a new key [0].
    pub identity_key_length: u32,
    /// Time for which the room keeps a lost member's place, in milliseconds [60000]. Above 0. With
    /// MMN_STRATEGY_SEEDED at least until the leader has removed the member from the cluster.
    pub member_hold_ms: u32,
    /// Most bytes queued for one peer, and for the host, besides the limits in messages [4194304].
    /// Above 0. An empty queue accepts one message of any allowed size.
    pub queue_bytes: u32,
    /// Election strategy of the room: MMN_STRATEGY_RAFT, since ABI version 4 MMN_STRATEGY_GOSSIP,
    /// since ABI version 7 MMN_STRATEGY_SEEDED, or since ABI version 8 MMN_STRATEGY_ETCD
    /// [MMN_STRATEGY_RAFT]. Any other value is MMN_NOT_SUPPORTED, and so is MMN_STRATEGY_ETCD in a
    /// build without it. The same for all members. With any strategy but MMN_STRATEGY_RAFT,
    /// election_timeout_min_ms, election_timeout_max_ms, manual_override_recovery, merge_policy and
    /// set_leader_authority have no effect. Gossip has no votes, and SetLeaderAliveThreshold and
    /// the functions beside it set its times. MMN_STRATEGY_SEEDED needs seeded, which has its
    /// times, quorum_roster and state_directory. It excludes host_mode and eligible 0, and
    /// auto_election_enabled has no effect. MMN_STRATEGY_ETCD needs etcd, which has its times. It
    /// excludes host_mode, MMN_QUORUM_STATIC and any merge_policy and set_leader_authority but the
    /// defaults. The members need no link to each other for it: a room of one takes part in the
    /// election.
    pub strategy: u32,
    /// Priority of this member in elections: the highest goes first [0]. Must be 0 with any
    /// strategy but MMN_STRATEGY_RAFT.
    pub priority: i32,
    /// The UDP port to bind [0]. 0 is any free port.
    pub bind_port: u16,
    /// Discovery in the local network: MMN_DISCOVERY_OFF, MMN_DISCOVERY_REPORT or
    /// MMN_DISCOVERY_CONNECT [MMN_DISCOVERY_OFF].
    pub discovery_mode: u8,
    /// Thread that runs the callbacks: MMN_DISPATCH_THREAD or MMN_DISPATCH_POLL
    /// [MMN_DISPATCH_THREAD].
    pub dispatch_mode: u8,
    /// Leader that stays when two parts of a room merge: MMN_MERGE_LARGEST_SIDE or
    /// MMN_MERGE_HIGHEST_TERM [MMN_MERGE_LARGEST_SIDE]. The same for all members.
    pub merge_policy: u8,
    /// Members that may call SetLeader: MMN_AUTHORITY_ANYONE or MMN_AUTHORITY_LEADER_ONLY
    /// [MMN_AUTHORITY_ANYONE]. The same for all members.
    pub set_leader_authority: u8,
    /// Whether one fixed member leads: MMN_HOST_MODE_OFF, MMN_HOST_MODE_HOST or MMN_HOST_MODE_GUEST
    /// [MMN_HOST_MODE_OFF]. The fixed host leads when InitializeNetworkWithOptions returns,
    /// regardless of auto_election_enabled.
    pub host_mode: u8,
    /// Whether this member may lead: 0 makes it an observer, else yes [1].
    pub eligible: u8,
    /// Directory of the state that must survive the process: the path of an existing directory that
    /// this member can write to. Each session id and peer id has a file of its own there. The file
    /// holds the roster, the votes and, if identity_key is NULL, the private key, which the first
    /// start makes and every later start reuses. A quorum_roster or identity_key that differs from
    /// the file is MMN_INVALID_ARGUMENT. Two processes cannot use one directory as the same member.
    /// Required with MMN_QUORUM_STATIC and MMN_STRATEGY_SEEDED. Allowed with MMN_STRATEGY_ETCD,
    /// where it keeps the lease: a process that restarts within ttl_seconds then leads on and does
    /// not wait for its own earlier key. Else NULL [NULL]. Since ABI version 3.
    pub state_directory: *const c_char,
    /// The path of a file for a trace of the room's elections, which `examples/simulate.rs` draws.
    /// The library overwrites the file, writes up to 256 MiB, and records nothing that the host
    /// sends. A path that cannot be written is MMN_INVALID_ARGUMENT. NULL is no trace [NULL]. Since
    /// ABI version 3.
    pub trace_path: *const c_char,
    /// Members whose majority elects: MMN_QUORUM_DYNAMIC or MMN_QUORUM_STATIC [MMN_QUORUM_DYNAMIC].
    /// The same for all members. A room with a static quorum never has two leaders, and has none
    /// without a majority of the voters in quorum_roster. It excludes MMN_STRATEGY_GOSSIP and
    /// host_mode. With MMN_STRATEGY_SEEDED the quorum is static in any case. Since ABI version 3.
    pub quorum_policy: u32,
    /// 0, or with MMN_QUORUM_STATIC the number of voters in quorum_roster, at most
    /// MMN_MAX_QUORUM_VOTERS [0]. Since ABI version 3.
    pub quorum_voters: u32,
    /// Flags of the strategy [0], the same for all members: with MMN_STRATEGY_GOSSIP
    /// MMN_GOSSIP_STRICT_LOWEST or 0; with MMN_STRATEGY_SEEDED the sum of MMN_SEEDED_STRICT_START
    /// and MMN_SEEDED_NEVER_ALONE, one of them, or 0; else 0. Since ABI version 4.
    pub strategy_flags: u32,
    /// 0. Since ABI version 4.
    pub reserved: u32,
    /// Most other members that any member may have, as SetMaxPeers sets it, from the room's first
    /// leader on; 0 is no limit [0]. The leader's own value applies until a leader calls
    /// SetMaxPeers, so set the same value at all members that may lead. Since ABI version 5.
    pub max_peers: u32,
    /// 0. Since ABI version 5.
    pub reserved2: u32,
    /// The voters of a static quorum: 1 to MMN_MAX_QUORUM_VOTERS peer ids, one per line. A space
    /// and the fingerprint of a voter's key may follow its id: the SHA-256 of the public key
    /// (SubjectPublicKeyInfo, DER) in 64 hexadecimal digits. Then only the holder of that key is
    /// that voter. Spaces around a line and empty lines are ignored. The same voters for all
    /// members and for the whole session. A member that is not on the roster never leads and has no
    /// vote. Required with MMN_QUORUM_STATIC and MMN_STRATEGY_SEEDED, else NULL [NULL]. Since ABI
    /// version 6.
    pub quorum_roster: *const c_char,
    /// The settings of MMN_STRATEGY_SEEDED, which requires them. NULL with any other strategy
    /// [NULL]. Since ABI version 7.
    pub seeded: *const SeededOptions,
    /// The settings of MMN_STRATEGY_ETCD, which requires them. NULL with any other strategy [NULL].
    /// Since ABI version 8.
    pub etcd: *const EtcdOptions,
    /// Links of the room: MMN_TOPOLOGY_MESH or MMN_TOPOLOGY_STAR [MMN_TOPOLOGY_MESH]. The same for
    /// all members. In a star guests link to the fixed host alone, and everything that they send
    /// each other goes through it, encrypted from end to end. No guest learns the address of
    /// another, and one reachable port, the fixed host's, is enough. There is no host migration. A
    /// star needs host_mode. Since ABI version 10.
    pub topology: u32,
    /// 0. Since ABI version 10.
    pub reserved3: u32,
    /// Entry of this member into the room: MMN_ENTRY_ANY, MMN_ENTRY_CREATE or MMN_ENTRY_JOIN
    /// [MMN_ENTRY_ANY]. Use MMN_ENTRY_CREATE behind a button "host a game" and MMN_ENTRY_JOIN
    /// behind "join a game": then a player whose dial fails does not become the leader of a room of
    /// its own, and its MMN_EVENT_LEADER_CHANGED means that it is in a room. Two members that both
    /// join refuse each other with MMN_LOOKING_FOR_ROOM. A member that joins and finds no room for
    /// 10 seconds receives MMN_EVENT_NO_ROOM_FOUND. Once it has followed a leader it is a member as
    /// any other. Other values than MMN_ENTRY_ANY exclude host_mode, MMN_QUORUM_STATIC,
    /// MMN_STRATEGY_SEEDED and MMN_STRATEGY_ETCD, and MMN_ENTRY_CREATE excludes eligible 0. Since
    /// ABI version 11.
    pub entry: u32,
    /// Longest time that the host may take no events while this member leads, in milliseconds, at
    /// least 1000 [0, unlimited]. In poll mode the library measures from the last PollEvents, else
    /// from the start of the running callback. After that time the member yields to one that may
    /// lead and whose host has taken events within half of that time. Without such a member it
    /// leads on. It yields once in ten times that time. With host_mode and MMN_STRATEGY_SEEDED it
    /// never yields. Since ABI version 11.
    pub yield_after_ms: u32,
}

/// Bytes of [`NetworkOptions`] in the first version that had it. Never changes.
const FIRST_VERSION_BYTES: usize = std::mem::offset_of!(NetworkOptions, eligible) + 1;
/// Bytes of it in version 3 of the ABI. Never changes.
const THIRD_VERSION_BYTES: usize = std::mem::offset_of!(NetworkOptions, strategy_flags);
/// Bytes of it in version 4 of the ABI. Never changes.
const FOURTH_VERSION_BYTES: usize = std::mem::offset_of!(NetworkOptions, max_peers);
/// Bytes of it in version 5 of the ABI. Never changes.
const FIFTH_VERSION_BYTES: usize = std::mem::offset_of!(NetworkOptions, quorum_roster);
/// Bytes of it in version 6 of the ABI. Never changes.
const SIXTH_VERSION_BYTES: usize = std::mem::offset_of!(NetworkOptions, seeded);

/// Bytes of it in version 7 of the ABI. Never changes.
const SEVENTH_VERSION_BYTES: usize = std::mem::offset_of!(NetworkOptions, etcd);

/// Bytes of it in version 8 of the ABI. Never changes.
const EIGHTH_VERSION_BYTES: usize = std::mem::offset_of!(NetworkOptions, topology);

/// Bytes of it in version 10 of the ABI. Never changes.
const TENTH_VERSION_BYTES: usize = std::mem::offset_of!(NetworkOptions, entry);

impl Growing for NetworkOptions {
    const NAME: &'static str = "NetworkOptions";
    const EARLIER: &'static [usize] = &[
        TENTH_VERSION_BYTES,
        EIGHTH_VERSION_BYTES,
        SEVENTH_VERSION_BYTES,
        SIXTH_VERSION_BYTES,
        FIFTH_VERSION_BYTES,
        FOURTH_VERSION_BYTES,
        THIRD_VERSION_BYTES,
        FIRST_VERSION_BYTES,
    ];
}

impl Default for NetworkOptions {
    fn default() -> Self {
        const MEMBER_HOLD_MS: u32 = DEFAULT_MEMBER_HOLD.as_millis() as u32;
        const QUEUE_MESSAGES: u16 = DEFAULT_QUEUE_MESSAGES as u16;
        Self {
            struct_size: size_of::<Self>() as u32,
            config: NetworkConfigFFI {
                send_queue_capacity: QUEUE_MESSAGES,
                incoming_queue_capacity: QUEUE_MESSAGES,
                ..NetworkConfigFFI::default()
            },
            bind_address: ptr::null(),
            secret: ptr::null(),
            identity_key: ptr::null(),
            secret_length: 0,
            identity_key_length: 0,
            member_hold_ms: MEMBER_HOLD_MS,
            queue_bytes: DEFAULT_QUEUE_BYTES as u32,
            strategy: MMN_STRATEGY_RAFT,
            priority: 0,
            bind_port: 0,
            discovery_mode: MMN_DISCOVERY_OFF,
            dispatch_mode: MMN_DISPATCH_THREAD,
            merge_policy: MMN_MERGE_LARGEST_SIDE,
            set_leader_authority: MMN_AUTHORITY_ANYONE,
            host_mode: MMN_HOST_MODE_OFF,
            eligible: 1,
            state_directory: ptr::null(),
            trace_path: ptr::null(),
            quorum_policy: MMN_QUORUM_DYNAMIC,
            quorum_voters: 0,
            strategy_flags: 0,
            reserved: 0,
            max_peers: 0,
            reserved2: 0,
            quorum_roster: ptr::null(),
            seeded: ptr::null(),
            etcd: ptr::null(),
            topology: MMN_TOPOLOGY_MESH,
            reserved3: 0,
            entry: MMN_ENTRY_ANY,
            yield_after_ms: 0,
        }
    }
}

/// Fills `options` with the defaults, as mmn_default_options does.
///
/// # Safety
/// As [`mmn_default_options`](super::options::mmn_default_options).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetDefaultNetworkOptions(options: *mut NetworkOptions) -> i32 {
    command("GetDefaultNetworkOptions", || {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            fill("options", options, |struct_size| NetworkOptions {
                struct_size,
                ..NetworkOptions::default()
            })
        }
    })
}

/// As mmn_open with is_default.
///
/// # Safety
/// As [`mmn_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeNetworkWithOptions(
    peer_id: *const c_char,
    session_id: *const c_char,
    options: *const NetworkOptions,
) -> i32 {
    let mut new = None;
    let code = command("InitializeNetworkWithOptions", || {
        // SAFETY: the caller's promise, passed on.
        let old = unsafe { read("options", options) }?;
        for (field, value) in [
            ("reserved", old.reserved),
            ("reserved2", old.reserved2),
            ("reserved3", old.reserved3),
        ] {
            if value != 0 {
                return Err(Failure::invalid(format!(
                    "{field} is {value}; allowed are 0 alone"
                )));
            }
        }
        new = Some(flat(&old));
        Ok(())
    });
    match new {
        // SAFETY: as above.
        Some(new) => unsafe { mmn_open(peer_id, session_id, &new, &mut 0) },
        None => code,
    }
}

pub(super) fn flat(old: &NetworkOptions) -> MmnOptions {
    MmnOptions {
        bind_address: old.bind_address,
        secret: old.secret,
        identity_key: old.identity_key,
        secret_length: old.secret_length,
        identity_key_length: old.identity_key_length,
        member_hold_ms: old.member_hold_ms,
        queue_bytes: old.queue_bytes,
        strategy: old.strategy,
        priority: old.priority,
        state_directory: old.state_directory,
        trace_path: old.trace_path,
        quorum_policy: old.quorum_policy,
        quorum_voters: old.quorum_voters,
        strategy_flags: old.strategy_flags,
        max_peers: old.max_peers,
        quorum_roster: old.quorum_roster,
        seeded: old.seeded,
        etcd: old.etcd,
        topology: old.topology,
        entry: old.entry,
        yield_after_ms: old.yield_after_ms,
        bind_port: old.bind_port.into(),
        discovery_mode: old.discovery_mode.into(),
        dispatch_mode: old.dispatch_mode.into(),
        merge_policy: old.merge_policy.into(),
        set_leader_authority: old.set_leader_authority.into(),
        host_mode: old.host_mode.into(),
        eligible: old.eligible.into(),
        reconnect_max_ms: old.config.reconnect_max_ms,
        compression_threshold: old.config.compression_threshold,
        max_message_size: old.config.max_message_size,
        heartbeat_interval_ms: old.config.heartbeat_interval_ms.into(),
        election_timeout_min_ms: old.config.election_timeout_min_ms.into(),
        election_timeout_max_ms: old.config.election_timeout_max_ms.into(),
        reconnect_initial_ms: old.config.reconnect_initial_ms.into(),
        handshake_timeout_ms: old.config.handshake_timeout_ms.into(),
        write_timeout_ms: old.config.write_timeout_ms.into(),
        send_queue_capacity: old.config.send_queue_capacity.into(),
        incoming_queue_capacity: old.config.incoming_queue_capacity.into(),
        max_connections: old.config.max_connections.into(),
        mdns_port: old.config.mdns_port.into(),
        heartbeat_timeout_multiplier: old.config.heartbeat_timeout_multiplier.into(),
        centralized_auto_forward: old.config.centralized_auto_forward.into(),
        auto_election: old.config.auto_election_enabled.into(),
        auto_reconnect: old.config.auto_reconnect_enabled.into(),
        reconnect_max_retries: old.config.reconnect_max_retries.into(),
        manual_override_recovery: u32::from(old.config.manual_override_recovery == 1),
        is_default: 1,
        ..MmnOptions::default()
    }
}

/// Delivery of a message by SendToPeerEx or BroadcastEx. NULL instead of it means the classic send:
/// the default of every field.
///
/// Later versions only append fields. Set struct_size, and every field that you do not use to its
/// default.
///
/// ```c
///     SendOptions options = {0};
///     options.struct_size = sizeof options;
///     options.delivery = MMN_DELIVERY_SEQUENCED;
///     options.priority = 1;
///     options.key = unit;
/// ```
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct SendOptions {
    /// Set by the caller: sizeof(SendOptions) as it was compiled.
    pub struct_size: u32,
    /// One of MMN_DELIVERY_... [MMN_DELIVERY_RELIABLE_ORDERED].
    pub delivery: u8,
    /// Channel that the receiver sees in NetworkEvent.channel. With MMN_DELIVERY_RELIABLE_ORDERED
    /// each channel keeps its own order, and in the network no channel waits for another [0].
    pub channel: u8,
    /// Priority, 0 to MMN_MAX_PRIORITY: of the messages that wait for the link to a peer, the
    /// higher go first. Within a channel of MMN_DELIVERY_RELIABLE_ORDERED the order of the calls
    /// still holds [1].
    pub priority: u8,
    /// 0 or MMN_SEND_PARTIAL (BroadcastEx only) [0].
    pub flags: u8,
    /// Lifetime of the message, in milliseconds; 0 is unlimited. A message that waits longer, here
    /// or in the queue to the receiver's host, is dropped and counted. MMN_DELIVERY_UNRELIABLE and
    /// MMN_DELIVERY_SEQUENCED only [0].
    pub ttl_ms: u32,
    /// 0.
    pub reserved: u32,
    /// Subject of the message, as the host numbers it. MMN_DELIVERY_SEQUENCED only [0].
    pub key: u64,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            delivery: MMN_DELIVERY_RELIABLE_ORDERED,
            channel: 0,
            priority: 1,
            flags: 0,
            ttl_ms: 0,
            reserved: 0,
            key: 0,
        }
    }
}

impl Growing for SendOptions {
    const NAME: &'static str = "SendOptions";
    const EARLIER: &'static [usize] = &[];
}

fn send_options(options: *const SendOptions, flags: u8) -> Result<MmnSendOptions, Failure> {
    let old = match options.is_null() {
        true => SendOptions::default(),
        // SAFETY: the callers' promise, passed on.
        false => unsafe { read("options", options) }?,
    };
    if old.reserved != 0 {
        return Err(Failure::invalid(format!(
            "options.reserved is {}; give 0",
            old.reserved
        )));
    }
    if old.priority > MMN_MAX_PRIORITY {
        return Err(Failure::invalid(format!(
            "options.priority is {}; give 0 to {MMN_MAX_PRIORITY}",
            old.priority
        )));
    }
    Ok(MmnSendOptions {
        delivery: old.delivery,
        channel: old.channel,
        priority: old.priority.cast_signed() - 1,
        flags: old.flags,
        ttl_ms: old.ttl_ms,
        user_flags: flags,
        key: old.key,
        ..MmnSendOptions::default()
    })
}

/// As mmn_send, for the default room.
///
/// # Safety
/// As [`mmn_send`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SendToPeerEx(
    peer_id: *const c_char,
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
    options: *const SendOptions,
) -> i32 {
    let mut new = MmnSendOptions::default();
    let code = command("SendToPeerEx", || {
        new = send_options(options, flags)?;
        Ok(())
    });
    match code {
        // SAFETY: the caller's promise, passed on.
        0 => unsafe { mmn_send(mmn_default_room(), peer_id, data, length, msg_type, &new) },
        _ => code,
    }
}

/// As mmn_broadcast, for the default room.
///
/// # Safety
/// As [`mmn_broadcast`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn BroadcastEx(
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
    options: *const SendOptions,
) -> i32 {
    let mut new = MmnSendOptions::default();
    let code = command("BroadcastEx", || {
        new = send_options(options, flags)?;
        Ok(())
    });
    match code {
        // SAFETY: the caller's promise, passed on.
        0 => unsafe { mmn_broadcast(mmn_default_room(), data, length, msg_type, &new) },
        _ => code,
    }
}

/// Removes a peer from the room, and bans it: mmn_kick with MMN_KICK_BAN.
///
/// # Safety
/// As [`mmn_kick`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn KickPeer(
    peer_id: *const c_char,
    code: i32,
    data: *const u8,
    length: i32,
) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        mmn_kick(
            mmn_default_room(),
            peer_id,
            MMN_KICK_BAN,
            code,
            data,
            length,
        )
    }
}

/// As mmn_set_event_handler, for the default room, or, before it opens, for the next one.
///
/// # Safety
/// As [`mmn_set_event_handler`](super::events::mmn_set_event_handler).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RegisterEventHandler(
    callback: EventCallback,
    user_data: *mut c_void,
    drop_fn: DropCallback,
) -> i32 {
    command("RegisterEventHandler", || {
        let handler = handler(callback, user_data, drop_fn).map(|(handler, user_data)| {
            user_data.own();
            handler
        });
        default_room::register_event_handler(handler);
        Ok(())
    })
}

/// Receives a log record, as MmnLogCallback does.
pub type LogCallback =
    Option<extern "C" fn(user_data: *mut c_void, level: i32, message: *const c_char)>;

/// Sets the level of the log on standard error, whether it is on or not.
#[unsafe(no_mangle)]
pub extern "C" fn SetLogLevel(level: i32) -> i32 {
    log_command("SetLogLevel", || {
        logging::set_level(verbosity(level)?);
        Ok(Code::Ok.value())
    })
}

/// As mmn_set_log.
///
/// # Safety
/// As [`mmn_set_log`](super::logs::mmn_set_log).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RegisterLogCallback(
    level: i32,
    callback: LogCallback,
    user_data: *mut c_void,
    drop_fn: DropCallback,
) -> i32 {
    log_command("RegisterLogCallback", || {
        let verbosity = verbosity(level)?;
        logging::register(callback.map(|callback| {
            let user_data = UserData::new(user_data, drop_fn);
            let handler: logging::LogHandler = Box::new(move |_, level, message| {
                callback(user_data.pointer(), level, message.as_ptr());
            });
            (verbosity, handler)
        }));
        Ok(Code::Ok.value())
    })
}

/// As mmn_abi_version, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetAbiVersion() -> u32 {
    mmn_abi_version()
}

/// As mmn_library_version, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetLibraryVersion() -> *const c_char {
    mmn_library_version()
}

/// As mmn_poll, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn PollEvents(max: i32) -> i32 {
    mmn_poll(mmn_default_room(), max)
}

/// As mmn_describe_error, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn DescribeError(code: i32) -> *const c_char {
    mmn_describe_error(code)
}

/// As mmn_disconnect, for the default room.
///
/// # Safety
/// As [`mmn_disconnect`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn DisconnectPeerEx(
    peer_id: *const c_char,
    code: i32,
    data: *const u8,
    length: i32,
) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_disconnect(mmn_default_room(), peer_id, code, data, length) }
}

/// As mmn_local_addresses, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetLocalAddresses() -> *const c_char {
    mmn_local_addresses(mmn_default_room())
}

/// As mmn_members, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetMembers() -> *const c_char {
    mmn_members(mmn_default_room())
}

/// As mmn_peer_address, for the default room.
///
/// # Safety
/// As [`mmn_peer_address`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetPeerAddress(peer_id: *const c_char) -> *const c_char {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_peer_address(mmn_default_room(), peer_id) }
}

/// As mmn_peer_index, for the default room.
///
/// # Safety
/// As [`mmn_peer_index`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetPeerIndex(peer_id: *const c_char) -> u32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_peer_index(mmn_default_room(), peer_id) }
}

/// As mmn_peer_id, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetPeerIdByIndex(index: u32) -> *const c_char {
    mmn_peer_id(mmn_default_room(), index)
}

/// As mmn_generate_identity_key, for the default room.
///
/// # Safety
/// As [`mmn_generate_identity_key`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GenerateIdentityKey(buffer: *mut u8, length: i32) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_generate_identity_key(buffer, length) }
}

/// As mmn_local_fingerprint, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetIdentityFingerprint() -> *const c_char {
    mmn_local_fingerprint(mmn_default_room())
}

/// As mmn_peer_fingerprint, for the default room.
///
/// # Safety
/// As [`mmn_peer_fingerprint`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetPeerFingerprint(peer_id: *const c_char) -> *const c_char {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_peer_fingerprint(mmn_default_room(), peer_id) }
}

/// As mmn_kick, for the default room.
///
/// # Safety
/// As [`mmn_kick`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn KickPeerEx(
    peer_id: *const c_char,
    flags: u32,
    code: i32,
    data: *const u8,
    length: i32,
) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_kick(mmn_default_room(), peer_id, flags, code, data, length) }
}

/// As mmn_unban, for the default room.
///
/// # Safety
/// As [`mmn_unban`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn UnbanPeer(peer_id: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_unban(mmn_default_room(), peer_id) }
}

/// As mmn_set_max_peers, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn SetMaxPeers(max_peers: u32) -> i32 {
    mmn_set_max_peers(mmn_default_room(), max_peers)
}

/// As mmn_set_join_payload, for the default room.
///
/// # Safety
/// As [`mmn_set_join_payload`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SetJoinPayload(data: *const u8, length: i32) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_set_join_payload(mmn_default_room(), data, length) }
}

/// As mmn_set_join_requests, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn EnableJoinRequests(enabled: u8) -> i32 {
    mmn_set_join_requests(mmn_default_room(), enabled)
}

/// As mmn_accept_join, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn AcceptJoin(request: u64) -> i32 {
    mmn_accept_join(mmn_default_room(), request)
}

/// As mmn_reject_join, for the default room.
///
/// # Safety
/// As [`mmn_reject_join`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RejectJoin(request: u64, code: i32, data: *const u8, length: i32) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_reject_join(mmn_default_room(), request, code, data, length) }
}

/// As mmn_set_eligible, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn SetLeaderEligible(eligible: u8) -> i32 {
    mmn_set_eligible(mmn_default_room(), eligible)
}

/// As mmn_transfer_leadership, for the default room.
///
/// # Safety
/// As [`mmn_transfer_leadership`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TransferLeadership(peer_id: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_transfer_leadership(mmn_default_room(), peer_id) }
}

/// As mmn_yield_leadership, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn YieldLeadership() -> i32 {
    mmn_yield_leadership(mmn_default_room())
}

/// As mmn_set_priority, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn SetElectionPriority(priority: i32) -> i32 {
    mmn_set_priority(mmn_default_room(), priority)
}

/// As mmn_leader_term, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetLeaderTerm() -> i64 {
    mmn_leader_term(mmn_default_room())
}

/// As mmn_leader_epoch, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetLeaderEpoch() -> i64 {
    mmn_leader_epoch(mmn_default_room())
}

/// As mmn_strategy, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetElectionStrategy() -> i32 {
    mmn_strategy(mmn_default_room())
}

/// As mmn_default_seeded_options, for the default room.
///
/// # Safety
/// As [`mmn_default_seeded_options`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetDefaultSeededOptions(profile: u32, options: *mut SeededOptions) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_default_seeded_options(profile, options) }
}

/// As mmn_member_state, for the default room.
///
/// # Safety
/// As [`mmn_member_state`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetMemberState(peer_id: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_member_state(mmn_default_room(), peer_id) }
}

/// As mmn_cluster_version, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetClusterVersion() -> i64 {
    mmn_cluster_version(mmn_default_room())
}

/// As mmn_default_etcd_options, for the default room.
///
/// # Safety
/// As [`mmn_default_etcd_options`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetDefaultEtcdOptions(options: *mut EtcdOptions) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_default_etcd_options(options) }
}

/// As mmn_fencing_token, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetFencingToken() -> i64 {
    mmn_fencing_token(mmn_default_room())
}

/// As mmn_proclaim, for the default room.
///
/// # Safety
/// As [`mmn_proclaim`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Proclaim(value: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_proclaim(mmn_default_room(), value) }
}

/// As mmn_acquire_lock, for the default room.
///
/// # Safety
/// As [`mmn_acquire_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn AcquireLock(
    name: *const c_char,
    timeout_ms: u32,
    request: *mut u64,
) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_acquire_lock(mmn_default_room(), name, timeout_ms, request) }
}

/// As mmn_try_lock, for the default room.
///
/// # Safety
/// As [`mmn_try_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TryLock(name: *const c_char, request: *mut u64) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_try_lock(mmn_default_room(), name, request) }
}

/// As mmn_release_lock, for the default room.
///
/// # Safety
/// As [`mmn_release_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ReleaseLock(name: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_release_lock(mmn_default_room(), name) }
}

/// As mmn_max_datagram_size, for the default room.
///
/// # Safety
/// As [`mmn_max_datagram_size`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetMaxDatagramSize(peer_id: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_max_datagram_size(mmn_default_room(), peer_id) }
}

/// As mmn_peer_stats, for the default room.
///
/// # Safety
/// As [`mmn_peer_stats`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetPeerStats(peer_id: *const c_char, stats: *mut PeerStats) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_peer_stats(mmn_default_room(), peer_id, stats) }
}

/// As mmn_room_stats, for the default room.
///
/// # Safety
/// As [`mmn_room_stats`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetRoomStats(stats: *mut RoomStats) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_room_stats(mmn_default_room(), stats) }
}

/// As mmn_simulate_network, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn SetNetworkSimulation(lag_ms: u32, jitter_ms: u32, loss_permille: u32) -> i32 {
    mmn_simulate_network(mmn_default_room(), lag_ms, jitter_ms, loss_permille)
}
