//! Members that carry, and make up the origins of what they deliver.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use room_transport::identity::SERVER_NAME;
use room_transport::tunnel::packet::{Part, Piece, Way, datagrams};
use tokio::net::UdpSocket;

use super::cut::cut;
use super::*;
use crate::core::virtual_address::VirtualId;

/// Forged first packets, each of another origin.
const FORGED: usize = 10_000;
/// Real first packets of dials; each is sent under several origins.
const DIALS: usize = 500;
/// Connections that forged packets may cost: places of one carrier, and failed ones that QUIC has not let go.
const MAX_COST: usize = 4 + 32;

/// First packets of dials, as QUIC sends them.
async fn first_packets() -> Vec<Bytes> {
    let dialler = Process::start();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let socket = socket.expect("bound");
    let address = socket.local_addr().expect("bound");
    let mut packets = Vec::new();
    let mut seen = BTreeSet::new();
    while packets.len() < DIALS {
        let config = dialler.client(None, ALPN);
        let dial = dialler.endpoint.connect_with(config, address, SERVER_NAME);
        let dial = dial.expect("an address");
        let mut buffer = [0; 2048];
        let len = in_time(socket.recv(&mut buffer)).await.expect("a packet");
        drop(dial);
        // A close, or a packet that was sent again, begins no other connection.
        let id = buffer[6..14].to_vec();
        if len >= 1200 && seen.insert(id) {
            packets.push(Bytes::copy_from_slice(&buffer[..len]));
        }
    }
    packets
}

/// Delivers each packet of `packets` in turn, from origins that do not exist.
async fn forge(carrier: Connection, packets: Vec<Bytes>, sent: Arc<AtomicUsize>) {
    for (number, packet) in packets.iter().cycle().enumerate() {
        let mut origin = VirtualId::default();
        origin.copy_from_slice(&(number as u64).to_be_bytes());
        let piece = Piece {
            part: Part::Whole,
            number: number as u16,
            bytes: packet.clone(),
        };
        let max = carrier.max_datagram_size().expect("datagrams are on");
        let (first, second) = datagrams(Way::From(origin), &piece, max).expect("it fits");
        for datagram in [Some(first), second].into_iter().flatten() {
            let taken = carrier.send_datagram_wait(datagram).await;
            taken.expect("the link lives");
        }
        sent.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn ten_thousand_origins_that_a_carrier_makes_up_keep_no_newcomer_out() {
    let session = "origins";
    let Pair { a, b } = Pair::settled(session).await;
    b.room.set_leader(&id("b")).expect("a member");
    eventually("b leads", || {
        a.room.snapshot().leader == Some(id("b")) && b.room.snapshot().leader == Some(id("b"))
    })
    .await;
    let packets = first_packets().await;
    let liar = Attacker::new("z", session);
    let member = liar.join(&a).await;
    let sent = Arc::<AtomicUsize>::default();
    let flood = forge(member.connection.clone(), packets, Arc::clone(&sent));
    let flood = tokio::spawn(flood);
    eventually("the places of the carrier are taken", || {
        sent.load(Ordering::Relaxed) > FORGED / 10
    })
    .await;

    // Directly.
    let newcomer = Host::open("n", session);
    let start = Instant::now();
    assert_eq!(newcomer.connect(&a).await, (true, 0));
    assert!(start.elapsed() < quick().handshake_timeout / 2);
    a.wait_for(joined("n"), 1).await;

    // Through another carrier, the leader.
    let apart = Host::open("c", session);
    cut(apart.port(), a.port());
    cut(a.port(), apart.port());
    let start = Instant::now();
    assert_eq!(apart.connect(&b).await, (true, 0));
    a.wait_for(joined("c"), 1).await;
    apart.wait_for(joined("a"), 1).await;
    assert!(start.elapsed() < quick().handshake_timeout * 2);

    eventually("all packets are sent", || {
        sent.load(Ordering::Relaxed) >= FORGED
    })
    .await;
    assert!(!flood.is_finished(), "the liar is still a member");
    let honest = 3 + 1;
    let connections = a.census().connections;
    assert!(connections <= MAX_COST + 2 * honest, "{connections}");
    flood.abort();
    for (from, to) in [(&a, &apart), (&apart, &a), (&a, &b), (&newcomer, &a)] {
        from.send(&to.name, b"after").await;
        to.wait_for(reported(&from.name, b"after"), 1).await;
        assert_eq!(to.times(&left(&from.name)), 0);
    }
}
