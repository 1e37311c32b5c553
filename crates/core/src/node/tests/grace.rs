//! Relays that fall and return: no member is lost or elected because of that for a while.

use super::relays::{NOTICED_AFTER, changes, fill, path, relay, relayed_room, up};
use super::*;
use crate::election::gossip::Windows;
use crate::membership::RELAY_GRACE;
use crate::quorum::Roster;
use crate::wire::{RoomPolicy, Strategy};

/// A little less than the grace.
const RESTART: Duration = ms(3_900);

fn forget_events(net: &mut Net) {
    for place in net.places.values_mut() {
        place.events.clear();
    }
}

fn restarts_unnoticed(mut net: Net, names: &[&str]) {
    let term = net.node(names[0]).record().term();
    for outage in [ms(100), ms(2_000), RESTART] {
        forget_events(&mut net);
        net.relay_falls(0);
        net.run(outage);
        net.relay_returns(0);
        net.run(ms(20_000));
        for name in names {
            assert_eq!(changes(&net, name), [], "{name} after {outage:?}");
        }
    }
    assert!(net.leads(names[0]));
    assert_eq!(net.node(names[0]).record().term(), term);
}

#[test]
fn a_relay_that_is_back_within_four_seconds_elects_nobody() {
    for names in [
        &["a", "b"][..],
        &["a", "b", "c"],
        &["a", "b", "c", "d", "e"],
    ] {
        let net = relayed_room(names);
        restarts_unnoticed(net, names);
    }
}

#[test]
fn a_relay_that_is_back_within_four_seconds_elects_nobody_by_gossip() {
    for strict_lowest in [false, true] {
        let names = ["b", "a", "c"];
        let mut net = Net::new();
        net.links_repeat = true;
        net.config.election.policy = RoomPolicy {
            strategy: Strategy::Gossip { strict_lowest },
            ..RoomPolicy::default()
        };
        net.config.election.windows = Windows {
            startup_grace: ms(1_500),
            sample_interval: ms(100),
            alive_threshold: ms(1_500),
            election_duration: ms(500),
        };
        net.wall_off(&names);
        fill(&mut net, &names);
        restarts_unnoticed(net, &names);
    }
}

#[test]
fn members_without_the_relay_wait_for_those_that_it_links_with_the_leader() {
    let names = ["a", "b", "c"];
    let mut net = Net::new();
    net.links_repeat = true;
    net.wall_off(&names);
    net.wall("a", "z");
    fill(&mut net, &names);
    net.start("z");
    net.enter("z", "b");
    net.wait("z shows the leader that b vouches for", |net| {
        net.node("z").leader() == Some(&id("a")) && net.has("z", "c")
    });
    net.run(ms(5_000));
    let term = net.node("a").record().term();
    forget_events(&mut net);
    net.relay_falls(0);
    net.run(RESTART);
    net.relay_returns(0);
    net.run(ms(10_000));
    for name in ["a", "b", "c", "z"] {
        assert_eq!(changes(&net, name), [], "{name}");
    }
    assert_eq!(net.node("z").record().term(), term);
}

/// The time from the death of the leader until another one leads all the others.
fn failover(net: &mut Net, others: &[&str]) -> Duration {
    net.kill("a", false);
    net.wait("another leads", |net| {
        let leader = net.node(others[0]).leader();
        let is_new = leader.is_some_and(|leader| *leader != id("a"));
        is_new && others.iter().all(|name| net.node(name).leader() == leader)
    })
}

#[test]
fn a_leader_that_dies_with_its_relay_is_replaced_four_seconds_later_at_most() {
    for (walls, names) in [
        // The others reach each other.
        (&[("a", "b"), ("a", "c")][..], ["a", "b", "c"]),
        (&[("a", "b"), ("a", "c"), ("b", "c")], ["a", "b", "c"]),
    ] {
        let room = || {
            let mut net = Net::new();
            net.links_repeat = true;
            for (one, other) in walls {
                net.wall(one, other);
            }
            fill(&mut net, &names);
            net
        };
        let usual = failover(&mut room(), &names[1..]);
        let mut net = room();
        net.relays[0].is_up = false;
        net.kill("a", false);
        net.run(NOTICED_AFTER);
        net.relay_falls(0);
        net.relays[0].entered.remove(&id("a"));
        net.run(ms(1_000));
        net.relay_returns(0);
        let from = net.now;
        let took = failover(&mut net, &names[1..]) + ms(1_000) + NOTICED_AFTER * 2;
        assert!(took <= usual + RELAY_GRACE, "{took:?}, {usual:?}");
        assert!(net.now.since(from) >= ms(1_000), "it is waited for");
    }
}

#[test]
fn a_relay_that_flaps_holds_a_dead_leader_no_longer_than_one_that_falls_once() {
    let names = ["a", "b", "c"];
    let mut net = Net::new();
    net.links_repeat = true;
    net.wall("a", "b");
    net.wall("a", "c");
    fill(&mut net, &names);
    net.kill("a", false);
    let from = net.now;
    let is_held = |net: &Net, name: &str| net.has(name, "a");
    while is_held(&net, "b") || is_held(&net, "c") {
        // It claims that the leader is there.
        let key = Fingerprint([key_at("a"); 32]);
        for name in ["b", "c"] {
            net.change(0, &id(name), RelayChange::Down);
        }
        net.run(ms(500));
        for name in ["b", "c"] {
            net.change(0, &id(name), up(0));
            net.change(0, &id(name), RelayChange::Present(key));
        }
        net.run(ms(500));
        assert!(net.now.since(from) <= RELAY_GRACE + ms(1_000));
    }
    net.wait("another leads", |net| net.leads("b") || net.leads("c"));
}

#[test]
fn a_member_that_is_silent_while_its_relay_is_up_is_lost_as_usual() {
    let mut net = relayed_room(&["a", "b"]);
    net.mute("a", true);
    let took = net.wait("b has lost it", |net| !net.has("b", "a"));
    assert!(took <= ms(1_500), "{took:?}");
    // Nor does the fall of a relay matter that carries nothing.
    let mut net = relayed_room(&["a", "b"]);
    net.enter_relay(1, &["a", "b"]);
    net.mute("a", true);
    net.change(1, &id("b"), RelayChange::Down);
    net.change(1, &id("b"), up(1));
    net.change(0, &id("b"), RelayChange::Down);
    let took = net.wait("b has lost it", |net| !net.has("b", "a"));
    assert!(took <= RELAY_GRACE, "{took:?}");
}

#[test]
fn a_link_that_another_relay_carries_on_is_not_held() {
    let mut net = relayed_room(&["a", "b"]);
    net.enter_relay(1, &["a", "b"]);
    net.mute("a", true);
    net.change(0, &id("b"), RelayChange::Down);
    assert_eq!(path(&net, "b", "a"), relay(1));
    let took = net.wait("b has lost it", |net| !net.has("b", "a"));
    assert!(took <= ms(1_500), "{took:?}");
}

#[test]
fn a_sign_of_life_ends_the_grace_and_a_later_fall_gives_another() {
    let mut net = relayed_room(&["a", "b"]);
    for _ in 0..5 {
        net.relay_falls(0);
        net.run(ms(3_000));
        assert!(net.has("b", "a"));
        assert_eq!(net.node("b").held(net.now).count(), 1);
        net.relay_returns(0);
        net.run(ms(1_600));
        assert_eq!(net.node("b").held(net.now).count(), 0);
    }
    assert_eq!(changes(&net, "a"), []);
    net.relay_falls(0);
    net.wait("a and b lose each other", |net| {
        !net.has("a", "b") && !net.has("b", "a")
    });
}

#[test]
fn a_leader_of_a_static_quorum_resigns_as_early_as_without_a_relay() {
    let names = ["a", "b", "c"];
    let mut net = Net::new();
    net.links_repeat = true;
    net.config.election.quorum =
        Quorum::Static(Roster::new(names.map(|name| (id(name), None))).expect("valid"));
    net.wall_off(&names);
    for name in names {
        net.start(name);
        net.enter_relay(0, &[name]);
    }
    for name in &names[1..] {
        net.enter(name, names[0]);
    }
    net.enter("b", "c");
    net.settle();
    let leads = names
        .into_iter()
        .find(|name| net.leads(name))
        .expect("one leads");
    let term = net.node("a").record().term();
    // A short outage causes no election.
    net.relay_falls(0);
    net.run(ms(1_000));
    net.relay_returns(0);
    net.run(ms(5_000));
    assert!(net.leads(leads));
    assert_eq!(net.node("a").record().term(), term);
    net.relay_falls(0);
    let took = net.wait("it resigns", |net| !net.leads(leads)) + NOTICED_AFTER;
    assert!(
        took <= net.config.election.election_timeout_min * 2,
        "{took:?}"
    );
    for name in names {
        assert_eq!(net.node(name).record().term(), term, "nobody campaigns");
    }
}

#[test]
fn of_equal_priority_the_member_with_fewer_links_over_relays_campaigns_first() {
    let names = ["a", "b", "c", "d"];
    let mut net = Net::new();
    // Without the walls d, with the largest id, would follow a.
    for (one, other) in [("a", "d"), ("b", "d"), ("c", "d")] {
        net.wall(one, other);
    }
    fill(&mut net, &names);
    let relayed = |net: &Net, name: &str| net.node(name).view.relayed;
    assert_eq!(names.map(|name| relayed(&net, name)), [1, 1, 1, 3]);
    for name in names {
        let view = &net.node(name).view;
        for (other, count) in &view.relayed_of {
            assert_eq!(*count, relayed(&net, other.as_str()), "{name} of {other}");
        }
    }
    failover(&mut net, &names[1..]);
    assert!(net.leads("c"));
}
