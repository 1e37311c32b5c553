//! Admissions ask: what do we say to a peer, and do we take it? The core decides, maybe after it has asked
//! the leader or the host; here are the open questions, and the places that are kept meanwhile.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::core::id::{Fingerprint, PeerId};
use crate::core::membership::Membership;
use crate::core::node::{AdmissionRefusal, Input};
use crate::core::time::Time;
use crate::core::virtual_address::is_virtual;
use crate::core::wire::{Candidate, Hello, HelloAck, PeerEntry, Verdict};
use crate::error::Code;
use crate::net::dial::{Refused, Reservation};
use crate::net::socket;

/// Admissions that are under way.
#[derive(Default)]
pub(super) struct Admissions {
    /// Places kept for admissions that go on.
    reserved: BTreeMap<PeerId, (Fingerprint, Weak<()>)>,
    questions: BTreeMap<u64, Question>,
    asked: u64,
}

/// Somebody whose Hello stands.
pub(super) struct Applicant {
    pub(super) hello: Hello,
    pub(super) key: Fingerprint,
    pub(super) from: SocketAddr,
    /// When its Hello arrived, on the core's clock.
    pub(super) arrived: Time,
    /// Whether this node takes it without asking the leader.
    pub(super) invited: bool,
    pub(super) asker: Asker,
}

/// Which end of a new link asks.
pub(super) enum Asker {
    Dialler {
        /// Whether this host asked for the link.
        by_hand: bool,
        answer: oneshot::Sender<Result<Reservation, Refused>>,
    },
    Acceptor(oneshot::Sender<(HelloAck, Option<Reservation>)>),
}

impl Asker {
    fn is_gone(&self) -> bool {
        match self {
            Self::Dialler { answer, .. } => answer.is_closed(),
            Self::Acceptor(answer) => answer.is_closed(),
        }
    }

    pub(super) fn is_own_hand(&self) -> bool {
        matches!(self, Self::Dialler { by_hand: true, .. })
    }
}

/// An applicant with a place, while the room decides.
struct Question {
    applicant: Applicant,
    place: Reservation,
    stage: Stage,
    until: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The host has not yet received that the last holder of the id is gone.
    New,
    /// The core was asked.
    Asked,
    /// Welcome, as soon as the host knows that the last holder of the id is gone.
    Welcome,
}

/// What becomes of a question now.
pub(super) enum Step {
    /// The core is asked.
    Ask(Input),
    /// It is over.
    Answer(Answer),
}

/// The end of a question.
pub(super) struct Answer {
    pub(super) key: Fingerprint,
    pub(super) arrived: Time,
    /// Where it asks from.
    pub(super) from: SocketAddr,
    asker: Asker,
    result: Result<Reservation, Refused>,
}

impl Admissions {
    /// Peers whose admission goes on.
    pub(super) fn reserved(&self) -> impl Iterator<Item = &PeerId> {
        self.reserved
            .iter()
            .filter(|(_, (_, place))| place.strong_count() > 0)
            .map(|(peer, _)| peer)
    }

    /// Keeps a place for a peer that is being admitted.
    ///
    /// # Errors
    /// Another key has the place, or the members and those who are being admitted fill the room.
    pub(super) fn reserve(
        &mut self,
        peer: &PeerId,
        key: Fingerprint,
        members: &Membership,
        max_connections: usize,
    ) -> Result<Reservation, Code> {
        self.reserved
            .retain(|_, (_, place)| place.strong_count() > 0);
        let kept = self.reserved.get(peer);
        if kept.is_some_and(|(reserved_for, _)| *reserved_for != key) {
            return Err(Code::DuplicatePeerId);
        }
        let is_new = |id: &PeerId| members.get(id).is_none();
        if is_new(peer) {
            let newcomers = self.reserved().filter(|id| *id != peer && is_new(id));
            if members.len() + newcomers.count() >= max_connections {
                return Err(Code::MaxConnectionsReached);
            }
        }
        if let Some(place) = kept.and_then(|(_, place)| place.upgrade()) {
            return Ok(place);
        }
        let place = Reservation::default();
        self.reserved
            .insert(peer.clone(), (key, Arc::downgrade(&place)));
        Ok(place)
    }

    /// The peer is linked, and needs its place no more.
    pub(super) fn release(&mut self, peer: &PeerId) {
        self.reserved.remove(peer);
    }

    /// Asks about somebody who has a place.
    pub(super) fn begin(
        &mut self,
        applicant: Applicant,
        place: Reservation,
        until: Instant,
    ) -> u64 {
        self.asked += 1;
        let question = Question {
            applicant,
            place,
            stage: Stage::New,
            until,
        };
        self.questions.insert(self.asked, question);
        self.asked
    }

    /// Carries a question on, unless the host is still to be told of a departure: the id is free only then.
    pub(super) fn proceed(
        &mut self,
        ticket: u64,
        is_free: impl FnOnce(&PeerId) -> bool,
    ) -> Option<Step> {
        let question = self.questions.get_mut(&ticket)?;
        let Applicant {
            hello,
            key,
            from,
            invited,
            asker,
            ..
        } = &question.applicant;
        if asker.is_gone() {
            self.questions.remove(&ticket);
            return None;
        }
        if !is_free(&hello.peer_id) {
            if Instant::now() < question.until {
                return None;
            }
            let answer = self.end(ticket, Err(Code::DuplicatePeerId.into()));
            return answer.map(Step::Answer);
        }
        match question.stage {
            Stage::Asked => None,
            Stage::Welcome => self.end(ticket, Ok(())).map(Step::Answer),
            Stage::New => {
                let candidate = Candidate {
                    entry: PeerEntry {
                        id: hello.peer_id.clone(),
                        key: *key,
                        addresses: listens_at(*from, hello).into_iter().collect(),
                    },
                    incarnation: hello.incarnation,
                    payload: hello.join_payload.clone(),
                };
                let invited = *invited;
                question.stage = Stage::Asked;
                Some(Step::Ask(Input::Join {
                    ticket,
                    candidate: Box::new(candidate),
                    invited,
                }))
            }
        }
    }

    /// Questions that wait until the host knows of a departure.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u64> {
        self.questions
            .iter()
            .filter(|(_, question)| question.stage != Stage::Asked)
            .map(|(ticket, _)| *ticket)
    }

    /// The core has decided: a refusal is the end, and who is welcome can proceed.
    pub(super) fn decided(&mut self, ticket: u64, verdict: Verdict) -> Option<Answer> {
        let refused = match verdict {
            Verdict::Accepted => {
                if let Some(question) = self.questions.get_mut(&ticket) {
                    debug_assert_eq!(
                        question.stage,
                        Stage::Asked,
                        "an answer that nobody asked for"
                    );
                    question.stage = Stage::Welcome;
                }
                return None;
            }
            Verdict::DuplicatePeerId => Code::DuplicatePeerId.into(),
            Verdict::Full => Code::MaxConnectionsReached.into(),
            Verdict::Rejected { reason, bytes } => Refused {
                reason,
                bytes: Bytes::from(bytes),
                ..Code::Rejected.into()
            },
            Verdict::Timeout | Verdict::NotLeader => Code::Timeout.into(),
        };
        self.end(ticket, Err(refused))
    }

    fn end(&mut self, ticket: u64, result: Result<(), Refused>) -> Option<Answer> {
        let Question {
            applicant, place, ..
        } = self.questions.remove(&ticket)?;
        Some(applicant.answer(result.map(|()| place)))
    }
}

impl Applicant {
    pub(super) fn answer(self, result: Result<Reservation, Refused>) -> Answer {
        Answer {
            key: self.key,
            arrived: self.arrived,
            from: self.from,
            asker: self.asker,
            result,
        }
    }
}

impl Answer {
    /// Answers the asker; an acceptor passes our `hello` on.
    pub(super) fn send(self, hello: impl FnOnce() -> Hello) {
        if let Err(refused) = &self.result {
            tracing::info!(code = ?refused.code, "not admitted");
        }
        // Whoever asked may have given up; then the answer is dropped.
        match self.asker {
            Asker::Dialler { answer, .. } => {
                let _ = answer.send(self.result);
            }
            Asker::Acceptor(answer) => {
                let (refused, place) = match self.result {
                    Ok(place) => (Code::Ok.into(), Some(place)),
                    Err(refused) => (refused, None),
                };
                let ack = HelloAck {
                    code: refused.code.value(),
                    kicked: refused.kicked,
                    reason: refused.reason,
                    bytes: refused.bytes.to_vec(),
                    hello: hello(),
                };
                let _ = answer.send((ack, place));
            }
        }
    }
}

/// What the other end receives. A host whose settings are the reason receives the sentence.
pub(super) fn refused_by(refusal: &AdmissionRefusal) -> Refused {
    let code = match refusal {
        AdmissionRefusal::DuplicatePeerId(_) | AdmissionRefusal::Bound(_) => Code::DuplicatePeerId,
        AdmissionRefusal::Full(_) => Code::MaxConnectionsReached,
        AdmissionRefusal::VoterKey(_) => {
            return explained(Code::DuplicatePeerId, refusal);
        }
        AdmissionRefusal::Policy { .. } => return explained(Code::PolicyMismatch, refusal),
        AdmissionRefusal::Kicked(_) => {
            return Refused {
                kicked: true,
                ..Code::Rejected.into()
            };
        }
        AdmissionRefusal::Banned(_) | AdmissionRefusal::Ended => Code::Rejected,
        AdmissionRefusal::Leaving => Code::ConnectionFailed,
    };
    code.into()
}

fn explained(code: Code, refusal: &AdmissionRefusal) -> Refused {
    Refused {
        bytes: Bytes::from(refusal.to_string()),
        ..code.into()
    }
}

/// Where a peer that was seen at `from` accepts links.
pub(super) fn listens_at(from: SocketAddr, hello: &Hello) -> Option<SocketAddr> {
    let address = SocketAddr::new(socket::canonical(from).ip(), hello.listen_port);
    (!is_virtual(from)).then_some(address)
}
