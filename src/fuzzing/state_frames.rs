//! First inputs of the target of the state's frames.

use bytes::Bytes;

use super::decoders::state_member;
use crate::state::ballot::{Ballot, History, Place};
use crate::state::entry::{
    Contents, Entry, Expected, Fate, Key, OwnerChange, PropertyChange, Request, Traits, ValueChange,
};
use crate::state::wire::{Frame, Numbered, Piece, Tip};

/// A frame of each kind, from the leader "b".
pub(super) fn all() -> Vec<Frame> {
    let ballot = Ballot {
        number: 7,
        leader: state_member("b"),
    };
    let place = |index| Place {
        ballot: ballot.clone(),
        index,
    };
    let history = History(4711);
    let change = PropertyChange {
        key: Key::new("ball").expect("a key"),
        value: ValueChange::Set(Bytes::from_static(b"red")),
        owner: OwnerChange::To(state_member("b").peer),
        traits: Traits {
            owner_only: true,
            fate: Fate::FallsToLeader,
        },
        expected: Expected::Version(0),
    };
    let requests = [
        Request::Action {
            msg_type: 0x100,
            data: Bytes::from_static(b"+1"),
        },
        Request::Properties(vec![change]),
    ];
    let roster = [state_member("a"), state_member("b")].into_iter().collect();
    let open = Contents::Open {
        history,
        exclusive: true,
        roster,
    };
    let here = Contents::Member {
        member: state_member("b"),
        here: true,
        counts: true,
    };
    let asked = (1..)
        .zip(&requests)
        .map(|(number, request)| Contents::Request {
            author: state_member("b"),
            number,
            request: request.clone(),
        });
    let entries: Vec<_> = [open, here]
        .into_iter()
        .chain(asked)
        .map(|contents| Entry {
            ballot: ballot.clone(),
            time_ms: 5,
            contents,
        })
        .collect();
    let piece = Piece {
        index: 3,
        total: 4,
        offset: 1,
        bytes: Bytes::from_static(b"abc"),
    };
    let numbered = (1..).zip(requests);
    vec![
        Frame::Tip(Tip {
            answers: Some(ballot.clone()),
            follows: true,
            history: Some(history),
            last: Some(place(4)),
            is_used: true,
            oldest: 1,
            openings: vec![place(1)],
            roster: [state_member("b")].into_iter().collect(),
            is_recovering: false,
        }),
        Frame::Gather {
            ballot: ballot.clone(),
        },
        Frame::Append {
            ballot: ballot.clone(),
            previous: None,
            confirmed: 3,
            end: 4,
            entries: entries.clone(),
        },
        Frame::Tables {
            ballot: ballot.clone(),
            piece: piece.clone(),
        },
        Frame::Behind {
            promised: ballot.clone(),
        },
        Frame::Have {
            ballot: ballot.clone(),
            index: 4,
            is_recovering: false,
        },
        Frame::Staged {
            ballot: ballot.clone(),
            index: 2,
        },
        Frame::Submit {
            ballot: ballot.clone(),
            requests: numbered
                .map(|(number, request)| Numbered { number, request })
                .collect(),
        },
        Frame::Fetch {
            ballot: ballot.clone(),
            previous: Some(place(1)),
        },
        Frame::Entries {
            ballot: ballot.clone(),
            previous: None,
            entries,
        },
        Frame::Want { history, from: 3 },
        Frame::Part { history, piece },
        Frame::PartArrived {
            history,
            index: 3,
            received: 4,
        },
    ]
}
