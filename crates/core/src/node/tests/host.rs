//! Hosts that take no events: the others are notified, and a leader yields to a member whose host takes events.

use super::standing::hosted;
use super::*;
use crate::election::gossip::Windows;
use crate::wire::Strategy;

/// Windows of the gossip strategy in a local network.
pub(super) fn short_windows() -> Windows {
    Windows {
        startup_grace: ms(1_500),
        sample_interval: ms(100),
        alive_threshold: ms(1_000),
        election_duration: ms(500),
    }
}

const LIMIT: Duration = ms(10_000);

impl Net {
    /// Makes the host of `name` stop taking events, or take them again.
    fn silence(&mut self, name: &str, silent: bool) {
        let since = silent.then_some(self.now);
        let _ = self.feed(&id(name), Input::HostSilentSince(since));
    }
}

/// A room in which `a` leads and every node yields.
fn yielding(strategy: Strategy, names: &[&str]) -> Net {
    let mut net = Net::new();
    net.config.yield_after = Some(LIMIT);
    net.config.election.policy.strategy = strategy;
    net.config.election.windows = short_windows();
    net.fill(names);
    net
}

fn silences(net: &Net, name: &str) -> Vec<Event> {
    let events = net.events(name).into_iter();
    events
        .filter(|event| matches!(event, Event::HostSilent { .. } | Event::HostBack(_)))
        .collect()
}

#[test]
fn a_silent_host_is_reported_once_and_so_is_its_return() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.silence("a", true);
    net.run(ms(4_500));
    assert_eq!(silences(&net, "b"), []);
    net.run(ms(60_000));
    for member in ["b", "c"] {
        let reported = silences(&net, member);
        let [Event::HostSilent { peer, silent }] = &reported[..] else {
            panic!("{reported:?}");
        };
        assert_eq!(*peer, id("a"));
        assert!((ms(5_000)..ms(5_600)).contains(silent), "{silent:?}");
        // The statistics keep counting.
        let shown = net.node(member).membership().get(&id("a"));
        assert!(shown.is_some_and(|a| a.host_silent > ms(60_000)));
    }
    assert!(net.leads("a"), "without the option it leads on");
    net.silence("a", false);
    net.run(ms(1_000));
    for member in ["b", "c"] {
        assert_eq!(silences(&net, member)[1..], [Event::HostBack(id("a"))]);
    }
    assert_eq!(silences(&net, "a"), []);
}

#[test]
fn a_leader_yields_to_the_preferred_member_whose_host_takes_its_events() {
    let mut net = yielding(Strategy::Raft, &["a", "b", "c", "d"]);
    for silent in ["a", "d"] {
        net.silence(silent, true);
    }
    net.run(LIMIT - ms(100));
    assert!(net.leads("a"));
    net.run(ms(2_000));
    assert!(net.leads("c"), "d is preferred to c, and as silent as a");
    assert!(net.is_settled());
}

#[test]
fn no_leader_yields_without_a_member_whose_host_takes_its_events() {
    let gossip = Strategy::Gossip {
        strict_lowest: false,
    };
    for strategy in [Strategy::Raft, gossip] {
        let mut net = yielding(strategy, &["a", "b", "c"]);
        for member in ["a", "b", "c"] {
            net.silence(member, true);
        }
        net.run(LIMIT * 3);
        assert!(net.leads("a"));
        assert_eq!(net.node("a").yielded_at(), None);
        // A member whose host took events within half of the limit is a target.
        net.silence("b", false);
        net.wait("b leads", |net| net.leads("b"));
    }
}

#[test]
fn a_node_yields_once_in_ten_times_its_limit() {
    let mut net = yielding(Strategy::Raft, &["a", "b"]);
    net.silence("a", true);
    net.run(LIMIT + ms(2_000));
    assert!(net.leads("b"));
    let first = net.node("a").yielded_at().expect("it yielded");
    // The new leader's host falls silent, too, and the old one's is back: b yields in turn.
    net.silence("a", false);
    net.silence("b", true);
    net.run(LIMIT + ms(2_000));
    assert!(net.leads("a"));
    // a has yielded lately: it keeps leading, however silent its host is.
    net.silence("a", true);
    net.silence("b", false);
    net.run(LIMIT * 7);
    assert!(net.leads("a"));
    assert_eq!(net.node("a").yielded_at(), Some(first));
    net.run(LIMIT * 2);
    assert!(net.leads("b"));
    let second = net.node("a").yielded_at().expect("it yielded");
    assert!(second.since(first) >= LIMIT * 10);
}

#[test]
fn a_fixed_host_is_reported_and_leads_on() {
    let mut net = hosted(&["a", "b"]);
    net.place_mut("h").node.config.yield_after = Some(LIMIT);
    net.silence("h", true);
    net.run(LIMIT * 3);
    assert!(net.leads("h"));
    assert_eq!(silences(&net, "a").len(), 1);
}

#[test]
fn claims_about_a_silent_host_depose_no_leader() {
    let mut net = yielding(Strategy::Raft, &["a", "b", "c"]);
    // It claims to be silent for ever, so it is no target. No member yields for the silence of another.
    let heartbeat = Heartbeat {
        seq: 1 << 40,
        echo: None,
        host_silent_ms: u32::MAX,
        room_time_us: None,
        pulse: net
            .node("c")
            .election
            .pulse(net.now, &net.node("c").view, &id("a")),
    };
    let envelope = Envelope {
        incarnation: net.place("c").life.incarnation,
        message: Message::Heartbeat(heartbeat),
    };
    let _ = net.feed(
        &id("a"),
        Input::Message {
            from: id("c"),
            envelope,
        },
    );
    net.run(LIMIT * 3);
    assert!(net.leads("a"));
    assert_eq!(silences(&net, "a").len(), 1);
    net.silence("a", true);
    net.run(LIMIT + ms(2_000));
    assert!(net.leads("b"));
}

/// Time until the answer to a newcomer's request, and the answer.
fn answer_to_request(net: &mut Net, contact: &str) -> (Duration, Verdict) {
    let from = net.now;
    let ticket = net.ask("n", contact);
    net.run(ms(5_000));
    let (at, verdict) = net.place(contact).answers[&ticket].clone();
    (at.since(from), verdict)
}

#[test]
fn a_request_that_a_silent_host_does_not_see_is_answered_in_time() {
    for contact in ["a", "b"] {
        let mut net = Net::room(&["a", "b"]);
        net.order("a", Command::AskHost(true));
        net.silence("a", true);
        let (after, verdict) = answer_to_request(&mut net, contact);
        assert_eq!(verdict, Verdict::Timeout(Undecided::HostSilent));
        assert!(after < ms(4_000), "{after:?}");
    }
    // A host that has seen the request may take its time.
    let mut net = Net::room(&["a", "b"]);
    net.order("a", Command::AskHost(true));
    net.silence("a", true);
    let from = net.now;
    let ticket = net.ask("n", "a");
    net.run(ms(1_000));
    net.silence("a", true);
    net.run(ms(5_000));
    let (at, verdict) = net.place("a").answers[&ticket].clone();
    assert_eq!(
        (at.since(from), verdict),
        (ms(5_000), Verdict::Timeout(Undecided::Host))
    );
}
