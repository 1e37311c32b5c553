//! Each kind of event carries its documented fields.

mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::mem::offset_of;
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::core::event::{
    MappingFault, MappingReport, Receipt, Transfer, TransferNews, TransferOutcome, TurnReport,
};
use crate::core::path::LinkPath;
use crate::dispatch::{Delivery, DiscoveryRefused, FoundBy, Incoming, Left, RelayReport, Returned};

// `EVENT_FIELDS`: each kind with the fields that its documentation lists.
include!(concat!(env!("OUT_DIR"), "/event_fields.rs"));

/// Kind, peer, other, data and [term, epoch, request, count, reason, code, type, flags,
/// success].
type Seen = (u32, String, String, Vec<u8>, [i64; 9]);

fn transfer(news: TransferNews) -> Event {
    Event::Transfer(Transfer {
        peer: PeerId::new("b").expect("an id"),
        id: 4,
        size: 9,
        news,
        receipt: Receipt::new(()),
    })
}

fn indexed(event: &Event, peer_index: u32) -> Report<'_> {
    Report {
        event: Reported::Room(event),
        peer_index,
    }
}

/// The struct that a handler receives for a report, and copies of its texts (peer, other, owner) and data.
fn received(report: Report<'_>) -> (MmnEvent, [String; 3], Vec<u8>) {
    let mut received = None;
    notify(report, |event| {
        // SAFETY: it is valid during the call.
        let event = unsafe { *event };
        assert_eq!(event.struct_size as usize, size_of::<MmnEvent>());
        let text = |text| {
            // SAFETY: never NULL, and NUL-terminated.
            let text = unsafe { CStr::from_ptr(text) };
            text.to_str().expect("UTF-8").to_owned()
        };
        assert!(!event.data.is_null());
        let length = usize::try_from(event.length).expect("not negative");
        // SAFETY: never NULL, and `length` bytes long.
        let data = unsafe { std::slice::from_raw_parts(event.data, length) };
        let texts = [event.peer, event.other, event.owner].map(text);
        received = Some((event, texts, data.to_vec()));
    });
    received.expect("reported")
}

fn seen(event: &Event) -> Seen {
    let (event, [peer, other, _], data) = received(indexed(event, 0));
    let numbers = [
        event.term.cast_signed(),
        event.epoch.cast_signed(),
        event.request.cast_signed(),
        event.count.cast_signed(),
        event.reason.into(),
        event.code.into(),
        event.msg_type.into(),
        event.flags.into(),
        event.success.into(),
    ];
    (event.kind, peer, other, data, numbers)
}

fn id(text: &str) -> PeerId {
    PeerId::new(text).expect("a valid id")
}

fn expected(kind: u32, peer: &str, other: &str, data: &[u8], numbers: [i64; 9]) -> Seen {
    (kind, peer.into(), other.into(), data.to_vec(), numbers)
}

#[test]
fn the_struct_has_no_hidden_padding() {
    let pointer = size_of::<usize>();
    assert_eq!(offset_of!(MmnEvent, kind), 4);
    assert_eq!(offset_of!(MmnEvent, term), 8);
    assert_eq!(offset_of!(MmnEvent, count), 32);
    assert_eq!(offset_of!(MmnEvent, peer), 40);
    assert_eq!(offset_of!(MmnEvent, length), 40 + 3 * pointer);
    assert_eq!(offset_of!(MmnEvent, success), 55 + 3 * pointer);
    if pointer == 8 {
        assert_eq!(offset_of!(MmnEvent, missed), 80);
        assert_eq!(offset_of!(MmnEvent, peer_index), 88);
        assert_eq!(offset_of!(MmnEvent, channel), 92);
        assert_eq!(offset_of!(MmnEvent, delivery), 93);
        assert_eq!(offset_of!(MmnEvent, room), 96);
        assert_eq!(offset_of!(MmnEvent, index), 104);
        assert_eq!(offset_of!(MmnEvent, owner), 120);
        assert_eq!(size_of::<MmnEvent>(), 128);
    }
}

/// Reports of every kind, in which each field of the kind is set at least once.
fn reports() -> Vec<(Event, Seen)> {
    let none = [0; 9];
    let change = LeaderChange {
        old: Some(id("a")),
        new: Some(id("b")),
        term: 4,
        epoch: 5,
        reason: LeaderReason::Left,
    };
    let led = [4, 5, 0, 0, MMN_LEADER_LEFT.into(), 0, 0, 0, 0];
    vec![
        (
            Event::Joined(id("琪露诺")),
            expected(1, "琪露诺", "", b"", none),
        ),
        (
            Event::Reconnecting(id("b")),
            expected(2, "b", "", b"", none),
        ),
        (
            Event::Returned(Returned {
                peer: id("b"),
                undelivered: 5,
                missed: 6,
            }),
            expected(3, "b", "", b"", [0, 0, 0, 5, 0, 0, 0, 0, 0]),
        ),
        (
            Event::MemberState {
                peer: id("b"),
                state: MemberState::Unreachable,
                version: 4,
            },
            expected(16, "b", "", b"", [4, 0, 0, 0, 3, 0, 0, 0, 0]),
        ),
        (
            Event::Left(Left {
                peer: id("b"),
                why: LeftReason::Kicked,
                code: -7,
                bytes: b"bye".to_vec(),
                undelivered: 9,
            }),
            expected(4, "b", "", b"bye", [0, 0, 0, 9, 4, -7, 0, 0, 0]),
        ),
        (
            Event::Message(Incoming {
                from: id("b"),
                payload: Bytes::from_static(b"hello"),
                msg_type: 0x100,
                flags: 2,
                channel: 5,
                delivery: Delivery::Sequenced,
            }),
            expected(5, "b", "", b"hello", [0, 0, 0, 0, 0, 0, 0x100, 2, 0]),
        ),
        (Event::SlowPeer(id("b")), expected(14, "b", "", b"", none)),
        (
            Event::Unlinked {
                peer: id("b"),
                other: id("c"),
            },
            expected(22, "b", "c", b"", none),
        ),
        (
            Event::BanDropped {
                peer: id("b"),
                leader: id("c"),
            },
            expected(23, "b", "c", b"", none),
        ),
        (
            Event::PathChanged {
                peer: id("b"),
                old: LinkPath::Direct,
                new: LinkPath::Member(id("c")),
            },
            expected(26, "b", "c", b"", [0, 0, 0, 0, 2, 0, 0, 0, 0]),
        ),
        (
            Event::PathChanged {
                peer: id("b"),
                old: LinkPath::Leader(id("c")),
                new: LinkPath::Direct,
            },
            expected(26, "b", "", b"", [0, 0, 0, 0, 0, 1, 0, 0, 0]),
        ),
        (
            Event::Relay(RelayReport {
                relay: "relay.example".into(),
                code: 0,
                observed: Some("203.0.113.7:4433".parse().expect("an address")),
            }),
            expected(
                27,
                "",
                "relay.example",
                b"203.0.113.7:4433",
                [0, 0, 0, 0, 0, 0, 0, 0, 1],
            ),
        ),
        (
            Event::Relay(RelayReport {
                relay: "relay.example:7844".into(),
                code: -17,
                observed: None,
            }),
            expected(
                27,
                "",
                "relay.example:7844",
                b"the relay asks for another token, or has another key than the given one; compare both with the relay's",
                [0, 0, 0, 0, 0, -17, 0, 0, 0],
            ),
        ),
        (
            Event::Turn(TurnReport {
                server: "turns:a:443".into(),
                code: 0,
                address: Some("203.0.113.7:50001".parse().expect("an address")),
                why: "".into(),
            }),
            expected(
                44,
                "",
                "turns:a:443",
                b"203.0.113.7:50001",
                [0, 0, 0, 0, 0, 0, 0, 0, 1],
            ),
        ),
        (
            Event::Turn(TurnReport {
                server: "turns:a:443".into(),
                code: -17,
                address: None,
                why: "why".into(),
            }),
            expected(
                44,
                "",
                "turns:a:443",
                b"why",
                [0, 0, 0, 0, 0, -17, 0, 0, 0],
            ),
        ),
        (
            Event::PortMapping(MappingReport::Mapped(
                "203.0.113.7:4433".parse().expect("an address"),
            )),
            expected(43, "", "", b"203.0.113.7:4433", [0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ),
        (
            Event::PortMapping(MappingReport::Failed(MappingFault::NotPublic)),
            expected(
                43,
                "",
                "",
                b"the router has no address of the internet: it is behind another router, perhaps of the provider, so a port of it helps nobody; a relay does",
                [0, 0, 0, 0, 0, -4, 0, 0, 0],
            ),
        ),
        (
            Event::DataDropped {
                peer: id("b"),
                direction: Direction::Received,
                count: 7,
            },
            expected(15, "b", "", b"", [0, 0, 0, 7, 1, 0, 0, 0, 0]),
        ),
        (
            Event::SetLeaderResult {
                target: id("b"),
                outcome: AssignOutcome::Done,
            },
            expected(6, "b", "", b"", [0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ),
        (
            Event::SetLeaderResult {
                target: id("b"),
                outcome: AssignOutcome::Timeout,
            },
            expected(
                6,
                "b",
                "",
                b"",
                [0, 0, 0, 0, 0, Code::Timeout.value().into(), 0, 0, 0],
            ),
        ),
        (
            Event::RoomEnded {
                why: EndReason::HostLeft,
                code: 3,
                bytes: b"over".to_vec(),
            },
            expected(7, "", "", b"over", [0, 0, 0, 0, 1, 3, 0, 0, 0]),
        ),
        (
            Event::LeaderChanged(change.clone()),
            expected(8, "b", "a", b"", led),
        ),
        (
            Event::LeadershipGained(change.clone()),
            expected(9, "b", "a", b"", led),
        ),
        (
            Event::LeadershipLost(change),
            expected(10, "b", "a", b"", led),
        ),
        (
            Event::JoinRequest {
                request: 8,
                peer: id("c"),
                address: Some(([192, 0, 2, 1], 1).into()),
                payload: b"let me in".to_vec(),
            },
            expected(
                11,
                "c",
                "192.0.2.1:1",
                b"let me in",
                [0, 0, 8, 0, 0, 0, 0, 0, 0],
            ),
        ),
        (
            Event::JoinRequest {
                request: 9,
                peer: id("c"),
                address: None,
                payload: Vec::new(),
            },
            expected(11, "c", "", b"", [0, 0, 9, 0, 0, 0, 0, 0, 0]),
        ),
        (
            Event::JoinWithdrawn {
                request: 8,
                peer: id("c"),
            },
            expected(24, "c", "", b"", [0, 0, 8, 0, 0, 0, 0, 0, 0]),
        ),
        (
            Event::HostSilent {
                peer: id("b"),
                silent: Duration::from_millis(5_001),
            },
            expected(19, "b", "", b"", [0, 0, 0, 5_001, 0, 0, 0, 0, 0]),
        ),
        (Event::HostBack(id("b")), expected(20, "b", "", b"", none)),
        (
            Event::NoRoomFound(Duration::from_millis(10_000)),
            expected(25, "", "", b"", [0, 0, 0, 10_000, 0, 0, 0, 0, 0]),
        ),
        (
            Event::Discovered {
                address: "host:1".into(),
            },
            expected(12, "", "host:1", b"", none),
        ),
        (
            Event::ConnectionResult(ConnectionResult {
                target: "host:1".into(),
                success: false,
                code: -18,
                peer: None,
                reason: 7,
                bytes: Bytes::from_static(b"no"),
            }),
            expected(13, "", "host:1", b"no", [0, 0, 0, 0, 7, -18, 0, 0, 0]),
        ),
        (
            Event::ConnectionResult(ConnectionResult {
                target: "host:1".into(),
                success: true,
                code: 0,
                peer: Some(id("b")),
                reason: 0,
                bytes: Bytes::new(),
            }),
            expected(13, "b", "host:1", b"", [0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ),
        (
            transfer(TransferNews::Offered {
                tag: Bytes::from_static(b"map"),
            }),
            expected(39, "b", "", b"map", [0, 0, 4, 9, 0, 0, 0, 0, 0]),
        ),
        (
            transfer(TransferNews::Progress { done: 5 }),
            expected(40, "b", "", b"", [0, 0, 4, 9, 0, 0, 0, 0, 0]),
        ),
        (
            transfer(TransferNews::Part {
                offset: 5,
                bytes: Bytes::from_static(b"part"),
            }),
            expected(42, "b", "", b"part", [0, 0, 4, 0, 0, 0, 0, 0, 0]),
        ),
        (
            transfer(TransferNews::Ended {
                outcome: TransferOutcome::Complete,
                done: 9,
            }),
            expected(41, "b", "", b"", [0, 0, 4, 9, 0, 0, 0, 0, 1]),
        ),
        (
            transfer(TransferNews::Ended {
                outcome: TransferOutcome::Busy,
                done: 0,
            }),
            expected(41, "b", "", b"", [0, 0, 4, 9, 5, 0, 0, 0, 0]),
        ),
        (
            Event::DiscoveryRefused(DiscoveryRefused {
                found_by: FoundBy::Seed,
                result: ConnectionResult {
                    target: "seed:1".into(),
                    success: false,
                    code: -18,
                    peer: Some(id("b")),
                    reason: 7,
                    bytes: Bytes::from_static(b"why"),
                },
            }),
            expected(21, "b", "seed:1", b"why", [0, 0, 0, 0, 7, -18, 0, 0, 0]),
        ),
        (
            Event::LockResult {
                request: 8,
                name: "door".into(),
                outcome: LockOutcome::Held { token: 6 },
            },
            expected(17, "", "door", b"", [0, 0, 8, 6, 0, 0, 0, 0, 1]),
        ),
        (
            Event::LockResult {
                request: 9,
                name: "door".into(),
                outcome: LockOutcome::Taken,
            },
            expected(17, "", "door", b"", [0, 0, 9, 0, 0, -18, 0, 0, 0]),
        ),
        (
            Event::LockLost {
                name: "door".into(),
                token: 6,
            },
            expected(18, "", "door", b"", [0, 0, 0, 6, 0, 0, 0, 0, 0]),
        ),
    ]
}

#[test]
fn every_kind_carries_the_values_of_its_report() {
    for (reported, expected) in reports() {
        assert_eq!(seen(&reported), expected);
    }
}

#[test]
fn every_kind_sets_its_documented_fields_and_no_others() {
    let mut set: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    let (of_room, of_state) = (reports(), state::reports());
    let of_room = of_room.iter().map(|(event, _)| Reported::Room(event));
    let of_state = of_state.iter().map(|(event, _)| Reported::State(event));
    for event in of_room.chain(of_state) {
        let report = Report {
            event,
            peer_index: 0,
        };
        notify(report, |event| {
            // SAFETY: it is valid during the call.
            let event = unsafe { *event };
            set.entry(event.kind)
                .or_default()
                .extend(set_fields(&event));
        });
    }
    let documented: BTreeMap<u32, BTreeSet<&str>> = EVENT_FIELDS
        .iter()
        .map(|(kind, fields)| (*kind, fields.iter().copied().collect()))
        .collect();
    assert_eq!(set, documented);
}

/// The fields that are not 0 or "", without the ones that every kind sets or that come with another field.
fn set_fields(event: &MmnEvent) -> Vec<&'static str> {
    // A new field does not compile here without a decision.
    let MmnEvent {
        struct_size: _,
        kind: _,
        term,
        epoch,
        request,
        count,
        peer,
        other,
        data: _,
        length,
        reason,
        code,
        msg_type,
        flags,
        success,
        missed,
        peer_index: _,
        channel,
        delivery,
        found_by,
        room: _,
        index,
        time_ms,
        owner,
    } = *event;
    // SAFETY: never NULL, and NUL-terminated.
    let is_text = |text| !unsafe { CStr::from_ptr(text) }.is_empty();
    let fields = [
        ("term", term != 0),
        ("epoch", epoch != 0),
        ("request", request != 0),
        ("count", count != 0),
        ("peer", is_text(peer)),
        ("other", is_text(other)),
        ("data", length != 0),
        ("reason", reason != 0),
        ("code", code != 0),
        ("msg_type", msg_type != 0),
        ("flags", flags != 0),
        ("success", success != 0),
        ("missed", missed != 0),
        ("channel", channel != 0),
        ("delivery", delivery != 0),
        ("found_by", found_by != 0),
        ("index", index != 0),
        ("time_ms", time_ms != 0),
        ("owner", is_text(owner)),
    ];
    let set = fields.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(name, _)| name).collect()
}

#[test]
fn a_message_carries_its_channel_and_delivery() {
    for delivery in [
        Delivery::ReliableOrdered,
        Delivery::ReliableUnordered,
        Delivery::Unreliable,
        Delivery::Sequenced,
    ] {
        let message = Event::Message(Incoming {
            from: id("b"),
            payload: Bytes::new(),
            msg_type: 0x100,
            flags: 0,
            channel: 255,
            delivery,
        });
        notify(indexed(&message, 7), |event| {
            // SAFETY: it is valid during the call.
            let event = unsafe { *event };
            assert_eq!((event.channel, event.delivery), (255, delivery as u8));
            assert_eq!((event.missed, event.peer_index, event.found_by), (0, 7, 0));
        });
    }
}

#[test]
fn a_refusal_carries_how_the_member_was_found() {
    for (found_by, number) in [
        (FoundBy::LocalNetwork, MMN_FOUND_IN_LOCAL_NETWORK),
        (FoundBy::Seed, MMN_FOUND_AS_SEED),
        (FoundBy::Relay, MMN_FOUND_AT_RELAY),
    ] {
        let refused = Event::DiscoveryRefused(DiscoveryRefused {
            found_by,
            result: ConnectionResult {
                target: "host:1".into(),
                success: false,
                code: -11,
                peer: None,
                reason: 0,
                bytes: Bytes::new(),
            },
        });
        notify(indexed(&refused, 0), |event| {
            // SAFETY: it is valid during the call.
            assert_eq!(i32::from(unsafe { (*event).found_by }), number);
        });
    }
}

#[test]
fn each_outcome_of_set_leader_has_its_code() {
    for (outcome, code) in [
        (AssignOutcome::Done, Code::Ok),
        (AssignOutcome::Timeout, Code::Timeout),
        (AssignOutcome::Superseded, Code::Superseded),
        (AssignOutcome::Rejected, Code::Rejected),
    ] {
        assert_eq!(outcome_code(outcome), code);
    }
}

#[test]
fn the_headers_reasons_are_the_librarys() {
    for (reason, number) in [
        (LeftReason::Left, 0),
        (LeftReason::Lost, 1),
        (LeftReason::Disconnected, 2),
        (LeftReason::Replaced, 3),
        (LeftReason::Kicked, 4),
        (LeftReason::Violation, 5),
        (LeftReason::GaveUp, 6),
        (LeftReason::RoomEnded, 7),
    ] {
        assert_eq!(left_reason(reason), number);
    }
    assert_eq!(end_reason(EndReason::Kicked), 0);
    assert_eq!(end_reason(EndReason::HostLeft), 1);
    assert_eq!(end_reason(EndReason::HostLost), 2);
    assert_eq!(end_reason(EndReason::Disconnected), 3);
    assert_eq!(end_reason(EndReason::DuplicateId), 4);
    assert_eq!(end_reason(EndReason::Internal), 5);
}
