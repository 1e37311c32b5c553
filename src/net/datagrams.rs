//! The datagrams of a link: probes, unreliable messages (delivered at once or dropped), and the packets of tunnels.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn::{Connection, SendDatagramError};
use room_transport::identity::peer_fingerprint;
use room_transport::tunnel::packet::TUNNEL_DATAGRAM;
use tokio::sync::{Notify, mpsc, watch};

use super::events::{LinkEvent, LinkId, SpeakerVerdict};
use super::frame::{DatagramHeader, DatagramRole, MESSAGE_DATAGRAM, OWN_FLAG};
use super::intake::Asker;
use super::lane::FIRST_MESSAGE_TYPE;
use super::outbox::{DEFAULT_PRIORITY, DatagramRelay, Dropped, OutMessage, Outboxes, Unreliable};
use super::relay::{ask_delivery, ask_leading};
use super::tunnel::Tunnels;
use crate::core::event::{Delivery, Direction, Event};
use crate::core::id::{Incarnation, PeerId};
use crate::core::path::Path;
use crate::core::wire::{Opaque, PROBE_DATAGRAM};
use crate::dispatch::Dispatch;

/// Datagrams kept until their sender has joined, at most.
const MAX_EARLY: usize = 64;

const MALFORMED: &str = "a malformed datagram";

/// Reads probes, packets of tunnels, and messages. Messages wait until the session has a reader.
pub(super) async fn read_datagrams(
    id: LinkId,
    connection: Connection,
    tunnels: Arc<Tunnels>,
    events: mpsc::Sender<(LinkId, LinkEvent)>,
    mut session: watch::Receiver<Option<Arc<DatagramReader>>>,
) {
    let key = peer_fingerprint(&connection);
    let mut early = VecDeque::new();
    loop {
        let datagram = tokio::select! {
            biased;
            Ok(()) = session.changed() => {
                session.mark_unchanged();
                None
            }
            datagram = connection.read_datagram() => match datagram {
                Ok(datagram) => Some(datagram),
                Err(_) => return,
            },
        };
        let event = match datagram.as_deref() {
            Some([PROBE_DATAGRAM, probe @ ..]) => match postcard::take_from_bytes(probe) {
                Ok((probe, [])) => Some(LinkEvent::Datagram(probe)),
                _ => Some(LinkEvent::Violation(MALFORMED)),
            },
            Some([MESSAGE_DATAGRAM, ..]) => {
                if early.len() == MAX_EARLY {
                    early.pop_front();
                }
                early.extend(datagram.map(|datagram| datagram.slice(1..)));
                None
            }
            Some([TUNNEL_DATAGRAM, ..]) => {
                let path = Path::to(connection.remote_address());
                let taken = datagram
                    .zip(key)
                    .map(|(datagram, key)| tunnels.received(key, path, datagram));
                match taken {
                    Some(Err(what)) => Some(LinkEvent::Violation(what)),
                    _ => continue,
                }
            }
            // A trailer, which only had to be acknowledged, or a datagram of a later version.
            Some(_) => continue,
            None => None,
        };
        let reader = session.borrow().clone();
        let event = match (event, reader) {
            (None, Some(reader)) => {
                let mut violation = None;
                while let Some(message) = early.pop_front() {
                    if let Err(what) = reader.take(message).await {
                        violation = Some(LinkEvent::Violation(what));
                        break;
                    }
                }
                violation
            }
            (event, _) => event,
        };
        if let Some(event) = event {
            let last = matches!(event, LinkEvent::Violation(_));
            if events.send((id, event)).await.is_err() || last {
                return;
            }
        }
    }
}

/// Reader of messages that arrive as datagrams.
pub(super) struct DatagramReader {
    asker: Asker,
    stopped: AtomicBool,
}

impl DatagramReader {
    pub(super) fn new(asker: Asker) -> Self {
        Self {
            asker,
            stopped: AtomicBool::new(false),
        }
    }

    /// Delivers nothing from now on, not even messages that wait for an answer of the room.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Handles a datagram without its first byte.
    ///
    /// # Errors
    /// The datagram is malformed; no member sends it.
    pub(super) async fn take(&self, datagram: Bytes) -> Result<(), &'static str> {
        let decoded = postcard::take_from_bytes::<DatagramHeader>(&datagram);
        let (header, payload) = decoded.map_err(|_| MALFORMED)?;
        let DatagramHeader {
            channel,
            msg_type,
            flags,
            ttl_ms,
            sequence,
            role,
        } = header;
        if msg_type < FIRST_MESSAGE_TYPE || payload.len() > self.asker.context.max_message_size {
            return Err(MALFORMED);
        }
        let message = OutMessage {
            payload: Bytes::copy_from_slice(payload),
            msg_type,
            flags: flags & !OWN_FLAG,
        };
        let ttl = (ttl_ms > 0).then(|| Duration::from_millis(ttl_ms.into()));
        let arrived = Instant::now();
        let Some((from, relays)) = self.sender(role).await else {
            return Ok(());
        };
        if self.stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        if let Some(sequence) = sequence {
            let mut sequenced = self.asker.received.sequenced();
            if !sequenced.is_newest(&from, sequence.key, sequence.number) {
                return Ok(());
            }
        }
        let context = &self.asker.context;
        if let Some(relay) = relays {
            let how = Unreliable {
                channel,
                priority: DEFAULT_PRIORITY,
                ttl,
                key: sequence.map(|sequence| sequence.key),
            };
            let dropped = context.outboxes.relay_datagram(&relay, &message, how);
            report_dropped(&context.dispatch, dropped);
        }
        let delivery = match sequence {
            Some(_) => Delivery::Sequenced,
            None => Delivery::Unreliable,
        };
        self.asker.received.count_one();
        let message = message.into_incoming(from, channel, delivery);
        let until = ttl.and_then(|ttl| arrived.checked_add(ttl));
        context.dispatch.push_datagram(message, until);
        Ok(())
    }

    /// Asks about a sender without waiting: a datagram neither waits nor blocks.
    async fn hearing(
        &self,
        origin: &PeerId,
        incarnation: Incarnation,
        token: &Opaque,
    ) -> SpeakerVerdict {
        let at_once = (false, Duration::ZERO);
        ask_delivery(&self.asker, origin, Some(incarnation), at_once, token).await
    }

    /// The sender to report to the host, and the relay record if this node forwards the message. `None`
    /// if the message is dropped.
    async fn sender(&self, role: DatagramRole) -> Option<(PeerId, Option<DatagramRelay>)> {
        let asker = &self.asker;
        match role {
            DatagramRole::Peer => Some((asker.peer.clone(), None)),
            DatagramRole::Central { token } => {
                let leading = ask_leading(asker, token).await?;
                let relay = leading.forward.then(|| DatagramRelay {
                    origin: asker.peer.clone(),
                    incarnation: leading.incarnation,
                    token: leading.token,
                });
                Some((asker.peer.clone(), relay))
            }
            DatagramRole::Relayed {
                origin,
                incarnation,
                token,
            } => match self.hearing(&origin, incarnation, &token).await {
                SpeakerVerdict::Yes { .. } => Some((origin, None)),
                SpeakerVerdict::No => None,
                SpeakerVerdict::NotYet => {
                    asker.context.relaying.count_dropped();
                    None
                }
            },
        }
    }
}

/// Writes the datagrams in the queue to a peer, as fast as the link takes them.
pub(super) async fn write_datagrams(
    connection: Connection,
    peer: PeerId,
    outboxes: Arc<Outboxes>,
    notice: Arc<Notify>,
    dispatch: Arc<Dispatch>,
) {
    loop {
        if let Some(max) = connection.max_datagram_size() {
            outboxes.set_max_datagram(&peer, max);
        }
        let (datagram, mut dropped) = outboxes.take_datagram(&peer);
        let is_empty = datagram.is_none();
        if let Some(datagram) = datagram {
            match connection.send_datagram_wait(datagram).await {
                Ok(()) => {}
                // The path's MTU has become smaller.
                Err(SendDatagramError::TooLarge) => dropped += 1,
                Err(_) => return,
            }
        }
        if dropped > 0 {
            report_dropped(&dispatch, vec![(peer.clone(), dropped)]);
        }
        if is_empty {
            notice.notified().await;
        }
    }
}

/// Reports dropped outgoing datagrams to the host.
pub(crate) fn report_dropped(dispatch: &Dispatch, dropped: Dropped) {
    for (peer, count) in dropped {
        dispatch.push(Event::DataDropped {
            peer,
            direction: Direction::Sent,
            count,
        });
    }
}
