//! Discovery: members of one room discover each other in the local network, by multicast DNS (RFC 6762, RFC 6763).
//!
//! An announcement holds the address where this member accepts links, and 16 bits of a keyed hash of the
//! room's name, by which members recognise their room. Anyone in the network can read and forge
//! announcements. Membership is decided at the admission of the link, as for every other link.
//!
//! The crate `mdns-sd` runs a thread for each responder; [`ending`] waits for its end.

mod ending;
mod finds;
mod neighbours;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hmac::{Hmac, Mac};
use mdns_sd::{DaemonEvent, IfKind, Receiver, ResolvedService, ScopedIp, ServiceDaemon};
use mdns_sd::{ServiceEvent, ServiceInfo};
use ring::rand::{SecureRandom, SystemRandom};
use sha2::Sha256;
use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::dial::{Connector, DialRequest, Refused};
use super::progress::Progress;
use super::socket::Bound;
use super::tries::ClosedFor;
use crate::config::DiscoveryMode;
use crate::core::id::PeerId;
use crate::core::id::SessionId;
use crate::core::introductions::is_dialable;
use crate::error::Code;
pub(crate) use ending::Ending;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use finds::check as check_finds;
use finds::{Dial, Finds, Outcome};
use neighbours::Prefixes;

/// The service type that members announce and browse.
const SERVICE: &str = "_meta-mystia._udp.local.";
/// The TXT key of the protocol's version.
const VERSION_KEY: &str = "v";
/// The protocol's version, as in [`room_transport::identity::ALPN`].
const VERSION: &str = "7";
/// The TXT key of the room's tag.
const TAG_KEY: &str = "t";
/// Message of the tag's HMAC, whose key is the room's name.
const TAG_TEXT: &[u8] = b"mmn mdns";
/// Records of other responders in the responder's cache, at most. A sender that fills it floods the network:
/// the responder restarts after a pause.
const MAX_CACHED_RECORDS: i64 = 8192;
/// Interval of the check of the cache.
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

/// Reason why there is no discovery. The room works without it.
#[derive(Debug, Error)]
pub(crate) enum DiscoveryError {
    /// The system gave no randomness.
    #[error("the system's random generator failed")]
    NoRandomness,
    /// The responder could not be started.
    #[error(transparent)]
    Mdns(#[from] mdns_sd::Error),
}

/// Settings of discovery.
pub(crate) struct DiscoveryConfig<'a> {
    /// The room.
    pub(crate) session: &'a SessionId,
    /// Addresses that accept links.
    pub(crate) bound: Bound,
    /// The UDP port of the multicast group.
    pub(crate) mdns_port: u16,
    /// Whether to dial members that are found, or to report them.
    pub(crate) mode: DiscoveryMode,
    /// Whether this node accepts links, and so announces itself.
    pub(crate) announces: bool,
    /// Receives reports for the host.
    pub(crate) found: mpsc::Sender<Found>,
    /// Set once an announcement was sent.
    pub(crate) announced: Arc<AtomicBool>,
}

/// A report of discovery.
pub(crate) enum Found {
    /// An address of a member, in report mode.
    Member(SocketAddr),
    /// A dial of a found member has failed.
    Refused(SocketAddr, Refused),
}

/// Discovery that runs. [`Discovery::withdraw`] ends it.
pub(crate) struct Discovery {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Option<Ending>>,
}

impl Discovery {
    /// Announces and browses, in a task of the current runtime and a thread of the responder.
    ///
    /// Without an interface that can multicast, nothing is announced or found until there is one.
    ///
    /// # Errors
    /// [`DiscoveryError`]; nothing is left running then.
    pub(crate) fn start(
        config: DiscoveryConfig<'_>,
        gate: Arc<Connector>,
    ) -> Result<Self, DiscoveryError> {
        let instance = random_name()?;
        let tag = tag(config.session);
        let service = announcement(&instance, &tag, config.bound)?;
        let own_name = service.get_fullname().to_owned();
        let service = Some(service).filter(|_| config.announces);
        let responder = Responder::start(config.mdns_port, service.clone())?;
        let (stop, stopped) = oneshot::channel();
        let runner = Runner {
            service,
            mdns_port: config.mdns_port,
            gate,
            tag,
            bound: config.bound,
            mode: config.mode,
            found: config.found,
            announced: config.announced,
            finds: Finds::new(own_name),
            dials: JoinSet::new(),
        };
        let task = tokio::spawn(runner.run(responder, stopped));
        Ok(Self { stop, task })
    }

    /// Withdraws the announcement and begins to shut down; the caller waits for the returned ending.
    pub(crate) async fn withdraw(self) -> Option<Ending> {
        // The task may have ended already.
        let _ = self.stop.send(());
        self.task.await.ok().flatten()
    }
}

/// The responder and its event queue.
struct Responder {
    daemon: ServiceDaemon,
    monitor: Receiver<DaemonEvent>,
    events: Receiver<ServiceEvent>,
}

impl Responder {
    /// Announces the service, if there is one, and browses. On an error nothing is left running.
    fn start(mdns_port: u16, service: Option<ServiceInfo>) -> Result<Self, mdns_sd::Error> {
        let daemon = ServiceDaemon::new_with_port(mdns_port)?;
        let begun = (|| {
            let monitor = daemon.monitor()?;
            let events = daemon.browse(SERVICE)?;
            if let Some(service) = service {
                daemon.register(service)?;
            }
            Ok((monitor, events))
        })();
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

    fn end(self) -> Ending {
        Ending::of(self.daemon, Some(self.events))
    }
}

/// Reason why a responder was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Stopped,
    Flooded,
    /// Another program has the port for itself.
    PortTaken,
}

/// State of the discovery task.
struct Runner {
    service: Option<ServiceInfo>,
    mdns_port: u16,
    gate: Arc<Connector>,
    tag: String,
    bound: Bound,
    mode: DiscoveryMode,
    found: mpsc::Sender<Found>,
    announced: Arc<AtomicBool>,
    finds: Finds,
    dials: JoinSet<(Dial, Outcome, Option<Refused>)>,
}

impl Runner {
    /// Runs one responder after the other until the room closes; returns the ending of the last.
    async fn run(
        mut self,
        mut responder: Responder,
        mut stopped: oneshot::Receiver<()>,
    ) -> Option<Ending> {
        let mut pause = FIRST_FLOOD_PAUSE;
        loop {
            let began = Instant::now();
            let over = self.follow(&mut responder, &mut stopped).await;
            self.announced.store(false, Ordering::Relaxed);
            if over == Over::Stopped {
                return Some(responder.end());
            }
            if began.elapsed() > CALM {
                pause = FIRST_FLOOD_PAUSE;
            }
            let port = self.mdns_port;
            match over {
                Over::PortTaken => tracing::warn!(
                    port,
                    seconds = PORT_CHECK.as_secs(),
                    "discovery waits: another program has its UDP port for itself; end that program, or give all members another mdns_port"
                ),
                _ => tracing::warn!(
                    limit = MAX_CACHED_RECORDS,
                    seconds = pause.as_secs(),
                    "discovery pauses: the local network floods it with records"
                ),
            }
            // The finds of a flooded responder may be forged. Its thread takes a moment to end; this
            // thread must not block on it.
            self.finds.forget();
            let ended = tokio::task::spawn_blocking(move || responder.end().wait());
            responder = loop {
                tokio::select! {
                    _ = &mut stopped => {
                        // The responder was already asked to end. The wait fails only if the runtime
                        // ends, which waits for it, too.
                        let _ = ended.await;
                        return None;
                    }
                    () = sleep(if over == Over::PortTaken { PORT_CHECK } else { pause }) => {}
                }
                match over {
                    Over::PortTaken if is_taken(port) => continue,
                    Over::PortTaken => tracing::info!(port, "discovery has its UDP port"),
                    _ => pause = (pause * 2).min(LONGEST_FLOOD_PAUSE),
                }
                match Responder::start(self.mdns_port, self.service.clone()) {
                    Ok(responder) => break responder,
                    Err(error) => tracing::warn!(%error, "discovery does not begin anew yet"),
                }
            };
        }
    }

    async fn follow(
        &mut self,
        responder: &mut Responder,
        stopped: &mut oneshot::Receiver<()>,
    ) -> Over {
        let mut unanswered = 0;
        let mut browse_at = None;
        let mut port_check_at = Instant::now();
        let mut check = interval(CACHE_CHECK);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let dial_at = self.finds.next_dial();
            let far = || Instant::now() + Duration::from_secs(3600);
            tokio::select! {
                _ = &mut *stopped => return Over::Stopped,
                event = responder.events.recv_async(), if browse_at.is_none() => match event {
                    Ok(event) => self.resolved(event).await,
                    Err(_) => {
                        tracing::warn!("discovery has found more than it could follow");
                        browse_at = Some(Instant::now() + BROWSE_PAUSE);
                    }
                },
                Ok(event) = responder.monitor.recv_async() => {
                    if matches!(event, DaemonEvent::Announce(..))
                        && !self.announced.swap(true, Ordering::Relaxed)
                    {
                        tracing::info!("announced in the local network");
                    }
                }
                Some(done) = self.dials.join_next() => {
                    if let Ok((dial, outcome, refused)) = done {
                        self.finds.dialled(Instant::now(), &dial, outcome);
                        if let Some(refused) = refused {
                            let refused = Found::Refused(dial.address, refused);
                            // The send fails only while the room closes.
                            let _ = self.found.send(refused).await;
                        }
                    }
                }
                () = sleep_until(dial_at.unwrap_or_else(far)) => self.dial_those_due(),
                () = sleep_until(browse_at.unwrap_or_else(far)), if browse_at.is_some() => {
                    browse_at = None;
                    // The new search reports the known services again.
                    match responder.daemon.browse(SERVICE) {
                        Ok(events) => responder.events = events,
                        Err(_) => return Over::Flooded,
                    }
                }
                () = sleep_until(port_check_at) => {
                    // A responder that has announced itself has the port; one that only browses does not need it.
                    if !self.announced.load(Ordering::Relaxed) && is_taken(self.mdns_port) {
                        return Over::PortTaken;
                    }
                    port_check_at = Instant::now() + PORT_CHECK;
                }
                _ = check.tick() => {
                    match cached_records(&responder.daemon).await {
                        Some(cached) if cached > MAX_CACHED_RECORDS => return Over::Flooded,
                        Some(_) => unanswered = 0,
                        None => unanswered += 1,
                    }
                    if unanswered >= MAX_UNANSWERED_CHECKS {
                        return Over::Flooded;
                    }
                }
            }
        }
    }

    async fn resolved(&mut self, event: ServiceEvent) {
        match event {
            ServiceEvent::ServiceResolved(service) => {
                let addresses = match self.is_of_the_room(&service) {
                    true => self.addresses(&service),
                    // The service may have announced this room before.
                    false => Vec::new(),
                };
                let new = self
                    .finds
                    .resolved(Instant::now(), &service.fullname, addresses);
                for address in new {
                    tracing::info!(%address, "found a member in the local network");
                    if self.mode == DiscoveryMode::Report {
                        // The send fails only while the room closes.
                        let _ = self.found.send(Found::Member(address)).await;
                    }
                }
            }
            ServiceEvent::ServiceRemoved(_, name) => self.finds.gone(&name),
            _ => {}
        }
    }

    fn is_of_the_room(&self, service: &ResolvedService) -> bool {
        let property = |key| service.txt_properties.get_property_val_str(key);
        property(VERSION_KEY) == Some(VERSION) && property(TAG_KEY) == Some(&self.tag)
    }

    /// The addresses of the service to dial, best first. Anyone may announce any address: only neighbours on
    /// the link from which the announcement came are dialled.
    fn addresses(&self, service: &ResolvedService) -> Vec<SocketAddr> {
        let prefixes = Prefixes::of_this_machine();
        let mut addresses: Vec<_> = service
            .addresses
            .iter()
            .filter(|scoped| match scoped {
                ScopedIp::V4(v4) => v4
                    .interface_ids()
                    .iter()
                    .any(|id| prefixes.have(id.index, (*v4.addr()).into())),
                ScopedIp::V6(v6) => prefixes.have(v6.scope_id().index, (*v6.addr()).into()),
                _ => false,
            })
            .map(|scoped| SocketAddr::new(scoped.to_ip_addr(), service.port))
            .filter(|address| is_dialable(*address) && self.bound.reaches(*address))
            .collect();
        addresses.sort_by_key(|address| {
            let ip = address.ip();
            (ip.is_loopback(), ip.is_ipv6(), *address)
        });
        addresses
    }

    fn dial_those_due(&mut self) {
        if self.mode != DiscoveryMode::Connect {
            return self.finds.dial_none();
        }
        let now = Instant::now();
        let tries = Arc::clone(&self.gate.tries_out);
        let slow = tries.slow();
        let closed = |ip| {
            let closed = tries.closed(ip).into_iter().chain(slow);
            closed.map(|ClosedFor(rest)| now + rest).max()
        };
        for dial in self.finds.due(now, closed) {
            let gate = Arc::clone(&self.gate);
            self.dials.spawn(async move {
                let mut failed = None;
                let outcome = match gate.is_linked(&dial.all_addresses).await {
                    true => Outcome::Linked,
                    false => {
                        let progress = Progress::new(gate.handshake_timeout);
                        let request = DialRequest {
                            address: dial.address,
                            expected: None,
                            by_hand: None,
                            progress: &progress,
                            turn: None,
                        };
                        let result = tokio::select! {
                            result = gate.dial(request) => result,
                            () = super::socket::refused(dial.address) => Err(Code::ConnectionFailed.into()),
                        };
                        tracing::debug!(address = %dial.address, ?result, "dialled what was found");
                        failed = result.as_ref().err().cloned();
                        match outcome_of(result.map_err(|refused| refused.code)) {
                            // Another dial was faster.
                            Outcome::LinkedElsewhere if gate.is_linked(&dial.all_addresses).await => {
                                Outcome::Linked
                            }
                            outcome => outcome,
                        }
                    }
                };
                (dial, outcome, failed)
            });
        }
    }
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

/// Number of records in the responder's cache; `None` if it does not answer.
async fn cached_records(daemon: &ServiceDaemon) -> Option<i64> {
    let answer = daemon.get_metrics().ok()?;
    let metrics = timeout(CACHE_CHECK, answer.recv_async()).await.ok()?.ok()?;
    let of_cache = |name: &str| name.starts_with("cached-");
    let cached = metrics.iter().filter(|(name, _)| of_cache(name));
    Some(cached.map(|(_, count)| count).sum())
}

fn outcome_of(result: Result<PeerId, Code>) -> Outcome {
    match result {
        Ok(_) => Outcome::Linked,
        Err(Code::AlreadyConnected) => Outcome::LinkedElsewhere,
        // Another room with the same tag, an unwelcome member, or this node itself: no later dial ends better.
        Err(
            Code::SessionMismatch
            | Code::AuthenticationFailed
            | Code::VersionMismatch
            | Code::PolicyMismatch
            | Code::Rejected
            | Code::InvalidArgument,
        ) => Outcome::Permanent,
        Err(_) => Outcome::Failed,
    }
}

pub(crate) fn announcement(
    instance: &str,
    tag: &str,
    bound: Bound,
) -> Result<ServiceInfo, mdns_sd::Error> {
    let host = format!("{instance}.local.");
    let properties = [(VERSION_KEY, VERSION), (TAG_KEY, tag)];
    let service = |addresses: &[IpAddr]| {
        let port = bound.port;
        ServiceInfo::new(
            SERVICE,
            instance,
            &host,
            addresses,
            port,
            properties.as_slice(),
        )
    };
    let mut service = match bound.address {
        Some(ip) if !ip.is_unspecified() => service(&[ip])?,
        Some(IpAddr::V4(_)) => {
            let mut service = service(&[])?.enable_addr_auto();
            service.set_interfaces(vec![IfKind::IPv4]);
            service
        }
        _ => service(&[])?.enable_addr_auto(),
    };
    // The names are 64 random bits: a probe for conflicts would only take time.
    service.set_requires_probe(false);
    Ok(service)
}

/// The tag by which members of one room recognise each other. It reveals next to nothing about the room's
/// name, and nothing about its secret.
pub(crate) fn tag(session: &SessionId) -> String {
    // HMAC takes keys of any length.
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(session.as_str().as_bytes()) else {
        return String::new();
    };
    let hash = mac.chain_update(TAG_TEXT).finalize().into_bytes();
    format!("{:02x}{:02x}", hash[0], hash[1])
}

/// A random instance name, unique and without information.
fn random_name() -> Result<String, DiscoveryError> {
    let mut bytes = [0; 8];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| DiscoveryError::NoRandomness)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use room_transport::identity::ALPN;

    #[test]
    fn the_announced_version_is_the_protocols() {
        assert_eq!(ALPN, format!("mmn/{VERSION}").as_bytes());
    }

    #[test]
    fn the_tag_is_16_bits_of_the_keyed_hash_of_the_rooms_name() {
        let session = |name: &str| SessionId::new(name).expect("valid");
        // echo -n "mmn mdns" | openssl dgst -sha256 -hmac tea
        assert_eq!(tag(&session("tea")), "db87");
        assert_ne!(tag(&session("tea")), tag(&session("coffee")));
    }

    #[test]
    fn an_announcement_names_neither_the_room_nor_the_member() {
        let bound = Bound {
            address: Some(IpAddr::from([127, 0, 0, 1])),
            port: 4433,
        };
        let instance = random_name().expect("randomness");
        let service = announcement(&instance, "00ff", bound).expect("a service");
        assert_eq!(service.get_fullname(), format!("{instance}.{SERVICE}"));
        assert_eq!(service.get_port(), 4433);
        assert_eq!(service.get_property_val_str("v"), Some(VERSION));
        assert_eq!(service.get_property_val_str("t"), Some("00ff"));
        assert_eq!(service.get_properties().iter().count(), 2);
        assert_ne!(random_name().expect("randomness"), instance);
    }
}
