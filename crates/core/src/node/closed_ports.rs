//! Reports of the system that a peer's port is closed ("port unreachable"): its process has died, or somebody answers
//! falsely.
//!
//! A report is a hint, and starts pings. Evidence is two refused packets since the peer was last heard, one of them sent
//! after the first hint, and no answer in the time that a ping takes. A process that only stands still keeps its port
//! open, so it never gives any.
//!
//! Systems limit their reports: Linux sends each receiver six at once, and one a second after that. In play a game uses them up
//! before the first one arrives, and no ping is refused. So three refused packets and two unanswered pings are evidence, too.

use std::collections::BTreeSet;

use super::*;
use crate::quorum::Quorum;
use crate::wire::{HostMode, Strategy};

/// Pings of one doubt: a ping may be lost.
const PINGS: u32 = 3;
/// Refused packets that are evidence although no ping is refused.
const MANY: usize = 3;
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
    /// The time of the last first ping.
    doubted_at: Option<Time>,
    /// The time of the last ping that another member's word caused, or a hint that proves nothing.
    asked_at: Option<Time>,
}

#[derive(Debug)]
struct Doubt {
    peer: PeerId,
    incarnation: Incarnation,
    /// The time at which the peer was last heard. Any later sign of life ends the doubt.
    heard_at: Time,
    /// The time of the first ping, which may be to come. Packets sent since then count as pings.
    since: Time,
    /// The times at which the last refused packets were sent, at most [`MANY`].
    refused: BTreeSet<Time>,
    /// The time in which a living peer answers a ping.
    limit: Duration,
    /// The number of pings so far, and the time of the last one.
    pings: u32,
    pinged_at: Time,
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
        if sent > now || !self.is_news(member, sent) {
            return;
        }
        if !self.config.election.guards.proven_refusals() {
            return self.lose_refused(now, &peer.clone());
        }
        let (incarnation, heard_at) = (member.incarnation, member.last_sign_of_life());
        let doubt = self.closed_port.doubt.take();
        let doubt = doubt.filter(|doubt| doubt.peer == *peer && doubt.incarnation == incarnation);
        let doubt = match doubt {
            Some(mut doubt) if doubt.heard_at == heard_at => {
                doubt.note(sent);
                Some(doubt)
            }
            Some(mut ended) => {
                ended.note(sent);
                self.doubt(now, peer, ended.refused)
            }
            None => self.doubt(now, peer, BTreeSet::from([sent])),
        };
        self.closed_port.doubt = doubt;
        self.closed_port_due(now);
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
        self.closed_port.doubt.as_ref()?.next_deadline()
    }

    pub(super) fn closed_port_due(&mut self, now: Time) {
        let is_due = |doubt: &mut Doubt| doubt.next_deadline().is_some_and(|at| now >= at);
        let Some(mut doubt) = self.closed_port.doubt.take_if(is_due) else {
            return;
        };
        let member = self.doubtful_leader(&doubt.peer);
        let Some(member) = member.filter(|member| member.incarnation == doubt.incarnation) else {
            return;
        };
        if member.had_sign_of_life_after(doubt.heard_at) {
            self.closed_port.doubt = self.doubt(now, &doubt.peer, doubt.refused);
            return self.closed_port_due(now);
        }
        if doubt.proven_at().is_some_and(|at| now >= at) {
            return self.lose_refused(now, &doubt.peer);
        }
        self.ping(&doubt.peer);
        if doubt.pings == 0 {
            self.closed_port.doubted_at = Some(now);
        }
        doubt.pings += 1;
        doubt.pinged_at = now;
        self.closed_port.doubt = Some(doubt);
    }

    /// A doubt because of refused packets, if any of them still counts. It begins when the last doubt is long enough ago.
    fn doubt(&self, now: Time, peer: &PeerId, mut refused: BTreeSet<Time>) -> Option<Doubt> {
        let member = self.doubtful_leader(peer)?;
        refused.retain(|sent| self.is_news(member, *sent));
        if refused.is_empty() {
            return None;
        }
        let rested_at = self.closed_port.doubted_at.map(|at| at + BETWEEN_DOUBTS);
        let since = rested_at.map_or(now, |at| at.max(now));
        Some(Doubt {
            peer: peer.clone(),
            incarnation: member.incarnation,
            heard_at: member.last_sign_of_life(),
            since,
            refused,
            limit: self.ping_limit(member),
            pings: 0,
            pinged_at: since,
        })
    }

    /// Whether the peer may have refused the packet after it sent the last one that arrived here: that one may have been on its
    /// way when this node sent the refused packet.
    fn is_news(&self, member: &Member, sent: Time) -> bool {
        !member.had_sign_of_life_after(sent + self.ping_limit(member))
    }

    /// The time in which a living peer answers a ping: one that answers falsely may be nearer than the peer. Where round trips vary
    /// much, waiting for the slowest would take longer than the evidence saves.
    fn ping_limit(&self, member: &Member) -> Duration {
        let heartbeat_timeout = self.config.election.heartbeat_timeout;
        let rtt = member.rtt.smoothed().unwrap_or(BETWEEN_DOUBTS);
        let variation = member.rtt.variation().unwrap_or_default();
        let slow = (rtt + variation * 4).min(heartbeat_timeout / 8);
        let least = MIN_PING_LIMIT.max(heartbeat_timeout / PING_LIMIT_PART);
        least.max(rtt * 3 / 2).max(slow)
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
    /// Notes that a packet sent at that time was refused.
    fn note(&mut self, sent: Time) {
        self.refused.insert(sent);
        if self.refused.len() > MANY {
            self.refused.pop_first();
        }
    }

    /// The time from which the doubt is evidence, if no answer comes before; `None` as long as too few packets were refused.
    fn proven_at(&self) -> Option<Time> {
        if self.has_refused_ping() {
            return Some(self.pinged_at + self.limit);
        }
        let is_proven = self.has_many() && self.pings >= 2;
        is_proven.then_some(self.pinged_at + self.limit * 3 / 4)
    }

    /// A doubt that needs no refused ping sends the second ping soon after the first one would have been refused.
    fn next_ping(&self) -> Option<Time> {
        let wait = match self.has_many() && !self.has_refused_ping() {
            true => self.limit * 3 / 4,
            false => self.limit,
        };
        match self.pings {
            0 => Some(self.since),
            PINGS.. => None,
            _ => Some(self.pinged_at + wait),
        }
    }

    /// Whether two packets were refused that were sent since the peer was last heard, and one of them counts as a ping.
    fn has_refused_ping(&self) -> bool {
        self.refused.range(self.heard_at..).count() >= 2
            && self.refused.last().is_some_and(|last| *last >= self.since)
    }

    fn has_many(&self) -> bool {
        self.refused.len() >= MANY
    }

    fn next_deadline(&self) -> Option<Time> {
        self.proven_at().into_iter().chain(self.next_ping()).min()
    }
}
