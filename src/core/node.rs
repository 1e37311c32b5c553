//! One member of a room: membership, introductions and the election, joined.
//!
//! The contract: [`Node::handle`] one [`Input`] with the time; then [`Node::poll_output`] until it gives
//! `None`; then ask [`Node::next_deadline`] and come back with [`Input::Tick`] at that time at the latest.
//! Links, clocks and queues are the caller's. Peers are named only after their link was authenticated.

mod contract;
mod relay;

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use super::election::raft::{Raft, RaftConfig};
use super::election::record::{Record, Stamp};
use super::election::{Election, ElectionError, ElectionInput, ElectionOutput, Gone, View, Voter};
use super::id::{Fingerprint, Incarnation, PeerId};
use super::introductions::Introductions;
use super::membership::{Due, Member, Membership};
use super::time::Time;
use super::wire::{
    Envelope, Heartbeat, Hello, MAX_PEER_ADDRESSES, MAX_PEER_LIST_ENTRIES, Message, PeerEntry,
    Probe, Side,
};

pub use contract::{
    AdmissionRefusal, Command, CommandError, Event, Input, LeftReason, LinkEnd, LinkUp, NodeConfig,
    Output,
};

/// Peers that the host disconnected and that are remembered, at most.
const MAX_BARRED: usize = 1024;

/// See the module's text.
#[derive(Debug)]
pub struct Node {
    me: PeerId,
    incarnation: Incarnation,
    config: NodeConfig,
    election: Raft,
    membership: Membership,
    view: View,
    introductions: Introductions,
    barred: BTreeSet<PeerId>,
    host_dialing: bool,
    heartbeat_at: Time,
    told_leader: Option<PeerId>,
    probes: u64,
    farewells: Option<BTreeSet<PeerId>>,
    recent_records: relay::RecentRecords,
    outputs: VecDeque<Output>,
}

impl Node {
    /// A node that starts now, alone. `seed` decides every random choice that it will make.
    pub fn new(
        me: PeerId,
        incarnation: Incarnation,
        config: NodeConfig,
        seed: u64,
        now: Time,
    ) -> Self {
        let config = config.with_effective_timeouts();
        let raft = RaftConfig {
            heartbeat_timeout: config.heartbeat_timeout,
            election_timeout_min: config.election_timeout_min,
            election_timeout_max: config.election_timeout_max,
            merge: config.policy.merge,
            authority: config.policy.authority,
            recovery: config.recovery,
            auto_election: config.auto_election,
            eligible: config.eligible,
            priority: config.priority,
        };
        Self {
            election: Raft::new(me.clone(), incarnation, raft, seed, now),
            me,
            incarnation,
            membership: Membership::new(config.heartbeat_interval, config.heartbeat_timeout),
            view: View::default(),
            introductions: Introductions::new(now),
            barred: BTreeSet::new(),
            host_dialing: false,
            heartbeat_at: now + config.heartbeat_interval,
            told_leader: None,
            probes: 0,
            farewells: None,
            recent_records: relay::RecentRecords::default(),
            outputs: VecDeque::new(),
            config,
        }
    }

    /// Takes one input.
    ///
    /// # Errors
    /// [`CommandError`] for a refused [`Input::Command`]; nothing has changed then. Other inputs never fail:
    /// a peer that breaks the protocol loses its link.
    pub fn handle(&mut self, now: Time, input: Input) -> Result<(), CommandError> {
        let result = self.apply(now, input);
        self.after(now);
        result
    }

    /// What to do next; call until `None` after every input.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to come back with [`Input::Tick`] at the latest.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.farewells.is_some() {
            return None;
        }
        let heartbeat = (!self.membership.is_empty()).then_some(self.heartbeat_at);
        [
            heartbeat,
            self.membership.next_deadline(),
            self.introductions.next_deadline(),
            self.election.next_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The name of this node.
    pub fn id(&self) -> &PeerId {
        &self.me
    }

    /// The life of this node.
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

    /// Who leads, as the host is shown; `None` while nobody is known to.
    pub fn leader(&self) -> Option<&PeerId> {
        self.election.leader()
    }

    /// Whether this node leads.
    pub fn is_leader(&self) -> bool {
        self.election.leader() == Some(&self.me)
    }

    /// The record that stamps what this node sends as leader.
    pub fn leader_stamp(&self) -> Option<&Record> {
        self.election.leader_stamp()
    }

    /// The election, for checks.
    pub fn election(&self) -> &Raft {
        &self.election
    }

    /// What a Hello of this moment says about leadership.
    pub fn side(&self, now: Time) -> Side {
        self.election.side(now, &self.view)
    }

    /// Whether a dialler with this Hello and key may be linked. Changes nothing.
    ///
    /// # Errors
    /// [`AdmissionRefusal`] says what stands against it.
    pub fn check_hello(&self, hello: &Hello, key: Fingerprint) -> Result<(), AdmissionRefusal> {
        if self.farewells.is_some() {
            return Err(AdmissionRefusal::Leaving);
        }
        if let Some((field, ours, theirs)) = self.config.policy.difference(&hello.policy) {
            return Err(AdmissionRefusal::Policy {
                field,
                ours,
                theirs,
            });
        }
        if hello.peer_id == self.me {
            return Err(AdmissionRefusal::DuplicatePeerId(hello.peer_id.clone()));
        }
        match self.membership.get(&hello.peer_id) {
            Some(member) if member.key != key || hello.incarnation < member.incarnation => {
                return Err(AdmissionRefusal::DuplicatePeerId(hello.peer_id.clone()));
            }
            Some(_) => {}
            None if self.membership.len() >= self.config.max_connections => {
                return Err(AdmissionRefusal::Full(self.membership.len()));
            }
            None => {}
        }
        if self.barred.contains(&hello.peer_id) && !hello.by_hand {
            return Err(AdmissionRefusal::Barred(hello.peer_id.clone()));
        }
        Ok(())
    }

    /// Whether a message that `from` sent as leader under `record` may be delivered. A newer record is taken
    /// over first, so poll the outputs before the message is delivered.
    pub fn accept_leader_message(&mut self, now: Time, from: &PeerId, record: &Record) -> bool {
        if self.membership.get(from).is_none() {
            return false;
        }
        let accepted = self
            .election
            .accept_leader_message(now, &self.view, from, record);
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
            Input::Message { from, envelope } if self.farewells.is_some() => {
                match envelope.message {
                    Message::LeaveAck => self.farewell_answered(&from),
                    // Both leave: neither needs to wait for the other's answer.
                    Message::Leave { .. } => {
                        self.transmit(&from, Message::LeaveAck);
                        self.farewell_answered(&from);
                    }
                    _ => {}
                }
            }
            Input::LinkDown { peer, .. } if self.farewells.is_some() => {
                self.farewell_answered(&peer);
            }
            _ if self.farewells.is_some() => {}
            Input::Tick => self.tick(now),
            Input::LinkUp(link) => self.link_up(now, *link),
            Input::LinkDown { peer, why } => self.link_down(now, &peer, why),
            Input::Message { from, envelope } => self.message(now, &from, envelope),
            Input::Datagram { from, probe } => self.datagram(now, &from, probe),
            Input::Heard { peer } => self.heard(now, &peer),
            Input::DialFailed { peer, hopeless } => {
                self.introductions.dial_failed(now, &peer, hopeless);
            }
            Input::HostDialing(dialing) => self.host_dialing = dialing,
        }
        Ok(())
    }

    /// Carries on what an input set off: the election's outputs, and the leader that the host is told.
    fn after(&mut self, now: Time) {
        self.view.dialing = self.host_dialing || self.introductions.dialing().next().is_some();
        while let Some(output) = self.election.poll_output() {
            match output {
                ElectionOutput::Send { to, stamp, message } => {
                    self.transmit_at(&to, stamp, Message::Election(message));
                }
                ElectionOutput::HeartbeatNow => self.heartbeat_all(now),
                ElectionOutput::SetLeaderResult { target, outcome } => {
                    self.event(Event::SetLeaderResult { target, outcome });
                }
            }
        }
        self.recent_records.note(self.election.record());
        if self.election.leader() != self.told_leader.as_ref() {
            self.told_leader = self.election.leader().cloned();
            self.event(Event::LeaderChanged(self.told_leader.clone()));
        }
    }

    fn tick(&mut self, now: Time) {
        for due in self.membership.due(now) {
            match due {
                Due::Probe(peer) => {
                    self.probes += 1;
                    let nonce = self.probes;
                    self.outputs.push_back(Output::Datagram {
                        to: peer,
                        probe: Probe::Ping { nonce },
                    });
                }
                Due::Lost(peer) => {
                    self.close(&peer, LinkEnd::Silent);
                    self.link_down(now, &peer, LinkEnd::Silent);
                }
            }
        }
        if now >= self.heartbeat_at {
            self.heartbeat_at = now + self.config.heartbeat_interval;
            self.heartbeat_all(now);
            self.election.heartbeat_sent();
        }
        for dial in self.introductions.due(now) {
            self.outputs.push_back(Output::Dial(dial));
        }
        self.elect(now, ElectionInput::Tick);
    }

    fn heartbeat_all(&mut self, now: Time) {
        for peer in self.membership.ids() {
            self.heartbeat(now, &peer);
        }
    }

    fn heartbeat(&mut self, now: Time, peer: &PeerId) {
        let pulse = self.election.pulse(now, &self.view);
        if let Some(member) = self.membership.get_mut(peer) {
            let heartbeat = member.next_heartbeat(now, pulse);
            self.transmit(peer, Message::Heartbeat(heartbeat));
        }
    }

    fn link_up(&mut self, now: Time, link: LinkUp) {
        let peer = link.peer;
        if self.membership.get(&peer).is_some() {
            // The caller ends a session before it begins the next.
            self.link_down(now, &peer, LinkEnd::Replaced);
        }
        self.introductions.forget(&peer);
        let known: Vec<_> = self.membership.iter().map(entry_of).collect();
        let mut member = Member::new(link.incarnation, link.key, link.addresses, now);
        member.addresses.truncate(MAX_PEER_ADDRESSES);
        let newcomer = entry_of((&peer, &member));
        self.membership.insert(peer.clone(), member);
        self.view.voters.insert(
            peer.clone(),
            Voter {
                incarnation: link.incarnation,
                eligible: link.eligible,
                priority: link.priority,
                rtt: None,
            },
        );
        self.event(Event::Joined(peer.clone()));

        let myself = PeerEntry {
            id: self.me.clone(),
            key: self.config.key,
            addresses: self.config.addresses.clone(),
        };
        let mut list = vec![myself];
        list.extend(known);
        for part in list.chunks(MAX_PEER_LIST_ENTRIES) {
            self.transmit(&peer, Message::PeerList(part.to_vec()));
        }
        for other in self.membership.ids() {
            if other != peer {
                self.transmit(&other, Message::PeerList(vec![newcomer.clone()]));
            }
        }
        let violation = self.try_elect(
            now,
            ElectionInput::PeerUp {
                peer: peer.clone(),
                ours: link.ours,
                theirs: link.theirs,
            },
        );
        self.heartbeat(now, &peer);
        if let Err(error) = violation {
            self.punish(now, &peer, error);
        }
    }

    fn link_down(&mut self, now: Time, peer: &PeerId, why: LinkEnd) {
        if matches!(why, LinkEnd::Disconnected | LinkEnd::Violation(_)) {
            self.bar(peer);
        }
        let (gone, reason) = match why {
            LinkEnd::Closed => (Gone::Closed, LeftReason::Lost),
            LinkEnd::Silent => (Gone::Silent, LeftReason::Lost),
            // These end a link, not a life: the others' word of it still counts (G3).
            LinkEnd::Disconnected => (Gone::Silent, LeftReason::Disconnected),
            LinkEnd::Violation(_) => (Gone::Silent, LeftReason::Violation),
            LinkEnd::Replaced => (Gone::Closed, LeftReason::Replaced),
        };
        self.remove(now, peer, gone, reason);
    }

    /// Takes a peer out of membership and election, and tells the host.
    fn remove(&mut self, now: Time, peer: &PeerId, gone: Gone, why: LeftReason) {
        let Some(member) = self.membership.remove(peer) else {
            return;
        };
        self.view.voters.remove(peer);
        if why == LeftReason::Lost && self.config.auto_reconnect {
            self.introductions
                .lost(now, peer, member.key, &member.addresses);
        } else {
            self.introductions.forget(peer);
        }
        self.event(Event::Left {
            peer: peer.clone(),
            why,
        });
        self.elect(
            now,
            ElectionInput::PeerDown {
                peer: peer.clone(),
                incarnation: member.incarnation,
                why: gone,
            },
        );
    }

    fn message(&mut self, now: Time, from: &PeerId, envelope: Envelope) {
        let Some(member) = self.membership.get_mut(from) else {
            return;
        };
        if envelope.incarnation != member.incarnation {
            return; // G9: of another life
        }
        member.heard(now);
        match envelope.message {
            Message::PeerList(entries) => self.introduced(now, from, entries),
            Message::Heartbeat(heartbeat) => self.heartbeat_received(now, from, heartbeat),
            Message::Leave { successor } => {
                self.transmit(from, Message::LeaveAck);
                self.remove(now, from, Gone::Left { successor }, LeftReason::Left);
            }
            Message::LeaveAck => {}
            Message::Election(message) => {
                let input = ElectionInput::Message {
                    from: from.clone(),
                    stamp: envelope.stamp,
                    message,
                };
                self.elect_for(now, from, input);
            }
        }
    }

    fn introduced(&mut self, now: Time, from: &PeerId, entries: Vec<PeerEntry>) {
        let too_long = entries.len() > MAX_PEER_LIST_ENTRIES
            || entries
                .iter()
                .any(|entry| entry.addresses.len() > MAX_PEER_ADDRESSES);
        if too_long {
            self.violation(now, from, "a peer list is longer than allowed");
            return;
        }
        for entry in entries {
            if entry.id == *from {
                if let Some(member) = self.membership.get_mut(from) {
                    merge_addresses(&mut member.addresses, &entry.addresses);
                }
            } else if entry.id != self.me
                && entry.key != self.config.key
                && self.membership.get(&entry.id).is_none()
                && !self.barred.contains(&entry.id)
                && self.membership.len() < self.config.max_connections
            {
                self.introductions.introduce(now, &self.me, &entry);
            }
        }
    }

    fn heartbeat_received(&mut self, now: Time, from: &PeerId, heartbeat: Heartbeat) {
        let Some(member) = self.membership.get_mut(from) else {
            return;
        };
        let answer = member.heartbeat_received(now, heartbeat.seq, heartbeat.echo);
        if let Some(voter) = self.view.voters.get_mut(from) {
            voter.rtt = member.rtt.smoothed();
        }
        let input = ElectionInput::Pulse {
            from: from.clone(),
            pulse: heartbeat.pulse,
        };
        self.elect_for(now, from, input);
        if answer {
            self.heartbeat(now, from);
        }
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
    }

    fn command(&mut self, now: Time, command: Command) -> Result<(), CommandError> {
        match command {
            Command::SetLeader(target) => {
                self.try_elect(now, ElectionInput::SetLeader { target })?;
            }
            Command::EnableAutoElection(enabled) => {
                self.try_elect(now, ElectionInput::EnableAuto(enabled))?;
            }
            Command::Disconnect(peer) if peer == self.me => {
                return Err(CommandError::OneselfDisconnected(peer));
            }
            Command::Disconnect(peer) => {
                self.introductions.forget(&peer);
                if self.membership.get(&peer).is_some() {
                    self.close(&peer, LinkEnd::Disconnected);
                    self.link_down(now, &peer, LinkEnd::Disconnected);
                } else {
                    self.bar(&peer);
                }
            }
            Command::Unbar(peer) => {
                self.barred.remove(&peer);
            }
            Command::Leave => self.leave(now)?,
        }
        Ok(())
    }

    fn leave(&mut self, now: Time) -> Result<(), CommandError> {
        if self.farewells.is_some() {
            return Ok(());
        }
        let successor = self.election.successor(&self.view);
        self.try_elect(now, ElectionInput::Leave)?;
        let peers = self.membership.ids();
        for peer in &peers {
            let successor = successor.clone();
            self.transmit(peer, Message::Leave { successor });
        }
        self.farewells = Some(peers.into_iter().collect());
        self.departed();
        Ok(())
    }

    fn farewell_answered(&mut self, peer: &PeerId) {
        if let Some(farewells) = &mut self.farewells
            && farewells.remove(peer)
        {
            self.departed();
        }
    }

    fn departed(&mut self) {
        if self.farewells.as_ref().is_some_and(BTreeSet::is_empty) {
            self.outputs.push_back(Output::Departed);
        }
    }

    /// Asks the election about something that no peer said; it cannot refuse that.
    fn elect(&mut self, now: Time, input: ElectionInput) {
        let result = self.try_elect(now, input);
        debug_assert_eq!(result, Ok(()));
    }

    /// Asks the election about something that `from` said; a violation costs `from` its link.
    fn elect_for(&mut self, now: Time, from: &PeerId, input: ElectionInput) {
        if let Err(error) = self.try_elect(now, input) {
            self.punish(now, from, error);
        }
    }

    fn try_elect(&mut self, now: Time, input: ElectionInput) -> Result<(), ElectionError> {
        self.election.handle(now, &self.view, input)
    }

    fn punish(&mut self, now: Time, peer: &PeerId, error: ElectionError) {
        match error {
            ElectionError::Violation(what) => self.violation(now, peer, what),
            other => debug_assert!(false, "a peer's message gave {other}"),
        }
    }

    fn violation(&mut self, now: Time, peer: &PeerId, what: &'static str) {
        self.close(peer, LinkEnd::Violation(what));
        self.link_down(now, peer, LinkEnd::Violation(what));
    }

    fn bar(&mut self, peer: &PeerId) {
        self.introductions.forget(peer);
        if self.barred.len() >= MAX_BARRED && !self.barred.contains(peer) {
            self.barred.pop_first();
        }
        self.barred.insert(peer.clone());
    }

    fn transmit(&mut self, to: &PeerId, message: Message) {
        let stamp = self.election.record().stamp.clone();
        self.transmit_at(to, stamp, message);
    }

    fn transmit_at(&mut self, to: &PeerId, stamp: Stamp, message: Message) {
        self.outputs.push_back(Output::Transmit {
            to: to.clone(),
            envelope: Envelope {
                incarnation: self.incarnation,
                stamp,
                message,
            },
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
