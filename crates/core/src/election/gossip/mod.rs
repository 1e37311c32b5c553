//! The gossip strategy: the lowest id that finds no leader leads, in every part of a partitioned room.
//!
//! [`Machine`] holds the rules. A [`Peer`] connects it with its surroundings: numbered messages, the store that knows
//! which messages are new, and the membership, whose members' messages alone count. Both are generic in the id, so that
//! a room and the library's `gossip` run the same code.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::Incarnation;
use crate::time::Time;

mod machine;
mod store;
mod strategy;

pub use machine::{Act, Claim, MAX_RESULTS, MAX_WINDOW, MIN_WINDOW, Machine, WindowError, Windows};
pub use store::{MAX_CREATORS, Store};
pub use strategy::{Claimed, Gossip, GossipConfig, Leads};

/// A message of a peer: it proposes itself, or it leads. It goes to every member directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<Id> {
    /// The sender.
    pub from: Id,
    /// Its place among all messages of its sender.
    pub order: Order,
    /// The claim.
    pub claim: Claim,
}

/// The place of a message among all of its sender's: proposals and declarations share the count, which starts again
/// with every incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order {
    /// The sender's incarnation.
    pub incarnation: Incarnation,
    /// Counts the messages of that incarnation, from 1 on.
    pub sequence: u64,
}

/// Numbers the messages of one incarnation of a peer.
#[derive(Debug, Clone)]
pub struct Sequencer(Order);

impl Sequencer {
    /// Starts an incarnation that has sent nothing yet.
    pub fn new(incarnation: Incarnation) -> Self {
        Self(Order {
            incarnation,
            sequence: 0,
        })
    }

    /// The place of the next message.
    pub fn next_order(&mut self) -> Order {
        self.0.sequence = self.0.sequence.saturating_add(1);
        self.0
    }
}

/// The other members as a peer sees them when it is called.
pub trait Members<Id> {
    /// The number of other members.
    fn count(&self) -> usize;
    /// Whether `id` may lead: messages of other peers are dropped.
    fn is_linked(&self, id: &Id) -> bool;
}

impl<Id: Ord> Members<Id> for BTreeSet<Id> {
    fn count(&self) -> usize {
        self.len()
    }

    fn is_linked(&self, id: &Id) -> bool {
        self.contains(id)
    }
}

impl<Id: Ord, V> Members<Id> for BTreeMap<Id, V> {
    fn count(&self) -> usize {
        self.len()
    }

    fn is_linked(&self, id: &Id) -> bool {
        self.contains_key(id)
    }
}

/// Settings of a gossip peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// The lengths of the windows.
    pub windows: Windows,
    /// Whether the lowest id wins for certain when a leader is lost ([`Peer::receive`]).
    pub strict_lowest: bool,
}

/// One peer of the gossip election.
#[derive(Debug, Clone)]
pub struct Peer<Id> {
    id: Id,
    machine: Machine<Id>,
    sequencer: Sequencer,
    store: Store<Id>,
    /// The peer whose declaration arrived last, and when.
    declarer: Option<(Id, Time)>,
}

impl<Id: Ord + Clone> Peer<Id> {
    /// A peer that starts now, with checked settings.
    pub fn new(
        id: Id,
        incarnation: Incarnation,
        settings: Settings,
        now: Time,
        members: &impl Members<Id>,
    ) -> Self {
        let Settings {
            windows,
            strict_lowest,
        } = settings;
        Self {
            machine: Machine::new(id.clone(), windows, strict_lowest, now, members.count()),
            id,
            sequencer: Sequencer::new(incarnation),
            store: Store::default(),
            declarer: None,
        }
    }

    /// The state machine, for queries.
    pub fn machine(&self) -> &Machine<Id> {
        &self.machine
    }

    /// Whether this peer leads. A peer that was stopped while it led still returns true.
    pub fn is_leader(&self) -> bool {
        self.machine.is_leader()
    }

    /// The leader, as far as this peer knows: itself, or the last declarer for as long as it is a member.
    pub fn leader(&self, members: &impl Members<Id>) -> Option<&Id> {
        if self.is_leader() {
            return Some(&self.id);
        }
        let (declarer, _) = self.declarer.as_ref()?;
        members.is_linked(declarer).then_some(declarer)
    }

    /// The time of the next [`Peer::tick`].
    pub fn next_deadline(&self) -> Option<Time> {
        self.machine.next_deadline()
    }

    /// The next output; call until `None` after every other call. For [`Act::Say`], send the result of
    /// [`Peer::message`].
    pub fn poll_act(&mut self) -> Option<Act> {
        let act = self.machine.poll_act();
        if act == Some(Act::Gained) {
            // The previous leader does not count as leader again when this peer stops.
            self.declarer = None;
        }
        act
    }

    /// The next message of this peer.
    pub fn message(&mut self, claim: Claim) -> Message<Id> {
        Message {
            from: self.id.clone(),
            order: self.sequencer.next_order(),
            claim,
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Time, members: &impl Members<Id>) {
        self.machine.tick(now, members.count());
    }

    /// Whether declarations of its leader cannot arrive at present: a follower's window stands still meanwhile.
    pub fn holds_leader(&mut self, now: Time, is_held: impl Fn(&Id) -> bool) {
        let declarer = self.declarer.as_ref();
        let stands = !self.is_leader() && declarer.is_some_and(|(declarer, _)| is_held(declarer));
        self.machine.stand_still(now, stands);
    }

    /// A message has arrived. It is dropped if its sender is no member, or if a message of its sender that is as new or
    /// newer came before. Returns whether it was accepted.
    ///
    /// Where `strict_lowest` is set, a proposal makes a follower propose at once if it knows no living leader: it never
    /// received a declaration, or the last declarer is no longer a member, or the last declaration is older than three
    /// quarters of the alive threshold. A leader declares itself every half of it, so a newcomer's proposal makes no
    /// peer propose beside a living leader, even if one declaration came up to a quarter late. A peer that proposes
    /// because a leader is lost has received no declaration for a whole threshold, so all others join, although they
    /// received the last one up to a quarter later.
    pub fn receive(
        &mut self,
        now: Time,
        message: &Message<Id>,
        members: &impl Members<Id>,
    ) -> bool {
        let from = &message.from;
        if self.machine.is_stopped() || *from == self.id || !members.is_linked(from) {
            return false;
        }
        let lifetime = self.machine.windows().message_expiration();
        if !self.store.is_news(now, lifetime, from, message.order) {
            return false;
        }
        match message.claim {
            Claim::Proposal => {
                let leaderless = self.is_leaderless(now, members);
                self.machine.proposed(now, from, leaderless);
            }
            Claim::Declaration => {
                self.declarer = Some((from.clone(), now));
                self.machine.declared(now, from);
            }
        }
        true
    }

    /// A member is gone. Its next incarnation begins anew, whatever its clock shows.
    pub fn forget(&mut self, id: &Id) {
        self.store.forget(id);
        self.leads_no_longer(id);
    }

    /// A member reports that it does not lead. That only changes which leader is shown.
    pub fn leads_no_longer(&mut self, id: &Id) {
        self.declarer.take_if(|(declarer, _)| declarer == id);
    }

    /// Whether this peer, which does not lead, knows no living leader: see [`Peer::receive`].
    pub fn is_leaderless(&self, now: Time, members: &impl Members<Id>) -> bool {
        let believed = self.machine.windows().alive_threshold * 3 / 4;
        match &self.declarer {
            Some(_) if self.machine.stands_still() => false,
            Some((declarer, received_at)) => {
                !members.is_linked(declarer) || now.since(*received_at) >= believed
            }
            None => true,
        }
    }

    /// Leads from now on, without an election: for the only peer of a membership that may lead.
    pub fn lead(&mut self, now: Time) {
        self.machine.lead(now);
    }

    /// Stops leading, and does not lead until another peer leads, or for the yield duration. Does nothing in a peer
    /// that does not lead.
    pub fn yield_leadership(&mut self, now: Time) {
        self.machine.yield_leadership(now);
    }

    /// Stops for good: no output follows, all messages are dropped, and whether this peer leads does not change.
    pub fn stop(&mut self) {
        self.machine.stop();
    }

    /// Sets the windows, which the caller has checked, from the next one on.
    pub fn set_windows(&mut self, windows: Windows) {
        self.machine.set_windows(windows);
    }

    /// Sets whether this peer proposes itself from now on. A leader goes on leading.
    pub fn enable(&mut self, enabled: bool) {
        self.machine.enable(enabled);
    }

    /// Sets whether this peer may lead from now on. A leader that may not stops at once.
    pub fn set_eligible(&mut self, eligible: bool) {
        self.machine.set_eligible(eligible);
    }

    /// The number of senders whose messages are remembered.
    pub fn remembered(&self) -> usize {
        self.store.len()
    }
}

#[cfg(test)]
mod tests;
