//! A port of this network's router that leads to the room: asked for, renewed, and given back.
//!
//! One task asks the default gateway and no other machine, one request at a time. It reports what the router claims; the core
//! compares that with what other members see.

mod announcements;
mod gateway;
mod requests;
// Of the systems, Linux has all of 127.0.0.0/8 on loopback.
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use crab_nat::pcp::Nonce;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use self::announcements::Announcements;
use self::gateway::Gateway;
use self::requests::{Grant, Request};
use crate::core::event::MappingFault;
use crate::core::node::MappingChange;
use crate::net::socket::Bound;

/// Longest wait for the router to take a port back.
pub(crate) const REMOVAL_LIMIT: Duration = Duration::from_millis(200);
/// How often the task looks for another gateway.
const LOOK_INTERVAL: Duration = Duration::from_secs(15);
/// The wait after the first request that failed. It doubles.
const FIRST_WAIT: Duration = Duration::from_secs(60);
/// The longest wait after a request that failed.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);
/// Shortest time between two requests of a port that is granted, however short its lifetime.
const SHORTEST_RENEWAL: Duration = Duration::from_secs(15);
/// Longest request, however slowly the router answers.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// Time from a hint to the request: a router that has just started may not know its own address yet.
const AFTER_A_HINT: Duration = Duration::from_secs(2);
/// Reports that may wait for the network thread.
const QUEUE: usize = 16;

/// Finds the present gateway.
type Find = Box<dyn Fn() -> Option<Gateway> + Send>;

/// The task that holds a port of the router.
pub(crate) struct Mapper {
    end: oneshot::Sender<oneshot::Sender<()>>,
    hint: Arc<Notify>,
}

impl Mapper {
    /// Starts the task, whose reports come out of the queue. It asks soon after each `hint` that the port may be gone.
    pub(crate) fn start(
        bound: Bound,
        hint: Arc<Notify>,
        seed: u64,
    ) -> (Option<Self>, mpsc::Receiver<MappingChange>) {
        let find = Box::new(move || gateway::find(bound.address));
        Self::start_with(bound.port, find, hint, seed)
    }

    fn start_with(
        port: u16,
        find: Find,
        hint: Arc<Notify>,
        seed: u64,
    ) -> (Option<Self>, mpsc::Receiver<MappingChange>) {
        let (news, reports) = mpsc::channel(QUEUE);
        let mapper = NonZeroU16::new(port).map(|port| {
            let (end, ended) = oneshot::channel();
            let task = Task {
                port,
                find,
                hint: Arc::clone(&hint),
                news,
                reported: None,
                held: None,
                asked: None,
                nonce: Nonce::default(),
                failures: 0,
                rng: ChaCha8Rng::seed_from_u64(seed),
            };
            tokio::spawn(task.run(ended));
            Self { end, hint }
        });
        (mapper, reports)
    }

    /// Lets the task ask soon: the port may be gone.
    pub(crate) fn hint(&self) {
        self.hint.notify_one();
    }

    /// Gives the port back. Takes [`REMOVAL_LIMIT`] at most.
    pub(crate) async fn end(self) {
        let (done, is_done) = oneshot::channel();
        if self.end.send(done).is_ok() {
            // However it ends: the router frees the port by itself.
            let _ = timeout(REMOVAL_LIMIT, is_done).await;
        }
    }
}

struct Task {
    port: NonZeroU16,
    find: Find,
    hint: Arc<Notify>,
    news: mpsc::Sender<MappingChange>,
    /// The last report.
    reported: Option<MappingChange>,
    held: Option<Held>,
    /// The request that waits for its answer: the router may have granted it.
    asked: Option<Request>,
    /// Of all requests to the present gateway.
    nonce: Nonce,
    /// Requests in a row that failed.
    failures: u32,
    rng: ChaCha8Rng,
}

/// A port that the router has granted.
struct Held {
    gateway: Gateway,
    grant: Grant,
    since: Instant,
}

impl Held {
    fn ends(&self) -> Instant {
        self.since + self.grant.lifetime
    }
}

impl Task {
    async fn run(mut self, mut ended: oneshot::Receiver<oneshot::Sender<()>>) {
        let done = tokio::select! {
            biased;
            done = &mut ended => done.ok(),
            () = self.hold() => None,
        };
        match (self.held.take(), self.asked) {
            (Some(held), _) => held.grant.remove().await,
            (None, Some(request)) => request.withdraw().await,
            (None, None) => {}
        }
        if let Some(done) = done {
            // The room may have stopped waiting.
            let _ = done.send(());
        }
    }

    /// Asks for a port again and again. Returns when the room reads no reports any more. Cancel safe: `held` and `asked` name
    /// the port to give back.
    async fn hold(&mut self) {
        let mut present = None;
        let mut due = Instant::now();
        let mut asked_at = due;
        // Whether the next request is one that a hint has brought forward: until then further ones are not read.
        let mut is_hinted = false;
        let mut announcements = None;
        loop {
            let found = (self.find)();
            if found != present {
                // Another network: nothing of the one before is known of it.
                present = found;
                self.failures = 0;
                self.nonce = self.rng.random();
                due = Instant::now();
                announcements = found.and_then(Announcements::of);
                self.part_from(found).await;
            }
            if Instant::now() >= due {
                (asked_at, is_hinted) = (Instant::now(), false);
                due = match found {
                    Some(gateway) => self.request(gateway).await,
                    None => self.failed(MappingFault::NoRouter).await,
                };
            }
            if self.news.is_closed() {
                return;
            }
            tokio::select! {
                () = sleep_until(due.min(Instant::now() + LOOK_INTERVAL)) => continue,
                () = self.hint.notified(), if !is_hinted => {}
                () = announced(announcements.as_ref(), found), if !is_hinted => {}
            }
            is_hinted = true;
            let soon = Instant::now() + AFTER_A_HINT;
            due = due.min(soon.max(asked_at + SHORTEST_RENEWAL));
        }
    }

    /// Gives a port of another gateway back, if it can still be reached.
    async fn part_from(&mut self, present: Option<Gateway>) {
        let is_other = |held: &mut Held| Some(held.gateway) != present;
        if let Some(held) = self.held.take_if(is_other) {
            tracing::info!("another router has taken over; the room asks it for a port");
            self.report(MappingChange::Withdrawn).await;
            held.grant.remove().await;
        }
    }

    /// Asks for a port, or for more of its time. Returns when to ask again.
    async fn request(&mut self, gateway: Gateway) -> Instant {
        let request = Request {
            gateway,
            port: self.port,
            nonce: self.nonce,
        };
        self.asked = Some(request);
        let asks = request.ask(self.held.as_ref().map(|held| &held.grant));
        let answer = timeout(REQUEST_LIMIT, asks).await;
        if answer.is_err() && self.held.is_none() {
            request.withdraw().await;
        }
        self.asked = None;
        match answer.unwrap_or(Err(MappingFault::NoAnswer)) {
            Ok(grant) => self.granted(gateway, grant).await,
            Err(fault) => self.failed(fault).await,
        }
    }

    async fn granted(&mut self, gateway: Gateway, grant: Grant) -> Instant {
        let since = Instant::now();
        let renewal = (grant.lifetime / 2).max(SHORTEST_RENEWAL);
        let address = grant.address;
        let epoch = grant.epoch();
        let held = Held {
            gateway,
            grant,
            since,
        };
        if let Some(before) = self.held.replace(held)
            && epoch < before.grant.epoch()
        {
            tracing::info!("the router has restarted since it granted the port");
        }
        self.failures = 0;
        self.report(MappingChange::Claimed(address)).await;
        since + self.jittered(renewal)
    }

    async fn failed(&mut self, fault: MappingFault) -> Instant {
        let now = Instant::now();
        let doublings = self.failures.min(16);
        self.failures += 1;
        let wait = (FIRST_WAIT * (1 << doublings)).min(LONGEST_WAIT);
        let again = now + self.jittered(wait);
        let held = self.held.take_if(|held| {
            // It forwards until then, as it has promised, unless its answer is another one.
            fault != MappingFault::NoAnswer || now >= held.ends()
        });
        if let Some(held) = &self.held {
            return again.min(held.ends());
        }
        self.report(MappingChange::Failed(fault)).await;
        if let Some(held) = held {
            held.grant.remove().await;
        }
        again
    }

    async fn report(&mut self, change: MappingChange) {
        if self.reported.replace(change) != Some(change) {
            // The room is leaving.
            let _ = self.news.send(change).await;
        }
    }

    /// A wait, shortened by up to a quarter, so that members behind one router do not ask at the same time.
    fn jittered(&mut self, wait: Duration) -> Duration {
        wait.mul_f64(self.rng.random_range(0.75..=1.0))
    }
}

/// Waits until the gateway announces itself.
async fn announced(announcements: Option<&Announcements>, gateway: Option<Gateway>) {
    if let (Some(announcements), Some(gateway)) = (announcements, gateway)
        && announcements.next(gateway).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
