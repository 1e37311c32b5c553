//! The seeded strategy: a cluster that members enter through seeds, and that has a leader in at most one part.
//!
//! One leader changes the states of all members ([`members`]). It leads under a version that grows with every leader.
//! The voters are the members of the room's roster: a majority of them elects ([`paxos`]), and a leader that a majority
//! does not acknowledge resigns. `docs/elections.md` explains the rules (A3) that comments here name.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::extra::Cluster;
use super::record::{Record, Stamp};
use super::{
    Description, DownReason, Election, ElectionError, ElectionInput, ElectionOutput, Extra,
    InputOf, InvalidSavedState, LeaderReason, Leadership, Local, OutputOf, Start, View,
};
use crate::bounded::BoundedMap;
use crate::id::{Fingerprint, Incarnation, PeerId};
use crate::time::{Duration, Time};

mod config;
mod conflict;
mod durable;
mod election;
mod joining;
mod keepalive;
mod members;
mod memory;
pub mod paxos;
mod role;
pub mod wire;

pub use config::{IntervalError, Intervals, SeededConfig, SeededRules, Seeding};
pub use durable::Kept;
pub use members::{Listed, MemberState};

use durable::Disk;
use election::Campaign;
use joining::Target;
use members::Members;
use memory::Memories;
use role::Role;
use wire::{
    Based, Beat, Claim, Greeting, MAX_ADDRESS_BYTES, MAX_LISTED, Observation, SeededMessage,
};

/// A linked peer, as its Hello describes it.
#[derive(Debug, Clone)]
struct Linked {
    is_seed: bool,
    address: String,
}

/// A node of the seeded strategy.
#[derive(Debug)]
pub struct Seeded {
    me: PeerId,
    incarnation: Incarnation,
    config: SeededConfig,
    rng: ChaCha8Rng,
    role: Role,
    members: Members,
    /// The present state of what survives the process.
    kept: Kept,
    disk: Disk,
    memories: Memories,
    peers: BTreeMap<PeerId, Linked>,
    /// Members that sent a leave notice, and that the leader has not removed yet.
    left: BoundedMap<PeerId, Incarnation, MAX_LISTED>,
    /// The leader whose cluster this node enters, if it has none.
    target: Option<Target>,
    campaign: Option<Campaign>,
    campaign_at: Time,
    /// Attempts to get a leader elected since one was known.
    campaigns: u32,
    probe_at: Time,
    /// The last time at which a leader was known here; before that, the start of this node.
    led_at: Time,
    /// Until then this voter takes part in no election and acknowledges no other leader: a leader that it acknowledged,
    /// before a restart or before votes chose another, may count it.
    grace_until: Time,
    /// The version that this node shows while it has no leader.
    version: u64,
    /// The largest version under which it ever followed or led.
    led_up_to: u64,
    /// The largest ballot counter that a refusal named, for the open version.
    refused_counter: u64,
    /// Counts queries and requests.
    asked: u64,
    leaving: bool,
    /// As [`Seeded::leads_until`], after the last input.
    valid_until: Option<Time>,
    record: Record,
    reason: LeaderReason,
    hint: Option<LeaderReason>,
    outputs: Vec<OutputOf<Self>>,
}

impl Seeded {
    /// A node that starts now, with the state that an earlier incarnation stored.
    pub fn new(
        me: PeerId,
        incarnation: Incarnation,
        config: SeededConfig,
        kept: Option<Kept>,
        seed: u64,
        now: Time,
    ) -> Self {
        let kept = Kept::of_next_incarnation(kept);
        let decided = kept.acceptor.decided();
        let mut reserved = config.roster.electorate();
        reserved.insert(me.clone());
        let mut seeded = Self {
            me,
            incarnation,
            rng: ChaCha8Rng::seed_from_u64(seed),
            role: Role::joining(now),
            members: Members::with_places_for(reserved),
            disk: Disk::new(kept.clone()),
            memories: Memories::new(kept.writes, kept.forgotten),
            kept,
            peers: BTreeMap::new(),
            left: BoundedMap::default(),
            target: None,
            campaign: None,
            campaign_at: now,
            campaigns: 0,
            probe_at: now,
            led_at: now,
            grace_until: now,
            version: 0,
            led_up_to: decided,
            refused_counter: 0,
            asked: 0,
            leaving: false,
            valid_until: None,
            record: Record::default(),
            reason: LeaderReason::None,
            hint: None,
            outputs: Vec::new(),
            config,
        };
        if decided > 0 {
            seeded.grace_until = now + seeded.config.rules.intervals.ttl();
        }
        seeded
    }

    /// A node that starts now, with the options of its room.
    ///
    /// # Errors
    /// [`InvalidSavedState`].
    pub(in crate::election) fn start(
        now: Time,
        start: Start,
        rules: SeededRules,
    ) -> Result<Self, InvalidSavedState> {
        let start = start.decoded()?;
        Ok(Self::new(
            start.me.clone(),
            start.incarnation,
            SeededConfig::of(&start, rules),
            start.saved,
            start.seed,
            now,
        ))
    }

    /// The state of a member, as this node knows it.
    pub fn member_state(&self, id: &PeerId) -> MemberState {
        self.members.state(id)
    }

    /// All members, as this node knows them.
    pub fn members(&self) -> Vec<Listed> {
        self.members.list()
    }

    /// The cluster, as this node knows it.
    pub fn cluster(&self) -> Cluster {
        let members = self.members.list().into_iter();
        Cluster {
            version: self.observation().version,
            members: members.map(|member| (member.id, member.state)).collect(),
        }
    }

    /// The leader and its version, as this node observes them.
    pub fn observation(&self) -> Observation {
        match self.claim() {
            Some(claim) => claim.observation(),
            None => Observation {
                leader: None,
                version: self.version,
            },
        }
    }

    /// The leadership that this node observes: its own, or its leader's.
    pub fn claim(&self) -> Option<&Claim> {
        match &self.role {
            Role::Leader(leader) => Some(&leader.claim),
            Role::Follower(followed) => followed.as_ref().map(|followed| &followed.claim),
            Role::Joining(_) => None,
        }
    }

    /// The state that this node keeps, written or not; for checks.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// The number of voters, this node included, that acknowledge it as leader; 0 if it does not lead.
    pub fn acknowledged_by(&self, now: Time) -> usize {
        self.leading()
            .map_or(0, |leader| self.acknowledging(now, leader))
    }

    fn intervals(&self) -> Intervals {
        self.config.rules.intervals
    }

    /// Whether this node votes and may lead.
    fn votes(&self) -> bool {
        self.config.eligible && self.is_voter(&self.me) && !self.leaving
    }

    fn is_voter(&self, peer: &PeerId) -> bool {
        self.config.roster.contains(peer)
    }

    fn is_seed(&self) -> bool {
        self.config.seeding.is_seed && self.votes()
    }

    fn decided(&self) -> u64 {
        self.kept.acceptor.decided()
    }

    /// `version` has had a leader: no other member leads under it, and votes are on the next one.
    fn decide(&mut self, version: u64) {
        if self.kept.acceptor.decide(version) {
            self.refused_counter = 0;
        }
    }

    /// Whether this node knows a living leader, itself included.
    fn lives_under_leader(&self, now: Time) -> bool {
        match &self.role {
            Role::Leader(_) => true,
            Role::Follower(followed) => followed
                .as_ref()
                .is_some_and(|followed| now.since(followed.acked_at) <= self.intervals().ttl()),
            Role::Joining(_) => false,
        }
    }

    /// This node's observation of a living leader.
    fn observation_of_living(&self, now: Time) -> Observation {
        if self.lives_under_leader(now) {
            self.observation()
        } else {
            Observation {
                leader: None,
                version: self.version,
            }
        }
    }

    fn own_claim(&self, version: u64, elected: bool) -> Claim {
        Claim {
            leader: self.me.clone(),
            version,
            elected,
            address: self.config.seeding.address.clone(),
        }
    }

    fn send(&mut self, view: &View, to: &PeerId, basis: Observation, message: SeededMessage) {
        if view.voters.contains_key(to) {
            self.outputs.push(ElectionOutput::Send {
                to: to.clone(),
                message: Based {
                    basis,
                    writes: 0, // set to the counter on disk when this goes out
                    message,
                },
            });
        }
    }

    /// The time after which an unanswered request to a linked peer is repeated.
    fn answer_timeout(&self, view: &View) -> Duration {
        let round_trips = view.voters.values().filter_map(|voter| voter.rtt);
        let longest = round_trips.max().unwrap_or_default();
        self.intervals().retry().max(longest * 3)
    }

    fn next_number(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    /// Asks for links to the seeds. The dialler knows which of them are linked already.
    fn dial_seeds(&mut self) {
        let own = &self.config.seeding.address;
        let seeds = self.config.seeding.seeds.iter();
        let seeds: Vec<_> = seeds.filter(|seed| ***seed != **own).cloned().collect();
        if !seeds.is_empty() {
            self.outputs.push(Extra::DialSeeds(seeds).into());
        }
    }

    /// Linked peers that claim to be seeds.
    fn linked_seeds(&self) -> Vec<PeerId> {
        let seeds = self.peers.iter().filter(|(_, peer)| peer.is_seed);
        seeds.map(|(id, _)| id.clone()).collect()
    }

    /// A random duration up to `most`.
    fn jitter(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.rng.random_range(0..=most))
    }

    /// Checks a counter of another member against the bound that time sets (C4.8).
    fn heed(&self, now: Time, value: u64) -> Result<(), ElectionError> {
        let bound = self.config.clock.bound(now);
        if value > bound {
            return Err(ElectionError::TooLarge { value, bound });
        }
        Ok(())
    }
}

impl Seeded {
    fn apply(&mut self, now: Time, view: &View, input: InputOf<Self>) -> Result<(), ElectionError> {
        match input {
            ElectionInput::PeerUp {
                peer, key, theirs, ..
            } => self.peer_up(now, view, &peer, key, theirs)?,
            ElectionInput::Message { from, message } => {
                self.heed(now, message.largest_version())?;
                if !message.is_bounded() {
                    return Err(ElectionError::Violation("an election message is too long"));
                }
                if view.voters.contains_key(&from) && !self.leaving {
                    self.message(now, view, &from, message)?;
                }
            }
            ElectionInput::Pulse { from, pulse } => {
                self.heed(now, pulse.largest_version())?;
                if view.voters.contains_key(&from) && !self.leaving {
                    self.beat(now, view, &from, pulse)?;
                }
            }
            ElectionInput::Local(input) => self.apply_local(now, view, input)?,
        }
        Ok(())
    }

    fn apply_local(&mut self, now: Time, view: &View, input: Local) -> Result<(), ElectionError> {
        match input {
            Local::Tick => {
                if now >= self.probe_at && !self.leaving {
                    self.probe(now, view);
                }
            }
            Local::PeerDown {
                peer,
                incarnation,
                why,
            } => self.peer_down(now, view, &peer, incarnation, &why),
            Local::Leave => {
                self.leaving = true;
                self.target = None;
                if self.leading().is_some() {
                    self.become_follower(None, LeaderReason::Left);
                }
                self.campaign = None;
            }
            Local::SetClock(clock) => self.config.clock = clock,
            Local::SetLeader { .. }
            | Local::EnableAuto(_)
            | Local::Transfer { .. }
            | Local::SetEligible(_)
            | Local::SetPriority(_) => {
                return Err(ElectionError::NotSupported { strategy: "seeded" });
            }
            // The voters are fixed, and repeated requests have timers of their own.
            Local::HeartbeatSent
            | Local::Relinked { .. }
            | Local::PeerReached { .. }
            | Local::PeerEligible { .. }
            | Local::PeerIneligible { .. } => {}
        }
        Ok(())
    }

    /// Performs the actions that are due (A3.4).
    fn probe(&mut self, now: Time, view: &View) {
        self.probe_at = now + self.intervals().probe();
        self.probe_target(now, view);
        match &self.role {
            Role::Joining(_) => self.probe_joining(now, view),
            Role::Follower(_) => self.probe_follower(now, view),
            Role::Leader(_) => self.probe_leader(now, view),
        }
        self.probe_campaign(now, view);
    }

    fn peer_up(
        &mut self,
        now: Time,
        view: &View,
        peer: &PeerId,
        key: Fingerprint,
        greeting: Greeting,
    ) -> Result<(), ElectionError> {
        let Some(voter) = view.voters.get(peer) else {
            return Ok(());
        };
        let Greeting {
            beat,
            is_seed,
            address,
        } = greeting;
        if address.len() > MAX_ADDRESS_BYTES {
            return Err(ElectionError::Violation("a Hello's address is too long"));
        }
        self.register_voter(view, peer, key);
        self.peers.insert(peer.clone(), Linked { is_seed, address });
        if self.leaving {
            return Ok(());
        }
        let followed = self
            .following()
            .filter(|followed| followed.claim.leader == *peer);
        match followed.map(|followed| followed.incarnation == voter.incarnation) {
            // The leader was restarted, and no longer leads.
            Some(false) => self.lose_leader(now, LeaderReason::Lost),
            Some(true) => self.keep_alive_now(now, view),
            None => {}
        }
        // The link stands even if the Hello's versions do not count.
        let taken = self
            .heed(now, beat.largest_version())
            .and_then(|()| self.beat(now, view, peer, beat));
        self.join_through(view, peer);
        if self.leading().is_some() && is_seed {
            self.seed_keep_alive_to(view, peer);
        }
        taken
    }

    fn peer_down(
        &mut self,
        now: Time,
        view: &View,
        peer: &PeerId,
        incarnation: Incarnation,
        why: &DownReason,
    ) {
        self.peers.remove(peer);
        self.disk.forget(peer);
        // Silence and closed links end nothing at once: the loss of a leader takes a majority's TTL (A3.4).
        if !matches!(why, DownReason::Left { .. } | DownReason::Removed) || self.leaving {
            return;
        }
        let followed = self.following();
        if followed.is_some_and(|followed| {
            followed.claim.leader == *peer && followed.incarnation == incarnation
        }) {
            if *why == DownReason::Removed {
                self.leave_living_leader(None);
            }
            self.lose_leader(now, LeaderReason::Left);
        }
        if self.members.lists(peer, incarnation) {
            // Each of them is listed, so there is always room.
            let _ = self.left.insert(peer.clone(), incarnation);
            self.take_out_departed(view);
        }
    }

    /// The strategy's part of a heartbeat or Hello.
    fn beat(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        beat: Beat,
    ) -> Result<(), ElectionError> {
        if self.is_voter(from) {
            self.decide(beat.decided);
            self.receive_beat_memory(now, view, from, &beat);
        }
        match beat.claim {
            Some(claim) if claim.leader != *from || !claim.is_bounded() => Err(
                ElectionError::Violation("a heartbeat claims another's leadership"),
            ),
            Some(claim) => {
                self.receive_claim(now, view, from, &claim);
                Ok(())
            }
            None => {
                // A leader that resigned shows that under the version of its leadership; no other heartbeat of it shows
                // that version.
                let resigned = self.following().is_some_and(|followed| {
                    followed.claim.leader == *from
                        && beat.observed.version == followed.claim.version
                });
                if resigned {
                    self.lose_leader(now, LeaderReason::Resigned);
                }
                Ok(())
            }
        }
    }

    fn message(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        message: Based,
    ) -> Result<(), ElectionError> {
        use SeededMessage as M;
        if !self.is_voter(from) && !message.is_of_any_member() {
            return Ok(());
        }
        let Based {
            basis,
            writes,
            message,
        } = message;
        self.writes_shown(view, from, writes);
        match message {
            M::LeaderQuery { query } => self.leader_query(now, view, from, &basis, query),
            M::LeaderQueryResponse { query } => {
                self.leader_query_response(now, view, from, &basis, query);
            }
            M::JoinClusterRequest { request } => {
                self.join_cluster_request(now, view, from, &basis, request);
            }
            M::JoinClusterResponse { request, answer } => {
                return self.join_cluster_response(now, view, from, &basis, request, answer);
            }
            M::JoiningMember {
                change,
                member,
                incarnation,
            } => {
                let state = MemberState::Joining;
                self.member_changed(from, &basis, change, &member, incarnation, state);
            }
            M::MemberStatusUpdate {
                change,
                member,
                incarnation,
                state,
            } => self.member_changed(from, &basis, change, &member, incarnation, state),
            M::ClusterAlignment { change, members } => {
                self.cluster_alignment(now, from, &basis, change, &members);
            }
            M::LeaderKeepAlive { digest, acked_us } => {
                self.leader_keep_alive(now, view, from, &basis, digest, acked_us);
            }
            M::LeaderKeepAliveAck { sent_us } => {
                self.leader_keep_alive_ack(now, view, from, &basis, sent_us);
            }
            M::SeedKeepAlive { claim } => {
                return self.seed_keep_alive(now, view, from, &basis, &claim);
            }
            M::SeedKeepAliveAck => self.seed_keep_alive_ack(from, &basis),
            M::LeaderRelieve { winner } => self.leader_relieve(now, view, &basis, &winner),
            M::ReJoinCluster { winner } => self.rejoin_cluster(now, view, from, &basis, &winner),
            M::LeaderStatusQuery { query } => {
                self.leader_status_query(now, view, from, &basis, query);
            }
            M::LeaderStatusQueryResponse { query, healthy } => {
                self.leader_status_query_response(now, view, from, &basis, query, healthy);
            }
            M::Proposal {
                stage,
                ballot,
                candidate,
            } => return self.proposal(now, view, from, &basis, stage, &ballot, &candidate),
            M::Vote { ballot, vote } => self.vote(now, view, from, &basis, &ballot, &vote),
            M::LeaderElected { claim } => self.leader_elected(now, view, from, &basis, &claim),
        }
        Ok(())
    }

    /// The leader that the host sees; `None` if its link is lost.
    fn shown(&self, view: &View) -> Option<&PeerId> {
        let leader = &self.claim()?.leader;
        let shown = *leader == self.me || view.voters.contains_key(leader);
        shown.then_some(leader)
    }

    /// Reports the changes of an input.
    fn settle(&mut self, now: Time, view: &View) {
        self.note_majority(now);
        self.valid_until = self.leads_until(now);
        let leader = self.shown(view).cloned();
        let hint = self.hint.take();
        if leader != self.record.leader {
            let by_link = if leader.is_some() {
                LeaderReason::Found
            } else {
                LeaderReason::Lost
            };
            self.reason = hint.unwrap_or(by_link);
        }
        let version = self.observation().version;
        self.record = Record {
            leader_key: None,
            stamp: Stamp {
                term: version,
                ..Stamp::default()
            },
            leader,
            assigned: false,
        };
        let members = &self.members;
        self.left
            .retain(|id, incarnation| members.lists(id, *incarnation));
        while let Some((peer, state)) = self.members.poll_change() {
            let changed = Extra::MemberState {
                peer,
                state,
                version,
            };
            self.outputs.push(changed.into());
        }
        self.disk.take(&mut self.kept, self.outputs.drain(..));
        self.check_role();
    }
}

impl Election for Seeded {
    type Message = Based;
    type Pulse = Beat;
    type Hello = Greeting;
    /// The sender's leadership, or its leader's.
    type Token = Option<Claim>;

    fn handle(
        &mut self,
        now: Time,
        view: &View,
        input: InputOf<Self>,
    ) -> Result<(), ElectionError> {
        self.end_lapsed_leadership(now);
        let result = self.apply(now, view, input);
        self.settle(now, view);
        result
    }

    fn poll_output(&mut self) -> Option<OutputOf<Self>> {
        self.disk.poll()
    }

    fn next_deadline(&self) -> Option<Time> {
        let due = (!self.leaving).then_some(self.probe_at);
        [due, self.valid_until].into_iter().flatten().min()
    }

    fn leadership(&self) -> Leadership<'_> {
        Leadership {
            leader: self.record.leader.as_ref(),
            leader_key: None,
            is_vouched_for: false,
            reason: self.reason,
            record: &self.record,
            valid_until: self.valid_until,
        }
    }

    fn role(&self) -> super::Role {
        match (&self.role, &self.campaign) {
            (Role::Leader(_), _) => super::Role::Leader,
            (_, Some(campaign)) if campaign.is_formal() => super::Role::Candidate,
            (_, Some(_)) => super::Role::PreCandidate,
            _ => super::Role::Follower,
        }
    }

    fn voted_for(&self) -> Option<&PeerId> {
        let accepted = self.kept.acceptor.accepted();
        accepted.map(|accepted| &accepted.candidate)
    }

    fn admits(&self, peer: &PeerId, key: Fingerprint) -> bool {
        let fixed = self.config.roster.key_of(peer);
        let known = fixed.or_else(|| Some(self.kept.others.get(peer)?.key));
        known.is_none_or(|known| known == key)
    }

    fn leader_token(&self) -> Option<Option<Claim>> {
        self.safe_claim().map(|claim| Some(claim.clone()))
    }

    fn followed_token(&self) -> Option<Claim> {
        self.claim().cloned()
    }

    fn pulse(&self, now: Time, view: &View, to: &PeerId) -> Beat {
        let has_lapsed = self.valid_until.is_some_and(|until| now >= until);
        let claim = self.safe_claim().filter(|_| !has_lapsed);
        let unsafe_claim = self.leading().is_some() && claim.is_none();
        Beat {
            observed: if unsafe_claim {
                Observation::default()
            } else {
                self.observation()
            },
            claim: claim.cloned(),
            decided: self.disk.safe().acceptor.decided(),
            writes: self.disk.safe().writes,
            since: self.knows_votes_since(),
            memory: self.memory_of_voter(view, to),
        }
    }

    fn hello(&self, now: Time, view: &View, _asked: Time) -> Greeting {
        Greeting {
            beat: self.pulse(now, view, &self.me),
            is_seed: self.is_seed(),
            address: self.config.seeding.address.clone(),
        }
    }

    fn may_supersede(&self, from: &PeerId, token: &Option<Claim>) -> bool {
        let Some(claim) = token else {
            return false;
        };
        claim.leader == *from && claim.elected && claim.version > self.led_up_to
    }

    /// Only the leader that this node follows is accepted; without one, any leader at least as new as the ones that it
    /// had.
    fn judge(
        &mut self,
        now: Time,
        view: &View,
        from: &PeerId,
        token: &Option<Claim>,
    ) -> Result<bool, ElectionError> {
        let Some(claim) = token.as_ref().filter(|claim| claim.leader == *from) else {
            return Err(ElectionError::Violation(
                "a leader's message names another leader",
            ));
        };
        self.heed(now, claim.version)?;
        if !claim.is_bounded() {
            return Err(ElectionError::Violation("a leader's token is too long"));
        }
        if !self.leaving {
            self.receive_claim(now, view, from, claim);
            self.settle(now, view);
        }
        Ok(match self.claim() {
            Some(own) => own.observation() == claim.observation(),
            None => claim.version >= self.version,
        })
    }

    fn describe(message: &Based) -> Description {
        message.describe()
    }

    fn describe_pulse(beat: &Beat) -> Description {
        beat.describe()
    }
}

#[cfg(test)]
mod tests;
