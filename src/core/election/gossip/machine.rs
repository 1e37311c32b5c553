//! The election of Hyperledger Fabric's gossip layer: proposals and declarations, the lowest id, windows of time.
//!
//! Source: package `gossip/election` of Hyperledger Fabric, in our own words. No terms, no votes, no quorum: a peer
//! that hears no declaration for a whole window proposes itself, collects others' proposals for a while,
//! and leads when it saw none of a lower id. A leader declares itself twice per window and steps down for
//! the declaration of a lower id. So every part of a room that is cut has a leader, and one is left when
//! the parts meet.
//!
//! The machine knows neither links nor messages: its user tells it who said what, and says what it wants said.
//! It is generic in the ids so that the room and [`crate::gossip`] run the same one.

use std::collections::{BTreeSet, VecDeque};

use crate::core::time::{Duration, Time};

/// The lengths of the windows. A change takes effect when the next window begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Longest wait for a stable membership at the start [15 s].
    pub startup_grace: Duration,
    /// How often the size of the membership is looked at during that wait [1 s].
    pub sample_interval: Duration,
    /// How long a follower waits for a declaration [10 s].
    pub alive_threshold: Duration,
    /// How long a peer that proposed itself collects the proposals of others [5 s].
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

impl Windows {
    /// Time between two declarations of a leader: half of the alive threshold.
    pub fn declaration_interval(&self) -> Duration {
        self.alive_threshold / 2
    }

    /// How long a message is remembered: ten times the alive threshold.
    pub fn message_expiration(&self) -> Duration {
        self.alive_threshold.saturating_mul(10)
    }

    /// How long a peer that yielded stays away from leading at most: six times the alive threshold.
    pub fn yield_duration(&self) -> Duration {
        self.alive_threshold.saturating_mul(6)
    }
}

/// What a peer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claim {
    /// "I would lead."
    Proposal,
    /// "I lead."
    Declaration,
}

/// What the machine wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Tell every peer.
    Say(Claim),
    /// This peer leads from here on.
    Gained,
    /// This peer leads no longer.
    Lost,
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
    /// Leads, and declares itself again then.
    Leading { until: Time },
    /// Waits for declarations.
    Following { until: Time },
    /// Does nothing more.
    Stopped,
}

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Machine<Id> {
    me: Id,
    windows: Windows,
    /// Whether a follower that knows no leader joins every election that it hears of, so that windows always
    /// overlap and the lowest id always wins.
    strict_lowest: bool,
    /// Whether this peer may propose itself.
    enabled: bool,
    phase: Phase,
    /// Who proposed itself since the last window of a follower began, elections included.
    proposals: BTreeSet<Id>,
    leads: bool,
    /// Whether a declaration was heard in this window, or this peer leads.
    leader_exists: bool,
    yields_until: Option<Time>,
    acts: VecDeque<Act>,
}

impl<Id: Ord + Clone> Machine<Id> {
    /// A peer that starts now. `size` is how many others it sees.
    pub fn new(me: Id, windows: Windows, strict_lowest: bool, now: Time, size: usize) -> Self {
        Self {
            me,
            windows,
            strict_lowest,
            enabled: true,
            phase: Phase::Startup {
                ends_at: now + windows.startup_grace,
                sample_at: now + windows.sample_interval,
                size,
            },
            proposals: BTreeSet::new(),
            leads: false,
            leader_exists: false,
            yields_until: None,
            acts: VecDeque::new(),
        }
    }

    /// Whether this peer leads. One that was stopped while it led still says so.
    pub fn is_leader(&self) -> bool {
        self.leads
    }

    /// Whether this peer stays away from leading for a while.
    pub fn is_yielding(&self) -> bool {
        self.yields_until.is_some()
    }

    /// Whether this peer has proposed itself and waits for what comes of it.
    pub fn is_electing(&self) -> bool {
        matches!(self.phase, Phase::Electing { .. })
    }

    /// The lengths of the windows.
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Other lengths, from the next window on.
    pub fn set_windows(&mut self, windows: Windows) {
        self.windows = windows;
    }

    /// Whether this peer may propose itself from now on. A leader goes on leading.
    pub fn enable(&mut self, enabled: bool) {
        self.enabled = enabled;
    }

    /// When to call [`Machine::tick`] next.
    pub fn next_deadline(&self) -> Option<Time> {
        let phase = match self.phase {
            Phase::Startup { sample_at, .. } => Some(sample_at),
            Phase::Electing { until } | Phase::Leading { until } | Phase::Following { until } => {
                Some(until)
            }
            Phase::Stopped => None,
        };
        phase.into_iter().chain(self.yield_deadline()).min()
    }

    fn yield_deadline(&self) -> Option<Time> {
        self.yields_until.filter(|_| self.phase != Phase::Stopped)
    }

    /// What to do next; call until `None` after every other call.
    pub fn poll_act(&mut self) -> Option<Act> {
        self.acts.pop_front()
    }

    /// Time has passed. `size` is how many others this peer sees now.
    pub fn tick(&mut self, now: Time, size: usize) {
        if self.yield_deadline().is_some_and(|until| now >= until) {
            self.yields_until = None;
        }
        match self.phase {
            Phase::Startup {
                ends_at,
                sample_at,
                size: before,
            } if now >= sample_at => {
                // Only the size is compared, so that one leave and one join look stable.
                if size == before || now >= ends_at || self.leader_exists {
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
            Phase::Leading { until } | Phase::Following { until } if now >= until => {
                self.turn(now);
            }
            _ => {}
        }
    }

    /// A peer of the present membership proposed itself. `leaderless` tells whether this peer knows no leader
    /// that is alive.
    pub fn proposed(&mut self, now: Time, from: &Id, leaderless: bool) {
        self.proposals.insert(from.clone());
        let waits = matches!(self.phase, Phase::Following { .. }) && !self.leader_exists;
        if self.strict_lowest && leaderless && waits {
            self.elect(now);
        }
    }

    /// A peer of the present membership declared that it leads.
    pub fn declared(&mut self, now: Time, from: &Id) {
        self.leader_exists = true;
        if *from < self.me && self.leads {
            self.lose();
        }
        match self.phase {
            // An election is over; two leaders that hear each other answer at once, so that one is left soon.
            Phase::Electing { .. } => self.decide(now),
            Phase::Leading { .. } => self.turn(now),
            // The wait for a stable membership ends at its next sample, a follower's window at its end.
            Phase::Startup { .. } | Phase::Following { .. } | Phase::Stopped => {}
        }
    }

    /// Stops leading and stays away from it until another peer leads, or for the yield duration. Does
    /// nothing in a peer that does not lead.
    pub fn yield_leadership(&mut self, now: Time) {
        if !self.leads || self.phase == Phase::Stopped {
            return;
        }
        self.yields_until = Some(now + self.windows.yield_duration());
        self.lose();
        self.leader_exists = false;
    }

    /// Stops for good; no callback, and whether this peer leads stays as it is.
    pub fn stop(&mut self) {
        self.phase = Phase::Stopped;
        self.acts.clear();
    }

    /// Stops leading at once because this peer may not lead (any more).
    pub fn step_down(&mut self) {
        if self.leads {
            self.lose();
            self.leader_exists = false;
        }
    }

    /// One turn of the loop.
    fn turn(&mut self, now: Time) {
        if !self.leader_exists && self.yields_until.is_none() && self.enabled {
            self.elect(now);
        } else {
            self.carry_on(now);
        }
    }

    /// Proposes itself and begins to collect.
    fn elect(&mut self, now: Time) {
        if self.yields_until.is_some() || !self.enabled {
            return;
        }
        self.acts.push_back(Act::Say(Claim::Proposal));
        self.phase = Phase::Electing {
            until: now + self.windows.election_duration,
        };
    }

    /// The collection of proposals is over: by its time, or because somebody leads.
    fn decide(&mut self, now: Time) {
        let lower = self.proposals.first().is_some_and(|first| *first < self.me);
        if !self.leader_exists && self.yields_until.is_none() && self.enabled && !lower {
            self.leader_exists = true;
            self.leads = true;
            self.acts.push_back(Act::Gained);
        }
        self.carry_on(now);
    }

    /// The second half of a turn: leads, or begins a follower's window.
    fn carry_on(&mut self, now: Time) {
        if self.leader_exists {
            self.yields_until = None;
        }
        if self.leads {
            self.acts.push_back(Act::Say(Claim::Declaration));
            self.phase = Phase::Leading {
                until: now + self.windows.declaration_interval(),
            };
        } else {
            self.proposals.clear();
            self.leader_exists = false;
            self.phase = Phase::Following {
                until: now + self.windows.alive_threshold,
            };
        }
    }

    fn lose(&mut self) {
        self.leads = false;
        self.acts.push_back(Act::Lost);
    }
}
