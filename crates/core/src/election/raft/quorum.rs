//! Whether a leader still has a majority (G6), and how long its room's round trips make the timeouts (G15).

use std::collections::{BTreeMap, BTreeSet};

use super::following::Following;
use super::{DownReason, ElectionOutput, Raft, View};
use crate::election::rules::Campaign;
use crate::id::PeerId;
use crate::time::{Duration, Time};

/// A check that is this late was delayed with the whole process, and so were the answers that it counts.
const LATE: Duration = Duration::from_millis(100);
/// The longest election timeout that round trips require, and the most that a leader's report adds to this node's.
const MAX_ROUND_TRIPS: Duration = Duration::from_secs(5);

/// The period over which a leader counts its answering voters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    began: Time,
    pub(super) until: Time,
    /// Voters that were linked at any time in this window, or lost in the one before, without the ones that sent a
    /// leave notice. The leader is not among them.
    voters: BTreeSet<PeerId>,
    /// The ones that were lost in this window and are not back.
    lost: BTreeSet<PeerId>,
    /// The ones that answered.
    answered: BTreeSet<PeerId>,
    /// Time of each voter's last answer, in this window or before.
    answered_at: BTreeMap<PeerId, Time>,
    /// Whether `voters` has the voters that were linked when the window began.
    seen: bool,
    /// Whether this is an extra window, because the check of the one before came late.
    is_second: bool,
}

impl Window {
    pub(super) fn new(now: Time, length: Duration) -> Self {
        Self {
            began: now,
            until: now + length,
            voters: BTreeSet::new(),
            lost: BTreeSet::new(),
            answered: BTreeSet::new(),
            answered_at: BTreeMap::new(),
            seen: false,
            is_second: false,
        }
    }

    /// Ends a window that began when round trips were longer at the time at which one of the present length would end.
    fn shorten(&mut self, now: Time, length: Duration) {
        self.until = self.until.min((self.began + length).max(now));
    }

    pub(super) fn see(&mut self, view: &View) {
        self.seen = true;
        self.voters
            .extend(view.eligible().map(|(id, _)| id.clone()));
    }

    /// Whether this is a leader's first window, which does not know yet which voters were linked when it began.
    pub(super) fn is_new(&self) -> bool {
        !self.seen
    }

    /// Counts the votes of a campaign as answers.
    pub(super) fn won(&mut self, now: Time, me: &PeerId, won: &Campaign) {
        let electorate = won.electorate.iter().filter(|voter| *voter != me);
        self.voters.extend(electorate.cloned());
        for voter in won.granted.iter().filter(|voter| *voter != me) {
            self.answered(now, voter);
        }
    }

    pub(super) fn answered(&mut self, now: Time, voter: &PeerId) {
        self.answered.insert(voter.clone());
        self.answered_at.insert(voter.clone(), now);
    }

    /// A voter that left no longer counts. A voter that is lost counts as silent for one more window: voters that fall
    /// silent together are lost one after the other, and a window may end in between.
    pub(super) fn lost(&mut self, voter: &PeerId, why: &DownReason) {
        self.answered.remove(voter);
        if matches!(why, DownReason::Left { .. } | DownReason::Removed) {
            self.voters.remove(voter);
            self.lost.remove(voter);
        } else if self.voters.contains(voter) {
            self.lost.insert(voter.clone());
        }
    }

    fn next(&mut self, now: Time, length: Duration, view: &View) -> Self {
        let mut next = Self::new(now, length);
        next.voters = std::mem::take(&mut self.lost);
        next.answered_at = std::mem::take(&mut self.answered_at);
        next.see(view);
        next
    }
}

/// CheckQuorum.
impl Raft {
    /// Both ends make a link, so a newly linked voter has answered.
    pub(super) fn voter_linked(&mut self, now: Time, view: &View, voter: &PeerId) {
        if let Some(leader) = self.leading_mut().filter(|_| view.is_eligible(voter)) {
            leader.window.voters.insert(voter.clone());
            leader.window.answered(now, voter);
        }
    }

    /// The time at which this leader of a static quorum stops leading, whatever arrives then: the last answer of one
    /// voter of each majority is two shortest election timeouts old. Checks of windows come sooner, but may be late
    /// with the whole process.
    pub(super) fn leads_until(&self) -> Option<Time> {
        let roster = self.config.quorum.roster()?;
        let leader = self.leading()?;
        let last_needed = (roster.majority() - 1).checked_sub(1)?;
        if !self.config.guards.check_quorum() {
            return None;
        }
        let answers = leader.window.answered_at.iter();
        let of_roster = answers.filter(|(voter, _)| roster.contains(voter));
        let mut answers: Vec<_> = of_roster.map(|(_, at)| *at).collect();
        answers.sort_unstable_by(|one, other| other.cmp(one));
        let answered = answers.get(last_needed).copied();
        Some(answered.unwrap_or(leader.since) + self.election_timeout_min() * 2)
    }

    pub(super) fn has_lapsed(&self, now: Time) -> bool {
        self.leads_until().is_some_and(|until| now >= until)
    }

    pub(super) fn end_lapsed_leadership(&mut self, now: Time, view: &View) {
        if self.has_lapsed(now) {
            self.resign_unanswered(now, view);
        }
    }

    /// A leader resigns if a majority of its voters did not answer it for a whole shortest election timeout. A new
    /// leader has one such window before the first check.
    pub(super) fn check_quorum(&mut self, now: Time, view: &View) {
        let length = self.election_timeout_min();
        let Some(leader) = self.leading_mut() else {
            return;
        };
        let window = &mut leader.window;
        if now < window.until {
            return;
        }
        // A voter that a fallen relay keeps from answering may well follow. With a static quorum `leads_until` holds.
        let held = view.held.keys();
        let held = held.filter(|voter| view.held_until(now, voter).is_some());
        window.answered.extend(held.cloned());
        let mut next = window.next(now, length, view);
        if now > window.until + LATE && !window.is_second {
            next.is_second = true;
            next.voters.append(&mut window.voters);
            *window = next;
            return;
        }
        let voters = window.voters.len() + 1;
        let answered = window.answered.intersection(&window.voters).count() + 1;
        *window = next;
        let needed = self.config.quorum.votes_needed(voters);
        if answered >= needed || !self.config.guards.check_quorum() {
            return;
        }
        self.resign_unanswered(now, view);
    }

    /// It waits for its own timeout before it campaigns again, so that voters without a leader go first.
    fn resign_unanswered(&mut self, now: Time, view: &View) {
        self.become_follower(Following::None);
        self.arm_election(now, view);
        self.outputs.push_back(ElectionOutput::HeartbeatNow);
    }
}

/// Timeouts in force.
impl Raft {
    /// Shortest election timeout: the configured one, or more where round trips are long.
    pub fn election_timeout_min(&self) -> Duration {
        self.config
            .election_timeout_min
            .saturating_add(self.stretch)
    }

    /// Longest election timeout: the configured one, moved by as much.
    pub(super) fn election_timeout_max(&self) -> Duration {
        self.config
            .election_timeout_max
            .saturating_add(self.stretch)
    }

    /// A leader's room needs four round trips to its median voter, at most five seconds.
    pub(super) fn measure_round_trips(&mut self, now: Time, view: &View) {
        if !self.leads() || !self.config.guards.adaptive_timeouts() {
            return;
        }
        let mut measured: Vec<_> = view.eligible().filter_map(|(_, voter)| voter.rtt).collect();
        measured.sort_unstable();
        let median = measured
            .get(measured.len() / 2)
            .copied()
            .unwrap_or_default();
        let needed = median.saturating_mul(4).min(MAX_ROUND_TRIPS);
        self.stretch = needed.saturating_sub(self.config.election_timeout_min);
        // A leader that has lost all its voters keeps the window in which it may get them back.
        if !measured.is_empty() {
            let length = self.election_timeout_min();
            if let Some(leader) = self.leading_mut() {
                leader.window.shorten(now, length);
            }
        }
    }

    /// Adopts the shortest election timeout of the leader that is followed.
    pub(super) fn adopt_timeout(&mut self, now: Time, view: &View, leader: &PeerId, min_ms: u32) {
        if !self.following().is_direct(leader) {
            return;
        }
        let reported = Duration::from_millis(min_ms.into());
        let stretch = reported
            .saturating_sub(self.config.election_timeout_min)
            .min(MAX_ROUND_TRIPS);
        if stretch != self.stretch {
            self.stretch = stretch;
            self.lease_until = now + self.election_timeout_min();
            self.arm_election(now, view);
        }
    }
}
