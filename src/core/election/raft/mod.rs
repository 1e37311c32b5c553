//! The default strategy: votes of the connected peers, in terms, with the guards that a real room needs.
//!
//! `rules` says what is allowed; this file says when. `docs/elections.md` explains the record and the guards
//! (G1 to G16) that comments here name.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::bound::WallClock;
use super::guards::Guards;
use super::record::{Record, Saved, Stamp};
use super::rules::{Role, Rules, Tally};
use super::{
    AssignOutcome, Election, ElectionError, ElectionInput, ElectionOutput, Gone, LeaderReason,
    View, Voter,
};
mod assign;
mod campaign;
mod durable;
mod hold;
mod memory;
mod merge;
mod messages;
mod quorum;
mod reason;
mod standing;
mod transfer;

use crate::core::id::{Fingerprint, Incarnation, PeerId};
use crate::core::quorum::Quorum;
use crate::core::time::{Duration, Time};
use crate::core::wire::{Authority, HostMode, Memory, MergePolicy, Pulse, Side};
use campaign::mean_rtt;
use durable::Disk;
use hold::Sighting;
use memory::Stale;
use quorum::Window;
use reason::Hints;
use standing::{clamp_millis, millis};
use transfer::{EarlyRequest, Handover, Heir, TransferRequest, best_ranked};

/// Assumed round trip of a link that is not measured yet.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);
/// Shortest time for which a lone peer's silence must last to count as consent (G3).
const MIN_VETO_WINDOW: Duration = Duration::from_millis(100);
/// Narrowest slot of a rank (G13).
const MIN_SLOT: Duration = Duration::from_millis(50);
/// Spread of the retry after a failed round, at least (G14).
const MIN_RETRY_SPREAD: Duration = Duration::from_millis(300);
/// How long the others leave a leaving leader's successor alone; also the spread of campaigns after a leader
/// whose end the transport reported (G1).
const SUCCESSION_GRACE: Duration = Duration::from_millis(300);
/// Times that `SetLeader` goes above a larger epoch that it meets.
const MAX_ASSIGN_RETRIES: u32 = 3;
/// Times that a leader goes above one rival by weight and time; then the larger id stays.
const MAX_CONTESTS: u32 = 2;
/// Departed lives that are remembered, and for how long: later nobody can believe in one any more.
const MAX_GONE: usize = 1024;
const GONE_IS_REMEMBERED: Duration = Duration::from_secs(10);

/// What happens when a leader that `SetLeader` named is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Nobody campaigns until `SetLeader` or `EnableAutoLeaderElection(1)`.
    Hold,
    /// The room elects.
    AutoElect,
}

/// Settings of the raft strategy.
#[derive(Debug, Clone)]
pub struct RaftConfig {
    /// Silence after which a leader is lost.
    pub heartbeat_timeout: Duration,
    /// Shortest election timeout; at least `heartbeat_timeout`.
    pub election_timeout_min: Duration,
    /// Longest election timeout; at least `election_timeout_min`.
    pub election_timeout_max: Duration,
    /// Who counts for a majority.
    pub quorum: Quorum,
    /// What is on disk under the name of this incarnation already, where the quorum is static. `None` is a first
    /// start.
    pub saved: Option<Saved>,
    /// Which guards hold: all of them, outside the laboratory.
    pub guards: Guards,
    /// Which leader stays when two sides meet.
    pub merge: MergePolicy,
    /// Who may call `SetLeader`.
    pub authority: Authority,
    /// Whether one fixed member leads, and which: it does from its start on, and gives way to nobody.
    pub host_mode: HostMode,
    /// What happens when an assigned leader is lost.
    pub recovery: Recovery,
    /// Whether this node campaigns by itself.
    pub auto_election: bool,
    /// Whether this node may vote and lead.
    pub eligible: bool,
    /// Its election priority; higher is preferred.
    pub priority: i32,
    /// What time it is, which bounds the counters of others.
    pub clock: WallClock,
}

/// Whom this node shows as leader, when it does not lead itself.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Following {
    /// Nobody.
    None,
    /// A peer whose heartbeats arrive here.
    Direct(Leadership),
    /// A leader that others named; believed until then.
    Indirect { leader: PeerId, until: Time },
    /// A leader that `SetLeader` named and that has not been heard yet.
    Awaited { leader: PeerId, until: Time },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Leadership {
    leader: PeerId,
    /// The record under which it was last heard to lead.
    record: Record,
    heard_at: Time,
    weight: u32,
    led_ms: u64,
}

impl Following {
    fn leader(&self) -> Option<&PeerId> {
        match self {
            Self::None => None,
            Self::Direct(leadership) => Some(&leadership.leader),
            Self::Indirect { leader, .. } | Self::Awaited { leader, .. } => Some(leader),
        }
    }

    fn is_direct(&self, peer: &PeerId) -> bool {
        matches!(self, Self::Direct(leadership) if leadership.leader == *peer)
    }
}

/// Who could elect the last leader, or follow it: a majority of those proves that it leads no majority any more.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Electors {
    /// No leader was ever known here.
    Nobody,
    /// So many besides `leader`, when it was last heard.
    Of { leader: PeerId, count: usize },
    /// The last leader gave way to another, or is only named by others: how many follow it is not known.
    Unknown,
}

/// What a leader keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reign {
    /// The record under which it leads, or led until it began to campaign in place.
    record: Record,
    since: Time,
    /// When each voter last showed that it goes by the present record.
    acks: BTreeMap<PeerId, Time>,
    /// Since when it campaigns in place, if it does.
    reterm_since: Option<Time>,
    /// The other leader that this one went above last, and how often in a row.
    rival: Option<(PeerId, u32)>,
    /// To whom it hands over.
    handover: Option<Handover>,
    window: Window,
}

impl Reign {
    fn new(now: Time, window: Duration) -> Self {
        Self {
            record: Record::default(),
            since: now,
            acks: BTreeMap::new(),
            reterm_since: None,
            rival: None,
            handover: None,
            window: Window::new(now, window),
        }
    }

    fn hands_over_to(&self, peer: &PeerId) -> bool {
        let handover = self.handover.as_ref();
        handover.is_some_and(|handover| handover.target == *peer)
    }

    fn contests_with(&self, rival: &PeerId) -> u32 {
        match &self.rival {
            Some((id, contests)) if id == rival => *contests,
            _ => 0,
        }
    }

    fn contest(&mut self, rival: PeerId) {
        let contests = self.contests_with(&rival) + 1;
        self.rival = Some((rival, contests));
    }
}

/// An incarnation of a peer that is linked no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Departed {
    /// Since when it is known to have ended: it left, was lost by its transport, or the peer has another incarnation. One
    /// that only fell silent may live on for others.
    ended_at: Option<Time>,
    /// Whether the peer was linked in another incarnation since.
    succeeded: bool,
}

impl Departed {
    /// Whether it ended, and others may not know it yet.
    fn is_gone(&self, now: Time) -> bool {
        self.ended_at
            .is_some_and(|at| now < at + GONE_IS_REMEMBERED)
    }
}

/// A `SetLeader` of this host that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Assignment {
    target: PeerId,
    record: Record,
    seq: u64,
    unacked: BTreeSet<PeerId>,
    retries: u32,
    deadline: Time,
    reported: bool,
}

/// See the module's text.
#[derive(Debug)]
pub struct Raft {
    me: PeerId,
    incarnation: Incarnation,
    config: RaftConfig,
    rng: ChaCha8Rng,
    rules: Rules,
    following: Following,
    reign: Option<Reign>,
    /// Votes are refused until then: a leader was heard directly (G4).
    lease_until: Time,
    /// When to campaign, if nothing is heard.
    election_at: Time,
    /// When the open round is repeated, or silence becomes consent.
    round_at: Option<Time>,
    /// The leader that asked for the open campaign: it left, or hands over.
    asked_by: Option<PeerId>,
    heir: Option<Heir>,
    early_request: Option<EarlyRequest>,
    /// Whom this node showed as leader after the last input, and why that one.
    shown: Option<PeerId>,
    reason: LeaderReason,
    /// When a leader was known to lead here last, this node included.
    led_until: Time,
    /// When the last input came.
    at: Time,
    hints: Hints,
    /// By how much round trips lengthen the election timeouts (G15).
    stretch: Duration,
    /// From then on a node that never followed a leader votes (G9).
    grace_until: Time,
    has_followed: bool,
    electors: Electors,
    /// Whether a preferred peer was given the time for its election since a leader was heard (G13).
    gave_way: bool,
    /// Whether a peer was ever linked.
    lone: bool,
    /// The assigned record under which Hold binds when its leader is lost (C4.5), and the one under which the host has
    /// allowed elections since.
    held_under: Option<Record>,
    released_under: Option<Record>,
    auto_election: bool,
    leaving: bool,
    /// The largest override number that was answered to an assignment of this node (C4.3). Those that it goes by are in
    /// its record.
    max_override_seq: u64,
    assignments: u64,
    assignment: Option<Assignment>,
    gone: BTreeMap<(PeerId, Incarnation), Departed>,
    outputs: VecDeque<ElectionOutput>,
    /// Only where term and vote survive the process.
    disk: Option<Disk>,
    /// Where they should have, but did not.
    stale: Option<Stale>,
    /// The other voters that have said in this incarnation what they remember of this one.
    told_by: BTreeSet<PeerId>,
    /// A `SetLeader` of this host that the leader of a static quorum was asked for.
    request: Option<TransferRequest>,
    requests: u64,
}

impl Raft {
    /// A node that starts now.
    pub fn new(
        me: PeerId,
        incarnation: Incarnation,
        mut config: RaftConfig,
        seed: u64,
        now: Time,
    ) -> Self {
        if config.authority == Authority::LeaderOnly {
            // C4.5: nobody could call SetLeader then, which alone ends a Hold.
            config.recovery = Recovery::AutoElect;
        }
        let mut rules = Rules::new(me.clone(), config.quorum.clone(), config.guards);
        let keeps_votes = config.quorum.is_static() && config.guards.persistence;
        let saved = config.saved.take().filter(|_| keeps_votes);
        if let Some(saved) = &saved {
            // What this node holds itself is not checked against the clock.
            rules.restore(saved.record.clone(), saved.voted_for.clone());
        }
        let stale = saved.as_ref().and_then(|saved| saved.forgotten);
        let stale = stale.map(|_| Stale::default());
        let first = || Saved::of_next_incarnation(None, incarnation);
        let disk = keeps_votes.then(|| Disk::new(saved.unwrap_or_else(first)));
        // A voter that knows its votes, but not whom it heard before it was restarted, waits for as long as a lease lasts.
        let grace = if keeps_votes {
            config.election_timeout_min
        } else {
            config.election_timeout_max
        };
        let mut raft = Self {
            rules,
            me,
            incarnation,
            rng: ChaCha8Rng::seed_from_u64(seed),
            following: Following::None,
            reign: None,
            lease_until: now,
            election_at: now,
            round_at: None,
            asked_by: None,
            heir: None,
            early_request: None,
            shown: None,
            reason: LeaderReason::None,
            led_until: now,
            at: now,
            hints: Hints::default(),
            stretch: Duration::ZERO,
            grace_until: now + grace,
            has_followed: false,
            electors: Electors::Nobody,
            gave_way: false,
            lone: true,
            held_under: None,
            released_under: None,
            auto_election: config.auto_election,
            leaving: false,
            max_override_seq: 0,
            assignments: 0,
            assignment: None,
            gone: BTreeMap::new(),
            outputs: VecDeque::new(),
            disk,
            stale,
            told_by: BTreeSet::new(),
            request: None,
            requests: 0,
            config,
        };
        raft.arm_election(now, &View::default());
        if raft.is_host() {
            // The only voter there will ever be.
            raft.begin_input(now);
            raft.campaign(now, &View::default(), None);
            raft.note_leader(now);
        }
        raft
    }

    /// Whether this node is the room's fixed host.
    fn is_host(&self) -> bool {
        self.config.host_mode == HostMode::Host && self.config.eligible
    }

    /// The record under which this node leads, on disk or not; for checks.
    pub fn leads_under(&self) -> Option<&Record> {
        self.reign.as_ref().map(|reign| &reign.record)
    }

    /// Whether this node may have forgotten votes, and neither votes nor leads; for checks.
    pub fn is_stale(&self) -> bool {
        self.stale.is_some()
    }

    /// The clockless state, for checks.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }
}

impl Election for Raft {
    fn handle(
        &mut self,
        now: Time,
        view: &View,
        input: ElectionInput,
    ) -> Result<(), ElectionError> {
        self.begin_input(now);
        let sighting = self.sighting(&input);
        let result = self.apply(now, view, input);
        if let Some(sighting) = sighting {
            self.note_sighting(sighting);
        }
        if let Some(reign) = self.reign.as_mut().filter(|reign| reign.window.is_new()) {
            reign.window.see(view);
        }
        self.end_request(now);
        self.note_leader(now);
        result
    }

    fn poll_output(&mut self) -> Option<ElectionOutput> {
        self.next_output()
    }

    fn next_deadline(&self) -> Option<Time> {
        let followed_until = match &self.following {
            Following::Indirect { until, .. } | Following::Awaited { until, .. } => Some(*until),
            Following::None | Following::Direct(_) => None,
        };
        let assigned_until = self
            .assignment
            .as_ref()
            .filter(|assignment| !assignment.reported)
            .map(|assignment| assignment.deadline);
        let handed_over_until = self
            .reign
            .as_ref()
            .and_then(|reign| reign.handover.as_ref());
        let election_at = self.awaits_election().then_some(self.election_at);
        let requested_until = self.request.as_ref().map(|request| request.deadline);
        [
            followed_until,
            requested_until,
            assigned_until,
            handed_over_until.map(|handover| handover.until),
            self.reign.as_ref().map(|reign| reign.window.until),
            election_at,
            self.round_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn leader(&self) -> Option<&PeerId> {
        if self.rules.role() == Role::Leader {
            Some(&self.me)
        } else {
            self.following.leader()
        }
    }

    fn leader_reason(&self) -> LeaderReason {
        self.reason
    }

    fn record(&self) -> &Record {
        self.rules.record()
    }

    fn stamp(&self) -> &Stamp {
        &self.safe_record().stamp
    }

    fn writes(&self) -> u64 {
        self.disk.as_ref().map_or(0, Disk::writes)
    }

    fn memory_of(&self, view: &View, peer: &PeerId) -> Option<Memory> {
        self.memory_of_voter(view, peer)
    }

    fn key_of(&self, peer: &PeerId) -> Option<Fingerprint> {
        let fixed = self.config.quorum.roster()?.key_of(peer);
        fixed.or_else(|| Some(self.disk.as_ref()?.known(peer)?.key))
    }

    fn leader_stamp(&self) -> Option<&Record> {
        let safe = |record: &&Record| *record <= self.safe_record();
        self.leads_under().filter(safe)
    }

    fn heartbeat_sent(&mut self) {
        self.repeat_assignment();
        self.repeat_handover();
    }

    fn pulse(&self, now: Time, view: &View) -> Pulse {
        let record = self.safe_record().clone();
        // What is not on disk yet is not claimed: until then it leads as before, or not.
        let claims = record
            .leader
            .as_ref()
            .is_none_or(|leader| *leader == self.me);
        match &self.reign {
            Some(reign) if claims => Pulse::Leads {
                record,
                weight: self.weight(now, view, reign),
                led_ms: millis(now.since(reign.since)),
                election_timeout_min_ms: clamp_millis(self.election_timeout_min()),
            },
            _ => Pulse::Follows {
                record,
                live: self.is_safe() && self.hears_leader(now),
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
            since: self.disk.as_ref().map_or(0, Disk::since),
        }
    }

    fn successor(&self, view: &View) -> Option<PeerId> {
        let reign = self.reign.as_ref()?;
        if let Some(handover) = &reign.handover {
            return Some(handover.target.clone());
        }
        // Under Hold nobody takes over from an assigned leader by itself.
        let elects = !self.leaves_a_held_place();
        elects.then(|| best_ranked(view)).flatten()
    }

    /// Where only the leader may assign, the assigner's own word is waited for.
    fn hear_assignment(
        &mut self,
        now: Time,
        view: &View,
        record: &Record,
    ) -> Result<(), ElectionError> {
        let record = &self.heed(now, record)?;
        let names_me = record.assigned && record.leader.as_ref() == Some(&self.me);
        if names_me && self.config.authority == Authority::Anyone && !self.is_fixed() {
            self.begin_input(now);
            self.go_by_assignment(now, view, record);
            self.note_leader(now);
        }
        Ok(())
    }

    fn may_supersede(&self, record: &Record) -> bool {
        *record > *self.rules.record()
    }

    fn accept_leader_message(
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
        let record = &self.heed(now, record)?;
        if self.rules.is_newer(record) && self.counts(view, from) {
            self.begin_input(now);
            self.hear_leader(now, view, from, record, 1, 0);
            self.note_sighting(Sighting::Lives(record.clone()));
            self.note_leader(now);
        }
        let named = self.rules.record().leader.as_ref();
        Ok(named.is_none_or(|leader| leader == from))
    }
}

impl Raft {
    fn apply(&mut self, now: Time, view: &View, input: ElectionInput) -> Result<(), ElectionError> {
        match input {
            ElectionInput::Tick => self.tick(now, view),
            ElectionInput::PeerUp {
                peer,
                key,
                ours,
                mut theirs,
            } => {
                let heeded = self
                    .heed_side(now, &mut theirs)
                    .and_then(|()| self.voter_met(now, view, &peer, key, theirs.since));
                if heeded.is_err() {
                    // The link stands, as if the Hello said nothing. What its end goes by is in all that it says later.
                    theirs.record = Record::default();
                    theirs.live = None;
                }
                self.lone = false;
                self.is_back(now, view, &peer);
                self.meet(now, view, &peer, &ours, &theirs);
                self.leader_was_found();
                self.voter_linked(view, &peer);
                if let Some(assignment) = &mut self.assignment {
                    assignment.unacked.insert(peer);
                }
                heeded?;
            }
            ElectionInput::PeerDown {
                peer,
                incarnation,
                why,
            } => self.peer_down(now, view, &peer, incarnation, why),
            ElectionInput::Message {
                from,
                stamp,
                message,
            } => {
                self.check_stamp(now, &stamp)?;
                self.message(now, view, &from, &stamp, message)?;
            }
            ElectionInput::WritesShown { from, writes } => {
                self.writes_shown(now, view, &from, writes)?;
            }
            ElectionInput::Memory { from, memory } => {
                self.memory_told(now, view, &from, memory)?;
            }
            ElectionInput::Pulse { from, pulse } => self.pulse_received(now, view, &from, pulse)?,
            ElectionInput::SetLeader { target } => self.set_leader(now, view, &target)?,
            ElectionInput::EnableAuto(enabled) => self.enable_auto(now, view, enabled),
            ElectionInput::Transfer { target } => self.transfer(now, view, target)?,
            ElectionInput::Persisted { number } => self.persisted(now, view, number),
            ElectionInput::Leave => {
                self.leaving = true;
                self.abandon_round();
            }
            ElectionInput::SetEligible(eligible) => self.set_eligible(now, view, eligible),
            ElectionInput::SetPriority(priority) => self.config.priority = priority,
            ElectionInput::SetWindows(_) => {}
            ElectionInput::SetClock(clock) => self.config.clock = clock,
            ElectionInput::PeerEligible { peer } => {
                self.is_back(now, view, &peer);
                self.voter_linked(view, &peer);
            }
            ElectionInput::PeerIneligible {
                peer,
                incarnation,
                successor,
            } => self.peer_down(now, view, &peer, incarnation, Gone::Left { successor }),
        }
        Ok(())
    }
}

/// Time.
impl Raft {
    fn tick(&mut self, now: Time, view: &View) {
        match &self.following {
            Following::Indirect { until, .. } if now >= *until => self.lose_leader(),
            Following::Awaited { until, .. } if now >= *until => {
                self.lose_leader();
                self.arm_election(now, view);
            }
            _ => {}
        }
        if let Some(assignment) = &self.assignment
            && !assignment.reported
            && now >= assignment.deadline
        {
            self.finish_assignment(AssignOutcome::Timeout);
        }
        self.end_handover(|handover| now >= handover.until);
        self.ask_heir(now, view);
        self.measure_round_trips(view);
        self.check_quorum(now, view);
        if self.round_at.is_some_and(|at| now >= at) {
            if self.rules.role() == Role::Candidate && !self.is_safe() {
                self.await_votes(now, view); // they are not asked for yet
            } else {
                self.round_timeout(now, view);
            }
        }
        if self.awaits_election() && now >= self.election_at {
            self.election_timeout(now, view);
        }
    }

    /// Whether the election timer runs: nobody leads, no round is open.
    fn awaits_election(&self) -> bool {
        self.rules.role() == Role::Follower
            && self.following == Following::None
            && self.round_at.is_none()
            && self.may_campaign()
    }

    fn may_campaign(&self) -> bool {
        self.auto_election
            && self.config.eligible
            && !self.leaving
            && !self.is_held()
            && self.stale.is_none()
    }

    /// Whether this node may campaign now because another one asks for it. A voter of a static quorum that was just
    /// restarted may not vote, not even for itself.
    fn may_stand(&self, now: Time) -> bool {
        self.disk.is_none() || self.may_vote(now)
    }

    fn election_timeout(&mut self, now: Time, view: &View) {
        if !self.can_win(view) {
            self.arm_election(now, view);
            return;
        }
        if (!messages::is_alone(view) || view.dialing) && !self.may_vote(now) {
            // G9: a node that just started does not know yet whom it should hear.
            let slot = self.draw_timeout(view) - self.election_timeout_min();
            self.election_at = self.grace_until + slot;
            return;
        }
        self.seek_election(now, view);
    }

    /// Somebody may object as long as anybody is linked: an observer, too, knows who leads. With a fixed number of
    /// voters one that can win alone is the only one.
    fn seek_election(&mut self, now: Time, view: &View) {
        let fixed = self.config.quorum.is_static();
        if view.voters.is_empty() || (fixed && messages::is_alone(view)) {
            self.campaign(now, view, None);
        } else {
            self.pre_vote(now, view);
        }
    }

    /// A round's time is over: it is repeated (G14). Silence is no consent while the link stands, although one
    /// vote would be enough (G3): a node that hears nobody would take it for that of each peer in turn, and its
    /// claim would still be heard (P14). Whoever is gone loses its link, and then this node is alone.
    fn round_timeout(&mut self, now: Time, view: &View) {
        self.round_at = None;
        match self.rules.role() {
            // No rival, as far as known: the answers are only late or lost, and waiting costs no term (P15).
            Role::Candidate if self.may_ask_again(view) => {
                self.request_votes(now, view, Tally::Pending);
            }
            Role::PreCandidate | Role::Candidate => {
                let consented = self.has_consent();
                self.rules.step_down();
                if !self.may_campaign() || !self.can_win(view) {
                    self.arm_election(now, view);
                } else if consented {
                    self.campaign(now, view, None);
                } else {
                    self.seek_election(now, view);
                }
            }
            Role::Leader => self.reterm_again(now, view),
            Role::Follower => {}
        }
    }

    /// Whether one vote is enough and nobody but the one peer asked could object.
    fn one_answer_decides(&self, view: &View) -> bool {
        let threshold = self.rules.campaign().map_or(0, |open| open.needed);
        !self.config.quorum.is_static() && threshold == 1 && view.eligible().nth(1).is_none()
    }

    fn set_eligible(&mut self, now: Time, view: &View, eligible: bool) {
        if let Some(successor) = self.successor(view) {
            self.expect_heir(now, &successor);
        }
        self.config.eligible = eligible;
        if !eligible {
            self.forget_votes();
        }
        if !eligible && self.rules.role() != Role::Follower {
            self.follow(Following::None);
            self.hints.ended = Some(LeaderReason::Left);
        }
        self.arm_election(now, view);
    }

    fn arm_election(&mut self, now: Time, view: &View) {
        self.election_at = now + self.draw_timeout(view);
    }

    /// G13: every voter has a slot of its own within the range, so that the next leader is known beforehand
    /// and votes hardly ever split. Those whose rank is beyond the range share the last slot.
    fn draw_timeout(&mut self, view: &View) -> Duration {
        let min = self.election_timeout_min();
        let range = self.election_timeout_max() - min;
        if !self.config.guards.rank_slots {
            return min + self.up_to(range);
        }
        let width = MIN_SLOT.max(mean_rtt(view) * 3 / 2);
        let slots = u32::try_from(range.as_micros() / width.as_micros()).unwrap_or(u32::MAX);
        let slots = slots.max(1);
        let slot = range / slots;
        min + slot * self.rank(view).min(slots - 1) + self.up_to(slot / 2)
    }

    /// How many voters go before this one when the present leader is lost: higher priorities, then larger ids.
    fn rank(&self, view: &View) -> u32 {
        let leader = self.following.leader();
        let before = view
            .eligible()
            .filter(|(id, _)| Some(*id) != leader && self.goes_before(view, id))
            .count();
        u32::try_from(before).unwrap_or(u32::MAX)
    }

    /// Whether `peer` is preferred to this node.
    fn goes_before(&self, view: &View, peer: &PeerId) -> bool {
        view.voters
            .get(peer)
            .is_some_and(|voter| (voter.priority, peer) > (self.config.priority, &self.me))
    }

    fn up_to(&mut self, limit: Duration) -> Duration {
        let limit = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.rng.random_range(0..=limit))
    }

    /// Whether this node knows enough to vote (G9, C2): of the room, or of what it voted before.
    fn may_vote(&self, now: Time) -> bool {
        let knows = if self.disk.is_some() {
            self.stale.is_none() && now >= self.grace_until
        } else {
            self.has_followed || now >= self.grace_until
        };
        self.config.eligible && (knows || !self.config.guards.restart_grace)
    }
}

#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod tests;
