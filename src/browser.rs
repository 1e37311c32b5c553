//! Browsers: lists of the rooms of a game in the local network, without a room of this process.
//!
//! Each browser has a thread of its own, which asks, listens and, in thread mode, runs the handler.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::config::DispatchMode;
use crate::dispatch::{in_callback, run_caught};
use crate::error::{Code, Coded};
use crate::fork::{self, Inherit, PerProcess};
use crate::net::cards::group::{CardSocket, LiveSocket, Networks};
use crate::net::cards::list::List;
use crate::net::cards::packet::{MAX_PACKET_BYTES, Question, Unverified};

use crate::core::time::Time;
pub use crate::net::cards::card::{BadName, Game};
pub use crate::net::cards::list::{Change, Room};

/// Most open browsers of a process.
pub const MAX_BROWSERS: usize = 16;
/// Times of the first questions; one is easily lost.
const FIRST_QUESTIONS: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];
/// Interval of the later ones.
const QUESTION_INTERVAL: Duration = Duration::from_secs(4);
/// Interval of looks at rooms that are silent.
const LOOK: Duration = Duration::from_secs(1);

/// Receives the number of the browser, and what has become of a room.
pub type Handler = Arc<dyn Fn(u64, Change, &Room) + Send + Sync>;

/// Settings of a browser.
pub struct Settings {
    /// The game whose rooms it lists.
    pub game: Game,
    /// UDP port of the questions.
    pub port: u16,
    /// Which thread runs the handler.
    pub dispatch_mode: DispatchMode,
}

/// Why a browser does not do what was asked of it. Nothing has changed.
#[derive(Debug, Error)]
pub enum BrowseError {
    /// There is no such browser.
    #[error("the browser {number} is not open: it was closed, or is not a browser of this process")]
    NotOpen {
        /// The number given.
        number: u64,
    },
    /// The process has as many browsers as it may have.
    #[error("this process has {MAX_BROWSERS} open browsers, which is the limit; close one first")]
    TooMany,
    /// No socket could be opened.
    #[error("no UDP socket could be opened ({0}); check that this program may use the network")]
    Socket(io::Error),
    /// The system gave no thread or no randomness.
    #[error("the browser could not be started: {0}")]
    Internal(String),
    /// The browser's handler runs on its own thread.
    #[error(
        "this browser runs its callback on its own thread; open it with dispatch_mode 1 (poll) to run it yourself"
    )]
    NotPollMode,
    /// The caller is inside a callback.
    #[error("a callback polls or closes a browser; do that outside of callbacks")]
    InsideCallback,
    /// Another thread polls.
    #[error("another thread is polling this browser; let one thread at a time do so")]
    Busy,
}

impl Coded for BrowseError {
    fn code(&self) -> Code {
        match self {
            Self::NotOpen { .. } => Code::NotInitialized,
            Self::TooMany => Code::MaxConnectionsReached,
            Self::Socket(_) => Code::ConnectionFailed,
            Self::Internal(_) => Code::InternalError,
            Self::NotPollMode => Code::InvalidArgument,
            Self::InsideCallback | Self::Busy => Code::WouldDeadlock,
        }
    }
}

impl Coded for BadName {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }
}

/// The browsers by number. A forked child has none of its parent's.
static BROWSERS: PerProcess<Mutex<Browsers>> = PerProcess::new(Mutex::new(Browsers::new()));
/// The number of the next browser. A forked child goes on with the value of its parent.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

type Browsers = BTreeMap<u64, Option<Arc<Browser>>>;

impl Inherit for Mutex<Browsers> {
    fn inherit(_: &Self) -> Self {
        Self::new(Browsers::new())
    }
}

/// Opens a browser. `announce` receives its number before the handler runs.
///
/// # Errors
/// [`BrowseError`]; `announce` did not run then.
pub fn open(
    settings: Settings,
    handler: Handler,
    announce: impl FnOnce(u64),
) -> Result<u64, BrowseError> {
    let place = Place::take()?;
    let number = place.0;
    let socket = CardSocket::for_talk(Ipv4Addr::UNSPECIFIED).map_err(BrowseError::Socket)?;
    let internal = |error: &dyn fmt::Display| BrowseError::Internal(error.to_string());
    let mut nonce = [0; 8];
    let drawn = SystemRandom::new().fill(&mut nonce);
    drawn.map_err(|_| internal(&"the system's random generator failed"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| internal(&error))?;
    let shared = Arc::new(Shared {
        number,
        origin: Instant::now(),
        list: Mutex::new(List::new(Time::ZERO)),
        mode: settings.dispatch_mode,
        handler: Mutex::new(Some(handler)),
    });
    let (stop, stopped) = oneshot::channel();
    let runner = Runner {
        shared: Arc::clone(&shared),
        question: Question {
            game: settings.game,
            nonce,
        },
        port: settings.port,
        networks: Networks::default(),
    };
    let (begin, begins) = oneshot::channel::<()>();
    let thread = thread::Builder::new()
        .name("mmn-browser".into())
        .spawn(move || {
            fork::enter_own_thread();
            runtime.block_on(async {
                // Fails if the opener has given up.
                if begins.await.is_ok() {
                    runner.run(socket, stopped).await;
                }
            });
        })
        .map_err(|error| internal(&error))?;
    let browser = Browser {
        shared,
        stop: Mutex::new(Some((stop, thread))),
    };
    announce(number);
    place.fill(browser);
    // The thread waits for this.
    let _ = begin.send(());
    Ok(number)
}

/// Closes a browser. When this returns its handler does not run and never runs again, and its thread has ended.
///
/// # Errors
/// [`BrowseError::NotOpen`], [`BrowseError::InsideCallback`].
pub fn close(number: u64) -> Result<(), BrowseError> {
    if in_callback() {
        return Err(BrowseError::InsideCallback);
    }
    let browser = browsers().remove(&number).flatten();
    browser.ok_or(BrowseError::NotOpen { number })?.close();
    Ok(())
}

/// In poll mode, runs the handler for up to `max` changes of rooms; returns their number.
///
/// # Errors
/// [`BrowseError`]; the handler did not run then.
pub fn poll(number: u64, max: usize) -> Result<usize, BrowseError> {
    let not_open = || BrowseError::NotOpen { number };
    let browser = browsers().get(&number).cloned().flatten();
    let shared = Arc::clone(&browser.ok_or_else(not_open)?.shared);
    if shared.mode != DispatchMode::Poll {
        return Err(BrowseError::NotPollMode);
    }
    if in_callback() {
        return Err(BrowseError::InsideCallback);
    }
    let handler = shared.handler.try_lock().map_err(|_| BrowseError::Busy)?;
    let handler = handler.as_ref().ok_or_else(not_open)?;
    let mut reported = 0;
    let generation = fork::generation();
    while reported < max && shared.report(handler) {
        reported += 1;
        // A child that was forked inside the handler has no browser.
        if fork::generation() != generation {
            return Err(not_open());
        }
    }
    Ok(reported)
}

fn browsers() -> MutexGuard<'static, Browsers> {
    lock(BROWSERS.get())
}

/// No code panics while it holds one of these locks; if it did, the data would still be consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of a browser that is being opened. Dropping it frees the place, unless it is filled.
struct Place(u64);

impl Place {
    fn take() -> Result<Self, BrowseError> {
        let mut browsers = browsers();
        if browsers.len() >= MAX_BROWSERS {
            return Err(BrowseError::TooMany);
        }
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        browsers.insert(number, None);
        Ok(Self(number))
    }

    fn fill(self, browser: Browser) {
        browsers().insert(self.0, Some(Arc::new(browser)));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut browsers = browsers();
        if browsers.get(&self.0).is_some_and(Option::is_none) {
            browsers.remove(&self.0);
        }
    }
}

struct Browser {
    shared: Arc<Shared>,
    stop: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl Browser {
    fn close(&self) {
        if let Some((stop, thread)) = lock(&self.stop).take() {
            // Both fail only for a thread that has panicked, which is logged.
            let _ = stop.send(());
            let _ = thread.join();
        }
        // Waits for a poll of another thread.
        let handler = lock(&self.shared.handler).take();
        drop(handler);
    }
}

/// State that the browser's thread and the host's share.
struct Shared {
    number: u64,
    origin: Instant,
    list: Mutex<List>,
    mode: DispatchMode,
    /// Locked while it runs.
    handler: Mutex<Option<Handler>>,
}

impl Shared {
    fn now(&self) -> Time {
        Time::ZERO + self.origin.elapsed()
    }

    /// Runs the handler for the next change, if there is one.
    fn report(&self, handler: &Handler) -> bool {
        let next = lock(&self.list).report(self.now());
        let Some((change, room)) = next else {
            return false;
        };
        run_caught(|| handler(self.number, change, &room));
        true
    }
}

/// The browser's thread.
struct Runner {
    shared: Arc<Shared>,
    question: Question,
    port: u16,
    networks: Networks,
}

impl Runner {
    async fn run(mut self, socket: CardSocket, mut stopped: oneshot::Receiver<()>) {
        let socket = match socket.enliven() {
            Ok(socket) => socket,
            Err(error) => return tracing::warn!(%error, "a browser lists nothing"),
        };
        let began = Instant::now();
        let mut first = FIRST_QUESTIONS.iter();
        let (mut ask_at, mut look_at) = (began, began + LOOK);
        let mut buffer = vec![0; MAX_PACKET_BYTES + 1];
        let mut report_at = None;
        let mut has_news = false;
        loop {
            let now = Instant::now();
            if now >= ask_at {
                self.ask(&socket);
                let next = first.next().map(|after| began + *after);
                ask_at = next.unwrap_or(now + QUESTION_INTERVAL);
            }
            if now >= look_at {
                look_at = now + LOOK;
                has_news = true;
                for room in lock(&self.shared.list).tick(self.shared.now()) {
                    // A lost question is asked again.
                    let _ = socket.send(&self.question.write(), room);
                }
            }
            if has_news || report_at.is_some_and(|at| now >= at) {
                has_news = false;
                report_at = self.report();
            }
            let wake_at = ask_at.min(look_at).min(report_at.unwrap_or(look_at));
            tokio::select! {
                _ = &mut stopped => return,
                received = socket.receive(&mut buffer) => match received {
                    Ok((len, from)) => has_news = self.receive(&socket, &buffer[..len], from),
                    // Windows reports here that a room's process is gone.
                    Err(_) => tokio::task::yield_now().await,
                },
                () = sleep_until(wake_at) => {}
            }
        }
    }

    fn ask(&mut self, socket: &LiveSocket) {
        self.networks = Networks::of_this_machine(None);
        socket.ask_all(&self.networks, self.port, &self.question.write());
        lock(&self.shared.list).asked_all(self.shared.now());
    }

    /// Takes a packet. Returns whether there may be news for the host.
    fn receive(&self, socket: &LiveSocket, packet: &[u8], from: SocketAddrV4) -> bool {
        let Some(answer) = Unverified::read(packet) else {
            return false;
        };
        let claimed = answer.claimed();
        let is_for_us = claimed.question == self.question
            && claimed.to.port() == socket.port()
            && self.networks.are_here(*claimed.to.ip());
        is_for_us
            && self.networks.have(*from.ip())
            && lock(&self.shared.list).receive(self.shared.now(), from, answer)
    }

    /// In thread mode, runs the handler for what is new. Returns when there may be more.
    fn report(&self) -> Option<Instant> {
        if self.shared.mode != DispatchMode::Thread {
            return None;
        }
        let generation = fork::generation();
        {
            let handler = lock(&self.shared.handler);
            let handler = handler.as_ref()?;
            while self.shared.report(handler) {
                if fork::generation() != generation {
                    fork::end_child();
                }
            }
        }
        let due = lock(&self.shared.list).next_report()?;
        Some(self.shared.origin + due.since(Time::ZERO))
    }
}
