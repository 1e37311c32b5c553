//! A port of this network's router that leads to the room: asked for, renewed, and given back.
//!
//! One task asks the default gateway and no other machine, one request at a time. It reports what the router claims; the core
//! compares that with what other members see.

mod gateway;
mod requests;

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use self::gateway::Gateway;
use self::requests::Grant;
use crate::core::event::MappingFault;
use crate::core::node::MappingChange;
use crate::net::socket::Bound;

/// Longest wait for the router to take a port back.
pub(crate) const REMOVAL_LIMIT: Duration = Duration::from_millis(200);
/// How often the task looks for another gateway.
const LOOK_INTERVAL: Duration = Duration::from_secs(15);
/// The wait after the first request that failed. It doubles.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// The longest wait after a request that failed.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);
/// Shortest time between two requests of a port that is granted, however short its lifetime.
const SHORTEST_RENEWAL: Duration = Duration::from_secs(15);
/// Reports that may wait for the network thread.
const QUEUE: usize = 16;

/// Finds the gateway of a socket that is bound to an address.
pub(crate) type Find = fn(Option<IpAddr>) -> Option<Gateway>;

/// The task that holds a port of the router.
pub(crate) struct Mapper {
    end: oneshot::Sender<oneshot::Sender<()>>,
}

impl Mapper {
    /// Starts the task, whose reports come out of the queue.
    pub(crate) fn start(bound: Bound, seed: u64) -> (Option<Self>, mpsc::Receiver<MappingChange>) {
        Self::start_with(bound, seed, gateway::find)
    }

    fn start_with(
        bound: Bound,
        seed: u64,
        find: Find,
    ) -> (Option<Self>, mpsc::Receiver<MappingChange>) {
        let (news, reports) = mpsc::channel(QUEUE);
        let mapper = NonZeroU16::new(bound.port).map(|port| {
            let (end, ended) = oneshot::channel();
            let task = Task {
                address: bound.address,
                port,
                find,
                news,
                reported: None,
                held: None,
                failures: 0,
                rng: ChaCha8Rng::seed_from_u64(seed),
            };
            tokio::spawn(task.run(ended));
            Self { end }
        });
        (mapper, reports)
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
    address: Option<IpAddr>,
    port: NonZeroU16,
    find: Find,
    news: mpsc::Sender<MappingChange>,
    /// The last report.
    reported: Option<MappingChange>,
    held: Option<Held>,
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
            done = &mut ended => done,
            () = self.hold() => return,
        };
        if let Some(held) = self.held.take() {
            held.grant.remove().await;
        }
        if let Ok(done) = done {
            // The room may have stopped waiting.
            let _ = done.send(());
        }
    }

    /// Asks for a port again and again. Returns when the room reads no reports any more. Cancel safe: a granted port is held.
    async fn hold(&mut self) {
        let mut asked = None;
        let mut due = Instant::now();
        loop {
            let found = (self.find)(self.address);
            if found != asked {
                // Another network: nothing of the one before is known of it.
                asked = found;
                self.failures = 0;
                due = Instant::now();
                self.part_from(found).await;
            }
            if Instant::now() >= due {
                due = match found {
                    Some(gateway) => self.request(gateway).await,
                    None => self.failed(MappingFault::NoRouter).await,
                };
            }
            if self.news.is_closed() {
                return;
            }
            sleep_until(due.min(Instant::now() + LOOK_INTERVAL)).await;
        }
    }

    /// Gives a port of another gateway back, if it can still be reached.
    async fn part_from(&mut self, present: Option<Gateway>) {
        let is_other = |held: &mut Held| Some(held.gateway) != present;
        if let Some(held) = self.held.take_if(is_other) {
            tracing::info!("another router has taken over; the room asks it for a port");
            held.grant.remove().await;
        }
    }

    /// Asks for a port, or for more of its time. Returns when to ask again.
    async fn request(&mut self, gateway: Gateway) -> Instant {
        let before = self.held.as_ref().map(|held| &held.grant);
        match Grant::ask(gateway, self.port, before).await {
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
        match &self.held {
            // It forwards until then, as it has promised.
            Some(held) if now < held.ends() => return again.min(held.ends()),
            Some(_) | None => self.held = None,
        }
        self.report(MappingChange::Failed(fault)).await;
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
