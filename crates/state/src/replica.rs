//! One member's part in the replicated log.
//!
//! The contract: pass one [`Input`] with the time to [`Replica::handle`]; after some of them call [`Replica::flush`], which
//! sends what has become due, then [`Replica::poll_output`] until it returns `None`, and carry the outputs out in this order.
//! Then ask [`Replica::next_deadline`] and pass [`Input::Tick`] at that time at the latest.

mod budgets;
mod contract;
mod delivery;
mod following;
mod leading;
mod leaving;
mod members;
mod opening;
mod peers;
mod requests;
mod snapshots;
mod staging;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use room_core::id::PeerId;
use room_core::time::{Duration, Time};

use crate::ballot::{Ballot, History, MemberId};
use crate::entry::{Entry, Roster};
use crate::laboratory::Rule;
use crate::limits::{MAX_LATE, Options, PART_BYTES, SET_ASIDE_AFTER};
use crate::log::Log;
use crate::tables::Tables;
use crate::wire::{Frame, Tip};

use budgets::WaitBudgets;
pub use contract::{
    Input, Linked, Output, Quorum, Saved, Settings, SnapshotError, SubmitError, Violation,
};
use delivery::Delivery;
use leading::Leading;
use leaving::Leaving;
use opening::Opening;
use peers::Peer;
use requests::OwnRequests;
use snapshots::Snapshots;
use staging::Staging;

/// One member's part in the replicated log; see the module's text.
#[derive(Debug, Clone)]
pub struct Replica {
    me: MemberId,
    settings: Settings,
    log: Log,
    /// The ballot whose log this member has.
    adopted: Option<Ballot>,
    /// The highest ballot that this member has answered, followed or gathered.
    promised: Option<Ballot>,
    /// Entries up to this index are confirmed.
    confirmed: u64,
    /// The log of a higher ballot, until it is complete.
    staging: Option<Staging>,
    role: Role,
    /// The leader that the election names.
    leader: Option<MemberId>,
    /// The history that this process began without any log.
    began: Option<History>,
    /// Set once this member leaves the room.
    leaving: Option<Leaving>,
    /// The linked members.
    peers: BTreeMap<PeerId, Peer>,
    /// How long openings may still wait for each peer.
    wait_budgets: WaitBudgets,
    /// Peers that are being dialled.
    dialled: BTreeSet<PeerId>,
    /// Whether a frame that the leader has sent waits for an answer, until the turn ends.
    have_due: bool,
    recovery: Recovery,
    requests: OwnRequests,
    delivery: Delivery,
    snapshots: Snapshots,
    /// The state on disk.
    saved: Saved,
    /// The largest number of a ballot that this member has seen.
    seen_number: u64,
    /// Time of the last input or [`Replica::flush`]: deadlines up to then have been taken into account.
    looked_at: Time,
    /// When it ran again after it had stood still while it waited for its members.
    woke_at: Option<Time>,
    rng: ChaCha8Rng,
    outputs: VecDeque<Output>,
}

/// This member's part in the log.
#[derive(Debug, Clone)]
enum Role {
    /// It adopts what leaders send.
    Following,
    /// The election has named it; it gathers the newest log.
    Opening(Opening),
    /// It appends.
    Leading(Leading),
}

/// Whether a static voter has lost what it held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recovery {
    /// It holds what it answered for.
    Whole,
    /// It counts for no majority until it has adopted everything up to the end that its first leader named, if one has.
    Until(Option<u64>),
}

impl Replica {
    /// A member without entries. `saved` is the last [`Output::Persist`] of a former process of a static voter. `seed`
    /// determines the numbers of the histories that it begins.
    pub fn new(me: MemberId, settings: Settings, saved: Saved, seed: u64) -> Self {
        let recovery = match saved.has_held {
            true => Recovery::Until(None),
            false => Recovery::Whole,
        };
        Self {
            seen_number: saved
                .promised
                .as_ref()
                .map_or(0, |promised| promised.number),
            promised: saved.promised.clone(),
            me,
            settings,
            log: Log::default(),
            adopted: None,
            confirmed: 0,
            staging: None,
            role: Role::Following,
            leader: None,
            began: None,
            leaving: None,
            peers: BTreeMap::new(),
            wait_budgets: WaitBudgets::default(),
            dialled: BTreeSet::new(),
            have_due: false,
            recovery,
            requests: OwnRequests::default(),
            delivery: Delivery::default(),
            snapshots: Snapshots::default(),
            saved,
            looked_at: Time::ZERO,
            woke_at: None,
            rng: ChaCha8Rng::seed_from_u64(seed),
            outputs: VecDeque::new(),
        }
    }

    /// Takes one input.
    ///
    /// # Errors
    /// [`Violation`] if a peer broke the protocol: its link should end. Entries before the fault may have been taken.
    pub fn handle(&mut self, now: Time, input: Input) -> Result<(), Violation> {
        self.look(now);
        match input {
            Input::Linked(linked) => self.link(now, linked),
            Input::Lost(peer) => self.lose(now, &peer),
            Input::Gone(member) => self.depart(&member),
            Input::Dialled(peers) => self.dialled = peers,
            Input::Eligible(peer, is_eligible) => self.set_eligible(&peer, is_eligible),
            Input::Leader(leader) => self.follow(now, leader),
            Input::Leave { successor } => self.leave(now, successor),
            Input::Frame {
                from,
                frame,
                largest_number,
            } => self.receive(now, &from, frame, largest_number)?,
            Input::Tick => {}
        }
        self.progress(now);
        self.end_leaving(now);
        Ok(())
    }

    /// Sends what has become due since the last call: answers, entries, requests. Call it at the end of a turn.
    pub fn flush(&mut self, now: Time) {
        self.look(now);
        self.progress(now);
        self.send_requests();
        self.feed_all(now);
        self.send_have();
        if self.staging.is_none() && !matches!(self.role, Role::Opening(_)) {
            // Staged entries follow one of these.
            let dropped = self.log.trim(self.confirmed, &self.settings.options);
            self.keep_beside(dropped);
        }
    }

    /// A process that stood still has not read what its members sent meanwhile. That time does not count as their silence: a
    /// leader would open again, or fork, before it reads that they went on.
    fn look(&mut self, now: Time) {
        let due = self.looked_at + self.settings.heartbeat_interval;
        self.looked_at = now;
        let late = now.since(due);
        let has_waited = self.may_fork(now);
        if late <= MAX_LATE || !self.waits_for_members() {
            self.woke_at.take_if(|_| has_waited);
            return;
        }
        self.woke_at = match self.woke_at {
            None => Some(now),
            waiting if !has_waited => waiting,
            // It is late again after the wait: on such a machine it would wait for ever.
            Some(_) => None,
        };
        match &mut self.role {
            Role::Following => {}
            Role::Opening(opening) => opening.stood_still(late, now),
            Role::Leading(leading) => leading.stood_still(late, now),
        }
    }

    /// Whether this leader looks at its log once in each heartbeat interval.
    fn waits_for_members(&self) -> bool {
        match self.role {
            Role::Following => false,
            Role::Opening(_) => true,
            Role::Leading(_) => self.opens_again() && self.confirmed < self.log.index(),
        }
    }

    /// Whether it may go on without a majority: members that lost it while it stood still have had the time to come back.
    fn may_fork(&self, now: Time) -> bool {
        let has_waited = |woke| now.since(woke) >= SET_ASIDE_AFTER;
        self.woke_at.is_none_or(has_waited)
    }

    /// The next output.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Latest time for the next [`Input::Tick`].
    pub fn next_deadline(&self) -> Option<Time> {
        let of_role = match &self.role {
            Role::Following => None,
            Role::Opening(opening) => Some(opening.next_deadline(self)),
            Role::Leading(leading) => leading.next_deadline(self),
        };
        let tables = self.peers.values().filter_map(Peer::next_tables);
        let leaving = self.leaving.as_ref().and_then(Leaving::next_deadline);
        let snapshots = self.snapshots.next_deadline();
        let others = tables.chain(leaving).chain(snapshots);
        of_role.into_iter().chain(others).min()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// This member.
    pub fn me(&self) -> &MemberId {
        &self.me
    }

    /// Entries up to this index are confirmed.
    pub fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// The index of the last entry.
    pub fn index(&self) -> u64 {
        self.log.index()
    }

    /// The history of the log; `None` without entries.
    pub fn history(&self) -> Option<History> {
        self.log.history()
    }

    /// The ballot whose log this member has.
    pub fn adopted(&self) -> Option<&Ballot> {
        self.adopted.as_ref()
    }

    /// The entry at `index`, if the tail has it.
    pub fn entry(&self, index: u64) -> Option<&Entry> {
        self.log.entry(index)
    }

    /// The state after the last entry, confirmed or not.
    pub fn tables(&self) -> &Tables {
        self.log.end()
    }

    /// The state before the tail.
    pub fn base(&self) -> &Tables {
        self.log.base()
    }

    /// The roster at the last entry.
    pub fn roster(&self) -> &Roster {
        self.log.end().roster()
    }

    /// The ballot that is open, if this member leads.
    pub fn leads(&self) -> Option<&Ballot> {
        match &self.role {
            Role::Leading(leading) => Some(leading.ballot()),
            Role::Following | Role::Opening(_) => None,
        }
    }

    /// The ballot that this member gathers, if it does.
    pub fn gathers(&self) -> Option<&Ballot> {
        match &self.role {
            Role::Opening(opening) => Some(opening.ballot()),
            Role::Following | Role::Leading(_) => None,
        }
    }

    /// Whether this is a static voter that does not count yet.
    pub fn is_recovering(&self) -> bool {
        self.recovery != Recovery::Whole
    }

    /// Number of this member's requests whose results its host has not taken.
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    /// Upper estimate of the memory, in bytes.
    pub fn bytes(&self) -> usize {
        let staged = self.staging.as_ref().map_or(0, Staging::bytes);
        let waiting: usize = self.peers.values().map(Peer::bytes).sum();
        let own = self.requests.bytes() + self.delivery.bytes() + self.snapshots.bytes();
        self.log.bytes() + staged + waiting + own
    }

    /// Takes what an input has made possible, until nothing more follows.
    fn progress(&mut self, now: Time) {
        loop {
            let promised = self.promised.clone();
            self.progress_opening(now);
            self.lead_on(now);
            // A leader may open again at once, and alone it has nothing to wait for.
            if self.promised == promised {
                break;
            }
        }
        self.seek_snapshot(now);
        self.offer_snapshot(now);
    }

    fn send(&mut self, to: &PeerId, frame: Frame) {
        let to = to.clone();
        self.outputs.push_back(Output::Send { to, frame });
    }

    fn random_history(&mut self) -> History {
        // 0 would be no history to a host, 1 is that of static rooms.
        History(self.rng.random_range(2..History::END))
    }

    /// The members that a majority counts, of the log with this roster.
    fn is_majority(&self, roster: &Roster, have: impl Fn(&MemberId) -> bool) -> bool {
        match &self.settings.quorum {
            Quorum::Dynamic => {
                let count = roster.iter().filter(|member| have(member)).count();
                2 * count > roster.len()
            }
            Quorum::Static(voters) => {
                let is_held =
                    |voter: &&PeerId| self.process_of(voter).is_some_and(|member| have(&member));
                2 * voters.iter().filter(is_held).count() > voters.len()
            }
        }
    }

    /// The process of that name that this one is or is linked with.
    fn process_of(&self, peer: &PeerId) -> Option<MemberId> {
        match self.peers.get(peer) {
            _ if *peer == self.me.peer => Some(self.me.clone()),
            linked => linked.map(|peer| peer.member().clone()),
        }
    }

    fn is_static(&self) -> bool {
        matches!(self.settings.quorum, Quorum::Static(_))
    }

    /// Whether `member` is the one that this member follows, or is.
    fn follows(&self, member: &MemberId) -> bool {
        self.leader.as_ref() == Some(member)
    }

    /// Whether this member follows the linked peer of that name.
    fn follows_peer(&self, peer: &PeerId) -> bool {
        let peer = self.peers.get(peer);
        peer.is_some_and(|peer| self.follows(peer.member()))
    }

    fn tip(&self, to: &PeerId, answers: Option<Ballot>) -> Tip {
        let end = self.log.end();
        Tip {
            answers,
            follows: self.follows_peer(to),
            history: end.history(),
            last: end.last().cloned(),
            is_used: end.is_used(),
            oldest: self.log.base_index() + 1,
            openings: end.openings().cloned().collect(),
            roster: end.roster().clone(),
            is_recovering: self.is_recovering(),
        }
    }
}

impl Replica {
    /// Whether the rule is kept.
    #[cfg(feature = "laboratory")]
    pub(crate) fn keeps(&self, rule: Rule) -> bool {
        !self.settings.switches.broken.contains(&rule)
    }

    /// Whether the rule is kept: all are.
    #[cfg(not(feature = "laboratory"))]
    pub(crate) const fn keeps(&self, _: Rule) -> bool {
        true
    }

    /// A history that no process has begun: it is random, or that of the ballot.
    #[cfg(feature = "laboratory")]
    pub(crate) fn draw_history(&mut self, ballot: &Ballot) -> History {
        match self.settings.switches.histories_by_ballot {
            Some(by_ballot) => by_ballot(ballot),
            None => self.random_history(),
        }
    }

    /// A history that no process has begun: it is random.
    #[cfg(not(feature = "laboratory"))]
    pub(crate) fn draw_history(&mut self, _: &Ballot) -> History {
        self.random_history()
    }

    /// Most entries of a frame.
    #[cfg(feature = "laboratory")]
    pub(crate) fn entries_of_a_frame(&self) -> usize {
        self.settings()
            .switches
            .entries_of_a_frame
            .unwrap_or(usize::MAX)
    }

    /// Most entries of a frame: their bytes limit them.
    #[cfg(not(feature = "laboratory"))]
    pub(crate) const fn entries_of_a_frame(&self) -> usize {
        usize::MAX
    }

    /// Most bytes of a snapshot's part.
    #[cfg(feature = "laboratory")]
    pub(crate) fn bytes_of_a_part(&self) -> usize {
        self.settings()
            .switches
            .bytes_of_a_part
            .unwrap_or(PART_BYTES)
    }

    /// Most bytes of a snapshot's part.
    #[cfg(not(feature = "laboratory"))]
    pub(crate) const fn bytes_of_a_part(&self) -> usize {
        PART_BYTES
    }
}
