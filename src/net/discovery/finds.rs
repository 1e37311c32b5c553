//! Members found in the local network, and the schedule of their dials. Pure: no sockets and no clock.
//!
//! When two members discover each other, the one with the smaller name dials after a moment; the other one
//! dials if no link results. Back-off belongs to addresses, so that new names for one address, which anyone
//! in the network can forge, send no more packets to it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

/// Members remembered, at most.
const MAX_FINDS: usize = 256;
/// Addresses kept of one member.
const MAX_ADDRESSES: usize = 4;
/// Addresses with a back-off, at most.
const MAX_WAITS: usize = 1024;
/// Ports of one address among these, at most: one process may use all of them.
const MAX_WAITS_OF_ONE: usize = 256;
/// Dials at a time.
const MAX_DIALS: usize = 8;
/// Concurrent dials to one address: an address that answers none of them leaves room for others.
const MAX_DIALS_OF_ONE: usize = 5;
/// Delay before a dial that found no room is tried again.
const NO_ROOM_WAIT: Duration = Duration::from_millis(100);
/// Time without a dial after a new find: its host, which may just have opened the room, or this one may be
/// about to dial. Links that both ends dial cost a handshake each, and all but one are closed.
const SETTLE: Duration = Duration::from_millis(150);
/// Further time for which the larger name leaves the dial to the smaller one.
const YIELD: Duration = Duration::from_secs(2);
/// Back-off after the first failed dial of an address; doubles from there.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// Longest back-off.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Interval of the check whether a linked member is still linked.
const LINK_CHECK: Duration = Duration::from_secs(10);

/// A dial to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dial {
    /// The name under which the member was found.
    pub(super) name: String,
    /// The address to dial.
    pub(super) address: SocketAddr,
    /// All known addresses of the member: if it is linked by another of these, no dial is needed.
    pub(super) all_addresses: Vec<SocketAddr>,
}

/// Outcome of a dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The member is linked.
    Linked,
    /// The member is linked, but accepts links at another address than the one found.
    LinkedElsewhere,
    /// It is never dialled again under this name.
    Permanent,
    /// It may be dialled again later.
    Failed,
}

struct Find {
    addresses: Vec<SocketAddr>,
    dial_at: Instant,
    dialling: bool,
    permanent: bool,
}

impl Find {
    /// The best of its addresses; there is always one.
    fn ip(&self) -> IpAddr {
        let best = self.addresses.first();
        best.map_or(IpAddr::from([0; 4]), SocketAddr::ip)
    }
}

struct Wait {
    until: Instant,
    length: Duration,
}

/// Found members and the schedule of their dials; see the module's documentation.
pub(super) struct Finds {
    own_name: String,
    finds: BTreeMap<String, Find>,
    waits: BTreeMap<SocketAddr, Wait>,
    /// Keyed by the dialled address.
    dials_running: BTreeMap<IpAddr, usize>,
}

impl Finds {
    /// Starts empty. `own_name` is this node's name.
    pub(super) fn new(own_name: String) -> Self {
        Self {
            own_name,
            finds: BTreeMap::new(),
            waits: BTreeMap::new(),
            dials_running: BTreeMap::new(),
        }
    }

    /// Records that a member announces `addresses`, best first; an empty list withdraws it.
    /// Returns the new ones among them.
    pub(super) fn resolved(
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
        if self.finds.len() >= MAX_FINDS && !self.make_room(addresses[0].ip()) {
            tracing::debug!(name, limit = MAX_FINDS, "too many members are announced");
            return Vec::new();
        }
        let wait = if self.own_name.as_str() < name {
            SETTLE
        } else {
            SETTLE + YIELD
        };
        let find = Find {
            addresses: addresses.clone(),
            dial_at: now + wait,
            dialling: false,
            permanent: false,
        };
        self.finds.insert(name.to_owned(), find);
        addresses
    }

    /// Forgets the finds with other names, so that they can be found again. Back-offs stay.
    pub(super) fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.finds.retain(|name, _| is_there(name));
    }

    /// Removes a member whose announcement was withdrawn or has expired.
    pub(super) fn gone(&mut self, name: &str) {
        self.finds.remove(name);
    }

    /// Time of the next dial.
    pub(super) fn next_dial(&self) -> Option<Instant> {
        if self.running() >= MAX_DIALS {
            return None;
        }
        self.waiting().map(|(_, find)| find.dial_at).min()
    }

    /// Marks all finds as not to be dialled.
    pub(super) fn dial_none(&mut self) {
        for find in self.finds.values_mut() {
            find.permanent = true;
        }
    }

    /// The dials to make now; [`Finds::dialled`] must follow each. `closed` returns until when an address
    /// must not be dialled at all.
    pub(super) fn due(
        &mut self,
        now: Instant,
        closed: impl Fn(IpAddr) -> Option<Instant>,
    ) -> Vec<Dial> {
        let mut busy: BTreeSet<SocketAddr> = BTreeSet::new();
        let mut names: Vec<_> = self
            .waiting()
            .filter(|(_, find)| find.dial_at <= now)
            .map(|(name, find)| (find.dial_at, name.clone()))
            .collect();
        // The longest wait comes first; the spelling of a name gives no advantage.
        names.sort();
        let mut dials = Vec::new();
        for (_, name) in names {
            if self.running() >= MAX_DIALS {
                break;
            }
            let Some(find) = self.finds.get_mut(&name) else {
                continue;
            };
            let waits = &self.waits;
            let until = |address: &SocketAddr| {
                let waits = waits.get(address).map_or(now, |wait| wait.until);
                closed(address.ip()).map_or(waits, |until| until.max(waits))
            };
            let open = |address: &&SocketAddr| until(address) <= now && !busy.contains(*address);
            let mut open = find.addresses.iter().filter(open).peekable();
            if open.peek().is_none() {
                let soonest = find.addresses.iter().map(until).min().unwrap_or(now);
                find.dial_at = soonest.max(now + FIRST_WAIT);
                continue;
            }
            let running = &self.dials_running;
            let has_room = |address: &&SocketAddr| {
                running.get(&address.ip()).copied().unwrap_or_default() < MAX_DIALS_OF_ONE
            };
            let Some(address) = open.find(has_room).copied() else {
                find.dial_at = now + NO_ROOM_WAIT;
                continue;
            };
            if !self.begin_wait(now, address) {
                if let Some(find) = self.finds.get_mut(&name) {
                    find.dial_at = now + LONGEST_WAIT;
                }
                continue;
            }
            busy.insert(address);
            if let Some(find) = self.finds.get_mut(&name) {
                find.dialling = true;
                *self.dials_running.entry(address.ip()).or_default() += 1;
                dials.push(Dial {
                    address,
                    all_addresses: find.addresses.clone(),
                    name,
                });
            }
        }
        dials
    }

    /// Records the outcome of a dial.
    pub(super) fn dialled(&mut self, now: Instant, dial: &Dial, outcome: Outcome) {
        if let Some(running) = self.dials_running.get_mut(&dial.address.ip()) {
            *running -= 1;
            if *running == 0 {
                self.dials_running.remove(&dial.address.ip());
            }
        }
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
            Outcome::Permanent => find.permanent = true,
            Outcome::Failed => {
                let until =
                    |address: &SocketAddr| waits.get(address).map_or(now, |wait| wait.until);
                find.dial_at = find.addresses.iter().map(until).min().unwrap_or(now);
            }
        }
    }

    fn running(&self) -> usize {
        self.dials_running.values().sum()
    }

    fn waiting(&self) -> impl Iterator<Item = (&String, &Find)> {
        self.finds
            .iter()
            .filter(|(_, find)| !find.dialling && !find.permanent)
    }

    /// Starts the back-off of `address`, twice as long as the last one. Returns `false` when too many addresses wait.
    fn begin_wait(&mut self, now: Instant, address: SocketAddr) -> bool {
        let is_full = |waits: &BTreeMap<SocketAddr, Wait>| {
            let of_it = waits.keys().filter(|other| other.ip() == address.ip());
            waits.len() >= MAX_WAITS || of_it.count() >= MAX_WAITS_OF_ONE
        };
        if !self.waits.contains_key(&address) && is_full(&self.waits) {
            // Addresses that were not dialled for this long start anew.
            self.waits.retain(|_, wait| wait.until + LONGEST_WAIT > now);
            if is_full(&self.waits) {
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

    /// Makes room by removing a useless find, if there is one; otherwise a find of the address with the most
    /// finds, if that has more than `newcomer` would have. Names for one address must not keep others out.
    fn make_room(&mut self, newcomer: IpAddr) -> bool {
        let mut of_address: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for find in self.finds.values() {
            *of_address.entry(find.ip()).or_default() += 1;
        }
        let most = of_address.iter().max_by_key(|(_, count)| **count);
        let most = most.map(|(ip, count)| (*ip, *count));
        let mine = of_address.get(&newcomer).copied().unwrap_or_default();
        let crowded = most.filter(|(_, count)| *count > mine + 1);
        let idle = || self.finds.iter().filter(|(_, find)| !find.dialling);
        let useless = idle().find(|(_, find)| find.permanent);
        let one_of_many = || {
            let (ip, _) = crowded?;
            idle()
                .filter(|(_, find)| find.ip() == ip)
                .max_by_key(|(_, find)| find.dial_at)
        };
        let name = useless.or_else(one_of_many).map(|(name, _)| name.clone());
        name.is_some_and(|name| self.finds.remove(&name).is_some())
    }
}

/// Fuzz target: for any announcements and outcomes the finds and dials stay within their limits, and no
/// address is dialled before its back-off ends.
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
                let new = finds.resolved(now, &name, addresses.clone());
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
                        Outcome::Permanent,
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
        for dial in finds.due(now, |_| None) {
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
        assert!(running.len() <= MAX_DIALS && finds.running() == running.len());
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
                origin: Instant::now() + SETTLE,
            }
        }

        fn at(&self, second: u64) -> Instant {
            self.origin + seconds(second)
        }

        /// Announces early enough that the smaller name dials at `second`.
        fn resolved(&mut self, second: u64, name: &str, ports: &[u16]) -> Vec<SocketAddr> {
            let addresses = ports.iter().map(|port| address(*port)).collect();
            self.finds
                .resolved(self.at(second) - SETTLE, name, addresses)
        }

        fn find_at(&mut self, second: u64, name: &str, host: u8, port: u16) {
            let address = SocketAddr::from(([192, 0, 2, host], port));
            self.finds
                .resolved(self.at(second) - SETTLE, name, vec![address]);
        }

        fn due(&mut self, second: u64) -> Vec<Dial> {
            let at = self.at(second);
            self.finds.due(at, |_| None)
        }

        /// Dials what is due, with this outcome; returns the ports.
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
    fn the_smaller_name_dials_after_a_moment_and_the_larger_after_a_while() {
        let mut world = World::new();
        assert_eq!(world.resolved(0, "z", &[1]), [address(1)]);
        assert_eq!(world.resolved(0, "a", &[2]), [address(2)]);
        let just_before = world.at(0) - Duration::from_millis(1);
        assert_eq!(world.finds.due(just_before, |_| None), []);
        assert_eq!(world.dial(0, Outcome::Linked), [1]);
        assert_eq!(world.next(), Some(2));
        assert_eq!(world.dial(2, Outcome::Linked), [2]);
    }

    #[test]
    fn oneself_is_no_find() {
        let mut world = World::new();
        assert_eq!(world.resolved(0, OWN, &[1]), []);
        assert_eq!(world.next(), None);
    }

    #[test]
    fn an_address_is_reported_once_until_its_member_goes() {
        let mut world = World::new();
        assert_eq!(world.resolved(0, "z", &[1]), [address(1)]);
        assert_eq!(world.resolved(1, "z", &[1, 2]), [address(2)]);
        assert_eq!(world.resolved(2, "z", &[2, 1]), []);
        world.finds.gone("z");
        assert_eq!(world.resolved(3, "z", &[1]), [address(1)]);
    }

    #[test]
    fn waits_double_from_2_to_60_seconds_and_begin_anew_after_a_link() {
        let mut world = World::new();
        world.resolved(0, "z", &[1]);
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
        world.resolved(0, "z", &[1, 2]);
        assert_eq!(world.dial(0, Outcome::Failed), [1]);
        assert_eq!(world.dial(0, Outcome::Failed), [2]);
        assert_eq!(world.dial(0, Outcome::Failed), [0; 0]);
        assert_eq!(world.dial(2, Outcome::Failed), [1]);
    }

    #[test]
    fn other_names_for_an_address_bring_no_more_dials() {
        let mut world = World::new();
        world.resolved(0, "z", &[1]);
        assert_eq!(world.dial(0, Outcome::Failed), [1]);
        world.finds.gone("z");
        for name in ["za", "zb", "zc"] {
            world.resolved(0, name, &[1]);
        }
        assert_eq!(world.dial(1, Outcome::Failed), [0; 0]);
        assert_eq!(world.dial(3, Outcome::Failed), [1]);
        assert_eq!(world.dial(4, Outcome::Failed), [0; 0]);
    }

    #[test]
    fn a_permanent_failure_lasts_until_the_address_comes_under_another_name() {
        let mut world = World::new();
        world.resolved(0, "z", &[1]);
        assert_eq!(world.dial(0, Outcome::Permanent), [1]);
        world.resolved(5, "z", &[1, 2]);
        assert_eq!(world.next(), None);
        assert_eq!(world.dial(100, Outcome::Permanent), [0; 0]);
        world.resolved(101, "zz", &[1]);
        assert_eq!(world.dial(101, Outcome::Linked), [1]);
    }

    #[test]
    fn a_departed_member_is_not_dialled() {
        let mut world = World::new();
        world.resolved(0, "z", &[1]);
        let dials = world.due(0);
        world.finds.gone("z");
        let at = world.at(1);
        world.finds.dialled(at, &dials[0], Outcome::Failed);
        assert_eq!(world.next(), None);
        world.resolved(2, "z", &[1]);
        world.resolved(3, "z", &[]);
        assert_eq!(world.next(), None);
    }

    #[test]
    fn everything_has_its_limit() {
        let mut world = World::new();
        for number in 0..300_u16 {
            let name = format!("z{number:03}");
            let new = world.resolved(0, &name, &[number, 1000, 1001, 1002, 1003]);
            assert_eq!(new.len(), if number < 256 { 4 } else { 0 }, "{name}");
        }
        // Port 0 is not for this module to judge.
        assert_eq!(world.due(0).len(), MAX_DIALS_OF_ONE);
        assert_eq!(world.due(0).len(), 0);
        for host in 2..10 {
            world.find_at(0, &format!("a{host}"), host, 1);
        }
        assert_eq!(world.due(2).len(), MAX_DIALS - MAX_DIALS_OF_ONE);
        assert_eq!(world.next(), None);
        assert_eq!(world.due(2).len(), 0);
        // Names that come and go leave at most the limit of back-offs, and no dial exceeds it.
        let mut world = World::new();
        let mut dialled = 0;
        for port in 1..2000 {
            world.resolved(0, "z", &[port]);
            dialled += world.dial(0, Outcome::Failed).len();
            world.finds.gone("z");
        }
        assert_eq!(dialled, MAX_WAITS_OF_ONE);
        for host in 2..10 {
            for port in 1..300 {
                world.find_at(0, "z", host, port);
                dialled += world.dial(0, Outcome::Failed).len();
                world.finds.gone("z");
            }
        }
        assert_eq!(dialled, MAX_WAITS);
        world.resolved(70, "z", &[3000]);
        assert_eq!(world.dial(70, Outcome::Linked), [3000]);
    }

    #[test]
    fn an_address_that_is_closed_is_dialled_when_it_opens_and_others_at_once() {
        let mut world = World::new();
        world.resolved(0, "z", &[1]);
        world.find_at(0, "y", 2, 1);
        let (now, open) = (world.at(0), world.at(60));
        let closed = |ip| (ip == address(1).ip()).then_some(open);
        let dials = world.finds.due(now, closed);
        assert_eq!(dials.len(), 1);
        assert_eq!(dials[0].name, "y");
        assert_eq!(world.next(), Some(60));
        assert_eq!(world.dial(60, Outcome::Linked), [1]);
    }

    #[test]
    fn a_member_that_announces_many_ports_of_one_address_keeps_no_other_out() {
        let mut world = World::new();
        for number in 0..256_u16 {
            world.resolved(0, &format!("z{number:03}"), &[number + 1]);
        }
        assert_eq!(world.due(0).len(), MAX_DIALS_OF_ONE);
        // None of these answers; memory and dials still have room for another address.
        world.find_at(1, "zz", 2, 1);
        let dials = world.due(1);
        assert_eq!(dials.len(), 1);
        assert_eq!(dials[0].name, "zz");
        assert_eq!(world.finds.finds.len(), 256);
    }

    #[test]
    fn a_forgotten_address_is_found_anew_but_its_waits_go_on() {
        let mut world = World::new();
        world.resolved(0, "z", &[1]);
        let dials = world.due(0);
        world.finds.keep(|_| false);
        let at = world.at(1);
        world.finds.dialled(at, &dials[0], Outcome::Failed);
        assert_eq!(world.resolved(1, "z", &[1]), [address(1)]);
        assert_eq!(world.dial(1, Outcome::Linked), [0; 0]);
        assert_eq!(world.dial(3, Outcome::Linked), [1]);
    }

    #[test]
    fn permanent_failures_make_room() {
        let mut world = World::new();
        for number in 0..256_u16 {
            world.resolved(0, &format!("z{number:03}"), &[number + 1]);
        }
        assert_eq!(world.resolved(0, "zz", &[999]), []);
        let dials = world.due(0);
        let at = world.at(0);
        world.finds.dialled(at, &dials[0], Outcome::Permanent);
        assert_eq!(world.resolved(0, "zz", &[999]), [address(999)]);
    }
}
