//! Sides that cannot both stay, in the raft strategy: see [`namesakes`](crate::election::namesakes).

use super::{Raft, View};
use crate::election::namesakes::NamedLeader;
use crate::election::raft::wire::{LiveLeader, Pulse, Side};
use crate::id::{Fingerprint, PeerId};
use crate::time::Time;

impl Raft {
    /// Two sides meet, and only one of their leaders can stay. The lighter one yields, whatever their epochs: members
    /// of a larger side would never see as many keys on the other.
    pub(super) fn compare_namesake(&mut self, ours: &Side, theirs: &Side, live: LiveLeader) {
        if rank(ours) < rank(theirs) {
            self.namesakes.meet((live.id, live.key));
        }
    }

    /// The living leader of the other side, if its id is bound to another key here.
    pub(super) fn namesake(&self, view: &View, theirs: &Side) -> Option<LiveLeader> {
        let live = theirs.live.clone()?;
        let is_namesake = self.is_namesake(view, &live.id, live.key);
        (is_namesake && !self.config.quorum.is_static()).then_some(live)
    }

    fn own_leader(&self, view: &View) -> Option<NamedLeader> {
        match self.direct() {
            _ if self.leads() => Some((self.me.clone(), self.key)),
            Some(direct) => self.named_leader(view, &direct.leader),
            None => None,
        }
    }

    pub(super) fn mover_to(&self, view: &View) -> Option<(&PeerId, Fingerprint)> {
        let own = self.own_leader(view);
        let to = self.namesakes.moves_to(own.as_ref(), self.leads());
        to.filter(|(id, _)| **id != self.me)
    }

    fn named_leader(&self, view: &View, leader: &PeerId) -> Option<NamedLeader> {
        let voter = view.voters.get(leader)?;
        Some((leader.clone(), voter.key))
    }

    /// Notes the leader that a heartbeat names as alive. A namesake of this node's leader that no Hello has compared
    /// with it was elected later.
    pub(super) fn note_named(&mut self, now: Time, view: &View, from: &PeerId, pulse: &Pulse) {
        let named = match pulse {
            Pulse::Follows { record, live: true } => record.leader.clone().zip(record.leader_key),
            Pulse::Follows { .. } => None,
            Pulse::Leads { .. } => self.named_leader(view, from),
        };
        let namesake = named.clone();
        self.namesakes.note(now, from, named);
        let namesake = namesake.filter(|(id, key)| self.is_namesake(view, id, *key));
        if namesake.is_none() || self.config.quorum.is_static() {
            return;
        }
        if let Some(own) = self.own_leader(view)
            && let Some(stays) = self.namesakes.yields_to(now, from, &own, self.leads())
        {
            let stays = stays.clone();
            self.namesakes.meet(stays);
        }
    }
}

/// The order of two such sides: as for sides that can merge, without epochs.
fn rank(side: &Side) -> impl Ord {
    let live = side.live.as_ref();
    let (weight, led_ms) = live.map_or((0, 0), |live| (live.weight, live.led_ms));
    (
        weight,
        led_ms,
        side.record.term(),
        live.map(|live| live.key),
    )
}
