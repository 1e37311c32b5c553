//! Reports that a peer's port is closed, true and forged.

use super::*;
use crate::election::Role;
use crate::wire::Strategy;

impl Net {
    /// A member's system reports that a packet to a peer, which it sent then, was refused.
    fn refused(&mut self, name: &str, peer: &str, sent: Option<Time>) {
        let now = self.now;
        let peer = id(peer);
        let place = self.place_mut(name);
        place
            .node
            .handle(now, Input::Refused { peer, sent })
            .expect("no command");
        self.drain(&id(name));
    }

    /// Refuses what the member sends to the dead leader from now on: two packets, the second one after the first report.
    fn prove(&mut self, name: &str, peer: &str) {
        self.run(ms(1));
        let sent = self.now;
        self.run(DELAY * 2);
        self.refused(name, peer, Some(sent));
        let pinged = self.now;
        self.run(DELAY * 2);
        self.refused(name, peer, Some(pinged));
    }

    /// Refuses three packets that the member sent before the first of these reports arrived.
    fn refuse_three(&mut self, name: &str, peer: &str) {
        let sent = self.now;
        self.run(DELAY * 2);
        for later in 0..3 {
            self.refused(name, peer, Some(sent + Duration::from_micros(later)));
        }
    }

    fn pings(&mut self, name: &str, refuse: impl FnOnce(&mut Node, Time)) -> usize {
        let now = self.now;
        let node = &mut self.place_mut(name).node;
        refuse(node, now);
        let outputs = std::iter::from_fn(|| node.poll_output());
        let is_ping = |output: &Output| {
            matches!(
                output,
                Output::Datagram {
                    probe: Probe::Ping { .. },
                    ..
                }
            )
        };
        outputs.filter(is_ping).count()
    }
}

fn report(node: &mut Node, now: Time, peer: &str, sent: Option<Time>) {
    let peer = id(peer);
    node.handle(now, Input::Refused { peer, sent })
        .expect("no command");
}

#[test]
fn two_refused_packets_and_no_answer_replace_the_leader_long_before_its_timeout() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.kill("a", false);
    let killed = net.now;
    net.prove("b", "a");
    net.prove("c", "a");
    net.wait("another leader", |net| net.is_settled());
    assert!(
        net.now.since(killed) < ms(600),
        "{:?}",
        net.now.since(killed)
    );
    let lost = (None, LeaderReason::Lost);
    assert_eq!(net.leader_changes("b")[0], lost);
}

#[test]
fn any_packet_of_the_leader_ends_the_doubt() {
    let mut net = Net::room(&["a", "b", "c"]);
    for _ in 0..100 {
        let sent = net.now;
        net.refused("b", "a", Some(sent));
        // The answer to its ping arrives before the second report.
        net.run(DELAY * 2 + ms(1));
        let pinged = sent;
        net.refused("b", "a", Some(pinged));
        net.run(ms(100));
    }
    assert_eq!(net.leader_changes("b"), []);
    assert!(net.has("b", "a"));
}

#[test]
fn one_packet_or_packets_from_before_the_first_report_are_no_evidence() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.mute("a", true);
    net.run(ms(1));
    let sent = net.now;
    net.run(ms(200));
    for _ in 0..20 {
        // Sent before the first of these reports, all of them.
        net.refused("b", "a", Some(sent));
        net.run(ms(20));
    }
    assert!(net.has("b", "a"));
    let pinged = net.now;
    net.refused("b", "a", Some(pinged));
    net.run(ms(50));
    assert!(!net.has("b", "a"), "the muted leader does not answer");
}

/// In play, a system that reports six closed ports at once and one a second reports none of the pings.
#[test]
fn three_refused_packets_and_two_unanswered_pings_replace_the_leader() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.kill("a", false);
    let killed = net.now;
    for name in ["b", "c"] {
        net.run(ms(1));
        net.refuse_three(name, "a");
        assert!(net.has(name, "a"), "no ping has had its time");
    }
    net.wait("another leader", |net| net.is_settled());
    assert!(
        net.now.since(killed) < ms(600),
        "{:?}",
        net.now.since(killed)
    );
}

#[test]
fn a_refused_pre_vote_is_granted_as_soon_as_the_voter_has_evidence_of_its_own() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.kill("a", false);
    net.prove("b", "a");
    net.wait("b asks", |net| {
        net.node("b").election().role() == Role::PreCandidate
    });
    net.run(DELAY * 2 + ms(1));
    assert!(net.has("c", "a"), "c refuses, because its lease binds");
    net.prove("c", "a");
    // The pre-vote and the vote, which c has refused and now gives: b does not ask again before.
    net.run(ms(20) + DELAY * 4);
    assert!(net.leads("b"));
}

#[test]
fn two_refused_packets_from_before_the_first_report_are_no_evidence() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.mute("a", true);
    net.run(ms(1));
    let sent = net.now;
    net.run(DELAY * 2);
    for later in [0, 1] {
        net.refused("b", "a", Some(sent + Duration::from_micros(later)));
    }
    net.run(ms(500));
    assert!(net.has("b", "a"));
    net.refused("b", "a", Some(sent + Duration::from_micros(2)));
    assert!(
        !net.has("b", "a"),
        "the muted leader has not answered two pings"
    );
}

/// The last packet of a leader that dies may arrive after the reports of the first packets that its system has refused.
#[test]
fn packets_sent_while_the_last_one_of_the_leader_was_on_its_way_count() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.kill("a", false);
    net.run(ms(1));
    net.refuse_three("b", "a");
    let now = net.now;
    let last = Input::OtherData { peer: id("a") };
    net.place_mut("b")
        .node
        .handle(now, last)
        .expect("no command");
    net.run(ms(49));
    assert!(net.has("b", "a"), "a doubt begins again");
    net.run(ms(150));
    assert!(!net.has("b", "a"));
}

#[test]
fn any_number_of_refused_packets_does_not_replace_a_leader_that_answers() {
    let mut net = Net::room(&["a", "b", "c"]);
    for _ in 0..300 {
        let sent = net.now;
        net.run(ms(1));
        net.refused("b", "a", Some(sent));
    }
    assert_eq!(net.leader_changes("b"), []);
    assert!(net.has("b", "a"));
}

#[test]
fn a_report_of_a_packet_from_before_the_last_sign_of_life_causes_nothing() {
    let mut net = Net::room(&["a", "b", "c"]);
    let old = net.now;
    net.run(ms(1_200));
    let future = net.now + ms(1);
    for sent in [old, future] {
        let pings = net.pings("b", |node, now| report(node, now, "a", Some(sent)));
        assert_eq!(pings, 0);
    }
}

#[test]
fn an_unproven_report_pings_now_and_then_and_proves_nothing() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.mute("a", true);
    let mut pings = 0;
    for _ in 0..100 {
        pings += net.pings("b", |node, now| report(node, now, "a", None));
        net.now = net.now + ms(1);
    }
    assert_eq!(pings, 2, "one in 50 ms");
    assert!(net.has("b", "a"));
}

#[test]
fn forged_reports_cause_few_packets() {
    let mut net = Net::room(&["a", "b", "c"]);
    let mut pings = 0;
    for _ in 0..1_000 {
        pings += net.pings("b", |node, now| report(node, now, "a", Some(now)));
        // The leader answers at once, whatever is reported.
        let now = net.now;
        let alive = Input::OtherData { peer: id("a") };
        net.place_mut("b")
            .node
            .handle(now + ms(1), alive)
            .expect("no command");
        net.now = now + ms(1);
    }
    assert!((10..=20).contains(&pings), "{pings} pings in a second");
}

#[test]
fn only_the_leader_that_is_followed_can_be_doubted() {
    let mut net = Net::room(&["a", "b", "c"]);
    for (name, peer) in [("b", "c"), ("a", "b"), ("b", "b"), ("b", "nobody")] {
        let pings = net.pings(name, |node, now| report(node, now, peer, Some(now)));
        assert_eq!(pings, 0, "{name} about {peer}");
    }
}

#[test]
fn another_members_word_makes_a_follower_ask_the_leader_and_lifts_no_lease() {
    let mut net = Net::room(&["a", "b", "c"]);
    // Somebody refuses what b sends to the leader.
    net.dials_work = false;
    net.run(ms(1));
    let now = net.now;
    let node = &mut net.place_mut("b").node;
    report(node, now, "a", Some(now));
    node.handle(now + ms(1), Input::Tick).expect("no command");
    report(node, now + ms(1), "a", Some(now + ms(1)));
    node.handle(now + ms(60), Input::Tick).expect("no command");
    assert!(!net.has("b", "a"));
    let probes = net.node("c").probes;
    net.drain(&id("b"));
    net.run(ms(3_000));
    assert!(net.node("c").probes > probes, "c asks the leader");
    assert_eq!(net.leader_changes("a"), []);
    assert_eq!(net.leader_changes("c"), []);
    assert!(net.leads("a"));
    // As soon as c has heard the leader after that, its word counts again at b.
    assert_eq!(net.node("b").leader(), Some(&id("a")));
}

/// A settled room of two under these rules; a report changes nothing at either.
fn nothing_changes(what: &str, change: impl Fn(&mut NodeConfig)) {
    let mut net = Net::new();
    change(&mut net.config);
    for name in ["a", "b"] {
        net.start(name);
    }
    net.enter("b", "a");
    net.run(ms(20_000));
    for (name, peer) in [("a", "b"), ("b", "a")] {
        assert!(net.has(name, peer), "{what}: no link");
        let now = net.now;
        let node = &mut net.place_mut(name).node;
        let before = format!("{node:?}");
        for sent in [Some(now), None] {
            report(node, now, peer, sent);
            assert_eq!(node.poll_output(), None, "{what}");
        }
        assert_eq!(format!("{node:?}"), before, "{what}");
    }
}

#[test]
fn a_report_changes_nothing_with_a_static_quorum_or_another_strategy() {
    nothing_changes("static quorum", |config| {
        config.election.quorum = Quorum::of(&["a", "b"]);
    });
    nothing_changes("gossip", |config| {
        config.election.policy.strategy = Strategy::Gossip {
            strict_lowest: false,
        };
    });
    nothing_changes("a fixed host", |config| {
        config.election.policy.host_mode = HostMode::Guest;
    });
}
