//! Statistics of one peer, and of the room.

use std::ffi::c_char;
use std::mem::offset_of;
use std::time::Duration;

use super::arguments::peer_id as peer_id_argument;
use super::failure::Failure;
use super::growing::{self, Growing};
use super::guard::{command, opened, query};
use super::lifecycle::MmnRoom;
use crate::clock::Moment;
use crate::core::id::PeerId;
use crate::core::path::LinkPath;
use crate::error::SendError;
use crate::room::{PeerMeter, Room};
use crate::snapshot::PeerView;

/// mmn_peer_path, MmnPeerStats.path, MMN_EVENT_PATH_CHANGED: on a link of its own.
pub const MMN_PATH_DIRECT: u32 = 0;
/// mmn_peer_path, MmnPeerStats.path, MMN_EVENT_PATH_CHANGED: through the leader, encrypted from end
/// to end. The round trip is that of both ways.
pub const MMN_PATH_THROUGH_LEADER: u32 = 1;
/// mmn_peer_path, MmnPeerStats.path, MMN_EVENT_PATH_CHANGED: through a member that does not lead, as
/// MMN_PATH_THROUGH_LEADER. mmn_peer_carrier names the member.
pub const MMN_PATH_THROUGH_MEMBER: u32 = 2;
/// mmn_peer_path, MmnPeerStats.path, MMN_EVENT_PATH_CHANGED: over a relay, encrypted from end to end.
/// A relay is no member: mmn_peer_carrier is NULL.
pub const MMN_PATH_THROUGH_RELAY: u32 = 3;
/// mmn_peer_path, MmnPeerStats.path, MMN_EVENT_PATH_CHANGED: through this member's port at a TURN server
/// of MmnOptions.turn, encrypted from end to end. The other member sees a direct path. mmn_peer_carrier is
/// NULL.
pub const MMN_PATH_THROUGH_TURN: u32 = 4;

/// Statistics of a peer, from mmn_peer_stats. Counts of bytes, packets and messages start at 0 when
/// the peer joins, and continue when a lost link comes back.
///
/// Later versions only append fields. The caller sets `struct_size` to its own sizeof(MmnPeerStats),
/// and the library writes no more than that many bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MmnPeerStats {
    /// Set by the caller: sizeof(MmnPeerStats) as it was compiled, at least 8. mmn_peer_stats does not
    /// change it.
    pub struct_size: u32,
    /// Smoothed round-trip time in microseconds (RFC 6298, from heartbeats). 0 before the first
    /// measurement.
    pub rtt_us: u32,
    /// Mean deviation of the round-trip time in microseconds (RTTVAR of RFC 6298, from the same
    /// heartbeats). 0 before the first measurement.
    pub jitter_us: u32,
    /// Packets to the peer that were lost, in parts per million of those sent. The library sends
    /// lost packets again, so that they lose no messages.
    pub loss_ppm: u32,
    /// Bytes sent to the peer in UDP payloads: messages, heartbeats, acknowledgements.
    pub bytes_sent: u64,
    /// Bytes received from the peer in UDP payloads.
    pub bytes_received: u64,
    /// Messages passed to the network for the peer, each counted once.
    pub messages_sent: u64,
    /// Messages of the peer that this node accepted.
    pub messages_received: u64,
    /// Messages in the queue to the peer that it has not acknowledged yet.
    pub queue_messages: u32,
    /// Age of the oldest message in that queue, in milliseconds; 0 when the queue is empty.
    pub queue_age_ms: u32,
    /// Bytes of the payloads in that queue.
    pub queue_bytes: u64,
    /// Congestion window in bytes: the most that may be in flight to the peer. 0 while the link is
    /// lost.
    pub congestion_window: u64,
    /// Largest UDP payload that the path carries, in bytes, as measured. 0 while the link is lost.
    pub path_mtu: u32,
    /// Number of times that the link was lost and came back.
    pub reconnects: u32,
    /// Path of the messages to the peer, as mmn_peer_path returns it: MMN_PATH_DIRECT,
    /// MMN_PATH_THROUGH_LEADER, MMN_PATH_THROUGH_MEMBER, MMN_PATH_THROUGH_RELAY or
    /// MMN_PATH_THROUGH_TURN. MMN_PATH_DIRECT while the link is lost.
    pub path: u32,
    /// 0.
    pub reserved: u32,
    /// Time for which the peer's host had taken no events when the peer sent its newest heartbeat,
    /// in milliseconds: in poll mode the time since its last mmn_poll, else the time for which
    /// its running callback had been running. 0 while the link is lost.
    pub host_silent_ms: u32,
    /// 0.
    pub reserved2: u32,
}

/// Smallest struct that can hold a result: the size and the first figure.
const MIN_STRUCT_SIZE: usize = offset_of!(MmnPeerStats, jitter_us);

/// Writes statistics of the link and the queue to a peer to `stats`, whose `struct_size` the caller
/// has set. Writes at most min(struct_size, the size that this library knows) bytes. Never waits
/// for the network.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (`peer_id` is not an id, `stats` is NULL, `struct_size` is
/// below 8), MMN_NOT_INITIALIZED or MMN_PEER_NOT_FOUND (neither connected nor reconnecting).
///
/// # Safety
/// `peer_id` is NULL or ends with a NUL. `stats` is NULL, or points to struct_size writable bytes,
/// the first four of which are struct_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_peer_stats(
    room: MmnRoom,
    peer_id: *const c_char,
    stats: *mut MmnPeerStats,
) -> i32 {
    command("mmn_peer_stats", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        if stats.is_null() {
            return Err(Failure::invalid(
                "stats is NULL; give a struct whose struct_size is set".to_owned(),
            ));
        }
        // SAFETY: not NULL, so the caller guarantees four bytes; hosts may not align it.
        let struct_size = unsafe { stats.cast::<u32>().read_unaligned() };
        let size = usize::try_from(struct_size).unwrap_or(usize::MAX);
        if size < MIN_STRUCT_SIZE {
            return Err(Failure::invalid(format!(
                "struct_size {struct_size} is below {MIN_STRUCT_SIZE}; set it to sizeof(MmnPeerStats)"
            )));
        }
        let figures = MmnPeerStats {
            struct_size,
            ..figures(&*opened(room)?, peer)?
        };
        let size = size.min(size_of::<MmnPeerStats>());
        // SAFETY: the caller guarantees `struct_size` bytes, and MmnPeerStats has at least `size` bytes and no padding.
        unsafe {
            std::ptr::copy_nonoverlapping((&raw const figures).cast::<u8>(), stats.cast(), size);
        }
        Ok(())
    })
}

/// Statistics of the room at this member, from mmn_room_stats.
///
/// Later versions only append fields. The caller sets `struct_size` to its own sizeof(MmnRoomStats),
/// and the library writes no more than that many bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MmnRoomStats {
    /// Set by the caller: sizeof(MmnRoomStats) as it was compiled, at least 16. mmn_room_stats does
    /// not change it.
    pub struct_size: u32,
    /// Members of the room without a link to this member, because one of both has reached its
    /// `max_connections` (MMN_EVENT_UNLINKED_PEER): no broadcast of the one reaches the other.
    pub unlinked_peers: u32,
    /// Broadcasts that this member queued with success and that members without a link missed, one
    /// for each broadcast and each such member, since the room was opened. In a centralized room
    /// the leader counts the broadcasts that it relays.
    pub missed_broadcasts: u64,
    /// Maximum difference between mmn_room_time_ms here and at the leader, in microseconds: half of
    /// the best of the last round trips to it, the drift of the clocks since (at most one part in
    /// 500), and the correction that is under way. 0 at the leader. 4294967295 while no leader is
    /// known or nothing was measured.
    pub room_time_error_us: u32,
    /// 0.
    pub reserved: u32,
}

impl Growing for MmnRoomStats {
    const NAME: &'static str = "MmnRoomStats";
    // Version 102.
    const EARLIER: &'static [usize] = &[offset_of!(Self, room_time_error_us)];
}

/// Writes statistics of the room to `stats`, whose `struct_size` the caller has set. Writes at most
/// min(struct_size, the size that this library knows) bytes. Never waits for the network.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (`stats` is NULL, `struct_size` is below 16 or above 65536)
/// or MMN_NOT_INITIALIZED.
///
/// # Safety
/// `stats` is NULL, or points to struct_size writable bytes, the first four of which are
/// struct_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_room_stats(room: MmnRoom, stats: *mut MmnRoomStats) -> i32 {
    command("mmn_room_stats", || {
        // SAFETY: the caller's promise, passed on.
        unsafe { growing::struct_size("stats", stats) }?;
        let room = opened(room)?;
        let snapshot = room.snapshot();
        let error = snapshot
            .room_time
            .and_then(|time| time.error(Moment::now()));
        let figures = |struct_size| MmnRoomStats {
            struct_size,
            unlinked_peers: short(snapshot.unlinked),
            missed_broadcasts: room.missed_broadcasts(),
            room_time_error_us: error.map_or(u32::MAX, |error| short(error.as_micros())),
            reserved: 0,
        };
        // SAFETY: the caller's promise, passed on.
        unsafe { growing::fill("stats", stats, figures) }
    })
}

/// The room's time in milliseconds: a clock that all members share, for animations, countdowns and
/// the moments of events. It begins with 0 when the room's first member opens it, and goes on under
/// every later leader. -1 when no room is open, which sets mmn_last_error_code.
///
/// It never goes back. A member corrects a small difference to the leader's time by running at most
/// one part in 20 faster or slower, and jumps ahead when it enters an older room, or when its room
/// and an older one become one: the larger time counts. `room_time_error_us` of MmnRoomStats is the
/// difference that is possible now. Before this member knows a leader the time runs from mmn_open.
///
/// Any process that knows the room's name can move this clock ahead, by entering as the member of an
/// older room: it is no proof of when something happened.
///
/// Callable from every thread, inside callbacks too. Never waits for the network.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_room_time_ms(room: MmnRoom) -> i64 {
    query("mmn_room_time_ms", || {
        let ms = opened(room)?.room_time_us() / 1000;
        Ok(i64::try_from(ms).unwrap_or(i64::MAX))
    })
}

fn figures(room: &Room, peer: PeerId) -> Result<MmnPeerStats, SendError> {
    let snapshot = room.snapshot();
    let view = snapshot.peer(peer.as_str());
    match room.peer_meter(&peer) {
        Some(meter) => Ok(MmnPeerStats::new(view, &meter)),
        None => Err(SendError::PeerNotFound { id: peer }),
    }
}

impl MmnPeerStats {
    fn new(view: Option<&PeerView>, meter: &PeerMeter) -> Self {
        let loss = meter
            .packets_lost
            .saturating_mul(1_000_000)
            .checked_div(meter.packets_sent);
        Self {
            struct_size: 0,
            rtt_us: micros(view.and_then(|view| view.rtt)),
            jitter_us: micros(view.and_then(|view| view.jitter)),
            loss_ppm: short(loss.unwrap_or(0)),
            bytes_sent: meter.bytes_sent,
            bytes_received: meter.bytes_received,
            messages_sent: meter.messages_sent,
            messages_received: meter.messages_received,
            queue_messages: short(meter.queue_messages),
            queue_age_ms: short(meter.queue_age.unwrap_or_default().as_millis()),
            queue_bytes: meter.queue_bytes as u64,
            congestion_window: meter.congestion_window,
            path_mtu: meter.path_mtu.into(),
            reconnects: meter.reconnects,
            path: view
                .and_then(|view| view.path.as_ref())
                .map_or(MMN_PATH_DIRECT, path_constant),
            reserved: 0,
            host_silent_ms: short(
                view.map_or(Duration::ZERO, |view| view.host_silent)
                    .as_millis(),
            ),
            reserved2: 0,
        }
    }
}

/// The constant of a path.
pub(super) fn path_constant(path: &LinkPath) -> u32 {
    match path {
        LinkPath::Direct => MMN_PATH_DIRECT,
        LinkPath::Leader(_) => MMN_PATH_THROUGH_LEADER,
        LinkPath::Member(_) => MMN_PATH_THROUGH_MEMBER,
        LinkPath::Relay(_) => MMN_PATH_THROUGH_RELAY,
        LinkPath::Turn => MMN_PATH_THROUGH_TURN,
    }
}

fn micros(duration: Option<Duration>) -> u32 {
    short(duration.unwrap_or_default().as_micros())
}

/// The number, or the largest that fits.
fn short<T: TryInto<u32>>(number: T) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::PeerStatus;

    #[test]
    fn the_struct_has_no_padding() {
        assert_eq!(size_of::<MmnPeerStats>(), 96);
        assert_eq!(offset_of!(MmnPeerStats, bytes_sent), 16);
        assert_eq!(offset_of!(MmnPeerStats, queue_bytes), 56);
        assert_eq!(offset_of!(MmnPeerStats, reconnects), 76);
        assert_eq!(offset_of!(MmnPeerStats, path), 80);
        assert_eq!(offset_of!(MmnPeerStats, host_silent_ms), 88);
        assert_eq!(MIN_STRUCT_SIZE, 8);
        assert_eq!(size_of::<MmnRoomStats>(), 24);
    }

    #[test]
    fn each_path_has_its_number() {
        let id = |text| PeerId::new(text).expect("valid");
        let path_of = |path| {
            let view = PeerView {
                id: id("b"),
                status: PeerStatus::Connected,
                address: None,
                key: None,
                rtt: None,
                jitter: None,
                host_silent: Duration::ZERO,
                path,
            };
            MmnPeerStats::new(Some(&view), &PeerMeter::default()).path
        };
        assert_eq!(path_of(None), MMN_PATH_DIRECT);
        assert_eq!(path_of(Some(LinkPath::Direct)), MMN_PATH_DIRECT);
        let carried = [
            (LinkPath::Leader(id("c")), MMN_PATH_THROUGH_LEADER),
            (LinkPath::Member(id("c")), MMN_PATH_THROUGH_MEMBER),
            (LinkPath::Turn, MMN_PATH_THROUGH_TURN),
        ];
        for (path, number) in carried {
            assert_eq!(path_of(Some(path)), number);
        }
    }

    #[test]
    fn loss_is_in_parts_per_million_of_the_packets_sent() {
        let meter = PeerMeter {
            packets_sent: 4000,
            packets_lost: 10,
            queue_age: Some(Duration::from_micros(2999)),
            ..PeerMeter::default()
        };
        let stats = MmnPeerStats::new(None, &meter);
        assert_eq!((stats.loss_ppm, stats.queue_age_ms), (2500, 2));
        let stats = MmnPeerStats::new(None, &PeerMeter::default());
        assert_eq!((stats.loss_ppm, stats.rtt_us), (0, 0));
    }
}
