//! Relays: a task for each holds this member's link to it, and reports who else is present there.
//!
//! A relay knows the room by a number, and the members by their keys. It introduces them, and carries packets of the
//! links between them ([`super::tunnel`]). It proves nothing about whom it introduces, and is believed nothing but where
//! it sees this member's socket.
//!
//! While links, dials or admissions use a relay, its silence is noticed within a second ([`silence`]). Then another
//! connection is tried beside the silent one, and whichever answers first is used.

mod entering;
mod link;
mod silence;
mod waits;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use room_transport::rendezvous::{FromRelay, Locator, ToRelay};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use self::entering::{Door, NotEntered};
use self::link::LinkToRelay;
pub(crate) use self::silence::relayed_idle_timeout;
use self::silence::{Look, Silence};
use self::waits::Waits;
use super::dial::Connector;
use super::names::Names;
use super::socket::Bound;
use crate::config::Relay;
use crate::core::event::RelayReport;
use crate::core::node::RelayChange;
use crate::core::path::{MAX_RELAYS, RelayNumber};

/// A report of the task that holds the link to a relay.
#[derive(Debug)]
pub(crate) enum News {
    /// For the core.
    Change(RelayNumber, RelayChange),
    /// For the host.
    Report(RelayReport),
}

/// State that the tasks of all relays share.
pub(crate) struct Entrance {
    pub(crate) gate: Arc<Connector>,
    pub(crate) names: Arc<Names>,
    pub(crate) bound: Bound,
    /// Whether the relays name this member to no others.
    pub(crate) hidden: bool,
    /// Draws the waits before further attempts.
    pub(crate) seed: u64,
    pub(crate) news: mpsc::Sender<News>,
}

/// Starts a task for each relay, once the locator is known. `requests` are the ends of
/// [`RelayRequests`](super::relay_requests::RelayRequests).
pub(crate) fn start(
    relays: &[Relay],
    mut locator: watch::Receiver<Option<Locator>>,
    entrance: Entrance,
    requests: Vec<mpsc::Receiver<ToRelay>>,
) {
    let relays = relays.to_vec();
    let entrance = Arc::new(entrance);
    tokio::spawn(async move {
        let derived = locator.wait_for(Option::is_some).await;
        // Fails only while the runtime ends.
        let Some(locator) = derived.ok().and_then(|derived| *derived) else {
            return;
        };
        for (number, (relay, requests)) in (0..).zip(relays.into_iter().zip(requests)) {
            let client = Client::new(RelayNumber(number), relay, locator, &entrance, requests);
            tokio::spawn(client.run());
        }
    });
}

/// This member's part in a relay.
struct Client {
    number: RelayNumber,
    door: Arc<Door>,
    news: mpsc::Sender<News>,
    requests: mpsc::Receiver<ToRelay>,
    /// Which relays links, dials and admissions use.
    in_use: watch::Receiver<[bool; MAX_RELAYS]>,
    waits: Waits,
    /// The code and the address that the host has.
    reported: Option<(i32, Option<SocketAddr>)>,
}

/// The room is gone.
struct Gone;

/// Reason why a link is not used any more.
enum End {
    /// It is lost.
    Lost,
    /// The relay is silent.
    Silent,
}

impl Client {
    fn new(
        number: RelayNumber,
        relay: Relay,
        locator: Locator,
        entrance: &Arc<Entrance>,
        requests: mpsc::Receiver<ToRelay>,
    ) -> Self {
        Self {
            number,
            news: entrance.news.clone(),
            requests,
            in_use: entrance.gate.tunnels.relays_in_use(),
            waits: Waits::new(entrance.seed ^ u64::from(number.0)),
            reported: None,
            door: Arc::new(Door {
                number,
                relay,
                locator,
                entrance: Arc::clone(entrance),
            }),
        }
    }

    /// Enters the relay, again and again, until the room is gone.
    async fn run(mut self) {
        while self.enter_once().await.is_ok() {}
    }

    async fn enter_once(&mut self) -> Result<(), Gone> {
        let failed = match self.door.enter(self.door.connect().await).await {
            Ok(link) => {
                let began = Instant::now();
                let failed = self.stay(link).await?;
                self.waits.stayed(began.elapsed());
                failed
            }
            Err(failed) => failed,
        };
        if matches!(failed, NotEntered::Closing) {
            return Err(Gone);
        }
        self.report(failed.code(), None, &failed).await?;
        let until = Instant::now() + self.waits.next(failed.is_final());
        loop {
            tokio::select! {
                () = sleep_until(until) => return Ok(()),
                // It was meant for a link that is gone.
                request = self.requests.recv() => {
                    request.ok_or(Gone)?;
                }
            }
        }
    }

    /// Uses a link, and each that replaces it. Returns why there is none any more.
    async fn stay(&mut self, mut link: LinkToRelay) -> Result<NotEntered, Gone> {
        loop {
            let end = self.use_link(&mut link).await?;
            let was_in_use = self.is_in_use();
            self.change(RelayChange::Down).await?;
            let old = match end {
                End::Silent => {
                    tracing::info!(relay = %self.number, "the relay is silent");
                    Some(link)
                }
                End::Lost if was_in_use && self.waits.may_skip(Instant::now()) => None,
                End::Lost => return Ok(NotEntered::Lost),
            };
            link = match self.replace(old).await? {
                Ok(link) => link,
                Err(failed) => return Ok(failed),
            };
        }
    }

    /// Uses a link until it is lost or silent.
    async fn use_link(&mut self, link: &mut LinkToRelay) -> Result<End, Gone> {
        self.report(0, Some(link.observed()), "entered").await?;
        let (observed, key) = (link.observed(), link.key());
        self.change(RelayChange::Up { observed, key }).await?;
        for key in link.present() {
            self.change(RelayChange::Present(key)).await?;
        }
        let mut silence = Silence::new(Instant::now(), link.answers());
        loop {
            let is_watched = self.is_in_use();
            tokio::select! {
                frame = link.frames.recv() => match frame {
                    Some(frame) => self.received(link, frame).await?,
                    None => return Ok(End::Lost),
                },
                request = self.requests.recv() => link.send(&request.ok_or(Gone)?),
                changed = self.in_use.changed() => {
                    changed.map_err(|_| Gone)?;
                    silence = Silence::new(Instant::now(), link.answers());
                }
                () = sleep_until(silence.next_look()), if is_watched => {
                    let (answers, rtt) = (link.answers(), link.connection.rtt());
                    match silence.look(Instant::now(), answers, rtt) {
                        Look::Answered | Look::Quiet => {}
                        Look::Probe => link.probe(),
                        Look::Fallen | Look::Over => return Ok(End::Silent),
                    }
                }
            }
        }
    }

    /// Connects anew, beside a link that is silent. Returns the one that works first.
    async fn replace(
        &mut self,
        mut old: Option<LinkToRelay>,
    ) -> Result<Result<LinkToRelay, NotEntered>, Gone> {
        let door = Arc::clone(&self.door);
        let connect = door.connect();
        tokio::pin!(connect);
        let mut failed = None;
        let answers = old.as_ref().map_or(0, LinkToRelay::answers);
        let mut silence = Silence::of_silent(Instant::now(), answers);
        loop {
            let Some(link) = &mut old else {
                let connected = match failed {
                    Some(failed) => Err(failed),
                    None => connect.await,
                };
                return Ok(door.enter(connected).await);
            };
            link.probe();
            tokio::select! {
                connected = &mut connect, if failed.is_none() => match connected {
                    Ok(connection) => {
                        // The relay would close it: it takes one link of a key.
                        drop(old.take());
                        return Ok(door.enter(Ok(connection)).await);
                    }
                    Err(error) => failed = Some(error),
                },
                frame = link.frames.recv() => match frame {
                    Some(frame) => drop(link.note(frame)),
                    None => old = None,
                },
                request = self.requests.recv() => link.send(&request.ok_or(Gone)?),
                () = sleep_until(silence.next_look()) => {
                    let (answers, rtt) = (link.answers(), link.connection.rtt());
                    match silence.look(Instant::now(), answers, rtt) {
                        Look::Answered => return old.take().map(Ok).ok_or(Gone),
                        Look::Over => old = None,
                        Look::Quiet | Look::Probe | Look::Fallen => {}
                    }
                }
            }
        }
    }

    /// Handles a frame of the relay.
    async fn received(&mut self, link: &mut LinkToRelay, frame: FromRelay) -> Result<(), Gone> {
        for change in link.note(frame) {
            if let RelayChange::Observed(address) = change {
                self.report(0, Some(address), "moved").await?;
            }
            self.change(change).await?;
        }
        Ok(())
    }

    async fn change(&self, change: RelayChange) -> Result<(), Gone> {
        let news = News::Change(self.number, change);
        self.news.send(news).await.map_err(|_| Gone)
    }

    /// Reports to the host, if that is news.
    async fn report(
        &mut self,
        code: i32,
        observed: Option<SocketAddr>,
        why: impl fmt::Display,
    ) -> Result<(), Gone> {
        let report = (code, observed);
        if self.reported.replace(report) == Some(report) {
            return Ok(());
        }
        let relay = Arc::clone(&self.door.relay.text);
        tracing::debug!(%relay, code, %why, "the state of the relay has changed");
        let report = RelayReport {
            relay,
            code,
            observed,
        };
        let news = News::Report(report);
        self.news.send(news).await.map_err(|_| Gone)
    }

    fn is_in_use(&self) -> bool {
        let number = usize::from(self.number.0);
        let in_use = self.in_use.borrow();
        in_use.get(number).is_some_and(|used| *used)
    }
}
