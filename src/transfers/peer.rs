//! The transfers with one peer, over all links of its session.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::incoming::{Incoming, Taken};
use super::outgoing::Outgoing;
use super::wire::{Offer, PartHeader, TransferFrame, Why};
use super::{
    ANSWER_LIMIT, Accept, Destination, MAX_CANCELLED, MAX_OPEN, MAX_UNREAD, Wakers, as_u64,
};
use crate::core::event::{Event, Receipt, Transfer, TransferNews, TransferOutcome};
use crate::core::id::PeerId;
use crate::error::DataTransferError;

/// Ends of the peer's transfers that wait to be sent, at most; a peer that causes more breaks the protocol.
const MAX_ENDS_DUE: usize = 64;
/// Ends that are remembered for the next link. The peer may have missed as many as it may have open.
const MAX_ENDS: usize = 2 * MAX_OPEN;

/// See the module's text.
pub(super) struct Peer {
    id: PeerId,
    /// Whether its library knows transfers.
    is_able: bool,
    /// The lowest bit of its numbers.
    bit: u64,
    outgoing: BTreeMap<u64, Outgoing>,
    /// Whether anything was offered in this session.
    has_offered: bool,
    /// The greatest number of this host's.
    last_out: u64,
    /// Whether the next frame is [`TransferFrame::Open`].
    is_open_due: bool,
    /// The transfer of the last part.
    last_part: u64,
    incoming: BTreeMap<u64, Incoming>,
    /// Every number of the peer before this one is in `incoming`, or has ended.
    next_in: u64,
    ends_due: VecDeque<(u64, Why)>,
    ends: VecDeque<(u64, Why)>,
    /// Bytes of ended transfers that may still arrive on this link.
    late: u64,
    /// Offers and results that the host has not received.
    unread: Arc<AtomicUsize>,
    frames: Arc<Notify>,
    parts: Arc<Notify>,
}

/// An offer or a result that the host has not received.
struct Unread(Arc<AtomicUsize>);

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Peer {
    pub(super) fn new(id: PeerId, is_able: bool, is_greater: bool) -> Self {
        Self {
            id,
            is_able,
            bit: is_greater.into(),
            outgoing: BTreeMap::new(),
            has_offered: false,
            last_out: 0,
            is_open_due: false,
            last_part: 0,
            incoming: BTreeMap::new(),
            next_in: 0,
            ends_due: VecDeque::new(),
            ends: VecDeque::new(),
            late: 0,
            unread: Arc::default(),
            frames: Arc::default(),
            parts: Arc::default(),
        }
    }

    /// Bytes that this host's transfers keep.
    pub(super) fn outgoing_bytes(&self) -> usize {
        self.outgoing.values().map(Outgoing::bytes).sum()
    }

    pub(super) fn is_able(&self) -> bool {
        self.is_able
    }

    fn is_read(&self) -> bool {
        self.unread.load(Ordering::Relaxed) < MAX_UNREAD
    }

    fn event(&self, offer: &Offer, news: TransferNews, receipt: Receipt) -> Event {
        Event::Transfer(Transfer {
            peer: self.id.clone(),
            id: offer.id,
            size: offer.size,
            news,
            receipt,
        })
    }

    /// An offer or a result.
    fn counted_event(&self, offer: &Offer, news: TransferNews) -> Event {
        self.unread.fetch_add(1, Ordering::Relaxed);
        let receipt = Receipt::new(Unread(Arc::clone(&self.unread)));
        self.event(offer, news, receipt)
    }

    fn result(&self, offer: &Offer, done: u64, outcome: TransferOutcome) -> Event {
        self.counted_event(offer, TransferNews::Ended { outcome, done })
    }
}

/// Calls of the host.
impl Peer {
    pub(super) fn check_offer(&self) -> Result<(), DataTransferError> {
        let id = || self.id.clone();
        if !self.is_able {
            return Err(DataTransferError::NotSupported { id: id() });
        }
        let ended = self.outgoing.values().filter(|it| it.is_cancelled).count();
        if self.outgoing.len() - ended >= MAX_OPEN || ended >= MAX_CANCELLED {
            let max = MAX_OPEN;
            return Err(DataTransferError::TooMany { id: id(), max });
        }
        if !self.is_read() {
            let max = MAX_UNREAD;
            return Err(DataTransferError::Unread { id: id(), max });
        }
        Ok(())
    }

    pub(super) fn offer(&mut self, offer: Offer, data: Bytes) {
        self.last_out = offer.id;
        self.outgoing.insert(offer.id, Outgoing::new(offer, data));
        self.frames.notify_one();
    }

    pub(super) fn accept(
        &mut self,
        id: u64,
        accept: Accept,
        news: &mut Vec<Event>,
    ) -> Result<(), DataTransferError> {
        let taken = Taken::new(Arc::clone(&self.frames));
        let incoming = self.incoming.get_mut(&id);
        let Some(incoming) = incoming.filter(|incoming| incoming.answer_by().is_some()) else {
            return Err(DataTransferError::NotOffered { id });
        };
        let size = incoming.offer.size;
        let destination = match accept {
            Accept::Buffer(_, capacity) if capacity < size => {
                return Err(DataTransferError::BufferTooShort { capacity, size });
            }
            Accept::Buffer(buffer, _) => Destination::Buffer(buffer),
            Accept::Parts => Destination::Parts(taken),
        };
        incoming.accept(destination);
        self.end_if_whole(id, news);
        self.frames.notify_one();
        Ok(())
    }

    pub(super) fn cancel(
        &mut self,
        id: u64,
        news: &mut Vec<Event>,
    ) -> Result<(), DataTransferError> {
        if let Some(incoming) = self.incoming.get(&id) {
            let why = match incoming.answer_by() {
                Some(_) => Why::Refused,
                None => Why::Cancelled,
            };
            self.end_incoming(id, why, news);
            return Ok(());
        }
        let running = self.outgoing.get_mut(&id);
        let Some(outgoing) = running.filter(|outgoing| !outgoing.is_cancelled) else {
            return Err(DataTransferError::NotOpen { id });
        };
        outgoing.cancel();
        let (offer, done) = (outgoing.offer.clone(), outgoing.arrived);
        // One that was never offered needs no frame.
        if outgoing.is_offer_due {
            self.outgoing.remove(&id);
        }
        news.push(self.result(&offer, done, TransferOutcome::CancelledBySender));
        self.frames.notify_one();
        Ok(())
    }

    /// The session is over.
    pub(super) fn end_all(&mut self, outcome: TransferOutcome, news: &mut Vec<Event>) {
        for incoming in std::mem::take(&mut self.incoming).into_values() {
            news.push(self.result(&incoming.offer, incoming.arrived, outcome));
        }
        for outgoing in std::mem::take(&mut self.outgoing).into_values() {
            if !outgoing.is_cancelled {
                news.push(self.result(&outgoing.offer, outgoing.arrived, outcome));
            }
        }
    }
}

/// Frames and parts for the peer.
impl Peer {
    pub(super) fn attach(&mut self) -> Option<Wakers> {
        if !self.is_able {
            return None;
        }
        self.outgoing.retain(|_, outgoing| !outgoing.is_cancelled);
        for outgoing in self.outgoing.values_mut() {
            outgoing.change_link();
        }
        for incoming in self.incoming.values_mut() {
            incoming.change_link();
        }
        self.is_open_due = self.has_offered;
        self.ends_due.clear();
        self.late = 0;
        Some(Wakers {
            frames: Arc::clone(&self.frames),
            parts: Arc::clone(&self.parts),
        })
    }

    pub(super) fn take_frames(&mut self, now: Instant) -> Vec<TransferFrame> {
        let mut frames = Vec::new();
        if std::mem::take(&mut self.is_open_due) {
            for outgoing in self.outgoing.values_mut() {
                outgoing.offered(now);
            }
            let running = self.outgoing.values().filter(|it| !it.is_cancelled);
            frames.push(TransferFrame::Open(
                running.map(|it| it.offer.clone()).collect(),
            ));
            // The list lacks the cancelled ones, which cancels them.
            self.outgoing.retain(|_, outgoing| !outgoing.is_cancelled);
        }
        self.outgoing.retain(|id, outgoing| {
            if outgoing.is_cancelled {
                frames.push(TransferFrame::Cancel { id: *id });
            } else if outgoing.is_offer_due {
                outgoing.offered(now);
                frames.push(TransferFrame::Offer(outgoing.offer.clone()));
            }
            !outgoing.is_cancelled
        });
        self.has_offered |= !frames.is_empty();
        for (id, incoming) in &mut self.incoming {
            if let Some(until) = incoming.take_grant() {
                frames.push(TransferFrame::Grant {
                    id: *id,
                    arrived: incoming.arrived,
                    until,
                });
            }
        }
        let ends = self.ends_due.drain(..);
        frames.extend(ends.map(|(id, why)| TransferFrame::Ended { id, why }));
        frames
    }

    /// The next part of each transfer in turn.
    pub(super) fn take_part(&mut self) -> Option<(PartHeader, Bytes)> {
        let last = self.last_part;
        let (before, after): (Vec<_>, Vec<_>) =
            self.outgoing.iter_mut().partition(|(id, _)| **id <= last);
        let mut turns = after.into_iter().chain(before);
        let part = turns.find_map(|(_, outgoing)| outgoing.next_part())?;
        self.last_part = part.0.id;
        Some(part)
    }

    /// When an offer of either end ends without an answer.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let incoming = self.incoming.values().filter_map(Incoming::answer_by);
        let outgoing = self.outgoing.values().filter_map(|it| it.answer_by);
        incoming.chain(outgoing).min()
    }

    pub(super) fn end_unanswered(&mut self, now: Instant, news: &mut Vec<Event>) {
        let is_over = |incoming: &Incoming| incoming.answer_by().is_some_and(|by| by <= now);
        let over: Vec<_> = self
            .incoming
            .iter()
            .filter(|(_, incoming)| is_over(incoming))
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            self.end_incoming(id, Why::Unanswered, news);
        }
        let mut failed = Vec::new();
        for outgoing in self.outgoing.values_mut() {
            if outgoing.answer_by.is_some_and(|by| by <= now) {
                outgoing.cancel();
                failed.push((outgoing.offer.clone(), outgoing.arrived));
            }
        }
        let results = failed.iter();
        news.extend(
            results.map(|(offer, done)| self.result(offer, *done, TransferOutcome::Unanswered)),
        );
    }
}

/// Frames and parts from the peer.
impl Peer {
    pub(super) fn frame(
        &mut self,
        frame: TransferFrame,
        now: Instant,
        news: &mut Vec<Event>,
    ) -> Result<(), &'static str> {
        match frame {
            TransferFrame::Open(offers) => self.reopened(offers, now, news),
            TransferFrame::Offer(offer) if offer.id < self.next_in => {
                Err("a transfer was offered twice")
            }
            TransferFrame::Offer(offer) => self.offered(offer, now, news),
            TransferFrame::Cancel { id } => {
                self.check_known(id)?;
                self.cancelled(id, news);
                Ok(())
            }
            TransferFrame::Grant { id, arrived, until } => {
                self.granted(id, (arrived, until), now, news)
            }
            TransferFrame::Ended { id, why } => self.ended(id, why, news),
        }
    }

    /// # Errors
    /// The peer has never offered such a transfer.
    fn check_known(&self, id: u64) -> Result<(), &'static str> {
        match id & 1 == self.bit && id < self.next_in {
            true => Ok(()),
            false => Err("a transfer was never offered"),
        }
    }

    /// # Errors
    /// This host has never offered such a transfer.
    fn check_own(&self, id: u64) -> Result<(), &'static str> {
        match id & 1 != self.bit && id <= self.last_out {
            true => Ok(()),
            false => Err("an answer to a transfer that was never offered"),
        }
    }

    fn offered(
        &mut self,
        offer: Offer,
        now: Instant,
        news: &mut Vec<Event>,
    ) -> Result<(), &'static str> {
        offer.check()?;
        if offer.id & 1 != self.bit {
            return Err("a transfer has a number of the other end");
        }
        self.next_in = offer.id.checked_add(1).ok_or("a number has no next")?;
        if self.incoming.len() >= MAX_OPEN || !self.is_read() {
            self.end(offer.id, Why::Busy);
        } else {
            let tag = Bytes::copy_from_slice(&offer.tag);
            news.push(self.counted_event(&offer, TransferNews::Offered { tag }));
            let incoming = Incoming::new(offer, now + ANSWER_LIMIT);
            self.incoming.insert(incoming.offer.id, incoming);
            self.frames.notify_one();
        }
        match self.ends_due.len() > MAX_ENDS_DUE {
            true => Err("it offers transfers and reads no answers"),
            false => Ok(()),
        }
    }

    /// The peer's transfers at the beginning of a link.
    fn reopened(
        &mut self,
        offers: Vec<Offer>,
        now: Instant,
        news: &mut Vec<Event>,
    ) -> Result<(), &'static str> {
        if offers.len() > MAX_OPEN || !offers.is_sorted_by(|a, b| a.id < b.id) {
            return Err("a list of transfers is too long or without order");
        }
        let is_listed = |id: &u64| offers.iter().any(|offer| offer.id == *id);
        let gone: Vec<_> = self.incoming.keys().copied().collect();
        for id in gone.into_iter().filter(|id| !is_listed(id)) {
            self.cancelled(id, news);
        }
        for offer in offers {
            match self.incoming.get(&offer.id) {
                Some(known) if known.offer != offer => {
                    return Err("a transfer has changed from one link to the next");
                }
                Some(_) => {}
                None if offer.id >= self.next_in => self.offered(offer, now, news)?,
                None => {
                    let ended = self.ends.iter().find(|(id, _)| *id == offer.id);
                    let why = ended.map_or(Why::Refused, |(_, why)| *why);
                    self.ends_due.push_back((offer.id, why));
                }
            }
        }
        self.frames.notify_one();
        match self.ends_due.len() > MAX_ENDS_DUE {
            true => Err("it lists transfers and reads no answers"),
            false => Ok(()),
        }
    }

    pub(super) fn part(
        &mut self,
        PartHeader { id, offset }: PartHeader,
        bytes: Bytes,
        now: Instant,
        news: &mut Vec<Event>,
    ) -> Result<(), &'static str> {
        if bytes.is_empty() {
            return Err("a part of a transfer is empty");
        }
        self.check_known(id)?;
        let Some(incoming) = self.incoming.get_mut(&id) else {
            let late = self.late.checked_sub(as_u64(bytes.len()));
            self.late = late.ok_or("more parts of ended transfers than were granted")?;
            return Ok(());
        };
        let part = incoming.part(offset, bytes)?;
        let done = incoming.arrived;
        let receipt = incoming.progress.due(now);
        let offer = incoming.offer.clone();
        if let Some((bytes, receipt)) = part {
            let part = TransferNews::Part { offset, bytes };
            news.push(self.event(&offer, part, receipt));
        }
        if !self.end_if_whole(id, news)
            && let Some(receipt) = receipt
        {
            news.push(self.event(&offer, TransferNews::Progress { done }, receipt));
        }
        self.frames.notify_one();
        Ok(())
    }

    fn granted(
        &mut self,
        id: u64,
        (arrived, until): (u64, u64),
        now: Instant,
        news: &mut Vec<Event>,
    ) -> Result<(), &'static str> {
        self.check_own(id)?;
        // A cancelled one ends at the peer as well.
        let running = self.outgoing.get_mut(&id);
        let Some(outgoing) = running.filter(|outgoing| !outgoing.is_cancelled) else {
            return Ok(());
        };
        let before = outgoing.arrived;
        outgoing.grant(arrived, until)?;
        let receipt = match arrived > before {
            true => outgoing.progress.due(now),
            false => None,
        };
        if let Some(receipt) = receipt {
            let offer = outgoing.offer.clone();
            let done = TransferNews::Progress { done: arrived };
            news.push(self.event(&offer, done, receipt));
        }
        self.parts.notify_one();
        Ok(())
    }

    /// The peer has ended a transfer of this host.
    fn ended(&mut self, id: u64, why: Why, news: &mut Vec<Event>) -> Result<(), &'static str> {
        self.check_own(id)?;
        let Some(outgoing) = self.outgoing.get(&id) else {
            return Ok(());
        };
        if outgoing.is_cancelled {
            return Ok(()); // its frame still waits, and the host has its result
        }
        if why == Why::Complete && !outgoing.is_all_sent() {
            return Err("a transfer is complete before all of it was sent");
        }
        let (outcome, offer) = (outcome(why), outgoing.offer.clone());
        let done = match why {
            Why::Complete => offer.size,
            _ => outgoing.arrived,
        };
        self.outgoing.remove(&id);
        news.push(self.result(&offer, done, outcome));
        Ok(())
    }

    /// The peer has cancelled a transfer of its own.
    fn cancelled(&mut self, id: u64, news: &mut Vec<Event>) {
        if let Some(incoming) = self.incoming.remove(&id) {
            self.late += incoming.under_way();
            let outcome = TransferOutcome::CancelledBySender;
            news.push(self.result(&incoming.offer, incoming.arrived, outcome));
        }
    }

    /// Returns whether the transfer is over.
    fn end_if_whole(&mut self, id: u64, news: &mut Vec<Event>) -> bool {
        let incoming = self.incoming.get(&id);
        let Some(is_intact) = incoming.and_then(Incoming::is_intact) else {
            return false;
        };
        let why = match is_intact {
            true => Why::Complete,
            false => Why::Corrupt,
        };
        self.end_incoming(id, why, news);
        true
    }

    /// Ends a transfer of the peer.
    fn end_incoming(&mut self, id: u64, why: Why, news: &mut Vec<Event>) {
        if let Some(incoming) = self.incoming.remove(&id) {
            self.late += incoming.under_way();
            news.push(self.result(&incoming.offer, incoming.arrived, outcome(why)));
            self.end(id, why);
        }
    }

    /// Lets the peer know the end of a transfer.
    fn end(&mut self, id: u64, why: Why) {
        if self.ends.len() >= MAX_ENDS {
            self.ends.pop_front();
        }
        self.ends.push_back((id, why));
        self.ends_due.push_back((id, why));
        self.frames.notify_one();
    }
}

fn outcome(why: Why) -> TransferOutcome {
    match why {
        Why::Complete => TransferOutcome::Complete,
        Why::Cancelled => TransferOutcome::CancelledByReceiver,
        Why::Refused => TransferOutcome::Refused,
        Why::Unanswered => TransferOutcome::Unanswered,
        Why::Busy => TransferOutcome::Busy,
        Why::Corrupt => TransferOutcome::Corrupt,
    }
}
