//! A member whose host needs a snapshot.

use bytes::Bytes;

use super::*;
use crate::laboratory::Rule;
use crate::replica::staging::Incoming;
use crate::wire::Piece;

/// A search for a snapshot; gone when the host has begun anew.
#[derive(Debug, Clone)]
pub(super) struct Receiving {
    history: History,
    /// The members that this one has asked.
    asked: BTreeSet<PeerId>,
    /// When the last one was asked; `None` if there is nothing to wait for.
    asked_at: Option<Time>,
    /// When the next one is asked; without a next one, when the search ends.
    next_at: Time,
    incoming: Option<(PeerId, Incoming)>,
    /// When all parts must be here.
    whole_by: Time,
    /// Whether the link with the member that provided has ended, since the last look.
    is_cut: bool,
    /// How often a snapshot that had begun to arrive came to nothing, so that its member may be asked again.
    restarts: u32,
    has_failed: bool,
}

/// A snapshot that has arrived.
#[derive(Debug, Clone)]
pub(in crate::replica) struct Snapshot {
    pub(in crate::replica) index: u64,
    pub(in crate::replica) data: Bytes,
}

/// The outcome of a search.
#[derive(Debug, Clone)]
pub(in crate::replica) enum Sought {
    /// It goes on.
    Waits,
    /// No member has provided a snapshot.
    Nowhere,
    /// A snapshot is here.
    Here(Snapshot),
}

impl Receiving {
    fn new(now: Time, history: History) -> Self {
        Self {
            history,
            asked: BTreeSet::new(),
            asked_at: None,
            next_at: now,
            incoming: None,
            whole_by: now,
            is_cut: false,
            restarts: 0,
            has_failed: false,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let incoming = self.incoming.as_ref();
        incoming.map_or(0, |(_, incoming)| incoming.capacity())
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        (!self.has_failed).then_some(self.next_at)
    }

    /// The link is over. A member that provided may be asked again on the next one.
    pub(super) fn lose(&mut self, peer: &PeerId) {
        if self.incoming.take_if(|(from, _)| from == peer).is_some() {
            self.is_cut = true;
            self.restarts += 1;
            if self.restarts <= MAX_SNAPSHOT_RESTARTS {
                self.asked.remove(peer);
            }
        }
    }

    fn is_whole(&self) -> bool {
        let incoming = self.incoming.as_ref();
        incoming.is_some_and(|(_, incoming)| incoming.is_whole())
    }

    fn index(&self) -> Option<u64> {
        self.incoming.as_ref().map(|(_, incoming)| incoming.index())
    }

    /// Waits for the member asked last, unless one provides: longer while there is no other to ask.
    fn wait_for_answer(&mut self, has_next: bool) {
        if let (Some(asked_at), None) = (self.asked_at, &self.incoming) {
            let wait = match has_next {
                true => ASK_NEXT_AFTER,
                false => GIVE_UP_AFTER,
            };
            self.next_at = asked_at + wait;
        }
    }

    /// The snapshot on its way does not help any more: the search begins again, unless it has too often.
    fn begin_again(&mut self, now: Time) {
        self.incoming = None;
        self.restarts += 1;
        if self.restarts <= MAX_SNAPSHOT_RESTARTS {
            self.asked.clear();
        }
        (self.asked_at, self.next_at) = (None, now);
    }
}

impl Replica {
    /// Asks the next member for a snapshot, if the host needs one and the last answer is overdue.
    pub(in crate::replica) fn seek_snapshot(&mut self, now: Time) {
        let is_needed = std::mem::take(&mut self.snapshots.is_needed);
        let is_sought = self.snapshots.receiving.is_some();
        if (is_needed || is_sought) && !self.leads_on() && self.lacks_actions() {
            self.begin_search(now, is_needed);
            self.ask_next(now);
            return;
        }
        self.snapshots.receiving = None;
        if self.taken() >= self.log.base_index() || !self.leads_on() {
            self.snapshots.beside = None;
        }
    }

    /// A search in another history than the log's is over, and so another one begins.
    fn begin_search(&mut self, now: Time, is_needed: bool) {
        let receiving = self.snapshots.receiving.as_ref();
        if receiving.is_some_and(|receiving| self.is_history_of(receiving)) {
            return;
        }
        self.snapshots.receiving = self
            .log
            .history()
            .filter(|_| is_needed || receiving.is_some())
            .map(|history| Receiving::new(now, history));
        self.snapshots.beside = Some(Log::behind(self.log.base().clone()));
    }

    fn is_history_of(&self, receiving: &Receiving) -> bool {
        Some(receiving.history) == self.log.history() || !self.keeps(Rule::SnapshotOfTheHistory)
    }

    fn ask_next(&mut self, now: Time) {
        let from = self.lowest_snapshot();
        let confirmed = self.confirmed.min(self.log.index());
        let Some(mut receiving) = self.snapshots.receiving.take() else {
            return;
        };
        let is_whole = receiving.is_whole();
        match receiving.index() {
            Some(index) if index < from && is_whole => {
                // The host takes nothing. When it does, it needs a newer one.
                self.snapshots.beside = None;
                return;
            }
            Some(index) if index < from => receiving.begin_again(now),
            // It waits for the host.
            Some(index) if index <= confirmed && is_whole => {
                receiving.next_at = now + PARTS_STALL_AFTER;
            }
            _ => {}
        }
        let next = self.next_provider(&receiving.asked);
        if std::mem::take(&mut receiving.is_cut) {
            // The member that provided may come back.
            receiving.asked_at = next.is_none().then_some(now);
            receiving.next_at = now;
        }
        receiving.wait_for_answer(next.is_some());
        if !receiving.has_failed && now >= receiving.next_at {
            receiving.incoming = None;
            match next {
                Some(peer) => {
                    let history = receiving.history;
                    self.send(&peer, Frame::Want { history, from });
                    receiving.asked.insert(peer);
                    receiving.asked_at = Some(now);
                    receiving.wait_for_answer(self.next_provider(&receiving.asked).is_some());
                }
                None => receiving.has_failed = true,
            }
        }
        self.snapshots.receiving = Some(receiving);
    }

    /// The lowest index at which a snapshot helps: the entries above it are here.
    fn lowest_snapshot(&self) -> u64 {
        match &self.snapshots.beside {
            _ if !self.keeps(Rule::EntriesBesideSnapshot) => 0,
            Some(beside) => beside.base_index(),
            None => self.log.base_index(),
        }
    }

    /// The leader, then the linked members by name.
    fn next_provider(&self, asked: &BTreeSet<PeerId>) -> Option<PeerId> {
        let leader = self.adopted.as_ref().map(|ballot| &ballot.leader);
        let leader = leader.filter(|leader| self.is_linked(leader));
        let leader = leader.map(|leader| &leader.peer);
        let mut peers = leader.into_iter().chain(self.peers.keys());
        peers.find(|peer| !asked.contains(*peer)).cloned()
    }

    /// The host waits for a snapshot: takes the one that has arrived.
    pub(in crate::replica) fn take_snapshot(&mut self) -> Sought {
        let from = self.lowest_snapshot();
        let confirmed = self.confirmed.min(self.log.index());
        let receiving = self.snapshots.receiving.as_ref();
        let Some(receiving) = receiving.filter(|receiving| self.is_history_of(receiving)) else {
            self.snapshots.is_needed = true;
            return Sought::Waits;
        };
        if receiving.has_failed {
            self.snapshots.receiving = None;
            self.snapshots.beside = None;
            return Sought::Nowhere;
        }
        let is_here = |(_, incoming): &(PeerId, Incoming)| {
            incoming.is_whole() && (from..=confirmed).contains(&incoming.index())
        };
        if !receiving.incoming.as_ref().is_some_and(is_here) {
            return Sought::Waits;
        }
        let receiving = self.snapshots.receiving.take();
        match receiving.and_then(|receiving| receiving.incoming) {
            Some((_, incoming)) => Sought::Here(Snapshot {
                index: incoming.index(),
                data: incoming.into_bytes().into(),
            }),
            None => Sought::Waits,
        }
    }

    /// Takes a part from a member that was asked; others are ignored.
    pub(in crate::replica) fn take_part(
        &mut self,
        now: Time,
        from: &PeerId,
        history: History,
        piece: &Piece,
    ) -> Result<(), Violation> {
        let (total, most) = (
            piece.total as usize,
            self.settings.options.max_snapshot_bytes as usize,
        );
        if total > most {
            return Err(Violation::Snapshot(total));
        }
        let lowest = self.lowest_snapshot();
        let is_of_history = |receiving: &Receiving| {
            receiving.history == history || !self.keeps(Rule::SnapshotOfTheHistory)
        };
        let is_wanted = self.snapshots.receiving.as_ref().is_some_and(|receiving| {
            is_of_history(receiving)
                && !receiving.has_failed
                && receiving.asked.contains(from)
                && piece.index >= lowest
        });
        let Some(receiving) = self.snapshots.receiving.as_mut().filter(|_| is_wanted) else {
            return Ok(());
        };
        if piece.offset == 0 {
            let index = receiving.index();
            let is_new = receiving
                .incoming
                .as_ref()
                .is_none_or(|(sender, _)| sender == from);
            if !is_new || index == Some(piece.index) {
                return Ok(());
            }
            // A sender that begins again and again gains no time.
            if receiving.incoming.take().is_none() {
                receiving.whole_by = now + SNAPSHOT_LIFETIME;
            }
            receiving.incoming = Some((from.clone(), Incoming::new(piece)));
        }
        let incoming = receiving
            .incoming
            .as_mut()
            .filter(|(sender, _)| sender == from);
        let Some((_, incoming)) = incoming else {
            return Ok(());
        };
        if incoming.add(piece).is_err() {
            // It belongs to an earlier copy, or is false: a sender without a part that follows stalls.
            return Ok(());
        }
        receiving.next_at = (now + PARTS_STALL_AFTER).min(receiving.whole_by);
        let index = piece.index;
        let received = u32::try_from(incoming.bytes().len()).unwrap_or(u32::MAX);
        self.send(
            from,
            Frame::PartArrived {
                history,
                index,
                received,
            },
        );
        if let Some(beside) = &mut self.snapshots.beside
            && index <= self.confirmed
        {
            beside.drop_to(index);
        }
        Ok(())
    }

    /// Keeps what the tail has dropped while the host waits for a snapshot, or has not yet received what follows it: with
    /// the tail and the displaced actions at most twice a tail.
    pub(in crate::replica) fn keep_beside(&mut self, dropped: Vec<Entry>) {
        let options = &self.settings.options;
        let displaced = u32::try_from(self.delivery.displaced_bytes()).unwrap_or(u32::MAX);
        let limits = Options {
            tail_bytes: options.tail_bytes.saturating_sub(displaced),
            ..*options
        };
        if !self.keeps(Rule::EntriesBesideSnapshot) {
            let base = self.log.base().clone();
            let beside = self.snapshots.beside.as_mut();
            beside
                .into_iter()
                .for_each(|beside| *beside = Log::behind(base.clone()));
        } else if let Some(beside) = &mut self.snapshots.beside {
            for entry in dropped {
                beside.append(entry);
            }
            beside.trim(u64::MAX, &limits);
        }
    }
}
