//! Counts of rare situations: a promise that was kept where none of them came up shows nothing.
//!
//! All counts come from outside: a member's inputs, its outputs, and what it shows before and after.

use std::collections::{BTreeMap, BTreeSet};

use room_core::id::PeerId;
use room_core::time::Time;
use room_state::ballot::{Ballot, History, MemberId};
use room_state::limits::SET_ASIDE_AFTER;
use room_state::replica::{Input, Output, Quorum, Replica};
use room_state::wire::{Frame, Tip};

use crate::counters;

counters! {
    /// See the module's text.
    Sometimes:
    /// A leader of a dynamic room went on without a majority of the roster.
    forks,
    /// A leader opened again while the election named it all the time.
    openings_in_place,
    /// Two led sides met, and a member opened that had led neither.
    third_leaders_in_merges,
    /// A process without any log linked itself to a leader that gathered, and answered it.
    newcomers_during_openings,
    /// A leader opened in a log whose roster does not name it.
    leaders_not_on_the_roster,
    /// A member showed the newest log, and its entries did not come.
    tips_set_aside,
    /// Every voter of a static room had started anew, and one of them opened in the room's history.
    all_voters_restarted,
    /// A majority of the voters had lost what they held, all answered, and a new history began.
    static_histories_begun,
    /// A fixed host that had started anew opened in the history of its former process.
    fixed_hosts_restarted,
    /// A member asked a host for a snapshot that said nothing, and then another one.
    silent_snapshot_hosts,
    /// A host's next action was no longer in its member's tail.
    tails_overrun,
    /// The last number of an author was forgotten.
    rows_dropped;
    members: BTreeMap<usize, Watched>,
    /// Members that have asked a silent host for a snapshot, and not yet another one.
    asked_in_vain: BTreeSet<PeerId>,
}

/// A member as it was seen last.
#[derive(Debug, Clone, Default)]
struct Watched {
    leads: Option<Ballot>,
    gathering: Option<Gathering>,
    adopted: Option<Ballot>,
    index: u64,
    /// Processes whose last numbers were in the log.
    authors: BTreeSet<MemberId>,
}

/// An opening under way.
#[derive(Debug, Clone)]
struct Gathering {
    ballot: Ballot,
    /// The end of the member's own log when it began.
    own: Option<Shown>,
    answers: BTreeMap<PeerId, Option<Shown>>,
    /// Peers whose links came up meanwhile.
    newcomers: BTreeSet<PeerId>,
    /// The member whose log is on its way, and when something came last.
    fetches: Option<(PeerId, Time)>,
}

/// The history of a log, and the ballot of its last entry.
type Shown = (History, Ballot);

fn shown(tip: &Tip) -> Option<Shown> {
    Some((tip.history?, tip.last.clone()?.ballot))
}

impl Gathering {
    /// Whether several led sides met, none of them led by this member.
    fn is_led_by_a_third(&self) -> bool {
        let mut sides: BTreeMap<History, &Ballot> = BTreeMap::new();
        for (history, ballot) in self.answers.values().chain([&self.own]).flatten() {
            let newest = sides.entry(*history).or_insert(ballot);
            *newest = ballot.max(newest);
        }
        let is_led_by_another = |ballot: &&Ballot| ballot.leader.peer != self.ballot.leader.peer;
        sides.len() > 1 && sides.values().all(is_led_by_another)
    }
}

impl Sometimes {
    /// The member's process is over.
    pub(crate) fn forget(&mut self, index: usize) {
        self.members.remove(&index);
    }

    /// A member is about to take an input. Its host may be one that provides nothing.
    pub(crate) fn note_input(
        &mut self,
        index: usize,
        now: Time,
        input: &Input,
        provides_nothing: bool,
    ) {
        if let Input::Frame { from, frame, .. } = input
            && matches!(frame, Frame::Want { .. })
            && provides_nothing
        {
            self.asked_in_vain.insert(from.clone());
        }
        let watched = self.members.entry(index).or_default();
        let Some(gathering) = &mut watched.gathering else {
            return;
        };
        match input {
            Input::Linked(linked) => {
                gathering.newcomers.insert(linked.member.peer.clone());
            }
            Input::Lost(peer) => {
                gathering.answers.remove(peer);
                gathering.fetches.take_if(|(holder, _)| holder == peer);
            }
            Input::Frame { from, frame, .. } => match frame {
                Frame::Tip(tip) if tip.answers.as_ref() == Some(&gathering.ballot) => {
                    let is_new = tip.history.is_none() && gathering.newcomers.remove(from);
                    self.newcomers_during_openings += u64::from(is_new);
                    gathering.answers.insert(from.clone(), shown(tip));
                }
                Frame::Entries { .. } | Frame::Tables { .. } => {
                    if let Some((holder, heard_at)) = &mut gathering.fetches
                        && holder == from
                    {
                        *heard_at = now;
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// A member has an output.
    pub(crate) fn note_output(
        &mut self,
        index: usize,
        now: Time,
        replica: &Replica,
        output: &Output,
    ) {
        let Output::Send { to, frame } = output else {
            return;
        };
        let watched = self.members.entry(index).or_default();
        match (frame, &mut watched.gathering) {
            (Frame::Want { .. }, _) if self.asked_in_vain.remove(&replica.me().peer) => {
                self.silent_snapshot_hosts += 1;
            }
            (Frame::Fetch { .. }, Some(gathering)) => gathering.fetches = Some((to.clone(), now)),
            _ => {}
        }
    }

    /// A member after an event. `all_restarted`: each member has started anew.
    pub(crate) fn look(&mut self, index: usize, now: Time, replica: &Replica, all_restarted: bool) {
        let mut watched = self.members.remove(&index).unwrap_or_default();
        let leads = replica.leads();
        if leads.is_some() && leads != watched.leads.as_ref() {
            let gathering = watched.gathering.take();
            self.note_opening(replica, gathering.as_ref(), all_restarted);
        }
        if watched.leads.is_some() && replica.gathers().is_some() {
            self.openings_in_place += 1;
        }
        if let Some(gathering) = &mut watched.gathering
            && let Some((_, heard_at)) = &gathering.fetches
            && now.since(*heard_at) >= SET_ASIDE_AFTER
        {
            self.tips_set_aside += 1;
            gathering.fetches = None;
        }
        self.note_rows(&mut watched, replica);
        watched.leads = leads.cloned();
        watched.gathering = replica.gathers().map(|ballot| {
            let present = watched.gathering.take();
            let present = present.filter(|gathering| gathering.ballot == *ballot);
            present.unwrap_or_else(|| Gathering {
                ballot: ballot.clone(),
                own: replica
                    .history()
                    .zip(replica.tables().last().map(|last| last.ballot.clone())),
                answers: BTreeMap::new(),
                newcomers: BTreeSet::new(),
                fetches: None,
            })
        });
        self.members.insert(index, watched);
    }

    fn note_opening(
        &mut self,
        replica: &Replica,
        gathering: Option<&Gathering>,
        all_restarted: bool,
    ) {
        let (me, tables) = (replica.me(), replica.tables());
        let is_static = matches!(replica.settings().quorum, Quorum::Static(_));
        let third = gathering.is_some_and(Gathering::is_led_by_a_third);
        self.third_leaders_in_merges += u64::from(third);
        match (is_static, tables.is_exclusive()) {
            (false, false) => self.forks += 1,
            (true, false) => self.static_histories_begun += 1,
            (true, true) => self.all_voters_restarted += u64::from(all_restarted),
            (false, true) => {
                let is_on_roster = tables.roster().contains(me);
                self.leaders_not_on_the_roster += u64::from(!is_on_roster);
            }
        }
        let is_former = |ballot: &Ballot| ballot.leader.peer == me.peer && ballot.leader != *me;
        let mut openings = tables.openings();
        let is_restarted = openings.any(|opening| is_former(&opening.ballot));
        self.fixed_hosts_restarted += u64::from(replica.settings().is_fixed_host && is_restarted);
    }

    /// A row goes with an entry, and not with the log that another one replaces.
    fn note_rows(&mut self, watched: &mut Watched, replica: &Replica) {
        let tables = replica.tables();
        if watched.adopted.as_ref() == replica.adopted() && watched.index < replica.index() {
            let before = watched.authors.len();
            let is_kept = |author: &MemberId| tables.last_number(author).is_some();
            watched.authors.retain(is_kept);
            self.rows_dropped += (before - watched.authors.len()) as u64;
        }
        if watched.adopted.as_ref() != replica.adopted() {
            watched.authors.clear();
            watched.adopted = replica.adopted().cloned();
        }
        watched.index = replica.index();
        for member in tables.members() {
            if !watched.authors.contains(member) {
                watched.authors.insert(member.clone());
            }
        }
    }
}
