//! The mapped address: a router claims to forward packets from it to this node. Others decide whether it does: where most of them
//! see this node, and whether those who were given the address come through.

use std::net::IpAddr;

use super::*;
use crate::address::is_global;
use crate::event::{MappingFault, MappingReport};

/// Time from the first round in which a member dials the mapped address until it counts as unable to use it: the first five
/// rounds are over then.
const COMES_WITHIN: Duration = Duration::from_secs(20);
/// Number of members that cannot use the address from which on it counts as one that does not work. A single one may be what
/// does not work.
const ENOUGH: usize = 2;

/// The mapped address, and the evidence for and against it.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    claimed: Option<SocketAddr>,
    /// Whether others see this node at the claimed IP address. Before that a router that lies would send members elsewhere.
    is_seen: bool,
    /// Whether a member has come through the claimed address.
    is_reached: bool,
    /// The last report to the host.
    reported: Option<MappingReport>,
}

impl Mapping {
    /// The address for other members. One at which a member could not reach this node stays: another one may.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.claimed.filter(|_| self.is_seen)
    }

    /// The address, if nothing speaks against it.
    pub(super) fn working(&self) -> Option<SocketAddr> {
        let fits = |at: &SocketAddr| self.reported == Some(MappingReport::Mapped(*at));
        self.claimed.filter(fits)
    }
}

impl Node {
    /// Handles an answer of the router.
    pub(super) fn mapping_changed(&mut self, now: Time, change: MappingChange) {
        match change {
            MappingChange::Claimed(address) if self.mapping.claimed == Some(address) => {}
            MappingChange::Claimed(address) => {
                self.mapping.claimed = Some(address);
                self.mapping.is_reached = false;
            }
            MappingChange::Withdrawn => self.mapping.claimed = None,
            MappingChange::Failed(fault) => {
                self.mapping.claimed = None;
                self.report_mapping(MappingReport::Failed(fault));
            }
        }
        self.weigh_mapping(now);
        self.send_changed_addresses(now);
    }

    /// Compares what the router claims with what others see.
    pub(super) fn weigh_mapping(&mut self, now: Time) {
        let Some(claimed) = self.mapping.claimed else {
            return;
        };
        let seen = self.is_seen_at(claimed);
        self.mapping.is_seen = seen == Some(true);
        self.mapping.is_reached |= self.has_come_through(claimed);
        let report = match () {
            () if seen == Some(false) => MappingReport::Failed(MappingFault::Elsewhere),
            () if self.mapping.is_reached => MappingReport::Mapped(claimed),
            () if self.is_missed(now, claimed) => MappingReport::Failed(MappingFault::Unreached),
            () => MappingReport::Mapped(claimed),
        };
        self.report_mapping(report);
    }

    fn report_mapping(&mut self, report: MappingReport) {
        if self.mapping.reported.replace(report) != Some(report) {
            self.event(Event::PortMapping(report));
        }
    }

    /// Whether a member dialled the claimed address and linked, and no packet of this node had opened the router for it.
    fn has_come_through(&self, claimed: SocketAddr) -> bool {
        let mut members = self.membership.iter();
        members.any(|(_, member)| {
            let seen = &member.observations;
            let came_alone = seen.came && !seen.has_been_dialled;
            member.path.is_direct() && came_alone && seen.of_me.address == Some(claimed)
        })
    }

    /// Whether others see this node at the claimed IP address: a relay, or more of the members than at any other one. `None` if
    /// none sees it at an address of the internet, or as many at another one.
    fn is_seen_at(&self, claimed: SocketAddr) -> Option<bool> {
        if self.relays.observed().any(|at| at.ip() == claimed.ip()) {
            return Some(true);
        }
        let mut counts = BTreeMap::<IpAddr, usize>::new();
        let is_public = |at: &SocketAddr| at.is_ipv4() && is_global(at.ip());
        for at in self.all_observed().filter(is_public) {
            *counts.entry(at.ip()).or_default() += 1;
        }
        let here = counts.remove(&claimed.ip()).unwrap_or(0);
        let elsewhere = counts.into_values().max().unwrap_or(0);
        (here != elsewhere).then_some(here > elsewhere)
    }

    /// Whether several members have tried the claimed address for long, and have no direct link.
    fn is_missed(&self, now: Time, claimed: SocketAddr) -> bool {
        let members = self.membership.iter();
        let without = members.filter(|(_, member)| {
            !member.path.is_direct() && member.punching.has_tried(now, claimed, COMES_WITHIN)
        });
        without.count() >= ENOUGH
    }
}
