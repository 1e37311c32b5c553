//! Merges of two rooms that cannot keep all their members: an id belongs to two keys, or the leader of one room has
//! banned a member of the other.
//!
//! Each member of the room that yields moves by itself, over a link that shows the key of the other leader. It ends
//! sessions only when that link is ready: with members that this leader bans, or whose ids this leader binds to other
//! keys. No report moves a member, and no single key excludes one: a member moves if at least as many keys follow the
//! other leader as follow its own, or if its own host asked for the link.

use super::ending::SessionEnd;
use super::*;
use crate::bounded::BoundedMap;
use crate::election::NamedLeader;
use crate::introductions::Source;
use crate::wire::{Ban, MAX_KICKED, RoomRules};

/// Time after a move within which this node closes links with banned members as one that moved; also the time after its
/// host asked for a link with the leader of another room within which that leader's bans can move this node.
const ARRIVAL_WINDOW: Duration = Duration::from_secs(10);

/// Time after a change of the leader for which this node keeps bans that the new one does not have. It reports them
/// meanwhile.
const BAN_REVIEW_DELAY: Duration = Duration::from_secs(3);

/// Time for which this node keeps a link with a member of another room whose leader it cannot follow.
const FOREIGN_LINK_TIMEOUT: Duration = Duration::from_secs(10);

/// Time after which this node dials such a member again: its leader may have changed as the link ended.
const PARTED_REDIAL_DELAY: Duration = Duration::from_secs(10);

/// Most members of other rooms that this node remembers after it has parted from them.
const MAX_PARTED: usize = 512;

/// Reason why a member that moves ends its session with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// Another member has that id in the room to which it moves.
    DuplicateId,
    /// The leader of that room has banned the other member.
    Banned,
}

impl Conflict {
    fn end_of_room(self) -> EndReason {
        match self {
            Self::DuplicateId => EndReason::DuplicateId,
            Self::Banned => EndReason::Kicked,
        }
    }
}

/// A peer whose id is bound to another key here, as one member introduced it.
#[derive(Debug, Clone)]
struct Namesake {
    entry: PeerEntry,
    since: Time,
}

/// A member of another room that cannot merge with this one.
#[derive(Debug, Clone)]
struct Parted {
    entry: PeerEntry,
    since: Time,
    /// The time at which this node dials it, if any.
    dial_at: Option<Time>,
}

/// The state of a merge.
#[derive(Debug, Default)]
pub(super) struct Merging {
    /// By id, and by the member that introduced it: at most one for each pair of members. A member does not change the
    /// introductions of others.
    namesakes: BTreeMap<PeerId, BTreeMap<PeerId, Namesake>>,
    /// Members of this room that yield their ids to other processes, and the keys of these processes.
    making_way: BTreeMap<PeerId, Fingerprint>,
    /// The time until which the last move of this node is recent.
    arrival_until: Option<Time>,
    /// The time at which this node drops the bans that the leader does not have.
    bans_due: Option<Time>,
    /// Banned peers, by the members that introduced them. This node dials them when it drops their bans.
    kept_out: BTreeMap<PeerId, BoundedMap<PeerId, PeerEntry, MAX_KICKED>>,
    /// Linked members of another room whose leader this node cannot follow, with the start of that state.
    strangers: BTreeMap<PeerId, Time>,
    /// Members of other rooms that have lost their links with this node because the rooms cannot merge.
    parted: BoundedMap<Fingerprint, Parted, MAX_PARTED>,
    /// Time of the last change of the leader: members may not have reported yet that they follow the new one.
    pub(super) leader_changed_at: Option<Time>,
    /// Time of the last move of a member to a room that cannot keep this node, with the reason.
    left_behind: Option<(Time, Conflict)>,
}

impl Node {
    /// Whether the holder of `key` replaces this node's member of that id as soon as a link shows the key: it is the
    /// leader to which this node moves, or this node's leader has it as a member.
    pub(super) fn moves_to(&self, peer: &PeerId, key: Fingerprint) -> bool {
        self.may_move() && self.election.moves_to(&self.view) == Some((peer, key))
            || self.merging.making_way.get(peer) == Some(&key)
    }

    /// Whether members of this room may move. They do not with a fixed host or a roster of voters.
    fn may_move(&self) -> bool {
        !self.is_fixed() && !self.config.election.quorum.is_static()
    }

    /// Handles an introduction of a peer whose id is bound to another key here. The leader answers with the peer that it has
    /// under that id: the member makes way for that one if it follows this leader.
    pub(super) fn namesake_introduced(&mut self, now: Time, from: &PeerId, entry: &PeerEntry) {
        let namesakes = self.merging.namesakes.entry(entry.id.clone()).or_default();
        let known = namesakes.get(from).filter(|it| it.entry.key == entry.key);
        let (since, is_new) = known.map_or((now, true), |known| (known.since, false));
        let namesake = Namesake {
            entry: entry.clone(),
            since,
        };
        namesakes.insert(from.clone(), namesake);
        self.settle_namesakes(now);
        if is_new && self.is_leader() {
            let members = self.membership.iter();
            let holder = members.filter(|(id, _)| **id == entry.id).map(entry_of);
            self.introduce(from, holder.collect());
        }
    }

    /// Notes that a member introduces the peer to which an id is bound here, and no namesake any more.
    pub(super) fn holder_introduced(&mut self, from: &PeerId, id: &PeerId) {
        if let Some(namesakes) = self.merging.namesakes.get_mut(id) {
            namesakes.remove(from);
        }
    }

    /// Dials the leader to which this node moves, the members of the leader's room for which members here make way, and
    /// the ones whose ids are free here now.
    pub(super) fn settle_namesakes(&mut self, now: Time) {
        let mut free = Vec::new();
        let mut known = std::mem::take(&mut self.merging.namesakes);
        known.retain(|id, namesakes| {
            let holder = self.id_holder(id).map(|(key, _)| key);
            namesakes.retain(|from, namesake| {
                self.membership.get(from).is_some() && holder != Some(namesake.entry.key)
            });
            if holder.is_none() {
                free.extend(std::mem::take(namesakes));
            }
            !namesakes.is_empty()
        });
        self.merging.namesakes = known;
        for (from, namesake) in free {
            let is_direct = !namesake.entry.addresses.is_empty();
            self.introduced_by(now, &from, &namesake.entry, is_direct);
        }
        let leader = self.leader().cloned();
        self.merging.making_way.clear();
        let namesakes = self.merging.namesakes.values().flatten();
        let namesakes: Vec<_> = namesakes
            .map(|(from, namesake)| (leader.as_ref() == Some(from), namesake.clone()))
            .collect();
        for (is_leaders, namesake) in namesakes {
            let Namesake { entry, since } = namesake;
            if self.is_kicked(&entry.id, entry.key) || self.ended {
                continue;
            }
            let makes_way = is_leaders && self.had_sign_of_life_after(&entry.id, since);
            if makes_way {
                let making_way = &mut self.merging.making_way;
                making_way.insert(entry.id.clone(), entry.key);
            }
            if makes_way || self.moves_to(&entry.id, entry.key) {
                self.introductions
                    .introduce(now, &self.me, &entry, Source::Own);
            }
        }
    }

    /// Whether this node's member of that id is alive. A dead one may be an earlier process of that id; its link ends
    /// by timeout.
    fn had_sign_of_life_after(&self, id: &PeerId, since: Time) -> bool {
        let member = self.membership.get(id);
        member.is_some_and(|member| member.had_sign_of_life_after(since))
    }

    /// Notes a change of the leader. If the new one led before, in another room, this node has moved.
    pub(super) fn note_arrival(&mut self, now: Time, change: &LeaderChange) {
        self.merging.leader_changed_at = Some(now);
        self.introductions.leader_changed();
        for (_, parted) in self.merging.parted.iter_mut() {
            parted.dial_at = Some(now);
        }
        if change.new.as_ref() == Some(&self.me) {
            // Members that introduced others before this node led do not know which of two namesakes stays.
            if self.has_moved_lately(now) {
                self.introduce_to_others(now, self.membership.ids());
            } else if !self.merging.namesakes.is_empty() {
                let disputed: Vec<_> = self.merging.namesakes.keys().cloned().collect();
                self.introduce_to_others(now, disputed);
            }
            return;
        }
        if change.new.is_none() {
            return;
        }
        if change.reason == LeaderReason::Found {
            self.merging.arrival_until = Some(now + ARRIVAL_WINDOW);
            self.settle_namesakes(now);
        }
        self.merging.bans_due = Some(now + BAN_REVIEW_DELAY);
    }

    /// Whether this node has moved lately.
    pub(super) fn has_moved_lately(&self, now: Time) -> bool {
        self.merging.arrival_until.is_some_and(|until| now < until)
    }

    /// Notes a banned peer that a member introduced. It does not change the introductions of others.
    pub(super) fn note_kept_out(&mut self, from: &PeerId, entry: &PeerEntry) {
        let membership = &self.membership;
        let kept_out = &mut self.merging.kept_out;
        kept_out.retain(|from, _| membership.get(from).is_some());
        let its = kept_out.entry(from.clone()).or_default();
        // Without room for the entry, it is linked when it dials.
        let _ = its.insert(entry.id.clone(), entry.clone());
    }

    /// Drops the bans that the leader does not have, some time after it began to lead: it does not know who decided
    /// them. Otherwise two members of one room would stay without a link.
    pub(super) fn give_up_bans(&mut self, now: Time) {
        if self.merging.bans_due.is_none_or(|due| now < due) {
            return;
        }
        // The members may follow a leader that one of these bans blocks and that has no link here.
        let leadership = self.election.leadership();
        let kept_out = leadership.record.leader.as_ref();
        let kept_out = kept_out.filter(|leader| self.is_name_kicked(leader));
        let Some(leader) = leadership.leader.or(kept_out).cloned() else {
            return;
        };
        let is_here = self.membership.elector(&leader).is_some() || self.is_name_kicked(&leader);
        if leader != self.me && !is_here {
            return;
        }
        self.merging.bans_due = None;
        if leader == self.me {
            return;
        }
        let dropped = self.drop_bans_unknown_to(&leader);
        if !dropped.is_empty() {
            // If this node leads later, its members do not enforce the dropped bans.
            self.send_room_rules_to_all(now);
        }
        for peer in dropped {
            let leader = leader.clone();
            self.event(Event::BanDropped { peer, leader });
        }
        for (from, entries) in std::mem::take(&mut self.merging.kept_out) {
            for entry in entries.values() {
                self.introduced_by(now, &from, entry, !entry.addresses.is_empty());
            }
        }
    }

    /// Whether the holder of an id keeps it from another key and incarnation.
    pub(super) fn keeps_id(
        &self,
        peer: &PeerId,
        key: Fingerprint,
        incarnation: Incarnation,
    ) -> bool {
        let member = self.membership.get(peer);
        member.is_some_and(|member| member.keeps_id_from(key, incarnation))
            && !self.moves_to(peer, key)
    }

    /// Replaces the member of that id by the peer with that key, whose link is ready.
    pub(super) fn move_to_namesake(&mut self, now: Time, peer: &PeerId, key: Fingerprint) {
        let is_leader = !self.merging.making_way.contains_key(peer);
        self.note_replaced(now, peer, key);
        self.give_up(now, peer, Conflict::DuplicateId);
        if is_leader {
            self.merging.arrival_until = Some(now + ARRIVAL_WINDOW);
        }
    }

    /// Notes that the peer with that key replaces a member. The replaced one is a namesake now, introduced by all
    /// members that introduced no other one.
    pub(super) fn note_replaced(&mut self, now: Time, peer: &PeerId, key: Fingerprint) {
        let linked = self
            .membership
            .get(peer)
            .map(|member| entry_of((peer, member)));
        let lost = self.absent.get(peer).filter(|absent| !absent.ended);
        let lost = lost.map(|absent| PeerEntry {
            id: peer.clone(),
            key: absent.key,
            addresses: absent.address.into_iter().collect(),
        });
        let Some(entry) = linked.or(lost) else {
            return;
        };
        let namesake = Namesake { entry, since: now };
        let mut namesakes = self.merging.namesakes.remove(peer).unwrap_or_default();
        for (from, _) in self.membership.iter().filter(|(from, _)| *from != peer) {
            namesakes
                .entry(from.clone())
                .or_insert_with(|| namesake.clone());
        }
        namesakes.retain(|_, namesake| namesake.entry.key != key);
        self.merging.namesakes.insert(peer.clone(), namesakes);
    }

    /// Ends the session with a member that the room to which this node moves cannot keep.
    fn give_up(&mut self, now: Time, peer: &PeerId, why: Conflict) {
        self.close(peer, LinkEnd::Moved(why));
        self.end_session(now, peer, SessionEnd::Moved);
    }

    /// Handles a member's move to a room that cannot keep this node. If it was the last member, this room is over.
    pub(super) fn given_up(&mut self, now: Time, peer: &PeerId, why: Conflict) {
        let linked = self.membership.iter().map(|(id, _)| id);
        let is_last = linked.chain(self.absent.keys()).all(|id| id == peer);
        if is_last && self.announce_end(why.end_of_room(), 0, Vec::new()) {
            self.end_session(now, peer, SessionEnd::RoomOver);
            self.empty_room(now);
        } else {
            self.merging.left_behind = Some((now, why));
            self.end_session(now, peer, SessionEnd::MovedThere);
        }
    }

    /// Handles the end of the session with a member that was linked until `last_linked`, and whose room is over or that did
    /// not return. If it was the last one, and others had moved shortly before to a room that cannot keep this node, the room
    /// is over for this node, too.
    pub(super) fn end_if_left_behind(&mut self, now: Time, last_linked: Time) {
        let is_alone = self.membership.is_empty() && self.absent.is_empty();
        let left_behind = self.merging.left_behind.take_if(|_| is_alone);
        if let Some((at, why)) = left_behind
            && last_linked < at + ARRIVAL_WINDOW
            && self.announce_end(why.end_of_room(), 0, Vec::new())
        {
            self.empty_room(now);
        }
    }

    /// Ends the links with members of another room that cannot merge with this one and whose members do not move.
    pub(super) fn part_from_other_room(&mut self, now: Time) {
        let members = self.membership.iter().map(|(peer, _)| peer);
        let strangers = members.filter(|peer| self.is_of_other_room(peer));
        let strangers: BTreeSet<_> = strangers.cloned().collect();
        let since = &mut self.merging.strangers;
        since.retain(|peer, _| strangers.contains(peer));
        for peer in strangers {
            since.entry(peer).or_insert(now);
        }
        let changed_at = self.merging.leader_changed_at;
        let is_new =
            changed_at.is_some_and(|at| now.since(at) < self.config.heartbeat_interval * 2);
        let overdue = since
            .iter()
            .filter(|(_, met_at)| !is_new && now.since(**met_at) >= FOREIGN_LINK_TIMEOUT);
        for peer in overdue.map(|(peer, _)| peer.clone()).collect::<Vec<_>>() {
            self.close(&peer, LinkEnd::OtherRoom);
            self.parted(now, &peer);
        }
    }

    /// Ends the session with a member of another room: the rooms cannot merge, and the link has ended.
    pub(super) fn parted(&mut self, now: Time, peer: &PeerId) {
        if let Some(member) = self.membership.get(peer) {
            let (key, entry) = (member.key, entry_of((peer, member)));
            let dial_at = Some(now + PARTED_REDIAL_DELAY);
            let one = Parted {
                entry,
                since: now,
                dial_at,
            };
            let parted = &mut self.merging.parted;
            parted.insert_over(key, one, |_, one| one.since);
        }
        self.end_session(now, peer, SessionEnd::OtherRoom);
    }

    /// Forgets that this node has parted from the holder of that key: it is linked again.
    pub(super) fn forget_parted(&mut self, key: Fingerprint) {
        self.merging.parted.remove(&key);
    }

    /// Dials members of other rooms from which this node has parted: once some time later, and after a change of the
    /// leader. Each end refuses while the rooms still cannot merge.
    pub(super) fn dial_parted(&mut self, now: Time) {
        let is_due = |dial_at: &mut Time| now >= *dial_at;
        let parted = self.merging.parted.iter_mut();
        let due = parted.filter_map(|(_, one)| {
            one.dial_at.take_if(is_due)?;
            Some(one.entry.clone())
        });
        for entry in due.collect::<Vec<_>>() {
            self.dial_if_wanted(now, &entry);
        }
    }

    /// Whether this node has parted from the sender of a Hello and their rooms still cannot merge.
    pub(super) fn stays_apart(&self, hello: &Hello, key: Fingerprint) -> bool {
        let named = self.election.named_in(&hello.side);
        self.merging.parted.contains_key(&key)
            && named.is_some_and(|named| self.follows_elsewhere(&hello.peer_id, &named))
    }

    /// Whether a linked member belongs to another room that cannot merge with this one.
    fn is_of_other_room(&self, peer: &PeerId) -> bool {
        let named = self.election.names(peer);
        named.is_some_and(|named| self.follows_elsewhere(peer, named))
    }

    /// Whether a peer follows a leader whose id is bound to another key here, or whom this room bans, while this node
    /// does not move. Also checked if this node has no leader: such members count in elections and do not vote.
    fn follows_elsewhere(&self, peer: &PeerId, (id, key): &NamedLeader) -> bool {
        if !self.may_move() {
            return false;
        }
        let bound_to = match *id == self.me {
            true => Some(self.config.key),
            false => self.membership.get(id).map(|member| member.key),
        };
        let is_namesake = bound_to.is_some_and(|bound_to| bound_to != *key);
        let is_out = is_namesake || self.is_kicked(id, *key);
        is_out && self.leader() != Some(peer) && !self.moves_to(id, *key)
    }

    /// Moves this node, if it may, to the leader of another room that bans the leader of this one.
    pub(super) fn weigh_bans(&mut self, now: Time) {
        if !self.may_move() {
            return;
        }
        // The host asked for the room of that other leader, not for one that such a member claims to lead later.
        let election = &self.election;
        let follows = |peer: &PeerId| election.names(peer).is_some_and(|(id, _)| id != peer);
        self.joins.forget_invitations(follows);
        let Some(own) = self.election.leadership().leader.cloned() else {
            return;
        };
        let mut reports = self.rules_of.iter();
        if reports
            .any(|(from, reported)| self.is_moved_by_bans_of(now, from, reported.rules(), &own))
        {
            self.give_up(now, &own, Conflict::Banned);
        }
    }

    fn is_moved_by_bans_of(
        &self,
        now: Time,
        from: &PeerId,
        rules: &RoomRules,
        own: &PeerId,
    ) -> bool {
        let (Some(theirs), Some(leader)) =
            (self.membership.elector(from), self.membership.get(own))
        else {
            return false;
        };
        let (to, own) = ((from.clone(), theirs.key), (own.clone(), leader.key));
        let bans_it = |ban: &Ban| !ban.lifted && (ban.peer == own.0 || ban.key == own.1);
        let leads = self.election.names(from) == Some(&to);
        if !leads || to == own || !rules.bans.iter().any(bans_it) {
            return false;
        }
        let invited_at = self.joins.invited_at(from, to.1);
        let asked_for = invited_at.is_some_and(|at| now.since(at) < ARRIVAL_WINDOW);
        asked_for || 1 + self.keys_that_name(&to) >= 2 + self.keys_that_name(&own)
    }

    /// Number of linked members, the leader itself excluded, that name that leader.
    fn keys_that_name(&self, leader: &NamedLeader) -> usize {
        let others = self.membership.iter().filter(|(id, _)| **id != leader.0);
        others
            .filter(|(id, _)| self.election.names(id) == Some(leader))
            .count()
    }
}
