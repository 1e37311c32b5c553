//! Properties of a static quorum (C2): only its roster elects, no host assigns, and a voter whose state file is not the newest.
//!
//! **Promises for a voter v with an old file.** Two leaders x and y of one term need a voter that voted for both, since two
//! majorities of one roster share a voter. With its newest file no voter votes twice (P4), so each shared voter has forgotten its
//! vote for x. The members that know better are x itself, which received the raised write counter with the vote, and every member
//! that received that counter or a later one from v. y counts no vote that shows a smaller counter than y remembers, and the
//! first heartbeat of any of these members makes v notice. So v gives a second vote only while it has received from none of them
//! since it started, and y is none of them: no member that knew is present. C2 names this as an operator's error that no member
//! can detect. The checks excuse this case alone: a vote of a term that v has forgotten, before it has noticed ([`Life::vote`]),
//! and two leaders of that term that share only such voters ([`Elections::one`]). After the first heartbeat of a member that
//! knows, nothing is excused: v neither votes nor stands until it has received from all others, and then only above the largest
//! record among theirs.

use crate::decoded;
use std::collections::{BTreeMap, BTreeSet};

use room_core::election::raft::saved::Saved;
use room_core::election::raft::wire::{ElectionMessage, Pulse};
use room_core::election::record::{Record, Stamp};
use room_core::election::rules::{Campaign, RoleKind};
use room_core::id::PeerId;
use room_core::node::Output;
use room_core::quorum::Roster;

use super::{Checked, Checker, Life, Seen, Violation, ensure};

/// Votes of the processes of one place; all of its processes must keep them.
#[derive(Debug, Clone, Default)]
pub(super) struct Votes {
    /// Votes that other members received.
    pub(super) reported: BTreeMap<Stamp, PeerId>,
    /// Votes that the state file no longer contains.
    pub(super) forgotten: BTreeMap<Stamp, PeerId>,
    /// Terms whose vote a voter keeps for itself, because it may have given it earlier. They bind the processes whose file
    /// contains that; before the write they bind none.
    pub(super) spent: BTreeSet<Stamp>,
    /// Whether a process noticed that its file is not the newest, and none has received from all others since.
    noticed: bool,
    /// The largest stamp that others received, as far as the state file should contain it.
    newest: Stamp,
}

impl Votes {
    fn forget(&mut self, copy: Option<&Saved>) {
        let knows = |stamp: &Stamp, candidate: &PeerId| {
            copy.is_some_and(|copy| knows_vote(copy, stamp, candidate))
        };
        let reported = std::mem::take(&mut self.reported);
        let (kept, forgotten) = reported
            .into_iter()
            .partition(|(stamp, to)| knows(stamp, to));
        self.reported = kept;
        self.forgotten.append(&mut { forgotten });
        self.noticed = false;
        self.newest = copy
            .map(|copy| copy.record.stamp.clone())
            .unwrap_or_default();
    }

    /// A process of `me` starts with that file.
    pub(super) fn adopt_file(&mut self, me: &PeerId, file: Option<&Saved>) {
        self.spent
            .retain(|stamp| file.is_some_and(|file| knows_vote(file, stamp, me)));
    }

    pub(super) fn note(&mut self, stamp: &Stamp) {
        if *stamp > self.newest {
            self.newest = stamp.clone();
        }
    }
}

/// Whether a process with `file` gives no vote in the term of `stamp` except for `candidate`.
fn knows_vote(file: &Saved, stamp: &Stamp, candidate: &PeerId) -> bool {
    let given = file.voted_for.as_ref() == Some(candidate);
    *stamp < file.record.stamp || *stamp == file.record.stamp && given
}

/// State of a voter that has noticed that its file is not the newest.
#[derive(Debug, Default)]
pub(super) struct Noticed {
    /// Voters that it has received from since, and whether each of them has noticed the same.
    reports: BTreeMap<PeerId, bool>,
    /// The largest record among theirs.
    above: Stamp,
    /// Whether it has received from all of them.
    recovered: bool,
}

/// Winners of each (epoch, term), and their voters.
#[derive(Debug, Default)]
pub(super) struct Elections {
    leaders: BTreeMap<Stamp, Vec<(PeerId, BTreeSet<PeerId>)>>,
    /// Votes that were given twice while no member that knew was present.
    unseen: BTreeSet<(Stamp, PeerId)>,
}

impl Elections {
    pub(super) fn excuse(&mut self, voter: &PeerId, stamps: Vec<Stamp>) {
        let excused = stamps.into_iter().map(|stamp| (stamp, voter.clone()));
        self.unseen.extend(excused);
    }

    pub(super) fn unseen(&self) -> usize {
        self.unseen.len()
    }

    /// P1: one (epoch, term) has one elected leader in the whole room.
    pub(super) fn one(&mut self, record: &Record, won: Option<&Campaign>) -> Checked {
        let Some(leader) = &record.leader else {
            return Ok(());
        };
        let granted = won.map(|won| won.granted.clone()).unwrap_or_default();
        let known = self.leaders.entry(record.stamp.clone()).or_default();
        for (other, voters) in known.iter().filter(|(other, _)| other != leader) {
            let mut both = voters.intersection(&granted);
            let mut seen = both.clone();
            let unseen =
                |voter: &PeerId| self.unseen.contains(&(record.stamp.clone(), voter.clone()));
            let excused = both.next().is_some() && seen.all(unseen);
            ensure(excused, "P1", || {
                format!(
                    "{other} and {leader} were both elected in {:?}",
                    record.stamp
                )
            })?;
        }
        known.push((leader.clone(), granted));
        Ok(())
    }
}

/// State files.
impl Checker {
    /// No process runs in the place, and its state file is replaced.
    pub fn disk_replaced(&mut self, slot: usize, copy: Option<&Saved>) {
        self.pasts.entry(slot).or_default().forget(copy);
    }

    /// A node reports that its state file is not the newest.
    pub fn noticed(&mut self, slot: usize) {
        if let Some(life) = self.lives.get_mut(&slot) {
            life.noticed = Some(Noticed::default());
        }
    }

    /// The node's write after that report is on disk: its next processes must follow it, too.
    pub fn noticed_for_good(&mut self, slot: usize) {
        if let Some(life) = self.lives.get_mut(&slot) {
            let waits = life.noticed.as_ref();
            life.past.noticed = waits.is_some_and(|noticed| !noticed.recovered);
        }
    }

    /// Whether it has reported that.
    pub fn has_noticed(&self, slot: usize) -> bool {
        let life = self.lives.get(&slot);
        life.is_some_and(|life| life.noticed.is_some())
    }

    /// A node received from a voter with a record of that stamp; `others` are all voters but the node. Returns whether it knows
    /// enough now to vote again.
    pub fn receive_report(
        &mut self,
        slot: usize,
        from: &PeerId,
        stamp: &Stamp,
        stale: bool,
        others: &[PeerId],
    ) -> bool {
        let Some(life) = self.lives.get_mut(&slot) else {
            return false;
        };
        let Some(noticed) = &mut life.noticed else {
            return false;
        };
        if noticed.recovered {
            return false;
        }
        noticed.reports.insert(from.clone(), stale);
        if *stamp > noticed.above {
            noticed.above = stamp.clone();
        }
        let is_sure = |voter: &PeerId| noticed.reports.get(voter) == Some(&false);
        noticed.recovered = others.iter().all(is_sure);
        noticed.recovered
    }

    /// Second votes of a term, given while no member that knew of the first was present.
    pub fn unseen_votes(&self) -> usize {
        self.elections.unseen()
    }
}

impl Life {
    /// P3, P4: the file contains the statements of all earlier processes.
    pub(super) fn keeps_to_its_file(&self) -> Checked {
        let newest = &self.past.newest;
        ensure(self.record.stamp >= *newest, "P3", || {
            format!(
                "the file of {} knows {:?}, and others received {newest:?}",
                self.id, self.record.stamp
            )
        })
    }

    /// A voter that noticed an old file votes again once its processes together have received from all others.
    pub(super) fn speaks_as_a_voter(&self, stamp: &Stamp, message: &ElectionMessage) -> Checked {
        let votes = matches!(
            message,
            ElectionMessage::VoteResponse { granted: true, .. }
                | ElectionMessage::VoteRequest { .. }
        );
        let noticed = self.noticed.as_ref();
        let above = noticed.is_none_or(|noticed| *stamp > noticed.above);
        let recovered = noticed.is_none_or(|noticed| noticed.recovered);
        let knows = recovered && above && (noticed.is_some() || !self.past.noticed);
        ensure(!votes || knows, "P4", || {
            format!(
                "{} lost votes, has received {:?}, and votes in {stamp:?}",
                self.id,
                noticed.map(|noticed| &noticed.reports)
            )
        })
    }
}

/// Outputs of a node in a room with a roster: C2, P6.
pub(super) fn speaks(roster: &Roster, id: &PeerId, output: &Output) -> Checked {
    let Output::Transmit { envelope, .. } = output else {
        return Ok(());
    };
    let message = decoded::election(&envelope.message);
    let epoch = decoded::stamp(&envelope.message).unwrap_or_default().epoch;
    let assigns = epoch.assigner.is_some()
        || epoch.override_seq > 0
        || matches!(message, Some(ElectionMessage::LeaderAssign { .. }));
    ensure(!assigns, "roster", || format!("{id} assigns: {message:?}"))?;
    let votes = matches!(
        message,
        Some(
            ElectionMessage::VoteResponse { granted: true, .. }
                | ElectionMessage::PreVoteResponse { granted: true, .. }
                | ElectionMessage::VoteRequest { .. }
                | ElectionMessage::PreVoteRequest { .. }
        )
    );
    ensure(!votes || roster.contains(id), "P6", || {
        format!("{id} is not on the roster and sends {message:?}")
    })?;
    let weight = match decoded::pulse(&envelope.message) {
        Some(Pulse::Leads { weight, .. }) => weight as usize,
        _ => 0,
    };
    ensure(weight <= roster.len(), "P6", || {
        format!("{id} counts {weight} of {} voters", roster.len())
    })
}

/// State of a node in a room with a roster: C2, P6.
pub(super) fn shows(roster: &Roster, id: &PeerId, seen: &Seen<'_>) -> Checked {
    let epoch = &seen.record.stamp.epoch;
    let assigned = seen.record.assigned || epoch.assigner.is_some() || epoch.override_seq > 0;
    ensure(!assigned, "roster", || {
        format!("{id} goes by an assignment: {:?}", seen.record)
    })?;
    let stands = seen.role != RoleKind::Follower;
    ensure(!stands || roster.contains(id), "P6", || {
        format!("{id} is not on the roster and is {:?}", seen.role)
    })?;
    let leader = seen.record.leader.as_ref();
    let outsider = leader.filter(|leader| !roster.contains(leader));
    ensure(outsider.is_none(), "P6", || {
        format!("{id} goes by {outsider:?}, which is not on the roster")
    })
}

/// P5, P6: a leader's votes are a majority of the roster, whatever majority its campaign claims.
pub(super) fn elected(roster: &Roster, record: &Record, won: &Campaign) -> Result<(), Violation> {
    let counted: Vec<&PeerId> = won.granted.iter().collect();
    let strangers = counted.iter().filter(|voter| !roster.contains(voter));
    ensure(strangers.count() == 0, "P6", || {
        format!("{record:?} counts {counted:?}")
    })?;
    ensure(counted.len() >= roster.majority(), "P5", || {
        format!("{record:?} has {counted:?} of {} voters", roster.len())
    })
}
