//! The responders of this process: one for each UDP port, which all rooms of that port share.
//!
//! The first room of a port starts its responder, and the last one ends it. A thread of its own runs the responder's life:
//! it registers what rooms announce, follows one search, and passes on to each room what carries the room's tag. It waits
//! for no room. A room whose queue is full misses news, and receives the whole state once it has room again.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mdns_sd::{DaemonEvent, Error, Metrics, Receiver, ResolvedService};
use mdns_sd::{ServiceDaemon, ServiceEvent, ServiceInfo};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::ending::Ending;
use super::{SERVICE, TAG_KEY, VERSION, VERSION_KEY};
use crate::core::bounded::BoundedMap;
use crate::fork::{self, Inherit, PerProcess};

/// News that may wait for a room.
const NEWS_QUEUE: usize = 256;
/// Services remembered for rooms that open later, at most.
const MAX_FOUND: usize = 4096;
/// Announcements that the responder sends at a time: it drops the report of one that follows too many others.
const MAX_ANNOUNCED_AT_ONCE: usize = 16;
/// Interval between these, and between attempts to reach a responder that has too much to do.
const ORDER_PAUSE: Duration = Duration::from_millis(10);
/// Records of other responders in the responder's cache, at most. A sender that fills it floods the network:
/// the responder restarts after a pause.
const MAX_CACHED_RECORDS: usize = 8192;
/// Further records for each room of this process: the cache holds its announcement, too.
const RECORDS_OF_A_ROOM: usize = 16;
/// Timers of records in the responder, at most, with which it counts as flooded, too: one lasts as long as its sender wants,
/// also when its record is gone.
const MAX_TIMERS: usize = 1 << 20;
/// Names that a responder learns before it counts as flooded, too: it forgets none of them.
const MAX_NAMES: usize = 1 << 17;
/// Interval of the check of the cache, and of the attempts to send the state to rooms that have missed news.
const CACHE_CHECK: Duration = Duration::from_secs(1);
/// Checks without an answer after which the responder counts as flooded, too.
const MAX_UNANSWERED_CHECKS: u32 = 5;
/// The first pause; doubles from there.
const FIRST_FLOOD_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause.
const LONGEST_FLOOD_PAUSE: Duration = Duration::from_secs(300);
/// A responder that lasted this long was not flooded: the next pause is the first again.
const CALM: Duration = Duration::from_secs(600);
/// Interval of the check that the port is free, while nothing is announced.
const PORT_CHECK: Duration = Duration::from_secs(5);
/// Wait before browsing again, after the responder has stopped reporting because there was too much to report.
const BROWSE_PAUSE: Duration = Duration::from_secs(10);

/// The responders by port. A forked child has none of its parent's.
static RESPONDERS: PerProcess<Mutex<Responders>> = PerProcess::new(Mutex::new(Responders::new()));

type Responders = BTreeMap<u16, Weak<Responder>>;

impl Inherit for Mutex<Responders> {
    fn inherit(_: &Self) -> Self {
        Self::new(Responders::new())
    }
}

/// News for one room.
pub(super) enum News {
    /// The room's announcement was sent.
    Announced,
    /// A service of the room's tag is announced, or announces something else than before.
    Resolved(Arc<ResolvedService>),
    /// The service with this name is no longer announced, or no longer has the room's tag.
    Gone(String),
    /// The whole state, which replaces everything before.
    State {
        is_announced: bool,
        services: Vec<Arc<ResolvedService>>,
    },
}

/// A room's use of the responder. Dropping it withdraws the room's announcement.
pub(super) struct Subscription {
    name: String,
    news: mpsc::Receiver<News>,
    /// There until the room leaves.
    responder: Option<Arc<Responder>>,
}

impl Subscription {
    /// Announces `service` on the port if `announces`, and reports services of this tag. Starts the responder if no other
    /// room of this process uses the port.
    ///
    /// # Errors
    /// The system's error; no thread is left running then.
    pub(super) fn begin(
        port: u16,
        service: ServiceInfo,
        announces: bool,
        tag: &str,
    ) -> io::Result<Self> {
        let responder = Responder::of(port)?;
        let name = service.get_fullname().to_owned();
        let (sender, news) = mpsc::channel(NEWS_QUEUE);
        let room = Room::new(announces.then_some(service), tag, sender);
        // Fails only if the responder's thread has panicked since: the room then finds nothing.
        let _ = responder.orders.send(Order::Join(name.clone(), room));
        Ok(Self {
            name,
            news,
            responder: Some(responder),
        })
    }

    /// The next news; `None` if no more can follow.
    pub(super) async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }

    /// Withdraws the announcement. Returns the responder's thread if the responder ends with this room.
    pub(super) fn end(mut self) -> Option<ResponderThread> {
        self.leave()
    }

    fn leave(&mut self) -> Option<ResponderThread> {
        let responder = self.responder.take()?;
        let name = std::mem::take(&mut self.name);
        // Fails only if the thread has panicked.
        let _ = responder.orders.send(Order::Leave(name));
        // The thread ends when no room can send it orders.
        Arc::into_inner(responder).map(|responder| responder.thread)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

/// The thread of a responder. Dropping it waits for its end; it ends when no room uses it.
#[must_use = "it may still run"]
pub(crate) struct ResponderThread(Option<JoinHandle<()>>);

impl ResponderThread {
    /// Waits until the responder's threads have ended and its sockets are closed, for about a second at most.
    pub(crate) fn wait(self) {
        drop(self);
    }
}

impl Drop for ResponderThread {
    fn drop(&mut self) {
        // A panic in it is already logged.
        let _ = self.0.take().map(JoinHandle::join);
    }
}

/// A responder's thread, as its rooms share it.
struct Responder {
    /// Needs no limit: each room sends two orders.
    orders: mpsc::UnboundedSender<Order>,
    // After the orders: their end ends the thread.
    thread: ResponderThread,
}

impl Responder {
    /// The responder of this port.
    fn of(port: u16) -> io::Result<Arc<Self>> {
        let responders = RESPONDERS.get().lock();
        let mut responders = responders.unwrap_or_else(PoisonError::into_inner);
        let running = responders.get(&port).and_then(Weak::upgrade);
        if let Some(running) = running.filter(|running| !running.orders.is_closed()) {
            return Ok(running);
        }
        let started = Arc::new(Self::start(port)?);
        responders.retain(|_, other| other.strong_count() > 0);
        responders.insert(port, Arc::downgrade(&started));
        Ok(started)
    }

    fn start(port: u16) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        let (orders, received) = mpsc::unbounded_channel();
        let runner = Runner::new(port, received);
        let thread = thread::Builder::new()
            .name("mmn-discovery".into())
            .spawn(move || {
                fork::enter_own_thread();
                runtime.block_on(runner.run());
            })?;
        Ok(Self {
            orders,
            thread: ResponderThread(Some(thread)),
        })
    }
}

enum Order {
    /// The room whose service has this name.
    Join(String, Room),
    Leave(String),
}

/// A room as its responder sees it.
struct Room {
    /// Its announcement, if it has one.
    service: Option<ServiceInfo>,
    tag: String,
    news: mpsc::Sender<News>,
    is_registered: bool,
    is_announced: bool,
    /// Whether it must receive the whole state, and nothing else until then.
    has_missed: bool,
}

impl Room {
    fn new(service: Option<ServiceInfo>, tag: &str, news: mpsc::Sender<News>) -> Self {
        Self {
            service,
            tag: tag.to_owned(),
            news,
            is_registered: false,
            is_announced: false,
            has_missed: true,
        }
    }

    fn send(&mut self, news: News) {
        if self.has_missed {
            return;
        }
        // A room that is closing takes nothing.
        self.has_missed = matches!(self.news.try_send(news), Err(TrySendError::Full(_)));
    }

    fn catch_up(&mut self, found: &BoundedMap<String, Arc<ResolvedService>, MAX_FOUND>) {
        if !self.has_missed || self.news.capacity() == 0 {
            return;
        }
        let of_the_room = found.values().filter(|service| has_tag(service, &self.tag));
        let services = of_the_room.cloned().collect();
        self.has_missed = false;
        self.send(News::State {
            is_announced: self.is_announced,
            services,
        });
    }
}

fn has_tag(service: &ResolvedService, tag: &str) -> bool {
    let property = |key| service.txt_properties.get_property_val_str(key);
    property(VERSION_KEY) == Some(VERSION) && property(TAG_KEY) == Some(tag)
}

/// The crate's responder, with its one search.
struct Daemon {
    daemon: ServiceDaemon,
    monitor: Receiver<DaemonEvent>,
    events: Receiver<ServiceEvent>,
}

impl Daemon {
    /// Browses. On an error nothing is left running.
    fn start(port: u16) -> Result<Self, Error> {
        let daemon = ServiceDaemon::new_with_port(port)?;
        let begun = daemon
            .monitor()
            .and_then(|monitor| Ok((monitor, daemon.browse(SERVICE)?)));
        match begun {
            Ok((monitor, events)) => Ok(Self {
                daemon,
                monitor,
                events,
            }),
            Err(error) => {
                Ending::of(daemon, None).wait();
                Err(error)
            }
        }
    }

    /// Withdraws all announcements, and waits for the end of its thread.
    fn end(self) {
        Ending::of(self.daemon, Some(self.events)).wait();
    }
}

/// Reason why a responder was given up.
#[derive(Debug)]
enum Over {
    /// The last room has left.
    Left,
    Flooded,
    /// Another program has the port for itself.
    PortTaken,
    Failed(Error),
}

/// State of the responder's thread.
struct Runner {
    port: u16,
    orders: mpsc::UnboundedReceiver<Order>,
    /// By the names of their services.
    rooms: BTreeMap<String, Room>,
    found: BoundedMap<String, Arc<ResolvedService>, MAX_FOUND>,
    /// Number of names that were new.
    names: usize,
    /// Names of the rooms that the responder must announce.
    to_announce: VecDeque<String>,
    /// Names of the rooms that have left, and that it still announces.
    to_withdraw: VecDeque<String>,
}

impl Runner {
    fn new(port: u16, orders: mpsc::UnboundedReceiver<Order>) -> Self {
        Self {
            port,
            orders,
            rooms: BTreeMap::new(),
            found: BoundedMap::default(),
            names: 0,
            to_announce: VecDeque::new(),
            to_withdraw: VecDeque::new(),
        }
    }

    /// Runs one responder after the other until the last room has left.
    async fn run(mut self) {
        let mut flood_pause = FIRST_FLOOD_PAUSE;
        loop {
            let began = Instant::now();
            let over = match Daemon::start(self.port) {
                Ok(mut daemon) => {
                    let over = self.follow(&mut daemon).await;
                    daemon.end();
                    over
                }
                Err(error) => Over::Failed(error),
            };
            if began.elapsed() > CALM {
                flood_pause = FIRST_FLOOD_PAUSE;
            }
            // The finds of a flooded responder may be forged.
            self.begin_anew();
            let port = self.port;
            let pause = match &over {
                Over::Left => return,
                Over::PortTaken => {
                    tracing::warn!(
                        port,
                        seconds = PORT_CHECK.as_secs(),
                        "discovery waits: another program has its UDP port for itself; end that program, or give all members another mdns_port"
                    );
                    PORT_CHECK
                }
                Over::Flooded => {
                    tracing::warn!(
                        limit = self.most_records(),
                        seconds = flood_pause.as_secs(),
                        "discovery pauses: the local network floods it with records"
                    );
                    let pause = flood_pause;
                    flood_pause = (pause * 2).min(LONGEST_FLOOD_PAUSE);
                    pause
                }
                Over::Failed(error) => {
                    tracing::warn!(%error, "discovery does not begin yet");
                    FIRST_FLOOD_PAUSE
                }
            };
            let mut until = Instant::now() + pause;
            loop {
                tokio::select! {
                    order = self.orders.recv() => match order {
                        Some(order) => self.obey(order),
                        None => return,
                    },
                    () = sleep_until(until) => match over {
                        Over::PortTaken if is_taken(port) => until += PORT_CHECK,
                        _ => break,
                    }
                }
            }
            if matches!(over, Over::PortTaken) {
                tracing::info!(port, "discovery has its UDP port");
            }
        }
    }

    async fn follow(&mut self, daemon: &mut Daemon) -> Over {
        let mut unanswered = 0;
        let mut answer: Option<Receiver<Metrics>> = None;
        let mut is_asked = false;
        let mut browse_at = None;
        let mut port_check_at = Instant::now();
        let mut check = interval(CACHE_CHECK);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_behind = self.pass_on(&daemon.daemon);
            let far = || Instant::now() + Duration::from_secs(3600);
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(order) => self.obey(order),
                    None => return Over::Left,
                },
                event = daemon.events.recv_async(), if browse_at.is_none() => match event {
                    Ok(event) => self.learn(event),
                    Err(_) => {
                        tracing::warn!("discovery has found more than it could follow");
                        browse_at = Some(Instant::now() + BROWSE_PAUSE);
                    }
                },
                Ok(event) = daemon.monitor.recv_async() => {
                    if let DaemonEvent::Announce(name, _) = event {
                        self.announced(&name);
                    }
                }
                () = sleep_until(browse_at.unwrap_or_else(far)), if browse_at.is_some() => {
                    browse_at = None;
                    // The new search reports the known services again.
                    self.found.clear();
                    match daemon.daemon.browse(SERVICE) {
                        Ok(events) => daemon.events = events,
                        Err(_) => return Over::Flooded,
                    }
                }
                () = sleep_until(port_check_at) => {
                    // A responder that has announced something has the port; one that only browses does not need it.
                    let has_port = self.rooms.values().any(|room| room.is_announced);
                    if !has_port && is_taken(self.port) {
                        return Over::PortTaken;
                    }
                    port_check_at = Instant::now() + PORT_CHECK;
                }
                metrics = recv(answer.as_ref()), if answer.is_some() => {
                    answer = None;
                    if let Ok(metrics) = metrics {
                        (is_asked, unanswered) = (false, 0);
                        if cached_records(&metrics) > self.most_records()
                            || timers(&metrics) > MAX_TIMERS
                            || self.names > MAX_NAMES
                        {
                            return Over::Flooded;
                        }
                    }
                }
                _ = check.tick() => {
                    unanswered += u32::from(is_asked);
                    if unanswered >= MAX_UNANSWERED_CHECKS {
                        return Over::Flooded;
                    }
                    (is_asked, answer) = (true, daemon.daemon.get_metrics().ok());
                    self.catch_up();
                }
                () = sleep(ORDER_PAUSE), if is_behind => {}
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Join(name, mut room) => {
                room.catch_up(&self.found);
                if room.service.is_some() {
                    self.to_announce.push_back(name.clone());
                }
                self.rooms.insert(name, room);
            }
            Order::Leave(name) => match self.rooms.remove(&name) {
                Some(room) if room.is_registered => self.to_withdraw.push_back(name),
                _ => self.to_announce.retain(|other| *other != name),
            },
        }
    }

    /// Registers and withdraws services. Returns whether some have to wait for a moment.
    fn pass_on(&mut self, daemon: &ServiceDaemon) -> bool {
        while let Some(name) = self.to_withdraw.pop_front() {
            if let Err(Error::Again) = daemon.unregister(&name) {
                self.to_withdraw.push_front(name);
                return true;
            }
        }
        for _ in 0..MAX_ANNOUNCED_AT_ONCE {
            let Some(name) = self.to_announce.pop_front() else {
                return false;
            };
            let Some(room) = self.rooms.get_mut(&name) else {
                continue;
            };
            let Some(service) = room.service.clone() else {
                continue;
            };
            match daemon.register(service) {
                Ok(()) => room.is_registered = true,
                Err(Error::Again) => {
                    self.to_announce.push_front(name);
                    return true;
                }
                Err(error) => tracing::warn!(%error, "a room is not announced"),
            }
        }
        !self.to_announce.is_empty()
    }

    fn learn(&mut self, event: ServiceEvent) {
        match event {
            ServiceEvent::ServiceResolved(service) => {
                let name = &service.fullname;
                let before = self.found.get(name).cloned();
                self.names += usize::from(before.is_none());
                let service = Arc::<ResolvedService>::from(service);
                // Without room, rooms that open later do not find it; the others have limits of their own.
                let _ = self
                    .found
                    .insert(service.fullname.clone(), Arc::clone(&service));
                for room in self.rooms.values_mut() {
                    if has_tag(&service, &room.tag) {
                        room.send(News::Resolved(Arc::clone(&service)));
                    } else if before.as_ref().is_some_and(|it| has_tag(it, &room.tag)) {
                        room.send(News::Gone(service.fullname.clone()));
                    }
                }
            }
            ServiceEvent::ServiceRemoved(_, name) => {
                let before = self.found.remove(&name);
                for room in self.rooms.values_mut() {
                    // One that had no room is unknown here.
                    if before.as_ref().is_none_or(|it| has_tag(it, &room.tag)) {
                        room.send(News::Gone(name.clone()));
                    }
                }
            }
            _ => {}
        }
    }

    /// Sends the state to rooms that have missed news.
    fn catch_up(&mut self) {
        for room in self.rooms.values_mut() {
            room.catch_up(&self.found);
        }
    }

    fn announced(&mut self, name: &str) {
        if let Some(room) = self.rooms.get_mut(name)
            && !room.is_announced
        {
            room.is_announced = true;
            room.send(News::Announced);
        }
    }

    /// The responder has ended: nothing is announced and nothing found.
    fn begin_anew(&mut self) {
        self.found.clear();
        self.names = 0;
        self.to_withdraw.clear();
        self.to_announce.clear();
        for (name, room) in &mut self.rooms {
            if room.service.is_some() {
                self.to_announce.push_back(name.clone());
            }
            (room.is_registered, room.is_announced) = (false, false);
            room.has_missed = true;
        }
        self.catch_up();
    }

    fn most_records(&self) -> usize {
        MAX_CACHED_RECORDS + self.rooms.len() * RECORDS_OF_A_ROOM
    }
}

/// The answer, if one is expected.
async fn recv(answer: Option<&Receiver<Metrics>>) -> Result<Metrics, ()> {
    let answer = answer.ok_or(())?;
    answer.recv_async().await.map_err(|_| ())
}

/// Number of records in the responder's cache.
fn cached_records(metrics: &Metrics) -> usize {
    let of_cache = metrics
        .iter()
        .filter(|(name, _)| name.starts_with("cached-"));
    let cached: i64 = of_cache.map(|(_, count)| count).sum();
    usize::try_from(cached).unwrap_or_default()
}

/// Number of timers in the responder.
fn timers(metrics: &Metrics) -> usize {
    let timers = metrics.get("timer").copied().unwrap_or_default();
    usize::try_from(timers).unwrap_or_default()
}

/// Whether another program has the port without sharing it. The responder opens shared ports, and does not
/// report a port that it fails to open.
fn is_taken(port: u16) -> bool {
    let bound = || -> io::Result<()> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_reuse_address(true)?;
        #[cfg(unix)]
        socket.set_reuse_port(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())
    };
    bound().is_err_and(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        runner: Runner,
        _orders: mpsc::UnboundedSender<Order>,
    }

    impl World {
        fn new() -> Self {
            let (orders, received) = mpsc::unbounded_channel();
            Self {
                runner: Runner::new(0, received),
                _orders: orders,
            }
        }

        fn join(&mut self, name: &str, tag: &str) -> mpsc::Receiver<News> {
            let (sender, news) = mpsc::channel(NEWS_QUEUE);
            let service = service(name, tag);
            let room = Room::new(Some(service), tag, sender);
            self.runner.obey(Order::Join(full(name), room));
            news
        }

        fn resolve(&mut self, name: &str, tag: &str) {
            let found = Box::new(service(name, tag).as_resolved_service());
            self.runner.learn(ServiceEvent::ServiceResolved(found));
        }

        fn remove(&mut self, name: &str) {
            let gone = ServiceEvent::ServiceRemoved(SERVICE.to_owned(), full(name));
            self.runner.learn(gone);
        }
    }

    fn full(name: &str) -> String {
        format!("{name}.{SERVICE}")
    }

    fn service(name: &str, tag: &str) -> ServiceInfo {
        let bound = super::super::Bound {
            address: None,
            port: 1,
        };
        super::super::announcement(name, tag, bound).expect("a service")
    }

    /// The news that have arrived: "announced", "+name", "-name", or the names of a state.
    fn read(news: &mut mpsc::Receiver<News>) -> Vec<String> {
        let short = |name: &str| name.trim_end_matches(&format!(".{SERVICE}")).to_owned();
        let text = |news| match news {
            News::Announced => "announced".to_owned(),
            News::Resolved(service) => format!("+{}", short(&service.fullname)),
            News::Gone(name) => format!("-{}", short(&name)),
            News::State {
                is_announced,
                services,
            } => {
                let names: Vec<_> = services.iter().map(|it| short(&it.fullname)).collect();
                format!("{is_announced}: {}", names.join(" "))
            }
        };
        std::iter::from_fn(|| news.try_recv().ok())
            .map(text)
            .collect()
    }

    #[test]
    fn each_room_receives_what_carries_its_tag() {
        let mut world = World::new();
        let (mut tea, mut coffee) = (world.join("t", "0001"), world.join("c", "0002"));
        world.resolve("t", "0001");
        world.resolve("x", "0001");
        world.resolve("y", "0002");
        world.runner.announced(&full("c"));
        world.runner.announced(&full("c"));
        assert_eq!(read(&mut tea), ["false: ", "+t", "+x"]);
        assert_eq!(read(&mut coffee), ["false: ", "+y", "announced"]);
        // It has another room's tag from now on.
        world.resolve("x", "0002");
        assert_eq!(read(&mut tea), ["-x"]);
        assert_eq!(read(&mut coffee), ["+x"]);
        world.remove("y");
        assert_eq!(read(&mut tea), [""; 0]);
        assert_eq!(read(&mut coffee), ["-y"]);
    }

    #[test]
    fn a_room_that_opens_later_receives_what_was_found_before() {
        let mut world = World::new();
        for (name, tag) in [("a", "0001"), ("b", "0001"), ("c", "0002"), ("d", "0001")] {
            world.resolve(name, tag);
        }
        world.remove("b");
        assert_eq!(read(&mut world.join("late", "0001")), ["false: a d"]);
    }

    #[test]
    fn a_room_that_takes_nothing_receives_the_state_later_and_others_lose_nothing() {
        let mut world = World::new();
        let (mut slow, mut quick) = (world.join("s", "0001"), world.join("q", "0001"));
        world.runner.announced(&full("s"));
        for round in 0..NEWS_QUEUE {
            world.resolve(&format!("m{}", round % 7), "0001");
            assert!(!read(&mut quick).is_empty(), "{round}");
        }
        world.remove("m0");
        assert_eq!(read(&mut quick), ["-m0"]);
        assert_eq!(read(&mut slow).len(), NEWS_QUEUE);
        world.runner.catch_up();
        assert_eq!(read(&mut slow), ["true: m1 m2 m3 m4 m5 m6"]);
        world.resolve("m0", "0001");
        assert_eq!(read(&mut slow), ["+m0"]);
        assert_eq!(read(&mut quick), ["+m0"]);
    }

    #[test]
    fn a_responder_that_begins_anew_announces_all_rooms_and_has_found_nothing() {
        let mut world = World::new();
        let (mut a, _b) = (world.join("a", "0001"), world.join("b", "0001"));
        world.resolve("x", "0001");
        world.runner.announced(&full("a"));
        world.runner.to_announce.clear();
        world.runner.begin_anew();
        assert_eq!(read(&mut a), ["false: ", "+x", "announced", "false: "]);
        assert_eq!(world.runner.to_announce, [full("a"), full("b")]);
        world.runner.obey(Order::Leave(full("a")));
        assert_eq!(world.runner.to_announce, [full("b")]);
        assert_eq!(world.runner.to_withdraw, [""; 0]);
    }

    #[test]
    fn remembered_services_have_a_limit_and_rooms_receive_the_rest() {
        let mut world = World::new();
        for number in 0..MAX_FOUND {
            world.resolve(&format!("m{number}"), "0001");
        }
        let mut room = world.join("r", "0002");
        world.resolve("last", "0002");
        world.remove("last");
        assert_eq!(read(&mut room), ["false: ", "+last", "-last"]);
        assert_eq!(world.runner.found.len(), MAX_FOUND);
    }
}
