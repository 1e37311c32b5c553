//! Members that Hold binds, as P7 needs it (C4.5): the checker's own account, from a node's inputs and state.

use crate::decoded;
use std::collections::BTreeMap;

use room_core::election::Recovery;
use room_core::election::raft::wire::{ElectionMessage, LiveLeader, Pulse};
use room_core::election::record::Record;
use room_core::id::PeerId;
use room_core::node::Input;

use super::{Checked, Checker, Life, RoleKind, Seen, ensure};

/// State of one incarnation for Hold.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// The assigned leader in the input that is being taken.
    receives: Option<Evidence>,
    /// The record under which it followed the named leader. Or the record that it took from Hellos while it had no leader, if one
    /// of their senders was bound by it.
    bound_by: Option<Record>,
    /// The record that it took from a Hello while it had no leader.
    taken: Option<Record>,
    /// The record that it held when its host allowed elections while it had no leader.
    released_under: Option<Record>,
}

#[derive(Debug)]
enum Evidence {
    /// The leader of that record is alive.
    Lives(Record),
    /// A Hello brings that record, and names no living leader of it. Whether the record binds its sender.
    Hello(Record, bool),
}

/// Leaders of each assignment, with their incarnations, and whether any member followed them there.
#[derive(Debug, Default)]
pub(super) struct Assigned(BTreeMap<Record, (u64, bool)>);

impl Hold {
    pub(super) fn release(&mut self, record: &Record) {
        self.released_under = Some(record.clone());
    }
}

impl Checker {
    /// A node is about to take an input.
    pub fn takes(&mut self, slot: usize, input: &Input) {
        let Some(life) = self.lives.get_mut(&slot) else {
            return;
        };
        life.hold.receives = match (lives(input), input) {
            (Some(record), _) => record.assigned.then_some(Evidence::Lives(record)),
            // Elections notice no link that a member carries.
            (None, Input::LinkUp(link)) if link.path.counts_in_elections() => {
                let sides = decoded::side(&link.ours).zip(decoded::side(&link.theirs));
                sides.and_then(|(ours, theirs)| {
                    let record = theirs.record;
                    // (a): a record that names this incarnation itself does not bind it.
                    let itself = record.leader.as_ref() == Some(&life.id) && !ours.lone;
                    let news = record > life.record || life.hold.taken.as_ref() == Some(&record);
                    let takes = life.reported.is_none() && news && !itself;
                    takes.then_some(Evidence::Hello(record, theirs.hold_binds))
                })
            }
            _ => None,
        };
    }

    /// Whether the host of `slot` has allowed elections under that record.
    pub fn is_released(&self, slot: usize, record: &Record) -> bool {
        let life = self.lives.get(&slot);
        life.is_some_and(|life| life.hold.released_under.as_ref() == Some(record))
    }

    /// Whether a node led under that assignment, was followed, and has another incarnation since, or one that `lives` does not
    /// count.
    pub fn is_followed_and_gone(&self, record: &Record, lives: impl Fn(&PeerId) -> bool) -> bool {
        let (Some(leader), Some((life, true))) = (&record.leader, self.assigned.0.get(record))
        else {
            return false;
        };
        self.births.get(leader) != Some(life) || !lives(leader)
    }

    /// Effect of the last input on it.
    pub(super) fn note_hold(&mut self, slot: usize, seen: &Seen<'_>) {
        let Some(life) = self.lives.get_mut(&slot) else {
            return;
        };
        if let Some(record) = seen.leads_under.filter(|record| record.assigned) {
            let births = self.births.get(&life.id).copied().unwrap_or(0);
            self.assigned.0.entry(record.clone()).or_default().0 = births;
        }
        let (record, binds) = match life.hold.receives.take() {
            Some(Evidence::Lives(record)) => {
                let follows = seen.followed.is_some() && seen.followed == record.leader.as_ref();
                if follows
                    && record == *seen.record
                    && let Some((_, followed)) = self.assigned.0.get_mut(&record)
                {
                    *followed = true;
                }
                (record, follows)
            }
            Some(Evidence::Hello(record, bound)) => {
                let waits = seen.leader.is_none() && record == *seen.record;
                if waits {
                    life.hold.taken = Some(record.clone());
                }
                (record, waits && bound)
            }
            None => return,
        };
        if binds && record == *seen.record {
            life.hold.bound_by = Some(record);
        }
    }
}

impl Life {
    /// P7: no node campaigns while it shows an assigned leader. Nodes that Hold binds do not campaign after the loss of that
    /// leader either, until a host allows it.
    pub(super) fn holds(&self, seen: &Seen<'_>) -> Checked {
        let campaigns = matches!(seen.role, RoleKind::PreCandidate | RoleKind::Candidate);
        if !campaigns || !seen.record.assigned {
            return Ok(());
        }
        let shown = seen.leader.is_some() && seen.leader == seen.record.leader.as_ref();
        ensure(!shown, "P7", || {
            format!(
                "{} campaigns beside the assigned {:?}",
                self.id, seen.leader
            )
        })?;
        let record = Some(seen.record);
        let bound = self.recovery == Recovery::Hold
            && self.hold.bound_by.as_ref() == record
            && self.hold.released_under.as_ref() != record;
        ensure(!bound, "P7", || {
            format!(
                "{} campaigns after the assigned {:?} was lost, and no host allowed it",
                self.id, seen.record.leader
            )
        })
    }
}

/// The record of an input whose leader is alive.
fn lives(input: &Input) -> Option<Record> {
    let names = |record: &Record, live: &Option<LiveLeader>| {
        // A weight of 0: no member has received from it under that record yet.
        live.as_ref()
            .is_some_and(|live| live.weight > 0 && record.leader.as_ref() == Some(&live.id))
    };
    let (record, lives) = match input {
        Input::LinkUp(link) => {
            let theirs = decoded::side(&link.theirs)?;
            let lives = names(&theirs.record, &theirs.live);
            (theirs.record, lives)
        }
        Input::Message { from, envelope } => match decoded::pulse(&envelope.message) {
            Some(Pulse::Leads { record, .. }) => {
                let lives = record.leader.as_ref() == Some(from);
                (record, lives)
            }
            Some(Pulse::Follows { record, live }) => (record, live),
            None => match decoded::election(&envelope.message)? {
                ElectionMessage::Nack { record, live }
                | ElectionMessage::VoteResponse { record, live, .. }
                | ElectionMessage::PreVoteResponse { record, live, .. } => {
                    let lives = names(&record, &live);
                    (record, lives)
                }
                ElectionMessage::ForeignSide { theirs, .. } => {
                    let lives = names(&theirs.record, &theirs.live);
                    (theirs.record, lives)
                }
                _ => return None,
            },
        },
        _ => return None,
    };
    lives.then_some(record)
}
