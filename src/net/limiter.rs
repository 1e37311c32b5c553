//! Rate limit for guesses of a room's name or secret, in whichever direction the link was dialled.
//!
//! Each exchange with a stranger lets one end test one guess, so it takes one of the address's attempts. A
//! running attempt is held: further attempts wait for its outcome, since otherwise one guess per port could
//! be tested at once. Success returns the attempt; a failure counts for [`WINDOW`].
//!
//! Pure: no clock and no sockets. [`super::tries`] does the waiting.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::pace::Pace;
use crate::core::bounded::BoundedMap;
use crate::core::id::Fingerprint;
use crate::core::path::{MAX_RELAYS, RelayNumber};
use crate::core::virtual_address::VirtualId;

/// Failures of one address within [`WINDOW`] after which strangers there get no further attempt.
pub(crate) const MAX_FAILURES_OF_ONE: usize = 5;
/// Failures of all addresses within [`WINDOW`] after which strangers get one attempt per [`PACE`].
pub(crate) const MAX_FAILURES_IN_ALL: usize = 60;
/// Time for which a failure counts.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);
/// Time between two attempts of strangers after too many failures in all.
pub(crate) const PACE: Duration = Duration::from_secs(1);
/// Failures remembered, at most: twice what the attempts of a minute can cause.
const MAX_REMEMBERED: usize = 256;

/// Unit that counts as one address: one host may use every address of its IPv6 /64.
///
/// All tunnels through one carrier count as one: only the carrier vouches for the process behind a tunnel, and it may
/// invent names. A carrier that guesses has the attempts of one address. It can close only tunnels through itself,
/// and these only to strangers; members that the leader has named need no attempt.
///
/// All strangers behind one relay count as one, too. They have a [`Pace`] of their own, and their failures close no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    V4(Ipv4Addr),
    V6Prefix([u16; 4]),
    Carrier(VirtualId),
    Relay(RelayNumber),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(v4) => v4.fmt(f),
            Self::V6Prefix([a, b, c, d]) => {
                let prefix = Ipv6Addr::new(*a, *b, *c, *d, 0, 0, 0, 0);
                write!(f, "{prefix}/64")
            }
            Self::Relay(relay) => relay.fmt(f),
            Self::Carrier(id) => {
                f.write_str("carrier ")?;
                id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::V4(v4),
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                Self::V6Prefix([a, b, c, d])
            }
        }
    }
}

/// Identifies an attempt from [`Limiter::ask`] on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// Whether an attempt may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Now. [`Limiter::end`] must follow.
    Go,
    /// Not yet: ask again after any change, and at that time.
    Wait(Option<Instant>),
    /// The address has failed too often, until then. The ticket is void.
    Closed(Instant),
}

/// Effect of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Consequence {
    /// It was the last attempt of its address, until then.
    pub(crate) closed_until: Option<Instant>,
    /// All strangers are slowed down; reported once per [`WINDOW`].
    pub(crate) too_many_in_all: bool,
}

#[derive(Debug)]
struct Failure {
    at: Instant,
    source: Source,
    key: Fingerprint,
}

/// The attempts of one direction.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    /// Oldest first.
    failures: VecDeque<Failure>,
    /// Running attempts.
    held: BTreeMap<Source, usize>,
    /// In order of arrival.
    waiting: BTreeMap<Ticket, Source>,
    /// Addresses that had an attempt while strangers were slowed down, oldest first.
    turns: VecDeque<Source>,
    next_paced: Option<Instant>,
    /// The attempts of strangers behind relays.
    relayed: BoundedMap<RelayNumber, Pace, MAX_RELAYS>,
    /// When the excess of failures in all was last reported: their number hovers about the limit while guesses go on.
    excess_reported_at: Option<Instant>,
    asked: u64,
}

impl Limiter {
    /// Queues for an attempt with a process at `source`. [`Limiter::poll`] or [`Limiter::leave`] must follow.
    pub(crate) fn ask(&mut self, source: Source) -> Ticket {
        self.asked += 1;
        let ticket = Ticket(self.asked);
        self.waiting.insert(ticket, source);
        ticket
    }

    /// Whether the attempt may begin.
    pub(crate) fn poll(&mut self, now: Instant, ticket: Ticket) -> Answer {
        self.forget_before(now);
        let Some(source) = self.waiting.get(&ticket).copied() else {
            return Answer::Wait(None);
        };
        if let Source::Relay(relay) = source {
            self.waiting.remove(&ticket);
            return match self.pace(relay).map(|pace| pace.begin(now)) {
                Some(Ok(())) | None => Answer::Go,
                Some(Err(until)) => Answer::Closed(until),
            };
        }
        if let Some(until) = self.closed(source) {
            self.waiting.remove(&ticket);
            return Answer::Closed(until);
        }
        if !self.has_a_try(source) {
            return Answer::Wait(self.next_expiry(source));
        }
        let is_of_it = |(other, of): (&Ticket, &Source)| *other < ticket && *of == source;
        if self.waiting.iter().any(is_of_it) {
            return Answer::Wait(None);
        }
        let in_flight: usize = self.held.values().sum();
        if self.failures.len() + in_flight >= MAX_FAILURES_IN_ALL {
            match self.next_paced {
                Some(at) if now < at => return Answer::Wait(Some(at)),
                _ => {}
            }
            if self.next_in_turn() != Some(ticket) {
                return Answer::Wait(None);
            }
            self.next_paced = Some(now + PACE);
            self.turns.retain(|served| *served != source);
            if self.turns.len() >= MAX_REMEMBERED {
                self.turns.pop_front();
            }
            self.turns.push_back(source);
        }
        self.waiting.remove(&ticket);
        *self.held.entry(source).or_default() += 1;
        Answer::Go
    }

    /// Withdraws from the queue.
    pub(crate) fn leave(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// Ends an attempt with the holder of `key`. Returns the effect if it `failed`.
    pub(crate) fn end(
        &mut self,
        now: Instant,
        source: Source,
        key: Fingerprint,
        failed: bool,
    ) -> Option<Consequence> {
        if let Source::Relay(relay) = source {
            self.pace(relay)?.end(now, failed);
            return None;
        }
        if let Some(held) = self.held.get_mut(&source) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&source);
            }
        }
        if !failed {
            return None;
        }
        self.forget_before(now);
        if self.failures.len() >= MAX_REMEMBERED {
            self.failures.pop_front();
        }
        let at = now;
        self.failures.push_back(Failure { at, source, key });
        let is_old = |reported: Instant| now.saturating_duration_since(reported) >= WINDOW;
        let too_many_in_all = self.failures.len() >= MAX_FAILURES_IN_ALL
            && self.excess_reported_at.is_none_or(is_old);
        if too_many_in_all {
            self.excess_reported_at = Some(now);
        }
        Some(Consequence {
            closed_until: self.closed(source),
            too_many_in_all,
        })
    }

    /// Until when strangers at `source` get no attempt.
    pub(crate) fn closed_until(&mut self, now: Instant, source: Source) -> Option<Instant> {
        self.forget_before(now);
        match source {
            Source::Relay(relay) => self.relayed.get(&relay)?.closed_until(now),
            _ => self.closed(source),
        }
    }

    /// Until when there are too many failures in all.
    pub(crate) fn slow_until(&mut self, now: Instant) -> Option<Instant> {
        self.forget_before(now);
        let last = self.failures.len().checked_sub(MAX_FAILURES_IN_ALL)?;
        self.failures.get(last).map(|failure| failure.at + WINDOW)
    }

    /// Whether an attempt with the holder of `key` has failed within the last minute.
    pub(crate) fn has_failed(&mut self, now: Instant, key: Fingerprint) -> bool {
        self.forget_before(now);
        self.failures.iter().any(|failure| failure.key == key)
    }

    /// `None` for a relay that the options cannot name.
    fn pace(&mut self, relay: RelayNumber) -> Option<&mut Pace> {
        if !self.relayed.contains_key(&relay) {
            self.relayed.insert(relay, Pace::default()).ok()?;
        }
        self.relayed.get_mut(&relay)
    }

    fn of(&self, source: Source) -> impl DoubleEndedIterator<Item = &Failure> {
        let is_of_it = move |failure: &&Failure| failure.source == source;
        self.failures.iter().filter(is_of_it)
    }

    fn closed(&self, source: Source) -> Option<Instant> {
        let last = self.of(source).rev().nth(MAX_FAILURES_OF_ONE - 1)?;
        Some(last.at + WINDOW)
    }

    fn has_a_try(&self, source: Source) -> bool {
        let held = self.held.get(&source).copied().unwrap_or_default();
        self.of(source).count() + held < MAX_FAILURES_OF_ONE
    }

    fn next_expiry(&self, source: Source) -> Option<Instant> {
        self.of(source).next().map(|failure| failure.at + WINDOW)
    }

    /// Of the first in line of each address that has an attempt left, the one whose address was served the
    /// longest ago; an address never served comes first.
    fn next_in_turn(&self) -> Option<Ticket> {
        let turn = |source: &Source| self.turns.iter().position(|served| served == source);
        self.waiting
            .iter()
            .filter(|(_, source)| !matches!(source, Source::Relay(_)) && self.has_a_try(**source))
            .min_by_key(|(ticket, source)| (turn(source), **ticket))
            .map(|(ticket, _)| *ticket)
    }

    fn forget_before(&mut self, now: Instant) {
        while let Some(oldest) = self.failures.front() {
            if now.saturating_duration_since(oldest.at) < WINDOW {
                return;
            }
            self.failures.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Fingerprint = Fingerprint([1; 32]);

    fn ip(text: &str) -> Source {
        text.parse::<IpAddr>().expect("an address").into()
    }

    fn numbered(n: u32) -> Source {
        Source::V4(Ipv4Addr::from(0x0a00_0000 + n))
    }

    struct World {
        limiter: Limiter,
        start: Instant,
    }

    impl World {
        fn new() -> Self {
            Self {
                limiter: Limiter::default(),
                start: Instant::now(),
            }
        }

        fn at(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }

        fn poll(&mut self, ms: u64, ticket: Ticket) -> Answer {
            let at = self.at(ms);
            self.limiter.poll(at, ticket)
        }

        /// Asks and polls once; leaves if it has to wait.
        fn begin(&mut self, ms: u64, source: Source) -> Answer {
            let ticket = self.limiter.ask(source);
            let answer = self.poll(ms, ticket);
            self.limiter.leave(ticket);
            answer
        }

        fn end(&mut self, ms: u64, source: Source, failed: bool) -> Option<Consequence> {
            let at = self.at(ms);
            self.limiter.end(at, source, KEY, failed)
        }

        /// One attempt that fails at once.
        fn fail(&mut self, ms: u64, source: Source) -> Option<Consequence> {
            assert_eq!(self.begin(ms, source), Answer::Go, "{source} at {ms} ms");
            self.end(ms, source, true)
        }
    }

    #[test]
    fn all_tunnels_through_one_carrier_are_one_address_and_close_no_other() {
        let mut world = World::new();
        let [guesser, other] = [[1; 8], [2; 8]].map(Source::Carrier);
        for n in 0..5 {
            world.fail(n, guesser);
        }
        let Answer::Closed(_) = world.begin(5, guesser) else {
            panic!("a carrier has more tries than an address");
        };
        assert_eq!(world.begin(5, other), Answer::Go);
        assert_eq!(world.begin(5, ip("192.0.2.1")), Answer::Go);
    }

    #[test]
    fn strangers_behind_a_relay_close_no_address_and_slow_down_no_other_stranger() {
        let mut world = World::new();
        let [relay, other] = [0, 1].map(|number| Source::Relay(RelayNumber(number)));
        for second in 0..3600 {
            let ms = second * 1000;
            while world.begin(ms, relay) == Answer::Go {
                assert_eq!(world.end(ms, relay, true), None);
            }
            let now = world.at(ms);
            assert!(world.limiter.closed_until(now, relay).is_some());
            assert_eq!(world.limiter.closed_until(now, other), None);
            assert_eq!(world.limiter.slow_until(now), None);
        }
        let now = 3_600_000;
        for free in [other, ip("192.0.2.1"), Source::Carrier([1; 8])] {
            assert_eq!(world.begin(now, free), Answer::Go, "{free}");
        }
        assert!(world.limiter.failures.is_empty());
    }

    #[test]
    fn a_source_is_shown_as_an_address_or_a_carrier() {
        for (source, shown) in [
            (ip("::ffff:192.0.2.1"), "192.0.2.1"),
            (ip("2001:db8:1:2:3::4"), "2001:db8:1:2::/64"),
            (
                Source::Carrier([1, 2, 3, 4, 5, 6, 7, 0xab]),
                "carrier 01020304050607ab",
            ),
            (Source::Relay(RelayNumber(1)), "relay 1"),
        ] {
            assert_eq!(source.to_string(), shown);
        }
    }

    #[test]
    fn the_sixth_try_of_an_address_waits_until_the_first_failure_is_a_minute_old() {
        let mut world = World::new();
        let guesser = ip("192.0.2.1");
        for second in 0..4 {
            let consequence = world.fail(second * 1000, guesser).expect("it failed");
            assert_eq!(consequence.closed_until, None);
        }
        let until = world.at(60_000);
        let consequence = world.fail(4000, guesser).expect("it failed");
        assert_eq!(consequence.closed_until, Some(until));
        assert_eq!(world.begin(5000, guesser), Answer::Closed(until));
        assert_eq!(world.begin(59_999, guesser), Answer::Closed(until));
        assert_eq!(world.begin(59_999, ip("192.0.2.2")), Answer::Go);
        world.fail(60_000, guesser);
        let until = world.at(61_000);
        assert_eq!(world.begin(60_000, guesser), Answer::Closed(until));
        let at = world.at(60_500);
        assert_eq!(world.limiter.closed_until(at, guesser), Some(until));
        let at = world.at(61_000);
        assert_eq!(world.limiter.closed_until(at, guesser), None);
    }

    #[test]
    fn of_250_tries_at_once_five_go_and_the_others_wait_for_an_outcome() {
        let mut world = World::new();
        let guesser = ip("192.0.2.1");
        let tickets: Vec<_> = (0..250).map(|_| world.limiter.ask(guesser)).collect();
        let answers: Vec<_> = tickets.iter().map(|t| world.poll(0, *t)).collect();
        let (go, wait) = answers.split_at(5);
        assert!(go.iter().all(|answer| *answer == Answer::Go));
        assert!(wait.iter().all(|answer| *answer == Answer::Wait(None)));
        // Success returns the attempt to the next in line; failures close the address for the rest.
        world.end(10, guesser, false);
        assert_eq!(world.poll(10, tickets[6]), Answer::Wait(None));
        assert_eq!(world.poll(10, tickets[5]), Answer::Go);
        for _ in 0..5 {
            world.end(20, guesser, true);
        }
        let until = world.at(60_020);
        for ticket in &tickets[6..] {
            assert_eq!(world.poll(30, *ticket), Answer::Closed(until));
        }
        assert!(world.limiter.waiting.is_empty() && world.limiter.held.is_empty());
    }

    #[test]
    fn failures_and_tries_in_flight_share_the_five() {
        let mut world = World::new();
        let address = ip("192.0.2.1");
        for ms in 0..3 {
            world.fail(ms, address);
        }
        assert_eq!(world.begin(3, address), Answer::Go);
        assert_eq!(world.begin(3, address), Answer::Go);
        let ticket = world.limiter.ask(address);
        // The oldest failure expires before the others do.
        let expiry = world.at(60_000);
        assert_eq!(world.poll(3, ticket), Answer::Wait(Some(expiry)));
        assert_eq!(world.poll(60_000, ticket), Answer::Go);
    }

    #[test]
    fn five_hundred_honest_tries_through_one_address_all_go() {
        let mut world = World::new();
        let address = ip("192.0.2.1");
        for n in 0..500 {
            assert_eq!(world.begin(n, address), Answer::Go);
            assert_eq!(world.end(n, address, false), None);
        }
    }

    #[test]
    fn a_waiter_that_goes_away_blocks_no_other() {
        let mut world = World::new();
        let address = ip("192.0.2.1");
        for _ in 0..5 {
            assert_eq!(world.begin(0, address), Answer::Go);
        }
        let (first, second) = (world.limiter.ask(address), world.limiter.ask(address));
        world.end(1, address, false);
        assert_eq!(world.poll(1, second), Answer::Wait(None));
        world.limiter.leave(first);
        assert_eq!(world.poll(1, second), Answer::Go);
    }

    #[test]
    fn a_v6_host_gains_nothing_by_changing_its_address_within_its_64() {
        let mut world = World::new();
        for host in 1..=5 {
            world.fail(0, ip(&format!("2001:db8:0:1::{host}")));
        }
        let answer = world.begin(0, ip("2001:db8:0:1:ffff::9"));
        assert!(matches!(answer, Answer::Closed(_)));
        assert_eq!(world.begin(0, ip("2001:db8:0:2::1")), Answer::Go);
    }

    #[test]
    fn a_v4_mapped_address_is_the_v4_address() {
        let mut world = World::new();
        for _ in 0..5 {
            world.fail(0, ip("::ffff:192.0.2.1"));
        }
        let answer = world.begin(0, ip("192.0.2.1"));
        assert!(matches!(answer, Answer::Closed(_)));
        assert_eq!(world.begin(0, ip("::ffff:192.0.2.2")), Answer::Go);
    }

    #[test]
    fn after_sixty_failures_in_all_strangers_get_one_try_a_second() {
        let mut world = World::new();
        for n in 0..60 {
            let consequence = world.fail(0, numbered(n)).expect("it failed");
            assert_eq!(consequence.too_many_in_all, n == 59);
        }
        let mut now = world.at(0);
        assert_eq!(world.limiter.slow_until(now), Some(world.at(60_000)));
        assert_eq!(world.begin(0, numbered(100)), Answer::Go);
        world.end(0, numbered(100), false);
        let next = world.at(1000);
        assert_eq!(world.begin(1, numbered(101)), Answer::Wait(Some(next)));
        assert_eq!(world.begin(1000, numbered(101)), Answer::Go);
        world.end(1000, numbered(101), false);
        now = world.at(60_000);
        assert_eq!(world.limiter.slow_until(now), None);
        for n in 0..30 {
            assert_eq!(world.begin(60_000, numbered(200 + n)), Answer::Go);
        }
    }

    #[test]
    fn addresses_take_turns_when_tries_are_few() {
        let mut world = World::new();
        for n in 0..60 {
            world.fail(0, numbered(n));
        }
        let greedy: Vec<_> = (0..100)
            .map(|_| world.limiter.ask(ip("192.0.2.1")))
            .collect();
        assert_eq!(world.poll(0, greedy[0]), Answer::Go);
        world.end(0, ip("192.0.2.1"), false);
        let honest = world.limiter.ask(ip("192.0.2.2"));
        let late = world.limiter.ask(ip("192.0.2.3"));
        let next = world.at(1000);
        assert_eq!(world.poll(999, honest), Answer::Wait(Some(next)));
        // The greedy one came first, but had its turn.
        assert_eq!(world.poll(1000, greedy[1]), Answer::Wait(None));
        assert_eq!(world.poll(1000, late), Answer::Wait(None));
        assert_eq!(world.poll(1000, honest), Answer::Go);
        world.end(1000, ip("192.0.2.2"), false);
        assert_eq!(world.poll(2000, greedy[1]), Answer::Wait(None));
        assert_eq!(world.poll(2000, late), Answer::Go);
        world.end(2000, ip("192.0.2.3"), false);
        assert_eq!(world.poll(3000, greedy[1]), Answer::Go);
    }

    #[test]
    fn an_address_that_has_no_try_left_keeps_no_turn_from_others() {
        let mut world = World::new();
        for n in 0..60 {
            world.fail(0, numbered(n));
        }
        let slow = ip("192.0.2.1");
        // Five attempts that never end.
        for second in 0..5 {
            assert_eq!(world.begin(second * 1000, slow), Answer::Go);
        }
        let _stuck = world.limiter.ask(slow);
        let honest = world.limiter.ask(ip("192.0.2.2"));
        assert_eq!(world.poll(5000, honest), Answer::Go);
    }

    #[test]
    fn however_many_fail_no_more_than_the_limit_is_remembered() {
        let mut world = World::new();
        let (mut failed, mut reported) = (0, 0);
        for n in 0..200_000_u32 {
            let ms = u64::from(n);
            if world.begin(ms, numbered(n)) == Answer::Go {
                let consequence = world.end(ms, numbered(n), true).expect("it failed");
                failed += 1;
                reported += usize::from(consequence.too_many_in_all);
            }
            assert!(world.limiter.failures.len() <= MAX_REMEMBERED / 2);
            assert!(world.limiter.turns.len() <= MAX_REMEMBERED);
        }
        assert!(world.limiter.held.is_empty() && world.limiter.waiting.is_empty());
        // Sixty at once, then one a second.
        assert!((200..=300).contains(&failed), "{failed}");
        assert_eq!(reported, 4, "once a minute");
    }

    #[test]
    fn a_key_is_remembered_as_long_as_its_failure() {
        let mut world = World::new();
        let address = ip("192.0.2.1");
        world.fail(0, address);
        let (soon, late) = (world.at(59_999), world.at(60_000));
        assert!(!world.limiter.has_failed(soon, Fingerprint([2; 32])));
        assert!(world.limiter.has_failed(soon, KEY));
        assert!(!world.limiter.has_failed(late, KEY));
    }

    #[test]
    fn a_clock_that_steps_back_forgets_nothing() {
        let mut world = World::new();
        for _ in 0..5 {
            world.fail(100_000, ip("192.0.2.1"));
        }
        let answer = world.begin(0, ip("192.0.2.1"));
        assert!(matches!(answer, Answer::Closed(_)));
    }
}
