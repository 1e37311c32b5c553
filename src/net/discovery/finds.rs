//! What was found in the local network, and what of it is to be dialled when. Knows no sockets and no clock.
//!
//! Of two members that find each other the one with the smaller name dials at once, and the other one where no
//! link came of that. Waits between dials belong to addresses, so that new names for one address, which anybody
//! in the network can make up, bring no more packets to it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Members that are remembered, at most.
const MAX_FINDS: usize = 256;
/// Addresses of one member.
const MAX_ADDRESSES: usize = 4;
/// Addresses of which it is remembered when they may be dialled again, at most.
const MAX_WAITS: usize = 1024;
/// Dials at a time.
const MAX_DIALS: usize = 8;
/// How long the larger name leaves the dial to the smaller.
const YIELD: Duration = Duration::from_secs(2);
/// Wait after the first dial of an address that failed; doubles from there.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// Longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How often it is looked whether a member that was linked still is.
const LINK_CHECK: Duration = Duration::from_secs(10);

/// A dial to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dial {
    /// The name under which the member was found.
    pub(super) name: String,
    /// Where to.
    pub(super) address: SocketAddr,
    /// Everything that is known of it: if it is linked by another of these, there is nothing to do.
    pub(super) all_addresses: Vec<SocketAddr>,
}

/// How a dial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The member is linked.
    Linked,
    /// It is linked, but takes links at another address than was found.
    LinkedElsewhere,
    /// It is never dialled again under this name.
    Hopeless,
    /// It may be dialled again later.
    Failed,
}

struct Find {
    addresses: Vec<SocketAddr>,
    dial_at: Instant,
    dialling: bool,
    hopeless: bool,
}

struct Wait {
    until: Instant,
    length: Duration,
}

/// See the module's text.
pub(super) struct Finds {
    own_name: String,
    finds: BTreeMap<String, Find>,
    waits: BTreeMap<SocketAddr, Wait>,
    dials_running: usize,
}

impl Finds {
    /// Nothing found yet by the bearer of `own_name`.
    pub(super) fn new(own_name: String) -> Self {
        Self {
            own_name,
            finds: BTreeMap::new(),
            waits: BTreeMap::new(),
            dials_running: 0,
        }
    }

    /// A member says that it is at `addresses`, the best first; none means that it is of no interest any more.
    /// Gives those that are new.
    pub(super) fn heard(
        &mut self,
        now: Instant,
        name: &str,
        mut addresses: Vec<SocketAddr>,
    ) -> Vec<SocketAddr> {
        addresses.truncate(MAX_ADDRESSES);
        if name == self.own_name {
            return Vec::new();
        }
        if addresses.is_empty() {
            self.gone(name);
            return Vec::new();
        }
        if let Some(find) = self.finds.get_mut(name) {
            let before = std::mem::replace(&mut find.addresses, addresses);
            let is_new = |address: &&SocketAddr| !before.contains(*address);
            let new: Vec<_> = find.addresses.iter().filter(is_new).copied().collect();
            if !new.is_empty() {
                find.dial_at = find.dial_at.min(now + YIELD);
            }
            return new;
        }
        if self.finds.len() >= MAX_FINDS && !self.make_room() {
            tracing::debug!(name, limit = MAX_FINDS, "too many members are announced");
            return Vec::new();
        }
        let wait = if self.own_name.as_str() < name {
            Duration::ZERO
        } else {
            YIELD
        };
        let find = Find {
            addresses: addresses.clone(),
            dial_at: now + wait,
            dialling: false,
            hopeless: false,
        };
        self.finds.insert(name.to_owned(), find);
        addresses
    }

    /// A member says that it goes, or has not been heard of for long.
    pub(super) fn gone(&mut self, name: &str) {
        self.finds.remove(name);
    }

    /// When somebody is to be dialled.
    pub(super) fn next_dial(&self) -> Option<Instant> {
        if self.dials_running >= MAX_DIALS {
            return None;
        }
        self.waiting().map(|(_, find)| find.dial_at).min()
    }

    /// Who is found is not dialled.
    pub(super) fn dial_nobody(&mut self) {
        for find in self.finds.values_mut() {
            find.hopeless = true;
        }
    }

    /// Whom to dial now; each of these is followed by [`Finds::dialled`].
    pub(super) fn due(&mut self, now: Instant) -> Vec<Dial> {
        let mut busy: BTreeSet<SocketAddr> = BTreeSet::new();
        let names: Vec<_> = self
            .waiting()
            .filter(|(_, find)| find.dial_at <= now)
            .map(|(name, _)| name.clone())
            .collect();
        let mut dials = Vec::new();
        for name in names {
            if self.dials_running >= MAX_DIALS {
                break;
            }
            let Some(find) = self.finds.get_mut(&name) else {
                continue;
            };
            let waits = &self.waits;
            let until = |address: &SocketAddr| waits.get(address).map_or(now, |wait| wait.until);
            let address = find
                .addresses
                .iter()
                .find(|address| until(address) <= now && !busy.contains(*address));
            let Some(address) = address.copied() else {
                let soonest = find.addresses.iter().map(until).min().unwrap_or(now);
                find.dial_at = soonest.max(now + FIRST_WAIT);
                continue;
            };
            if !self.begin_wait(now, address) {
                break;
            }
            busy.insert(address);
            if let Some(find) = self.finds.get_mut(&name) {
                find.dialling = true;
                self.dials_running += 1;
                dials.push(Dial {
                    address,
                    all_addresses: find.addresses.clone(),
                    name,
                });
            }
        }
        dials
    }

    /// A dial has ended.
    pub(super) fn dialled(&mut self, now: Instant, dial: &Dial, outcome: Outcome) {
        self.dials_running = self.dials_running.saturating_sub(1);
        if outcome == Outcome::Linked {
            self.waits.remove(&dial.address);
        }
        let waits = &self.waits;
        let Some(find) = self.finds.get_mut(&dial.name) else {
            return;
        };
        find.dialling = false;
        match outcome {
            Outcome::Linked => find.dial_at = now + LINK_CHECK,
            Outcome::LinkedElsewhere => find.dial_at = now + LONGEST_WAIT,
            Outcome::Hopeless => find.hopeless = true,
            Outcome::Failed => {
                let until =
                    |address: &SocketAddr| waits.get(address).map_or(now, |wait| wait.until);
                find.dial_at = find.addresses.iter().map(until).min().unwrap_or(now);
            }
        }
    }

    fn waiting(&self) -> impl Iterator<Item = (&String, &Find)> {
        self.finds
            .iter()
            .filter(|(_, find)| !find.dialling && !find.hopeless)
    }

    /// From now on `address` has to wait; twice as long as the last time. Refused when too many wait.
    fn begin_wait(&mut self, now: Instant, address: SocketAddr) -> bool {
        if !self.waits.contains_key(&address) && self.waits.len() >= MAX_WAITS {
            // An address that was not dialled for so long begins anew.
            self.waits.retain(|_, wait| wait.until + LONGEST_WAIT > now);
            if self.waits.len() >= MAX_WAITS {
                return false;
            }
        }
        let wait = self.waits.entry(address).or_insert(Wait {
            until: now,
            length: FIRST_WAIT / 2,
        });
        wait.length = (wait.length * 2).min(LONGEST_WAIT);
        wait.until = now + wait.length;
        true
    }

    /// Forgets one that is of no use, if there is one.
    fn make_room(&mut self) -> bool {
        let useless = self
            .finds
            .iter()
            .find(|(_, find)| find.hopeless && !find.dialling)
            .map(|(name, _)| name.clone());
        useless.is_some_and(|name| self.finds.remove(&name).is_some())
    }
}

/// A fuzz target: whatever is announced, and however dials end, what is remembered and dialled has its limits, and no address
/// is dialled again before its time.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check(mut chance: crate::fuzzing::Chance<'_>) {
    let mut now = Instant::now();
    let mut finds = Finds::new("m".into());
    let mut running: Vec<Dial> = Vec::new();
    let mut dialled_at = BTreeMap::new();
    for _ in 0..2000 {
        if chance.is_spent() {
            break;
        }
        let name = match chance.below(4) {
            0 => "m".to_owned(),
            1 => format!("a{}", chance.byte()),
            _ => format!("z{}", u16::from(chance.byte()) << 4),
        };
        match chance.below(6) {
            0..3 => {
                let addresses: Vec<_> = (0..chance.below(6))
                    .map(|_| SocketAddr::from(([127, 0, 0, chance.byte() % 8], 9)))
                    .collect();
                let new = finds.heard(now, &name, addresses.clone());
                assert!(new.len() <= MAX_ADDRESSES.min(addresses.len()));
            }
            3 => finds.gone(&name),
            4 => now += Duration::from_millis(u64::from(chance.byte()) << 6),
            _ => {
                if !running.is_empty() {
                    let dial = running.swap_remove(chance.below(running.len()));
                    let outcomes = [
                        Outcome::Linked,
                        Outcome::LinkedElsewhere,
                        Outcome::Hopeless,
                        Outcome::Failed,
                    ];
                    let outcome = *chance.pick(&outcomes);
                    if outcome == Outcome::Linked {
                        dialled_at.remove(&dial.address);
                    }
                    finds.dialled(now, &dial, outcome);
                }
            }
        }
        for dial in finds.due(now) {
            assert_ne!(dial.name, "m", "it dials itself");
            assert!(dial.all_addresses.contains(&dial.address));
            if let Some(before) = dialled_at.insert(dial.address, now) {
                assert!(
                    now - before >= FIRST_WAIT,
                    "{} is dialled too soon",
                    dial.address
                );
            }
            running.push(dial);
        }
        assert!(running.len() <= MAX_DIALS && finds.dials_running <= MAX_DIALS);
        assert!(finds.finds.len() <= MAX_FINDS && finds.waits.len() <= MAX_WAITS);
        assert!(
            finds.next_dial().is_none_or(|at| at > now),
            "it is dialled at once"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "m";

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    struct World {
        finds: Finds,
        origin: Instant,
    }

    impl World {
        fn new() -> Self {
            Self {
                finds: Finds::new(OWN.to_owned()),
                origin: Instant::now(),
            }
        }

        fn at(&self, second: u64) -> Instant {
            self.origin + seconds(second)
        }

        fn heard(&mut self, second: u64, name: &str, ports: &[u16]) -> Vec<SocketAddr> {
            let addresses = ports.iter().map(|port| address(*port)).collect();
            self.finds.heard(self.at(second), name, addresses)
        }

        fn due(&mut self, second: u64) -> Vec<Dial> {
            let at = self.at(second);
            self.finds.due(at)
        }

        /// Dials what is due, with this outcome; gives the ports.
        fn dial(&mut self, second: u64, outcome: Outcome) -> Vec<u16> {
            let (dials, at) = (self.due(second), self.at(second));
            for dial in &dials {
                self.finds.dialled(at, dial, outcome);
            }
            dials.iter().map(|dial| dial.address.port()).collect()
        }

        fn next(&self) -> Option<u64> {
            let next = self.finds.next_dial()?;
            Some(next.duration_since(self.origin).as_secs())
        }
    }

    #[test]
    fn the_smaller_name_dials_at_once_and_the_larger_after_a_while() {
        let mut world = World::new();
        assert_eq!(world.heard(0, "z", &[1]), [address(1)]);
        assert_eq!(world.heard(0, "a", &[2]), [address(2)]);
        assert_eq!(world.dial(0, Outcome::Linked), [1]);
        assert_eq!(world.next(), Some(2));
        assert_eq!(world.dial(2, Outcome::Linked), [2]);
    }

    #[test]
    fn oneself_is_no_find() {
        let mut world = World::new();
        assert_eq!(world.heard(0, OWN, &[1]), []);
        assert_eq!(world.next(), None);
    }

    #[test]
    fn an_address_is_told_once_until_its_member_goes() {
        let mut world = World::new();
        assert_eq!(world.heard(0, "z", &[1]), [address(1)]);
        assert_eq!(world.heard(1, "z", &[1, 2]), [address(2)]);
        assert_eq!(world.heard(2, "z", &[2, 1]), []);
        world.finds.gone("z");
        assert_eq!(world.heard(3, "z", &[1]), [address(1)]);
    }

    #[test]
    fn waits_double_from_2_to_60_seconds_and_begin_anew_after_a_link() {
        let mut world = World::new();
        world.heard(0, "z", &[1]);
        let mut at = 0;
        for wait in [2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(world.dial(at, Outcome::Failed), [1]);
            assert_eq!(world.next(), Some(at + wait));
            at += wait;
        }
        assert_eq!(world.dial(at, Outcome::Linked), [1]);
        assert_eq!(world.next(), Some(at + 10));
        assert_eq!(world.dial(at + 10, Outcome::Failed), [1]);
        assert_eq!(world.next(), Some(at + 12));
    }

    #[test]
    fn another_address_of_a_member_does_not_wait_for_the_first() {
        let mut world = World::new();
        world.heard(0, "z", &[1, 2]);
        assert_eq!(world.dial(0, Outcome::Failed), [1]);
        assert_eq!(world.dial(0, Outcome::Failed), [2]);
        assert_eq!(world.dial(0, Outcome::Failed), [0; 0]);
        assert_eq!(world.dial(2, Outcome::Failed), [1]);
    }

    #[test]
    fn other_names_for_an_address_bring_no_more_dials() {
        let mut world = World::new();
        world.heard(0, "z", &[1]);
        assert_eq!(world.dial(0, Outcome::Failed), [1]);
        world.finds.gone("z");
        for name in ["za", "zb", "zc"] {
            world.heard(0, name, &[1]);
        }
        assert_eq!(world.dial(1, Outcome::Failed), [0; 0]);
        assert_eq!(world.dial(3, Outcome::Failed), [1]);
        assert_eq!(world.dial(4, Outcome::Failed), [0; 0]);
    }

    #[test]
    fn what_is_hopeless_stays_so_until_it_comes_under_another_name() {
        let mut world = World::new();
        world.heard(0, "z", &[1]);
        assert_eq!(world.dial(0, Outcome::Hopeless), [1]);
        world.heard(5, "z", &[1, 2]);
        assert_eq!(world.next(), None);
        assert_eq!(world.dial(100, Outcome::Hopeless), [0; 0]);
        world.heard(101, "zz", &[1]);
        assert_eq!(world.dial(101, Outcome::Linked), [1]);
    }

    #[test]
    fn who_has_gone_is_not_dialled() {
        let mut world = World::new();
        world.heard(0, "z", &[1]);
        let dials = world.due(0);
        world.finds.gone("z");
        let at = world.at(1);
        world.finds.dialled(at, &dials[0], Outcome::Failed);
        assert_eq!(world.next(), None);
        world.heard(2, "z", &[1]);
        world.heard(3, "z", &[]);
        assert_eq!(world.next(), None);
    }

    #[test]
    fn everything_has_its_limit() {
        let mut world = World::new();
        for number in 0..300_u16 {
            let name = format!("z{number:03}");
            let new = world.heard(0, &name, &[number, 1000, 1001, 1002, 1003]);
            assert_eq!(new.len(), if number < 256 { 4 } else { 0 }, "{name}");
        }
        // Port 0 is not for this module to judge.
        assert_eq!(world.due(0).len(), MAX_DIALS);
        assert_eq!(world.next(), None);
        assert_eq!(world.due(0).len(), 0);
        // Names that come and go leave no more than so many waits, and none is dialled beyond.
        let mut world = World::new();
        let mut dialled = 0;
        for port in 1..2000 {
            world.heard(0, "z", &[port]);
            dialled += world.dial(0, Outcome::Failed).len();
            world.finds.gone("z");
        }
        assert_eq!(dialled, MAX_WAITS);
        world.heard(70, "z", &[3000]);
        assert_eq!(world.dial(70, Outcome::Linked), [3000]);
    }

    #[test]
    fn who_is_of_no_use_makes_room() {
        let mut world = World::new();
        for number in 0..256_u16 {
            world.heard(0, &format!("z{number:03}"), &[number + 1]);
        }
        assert_eq!(world.heard(0, "zz", &[999]), []);
        let dials = world.due(0);
        let at = world.at(0);
        world.finds.dialled(at, &dials[0], Outcome::Hopeless);
        assert_eq!(world.heard(0, "zz", &[999]), [address(999)]);
    }
}
