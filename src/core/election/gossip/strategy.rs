//! The gossip election of a room: a [`Peer`] whose messages are control messages and whose members are the links.

use std::collections::{BTreeSet, VecDeque};

use super::{Act, Claim, Members, Message, Order, Peer, Settings};
use crate::core::election::record::Record;
use crate::core::election::{
    Election, ElectionError, ElectionInput, ElectionOutput, Gone, LeaderReason, View,
};
use crate::core::id::{Incarnation, PeerId};
use crate::core::time::Time;
use crate::core::wire::{ElectionMessage, Pulse, Side};

/// The linked peers: those that may not lead are counted, but not heard.
impl Members<PeerId> for View {
    fn count(&self) -> usize {
        self.voters.len()
    }

    fn hears(&self, id: &PeerId) -> bool {
        self.voters.get(id).is_some_and(|voter| voter.eligible)
    }
}

/// How a node plays.
#[derive(Debug, Clone)]
pub struct GossipConfig {
    /// Windows, checked already, and whether the lowest id always wins.
    pub settings: Settings,
    /// Whether this node proposes itself.
    pub auto_election: bool,
    /// Whether this node may lead.
    pub eligible: bool,
    /// Whether it is the room's fixed host, which leads from its start on.
    pub is_host: bool,
}

/// See the text of [`gossip`](super).
///
/// Beyond the original, a leader declares itself to every peer that is linked to it, and tells with its heartbeats
/// when it leads no longer: the first ends the wait of newcomers and of two leaders that meet, the second
/// only changes who is shown.
#[derive(Debug)]
pub struct Gossip {
    me: PeerId,
    peer: Peer<PeerId>,
    /// Names the leader that is shown. There are no terms.
    record: Record,
    reason: LeaderReason,
    /// Linked peers that proposed themselves: one that leads later was elected meanwhile.
    proposed: BTreeSet<PeerId>,
    outputs: VecDeque<ElectionOutput>,
}

impl Gossip {
    /// A node that starts now, alone.
    pub fn new(me: PeerId, incarnation: Incarnation, config: &GossipConfig, now: Time) -> Self {
        let nobody = View::default();
        let mut peer = Peer::new(me.clone(), incarnation, config.settings, now, &nobody);
        peer.enable(config.auto_election);
        peer.set_eligible(config.eligible);
        let mut gossip = Self {
            me,
            peer,
            record: Record::default(),
            reason: LeaderReason::None,
            proposed: BTreeSet::new(),
            outputs: VecDeque::new(),
        };
        if config.is_host && config.eligible {
            gossip.peer.lead(now);
            gossip.settle(&nobody, LeaderReason::Elected);
        }
        gossip
    }

    /// The election itself, for questions.
    pub fn peer(&self) -> &Peer<PeerId> {
        &self.peer
    }

    fn leads(&self) -> bool {
        self.record.leader.as_ref() == Some(&self.me)
    }

    /// Takes an input. What is given back is why another leader, or none, is shown if one is now.
    fn apply(
        &mut self,
        now: Time,
        view: &View,
        input: ElectionInput,
    ) -> Result<LeaderReason, ElectionError> {
        let mut reason = LeaderReason::Resigned;
        match input {
            ElectionInput::Tick => self.peer.tick(now, view),
            ElectionInput::PeerUp { peer, .. } => {
                if self.leads() && !self.peer.machine().is_stopped() {
                    let declaration = self.peer.message(Claim::Declaration);
                    self.send(&peer, &declaration);
                }
            }
            ElectionInput::PeerDown { peer, why, .. } => {
                self.peer.forget(&peer);
                self.proposed.remove(&peer);
                reason = match why {
                    Gone::Left { .. } => LeaderReason::Left,
                    Gone::Closed | Gone::Silent => LeaderReason::Lost,
                };
            }
            ElectionInput::PeerIneligible { peer, .. } => {
                self.peer.forget(&peer);
                reason = LeaderReason::Left;
            }
            ElectionInput::Message { from, message, .. } => {
                return self.claimed(now, view, &from, &message);
            }
            ElectionInput::Pulse { from, pulse } => match pulse {
                Pulse::Gossip { leads: true } => {}
                Pulse::Gossip { leads: false } => self.peer.leads_no_longer(&from),
                Pulse::Follows { .. } | Pulse::Leads { .. } => {
                    return Err(ElectionError::Violation(
                        "a heartbeat is of another election strategy",
                    ));
                }
            },
            ElectionInput::Transfer { target: None } if self.leads() => {
                self.peer.yield_leadership(now);
            }
            ElectionInput::Transfer { target: None } => return Err(ElectionError::NotLeader),
            ElectionInput::SetLeader { .. }
            | ElectionInput::Transfer { target: Some(_) }
            | ElectionInput::SetPriority(_) => {
                return Err(ElectionError::NotSupported { strategy: "gossip" });
            }
            ElectionInput::EnableAuto(enabled) => self.peer.enable(enabled),
            ElectionInput::SetEligible(eligible) => {
                self.peer.set_eligible(eligible);
                reason = LeaderReason::Left;
            }
            ElectionInput::SetWindows(windows) => self.peer.set_windows(windows),
            ElectionInput::Leave => self.peer.stop(),
            // Nothing here is counted that another could run out.
            ElectionInput::PeerEligible { .. }
            | ElectionInput::Persisted { .. }
            | ElectionInput::WritesShown { .. }
            | ElectionInput::Memory { .. }
            | ElectionInput::SetClock(_) => {}
        }
        Ok(reason)
    }

    /// A peer proposes or declares itself.
    fn claimed(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        message: &ElectionMessage,
    ) -> Result<LeaderReason, ElectionError> {
        let ElectionMessage::Claim { sequence, declares } = *message else {
            return Err(ElectionError::Violation(
                "an election message is of another election strategy",
            ));
        };
        let Some(voter) = view.voters.get(from) else {
            return Ok(LeaderReason::None);
        };
        let claim = if declares {
            Claim::Declaration
        } else {
            Claim::Proposal
        };
        let message = Message {
            from: from.clone(),
            order: Order {
                incarnation: voter.incarnation,
                sequence,
            },
            claim,
        };
        if !self.peer.receive(now, &message, view) {
            return Ok(LeaderReason::None);
        }
        if !declares {
            self.proposed.insert(from.clone());
            return Ok(LeaderReason::None);
        }
        // One that proposed itself while it was linked here won an election of ours.
        Ok(if self.proposed.remove(from) {
            LeaderReason::Elected
        } else {
            LeaderReason::Found
        })
    }

    /// Carries out what the machine wants, and shows who leads then.
    fn settle(&mut self, view: &View, mut reason: LeaderReason) {
        while let Some(act) = self.peer.poll_act() {
            match act {
                Act::Say(claim) => {
                    let message = self.peer.message(claim);
                    for id in view.voters.keys() {
                        self.send(id, &message);
                    }
                }
                Act::Gained => reason = LeaderReason::Elected,
                Act::Lost | Act::Window { .. } => {}
            }
        }
        let leader = self.peer.leader(view);
        if leader != self.record.leader.as_ref() {
            self.record.leader = leader.cloned();
            self.reason = reason;
        }
    }

    fn send(&mut self, to: &PeerId, message: &Message<PeerId>) {
        self.outputs.push_back(ElectionOutput::Send {
            to: to.clone(),
            stamp: self.record.stamp.clone(),
            message: ElectionMessage::Claim {
                sequence: message.order.sequence,
                declares: message.claim == Claim::Declaration,
            },
        });
    }
}

impl Election for Gossip {
    fn handle(
        &mut self,
        now: Time,
        view: &View,
        input: ElectionInput,
    ) -> Result<(), ElectionError> {
        let reason = self.apply(now, view, input)?;
        self.settle(view, reason);
        Ok(())
    }

    fn poll_output(&mut self) -> Option<ElectionOutput> {
        self.outputs.pop_front()
    }

    fn next_deadline(&self) -> Option<Time> {
        self.peer.next_deadline()
    }

    fn leader(&self) -> Option<&PeerId> {
        self.record.leader.as_ref()
    }

    fn leader_reason(&self) -> LeaderReason {
        self.reason
    }

    fn record(&self) -> &Record {
        &self.record
    }

    fn leader_stamp(&self) -> Option<&Record> {
        self.leads().then_some(&self.record)
    }

    fn pulse(&self, _now: Time, _view: &View) -> Pulse {
        Pulse::Gossip {
            leads: self.leads(),
        }
    }

    /// Declarations say all: a Hello adds nothing to them.
    fn side(&self, _now: Time, _view: &View) -> Side {
        Side {
            since: 0,
            record: self.record.clone(),
            live: None,
            lone: false,
        }
    }

    fn may_supersede(&self, record: &Record) -> bool {
        record.leader != self.record.leader
    }

    /// Of two that lead at a time, the lower id stays: its messages are delivered. Those of a higher one only when
    /// no leader is known to live, since its declaration may come after them.
    fn accept_leader_message(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        record: &Record,
    ) -> Result<bool, ElectionError> {
        if record.leader.as_ref() != Some(from) || record.stamp != self.record.stamp {
            return Err(ElectionError::Violation(
                "a leader's message is stamped with another's record",
            ));
        }
        let lowest = match self.leader() {
            Some(leader) if *leader == self.me => *from < self.me,
            Some(leader) => from <= leader || self.peer.is_leaderless(now, view),
            None => true,
        };
        Ok(lowest && view.hears(from))
    }
}
