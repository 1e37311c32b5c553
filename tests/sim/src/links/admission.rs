//! Links as the driver of the library makes them (`src/room/admissions.rs`): the room decides on every newcomer, both ends count
//! ended sessions and lost links, and a kicked member is notified.

use std::collections::BTreeMap;

use room_core::id::{Fingerprint, Incarnation, PeerId};
use room_core::node::{AdmissionRefusal, Command, Event, Input, LeftReason, LinkEnd, Node};
use room_core::time::{Duration, Time};
use room_core::wire::{Candidate, Hello, PeerEntry, Verdict};

use super::{ACCEPTOR, DIALLER, DialOf, Wire, path_over};
use crate::world::{Happening, World};

/// Longest time that a host takes to decide on a newcomer: during faults, and without.
const THINKS: [Duration; 2] = [Duration::from_millis(2_000), Duration::from_millis(200)];
/// During faults a host refuses one newcomer in this many.
const REFUSES_ONE_OF: u32 = 12;

/// A process's counters of its sessions.
#[derive(Debug, Default)]
pub struct Numbers {
    ended: BTreeMap<Fingerprint, u32>,
    carried: BTreeMap<usize, Carried>,
}

/// A session, linked or not.
#[derive(Debug, Clone, Copy)]
struct Carried {
    key: Fingerprint,
    incarnation: Incarnation,
    generation: u32,
    losses: u32,
}

impl Numbers {
    /// Number of ended sessions with the holder of `key`, and of lost links in the present one.
    pub(super) fn with(&self, key: Fingerprint) -> (u32, u32) {
        match self.carried.values().find(|session| session.key == key) {
            Some(session) => (session.generation, session.losses),
            None => (self.ended.get(&key).copied().unwrap_or(0), 0),
        }
    }

    /// An event of the core about a session.
    pub(crate) fn note(&mut self, other: usize, event: &Event) {
        match event {
            Event::Reconnecting(_) => {
                if let Some(session) = self.carried.get_mut(&other) {
                    session.losses += 1;
                }
            }
            Event::Left(_) => {
                if let Some(session) = self.carried.remove(&other) {
                    self.ended.insert(session.key, session.generation + 1);
                }
            }
            _ => {}
        }
    }

    /// A link carries a session from now on.
    pub(super) fn carry(
        &mut self,
        other: usize,
        key: Fingerprint,
        incarnation: Incarnation,
        (generation, losses): (u32, u32),
    ) {
        let session = self.carried.entry(other).or_insert(Carried {
            key,
            incarnation,
            generation,
            losses,
        });
        session.losses = session.losses.max(losses);
    }
}

/// A newcomer with a valid Hello, while the room decides.
#[derive(Debug)]
pub struct Question {
    dial: u64,
    /// The end of the new link that asks.
    end: usize,
    hello: Hello,
    /// Arrival time of the Hello.
    arrived: Time,
    key: Fingerprint,
}

impl World {
    /// A Hello arrived at the acceptor.
    pub(super) fn consider_dialler(&mut self, dial: u64, hello: &Hello, key: Fingerprint) {
        let Some(pending) = self.dials.get(&dial) else {
            return;
        };
        let (from, to, over) = (pending.from, pending.to, pending.over);
        if let Err((permanent, kicked)) = self.stands(to, hello, key, true) {
            return self.refuse_because(dial, permanent, kicked);
        }
        // Both dial: the smaller id's dial stays.
        let both_dial = self.own_dial(to, from, path_over(over), true).is_some();
        if both_dial && self.slots[to].id < self.slots[from].id {
            return self.refuse(dial, false);
        }
        self.end_outlived_session(to, from, hello, key);
        let question = Question {
            dial,
            end: ACCEPTOR,
            hello: hello.clone(),
            arrived: self.now,
            key,
        };
        self.put(to, from, question, false);
    }

    /// The acceptor's Hello arrived at the dialler.
    pub(super) fn consider_acceptor(&mut self, id: u64, hello: Hello, key: Fingerprint) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let ([from, to], dial) = (link.slots, link.dial);
        link.asking = true;
        if let Err((permanent, _)) = self.stands(from, &hello, key, true) {
            self.dial_failed(dial, permanent);
            return self.refuse_link(id, DIALLER);
        }
        self.end_outlived_session(from, to, &hello, key);
        let by_hand = self
            .dials
            .get(&dial)
            .is_some_and(|dial| dial.of == DialOf::Host);
        let alone = self.node(from).is_some_and(is_alone);
        let end = DIALLER;
        let question = Question {
            dial,
            end,
            hello,
            arrived: self.now,
            key,
        };
        self.put(from, to, question, by_hand || alone);
    }

    /// The core's objection to a Hello: whether another dial cannot end better, and whether the peer was kicked.
    fn stands(
        &mut self,
        slot: usize,
        hello: &Hello,
        key: Fingerprint,
        may_dispute: bool,
    ) -> Result<(), (bool, bool)> {
        let Some(process) = &self.slots[slot].process else {
            return Err((false, false));
        };
        let local = process.clock.local(self.now);
        let refusal = match process.node.check_hello(local, hello, key, false) {
            Ok(()) => return Ok(()),
            Err(AdmissionRefusal::Bound(_)) if may_dispute => return Ok(()),
            Err(refusal) => refusal,
        };
        self.trace.add(
            self.now,
            format_args!(
                "{} refuses {}: {refusal}",
                self.slots[slot].id, hello.peer_id
            ),
        );
        self.check_refusal(slot, &refusal);
        let kicked = matches!(refusal, AdmissionRefusal::Kicked(_));
        let permanent = matches!(
            refusal,
            AdmissionRefusal::Kicked(_)
                | AdmissionRefusal::Banned(_)
                | AdmissionRefusal::Ended
                | AdmissionRefusal::Policy { .. }
        );
        Err((permanent, kicked))
    }

    fn refuse_because(&mut self, dial: u64, permanent: bool, kicked: bool) {
        if let Some(pending) = self.dials.get_mut(&dial) {
            pending.kicked = kicked;
        }
        self.refuse(dial, permanent);
    }

    /// The peer's Hello shows that it has ended our session, has restarted, or has lost our link.
    pub(super) fn end_outlived_session(
        &mut self,
        slot: usize,
        other: usize,
        hello: &Hello,
        key: Fingerprint,
    ) {
        let Some(process) = &self.slots[slot].process else {
            return;
        };
        let Some(session) = process.numbers.carried.get(&other).copied() else {
            return;
        };
        let linked = process.sessions.get(&other).copied();
        if session.key != key {
            return;
        }
        let over = if hello.incarnation > session.incarnation {
            self.sometimes.sessions_replaced += 1;
            Some(LeftReason::Replaced)
        } else if hello.generation > session.generation {
            self.sometimes.sessions_given_up_by_the_other_end += 1;
            Some(LeftReason::Lost)
        } else {
            None
        };
        let peer = self.slots[other].id.clone();
        if let Some(why) = over {
            let _ = self.feed(slot, Input::SessionOver { peer, why });
            if let Some(id) = linked {
                self.hang_up(slot, id);
            }
        } else if let Some(id) = linked
            && hello.generation == session.generation
            && hello.losses > session.losses
        {
            self.end_session(slot, other, id, LinkEnd::Silent);
        }
    }

    /// Ends a link without notifying the core, which has ended its session.
    fn hang_up(&mut self, slot: usize, id: u64) {
        if let Some(process) = &mut self.slots[slot].process {
            process.sessions.retain(|_, session| *session != id);
        }
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let end = link.end_of(slot);
        let other = link.slots[1 - end];
        link.ended[end] = true;
        self.send_close(id, end, LinkEnd::Closed);
        self.end_retired(slot, other);
        self.sweep(id);
    }

    fn put(&mut self, slot: usize, other: usize, question: Question, invited: bool) {
        self.made += 1;
        let ticket = self.made;
        let candidate = Candidate {
            entry: PeerEntry {
                id: self.slots[other].id.clone(),
                key: question.key,
                addresses: self.addresses_seen(slot, other, question.dial),
            },
            incarnation: question.hello.incarnation,
            payload: Vec::new(),
        };
        self.questions.insert((slot, ticket), question);
        if invited {
            self.invited.insert((slot, other), self.now);
        }
        self.sometimes.joins_asked += 1;
        let _ = self.feed(
            slot,
            Input::Join {
                ticket,
                candidate: Box::new(candidate),
                invited,
            },
        );
    }

    /// The core has decided.
    pub(crate) fn join_answered(&mut self, slot: usize, ticket: u64, verdict: &Verdict) {
        let Some(question) = self.questions.remove(&(slot, ticket)) else {
            return;
        };
        let Some(pending) = self.dials.get(&question.dial) else {
            return; // The asker has given up.
        };
        let (from, from_life, link) = (pending.from, pending.life, pending.link);
        if !self.is_life(from, from_life) {
            return;
        }
        if *verdict != Verdict::Accepted {
            self.sometimes.joins_refused += 1;
            let permanent = matches!(verdict, Verdict::Rejected { .. });
            return match (question.end, link) {
                (DIALLER, _) => self.dial_failed(question.dial, permanent),
                _ => self.refuse(question.dial, permanent),
            };
        }
        match link {
            Some(id) if question.end == DIALLER => {
                if let Some(link) = self.links.get_mut(&id) {
                    link.asking = false;
                }
                self.attach_dialler(id, &question.hello, question.key);
                let from = ACCEPTOR;
                self.at(self.now, Happening::Wire(Wire::Deliver { link: id, from }));
            }
            _ => self.attach_acceptor(question),
        }
    }

    fn attach_acceptor(&mut self, question: Question) {
        let Question {
            dial,
            hello,
            arrived,
            key,
            ..
        } = question;
        let Some(pending) = self.dials.get(&dial) else {
            return;
        };
        let (from, to, from_life) = (pending.from, pending.to, pending.life);
        let over = pending.over;
        let leaves = self.slots[to]
            .process
            .as_ref()
            .is_none_or(|process| process.leaving);
        // The place is its own until here; an event meanwhile may still forbid the link.
        if leaves || !self.passes_from(to, over, from) {
            return self.refuse(dial, false);
        }
        if let Err((permanent, kicked)) = self.stands(to, &hello, key, false) {
            return self.refuse_because(dial, permanent, kicked);
        }
        if self.session_stands(to, from, from_life, over) {
            return self.refuse(dial, false);
        }
        self.end_stale(to, from, over);
        self.accept(dial, &hello, arrived, key);
    }

    /// Whether a session has ended, or a link was lost, since that end sent its Hello.
    pub(super) fn is_outlived(
        &self,
        id: u64,
        end: usize,
        theirs: &Hello,
        key: Fingerprint,
    ) -> bool {
        let Some(link) = self.links.get(&id) else {
            return true;
        };
        let process = self.slots[link.slots[end]].process.as_ref();
        let least = process.map_or((0, 0), |process| process.numbers.with(key));
        let agreed = link.numbers[end].max((theirs.generation, theirs.losses));
        agreed < least
    }

    /// A dial failed because this node was kicked; returns whether its room is over for it.
    pub(super) fn learns_of_its_kick(&mut self, slot: usize, peer: &PeerId) -> bool {
        let lost = |node: &Node| node.absent().any(|lost| lost == peer);
        let over = self
            .node(slot)
            .is_some_and(|node| node.membership().is_empty() && lost(node));
        if over {
            self.sometimes.kicked_while_lost += 1;
            let _ = self.feed(slot, Input::KickedOut);
        }
        over
    }

    /// The host is asked about a newcomer, and takes its time.
    pub(crate) fn host_is_asked(&mut self, slot: usize, request: u64) {
        let calm = usize::from(self.calm_since.is_some());
        let at = self.now + self.between(Duration::from_millis(5), THINKS[calm]);
        let life = self.slots[slot].life;
        self.at(
            at,
            Happening::HostAnswers {
                slot,
                life,
                request,
            },
        );
    }

    pub(crate) fn host_answers(&mut self, slot: usize, life: u64, request: u64) {
        if !self.is_life(slot, life) || self.is_paused(slot) {
            return; // Another newcomer is being asked about, or none.
        }
        let refuses =
            self.calm_since.is_none() && rand::Rng::random_ratio(&mut self.rng, 1, REFUSES_ONE_OF);
        let verdict = if refuses {
            Verdict::Rejected {
                reason: 1,
                bytes: Vec::new(),
            }
        } else {
            Verdict::Accepted
        };
        let answer = Command::AnswerJoin { request, verdict };
        // The question may be over by now.
        if self.command(slot, answer).is_ok() {
            self.sometimes.joins_decided_by_hosts += 1;
        }
    }
}

fn is_alone(node: &Node) -> bool {
    node.membership().is_empty() && node.absent().next().is_none()
}
