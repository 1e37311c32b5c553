//! The faults of a run, drawn up front from one seed: so a run can be repeated without some of them.
//!
//! Swarm selection: every plan draws its kinds of faults, so that some plans have all of one kind.

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use room_core::election::Recovery;
use room_core::election::guards::Guards;
use room_core::quorum::MAX_ROSTER_VOTERS;
use room_core::time::Duration;
use room_core::wire::{Authority, MergePolicy};

use crate::clock::{Clock, MAX_DEVIATION_PPM};
use crate::harm::Slander;
use crate::held;
use crate::liars::{Far, Words};
use crate::paths::{AddressLie, PathsPlan, RelayLie};
use crate::profile::StrategyPlan;
use crate::statics;
use crate::wider::widen;
use crate::world::Settings;

/// The place that a fault affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Who {
    /// The process of that place, if one runs.
    Slot(usize),
    /// The leader of that moment; of several, the first.
    Leader,
}

/// One fault or action. One that ends by itself has its duration in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// Starts a process, which connects to another.
    Start { slot: usize, contact: usize },
    /// Kills a process; another starts in its place.
    Crash { who: Who, back_ms: u64 },
    /// A host leaves, and comes back.
    Leave { who: Who, back_ms: u64 },
    /// A process is stopped: it receives nothing and does nothing.
    Pause { who: Who, for_ms: u64 },
    /// Cuts every direction from one of the first to one of the second.
    Cut {
        from: Vec<usize>,
        to: Vec<usize>,
        for_ms: u64,
    },
    /// A process is deaf, mute, or both.
    Isolate {
        who: Who,
        deaf: bool,
        mute: bool,
        for_ms: u64,
    },
    /// The link of two places, or all links of one, breaks and returns repeatedly.
    Flap {
        slot: usize,
        other: Option<usize>,
        period_ms: u64,
        times: u64,
    },
    /// Hosts call `SetLeader` at once: callers and targets.
    SetLeader { calls: Vec<(usize, usize)> },
    /// A host allows or forbids elections.
    Auto { slot: usize, enabled: bool },
    /// Sets the delay of every one-way trip.
    Delay { least_ms: u64, most_ms: u64 },
    /// Adds a delay to one direction.
    SlowLink {
        from: usize,
        to: usize,
        more_ms: u64,
    },
    /// Shares of datagrams that are lost, and that arrive twice, in percent.
    Datagrams { loss: u32, copies: u32 },
    /// Share of packets of the control streams that are lost, in percent.
    StreamLoss { loss: u32 },
    /// A host connects to another by hand.
    Connect { from: usize, to: usize },
    /// A host sets whether its node may lead.
    Observe { slot: usize, eligible: bool },
    /// The leader kicks a peer.
    Kick { victim: usize },
    /// The leader sets the room's limit.
    Limit { max_peers: u32 },
    /// A host changes its node's priority.
    Priority { slot: usize, priority: i32 },
    /// The leader transfers its leadership to that place.
    Transfer { target: usize },
    /// The leader yields to the next one.
    Yield,
    /// Kills a process; its place's wall clock is set back this far, and another process starts there.
    SetBack {
        slot: usize,
        by_ms: u64,
        back_ms: u64,
    },
    /// Sets the longest duration of a write to disk.
    SlowDisk { most_ms: u64 },
    /// Shares of control messages, in percent, that arrive twice, that the next link delivers instead of the last one, and that
    /// later ones overtake; each up to this late.
    Strays {
        copies: u32,
        leftovers: u32,
        passed: u32,
        most_ms: u64,
    },
    /// From now on this share of packets, in percent, arrives and is reported as refused all the same; reports are up to this late,
    /// and these places receive none.
    Refusals {
        lies: u32,
        most_ms: u64,
        deaf: Vec<usize>,
    },
    /// Sets how much later than the control streams host messages may arrive.
    LateData { most_ms: u64 },
    /// Cuts a place, and others with it, off from the rest. The process there may be killed and restarted from disk meanwhile.
    CutOff {
        who: Who,
        with: Vec<usize>,
        restart_ms: Option<u64>,
        for_ms: u64,
    },
    /// From now on this share of the writes of a vote ends with the process, in percent: see [`crate::world::Strike`].
    Strikes { percent: u32 },
    /// Writes to the disk of a place fail, and are repeated until one succeeds.
    BadDisk { slot: usize, for_ms: u64 },
    /// A process is killed, and its place restarts with the state file of this many writes ago, or without one.
    OldDisk {
        who: Who,
        writes_ago: Option<usize>,
        back_ms: u64,
    },
    /// A member lies about a counter: an override number, or else a term.
    Lie {
        liar: usize,
        victim: Who,
        words: Words,
        far: Far,
        epoch: bool,
    },
    /// A member lies about another one.
    Slander {
        liar: usize,
        victim: Who,
        about: usize,
        words: Slander,
    },
    /// Two places lose their direct path. With `ends` a direct link between them ends silently; with `opens` both ends may open
    /// one when they dial at the same time.
    Wall {
        one: usize,
        other: usize,
        opens: bool,
        ends: bool,
    },
    /// Two places have a direct path again.
    NoWall { one: usize, other: usize },
    /// A carrier silently drops the packets from one place to another, or to all.
    DropOneWay {
        carrier: Who,
        from: usize,
        to: Option<usize>,
        for_ms: u64,
    },
    /// A place gets another address; its links with some places end silently.
    Rebind { slot: usize, lost: Vec<usize> },
    /// A relay falls, and is back later.
    RelayFalls { relay: u8, for_ms: u64 },
    /// A relay silently drops the packets from one place to another, or to all.
    RelayDrops {
        relay: u8,
        from: usize,
        to: Option<usize>,
        for_ms: u64,
    },
    /// A relay hides the presence of a place.
    RelayHides { relay: u8, slot: usize, for_ms: u64 },
    /// A member alone loses a relay for a while.
    RelayIsLost { relay: u8, slot: usize, for_ms: u64 },
    /// A relay makes a false report.
    RelayLies {
        relay: u8,
        victim: usize,
        about: usize,
        lie: RelayLie,
        unused: u8,
    },
    /// A liar names addresses, of its own or of others.
    NameAddresses {
        liar: usize,
        victim: usize,
        about: usize,
        lie: AddressLie,
        unused: u8,
    },
}

/// The trial of a settled room; each has its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Nothing: the leader stays (P14).
    Quiet,
    /// Two sides of a room split and merge (P10).
    Heal,
    /// The leader leaves (P11).
    PoliteLeave,
    /// The leader transfers its leadership (P11).
    HandOver,
    /// One host calls `SetLeader` (P12).
    OneCall,
    /// Two hosts call it at once (P12).
    TwoCalls,
    /// The leader is deaf (P13).
    DeafLeader,
    /// The leader crashes (P9, P15, P18).
    CrashedLeader,
    /// A member joins (P16).
    Join,
    /// A minority has faults (P14).
    Minority,
}

/// The rules of a room, and the settings of its network and hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Timers of 200, 600 and 600 to 1200 ms instead of the default ones.
    pub fast: bool,
    pub highest_term: bool,
    pub leader_only: bool,
    pub auto_elect: bool,
    /// The quorum is static; the roster is [`Plan::roster`].
    pub fixed_voters: bool,
    pub member_hold_ms: u64,
    pub lateness_us: u64,
    pub delay_ms: (u64, u64),
    /// Whether the peer learns that a link was closed for silence. Otherwise it looks like the end of the process, which is still
    /// alive: the core must cope with that, but may consider a leader gone (G3). Older plans have another name for it.
    #[serde(alias = "silence_is_told")]
    pub silence_is_reported: bool,
    /// Whether processes of one place have one key.
    pub keeps_keys: bool,
}

/// Hosts' actions beside elections, as far as they affect these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Hosts {
    /// The room decides on newcomers, and sessions are counted, as in the library's driver.
    pub asked: bool,
    /// The leader's host decides on newcomers.
    pub decide: bool,
    /// Leaders send to all, and the others through the leader.
    pub talk: bool,
}

impl Hosts {
    fn are_silent(&self) -> bool {
        *self == Self::default()
    }
}

/// See the module's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Decides everything that the plan leaves open: names, delays, losses, timeouts.
    pub seed: u64,
    pub size: usize,
    pub rules: Rules,
    /// Places whose peers may not lead.
    pub observers: Vec<usize>,
    /// Rates of the places' clocks; places without one have a true clock.
    pub clocks: Vec<u32>,
    /// Priorities of the places.
    pub priorities: Vec<i32>,
    /// Two places that never reach each other; they know of each other through the others only.
    pub apart: Option<(usize, usize)>,
    /// Places without a process.
    #[serde(default)]
    pub absent: Vec<usize>,
    /// The places on the roster of a static quorum; if empty, all that are not observers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roster: Vec<usize>,
    /// Steps with their times in milliseconds, in order.
    pub steps: Vec<(u64, Step)>,
    /// The end of all faults.
    pub heal_at_ms: u64,
    pub phase: Phase,
    /// The room's strategy. Its own trial, if any, replaces `phase`.
    #[serde(default, skip_serializing_if = "StrategyPlan::is_default")]
    pub strategy: StrategyPlan,
    /// Members that lie, in places behind the others, until all faults end: whether each may lead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub liars: Vec<bool>,
    /// Advance of the places' wall clocks in milliseconds; places without one have a true clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wall_clocks: Vec<i64>,
    /// Places whose hosts use the other recovery than the rules (C4.5).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_recovery: Vec<usize>,
    /// Whether hosts do not interfere with elections when the network heals, so that a room may wait for one of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hosts_wait: bool,
    #[serde(default, skip_serializing_if = "Hosts::are_silent")]
    pub hosts: Hosts,
    /// Whether a place whose process has died refuses packets, and its system reports that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refuses: bool,
    /// Rooms begin in the term after this.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_term: u64,
    /// The walls of its room and the members that carry, if some pairs lack a direct path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<PathsPlan>,
    /// Disabled guards; only in experiments, and not in a plan's text.
    #[serde(skip)]
    pub guards: Guards,
}

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Crash,
    FastRestart,
    Leave,
    Pause,
    Partition,
    CutPair,
    Deaf,
    Flap,
    SetLeader,
    Storm,
    ToggleAuto,
    Delay,
    SlowLink,
    Datagrams,
    StreamLoss,
    Join,
    Reconnect,
    Observe,
    Kick,
    Limit,
    Priority,
    Transfer,
    SlowDisk,
}

const FAULTS: [Fault; 23] = [
    Fault::Crash,
    Fault::FastRestart,
    Fault::Leave,
    Fault::Pause,
    Fault::Partition,
    Fault::CutPair,
    Fault::Deaf,
    Fault::Flap,
    Fault::SetLeader,
    Fault::Storm,
    Fault::ToggleAuto,
    Fault::Delay,
    Fault::SlowLink,
    Fault::Datagrams,
    Fault::StreamLoss,
    Fault::Join,
    Fault::Reconnect,
    Fault::Observe,
    Fault::Kick,
    Fault::Limit,
    Fault::Priority,
    Fault::Transfer,
    Fault::SlowDisk,
];

const PHASES: [Phase; 10] = [
    Phase::Quiet,
    Phase::Heal,
    Phase::PoliteLeave,
    Phase::HandOver,
    Phase::OneCall,
    Phase::TwoCalls,
    Phase::DeafLeader,
    Phase::CrashedLeader,
    Phase::Join,
    Phase::Minority,
];

/// A room of this size is expensive: it has little time for faults.
pub(crate) const LARGE: usize = 100;

impl Plan {
    /// Whether these two places never reach each other.
    pub fn is_apart(&self, one: usize, other: usize) -> bool {
        self.apart
            .is_some_and(|pair| pair == (one, other) || pair == (other, one))
    }

    /// The plan of a seed.
    pub fn draw(seed: u64) -> Self {
        Self::draw_for(seed, None)
    }

    /// The plan of a seed, for a room of `size` places if given.
    pub fn draw_for(seed: u64, size: Option<usize>) -> Self {
        let mut plan = Self::draw_narrow(seed, size);
        if plan.rules.fixed_voters {
            statics::widen(&mut plan);
        }
        widen(&mut plan);
        plan
    }

    /// The plan without the additions of [`widen`], and without those for a static quorum.
    pub(crate) fn draw_narrow(seed: u64, size: Option<usize>) -> Self {
        let mut draw = Draw {
            rng: ChaCha8Rng::seed_from_u64(seed),
            size: size.unwrap_or(0),
            observers: Vec::new(),
            steps: Vec::new(),
        };
        held::draw(draw.plan(seed))
    }

    /// The settings of its room.
    pub fn settings(&self) -> Settings {
        let rules = &self.rules;
        let mut settings = Settings {
            delay: (ms(rules.delay_ms.0), ms(rules.delay_ms.1)),
            lateness: Duration::from_micros(rules.lateness_us),
            member_hold: ms(rules.member_hold_ms),
            guards: self.guards,
            hosts: self.hosts,
            ..Settings::default()
        };
        if rules.highest_term {
            settings.merge = MergePolicy::HighestTerm;
        }
        if rules.leader_only {
            settings.authority = Authority::LeaderOnly;
        }
        if rules.auto_elect {
            settings.recovery = Recovery::AutoElect;
        }
        if rules.fixed_voters {
            let voter = |slot: &usize| !self.observers.contains(slot);
            settings.roster = Some(if self.roster.is_empty() {
                let voters = (0..self.size).filter(voter);
                voters.take(MAX_ROSTER_VOTERS).collect()
            } else {
                self.roster.iter().copied().collect()
            });
        }
        if rules.fast {
            settings.heartbeat_interval = ms(200);
            settings.heartbeat_timeout = ms(600);
            settings.election_timeout_min = ms(600);
            settings.election_timeout_max = ms(1200);
        }
        self.strategy.apply(&mut settings);
        settings
    }

    /// The plan as one line, which [`Plan::parse`] reads.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a plan.
    ///
    /// # Errors
    /// The fault in the text.
    pub fn parse(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(number: &u64) -> bool {
    *number == 0
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

struct Draw {
    rng: ChaCha8Rng,
    size: usize,
    observers: Vec<usize>,
    steps: Vec<(u64, Step)>,
}

impl Draw {
    fn plan(&mut self, seed: u64) -> Plan {
        let drawn = self.draw_size();
        if self.size == 0 {
            self.size = drawn;
        }
        let size = self.size;
        if self.chance(0.1) {
            // The first place stays eligible, so that one can lead.
            self.observers = (1..size).filter(|_| self.rng.random_bool(0.3)).collect();
        }
        let rules = self.rules();
        let clocks = if self.chance(0.5) {
            let rate = |rng: &mut ChaCha8Rng| {
                let away = rng.random_range(0..=2 * MAX_DEVIATION_PPM);
                Clock::TRUE - MAX_DEVIATION_PPM + away
            };
            (0..size).map(|_| rate(&mut self.rng)).collect()
        } else {
            Vec::new()
        };
        let priorities = if self.chance(0.2) {
            (0..size).map(|_| self.rng.random_range(-1..=1)).collect()
        } else {
            Vec::new()
        };
        // Of two fixed voters that never reach each other none can be elected.
        let enough = !rules.fixed_voters || size - self.observers.len() > 2;
        let apart = (size > 2 && size < LARGE && enough && self.chance(0.15)).then(|| {
            let one = self.rng.random_range(0..size);
            (one, (one + self.rng.random_range(1..size)) % size)
        });
        let share = self.pick(&[0.15, 0.4, 0.8]);
        let faults: Vec<Fault> = FAULTS.into_iter().filter(|_| self.chance(share)).collect();
        let pace = self.pick(&[300, 1_000, 3_000, 6_000]);
        let heal_at_ms = match size {
            LARGE => self.between(7_000, 9_000),
            8.. => self.between(5_000, 12_000),
            _ => self.between(4_000, 25_000),
        };
        self.gather(faults.contains(&Fault::Join));
        let mut at = 0;
        while !faults.is_empty() {
            at += self.between(1, pace);
            if at >= heal_at_ms {
                break;
            }
            let fault = self.pick(&faults);
            self.inflict(at, fault);
        }
        self.steps.sort_by_key(|(at, _)| *at);
        Plan {
            seed,
            size,
            rules,
            observers: std::mem::take(&mut self.observers),
            clocks,
            priorities,
            apart,
            absent: Vec::new(),
            roster: Vec::new(),
            steps: std::mem::take(&mut self.steps),
            heal_at_ms,
            phase: self.pick(&PHASES),
            strategy: StrategyPlan::Raft,
            liars: Vec::new(),
            wall_clocks: Vec::new(),
            other_recovery: Vec::new(),
            hosts_wait: false,
            hosts: Hosts::default(),
            refuses: false,
            first_term: 0,
            paths: None,
            guards: Guards::ALL,
        }
    }

    fn draw_size(&mut self) -> usize {
        match self.rng.random_range(0..1000) {
            0..2 => LARGE,
            2..50 => self.rng.random_range(8..=16),
            _ => self.pick(&[1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 7]),
        }
    }

    fn rules(&mut self) -> Rules {
        let fixed_voters = self.chance(0.2);
        let member_hold_ms = if self.size < LARGE && self.chance(0.25) {
            self.between(1_000, 8_000)
        } else {
            60_000
        };
        let delay_ms = self.delay();
        Rules {
            fast: self.chance(0.1),
            highest_term: self.chance(0.15),
            leader_only: self.chance(0.15),
            auto_elect: self.chance(0.5),
            fixed_voters,
            member_hold_ms,
            lateness_us: self.between(0, 3_000),
            delay_ms,
            silence_is_reported: self.chance(0.85),
            keeps_keys: fixed_voters || self.chance(0.5),
        }
    }

    fn delay(&mut self) -> (u64, u64) {
        let most = self.pick(&[2, 10, 40, 150]);
        (self.between(1, most), most)
    }

    /// All places start within the first seconds, or join later.
    fn gather(&mut self, late: bool) {
        let together = self.chance(0.2);
        self.steps.push((
            0,
            Step::Start {
                slot: 0,
                contact: 0,
            },
        ));
        for slot in 1..self.size {
            if late && self.chance(0.3) {
                continue;
            }
            let at = if together { 0 } else { self.between(0, 4_000) };
            let contact = self.slot();
            self.steps.push((at, Step::Start { slot, contact }));
        }
    }

    fn inflict(&mut self, at: u64, fault: Fault) {
        let slot = self.slot();
        let other = self.slot();
        let who = if self.chance(0.25) {
            Who::Leader
        } else {
            Who::Slot(slot)
        };
        let step = match fault {
            Fault::Crash => Step::Crash {
                who,
                back_ms: self.between(100, 8_000),
            },
            Fault::FastRestart => Step::Crash {
                who,
                back_ms: self.between(0, 300),
            },
            Fault::Leave => Step::Leave {
                who,
                back_ms: self.between(2_100, 8_000),
            },
            Fault::Pause => Step::Pause {
                who,
                for_ms: self.between(50, 5_000),
            },
            Fault::Partition => return self.partition(at),
            Fault::CutPair => {
                let for_ms = self.between(100, 8_000);
                if self.chance(0.5) {
                    self.cut(at, vec![other], vec![slot], for_ms);
                }
                return self.cut(at, vec![slot], vec![other], for_ms);
            }
            Fault::Deaf => {
                let deaf = self.chance(0.7);
                Step::Isolate {
                    who,
                    deaf,
                    mute: !deaf,
                    for_ms: self.between(500, 8_000),
                }
            }
            Fault::Flap => Step::Flap {
                slot,
                other: self.chance(0.5).then_some(other),
                period_ms: self.pick(&[100, 700, 1_600, 4_000]),
                times: self.between(2, 5),
            },
            Fault::SetLeader => Step::SetLeader {
                calls: vec![(slot, other)],
            },
            Fault::Storm => {
                let count = self.between(2, 4);
                let calls = (0..count).map(|_| (self.slot(), self.slot())).collect();
                Step::SetLeader { calls }
            }
            Fault::ToggleAuto => Step::Auto {
                slot,
                enabled: self.chance(0.5),
            },
            Fault::Delay => {
                let (least_ms, most_ms) = self.delay();
                Step::Delay { least_ms, most_ms }
            }
            Fault::SlowLink => Step::SlowLink {
                from: slot,
                to: other,
                more_ms: self.pick(&[0, 5, 30, 100]),
            },
            Fault::Datagrams => Step::Datagrams {
                loss: self.rng.random_range(0..60),
                copies: self.rng.random_range(0..50),
            },
            Fault::StreamLoss => Step::StreamLoss {
                loss: self.pick(&[0, 1, 5, 20]),
            },
            Fault::Join => Step::Start {
                slot,
                contact: other,
            },
            Fault::Reconnect => Step::Connect {
                from: slot,
                to: other,
            },
            Fault::Observe => Step::Observe {
                slot,
                eligible: self.chance(0.5),
            },
            Fault::Kick => Step::Kick { victim: slot },
            Fault::Limit => Step::Limit {
                max_peers: self.rng.random_range(0..100),
            },
            Fault::Priority => Step::Priority {
                slot,
                priority: self.rng.random_range(-2..=2),
            },
            Fault::Transfer if self.chance(0.3) => Step::Yield,
            Fault::Transfer => Step::Transfer { target: other },
            Fault::SlowDisk => Step::SlowDisk {
                most_ms: self.pick(&[1, 20, 200, 1_000]),
            },
        };
        self.steps.push((at, step));
    }

    /// Splits the places into two groups, both ways or one way.
    fn partition(&mut self, at: u64) {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for slot in 0..self.size {
            if self.chance(0.5) {
                one.push(slot);
            } else {
                other.push(slot);
            }
        }
        let for_ms = self.between(100, 8_000);
        if !self.chance(0.25) {
            self.cut(at, other.clone(), one.clone(), for_ms);
        }
        self.cut(at, one, other, for_ms);
    }

    fn cut(&mut self, at: u64, from: Vec<usize>, to: Vec<usize>, for_ms: u64) {
        self.steps.push((at, Step::Cut { from, to, for_ms }));
    }

    fn slot(&mut self) -> usize {
        self.rng.random_range(0..self.size)
    }

    fn chance(&mut self, share: f64) -> bool {
        self.rng.random_bool(share)
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        self.rng.random_range(least..=most.max(least))
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *from.choose(&mut self.rng).expect("not empty")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        for seed in 0..200 {
            let plan = Plan::draw(seed);
            assert_eq!(Plan::parse(&plan.to_line()), Ok(plan));
        }
        assert!(Plan::parse("{\"seed\":1}").is_err());
    }

    #[test]
    fn sizes_are_mostly_small_and_sometimes_large() {
        let sizes: Vec<usize> = (0..5_000)
            .map(|seed| Plan::draw_narrow(seed, None).size)
            .collect();
        let share = |of: &dyn Fn(usize) -> bool| {
            sizes.iter().filter(|size| of(**size)).count() as f64 / sizes.len() as f64
        };
        assert!((0.94..0.96).contains(&share(&|size| size <= 7)));
        assert!((0.04..0.06).contains(&share(&|size| (8..=16).contains(&size))));
        assert!((0.000_5..0.005).contains(&share(&|size| size == 100)));
    }
}
