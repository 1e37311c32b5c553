//! Transfers: bytes of up to 64 MiB between two members, below all messages.
//!
//! A transfer belongs to the session with a peer, and goes on over its next link from the byte that has arrived. The
//! receiver grants a window and moves it as bytes arrive, or as its host takes parts: so nothing waits in memory
//! beyond the sender's copy, the receiver's buffer, and one window. Host threads, the tasks of links and the
//! dispatcher share the tables under one lock, under which the events are queued: their order is that of what
//! happened.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod check;
mod incoming;
mod outgoing;
mod peer;
mod progress;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::core::event::{Event, TransferOutcome};
use crate::core::id::PeerId;
use crate::dispatch::Dispatch;
use crate::error::DataTransferError;
use incoming::Taken;
use peer::Peer;
use wire::{Offer, PartHeader, TransferFrame};

/// Longest transfer, in bytes.
pub const MAX_TRANSFER_BYTES: usize = 64 << 20;
/// Longest tag of a transfer, in bytes.
pub const MAX_TAG_BYTES: usize = 1024;
/// Bytes of all transfers to peers that have not ended, at most.
pub(crate) const MAX_OUTGOING_BYTES: usize = 128 << 20;
/// Transfers of one sender to one receiver that have not ended, at most.
pub(crate) const MAX_OPEN: usize = 8;
/// Offers and results about one peer that the host has not received, at most: then offers are refused at both ends.
const MAX_UNREAD: usize = 64;
/// Time for which an offer waits for the host's answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// Time on one link after which an offer has failed that the peer's library neither passes on nor ends.
const OFFER_LIMIT: Duration = Duration::from_secs(75);
/// Ended transfers to a peer of which it is not yet notified, at most.
const MAX_CANCELLED: usize = 64;
/// Bytes of one transfer that are on their way, or that wait for the host, at most.
const WINDOW_BYTES: u64 = 256 * 1024;

/// Memory of the host in which a transfer arrives.
pub(crate) trait Buffer: Send {
    /// Writes the bytes at `offset`. The room writes nothing beyond the size of the transfer.
    fn write(&mut self, offset: u64, bytes: &[u8]);
}

/// Destination of the bytes that arrive.
pub(crate) enum Destination {
    Buffer(Box<dyn Buffer>),
    /// The host receives them in parts.
    Parts(Taken),
}

/// Where the host wants a transfer.
pub(crate) enum Accept {
    /// In memory of that many bytes.
    Buffer(Box<dyn Buffer>, u64),
    /// In parts.
    Parts,
}

/// Wakes the tasks of a link when they have something to send.
pub(crate) struct Wakers {
    /// Frames about transfers.
    pub(crate) frames: Arc<Notify>,
    /// Parts.
    pub(crate) parts: Arc<Notify>,
}

/// All transfers of a room.
pub(crate) struct Transfers {
    me: PeerId,
    dispatch: Arc<Dispatch>,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    peers: BTreeMap<PeerId, Peer>,
    /// Transfers sent so far.
    count: u64,
    is_shut: bool,
}

/// For the host's threads.
impl Transfers {
    pub(crate) fn new(me: PeerId, dispatch: Arc<Dispatch>) -> Self {
        Self {
            me,
            dispatch,
            book: Mutex::default(),
        }
    }

    /// Offers a copy of `data` to a peer. `note` receives the number before any thread can take an event about it.
    ///
    /// # Errors
    /// [`DataTransferError`]; nothing has changed then.
    pub(crate) fn send(
        &self,
        to: &PeerId,
        data: &[u8],
        tag: &[u8],
        note: impl FnOnce(u64),
    ) -> Result<(), DataTransferError> {
        for (what, len, max) in [
            ("size", data.len(), MAX_TRANSFER_BYTES),
            ("tag_length", tag.len(), MAX_TAG_BYTES),
        ] {
            if len > max {
                return Err(DataTransferError::TooLong { what, len, max });
            }
        }
        // Before the copy, and again after it, which takes a while.
        self.book().check_send(&self.me, to, data.len())?;
        let data = Bytes::copy_from_slice(data);
        let mut offer = Offer {
            id: 0,
            size: as_u64(data.len()),
            digest: [0; wire::DIGEST_BYTES],
            tag: tag.to_vec(),
        };
        let computed = digest(&SHA256, &data);
        offer.digest.copy_from_slice(computed.as_ref());
        let mut book = self.book();
        book.check_send(&self.me, to, data.len())?;
        book.count += 1;
        offer.id = 2 * book.count + u64::from(self.me > *to);
        note(offer.id);
        if let Some(peer) = book.peers.get_mut(to) {
            peer.offer(offer, data);
        }
        Ok(())
    }

    /// Takes an offer.
    ///
    /// # Errors
    /// [`DataTransferError`]; the offer waits on then.
    pub(crate) fn accept(
        &self,
        from: &PeerId,
        id: u64,
        accept: Accept,
    ) -> Result<(), DataTransferError> {
        self.change(from, |peer, news| peer.accept(id, accept, news))
    }

    /// Refuses an offer, or cancels a transfer at either end.
    ///
    /// # Errors
    /// [`DataTransferError`]; nothing has changed then.
    pub(crate) fn cancel(&self, with: &PeerId, id: u64) -> Result<(), DataTransferError> {
        self.change(with, |peer, news| peer.cancel(id, news))
    }

    fn change(
        &self,
        with: &PeerId,
        change: impl FnOnce(&mut Peer, &mut Vec<Event>) -> Result<(), DataTransferError>,
    ) -> Result<(), DataTransferError> {
        let mut book = self.book();
        let peer = book.peer(with)?;
        let mut news = Vec::new();
        let changed = change(peer, &mut news);
        self.report(news);
        changed
    }

    /// Takes nothing from the host any more: it leaves the room.
    pub(crate) fn shut(&self) {
        self.book().is_shut = true;
    }
}

/// For the sessions and links.
impl Transfers {
    /// A session with a peer begins. `is_able`: whether the peer's library knows transfers.
    pub(crate) fn open(&self, peer: &PeerId, is_able: bool) {
        let peers = &mut self.book().peers;
        peers.insert(
            peer.clone(),
            Peer::new(peer.clone(), is_able, *peer > self.me),
        );
    }

    /// The session with a peer is over, and with it its transfers.
    pub(crate) fn close(&self, peer: &PeerId, outcome: TransferOutcome) {
        let mut book = self.book();
        let Some(mut peer) = book.peers.remove(peer) else {
            return;
        };
        let mut news = Vec::new();
        peer.end_all(outcome, &mut news);
        self.report(news);
    }

    /// The room is over for this node.
    pub(crate) fn close_all(&self) {
        let peers: Vec<_> = self.book().peers.keys().cloned().collect();
        for peer in peers {
            self.close(&peer, TransferOutcome::RoomEnded);
        }
    }

    /// Another link carries the session from now on. `None` if the peer's library knows no transfers.
    pub(crate) fn attach(&self, peer: &PeerId) -> Option<Wakers> {
        let mut book = self.book();
        book.peers.get_mut(peer)?.attach()
    }

    /// The frames for a peer that are due, and the time at which others may be.
    pub(crate) fn take_frames(&self, to: &PeerId) -> (Vec<TransferFrame>, Option<Instant>) {
        let mut book = self.book();
        let Some(peer) = book.peers.get_mut(to) else {
            return (Vec::new(), None);
        };
        let mut news = Vec::new();
        let now = Instant::now();
        peer.end_unanswered(now, &mut news);
        self.report(news);
        (peer.take_frames(now), peer.next_deadline())
    }

    /// The next part for a peer, if one may be sent now.
    pub(crate) fn take_part(&self, to: &PeerId) -> Option<(PartHeader, Bytes)> {
        let mut book = self.book();
        book.peers.get_mut(to)?.take_part()
    }

    /// Handles a frame of a peer.
    ///
    /// # Errors
    /// No member sends it.
    pub(crate) fn frame(&self, from: &PeerId, frame: TransferFrame) -> Result<(), &'static str> {
        self.receive(from, |peer, news| peer.frame(frame, Instant::now(), news))
    }

    /// Handles a part of a transfer of a peer.
    ///
    /// # Errors
    /// No member sends it.
    pub(crate) fn part(
        &self,
        from: &PeerId,
        header: PartHeader,
        bytes: Bytes,
    ) -> Result<(), &'static str> {
        self.receive(from, |peer, news| {
            peer.part(header, bytes, Instant::now(), news)
        })
    }

    fn receive(
        &self,
        from: &PeerId,
        handle: impl FnOnce(&mut Peer, &mut Vec<Event>) -> Result<(), &'static str>,
    ) -> Result<(), &'static str> {
        let mut book = self.book();
        // A peer that has left may still send.
        let Some(peer) = book.peers.get_mut(from) else {
            return Ok(());
        };
        if !peer.is_able() {
            return Err("it sends transfers, and its Hello has no such feature");
        }
        let mut news = Vec::new();
        let handled = handle(peer, &mut news);
        self.report(news);
        handled
    }

    /// Queues events, under the lock of the book. The queue takes no lock of the book.
    fn report(&self, news: Vec<Event>) {
        for event in news {
            self.dispatch.push(event);
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // No panic can interrupt a change.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn peer(&mut self, id: &PeerId) -> Result<&mut Peer, DataTransferError> {
        if self.is_shut {
            return Err(DataTransferError::NotInitialized);
        }
        let not_found = || DataTransferError::PeerNotFound { id: id.clone() };
        self.peers.get_mut(id).ok_or_else(not_found)
    }

    fn check_send(
        &mut self,
        me: &PeerId,
        to: &PeerId,
        len: usize,
    ) -> Result<(), DataTransferError> {
        if me == to {
            return Err(DataTransferError::Myself { id: to.clone() });
        }
        let kept: usize = self.peers.values().map(Peer::outgoing_bytes).sum();
        self.peer(to)?.check_offer()?;
        if kept.saturating_add(len) > MAX_OUTGOING_BYTES {
            return Err(DataTransferError::Full {
                len,
                kept,
                max: MAX_OUTGOING_BYTES,
            });
        }
        Ok(())
    }
}

/// Lengths fit: an address has at most 64 bits.
fn as_u64(len: usize) -> u64 {
    len as u64
}
