//! Reports of the system that a peer's port is closed ("port unreachable"): its process has died, or somebody answers
//! falsely.
//!
//! A report is a hint, and starts a ping. Evidence is two refused packets since the peer was last heard, one of them sent
//! after the first hint, and no answer in the time that a ping takes. A process that only stands still keeps its port
//! open, so it never gives any.

use super::*;
use crate::quorum::Quorum;
use crate::wire::{HostMode, Strategy};

/// Pings of one doubt: a ping may be lost.
const PINGS: u32 = 3;
/// Minimum wait for the answer to a ping,
const MIN_PING_LIMIT: Duration = Duration::from_millis(5);
/// and as a part of the heartbeat timeout: a leader on a busy machine answers late.
const PING_LIMIT_PART: u32 = 75;
/// Minimum time between two pings on the word of others, and between two doubts: who forges hints causes few packets.
const BETWEEN_DOUBTS: Duration = Duration::from_millis(50);

/// Whether hints count in a room: it has the raft strategy, a dynamic quorum and no fixed host. Elsewhere they change nothing: a
/// lease of a static quorum must outlast every mistake, and the other strategies do not replace a leader sooner.
pub fn heeds_closed_ports(strategy: Strategy, quorum: &Quorum, host_mode: HostMode) -> bool {
    strategy == Strategy::Raft && !quorum.is_static() && host_mode == HostMode::Off
}

/// The doubt whether the leader that this node follows still runs.
#[derive(Debug, Default)]
pub(super) struct ClosedPort {
    doubt: Option<Doubt>,
    /// The time of the last first hint.
    doubted_at: Option<Time>,
    /// The time of the last ping that another member's word caused, or a hint that proves nothing.
    asked_at: Option<Time>,
}

#[derive(Debug)]
struct Doubt {
    peer: PeerId,
    incarnation: Incarnation,
    /// The time at which the first refused packet was sent. Any later sign of life ends the doubt.
    sent: Time,
    /// The time of the first hint: packets sent since then count, and the ping is the first of them.
    since: Time,
    /// Whether a packet sent since then was refused, too.
    again: bool,
    /// The time by which a living peer has answered the last ping.
    until: Time,
    pings_left: u32,
}

impl Node {
    /// Handles a hint that the peer's port is closed: a packet of its link, sent at `sent`, was refused by its present
    /// address. Without that time the hint does not prove to which packet it belongs, and only causes a ping.
    pub(super) fn refused(&mut self, now: Time, peer: &PeerId, sent: Option<Time>) {
        let Some(sent) = sent else {
            return self.question(now, peer);
        };
        let Some(member) = self.doubtful_leader(peer) else {
            return;
        };
        if sent > now || member.had_sign_of_life_after(sent) {
            return;
        }
        if !self.config.election.guards.proven_refusals() {
            return self.lose_refused(now, &peer.clone());
        }
        let doubt = self.closed_port.doubt.as_ref();
        let is_known = doubt.is_some_and(|doubt| doubt.concerns(peer, member));
        match &mut self.closed_port.doubt {
            Some(doubt) if is_known => {
                doubt.again |= sent >= doubt.since;
                self.closed_port_due(now);
            }
            _ => self.begin_doubt(now, peer, sent),
        }
    }

    /// Pings the leader, because another member's word or an unproven hint reports that it is gone. The ping is no
    /// evidence: only a refusal of it is.
    pub(super) fn question(&mut self, now: Time, peer: &PeerId) {
        let asked = self.closed_port.asked_at;
        let is_early = asked.is_some_and(|at| now < at + BETWEEN_DOUBTS);
        if is_early || self.doubtful_leader(peer).is_none() {
            return;
        }
        self.closed_port.asked_at = Some(now);
        self.ping(peer);
    }

    pub(super) fn closed_port_deadline(&self) -> Option<Time> {
        let doubt = self.closed_port.doubt.as_ref()?;
        (doubt.again || doubt.pings_left > 0).then_some(doubt.until)
    }

    pub(super) fn closed_port_due(&mut self, now: Time) {
        let Some(doubt) = self.closed_port.doubt.take_if(|doubt| now >= doubt.until) else {
            return;
        };
        let member = self.doubtful_leader(&doubt.peer);
        let Some(member) = member.filter(|member| doubt.concerns(&doubt.peer, member)) else {
            return;
        };
        if doubt.again {
            return self.lose_refused(now, &doubt.peer);
        }
        let until = now + ping_limit(member, self.config.election.heartbeat_timeout);
        let pings_left = doubt.pings_left.saturating_sub(1);
        if doubt.pings_left > 0 {
            self.ping(&doubt.peer);
        }
        self.closed_port.doubt = Some(Doubt {
            until,
            pings_left,
            ..doubt
        });
    }

    fn begin_doubt(&mut self, now: Time, peer: &PeerId, sent: Time) {
        let doubted = self.closed_port.doubted_at;
        let is_early = doubted.is_some_and(|at| now < at + BETWEEN_DOUBTS);
        let Some(member) = self.doubtful_leader(peer).filter(|_| !is_early) else {
            return;
        };
        let doubt = Doubt {
            peer: peer.clone(),
            incarnation: member.incarnation,
            sent,
            since: now,
            again: false,
            until: now + ping_limit(member, self.config.election.heartbeat_timeout),
            pings_left: PINGS - 1,
        };
        self.closed_port.doubted_at = Some(now);
        self.closed_port.doubt = Some(doubt);
        self.ping(peer);
    }

    /// The peer, if a hint about it counts: it is the leader that this node follows over a direct link, in a room that
    /// [heeds](heeds_closed_ports) hints.
    fn doubtful_leader(&self, peer: &PeerId) -> Option<&Member> {
        let election = &self.config.election;
        let policy = &election.policy;
        let counts = heeds_closed_ports(policy.strategy, &election.quorum, policy.host_mode)
            && self.election.leadership().leader == Some(peer);
        self.membership.direct(peer).filter(|_| counts)
    }

    /// The leader's process has died. Its link ends as one that fell silent: it may live behind somebody who answers
    /// falsely.
    fn lose_refused(&mut self, now: Time, peer: &PeerId) {
        self.close(peer, LinkEnd::Silent);
        self.lose(now, peer, DownReason::Refused);
    }
}

impl Doubt {
    /// Whether the doubt is about that peer, and it was not heard since.
    fn concerns(&self, peer: &PeerId, member: &Member) -> bool {
        let is_it = self.peer == *peer && self.incarnation == member.incarnation;
        is_it && !member.had_sign_of_life_after(self.sent)
    }
}

/// The time in which a living peer answers a ping: one that answers falsely may be nearer than the peer. Where round trips vary
/// much, waiting for the slowest would take longer than the evidence saves.
fn ping_limit(member: &Member, heartbeat_timeout: Duration) -> Duration {
    let rtt = member.rtt.smoothed().unwrap_or(BETWEEN_DOUBTS);
    let variation = member.rtt.variation().unwrap_or_default();
    let slow = (rtt + variation * 4).min(heartbeat_timeout / 8);
    let least = MIN_PING_LIMIT.max(heartbeat_timeout / PING_LIMIT_PART);
    least.max(rtt * 3 / 2).max(slow)
}
