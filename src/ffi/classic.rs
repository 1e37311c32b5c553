//! The functions of the published library, and ten of the gossip strategy: they act on the default room. Names, signatures
//! and behaviour are fixed for ever.

pub mod callbacks;
pub mod config;

use std::ffi::c_char;
use std::time::Duration;

use self::config::NetworkConfigFFI;
use super::arguments::{checked_session_id, peer_id as peer_id_argument, text};
use super::errors::{mmn_last_error_code, mmn_last_error_message};
use super::failure::Failure;
use super::gossip::millis;
use super::guard::{command, guard, log_command};
use super::leader::{mmn_is_leader, mmn_leader, mmn_set_auto_election, mmn_set_leader};
use super::lifecycle::{mmn_close, mmn_default_room, mmn_is_announced, mmn_is_open};
use super::members::{mmn_auto_reconnect, mmn_set_auto_reconnect};
use super::peers::{
    mmn_connect, mmn_disconnect, mmn_local_address, mmn_local_id, mmn_peer_count, mmn_peer_rtt_ms,
    mmn_peer_status, mmn_peers, mmn_session_id,
};
use super::send::{
    MmnSendOptions, mmn_auto_forward, mmn_broadcast, mmn_broadcast_as_leader, mmn_centralized,
    mmn_forward, mmn_send, mmn_send_to_leader, mmn_set_auto_forward, mmn_set_centralized,
    mmn_set_compression_threshold,
};
use crate::config::Config;
use crate::core::election::gossip::Windows;
use crate::core::id::{PeerId, SessionId};
use crate::default_room;
use crate::dispatch;
use crate::error::{Code, StartError};
use crate::logging;

/// Opens the default room with default settings: those of NetworkConfigFFI, except that each queue
/// holds 4096 messages. Does not wait for other members. The arguments are as in mmn_open.
///
/// A call during a ShutdownNetwork on another thread waits for it. Inside a callback the call is
/// refused with MMN_ALREADY_INITIALIZED if the default room is open or closing.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_ALREADY_INITIALIZED, MMN_CONNECTION_FAILED (no UDP
/// socket) or MMN_INTERNAL_ERROR.
///
/// # Safety
/// Both strings are NULL or end with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeNetwork(
    peer_id: *const c_char,
    session_id: *const c_char,
) -> i32 {
    command("InitializeNetwork", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: as above.
        let session = unsafe { text("session_id", session_id) }?;
        let session = checked_session_id("session_id", session)?;
        open(peer, session, || Ok(Config::default()))
    })
}

/// Opens the default room as InitializeNetwork does, with the given settings.
///
/// The library reads `config` during the call only. A NULL `config` or an invalid field is
/// MMN_INVALID_ARGUMENT; GetLastErrorMessage names the first such field.
///
/// # Safety
/// Both strings are NULL or end with a NUL. `config` is NULL or points to 44 readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeNetworkWithConfig(
    peer_id: *const c_char,
    session_id: *const c_char,
    config: *const NetworkConfigFFI,
) -> i32 {
    command("InitializeNetworkWithConfig", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: as above.
        let session = unsafe { text("session_id", session_id) }?;
        let session = checked_session_id("session_id", session)?;
        if config.is_null() {
            return Err(Failure::invalid(
                "config is NULL; give the 44 bytes of a NetworkConfigFFI, or initialize without one for the defaults"
                    .to_owned(),
            ));
        }
        // SAFETY: not NULL, so the caller guarantees its bytes. Hosts that build it by hand may not align it.
        let config = unsafe { config.read_unaligned() };
        open(peer, session, || Ok(Config::try_from(&config)?))
    })
}

/// Opens the default room. Refuses a second one before any value is checked.
fn open(
    peer: PeerId,
    session: SessionId,
    config: impl FnOnce() -> Result<Config, Failure>,
) -> Result<(), Failure> {
    if dispatch::in_callback() && default_room::handle().is_some() || default_room::is_open() {
        return Err(StartError::AlreadyInitialized.into());
    }
    default_room::open(peer, session, config()?, None, |_| ())?;
    Ok(())
}

/// As mmn_close, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn ShutdownNetwork() -> i32 {
    mmn_close(mmn_default_room())
}

/// As mmn_is_open, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn IsNetworkInitialized() -> u8 {
    mmn_is_open(mmn_default_room())
}

/// Closes the connection to a peer, as mmn_disconnect does for the default room without data.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn DisconnectPeer(peer_id: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on; no data.
    unsafe { mmn_disconnect(mmn_default_room(), peer_id, 0, std::ptr::null(), 0) }
}

/// The options of a classic send.
fn with_flags(flags: u8) -> MmnSendOptions {
    MmnSendOptions {
        user_flags: flags,
        ..MmnSendOptions::default()
    }
}

/// Sends a reliable message to all connected peers, or to none of them, as mmn_broadcast does for
/// the default room. `flags` are the host's own, except that bit 0 arrives clear.
///
/// # Safety
/// `data` points to `length` readable bytes, or may be NULL when `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn BroadcastMessage(
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        mmn_broadcast(
            mmn_default_room(),
            data,
            length,
            msg_type,
            &with_flags(flags),
        )
    }
}

/// Sends a reliable message to one peer, as mmn_send does for the default room.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL. `data` is as in BroadcastMessage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SendToPeer(
    peer_id: *const c_char,
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
) -> i32 {
    let (room, options) = (mmn_default_room(), with_flags(flags));
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_send(room, peer_id, data, length, msg_type, &options) }
}

/// Sends a reliable message to the leader, as mmn_send_to_leader does for the default room.
///
/// # Safety
/// `data` is as in BroadcastMessage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SendToLeader(
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
) -> i32 {
    let (room, options) = (mmn_default_room(), with_flags(flags));
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_send_to_leader(room, data, length, msg_type, &options) }
}

/// Sends a message as the leader, as mmn_broadcast_as_leader does for the default room.
///
/// # Safety
/// `data` is as in BroadcastMessage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SendFromLeader(
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
) -> i32 {
    let (room, options) = (mmn_default_room(), with_flags(flags));
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_broadcast_as_leader(room, data, length, msg_type, &options) }
}

/// Forwards a message on behalf of `from`, as mmn_forward does for the default room.
///
/// # Safety
/// `from` and `to` are NULL or end with a NUL. `data` is as in BroadcastMessage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ForwardMessage(
    from: *const c_char,
    to: *const c_char,
    data: *const u8,
    length: i32,
    msg_type: u16,
    flags: u8,
) -> i32 {
    let (room, options) = (mmn_default_room(), with_flags(flags));
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_forward(room, from, to, data, length, msg_type, &options) }
}

/// As mmn_is_announced, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn IsMdnsActive() -> u8 {
    mmn_is_announced(mmn_default_room())
}

/// Turns the log on standard error on (not 0) or off (0), at the level of the last
/// mmn_set_log_stderr, MMN_LOG_INFO by default. It may be called at any time.
///
/// Returns MMN_OK.
#[unsafe(no_mangle)]
pub extern "C" fn EnableLogging(enabled: u8) -> i32 {
    log_command("EnableLogging", || {
        logging::enable(enabled != 0);
        Ok(Code::Ok.value())
    })
}

/// As mmn_last_error_code.
#[unsafe(no_mangle)]
pub extern "C" fn GetLastErrorCode() -> i32 {
    mmn_last_error_code()
}

/// As mmn_last_error_message.
#[unsafe(no_mangle)]
pub extern "C" fn GetLastErrorMessage() -> *const c_char {
    mmn_last_error_message()
}

/// As mmn_connect, for the default room.
///
/// # Safety
/// As [`mmn_connect`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ConnectToPeer(addr: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_connect(mmn_default_room(), addr) }
}

/// As mmn_local_address, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetLocalAddr() -> *const c_char {
    mmn_local_address(mmn_default_room())
}

/// As mmn_local_id, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetLocalPeerId() -> *const c_char {
    mmn_local_id(mmn_default_room())
}

/// As mmn_session_id, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetSessionId() -> *const c_char {
    mmn_session_id(mmn_default_room())
}

/// As mmn_peer_count, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetPeerCount() -> i32 {
    mmn_peer_count(mmn_default_room())
}

/// As mmn_peers, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetPeerList() -> *const c_char {
    mmn_peers(mmn_default_room())
}

/// As mmn_peer_rtt_ms, for the default room.
///
/// # Safety
/// As [`mmn_peer_rtt_ms`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetPeerRTT(peer_id: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_peer_rtt_ms(mmn_default_room(), peer_id) }
}

/// As mmn_peer_status, for the default room.
///
/// # Safety
/// As [`mmn_peer_status`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetPeerStatus(peer_id: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_peer_status(mmn_default_room(), peer_id) }
}

/// As mmn_set_auto_reconnect, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn SetAutoReconnect(enabled: u8) -> i32 {
    mmn_set_auto_reconnect(mmn_default_room(), enabled)
}

/// As mmn_auto_reconnect, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn IsAutoReconnectEnabled() -> u8 {
    mmn_auto_reconnect(mmn_default_room())
}

/// As mmn_set_leader, for the default room.
///
/// # Safety
/// As [`mmn_set_leader`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SetLeader(peer_id: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { mmn_set_leader(mmn_default_room(), peer_id) }
}

/// As mmn_set_auto_election, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn EnableAutoLeaderElection(enabled: u8) -> i32 {
    mmn_set_auto_election(mmn_default_room(), enabled)
}

/// As mmn_leader, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn GetCurrentLeader() -> *const c_char {
    mmn_leader(mmn_default_room())
}

/// As mmn_is_leader, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn IsLeader() -> u8 {
    mmn_is_leader(mmn_default_room())
}

/// As mmn_set_centralized, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn SetCentralizedMode(enabled: u8) -> i32 {
    mmn_set_centralized(mmn_default_room(), enabled)
}

/// As mmn_centralized, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn IsCentralizedMode() -> u8 {
    mmn_centralized(mmn_default_room())
}

/// As mmn_set_auto_forward, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn SetCentralizedAutoForward(enabled: u8) -> i32 {
    mmn_set_auto_forward(mmn_default_room(), enabled)
}

/// As mmn_auto_forward, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn IsCentralizedAutoForward() -> u8 {
    mmn_auto_forward(mmn_default_room())
}

/// As mmn_set_compression_threshold, for the default room.
#[unsafe(no_mangle)]
pub extern "C" fn SetCompressionThreshold(bytes: u32) -> i32 {
    mmn_set_compression_threshold(mmn_default_room(), bytes)
}

/// Sets the longest time that a member of a room with MMN_STRATEGY_GOSSIP waits after opening the
/// room for the number of members to settle, in milliseconds [15000]. Above 0. After that it takes
/// part in elections. The wait ends when it learns of a leader.
///
/// The host may change this setting and the three below before a room is open and while one is.
/// They belong to the process: they apply from the next window on, and to all default rooms opened
/// later.
/// With MMN_STRATEGY_RAFT they are stored and have no effect. All members of a room should use the
/// same values.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn SetStartupGracePeriod(milliseconds: u32) -> i32 {
    set("SetStartupGracePeriod", milliseconds, |windows, length| {
        windows.startup_grace = length;
    })
}

/// The value of SetStartupGracePeriod, 15000 by default.
#[unsafe(no_mangle)]
pub extern "C" fn GetStartupGracePeriod() -> u32 {
    get("GetStartupGracePeriod", |windows| windows.startup_grace)
}

/// Sets how often a member samples the number of members during SetStartupGracePeriod, in
/// milliseconds [1000]. Above 0. Two equal samples in a row end the wait.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn SetMembershipSampleInterval(milliseconds: u32) -> i32 {
    set(
        "SetMembershipSampleInterval",
        milliseconds,
        |windows, length| windows.sample_interval = length,
    )
}

/// The value of SetMembershipSampleInterval, 1000 by default.
#[unsafe(no_mangle)]
pub extern "C" fn GetMembershipSampleInterval() -> u32 {
    get("GetMembershipSampleInterval", |windows| {
        windows.sample_interval
    })
}

/// Sets how long a member waits for a declaration of the leader before it proposes itself, in
/// milliseconds [10000]. Above 0. The leader declares itself twice in that time. When the leader is
/// lost, another leads after half to twice that time, plus SetLeaderElectionDuration.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn SetLeaderAliveThreshold(milliseconds: u32) -> i32 {
    set(
        "SetLeaderAliveThreshold",
        milliseconds,
        |windows, length| windows.alive_threshold = length,
    )
}

/// The value of SetLeaderAliveThreshold, 10000 by default.
#[unsafe(no_mangle)]
pub extern "C" fn GetLeaderAliveThreshold() -> u32 {
    get("GetLeaderAliveThreshold", |windows| windows.alive_threshold)
}

/// Sets how long a member that proposed itself collects the proposals of others, in milliseconds
/// [5000]. Above 0. Then it leads, unless a lower peer id also proposed itself or leads. If this is
/// shorter than SetLeaderAliveThreshold, others may propose themselves too late, and the leader may
/// not be the lowest id; see MMN_GOSSIP_STRICT_LOWEST.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn SetLeaderElectionDuration(milliseconds: u32) -> i32 {
    set(
        "SetLeaderElectionDuration",
        milliseconds,
        |windows, length| windows.election_duration = length,
    )
}

/// The value of SetLeaderElectionDuration, 5000 by default.
#[unsafe(no_mangle)]
pub extern "C" fn GetLeaderElectionDuration() -> u32 {
    get("GetLeaderElectionDuration", |windows| {
        windows.election_duration
    })
}

/// Time for which a member remembers proposals and declarations of others, so that it ignores older
/// ones: ten times GetLeaderAliveThreshold, in milliseconds, at most UINT32_MAX.
#[unsafe(no_mangle)]
pub extern "C" fn GetMsgExpirationTimeout() -> u32 {
    get("GetMsgExpirationTimeout", Windows::message_expiration)
}

/// The interval at which a leader declares itself: half of GetLeaderAliveThreshold, in
/// milliseconds, rounded down.
#[unsafe(no_mangle)]
pub extern "C" fn GetLeadershipDeclarationInterval() -> u32 {
    get(
        "GetLeadershipDeclarationInterval",
        Windows::declaration_interval,
    )
}

fn set(function: &str, milliseconds: u32, change: impl FnOnce(&mut Windows, Duration)) -> i32 {
    command(function, || {
        if milliseconds == 0 {
            return Err(Failure::invalid(format!(
                "milliseconds is 0; {function} takes 1 to {}",
                u32::MAX
            )));
        }
        let length = Duration::from_millis(milliseconds.into());
        Ok(default_room::change_windows(|windows| {
            change(windows, length)
        })?)
    })
}

fn get(function: &str, length: impl FnOnce(&Windows) -> Duration) -> u32 {
    guard(function, || millis(length(&default_room::windows())))
}
