//! Admission, and the member that decides about it.

use super::*;
use crate::wire::MAX_REASON_BYTES;

fn asking(mut net: Net, name: &str) -> Net {
    net.order(name, Command::AskHost(true));
    net
}

fn answer(request: u64, verdict: Verdict) -> Command {
    Command::AnswerJoin { request, verdict }
}

#[test]
fn a_contact_asks_the_leader_and_all_members_learn_of_the_admission() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.start("d");
    net.enter("d", "b");
    let asked = net.messages_from("b", "a");
    assert!(
        matches!(&asked[..], [Message::JoinRequest { candidate, .. }, ..]
        if candidate.entry.id == id("d") && candidate.payload == b"hello")
    );
    for member in ["b", "c"] {
        let reported = net.messages_from("a", member);
        let admitted = |message: &Message| matches!(message, Message::Admitted { entry, .. } if entry.id == id("d"));
        assert!(
            reported.iter().any(admitted),
            "{member} received {reported:?}"
        );
    }
    net.wait("all are linked", Net::is_settled);
    assert_eq!(net.requests("a"), [0; 0]);
}

#[test]
fn the_leader_s_host_decides_and_its_reason_and_bytes_reach_the_contact() {
    let mut net = asking(Net::room(&["a", "b"]), "a");
    net.start("c");
    let ticket = net.ask("c", "b");
    assert_eq!(net.verdict_after(ms(100), "b", ticket), None);
    let [request] = net.requests("a")[..] else {
        panic!("one question")
    };
    net.order("a", answer(request, rejected(7, b"no red hats")));
    assert_eq!(
        net.verdict_after(ms(100), "b", ticket),
        Some(rejected(7, b"no red hats"))
    );
    assert!(!net.has("b", "c"));

    let ticket = net.ask("c", "b");
    net.run(ms(100));
    let request = net.requests("a")[1];
    net.order("a", answer(request, Verdict::Accepted));
    assert_eq!(
        net.verdict_after(ms(100), "b", ticket),
        Some(Verdict::Accepted)
    );
    net.wait("all are linked", Net::is_settled);
}

#[test]
fn the_host_is_asked_by_its_own_contact_only_when_it_wants_to_be() {
    let mut net = Net::room(&["a", "b"]);
    net.start("c");
    net.enter("c", "a");
    assert_eq!(net.requests("a"), [0; 0]);
    net.order("a", Command::AskHost(true));
    let ticket = net.ask("d", "a");
    assert_eq!(net.requests("a").len(), 1);
    assert_eq!(net.verdict("a", ticket), None);
    // The host of a member that does not lead gets no request.
    net.order("b", Command::AskHost(true));
    net.ask("e", "b");
    net.run(ms(100));
    assert_eq!(net.requests("b"), [0; 0]);
}

#[test]
fn an_answer_is_taken_once_and_in_time_for_a_number_that_is_open() {
    let mut net = asking(Net::room(&["a"]), "a");
    let unknown = |request| Err(CommandError::UnknownRequest(request));
    assert_eq!(
        net.try_order("a", answer(99, Verdict::Accepted)),
        unknown(99)
    );
    let ticket = net.ask("b", "a");
    let [request] = net.requests("a")[..] else {
        panic!("one question")
    };
    assert_eq!(net.verdict_after(ms(4999), "a", ticket), None);
    assert_eq!(
        net.verdict_after(ms(1), "a", ticket),
        Some(Verdict::Timeout(Undecided::Host))
    );
    assert_eq!(
        net.try_order("a", answer(request, Verdict::Accepted)),
        unknown(request)
    );
    let ticket = net.ask("b", "a");
    let request = net.requests("a")[1];
    net.order("a", answer(request, rejected(1, b"")));
    assert_eq!(net.verdict("a", ticket), Some(rejected(1, b"")));
    assert_eq!(
        net.try_order("a", answer(request, Verdict::Accepted)),
        unknown(request)
    );
}

/// The answer to an earlier process of a member ends no session: neither the host's, nor the leader's.
#[test]
fn a_late_answer_to_an_earlier_process_ends_no_session() {
    for contact in ["a", "b"] {
        let mut net = asking(Net::room(&["a", "b"]), "a");
        let earlier = net.ask_as("c", life(3, 1), contact);
        net.run(ms(100));
        net.start_as("c", life(3, 2));
        let later = net.ask("c", contact);
        net.run(ms(100));
        let [first, second] = net.requests("a")[..] else {
            panic!("two questions")
        };
        net.order("a", answer(second, Verdict::Accepted));
        net.run(ms(100));
        assert_eq!(net.verdict(contact, later), Some(Verdict::Accepted));
        net.wait("all are linked", Net::is_settled);
        net.order("a", answer(first, Verdict::Accepted));
        net.run(ms(100));
        let refused = Some(Verdict::DuplicatePeerId);
        assert_eq!(net.verdict(contact, earlier), refused, "{contact}");
        for name in ["a", "b"] {
            assert_eq!(net.times(name, &joined("c")), 1, "{contact}, {name}");
            assert!(net.has(name, "c"), "{contact}, {name}");
        }
    }
}

#[test]
fn a_leader_that_does_not_answer_gives_a_timeout() {
    let mut net = Net::new();
    // The handshake timeout ends before the silence is detected.
    net.config.handshake_timeout = ms(800);
    net.fill(&["a", "b"]);
    net.mute("a", true);
    let ticket = net.ask("c", "b");
    assert_eq!(net.verdict_after(ms(799), "b", ticket), None);
    assert_eq!(
        net.verdict_after(ms(1), "b", ticket),
        Some(Verdict::Timeout(Undecided::Leader))
    );
}

#[test]
fn when_the_leader_is_lost_the_next_one_decides() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.mute("a", true);
    let ticket = net.ask("d", "b");
    let entered = |net: &Net| net.verdict("b", ticket) == Some(Verdict::Accepted);
    let took = net.wait("the room's word", entered);
    assert!(took < ms(5000), "{took:?}");
}

#[test]
fn when_the_only_other_member_is_lost_the_contact_decides() {
    let mut net = Net::room(&["a", "b"]);
    let ticket = net.ask("c", "b");
    net.kill("a", true);
    assert_eq!(
        net.verdict_after(ms(20), "b", ticket),
        Some(Verdict::Accepted)
    );
}

#[test]
fn a_member_that_does_not_lead_decides_nothing_and_is_asked_again_when_it_leads() {
    let mut net = Net::room(&["a", "b", "c"]);
    let ticket = net.ask("d", "b");
    // The answer of a leader that does not know yet that it leads.
    let asked = net.messages_from("b", "a");
    let Some(Message::JoinRequest { request, .. }) = asked.first() else {
        panic!("{asked:?}")
    };
    let (request, verdict) = (*request, Verdict::NotLeader);
    net.forge("a", "b", Message::JoinAnswer { request, verdict });
    net.place_mut("b").sent.clear();
    // Answers to the first request do not count any more.
    assert_eq!(net.verdict_after(ms(40), "b", ticket), None);
    net.wait("the room's word", |net| {
        net.verdict("b", ticket) == Some(Verdict::Accepted)
    });
    let again = net.messages_from("b", "a");
    assert!(
        matches!(again[..], [Message::JoinRequest { request: same, .. }, ..] if same == request)
    );
}

#[test]
fn a_member_that_does_not_lead_reports_that_to_the_asker() {
    let mut net = Net::room(&["a", "b", "c"]);
    let candidate = |name: &str| Candidate {
        entry: PeerEntry {
            id: id(name),
            key: Fingerprint([201; 32]),
            addresses: Vec::new(),
        },
        incarnation: life(200, 1).incarnation,
        payload: Vec::new(),
    };
    let sent = |net: &Net| net.messages_from("c", "b");
    let asked = |request, name: &str| Message::JoinRequest {
        request,
        candidate: candidate(name),
    };
    let refused = |request| Message::JoinAnswer {
        request,
        verdict: Verdict::NotLeader,
    };
    net.forge("b", "c", asked(1, "x"));
    assert_eq!(sent(&net), vec![refused(1)]);
    // Nor does a member without any leader.
    net.kill("a", true);
    net.run(DELAY);
    assert_eq!(net.node("c").leader(), None);
    net.forge("b", "c", asked(2, "y"));
    assert_eq!(sent(&net).last(), Some(&refused(2)));
}

#[test]
fn a_vouched_for_newcomer_enters_without_a_question() {
    let mut net = asking(Net::room(&["a", "b", "c"]), "a");
    let someone = life(77, 5);
    let entry = PeerEntry {
        id: id("m"),
        key: someone.key,
        addresses: Vec::new(),
    };
    net.forge("b", "c", Message::PeerList(vec![entry]));
    let ticket = net.ask_as("m", someone, "c");
    assert_eq!(net.verdict("c", ticket), Some(Verdict::Accepted));
    // With that key only.
    let ticket = net.ask_as("m", life(78, 5), "c");
    assert_eq!(net.verdict_after(ms(100), "c", ticket), None);
    assert_eq!(net.requests("a").len(), 1);
}

#[test]
fn asks_again_about_a_member_that_left() {
    let mut net = asking(Net::room(&["a", "b"]), "a");
    net.start("c");
    for entered in 0..2 {
        let ticket = net.ask("c", "b");
        assert_eq!(
            net.verdict_after(ms(100), "b", ticket),
            None,
            "time {entered}"
        );
        let request = net.requests("a")[entered];
        net.order("a", answer(request, Verdict::Accepted));
        net.wait("a mesh", Net::is_settled);
        net.order("c", Command::Leave);
        net.wait("the leave", |net| !net.has("a", "c") && !net.has("b", "c"));
        net.kill("c", true);
        net.start("c");
    }
}

#[test]
fn a_question_that_waits_for_a_host_is_withdrawn_when_another_leads() {
    let mut net = asking(Net::room(&["a", "b", "c"]), "a");
    let ticket = net.ask("d", "a");
    let [request] = net.requests("a")[..] else {
        panic!("one question")
    };
    net.order("a", Command::SetLeader(id("b")));
    assert_eq!(
        net.try_order("a", answer(request, Verdict::Accepted)),
        Err(CommandError::UnknownRequest(request))
    );
    // The new leader gets the request and decides without its host.
    assert_eq!(
        net.verdict_after(ms(1000), "a", ticket),
        Some(Verdict::Accepted)
    );
}

#[test]
fn an_id_is_taken_once_its_holder_shows_a_sign_of_life() {
    let mut net = Net::room(&["a", "b"]);
    let asked_at = net.now;
    let ticket = net.ask_as("b", life(200, u64::MAX), "a");
    net.run(ms(100));
    let (at, verdict) = net.place("a").answers[&ticket].clone();
    assert_eq!(verdict, Verdict::DuplicatePeerId);
    assert_eq!(at.since(asked_at), DELAY * 2, "one round trip");
    assert_eq!(net.events("a"), vec![]);
}

#[test]
fn an_id_whose_holder_is_dead_is_free_after_half_a_second() {
    for contact in ["a", "b"] {
        let mut net = Net::room(&["a", "b", "c"]);
        net.kill("c", false);
        let restarted_at = net.now;
        net.start_as("c", life(200, u64::MAX));
        let ticket = net.ask("c", contact);
        assert_eq!(net.verdict_after(ms(499), contact, ticket), None);
        assert!(net.has("a", "c") && net.has("b", "c"));
        net.run(ms(1));
        // A member that does not lead asks the leader, which probes the holder, too.
        net.wait("the room's answer", |net| {
            net.verdict(contact, ticket).is_some()
        });
        assert_eq!(net.verdict(contact, ticket), Some(Verdict::Accepted));
        let took = net.now.since(restarted_at);
        let most = if contact == "a" { 500 } else { 1020 };
        assert!(took <= ms(most), "{contact}: {took:?}");
        net.wait("all are linked", Net::is_settled);
        for member in ["a", "b"] {
            assert_eq!(
                net.times(member, &left("c", LeftReason::Replaced)),
                1,
                "{member}"
            );
            assert_eq!(net.times(member, &joined("c")), 1, "{member}");
        }
    }
}

#[test]
fn a_replaced_incarnation_gets_no_heartbeat_that_was_due() {
    let mut net = Net::room(&["a", "b"]);
    net.mute("b", true);
    // It does not answer, so every heartbeat repeats the message.
    net.order("a", Command::SetLeader(id("a")));
    let due = net.node("a").heartbeat_at;
    net.run(due.since(net.now));
    // An older incarnation with the same key; it may be the newer one.
    net.ask_as("b", life(b'b', 1), "a");
    let due = net.node("a").heartbeat_at;
    assert_eq!(due.since(net.now), ms(500), "when its id is free, too");
    net.run(ms(499));
    let node = &mut net.place_mut("a").node;
    node.handle(due, Input::Tick).expect("no command");
    let outputs: Vec<_> = std::iter::from_fn(|| node.poll_output()).collect();
    let is_left = |output: &Output| matches!(output, Output::Event(Event::Left(_)));
    let left = outputs.iter().position(is_left).expect("it is replaced");
    let later = outputs[left..].iter();
    let sent = later.filter(|output| matches!(output, Output::Transmit { .. }));
    assert_eq!(sent.count(), 0, "{outputs:?}");
}

#[test]
fn m7_m19_a_newer_incarnation_under_the_same_key_takes_over_and_an_older_one_not_from_a_living_one()
{
    let mut net = Net::room(&["a", "b", "c"]);
    let present = net.place("c").life;
    let older = Life {
        incarnation: Incarnation {
            started_us: 1,
            random: 0,
        },
        ..present
    };
    let hello = Hello {
        incarnation: older.incarnation,
        ..net.hello("c")
    };
    assert_eq!(
        net.node("a")
            .check_hello(net.now, &hello, present.key, false),
        Err(AdmissionRefusal::Bound(id("c")))
    );
    // The leader also probes the present incarnation, for a contact that never had a link with it.
    net.unlink("b", "c", LinkEnd::Disconnected);
    net.run(ms(20));
    let ticket = net.ask_as("c", older, "b");
    assert_eq!(
        net.verdict_after(ms(100), "b", ticket),
        Some(Verdict::DuplicatePeerId)
    );

    net.kill("c", false);
    let newer = Life {
        incarnation: Incarnation {
            started_us: u64::MAX,
            random: 0,
        },
        ..present
    };
    net.start_as("c", newer);
    let ticket = net.ask("c", "a");
    assert_eq!(net.verdict("a", ticket), Some(Verdict::Accepted));
    assert_eq!(net.times("a", &left("c", LeftReason::Replaced)), 1);
    assert_eq!(net.times("a", &joined("c")), 1);
}

#[test]
fn of_two_that_are_accepted_for_one_place_only_one_gets_it() {
    let mut net = asking(Net::room(&["a", "b"]), "a");
    net.order("a", Command::SetMaxPeers(2));
    let tickets = ["c", "d"].map(|name| net.ask(name, "a"));
    for request in net.requests("a") {
        net.order("a", answer(request, Verdict::Accepted));
    }
    assert_eq!(net.verdict("a", tickets[0]), Some(Verdict::Accepted));
    assert_eq!(net.verdict("a", tickets[1]), Some(full(2)));
}

/// The session with the earlier incarnation ends as soon as the next one sends its Hello, before the room is asked.
#[test]
fn a_member_that_was_started_again_keeps_its_place_in_a_full_room() {
    for (why, verdict) in [
        (LeftReason::Replaced, Verdict::Accepted),
        (LeftReason::Lost, full(1)),
    ] {
        let mut net = Net::room(&["a", "b", "c"]);
        net.order("a", Command::SetMaxPeers(1));
        net.kill("c", true);
        net.run(ms(100));
        net.start("c");
        let peer = id("c");
        let _ = net.feed(&id("a"), Input::SessionOver { peer, why });
        let ticket = net.ask("c", "a");
        assert_eq!(net.verdict("a", ticket), Some(verdict), "{why:?}");
    }
}

/// "c" knows of its leader only from others, and applies a limit that the leader has lifted since.
fn room_with_an_old_limit_at_c() -> Net {
    let mut net = Net::room(&["a", "b", "c", "d"]);
    net.order("a", Command::SetMaxPeers(2));
    net.run(ms(100));
    net.dials_work = false;
    net.unlink("a", "c", LinkEnd::Silent);
    net.order("a", Command::SetMaxPeers(0));
    net.wait("c is shown the leader that it is not linked to", |net| {
        net.node("c").leader() == Some(&id("a")) && !net.has("c", "a")
    });
    assert_eq!(net.node("c").max_peers(), 2);
    // The earlier session is over, and with it the voucher for its holder.
    let peer = id("a");
    let why = LeftReason::Lost;
    let _ = net.feed(&id("c"), Input::SessionOver { peer, why });
    assert_eq!(net.node("c").leader(), Some(&id("a")));
    net
}

#[test]
fn a_limit_does_not_count_the_leader_out() {
    let mut net = room_with_an_old_limit_at_c();
    let ticket = net.ask("x", "c");
    assert_eq!(net.verdict("c", ticket), Some(full(2)));
    let ticket = net.ask("a", "c");
    assert_eq!(net.verdict("c", ticket), Some(Verdict::Accepted));
    net.run(ms(100));
    assert_eq!(net.node("c").max_peers(), 0);
}

#[test]
fn a_newcomer_with_the_leaders_name_is_still_put_to_the_host() {
    let mut net = asking(room_with_an_old_limit_at_c(), "c");
    let ticket = net.ask_as("a", life(200, 1), "c");
    assert_eq!(net.verdict("c", ticket), None);
    let [request] = net.requests("c")[..] else {
        panic!("one question")
    };
    net.order("c", answer(request, Verdict::Accepted));
    assert_eq!(net.verdict("c", ticket), Some(Verdict::Accepted));
}

/// A member's request for a newcomer of its own making.
fn asks_for_somebody(n: u64) -> Message {
    Message::JoinRequest {
        request: n,
        candidate: Candidate {
            entry: PeerEntry {
                id: id(&format!("x{n}")),
                key: Fingerprint([201; 32]),
                addresses: Vec::new(),
            },
            incarnation: life(200, 1).incarnation,
            payload: Vec::new(),
        },
    }
}

#[test]
fn the_fifth_waiting_question_of_one_member_waits_for_its_turn() {
    let mut net = asking(Net::room(&["a", "b", "c"]), "a");
    for n in 0..6 {
        net.forge("b", "a", asks_for_somebody(n));
    }
    assert_eq!(net.requests("a").len(), 4);
    // Requests of other members do not wait behind it.
    net.ask("d", "c");
    net.ask("e", "a");
    net.run(ms(100));
    assert_eq!(net.requests("a").len(), 6);
    for (answered, open) in [(0, 7), (1, 8)] {
        let request = net.requests("a")[answered];
        net.order("a", answer(request, rejected(1, b"")));
        assert_eq!(net.requests("a").len(), open);
    }
}

fn withdrawn(request: u64, peer: &str) -> Event {
    let peer = id(peer);
    Event::JoinWithdrawn { request, peer }
}

/// The newcomer has gone away: its process ended during its admission.
#[test]
fn a_question_that_is_withdrawn_leaves_the_host_and_keeps_no_place() {
    for contact in ["a", "b"] {
        let mut net = asking(Net::room(&["a", "b"]), "a");
        net.order("a", Command::SetMaxPeers(2));
        let ticket = net.ask("d", contact);
        net.run(ms(100));
        let [request] = net.requests("a")[..] else {
            panic!("one question")
        };
        let _ = net.feed(&id(contact), Input::JoinWithdrawn { ticket });
        net.run(ms(100));
        assert_eq!(net.times("a", &withdrawn(request, "d")), 1, "{contact}");
        assert_eq!(net.verdict(contact, ticket), None, "no member waits for it");
        let refused = net.try_order("a", answer(request, Verdict::Accepted));
        assert_eq!(refused, Err(CommandError::UnknownRequest(request)));
        // An admitted newcomer has the last place until then.
        let ticket = net.ask("d", contact);
        net.run(ms(100));
        let request = net.requests("a")[1];
        net.order("a", answer(request, Verdict::Accepted));
        net.run(ms(100));
        let late = net.ask("e", "a");
        assert_eq!(net.verdict_after(ms(100), "a", late), Some(full(2)));
        let _ = net.feed(&id(contact), Input::JoinWithdrawn { ticket });
        net.run(ms(100));
        let next = net.ask("e", "a");
        assert_eq!(net.verdict_after(ms(100), "a", next), None, "{contact}");
        assert_eq!(net.requests("a").len(), 3);
        // The host receives no withdrawal of a request that it answered itself.
        assert_eq!(net.times("a", &withdrawn(request, "d")), 0);
    }
}

#[test]
fn a_host_learns_that_a_request_is_over_whatever_ended_it() {
    // The timeout expires.
    let mut net = asking(Net::room(&["a", "b"]), "a");
    net.ask("d", "a");
    let request = net.requests("a")[0];
    net.run(ms(5000));
    assert_eq!(net.times("a", &withdrawn(request, "d")), 1);
    // The leader changes.
    let mut net = asking(Net::room(&["a", "b"]), "a");
    net.ask("d", "a");
    let request = net.requests("a")[0];
    net.order("a", Command::SetLeader(id("b")));
    assert_eq!(net.times("a", &withdrawn(request, "d")), 1);
    // The asking member has left.
    let mut net = asking(Net::room(&["a", "b", "c"]), "a");
    net.ask("d", "b");
    net.run(ms(50));
    let request = net.requests("a")[0];
    net.order("b", Command::Leave);
    net.run(ms(100));
    assert_eq!(net.times("a", &withdrawn(request, "d")), 1);
    // A member cannot withdraw another's request.
    let mut net = asking(Net::room(&["a", "b", "c"]), "a");
    net.ask("d", "b");
    net.run(ms(50));
    for request in 0..10 {
        net.forge("c", "a", Message::JoinWithdrawn { request });
    }
    net.run(ms(100));
    assert_eq!(net.times("a", &withdrawn(net.requests("a")[0], "d")), 0);
}

/// Six a second that never get a link.
#[test]
fn newcomers_that_a_member_makes_up_keep_no_honest_one_out() {
    let mut net = Net::room(&["a", "b", "m"]);
    net.order("a", Command::SetMaxPeers(8));
    let mut let_in = 0;
    for step in 0..60 {
        net.forge("m", "a", asks_for_somebody(step));
        net.run(ms(160));
        if step % 6 != 5 {
            continue;
        }
        let name = format!("h{step}");
        net.start_as(&name, life(100 + step as u8, 1));
        let contact = if step % 12 == 5 { "a" } else { "b" };
        net.enter(&name, contact);
        net.wait("a mesh", Net::is_settled);
        let_in += 1;
        net.order(&name, Command::Leave);
        net.run(ms(50));
        net.kill(&name, true);
    }
    assert_eq!(let_in, 10);
}

#[test]
fn the_grants_to_one_member_hold_half_of_the_free_places_and_at_least_one() {
    for (max_peers, share) in [(8, 3), (5, 1), (4, 1), (3, 1), (2, 0)] {
        let mut net = Net::room(&["a", "b", "m"]);
        net.order("a", Command::SetMaxPeers(max_peers));
        net.place_mut("a").sent.clear();
        for n in 0..12 {
            net.forge("m", "a", asks_for_somebody(n));
        }
        let accepted = |net: &Net| {
            let answers = net.messages_from("a", "m");
            let verdict = |message: &Message| match message {
                Message::JoinAnswer { verdict, .. } => *verdict == Verdict::Accepted,
                _ => false,
            };
            answers.iter().filter(|message| verdict(message)).count()
        };
        assert_eq!(accepted(&net), share, "of {max_peers}");
        // Nor more in total after the first ones are over: the limit applies.
        net.run(ms(4900));
        assert_eq!(accepted(&net), share, "of {max_peers}");
    }
}

#[test]
fn open_questions_are_bounded_and_one_member_cannot_take_all_places() {
    let mut net = asking(Net::room(&["a", "b"]), "a");
    for n in 0..100 {
        net.forge("b", "a", asks_for_somebody(n));
    }
    assert_eq!(net.requests("a").len(), 4, "and twelve wait for their turn");
    let full = |message: &Message| {
        matches!(
            message,
            Message::JoinAnswer {
                verdict: Verdict::Full(NoPlace::Newcomers),
                ..
            }
        )
    };
    assert_eq!(
        net.messages_from("a", "b")
            .iter()
            .filter(|sent| full(sent))
            .count(),
        84
    );
    let tickets: Vec<_> = (0..100).map(|n| net.ask(&format!("y{n}"), "a")).collect();
    let open = tickets
        .iter()
        .filter(|ticket| net.verdict("a", **ticket).is_none());
    assert_eq!(open.count(), 64 - 16);
    net.run(ms(5000));
    assert_eq!(
        net.verdict("a", tickets[0]),
        Some(Verdict::Timeout(Undecided::Host))
    );
    assert_eq!(
        net.verdict("a", tickets[99]),
        Some(Verdict::Full(NoPlace::Newcomers))
    );
    // All places are free again.
    net.ask("z", "a");
    assert_eq!(net.requests("a").len(), 4 + 48 + 1);
}

#[test]
fn questions_of_a_departed_member_are_forgotten() {
    let mut net = asking(Net::room(&["a", "b", "c"]), "a");
    net.ask("d", "b");
    net.run(ms(20));
    let [request] = net.requests("a")[..] else {
        panic!("one question")
    };
    net.order("b", Command::Leave);
    net.run(ms(100));
    assert_eq!(
        net.try_order("a", answer(request, Verdict::Accepted)),
        Err(CommandError::UnknownRequest(request))
    );
}

#[test]
fn unexpected_answers_change_nothing_and_long_ones_are_violations() {
    let mut net = asking(Net::room(&["a", "b", "c"]), "a");
    let ticket = net.ask("d", "b");
    let Some(Message::JoinRequest { request, .. }) = net.messages_from("b", "a").first().cloned()
    else {
        panic!("it asks");
    };
    let word = |verdict| Message::JoinAnswer { request, verdict };
    net.forge("c", "b", word(Verdict::Accepted)); // b did not ask it
    net.forge(
        "a",
        "b",
        Message::JoinAnswer {
            request: request + 1,
            verdict: Verdict::Accepted,
        },
    );
    assert_eq!(net.verdict("b", ticket), None);
    assert!(net.place("b").closes.is_empty());
    net.forge("a", "b", word(rejected(1, &vec![0; MAX_REASON_BYTES + 1])));
    assert!(matches!(
        net.place("b").closes[..],
        [(_, LinkEnd::Violation(_))]
    ));
}

#[test]
fn long_questions_and_admissions_are_violations() {
    let mut net = Net::room(&["a", "b"]);
    let someone = SocketAddr::from(([10, 0, 0, 9], 9));
    let candidate = |addresses: usize, payload: usize| Candidate {
        entry: PeerEntry {
            id: id("x"),
            key: Fingerprint([201; 32]),
            addresses: vec![someone; addresses],
        },
        incarnation: life(200, 1).incarnation,
        payload: vec![0; payload],
    };
    for long in [
        Message::JoinRequest {
            request: 1,
            candidate: candidate(5, 0),
        },
        Message::JoinRequest {
            request: 1,
            candidate: candidate(4, 16_385),
        },
        Message::Admitted {
            entry: candidate(5, 0).entry,
            incarnation: life(200, 1).incarnation,
        },
    ] {
        let mut net = Net::room(&["a", "b"]);
        net.forge("b", "a", long);
        assert!(matches!(
            net.place("a").closes[..],
            [(_, LinkEnd::Violation(_))]
        ));
        assert_eq!(net.times("a", &left("b", LeftReason::Violation)), 1);
    }
    net.forge(
        "b",
        "a",
        Message::JoinRequest {
            request: 1,
            candidate: candidate(4, 16_384),
        },
    );
    assert!(net.place("a").closes.is_empty());
}
