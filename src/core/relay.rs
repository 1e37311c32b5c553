//! Broadcasts of a centralized room: what their origin keeps, and which of them are repetitions.
//!
//! An origin numbers its broadcasts through its incarnation and keeps each until a leader has relayed it; after a
//! change of the leader they go again. So a leader may get a broadcast that was relayed before, and a
//! receiver may get one from two leaders. Nothing here knows links, queues or time.
//!
//! A leader knows the numbers of what it was given, and so the next ones. Were it to use those up with messages of its own,
//! the origin's would be taken for repetitions under the leaders after it. So an origin leaps ahead, by a distance that
//! nobody knows, when its leader changes.

use std::collections::{BTreeMap, VecDeque};

use super::id::{Incarnation, PeerId};

/// Lanes of incarnations of origins that are remembered, at most.
const MAX_REMEMBERED: usize = 4096;
/// Separate runs of numbers that are remembered of one origin, at most. A gap comes about when leaders change.
const MAX_RUNS: usize = 64;

/// What an origin has broadcast and no leader has relayed yet, numbered.
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
    /// How many broadcasts are kept, and how many bytes they have.
    pub fn kept(&self) -> (usize, usize) {
        (self.kept.len(), self.bytes)
    }

    /// Whether everything has been relayed.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The numbers go on that far ahead, from the next broadcast on that is pushed while nothing is kept: those between
    /// two that are kept must not be missing.
    pub fn leap(&mut self, distance: u64) {
        // It never comes near the last number: one leap is made for each of many leaders.
        if self.next() < 1 << 63 {
            self.leap = distance.min(1 << 62);
        }
    }

    /// Keeps a broadcast of `len` bytes; gives its number.
    pub fn push(&mut self, message: M, len: usize) -> u64 {
        if self.kept.is_empty() {
            self.first += std::mem::take(&mut self.leap);
        }
        let number = self.next();
        self.kept.push_back((message, len));
        self.bytes += len;
        number
    }

    /// Every broadcast before this number has been relayed.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number of the next broadcast.
    pub fn next(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// A leader has relayed everything before number `next`. What was forgotten before stays forgotten.
    pub fn relayed(&mut self, next: u64) {
        while self.first < next
            && let Some((_, len)) = self.kept.pop_front()
        {
            self.first += 1;
            self.bytes -= len;
        }
    }

    /// What is kept, with its numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &M)> {
        (self.first..).zip(self.kept.iter().map(|(message, _)| message))
    }
}

/// A set of numbers that come in long runs: the ends of few runs are kept, and gaps are filled later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs {
    /// Disjoint, ascending and not adjacent; the second number is the one after the run.
    runs: Vec<(u64, u64)>,
}

impl Runs {
    /// Whether the number is in it.
    pub fn contains(&self, number: u64) -> bool {
        let before = self.runs.partition_point(|(start, _)| *start <= number);
        before > 0 && number < self.runs[before - 1].1
    }

    /// Puts a number in. Beyond the limit of runs the shortest of the others is forgotten, so that its numbers may be
    /// taken again. No gap counts as seen: a leader that makes numbers up would take those of the origin away.
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
                    self.forget_the_shortest_but(at);
                }
            }
        }
    }

    fn forget_the_shortest_but(&mut self, kept: usize) {
        let runs = self.runs.iter().enumerate();
        let others = runs.filter(|(index, _)| *index != kept);
        let shortest = others.min_by_key(|(_, (start, end))| end - start);
        if let Some((shortest, _)) = shortest {
            self.runs.remove(shortest);
        }
    }
}

/// Something about each lane of the incarnations of origins that were active last: an origin numbers the broadcasts of
/// each lane by themselves.
///
/// A relay does not decide which incarnation an origin has now: the origin's own link does. So no incarnation replaces
/// another here, and those of origins that have a link or are waited for are the last to be forgotten.
#[derive(Debug, Clone)]
struct PerIncarnation<T> {
    incarnations: BTreeMap<(PeerId, Incarnation, u16), Entry<T>>,
    uses: u64,
}

#[derive(Debug, Clone)]
struct Entry<T> {
    is_bound: bool,
    used: u64,
    value: T,
}

impl<T> Default for PerIncarnation<T> {
    fn default() -> Self {
        Self {
            incarnations: BTreeMap::new(),
            uses: 0,
        }
    }
}

impl<T: Default> PerIncarnation<T> {
    /// What is remembered of this lane and incarnation of `origin`. It is bound if a link with the origin shows that this
    /// incarnation is its own.
    fn entry(
        &mut self,
        origin: &PeerId,
        incarnation: Incarnation,
        is_bound: bool,
        lane: u16,
    ) -> &mut T {
        self.uses += 1;
        let name = (origin.clone(), incarnation, lane);
        if !self.incarnations.contains_key(&name) {
            if is_bound {
                for (_, before) in self
                    .incarnations
                    .iter_mut()
                    .filter(|((id, of, _), _)| id == origin && *of != incarnation)
                {
                    before.is_bound = false;
                }
            }
            if self.incarnations.len() >= MAX_REMEMBERED {
                let oldest = self.incarnations.iter();
                let oldest = oldest.min_by_key(|(_, entry)| (entry.is_bound, entry.used));
                if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                    self.incarnations.remove(&oldest);
                }
            }
        }
        let entry = self.incarnations.entry(name).or_insert_with(|| Entry {
            is_bound,
            used: 0,
            value: T::default(),
        });
        entry.used = self.uses;
        entry.is_bound |= is_bound;
        &mut entry.value
    }
}

/// The broadcasts that this host has been given, for those that come again.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    runs: PerIncarnation<Runs>,
}

impl Heard {
    /// Whether the host has not been given this broadcast.
    pub fn is_new(
        &mut self,
        origin: &PeerId,
        incarnation: Incarnation,
        is_bound: bool,
        lane: u16,
        number: u64,
    ) -> bool {
        !self
            .runs
            .entry(origin, incarnation, is_bound, lane)
            .contains(number)
    }

    /// The host has been given this broadcast.
    pub fn insert(
        &mut self,
        origin: &PeerId,
        incarnation: Incarnation,
        is_bound: bool,
        lane: u16,
        number: u64,
    ) {
        self.runs
            .entry(origin, incarnation, is_bound, lane)
            .insert(number);
    }
}

/// What a leader has relayed of each origin.
#[derive(Debug, Clone, Default)]
pub struct Relays {
    progress: PerIncarnation<Progress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Everything before this number is with the other members' queues.
    forwarded: u64,
    /// Everything before this number is with this host as well.
    done: u64,
}

/// What a leader does with a broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Nothing: it was relayed, as everything before this number.
    Repeated(u64),
    /// It drops it: one before it is missing and will come again, and this one after it.
    Early,
    /// It is the next: for this host only, if the others have it.
    Next {
        /// Whether the others' queues have it.
        forwarded: bool,
    },
}

impl Relays {
    /// Where the broadcast `number` stands, when its origin knows that all before `first` are relayed.
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

    /// The others' queues have the broadcast `number`.
    pub fn forwarded(&mut self, origin: &PeerId, incarnation: Incarnation, lane: u16, number: u64) {
        let progress = self.progress.entry(origin, incarnation, true, lane);
        progress.forwarded = progress.forwarded.max(number + 1);
    }

    /// Everybody has the broadcast `number`; gives the number after it.
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
    fn a_log_tells_how_much_it_keeps() {
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

    #[test]
    fn a_host_is_given_a_broadcast_once_in_each_incarnation_of_its_origin() {
        let mut heard = Heard::default();
        let (a, b) = (id("a"), id("b"));
        assert!(heard.is_new(&a, incarnation(1), true, 0, 0));
        assert!(
            heard.is_new(&a, incarnation(1), true, 0, 0),
            "asking changes nothing"
        );
        heard.insert(&a, incarnation(1), true, 0, 0);
        assert!(!heard.is_new(&a, incarnation(1), true, 0, 0));
        assert!(heard.is_new(&b, incarnation(1), true, 0, 0));
        assert!(heard.is_new(&a, incarnation(2), true, 0, 0), "it restarted");
        heard.insert(&a, incarnation(u64::MAX), false, 0, 0);
        assert!(
            !heard.is_new(&a, incarnation(1), true, 0, 0),
            "whatever a relay says"
        );
    }

    #[test]
    fn the_incarnations_that_were_silent_longest_are_forgotten_and_those_of_members_last() {
        let mut heard = Heard::default();
        let name = |n| id(&format!("p{n}"));
        for n in 0..MAX_REMEMBERED {
            heard.insert(&name(n), incarnation(1), n < 2, 0, 0);
        }
        for n in 0..3000 {
            heard.insert(&id("p0"), incarnation(10 + n), false, 0, 0);
        }
        assert_eq!(heard.runs.incarnations.len(), MAX_REMEMBERED);
        for n in 0..2 {
            assert!(!heard.is_new(&name(n), incarnation(1), true, 0, 0));
        }
        assert!(heard.is_new(&name(2), incarnation(1), false, 0, 0));
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
        // 4 and 5 came while it did not lead yet; all before 4 went through another leader.
        assert_eq!(relays.place(&a, now, 0, 6, 4), Place::Early);
        assert_eq!(
            relays.place(&a, now, 0, 4, 4),
            Place::Next { forwarded: false }
        );
        relays.done(&a, now, 0, 4);
        // 5 and 6 went through another leader once more.
        assert_eq!(
            relays.place(&a, now, 0, 7, 7),
            Place::Next { forwarded: false }
        );
        assert_eq!(relays.place(&a, now, 0, 6, 4), Place::Repeated(7));
    }
}
