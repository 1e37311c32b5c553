//! The room's state: what the driver shows to the log, and what the log asks for.

use std::collections::BTreeSet;

use tokio::sync::oneshot;

use super::super::replication::{Effect, fits, limits};
use super::super::state_file::Stored;
use super::Driver;
use crate::core::id::PeerId;
use crate::core::node::{AdmissionRefusal, Input};
use crate::core::wire::{Hello, StateLimits};
use crate::state::ballot::MemberId;
use crate::state::replica::Linked;
use crate::state::watch::counts;
use crate::state::wire::Frame;

impl Driver {
    /// The limits of the room's state, if it has one.
    pub(super) fn state_limits(&self) -> Option<StateLimits> {
        self.shared.config.state.map(limits)
    }

    /// Checks whether the sender of a Hello keeps the same state.
    pub(super) fn check_state_of(&self, hello: &Hello) -> Result<(), AdmissionRefusal> {
        fits(self.state_limits(), hello.state)
    }

    /// The link that carries a peer's session may have changed.
    pub(super) fn state_link_changed(&mut self, peer: &PeerId) {
        let Some(replication) = &mut self.replication else {
            return;
        };
        let Some((id, incarnation, round_trip)) = self.sessions.current_link(peer) else {
            return;
        };
        let linked = Linked {
            member: MemberId {
                peer: peer.clone(),
                incarnation,
            },
            is_eligible: counts(&self.node.core, peer),
            round_trip,
        };
        replication.linked(self.node.clock.now(), id, linked);
    }

    pub(super) fn state_link_lost(&mut self, peer: &PeerId) {
        if let Some(replication) = &mut self.replication {
            replication.lost(self.node.clock.now(), peer);
        }
    }

    /// A session ends; it is still among the sessions.
    pub(super) fn state_left(&mut self, peer: &PeerId) {
        let incarnation = self.sessions.incarnation_of(peer);
        if let Some(replication) = &mut self.replication
            && let Some(incarnation) = incarnation
        {
            let member = MemberId {
                peer: peer.clone(),
                incarnation,
            };
            replication.gone(self.node.clock.now(), member);
        }
    }

    /// Shows the log what the core's outputs have changed.
    pub(super) fn show_room_to_state(&mut self) {
        let Some(replication) = &mut self.replication else {
            return;
        };
        let core = &self.node.core;
        let leader = core.leader().and_then(|leader| {
            let incarnation = match *leader == self.shared.peer_id {
                true => Some(core.incarnation()),
                false => self.sessions.incarnation_of(leader),
            };
            Some(MemberId {
                peer: leader.clone(),
                incarnation: incarnation?,
            })
        });
        replication.follow(self.node.clock.now(), core, leader);
    }

    /// A peer has sent a frame on the link that carries its session.
    pub(super) fn state_frame(&mut self, peer: PeerId, frame: Frame, taken: oneshot::Sender<()>) {
        let now = self.node.now();
        let largest = self.node.core.counter_bound(now);
        let Some(replication) = &mut self.replication else {
            return;
        };
        if let Err(violation) = replication.frame(now, (peer.clone(), frame), largest, taken) {
            tracing::warn!(%peer, %violation, "the peer broke the rules of the room's state");
            self.broken(peer, "it broke the rules of the room's state");
        }
    }

    pub(super) fn stored(&mut self, stored: Stored) {
        match stored {
            Stored::Strategy(number) => self.feed(Input::Persisted { number }),
            Stored::Log(number) => {
                if let Some(replication) = &mut self.replication {
                    replication.saved(number);
                }
            }
        }
    }

    /// Ends a turn for the log: sends what has become due, and lets the host take what is confirmed.
    pub(super) fn advance_state(&mut self) {
        let now = self.node.now();
        let replication = self.replication.as_mut();
        let Some(replication) = replication.filter(|replication| replication.is_due(now)) else {
            return;
        };
        let (effects, may_give) = replication.end_turn(now);
        let mut stalled = BTreeSet::new();
        for effect in effects {
            match effect {
                Effect::Send(to, frame) if !stalled.contains(&to) => {
                    if !self.sessions.send_state(&to, &frame) {
                        stalled.insert(to);
                    }
                }
                // Its link ends.
                Effect::Send(..) => {}
                Effect::Save(number, state) => match &self.writer {
                    Some(writer) => writer.write_log(number, state),
                    // Only static voters keep a state, and these have a state directory.
                    None => tracing::error!("there is no state directory for the room's state"),
                },
            }
        }
        if may_give {
            self.shared.dispatch.push_state();
        }
    }
}
