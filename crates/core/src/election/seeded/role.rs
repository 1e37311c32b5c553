//! The role of a node, and the only functions that change it.

use std::collections::BTreeSet;

use tracing::trace;

use super::joining::Joining;
use super::wire::{Claim, MAX_LISTED, Observation};
use super::{LeaderReason, MemberState, Seeded, View};
use crate::bounded::BoundedMap;
use crate::election::ElectionOutput;
use crate::id::{Incarnation, PeerId};
use crate::time::Time;

/// A node's role in its cluster.
#[derive(Debug)]
pub(super) enum Role {
    /// In no cluster: it looks for one.
    Joining(Joining),
    /// A member, of a leader or of none for now.
    Follower(Option<Box<Followed>>),
    /// The leader.
    Leader(Box<Leader>),
}

/// The leader of a follower.
#[derive(Debug, Clone)]
pub(super) struct Followed {
    pub(super) claim: Claim,
    /// The incarnation that leads.
    pub(super) incarnation: Incarnation,
    /// The time of its last answer, and its clock as shown in that answer.
    pub(super) acked_at: Time,
    pub(super) acked_us: Option<u64>,
    pub(super) keep_alive_at: Time,
    /// The last change of its table that is known.
    pub(super) change: u64,
}

impl Followed {
    pub(super) fn new(now: Time, claim: Claim, incarnation: Incarnation) -> Self {
        Self {
            claim,
            incarnation,
            acked_at: now,
            acked_us: None,
            keep_alive_at: now,
            change: 0,
        }
    }
}

/// The last keep-alive of a member, as its leader keeps it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contact {
    pub(super) at: Time,
    pub(super) acknowledged: Option<Acknowledged>,
}

/// A keep-alive that shows an answer of the leader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledged {
    /// The time at which it arrived.
    pub(super) at: Time,
    /// The time at which the leader sent that answer.
    pub(super) answered_at: Time,
}

/// The state of a leader.
#[derive(Debug)]
pub(super) struct Leader {
    pub(super) claim: Claim,
    pub(super) since: Time,
    /// Whether a majority has acknowledged it. An elected leader needs a majority; one that leads alone needs it from
    /// then on.
    pub(super) had_majority: bool,
    pub(super) contacts: BoundedMap<PeerId, Contact, MAX_LISTED>,
    /// Counts the changes of the table.
    pub(super) change: u64,
    pub(super) seeds_at: Time,
    /// Seeds that answered since the last round.
    pub(super) seeds: BTreeSet<PeerId>,
}

impl Role {
    pub(super) fn joining(now: Time) -> Self {
        Self::Joining(Joining::new(now))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Joining(_) => "joining",
            Self::Follower(_) => "follower",
            Self::Leader(_) => "leader",
        }
    }
}

impl Seeded {
    pub(super) fn leading(&self) -> Option<&Leader> {
        match &self.role {
            Role::Leader(leader) => Some(leader),
            _ => None,
        }
    }

    pub(super) fn leading_mut(&mut self) -> Option<&mut Leader> {
        match &mut self.role {
            Role::Leader(leader) => Some(leader),
            _ => None,
        }
    }

    pub(super) fn following(&self) -> Option<&Followed> {
        match &self.role {
            Role::Follower(followed) => followed.as_deref(),
            _ => None,
        }
    }

    pub(super) fn following_mut(&mut self) -> Option<&mut Followed> {
        match &mut self.role {
            Role::Follower(followed) => followed.as_deref_mut(),
            _ => None,
        }
    }

    /// This node's own leadership, once a restart cannot undo it.
    pub(super) fn safe_claim(&self) -> Option<&Claim> {
        let claim = &self.leading()?.claim;
        let safe = self.disk.safe().acceptor.decided() >= claim.version;
        safe.then_some(claim)
    }

    /// Leaves the cluster; shows this version until this node is in one again.
    pub(super) fn become_joining(&mut self, now: Time, version: u64, reason: LeaderReason) {
        self.members.reset(&self.me);
        self.version = version;
        self.enter(Role::joining(now), reason);
    }

    /// Becomes a member that follows this leader, or none.
    pub(super) fn become_follower(&mut self, followed: Option<Followed>, reason: LeaderReason) {
        match &followed {
            Some(followed) => {
                let version = followed.claim.version;
                self.version = version;
                self.led_up_to = self.led_up_to.max(version);
                self.decide(version);
                self.target = None;
                self.campaigns = 0;
            }
            None => self.version = self.observation().version,
        }
        self.enter(Role::Follower(followed.map(Box::new)), reason);
    }

    /// Leads under this claim, which no other member holds: votes chose it, or a seed that may lead alone made it.
    pub(super) fn become_leader(&mut self, now: Time, view: &View, claim: Claim) {
        assert_eq!(claim.leader, self.me, "a node leads under its own name");
        assert!(self.votes(), "only a voter leads");
        assert!(
            claim.version > self.led_up_to,
            "a version is led once at most"
        );
        self.leave_living_leader(Some(&claim.leader));
        self.version = claim.version;
        self.led_up_to = claim.version;
        self.led_at = now;
        self.decide(claim.version);
        self.target = None;
        self.campaigns = 0;
        self.members
            .set(&self.me, self.incarnation, MemberState::Active);
        // The members of the previous leader have the whole time again.
        let mut contacts = BoundedMap::default();
        for member in self.members.ids().filter(|id| **id != self.me) {
            let silent = Contact {
                at: now,
                acknowledged: None,
            };
            // No more members than that exist.
            let _ = contacts.insert(member.clone(), silent);
        }
        let leader = Leader {
            claim,
            since: now,
            had_majority: false,
            contacts,
            change: 0,
            seeds_at: now,
            seeds: BTreeSet::new(),
        };
        self.enter(Role::Leader(Box::new(leader)), LeaderReason::Elected);
        self.outputs.push(ElectionOutput::HeartbeatNow);
        self.take_out_departed(view);
        self.probe_leader(now, view);
    }

    /// The leader that this node acknowledged, and that is not `next`, may lead on and count this node until a TTL
    /// after its last answer.
    pub(super) fn leave_living_leader(&mut self, next: Option<&PeerId>) {
        let ttl = self.intervals().ttl();
        let counted = self
            .following()
            .filter(|followed| followed.acked_us.is_some() && Some(&followed.claim.leader) != next);
        if let Some(until) = counted.map(|followed| followed.acked_at + ttl) {
            self.grace_until = self.grace_until.max(until);
        }
    }

    fn enter(&mut self, role: Role, reason: LeaderReason) {
        if role.name() != self.role.name() {
            trace!(
                before = self.role.name(),
                now = role.name(),
                version = self.version,
                "role"
            );
            if self.leading().is_some() {
                self.outputs.push(ElectionOutput::HeartbeatNow);
            }
        }
        self.role = role;
        self.campaign = None;
        self.hint = Some(reason);
    }

    /// Invariants that hold after every input.
    pub(super) fn check_role(&self) {
        let Observation { leader, version } = self.observation();
        assert!(
            self.campaign.is_none() || leader.is_none(),
            "only without a leader an election runs"
        );
        assert!(
            leader.is_none() || version <= self.decided(),
            "the version of a leader is decided"
        );
        match &self.role {
            Role::Joining(_) => {
                assert_eq!(
                    self.members.state(&self.me),
                    MemberState::Init,
                    "in no cluster"
                );
            }
            Role::Follower(followed) => assert!(
                followed
                    .as_ref()
                    .is_none_or(|followed| followed.claim.leader != self.me),
                "no member follows itself"
            ),
            Role::Leader(leader) => {
                assert_eq!(leader.claim.leader, self.me, "it leads under its own name");
                assert!(self.target.is_none(), "a leader joins no other");
            }
        }
    }
}
