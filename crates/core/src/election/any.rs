//! Strategies as nodes run them: over parts that only the strategy reads.

use std::any::Any;
use std::fmt;

use serde::de::DeserializeOwned;

use super::seeded::MemberState;
use super::{
    Description, Election, ElectionError, ElectionInput, ElectionOutput, InputOf, Leadership,
    NamedLeader, OpaqueInput, OpaqueOutput, Role, View,
};
use crate::id::{Fingerprint, PeerId};
use crate::opaque::Opaque;
use crate::time::Time;

/// An [`Election`] whose messages are opaque: each method is that of the same name.
pub trait AnyElection: Any + fmt::Debug + Send {
    /// As [`Election::handle`].
    ///
    /// # Errors
    /// The strategy's, and [`ElectionError::Violation`] for a part that cannot be decoded.
    fn handle(&mut self, now: Time, view: &View, input: OpaqueInput) -> Result<(), ElectionError>;
    /// As [`Election::poll_output`].
    fn poll_output(&mut self) -> Option<OpaqueOutput>;
    /// As [`Election::next_deadline`].
    fn next_deadline(&self) -> Option<Time>;
    /// As [`Election::first_state`].
    fn first_state(&self) -> Option<Opaque>;
    /// As [`Election::leadership`].
    fn leadership(&self) -> Leadership<'_>;
    /// As [`Election::role`].
    fn role(&self) -> Role;
    /// As [`Election::voted_for`].
    fn voted_for(&self) -> Option<&PeerId>;
    /// As [`Election::member_states`].
    fn member_states(&self) -> Vec<(PeerId, MemberState)>;
    /// As [`Election::cluster_version`].
    fn cluster_version(&self) -> Option<u64>;
    /// As [`Election::admits`].
    fn admits(&self, peer: &PeerId, key: Fingerprint) -> bool;
    /// As [`Election::leader_token`].
    fn leader_token(&self) -> Option<Opaque>;
    /// As [`Election::followed_token`].
    fn followed_token(&self) -> Opaque;
    /// As [`Election::pulse`].
    fn pulse(&self, now: Time, view: &View, to: &PeerId) -> Opaque;
    /// As [`Election::hello`].
    fn hello(&self, now: Time, view: &View, asked: Time) -> Opaque;
    /// As [`Election::named_in`]; `None` for what is no Hello's part.
    fn named_in(&self, hello: &Opaque) -> Option<NamedLeader>;
    /// As [`Election::has_left`].
    fn has_left(&self) -> bool;
    /// As [`Election::names`].
    fn names(&self, peer: &PeerId) -> Option<&NamedLeader>;
    /// As [`Election::moves_to`].
    fn moves_to(&self, view: &View) -> Option<(&PeerId, Fingerprint)>;
    /// As [`Election::successor`].
    fn successor(&self, view: &View) -> Option<PeerId>;
    /// As [`Election::hear_followed`].
    ///
    /// # Errors
    /// As [`handle`](Self::handle).
    fn hear_followed(
        &mut self,
        now: Time,
        view: &View,
        token: &Opaque,
    ) -> Result<(), ElectionError>;
    /// As [`Election::may_supersede`]; `false` for what is no token.
    fn may_supersede(&self, from: &PeerId, token: &Opaque) -> bool;
    /// As [`Election::awaits`]; `false` for what is no token.
    fn awaits(&self, from: &PeerId, token: &Opaque) -> bool;
    /// As [`Election::judge`].
    ///
    /// # Errors
    /// As [`handle`](Self::handle).
    fn judge(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        token: &Opaque,
    ) -> Result<bool, ElectionError>;
    /// As [`Election::describe`]; `None` for what is no message.
    fn describe(&self, message: &Opaque) -> Option<Description>;
    /// As [`Election::describe_pulse`]; `None` for what is no such part.
    fn describe_pulse(&self, pulse: &Opaque) -> Option<Description>;
}

impl dyn AnyElection {
    /// The strategy itself, if it is an `E`; for checks.
    pub fn of<E: Election + 'static>(&self) -> Option<&E> {
        (self as &dyn Any).downcast_ref()
    }
}

impl<E: Election + Send + 'static> AnyElection for E {
    fn handle(&mut self, now: Time, view: &View, input: OpaqueInput) -> Result<(), ElectionError> {
        let input = decoded::<E>(input)?;
        Election::handle(self, now, view, input)
    }

    fn poll_output(&mut self) -> Option<OpaqueOutput> {
        Some(match Election::poll_output(self)? {
            ElectionOutput::Send { to, message } => ElectionOutput::Send {
                to,
                message: Opaque::of(&message),
            },
            ElectionOutput::Persist { number, state } => ElectionOutput::Persist {
                number,
                state: Opaque::of(&state),
            },
            ElectionOutput::StaleState { remembered, since } => {
                ElectionOutput::StaleState { remembered, since }
            }
            ElectionOutput::HeartbeatNow => ElectionOutput::HeartbeatNow,
            ElectionOutput::DialSeeds(seeds) => ElectionOutput::DialSeeds(seeds),
            ElectionOutput::MemberState {
                peer,
                state,
                version,
            } => ElectionOutput::MemberState {
                peer,
                state,
                version,
            },
            ElectionOutput::SetLeaderResult { target, outcome } => {
                ElectionOutput::SetLeaderResult { target, outcome }
            }
            ElectionOutput::Engine { call, request } => ElectionOutput::Engine { call, request },
            ElectionOutput::LockResult {
                request,
                name,
                outcome,
            } => ElectionOutput::LockResult {
                request,
                name,
                outcome,
            },
            ElectionOutput::LockLost { name, token } => ElectionOutput::LockLost { name, token },
        })
    }

    fn next_deadline(&self) -> Option<Time> {
        Election::next_deadline(self)
    }

    fn first_state(&self) -> Option<Opaque> {
        Election::first_state(self).as_ref().map(Opaque::of)
    }

    fn leadership(&self) -> Leadership<'_> {
        Election::leadership(self)
    }

    fn role(&self) -> Role {
        Election::role(self)
    }

    fn voted_for(&self) -> Option<&PeerId> {
        Election::voted_for(self)
    }

    fn member_states(&self) -> Vec<(PeerId, MemberState)> {
        Election::member_states(self)
    }

    fn cluster_version(&self) -> Option<u64> {
        Election::cluster_version(self)
    }

    fn admits(&self, peer: &PeerId, key: Fingerprint) -> bool {
        Election::admits(self, peer, key)
    }

    fn leader_token(&self) -> Option<Opaque> {
        Election::leader_token(self).as_ref().map(Opaque::of)
    }

    fn followed_token(&self) -> Opaque {
        Opaque::of(&Election::followed_token(self))
    }

    fn pulse(&self, now: Time, view: &View, to: &PeerId) -> Opaque {
        Opaque::of(&Election::pulse(self, now, view, to))
    }

    fn hello(&self, now: Time, view: &View, asked: Time) -> Opaque {
        Opaque::of(&Election::hello(self, now, view, asked))
    }

    fn named_in(&self, hello: &Opaque) -> Option<NamedLeader> {
        let hello = hello.decode().ok()?;
        Election::named_in(self, &hello)
    }

    fn has_left(&self) -> bool {
        Election::has_left(self)
    }

    fn names(&self, peer: &PeerId) -> Option<&NamedLeader> {
        Election::names(self, peer)
    }

    fn moves_to(&self, view: &View) -> Option<(&PeerId, Fingerprint)> {
        Election::moves_to(self, view)
    }

    fn successor(&self, view: &View) -> Option<PeerId> {
        Election::successor(self, view)
    }

    fn hear_followed(
        &mut self,
        now: Time,
        view: &View,
        token: &Opaque,
    ) -> Result<(), ElectionError> {
        let token = part(token, "the token of a broadcast is malformed")?;
        Election::hear_followed(self, now, view, token)
    }

    fn may_supersede(&self, from: &PeerId, token: &Opaque) -> bool {
        let token = token.decode();
        token.is_ok_and(|token| Election::may_supersede(self, from, &token))
    }

    fn awaits(&self, from: &PeerId, token: &Opaque) -> bool {
        let token = token.decode();
        token.is_ok_and(|token| Election::awaits(self, from, &token))
    }

    fn judge(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        token: &Opaque,
    ) -> Result<bool, ElectionError> {
        let token = part(token, "a leader's token is malformed")?;
        Election::judge(self, now, view, from, &token)
    }

    fn describe(&self, message: &Opaque) -> Option<Description> {
        Some(E::describe(&message.decode().ok()?))
    }

    fn describe_pulse(&self, pulse: &Opaque) -> Option<Description> {
        Some(E::describe_pulse(&pulse.decode().ok()?))
    }
}

fn part<T: DeserializeOwned>(part: &Opaque, malformed: &'static str) -> Result<T, ElectionError> {
    let decoded = part.decode();
    decoded.map_err(|_| ElectionError::Violation(malformed))
}

fn decoded<E: Election>(input: OpaqueInput) -> Result<InputOf<E>, ElectionError> {
    use ElectionInput as I;
    Ok(match input {
        I::PeerUp {
            peer,
            key,
            ours,
            theirs,
        } => I::PeerUp {
            peer,
            key,
            ours: part(&ours, "a Hello's part is malformed")?,
            theirs: part(&theirs, "a Hello's part is malformed")?,
        },
        I::Message { from, message } => I::Message {
            from,
            message: part(&message, "an election message is malformed")?,
        },
        I::Pulse { from, pulse } => I::Pulse {
            from,
            pulse: part(&pulse, "a heartbeat's part is malformed")?,
        },
        I::Local(input) => I::Local(input),
    })
}
