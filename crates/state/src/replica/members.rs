//! A leader notes in the log which members are here and which count.

use super::*;
use crate::entry::Contents;
use crate::laboratory::Rule;
use crate::limits::{MAX_MEMBERS, MAX_ROSTER};

impl Replica {
    /// A member has left the room.
    pub(super) fn depart(&mut self, member: &MemberId) {
        if let Role::Leading(leading) = &mut self.role
            && *member != self.me
        {
            leading.held.remove(member);
            leading.gone.insert(member.clone());
        }
    }

    /// Members that never came back to a new leader have left.
    pub(super) fn end_holds(&mut self, now: Time) {
        let (peers, me) = (&self.peers, &self.me);
        let Role::Leading(leading) = &mut self.role else {
            return;
        };
        let is_back = |member: &MemberId| {
            *member == *me
                || peers
                    .get(&member.peer)
                    .is_some_and(|peer| peer.member() == member)
        };
        leading.held.retain(|member, _| !is_back(member));
        let gone = &mut leading.gone;
        leading.held.retain(|member, until| {
            let is_over = now >= *until;
            if is_over {
                gone.insert(member.clone());
            }
            !is_over
        });
    }

    /// Appends the next change of members, if one is due.
    pub(super) fn change_members(&mut self, now: Time) -> bool {
        let change = self.next_presence().or_else(|| self.next_count());
        let Some((member, here, counts)) = change else {
            return false;
        };
        let changes_roster = self.roster().contains(&member) != counts;
        self.append(
            now,
            Contents::Member {
                member,
                here,
                counts,
            },
        );
        let index = self.log.index();
        if let Role::Leading(leading) = &mut self.role
            && changes_roster
        {
            leading.roster_index = index;
        }
        true
    }

    /// A departure, or a member that has adopted the log and is not here yet.
    fn next_presence(&mut self) -> Option<(MemberId, bool, bool)> {
        if self.is_leaving() {
            return self.own_departure();
        }
        let end = self.log.end();
        let Role::Leading(leading) = &mut self.role else {
            return None;
        };
        leading.gone.retain(|member| end.is_here(member));
        if let Some(gone) = leading.gone.first() {
            return Some((gone.clone(), false, end.roster().contains(gone)));
        }
        if end.members().count() >= MAX_MEMBERS {
            return None;
        }
        let newcomers = self.peers.values().filter(|peer| peer.is_fed);
        let mut newcomers = newcomers
            .map(Peer::member)
            .filter(|member| !end.is_here(member));
        let newcomer = newcomers.next()?;
        Some((newcomer.clone(), true, end.roster().contains(newcomer)))
    }

    /// The next change of the roster, if the last one is confirmed.
    fn next_count(&self) -> Option<(MemberId, bool, bool)> {
        if !self.may_change_roster() {
            return None;
        }
        let roster = self.roster();
        let (member, counts) = match self.ceases_to_count() {
            Some(member) => (member.clone(), false),
            None if self.is_leaving() => return None,
            None if roster.len() >= MAX_ROSTER => return None,
            None => (self.newly_counting()?, true),
        };
        if !counts && roster.len() == 1 {
            return None;
        }
        let here = self.log.end().is_here(&member);
        Some((member, here, counts))
    }

    /// Whether the last change of the roster is confirmed.
    pub(super) fn may_change_roster(&self) -> bool {
        let Role::Leading(leading) = &self.role else {
            return false;
        };
        let settled = match (
            self.keeps(Rule::ChangesAfterOpening),
            self.keeps(Rule::OneChangeAtATime),
        ) {
            (true, true) => leading.roster_index,
            (true, false) => leading.open_index,
            (false, _) => 0,
        };
        !self.is_static() && self.confirmed >= settled
    }

    /// The member that leaves the roster of a dynamic room next; this one, if it leaves the room, after the others.
    pub(super) fn ceases_to_count(&self) -> Option<&MemberId> {
        if self.is_static() {
            return None;
        }
        let ceases = |member: &&MemberId| !self.may_count(member);
        let roster = self.roster();
        let other = roster
            .iter()
            .filter(|member| **member != self.me)
            .find(ceases);
        other.or_else(|| roster.get(&self.me).filter(ceases))
    }

    /// Whether a member of the roster is still one: this member, or a linked one.
    fn may_count(&self, member: &MemberId) -> bool {
        match self.peers.get(&member.peer) {
            _ if *member == self.me => {
                let stays = self.settings.is_eligible && !self.is_leaving();
                stays || self.roster().len() == 1
            }
            Some(peer) => peer.member() == member && peer.is_eligible,
            None => false,
        }
    }

    /// A member that may count and holds all confirmed entries.
    fn newly_counting(&self) -> Option<MemberId> {
        let roster = self.roster();
        if self.settings.is_eligible && !roster.contains(&self.me) {
            return Some(self.me.clone());
        }
        let holds = |peer: &&Peer| {
            peer.is_eligible
                && peer.is_fed
                && peer.have >= self.confirmed
                && !roster.contains(peer.member())
        };
        self.peers
            .values()
            .find(holds)
            .map(|peer| peer.member().clone())
    }
}
