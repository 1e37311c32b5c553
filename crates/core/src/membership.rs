//! The linked peers: round trips, signs of life and timeouts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use super::bounded::BoundedMap;
use super::id::{Fingerprint, Incarnation, PeerId};
use super::path::{Carrier, LinkPath, Path};
use super::path_search::{Observations, Punching, TakeOver};
use super::time::{Duration, Time};
use super::virtual_address::VirtualId;
use super::wire::{Echo, FEATURE_PATHS, FEATURE_SILENT_RELAYS, Heartbeat, Opaque};

/// Most members that one member is known to reach.
const MAX_REACHED: usize = 1024;
/// Most heartbeats whose send times are remembered for the round trip.
const MAX_OPEN_HEARTBEATS: usize = 16;
/// Probes to a silent peer before it counts as lost. One lost packet loses a probe or its answer: at 5 % loss three
/// probes miss a living peer once in a thousand silences, six once in a million.
const PROBES: u32 = 6;
/// Time for which a member is not lost, and no member campaigns because of it, after the relay that carried its link has fallen:
/// longer than the restart of a relay.
pub const RELAY_GRACE: Duration = Duration::from_secs(4);
/// Time in which a member keeps an id that went to another peer only once.
const KEEPS_ID_AGAIN: Duration = Duration::from_secs(30);
/// Minimum time between the first probe and the loss.
const MIN_PROBE_LEAD: Duration = Duration::from_millis(100);

/// Smoothed round-trip time and its variation (RFC 6298 section 2: a new sample has weight 1/8 in the first and 1/4 in
/// the second).
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

    /// The mean deviation of the samples (RTTVAR); `None` before the first sample. The first sample sets it to half of
    /// the round trip.
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
                // The variation first: it uses the round trip before this sample.
                self.variation = (self.variation * 3 + smoothed.abs_diff(sample)) / 4;
                self.smoothed = Some((smoothed * 7 + sample) / 8);
            }
        }
    }
}

/// Consequences of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The round trip that its echo shows.
    pub round_trip: Option<Duration>,
    /// Whether it is the first one, which is answered at once: so both ends know the round trip without waiting for an interval.
    pub is_first: bool,
}

/// A linked peer.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Its key.
    pub key: Fingerprint,
    /// Its addresses for other members, as far as known here.
    pub addresses: Vec<SocketAddr>,
    /// Whether it is the fixed host, with which the room ends.
    pub is_host: bool,
    /// How its packets travel.
    pub path: Path,
    /// The carrier of this node's packets to it, while its link is carried.
    pub carrier: Option<Carrier>,
    /// Whether its packets, though direct, pass through this node's port at a TURN server.
    pub through_turn: bool,
    /// Its path as the host knows it.
    pub shown_path: Option<LinkPath>,
    /// Its optional abilities.
    pub features: u64,
    /// The members that it introduced, and so has links with, and whether these are direct.
    pub(super) reaches: BoundedMap<VirtualId, bool, MAX_REACHED>,
    /// Where the ends of its direct link see each other.
    pub(super) observations: Observations,
    /// The search for a direct path, while its link is carried.
    pub(super) punching: Punching,
    /// Set while it has a direct link that took over from one over a relay.
    pub(super) took_over: Option<TakeOver>,
    /// Until then it is not lost: the relay that carried its link has fallen, and it has given no sign of life since.
    held_until: Option<Time>,
    /// Until then it is not lost, although it has been silent for the whole timeout, and why it was spared in this silence.
    spared_until: Option<Time>,
    spared_for: BTreeSet<Spared>,
    /// Whether another peer wants its id, and it has given no sign of life since it was probed for that.
    pub failed_probe: bool,
    /// When it last kept its id so: by a sign of life after its id went to that peer.
    kept_id_at: Option<Time>,
    /// Its round-trip time.
    pub rtt: RttEstimator,
    /// Time for which its host had taken no events, according to its newest heartbeat.
    pub host_silent: Duration,
    /// Whether this node's host has received an event about that silence.
    pub silence_reported: bool,
    /// When this node, as leader, took the room's time from it.
    pub(super) lifted_time_at: Option<Time>,
    last_sign_of_life: Time,
    open: VecDeque<(u64, Time)>,
    newest: Option<(u64, Time)>,
    /// The newest heartbeat that arrived over an earlier link of this session.
    newest_before: Option<u64>,
    answered_first: bool,
    probes_sent: u32,
    probe_at: Time,
    /// Its places in the orders of deadlines and of rounds, as noted last.
    deadline: Option<Time>,
    round_at: Option<Time>,
}

impl Member {
    /// A peer that was linked just now.
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
            carrier: None,
            through_turn: false,
            shown_path: None,
            features: 0,
            reaches: BoundedMap::default(),
            observations: Observations::default(),
            punching: Punching::default(),
            took_over: None,
            held_until: None,
            spared_until: None,
            spared_for: BTreeSet::new(),
            failed_probe: false,
            kept_id_at: None,
            rtt: RttEstimator::default(),
            host_silent: Duration::ZERO,
            silence_reported: false,
            lifted_time_at: None,
            last_sign_of_life: now,
            open: VecDeque::new(),
            newest: None,
            newest_before: None,
            answered_first: false,
            probes_sent: 0,
            probe_at: now,
            deadline: Some(now),
            round_at: None,
        }
    }

    /// The time of the last sign of life.
    pub(crate) fn last_sign_of_life(&self) -> Time {
        self.last_sign_of_life
    }

    /// Whether a sign of life arrived after `at`.
    pub fn had_sign_of_life_after(&self, at: Time) -> bool {
        self.last_sign_of_life > at
    }

    /// Whether it understands the messages about paths, and accepts packets that any member carries.
    pub(super) fn knows_paths(&self) -> bool {
        self.features & FEATURE_PATHS != 0
    }

    /// Whether it understands the report of a silent relay.
    pub(super) fn knows_silent_relays(&self) -> bool {
        self.features & FEATURE_SILENT_RELAYS != 0
    }

    /// Notes an authenticated sign of life. Returns whether it ends a [hold](Self::hold).
    pub fn mark_alive(&mut self, now: Time) -> bool {
        self.last_sign_of_life = self.last_sign_of_life.max(now);
        self.probes_sent = 0;
        self.spared_until = None;
        self.spared_for.clear();
        self.failed_probe = false;
        // Packets that were on their way when the relay fell prove no other way to the member.
        self.carrier.is_some() && self.held_until.take().is_some()
    }

    /// Handles the fall of the relay that carries its link: its silence does not count for a while. One that has given no
    /// sign of life since an earlier fall gets no more time.
    pub(super) fn hold(&mut self, now: Time) {
        self.held_until.get_or_insert(now + RELAY_GRACE);
    }

    /// The time until which it is held, if it is.
    pub(super) fn held_until(&self, now: Time) -> Option<Time> {
        self.held_until.filter(|until| now < *until)
    }

    /// Whether it keeps an id that has gone to another peer, since it gives a sign of life.
    pub(super) fn keeps_disputed_id(&mut self, now: Time) -> bool {
        let again = self.kept_id_at.is_some_and(|at| now < at + KEEPS_ID_AGAIN);
        if !again {
            self.kept_id_at = Some(now);
        }
        !again
    }

    /// Whether the member keeps its id from a process with that key and incarnation. An older incarnation with the same
    /// key may be the newer one: its clock was set back.
    pub fn keeps_id_from(&self, key: Fingerprint, incarnation: Incarnation) -> bool {
        !self.failed_probe && (self.key != key || incarnation < self.incarnation)
    }

    /// The newest heartbeat of this session, over any of its links.
    pub(super) fn newest_heartbeat(&self) -> Option<u64> {
        self.newest.map(|(seq, _)| seq).or(self.newest_before)
    }

    /// Continues a session over a new link.
    pub(super) fn returns_after(&mut self, newest: Option<u64>) {
        self.newest_before = newest;
    }

    /// Whether this heartbeat or a later one arrived earlier in this session: it is no sign of life then.
    pub fn is_old_heartbeat(&self, seq: u64) -> bool {
        self.newest_heartbeat().is_some_and(|newest| seq <= newest)
    }

    /// Builds a heartbeat to this peer. `seq` is above the numbers of all earlier ones.
    pub fn next_heartbeat(
        &mut self,
        now: Time,
        seq: u64,
        host_silent: Duration,
        pulse: Opaque,
        room_time_us: u64,
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
            room_time_us: Some(room_time_us),
        }
    }

    /// Handles a heartbeat, which must not be an old one, except its election part and the room's time.
    pub fn heartbeat_received(&mut self, now: Time, heartbeat: &Heartbeat) -> Received {
        self.newest = Some((heartbeat.seq, now));
        self.host_silent = Duration::from_millis(heartbeat.host_silent_ms.into());
        Received {
            round_trip: heartbeat
                .echo
                .and_then(|echo| self.echo_received(now, echo)),
            is_first: !std::mem::replace(&mut self.answered_first, true),
        }
    }

    /// Returns the round trip, if the echo shows one.
    fn echo_received(&mut self, now: Time, echo: Echo) -> Option<Duration> {
        let index = self.open.iter().position(|(seq, _)| *seq == echo.seq)?;
        let (_, sent_at) = self.open[index];
        self.open.drain(..=index);
        // No sample if the peer claims to have held it longer than it was away.
        let rtt = now
            .since(sent_at)
            .checked_sub(Duration::from_micros(echo.held_us))?;
        self.rtt.sample(rtt);
        Some(rtt)
    }

    /// Spares a silent member for a while, in which it is probed again: for each reason once in a silence. Returns whether it
    /// did.
    pub(super) fn spare(&mut self, now: Time, time: Duration, reason: Spared) -> bool {
        let is_first = self.spared_for.insert(reason);
        if is_first {
            self.spared_until = self.spared_until.max(Some(now + time));
            self.probes_sent = 0;
        }
        is_first
    }

    /// As [`spare`](Self::spare), of a member that would be lost before it could answer all probes.
    pub(super) fn spare_unprobed(&mut self, now: Time, timeout: Duration) {
        let lead = self.probe_lead().min(timeout);
        if self.lost_at(timeout) < now + lead {
            self.spare(now, lead, Spared::Unprobed);
        }
    }

    /// The time that all probes and their answers take.
    fn probe_lead(&self) -> Duration {
        let rtt = self.rtt.smoothed().unwrap_or(MIN_PROBE_LEAD);
        MIN_PROBE_LEAD.max(rtt * (PROBES + 1))
    }

    fn lost_at(&self, timeout: Duration) -> Time {
        let silent_at = self.last_sign_of_life + timeout;
        let later = self.held_until.max(self.spared_until);
        later.map_or(silent_at, |until| silent_at.max(until))
    }

    /// The time of the next probe. The six probes are a little over a round trip apart, so that even the last can be
    /// answered before the loss. The first is due max(100 ms, 7 round trips) before the loss, but not before one
    /// interval of silence.
    fn next_probe_at(&self, interval: Duration, timeout: Duration) -> Option<Time> {
        if self.probes_sent >= PROBES {
            return None;
        }
        if self.probes_sent > 0 {
            return Some(self.probe_at);
        }
        Some((self.lost_at(timeout) - self.probe_lead()).max(self.last_sign_of_life + interval))
    }

    /// The time of its next probe, or of its loss.
    fn next_deadline(&self, interval: Duration, timeout: Duration) -> Time {
        let lost_at = self.lost_at(timeout);
        let probe_at = self.next_probe_at(interval, timeout);
        probe_at.map_or(lost_at, |at| at.min(lost_at))
    }
}

/// Why a silent member is not lost yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spared {
    /// This process stood still: it has sent no probes.
    Unprobed,
    /// It is the leader, and the voters are asked.
    InDoubt,
}

/// An action that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// Send the peer a probe by datagram.
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
    /// The next deadline of each, so that an input costs about as much in a room of a hundred as in one of two.
    deadlines: Order,
    /// The next round of dials of each whose link is carried.
    rounds: Order,
    /// The member that a caller may have changed since its times were noted.
    changed: Option<PeerId>,
}

impl Membership {
    /// No members yet. A peer is lost after `timeout` of silence.
    pub fn new(interval: Duration, timeout: Duration) -> Self {
        Self {
            interval,
            timeout,
            members: BTreeMap::new(),
            deadlines: Order::default(),
            rounds: Order::default(),
            changed: None,
        }
    }

    /// The linked peers, sorted by id.
    pub fn iter(&self) -> impl Iterator<Item = (&PeerId, &Member)> {
        self.members.iter()
    }

    /// Number of linked peers.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether no peer is linked.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The linked peer with that id.
    pub fn get(&self, id: &PeerId) -> Option<&Member> {
        self.members.get(id)
    }

    /// The linked peer with that id, if it takes part in elections.
    pub fn elector(&self, id: &PeerId) -> Option<&Member> {
        self.get(id)
            .filter(|member| member.path.counts_in_elections())
    }

    /// The linked peer with that id, if its link is direct.
    pub fn direct(&self, id: &PeerId) -> Option<&Member> {
        self.get(id).filter(|member| member.path.is_direct())
    }

    pub(super) fn get_mut(&mut self, id: &PeerId) -> Option<&mut Member> {
        if self.changed.as_ref() != Some(id) {
            self.note_changed();
        }
        let member = self.members.get_mut(id)?;
        self.changed = Some(id.clone());
        Some(member)
    }

    pub(super) fn insert(&mut self, id: PeerId, member: Member) {
        self.remove(&id);
        self.deadlines.change(&id, None, member.deadline);
        self.rounds.change(&id, None, member.round_at);
        self.changed = Some(id.clone());
        self.members.insert(id, member);
    }

    pub(super) fn remove(&mut self, id: &PeerId) -> Option<Member> {
        self.note_changed();
        let member = self.members.remove(id)?;
        self.deadlines.change(id, member.deadline, None);
        self.rounds.change(id, member.round_at, None);
        Some(member)
    }

    pub(super) fn ids(&self) -> Vec<PeerId> {
        self.members.keys().cloned().collect()
    }

    /// Notes the times of the member that was changed last.
    fn note_changed(&mut self) {
        let Some(id) = self.changed.take() else {
            return;
        };
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        let deadline = Some(member.next_deadline(self.interval, self.timeout));
        let noted = std::mem::replace(&mut member.deadline, deadline);
        self.deadlines.change(&id, noted, deadline);
        let round_at = member.punching.due;
        let noted = std::mem::replace(&mut member.round_at, round_at);
        self.rounds.change(&id, noted, round_at);
    }

    /// The member whose times are not noted yet.
    fn unnoted(&self) -> Option<&Member> {
        self.members.get(self.changed.as_ref()?)
    }

    /// The time at which [`Membership::due`] next returns something.
    pub fn next_deadline(&self) -> Option<Time> {
        let unnoted = self.unnoted();
        let deadline = unnoted.map(|member| member.next_deadline(self.interval, self.timeout));
        let noted = self.deadlines.first_but(self.changed.as_ref());
        noted.into_iter().chain(deadline).min()
    }

    /// The time at which [`Membership::rounds_due`] next returns something.
    pub(super) fn next_round(&self) -> Option<Time> {
        let round_at = self.unnoted().and_then(|member| member.punching.due);
        let noted = self.rounds.first_but(self.changed.as_ref());
        noted.into_iter().chain(round_at).min()
    }

    /// Probes and losses that are due, sorted by id. Counts the probes as sent.
    pub fn due(&mut self, now: Time) -> Vec<Due> {
        self.note_changed();
        let due = self.deadlines.due(now);
        due.into_iter()
            .filter_map(|id| self.is_due(now, id))
            .collect()
    }

    /// The members with which a round of dials is due, sorted by id.
    pub(super) fn rounds_due(&mut self, now: Time) -> Vec<PeerId> {
        self.note_changed();
        self.rounds.due(now)
    }

    fn is_due(&mut self, now: Time, id: PeerId) -> Option<Due> {
        let timeout = self.timeout;
        let member = self.get_mut(&id)?;
        if now >= member.lost_at(timeout) {
            return Some(Due::Lost(id));
        }
        member.probes_sent += 1;
        let apart = member.rtt.smoothed().unwrap_or_default();
        // On a fast link all probes would go out at once; spread them over the remaining time.
        let left = member.lost_at(timeout).since(now);
        let probes_left = PROBES - member.probes_sent;
        member.probe_at = now + apart.max(left / (probes_left + 1));
        Some(Due::Probe(id))
    }
}

/// Peers in the order of a time that each has.
#[derive(Debug, Clone, Default)]
struct Order(BTreeSet<(Time, PeerId)>);

impl Order {
    fn change(&mut self, id: &PeerId, from: Option<Time>, to: Option<Time>) {
        if from == to {
            return;
        }
        if let Some(at) = from {
            self.0.remove(&(at, id.clone()));
        }
        self.0.extend(to.map(|at| (at, id.clone())));
    }

    /// The first time, without that of one peer.
    fn first_but(&self, but: Option<&PeerId>) -> Option<Time> {
        let mut others = self.0.iter().filter(|(_, id)| Some(id) != but);
        others.next().map(|(at, _)| *at)
    }

    /// The peers whose times have come, sorted by id.
    fn due(&self, now: Time) -> Vec<PeerId> {
        let due = self.0.iter().take_while(|(at, _)| *at <= now);
        let mut due: Vec<_> = due.map(|(_, id)| id.clone()).collect();
        due.sort();
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
            room_time_us: None,
        }
    }

    #[test]
    fn s18_the_round_trip_leaves_out_the_time_that_the_peer_held_the_heartbeat() {
        let mut member = member();
        let heartbeat = member.next_heartbeat(at(1000), 1, Duration::ZERO, Opaque::default(), 0);
        let echo = Echo {
            seq: heartbeat.seq,
            held_us: 400_000,
        };
        member.heartbeat_received(at(1440), &heartbeat_of(7, Some(echo)));
        assert_eq!(member.rtt.smoothed(), Some(Duration::from_millis(40)));
        assert_eq!(member.rtt.variation(), Some(Duration::from_millis(20)));
        let heartbeat = member.next_heartbeat(at(2000), 2, Duration::ZERO, Opaque::default(), 0);
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
        let heartbeat = member.next_heartbeat(at(0), 1, Duration::ZERO, Opaque::default(), 0);
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
        // An unknown round trip counts as 100 ms.
        let probes = [800, 916, 1033, 1149, 1266, 1383].map(|ms| (ms, Due::Probe(id.clone())));
        assert_eq!(seen[..6], probes);
        assert_eq!(seen[6..], [(1500, Due::Lost(id))]);
    }

    #[test]
    fn s18_m19_a_sign_of_life_restarts_the_timeout() {
        let id = PeerId::new("p").expect("valid");
        let mut membership = Membership::new(INTERVAL, TIMEOUT);
        membership.insert(id.clone(), member());
        assert_eq!(membership.due(at(1300)), vec![Due::Probe(id.clone())]);
        if let Some(member) = membership.get_mut(&id) {
            member.mark_alive(at(1350));
        }
        assert_eq!(membership.due(at(1500)), vec![]);
        assert_eq!(membership.due(at(2850)), vec![Due::Lost(id)]);
    }

    #[test]
    fn only_the_last_heartbeats_are_remembered() {
        let mut member = member();
        for ms in 0..1000 {
            member.next_heartbeat(at(ms), ms, Duration::ZERO, Opaque::default(), 0);
        }
        assert_eq!(member.open.len(), MAX_OPEN_HEARTBEATS);
    }

    #[test]
    fn the_next_deadline_is_the_earliest_of_all_members_whatever_changes() {
        let mut membership = Membership::new(INTERVAL, TIMEOUT);
        let mut draw = 1_u64;
        let mut draw = |below: u64| {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (draw >> 33) % below
        };
        let (mut probed, mut lost) = (0, 0);
        for step in 0..5_000 {
            let now = at(1000 + step * 40);
            let id = PeerId::new(&format!("p{}", draw(9))).expect("a name");
            match (draw(8), membership.get_mut(&id)) {
                (0, Some(_)) => drop(membership.remove(&id)),
                (_, None) => membership.insert(
                    id,
                    Member {
                        last_sign_of_life: now,
                        ..member()
                    },
                ),
                (1, Some(member)) => member.hold(now),
                (2, Some(member)) => member.rtt.sample(Duration::from_millis(draw(300))),
                (3 | 4, Some(member)) => drop(member.mark_alive(now)),
                _ => {}
            }
            let all = membership.members.values();
            let all = all.map(|member| member.next_deadline(INTERVAL, TIMEOUT));
            assert_eq!(membership.next_deadline(), all.min(), "step {step}");
            for due in membership.due(now) {
                match due {
                    Due::Probe(_) => probed += 1,
                    Due::Lost(id) => {
                        lost += 1;
                        membership.remove(&id);
                    }
                }
            }
            assert!(membership.next_deadline().is_none_or(|next| next > now));
            assert_eq!(membership.deadlines.0.len(), membership.members.len());
        }
        assert!(probed > 100 && lost > 100, "{probed} probes, {lost} losses");
    }
}
