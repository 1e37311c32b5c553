//! Derivation of trace entries from the inputs and outputs of a node.

use std::collections::BTreeMap;

use super::{Entry, Header, Role, Said, VERSION, What, Word};
use crate::election::record::Record;
use crate::election::seeded::MemberState;
use crate::election::{self, AssignOutcome, Description, LeaderReason};
use crate::id::PeerId;
use crate::node::{
    Command, CommandError, Conflict, EndReason, Event, Input, LeftReason, LinkEnd, Node, Output,
};
use crate::time::Time;
use crate::wire::{Message, Probe, Verdict};

/// Number of messages on a link, per direction.
#[derive(Debug, Default)]
struct Counts {
    sent: u64,
    received: u64,
}

/// Derives entries from a node's inputs and outputs.
///
/// For each input: [`Tracer::input`] before [`Node::handle`], [`Tracer::refused`] if that failed, then
/// [`Tracer::state`], then [`Tracer::output`] for every output. [`Tracer::take`] returns the entries.
#[derive(Debug)]
pub struct Tracer {
    origin: Time,
    routine: u64,
    role: Option<Role>,
    record: Option<Record>,
    voted_for: Option<PeerId>,
    links: BTreeMap<PeerId, Counts>,
    entries: Vec<Entry>,
}

impl Tracer {
    /// A tracer of a node that starts now; `routine` as in [`Header::routine`].
    pub fn new(now: Time, node: &Node, routine: u64) -> Self {
        let mut tracer = Self {
            origin: now,
            routine: routine.max(1),
            role: None,
            record: None,
            voted_for: None,
            links: BTreeMap::new(),
            entries: Vec::new(),
        };
        tracer.state(now, node);
        tracer
    }

    /// The header of this incarnation of `node`.
    pub fn header(&self, node: &Node, origin_us: u64, by: &'static str) -> Header {
        let incarnation = node.incarnation();
        Header {
            trace: VERSION,
            peer: Some(node.id().clone()),
            incarnation: Some(format!(
                "{}-{:016x}",
                incarnation.started_us, incarnation.random
            )),
            origin_us,
            routine: self.routine,
            by: by.into(),
            seed: None,
        }
    }

    /// The entries since the last call.
    pub fn take(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.entries)
    }

    /// Adds an entry that only the caller knows.
    pub fn add(&mut self, now: Time, what: What) {
        let at = now.as_micros().saturating_sub(self.origin.as_micros());
        self.entries.push(Entry { at, what });
    }

    /// Records an input before the node handles it.
    pub fn input(&mut self, now: Time, node: &Node, input: &Input) {
        let what = match input {
            Input::Tick
            | Input::OtherData { .. }
            | Input::SeenAt { .. }
            | Input::Refused { .. }
            | Input::Answered { .. }
            | Input::CannotCarry { .. }
            | Input::Relay { .. }
            | Input::Mapping(_)
            | Input::Turn(_)
            | Input::HostDialing(_)
            | Input::HostSilentSince(_)
            | Input::WallClock(_)
            | Input::Engine { .. } => {
                return;
            }
            // Their consequences are in the trace themselves.
            Input::LinkReady { .. } | Input::Relinked { .. } | Input::JoinWithdrawn { .. } => {
                return;
            }
            Input::LinkUp(link) => {
                self.links.insert(link.peer.clone(), Counts::default());
                What::LinkUp {
                    peer: link.peer.clone(),
                }
            }
            Input::LinkDown { peer, why } => {
                self.links.remove(peer);
                What::LinkDown {
                    peer: peer.clone(),
                    why: link_end(*why),
                }
            }
            Input::SessionOver { peer, why } => What::LinkDown {
                peer: peer.clone(),
                why: left_reason(*why),
            },
            Input::Join {
                ticket, candidate, ..
            } => What::Join {
                peer: candidate.entry.id.clone(),
                ticket: *ticket,
            },
            Input::Message { from, envelope } => {
                let counts = self.links.entry(from.clone()).or_default();
                counts.received += 1;
                let n = counts.received;
                let Some(said) = self.said(node, n, &envelope.message) else {
                    return;
                };
                What::Received {
                    from: from.clone(),
                    said,
                }
            }
            Input::Datagram { from, probe } => What::Received {
                from: from.clone(),
                said: probed(*probe),
            },
            Input::DialFailed { peer, .. } => What::DialFailed { peer: peer.clone() },
            Input::KickedOut => What::RoomEnded {
                why: "kicked".into(),
            },
            Input::Persisted { number } => What::Persisted { number: *number },
            Input::Command(command) => commanded(command),
        };
        self.add(now, what);
    }

    /// Records the node's refusal of a command.
    pub fn refused(&mut self, now: Time, error: &CommandError) {
        let error = error.to_string();
        self.add(now, What::Refused { error });
    }

    /// Notes the node's state after an input, if it has changed.
    pub fn state(&mut self, now: Time, node: &Node) {
        let may_lead = node.standing_of_myself().0;
        let role = match node.election().role() {
            election::Role::Leader => Role::Leader,
            _ if !may_lead => Role::Observer,
            election::Role::Candidate => Role::Candidate,
            election::Role::PreCandidate => Role::PreCandidate,
            election::Role::Follower => Role::Follower,
        };
        if self.role != Some(role) {
            self.role = Some(role);
            self.add(now, What::Role { role });
        }
        let record = node.record();
        if self.record.as_ref() != Some(record) {
            self.record = Some(record.clone());
            let what = What::Record {
                epoch: record.stamp.epoch.override_seq,
                assigner: record.stamp.epoch.assigner.clone(),
                term: record.term(),
                leader: record.leader.clone(),
                assigned: record.assigned,
            };
            self.add(now, what);
        }
        let voted_for = node.election().voted_for();
        if self.voted_for.as_ref() != voted_for {
            self.voted_for = voted_for.cloned();
            if let Some(candidate) = voted_for {
                let what = What::Vote {
                    candidate: candidate.clone(),
                    term: record.term(),
                };
                self.add(now, what);
            }
        }
    }

    /// Records an output of the node.
    pub fn output(&mut self, now: Time, node: &Node, output: &Output) {
        let what = match output {
            Output::Transmit { to, envelope, .. } => {
                let counts = self.links.entry(to.clone()).or_default();
                counts.sent += 1;
                let n = counts.sent;
                let Some(said) = self.said(node, n, &envelope.message) else {
                    return;
                };
                What::Sent {
                    to: to.clone(),
                    said,
                }
            }
            Output::Datagram { to, probe } => What::Sent {
                to: to.clone(),
                said: probed(*probe),
            },
            Output::Dial(dial) => What::Dials {
                peer: dial.peer.clone(),
            },
            Output::Close { peer, why } => {
                self.links.remove(peer);
                What::Closes {
                    peer: peer.clone(),
                    why: link_end(*why),
                }
            }
            Output::JoinAnswer { ticket, verdict } => What::JoinAnswer {
                ticket: *ticket,
                verdict: verdict_name(verdict),
            },
            Output::Event(event) => match reported(event) {
                Some(what) => what,
                None => return,
            },
            Output::Persist { number, .. } => What::Persist { number: *number },
            Output::Departed
            | Output::Carrier { .. }
            | Output::DialSeeds(_)
            | Output::Engine { .. }
            | Output::Dropped { .. }
            | Output::StaleState { .. } => return,
        };
        self.add(now, what);
    }

    /// Describes a message; `None` for a routine one that is not kept.
    fn said(&self, node: &Node, n: u64, message: &Message) -> Option<Said> {
        let routine = matches!(message, Message::Heartbeat(_) | Message::PeerList(_));
        if routine && !n.is_multiple_of(self.routine) {
            return None;
        }
        let election = node.election();
        let plain = Description::plain;
        let description = match message {
            Message::Heartbeat(heartbeat) => election
                .describe_pulse(&heartbeat.pulse)
                .unwrap_or_else(|| plain("heartbeat")),
            Message::PeerList(_) => plain("peer_list"),
            Message::Leave { successor } => Description {
                names: successor.clone(),
                ..plain("leave")
            },
            Message::LeaveAck => plain("leave_ack"),
            Message::Election(message) => election
                .describe(message)
                .unwrap_or_else(|| plain("election")),
            Message::JoinRequest { candidate, .. } => Description {
                names: Some(candidate.entry.id.clone()),
                ..plain("join_request")
            },
            Message::JoinAnswer { verdict, .. } => Description {
                granted: Some(*verdict == Verdict::Accepted),
                ..plain("join_answer")
            },
            Message::JoinWithdrawn { .. } => plain("join_withdrawn"),
            Message::Admitted { entry, .. } => Description {
                names: Some(entry.id.clone()),
                ..plain("admitted")
            },
            Message::Kicked { peer, .. } => Description {
                names: Some(peer.clone()),
                ..plain("kicked")
            },
            Message::Unbanned(_) => plain("unbanned"),
            Message::Disconnected { .. } => plain("disconnected"),
            Message::Unlinked { .. } => plain("unlinked"),
            Message::UnlinkedLeft { peer } => Description {
                names: Some(peer.clone()),
                ..plain("unlinked_left")
            },
            Message::RoomRules(_) => plain("room_rules"),
            Message::Observed { .. } => plain("observed"),
            Message::Addresses(_) => plain("addresses"),
            Message::Punch { .. } => plain("punch"),
            Message::CannotCarry { .. } => plain("cannot_carry"),
            Message::Standing {
                eligible,
                successor,
                ..
            } => Description {
                granted: Some(*eligible),
                names: successor.clone(),
                ..plain("standing")
            },
        };
        let Description {
            kind,
            term,
            granted,
            names,
            ballot,
        } = description;
        Some(Said {
            kind: kind.into(),
            n,
            term,
            granted,
            names,
            ballot,
        })
    }
}

fn probed(probe: Probe) -> Said {
    let (kind, n) = match probe {
        Probe::Ping { nonce } => ("ping", nonce),
        Probe::Pong { nonce } => ("pong", nonce),
        Probe::SilentRelay { .. } => ("silent_relay", 0),
    };
    Said {
        kind: kind.into(),
        n,
        term: None,
        granted: None,
        names: None,
        ballot: None,
    }
}

/// The entry of an event; `None` for events that the core does not emit, and for others without an entry.
fn reported(event: &Event) -> Option<What> {
    Some(match event.clone() {
        Event::Joined(peer) => What::Joined { peer },
        Event::Reconnecting(peer) => What::Reconnecting { peer },
        Event::Returned(returned) => What::Returned {
            peer: returned.peer,
        },
        Event::Left(left) => What::Left {
            peer: left.peer,
            why: left_reason(left.why),
        },
        Event::LeaderChanged(change) => What::Shows {
            leader: change.new,
            reason: leader_reason(change.reason),
        },
        Event::JoinRequest { peer, .. } => What::JoinRequest { peer },
        Event::JoinWithdrawn { peer, .. } => What::JoinWithdrawn { peer },
        Event::RoomEnded { why, .. } => What::RoomEnded {
            why: match why {
                EndReason::Kicked => "kicked",
                EndReason::HostLeft => "host_left",
                EndReason::HostLost => "host_lost",
                EndReason::Disconnected => "disconnected",
                EndReason::DuplicateId => "duplicate_id",
                EndReason::Internal => "internal",
            }
            .into(),
        },
        Event::SetLeaderResult { target, outcome } => What::SetLeaderResult {
            peer: target,
            outcome: match outcome {
                AssignOutcome::Done => "done",
                AssignOutcome::Timeout => "timeout",
                AssignOutcome::Superseded => "superseded",
                AssignOutcome::Rejected => "rejected",
            }
            .into(),
        },
        Event::MemberState {
            peer,
            state,
            version,
        } => What::MemberState {
            peer,
            state: match state {
                MemberState::Init => "init",
                MemberState::Joining => "joining",
                MemberState::Active => "active",
                MemberState::Unreachable => "unreachable",
                MemberState::Leaving => "leaving",
                MemberState::Removed => "removed",
            }
            .into(),
            version,
        },
        Event::LockResult { .. }
        | Event::LockLost { .. }
        | Event::LeadershipGained(_)
        | Event::LeadershipLost(_)
        | Event::Message(_)
        | Event::SlowPeer(_)
        | Event::Unlinked { .. }
        | Event::BanDropped { .. }
        | Event::DataDropped { .. }
        | Event::ConnectionResult(_)
        | Event::DiscoveryRefused(_)
        | Event::HostSilent { .. }
        | Event::HostBack(_)
        | Event::PathChanged { .. }
        | Event::Transfer(_)
        | Event::Relay(_)
        | Event::PortMapping(_)
        | Event::Turn(_)
        | Event::NoRoomFound(_)
        | Event::Discovered { .. } => return None,
    })
}

fn commanded(command: &Command) -> What {
    let (name, peer, value) = match command {
        Command::SetLeader(peer) => ("set_leader", Some(peer), None),
        Command::EnableAutoElection(on) => ("enable_auto_election", None, Some(i64::from(*on))),
        Command::Disconnect { peer, code, .. } => {
            let code = Some(i64::from(*code)).filter(|code| *code != 0);
            ("disconnect", Some(peer), code)
        }
        Command::LiftBan(peer) => ("connect", Some(peer), None),
        Command::Pardon(_) => ("connect", None, None),
        Command::TransferLeadership(peer) => ("transfer_leadership", Some(peer), None),
        Command::YieldLeadership => ("yield_leadership", None, None),
        Command::SetAutoReconnect(on) => ("set_auto_reconnect", None, Some(i64::from(*on))),
        Command::SetEligible(on) => ("set_eligible", None, Some(i64::from(*on))),
        Command::SetPriority(priority) => ("set_priority", None, Some(i64::from(*priority))),
        Command::SetWindows(windows) => {
            let alive = windows.alive_threshold.as_millis();
            ("set_windows", None, i64::try_from(alive).ok())
        }
        Command::AskHost(on) => ("ask_host", None, Some(i64::from(*on))),
        Command::AnswerJoin { verdict, .. } => (
            "answer_join",
            None,
            Some(i64::from(*verdict == Verdict::Accepted)),
        ),
        Command::Kick { peer, code, .. } => ("kick", Some(peer), Some(i64::from(*code))),
        Command::Unban(peer) => ("unban", Some(peer), None),
        Command::SetMaxPeers(limit) => ("set_max_peers", None, Some(i64::from(*limit))),
        Command::Proclaim(_) => ("proclaim", None, None),
        Command::AcquireLock { .. } => ("acquire_lock", None, None),
        Command::ReleaseLock(_) => ("release_lock", None, None),
        Command::Leave => ("leave", None, None),
    };
    What::Command {
        name: name.into(),
        peer: peer.cloned(),
        value,
    }
}

fn link_end(why: LinkEnd) -> Word {
    match why {
        LinkEnd::Closed => "closed".into(),
        LinkEnd::Disconnected => "disconnected".into(),
        LinkEnd::Replaced => "replaced".into(),
        LinkEnd::Silent => "silent".into(),
        LinkEnd::Violation(what) => format!("violation: {what}").into(),
        LinkEnd::Kicked => "kicked".into(),
        LinkEnd::RoomEnded => "room_ended".into(),
        LinkEnd::Moved(Conflict::DuplicateId) => "moved: duplicate id".into(),
        LinkEnd::Moved(Conflict::Banned) => "moved: banned".into(),
        LinkEnd::OtherRoom => "other_room".into(),
    }
}

fn left_reason(why: LeftReason) -> Word {
    match why {
        LeftReason::Left => "left",
        LeftReason::Lost => "lost",
        LeftReason::Disconnected => "disconnected",
        LeftReason::Replaced => "replaced",
        LeftReason::Kicked => "kicked",
        LeftReason::Violation => "violation",
        LeftReason::GaveUp => "gave_up",
        LeftReason::RoomEnded => "room_ended",
    }
    .into()
}

fn leader_reason(reason: LeaderReason) -> Word {
    match reason {
        LeaderReason::None => "none",
        LeaderReason::Elected => "elected",
        LeaderReason::Assigned => "assigned",
        LeaderReason::Transferred => "transferred",
        LeaderReason::Found => "found",
        LeaderReason::Lost => "lost",
        LeaderReason::Left => "left",
        LeaderReason::Resigned => "resigned",
    }
    .into()
}

fn verdict_name(verdict: &Verdict) -> Word {
    match verdict {
        Verdict::Accepted => "accepted",
        Verdict::DuplicatePeerId => "duplicate_peer_id",
        Verdict::Full(_) => "full",
        Verdict::Rejected { .. } => "rejected",
        Verdict::Timeout(_) => "timeout",
        Verdict::NotLeader => "not_leader",
    }
    .into()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::election::seeded::paxos::Ballot;
    use crate::id::Incarnation;
    use crate::node::NodeConfig;
    use crate::time::Duration;
    use crate::wire::{Envelope, Heartbeat, Opaque};

    fn id(name: &str) -> PeerId {
        PeerId::new(name).expect("a valid id")
    }

    fn incarnation() -> Incarnation {
        Incarnation {
            started_us: 12,
            random: 34,
        }
    }

    /// A node that starts at 0, alone.
    fn node() -> Node {
        Node::new(
            id("a"),
            incarnation(),
            NodeConfig::for_tests(),
            1,
            Time::ZERO,
        )
        .expect("it starts for the first time")
    }

    fn envelope(message: Message) -> Envelope {
        Envelope {
            incarnation: incarnation(),
            message,
        }
    }

    fn heartbeat() -> Envelope {
        envelope(Message::Heartbeat(Heartbeat {
            seq: 77,
            echo: None,
            host_silent_ms: 0,
            room_time_us: None,
            pulse: Opaque::default(),
        }))
    }

    fn leave_ack() -> Envelope {
        envelope(Message::LeaveAck)
    }

    fn numbers(entries: &[Entry]) -> Vec<u64> {
        let number = |entry: &Entry| match &entry.what {
            What::Sent { said, .. } | What::Received { said, .. } => Some(said.n),
            _ => None,
        };
        entries.iter().filter_map(number).collect()
    }

    #[test]
    fn a_trace_begins_with_the_nodes_role_and_record() {
        let mut tracer = Tracer::new(Time::ZERO, &node(), 1);
        let entries = tracer.take();
        assert!(matches!(
            entries[0].what,
            What::Role {
                role: Role::Follower
            }
        ));
        assert!(matches!(entries[1].what, What::Record { term: 0, .. }));
        let header = tracer.header(&node(), 5, "room");
        assert_eq!(header.incarnation.as_deref(), Some("12-0000000000000022"));
    }

    #[test]
    fn a_node_that_is_alone_is_seen_to_become_leader() {
        let mut node = node();
        let mut tracer = Tracer::new(Time::ZERO, &node, 1);
        let now = Time::ZERO + Duration::from_secs(10);
        tracer.take();
        tracer.input(now, &node, &Input::Tick);
        node.handle(now, Input::Tick).expect("no command");
        tracer.state(now, &node);
        while let Some(output) = node.poll_output() {
            tracer.output(now, &node, &output);
        }
        let entries = tracer.take();
        let role = Role::Leader;
        assert!(entries.contains(&Entry {
            at: now.as_micros(),
            what: What::Role { role }
        }));
        let shown = |entry: &Entry| matches!(&entry.what, What::Shows { leader, .. } if *leader == Some(id("a")));
        assert!(entries.iter().any(shown), "{entries:?}");
    }

    #[test]
    fn both_ends_number_and_thin_messages_alike_and_begin_anew_with_a_link() {
        let node = node();
        let (mut sender, mut receiver) = (
            Tracer::new(Time::ZERO, &node, 3),
            Tracer::new(Time::ZERO, &node, 3),
        );
        let mut send = |envelope: &Envelope| {
            let to = id("b");
            let output = Output::Transmit {
                to,
                envelope: envelope.clone(),
                urgent: true,
            };
            sender.output(Time::ZERO, &node, &output);
            let from = id("a");
            let input = Input::Message {
                from,
                envelope: envelope.clone(),
            };
            receiver.input(Time::ZERO, &node, &input);
        };
        for _ in 0..4 {
            send(&heartbeat());
            send(&leave_ack());
        }
        let (sent, received) = (numbers(&sender.take()), numbers(&receiver.take()));
        assert_eq!(sent, received);
        // Of the heartbeats 1, 3, 5 and 7, only number 3 is kept.
        assert_eq!(sent, [2, 3, 4, 6, 8]);
        let peer = id("b");
        let why = LinkEnd::Silent;
        sender.input(Time::ZERO, &node, &Input::LinkDown { peer, why });
        let output = Output::Transmit {
            to: id("b"),
            envelope: leave_ack(),
            urgent: true,
        };
        sender.output(Time::ZERO, &node, &output);
        assert_eq!(numbers(&sender.take()), [1]);
    }

    #[test]
    fn an_entry_is_one_flat_line_and_reads_back() {
        let said = Said {
            kind: "vote_response".into(),
            n: 9,
            term: Some(3),
            granted: Some(true),
            names: None,
            ballot: None,
        };
        let to = id("b");
        let entry = Entry {
            at: 5,
            what: What::Sent { to, said },
        };
        let line = serde_json::to_string(&entry).expect("JSON");
        let expected = r#"{"at":5,"what":"sent","to":"b","kind":"vote_response","n":9,"term":3,"granted":true}"#;
        assert_eq!(line, expected);
        let read: Entry = serde_json::from_str(&line).expect("an entry");
        assert_eq!(read, entry);
    }

    #[test]
    fn a_proposal_has_its_ballot() {
        let ballot = Ballot {
            counter: 3,
            proposer: id("a"),
        };
        let entry = Entry {
            at: 5,
            what: What::Received {
                from: id("a"),
                said: Said {
                    kind: "proposal".into(),
                    n: 9,
                    term: Some(2),
                    granted: None,
                    names: Some(id("a")),
                    ballot: Some(ballot),
                },
            },
        };
        let line = serde_json::to_string(&entry).expect("JSON");
        let expected = r#"{"at":5,"what":"received","from":"a","kind":"proposal","n":9,"term":2,"names":"a","ballot":{"counter":3,"proposer":"a"}}"#;
        assert_eq!(line, expected);
        let read: Entry = serde_json::from_str(&line).expect("an entry");
        assert_eq!(read, entry);
    }

    #[test]
    fn payloads_of_applications_are_not_in_a_trace() {
        let command = Command::Kick {
            peer: id("b"),
            code: 4,
            bytes: b"private".to_vec(),
            ban: true,
        };
        let node = node();
        let mut tracer = Tracer::new(Time::ZERO, &node, 1);
        tracer.take();
        tracer.input(Time::ZERO, &node, &Input::Command(command));
        let line = serde_json::to_string(&tracer.take()[0]).expect("JSON");
        let expected = r#"{"at":0,"what":"command","name":"kick","peer":"b","value":4}"#;
        assert_eq!(line, expected);
    }
}
