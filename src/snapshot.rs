//! What queries read: the room as it stands, published whole by the network thread.

use std::net::SocketAddr;
use std::time::Duration;

use crate::clock::Moment;
use crate::core::election::seeded::MemberState;
use crate::core::id::{Fingerprint, PeerId};
use crate::core::wire::{Opaque, Strategy};

/// How a peer is linked to us, with the numbers of the C ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum PeerStatus {
    /// Linked and counted.
    Connected = 0,
    /// Not linked. Told by the PeerStatus callback only; never seen in a snapshot.
    Disconnected = 1,
    /// Lost, and being dialled.
    Reconnecting = 2,
    /// Being admitted.
    Handshaking = 3,
}

/// One known peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerView {
    /// The peer's name.
    pub id: PeerId,
    /// How it is linked to us.
    pub status: PeerStatus,
    /// Where it accepts links, as its link showed; `None` while it is being admitted.
    pub address: Option<SocketAddr>,
    /// The fingerprint of its key; `None` while it is being admitted.
    pub key: Option<Fingerprint>,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub rtt: Option<Duration>,
    /// Variation of the round-trip time; `None` before the first measurement.
    pub jitter: Option<Duration>,
    /// How long its host had taken no events, as its newest heartbeat shows.
    pub host_silent: Duration,
}

/// The room at one moment. Immutable; a newer one replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Every known peer but ourselves, sorted by id.
    pub peers: Vec<PeerView>,
    /// How many of them are connected.
    pub connected: usize,
    /// The ids of the connected ones, sorted, joined by `\n`.
    pub peer_list: String,
    /// The same with those that are lost and waited for.
    pub member_list: String,
    /// How many members of the room we have no link with, because one of both has reached its limit.
    pub unlinked: usize,
    /// The leader, if one was known and not known to be gone; [`Snapshot::leader_at`] knows whether it still is it.
    pub leader: Option<PeerId>,
    /// Whether we were it; [`Snapshot::leads`] knows whether we still are.
    pub is_leader: bool,
    /// When our leadership ends unless a newer snapshot says otherwise, where time alone ends it.
    pub leads_until: Option<Moment>,
    /// The term of the largest leadership record seen.
    pub term: u64,
    /// The count of `SetLeader` calls that record builds on.
    pub epoch: u64,
    /// How the room elects its leader.
    pub strategy: Strategy,
    /// The members of a seeded cluster with their states, sorted by id.
    pub member_states: Vec<(PeerId, MemberState)>,
    /// The version of a seeded cluster.
    pub cluster_version: Option<u64>,
    /// What the messages carried that we sent as leader; [`Snapshot::leader_token_at`] knows whether they still do.
    pub leader_token: Option<Opaque>,
}

impl Snapshot {
    /// Whether we lead at the moment that `now` gives. It is asked only where time alone ends that.
    pub fn leads(&self, now: impl FnOnce() -> Moment) -> bool {
        self.is_leader && !self.has_lapsed(now)
    }

    /// Who leads at that moment.
    pub fn leader_at(&self, now: impl FnOnce() -> Moment) -> Option<&PeerId> {
        self.leader.as_ref().filter(|_| !self.has_lapsed(now))
    }

    /// What the messages carry that we send as leader at that moment.
    pub fn leader_token_at(&self, now: impl FnOnce() -> Moment) -> Option<&Opaque> {
        self.leader_token.as_ref().filter(|_| !self.has_lapsed(now))
    }

    /// The fencing token of our leadership at that moment, 0 where we do not lead. `None` where the strategy has none.
    pub fn fencing_token(&self, now: impl FnOnce() -> Moment) -> Option<u64> {
        matches!(self.strategy, Strategy::Etcd(_)).then(|| match self.leads(now) {
            true => self.term,
            false => 0,
        })
    }

    /// Whether we led when this was published, and do not any more: the process may have slept since.
    pub fn has_lapsed(&self, now: impl FnOnce() -> Moment) -> bool {
        self.is_leader && self.leads_until.is_some_and(|until| now() >= until)
    }

    /// The peer of that name.
    pub fn peer(&self, id: &str) -> Option<&PeerView> {
        self.peers
            .binary_search_by(|view| view.id.as_str().cmp(id))
            .ok()
            .map(|index| &self.peers[index])
    }

    /// The state of a member of a seeded cluster; [`MemberState::Init`] for everybody else.
    pub fn member_state(&self, id: &str) -> MemberState {
        self.member_states
            .binary_search_by(|(member, _)| member.as_str().cmp(id))
            .map_or(MemberState::Init, |index| self.member_states[index].1)
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
