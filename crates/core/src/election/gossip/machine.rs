//! The election of Hyperledger Fabric's gossip layer: proposals and declarations, the lowest id, windows of time.
//!
//! Source: package `gossip/election` of Hyperledger Fabric, in our own words. It has no terms, no votes and no quorum.
//! A peer that receives no declaration for a whole window proposes itself, collects others' proposals for a while, and
//! leads if none of them has a lower id. A leader declares itself twice per window, and steps down for the declaration
//! of a lower id. So every part of a partitioned room has a leader, and one leader remains when the parts merge.
//!
//! The machine knows neither links nor messages: its user reports each peer's claims to it, and sends the claims that
//! it returns. It is generic in the ids, so that the room and the library's `gossip` run the same machine.

use std::collections::VecDeque;

use thiserror::Error;

use crate::time::{Duration, Time};

/// Shortest window; shorter ones would let a peer spin.
pub const MIN_WINDOW: Duration = Duration::from_millis(1);
/// Longest window; its multiples stay far below what a clock counts.
pub const MAX_WINDOW: Duration = Duration::from_millis(u32::MAX as u64);
/// Maximum number of declarations that a leader answers at once with its own within one declaration interval. Two
/// leaders whose parts merge need one; the limit is for a peer that declares without end.
pub const MAX_RESULTS: u32 = 64;

/// The lengths of the windows. A change takes effect when the next window begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Longest wait for a stable membership at the start [15 s].
    pub startup_grace: Duration,
    /// Interval at which that wait samples the size of the membership [1 s].
    pub sample_interval: Duration,
    /// The time for which a follower waits for a declaration [10 s].
    pub alive_threshold: Duration,
    /// The time for which a peer that proposed itself collects the proposals of others [5 s].
    pub election_duration: Duration,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            startup_grace: Duration::from_secs(15),
            sample_interval: Duration::from_secs(1),
            alive_threshold: Duration::from_secs(10),
            election_duration: Duration::from_secs(5),
        }
    }
}

/// A window is shorter than [`MIN_WINDOW`] or longer than [`MAX_WINDOW`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name} is {found:?}; 1 ms to {MAX_WINDOW:?} are allowed")]
pub struct WindowError {
    /// The name of the window.
    pub name: &'static str,
    /// Its length.
    pub found: Duration,
}

impl Windows {
    /// Whether all lengths are within [`MIN_WINDOW`] and [`MAX_WINDOW`].
    ///
    /// # Errors
    /// [`WindowError`] for the first window out of range.
    pub fn check(&self) -> Result<(), WindowError> {
        let all = [
            ("startup_grace", self.startup_grace),
            ("sample_interval", self.sample_interval),
            ("alive_threshold", self.alive_threshold),
            ("election_duration", self.election_duration),
        ];
        match all
            .into_iter()
            .find(|(_, length)| !(MIN_WINDOW..=MAX_WINDOW).contains(length))
        {
            Some((name, found)) => Err(WindowError { name, found }),
            None => Ok(()),
        }
    }

    /// Time between two declarations of a leader: half of the alive threshold.
    pub fn declaration_interval(&self) -> Duration {
        self.alive_threshold / 2
    }

    /// The time for which a message is remembered: ten times the alive threshold.
    pub fn message_expiration(&self) -> Duration {
        self.alive_threshold.saturating_mul(10)
    }

    /// The longest time for which a peer that yielded does not lead: six times the alive threshold.
    pub fn yield_duration(&self) -> Duration {
        self.alive_threshold.saturating_mul(6)
    }
}

/// A peer's claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claim {
    /// The peer proposes itself.
    Proposal,
    /// The peer leads.
    Declaration,
}

/// Output of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Send this claim to every peer.
    Send(Claim),
    /// This peer leads from here on.
    Gained,
    /// This peer no longer leads.
    Lost,
    /// A window begins, for a metric.
    Window {
        /// Whether this peer leads in it.
        leads: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waits until the size of the membership is the same in two samples.
    Startup {
        ends_at: Time,
        sample_at: Time,
        size: usize,
    },
    /// Has proposed itself and collects proposals.
    Electing { until: Time },
    /// Leads, and declares itself again at `until`.
    Leading { until: Time },
    /// Waits for declarations.
    Following { until: Time },
    /// Has stopped for good.
    Stopped,
}

/// The state machine of one peer.
#[derive(Debug, Clone)]
pub struct Machine<Id> {
    me: Id,
    windows: Windows,
    /// Whether a follower without a known leader joins every election that it learns of, so that windows always overlap
    /// and the lowest id always wins.
    strict_lowest: bool,
    /// Whether this peer proposes itself.
    enabled: bool,
    /// Whether this peer may lead at all.
    eligible: bool,
    phase: Phase,
    /// Whether a lower id proposed itself since the last window of a follower began, elections included. An election
    /// needs nothing else of the proposals.
    outbid: bool,
    leads: bool,
    /// Whether a declaration arrived in this window, or this peer leads.
    leader_exists: bool,
    yields_until: Option<Time>,
    /// Since when a follower's window stands still.
    stands_since: Option<Time>,
    /// Remaining declarations of others that may cut this window of a leader short.
    answers: u32,
    acts: VecDeque<Act>,
}

impl<Id: Ord + Clone> Machine<Id> {
    /// A peer that starts now. `size` is the number of others that it sees; `windows` are checked already.
    pub fn new(me: Id, windows: Windows, strict_lowest: bool, now: Time, size: usize) -> Self {
        Self {
            me,
            windows,
            strict_lowest,
            enabled: true,
            eligible: true,
            phase: Phase::Startup {
                ends_at: now + windows.startup_grace,
                sample_at: now + windows.sample_interval,
                size,
            },
            outbid: false,
            leads: false,
            leader_exists: false,
            yields_until: None,
            stands_since: None,
            answers: MAX_RESULTS,
            acts: VecDeque::new(),
        }
    }

    /// Whether this peer leads. A peer that was stopped while it led still returns true.
    pub fn is_leader(&self) -> bool {
        self.leads
    }

    /// Whether this peer has yielded and does not lead for a while.
    pub fn is_yielding(&self) -> bool {
        self.yields_until.is_some()
    }

    /// Whether this peer has proposed itself and waits for the result.
    pub fn is_electing(&self) -> bool {
        matches!(self.phase, Phase::Electing { .. })
    }

    /// Whether this peer was stopped.
    pub fn is_stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }

    /// The lengths of the windows.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Sets the windows, which the caller has checked, from the next one on.
    pub fn set_windows(&mut self, windows: Windows) {
        self.windows = windows;
    }

    /// Sets whether this peer proposes itself from now on. A leader goes on leading.
    pub fn enable(&mut self, enabled: bool) {
        self.enabled = enabled;
    }

    /// Sets whether this peer may lead from now on. A leader that may not stops at once.
    pub fn set_eligible(&mut self, eligible: bool) {
        self.eligible = eligible;
        if !eligible && self.leads && !self.is_stopped() {
            self.lose();
            self.leader_exists = false;
        }
    }

    /// Leads from now on, without an election: for the only peer of a membership that may lead.
    pub fn lead(&mut self, now: Time) {
        if self.leads || !self.eligible || self.is_stopped() {
            return;
        }
        self.gain();
        self.carry_on(now);
    }

    /// The time of the next [`Machine::tick`].
    pub fn next_deadline(&self) -> Option<Time> {
        let phase = match self.phase {
            Phase::Startup { sample_at, .. } => sample_at,
            Phase::Following { .. } if self.stands_still() => return self.yields_until,
            Phase::Electing { until } | Phase::Leading { until } | Phase::Following { until } => {
                until
            }
            Phase::Stopped => return None,
        };
        Some(
            self.yields_until
                .map_or(phase, |yielded| yielded.min(phase)),
        )
    }

    /// The next output; call until `None` after every other call.
    pub fn poll_act(&mut self) -> Option<Act> {
        self.acts.pop_front()
    }

    /// Time has passed. `size` is the number of others that this peer sees now.
    pub fn tick(&mut self, now: Time, size: usize) {
        if self.yields_until.is_some_and(|until| now >= until) {
            self.yields_until = None;
        }
        match self.phase {
            Phase::Startup {
                ends_at,
                sample_at,
                size: before,
            } if now >= sample_at => {
                // Only the size is compared, so that one leave and one join look stable.
                if size == before || now > ends_at || self.leader_exists {
                    self.turn(now);
                } else {
                    self.phase = Phase::Startup {
                        ends_at,
                        sample_at: now + self.windows.sample_interval,
                        size,
                    };
                }
            }
            Phase::Electing { until } if now >= until => self.decide(now),
            Phase::Leading { until } if now >= until => {
                self.answers = MAX_RESULTS;
                self.turn(now);
            }
            Phase::Following { until } if now >= until && !self.stands_still() => self.turn(now),
            _ => {}
        }
    }

    /// Lets a follower's window stand still, or go on: no declaration of the leader can arrive for a while.
    pub fn stand_still(&mut self, now: Time, stands: bool) {
        match (self.stands_since, stands) {
            (None, true) => self.stands_since = Some(now),
            (Some(since), false) => {
                self.stands_since = None;
                if let Phase::Following { until } = &mut self.phase {
                    *until = *until + now.since(since);
                }
            }
            _ => {}
        }
    }

    /// Whether a follower's window stands still.
    pub fn stands_still(&self) -> bool {
        self.stands_since.is_some()
    }

    /// A peer of the present membership proposed itself. `leaderless` is whether this peer knows no living leader.
    pub fn proposed(&mut self, now: Time, from: &Id, leaderless: bool) {
        if self.is_stopped() {
            return;
        }
        self.outbid |= *from < self.me;
        let follows = matches!(self.phase, Phase::Following { .. });
        if self.strict_lowest && leaderless && follows && self.may_propose() {
            // The declaration with which this window may have begun was the last of a leader that is lost.
            self.leader_exists = false;
            self.elect(now);
        }
    }

    /// A peer of the present membership declared that it leads.
    pub fn declared(&mut self, now: Time, from: &Id) {
        if self.is_stopped() {
            return;
        }
        self.leader_exists = true;
        if *from < self.me && self.leads {
            self.lose();
        }
        match self.phase {
            // An election is over.
            Phase::Electing { .. } => self.decide(now),
            // A leader that lost follows. A leader that stays answers at once, so that the other one receives its
            // declaration.
            Phase::Leading { .. } if !self.leads => self.turn(now),
            Phase::Leading { .. } if self.answers > 0 => {
                self.answers -= 1;
                self.turn(now);
            }
            Phase::Leading { .. } => {}
            // The wait for a stable membership ends at its next sample, a follower's window at its end.
            Phase::Startup { .. } | Phase::Following { .. } | Phase::Stopped => {}
        }
    }

    /// Stops leading, and does not lead until another peer leads, or for the yield duration. Does nothing in a peer
    /// that does not lead.
    pub fn yield_leadership(&mut self, now: Time) {
        if !self.leads || self.is_yielding() || self.is_stopped() {
            return;
        }
        self.yields_until = Some(now + self.windows.yield_duration());
        self.lose();
        self.leader_exists = false;
    }

    /// Stops for good, without a callback; whether this peer leads does not change.
    pub fn stop(&mut self) {
        self.phase = Phase::Stopped;
        self.acts.clear();
    }

    fn may_propose(&self) -> bool {
        self.enabled && self.eligible && !self.is_yielding()
    }

    /// One turn of the loop.
    fn turn(&mut self, now: Time) {
        if !self.leader_exists && self.may_propose() {
            self.elect(now);
        } else {
            self.carry_on(now);
        }
    }

    /// Proposes itself and begins to collect. Earlier proposals in this window count.
    fn elect(&mut self, now: Time) {
        self.acts.push_back(Act::Send(Claim::Proposal));
        self.phase = Phase::Electing {
            until: now + self.windows.election_duration,
        };
    }

    /// Ends the collection of proposals: its time is over, or another peer leads.
    fn decide(&mut self, now: Time) {
        if !self.leader_exists && self.may_propose() && !self.outbid {
            self.gain();
        }
        self.carry_on(now);
    }

    fn gain(&mut self) {
        self.leader_exists = true;
        self.leads = true;
        self.answers = MAX_RESULTS;
        self.acts.push_back(Act::Gained);
    }

    /// The second half of a turn: leads, or begins a follower's window.
    fn carry_on(&mut self, now: Time) {
        if self.leader_exists {
            self.yields_until = None;
        }
        self.acts.push_back(Act::Window { leads: self.leads });
        if self.leads {
            self.acts.push_back(Act::Send(Claim::Declaration));
            self.phase = Phase::Leading {
                until: now + self.windows.declaration_interval(),
            };
        } else {
            self.outbid = false;
            self.leader_exists = false;
            self.phase = Phase::Following {
                until: now + self.windows.alive_threshold,
            };
        }
    }

    fn lose(&mut self) {
        self.leads = false;
        // Declarations that it was about to send as a leader are dropped.
        self.acts
            .retain(|act| *act != Act::Send(Claim::Declaration));
        self.acts.push_back(Act::Lost);
    }
}
