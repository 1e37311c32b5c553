//! Bounds on the entries that wait for a host that takes no events, and on the number of reports.

use super::*;
use crate::core::election::seeded::MemberState;
use crate::core::event::MappingFault;
use crate::core::path::LinkPath;
use crate::dispatch::{MappingReport, RelayReport, TurnReport};

const MANY: u32 = 20_000;

fn state(of: u32, version: u64) -> Event {
    Event::MemberState {
        peer: peer(&format!("p{of}")),
        state: MemberState::Active,
        version,
    }
}

fn lock_lost(name: u32, token: u64) -> Event {
    Event::LockLost {
        name: format!("lock{name}").into(),
        token,
    }
}

fn path(of: u32, old: LinkPath, new: LinkPath) -> Event {
    let peer = peer(&format!("p{of}"));
    Event::PathChanged { peer, old, new }
}

fn through(carrier: u32) -> LinkPath {
    LinkPath::Member(peer(&format!("c{carrier}")))
}

fn dropped(count: u64) -> Event {
    Event::DataDropped {
        peer: peer("b"),
        direction: Direction::Sent,
        count,
    }
}

/// A host that takes its events when the test drains the queue.
fn host() -> (Dispatch, Receiver<Event>) {
    let dispatch = manual(wide());
    let (sender, seen) = channel();
    dispatch.register_event_handler(Some(Arc::new(move |event: &Event| {
        let _ = sender.send(event.clone());
    })));
    (dispatch, seen)
}

fn waiting(dispatch: &Dispatch) -> usize {
    dispatch.undelivered(|_| true)
}

#[test]
fn changes_of_the_leader_coalesce_across_datagrams_and_never_across_reliable_messages() {
    let dispatch = manual(wide());
    let (sender, seen) = channel();
    dispatch.register_event_handler(Some(events(&sender, "")));
    for n in 0..MANY {
        dispatch.push(led_by(["a", "b"][n as usize % 2]));
        dispatch.push_datagram(message(n, 4), None);
        assert!(waiting(&dispatch) <= 1);
    }
    dispatch.try_push_message(message(MANY, 4)).expect("room");
    for id in ["a", "b", "a"] {
        dispatch.push(led_by(id));
    }
    dispatch
        .try_push_message(message(MANY + 1, 4))
        .expect("room");
    drain(&dispatch.shared);
    let reported: Vec<_> = seen.try_iter().collect();
    let rest: Vec<_> = reported
        .iter()
        .map(String::as_str)
        .filter(|line| !line.starts_with("DataDropped"))
        .collect();
    // The newest thousand datagrams wait; the change stands at the place of the last one.
    assert_eq!(rest.len(), 1000 + 4);
    assert_eq!(
        rest[999..],
        [
            "leader >b",
            "message 19999",
            "message 20000",
            "leader b>a",
            "message 20001",
        ]
    );
}

#[test]
fn beyond_256_only_the_newest_state_of_each_member_and_the_newest_loss_of_each_lock_wait() {
    for event in [state, lock_lost] {
        let (dispatch, seen) = host();
        for n in 0..u64::from(MANY) {
            dispatch.push(event((n % 3) as u32, n));
        }
        assert_eq!(waiting(&dispatch), 256);
        drain(&dispatch.shared);
        let reported: Vec<_> = seen.try_iter().collect();
        assert_eq!(reported.len(), 256);
        // Each subject remains with its last event, in the order in which these came.
        let last: Vec<_> = (MANY - 3..MANY).map(|n| event(n % 3, n.into())).collect();
        assert_eq!(reported[253..], last);
    }
}

#[test]
fn beyond_256_only_the_newest_path_of_each_peer_waits_and_begins_where_the_displaced_one_began() {
    let (dispatch, seen) = host();
    let (mut expected, mut at) = (Vec::new(), [const { LinkPath::Direct }; 3]);
    for n in 0..MANY {
        let (of, new) = (n % 3, through(n));
        let old = std::mem::replace(&mut at[of as usize], new.clone());
        expected.push(path(of, old.clone(), new.clone()));
        dispatch.push(path(of, old, new));
    }
    assert_eq!(waiting(&dispatch), 256);
    drain(&dispatch.shared);
    let reported: Vec<_> = seen.try_iter().collect();
    assert_eq!(reported[..253], expected[..253]);
    // The host receives the paths of 0, 1 and 2 one after another, without a gap.
    let last = (MANY - 3..MANY).map(|n| {
        let last_known = (0..253).rev().find(|known| known % 3 == n % 3);
        path(n % 3, through(last_known.expect("reported")), through(n))
    });
    assert_eq!(reported[253..], last.collect::<Vec<_>>());
}

#[test]
fn beyond_256_a_path_that_is_the_former_one_again_takes_back_the_change_between() {
    let (dispatch, seen) = host();
    for n in 0..256 {
        dispatch.push(path(n, LinkPath::Direct, through(n)));
    }
    for _ in 0..MANY {
        dispatch.push(path(1000, LinkPath::Direct, through(0)));
        assert_eq!(waiting(&dispatch), 257);
        dispatch.push(path(1000, through(0), LinkPath::Direct));
        assert_eq!(waiting(&dispatch), 256);
    }
    drain(&dispatch.shared);
    assert_eq!(seen.try_iter().count(), 256);
}

#[test]
fn paths_of_two_links_to_a_peer_stay_apart() {
    for end in [left("p1000"), Event::Reconnecting(peer("p1000"))] {
        let (dispatch, seen) = host();
        for n in 0..256 {
            dispatch.push(path(n, LinkPath::Direct, through(n)));
        }
        dispatch.push(path(1000, LinkPath::Direct, through(0)));
        dispatch.push(end.clone());
        dispatch.push(path(1000, through(0), LinkPath::Direct));
        drain(&dispatch.shared);
        let reported: Vec<_> = seen.try_iter().skip(256).collect();
        let expected = [
            path(1000, LinkPath::Direct, through(0)),
            end,
            path(1000, through(0), LinkPath::Direct),
        ];
        assert_eq!(reported, expected);
    }
}

#[test]
fn a_member_and_its_path_do_not_displace_each_other() {
    let (dispatch, seen) = host();
    for n in 0..256 {
        dispatch.push(state(n, n.into()));
        dispatch.push(path(n, LinkPath::Direct, through(n)));
    }
    dispatch.push(path(300, LinkPath::Direct, through(0)));
    dispatch.push(state(300, 300));
    assert_eq!(waiting(&dispatch), 514);
    drain(&dispatch.shared);
    assert_eq!(seen.try_iter().count(), 514);
}

#[test]
fn keeps_the_newest_1024_members_paths_and_locks() {
    let path = |of, n: u64| path(of, LinkPath::Direct, through(n as u32));
    for event in [state, lock_lost, path] {
        let (dispatch, seen) = host();
        for n in 0..MANY {
            dispatch.push(event(n, n.into()));
            assert!(waiting(&dispatch) <= 1024);
        }
        drain(&dispatch.shared);
        let reported: Vec<_> = seen.try_iter().collect();
        assert_eq!(reported.len(), 1024);
        assert_eq!(reported[1023], event(MANY - 1, (MANY - 1).into()));
    }
}

#[test]
fn beyond_64_reports_of_relays_the_newest_of_each_waits() {
    let report = |relay: &str, code| {
        Event::Relay(RelayReport {
            relay: relay.into(),
            code,
            observed: None,
        })
    };
    let (dispatch, seen) = host();
    dispatch.push(report("b", -19));
    for _ in 0..MANY {
        dispatch.push(report("a", 0));
        dispatch.push(report("a", -4));
        assert!(waiting(&dispatch) <= 64);
    }
    dispatch.push(report("b", 0));
    drain(&dispatch.shared);
    let reported: Vec<_> = seen.try_iter().collect();
    assert_eq!(reported.len(), 64);
    assert_eq!(reported[62..], [report("a", -4), report("b", 0)]);
}

#[test]
fn beyond_64_reports_of_a_mapped_port_the_newest_waits() {
    let report = |fault| Event::PortMapping(MappingReport::Failed(fault));
    let (dispatch, seen) = host();
    for _ in 0..MANY {
        dispatch.push(report(MappingFault::NoAnswer));
        dispatch.push(report(MappingFault::Refused));
        assert!(waiting(&dispatch) <= 64);
    }
    drain(&dispatch.shared);
    let reported: Vec<_> = seen.try_iter().collect();
    assert_eq!(reported.len(), 64);
    assert_eq!(reported[63], report(MappingFault::Refused));
}

#[test]
fn beyond_64_reports_of_turn_servers_the_newest_of_each_waits() {
    let report = |server: &str, code| {
        Event::Turn(TurnReport {
            server: server.into(),
            code,
            address: None,
            why: "".into(),
        })
    };
    let (dispatch, seen) = host();
    for _ in 0..MANY {
        dispatch.push(report("a", -19));
        dispatch.push(report("b", -17));
        assert!(waiting(&dispatch) <= 64);
    }
    dispatch.push(report("b", 0));
    drain(&dispatch.shared);
    let reported: Vec<_> = seen.try_iter().collect();
    assert_eq!(reported.len(), 64);
    assert_eq!(reported[62..], [report("a", -19), report("b", 0)]);
}

#[test]
fn dropped_data_and_slow_peers_are_reported_once_a_second() {
    let (dispatch, seen) = host();
    dispatch.push(Event::Joined(peer("b")));
    // A frame of the host after each.
    for _ in 0..20 {
        dispatch.push(dropped(1));
        dispatch.push(Event::SlowPeer(peer("b")));
        drain(&dispatch.shared);
    }
    let reported: Vec<_> = seen.try_iter().collect();
    let expected = [
        Event::Joined(peer("b")),
        dropped(1),
        Event::SlowPeer(peer("b")),
    ];
    assert_eq!(reported, expected);
    // The other counts come before its LEFT.
    dispatch.push(left("b"));
    drain(&dispatch.shared);
    let reported: Vec<_> = seen.try_iter().collect();
    let expected = [Event::SlowPeer(peer("b")), dropped(19), left("b")];
    assert_eq!(reported, expected);
}

/// Waits for a second of real time: the interval between two reports.
#[test]
fn drops_since_the_last_report_are_reported_without_another_event() {
    let dispatch = started(wide());
    let (sender, seen) = channel();
    dispatch.register_event_handler(Some(Arc::new(move |event: &Event| {
        let _ = sender.send(event.clone());
    })));
    dispatch.push(Event::Joined(peer("b")));
    dispatch.push(dropped(1));
    assert_eq!(next(&seen), Event::Joined(peer("b")));
    assert_eq!(next(&seen), dropped(1));
    until(&dispatch, |queue| queue.consumer_waits);
    for _ in 0..20 {
        dispatch.push(dropped(1));
    }
    assert_eq!(next(&seen), dropped(20));
}
