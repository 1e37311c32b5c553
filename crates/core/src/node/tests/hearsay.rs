//! Hearsay: a member's reports about others end no session with them.

use super::*;

/// A forged key that no link shows.
const MADE_UP: Fingerprint = Fingerprint([201; 32]);

fn entry(peer: &str, key: Fingerprint) -> PeerEntry {
    PeerEntry {
        id: id(peer),
        key,
        addresses: vec![SocketAddr::from(([10, 0, 0, 66], 6666))],
    }
}

/// All messages in which a member can name `b`: with a key of its own making, and with b's key and another incarnation.
fn reports_on_b(key: Fingerprint) -> Vec<Message> {
    let restarted = life(b'b', u64::MAX);
    let set_back = life(b'b', 1);
    let mut reports = Vec::new();
    for (request, key, incarnation) in [
        (1, MADE_UP, restarted.incarnation),
        (2, key, restarted.incarnation),
        (3, key, set_back.incarnation),
    ] {
        let entry = entry("b", key);
        let candidate = Candidate {
            entry: entry.clone(),
            incarnation,
            payload: Vec::new(),
        };
        reports.extend([
            Message::JoinRequest { request, candidate },
            Message::Admitted {
                entry: entry.clone(),
                incarnation,
            },
            Message::PeerList(vec![entry]),
        ]);
    }
    reports
}

fn lefts(net: &Net, name: &str) -> usize {
    let events = net.events(name);
    let is_left = |event: &&Event| matches!(event, Event::Left(_));
    events.iter().filter(is_left).count()
}

/// `b` is lost at `victim` or only silent for a moment, while `liar` reports on it; it returns as if nothing had
/// happened.
fn reports_change_nothing(mut net: Net, liar: &str, victim: &str, is_lost: bool) {
    let case = format!("{liar} lies to {victim}, lost: {is_lost}");
    let key = net.place("b").life.key;
    net.dials_work = false;
    if is_lost {
        net.unlink(victim, "b", LinkEnd::Silent);
    } else {
        net.mute("b", true);
    }
    for report in reports_on_b(key) {
        net.forge(liar, victim, report);
    }
    net.run(ms(700));
    assert_eq!(lefts(&net, victim), 0, "{case}");
    if is_lost {
        net.run(ms(4000));
        assert!(net.is_absent(victim, "b"), "{case}");
    }
    net.mute("b", false);
    net.dials_work = true;
    net.wait("b is there", |net| {
        net.has(victim, "b") && net.has("b", victim)
    });
    net.run(ms(2000));
    for name in ["b", victim] {
        assert_eq!(lefts(&net, name), 0, "{case}: {:?}", net.events(name));
    }
    assert_eq!(
        net.node(victim).id_holder(&id("b")).map(|(key, _)| key),
        Some(key)
    );
}

#[test]
fn no_report_ends_a_session_whatever_the_part_of_the_liar_and_of_the_deceived() {
    for is_lost in [true, false] {
        // A member to the leader; the leader to a member; a member to a member.
        for (liar, victim) in [("c", "a"), ("a", "c"), ("d", "c")] {
            let net = Net::room(&["a", "b", "c", "d"]);
            reports_change_nothing(net, liar, victim, is_lost);
        }
        // A former leader to its successor, and to a member.
        for victim in ["a", "d"] {
            let mut net = Net::room(&["a", "b", "c", "d"]);
            net.order("a", Command::SetLeader(id("c")));
            net.wait("c leads", |net| net.is_settled() && net.leads("c"));
            net.order("c", Command::SetLeader(id("a")));
            net.wait("a leads", |net| net.is_settled() && net.leads("a"));
            net.settle();
            reports_change_nothing(net, "c", victim, is_lost);
        }
    }
}

#[test]
fn no_report_of_a_guest_ends_a_session_at_the_host_of_a_star() {
    for is_lost in [true, false] {
        let net = through_leader::star(&["b", "c"]);
        reports_change_nothing(net, "c", "h", is_lost);
    }
}

/// The announced link ends the session, and only if the holder is lost or silent.
#[test]
fn a_ready_link_with_another_key_replaces_a_holder_that_is_lost_or_silent_and_no_other() {
    let newcomer = life(200, u64::MAX);
    let ready = || Input::LinkReady {
        peer: id("b"),
        key: newcomer.key,
        incarnation: newcomer.incarnation,
    };
    let accepted_while_silent = |net: &mut Net| {
        net.mute("b", true);
        let ticket = net.ask_as("b", newcomer, "a");
        let verdict = net.verdict_after(ms(500), "a", ticket);
        assert_eq!(verdict, Some(Verdict::Accepted));
    };
    // The holder is alive.
    let mut net = Net::room(&["a", "b", "c"]);
    let _ = net.feed(&id("a"), ready());
    assert!(net.has("a", "b") && lefts(&net, "a") == 0);
    // It was silent when another peer asked for its id, and gave a sign of life before the link was ready.
    accepted_while_silent(&mut net);
    assert_eq!(lefts(&net, "a"), 0, "the room's answer alone");
    net.mute("b", false);
    net.wait("a sign of life", |net| {
        net.node("a")
            .membership()
            .get(&id("b"))
            .is_some_and(|member| !member.failed_probe)
    });
    let _ = net.feed(&id("a"), ready());
    assert!(net.has("a", "b") && lefts(&net, "a") == 0);
    // It stays silent.
    accepted_while_silent(&mut net);
    let _ = net.feed(&id("a"), ready());
    assert_eq!(net.times("a", &left("b", LeftReason::Replaced)), 1);
    // It is lost.
    let mut net = Net::room(&["a", "b", "c"]);
    net.dials_work = false;
    net.unlink("a", "b", LinkEnd::Silent);
    let ticket = net.ask_as("b", newcomer, "a");
    assert_eq!(
        net.verdict_after(ms(20), "a", ticket),
        Some(Verdict::Accepted)
    );
    assert_eq!(lefts(&net, "a"), 0);
    let _ = net.feed(&id("a"), ready());
    assert_eq!(net.times("a", &left("b", LeftReason::Replaced)), 1);
}

/// The host decides about it once, although the place of the earlier holder is kept until the first link.
#[test]
fn a_host_is_asked_once_about_a_newcomer_with_the_id_of_a_lost_member() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("a", Command::AskHost(true));
    net.kill("b", true);
    net.run(ms(100));
    let newcomer = life(200, u64::MAX);
    net.start_as("b", newcomer);
    let ticket = net.ask("b", "c");
    net.run(ms(100));
    let [request] = net.requests("a")[..] else {
        panic!("one question")
    };
    let verdict = Verdict::Accepted;
    net.order("a", Command::AnswerJoin { request, verdict });
    net.run(ms(100));
    assert_eq!(net.verdict("c", ticket), Some(Verdict::Accepted));
    net.wait("a mesh", Net::is_settled);
    assert_eq!(net.requests("a").len(), 1);
    for name in ["a", "c"] {
        assert_eq!(net.times(name, &left("b", LeftReason::Replaced)), 1);
        assert_eq!(net.times(name, &joined("b")), 1);
    }
}
