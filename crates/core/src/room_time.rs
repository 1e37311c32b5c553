//! The room's time: one clock for all members, in microseconds. Heartbeats carry it.
//!
//! A member runs its line at the rate of its own clock from its opening on. It follows the leader's time: it corrects small
//! differences by running up to a twentieth faster or slower, and jumps to a time that is clearly ahead. So the time never goes
//! back. A leader follows no one, but takes the time of a member that is clearly ahead: the room of that member was older.

use std::collections::VecDeque;

use super::id::PeerId;
use super::time::{Duration, Time};

/// A member that is behind by more than this, and by more than the measurement may be wrong, jumps ahead.
pub const JUMP_US: u64 = 100_000;
/// A correction takes at least this number of times as long as the difference is.
const SLEW: u64 = 20;
/// The shortest time over which a difference is corrected: an interval of heartbeats.
const MIN_SLEW_US: u64 = 500_000;
/// Two clocks may drift apart by one microsecond in this number: each is off by a thousandth at most.
const DRIFT: u64 = 500;
/// Maximum of a correction, in either direction; what remains follows with the next heartbeat.
const MAX_CORRECTION_US: i64 = 3_600_000_000;
/// A longer round trip measures nothing.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(60);
/// Measurements that are remembered. The one with the smallest error counts.
const MAX_SAMPLES: usize = 8;
/// Maximum of a leader's time. The counter overflows only a hundred thousand years later.
pub const MAX_LEADER_US: u64 = 1 << 62;
/// Maximum of a time that a leader takes from a member: ten years.
pub const MAX_MEMBER_US: u64 = 10 * 365 * 86_400 * 1_000_000;
/// Minimum time between two times of one member that a leader takes.
pub const MEMBER_INTERVAL: Duration = Duration::from_secs(60);

/// The room's time as a function of a member's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    from: Time,
    shown_us: u64,
    /// The correction that is complete `over_us` after `from`.
    correction_us: i64,
    over_us: u64,
    /// Error at `from` without the correction; it grows with the drift. `None` if nothing is known.
    error_us: Option<u64>,
    /// Whether the error grows: the time is another member's.
    drifts: bool,
}

impl Line {
    fn starting(from: Time, shown_us: u64) -> Self {
        Self {
            from,
            shown_us,
            correction_us: 0,
            over_us: 0,
            error_us: None,
            drifts: false,
        }
    }

    /// The room's time, in microseconds.
    pub fn at(&self, now: Time) -> u64 {
        let passed = micros(now.since(self.from));
        let corrected = self.corrected(passed);
        let shown = self.shown_us.saturating_add(passed);
        shown.saturating_add_signed(corrected)
    }

    /// Maximum difference to the leader's time, 0 at the leader; `None` while no leader is known or nothing was measured.
    pub fn error(&self, now: Time) -> Option<Duration> {
        let passed = micros(now.since(self.from));
        let left = self.correction_us - self.corrected(passed);
        let drift = match self.drifts {
            true => passed.div_ceil(DRIFT),
            false => 0,
        };
        let error = self.error_us?;
        let error = error
            .saturating_add(drift)
            .saturating_add(left.unsigned_abs());
        Some(Duration::from_micros(error))
    }

    fn corrected(&self, passed: u64) -> i64 {
        if passed >= self.over_us {
            return self.correction_us;
        }
        let part = i128::from(self.correction_us) * i128::from(passed) / i128::from(self.over_us);
        // The part of a correction is smaller than the correction.
        i64::try_from(part).unwrap_or(self.correction_us)
    }

    /// The line that goes on from here at the rate of the clock.
    fn settled(&self, now: Time) -> Self {
        Self::starting(now, self.at(now))
    }
}

/// A member whose time this one follows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    None,
    Oneself,
    Leader(PeerId),
}

/// The leader's time as one heartbeat showed it.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Time,
    theirs_us: u64,
    error_us: u64,
}

impl Sample {
    /// From a time that its owner sent before it arrived, when the round trip took that long.
    fn new(at: Time, sent_us: u64, round_trip: Duration) -> Self {
        let half = micros(round_trip).div_ceil(2);
        Self {
            at,
            theirs_us: sent_us.saturating_add(half),
            error_us: half,
        }
    }

    fn theirs(&self, now: Time) -> u64 {
        self.theirs_us.saturating_add(micros(now.since(self.at)))
    }

    fn error(&self, now: Time) -> u64 {
        let drift = micros(now.since(self.at)).div_ceil(DRIFT);
        self.error_us.saturating_add(drift)
    }
}

/// The room's time at one member.
#[derive(Debug)]
pub struct RoomTime {
    line: Line,
    source: Source,
    samples: VecDeque<Sample>,
}

impl RoomTime {
    /// The time of a member that opens its room now.
    pub fn new(now: Time) -> Self {
        Self {
            line: Line::starting(now, 0),
            source: Source::None,
            samples: VecDeque::new(),
        }
    }

    /// The time until the next heartbeat.
    pub fn line(&self) -> Line {
        self.line
    }

    /// Notes whom this member follows.
    pub fn follow(&mut self, now: Time, me: &PeerId, leader: Option<&PeerId>) {
        let is_same = match (&self.source, leader) {
            (Source::None, None) => true,
            (Source::Oneself, Some(leader)) => leader == me,
            (Source::Leader(followed), Some(leader)) => followed == leader,
            _ => false,
        };
        if is_same {
            return;
        }
        self.source = match leader {
            None => Source::None,
            Some(leader) if leader == me => Source::Oneself,
            Some(leader) => Source::Leader(leader.clone()),
        };
        self.samples.clear();
        self.line = self.line.settled(now);
        if self.source == Source::Oneself {
            self.line.error_us = Some(0);
        }
    }

    /// Handles the time in a peer's heartbeat. `may_lift` if a leader may take it from a member. Returns whether it did.
    pub fn received(
        &mut self,
        now: Time,
        from: &PeerId,
        sent_us: u64,
        round_trip: Duration,
        may_lift: bool,
    ) -> bool {
        if round_trip > MAX_ROUND_TRIP {
            return false;
        }
        match &self.source {
            Source::Leader(leader) if leader == from && sent_us <= MAX_LEADER_US => {
                self.follow_sample(now, Sample::new(now, sent_us, round_trip));
                false
            }
            Source::Oneself if may_lift && sent_us <= MAX_MEMBER_US => {
                self.take_from_member(now, Sample::new(now, sent_us, round_trip), sent_us)
            }
            _ => false,
        }
    }

    fn follow_sample(&mut self, now: Time, sample: Sample) {
        // The leader has jumped: earlier measurements are of another time.
        self.samples.retain(|earlier| {
            let apart = earlier.theirs(now).abs_diff(sample.theirs_us);
            apart <= earlier.error(now).saturating_add(sample.error_us)
        });
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        let best = self.samples.iter().min_by_key(|sample| sample.error(now));
        let best = *best.unwrap_or(&sample);
        self.steer(now, best.theirs(now), best.error(now));
    }

    fn steer(&mut self, now: Time, theirs_us: u64, error_us: u64) {
        let mut line = self.line.settled(now);
        let ahead = theirs_us.saturating_sub(line.shown_us);
        let mut left_us = 0;
        if ahead > JUMP_US.saturating_add(error_us) {
            line.shown_us = theirs_us;
        } else {
            let difference = i128::from(theirs_us) - i128::from(line.shown_us);
            let limit = i128::from(MAX_CORRECTION_US);
            let limited = difference.clamp(-limit, limit);
            line.correction_us = i64::try_from(limited).unwrap_or(0);
            left_us = u64::try_from((difference - limited).unsigned_abs()).unwrap_or(u64::MAX);
            let apart = line.correction_us.unsigned_abs();
            line.over_us = apart.saturating_mul(SLEW).max(MIN_SLEW_US);
        }
        line.error_us = Some(error_us.saturating_add(left_us));
        line.drifts = true;
        self.line = line;
    }

    fn take_from_member(&mut self, now: Time, sample: Sample, sent_us: u64) -> bool {
        // Its time was that when it sent the heartbeat; now it is later.
        if sent_us <= self.line.at(now).saturating_add(JUMP_US) {
            return false;
        }
        self.line = Line::starting(now, sample.theirs_us);
        self.line.error_us = Some(0);
        true
    }
}

/// `duration` in whole microseconds, saturating.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
