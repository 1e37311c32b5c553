//! Room rules: kicks, bans, limits and eligibility that a leader sets, and the end of a room for a node.
//!
//! The present leader's rules apply. Another member's report is hearsay: it counts only if this node knows who led at
//! the time of the decision, and that leader has gone away or is the reporter. An unknown leader gives no permission.
//! Reported kicks count for peers that were members here, a few per source, and exclude no peer before a leader adopts
//! them. A reported limit counts only shortly after a new leader has begun to lead.
//!
//! Each ban, and each lifting of a ban, has a version: the leadership under which the leader's host decided, and a
//! count. The newer version wins at every member, whatever its source. So neither a member nor a leader that missed an
//! mmn_unban brings a ban back, and a deposed leader does not undo its successor's decisions. A lifted ban stays on the
//! list.

use super::*;
use crate::bounded::BoundedMap;
use crate::election::Banned;
use crate::wire::{Authority, Ban, BanVersion, Decider, MAX_KICKED, MAX_REASON_BYTES, RoomRules};

/// Most kicks that count on the report of one member that does not lead.
const MAX_HEARSAY: usize = 16;
/// Largest count in a version from another member: it leaves room for newer versions of this node.
const MAX_REPORTED_COUNT: u32 = 1 << 31;
/// Most peers that were members here and are remembered.
const MAX_SEEN: usize = 1024;
/// Time after the start of its leadership within which a leader adopts the limit of a former one.
const ADOPTION_WINDOW: Duration = Duration::from_secs(10);
/// RoomRules that are sent to one member, and accepted from one, at once; after these, one per [`ROOM_RULES_INTERVAL`],
/// the newest. A list may be 100 kB long and goes to all members when it changes.
const ROOM_RULES_BURST: u32 = 8;
const ROOM_RULES_INTERVAL: Duration = Duration::from_millis(250);

/// Id and key of a kicked peer.
type Kicked = (PeerId, Fingerprint);

/// State of kicks in addition to the list.
#[derive(Debug, Default)]
pub(super) struct Kicks {
    /// Source of each entry of the list.
    by: BTreeMap<Kicked, KickedBy>,
    /// The highest version on the list so far.
    newest: BanVersion,
    /// Peers that were members here, with a sequence number of the last time.
    seen: BoundedMap<Kicked, u64, MAX_SEEN>,
    seen_count: u64,
    /// Whether the list has changed since the election received it.
    list_changed: bool,
}

/// Source of a kick, the weakest first: weaker entries make way for others.
#[derive(Debug, Clone, PartialEq, Eq)]
enum KickedBy {
    /// A member that does not lead.
    Member(PeerId),
    /// A leader, for a peer that never was a member here: it may have made the id up.
    LeaderUnseen,
    /// A leader, for a peer that was a member here. It makes way for a kick of this node's host.
    Leader,
    /// A member reported it, and this node enforced it as leader. It stays in force under other leaders.
    Enforced(PeerId),
    /// This node, when it led.
    Myself,
}

impl KickedBy {
    fn rank(&self) -> u8 {
        match self {
            Self::Member(_) => 1,
            Self::LeaderUnseen => 2,
            Self::Leader | Self::Enforced(_) => 3,
            Self::Myself => 4,
        }
    }
}

impl Kicks {
    pub(super) fn note_member(&mut self, peer: &PeerId, key: Fingerprint) {
        self.seen_count += 1;
        let count = self.seen_count;
        let member = (peer.clone(), key);
        self.seen.insert_over(member, count, |_, count| *count);
    }

    fn held_for(&self, source: &PeerId) -> usize {
        let its = |by: &&KickedBy| matches!(by, KickedBy::Member(peer) | KickedBy::Enforced(peer) if peer == source);
        self.by.values().filter(its).count()
    }

    /// Marks every reported ban as enforced: this node leads.
    fn enforced(&mut self) {
        for by in self.by.values_mut() {
            if let KickedBy::Member(reporter) = by {
                *by = KickedBy::Enforced(reporter.clone());
            }
        }
    }

    fn leader_source(&self, kicked: &Kicked) -> KickedBy {
        if self.seen.contains_key(kicked) {
            KickedBy::Leader
        } else {
            KickedBy::LeaderUnseen
        }
    }

    /// Strength of an entry: a lifted one makes way first.
    fn rank(&self, ban: &Ban) -> u8 {
        match ban.lifted {
            true => LIFTED,
            false => self.by.get(&name_of(ban)).map_or(LIFTED, KickedBy::rank),
        }
    }

    /// Index of the entry that makes way for one of that rank: the oldest of the weakest, if they are weaker. Among
    /// lifted entries and ones that may be made up, a new one also replaces an old one of equal rank.
    fn makes_way(&self, list: &[Ban], rank: u8) -> Option<usize> {
        let weakest = list.iter().enumerate();
        let weakest = weakest.min_by_key(|(index, ban)| (self.rank(ban), *index));
        let (index, weakest) = weakest?;
        let weakest = self.rank(weakest);
        let is_as_good = weakest == rank && weakest < KickedBy::Leader.rank();
        (weakest < rank || is_as_good).then_some(index)
    }
}

/// Below every [`KickedBy::rank`].
const LIFTED: u8 = 0;

fn name_of(ban: &Ban) -> Kicked {
    (ban.peer.clone(), ban.key)
}

/// The room rules that a member reported.
#[derive(Debug)]
pub(super) struct Reported {
    /// The newest; they count when the member leads.
    rules: RoomRules,
    /// Whether they are still unprocessed.
    is_new: bool,
    pace: Pace,
}

/// Delivery of the room rules to a member.
#[derive(Debug)]
pub(super) struct Delivery {
    pace: Pace,
    /// Whether the member has not received the newest rules.
    is_due: bool,
}

impl Reported {
    pub(super) fn rules(&self) -> &RoomRules {
        &self.rules
    }
}

fn room_rules_pace(now: Time) -> Pace {
    Pace::new(now, ROOM_RULES_BURST, ROOM_RULES_INTERVAL)
}

fn filter_peers<T>(of: &BTreeMap<PeerId, T>, is_so: impl Fn(&T) -> bool) -> Vec<PeerId> {
    let those = of.iter().filter(|(_, value)| is_so(value));
    those.map(|(peer, _)| peer.clone()).collect()
}

impl Node {
    /// Maximum peers per member: the limit that a leader set, or else this node's setting, which applies where it
    /// decides; 0 is no limit.
    pub fn max_peers(&self) -> u32 {
        let was_set = self.room_rules.version != RoomRules::default().version;
        if was_set {
            self.room_rules.max_peers
        } else {
            self.config.max_peers
        }
    }

    /// The limit and the bans.
    #[cfg(test)]
    pub(super) fn room_rules(&self) -> &RoomRules {
        &self.room_rules
    }

    pub(super) fn is_kicked(&self, peer: &PeerId, key: Fingerprint) -> bool {
        let names = |ban: &Ban| ban.peer == *peer || ban.key == key;
        let mut bans = self.room_rules.bans.iter();
        bans.any(|ban| names(ban) && self.is_in_force(ban))
    }

    /// Whether a ban is in force. A ban that a member reported waits for a leader.
    fn is_in_force(&self, ban: &Ban) -> bool {
        let by = self.kicks.by.get(&name_of(ban));
        let is_hearsay = matches!(by, Some(KickedBy::Member(_)));
        !ban.lifted && (self.is_leader() || !is_hearsay)
    }

    /// This node as the decider of its decisions as leader.
    fn decider(&self) -> Decider {
        Decider {
            leader: self.me.clone(),
            incarnation: self.incarnation,
        }
    }

    /// Whether a peer of that id is kicked, regardless of its key.
    pub(super) fn is_name_kicked(&self, peer: &PeerId) -> bool {
        let names = |ban: &Ban| !ban.lifted && ban.peer == *peer;
        self.room_rules.bans.iter().any(names)
    }

    /// Removes the bans that are not on that leader's list. Returns the ids with bans that were in force.
    pub(super) fn drop_bans_unknown_to(&mut self, leader: &PeerId) -> Vec<PeerId> {
        let reported = self.rules_of.get(leader);
        let bans = reported.map_or(&[][..], |reported| &reported.rules.bans);
        let known: BTreeSet<_> = bans.iter().filter(|ban| !ban.lifted).map(name_of).collect();
        let is_unknown = |ban: &Ban| !ban.lifted && !known.contains(&name_of(ban));
        let bans = std::mem::take(&mut self.room_rules.bans);
        let (dropped, kept): (Vec<_>, Vec<_>) = bans.into_iter().partition(is_unknown);
        self.room_rules.bans = kept;
        self.kicks.list_changed = true;
        let in_force = dropped.iter().filter(|ban| self.is_in_force(ban));
        let in_force = in_force.map(|ban| ban.peer.clone()).collect();
        for ban in &dropped {
            self.kicks.by.remove(&name_of(ban));
        }
        in_force
    }

    /// Passes a changed list to the election.
    pub(super) fn show_bans(&mut self) {
        if std::mem::take(&mut self.kicks.list_changed) {
            let bans = self.room_rules.bans.iter().filter(|ban| !ban.lifted);
            let (ids, keys) = bans.map(|ban| (ban.peer.clone(), ban.key)).unzip();
            self.view.banned = Banned { ids, keys };
        }
    }

    /// The entry with the same id and key.
    fn known_ban(&self, ban: &Ban) -> Option<&Ban> {
        if !self.kicks.by.contains_key(&name_of(ban)) {
            return None;
        }
        let mut bans = self.room_rules.bans.iter();
        bans.find(|known| known.is_about(&ban.peer, ban.key))
    }

    /// Whether `ban` is older than the known entry.
    fn is_outdated(&self, ban: &Ban) -> bool {
        let known = self.known_ban(ban);
        known.is_some_and(|known| known.is_newer_than(ban))
    }

    /// Puts an entry on the list, unless a newer one is there; `false` if the list is full of entries that do not make
    /// way.
    fn put_on_list(&mut self, ban: Ban, by: KickedBy) -> bool {
        self.kicks.list_changed = true;
        let name = name_of(&ban);
        self.kicks.newest = self.kicks.newest.clone().max(ban.version.clone());
        if let Some(known_by) = self.kicks.by.get_mut(&name) {
            let mut bans = self.room_rules.bans.iter_mut();
            let known = bans.find(|known| known.is_about(&ban.peer, ban.key));
            let Some(known) = known else {
                debug_assert!(false, "somebody's word of no ban");
                return false;
            };
            if ban.lifted != known.lifted && ban.is_newer_than(known) || known_by.rank() < by.rank()
            {
                *known_by = by;
            }
            if ban.is_newer_than(known) {
                *known = ban;
            }
            return true;
        }
        if self.room_rules.bans.len() >= MAX_KICKED {
            let rank = if ban.lifted { LIFTED } else { by.rank() };
            let Some(index) = self.kicks.makes_way(&self.room_rules.bans, rank) else {
                return false;
            };
            let forgotten = self.room_rules.bans.remove(index);
            self.kicks.by.remove(&name_of(&forgotten));
        }
        self.kicks.by.insert(name, by);
        self.room_rules.bans.push(ban);
        true
    }

    /// The next version for a decision of this node as leader, above all known ones. If a stamp does not distinguish
    /// leaderships, only the count does.
    fn next_ban_version(&self) -> BanVersion {
        let stamp = &self.record().stamp;
        let (newest, count) = &self.kicks.newest;
        match newest >= stamp {
            true => (newest.clone(), count.saturating_add(1)),
            false => (stamp.clone(), 1),
        }
    }

    /// Bounds a version from another member: it cannot belong to a leadership that has not begun.
    fn bounded_version(&self, (stamp, count): BanVersion) -> BanVersion {
        let stamp = stamp.min(self.record().stamp.clone());
        (stamp, count.min(MAX_REPORTED_COUNT))
    }

    pub(super) fn kick(
        &mut self,
        now: Time,
        peer: &PeerId,
        code: i32,
        bytes: Vec<u8>,
        ban: bool,
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
        let mut version = None;
        if ban {
            let mut ban = Ban::new(peer.clone(), key);
            ban.version = self.next_ban_version();
            ban.by = Some(self.decider());
            version = Some(ban.version.clone());
            if !self.put_on_list(ban, KickedBy::Myself) {
                return Err(CommandError::TooManyKicked(MAX_KICKED));
            }
        }
        for member in self.membership.ids() {
            self.transmit(
                &member,
                Message::Kicked {
                    peer: peer.clone(),
                    key,
                    code,
                    bytes: bytes.clone(),
                    ban: version.clone(),
                },
            );
        }
        self.out(now, peer, code, bytes);
        if ban {
            // For members that do not know this node as the leader yet.
            self.send_room_rules_to_all(now);
        }
        Ok(())
    }

    /// Lifts every ban of that id, and every other one of a key that it was banned with.
    pub(super) fn unban(&mut self, now: Time, peer: &PeerId) -> Result<(), CommandError> {
        if !self.is_leader() {
            return Err(CommandError::NotLeader);
        }
        let bans = self.room_rules.bans.iter();
        let banned: Vec<_> = bans.filter(|ban| !ban.lifted).cloned().collect();
        let its_keys: BTreeSet<_> = banned
            .iter()
            .filter(|ban| ban.peer == *peer)
            .map(|ban| ban.key)
            .collect();
        if its_keys.is_empty() {
            return Err(CommandError::NotBanned(peer.clone()));
        }
        let its = banned.into_iter().filter(|ban| its_keys.contains(&ban.key));
        let lifted: Vec<_> = its
            .map(|ban| Ban {
                version: self.next_ban_version(),
                by: Some(self.decider()),
                lifted: true,
                ..ban
            })
            .collect();
        for ban in &lifted {
            let is_known = self.put_on_list(ban.clone(), KickedBy::Myself);
            debug_assert!(is_known, "it was on the list");
        }
        // At once, regardless of the pace of the rules: members that learn of a newcomer must not block it.
        for member in self.membership.ids() {
            self.transmit(&member, Message::Unbanned(lifted.clone()));
        }
        self.send_room_rules_to_all(now);
        Ok(())
    }

    /// Handles the leader's notice that it has lifted bans.
    pub(super) fn unbanned(&mut self, now: Time, from: &PeerId, bans: Vec<Ban>) {
        if bans.len() > MAX_KICKED {
            self.violation(now, from, "a list of lifted bans is longer than allowed");
            return;
        }
        // Other members get it with the rules.
        if self.leader() == Some(from) {
            self.adopt_kicks_of_leader(now, from, bans);
        }
    }

    /// A linked member as the decider of its decisions as leader.
    fn decider_of(&self, leader: &PeerId) -> Option<Decider> {
        let member = self.membership.get(leader)?;
        Some(Decider {
            leader: leader.clone(),
            incarnation: member.incarnation,
        })
    }

    /// Handles the leader's notice of a kick, of a member or of this node.
    pub(super) fn kicked(
        &mut self,
        now: Time,
        from: &PeerId,
        (peer, key): Kicked,
        code: i32,
        bytes: Vec<u8>,
        ban: Option<BanVersion>,
    ) {
        if bytes.len() > MAX_REASON_BYTES {
            self.violation(now, from, "a kick is longer than allowed");
            return;
        }
        if self.leader() != Some(from) {
            // Only the leader may. If this member's room rules then ban this node, this is the reason.
            if peer == self.me {
                self.reason_passed_on = Some((from.clone(), code, bytes));
            }
            return;
        }
        if peer == self.me {
            self.end_room(now, EndReason::Kicked, code, bytes);
            return;
        }
        if let Some(version) = &ban {
            let by = self.kicks.leader_source(&(peer.clone(), key));
            let ban = Ban {
                version: self.bounded_version(version.clone()),
                by: self.decider_of(from),
                ..Ban::new(peer.clone(), key)
            };
            // If the list is full, the ban arrives with the leader's own list.
            let _ = self.put_on_list(ban, by);
        }
        if self.membership.get(&peer).is_some() {
            // This may arrive before the leader's own notice.
            let reason = Message::Kicked {
                peer: peer.clone(),
                key,
                code,
                bytes: bytes.clone(),
                ban,
            };
            self.transmit(&peer, reason);
        }
        self.out(now, &peer, code, bytes);
    }

    /// Ends the session with a kicked peer.
    fn out(&mut self, now: Time, peer: &PeerId, code: i32, bytes: Vec<u8>) {
        // The leader's notice may not have reached it. Sent once, as the last message to it.
        if self.membership.get(peer).is_some() {
            self.transmit(peer, Message::RoomRules(self.room_rules.clone()));
        }
        // A member of the room that this node left does not follow this leader.
        let why = match self.has_moved_lately(now) {
            true => LinkEnd::Moved(Conflict::Banned),
            false => LinkEnd::Kicked,
        };
        self.close(peer, why);
        self.end_session(now, peer, SessionEnd::Kicked { code, bytes });
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
        self.room_rules.set_by = Some(self.decider());
        self.room_rules.max_peers = max_peers;
        self.send_room_rules_to_all(now);
        Ok(())
    }

    pub(super) fn send_room_rules_to_all(&mut self, now: Time) {
        for peer in self.membership.ids() {
            self.send_room_rules_if_any(now, &peer);
        }
    }

    /// Sends a member the room rules if there are any, or if it has received others.
    pub(super) fn send_room_rules_if_any(&mut self, now: Time, peer: &PeerId) {
        if self.room_rules != RoomRules::default() || self.deliveries.contains_key(peer) {
            self.send_room_rules(now, peer);
        }
    }

    /// Sends a member the room rules: now, or the newest ones as soon as its pace allows.
    fn send_room_rules(&mut self, now: Time, peer: &PeerId) {
        let delivery = self.deliveries.entry(peer.clone());
        let delivery = delivery.or_insert_with(|| Delivery {
            pace: room_rules_pace(now),
            is_due: false,
        });
        delivery.is_due = !delivery.pace.take(now);
        if delivery.is_due {
            self.rules_wait = true;
        } else {
            self.transmit(peer, Message::RoomRules(self.room_rules.clone()));
        }
    }

    pub(super) fn room_rules_deadline(&self) -> Option<Time> {
        if !self.rules_wait {
            return None;
        }
        let due = self.deliveries.values().filter(|delivery| delivery.is_due);
        let due = due.map(|delivery| delivery.pace.next());
        let reported = self.rules_of.values().filter(|reported| reported.is_new);
        due.chain(reported.map(|reported| reported.pace.next()))
            .min()
    }

    pub(super) fn room_rules_due(&mut self, now: Time) {
        if !self.rules_wait {
            return;
        }
        for peer in filter_peers(&self.rules_of, |reported| reported.is_new) {
            self.take_room_rules(now, &peer);
        }
        for peer in filter_peers(&self.deliveries, |delivery| delivery.is_due) {
            self.send_room_rules(now, &peer);
        }
        self.rules_wait = self.room_rules_deadline().is_some();
    }

    /// Forgets the room rules state of a peer that has lost its link. After its return it reports its rules anew,
    /// unless it has none.
    pub(super) fn room_rules_unlinked(&mut self, peer: &PeerId) {
        self.deliveries.remove(peer);
        self.rules_of.remove(peer);
    }

    /// Handles a report of the room rules. Reports beyond the pace are delayed; then the newest one counts.
    pub(super) fn room_rules_received(&mut self, now: Time, from: &PeerId, rules: RoomRules) {
        if rules.bans.len() > MAX_KICKED {
            self.violation(now, from, "a list of kicked peers is longer than allowed");
            return;
        }
        self.rules_wait = true;
        match self.rules_of.get_mut(from) {
            Some(reported) => {
                reported.rules = rules;
                reported.is_new = true;
            }
            None => {
                let reported = Reported {
                    rules,
                    is_new: true,
                    pace: room_rules_pace(now),
                };
                self.rules_of.insert(from.clone(), reported);
            }
        }
        self.take_room_rules(now, from);
    }

    fn take_room_rules(&mut self, now: Time, from: &PeerId) {
        let Some(reported) = self.rules_of.get_mut(from) else {
            return;
        };
        if !reported.pace.take(now) {
            return;
        }
        reported.is_new = false;
        let rules = reported.rules.clone();
        if self.leader() == Some(from) {
            self.adopt_limit(&rules);
            self.adopt_kicks_of_leader(now, from, rules.bans);
        } else {
            self.weigh_bans(now);
            self.adopt_reported_rules(now, from, rules);
        }
    }

    /// Handles the report of a member that does not lead, where such reports count.
    fn adopt_reported_rules(&mut self, now: Time, from: &PeerId, rules: RoomRules) {
        if self.config.election.policy.authority != Authority::Anyone || self.is_fixed() {
            return;
        }
        let max_peers = rules.max_peers;
        self.adopt_hearsay(now, from, rules);
        if self.is_leader() && max_peers != self.room_rules.max_peers {
            // It has the limit of a leader that this one does not follow; it needs the present limit, or none.
            self.send_room_rules(now, from);
        }
    }

    /// Shares the room rules after a change of the leader. A former leader may have been lost before all members had
    /// its rules: members send the known ones to the new leader, and that sends its rules to all.
    pub(super) fn share_room_rules(&mut self, now: Time) {
        let Some(leader) = self.leader().cloned() else {
            return;
        };
        if leader == self.me {
            self.leads_since = now;
            let stamp = self.record().stamp.clone();
            self.led_first.get_or_insert(stamp);
            self.enforce_bans(now);
            self.send_room_rules_to_all(now);
            self.readopt_reported_rules(now);
        } else if self.membership.get(&leader).is_some() {
            self.send_room_rules_if_any(now, &leader);
        }
        // Rules that the leader sent before it was known to lead.
        if let Some(reported) = self.rules_of.get_mut(&leader) {
            reported.is_new = false;
            let rules = reported.rules.clone();
            if rules.version > self.room_rules.version {
                self.adopt_limit(&rules);
            }
            self.adopt_kicks_of_leader(now, &leader, rules.bans);
        }
    }

    /// Enforces the bans that members reported: this node leads now.
    fn enforce_bans(&mut self, now: Time) {
        self.kicks.enforced();
        let linked = self.membership.iter();
        let linked = linked.map(|(peer, member)| (peer.clone(), member.key));
        let lost = self.absent.iter();
        let lost = lost.map(|(peer, absent)| (peer.clone(), absent.key));
        let banned = linked
            .chain(lost)
            .filter(|(peer, key)| self.is_kicked(peer, *key));
        for (peer, _) in banned.collect::<Vec<_>>() {
            self.out(now, &peer, 0, Vec::new());
        }
    }

    /// Processes reported rules again: this node leads now. Members that took it for the leader before it led do not
    /// repeat their reports.
    fn readopt_reported_rules(&mut self, now: Time) {
        let reported = self.rules_of.iter();
        let reported = reported.map(|(peer, reported)| (peer.clone(), reported.rules.clone()));
        for (peer, rules) in reported.collect::<Vec<_>>() {
            if self.membership.get(&peer).is_some() && !self.ended {
                self.adopt_reported_rules(now, &peer, rules);
            }
        }
    }

    /// Sets the leader's limit, regardless of the versions that others gave theirs. A version cannot belong to a
    /// leadership that has not begun.
    fn adopt_limit(&mut self, rules: &RoomRules) {
        let (stamp, count) = rules.version.clone();
        let stamp = stamp.min(self.record().stamp.clone());
        self.room_rules.version = (stamp, count);
        self.room_rules.set_by = rules.set_by.clone();
        self.room_rules.max_peers = rules.max_peers;
    }

    /// Removes every peer that the leader has kicked, unless a newer version is known here.
    fn adopt_kicks_of_leader(&mut self, now: Time, leader: &PeerId, mut bans: Vec<Ban>) {
        for ban in &mut bans {
            ban.version = self.bounded_version(ban.version.clone());
        }
        bans.retain(|ban| !self.is_outdated(ban));
        // This node's own ban ends the room, before the departures that the other bans cause.
        let is_mine = |ban: &Ban| ban.peer == self.me || ban.key == self.config.key;
        if bans.iter().any(|ban| !ban.lifted && is_mine(ban)) {
            self.end_room_by_ban(now, leader);
            return;
        }
        for ban in bans {
            let (peer, key, lifted) = (ban.peer.clone(), ban.key, ban.lifted);
            let is_new = !self.is_kicked(&peer, key);
            let by = self.kicks.leader_source(&name_of(&ban));
            if self.put_on_list(ban, by) && is_new && !lifted {
                self.out(now, &peer, 0, Vec::new());
            }
        }
    }

    /// Handles the report of a member that does not lead, the newest entries first.
    fn adopt_hearsay(&mut self, now: Time, from: &PeerId, rules: RoomRules) {
        let mut changed = false;
        if self.is_leader() && self.is_credible(now, from, &rules) {
            self.adopt_limit(&rules);
            changed = true;
        }
        let mut bans = rules.bans;
        bans.retain(|ban| self.may_report(from, &ban.version.0, ban.by.as_ref()));
        // This node's own ban ends the room, before the departures that the other bans cause.
        let is_mine = |ban: &Ban| ban.is_about(&self.me, self.config.key);
        if bans.iter().any(|ban| !ban.lifted && is_mine(ban)) {
            self.end_room_by_ban(now, from);
            return;
        }
        for ban in bans.into_iter().rev() {
            changed |= self.adopt_reported_ban(now, from, ban);
        }
        if !changed {
            return;
        }
        if self.is_leader() {
            self.send_room_rules_to_all(now);
        } else if let Some(leader) = self.leader().cloned()
            && leader != *from
            && self.membership.get(&leader).is_some()
        {
            // The member that had it may have no link with the leader, which sends it to all.
            self.send_room_rules_if_any(now, &leader);
        }
    }

    /// Adopts a ban, or its lifting, that a member may report. Returns whether that changed anything.
    fn adopt_reported_ban(&mut self, now: Time, from: &PeerId, ban: Ban) -> bool {
        let version = self.bounded_version(ban.version.clone());
        let ban = Ban { version, ..ban };
        let known = self.known_ban(&ban);
        if known.is_some_and(|known| !ban.is_newer_than(known) || self.stands(known, &ban)) {
            return false;
        }
        let was_banned = known.map(|known| !known.lifted);
        let has_room = self.kicks.held_for(from) < MAX_HEARSAY;
        let by = match self.is_leader() {
            true => KickedBy::Enforced(from.clone()),
            false => KickedBy::Member(from.clone()),
        };
        if ban.lifted {
            // The lifting of an unknown ban is kept, against others that report the ban.
            let counts = was_banned.is_some() || has_room;
            return counts && self.put_on_list(ban, by) && was_banned != Some(false);
        }
        let (peer, key) = name_of(&ban);
        let is_seen = self.kicks.seen.contains_key(&(peer.clone(), key));
        let counts = has_room && is_seen && !self.is_kicked(&peer, key);
        if !counts || !self.put_on_list(ban, by) {
            return false;
        }
        if self.is_leader() {
            self.out(now, &peer, 0, Vec::new());
        }
        true
    }

    /// Whether an entry stands against a report: it belongs to a leader that is linked and sends changes itself, and
    /// the stamps do not show which leadership is the later one.
    fn stands(&self, known: &Ban, reported: &Ban) -> bool {
        let is_here = |by: &Decider| {
            *by == self.decider() || self.decider_of(&by.leader).as_ref() == Some(by)
        };
        known.version.0 == reported.version.0
            && known.by.as_ref().is_some_and(is_here)
            && known.by != reported.by
    }

    /// Whether a limit may belong to a leader before this one.
    fn is_credible(&self, now: Time, from: &PeerId, rules: &RoomRules) -> bool {
        now.since(self.leads_since) < ADOPTION_WINDOW
            && rules.version > self.room_rules.version
            && self.may_report(from, &rules.version.0, rules.set_by.as_ref())
    }

    /// Whether a member may report a decision: this node knows that `by` led under that stamp, and `by` is the reporter
    /// or has gone away. A linked leader reports its decisions itself. An earlier incarnation of this node has gone
    /// away.
    fn may_report(&self, from: &PeerId, stamp: &Stamp, by: Option<&Decider>) -> bool {
        let Some(by) = by else {
            return false;
        };
        if by.leader == self.me {
            let was_restarted = self.led_first.as_ref() > Some(stamp);
            return was_restarted
                && by.incarnation != self.incarnation
                && self.recent_leaders.has_led(stamp, &self.me);
        }
        match self.membership.get(&by.leader) {
            None => self.recent_leaders.may_have_led_as(stamp, by),
            Some(member) => {
                let is_here = member.incarnation == by.incarnation;
                (by.leader == *from || !is_here) && self.recent_leaders.has_led_as(stamp, by)
            }
        }
    }

    fn end_room_by_ban(&mut self, now: Time, from: &PeerId) {
        let passed_on = self.reason_passed_on.take();
        let passed_on = passed_on.filter(|(member, ..)| member == from);
        let (_, code, bytes) = passed_on.unwrap_or((from.clone(), 0, Vec::new()));
        self.end_room(now, EndReason::Kicked, code, bytes);
    }

    /// Ends the room for this node: it loses all links and gets none.
    pub(super) fn end_room(&mut self, now: Time, why: EndReason, code: i32, bytes: Vec<u8>) {
        if self.announce_end(why, code, bytes) {
            self.empty_room(now);
        }
    }

    /// Notifies the host of the end of its room, before the departures that follow. Returns whether this is the first
    /// notice.
    pub(super) fn announce_end(&mut self, why: EndReason, code: i32, bytes: Vec<u8>) -> bool {
        let is_news = !std::mem::replace(&mut self.ended, true);
        if is_news {
            self.event(Event::RoomEnded { why, code, bytes });
        }
        is_news
    }

    /// Stops the election and ends every session of a room that is over.
    pub(super) fn empty_room(&mut self, now: Time) {
        // It stops leading before it leaves. With a roster that is refused, and leaving does both.
        let refused = self.try_elect(now, Local::SetEligible(false)).err();
        debug_assert!(
            refused.is_none_or(|error| matches!(error, ElectionError::NotSupported { .. }))
        );
        self.elect(now, Local::Leave);
        let mut peers = self.membership.ids();
        peers.extend(self.absent.keys().cloned());
        for peer in peers {
            self.close(&peer, LinkEnd::RoomEnded);
            self.end_session(now, &peer, SessionEnd::RoomOver);
        }
        self.introductions.forget_all();
    }

    pub(super) fn set_eligible(&mut self, now: Time, eligible: bool) -> Result<(), CommandError> {
        if self.is_fixed() {
            return Err(CommandError::FixedHost);
        }
        if let Some(looking) = &mut self.looking {
            looking.eligible = eligible;
            return Ok(());
        }
        if self.config.election.eligible == eligible {
            return Ok(());
        }
        let successor = self.election.successor(&self.view);
        if self.ended {
            self.config.election.eligible = eligible;
            return Ok(()); // no member leads a room that is over
        }
        let counts = eligible && self.config.election.quorum.admits(&self.me);
        self.try_elect(now, Local::SetEligible(counts))?;
        self.config.election.eligible = eligible;
        self.send_standing_to_all(successor);
        Ok(())
    }

    pub(super) fn set_priority(&mut self, now: Time, priority: i32) -> Result<(), CommandError> {
        self.try_elect(now, Local::SetPriority(priority))?;
        self.config.election.priority = priority;
        self.send_standing_to_all(None);
        Ok(())
    }

    fn send_standing_to_all(&mut self, successor: Option<PeerId>) {
        for peer in self.membership.ids() {
            self.transmit(&peer, self.standing_with(successor.clone()));
        }
    }

    /// Sends a newcomer this node's standing. It is not urgent: the newcomer has the standing of the Hello.
    pub(super) fn send_standing_to(&mut self, newcomer: &PeerId) {
        self.transmit_with(newcomer, self.standing_with(None), false);
    }

    fn standing_with(&self, successor: Option<PeerId>) -> Message {
        Message::Standing {
            eligible: self.config.election.eligible,
            priority: self.config.election.priority,
            successor,
        }
    }

    /// Handles a change of a peer's eligibility or priority.
    pub(super) fn standing(
        &mut self,
        now: Time,
        from: &PeerId,
        eligible: bool,
        priority: i32,
        successor: Option<PeerId>,
    ) {
        // A static quorum counts only its roster, regardless of such claims.
        let eligible = eligible && self.config.election.quorum.admits(from);
        let Some(voter) = self.view.voters.get_mut(from) else {
            return;
        };
        voter.priority = priority;
        if self.config.election.policy.host_mode != HostMode::Off {
            return; // eligibility is fixed in such a room
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
