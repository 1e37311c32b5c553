//! How rooms and relays use QUIC: windows, timeouts, datagrams, and the congestion controller.

use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::congestion::DelayBoundConfig;

/// The search for a path's MTU ends when the next step would be shorter: it probes 1326 and 1452 bytes. Finer steps cost a new
/// link twice as many packets, and would save at most a tenth of those of bulk data on the few paths between the two.
const MTU_STEP_BYTES: u16 = 126;
/// Silence after which quinn gives a connection up that this node dials. Only a backstop: liveness is the core's.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The same of a connection that this node accepts, at least; the shorter one counts at both ends. A stranger can leave a
/// connection behind that only this ends (`Lingering`).
const MIN_ACCEPTED_IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// The same at most, whatever the heartbeats.
const MAX_ACCEPTED_IDLE_TIMEOUT: Duration = Duration::from_secs(3600);
/// Streams that the other end may have open towards us: the control stream.
pub const MAX_INCOMING_BIDI_STREAMS: u32 = 1;
/// Streams that a member may have open towards us: 256 channels, the lane of unordered broadcasts through the leader, 128
/// unordered messages, and as many again as QUIC may still count while it gives finished ones free (an eighth of the limit).
/// quinn's table of them is twice as large from 448 on.
pub const MAX_INCOMING_UNI_STREAMS: u32 = 440;
/// The same until a member opens a second one; many never do. quinn keeps a table for all streams that may come: 1 KiB for
/// these, 12 KiB for [`MAX_INCOMING_UNI_STREAMS`].
pub const FIRST_INCOMING_UNI_STREAMS: u32 = 28;
/// Bytes that one stream may have unread here.
pub const STREAM_RECEIVE_WINDOW_BYTES: u32 = 2 << 20;
/// Bytes that all streams of a member's connection may have unread here.
pub const RECEIVE_WINDOW_BYTES: u32 = 16 << 20;
/// Bytes that all streams of a stranger's connection may have unread here.
pub const STRANGER_RECEIVE_WINDOW_BYTES: u32 = 64 << 10;
/// Bytes of one connection that are sent and not yet acknowledged, or wait in quinn to be sent.
pub const SEND_WINDOW_BYTES: u64 = 8 << 20;
/// Bytes of unread datagrams that one connection keeps; the oldest goes first.
pub const DATAGRAM_RECEIVE_BUFFER_BYTES: usize = 64 << 10;
/// Bytes of datagrams that wait to be sent on one connection; the oldest goes first.
pub const DATAGRAM_SEND_BUFFER_BYTES: usize = 32 << 10;
/// Dials from outside that wait to be accepted; those beyond are refused.
pub const MAX_WAITING_INCOMING: usize = 1024;
/// Bytes that one waiting dial may have buffered here beside its first packet.
pub const WAITING_BUFFER_BYTES: u64 = 16 << 10;
/// Bytes that all waiting dials together may have buffered here beside their first packets.
pub const WAITING_BUFFER_TOTAL_BYTES: u64 = 2 << 20;

/// Round-trip time that quinn assumes for a new link. It is below quinn's default (333 ms), so that the first packets
/// of a dial are resent sooner, and a member whose cable comes back during a dial does not have to wait for the next.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// How both roles use QUIC. A stranger gets the control stream and a small window; [`open_windows`] gives
/// the rest.
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

/// Silence after which quinn gives a connection up that this node accepts. The core's heartbeats are faster.
pub fn accepted_idle_timeout(heartbeat_timeout: Duration) -> Duration {
    heartbeat_timeout
        .saturating_mul(2)
        .clamp(MIN_ACCEPTED_IDLE_TIMEOUT, MAX_ACCEPTED_IDLE_TIMEOUT)
}

/// [`transport_config`] for the end that accepts. QUIC keeps the connection alive while the room decides about a newcomer.
pub fn accepting_transport_config(idle_timeout: Duration) -> TransportConfig {
    let mut transport = transport_config();
    transport
        .max_idle_timeout(IdleTimeout::try_from(idle_timeout).ok())
        .keep_alive_interval(Some(idle_timeout / 3));
    transport
}

/// Lets the other end, which has shown that it knows the room, open its first lanes and fill the full window.
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
