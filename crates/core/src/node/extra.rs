//! Features of single election strategies, which the node passes on between its caller and the strategy.

use std::sync::Arc;

use super::{CommandError, ElectionError, Event, Node, Output};
use crate::election::engine::{Answer, Call};
use crate::election::{Extra, LockEvent};
use crate::time::{Duration, Time};

impl Node {
    pub(super) fn carry_out_extra(&mut self, extra: Extra) {
        self.outputs.push_back(match extra {
            Extra::Persist { number, state } => Output::Persist { number, state },
            Extra::StaleState { remembered, since } => Output::StaleState { remembered, since },
            Extra::DialSeeds(seeds) => Output::DialSeeds(seeds),
            Extra::Engine { call, request } => Output::Engine { call, request },
            Extra::MemberState {
                peer,
                state,
                version,
            } => Output::Event(Event::MemberState {
                peer,
                state,
                version,
            }),
            Extra::Lock(LockEvent::Result {
                request,
                name,
                outcome,
            }) => Output::Event(Event::LockResult {
                request,
                name,
                outcome,
            }),
            Extra::Lock(LockEvent::Lost { name, token }) => {
                Output::Event(Event::LockLost { name, token })
            }
        });
    }

    pub(super) fn persisted(&mut self, now: Time, number: u64) {
        self.ask_election(|election, view| {
            if let Some(durable) = election.durable_mut() {
                durable.persisted(now, view, number);
            }
        });
    }

    pub(super) fn store_answered(&mut self, now: Time, call: Call, answer: Answer) {
        if let Some(client) = self.election.store_client() {
            client.answered(now, call, answer);
        }
    }

    pub(super) fn proclaim(&mut self, now: Time, value: Arc<str>) -> Result<(), ElectionError> {
        let not_supported = self.not_supported();
        let client = self.election.store_client().ok_or(not_supported)?;
        client.proclaim(now, value);
        Ok(())
    }

    pub(super) fn acquire_lock(
        &mut self,
        now: Time,
        request: u64,
        name: &Arc<str>,
        wait: Option<Duration>,
    ) -> Result<(), CommandError> {
        let not_supported = self.not_supported();
        let locks = self.election.locks().ok_or(not_supported)?;
        Ok(locks.acquire(now, request, name, wait)?)
    }

    pub(super) fn release_lock(&mut self, now: Time, name: &Arc<str>) -> Result<(), CommandError> {
        let not_supported = self.not_supported();
        let locks = self.election.locks().ok_or(not_supported)?;
        Ok(locks.release(now, name)?)
    }

    fn not_supported(&self) -> ElectionError {
        let strategy = self.policy().strategy.name();
        ElectionError::NotSupported { strategy }
    }
}
