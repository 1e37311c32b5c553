//! Checks after every input of a node that elects by votes.

use room_core::election::raft::Raft;
use room_core::election::rules::RoleKind;
use room_core::id::PeerId;
use room_core::node::Output;

use super::{World, members_shown, reports_members};
use crate::checks::Seen;
use crate::sometimes::Moment;

impl World {
    pub(crate) fn check_votes(&mut self, slot: usize, before: &Moment, outputs: &[Output]) {
        let Some(process) = &self.slots[slot].process else {
            return;
        };
        let local = process.clock.local(self.now);
        self.sometimes
            .after(before, local, slot, &process.node, outputs);
        let Some(raft) = process.node.election().of::<Raft>() else {
            return;
        };
        let rules = raft.rules();
        let membership = process.node.membership();
        // Comparing whole memberships is the expensive part in a large room: only after a change, and now and then.
        let changed = outputs.iter().any(reports_members) || process.inputs.is_multiple_of(64);
        let asks = rules.campaign().map(|campaign| campaign.round);
        let opened = asks.is_some_and(|round| self.checker.is_new_round(slot, round));
        // Pre-votes leave out a leader in doubt. Before a campaign the doubt has ended, and with it the link.
        let doubted = process.node.doubted();
        let left_out = doubted.filter(|_| rules.role() == RoleKind::PreCandidate);
        let may_vote =
            |id: &&PeerId| process.may_lead.get(*id) == Some(&true) && Some(*id) != left_out;
        let seen = Seen {
            record: rules.record(),
            leader: process.node.leader(),
            doubted: doubted.filter(|_| self.settings.guards.votes_end_doubts),
            followed: raft.followed(),
            role: rules.role(),
            voted_for: rules.voted_for(),
            leads_under: raft.leads_under(),
            campaign: rules.campaign(),
            won: rules.won(),
            eligible: if opened {
                let electors = membership.iter();
                let electors = electors.filter(|(_, member)| member.path.counts_in_elections());
                electors.map(|(id, _)| id).filter(may_vote).collect()
            } else {
                Vec::new()
            },
            members: changed.then(|| members_shown(&process.node)),
            members_count: membership.len() + process.node.ended_peers().count(),
            may_lead: self.may_lead(slot),
        };
        self.checker.now = self.now;
        if let Err(violation) = self.checker.observe(slot, outputs, &seen) {
            self.violate(violation.property, violation.text);
        }
    }
}
