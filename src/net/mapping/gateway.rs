//! The router of the network that a room uses: the default gateway, as the system's routes have it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use crab_nat::GATEWAY_PORT;

/// A router, and this machine as the router sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gateway {
    pub(crate) address: Ipv4Addr,
    pub(crate) client: Ipv4Addr,
}

/// A default route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DefaultRoute {
    gateway: Ipv4Addr,
    metric: u32,
}

/// An address of the internet, to ask the system which network leads there. No packet goes to it.
const FAR: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

/// The gateway of the network that a socket bound to `address` uses; `None` is every address of this machine. Sends nothing.
pub(crate) fn find(address: Option<IpAddr>) -> Option<Gateway> {
    let routes = default_routes().inspect_err(|error| {
        tracing::debug!(%error, "the system's routes cannot be read");
    });
    choose(routes.ok()?, address, source_towards)
}

fn choose(
    mut routes: Vec<DefaultRoute>,
    address: Option<IpAddr>,
    source: impl Fn(Ipv4Addr) -> Option<Ipv4Addr>,
) -> Option<Gateway> {
    let bound = address.map(|ip| ip.to_canonical());
    let bound = bound.filter(|ip| !ip.is_unspecified());
    // The sorts are stable: the system's order stays.
    routes.sort_by_key(|route| route.metric);
    let found = routes.into_iter().filter_map(|route| {
        Some(Gateway {
            address: route.gateway,
            client: source(route.gateway)?,
        })
    });
    let usable = found.filter(|gateway| is_of_a_network(gateway.address));
    let is_bound = |gateway: &Gateway| bound.is_none_or(|ip| ip == IpAddr::V4(gateway.client));
    let mut usable: Vec<_> = usable.filter(is_bound).collect();
    // Windows adds a metric of the interface, which the routes lack.
    let used = source(FAR);
    usable.sort_by_key(|gateway| Some(gateway.client) != used);
    usable.first().copied()
}

/// Whether a machine of a network can have this address.
fn is_of_a_network(ip: Ipv4Addr) -> bool {
    !(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || ip.is_broadcast())
}

/// This machine's address as the gateway sees it. Connecting a UDP socket sends nothing.
fn source_towards(gateway: Ipv4Addr) -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((gateway, GATEWAY_PORT)).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(own) => Some(own),
        IpAddr::V6(_) => None,
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn default_routes() -> io::Result<Vec<DefaultRoute>> {
    Ok(read_table(&std::fs::read_to_string("/proc/net/route")?))
}

/// Reads Linux's table: words, of which the second is the destination, the third the gateway, the fourth the flags, the seventh
/// the metric and the eighth the mask. Addresses are hexadecimal, in the machine's order of bytes.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn read_table(table: &str) -> Vec<DefaultRoute> {
    const IS_UP_WITH_A_GATEWAY: u32 = 3;
    let route = |line: &str| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok();
        let is_default = number(1)? == 0 && number(7)? == 0;
        let is_usable = number(3)? & IS_UP_WITH_A_GATEWAY == IS_UP_WITH_A_GATEWAY;
        (is_default && is_usable).then_some(DefaultRoute {
            gateway: Ipv4Addr::from(number(2)?.to_ne_bytes()),
            metric: words.get(6)?.parse().ok()?,
        })
    };
    table.lines().skip(1).filter_map(route).collect()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn default_routes() -> io::Result<Vec<DefaultRoute>> {
    let route = |route: netroute::RouteEntry| {
        let to = route.destination;
        let is_default = to.addr.is_ipv4() && to.addr.is_unspecified() && to.prefix_len == 0;
        match route.gateway {
            Some(IpAddr::V4(gateway)) if is_default => Some(DefaultRoute {
                gateway,
                metric: route.metric.unwrap_or(0),
            }),
            _ => None,
        }
    };
    let routes = netroute::list_routes()?;
    Ok(routes.into_iter().filter_map(route).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(gateways: &[(&str, u32)]) -> Vec<DefaultRoute> {
        let route = |(gateway, metric): &(&str, u32)| DefaultRoute {
            gateway: gateway.parse().expect("an address"),
            metric: *metric,
        };
        gateways.iter().map(route).collect()
    }

    /// The source of a machine that has the address .2 in each network.
    fn source(gateway: Ipv4Addr) -> Option<Ipv4Addr> {
        let [a, b, c, _] = gateway.octets();
        Some(Ipv4Addr::new(a, b, c, 2))
    }

    fn chosen(gateways: &[(&str, u32)], address: Option<&str>) -> Option<String> {
        chosen_with(gateways, address, source)
    }

    fn chosen_with(
        gateways: &[(&str, u32)],
        address: Option<&str>,
        source: impl Fn(Ipv4Addr) -> Option<Ipv4Addr>,
    ) -> Option<String> {
        let address = address.map(|text| text.parse().expect("an address"));
        let gateway = choose(routes(gateways), address, source)?;
        Some(gateway.address.to_string())
    }

    #[test]
    fn the_best_default_route_of_the_bound_address_has_the_gateway() {
        let two = [("192.168.1.1", 600), ("10.0.0.1", 100)];
        assert_eq!(chosen(&two, None).as_deref(), Some("10.0.0.1"));
        assert_eq!(chosen(&two, Some("::")).as_deref(), Some("10.0.0.1"));
        assert_eq!(chosen(&two, Some("0.0.0.0")).as_deref(), Some("10.0.0.1"));
        let of_one = chosen(&two, Some("192.168.1.2"));
        assert_eq!(of_one.as_deref(), Some("192.168.1.1"));
        for other in ["192.168.1.3", "127.0.0.1", "2001:db8::1"] {
            assert_eq!(chosen(&two, Some(other)), None, "{other}");
        }
        assert_eq!(chosen(&[], None), None);
    }

    #[test]
    fn the_network_that_the_system_uses_counts_more_than_a_metric() {
        let two = [("192.168.1.1", 600), ("10.0.0.1", 100)];
        let uses_the_first = |to: Ipv4Addr| match to {
            FAR => Some(Ipv4Addr::new(192, 168, 1, 2)),
            near => source(near),
        };
        let chosen = |address| chosen_with(&two, address, uses_the_first);
        assert_eq!(chosen(None).as_deref(), Some("192.168.1.1"));
        assert_eq!(chosen(Some("10.0.0.2")).as_deref(), Some("10.0.0.1"));
    }

    #[test]
    fn a_gateway_that_is_no_machine_of_a_network_is_not_asked() {
        for gateway in ["127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255"] {
            assert_eq!(chosen(&[(gateway, 0)], None), None, "{gateway}");
        }
    }

    #[cfg(all(
        any(target_os = "linux", target_os = "android"),
        target_endian = "little"
    ))]
    #[test]
    fn linux_lists_routes_in_a_table() {
        let table = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
            wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
            eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
            eth1\t00000000\t0200000A\t0002\t0\t0\t0\t00000000\t0\t0\t0\n\
            tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n\
            eth0\t0000000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
            broken\t00000000\t0300\n";
        let expected = routes(&[("192.168.1.1", 600), ("10.0.0.1", 100)]);
        assert_eq!(read_table(table), expected);
    }
}
