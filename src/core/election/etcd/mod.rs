//! The etcd strategy: a cluster of etcd servers decides who leads (A4).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::record::Record;
use super::{
    Description, Election, ElectionError, InputOf, LeaderReason, Leadership, OutputOf, Role, Start,
    View,
};
use crate::core::id::PeerId;
use crate::core::time::Time;

mod config;

pub use config::{EtcdConfig, EtcdRules};

/// What this node keeps where it survives the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The lease of this node.
    pub lease: i64,
}

/// Who leads, as a message says that a leader sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reign {
    /// Who.
    pub leader: PeerId,
    /// The revision at which its key was created.
    pub revision: u64,
}

/// See the module's text.
#[derive(Debug)]
pub struct Etcd {
    record: Record,
    outputs: VecDeque<OutputOf<Self>>,
}

impl Etcd {
    /// A node that starts now.
    pub(super) fn start(_now: Time, _start: Start) -> Self {
        Self {
            record: Record::default(),
            outputs: VecDeque::new(),
        }
    }
}

impl Election for Etcd {
    type Message = ();
    type Pulse = ();
    type Hello = ();
    type Token = Option<Reign>;
    type State = Kept;

    fn handle(&mut self, _: Time, _: &View, _: InputOf<Self>) -> Result<(), ElectionError> {
        Ok(())
    }

    fn poll_output(&mut self) -> Option<OutputOf<Self>> {
        self.outputs.pop_front()
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn leadership(&self) -> Leadership<'_> {
        Leadership {
            leader: self.record.leader.as_ref(),
            reason: LeaderReason::None,
            record: &self.record,
            valid_until: None,
        }
    }

    fn role(&self) -> Role {
        Role::Follower
    }

    fn leader_token(&self) -> Option<Self::Token> {
        None
    }

    fn followed_token(&self) -> Self::Token {
        None
    }

    fn pulse(&self, _: Time, _: &View, _: &PeerId) {}

    fn hello(&self, _: Time, _: &View, _: Time) {}

    fn may_supersede(&self, _: &PeerId, _: &Self::Token) -> bool {
        false
    }

    fn judge(
        &mut self,
        _: Time,
        _: &View,
        _: &PeerId,
        _: &Self::Token,
    ) -> Result<bool, ElectionError> {
        Ok(false)
    }

    fn describe(_: &()) -> Description {
        Description {
            kind: "election",
            term: None,
            granted: None,
            names: None,
        }
    }

    fn describe_pulse(_: &()) -> Description {
        Description {
            kind: "heartbeat",
            term: None,
            granted: None,
            names: None,
        }
    }
}
