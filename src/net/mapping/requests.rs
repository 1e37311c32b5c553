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
    mapping: PortMapping,
    pub(super) address: SocketAddr,
    /// How long it forwards packets.
    pub(super) lifetime: Duration,
}

impl Grant {
    /// The router's clock when it answered, in seconds since its start.
    pub(super) fn epoch(&self) -> u32 {
        self.mapping.gateway_epoch()
    }

    /// Asks for a port of the router that leads to `port`, the one of `before` if possible.
    pub(super) async fn ask(
        gateway: Gateway,
        port: NonZeroU16,
        before: Option<&Self>,
    ) -> Result<Self, MappingFault> {
        let same = before.filter(|before| before.mapping.gateway() == gateway.address.into());
        let external_port = same.map(|before| before.mapping.external_port());
        let options = PortMappingOptions {
            external_port: external_port.or(Some(port)),
            lifetime_seconds: u32::try_from(LIFETIME.as_secs()).ok(),
            timeout_config: Some(TIMEOUTS),
        };
        // A renewal shows the nonce of the request before: else the router refuses to give another client the port.
        let nonce = same.and_then(|before| match before.mapping.mapping_type() {
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
                Self::checked(mapping, external)
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
        Self::checked(mapping.map_err(fault)?, external.into())
    }

    fn checked(mapping: PortMapping, external: IpAddr) -> Result<Self, MappingFault> {
        let IpAddr::V4(external) = external.to_canonical() else {
            return Err(MappingFault::Malformed);
        };
        let lifetime = Duration::from_secs(mapping.lifetime().into()).min(LIFETIME);
        let grant = Self {
            address: SocketAddr::from((external, mapping.external_port().get())),
            lifetime,
            mapping,
        };
        match check(external) {
            Ok(()) if !lifetime.is_zero() => Ok(grant),
            Ok(()) => Err(MappingFault::Malformed),
            Err(fault) => Err(fault),
        }
    }

    /// Gives the port back. One packet: the router frees the port in the end even without it.
    pub(super) async fn remove(mut self) {
        self.mapping.timeout_config = ONCE;
        if let Err((error, _)) = self.mapping.try_drop().await {
            tracing::debug!(%error, "the router has not confirmed that its port is free");
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
