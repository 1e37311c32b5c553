//! Admission: known peers enter at once; the leader, or its host, decides about strangers.
//!
//! A contact that does not lead asks the leader and waits. A contact without a leader that it can ask decides itself: it has
//! no link with the leader, or one that a member carries. A request outlives its leader: the next leader is asked again.

use super::*;
use crate::bounded::BoundedMap;
use crate::virtual_address::{VirtualId, virtual_id};
use crate::wire::{
    Candidate, MAX_JOIN_PAYLOAD_BYTES, MAX_REASON_BYTES, NoPlace, Undecided, Verdict,
};

/// Most requests that are open at a time. Beyond these the room counts as full.
const MAX_OPEN: usize = 64;
/// Most open requests of one member that asks; an honest member has no more admissions under way.
const MAX_OPEN_PER_MEMBER: usize = 16;
/// Most requests of one member that are considered at a time; its others wait.
const MAX_CONSIDERED_PER_MEMBER: usize = 4;
/// Most vouched strangers that are remembered, and for how long.
const MAX_VOUCHED: usize = 1024;
const VOUCHED_FOR: Duration = Duration::from_secs(120);
/// Part of the handshake timeout before its end at which a host that has taken no events is given up.
const HOST_CHECK_PART: u32 = 4;
/// Longest time for which an old link is probed before its id goes to another peer.
const MAX_BINDING_PROBE: Duration = Duration::from_millis(500);
/// Time between two probes of it: one may be lost.
const BINDING_PING_INTERVAL: Duration = Duration::from_millis(100);

/// Requests of strangers for admission.
#[derive(Debug, Default)]
pub(super) struct Joins {
    open: BTreeMap<u64, Open>,
    asked: u64,
    vouched: BoundedMap<PeerId, (Fingerprint, Time), MAX_VOUCHED>,
    /// A time before which no voucher ends. None: there were none yet.
    vouchers_end: Option<Time>,
    /// Peers that this node admitted and that are not linked yet; each has a place until then.
    granted: BoundedMap<PeerId, Grant, MAX_VOUCHED>,
    /// Tickets that the leader has admitted and that are not linked yet, with the leader to notify if they never are.
    passed: BTreeMap<u64, Passed>,
    /// A member that has given a sign of life after its id went to another peer.
    pub(super) answered_late: Option<PeerId>,
    /// Peers for which this node's own host asked, with the time of their admission.
    invited: BoundedMap<PeerId, (Fingerprint, Time), MAX_VOUCHED>,
}

/// A request that the leader has granted.
#[derive(Debug)]
struct Passed {
    leader: PeerId,
    number: u64,
    until: Time,
}

/// A place that is kept for a newcomer.
#[derive(Debug)]
struct Grant {
    asker: Asker,
    until: Time,
}

#[derive(Debug)]
struct Open {
    candidate: Candidate,
    asker: Asker,
    invited: bool,
    /// Whether this host was asked and has neither answered nor received a withdrawal.
    host_asked: bool,
    waits: Waits,
    until: Time,
}

/// The origin of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asker {
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

/// The state in which a request waits.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Waits {
    /// Waits for a sign of life of the present holder of the id.
    Binding { until: Time, ping_at: Time },
    /// Waits for the leader's answer.
    Leader { leader: PeerId, asked: bool },
    /// Waits for this host's answer. A host that has taken no events between `asked` and `check_at` does not know of the
    /// request.
    Host { asked: Time, check_at: Option<Time> },
    /// Waits for other requests of the same member, or for the places that were granted to those.
    Turn,
}

impl Joins {
    /// The time at which the holder of `key` was admitted, if this node's own host asked for the link with it.
    pub(super) fn invited_at(&self, peer: &PeerId, key: Fingerprint) -> Option<Time> {
        let invited = self
            .invited
            .get(peer)
            .filter(|(invited, _)| *invited == key);
        invited.map(|(_, at)| *at)
    }

    /// Forgets that this node's own host asked for links with these peers.
    pub(super) fn forget_invitations(&mut self, of: impl Fn(&PeerId) -> bool) {
        self.invited.retain(|peer, _| !of(peer));
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let until = |open: &Open| match open.waits {
            Waits::Binding { until, ping_at } => ping_at.min(until).min(open.until),
            Waits::Host { check_at, .. } => check_at.map_or(open.until, |at| at.min(open.until)),
            Waits::Leader { .. } | Waits::Turn => open.until,
        };
        let next = self.open.values().map(until).min();
        let grants = self.granted.values().filter(|_| self.has_waiting());
        next.into_iter()
            .chain(grants.map(|grant| grant.until))
            .min()
    }

    /// Whether a request waits for its turn.
    fn has_waiting(&self) -> bool {
        self.open.values().any(|open| open.waits == Waits::Turn)
    }

    /// Whether the limit of considered requests of one member is reached, without request `number`.
    fn reaches_considered_limit(&self, asker: &Asker, number: u64) -> bool {
        let of_it = |other: &&Open| {
            other.asker.member() == asker.member()
                && matches!(other.waits, Waits::Host { .. } | Waits::Binding { .. })
        };
        let others = self.open.iter().filter(|(other, _)| **other != number);
        others.map(|(_, open)| open).filter(of_it).count() >= MAX_CONSIDERED_PER_MEMBER
    }
}

/// The places of a room with a limit, as far as they are taken.
struct Places {
    max: usize,
    /// Places of members, linked or lost.
    taken: usize,
}

impl Places {
    /// Most places that grants to one asker may hold while others hold `to_others`: half of the free ones, at least
    /// one. So a member that asks for newcomers of its own making blocks no other newcomer.
    fn share(&self, to_others: usize) -> usize {
        let free = self.max.saturating_sub(self.taken + to_others);
        (free / 2).max(1)
    }
}

impl Node {
    /// Handles a request for a link with this node.
    pub(super) fn join(&mut self, now: Time, ticket: u64, candidate: Candidate, invited: bool) {
        self.open_join(now, Asker::Here { ticket }, candidate, invited);
    }

    /// Handles a member's request for a link with that member.
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
            self.answer_asker(&asker, Verdict::Full(NoPlace::Newcomers));
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
                host_asked: false,
                waits: Waits::Leader {
                    leader: self.me.clone(),
                    asked: false,
                },
                until: now + self.config.handshake_timeout,
            },
        );
        self.decide(now, number);
    }

    /// Continues a request from its present state.
    fn decide(&mut self, now: Time, number: u64) {
        let Some(open) = self.joins.open.get(&number) else {
            return;
        };
        let entry = open.candidate.entry.clone();
        let incarnation = open.candidate.incarnation;
        let (asker, invited) = (open.asker.clone(), open.invited);
        let host_is_asked = matches!(open.waits, Waits::Host { .. });
        let until = open.until;
        if self.unanswered_leaves.is_some() || self.ended {
            return self.answer(number, Verdict::Timeout(Undecided::Leaving));
        }
        if self.is_kicked(&entry.id, entry.key) {
            let verdict = Verdict::Rejected {
                reason: 0,
                bytes: AdmissionRefusal::Kicked(entry.id).to_string().into_bytes(),
            };
            return self.answer(number, verdict);
        }
        if entry.id == self.me || !self.election.admits(&entry.id, entry.key) {
            return self.answer(number, Verdict::DuplicatePeerId);
        }
        if self.moves_to(&entry.id, entry.key) {
            return self.accept(now, number, false);
        }
        let is_kept = self.keeps_id(&entry.id, entry.key, incarnation);
        match self.id_holder(&entry.id) {
            Some(_) if is_kept => {
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
            // The room admitted the holder of this key before.
            Some((key, _)) if key == entry.key => return self.accept(now, number, false),
            _ if self.is_vouched(&entry.id, entry.key) => return self.accept(now, number, false),
            _ => {}
        }
        let leader = self.leader().cloned();
        let no_place = self.no_place_for(now, &entry.id);
        // A link that a member carries takes no question to the leader: this node would wait for an answer in vain.
        let asks = |leader: &PeerId| self.membership.elector(leader).is_some();
        match (leader, no_place) {
            // The asker asks the next leader, or decides itself.
            _ if asker.member().is_some() && !self.is_leader() => {
                self.answer(number, Verdict::NotLeader);
            }
            (Some(leader), _) if leader != self.me && asks(&leader) && leader != entry.id => {
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
            _ if self.waits_for_its_turn(now, number, &asker, &entry.id) => {
                self.set_waits(number, Waits::Turn);
            }
            (_, Some(no_place)) => self.answer(number, Verdict::Full(no_place)),
            _ if self.config.ask_host && !invited && self.looking.is_none() => {
                let waits = Waits::Host {
                    asked: now,
                    check_at: Some(until - self.config.handshake_timeout / HOST_CHECK_PART),
                };
                self.set_waits(number, waits);
                let open = self.joins.open.get_mut(&number);
                let candidate = open.map(|open| {
                    open.host_asked = true;
                    open.candidate.clone()
                });
                if let Some(Candidate { entry, payload, .. }) = candidate {
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

    /// The limit that leaves no place for one more member, if any. Within the leader's limit, lost members keep their
    /// places, and newly admitted ones have theirs. This node's own limit counts links only, or members that come and
    /// go could block all others.
    ///
    /// The leader's limit blocks no leader: the limit that is known here may be old, and the leader lifts it as soon as
    /// it is linked. Nor does it block a voter of a static quorum while there is no leader: only votes make a leader
    /// there, and only a leader can lift the limit.
    fn no_place_for(&mut self, now: Time, peer: &PeerId) -> Option<NoPlace> {
        self.joins.granted.retain(|_, grant| now < grant.until);
        // A peer that replaces its own member takes that member's place.
        if self.linked_but(peer) >= self.config.max_connections {
            return Some(NoPlace::connections(self.config.max_connections));
        }
        let leads = self.leader() == Some(peer);
        let roster = self.config.election.quorum.roster();
        let elects = self.leader().is_none() && roster.is_some_and(|roster| roster.contains(peer));
        let granted = self.joins.granted.keys().filter(|id| *id != peer).count();
        let places = self.places_but_of(peer).filter(|_| !leads && !elects);
        let is_full = places.is_some_and(|places| places.taken + granted >= places.max);
        let limit = self.max_peers();
        is_full.then_some(NoPlace::Members { limit })
    }

    /// The places of the room, if there is a limit, without the place of `peer`.
    fn places_but_of(&self, peer: &PeerId) -> Option<Places> {
        let max = usize::try_from(self.max_peers()).unwrap_or(usize::MAX);
        let lost = self.absent().filter(|id| *id != peer).count();
        (max > 0).then_some(Places {
            max,
            taken: self.linked_but(peer) + lost,
        })
    }

    /// Number of linked members other than `peer`.
    fn linked_but(&self, peer: &PeerId) -> usize {
        let linked = self.membership.iter();
        linked.filter(|(id, _)| *id != peer).count()
    }

    /// Whether a member's request waits: others of its requests are considered, or its newcomers hold its share of the
    /// places.
    fn waits_for_its_turn(&mut self, now: Time, number: u64, asker: &Asker, peer: &PeerId) -> bool {
        let Some(member) = asker.member() else {
            return false;
        };
        if self.joins.reaches_considered_limit(asker, number) {
            return true;
        }
        self.joins.granted.retain(|_, grant| now < grant.until);
        let others = self.joins.granted.iter().filter(|(id, _)| *id != peer);
        let is_its = |grant: &Grant| grant.asker.member() == Some(member);
        let (its, to_others): (Vec<_>, Vec<_>) = others.partition(|(_, grant)| is_its(grant));
        let places = self.places_but_of(peer);
        places.is_some_and(|places| its.len() >= places.share(to_others.len()))
    }

    /// Considers the requests that waited for others of the same member, as far as it is their turn.
    pub(super) fn take_turns(&mut self, now: Time) {
        if !self.joins.has_waiting() {
            return;
        }
        let waiting = self.joins.open.iter();
        let waiting = waiting.filter(|(_, open)| open.waits == Waits::Turn);
        for number in waiting.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.decide(now, number);
        }
    }

    /// Releases the reserved place of a peer that is linked now.
    pub(super) fn has_entered(&mut self, peer: &PeerId) {
        self.joins.granted.remove(peer);
    }

    fn set_waits(&mut self, number: u64, waits: Waits) {
        let Some(open) = self.joins.open.get_mut(&number) else {
            return;
        };
        let is_over = !matches!(waits, Waits::Host { .. }) && std::mem::take(&mut open.host_asked);
        let peer = open.candidate.entry.id.clone();
        open.waits = waits;
        if is_over {
            let request = number;
            self.event(Event::JoinWithdrawn { request, peer });
        }
    }

    /// Closes a request. If the host was asked and has not answered, it receives a withdrawal.
    fn close_request(&mut self, number: u64) -> Option<Open> {
        let open = self.joins.open.remove(&number)?;
        if open.host_asked {
            let (request, peer) = (number, open.candidate.entry.id.clone());
            self.event(Event::JoinWithdrawn { request, peer });
        }
        Some(open)
    }

    /// Withdraws a request of this node: the newcomer has gone away.
    pub(super) fn join_withdrawn(&mut self, ticket: u64) {
        if let Some(Passed { leader, number, .. }) = self.joins.passed.remove(&ticket) {
            self.take_back(&leader, number);
        }
        self.withdraw(&Asker::Here { ticket });
    }

    /// Withdraws an asker's request, and frees the place that the answer reserved.
    pub(super) fn withdraw(&mut self, asker: &Asker) {
        self.joins.granted.retain(|_, grant| grant.asker != *asker);
        let mut open = self.joins.open.iter();
        let number = open.find(|(_, open)| open.asker == *asker);
        let Some(number) = number.map(|(number, _)| *number) else {
            return;
        };
        if let Some(Open {
            waits:
                Waits::Leader {
                    leader,
                    asked: true,
                },
            ..
        }) = self.close_request(number)
        {
            self.take_back(&leader, number);
        }
    }

    fn take_back(&mut self, leader: &PeerId, request: u64) {
        // A lost leader reserves nothing for a newcomer of this node beyond its timeout.
        if self.membership.get(leader).is_some() {
            self.transmit(leader, Message::JoinWithdrawn { request });
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

    /// Admits the newcomer. If this node decided, it notifies all members. No session ends by that: a session of the
    /// same id ends when the link is ready.
    fn accept(&mut self, now: Time, number: u64, decided: bool) {
        let Some(open) = self.joins.open.get(&number) else {
            return;
        };
        let entry = open.candidate.entry.clone();
        let incarnation = open.candidate.incarnation;
        let asker = open.asker.clone();
        if self.keeps_id(&entry.id, entry.key, incarnation) {
            // Meanwhile another peer entered under this id, or a later process of the newcomer.
            return self.answer(number, Verdict::DuplicatePeerId);
        }
        if open.invited {
            // Without room for the entry, no ban of that leader moves this node.
            let invited = (entry.key, now);
            let _ = self.joins.invited.insert(entry.id.clone(), invited);
        }
        let holder = self.id_holder(&entry.id);
        let restarted = holder.is_some_and(|(key, known)| key == entry.key && known != incarnation);
        if restarted && asker.member().is_none() {
            // It asks on a link of its own, with its key.
            self.replace(now, &entry.id, SessionEnd::Restarted);
        }
        if decided {
            let until = now + self.config.handshake_timeout;
            // Without room for the entry, no place is reserved.
            let grant = Grant { asker, until };
            let _ = self.joins.granted.insert(entry.id.clone(), grant);
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
        if let Some(open) = self.close_request(number) {
            self.answer_asker(&open.asker, verdict);
        }
    }

    fn answer_asker(&mut self, asker: &Asker, verdict: Verdict) {
        match asker {
            Asker::Here { ticket } => self.outputs.push_back(Output::JoinAnswer {
                ticket: *ticket,
                verdict,
            }),
            // A lost asker asks again after its return.
            Asker::Member { peer, .. } if self.membership.get(peer).is_none() => {}
            Asker::Member { peer, request } => {
                let request = *request;
                self.transmit(peer, Message::JoinAnswer { request, verdict });
            }
        }
    }

    /// Handles the answer of the leader, or of the member that was taken for it.
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
            // Either that member learns that it leads, or this node learns that it does not: it asks again in both
            // cases.
            Verdict::NotLeader => *asked = false,
            Verdict::Accepted => {
                let until = now + self.config.handshake_timeout;
                self.note_passed(now, request, from, until);
                self.accept(now, request, false);
            }
            Verdict::Rejected { ref bytes, .. } if bytes.len() > MAX_REASON_BYTES => {
                self.violation(now, from, "a rejection is longer than allowed");
            }
            verdict => self.answer(request, verdict),
        }
    }

    /// Notes that the leader has admitted a newcomer of this node and reserves a place until then.
    fn note_passed(&mut self, now: Time, number: u64, leader: &PeerId, until: Time) {
        let passed = &mut self.joins.passed;
        passed.retain(|_, one| now < one.until);
        let asker = self.joins.open.get(&number).map(|open| &open.asker);
        if let Some(Asker::Here { ticket }) = asker
            && passed.len() < MAX_OPEN
        {
            let leader = leader.clone();
            let one = Passed {
                leader,
                number,
                until,
            };
            passed.insert(*ticket, one);
        }
    }

    /// Handles the leader's notice of an admission. While the id is bound to another key here, that changes nothing: the
    /// newcomer asks for a link, and then the holder of the id is probed.
    pub(super) fn admitted(&mut self, now: Time, from: &PeerId, entry: &PeerEntry) {
        if entry.addresses.len() > MAX_PEER_ADDRESSES {
            self.violation(now, from, "an admission is longer than allowed");
            return;
        }
        let holder = self.id_holder(&entry.id).map(|(key, _)| key);
        let is_bound = holder.is_some_and(|key| key != entry.key);
        if self.introduces(from) && !is_bound {
            self.introduced_by(now, from, entry, !entry.addresses.is_empty());
        }
    }

    /// Handles the host's answer.
    pub(super) fn host_answers(
        &mut self,
        now: Time,
        request: u64,
        verdict: Verdict,
    ) -> Result<(), CommandError> {
        let newcomer = match self.joins.open.get_mut(&request) {
            Some(open) if matches!(open.waits, Waits::Host { .. }) => {
                open.host_asked = false;
                open.candidate.entry.id.clone()
            }
            _ => return Err(CommandError::UnknownRequest(request)),
        };
        if verdict != Verdict::Accepted {
            self.answer(request, verdict);
        } else if let Some(no_place) = self.no_place_for(now, &newcomer) {
            // Others took the last places before the host answered.
            self.answer(request, Verdict::Full(no_place));
        } else {
            self.accept(now, request, true);
        }
        Ok(())
    }

    /// Handles a sign of life of a peer: an id that another peer wants is in use.
    pub(super) fn binding_confirmed(&mut self, peer: &PeerId) {
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

    /// Handles a sign of life of a member whose id was given away because it was silent: the id stays its own, unless that
    /// was its goodbye. Members that have admitted the other peer meanwhile learn of it from the leader, and make way
    /// ([`namesake_introduced`](Self::namesake_introduced)). Once in a while: one that is silent at will keeps no newcomer out.
    pub(super) fn keep_disputed_id(&mut self, now: Time) {
        let Some(peer) = self.joins.answered_late.take() else {
            return;
        };
        let Some(member) = self.membership.get_mut(&peer) else {
            return;
        };
        if !member.keeps_disputed_id(now) {
            // Until it may keep the id again, the other peer has it as soon as it is linked.
            member.failed_probe = true;
            return;
        }
        let key = member.key;
        self.joins.granted.remove(&peer);
        self.forget_other_vouchers(&peer, key);
        self.introduce_to_others(now, [peer]);
    }

    /// Handles the requests that have waited long enough.
    pub(super) fn joins_due(&mut self, now: Time) {
        let numbers: Vec<_> = self.joins.open.keys().copied().collect();
        for number in numbers {
            let Some(open) = self.joins.open.get(&number) else {
                continue;
            };
            match open.waits {
                Waits::Host {
                    asked,
                    check_at: Some(at),
                } if now >= at => self.look_at_host(number, asked),
                _ if now >= open.until => {
                    let undecided = match open.waits {
                        Waits::Host { .. } => Undecided::Host,
                        Waits::Leader { .. } | Waits::Binding { .. } | Waits::Turn => {
                            Undecided::Leader
                        }
                    };
                    self.answer(number, Verdict::Timeout(undecided));
                }
                Waits::Binding { ping_at, until } if now >= ping_at && now < until => {
                    let id_holder = open.candidate.entry.id.clone();
                    let ping_at = now + BINDING_PING_INTERVAL;
                    self.set_waits(number, Waits::Binding { ping_at, until });
                    self.ping(&id_holder);
                }
                Waits::Binding { until, .. } if now >= until => {
                    let holder = open.candidate.entry.id.clone();
                    if let Some(member) = self.membership.get_mut(&holder) {
                        member.failed_probe = true;
                    }
                    self.decide(now, number);
                }
                _ => {}
            }
        }
    }

    /// Notifies the newcomer of a silent host before the newcomer's own timeout.
    fn look_at_host(&mut self, number: u64, asked: Time) {
        match self.host.silent_since {
            Some(since) if since <= asked => {
                self.answer(number, Verdict::Timeout(Undecided::HostSilent))
            }
            _ => self.set_waits(
                number,
                Waits::Host {
                    asked,
                    check_at: None,
                },
            ),
        }
    }

    /// Moves open requests to the new leader, if any.
    pub(super) fn redirect_requests(&mut self, now: Time) {
        let numbers: Vec<_> = self.joins.open.keys().copied().collect();
        for number in numbers {
            match self.joins.open.get(&number).map(|open| &open.waits) {
                Some(Waits::Leader { .. } | Waits::Host { .. } | Waits::Turn) => {
                    self.decide(now, number);
                }
                Some(Waits::Binding { .. }) | None => {}
            }
        }
    }

    /// Asks the leader again after a sign of life: it may accept requests that it refused before.
    pub(super) fn ask_decider_again(&mut self, leader: &PeerId) {
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

    /// Drops the requests of a member that has gone away.
    pub(super) fn drop_requests_of(&mut self, peer: &PeerId) {
        self.joins.invited.remove(peer);
        let open = self.joins.open.iter();
        let its = open.filter(|(_, open)| open.asker.member() == Some(peer));
        for number in its.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.close_request(number);
        }
    }

    /// Notes that a member vouches for a peer: members link only with peers that the leader admitted.
    pub(super) fn vouch(&mut self, now: Time, peer: &PeerId, key: Fingerprint) {
        let vouched = &mut self.joins.vouched;
        let until = now + VOUCHED_FOR;
        // Only when one may have ended: the members of a large room introduce thousands.
        if self.joins.vouchers_end.is_none_or(|end| now >= end) {
            vouched.retain(|_, (_, until)| now < *until);
            let first = vouched.values().map(|(_, until)| *until).min();
            self.joins.vouchers_end = Some(first.unwrap_or(until));
        }
        // Without room for the entry, the leader decides about it as about any stranger.
        let _ = vouched.insert(peer.clone(), (key, until));
    }

    /// Ends the voucher for a peer together with its membership: the room decides again.
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

    /// Drops a voucher for another key: the id is bound to this key now.
    pub(super) fn forget_other_vouchers(&mut self, peer: &PeerId, key: Fingerprint) {
        let vouched = self.joins.vouched.get(peer);
        if vouched.is_some_and(|(of, _)| *of != key) {
            self.joins.vouched.remove(peer);
        }
    }

    /// Whether the holder of `key` has proven that it knows the room: to this node, as a member, linked or lost; or to
    /// a member that vouches for it.
    pub fn knows(&self, now: Time, key: Fingerprint) -> bool {
        self.known_keys(now).any(|known| known == key)
    }

    /// [`Node::knows`] for the holder of a key with that virtual id.
    pub fn knows_id(&self, now: Time, id: VirtualId) -> bool {
        self.known_keys(now).any(|known| virtual_id(known) == id)
    }

    fn known_keys(&self, now: Time) -> impl Iterator<Item = Fingerprint> {
        let members = self.membership.iter().map(|(_, member)| member.key);
        let absent = self.absent.values().map(|absent| absent.key);
        let vouched = self.joins.vouched.values();
        let vouched = vouched.filter(move |(_, until)| now < *until);
        members.chain(absent).chain(vouched.map(|(key, _)| *key))
    }

    /// The peer that members introduced with that key.
    pub(super) fn vouched_holder(&self, now: Time, key: Fingerprint) -> Option<PeerId> {
        let mut vouched = self.joins.vouched.iter();
        let holder = vouched.find(|(_, (of, until))| *of == key && now < *until);
        holder.map(|(peer, _)| peer.clone())
    }

    pub(super) fn is_vouched(&self, peer: &PeerId, key: Fingerprint) -> bool {
        let vouched = self.joins.vouched.get(peer);
        vouched.is_some_and(|(of, _)| *of == key)
    }
}
