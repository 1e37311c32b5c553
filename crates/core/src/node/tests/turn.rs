//! The address at a TURN server: a peer gets it when enough rounds of dials have failed, and not before.

use super::relays::{path, relayed_room};
use super::*;
use crate::address::is_global;
use crate::path::{LinkPath, Path};

const AT_SERVER: &str = "203.0.113.80:50001";

fn give(net: &mut Net, name: &str, address: Option<&str>) {
    let address = address.map(|text| text.parse().expect("valid"));
    let _ = net.feed(&id(name), Input::Turn(address));
}

/// The dials of a member at the address.
fn dials_by(net: &Net, name: &str) -> usize {
    let at: SocketAddr = AT_SERVER.parse().expect("valid");
    let by = net.dials.iter().filter(|(_, from, _)| *from == id(name));
    by.filter(|(_, _, dial)| dial.addresses.iter().any(|it| it.at == at))
        .count()
}

/// A room over a relay, where each pair knows other addresses of each other.
fn room() -> Net {
    relayed_room(&["a", "b"])
}

#[test]
fn a_peer_gets_the_address_after_rounds_that_failed() {
    for holder in ["a", "b"] {
        let other = if holder == "a" { "b" } else { "a" };
        let mut net = room();
        give(&mut net, holder, Some(AT_SERVER));
        net.run(ms(4_000));
        assert_eq!(dials_by(&net, other), 0, "{holder}: too early");
        net.run(ms(60_000));
        assert!(dials_by(&net, other) > 0, "{holder}");
        assert_eq!(dials_by(&net, holder), 0, "its own is not dialled");
    }
}

#[test]
fn an_address_that_comes_late_is_sent_in_the_next_round() {
    let mut net = room();
    net.run(ms(120_000));
    assert_eq!(dials_by(&net, "b"), 0);
    give(&mut net, "a", Some(AT_SERVER));
    net.run(ms(60_000));
    assert!(dials_by(&net, "b") > 0);
}

#[test]
fn a_lost_address_is_dialled_no_more() {
    let mut net = room();
    give(&mut net, "a", Some(AT_SERVER));
    net.wait("b dials it", |net| dials_by(net, "b") > 0);
    give(&mut net, "a", None);
    net.run(ms(1_000));
    // A lone address that never answers is dialled three times.
    assert_eq!(dials_by(&net, "b"), 1);
    net.run(ms(120_000));
    assert_eq!(dials_by(&net, "b"), 1);
}

#[test]
fn a_pair_that_punching_links_never_gets_it() {
    let mut net = room();
    give(&mut net, "a", Some(AT_SERVER));
    for (one, other) in [("a", "b"), ("b", "a")] {
        net.walls.remove(&(id(one), id(other)));
    }
    net.wait("a round links them", |net| {
        path(net, "a", "b") == Some(LinkPath::Direct)
    });
    net.run(ms(120_000));
    assert_eq!(dials_by(&net, "b"), 0);
}

#[test]
fn an_address_that_cannot_be_dialled_is_not_sent() {
    for bad in ["0.0.0.0:7", "224.0.0.1:7", "203.0.113.80:0"] {
        let mut net = room();
        give(&mut net, "a", Some(bad));
        net.run(ms(60_000));
        let member = net.node("a").membership().get(&id("b")).expect("linked");
        let sent = member.punching.sent.as_ref().expect("a list");
        let at: SocketAddr = bad.parse().expect("valid");
        assert!(!sent.contains(&at), "{bad}");
    }
}

#[test]
fn a_private_address_at_a_server_is_for_peers_of_the_same_network() {
    const PRIVATE: &str = "10.9.9.9:53";
    let (near, far) = ("10.0.0.7:1", "198.51.100.7:1");
    for (ours, theirs, is_sent) in [
        (PRIVATE, near, true),
        (PRIVATE, far, false),
        (AT_SERVER, near, true),
        (AT_SERVER, far, true),
    ] {
        let mut net = room();
        give(&mut net, "a", Some(ours));
        let theirs = theirs.parse().expect("valid");
        let mut sent = Vec::new();
        net.node("a").add_turn_address(&mut sent, &[theirs]);
        assert_eq!(!sent.is_empty(), is_sent, "{ours} to {theirs}");
    }
}

#[test]
fn members_that_are_seen_at_one_server_are_in_no_common_network() {
    let at_server = |port| SocketAddr::from(([203, 0, 113, 80], port));
    let mut net = room();
    let seen = RelayChange::Observed(AT_SERVER.parse().expect("valid"));
    net.change(0, &id("a"), seen);
    let sees_private = |net: &Net| {
        let mut addresses = net
            .node("a")
            .addresses_for(&[at_server(50_002)])
            .into_iter();
        addresses.any(|at| !is_global(at.ip()))
    };
    assert!(sees_private(&net), "an address of one network");
    give(&mut net, "a", Some(AT_SERVER));
    assert!(!sees_private(&net));
    assert_ne!(net.node("a").public_address(), Some(at_server(50_001)));
}

#[test]
fn a_link_in_place_of_another_changes_what_the_host_sees() {
    let mut net = Net::new();
    net.start("a");
    net.start("b");
    net.link("a", "b");
    for (through_turn, shown) in [(true, LinkPath::Turn), (false, LinkPath::Direct)] {
        let seen = Input::SeenAt {
            peer: id("b"),
            address: net.place("b").address,
            came: false,
            through_turn,
        };
        let _ = net.feed(&id("a"), seen);
        assert_eq!(path(&net, "a", "b"), Some(shown));
    }
}

#[test]
fn the_host_sees_that_a_link_leads_through_the_server() {
    for (through_turn, shown) in [(true, LinkPath::Turn), (false, LinkPath::Direct)] {
        let mut net = Net::new();
        net.start("a");
        net.start("b");
        let (its, now) = (net.place("b"), net.now);
        let link = LinkUp {
            peer: id("b"),
            incarnation: its.life.incarnation,
            key: its.life.key,
            addresses: vec![its.address],
            eligible: true,
            priority: 0,
            is_host: false,
            path: Path::Direct,
            carrier: None,
            through_turn,
            features: 0,
            ours: net.node("a").side(now),
            theirs: net.node("b").side(now),
        };
        let _ = net.feed(&id("a"), Input::LinkUp(Box::new(link)));
        assert_eq!(path(&net, "a", "b"), Some(shown));
    }
}
