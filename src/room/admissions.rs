//! Admissions ask: what do we say to a peer, and do we take it? The core decides, maybe after it has asked
//! the leader or the host; here are the places that are kept meanwhile, and the links that come of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::driver::Driver;
use super::sessions::Session;
use crate::core::id::{Fingerprint, PeerId};
use crate::core::node::{AdmissionRefusal, Command, Input, LeftReason, LinkEnd, LinkUp};
use crate::core::wire::{Candidate, Hello, HelloAck, HostMode, PeerEntry, Verdict};
use crate::error::Code;
use crate::net::close;
use crate::net::dial::{Ask, Attach, HostDial, Refused, Reservation};
use crate::net::events::LinkId;
use crate::net::identity::close_code;
use crate::net::link::Link;
use crate::net::socket;

/// Departures that the host is still to be told of, at most: nobody is admitted beyond, so that members that
/// come and go do not fill the memory of a host that looks away.
const MAX_UNTOLD_DEPARTURES: usize = 256;

/// Admissions that are under way.
#[derive(Default)]
pub(super) struct Admissions {
    /// Places kept for admissions that go on.
    reserved: BTreeMap<PeerId, (Fingerprint, Weak<()>)>,
    questions: BTreeMap<u64, Question>,
    asked: u64,
}

/// Somebody whose Hello stands, while the room decides.
struct Question {
    hello: Hello,
    key: Fingerprint,
    from: SocketAddr,
    invited: bool,
    place: Reservation,
    asker: Asker,
    stage: Stage,
    until: Instant,
}

/// Which end of a new link asks.
enum Asker {
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

    fn is_own_hand(&self) -> bool {
        matches!(self, Self::Dialler { by_hand: true, .. })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The host is still to be told that the last bearer of the id is gone.
    New,
    /// The core was asked.
    Asked,
    /// Welcome, as soon as the host knows that the last bearer of the id is gone.
    Welcome,
}

impl Admissions {
    /// Peers whose admission goes on.
    pub(super) fn reserved(&self) -> impl Iterator<Item = &PeerId> {
        self.reserved
            .iter()
            .filter(|(_, (_, place))| place.strong_count() > 0)
            .map(|(peer, _)| peer)
    }

    /// Whether somebody waits for the host to be told of a departure.
    pub(super) fn wait_for_the_host(&self) -> bool {
        self.questions
            .values()
            .any(|question| question.stage != Stage::Asked)
    }

    /// Keeps a place for a peer that is being admitted.
    fn reserve(&mut self, peer: &PeerId, key: Fingerprint) -> Reservation {
        if let Some((_, place)) = self.reserved.get(peer)
            && let Some(place) = place.upgrade()
        {
            return place;
        }
        let place = Reservation::default();
        self.reserved
            .insert(peer.clone(), (key, Arc::downgrade(&place)));
        place
    }
}

impl Driver {
    pub(super) fn asked(&mut self, ask: Ask) {
        // Whoever asked may have given up; then the answer is dropped.
        match ask {
            Ask::Hello {
                key,
                by_hand,
                answer,
            } => {
                let _ = answer.send(if self.is_severed(by_hand, None, key) {
                    Err(Code::Rejected)
                } else if self.sessions.is_linked(key) {
                    Err(Code::AlreadyConnected)
                } else if self.node.is_over() {
                    Err(Code::Rejected)
                } else {
                    Ok(self.hello(key, by_hand.is_some()))
                });
            }
            Ask::Check {
                hello,
                key,
                from,
                by_hand,
                answer,
            } => {
                if self.is_severed(by_hand, Some(&hello.peer_id), key) {
                    let _ = answer.send(Err(Code::Rejected.into()));
                    return;
                }
                let by_hand = by_hand.is_some();
                // A node that is alone has nobody whom the stranger could disturb.
                let alone =
                    self.node.membership().is_empty() && self.node.absent().next().is_none();
                let invited = by_hand || alone;
                let asker = Asker::Dialler { by_hand, answer };
                self.consider(hello, key, from, invited, asker);
            }
            Ask::Admit {
                hello,
                key,
                from,
                answer,
            } => self.consider(hello, key, from, false, Asker::Acceptor(answer)),
            Ask::Known { key, answer } => {
                let _ = answer.send(self.node.knows(self.now(), key));
            }
            Ask::Linked { addresses, answer } => {
                let mut known = self
                    .node
                    .membership()
                    .iter()
                    .flat_map(|(_, member)| &member.addresses);
                let _ = answer.send(known.any(|address| addresses.contains(address)));
            }
            Ask::Attach(attach, answer) => self.attach(*attach, answer),
        }
    }

    /// Whether the host disconnected this peer after it began this dial of its own.
    fn is_severed(&self, dial: Option<HostDial>, peer: Option<&PeerId>, key: Fingerprint) -> bool {
        dial.is_some_and(|dial| self.host_dials.is_severed(dial, peer, key))
    }

    fn consider(
        &mut self,
        hello: Hello,
        key: Fingerprint,
        from: SocketAddr,
        invited: bool,
        asker: Asker,
    ) {
        let place = match self.place_for(&hello, key, asker.is_own_hand(), true) {
            Ok(place) => place,
            Err(refused) => return self.answer(key, asker, Err(refused)),
        };
        self.admissions.asked += 1;
        let ticket = self.admissions.asked;
        let question = Question {
            hello,
            key,
            from,
            invited,
            place,
            asker,
            stage: Stage::New,
            until: Instant::now() + self.shared.config.handshake_timeout,
        };
        self.admissions.questions.insert(ticket, question);
        self.proceed(ticket);
    }

    /// Carries a question on, unless the host is still to be told of a departure.
    fn proceed(&mut self, ticket: u64) {
        let Some(question) = self.admissions.questions.get_mut(&ticket) else {
            return;
        };
        let peer = question.hello.peer_id.clone();
        let undelivered = self.shared.dispatch.has_undelivered_left(&peer);
        if question.asker.is_gone() {
            self.admissions.questions.remove(&ticket);
        } else if undelivered || self.sessions.is_departing(&peer) {
            // The id is free again only when the host knows that its last bearer is gone.
            if Instant::now() >= question.until {
                self.answer_question(ticket, Err(Code::DuplicatePeerId.into()));
            }
        } else if question.stage == Stage::Welcome {
            self.answer_question(ticket, Ok(()));
        } else if question.stage == Stage::New {
            question.stage = Stage::Asked;
            let candidate = Candidate {
                entry: PeerEntry {
                    id: peer,
                    key: question.key,
                    addresses: vec![listens_at(question.from, &question.hello)],
                },
                incarnation: question.hello.incarnation,
                payload: question.hello.join_payload.clone(),
            };
            let invited = question.invited;
            self.feed(Input::Join {
                ticket,
                candidate: Box::new(candidate),
                invited,
            });
        }
    }

    /// Carries on those that waited for the host.
    pub(super) fn proceed_all(&mut self) {
        let waiting: Vec<_> = self
            .admissions
            .questions
            .iter()
            .filter(|(_, question)| question.stage != Stage::Asked)
            .map(|(ticket, _)| *ticket)
            .collect();
        for ticket in waiting {
            self.proceed(ticket);
        }
    }

    /// The core has decided.
    pub(super) fn join_answered(&mut self, ticket: u64, verdict: Verdict) {
        let refused = match verdict {
            Verdict::Accepted => {
                if let Some(question) = self.admissions.questions.get_mut(&ticket) {
                    question.stage = Stage::Welcome;
                }
                return self.proceed(ticket);
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
        self.answer_question(ticket, Err(refused));
    }

    fn answer_question(&mut self, ticket: u64, answer: Result<(), Refused>) {
        if let Some(question) = self.admissions.questions.remove(&ticket) {
            let Question {
                key, place, asker, ..
            } = question;
            self.answer(key, asker, answer.map(|()| place));
        }
    }

    fn answer(&self, key: Fingerprint, asker: Asker, answer: Result<Reservation, Refused>) {
        if let Err(refused) = &answer {
            tracing::info!(code = ?refused.code, "not admitted");
        }
        match asker {
            Asker::Dialler { answer: asker, .. } => {
                let _ = asker.send(answer);
            }
            Asker::Acceptor(asker) => {
                let (refused, place) = match answer {
                    Ok(place) => (Code::Ok.into(), Some(place)),
                    Err(refused) => (refused, None),
                };
                let ack = HelloAck {
                    code: refused.code.value(),
                    kicked: refused.kicked,
                    reason: refused.reason,
                    bytes: refused.bytes.to_vec(),
                    hello: self.hello(key, false),
                };
                let _ = asker.send((ack, place));
            }
        }
    }

    /// Keeps a place for a peer, unless something stands against it. `may_dispute` an id that is bound to
    /// another key: the core finds out whether its bearer lives.
    fn place_for(
        &mut self,
        hello: &Hello,
        key: Fingerprint,
        by_own_hand: bool,
        may_dispute: bool,
    ) -> Result<Reservation, Refused> {
        let peer = &hello.peer_id;
        let checked = self.node.check_hello(self.now(), hello, key, by_own_hand);
        match checked {
            Ok(()) => {}
            Err(AdmissionRefusal::Bound(_)) if may_dispute => {}
            Err(refusal) => {
                tracing::info!(%peer, %refusal, "not admitted");
                return Err(refused_by(&refusal));
            }
        }
        self.end_outlived_session(hello, key);
        if self.untold_departures() >= MAX_UNTOLD_DEPARTURES {
            return Err(Code::MaxConnectionsReached.into());
        }
        self.admissions
            .reserved
            .retain(|_, (_, place)| place.strong_count() > 0);
        match self.admissions.reserved.get(peer) {
            Some((reserved_for, _)) if *reserved_for != key => {
                return Err(Code::DuplicatePeerId.into());
            }
            _ => {}
        }
        if self.node.membership().get(peer).is_none() {
            let newcomers = self
                .admissions
                .reserved()
                .filter(|id| *id != peer && self.node.membership().get(id).is_none())
                .count();
            if self.node.membership().len() + newcomers >= self.shared.config.max_connections {
                return Err(Code::MaxConnectionsReached.into());
            }
        }
        Ok(self.admissions.reserve(peer, key))
    }

    /// A peer that says that it has ended our session with it, that it has restarted, or that it has lost our
    /// link, is believed: it holds the key.
    fn end_outlived_session(&mut self, hello: &Hello, key: Fingerprint) {
        let peer = &hello.peer_id;
        let Some(session) = self.sessions.get(peer) else {
            return;
        };
        if session.key != key {
            return;
        }
        let over = if hello.incarnation > session.incarnation {
            Some(LeftReason::Replaced)
        } else if hello.generation > session.generation {
            Some(LeftReason::Lost)
        } else {
            None
        };
        if let Some(why) = over {
            let peer = peer.clone();
            self.feed(Input::SessionOver { peer, why });
        } else if hello.generation == session.generation
            && hello.losses > session.losses
            && session.current.is_some()
        {
            let losses = hello.losses;
            self.feed(Input::LinkDown {
                peer: peer.clone(),
                why: LinkEnd::Silent, // it lives, but has not heard us for a while
            });
            if let Some(session) = self.sessions.get_mut(peer) {
                session.losses = session.losses.max(losses);
            }
        }
    }

    fn attach(&mut self, attach: Attach, answer: oneshot::Sender<Result<(), Code>>) {
        let Attach {
            link,
            theirs,
            key,
            our_side,
            our_generation,
            our_losses,
            dialled,
            by_hand,
            reservation,
        } = attach;
        let peer = theirs.peer_id.clone();
        let connection = link.connection.clone();
        if self.is_severed(by_hand, Some(&peer), key) {
            // The other end may have the link: it hears what the host said.
            connection.close(close::DISCONNECTED, b"");
            let _ = answer.send(Err(Code::Rejected));
            return;
        }
        let by_hand = by_hand.is_some();
        let generation = our_generation.max(theirs.generation);
        let losses = our_losses.max(theirs.losses);
        // The place is ours until here; what happened meanwhile may still stand against the link.
        let admitted = if answer.is_closed() {
            Err(Code::Timeout) // whoever asked has given up
        } else {
            self.place_for(&theirs, key, by_hand, false)
                .map_err(|refused| refused.code)
                .and_then(|place| {
                    let (least_generation, least_losses) = self.sessions.numbers(key);
                    let outlived = generation < least_generation
                        || (generation == least_generation && losses < least_losses);
                    let untold = self.shared.dispatch.has_undelivered_left(&peer);
                    if outlived || untold || self.sessions.is_departing(&peer) {
                        Err(Code::ConnectionFailed)
                    } else {
                        Ok(place)
                    }
                })
        };
        if let Err(code) = admitted {
            // Before the streams are dropped: the other end may have the link, and would take the end of the
            // control stream for an offence.
            connection.close(close_code(code.value()), b"");
            let _ = answer.send(Err(code));
            return;
        }
        drop(reservation);
        self.admissions.reserved.remove(&peer);

        let id = self.sessions.next_link_id();
        let link = Link::start(id, link, &self.link_context);
        self.sessions.own(id, &peer);
        if self
            .sessions
            .get(&peer)
            .is_some_and(|s| s.current.is_some())
        {
            self.attach_second(id, link, &peer, dialled);
            let _ = answer.send(Ok(()));
            return;
        }
        self.attach_first(id, link, &theirs, key, (generation, losses), dialled);
        if by_hand || theirs.by_hand {
            self.feed(Input::Command(Command::Unbar(peer.clone())));
        }
        if by_hand {
            self.feed(Input::Command(Command::Pardon(key)));
        }
        let seen_at = listens_at(connection.remote_address(), &theirs);
        self.feed(Input::LinkUp(Box::new(LinkUp {
            peer: peer.clone(),
            incarnation: theirs.incarnation,
            key,
            addresses: vec![seen_at],
            eligible: theirs.eligible,
            priority: theirs.priority,
            is_host: theirs.policy.host_mode == HostMode::Host,
            ours: our_side,
            theirs: theirs.side,
        })));
        // Joined is in the host's queue; messages may follow.
        self.start_lanes(&peer);
        let _ = answer.send(Ok(()));
    }

    /// The only link of a session: a new one, or one that was lost and goes on.
    fn attach_first(
        &mut self,
        id: LinkId,
        link: Link,
        theirs: &Hello,
        key: Fingerprint,
        (generation, losses): (u32, u32),
        dialled: bool,
    ) {
        let peer = &theirs.peer_id;
        if let Some(session) = self.sessions.get_mut(peer) {
            session.losses = losses;
            session.carry_on(id, link, dialled);
            self.shared.outboxes.resume(peer);
            return;
        }
        let session = Session::new(id, link, dialled, (generation, losses), theirs, key);
        self.sessions.insert(peer, session);
        let limit = usize::try_from(theirs.max_message_size).unwrap_or(usize::MAX);
        let limit = limit.min(self.shared.config.max_message_size);
        self.shared.outboxes.open(peer, limit);
    }
}

/// What the other end receives. A host whose settings are the reason receives the sentence.
fn refused_by(refusal: &AdmissionRefusal) -> Refused {
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
        AdmissionRefusal::Barred(_) | AdmissionRefusal::Ended => Code::Rejected,
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
fn listens_at(from: SocketAddr, hello: &Hello) -> SocketAddr {
    SocketAddr::new(socket::canonical(from).ip(), hello.listen_port)
}
