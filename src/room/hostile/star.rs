//! Guests of a star that try to learn the addresses of others, or send them packets that no member sends.

use std::collections::BTreeMap;

use room_transport::tunnel::packet::{Header, Part, TUNNEL_DATAGRAM, Way, encode};

use super::*;
use crate::core::id::Fingerprint;
use crate::core::virtual_address::{VirtualId, virtual_id};
use crate::core::wire::{HostMode, MAX_CONTROL_FRAME_BYTES, RoomPolicy, Topology};
use crate::net::close;

fn star(host_mode: HostMode) -> Config {
    Config {
        host_mode,
        topology: Topology::Star,
        ..quick()
    }
}

fn guest_hello(attacker: &Attacker) -> Hello {
    let hello = attacker.hello();
    Hello {
        policy: RoomPolicy {
            host_mode: HostMode::Guest,
            topology: Topology::Star,
            ..hello.policy
        },
        eligible: false,
        ..hello
    }
}

async fn guest(name: &str, session: &str, host: &Host) -> Host {
    let guest = Host::open_with(name, session, star(HostMode::Guest));
    assert_eq!(guest.connect(host).await, (true, 0));
    guest.wait_for(joined(&host.name), 1).await;
    guest
}

fn packet_to(target: VirtualId) -> Vec<u8> {
    let header = Header {
        way: Way::To(target),
        part: Part::Whole,
        number: 0,
    };
    encode(header, &[7; 900]).to_vec()
}

/// Messages of a star's host to a guest.
#[derive(Default)]
struct ReadFrames {
    frames: Vec<String>,
    keys: BTreeMap<PeerId, Fingerprint>,
}

impl ReadFrames {
    /// Reads until the host has named `other`; returns its key.
    async fn until_named(&mut self, member: &mut Member, other: &str) -> Fingerprint {
        loop {
            if let Some(key) = self.keys.get(&id(other)) {
                return *key;
            }
            let frame = in_time(read_frame(&mut member.recv, MAX_CONTROL_FRAME_BYTES)).await;
            let frame = postcard::from_bytes(&frame.expect("a frame")).expect("a control frame");
            self.frames.push(format!("{frame:?}"));
            let entries = match frame {
                ControlFrame::Core(Envelope { message, .. }) => match message {
                    Message::PeerList(entries) => entries,
                    Message::Admitted { entry, .. } => vec![entry],
                    _ => Vec::new(),
                },
                _ => Vec::new(),
            };
            self.keys
                .extend(entries.into_iter().map(|entry| (entry.id, entry.key)));
        }
    }
}

#[tokio::test]
async fn no_message_to_a_guest_holds_another_guests_address() {
    let session = "addresses";
    let host = Host::open_with("h", session, star(HostMode::Host));
    let before = guest("before", session, &host).await;
    let spy = Attacker::new("spy", session);
    let mut member = spy.join_unseen(&host, &guest_hello(&spy)).await;
    host.wait_for(joined("spy"), 1).await;
    let mut read = ReadFrames::default();
    read.until_named(&mut member, "before").await;
    let after = guest("after", session, &host).await;
    read.until_named(&mut member, "after").await;
    for other in [&before, &after] {
        let port = format!(":{}", other.port());
        let frames = read.frames.iter();
        let leaks: Vec<_> = frames.filter(|frame| frame.contains(&port)).collect();
        assert!(leaks.is_empty(), "{leaks:?}");
    }
    // A guest does not learn the address of another guest.
    before.wait_for(joined("after"), 1).await;
    after.wait_for(joined("before"), 1).await;
}

#[tokio::test]
async fn invalid_tunnel_packets_cost_only_their_sender_the_link() {
    let session = "tunnels";
    let host = Host::open_with("h", session, star(HostMode::Host));
    let one = guest("one", session, &host).await;
    let two = guest("two", session, &host).await;
    one.wait_for(joined("two"), 1).await;
    two.wait_for(joined("one"), 1).await;
    for n in 0..3 {
        let attacker = Attacker::new(&format!("m{n}"), session);
        let to_itself = packet_to(virtual_id(attacker.process.identity.fingerprint()));
        let offence = match n {
            0 => vec![TUNNEL_DATAGRAM],
            1 => vec![TUNNEL_DATAGRAM, 9, 9, 9],
            _ => to_itself,
        };
        let member = attacker.join_unseen(&host, &guest_hello(&attacker)).await;
        host.wait_for(joined(&attacker.name), 1).await;
        let datagram = Bytes::from(offence);
        member
            .connection
            .send_datagram(datagram)
            .expect("datagrams are on");
        assert_eq!(member.closed().await, close::VIOLATION, "{n}");
    }
    // Packets without a destination, or that are not QUIC, are dropped.
    let attacker = Attacker::new("noise", session);
    let mut member = attacker.join_unseen(&host, &guest_hello(&attacker)).await;
    host.wait_for(joined("noise"), 1).await;
    let mut read = ReadFrames::default();
    let keys = [
        read.until_named(&mut member, "one").await,
        read.until_named(&mut member, "two").await,
    ];
    for n in 0..2000_u32 {
        let key = match n % 3 {
            2 => Fingerprint([n as u8; 32]),
            real => keys[real as usize],
        };
        // Packets that do not fit are dropped here.
        let packet = packet_to(virtual_id(key));
        let _ = member.connection.send_datagram(packet.into());
    }
    for (from, to) in [(&one, &two), (&two, &one)] {
        from.send(&to.name, b"still").await;
        to.wait_for(reported(&from.name, b"still"), 1).await;
        assert_eq!(to.times(&left(&from.name)), 0);
    }
}
