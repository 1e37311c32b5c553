//! Who is linked, since when, how far away, and whether it is still alive.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use super::id::{Fingerprint, Incarnation, PeerId};
use super::time::{Duration, Time};
use super::wire::{Echo, Heartbeat, Opaque};

/// Heartbeats whose send time is remembered for the round trip.
const MAX_OPEN_HEARTBEATS: usize = 16;
/// Probes that are sent before a silent peer is given up. A probe and its answer are lost together with one packet of
/// either: at 5 % loss three probes miss a living peer once in a thousand silences, six once in a million.
const PROBES: u32 = 6;
/// The first probe goes out so long before the loss, at least.
const MIN_PROBE_LEAD: Duration = Duration::from_millis(100);

/// Smoothed round-trip time and its variation (RFC 6298 section 2: a new sample has weight 1/8 in the first and 1/4
/// in the second).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
}

impl RttEstimator {
    /// The smoothed round trip; `None` before the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The mean deviation of the samples (RTTVAR); `None` before the first sample, after which it is half of that.
    pub fn variation(&self) -> Option<Duration> {
        self.smoothed.map(|_| self.variation)
    }

    fn sample(&mut self, sample: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(sample);
                self.variation = sample / 2;
            }
            Some(smoothed) => {
                // The variation first, against the round trip as it was.
                self.variation = (self.variation * 3 + smoothed.abs_diff(sample)) / 4;
                self.smoothed = Some((smoothed * 7 + sample) / 8);
            }
        }
    }
}

/// A linked peer.
#[derive(Debug, Clone)]
pub struct Member {
    /// Which incarnation of it.
    pub incarnation: Incarnation,
    /// Its key.
    pub key: Fingerprint,
    /// Where others may reach it, as far as known here.
    pub addresses: Vec<SocketAddr>,
    /// Whether the room ends with it.
    pub is_host: bool,
    /// Whether it is linked through the leader: it has no part in elections here.
    pub through_leader: bool,
    /// Its round-trip time.
    pub rtt: RttEstimator,
    last_heard: Time,
    next_seq: u64,
    open: VecDeque<(u64, Time)>,
    newest: Option<(u64, Time)>,
    answered_first: bool,
    probes_sent: u32,
    probe_at: Time,
}

impl Member {
    /// A peer whose link came up now.
    pub fn new(
        incarnation: Incarnation,
        key: Fingerprint,
        addresses: Vec<SocketAddr>,
        now: Time,
    ) -> Self {
        Self {
            incarnation,
            key,
            addresses,
            is_host: false,
            through_leader: false,
            rtt: RttEstimator::default(),
            last_heard: now,
            next_seq: 0,
            open: VecDeque::new(),
            newest: None,
            answered_first: false,
            probes_sent: 0,
            probe_at: now,
        }
    }

    /// Any authenticated sign of life.
    pub fn heard(&mut self, now: Time) {
        self.last_heard = self.last_heard.max(now);
        self.probes_sent = 0;
    }

    /// The next heartbeat to this peer.
    pub fn next_heartbeat(&mut self, now: Time, pulse: Opaque) -> Heartbeat {
        let seq = self.next_seq;
        self.next_seq += 1;
        if self.open.len() == MAX_OPEN_HEARTBEATS {
            self.open.pop_front();
        }
        self.open.push_back((seq, now));
        Heartbeat {
            seq,
            echo: self.newest.map(|(seq, at)| Echo {
                seq,
                held_us: now.since(at).as_micros().try_into().unwrap_or(u64::MAX),
            }),
            pulse,
        }
    }

    /// Takes the sequence and echo of a heartbeat; tells whether it should be answered at once (the first
    /// one is, so that both ends know the round trip without waiting for an interval).
    pub fn heartbeat_received(&mut self, now: Time, seq: u64, echo: Option<Echo>) -> bool {
        if self.newest.is_none_or(|(newest, _)| seq > newest) {
            self.newest = Some((seq, now));
        }
        if let Some(echo) = echo {
            self.echo_received(now, echo);
        }
        !std::mem::replace(&mut self.answered_first, true)
    }

    fn echo_received(&mut self, now: Time, echo: Echo) {
        let Some(index) = self.open.iter().position(|(seq, _)| *seq == echo.seq) else {
            return;
        };
        let (_, sent_at) = self.open[index];
        self.open.drain(..=index);
        // A peer that claims to have held it longer than it was away gives no sample.
        if let Some(rtt) = now
            .since(sent_at)
            .checked_sub(Duration::from_micros(echo.held_us))
        {
            self.rtt.sample(rtt);
        }
    }

    fn lost_at(&self, timeout: Duration) -> Time {
        self.last_heard + timeout
    }

    /// When the next probe is due: six, a little over a round trip apart, so that even the last can be answered before the
    /// loss: the first max(100 ms, 7 round trips) before it, but not before one interval of silence.
    fn next_probe_at(&self, interval: Duration, timeout: Duration) -> Option<Time> {
        if self.probes_sent >= PROBES {
            return None;
        }
        if self.probes_sent > 0 {
            return Some(self.probe_at);
        }
        let rtt = self.rtt.smoothed().unwrap_or(MIN_PROBE_LEAD);
        let lead = MIN_PROBE_LEAD.max(rtt * (PROBES + 1));
        Some((self.lost_at(timeout) - lead).max(self.last_heard + interval))
    }
}

/// What became due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// Ask the peer by datagram whether it lives.
    Probe(PeerId),
    /// The peer was silent for the whole timeout.
    Lost(PeerId),
}

/// The linked peers.
#[derive(Debug, Clone)]
pub struct Membership {
    interval: Duration,
    timeout: Duration,
    members: BTreeMap<PeerId, Member>,
}

impl Membership {
    /// Nobody yet. A peer is lost after `timeout` of silence.
    pub fn new(interval: Duration, timeout: Duration) -> Self {
        Self {
            interval,
            timeout,
            members: BTreeMap::new(),
        }
    }

    /// The linked peers by name.
    pub fn iter(&self) -> impl Iterator<Item = (&PeerId, &Member)> {
        self.members.iter()
    }

    /// How many are linked.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether nobody is linked.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The linked peer of that name.
    pub fn get(&self, id: &PeerId) -> Option<&Member> {
        self.members.get(id)
    }

    /// The same, if it has a link of its own.
    pub fn direct(&self, id: &PeerId) -> Option<&Member> {
        self.get(id).filter(|member| !member.through_leader)
    }

    pub(super) fn get_mut(&mut self, id: &PeerId) -> Option<&mut Member> {
        self.members.get_mut(id)
    }

    pub(super) fn insert(&mut self, id: PeerId, member: Member) {
        self.members.insert(id, member);
    }

    pub(super) fn remove(&mut self, id: &PeerId) -> Option<Member> {
        self.members.remove(id)
    }

    pub(super) fn ids(&self) -> Vec<PeerId> {
        self.members.keys().cloned().collect()
    }

    /// When [`Membership::due`] has something to say next.
    pub fn next_deadline(&self) -> Option<Time> {
        self.members
            .values()
            .flat_map(|member| {
                [
                    Some(member.lost_at(self.timeout)),
                    member.next_probe_at(self.interval, self.timeout),
                ]
            })
            .flatten()
            .min()
    }

    /// Probes and losses that are due. A probe is counted as sent.
    pub fn due(&mut self, now: Time) -> Vec<Due> {
        let mut due = Vec::new();
        for (id, member) in &mut self.members {
            if now >= member.lost_at(self.timeout) {
                due.push(Due::Lost(id.clone()));
            } else if member
                .next_probe_at(self.interval, self.timeout)
                .is_some_and(|at| now >= at)
            {
                member.probes_sent += 1;
                let apart = member.rtt.smoothed().unwrap_or_default();
                // On a fast link the probes would go out at once; spread them over the time left.
                let left = member.lost_at(self.timeout).since(now);
                let probes_left = PROBES - member.probes_sent;
                member.probe_at = now + apart.max(left / (probes_left + 1));
                due.push(Due::Probe(id.clone()));
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(500);
    const TIMEOUT: Duration = Duration::from_millis(1500);

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1000)
    }

    fn member() -> Member {
        let incarnation = Incarnation {
            started_us: 1,
            random: 1,
        };
        Member::new(incarnation, Fingerprint([0; 32]), Vec::new(), at(0))
    }

    #[test]
    fn s18_the_round_trip_leaves_out_the_time_that_the_peer_held_the_heartbeat() {
        let mut member = member();
        let heartbeat = member.next_heartbeat(at(1000), Opaque::default());
        let echo = Echo {
            seq: heartbeat.seq,
            held_us: 400_000,
        };
        member.heartbeat_received(at(1440), 7, Some(echo));
        assert_eq!(member.rtt.smoothed(), Some(Duration::from_millis(40)));
        assert_eq!(member.rtt.variation(), Some(Duration::from_millis(20)));
        let heartbeat = member.next_heartbeat(at(2000), Opaque::default());
        assert_eq!(
            heartbeat.echo.map(|echo| (echo.seq, echo.held_us)),
            Some((7, 560_000))
        );
        let echo = Echo {
            seq: heartbeat.seq,
            held_us: 0,
        };
        member.heartbeat_received(at(2120), 8, Some(echo));
        // 7/8 of 40 ms and 1/8 of 120 ms
        assert_eq!(member.rtt.smoothed(), Some(Duration::from_millis(50)));
        // 3/4 of 20 ms and 1/4 of the 80 ms between the sample and the 40 ms before
        assert_eq!(member.rtt.variation(), Some(Duration::from_millis(35)));
    }

    #[test]
    fn an_echo_that_lies_gives_no_sample() {
        let mut member = member();
        let heartbeat = member.next_heartbeat(at(0), Opaque::default());
        let held_longer_than_away = Echo {
            seq: heartbeat.seq,
            held_us: 11_000,
        };
        member.heartbeat_received(at(10), 0, Some(held_longer_than_away));
        let never_sent = Echo {
            seq: 99,
            held_us: 0,
        };
        member.heartbeat_received(at(10), 1, Some(never_sent));
        assert_eq!(member.rtt.smoothed(), None);
    }

    #[test]
    fn s18_m2_a_silent_peer_is_probed_six_times_and_then_lost() {
        let id = PeerId::new("p").expect("valid");
        let mut membership = Membership::new(INTERVAL, TIMEOUT);
        membership.insert(id.clone(), member());
        let mut seen = Vec::new();
        while let Some(deadline) = membership.next_deadline() {
            for due in membership.due(deadline) {
                if due == Due::Lost(id.clone()) {
                    membership.remove(&id);
                }
                seen.push((deadline.as_micros() / 1000, due));
            }
        }
        // A round trip that is not known yet counts as 100 ms.
        let probes = [800, 916, 1033, 1149, 1266, 1383].map(|ms| (ms, Due::Probe(id.clone())));
        assert_eq!(seen[..6], probes);
        assert_eq!(seen[6..], [(1500, Due::Lost(id))]);
    }

    #[test]
    fn s18_m19_a_sign_of_life_starts_the_timeout_anew() {
        let id = PeerId::new("p").expect("valid");
        let mut membership = Membership::new(INTERVAL, TIMEOUT);
        membership.insert(id.clone(), member());
        assert_eq!(membership.due(at(1300)), vec![Due::Probe(id.clone())]);
        if let Some(member) = membership.get_mut(&id) {
            member.heard(at(1350));
        }
        assert_eq!(membership.due(at(1500)), vec![]);
        assert_eq!(membership.due(at(2850)), vec![Due::Lost(id)]);
    }

    #[test]
    fn only_the_last_heartbeats_are_remembered() {
        let mut member = member();
        for ms in 0..1000 {
            member.next_heartbeat(at(ms), Opaque::default());
        }
        assert_eq!(member.open.len(), MAX_OPEN_HEARTBEATS);
    }
}
