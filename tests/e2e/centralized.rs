//! Broadcasts through the leader, and messages that it forwards.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use meta_mystia_network::config::Config;
use meta_mystia_network::core::id::PeerId;
use meta_mystia_network::error::SendError;
use meta_mystia_network::room::Reliable;

use crate::harness::{Member, eventually, id, message, quick, settled};

/// Members of a room in which all broadcasts go through the leader.
fn centralized(names: &[&str], session: &str) -> Vec<Member> {
    let members: Vec<_> = names
        .iter()
        .map(|name| Member::open(name, session))
        .collect();
    for member in &members[1..] {
        member.connect_to(&members[0]);
    }
    settled(&members.iter().collect::<Vec<_>>());
    for member in &members {
        assert!(!member.room.is_centralized());
        member.room.set_centralized(true);
    }
    members
}

fn name(member: &Member) -> &str {
    member.room.peer_id().as_str()
}

fn all(members: &[Member]) -> Vec<&Member> {
    members.iter().collect()
}

/// The leader, and the others.
fn split(members: &[Member]) -> (&Member, Vec<&Member>) {
    let leader = settled(&all(members));
    let (leading, others): (Vec<_>, Vec<_>) =
        members.iter().partition(|member| name(member) == leader);
    (leading[0], others)
}

/// Broadcasts, again and again until it is accepted.
fn broadcast(member: &Member, payload: &[u8]) {
    loop {
        match member.room.broadcast(message(payload)) {
            Ok(()) => return,
            Err(
                SendError::QueueFull { .. } | SendError::NoLeader | SendError::PeerNotFound { .. },
            ) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("{}: {error}", name(member)),
        }
    }
}

fn numbers(count: u32) -> Vec<u32> {
    (0..count).collect()
}

/// Numbers that arrived from `origin`, in order.
fn received(member: &Member, origin: &str) -> Vec<u32> {
    member
        .messages()
        .into_iter()
        .filter(|(from, _)| from == origin)
        .map(|(_, payload)| u32::from_le_bytes(payload[..4].try_into().expect("four bytes")))
        .collect()
}

/// All members broadcast `count` numbers at the same time.
fn all_broadcast(members: &[Member], count: u32) {
    std::thread::scope(|scope| {
        for member in members {
            scope.spawn(move || (0..count).for_each(|n| broadcast(member, &n.to_le_bytes())));
        }
    });
}

fn all_received_from_all(members: &[Member], count: u32) {
    for member in members {
        for origin in members {
            let expected = if name(member) == name(origin) {
                Vec::new()
            } else {
                numbers(count)
            };
            eventually("all broadcasts", || {
                received(member, name(origin)).len() >= expected.len()
            });
            assert_eq!(received(member, name(origin)), expected);
        }
    }
}

#[test]
fn broadcasts_of_three_arrive_once_in_order_and_in_their_origins_names() {
    let members = centralized(&["a", "b", "c"], "three");
    all_broadcast(&members, 500);
    all_received_from_all(&members, 500);
}

#[test]
fn broadcasts_of_four_arrive_once_in_order_and_in_their_origins_names() {
    let members = centralized(&["a", "b", "c", "d"], "four");
    all_broadcast(&members, 300);
    all_received_from_all(&members, 300);
    for member in &members {
        assert_eq!(member.room.dropped_relays(), 0);
    }
}

#[test]
fn without_auto_forward_the_leaders_host_decides_what_goes_on() {
    let members = centralized(&["a", "b", "c"], "approve");
    let (leader, others) = split(&members);
    let (origin, third) = (others[0], others[1]);
    assert!(leader.room.is_auto_forward());
    leader.room.set_auto_forward(false);
    broadcast(origin, b"good");
    broadcast(origin, b"evil");
    let from_origin = |payload: &[u8]| (name(origin).to_owned(), payload.to_vec());
    eventually("the leader receives both", || {
        leader.messages() == [from_origin(b"good"), from_origin(b"evil")]
    });
    leader
        .room
        .forward(
            origin.room.peer_id(),
            None,
            message(b"good"),
            Reliable::default(),
        )
        .expect("the leader may");
    eventually("the approved one", || {
        third.messages() == [from_origin(b"good")]
    });
    // The next messages on the same lanes show that nothing else came.
    broadcast(leader, b"last");
    let last = (name(leader).to_owned(), b"last".to_vec());
    eventually("the last one", || {
        third.messages() == [from_origin(b"good"), last.clone()]
            && origin.messages() == [last.clone()]
    });
}

#[test]
fn only_the_leader_forwards_and_only_for_who_is_there() {
    let members = centralized(&["a", "b", "c"], "forward");
    let (leader, others) = split(&members);
    let (x, y) = (others[0], others[1]);
    let forward = |member: &Member, from: &PeerId, to: Option<&PeerId>| {
        member
            .room
            .forward(from, to, message(b"fwd"), Reliable::default())
    };
    let (x_id, y_id) = (x.room.peer_id(), y.room.peer_id());
    let stranger = id("stranger");
    let unknown = Err(SendError::PeerNotFound {
        id: stranger.clone(),
    });
    assert_eq!(forward(x, y_id, None), Err(SendError::NotLeader));
    assert_eq!(forward(leader, &stranger, None), unknown);
    assert_eq!(forward(leader, x_id, Some(&stranger)), unknown);
    let back = Err(SendError::ForwardedToOrigin { id: x_id.clone() });
    assert_eq!(forward(leader, x_id, Some(x_id)), back);

    let leader_id = leader.room.peer_id();
    assert_eq!(forward(leader, x_id, Some(y_id)), Ok(()));
    assert_eq!(forward(leader, x_id, Some(leader_id)), Ok(()));
    assert_eq!(forward(leader, leader_id, None), Ok(()));
    let reported = |from: &Member| (name(from).to_owned(), b"fwd".to_vec());
    eventually("what was forwarded", || {
        y.messages() == [reported(x), reported(leader)]
            && x.messages() == [reported(leader)]
            && leader.messages() == [reported(x)]
    });
}

#[test]
fn without_a_leader_a_broadcast_is_refused() {
    let config = Config {
        auto_election_enabled: false,
        ..quick()
    };
    let a = Member::open_with("a", "leaderless", config.clone());
    let b = Member::open_with("b", "leaderless", config);
    b.connect_to(&a);
    eventually("both", || {
        a.room.snapshot().connected == 1 && b.room.snapshot().connected == 1
    });
    b.room.set_centralized(true);
    let refused = b.room.broadcast(message(b"x"));
    assert_eq!(refused, Err(SendError::NoLeader));
    // Its own queries show the new leader when the call returns, and its broadcasts follow that.
    b.room.set_leader(&id("a")).expect("connected");
    b.room.broadcast(message(b"y")).expect("there is a leader");
    eventually("the leader learns from it that it leads", || {
        a.messages() == [("b".to_owned(), b"y".to_vec())]
    });
    b.room.set_centralized(false);
    assert!(!b.room.is_centralized());
    b.room.broadcast(message(b"z")).expect("direct");
    eventually("the direct one", || a.messages().len() == 2);
}

#[test]
fn a_leader_that_leaves_during_broadcasts_loses_and_repeats_nothing() {
    const COUNT: u32 = 600;
    let mut members = centralized(&["a", "b", "c", "d"], "leader leaves");
    let leader = split(&members).0;
    let at = members
        .iter()
        .position(|member| name(member) == name(leader))
        .expect("one of them");
    let leader = members.remove(at);
    std::thread::scope(|scope| {
        for member in &members {
            scope.spawn(move || {
                for n in 0..COUNT {
                    broadcast(member, &n.to_le_bytes());
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let first = &members[0];
        eventually("a good part", || {
            received(first, name(&members[1])).len() > 100
        });
        leader.room.close();
    });
    all_received_from_all(&members, COUNT);
}

#[test]
fn a_room_that_changes_its_leader_repeatedly_loses_nothing_and_delivers_nothing_twice() {
    const COUNT: u32 = 400;
    let members = centralized(&["a", "b", "c"], "musical chairs");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            all_broadcast(&members, COUNT);
            done.store(true, Ordering::Relaxed);
        });
        for turn in 0.. {
            if done.load(Ordering::Relaxed) {
                break;
            }
            let next = members[turn % 3].room.peer_id();
            members[(turn + 1) % 3]
                .room
                .set_leader(next)
                .expect("connected");
            // A member drops what a leader relays before it knows that leader.
            eventually("all follow", || {
                let leader = members.iter().map(Member::leader);
                leader
                    .into_iter()
                    .all(|leader| leader.as_deref() == Some(next.as_str()))
            });
        }
    });
    for member in &members {
        for origin in &members {
            if name(member) == name(origin) {
                continue;
            }
            eventually("all broadcasts", || {
                received(member, name(origin)).len() >= COUNT as usize
            });
            let received = received(member, name(origin));
            let different: BTreeSet<_> = received.iter().copied().collect();
            // In order through each leader; two leaders in turn are two paths.
            assert_eq!(received.len(), COUNT as usize, "once");
            assert_eq!(different, numbers(COUNT).into_iter().collect());
        }
    }
}

#[test]
fn a_member_that_takes_nothing_stops_the_origins_and_nothing_is_lost() {
    let small = Config {
        send_queue_capacity: 16,
        incoming_queue_capacity: 4,
        queue_bytes: 256 * 1024,
        ..quick()
    };
    let a = Member::open_with("a", "stopped", small.clone());
    let b = Member::open_with("b", "stopped", small.clone());
    let deaf = Member::open_deaf("deaf", "stopped", small);
    b.connect_to(&a);
    deaf.connect_to(&a);
    settled(&[&a, &b, &deaf]);
    a.room.set_leader(&id("a")).expect("itself");
    eventually("a leads", || settled(&[&a, &b, &deaf]) == "a");
    let open = deaf.listen_later();
    b.room.set_centralized(true);
    let mut accepted = 0_u32;
    let payload = |n: u32| [&n.to_le_bytes()[..], &[0; 4000]].concat();
    // Not compressed, to fill the windows of the links soon.
    for member in [&a, &b] {
        member.room.set_compression_threshold(usize::MAX);
    }
    let mut refused = 0;
    // Ends when no message was accepted for half a second.
    while refused < 50 {
        match b.room.broadcast(message(&payload(accepted))) {
            Ok(()) => (accepted, refused) = (accepted + 1, 0),
            Err(SendError::QueueFull { peers }) => {
                assert_eq!(peers, [id("a")]);
                refused += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => panic!("{error}"),
        }
        assert!(accepted < 5000, "it never stops");
    }
    drop(open);
    for member in [&a, &deaf] {
        eventually("all that was accepted", || {
            received(member, "b").len() == accepted as usize
        });
        assert_eq!(received(member, "b"), numbers(accepted));
    }
    broadcast(&b, &payload(accepted));
    eventually("it goes on", || {
        received(&deaf, "b").len() > accepted as usize
    });
}

#[test]
fn a_member_that_comes_back_under_its_name_begins_anew() {
    let mut members = centralized(&["a", "b", "c"], "again");
    members[0].room.set_leader(&id("a")).expect("itself");
    eventually("a leads", || settled(&all(&members)) == "a");
    broadcast(&members[1], b"\0\0\0\0");
    eventually("the first life", || received(&members[2], "b") == [0]);
    members.remove(1).room.close();
    let b = Member::open("b", "again");
    b.connect_to(&members[0]);
    settled(&[&members[0], &members[1], &b]);
    b.room.set_centralized(true);
    broadcast(&b, b"\x01\0\0\0");
    eventually("the second life", || received(&members[1], "b") == [0, 1]);
    assert_eq!(received(&members[0], "b"), [0, 1]);
}
