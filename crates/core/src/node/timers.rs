//! Timers of a node: one row for each thing that may wait for time alone.

use std::time::Duration;

use super::{LinkEnd, Node, Output};
use crate::election::{Local, Role};
use crate::id::PeerId;
use crate::membership::{Due, Spared};
use crate::time::Time;
use crate::wire::Strategy;

/// Part of the interval by which a node waits longer for its pacemaker's heartbeat.
const PACEMAKER_WAIT_PART: u32 = 16;
/// A tick that is this late was delayed with the whole process.
const LATE: Duration = Duration::from_millis(100);
/// Part of the heartbeat timeout for which a silent leader keeps its link, at most.
const DOUBT_PART: u32 = 3;

/// The timers. A tick serves them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// A peer is silent: it is probed, or lost.
    Silence,
    /// The leader's port seems to be closed: it is pinged, or lost.
    ClosedPort,
    /// The next heartbeat to every peer.
    Heartbeat,
    /// New members are to be introduced to the others.
    News,
    /// Both ends of a carried link are to dial.
    Punch,
    /// A peer is to be dialled.
    Dial,
    /// A lost peer's place is no longer kept.
    Absence,
    /// A ban is over.
    Ban,
    /// A changed room rule is to be processed or sent.
    RoomRule,
    /// No room was found for a while.
    Entry,
    /// A join request has waited long enough.
    Join,
    /// A timer of the election.
    Election,
}

impl Timer {
    pub(super) const ALL: [Self; 12] = [
        Self::Silence,
        Self::ClosedPort,
        Self::Heartbeat,
        Self::News,
        Self::Punch,
        Self::Dial,
        Self::Absence,
        Self::Ban,
        Self::RoomRule,
        Self::Entry,
        Self::Join,
        Self::Election,
    ];
}

impl Node {
    pub(super) fn deadline(&self, timer: Timer) -> Option<Time> {
        match timer {
            Timer::Silence => self.membership.next_deadline(),
            Timer::ClosedPort => self.closed_port_deadline(),
            Timer::Heartbeat => (!self.membership.is_empty()).then_some(self.heartbeat_at),
            Timer::News => self.news_at,
            Timer::Punch => self.membership.next_round(),
            Timer::Dial => self.introductions.next_deadline(),
            Timer::Absence => self.absence_deadline(),
            Timer::Ban => self.bans.next_deadline(),
            Timer::RoomRule => self.room_rules_deadline(),
            Timer::Entry => self.looking_deadline(),
            Timer::Join => self.joins.next_deadline(),
            Timer::Election => self.election.next_deadline(),
        }
    }

    pub(super) fn tick(&mut self, now: Time) {
        let votes = self.config.election.policy.strategy == Strategy::Raft;
        if votes && self.stood_still(now) && self.config.election.guards.late_probes() {
            self.spare_unprobed(now);
        }
        for timer in Timer::ALL {
            self.serve(now, timer);
        }
    }

    /// Does what is due by `now`, if anything is.
    fn serve(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Silence => self.silences_due(now),
            Timer::ClosedPort => self.closed_port_due(now),
            Timer::Heartbeat if now >= self.heartbeat_at => {
                self.beat(now);
                // Members that get a message now may have gone away at the end of this tick.
                self.take_election_outputs(now);
            }
            Timer::Heartbeat => {}
            Timer::News => self.send_news(now),
            Timer::Punch => self.punches_due(now),
            Timer::Dial => {
                let dials = self.dials_due(now);
                self.outputs.extend(dials.into_iter().map(Output::Dial));
            }
            Timer::Absence => self.end_absences(now),
            Timer::Ban => self.bans_due(now),
            Timer::RoomRule => self.room_rules_due(now),
            Timer::Entry => self.looking_due(now),
            Timer::Join => self.joins_due(now),
            Timer::Election => self.elect(now, Local::Tick),
        }
    }

    /// Sends the periodic heartbeat to every peer and does the work of an interval.
    fn beat(&mut self, now: Time) {
        let interval = self.config.heartbeat_interval;
        let timeout = match self.pacemaker() {
            Some(_) => interval / PACEMAKER_WAIT_PART,
            None => Duration::ZERO,
        };
        self.heartbeat_at = now + interval + timeout;
        self.heartbeat_all(now);
        self.report_silent_relays_to_all();
        self.view.held.retain(|_, until| now < *until);
        self.elect(now, Local::HeartbeatSent);
        self.report_all_observed(now);
        self.send_changed_addresses(now);
        self.weigh_mapping(now);
        self.consider_carriers(now);
        self.yield_if_silent(now);
        self.settle_namesakes(now);
        self.weigh_bans(now);
        self.give_up_bans(now);
        self.part_from_other_room(now);
        self.dial_parted(now);
    }

    /// The peer whose heartbeats this node joins. So the heartbeats of all members arrive at about the same time and
    /// wake a machine once, not once per peer.
    fn pacemaker(&self) -> Option<&PeerId> {
        let mut linked = self.membership.iter();
        let (first, _) = linked.find(|(_, member)| member.path.counts_in_elections())?;
        (*first < self.me).then_some(first)
    }

    /// Handles a peer's heartbeat. This node sends its own with its pacemaker's, but not before half of the interval has
    /// passed: a peer that floods it with heartbeats does not make it flood others.
    pub(super) fn join_pacemaker(&mut self, now: Time, peer: &PeerId) {
        let due_in = self.heartbeat_at.since(now);
        if self.pacemaker() == Some(peer) && due_in < self.config.heartbeat_interval / 2 {
            self.beat(now);
        }
    }

    /// Whether this tick was delayed, and not for so long that peers have lost this node for certain.
    fn stood_still(&self, now: Time) -> bool {
        let timeout = self.config.election.heartbeat_timeout;
        let most = timeout + timeout / DOUBT_PART;
        self.next_deadline()
            .is_some_and(|due| now > due + LATE && now < due + most)
    }

    /// A process that stood still has sent no probes and may have received nothing: it probes its peers before it loses
    /// them.
    fn spare_unprobed(&mut self, now: Time) {
        let timeout = self.config.election.heartbeat_timeout;
        for peer in self.membership.ids() {
            if let Some(member) = self.membership.get_mut(&peer) {
                member.spare_unprobed(now, timeout);
            }
        }
    }

    /// Whether a silent peer keeps its link for a while: the leader does while the voters are asked whether they have
    /// lost it as well.
    fn spares(&mut self, now: Time, peer: &PeerId) -> bool {
        let time = self.config.election.heartbeat_timeout / DOUBT_PART;
        let is_doubtful = self.is_doubtful(peer);
        let member = self.membership.get_mut(peer).filter(|_| is_doubtful);
        if !member.is_some_and(|member| member.spare(now, time, Spared::InDoubt)) {
            return false;
        }
        self.view.doubted = Some(peer.clone());
        self.elect(now, Local::Tick);
        true
    }

    /// Whether the peer is the elected leader that this node shows and follows over a link, and other members could vote
    /// for another one. No member asks for votes beside a leader that a host named (P7), and this node may have voted
    /// already: then its record names no leader.
    fn is_doubtful(&self, peer: &PeerId) -> bool {
        let leadership = self.election.leadership();
        self.config.election.policy.strategy == Strategy::Raft
            && self.config.election.guards.doubts()
            && self.leader() == Some(peer)
            && self.view.voters.contains_key(peer)
            && leadership.record.leader.as_ref() == Some(peer)
            && !leadership.record.assigned
            && !leadership.is_vouched_for
            && self.view.eligible().any(|(voter, _)| voter != peer)
    }

    /// Ends the link with a leader in doubt as soon as this node has voted, for itself or for another member. If it follows
    /// another leader, that one decides about the doubted one, should it return.
    pub(super) fn end_doubt(&mut self, now: Time) {
        let leader = self.election.leadership().leader;
        // The leader that it follows may have asked it to campaign.
        let campaigns = self.election.role() == Role::Candidate;
        let has_voted = campaigns || leader.is_none_or(|leader| *leader == self.me);
        if let Some(peer) = self.view.doubted.take_if(|_| has_voted) {
            self.close(&peer, LinkEnd::Silent);
            self.link_down(now, &peer, LinkEnd::Silent);
            self.take_election_outputs(now);
        }
    }

    fn silences_due(&mut self, now: Time) {
        let mut due = self.membership.due(now);
        // A leader that may be doubted last: the doubt depends on the voters that are left, and no lost one is asked.
        let leader = self.leader().cloned();
        let leader = leader.filter(|_| self.config.election.policy.strategy == Strategy::Raft);
        due.sort_by_key(|due| matches!(due, Due::Lost(peer) if Some(peer) == leader.as_ref()));
        for due in due {
            match due {
                Due::Probe(peer) => {
                    self.report_silent_relays(&peer);
                    self.ping(&peer);
                }
                Due::Lost(peer) if self.spares(now, &peer) => {}
                Due::Lost(peer) => {
                    self.close(&peer, LinkEnd::Silent);
                    self.link_down(now, &peer, LinkEnd::Silent);
                }
            }
        }
    }
}
