//! Discovery: members of one room discover each other in the local network, by multicast DNS (RFC 6762, RFC 6763).
//!
//! An announcement holds the address where this member accepts links, and 16 bits of a keyed hash of the
//! room's name (of a room with a code: of its locator), by which members recognise their room. Anyone in the network can read and forge
//! announcements. Membership is decided at the admission of the link, as for every other link.
//!
//! The rooms of a process share the [`responder`] of their port. The crate `mdns-sd` runs a thread for each; [`ending`] waits
//! for its end.

mod ending;
mod finds;
mod neighbours;
mod responder;

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hmac::{Hmac, Mac};
use mdns_sd::{IfKind, ResolvedService, ScopedIp, ServiceInfo};
use ring::rand::{SecureRandom, SystemRandom};
use room_transport::rendezvous::Locator;
use sha2::Sha256;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::dial::{Connector, DialRequest, Refused};
use super::progress::Progress;
use super::socket::Bound;
use super::tries::ClosedFor;
use crate::config::DiscoveryMode;
use crate::core::address::is_dialable;
use crate::core::id::PeerId;
use crate::core::id::SessionId;
use crate::error::Code;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use finds::check as check_finds;
use finds::{Dial, Finds, Outcome};
use neighbours::Prefixes;
pub(crate) use responder::ResponderThread;
use responder::{News, Subscription};

/// The service type that members announce and browse.
const SERVICE: &str = "_meta-mystia._udp.local.";
/// The TXT key of the protocol's version.
const VERSION_KEY: &str = "v";
/// The protocol's version, as in [`room_transport::identity::ALPN`].
const VERSION: &str = "7";
/// The TXT key of the room's tag.
const TAG_KEY: &str = "t";
/// Message of the tag's HMAC, whose key is the [`RoomKey`].
const TAG_TEXT: &[u8] = b"mmn mdns";

/// Reason why there is no discovery. The room works without it.
#[derive(Debug, Error)]
pub(crate) enum DiscoveryError {
    /// The system gave no randomness.
    #[error("the system's random generator failed")]
    NoRandomness,
    /// The announcement is not one.
    #[error(transparent)]
    Mdns(#[from] mdns_sd::Error),
    /// The system gave no thread.
    #[error("the responder could not be started: {0}")]
    NoThread(#[from] io::Error),
}

/// Settings of discovery.
pub(crate) struct DiscoveryConfig {
    /// The key of the room's tag.
    pub(crate) room: RoomKey,
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

/// The key of a room's tag.
pub(crate) enum RoomKey {
    /// The room's name.
    Session(SessionId),
    /// The locator of a room with a code, once it is derived: each guess at the code then costs that much, too.
    Locator(watch::Receiver<Option<Locator>>),
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
    task: JoinHandle<Option<ResponderThread>>,
}

impl Discovery {
    /// Announces and browses, in a task of the current runtime and through the responder of the port.
    ///
    /// Without an interface that can multicast, nothing is announced or found until there is one. A room with a code begins
    /// when its locator is derived.
    ///
    /// # Errors
    /// [`DiscoveryError`]; nothing is left running then.
    pub(crate) fn start(
        config: DiscoveryConfig,
        gate: Arc<Connector>,
    ) -> Result<Self, DiscoveryError> {
        let (stop, mut stopped) = oneshot::channel();
        let task = match &config.room {
            RoomKey::Session(session) => {
                let tag = tag(session.as_str().as_bytes());
                let (runner, subscription) = Runner::begin(config, gate, &tag)?;
                tokio::spawn(runner.run(subscription, stopped))
            }
            RoomKey::Locator(locator) => {
                let mut locator = locator.clone();
                tokio::spawn(async move {
                    let derived = tokio::select! {
                        _ = &mut stopped => return None,
                        derived = locator.wait_for(Option::is_some) => (*derived.ok()?)?,
                    };
                    let Locator(number) = derived;
                    let begun = Runner::begin(config, gate, &tag(&number.to_be_bytes()));
                    let (runner, subscription) = begun.inspect_err(no_discovery).ok()?;
                    runner.run(subscription, stopped).await
                })
            }
        };
        Ok(Self { stop, task })
    }

    /// Withdraws the announcement. If the responder ends with this room, the caller waits for the returned thread.
    pub(crate) async fn withdraw(self) -> Option<ResponderThread> {
        // The task may have ended already.
        let _ = self.stop.send(());
        self.task.await.ok().flatten()
    }
}

/// Logs why a room is without discovery.
pub(crate) fn no_discovery(error: &DiscoveryError) {
    tracing::warn!(%error, "no discovery in the local network");
}

/// State of the discovery task.
struct Runner {
    gate: Arc<Connector>,
    bound: Bound,
    mode: DiscoveryMode,
    found: mpsc::Sender<Found>,
    announced: Arc<AtomicBool>,
    finds: Finds,
    dials: JoinSet<(Dial, Outcome, Option<Refused>)>,
}

impl Runner {
    /// Announces and browses, with the room's `tag`.
    fn begin(
        config: DiscoveryConfig,
        gate: Arc<Connector>,
        tag: &str,
    ) -> Result<(Self, Subscription), DiscoveryError> {
        let instance = random_name()?;
        let service = announcement(&instance, tag, config.bound)?;
        let own_name = service.get_fullname().to_owned();
        let subscription = Subscription::begin(config.mdns_port, service, config.announces, tag)?;
        let runner = Self {
            gate,
            bound: config.bound,
            mode: config.mode,
            found: config.found,
            announced: config.announced,
            finds: Finds::new(own_name),
            dials: JoinSet::new(),
        };
        Ok((runner, subscription))
    }

    /// Follows the responder until the room closes.
    async fn run(
        mut self,
        mut subscription: Subscription,
        mut stopped: oneshot::Receiver<()>,
    ) -> Option<ResponderThread> {
        let mut is_over = false;
        loop {
            let dial_at = self.finds.next_dial();
            let far = || Instant::now() + Duration::from_secs(3600);
            tokio::select! {
                _ = &mut stopped => {
                    self.announced.store(false, Ordering::Relaxed);
                    return subscription.end();
                }
                news = subscription.next(), if !is_over => match news {
                    Some(news) => self.learn(news).await,
                    None => is_over = true,
                },
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
            }
        }
    }

    async fn learn(&mut self, news: News) {
        match news {
            News::Announced => {
                self.announced.store(true, Ordering::Relaxed);
                tracing::info!("announced in the local network");
            }
            News::Resolved(service) => self.resolved(&service).await,
            News::Gone(name) => self.finds.gone(&name),
            News::State {
                is_announced,
                services,
            } => {
                self.announced.store(is_announced, Ordering::Relaxed);
                let names: BTreeSet<_> = services.iter().map(|it| &*it.fullname).collect();
                self.finds.keep(|name| names.contains(name));
                for service in &services {
                    self.resolved(service).await;
                }
            }
        }
    }

    async fn resolved(&mut self, service: &ResolvedService) {
        let addresses = self.addresses(service);
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
        let closed = |ip: IpAddr| {
            let closed = tries.closed(ip.into()).into_iter().chain(slow);
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
                            is_hearsay: false,
                            answers_within: None,
                            named_by: None,
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

/// The tag by which members of one room recognise each other; `key` is the [`RoomKey`] as bytes. It reveals next to nothing
/// about the room's name, and nothing about its secret.
pub(crate) fn tag(key: &[u8]) -> String {
    // HMAC takes keys of any length.
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(key) else {
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
        // echo -n "mmn mdns" | openssl dgst -sha256 -hmac tea
        assert_eq!(tag(b"tea"), "db87");
        assert_ne!(tag(b"tea"), tag(b"coffee"));
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
