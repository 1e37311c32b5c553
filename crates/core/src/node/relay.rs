//! Relayed messages: which relays may be delivered, and whether this node may relay.

use super::Node;
use crate::bounded::Newest;
use crate::election::record::{Record, Stamp};
use crate::id::{Incarnation, PeerId};
use crate::time::{Duration, Time};
use crate::wire::{Decider, Opaque};

/// Most leaderships that are remembered: messages of their leaders may still be on the way.
const MAX_RECENT_LEADERS: usize = 8;

/// A leadership that this node followed.
#[derive(Debug, Clone)]
struct Leadership {
    record: Record,
    token: Opaque,
    /// The leader's incarnation, if its own link has shown it.
    incarnation: Option<Incarnation>,
    /// Set once another leader is known.
    succeeded: Option<Elapsed>,
}

/// Time that passes only while the former leader is linked: its earlier messages cannot arrive without a link.
#[derive(Debug, Clone, Copy, Default)]
struct Elapsed {
    before: Duration,
    running_since: Option<Time>,
}

impl Elapsed {
    fn start(&mut self, now: Time) {
        self.running_since.get_or_insert(now);
    }

    fn stop(&mut self, now: Time) {
        self.before = self.at(now);
        self.running_since = None;
    }

    fn at(&self, now: Time) -> Duration {
        let running = self.running_since.map(|since| now.since(since));
        self.before + running.unwrap_or_default()
    }
}

/// Role in which a relay speaks for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// It leads.
    Leader,
    /// It led until a moment ago. Its messages of that time may be on the way.
    FormerLeader,
}

impl Leadership {
    fn is_of(&self, leader: &PeerId) -> bool {
        self.record.leader.as_ref() == Some(leader)
    }
}

/// The leaderships that this node followed last, newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct RecentLeaders(Newest<Leadership, MAX_RECENT_LEADERS>);

impl RecentLeaders {
    /// Notes that this node follows `record`, whose leader has that incarnation; `token` is called if that is new.
    /// `is_linked` returns whether a peer is linked.
    pub(super) fn note(
        &mut self,
        now: Time,
        record: &Record,
        incarnation: Option<Incarnation>,
        token: impl FnOnce() -> Opaque,
        is_linked: impl Fn(&PeerId) -> bool,
    ) {
        let newest = self.0.iter_mut().next_back();
        let newest = newest.filter(|newest| newest.record == *record);
        if let Some(newest) = newest
            && (newest.incarnation.is_none() || incarnation.is_none())
        {
            newest.incarnation = newest.incarnation.or(incarnation);
            return;
        }
        let is_known =
            |newest: &Leadership| newest.record == *record && newest.incarnation == incarnation;
        if self.0.back().is_some_and(is_known) {
            return;
        }
        for led in self.0.iter_mut() {
            if led.record.leader == record.leader {
                led.succeeded = None;
                continue;
            }
            let linked = led.record.leader.as_ref().is_some_and(&is_linked);
            led.succeeded.get_or_insert_with(|| Elapsed {
                before: Duration::ZERO,
                running_since: linked.then_some(now),
            });
        }
        self.0.push(Leadership {
            record: record.clone(),
            token: token(),
            incarnation,
            succeeded: None,
        });
    }

    /// Starts or stops the clock of a former leader's messages with its link.
    pub(super) fn link_changed(&mut self, now: Time, peer: &PeerId, is_linked: bool) {
        for led in self.0.iter_mut().filter(|led| led.is_of(peer)) {
            match &mut led.succeeded {
                Some(elapsed) if is_linked => elapsed.start(now),
                Some(elapsed) => elapsed.stop(now),
                None => {}
            }
        }
    }

    /// Whether a node of that id led under the stamp, in any incarnation.
    pub(super) fn has_led(&self, stamp: &Stamp, leader: &PeerId) -> bool {
        self.of(stamp, leader).next().is_some()
    }

    /// Whether that incarnation led under the stamp, as its own link has shown.
    pub(super) fn has_led_as(&self, stamp: &Stamp, decider: &Decider) -> bool {
        let mut its = self.of(stamp, &decider.leader);
        its.any(|led| led.incarnation == Some(decider.incarnation))
    }

    /// Whether that incarnation may have led under the stamp: a node of its id did, and no link has shown that it was
    /// another incarnation.
    pub(super) fn may_have_led_as(&self, stamp: &Stamp, decider: &Decider) -> bool {
        let mut its = self.of(stamp, &decider.leader);
        its.any(|led| {
            let incarnation = led.incarnation;
            incarnation.is_none_or(|known| known == decider.incarnation)
        })
    }

    fn of(&self, stamp: &Stamp, leader: &PeerId) -> impl Iterator<Item = &Leadership> {
        let is_it = move |led: &&Leadership| led.record.stamp == *stamp && led.is_of(leader);
        self.0.iter().filter(is_it)
    }

    /// The role in which `leader` speaks with this token. It counts as a former leader for `counts_for` after another
    /// leader is known.
    fn speaker(
        &self,
        now: Time,
        leader: &PeerId,
        token: &Opaque,
        counts_for: Duration,
    ) -> Option<Speaker> {
        let its = self.0.iter().rev();
        let mut its = its.filter(|led| led.is_of(leader) && led.token == *token);
        its.find_map(|led| match led.succeeded {
            None => Some(Speaker::Leader),
            Some(elapsed) if elapsed.at(now) <= counts_for => Some(Speaker::FormerLeader),
            Some(_) => None,
        })
    }
}

/// Minimum time for which messages of a former leader count after another leader is known; and that time in round
/// trips.
const FORMER_LEADER_WINDOW: Duration = Duration::from_secs(2);
const FORMER_LEADER_ROUND_TRIPS: u32 = 4;
/// Longest round trip that counts: a member can make its own look longer.
const MAX_COUNTED_ROUND_TRIP: Duration = Duration::from_millis(2500);

/// Most past incarnations of members that a node remembers: their messages may still be under way.
const MAX_PAST_INCARNATIONS: usize = 64;

/// The incarnations of members that ended last, newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct PastIncarnations(Newest<(PeerId, Incarnation), MAX_PAST_INCARNATIONS>);

impl PastIncarnations {
    pub(super) fn note(&mut self, member: &PeerId, incarnation: Incarnation) {
        self.0.push((member.clone(), incarnation));
    }

    fn contains(&self, member: &PeerId, incarnation: Incarnation) -> bool {
        self.0
            .iter()
            .any(|(id, past)| id == member && *past == incarnation)
    }
}

/// Knowledge of this node about an origin's incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginIncarnation {
    /// It is the member's present one.
    Present,
    /// The member has had another incarnation since.
    Past,
    /// No link with the member has shown it yet.
    Unknown,
    /// There is no member of that id here, so only the relay names it.
    NoMember,
}

impl Node {
    /// The role in which `from` may speak for others with this token, if any. A newer leadership is adopted first, so
    /// poll the outputs before delivering the message. For `stopped` of the time since another leader is known, this
    /// node did not take arrived messages.
    pub fn accept_relay(
        &mut self,
        now: Time,
        from: &PeerId,
        token: &Opaque,
        stopped: Duration,
    ) -> Option<Speaker> {
        if let Some(speaker) = self.speaker(now, from, token, stopped) {
            return Some(speaker);
        }
        let leads = self.election.may_supersede(from, token)
            && self.accept_leader_message(now, from, token);
        leads.then_some(Speaker::Leader)
    }

    /// The role of a peer that may have left: only the known leaderships count.
    pub fn speaker(
        &self,
        now: Time,
        from: &PeerId,
        token: &Opaque,
        stopped: Duration,
    ) -> Option<Speaker> {
        let linked = self.membership.get(from);
        let round_trip = linked.and_then(|member| member.rtt.smoothed());
        let round_trip = round_trip.unwrap_or_default().min(MAX_COUNTED_ROUND_TRIP);
        let round_trips = round_trip * FORMER_LEADER_ROUND_TRIPS;
        let counts_for = FORMER_LEADER_WINDOW.max(round_trips) + stopped;
        self.recent_leaders.speaker(now, from, token, counts_for)
    }

    /// Whether messages of `from` with this token wait for an external store to show whether it leads.
    pub fn awaits_leadership_proof(&self, from: &PeerId, token: &Opaque) -> bool {
        self.election.awaits(from, token)
    }

    /// Whether `from` led with this token not long ago, or leads with a token that this node does not know yet.
    pub fn has_or_had_leadership(&self, now: Time, from: &PeerId, token: &Opaque) -> bool {
        self.speaker(now, from, token, Duration::ZERO).is_some()
            || self.election.may_supersede(from, token)
    }

    /// The knowledge about an incarnation of `origin`, in whose name a message was relayed. A member, linked or lost,
    /// has the incarnation that its own link showed.
    pub fn origin_incarnation(
        &self,
        origin: &PeerId,
        incarnation: Incarnation,
    ) -> OriginIncarnation {
        match self.id_holder(origin) {
            Some((_, known)) if incarnation == known => OriginIncarnation::Present,
            // Only their links show which of two incarnations is the later one: clocks are set back.
            Some(_) if self.past_incarnations.contains(origin, incarnation) => {
                OriginIncarnation::Past
            }
            Some(_) => OriginIncarnation::Unknown,
            None => OriginIncarnation::NoMember,
        }
    }

    /// Whether this node leads, and so relays a broadcast of `from`, which follows the leadership of this token. An
    /// assignment of this node that it did not know yet is adopted first, so poll the outputs before sending.
    pub fn may_relay(&mut self, now: Time, from: &PeerId, token: &Opaque) -> bool {
        self.end_lapsed_leadership(now);
        if self.membership.get(from).is_none() {
            return false;
        }
        if let Err(error) = self.election.adopt_followed(now, &self.view, token) {
            self.punish(now, from, error);
        }
        self.after(now);
        let leads = self.is_leader() && self.leader_token().is_some();
        leads && self.membership.get(from).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(term: u64, leader: &str) -> (Record, Opaque) {
        let record = Record {
            leader_key: None,
            stamp: Stamp {
                term,
                ..Stamp::default()
            },
            leader: Some(PeerId::new(leader).expect("valid")),
            assigned: false,
        };
        let token = Opaque::of(&record);
        (record, token)
    }

    fn incarnation(started_us: u64) -> Incarnation {
        Incarnation {
            started_us,
            random: 0,
        }
    }

    const NOW: Time = Time::from_micros(1_000_000);

    fn note(recent: &mut RecentLeaders, (record, token): &(Record, Opaque), life: Option<u64>) {
        let incarnation = life.map(incarnation);
        recent.note(NOW, record, incarnation, || token.clone(), |_| true);
    }

    #[test]
    fn the_last_leaderships_are_remembered() {
        let mut recent = RecentLeaders::default();
        for term in 0..20 {
            let led = led(term, "a");
            for _ in 0..2 {
                note(&mut recent, &led, None);
            }
        }
        assert_eq!(recent.0.len(), MAX_RECENT_LEADERS);
        let contains = |term, leader| {
            let (record, token) = led(term, leader);
            let leader = record.leader.expect("named");
            recent.speaker(NOW, &leader, &token, FORMER_LEADER_WINDOW)
        };
        assert_eq!(contains(12, "a"), Some(Speaker::Leader), "it leads still");
        assert_eq!(contains(11, "a"), None);
        assert_eq!(contains(19, "b"), None);
    }

    #[test]
    fn an_incarnation_is_known_to_have_led_once_its_link_shows_it() {
        let mut recent = RecentLeaders::default();
        let led = led(3, "a");
        let record = led.0.clone();
        let leader = record.leader.clone().expect("named");
        let knows = |recent: &RecentLeaders, started_us| {
            let decider = Decider {
                leader: leader.clone(),
                incarnation: incarnation(started_us),
            };
            recent.has_led_as(&record.stamp, &decider)
        };
        note(&mut recent, &led, None);
        assert!(recent.has_led(&record.stamp, &leader));
        assert!(!knows(&recent, 1));
        note(&mut recent, &led, Some(1));
        note(&mut recent, &led, None);
        assert!(knows(&recent, 1) && !knows(&recent, 2));
        assert_eq!(recent.0.len(), 1);
        // It was started again, and still leads without a new record.
        note(&mut recent, &led, Some(2));
        assert!(knows(&recent, 1) && knows(&recent, 2));
    }

    #[test]
    fn a_former_leader_counts_for_a_while_that_stands_still_without_a_link() {
        let mut recent = RecentLeaders::default();
        let (first, second) = (led(1, "a"), led(2, "b"));
        note(&mut recent, &first, None);
        note(&mut recent, &second, None);
        let a = first.0.leader.clone().expect("named");
        let speaks = |recent: &RecentLeaders, ms: u64| {
            let now = NOW + Duration::from_millis(ms);
            recent.speaker(now, &a, &first.1, FORMER_LEADER_WINDOW)
        };
        let at = |ms| NOW + Duration::from_millis(ms);
        assert_eq!(speaks(&recent, 2000), Some(Speaker::FormerLeader));
        assert_eq!(speaks(&recent, 2001), None);
        recent.link_changed(at(500), &a, false);
        assert_eq!(speaks(&recent, 60_000), Some(Speaker::FormerLeader));
        recent.link_changed(at(60_000), &a, true);
        recent.link_changed(at(60_500), &a, true);
        assert_eq!(speaks(&recent, 61_500), Some(Speaker::FormerLeader));
        assert_eq!(speaks(&recent, 61_501), None);
        // It leads again: its earlier messages as leader count as its own.
        note(&mut recent, &led(3, "a"), None);
        assert_eq!(speaks(&recent, 90_000), Some(Speaker::Leader));
    }
}
