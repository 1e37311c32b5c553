//! Timers of a node: one row for each thing that may wait for time alone.

use std::time::Duration;

use super::{LinkEnd, Node, Output};
use crate::election::Local;
use crate::id::PeerId;
use crate::membership::Due;
use crate::time::Time;

/// Part of the interval by which a node waits longer for its pacemaker's heartbeat.
const PACEMAKER_WAIT_PART: u32 = 16;

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
        self.heartbeat_all(now, false);
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

    fn silences_due(&mut self, now: Time) {
        for due in self.membership.due(now) {
            match due {
                Due::Probe(peer) => self.ping(&peer),
                Due::Lost(peer) => {
                    self.close(&peer, LinkEnd::Silent);
                    self.link_down(now, &peer, LinkEnd::Silent);
                }
            }
        }
    }
}
