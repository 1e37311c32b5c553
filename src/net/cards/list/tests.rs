use room_transport::identity::Identity;

use super::super::packet::tests::{answer, shown};
use super::*;

/// A browser's list, with the time.
struct World {
    list: List,
    now: Time,
}

fn at(ms: u64) -> Time {
    Time::from_micros(ms * 1000)
}

fn source(ip: u8, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, ip), port)
}

fn identity() -> Identity {
    Identity::generate().expect("a key")
}

/// The answer of a room with that name.
fn named(identity: &Identity, number: u64, name: &str) -> Answer {
    Answer {
        number,
        successors: Vec::new(),
        shown: Some(Shown {
            name: name.into(),
            ..shown()
        }),
        ..answer(identity)
    }
}

/// The end of a card that no successor takes over.
fn over(identity: &Identity, number: u64) -> Answer {
    Answer {
        shown: None,
        ..named(identity, number, "over")
    }
}

/// The end of a leadership: the successor may show the card.
fn passed_on(identity: &Identity, number: u64, to: &Identity) -> Answer {
    Answer {
        successors: vec![successor(&to.fingerprint())],
        ..over(identity, number)
    }
}

impl World {
    fn new() -> Self {
        Self {
            list: List::new(at(0)),
            now: at(0),
        }
    }

    fn receive(&mut self, from: SocketAddrV4, answer: &Answer, identity: &Identity) -> bool {
        let packet = answer.write(identity).expect("signed");
        let read = Unverified::read(&packet).expect("an answer");
        self.list.receive(self.now, from, read)
    }

    fn pass(&mut self, ms: u64) {
        self.now = self.now + Duration::from_millis(ms);
    }

    /// A question to all, and what is asked again in the seconds after it.
    fn round(&mut self) -> usize {
        self.list.asked_all(self.now);
        let mut again = 0;
        for _ in 0..4 {
            self.pass(1000);
            again += self.list.tick(self.now).len();
        }
        again
    }

    /// The reports that the host receives now.
    fn reports(&mut self) -> Vec<String> {
        let mut reports = Vec::new();
        while let Some((change, room)) = self.list.report(self.now) {
            reports.push(format!("{change:?} {} {}", room.id, room.name()));
        }
        reports
    }
}

#[test]
fn a_room_is_found_changes_and_goes() {
    let (mut world, ann) = (World::new(), identity());
    assert!(world.receive(source(1, 9), &named(&ann, 1, "tea"), &ann));
    assert_eq!(world.reports(), ["Found 1 tea"]);
    let (change, room) = (Change::Changed, 1);
    assert!(world.receive(source(1, 9), &named(&ann, 2, "cake"), &ann));
    assert_eq!(world.reports(), [""; 0], "twice a second at most");
    world.pass(500);
    assert_eq!(world.list.next_report(), Some(world.now));
    assert_eq!(world.reports(), [format!("{change:?} {room} cake")]);
    // An equal card is no news.
    assert!(world.receive(source(1, 9), &named(&ann, 2, "cake"), &ann));
    world.pass(5000);
    assert_eq!(world.reports(), [""; 0]);
    // An older packet that comes late changes nothing.
    assert!(world.receive(source(1, 9), &named(&ann, 1, "tea"), &ann));
    assert_eq!(world.reports(), [""; 0]);
    assert!(world.receive(source(1, 9), &over(&ann, 3), &ann));
    assert_eq!(world.reports(), ["Gone 1 cake"]);
    assert_eq!(world.list.entries.len(), 0);
}

#[test]
fn a_room_that_answers_stays_and_a_silent_one_goes_within_twelve_seconds() {
    let (mut world, ann) = (World::new(), identity());
    world.receive(source(1, 9), &named(&ann, 1, "tea"), &ann);
    assert_eq!(world.reports(), ["Found 1 tea"]);
    for _ in 0..20 {
        world.list.asked_all(world.now);
        world.receive(source(1, 9), &named(&ann, 1, "tea"), &ann);
        world.pass(4000);
        assert_eq!(world.list.tick(world.now), []);
    }
    assert_eq!(world.reports(), [""; 0]);
    // It is asked alone, and an answer to that keeps it.
    assert_eq!(world.round(), 4);
    assert!(world.receive(source(1, 9), &named(&ann, 1, "tea"), &ann));
    let received_at = world.now;
    while world.reports().is_empty() {
        world.round();
        assert!(world.now.since(received_at) <= Duration::from_secs(12));
    }
    assert!(world.now.since(received_at) >= GONE_AFTER);
    assert_eq!(world.list.entries.len(), 0);
}

#[test]
fn a_stalled_browser_does_not_lose_rooms_that_it_has_not_asked() {
    let (mut world, ann) = (World::new(), identity());
    world.receive(source(1, 9), &named(&ann, 1, "tea"), &ann);
    assert_eq!(world.reports(), ["Found 1 tea"]);
    world.pass(3_600_000);
    assert_eq!(world.list.tick(world.now), []);
    assert_eq!(world.reports(), [""; 0]);
}

#[test]
fn no_other_process_removes_or_changes_a_room() {
    let (mut world, ann, eve) = (World::new(), identity(), identity());
    world.receive(source(1, 9), &named(&ann, 5, "tea"), &ann);
    assert_eq!(world.reports(), ["Found 1 tea"]);
    // In Ann's name, with Eve's signature: from Eve's address and from Ann's.
    for from in [source(2, 9), source(1, 9)] {
        assert!(!world.receive(from, &over(&ann, 6), &eve));
        assert!(!world.receive(from, &named(&ann, 7, "eve's"), &eve));
    }
    // In her own name, as a successor that Ann does not name.
    let mut claim = named(&eve, u64::MAX, "tea");
    claim.rank = (u64::MAX, u64::MAX);
    assert!(world.receive(source(2, 9), &claim, &eve));
    assert!(!world.receive(source(1, 9), &over(&identity(), 6), &eve));
    world.pass(1000);
    assert_eq!(world.reports(), ["Found 2 tea"]);
    // Ann's own last packet, sent again by Eve.
    world.receive(source(2, 9), &named(&ann, 5, "tea"), &ann);
    world.pass(1000);
    assert_eq!(world.reports(), [""; 0]);
    assert_eq!(world.list.entries[&1].address(), source(1, 4433));
}

#[test]
fn a_successor_takes_the_room_over_when_its_leader_goes() {
    for leaves in [true, false] {
        let (mut world, ann, bob, eve) = (World::new(), identity(), identity(), identity());
        let mut first = named(&ann, 1, "tea");
        first.successors = vec![successor(&bob.fingerprint())];
        world.receive(source(1, 9), &first, &ann);
        assert_eq!(world.reports(), ["Found 1 tea"]);
        // While Ann leads, Bob with her rank has a room of his own.
        assert!(!world.list.entries[&1].yields_to(&successor(&bob.fingerprint()), first.rank));
        match leaves {
            true => assert!(world.receive(source(1, 9), &passed_on(&ann, 2, &bob), &ann)),
            false => {
                world.list.asked_all(world.now);
                world.pass(1000);
                world.list.tick(world.now);
            }
        }
        assert_eq!(world.reports(), [""; 0], "it waits for a successor");
        world.receive(source(3, 9), &named(&eve, 9, "eve's"), &eve);
        world.receive(source(2, 9), &named(&bob, 1, "tea"), &bob);
        world.pass(1000);
        assert_eq!(world.reports(), ["Found 2 eve's", "Changed 1 tea"]);
        assert_eq!(world.list.entries[&1].address(), source(2, 4433));
    }
}

#[test]
fn a_successor_of_a_higher_rank_takes_over_at_once() {
    let (mut world, ann, bob) = (World::new(), identity(), identity());
    let mut first = named(&ann, 1, "tea");
    first.successors = vec![successor(&bob.fingerprint())];
    world.receive(source(1, 9), &first, &ann);
    let mut next = named(&bob, 1, "tea");
    next.rank = (first.rank.0, first.rank.1 + 1);
    world.receive(source(2, 9), &next, &bob);
    assert_eq!(world.reports(), ["Found 1 tea"]);
    assert_eq!(world.list.entries[&1].address(), source(2, 4433));
}

#[test]
fn a_room_without_a_successor_in_time_is_gone() {
    let (mut world, ann, bob) = (World::new(), identity(), identity());
    let mut first = named(&ann, 1, "tea");
    first.successors = vec![successor(&bob.fingerprint())];
    world.receive(source(1, 9), &first, &ann);
    world.reports();
    world.receive(source(1, 9), &passed_on(&ann, 2, &bob), &ann);
    world.pass(4_999);
    world.list.tick(world.now);
    assert_eq!(world.reports(), [""; 0]);
    world.pass(1);
    world.list.tick(world.now);
    assert_eq!(world.reports(), ["Gone 1 tea"]);
    // Without successors it is gone at once.
    world.receive(source(1, 9), &named(&ann, 3, "tea"), &ann);
    assert_eq!(world.reports(), ["Found 2 tea"]);
    world.receive(source(1, 9), &over(&ann, 4), &ann);
    assert_eq!(world.reports(), ["Gone 2 tea"]);
}

#[test]
fn a_host_that_takes_nothing_is_behind_by_one_report_a_room() {
    let (mut world, ann, bob) = (World::new(), identity(), identity());
    for number in 1..100 {
        world.receive(source(1, 9), &named(&ann, number, "tea"), &ann);
        world.pass(100);
    }
    world.receive(source(2, 9), &named(&bob, 1, "brief"), &bob);
    world.receive(source(2, 9), &over(&bob, 2), &bob);
    world.list.tick(world.now);
    assert_eq!(world.reports(), ["Found 1 tea"]);
}

#[test]
fn fifty_rooms_stay_listed_whatever_a_liar_sends() {
    let mut world = World::new();
    let real: Vec<_> = (0..50).map(|_| identity()).collect();
    let liars: Vec<_> = (0..300).map(|_| identity()).collect();
    for (place, room) in (0..).zip(&real) {
        world.receive(source(1, 1000 + place), &named(room, 1, "real"), room);
    }
    assert_eq!(world.reports().len(), 50);
    let mut news = 0;
    for second in 0..10_u64 {
        world.list.asked_all(world.now);
        for (place, room) in (0..).zip(&real) {
            world.receive(source(1, 1000 + place), &named(room, 1, "real"), room);
        }
        for (n, liar) in (0..).zip(&liars) {
            // From one address, and from made-up ones.
            for from in [source(2, n), source((n % 200) as u8 + 3, n)] {
                world.receive(from, &named(liar, second + 1, "fake"), liar);
                world.receive(from, &over(&real[usize::from(n) % 50], 9), liar);
            }
        }
        world.pass(1000);
        world.list.tick(world.now);
        let reports = world.reports();
        let is_of_real = |report: &&String| report.ends_with("real");
        assert_eq!(reports.iter().find(is_of_real), None, "after {second} s");
        news += reports.len();
    }
    let listed = world.list.entries.values();
    let of_real = listed.filter(|entry| entry.source.ip().octets()[3] == 1);
    assert_eq!(of_real.count(), 50);
    assert!(world.list.entries.len() <= MAX_ROOMS);
    assert!(world.list.at(Ipv4Addr::new(10, 0, 0, 2)).count() <= MAX_ROOMS_OF_ADDRESS);
    assert!(news <= MAX_ROOMS, "{news} reports");
}
