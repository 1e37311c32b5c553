//! Hold: after the loss of a leader that `SetLeader` named, members wait for a host (C4.5).
//!
//! Hold binds a node under one record only. That is the record under which the node followed the named leader, or the
//! record that it adopted, while it had no leader, from the Hellos of others, one of which Hold binds already. So some
//! member followed the leader under it: a room does not wait for a host because of a target that no member ever heard.
//! A node campaigns instead if it made the assignment, or gave up a living leader for it, and never heard the named
//! leader. Otherwise one call that named a dead member would silence a healthy room. The named member itself campaigns,
//! too.

use super::{ElectionInput, InputOf, Raft, Recovery, View};
use crate::election::raft::wire::{ElectionMessage, LiveLeader, Pulse};
use crate::election::record::Record;
use crate::id::PeerId;

/// An assigned record in an input. Hold may bind under it afterwards.
#[derive(Debug)]
pub(super) enum Sighting {
    /// The sender leads under it, or vouches for its leader.
    Lives(Record),
    /// A Hello names no living leader, and this node knows none. The flag is whether Hold binds the sender.
    Hello(Record, bool),
}

/// The records that decide whether Hold binds a node.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// The assigned record under which Hold binds when its leader is lost.
    under: Option<Record>,
    /// The record that this node adopted from a Hello while it had no leader.
    taken: Option<Record>,
    /// The record under which the host has allowed elections since.
    released_under: Option<Record>,
}

impl Raft {
    /// Whether this node waits for a host instead of an election.
    pub(super) fn is_held(&self) -> bool {
        let record = Some(self.rules.record());
        self.config.recovery == Recovery::Hold
            && self.held.under.as_ref() == record
            && self.held.released_under.as_ref() != record
    }

    /// Whether this node leads under an assignment that members with its own setting hold after its loss.
    pub(super) fn leaves_a_held_place(&self) -> bool {
        self.rules.record().assigned && self.config.recovery == Recovery::Hold
    }

    /// The host allows elections: for good under the present record.
    pub(super) fn release(&mut self) {
        self.held.released_under = Some(self.rules.record().clone());
    }

    /// The sighting of an assigned leader in `input`, before this node handles it.
    pub(super) fn sighting(&self, view: &View, input: &InputOf<Self>) -> Option<Sighting> {
        if let Some(record) = living(input) {
            let is_news = record.assigned && self.held.under.as_ref() != Some(record);
            return is_news.then(|| Sighting::Lives(record.clone()));
        }
        let ElectionInput::PeerUp { ours, theirs, .. } = input else {
            return None;
        };
        // If this incarnation has met no peer, the record can only mean an earlier one.
        let names_this_incarnation = theirs.record.leader.as_ref() == Some(&self.me) && !ours.lone;
        let record = &theirs.record;
        let takes = self.rules.is_newer(record) || self.held.taken.as_ref() == Some(record);
        let may_bind = record.assigned && takes && self.shows_no_leader(view);
        let binds_it = theirs.hold_binds;
        (may_bind && !names_this_incarnation).then(|| Sighting::Hello(record.clone(), binds_it))
    }

    /// Whether Hold binds members with that setting that adopt the present record from this node (C4.5).
    pub(super) fn propagates_hold(&self) -> bool {
        self.held.under.as_ref() == Some(self.rules.record())
    }

    /// Keeps the record if the input made this node follow its leader, or wait for it without a leader.
    pub(super) fn note_sighting(&mut self, view: &View, sighting: Sighting) {
        let (record, binds) = match sighting {
            Sighting::Lives(record) => {
                let binds = self.followed().is_some() && self.followed() == record.leader.as_ref();
                (record, binds)
            }
            Sighting::Hello(record, binds_it) => {
                let waits = self.shows_no_leader(view) && record == *self.rules.record();
                if waits {
                    self.held.taken = Some(record.clone());
                }
                (record, waits && binds_it)
            }
        };
        if record.assigned && binds && record == *self.rules.record() {
            self.held.under = Some(record);
            if self.shows_no_leader(view) && self.is_held() {
                self.abandon_round(); // it did not know that others wait
            }
        }
    }

    /// The leader whose heartbeats arrive here, or for which others vouch; not an assigned one that it only waits for.
    /// For checks, too.
    pub fn followed(&self) -> Option<&PeerId> {
        let direct = self.direct().map(|direct| &direct.leader);
        direct.or_else(|| Some(&self.role.named()?.leader))
    }
}

/// The record whose leader lives, according to the sender.
fn living(input: &InputOf<Raft>) -> Option<&Record> {
    let of_live = |record: &Record, live: &Option<LiveLeader>| {
        let direct = live.as_ref().filter(|live| live.weight > 0);
        let live = direct.map(|live| &live.id);
        live.is_some() && live == record.leader.as_ref()
    };
    let (record, lives) = match input {
        ElectionInput::Pulse { from, pulse } => match &pulse.pulse {
            Pulse::Leads { record, .. } => (record, record.leader.as_ref() == Some(from)),
            Pulse::Follows { record, live } => (record, *live),
        },
        ElectionInput::Message { message, .. } => match &message.message {
            ElectionMessage::PreVoteResponse { record, live, .. }
            | ElectionMessage::VoteResponse { record, live, .. }
            | ElectionMessage::Nack { record, live } => (record, of_live(record, live)),
            ElectionMessage::ForeignSide { theirs, .. } => {
                (&theirs.record, of_live(&theirs.record, &theirs.live))
            }
            _ => return None,
        },
        ElectionInput::PeerUp { theirs, .. } => {
            (&theirs.record, of_live(&theirs.record, &theirs.live))
        }
        _ => return None,
    };
    lives.then_some(record)
}
