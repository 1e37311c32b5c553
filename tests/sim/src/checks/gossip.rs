//! The properties that hold at every instant in a room that elects by gossip.

use crate::decoded;
use std::collections::BTreeSet;

use room_core::election::gossip::Claimed;
use room_core::id::PeerId;
use room_core::node::Output;

use super::{Checked, Checker, Life, ensure};
use crate::gossip::Cause;

/// The visible state of a node that elects by gossip, after an input.
#[derive(Debug, Clone)]
pub struct GossipSeen<'a> {
    pub leader: Option<&'a PeerId>,
    /// Whether the node reports that it leads.
    pub leads: bool,
    /// Whether its election leads.
    pub machine_leads: bool,
    /// Whether the time of its election was over when the input came.
    pub election_is_over: bool,
    /// Whether this node itself may lead.
    pub may_lead: bool,
    /// Whether it may propose itself.
    pub may_propose: bool,
    /// Whether it is the room's fixed host, or created the room: it needs no election.
    pub is_host: bool,
    /// Whether it yields in this input, because its host takes no events.
    pub yields: bool,
    /// Whether the shown leader's last message allows it to lead.
    pub leader_may_lead: bool,
    /// Whether the node is out of its room, or leaving it.
    pub over: bool,
    /// Number of senders in its store.
    pub remembered: usize,
    /// The linked peers, if they may have changed, and their number.
    pub members: Option<Vec<&'a PeerId>>,
    pub members_count: usize,
}

/// The last state of a node.
#[derive(Debug, Default)]
pub struct Past {
    leads: bool,
    /// The number of its last message.
    sequence: u64,
}

impl Checker {
    /// A node's outputs and state after one input.
    pub fn observe_gossip(
        &mut self,
        slot: usize,
        cause: &Cause,
        outputs: &[Output],
        seen: &GossipSeen<'_>,
    ) -> Checked {
        for output in outputs {
            self.output(slot, output)?;
        }
        let Some(life) = self.lives.get_mut(&slot) else {
            return Ok(());
        };
        life.reports_match_its_view(seen)?;
        life.shows_a_member(seen)?;
        life.leads_by_election(cause, seen)?;
        life.claims(outputs, seen)?;
        ensure(seen.remembered <= seen.members_count, "store", || {
            format!(
                "{} remembers {} senders and has {} members",
                life.id, seen.remembered, seen.members_count
            )
        })?;
        life.gossip.leads = seen.leads;
        Ok(())
    }
}

impl Life {
    /// Gains and losses are reported alternately: the last report is the current state.
    fn reports_match_its_view(&self, seen: &GossipSeen<'_>) -> Checked {
        let id = &self.id;
        ensure(self.reported.as_ref() == seen.leader, "P8", || {
            format!(
                "{id} received {:?} and shows {:?}",
                self.reported, seen.leader
            )
        })?;
        let leads = self.reported.as_ref() == Some(id);
        ensure(
            leads == seen.leads && leads == seen.machine_leads,
            "alternate",
            || {
                format!(
                    "{id} received {:?}; it leads: {}, its election gives {}",
                    self.reported, seen.leads, seen.machine_leads
                )
            },
        )?;
        let same = match &seen.members {
            Some(members) => self.joined.keys().eq(members.iter().copied()),
            None => self.joined.len() == seen.members_count,
        };
        ensure(same, "P8", || {
            format!("{id} received {:?} and has {:?}", self.joined, seen.members)
        })
    }

    /// The shown leader is linked and may lead, or is the node itself. A leaving node keeps its last one.
    fn shows_a_member(&self, seen: &GossipSeen<'_>) -> Checked {
        let Some(leader) = seen.leader.filter(|leader| **leader != self.id) else {
            return Ok(());
        };
        ensure(self.joined.contains_key(leader), "gone", || {
            format!("{} shows {leader}, who is not linked", self.id)
        })?;
        ensure(seen.leader_may_lead || seen.over, "eligible", || {
            format!("{} shows {leader}, who may not lead", self.id)
        })
    }

    /// Only the end of an election's time makes a leader, except for a fixed host that starts. Timers are late at times: then
    /// another input may come first, but not another leader's declaration. Only a lower leader or its host ends its leadership.
    fn leads_by_election(&self, cause: &Cause, seen: &GossipSeen<'_>) -> Checked {
        let id = &self.id;
        ensure(
            seen.may_lead || !seen.leads || seen.over,
            "eligible",
            || format!("{id} may not lead, and leads"),
        )?;
        let gained = seen.leads && !self.gossip.leads;
        let elected = seen.election_is_over && !matches!(cause, Cause::Declared(_));
        let starts = seen.is_host && self.gossip.sequence == 0;
        ensure(!gained || elected || starts, "elected", || {
            format!("{id} leads after {cause:?}, and no election was over")
        })?;
        let ends = match cause {
            Cause::Declared(other) => other < id,
            Cause::Yield | Cause::Ineligible => true,
            _ => seen.over || seen.yields,
        };
        let lost = self.gossip.leads && !seen.leads;
        ensure(!lost || ends, "stays", || {
            format!("{id} led, and {cause:?} ended that")
        })
    }

    /// Only a leader declares itself, and only an eligible node proposes itself. Each member gets at most one message per input,
    /// with a higher number than the previous one.
    fn claims(&mut self, outputs: &[Output], seen: &GossipSeen<'_>) -> Checked {
        let id = &self.id;
        let mut reached = BTreeSet::new();
        let mut newest = self.gossip.sequence;
        for output in outputs {
            let Output::Transmit { to, envelope, .. } = output else {
                continue;
            };
            let Some(Claimed { sequence, declares }) = decoded::claimed(&envelope.message) else {
                continue;
            };
            ensure(reached.insert(to), "flood", || {
                format!("{id} makes two different claims to {to} at once")
            })?;
            ensure(sequence > self.gossip.sequence, "order", || {
                format!(
                    "message {sequence} of {id} follows its message {}",
                    self.gossip.sequence
                )
            })?;
            newest = newest.max(sequence);
            let entitled = if declares {
                seen.leads
            } else {
                seen.may_propose && seen.may_lead && !seen.leads
            };
            ensure(entitled, "claim", || {
                format!("{id} claims (declares: {declares}) and is {seen:?}")
            })?;
        }
        self.gossip.sequence = newest;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
