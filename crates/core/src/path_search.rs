//! Knowledge of a node about the paths to one member: where the ends of a direct link see each other, and how far the search
//! for a direct one is. [`super::node`] acts on it.

use std::net::SocketAddr;

use super::pace::Pace;
use super::time::{Duration, Time};

/// Addresses that the ends of a link observe of each other.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    /// Where this node sees the peer.
    pub(super) of_peer: Option<SocketAddr>,
    /// Whether the peer dialled this node's address.
    pub(super) came: bool,
    /// Whether this node has dialled it in a round: a router that maps nothing lets it in, too, then.
    pub(super) has_been_dialled: bool,
    /// The address that it reported to the peer.
    pub(super) reported: Steady,
    /// The address that it announced to others as the peer's.
    pub(super) announced: Steady,
    /// Where the peer sees this node.
    pub(super) of_me: Steady,
}

/// Direct links with a member that did not last, one after the other.
#[derive(Debug, Clone)]
pub struct Flapping {
    /// Number of them.
    pub(super) count: usize,
    /// Until then no direct path is looked for.
    pub(super) until: Time,
    /// The addresses with which the last of them was found; `None` if it was found otherwise.
    pub(super) ends: Option<Ends>,
}

/// The addresses of both ends of a carried link, as they have exchanged them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    pub(super) mine: Vec<SocketAddr>,
    pub(super) theirs: Vec<SocketAddr>,
}

/// A direct link that took over from one over a relay.
#[derive(Debug, Clone)]
pub struct TakeOver {
    pub(super) at: Time,
    /// The addresses with which it was found; `None` if it was found otherwise.
    pub(super) ends: Option<Ends>,
}

/// An address that changes only now and then.
#[derive(Debug, Clone, Default)]
pub struct Steady {
    pub(super) address: Option<SocketAddr>,
    /// The last change; the first address is none.
    changed: Option<Time>,
}

impl Steady {
    /// Takes another address, unless the last change is less than `interval` ago. Returns whether it has changed.
    pub(super) fn take(&mut self, now: Time, address: SocketAddr, interval: Duration) -> bool {
        let is_early = self.changed.is_some_and(|at| now.since(at) < interval);
        if self.address == Some(address) || is_early {
            return false;
        }
        if self.address.replace(address).is_some() {
            self.changed = Some(now);
        }
        true
    }
}

/// The rounds with one peer whose link is carried.
#[derive(Debug, Clone, Default)]
pub struct Punching {
    /// The addresses that the peer received last.
    pub(super) sent: Option<Vec<SocketAddr>>,
    /// This node's mapped address, which the peer has.
    pub(super) knows_mapped: Option<SocketAddr>,
    /// The time of the first round in which the peer dials that address.
    pub(super) tried_mapped: Option<Time>,
    /// The addresses that the peer sent last.
    pub(super) stated: Option<Vec<SocketAddr>>,
    /// Number of the next round.
    pub(super) round: u32,
    /// The time of the next round; `None` before the peer has sent its addresses, and if the peer begins the rounds.
    pub(super) due: Option<Time>,
    /// The round that waits for an answer, and its beginning.
    pub(super) asked: Option<(u32, Time)>,
    /// The rate of the peer's rounds; `None` before the first.
    pub(super) rounds: Option<Pace>,
    /// The last time at which addresses of the peer began the rounds anew.
    pub(super) began: Option<Time>,
    /// Whether enough rounds have failed, and the peer gets this node's address at a TURN server, too.
    pub(super) needs_turn: bool,
}

impl Punching {
    /// Notes that the peer has a list with this node's mapped address, if there is one. Returns whether that is news.
    pub(super) fn note_mapped(&mut self, mapped: Option<SocketAddr>) -> bool {
        if self.knows_mapped == mapped {
            return false;
        }
        (self.knows_mapped, self.tried_mapped) = (mapped, None);
        mapped.is_some()
    }

    /// Notes a round in which both ends dial.
    pub(super) fn note_round(&mut self, now: Time) {
        if self.knows_mapped.is_some() {
            self.tried_mapped.get_or_insert(now);
        }
    }

    /// Whether the peer has named addresses, and so does not hide, and has tried the mapped one for that long.
    pub(super) fn has_tried(&self, now: Time, mapped: SocketAddr, long: Duration) -> bool {
        let is_open = self.stated.as_ref().is_some_and(|list| !list.is_empty());
        let is_long = self.tried_mapped.is_some_and(|at| now.since(at) >= long);
        is_open && is_long && self.knows_mapped == Some(mapped)
    }

    /// The addresses of both ends, once each has the other's.
    pub(super) fn ends(&self) -> Option<Ends> {
        Some(Ends {
            mine: self.sent.clone()?,
            theirs: self.stated.clone()?,
        })
    }
}
