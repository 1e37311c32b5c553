//! Events of the room's state as `MmnEvent`.

use std::borrow::Cow;

use super::*;
use crate::state::event::{Outcome, ResetReason, StateEvent};
use crate::state::tables::Presence;

/// Sets the numbers of `event`, and returns its peer, its other text and its bytes.
pub(super) fn fill_in<'a>(
    event: &mut MmnEvent,
    reported: &'a StateEvent,
) -> (Option<&'a PeerId>, Cow<'a, str>, Cow<'a, [u8]>) {
    let (kind, index) = kind_and_index(reported);
    event.kind = kind;
    event.index = index;
    let (mut other, mut data) = ("", &[][..]);
    match reported {
        StateEvent::Action {
            time_ms,
            msg_type,
            data: bytes,
            request,
            ..
        } => {
            event.time_ms = *time_ms;
            event.msg_type = *msg_type;
            event.request = request.unwrap_or(0);
            data = bytes;
        }
        StateEvent::ActionResult {
            request, outcome, ..
        } => {
            event.request = *request;
            event.code = outcome_code(*outcome).value();
        }
        StateEvent::Property {
            time_ms,
            key,
            property,
            ..
        } => {
            event.time_ms = *time_ms;
            other = key.as_str();
            if let Some(property) = property {
                event.success = 1;
                event.count = property.version;
                data = &property.value;
            }
        }
        StateEvent::Reset {
            snapshot,
            reason,
            is_incomplete,
            rolled_back,
            ..
        } => {
            event.reason = reset_reason(*reason);
            event.count = *rolled_back as u64;
            if *is_incomplete {
                event.code = Code::Timeout.value();
            }
            data = snapshot.as_deref().unwrap_or_default();
        }
        StateEvent::RolledBack {
            msg_type,
            data: bytes,
            request,
            ..
        } => {
            event.msg_type = *msg_type;
            event.request = request.unwrap_or(0);
            data = bytes;
        }
        StateEvent::SnapshotWanted { request, .. } => event.request = *request,
        StateEvent::Opened {
            is_exclusive,
            history,
            roster,
            ..
        } => {
            event.success = (*is_exclusive).into();
            event.epoch = history.map_or(0, |history| history.0);
            event.count = *roster as u64;
        }
        StateEvent::MemberPresence { presence, .. } => {
            event.success = (*presence == Presence::Here).into();
        }
    }
    (reported.peer(), other.into(), data.into())
}

/// The owner of the property that it is about.
pub(super) fn owner(reported: &StateEvent) -> Option<&PeerId> {
    match reported {
        StateEvent::Property { property, .. } => property.as_ref()?.owner.as_ref(),
        _ => None,
    }
}

fn kind_and_index(reported: &StateEvent) -> (u32, u64) {
    match reported {
        StateEvent::Action { index, .. } => (MMN_EVENT_ACTION, *index),
        StateEvent::ActionResult { index, .. } => (MMN_EVENT_ACTION_RESULT, *index),
        StateEvent::Property { index, .. } => (MMN_EVENT_PROPERTY, *index),
        StateEvent::Reset { index, .. } => (MMN_EVENT_STATE_RESET, *index),
        StateEvent::RolledBack { index, .. } => (MMN_EVENT_ROLLED_BACK, *index),
        StateEvent::SnapshotWanted { index, .. } => (MMN_EVENT_SNAPSHOT_WANTED, *index),
        StateEvent::Opened { index, .. } => (MMN_EVENT_STATE_OPENED, *index),
        StateEvent::MemberPresence { index, .. } => (MMN_EVENT_STATE_MEMBER, *index),
    }
}

fn outcome_code(outcome: Outcome) -> Code {
    match outcome {
        Outcome::Ok => Code::Ok,
        Outcome::Conflict => Code::Conflict,
        Outcome::StateFull => Code::StateFull,
        Outcome::NotOwner => Code::Rejected,
        Outcome::OutcomeUnknown => Code::OutcomeUnknown,
    }
}

fn reset_reason(reason: ResetReason) -> i32 {
    match reason {
        ResetReason::Joined => MMN_RESET_JOINED,
        ResetReason::Behind => MMN_RESET_BEHIND,
        ResetReason::RolledBack => MMN_RESET_ROLLED_BACK,
    }
}
