//! Events of transfers as `MmnEvent`.

use std::borrow::Cow;

use super::*;
use crate::core::event::{Transfer, TransferNews, TransferOutcome};

/// Sets the numbers of `event`, and returns its peer, its other text and its bytes.
pub(super) fn fill_in<'a>(
    event: &mut MmnEvent,
    transfer: &'a Transfer,
) -> (Option<&'a PeerId>, Cow<'a, str>, Cow<'a, [u8]>) {
    event.request = transfer.id;
    let data = match &transfer.news {
        TransferNews::Offered { tag } => {
            event.kind = MMN_EVENT_TRANSFER_OFFERED;
            event.count = transfer.size;
            &tag[..]
        }
        TransferNews::Progress { done } => {
            event.kind = MMN_EVENT_TRANSFER_PROGRESS;
            event.count = transfer.size;
            event.index = *done;
            &[]
        }
        TransferNews::Part { offset, bytes } => {
            event.kind = MMN_EVENT_TRANSFER_PART;
            event.index = *offset;
            &bytes[..]
        }
        TransferNews::Ended { outcome, done } => {
            event.kind = MMN_EVENT_TRANSFER_RESULT;
            event.count = transfer.size;
            event.index = *done;
            event.reason = reason(*outcome);
            event.success = (*outcome == TransferOutcome::Complete).into();
            &[]
        }
    };
    (Some(&transfer.peer), "".into(), data.into())
}

fn reason(outcome: TransferOutcome) -> i32 {
    match outcome {
        TransferOutcome::Complete => MMN_TRANSFER_COMPLETE,
        TransferOutcome::CancelledBySender => MMN_TRANSFER_CANCELLED_BY_SENDER,
        TransferOutcome::CancelledByReceiver => MMN_TRANSFER_CANCELLED_BY_RECEIVER,
        TransferOutcome::Refused => MMN_TRANSFER_REFUSED,
        TransferOutcome::Unanswered => MMN_TRANSFER_UNANSWERED,
        TransferOutcome::Busy => MMN_TRANSFER_BUSY,
        TransferOutcome::PeerLeft => MMN_TRANSFER_PEER_LEFT,
        TransferOutcome::RoomEnded => MMN_TRANSFER_ROOM_ENDED,
        TransferOutcome::Corrupt => MMN_TRANSFER_CORRUPT,
    }
}
