//! Term and vote on disk before they are sent (C2, C8): where the quorum is static, a restarted voter must not vote
//! twice.
//!
//! Messages that depend on a state that is not on disk yet are held back, in order. Of the messages to one peer that
//! wait for the same write only the newest of each kind is kept, so that a slow disk does not answer rounds of votes
//! that are long over. Heartbeats are not held back: they carry the newest record that is on disk, so that a slow disk
//! costs elections and not links.

use std::collections::{BTreeMap, VecDeque};
use std::mem::discriminant;

use super::{ElectionOutput, Extra, OutputOf, Raft, View};
use crate::election::extra::Durable;
use crate::election::raft::saved::{KnownVoter, Saved};
use crate::election::raft::wire::ElectionMessage;
use crate::election::record::Record;
use crate::id::PeerId;
use crate::opaque::Opaque;
use crate::time::{Duration, Time};

/// The state that must survive the process: equal states need no write.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    vote: Vote,
    /// Counts the changes of the knowledge about other voters.
    known: u64,
}

/// The part of the state whose change raises the write counter.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Vote {
    record: Record,
    voted_for: Option<PeerId>,
    forgotten: Option<u64>,
    /// Counts the times that this node learned enough to vote again after its file was lost.
    recoveries: u64,
}

/// A state that is on disk, or being written.
#[derive(Debug, Clone)]
struct Written {
    state: State,
    writes: u64,
}

/// The state on disk, and the messages that wait for it.
#[derive(Debug)]
pub(super) struct Disk {
    safe: Written,
    /// The state being written; one at a time, so that a slow disk gets the newest state and not all of them.
    writing: Option<(u64, Written)>,
    began: Time,
    /// Duration of the last write. Other members' disks are assumed to be as fast.
    took: Duration,
    written: u64,
    /// The other voters that this session met, in this incarnation or an earlier one.
    others: BTreeMap<PeerId, KnownVoter>,
    known: u64,
    /// The write counter up to which votes may be forgotten, as others remember it.
    forgotten: Option<u64>,
    recoveries: u64,
    /// This node knows all votes that it gave since this write counter.
    since: u64,
    /// The next write counter is larger than this.
    above: u64,
    /// Held messages, each with the number of the write that it waits for.
    held: VecDeque<(u64, OutputOf<Raft>)>,
    released: VecDeque<OutputOf<Raft>>,
}

impl Disk {
    /// Starts with the state on disk.
    pub(super) fn new(saved: Saved) -> Self {
        let vote = Vote {
            record: saved.record,
            voted_for: saved.voted_for,
            forgotten: saved.forgotten,
            recoveries: 0,
        };
        Self {
            safe: Written {
                state: State { vote, known: 0 },
                writes: saved.writes,
            },
            writing: None,
            began: Time::ZERO,
            took: Duration::ZERO,
            written: 0,
            others: saved.others,
            known: 0,
            forgotten: saved.forgotten,
            recoveries: 0,
            since: saved.writes,
            above: 0,
            held: VecDeque::new(),
            released: VecDeque::new(),
        }
    }

    /// The write counter that a restart cannot undo.
    pub(super) fn writes(&self) -> u64 {
        self.safe.writes
    }

    pub(super) fn known(&self, voter: &PeerId) -> Option<&KnownVoter> {
        self.others.get(voter)
    }

    pub(super) fn know(&mut self, voter: &PeerId, known: KnownVoter) {
        if self.others.get(voter) != Some(&known) {
            self.others.insert(voter.clone(), known);
            self.known += 1;
        }
    }

    /// Notes that votes given up to `writes` may be forgotten.
    pub(super) fn forget(&mut self, writes: u64) {
        self.forgotten = self.forgotten.max(Some(writes));
    }

    /// Makes sure that none of those votes can be given again: the next write counter is above all that others
    /// remember.
    pub(super) fn recover(&mut self) {
        self.above = self.above.max(self.forgotten.take().unwrap_or_default());
        self.recoveries += 1;
    }

    pub(super) fn since(&self) -> u64 {
        self.since
    }

    /// Whether this node knows all votes of an earlier incarnation that showed this write counter.
    pub(super) fn knows_votes_of(&self, writes: u64) -> bool {
        writes < self.since || writes <= self.above
    }

    /// The next write, if a write is due.
    fn write(&mut self, now: Time, state: State) -> Option<Extra> {
        if self.writing.is_some() || state == self.safe.state {
            return None;
        }
        let mut writes = self.safe.writes;
        if state.vote != self.safe.state.vote {
            // Knowledge about others alone raises nothing, or two voters would raise each other's counters for ever.
            writes = writes.max(self.above).saturating_add(1);
        }
        self.written += 1;
        self.began = now;
        let written = Written { state, writes };
        let state = Opaque::of(&self.saved(&written));
        self.writing = Some((self.written, written));
        Some(Extra::Persist {
            number: self.written,
            state,
        })
    }

    fn saved(&self, written: &Written) -> Saved {
        let vote = written.state.vote.clone();
        Saved {
            writes: written.writes,
            record: vote.record,
            voted_for: vote.voted_for,
            forgotten: vote.forgotten,
            others: self.others.clone(),
        }
    }

    fn hold(&mut self, state: &State, output: OutputOf<Raft>) -> Option<OutputOf<Raft>> {
        if state.vote == self.safe.state.vote && self.held.is_empty() {
            return Some(output);
        }
        let waits_for = match &self.writing {
            Some((number, writing)) if writing.state.vote == state.vote => *number,
            _ => self.written + 1,
        };
        // A message waits for two writes at most: the current one and the next.
        self.held
            .retain(|(number, held)| *number != waits_for || !replaces(&output, held));
        self.held.push_back((waits_for, output));
        None
    }

    /// Whether `number` is the current write.
    fn written(&mut self, now: Time, number: u64) -> bool {
        match self.writing.take() {
            Some((open, written)) if open <= number => {
                if written.state.vote.recoveries > self.safe.state.vote.recoveries {
                    self.since = written.writes;
                }
                self.safe = written;
                self.took = now.since(self.began);
                true
            }
            open => {
                self.writing = open;
                false
            }
        }
    }

    /// Releases messages when no write is under way.
    fn release(&mut self, state: &State) {
        let all = state.vote == self.safe.state.vote;
        while let Some((waits_for, _)) = self.held.front() {
            if *waits_for > self.written && !all {
                break;
            }
            self.released
                .extend(self.held.pop_front().map(|(_, output)| output));
        }
    }
}

/// Whether `newer` replaces `older`: a request ends the rounds before its own, whose answers no longer count, and the
/// last message shows which record a peer follows.
fn replaces(newer: &OutputOf<Raft>, older: &OutputOf<Raft>) -> bool {
    use ElectionOutput::{HeartbeatNow, Send};
    match (newer, older) {
        (HeartbeatNow, HeartbeatNow) => true,
        (
            Send { to, message },
            Send {
                to: other,
                message: before,
            },
        ) => to == other && discriminant(&message.message) == discriminant(&before.message),
        _ => false,
    }
}

impl Raft {
    fn state(&self) -> Option<State> {
        let disk = self.disk.as_ref()?;
        let vote = Vote {
            record: self.rules.record().clone(),
            voted_for: self.rules.voted_for().cloned(),
            forgotten: disk.forgotten,
            recoveries: disk.recoveries,
        };
        let known = disk.known;
        Some(State { vote, known })
    }

    /// The next output, writes first.
    pub(super) fn next_output(&mut self) -> Option<OutputOf<Raft>> {
        let Some(state) = self.state() else {
            return self.outputs.pop_front();
        };
        let disk = self.disk.as_mut()?;
        if let Some(write) = disk.write(self.at, state.clone()) {
            return Some(write.into());
        }
        if let Some(released) = disk.released.pop_front() {
            return Some(released);
        }
        while let Some(output) = self.outputs.pop_front() {
            let output = match output {
                ElectionOutput::Send { .. } | ElectionOutput::HeartbeatNow => {
                    disk.hold(&state, output)
                }
                ElectionOutput::Question(_)
                | ElectionOutput::SetLeaderResult { .. }
                | ElectionOutput::Extra(_) => Some(output),
            };
            if output.is_some() {
                return output;
            }
        }
        None
    }

    /// The states up to `number` are on disk.
    fn written(&mut self, now: Time, view: &View, number: u64) {
        let (Some(state), Some(disk)) = (self.state(), &mut self.disk) else {
            return;
        };
        if disk.written(now, number) {
            disk.release(&state);
            if self.is_safe() && self.rules.campaigning() {
                self.await_votes(now, view);
            }
        }
    }

    /// The time until a vote is safe, as far as known.
    pub(super) fn write_time(&self) -> Duration {
        self.disk.as_ref().map_or(Duration::ZERO, |disk| disk.took)
    }

    /// Drops messages held for a lost link: they must not go out on the next one.
    pub(super) fn forget_held(&mut self, peer: &PeerId) {
        self.take_back(|to, _| to == peer);
    }

    /// Drops held votes. An observer neither votes nor stands, not even late (P6); nor does a voter that noticed that
    /// it forgot votes (P4).
    pub(super) fn forget_votes(&mut self) {
        self.take_back(|_, message| {
            matches!(
                message,
                ElectionMessage::VoteResponse { granted: true, .. }
                    | ElectionMessage::PreVoteResponse { granted: true, .. }
                    | ElectionMessage::VoteRequest { .. }
                    | ElectionMessage::PreVoteRequest { .. }
            )
        });
    }

    /// Drops messages that wait for the disk.
    pub(super) fn take_back(&mut self, unwanted: impl Fn(&PeerId, &ElectionMessage) -> bool) {
        let stays = |output: &OutputOf<Self>| match output {
            ElectionOutput::Send { to, message } => !unwanted(to, &message.message),
            _ => true,
        };
        if let Some(disk) = &mut self.disk {
            disk.held.retain(|(_, output)| stays(output));
            disk.released.retain(stays);
        }
    }

    /// The newest record that a restart cannot undo.
    pub(super) fn safe_record(&self) -> &Record {
        match &self.disk {
            Some(disk) => &disk.safe.state.vote.record,
            None => self.rules.record(),
        }
    }

    /// Whether no message about the present record can be undone by a restart.
    pub(super) fn is_safe(&self) -> bool {
        self.safe_record() == self.rules.record()
    }
}

impl Durable for Raft {
    fn first_state(&self) -> Option<Opaque> {
        let disk = self.disk.as_ref()?;
        Some(Opaque::of(&disk.saved(&disk.safe)))
    }

    fn persisted(&mut self, now: Time, view: &View, number: u64) {
        self.begin_input(now);
        self.speaker = None;
        self.end_lapsed_leadership(now, view);
        self.written(now, view, number);
        self.end_input(now, view);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(writes: u64) -> Disk {
        Disk::new(Saved {
            writes,
            ..Saved::of_next_incarnation(None)
        })
    }

    /// The state after a vote in that term.
    fn voted(disk: &Disk, term: u64) -> State {
        let mut record = Record::default();
        record.stamp.term = term;
        let vote = Vote {
            record,
            voted_for: None,
            forgotten: disk.forgotten,
            recoveries: disk.recoveries,
        };
        State { vote, known: 0 }
    }

    /// Writes the state; returns the write counter.
    fn write(disk: &mut Disk, state: State) -> u64 {
        let write = disk.write(Time::ZERO, state);
        let Some(Extra::Persist { number, state }) = write else {
            panic!("there is something to write");
        };
        assert!(disk.written(Time::ZERO, number));
        state.decode::<Saved>().expect("it is its own").writes
    }

    #[test]
    fn all_votes_since_the_last_recovery_are_known() {
        let mut disk = disk(5);
        let known = |disk: &Disk| {
            (0..13)
                .filter(|writes| disk.knows_votes_of(*writes))
                .count()
        };
        assert_eq!((disk.since(), known(&disk)), (5, 5));
        let state = voted(&disk, 1);
        assert_eq!(write(&mut disk, state), 6);
        assert_eq!((disk.since(), known(&disk)), (5, 5));
        // Others remember more writes than its file has.
        disk.forget(9);
        disk.forget(8);
        disk.recover();
        assert_eq!((disk.since(), known(&disk)), (5, 10));
        let state = voted(&disk, 1);
        assert_eq!(write(&mut disk, state), 10);
        assert_eq!((disk.since(), known(&disk)), (10, 10));
        let state = voted(&disk, 2);
        assert_eq!(write(&mut disk, state), 11);
        assert_eq!(disk.since(), 10);
    }
}
