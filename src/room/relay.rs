//! Centralized rooms: broadcasts that go through the leader, and messages in another's name.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ring::rand::SecureRandom;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::driver::Driver;
use super::{OutMessage, Room};
use crate::core::id::{Incarnation, PeerId};
use crate::core::node::LifeOfOrigin;
use crate::error::SendError;
use crate::net::events::{Hearing, Leading, RelayEvent, Relaying};
use crate::net::frame::ControlFrame;
use crate::net::outbox::{Lead, Voice};

/// Origins that are asked again when this node leads, at most.
const MAX_REFUSED: usize = 1024;

/// What the host's threads share with the network thread about centralized mode.
#[derive(Debug)]
pub(super) struct Centralized {
    on: AtomicBool,
    auto_forward: AtomicBool,
    pub(super) relaying: Arc<Relaying>,
}

impl Centralized {
    pub(super) fn new(auto_forward: bool) -> Self {
        Self {
            on: AtomicBool::new(false),
            auto_forward: AtomicBool::new(auto_forward),
            relaying: Arc::default(),
        }
    }
}

/// What the network thread remembers of broadcasts.
#[derive(Debug, Default)]
pub(super) struct Broadcasts {
    /// As the queues were told last.
    lead: Lead,
    /// Whose broadcasts were dropped because this node did not lead.
    refused: BTreeSet<PeerId>,
    /// Messages in another's name that wait for a link of their origin: one for each lane, which is read no further.
    waiting: Vec<Waiting>,
}

/// A message of a life of a member that no link has shown yet.
#[derive(Debug)]
struct Waiting {
    origin: PeerId,
    life: Incarnation,
    until: Instant,
    answer: oneshot::Sender<Hearing>,
}

impl Broadcasts {
    fn refuse(&mut self, peer: PeerId) {
        if self.refused.len() >= MAX_REFUSED && !self.refused.contains(&peer) {
            self.refused.pop_first();
        }
        self.refused.insert(peer);
    }
}

impl Room {
    /// Whether this node's broadcasts go through the leader.
    pub fn set_centralized(&self, on: bool) {
        self.shared.centralized.on.store(on, Ordering::Relaxed);
    }

    /// As [`Room::set_centralized`] says.
    pub fn is_centralized(&self) -> bool {
        self.shared.centralized.on.load(Ordering::Relaxed)
    }

    /// Whether this node, as leader, sends others' broadcasts on to all but their origin.
    pub fn set_auto_forward(&self, on: bool) {
        let forward = &self.shared.centralized.auto_forward;
        forward.store(on, Ordering::Relaxed);
    }

    /// As [`Room::set_auto_forward`] says.
    pub fn is_auto_forward(&self) -> bool {
        let forward = &self.shared.centralized.auto_forward;
        forward.load(Ordering::Relaxed)
    }

    /// How many messages in another's name were dropped, because their sender did not lead.
    pub fn dropped_relays(&self) -> u64 {
        self.shared.centralized.relaying.dropped()
    }

    /// Queues `message` in the name of `from` for `to`, or for every connected peer but `from`, or for none.
    ///
    /// # Errors
    /// [`SendError`]; nothing was queued then.
    pub fn forward(
        &self,
        from: &PeerId,
        to: Option<&PeerId>,
        message: OutMessage,
    ) -> Result<(), SendError> {
        let shared = &self.shared;
        let record = self.snapshot().leader_stamp.clone();
        let record = record.ok_or(SendError::NotLeader)?;
        if *from != shared.peer_id && !shared.outboxes.is_linked(from) {
            return Err(SendError::PeerNotFound { id: from.clone() });
        }
        let voice = Voice::Forwarded {
            origin: from.clone(),
            record,
        };
        match to {
            None => shared.outboxes.broadcast_to_others(&message, &voice, from),
            Some(to) if *to == shared.peer_id => self.deliver_here(from, message),
            Some(to) if to == from => Err(SendError::ForwardedToOrigin { id: to.clone() }),
            Some(to) => shared.outboxes.send(to, message, voice),
        }
    }
}

impl Driver {
    /// Tells the queues who leads, when that has changed. Before the snapshot is published, so that a host that
    /// sees a leader can broadcast.
    pub(super) fn follow_leader(&mut self) {
        let leader = self.node.leader();
        let record = self.node.record();
        let unchanged = match &self.broadcasts.lead {
            Lead::Nobody => leader.is_none(),
            Lead::Myself { record, .. } => self.node.leader_stamp() == Some(record),
            Lead::Peer(peer, goes_by) => leader == Some(peer) && **goes_by == *record,
        };
        if unchanged {
            return;
        }
        let lead = match (self.node.leader_stamp(), leader) {
            (Some(record), _) => Lead::Myself {
                me: self.shared.peer_id.clone(),
                life: self.node.incarnation(),
                record: Arc::new(record.clone()),
            },
            (None, Some(peer)) if *peer != self.shared.peer_id => {
                Lead::Peer(peer.clone(), Arc::new(record.clone()))
            }
            (None, _) => Lead::Nobody,
        };
        let leap = self.draw_leap();
        self.shared.outboxes.follow(lead.clone(), leap);
        if let Lead::Myself { .. } = lead {
            for peer in std::mem::take(&mut self.broadcasts.refused) {
                self.sessions.say(&peer, ControlFrame::BroadcastAgain);
            }
        }
        self.broadcasts.lead = lead;
    }

    /// How far the numbers of broadcasts leap ahead under another leader: too far for a guess, and little enough for
    /// millions of leaders.
    fn draw_leap(&self) -> u64 {
        let mut bytes = [0; 8];
        if self.random.fill(&mut bytes).is_err() {
            // Without randomness the numbers stay as they are: a leader that lies can guess the next ones.
            tracing::warn!("the system's random generator failed");
            return 0;
        }
        u64::from_le_bytes(bytes) >> 24
    }

    /// A link tells something about messages in another's name.
    pub(super) fn relay_event(&mut self, peer: PeerId, event: RelayEvent) {
        let now = self.now();
        // Whoever asked may be gone; then the answer is dropped.
        match event {
            RelayEvent::InAnothersName {
                origin,
                life,
                may_wait,
                record,
                answer,
            } => {
                // Nobody speaks for this node to itself.
                let accepted =
                    origin != self.shared.peer_id && self.node.accept_relay(now, &peer, &record);
                self.carry_out();
                let hearing = if accepted {
                    self.hearing(&origin, life)
                } else {
                    Hearing::No
                };
                match (hearing, life) {
                    (Hearing::NotYet, Some(life)) if may_wait => {
                        let until = Instant::now() + self.shared.config.handshake_timeout;
                        self.broadcasts.waiting.push(Waiting {
                            origin,
                            life,
                            until,
                            answer,
                        });
                    }
                    _ => self.answer_hearing(hearing, answer),
                }
            }
            RelayEvent::ToRelay(record, answer) => {
                let relays = self.node.may_relay(now, &peer, &record);
                self.carry_out();
                let leading = if relays {
                    self.leading_for(&peer)
                } else {
                    None
                };
                if leading.is_none() {
                    self.broadcasts.refuse(peer);
                }
                let _ = answer.send(leading);
            }
            RelayEvent::Relayed(next) => {
                if !self.shared.outboxes.relayed(&peer, next) {
                    self.broken(
                        peer,
                        "a broadcast that was never sent is said to be relayed",
                    );
                }
            }
            RelayEvent::Again => self.shared.outboxes.carry_again(&peer),
        }
    }

    /// The same, of a peer that has said farewell: what is known of its leadership decides.
    pub(super) fn departing_relay_event(&mut self, peer: &PeerId, event: RelayEvent) {
        match event {
            RelayEvent::InAnothersName {
                origin,
                life,
                record,
                answer,
                ..
            } => {
                let accepted =
                    origin != self.shared.peer_id && self.node.is_leader_under(peer, &record);
                let hearing = match self.hearing(&origin, life) {
                    Hearing::Yes { is_bound } if accepted => Hearing::Yes { is_bound },
                    // It is being read to its end; nobody waits any more.
                    _ => Hearing::No,
                };
                self.answer_hearing(hearing, answer);
            }
            RelayEvent::ToRelay(_, answer) => drop(answer.send(None)),
            RelayEvent::Relayed(next) => {
                // It cannot be punished any more; what it did not relay goes to the next leader.
                let _ = self.shared.outboxes.relayed(peer, next);
            }
            RelayEvent::Again => {}
        }
    }

    fn leading_for(&self, origin: &PeerId) -> Option<Leading> {
        let Lead::Myself { record, .. } = &self.broadcasts.lead else {
            return None;
        };
        Some(Leading {
            life: self.node.membership().get(origin)?.incarnation,
            record: Arc::clone(record),
            forward: self.shared.centralized.auto_forward.load(Ordering::Relaxed),
        })
    }

    /// What becomes of a message in the name of `origin`, whose relay may speak for it.
    fn hearing(&self, origin: &PeerId, life: Option<Incarnation>) -> Hearing {
        let Some(life) = life else {
            return Hearing::Yes { is_bound: false };
        };
        match self.node.life_of_origin(origin, life) {
            LifeOfOrigin::Present => Hearing::Yes { is_bound: true },
            LifeOfOrigin::NoMember => Hearing::Yes { is_bound: false },
            LifeOfOrigin::Past => Hearing::No,
            LifeOfOrigin::Unknown => Hearing::NotYet,
        }
    }

    fn answer_hearing(&self, hearing: Hearing, answer: oneshot::Sender<Hearing>) {
        if hearing == Hearing::No {
            self.shared.centralized.relaying.count_dropped();
        }
        // Whoever asked may be gone.
        let _ = answer.send(hearing);
    }

    /// When a message has waited long enough for the life of its origin.
    pub(super) fn waiting_deadline(&self) -> Option<Instant> {
        self.broadcasts.waiting.iter().map(|one| one.until).min()
    }

    /// Answers what waited for a link of its origin.
    pub(super) fn answer_waiting(&mut self) {
        if self.broadcasts.waiting.is_empty() {
            return;
        }
        let now = Instant::now();
        for one in std::mem::take(&mut self.broadcasts.waiting) {
            let hearing = self.hearing(&one.origin, Some(one.life));
            if one.answer.is_closed() {
                continue;
            }
            if hearing == Hearing::NotYet && now < one.until {
                self.broadcasts.waiting.push(one);
            } else {
                self.answer_hearing(hearing, one.answer);
            }
        }
    }
}
