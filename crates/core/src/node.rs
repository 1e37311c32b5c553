//! One member of a room: membership, introductions and the election.
//!
//! The contract: pass one [`Input`] with the time to [`Node::handle`]; call [`Node::poll_output`] until it returns
//! `None`; then ask [`Node::next_deadline`] and pass [`Input::Tick`] at that time at the latest. The caller owns links,
//! clocks and queues. It names only peers whose links are authenticated.

mod bans;
mod carriers;
mod closed_ports;
mod contract;
mod ending;
mod entry;
mod extra;
mod host;
mod joins;
mod links;
mod mapping;
mod merging;
mod observed;
mod punching;
mod relay;
mod relays;
mod room_rules;
mod timers;
mod unlinked;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use super::election::bound::WallClock;
use super::election::record::{Record, Stamp};
use super::election::{
    AnyElection, DownReason, ElectionError, ElectionInput, ElectionOutput, InvalidSavedState,
    LeaderReason, Local, OpaqueInput, Start, View, Voter,
};
use super::id::{Fingerprint, Incarnation, PeerId};
use super::introductions::Introductions;
use super::membership::{Member, Membership};
use super::pace::Pace;
use super::path::Path;
use super::path_search::Punching;
use super::room_time::{self, RoomTime};
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

pub use closed_ports::heeds_closed_ports;
pub use merging::Conflict;
pub use relay::{OriginIncarnation, Speaker};

pub use super::event::{EndReason, Event, LeaderChange, Left, LeftReason, Returned};
pub use contract::{
    AdmissionRefusal, Command, CommandError, Input, LinkEnd, LinkUp, MappingChange, NodeConfig,
    Output, RelayChange,
};
pub use host::HOST_SILENT_AFTER;

/// Minimum interval between reports of messages that were dropped for a counter.
const DROP_REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// A member of a room; see the module's text.
#[derive(Debug)]
pub struct Node {
    me: PeerId,
    incarnation: Incarnation,
    config: NodeConfig,
    clock: WallClock,
    /// Time of the last report of a dropped message.
    drop_reported_at: Option<Time>,
    election: AnyElection,
    membership: Membership,
    absent: BTreeMap<PeerId, Absent>,
    view: View,
    /// For runs without G11: the view, and the view before the last change of the membership.
    #[cfg(feature = "laboratory")]
    lagging: [View; 2],
    introductions: Introductions,
    carrying: carriers::Refusals,
    relays: relays::Relays,
    mapping: mapping::Mapping,
    /// Where a TURN server forwards to this node.
    turn_address: Option<SocketAddr>,
    closed_port: closed_ports::ClosedPort,
    pauses: punching::Pauses,
    lists: punching::Lists,
    /// Whether a link, the leader, or the knowledge of carriers has changed since the paths were last considered.
    paths_changed: bool,
    joins: Joins,
    merging: merging::Merging,
    unlinked: unlinked::Unlinked,
    room_rules: RoomRules,
    kicks: room_rules::Kicks,
    /// The room rules that members reported; at most one entry for each.
    rules_of: BTreeMap<PeerId, room_rules::Reported>,
    /// The pending deliveries of the room rules to members.
    deliveries: BTreeMap<PeerId, room_rules::Delivery>,
    /// Whether any of both may wait for its pace: most of the time none does.
    rules_wait: bool,
    /// The time at which this node began to lead, if it leads.
    leads_since: Time,
    /// The first stamp under which this incarnation led.
    led_first: Option<Stamp>,
    bans: Bans,
    host_dialing: bool,
    heartbeat_at: Time,
    /// Number of heartbeats sent, to any peer.
    heartbeats: u64,
    /// Members that the next news introduces to the others.
    news: BTreeSet<PeerId>,
    /// The time of the next news, if any.
    news_at: Option<Time>,
    reported_leader: Option<PeerId>,
    probes: u64,
    unanswered_leaves: Option<BTreeSet<PeerId>>,
    /// Whether the room is over for this node.
    ended: bool,
    host: host::Host,
    room_time: RoomTime,
    /// State of a node that joins a room and has not followed a leader yet.
    looking: Option<entry::Looking>,
    recent_leaders: relay::RecentLeaders,
    past_incarnations: relay::PastIncarnations,
    /// The leader's reason for kicking this node, as another member passed it on.
    reason_passed_on: Option<(PeerId, i32, Vec<u8>)>,
    outputs: VecDeque<Output>,
}

impl Node {
    /// A node that starts now, alone. `seed` determines all its random choices.
    ///
    /// A fixed host leads at once: poll the outputs of that with [`Node::poll_output`].
    ///
    /// # Errors
    /// [`InvalidSavedState`] if `config.saved` is not a state of the room's strategy.
    pub fn new(
        me: PeerId,
        incarnation: Incarnation,
        mut config: NodeConfig,
        seed: u64,
        now: Time,
    ) -> Result<Self, InvalidSavedState> {
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
        let election = AnyElection::start(now, start)?;
        let introductions = Introductions::new(now, config.reconnect, seed.rotate_left(32));
        let introductions = match config.election.policy.topology {
            Topology::Mesh => introductions,
            Topology::Star => introductions.without_addresses(),
        };
        let mut node = Self {
            election,
            clock,
            drop_reported_at: None,
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
            carrying: carriers::Refusals::default(),
            relays: relays::Relays::default(),
            mapping: mapping::Mapping::default(),
            turn_address: None,
            closed_port: closed_ports::ClosedPort::default(),
            pauses: punching::Pauses::default(),
            lists: punching::Lists::default(),
            paths_changed: false,
            joins: Joins::default(),
            merging: merging::Merging::default(),
            unlinked: unlinked::Unlinked::default(),
            room_rules: RoomRules::default(),
            kicks: room_rules::Kicks::default(),
            rules_of: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            rules_wait: false,
            leads_since: now,
            led_first: None,
            bans: Bans::default(),
            host_dialing: false,
            heartbeat_at: now + config.heartbeat_interval,
            heartbeats: 0,
            news: BTreeSet::new(),
            news_at: None,
            reported_leader: None,
            probes: 0,
            unanswered_leaves: None,
            ended: false,
            host: host::Host::default(),
            room_time: RoomTime::new(now),
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
    /// [`CommandError`] for a refused [`Input::Command`]; nothing has changed then. Other inputs never fail: a peer
    /// that breaks the protocol loses its link.
    pub fn handle(&mut self, now: Time, input: Input) -> Result<(), CommandError> {
        self.end_lapsed_leadership(now);
        let result = self.apply(now, input);
        self.after(now);
        result
    }

    /// An expired leader processes the expiry before the next input, so that it does not act as leader: its process may
    /// have slept.
    fn end_lapsed_leadership(&mut self, now: Time) {
        let until = self.election.leadership().valid_until;
        if until.is_some_and(|until| now >= until) {
            self.elect(now, Local::Tick);
            self.after(now);
        }
    }

    /// The next output; call it after every input until it returns `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The state of a node that has just started; it must be safe before the first output is carried out. `None` if the
    /// room's strategy stores nothing.
    pub fn first_state(&self) -> Option<Opaque> {
        self.election.durable()?.first_state()
    }

    /// Latest time for the next [`Input::Tick`].
    pub fn next_deadline(&self) -> Option<Time> {
        if self.unanswered_leaves.is_some() {
            return None;
        }
        Timer::ALL
            .into_iter()
            .filter_map(|timer| self.deadline(timer))
            .min()
    }

    /// The id of this node.
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

    /// Peers that are being dialled because others introduced them or because they were lost.
    pub fn dialing(&self) -> impl Iterator<Item = &PeerId> {
        self.introductions.dialing()
    }

    /// Whether too many dials at an address without an answer keep this node from the next one. For checks.
    pub fn has_used_up_dials(&self, address: SocketAddr) -> bool {
        self.introductions.has_used_up_dials(address)
    }

    /// The leader that the host sees; `None` if none is known, or if there is no path to it. The election may follow a
    /// leader that this node blocks, or for which no linked member vouches any more: it does not campaign then, but no
    /// message could reach that leader.
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

    /// Whether this node refuses links with any peer of that id and key, regardless of introductions.
    fn keeps_out(&self, peer: &PeerId, key: Option<Fingerprint>) -> bool {
        let is_key_blocked = |key| {
            let lost = self.absent.get(peer);
            self.is_kicked(peer, key)
                || self.bans.is_undialled_violator(key)
                || lost.is_some_and(|lost| lost.key != key)
        };
        self.bans.is_disconnected(peer)
            || self.is_name_kicked(peer)
            || key.is_some_and(is_key_blocked)
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

    /// Whether a linked peer may lead.
    pub fn is_eligible(&self, peer: &PeerId) -> bool {
        let voter = self.view.voters.get(peer);
        voter.is_some_and(|voter| voter.eligible)
    }

    /// The room's time, until the next input.
    pub fn room_time(&self) -> room_time::Line {
        self.room_time.line()
    }

    /// Whether the room is over for this node: it was kicked, or the fixed host has left.
    pub fn is_over(&self) -> bool {
        self.ended
    }

    /// The token in the messages that this node sends as leader; `None` unless it leads, and while a restart could undo
    /// that.
    pub fn leader_token(&self) -> Option<Opaque> {
        self.election.leader_token()
    }

    /// The token in this node's broadcasts to the leader that it follows.
    pub fn followed_token(&self) -> Opaque {
        self.election.followed_token()
    }

    /// The record that this node follows.
    pub fn record(&self) -> &Record {
        self.election.leadership().record
    }

    /// Members whose silence does not count at present: the relay that carried their links has fallen.
    #[cfg(any(test, feature = "laboratory"))]
    pub fn held(&self, now: Time) -> impl Iterator<Item = &PeerId> {
        let held = self.view.held.keys();
        held.filter(move |id| self.view.held_until(now, id).is_some())
    }

    /// The silent leader whose link is kept while the voters are asked.
    #[cfg(any(test, feature = "laboratory"))]
    pub fn doubted(&self) -> Option<&PeerId> {
        self.view.doubted.as_ref()
    }

    /// The number of the next heartbeat, taken for one that the laboratory forges in this node's name.
    #[cfg(any(test, feature = "laboratory"))]
    pub fn take_heartbeat_number(&mut self) -> u64 {
        self.heartbeats += 1;
        self.heartbeats
    }

    /// The election, for traces and checks.
    pub fn election(&self) -> &AnyElection {
        &self.election
    }

    /// The largest counter that this node accepts from another member now, for checks.
    pub fn counter_bound(&self, now: Time) -> u64 {
        self.clock.bound(now)
    }

    /// The election data for a Hello at `now`.
    pub fn side(&self, now: Time) -> Opaque {
        self.side_in_answer(now, now)
    }

    /// The election data for the answer to a Hello that arrived at `asked` and waited for the room's decision since.
    pub fn side_in_answer(&self, now: Time, asked: Time) -> Opaque {
        self.election.hello(now, &self.view, asked)
    }

    /// Checks a Hello of the holder of `key` before the room is asked ([`Input::Join`]). `by_own_hand` if this node's
    /// host asked for the link. Changes nothing.
    ///
    /// # Errors
    /// [`AdmissionRefusal`] with the reason for a refusal.
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
        // A Hello sent by hand lifts a disconnect by a host, but not the sender's own violation.
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

    /// Whether to deliver a message that `from` sent as leader with this token. A newer leadership is adopted first, so
    /// poll the outputs before delivering the message.
    pub fn accept_leader_message(&mut self, now: Time, from: &PeerId, token: &Opaque) -> bool {
        if self.membership.elector(from).is_none() {
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
                self.store_answered(now, call, answer);
                self.departed();
            }
            Input::Persisted { number }
                if self.unanswered_leaves.is_some() && !self.election.has_left() =>
            {
                self.persisted(now, number);
            }
            _ if self.unanswered_leaves.is_some() => {}
            Input::Tick => self.tick(now),
            Input::LinkReady {
                peer,
                key,
                incarnation,
            } => self.link_ready(now, &peer, key, incarnation),
            Input::LinkUp(link) => self.link_up(now, *link),
            Input::Relinked { peer } => self.relinked(now, &peer),
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
            Input::OtherData { peer } => self.mark_alive(now, &peer),
            Input::SeenAt {
                peer,
                address,
                came,
                through_turn,
            } => {
                self.note_turn(&peer, through_turn);
                self.seen_at(now, &peer, address, came);
            }
            Input::Refused { peer, sent } => self.refused(now, &peer, sent),
            Input::Answered { address } => self.introductions.answered(now, address),
            Input::CannotCarry { from, target } => self.report_not_carried(&from, target),
            Input::Relay { relay, change } => self.relay_changed(now, relay, change),
            Input::Mapping(change) => self.mapping_changed(now, change),
            Input::Turn(address) => self.turn_changed(now, address),
            Input::DialFailed { peer, permanent } => {
                self.dial_failed(now, &peer, permanent);
            }
            Input::Persisted { number } => self.persisted(now, number),
            Input::Engine { call, answer } => self.store_answered(now, call, answer),
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

    /// Handles the consequences of an input: the election's outputs, and a change of the leader.
    fn after(&mut self, now: Time) {
        debug_assert!({
            let members = |counts: bool| {
                let members = self.membership.iter();
                let of_kind =
                    members.filter(move |(_, it)| it.path.counts_in_elections() == counts);
                of_kind.map(|(id, _)| id)
            };
            let view = &self.view;
            let mut held = view.held.keys();
            view.voters.keys().eq(members(true))
                && view.carried.keys().eq(members(false))
                && held.all(|id| view.voters.contains_key(id))
        });
        self.keep_disputed_id(now);
        self.take_turns(now);
        self.view.dialing = self.host_dialing || self.introductions.dialing().next().is_some();
        self.take_election_outputs(now);
        self.end_doubt(now);
        // Messages that arrived from the new leader before it was known to lead can end this room, and with it the
        // leadership.
        while self.leader() != self.reported_leader.as_ref() {
            let new = self.leader().cloned();
            self.room_time.follow(now, &self.me, new.as_ref());
            let leadership = self.election.leadership();
            let stamp = &leadership.record.stamp;
            let reason = match leadership.leader == new.as_ref() {
                true => leadership.reason,
                // The election follows a leader to which there is no path any more.
                false => LeaderReason::Lost,
            };
            let change = LeaderChange {
                old: std::mem::replace(&mut self.reported_leader, new.clone()),
                new,
                term: stamp.term,
                epoch: stamp.epoch.override_seq,
                reason,
            };
            self.note_arrival(now, &change);
            self.report_unlinked_to_leader();
            self.event(Event::LeaderChanged(change));
            self.room_found(now);
            self.redirect_requests(now);
            self.share_room_rules(now);
            self.paths_changed = true;
            self.take_election_outputs(now);
        }
        self.choose_carriers(now);
    }

    fn take_election_outputs(&mut self, now: Time) {
        while let Some(output) = self.election.poll_output() {
            match output {
                // Without G11 it may write to a member that has gone away.
                ElectionOutput::Send { to, .. }
                    if !self.config.election.guards.fresh_view()
                        && self.membership.get(&to).is_none() => {}
                ElectionOutput::Send { to, message } => {
                    self.transmit(&to, Message::Election(message));
                }
                ElectionOutput::HeartbeatNow => self.announce(now),
                ElectionOutput::Question(leader) => self.question(now, &leader),
                ElectionOutput::SetLeaderResult { target, outcome } => {
                    self.event(Event::SetLeaderResult { target, outcome });
                }
                ElectionOutput::Extra(extra) => self.carry_out_extra(extra),
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

    /// Sends a heartbeat to all that may follow. The claim of a few members would depose a leader in doubt that still has a
    /// majority; its link ends with this input.
    fn announce(&mut self, now: Time) {
        let leads = self.leader() == Some(&self.me);
        let doubted = self.view.doubted.clone().filter(|_| leads);
        for peer in self.membership.ids() {
            if doubted.as_ref() != Some(&peer) {
                self.heartbeat(now, &peer, true);
            }
        }
    }

    fn heartbeat_all(&mut self, now: Time) {
        for peer in self.membership.ids() {
            self.heartbeat(now, &peer, false);
        }
    }

    fn heartbeat(&mut self, now: Time, peer: &PeerId, urgent: bool) {
        let silent = self.host_silence(now);
        if let Some(member) = self.membership.get_mut(peer) {
            let pulse = match member.path.counts_in_elections() {
                true => self.election.pulse(now, &self.view, peer),
                false => Opaque::default(),
            };
            self.heartbeats += 1;
            let room_time = self.room_time.line().at(now);
            let heartbeat = member.next_heartbeat(now, self.heartbeats, silent, pulse, room_time);
            self.transmit_with(peer, Message::Heartbeat(heartbeat), urgent);
        }
    }

    fn message(&mut self, now: Time, from: &PeerId, envelope: Envelope) {
        let Some(member) = self.membership.get_mut(from) else {
            return;
        };
        if envelope.incarnation != member.incarnation && self.config.election.guards.restart_grace()
        {
            return; // G9: from another incarnation
        }
        if let Message::Heartbeat(heartbeat) = &envelope.message
            && member.is_old_heartbeat(heartbeat.seq)
        {
            return;
        }
        let path = member.path;
        self.mark_alive(now, from);
        if !may_travel(&envelope.message, path) {
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
            Message::Observed { address } => self.observed(now, from, address),
            Message::Addresses(addresses) => self.addresses_received(now, from, addresses),
            Message::Punch { round, is_answer } => self.punch(now, from, round, is_answer),
            Message::CannotCarry { target } => self.not_carried(now, from, target),
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
        let received = member.heartbeat_received(now, &heartbeat);
        if let (Some(sent_us), Some(round_trip)) = (heartbeat.room_time_us, received.round_trip) {
            let taken_at = member.lifted_time_at;
            let may_lift = taken_at.is_none_or(|at| now.since(at) >= room_time::MEMBER_INTERVAL);
            let time = &mut self.room_time;
            if time.received(now, from, sent_us, round_trip, may_lift) {
                member.lifted_time_at = Some(now);
            }
        }
        if member.path.counts_in_elections() {
            if let Some(voter) = self.view.voters.get_mut(from) {
                voter.rtt = member.rtt.smoothed();
            }
            let input = ElectionInput::Pulse {
                from: from.clone(),
                pulse: heartbeat.pulse,
            };
            self.elect_for(now, from, input);
            self.ask_decider_again(from);
        }
        self.note_host(from);
        if received.is_first {
            self.heartbeat(now, from, false);
        }
        self.join_pacemaker(now, from);
    }

    fn datagram(&mut self, now: Time, from: &PeerId, probe: Probe) {
        if self.membership.get(from).is_none() {
            return;
        }
        self.mark_alive(now, from);
        match probe {
            Probe::Ping { nonce } => self.outputs.push_back(Output::Datagram {
                to: from.clone(),
                probe: Probe::Pong { nonce },
            }),
            Probe::Pong { .. } => {}
            Probe::SilentRelay { relay } => self.relay_is_silent_for(now, from, relay),
        }
    }

    fn mark_alive(&mut self, now: Time, peer: &PeerId) {
        if self
            .view
            .doubted
            .take_if(|doubted| doubted == peer)
            .is_some()
        {
            self.elect(now, Local::Tick);
        }
        let member = self.membership.get_mut(peer);
        if member.as_ref().is_some_and(|it| it.failed_probe) {
            self.joins.answered_late = Some(peer.clone());
        }
        if member.is_some_and(|member| member.mark_alive(now)) {
            // It is as alive as after a heartbeat, which follows.
            let until = now + self.config.election.heartbeat_timeout;
            self.view.held.insert(peer.clone(), until);
            self.elect(now, Local::Tick);
        }
        self.binding_confirmed(peer);
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
            // No other member could take over, and the room ends with its host.
            Command::YieldLeadership if self.is_fixed() => return Err(CommandError::FixedHost),
            Command::YieldLeadership => {
                self.try_elect(now, Local::Transfer { target: None })?;
            }
            Command::SetPriority(priority) => self.set_priority(now, priority)?,
            Command::SetWindows(windows) => {
                self.ask_election(|election, view| election.set_windows(view, windows));
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
            Command::Proclaim(value) => self.proclaim(now, value)?,
            Command::AcquireLock {
                request,
                name,
                wait,
            } => self.acquire_lock(now, request, &name, wait)?,
            Command::ReleaseLock(name) => self.release_lock(now, &name)?,
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

    /// Passes a local input to the election, which cannot refuse it.
    fn elect(&mut self, now: Time, input: impl Into<OpaqueInput>) {
        let result = self.try_elect(now, input);
        debug_assert_eq!(result, Ok(()));
    }

    /// Passes a peer's message to the election. A violation costs `from` its link. A counter that is too large does
    /// not: the message was a sign of life.
    fn elect_for(&mut self, now: Time, from: &PeerId, input: OpaqueInput) {
        if let Err(error) = self.try_elect(now, input) {
            self.punish(now, from, error);
        }
    }

    fn try_elect(&mut self, now: Time, input: impl Into<OpaqueInput>) -> Result<(), ElectionError> {
        let input = input.into();
        self.ask_election(|election, view| election.handle(now, view, input))
    }

    /// Calls the election with its view of the membership.
    fn ask_election<R>(&mut self, ask: impl FnOnce(&mut AnyElection, &View) -> R) -> R {
        self.show_bans();
        #[cfg(feature = "laboratory")]
        if !self.config.election.guards.fresh_view() {
            let [last, before] = &mut self.lagging;
            if !last.voters.keys().eq(self.view.voters.keys()) {
                *before = std::mem::replace(last, self.view.clone());
            }
            return ask(&mut self.election, before);
        }
        ask(&mut self.election, &self.view)
    }

    fn punish(&mut self, now: Time, peer: &PeerId, error: ElectionError) {
        match error {
            ElectionError::Violation(what) => self.violation(now, peer, what),
            ElectionError::TooLarge { value, bound } => self.report_drop(now, peer, value, bound),
            other => debug_assert!(false, "a peer's message gave {other}"),
        }
    }

    /// Reports a dropped message of `peer`, with the counter that was too large.
    fn report_drop(&mut self, now: Time, peer: &PeerId, value: u64, bound: u64) {
        let reported = self.drop_reported_at;
        if reported.is_some_and(|at| now.since(at) < DROP_REPORT_INTERVAL) {
            return;
        }
        self.drop_reported_at = Some(now);
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
        if member.is_some_and(|member| !may_travel(&message, member.path)) {
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

/// Whether members exchange `message` over a link of that path. Where the link does not count in elections, they exchange only
/// signs of life and leave notices, and learn the room's affairs from the leader.
fn may_travel(message: &Message, path: Path) -> bool {
    path.counts_in_elections()
        || matches!(
            message,
            Message::Heartbeat(_)
                | Message::Leave { .. }
                | Message::LeaveAck
                | Message::Disconnected { .. }
                | Message::Addresses(_)
                | Message::Punch { .. }
        )
}

/// The introduction of a member. One that is reached over a relay has no address that others can dial.
fn entry_of((id, member): (&PeerId, &Member)) -> PeerEntry {
    PeerEntry {
        id: id.clone(),
        key: member.key,
        addresses: member.addresses.clone(),
    }
}

/// Adds a member's addresses according to itself to the ones at which it was seen.
fn merge_addresses(known: &mut Vec<SocketAddr>, reported: &[SocketAddr]) {
    for address in reported {
        if known.len() < MAX_PEER_ADDRESSES && !known.contains(address) {
            known.push(*address);
        }
    }
}

#[cfg(test)]
mod tests;
