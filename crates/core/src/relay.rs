//! Broadcasts of a centralized room: the log of their origin, and the detection of repetitions.
//!
//! An origin numbers its broadcasts across its incarnation and keeps each until a leader has relayed it; after a change
//! of the leader it sends them again. So a leader may get a broadcast that was relayed before, and a receiver may get
//! one from two leaders. Nothing here depends on links, queues or time.
//!
//! A leader knows the numbers of the broadcasts that it received, and so the next ones. If it used those up with
//! messages of its own, receivers would take the origin's broadcasts for repetitions under later leaders. So an origin
//! leaps ahead by an unpredictable distance when its leader changes.

use std::collections::{BTreeMap, VecDeque};

use super::bounded::{BoundedMap, Newest};
use super::id::{Incarnation, PeerId};

/// Most lanes of incarnations of origins that are remembered.
const MAX_REMEMBERED: usize = 4096;
/// Most separate runs of numbers that are remembered of one origin. A change of the leader can leave a gap.
const MAX_RUNS: usize = 64;
/// Most broadcasts of one origin whose digests are kept: the newest.
const MAX_DIGESTS: usize = 1024;
/// Most origins whose digests are kept.
const MAX_DIGESTED_ORIGINS: usize = 256;

/// The numbered broadcasts of an origin that no leader has relayed yet.
#[derive(Debug, Clone)]
pub struct CentralLog<M> {
    kept: VecDeque<(M, usize)>,
    first: u64,
    bytes: usize,
    leap: u64,
}

impl<M> Default for CentralLog<M> {
    fn default() -> Self {
        Self {
            kept: VecDeque::new(),
            first: 0,
            bytes: 0,
            leap: 0,
        }
    }
}

impl<M> CentralLog<M> {
    /// Number of kept broadcasts, and their size in bytes.
    pub fn kept(&self) -> (usize, usize) {
        (self.kept.len(), self.bytes)
    }

    /// Whether leaders have relayed all broadcasts.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Skips `distance` numbers at the next broadcast that is pushed while none is kept: there must be no gap between
    /// two kept ones.
    pub fn leap(&mut self, distance: u64) {
        // It never comes near the last number: there is one leap per change of the leader.
        if self.next() < 1 << 63 {
            self.leap = distance.min(1 << 62);
        }
    }

    /// Keeps a broadcast of `len` bytes; returns its number.
    pub fn push(&mut self, message: M, len: usize) -> u64 {
        if self.kept.is_empty() {
            self.first += std::mem::take(&mut self.leap);
        }
        let number = self.next();
        self.kept.push_back((message, len));
        self.bytes += len;
        number
    }

    /// The first number that is not known to be relayed.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number of the next broadcast.
    pub fn next(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Forgets every broadcast before `next`: a leader has relayed them. A smaller `next` than before changes nothing.
    pub fn relayed(&mut self, next: u64) {
        while self.first < next
            && let Some((_, len)) = self.kept.pop_front()
        {
            self.first += 1;
            self.bytes -= len;
        }
    }

    /// The kept broadcasts with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &M)> {
        (self.first..).zip(self.kept.iter().map(|(message, _)| message))
    }
}

/// A set of numbers that come in long runs: it stores the ends of a few runs, and later numbers fill the gaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs {
    /// Disjoint, ascending and not adjacent; the second number is the one after the run.
    runs: Vec<(u64, u64)>,
}

impl Runs {
    /// Whether the set contains the number.
    pub fn contains(&self, number: u64) -> bool {
        let before = self.runs.partition_point(|(start, _)| *start <= number);
        before > 0 && number < self.runs[before - 1].1
    }

    /// Adds a number. Beyond the limit of runs it forgets the shortest other run, so that its numbers may be accepted
    /// again. It never fills a gap: a leader that makes numbers up would take the origin's numbers away.
    pub fn insert(&mut self, number: u64) {
        if self.contains(number) || number == u64::MAX {
            return;
        }
        let at = self.runs.partition_point(|(start, _)| *start <= number);
        let joins_left = at > 0 && self.runs[at - 1].1 == number;
        let joins_right = self
            .runs
            .get(at)
            .is_some_and(|(start, _)| *start == number + 1);
        match (joins_left, joins_right) {
            (true, true) => {
                let (_, end) = self.runs.remove(at);
                self.runs[at - 1].1 = end;
            }
            (true, false) => self.runs[at - 1].1 = number + 1,
            (false, true) => self.runs[at].0 = number,
            (false, false) => {
                self.runs.insert(at, (number, number + 1));
                if self.runs.len() > MAX_RUNS {
                    self.forget_shortest_except(at);
                }
            }
        }
    }

    fn forget_shortest_except(&mut self, kept: usize) {
        let runs = self.runs.iter().enumerate();
        let others = runs.filter(|(index, _)| *index != kept);
        let shortest = others.min_by_key(|(_, (start, end))| end - start);
        if let Some((shortest, _)) = shortest {
            self.runs.remove(shortest);
        }
    }
}

/// A value per lane of the incarnations of origins that were active last: an origin numbers each lane separately.
///
/// A relay does not decide which incarnation an origin has now: the origin's own link does. So incarnations do not
/// replace each other here. The ones of origins that have a link or keep a place are forgotten last.
#[derive(Debug, Clone)]
struct PerIncarnation<T> {
    incarnations: BoundedMap<(PeerId, Incarnation, u16), Entry<T>, MAX_REMEMBERED>,
    uses: u64,
}

#[derive(Debug, Clone, Default)]
struct Entry<T> {
    is_bound: bool,
    used: u64,
    value: T,
}

impl<T> Default for PerIncarnation<T> {
    fn default() -> Self {
        Self {
            incarnations: BoundedMap::default(),
            uses: 0,
        }
    }
}

impl<T: Default> PerIncarnation<T> {
    /// The value of this lane and incarnation of `origin`. It is bound if a link with the origin shows this
    /// incarnation.
    fn entry(
        &mut self,
        origin: &PeerId,
        incarnation: Incarnation,
        is_bound: bool,
        lane: u16,
    ) -> &mut T {
        self.uses += 1;
        let name = (origin.clone(), incarnation, lane);
        if is_bound && !self.incarnations.contains_key(&name) {
            let its = self.incarnations.iter_mut();
            for (_, before) in its.filter(|((id, of, _), _)| id == origin && *of != incarnation) {
                before.is_bound = false;
            }
        }
        let rank = |_: &_, entry: &Entry<T>| (entry.is_bound, entry.used);
        let entry = self.incarnations.or_default_over(name, rank);
        entry.used = self.uses;
        entry.is_bound |= is_bound;
        &mut entry.value
    }
}

/// The name of a broadcast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BroadcastName {
    /// Its origin.
    pub origin: PeerId,
    /// The origin's incarnation that numbered it.
    pub incarnation: Incarnation,
    /// The lane on which it is numbered.
    pub lane: u16,
    /// Its number there.
    pub number: u64,
}

/// A broadcast as a member relayed it.
#[derive(Debug, Clone, Copy)]
pub struct RelayedCopy<'a> {
    /// The member that relayed it.
    pub relay: &'a PeerId,
    /// Whether the relay is the present leader, and not a former one.
    pub by_leader: bool,
    /// Whether a link with the origin shows this incarnation.
    pub is_bound: bool,
    /// Digest of the message.
    pub digest: u64,
}

/// The broadcasts that this host has received, to detect repetitions.
///
/// A number that a former leader used up with a message of its own must not cost the origin its message. So only
/// numbers from a present leader count permanently. For the newest broadcasts the digests are kept too: another message
/// that the present leader relays under a known number is new.
#[derive(Debug, Clone, Default)]
pub struct ReceivedBroadcasts {
    runs: PerIncarnation<Runs>,
    digests: BoundedMap<PeerId, Digests, MAX_DIGESTED_ORIGINS>,
    uses: u64,
}

impl ReceivedBroadcasts {
    /// Whether the host has not received this broadcast yet.
    pub fn is_new(&mut self, name: &BroadcastName, copy: RelayedCopy<'_>) -> bool {
        let digests = self.digests.get(&name.origin);
        match digests.and_then(|digests| digests.compare(name, copy)) {
            None => !self.runs_of(name, copy).contains(name.number),
            Some(Compared::Same) => {
                if copy.by_leader {
                    self.runs_of(name, copy).insert(name.number);
                }
                false
            }
            Some(Compared::AnotherOfItsRelay) => false,
            Some(Compared::Another) => copy.by_leader,
        }
    }

    /// Notes that the host has received this broadcast.
    pub fn insert(&mut self, name: &BroadcastName, copy: RelayedCopy<'_>) {
        if copy.by_leader {
            self.runs_of(name, copy).insert(name.number);
        }
        self.uses += 1;
        let rank = |_: &_, digests: &Digests| (digests.is_bound, digests.used);
        let digests = self.digests.or_default_over(name.origin.clone(), rank);
        digests.used = self.uses;
        digests.is_bound = copy.is_bound;
        digests.insert(name, copy);
    }

    fn runs_of(&mut self, name: &BroadcastName, copy: RelayedCopy<'_>) -> &mut Runs {
        let BroadcastName {
            origin,
            incarnation,
            lane,
            ..
        } = name;
        self.runs.entry(origin, *incarnation, copy.is_bound, *lane)
    }
}

/// The digests of the newest broadcasts of one origin.
#[derive(Debug, Clone, Default)]
struct Digests {
    /// The relay, by incarnation, lane, number and digest.
    relays: BTreeMap<DigestKey, PeerId>,
    by_age: Newest<DigestKey, MAX_DIGESTS>,
    is_bound: bool,
    used: u64,
}

type DigestKey = (Incarnation, u16, u64, u64);

/// Comparison of a copy with the delivered ones of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// A delivered one has its digest.
    Same,
    /// All have other digests and came through other relays.
    Another,
    /// All have other digests, and one came through the same relay.
    AnotherOfItsRelay,
}

impl Digests {
    fn compare(&self, name: &BroadcastName, copy: RelayedCopy<'_>) -> Option<Compared> {
        let key = |digest| (name.incarnation, name.lane, name.number, digest);
        let mut given = self.relays.range(key(0)..=key(u64::MAX)).peekable();
        given.peek()?;
        if self.relays.contains_key(&key(copy.digest)) {
            return Some(Compared::Same);
        }
        Some(match given.any(|(_, relay)| relay == copy.relay) {
            true => Compared::AnotherOfItsRelay,
            false => Compared::Another,
        })
    }

    fn insert(&mut self, name: &BroadcastName, copy: RelayedCopy<'_>) {
        let key = (name.incarnation, name.lane, name.number, copy.digest);
        if self.relays.insert(key, copy.relay.clone()).is_some() {
            return;
        }
        if let Some(oldest) = self.by_age.push(key) {
            self.relays.remove(&oldest);
        }
    }
}

/// The progress of a leader's relaying, per origin.
#[derive(Debug, Clone, Default)]
pub struct Relays {
    progress: PerIncarnation<Progress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// The queues of the other members have everything before this number.
    forwarded: u64,
    /// This host, too, has everything before this number.
    done: u64,
}

/// A leader's decision about a broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Ignored: it was relayed, as everything before this number.
    Repeated(u64),
    /// Dropped: an earlier one is missing; the origin will send both again.
    Early,
    /// The next one: for this host only, if the others have it.
    Next {
        /// Whether the queues of the others have it.
        forwarded: bool,
    },
}

impl Relays {
    /// The decision about broadcast `number`, whose origin knows that all before `first` are relayed.
    pub fn place(
        &mut self,
        origin: &PeerId,
        incarnation: Incarnation,
        lane: u16,
        number: u64,
        first: u64,
    ) -> Place {
        let progress = self.progress.entry(origin, incarnation, true, lane);
        progress.done = progress.done.max(first);
        progress.forwarded = progress.forwarded.max(progress.done);
        if number < progress.done {
            Place::Repeated(progress.done)
        } else if number > progress.done {
            Place::Early
        } else {
            Place::Next {
                forwarded: number < progress.forwarded,
            }
        }
    }

    /// Notes that the queues of the others have the broadcast `number`.
    pub fn forwarded(&mut self, origin: &PeerId, incarnation: Incarnation, lane: u16, number: u64) {
        let progress = self.progress.entry(origin, incarnation, true, lane);
        progress.forwarded = progress.forwarded.max(number + 1);
    }

    /// Notes that all members have the broadcast `number`; returns the number after it.
    pub fn done(
        &mut self,
        origin: &PeerId,
        incarnation: Incarnation,
        lane: u16,
        number: u64,
    ) -> u64 {
        let progress = self.progress.entry(origin, incarnation, true, lane);
        progress.done = progress.done.max(number + 1);
        number + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn id(name: &str) -> PeerId {
        PeerId::new(name).expect("valid")
    }

    fn incarnation(started_us: u64) -> Incarnation {
        Incarnation {
            started_us,
            random: 7,
        }
    }

    #[test]
    fn a_log_keeps_what_no_leader_has_relayed() {
        let mut log = CentralLog::default();
        assert_eq!(
            [log.push('a', 10), log.push('b', 10), log.push('c', 10)],
            [0, 1, 2]
        );
        log.relayed(2);
        assert_eq!(log.iter().collect::<Vec<_>>(), [(2, &'c')]);
        log.relayed(1);
        assert_eq!((log.first(), log.next()), (2, 3));
        log.relayed(9);
        assert_eq!(
            (log.first(), log.next()),
            (3, 3),
            "nothing that was not sent"
        );
        assert_eq!(log.push('d', 10), 3);
    }

    #[test]
    fn a_log_leaps_ahead_once_nothing_is_kept() {
        let mut log = CentralLog::default();
        log.leap(100);
        assert_eq!((log.first(), log.next()), (0, 0));
        assert_eq!([log.push('a', 1), log.push('b', 1)], [100, 101]);
        log.leap(1000);
        assert_eq!(
            log.push('c', 1),
            102,
            "the leader waits for what is between"
        );
        log.relayed(103);
        assert_eq!(log.push('d', 1), 1103);
        assert_eq!((log.first(), log.next()), (1103, 1104));
        log.relayed(1104);
        for _ in 0..10 {
            log.leap(u64::MAX);
            let number = log.push('e', 1);
            log.relayed(number + 1);
        }
        assert!(log.next() < u64::MAX, "the last number is no broadcast's");
    }

    #[test]
    fn a_log_reports_its_size() {
        let mut log = CentralLog::default();
        assert!(log.is_empty());
        log.push((), 60);
        log.push((), 1);
        assert_eq!(log.kept(), (2, 61));
        log.relayed(1);
        assert_eq!(log.kept(), (1, 1));
        assert!(!log.is_empty());
    }

    #[test]
    fn a_gap_is_filled_later_and_a_repetition_is_known() {
        let mut runs = Runs::default();
        for number in [500, 501, 503, 10, 502, 9, 11] {
            assert!(!runs.contains(number));
            runs.insert(number);
            assert!(runs.contains(number));
        }
        assert_eq!(runs.runs, [(9, 12), (500, 504)]);
        runs.insert(501);
        assert_eq!(runs.runs, [(9, 12), (500, 504)]);
    }

    #[test]
    fn the_number_of_runs_is_bounded_and_no_gap_ever_closes() {
        let mut runs = Runs::default();
        for number in (0..10).chain((0..1000).map(|n| 100 + 2 * n)) {
            runs.insert(number);
        }
        assert_eq!(runs.runs.len(), MAX_RUNS);
        assert_eq!(runs.runs[0], (0, 10), "the long run stays");
        assert!(!runs.contains(10) && !runs.contains(101));
        assert!(runs.contains(2098), "and so does the newest");
        runs.insert(u64::MAX);
        assert!(!runs.contains(u64::MAX), "a number that no origin reaches");
        runs.insert(u64::MAX - 1);
        runs.insert(10);
        assert_eq!(runs.runs[0], (0, 11));
    }

    proptest! {
        #[test]
        fn runs_are_a_set(numbers in proptest::collection::vec(0_u64..60, 0..200)) {
            let (mut runs, mut set) = (Runs::default(), BTreeSet::new());
            for number in numbers {
                runs.insert(number);
                set.insert(number);
                for n in 0..61 {
                    prop_assert_eq!(runs.contains(n), set.contains(&n));
                }
            }
        }
    }

    fn name(origin: &str, started_us: u64, number: u64) -> BroadcastName {
        BroadcastName {
            origin: id(origin),
            incarnation: incarnation(started_us),
            lane: 0,
            number,
        }
    }

    /// A copy that the present leader relayed.
    fn by(relay: &PeerId, digest: u64) -> RelayedCopy<'_> {
        RelayedCopy {
            relay,
            by_leader: true,
            is_bound: true,
            digest,
        }
    }

    fn formerly_by(relay: &PeerId, digest: u64) -> RelayedCopy<'_> {
        RelayedCopy {
            by_leader: false,
            ..by(relay, digest)
        }
    }

    #[test]
    fn a_host_is_given_a_broadcast_once_in_each_incarnation_of_its_origin() {
        let mut received = ReceivedBroadcasts::default();
        let leader = id("leader");
        let copy = by(&leader, 7);
        for _ in 0..2 {
            assert!(
                received.is_new(&name("a", 1, 0), copy),
                "asking changes nothing"
            );
        }
        received.insert(&name("a", 1, 0), copy);
        assert!(!received.is_new(&name("a", 1, 0), copy));
        assert!(received.is_new(&name("b", 1, 0), copy));
        assert!(received.is_new(&name("a", 2, 0), copy), "it restarted");
        let unbound = RelayedCopy {
            is_bound: false,
            ..copy
        };
        received.insert(&name("a", u64::MAX, 0), unbound);
        assert!(
            !received.is_new(&name("a", 1, 0), copy),
            "whatever a relay claims"
        );
    }

    #[test]
    fn a_number_that_a_former_leader_used_up_costs_the_origin_nothing() {
        for count in [10, 1024, 3000] {
            used_up_by_a_former_leader(count);
        }
    }

    fn used_up_by_a_former_leader(count: u64) {
        let mut received = ReceivedBroadcasts::default();
        let [former, leader] = ["former", "leader"].map(id);
        for number in 0..count {
            let name = name("b", 1, number);
            assert!(received.is_new(&name, formerly_by(&former, u64::MAX)));
            received.insert(&name, formerly_by(&former, u64::MAX));
        }
        for number in 0..count {
            let name = name("b", 1, number);
            assert!(received.is_new(&name, by(&leader, number)), "{number}");
            received.insert(&name, by(&leader, number));
            for again in [
                by(&leader, number),
                by(&leader, u64::MAX),
                formerly_by(&former, u64::MAX),
            ] {
                assert!(!received.is_new(&name, again), "{number}");
            }
        }
    }

    #[test]
    fn leaders_that_alternate_deliver_no_message_twice() {
        let mut received = ReceivedBroadcasts::default();
        let [liar, leader] = ["liar", "leader"].map(id);
        let name = name("b", 1, 5);
        for (copy, is_new) in [
            (by(&liar, 1), true),
            (by(&leader, 2), true),
            (by(&liar, 3), false),
            (by(&leader, 2), false),
            (by(&liar, 1), false),
        ] {
            assert_eq!(received.is_new(&name, copy), is_new, "{copy:?}");
            if is_new {
                received.insert(&name, copy);
            }
        }
    }

    #[test]
    fn honest_relays_of_a_former_leader_are_delivered_once() {
        let mut received = ReceivedBroadcasts::default();
        let [former, leader] = ["former", "leader"].map(id);
        for number in 0..1024 {
            received.insert(&name("b", 1, number), formerly_by(&former, number));
        }
        for number in 0..1024 {
            assert!(!received.is_new(&name("b", 1, number), by(&leader, number)));
        }
        // Also after its digest is forgotten.
        for number in 5000..7000 {
            received.insert(&name("b", 1, number), formerly_by(&former, number));
        }
        for number in 0..1024 {
            assert!(!received.is_new(&name("b", 1, number), by(&leader, number)));
        }
    }

    #[test]
    fn digests_are_bounded_for_each_origin_and_in_all() {
        let mut received = ReceivedBroadcasts::default();
        let leader = id("leader");
        for number in 0..5000 {
            received.insert(&name("b", number % 3, number), by(&leader, number));
        }
        let digests = &received.digests[&id("b")];
        let counts = (digests.relays.len(), digests.by_age.len());
        assert_eq!(counts, (MAX_DIGESTS, MAX_DIGESTS));
        for n in 0..2000 {
            let copy = RelayedCopy {
                is_bound: false,
                ..by(&leader, 1)
            };
            received.insert(&name(&format!("p{n}"), 1, 1), copy);
        }
        assert_eq!(received.digests.len(), MAX_DIGESTED_ORIGINS);
        assert!(received.digests.contains_key(&id("b")), "a member's stay");
    }

    #[test]
    fn the_incarnations_that_were_silent_longest_are_forgotten_and_those_of_members_last() {
        let mut received = ReceivedBroadcasts::default();
        let leader = id("leader");
        let copy = |is_bound| RelayedCopy {
            is_bound,
            ..by(&leader, 1)
        };
        let named = |n| name(&format!("p{n}"), 1, 0);
        for n in 0..MAX_REMEMBERED {
            received.insert(&named(n), copy(n < 2));
        }
        for n in 0..3000 {
            received.insert(&name("p0", 10 + n, 0), copy(false));
        }
        assert_eq!(received.runs.incarnations.len(), MAX_REMEMBERED);
        for n in 0..2 {
            assert!(!received.is_new(&named(n), copy(true)));
        }
        assert!(received.is_new(&named(2), copy(false)));
    }

    #[test]
    fn a_leader_relays_in_order_and_each_once() {
        let mut relays = Relays::default();
        let (a, now) = (id("a"), incarnation(1));
        let next = |forwarded| Place::Next { forwarded };
        assert_eq!(relays.place(&a, now, 0, 0, 0), next(false));
        assert_eq!(relays.place(&a, now, 0, 1, 0), Place::Early);
        relays.forwarded(&a, now, 0, 0);
        assert_eq!(relays.place(&a, now, 0, 0, 0), next(true));
        assert_eq!(relays.done(&a, now, 0, 0), 1);
        assert_eq!(relays.place(&a, now, 0, 0, 0), Place::Repeated(1));
        assert_eq!(relays.place(&a, now, 0, 1, 0), next(false));
    }

    #[test]
    fn a_leader_waits_for_what_it_refused_before_it_led() {
        let mut relays = Relays::default();
        let (a, now) = (id("a"), incarnation(1));
        // 4 and 5 came before this node led; another leader relayed everything before 4.
        assert_eq!(relays.place(&a, now, 0, 6, 4), Place::Early);
        assert_eq!(
            relays.place(&a, now, 0, 4, 4),
            Place::Next { forwarded: false }
        );
        relays.done(&a, now, 0, 4);
        // Another leader relayed 5 and 6 in between.
        assert_eq!(
            relays.place(&a, now, 0, 7, 7),
            Place::Next { forwarded: false }
        );
        assert_eq!(relays.place(&a, now, 0, 6, 4), Place::Repeated(7));
    }
}
