//! Messages in another's name: what a lane reader does with those that a leader relays, and with those that
//! this node, as leader, is to relay.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::lane::Reader;
use super::link::LinkEvent;
use super::outbox::{OutMessage, Relay};
use crate::core::election::record::Record;
use crate::core::id::{Incarnation, PeerId};
use crate::core::relay::{Heard, Place, Relays};

/// What a link tells the room about messages in another's name.
#[derive(Debug)]
pub(crate) enum RelayEvent {
    /// A message in the name of `origin`, sent under `record`, waits for the answer whether it may be delivered.
    InAnothersName {
        origin: PeerId,
        /// Which life of the origin sent it, where the relay says that.
        life: Option<Incarnation>,
        /// Whether the answer may wait until that life is known, for the time of a handshake at most.
        may_wait: bool,
        record: Record,
        answer: oneshot::Sender<Hearing>,
    },
    /// A broadcast of the peer, which goes by the record, waits to be relayed.
    ToRelay(Record, oneshot::Sender<Option<Leading>>),
    /// The peer has relayed every broadcast of this node before this number.
    Relayed(u64),
    /// The peer leads and asks for what it could not relay before.
    Again,
}

/// What becomes of a message in another's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// It is delivered.
    Yes {
        /// Whether it is of the present life of a member.
        is_bound: bool,
    },
    /// It is dropped, and was counted.
    No,
    /// It is of a life of a member that the member's own link has not shown yet.
    NotYet,
}

/// As what this node relays a broadcast.
#[derive(Debug, Clone)]
pub(crate) struct Leading {
    /// Which life of its origin is linked.
    pub(crate) life: Incarnation,
    /// The record under which this node leads.
    pub(crate) record: Arc<Record>,
    /// Whether it goes on to the other members.
    pub(crate) forward: bool,
}

/// Names a broadcast.
#[derive(Debug, Clone)]
pub(crate) struct Broadcast {
    pub(crate) origin: PeerId,
    pub(crate) life: Incarnation,
    pub(crate) number: u64,
}

/// What the readers of all lanes know about relayed broadcasts.
#[derive(Debug, Default)]
pub(crate) struct Relaying {
    /// Held while a broadcast is given to the host, so that two copies of it do not both find it new.
    heard: tokio::sync::Mutex<Heard>,
    relays: Mutex<Relays>,
    dropped: AtomicU64,
}

impl Relaying {
    /// A message in another's name was dropped: its sender does not lead.
    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// How many messages in another's name were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn relays(&self) -> MutexGuard<'_, Relays> {
        // Nothing in there panics halfway through a change.
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lives that never came to be known and for which a lane waits no second time, at most.
const MAX_UNKNOWN_LIVES: usize = 16;

/// The lives for which the reader of a lane waited in vain.
#[derive(Debug, Default)]
pub(crate) struct UnknownLives(VecDeque<(PeerId, Incarnation)>);

impl UnknownLives {
    fn contains(&self, origin: &PeerId, life: Incarnation) -> bool {
        self.0.iter().any(|(id, of)| id == origin && *of == life)
    }

    fn note(&mut self, origin: PeerId, life: Incarnation) {
        if self.0.len() == MAX_UNKNOWN_LIVES {
            self.0.pop_front();
        }
        self.0.push_back((origin, life));
    }
}

/// No origin comes so far.
const LAST_NUMBER: u64 = u64::MAX;
const RUNS_OUT: &str = "the number of a broadcast runs out";

impl Reader {
    /// A broadcast that the peer relays as leader.
    pub(super) async fn take_relayed(
        &mut self,
        broadcast: Broadcast,
        record: Record,
        message: OutMessage,
    ) -> Result<(), &'static str> {
        if broadcast.number == LAST_NUMBER {
            return Err(RUNS_OUT);
        }
        let (origin, life) = (&broadcast.origin, broadcast.life);
        let mut hearing = self.hearing(origin, Some(life), false, &record).await;
        if hearing == Hearing::NotYet && !self.unknown_lives.contains(origin, life) {
            // The sender learns what was taken before; then it waits, because nothing more is read.
            self.acks.tell(self.next_seq.load(Ordering::Relaxed)).await;
            hearing = self.hearing(origin, Some(life), true, &record).await;
            if hearing == Hearing::NotYet {
                self.unknown_lives.note(origin.clone(), life);
            }
        }
        match hearing {
            Hearing::Yes { is_bound } => self.deliver_once(broadcast, is_bound, message).await,
            Hearing::No => {}
            Hearing::NotYet => self.surroundings.relaying.count_dropped(),
        }
        Ok(())
    }

    /// A message that the peer's host forwards as leader.
    pub(super) async fn take_forwarded(&self, origin: PeerId, record: Record, message: OutMessage) {
        if self.hearing(&origin, None, false, &record).await != Hearing::No {
            self.deliver(origin, message).await;
        }
    }

    async fn hearing(
        &self,
        origin: &PeerId,
        life: Option<Incarnation>,
        may_wait: bool,
        record: &Record,
    ) -> Hearing {
        let event = |answer| {
            LinkEvent::Relay(RelayEvent::InAnothersName {
                origin: origin.clone(),
                life,
                may_wait,
                record: record.clone(),
                answer,
            })
        };
        self.ask(event).await.unwrap_or(Hearing::No)
    }

    async fn deliver_once(&self, broadcast: Broadcast, is_bound: bool, message: OutMessage) {
        let Broadcast {
            origin,
            life,
            number,
        } = broadcast;
        let mut heard = self.surroundings.relaying.heard.lock().await;
        if heard.is_new(&origin, life, is_bound, number) {
            self.deliver(origin.clone(), message).await;
            heard.insert(&origin, life, is_bound, number);
        }
    }

    /// A broadcast of the peer for this node to relay: its number is the end of `range`, and all of the peer's
    /// before the beginning have been relayed. Waits until the other members' queues and the host take it. A
    /// reader that is stopped meanwhile leaves no half behind that its successor would not know of.
    pub(super) async fn take_central(
        &mut self,
        range: RangeInclusive<u64>,
        record: Record,
        message: OutMessage,
        packed: Option<Bytes>,
    ) -> Result<(), &'static str> {
        let (first, number) = range.into_inner();
        if number == LAST_NUMBER {
            return Err(RUNS_OUT);
        }
        if first > number {
            return Err("a broadcast that was relayed comes to be relayed");
        }
        let Some(leading) = self.leading(record.clone()).await else {
            return Ok(()); // its origin keeps it for whoever leads
        };
        let relaying = Arc::clone(&self.surroundings.relaying);
        let place = relaying
            .relays()
            .place(&self.peer, leading.life, number, first);
        let forwarded = match place {
            Place::Next { forwarded } => forwarded,
            Place::Early => return Ok(()),
            Place::Repeated(next) => {
                self.acks.relayed = Some(next);
                return Ok(());
            }
        };
        let relay = Relay {
            origin: self.peer.clone(),
            life: leading.life,
            number,
            message,
            packed,
        };
        if leading.forward && !forwarded && !self.forward(&relay, leading, record).await {
            return Ok(());
        }
        let broadcast = Broadcast {
            origin: relay.origin,
            life: relay.life,
            number,
        };
        self.deliver_once(broadcast, true, relay.message).await;
        let next = relaying.relays().done(&self.peer, relay.life, number);
        self.acks.relayed = Some(next);
        Ok(())
    }

    /// As what this node relays; `None` while it does not lead.
    async fn leading(&self, record: Record) -> Option<Leading> {
        let event = |answer| LinkEvent::Relay(RelayEvent::ToRelay(record, answer));
        self.ask(event).await.flatten()
    }

    /// Waits until the queues of all other members have room, and puts the broadcast into them. `false` when
    /// this node leads no longer: the next leader will get it.
    async fn forward(&mut self, relay: &Relay, mut leading: Leading, record: Record) -> bool {
        let outboxes = Arc::clone(&self.surroundings.outboxes);
        loop {
            let room = outboxes.more_room();
            tokio::pin!(room);
            room.as_mut().enable();
            if outboxes.is_shut() {
                return false; // nothing is taken any more while the rest is flushed
            }
            if outboxes.relay(relay, &leading.record) {
                let mut relays = self.surroundings.relaying.relays();
                relays.forwarded(&relay.origin, relay.life, relay.number);
                return true;
            }
            let next = self.next_seq.load(Ordering::Relaxed);
            self.acks.tell(next).await;
            room.await;
            match self.leading(record.clone()).await {
                Some(now) if now.life == relay.life => leading = now,
                _ => return false,
            }
        }
    }
}
