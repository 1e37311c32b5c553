//! A wall clock that is set back between two starts under one key: the later incarnation looks older (C6 G9). The link
//! decides.

use super::*;

/// An incarnation with the same key and a start long before the present one.
fn set_back(net: &Net, name: &str) -> Life {
    let present = net.place(name).life;
    Life {
        incarnation: Incarnation {
            started_us: 1,
            random: present.incarnation.random.wrapping_add(1),
        },
        ..present
    }
}

#[test]
fn an_older_incarnation_waits_until_the_dead_one_has_not_answered_for_half_a_second() {
    let mut net = Net::room(&["a", "b", "c"]);
    let later = set_back(&net, "c");
    net.kill("c", false);
    net.start_as("c", later);
    assert_eq!(net.check("c", "b"), Err(AdmissionRefusal::Bound(id("c"))));
    let ticket = net.ask("c", "b");
    assert_eq!(net.verdict_after(ms(499), "b", ticket), None);
    assert!(net.has("b", "c"));
    // The room is not asked again: it admitted the holder of the key before.
    assert_eq!(
        net.verdict_after(ms(1), "b", ticket),
        Some(Verdict::Accepted)
    );
    net.wait("a mesh", Net::is_settled);
    let reported = net.events("b").into_iter();
    let of_c: Vec<_> = reported
        .filter(|event| {
            matches!(event, Event::Joined(peer) | Event::Left(Left { peer, .. }) | Event::Reconnecting(peer)
                if *peer == id("c"))
        })
        .collect();
    assert_eq!(of_c, [left("c", LeftReason::Replaced), joined("c")]);
    assert_eq!(net.node("c").leader(), net.node("a").leader());
}

#[test]
fn an_older_incarnation_takes_over_from_a_lost_one_at_once() {
    let mut net = Net::room(&["a", "b", "c"]);
    let later = set_back(&net, "c");
    net.dials_work = false;
    net.kill("c", true);
    net.run(DELAY * 2);
    assert!(net.is_absent("b", "c"));
    net.start_as("c", later);
    assert_eq!(net.check("c", "b"), Ok(()));
    let ticket = net.ask("c", "b");
    assert_eq!(net.verdict("b", ticket), Some(Verdict::Accepted));
    net.dials_work = true;
    net.wait("a mesh", Net::is_settled);
    assert_eq!(net.times("b", &left("c", LeftReason::Replaced)), 1);
    assert_eq!(net.times("b", &joined("c")), 1);
}

#[test]
fn an_older_incarnation_is_refused_once_the_present_one_shows_a_sign_of_life() {
    let mut net = Net::room(&["a", "b", "c"]);
    let older = set_back(&net, "c");
    let ticket = net.ask_as("c", older, "b");
    assert_eq!(
        net.verdict_after(DELAY * 2, "b", ticket),
        Some(Verdict::DuplicatePeerId)
    );
    assert_eq!(net.events("b"), vec![]);
    assert!(net.has("b", "c"));
}

/// The leader itself returns from an earlier time: its old incarnation is over, and the one that looks older is not.
#[test]
fn a_leader_whose_later_incarnation_looks_older_is_believed_to_live() {
    let mut net = Net::room(&["a", "b", "c"]);
    let later = set_back(&net, "a");
    net.kill("a", true);
    net.start_as("a", later);
    net.wait("b is asked", |net| net.is_absent("b", "a"));
    net.ask("a", "b");
    net.wait("a mesh", Net::is_settled);
    net.order("b", Command::SetLeader(id("a")));
    net.wait("a leads again", |net| {
        ["a", "b", "c"]
            .iter()
            .all(|name| net.node(name).leader() == Some(&id("a")))
    });
    net.run(ms(10_000));
    assert!(net.leads("a") && net.is_settled());
}

/// A message relayed in the name of the previous incarnation is past, and one of an incarnation that no link has shown
/// yet waits, whichever of them looks older.
#[test]
fn an_incarnation_that_ended_is_past_and_one_that_was_never_seen_is_not() {
    let mut net = Net::room(&["a", "b", "c"]);
    let present = net.place("c").life.incarnation;
    let later = set_back(&net, "c");
    let known = |net: &Net, life| net.node("b").origin_incarnation(&id("c"), life);
    assert_eq!(known(&net, later.incarnation), OriginIncarnation::Unknown);
    net.kill("c", true);
    net.start_as("c", later);
    net.run(DELAY * 2);
    net.ask("c", "b");
    net.wait("a mesh", Net::is_settled);
    assert_eq!(known(&net, later.incarnation), OriginIncarnation::Present);
    assert_eq!(known(&net, present), OriginIncarnation::Past);
}
