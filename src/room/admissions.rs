//! Admissions in the room: answers which Hello to send to a peer, and whether to accept it. The core decides, perhaps
//! after it has asked the leader or the host. This module holds the open questions, and the places reserved meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use quinn::Connection;
use room_transport::closing::close_code;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::core::bounded::Newest;
use crate::core::id::{Fingerprint, Incarnation, PeerId};
use crate::core::membership::Membership;
use crate::core::node::{AdmissionRefusal, Input};
use crate::core::path::Path;
use crate::core::time::Time;
use crate::core::virtual_address::on_the_network;
use crate::core::wire::{Candidate, Hello, HelloAck, NoPlace, PeerEntry, Undecided, Verdict};
use crate::error::Code;
use crate::net::dial::{Refused, Reservation};
use crate::net::link::frames_received;
use crate::net::socket;

/// Time for a sign of life from a peer in admission whose id another peer claims: this many round trips of
/// its connection, but at least `MIN_PROBE` and at most `MAX_PROBE`.
const PROBE_ROUND_TRIPS: u32 = 3;
const MIN_PROBE: Duration = Duration::from_millis(500);
const MAX_PROBE: Duration = Duration::from_secs(2);
/// Interval between two of these probes, since one may be lost.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// Sentence for a newcomer whose id another player had until just now.
const LEFT_NOT_YET_REPORTED: &str = "a host has not yet received that the player with this id left; try again in a few seconds, or choose another id";
/// Kicks whose reasons are remembered, at most; a reason has at most 3 KiB.
const MAX_KICK_REASONS: usize = 64;

/// Running admissions.
#[derive(Default)]
pub(super) struct Admissions {
    /// Places reserved for running admissions.
    reserved: BTreeMap<PeerId, Kept>,
    questions: BTreeMap<u64, Question>,
    disputes: Vec<Dispute>,
    asked: u64,
}

/// A place reserved for a peer in admission.
struct Kept {
    key: Fingerprint,
    incarnation: Incarnation,
    place: Weak<()>,
    /// The connection of its latest admission: two ends may dial each other.
    connection: Connection,
    /// Its questions to the core.
    tickets: Vec<u64>,
}

/// An applicant whose id is held by another peer in admission, which is asked for a sign of life.
struct Dispute {
    applicant: Applicant,
    /// The holder's connection, and the number of frames received on it before.
    holder: Connection,
    arrived: u64,
    ping_at: Instant,
    until: Instant,
}

/// The outcome of a dispute.
pub(super) enum Settled {
    /// The holder is alive.
    Answer(Answer),
    /// The holder is gone, or gave no sign of life and has lost its place; lists the holder's questions.
    Free(Applicant, Vec<u64>),
}

/// A peer whose Hello is valid.
pub(super) struct Applicant {
    pub(super) hello: Hello,
    pub(super) key: Fingerprint,
    pub(super) from: SocketAddr,
    pub(super) connection: Connection,
    /// When its Hello arrived, on the core's clock.
    pub(super) arrived: Time,
    /// Whether this node accepts it without asking the leader.
    pub(super) invited: bool,
    pub(super) asker: Asker,
}

/// The end of a new link that asks.
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
    /// The host has not received the departure of the id's last holder yet.
    New,
    /// The core was asked.
    Asked,
    /// Admitted, as soon as the host has received the departure of the id's last holder.
    Welcome,
}

/// Next step of a question.
pub(super) enum Step {
    /// Ask the core.
    Ask(Input),
    /// The question is over.
    Answer(Answer),
}

/// Outcome of a question.
pub(super) struct Answer {
    pub(super) key: Fingerprint,
    pub(super) arrived: Time,
    /// The applicant's address.
    pub(super) from: SocketAddr,
    asker: Asker,
    result: Result<Reservation, Refused>,
}

impl Admissions {
    /// Peers in admission.
    pub(super) fn reserved(&self) -> impl Iterator<Item = &PeerId> {
        self.reserved
            .iter()
            .filter(|(_, kept)| kept.place.strong_count() > 0)
            .map(|(peer, _)| peer)
    }

    /// The place of a rival, which is in admission under the same id with another key or incarnation.
    fn rival(&self, peer: &PeerId, key: Fingerprint, incarnation: Incarnation) -> Option<&Kept> {
        let kept = self.reserved.get(peer)?;
        let is_another = (kept.key, kept.incarnation) != (key, incarnation);
        (is_another && kept.place.strong_count() > 0).then_some(kept)
    }

    /// Starts a dispute if a rival is in admission under the applicant's id: the rival must give a sign of
    /// life. Returns the applicant if there is no rival.
    pub(super) fn dispute(&mut self, applicant: Applicant, now: Instant) -> Option<Applicant> {
        let hello = &applicant.hello;
        let rival = self.rival(&hello.peer_id, applicant.key, hello.incarnation);
        let Some(holder) = rival.map(|kept| kept.connection.clone()) else {
            return Some(applicant);
        };
        let wait = (holder.rtt() * PROBE_ROUND_TRIPS).clamp(MIN_PROBE, MAX_PROBE);
        self.disputes.push(Dispute {
            applicant,
            arrived: frames_received(&holder),
            holder,
            ping_at: now,
            until: now + wait,
        });
        None
    }

    /// Whether an id is in dispute.
    pub(super) fn has_disputes(&self) -> bool {
        !self.disputes.is_empty()
    }

    /// Settles disputes by the signs of life received, and probes again in the others.
    pub(super) fn settle(&mut self, now: Instant) -> Vec<Settled> {
        let mut settled = Vec::new();
        for mut dispute in std::mem::take(&mut self.disputes) {
            let Applicant { hello, key, .. } = &dispute.applicant;
            let rival = self.rival(&hello.peer_id, *key, hello.incarnation);
            if rival.is_none() {
                settled.push(Settled::Free(dispute.applicant, Vec::new()));
            } else if dispute.applicant.asker.is_gone() {
                // No asker waits for an answer.
            } else if frames_received(&dispute.holder) > dispute.arrived {
                let taken = taken(&hello.peer_id);
                settled.push(Settled::Answer(dispute.applicant.answer(Err(taken))));
            } else if now >= dispute.until {
                let tickets = self.evict(&hello.peer_id.clone());
                settled.push(Settled::Free(dispute.applicant, tickets));
            } else {
                if now >= dispute.ping_at {
                    dispute.ping_at = now + PROBE_INTERVAL;
                    // A probe that cannot be sent counts as lost.
                    let _ = dispute.holder.send_datagram(Bytes::new());
                }
                self.disputes.push(dispute);
            }
        }
        settled
    }

    /// Ends the admissions under an id. Returns their questions, which the core must withdraw.
    fn evict(&mut self, peer: &PeerId) -> Vec<u64> {
        let Some(kept) = self.reserved.remove(peer) else {
            return Vec::new();
        };
        kept.connection
            .close(close_code(Code::DuplicatePeerId.value()), b"");
        for ticket in &kept.tickets {
            self.questions.remove(ticket);
        }
        kept.tickets
    }

    /// Reserves a place for a peer that is being admitted over `connection`.
    ///
    /// # Errors
    /// Another peer has the place, or the members and the peers in admission fill the room.
    pub(super) fn reserve(
        &mut self,
        peer: &PeerId,
        (key, incarnation): (Fingerprint, Incarnation),
        connection: &Connection,
        members: &Membership,
        max_connections: usize,
    ) -> Result<Reservation, Refused> {
        self.reserved
            .retain(|_, kept| kept.place.strong_count() > 0);
        if self.rival(peer, key, incarnation).is_some() {
            return Err(taken(peer));
        }
        let is_new = |id: &PeerId| members.get(id).is_none();
        if is_new(peer) {
            let newcomers = self.reserved().filter(|id| *id != peer && is_new(id));
            if members.len() + newcomers.count() >= max_connections {
                return Err(explained(
                    Code::MaxConnectionsReached,
                    NoPlace::connections(max_connections),
                ));
            }
        }
        if let Some(kept) = self.reserved.get_mut(peer)
            && let Some(place) = kept.place.upgrade()
        {
            kept.connection = connection.clone();
            return Ok(place);
        }
        let place = Reservation::default();
        let kept = Kept {
            key,
            incarnation,
            place: Arc::downgrade(&place),
            connection: connection.clone(),
            tickets: Vec::new(),
        };
        self.reserved.insert(peer.clone(), kept);
        Ok(place)
    }

    /// Releases the place of a peer that is linked now.
    pub(super) fn release(&mut self, peer: &PeerId) {
        self.reserved.remove(peer);
    }

    /// Begins the question about an applicant with a place.
    pub(super) fn begin(
        &mut self,
        applicant: Applicant,
        place: Reservation,
        until: Instant,
    ) -> u64 {
        self.asked += 1;
        if let Some(kept) = self.reserved.get_mut(&applicant.hello.peer_id) {
            kept.tickets.push(self.asked);
        }
        let question = Question {
            applicant,
            place,
            stage: Stage::New,
            until,
        };
        self.questions.insert(self.asked, question);
        self.asked
    }

    /// Continues with a question, unless the host has not received a departure yet: the id is free only then.
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
            let unreported = explained(Code::DuplicatePeerId, LEFT_NOT_YET_REPORTED);
            return self.end(ticket, Err(unreported)).map(Step::Answer);
        }
        match question.stage {
            Stage::Asked => None,
            Stage::Welcome => self.end(ticket, Ok(())).map(Step::Answer),
            Stage::New => {
                let candidate = Candidate {
                    entry: PeerEntry {
                        id: hello.peer_id.clone(),
                        key: *key,
                        addresses: addresses_of(*from, hello.listen_port),
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

    /// Questions that wait until the host has received a departure.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u64> {
        self.questions
            .iter()
            .filter(|(_, question)| question.stage != Stage::Asked)
            .map(|(ticket, _)| *ticket)
    }

    /// Handles the core's decision: a refusal ends the question, an admitted peer can proceed.
    pub(super) fn decided(&mut self, ticket: u64, verdict: Verdict) -> Option<Answer> {
        let refused = match verdict {
            Verdict::Accepted => {
                if let Some(question) = self.questions.get_mut(&ticket) {
                    debug_assert_eq!(question.stage, Stage::Asked, "an answer without a question");
                    question.stage = Stage::Welcome;
                }
                return None;
            }
            Verdict::DuplicatePeerId => match self.questions.get(&ticket) {
                Some(question) => taken(&question.applicant.hello.peer_id),
                None => return None,
            },
            Verdict::Full(no_place) => explained(Code::MaxConnectionsReached, no_place),
            Verdict::Rejected { reason, bytes } => Refused {
                reason,
                bytes: Bytes::from(bytes),
                ..Code::Rejected.into()
            },
            Verdict::Timeout(undecided) => explained(Code::Timeout, undecided),
            Verdict::NotLeader => explained(Code::Timeout, Undecided::Leader),
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
    /// Sends the answer to the asker; an acceptor also gets our `hello`.
    pub(super) fn send(self, hello: impl FnOnce() -> Hello) {
        if let Err(refused) = &self.result {
            tracing::info!(code = ?refused.code, "not admitted");
        }
        // An answer to an asker that has given up is dropped.
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

/// The refusal that the other end receives, with a sentence for its player.
pub(super) fn refused_by(refusal: &AdmissionRefusal) -> Refused {
    let code = match refusal {
        AdmissionRefusal::Full(_) => Code::MaxConnectionsReached,
        AdmissionRefusal::DuplicatePeerId(_)
        | AdmissionRefusal::Bound(_)
        | AdmissionRefusal::VoterKey(_) => Code::DuplicatePeerId,
        AdmissionRefusal::Policy { .. } => Code::PolicyMismatch,
        AdmissionRefusal::Kicked(_)
        | AdmissionRefusal::Banned(_)
        | AdmissionRefusal::OtherRoom(_)
        | AdmissionRefusal::Ended => Code::Rejected,
        AdmissionRefusal::Leaving => Code::ConnectionFailed,
        AdmissionRefusal::Looking => Code::LookingForRoom,
    };
    Refused {
        kicked: matches!(refusal, AdmissionRefusal::Kicked(_)),
        ..explained(code, refusal)
    }
}

/// Another member has the id, or is entering under it.
fn taken(id: &PeerId) -> Refused {
    refused_by(&AdmissionRefusal::Bound(id.clone()))
}

/// The code with a sentence for the player that tried to enter.
pub(super) fn explained(code: Code, why: impl fmt::Display) -> Refused {
    Refused::because(code, why.to_string())
}

/// Numbers and bytes of recent kicks, for kicked peers that ask to enter again.
#[derive(Default)]
pub(super) struct KickReasons {
    /// Newest last.
    reasons: Newest<(PeerId, i32, Bytes), MAX_KICK_REASONS>,
}

impl KickReasons {
    pub(super) fn remember(&mut self, peer: &PeerId, code: i32, bytes: &[u8]) {
        self.reasons.retain(|(known, ..)| known != peer);
        if code == 0 && bytes.is_empty() {
            return;
        }
        let bytes = Bytes::copy_from_slice(bytes);
        self.reasons.push((peer.clone(), code, bytes));
    }

    /// Gives the host of a kicked peer what the kick gave it, instead of the library's sentence. A kick without bytes leaves
    /// the sentence.
    pub(super) fn explain(&self, peer: &PeerId, mut refused: Refused) -> Refused {
        let known = self.reasons.iter().find(|(known, ..)| known == peer);
        if let Some((_, code, bytes)) = known
            && refused.kicked
        {
            refused.reason = *code;
            if !bytes.is_empty() {
                refused.bytes = bytes.clone();
            }
        }
        refused
    }
}

/// The addresses at which others may reach a peer whose packets come from `from` and that listens at `listen_port`, the
/// likeliest first. The port of the packets is another one where a router has mapped it; where the router maps it alike
/// for all, others reach the peer there. Port 0 is that of a peer that accepts no links. Over a carrier there are no
/// addresses.
pub(super) fn addresses_of(from: SocketAddr, listen_port: u16) -> Vec<SocketAddr> {
    if !Path::to(from).is_direct() {
        return Vec::new();
    }
    let observed = socket::canonical(on_the_network(from)); // keeps the zone of a link-local address
    let mut listening = observed;
    listening.set_port(listen_port);
    if listen_port == 0 {
        return vec![listening];
    }
    let mut addresses = vec![observed, listening];
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_dialled_where_its_packets_come_from_and_then_at_its_own_port() {
        let from = "203.0.113.1:51001".parse().expect("an address");
        let own = "203.0.113.1:40001".parse().expect("an address");
        assert_eq!(addresses_of(from, 40001), [from, own]);
        assert_eq!(addresses_of(own, 40001), [own]);
        let none = "203.0.113.1:0".parse().expect("an address");
        assert_eq!(addresses_of(own, 0), [none]);
        let mapped = "[::ffff:203.0.113.1]:40001".parse().expect("an address");
        assert_eq!(addresses_of(mapped, 40001), [own]);
    }
}
