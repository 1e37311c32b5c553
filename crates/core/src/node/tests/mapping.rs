//! The mapped address: passed on once others see its IP address, and distinguished from one that no packet comes through.

use super::carriers::{observed, room};
use super::*;
use crate::event::{MappingFault, MappingReport};

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

/// A wall stands between a and c, and b carries. a's router claims to forward a port.
fn with_a_claim() -> Net {
    let mut net = room(&["a", "b", "c"], &[("a", "c")]);
    claim(&mut net, "a", CLAIMED);
    net
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
fn a_claim_that_a_member_cannot_use_is_found_out() {
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
    let (peer, came) = (id("b"), true);
    let _ = net.feed(
        &id("a"),
        Input::SeenAt {
            peer,
            address: address("198.51.100.2:4"),
            came,
        },
    );
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
