//! A log of a higher ballot on its way: it takes the place of the member's log when it is complete.

use super::*;
use crate::ballot::Place;
use crate::entry::Contents;
use crate::limits::{MAX_FRAME_BYTES, MAX_UNCONFIRMED, MAX_UNCONFIRMED_BYTES, Options};
use crate::wire::Piece;

/// See the module's text.
#[derive(Debug, Clone)]
pub(super) struct Staging {
    ballot: Ballot,
    base: Base,
    entries: Vec<Entry>,
    bytes: usize,
    /// Encoded tables that are incomplete.
    pieces: Option<Incoming>,
}

/// The state that the staged entries follow.
#[derive(Debug, Clone)]
enum Base {
    /// The member's log up to this index.
    Own(u64),
    /// The tables of another member.
    Tables(Box<Tables>),
}

/// Encoded bytes that arrive in pieces.
#[derive(Debug, Clone)]
pub(super) struct Incoming {
    index: u64,
    total: usize,
    bytes: Vec<u8>,
}

/// Tables have at most this length: every property, row and member of the largest size.
const MAX_TABLES_BYTES: usize = 1 << 20;

/// Whether entries could be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extended {
    Added,
    /// The entry before them is missing.
    Lacks,
}

impl Staging {
    pub(super) fn new(ballot: Ballot) -> Self {
        Self {
            ballot,
            base: Base::Own(0),
            entries: Vec::new(),
            bytes: 0,
            pieces: None,
        }
    }

    pub(super) fn ballot(&self) -> &Ballot {
        &self.ballot
    }

    pub(super) fn bytes(&self) -> usize {
        let tables = match &self.base {
            Base::Own(_) => 0,
            Base::Tables(tables) => tables.bytes(),
        };
        let pieces = self.pieces.as_ref().map_or(0, Incoming::capacity);
        self.bytes + tables + pieces
    }

    /// Bytes of the sender's log that have arrived and are kept.
    pub(super) fn arrived_bytes(&self) -> usize {
        let pieces = self.pieces.as_ref();
        let announced = pieces.map_or(0, |pieces| pieces.capacity() - pieces.bytes().len());
        self.bytes() - announced
    }

    fn base_index(&self) -> u64 {
        match &self.base {
            Base::Own(index) => *index,
            Base::Tables(tables) => tables.index(),
        }
    }

    /// The index of the last staged entry.
    pub(super) fn index(&self) -> u64 {
        self.base_index() + self.entries.len() as u64
    }

    /// The place of the last staged entry, or of the one before.
    pub(super) fn last(&self, own: &Log) -> Option<Place> {
        self.place(own, self.index())
    }

    fn place(&self, own: &Log, index: u64) -> Option<Place> {
        let behind = index.checked_sub(self.base_index())?;
        match usize::try_from(behind).ok()?.checked_sub(1) {
            None => match &self.base {
                Base::Own(index) => own.place(*index),
                Base::Tables(tables) => tables.last().cloned(),
            },
            Some(position) => {
                let ballot = self.entries.get(position)?.ballot.clone();
                Some(Place { ballot, index })
            }
        }
    }

    /// Adds entries behind `previous`, if that is known.
    pub(super) fn extend(
        &mut self,
        own: &Log,
        previous: Option<&Place>,
        entries: Vec<Entry>,
        options: &Options,
    ) -> Result<Extended, Violation> {
        let index = previous.map_or(0, |place| place.index);
        let is_known = match previous {
            Some(_) => self.place(own, index).as_ref() == previous,
            None => self.is_from_the_beginning(own),
        };
        if is_known {
            // The first of them may be here already.
        } else if own.reaches(previous) {
            self.base = Base::Own(index);
            self.entries.clear();
        } else if previous.is_none() {
            // The sender's tail is its whole log, and this member's begins later.
            self.base = Base::Tables(Box::default());
            self.entries.clear();
        } else {
            return Ok(Extended::Lacks);
        }
        let mut before = previous.cloned();
        for entry in entries {
            check_order(before.as_ref(), &entry, &self.ballot)?;
            let index = before.map_or(0, |place| place.index) + 1;
            let place = Place {
                ballot: entry.ballot.clone(),
                index,
            };
            if self.place(own, index).as_ref() != Some(&place) {
                self.keep_to(index - 1);
                self.entries.push(entry);
            }
            before = Some(place);
        }
        self.bytes = self.entries.iter().map(Entry::bytes).sum();
        let most = u64::from(options.tail_entries) + 2 * MAX_UNCONFIRMED;
        let most_bytes = options.tail_bytes as usize + 2 * MAX_UNCONFIRMED_BYTES + MAX_FRAME_BYTES;
        match self.entries.len() as u64 > most || self.bytes > most_bytes {
            true => Err(Violation::Limits),
            false => Ok(Extended::Added),
        }
    }

    /// Whether the first staged entry is the first of the log.
    fn is_from_the_beginning(&self, own: &Log) -> bool {
        let is_own = matches!(self.base, Base::Own(_));
        self.base_index() == 0 && (!is_own || own.reaches(None))
    }

    /// Drops the entries behind this index.
    fn keep_to(&mut self, index: u64) {
        let kept = index.saturating_sub(self.base_index());
        self.entries
            .truncate(usize::try_from(kept).unwrap_or(usize::MAX));
    }

    /// Whether a piece of tables is the first one, or the one behind the last that has arrived.
    pub(super) fn awaits(&self, piece: &Piece) -> bool {
        let incoming = self.pieces.as_ref();
        piece.offset == 0 || incoming.is_some_and(|incoming| incoming.is_followed_by(piece))
    }

    /// Adds a piece of tables; the entries that follow them come later.
    pub(super) fn add_piece(&mut self, piece: &Piece) -> Result<(), Violation> {
        if piece.total as usize > MAX_TABLES_BYTES {
            return Err(Violation::Limits);
        }
        if piece.offset == 0 {
            self.pieces = Some(Incoming::new(piece));
        }
        let incoming = self.pieces.as_mut().ok_or(Violation::Order)?;
        incoming.add(piece)?;
        if incoming.is_whole() {
            let tables = incoming.decode()?;
            self.pieces = None;
            self.entries.clear();
            self.bytes = 0;
            self.base = Base::Tables(Box::new(tables));
        }
        Ok(())
    }

    /// The history that the opening of the staged ballot goes on with, once that opening is here.
    pub(super) fn opened_history(&self) -> Option<History> {
        let staged = self
            .entries
            .iter()
            .rev()
            .find_map(|entry| match &entry.contents {
                Contents::Open { history, .. } if entry.ballot == self.ballot => Some(*history),
                _ => None,
            });
        staged.or_else(|| match &self.base {
            Base::Tables(tables) => {
                let opening = tables.openings().next_back()?;
                (opening.ballot == self.ballot).then(|| tables.history())?
            }
            Base::Own(_) => None,
        })
    }

    /// The state after the last staged entry.
    pub(super) fn end(&self, own: &Log) -> Tables {
        let mut end = match &self.base {
            Base::Tables(tables) => (**tables).clone(),
            Base::Own(index) => own.state_at(*index),
        };
        for entry in &self.entries {
            end.apply(entry);
        }
        end
    }

    /// The whole log.
    pub(super) fn into_log(self, own: &Log) -> Log {
        let mut log = match self.base {
            Base::Tables(tables) => Log::behind(*tables),
            Base::Own(index) => {
                let mut log = own.clone();
                log.truncate(index);
                log
            }
        };
        for entry in self.entries {
            log.append(entry);
        }
        log
    }
}

impl Incoming {
    /// Nothing yet of what this piece belongs to.
    pub(super) fn new(piece: &Piece) -> Self {
        Self {
            index: piece.index,
            total: piece.total as usize,
            bytes: Vec::with_capacity(piece.total as usize),
        }
    }

    pub(super) fn index(&self) -> u64 {
        self.index
    }

    pub(super) fn is_whole(&self) -> bool {
        self.bytes.len() == self.total
    }

    /// The memory that it takes, in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn add(&mut self, piece: &Piece) -> Result<(), Violation> {
        if !self.is_followed_by(piece) || piece.bytes.len() > self.total - self.bytes.len() {
            return Err(Violation::Order);
        }
        self.bytes.extend_from_slice(&piece.bytes);
        Ok(())
    }

    fn is_followed_by(&self, piece: &Piece) -> bool {
        self.bytes.len() == piece.offset as usize
            && (self.index, self.total) == (piece.index, piece.total as usize)
    }

    fn decode(&self) -> Result<Tables, Violation> {
        let tables: Tables = postcard::from_bytes(&self.bytes).map_err(|_| Violation::Tables)?;
        match tables.index() == self.index {
            true => Ok(tables),
            false => Err(Violation::Tables),
        }
    }
}

/// A ballot begins with its opening, ballots and times rise along a log.
pub(super) fn check_order(
    before: Option<&Place>,
    entry: &Entry,
    highest: &Ballot,
) -> Result<(), Violation> {
    let opens = matches!(entry.contents, Contents::Open { .. });
    let follows = match before.map(|place| &place.ballot) {
        Some(ballot) if *ballot == entry.ballot => !opens,
        Some(ballot) => opens && *ballot < entry.ballot,
        None => opens,
    };
    match follows && entry.ballot <= *highest {
        true => Ok(()),
        false => Err(Violation::Order),
    }
}
