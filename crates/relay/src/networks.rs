//! The links of each network, and how many it may have. Pure.
//!
//! An IPv4 address is a network of its own, with everybody behind its NAT. With IPv6 one process has a whole /64, and a
//! customer a /56 or a /48, so the wider prefixes have limits, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

/// Links of one IPv4 address, or of one IPv6 /64, at most.
pub(crate) const MAX_OF_NETWORK: usize = 256;
/// Links of one IPv6 /48, at most.
pub(crate) const MAX_OF_SITE: usize = 1024;
/// Links of one IPv6 /32, at most.
pub(crate) const MAX_OF_PROVIDER: usize = 4096;
/// Links of one site that never make way below the maximum of all links: a household.
pub(crate) const HOUSEHOLD: usize = 4;

/// Number of a link. A later link has a larger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct LinkNumber(pub(crate) u64);

/// An IPv4 address or an IPv6 /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Network {
    /// An IPv4 address.
    V4(u32),
    /// The first 64 bits of an IPv6 address.
    V6(u64),
}

impl Network {
    /// The network of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::V4(v4.to_bits()),
            IpAddr::V6(v6) => Self::V6((v6.to_bits() >> 64) as u64),
        }
    }

    fn site(self) -> Site {
        match self {
            Self::V4(address) => Site::V4(address),
            Self::V6(prefix) => Site::V6(prefix >> 16),
        }
    }

    fn provider(self) -> Option<u32> {
        match self {
            Self::V4(_) => None,
            Self::V6(prefix) => Some((prefix >> 32) as u32),
        }
    }
}

/// An IPv4 address or an IPv6 /48.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Site {
    /// An IPv4 address.
    V4(u32),
    /// The first 48 bits of an IPv6 address.
    V6(u64),
}

impl Site {
    /// The site of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        Network::of(address).site()
    }
}

/// Reason why there is no place for a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// Its address, or a prefix of it, has as many links as it may have.
    Network,
    /// The relay has as many links as it may have.
    Relay,
}

/// The links by network.
#[derive(Debug)]
pub(crate) struct Networks {
    max_links: usize,
    links: BTreeMap<LinkNumber, Network>,
    by_site: HashMap<Site, BTreeSet<LinkNumber>>,
    by_network: HashMap<Network, usize>,
    by_provider: HashMap<u32, usize>,
}

impl Networks {
    /// Without links.
    pub(crate) fn new(max_links: usize) -> Self {
        Self {
            max_links,
            links: BTreeMap::new(),
            by_site: HashMap::new(),
            by_network: HashMap::new(),
            by_provider: HashMap::new(),
        }
    }

    /// A link comes. Returns the link that makes way for it, if one has to; the caller ends that link and calls
    /// [`Networks::remove`] for it.
    ///
    /// # Errors
    /// [`NoPlace`]
    pub(crate) fn add(
        &mut self,
        number: LinkNumber,
        address: IpAddr,
    ) -> Result<Option<LinkNumber>, NoPlace> {
        let network = Network::of(address);
        if self.is_full(network) {
            return Err(NoPlace::Network);
        }
        let own = self.by_site.get(&network.site()).map_or(0, BTreeSet::len) + 1;
        let yields = match self.links.len() {
            count if count >= self.max_links => Some(self.newest_of_largest(own)),
            count if count >= self.max_links / 4 * 3 => {
                Some(self.newest_of_largest(own.max(HOUSEHOLD)))
            }
            _ => None,
        };
        let yields = match yields {
            None => None,
            Some(Some(link)) => Some(link),
            // The newcomer's site is the largest itself.
            Some(None) if own > HOUSEHOLD || self.links.len() >= self.max_links => {
                return Err(NoPlace::Relay);
            }
            Some(None) => None,
        };
        self.insert(number, network);
        Ok(yields)
    }

    /// A link is at another address from now on.
    pub(crate) fn moved(&mut self, number: LinkNumber, address: IpAddr) {
        if self.links.contains_key(&number) {
            self.remove(number);
            self.insert(number, Network::of(address));
        }
    }

    /// A link is gone.
    pub(crate) fn remove(&mut self, number: LinkNumber) {
        let Some(network) = self.links.remove(&number) else {
            return;
        };
        if let Some(links) = self.by_site.get_mut(&network.site()) {
            links.remove(&number);
            if links.is_empty() {
                self.by_site.remove(&network.site());
            }
        }
        decrement(&mut self.by_network, network);
        if let Some(provider) = network.provider() {
            decrement(&mut self.by_provider, provider);
        }
    }

    /// The number of links.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    fn insert(&mut self, number: LinkNumber, network: Network) {
        self.links.insert(number, network);
        self.by_site
            .entry(network.site())
            .or_default()
            .insert(number);
        *self.by_network.entry(network).or_default() += 1;
        if let Some(provider) = network.provider() {
            *self.by_provider.entry(provider).or_default() += 1;
        }
    }

    fn is_full(&self, network: Network) -> bool {
        if self.by_network.get(&network) >= Some(&MAX_OF_NETWORK) {
            return true;
        }
        let Some(provider) = network.provider() else {
            return false;
        };
        let of_site = self.by_site.get(&network.site()).map_or(0, BTreeSet::len);
        of_site >= MAX_OF_SITE || self.by_provider.get(&provider) >= Some(&MAX_OF_PROVIDER)
    }

    /// The newest link of the site with most links, if there are more than `least`.
    fn newest_of_largest(&self, least: usize) -> Option<LinkNumber> {
        let largest = self.by_site.values().max_by_key(|links| links.len())?;
        let newest = *largest.last()?;
        (largest.len() > least).then_some(newest)
    }
}

fn decrement<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// Networks whose links are numbered in order.
    struct Laboratory {
        networks: Networks,
        numbers: u64,
    }

    impl Laboratory {
        fn new(max_links: usize) -> Self {
            Self {
                networks: Networks::new(max_links),
                numbers: 0,
            }
        }

        /// Adds a link; one that makes way is removed.
        fn add(&mut self, address: IpAddr) -> Result<Option<LinkNumber>, NoPlace> {
            self.numbers += 1;
            let yields = self.networks.add(LinkNumber(self.numbers), address)?;
            if let Some(yields) = yields {
                self.networks.remove(yields);
            }
            Ok(yields)
        }

        fn add_many(&mut self, count: u32, address: impl Fn(u32) -> IpAddr) {
            for number in 0..count {
                assert_eq!(self.add(address(number)), Ok(None), "{number}");
            }
        }
    }

    fn v4(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(0xc633_0000 + number))
    }

    fn v6(site: u16, network: u32) -> IpAddr {
        let network = network as u16;
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, site, network, 0, 0, 0, 1))
    }

    #[test]
    fn a_stranger_uses_up_its_own_address_and_no_other() {
        let mut lab = Laboratory::new(100_000);
        lab.add_many(256, |_| v4(1));
        assert_eq!(lab.add(v4(1)), Err(NoPlace::Network));
        let mapped: IpAddr = "::ffff:198.51.0.1".parse().expect("an address");
        assert_eq!(lab.add(mapped), Err(NoPlace::Network));
        assert_eq!(lab.add(v4(2)), Ok(None));
        lab.networks.remove(LinkNumber(7));
        assert_eq!(lab.add(v4(1)), Ok(None));
    }

    #[test]
    fn wider_prefixes_of_ipv6_have_limits_of_their_own() {
        let mut lab = Laboratory::new(100_000);
        lab.add_many(256, |_| v6(1, 1));
        assert_eq!(lab.add(v6(1, 1)), Err(NoPlace::Network));
        lab.add_many(1024 - 256, |number| v6(1, 2 + number));
        assert_eq!(lab.add(v6(1, 9999)), Err(NoPlace::Network));
        lab.add_many(4096 - 1024, |number| v6(2 + (number / 1024) as u16, number));
        assert_eq!(lab.add(v6(999, 1)), Err(NoPlace::Network));
        assert_eq!(
            lab.add("2001:db9::1".parse().expect("an address")),
            Ok(None)
        );
    }

    #[test]
    fn above_three_quarters_the_largest_site_makes_way_and_households_do_not() {
        let mut lab = Laboratory::new(80);
        lab.add_many(4, |_| v4(1));
        // A stranger with one customer's IPv6 networks.
        lab.add_many(56, |number| v6(1, number));
        for number in 0..52 {
            let yields = lab.add(v4(2 + number)).expect("a place").expect("one goes");
            assert!((5..=60).contains(&yields.0), "{yields:?}");
            assert_eq!(lab.networks.len(), 60);
            // The stranger's further links do not push others out.
            assert_eq!(lab.add(v6(1, 100)), Err(NoPlace::Relay));
        }
        // Now all sites are small.
        lab.add_many(20, |number| v4(100 + number));
        assert_eq!(lab.networks.len(), 80);
        // All places are taken: two sites with 4 links still have more than a newcomer's would.
        for number in 0..6 {
            assert!(matches!(lab.add(v4(200 + number)), Ok(Some(_))));
        }
        assert_eq!(lab.add(v4(300)), Err(NoPlace::Relay));
        assert_eq!(lab.networks.len(), 80);
    }

    #[test]
    fn a_link_counts_where_it_is() {
        let mut lab = Laboratory::new(1000);
        lab.add_many(256, |_| v4(1));
        lab.networks.moved(LinkNumber(1), v6(1, 1));
        assert_eq!(lab.add(v4(1)), Ok(None));
        for number in 1..=257 {
            lab.networks.remove(LinkNumber(number));
        }
        lab.networks.moved(LinkNumber(1), v4(1));
        assert_eq!(lab.networks.len(), 0);
        let Networks {
            by_site,
            by_network,
            by_provider,
            ..
        } = &lab.networks;
        assert!(by_site.is_empty() && by_network.is_empty() && by_provider.is_empty());
    }
}
