//! Requests to a router: PCP, and NAT-PMP where the router does not know that.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Duration;

use crab_nat::{
    InternetProtocol, MappingFailure, PortMapping, PortMappingOptions, PortMappingType,
    TimeoutConfig, natpmp, pcp,
};

use super::gateway::Gateway;
use crate::core::address::is_global;
use crate::core::event::MappingFault;

/// The lifetime asked of the router: its port is free again so long after a process that could not close the room.
pub(super) const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// A port that ends sooner is none: the room could not renew it in time.
const SHORTEST_LIFETIME: Duration = super::SHORTEST_RENEWAL.saturating_mul(2);
/// A packet is sent twice to a router that does not answer, and waited for this long in all.
const TIMEOUTS: TimeoutConfig = TimeoutConfig {
    initial_timeout: Duration::from_millis(500),
    max_retries: 1,
    max_retry_timeout: None,
};
/// For a removal: the room does not wait.
const ONCE: TimeoutConfig = TimeoutConfig {
    initial_timeout: super::REMOVAL_LIMIT,
    max_retries: 0,
    max_retry_timeout: None,
};

/// Asks for a port of that router which leads to that one of this machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) gateway: Gateway,
    pub(super) port: NonZeroU16,
    /// Shows a router that speaks PCP whose the port is: without it none is renewed or given back.
    pub(super) nonce: pcp::Nonce,
}

/// A port of the router, as it claims.
#[derive(Debug)]
pub(super) struct Grant {
    mapping: PortMapping,
    pub(super) address: SocketAddr,
    /// How long it forwards packets.
    pub(super) lifetime: Duration,
}

impl Request {
    /// Asks for a port, or for more time of the one of `before`, as that one was asked for: two ways could leave two ports open.
    pub(super) async fn ask(self, before: Option<&Grant>) -> Result<Grant, MappingFault> {
        let before = before.map(|before| &before.mapping);
        let external_port = before.map(PortMapping::external_port);
        let options = PortMappingOptions {
            external_port: external_port.or(Some(self.port)),
            lifetime_seconds: u32::try_from(LIFETIME.as_secs()).ok(),
            timeout_config: Some(TIMEOUTS),
        };
        match before.map(PortMapping::mapping_type) {
            Some(PortMappingType::NatPmp) => self.ask_by_natpmp(options).await,
            Some(PortMappingType::Pcp { .. }) => {
                let asked = self.ask_by_pcp(options).await;
                asked.map_err(|error| fault_of(&error.into()))?
            }
            None => match self.ask_by_pcp(options).await {
                Ok(answered) => answered,
                // Some routers do not answer to a version that they do not know.
                Err(pcp::Failure::UnsupportedVersion(_) | pcp::Failure::Timeout) => {
                    self.ask_by_natpmp(options).await
                }
                Err(error) => Err(fault_of(&error.into())),
            },
        }
    }

    async fn ask_by_pcp(
        self,
        options: PortMappingOptions,
    ) -> Result<Result<Grant, MappingFault>, pcp::Failure> {
        let request = pcp::BaseMapRequest::new(
            self.gateway.address.into(),
            self.gateway.client.into(),
            InternetProtocol::Udp,
            self.port,
        );
        let mapping = pcp::port_mapping(request, Some(self.nonce), None, options).await?;
        Ok(match mapping.mapping_type() {
            PortMappingType::Pcp { external_ip, .. } => Grant::new(mapping, external_ip).await,
            PortMappingType::NatPmp => Err(MappingFault::Malformed),
        })
    }

    async fn ask_by_natpmp(self, options: PortMappingOptions) -> Result<Grant, MappingFault> {
        let its = self.gateway.address.into();
        let fault = |error: natpmp::Failure| fault_of(&error.into());
        let external = natpmp::external_address(its, Some(TIMEOUTS)).await;
        let external = external.map_err(fault)?;
        // It would take the port for nothing.
        check(external)?;
        let mapping = natpmp::port_mapping(its, InternetProtocol::Udp, self.port, options).await;
        Grant::new(mapping.map_err(fault)?, external.into()).await
    }

    /// Gives back what the router may have granted: its answer has not come.
    pub(super) async fn withdraw(self) {
        let its = self.gateway.address.into();
        let protocol = InternetProtocol::Udp;
        let range = pcp::DropMappingRange::Single {
            protocol,
            internal_port: self.port,
        };
        let client = self.gateway.client.into();
        let _ = tokio::join!(
            pcp::try_drop_mapping(its, client, self.nonce, range, Some(ONCE)),
            natpmp::try_drop_mapping(its, protocol, Some(self.port), Some(ONCE)),
        );
    }
}

impl Grant {
    /// The grant, if it makes sense; else the port is given back.
    async fn new(mapping: PortMapping, external: IpAddr) -> Result<Self, MappingFault> {
        let (port, lifetime) = (mapping.external_port(), mapping.lifetime());
        let lifetime = Duration::from_secs(lifetime.into());
        let checked = match external.to_canonical() {
            IpAddr::V4(_) if lifetime < SHORTEST_LIFETIME => Err(MappingFault::Malformed),
            IpAddr::V4(external) => check(external).map(|()| external),
            IpAddr::V6(_) => Err(MappingFault::Malformed),
        };
        match checked {
            Ok(external) => Ok(Self {
                mapping,
                address: SocketAddr::from((external, port.get())),
                lifetime: lifetime.min(LIFETIME),
            }),
            Err(fault) => {
                remove(mapping).await;
                Err(fault)
            }
        }
    }

    /// The router's clock when it answered, in seconds since its start.
    pub(super) fn epoch(&self) -> u32 {
        self.mapping.gateway_epoch()
    }

    /// Gives the port back. The router frees it in the end even without that.
    pub(super) async fn remove(self) {
        remove(self.mapping).await;
    }
}

async fn remove(mut mapping: PortMapping) {
    mapping.timeout_config = ONCE;
    if let Err((error, _)) = mapping.try_drop().await {
        tracing::debug!(%error, "the router has not confirmed that its port is free");
    }
}

/// Whether a router can have that address on the internet.
fn check(external: Ipv4Addr) -> Result<(), MappingFault> {
    let [a, b, c, _] = external.octets();
    // RFC 6890: for protocols, for documents, and for measurements.
    let is_reserved = matches!(
        (a, b, c),
        (192, 0, 0 | 2) | (198, 51, 100) | (203, 0, 113) | (198, 18 | 19, _)
    );
    // From 224 on they are groups, and for later.
    let is_of_a_machine = (1..224).contains(&a) && !external.is_loopback();
    match is_of_a_machine && !is_reserved {
        false => Err(MappingFault::Malformed),
        true if is_global(external.into()) => Ok(()),
        true => Err(MappingFault::NotPublic),
    }
}

fn fault_of(error: &MappingFailure) -> MappingFault {
    tracing::debug!(%error, "the router gives no port");
    match error {
        MappingFailure::NatPmp(error) => match error {
            natpmp::Failure::Socket(_) | natpmp::Failure::Timeout => MappingFault::NoAnswer,
            natpmp::Failure::InvalidResponse(_) => MappingFault::Malformed,
            _ => MappingFault::Refused,
        },
        MappingFailure::Pcp(error) => match error {
            pcp::Failure::Socket(_) | pcp::Failure::Timeout => MappingFault::NoAnswer,
            pcp::Failure::InvalidResponse(_) | pcp::Failure::Nonce => MappingFault::Malformed,
            _ => MappingFault::Refused,
        },
    }
}
