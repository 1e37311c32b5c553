//! Members that lie about addresses: what a whole room sends to a machine that has nothing to do with it.

use std::time::Instant;

use tokio::net::UdpSocket;

use super::*;
use crate::core::wire::PeerEntry;

/// Honest members of the room; with the liar it has 16.
const HONEST: usize = 15;
/// Most packets that all of them may send to the victim: each dials its address four times in ten minutes.
const MOST_PACKETS: usize = 4 * HONEST;
/// Time for which the liar goes on: longer than four dials of one address take.
const LIES_FOR: Duration = Duration::from_secs(12);

#[tokio::test]
async fn a_liar_makes_a_room_of_sixteen_send_a_third_party_a_few_packets() {
    let session = "a liar";
    let hosts: Vec<_> = (0..HONEST)
        .map(|n| Host::open(&format!("h{n:02}"), session))
        .collect();
    for host in &hosts[1..] {
        assert!(host.connect(&hosts[0]).await.0);
    }
    eventually("a mesh", || {
        let linked = |host: &Host| host.room.snapshot().connected;
        hosts.iter().all(|host| linked(host) == HONEST - 1)
    })
    .await;
    let victim = Ipv4Addr::new(127, 0, 0, 77);
    let mut ports = Vec::new();
    for _ in 0..4 {
        ports.push(UdpSocket::bind((victim, 0)).await.expect("a free port"));
    }
    let at: Vec<_> = ports
        .iter()
        .map(|port| port.local_addr().expect("bound"))
        .collect();
    let liar = Attacker::new("liar", session);
    let mut links = Vec::new();
    for host in &hosts {
        links.push(liar.join(host).await);
    }
    let until = Instant::now() + LIES_FOR;
    let mut made_up = 0_u8;
    while Instant::now() < until {
        let entries: Vec<_> = (0..4)
            .map(|_| {
                made_up = made_up.wrapping_add(1);
                PeerEntry {
                    id: id(&format!("made-up-{made_up}")),
                    key: Fingerprint([made_up; 32]),
                    addresses: at.clone(),
                }
            })
            .collect();
        for link in &mut links {
            link.notify_core(Message::PeerList(entries.clone())).await;
        }
        sleep(Duration::from_millis(250)).await;
    }
    let mut packets = 0;
    let mut packet = [0; 2048];
    for port in &ports {
        while port.try_recv(&mut packet).is_ok() {
            packets += 1;
        }
    }
    assert!(
        (HONEST..=MOST_PACKETS).contains(&packets),
        "{packets} packets"
    );
    for host in &hosts {
        assert!(host.has("liar"), "it broke no rule of the protocol");
    }
}
