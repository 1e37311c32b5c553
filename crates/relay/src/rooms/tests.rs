use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::*;

/// Counts what a link is asked for.
#[derive(Debug, Default)]
struct Probe {
    wakes: Cell<usize>,
    dropped: RefCell<Vec<VirtualId>>,
}

impl Link for Probe {
    fn wake(&self) {
        self.wakes.set(self.wakes.get() + 1);
    }

    fn drop_waiting(&self, origin: VirtualId) {
        self.dropped.borrow_mut().push(origin);
    }
}

/// Rooms with links numbered in the order of their entries.
struct Laboratory {
    rooms: Rooms<Probe>,
    now: Instant,
    numbers: u64,
}

const ROOM: Locator = Locator(7);

fn key(number: u64) -> Fingerprint {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&number.to_be_bytes());
    Fingerprint(key)
}

fn v4(last: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0xc000_0200 + last))
}

/// An address in the network `network` of the site `site`.
fn v6(site: u16, network: u16, last: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, site, network, 0, 0, 0, last))
}

impl Laboratory {
    fn new() -> Self {
        Self {
            rooms: Rooms::default(),
            now: Instant::now(),
            numbers: 0,
        }
    }

    fn try_enter(
        &mut self,
        key: Fingerprint,
        address: IpAddr,
        hidden: bool,
    ) -> Result<(LinkNumber, Entered<Probe>), Refused> {
        self.numbers += 1;
        let entry = Entry {
            link: LinkNumber(self.numbers),
            locator: ROOM,
            key,
            address,
            hidden,
        };
        let entered = self.rooms.enter(self.now, entry, Arc::default())?;
        Ok((entry.link, entered))
    }

    fn enter(&mut self, number: u64, address: IpAddr) -> LinkNumber {
        let entered = self.try_enter(key(number), address, false);
        entered.expect("a place").0
    }

    /// All frames that wait for a member.
    fn frames(&mut self, link: LinkNumber) -> Vec<FromRelay> {
        std::iter::from_fn(|| self.rooms.next_frame(link)).collect()
    }

    fn names(&mut self, link: LinkNumber) -> Vec<Fingerprint> {
        let frames = self.frames(link).into_iter();
        let keys = frames.map(|frame| match frame {
            FromRelay::Present { keys } => keys,
            frame => panic!("{frame:?}"),
        });
        keys.flatten().collect()
    }

    fn route(&mut self, from: LinkNumber, to: u64) -> Result<VirtualId, NoRoute> {
        let route = self.rooms.route(self.now, from, virtual_id(key(to)));
        route.map(|(_, sender)| sender)
    }

    fn block(&mut self, link: LinkNumber, number: u64) {
        self.rooms.block(self.now, link, key(number));
    }
}

fn present(numbers: &[u64]) -> FromRelay {
    let keys = numbers.iter().map(|number| key(*number)).collect();
    FromRelay::Present { keys }
}

fn gone(number: u64) -> FromRelay {
    FromRelay::Gone { key: key(number) }
}

#[test]
fn a_newcomer_learns_who_is_there_and_they_learn_of_it() {
    let mut lab = Laboratory::new();
    let one = lab.enter(1, v4(1));
    let two = lab.enter(2, v4(2));
    assert_eq!(lab.frames(one), [present(&[2])]);
    assert_eq!(lab.frames(two), [present(&[1])]);
    lab.rooms.leave(two);
    assert_eq!(lab.frames(one), [gone(2)]);
    let again = lab.enter(2, v4(2));
    assert_eq!(lab.frames(one), [present(&[2])]);
    assert_eq!(lab.frames(again), [present(&[1])]);
    lab.rooms.leave(one);
    lab.rooms.leave(again);
    assert_eq!((lab.rooms.rooms(), lab.rooms.members()), (0, 0));
}

#[test]
fn more_names_each_member_once_and_the_longest_present_first() {
    let mut lab = Laboratory::new();
    for number in 1..=20 {
        lab.enter(number, v4(number as u32));
    }
    let late = lab.enter(99, v4(99));
    let mut named = lab.names(late);
    for _ in 0..3 {
        lab.rooms.name_more(lab.now, late);
        named.extend(lab.names(late));
    }
    assert_eq!(named, (1..=20).map(key).collect::<Vec<_>>());
}

#[test]
fn a_member_that_reads_nothing_costs_a_bounded_amount_of_memory() {
    let mut lab = Laboratory::new();
    let idle = lab.enter(1, v4(1));
    // It reads at first, so that the relay has to keep frames about members that go.
    for number in 2..60 {
        lab.enter(number, v4(2));
    }
    lab.frames(idle);
    for number in 100..5000 {
        let link = lab.enter(number, v4(3));
        if number % 3 > 0 {
            lab.block(idle, number);
        }
        lab.rooms
            .observe(idle, "192.0.2.1:1".parse().expect("an address"));
        lab.rooms.leave(link);
    }
    for number in 2..60 {
        lab.rooms.leave(LinkNumber(number));
    }
    let member = &lab.rooms.rooms[&ROOM][&virtual_id(key(1))];
    assert_eq!((member.present.len(), member.gone.len()), (0, 58));
    assert_eq!(member.named.len(), 0);
    assert_eq!(member.blocks.keys.len(), MAX_BLOCKS);
    assert_eq!(member.blocks.networks.len(), 1);
    assert_eq!(member.blocks.entered.len(), 0);
    assert_eq!(lab.frames(idle).len(), 59);
}

#[test]
fn a_newer_link_takes_the_place_of_the_older_one_unnoticed_by_the_others() {
    let mut lab = Laboratory::new();
    let one = lab.enter(1, v4(1));
    let two = lab.enter(2, v4(2));
    let stranger = lab.enter(3, v4(3));
    lab.block(one, 3);
    lab.frames(two);
    let (newer, entered) = lab.try_enter(key(1), v4(9), false).expect("a place");
    assert!(entered.replaced.is_some() && entered.yielded.is_none());
    assert_eq!(entered.present, 2);
    assert_eq!(lab.frames(two), []);
    // The blocked one is not named again.
    assert_eq!(lab.names(newer), [key(2)]);
    assert_eq!(lab.route(two, 1), Ok(virtual_id(key(2))));
    assert_eq!(lab.route(stranger, 1), Err(NoRoute::Blocked));
    // The older link ends now; that takes nothing from the newer one.
    assert!(lab.rooms.leave(one).is_none());
    assert_eq!(lab.rooms.members(), 3);
    let late = lab.enter(4, v4(4));
    assert_eq!(lab.names(late), [key(1), key(2), key(3)]);
    // A member that hides goes for the others, and one that shows itself comes.
    lab.try_enter(key(1), v4(9), true).expect("a place");
    assert_eq!(lab.frames(late), [gone(1)]);
    lab.try_enter(key(1), v4(9), false).expect("a place");
    assert_eq!(lab.frames(late), [present(&[1])]);
}

#[test]
fn a_key_with_the_virtual_id_of_another_does_not_take_its_place() {
    let mut lab = Laboratory::new();
    lab.enter(1, v4(1));
    let two = lab.enter(2, v4(2));
    let mut other = key(1);
    other.0[31] = 1;
    let refused = lab.try_enter(other, v4(3), false);
    assert_eq!(refused.map(|_| ()), Err(Refused::SameId));
    assert!(lab.route(two, 1).is_ok());
}

#[test]
fn a_full_locator_takes_the_newest_of_the_site_with_most_members() {
    let mut lab = Laboratory::new();
    let friend = lab.enter(1, v4(1));
    // One address, and one customer's networks.
    for number in 2..=32 {
        lab.enter(number, v4(2));
    }
    for number in 33..=64 {
        lab.enter(number, v6(1, number as u16, 1));
    }
    let (_, entered) = lab.try_enter(key(65), v4(3), false).expect("a place");
    assert!(entered.yielded.is_some());
    assert!(lab.route(friend, 64).is_err() && lab.route(friend, 63).is_ok());
    // The stranger has most members and gets no further place, from whichever of its networks.
    for address in [v4(2), v6(1, 7, 7)] {
        let refused = lab.try_enter(key(66), address, false);
        assert_eq!(refused.map(|_| ()), Err(Refused::Full));
    }
    let (_, entered) = lab.try_enter(key(67), v4(4), false).expect("a place");
    assert!(entered.yielded.is_some());
    let (_, entered) = lab.try_enter(key(68), v6(2, 1, 1), false).expect("a place");
    assert!(entered.yielded.is_some());
    for number in [1, 65, 67, 68] {
        assert!(lab.rooms.rooms[&ROOM].contains_key(&virtual_id(key(number))));
    }
    assert_eq!(lab.rooms.members(), MAX_AT_RELAY);
}

#[test]
fn a_locator_that_is_full_of_as_many_sites_takes_none() {
    let mut lab = Laboratory::new();
    for number in 1..=64 {
        lab.enter(number, v4(number as u32));
    }
    let refused = lab.try_enter(key(65), v4(65), false);
    assert_eq!(refused.map(|_| ()), Err(Refused::Full));
    // A newer link of one that is there needs no place.
    let (_, entered) = lab.try_enter(key(5), v4(65), false).expect("a place");
    assert!(entered.replaced.is_some() && entered.yielded.is_none());
}

#[test]
fn a_block_holds_for_later_keys_of_that_network_and_for_none_that_is_there() {
    let mut lab = Laboratory::new();
    let host = lab.enter(1, v4(1));
    let elsewhere = lab.enter(2, v4(2));
    // A friend and a stranger behind one carrier's NAT.
    let friend = lab.enter(3, v4(9));
    let stranger = lab.enter(4, v4(9));
    lab.frames(host);
    lab.block(host, 4);
    assert_eq!(lab.route(stranger, 1), Err(NoRoute::Blocked));
    assert_eq!(lab.route(friend, 1), Ok(virtual_id(key(3))));
    // The others of the room decide for themselves.
    assert!(lab.route(stranger, 2).is_ok());

    lab.rooms.leave(stranger);
    let returned = lab.enter(5, v4(9));
    assert_eq!(lab.frames(host), [gone(4)]);
    assert_eq!(lab.route(returned, 1), Err(NoRoute::Blocked));
    assert!(lab.route(returned, 2).is_ok());
    assert!(lab.names(elsewhere).contains(&key(5)));
    // Neither does `More` name it.
    lab.rooms.name_more(lab.now, host);
    assert_eq!(lab.frames(host), []);
    // The whole /64, and no other network of that site.
    let stranger = lab.enter(6, v6(1, 1, 1));
    lab.block(host, 6);
    lab.rooms.leave(stranger);
    lab.frames(host);
    let same = lab.enter(7, v6(1, 1, 2));
    let neighbour = lab.enter(8, v6(1, 2, 1));
    assert_eq!(lab.route(same, 1), Err(NoRoute::Blocked));
    assert!(lab.route(neighbour, 1).is_ok());
    assert_eq!(lab.names(host), [key(8)]);
}

#[test]
fn a_member_lifts_a_block_by_sending_and_no_other_can() {
    let mut lab = Laboratory::new();
    let (host, member) = (lab.enter(1, v4(1)), lab.enter(2, v4(2)));
    let stranger = lab.enter(3, v4(9));
    lab.block(host, 3);
    lab.block(member, 3);
    lab.rooms.leave(stranger);
    let friend = lab.enter(4, v4(9));
    assert_eq!(lab.route(friend, 1), Err(NoRoute::Blocked));
    assert!(lab.route(friend, 2).is_err());
    // The member has admitted the friend and dials it.
    assert!(lab.route(member, 4).is_ok());
    assert!(lab.route(friend, 2).is_ok());
    assert_eq!(lab.route(friend, 1), Err(NoRoute::Blocked));
    // The host dials it, since the member has listed it.
    assert!(lab.route(host, 4).is_ok());
    assert!(lab.route(friend, 1).is_ok());
    // The block of the network is as before.
    let another = lab.enter(5, v4(9));
    assert_eq!(lab.route(another, 1), Err(NoRoute::Blocked));
}

#[test]
fn a_block_ends_after_ten_minutes() {
    let mut lab = Laboratory::new();
    let host = lab.enter(1, v4(1));
    let stranger = lab.enter(2, v4(9));
    lab.block(host, 2);
    let later = lab.enter(3, v4(9));
    lab.now += BLOCK_LIFETIME - Duration::from_millis(1);
    assert_eq!(lab.route(stranger, 1), Err(NoRoute::Blocked));
    assert_eq!(lab.route(later, 1), Err(NoRoute::Blocked));
    lab.now += Duration::from_millis(1);
    assert!(lab.route(stranger, 1).is_ok() && lab.route(later, 1).is_ok());
    let newest = lab.enter(4, v4(9));
    assert!(lab.route(newest, 1).is_ok());
}

#[test]
fn packets_that_wait_of_a_blocked_or_lost_member_are_dropped() {
    let mut lab = Laboratory::new();
    let host = lab.enter(1, v4(1));
    let two = lab.enter(2, v4(2));
    let target = virtual_id(key(1));
    let link = lab.rooms.route(lab.now, two, target).expect("a route").0;
    lab.block(host, 2);
    assert_eq!(*link.dropped.borrow(), [virtual_id(key(2))]);
    lab.rooms.leave(two);
    assert_eq!(link.dropped.borrow().len(), 2);
}

#[test]
fn no_member_sends_to_itself_or_to_another_room() {
    let mut lab = Laboratory::new();
    let one = lab.enter(1, v4(1));
    assert_eq!(lab.route(one, 1), Err(NoRoute::Absent));
    assert_eq!(lab.route(one, 2), Err(NoRoute::Absent));
    let entry = Entry {
        link: LinkNumber(50),
        locator: Locator(8),
        key: key(2),
        address: v4(2),
        hidden: false,
    };
    let entered = lab.rooms.enter(lab.now, entry, Arc::default());
    assert_eq!(entered.expect("a place").present, 0);
    assert_eq!(lab.route(one, 2), Err(NoRoute::Absent));
    // One key in two rooms: each link has its own.
    let elsewhere = lab.enter(2, v4(2));
    assert_eq!(lab.names(elsewhere), [key(1)]);
    assert_eq!(lab.rooms.rooms(), 2);
    lab.rooms.leave(LinkNumber(50));
    assert!(lab.route(one, 2).is_ok());
}
