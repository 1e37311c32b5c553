//! A member whose host provides a snapshot for others.

use std::ops::Range;

use bytes::Bytes;

use super::pace::Pace;
use super::*;
use crate::event::StateEvent;
use crate::wire::Piece;

/// The members that ask for a snapshot, and the copy that they receive.
#[derive(Debug, Clone, Default)]
pub(super) struct Providing {
    askers: BTreeMap<PeerId, Asker>,
    /// Whether the host may be asked now.
    is_due: bool,
    /// When the host may be asked again; `None` if it was never asked.
    next_request: Option<Time>,
    last_request: u64,
    requested: Option<Requested>,
    copy: Option<Copied>,
}

/// A linked member that waits for a snapshot, or receives one.
#[derive(Debug, Clone)]
struct Asker {
    history: History,
    /// The lowest index that helps.
    from: u64,
    /// Whether it has been sent parts of the present copy before, and so waits for the next one.
    had_copy: bool,
    /// The bytes sent; `None` before the first part.
    sent: Option<usize>,
    pace: Pace,
    /// When it is given up.
    until: Time,
}

/// A snapshot that the host was asked for.
#[derive(Debug, Clone)]
struct Requested {
    number: u64,
    history: History,
    index: u64,
    /// When it is given up; `None` until the time is known.
    until: Option<Time>,
}

/// A snapshot of this member's host.
#[derive(Debug, Clone)]
struct Copied {
    history: History,
    index: u64,
    data: Bytes,
    /// The members that have been sent parts of it: each once on a link, or questions would multiply the parts.
    begun: BTreeSet<PeerId>,
    until: Time,
}

impl Asker {
    fn is_helped_by(&self, history: History, index: u64) -> bool {
        self.history == history && self.from <= index
    }

    /// The part that may go out now, of at most `most` bytes. An empty snapshot is one empty part.
    fn next_part(&self, total: usize, most: usize) -> Option<Range<usize>> {
        let begin = self.sent.unwrap_or(0);
        let is_left = self.sent.is_none() || begin < total;
        let length = self.pace.next_part(begin).filter(|_| is_left)?;
        Some(begin..total.min(begin + length.min(most)))
    }
}

impl Copied {
    fn helps(&self, asker: &Asker) -> bool {
        !asker.had_copy && asker.is_helped_by(self.history, self.index)
    }
}

impl Providing {
    pub(super) fn bytes(&self) -> usize {
        self.copy.as_ref().map_or(0, |copy| copy.data.len())
    }

    pub(super) fn forget(&mut self, peer: &PeerId) {
        self.askers.remove(peer);
        if let Some(copy) = &mut self.copy {
            copy.begun.remove(peer);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let copy = self.copy.as_ref().map(|copy| copy.until);
        let requested = self.requested.as_ref();
        let requested = requested.map(|requested| requested.until.unwrap_or(Time::ZERO));
        let askers = self.askers.values().map(|asker| asker.until).min();
        let waits = !self.is_due && self.may_request();
        let request = waits.then(|| self.next_request.unwrap_or(Time::ZERO));
        copy.into_iter()
            .chain(requested)
            .chain(askers)
            .chain(request)
            .min()
    }

    /// Whether the host should be asked: members wait, and no copy for their history is in use or on its way.
    fn may_request(&self) -> bool {
        let is_on_its_way = |asker: &Asker| {
            let requested = self.requested.as_ref();
            requested.is_some_and(|requested| requested.history == asker.history)
        };
        self.copy.is_none() && self.askers.values().any(|asker| !is_on_its_way(asker))
    }

    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Drops members, a request and a copy whose time is over.
    fn expire(&mut self, now: Time, history: Option<History>) {
        self.askers
            .retain(|_, asker| now < asker.until && Some(asker.history) == history);
        if let Some(requested) = &mut self.requested {
            if requested.until.is_none() {
                self.next_request = Some(now + BETWEEN_SNAPSHOTS);
            }
            let until = *requested.until.get_or_insert(now + SNAPSHOT_LIFETIME);
            if now >= until {
                self.requested = None;
            }
        }
        let askers = &mut self.askers;
        if let Some(copy) = &self.copy
            && now >= copy.until
        {
            askers.retain(|_, asker| !copy.helps(asker));
        }
        self.copy
            .take_if(|copy| !askers.values().any(|asker| copy.helps(asker)));
    }
}

impl Replica {
    /// The host's answer to a [`StateEvent::SnapshotWanted`]: the state that it had then, or `None` if it has none to give.
    ///
    /// # Errors
    /// [`SnapshotError`]. The request goes on only after [`SnapshotError::TooLong`].
    pub fn provide_snapshot(
        &mut self,
        now: Time,
        request: u64,
        data: Option<Bytes>,
    ) -> Result<(), SnapshotError> {
        let most = self.settings.options.max_snapshot_bytes as usize;
        let history = self.log.history();
        let providing = &mut self.snapshots.providing;
        let requested = providing.requested.as_ref();
        let requested = requested.filter(|requested| requested.number == request);
        let Some((of, index)) = requested.map(|requested| (requested.history, requested.index))
        else {
            return Err(SnapshotError::UnknownRequest);
        };
        if let Some(length) = data.as_ref().map(Bytes::len)
            && length > most
        {
            return Err(SnapshotError::TooLong { length, most });
        }
        providing.requested = None;
        if Some(of) != history {
            return Err(SnapshotError::HistoryChanged);
        }
        let Some(data) = data else {
            let askers = &mut providing.askers;
            askers.retain(|_, asker| !asker.is_helped_by(of, index));
            return Ok(());
        };
        let copy = Copied {
            history: of,
            index,
            data,
            begun: BTreeSet::new(),
            until: now + SNAPSHOT_LIFETIME,
        };
        for asker in providing.askers.values_mut() {
            (asker.had_copy, asker.sent) = (false, None);
            asker.pace.begin_anew();
        }
        providing.copy = Some(copy);
        self.send_parts(now);
        Ok(())
    }

    /// A member asks for a snapshot. One whose own host lacks actions stays silent.
    pub(in crate::replica) fn take_want(
        &mut self,
        now: Time,
        peer: &PeerId,
        history: History,
        from: u64,
    ) {
        if self.log.history() != Some(history) || !self.delivery.is_whole() {
            return;
        }
        let linked = self.peers.get(peer);
        let round_trip = linked.map_or(Duration::ZERO, |linked| linked.round_trip);
        let askers = &mut self.snapshots.providing.askers;
        let copy = self.snapshots.providing.copy.as_ref();
        let asker = Asker {
            history,
            from,
            had_copy: copy.is_some_and(|copy| copy.begun.contains(peer)),
            sent: None,
            pace: Pace::new(round_trip),
            until: now + SNAPSHOT_LIFETIME,
        };
        // One that receives a copy which helps has no use for another.
        let receives = askers
            .get(peer)
            .is_some_and(|old| copy.is_some_and(|copy| copy.helps(old) && from <= copy.index));
        if !receives {
            askers.insert(peer.clone(), asker);
        }
    }

    pub(in crate::replica) fn take_part_arrived(
        &mut self,
        now: Time,
        peer: &PeerId,
        (history, index): (History, u64),
        received: u32,
    ) {
        let providing = &mut self.snapshots.providing;
        let copy = providing.copy.as_ref();
        let copy = copy.filter(|copy| (copy.history, copy.index) == (history, index));
        let (Some(copy), Some(asker)) = (copy, providing.askers.get_mut(peer)) else {
            return;
        };
        let (received, total) = (received as usize, copy.data.len());
        let is_new = received > asker.pace.arrived() || received == total;
        if !is_new || asker.sent.is_none_or(|sent| received > sent) {
            return;
        }
        asker.pace.note_arrived(now, received, total);
        asker.until = now + PARTS_STALL_AFTER;
        if received == total {
            providing.askers.remove(peer);
        }
    }

    /// Sends the members that asked their parts, and decides whether the host is asked.
    pub(in crate::replica) fn offer_snapshot(&mut self, now: Time) {
        let history = self.log.history();
        let providing = &mut self.snapshots.providing;
        providing.expire(now, history);
        let is_time = providing.next_request.is_none_or(|next| now >= next);
        providing.is_due = is_time && providing.may_request();
        self.send_parts(now);
    }

    /// Sends all that receive the copy what may be under way.
    fn send_parts(&mut self, now: Time) {
        let most = self.bytes_of_a_part();
        let Some(copy) = &mut self.snapshots.providing.copy else {
            return;
        };
        let (history, index, data) = (copy.history, copy.index, copy.data.clone());
        let mut parts = Vec::new();
        let helped = self.snapshots.providing.askers.iter_mut();
        for (peer, asker) in helped {
            if !copy.helps(asker) {
                continue;
            }
            if asker.sent.is_none() {
                copy.begun.insert(peer.clone());
                asker.until = now + PARTS_STALL_AFTER;
            }
            while let Some(range) = asker.next_part(data.len(), most) {
                let piece = Piece {
                    index,
                    total: u32::try_from(data.len()).unwrap_or(u32::MAX),
                    offset: u32::try_from(range.start).unwrap_or(u32::MAX),
                    bytes: data.slice(range.clone()),
                };
                parts.push((peer.clone(), Frame::Part { history, piece }));
                asker.pace.note_sent(now, range.end);
                asker.sent = Some(range.end);
            }
        }
        for (peer, part) in parts {
            self.send(&peer, part);
        }
    }

    /// Asks the host for a snapshot, if members wait for one that it can provide now.
    pub(in crate::replica) fn give_snapshot_request(
        &mut self,
        events: &mut Vec<StateEvent>,
    ) -> bool {
        let (index, history) = (self.taken(), self.log.history());
        let can = self.delivery.is_whole() && self.leads_on() && index <= self.confirmed;
        let providing = &mut self.snapshots.providing;
        let Some(history) = history.filter(|_| can && providing.is_due) else {
            return false;
        };
        let mut askers = providing.askers.values();
        if !askers.any(|asker| asker.is_helped_by(history, index)) {
            return false;
        }
        providing.is_due = false;
        providing.last_request += 1;
        let request = providing.last_request;
        providing.requested = Some(Requested {
            number: request,
            history,
            index,
            until: None,
        });
        events.push(StateEvent::SnapshotWanted { request, index });
        true
    }
}
