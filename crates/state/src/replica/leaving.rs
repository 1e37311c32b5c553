//! A member leaves the room. A leader does not go before the others have its entries.

use super::*;

/// Longest time for which a leader that leaves waits for the others.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// See the module's text.
#[derive(Debug, Clone)]
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
        let leaving = self.leaving.as_ref().filter(|leaving| !leaving.has_ended);
        let is_over =
            |leaving: &Leaving| now >= leaving.until || self.others_have_departure(leaving);
        if !leaving.is_some_and(is_over) {
            return;
        }
        if let Some(leaving) = &mut self.leaving {
            leaving.has_ended = true;
        }
        self.outputs.push_back(Output::MayEnd);
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
        let index = self.log.index();
        // A successor without a link cannot be waited for.
        let successor = leaving.successor.as_ref();
        let successor = successor.and_then(|successor| self.peers.get(successor));
        let held = self.held().into_iter();
        let others = held.filter(|(peer, _)| **peer != self.me.peer);
        let (have, lack): (Vec<_>, Vec<_>) = others.partition(|(_, held)| *held >= index);
        let is_majority = have.len() > lack.len() || lack.is_empty();
        is_majority && successor.is_none_or(|peer| peer.have >= index)
    }
}
