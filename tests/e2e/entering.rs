//! Admission to a real room, removal from it, and its end.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use meta_mystia_network::config::{Config, DiscoveryMode};
use meta_mystia_network::core::wire::{Authority, HostMode, Strategy};
use meta_mystia_network::dispatch::{EndReason, Event, LeftReason};
use meta_mystia_network::error::{Code, Coded};
use meta_mystia_network::room::Reliable;
use meta_mystia_network::simulated::SimulatedNetwork;

use crate::harness::{Member, Report, TIMEOUT, eventually, id, message, quick, settled};

/// Every event of a member's host from now on.
struct Events(mpsc::Receiver<Event>);

impl Events {
    fn of(member: &Member) -> Self {
        let (sender, events) = mpsc::channel();
        let handler = move |event: &Event| {
            // The receiver is gone at the end of a test.
            let _ = sender.send(event.clone());
        };
        let dispatch = member.room.dispatch();
        dispatch.register_event_handler(Some(Arc::new(handler)));
        Self(events)
    }

    /// The first value that `find` returns for an event.
    fn next<T>(&self, what: &str, find: impl Fn(&Event) -> Option<T>) -> T {
        let limit = Instant::now() + TIMEOUT;
        loop {
            let left = limit.saturating_duration_since(Instant::now());
            let event = self.0.recv_timeout(left);
            let event = event.unwrap_or_else(|_| panic!("no member was notified of {what}"));
            if let Some(found) = find(&event) {
                return found;
            }
        }
    }

    /// The asking member, its payload, and the number of its request.
    fn request(&self) -> (String, Vec<u8>, u64) {
        self.next("a join request", |event| match event {
            Event::JoinRequest {
                request,
                peer,
                payload,
                ..
            } => Some((peer.to_string(), payload.clone(), *request)),
            _ => None,
        })
    }

    /// Code, reason and bytes of the next connection result.
    fn result(&self) -> (i32, i32, Vec<u8>) {
        self.next("a connection result", |event| match event {
            Event::ConnectionResult(result) => {
                Some((result.code, result.reason, result.bytes.to_vec()))
            }
            _ => None,
        })
    }

    fn left(&self, peer: &str) -> (LeftReason, i32, Vec<u8>) {
        self.next("a departure", |event| match event {
            Event::Left(left) if left.peer == id(peer) => {
                Some((left.why, left.code, left.bytes.clone()))
            }
            _ => None,
        })
    }

    fn room_ended(&self) -> (EndReason, i32, Vec<u8>) {
        self.next("the end of the room", |event| match event {
            Event::RoomEnded { why, code, bytes } => Some((*why, *code, bytes.clone())),
            _ => None,
        })
    }
}

/// A settled room in which the first leads.
fn room_of(names: &[&str], session: &str) -> Vec<Member> {
    let members: Vec<_> = names
        .iter()
        .map(|name| Member::open(name, session))
        .collect();
    for member in &members[1..] {
        member.connect_to(&members[0]);
    }
    let all: Vec<_> = members.iter().collect();
    settled(&all);
    members[0]
        .room
        .set_leader(&id(names[0]))
        .expect("connected");
    eventually("the first leads", || {
        members
            .iter()
            .all(|member| member.leader().as_deref() == Some(names[0]))
    });
    members
}

/// The code with which a dial of `to` ends.
fn dial(from: &Member, to: &Member) -> i32 {
    let events = Events::of(from);
    from.connect_to(to);
    events.result().0
}

#[test]
fn the_leaders_host_decides_on_newcomers_at_other_members() {
    let members = room_of(&["a", "b"], "asked");
    let asked = Events::of(&members[0]);
    members[0].room.ask_host(true).expect("open");
    let c = Member::open("c", "asked");
    let result = Events::of(&c);
    c.room.set_join_payload(b"level 3").expect("short");
    c.connect_to(&members[1]);
    let (peer, payload, request) = asked.request();
    assert_eq!((peer.as_str(), &payload[..]), ("c", &b"level 3"[..]));
    members[0]
        .room
        .reject_join(request, 77, b"level 5 at least")
        .expect("open");
    let rejected = (Code::Rejected.value(), 77, b"level 5 at least".to_vec());
    assert_eq!(result.result(), rejected);
    let unknown = members[0].room.accept_join(request).expect_err("answered");
    assert_eq!(unknown.code(), Code::PeerNotFound);

    c.room.set_join_payload(b"level 5").expect("short");
    c.connect_to(&members[1]);
    let (_, payload, request) = asked.request();
    assert_eq!(payload, b"level 5");
    members[0].room.accept_join(request).expect("open");
    assert_eq!(result.result().0, 0);
    settled(&[&members[0], &members[1], &c]);
}

#[test]
fn a_newcomer_without_an_answer_is_refused_in_time() {
    let members = room_of(&["a"], "unanswered");
    members[0].room.ask_host(true).expect("open");
    let quickly = Config {
        handshake_timeout: Duration::from_secs(2),
        ..quick()
    };
    let b = Member::open_with("b", "unanswered", quickly);
    assert_eq!(dial(&b, &members[0]), Code::Timeout.value());
}

#[test]
fn a_kicked_member_receives_the_reason_and_no_member_takes_it_back() {
    let members = room_of(&["a", "b", "c"], "kick");
    let reported: Vec<_> = members.iter().map(Events::of).collect();
    let refused = members[1]
        .room
        .kick(&id("c"), 0, b"")
        .expect_err("it does not lead");
    assert_eq!(refused.code(), Code::NotLeader);
    members[0]
        .room
        .kick(&id("c"), 9, b"cheating")
        .expect("it leads");
    let why = (LeftReason::Kicked, 9, b"cheating".to_vec());
    assert_eq!(reported[0].left("c"), why);
    assert_eq!(reported[1].left("c"), why);
    let end = (EndReason::Kicked, 9, b"cheating".to_vec());
    assert_eq!(reported[2].room_ended(), end);
    for member in ["a", "b"] {
        let why = (LeftReason::RoomEnded, 0, Vec::new());
        assert_eq!(reported[2].left(member), why, "after the end of the room");
    }
    for member in &members[..2] {
        assert_eq!(
            dial(&members[2], member),
            Code::Rejected.value(),
            "its old life"
        );
    }
    members[2].room.close();
    let again = Member::open("c", "kick");
    for member in &members[..2] {
        assert_eq!(dial(&again, member), Code::Rejected.value(), "its name");
    }
    settled(&[&members[0], &members[1]]);
}

#[test]
fn the_leader_s_limit_holds_at_every_contact() {
    let members = room_of(&["a", "b"], "limit");
    let refused = members[1]
        .room
        .set_max_peers(1)
        .expect_err("it does not lead");
    assert_eq!(refused.code(), Code::NotLeader);
    members[0].room.set_max_peers(1).expect("it leads");
    let c = Member::open("c", "limit");
    for contact in &members {
        assert_eq!(dial(&c, contact), Code::MaxConnectionsReached.value());
    }
    members[0].room.set_max_peers(0).expect("it leads");
    assert_eq!(dial(&c, &members[1]), 0);
    settled(&[&members[0], &members[1], &c]);
}

fn with_mode(host_mode: HostMode) -> Config {
    Config {
        host_mode,
        ..quick()
    }
}

#[test]
fn a_room_with_a_fixed_host_has_one_and_ends_with_it() {
    let host = Member::open_with("h", "hosted", with_mode(HostMode::Host));
    let guests =
        ["z", "y"].map(|name| Member::open_with(name, "hosted", with_mode(HostMode::Guest)));
    for guest in &guests {
        assert_eq!(dial(guest, &host), 0);
    }
    assert_eq!(settled(&[&host, &guests[0], &guests[1]]), "h");
    let refused = guests[0].room.set_leader(&id("z")).expect_err("a guest");
    assert_eq!(refused.code(), Code::Rejected);
    for (name, mode) in [("second", HostMode::Host), ("elector", HostMode::Off)] {
        let other = Member::open_with(name, "hosted", with_mode(mode));
        assert_eq!(dial(&other, &host), Code::PolicyMismatch.value(), "{name}");
    }
    let reported: Vec<_> = guests.iter().map(Events::of).collect();
    host.room.close();
    for events in reported {
        assert_eq!(events.room_ended(), (EndReason::HostLeft, 0, Vec::new()));
    }
}

#[test]
fn a_fixed_host_leads_as_soon_as_its_room_is_open() {
    for strategy in [
        Strategy::Raft,
        Strategy::Gossip {
            strict_lowest: true,
        },
    ] {
        let config = |host_mode| Config {
            strategy,
            auto_election_enabled: false,
            max_peers: 1,
            ..with_mode(host_mode)
        };
        let host = Member::open_with("h", "at once", config(HostMode::Host));
        assert!(host.room.snapshot().is_leader);
        assert_eq!(host.leader().as_deref(), Some("h"));
        let sent = host
            .room
            .send_from_leader(&message(b"no peer receives it"), Reliable::default());
        assert_eq!(sent, Ok(()));
        let refused = host.room.kick(&id("x"), 0, b"").expect_err("not there");
        assert_eq!(refused.code(), Code::PeerNotFound);
        // A member that dials itself, even before it has registered for messages.
        let deaf = Member::open_deaf("d", "at once", config(HostMode::Host));
        assert_eq!(deaf.room.send_to_leader(message(b"hello")), Ok(()));
        deaf.room.set_max_peers(9).expect("it leads");
        deaf.listen();
        deaf.wait_for(&Report::Message("d".into(), b"hello".to_vec()));
        let [guest, late] =
            ["g", "l"].map(|name| Member::open_with(name, "at once", config(HostMode::Guest)));
        assert_eq!(dial(&guest, &host), 0);
        assert_eq!(settled(&[&host, &guest]), "h");
        // The room's limit from its options.
        let full = Code::MaxConnectionsReached.value();
        assert_eq!(dial(&late, &host), full);
        for member in [&host, &guest] {
            // The callback may come after the query shows the change.
            member.wait_for(&Report::Leader("h".into()));
            let reported = member.reported().into_iter();
            let leaders: Vec<_> = reported
                .filter(|reported| matches!(reported, Report::Leader(_)))
                .collect();
            assert_eq!(leaders, [Report::Leader("h".into())]);
        }
    }
}

#[test]
fn an_observer_follows_and_never_leads() {
    let observing = Config {
        eligible: false,
        ..quick()
    };
    let a = Member::open("a", "observed");
    let observer = Member::open_with("z", "observed", observing);
    assert_eq!(dial(&observer, &a), 0);
    assert_eq!(settled(&[&a, &observer]), "a");
    let refused = a.room.set_leader(&id("z")).expect_err("an observer");
    assert_eq!(refused.code(), Code::Rejected);
    // The two swap roles.
    observer.room.set_eligible(true).expect("open");
    a.room.set_eligible(false).expect("open");
    eventually("the other leads", || {
        [&a, &observer]
            .iter()
            .all(|member| member.leader().as_deref() == Some("z"))
    });
}

#[test]
fn rules_that_differ_keep_members_apart() {
    let a = Member::open("a", "rules differ");
    let strict = Config {
        authority: Authority::LeaderOnly,
        ..quick()
    };
    let b = Member::open_with("b", "rules differ", strict);
    assert_eq!(dial(&b, &a), Code::PolicyMismatch.value());
    assert!(!a.reported().contains(&Report::Joined("b".into())));
}

/// As `docs/entering.md` promises: each answer restarts the timeout of a dial.
#[test]
fn a_second_in_each_direction_is_not_too_slow_for_the_default_timeouts() {
    let defaults = || Config {
        discovery: DiscoveryMode::Off,
        ..Config::default()
    };
    let (host, guest) = (
        Member::open_with("host", "slow line", defaults()),
        Member::open_with("guest", "slow line", defaults()),
    );
    let second = SimulatedNetwork {
        lag: Duration::from_secs(1),
        ..SimulatedNetwork::default()
    };
    for member in [&host, &guest] {
        let set = member.room.simulate_network(second);
        set.expect("in the limits");
    }
    let events = Events::of(&guest);
    let begun = Instant::now();
    guest.connect_to(&host);
    let (code, ..) = events.result();
    assert_eq!(code, 0);
    // Four round trips of two seconds: longer than one handshake timeout.
    assert!(begun.elapsed() > Duration::from_secs(5));
    settled(&[&host, &guest]);
}
