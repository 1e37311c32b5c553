//! The service: one thread that runs the core in real time.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Instant;

use thiserror::Error;
use tokio::sync::Notify;

use super::{
    LeaderElectionAdapter, MAX_ID_BYTES, Msg, Peer as _, PeerId, Receiver, WindowError, Windows,
};
use crate::core::election::gossip::{self, Act, Claim};
use crate::core::id::Incarnation;
use crate::core::time::Time;

/// Receives, at the start of each window, the channel of the settings, and 1 if this peer leads in the window, 0 if it
/// follows.
pub type MetricsReporter = Box<dyn FnMut(&str, u8) + Send>;

/// Settings of a service.
#[derive(Default)]
pub struct Settings {
    /// The lengths of the windows. For an undisturbed living leader, keep `election_duration` above half of
    /// `alive_threshold`.
    pub windows: Windows,
    /// Whether the lowest id is certain to win when a leader is lost: a follower that knows no living leader proposes
    /// itself as soon as it receives a proposal. If off, a higher id may win an election that is shorter than the
    /// threshold, and then stays.
    pub strict_lowest: bool,
    /// Name of this election, for the metric and the log.
    pub channel: String,
    /// Called at the start of every window, from the service's thread.
    pub metrics: Option<MetricsReporter>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("windows", &self.windows)
            .field("strict_lowest", &self.strict_lowest)
            .field("channel", &self.channel)
            .finish_non_exhaustive()
    }
}

/// Why a service does not start. Nothing runs then.
#[derive(Debug, Error)]
pub enum StartError {
    /// The id is empty.
    #[error("the id is empty; give 1 to {MAX_ID_BYTES} bytes")]
    EmptyId,
    /// The id is too long.
    #[error("the id has {0} bytes; at most {MAX_ID_BYTES} are allowed")]
    LongId(usize),
    /// A window has a length that is not allowed.
    #[error(transparent)]
    Window(#[from] WindowError),
    /// The system gives no thread or no timer.
    #[error("the service's thread cannot start: {0}")]
    Thread(#[from] io::Error),
}

/// A running election of one peer. Stops when it is dropped.
///
/// # The callback
/// It receives `true` when this peer begins to lead and `false` when it stops, alternately, beginning with `true`, on
/// the service's own thread. It delays the election while it runs, so it should start and stop work, not do it.
/// [`LeaderElectionService::is_leader`] returns the new state already while it runs. It may call every function of a
/// [`Handle`], and `stop`.
///
/// When it panics, the service logs and counts the panic ([`LeaderElectionService::panics`]), and continues. After a
/// panic at `true` the leader's work does not run: the peer yields, so that the callback receives `false` and another
/// peer may lead.
#[derive(Debug)]
pub struct LeaderElectionService {
    handle: Handle,
    thread: Mutex<Option<JoinHandle<()>>>,
    thread_id: ThreadId,
}

/// Access of the leader's work to its election: to query it, and to yield. Clones share it, and none keeps the service
/// running.
#[derive(Debug, Clone)]
pub struct Handle(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_leader: AtomicBool,
    yields: AtomicBool,
    stopped: AtomicBool,
    panics: AtomicU64,
    wake: Notify,
}

impl Handle {
    /// Whether this peer leads. After a stop, whether it led then.
    pub fn is_leader(&self) -> bool {
        self.0.is_leader.load(Ordering::Acquire)
    }

    /// Yields the leadership, and does not lead again until another peer leads, or for six alive thresholds. Does
    /// nothing in a peer that does not lead.
    ///
    /// Returns at once; the callback receives `false` soon after, on the service's thread. So the leader's work may
    /// call this even while the callback waits for that work to end.
    pub fn yield_leadership(&self) {
        self.0.yields.store(true, Ordering::Release);
        self.0.wake.notify_one();
    }
}

impl LeaderElectionService {
    /// Starts a thread on which the peer `id` takes part in the election among the peers that `adapter` reaches.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start<A: LeaderElectionAdapter>(
        adapter: A,
        id: impl Into<PeerId>,
        callback: impl FnMut(bool) + Send + 'static,
        settings: Settings,
    ) -> Result<Self, StartError> {
        let mut elector = Elector::new(id.into(), callback, settings)?;
        let timer = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        let handle = elector.handle();
        let thread = thread::Builder::new()
            .name("mmn-gossip".to_owned())
            .spawn(move || {
                let run = || timer.block_on(run(&adapter, &mut elector));
                if catch_unwind(AssertUnwindSafe(run)).is_err() {
                    elector.adapter_panicked();
                }
            })?;
        Ok(Self {
            handle,
            thread_id: thread.thread().id(),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// A handle for the leader's work.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Whether this peer leads. After a stop, whether it led then.
    pub fn is_leader(&self) -> bool {
        self.handle.is_leader()
    }

    /// [`Handle::yield_leadership`].
    pub fn yield_leadership(&self) {
        self.handle.yield_leadership();
    }

    /// Number of panics in the callback, the metric and the adapter.
    pub fn panics(&self) -> u64 {
        self.handle.0.panics.load(Ordering::Relaxed)
    }

    /// Ends the service and waits for its thread, and so for a running callback. No callback follows, and
    /// [`LeaderElectionService::is_leader`] keeps its value. Does nothing after the first call.
    ///
    /// A call from the callback does not wait; the service ends when the callback returns. Do not call it from a thread
    /// that the callback waits for.
    pub fn stop(&self) {
        let shared = &self.handle.0;
        shared.stopped.store(true, Ordering::Release);
        shared.wake.notify_one();
        if thread::current().id() == self.thread_id {
            return;
        }
        // The lock is held until the thread has ended, so that a concurrent stop waits, too.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // The thread catches every panic.
            let _ = thread.join();
        }
    }
}

impl Drop for LeaderElectionService {
    fn drop(&mut self) {
        self.stop();
    }
}

fn check(id: &PeerId, settings: &Settings) -> Result<(), StartError> {
    match id.as_bytes().len() {
        0 => return Err(StartError::EmptyId),
        length if length > MAX_ID_BYTES => return Err(StartError::LongId(length)),
        _ => {}
    }
    Ok(settings.windows.check()?)
}

async fn run<A: LeaderElectionAdapter>(adapter: &A, elector: &mut Elector) {
    let origin = Instant::now();
    let now = || Time::ZERO + origin.elapsed();
    let shared = Arc::clone(&elector.shared);
    let mut messages: Receiver<A::Msg> = adapter.accept();
    let mut open = true;
    elector.begin(adapter, now());
    loop {
        elector.tick(adapter, now());
        let Some(deadline) = elector.next_deadline() else {
            return;
        };
        let wait = deadline.since(now());
        // A peer that is flooded with messages still runs its turns, above, and can be stopped.
        tokio::select! {
            biased;
            () = shared.wake.notified() => {}
            message = messages.receive(), if open => match message {
                Some(message) => elector.receive(adapter, now(), &message),
                None => open = false,
            },
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Joins the core with an adapter and a callback; everything but the thread and the clock.
pub(super) struct Elector {
    id: PeerId,
    windows: Windows,
    strict_lowest: bool,
    /// `None` before [`Elector::begin`].
    peer: Option<gossip::Peer<PeerId>>,
    callback: Box<dyn FnMut(bool) + Send>,
    channel: String,
    metrics: Option<MetricsReporter>,
    shared: Arc<Shared>,
}

impl Elector {
    pub(super) fn new(
        id: PeerId,
        callback: impl FnMut(bool) + Send + 'static,
        settings: Settings,
    ) -> Result<Self, StartError> {
        check(&id, &settings)?;
        Ok(Self {
            id,
            windows: settings.windows,
            strict_lowest: settings.strict_lowest,
            peer: None,
            callback: Box::new(callback),
            channel: settings.channel,
            metrics: settings.metrics,
            shared: Arc::default(),
        })
    }

    pub(super) fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    pub(super) fn begin<A: LeaderElectionAdapter>(&mut self, adapter: &A, now: Time) {
        // The adapter numbers the messages; the core's own count is not used here.
        let incarnation = Incarnation {
            started_us: 0,
            random: 0,
        };
        let settings = gossip::Settings {
            windows: self.windows,
            strict_lowest: self.strict_lowest,
        };
        let members = members(adapter);
        let peer = gossip::Peer::new(self.id.clone(), incarnation, settings, now, &members);
        self.peer = Some(peer);
    }

    /// Time of the next call of [`Elector::tick`]; `None` once the service is stopped.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.peer.as_ref()?.next_deadline()
    }

    /// Runs after a deadline, or after a call of a handle.
    pub(super) fn tick<A: LeaderElectionAdapter>(&mut self, adapter: &A, now: Time) {
        let due = self.next_deadline().is_some_and(|deadline| now >= deadline);
        if let Some(peer) = self.peer.as_mut().filter(|_| due) {
            peer.tick(now, &members(adapter));
        }
        self.carry_out(adapter, now);
    }

    pub(super) fn receive<A: LeaderElectionAdapter>(
        &mut self,
        adapter: &A,
        now: Time,
        message: &A::Msg,
    ) {
        let claim = if message.is_proposal() {
            Claim::Proposal
        } else if message.is_declaration() {
            Claim::Declaration
        } else {
            tracing::warn!(
                channel = %self.channel,
                from = %message.sender_id(),
                "a message is neither a proposal nor a declaration"
            );
            return;
        };
        let message = gossip::Message {
            from: message.sender_id().clone(),
            order: message.order(),
            claim,
        };
        if let Some(peer) = &mut self.peer {
            peer.receive(now, &message, &members(adapter));
        }
        self.carry_out(adapter, now);
    }

    fn carry_out<A: LeaderElectionAdapter>(&mut self, adapter: &A, now: Time) {
        self.obey(now);
        while let Some(act) = self.peer.as_mut().and_then(gossip::Peer::poll_act) {
            match act {
                Act::Send(claim) => {
                    adapter.gossip(adapter.create_message(claim == Claim::Declaration));
                }
                Act::Gained => {
                    if !self.call_back(true) {
                        self.shared.yields.store(true, Ordering::Release);
                    }
                }
                Act::Lost => {
                    self.call_back(false);
                }
                Act::Window { leads } => self.report(leads),
            }
            self.obey(now);
        }
    }

    /// Carries out calls made meanwhile, perhaps by a callback.
    fn obey(&mut self, now: Time) {
        let yields = self.shared.yields.swap(false, Ordering::AcqRel);
        let Some(peer) = &mut self.peer else { return };
        if self.shared.stopped.load(Ordering::Acquire) {
            peer.stop();
        } else if yields {
            peer.yield_leadership(now);
        }
    }

    /// Returns whether the callback returned without a panic.
    fn call_back(&mut self, is_leader: bool) -> bool {
        self.shared.is_leader.store(is_leader, Ordering::Release);
        let callback = &mut self.callback;
        let came_back = catch_unwind(AssertUnwindSafe(|| callback(is_leader))).is_ok();
        if !came_back {
            self.panicked("the leadership callback");
        }
        came_back
    }

    fn report(&mut self, leads: bool) {
        let channel = &self.channel;
        if let Some(metrics) = &mut self.metrics
            && catch_unwind(AssertUnwindSafe(|| metrics(channel, leads.into()))).is_err()
        {
            self.panicked("the metric");
        }
    }

    fn panicked(&self, what: &str) {
        self.shared.panics.fetch_add(1, Ordering::Relaxed);
        tracing::error!(channel = %self.channel, "{what} panicked");
    }

    /// Ends the election for this peer, so that the leader's work stops.
    fn adapter_panicked(&mut self) {
        self.panicked("the adapter");
        self.peer = None;
        if self.shared.is_leader.load(Ordering::Acquire) {
            self.call_back(false);
        }
    }
}

fn members<A: LeaderElectionAdapter>(adapter: &A) -> BTreeSet<PeerId> {
    let peers = adapter.peers();
    peers.iter().map(|peer| peer.id().clone()).collect()
}
