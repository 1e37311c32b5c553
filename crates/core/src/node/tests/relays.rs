//! Links over relays: full links, which direct ones replace.

use super::*;
use crate::path::{LinkPath, RelayNumber};

/// A relay of the virtual network.
#[derive(Debug, Default)]
pub(super) struct TestRelay {
    pub(super) is_up: bool,
    pub(super) entered: BTreeSet<PeerId>,
    /// Pairs whose packets it drops, in that direction.
    pub(super) drops: BTreeSet<(PeerId, PeerId)>,
}

impl TestRelay {
    pub(super) fn forwards(&self, from: &PeerId, to: &PeerId) -> bool {
        let is_here = |end: &PeerId| self.entered.contains(end);
        let drops = self.drops.contains(&(from.clone(), to.clone()));
        self.is_up && is_here(from) && is_here(to) && !drops
    }
}

/// Time after which members notice that a relay is silent.
pub(super) const NOTICED_AFTER: Duration = ms(500);
const OBSERVED: &str = "203.0.113.9:7";

/// The key of a relay of the virtual network.
pub(super) fn key_of_relay(relay: u8) -> Fingerprint {
    Fingerprint([200 + relay; 32])
}

/// A relay has come up.
pub(super) fn up(relay: u8) -> RelayChange {
    RelayChange::Up {
        observed: OBSERVED.parse().expect("valid"),
        key: key_of_relay(relay),
    }
}

impl Net {
    pub(super) fn change(&mut self, relay: u8, name: &PeerId, change: RelayChange) {
        let relay = RelayNumber(relay);
        let _ = self.feed(name, Input::Relay { relay, change });
    }

    /// Members enter a relay, which is up from now on.
    pub(super) fn enter_relay(&mut self, relay: u8, names: &[&str]) {
        for name in names {
            let it = &mut self.relays[usize::from(relay)];
            it.is_up = true;
            it.entered.insert(id(name));
            self.entered(relay, &id(name));
        }
    }

    fn entered(&mut self, relay: u8, name: &PeerId) {
        self.change(relay, name, up(relay));
        let key = self.places[name].life.key;
        for other in self.relays[usize::from(relay)].entered.clone() {
            if other != *name {
                let its = self.places[&other].life.key;
                self.change(relay, name, RelayChange::Present(its));
                self.change(relay, &other, RelayChange::Present(key));
            }
        }
    }

    /// A relay forwards nothing any more, and its members notice after a while.
    pub(super) fn relay_falls(&mut self, relay: u8) {
        self.relays[usize::from(relay)].is_up = false;
        self.run(NOTICED_AFTER);
        for name in self.relays[usize::from(relay)].entered.clone() {
            self.change(relay, &name, RelayChange::Down);
        }
    }

    pub(super) fn relay_returns(&mut self, relay: u8) {
        let it = &mut self.relays[usize::from(relay)];
        it.is_up = true;
        for name in std::mem::take(&mut it.entered) {
            self.relays[usize::from(relay)].entered.insert(name.clone());
            self.entered(relay, &name);
        }
        for message in std::mem::take(&mut self.held) {
            self.happen(message);
        }
    }

    pub(super) fn wall_off(&mut self, names: &[&str]) {
        for one in names {
            for other in names.iter().filter(|other| *other != one) {
                self.wall(one, other);
            }
        }
    }
}

pub(super) fn relay(number: u8) -> Option<LinkPath> {
    Some(LinkPath::Relay(RelayNumber(number)))
}

pub(super) fn path(net: &Net, name: &str, peer: &str) -> Option<LinkPath> {
    net.node(name).path_to(&id(peer))
}

/// A settled room of members that reach each other over the first relay alone; the first leads.
pub(super) fn relayed_room(names: &[&str]) -> Net {
    let mut net = Net::new();
    net.wall_off(names);
    fill(&mut net, names);
    // Links repeat what a relay has lost.
    net.links_repeat = true;
    net
}

pub(super) fn fill(net: &mut Net, names: &[&str]) {
    net.start(names[0]);
    net.wait("the first leads alone", |net| net.leads(names[0]));
    net.enter_relay(0, &names[..1]);
    for name in &names[1..] {
        net.start(name);
        net.enter_relay(0, &[name]);
        net.enter(name, names[0]);
    }
    net.settle();
}

/// The changes of links and leaders that a host noticed.
pub(super) fn changes(net: &Net, name: &str) -> Vec<Event> {
    let mut events = net.events(name);
    events.retain(|event| {
        matches!(
            event,
            Event::Joined(_)
                | Event::Left(_)
                | Event::Reconnecting(_)
                | Event::Returned(_)
                | Event::LeaderChanged(_)
                | Event::PathChanged { .. }
        )
    });
    events
}

fn path_changed(peer: &str, old: LinkPath, new: LinkPath) -> Event {
    let peer = id(peer);
    Event::PathChanged { peer, old, new }
}

#[test]
fn members_over_a_relay_take_part_in_elections() {
    let mut net = relayed_room(&["a", "b", "c"]);
    for (one, other) in [("a", "b"), ("b", "c"), ("c", "a")] {
        assert_eq!(path(&net, one, other), relay(0));
        assert!(net.node(one).view.voters.contains_key(&id(other)));
    }
    net.kill("a", false);
    net.wait("b or c leads both", |net| {
        let leader = net.node("b").leader();
        leader.is_some() && leader != Some(&id("a")) && leader == net.node("c").leader()
    });
}

#[test]
fn a_direct_link_takes_over_from_a_relay_and_elections_notice_nothing() {
    let mut net = relayed_room(&["a", "b"]);
    net.run(ms(3000));
    let term = net.node("a").record().term();
    net.place_mut("a").events.clear();
    net.place_mut("b").events.clear();
    net.walls.clear();
    net.wait("a direct link", |net| {
        path(net, "a", "b") == Some(LinkPath::Direct)
            && path(net, "b", "a") == Some(LinkPath::Direct)
    });
    net.run(ms(10_000));
    let change = |peer| path_changed(peer, LinkPath::Relay(RelayNumber(0)), LinkPath::Direct);
    assert_eq!(changes(&net, "a"), [change("b")]);
    assert_eq!(changes(&net, "b"), [change("a")]);
    assert_eq!(net.node("a").record().term(), term);
    // The others learn its address from now on, and it is dialled there when it is lost.
    let member = net.node("a").membership().get(&id("b")).expect("linked");
    assert_eq!(member.addresses[0], net.place("b").address);
}

#[test]
fn the_second_round_follows_soon_and_unproven_addresses_get_few_packets() {
    let mut net = relayed_room(&["a", "b"]);
    net.run(Duration::from_secs(590));
    for name in ["a", "b"] {
        let mut packets = BTreeMap::<_, Vec<Time>>::new();
        let its = net.dials.iter().filter(|(_, from, _)| *from == id(name));
        for (at, _, dial) in its {
            for address in &dial.addresses {
                packets.entry(address.at.ip()).or_default().push(*at);
            }
        }
        let observed: SocketAddr = OBSERVED.parse().expect("valid");
        assert!(packets.contains_key(&observed.ip()), "{packets:?}");
        for (ip, times) in packets {
            let waits = times.windows(2).map(|pair| pair[1].since(pair[0]));
            let waits: Vec<_> = waits.collect();
            assert_eq!(waits.len(), 3, "{name} dials {ip} at {times:?}");
            assert!((ms(500)..ms(800)).contains(&waits[0]), "{waits:?}");
            assert!(
                waits[1..].iter().all(|wait| *wait >= ms(1_900)),
                "{waits:?}"
            );
        }
    }
}

#[test]
fn a_direct_link_that_was_lost_with_an_address_is_tried_again_at_once() {
    for moves in ["a", "b"] {
        let mut net = relayed_room(&["a", "b"]);
        let is_direct = |net: &Net| path(net, "a", "b") == Some(LinkPath::Direct);
        for port in 8..12 {
            net.walls.clear();
            let took = net.wait("a direct link", is_direct);
            assert!(took <= ms(6_000), "{took:?}");
            net.run(ms(5_000));
            net.wall_off(&["a", "b"]);
            net.unlink("a", "b", LinkEnd::Silent);
            net.wait("over the relay", |net| path(net, "a", "b") == relay(0));
            net.run(ms(3_000));
            // It moves, and the relay notices.
            let observed = SocketAddr::new([203, 0, 113, 9].into(), port);
            net.change(0, &id(moves), RelayChange::Observed(observed));
        }
    }
}

#[test]
fn a_direct_link_that_does_not_last_is_tried_again_after_longer_and_longer_waits() {
    let mut net = relayed_room(&["a", "b"]);
    let mut waits = Vec::new();
    for _ in 0..4 {
        let from = net.now;
        net.walls.clear();
        while path(&net, "a", "b") != Some(LinkPath::Direct) {
            net.run(ms(100));
            assert!(net.now.since(from) < Duration::from_secs(700));
        }
        waits.push(net.now.since(from).as_secs());
        net.run(ms(5_000));
        net.wall_off(&["a", "b"]);
        net.unlink("a", "b", LinkEnd::Silent);
        net.wait("over the relay", |net| {
            path(net, "a", "b") == relay(0) && net.has("b", "a")
        });
        let dials = net.dials.iter();
        let direct = dials.filter(|(at, _, dial)| *at > net.now && !dial.addresses.is_empty());
        assert_eq!(direct.count(), 0);
    }
    assert!(waits[0] <= 10, "{waits:?}");
    for (wait, pause) in waits[1..].iter().zip([30, 120, 600]) {
        assert!((pause - 1..=pause + 31).contains(wait), "{waits:?}");
    }
    // One that lasts is forgotten.
    net.walls.clear();
    net.run(Duration::from_secs(700));
    assert_eq!(path(&net, "a", "b"), Some(LinkPath::Direct));
    net.wall_off(&["a", "b"]);
    net.unlink("a", "b", LinkEnd::Silent);
    net.wait("over the relay", |net| {
        path(net, "a", "b") == relay(0) && net.has("b", "a")
    });
    net.walls.clear();
    net.wait("direct again", |net| {
        path(net, "a", "b") == Some(LinkPath::Direct)
    });
}

/// The lists of addresses that a member has sent to another one.
fn lists(net: &Net, from: &str, to: &str) -> Vec<Vec<SocketAddr>> {
    let sent = net.place(from).sent.iter();
    sent.filter_map(|(receiver, message)| match message {
        Message::Addresses(addresses) if *receiver == id(to) => Some(addresses.clone()),
        _ => None,
    })
    .collect()
}

#[test]
fn members_behind_one_router_exchange_their_private_addresses_at_once() {
    let mut net = Net::new();
    net.wall_off(&["a", "b"]);
    fill(&mut net, &["a"]);
    net.start("b");
    net.enter_relay(0, &["b"]);
    net.enter("b", "a");
    net.wait("over the relay", |net| path(net, "b", "a") == relay(0));
    let has_sent = |net: &Net, from: &str, to: &str| {
        let private = net.place(from).address;
        lists(net, from, to).concat().contains(&private)
    };
    let took = net.wait("both have the other's address", |net| {
        has_sent(net, "a", "b") && has_sent(net, "b", "a")
    });
    assert!(took <= ms(200), "{took:?}");
}

#[test]
fn a_member_that_links_anew_again_and_again_gets_no_more_lists_of_addresses() {
    let mut net = relayed_room(&["a", "b"]);
    // The lists of before are paid for.
    net.run(ms(3_000));
    let before = lists(&net, "a", "b").len();
    let from = net.now;
    while net.now.since(from) < ms(10_000) {
        net.unlink("a", "b", LinkEnd::Closed);
        net.link("a", "b");
        net.run(ms(100));
        let sent = u128::try_from(lists(&net, "a", "b").len() - before).expect("small");
        let seconds = net.now.since(from).as_millis() / 1_000;
        assert!(sent <= 2 + seconds, "{sent} lists in {seconds} s");
    }
    // The search that begins last goes on: a list that had to wait is sent.
    net.walls.clear();
    net.wait("a direct link", |net| {
        path(net, "a", "b") == Some(LinkPath::Direct)
    });
}

#[test]
fn a_relay_takes_over_from_a_member_and_the_ends_count_for_each_other_then() {
    let mut net = Net::new();
    net.wall("b", "c");
    net.fill(&["a", "b", "c"]);
    assert_eq!(path(&net, "b", "c"), Some(LinkPath::Leader(id("a"))));
    net.enter_relay(0, &["b"]);
    net.run(ms(2_000));
    assert!(!net.node("b").view.voters.contains_key(&id("c")));
    net.enter_relay(0, &["c"]);
    net.wait("over the relay", |net| {
        path(net, "b", "c") == relay(0) && path(net, "c", "b") == relay(0)
    });
    assert!(net.node("b").view.voters.contains_key(&id("c")));
    assert!(net.node("c").view.voters.contains_key(&id("b")));
    let change = path_changed(
        "c",
        LinkPath::Leader(id("a")),
        LinkPath::Relay(RelayNumber(0)),
    );
    assert_eq!(changes(&net, "b"), [change]);
    // Over it the search for a direct path goes on.
    net.walls.clear();
    net.wait("a direct link", |net| {
        path(net, "b", "c") == Some(LinkPath::Direct)
            && path(net, "c", "b") == Some(LinkPath::Direct)
    });
}

#[test]
fn a_relay_that_does_not_carry_is_tried_again_with_waits_that_double() {
    let mut net = Net::new();
    net.wall("b", "c");
    net.fill(&["a", "b", "c"]);
    net.relays[0].drops = [(id("b"), id("c")), (id("c"), id("b"))].into();
    net.enter_relay(0, &["b", "c"]);
    net.dials.clear();
    net.run(ms(60_000));
    let over_relays = |(at, from, dial): &(Time, PeerId, Dial)| {
        let is_relay = |carrier: &Carrier| carrier.kind() == CarrierKind::Relay;
        let any = dial.carriers.iter().any(is_relay);
        (any && *from == id("b")).then_some(at.as_micros() / 1_000_000)
    };
    let dials: Vec<_> = net.dials.iter().filter_map(over_relays).collect();
    assert!((5..=7).contains(&dials.len()), "{dials:?}");
    net.relays[0].drops.clear();
    net.wait("over the relay", |net| path(net, "b", "c") == relay(0));
}

#[test]
fn a_link_moves_to_another_relay_when_its_own_falls_and_only_its_path_changes() {
    let mut net = relayed_room(&["a", "b"]);
    net.enter_relay(1, &["a", "b"]);
    net.run(ms(1000));
    assert_eq!(changes(&net, "a"), []);
    net.relay_falls(0);
    net.run(ms(5000));
    let moves = |peer| {
        let relay = |number| LinkPath::Relay(RelayNumber(number));
        path_changed(peer, relay(0), relay(1))
    };
    assert_eq!(changes(&net, "a"), [moves("b")]);
    assert_eq!(changes(&net, "b"), [moves("a")]);
    net.relay_returns(0);
    net.run(ms(5000));
    assert_eq!(path(&net, "a", "b"), relay(1));
}

#[test]
fn a_relay_that_drops_one_way_is_replaced_by_another() {
    let mut net = relayed_room(&["a", "b"]);
    net.enter_relay(1, &["a", "b"]);
    net.relays[0].drops.insert((id("a"), id("b")));
    net.wait("the other relay carries", |net| {
        path(net, "a", "b") == relay(1) && path(net, "b", "a") == relay(1) && net.is_settled()
    });
    net.run(ms(10_000));
    assert!(net.has("a", "b") && net.has("b", "a"));
}

#[test]
fn a_lost_member_is_dialled_over_relays_at_once() {
    let mut net = Net::room(&["a", "b"]);
    net.enter_relay(0, &["a", "b"]);
    net.dials.clear();
    net.wall("a", "b");
    net.unlink("a", "b", LinkEnd::Silent);
    let took = net.wait("over the relay", |net| {
        path(net, "a", "b") == relay(0) && path(net, "b", "a") == relay(0)
    });
    assert!(took <= ms(100), "{took:?}");
    let (_, _, dial) = &net.dials[0];
    assert!(dial.relays_at_once && !dial.addresses.is_empty());
}

#[test]
fn a_member_over_a_relay_is_introduced_without_addresses_and_carries_for_nobody() {
    let mut net = Net::new();
    // All reach the leader over the relay alone; b reaches all others, and d is not at the relay.
    net.wall("a", "b");
    net.wall("a", "c");
    fill(&mut net, &["a", "b", "c"]);
    assert_eq!(path(&net, "a", "b"), relay(0));
    assert_eq!(path(&net, "b", "c"), Some(LinkPath::Direct));
    for (one, other) in [("d", "a"), ("d", "c")] {
        net.wall(one, other);
    }
    net.start("d");
    net.enter("d", "b");
    net.wait("d is linked with c", |net| {
        net.has("d", "c") && net.has("c", "d")
    });
    net.run(ms(20_000));
    assert_eq!(path(&net, "d", "c"), Some(LinkPath::Member(id("b"))));
    // The leader has a link over a relay with b alone, so b cannot carry to it.
    assert!(!net.has("d", "a") && !net.has("a", "d"));
    for (_, from, dial) in &net.dials {
        let carriers = dial.carriers.iter().filter_map(Carrier::member);
        for carrier in carriers {
            let path = path(&net, from.as_str(), carrier.as_str());
            assert_eq!(path, Some(LinkPath::Direct), "{from} asks {carrier}");
        }
    }
    let member = net.node("b").membership().get(&id("a")).expect("linked");
    assert_eq!(member.addresses, []);
}

#[test]
fn a_member_that_is_reached_over_relays_alone_names_and_dials_no_address() {
    let mut net = Net::new();
    net.wall_off(&["a", "b", "c"]);
    net.config.relayed_only = true;
    fill(&mut net, &["a", "b", "c"]);
    net.walls.clear();
    net.run(ms(60_000));
    for (one, other) in [("a", "b"), ("b", "c"), ("c", "a")] {
        assert_eq!(path(&net, one, other), relay(0));
    }
    for name in ["a", "b", "c"] {
        for (_, message) in &net.place(name).sent {
            assert!(
                !matches!(message, Message::Addresses(_) | Message::Punch { .. }),
                "{message:?}"
            );
        }
    }
    assert_eq!(net.listed, BTreeSet::new());
    let dials = net.dials.iter();
    assert_eq!(
        dials
            .filter(|(.., dial)| !dial.addresses.is_empty())
            .count(),
        0
    );
    // The lost are dialled over the relay.
    net.unlink("a", "b", LinkEnd::Silent);
    net.wall_off(&["a", "b", "c"]);
    net.wait("they are linked again", |net| {
        net.has("a", "b") && net.has("b", "a")
    });
}

#[test]
fn guests_of_a_star_meet_over_a_relay_where_they_are_hidden() {
    let mut net = Net::new();
    net.config.election.policy.topology = Topology::Star;
    net.wall_off(&["h", "b", "c"]);
    let config = net.config.clone();
    for (name, host_mode) in [
        ("h", HostMode::Host),
        ("b", HostMode::Guest),
        ("c", HostMode::Guest),
    ] {
        let mut config = config.clone();
        config.election.policy.host_mode = host_mode;
        net.start_with(name, life(key_at(name), net.now.as_micros()), config);
        net.relays[0].is_up = true;
        net.relays[0].entered.insert(id(name));
        net.change(0, &id(name), up(0));
        if name != "h" {
            net.enter(name, "h");
        }
    }
    net.settle();
    for (one, other) in [("h", "b"), ("b", "c"), ("c", "h")] {
        assert_eq!(path(&net, one, other), relay(0));
    }
    net.run(ms(10_000));
    for name in ["h", "b", "c"] {
        let sent = &net.place(name).sent;
        let addresses = |(_, message): &(PeerId, Message)| matches!(message, Message::Addresses(_));
        assert!(!sent.iter().any(addresses));
    }
}

#[test]
fn relays_are_dialled_at_once_where_no_address_answers_soon() {
    let mut net = Net::room(&["a"]);
    net.enter_relay(0, &["a"]);
    let dial_of = |net: &mut Net, name: &str, address: &str| {
        let key = Fingerprint([key_at(name); 32]);
        net.change(0, &id("a"), RelayChange::Present(key));
        let entry = PeerEntry {
            id: id(name),
            key,
            addresses: vec![address.parse().expect("valid")],
        };
        let now = net.now;
        let node = &mut net.place_mut("a").node;
        node.introductions
            .introduce(now, &id("a"), &entry, crate::introductions::Source::Member);
        let dials = node.dials_due(now);
        dials
            .into_iter()
            .find(|dial| dial.peer == id(name))
            .expect("due")
    };
    let global = dial_of(&mut net, "x", "203.0.113.1:7");
    assert!(global.relays_at_once && global.carriers.len() == 1);
    let private = dial_of(&mut net, "y", "10.0.0.7:7");
    assert!(!private.relays_at_once && private.carriers.len() == 1);
    let now = net.now;
    let node = &mut net.place_mut("a").node;
    node.introductions
        .answered(now, "203.0.113.2:1".parse().expect("valid"));
    let known = dial_of(&mut net, "z", "203.0.113.2:7");
    assert!(!known.relays_at_once && known.carriers.len() == 1);
}
