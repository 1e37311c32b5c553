//! Who may enter: whoever is known enters at once; about a stranger the leader decides, or its host.
//!
//! A contact that does not lead asks the leader and waits; without a leader that it is linked to it decides
//! itself. A question outlives its leader: the next one is asked again.

use super::*;
use crate::core::wire::{Candidate, MAX_JOIN_PAYLOAD_BYTES, MAX_REASON_BYTES, Verdict};

/// Questions that are open at a time, at most. Beyond these the room counts as full.
const MAX_OPEN: usize = 64;
/// The same for one member that asks: so many admissions are under way at a time at an honest one.
const MAX_OPEN_PER_MEMBER: usize = 16;
/// Strangers that members vouched for and that are remembered, at most, and for how long.
const MAX_VOUCHED: usize = 1024;
const VOUCHED_FOR: Duration = Duration::from_secs(120);
/// The longest time for which an old link is asked for a sign of life before its id is another's.
const MAX_BINDING_PROBE: Duration = Duration::from_millis(500);
/// Time between two probes of it: one may be lost.
const BINDING_PING_INTERVAL: Duration = Duration::from_millis(100);

/// Questions about strangers.
#[derive(Debug, Default)]
pub(super) struct Joins {
    open: BTreeMap<u64, Open>,
    asked: u64,
    vouched: BTreeMap<PeerId, (Fingerprint, Time)>,
    /// Who was let in by this node and is not linked yet; it has a place until then.
    granted: BTreeMap<PeerId, Time>,
}

#[derive(Debug)]
struct Open {
    candidate: Candidate,
    asker: Asker,
    invited: bool,
    waits: Waits,
    until: Time,
}

/// Who wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asker {
    /// An admission of this node.
    Here { ticket: u64 },
    /// Another member.
    Member { peer: PeerId, request: u64 },
}

impl Asker {
    fn member(&self) -> Option<&PeerId> {
        match self {
            Self::Here { .. } => None,
            Self::Member { peer, .. } => Some(peer),
        }
    }
}

/// What a question waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Waits {
    /// Whether the present id_holder of the id lives.
    Binding { until: Time, ping_at: Time },
    /// That leader's word.
    Leader { leader: PeerId, asked: bool },
    /// This host's word.
    Host,
}

impl Joins {
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let until = |open: &Open| match open.waits {
            Waits::Binding { until, ping_at } => ping_at.min(until).min(open.until),
            Waits::Leader { .. } | Waits::Host => open.until,
        };
        self.open.values().map(until).min()
    }
}

impl Node {
    /// Somebody wants to be linked here.
    pub(super) fn join(&mut self, now: Time, ticket: u64, candidate: Candidate, invited: bool) {
        self.open_join(now, Asker::Here { ticket }, candidate, invited);
    }

    /// A member asks about somebody who wants to be linked there.
    pub(super) fn join_requested(
        &mut self,
        now: Time,
        from: &PeerId,
        request: u64,
        candidate: Candidate,
    ) {
        if candidate.payload.len() > MAX_JOIN_PAYLOAD_BYTES
            || candidate.entry.addresses.len() > MAX_PEER_ADDRESSES
        {
            self.violation(now, from, "a join request is longer than allowed");
            return;
        }
        let asker = Asker::Member {
            peer: from.clone(),
            request,
        };
        self.open_join(now, asker, candidate, false);
    }

    fn open_join(&mut self, now: Time, asker: Asker, candidate: Candidate, invited: bool) {
        let is_member = matches!(asker, Asker::Member { .. });
        let mine = |open: &&Open| open.asker.member() == asker.member();
        if self.joins.open.len() >= MAX_OPEN
            || (is_member && self.joins.open.values().filter(mine).count() >= MAX_OPEN_PER_MEMBER)
        {
            self.answer_asker(&asker, Verdict::Full);
            return;
        }
        self.joins.asked += 1;
        let number = self.joins.asked;
        self.joins.open.insert(
            number,
            Open {
                candidate,
                asker,
                invited,
                waits: Waits::Leader {
                    leader: self.me.clone(),
                    asked: false,
                },
                until: now + self.config.handshake_timeout,
            },
        );
        self.decide(now, number);
    }

    /// Carries a question on from wherever it stands.
    fn decide(&mut self, now: Time, number: u64) {
        let Some(open) = self.joins.open.get(&number) else {
            return;
        };
        let entry = open.candidate.entry.clone();
        let incarnation = open.candidate.incarnation;
        let (asker, invited) = (open.asker.clone(), open.invited);
        let host_is_asked = open.waits == Waits::Host;
        if self.unanswered_leaves.is_some() || self.ended {
            return self.answer(number, Verdict::Timeout);
        }
        if self.is_kicked(&entry.id, entry.key) {
            let verdict = Verdict::Rejected {
                reason: 0,
                bytes: Vec::new(),
            };
            return self.answer(number, verdict);
        }
        if entry.id == self.me || !self.election.admits(&entry.id, entry.key) {
            return self.answer(number, Verdict::DuplicatePeerId);
        }
        let linked = self.membership.get(&entry.id).is_some();
        match self.id_holder(&entry.id) {
            Some((key, known)) if key == entry.key && (incarnation >= known || !linked) => {
                return self.accept(now, number, false);
            }
            Some(_) if linked => {
                let wait = MAX_BINDING_PROBE.min(self.config.handshake_timeout / 2);
                self.set_waits(
                    number,
                    Waits::Binding {
                        until: now + wait,
                        ping_at: now + BINDING_PING_INTERVAL,
                    },
                );
                return self.ping(&entry.id);
            }
            None if self.is_vouched(&entry) => return self.accept(now, number, false),
            Some(_) | None => {}
        }
        let leader = self.leader().cloned();
        let linked = |id: &PeerId| self.membership.get(id).is_some();
        match leader {
            // It asks again whoever leads, or decides itself.
            _ if asker.member().is_some() && !self.is_leader() => {
                self.answer(number, Verdict::NotLeader);
            }
            Some(leader) if leader != self.me && linked(&leader) && leader != entry.id => {
                self.set_waits(
                    number,
                    Waits::Leader {
                        leader: leader.clone(),
                        asked: true,
                    },
                );
                self.ask_leader(number, &leader);
            }
            _ if host_is_asked => {}
            _ if self.has_no_place_for(now, &entry.id) => self.answer(number, Verdict::Full),
            _ if self.config.ask_host && !invited => {
                self.set_waits(number, Waits::Host);
                let candidate = self.joins.open.get(&number).map(|open| &open.candidate);
                if let Some(Candidate { entry, payload, .. }) = candidate.cloned() {
                    self.event(Event::JoinRequest {
                        request: number,
                        peer: entry.id,
                        address: entry.addresses.first().copied(),
                        payload,
                    });
                }
            }
            _ => self.accept(now, number, true),
        }
    }

    /// Whether the limits of the room leave no place for one more member. Within the leader's limit lost members
    /// keep their places, and those that were let in a moment ago have theirs; the own limit counts links, or
    /// members that come and go could keep everybody out. The leader's limit counts nobody out who leads: the one that is
    /// known here may be old, and the leader lifts it as soon as it is linked. Nor does it count a voter of a static quorum
    /// out where nobody leads: votes alone make a leader there, and only a leader can lift the limit.
    fn has_no_place_for(&mut self, now: Time, peer: &PeerId) -> bool {
        self.joins.granted.retain(|_, until| now < *until);
        let granted = self.joins.granted.keys().filter(|id| *id != peer).count();
        let lost = self.absent.keys().filter(|id| *id != peer).count();
        let linked = self.membership.len();
        let max_peers = usize::try_from(self.max_peers()).unwrap_or(usize::MAX);
        let leads = self.leader() == Some(peer);
        let roster = self.config.election.quorum.roster();
        let elects = self.leader().is_none() && roster.is_some_and(|roster| roster.contains(peer));
        linked >= self.config.max_connections
            || (!leads && !elects && max_peers > 0 && linked + granted + lost >= max_peers)
    }

    /// It is linked: its place is no promise any more.
    pub(super) fn has_entered(&mut self, peer: &PeerId) {
        self.joins.granted.remove(peer);
    }

    fn set_waits(&mut self, number: u64, waits: Waits) {
        if let Some(open) = self.joins.open.get_mut(&number) {
            open.waits = waits;
        }
    }

    fn ask_leader(&mut self, number: u64, leader: &PeerId) {
        let candidate = self.joins.open.get(&number).map(|open| &open.candidate);
        if let Some(candidate) = candidate.cloned() {
            let question = Message::JoinRequest {
                request: number,
                candidate,
            };
            self.transmit(leader, question);
        }
    }

    /// It may enter; when this node decided that, everybody is told.
    fn accept(&mut self, now: Time, number: u64, decided: bool) {
        let Some(open) = self.joins.open.get(&number) else {
            return;
        };
        let entry = open.candidate.entry.clone();
        let incarnation = open.candidate.incarnation;
        if let Some(absent) = self.absent.get(&entry.id)
            && (absent.key, absent.incarnation) != (entry.key, incarnation)
        {
            self.remove(now, &entry.id, Gone::Closed, LeftReason::Replaced);
        }
        if decided {
            let until = now + self.config.handshake_timeout;
            if self.joins.granted.len() < MAX_VOUCHED {
                self.joins.granted.insert(entry.id.clone(), until);
            }
            self.vouch(now, &entry.id, entry.key);
            let mut entry = entry;
            if self.is_star() {
                entry.addresses.clear();
            }
            for peer in self.membership.ids() {
                let word = Message::Admitted {
                    entry: entry.clone(),
                    incarnation,
                };
                self.transmit(&peer, word);
            }
        }
        self.answer(number, Verdict::Accepted);
    }

    fn answer(&mut self, number: u64, verdict: Verdict) {
        if let Some(open) = self.joins.open.remove(&number) {
            self.answer_asker(&open.asker, verdict);
        }
    }

    fn answer_asker(&mut self, asker: &Asker, verdict: Verdict) {
        match asker {
            Asker::Here { ticket } => self.outputs.push_back(Output::JoinAnswer {
                ticket: *ticket,
                verdict,
            }),
            // Whoever is lost asks again when it is back.
            Asker::Member { peer, .. } if self.membership.get(peer).is_none() => {}
            Asker::Member { peer, request } => {
                let request = *request;
                self.transmit(peer, Message::JoinAnswer { request, verdict });
            }
        }
    }

    /// The leader, or whoever was taken for it, has answered.
    pub(super) fn join_answered(
        &mut self,
        now: Time,
        from: &PeerId,
        request: u64,
        verdict: Verdict,
    ) {
        let Some(open) = self.joins.open.get_mut(&request) else {
            return;
        };
        let Waits::Leader { leader, asked } = &mut open.waits else {
            return;
        };
        if leader != from || !*asked {
            return;
        }
        match verdict {
            // It will hear that it leads, or we that it does not: either way it is asked again.
            Verdict::NotLeader => *asked = false,
            Verdict::Accepted => self.accept(now, request, false),
            Verdict::Rejected { ref bytes, .. } if bytes.len() > MAX_REASON_BYTES => {
                self.violation(now, from, "a rejection is longer than allowed");
            }
            verdict => self.answer(request, verdict),
        }
    }

    /// The leader has let somebody in. While the id is bound to another key here that changes nothing: the newcomer
    /// asks for a link, and then the id_holder of the id is asked for a sign of life.
    pub(super) fn admitted(&mut self, now: Time, from: &PeerId, entry: &PeerEntry) {
        if entry.addresses.len() > MAX_PEER_ADDRESSES {
            self.violation(now, from, "an admission is longer than allowed");
            return;
        }
        if self.introduces(from) {
            self.told_of(now, entry);
        }
    }

    /// The host's answer.
    pub(super) fn host_answers(
        &mut self,
        now: Time,
        request: u64,
        verdict: Verdict,
    ) -> Result<(), CommandError> {
        let newcomer = match self.joins.open.get(&request) {
            Some(open) if open.waits == Waits::Host => open.candidate.entry.id.clone(),
            _ => return Err(CommandError::UnknownRequest(request)),
        };
        if verdict != Verdict::Accepted {
            self.answer(request, verdict);
        } else if self.has_no_place_for(now, &newcomer) {
            // Others took the last places while the host thought about it.
            self.answer(request, Verdict::Full);
        } else {
            self.accept(now, request, true);
        }
        Ok(())
    }

    /// A sign of life of a peer: an id that somebody else wants is in use.
    pub(super) fn binding_lives(&mut self, peer: &PeerId) {
        let disputed: Vec<_> = self
            .joins
            .open
            .iter()
            .filter(|(_, open)| {
                matches!(open.waits, Waits::Binding { .. }) && open.candidate.entry.id == *peer
            })
            .map(|(number, _)| *number)
            .collect();
        for number in disputed {
            self.answer(number, Verdict::DuplicatePeerId);
        }
    }

    /// Questions that waited long enough.
    pub(super) fn joins_due(&mut self, now: Time) {
        let numbers: Vec<_> = self.joins.open.keys().copied().collect();
        for number in numbers {
            let Some(open) = self.joins.open.get(&number) else {
                continue;
            };
            match open.waits {
                _ if now >= open.until => self.answer(number, Verdict::Timeout),
                Waits::Binding { ping_at, until } if now >= ping_at && now < until => {
                    let id_holder = open.candidate.entry.id.clone();
                    let ping_at = now + BINDING_PING_INTERVAL;
                    self.set_waits(number, Waits::Binding { ping_at, until });
                    self.ping(&id_holder);
                }
                Waits::Binding { until, .. } if now >= until => {
                    let newcomer = open.candidate.entry.clone();
                    let id_holder = self.id_holder(&newcomer.id);
                    self.close(&newcomer.id, LinkEnd::Replaced);
                    self.remove(now, &newcomer.id, Gone::Closed, LeftReason::Replaced);
                    if id_holder.is_some_and(|(key, _)| key == newcomer.key) {
                        // The room let the holder of this key in before.
                        self.accept(now, number, false);
                    } else {
                        self.decide(now, number);
                    }
                }
                _ => {}
            }
        }
    }

    /// There is another leader, or none: open questions are for that one.
    pub(super) fn decider_changed(&mut self, now: Time) {
        let numbers: Vec<_> = self.joins.open.keys().copied().collect();
        for number in numbers {
            match self.joins.open.get(&number).map(|open| &open.waits) {
                Some(Waits::Leader { .. } | Waits::Host) => self.decide(now, number),
                Some(Waits::Binding { .. }) | None => {}
            }
        }
    }

    /// The leader was heard: what it did not take before, it may take now.
    pub(super) fn decider_heard(&mut self, leader: &PeerId) {
        if self.joins.open.is_empty() || self.leader() != Some(leader) {
            return;
        }
        let unasked: Vec<_> = self
            .joins
            .open
            .iter()
            .filter(|(_, open)| {
                open.waits
                    == Waits::Leader {
                        leader: leader.clone(),
                        asked: false,
                    }
            })
            .map(|(number, _)| *number)
            .collect();
        for number in unasked {
            let leader = leader.clone();
            self.ask_leader(number, &leader);
            self.set_waits(
                number,
                Waits::Leader {
                    leader,
                    asked: true,
                },
            );
        }
    }

    /// A member is gone, and with it its questions.
    pub(super) fn asker_gone(&mut self, peer: &PeerId) {
        self.joins.open.retain(
            |_, open| !matches!(&open.asker, Asker::Member { peer: asker, .. } if asker == peer),
        );
    }

    /// A member's word counts as admission: it does not link with whom the leader did not let in.
    pub(super) fn vouch(&mut self, now: Time, peer: &PeerId, key: Fingerprint) {
        let vouched = &mut self.joins.vouched;
        vouched.retain(|_, (_, until)| now < *until);
        if vouched.len() >= MAX_VOUCHED && !vouched.contains_key(peer) {
            return;
        }
        vouched.insert(peer.clone(), (key, now + VOUCHED_FOR));
    }

    /// The word for somebody who was a member ends with its membership: the room decides again.
    pub(super) fn unvouch(&mut self, peer: &PeerId, key: Fingerprint) {
        if self
            .joins
            .vouched
            .get(peer)
            .is_some_and(|(of, _)| *of == key)
        {
            self.joins.vouched.remove(peer);
        }
    }

    /// Whether the holder of `key` has shown that it knows the room: to this node, as a member, linked or lost; or to
    /// a member, who vouches for it.
    pub fn knows(&self, now: Time, key: Fingerprint) -> bool {
        self.membership.iter().any(|(_, member)| member.key == key)
            || self.absent.values().any(|absent| absent.key == key)
            || self
                .joins
                .vouched
                .values()
                .any(|(of, until)| *of == key && now < *until)
    }

    fn is_vouched(&self, entry: &PeerEntry) -> bool {
        self.joins
            .vouched
            .get(&entry.id)
            .is_some_and(|(key, _)| *key == entry.key)
    }
}
