//! The state that all links share: the rooms and the limits.

use std::collections::HashMap;
use std::fmt::Arguments;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use quinn::Connection;
use room_core::virtual_address::VirtualId;
use room_transport::token::TokenKey;
use room_transport::tunnel::leg::{Backlog, Counters as LegCounters, Departures, Leg};
use room_transport::tunnel::packet::Way;
use room_transport::tunnel::shaper::{Rate, Shaper};
use tokio::sync::Notify;
use tokio::time::{Instant, interval};

use crate::ending::{End, Ending};
use crate::figures::{Counters, Drop, Figures, Now, Refusal};
use crate::files;
use crate::limiter::{Account, Allowance, Limiter};
use crate::log::{Level, log};
use crate::networks::{LinkNumber, Networks, NoPlace, Site};
use crate::quota::Quota;
use crate::rooms::{self, Entered, Entry, NoRoute, Refused, Rooms};
use crate::uplink::Packet;

/// Bytes that wait in all queues together, at most.
pub(crate) const MAX_BACKLOG_BYTES: usize = 64 << 20;
/// Handshakes of one site. The burst is what a carrier's NAT needs when the relay has been restarted.
const HANDSHAKES: Allowance = Allowance {
    burst: 256,
    within: Duration::from_secs(16),
};
/// Failed entries of one site.
const FAILURES: Allowance = Allowance {
    burst: 5,
    within: Duration::from_secs(60),
};
/// Wrong tokens of all.
const WRONG_TOKENS: Allowance = Allowance {
    burst: 100,
    within: Duration::from_secs(60),
};
/// Minimum time between two searches for old packets in all legs.
const DROP_OLD_INTERVAL: Duration = Duration::from_millis(50);
/// How often the traffic is counted against the quota.
const QUOTA_INTERVAL: Duration = Duration::from_secs(1);
/// How often its use goes to the disk.
const KEEP_INTERVAL: Duration = Duration::from_secs(300);

/// A member's link.
#[derive(Debug)]
pub(crate) struct MemberLink {
    pub(crate) leg: Arc<Leg>,
    pub(crate) frames: Notify,
    pub(crate) ending: Arc<Ending>,
}

impl rooms::Link for MemberLink {
    fn wake(&self) {
        self.frames.notify_one();
    }

    fn drop_waiting(&self, origin: VirtualId) {
        self.leg.clear(origin);
    }
}

/// The part that changes with each link.
#[derive(Debug)]
struct State {
    rooms: Rooms<MemberLink>,
    networks: Networks,
    endings: HashMap<LinkNumber, Arc<Ending>>,
    numbers: u64,
    handshakes: Limiter,
    failures: Limiter,
    wrong_tokens: Account,
    dropped_old_at: Instant,
    quota: Option<Quota>,
}

/// Limits and the token of a relay.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) token: Option<TokenKey>,
    pub(crate) rate: Rate,
    pub(crate) total: Rate,
    pub(crate) max_links: usize,
    pub(crate) backlog_bytes: usize,
    pub(crate) quota: Option<Quota>,
    pub(crate) log: Option<Level>,
}

/// All of a relay but its socket.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) rate: Rate,
    pub(crate) shaper: Arc<Shaper>,
    pub(crate) departures: Arc<Departures>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) leg_counters: Arc<LegCounters>,
    pub(crate) backlog: Arc<Backlog>,
    token: Option<TokenKey>,
    log: Option<Level>,
    state: Mutex<State>,
}

/// A link that has a place.
pub(crate) struct Place {
    pub(crate) server: Arc<Server>,
    pub(crate) number: LinkNumber,
    pub(crate) ending: Arc<Ending>,
    /// Whether its site failed too often, so it has less time.
    pub(crate) is_suspect: bool,
}

impl std::ops::Drop for Place {
    fn drop(&mut self) {
        let mut state = self.server.state();
        state.rooms.leave(self.number);
        state.networks.remove(self.number);
        state.endings.remove(&self.number);
    }
}

impl Server {
    pub(crate) fn new(limits: Limits) -> Self {
        let now = Instant::now().into_std();
        Self {
            rate: limits.rate,
            shaper: Arc::new(Shaper::new(limits.total)),
            departures: Arc::default(),
            counters: Arc::default(),
            leg_counters: Arc::default(),
            backlog: Arc::new(Backlog::new(limits.backlog_bytes)),
            token: limits.token,
            log: limits.log,
            state: Mutex::new(State {
                rooms: Rooms::default(),
                networks: Networks::new(limits.max_links),
                endings: HashMap::new(),
                numbers: 0,
                handshakes: Limiter::new(HANDSHAKES),
                failures: Limiter::new(FAILURES),
                wrong_tokens: Account::new(now),
                dropped_old_at: Instant::now(),
                quota: limits.quota,
            }),
        }
    }

    /// A place for a dial from `address`, at which another link may have to make way.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn place(self: &Arc<Self>, address: IpAddr) -> Result<Place, Refusal> {
        let site = Site::of(address);
        let now = Instant::now().into_std();
        let mut state = self.state();
        if !state.handshakes.take(now, site) {
            return Err(Refusal::Handshakes);
        }
        state.numbers += 1;
        let number = LinkNumber(state.numbers);
        let yields = state.networks.add(number, address);
        let yields = yields.map_err(|no_place| match no_place {
            NoPlace::Network => Refusal::Network,
            NoPlace::Relay => Refusal::Relay,
        })?;
        if let Some(yields) = yields {
            state.networks.remove(yields);
            if let Some(ending) = state.endings.get(&yields) {
                self.counters.refuse(Refusal::Yielded);
                ending.decide(End::Refused(Refusal::Yielded));
            }
        }
        let ending = Arc::<Ending>::default();
        state.endings.insert(number, Arc::clone(&ending));
        let is_suspect = !state.failures.has(now, site);
        drop(state);
        Ok(Place {
            server: Arc::clone(self),
            number,
            ending,
            is_suspect,
        })
    }

    /// An entry, once its frame is complete.
    pub(crate) fn enter(
        &self,
        connection: &Connection,
        entry: Entry,
        proof: Option<[u8; 32]>,
        link: Arc<MemberLink>,
    ) -> Result<Entered<MemberLink>, End> {
        let now = Instant::now().into_std();
        let proves = self.proves(connection, proof);
        let mut state = self.state();
        // The right token enters whatever others at its address, or anywhere, have failed at.
        if !proves {
            let is_allowed = state.failures.take(now, Site::of(entry.address));
            let is_allowed = state.wrong_tokens.take(now, WRONG_TOKENS) && is_allowed;
            return Err(match is_allowed {
                true => End::Refused(Refusal::Token),
                false => End::TooManyFailures,
            });
        }
        if state.quota.as_ref().is_some_and(Quota::is_used_up) {
            return Err(End::Refused(Refusal::Quota));
        }
        let entered = state.rooms.enter(now, entry, link);
        let entered = entered.map_err(|refused| match refused {
            Refused::Full => End::Refused(Refusal::Locator),
            Refused::SameId => End::SameId,
        })?;
        if let Some(older) = &entered.replaced {
            older.ending.decide(End::Replaced);
        }
        if let Some(yielded) = &entered.yielded {
            self.counters.refuse(Refusal::Yielded);
            yielded.ending.decide(End::Refused(Refusal::Yielded));
        }
        Ok(entered)
    }

    fn proves(&self, connection: &Connection, proof: Option<[u8; 32]>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        proof.is_some_and(|proof| token.is_proved(connection, &proof))
    }

    /// An entry from `site` failed for another reason than its token.
    pub(crate) fn failed(&self, site: Site) {
        let now = Instant::now().into_std();
        self.state().failures.take(now, site);
    }

    /// Sends a packet of `sender` on to `target`.
    pub(crate) fn forward(&self, sender: LinkNumber, target: VirtualId, packet: Packet) {
        let now = Instant::now().into_std();
        let route = self.state().rooms.route(now, sender, target);
        let (link, origin) = match route {
            Ok(route) => route,
            Err(no_route) => {
                let reason = match no_route {
                    NoRoute::Absent => Drop::Absent,
                    NoRoute::Blocked => Drop::Blocked,
                };
                return self.counters.drop_packets(reason, 1);
            }
        };
        let Packet { piece, held } = packet;
        let dropped = link.leg.push_held(Way::From(origin), piece, Some(held));
        self.counters.drop_packets(Drop::Queue, dropped);
    }

    /// Drops what has waited too long in any leg, as all queues together are full. So members that take nothing leave room for
    /// the others.
    pub(crate) fn drop_old(&self) {
        let mut state = self.state();
        if state.dropped_old_at.elapsed() < DROP_OLD_INTERVAL {
            return;
        }
        state.dropped_old_at = Instant::now();
        let dropped = state.rooms.links().map(|link| link.leg.drop_old()).sum();
        drop(state);
        self.counters.drop_packets(Drop::Queue, dropped);
    }

    /// A link is at another address from now on.
    pub(crate) fn moved(&self, number: LinkNumber, address: SocketAddr) {
        let mut state = self.state();
        state.networks.moved(number, address.ip());
        state.rooms.moved(number, address);
    }

    /// The rooms, for one step.
    pub(crate) fn with_rooms<T>(&self, step: impl FnOnce(&mut Rooms<MemberLink>) -> T) -> T {
        step(&mut self.state().rooms)
    }

    /// Counts the traffic against the quota, and ends all links once it is used up.
    pub(crate) async fn watch_quota(self: Arc<Self>, file: Option<PathBuf>) {
        let mut ticks = interval(QUOTA_INTERVAL);
        let (mut counted, mut kept_at) = (0, Instant::now());
        loop {
            ticks.tick().await;
            let traffic = self.counters.traffic();
            let mut state = self.state();
            let Some(quota) = &mut state.quota else {
                return;
            };
            let was_used_up = quota.is_used_up();
            quota.spend(SystemTime::now(), traffic - counted);
            counted = traffic;
            let ends = quota.is_used_up() && !was_used_up;
            let endings: Vec<_> = match ends {
                true => state.endings.values().map(Arc::clone).collect(),
                false => Vec::new(),
            };
            drop(state);
            if ends {
                let line = "the quota is used up for now; all links end";
                self.log(Level::Warn, format_args!("{line}"));
            }
            for ending in endings {
                self.counters.refuse(Refusal::Quota);
                ending.decide(End::Refused(Refusal::Quota));
            }
            if kept_at.elapsed() >= KEEP_INTERVAL {
                kept_at = Instant::now();
                self.keep_quota(file.as_ref());
            }
        }
    }

    /// Writes the use of the quota to the file that keeps it.
    pub(crate) fn keep_quota(&self, file: Option<&PathBuf>) {
        let used = self.state().quota.as_ref().map(Quota::used);
        let (Some(used), Some(file)) = (used, file) else {
            return;
        };
        if let Err(error) = files::write_used(file, used) {
            let path = file.display();
            let line = "cannot keep the use of the quota in";
            self.log(Level::Warn, format_args!("{line} {path}: {error}"));
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        let state = self.state();
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        let now = Now {
            links: state.networks.len(),
            members: state.rooms.members(),
            rooms: state.rooms.rooms(),
            waiting_bytes: self.backlog.bytes(),
            forwarded: self.leg_counters.forwarded.load(relaxed),
            dropped: self.leg_counters.dropped.load(relaxed),
            quota: state.quota.as_ref().map(Quota::figures),
        };
        drop(state);
        self.counters.figures(now)
    }

    pub(crate) fn log(&self, level: Level, line: Arguments<'_>) {
        log(self.log, level, line);
    }

    /// Nothing panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use room_core::id::Fingerprint;
    use room_core::virtual_address::virtual_id;
    use room_transport::rendezvous::Locator;
    use room_transport::tunnel::packet::{HEADER_BYTES, Header, Part, encode};

    use super::*;
    use crate::uplink::Uplink;

    const PACKET_BYTES: usize = 1000;

    /// Two members of a room, whose links take nothing.
    fn pair(server: &Server, room: u8) -> (LinkNumber, VirtualId, Arc<MemberLink>) {
        let mut entered = Vec::new();
        for number in [2 * u64::from(room), 2 * u64::from(room) + 1] {
            let link = Arc::new(MemberLink {
                leg: Arc::new(Leg::of_a_relay(Rate::Unlimited)),
                frames: Notify::new(),
                ending: Arc::default(),
            });
            let entry = Entry {
                link: LinkNumber(number),
                locator: Locator(u32::from(room)),
                key: Fingerprint([number as u8; 32]),
                address: IpAddr::from([127, 0, 0, room]),
                hidden: false,
            };
            let now = Instant::now().into_std();
            let outcome = server.with_rooms(|rooms| rooms.enter(now, entry, Arc::clone(&link)));
            assert!(outcome.is_ok());
            entered.push((entry, link));
        }
        let (receiver, link) = entered.remove(1);
        (entered[0].0.link, virtual_id(receiver.key), link)
    }

    /// Sends as [`link`](crate::link) does; returns how many packets the backlog refused.
    fn send(server: &Server, sender: LinkNumber, target: VirtualId, count: usize) -> usize {
        let mut uplink = Uplink::new(Rate::Unlimited, Arc::clone(&server.backlog));
        let mut refused = 0;
        for _ in 0..count {
            let header = Header {
                way: Way::To(target),
                part: Part::Whole,
                number: 0,
            };
            let packet = encode(header, &[0; PACKET_BYTES - HEADER_BYTES]);
            let now = Instant::now();
            if uplink.take(now, Bytes::clone(&packet)) == Some(Drop::Backlog) {
                refused += 1;
                server.drop_old();
            }
            while let Some((target, packet)) = uplink.next(now) {
                server.forward(sender, target, packet);
            }
        }
        refused
    }

    #[tokio::test(start_paused = true)]
    async fn members_that_take_nothing_fill_the_backlog_for_no_longer_than_packets_may_wait() {
        let server = Server::new(Limits {
            token: None,
            rate: Rate::Unlimited,
            total: Rate::Unlimited,
            max_links: 100,
            backlog_bytes: 200 * PACKET_BYTES,
            quota: None,
            log: None,
        });
        let mut hostile = Vec::new();
        for room in 1..=3 {
            let (sender, target, link) = pair(&server, room);
            send(&server, sender, target, 128);
            hostile.push(link);
        }
        let (sender, target, link) = pair(&server, 9);
        assert_eq!(send(&server, sender, target, 1), 1);
        assert!(server.backlog.bytes() <= 200 * PACKET_BYTES);
        tokio::time::advance(room_transport::tunnel::leg::MAX_AGE).await;
        // The first one makes room, and is itself lost to that.
        assert_eq!(send(&server, sender, target, 20), 1);
        assert_eq!(link.leg.waiting(), 19);
        assert!(hostile.iter().all(|link| link.leg.waiting() == 0));
    }
}
