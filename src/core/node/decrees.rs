//! What a leader decrees, and how a room ends for a node.

use super::*;
use crate::core::wire::{Authority, Decrees, MAX_KICKED, MAX_REASON_BYTES};

impl Node {
    /// Most other members, as the leader set it; 0 is no limit.
    pub fn max_peers(&self) -> u32 {
        self.decrees.max_peers
    }

    pub(super) fn is_kicked(&self, peer: &PeerId, key: Fingerprint) -> bool {
        let names = |(id, its): &(PeerId, Fingerprint)| id == peer || *its == key;
        self.decrees.kicked.iter().any(names)
    }

    pub(super) fn kick(
        &mut self,
        now: Time,
        peer: &PeerId,
        code: i32,
        bytes: Vec<u8>,
    ) -> Result<(), CommandError> {
        if *peer == self.me {
            return Err(CommandError::Oneself(peer.clone()));
        }
        if !self.is_leader() {
            return Err(CommandError::NotLeader);
        }
        let Some((key, _)) = self.bearer(peer) else {
            return Err(CommandError::UnknownPeer(peer.clone()));
        };
        if self.decrees.kicked.len() >= MAX_KICKED {
            return Err(CommandError::TooManyKicked(MAX_KICKED));
        }
        self.decrees.kicked.push((peer.clone(), key));
        for member in self.membership.ids() {
            self.transmit(
                &member,
                Message::Kicked {
                    peer: peer.clone(),
                    key,
                    code,
                    bytes: bytes.clone(),
                },
            );
        }
        self.out(now, peer, code, bytes);
        // For those to whom this node does not lead yet.
        self.tell_all_decrees();
        Ok(())
    }

    /// The leader has kicked a member, or this node.
    pub(super) fn kicked(
        &mut self,
        now: Time,
        from: &PeerId,
        peer: &PeerId,
        key: Fingerprint,
        code: i32,
        bytes: Vec<u8>,
    ) {
        if bytes.len() > MAX_REASON_BYTES {
            self.violation(now, from, "a kick is longer than allowed");
            return;
        }
        if self.election.leader() != Some(from) {
            // Only the leader may. If decrees of this member then say the same, this is why.
            if *peer == self.me {
                self.reason_passed_on = Some((from.clone(), code, bytes));
            }
            return;
        }
        if *peer == self.me {
            self.end_room(now, EndReason::Kicked, code, bytes);
            return;
        }
        if !self.is_kicked(peer, key) && self.decrees.kicked.len() < MAX_KICKED {
            self.decrees.kicked.push((peer.clone(), key));
        }
        if self.membership.get(peer).is_some() {
            // This may be there before the leader's own word.
            let (peer, bytes) = (peer.clone(), bytes.clone());
            let reason = Message::Kicked {
                peer: peer.clone(),
                key,
                code,
                bytes,
            };
            self.transmit(&peer, reason);
        }
        self.out(now, peer, code, bytes);
    }

    /// Ends the session with a kicked peer.
    fn out(&mut self, now: Time, peer: &PeerId, code: i32, bytes: Vec<u8>) {
        // The leader's word may not have reached it.
        if self.membership.get(peer).is_some() {
            self.tell_decrees(peer);
        }
        self.close(peer, LinkEnd::Kicked);
        let gone = Gone::Left { successor: None };
        self.remove_with(now, peer, gone, LeftReason::Kicked, code, bytes);
    }

    pub(super) fn set_max_peers(&mut self, max_peers: u32) -> Result<(), CommandError> {
        if !self.is_leader() {
            return Err(CommandError::NotLeader);
        }
        let (known, count) = &self.decrees.version;
        let stamp = self.election.record().stamp.clone().max(known.clone());
        self.decrees.version = (stamp, count.saturating_add(1));
        self.decrees.max_peers = max_peers;
        self.tell_all_decrees();
        Ok(())
    }

    fn tell_all_decrees(&mut self) {
        for peer in self.membership.ids() {
            self.tell_decrees(&peer);
        }
    }

    pub(super) fn tell_decrees(&mut self, peer: &PeerId) {
        if self.decrees != Decrees::default() {
            self.transmit(peer, Message::Decrees(self.decrees.clone()));
        }
    }

    /// A member tells what was decreed. Where every member may name the leader its word is as good as a
    /// leader's; elsewhere it counts from the leader alone, as soon as it is known to be that.
    pub(super) fn decreed(&mut self, now: Time, from: &PeerId, mut decrees: Decrees) {
        if decrees.kicked.len() > MAX_KICKED {
            self.violation(now, from, "a list of kicked peers is longer than allowed");
            return;
        }
        let (value, bound) = (decrees.version.1, self.clock.bound(now));
        if value > bound.max(self.decrees.version.1) {
            // C4.8: the limit is not taken; who is kicked does not depend on its number. Under which term it was set needs no
            // bound: the next one is counted above it.
            self.tell_drop(now, from, value, bound);
            decrees.version = Default::default();
            decrees.max_peers = 0;
        }
        let anyone = self.config.policy.authority == Authority::Anyone && !self.is_fixed();
        if anyone || self.election.leader() == Some(from) {
            self.go_by_decrees(now, from, decrees);
        } else {
            self.decreed_by.insert(from.clone(), decrees);
        }
    }

    /// Another leads. A former leader may have been lost before all had its word: the new one is told what is
    /// known here, and tells everybody what it knows.
    pub(super) fn share_decrees(&mut self, now: Time) {
        let Some(leader) = self.election.leader().cloned() else {
            return;
        };
        if leader == self.me {
            self.tell_all_decrees();
        } else if self.membership.get(&leader).is_some() {
            self.tell_decrees(&leader);
        }
        // What it said before it was known to lead.
        if let Some(decrees) = self.decreed_by.remove(&leader) {
            self.go_by_decrees(now, &leader, decrees);
        }
    }

    /// The newer limit holds, and whoever was kicked stays out.
    fn go_by_decrees(&mut self, now: Time, from: &PeerId, decrees: Decrees) {
        let known = self.decrees.clone();
        // Two that led in one term may have counted alike.
        let limit = (&self.decrees.version, self.decrees.max_peers);
        if (&decrees.version, decrees.max_peers) > limit {
            self.decrees.version = decrees.version;
            self.decrees.max_peers = decrees.max_peers;
        }
        for (peer, key) in decrees.kicked {
            if self.is_kicked(&peer, key) || self.decrees.kicked.len() >= MAX_KICKED {
                continue;
            }
            if peer == self.me || key == self.config.key {
                let passed_on = self.reason_passed_on.take();
                let passed_on = passed_on.filter(|(member, ..)| member == from);
                let (_, code, bytes) = passed_on.unwrap_or((from.clone(), 0, Vec::new()));
                self.end_room(now, EndReason::Kicked, code, bytes);
                return;
            }
            self.decrees.kicked.push((peer.clone(), key));
            self.out(now, &peer, 0, Vec::new());
        }
        if known == self.decrees {
            return;
        }
        if self.is_leader() {
            self.tell_all_decrees();
        } else if let Some(leader) = self.election.leader().cloned()
            && leader != *from
            && self.membership.get(&leader).is_some()
        {
            // Whoever had it may not be linked to the leader, which tells everybody.
            self.tell_decrees(&leader);
        }
    }

    /// The room is over for this node: nobody is linked, and nobody will be.
    pub(super) fn end_room(&mut self, now: Time, why: EndReason, code: i32, bytes: Vec<u8>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        // It stops leading before it stops altogether.
        self.elect(now, ElectionInput::SetEligible(false));
        self.elect(now, ElectionInput::Leave);
        let (end, reason) = match why {
            EndReason::Kicked => (LinkEnd::Kicked, LeftReason::Kicked),
            EndReason::HostLeft => (LinkEnd::Closed, LeftReason::Left),
        };
        let mut peers = self.membership.ids();
        peers.extend(self.absent.keys().cloned());
        for peer in peers {
            self.close(&peer, end);
            self.remove(now, &peer, Gone::Silent, reason);
        }
        self.introductions.forget_all();
        self.event(Event::RoomEnded { why, code, bytes });
    }

    pub(super) fn set_eligible(&mut self, now: Time, eligible: bool) -> Result<(), CommandError> {
        if self.is_fixed() {
            return Err(CommandError::FixedHost);
        }
        if self.config.eligible == eligible {
            return Ok(());
        }
        if let Some(voters) = self.voters_without(&self.me).filter(|_| eligible) {
            return Err(CommandError::VotersFull(voters));
        }
        let successor = self.election.successor(&self.view);
        self.config.eligible = eligible;
        if self.ended {
            return Ok(()); // nobody leads what is over
        }
        self.try_elect(now, ElectionInput::SetEligible(eligible))?;
        self.tell_standing(successor);
        Ok(())
    }

    pub(super) fn set_priority(&mut self, now: Time, priority: i32) -> Result<(), CommandError> {
        self.try_elect(now, ElectionInput::SetPriority(priority))?;
        self.config.priority = priority;
        self.tell_standing(None);
        Ok(())
    }

    fn tell_standing(&mut self, successor: Option<PeerId>) {
        for peer in self.membership.ids() {
            self.tell_standing_to(&peer, successor.clone());
        }
    }

    pub(super) fn tell_standing_to(&mut self, peer: &PeerId, successor: Option<PeerId>) {
        let standing = Message::Standing {
            eligible: self.config.eligible,
            priority: self.config.priority,
            successor,
        };
        self.transmit(peer, standing);
    }

    /// A peer may lead no longer, or again, or has another priority.
    pub(super) fn standing(
        &mut self,
        now: Time,
        from: &PeerId,
        eligible: bool,
        priority: i32,
        successor: Option<PeerId>,
    ) {
        // One too many is taken for an observer: counted, it would make two majorities possible.
        let eligible = eligible && self.voters_without(from).is_none();
        let Some(voter) = self.view.voters.get_mut(from) else {
            return;
        };
        voter.priority = priority;
        if self.config.policy.host_mode != HostMode::Off {
            return; // that is fixed
        }
        let before = std::mem::replace(&mut voter.eligible, eligible);
        let incarnation = voter.incarnation;
        let peer = from.clone();
        match (before, eligible) {
            (true, false) => self.elect(
                now,
                ElectionInput::PeerIneligible {
                    peer,
                    incarnation,
                    successor,
                },
            ),
            (false, true) => self.elect(now, ElectionInput::PeerEligible { peer }),
            _ => {}
        }
    }
}
