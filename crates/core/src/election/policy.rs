//! The rules that all members of a room share.

use serde::{Deserialize, Serialize};

use super::etcd::EtcdRules;
use super::seeded::SeededRules;
use crate::quorum::QuorumPolicy;

/// The election strategy of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Strategy {
    /// Votes of the connected peers.
    #[default]
    Raft,
    /// The lowest id that finds no leader, in every part of a partitioned room.
    Gossip {
        /// Whether the lowest id wins for certain when a leader is lost.
        strict_lowest: bool,
    },
    /// Votes of a roster's majority, in a cluster that is entered through seeds.
    Seeded(SeededRules),
    /// The lease that was first at an etcd cluster.
    Etcd(EtcdRules),
}

impl Strategy {
    /// Its name for hosts and in state files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raft => "raft",
            Self::Gossip { .. } => "gossip",
            Self::Seeded(_) => "seeded",
            Self::Etcd(_) => "etcd",
        }
    }
}

/// Which leader stays when two sides merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum MergePolicy {
    /// The leader of the larger side; of equal sides, the one that has led longer.
    #[default]
    LargestSide,
    /// The leader with the higher record.
    HighestTerm,
}

/// Permission to call `SetLeader`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Authority {
    /// Every member.
    #[default]
    Anyone,
    /// The leader alone.
    LeaderOnly,
}

/// Whether one fixed member leads for as long as the room lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum HostMode {
    /// No fixed host: the room elects.
    #[default]
    Off,
    /// This member leads, and the room ends with it.
    Host,
    /// Another member is the fixed host; this one never leads.
    Guest,
}

impl HostMode {
    /// Whether members of these two modes may share a room: one fixed host and guests, or no fixed
    /// host at all.
    fn is_compatible_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Host, Self::Host) => false,
            (Self::Off, other) | (other, Self::Off) => other == Self::Off,
            (Self::Host | Self::Guest, _) => true,
        }
    }
}

/// The links between members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Topology {
    /// Every member links to every other one that it can reach.
    #[default]
    Mesh,
    /// Guests link to the fixed host alone, which connects them to each other.
    Star,
}

/// The rules that all members of a room share. Members with different rules do not link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoomPolicy {
    /// The election strategy.
    pub strategy: Strategy,
    /// The voters that count for a majority.
    pub quorum: QuorumPolicy,
    /// Which leader stays when two sides merge.
    pub merge: MergePolicy,
    /// Permission to call `SetLeader`.
    pub authority: Authority,
    /// Whether one fixed member leads.
    pub host_mode: HostMode,
    /// The links between members.
    pub topology: Topology,
}

impl RoomPolicy {
    /// The first rule in which `self` and `other` are incompatible, with both values as text.
    pub fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        macro_rules! compare {
            ($($field:ident),*) => {
                $(if self.$field != other.$field {
                    return Some(both!($field));
                })*
            };
        }
        macro_rules! both {
            ($field:ident) => {
                (
                    stringify!($field),
                    format!("{:?}", self.$field),
                    format!("{:?}", other.$field),
                )
            };
        }
        compare!(strategy, quorum, merge, authority, topology);
        (!self.host_mode.is_compatible_with(other.host_mode)).then(|| both!(host_mode))
    }
}
