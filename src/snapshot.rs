//! What queries read: the room as it stands, published whole by the network thread.

use std::time::Duration;

use crate::core::election::seeded::MemberState;
use crate::core::id::PeerId;
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
    /// Smoothed round-trip time; `None` before the first measurement.
    pub rtt: Option<Duration>,
    /// Variation of the round-trip time; `None` before the first measurement.
    pub jitter: Option<Duration>,
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
    /// The leader, if one is known and not known to be gone.
    pub leader: Option<PeerId>,
    /// Whether we are it.
    pub is_leader: bool,
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
    /// What the messages carry that we send as leader.
    pub leader_token: Option<Opaque>,
}

impl Snapshot {
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
