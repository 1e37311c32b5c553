//! A transfer from a peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use ring::digest::{Context, SHA256};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::progress::Progress;
use super::wire::{Offer, PART_BYTES};
use super::{Destination, WINDOW_BYTES, as_u64};
use crate::core::event::Receipt;

/// A transfer from a peer, from its offer to its end.
pub(super) struct Incoming {
    pub(super) offer: Offer,
    state: State,
    /// Bytes that have arrived, in order.
    pub(super) arrived: u64,
    /// Position up to which the peer may send on the present link; `None` before the first grant there.
    granted: Option<u64>,
    digest: Context,
    pub(super) progress: Progress,
}

enum State {
    /// The host has not answered. It is asked until then.
    Offered(Instant),
    Accepted(Destination),
}

/// Bytes that the host has received in parts.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    bytes: Arc<AtomicU64>,
    /// Notified when it has received more.
    wake: Arc<Notify>,
}

impl Taken {
    pub(super) fn new(wake: Arc<Notify>) -> Self {
        Self {
            bytes: Arc::default(),
            wake,
        }
    }
}

/// A part that the host has not received.
struct UnreadPart {
    taken: Taken,
    len: u64,
}

impl Drop for UnreadPart {
    fn drop(&mut self) {
        self.taken.bytes.fetch_add(self.len, Ordering::Relaxed);
        self.taken.wake.notify_one();
    }
}

impl Incoming {
    pub(super) fn new(offer: Offer, answer_by: Instant) -> Self {
        Self {
            offer,
            state: State::Offered(answer_by),
            arrived: 0,
            granted: None,
            digest: Context::new(&SHA256),
            progress: Progress::default(),
        }
    }

    /// When the offer ends without an answer.
    pub(super) fn answer_by(&self) -> Option<Instant> {
        match self.state {
            State::Offered(until) => Some(until),
            State::Accepted(_) => None,
        }
    }

    pub(super) fn accept(&mut self, destination: Destination) {
        self.state = State::Accepted(destination);
    }

    /// Another link carries it from now on.
    pub(super) fn change_link(&mut self) {
        self.granted = None;
    }

    /// Bytes that may still arrive on the present link.
    pub(super) fn under_way(&self) -> u64 {
        self.granted.map_or(0, |granted| granted - self.arrived)
    }

    /// The grant to send, if it is worth a frame.
    pub(super) fn take_grant(&mut self) -> Option<u64> {
        let from = match &self.state {
            State::Offered(_) => return None,
            State::Accepted(Destination::Buffer(_)) => self.arrived,
            State::Accepted(Destination::Parts(taken)) => taken.bytes.load(Ordering::Relaxed),
        };
        let until = (from + WINDOW_BYTES).min(self.offer.size);
        let is_due = match self.granted {
            None => true,
            Some(granted) => {
                let more = until.saturating_sub(granted);
                more >= WINDOW_BYTES / 4 || (more > 0 && until == self.offer.size)
            }
        };
        is_due.then(|| {
            self.granted = Some(until);
            until
        })
    }

    /// Takes a part. Returns what the host receives, if it takes parts.
    ///
    /// # Errors
    /// No member sends such a part.
    pub(super) fn part(
        &mut self,
        offset: u64,
        bytes: Bytes,
    ) -> Result<Option<(Bytes, Receipt)>, &'static str> {
        let State::Accepted(destination) = &mut self.state else {
            return Err("a part of a transfer that was not accepted");
        };
        if offset != self.arrived {
            return Err("a part of a transfer does not follow the one before");
        }
        let len = as_u64(bytes.len());
        // A host that takes parts slowly has an event of each in memory.
        if len != as_u64(PART_BYTES).min(self.offer.size - offset) {
            return Err("a part of a transfer is neither whole nor the last");
        }
        if self.granted.is_none_or(|granted| len > granted - offset) {
            return Err("a part of a transfer that was not granted");
        }
        self.digest.update(&bytes);
        self.arrived += len;
        Ok(match destination {
            Destination::Buffer(buffer) => {
                buffer.write(offset, &bytes);
                None
            }
            Destination::Parts(taken) => {
                let taken = taken.clone();
                Some((bytes, Receipt::new(UnreadPart { taken, len })))
            }
        })
    }

    /// Whether all has arrived, and if so, whether it is what was offered.
    pub(super) fn is_intact(&self) -> Option<bool> {
        let is_whole = self.arrived == self.offer.size && self.answer_by().is_none();
        is_whole.then(|| self.digest.clone().finish().as_ref() == self.offer.digest)
    }
}
