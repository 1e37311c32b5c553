//! Frames of transfers on a link: those about them in one lane, their parts in another.

use serde::{Deserialize, Serialize};

use super::{MAX_OPEN, MAX_TAG_BYTES, MAX_TRANSFER_BYTES};

/// Bytes of one part, at most.
pub(crate) const PART_BYTES: usize = 16 * 1024;
/// Longest frame of a part: its header and its bytes.
pub(crate) const MAX_PART_FRAME_BYTES: usize = PART_BYTES + 32;
/// Longest frame about transfers: [`TransferFrame::Open`] with all that may be open.
pub(crate) const MAX_TRANSFER_FRAME_BYTES: usize = MAX_OPEN * (MAX_TAG_BYTES + 64) + 16;
/// Bytes of a transfer's digest.
pub(crate) const DIGEST_BYTES: usize = 32;

/// A transfer as its sender offers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Offer {
    /// Number of the transfer. The numbers of one sender rise; the lowest bit is 1 for the end with the greater peer id.
    pub(crate) id: u64,
    /// Its length in bytes.
    pub(crate) size: u64,
    /// SHA-256 of all of it.
    pub(crate) digest: [u8; DIGEST_BYTES],
    /// The sender's own bytes about it.
    pub(crate) tag: Vec<u8>,
}

impl Offer {
    /// # Errors
    /// A limit is broken.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match self.size > MAX_TRANSFER_BYTES as u64 || self.tag.len() > MAX_TAG_BYTES {
            true => Err("an offered transfer breaks a limit"),
            false => Ok(()),
        }
    }
}

/// A frame about transfers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TransferFrame {
    /// The first frame on each further link of a session in which the sender has offered anything: its offers that
    /// have not ended. Others are cancelled.
    Open(Vec<Offer>),
    /// A new transfer.
    Offer(Offer),
    /// The sender of a transfer has cancelled it.
    Cancel {
        /// Its number.
        id: u64,
    },
    /// The receiver of a transfer takes it. The first one on a link starts the parts, from `arrived` on.
    Grant {
        /// Its number.
        id: u64,
        /// Bytes that have arrived.
        arrived: u64,
        /// Parts up to here may be sent.
        until: u64,
    },
    /// The receiver of a transfer has ended it.
    Ended {
        /// Its number.
        id: u64,
        /// The reason.
        why: Why,
    },
}

/// Reason why the receiver of a transfer has ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Why {
    /// All of it has arrived.
    Complete,
    /// Its host cancelled it.
    Cancelled,
    /// Its host refused it.
    Refused,
    /// Its host did not answer in time.
    Unanswered,
    /// Its host has too many transfers, or takes no events.
    Busy,
    /// The bytes that arrived have another digest.
    Corrupt,
}

/// Header of a part, before its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartHeader {
    /// Number of the transfer.
    pub(crate) id: u64,
    /// Position of the first byte.
    pub(crate) offset: u64,
}
