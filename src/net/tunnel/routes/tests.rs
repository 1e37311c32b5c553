use proptest::prelude::*;

use super::*;

fn id(number: u16) -> VirtualId {
    let mut id = VirtualId::default();
    id[..2].copy_from_slice(&number.to_be_bytes());
    id
}

fn member(number: u16) -> Via {
    Via::Member(id(number))
}

fn relay(number: u8) -> Via {
    Via::Relay(RelayNumber(number))
}

/// A carrier: the first two are relays.
fn carrier_of(number: u16) -> Via {
    match u8::try_from(number) {
        Ok(number @ 0..2) => relay(number),
        _ => member(number),
    }
}

struct World {
    table: RouteTable,
    start: Instant,
}

impl World {
    fn new() -> Self {
        let start = Instant::now();
        let table = RouteTable::new(start);
        Self { table, start }
    }

    fn at(&self, seconds: u64) -> Instant {
        self.start + Duration::from_secs(seconds)
    }

    fn through(&mut self, target: u16, carrier: u16) -> Option<RouteId> {
        let now = self.start;
        self.table.through(now, id(target), member(carrier))
    }

    fn receive(&mut self, origin: u16, carrier: u16, form: Form) -> Vec<RouteId> {
        let now = self.start;
        let found = self.table.receive(now, id(origin), member(carrier), form);
        found.collect()
    }

    fn exists(&self, route: RouteId) -> bool {
        self.table.routes.contains_key(&route)
    }

    fn check_bounds(&self) {
        let routes = &self.table.routes;
        assert!(routes.len() <= MAX_ROUTES);
        let (mut of_target, mut of_carrier) = (BTreeMap::new(), BTreeMap::new());
        for (id, route) in routes.iter() {
            assert_ne!(id.number, 0);
            *of_target.entry((id.kind, id.target)).or_insert(0) += 1;
            let unheld = of_carrier.entry(route.carrier).or_insert(0);
            *unheld += usize::from(!route.is_held());
        }
        assert!(of_target.values().all(|count| *count <= MAX_ROUTES_OF_ONE));
        assert!(
            of_carrier
                .values()
                .all(|count| *count <= MAX_UNHELD_OF_CARRIER)
        );
    }
}

#[test]
fn a_route_is_named_by_its_virtual_address() {
    let mut world = World::new();
    let route = world.through(1, 2).expect("room");
    assert_eq!(RouteId::at(route.address()), Some(route));
    assert_eq!(id_at(route.address()), Some(id(1)));
    assert_eq!(world.table.carrier(route), Some(member(2)));
    assert_eq!(RouteId::at("[::1]:1".parse().expect("an address")), None);
}

#[test]
fn each_carrier_has_a_route_of_its_own_and_a_second_dial_uses_it() {
    let mut world = World::new();
    let first = world.through(1, 2).expect("room");
    let second = world.through(1, 3).expect("room");
    assert_ne!(first, second);
    assert_eq!(world.through(1, 2), Some(first));
    world.table.set_carrier(first, Some(member(3)));
    assert!(world.table.hold(first));
    assert_eq!(world.through(1, 3), Some(first), "the one with a holder");
    world.table.set_carrier(first, None);
    assert_eq!(world.table.send(world.start, first), None);
    assert_eq!(world.through(1, 3), Some(second));
}

#[test]
fn a_packet_of_a_new_connection_adds_a_route_through_its_carrier() {
    let mut world = World::new();
    let held = world.through(1, 2).expect("room");
    assert!(world.table.hold(held));
    let added = world.receive(1, 3, Form::Long);
    assert_eq!(added.len(), 1);
    assert_ne!(added, [held]);
    assert_eq!(world.table.carrier(added[0]), Some(member(3)));
    assert_eq!(world.receive(1, 3, Form::Long), added, "once");
    assert_eq!(world.receive(1, 2, Form::Long), [held]);
}

#[test]
fn a_relay_and_a_member_reach_no_route_of_the_other_kind() {
    let mut world = World::new();
    let now = world.start;
    let by_member = world.through(1, 2).expect("room");
    let by_relay = world.table.through(now, id(1), relay(0)).expect("room");
    assert_ne!(by_member.address(), by_relay.address());
    assert_eq!(RouteId::at(by_relay.address()), Some(by_relay));
    assert!(world.table.hold(by_member) && world.table.hold(by_relay));
    for form in [Form::Short, Form::Long] {
        let from_relay = world.table.receive(now, id(1), relay(0), form);
        assert_eq!(from_relay.collect::<Vec<_>>(), [by_relay]);
        assert_eq!(world.receive(1, 2, form), [by_member]);
    }
    // Either relay carries the packets of an established connection; a new one is answered through its own relay.
    let other = world.table.receive(now, id(1), relay(1), Form::Short);
    assert_eq!(other.collect::<Vec<_>>(), [by_relay]);
    let other = world.table.receive(now, id(1), relay(1), Form::Long);
    assert_ne!(other.collect::<Vec<_>>(), [by_relay]);
    world.table.set_carrier(by_relay, Some(member(2)));
    assert_eq!(world.table.carrier(by_relay), Some(relay(0)));
    world.table.set_carrier(by_member, Some(relay(0)));
    assert_eq!(world.table.carrier(by_member), Some(member(2)));
    assert!(world.table.is_used(relay(0)) && !world.table.is_used(relay(1)));
    world.table.set_carrier(by_relay, None);
    assert!(!world.table.is_used(relay(0)));
}

#[test]
fn a_packet_of_an_established_connection_adds_and_moves_no_route() {
    let mut world = World::new();
    assert_eq!(world.receive(1, 3, Form::Short), []);
    let held = world.through(1, 2).expect("room");
    assert!(world.table.hold(held));
    let other = world.through(1, 4).expect("room");
    assert!(world.table.hold(other));
    let unheld = world.through(1, 5).expect("room");
    for _ in 0..3 {
        let mut found = world.receive(1, 3, Form::Short);
        found.sort_unstable();
        assert_eq!(found, [held, other], "only quinn knows which");
    }
    assert_eq!(world.table.carrier(held), Some(member(2)));
    assert_eq!(
        world.receive(1, 5, Form::Short).last(),
        Some(&unheld),
        "the end of a link"
    );
    assert_eq!(world.table.routes.len(), 3);
}

#[test]
fn a_member_that_makes_up_origins_removes_only_its_own_routes() {
    let mut world = World::new();
    let honest: Vec<_> = (0..60)
        .map(|n| world.receive(n, 20_000, Form::Long)[0])
        .collect();
    let held = world.receive(999, 20_001, Form::Long)[0];
    assert!(world.table.hold(held));
    for origin in 1000..11_000 {
        assert_eq!(world.receive(origin, 20_001, Form::Long).len(), 1);
        world.check_bounds();
    }
    assert!(honest.iter().all(|route| world.exists(*route)));
    assert!(world.exists(held));
    assert_eq!(world.table.routes.len(), 60 + 1 + MAX_UNHELD_OF_CARRIER);
    // Many such members together remove no route of a carrier with few.
    for carrier in 20_002..20_030 {
        for origin in 1000..1100 {
            world.receive(origin, carrier, Form::Long);
        }
        world.check_bounds();
    }
    let left = honest.iter().filter(|route| world.exists(**route)).count();
    assert!(left >= MAX_ROUTES / 29 && world.exists(held), "{left}");
}

#[test]
fn the_routes_to_one_target_are_bounded() {
    let mut world = World::new();
    let first = world.through(1, 100).expect("room");
    let second = world.through(1, 101).expect("room");
    for carrier in 102..108 {
        let route = world.through(1, carrier).expect("room");
        assert!(world.table.hold(route));
    }
    world.through(1, 100);
    let other = world.through(2, 100).expect("room");
    let next = world.through(1, 109).expect("the oldest use makes way");
    assert!(world.exists(first) && !world.exists(second) && world.exists(other));
    for route in [first, next] {
        assert!(world.table.hold(route));
    }
    assert_eq!(world.through(1, 110), None, "all have holders");
    assert_eq!(world.receive(1, 110, Form::Long), []);
    world.table.release(world.start, first);
    assert!(world.through(1, 110).is_some() && !world.exists(first));
}

#[test]
fn a_full_table_has_no_room_for_another_route() {
    let mut world = World::new();
    for target in 0..512 {
        let route = world.through(target, 2000 + target).expect("room");
        assert!(world.table.hold(route));
    }
    assert_eq!(world.through(600, 2600), None);
    assert_eq!(world.receive(600, 2600, Form::Long), []);
    world.check_bounds();
}

#[test]
fn a_route_without_a_holder_ends_ten_seconds_after_its_last_use() {
    let mut world = World::new();
    let [held, unheld, used, released] =
        [1, 2, 3, 4].map(|target| world.through(target, 9).expect("room"));
    assert!(world.table.hold(held) && world.table.hold(released));
    for seconds in [5, 10] {
        assert_eq!(world.table.send(world.at(seconds), used), Some(member(9)));
    }
    world.table.sweep(world.at(9));
    assert!(world.exists(unheld));
    world.table.release(world.at(10), released);
    world.table.sweep(world.at(11));
    assert!(world.exists(held) && !world.exists(unheld));
    assert!(world.exists(used) && world.exists(released));
    world.table.sweep(world.at(20));
    assert!(world.exists(held) && !world.exists(used) && !world.exists(released));
    assert!(!world.table.hold(used));
}

#[test]
fn two_holders_are_counted() {
    let mut world = World::new();
    let route = world.through(1, 2).expect("room");
    assert!(world.table.hold(route) && world.table.hold(route));
    world.table.release(world.start, route);
    world.table.sweep(world.at(100));
    assert!(world.exists(route));
    world.table.release(world.at(100), route);
    world.table.sweep(world.at(111));
    assert!(!world.exists(route));
}

#[derive(Debug, Clone)]
enum Step {
    Through(u16, u16),
    Receive(u16, u16, bool),
    Hold(usize),
    Release(usize),
    SetCarrier(usize, Option<u16>),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..40_u16, 0..12_u16).prop_map(|(target, carrier)| Step::Through(target, carrier)),
        8 => (0..400_u16, 0..12_u16, any::<bool>())
            .prop_map(|(origin, carrier, long)| Step::Receive(origin, carrier, long)),
        2 => any::<usize>().prop_map(Step::Hold),
        1 => any::<usize>().prop_map(Step::Release),
        1 => (any::<usize>(), prop::option::of(0..12_u16))
            .prop_map(|(route, carrier)| Step::SetCarrier(route, carrier)),
        1 => (0..4_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn routes_are_bounded_and_held_ones_stay(steps in prop::collection::vec(step(), 1..1500)) {
        let mut world = World::new();
        let mut now = world.start;
        let mut known = Vec::new();
        let mut holders = BTreeMap::<RouteId, usize>::new();
        for step in steps {
            match step {
                Step::Through(target, carrier) => {
                    let (target, carrier) = (id(target), carrier_of(carrier));
                    if let Some(route) = world.table.through(now, target, carrier) {
                        prop_assert_eq!(world.table.carrier(route), Some(carrier));
                        known.push(route);
                    }
                }
                Step::Receive(origin, carrier, long) => {
                    let (origin, carrier) = (id(origin), carrier_of(carrier));
                    let form = if long { Form::Long } else { Form::Short };
                    for route in world.table.receive(now, origin, carrier, form) {
                        prop_assert_eq!(route.target(), origin);
                        prop_assert!(!long || world.table.carrier(route) == Some(carrier));
                        known.push(route);
                    }
                }
                Step::Hold(n) if !known.is_empty() => {
                    let route = known[n % known.len()];
                    if world.table.hold(route) {
                        *holders.entry(route).or_default() += 1;
                    }
                }
                Step::Release(n) if !holders.is_empty() => {
                    let route = *holders.keys().nth(n % holders.len()).expect("few enough");
                    world.table.release(now, route);
                    let count = holders.get_mut(&route).expect("held");
                    *count -= 1;
                    if *count == 0 {
                        holders.remove(&route);
                    }
                }
                Step::SetCarrier(n, carrier) if !known.is_empty() => {
                    world.table.set_carrier(known[n % known.len()], carrier.map(carrier_of));
                }
                Step::Wait(seconds) => now += Duration::from_secs(seconds),
                Step::Hold(_) | Step::Release(_) | Step::SetCarrier(..) => {}
            }
            world.check_bounds();
            for route in holders.keys() {
                prop_assert!(world.exists(*route));
            }
        }
    }
}
