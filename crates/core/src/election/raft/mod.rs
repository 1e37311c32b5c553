//! The default strategy: votes of the connected peers, in terms, with the guards that a real room needs.
//!
//! `rules` decides what is allowed; this file decides when. `docs/elections.md` explains the record and the guards (G1
//! to G17) that comments here name.

use std::collections::{BTreeSet, VecDeque};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::bound::WallClock;
use super::namesakes::{NamedLeader, Namesakes};
use super::record::Record;
use super::rules::Rules;
use super::{
    AssignOutcome, Description, DownReason, Election, ElectionConfig, ElectionError, ElectionInput,
    ElectionOutput, Extra, InputOf, InvalidSavedState, LeaderReason, Leadership, Local, OutputOf,
    Recovery, Start, View, Voter,
};
mod assign;
mod campaign;
mod departed;
mod durable;
mod following;
mod heartbeats;
mod hold;
mod memory;
mod merge;
mod messages;
mod namesakes;
mod quorum;
mod reason;
mod role;
mod round_trips;
pub mod saved;
mod standing;
mod timers;
mod transfer;
mod votes;
pub mod wire;

use crate::election::policy::{Authority, HostMode};
use crate::id::{Fingerprint, Incarnation, PeerId};
use crate::time::{Duration, Time};
use assign::Assigning;
use departed::Departures;
use durable::Disk;
use following::Following;
use hold::{Held, Sighting};
use memory::Stale;
use reason::Hints;
use role::Role;
use saved::Saved;
use standing::{clamp_millis, millis};
use transfer::Transfers;
use wire::{Beat, Pulse, Side, Stamped};

/// Shortest time for which a lone peer's silence must last to count as consent (G3).
const MIN_VETO_WINDOW: Duration = Duration::from_millis(100);
/// Narrowest slot of a rank (G13).
const MIN_SLOT: Duration = Duration::from_millis(50);
/// Spread of the retry after a failed round, at least (G14).
const MIN_RETRY_SPREAD: Duration = Duration::from_millis(300);
/// Time for which the other voters leave a leaving leader's successor alone. Also the range in which the voters have their
/// slots after a leader whose end is known (G1, G13).
const SUCCESSION_GRACE: Duration = Duration::from_millis(300);
/// Number of times that a leader goes above one rival by weight and time; then the larger id stays.
const MAX_CONTESTS: u32 = 2;

/// The voters that could elect the last leader, or follow it. A majority of them proves that it no longer leads a
/// majority.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Electors {
    /// No leader has been known here.
    None,
    /// The number of voters besides `leader`, when it was last heard.
    Of { leader: PeerId, count: usize },
    /// The last leader yielded to another, or only other members name it: the number of its followers is unknown.
    Unknown,
}

/// A node of the raft strategy.
#[derive(Debug)]
pub struct Raft {
    me: PeerId,
    key: Fingerprint,
    incarnation: Incarnation,
    config: ElectionConfig,
    /// The wall clock, which bounds the counters of others.
    clock: WallClock,
    rng: ChaCha8Rng,
    rules: Rules,
    role: Role,
    /// End of the lease: until then this node refuses votes, because it heard a leader directly (G4).
    lease_until: Time,
    /// The time at which to campaign, if nothing is heard.
    election_at: Time,
    transfers: Transfers,
    /// The leader that this node showed after the last input. `reason` is the reason for that choice.
    shown: Option<PeerId>,
    reason: LeaderReason,
    /// The last time at which a leader was known here, this node included.
    led_until: Time,
    /// The time of the last input.
    at: Time,
    hints: Hints,
    /// The peer whose message or link is being handled.
    speaker: Option<PeerId>,
    /// The amount by which round trips lengthen the election timeouts (G15).
    stretch: Duration,
    /// The time from which a node that never followed a leader votes (G9).
    grace_until: Time,
    has_followed: bool,
    electors: Electors,
    /// Whether the leader that is shown is held ([`View::held`]) since an earlier input.
    holds_leader: bool,
    /// Whether the leader that is shown is in doubt ([`View::doubted`]).
    doubts_leader: bool,
    /// Whether this node has let a preferred peer try its election since a leader was heard (G13).
    yielded: bool,
    /// Whether no peer was ever linked.
    lone: bool,
    held: Held,
    auto_election: bool,
    leaving: bool,
    assigning: Assigning,
    departures: Departures,
    namesakes: Namesakes,
    /// The last leader, with its incarnation, that this node believed in on others' reports.
    believed: Option<(PeerId, Incarnation)>,
    /// The last leader that was lost by silence, and when: here, or at the member that vouched for it last.
    fell_silent: Option<(PeerId, Time)>,
    /// The last leader, with its incarnation, whose port was found closed here, and when.
    refused: Option<(PeerId, Incarnation, Time)>,
    /// The last request for a pre-vote, if the lease forbade to grant it.
    refused_pre_vote: Option<votes::RefusedPreVote>,
    outputs: VecDeque<OutputOf<Self>>,
    /// The state on disk, where term and vote survive the process.
    disk: Option<Disk>,
    /// Set where term and vote should have survived the process, but did not.
    stale: Option<Stale>,
    /// Linked voters that report the loss of their votes.
    forgetful: BTreeSet<PeerId>,
    /// The other voters that have reported to this incarnation what they remember of this node.
    reported_by: BTreeSet<PeerId>,
}

impl Raft {
    /// A node that starts now, with the state that the incarnation before it stored.
    ///
    /// # Errors
    /// [`InvalidSavedState`].
    pub(super) fn start(now: Time, start: Start) -> Result<Self, InvalidSavedState> {
        let mut start = start.decoded()?;
        start.saved = Some(Saved::of_next_incarnation(start.saved));
        Ok(Self::new(now, start))
    }

    /// A node that starts now. With a static quorum its state is on disk already.
    fn new(now: Time, start: Start<Saved>) -> Self {
        let Start {
            me,
            key,
            incarnation,
            mut config,
            saved,
            clock,
            seed,
        } = start;
        config.eligible &= config.quorum.admits(&me);
        if config.policy.authority == Authority::LeaderOnly {
            // C4.5: no member could call SetLeader then, which alone ends a Hold.
            config.recovery = Recovery::AutoElect;
        }
        let mut rules = Rules::new(me.clone(), config.quorum.clone(), config.guards).with_key(key);
        let keeps_votes = config.quorum.is_static() && config.guards.persistence();
        let saved = saved.filter(|_| keeps_votes);
        if let Some(saved) = &saved {
            // This node's own record is not checked against the clock.
            rules.restore(saved.record.clone(), saved.voted_for.clone());
        }
        let stale = saved.as_ref().and_then(|saved| saved.forgotten);
        let stale = stale.map(|_| Stale::default());
        let first = || Saved::of_next_incarnation(None);
        let disk = keeps_votes.then(|| Disk::new(saved.unwrap_or_else(first)));
        // A restarted voter knows its votes, but not whom it heard. It waits for as long as a lease lasts.
        let grace = if keeps_votes {
            config.election_timeout_min
        } else {
            config.election_timeout_max
        };
        let mut raft = Self {
            rules,
            me,
            key,
            incarnation,
            rng: ChaCha8Rng::seed_from_u64(seed),
            role: Role::default(),
            lease_until: now,
            election_at: now,
            transfers: Transfers::default(),
            shown: None,
            reason: LeaderReason::None,
            led_until: now,
            at: now,
            hints: Hints::default(),
            speaker: None,
            stretch: Duration::ZERO,
            grace_until: now + grace,
            has_followed: false,
            electors: Electors::None,
            holds_leader: false,
            doubts_leader: false,
            yielded: false,
            lone: true,
            held: Held::default(),
            auto_election: config.auto_election,
            leaving: false,
            assigning: Assigning::default(),
            departures: Departures::default(),
            namesakes: Namesakes::default(),
            believed: None,
            fell_silent: None,
            refused: None,
            refused_pre_vote: None,
            outputs: VecDeque::new(),
            disk,
            stale,
            forgetful: BTreeSet::new(),
            reported_by: BTreeSet::new(),
            clock,
            config,
        };
        raft.arm_election(now, &View::default());
        if raft.config.leads_at_once() {
            // Alone, and the only voter that a room with a fixed host will ever have.
            raft.begin_input(now);
            raft.campaign(now, &View::default(), None);
            raft.note_leader(now);
        }
        raft
    }

    /// Whether this node is the room's fixed host.
    fn is_host(&self) -> bool {
        self.config.policy.host_mode == HostMode::Host && self.config.eligible
    }

    /// The record under which this node leads, on disk or not; for checks.
    pub fn leads_under(&self) -> Option<&Record> {
        self.leading().map(|leader| &leader.record)
    }

    /// Whether this node may have forgotten votes, and neither votes nor leads; for checks.
    pub fn is_stale(&self) -> bool {
        self.stale.is_some()
    }

    /// The state without a clock, for checks.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }
}

impl Election for Raft {
    type Message = Stamped;
    type Pulse = Beat;
    type Hello = Side;
    type Token = Record;

    fn handle(
        &mut self,
        now: Time,
        view: &View,
        input: InputOf<Self>,
    ) -> Result<(), ElectionError> {
        self.begin_input(now);
        self.speaker = sender_of(&input).cloned();
        self.end_lapsed_leadership(now, view);
        let sighting = self.sighting(view, &input);
        let result = self.apply(now, view, input);
        if let Some(sighting) = sighting {
            self.note_sighting(view, sighting);
        }
        self.end_input(now, view);
        result
    }

    fn poll_output(&mut self) -> Option<OutputOf<Self>> {
        let mut output = self.next_output();
        if let Some(ElectionOutput::Send { message, .. }) = &mut output {
            message.writes = self.writes();
        }
        output
    }

    fn next_deadline(&self) -> Option<Time> {
        let election_at = self.awaits_election().then_some(self.election_at);
        [
            self.role.deadline(),
            self.assigning.deadline(),
            self.transfers.deadline(),
            self.leads_until(),
            election_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn leadership(&self) -> Leadership<'_> {
        Leadership {
            leader: self.leader(),
            leader_key: self.role.named_or_awaited().and_then(|named| named.key),
            is_vouched_for: self.role.vouchers().is_some_and(|of| !of.is_empty()),
            reason: self.reason,
            record: self.rules.record(),
            valid_until: self.leads_until(),
        }
    }

    fn role(&self) -> super::Role {
        match self.role {
            Role::Follower(_) => super::Role::Follower,
            Role::PreCandidate(_) => super::Role::PreCandidate,
            Role::Candidate(_) => super::Role::Candidate,
            Role::Leader(_) => super::Role::Leader,
        }
    }

    fn voted_for(&self) -> Option<&PeerId> {
        self.rules.voted_for()
    }

    fn admits(&self, peer: &PeerId, key: Fingerprint) -> bool {
        self.key_of(peer).is_none_or(|voter| voter == key)
    }

    fn leader_token(&self) -> Option<Record> {
        let safe = |record: &&Record| *record <= self.safe_record();
        self.leads_under().filter(safe).cloned()
    }

    fn followed_token(&self) -> Record {
        self.rules.record().clone()
    }

    fn pulse(&self, now: Time, view: &View, to: &PeerId) -> Beat {
        Beat {
            writes: self.writes(),
            pulse: self.own_pulse(now, view),
            memory: self.memory_of_voter(view, to),
        }
    }

    fn hello(&self, now: Time, view: &View, asked: Time) -> Side {
        let mut side = self.side(now, view);
        if let Some(live) = &mut side.live {
            live.led_ms = live.led_ms.saturating_sub(millis(now.since(asked)));
        }
        side
    }

    fn named_in(&self, hello: &Side) -> Option<NamedLeader> {
        let live = hello.live.as_ref()?;
        Some((live.id.clone(), live.key))
    }

    fn names(&self, peer: &PeerId) -> Option<&NamedLeader> {
        self.namesakes.names(peer)
    }

    fn moves_to(&self, view: &View) -> Option<(&PeerId, Fingerprint)> {
        self.mover_to(view)
    }

    fn successor(&self, view: &View) -> Option<PeerId> {
        if let Some(transfer) = &self.leading()?.pending_transfer {
            return Some(transfer.target.clone());
        }
        // Under Hold no member takes over from an assigned leader by itself.
        let elects = !self.leaves_a_held_place();
        elects.then(|| self.best_ranked(view)).flatten()
    }

    /// Where only the leader may assign, this node waits for the assigner's own message.
    fn adopt_followed(
        &mut self,
        now: Time,
        view: &View,
        record: Record,
    ) -> Result<(), ElectionError> {
        let record = &self.heed(now, &record)?;
        let names_me = record.assigned && self.names_me(record);
        if names_me && self.config.policy.authority == Authority::Anyone && !self.is_fixed() {
            self.begin_input(now);
            self.adopt_assignment(now, view, record);
            self.note_leader(now);
        }
        Ok(())
    }

    fn may_supersede(&self, from: &PeerId, record: &Record) -> bool {
        record.leader.as_ref() == Some(from) && *record > *self.rules.record()
    }

    fn judge(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        record: &Record,
    ) -> Result<bool, ElectionError> {
        if record.leader.as_ref() != Some(from) {
            return Err(ElectionError::Violation(
                "a leader's message is stamped with another's record",
            ));
        }
        if self.names_another_key(view, from, record) {
            return Ok(false); // an earlier process with its id led under that record
        }
        let record = &self.heed(now, record)?;
        if self.rules.is_newer(record) && self.counts(view, from) {
            self.begin_input(now);
            self.receive_leader(now, view, from, record, 1, 0);
            self.note_sighting(view, Sighting::Lives(record.clone()));
            self.note_leader(now);
        }
        let known = self.rules.record();
        let is_it = known.leader.as_ref().is_none_or(|leader| leader == from);
        Ok(is_it && !self.names_another_key(view, from, known))
    }

    fn describe(message: &Stamped) -> Description {
        message.describe()
    }

    fn describe_pulse(beat: &Beat) -> Description {
        beat.describe()
    }
}

/// The sender of a message, or the peer of a new link.
fn sender_of(input: &InputOf<Raft>) -> Option<&PeerId> {
    match input {
        ElectionInput::PeerUp { peer, .. } => Some(peer),
        ElectionInput::Message { from, .. } | ElectionInput::Pulse { from, .. } => Some(from),
        ElectionInput::Local(_) => None,
    }
}

/// Queries of this node's own state.
impl Raft {
    /// The leader that the host sees.
    fn leader(&self) -> Option<&PeerId> {
        if self.leads() {
            Some(&self.me)
        } else {
            self.role.shown()
        }
    }

    /// Whether the host sees no leader: none is known, or no path leads to it.
    fn shows_no_leader(&self, view: &View) -> bool {
        let key = self.role.named_or_awaited().and_then(|named| named.key);
        let has_path = |leader: &PeerId| match view.linked_key(leader) {
            _ if *leader == self.me => true,
            Some(linked) => key.is_none_or(|key| key == linked),
            None => self.role.vouchers().is_some_and(|of| !of.is_empty()),
        };
        !self.leader().is_some_and(has_path)
    }

    /// The write counter that this node shows with its votes and heartbeats.
    fn writes(&self) -> u64 {
        self.disk.as_ref().map_or(0, Disk::writes)
    }

    /// The key of the voter `peer`. No other peer may use its id.
    fn key_of(&self, peer: &PeerId) -> Option<Fingerprint> {
        let fixed = self.config.quorum.roster()?.key_of(peer);
        fixed.or_else(|| Some(self.disk.as_ref()?.known(peer)?.key))
    }

    fn own_pulse(&self, now: Time, view: &View) -> Pulse {
        let record = self.safe_record().clone();
        // A record that is not on disk yet is not claimed: until then the node keeps its previous role towards others.
        let claims = record
            .leader
            .as_ref()
            .is_none_or(|leader| *leader == self.me);
        match self.leading() {
            Some(leader) if claims => Pulse::Leads {
                record,
                weight: self.weight(now, view, leader),
                led_ms: millis(now.since(leader.since)),
                election_timeout_min_ms: clamp_millis(self.election_timeout_min()),
            },
            _ => Pulse::Follows {
                record,
                live: self.is_safe() && self.has_direct_leader(now, view),
            },
        }
    }

    fn side(&self, now: Time, view: &View) -> Side {
        let record = self.safe_record();
        let claims = self.is_safe() || self.leads_under() == Some(record);
        Side {
            record: record.clone(),
            live: self.live(now, view).filter(|_| claims),
            lone: self.lone,
            since: self
                .disk
                .as_ref()
                .map_or(0, |disk| self.knows_votes_since(disk)),
            hold_binds: self.propagates_hold(),
        }
    }
}

impl Raft {
    fn apply(&mut self, now: Time, view: &View, input: InputOf<Self>) -> Result<(), ElectionError> {
        match input {
            ElectionInput::PeerUp {
                peer,
                key,
                ours,
                mut theirs,
            } => {
                let named = theirs.live.as_ref().map(|live| (live.id.clone(), live.key));
                self.namesakes.note(now, &peer, named);
                let namesake = self.namesake(view, &theirs);
                let heeded = self
                    .heed_side(now, &mut theirs)
                    .and_then(|()| self.register_voter(now, view, &peer, key, theirs.since));
                if heeded.is_err() {
                    // The link stands, as if the Hello carried nothing. All later messages of the peer show the record
                    // that it follows.
                    theirs.record = Record::default();
                    theirs.live = None;
                }
                self.lone = false;
                self.note_believed(&peer);
                self.is_back(now, view, &peer);
                let ours = self.own_side_since(now, view, ours);
                match namesake {
                    Some(live) if heeded.is_ok() => self.compare_namesake(&ours, &theirs, live),
                    _ => self.meet(now, view, &peer, &ours, &theirs),
                }
                self.leader_was_found();
                self.voter_linked(now, view, &peer);
                self.assigning.is_due_to(&peer);
                heeded?;
            }
            ElectionInput::Message { from, message } => {
                let Stamped {
                    stamp,
                    writes,
                    message,
                } = message;
                self.writes_shown(now, view, &from, writes)?;
                self.check_stamp(now, &stamp)?;
                self.message(now, view, &from, &stamp, message)?;
            }
            ElectionInput::Pulse { from, pulse } => {
                let Beat {
                    writes,
                    pulse,
                    memory,
                } = pulse;
                self.writes_shown(now, view, &from, writes)?;
                self.note_named(now, view, &from, &pulse);
                let heeded = self.pulse_received(now, view, &from, pulse);
                if let Some(memory) = memory {
                    self.receive_memory(now, view, &from, memory)?;
                }
                heeded?;
            }
            ElectionInput::Local(input) => self.apply_local(now, view, input)?,
        }
        Ok(())
    }

    fn apply_local(&mut self, now: Time, view: &View, input: Local) -> Result<(), ElectionError> {
        match input {
            Local::Tick => self.tick(now, view),
            Local::PeerDown {
                peer,
                incarnation,
                why,
            } => self.peer_down(now, view, &peer, incarnation, why),
            Local::HeartbeatSent => {
                self.repeat_assignment();
                self.repeat_transfer();
            }
            Local::SetLeader { target } => self.set_leader(now, view, &target)?,
            Local::EnableAuto(enabled) => self.enable_auto(now, view, enabled),
            Local::Transfer { target } => self.transfer(now, view, target)?,
            Local::Leave => {
                self.leaving = true;
                self.abandon_round();
            }
            Local::SetEligible(eligible) => self.set_eligible(now, view, eligible),
            Local::SetPriority(priority) => self.config.priority = priority,
            Local::SetClock(clock) => self.clock = clock,
            // Everything else is repeated until it is answered.
            Local::Relinked { peer } => self.assigning.is_due_to(&peer),
            Local::PeerReached { peer, incarnation } => {
                self.departures.is_back(now, &peer, Some(incarnation));
            }
            Local::PeerEligible { peer } => {
                self.is_back(now, view, &peer);
                self.voter_linked(now, view, &peer);
            }
            Local::PeerIneligible {
                peer,
                incarnation,
                successor,
            } => self.peer_down(
                now,
                view,
                &peer,
                incarnation,
                DownReason::Left { successor },
            ),
        }
        Ok(())
    }

    /// Finishes every input.
    fn end_input(&mut self, now: Time, view: &View) {
        if let Some(leader) = self.leading_mut().filter(|leader| leader.window.is_new()) {
            leader.window.see(view);
        }
        self.end_request(now);
        self.note_leader(now);
        let shown = self.role.shown();
        self.holds_leader = shown.is_some_and(|leader| view.held_until(now, leader).is_some());
        self.doubts_leader &= self.is_in_doubt(view);
        self.check_role();
    }

    fn set_eligible(&mut self, now: Time, view: &View, eligible: bool) {
        if let Some(successor) = self.successor(view) {
            self.expect_successor(now, &successor);
        }
        self.config.eligible = eligible;
        if !eligible {
            self.forget_votes();
        }
        if !eligible && !self.follows() {
            self.become_follower(Following::None);
            self.hints.ended = Some(LeaderReason::Left);
        }
        self.arm_election(now, view);
    }
}

#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod tests;
