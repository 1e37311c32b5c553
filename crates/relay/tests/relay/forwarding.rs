//! What a relay is for: members of one room learn each other's keys, and their packets arrive.

use bytes::Bytes;
use mmn_relay::{Relay, Settings};
use room_transport::rendezvous::{FromRelay, MAX_PRESENT, ToRelay};
use room_transport::tunnel::packet::{Header, Part, Way, encode};

use crate::member::Process;

pub(crate) fn relay() -> Relay {
    Relay::start(Settings::default()).expect("a relay")
}

#[tokio::test]
async fn two_members_of_a_room_learn_each_others_keys_and_exchange_packets() {
    let relay = relay();
    let (one, two) = (Process::start(), Process::start());
    let mut first = one.enter(&relay, 7).await;
    assert_eq!(
        first.welcome,
        Some(FromRelay::Welcome {
            observed: one.endpoint.local_addr().expect("bound"),
            bytes_per_second: 512 << 10,
            present: 0,
        })
    );
    let mut second = two.enter(&relay, 7).await;
    assert_eq!(second.present(), 1);
    assert_eq!(second.names().await, [one.key()]);
    assert_eq!(first.names().await, [two.key()]);

    // As long as a packet of a link over a relay is.
    let long = [5; 1200];
    for number in 0..20 {
        first.packet(two.id(), number, &long);
        let (sender, piece) = second.received().await;
        assert_eq!((sender, piece.number), (one.id(), number));
        assert_eq!((piece.part, piece.bytes.len()), (Part::Whole, long.len()));
        second.packet(one.id(), number, b"back");
        let (sender, piece) = first.received().await;
        assert_eq!((sender, &piece.bytes[..]), (two.id(), &b"back"[..]));
    }

    drop(second);
    two.endpoint.close(0_u32.into(), b"");
    let gone = FromRelay::Gone { key: two.key() };
    assert_eq!(first.frame().await, gone);
    relay.stop();
    assert_eq!(first.end().await, -4);
}

#[tokio::test]
async fn packets_stay_within_a_room_and_name_their_sender_truly() {
    let relay = relay();
    let processes = [(); 3].map(|()| Process::start());
    let [one, two, stranger] = &processes;
    let first = one.enter(&relay, 7).await;
    let mut second = two.enter(&relay, 7).await;
    let outside = stranger.enter(&relay, 8).await;
    assert_eq!(outside.present(), 0);
    assert_eq!(second.names().await, [one.key()]);

    // To a member of another room; in another member's name; probes.
    outside.packet(two.id(), 1, b"from outside");
    first.packet(stranger.id(), 1, b"to the outside");
    let forged = Header {
        way: Way::From(two.id()),
        part: Part::Whole,
        number: 2,
    };
    first.datagram(encode(forged, b"forged"));
    first.datagram(Bytes::from_static(&[0]));
    first.packet(two.id(), 3, b"right");
    let (sender, piece) = second.received().await;
    assert_eq!((sender, piece.number), (one.id(), 3));
}

#[tokio::test]
async fn members_present_longest_come_first_and_more_brings_the_others() {
    let relay = relay();
    let mut others = Vec::new();
    for _ in 0..MAX_PRESENT + 2 {
        let process = Process::start();
        let member = process.enter(&relay, 7).await;
        others.push((process, member));
    }
    let keys: Vec<_> = others.iter().map(|(process, _)| process.key()).collect();
    let process = Process::start();
    let mut late = process.enter(&relay, 7).await;
    assert_eq!(late.present() as usize, keys.len());
    assert_eq!(late.names().await, keys[..MAX_PRESENT]);
    late.write(ToRelay::More).await;
    assert_eq!(late.names().await, keys[MAX_PRESENT..]);
    let newest = Process::start();
    let _member = newest.enter(&relay, 7).await;
    assert_eq!(late.names().await, [newest.key()]);
}

#[tokio::test]
async fn hidden_members_are_named_to_none_and_reach_those_whose_keys_they_know() {
    let relay = relay();
    let (host, guest) = (Process::start(), Process::start());
    let first = host.enter(&relay, 7).await;
    let hidden = guest.try_enter(&relay, 7, true, None).await;
    let mut hidden = hidden.expect("admitted");
    assert_eq!(hidden.names().await, [host.key()]);
    hidden.packet(host.id(), 1, b"to the host");
    let (sender, _) = first.received().await;
    assert_eq!(sender, guest.id());
    first.packet(guest.id(), 1, b"to the guest");
    assert_eq!(hidden.received().await.0, host.id());

    // The next frame of the host names the next one, and not the hidden one.
    let mut first = first;
    let other = Process::start();
    let third = other.enter(&relay, 7).await;
    assert_eq!(third.present(), 1);
    assert_eq!(first.names().await, [other.key()]);
}

#[tokio::test]
async fn packets_of_a_blocked_key_do_not_arrive_until_the_member_sends_to_it() {
    let relay = relay();
    let (one, two) = (Process::start(), Process::start());
    let mut first = one.enter(&relay, 7).await;
    let mut second = two.enter(&relay, 7).await;
    assert_eq!(first.names().await, [two.key()]);
    first.write(ToRelay::Block { key: two.key() }).await;
    // Frames are read in order: when the answer is here, the block is in place.
    let (third, fourth) = (Process::start(), Process::start());
    let hidden = third.try_enter(&relay, 7, true, None).await;
    let _hidden = hidden.expect("admitted");
    first.write(ToRelay::Block { key: fourth.key() }).await;
    wait_for_block(&relay, &second, &one).await;

    second.packet(one.id(), 1, b"blocked");
    second.packet(one.id(), 2, b"blocked");
    first.packet(two.id(), 1, b"lifts");
    assert_eq!(second.received().await.1.number, 1);
    second.packet(one.id(), 3, b"arrives");
    assert_eq!(first.received().await.1.number, 3);
    assert_eq!(second.names().await, [one.key()]);
}

/// Sends packets until the relay drops one because of a block.
async fn wait_for_block(relay: &Relay, from: &crate::member::Member, to: &Process) {
    use mmn_relay::figures::Drop;
    room_transport::testing::in_time(async {
        while relay.figures().drops(Drop::Blocked) == 0 {
            from.packet(to.id(), 0, b"probe");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}
