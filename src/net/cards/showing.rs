//! The task that shows a room's card: it answers browsers while this member leads.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use room_transport::identity::Identity;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::askers::Askers;
use super::card::Card;
use super::group::{CardSocket, LiveSocket, Networks};
use super::packet::{Answer, MAX_PACKET_BYTES, Question, Shown, Successor};
use crate::core::id::SessionId;
use crate::core::time::Time;
use crate::net::socket::Bound;

/// Interval of the looks at the room while browsers ask.
const LOOK: Duration = Duration::from_millis(250);
/// Interval of the looks at this machine's networks.
const NETWORKS: Duration = Duration::from_secs(10);
/// Packets read at a time, and the pause after these: a flood takes no more of the network thread.
const MAX_READ: usize = 64;
const READ_PAUSE: Duration = Duration::from_millis(20);

/// The part of a card that changes by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Whether this member leads.
    pub(crate) leads: bool,
    /// Members, this one included.
    pub(crate) players: u32,
    /// Epoch and term of the leadership.
    pub(crate) rank: (u64, u64),
    /// The other members.
    pub(crate) successors: Vec<Successor>,
}

/// A card with the sockets that were opened for it.
#[derive(Debug)]
pub(crate) struct Posted {
    card: Arc<Card>,
    sockets: Mutex<Option<(CardSocket, CardSocket)>>,
}

impl Posted {
    /// Opens sockets for `card` in a room at `bound`, which has an IPv4 address.
    pub(crate) fn open(card: Card, bound: Bound) -> io::Result<Self> {
        let own = only(bound).unwrap_or(Ipv4Addr::UNSPECIFIED);
        let sockets = (
            CardSocket::for_questions(card.port)?,
            CardSocket::for_talk(own)?,
        );
        Ok(Self {
            card: Arc::new(card),
            sockets: Mutex::new(Some(sockets)),
        })
    }

    fn take_sockets(&self) -> Option<(CardSocket, CardSocket)> {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.take()
    }
}

/// The one IPv4 address of a room that has one alone.
fn only(bound: Bound) -> Option<Ipv4Addr> {
    match bound.address {
        Some(IpAddr::V4(v4)) if !v4.is_unspecified() => Some(v4),
        _ => None,
    }
}

/// The card of a room; `None` while it shows none.
pub(crate) type Board = watch::Sender<Option<Arc<Posted>>>;

/// The task's view of its room.
pub(crate) struct ShowingContext {
    pub(crate) identity: Identity,
    pub(crate) bound: Bound,
    pub(crate) session: SessionId,
    pub(crate) needs_secret: bool,
    pub(crate) standing: Box<dyn Fn() -> Standing + Send + Sync>,
}

type Cards = watch::Receiver<Option<Arc<Posted>>>;

/// The task. [`Showing::end`] ends it.
pub(crate) struct Showing {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Showing {
    /// Waits for cards, in a task of the current runtime.
    pub(crate) fn start(context: ShowingContext, board: &Board) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self {
            stop,
            task: tokio::spawn(run(context, board.subscribe(), stopped)),
        }
    }

    /// Notifies browsers that the card is gone.
    pub(crate) async fn end(self) {
        // The task may have ended already.
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

async fn run(context: ShowingContext, mut cards: Cards, mut stopped: oneshot::Receiver<()>) {
    let mut desk: Option<Desk> = None;
    loop {
        let Some(open) = &mut desk else {
            tokio::select! {
                _ = &mut stopped => return,
                changed = cards.changed() => match changed {
                    Ok(()) => desk = Desk::open(&context, &mut cards),
                    Err(_) => return,
                },
            }
            continue;
        };
        tokio::select! {
            _ = &mut stopped => return open.pass_on(&context),
            changed = cards.changed() => {
                let is_over = changed.is_err() || !open.repost(&context, &mut cards);
                if is_over {
                    open.take_down(&context);
                    desk = Desk::open(&context, &mut cards);
                }
            }
            () = open.turn(&context) => {}
        }
    }
}

/// A card that is shown.
struct Desk {
    posted: Arc<Posted>,
    questions: LiveSocket,
    talk: LiveSocket,
    networks: Networks,
    networks_at: Instant,
    looked_at: Instant,
    askers: Askers,
    origin: Instant,
    /// Rises with each change; `shown` is what it stands for.
    number: u64,
    shown: Option<(Standing, Arc<Card>)>,
    read: usize,
}

impl Desk {
    /// A desk for the newest card, if there is one.
    fn open(context: &ShowingContext, cards: &mut Cards) -> Option<Self> {
        let posted = cards.borrow_and_update().clone()?;
        let (questions, talk) = posted.take_sockets()?;
        let opened = questions
            .enliven()
            .and_then(|questions| Ok((questions, talk.enliven()?)));
        let (questions, talk) = opened
            .inspect_err(|error| tracing::warn!(%error, "the room's card is not shown"))
            .ok()?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since_1970.unwrap_or_default().as_micros();
        let mut desk = Self {
            posted,
            questions,
            talk,
            networks: Networks::default(),
            networks_at: Instant::now(),
            looked_at: Instant::now(),
            askers: Askers::new(Time::ZERO),
            origin: Instant::now(),
            // Above the numbers of an earlier card under the same key.
            number: u64::try_from(micros).unwrap_or_default(),
            shown: None,
            read: 0,
        };
        desk.look_at_networks(context);
        Some(desk)
    }

    /// Shows the newest card with the same sockets; `false` if there is none for them.
    fn repost(&mut self, context: &ShowingContext, cards: &mut Cards) -> bool {
        let posted = cards.borrow_and_update().clone();
        match posted {
            Some(posted)
                if posted.card.port == self.posted.card.port
                    && posted.card.game == self.posted.card.game =>
            {
                // Its own sockets close.
                drop(posted.take_sockets());
                self.posted = posted;
                self.push(context);
                true
            }
            _ => false,
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + self.origin.elapsed()
    }

    /// Waits for a question, or for the next look.
    async fn turn(&mut self, context: &ShowingContext) {
        if self.read >= MAX_READ {
            self.read = 0;
            tokio::time::sleep(READ_PAUSE).await;
        }
        let mut question = [0; 64];
        let mut other = [0; 64];
        let look_at = match self.askers.is_empty() {
            true => self.networks_at,
            false => self.networks_at.min(self.looked_at + LOOK),
        };
        let received = tokio::select! {
            received = self.questions.receive(&mut question) => received.map(|(len, from)| (&question[..len], from)),
            received = self.talk.receive(&mut other) => received.map(|(len, from)| (&other[..len], from)),
            () = sleep_until(look_at) => {
                self.read = 0;
                return self.look(context);
            }
        };
        match received {
            Ok((packet, from)) => {
                self.read += 1;
                self.asked(context, packet, from);
            }
            // Windows reports here that a browser is gone.
            Err(_) => self.read = MAX_READ,
        }
    }

    fn look(&mut self, context: &ShowingContext) {
        self.looked_at = Instant::now();
        if Instant::now() >= self.networks_at {
            self.look_at_networks(context);
        }
        self.askers.forget(self.now());
        self.push(context);
    }

    fn look_at_networks(&mut self, context: &ShowingContext) {
        self.networks = Networks::of_this_machine(only(context.bound));
        self.questions.join(&self.networks);
        self.networks_at = Instant::now() + NETWORKS;
    }

    fn asked(&mut self, context: &ShowingContext, packet: &[u8], from: SocketAddrV4) {
        let Some(question) = Question::read(packet) else {
            return;
        };
        if question.game != self.posted.card.game
            || !self.networks.have(*from.ip())
            || from.port() == 0
        {
            return;
        }
        let now = self.now();
        // A member that does not lead remembers browsers, too: it may lead next.
        if !self.askers.ask(now, from, question.nonce) {
            return;
        }
        let standing = (context.standing)();
        if standing.leads {
            self.count(&standing);
            self.answer(context, question, from, Ok(&standing));
        }
    }

    /// Sends changes to browsers.
    fn push(&mut self, context: &ShowingContext) {
        let standing = (context.standing)();
        if !standing.leads {
            return self.pass_on(context);
        }
        self.count(&standing);
        for (to, nonce) in self.askers.behind(self.now(), self.number) {
            let question = Question {
                game: self.posted.card.game,
                nonce,
            };
            self.answer(context, question, to, Ok(&standing));
        }
    }

    /// Numbers what is shown from now on.
    fn count(&mut self, standing: &Standing) {
        let is_shown = self
            .shown
            .as_ref()
            .is_some_and(|(shown, card)| shown == standing && Arc::ptr_eq(card, &self.posted.card));
        if !is_shown {
            self.number += 1;
            self.shown = Some((standing.clone(), Arc::clone(&self.posted.card)));
        }
    }

    /// This member no longer leads: another one may show the room's card.
    fn pass_on(&mut self, context: &ShowingContext) {
        if let Some((last, _)) = self.shown.take() {
            self.end(context, &last.successors);
        }
    }

    /// The host has taken the card down.
    fn take_down(&mut self, context: &ShowingContext) {
        self.shown = None;
        self.end(context, &[]);
    }

    /// Notifies browsers that this member no longer shows the card, and of the ones that may.
    fn end(&mut self, context: &ShowingContext, successors: &[Successor]) {
        self.number += 1;
        for (to, nonce) in self.askers.holders() {
            let question = Question {
                game: self.posted.card.game,
                nonce,
            };
            self.answer(context, question, to, Err(successors));
        }
        self.askers.forget_cards();
    }

    /// Answers one browser. Without a standing the card is gone, but for these successors.
    fn answer(
        &mut self,
        context: &ShowingContext,
        question: Question,
        to: SocketAddrV4,
        standing: Result<&Standing, &[Successor]>,
    ) {
        let card = &self.posted.card;
        let shown = standing.ok().map(|standing| Shown {
            port: context.bound.port,
            players: standing.players,
            max_players: card.max_players,
            needs_secret: context.needs_secret,
            session: card.is_open.then(|| context.session.clone()),
            name: card.name.clone(),
            data: card.data.clone(),
        });
        let answer = Answer {
            question,
            to,
            key: context.identity.public_key(),
            number: self.number,
            rank: standing.map_or_else(|_| (0, 0), |standing| standing.rank),
            successors: match standing {
                Ok(standing) => standing.successors.clone(),
                Err(successors) => successors.to_vec(),
            },
            shown,
        };
        let Some(packet) = answer.write(&context.identity) else {
            return tracing::error!("the room's card cannot be signed");
        };
        debug_assert!(packet.len() <= MAX_PACKET_BYTES);
        if let Err(error) = self.talk.send(&packet, to) {
            tracing::debug!(%to, %error, "a browser is not answered");
        }
        self.askers.sent(self.now(), to, self.number);
    }
}
