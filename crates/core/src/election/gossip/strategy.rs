//! The gossip election of a room: a [`Peer`] whose messages are control messages and whose members are the links.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::{Act, Claim, Members, Message, Order, Peer, Settings, Windows};
use crate::election::namesakes::{NamedLeader, Namesakes};
use crate::election::record::Record;
use crate::election::{
    Description, DownReason, Election, ElectionError, ElectionInput, ElectionOutput, InputOf,
    LeaderReason, Leadership, Local, OutputOf, Role, Start, View,
};
use crate::id::{Fingerprint, Incarnation, PeerId};
use crate::time::Time;

/// The linked peers. Peers that may not lead are counted, but their messages are dropped.
impl Members<PeerId> for View {
    fn count(&self) -> usize {
        self.voters.len()
    }

    fn is_linked(&self, id: &PeerId) -> bool {
        self.voters.get(id).is_some_and(|voter| voter.eligible)
    }
}

/// Settings of a node of the gossip strategy.
#[derive(Debug, Clone)]
pub struct GossipConfig {
    /// The key of this node.
    pub key: Fingerprint,
    /// Windows, checked already, and whether the lowest id always wins.
    pub settings: Settings,
    /// Whether this node proposes itself.
    pub auto_election: bool,
    /// Whether this node may lead.
    pub eligible: bool,
    /// Whether this node leads from its start, as a fixed host does.
    pub leads_at_once: bool,
}

/// A message between members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// Counts the claims of the sender's incarnation, from 1 on; late ones are dropped.
    pub sequence: u64,
    /// Whether the sender leads; else it proposes itself.
    pub declares: bool,
}

/// The strategy's part of a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leads {
    /// Whether the sender leads. A leader that stopped is no longer shown.
    pub leads: bool,
    /// The leader that the sender follows, with the key that their link shows.
    pub follows: Option<NamedLeader>,
}

/// The gossip strategy of a room; see [`gossip`](super).
///
/// It adds two things to the original. A leader declares itself to every newly linked peer, which ends the wait of
/// newcomers and of two leaders whose parts merge. Its heartbeats show when it no longer leads, which only changes the
/// leader that others show.
#[derive(Debug)]
pub struct Gossip {
    me: PeerId,
    key: Fingerprint,
    peer: Peer<PeerId>,
    /// Names the leader that is shown. There are no terms.
    record: Record,
    reason: LeaderReason,
    /// Linked peers that proposed themselves: such a peer that leads later was elected meanwhile.
    proposed: BTreeSet<PeerId>,
    namesakes: Namesakes,
    outputs: VecDeque<OutputOf<Self>>,
}

impl Gossip {
    /// A node that starts now, without peers.
    pub fn new(me: PeerId, incarnation: Incarnation, config: &GossipConfig, now: Time) -> Self {
        let unknown = View::default();
        let mut peer = Peer::new(me.clone(), incarnation, config.settings, now, &unknown);
        peer.enable(config.auto_election);
        peer.set_eligible(config.eligible);
        let mut gossip = Self {
            me,
            key: config.key,
            peer,
            record: Record::default(),
            reason: LeaderReason::None,
            proposed: BTreeSet::new(),
            namesakes: Namesakes::default(),
            outputs: VecDeque::new(),
        };
        if config.leads_at_once {
            gossip.peer.lead(now);
            gossip.settle(&unknown, LeaderReason::Elected);
        }
        gossip
    }

    /// A node that starts now, with the options of its room.
    pub(in crate::election) fn start(now: Time, start: Start, strict_lowest: bool) -> Self {
        let config = GossipConfig {
            key: start.key,
            settings: Settings {
                windows: start.config.windows,
                strict_lowest,
            },
            auto_election: start.config.auto_election,
            eligible: start.config.eligible,
            leads_at_once: start.config.leads_at_once(),
        };
        Self::new(start.me, start.incarnation, &config, now)
    }

    /// Sets the windows, which the caller has checked.
    pub(in crate::election) fn set_windows(&mut self, view: &View, windows: Windows) {
        self.peer.set_windows(windows);
        self.settle(view, LeaderReason::Resigned);
    }

    /// The election itself, for queries.
    pub fn peer(&self) -> &Peer<PeerId> {
        &self.peer
    }

    fn leads(&self) -> bool {
        self.record.leader.as_ref() == Some(&self.me)
    }

    /// Handles an input. Returns the reason for a change of the shown leader, should there be one.
    fn apply(
        &mut self,
        now: Time,
        view: &View,
        input: InputOf<Self>,
    ) -> Result<LeaderReason, ElectionError> {
        match input {
            ElectionInput::PeerUp { peer, .. } => self.declare_to(&peer),
            ElectionInput::Message { from, message } => {
                return Ok(self.claimed(now, view, &from, message));
            }
            ElectionInput::Pulse { from, pulse } => {
                if !pulse.leads {
                    self.peer.leads_no_longer(&from);
                }
                let leads = view.voters.get(&from).filter(|_| pulse.leads);
                let leads = leads.map(|voter| (from.clone(), voter.key));
                self.namesakes
                    .note(now, &from, leads.or_else(|| pulse.follows.clone()));
                if let Some(leader) = pulse.follows {
                    self.compare_namesake(view, leader);
                }
            }
            ElectionInput::Local(input) => return self.apply_local(now, view, input),
        }
        Ok(LeaderReason::Resigned)
    }

    fn apply_local(
        &mut self,
        now: Time,
        view: &View,
        input: Local,
    ) -> Result<LeaderReason, ElectionError> {
        let mut reason = LeaderReason::Resigned;
        match input {
            Local::Tick => self.peer.tick(now, view),
            Local::PeerDown { peer, why, .. } => {
                self.peer.forget(&peer);
                self.proposed.remove(&peer);
                self.namesakes.note(now, &peer, None);
                reason = match why {
                    DownReason::Left { .. } | DownReason::Removed => LeaderReason::Left,
                    DownReason::Closed | DownReason::Silent | DownReason::Refused => {
                        LeaderReason::Lost
                    }
                };
            }
            Local::PeerIneligible { peer, .. } => {
                self.peer.forget(&peer);
                reason = LeaderReason::Left;
            }
            Local::Transfer { target: None } if self.leads() => {
                self.peer.yield_leadership(now);
            }
            Local::Transfer { target: None } => return Err(ElectionError::NotLeader),
            Local::SetLeader { .. }
            | Local::Transfer { target: Some(_) }
            | Local::SetPriority(_) => {
                return Err(ElectionError::NotSupported { strategy: "gossip" });
            }
            Local::EnableAuto(enabled) => self.peer.enable(enabled),
            Local::SetEligible(eligible) => {
                self.peer.set_eligible(eligible);
                reason = LeaderReason::Left;
            }
            Local::Leave => self.peer.stop(),
            Local::Relinked { peer } => self.declare_to(&peer),
            // No counter here can be exhausted by another member.
            Local::PeerReached { .. }
            | Local::PeerEligible { .. }
            | Local::HeartbeatSent
            | Local::SetClock(_) => {}
        }
        Ok(reason)
    }

    /// Declares itself to a peer with a new link, if it leads.
    fn declare_to(&mut self, peer: &PeerId) {
        if self.leads() && !self.peer.machine().is_stopped() {
            let declaration = self.peer.message(Claim::Declaration);
            self.send(peer, &declaration);
        }
    }

    /// A peer follows `leader`. If that leader has the id of another member here, only one side can stay: the side of
    /// the lower leader, or with equal ids the one of the lower key.
    fn compare_namesake(&mut self, view: &View, leader: NamedLeader) {
        let bound_to = view.bound_key((&self.me, self.key), &leader.0);
        let is_namesake = bound_to.is_some_and(|key| key != leader.1);
        if is_namesake && self.named_leader(view).is_none_or(|own| leader < own) {
            self.namesakes.meet(leader);
        }
    }

    /// The leader that this node follows, or is, with its key.
    fn named_leader(&self, view: &View) -> Option<NamedLeader> {
        let leader = self.record.leader.clone()?;
        let key = view.bound_key((&self.me, self.key), &leader)?;
        Some((leader, key))
    }

    /// A peer proposes or declares itself.
    fn claimed(&mut self, now: Time, view: &View, from: &PeerId, message: Claimed) -> LeaderReason {
        let Claimed { sequence, declares } = message;
        let Some(voter) = view.voters.get(from) else {
            return LeaderReason::None;
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
            return LeaderReason::None;
        }
        if !declares {
            self.proposed.insert(from.clone());
            return LeaderReason::None;
        }
        // A peer that proposed itself while it was linked here won an election of this room.
        if self.proposed.remove(from) {
            LeaderReason::Elected
        } else {
            LeaderReason::Found
        }
    }

    /// Carries out the machine's outputs, and updates the shown leader.
    fn settle(&mut self, view: &View, mut reason: LeaderReason) {
        while let Some(act) = self.peer.poll_act() {
            match act {
                Act::Send(claim) => {
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
        if let Some((leader, key)) = self.named_leader(view) {
            self.namesakes.follow(&leader, Some(key));
        }
    }

    fn send(&mut self, to: &PeerId, message: &Message<PeerId>) {
        self.outputs.push_back(ElectionOutput::Send {
            to: to.clone(),
            message: Claimed {
                sequence: message.order.sequence,
                declares: message.claim == Claim::Declaration,
            },
        });
    }
}

impl Election for Gossip {
    type Message = Claimed;
    type Pulse = Leads;
    /// The leader that the sender follows, or is. Elections do not need it: declarations carry it.
    type Hello = Option<NamedLeader>;
    /// The leader that it names. There are no terms.
    type Token = Option<PeerId>;

    fn handle(
        &mut self,
        now: Time,
        view: &View,
        input: InputOf<Self>,
    ) -> Result<(), ElectionError> {
        let reason = self.apply(now, view, input)?;
        let is_held = |id: &PeerId| view.held_until(now, id).is_some();
        self.peer.holds_leader(now, is_held);
        self.settle(view, reason);
        Ok(())
    }

    fn poll_output(&mut self) -> Option<OutputOf<Self>> {
        self.outputs.pop_front()
    }

    fn next_deadline(&self) -> Option<Time> {
        self.peer.next_deadline()
    }

    fn leadership(&self) -> Leadership<'_> {
        Leadership {
            leader: self.record.leader.as_ref(),
            leader_key: None,
            is_vouched_for: false,
            reason: self.reason,
            record: &self.record,
            valid_until: None,
        }
    }

    fn role(&self) -> Role {
        if self.leads() {
            Role::Leader
        } else if self.peer.machine().is_electing() {
            Role::Candidate
        } else {
            Role::Follower
        }
    }

    fn leader_token(&self) -> Option<Option<PeerId>> {
        self.leads().then(|| self.record.leader.clone())
    }

    fn followed_token(&self) -> Option<PeerId> {
        self.record.leader.clone()
    }

    fn pulse(&self, _now: Time, view: &View, _to: &PeerId) -> Leads {
        Leads {
            leads: self.leads(),
            follows: self.named_leader(view).filter(|_| !self.leads()),
        }
    }

    fn names(&self, peer: &PeerId) -> Option<&NamedLeader> {
        self.namesakes.names(peer)
    }

    fn moves_to(&self, view: &View) -> Option<(&PeerId, Fingerprint)> {
        let own = self.named_leader(view);
        let to = self.namesakes.moves_to(own.as_ref(), self.leads());
        to.filter(|(id, _)| **id != self.me)
    }

    fn hello(&self, _now: Time, view: &View, _asked: Time) -> Option<NamedLeader> {
        self.named_leader(view)
    }

    fn named_in(&self, hello: &Option<NamedLeader>) -> Option<NamedLeader> {
        hello.clone()
    }

    fn may_supersede(&self, from: &PeerId, named: &Option<PeerId>) -> bool {
        named.as_ref() == Some(from) && *named != self.record.leader
    }

    /// Of two leaders at a time, the lower id stays: its messages are delivered. Messages of a higher id are delivered
    /// only while no leader is known to live, since the leader's declaration may come after them.
    fn judge(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        named: &Option<PeerId>,
    ) -> Result<bool, ElectionError> {
        if named.as_ref() != Some(from) {
            return Err(ElectionError::Violation(
                "a leader's message names another leader",
            ));
        }
        let lowest = match &self.record.leader {
            Some(leader) if *leader == self.me => *from < self.me,
            Some(leader) => from <= leader || self.peer.is_leaderless(now, view),
            None => true,
        };
        Ok(lowest && view.is_linked(from))
    }

    fn describe(message: &Claimed) -> Description {
        Description::plain(if message.declares {
            "declaration"
        } else {
            "proposal"
        })
    }

    fn describe_pulse(_: &Leads) -> Description {
        Description::plain("heartbeat")
    }
}
