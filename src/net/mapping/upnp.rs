//! Requests to a router by UPnP (Internet Gateway Device).
//!
//! `igd-next` takes answers from any machine. So it sends its search to an address on loopback: this module passes that to the
//! gateway alone, and only the gateway's answers back. `igd-next` then follows an answer to the gateway and to no other machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Duration;

use igd_next::aio::Gateway as Device;
use igd_next::aio::tokio::{Tokio, search_gateway};
use igd_next::{AddPortError, GetExternalIpError, PortMappingProtocol, SearchError, SearchOptions};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::gateway::Gateway;
use super::requests::LIFETIME;
use crate::core::event::MappingFault;
use crate::fork;

/// Port at which routers answer searches.
const SEARCH_PORT: u16 = 1900;
/// Longest search, with the router's descriptions of itself.
const SEARCH_LIMIT: Duration = Duration::from_secs(5);
/// Longest wait for the answer to a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// Packets that a search may send, and answers that it may read.
const MAX_PACKETS: usize = 4;
/// Ports that a request tries, one after the other: other machines of the network may have the first ones.
const MAX_PORTS: u16 = 8;
/// Name of the port in the router's list.
const NAME: &str = "meta_mystia_network";

/// A port of a router, as it claims.
#[derive(Debug)]
pub(super) struct Forwarded {
    device: Device<Tokio>,
    local: SocketAddr,
    port: NonZeroU16,
    /// How long; `None` is until it is removed.
    lifetime: Option<Duration>,
}

impl Forwarded {
    /// Asks for a port of the router that leads to `local`, the one of `before` if possible. Returns it with the outer address.
    pub(super) async fn ask(
        gateway: Gateway,
        local: NonZeroU16,
        before: Option<&Self>,
    ) -> Result<(Self, IpAddr), MappingFault> {
        let device = match before {
            Some(before) => before.device.clone(),
            None => search(gateway).await.map_err(|error| {
                tracing::debug!(%error, "no router was found by UPnP");
                match error {
                    SearchError::NoResponseWithinTimeout | SearchError::IoError(_) => {
                        MappingFault::NoAnswer
                    }
                    _ => MappingFault::Malformed,
                }
            })?,
        };
        let outer = timeout(REQUEST_LIMIT, device.get_external_ip()).await;
        let outer = outer.map_err(|_| MappingFault::NoAnswer)?;
        let outer = outer.map_err(|error| fault_of_address(&error))?;
        let local = SocketAddr::from((gateway.client, local.get()));
        let first = before.map_or_else(|| local.port(), |before| before.port.get());
        let first = NonZeroU16::new(first).ok_or(MappingFault::Malformed)?;
        let next = |n| {
            first
                .checked_add(n)
                .or_else(|| NonZeroU16::new(first.get() - n))
        };
        let mut forwarded = Self {
            device,
            local,
            port: first,
            lifetime: Some(LIFETIME),
        };
        for port in (0..MAX_PORTS).filter_map(next) {
            forwarded.port = port;
            match forwarded.add().await {
                Ok(()) => return Ok((forwarded, outer)),
                Err(AddPortError::PortInUse) => {}
                Err(AddPortError::OnlyPermanentLeasesSupported) => {
                    forwarded.lifetime = None;
                    let added = forwarded.add().await;
                    return match added {
                        Ok(()) => Ok((forwarded, outer)),
                        Err(error) => Err(fault_of(&error)),
                    };
                }
                Err(error) => return Err(fault_of(&error)),
            }
        }
        Err(MappingFault::Refused)
    }

    async fn add(&self) -> Result<(), AddPortError> {
        let seconds = self.lifetime.map_or(0, |lifetime| lifetime.as_secs());
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        let udp = PortMappingProtocol::UDP;
        let port = self.port.get();
        let adds = self.device.add_port(udp, port, self.local, seconds, NAME);
        let added = timeout(REQUEST_LIMIT, adds).await;
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        added.map_err(|error| AddPortError::RequestError(late(error).into()))?
    }

    pub(super) fn port(&self) -> NonZeroU16 {
        self.port
    }

    /// Gives the port back.
    pub(super) async fn remove(&self) {
        let removes = self
            .device
            .remove_port(PortMappingProtocol::UDP, self.port.get());
        if let Err(error) = removes.await {
            tracing::debug!(%error, "the router has not confirmed that its port is free");
        }
    }
}

fn fault_of(error: &AddPortError) -> MappingFault {
    tracing::debug!(%error, "the router forwards no port by UPnP");
    match error {
        AddPortError::RequestError(_) => MappingFault::Malformed,
        _ => MappingFault::Refused,
    }
}

fn fault_of_address(error: &GetExternalIpError) -> MappingFault {
    tracing::debug!(%error, "the router does not tell its address by UPnP");
    match error {
        GetExternalIpError::ActionNotAuthorized => MappingFault::Refused,
        _ => MappingFault::Malformed,
    }
}

/// Finds the gateway's services, and no other machine's.
async fn search(gateway: Gateway) -> Result<Device<Tokio>, SearchError> {
    let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let _near_is_known = fork::closed_in_children(&near);
    let far = UdpSocket::bind((gateway.client, 0)).await?;
    let _far_is_known = fork::closed_in_children(&far);
    // The system drops what comes from elsewhere.
    far.connect((gateway.address, SEARCH_PORT)).await?;
    let mut options = SearchOptions::default();
    options.bind_addr = (Ipv4Addr::LOCALHOST, 0).into();
    options.broadcast_address = near.local_addr()?;
    options.timeout = Some(SEARCH_LIMIT);
    options.single_search_timeout = Some(SEARCH_LIMIT);
    options.allowed_gateway_ips = vec![gateway.address.into()];
    tokio::select! {
        found = search_gateway(options) => found,
        broken = pass_on(&near, &far, gateway) => Err(broken.into()),
    }
}

/// Passes a few searches to the gateway and its answers back. Ends with an error alone.
async fn pass_on(near: &UdpSocket, far: &UdpSocket, gateway: Gateway) -> io::Error {
    let (mut search, mut answer) = ([0; 1024], [0; 2048]);
    let mut asker = None;
    let (mut sent, mut read) = (0, 0);
    loop {
        let passed = tokio::select! {
            got = near.recv_from(&mut search), if sent < MAX_PACKETS => match got {
                Ok((len, from)) => {
                    asker = Some(from);
                    sent += 1;
                    let search = addressed_to(&search[..len], near, gateway);
                    far.send(&search).await
                }
                Err(error) => Err(error),
            },
            got = far.recv(&mut answer), if read < MAX_PACKETS => match (got, asker) {
                (Ok(len), Some(asker)) => {
                    read += 1;
                    near.send_to(&answer[..len], asker).await
                }
                (Ok(_), None) => Ok(0),
                (Err(error), _) => Err(error),
            },
            else => std::future::pending().await,
        };
        if let Err(error) = passed {
            return error;
        }
    }
}

/// A search that names the gateway as its receiver.
fn addressed_to(search: &[u8], near: &UdpSocket, gateway: Gateway) -> Vec<u8> {
    match (std::str::from_utf8(search), near.local_addr()) {
        (Ok(text), Ok(named)) => {
            let receiver = format!("{}:{SEARCH_PORT}", gateway.address);
            text.replace(&named.to_string(), &receiver).into_bytes()
        }
        _ => search.to_vec(),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
