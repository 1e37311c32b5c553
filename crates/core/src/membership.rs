//! Who is linked, since when, how far away, and whether it is still alive.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use super::id::{Fingerprint, Incarnation, PeerId};
use super::path::Path;
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
    /// How its packets travel.
    pub path: Path,
    /// Whether somebody else wants its id, and it gave no sign of life when it was asked for one, nor since.
    pub failed_probe: bool,
    /// Its round-trip time.
    pub rtt: RttEstimator,
    /// How long its host had taken no events, as its newest heartbeat shows.
    pub host_silent: Duration,
    /// Whether this node's host has received that it is silent.
    pub silence_reported: bool,
    last_heard: Time,
    open: VecDeque<(u64, Time)>,
    newest: Option<(u64, Time)>,
    /// The newest heartbeat that arrived over an earlier link of this session.
    newest_before: Option<u64>,
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
            path: Path::Direct,
            failed_probe: false,
            rtt: RttEstimator::default(),
            host_silent: Duration::ZERO,
            silence_reported: false,
            last_heard: now,
            open: VecDeque::new(),
            newest: None,
            newest_before: None,
            answered_first: false,
            probes_sent: 0,
            probe_at: now,
        }
    }

    /// Whether anything was heard after that time.
    pub fn was_heard_after(&self, at: Time) -> bool {
        self.last_heard > at
    }

    /// Any authenticated sign of life.
    pub fn heard(&mut self, now: Time) {
        self.last_heard = self.last_heard.max(now);
        self.probes_sent = 0;
        self.failed_probe = false;
    }

    /// Whether its id is not free for a process with that key and incarnation. An older incarnation with the same key may be
    /// the newer one: its clock was set back.
    pub fn keeps_id_from(&self, key: Fingerprint, incarnation: Incarnation) -> bool {
        !self.failed_probe && (self.key != key || incarnation < self.incarnation)
    }

    /// The newest heartbeat of this session, over whichever link.
    pub(super) fn newest_heartbeat(&self) -> Option<u64> {
        self.newest.map(|(seq, _)| seq).or(self.newest_before)
    }

    /// The session goes on over a new link.
    pub(super) fn returns_after(&mut self, newest: Option<u64>) {
        self.newest_before = newest;
    }

    /// Whether a heartbeat of that number, or a later one, arrived in this session: this one is no sign of life.
    pub(super) fn is_old_heartbeat(&self, seq: u64) -> bool {
        self.newest_heartbeat().is_some_and(|newest| seq <= newest)
    }

    /// A heartbeat to this peer. Its number is above those of all earlier ones.
    pub fn next_heartbeat(
        &mut self,
        now: Time,
        seq: u64,
        host_silent: Duration,
        pulse: Opaque,
    ) -> Heartbeat {
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
            host_silent_ms: host_silent.as_millis().try_into().unwrap_or(u32::MAX),
            pulse,
        }
    }

    /// Takes a heartbeat, which is no old one, but for its election part; returns whether it should be answered at once (the
    /// first one is, so that both ends know the round trip without waiting for an interval).
    pub fn heartbeat_received(&mut self, now: Time, heartbeat: &Heartbeat) -> bool {
        self.newest = Some((heartbeat.seq, now));
        self.host_silent = Duration::from_millis(heartbeat.host_silent_ms.into());
        if let Some(echo) = heartbeat.echo {
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

    /// The linked peer of that name, if it takes part in elections.
    pub fn elector(&self, id: &PeerId) -> Option<&Member> {
        self.get(id)
            .filter(|member| member.path.counts_in_elections())
    }

    /// The linked peer of that name, if its link is direct.
    pub fn direct(&self, id: &PeerId) -> Option<&Member> {
        self.get(id).filter(|member| member.path.is_direct())
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

    fn heartbeat_of(seq: u64, echo: Option<Echo>) -> Heartbeat {
        Heartbeat {
            seq,
            echo,
            host_silent_ms: 0,
            pulse: Opaque::default(),
        }
    }

    #[test]
    fn s18_the_round_trip_leaves_out_the_time_that_the_peer_held_the_heartbeat() {
        let mut member = member();
        let heartbeat = member.next_heartbeat(at(1000), 1, Duration::ZERO, Opaque::default());
        let echo = Echo {
            seq: heartbeat.seq,
            held_us: 400_000,
        };
        member.heartbeat_received(at(1440), &heartbeat_of(7, Some(echo)));
        assert_eq!(member.rtt.smoothed(), Some(Duration::from_millis(40)));
        assert_eq!(member.rtt.variation(), Some(Duration::from_millis(20)));
        let heartbeat = member.next_heartbeat(at(2000), 2, Duration::ZERO, Opaque::default());
        assert_eq!(
            heartbeat.echo.map(|echo| (echo.seq, echo.held_us)),
            Some((7, 560_000))
        );
        let echo = Echo {
            seq: heartbeat.seq,
            held_us: 0,
        };
        member.heartbeat_received(at(2120), &heartbeat_of(8, Some(echo)));
        // 7/8 of 40 ms and 1/8 of 120 ms
        assert_eq!(member.rtt.smoothed(), Some(Duration::from_millis(50)));
        // 3/4 of 20 ms and 1/4 of the 80 ms between the sample and the 40 ms before
        assert_eq!(member.rtt.variation(), Some(Duration::from_millis(35)));
    }

    #[test]
    fn a_heartbeat_that_a_later_one_has_passed_is_old_on_the_next_link_too() {
        let mut first = member();
        assert!(!first.is_old_heartbeat(0));
        first.heartbeat_received(at(0), &heartbeat_of(7, None));
        let old = |member: &Member| [6, 7, 8].map(|seq| member.is_old_heartbeat(seq));
        assert_eq!(old(&first), [true, true, false]);
        let mut next = member();
        next.returns_after(first.newest_heartbeat());
        assert_eq!(old(&next), [true, true, false]);
        next.heartbeat_received(at(0), &heartbeat_of(8, None));
        assert_eq!(old(&next), [true, true, true]);
    }

    #[test]
    fn an_echo_that_lies_gives_no_sample() {
        let mut member = member();
        let heartbeat = member.next_heartbeat(at(0), 1, Duration::ZERO, Opaque::default());
        let held_longer_than_away = Echo {
            seq: heartbeat.seq,
            held_us: 11_000,
        };
        member.heartbeat_received(at(10), &heartbeat_of(0, Some(held_longer_than_away)));
        let never_sent = Echo {
            seq: 99,
            held_us: 0,
        };
        member.heartbeat_received(at(10), &heartbeat_of(1, Some(never_sent)));
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
            member.next_heartbeat(at(ms), ms, Duration::ZERO, Opaque::default());
        }
        assert_eq!(member.open.len(), MAX_OPEN_HEARTBEATS);
    }
}
