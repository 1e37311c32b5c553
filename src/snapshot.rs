//! The room's state for queries, which the network thread publishes as a whole.

use std::net::SocketAddr;
use std::time::Duration;

use crate::clock::Moment;
use crate::core::election::extra::Cluster;
use crate::core::id::{Fingerprint, PeerId};
use crate::core::path::LinkPath;
use crate::core::room_time::Line;
use crate::core::time::Time;
use crate::core::wire::{Opaque, Strategy};

/// State of the link to a peer, with the numbers of the C ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum PeerStatus {
    /// Linked and counted.
    Connected = 0,
    /// Not linked. Only the PeerStatus callback reports it; it never occurs in a snapshot.
    Disconnected = 1,
    /// Lost, and being dialled.
    Reconnecting = 2,
    /// Being admitted.
    Handshaking = 3,
}

/// One known peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerView {
    /// Its id.
    pub id: PeerId,
    /// State of the link to it.
    pub status: PeerStatus,
    /// The address at which it accepts links, as its link showed; `None` while it is being admitted.
    pub address: Option<SocketAddr>,
    /// The fingerprint of its key; `None` while it is being admitted.
    pub key: Option<Fingerprint>,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub rtt: Option<Duration>,
    /// Variation of the round-trip time; `None` before the first measurement.
    pub jitter: Option<Duration>,
    /// Time for which its host had taken no events, from its newest heartbeat.
    pub host_silent: Duration,
    /// How it is reached; `None` without a link.
    pub path: Option<LinkPath>,
}

/// The room's time until a newer snapshot, on the clock of the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomTime {
    /// The moment of the core's [`Time::ZERO`].
    pub origin: Moment,
    /// The time as the core knows it.
    pub line: Line,
}

impl RoomTime {
    /// The time in microseconds at that moment.
    pub fn at(&self, now: Moment) -> u64 {
        self.line.at(self.core_time(now))
    }

    /// Maximum difference to the leader's time at that moment; `None` if it is unknown.
    pub fn error(&self, now: Moment) -> Option<Duration> {
        self.line.error(self.core_time(now))
    }

    fn core_time(&self, now: Moment) -> Time {
        Time::ZERO + now.since(self.origin)
    }
}

/// The room at one moment. Immutable; a newer one replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Every known peer but ourselves, sorted by id.
    pub peers: Vec<PeerView>,
    /// Number of connected ones.
    pub connected: usize,
    /// The ids of the connected ones, sorted, joined by `\n`.
    pub peer_list: String,
    /// The ids of the connected and the reconnecting ones, sorted, joined by `\n`.
    pub member_list: String,
    /// Where members on the internet see this node; `None` if unknown.
    pub public_address: Option<SocketAddr>,
    /// Number of members of the room without a link to this node, because one of both has reached its limit.
    pub unlinked: usize,
    /// The room's time; `None` before the first snapshot.
    pub room_time: Option<RoomTime>,
    /// The leader at the time of the snapshot; `None` if unknown or known to be gone. [`Snapshot::leader_at`] returns
    /// it for a later moment.
    pub leader: Option<PeerId>,
    /// Whether this node was the leader; [`Snapshot::leads`] returns it for a later moment.
    pub is_leader: bool,
    /// End of this node's leadership unless a newer snapshot extends it, if time alone ends it.
    pub leads_until: Option<Moment>,
    /// The term of the largest leadership record seen.
    pub term: u64,
    /// The number of `SetLeader` calls that the record builds on.
    pub epoch: u64,
    /// Election strategy of the room.
    pub strategy: Strategy,
    /// The cluster, where the strategy has one.
    pub cluster: Option<Cluster>,
    /// The token in messages that this node sent as leader; [`Snapshot::leader_token_at`] returns it for a later
    /// moment.
    pub leader_token: Option<Opaque>,
}

impl Snapshot {
    /// Whether this node leads at the moment `now`. Calls `now` only if time alone ends the leadership.
    pub fn leads(&self, now: impl FnOnce() -> Moment) -> bool {
        self.is_leader && !self.has_lapsed(now)
    }

    /// The leader at that moment.
    pub fn leader_at(&self, now: impl FnOnce() -> Moment) -> Option<&PeerId> {
        self.leader.as_ref().filter(|_| !self.has_lapsed(now))
    }

    /// The token in messages that this node sends as leader at that moment.
    pub fn leader_token_at(&self, now: impl FnOnce() -> Moment) -> Option<&Opaque> {
        self.leader_token.as_ref().filter(|_| !self.has_lapsed(now))
    }

    /// The fencing token of this node's leadership at that moment; 0 if it does not lead. `None` if the strategy has
    /// none.
    pub fn fencing_token(&self, now: impl FnOnce() -> Moment) -> Option<u64> {
        matches!(self.strategy, Strategy::Etcd(_)).then(|| match self.leads(now) {
            true => self.term,
            false => 0,
        })
    }

    /// Whether this node led when this was published, and no longer does: the process may have slept since.
    pub fn has_lapsed(&self, now: impl FnOnce() -> Moment) -> bool {
        self.is_leader && self.leads_until.is_some_and(|until| now() >= until)
    }

    /// The path to a linked peer.
    pub fn path_to(&self, id: &str) -> Option<&LinkPath> {
        self.peer(id)?.path.as_ref()
    }

    /// The peer with this id.
    pub fn peer(&self, id: &str) -> Option<&PeerView> {
        self.peers
            .binary_search_by(|view| view.id.as_str().cmp(id))
            .ok()
            .map(|index| &self.peers[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::election::etcd::EtcdRules;

    #[test]
    fn a_leader_that_slept_beyond_its_lease_does_not_lead() {
        let began = Moment::now();
        let me = PeerId::new("me").expect("an id");
        let snapshot = Snapshot {
            leader: Some(me.clone()),
            is_leader: true,
            leads_until: Some(began + Duration::from_secs(7)),
            term: 12,
            strategy: Strategy::Etcd(EtcdRules::default()),
            leader_token: Some(Opaque::of(&12)),
            ..Snapshot::default()
        };
        let before = || began + Duration::from_millis(6_999);
        assert!(snapshot.leads(before));
        assert_eq!(snapshot.leader_at(before), Some(&me));
        assert_eq!(
            snapshot.leader_token_at(before),
            snapshot.leader_token.as_ref()
        );
        assert_eq!(snapshot.fencing_token(before), Some(12));
        for asleep in [7, 3600] {
            let after = || began + Duration::from_secs(asleep);
            assert!(!snapshot.leads(after));
            assert!(snapshot.has_lapsed(after));
            assert_eq!(snapshot.leader_at(after), None);
            assert_eq!(snapshot.leader_token_at(after), None);
            assert_eq!(snapshot.fencing_token(after), Some(0));
        }
    }

    #[test]
    fn only_a_leadership_that_time_ends_asks_for_the_time() {
        let never = || -> Moment { panic!("asked for the time") };
        let other = PeerId::new("other").expect("an id");
        let follower = Snapshot {
            leader: Some(other.clone()),
            ..Snapshot::default()
        };
        assert!(!follower.leads(never));
        assert_eq!(follower.leader_at(never), Some(&other));
        assert_eq!(follower.fencing_token(never), None);
        let raft = Snapshot {
            is_leader: true,
            ..Snapshot::default()
        };
        assert!(raft.leads(never));
    }
}
