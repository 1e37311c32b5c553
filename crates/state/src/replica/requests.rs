//! Requests of this member's host on their way into the log; and, at a leader, the requests of all members.

use super::*;
use crate::entry::{Contents, Request};
use crate::event::Outcome;
use crate::laboratory::Rule;
use crate::limits::{
    MAX_FRAME_BYTES, MAX_INDEX, MAX_OPEN_BYTES, MAX_OPEN_REQUESTS, ROW_LIFETIME_MS,
};
use crate::wire::Numbered;

/// Bytes of requests in one frame, at most; the frame has room for its ballot.
const MAX_BATCH_BYTES: usize = MAX_FRAME_BYTES - 4 * 1024;

/// This member's requests until its host has taken their results.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnRequests {
    open: VecDeque<Open>,
    bytes: usize,
    last_number: u64,
    /// The last number that the present leader was sent.
    sent: u64,
    /// The last number that any leader was sent.
    ever_sent: u64,
    /// Requests that an entry with a higher number has passed.
    passed: u64,
}

/// A request whose result the host has not taken.
#[derive(Debug, Clone)]
struct Open {
    numbered: Numbered,
    /// The history whose state its host had seen.
    seen: Option<History>,
    /// The result, if it does not go to the leader any more. An entry that has the request all the same decides.
    verdict: Option<Outcome>,
}

impl OwnRequests {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All open requests go to the leader again.
    pub(super) fn send_again(&mut self) {
        self.sent = 0;
    }

    fn note_sent(&mut self, number: u64) {
        self.sent = number;
        self.ever_sent = self.ever_sent.max(number);
    }

    /// The host takes its result; `false` if it has done so before.
    pub(super) fn close(&mut self, number: u64) -> bool {
        let at = self.open.binary_search_by_key(&number, Open::number);
        let open = at.ok().and_then(|at| self.open.remove(at));
        if let Some(open) = &open {
            self.bytes -= open.numbered.request.bytes();
        }
        open.is_some()
    }

    /// Whether a request has a verdict, or a number that the host has come past.
    pub(super) fn has_verdicts(&self, row: u64) -> bool {
        let decides = |open: &Open| open.verdict.is_some() || open.number() <= row;
        self.open.iter().any(decides)
    }

    /// Closes the requests with a verdict whose entries are not ahead: the host is at the author's row `row`, and the log ends
    /// with `last`. An entry with a higher number has passed the others up to `row`: only a member that lies about the log makes
    /// such an entry.
    pub(super) fn take_verdicts(&mut self, row: u64, last: u64) -> Vec<(u64, Outcome)> {
        let is_passed = |open: &&Open| open.number() <= row && open.verdict.is_none();
        self.passed += self.open.iter().filter(is_passed).count() as u64;
        self.close_where(|open| match open.number() {
            number if number <= row => open.verdict.or(Some(Outcome::OutcomeUnknown)),
            number if number <= last => None,
            _ => open.verdict,
        })
    }

    /// Closes the requests up to `row`, the author's last number before the tail, whose entries no host receives any more.
    pub(super) fn take_up_to(&mut self, row: u64) -> Vec<(u64, Outcome)> {
        let outcome = |open: &Open| match (&open.numbered.request, open.verdict) {
            (Request::Action { .. }, None) => Outcome::Ok,
            (Request::Properties(_), None) | (_, Some(_)) => Outcome::OutcomeUnknown,
        };
        self.close_where(|open| (open.number() <= row).then(|| outcome(open)))
    }

    fn close_where(&mut self, outcome: impl Fn(&Open) -> Option<Outcome>) -> Vec<(u64, Outcome)> {
        let outcomes = self.open.iter();
        let outcomes = outcomes.filter_map(|open| Some((open.number(), outcome(open)?)));
        let outcomes: Vec<_> = outcomes.collect();
        for (number, _) in &outcomes {
            self.close(*number);
        }
        outcomes
    }

    /// No log shows any more what became of the requests that were sent.
    fn lose_track(&mut self) {
        let sent = self.open.iter_mut();
        for open in sent.filter(|open| open.number() <= self.ever_sent) {
            open.verdict.get_or_insert(Outcome::OutcomeUnknown);
        }
    }

    /// Another history goes on. A compare-and-set that its host made in this one's stead is in conflict with it: the version
    /// that it expects may belong to another value here. Requests up to `row` are in the log.
    pub(super) fn refuse_conditions(&mut self, history: Option<History>, row: u64) {
        for open in &mut self.open {
            let is_other = open.seen != history && open.numbered.request.reads();
            if is_other && open.number() > row {
                open.verdict.get_or_insert(Outcome::Conflict);
            }
        }
    }

    /// The requests above a number that go to the leader.
    fn after(&self, number: u64) -> impl Iterator<Item = &Numbered> {
        let goes = move |open: &&Open| open.number() > number && open.verdict.is_none();
        self.open.iter().filter(goes).map(|open| &open.numbered)
    }
}

impl Open {
    fn number(&self) -> u64 {
        self.numbered.number
    }
}

impl Replica {
    /// Takes a request of the host; one ActionResult has its number. Numbers rise and never change.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing has changed then.
    pub fn submit(&mut self, request: Request) -> Result<u64, SubmitError> {
        request.check()?;
        let bytes = self.requests.bytes + request.bytes();
        let requests = self.requests.len() + 1;
        if requests > MAX_OPEN_REQUESTS || bytes > MAX_OPEN_BYTES {
            return Err(SubmitError::Full { requests, bytes });
        }
        self.requests.bytes = bytes;
        // Above any number that a member may have forged. One beyond all credible ones makes the room useless to this author.
        let row = self.log.end().last_number(&self.me);
        let row = row.filter(|row| *row < MAX_INDEX).unwrap_or(0);
        let number = self.requests.last_number.max(row) + 1;
        self.requests.last_number = number;
        let numbered = Numbered { number, request };
        self.requests.open.push_back(Open {
            numbered,
            seen: self.delivery.history(),
            verdict: None,
        });
        self.refuse_conditions();
        Ok(number)
    }

    /// Requests that an entry of this author with a higher number has passed: none, unless a member lies about the log.
    pub fn passed_requests(&self) -> u64 {
        self.requests.passed
    }

    /// Whether a leader takes another frame of requests from this member; otherwise the frame must wait.
    pub fn takes_requests_of(&self, peer: &PeerId) -> bool {
        self.peers
            .get(peer)
            .is_none_or(|peer| peer.inbox.is_empty())
    }

    /// Sends the leader what it has not been sent, once this member is here in its log.
    pub(super) fn send_requests(&mut self) {
        let Some(ballot) = self.adopted.clone() else {
            return;
        };
        let leader = ballot.leader.clone();
        let row = self.log.end().last_number(&self.me);
        let may_send = self.staging.is_none() && self.is_linked(&leader);
        let Some(row) = row.filter(|_| may_send && self.log.end().is_here(&self.me)) else {
            return;
        };
        loop {
            let after = row.max(self.requests.sent);
            let requests = batch(self.requests.after(after));
            let Some(last) = requests.last() else {
                return;
            };
            self.requests.note_sent(last.number);
            let ballot = ballot.clone();
            self.send(&leader.peer, Frame::Submit { ballot, requests });
        }
    }

    pub(super) fn take_requests(
        &mut self,
        from: &PeerId,
        ballot: &Ballot,
        requests: Vec<Numbered>,
    ) -> Result<(), Violation> {
        let is_tagged = self.keeps(Rule::TaggedRequests);
        let (Role::Leading(leading), Some(peer)) = (&self.role, self.peers.get_mut(from)) else {
            return Ok(());
        };
        if *ballot != *leading.ballot() && is_tagged {
            return Ok(());
        }
        if !peer.inbox.is_empty() {
            return Err(Violation::Requests);
        }
        peer.inbox = requests.into();
        Ok(())
    }

    /// Appends waiting requests, one of each author in turn, while they have room.
    pub(super) fn take_waiting_requests(&mut self, now: Time) {
        while let Role::Leading(leading) = &self.role
            && leading.has_room()
            && let Some((author, numbered)) = self.next_request()
        {
            if let Role::Leading(leading) = &mut self.role {
                leading.last_author = Some(author.peer.clone());
            }
            let (number, request) = (numbered.number, numbered.request);
            let contents = Contents::Request {
                author,
                number,
                request,
            };
            self.append(now, contents);
        }
    }

    /// The next request that its author may have appended; requests that the log has are dropped.
    fn next_request(&mut self) -> Option<(MemberId, Numbered)> {
        let Role::Leading(leading) = &self.role else {
            return None;
        };
        let mut authors: Vec<_> = self
            .peers
            .keys()
            .cloned()
            .chain([self.me.peer.clone()])
            .collect();
        authors.sort_unstable();
        let after = leading
            .last_author
            .as_ref()
            .map_or(0, |last| authors.partition_point(|author| author <= last));
        authors.rotate_left(after);
        authors
            .into_iter()
            .find_map(|author| self.next_request_of(&author))
    }

    fn next_request_of(&mut self, author: &PeerId) -> Option<(MemberId, Numbered)> {
        let keeps_rows = self.keeps(Rule::Rows);
        if *author == self.me.peer {
            let row = self.log.end().last_number(&self.me)?;
            let after = row.max(self.requests.sent);
            let next = self.requests.after(after).next()?.clone();
            self.requests.note_sent(next.number);
            return Some((self.me.clone(), next));
        }
        let end = self.log.end();
        let peer = self.peers.get_mut(author)?;
        let member = peer.member().clone();
        // Requests of a member that is not here wait: to skip one and take a later one would lose it.
        let row = end.last_number(&member).filter(|_| end.is_here(&member))?;
        while let Some(numbered) = peer.inbox.pop_front() {
            if numbered.number > row || !keeps_rows {
                return Some((member, numbered));
            }
        }
        None
    }

    /// Appends an entry to the log. An author whose last number is not in it any more cannot know what became of the requests
    /// that it has sent. One entry may both forget an author and let it in anew.
    pub(super) fn append_entry(&mut self, entry: Entry) {
        let before = self.log.end().last_number(&self.me);
        self.log.append(entry);
        let after = self.log.end().last_number(&self.me);
        if after.is_none() || after < before {
            self.requests.lose_track();
        }
    }

    /// See [`Replica::append_entry`]; another log is about to take the place of this member's.
    pub(super) fn note_forgotten(&mut self, log: &Log) {
        if log.end().last_number(&self.me).is_none() || self.was_forgotten(log) {
            self.requests.lose_track();
        }
    }

    /// Whether this author was forgotten on the way to `log`, and is back in it.
    fn was_forgotten(&self, log: &Log) -> bool {
        let shared = log.shared_with(self.log.end());
        let row = |tables: &Tables| tables.last_number(&self.me);
        let base = log.base();
        let skipped_ms = base.time_ms().saturating_sub(self.log.end().time_ms());
        // Its tail may lack the entries that forgot the author.
        let may_be = base.index() > shared && skipped_ms >= ROW_LIFETIME_MS;
        if may_be && row(base).unwrap_or(0) == 0 {
            return true;
        }
        let mut returns = log.returns_of(&self.me, shared);
        returns.any(|index| {
            let before = row(&log.state_at(index - 1));
            before.is_none() || row(&log.state_at(index)) < before
        })
    }
}

fn batch<'a>(requests: impl Iterator<Item = &'a Numbered>) -> Vec<Numbered> {
    let mut bytes = 0;
    let fits = |numbered: &&Numbered| {
        let first = bytes == 0;
        bytes += 16 + numbered.request.encoded_bytes();
        first || bytes <= MAX_BATCH_BYTES
    };
    requests.take_while(fits).cloned().collect()
}
