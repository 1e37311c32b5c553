//! The mapped address: passed on once others see its IP address, and distinguished from one that no packet comes through.

use super::carriers::{observed, room};
use super::*;
use crate::event::{MappingFault, MappingReport};
use crate::path::LinkPath;

const CLAIMED: &str = "203.0.113.5:9";

fn address(text: &str) -> SocketAddr {
    text.parse().expect("valid")
}

fn claim(net: &mut Net, name: &str, text: &str) {
    let change = MappingChange::Claimed(address(text));
    let _ = net.feed(&id(name), Input::Mapping(change));
}

fn fail(net: &mut Net, name: &str, fault: MappingFault) {
    let _ = net.feed(&id(name), Input::Mapping(MappingChange::Failed(fault)));
}

fn reports(net: &Net, name: &str) -> Vec<MappingReport> {
    let events = net.events(name).into_iter();
    let reports = events.filter_map(|event| match event {
        Event::PortMapping(report) => Some(report),
        _ => None,
    });
    reports.collect()
}

fn public(net: &Net, name: &str) -> Option<String> {
    net.node(name).public_address().map(|at| at.to_string())
}

/// Number of dials of an IP address by all members.
fn dials_of(net: &Net, ip: &str) -> usize {
    let addresses = net.dials.iter().flat_map(|(_, _, dial)| &dial.addresses);
    addresses.filter(|it| it.at.ip().to_string() == ip).count()
}

/// Walls stand between a on one side and c and d on the other, and b carries.
fn walled() -> Net {
    let mut net = room(&["a", "b", "c", "d"], &[("a", "c"), ("a", "d")]);
    name_addresses(&mut net);
    net
}

/// Lets c and d know addresses of the internet that are theirs: they name them to a.
fn name_addresses(net: &mut Net) {
    for name in ["c", "d"] {
        observed(net, "b", name, "198.51.100.3:4");
    }
}

/// A room with these walls, in which a's router claims to forward a port.
fn with_a_claim() -> Net {
    let mut net = walled();
    claim(&mut net, "a", CLAIMED);
    net
}

/// Notifies a that packets of a peer's link, which the peer dialled, come from somewhere.
fn came(net: &mut Net, peer: &str) {
    let input = Input::SeenAt {
        peer: id(peer),
        address: address("198.51.100.2:4"),
        came: true,
        through_turn: false,
    };
    let _ = net.feed(&id("a"), input);
}

#[test]
fn the_host_learns_a_claim_at_once_and_members_once_others_see_its_ip_address() {
    let mut net = with_a_claim();
    assert_eq!(
        reports(&net, "a"),
        [MappingReport::Mapped(address(CLAIMED))]
    );
    assert_eq!(public(&net, "a").as_deref(), Some(CLAIMED));
    net.run(ms(30_000));
    assert_eq!(
        dials_of(&net, "203.0.113.5"),
        0,
        "nothing speaks for it yet"
    );

    observed(&mut net, "b", "a", "203.0.113.5:4");
    net.run(ms(10_000));
    let dials = net.dials.iter().filter(|(_, from, _)| *from == id("c"));
    let mut dialled = dials.flat_map(|(_, _, dial)| &dial.addresses);
    assert!(dialled.any(|it| it.at == address(CLAIMED)), "c has it");
    assert_eq!(public(&net, "a").as_deref(), Some(CLAIMED));
    assert_eq!(reports(&net, "a").len(), 1);
}

#[test]
fn a_claim_that_members_cannot_use_is_found_out() {
    let mut net = with_a_claim();
    observed(&mut net, "b", "a", "203.0.113.5:4");
    net.run(ms(10_000));
    assert_eq!(reports(&net, "a").len(), 1, "too early");
    net.run(ms(20_000));
    let unreached = MappingReport::Failed(MappingFault::Unreached);
    assert_eq!(reports(&net, "a")[1..], [unreached]);
    assert_eq!(public(&net, "a").as_deref(), Some("203.0.113.5:4"));
    // Another port of the router may work.
    claim(&mut net, "a", "203.0.113.5:10");
    let again = MappingReport::Mapped(address("203.0.113.5:10"));
    assert_eq!(reports(&net, "a")[2..], [again]);
    net.run(ms(30_000));
    assert_eq!(reports(&net, "a")[3..], [unreached]);
}

#[test]
fn a_claim_through_which_a_member_came_stays() {
    let mut net = with_a_claim();
    came(&mut net, "b");
    observed(&mut net, "b", "a", CLAIMED);
    net.run(ms(60_000));
    assert_eq!(
        reports(&net, "a"),
        [MappingReport::Mapped(address(CLAIMED))]
    );
}

#[test]
fn a_claim_of_another_address_than_others_see_reaches_nobody() {
    let mut net = with_a_claim();
    observed(&mut net, "b", "a", "198.51.100.9:4");
    let elsewhere = MappingReport::Failed(MappingFault::Elsewhere);
    assert_eq!(reports(&net, "a")[1..], [elsewhere]);
    assert_eq!(public(&net, "a").as_deref(), Some("198.51.100.9:4"));
    net.run(ms(60_000));
    assert_eq!(dials_of(&net, "203.0.113.5"), 0);
    // The line was connected anew, and the router names the address of before.
    claim(&mut net, "a", "198.51.100.9:9");
    let right = MappingReport::Mapped(address("198.51.100.9:9"));
    assert_eq!(reports(&net, "a")[2..], [right]);
}

#[test]
fn a_port_that_ends_is_forgotten_and_each_reason_reported_once() {
    let mut net = with_a_claim();
    for _ in 0..3 {
        fail(&mut net, "a", MappingFault::NoAnswer);
    }
    fail(&mut net, "a", MappingFault::Refused);
    let failed = [MappingFault::NoAnswer, MappingFault::Refused].map(MappingReport::Failed);
    assert_eq!(reports(&net, "a")[1..], failed);
    assert_eq!(public(&net, "a"), None);
    observed(&mut net, "b", "a", "203.0.113.5:4");
    net.run(ms(10_000));
    let mut dialled = net.dials.iter().flat_map(|(_, _, dial)| &dial.addresses);
    assert!(!dialled.any(|it| it.at == address(CLAIMED)));
}

#[test]
fn a_claim_that_others_have_seen_already_is_found_out_too() {
    let mut net = walled();
    observed(&mut net, "b", "a", CLAIMED);
    net.run(ms(40_000));
    claim(&mut net, "a", CLAIMED);
    net.run(ms(60_000));
    let unreached = MappingReport::Failed(MappingFault::Unreached);
    assert_eq!(reports(&net, "a")[1..], [unreached]);
}

#[test]
fn one_member_that_does_not_come_through_proves_nothing() {
    let mut net = room(&["a", "b", "c"], &[("a", "c")]);
    observed(&mut net, "b", "c", "198.51.100.3:4");
    claim(&mut net, "a", CLAIMED);
    observed(&mut net, "b", "a", "203.0.113.5:4");
    net.run(ms(120_000));
    assert!(dials_of(&net, "203.0.113.5") > 0, "it has tried");
    let mapped = MappingReport::Mapped(address(CLAIMED));
    assert_eq!(reports(&net, "a"), [mapped]);
}

#[test]
fn members_that_hide_and_never_dial_prove_nothing() {
    let mut net = Net::new();
    for name in ["c", "d"] {
        net.wall("a", name);
    }
    net.start("a");
    net.wait("a leads", |net| net.leads("a"));
    net.start("b");
    net.enter("b", "a");
    net.config.relayed_only = true;
    for name in ["c", "d"] {
        net.start(name);
        net.enter(name, "b");
    }
    let path = |net: &Net, peer: &str| net.node("a").path_to(&id(peer));
    net.wait("b carries", |net| {
        ["c", "d"].iter().all(|name| path(net, name).is_some())
    });
    claim(&mut net, "a", CLAIMED);
    observed(&mut net, "b", "a", "203.0.113.5:4");
    net.run(ms(120_000));
    let mapped = MappingReport::Mapped(address(CLAIMED));
    assert_eq!(reports(&net, "a"), [mapped]);
}

#[test]
fn a_claim_of_what_one_member_alone_sees_reaches_nobody() {
    let mut net = room(&["a", "b", "c", "d", "e"], &[("a", "e")]);
    claim(&mut net, "a", CLAIMED);
    for name in ["c", "d"] {
        observed(&mut net, name, "a", "198.51.100.9:4");
    }
    // It agrees with the router.
    observed(&mut net, "b", "a", CLAIMED);
    net.run(ms(60_000));
    let elsewhere = MappingReport::Failed(MappingFault::Elsewhere);
    assert_eq!(reports(&net, "a")[1..], [elsewhere]);
    assert_eq!(public(&net, "a").as_deref(), Some("198.51.100.9:4"));
    let listed = net.node("a").addresses_for(&[address("192.0.2.1:5")]);
    assert!(!listed.contains(&address(CLAIMED)), "{listed:?}");
}

#[test]
fn a_member_for_which_a_packet_had_opened_the_router_proves_nothing() {
    let mut net = room(
        &["a", "b", "c", "d", "e"],
        &[("a", "c"), ("a", "d"), ("a", "e")],
    );
    name_addresses(&mut net);
    claim(&mut net, "a", CLAIMED);
    observed(&mut net, "b", "a", "203.0.113.5:4");
    for (one, other) in [("a", "e"), ("e", "a")] {
        net.walls.remove(&(id(one), id(other)));
    }
    let is_direct = |net: &Net| net.node("a").path_to(&id("e")) == Some(LinkPath::Direct);
    net.wait("a round links a and e", is_direct);
    came(&mut net, "e");
    observed(&mut net, "e", "a", CLAIMED);
    net.run(ms(60_000));
    let unreached = MappingReport::Failed(MappingFault::Unreached);
    assert_eq!(reports(&net, "a")[1..], [unreached]);
}

#[test]
fn a_port_of_a_router_that_the_room_has_left_counts_no_more() {
    let mut net = with_a_claim();
    let _ = net.feed(&id("a"), Input::Mapping(MappingChange::Withdrawn));
    assert_eq!(public(&net, "a"), None);
    let mapped = MappingReport::Mapped(address(CLAIMED));
    assert_eq!(reports(&net, "a"), [mapped], "the next answer is reported");
    fail(&mut net, "a", MappingFault::NoAnswer);
    let failed = MappingReport::Failed(MappingFault::NoAnswer);
    assert_eq!(reports(&net, "a")[1..], [failed]);
}
