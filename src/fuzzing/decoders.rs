//! Targets for input from the network, the disk and hosts: it is refused or decoded as encoded, and takes no more
//! memory than its limits allow.

use bytes::{Bytes, BytesMut};
use room_transport::identity::Identity;
use room_transport::rendezvous::{Frame, FromRelay, MAX_FRAME_BYTES, ToRelay, frame_length};
use room_transport::tunnel::packet::{
    HEADER_BYTES, Halves, Part, TUNNEL_DATAGRAM, datagrams, decode as decode_tunnelled,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Chance;
use super::wild::{Known, Wild};
use crate::config::StateOptions;
use crate::core::election::record::Record;
use crate::core::id::{Incarnation, MAX_PEER_ID_BYTES, MAX_SESSION_ID_BYTES, PeerId, SessionId};
use crate::core::relay::{BroadcastName, Place, ReceivedBroadcasts, RelayedCopy, Relays};
use crate::core::time::{Duration, Time};
use crate::core::wire::{
    Hello, HelloAck, MAX_CONTROL_FRAME_BYTES, MAX_HELLO_BYTES, PROBE_DATAGRAM, Probe, RoomPolicy,
};
use crate::net::cards::card::MAX_DATA_BYTES;
use crate::net::cards::packet::{MAX_PACKET_BYTES, MAX_SUCCESSORS, Question, Unverified};
use crate::net::compression::{pack, unpack};
use crate::net::frame::{
    ControlFrame, DatagramHeader, DatagramRole, LaneHeader, MAX_DATAGRAM_HEADER_BYTES,
    MAX_MESSAGE_HEADER_BYTES, MESSAGE_DATAGRAM, MessageHeader, OWN_FLAG,
    datagram as encode_datagram, is_ordered, put_message, put_value, take_frame,
};
use crate::state::ballot::MemberId;
use crate::state::replica::{Input, Linked, Quorum as StateQuorum, Replica, Saved, Settings};
use crate::state::wire::Frame as StateFrame;
use crate::target::{Host, MAX_HOST_NAME_BYTES, parse_target};

/// Memory that one frame may take of a member's log: a snapshot's part reserves the whole snapshot.
const MAX_STATE_BYTES: usize = 10 << 20;
/// Longest message that the targets accept.
const MAX_MESSAGE_BYTES: usize = 1 << 16;

/// Decodes `bytes` as the readers of frames do. A value that can be decoded encodes to the same value.
fn whole<T>(bytes: &[u8], max: usize) -> Option<T>
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    if bytes.len() > max {
        return None; // the frame reader refuses it
    }
    let Ok((value, [])) = postcard::take_from_bytes::<T>(bytes) else {
        return None;
    };
    let again = postcard::to_allocvec(&value).expect("what was decoded encodes");
    // Numbers may have a longer encoding than they need.
    assert!(again.len() <= bytes.len(), "{value:?} grew");
    let decoded = postcard::from_bytes::<T>(&again).expect("what was encoded decodes");
    assert_eq!(decoded, value);
    let third = postcard::to_allocvec(&decoded).expect("encodes");
    assert_eq!(third, again, "one value has two encodings");
    Some(value)
}

/// A frame of the control stream.
pub fn control_frame(bytes: &[u8]) {
    if let Some(frame) = whole::<ControlFrame>(bytes, MAX_CONTROL_FRAME_BYTES) {
        let mut buffer = BytesMut::new();
        put_value(&mut buffer, &frame).expect("encodes");
        let taken = take_frame(&mut buffer, MAX_CONTROL_FRAME_BYTES);
        let taken = taken.expect("short enough").expect("whole");
        assert_eq!(postcard::from_bytes(&taken), Ok(frame));
        assert!(buffer.is_empty());
    }
}

/// The dialler's Hello.
pub fn hello(bytes: &[u8]) {
    whole::<Hello>(bytes, MAX_HELLO_BYTES);
}

/// The answer to a Hello.
pub fn hello_ack(bytes: &[u8]) {
    whole::<HelloAck>(bytes, MAX_HELLO_BYTES);
}

/// A datagram.
pub fn datagram(bytes: &[u8]) {
    if let [PROBE_DATAGRAM, probe @ ..] = bytes {
        whole::<Probe>(probe, usize::MAX);
    }
    if let [TUNNEL_DATAGRAM, ..] = bytes
        && let Some((way, piece)) = decode_tunnelled(Bytes::copy_from_slice(bytes))
    {
        let size = HEADER_BYTES + piece.bytes.len();
        let (again, rest) = datagrams(way, &piece, size).expect("it is as long");
        assert_eq!((again, rest), (Bytes::copy_from_slice(bytes), None));
        let origin = [1; 8];
        let mut halves = Halves::default();
        let half = size / 2 + HEADER_BYTES;
        match datagrams(way, &piece, half) {
            // It is split, and reassembled.
            Some((first, Some(second))) => {
                for (datagram, whole) in [(second, None), (first, Some(&piece.bytes))] {
                    assert!(datagram.len() <= half);
                    let (same, part) = decode_tunnelled(datagram).expect("just encoded");
                    assert_eq!(same, way);
                    assert_eq!(halves.take(origin, part).0.as_ref(), whole);
                }
            }
            Some((same, None)) => assert_eq!(same, bytes),
            None => assert_ne!(piece.part, Part::Whole),
        }
    }
    if let [MESSAGE_DATAGRAM, message @ ..] = bytes
        && let Ok((header, payload)) = postcard::take_from_bytes::<DatagramHeader>(message)
    {
        let again = encode_datagram(&header, payload).expect("a header has a longest length");
        let decoded = postcard::take_from_bytes::<DatagramHeader>(&again[1..]);
        assert_eq!(decoded.expect("just encoded"), (header.clone(), payload));
        if header.role == DatagramRole::Peer {
            assert!(again.len() - payload.len() <= MAX_DATAGRAM_HEADER_BYTES);
        }
    }
}

/// A frame between a member and a relay, in either direction.
pub fn relay_frame(bytes: &[u8]) {
    fn again<F: Frame + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
        let Ok(Some(frame)) = F::decode(bytes) else {
            return;
        };
        let encoded = frame.encode();
        let length = frame_length([encoded[0], encoded[1]]).expect("a length");
        assert_eq!(length, encoded.len() - 2);
        assert!(length <= bytes.len() && length <= MAX_FRAME_BYTES);
        assert_eq!(F::decode(&encoded[2..]), Ok(Some(frame)));
    }
    again::<ToRelay>(bytes);
    again::<FromRelay>(bytes);
}

/// A frame of the room's state, which a member takes from the leader that it follows.
pub fn state_frame(bytes: &[u8]) {
    let Ok(frame) = StateFrame::decode(bytes) else {
        return;
    };
    let again = frame.encode();
    assert!(again.len() <= bytes.len(), "{frame:?} grew");
    assert_eq!(StateFrame::decode(&again), Ok(frame.clone()));
    let ms = Duration::from_millis;
    let options = StateOptions::default();
    let settings = Settings::new(StateQuorum::Dynamic, options, ms(500), ms(1500), ms(60_000));
    let mut replica = Replica::new(state_member("a"), settings, Saved::default(), 1);
    let leader = state_member("b");
    let from = leader.peer.clone();
    let linked = Linked {
        member: leader.clone(),
        is_eligible: true,
        round_trip: ms(10),
    };
    let inputs = [
        Input::Linked(linked),
        Input::Leader(Some(leader)),
        Input::Frame {
            from,
            frame,
            largest_number: 1 << 40,
        },
        Input::Lost(state_member("b").peer),
    ];
    for input in inputs {
        // A frame that breaks the rules is refused.
        let _ = replica.handle(Time::ZERO, input);
        replica.flush(Time::ZERO);
        while replica.poll_output().is_some() {}
        replica.take(usize::MAX);
    }
    assert!(replica.bytes() <= MAX_STATE_BYTES, "{}", replica.bytes());
}

/// The process of that name in inputs of [`state_frame`].
pub(super) fn state_member(name: &str) -> MemberId {
    MemberId {
        peer: PeerId::new(name).expect("a name"),
        incarnation: Incarnation {
            started_us: 1,
            random: 1,
        },
    }
}

/// A lane: its header, then messages, some of them compressed. The first byte sets the size of the pieces in which it
/// arrives.
pub fn lane(bytes: &[u8]) {
    let Some((piece, stream)) = bytes.split_first() else {
        return;
    };
    let at_once = read_lane(stream, stream.len().max(1));
    let in_pieces = read_lane(stream, usize::from(*piece) + 1);
    assert_eq!(at_once, in_pieces, "it depends on the pieces");
}

/// The readable frames, and whether the end is a violation.
fn read_lane(stream: &[u8], piece: usize) -> (Vec<Bytes>, bool) {
    let max_frame = MAX_MESSAGE_BYTES + MAX_MESSAGE_HEADER_BYTES;
    let mut buffer = BytesMut::new();
    let mut frames = Vec::new();
    for piece in stream.chunks(piece) {
        buffer.extend_from_slice(piece);
        loop {
            match take_frame(&mut buffer, max_frame) {
                Ok(Some(frame)) => {
                    assert!(frame.len() <= max_frame);
                    if !read_lane_frame(&frame, frames.is_empty()) {
                        return (frames, true);
                    }
                    frames.push(frame);
                }
                Ok(None) => break,
                Err(_) => return (frames, true),
            }
        }
        assert!(buffer.len() < max_frame + 4, "more is kept than one frame");
    }
    (frames, false)
}

fn read_lane_frame(frame: &[u8], first: bool) -> bool {
    if first {
        let header = postcard::take_from_bytes::<LaneHeader>(frame);
        return matches!(header, Ok((LaneHeader { lane }, [])) if is_ordered(lane));
    }
    let Ok((header, payload)) = postcard::take_from_bytes::<MessageHeader>(frame) else {
        return false;
    };
    let mut again = BytesMut::new();
    put_message(&mut again, &header, payload).expect("a header has a longest length");
    let again = take_frame(&mut again, usize::MAX)
        .expect("any")
        .expect("whole");
    let decoded = postcard::take_from_bytes::<MessageHeader>(&again).expect("just encoded");
    assert_eq!(decoded, (header.clone(), payload));
    if header.flags & OWN_FLAG == 0 {
        return payload.len() <= MAX_MESSAGE_BYTES;
    }
    unpack(payload, MAX_MESSAGE_BYTES).is_ok_and(|payload| payload.len() <= MAX_MESSAGE_BYTES)
}

/// A compressed payload. The first two bytes are the limit of its length.
pub fn compression(bytes: &[u8]) {
    let Some((max, packed)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let max = usize::from(u16::from_le_bytes(*max));
    if let Ok(payload) = unpack(packed, max) {
        assert!(payload.len() <= max);
        let declared = packed
            .first_chunk::<4>()
            .map(|len| u32::from_le_bytes(*len));
        assert_eq!(declared, u32::try_from(payload.len()).ok());
        assert_eq!(unpack(packed, payload.len()).as_ref(), Ok(&payload));
    }
    if let Some(short) = pack(packed) {
        assert!(short.len() < packed.len());
        assert_eq!(unpack(&short, packed.len()).as_deref(), Ok(packed));
        assert!(unpack(&short, packed.len() - 1).is_err());
    }
}

/// The file of a static quorum.
pub fn state_file(bytes: &[u8]) {
    crate::room::check_state_file(bytes);
}

/// Members that discovery finds and dials.
pub fn discovery(bytes: &[u8]) {
    crate::net::discovery::check_finds(Chance::Bytes(bytes));
}

/// A question about cards, and the card of a room.
pub fn card(bytes: &[u8]) {
    if let Some(question) = Question::read(bytes) {
        assert_eq!(question.write(), bytes);
    }
    let Some(read) = Unverified::read(bytes) else {
        return;
    };
    let claimed = read.claimed().clone();
    assert!(bytes.len() <= MAX_PACKET_BYTES && claimed.successors.len() <= MAX_SUCCESSORS);
    if let Some(shown) = &claimed.shown {
        assert!((1..=MAX_PEER_ID_BYTES).contains(&shown.name.len()));
        assert!(shown.data.len() <= MAX_DATA_BYTES && shown.players > 0);
    }
    let is_signed = read.verified().is_some();
    let signer = Identity::from_private(&Default::default()).expect("any 32 bytes are a key");
    if !is_signed {
        let again = claimed
            .write(&signer)
            .expect("what was read can be written");
        let again = Unverified::read(&again).expect("just written");
        assert_eq!(again.claimed(), &claimed);
    }
}

/// An address as a host writes it.
pub fn target(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match parse_target(text) {
        Ok(target) => {
            assert_ne!(target.port, 0);
            let text = target.to_string();
            assert_eq!(parse_target(&text).as_ref(), Ok(&target), "{text}");
            match &target.host {
                Host::Ip(_) => assert!(target.socket_addr().is_some()),
                Host::LinkLocal { zone, .. } => assert_ne!(*zone, 0),
                Host::Name(name) => assert!((1..=MAX_HOST_NAME_BYTES).contains(&name.len())),
            }
        }
        // Up to 4 bytes a character are quoted as up to 10.
        Err(error) => assert!(error.to_string().len() < 2048, "a long sentence"),
    }
}

/// Names of peers and rooms.
pub fn ids(bytes: &[u8]) {
    fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
        bytes: &[u8],
        text: fn(&T) -> &str,
        max: usize,
    ) {
        if let Some(id) = whole::<T>(bytes, usize::MAX) {
            let text = text(&id);
            assert!((1..=max).contains(&text.len()));
            assert!(!text.contains(char::is_control));
            assert_eq!(text.trim(), text);
        }
    }
    check(bytes, PeerId::as_str, MAX_PEER_ID_BYTES);
    check(bytes, SessionId::as_str, MAX_SESSION_ID_BYTES);
    if let Ok(text) = std::str::from_utf8(bytes) {
        match (PeerId::new(text), SessionId::new(text)) {
            (Ok(peer), Ok(session)) => assert_eq!((peer.as_str(), session.as_str()), (text, text)),
            (Ok(_), Err(error)) => panic!("no room may be called {text:?}: {error}"),
            (Err(_), Ok(_)) => assert!(text.len() > MAX_PEER_ID_BYTES),
            (Err(error), Err(_)) => assert!(error.to_string().len() < 200),
        }
    }
}

/// The memory of relayed broadcasts: no broadcast is delivered twice, and the memory stays within its limits.
pub fn relay(bytes: &[u8]) {
    /// Incarnations of each of a few origins.
    const LIVES: u8 = 4;
    let mut chance = Chance::Bytes(bytes);
    let (mut received, mut relays) = (ReceivedBroadcasts::default(), Relays::default());
    let mut delivered = std::collections::BTreeSet::new();
    let leaders = ["x", "y", "z"].map(|name| PeerId::new(name).expect("valid"));
    let mut steps = 0;
    while !chance.is_spent() && steps < 4096 {
        steps += 1;
        let name = format!("p{}", chance.below(8));
        let origin = PeerId::new(&name).expect("valid");
        let incarnation = Incarnation {
            started_us: (chance.byte() % LIVES).into(),
            random: 0,
        };
        let number = match chance.below(8) {
            0 => u64::MAX - 1,
            1 => chance.u64().min(u64::MAX - 1),
            _ => chance.byte().into(),
        };
        let lane = u16::from(chance.byte() % 2);
        let is_bound = chance.flip();
        if chance.flip() {
            let relay = &leaders[chance.below(leaders.len())];
            let digest = chance.below(2) as u64;
            let copy = RelayedCopy {
                relay,
                by_leader: true,
                is_bound,
                digest,
            };
            let name = BroadcastName {
                origin,
                incarnation,
                lane,
                number,
            };
            if received.is_new(&name, copy) {
                let new =
                    delivered.insert((name.origin.clone(), incarnation, lane, number, digest));
                assert!(new, "{name:?} is delivered twice");
                received.insert(&name, copy);
                assert!(!received.is_new(&name, copy));
            }
            continue;
        }
        let first = number.saturating_sub(chance.byte().into());
        match relays.place(&origin, incarnation, lane, number, first) {
            Place::Next { forwarded } => {
                if !forwarded {
                    relays.forwarded(&origin, incarnation, lane, number);
                }
                let again = relays.place(&origin, incarnation, lane, number, first);
                assert_eq!(again, Place::Next { forwarded: true });
                assert_eq!(relays.done(&origin, incarnation, lane, number), number + 1);
            }
            Place::Early => {}
            Place::Repeated(next) => assert!(next > number, "{next} is not after {number}"),
        }
    }
}

/// A member of a room of three, for targets that need one.
pub(super) fn someone<'a>(chance: Chance<'a>, policy: RoomPolicy) -> Wild<'a> {
    Wild {
        chance,
        me: Known::numbered("a", 1),
        others: vec![
            Known::numbered("b", 2),
            Known::numbered("c", 3),
            Known::numbered("me", 0),
        ],
        record: Record::default(),
        policy,
        addresses: vec![std::net::SocketAddr::from(([127, 0, 0, 1], 9))],
        beats: 0,
        tame: false,
        usurps: true,
    }
}
