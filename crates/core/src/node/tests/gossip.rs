//! Rooms whose leader the gossip strategy elects: the windows are a tenth of the defaults.

use super::*;
use crate::election::LeaderReason::{self, Elected, Found, Left, Lost, Resigned};
use crate::election::gossip::{Claimed, Windows};
use crate::wire::{Ban, RoomPolicy, Strategy};

const ALIVE: Duration = ms(1000);
const ELECTION: Duration = ms(500);
const SAMPLE: Duration = ms(100);

fn windows() -> Windows {
    Windows {
        startup_grace: ms(1500),
        sample_interval: SAMPLE,
        alive_threshold: ALIVE,
        election_duration: ELECTION,
    }
}

fn gossiping(strict_lowest: bool) -> Net {
    let mut net = Net::new();
    net.config.election.policy = RoomPolicy {
        strategy: Strategy::Gossip { strict_lowest },
        ..RoomPolicy::default()
    };
    net.config.election.windows = windows();
    net
}

/// A settled room in which the first leads.
fn room(names: &[&str]) -> Net {
    let mut net = gossiping(true);
    net.fill(names);
    net
}

fn reported(net: &Net, name: &str) -> Vec<(String, LeaderReason)> {
    let changes = net.leader_changes(name).into_iter();
    let named = |leader: Option<PeerId>| leader.map_or(String::new(), |leader| leader.to_string());
    changes
        .map(|(leader, reason)| (named(leader), reason))
        .collect()
}

fn shows(net: &Net, name: &str, leader: &str) -> bool {
    net.node(name).leader().map_or("", PeerId::as_str) == leader
}

fn listed(changes: &[(&str, LeaderReason)]) -> Vec<(String, LeaderReason)> {
    changes
        .iter()
        .map(|(leader, reason)| ((*leader).to_owned(), *reason))
        .collect()
}

#[test]
fn a_lone_node_leads_after_one_sample_and_one_election() {
    let mut net = gossiping(false);
    net.start("a");
    let took = net.wait("it leads", |net| net.leads("a"));
    assert_eq!(took, SAMPLE + ELECTION);
    assert_eq!(reported(&net, "a"), listed(&[("a", Elected)]));
    assert_eq!(net.node("a").record().stamp, Stamp::default());
}

#[test]
fn a_newcomer_receives_the_leader_with_its_first_link() {
    let mut net = gossiping(false);
    net.start("b");
    net.wait("it leads", |net| net.leads("b"));
    net.start("a");
    net.ask("a", "b");
    let took = net.wait("the newcomer knows", |net| shows(net, "a", "b"));
    assert!(took <= DELAY * 4, "{took:?}");
    net.run(ALIVE * 5);
    assert_eq!(
        reported(&net, "a"),
        listed(&[("b", Found)]),
        "though a is lower"
    );
}

#[test]
fn the_lowest_follows_a_leader_that_is_lost() {
    let mut net = room(&["m", "c", "a", "b"]);
    net.kill("m", false);
    let took = net.wait("the lowest leads", |net| {
        ["a", "b", "c"].iter().all(|name| shows(net, name, "a"))
    });
    let longest = net.config.election.heartbeat_timeout + ALIVE * 2 + ELECTION + DELAY * 3;
    assert!(took <= longest, "{took:?}");
    for name in ["b", "c"] {
        assert_eq!(reported(&net, name), listed(&[("", Lost), ("a", Elected)]));
    }
}

#[test]
fn a_leave_ends_the_shown_leader_and_no_window() {
    let mut net = room(&["a", "b", "c"]);
    net.order("a", Command::Leave);
    let took = net.wait("b leads", |net| {
        shows(net, "b", "b") && shows(net, "c", "b")
    });
    assert!(took > ELECTION, "an election takes its time: {took:?}");
    assert_eq!(reported(&net, "c"), listed(&[("", Left), ("b", Elected)]));
}

#[test]
fn a_yielding_leader_is_no_longer_shown_and_another_leads() {
    let mut net = room(&["a", "b", "c"]);
    net.order("a", Command::YieldLeadership);
    assert!(!net.leads("a"));
    let reported_after = net.wait("no leader is shown", |net| {
        shows(net, "b", "") && shows(net, "c", "")
    });
    assert!(reported_after <= net.config.heartbeat_interval + DELAY);
    net.wait("another leads", |net| shows(net, "a", "b"));
    net.run(ALIVE * 10);
    assert_eq!(
        reported(&net, "a"),
        listed(&[("", Resigned), ("b", Elected)])
    );
    assert_eq!(
        reported(&net, "c"),
        listed(&[("", Resigned), ("b", Elected)])
    );
    assert_eq!(
        net.try_order("a", Command::YieldLeadership),
        Err(CommandError::Election(ElectionError::NotLeader))
    );
}

#[test]
fn a_lone_leader_that_yields_leads_again() {
    let mut net = gossiping(false);
    net.start("a");
    net.wait("it leads", |net| net.leads("a"));
    net.order("a", Command::YieldLeadership);
    let took = net.wait("it leads again", |net| net.leads("a"));
    assert!(
        took >= ALIVE * 6 && took <= ALIVE * 7 + ELECTION,
        "{took:?}"
    );
}

#[test]
fn a_stranger_enters_a_room_without_a_leader() {
    let mut net = room(&["a", "b", "c"]);
    net.order("a", Command::YieldLeadership);
    net.start("d");
    let ticket = net.ask("d", "b");
    net.wait("it is in", |net| net.has("d", "b"));
    assert_eq!(net.verdict("b", ticket), Some(Verdict::Accepted));
}

#[test]
fn two_leaders_that_are_linked_are_one_a_delay_later() {
    let mut net = gossiping(false);
    for name in ["a", "b"] {
        net.start(name);
        net.wait("it leads", |net| net.leads(name));
    }
    net.link("a", "b");
    net.run(DELAY * 2);
    assert!(net.leads("a") && shows(&net, "b", "a"));
    assert_eq!(reported(&net, "a"), listed(&[("a", Elected)]));
    assert_eq!(reported(&net, "b"), listed(&[("b", Elected), ("a", Found)]));
}

#[test]
fn requests_that_need_votes_are_refused_and_change_nothing() {
    let mut net = room(&["a", "b"]);
    let before = net.node("a").record().clone();
    for command in [
        Command::SetLeader(id("b")),
        Command::TransferLeadership(id("b")),
        Command::SetPriority(7),
    ] {
        let refused = CommandError::Election(ElectionError::NotSupported { strategy: "gossip" });
        assert_eq!(net.try_order("a", command), Err(refused));
    }
    net.run(ALIVE * 3);
    assert_eq!(*net.node("a").record(), before);
    assert_eq!(net.node("a").standing_of_myself(), (true, 0));
    assert!(reported(&net, "b").is_empty());
}

#[test]
fn f18_a_node_that_may_not_propose_itself_never_leads() {
    let mut net = gossiping(true);
    net.config.election.auto_election = false;
    net.start("a");
    net.run(ALIVE * 10);
    assert!(shows(&net, "a", ""));
    net.order("a", Command::EnableAutoElection(true));
    net.wait("it leads", |net| net.leads("a"));
    // A leader keeps leading.
    net.order("a", Command::EnableAutoElection(false));
    net.run(ALIVE * 10);
    assert!(net.leads("a"));
}

#[test]
fn an_observer_neither_leads_nor_hides_the_leader() {
    let mut net = room(&["a", "b", "c"]);
    net.order("a", Command::SetEligible(false));
    net.wait("b leads", |net| {
        ["a", "b", "c"].iter().all(|name| shows(net, name, "b"))
    });
    assert_eq!(reported(&net, "a"), listed(&[("", Left), ("b", Elected)]));
    assert_eq!(reported(&net, "c"), listed(&[("", Left), ("b", Elected)]));
    // It has the lowest id, but no member accepts its claim.
    let claim = Claimed {
        sequence: 1000,
        declares: true,
    };
    net.forge("a", "c", Message::Election(Opaque::of(&claim)));
    net.run(ALIVE * 5);
    assert!(shows(&net, "c", "b"));
}

#[test]
fn a_part_that_cannot_be_decoded_costs_the_link() {
    let heartbeat = Heartbeat {
        seq: 1000,
        echo: None,
        host_silent_ms: 0,
        room_time_us: None,
        pulse: Opaque::default(),
    };
    let wrong = [
        Message::Election(Opaque::from(&[0xff; 20][..])),
        Message::Heartbeat(heartbeat),
    ];
    for message in wrong {
        for mut net in [room(&["a", "b"]), Net::room(&["a", "b"])] {
            net.forge("b", "a", message.clone());
            assert!(!net.has("a", "b"));
            let closes = &net.place("a").closes;
            assert!(matches!(closes[..], [(_, LinkEnd::Violation(_))]));
        }
    }
}

#[test]
fn members_of_other_strategies_are_refused() {
    let strategies = [
        Strategy::Raft,
        Strategy::Gossip {
            strict_lowest: false,
        },
        Strategy::Gossip {
            strict_lowest: true,
        },
    ];
    for (number, ours) in strategies.iter().enumerate() {
        for theirs in &strategies[number + 1..] {
            let mut net = gossiping(false);
            net.config.election.policy.strategy = *ours;
            net.start("a");
            net.config.election.policy.strategy = *theirs;
            net.start("b");
            let refusal = AdmissionRefusal::Policy {
                field: "strategy",
                ours: format!("{ours:?}"),
                theirs: format!("{theirs:?}"),
            };
            assert_eq!(net.check("b", "a"), Err(refusal));
        }
    }
}

#[test]
fn a_leaders_message_may_come_before_its_declaration() {
    let mut net = room(&["c", "m", "b"]);
    let now = net.now;
    let stamped = |name: &str| Opaque::of(&Some(id(name)));
    let node = &mut net.place_mut("m").node;
    assert!(node.accept_leader_message(now, &id("c"), &stamped("c")));
    // The lower of two leaders stays.
    assert!(node.accept_leader_message(now, &id("b"), &stamped("b")));
    assert!(
        !node.accept_leader_message(now, &id("z"), &stamped("z")),
        "no member"
    );
    let node = &mut net.place_mut("b").node;
    assert!(
        !node.accept_leader_message(now, &id("m"), &stamped("m")),
        "c lives"
    );
    net.order("c", Command::YieldLeadership);
    net.run(net.config.heartbeat_interval + DELAY);
    let now = net.now;
    let node = &mut net.place_mut("b").node;
    assert!(node.accept_leader_message(now, &id("m"), &stamped("m")));
    assert!(net.has("b", "m"));
    let node = &mut net.place_mut("b").node;
    assert!(!node.accept_leader_message(now, &id("m"), &Opaque::default()));
    assert!(!net.has("b", "m"), "that is no token");
}

#[test]
fn the_next_incarnation_of_a_leader_counts_at_any_clock() {
    let mut net = room(&["a", "b", "c"]);
    net.kill("a", true);
    net.wait("b leads", |net| shows(net, "c", "b"));
    // Long before the messages of the first incarnation expire.
    let clock_went_back = life(77, 1);
    net.start_as("a", clock_went_back);
    for name in ["b", "c"] {
        let _ = net.feed(
            &id(name),
            Input::SessionOver {
                peer: id("a"),
                why: LeftReason::Lost,
            },
        );
    }
    net.enter("a", "b");
    net.kill("b", true);
    net.wait("a leads", |net| shows(net, "c", "a"));
}

#[test]
fn other_windows_hold_from_the_next_one_on() {
    let mut net = room(&["a", "b"]);
    let longer = Windows {
        alive_threshold: ALIVE * 4,
        ..windows()
    };
    net.order("b", Command::SetWindows(longer));
    net.run(ALIVE * 2);
    let _ = reported(&net, "b");
    net.kill("a", true);
    let took = net.wait("b leads", |net| net.leads("b"));
    assert!(took > ALIVE * 4, "{took:?}");
}

#[test]
fn f18_a_fixed_host_leads_and_does_not_yield() {
    let mut net = gossiping(false);
    net.config.election.policy.host_mode = HostMode::Host;
    net.config.election.auto_election = false;
    net.start("z");
    assert!(net.leads("z") && net.node("z").leader_token().is_some());
    net.order("z", Command::SetMaxPeers(7));
    net.config.election.policy.host_mode = HostMode::Guest;
    net.start("a");
    net.enter("a", "z");
    net.run(ALIVE * 5);
    assert!(shows(&net, "a", "z"));
    assert_eq!(
        net.try_order("z", Command::YieldLeadership),
        Err(CommandError::FixedHost)
    );
    let leaders = |net: &Net, name| {
        let events = net.events(name).into_iter();
        let leaders = events.filter_map(|event| match event {
            Event::LeaderChanged(LeaderChange { new: leader, .. }) => Some(leader),
            _ => None,
        });
        leaders.collect::<Vec<_>>()
    };
    for name in ["z", "a"] {
        assert_eq!(leaders(&net, name), [Some(id("z"))]);
    }
}

#[test]
fn a_node_that_was_thrown_out_leads_no_member() {
    let mut net = room(&["a", "b", "c"]);
    net.order(
        "a",
        Command::Kick {
            ban: true,
            peer: id("b"),
            code: 3,
            bytes: Vec::new(),
        },
    );
    net.run(DELAY * 2);
    assert!(net.node("b").is_over());
    assert!(shows(&net, "b", ""));
    net.run(ALIVE * 10);
    assert!(!net.leads("b"));
}

/// All leaderships have one stamp here: it does not show which leader set a ban.
#[test]
fn a_leader_that_is_gone_is_no_excuse_for_lifting_its_successor_s_ban() {
    let mut net = room(&["a", "b", "c", "d", "e"]);
    let gone = net.decider("a");
    net.order("a", Command::Leave);
    net.run(ms(100));
    net.kill("a", true);
    net.wait("b leads", |net| net.is_settled() && net.leads("b"));
    net.run(ms(500));
    let kicked = (id("e"), net.place("e").life.key);
    net.order(
        "b",
        Command::Kick {
            peer: id("e"),
            code: 1,
            bytes: Vec::new(),
            ban: true,
        },
    );
    net.run(ms(500));
    let present = net.decider("b");
    for by in [Some(gone), Some(present), None] {
        for to in ["b", "d"] {
            let ban = Ban {
                version: (Stamp::default(), 99),
                by: by.clone(),
                lifted: true,
                ..Ban::new(kicked.0.clone(), kicked.1)
            };
            let rules = RoomRules {
                bans: vec![ban],
                ..RoomRules::default()
            };
            net.forge("c", to, Message::RoomRules(rules));
        }
        net.run(ms(1000));
        for member in ["b", "d"] {
            assert!(
                net.node(member).is_kicked(&kicked.0, kicked.1),
                "{member}: {by:?}"
            );
        }
    }
    // Each decision of a leader counts above all that it knows.
    net.order("b", Command::Unban(id("e")));
    net.run(ms(500));
    for member in ["b", "c", "d"] {
        assert!(!net.node(member).is_kicked(&kicked.0, kicked.1), "{member}");
    }
}
