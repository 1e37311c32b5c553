//! One direction between two hosts: the fate of a frame on it. Pure: time and randomness are arguments.

use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Settings of a direction. The default is a perfect line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) delay: Duration,
    /// Each frame waits up to this long in addition (uniformly distributed), so that frames overtake each other.
    pub(crate) jitter: Duration,
    /// The probability that a frame is lost.
    pub(crate) loss: f64,
    /// The probability that a frame arrives twice.
    pub(crate) duplicate: f64,
    /// The probability that a frame skips delay and jitter, and so overtakes others.
    pub(crate) reorder: f64,
    /// None is unlimited.
    pub(crate) bits_per_second: Option<u64>,
    /// Bytes that may wait for their turn at a limited rate; further frames are dropped (tail drop).
    pub(crate) queue_bytes: u64,
    /// Drops all frames.
    pub(crate) cut: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            bits_per_second: None,
            queue_bytes: 256 << 10,
            cut: false,
        }
    }
}

/// Counters of the frames of a direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) delivered: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) lost: u64,
    /// Found the queue of a limited rate full.
    pub(crate) dropped: u64,
    pub(crate) duplicated: u64,
    /// Came or would have arrived during a cut.
    pub(crate) cut: u64,
    /// Arrived more than 1 ms after its time: the switch itself was too slow.
    pub(crate) late: u64,
}

/// A direction: its settings and its state.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) settings: Settings,
    pub(crate) counters: Counters,
    random: ChaCha8Rng,
    /// Time at which the last waiting bit will have been sent.
    busy_until: Duration,
}

/// Arrival times of a frame and its duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    DownReason,
    Arrives(Duration, Option<Duration>),
}

impl Line {
    pub(crate) fn new(random: ChaCha8Rng) -> Self {
        Self {
            settings: Settings::default(),
            counters: Counters::default(),
            random,
            busy_until: Duration::ZERO,
        }
    }

    /// Puts a frame of this size on the line.
    pub(crate) fn send(&mut self, now: Duration, bytes: usize) -> Fate {
        if self.settings.cut {
            self.counters.cut += 1;
            return Fate::DownReason;
        }
        let Some(sent) = self.transmit(now, bytes as u64) else {
            self.counters.dropped += 1;
            return Fate::DownReason;
        };
        // After the queue: a frame that gets lost on the line has taken its time there.
        if self.happens(self.settings.loss) {
            self.counters.lost += 1;
            return Fate::DownReason;
        }
        let duplicate = self.happens(self.settings.duplicate).then(|| {
            self.counters.duplicated += 1;
            sent + self.latency()
        });
        Fate::Arrives(sent + self.latency(), duplicate)
    }

    /// Like [`Self::send`], for address resolution (ARP), which is only delayed, and cut. Hosts of the internet send none between
    /// each other: here it must neither get lost nor change the fates of other frames.
    pub(crate) fn resolve(&mut self, now: Duration) -> Fate {
        if self.settings.cut {
            self.counters.cut += 1;
            return Fate::DownReason;
        }
        Fate::Arrives(now + self.settings.delay, None)
    }

    /// Time at which the last bit of the frame has left, at the rate; None if the queue is full.
    fn transmit(&mut self, now: Duration, bytes: u64) -> Option<Duration> {
        let Some(rate) = self.settings.bits_per_second else {
            return Some(now);
        };
        let waiting = self.busy_until.saturating_sub(now);
        let waiting_bytes = waiting.as_nanos() * u128::from(rate) / 8 / 1_000_000_000;
        // An empty queue takes any frame.
        if waiting_bytes > 0 && waiting_bytes + u128::from(bytes) > self.settings.queue_bytes.into()
        {
            return None;
        }
        let takes = Duration::from_nanos(bytes * 8 * 1_000_000_000 / rate);
        self.busy_until = self.busy_until.max(now) + takes;
        Some(self.busy_until)
    }

    fn latency(&mut self) -> Duration {
        if self.happens(self.settings.reorder) {
            return Duration::ZERO;
        }
        self.settings.delay + self.settings.jitter.mul_f64(self.random.random::<f64>())
    }

    fn happens(&mut self, probability: f64) -> bool {
        // Draws only if it may happen, so that the number of draws does not affect a line without loss.
        probability > 0.0 && self.random.random_bool(probability)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn line(settings: Settings) -> Line {
        let mut line = Line::new(ChaCha8Rng::seed_from_u64(1));
        line.settings = settings;
        line
    }

    #[test]
    fn a_perfect_line_delivers_at_once() {
        let mut line = line(Settings::default());
        assert_eq!(line.send(MS, 1500), Fate::Arrives(MS, None));
    }

    #[test]
    fn jitter_is_added_to_the_delay() {
        let mut line = line(Settings {
            delay: 25 * MS,
            jitter: 10 * MS,
            ..Settings::default()
        });
        let mut sum = Duration::ZERO;
        for _ in 0..10_000 {
            let Fate::Arrives(at, None) = line.send(MS, 100) else {
                panic!("lost");
            };
            assert!((26 * MS..=36 * MS).contains(&at));
            sum += at - MS;
        }
        let mean = sum / 10_000;
        assert!(mean.abs_diff(30 * MS) < MS / 5, "{mean:?}");
    }

    #[test]
    fn loss_and_duplicates_come_as_often_as_asked() {
        let mut line = line(Settings {
            loss: 0.02,
            duplicate: 0.01,
            ..Settings::default()
        });
        for _ in 0..100_000 {
            line.send(MS, 100);
        }
        // 4 sigma.
        assert!(
            line.counters.lost.abs_diff(2000) < 177,
            "{:?}",
            line.counters
        );
        assert!(
            line.counters.duplicated.abs_diff(980) < 126,
            "{:?}",
            line.counters
        );
    }

    #[test]
    fn a_rate_spaces_frames_and_a_full_queue_drops_the_newest() {
        let mut line = line(Settings {
            bits_per_second: Some(8_000_000),
            queue_bytes: 3000,
            ..Settings::default()
        });
        // A byte takes a microsecond.
        assert_eq!(line.send(MS, 1000), Fate::Arrives(2 * MS, None));
        assert_eq!(line.send(MS, 1000), Fate::Arrives(3 * MS, None));
        assert_eq!(line.send(MS, 1000), Fate::Arrives(4 * MS, None));
        assert_eq!(line.send(MS, 1000), Fate::DownReason);
        assert_eq!(line.counters.dropped, 1);
        assert_eq!(line.send(2 * MS, 1000), Fate::Arrives(5 * MS, None));
        assert_eq!(line.send(9 * MS, 1000), Fate::Arrives(10 * MS, None));
    }

    #[test]
    fn a_reordered_frame_skips_the_delay() {
        let mut line = line(Settings {
            delay: 25 * MS,
            reorder: 1.0,
            ..Settings::default()
        });
        assert_eq!(line.send(MS, 100), Fate::Arrives(MS, None));
    }

    #[test]
    fn nothing_passes_a_cut() {
        let mut line = line(Settings {
            cut: true,
            ..Settings::default()
        });
        assert_eq!(line.send(MS, 100), Fate::DownReason);
        assert_eq!(line.resolve(MS), Fate::DownReason);
        assert_eq!(line.counters.cut, 2);
    }

    #[test]
    fn address_resolution_is_delayed_and_never_lost() {
        let mut line = line(Settings {
            delay: 25 * MS,
            jitter: 5 * MS,
            loss: 1.0,
            ..Settings::default()
        });
        assert_eq!(line.resolve(MS), Fate::Arrives(26 * MS, None));
    }
}
