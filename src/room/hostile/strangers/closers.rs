//! Dials that end with their first packet.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Instant;

use quinn::ConnectionId;
use room_transport::identity::server_config;
use room_transport::quic::transport_config;

use crate::net::accept::MAX_ADMISSIONS;
use crate::net::lingering::MAX_LINGERING;
use crate::room::hostile::*;

/// Minimum length of the first packet of a dial (RFC 9000 section 14.1).
const PACKET_BYTES: usize = 1200;

/// The first packet of a dial, with a CONNECTION_CLOSE and padding (RFC 9000 sections 17.2.2 and 19.19).
pub(in crate::room::hostile) fn only_a_close(config: &quinn::ServerConfig, number: u32) -> Vec<u8> {
    let name = [number.to_be_bytes(), [7; 4]].concat();
    let keys = config.crypto.initial_keys(1, &ConnectionId::new(&name));
    let Ok(keys) = keys else { panic!("version 1") };
    // Initial, with a packet number of four bytes; version 1; both connection ids; no token.
    let mut packet = vec![0xc3, 0, 0, 0, 1];
    for _ in 0..2 {
        packet.push(8);
        packet.extend(&name);
    }
    packet.push(0);
    let rest = u16::try_from(PACKET_BYTES - packet.len() - 2).expect("short");
    packet.extend((0x4000 | rest).to_be_bytes());
    let number_at = packet.len();
    packet.extend([0; 4]);
    let header_len = packet.len();
    packet.extend([0x1c, 0, 0, 0]);
    packet.resize(PACKET_BYTES, 0);
    // Encrypted for the server's keys.
    keys.packet.remote.encrypt(0, &mut packet, header_len);
    keys.header.remote.encrypt(number_at, &mut packet);
    packet
}

/// Sockets with three addresses: each address has a limited number of the places.
pub(in crate::room::hostile) fn sockets() -> [UdpSocket; 3] {
    [1, 2, 3].map(|host| {
        let address = SocketAddr::from((IpAddr::from([127, 0, 0, host]), 0));
        UdpSocket::bind(address).expect("bound")
    })
}

/// Sends for 8 s of real time: it takes that long to fill the places again and again, until more linger than the bound.
#[tokio::test]
async fn connections_that_a_close_opens_are_bounded_and_soon_over() {
    let pair = Pair::settled("closers").await;
    let process = Process::start();
    let config = server_config(&process.identity, Arc::new(transport_config()));
    let config = config.expect("a configuration");
    let sockets = sockets();
    let (began, mut number, mut most) = (Instant::now(), 0, 0);
    while began.elapsed() < Duration::from_secs(8) {
        for socket in &sockets {
            number += 1;
            let _ = socket.send_to(&only_a_close(&config, number), pair.a.address());
        }
        sleep(Duration::from_millis(5)).await;
        most = most.max(pair.a.census().connections);
    }
    assert!(most > 50, "they opened {most} connections");
    assert!(
        most <= MAX_LINGERING + MAX_ADMISSIONS + 1,
        "{most} connections"
    );
    let honest = Host::open("honest", "closers");
    assert_eq!(honest.connect(&pair.a).await, (true, 0));
    eventually("nothing is left of them", || {
        pair.a.census().connections == 2
    })
    .await;
    pair.undisturbed("closers").await;
}
