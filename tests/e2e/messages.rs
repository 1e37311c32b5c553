//! Messages arrive once and in order, or are refused.

use std::time::Duration;

use meta_mystia_network::config::Config;
use meta_mystia_network::error::SendError;
use meta_mystia_network::room::Reliable;

use crate::harness::{Member, eventually, id, message, quick, settled};

#[test]
fn messages_arrive_once_and_in_order() {
    let a = Member::open("a", "order");
    let b = Member::open("b", "order");
    b.connect_to(&a);
    settled(&[&a, &b]);
    for n in 0..3000_u32 {
        loop {
            match a.room.send_to(&id("b"), message(&n.to_le_bytes())) {
                Ok(()) => break,
                Err(SendError::QueueFull { .. }) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    }
    eventually("all messages", || b.messages().len() == 3000);
    for (n, (from, payload)) in b.messages().into_iter().enumerate() {
        assert_eq!(from, "a");
        assert_eq!(payload, u32::try_from(n).expect("small").to_le_bytes());
    }
}

#[test]
fn a_host_that_takes_nothing_stops_the_sender_and_loses_nothing() {
    let a = Member::open("a", "slow");
    let slow = Config {
        incoming_queue_capacity: 4,
        ..quick()
    };
    let b = Member::open_deaf("b", "slow", slow);
    b.connect_to(&a);
    settled(&[&a, &b]);
    let mut accepted = 0_u32;
    let payload = vec![0; 64 * 1024];
    // Ends when the receiver's windows and this member's queue are full.
    loop {
        let mut payload = payload.clone();
        payload[..4].copy_from_slice(&accepted.to_le_bytes());
        match a.room.send_to(&id("b"), message(&payload)) {
            Ok(()) => accepted += 1,
            Err(SendError::QueueFull { peers }) => {
                assert_eq!(peers, vec![id("b")]);
                std::thread::sleep(Duration::from_millis(50));
                if a.room.send_to(&id("b"), message(&payload)).is_err() {
                    break;
                }
                accepted += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(accepted >= 60, "4 MiB fit into the queue: {accepted}");
    b.listen();
    eventually("all accepted messages", || {
        b.messages().len() == accepted as usize
    });
    for (n, (_, payload)) in b.messages().into_iter().enumerate() {
        assert_eq!(payload[..4], u32::try_from(n).expect("small").to_le_bytes());
    }
}

#[test]
fn a_broadcast_reaches_everybody_and_the_leader_reaches_itself() {
    let a = Member::open("a", "cast");
    let b = Member::open("b", "cast");
    let c = Member::open("c", "cast");
    b.connect_to(&a);
    c.connect_to(&b);
    let leader = settled(&[&a, &b, &c]);
    a.room.broadcast(message(b"to all")).expect("accepted");
    for member in [&b, &c] {
        let expected = ("a".to_owned(), b"to all".to_vec());
        eventually("the broadcast", || member.messages().contains(&expected));
    }
    for member in [&a, &b, &c] {
        let name = member.room.peer_id().to_string();
        member
            .room
            .send_to_leader(message(name.as_bytes()))
            .expect("accepted");
        let is_leader = name == leader;
        let from_leader = member
            .room
            .send_from_leader(&message(b"as leader"), Reliable::default());
        assert_eq!(from_leader.is_ok(), is_leader);
        if !is_leader {
            assert_eq!(from_leader, Err(SendError::NotLeader));
        }
    }
    let leading = [&a, &b, &c]
        .into_iter()
        .find(|member| member.room.peer_id().as_str() == leader)
        .expect("one of them");
    for name in ["a", "b", "c"] {
        let expected = (name.to_owned(), name.as_bytes().to_vec());
        eventually("the message to the leader", || {
            leading.messages().contains(&expected)
        });
    }
}
