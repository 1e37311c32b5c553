//! The end of a room for a member, and its continuation for the others: no host waits for the return of a member that
//! does not come back.

use super::standing::{hosted, room_ended};
use super::*;

fn kick(peer: &str, ban: bool) -> Command {
    Command::Kick {
        peer: id(peer),
        code: 7,
        bytes: b"out".to_vec(),
        ban,
    }
}

fn kicked_from_room() -> Event {
    Event::RoomEnded {
        why: EndReason::Kicked,
        code: 7,
        bytes: b"out".to_vec(),
    }
}

fn kicked(peer: &str) -> Event {
    Event::Left(Left {
        code: 7,
        bytes: b"out".to_vec(),
        ..Left::new(id(peer), LeftReason::Kicked)
    })
}

fn sessions(net: &Net, name: &str) -> Vec<Event> {
    let events = net.events(name).into_iter();
    events
        .filter(|event| event.peer().is_some() || matches!(event, Event::RoomEnded { .. }))
        .collect()
}

/// The leader's kick of `victim` reaches it `ahead` of the others.
fn kick_reaches_first(net: &mut Net, victim: &str, ahead: Duration) {
    let kick = Message::Kicked {
        peer: id(victim),
        key: net.place(victim).life.key,
        code: 7,
        bytes: b"out".to_vec(),
        ban: None,
    };
    net.forge("a", victim, kick);
    net.run(ahead);
}

#[test]
fn a_kicked_member_receives_the_end_first_and_the_departures_with_it_as_reason() {
    for ban in [true, false] {
        let mut net = Net::room(&["a", "b", "c"]);
        net.order("a", kick("c", ban));
        net.run(ms(2000));
        let expected = [
            kicked_from_room(),
            left("a", LeftReason::RoomEnded),
            left("b", LeftReason::RoomEnded),
        ];
        assert_eq!(sessions(&net, "c"), expected);
        for member in ["a", "b"] {
            assert_eq!(sessions(&net, member), [kicked("c")]);
        }
    }
}

#[test]
fn a_member_that_is_kicked_before_the_others_know_departs_with_the_leaders_reason() {
    let mut net = Net::room(&["a", "b", "c"]);
    kick_reaches_first(&mut net, "c", ms(500));
    // For b's host it is still there, and no node dials it.
    assert_eq!(sessions(&net, "b"), []);
    let ended: Vec<_> = net.node("b").ended_peers().map(|(id, ..)| id).collect();
    assert_eq!(ended, [&id("c")]);
    assert!(!net.has("b", "c") && !net.is_absent("b", "c"));
    assert_eq!(net.node("b").dialing().count(), 0);
    net.order("a", kick("c", false));
    net.run(ms(2000));
    assert_eq!(sessions(&net, "b"), [kicked("c")]);
}

#[test]
fn a_member_whose_room_is_over_departs_within_a_second_where_no_reason_comes() {
    for auto_reconnect in [true, false] {
        let mut net = Net::room(&["a", "b", "c"]);
        net.order("b", Command::SetAutoReconnect(auto_reconnect));
        kick_reaches_first(&mut net, "c", ms(950));
        net.order("b", Command::SetAutoReconnect(auto_reconnect));
        assert_eq!(net.node("b").dialing().count(), 0);
        net.run(ms(100));
        for member in ["a", "b"] {
            assert_eq!(sessions(&net, member), [left("c", LeftReason::RoomEnded)]);
        }
        net.run(ms(70_000));
        assert_eq!(sessions(&net, "b"), [left("c", LeftReason::RoomEnded)]);
    }
}

#[test]
fn a_member_that_claims_that_its_room_is_over_is_out_until_its_departure() {
    let mut net = Net::room(&["a", "b", "c"]);
    kick_reaches_first(&mut net, "c", ms(100));
    // The incarnation comes back at once: no session has a return without a loss.
    assert_eq!(net.check("c", "b"), Err(AdmissionRefusal::Ended));
    net.link("b", "c");
    assert_eq!(
        sessions(&net, "b"),
        [left("c", LeftReason::Replaced), joined("c")]
    );
    // A newer incarnation replaces it.
    let mut net = Net::room(&["a", "b", "c"]);
    kick_reaches_first(&mut net, "c", ms(100));
    net.start("c");
    assert_eq!(net.check("c", "b"), Ok(()));
    net.link("b", "c");
    assert_eq!(
        sessions(&net, "b"),
        [left("c", LeftReason::Replaced), joined("c")]
    );
}

#[test]
fn an_ended_member_holds_no_place() {
    let mut net = Net::new();
    net.config.max_peers = 2;
    net.fill(&["a", "b", "c"]);
    kick_reaches_first(&mut net, "c", ms(100));
    net.start("d");
    net.enter("d", "a");
    net.wait("d is in", |net| net.has("a", "d"));
}

/// For each way in which a guest's room ends: the end comes first, the host departs for its own reason, the others with
/// the room, and no guest waits for the return of another.
#[test]
fn a_room_with_a_fixed_host_ends_before_its_members_depart() {
    type Ending = fn(&mut Net);
    let ends: [(Ending, EndReason, LeftReason); 4] = [
        (
            |net| net.order("h", Command::Leave),
            EndReason::HostLeft,
            LeftReason::Left,
        ),
        (
            |net| {
                net.dials_work = false;
                net.kill("h", true);
                net.run(ms(59_000));
            },
            EndReason::HostLost,
            LeftReason::Lost,
        ),
        (
            |net| net.order("h", disconnect(id("a"), 0, b"")),
            EndReason::Disconnected,
            LeftReason::Disconnected,
        ),
        (
            |net| net.order("a", disconnect(id("h"), 0, b"")),
            EndReason::Disconnected,
            LeftReason::Disconnected,
        ),
    ];
    for (end, why, of_host) in ends {
        let mut net = hosted(&["a", "b", "c"]);
        end(&mut net);
        net.run(ms(3000));
        let mut events = sessions(&net, "a");
        events.retain(|event| *event != Event::Reconnecting(id("h")));
        assert_eq!(events[0], room_ended(why));
        let mut departures = events.split_off(1);
        departures.sort_by_key(|event| event.peer().cloned());
        assert_eq!(
            departures,
            [
                left("b", LeftReason::RoomEnded),
                left("c", LeftReason::RoomEnded),
                left("h", of_host),
            ]
        );
        for (guest, other) in [("b", "a"), ("c", "a"), ("b", "c"), ("c", "b")] {
            let lost = Event::Reconnecting(id(other));
            assert_eq!(
                net.times(guest, &lost),
                0,
                "{guest} waits for {other}: {why:?}"
            );
        }
        assert_eq!(net.times("b", &left("a", LeftReason::RoomEnded)), 1);
    }
}

/// One guest's room ends earlier than another's: the other guest waits for the end of its own.
#[test]
fn guests_that_learn_of_the_end_at_different_times_receive_it_first() {
    let mut net = hosted(&["a", "b"]);
    net.forge("h", "a", Message::Leave { successor: None });
    net.run(ms(500));
    assert_eq!(sessions(&net, "b"), []);
    net.order("h", Command::Leave);
    net.run(ms(100));
    assert_eq!(sessions(&net, "b")[0], room_ended(EndReason::HostLeft));
    assert_eq!(net.times("b", &left("a", LeftReason::RoomEnded)), 1);
}
