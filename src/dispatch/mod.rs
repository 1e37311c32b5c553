//! The bounded, ordered way from the network thread to the host's callbacks.
//!
//! One queue holds state events and messages in the order in which the host receives them. One thread runs the
//! handlers, one at a time: the queue's own, or in poll mode the host's thread that polls. Messages are limited in
//! number and bytes. When there is no room the network thread waits, and QUIC's flow control passes the wait on to the
//! sender. State events are never dropped, never overtake, and do not use the messages' room.
//!
//! Every function here may be called from any thread, and from inside a handler.

mod indices;
pub mod kind;
mod notes;
mod queue;
#[cfg(test)]
mod tests;
mod waiting;

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::config::DispatchMode;
use crate::core::id::PeerId;
use crate::current_room;
use crate::error::PollError;
use crate::fork;
use crate::lent;
use kind::{Everything, Handler, Kind, Place};
use queue::{Offer, Queue};

pub use crate::core::event::{
    ConnectionResult, Delivery, Direction, DiscoveryRefused, EndReason, Event, FoundBy, Incoming,
    LeaderChange, Left, LeftReason, MappingReport, RelayReport, Returned, TurnReport,
};
pub use indices::Indices;
pub use kind::{EventHandler, ReconnectStatus, Report, Reported};
pub(crate) use queue::StateSource;

/// Handler of every event of the room but those of its state, without the index of its peer.
pub type PlainEventHandler = Arc<dyn Fn(&Event) + Send + Sync>;

/// Capacity of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most messages.
    pub messages: usize,
    /// Most bytes of payload; an empty queue takes one message of any size.
    pub bytes: usize,
    /// Longest time that messages wait for the first handler that takes messages. After that they are discarded and
    /// counted until there is one. This host's own messages wait in the queue, those of others in the network.
    pub hold: Duration,
}

/// Default hold: time for which messages wait for the first Receive handler ("Exact answers" in the ABI).
pub const FIRST_RECEIVE_HOLD: Duration = Duration::from_secs(5);

/// The queue, its handlers and, outside of poll mode, the thread that runs them.
///
/// Dropping it stops it, as [`Dispatch::stop`] does.
pub struct Dispatch {
    shared: Arc<Shared>,
    indices: Arc<Indices>,
    mode: DispatchMode,
    /// Held while [`Dispatch::stop`] joins, so that a second stop waits as well.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Dispatch {
    /// Makes an empty queue without handlers, and in thread mode starts its thread. `me` is this node.
    ///
    /// # Errors
    /// The operating system's error if it cannot start the thread.
    pub fn start(limits: Limits, me: PeerId, mode: DispatchMode) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::new(limits, me));
        let thread = match mode {
            DispatchMode::Poll => None,
            DispatchMode::Thread => {
                let thread = thread::Builder::new().name("mmn-dispatch".into()).spawn({
                    let shared = Arc::clone(&shared);
                    move || {
                        fork::enter_own_thread();
                        shared.run_until_stopped();
                    }
                })?;
                Some(thread)
            }
        };
        let indices = shared.lock().indices();
        Ok(Self {
            shared,
            indices,
            mode,
            thread: Mutex::new(thread),
        })
    }

    /// The queue is for the room with this number.
    pub(crate) fn set_room(&self, number: u64) {
        self.shared.room.store(number, Ordering::Relaxed);
    }

    /// The number of its room, or 0.
    pub(crate) fn room(&self) -> u64 {
        self.shared.room.load(Ordering::Relaxed)
    }

    /// Calls no handler until [`Dispatch::begin`]: the room cannot answer a handler's queries yet.
    pub(crate) fn wait_to_begin(&self) {
        self.shared.lock().waits_to_begin = true;
    }

    /// Lets handlers run from now on.
    pub(crate) fn begin(&self) {
        let mut queue = self.shared.lock();
        queue.waits_to_begin = false;
        self.shared.unlock_and_wake(queue);
    }

    /// Lets messages wait although there is a handler of all events, as they do without one.
    pub(crate) fn hold_messages(&self) {
        self.shared.lock().hold_messages();
    }

    /// Ends [`Dispatch::hold_messages`]: the handler of all events receives the messages that wait, and all later ones.
    pub(crate) fn take_messages(&self) {
        let mut queue = self.shared.lock();
        queue.take_messages();
        self.shared.unlock_and_wake(queue);
        self.shared.space.notify_one();
    }

    /// Discards the queue and ends the thread. When this returns, no handler runs or will run: it waits for a running
    /// handler and for a poll on another thread, unless the caller is inside it.
    ///
    /// Handlers are dropped. Afterwards the queue discards events and messages at once, and never calls a handler that
    /// is registered.
    pub fn stop(&self) {
        let leftovers = self.shared.lock().stop();
        self.shared.work.notify_all();
        self.shared.space.notify_one();
        drop(leftovers);
        if self.shared.inside_own_call() {
            return;
        }
        let mut thread = lock(&self.thread);
        if let Some(thread) = thread.take() {
            // Fails only when the thread panicked, and its loop catches every panic of a handler.
            let _ = thread.join();
        }
        drop(thread);
        let queue = self.shared.lock();
        drop(
            self.shared
                .wait_while(queue, |queue| queue.poller.is_some()),
        );
    }

    /// In poll mode, runs the handlers of up to `max` queued events and messages on the calling thread, in order, and
    /// returns the number of these. Entries without a handler do not count; each event of the present state that a new
    /// handler receives counts as one. Does not wait.
    /// # Errors
    /// [`PollError`]; nothing has run then.
    pub fn poll(&self, max: usize) -> Result<usize, PollError> {
        if self.mode != DispatchMode::Poll {
            return Err(PollError::NotPollMode);
        }
        if in_callback() {
            return Err(PollError::InsideCallback);
        }
        let mut queue = self.shared.lock();
        if queue.poller.is_some() {
            return Err(PollError::Busy);
        }
        queue.poller = Some(thread::current().id());
        queue.polled_at = Instant::now();
        let mut reported = 0;
        while reported < max {
            let Some((locked, ran)) = self.shared.run_one(queue) else {
                return Err(PollError::Forked);
            };
            queue = locked;
            if !ran {
                break;
            }
            if !queue.batch_goes_on() {
                reported += 1;
            }
        }
        queue.poller = None;
        queue.polled_at = Instant::now();
        if queue.end_waiters > 0 {
            self.shared.call_ended.notify_all();
        }
        Ok(reported)
    }

    /// Queues a state event. Never waits, never refuses. Messages are for [`Dispatch::try_push_message`].
    ///
    /// An undelivered [`Event::LeaderChanged`] without a reliable message behind it is replaced. One with the leader
    /// that the host will know already is dropped: consecutive leaders that the host receives differ.
    ///
    /// [`Event::SlowPeer`] and [`Event::DataDropped`] are reported once for all undelivered ones of a peer, with their
    /// sum, once a second at most, and only within its session.
    ///
    /// Results of `SetLeader`, join requests and announcements are no state. Of undelivered ones the queue keeps only
    /// the newest; of the states of members and of lost locks, the newest of each. An announcement that already waits
    /// is not queued again.
    pub fn push(&self, event: Event) {
        let mut queue = self.shared.lock();
        let yielded = queue.push_event(event);
        self.shared.unlock_and_wake(queue);
        if yielded.is_some() {
            tracing::debug!("the host takes no events; the oldest of a kind gave way to a newer");
        }
    }

    /// The host takes the events of the room's state from `source`, in turn with the others.
    pub(crate) fn set_state(&self, source: Arc<dyn StateSource>) {
        self.shared.lock().set_state(source);
    }

    /// The room's state may have events for the host. They wait where they are until their turn.
    pub(crate) fn push_state(&self) {
        let mut queue = self.shared.lock();
        queue.push_state();
        self.shared.unlock_and_wake(queue);
    }

    /// Queues a message that may be lost, and does not wait for room: if there is none, the oldest such messages are
    /// dropped and counted. The host receives it before `until` or not at all. Without a handler of messages it is
    /// discarded and counted.
    pub fn push_datagram(&self, message: Incoming, until: Option<Instant>) {
        let mut queue = self.shared.lock();
        let given_way = queue.push_datagram(message, until);
        self.shared.unlock_and_wake(queue);
        drop(given_way);
    }

    /// Queues a message if there is room for it now. In the queue it also waits for the first handler.
    ///
    /// If messages are discarded because there is no handler, this counts and discards it.
    ///
    /// # Errors
    /// The message back, when the queue is full.
    pub fn try_push_message(&self, message: Incoming) -> Result<(), Incoming> {
        if self.shared.offer(message, false)? == Wake::Due {
            self.wake();
        }
        Ok(())
    }

    /// Queues a message as soon as there is room for it. Waiting messages are served in the order of their calls.
    ///
    /// Runs on a tokio runtime with time enabled. Cancel-safe: dropping the future before it is ready means
    /// that the message was not queued.
    pub async fn push_message(&self, message: Incoming) {
        if self.push_one_of_many(message).await == Wake::Due {
            self.wake();
        }
    }

    /// [`Dispatch::push_message`] without waking a sleeping dispatcher: the caller must call [`Dispatch::wake`] after
    /// its last message, and before it waits for anything else. Otherwise the dispatcher would wake for the first of
    /// many messages, take the CPU from the thread that brings the others, and sleep again before the next.
    pub(crate) async fn push_one_of_many(&self, message: Incoming) -> Wake {
        // The turn makes waiting fair, and leaves `space` with a single waiter at a time.
        let _turn = self.shared.turn.lock().await;
        let mut message = message;
        loop {
            match self.shared.offer(message, true) {
                Ok(wake) => return wake,
                Err(back) => message = back,
            }
            // The messages that fill the queue may be the ones for which the dispatcher was not woken.
            self.wake();
            let hold_until = self.shared.lock().hold_until();
            let space = self.shared.space.notified();
            match hold_until {
                Some(until) => {
                    // In either case the next offer checks again.
                    let _ = tokio::time::timeout_at(until.into(), space).await;
                }
                None => space.await,
            }
        }
    }

    /// Wakes the dispatcher if it sleeps and has something to do.
    pub(crate) fn wake(&self) {
        self.shared.unlock_and_wake(self.shared.lock());
    }

    /// Whether its thread sleeps.
    #[cfg(test)]
    pub(crate) fn sleeps(&self) -> bool {
        self.shared.lock().consumer_waits
    }

    /// The indices of the peers that the host knows or is about to know.
    pub fn indices(&self) -> &Indices {
        &self.indices
    }

    /// Number of messages discarded because no handler for messages was registered.
    pub fn discarded_messages(&self) -> u64 {
        self.shared.lock().discarded()
    }

    /// Number of messages that wait for their handler, and the bytes of their payloads.
    pub fn queued_messages(&self) -> (usize, usize) {
        self.shared.lock().queued_messages()
    }

    /// Whether the LEFT of `peer` is undelivered: the room does not admit the peer again before that.
    pub fn has_undelivered_left(&self, peer: &PeerId) -> bool {
        self.undelivered(|event| matches!(event, Event::Left(left) if left.peer == *peer)) > 0
    }

    /// Number of undelivered events of that kind.
    pub fn undelivered(&self, is_it: impl Fn(&Event) -> bool) -> usize {
        self.shared.lock().undelivered(is_it)
    }

    /// Sets or removes the handler of a kind. The old one is not running when this returns, unless the caller is inside
    /// it or a callback of another room, and never runs again. The kind decides which events a new handler receives
    /// first. Handlers of one event run in the order of their places.
    pub fn register<K: Kind>(&self, handler: Option<Handler<K>>) {
        let mut queue = self.shared.lock();
        // Dropped without the lock, and after its last call, because that may run code of the host.
        let _old = queue.set::<K>(handler);
        let call = call_elsewhere(&queue, K::PLACE);
        self.shared.unlock_and_wake(queue);
        if K::TAKES_MESSAGES {
            // Messages that waited for the first handler.
            self.shared.space.notify_one();
        }
        // Inside a callback of another room this does not wait, because that room's callback may wait for this one.
        if let Some(number) = call
            && !in_callback()
        {
            self.shared.wait_for_end(self.shared.lock(), number);
        }
    }

    /// [`Dispatch::register`] for a handler of all events that needs no indices of peers.
    pub fn register_event_handler(&self, handler: Option<PlainEventHandler>) {
        self.register::<Everything>(handler.map(|handler| {
            Arc::new(move |reported: Report<'_>| {
                if let Reported::Room(event) = reported.event {
                    handler(event);
                }
            }) as _
        }));
    }

    /// The moment from which the host has taken no events: in poll mode its last poll, else the start of the running
    /// call. `None` while no call runs there, because then nothing waits for the host.
    pub fn host_silent_since(&self) -> Option<Instant> {
        let queue = self.shared.lock();
        match self.mode {
            DispatchMode::Poll => Some(queue.polled_at),
            DispatchMode::Thread => queue.running().map(|call| call.since),
        }
    }

    /// Whether there is an event handler: only such a host receives join requests.
    pub fn has_event_handler(&self) -> bool {
        self.shared.lock().has(Place::Everything)
    }
}

impl Drop for Dispatch {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Dispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatch").finish_non_exhaustive()
    }
}

/// Whether the caller must wake the dispatcher, because it sleeps although it has work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    Due,
    NotNeeded,
}

/// The call of the handler of `place`, if it runs on another thread.
fn call_elsewhere(queue: &Queue, place: Place) -> Option<u64> {
    queue
        .running()
        .filter(|running| {
            running.place == place as usize && running.thread != thread::current().id()
        })
        .map(|running| running.number)
}

/// Whether the calling thread is inside a handler, or inside other code of the host that the library runs. A child that
/// was forked there is not: the handler belongs to its parent's room.
pub fn in_callback() -> bool {
    IN_CALLBACK.try_with(Cell::get).ok().flatten() == Some(fork::generation())
}

/// Runs code of the host; [`in_callback`] is true meanwhile.
pub(crate) fn as_callback<T>(run: impl FnOnce() -> T) -> T {
    struct Restore(Option<u64>);
    impl Drop for Restore {
        fn drop(&mut self) {
            // A thread that is ending does not read it any more.
            let _ = IN_CALLBACK.try_with(|inside| inside.set(self.0));
            if self.0.is_none() {
                lent::take_back();
            }
        }
    }
    let _restore = Restore(
        IN_CALLBACK
            .try_with(|inside| inside.replace(Some(fork::generation())))
            .ok()
            .flatten(),
    );
    run()
}

thread_local! {
    /// The generation of the process in which the thread entered.
    static IN_CALLBACK: Cell<Option<u64>> = const { Cell::new(None) };
}

struct Shared {
    /// The number of the room, or 0.
    room: AtomicU64,
    queue: Mutex<Queue>,
    /// There is a handler to run, or the dispatcher stops.
    work: Condvar,
    /// A handler or a poll has returned, and a thread waits for that.
    call_ended: Condvar,
    /// There may be room for the waiting message; see [`Queue::offer`].
    space: tokio::sync::Notify,
    /// Keeps waiting messages in their order.
    turn: tokio::sync::Mutex<()>,
}

impl Shared {
    fn new(limits: Limits, me: PeerId) -> Self {
        Self {
            room: AtomicU64::new(0),
            queue: Mutex::new(Queue::new(limits, me, Instant::now())),
            work: Condvar::new(),
            call_ended: Condvar::new(),
            space: tokio::sync::Notify::new(),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// The dispatcher thread: one lock per event, taken between two handlers.
    fn run_until_stopped(&self) {
        let mut queue = self.lock();
        loop {
            let Some((locked, ran)) = self.run_one(queue) else {
                fork::end_child();
            };
            queue = locked;
            if queue.is_stopped() {
                return;
            }
            if !ran {
                queue.consumer_waits = true;
                queue = self.wait_for_work(queue);
                queue.consumer_waits = false;
            }
        }
    }

    fn wait_for_work<'a>(&'a self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        match queue.next_due() {
            None => self
                .work
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner),
            Some(due) => {
                let time = due.saturating_duration_since(Instant::now());
                let woken = self.work.wait_timeout(queue, time);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Runs the next handler that has an event, without the lock. Returns whether there was one; `None` in a child that
    /// was forked inside the handler: the queue and its lock belong to the parent.
    fn run_one<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
    ) -> Option<(MutexGuard<'a, Queue>, bool)> {
        let generation = fork::generation();
        let call = queue.next_call(thread::current().id());
        let space = queue.take_space_wanted();
        let Some(call) = call else {
            if space {
                self.space.notify_one();
            }
            return Some((queue, false));
        };
        drop(queue);
        if space {
            self.space.notify_one();
        }
        let before = current_room::set(self.room.load(Ordering::Relaxed));
        run_caught(move || call.run());
        current_room::set(before);
        if fork::generation() != generation {
            return None;
        }
        let mut queue = self.lock();
        queue.end_call();
        if queue.end_waiters > 0 {
            self.call_ended.notify_all();
        }
        Some((queue, true))
    }

    fn wait_for_end(&self, queue: MutexGuard<'_, Queue>, call: u64) {
        let runs = |queue: &Queue| {
            queue
                .running()
                .is_some_and(|running| running.number == call)
        };
        drop(self.wait_while(queue, runs));
    }

    /// Waits for the end of a call or a poll.
    fn wait_while<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
        goes_on: impl Fn(&Queue) -> bool,
    ) -> MutexGuard<'a, Queue> {
        queue.end_waiters += 1;
        while goes_on(&queue) {
            queue = self
                .call_ended
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        queue.end_waiters -= 1;
        queue
    }

    /// Queues a message, and wakes no thread.
    fn offer(&self, message: Incoming, may_wait: bool) -> Result<Wake, Incoming> {
        let mut queue = self.lock();
        match queue.offer(message, may_wait) {
            // A dispatcher that is awake checks the queue again before it sleeps.
            Offer::Queued => match queue.consumer_waits {
                true => Ok(Wake::Due),
                false => Ok(Wake::NotNeeded),
            },
            Offer::Discarded(message) => {
                drop(queue);
                drop(message);
                Ok(Wake::NotNeeded)
            }
            Offer::NoRoom(message) => Err(message),
        }
    }

    fn unlock_and_wake(&self, mut queue: MutexGuard<'_, Queue>) {
        let wake = queue.take_consumer_waits();
        drop(queue);
        if wake {
            self.work.notify_one();
        }
    }

    fn inside_own_call(&self) -> bool {
        let me = thread::current().id();
        self.lock()
            .running()
            .is_some_and(|running| running.thread == me)
    }
}

/// Runs a handler. A panic in it is caught and logged.
pub(crate) fn run_caught(call: impl FnOnce()) {
    // Consumes the call, so that a handler that was replaced meanwhile is dropped before the call counts as ended.
    let outcome = catch_unwind(AssertUnwindSafe(|| as_callback(call)));
    if let Err(panic) = outcome {
        let what = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("unknown");
        tracing::error!("a callback panicked: {what}");
    }
}

/// No code panics while it holds one of these locks; if it did, the data would still be consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
