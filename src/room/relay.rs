//! State of the network thread about broadcasts through the leader and messages on behalf of other members.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::core::id::{Incarnation, PeerId};
use crate::core::node::{Node, OriginIncarnation, Speaker};
use crate::net::events::{Leading, OnBehalf, Relaying, SpeakerVerdict};
use crate::net::outbox::{Lead, Outboxes};

/// Origins to ask again when this node leads, at most.
const MAX_REFUSED: usize = 1024;

/// State of centralized mode that the host's threads share with the network thread.
#[derive(Debug)]
pub(super) struct Centralized {
    pub(super) on: AtomicBool,
    pub(super) auto_forward: AtomicBool,
    pub(super) relaying: Arc<Relaying>,
}

impl Centralized {
    pub(super) fn new(auto_forward: bool) -> Self {
        Self {
            on: AtomicBool::new(false),
            auto_forward: AtomicBool::new(auto_forward),
            relaying: Arc::default(),
        }
    }
}

/// The network thread's state about broadcasts.
pub(super) struct Broadcasts {
    centralized: Arc<Centralized>,
    outboxes: Arc<Outboxes>,
    random: SystemRandom,
    /// The leader last passed to the queues.
    lead: Lead,
    /// Origins whose broadcasts were dropped because this node did not lead.
    refused: BTreeSet<PeerId>,
    /// Messages on behalf of others that wait for a link of their origin: one per lane, which is not read meanwhile.
    waiting: Vec<Waiting>,
}

/// A message from an incarnation of a member that no link has shown yet.
#[derive(Debug)]
struct Waiting {
    origin: PeerId,
    incarnation: Incarnation,
    speaker: Option<Speaker>,
    until: Instant,
    answer: oneshot::Sender<SpeakerVerdict>,
}

impl Broadcasts {
    pub(super) fn new(centralized: Arc<Centralized>, outboxes: Arc<Outboxes>) -> Self {
        Self {
            centralized,
            outboxes,
            random: SystemRandom::new(),
            lead: Lead::default(),
            refused: BTreeSet::new(),
            waiting: Vec::new(),
        }
    }

    /// Passes a change of the leader to the queues. Returns the peers to ask for their broadcasts again.
    /// Called before the snapshot is published, so that a host that sees a leader can broadcast.
    pub(super) fn follow_leader(&mut self, node: &Node) -> BTreeSet<PeerId> {
        let leader = node.leader();
        // Checked at every step: only the token that is compared is encoded.
        let unchanged = match &self.lead {
            Lead::None => leader.is_none(),
            Lead::Myself { token, .. } => node.leader_token().as_ref() == Some(token),
            Lead::Peer(peer, token) => leader == Some(peer) && *token == node.followed_token(),
        };
        if unchanged {
            return BTreeSet::new();
        }
        self.lead = match (node.leader_token(), leader) {
            (Some(token), _) => Lead::Myself {
                me: node.id().clone(),
                incarnation: node.incarnation(),
                token,
            },
            (None, Some(peer)) if peer != node.id() => {
                Lead::Peer(peer.clone(), node.followed_token())
            }
            (None, _) => Lead::None,
        };
        let leap = self.draw_leap();
        self.outboxes.follow(self.lead.clone(), leap);
        match self.lead {
            Lead::Myself { .. } => std::mem::take(&mut self.refused),
            _ => BTreeSet::new(),
        }
    }

    /// Draws how far the numbers of broadcasts leap ahead under another leader: too far to guess, and small
    /// enough for millions of leaders.
    fn draw_leap(&self) -> u64 {
        let mut bytes = [0; 8];
        if self.random.fill(&mut bytes).is_err() {
            // Without randomness the numbers stay: a malicious leader can guess the next ones.
            tracing::warn!("the system's random generator failed");
            return 0;
        }
        u64::from_le_bytes(bytes) >> 24
    }

    /// Answers whether a message on behalf of another member may be delivered, at once or by `until`.
    /// `speaker` is the capacity in which its relay may speak for others, if it may.
    pub(super) fn receive(
        &mut self,
        node: &Node,
        message: OnBehalf,
        speaker: Option<Speaker>,
        until: Instant,
    ) {
        let OnBehalf {
            origin,
            incarnation,
            may_wait,
            answer,
            ..
        } = message;
        let hearing = hearing(node, &origin, incarnation, speaker);
        match (hearing, incarnation) {
            (SpeakerVerdict::NotYet, Some(incarnation)) if may_wait => self.waiting.push(Waiting {
                origin,
                incarnation,
                speaker,
                until,
                answer,
            }),
            _ => self.answer(hearing, answer),
        }
    }

    /// [`Broadcasts::receive`] for a relay that has left: its lanes are read to their end, and nothing waits any more.
    pub(super) fn answer_departing(
        &self,
        node: &Node,
        message: OnBehalf,
        speaker: Option<Speaker>,
    ) {
        let hearing = match hearing(node, &message.origin, message.incarnation, speaker) {
            SpeakerVerdict::NotYet => SpeakerVerdict::No,
            hearing => hearing,
        };
        self.answer(hearing, message.answer);
    }

    /// The leadership under which this node relays a broadcast of `origin`, if `relays`. Otherwise `origin`
    /// is asked again when this node leads.
    pub(super) fn leading_for(
        &mut self,
        node: &Node,
        origin: PeerId,
        relays: bool,
    ) -> Option<Leading> {
        let leading = match (&self.lead, node.membership().get(&origin)) {
            (Lead::Myself { token, .. }, Some(member)) if relays => Some(Leading {
                incarnation: member.incarnation,
                token: token.clone(),
                forward: self.centralized.auto_forward.load(Ordering::Relaxed),
            }),
            _ => None,
        };
        if leading.is_none() {
            if self.refused.len() >= MAX_REFUSED && !self.refused.contains(&origin) {
                self.refused.pop_first();
            }
            self.refused.insert(origin);
        }
        leading
    }

    fn answer(&self, hearing: SpeakerVerdict, answer: oneshot::Sender<SpeakerVerdict>) {
        if hearing == SpeakerVerdict::No {
            self.centralized.relaying.count_dropped();
        }
        // The asker may be gone.
        let _ = answer.send(hearing);
    }

    /// When the first wait for an origin's incarnation ends.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|one| one.until).min()
    }

    /// Answers messages whose origin has a link by now.
    pub(super) fn answer_waiting(&mut self, node: &Node) {
        if self.waiting.is_empty() {
            return;
        }
        let now = Instant::now();
        for one in std::mem::take(&mut self.waiting) {
            let hearing = hearing(node, &one.origin, Some(one.incarnation), one.speaker);
            if one.answer.is_closed() {
                continue;
            }
            if hearing == SpeakerVerdict::NotYet && now < one.until {
                self.waiting.push(one);
            } else {
                self.answer(hearing, one.answer);
            }
        }
    }
}

/// Decides about a message on behalf of `origin`, whose relay speaks for it as that `speaker`.
fn hearing(
    node: &Node,
    origin: &PeerId,
    incarnation: Option<Incarnation>,
    speaker: Option<Speaker>,
) -> SpeakerVerdict {
    // No member speaks for this node to itself.
    let Some(speaker) = speaker.filter(|_| origin != node.id()) else {
        return SpeakerVerdict::No;
    };
    let yes = |is_bound| SpeakerVerdict::Yes {
        is_bound,
        by_leader: speaker == Speaker::Leader,
    };
    let Some(incarnation) = incarnation else {
        return yes(false);
    };
    match node.origin_incarnation(origin, incarnation) {
        OriginIncarnation::Present => yes(true),
        OriginIncarnation::NoMember => yes(false),
        OriginIncarnation::Past => SpeakerVerdict::No,
        OriginIncarnation::Unknown => SpeakerVerdict::NotYet,
    }
}
