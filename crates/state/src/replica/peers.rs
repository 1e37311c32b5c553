//! The linked members, and what a leader knows of each.

use std::collections::VecDeque;

use super::contract::Linked;
use super::*;
use crate::ballot::Place;
use crate::wire::Numbered;

/// Time between two transmissions of the tables to one member.
const BETWEEN_TABLES: Duration = Duration::from_secs(1);

/// A linked member.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    member: MemberId,
    pub(super) is_eligible: bool,
    pub(super) round_trip: Duration,
    /// The last Tip that it sent on this link.
    pub(super) tip: Option<Tip>,
    /// The last entry of the leader's log that it has adopted under the leader's ballot.
    pub(super) have: u64,
    pub(super) cursor: Cursor,
    /// When it may be sent tables again: they are long, and it may ask for them all the time.
    next_tables: Time,
    /// Ends and bytes of the frames that it has not answered.
    under_way: VecDeque<(u64, usize)>,
    under_way_bytes: usize,
    /// The confirmed index that it was sent.
    pub(super) confirmed_sent: u64,
    /// Requests that wait for room in the log; a leader reads no further ones meanwhile.
    pub(super) inbox: VecDeque<Numbered>,
    /// Whether it has shown a leader that the log should be opened again.
    pub(super) wants_opening: bool,
    /// The ballot under which it fetches this member's log, and the index up to which that has arrived there.
    pub(super) fetches: Option<(Ballot, u64)>,
    /// The last ballot whose gathering this member answered there.
    pub(super) answered: Option<Ballot>,
    /// Whether it has adopted the leader's ballot.
    pub(super) is_fed: bool,
}

/// The next frame that a leader sends a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cursor {
    /// Nothing: it is not known what the member has.
    Unknown,
    /// The encoded tables before the sender's tail.
    Tables(Pieces),
    /// The entry at this index.
    At(u64),
}

/// Encoded tables that go out in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pieces {
    pub(super) last: Place,
    pub(super) bytes: bytes::Bytes,
}

impl Peer {
    pub(super) fn new(linked: Linked) -> Self {
        Self {
            member: linked.member,
            is_eligible: linked.is_eligible,
            round_trip: linked.round_trip,
            tip: None,
            have: 0,
            cursor: Cursor::Unknown,
            next_tables: Time::ZERO,
            under_way: VecDeque::new(),
            under_way_bytes: 0,
            confirmed_sent: 0,
            inbox: VecDeque::new(),
            wants_opening: false,
            fetches: None,
            answered: None,
            is_fed: false,
        }
    }

    pub(super) fn member(&self) -> &MemberId {
        &self.member
    }

    /// Forgets what it has under a former ballot.
    pub(super) fn begin_ballot(&mut self) {
        self.have = 0;
        self.is_fed = false;
        self.fetches = None;
        self.inbox.clear();
        self.restart(Cursor::Unknown);
    }

    pub(super) fn restart(&mut self, cursor: Cursor) {
        self.cursor = cursor;
        self.confirmed_sent = 0;
        self.under_way.clear();
        self.under_way_bytes = 0;
    }

    /// When it is sent tables next, if it needs them.
    pub(super) fn next_tables(&self) -> Option<Time> {
        matches!(self.cursor, Cursor::Tables(_)).then_some(self.next_tables)
    }

    pub(super) fn note_tables(&mut self, now: Time) {
        self.next_tables = now + BETWEEN_TABLES;
    }

    pub(super) fn note_sent(&mut self, end: u64, bytes: usize) {
        self.under_way.push_back((end, bytes));
        self.under_way_bytes += bytes;
    }

    /// Frames up to this index have arrived.
    pub(super) fn note_arrived(&mut self, index: u64) {
        while let Some((end, bytes)) = self.under_way.front().copied()
            && end <= index
        {
            self.under_way.pop_front();
            self.under_way_bytes -= bytes;
        }
    }

    pub(super) fn under_way_bytes(&self) -> usize {
        self.under_way_bytes
    }

    pub(super) fn bytes(&self) -> usize {
        let inbox: usize = self
            .inbox
            .iter()
            .map(|numbered| numbered.request.bytes() + 32)
            .sum();
        let pieces = match &self.cursor {
            Cursor::Tables(pieces) => pieces.bytes.len(),
            Cursor::Unknown | Cursor::At(_) => 0,
        };
        inbox + pieces
    }
}

impl Replica {
    pub(super) fn link(&mut self, now: Time, linked: Linked) {
        if linked.member.peer == self.me.peer {
            return;
        }
        let peer = linked.member.peer.clone();
        self.lose(now, &peer);
        self.wait_budgets.note_linked(now, &peer);
        self.peers.insert(peer.clone(), Peer::new(linked));
        let tip = self.tip(&peer, None);
        self.send(&peer, Frame::Tip(tip));
        self.requests.send_again();
        self.gather_from(now, &peer);
    }

    pub(super) fn lose(&mut self, now: Time, peer: &PeerId) {
        if let Some(lost) = self.peers.remove(peer) {
            self.forget_answer(now, lost.member());
            self.snapshots.lose(peer);
            if self.peers.is_empty() {
                // The fault may be this member's own.
                self.wait_budgets.clear();
            }
        }
    }

    pub(super) fn set_eligible(&mut self, peer: &PeerId, is_eligible: bool) {
        if *peer == self.me.peer {
            self.settings.is_eligible = is_eligible;
        } else if let Some(peer) = self.peers.get_mut(peer) {
            peer.is_eligible = is_eligible;
        }
    }
}
