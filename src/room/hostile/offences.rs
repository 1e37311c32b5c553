//! Violations of the protocol: the offender loses its link, and the others notice nothing else.

use super::*;
use crate::core::election::record::Epoch;
use crate::core::id::Fingerprint;
use crate::core::wire::{
    Ban, Candidate, MAX_CONTROL_FRAME_BYTES, MAX_JOIN_PAYLOAD_BYTES, MAX_KICKED,
    MAX_PEER_LIST_ENTRIES, MAX_REASON_BYTES, PeerEntry, RoomRules,
};
use crate::net::close;
use crate::net::compression::pack;
use crate::net::frame::{MAX_UNORDERED_SPAN, MESSAGE_DATAGRAM, OWN_FLAG, UNORDERED_LANE};

/// Bytes that no member sends, and the stream that carries them.
enum Offence {
    Control(Vec<u8>),
    Lane(Vec<u8>),
    /// Each on a stream of its own, after the header of that lane.
    Streams(u16, Vec<Vec<u8>>),
    Datagram(Vec<u8>),
    EndOfControl,
}

fn framed<T: Serialize>(value: &T) -> Vec<u8> {
    let mut buffer = BytesMut::new();
    put_value(&mut buffer, value).expect("encodes");
    buffer.to_vec()
}

fn length(len: usize) -> Vec<u8> {
    u32::try_from(len).expect("short").to_le_bytes().to_vec()
}

fn core(message: Message) -> Offence {
    Offence::Control(framed(&ControlFrame::Core(Envelope {
        incarnation: Incarnation {
            started_us: 1,
            random: 1,
        },
        message,
    })))
}

fn election(message: ElectionMessage) -> Offence {
    core(Message::from(Stamped::new(Stamp::default(), message)))
}

fn pulse(pulse: Pulse) -> Offence {
    core(heartbeat(pulse))
}

fn lane_message(seq: u64, msg_type: u16, role: MessageRole, payload: &[u8]) -> Offence {
    Offence::Lane(message_frame(seq, msg_type, 0, role, payload))
}

/// A message whose flag claims a compressed payload.
fn packed_message(payload: &[u8]) -> Offence {
    Offence::Lane(message_frame(
        0,
        0x100,
        OWN_FLAG,
        MessageRole::Peer,
        payload,
    ))
}

/// The compressed form of `len` zeros.
fn bomb(len: usize) -> Vec<u8> {
    pack(&vec![0; len]).expect("zeros are short").to_vec()
}

pub(super) fn led_by(name: &str, term: u64) -> Record {
    Record {
        leader_key: None,
        stamp: Stamp {
            epoch: Epoch::default(),
            term,
        },
        leader: Some(id(name)),
        assigned: false,
    }
}

pub(super) fn entry(name: &str, addresses: Vec<SocketAddr>) -> PeerEntry {
    PeerEntry {
        id: id(name),
        key: Fingerprint([9; 32]),
        addresses,
    }
}

fn offences() -> Vec<(&'static str, Offence)> {
    use MessageRole::{Central, Leader, Peer, Relayed};
    let max = quick().max_message_size;
    let relayed = |origin_seq| Relayed {
        origin: id("b"),
        incarnation: Incarnation {
            started_us: 1,
            random: 1,
        },
        origin_seq,
        token: Opaque::of(&led_by("m", 1)),
    };
    let central = |origin_seq, relayed_before| Central {
        origin_seq,
        relayed_before,
        token: Opaque::of(&Record::default()),
    };
    let candidate = id("b");
    let someone = SocketAddr::from(([127, 0, 0, 1], 9));
    vec![
        ("a type of the library", lane_message(0, 0xff, Peer, b"x")),
        ("a number left out", lane_message(1, 0x100, Peer, b"x")),
        (
            "the largest number",
            lane_message(u64::MAX, 0x100, Peer, b"x"),
        ),
        (
            "a relayed number that runs out",
            lane_message(0, 0x100, relayed(u64::MAX), b"x"),
        ),
        (
            "a broadcast's number that runs out",
            lane_message(0, 0x100, central(u64::MAX, 0), b"x"),
        ),
        (
            "a broadcast that was relayed",
            lane_message(0, 0x100, central(0, 1), b"x"),
        ),
        (
            "a broadcast that was never sent is relayed",
            Offence::Control(framed(&ControlFrame::Relayed { lane: 0, next: 1 })),
        ),
        (
            "a lane that was opened twice",
            Offence::Streams(3, vec![Vec::new(), Vec::new()]),
        ),
        (
            "a message of another channel",
            Offence::Streams(3, vec![message_frame(0, 0x100, 0, Peer, b"x")]),
        ),
        (
            "two messages on a stream for one",
            Offence::Streams(
                UNORDERED_LANE,
                vec![
                    [0, 1]
                        .map(|n| message_frame(n, 0x100, 0, Peer, b"x"))
                        .concat(),
                ],
            ),
        ),
        (
            "an unordered message too far ahead",
            Offence::Streams(
                UNORDERED_LANE,
                vec![message_frame(MAX_UNORDERED_SPAN, 0x100, 0, Peer, b"x")],
            ),
        ),
        (
            "an unordered message in another's name",
            Offence::Streams(
                UNORDERED_LANE,
                vec![message_frame(0, 0x100, 0, relayed(0), b"x")],
            ),
        ),
        (
            "an ack of an unordered message that was never sent",
            Offence::Control(framed(&ControlFrame::AckUnordered {
                next: 0,
                taken: vec![0],
            })),
        ),
        (
            "a message datagram without a header",
            Offence::Datagram(vec![MESSAGE_DATAGRAM, 1]),
        ),
        ("half of a length", packed_message(&[9, 0, 0])),
        ("a bomb", packed_message(&bomb(max + 1))),
        (
            "a bomb of 4 GiB",
            packed_message(&[&[0xff; 4][..], &bomb(max)[4..]].concat()),
        ),
        ("a length without a block", packed_message(&[9, 0, 0, 0])),
        (
            "a length that is too short",
            packed_message(&[&[9, 0, 0, 0], &bomb(1000)[4..]].concat()),
        ),
        (
            "a length that is too long",
            packed_message(&[&[0, 9, 0, 0], &bomb(1000)[4..]].concat()),
        ),
        ("a block that is cut", packed_message(&bomb(1000)[..8])),
        (
            "another leader's record",
            lane_message(0, 0x100, Leader(Opaque::of(&led_by("b", 1))), b"x"),
        ),
        (
            "one byte too long",
            lane_message(0, 0x100, Peer, &vec![0; max + 1]),
        ),
        ("4 GiB", Offence::Lane(vec![0xff; 4])),
        (
            "a malformed header",
            Offence::Lane([length(3), vec![0xff; 3]].concat()),
        ),
        ("an empty frame", Offence::Lane(length(0))),
        (
            "an ack of nothing",
            Offence::Control(framed(&ControlFrame::Ack { lane: 0, next: 1 })),
        ),
        (
            "an ack of another lane",
            Offence::Control(framed(&ControlFrame::Ack { lane: 3, next: 0 })),
        ),
        (
            "the largest ack",
            Offence::Control(framed(&ControlFrame::Ack {
                lane: 0,
                next: u64::MAX,
            })),
        ),
        (
            "Ready again",
            Offence::Control(framed(&ControlFrame::Ready)),
        ),
        (
            "Resume again",
            Offence::Control(framed(&ControlFrame::Resume { missed: 0 })),
        ),
        (
            "a malformed frame",
            Offence::Control([length(20), vec![0xff; 20]].concat()),
        ),
        (
            "a frame too long",
            Offence::Control(length(MAX_CONTROL_FRAME_BYTES + 1)),
        ),
        ("the end of the control stream", Offence::EndOfControl),
        ("a malformed datagram", Offence::Datagram(vec![0; 9])),
        (
            "an election message that cannot be decoded",
            core(Message::Election(Opaque::default())),
        ),
        (
            "a heartbeat whose part cannot be decoded",
            core(Message::Heartbeat(Heartbeat {
                seq: 1,
                echo: None,
                host_silent_ms: 0,
                room_time_us: None,
                pulse: Opaque::default(),
            })),
        ),
        (
            "no token",
            lane_message(0, 0x100, Leader(Opaque::default()), b"x"),
        ),
        (
            "another's vote request",
            election(ElectionMessage::VoteRequest {
                round: 1,
                candidate: candidate.clone(),
                asked_by: Some(id("a")),
            }),
        ),
        (
            "another's pre-vote request",
            election(ElectionMessage::PreVoteRequest {
                round: u64::MAX,
                candidate,
                term: u64::MAX,
            }),
        ),
        (
            "another's assignment",
            election(ElectionMessage::LeaderAssign {
                record: led_by("b", 1),
                seq: 1,
            }),
        ),
        (
            "another's claim",
            pulse(Pulse::Leads {
                record: led_by("b", 1),
                weight: u32::MAX,
                led_ms: u64::MAX,
                election_timeout_min_ms: 1500,
            }),
        ),
        (
            "a long peer list",
            core(Message::PeerList(vec![
                entry("x", Vec::new());
                MAX_PEER_LIST_ENTRIES + 1
            ])),
        ),
        (
            "a peer list of 10,000",
            core(Message::PeerList(vec![entry("x", Vec::new()); 10_000])),
        ),
        (
            "a long join payload",
            core(Message::JoinRequest {
                request: 1,
                candidate: Candidate {
                    entry: entry("x", Vec::new()),
                    incarnation: Incarnation {
                        started_us: 1,
                        random: 1,
                    },
                    payload: vec![0; MAX_JOIN_PAYLOAD_BYTES + 1],
                },
            }),
        ),
        (
            "an admission with many addresses",
            core(Message::Admitted {
                entry: entry("x", vec![someone; 5]),
                incarnation: Incarnation {
                    started_us: 1,
                    random: 1,
                },
            }),
        ),
        (
            "a kick with a long reason",
            core(Message::Kicked {
                peer: id("b"),
                key: Fingerprint([9; 32]),
                code: 1,
                bytes: vec![0; MAX_REASON_BYTES + 1],
                ban: None,
            }),
        ),
        (
            "a disconnection with a long reason",
            core(Message::Disconnected {
                code: 1,
                bytes: vec![0; MAX_REASON_BYTES + 1],
            }),
        ),
        (
            "a long list of lifted bans",
            core(Message::Unbanned(vec![
                Ban::new(
                    id("x"),
                    Fingerprint([9; 32])
                );
                MAX_KICKED + 1
            ])),
        ),
        (
            "a long list of kicked peers",
            core(Message::RoomRules(RoomRules {
                bans: vec![Ban::new(id("x"), Fingerprint([9; 32])); MAX_KICKED + 1],
                ..RoomRules::default()
            })),
        ),
        (
            "many addresses",
            core(Message::PeerList(vec![entry("x", vec![someone; 5])])),
        ),
    ]
}

#[tokio::test]
async fn each_violation_costs_only_the_violators_link() {
    let pair = Pair::settled("offences").await;
    let mut expected = vec![joined("b")];
    for (n, (what, offence)) in offences().into_iter().enumerate() {
        let name = format!("m{n}");
        let offender = Attacker::new(&name, "offences");
        let mut member = offender.join(&pair.a).await;
        match offence {
            Offence::Control(bytes) => member.send_bytes(&bytes).await,
            Offence::Lane(bytes) => member.send_on_lane(&bytes).await,
            Offence::Streams(lane, streams) => {
                for bytes in streams {
                    let mut stream = member.open_lane(LaneHeader { lane }).await;
                    // The other end may have given the link up meanwhile.
                    let _ = in_time(stream.write_all(&bytes)).await;
                }
            }
            Offence::Datagram(bytes) => {
                let sent = member.connection.send_datagram(bytes.into());
                sent.expect("datagrams are on");
            }
            Offence::EndOfControl => member.control.finish().expect("open"),
        }
        assert_eq!(member.closed().await, close::VIOLATION, "{what}");
        pair.a.wait_for(left(&name), 1).await;
        pair.undisturbed(what).await;
        expected.extend([joined(&name), left(&name)]);
        assert_eq!(pair.a.comings_and_goings(), expected, "{what}");
        // It does not return by itself.
        assert_eq!(
            offender.refused(&pair.a, &offender.hello()).await,
            -18,
            "{what}"
        );
    }
    assert_eq!(pair.b.comings_and_goings(), vec![joined("a")]);
    eventually("nothing is left of the offenders", || {
        let census = pair.a.census();
        (census.connections, census.sessions, census.links) == (1, 1, 1)
    })
    .await;
}

#[tokio::test]
async fn an_offender_does_not_get_back_by_saying_that_its_host_asked_for_it() {
    let pair = Pair::settled("by hand").await;
    let offender = Attacker::new("m", "by hand");
    let mut member = offender.join(&pair.a).await;
    member.emit(&ControlFrame::Ready).await;
    assert_eq!(member.closed().await, close::VIOLATION);
    pair.a.wait_for(left("m"), 1).await;
    for name in ["m", "another name"] {
        let by_hand = Hello {
            by_hand: true,
            peer_id: id(name),
            ..offender.hello()
        };
        assert_eq!(offender.refused(&pair.a, &by_hand).await, -18, "{name}");
    }
    // A peer with that name and another key has broken no rule.
    Attacker::new("m", "by hand").join(&pair.a).await;
    pair.undisturbed("an offender").await;
}

#[tokio::test]
async fn a_lane_of_an_unknown_kind_is_an_offence() {
    let pair = Pair::settled("lanes").await;
    let member = Attacker::new("m", "lanes").join(&pair.a).await;
    let _lane = member.open_lane(LaneHeader { lane: 258 }).await;
    assert_eq!(member.closed().await, close::VIOLATION);
    pair.a.wait_for(left("m"), 1).await;
    pair.undisturbed("an unknown lane").await;
}
