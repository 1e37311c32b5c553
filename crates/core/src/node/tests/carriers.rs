//! Links that members carry, and the search for direct ones.

use super::*;
use crate::attempts::MAX_UNANSWERED;
use crate::election::raft::wire::Side;
use crate::election::record::Epoch;
use crate::path::{CarrierKind, LinkPath, Path};
use crate::virtual_address::virtual_id;
use crate::wire::MAX_EXCHANGED_ADDRESSES;

fn path(net: &Net, name: &str, peer: &str) -> Option<LinkPath> {
    net.node(name).path_to(&id(peer))
}

fn through(net: &Net, name: &str, peer: &str) -> Option<PeerId> {
    path(net, name, peer)?.carrier().cloned()
}

/// The changes of paths that a host was notified of.
fn path_changes(net: &Net, name: &str) -> Vec<(PeerId, LinkPath, LinkPath)> {
    let events = net.events(name).into_iter();
    let changes = events.filter_map(|event| match event {
        Event::PathChanged { peer, old, new } => Some((peer, old, new)),
        _ => None,
    });
    changes.collect()
}

fn is_settled_but(net: &Net, walls: &[(&str, &str)]) -> bool {
    net.is_settled()
        && walls.iter().all(|(one, other)| {
            let carried = |a: &str, b: &str| through(net, a, b).is_some();
            carried(one, other) && carried(other, one)
        })
}

/// The first leads; walls stand between the pairs.
pub(super) fn room(names: &[&str], walls: &[(&str, &str)]) -> Net {
    let mut net = Net::new();
    for (one, other) in walls {
        net.wall(one, other);
    }
    net.start(names[0]);
    net.wait("the first leads", |net| net.leads(names[0]));
    // The second is the one that all others reach.
    for name in &names[1..] {
        net.start(name);
        let entry = match net.is_walled(&id(name), &id(names[0])) {
            true => names[1],
            false => names[0],
        };
        net.enter(name, entry);
    }
    net.wait("all are linked", |net| is_settled_but(net, walls));
    net.settle();
    net
}

#[test]
fn a_member_carries_where_the_leader_is_one_of_the_two() {
    let walls = [("a", "c")];
    let net = room(&["a", "b", "c"], &walls);
    assert!(net.leads("a"));
    for (one, other) in [("a", "c"), ("c", "a")] {
        assert_eq!(path(&net, one, other), Some(LinkPath::Member(id("b"))));
        assert!(!net.node(one).view.voters.contains_key(&id(other)));
    }
    assert_eq!(path(&net, "a", "b"), Some(LinkPath::Direct));
    assert_eq!(path(&net, "a", "nobody"), None);
}

#[test]
fn a_member_carries_what_the_leader_cannot() {
    let walls = [("a", "c"), ("c", "d")];
    let net = room(&["a", "b", "c", "d"], &walls);
    // The leader has no direct link with c.
    for (one, other) in [("c", "d"), ("d", "c")] {
        assert_eq!(through(&net, one, other), Some(id("b")), "{one}");
    }
}

/// Its questions to the leader do not travel over a member.
#[test]
fn a_contact_that_reaches_its_leader_over_a_member_alone_decides_itself() {
    let mut net = room(&["a", "b", "c"], &[("a", "c")]);
    assert_eq!(net.node("c").leader(), Some(&id("a")));
    net.start("d");
    net.enter("d", "c");
    net.wait("all know the newcomer", |net| {
        ["a", "b", "c"].iter().all(|name| net.has(name, "d"))
    });
}

/// One end has ended the session, the other one has lost the link: the room's word for the first is over.
#[test]
fn a_pair_that_members_alone_carry_finds_a_link_again_after_one_end_has_ended_its_session() {
    for ended in ["c", "d"] {
        let walls = [("a", "c"), ("a", "d"), ("c", "d")];
        let mut net = room(&["a", "b", "c", "d"], &walls);
        let lost = if ended == "c" { "d" } else { "c" };
        net.unlink("c", "d", LinkEnd::Silent);
        let (peer, why) = (id(lost), LeftReason::Lost);
        let _ = net.feed(&id(ended), Input::SessionOver { peer, why });
        assert!(!net.has("c", "d") && !net.has("d", "c"));
        net.wait("they are linked again", |net| {
            net.has("c", "d") && net.has("d", "c")
        });
        assert_eq!(net.times(ended, &left(lost, LeftReason::Lost)), 1);
    }
}

/// The other end may forget this one at any moment.
#[test]
fn an_end_that_learns_that_its_session_is_over_goes_on_dialling() {
    let mut net = room(&["a", "b", "c"], &[]);
    net.unlink("b", "c", LinkEnd::Silent);
    for (me, peer) in [("b", "c"), ("c", "b")] {
        let (peer, why) = (id(peer), LeftReason::Lost);
        let _ = net.feed(&id(me), Input::SessionOver { peer, why });
    }
    net.wait("they are linked again", |net| {
        net.has("b", "c") && net.has("c", "b")
    });
}

#[test]
fn another_member_carries_on_when_the_carrier_goes_and_the_hosts_notice_the_path_alone() {
    let walls = [("a", "d")];
    let mut net = room(&["a", "b", "c", "d"], &walls);
    let first = through(&net, "a", "d").expect("carried");
    let other = match first == id("b") {
        true => "c",
        false => "b",
    };
    net.order(first.as_str(), Command::Leave);
    net.wait("the other carries", |net| {
        through(net, "a", "d") == Some(id(other)) && through(net, "d", "a") == Some(id(other))
    });
    net.run(ms(5000));
    for (one, peer) in [("a", "d"), ("d", "a")] {
        assert_eq!(net.times(one, &Event::Reconnecting(id(peer))), 0);
        assert_eq!(net.times(one, &joined(peer)), 0);
        let changes = path_changes(&net, one);
        let (_, _, new) = changes.last().expect("one change");
        assert_eq!(*new, LinkPath::Member(id(other)));
        for (n, (_, old, new)) in changes.iter().enumerate() {
            assert_ne!(old, new);
            let next = changes.get(n + 1).map(|(_, old, _)| old);
            assert!(next.is_none_or(|next| next == new), "{changes:?}");
        }
    }
}

#[test]
fn a_carrier_that_loses_its_link_says_so_and_another_one_carries() {
    let walls = [("a", "d")];
    let mut net = room(&["a", "b", "c", "d"], &walls);
    let carrier = through(&net, "a", "d").expect("carried");
    let other = match carrier == id("b") {
        true => id("c"),
        false => id("b"),
    };
    net.wall(carrier.as_str(), "d");
    net.unlink(carrier.as_str(), "d", LinkEnd::Silent);
    net.wait("the other carries", |net| {
        through(net, "a", "d").as_ref() == Some(&other)
    });
    net.run(ms(1000));
    assert_eq!(net.times("a", &Event::Reconnecting(id("d"))), 0);
}

#[test]
fn a_carrier_that_drops_one_direction_is_replaced() {
    let walls = [("a", "d")];
    let mut net = room(&["a", "b", "c", "d"], &walls);
    let carrier = through(&net, "a", "d").expect("carried");
    net.drops.insert((carrier.clone(), id("a"), id("d")));
    let other_carries = |net: &Net| through(net, "a", "d").is_some_and(|now| now != carrier);
    net.wait("another one carries", |net| {
        other_carries(net) && net.is_settled()
    });
    net.run(ms(10_000));
    assert!(other_carries(&net) && net.has("a", "d") && net.has("d", "a"));
}

#[test]
fn a_new_leader_takes_over_the_links_that_it_can_carry() {
    let walls = [("c", "d")];
    let mut net = room(&["a", "b", "c", "d"], &walls);
    assert_eq!(path(&net, "c", "d"), Some(LinkPath::Leader(id("a"))));
    net.order("a", Command::TransferLeadership(id("b")));
    net.wait("b leads and carries", |net| {
        let leader = Some(LinkPath::Leader(id("b")));
        net.leads("b") && path(net, "c", "d") == leader && path(net, "d", "c") == leader
    });
    net.run(ms(1000));
    for name in ["c", "d"] {
        let losses = net.events(name).into_iter();
        assert!(
            !losses
                .into_iter()
                .any(|event| matches!(event, Event::Reconnecting(_)))
        );
    }
}

#[test]
fn a_member_of_an_earlier_version_is_linked_through_the_leader_alone() {
    let walls = [("c", "d")];
    let mut net = Net::new();
    net.wall("c", "d");
    net.old.insert(id("d"));
    net.start("a");
    net.wait("a leads", |net| net.leads("a"));
    for name in ["b", "c", "d"] {
        net.start(name);
        net.enter(name, "a");
    }
    net.wait("all are linked", |net| is_settled_but(net, &walls));
    net.settle();
    assert_eq!(through(&net, "c", "d"), Some(id("a")));
    net.order("a", Command::TransferLeadership(id("b")));
    net.wait("b carries", |net| through(net, "c", "d") == Some(id("b")));
    for name in ["a", "b", "c"] {
        let sent = net.messages_from(name, "d");
        let is_new = |message: &&Message| {
            matches!(
                message,
                Message::Observed { .. }
                    | Message::Addresses(_)
                    | Message::Punch { .. }
                    | Message::CannotCarry { .. }
            )
        };
        assert_eq!(sent.iter().find(is_new), None, "{name}");
    }
}

#[test]
fn both_ends_dial_at_the_same_time_when_a_link_is_carried() {
    let walls = [("b", "c")];
    let mut net = room(&["a", "b", "c"], &walls);
    let dials = |net: &Net, name: &str, peer: &str| -> Vec<Time> {
        let all = net.dials.iter();
        let its = all.filter(|(_, from, dial)| *from == id(name) && dial.peer == id(peer));
        its.map(|(at, ..)| *at).collect()
    };
    net.dials.clear();
    net.run(ms(40_000));
    let (one, other) = (dials(&net, "b", "c"), dials(&net, "c", "b"));
    assert!(
        one.len() >= 2 && one.len() == other.len(),
        "{one:?} {other:?}"
    );
    for (one, other) in one.iter().zip(&other) {
        assert!(
            one.since(*other).max(other.since(*one)) <= DELAY,
            "{one:?} {other:?}"
        );
    }
    assert_eq!(path_changes(&net, "b"), []);
    net.walls.clear();
    net.wait("a direct link", |net| {
        path(net, "b", "c") == Some(LinkPath::Direct)
            && path(net, "c", "b") == Some(LinkPath::Direct)
    });
    let change = (id("c"), LinkPath::Leader(id("a")), LinkPath::Direct);
    assert_eq!(path_changes(&net, "b"), [change]);
}

/// Over a direct link the same Hello silences the room: Hold binds members that have no leader (C4.5).
#[test]
fn a_hello_over_a_carrying_member_binds_no_node_to_a_leader_that_it_names() {
    for path in [Path::Direct, Path::Carried(CarrierKind::Member)] {
        let mut net = Net::new();
        net.start("a");
        net.start("liar");
        let epoch = Epoch {
            override_seq: 1,
            assigner: Some(id("liar")),
            assigner_key: Some(net.place("liar").life.key),
        };
        let lie = Side {
            since: 0,
            hold_binds: true,
            record: Record {
                leader_key: None,
                stamp: Stamp { epoch, term: 1 },
                leader: Some(id("nobody")),
                assigned: true,
            },
            live: None,
            lone: false,
        };
        let its = net.place("liar");
        let link = LinkUp {
            peer: id("liar"),
            incarnation: its.life.incarnation,
            key: its.life.key,
            addresses: Vec::new(),
            eligible: true,
            priority: 0,
            is_host: false,
            path,
            carrier: None,
            through_turn: false,
            features: 0,
            ours: net.node("a").side(net.now),
            theirs: Opaque::of(&lie),
        };
        let _ = net.feed(&id("a"), Input::LinkUp(Box::new(link)));
        assert_eq!(net.node("a").record().assigned, path.is_direct());
        net.run(ms(10_000));
        assert_eq!(net.leads("a"), !path.is_direct(), "{path:?}");
    }
}

/// Of two crossing dials one link is closed, with all that is under way on it.
#[test]
fn rules_and_introductions_are_sent_again_over_a_link_that_replaces_another() {
    let mut net = room(&["a", "b", "c"], &[("b", "c")]);
    let seen = Input::SeenAt {
        peer: id("b"),
        address: "203.0.113.7:7000".parse().expect("valid"),
        came: true,
        through_turn: false,
    };
    net.feed(&id("a"), seen).expect("no command");
    let kinds = |net: &mut Net, name: &str, peer: &str| {
        let now = net.now;
        let node = &mut net.place_mut(name).node;
        let input = Input::Relinked { peer: id(peer) };
        node.handle(now, input).expect("no command");
        let outputs = std::iter::from_fn(|| node.poll_output());
        let kind = |output| match output {
            Output::Transmit { envelope, to, .. } if to == id(peer) => match envelope.message {
                Message::PeerList(_) => "members",
                Message::Standing { .. } => "standing",
                Message::Heartbeat(_) => "heartbeat",
                Message::Observed { .. } => "observed",
                Message::Addresses(_) => "addresses",
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        outputs.map(kind).collect::<BTreeSet<_>>()
    };
    let all = ["heartbeat", "members", "standing"];
    let with = |more| all.into_iter().chain([more]).collect();
    assert_eq!(kinds(&mut net, "a", "b"), with("observed"));
    assert_eq!(kinds(&mut net, "b", "c"), BTreeSet::from(["addresses"]));
    assert_eq!(kinds(&mut net, "c", "nobody"), BTreeSet::new());
}

#[test]
fn a_peer_cannot_make_another_dial_as_often_as_it_likes() {
    let walls = [("b", "c")];
    let mut net = room(&["a", "b", "c"], &walls);
    net.run(ms(60_000));
    net.dials.clear();
    let incarnation = net.place("b").life.incarnation;
    for n in 0..600 {
        for message in [
            Message::Addresses(vec![
                format!("192.0.2.{}:7", n % 250).parse().expect("valid"),
            ]),
            Message::Punch {
                round: n,
                is_answer: false,
            },
            Message::Punch {
                round: n,
                is_answer: true,
            },
        ] {
            let envelope = Envelope {
                incarnation,
                message,
            };
            let from = id("b");
            let _ = net.feed(&id("c"), Input::Message { from, envelope });
        }
        net.run(ms(100));
    }
    let its = net.dials.iter().filter(|(_, from, _)| *from == id("c"));
    let dials = its.count();
    assert!((1..=41).contains(&dials), "{dials} in 60 s");
    assert!(net.has("c", "b"), "a peer may have many addresses");
}

#[test]
fn a_list_of_addresses_that_is_too_long_ends_the_link() {
    let walls = [("b", "c")];
    let mut net = room(&["a", "b", "c"], &walls);
    let incarnation = net.place("b").life.incarnation;
    let address = "192.0.2.1:7".parse().expect("valid");
    let send = |net: &mut Net, count| {
        let envelope = Envelope {
            incarnation,
            message: Message::Addresses(vec![address; count]),
        };
        let from = id("b");
        let _ = net.feed(&id("c"), Input::Message { from, envelope });
    };
    send(&mut net, MAX_EXCHANGED_ADDRESSES);
    assert!(net.has("c", "b"));
    send(&mut net, MAX_EXCHANGED_ADDRESSES + 1);
    assert!(!net.has("c", "b"));
}

#[test]
fn a_member_speaks_only_for_itself_when_it_carries_nothing() {
    let walls = [("a", "d")];
    let mut net = room(&["a", "b", "c", "d"], &walls);
    let carrier = through(&net, "a", "d").expect("carried");
    let other = match carrier == id("b") {
        true => "c",
        false => "b",
    };
    let target = virtual_id(net.place("d").life.key);
    let envelope = Envelope {
        incarnation: net.place(other).life.incarnation,
        message: Message::CannotCarry { target },
    };
    let from = id(other);
    let _ = net.feed(&id("a"), Input::Message { from, envelope });
    net.run(ms(1000));
    assert_eq!(through(&net, "a", "d"), Some(carrier));
    assert!(net.has("a", "d"));
}

pub(super) fn observed(net: &mut Net, by: &str, at: &str, address: &str) {
    let envelope = Envelope {
        incarnation: net.place(by).life.incarnation,
        message: Message::Observed {
            address: address.parse().expect("valid"),
        },
    };
    let from = id(by);
    let _ = net.feed(&id(at), Input::Message { from, envelope });
}

#[test]
fn the_public_address_is_the_one_that_most_members_see() {
    let mut net = room(&["a", "b", "c", "d"], &[]);
    let public = |net: &Net| net.node("a").public_address().map(|at| at.to_string());
    assert_eq!(public(&net), None, "the address of a private network");
    net.run(ms(60_000));
    observed(&mut net, "b", "a", "198.51.100.9:4");
    assert_eq!(public(&net).as_deref(), Some("198.51.100.9:4"));
    for name in ["c", "d"] {
        observed(&mut net, name, "a", "203.0.113.1:5");
    }
    assert_eq!(public(&net).as_deref(), Some("203.0.113.1:5"));
    observed(&mut net, "c", "a", "198.51.100.9:4");
    assert_eq!(public(&net).as_deref(), Some("198.51.100.9:4"));
    // At most one change a minute, and no address that no packet comes from.
    observed(&mut net, "c", "a", "203.0.113.1:5");
    assert_eq!(public(&net).as_deref(), Some("198.51.100.9:4"));
    net.run(ms(60_000));
    observed(&mut net, "b", "a", "0.0.0.0:4");
    observed(&mut net, "b", "a", "224.0.0.1:4");
    assert_eq!(public(&net).as_deref(), Some("198.51.100.9:4"));
    observed(&mut net, "c", "a", "203.0.113.1:5");
    assert_eq!(public(&net).as_deref(), Some("203.0.113.1:5"));
}

/// Number of dials of an IP address by each member but `liar`.
fn dials_of(net: &Net, victim: &str, liar: &str) -> BTreeMap<PeerId, usize> {
    let mut counts = BTreeMap::new();
    for (_, from, dial) in net.dials.iter().filter(|(_, from, _)| *from != id(liar)) {
        let its = dial.addresses.iter();
        let its = its.filter(|address| address.at.ip().to_string() == victim);
        *counts.entry(from.clone()).or_default() += its.count();
    }
    counts
}

#[test]
fn a_liar_makes_each_member_dial_a_third_party_a_few_times() {
    let victim = "203.0.113.77";
    let names = ["a", "b", "c", "d"];
    let mut net = room(&names, &[("b", "d"), ("c", "d")]);
    let incarnation = net.place("d").life.incarnation;
    net.dials.clear();
    for n in 0..300_u16 {
        let address = |port| format!("{victim}:{port}").parse().expect("valid");
        let made_up = PeerEntry {
            id: id(&format!("made-up-{n}")),
            key: Fingerprint([(n % 200) as u8; 32]),
            addresses: vec![address(n + 1), address(n + 1000)],
        };
        for (to, message) in [
            ("a", Message::PeerList(vec![made_up])),
            ("b", Message::Addresses(vec![address(n + 2)])),
            ("c", Message::Addresses(vec![address(n + 3)])),
        ] {
            let envelope = Envelope {
                incarnation,
                message,
            };
            let from = id("d");
            let _ = net.feed(&id(to), Input::Message { from, envelope });
        }
        net.run(ms(1000));
    }
    let dials = dials_of(&net, victim, "d");
    assert_eq!(
        dials.values().copied().max(),
        Some(MAX_UNANSWERED as usize),
        "{dials:?}"
    );
}

#[test]
fn a_liar_does_not_use_up_the_dials_of_an_address_that_its_owner_states() {
    let walls = [("b", "c")];
    let mut net = room(&["a", "b", "c", "e"], &walls);
    let real = "203.0.113.80:7";
    let say = |net: &mut Net, from: &str, message: Message| {
        let incarnation = net.place(from).life.incarnation;
        let envelope = Envelope {
            incarnation,
            message,
        };
        let from = id(from);
        let _ = net.feed(&id("c"), Input::Message { from, envelope });
    };
    for n in 0..60 {
        let made_up = PeerEntry {
            id: id(&format!("made-up-{n}")),
            key: Fingerprint([100 + n; 32]),
            addresses: vec!["203.0.113.80:9".parse().expect("valid")],
        };
        say(&mut net, "e", Message::PeerList(vec![made_up]));
        net.run(ms(1000));
    }
    net.dials.clear();
    let entry = PeerEntry {
        id: id("b"),
        key: net.place("b").life.key,
        addresses: vec![real.parse().expect("valid")],
    };
    say(&mut net, "a", Message::PeerList(vec![entry]));
    say(
        &mut net,
        "b",
        Message::Addresses(vec![real.parse().expect("valid")]),
    );
    net.run(ms(200_000));
    let to_real = net.dials.iter().filter(|(_, from, dial)| {
        let its = dial.addresses.iter();
        *from == id("c") && its.clone().any(|address| address.at.to_string() == real)
    });
    assert!(to_real.count() > MAX_UNANSWERED as usize);
}

#[test]
fn a_leader_is_gone_for_a_member_that_only_others_reach_it_for_as_soon_as_it_leaves() {
    let walls = [("a", "c")];
    let mut net = room(&["a", "b", "c"], &walls);
    assert!(net.leads("a") && through(&net, "c", "a").is_some());
    let vouches = |happening: &Happening| {
        let is_beat = |envelope: &Envelope| matches!(envelope.message, Message::Heartbeat(_));
        matches!(happening, Happening::Message { from, to, envelope, .. }
            if (from, to) == (&id("b"), &id("c")) && is_beat(envelope))
    };
    net.wait("b vouches", |net| net.queue.values().any(vouches));
    let late = net.queue.values().find(|happening| vouches(happening));
    let Some(Happening::Message { envelope, .. }) = late else {
        unreachable!("just seen");
    };
    let envelope = Envelope::clone(envelope);
    net.order("a", Command::Leave);
    let left = |net: &Net| {
        let mut events = net.events("c").into_iter();
        events.any(|event| matches!(event, Event::Left(left) if left.peer == id("a")))
    };
    net.wait("a's leave notice arrives", left);
    assert_ne!(net.node("c").leader(), Some(&id("a")));
    // b has sent this before it learned of the leave.
    let from = id("b");
    let _ = net.feed(&id("c"), Input::Message { from, envelope });
    assert_ne!(net.node("c").leader(), Some(&id("a")));
}

#[test]
fn a_member_that_comes_back_and_leads_is_shown_where_only_others_reach_it() {
    let walls = [("a", "c")];
    let mut net = room(&["a", "b", "c"], &walls);
    net.order("a", Command::Leave);
    net.wait("its successor leads", |net| net.leads("b"));
    net.start("a");
    net.enter("a", "b");
    net.wait("all are linked", |net| is_settled_but(net, &walls));
    net.order("b", Command::TransferLeadership(id("a")));
    let took = net.wait("c shows it", |net| net.node("c").leader() == Some(&id("a")));
    assert!(took < ms(3000), "{took:?}");
}
