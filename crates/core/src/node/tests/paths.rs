//! The leader that a host sees needs a path: a link, or a linked member that vouches for it.

use super::*;
use crate::wire::{Ban, RoomRules};

/// A room in which b's host disconnected the leader a; c has a link with a, and vouches for it.
fn disconnected_from_the_leader() -> Net {
    let mut net = Net::room(&["a", "b", "c"]);
    net.order("b", disconnect(id("a"), 0, b""));
    net
}

/// A room in which b has lost its link with the leader a and still shows it: c is linked to both.
fn out_of_reach_of_the_leader() -> Net {
    let mut net = Net::room(&["a", "b", "c"]);
    net.dials_work = false;
    net.unlink("a", "b", LinkEnd::Silent);
    net.wait("b shows the leader that c follows", |net| {
        net.node("b").leader() == Some(&id("a"))
    });
    net
}

#[test]
fn a_leader_that_the_host_disconnected_is_not_shown_whatever_others_vouch_for() {
    let mut net = disconnected_from_the_leader();
    let term = net.node("b").record().term();
    for _ in 0..200 {
        net.run(ms(100));
        assert_eq!(net.node("b").leader(), None);
        assert!(net.leads("a"), "the veto binds, so b does not campaign");
    }
    assert_eq!(net.node("b").record().term(), term);
    net.order("b", Command::LiftBan(id("a")));
    net.order("a", Command::LiftBan(id("b")));
    net.link("a", "b");
    net.wait("b shows a again", |net| {
        net.node("b").leader() == Some(&id("a"))
    });
}

#[test]
fn a_leader_is_shown_only_while_a_member_vouches_for_it() {
    let mut net = out_of_reach_of_the_leader();
    net.unlink("b", "c", LinkEnd::Silent);
    assert_eq!(net.node("b").leader(), None);
    let lost = LeaderChange {
        old: Some(id("a")),
        new: None,
        term: net.node("b").record().term(),
        epoch: 0,
        reason: LeaderReason::Lost,
    };
    assert_eq!(net.events("b").last(), Some(&Event::LeaderChanged(lost)));
}

#[test]
fn a_member_without_messages_from_the_leader_cannot_vouch_for_it() {
    let mut net = out_of_reach_of_the_leader();
    net.unlink("a", "c", LinkEnd::Silent);
    net.wait("c's next heartbeat takes its word back", |net| {
        net.node("b").leader() != Some(&id("a"))
    });
    let took = net.now.since(Time::ZERO);
    net.wait("b and c have a leader of their own", |net| {
        net.leads("b") || net.leads("c")
    });
    assert!(took < net.now.since(Time::ZERO));
}

#[test]
fn a_reported_ban_of_the_leader_s_key_under_another_name_changes_nothing() {
    let mut net = out_of_reach_of_the_leader();
    let mut ban = Ban::new(id("x"), net.place("a").life.key);
    ban.version.0 = net.node("b").record().stamp.clone();
    ban.by = Some(net.decider("a"));
    let rules = RoomRules {
        bans: vec![ban],
        ..RoomRules::default()
    };
    net.forge("c", "b", Message::RoomRules(rules));
    net.run(ms(1_000));
    assert_eq!(net.node("b").leader(), Some(&id("a")));
}
