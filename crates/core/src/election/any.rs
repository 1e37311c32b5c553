//! The closed set of strategies that a node runs, over parts of messages that only the strategy
//! reads.

use std::any::Any;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::etcd::Etcd;
use super::extra::{Cluster, Durable, Locks, StoreClient};
use super::gossip::{Gossip, Windows};
use super::policy::Strategy;
use super::raft::Raft;
use super::seeded::Seeded;
use super::{
    Description, Election, ElectionError, ElectionInput, ElectionOutput, InvalidSavedState,
    Leadership, NamedLeader, OpaqueInput, OpaqueOutput, Role, Start, View,
};
use crate::id::{Fingerprint, PeerId};
use crate::opaque::Opaque;
use crate::time::Time;

/// Any of the strategies. Its methods mirror [`Election`], with opaque parts of messages.
#[derive(Debug)]
pub enum AnyElection {
    /// Votes of the connected peers.
    Raft(Raft),
    /// The lowest id that finds no leader.
    Gossip(Gossip),
    /// Votes of a roster's majority.
    Seeded(Seeded),
    /// The lease that was first at an etcd cluster.
    Etcd(Etcd),
}

/// Evaluates a call on the room's strategy, bound to the given name.
macro_rules! each {
    ($any:expr, $election:ident => $call:expr) => {
        match $any {
            AnyElection::Raft($election) => $call,
            AnyElection::Gossip($election) => $call,
            AnyElection::Seeded($election) => $call,
            AnyElection::Etcd($election) => $call,
        }
    };
}

/// Forwards methods without parts of messages, one line each.
macro_rules! forward {
    ($(fn $name:ident(&self $(, $argument:ident: $of:ty)*) -> $result:ty;)+) => {
        impl AnyElection {
            $(
                #[doc = concat!("As [`Election::", stringify!($name), "`].")]
                pub fn $name(&self $(, $argument: $of)*) -> $result {
                    each!(self, election => election.$name($($argument),*))
                }
            )+
        }
    };
}

forward! {
    fn next_deadline(&self) -> Option<Time>;
    fn leadership(&self) -> Leadership<'_>;
    fn role(&self) -> Role;
    fn voted_for(&self) -> Option<&PeerId>;
    fn admits(&self, peer: &PeerId, key: Fingerprint) -> bool;
    fn has_left(&self) -> bool;
    fn names(&self, peer: &PeerId) -> Option<&NamedLeader>;
    fn moves_to(&self, view: &View) -> Option<(&PeerId, Fingerprint)>;
    fn successor(&self, view: &View) -> Option<PeerId>;
}

/// Methods with parts of messages.
impl AnyElection {
    /// Starts the strategy that the room's rules name, for a node without peers.
    ///
    /// # Errors
    /// [`InvalidSavedState`] where the strategy keeps a state, and `start.saved` is none of its own.
    pub fn start(now: Time, start: Start) -> Result<Self, InvalidSavedState> {
        Ok(match start.config.policy.strategy {
            Strategy::Raft => Self::Raft(Raft::start(now, start)?),
            Strategy::Gossip { strict_lowest } => {
                Self::Gossip(Gossip::start(now, start, strict_lowest))
            }
            Strategy::Seeded(rules) => Self::Seeded(Seeded::start(now, start, rules)?),
            Strategy::Etcd(rules) => Self::Etcd(Etcd::start(now, start, rules)?),
        })
    }

    /// As [`Election::handle`].
    ///
    /// # Errors
    /// The strategy's, and [`ElectionError::Violation`] for a part that cannot be decoded.
    pub fn handle(
        &mut self,
        now: Time,
        view: &View,
        input: OpaqueInput,
    ) -> Result<(), ElectionError> {
        each!(self, election => election.handle(now, view, input.decoded()?))
    }

    /// As [`Election::poll_output`].
    pub fn poll_output(&mut self) -> Option<OpaqueOutput> {
        each!(self, election => election.poll_output().map(ElectionOutput::encoded))
    }

    /// As [`Election::leader_token`].
    pub fn leader_token(&self) -> Option<Opaque> {
        each!(self, election => election.leader_token().as_ref().map(Opaque::of))
    }

    /// As [`Election::followed_token`].
    pub fn followed_token(&self) -> Opaque {
        each!(self, election => Opaque::of(&election.followed_token()))
    }

    /// As [`Election::pulse`].
    pub fn pulse(&self, now: Time, view: &View, to: &PeerId) -> Opaque {
        each!(self, election => Opaque::of(&election.pulse(now, view, to)))
    }

    /// As [`Election::hello`].
    pub fn hello(&self, now: Time, view: &View, asked: Time) -> Opaque {
        each!(self, election => Opaque::of(&election.hello(now, view, asked)))
    }

    /// As [`Election::named_in`]; `None` if the bytes are no Hello's part.
    pub fn named_in(&self, hello: &Opaque) -> Option<NamedLeader> {
        each!(self, election => election.named_in(&hello.decode().ok()?))
    }

    /// As [`Election::adopt_followed`].
    ///
    /// # Errors
    /// As [`handle`](Self::handle).
    pub fn adopt_followed(
        &mut self,
        now: Time,
        view: &View,
        token: &Opaque,
    ) -> Result<(), ElectionError> {
        const MALFORMED: &str = "the token of a broadcast is malformed";
        each!(self, election => election.adopt_followed(now, view, part(token, MALFORMED)?))
    }

    /// As [`Election::may_supersede`]; `false` if the bytes are no token.
    pub fn may_supersede(&self, from: &PeerId, token: &Opaque) -> bool {
        each!(self, election => {
            let token = token.decode();
            token.is_ok_and(|token| election.may_supersede(from, &token))
        })
    }

    /// As [`Election::awaits`]; `false` if the bytes are no token.
    pub fn awaits(&self, from: &PeerId, token: &Opaque) -> bool {
        each!(self, election => token.decode().is_ok_and(|token| election.awaits(from, &token)))
    }

    /// As [`Election::judge`].
    ///
    /// # Errors
    /// As [`handle`](Self::handle).
    pub fn judge(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        token: &Opaque,
    ) -> Result<bool, ElectionError> {
        const MALFORMED: &str = "a leader's token is malformed";
        each!(self, election => election.judge(now, view, from, &part(token, MALFORMED)?))
    }

    /// As [`Election::describe`]; `None` if the bytes are no message.
    pub fn describe(&self, message: &Opaque) -> Option<Description> {
        fn of<E: Election>(_: &E, message: &Opaque) -> Option<Description> {
            Some(E::describe(&message.decode().ok()?))
        }
        each!(self, election => of(election, message))
    }

    /// As [`Election::describe_pulse`]; `None` if the bytes are no heartbeat's part.
    pub fn describe_pulse(&self, pulse: &Opaque) -> Option<Description> {
        fn of<E: Election>(_: &E, pulse: &Opaque) -> Option<Description> {
            Some(E::describe_pulse(&pulse.decode().ok()?))
        }
        each!(self, election => of(election, pulse))
    }

    /// The strategy itself, if it is an `E`; for checks.
    pub fn of<E: Election + 'static>(&self) -> Option<&E> {
        each!(self, election => (election as &dyn Any).downcast_ref())
    }
}

/// Ports and queries that only some strategies offer.
impl AnyElection {
    /// Its port to a state that survives the process.
    pub fn durable(&self) -> Option<&dyn Durable> {
        match self {
            Self::Raft(raft) => Some(raft),
            Self::Seeded(seeded) => Some(seeded),
            Self::Etcd(etcd) => Some(etcd),
            _ => None,
        }
    }

    /// As [`durable`](Self::durable), mutable.
    pub fn durable_mut(&mut self) -> Option<&mut dyn Durable> {
        match self {
            Self::Raft(raft) => Some(raft),
            Self::Seeded(seeded) => Some(seeded),
            Self::Etcd(etcd) => Some(etcd),
            _ => None,
        }
    }

    /// Its port to locks.
    pub fn locks(&mut self) -> Option<&mut dyn Locks> {
        match self {
            Self::Etcd(etcd) => Some(etcd),
            _ => None,
        }
    }

    /// Its port to an external store.
    pub fn store_client(&mut self) -> Option<&mut dyn StoreClient> {
        match self {
            Self::Etcd(etcd) => Some(etcd),
            _ => None,
        }
    }

    /// Its cluster.
    pub fn cluster(&self) -> Option<Cluster> {
        match self {
            Self::Seeded(seeded) => Some(seeded.cluster()),
            _ => None,
        }
    }

    /// Sets the windows of gossip, which the caller has checked. Does nothing in other strategies.
    pub fn set_windows(&mut self, view: &View, windows: Windows) {
        if let Self::Gossip(gossip) = self {
            gossip.set_windows(view, windows);
        }
    }
}

impl<M: Serialize> ElectionOutput<M> {
    fn encoded(self) -> OpaqueOutput {
        match self {
            Self::Send { to, message } => ElectionOutput::Send {
                to,
                message: Opaque::of(&message),
            },
            Self::HeartbeatNow => ElectionOutput::HeartbeatNow,
            Self::Question(leader) => ElectionOutput::Question(leader),
            Self::SetLeaderResult { target, outcome } => {
                ElectionOutput::SetLeaderResult { target, outcome }
            }
            Self::Extra(extra) => ElectionOutput::Extra(extra),
        }
    }
}

impl OpaqueInput {
    fn decoded<M, P, S>(self) -> Result<ElectionInput<M, P, S>, ElectionError>
    where
        M: DeserializeOwned,
        P: DeserializeOwned,
        S: DeserializeOwned,
    {
        Ok(match self {
            Self::PeerUp {
                peer,
                key,
                ours,
                theirs,
            } => ElectionInput::PeerUp {
                peer,
                key,
                ours: part(&ours, "a Hello's part is malformed")?,
                theirs: part(&theirs, "a Hello's part is malformed")?,
            },
            Self::Message { from, message } => ElectionInput::Message {
                from,
                message: part(&message, "an election message is malformed")?,
            },
            Self::Pulse { from, pulse } => ElectionInput::Pulse {
                from,
                pulse: part(&pulse, "a heartbeat's part is malformed")?,
            },
            Self::Local(input) => ElectionInput::Local(input),
        })
    }
}

fn part<T: DeserializeOwned>(part: &Opaque, malformed: &'static str) -> Result<T, ElectionError> {
    let decoded = part.decode();
    decoded.map_err(|_| ElectionError::Violation(malformed))
}
