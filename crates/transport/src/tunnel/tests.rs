use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use room_core::virtual_address::VirtualId;

use super::packet::{
    HEADER_BYTES, Halves, Header, MAX_HALVES, MAX_HALVES_OF_ONE, MAX_PACKET_BYTES, Part, Piece,
    Way, datagrams, decode, encode,
};
use super::queues::{MAX_QUEUED, MAX_QUEUED_OF_ONE, Queues};

fn noise(len: usize) -> Vec<u8> {
    (0..len as u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

#[test]
fn queues_are_bounded_and_served_in_turn() {
    let member = |n: u16| n.to_be_bytes();
    let mut queues = Queues::<[u8; 2], u16, MAX_QUEUED_OF_ONE, MAX_QUEUED>::default();
    let mut dropped = 0;
    for number in 0..1000 {
        dropped += queues.push(member(1), number);
    }
    assert_eq!((queues.len(), dropped), (MAX_QUEUED_OF_ONE, 1000 - 128));
    queues.push(member(2), 1);
    queues.push(member(3), 1);
    assert_eq!(queues.queues(), 3);
    let turns: Vec<_> = (0..4).filter_map(|_| queues.pop()).collect();
    let members: Vec<_> = turns.iter().map(|(member, _)| *member).collect();
    assert_eq!(members, [member(1), member(2), member(3), member(1)]);
    assert_eq!(turns[0].1, 1000 - 128, "the oldest that is left");
    assert_eq!(queues.clear(member(1)), 126);
    assert!(queues.is_empty() && queues.pop().is_none());

    let mut pushed = 0;
    for n in 0..64 {
        for number in 0..100 {
            pushed += 1 - queues.push(member(n), number);
        }
    }
    assert_eq!((queues.len(), pushed as usize), (MAX_QUEUED, MAX_QUEUED));
    // The last ones found room, at the expense of the longest queue.
    assert!(queues.clear(member(63)) > 20);
    let waiting = queues.len();
    assert_eq!(queues.clear_all(), waiting as u64);
    assert!(queues.is_empty() && queues.queues() == 0);
}

#[test]
fn only_the_head_of_a_queue_is_dropped_as_old() {
    let mut queues = Queues::<char, u16, 8, 16>::default();
    for (key, entry) in [('a', 1), ('a', 5), ('a', 2), ('b', 9), ('c', 1)] {
        queues.push(key, entry);
    }
    assert_eq!(queues.drop_old(|entry| *entry < 5), 2);
    assert_eq!((queues.len(), queues.queues()), (3, 2));
    let left: Vec<_> = std::iter::from_fn(|| queues.pop()).collect();
    assert_eq!(left, [('a', 5), ('b', 9), ('a', 2)]);
}

#[test]
fn parts_that_wait_are_bounded() {
    let half = |number| Piece {
        part: Part::First,
        number,
        bytes: Bytes::from_static(b"half"),
    };
    let mut halves = Halves::default();
    let mut given_up = 0;
    for number in 0..100 {
        given_up += u32::from(halves.take([1; 8], half(number)).1);
    }
    assert_eq!((halves.waiting(), given_up), (MAX_HALVES_OF_ONE, 92));
    for origin in 2..100 {
        halves.take([origin; 8], half(0));
    }
    assert_eq!(halves.waiting(), MAX_HALVES);
    let second = |number| Piece {
        part: Part::Second,
        ..half(number)
    };
    assert_eq!(
        halves.take([1; 8], second(99)),
        (None, true),
        "given up before"
    );
    let whole = halves.take([99; 8], second(0)).0;
    assert_eq!(whole.as_deref(), Some(&b"halfhalf"[..]));
    let long = Piece {
        part: Part::First,
        number: 5,
        bytes: vec![0; MAX_PACKET_BYTES].into(),
    };
    halves.take([1; 8], long);
    assert_eq!(
        halves.take([1; 8], second(5)),
        (None, true),
        "too long together"
    );
}

/// The network's treatment of one datagram.
#[derive(Debug, Clone)]
struct Fortune {
    copies: usize,
    delay: usize,
}

proptest! {
    #[test]
    fn packets_arrive_whole_or_not_at_all(
        packets in prop::collection::vec((0..4_u8, 1..=MAX_PACKET_BYTES), 1..40),
        fortunes in prop::collection::vec((0..3_usize, 0..6_usize), 80),
        max in HEADER_BYTES + MAX_PACKET_BYTES / 2..HEADER_BYTES + MAX_PACKET_BYTES + 10,
    ) {
        let mut in_flight = Vec::new();
        let mut sent = BTreeMap::new();
        let mut certain = Vec::new();
        let mut fortunes = fortunes.into_iter().map(|(copies, delay)| Fortune { copies, delay });
        for (number, (origin, len)) in packets.into_iter().enumerate() {
            let number = u16::try_from(number).expect("few");
            let from = [origin; 8];
            let bytes = Bytes::from(noise(len + usize::from(number)).split_off(usize::from(number)));
            let piece = Piece { part: Part::Whole, number, bytes: bytes.clone() };
            let (first, second) = datagrams(Way::From(from), &piece, max).expect("it fits");
            let is_whole = second.is_none();
            let mut copies = usize::MAX;
            for datagram in [Some(first), second].into_iter().flatten() {
                prop_assert!(datagram.len() <= max);
                let fortune = fortunes.next().expect("enough");
                copies = copies.min(fortune.copies);
                for copy in 0..fortune.copies {
                    in_flight.push((in_flight.len() + fortune.delay * (copy + 1), datagram.clone()));
                }
            }
            if is_whole && copies > 0 {
                certain.push(number);
            }
            sent.insert(number, (from, bytes));
        }
        in_flight.sort_by_key(|(at, _)| *at);
        let mut halves = Halves::default();
        let mut arrived = BTreeMap::<u16, usize>::new();
        for (_, datagram) in in_flight {
            let (way, piece) = decode(datagram).expect("well-formed");
            let number = piece.number;
            let Way::From(from) = way else { panic!("turned around") };
            if let (Some(whole), _) = halves.take(from, piece) {
                prop_assert_eq!(&(from, whole), &sent[&number]);
                *arrived.entry(number).or_default() += 1;
            }
            prop_assert!(halves.waiting() <= MAX_HALVES);
        }
        for number in certain {
            prop_assert!(arrived.contains_key(&number));
        }
    }

    #[test]
    fn a_datagram_carries_its_contents(
        forward: bool,
        id: VirtualId,
        part in 0..3_usize,
        number: u16,
        bytes in prop::collection::vec(any::<u8>(), 1..MAX_PACKET_BYTES),
    ) {
        let way = if forward { Way::To(id) } else { Way::From(id) };
        let part = [Part::Whole, Part::First, Part::Second][part];
        let decoded = decode(encode(Header { way, part, number }, &bytes));
        prop_assert_eq!(decoded, Some((way, Piece { part, number, bytes: bytes.into() })));
    }
}
