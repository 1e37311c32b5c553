//! A voter of a roster that lies: it claims that the others elected it, and makes members up as their leader.

use super::link::WildLink;
use super::*;
use crate::core::election::seeded::MemberState;
use crate::core::election::seeded::wire::{Based, Claim, Observation, SeededMessage};

/// Distance of its claims.
const CLAIMS: Duration = Duration::from_millis(500);
/// Members that it makes up with each claim.
const MADE_UP: u64 = 16;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Voter {
    next_claim: Option<Instant>,
    /// The version under which it leads.
    version: u64,
    /// Its write counter, and the count of the changes of its table.
    counter: u64,
}

impl Voter {
    /// A session begins. The counter stays: others remember it.
    pub(super) fn begin(&mut self) {
        self.next_claim = None;
    }

    pub(super) async fn step(
        &mut self,
        wild: &mut Wild<'_>,
        newest: Record,
        links: &mut [WildLink],
    ) {
        let now = Instant::now();
        if self.next_claim.is_none_or(|next| next <= now) {
            self.next_claim = Some(now + CLAIMS);
            for message in self.claim(wild, &newest) {
                let message = Message::Election(Opaque::of(&message));
                for link in &mut *links {
                    let _ = link.send_to_core(wild, message.clone()).await;
                }
            }
        }
        wild.record = Record {
            leader: Some(wild.me.id.clone()),
            ..newest
        };
        wild.record.stamp.term = self.version;
    }

    /// Its election, and then the members that it makes up.
    fn claim(&mut self, wild: &mut Wild<'_>, newest: &Record) -> Vec<Based> {
        let me = wild.me.id.clone();
        let mut messages = Vec::new();
        if newest.leader.as_ref() != Some(&me) || newest.term() > self.version {
            self.version = newest.term() + 1;
            let basis = Observation {
                leader: None,
                version: newest.term(),
            };
            let claim = Claim {
                leader: me.clone(),
                version: self.version,
                elected: true,
                address: String::new(),
            };
            messages.push(self.based(basis, SeededMessage::LeaderElected { claim }));
        }
        for _ in 0..MADE_UP {
            let basis = Observation {
                leader: Some(me.clone()),
                version: self.version,
            };
            let state = match wild.chance.flip() {
                true => MemberState::Active,
                false => MemberState::Unreachable,
            };
            let (change, n) = (self.counter + 1, wild.chance.below(4096));
            let status = SeededMessage::MemberStatusUpdate {
                change,
                member: id(&format!("made-up-{n}")),
                incarnation: Incarnation {
                    started_us: change,
                    random: change,
                },
                state,
            };
            messages.push(self.based(basis, status));
        }
        messages
    }

    fn based(&mut self, basis: Observation, message: SeededMessage) -> Based {
        self.counter += 1;
        Based {
            basis,
            writes: self.counter,
            message,
        }
    }
}
