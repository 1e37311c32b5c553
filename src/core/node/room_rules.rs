//! The rules that a leader sets for the room, and how a room ends for a node.
//!
//! What the present leader says counts. What another member reports is hearsay: kicks count for peers that
//! were members here and a few of them for each source; a limit, where the leader that set it is gone and another has
//! just begun to lead.

use super::*;
use crate::core::wire::{Authority, MAX_KICKED, MAX_REASON_BYTES, RoomRules};

/// Kicks that count on the word of one member that does not lead, at most.
const MAX_HEARSAY: usize = 16;
/// Peers that were members here and that are remembered, at most.
const MAX_SEEN: usize = 1024;
/// A leader takes over the limit of one that is gone for so long after it began to lead.
const TAKES_OVER_FOR: Duration = Duration::from_secs(10);
/// RoomRules that one member is told, and that are taken from one, at once; after these, one in
/// [`ROOM_RULES_INTERVAL`], the newest. A list may be 50 kB long and goes to all when it changes.
const ROOM_RULES_BURST: u32 = 8;
const ROOM_RULES_INTERVAL: Duration = Duration::from_millis(250);

/// Names a kicked peer.
type Kicked = (PeerId, Fingerprint);

/// What is known about kicks beside who was kicked.
#[derive(Debug, Default)]
pub(super) struct Kicks {
    /// Who said so; an entry for each of the list.
    by: BTreeMap<Kicked, KickedBy>,
    /// Who was a member here, and which of them last.
    seen: BTreeMap<Kicked, u64>,
    seen_count: u64,
}

/// Whose word a kick is, the weakest first: in this order entries make way for others.
#[derive(Debug, Clone, PartialEq, Eq)]
enum KickedBy {
    /// A member that does not lead.
    Member(PeerId),
    /// A leader, of somebody that never was a member here: it may have made the name up.
    LeaderUnseen,
    /// A leader, of somebody that was a member here. It makes way for what this node's host says.
    Leader,
    /// This node, when it led.
    Myself,
}

impl KickedBy {
    fn rank(&self) -> u8 {
        match self {
            Self::Member(_) => 0,
            Self::LeaderUnseen => 1,
            Self::Leader => 2,
            Self::Myself => 3,
        }
    }
}

impl Kicks {
    pub(super) fn note_member(&mut self, peer: &PeerId, key: Fingerprint) {
        self.seen_count += 1;
        let count = self.seen_count;
        self.seen.insert((peer.clone(), key), count);
        if self.seen.len() > MAX_SEEN {
            let oldest = self.seen.iter().min_by_key(|(_, count)| **count);
            if let Some(oldest) = oldest.map(|(kicked, _)| kicked.clone()) {
                self.seen.remove(&oldest);
            }
        }
    }

    fn held_for(&self, source: &PeerId) -> usize {
        let its = |by: &&KickedBy| matches!(by, KickedBy::Member(peer) if peer == source);
        self.by.values().filter(its).count()
    }

    fn as_leader_says(&self, kicked: &Kicked) -> KickedBy {
        if self.seen.contains_key(kicked) {
            KickedBy::Leader
        } else {
            KickedBy::LeaderUnseen
        }
    }

    /// Which of `list` makes way for an entry of `by`: the oldest of the weakest, if they are weaker. Of those that may
    /// be made up, a new one is as good as an old one.
    fn makes_way(&self, list: &[Kicked], by: &KickedBy) -> Option<usize> {
        let rank = |kicked| self.by.get(kicked).map_or(0, KickedBy::rank);
        let weakest = list.iter().enumerate();
        let weakest = weakest.min_by_key(|(index, kicked)| (rank(kicked), *index));
        let (index, weakest) = weakest?;
        let weakest = rank(weakest);
        let is_as_good = weakest == by.rank() && weakest < KickedBy::Leader.rank();
        (weakest < by.rank() || is_as_good).then_some(index)
    }
}

/// The room rules that a member reported.
#[derive(Debug)]
pub(super) struct Said {
    /// The newest; it counts when the member leads.
    rules: RoomRules,
    /// Whether nothing came of it yet.
    is_new: bool,
    pace: Pace,
}

/// What a member is sent of the room rules.
#[derive(Debug)]
pub(super) struct Delivery {
    pace: Pace,
    /// Whether there is something that it was not told.
    is_due: bool,
}

fn room_rules_pace(now: Time) -> Pace {
    Pace::new(now, ROOM_RULES_BURST, ROOM_RULES_INTERVAL)
}

fn peers_where<T>(of: &BTreeMap<PeerId, T>, is_so: impl Fn(&T) -> bool) -> Vec<PeerId> {
    let those = of.iter().filter(|(_, value)| is_so(value));
    those.map(|(peer, _)| peer.clone()).collect()
}

impl Node {
    /// Most other members: as a leader set it, or else the own setting, by which this node goes where it decides; 0
    /// is no limit.
    pub fn max_peers(&self) -> u32 {
        let was_set = self.room_rules.version != RoomRules::default().version;
        if was_set {
            self.room_rules.max_peers
        } else {
            self.config.max_peers
        }
    }

    /// The same, with who is kicked.
    #[cfg(test)]
    pub(super) fn room_rules(&self) -> &RoomRules {
        &self.room_rules
    }

    pub(super) fn is_kicked(&self, peer: &PeerId, key: Fingerprint) -> bool {
        let names = |(id, its): &Kicked| id == peer || *its == key;
        self.room_rules.kicked.iter().any(names)
    }

    /// Puts a peer on the list; `false` where the list is full of others that do not make way.
    fn put_on_list(&mut self, kicked: Kicked, by: KickedBy) -> bool {
        if let Some(known) = self.kicks.by.get_mut(&kicked) {
            if known.rank() < by.rank() {
                *known = by;
            }
            return true;
        }
        if self.room_rules.kicked.len() >= MAX_KICKED {
            let Some(index) = self.kicks.makes_way(&self.room_rules.kicked, &by) else {
                return false;
            };
            let forgotten = self.room_rules.kicked.remove(index);
            self.kicks.by.remove(&forgotten);
        }
        self.kicks.by.insert(kicked.clone(), by);
        self.room_rules.kicked.push(kicked);
        true
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
        let Some((key, _)) = self.id_holder(peer) else {
            return Err(CommandError::UnknownPeer(peer.clone()));
        };
        if !self.put_on_list((peer.clone(), key), KickedBy::Myself) {
            return Err(CommandError::TooManyKicked(MAX_KICKED));
        }
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
        self.tell_all_room_rules(now);
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
        if self.leader() != Some(from) {
            // Only the leader may. If room rules of this member then say the same, this is why.
            if *peer == self.me {
                self.reason_passed_on = Some((from.clone(), code, bytes));
            }
            return;
        }
        if *peer == self.me {
            self.end_room(now, EndReason::Kicked, code, bytes);
            return;
        }
        let kicked = (peer.clone(), key);
        let by = self.kicks.as_leader_says(&kicked);
        // A list that is full of others is told with the leader's own.
        let _ = self.put_on_list(kicked, by);
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
        // The leader's word may not have reached it. Once: it is the last that it hears.
        if self.membership.get(peer).is_some() {
            self.transmit(peer, Message::RoomRules(self.room_rules.clone()));
        }
        self.close(peer, LinkEnd::Kicked);
        self.remove_with(now, peer, Gone::Removed, LeftReason::Kicked, code, bytes);
    }

    pub(super) fn set_max_peers(&mut self, now: Time, max_peers: u32) -> Result<(), CommandError> {
        if !self.is_leader() {
            return Err(CommandError::NotLeader);
        }
        let (known, count) = &self.room_rules.version;
        let stamp = &self.record().stamp;
        self.room_rules.version = if stamp > known {
            (stamp.clone(), 1)
        } else {
            (known.clone(), count.saturating_add(1))
        };
        self.room_rules.max_peers = max_peers;
        self.tell_all_room_rules(now);
        Ok(())
    }

    fn tell_all_room_rules(&mut self, now: Time) {
        for peer in self.membership.ids() {
            self.tell_room_rules(now, &peer);
        }
    }

    /// Sends a member the room rules, if there are any, or if it was sent others.
    pub(super) fn tell_room_rules(&mut self, now: Time, peer: &PeerId) {
        if self.room_rules != RoomRules::default() || self.deliveries.contains_key(peer) {
            self.say_room_rules(now, peer);
        }
    }

    /// Sends a member the room rules: now, or the newest when it may be sent some again.
    fn say_room_rules(&mut self, now: Time, peer: &PeerId) {
        let delivery = self.deliveries.entry(peer.clone());
        let delivery = delivery.or_insert_with(|| Delivery {
            pace: room_rules_pace(now),
            is_due: false,
        });
        delivery.is_due = !delivery.pace.take(now);
        if !delivery.is_due {
            self.transmit(peer, Message::RoomRules(self.room_rules.clone()));
        }
    }

    pub(super) fn room_rules_deadline(&self) -> Option<Time> {
        let due = self.deliveries.values().filter(|delivery| delivery.is_due);
        let due = due.map(|delivery| delivery.pace.next());
        let said = self.rules_of.values().filter(|said| said.is_new);
        due.chain(said.map(|said| said.pace.next())).min()
    }

    pub(super) fn room_rules_due(&mut self, now: Time) {
        for peer in peers_where(&self.rules_of, |said| said.is_new) {
            self.take_room_rules(now, &peer);
        }
        for peer in peers_where(&self.deliveries, |delivery| delivery.is_due) {
            self.say_room_rules(now, &peer);
        }
    }

    /// A peer is linked no longer. When it is back it says anew what it goes by, and nothing where that is nothing.
    pub(super) fn room_rules_unlinked(&mut self, peer: &PeerId) {
        self.deliveries.remove(peer);
        self.rules_of.remove(peer);
    }

    /// A member reports the room rules. A member that says more than a few things in a second is heard less often, and
    /// then what it said last.
    pub(super) fn room_rules_received(&mut self, now: Time, from: &PeerId, rules: RoomRules) {
        if rules.kicked.len() > MAX_KICKED {
            self.violation(now, from, "a list of kicked peers is longer than allowed");
            return;
        }
        match self.rules_of.get_mut(from) {
            Some(said) => {
                said.rules = rules;
                said.is_new = true;
            }
            None => {
                let said = Said {
                    rules,
                    is_new: true,
                    pace: room_rules_pace(now),
                };
                self.rules_of.insert(from.clone(), said);
            }
        }
        self.take_room_rules(now, from);
    }

    fn take_room_rules(&mut self, now: Time, from: &PeerId) {
        let Some(said) = self.rules_of.get_mut(from) else {
            return;
        };
        if !said.pace.take(now) {
            return;
        }
        said.is_new = false;
        let rules = said.rules.clone();
        if self.leader() == Some(from) {
            self.set_limit(&rules);
            self.adopt_kicks_of_leader(now, from, rules);
        } else {
            self.hear_room_rules(now, from, rules);
        }
    }

    /// What a member that does not lead says, where such words count.
    fn hear_room_rules(&mut self, now: Time, from: &PeerId, rules: RoomRules) {
        if self.config.election.policy.authority != Authority::Anyone || self.is_fixed() {
            return;
        }
        let says = rules.max_peers;
        self.adopt_hearsay(now, from, rules);
        if self.is_leader() && says != self.room_rules.max_peers {
            // It has the limit from a leader that this one does not follow: it learns that there is another, or none.
            self.say_room_rules(now, from);
        }
    }

    /// Another leads. A former leader may have been lost before all had its word: the new one is told what is
    /// known here, and tells everybody what it knows.
    pub(super) fn share_room_rules(&mut self, now: Time) {
        let Some(leader) = self.leader().cloned() else {
            return;
        };
        if leader == self.me {
            self.leads_since = now;
            let stamp = self.record().stamp.clone();
            self.led_first.get_or_insert(stamp);
            self.tell_all_room_rules(now);
            self.hear_room_rules_again(now);
        } else if self.membership.get(&leader).is_some() {
            self.tell_room_rules(now, &leader);
        }
        // What it said before it was known to lead.
        if let Some(said) = self.rules_of.get_mut(&leader) {
            said.is_new = false;
            let rules = said.rules.clone();
            if rules.version > self.room_rules.version {
                self.set_limit(&rules);
            }
            self.adopt_kicks_of_leader(now, &leader, rules);
        }
    }

    /// This node leads now. Members that took it for the leader before it was one do not repeat what they said then.
    fn hear_room_rules_again(&mut self, now: Time) {
        let said = self.rules_of.iter();
        let said = said.map(|(peer, said)| (peer.clone(), said.rules.clone()));
        for (peer, rules) in said.collect::<Vec<_>>() {
            if self.membership.get(&peer).is_some() && !self.ended {
                self.hear_room_rules(now, &peer, rules);
            }
        }
    }

    /// The leader's limit holds, whatever version others gave theirs. A version says nothing of a leadership that has
    /// not begun.
    fn set_limit(&mut self, rules: &RoomRules) {
        let (stamp, count) = rules.version.clone();
        let stamp = stamp.min(self.record().stamp.clone());
        self.room_rules.version = (stamp, count);
        self.room_rules.max_peers = rules.max_peers;
    }

    /// Whoever the leader has kicked is out.
    fn adopt_kicks_of_leader(&mut self, now: Time, leader: &PeerId, rules: RoomRules) {
        for (peer, key) in rules.kicked {
            if peer == self.me || key == self.config.key {
                self.out_myself(now, leader);
                return;
            }
            let kicked = (peer, key);
            let is_new = !self.is_kicked(&kicked.0, key);
            let by = self.kicks.as_leader_says(&kicked);
            let peer = kicked.0.clone();
            if self.put_on_list(kicked, by) && is_new {
                self.out(now, &peer, 0, Vec::new());
            }
        }
    }

    /// What a member says that does not lead counts for whom this node has known as a member, the newest first. Once
    /// somebody leads that was not told of a limit by the last leader, it takes that over.
    fn adopt_hearsay(&mut self, now: Time, from: &PeerId, rules: RoomRules) {
        let mut changed = false;
        if self.is_leader() && self.is_credible(now, from, &rules.version) {
            self.set_limit(&rules);
            changed = true;
        }
        let mut held = self.kicks.held_for(from);
        for kicked in rules.kicked.into_iter().rev() {
            if kicked == (self.me.clone(), self.config.key) {
                self.out_myself(now, from);
                return;
            }
            let counts = held < MAX_HEARSAY
                && self.kicks.seen.contains_key(&kicked)
                && !self.is_kicked(&kicked.0, kicked.1);
            let peer = kicked.0.clone();
            if counts && self.put_on_list(kicked, KickedBy::Member(from.clone())) {
                held += 1;
                changed = true;
                self.out(now, &peer, 0, Vec::new());
            }
        }
        if !changed {
            return;
        }
        if self.is_leader() {
            self.tell_all_room_rules(now);
        } else if let Some(leader) = self.leader().cloned()
            && leader != *from
            && self.membership.get(&leader).is_some()
        {
            // Whoever had it may not be linked to the leader, which tells everybody.
            self.tell_room_rules(now, &leader);
        }
    }

    /// Whether a limit may be that of a leader before this one: this node went by that leader, which says it itself
    /// or is gone. An earlier incarnation of this node is gone.
    fn is_credible(&self, now: Time, from: &PeerId, version: &(Stamp, u64)) -> bool {
        let was_restarted = self.led_first.as_ref() > Some(&version.0);
        let gone = |leader: &PeerId| self.membership.get(leader).is_none();
        now.since(self.leads_since) < TAKES_OVER_FOR
            && *version > self.room_rules.version
            && self.recent_leaders.under(&version.0).any(|leader| {
                if *leader == self.me {
                    was_restarted
                } else {
                    leader == from || gone(leader)
                }
            })
    }

    fn out_myself(&mut self, now: Time, from: &PeerId) {
        let passed_on = self.reason_passed_on.take();
        let passed_on = passed_on.filter(|(member, ..)| member == from);
        let (_, code, bytes) = passed_on.unwrap_or((from.clone(), 0, Vec::new()));
        self.end_room(now, EndReason::Kicked, code, bytes);
    }

    /// The room is over for this node: nobody is linked, and nobody will be.
    pub(super) fn end_room(&mut self, now: Time, why: EndReason, code: i32, bytes: Vec<u8>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        // It stops leading before it stops altogether. Where a roster says who may lead, that is refused, and leaving does both.
        let refused = self.try_elect(now, Local::SetEligible(false)).err();
        debug_assert!(
            refused.is_none_or(|error| matches!(error, ElectionError::NotSupported { .. }))
        );
        self.elect(now, Local::Leave);
        let (end, reason) = match why {
            EndReason::Kicked => (LinkEnd::Kicked, LeftReason::Kicked),
            EndReason::HostLeft => (LinkEnd::Closed, LeftReason::Left),
            EndReason::HostLost => (LinkEnd::Closed, LeftReason::Lost),
            EndReason::Disconnected => (LinkEnd::Closed, LeftReason::Disconnected),
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
        if self.config.election.eligible == eligible {
            return Ok(());
        }
        let successor = self.election.successor(&self.view);
        if self.ended {
            self.config.election.eligible = eligible;
            return Ok(()); // nobody leads what is over
        }
        let counts = eligible && self.config.election.quorum.admits(&self.me);
        self.try_elect(now, Local::SetEligible(counts))?;
        self.config.election.eligible = eligible;
        self.tell_standing(successor);
        Ok(())
    }

    pub(super) fn set_priority(&mut self, now: Time, priority: i32) -> Result<(), CommandError> {
        self.try_elect(now, Local::SetPriority(priority))?;
        self.config.election.priority = priority;
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
            eligible: self.config.election.eligible,
            priority: self.config.election.priority,
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
        // A static quorum counts its roster and nobody else, whatever they say.
        let eligible = eligible && self.config.election.quorum.admits(from);
        let Some(voter) = self.view.voters.get_mut(from) else {
            return;
        };
        voter.priority = priority;
        if self.config.election.policy.host_mode != HostMode::Off {
            return; // that is fixed
        }
        let before = std::mem::replace(&mut voter.eligible, eligible);
        let incarnation = voter.incarnation;
        let peer = from.clone();
        match (before, eligible) {
            (true, false) => self.elect(
                now,
                Local::PeerIneligible {
                    peer,
                    incarnation,
                    successor,
                },
            ),
            (false, true) => self.elect(now, Local::PeerEligible { peer }),
            _ => {}
        }
    }
}
