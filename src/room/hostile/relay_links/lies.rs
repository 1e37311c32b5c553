//! Relays that lie: what they present, whose packets they forge, what they make of the packets that they forward.

use room_transport::rendezvous::{Frame, FromRelay, MAX_PRESENT};
use room_transport::tunnel::packet::{Header, Part, Piece, Way, encode};

use super::*;
use crate::core::virtual_address::{VirtualId, virtual_id};

#[tokio::test]
async fn a_relay_that_swaps_repeats_and_misdirects_packets_loses_and_doubles_no_message() {
    let relay = TestRelay::start(Rules::default());
    let (a, b) = relayed(relay.line()).await;
    let mut held: Option<(VirtualId, VirtualId, Piece)> = None;
    let mut count = 0_u64;
    relay.bends(move |sender, target, piece| {
        count += 1;
        let copy = |piece: &Piece| Piece {
            part: piece.part,
            number: piece.number,
            bytes: piece.bytes.clone(),
        };
        let mut packets = vec![(sender, target, copy(&piece))];
        if count.is_multiple_of(3) {
            // Again, and under the name of another.
            packets.push((sender, target, copy(&piece)));
            packets.push(([9; 8], target, copy(&piece)));
        }
        if count.is_multiple_of(5) {
            // To the one who sent it, in its own name.
            packets.push((sender, sender, copy(&piece)));
        }
        if count.is_multiple_of(7) {
            let held_back = packets.remove(0);
            packets.extend(held.replace(held_back));
        }
        packets
    });
    carries_through(&a, &b, async {}).await;
    let connections = a.census().connections;
    assert!(connections < 20, "{connections}");
}

#[tokio::test]
async fn a_relay_that_floods_and_lies_costs_a_room_no_link_and_no_memory() {
    let (relay, a, b) = directly_linked().await;
    let events = events_of(&a);
    let b_id = virtual_id(b.room.key());
    let victims = relay.entered();
    let victim = victims.iter().find(|member| member.key == a.room.key());
    let victim = victim.expect("entered").clone();
    let mut number = 0_u32;
    let mut made_up = move || {
        number += 1;
        let mut key = [0; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        Fingerprint(key)
    };
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        let keys = (0..MAX_PRESENT).map(|_| made_up()).collect();
        let _ = victim.frames.send(FromRelay::Present { keys }.encode());
        let port = u16::try_from(number_of(made_up()) % 60_000).unwrap_or(1) + 1;
        let address = SocketAddr::from(([198, 51, 100, 7], port));
        let _ = victim.frames.send(FromRelay::Observed { address }.encode());
        for origin in [virtual_id(made_up()), b_id, virtual_id(a.room.key())] {
            for first in [0xc3, 0x43] {
                let mut packet = vec![0; 1200];
                packet[0] = first;
                packet[5] = 8;
                let header = Header {
                    way: Way::From(origin),
                    part: Part::Whole,
                    number: 1,
                };
                let _ = victim.connection.send_datagram(encode(header, &packet));
            }
        }
        let header = Header {
            way: Way::To(b_id),
            part: Part::First,
            number: 2,
        };
        let _ = victim.connection.send_datagram(encode(header, &[1; 40]));
        let _ = victim.connection.send_datagram(Bytes::from_static(&[2]));
        let _ = victim
            .connection
            .send_datagram(Bytes::from_static(&[77; 9]));
        sleep(Duration::from_millis(2)).await;
    }
    exchange(&a, &b, b"undisturbed").await;
    assert_eq!(a.comings_and_goings(), [joined("b")]);
    // The packets to b, of which none may go the member's way.
    assert_eq!(path(&a, "b"), Some(LinkPath::Direct));
    let connections = a.census().connections;
    assert!(connections < 90, "{connections}");
    // The host receives none of those addresses: the first minute has not passed.
    let seen = reports(&events)
        .into_iter()
        .filter_map(|report| report.observed);
    assert!(seen.count() <= 1);
}

#[tokio::test]
async fn a_frame_that_is_too_long_ends_the_link_with_the_relay_and_the_member_enters_again() {
    let relay = TestRelay::start(Rules::default());
    let (a, b) = relayed(relay.line()).await;
    let members = relay.entered();
    let victim = members.iter().find(|member| member.key == a.room.key());
    let mut huge = vec![0xff, 0xff];
    huge.resize(2 + 0xffff, 67);
    let victim = victim.expect("entered");
    let _ = victim.frames.send(huge.into());
    eventually("it enters again", || relay.entries().len() > 2).await;
    exchange(&a, &b, b"undisturbed").await;
    assert_eq!(a.comings_and_goings(), [joined("b")]);
}

fn number_of(key: Fingerprint) -> u32 {
    let [a, b, c, d, ..] = key.0;
    u32::from_be_bytes([a, b, c, d])
}
