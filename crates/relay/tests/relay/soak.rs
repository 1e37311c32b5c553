//! Hostile members for a long time: the relay's memory stays as it is, and a room in play notices nothing: `make relay-soak`.
//!
//! Each of them is at an address of loopback of its own, so that the limits of one address do not stop them all.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use quinn::Connection;
use room_core::id::Fingerprint;
use room_transport::rendezvous::{Frame, Locator, RELAY_ALPN, ToRelay};
use room_transport::tunnel::packet::{Header, Part, Way, encode};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::load::{cpu, memory};
use crate::member::Process;
use crate::program::Program;

/// Locator of the room in play, which the hostile ones know.
const ROOM: u32 = 7;
/// Growth after the first fifth of the time that counts as a leak.
const MAX_GROWTH_BYTES: u64 = 8 << 20;

/// Where the relay is.
#[derive(Clone, Copy)]
struct Relay {
    address: SocketAddr,
    key: Fingerprint,
}

impl Relay {
    async fn dial(&self, process: &Process) -> Option<Connection> {
        let dialled = process.dial_with(self.address, Some(self.key), RELAY_ALPN);
        // Some of them are refused: they are meant to be.
        timeout(Duration::from_secs(5), dialled).await.ok()?.ok()
    }
}

/// Random numbers that need not be good (xorshift).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

#[tokio::test]
#[ignore = "minutes: make relay-soak"]
async fn hostile_members_cost_no_memory_and_a_room_in_play_nothing() {
    let seconds = std::env::var("RELAY_SOAK_SECONDS").ok();
    let seconds = seconds.map_or(600, |text| text.parse().expect("RELAY_SOAK_SECONDS"));
    let program = Program::start(&["--listen", "127.0.0.1:0", "--max-links", "512"]);
    let id = program.child.id();
    let relay = Relay {
        address: program.address,
        key: program.fingerprint(),
    };
    let attacks = Arc::new(AtomicU64::new(0));
    let mut hostile = JoinSet::new();
    for number in 0..24_u8 {
        let attacks = Arc::clone(&attacks);
        hostile.spawn(async move {
            let mut chance = Chance(u64::from(number) + 1);
            loop {
                let host = 1 + chance.below(200) as u8;
                let process = Process::start_at(Ipv4Addr::new(127, 0, 1 + number, host));
                let attack = attack(relay, &process, &mut chance);
                // An attack that waits for the relay is over in time.
                let _ = timeout(Duration::from_secs(20), attack).await;
                attacks.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    let (one, two) = (Process::start(), Process::start());
    let mut friends = Vec::new();
    for process in [&one, &two] {
        let link = relay.dial(process).await.expect("connected");
        let member = process.enter_on(link, ROOM, false, None).await;
        friends.push(member.expect("admitted"));
    }
    let began = Instant::now();
    let (mut settled, mut highest, mut slowest) = (None, 0, Duration::ZERO);
    let (mut sent, mut lost) = (0_u64, 0_u64);
    let length = Duration::from_secs(seconds);
    while began.elapsed() < length {
        let number = sent as u16;
        let at = Instant::now();
        friends[0].packet(two.id(), number, b"a move");
        sent += 1;
        let arrived = timeout(Duration::from_secs(1), async {
            // Strangers may send to it as well.
            while friends[1].received().await != (one.id(), piece(number)) {}
        });
        match arrived.await {
            Ok(()) => slowest = slowest.max(at.elapsed()),
            Err(_) => lost += 1,
        }
        let now = memory(id);
        highest = highest.max(now);
        if began.elapsed() > length / 5 {
            settled.get_or_insert(highest);
        }
        sleep(Duration::from_millis(50)).await;
    }
    hostile.abort_all();
    let settled = settled.expect("a fifth has passed");
    let busy = 100.0 * cpu(id).as_secs_f64() / began.elapsed().as_secs_f64();
    println!(
        "{} attacks in {seconds} s; {busy:.0} % of a core",
        attacks.load(Ordering::Relaxed)
    );
    println!(
        "memory: {:.1} MB at most in the first fifth, {:.1} MB in all",
        settled as f64 / 1e6,
        highest as f64 / 1e6
    );
    println!("play: {lost} of {sent} packets lost, slowest {slowest:?}");
    assert!(
        attacks.load(Ordering::Relaxed) > seconds / 10,
        "few attacks"
    );
    assert!(highest < settled + MAX_GROWTH_BYTES, "memory grows");
    // The room's members are still there, and most of their packets arrive beside the floods.
    assert!(
        friends
            .iter()
            .all(|friend| friend.connection.close_reason().is_none())
    );
    assert!(lost * 20 < sent, "{lost} of {sent} packets lost");
    let (code, log) = program.terminate();
    assert_eq!((code, log.as_str()), (Some(0), ""));
}

fn piece(number: u16) -> room_transport::tunnel::packet::Piece {
    room_transport::tunnel::packet::Piece {
        part: Part::Whole,
        number,
        bytes: Bytes::from_static(b"a move"),
    }
}

async fn attack(relay: Relay, process: &Process, chance: &mut Chance) {
    let kind = chance.below(9);
    if kind == 0 {
        return garbage(relay, chance);
    }
    let Some(link) = relay.dial(process).await else {
        return;
    };
    match kind {
        // Nothing enters.
        1 => sleep(Duration::from_secs(2)).await,
        // A stream of anything.
        2 => {
            let Ok((mut send, _recv)) = link.open_bi().await else {
                return;
            };
            while send.write_all(&chance.bytes(700)).await.is_ok() {}
        }
        _ => {
            // A fresh locator, or that of the room in play.
            let locator = match chance.below(3) {
                0 => chance.below(1 << 25) as u32,
                _ => ROOM,
            };
            let hidden = chance.below(4) == 0;
            enter(link, locator, hidden, kind, process, chance).await;
        }
    }
}

/// Packets that are none of QUIC's, or nearly.
fn garbage(relay: Relay, chance: &mut Chance) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    for _ in 0..200 {
        let length = 1 + chance.below(1400) as usize;
        let mut packet = chance.bytes(length);
        packet[0] |= 0xc0;
        // A full buffer loses it.
        let _ = socket.send_to(&packet, relay.address);
    }
}

async fn enter(
    link: Connection,
    locator: u32,
    hidden: bool,
    kind: u64,
    process: &Process,
    chance: &mut Chance,
) {
    let Ok((mut send, mut recv)) = link.open_bi().await else {
        return;
    };
    let enter = ToRelay::Enter {
        locator: Locator(locator),
        hidden,
        proof: None,
    };
    if send.write_all(&enter.encode()).await.is_err() {
        return;
    }
    let mut welcome = [0; 64];
    if !matches!(recv.read(&mut welcome).await, Ok(Some(_))) {
        return;
    }
    match kind {
        // It reads nothing, and stays.
        3 => sleep(Duration::from_secs(10)).await,
        // Frames of every kind, as fast as they go.
        4 => {
            for _ in 0..5000 {
                let mut key = [0; 32];
                key[0] = chance.next() as u8;
                let key = Fingerprint(key);
                let frames = [ToRelay::Block { key }, ToRelay::More];
                let frame = frames[chance.below(2) as usize].encode();
                if send.write_all(&frame).await.is_err() {
                    return;
                }
            }
        }
        // Packets to any id, its own included, of any length.
        5 | 6 => {
            for number in 0..20_000 {
                let id = match chance.below(2) {
                    0 => process.id(),
                    _ => chance.next().to_le_bytes(),
                };
                let header = Header {
                    way: if chance.below(2) == 0 {
                        Way::To(id)
                    } else {
                        Way::From(id)
                    },
                    part: Part::Whole,
                    number: number as u16,
                };
                let length = 1 + chance.below(1100) as usize;
                let datagram = encode(header, &chance.bytes(length));
                if link.send_datagram_wait(datagram).await.is_err() {
                    return;
                }
            }
        }
        // Datagrams of anything.
        7 => {
            for _ in 0..5000 {
                let length = 1 + chance.below(1100) as usize;
                let mut datagram = chance.bytes(length);
                datagram[0] %= 4;
                if link.send_datagram_wait(datagram.into()).await.is_err() {
                    return;
                }
            }
        }
        // Another address in the middle of a session, again and again.
        _ => {
            for _ in 0..20 {
                let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)) else {
                    return;
                };
                // The endpoint may be gone.
                let _ = process.endpoint.rebind(socket);
                let _ = link.send_datagram(Bytes::from_static(&[0]));
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}
