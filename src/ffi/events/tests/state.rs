//! Each kind of event of the room's state carries its documented fields.

use super::*;
use crate::core::id::Incarnation;
use crate::state::ballot::{History, MemberId};
use crate::state::entry::{Key, Traits};
use crate::state::event::{Outcome, ResetReason, StateEvent};
use crate::state::tables::{Presence, Property};

/// Kind, peer, other, owner, data and [epoch, request, count, reason, code, type, success, index, time].
type Seen = (u32, String, String, String, Vec<u8>, [i64; 9]);

fn seen(event: &StateEvent) -> Seen {
    let report = Report {
        event: Reported::State(event),
        peer_index: 7,
    };
    let (event, [peer, other, owner], data) = received(report);
    assert_eq!(event.peer_index, 7);
    let numbers = [
        event.epoch.cast_signed(),
        event.request.cast_signed(),
        event.count.cast_signed(),
        event.reason.into(),
        event.code.into(),
        event.msg_type.into(),
        event.success.into(),
        event.index.cast_signed(),
        event.time_ms.cast_signed(),
    ];
    (event.kind, peer, other, owner, data, numbers)
}

fn expected(kind: u32, [peer, other, owner]: [&str; 3], data: &[u8], numbers: [i64; 9]) -> Seen {
    let texts = (peer.into(), other.into(), owner.into());
    (kind, texts.0, texts.1, texts.2, data.to_vec(), numbers)
}

fn member(name: &str) -> MemberId {
    MemberId {
        peer: id(name),
        incarnation: Incarnation {
            started_us: 3,
            random: 4,
        },
    }
}

fn key(name: &str) -> Key {
    Key::new(name).expect("a key")
}

/// Reports of every kind, in which each field of the kind is set at least once.
pub(super) fn reports() -> Vec<(StateEvent, Seen)> {
    let action = |request| StateEvent::Action {
        index: 5,
        time_ms: 60,
        author: member("b"),
        msg_type: 0x100,
        data: Bytes::from_static(b"add"),
        request,
    };
    let result = |outcome| StateEvent::ActionResult {
        request: 9,
        index: 5,
        outcome,
    };
    let result_with = |code| expected(29, ["", "", ""], b"", [0, 9, 0, 0, code, 0, 0, 5, 0]);
    let property = |owner: Option<&str>| StateEvent::Property {
        index: 6,
        time_ms: 70,
        key: key("map"),
        property: Some(Property {
            value: Bytes::from_static(b"forest"),
            owner: owner.map(id),
            traits: Traits::default(),
            version: 4,
        }),
        author: owner.map(|_| member("b")),
    };
    let reset = |snapshot: Option<&'static [u8]>, reason, is_incomplete| StateEvent::Reset {
        index: 8,
        snapshot: snapshot.map(Bytes::from_static),
        reason,
        is_incomplete,
        rolled_back: 2,
    };
    let opened = |leader: Option<&str>, is_exclusive| StateEvent::Opened {
        index: 8,
        leader: leader.map(member),
        is_exclusive,
        history: leader.map(|_| History(77)),
        roster: 3,
    };
    let presence = |presence| StateEvent::MemberPresence {
        index: 8,
        member: member("b"),
        presence,
    };
    vec![
        (
            action(Some(9)),
            expected(28, ["b", "", ""], b"add", [0, 9, 0, 0, 0, 0x100, 0, 5, 60]),
        ),
        (
            action(None),
            expected(28, ["b", "", ""], b"add", [0, 0, 0, 0, 0, 0x100, 0, 5, 60]),
        ),
        (result(Outcome::Ok), result_with(0)),
        (result(Outcome::Conflict), result_with(-25)),
        (result(Outcome::StateFull), result_with(-26)),
        (result(Outcome::NotOwner), result_with(-18)),
        (result(Outcome::OutcomeUnknown), result_with(-27)),
        (
            property(Some("c")),
            expected(
                30,
                ["b", "map", "c"],
                b"forest",
                [0, 0, 4, 0, 0, 0, 1, 6, 70],
            ),
        ),
        (
            property(None),
            expected(30, ["", "map", ""], b"forest", [0, 0, 4, 0, 0, 0, 1, 6, 70]),
        ),
        (
            StateEvent::Property {
                index: 6,
                time_ms: 70,
                key: key("map"),
                property: None,
                author: Some(member("b")),
            },
            expected(30, ["b", "map", ""], b"", [0, 0, 0, 0, 0, 0, 0, 6, 70]),
        ),
        (
            reset(Some(b"saved"), ResetReason::RolledBack, false),
            expected(31, ["", "", ""], b"saved", [0, 0, 2, 2, 0, 0, 0, 8, 0]),
        ),
        (
            reset(None, ResetReason::Behind, true),
            expected(31, ["", "", ""], b"", [0, 0, 2, 1, -19, 0, 0, 8, 0]),
        ),
        (
            reset(None, ResetReason::Joined, false),
            expected(31, ["", "", ""], b"", [0, 0, 2, 0, 0, 0, 0, 8, 0]),
        ),
        (
            StateEvent::RolledBack {
                index: 5,
                author: member("b"),
                msg_type: 0x101,
                data: Bytes::from_static(b"say"),
                request: Some(9),
            },
            expected(32, ["b", "", ""], b"say", [0, 9, 0, 0, 0, 0x101, 0, 5, 0]),
        ),
        (
            StateEvent::SnapshotWanted {
                request: 3,
                index: 8,
            },
            expected(33, ["", "", ""], b"", [0, 3, 0, 0, 0, 0, 0, 8, 0]),
        ),
        (
            opened(Some("b"), true),
            expected(34, ["b", "", ""], b"", [77, 0, 3, 0, 0, 0, 1, 8, 0]),
        ),
        (
            opened(None, false),
            expected(34, ["", "", ""], b"", [0, 0, 3, 0, 0, 0, 0, 8, 0]),
        ),
        (
            presence(Presence::Here),
            expected(35, ["b", "", ""], b"", [0, 0, 0, 0, 0, 0, 1, 8, 0]),
        ),
        (
            presence(Presence::Gone),
            expected(35, ["b", "", ""], b"", [0, 0, 0, 0, 0, 0, 0, 8, 0]),
        ),
    ]
}

#[test]
fn every_kind_of_the_state_carries_the_values_of_its_report() {
    for (reported, expected) in reports() {
        assert_eq!(seen(&reported), expected);
    }
}
