//! A member leaves the room. Its leader does not go before the others have what it has ordered.

use super::*;

/// Longest time for which a leader that leaves waits for the others.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// See the module's text.
#[derive(Debug)]
pub(super) struct Leaving {
    successor: Option<PeerId>,
    until: Time,
    /// Whether [`Output::MayEnd`] is out.
    has_ended: bool,
}

impl Leaving {
    pub(super) fn next_deadline(&self) -> Option<Time> {
        (!self.has_ended).then_some(self.until)
    }
}

impl Replica {
    /// From now on this member orders no request and opens no ballot.
    pub(super) fn leave(&mut self, now: Time, successor: Option<PeerId>) {
        if self.is_leaving() {
            return;
        }
        self.leaving = Some(Leaving {
            successor,
            until: now + LONGEST_WAIT,
            has_ended: false,
        });
        if matches!(self.role, Role::Opening(_)) {
            self.stop_leading();
        }
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Whether this leader takes requests.
    pub(super) fn takes_requests(&self) -> bool {
        !self.is_leaving() || !self.keeps(Rule::LeaverOrdersNothing)
    }

    /// The entry of this leader's departure. It ceases to count in the same one, if the roster may change.
    pub(super) fn own_departure(&self) -> Option<(MemberId, bool, bool)> {
        let me = &self.me;
        let ceases = self.may_change_roster() && self.ceases_to_count() == Some(me);
        let counts = self.roster().contains(me) && !ceases;
        let is_here = self.log.end().is_here(me);
        is_here.then(|| (me.clone(), false, counts))
    }

    /// Reports that this member's process may end.
    pub(super) fn end_leaving(&mut self, now: Time) {
        let Some(leaving) = &self.leaving else {
            return;
        };
        let is_over = now >= leaving.until || self.others_have_departure(leaving);
        if let Some(leaving) = &mut self.leaving
            && is_over
            && !std::mem::replace(&mut leaving.has_ended, true)
        {
            self.outputs.push_back(Output::MayEnd);
        }
    }

    /// Whether the successor and a majority of the members that stay have this leader's last entry. Members that do not
    /// lead leave at once.
    fn others_have_departure(&self, leaving: &Leaving) -> bool {
        if !matches!(self.role, Role::Leading(_)) || self.peers.is_empty() {
            return true;
        }
        if self.ceases_to_count().is_some() || self.log.end().is_here(&self.me) {
            return false;
        }
        let has = |peer: &PeerId| {
            let peer = self.peers.get(peer);
            peer.is_some_and(|peer| peer.have >= self.log.index())
        };
        // A successor without a link cannot be waited for.
        let successor = leaving.successor.as_ref();
        let successor = successor.filter(|successor| self.peers.contains_key(successor));
        let stays: Vec<_> = match &self.settings.quorum {
            Quorum::Dynamic => self.roster().iter().map(|member| &member.peer).collect(),
            Quorum::Static(voters) => voters.iter().collect(),
        };
        let stays = stays.into_iter().filter(|peer| **peer != self.me.peer);
        let (have, lack): (Vec<_>, Vec<_>) = stays.partition(|peer| has(peer));
        successor.is_none_or(has) && have.len() >= lack.len()
    }
}
