//! Counts of events, summed over all runs: a test of rare situations that never occurred proves nothing.
//!
//! All counts come from outside: a node's inputs, its outputs, and its state before and after.

use crate::decoded;
use std::collections::{BTreeMap, BTreeSet};

use room_core::election::AssignOutcome;
use room_core::election::raft::Raft;
use room_core::election::raft::wire::{ElectionMessage, Side, Stamped};
use room_core::election::record::Stamp;
use room_core::election::rules::{RoleKind, Rules};
use room_core::id::PeerId;
use room_core::node::{Command, Event, Input, Node, Output};
use room_core::time::{Duration, Time};
use room_core::wire::Message;
use state_simulator::counters;

/// A round that follows a failed one sooner than any election timer is a fast retry.
const SHORTER_THAN_ANY_TIMEOUT: Duration = Duration::from_millis(550);

counters! {
    /// See the module's text.
    Sometimes:
    /// A second candidate asked for votes of one (epoch, term).
    split_votes,
    /// An answer that names a living leader ended an attempt that needed no other vote (G3).
    vetoes,
    /// Two led sides merged, and the number of voters decided.
    merges_by_weight,
    /// Two led sides of equal weight merged, and the time led decided.
    merges_by_time_led,
    /// Two led sides merged, and a newer `SetLeader` decided.
    merges_by_epoch,
    /// An old claim was answered (G7).
    nacks,
    /// A failed round was repeated without waiting for a timeout (G14).
    fast_retries,
    /// A campaign that the previous leader asked for.
    transfers,
    /// A leader asked a peer to succeed it because its host wanted that.
    hand_overs,
    /// A leader asked for votes of a higher term and led on (G7).
    campaigns_in_place,
    /// A leader resigned while peers were linked to it, or it no longer led a majority.
    resignations,
    /// A `SetLeader` ended as done.
    assignments_done,
    /// A `SetLeader` lost to another one.
    assignments_superseded,
    /// The target of a `SetLeader` did not answer in time.
    assignments_timed_out,
    assignments_rejected,
    /// A voter noticed that its state file is not the newest.
    stale_states,
    /// A voter with an old file had received from all other voters, and could vote again.
    stale_recovered,
    /// A place started with an older state file, or none.
    old_disks,
    /// A voter that had not noticed gave a vote that it had given to another before.
    stale_votes_unseen,
    /// A write to a disk failed.
    writes_failed,
    /// A process ended beside a write of its vote.
    struck_in_an_election,
    /// A leader without a link was shown.
    indirect_leaders,
    /// A silent leader kept its link while the voters were asked (G17).
    leaders_doubted,
    /// It gave a sign of life in time, and led on.
    doubted_leaders_stayed,
    /// A leader left, and named its successor.
    successors_named,
    /// A node asked for votes without any other voter.
    solo_elections,
    /// A candidate stepped down for the leader of its own term (G8).
    candidates_conceded,
    /// A voter with a living leader refused a vote (G4).
    leases_held,
    /// A process ended before its state was on its disk.
    persists_lost,
    /// A process started from an earlier incarnation's state.
    restarts_from_disk,
    /// The leader of a settled room crashed, and the others agreed again.
    failovers,
    /// Election messages until then, in all of them.
    failover_messages,
    /// Nodes of these rooms.
    failover_nodes,
    /// A larger side, led by one leader, merged with a smaller one.
    larger_sides,
    /// In some of these merges a new leader was elected before all links were up.
    larger_sides_excused,
    /// In some of these merges the larger side's leader did not stay.
    larger_sides_deposed,
    /// A packet of a control stream was lost and sent again.
    packets_lost,
    /// A system reported that a peer's port is closed, rightly or not.
    refusals,
    /// A room whose assigned leader was gone waited for a host, as all its members' hosts want it (C4.5).
    rooms_held,
    /// A place's wall clock was set back, and a process of the same key started there.
    clocks_set_back,
    /// A process with a clock set back reached a member that still believed in the earlier process.
    older_lives_disputed,
    /// A control message arrived a second time.
    messages_copied,
    /// A control message arrived a second time, on another link of its two processes.
    messages_copied_to_another_link,
    /// A control message arrived that an earlier link had not delivered.
    messages_of_an_earlier_link,
    /// A room began at a term far above zero.
    high_terms,
    /// A liar lied about another member.
    slanders,
    /// Liars put an honest member out, in a way that the room's rules allow.
    put_out_by_liars,
    /// The room was asked about a newcomer.
    joins_asked,
    /// A member asked another leader about a newcomer.
    joins_asked_again,
    /// A host decided on a newcomer.
    joins_decided_by_hosts,
    /// The room refused a newcomer.
    joins_refused,
    /// An end took a second link of a session: both ends had dialled.
    second_links,
    /// A newer process of a peer ended the session with its earlier one.
    sessions_replaced,
    /// A peer that returned had given up its session.
    sessions_given_up_by_the_other_end,
    /// A lost member learned that it was kicked.
    kicked_while_lost,
    /// A peer was not lost because its transport was alive.
    peers_alive_beside_messages,
    /// A message of a leader's host was delivered.
    leaders_accepted,
    /// A message of a former leader's host was dropped.
    deposed_leaders_ignored,
    /// A leader's record first arrived with a message of its host.
    leaders_found_by_data,
    /// A leader learned of its own assignment from a broadcast.
    assignments_found_by_data,
    /// A broadcast that the leader relayed was delivered, or dropped.
    relays_accepted,
    relays_ignored,
    /// A leader's record first arrived with a message that it relayed.
    leaders_found_by_relays,
    /// A host's message arrived on the link of its next process.
    data_of_past_lives;
    campaigns: BTreeMap<Stamp, BTreeSet<usize>>,
    asked_at: BTreeMap<usize, Time>,
    questions: BTreeMap<(usize, u64, PeerId), PeerId>,
}

/// A node's state before an input.
#[derive(Debug)]
pub struct Moment {
    role: RoleKind,
    /// Whether the open round needs no other vote.
    alone: bool,
    tick: bool,
    what: What,
    leader: Option<PeerId>,
    doubts: bool,
}

#[derive(Debug)]
enum What {
    Other,
    /// An answer that names a living leader.
    Veto,
    /// A heartbeat of a leader of that stamp.
    Claim(Stamp),
    Meeting(Box<(Side, Side)>),
    /// A command that may end a leadership.
    Order,
}

impl Moment {
    /// Takes a node's state before an input, or before a question about a peer's data.
    pub fn before(node: &Node, input: Option<&Input>) -> Self {
        let rules = node.election().of::<Raft>().map(Raft::rules);
        Self {
            role: rules.map_or(RoleKind::Follower, Rules::role),
            alone: rules
                .and_then(Rules::campaign)
                .is_some_and(|open| open.needed == 1),
            tick: input == Some(&Input::Tick),
            what: input.map_or(What::Other, What::of),
            leader: node.leader().cloned(),
            doubts: node.doubted().is_some(),
        }
    }
}

impl What {
    fn of(input: &Input) -> Self {
        match input {
            Input::LinkUp(link) => {
                match decoded::side(&link.ours).zip(decoded::side(&link.theirs)) {
                    Some(sides) if sides.0.live.is_some() && sides.1.live.is_some() => {
                        Self::Meeting(Box::new(sides))
                    }
                    _ => Self::Other,
                }
            }
            Input::Message { envelope, .. } => match decoded::election(&envelope.message) {
                Some(ElectionMessage::PreVoteResponse { live: Some(_), .. }) => Self::Veto,
                Some(ElectionMessage::ForeignSide { ours, theirs, .. })
                    if ours.live.is_some() && theirs.live.is_some() =>
                {
                    Self::Meeting(Box::new((ours, theirs)))
                }
                Some(_) => Self::Other,
                None => decoded::stamp(&envelope.message).map_or(Self::Other, Self::Claim),
            },
            Input::Command(
                Command::Leave
                | Command::SetEligible(_)
                | Command::SetLeader(_)
                | Command::TransferLeadership(_)
                | Command::YieldLeadership,
            ) => Self::Order,
            _ => Self::Other,
        }
    }
}

impl Sometimes {
    /// Compares with the node's state after the input.
    pub fn after(
        &mut self,
        before: &Moment,
        now: Time,
        slot: usize,
        node: &Node,
        outputs: &[Output],
    ) {
        let Some(rules) = node.election().of::<Raft>().map(Raft::rules) else {
            return;
        };
        let role = rules.role();
        let shown = node.leader();
        match &before.what {
            What::Veto if before.role == RoleKind::PreCandidate && before.alone => {
                let stopped = role == RoleKind::Follower && shown.is_some();
                self.vetoes += u64::from(stopped);
            }
            What::Claim(stamp) if before.role == RoleKind::Candidate => {
                let conceded = role == RoleKind::Follower && rules.record().stamp == *stamp;
                self.candidates_conceded += u64::from(conceded);
            }
            What::Meeting(sides) if before.role == RoleKind::Leader => self.meeting(sides),
            _ => {}
        }
        match (before.doubts, node.doubted().is_some()) {
            (false, true) => self.leaders_doubted += 1,
            (true, false) => {
                let stays = shown.is_some() && before.leader.as_ref() == shown;
                self.doubted_leaders_stayed += u64::from(stays);
            }
            _ => {}
        }
        let ended = before.role == RoleKind::Leader && role != RoleKind::Leader;
        self.resignations += u64::from(ended && before.tick && !node.membership().is_empty());
        let new = shown.filter(|leader| before.leader.as_ref() != Some(*leader));
        if let Some(leader) = new {
            let linked = node.membership().get(leader).is_some() || leader == node.id();
            self.indirect_leaders += u64::from(!linked);
            let alone = role == RoleKind::Leader
                && rules.won().is_some_and(|won| won.electorate.len() == 1);
            self.solo_elections += u64::from(alone);
        }
        let mut asked = false;
        for output in outputs {
            match output {
                Output::Transmit { to, envelope, .. } => match &envelope.message {
                    message @ Message::Election(_) => {
                        if let Some(Stamped { stamp, message, .. }) = decoded::voting(message) {
                            asked |= matches!(message, ElectionMessage::PreVoteRequest { .. });
                            self.count_sent(slot, node, &stamp, &message, role);
                        }
                    }
                    Message::JoinRequest { request, candidate } => {
                        let about = (slot, *request, candidate.entry.id.clone());
                        let before = self.questions.insert(about, to.clone());
                        self.joins_asked_again += u64::from(before.is_some_and(|one| one != *to));
                    }
                    Message::Leave {
                        successor: Some(_), ..
                    } => self.successors_named += 1,
                    _ => {}
                },
                Output::Event(Event::SetLeaderResult { outcome, .. }) => match outcome {
                    AssignOutcome::Done => self.assignments_done += 1,
                    AssignOutcome::Superseded => self.assignments_superseded += 1,
                    AssignOutcome::Timeout => self.assignments_timed_out += 1,
                    AssignOutcome::Rejected => self.assignments_rejected += 1,
                },
                _ => {}
            }
        }
        if asked {
            let last = self.asked_at.insert(slot, now);
            let soon = last.is_some_and(|last| now.since(last) < SHORTER_THAN_ANY_TIMEOUT);
            self.fast_retries += u64::from(soon);
        }
    }

    fn count_sent(
        &mut self,
        slot: usize,
        node: &Node,
        stamp: &Stamp,
        message: &ElectionMessage,
        role: RoleKind,
    ) {
        match message {
            ElectionMessage::VoteRequest { asked_by, .. } => {
                let candidates = self.campaigns.entry(stamp.clone()).or_default();
                if candidates.insert(slot) {
                    self.split_votes += u64::from(candidates.len() == 2);
                    self.transfers += u64::from(asked_by.is_some());
                    self.campaigns_in_place += u64::from(role == RoleKind::Leader);
                }
            }
            ElectionMessage::Nack { .. } => self.nacks += 1,
            ElectionMessage::TimeoutNow { .. } => self.hand_overs += 1,
            ElectionMessage::PreVoteResponse {
                granted: false,
                live: Some(live),
                ..
            } => self.leases_held += u64::from(live.id != *node.id()),
            _ => {}
        }
    }

    fn meeting(&mut self, (ours, theirs): &(Side, Side)) {
        let (Some(mine), Some(other)) = (&ours.live, &theirs.live) else {
            return;
        };
        if mine.id == other.id {
            return;
        }
        let by_epoch =
            !ours.lone && !theirs.lone && ours.record.stamp.epoch != theirs.record.stamp.epoch;
        if by_epoch {
            self.merges_by_epoch += 1;
        } else if mine.weight != other.weight {
            self.merges_by_weight += 1;
        } else if mine.led_ms != other.led_ms {
            self.merges_by_time_led += 1;
        }
    }
}
