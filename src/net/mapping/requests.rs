//! Requests to a router: PCP, and NAT-PMP where the router does not know that.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Duration;

use crab_nat::{
    InternetProtocol, MappingFailure, PortMapping, PortMappingOptions, PortMappingType,
    TimeoutConfig, natpmp, pcp,
};

#[cfg(feature = "upnp")]
use tokio::time::timeout;

use super::gateway::Gateway;
#[cfg(feature = "upnp")]
use super::upnp::Forwarded;
use crate::core::address::is_global;
use crate::core::event::MappingFault;

/// The lifetime asked of the router: its port is free again so long after a process that could not close the room.
pub(super) const LIFETIME: Duration = Duration::from_secs(10 * 60);
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

/// A port of the router, as it claims.
#[derive(Debug)]
pub(super) struct Grant {
    way: Way,
    gateway: Gateway,
    pub(super) address: SocketAddr,
    /// How long it forwards packets.
    pub(super) lifetime: Duration,
}

/// How it was asked for.
#[derive(Debug)]
enum Way {
    /// By PCP or NAT-PMP.
    Pcp(PortMapping),
    #[cfg(feature = "upnp")]
    Upnp(Forwarded),
}

impl Grant {
    /// The router's clock when it answered, in seconds since its start, if it has one.
    pub(super) fn epoch(&self) -> Option<u32> {
        match &self.way {
            Way::Pcp(mapping) => Some(mapping.gateway_epoch()),
            #[cfg(feature = "upnp")]
            Way::Upnp(_) => None,
        }
    }

    /// Asks for a port of the router that leads to `port`, the one of `before` if possible.
    pub(super) async fn ask(
        gateway: Gateway,
        port: NonZeroU16,
        before: Option<&Self>,
    ) -> Result<Self, MappingFault> {
        let before = before.filter(|before| before.gateway == gateway);
        #[cfg(feature = "upnp")]
        if let Some(Way::Upnp(forwarded)) = before.map(|before| &before.way)
            && let Ok(grant) = Self::ask_by_upnp(gateway, port, Some(forwarded)).await
        {
            return Ok(grant);
        }
        let asked = Self::ask_by_pcp(gateway, port, before).await;
        match asked {
            // By whatever it is asked, its address is not one of the internet.
            Ok(_) | Err(MappingFault::NotPublic) => asked,
            #[cfg(feature = "upnp")]
            Err(fault) => Self::ask_by_upnp(gateway, port, None)
                .await
                .map_err(|by_upnp| match by_upnp {
                    MappingFault::NoAnswer => fault,
                    told => told,
                }),
            #[cfg(not(feature = "upnp"))]
            Err(_) => asked,
        }
    }

    #[cfg(feature = "upnp")]
    async fn ask_by_upnp(
        gateway: Gateway,
        port: NonZeroU16,
        before: Option<&Forwarded>,
    ) -> Result<Self, MappingFault> {
        let (forwarded, outer) = Forwarded::ask(gateway, port, before).await?;
        let port = forwarded.port();
        Self::taken(gateway, Way::Upnp(forwarded), (outer, port), LIFETIME).await
    }

    async fn ask_by_pcp(
        gateway: Gateway,
        port: NonZeroU16,
        before: Option<&Self>,
    ) -> Result<Self, MappingFault> {
        let same = before.and_then(|before| before.way.mapping());
        let external_port = same.map(PortMapping::external_port);
        let options = PortMappingOptions {
            external_port: external_port.or(Some(port)),
            lifetime_seconds: u32::try_from(LIFETIME.as_secs()).ok(),
            timeout_config: Some(TIMEOUTS),
        };
        // A renewal shows the nonce of the request before: else the router refuses to give another client the port.
        let nonce = same.and_then(|before| match before.mapping_type() {
            PortMappingType::Pcp { nonce, .. } => Some(nonce),
            PortMappingType::NatPmp => None,
        });
        let request = pcp::BaseMapRequest::new(
            gateway.address.into(),
            gateway.client.into(),
            InternetProtocol::Udp,
            port,
        );
        match pcp::port_mapping(request, nonce, None, options).await {
            Ok(mapping) => {
                let external = match mapping.mapping_type() {
                    PortMappingType::Pcp { external_ip, .. } => external_ip,
                    PortMappingType::NatPmp => return Err(MappingFault::Malformed),
                };
                Self::granted(gateway, mapping, external).await
            }
            // Some routers do not answer to a version that they do not know.
            Err(pcp::Failure::UnsupportedVersion(_) | pcp::Failure::Timeout) => {
                Self::ask_by_natpmp(gateway, port, options).await
            }
            Err(error) => Err(fault_of(&error.into())),
        }
    }

    async fn ask_by_natpmp(
        gateway: Gateway,
        port: NonZeroU16,
        options: PortMappingOptions,
    ) -> Result<Self, MappingFault> {
        let its = gateway.address.into();
        let fault = |error: natpmp::Failure| fault_of(&error.into());
        let external = natpmp::external_address(its, Some(TIMEOUTS)).await;
        let external = external.map_err(fault)?;
        // It would take the port for nothing.
        check(external)?;
        let mapping = natpmp::port_mapping(its, InternetProtocol::Udp, port, options).await;
        Self::granted(gateway, mapping.map_err(fault)?, external.into()).await
    }

    async fn granted(
        gateway: Gateway,
        mapping: PortMapping,
        external: IpAddr,
    ) -> Result<Self, MappingFault> {
        let (port, lifetime) = (mapping.external_port(), mapping.lifetime());
        let lifetime = Duration::from_secs(lifetime.into());
        Self::taken(gateway, Way::Pcp(mapping), (external, port), lifetime).await
    }

    /// The grant, if it makes sense; else the port is given back.
    async fn taken(
        gateway: Gateway,
        way: Way,
        (external, port): (IpAddr, NonZeroU16),
        lifetime: Duration,
    ) -> Result<Self, MappingFault> {
        let checked = match external.to_canonical() {
            IpAddr::V4(_) if lifetime.is_zero() => Err(MappingFault::Malformed),
            IpAddr::V4(external) => check(external).map(|()| external),
            IpAddr::V6(_) => Err(MappingFault::Malformed),
        };
        match checked {
            Ok(external) => Ok(Self {
                way,
                gateway,
                address: SocketAddr::from((external, port.get())),
                lifetime: lifetime.min(LIFETIME),
            }),
            Err(fault) => {
                way.remove().await;
                Err(fault)
            }
        }
    }

    /// Gives the port back. The router frees it in the end even without that.
    pub(super) async fn remove(self) {
        self.way.remove().await;
    }
}

impl Way {
    fn mapping(&self) -> Option<&PortMapping> {
        match self {
            Self::Pcp(mapping) => Some(mapping),
            #[cfg(feature = "upnp")]
            Self::Upnp(_) => None,
        }
    }

    async fn remove(&self) {
        match self {
            Self::Pcp(mapping) => {
                let mut mapping = mapping.clone();
                mapping.timeout_config = ONCE;
                if let Err((error, _)) = mapping.try_drop().await {
                    tracing::debug!(%error, "the router has not confirmed that its port is free");
                }
            }
            #[cfg(feature = "upnp")]
            Self::Upnp(forwarded) => {
                // The router frees the port by itself.
                let _ = timeout(super::REMOVAL_LIMIT, forwarded.remove()).await;
            }
        }
    }
}

/// Whether a router can have that address on the internet.
fn check(external: Ipv4Addr) -> Result<(), MappingFault> {
    let is_of_a_machine = !external.is_multicast() && !external.is_broadcast();
    match is_of_a_machine && external.octets()[0] != 0 {
        false => Err(MappingFault::Malformed),
        true if external.is_loopback() => Err(MappingFault::Malformed),
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
