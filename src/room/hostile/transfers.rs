//! Transfers over real links: whole ones, cancelled and refused ones, cut cables, and peers that break their rules.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::cut::{cut, heal};
use super::memory::resident_bytes;
use super::*;
use crate::core::event::{Transfer, TransferNews, TransferOutcome};
use crate::core::path::LinkPath;
use crate::core::wire::FEATURE_TRANSFERS;
use crate::dispatch::{Event, Reported};
use crate::error::{Coded, DataTransferError};
use crate::net::close;
use crate::net::frame::TRANSFER_LANES;
use crate::transfers::Buffer;
use crate::transfers::wire::{Offer, PART_BYTES, PartHeader, TransferFrame, Why};

/// A host that takes transfers, and all that it has received about them.
struct Mover {
    host: Host,
    seen: Arc<watch::Sender<Seen>>,
}

/// By the number of the transfer.
#[derive(Debug, Default)]
struct Seen {
    offered: BTreeMap<u64, Bytes>,
    progress: BTreeMap<u64, Vec<u64>>,
    parts: BTreeMap<u64, Vec<u8>>,
    results: BTreeMap<u64, Vec<(TransferOutcome, u64)>>,
}

impl Seen {
    fn take(&mut self, transfer: &Transfer) {
        let id = transfer.id;
        match &transfer.news {
            TransferNews::Offered { tag } => {
                let before = self.offered.insert(id, tag.clone());
                assert_eq!(before, None, "offered twice");
            }
            TransferNews::Progress { done } => self.progress.entry(id).or_default().push(*done),
            TransferNews::Part { offset, bytes } => {
                let parts = self.parts.entry(id).or_default();
                assert_eq!(parts.len() as u64, *offset, "a gap between parts");
                parts.extend_from_slice(bytes);
            }
            TransferNews::Ended { outcome, done } => {
                self.results.entry(id).or_default().push((*outcome, *done));
            }
        }
    }
}

impl Mover {
    fn open(name: &str, session: &str) -> Self {
        Self::of(Host::open(name, session))
    }

    fn of(host: Host) -> Self {
        let seen = Arc::new(watch::Sender::new(Seen::default()));
        let taken = Arc::clone(&seen);
        let handler = move |report: kind::Report<'_>| {
            if let Reported::Room(Event::Transfer(transfer)) = report.event {
                taken.send_modify(|seen| seen.take(transfer));
            }
        };
        let dispatch = host.room.dispatch();
        dispatch.register::<kind::Everything>(Some(Arc::new(handler)));
        Self { host, seen }
    }

    fn id(&self) -> PeerId {
        id(&self.host.name)
    }

    fn send(&self, to: &Self, data: &[u8]) -> u64 {
        let sent = self.host.room.send_transfer(&to.id(), data, b"tag");
        sent.expect("taken")
    }

    async fn wait<T>(&self, what: &str, find: impl Fn(&Seen) -> Option<T>) -> T {
        let mut seen = self.seen.subscribe();
        let found = tokio::time::timeout(TIMEOUT, seen.wait_for(|seen| find(seen).is_some())).await;
        if found.is_err() {
            panic!("{} did not receive {what}", self.host.name);
        }
        find(&self.seen.borrow()).expect("just seen")
    }

    async fn offered(&self, transfer: u64) {
        self.wait("an offer", |seen| {
            seen.offered.contains_key(&transfer).then_some(())
        })
        .await;
    }

    async fn progress(&self, transfer: u64) {
        self.wait("progress", |seen| {
            seen.progress.contains_key(&transfer).then_some(())
        })
        .await;
    }

    /// The outcome of a transfer, which no other follows so far.
    async fn result(&self, transfer: u64) -> TransferOutcome {
        let results = self
            .wait("a result", |seen| seen.results.get(&transfer).cloned())
            .await;
        assert_eq!(results.len(), 1, "{results:?}");
        results[0].0
    }

    /// Accepts into a buffer of its own.
    async fn accept(&self, from: &Self, transfer: u64, size: usize) -> Arc<Mutex<Vec<u8>>> {
        self.offered(transfer).await;
        let memory = Arc::new(Mutex::new(vec![0; size]));
        let buffer = Box::new(Memory(Arc::clone(&memory)));
        let room = &self.host.room;
        let accepted = room.accept_transfer(&from.id(), transfer, buffer, size as u64);
        assert_eq!(accepted, Ok(()));
        memory
    }

    async fn accept_in_parts(&self, from: &Self, transfer: u64) {
        self.offered(transfer).await;
        let room = &self.host.room;
        let accepted = room.accept_transfer_in_parts(&from.id(), transfer);
        assert_eq!(accepted, Ok(()));
    }
}

/// A host's buffer that outlives its transfer.
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Buffer for Memory {
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let start = usize::try_from(offset).expect("short");
        let mut memory = self.0.lock().expect("not poisoned");
        memory[start..start + bytes.len()].copy_from_slice(bytes);
    }
}

/// Bytes that repeat in no part.
fn noise(len: usize) -> Vec<u8> {
    let word = |at: usize| {
        (at as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(word).collect();
    bytes.truncate(len);
    bytes
}

async fn two(session: &str) -> (Mover, Mover) {
    two_with(session, quick()).await
}

async fn two_with(session: &str, config: Config) -> (Mover, Mover) {
    let a = Mover::of(Host::open_with("a", session, config.clone()));
    let b = Mover::of(Host::open_with("b", session, config));
    assert_eq!(b.host.connect(&a.host).await, (true, 0));
    a.host.wait_for(joined("b"), 1).await;
    b.host.wait_for(joined("a"), 1).await;
    (a, b)
}

#[tokio::test]
async fn a_transfer_arrives_whole_in_a_buffer_and_in_parts_at_the_same_time() {
    let (a, b) = two("whole transfers").await;
    let (long, other) = (noise(5_000_001), noise(3_000_000));
    let first = a.send(&b, &long);
    let second = a.send(&b, &other);
    let back = b.send(&a, &other);
    assert_ne!(first & 1, back & 1, "each end has numbers of its own");
    let at_b = b.accept(&a, first, long.len()).await;
    b.accept_in_parts(&a, second).await;
    let at_a = a.accept(&b, back, other.len()).await;
    for transfer in [first, second, back] {
        assert_eq!(a.result(transfer).await, TransferOutcome::Complete);
        assert_eq!(b.result(transfer).await, TransferOutcome::Complete);
    }
    assert!(*at_b.lock().expect("whole") == long);
    assert!(*at_a.lock().expect("whole") == other);
    let seen = b.seen.borrow();
    assert!(seen.parts[&second] == other);
    assert_eq!(seen.offered[&first], &b"tag"[..]);
}

#[tokio::test]
async fn an_empty_transfer_and_one_of_a_single_byte_arrive() {
    let (a, b) = two("short transfers").await;
    for data in [&b""[..], b"x"] {
        let transfer = a.send(&b, data);
        let memory = b.accept(&a, transfer, data.len()).await;
        assert_eq!(a.result(transfer).await, TransferOutcome::Complete);
        assert_eq!(b.result(transfer).await, TransferOutcome::Complete);
        assert_eq!(*memory.lock().expect("whole"), data);
    }
}

#[tokio::test]
async fn each_end_cancels_and_both_learn_which_one_did() {
    let (a, b) = two("cancelled transfers").await;
    let data = noise(8 << 20);
    let cancel = |by: &Mover, with: &Mover, transfer| {
        let cancelled = by.host.room.cancel_transfer(&with.id(), transfer);
        assert_eq!(cancelled, Ok(()));
        let again = by.host.room.cancel_transfer(&with.id(), transfer);
        assert_eq!(again, Err(DataTransferError::NotOpen { id: transfer }));
    };
    let offered = a.send(&b, &data);
    b.offered(offered).await;
    cancel(&a, &b, offered);
    let refused = a.send(&b, &data);
    b.offered(refused).await;
    cancel(&b, &a, refused);
    let by_sender = a.send(&b, &data);
    b.accept(&a, by_sender, data.len()).await;
    cancel(&a, &b, by_sender);
    let by_receiver = a.send(&b, &data);
    b.accept(&a, by_receiver, data.len()).await;
    cancel(&b, &a, by_receiver);
    for (transfer, outcome) in [
        (offered, TransferOutcome::CancelledBySender),
        (refused, TransferOutcome::Refused),
        (by_sender, TransferOutcome::CancelledBySender),
        (by_receiver, TransferOutcome::CancelledByReceiver),
    ] {
        assert_eq!(a.result(transfer).await, outcome);
        assert_eq!(b.result(transfer).await, outcome);
    }
    let after = a.send(&b, &data);
    let memory = b.accept(&a, after, data.len()).await;
    assert_eq!(a.result(after).await, TransferOutcome::Complete);
    assert!(*memory.lock().expect("whole") == data);
}

#[tokio::test]
async fn a_transfer_goes_on_over_the_next_link_from_the_byte_that_has_arrived() {
    let (a, b) = two("a cut transfer").await;
    let data = noise(32 << 20);
    let buffered = a.send(&b, &data);
    let parts = a.send(&b, &data);
    let offered = b.send(&a, b"answered after the cut");
    let cancelled = a.send(&b, b"cancelled while the cable is cut");
    a.offered(offered).await;
    b.offered(cancelled).await;
    let memory = b.accept(&a, buffered, data.len()).await;
    b.accept_in_parts(&a, parts).await;
    b.progress(buffered).await;
    b.progress(parts).await;
    for (from, to) in [(&a, &b), (&b, &a)] {
        cut(from.host.port(), to.host.port());
    }
    a.host.wait_for(left("b"), 1).await;
    b.host.wait_for(left("a"), 1).await;
    for transfer in [buffered, parts] {
        let is_over = b.seen.borrow().results.contains_key(&transfer);
        assert!(!is_over, "the cable was cut too late for this test");
    }
    let done = a.host.room.cancel_transfer(&b.id(), cancelled);
    assert_eq!(done, Ok(()));
    for (from, to) in [(&a, &b), (&b, &a)] {
        heal(from.host.port(), to.host.port());
    }
    a.accept(&b, offered, 22).await;
    for transfer in [buffered, parts, offered] {
        assert_eq!(a.result(transfer).await, TransferOutcome::Complete);
        assert_eq!(b.result(transfer).await, TransferOutcome::Complete);
    }
    for end in [&a, &b] {
        assert_eq!(
            end.result(cancelled).await,
            TransferOutcome::CancelledBySender
        );
    }
    assert!(*memory.lock().expect("whole") == data);
    assert!(b.seen.borrow().parts[&parts] == data, "no part came twice");
}

#[tokio::test]
async fn a_direct_link_that_takes_over_carries_a_transfer_on() {
    let relay = relay_links::start_relay();
    let (a, b) = relay_links::relayed(relay_links::line(&relay)).await;
    let (a, b) = (Mover::of(a), Mover::of(b));
    let data = noise(32 << 20);
    let transfer = a.send(&b, &data);
    let memory = b.accept(&a, transfer, data.len()).await;
    b.progress(transfer).await;
    relay_links::heal_direct(&a.host, &b.host);
    assert_eq!(a.host.connect(&b.host).await, (true, 0));
    for (one, other) in [(&a, "b"), (&b, "a")] {
        eventually("a direct link", || {
            relay_links::path(&one.host, other) == Some(LinkPath::Direct)
        })
        .await;
    }
    let is_over = b.seen.borrow().results.contains_key(&transfer);
    assert!(!is_over, "the direct link came too late for this test");
    relay.stop();
    for end in [&a, &b] {
        assert_eq!(end.result(transfer).await, TransferOutcome::Complete);
    }
    assert!(*memory.lock().expect("whole") == data);
    for (one, other) in [(&a, "b"), (&b, "a")] {
        assert_eq!(one.host.comings_and_goings(), [joined(other)]);
    }
}

#[tokio::test]
async fn a_member_that_leaves_ends_its_transfers_at_the_other_end() {
    let (a, b) = two("a member leaves").await;
    let data = noise(32 << 20);
    let to_b = a.send(&b, &data);
    let to_a = b.send(&a, &data);
    b.accept(&a, to_b, data.len()).await;
    a.offered(to_a).await;
    b.progress(to_b).await;
    b.host.room.close();
    for transfer in [to_b, to_a] {
        assert_eq!(a.result(transfer).await, TransferOutcome::PeerLeft);
    }
    let refused = a.host.room.send_transfer(&b.id(), b"x", b"");
    assert_eq!(refused.map_err(|error| error.code().value()), Err(-5));
}

#[tokio::test]
async fn a_host_that_takes_no_parts_stops_only_their_transfer() {
    let session = "a slow host";
    let a = Mover::open("a", session);
    let b = Mover::open("b", session);
    assert_eq!(b.host.connect(&a.host).await, (true, 0));
    a.host.wait_for(joined("b"), 1).await;
    b.host.wait_for(joined("a"), 1).await;
    let data = noise(4 << 20);
    let slow = a.send(&b, &data);
    b.offered(slow).await;
    // From here on the host keeps each part, and takes none after the first.
    let (hold, held) = blocking::channel::<()>();
    let held = Mutex::new(held);
    let taken = Arc::clone(&b.seen);
    let handler = move |report: kind::Report<'_>| {
        if let Reported::Room(Event::Transfer(transfer)) = report.event {
            if let TransferNews::Part { .. } = transfer.news {
                let _ = held.lock().expect("not poisoned").recv();
            }
            taken.send_modify(|seen| seen.take(transfer));
        }
    };
    b.host
        .room
        .dispatch()
        .register::<kind::Everything>(Some(Arc::new(handler)));
    let accepted = b.host.room.accept_transfer_in_parts(&a.id(), slow);
    assert_eq!(accepted, Ok(()));
    let back = b.send(&a, &data);
    let memory = a.accept(&b, back, data.len()).await;
    assert_eq!(a.result(back).await, TransferOutcome::Complete);
    assert!(*memory.lock().expect("whole") == data);
    // More than the window was never under way.
    let sent = a
        .seen
        .borrow()
        .progress
        .get(&slow)
        .and_then(|done| done.last().copied());
    assert!(sent.unwrap_or(0) <= 256 * 1024, "{sent:?}");
    drop(hold);
    assert_eq!(a.result(slow).await, TransferOutcome::Complete);
    assert_eq!(b.result(slow).await, TransferOutcome::Complete);
    assert!(b.seen.borrow().parts[&slow] == data);
}

#[tokio::test]
async fn a_peer_without_transfers_is_reported_and_gets_no_lane_of_them() {
    let session = "an older library";
    let a = Mover::open("a", session);
    let older = Attacker::new("m", session).join(&a.host).await;
    let refused = a.host.room.send_transfer(&id("m"), b"x", b"");
    assert_eq!(
        refused,
        Err(DataTransferError::NotSupported { id: id("m") })
    );
    // A message of the host opens a lane; none of a transfer comes before it.
    a.host.send("m", b"message").await;
    let mut lane = in_time(older.connection.accept_uni())
        .await
        .expect("a lane");
    let header = in_time(read_frame(&mut lane, 8)).await.expect("a header");
    assert_eq!(postcard::from_bytes(&header), Ok(LaneHeader { lane: 0 }));
}

/// An attacker that has entered the room of `host` with its lanes of transfers.
struct Sender {
    member: Member,
    frames: SendStream,
    parts: SendStream,
}

impl Sender {
    async fn enter(session: &str, host: &Host) -> Self {
        let before = host.times(&joined("m"));
        let attacker = Attacker::new("m", session);
        let hello = Hello {
            features: FEATURE_TRANSFERS,
            by_hand: true,
            ..attacker.hello()
        };
        let member = attacker.join_unseen(host, &hello).await;
        host.wait_for(joined("m"), before + 1).await;
        let [frames, parts] = TRANSFER_LANES;
        Self {
            frames: member.open_lane(LaneHeader { lane: frames }).await,
            parts: member.open_lane(LaneHeader { lane: parts }).await,
            member,
        }
    }

    async fn say(&mut self, frame: &TransferFrame) {
        let mut buffer = BytesMut::new();
        put_value(&mut buffer, frame).expect("encodes");
        let _ = in_time(self.frames.write_all(&buffer)).await;
    }

    /// Waits until the host grants the first bytes of a transfer.
    async fn granted(&self) {
        loop {
            let lane = in_time(self.member.connection.accept_uni()).await;
            let mut lane = lane.expect("a lane");
            let header = in_time(read_frame(&mut lane, 8)).await.expect("a header");
            let header: LaneHeader = postcard::from_bytes(&header).expect("decodes");
            if header.lane == TRANSFER_LANES[0] {
                let frame = in_time(read_frame(&mut lane, 1024)).await;
                let frame = postcard::from_bytes(&frame.expect("a frame"));
                assert!(matches!(frame, Ok(TransferFrame::Grant { arrived: 0, .. })));
                return;
            }
        }
    }

    async fn offer(&mut self, number: u64, size: u64) {
        self.say(&TransferFrame::Offer(offer(number, size))).await;
    }

    async fn part(&mut self, number: u64, offset: u64, len: usize) {
        let header = postcard::to_allocvec(&PartHeader {
            id: theirs(number),
            offset,
        })
        .expect("encodes");
        let length = u32::try_from(header.len() + len).expect("short");
        let frame = [&length.to_le_bytes()[..], &header, &vec![7; len]].concat();
        let _ = in_time(self.parts.write_all(&frame)).await;
    }
}

/// A number of the attacker, whose id is greater than those of the hosts; none of theirs is as great.
fn theirs(number: u64) -> u64 {
    2 * (1000 + number) + 1
}

fn offer(number: u64, size: u64) -> Offer {
    Offer {
        id: theirs(number),
        size,
        digest: [0; 32],
        tag: b"attack".to_vec(),
    }
}

#[tokio::test]
async fn an_offence_in_transfers_ends_its_link_and_nothing_else() {
    let session = "offences in transfers";
    let (a, b) = two(session).await;
    let data = noise(16 << 20);
    let honest = b.send(&a, &data);
    let memory = a.accept(&b, honest, data.len()).await;
    let offences: [(&str, Offend); 12] = [
        ("too long", |it| Box::pin(it.offer(1, (64 << 20) + 1))),
        ("a long tag", |it| {
            let mut long = offer(1, 1);
            long.tag = vec![0; 1025];
            Box::pin(async move { it.say(&TransferFrame::Offer(long)).await })
        }),
        ("offered twice", |it| {
            Box::pin(async move {
                it.offer(1, 1).await;
                it.offer(1, 1).await;
            })
        }),
        ("a number of the other end", |it| {
            let mut other = offer(1, 1);
            other.id = 2;
            Box::pin(async move { it.say(&TransferFrame::Offer(other)).await })
        }),
        ("a part without an offer", |it| Box::pin(it.part(1, 0, 10))),
        ("a part that was not accepted", |it| {
            Box::pin(async move {
                it.offer(1, 100).await;
                // The lanes may overtake each other, and each of both is an offence.
                it.part(1, 0, 10).await;
            })
        }),
        ("an empty part", |it| Box::pin(it.part(1, 0, 0))),
        ("a long part", |it| Box::pin(it.part(1, 0, PART_BYTES + 64))),
        ("a cancel without an offer", |it| {
            Box::pin(async move { it.say(&TransferFrame::Cancel { id: theirs(9) }).await })
        }),
        ("many at once", |it| {
            let offers = (1..=9).map(|number| offer(number, 1)).collect();
            Box::pin(async move { it.say(&TransferFrame::Open(offers)).await })
        }),
        ("changed from link to link", |it| {
            Box::pin(async move {
                it.offer(1, 1).await;
                it.say(&TransferFrame::Open(vec![offer(1, 2)])).await;
            })
        }),
        ("a malformed frame", |it| {
            Box::pin(async move {
                let _ = in_time(it.frames.write_all(&[2, 0, 0, 0, 9, 9])).await;
            })
        }),
    ];
    for (what, offend) in offences {
        let before = a.host.times(&left("m"));
        let mut sender = Sender::enter(session, &a.host).await;
        offend(&mut sender).await;
        assert_eq!(sender.member.closed().await, close::VIOLATION, "{what}");
        a.host.wait_for(left("m"), before + 1).await;
        a.seen.send_modify(|seen| {
            seen.offered.remove(&theirs(1));
            seen.results.remove(&theirs(1));
        });
    }
    assert_eq!(a.result(honest).await, TransferOutcome::Complete);
    assert!(*memory.lock().expect("whole") == data);
}

type Offence<'a> = std::pin::Pin<Box<dyn Future<Output = ()> + 'a>>;
type Offend = fn(&mut Sender) -> Offence<'_>;

#[tokio::test]
async fn parts_out_of_order_beyond_the_size_or_after_the_end_break_the_protocol() {
    let session = "wrong parts";
    let a = Mover::open("a", session);
    for (what, parts) in [
        ("a gap", vec![(16, 100)]),
        ("twice the same", vec![(0, PART_BYTES), (0, PART_BYTES)]),
        (
            "more than the size",
            vec![(0, PART_BYTES), (16_384, 16_000)],
        ),
        // Else each byte could be an event that waits for the host.
        ("a short one before the last", vec![(0, 100)]),
    ] {
        let before = a.host.times(&left("m"));
        let mut sender = Sender::enter(session, &a.host).await;
        sender.offer(1, 20_000).await;
        a.offered(theirs(1)).await;
        let room = &a.host.room;
        let memory = Arc::new(Mutex::new(vec![0; 20_000]));
        let buffer = Box::new(Memory(memory));
        let accepted = room.accept_transfer(&id("m"), theirs(1), buffer, 20_000);
        assert_eq!(accepted, Ok(()));
        sender.granted().await;
        for (offset, len) in parts {
            sender.part(1, offset, len).await;
        }
        assert_eq!(sender.member.closed().await, close::VIOLATION, "{what}");
        a.host.wait_for(left("m"), before + 1).await;
        assert_eq!(a.result(theirs(1)).await, TransferOutcome::PeerLeft);
        a.seen.send_modify(|seen| *seen = Seen::default());
    }
    // All bytes arrive, but not the ones that were offered.
    let mut sender = Sender::enter(session, &a.host).await;
    sender.offer(1, 100).await;
    a.offered(theirs(1)).await;
    let room = &a.host.room;
    assert_eq!(room.accept_transfer_in_parts(&id("m"), theirs(1)), Ok(()));
    sender.granted().await;
    sender.part(1, 0, 100).await;
    assert_eq!(a.result(theirs(1)).await, TransferOutcome::Corrupt);
    // No byte of it is under way any more.
    sender.part(1, 100, 1).await;
    assert_eq!(sender.member.closed().await, close::VIOLATION);
}

#[tokio::test]
async fn a_flood_of_offers_costs_no_memory_and_holds_no_transfer_up() {
    const OFFERS: u64 = 10_000;
    let session = "a flood of offers";
    let (a, b) = two(session).await;
    let data = noise(16 << 20);
    let honest = b.send(&a, &data);
    let memory = a.accept(&b, honest, data.len()).await;
    let before = resident_bytes();
    let mut sender = Sender::enter(session, &a.host).await;
    for number in 1..=OFFERS {
        sender.offer(number, 64 << 20).await;
        // It reads no answers, and the host is polite: it answers nothing.
        if sender.member.connection.close_reason().is_some() {
            break;
        }
    }
    let grown = resident_bytes()
        .zip(before)
        .map(|(now, before)| now.saturating_sub(before));
    assert!(
        grown.is_none_or(|grown| grown < 64 << 20),
        "{grown:?} bytes"
    );
    a.offered(theirs(8)).await;
    assert_eq!(a.result(honest).await, TransferOutcome::Complete);
    assert!(*memory.lock().expect("whole") == data);
    // One that reads no answers is out; in any case the host has received no more offers than may be open.
    let open = a.seen.borrow().offered.len();
    assert_eq!(open, 1 + 8, "offers that the host has received");
}

#[tokio::test]
async fn a_receiver_that_lies_about_what_arrived_breaks_the_protocol() {
    let session = "lying receivers";
    let a = Mover::open("a", session);
    let data = noise(1 << 20);
    type Lie = fn(u64) -> TransferFrame;
    let lies: [(&str, Lie); 6] = [
        ("an answer to another one", |id| TransferFrame::Grant {
            id: id + 2,
            arrived: 0,
            until: 100,
        }),
        ("an end of another one", |id| TransferFrame::Ended {
            id: id + 2,
            why: Why::Refused,
        }),
        ("more than was sent", |id| TransferFrame::Grant {
            id,
            arrived: 100,
            until: 200,
        }),
        ("beyond the end", |id| TransferFrame::Grant {
            id,
            arrived: 0,
            until: (1 << 20) + 1,
        }),
        ("beyond the window", |id| TransferFrame::Grant {
            id,
            arrived: 0,
            until: 256 * 1024 + 1,
        }),
        ("complete before it was sent", |id| TransferFrame::Ended {
            id,
            why: Why::Complete,
        }),
    ];
    for (what, lie) in lies {
        let before = a.host.times(&left("m"));
        let mut receiver = Sender::enter(session, &a.host).await;
        let transfer = a.host.room.send_transfer(&id("m"), &data, b"");
        let transfer = transfer.expect("taken");
        receiver.say(&lie(transfer)).await;
        assert_eq!(receiver.member.closed().await, close::VIOLATION, "{what}");
        a.host.wait_for(left("m"), before + 1).await;
        assert_eq!(a.result(transfer).await, TransferOutcome::PeerLeft);
    }
}

#[tokio::test]
async fn a_receiver_that_reads_nothing_costs_no_more_than_the_copies() {
    let session = "a deaf receiver";
    let (a, b) = two(session).await;
    let deaf = Sender::enter(session, &a.host).await;
    let data = noise(64 << 20);
    let send = |to: &str| a.host.room.send_transfer(&id(to), &data, b"");
    let first = send("m").expect("taken");
    send("m").expect("taken");
    let full = send("b").expect_err("128 MiB are kept");
    assert_eq!(full.code().value(), -7, "{full}");
    assert_eq!(a.host.room.cancel_transfer(&id("m"), first), Ok(()));
    let to_b = send("b").expect("its bytes are free");
    let memory = b.accept(&a, to_b, data.len()).await;
    assert_eq!(a.result(to_b).await, TransferOutcome::Complete);
    assert!(*memory.lock().expect("whole") == data);
    drop(deaf);
}

#[tokio::test]
async fn limits_of_transfers_are_named_with_their_values() {
    let (a, b) = two("limits of transfers").await;
    let room = &a.host.room;
    let to = b.id();
    let sentence = |sent: Result<u64, DataTransferError>| {
        let error = sent.expect_err("refused");
        (error.code().value(), error.to_string())
    };
    let long = vec![0; (64 << 20) + 1];
    let too_long = sentence(room.send_transfer(&to, &long, b""));
    assert_eq!(
        too_long,
        (
            -8,
            "size is 67108865; at most 67108864 bytes are allowed".into()
        )
    );
    assert_eq!(sentence(room.send_transfer(&to, b"", &long[..1025])).0, -8);
    assert_eq!(sentence(room.send_transfer(&a.id(), b"", b"")).0, -3);
    assert_eq!(sentence(room.send_transfer(&id("c"), b"", b"")).0, -5);
    for _ in 0..8 {
        a.send(&b, b"one of eight");
    }
    assert_eq!(
        sentence(room.send_transfer(&to, b"", b"")),
        (
            -7,
            "8 transfers to \"b\" have not ended, which is the limit; wait for a result, or cancel one".into()
        )
    );
    let offered = b.wait("eight offers", |seen| {
        (seen.offered.len() == 8).then(|| seen.offered.keys().copied().min())
    });
    let first = offered.await.expect("eight");
    let memory = Box::new(Memory(Arc::default()));
    let short = b.host.room.accept_transfer(&a.id(), first, memory, 11);
    assert_eq!(
        short.expect_err("refused").to_string(),
        "capacity is 11, but the transfer has 12 bytes; give a longer buffer, or take it in parts"
    );
    b.accept(&a, first, 12).await;
    assert_eq!(a.result(first).await, TransferOutcome::Complete);
}
