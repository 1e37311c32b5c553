//! Relayed messages in a lane reader: messages that a leader relays to this node, or that this node relays as leader.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::events::{Leading, LinkEvent, OnBehalf, RelayEvent, SpeakerVerdict};
use super::intake::{Asker, Intake};
use super::outbox::{DEFAULT_PRIORITY, OutMessage, Relay, Reliable};
use crate::core::bounded::Newest;
use crate::core::id::{Incarnation, PeerId};
use crate::core::relay::{BroadcastName, Place, RelayedCopy};
use crate::core::wire::Opaque;

/// A broadcast to be delivered to the host.
#[derive(Debug, Clone)]
pub(super) struct Broadcast {
    pub(super) origin: PeerId,
    pub(super) incarnation: Incarnation,
    pub(super) number: u64,
    /// The channel that the origin chose.
    pub(super) channel: u8,
}

/// Incarnations that never became known, for which a lane does not wait again, at most.
const MAX_UNKNOWN_INCARNATIONS: usize = 16;

/// The incarnations for which the reader of a lane waited in vain.
#[derive(Debug, Default)]
struct UnknownIncarnations(Newest<(PeerId, Incarnation), MAX_UNKNOWN_INCARNATIONS>);

impl UnknownIncarnations {
    fn contains(&self, origin: &PeerId, incarnation: Incarnation) -> bool {
        self.0
            .iter()
            .any(|(id, of)| id == origin && *of == incarnation)
    }

    fn note(&mut self, origin: PeerId, incarnation: Incarnation) {
        self.0.push((origin, incarnation));
    }
}

/// No origin reaches this number.
const LAST_NUMBER: u64 = u64::MAX;
const RUNS_OUT: &str = "the number of a broadcast runs out";

/// Takes the messages that the leader relays on one lane.
#[derive(Debug, Default)]
pub(super) struct RelayedReader {
    unknown_incarnations: UnknownIncarnations,
}

impl RelayedReader {
    /// Takes a broadcast that the peer relays as leader.
    pub(super) async fn take(
        &mut self,
        intake: &mut Intake,
        broadcast: Broadcast,
        token: Opaque,
        message: OutMessage,
    ) -> Result<(), &'static str> {
        if broadcast.number == LAST_NUMBER {
            return Err(RUNS_OUT);
        }
        let (origin, incarnation) = (&broadcast.origin, broadcast.incarnation);
        let mut hearing = ask_delivery_on(intake, origin, Some(incarnation), false, &token).await;
        if hearing == SpeakerVerdict::NotYet
            && !self.unknown_incarnations.contains(origin, incarnation)
        {
            // Acknowledge the earlier messages first. Then the sender waits, because nothing more is read.
            intake.ack().await;
            let waits = ask_delivery_on(intake, origin, Some(incarnation), true, &token);
            let from = Instant::now();
            hearing = waits.await;
            if let SpeakerVerdict::Yes { .. } = hearing {
                // Only the wait for a known incarnation counts; a wait for one that no member has is
                // at the expense of its relay.
                let received = &intake.asker.received;
                received.stopped(intake.lane, from, Instant::now());
            }
            if hearing == SpeakerVerdict::NotYet {
                self.unknown_incarnations.note(origin.clone(), incarnation);
            }
        }
        match hearing {
            SpeakerVerdict::Yes {
                is_bound,
                by_leader,
            } => deliver_once(intake, broadcast, (is_bound, by_leader), message).await,
            SpeakerVerdict::No => {}
            SpeakerVerdict::NotYet => intake.asker.context.relaying.count_dropped(),
        }
        Ok(())
    }
}

/// Takes a message that the peer's host forwards as leader.
pub(super) async fn take_forwarded(
    intake: &Intake,
    origin: PeerId,
    token: Opaque,
    message: OutMessage,
    channel: u8,
) {
    if ask_delivery_on(intake, &origin, None, false, &token).await != SpeakerVerdict::No {
        intake.deliver(origin, message, channel).await;
    }
}

async fn ask_delivery_on(
    intake: &Intake,
    origin: &PeerId,
    incarnation: Option<Incarnation>,
    may_wait: bool,
    token: &Opaque,
) -> SpeakerVerdict {
    let stopped = intake.asker.received.stopped_for(intake.lane);
    ask_delivery(
        &intake.asker,
        origin,
        incarnation,
        (may_wait, stopped),
        token,
    )
    .await
}

/// Asks whether a message on behalf of another member may be delivered. With `may_wait` the answer may wait
/// for the incarnation of the origin. `stopped` is how long this host took nothing from the lane.
pub(super) async fn ask_delivery(
    asker: &Asker,
    origin: &PeerId,
    incarnation: Option<Incarnation>,
    (may_wait, stopped): (bool, Duration),
    token: &Opaque,
) -> SpeakerVerdict {
    let event = |answer| {
        LinkEvent::Relay(RelayEvent::OnBehalf(OnBehalf {
            origin: origin.clone(),
            incarnation,
            may_wait,
            token: token.clone(),
            stopped,
            answer,
        }))
    };
    asker.ask(event).await.unwrap_or(SpeakerVerdict::No)
}

async fn deliver_once(
    intake: &Intake,
    broadcast: Broadcast,
    (is_bound, by_leader): (bool, bool),
    message: OutMessage,
) {
    let Broadcast {
        origin,
        incarnation,
        number,
        channel,
    } = broadcast;
    let relaying = &intake.asker.context.relaying;
    let name = BroadcastName {
        origin: origin.clone(),
        incarnation,
        lane: intake.lane,
        number,
    };
    let copy = RelayedCopy {
        relay: &intake.asker.peer,
        by_leader,
        is_bound,
        digest: relaying.digest(&message, channel),
    };
    let mut received = intake.stopping(relaying.received.lock()).await;
    if received.is_new(&name, copy) {
        intake.deliver(origin, message, channel).await;
        received.insert(&name, copy);
    }
}

/// Takes a broadcast of the peer for this node to relay. The end of `range` is its number; all of the peer's
/// before the start of `range` have been relayed. Waits until the other members' queues and the host take it.
/// A reader that is stopped meanwhile leaves a record of a half-done relay for its successor.
pub(super) async fn take_central(
    intake: &mut Intake,
    range: RangeInclusive<u64>,
    token: Opaque,
    message: OutMessage,
    packed: Option<Bytes>,
    channel: u8,
) -> Result<(), &'static str> {
    let (first, number) = range.into_inner();
    if number == LAST_NUMBER {
        return Err(RUNS_OUT);
    }
    if first > number {
        return Err("a broadcast that was relayed comes to be relayed");
    }
    let Some(leading) = ask_leading(&intake.asker, token.clone()).await else {
        return Ok(()); // its origin keeps it for the next leader
    };
    let relaying = Arc::clone(&intake.asker.context.relaying);
    let place = relaying.relays().place(
        &intake.asker.peer,
        leading.incarnation,
        intake.lane,
        number,
        first,
    );
    let forwarded = match place {
        Place::Next { forwarded } => forwarded,
        Place::Early => return Ok(()),
        Place::Repeated(next) => {
            intake.relayed(next);
            return Ok(());
        }
    };
    let relay = Relay {
        origin: intake.asker.peer.clone(),
        incarnation: leading.incarnation,
        number,
        how: Reliable {
            ordered: intake.lane <= u16::from(u8::MAX),
            channel,
            priority: DEFAULT_PRIORITY,
        },
        message,
        packed,
    };
    if leading.forward && !forwarded && !forward(intake, &relay, leading, token).await {
        return Ok(());
    }
    let broadcast = Broadcast {
        origin: relay.origin,
        incarnation: relay.incarnation,
        number,
        channel,
    };
    deliver_once(intake, broadcast, (true, true), relay.message).await;
    let next = relaying
        .relays()
        .done(&intake.asker.peer, relay.incarnation, intake.lane, number);
    intake.relayed(next);
    Ok(())
}

/// Asks for the leadership under which this node relays; `None` while it does not lead.
pub(super) async fn ask_leading(asker: &Asker, token: Opaque) -> Option<Leading> {
    let event = |answer| LinkEvent::Relay(RelayEvent::ToRelay(token, answer));
    asker.ask(event).await.flatten()
}

/// Waits until the queues of all other members have room, and puts the broadcast into them. Returns `false`
/// when this node no longer leads: the next leader will get the broadcast.
async fn forward(intake: &mut Intake, relay: &Relay, mut leading: Leading, token: Opaque) -> bool {
    let outboxes = Arc::clone(&intake.asker.context.outboxes);
    loop {
        let room = outboxes.more_room();
        tokio::pin!(room);
        room.as_mut().enable();
        if outboxes.is_shut() {
            return false; // nothing more is accepted while the rest is flushed
        }
        if outboxes.relay(relay, &leading.token) {
            let mut relays = intake.asker.context.relaying.relays();
            relays.forwarded(&relay.origin, relay.incarnation, intake.lane, relay.number);
            return true;
        }
        intake.ack().await;
        room.await;
        match ask_leading(&intake.asker, token.clone()).await {
            Some(now) if now.incarnation == relay.incarnation => leading = now,
            _ => return false,
        }
    }
}
