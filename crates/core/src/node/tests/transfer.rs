//! Leadership transfers: `mmn_transfer_leadership` and `mmn_yield_leadership` (C6, P11; R50-R57, HC12).

use super::*;
use crate::election::Recovery;
use crate::election::{ElectionError, LeaderReason};
use crate::wire::Authority;

const RTT: Duration = ms(20);

fn transfer(net: &mut Net, from: &str, to: &str) {
    net.order(from, Command::TransferLeadership(id(to)));
}

fn agrees_on(net: &Net, leader: &str) -> bool {
    net.is_settled() && net.leads(leader)
}

fn asked(net: &Net, name: &str) -> usize {
    let sent = net.place(name).sent.iter();
    sent.filter(|(_, message)| matches!(elects(message), Some(ElectionMessage::VoteRequest { .. })))
        .count()
}

/// C4.5: no member heard from it under that record, so none waits for its host.
#[test]
fn a_call_that_names_the_leader_that_just_died_silences_no_room() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.kill("a", false);
    net.run(ms(300));
    net.order("b", Command::SetLeader(id("a")));
    net.run(ms(100));
    assert!(net.node("c").record().assigned);
    net.wait("another leads", Net::is_settled);
}

#[test]
fn r50_the_target_leads_within_two_round_trips_and_can_hand_back() {
    let mut net = Net::room(&["a", "b", "c", "d"]);
    let term = net.node("a").record().term();
    transfer(&mut net, "a", "c");
    let took = net.wait("c leads", |net| agrees_on(net, "c"));
    assert!(took <= RTT * 2, "{took:?}");
    let record = net.node("c").record().clone();
    assert_eq!((record.term(), record.assigned), (term + 1, false));
    net.run(ms(5000));
    assert!(agrees_on(&net, "c"));
    transfer(&mut net, "c", "a");
    net.wait("a leads again", |net| agrees_on(net, "a"));
}

#[test]
fn r51_a_transfer_passes_all_leases_and_all_receive_its_reason() {
    let mut net = Net::room(&["a", "b", "c", "d", "e"]);
    transfer(&mut net, "a", "d");
    net.wait("d leads", |net| agrees_on(net, "d"));
    net.run(ms(3000));
    let handed_over = (Some(id("d")), LeaderReason::Transferred);
    for name in ["b", "c", "d", "e"] {
        assert_eq!(
            net.leader_changes(name),
            std::slice::from_ref(&handed_over),
            "{name}"
        );
    }
    let resigned = (None, LeaderReason::Resigned);
    assert_eq!(net.leader_changes("a"), [resigned, handed_over]);
}

/// As in etcd: the target has not received the request yet, and it does not receive it later.
#[test]
fn a_transfer_to_the_leader_itself_cancels_the_pending_one() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.mute("b", true);
    transfer(&mut net, "a", "b");
    net.run(ms(100));
    transfer(&mut net, "a", "a");
    net.mute("b", false);
    net.run(ms(10_000));
    assert!(agrees_on(&net, "a"));
    assert_eq!(net.leader_changes("a"), []);
    assert_eq!(net.leader_changes("c"), []);
    // The leader is free for the next transfer.
    transfer(&mut net, "a", "b");
    net.wait("b leads", |net| agrees_on(net, "b"));
}

#[test]
fn of_two_the_other_leads_after_one_trip() {
    let mut net = Net::room(&["a", "b"]);
    transfer(&mut net, "a", "b");
    let took = net.wait("b leads", |net| agrees_on(net, "b"));
    assert!(took <= RTT, "{took:?}");
    let handed_over = [(Some(id("b")), LeaderReason::Transferred)];
    assert_eq!(net.leader_changes("a"), handed_over);
    assert_eq!(net.leader_changes("b"), handed_over);
}

#[test]
fn r53_transfers_to_unsuitable_targets_are_refused() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("c", Command::SetEligible(false));
    net.run(ms(1000));
    let refusal = |net: &mut Net, name: &str, command| net.try_order(name, command);
    let to = |name: &str| Command::TransferLeadership(id(name));
    assert_eq!(refusal(&mut net, "a", to("a")), Ok(()), "to itself");
    assert_eq!(
        refusal(&mut net, "a", to("x")),
        Err(CommandError::Election(ElectionError::UnknownTarget(id(
            "x"
        ))))
    );
    assert_eq!(
        refusal(&mut net, "a", to("c")),
        Err(CommandError::Election(ElectionError::IneligibleTarget(id(
            "c"
        ))))
    );
    for command in [to("b"), to("c"), Command::YieldLeadership] {
        assert_eq!(
            refusal(&mut net, "b", command),
            Err(CommandError::Election(ElectionError::NotLeader))
        );
    }
    net.run(ms(5000));
    assert!(agrees_on(&net, "a"));
    assert_eq!(net.leader_changes("b"), []);
}

#[test]
fn hc12_a_leader_yields_to_the_highest_priority_and_then_to_the_largest_id() {
    for (preferred, expected) in [(None, "c"), (Some("b"), "b")] {
        let mut net = Net::room(&["a", "b", "c"]);
        if let Some(name) = preferred {
            net.order(name, Command::SetPriority(1));
            net.run(ms(100));
        }
        net.order("a", Command::YieldLeadership);
        net.wait("the next one leads", |net| agrees_on(net, expected));
    }
}

#[test]
fn hc12_a_lone_leader_cannot_yield() {
    let mut net = Net::new();
    net.start("a");
    net.wait("it leads", |net| net.leads("a"));
    assert_eq!(
        net.try_order("a", Command::YieldLeadership),
        Err(CommandError::Election(ElectionError::NoSuccessor))
    );
    assert!(net.leads("a"));
}

#[test]
fn r57_a_crash_or_leave_of_the_target_ends_the_transfer() {
    for polite in [false, true] {
        let mut net = Net::room(&["a", "b", "c", "d"]);
        if polite {
            net.order("d", Command::Leave);
        } else {
            net.kill("d", true);
        }
        transfer(&mut net, "a", "d");
        net.run(ms(8000));
        let survivors = net.node("a").leader() == Some(&id("a"));
        assert!(survivors && net.node("b").leader() == Some(&id("a")));
        assert_eq!(net.leader_changes("b"), []);
    }
}

#[test]
fn hc12_an_unreachable_target_changes_nothing_and_is_not_asked_later() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.mute("c", true);
    transfer(&mut net, "a", "c");
    net.run(ms(1400));
    net.mute("c", false);
    // The leader had repeated the request by then.
    net.wait("c leads", |net| agrees_on(net, "c"));

    let mut net = Net::room(&["a", "b", "c"]);
    net.mute("c", true);
    transfer(&mut net, "a", "c");
    net.run(ms(5000));
    net.mute("c", false);
    net.wait("c is back", |net| net.is_settled());
    net.run(ms(5000));
    assert!(agrees_on(&net, "a"));
    assert_eq!(asked(&net, "a"), 0, "a had to campaign");
}

#[test]
fn hc12_a_second_target_replaces_the_first_and_the_same_changes_nothing() {
    let mut net = Net::room(&["a", "b", "c", "d"]);
    net.mute("d", true);
    transfer(&mut net, "a", "d");
    transfer(&mut net, "a", "d");
    transfer(&mut net, "a", "b");
    net.wait("b leads", |net| net.leads("b") && !net.leads("a"));
    net.run(ms(1000));
    net.mute("d", false);
    net.run(ms(6000));
    assert!(agrees_on(&net, "b"));
}

#[test]
fn an_assigned_leader_transfers_and_its_assignment_ends() {
    let mut net = Net::new();
    net.config.election.recovery = Recovery::Hold;
    net.fill(&["a", "b", "c"]);
    net.order("b", Command::SetLeader(id("b")));
    net.wait("b leads", |net| agrees_on(net, "b"));
    transfer(&mut net, "b", "c");
    net.wait("c leads", |net| agrees_on(net, "c"));
    assert!(!net.node("a").record().assigned);
    // No Hold is left.
    net.kill("c", true);
    net.wait("somebody leads", |net| net.is_settled());
}

#[test]
fn a_node_that_does_not_campaign_by_itself_does_so_when_the_leader_asks() {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("c", Command::EnableAutoElection(false));
    transfer(&mut net, "a", "c");
    net.wait("c leads", |net| agrees_on(net, "c"));
}

#[test]
fn r57_a_target_that_may_no_longer_lead_lets_the_transfer_pass() {
    let mut net = Net::room(&["a", "b", "c"]);
    transfer(&mut net, "a", "c");
    net.order("c", Command::SetEligible(false));
    net.run(ms(6000));
    assert!(agrees_on(&net, "a"));
}

/// Only a request of the followed leader counts.
#[test]
fn r59_only_the_leader_makes_a_member_campaign() {
    let mut net = Net::room(&["a", "b", "c"]);
    let target = id("c");
    net.forge("b", "c", ElectionMessage::TimeoutNow { target });
    net.run(ms(1000));
    assert_eq!(asked(&net, "c"), 0);
    assert!(agrees_on(&net, "a"));
}

/// The next leader may ask while the former one still has its link: a campaign counts all linked members as voters.
#[test]
fn a_member_that_is_asked_to_campaign_ends_its_doubt_about_the_former_leader() {
    let mut net = Net::room(&["a", "b", "c", "d"]);
    net.mute("a", true);
    net.wait("b doubts a", |net| {
        net.node("b").doubted() == Some(&id("a"))
    });
    let mut record = net.node("b").record().clone();
    record.stamp.term += 1;
    record.leader = Some(id("c"));
    record.leader_key = Some(net.place("c").life.key);
    let stamp = record.stamp.clone();
    let claim = Pulse::Leads {
        record,
        weight: 3,
        led_ms: 0,
        election_timeout_min_ms: 1500,
    };
    net.forge("c", "b", claim);
    assert_eq!(net.node("b").leader(), Some(&id("c")));
    assert_eq!(net.node("b").doubted(), Some(&id("a")));
    assert!(net.has("b", "a"), "the link is still there");
    let target = id("b");
    net.forge_at("c", "b", stamp, 0, ElectionMessage::TimeoutNow { target });
    assert_eq!(asked(&net, "b"), 2, "c and d");
    assert!(!net.has("b", "a"));
    assert_eq!(net.node("b").doubted(), None);
}

#[test]
fn a_transfer_message_under_an_older_record_does_not_count() {
    let mut net = Net::room(&["a", "b", "c"]);
    let old = net.node("a").record().stamp.clone();
    transfer(&mut net, "a", "b");
    net.wait("b leads", |net| agrees_on(net, "b"));
    transfer(&mut net, "b", "a");
    net.wait("a leads again", |net| agrees_on(net, "a"));
    net.run(ms(1000));
    let asked_before = asked(&net, "c");
    let late = ElectionMessage::TimeoutNow { target: id("c") };
    net.forge_at("a", "c", old, 0, late);
    net.run(ms(1000));
    assert_eq!(asked(&net, "c"), asked_before);
    assert!(agrees_on(&net, "a"));
}

/// A leader knows which member it asked. If only the leader may name a leader, all members must know it.
#[test]
fn a_campaign_without_a_request_is_no_transfer() {
    for authority in [Authority::Anyone, Authority::LeaderOnly] {
        let mut net = Net::new();
        net.config.election.policy.authority = authority;
        net.fill(&["a", "b", "c"]);
        let next = |net: &Net| {
            let mut stamp = net.node("a").record().stamp.clone();
            stamp.term += 1;
            stamp
        };
        for to in ["a", "b"] {
            let request = ElectionMessage::VoteRequest {
                round: 1,
                candidate: id("c"),
                asked_by: Some(id("a")),
            };
            net.forge_at("c", to, next(&net), 0, request);
        }
        let granted = |net: &Net, name: &str| {
            net.messages_from(name, "c").iter().any(|message| {
                matches!(
                    elects(message),
                    Some(ElectionMessage::VoteResponse { granted: true, .. })
                )
            })
        };
        assert!(!granted(&net, "a"), "{authority:?}");
        assert_eq!(granted(&net, "b"), authority == Authority::Anyone);
    }
}

/// The vote request may arrive before the leader's notice, which takes another path.
#[test]
fn an_early_vote_request_waits_for_the_leaders_message_if_only_the_leader_assigns() {
    let mut net = Net::new();
    net.config.election.policy.authority = Authority::LeaderOnly;
    net.fill(&["a", "b", "c"]);
    let stamp = net.node("a").record().stamp.clone();
    let request = ElectionMessage::VoteRequest {
        round: 1,
        candidate: id("c"),
        asked_by: Some(id("a")),
    };
    let next = Stamp {
        term: stamp.term + 1,
        ..stamp
    };
    net.forge_at("c", "b", next, 0, request);
    assert_eq!(net.messages_from("b", "c"), []);
    net.forge("a", "b", ElectionMessage::TimeoutNow { target: id("c") });
    let answers = net.messages_from("b", "c");
    assert!(matches!(
        answers.iter().map(elects).collect::<Vec<_>>()[..],
        [Some(ElectionMessage::VoteResponse { granted: true, .. })]
    ));
}

#[test]
fn hc12_a_leader_that_transfers_and_leaves_names_its_target() {
    let mut net = Net::room(&["a", "b", "c", "d"]);
    net.mute("b", true);
    transfer(&mut net, "a", "b");
    net.mute("b", false);
    net.order("a", Command::Leave);
    net.run(ms(100));
    assert!(net.leads("b"));
}

/// Followers that voted already show it before the target's own request arrives.
#[test]
fn the_leader_does_not_go_above_the_campaign_that_it_asked_for() {
    let mut net = Net::room(&["a", "b", "c", "d"]);
    transfer(&mut net, "a", "d");
    let mut record = Record::undecided(net.node("a").record().stamp.clone());
    record.stamp.term += 1;
    let live = None;
    let nack = ElectionMessage::Nack { record, live };
    net.forge("b", "a", nack);
    assert_eq!(asked(&net, "a"), 0);
    let took = net.wait("d leads", |net| agrees_on(net, "d"));
    assert!(took <= RTT * 2, "{took:?}");
    net.run(ms(2000));
    assert!(agrees_on(&net, "d"));
    assert_eq!(asked(&net, "a"), 0);
}
