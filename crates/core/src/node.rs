//! One member of a room: membership, introductions and the election, joined.
//!
//! The contract: [`Node::handle`] one [`Input`] with the time; then [`Node::poll_output`] until it gives
//! `None`; then ask [`Node::next_deadline`] and come back with [`Input::Tick`] at that time at the latest.
//! Links, clocks and queues are the caller's. Peers are named only after their link was authenticated.

mod bans;
mod contract;
mod ending;
mod entry;
mod host;
mod joins;
mod links;
mod merging;
mod relay;
mod room_rules;
mod timers;
mod unlinked;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use super::election::bound::WallClock;
use super::election::record::{Record, Stamp};
use super::election::{
    self, AnyElection, ElectionError, ElectionInput, ElectionOutput, Gone, LeaderReason, Local,
    NotItsState, OpaqueInput, Start, View, Voter,
};
use super::id::{Fingerprint, Incarnation, PeerId};
use super::introductions::Introductions;
use super::membership::{Member, Membership};
use super::pace::Pace;
use super::time::{Duration, Time};
use super::wire::{
    Envelope, Heartbeat, Hello, HostMode, MAX_PEER_ADDRESSES, MAX_PEER_LIST_ENTRIES, Message,
    NoPlace, Opaque, PeerEntry, Probe, RoomPolicy, RoomRules, Topology,
};
use bans::Bans;
use ending::SessionEnd;
use joins::{Asker, Joins};
use links::Absent;
use timers::Timer;

pub use merging::Conflict;
pub use relay::{OriginIncarnation, Speaker};

pub use super::event::{EndReason, Event, LeaderChange, Left, LeftReason, Returned};
pub use contract::{
    AdmissionRefusal, Command, CommandError, Input, LinkEnd, LinkUp, NodeConfig, Output,
};

/// A message that is dropped for a counter is told of once in so long.
const DROPS_ARE_TOLD_EVERY: Duration = Duration::from_secs(10);

/// See the module's text.
#[derive(Debug)]
pub struct Node {
    me: PeerId,
    incarnation: Incarnation,
    config: NodeConfig,
    clock: WallClock,
    /// When a dropped message was told of last.
    drop_told_at: Option<Time>,
    election: Box<dyn AnyElection>,
    membership: Membership,
    absent: BTreeMap<PeerId, Absent>,
    view: View,
    /// Without G11: the view, and as it was one change of the membership ago.
    #[cfg(feature = "laboratory")]
    lagging: [View; 2],
    introductions: Introductions,
    joins: Joins,
    merging: merging::Merging,
    unlinked: unlinked::Unlinked,
    room_rules: RoomRules,
    kicks: room_rules::Kicks,
    /// The room rules that members reported; at most one for each.
    rules_of: BTreeMap<PeerId, room_rules::Said>,
    /// What members are sent of the room rules.
    deliveries: BTreeMap<PeerId, room_rules::Delivery>,
    /// Since when this node leads, if it does.
    leads_since: Time,
    /// Under which stamp this incarnation began to lead first.
    led_first: Option<Stamp>,
    bans: Bans,
    host_dialing: bool,
    heartbeat_at: Time,
    /// How many heartbeats were sent, to whichever peer.
    heartbeats: u64,
    /// Members that the others are to be told of.
    news: BTreeSet<PeerId>,
    /// When they are, if there is one.
    news_at: Option<Time>,
    told_leader: Option<PeerId>,
    probes: u64,
    unanswered_leaves: Option<BTreeSet<PeerId>>,
    /// Whether the room is over for this node.
    ended: bool,
    host: host::Host,
    /// Until this node has followed a leader, where it joins a room.
    looking: Option<entry::Looking>,
    recent_leaders: relay::RecentLeaders,
    past_incarnations: relay::PastIncarnations,
    /// The leader's reason for removing this node, as another member passed it on.
    reason_passed_on: Option<(PeerId, i32, Vec<u8>)>,
    outputs: VecDeque<Output>,
}

impl Node {
    /// A node that starts now, alone. `seed` decides every random choice that it will make.
    ///
    /// A fixed host leads already: [`Node::poll_output`] has what follows from that.
    ///
    /// # Errors
    /// [`NotItsState`] where `config.saved` is no state of the room's strategy.
    pub fn new(
        me: PeerId,
        incarnation: Incarnation,
        mut config: NodeConfig,
        seed: u64,
        now: Time,
    ) -> Result<Self, NotItsState> {
        config.election = config.election.with_effective_timeouts();
        config.election.policy.quorum = config.election.quorum.policy();
        config.election.eligible &= config.election.policy.host_mode != HostMode::Guest;
        let looking = entry::Looking::begin(now, &mut config.election);
        let clock = WallClock::new(now, config.wall_clock);
        let start = Start {
            me: me.clone(),
            key: config.key,
            incarnation,
            config: config.election.clone(),
            saved: config.saved.take(),
            clock,
            seed,
        };
        let election = election::start(now, start)?;
        let introductions = Introductions::new(now, config.reconnect, seed.rotate_left(32));
        let introductions = match config.election.policy.topology {
            Topology::Mesh => introductions,
            Topology::Star => introductions.without_addresses(),
        };
        let mut node = Self {
            election,
            clock,
            drop_told_at: None,
            me,
            incarnation,
            membership: Membership::new(
                config.heartbeat_interval,
                config.election.heartbeat_timeout,
            ),
            absent: BTreeMap::new(),
            view: View::default(),
            #[cfg(feature = "laboratory")]
            lagging: Default::default(),
            introductions,
            joins: Joins::default(),
            merging: merging::Merging::default(),
            unlinked: unlinked::Unlinked::default(),
            room_rules: RoomRules::default(),
            kicks: room_rules::Kicks::default(),
            rules_of: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            leads_since: now,
            led_first: None,
            bans: Bans::default(),
            host_dialing: false,
            heartbeat_at: now + config.heartbeat_interval,
            heartbeats: 0,
            news: BTreeSet::new(),
            news_at: None,
            told_leader: None,
            probes: 0,
            unanswered_leaves: None,
            ended: false,
            host: host::Host::default(),
            looking,
            recent_leaders: relay::RecentLeaders::default(),
            past_incarnations: relay::PastIncarnations::default(),
            reason_passed_on: None,
            outputs: VecDeque::new(),
            config,
        };
        node.after(now);
        Ok(node)
    }

    /// Takes one input.
    ///
    /// # Errors
    /// [`CommandError`] for a refused [`Input::Command`]; nothing has changed then. Other inputs never fail:
    /// a peer that breaks the protocol loses its link.
    pub fn handle(&mut self, now: Time, input: Input) -> Result<(), CommandError> {
        self.end_lapsed_leadership(now);
        let result = self.apply(now, input);
        self.after(now);
        result
    }

    /// A leader whose time is up, and that was not told yet, does nothing any more that only leaders may: its process may have
    /// slept.
    fn end_lapsed_leadership(&mut self, now: Time) {
        let until = self.election.leadership().valid_until;
        if until.is_some_and(|until| now >= until) {
            self.elect(now, Local::Tick);
            self.after(now);
        }
    }

    /// What to do next; call until `None` after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// What a node keeps that has just started; it must be safe before its first output is carried out. `None` if the
    /// room's strategy keeps nothing.
    pub fn first_state(&self) -> Option<Opaque> {
        self.election.first_state()
    }

    /// When to come back with [`Input::Tick`] at the latest.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.unanswered_leaves.is_some() {
            return None;
        }
        Timer::ALL
            .into_iter()
            .filter_map(|timer| self.deadline(timer))
            .min()
    }

    /// The name of this node.
    pub fn id(&self) -> &PeerId {
        &self.me
    }

    /// The incarnation of this node.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The linked peers.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Peers that are being dialled because others told of them, or because they were lost.
    pub fn dialing(&self) -> impl Iterator<Item = &PeerId> {
        self.introductions.dialing()
    }

    /// The leader that the host is shown; `None` while none is known, or none to which there is a path. The election may
    /// go by a leader that this node keeps out, or for which no linked member vouches any more: it does not campaign then,
    /// but nothing could be sent to that leader.
    pub fn leader(&self) -> Option<&PeerId> {
        let leadership = self.election.leadership();
        let leader = leadership.leader?;
        let key = leadership.leader_key;
        let has_path = match self.membership.get(leader) {
            _ if *leader == self.me => true,
            Some(member) => key.is_none_or(|key| key == member.key),
            None => leadership.is_vouched_for && !self.keeps_out(leader, key),
        };
        has_path.then_some(leader)
    }

    /// Whether this node links with no peer of that name and key, whatever others say of it.
    fn keeps_out(&self, peer: &PeerId, key: Option<Fingerprint>) -> bool {
        let is_key_out = |key| {
            let lost = self.absent.get(peer);
            self.is_kicked(peer, key)
                || self.bans.is_barred(key)
                || lost.is_some_and(|lost| lost.key != key)
        };
        self.bans.is_disconnected(peer) || self.is_name_kicked(peer) || key.is_some_and(is_key_out)
    }

    /// Whether this node leads.
    pub fn is_leader(&self) -> bool {
        self.election.leadership().leader == Some(&self.me)
    }

    /// The rules that all members of the room share.
    pub fn policy(&self) -> RoomPolicy {
        self.config.election.policy
    }

    /// Whether this node may lead, and its election priority.
    pub fn standing_of_myself(&self) -> (bool, i32) {
        (self.config.election.eligible, self.config.election.priority)
    }

    /// Whether the room is over for this node: it was kicked, or the fixed host has left.
    pub fn is_over(&self) -> bool {
        self.ended
    }

    /// What this node's messages carry that it sends as leader; `None` unless it leads, and while a restart could undo
    /// that.
    pub fn leader_token(&self) -> Option<Opaque> {
        self.election.leader_token()
    }

    /// What this node's broadcasts carry to the leader that it follows.
    pub fn followed_token(&self) -> Opaque {
        self.election.followed_token()
    }

    /// The record that this node follows.
    pub fn record(&self) -> &Record {
        self.election.leadership().record
    }

    /// The number of the next heartbeat, taken for one that a laboratory makes up in this node's name.
    #[cfg(any(test, feature = "laboratory"))]
    pub fn take_heartbeat_number(&mut self) -> u64 {
        self.heartbeats += 1;
        self.heartbeats
    }

    /// The election, for traces and checks.
    pub fn election(&self) -> &dyn AnyElection {
        self.election.as_ref()
    }

    /// The largest counter that this node takes from another member now, for checks.
    pub fn counter_bound(&self, now: Time) -> u64 {
        self.clock.bound(now)
    }

    /// What a Hello of this moment says about leadership.
    pub fn side(&self, now: Time) -> Opaque {
        self.side_in_answer(now, now)
    }

    /// The same in the answer to a Hello that arrived at `asked`, and that waited for the room's decision since.
    pub fn side_in_answer(&self, now: Time, asked: Time) -> Opaque {
        self.election.hello(now, &self.view, asked)
    }

    /// What this node knows against a link with whoever says this Hello and holds `key`, before the room is
    /// asked ([`Input::Join`]). `by_own_hand` where the own host asked for the link. Changes nothing.
    ///
    /// # Errors
    /// [`AdmissionRefusal`] says what stands against it.
    pub fn check_hello(
        &self,
        now: Time,
        hello: &Hello,
        key: Fingerprint,
        by_own_hand: bool,
    ) -> Result<(), AdmissionRefusal> {
        let peer = &hello.peer_id;
        if self.unanswered_leaves.is_some() {
            return Err(AdmissionRefusal::Leaving);
        }
        if self.ended {
            return Err(AdmissionRefusal::Ended);
        }
        if let Some((field, ours, theirs)) = self.config.election.policy.difference(&hello.policy) {
            return Err(AdmissionRefusal::Policy {
                field,
                ours,
                theirs,
            });
        }
        if hello.policy.host_mode == HostMode::Host
            && let Some(host) = self.host_other_than(peer)
        {
            return Err(AdmissionRefusal::Policy {
                field: "host_mode",
                ours: format!("Guest of {host}"),
                theirs: "Host".into(),
            });
        }
        if *peer == self.me {
            return Err(AdmissionRefusal::DuplicatePeerId(peer.clone()));
        }
        if self.is_kicked(peer, key) {
            return Err(AdmissionRefusal::Kicked(peer.clone()));
        }
        if self.has_ended(peer, key, hello.incarnation) {
            return Err(AdmissionRefusal::Ended);
        }
        if !self.election.admits(peer, key) {
            return Err(AdmissionRefusal::VoterKey(peer.clone()));
        }
        if self.looks_for_room(hello, key) && !by_own_hand {
            return Err(AdmissionRefusal::Looking);
        }
        let linked = self.membership.get(peer).is_some();
        if self.keeps_id(peer, key, hello.incarnation) {
            return Err(AdmissionRefusal::Bound(peer.clone()));
        }
        if !linked && self.membership.len() >= self.config.max_connections {
            let no_place = NoPlace::connections(self.config.max_connections);
            return Err(AdmissionRefusal::Full(no_place));
        }
        // What the other end says of itself lifts what a host did, and not what it did itself.
        let banned =
            self.bans.is_violator(now, key) || (self.bans.is_disconnected(peer) && !hello.by_hand);
        if banned && !by_own_hand {
            return Err(AdmissionRefusal::Banned(peer.clone()));
        }
        if !by_own_hand && !hello.by_hand && self.stays_apart(hello, key) {
            return Err(AdmissionRefusal::OtherRoom(peer.clone()));
        }
        Ok(())
    }

    /// Whether a message that `from` sent as leader with this token may be delivered. A newer leadership is adopted
    /// first, so poll the outputs before the message is delivered.
    pub fn accept_leader_message(&mut self, now: Time, from: &PeerId, token: &Opaque) -> bool {
        if self.membership.direct(from).is_none() {
            return false;
        }
        let accepted = self.election.judge(now, &self.view, from, token);
        let accepted = accepted.unwrap_or_else(|error| {
            self.punish(now, from, error);
            false
        });
        self.after(now);
        accepted
    }
}

impl Node {
    fn apply(&mut self, now: Time, input: Input) -> Result<(), CommandError> {
        match input {
            Input::Command(command) => return self.command(now, command),
            Input::Message { from, envelope } if self.unanswered_leaves.is_some() => {
                match envelope.message {
                    Message::LeaveAck => self.leave_answered(&from),
                    // Both leave: neither needs to wait for the other's answer.
                    Message::Leave { .. } => {
                        self.transmit(&from, Message::LeaveAck);
                        self.leave_answered(&from);
                    }
                    _ => {}
                }
            }
            Input::LinkDown { peer, .. } if self.unanswered_leaves.is_some() => {
                self.leave_answered(&peer);
            }
            // A leader resigns at an external store, which may take several requests.
            Input::Engine { call, answer } if self.unanswered_leaves.is_some() => {
                self.elect(now, Local::Engine { call, answer });
                self.departed();
            }
            Input::Persisted { number }
                if self.unanswered_leaves.is_some() && !self.election.has_left() =>
            {
                self.elect(now, Local::Persisted { number });
            }
            _ if self.unanswered_leaves.is_some() => {}
            Input::Tick => self.tick(now),
            Input::LinkReady {
                peer,
                key,
                incarnation,
            } => self.link_ready(now, &peer, key, incarnation),
            Input::LinkUp(link) => self.link_up(now, *link),
            Input::LinkDown { peer, why } => self.link_down(now, &peer, why),
            Input::SessionOver { peer, why } => self.session_over(now, &peer, why),
            Input::Join {
                ticket,
                candidate,
                invited,
            } => self.join(now, ticket, *candidate, invited),
            Input::JoinWithdrawn { ticket } => self.join_withdrawn(ticket),
            Input::Message { from, envelope } => self.message(now, &from, envelope),
            Input::Datagram { from, probe } => self.datagram(now, &from, probe),
            Input::Heard { peer } => self.heard(now, &peer),
            Input::DialFailed { peer, permanent } => {
                self.dial_failed(now, &peer, permanent);
            }
            Input::Persisted { number } => self.elect(now, Local::Persisted { number }),
            Input::Engine { call, answer } => self.elect(now, Local::Engine { call, answer }),
            Input::KickedOut => self.end_room(now, EndReason::Kicked, 0, Vec::new()),
            Input::HostSilentSince(since) => self.host.silent_since = since,
            Input::HostDialing(dialing) => self.host_dialing = dialing,
            Input::WallClock(since_1970) => {
                self.clock = WallClock::new(now, since_1970);
                self.elect(now, Local::SetClock(self.clock));
            }
        }
        Ok(())
    }

    /// Carries on what an input set off: the election's outputs, and the leader that the host is told.
    fn after(&mut self, now: Time) {
        debug_assert!({
            let members = self.membership.iter();
            let direct = members.filter(|(_, member)| !member.through_leader);
            self.view.voters.keys().eq(direct.map(|(id, _)| id))
        });
        self.take_turns(now);
        self.view.dialing = self.host_dialing || self.introductions.dialing().next().is_some();
        self.take_election_outputs(now);
        // What the new leader said before it was known to lead can end this room, and its leadership here with it.
        while self.leader() != self.told_leader.as_ref() {
            let new = self.leader().cloned();
            let leadership = self.election.leadership();
            let stamp = &leadership.record.stamp;
            let reason = match leadership.leader == new.as_ref() {
                true => leadership.reason,
                // The election goes by a leader to which there is no path any more.
                false => LeaderReason::Lost,
            };
            let change = LeaderChange {
                old: std::mem::replace(&mut self.told_leader, new.clone()),
                new,
                term: stamp.term,
                epoch: stamp.epoch.override_seq,
                reason,
            };
            self.note_arrival(now, &change);
            self.leader_learns_of_unlinked();
            self.event(Event::LeaderChanged(change));
            self.room_found(now);
            self.decider_changed(now);
            self.share_room_rules(now);
            self.take_election_outputs(now);
        }
    }

    fn take_election_outputs(&mut self, now: Time) {
        while let Some(output) = self.election.poll_output() {
            match output {
                // Without G11 it may write to one who is gone.
                ElectionOutput::Send { to, .. }
                    if !self.config.election.guards.fresh_view()
                        && self.membership.get(&to).is_none() => {}
                ElectionOutput::Send { to, message } => {
                    self.transmit(&to, Message::Election(message));
                }
                ElectionOutput::Persist { number, state } => {
                    self.outputs.push_back(Output::Persist { number, state });
                }
                ElectionOutput::StaleState { remembered, since } => {
                    let output = Output::StaleState { remembered, since };
                    self.outputs.push_back(output);
                }
                ElectionOutput::HeartbeatNow => self.heartbeat_all(now, true),
                ElectionOutput::DialSeeds(seeds) => {
                    self.outputs.push_back(Output::DialSeeds(seeds));
                }
                ElectionOutput::MemberState {
                    peer,
                    state,
                    version,
                } => self.event(Event::MemberState {
                    peer,
                    state,
                    version,
                }),
                ElectionOutput::SetLeaderResult { target, outcome } => {
                    self.event(Event::SetLeaderResult { target, outcome });
                }
                ElectionOutput::Engine { call, request } => {
                    self.outputs.push_back(Output::Engine { call, request });
                }
                ElectionOutput::LockResult {
                    request,
                    name,
                    outcome,
                } => self.event(Event::LockResult {
                    request,
                    name,
                    outcome,
                }),
                ElectionOutput::LockLost { name, token } => {
                    self.event(Event::LockLost { name, token });
                }
            }
        }
        self.note_leadership(now);
    }

    fn note_leadership(&mut self, now: Time) {
        let leadership = self.election.leadership();
        let Some(leader) = &leadership.record.leader else {
            return;
        };
        let incarnation = match *leader == self.me {
            // A record of an earlier incarnation may name this node.
            true => (leadership.leader == Some(&self.me)).then_some(self.incarnation),
            false => self.membership.get(leader).map(|member| member.incarnation),
        };
        let token = || self.election.followed_token();
        let is_linked = |peer: &PeerId| self.membership.get(peer).is_some();
        self.recent_leaders
            .note(now, leadership.record, incarnation, token, is_linked);
    }

    fn ping(&mut self, peer: &PeerId) {
        self.probes += 1;
        self.outputs.push_back(Output::Datagram {
            to: peer.clone(),
            probe: Probe::Ping { nonce: self.probes },
        });
    }

    fn heartbeat_all(&mut self, now: Time, urgent: bool) {
        for peer in self.membership.ids() {
            self.heartbeat(now, &peer, urgent);
        }
    }

    fn heartbeat(&mut self, now: Time, peer: &PeerId, urgent: bool) {
        let silent = self.host_silence(now);
        if let Some(member) = self.membership.get_mut(peer) {
            let pulse = match member.through_leader {
                true => Opaque::default(),
                false => self.election.pulse(now, &self.view, peer),
            };
            self.heartbeats += 1;
            let heartbeat = member.next_heartbeat(now, self.heartbeats, silent, pulse);
            self.transmit_with(peer, Message::Heartbeat(heartbeat), urgent);
        }
    }

    fn message(&mut self, now: Time, from: &PeerId, envelope: Envelope) {
        let Some(member) = self.membership.get_mut(from) else {
            return;
        };
        if envelope.incarnation != member.incarnation && self.config.election.guards.restart_grace()
        {
            return; // G9: of another incarnation
        }
        if let Message::Heartbeat(heartbeat) = &envelope.message
            && member.is_old_heartbeat(heartbeat.seq)
        {
            return;
        }
        member.heard(now);
        let through_leader = member.through_leader;
        self.binding_lives(from);
        if through_leader && !may_go_through_leader(&envelope.message) {
            return;
        }
        match envelope.message {
            Message::PeerList(entries) => self.introduced(now, from, entries),
            Message::Heartbeat(heartbeat) => self.heartbeat_received(now, from, heartbeat),
            Message::Leave { successor } => {
                self.transmit(from, Message::LeaveAck);
                self.end_session(now, from, SessionEnd::Left { successor });
            }
            Message::LeaveAck => {}
            Message::Election(message) => {
                let input = ElectionInput::Message {
                    from: from.clone(),
                    message,
                };
                self.elect_for(now, from, input);
            }
            Message::JoinRequest { request, candidate } => {
                self.join_requested(now, from, request, candidate);
            }
            Message::JoinAnswer { request, verdict } => {
                self.join_answered(now, from, request, verdict);
            }
            Message::JoinWithdrawn { request } => {
                let peer = from.clone();
                self.withdraw(&Asker::Member { peer, request });
            }
            Message::Admitted { entry, .. } => self.admitted(now, from, &entry),
            Message::Kicked {
                peer,
                key,
                code,
                bytes,
                ban,
            } => self.kicked(now, from, (peer, key), code, bytes, ban),
            Message::Unbanned(bans) => self.unbanned(now, from, bans),
            Message::Disconnected { code, bytes } => {
                self.disconnected(now, from, code, bytes);
            }
            Message::RoomRules(rules) => self.room_rules_received(now, from, rules),
            Message::Unlinked { peer, other } => self.unlinked_reported(from, peer, other),
            Message::UnlinkedLeft { peer } => self.unlinked_left(from, &peer),
            Message::Standing {
                eligible,
                priority,
                successor,
            } => self.standing(now, from, eligible, priority, successor),
        }
    }

    fn heartbeat_received(&mut self, now: Time, from: &PeerId, heartbeat: Heartbeat) {
        let Some(member) = self.membership.get_mut(from) else {
            return;
        };
        let answer = member.heartbeat_received(now, &heartbeat);
        if !member.through_leader {
            if let Some(voter) = self.view.voters.get_mut(from) {
                voter.rtt = member.rtt.smoothed();
            }
            let input = ElectionInput::Pulse {
                from: from.clone(),
                pulse: heartbeat.pulse,
            };
            self.elect_for(now, from, input);
            self.decider_heard(from);
        }
        self.note_host(from);
        if answer {
            self.heartbeat(now, from, false);
        }
        self.beat_with(now, from);
    }

    fn datagram(&mut self, now: Time, from: &PeerId, probe: Probe) {
        if self.membership.get(from).is_none() {
            return;
        }
        self.heard(now, from);
        if let Probe::Ping { nonce } = probe {
            self.outputs.push_back(Output::Datagram {
                to: from.clone(),
                probe: Probe::Pong { nonce },
            });
        }
    }

    fn heard(&mut self, now: Time, peer: &PeerId) {
        if let Some(member) = self.membership.get_mut(peer) {
            member.heard(now);
        }
        self.binding_lives(peer);
    }

    fn command(&mut self, now: Time, command: Command) -> Result<(), CommandError> {
        match command {
            Command::SetLeader(target) => {
                self.try_elect(now, Local::SetLeader { target })?;
            }
            Command::EnableAutoElection(enabled) => {
                self.try_elect(now, Local::EnableAuto(enabled))?;
            }
            Command::Disconnect { peer, .. } if peer == self.me => {
                return Err(CommandError::Oneself(peer));
            }
            Command::Disconnect { peer, code, bytes } => self.disconnect(now, &peer, code, bytes),
            Command::LiftBan(peer) => self.bans.lift_disconnection(&peer),
            Command::Pardon(key) => self.bans.pardon(key),
            Command::SetAutoReconnect(enabled) => self.set_auto_reconnect(now, enabled),
            Command::SetEligible(eligible) => self.set_eligible(now, eligible)?,
            Command::TransferLeadership(peer) => {
                let target = Some(peer);
                self.try_elect(now, Local::Transfer { target })?;
            }
            // Nobody else could take over, and the room ends with its host.
            Command::YieldLeadership if self.is_fixed() => return Err(CommandError::FixedHost),
            Command::YieldLeadership => {
                self.try_elect(now, Local::Transfer { target: None })?;
            }
            Command::SetPriority(priority) => self.set_priority(now, priority)?,
            Command::SetWindows(windows) => {
                self.try_elect(now, Local::SetWindows(windows))?;
            }
            Command::AskHost(ask) => self.config.ask_host = ask,
            Command::AnswerJoin { request, verdict } => {
                self.host_answers(now, request, verdict)?;
            }
            Command::Kick {
                peer,
                code,
                bytes,
                ban,
            } => self.kick(now, &peer, code, bytes, ban)?,
            Command::Unban(peer) => self.unban(now, &peer)?,
            Command::SetMaxPeers(max_peers) => self.set_max_peers(now, max_peers)?,
            Command::Proclaim(value) => self.try_elect(now, Local::Proclaim(value))?,
            Command::AcquireLock {
                request,
                name,
                wait,
            } => self.try_elect(
                now,
                Local::AcquireLock {
                    request,
                    name,
                    wait,
                },
            )?,
            Command::ReleaseLock(name) => self.try_elect(now, Local::ReleaseLock { name })?,
            Command::Leave => self.leave(now)?,
        }
        Ok(())
    }

    fn leave(&mut self, now: Time) -> Result<(), CommandError> {
        if self.unanswered_leaves.is_some() {
            return Ok(());
        }
        let successor = self.election.successor(&self.view);
        self.try_elect(now, Local::Leave)?;
        let peers = self.membership.ids();
        for peer in &peers {
            let successor = successor.clone();
            self.transmit(peer, Message::Leave { successor });
        }
        self.unanswered_leaves = Some(peers.into_iter().collect());
        self.departed();
        Ok(())
    }

    fn leave_answered(&mut self, peer: &PeerId) {
        if let Some(unanswered_leaves) = &mut self.unanswered_leaves
            && unanswered_leaves.remove(peer)
        {
            self.departed();
        }
    }

    fn departed(&mut self) {
        let unanswered = self.unanswered_leaves.as_ref();
        if unanswered.is_some_and(BTreeSet::is_empty) && self.election.has_left() {
            self.outputs.push_back(Output::Departed);
        }
    }

    /// Asks the election about something that no peer said; it cannot refuse that.
    fn elect(&mut self, now: Time, input: impl Into<OpaqueInput>) {
        let result = self.try_elect(now, input);
        debug_assert_eq!(result, Ok(()));
    }

    /// Asks the election about something that `from` said; a violation costs `from` its link, and a counter that is too
    /// large nothing: the word was a sign of life.
    fn elect_for(&mut self, now: Time, from: &PeerId, input: OpaqueInput) {
        if let Err(error) = self.try_elect(now, input) {
            self.punish(now, from, error);
        }
    }

    fn try_elect(&mut self, now: Time, input: impl Into<OpaqueInput>) -> Result<(), ElectionError> {
        let input = input.into();
        self.show_bans();
        #[cfg(feature = "laboratory")]
        if !self.config.election.guards.fresh_view() {
            let [last, before] = &mut self.lagging;
            if !last.voters.keys().eq(self.view.voters.keys()) {
                *before = std::mem::replace(last, self.view.clone());
            }
            return self.election.handle(now, before, input);
        }
        self.election.handle(now, &self.view, input)
    }

    fn punish(&mut self, now: Time, peer: &PeerId, error: ElectionError) {
        match error {
            ElectionError::Violation(what) => self.violation(now, peer, what),
            ElectionError::TooLarge { value, bound } => self.tell_drop(now, peer, value, bound),
            other => debug_assert!(false, "a peer's message gave {other}"),
        }
    }

    /// Something that `peer` said was dropped for a counter in it.
    fn tell_drop(&mut self, now: Time, peer: &PeerId, value: u64, bound: u64) {
        let told = self.drop_told_at;
        if told.is_some_and(|at| now.since(at) < DROPS_ARE_TOLD_EVERY) {
            return;
        }
        self.drop_told_at = Some(now);
        self.outputs.push_back(Output::Dropped {
            from: peer.clone(),
            value,
            bound,
        });
    }

    fn violation(&mut self, now: Time, peer: &PeerId, what: &'static str) {
        self.close(peer, LinkEnd::Violation(what));
        self.link_down(now, peer, LinkEnd::Violation(what));
    }

    fn transmit(&mut self, to: &PeerId, message: Message) {
        self.transmit_with(to, message, true);
    }

    fn transmit_with(&mut self, to: &PeerId, message: Message, urgent: bool) {
        let member = self.membership.get(to);
        if member.is_some_and(|member| member.through_leader) && !may_go_through_leader(&message) {
            return;
        }
        self.outputs.push_back(Output::Transmit {
            to: to.clone(),
            envelope: Envelope {
                incarnation: self.incarnation,
                message,
            },
            urgent,
        });
    }

    fn close(&mut self, peer: &PeerId, why: LinkEnd) {
        self.outputs.push_back(Output::Close {
            peer: peer.clone(),
            why,
        });
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }
}

/// What members say to each other on a link through the leader: signs of life and that they leave. The room's affairs they learn
/// from the leader.
fn may_go_through_leader(message: &Message) -> bool {
    matches!(
        message,
        Message::Heartbeat(_)
            | Message::Leave { .. }
            | Message::LeaveAck
            | Message::Disconnected { .. }
    )
}

fn entry_of((id, member): (&PeerId, &Member)) -> PeerEntry {
    PeerEntry {
        id: id.clone(),
        key: member.key,
        addresses: member.addresses.clone(),
    }
}

/// Adds what a member says of its own addresses to those at which it was seen.
fn merge_addresses(known: &mut Vec<SocketAddr>, told: &[SocketAddr]) {
    for address in told {
        if known.len() < MAX_PEER_ADDRESSES && !known.contains(address) {
            known.push(*address);
        }
    }
}

#[cfg(test)]
mod tests;
