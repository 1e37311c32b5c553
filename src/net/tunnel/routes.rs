//! Routes: the carriers through which this node's packets go, for each connection through a tunnel. Pure.
//!
//! quinn sees the other end of a connection at the address of its route, so two connections with one member over two
//! carriers do not disturb each other.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

use crate::core::bounded::BoundedMap;
use crate::core::path::{CarrierKind, RelayNumber};
use crate::core::virtual_address::{VirtualId, address_of, carried_by, id_at};

/// Routes, at most.
pub(super) const MAX_ROUTES: usize = 512;
/// Routes to one target over carriers of one kind, at most.
pub(super) const MAX_ROUTES_OF_ONE: usize = 8;
/// Routes through one carrier without a holder, at most: a member that forges origins removes only routes that came
/// through itself.
pub(super) const MAX_UNHELD_OF_CARRIER: usize = 64;
/// Time after its last use for which a route without a holder exists; up to [`SWEEP_INTERVAL`] longer.
pub(super) const UNHELD_FOR: Duration = Duration::from_secs(10);
/// Shortest time between two searches for routes that nothing uses.
pub(super) const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The link that carries packets of a route: with a relay, or with a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Via {
    /// With that relay.
    Relay(RelayNumber),
    /// With the member of that id.
    Member(VirtualId),
}

impl Via {
    /// Its kind.
    pub(super) fn kind(self) -> CarrierKind {
        match self {
            Self::Relay(_) => CarrierKind::Relay,
            Self::Member(_) => CarrierKind::Member,
        }
    }
}

/// A route: the kind of its carriers, the target, and the number of the route in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RouteId {
    kind: CarrierKind,
    target: VirtualId,
    number: u16,
}

impl RouteId {
    /// The route at a virtual address.
    pub(super) fn at(address: SocketAddr) -> Option<Self> {
        let (kind, target) = (carried_by(address)?, id_at(address)?);
        Some(Self {
            kind,
            target,
            number: address.port(),
        })
    }

    /// Its virtual address.
    pub(super) fn address(self) -> SocketAddr {
        address_of(self.kind, self.target, self.number)
    }

    /// The member to which it leads.
    pub(super) fn target(self) -> VirtualId {
        self.target
    }
}

#[derive(Debug, Clone, Copy)]
struct Route {
    carrier: Option<Via>,
    /// Links, dials and admissions that use it.
    holders: u32,
    used: Instant,
    /// Number of the last use in the table, the order of uses at one time.
    use_number: u64,
}

impl Route {
    fn is_held(&self) -> bool {
        self.holders > 0
    }
}

/// The header form of a QUIC packet (RFC 9000 section 17).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Of a connection that is being set up.
    Long,
    /// Of an established connection.
    Short,
}

impl Form {
    /// The form of a packet.
    pub(super) fn of(packet: &[u8]) -> Self {
        match packet.first() {
            Some(first) if first & 0x80 != 0 => Self::Long,
            _ => Self::Short,
        }
    }
}

/// The routes of a process.
#[derive(Debug)]
pub(super) struct RouteTable {
    routes: BoundedMap<RouteId, Route, MAX_ROUTES>,
    last_number: u16,
    uses: u64,
    next_sweep: Instant,
}

impl RouteTable {
    /// Starts without routes.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            routes: BoundedMap::default(),
            last_number: 0,
            uses: 0,
            next_sweep: now + SWEEP_INTERVAL,
        }
    }

    /// A route to `target` through `carrier`: an existing one, or else a new one if there is room.
    pub(super) fn through(
        &mut self,
        now: Instant,
        target: VirtualId,
        carrier: Via,
    ) -> Option<RouteId> {
        self.sweep(now);
        let existing = self
            .of_target(carrier.kind(), target)
            .filter(|(_, route)| route.carrier == Some(carrier))
            .max_by_key(|(_, route)| (route.is_held(), route.use_number))
            .map(|(id, _)| *id);
        match existing {
            Some(id) => {
                self.touch(now, id);
                Some(id)
            }
            None => self.add(now, target, carrier),
        }
    }

    /// The carrier of a route, if it exists and has one.
    pub(super) fn carrier(&self, id: RouteId) -> Option<Via> {
        self.routes.get(&id)?.carrier
    }

    /// The carrier for a packet that this node sends.
    pub(super) fn send(&mut self, now: Instant, id: RouteId) -> Option<Via> {
        let carrier = self.carrier(id)?;
        self.touch(now, id);
        Some(carrier)
    }

    /// Sets the carrier of a route. A route keeps the kind of its carriers: one of the other kind changes nothing.
    pub(super) fn set_carrier(&mut self, id: RouteId, carrier: Option<Via>) {
        if carrier.is_some_and(|carrier| carrier.kind() != id.kind) {
            return;
        }
        if let Some(route) = self.routes.get_mut(&id) {
            route.carrier = carrier;
            self.trim(carrier);
        }
    }

    /// Adds a holder. Returns false if the route does not exist.
    pub(super) fn hold(&mut self, id: RouteId) -> bool {
        match self.routes.get_mut(&id) {
            Some(route) => {
                route.holders += 1;
                true
            }
            None => false,
        }
    }

    /// Removes a holder.
    pub(super) fn release(&mut self, now: Instant, id: RouteId) {
        let Some(route) = self.routes.get_mut(&id) else {
            return;
        };
        route.holders = route.holders.saturating_sub(1);
        let (carrier, is_held) = (route.carrier, route.is_held());
        if !is_held {
            self.touch(now, id);
            self.trim(carrier);
        }
    }

    /// Whether a route with a holder leads through `carrier`.
    pub(super) fn is_used(&self, carrier: Via) -> bool {
        let mut routes = self.routes.values();
        routes.any(|route| route.is_held() && route.carrier == Some(carrier))
    }

    /// The routes under which quinn gets a packet from `origin` that came through `carrier`. There may be several, since
    /// only quinn knows the connection of a packet; it drops a packet at another address than the connection's. All of
    /// them have carriers of that kind.
    ///
    /// - A packet of an established connection belongs to a route with a holder, whichever of them carried it: the other
    ///   end chooses the way of its packets. It changes no route.
    /// - A packet of a connection that is being set up belongs to a route through that carrier. If there is none, a
    ///   new one is added, so that the answer goes the way that the packet came.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        origin: VirtualId,
        carrier: Via,
        form: Form,
    ) -> impl Iterator<Item = RouteId> + use<> {
        self.sweep(now);
        let mut found = [None; MAX_ROUTES_OF_ONE];
        let of_origin = self.of_target(carrier.kind(), origin);
        let matching = of_origin.filter(|(_, route)| {
            route.carrier == Some(carrier) || form == Form::Short && route.is_held()
        });
        for (slot, (id, route)) in found.iter_mut().zip(matching) {
            *slot = Some((route.is_held(), route.use_number, *id));
        }
        if found[0].is_none() && form == Form::Long {
            let added = self.add(now, origin, carrier);
            found[0] = added.map(|id| (false, 0, id));
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        for (.., id) in found.iter().rev().flatten() {
            self.touch(now, *id);
        }
        found.into_iter().flatten().map(|(.., id)| id)
    }

    fn add(&mut self, now: Instant, target: VirtualId, carrier: Via) -> Option<RouteId> {
        let kind = carrier.kind();
        if self.of_target(kind, target).count() >= MAX_ROUTES_OF_ONE {
            self.remove_oldest(|id, _| (id.kind, id.target) == (kind, target))?;
        }
        if self.routes.len() >= MAX_ROUTES {
            let most = self.carrier_with_most_unheld()?;
            self.remove_oldest(|_, route| route.carrier == most)?;
        }
        let id = self.next_id(kind, target);
        self.uses += 1;
        let route = Route {
            carrier: Some(carrier),
            holders: 0,
            used: now,
            use_number: self.uses,
        };
        self.routes.insert(id, route).ok()?;
        self.trim(Some(carrier));
        Some(id)
    }

    fn next_id(&mut self, kind: CarrierKind, target: VirtualId) -> RouteId {
        loop {
            self.last_number = self.last_number.checked_add(1).unwrap_or(1);
            let id = RouteId {
                kind,
                target,
                number: self.last_number,
            };
            // There are more numbers than routes.
            if !self.routes.contains_key(&id) {
                return id;
            }
        }
    }

    fn touch(&mut self, now: Instant, id: RouteId) {
        self.uses += 1;
        if let Some(route) = self.routes.get_mut(&id) {
            route.used = now;
            route.use_number = self.uses;
        }
    }

    /// Removes routes through one carrier beyond their bound.
    fn trim(&mut self, carrier: Option<Via>) {
        let unheld = |route: &Route| !route.is_held() && route.carrier == carrier;
        while self.routes.values().filter(|route| unheld(route)).count() > MAX_UNHELD_OF_CARRIER {
            self.remove_oldest(|_, route| route.carrier == carrier);
        }
    }

    /// Removes one matching route without a holder: the one whose last use is the oldest.
    fn remove_oldest(&mut self, matches: impl Fn(&RouteId, &Route) -> bool) -> Option<()> {
        let unheld = self.routes.iter().filter(|(_, route)| !route.is_held());
        let oldest = unheld
            .filter(|(id, route)| matches(id, route))
            .min_by_key(|(_, route)| route.use_number);
        let id = *oldest?.0;
        self.routes.remove(&id);
        Some(())
    }

    /// `None` if all routes have holders.
    fn carrier_with_most_unheld(&self) -> Option<Option<Via>> {
        let mut counts = BTreeMap::<_, usize>::new();
        for route in self.routes.values().filter(|route| !route.is_held()) {
            *counts.entry(route.carrier).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(carrier, _)| carrier)
    }

    /// Removes routes without a holder that nothing has used for [`UNHELD_FOR`].
    fn sweep(&mut self, now: Instant) {
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + SWEEP_INTERVAL;
        let is_used = |route: &Route| now.saturating_duration_since(route.used) < UNHELD_FOR;
        self.routes
            .retain(|_, route| route.is_held() || is_used(route));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.routes.len()
    }

    fn of_target(
        &self,
        kind: CarrierKind,
        target: VirtualId,
    ) -> impl Iterator<Item = (&RouteId, &Route)> {
        let end = |number| RouteId {
            kind,
            target,
            number,
        };
        self.routes.range(end(0)..=end(u16::MAX))
    }
}

#[cfg(test)]
mod tests;
