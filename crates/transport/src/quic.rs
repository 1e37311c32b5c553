//! How rooms and relays use QUIC: windows, timeouts, datagrams, and the congestion controller.

use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::congestion::DelayBoundConfig;

/// The search for a path's MTU ends when the next step would be shorter: it probes 1326 and 1452 bytes. Finer
/// steps would double the packets of that search on each new link, and would save at most a tenth of the
/// packets of bulk data on the few paths between the two.
const MTU_STEP_BYTES: u16 = 126;
/// Idle timeout of connections that this node dials. Only a backstop: the core decides about liveness.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Minimum idle timeout of connections that this node accepts; the shorter timeout of both ends applies. A
/// stranger can leave a connection behind that only this timeout ends (`Lingering`).
const MIN_ACCEPTED_IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum idle timeout of connections that this node accepts, whatever the heartbeats.
const MAX_ACCEPTED_IDLE_TIMEOUT: Duration = Duration::from_secs(3600);
/// Bidirectional streams that the other end may open: the control stream.
pub const MAX_INCOMING_BIDI_STREAMS: u32 = 1;
/// Unidirectional streams that a member may open: 256 channels, the lane of unordered broadcasts through the
/// leader, three of the room's state, two of transfers, 128 unordered messages, and the finished ones that QUIC still counts until it
/// returns their credit (an eighth of the limit). quinn's table of streams doubles from 448 on.
pub const MAX_INCOMING_UNI_STREAMS: u32 = 446;
/// Unidirectional streams that a member may open before it uses a second one; many never do. quinn keeps a
/// table for all streams that may come: 1 KiB for these, 12 KiB for [`MAX_INCOMING_UNI_STREAMS`].
pub const FIRST_INCOMING_UNI_STREAMS: u32 = 28;
/// Unread bytes of one stream, at most.
pub const STREAM_RECEIVE_WINDOW_BYTES: u32 = 2 << 20;
/// Unread bytes of all streams of a member's connection, at most.
pub const RECEIVE_WINDOW_BYTES: u32 = 16 << 20;
/// Unread bytes of all streams of a stranger's connection, at most.
pub const STRANGER_RECEIVE_WINDOW_BYTES: u32 = 64 << 10;
/// Bytes of one connection that are unacknowledged or wait in quinn to be sent, at most.
pub const SEND_WINDOW_BYTES: u64 = 8 << 20;
/// Unread bytes of datagrams that one connection keeps; the oldest are dropped first.
pub const DATAGRAM_RECEIVE_BUFFER_BYTES: usize = 64 << 10;
/// Bytes of datagrams that wait to be sent on one connection; the oldest are dropped first.
pub const DATAGRAM_SEND_BUFFER_BYTES: usize = 32 << 10;
/// Incoming dials that wait to be accepted; further ones are refused.
pub const MAX_WAITING_INCOMING: usize = 1024;
/// Bytes buffered for one waiting dial beside its first packet, at most.
pub const WAITING_BUFFER_BYTES: u64 = 16 << 10;
/// Bytes buffered for all waiting dials together beside their first packets, at most.
pub const WAITING_BUFFER_TOTAL_BYTES: u64 = 2 << 20;

/// Round-trip time that quinn assumes for a new link. It is below quinn's default (333 ms), so that the first packets
/// of a dial are resent sooner, and a member whose network returns during a dial need not wait for the next dial.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// Transport settings of both roles. A stranger gets the control stream and a small window;
/// [`open_windows`] grants the rest.
pub fn transport_config() -> TransportConfig {
    let mut mtu_discovery = MtuDiscoveryConfig::default();
    mtu_discovery.minimum_change(MTU_STEP_BYTES);
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .keep_alive_interval(None)
        .initial_rtt(INITIAL_RTT)
        .mtu_discovery_config(Some(mtu_discovery))
        .max_concurrent_bidi_streams(VarInt::from_u32(MAX_INCOMING_BIDI_STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(STREAM_RECEIVE_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(STRANGER_RECEIVE_WINDOW_BYTES))
        .send_window(SEND_WINDOW_BYTES)
        .datagram_receive_buffer_size(Some(DATAGRAM_RECEIVE_BUFFER_BYTES))
        .datagram_send_buffer_size(DATAGRAM_SEND_BUFFER_BYTES)
        // Cubic makes a game wait on a lossy line, and fills the queue of a good one (docs/lab.md).
        .congestion_controller_factory(Arc::new(DelayBoundConfig));
    transport
}

/// Idle timeout of connections that this node accepts. The core's heartbeats are faster.
pub fn accepted_idle_timeout(heartbeat_timeout: Duration) -> Duration {
    heartbeat_timeout
        .saturating_mul(2)
        .clamp(MIN_ACCEPTED_IDLE_TIMEOUT, MAX_ACCEPTED_IDLE_TIMEOUT)
}

/// [`transport_config`] of the accepting end. QUIC keeps the connection alive while the room decides about a newcomer.
pub fn accepting_transport_config(idle_timeout: Duration) -> TransportConfig {
    let mut transport = transport_config();
    transport
        .max_idle_timeout(IdleTimeout::try_from(idle_timeout).ok())
        .keep_alive_interval(Some(idle_timeout / 3));
    transport
}

/// Grants a peer that has proved that it knows the room its first lanes and the full window.
pub fn open_windows(connection: &Connection) {
    connection.set_max_concurrent_uni_streams(VarInt::from_u32(FIRST_INCOMING_UNI_STREAMS));
    connection.set_receive_window(VarInt::from_u32(RECEIVE_WINDOW_BYTES));
}

/// Lets a member that uses more than its classic lane open all lanes of the protocol.
pub fn open_all_lanes(connection: &Connection) {
    connection.set_max_concurrent_uni_streams(VarInt::from_u32(MAX_INCOMING_UNI_STREAMS));
}

#[cfg(test)]
mod tests;
