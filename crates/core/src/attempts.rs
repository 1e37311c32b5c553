//! Dials at addresses that members named, with limits: a member that lies about addresses must not make a room send a
//! third party more than a few packets.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use super::address::ip_of;
use super::bounded::BoundedMap;
use super::time::{Duration, Time};

/// Minimum time between two dials of one address, and of one IP address at which no member has answered yet.
pub const REDIAL_INTERVAL: Duration = Duration::from_secs(2);
/// [`REDIAL_INTERVAL`] between the first two rounds of dials that both ends have agreed on.
const SECOND_ROUND_INTERVAL: Duration = Duration::from_millis(500);
/// Most dials of an IP address at which no member has answered yet. Each is a single packet.
pub const MAX_UNANSWERED: u32 = 4;
/// [`MAX_UNANSWERED`] for an address that a single liar cannot have made up, if most members are honest: the owner and
/// another member name it, or two others do.
pub const MAX_UNANSWERED_IF_CONFIRMED: u32 = 20;
/// Most dials in a row without an answer at an IP address at which a member has answered: others behind the same router
/// may be unreachable.
const MAX_UNANSWERED_BESIDE_A_MEMBER: u32 = 64;
/// Time without a dial after which an IP address is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// Most IP addresses that are remembered; a new one replaces the one with the longest time since its last dial.
const MAX_HOSTS: usize = 1024;

/// The dials at one IP address.
#[derive(Debug, Clone, Copy)]
struct Host {
    has_answered: bool,
    /// Dials since the last answer.
    unanswered: u32,
    /// The last dial or answer.
    last: Time,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            has_answered: false,
            unanswered: 0,
            last: Time::ZERO,
        }
    }
}

/// The dials of the last ten minutes; see the module's text.
#[derive(Debug, Clone, Default)]
pub struct Attempts {
    hosts: BoundedMap<IpAddr, Host, MAX_HOSTS>,
    /// Addresses dialled within [`REDIAL_INTERVAL`].
    recent: BTreeMap<SocketAddr, Time>,
}

impl Attempts {
    /// Forgets what no longer matters.
    pub fn expire(&mut self, now: Time) {
        self.recent.retain(|_, at| now.since(*at) < REDIAL_INTERVAL);
        self.hosts
            .retain(|_, host| now.since(host.last) < FORGET_AFTER);
    }

    /// Whether a member has answered at the IP address of `address`.
    pub fn has_answered(&self, address: SocketAddr) -> bool {
        let host = self.hosts.get(&ip_of(address));
        host.is_some_and(|host| host.has_answered)
    }

    /// Time from which `address` may be dialled, as far as the interval decides. The second round of both ends may follow the
    /// first one sooner: at an IP address at which no member has answered, the first packet must have been the only one.
    pub fn rested_at(&self, address: SocketAddr, is_second_round: bool) -> Option<Time> {
        let host = self.hosts.get(&ip_of(address));
        let is_tried_little = |host: &Host| host.has_answered || host.unanswered <= 1;
        let interval = match is_second_round && host.is_some_and(is_tried_little) {
            true => SECOND_ROUND_INTERVAL,
            false => REDIAL_INTERVAL,
        };
        let host = host
            .filter(|host| !host.has_answered)
            .map(|host| host.last + interval);
        let address = self.recent.get(&address).map(|at| *at + interval);
        host.max(address)
    }

    /// Whether the limits of dials without an answer allow another dial of `address`.
    pub fn has_tries_left(&self, address: SocketAddr, is_confirmed: bool) -> bool {
        self.hosts.get(&ip_of(address)).is_none_or(|host| {
            let most = match host.has_answered {
                true => MAX_UNANSWERED_BESIDE_A_MEMBER,
                false if is_confirmed => MAX_UNANSWERED_IF_CONFIRMED,
                false => MAX_UNANSWERED,
            };
            host.unanswered < most
        })
    }

    /// Records a dial.
    pub fn dialled(&mut self, now: Time, address: SocketAddr) {
        self.recent.insert(address, now);
        let host = self.host(now, address);
        host.unanswered = host.unanswered.saturating_add(1);
    }

    /// Records that a member answered, or dialled from there.
    pub fn answered(&mut self, now: Time, address: SocketAddr) {
        let host = self.host(now, address);
        host.has_answered = true;
        host.unanswered = 0;
    }

    fn host(&mut self, now: Time, address: SocketAddr) -> &mut Host {
        let host = self
            .hosts
            .or_default_over(ip_of(address), |_, host| host.last);
        host.last = now;
        host
    }
}
