//! A transfer to a peer.

use bytes::Bytes;
use tokio::time::Instant;

use super::progress::Progress;
use super::wire::{Offer, PART_BYTES, PartHeader};
use super::{OFFER_LIMIT, WINDOW_BYTES, as_u64};

/// A transfer to a peer, which keeps its bytes until it ends.
pub(super) struct Outgoing {
    pub(super) offer: Offer,
    data: Bytes,
    /// Whether an offer is to be sent.
    pub(super) is_offer_due: bool,
    /// Whether it has ended here, and the peer is to be notified.
    pub(super) is_cancelled: bool,
    /// When it ends, on the present link, unless the peer answers.
    pub(super) answer_by: Option<Instant>,
    /// The parts that may be sent on the present link.
    stream: Option<Stream>,
    /// Position up to which parts were sent on any link.
    sent: u64,
    /// Bytes that the peer has reported.
    pub(super) arrived: u64,
    pub(super) progress: Progress,
}

/// Position of the next part, and the position up to which the peer has granted parts.
struct Stream {
    next: u64,
    until: u64,
}

impl Outgoing {
    pub(super) fn new(offer: Offer, data: Bytes) -> Self {
        Self {
            offer,
            data,
            is_offer_due: true,
            is_cancelled: false,
            answer_by: None,
            stream: None,
            sent: 0,
            arrived: 0,
            progress: Progress::default(),
        }
    }

    /// Bytes that it keeps.
    pub(super) fn bytes(&self) -> usize {
        self.data.len()
    }

    pub(super) fn is_all_sent(&self) -> bool {
        self.sent == self.offer.size
    }

    /// Drops its bytes: it has ended here.
    pub(super) fn cancel(&mut self) {
        self.is_cancelled = true;
        self.answer_by = None;
        self.stream = None;
        self.data = Bytes::new();
    }

    /// Another link carries it from now on. Bytes that were on their way are sent again.
    pub(super) fn change_link(&mut self) {
        self.stream = None;
        self.answer_by = None;
    }

    /// It was offered on the present link.
    pub(super) fn offered(&mut self, now: Instant) {
        self.is_offer_due = false;
        self.answer_by = Some(now + OFFER_LIMIT);
    }

    /// Handles a grant of the peer.
    ///
    /// # Errors
    /// The numbers are some that no member sends.
    pub(super) fn grant(&mut self, arrived: u64, until: u64) -> Result<(), &'static str> {
        let is_possible = self.arrived <= arrived
            && arrived <= self.sent
            && arrived <= until
            && until <= self.offer.size
            && until - arrived <= WINDOW_BYTES;
        if !is_possible {
            return Err("a grant of a transfer does not fit to what was sent");
        }
        match &mut self.stream {
            Some(stream) if until < stream.until => return Err("a grant was taken back"),
            Some(stream) => stream.until = until,
            None => {
                self.stream = Some(Stream {
                    next: arrived,
                    until,
                });
            }
        }
        self.arrived = arrived;
        self.answer_by = None;
        Ok(())
    }

    /// The next part, if one may be sent. Its bytes are a copy, so that what waits in QUIC keeps no more than that alive.
    pub(super) fn next_part(&mut self) -> Option<(PartHeader, Bytes)> {
        let stream = self.stream.as_mut()?;
        let len = (stream.until - stream.next).min(as_u64(PART_BYTES));
        if len == 0 {
            return None;
        }
        let offset = stream.next;
        let end = offset + len;
        let range = usize::try_from(offset).ok()?..usize::try_from(end).ok()?;
        let bytes = Bytes::copy_from_slice(self.data.get(range)?);
        stream.next = end;
        self.sent = self.sent.max(end);
        let id = self.offer.id;
        Some((PartHeader { id, offset }, bytes))
    }
}
