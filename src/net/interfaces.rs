//! The interfaces of this machine, and whether one has a connection.
//!
//! Behind a pulled cable the system forgets the addresses of the network. It asks for an address when the first packet for it
//! is sent, and again only a second later. So a dial into a pulled cable delays the link by up to a second after the cable is
//! back. Brief dials, which are repeated, wait until their interface has a connection.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use if_addrs::{IfOperStatus, Interface};
use tokio::time::{sleep, timeout};

/// Time between two looks at an interface without a connection.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The interfaces, one for each address; none if the system does not list them.
pub(crate) fn interfaces() -> Vec<Interface> {
    if_addrs::get_if_addrs().unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot list the network interfaces");
        Vec::new()
    })
}

/// Whether the interface can carry packets, or the system does not report that.
pub(crate) fn is_up(interface: &Interface) -> bool {
    !matches!(
        interface.oper_status,
        IfOperStatus::Down | IfOperStatus::NotPresent | IfOperStatus::LowerLayerDown
    )
}

/// The address from which the system would send to `to`, as its routes have it. Connecting a UDP socket sends nothing.
///
/// # Errors
/// The system's, if it has no route.
pub(crate) fn source_towards(to: SocketAddr) -> io::Result<IpAddr> {
    let any = match to {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}

/// Waits until the interface that leads to `to` has a connection, for `most` at most. Returns whether it has one, which counts
/// as true where the system reports no route or no state.
pub(crate) async fn until_connected(to: SocketAddr, most: Duration) -> bool {
    let to = SocketAddr::new(to.ip().to_canonical(), to.port());
    let connected = async {
        while is_cut_off_from(to) {
            sleep(LOOK_INTERVAL).await;
        }
    };
    timeout(most, connected).await.is_ok()
}

fn is_cut_off_from(to: SocketAddr) -> bool {
    match source_towards(to) {
        Ok(source) if !source.is_loopback() => {
            has_no_connection(&if_addrs::get_if_addrs().unwrap_or_default(), source)
        }
        Ok(_) | Err(_) => false,
    }
}

/// Whether interfaces have that address, and none of them has a connection.
fn has_no_connection(interfaces: &[Interface], own: IpAddr) -> bool {
    let mut of_it = interfaces.iter().filter(|interface| interface.ip() == own);
    of_it.next().is_some_and(is_disconnected) && of_it.all(is_disconnected)
}

fn is_disconnected(interface: &Interface) -> bool {
    // if-addrs reports "unknown" on Unix for an interface that does not have the flag IFF_RUNNING.
    !is_up(interface) || (cfg!(unix) && interface.oper_status == IfOperStatus::Unknown)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use if_addrs::{IfAddr, Ifv4Addr};

    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);

    fn interface(ip: Ipv4Addr, oper_status: IfOperStatus) -> Interface {
        Interface {
            name: "eth0".into(),
            addr: IfAddr::V4(Ifv4Addr {
                ip,
                netmask: Ipv4Addr::new(255, 255, 255, 0),
                prefixlen: 24,
                broadcast: None,
            }),
            index: Some(2),
            oper_status,
            is_p2p: false,
            #[cfg(windows)]
            adapter_name: String::new(),
        }
    }

    #[test]
    fn an_address_whose_interfaces_are_all_down_has_no_connection() {
        use IfOperStatus::{Down, LowerLayerDown, Unknown, Up};
        for (states, expected) in [
            (vec![], false), // an address that the system does not list may be another system's
            (vec![Up], false),
            (vec![Unknown], cfg!(unix)),
            (vec![Down], true),
            (vec![LowerLayerDown, Down], true),
            (vec![Down, Up], false),
        ] {
            let other = interface(Ipv4Addr::new(10, 0, 0, 8), Down);
            let own = states.iter().map(|state| interface(OWN, state.clone()));
            let listed: Vec<_> = own.chain([other]).collect();
            assert_eq!(
                has_no_connection(&listed, OWN.into()),
                expected,
                "{states:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_waits_for_loopback_or_for_a_network_without_a_route() {
        let began = tokio::time::Instant::now();
        for to in [
            "127.0.0.1:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
            "240.0.0.1:1",
        ] {
            let to = to.parse().expect("an address");
            assert!(until_connected(to, Duration::from_secs(5)).await, "{to}");
        }
        assert!(began.elapsed().is_zero());
    }
}
