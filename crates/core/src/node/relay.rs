//! Which messages in another's name may be delivered, and whether this node may send them.

use super::Node;
use crate::bounded::Newest;
use crate::election::record::{Record, Stamp};
use crate::id::{Incarnation, PeerId};
use crate::time::{Duration, Time};
use crate::wire::{Decider, Opaque};

/// Leaderships that are remembered, at most: what their leaders sent may still be on its way.
const MAX_RECENT_LEADERS: usize = 8;

/// A leadership that this node followed.
#[derive(Debug, Clone)]
struct Leadership {
    record: Record,
    token: Opaque,
    /// Which incarnation of the leader, as far as its own link has shown it.
    incarnation: Option<Incarnation>,
    /// Set once another leader is known.
    succeeded: Option<Elapsed>,
}

/// Time that passes only while the former leader is linked: what it sent before cannot arrive meanwhile.
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

/// How a relay may speak for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// It leads.
    Leader,
    /// It led until a moment ago. What it sent meanwhile may be on its way.
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
    /// This node follows `record`, whose leader has that incarnation; `token` is asked for if that is new. `is_linked` says
    /// to whom there is a link.
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

    /// The peer is linked, or lost: for what it sends as a former leader, time passes or stands still.
    pub(super) fn link_changed(&mut self, now: Time, peer: &PeerId, is_linked: bool) {
        for led in self.0.iter_mut().filter(|led| led.is_of(peer)) {
            match &mut led.succeeded {
                Some(elapsed) if is_linked => elapsed.start(now),
                Some(elapsed) => elapsed.stop(now),
                None => {}
            }
        }
    }

    /// Whether a node of that name led under the stamp, whatever its incarnation.
    pub(super) fn has_led(&self, stamp: &Stamp, leader: &PeerId) -> bool {
        self.of(stamp, leader).next().is_some()
    }

    /// Whether that incarnation led under the stamp, as its own link has shown.
    pub(super) fn has_led_as(&self, stamp: &Stamp, decider: &Decider) -> bool {
        let mut its = self.of(stamp, &decider.leader);
        its.any(|led| led.incarnation == Some(decider.incarnation))
    }

    /// Whether that incarnation may have led under the stamp: a node of its name did, and no link has shown that it was another
    /// incarnation.
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

    /// As what `leader` speaks with this token. As a former leader it does for so long after another was known.
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

/// What a former leader relayed counts for so long after another leader is known, at least; and for so many round trips.
const FORMER_COUNTS_FOR: Duration = Duration::from_secs(2);
const FORMER_COUNTS_FOR_ROUND_TRIPS: u32 = 4;
/// The longest round trip that counts: a member can make its own look longer.
const MAX_COUNTED_ROUND_TRIP: Duration = Duration::from_millis(2500);

/// Past incarnations of members that a node remembers, at most: their messages may still be under way.
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

/// An origin's incarnation, as far as this node knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginIncarnation {
    /// It is the member's present one.
    Present,
    /// The member has another incarnation since.
    Past,
    /// No link with the member has shown it yet.
    Unknown,
    /// There is no member of that name here, so that only the relay names it.
    NoMember,
}

impl Node {
    /// As what `from` may speak for others with this token, if it may. A newer leadership is adopted first, so poll the
    /// outputs before the message is delivered. For `stopped` of the time since another leader is known, this node did not
    /// take what had arrived.
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

    /// The same of a peer that has left: only what is known of its leaderships counts.
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
        let round_trips = round_trip * FORMER_COUNTS_FOR_ROUND_TRIPS;
        let counts_for = FORMER_COUNTS_FOR.max(round_trips) + stopped;
        self.recent_leaders.speaker(now, from, token, counts_for)
    }

    /// Whether what `from` sends with this token waits until an external store has told whether it leads.
    pub fn awaits_leadership(&self, from: &PeerId, token: &Opaque) -> bool {
        self.election.awaits(from, token)
    }

    /// Whether `from` led with this token not long ago, or leads with one of which this node has not heard.
    pub fn led_or_leads(&self, now: Time, from: &PeerId, token: &Opaque) -> bool {
        self.speaker(now, from, token, Duration::ZERO).is_some()
            || self.election.may_supersede(from, token)
    }

    /// What this node knows of an incarnation of `origin`, in whose name a message was relayed. The incarnation of a member, linked or
    /// lost, is what its own link said, and no other's word.
    pub fn origin_incarnation(
        &self,
        origin: &PeerId,
        incarnation: Incarnation,
    ) -> OriginIncarnation {
        match self.id_holder(origin) {
            Some((_, known)) if incarnation == known => OriginIncarnation::Present,
            // Which of two incarnations is the later one only their links can show: clocks are set back.
            Some(_) if self.past_incarnations.contains(origin, incarnation) => {
                OriginIncarnation::Past
            }
            Some(_) => OriginIncarnation::Unknown,
            None => OriginIncarnation::NoMember,
        }
    }

    /// Whether this node leads, and so relays a broadcast of `from`, which follows the leadership of this token. An
    /// assignment of this node that it did not hear of yet is adopted first, so poll the outputs before anything is sent.
    pub fn may_relay(&mut self, now: Time, from: &PeerId, token: &Opaque) -> bool {
        self.end_lapsed_leadership(now);
        if self.membership.get(from).is_none() {
            return false;
        }
        if let Err(error) = self.election.hear_followed(now, &self.view, token) {
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
            recent.speaker(NOW, &leader, &token, FORMER_COUNTS_FOR)
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
        // It was started again, and leads on where no new record says so.
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
            recent.speaker(now, &a, &first.1, FORMER_COUNTS_FOR)
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
        // It leads again: what it sent as leader before is its own.
        note(&mut recent, &led(3, "a"), None);
        assert_eq!(speaks(&recent, 90_000), Some(Speaker::Leader));
    }
}
