//! A leader appends entries, feeds them to the members, and counts who has adopted them.

use super::*;
use crate::ballot::Place;
use crate::entry::Contents;
use crate::laboratory::Rule;
use crate::limits::{MAX_UNCONFIRMED, MAX_UNCONFIRMED_BYTES, MAX_UNDER_WAY};
use crate::wire::Piece;
use opening::Terms;
use peers::{Cursor, Pieces};

/// Bytes of entries in one frame, at most; the frame has room for its other fields.
const MAX_ENTRIES_BYTES: usize = 60 * 1024;
/// Bytes of encoded tables in one frame.
const PIECE_BYTES: usize = 60 * 1024;
/// A leader's state; gone when it stops leading.
#[derive(Debug, Clone)]
pub(super) struct Leading {
    ballot: Ballot,
    pub(super) open_index: u64,
    /// The entries' time at a moment of this leader's clock.
    clock: (u64, Time),
    /// When an entry was confirmed last, or the first one began to wait.
    progressed_at: Time,
    /// The last entry that changes the roster.
    pub(super) roster_index: u64,
    /// Members that have left, and whose departure is not in the log yet.
    pub(super) gone: BTreeSet<MemberId>,
    /// Members without a link, and when they have left.
    pub(super) held: BTreeMap<MemberId, Time>,
    /// Bytes of the unconfirmed entries, by index.
    unconfirmed: VecDeque<usize>,
    unconfirmed_bytes: usize,
    /// The author whose request was taken last.
    pub(super) last_author: Option<PeerId>,
}

impl Leading {
    pub(super) fn ballot(&self) -> &Ballot {
        &self.ballot
    }

    pub(super) fn next_deadline(&self, replica: &Replica) -> Option<Time> {
        let stuck = replica.waits_for_members().then(|| {
            let again = replica.looked_at + replica.settings.heartbeat_interval;
            again.min(self.progressed_at + replica.settings.stuck_after)
        });
        let held = self.held.values().min().copied();
        let wanted = replica.wanted_openings();
        stuck.into_iter().chain(held).chain(wanted).min()
    }

    /// This process stood still for `time`, which does not count.
    pub(super) fn stood_still(&mut self, time: Duration, now: Time) {
        self.progressed_at = (self.progressed_at + time).min(now);
    }

    /// Whether a request has room.
    pub(super) fn has_room(&self) -> bool {
        (self.unconfirmed.len() as u64) < MAX_UNCONFIRMED
            && self.unconfirmed_bytes < MAX_UNCONFIRMED_BYTES
    }

    fn note_confirmed(&mut self, now: Time, left: u64) {
        while self.unconfirmed.len() as u64 > left
            && let Some(bytes) = self.unconfirmed.pop_front()
        {
            self.unconfirmed_bytes -= bytes;
            self.progressed_at = now;
        }
    }
}

impl Replica {
    pub(super) fn begin_to_lead(&mut self, now: Time, ballot: Ballot, terms: Terms) {
        let unconfirmed: VecDeque<_> = (self.confirmed + 1..=self.log.index())
            .filter_map(|index| self.log.entry(index).map(Entry::bytes))
            .collect();
        let open_index = self.log.index() + 1;
        let here = self.log.end().members();
        let held = here.filter(|member| **member != self.me && !self.is_linked(member));
        let held_until = now + self.settings.member_hold;
        let leading = Leading {
            ballot: ballot.clone(),
            open_index,
            clock: (self.log.end().time_ms(), now),
            progressed_at: now,
            roster_index: open_index,
            gone: BTreeSet::new(),
            held: held.map(|member| (member.clone(), held_until)).collect(),
            unconfirmed_bytes: unconfirmed.iter().sum(),
            unconfirmed,
            last_author: None,
        };
        for peer in self.peers.values_mut() {
            peer.begin_ballot();
        }
        self.staging = None;
        self.adopted = Some(ballot);
        self.recovery = Recovery::Whole;
        self.role = Role::Leading(leading);
        self.append(now, terms.contents());
        self.refuse_conditions();
        self.persist();
        self.requests.send_again();
        let tips = self.peers.iter();
        let tips = tips.filter_map(|(peer, linked)| Some((peer.clone(), linked.tip.clone()?)));
        for (peer, tip) in tips.collect::<Vec<_>>() {
            self.feed_or_open(&peer, &tip);
        }
    }

    pub(super) fn append(&mut self, now: Time, contents: Contents) {
        let Role::Leading(leading) = &mut self.role else {
            return;
        };
        let (time_ms, since) = leading.clock;
        let advance = u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX);
        let entry = Entry {
            ballot: leading.ballot.clone(),
            time_ms: time_ms.saturating_add(advance),
            contents,
        };
        if leading.unconfirmed.is_empty() {
            leading.progressed_at = now;
        }
        leading.unconfirmed.push_back(entry.bytes());
        leading.unconfirmed_bytes += entry.bytes();
        self.append_entry(entry);
    }

    /// A leader takes requests, changes members and confirms, until nothing more follows.
    pub(super) fn lead_on(&mut self, now: Time) {
        loop {
            if !matches!(self.role, Role::Leading(_)) {
                return;
            }
            self.end_holds(now);
            let before = (self.log.index(), self.confirmed);
            if !self.change_members(now) && self.takes_requests() {
                self.take_waiting_requests(now);
            }
            self.advance(now);
            if (self.log.index(), self.confirmed) == before {
                break;
            }
        }
        self.open_if_wanted(now);
        self.open_if_stuck(now);
    }

    /// Confirms what a majority of the roster has adopted.
    fn advance(&mut self, now: Time) {
        let Role::Leading(leading) = &self.role else {
            return;
        };
        let held = self.majority_index();
        if held >= leading.open_index {
            self.confirmed = self.confirmed.max(held);
        }
        let left = self.log.index() - self.confirmed;
        let Role::Leading(leading) = &mut self.role else {
            return;
        };
        leading.note_confirmed(now, left);
    }

    /// The last index that a majority of the roster has.
    fn majority_index(&self) -> u64 {
        let held = self.held().into_iter();
        let mut held: Vec<_> = held.map(|(_, index)| index).collect();
        held.sort_unstable_by(|one, other| other.cmp(one));
        held.get(held.len() / 2).copied().unwrap_or(0)
    }

    /// The last index that each member has which counts.
    pub(super) fn held(&self) -> Vec<(&PeerId, u64)> {
        match &self.settings.quorum {
            Quorum::Dynamic => {
                let held = |member: &MemberId| self.held_by(member);
                let roster = self.roster().iter();
                roster.map(|member| (&member.peer, held(member))).collect()
            }
            Quorum::Static(voters) => {
                let held = |voter| {
                    let process = self.process_of(voter);
                    process.map_or(0, |member| self.held_by(&member))
                };
                voters.iter().map(|voter| (voter, held(voter))).collect()
            }
        }
    }

    fn held_by(&self, member: &MemberId) -> u64 {
        match self.peers.get(&member.peer) {
            _ if *member == self.me => self.log.index(),
            Some(peer) if peer.member() == member || !self.keeps(Rule::CountByProcess) => peer.have,
            _ => 0,
        }
    }

    pub(super) fn take_have(
        &mut self,
        from: &PeerId,
        ballot: &Ballot,
        index: u64,
        is_recovering: bool,
    ) -> Result<(), Violation> {
        let is_tagged = self.keeps(Rule::TaggedAnswers);
        let (Role::Leading(leading), Some(peer)) = (&self.role, self.peers.get_mut(from)) else {
            return Ok(());
        };
        if *ballot != leading.ballot && is_tagged {
            return Ok(());
        }
        if index > self.log.index() {
            return Err(Violation::Have);
        }
        peer.note_arrived(index);
        if !is_recovering {
            peer.have = peer.have.max(index);
        }
        peer.is_fed = true;
        Ok(())
    }

    pub(super) fn take_staged(&mut self, from: &PeerId, ballot: &Ballot, index: u64) {
        if let (Role::Leading(leading), Some(peer)) = (&self.role, self.peers.get_mut(from))
            && *ballot == leading.ballot
        {
            peer.note_arrived(index);
        }
    }

    pub(super) fn take_tip(&mut self, now: Time, from: &PeerId, tip: Tip) {
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        let member = peer.member().clone();
        peer.tip = Some(tip.clone());
        if let Some(last) = &tip.last {
            self.seen_number = self.seen_number.max(last.ballot.number);
        }
        self.take_answer(now, &member, &tip);
        if !matches!(self.role, Role::Leading(_)) {
            return;
        }
        self.feed_or_open(from, &tip);
        self.open_if_wanted(now);
    }

    /// Feeds a member what it lacks, or wants to open again because of what it has.
    fn feed_or_open(&mut self, from: &PeerId, tip: &Tip) {
        let calls_for_opening = self.calls_for_opening(tip);
        self.want_opening(from, calls_for_opening);
        if !calls_for_opening {
            self.feed_from(from, tip);
        }
    }

    /// Whether a follower shows that the log should be opened with what it has.
    fn calls_for_opening(&self, tip: &Tip) -> bool {
        let Role::Leading(leading) = &self.role else {
            return false;
        };
        // In a static room no other history than the leader's goes on.
        let is_other = !self.is_static() && tip.history.is_some();
        let is_other = is_other && tip.history != self.log.history();
        let is_higher = tip
            .last
            .as_ref()
            .is_some_and(|last| last.ballot > leading.ballot);
        let has_answered = tip.answers.as_ref() == Some(&leading.ballot);
        tip.follows && !has_answered && (is_other || is_higher)
    }

    /// A member has promised a higher ballot.
    pub(super) fn fall_behind(&mut self, now: Time, from: &PeerId, number: u64) {
        self.seen_number = self.seen_number.max(number);
        let own = match &self.role {
            Role::Following => return,
            Role::Opening(opening) => opening.ballot(),
            Role::Leading(leading) => leading.ballot(),
        };
        if number < own.number {
            return;
        }
        self.want_opening(from, true);
        self.open_if_wanted(now);
    }

    fn want_opening(&mut self, from: &PeerId, wants: bool) {
        if let Some(peer) = self.peers.get_mut(from) {
            peer.wants_opening = wants;
        }
    }

    /// Opens again, in place, because of what members have shown. One member cannot do that all the time.
    fn open_if_wanted(&mut self, now: Time) {
        if !self.wanted_openings().any(|at| now >= at) {
            return;
        }
        for (name, peer) in &mut self.peers {
            if std::mem::take(&mut peer.wants_opening) {
                self.wait_budgets.note_opening(now, name);
            }
        }
        self.start_opening(now);
    }

    /// When the members that want another opening may cause it.
    fn wanted_openings(&self) -> impl Iterator<Item = Time> {
        let wanting = self.peers.iter().filter(|(_, peer)| peer.wants_opening);
        wanting.map(|(name, _)| self.wait_budgets.next_opening(name))
    }

    /// Whether this leader opens again when it confirms nothing: a dynamic one that stays.
    pub(super) fn opens_again(&self) -> bool {
        !self.is_static() && !self.is_leaving()
    }

    /// A dynamic leader that confirms nothing opens again, and goes on without the lost members.
    fn open_if_stuck(&mut self, now: Time) {
        let Role::Leading(leading) = &self.role else {
            return;
        };
        let is_stuck = now.since(leading.progressed_at) >= self.settings.stuck_after;
        if is_stuck && self.waits_for_members() {
            self.start_opening(now);
        }
    }

    /// Feeds a member from the common prefix of both logs on.
    pub(super) fn feed_from(&mut self, peer: &PeerId, tip: &Tip) {
        let is_other = tip.history.is_some() && tip.history != self.log.history();
        let Role::Leading(leading) = &self.role else {
            return;
        };
        let takes = !is_other || self.is_static() || tip.answers.as_ref() == Some(leading.ballot());
        let cursor = match takes {
            true => self.cursor_for(tip),
            false => Cursor::Unknown,
        };
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.restart(cursor);
        }
    }

    /// The next frame for a member with this tip.
    pub(super) fn cursor_for(&self, tip: &Tip) -> Cursor {
        let shared = self.log.common_prefix(tip);
        let reachable = self.log.base_index().max(tip.oldest.saturating_sub(1));
        match shared < reachable {
            true => self.tables_cursor(),
            false => Cursor::At(shared + 1),
        }
    }

    fn tables_cursor(&self) -> Cursor {
        let base = self.log.base();
        match base.last() {
            // The whole log is in the tail.
            None => Cursor::At(1),
            Some(last) => {
                let bytes = postcard::to_allocvec(base).unwrap_or_default().into();
                Cursor::Tables(Pieces {
                    last: last.clone(),
                    bytes,
                })
            }
        }
    }

    /// Sends the members what they lack, as far as it may be under way.
    pub(super) fn feed_all(&mut self, now: Time) {
        let names: Vec<_> = self.peers.keys().cloned().collect();
        for name in names {
            while self.feed_one(now, &name) {}
        }
    }

    /// Sends a member one frame; `false` if it needs none, or must answer first.
    fn feed_one(&mut self, now: Time, name: &PeerId) -> bool {
        let Some(ballot) = self.fed_ballot(name) else {
            return false;
        };
        let Some(peer) = self.peers.get(name) else {
            return false;
        };
        match peer.cursor.clone() {
            Cursor::Unknown => false,
            Cursor::Tables(pieces) => {
                let is_due = peer.next_tables().is_some_and(|at| now >= at);
                if is_due {
                    self.send_tables(name, &ballot, pieces);
                    self.note_tables(now, name);
                }
                is_due
            }
            Cursor::At(next) if next <= self.log.base_index() => {
                let cursor = self.tables_cursor();
                self.restart(name, cursor);
                true
            }
            Cursor::At(next) => self.send_entries(name, ballot, next),
        }
    }

    /// The ballot under which this member sends its log to that one: as leader, or to a leader that fetches it.
    fn fed_ballot(&self, name: &PeerId) -> Option<Ballot> {
        match &self.role {
            Role::Leading(leading) => Some(leading.ballot.clone()),
            Role::Opening(_) => None,
            Role::Following => {
                let fetches = self.peers.get(name)?.fetches.clone();
                let fetches = fetches.map(|(ballot, _)| ballot);
                let is_gathered = |ballot: &Ballot| {
                    self.promised.as_ref() == Some(ballot) && self.adopted.as_ref() != Some(ballot)
                };
                fetches.filter(is_gathered)
            }
        }
    }

    fn note_tables(&mut self, now: Time, name: &PeerId) {
        if let Some(peer) = self.peers.get_mut(name) {
            peer.note_tables(now);
        }
    }

    fn restart(&mut self, name: &PeerId, cursor: Cursor) {
        if let Some(peer) = self.peers.get_mut(name) {
            peer.restart(cursor);
        }
    }

    fn send_tables(&mut self, name: &PeerId, ballot: &Ballot, pieces: Pieces) {
        let total = pieces.bytes.len();
        let index = pieces.last.index;
        for offset in (0..total).step_by(PIECE_BYTES) {
            let end = total.min(offset + PIECE_BYTES);
            let piece = Piece {
                index,
                total: u32::try_from(total).unwrap_or(u32::MAX),
                offset: u32::try_from(offset).unwrap_or(u32::MAX),
                bytes: pieces.bytes.slice(offset..end),
            };
            let ballot = ballot.clone();
            self.send(name, Frame::Tables { ballot, piece });
        }
        self.restart(name, Cursor::At(index + 1));
    }

    fn send_entries(&mut self, name: &PeerId, ballot: Ballot, next: u64) -> bool {
        let leads = matches!(self.role, Role::Leading(_));
        let Some(peer) = self.peers.get(name) else {
            return false;
        };
        let has_news = next <= self.log.index() || (leads && peer.confirmed_sent < self.confirmed);
        if !has_news || peer.under_way_bytes() >= MAX_UNDER_WAY {
            return false;
        }
        let (entries, bytes) = self.batch(next);
        let previous = self.log.place(next - 1);
        let end = next + entries.len() as u64;
        let confirmed = self.confirmed;
        let frame = match leads {
            true => Frame::Append {
                ballot,
                previous,
                confirmed,
                end: self.log.index(),
                entries,
            },
            false => Frame::Entries {
                ballot,
                previous,
                entries,
            },
        };
        self.send(name, frame);
        if let Some(peer) = self.peers.get_mut(name) {
            peer.cursor = Cursor::At(end);
            peer.confirmed_sent = confirmed;
            if bytes > 0 {
                peer.note_sent(end - 1, bytes);
            }
        }
        true
    }

    /// Entries from `next` on that fit into one frame.
    fn batch(&self, next: u64) -> (Vec<Entry>, usize) {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let mut index = next;
        while let Some(entry) = self.log.entry(index)
            && entries.len() < self.entries_of_a_frame()
            && (entries.is_empty() || bytes + entry.bytes() <= MAX_ENTRIES_BYTES)
        {
            bytes += entry.bytes();
            entries.push(entry.clone());
            index += 1;
        }
        (entries, bytes)
    }

    /// A leader that gathers takes this member's log.
    pub(super) fn answer_fetch(&mut self, from: &PeerId, ballot: Ballot, previous: Option<Place>) {
        let has_promised = self.promised.as_ref() == Some(&ballot);
        let Some(peer) = self.peers.get_mut(from).filter(|_| has_promised) else {
            return;
        };
        let arrived = previous.as_ref().map_or(0, |place| place.index);
        match &mut peer.fetches {
            Some((fetches, before)) if *fetches == ballot && arrived > *before => {
                *before = arrived;
                return peer.note_arrived(arrived);
            }
            // The first question, or one that begins anew: the leader fetched another log meanwhile.
            fetches => *fetches = Some((ballot, arrived)),
        }
        let cursor = match &previous {
            place if self.log.reaches(place.as_ref()) => {
                Cursor::At(place.as_ref().map_or(1, |place| place.index + 1))
            }
            _ => self.tables_cursor(),
        };
        self.restart(from, cursor);
    }
}
