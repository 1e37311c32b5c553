//! What routers announce to their network: that they have restarted, and forward nothing that they did before.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use super::gateway::Gateway;
use crate::fork::{self, ClosedInChildren};

/// Where routers announce themselves: a group that every machine is in.
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
pub(super) const PORT: u16 = 5350;

/// Receives announcements. It sends nothing.
pub(super) struct Announcements {
    socket: UdpSocket,
    // After the socket.
    _known: ClosedInChildren,
}

impl Announcements {
    /// Begins to receive them in a gateway's network. `None` if another program keeps the port to itself: a restart is then noticed
    /// when the port is renewed.
    pub(super) fn of(gateway: Gateway) -> Option<Self> {
        let opened = open(gateway.client).inspect_err(|error| {
            tracing::debug!(%error, "announcements of routers are not received");
        });
        let socket = opened.ok()?;
        Some(Self {
            _known: fork::closed_in_children(&socket),
            socket,
        })
    }

    /// Waits for a packet of the gateway. Others' are ignored, and so are its contents: it is only a hint to ask.
    pub(super) async fn next(&self, gateway: Gateway) -> io::Result<()> {
        let mut packet = [0; 64];
        loop {
            let (_, from) = self.socket.recv_from(&mut packet).await?;
            if from.ip().to_canonical() == IpAddr::V4(gateway.address) {
                return Ok(());
            }
        }
    }
}

fn open(own: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    // Other rooms and programs of this machine receive them, too.
    socket.set_reuse_address(true)?;
    #[cfg(unix)]
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)).into())?;
    socket.join_multicast_v4(&GROUP, &own)?;
    UdpSocket::from_std(socket.into())
}
