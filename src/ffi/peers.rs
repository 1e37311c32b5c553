//! Other members, and this node's address and ids.

use std::ffi::c_char;

use super::arguments::{checked_peer_id, payload, peer_id as peer_id_argument, text};
use super::failure::Failure;
use super::guard::{command, log_command, opened, query};
use super::lifecycle::MmnRoom;
use super::stats::path_constant;
use super::strings::hand_out;
use crate::config::TurnServer;
use crate::core::path::LinkPath;
use crate::error::{Code, ConnectError};
use crate::quoted::Quoted;
use crate::registry::{self, Handle};
use crate::snapshot::PeerView;
use crate::target::parse_pasted_target;

/// Connects to the member at `addr`: "ip:port", "[ipv6]:port" or "name:port". The library removes
/// blanks, line ends and invisible characters around it, and takes full-width characters as ASCII
/// ones, so that text which a player pastes or types works. A link-local IPv6 address needs its
/// zone, the name or the number of this machine's interface: "[fe80::1%eth0]:port".
///
/// After MMN_OK, exactly one MMN_EVENT_CONNECTION_RESULT follows, whose `other` is `addr` as passed
/// here: within handshake_timeout_ms if nothing answers; each answer renews that time, up to three
/// times that in all. If five dials to an address within a minute fail as a dial with a wrong session id or
/// secret does, the library does not dial that address for a while: the result is MMN_RATE_LIMITED,
/// and the data of MMN_EVENT_CONNECTION_RESULT names the number of seconds. A host name that does
/// not resolve is MMN_NAME_NOT_RESOLVED.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (malformed, or this node's own address), MMN_NOT_INITIALIZED,
/// MMN_NOT_SUPPORTED (the room was opened with MMN_PATHS_RELAYED) or MMN_MAX_CONNECTIONS_REACHED
/// (too many attempts without a result).
///
/// # Safety
/// `addr` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_connect(room: MmnRoom, addr: *const c_char) -> i32 {
    command("mmn_connect", || {
        // SAFETY: the caller's promise, passed on.
        let text = unsafe { text("addr", addr) }?;
        let target = parse_pasted_target(text).map_err(ConnectError::from)?;
        Ok(opened(room)?.connect(text, target)?)
    })
}

/// Closes the connection to a peer. Messages accepted for it get up to 1 second to arrive. Neither
/// side dials the other again until one of them calls mmn_connect. An earlier mmn_connect of this
/// node that reaches the peer only now ends with MMN_REJECTED. An unknown id is MMN_OK. In a room
/// with a fixed host, the room ends for the guest of the two.
///
/// `code` and the `length` bytes at `data` (at most 3072) are for the hosts: they come with
/// MMN_EVENT_LEFT (MMN_LEFT_DISCONNECTED) at both ends, and with MMN_EVENT_ROOM_ENDED
/// (MMN_END_DISCONNECTED) where the room ends. A peer that is reconnecting does not receive them.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (`peer_id` is not an id, or this node's own; `length` is
/// above 3072) or MMN_NOT_INITIALIZED.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL. `data` points to `length` readable bytes, or may be NULL
/// when `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_disconnect(
    room: MmnRoom,
    peer_id: *const c_char,
    code: i32,
    data: *const u8,
    length: i32,
) -> i32 {
    command("mmn_disconnect", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: the caller's promise, passed on.
        let bytes = unsafe { payload(data, length) }?;
        Ok(opened(room)?.disconnect_with(&peer, code, bytes)?)
    })
}

/// An address that other members can pass to mmn_connect: the bound port at this machine's best
/// address, the first of mmn_local_addresses. NULL when no room is open.
///
/// The string is valid until this thread's next call that returns a string.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_local_address(room: MmnRoom) -> *const c_char {
    query("mmn_local_address", || {
        Ok(hand_out(opened(room)?.local_address()))
    })
}

/// All addresses that other members can pass to mmn_connect, one a line: the address, a blank, and
/// the name of the interface, which may contain blanks. At most 64, the likeliest first: IPv4
/// addresses of networks before IPv6 ones, both before those of tunnels, VPNs and bridges to
/// virtual machines. A loopback address only if the machine has no other. An address behind a
/// router works from inside its network only. NULL when no room is open.
///
/// The string is valid until this thread's next call that returns a string.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_local_addresses(room: MmnRoom) -> *const c_char {
    query("mmn_local_addresses", || {
        let addresses = opened(room)?.local_addresses();
        let lines: Vec<_> = addresses
            .iter()
            .map(|(address, interface)| format!("{address} {interface}"))
            .collect();
        Ok(hand_out(lines.join("\n")))
    })
}

/// The address at which members on the internet reach this node: "ip:port", or "[ipv6]:port". With
/// MmnOptions.port_mapping it is the one that the router claims to forward here, unless what the
/// others see speaks against that (MMN_EVENT_PORT_MAPPING). Until a member or a relay sees this node
/// at an address of the internet, that is the router's word alone: one that lies can name any machine's
/// address. Else it is the one at which most members see this node. A router shows its own address
/// for all machines behind it. Give the address to players who dial this node only if the router lets
/// them in: one that forwards no port, and admits only answers, does not.
///
/// NULL when the router forwards no port and no member sees this node at an address of the internet,
/// as in a local network, or when no room is open. The address changes with the members and with the
/// router.
///
/// The string is valid until this thread's next call that returns a string.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_public_address(room: MmnRoom) -> *const c_char {
    query("mmn_public_address", || {
        let address = opened(room)?.snapshot().public_address;
        Ok(address.map_or(std::ptr::null(), hand_out))
    })
}

/// This node's peer id. NULL when no room is open.
///
/// The string is valid until this thread's next call that returns a string.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_local_id(room: MmnRoom) -> *const c_char {
    query("mmn_local_id", || Ok(hand_out(opened(room)?.peer_id())))
}

/// The room's session id. NULL when no room is open.
///
/// The string is valid until this thread's next call that returns a string.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_session_id(room: MmnRoom) -> *const c_char {
    query("mmn_session_id", || {
        Ok(hand_out(opened(room)?.session_id()))
    })
}

/// The number of connected peers, without this node. -1 when no room is open.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_peer_count(room: MmnRoom) -> i32 {
    if let Some(connected) = Handle::from_number(room).and_then(registry::connected) {
        return i32::try_from(connected).unwrap_or(i32::MAX);
    }
    query("mmn_peer_count", || {
        let connected = opened(room)?.snapshot().connected;
        Ok(i32::try_from(connected).unwrap_or(i32::MAX))
    })
}

/// The ids of the connected peers, without this node: sorted as bytes, joined by '\n'. "" when
/// there are none, NULL when no room is open.
///
/// The string is valid until this thread's next call that returns a string.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_peers(room: MmnRoom) -> *const c_char {
    query("mmn_peers", || {
        Ok(hand_out(&opened(room)?.snapshot().peer_list))
    })
}

/// The ids of the members of the room, without this node: the peers in mmn_peers and the
/// reconnecting ones, sorted as bytes, joined by '\n'. mmn_peer_status distinguishes them. "" if
/// there are none, NULL when no room is open.
///
/// The string is valid until this thread's next call that returns a string.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_members(room: MmnRoom) -> *const c_char {
    query("mmn_members", || {
        Ok(hand_out(&opened(room)?.snapshot().member_list))
    })
}

/// The address of a peer, for mmn_connect: the IP address at which this node's link reaches it,
/// with the port on which it accepts links. While the peer is reconnecting, that of its last link.
/// NULL when the peer is neither connected nor reconnecting, `peer_id` is not an id, or no room is
/// open; the last two set mmn_last_error_code.
///
/// The string is valid until this thread's next call that returns a string.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_peer_address(room: MmnRoom, peer_id: *const c_char) -> *const c_char {
    query("mmn_peer_address", || {
        // SAFETY: the caller's promise, passed on.
        let text = unsafe { text("peer_id", peer_id) }?;
        let peer = checked_peer_id("peer_id", text)?;
        let room = opened(room)?;
        let snapshot = room.snapshot();
        let address = snapshot.peer(peer.as_str()).and_then(|peer| peer.address);
        Ok(address.map_or(std::ptr::null(), hand_out))
    })
}

/// Replaces the TURN servers of MmnOptions.turn and their credentials, in the same form. NULL uses none
/// from now on. A port at a server whose line is in the list again, word for word, stays; any other is given
/// back (MMN_EVENT_TURN with MMN_CONNECTION_FAILED), and the library asks the servers of the list at once.
/// MMN_OK does not mean that a server answers, and of two calls the last list counts. Call it before the credentials
/// expire, or when MMN_EVENT_TURN reports MMN_AUTHENTICATION_FAILED. A server may let an expired member keep
/// the port until the connection is lost, so a new list may break a path that still works: pass it while
/// the game can wait a second.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (MMN_STRATEGY_ETCD). On
/// failure nothing has changed.
///
/// # Safety
/// `servers` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_set_turn(room: MmnRoom, servers: *const c_char) -> i32 {
    command("mmn_set_turn", || {
        let room = opened(room)?;
        let servers = match servers.is_null() {
            true => Vec::new(),
            false => {
                // SAFETY: the caller's promise, passed on.
                let text = unsafe { text("servers", servers) }?;
                TurnServer::parse_list(text)?
            }
        };
        Ok(room.set_turn(servers)?)
    })
}

/// The path of the messages to and from a peer: MMN_PATH_DIRECT, MMN_PATH_THROUGH_LEADER,
/// MMN_PATH_THROUGH_MEMBER, MMN_PATH_THROUGH_RELAY or MMN_PATH_THROUGH_TURN. MMN_EVENT_PATH_CHANGED
/// reports each change.
/// MmnPeerStats.path has the same number. mmn_peer_carrier names the member between the two.
///
/// Returns that, or MMN_INVALID_ARGUMENT (`peer_id` is not an id), MMN_NOT_INITIALIZED or
/// MMN_PEER_NOT_FOUND (this node has no link to the peer: the peer is unknown or reconnecting, or
/// this node itself).
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_peer_path(room: MmnRoom, peer_id: *const c_char) -> i32 {
    log_command("mmn_peer_path", || {
        // SAFETY: the caller's promise, passed on.
        let text = unsafe { text("peer_id", peer_id) }?;
        let peer = checked_peer_id("peer_id", text)?;
        let room = opened(room)?;
        let snapshot = room.snapshot();
        let path = snapshot.path_to(peer.as_str());
        path.map(|path| path_constant(path).cast_signed())
            .ok_or_else(|| Failure {
                code: Code::PeerNotFound,
                sentence: format!("this node has no link to the peer {}", Quoted(text)),
            })
    })
}

/// The id of the member that carries the packets to a peer: the leader with MMN_PATH_THROUGH_LEADER,
/// another member with MMN_PATH_THROUGH_MEMBER. Each end of the link chooses the member that carries
/// its own packets, so the peer may name another one.
///
/// NULL when no member carries them: the link is direct or over a relay, or this node has no link to
/// the peer. NULL also when `peer_id` is not an id, or no room is open; these two set mmn_last_error_code.
///
/// The string is valid until this thread's next call that returns a string.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_peer_carrier(room: MmnRoom, peer_id: *const c_char) -> *const c_char {
    query("mmn_peer_carrier", || {
        // SAFETY: the caller's promise, passed on.
        let text = unsafe { text("peer_id", peer_id) }?;
        let peer = checked_peer_id("peer_id", text)?;
        let room = opened(room)?;
        let snapshot = room.snapshot();
        let carrier = snapshot.path_to(peer.as_str()).and_then(LinkPath::carrier);
        Ok(carrier.map_or(std::ptr::null(), hand_out))
    })
}

/// The index of a peer: a number from 1, for hosts that keep peers in arrays. A peer has it from
/// before its MMN_EVENT_JOINED is queued until the callbacks for its MMN_EVENT_LEFT have returned,
/// also while it is reconnecting. No later session in this room has the same index. It is this
/// node's own: another member gives the peer another index. MmnEvent.peer_index has it, too.
///
/// Returns 0 for this node, when the peer is unknown, `peer_id` is not an id, or no room is open;
/// the last two set mmn_last_error_code.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_peer_index(room: MmnRoom, peer_id: *const c_char) -> u32 {
    query("mmn_peer_index", || {
        // SAFETY: the caller's promise, passed on.
        let text = unsafe { text("peer_id", peer_id) }?;
        let known = registry::find(room).map_or(0, |room| room.dispatch().indices().of(text));
        if known != 0 {
            return Ok(known);
        }
        // The id of a known peer is valid. Only others need the check, which allocates.
        checked_peer_id("peer_id", text)?;
        opened(room)?;
        Ok(0)
    })
}

/// The id of the peer with this index. NULL when no peer has it, which is no error, or when no room
/// is open.
///
/// The string is valid until this thread's next call that returns a string.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_peer_id(room: MmnRoom, index: u32) -> *const c_char {
    query("mmn_peer_id", || {
        let peer = opened(room)?.dispatch().indices().peer(index);
        Ok(peer.map_or(std::ptr::null(), hand_out))
    })
}

/// The smoothed round-trip time to a peer, in milliseconds, rounded up. -1 when it is not measured
/// yet, the peer is unknown, `peer_id` is not an id, or no room is open; the last two set
/// mmn_last_error_code.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_peer_rtt_ms(room: MmnRoom, peer_id: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { query_peer("mmn_peer_rtt_ms", room, peer_id, rtt_ms) }
}

/// The state of the link to a peer: MMN_PEER_CONNECTED, MMN_PEER_RECONNECTING or
/// MMN_PEER_HANDSHAKING. -1 when the peer is unknown, `peer_id` is not an id, or no room is open;
/// the last two set mmn_last_error_code.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_peer_status(room: MmnRoom, peer_id: *const c_char) -> i32 {
    // SAFETY: the caller's promise, passed on.
    unsafe { query_peer("mmn_peer_status", room, peer_id, |peer| peer.status as i32) }
}

const UNKNOWN: i32 = -1;

fn rtt_ms(peer: &PeerView) -> i32 {
    peer.rtt.map_or(UNKNOWN, |rtt| {
        let millis = rtt.as_nanos().div_ceil(1_000_000);
        i32::try_from(millis).unwrap_or(i32::MAX)
    })
}

/// Asks the snapshot about a peer, for a query.
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL.
unsafe fn query_peer(
    function: &str,
    room: MmnRoom,
    peer_id: *const c_char,
    answer: impl FnOnce(&PeerView) -> i32,
) -> i32 {
    query(function, || {
        // SAFETY: the caller's promise, passed on.
        let text = unsafe { text("peer_id", peer_id) }?;
        if let Some(room) = registry::find(room)
            && let Some(peer) = room.snapshot().peer(text)
        {
            return Ok(answer(peer));
        }
        // The id of a known peer is valid. Only others need the check, which allocates.
        checked_peer_id("peer_id", text)?;
        opened(room)?;
        Ok(UNKNOWN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::PeerId;
    use crate::snapshot::PeerStatus;
    use std::time::Duration;

    #[test]
    fn round_trip_times_are_rounded_up() {
        let peer = |rtt| PeerView {
            id: PeerId::new("p").expect("valid"),
            status: PeerStatus::Connected,
            address: None,
            key: None,
            rtt,
            jitter: None,
            host_silent: Duration::ZERO,
            path: None,
        };
        let of_micros = |micros| rtt_ms(&peer(Some(Duration::from_micros(micros))));
        assert_eq!(rtt_ms(&peer(None)), -1);
        assert_eq!(of_micros(0), 0);
        assert_eq!(of_micros(1), 1);
        assert_eq!(of_micros(1000), 1);
        assert_eq!(of_micros(1001), 2);
        assert_eq!(of_micros(u64::MAX), i32::MAX);
    }
}
