//! Conflict of two leaders that share a seed: the lower-ranked one sends its members to the other.

use super::role::Role;
use super::wire::{Claim, Observation, SeededMessage};
use super::{ElectionError, LeaderReason, Seeded, View};
use crate::id::PeerId;
use crate::time::Time;

impl Seeded {
    /// Sends this leader's claim to all seeds, so that another leader of theirs is found; dials the seeds that did not
    /// answer last time.
    pub(super) fn seed_keep_alives(&mut self, now: Time, view: &View) {
        let own = &self.config.seeding.address;
        let seeds = self.config.seeding.seeds.iter();
        let others = seeds.filter(|seed| ***seed != **own).count();
        let interval = self.intervals().heartbeat();
        // A leadership that is not on disk yet is not claimed.
        let safe = self.safe_claim().is_some();
        let Some(leader) = self.leading_mut().filter(|_| safe) else {
            return;
        };
        leader.seeds_at = now + interval;
        let answered = std::mem::take(&mut leader.seeds).len();
        if answered < others {
            self.dial_seeds();
        }
        for seed in self.linked_seeds() {
            self.seed_keep_alive_to(view, &seed);
        }
    }

    pub(super) fn seed_keep_alive_to(&mut self, view: &View, seed: &PeerId) {
        if let Some(claim) = self.safe_claim().cloned() {
            let basis = claim.observation();
            self.send(view, seed, basis, SeededMessage::SeedKeepAlive { claim });
        }
    }

    pub(super) fn seed_keep_alive(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        theirs: &Claim,
    ) -> Result<(), ElectionError> {
        if theirs.leader != *from || theirs.observation() != *basis {
            return Err(ElectionError::Violation(
                "a member claims another's leadership",
            ));
        }
        if !self.is_seed() {
            return Ok(());
        }
        let observed = self.observation();
        self.send(
            view,
            from,
            observed.clone(),
            SeededMessage::SeedKeepAliveAck,
        );
        let ours = self.claim().filter(|_| self.lives_under_leader(now));
        let Some(ours) = ours.filter(|ours| ours.leader != theirs.leader).cloned() else {
            return Ok(());
        };
        if ours.outranks(theirs) {
            let message = SeededMessage::LeaderRelieve { winner: ours };
            self.send(view, from, basis.clone(), message);
        } else if ours.leader == self.me {
            self.relieved(now, view, theirs);
        } else {
            let winner = theirs.clone();
            let message = SeededMessage::LeaderRelieve { winner };
            self.send(view, &ours.leader, observed, message);
        }
        Ok(())
    }

    pub(super) fn seed_keep_alive_ack(&mut self, from: &PeerId, basis: &Observation) {
        let is_seed = self.peers.get(from).is_some_and(|peer| peer.is_seed);
        let agrees = self.observation() == *basis;
        if let Some(leader) = self.leading_mut().filter(|_| is_seed && agrees) {
            leader.seeds.insert(from.clone());
        }
    }

    pub(super) fn leader_relieve(
        &mut self,
        now: Time,
        view: &View,
        basis: &Observation,
        winner: &Claim,
    ) {
        if self.leading().is_some() && self.observation() == *basis {
            self.relieved(now, view, winner);
        }
    }

    /// Another leadership outranks this one: all its members, joining ones included, enter that cluster (case 4).
    fn relieved(&mut self, now: Time, view: &View, winner: &Claim) {
        let Some(own) = self.leading().map(|leader| leader.claim.clone()) else {
            return;
        };
        if winner.leader == self.me || !winner.outranks(&own) {
            return;
        }
        let members: Vec<_> = view.voters.keys().cloned().collect();
        for member in members {
            let winner = winner.clone();
            let message = SeededMessage::ReJoinCluster { winner };
            self.send(view, &member, own.observation(), message);
        }
        self.rejoin(now, view, winner);
    }

    pub(super) fn rejoin_cluster(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        basis: &Observation,
        winner: &Claim,
    ) {
        if basis.leader.as_ref() != Some(from) {
            return;
        }
        let follows = self.following().is_some() && self.observation() == *basis;
        let enters = matches!(self.role, Role::Joining(_)) && self.aims_at(basis);
        if follows || enters {
            self.rejoin(now, view, winner);
        }
    }

    fn rejoin(&mut self, now: Time, view: &View, winner: &Claim) {
        self.led_at = now;
        self.target = None;
        self.become_joining(now, 0, LeaderReason::Resigned);
        self.aim_at(now, view, &winner.observation());
    }
}
