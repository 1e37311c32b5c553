//! Snapshots of a host's state, for hosts that must receive actions which their members' tails have dropped.
//!
//! A member that needs one asks the leader, then the next linked member after a while ([`receiving`]). The host of the member
//! asked captures its state once for all that wait, and each of them receives it in parts ([`providing`]).

mod pace;
mod providing;
mod receiving;

use super::*;
use crate::limits::{
    ASK_NEXT_AFTER, BETWEEN_SNAPSHOTS, GIVE_UP_AFTER, MAX_SNAPSHOT_RESTARTS, PARTS_STALL_AFTER,
    SNAPSHOT_LIFETIME,
};
use providing::Providing;
use receiving::Receiving;
pub(super) use receiving::Sought;

/// See the module's text.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshots {
    /// Whether the host waits for a snapshot that no member has been asked for yet.
    is_needed: bool,
    receiving: Option<Receiving>,
    /// Entries that the tail has dropped since the first question; it ends where the member's log begins.
    beside: Option<Log>,
    providing: Providing,
}

impl Snapshots {
    pub(super) fn bytes(&self) -> usize {
        let beside = self.beside.as_ref().map_or(0, Log::bytes);
        let received = self.receiving.as_ref().map_or(0, Receiving::bytes);
        beside + received + self.providing.bytes()
    }

    pub(super) fn beside(&self) -> Option<&Log> {
        self.beside.as_ref()
    }

    pub(super) fn reaches(&self, last: Option<&crate::ballot::Place>) -> bool {
        self.beside
            .as_ref()
            .is_some_and(|beside| beside.reaches(last))
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let needed = self.is_needed.then_some(Time::ZERO);
        let receiving = self.receiving.as_ref().and_then(Receiving::next_deadline);
        let providing = self.providing.next_deadline();
        needed.into_iter().chain(receiving).chain(providing).min()
    }

    /// Whether the host may be asked for a snapshot.
    pub(super) fn may_ask_host(&self) -> bool {
        self.providing.is_due()
    }

    /// A log has taken the place of the member's.
    pub(super) fn note_replaced(&mut self, log: &Log) {
        if let Some(beside) = &mut self.beside
            && beside.last() != log.base().last()
        {
            *beside = Log::behind(log.base().clone());
        }
    }

    /// The link with a peer is over.
    pub(super) fn lose(&mut self, peer: &PeerId) {
        if let Some(receiving) = &mut self.receiving {
            receiving.lose(peer);
        }
        self.providing.forget(peer);
    }
}
