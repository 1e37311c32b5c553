//! A link to a relay: the tasks that read it, and what the relay has reported on it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quinn::{Connection, RecvStream, SendStream, VarInt};
use room_transport::congestion::background::Observed;
use room_transport::rendezvous::{Frame, FromRelay, MAX_PRESENT, ToRelay, frame_length};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::super::tunnel::{Tunnels, Via};
use crate::core::bounded::BoundedMap;
use crate::core::id::Fingerprint;
use crate::core::node::RelayChange;
use crate::core::path::{MAX_AT_RELAY, RelayNumber};

/// Frames that wait to be handled, at most; the relay's stream waits then.
const FRAMES: usize = 8;
/// Frames that wait to be sent, at most.
const TO_SEND: usize = 32;
/// Frames that are read at once, and time that each costs. A relay has little to report: one that floods is read slowly.
const BURST: u32 = 128;
const FRAME_COST: Duration = Duration::from_millis(50);
/// Shortest time between two addresses at which a relay sees this member. A relay reports one a minute.
const MIN_OBSERVED_INTERVAL: Duration = Duration::from_secs(50);
/// A datagram that means nothing, and is acknowledged.
const PROBE: &[u8] = &[0];

/// A link on which the member has entered. Dropping it closes it.
pub(super) struct LinkToRelay {
    pub(super) connection: Connection,
    /// Frames of the relay; the channel ends with the link.
    pub(super) frames: mpsc::Receiver<FromRelay>,
    to_send: mpsc::Sender<Bytes>,
    observed: SocketAddr,
    /// When it moved last; the first address is no move.
    moved_at: Option<Instant>,
    present: BoundedMap<Fingerprint, (), MAX_AT_RELAY>,
    /// Pages of keys that are still to come.
    pages: usize,
    relay: RelayNumber,
    key: Fingerprint,
    tunnels: Arc<Tunnels>,
    _tasks: JoinSet<()>,
}

impl LinkToRelay {
    /// Starts the tasks. The relay sees this member at `observed`, and that many others are `present`.
    pub(super) fn start(
        (relay, key): (RelayNumber, Fingerprint),
        connection: Connection,
        (send, recv): (SendStream, RecvStream),
        (observed, present): (SocketAddr, usize),
        tunnels: &Arc<Tunnels>,
    ) -> Self {
        let (from_relay, frames) = mpsc::channel(FRAMES);
        let (to_send, sent) = mpsc::channel(TO_SEND);
        let mut tasks = JoinSet::new();
        tasks.spawn(read_frames(recv, from_relay));
        tasks.spawn(write_frames(send, sent));
        tasks.spawn({
            let (connection, tunnels) = (connection.clone(), Arc::clone(tunnels));
            async move {
                while let Ok(datagram) = connection.read_datagram().await {
                    tunnels.received_from_relay(relay, datagram);
                }
            }
        });
        tunnels.link_up(Via::Relay(relay), connection.clone());
        Self {
            connection,
            frames,
            to_send,
            observed,
            moved_at: None,
            present: BoundedMap::default(),
            pages: present.min(MAX_AT_RELAY).div_ceil(MAX_PRESENT),
            relay,
            key,
            tunnels: Arc::clone(tunnels),
            _tasks: tasks,
        }
    }

    /// The address at which the relay sees this member.
    pub(super) fn observed(&self) -> SocketAddr {
        self.observed
    }

    /// The key of the relay.
    pub(super) fn key(&self) -> Fingerprint {
        self.key
    }

    /// Keys of the others who are present.
    pub(super) fn present(&self) -> Vec<Fingerprint> {
        self.present.keys().copied().collect()
    }

    /// Notes what a frame reports; returns the changes.
    pub(super) fn note(&mut self, frame: FromRelay) -> Vec<RelayChange> {
        match frame {
            // It is the answer to the one frame that was sent before.
            FromRelay::Welcome { .. } => Vec::new(),
            FromRelay::Observed { address } => {
                let now = Instant::now();
                let is_early = self
                    .moved_at
                    .is_some_and(|at| now < at + MIN_OBSERVED_INTERVAL);
                if is_early || address == self.observed {
                    return Vec::new();
                }
                (self.observed, self.moved_at) = (address, Some(now));
                vec![RelayChange::Observed(address)]
            }
            FromRelay::Present { keys } => {
                // Members that were there before are reached only if they are known to be there.
                if keys.len() == MAX_PRESENT && self.pages > 1 {
                    self.pages -= 1;
                    self.send(&ToRelay::More);
                }
                let is_noted = |key: &Fingerprint| self.present.insert(*key, ()).is_ok();
                let noted = keys.into_iter().filter(is_noted);
                noted.map(RelayChange::Present).collect()
            }
            FromRelay::Gone { key } => {
                let was_noted = self.present.remove(&key);
                was_noted
                    .map(|()| RelayChange::Gone(key))
                    .into_iter()
                    .collect()
            }
        }
    }

    /// Sends a frame; drops it if the relay takes none.
    pub(super) fn send(&self, frame: &ToRelay) {
        let _ = self.to_send.try_send(frame.encode());
    }

    /// Sends a datagram that only has to be acknowledged.
    pub(super) fn probe(&self) {
        // One that cannot be sent counts as lost.
        let _ = self.connection.send_datagram(Bytes::from_static(PROBE));
    }

    /// Bytes that the relay has acknowledged so far. One that receives nothing of this member may still send, and repeats its last
    /// acknowledgement with what it sends.
    pub(super) fn answers(&self) -> u64 {
        let seen = Observed::of(self.connection.congestion_state());
        seen.map_or(0, |seen| seen.acked)
    }
}

impl Drop for LinkToRelay {
    fn drop(&mut self) {
        self.tunnels
            .link_down(Via::Relay(self.relay), &self.connection);
        self.connection.close(VarInt::from_u32(0), b"");
    }
}

/// Reads one frame; skips frames of kinds that are not known. `None` at the end of the stream or after a malformed one.
pub(super) async fn read_frame(recv: &mut RecvStream) -> Option<FromRelay> {
    loop {
        let mut length = [0; 2];
        recv.read_exact(&mut length).await.ok()?;
        let mut frame = vec![0; frame_length(length).ok()?];
        recv.read_exact(&mut frame).await.ok()?;
        if let Some(frame) = FromRelay::decode(&frame).ok()? {
            return Some(frame);
        }
    }
}

async fn read_frames(mut recv: RecvStream, frames: mpsc::Sender<FromRelay>) {
    let mut paid_at = Instant::now();
    loop {
        sleep_until(paid_at.checked_sub(FRAME_COST * BURST).unwrap_or(paid_at)).await;
        paid_at = paid_at.max(Instant::now()) + FRAME_COST;
        let Some(frame) = read_frame(&mut recv).await else {
            return;
        };
        if frames.send(frame).await.is_err() {
            return;
        }
    }
}

async fn write_frames(mut send: SendStream, mut frames: mpsc::Receiver<Bytes>) {
    while let Some(frame) = frames.recv().await {
        if send.write_all(&frame).await.is_err() {
            return;
        }
    }
}
