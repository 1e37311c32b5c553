//! The members of each locator, and for each member the ones that it knows of and has blocked. Pure.
//!
//! The frames that a member still has to receive follow from this state: a key that comes and goes before its frame is written
//! leaves nothing behind. So a member that reads nothing costs a bounded amount of memory.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use room_core::id::Fingerprint;
use room_core::path::MAX_AT_RELAY;
use room_core::virtual_address::{VirtualId, virtual_id};
use room_transport::rendezvous::{FromRelay, Locator, MAX_PRESENT};

use crate::networks::{LinkNumber, Network, Site};

/// Validity of a block.
pub(crate) const BLOCK_LIFETIME: Duration = Duration::from_secs(600);
/// Keys that one member blocks, at most; the oldest block ends early. The same limit applies to the networks.
pub(crate) const MAX_BLOCKS: usize = 64;

/// A member's link, as far as the rooms need it.
pub(crate) trait Link {
    /// There is a frame to write.
    fn wake(&self);
    /// Drops the packets of that member which wait for this one.
    fn drop_waiting(&self, origin: VirtualId);
}

/// A member that enters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// Number of its link.
    pub(crate) link: LinkNumber,
    /// The room.
    pub(crate) locator: Locator,
    /// Its key.
    pub(crate) key: Fingerprint,
    /// Where the relay sees it.
    pub(crate) address: IpAddr,
    /// Whether it is named to no other member.
    pub(crate) hidden: bool,
}

/// Outcome of an entry.
#[derive(Debug)]
pub(crate) struct Entered<L> {
    /// Number of the others that are present and not hidden.
    pub(crate) present: u32,
    /// An older link with the same key, which this one replaces.
    pub(crate) replaced: Option<Arc<L>>,
    /// A link that made way because the locator was full.
    pub(crate) yielded: Option<Arc<L>>,
}

/// Reason why a member does not enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The locator has [`MAX_AT_RELAY`] members, and no network has more of them than the newcomer's.
    Full,
    /// Another key with the same virtual id is present.
    SameId,
}

/// Reason why a packet is not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// The target is not present.
    Absent,
    /// The target has blocked the sender.
    Blocked,
}

/// All rooms.
#[derive(Debug)]
pub(crate) struct Rooms<L> {
    rooms: HashMap<Locator, Room<L>>,
    links: HashMap<LinkNumber, (Locator, VirtualId)>,
}

impl<L> Default for Rooms<L> {
    fn default() -> Self {
        Self {
            rooms: HashMap::new(),
            links: HashMap::new(),
        }
    }
}

type Room<L> = BTreeMap<VirtualId, Member<L>>;

#[derive(Debug)]
struct Member<L> {
    number: LinkNumber,
    link: Arc<L>,
    key: Fingerprint,
    address: IpAddr,
    hidden: bool,
    /// Place among the members by the time of entering; a link that replaces another has the other's.
    since: LinkNumber,
    /// Members whose keys this one has received, or will with the next frames.
    named: BTreeSet<VirtualId>,
    blocks: Blocks,
    observed: Option<SocketAddr>,
    gone: VecDeque<Fingerprint>,
    present: VecDeque<Fingerprint>,
}

impl<L: Link> Member<L> {
    fn name(&mut self, key: Fingerprint) {
        if self.named.insert(virtual_id(key)) {
            self.present.push_back(key);
            self.link.wake();
        }
    }

    fn unname(&mut self, key: Fingerprint) {
        if !self.named.remove(&virtual_id(key)) {
            return;
        }
        match self.present.iter().position(|waiting| *waiting == key) {
            Some(at) => drop(self.present.remove(at)),
            None => self.gone.push_back(key),
        }
        self.link.wake();
    }

    fn next_frame(&mut self) -> Option<FromRelay> {
        if let Some(key) = self.gone.pop_front() {
            return Some(FromRelay::Gone { key });
        }
        if !self.present.is_empty() {
            let count = self.present.len().min(MAX_PRESENT);
            let keys = self.present.drain(..count).collect();
            return Some(FromRelay::Present { keys });
        }
        let address = self.observed.take()?;
        Some(FromRelay::Observed { address })
    }
}

/// Keys and networks that a member has blocked.
#[derive(Debug, Default)]
struct Blocks {
    /// By key, with the end of the block. Oldest first.
    keys: VecDeque<(Fingerprint, Instant)>,
    /// Networks from which later entries are blocked, too.
    networks: VecDeque<(Network, Instant)>,
    /// Present members that entered from such a network.
    entered: BTreeMap<VirtualId, Instant>,
}

impl Blocks {
    fn add(&mut self, key: Fingerprint, network: Option<Network>, until: Instant) {
        self.keys.retain(|(blocked, _)| *blocked != key);
        push_bounded(&mut self.keys, (key, until));
        if let Some(network) = network {
            self.networks.retain(|(blocked, _)| *blocked != network);
            push_bounded(&mut self.networks, (network, until));
        }
    }

    fn lift(&mut self, key: Fingerprint) {
        self.keys.retain(|(blocked, _)| *blocked != key);
        self.entered.remove(&virtual_id(key));
    }

    fn contain(&self, key: Fingerprint, now: Instant) -> bool {
        let by_key = self.keys.iter().find(|(blocked, _)| *blocked == key);
        let by_network = self.entered.get(&virtual_id(key));
        let until = by_key.map(|(_, until)| until).max(by_network);
        until.is_some_and(|until| now < *until)
    }

    /// A member enters from `network`.
    fn take_entry(&mut self, id: VirtualId, network: Network, now: Instant) {
        self.networks.retain(|(_, until)| now < *until);
        if let Some((_, until)) = self.networks.iter().find(|(of, _)| *of == network) {
            self.entered.insert(id, *until);
        }
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, entry: T) {
    if queue.len() == MAX_BLOCKS {
        queue.pop_front();
    }
    queue.push_back(entry);
}

impl<L: Link> Rooms<L> {
    /// A member enters.
    ///
    /// # Errors
    /// [`Refused`]
    pub(crate) fn enter(
        &mut self,
        now: Instant,
        entry: Entry,
        link: Arc<L>,
    ) -> Result<Entered<L>, Refused> {
        let id = virtual_id(entry.key);
        let room = self.rooms.get(&entry.locator);
        let older = room.and_then(|room| room.get(&id));
        if older.is_some_and(|older| older.key != entry.key) {
            return Err(Refused::SameId);
        }
        let yields = match room {
            Some(room) if older.is_none() && room.len() >= MAX_AT_RELAY => {
                Some(yields(room, entry.address).ok_or(Refused::Full)?)
            }
            _ => None,
        };
        let yielded = yields.and_then(|number| self.leave(number));

        let room = self.rooms.entry(entry.locator).or_default();
        let older = room.remove(&id);
        let mut member = Member {
            number: entry.link,
            link,
            key: entry.key,
            address: entry.address,
            hidden: entry.hidden,
            since: older.as_ref().map_or(entry.link, |older| older.since),
            named: BTreeSet::new(),
            blocks: Blocks::default(),
            observed: None,
            gone: VecDeque::new(),
            present: VecDeque::new(),
        };
        let replaced = older.map(|older| {
            self.links.remove(&older.number);
            member.blocks = older.blocks;
            older.link
        });
        let network = Network::of(entry.address);
        for other in room.values_mut() {
            if replaced.is_none() {
                other.blocks.take_entry(id, network, now);
            }
            match entry.hidden {
                true => other.unname(entry.key),
                false if other.blocks.contain(entry.key, now) => {}
                false => other.name(entry.key),
            }
        }
        let visible = room.values().filter(|other| !other.hidden);
        let present = u32::try_from(visible.count()).unwrap_or(u32::MAX);
        room.insert(id, member);
        self.links.insert(entry.link, (entry.locator, id));
        self.name_more(now, entry.link);
        Ok(Entered {
            present,
            replaced,
            yielded,
        })
    }

    /// A link is down, or has to go. Returns it if it was in a room.
    pub(crate) fn leave(&mut self, number: LinkNumber) -> Option<Arc<L>> {
        let (locator, id) = self.links.remove(&number)?;
        let room = self.rooms.get_mut(&locator)?;
        let member = room.remove(&id)?;
        for other in room.values_mut() {
            other.unname(member.key);
            other.blocks.entered.remove(&id);
            other.link.drop_waiting(id);
        }
        if room.is_empty() {
            self.rooms.remove(&locator);
        }
        Some(member.link)
    }

    /// Names the next ones that are present to a member, those first that have been there longest.
    pub(crate) fn name_more(&mut self, now: Instant, number: LinkNumber) {
        let Some((room, id)) = self.room_of(number) else {
            return;
        };
        let Some(member) = room.get(&id) else {
            return;
        };
        let mut unnamed: Vec<_> = room
            .iter()
            .filter(|(other, it)| **other != id && !it.hidden && !member.named.contains(*other))
            .filter(|(_, it)| !member.blocks.contain(it.key, now))
            .map(|(_, it)| (it.since, it.key))
            .collect();
        unnamed.sort_unstable_by_key(|(since, _)| *since);
        if let Some(member) = room.get_mut(&id) {
            let next = unnamed.into_iter().take(MAX_PRESENT);
            next.for_each(|(_, key)| member.name(key));
        }
    }

    /// A member blocks a key.
    pub(crate) fn block(&mut self, now: Instant, number: LinkNumber, key: Fingerprint) {
        let Some((room, id)) = self.room_of(number) else {
            return;
        };
        let blocked = room.get(&virtual_id(key)).filter(|it| it.key == key);
        let network = blocked.map(|it| Network::of(it.address));
        if let Some(member) = room.get_mut(&id) {
            member.blocks.add(key, network, now + BLOCK_LIFETIME);
            member.link.drop_waiting(virtual_id(key));
        }
    }

    /// The link that a packet of `sender` to `target` goes to, and the sender's id. The sender no longer blocks the target.
    ///
    /// # Errors
    /// [`NoRoute`]
    pub(crate) fn route(
        &mut self,
        now: Instant,
        sender: LinkNumber,
        target: VirtualId,
    ) -> Result<(Arc<L>, VirtualId), NoRoute> {
        let (room, id) = self.room_of(sender).ok_or(NoRoute::Absent)?;
        let target_key = room.get(&target).map(|it| it.key);
        let target_key = target_key.filter(|_| target != id).ok_or(NoRoute::Absent)?;
        let member = room.get_mut(&id).ok_or(NoRoute::Absent)?;
        member.blocks.lift(target_key);
        let key = member.key;
        let receiver = room.get(&target).ok_or(NoRoute::Absent)?;
        if receiver.blocks.contain(key, now) {
            return Err(NoRoute::Blocked);
        }
        Ok((Arc::clone(&receiver.link), id))
    }

    /// The relay sees a member at another address.
    pub(crate) fn moved(&mut self, number: LinkNumber, address: SocketAddr) {
        if let Some((room, id)) = self.room_of(number)
            && let Some(member) = room.get_mut(&id)
        {
            member.address = address.ip();
        }
    }

    /// A member is to learn where the relay sees it.
    pub(crate) fn observe(&mut self, number: LinkNumber, address: SocketAddr) {
        if let Some((room, id)) = self.room_of(number)
            && let Some(member) = room.get_mut(&id)
        {
            member.observed = Some(address);
            member.link.wake();
        }
    }

    /// The next frame for a member.
    pub(crate) fn next_frame(&mut self, number: LinkNumber) -> Option<FromRelay> {
        let (room, id) = self.room_of(number)?;
        room.get_mut(&id)?.next_frame()
    }

    /// The links of all members.
    pub(crate) fn links(&self) -> impl Iterator<Item = &Arc<L>> {
        let members = self.rooms.values().flat_map(BTreeMap::values);
        members.map(|member| &member.link)
    }

    /// The number of rooms.
    pub(crate) fn rooms(&self) -> usize {
        self.rooms.len()
    }

    /// The number of members of all rooms.
    pub(crate) fn members(&self) -> usize {
        self.links.len()
    }

    fn room_of(&mut self, number: LinkNumber) -> Option<(&mut Room<L>, VirtualId)> {
        let (locator, id) = *self.links.get(&number)?;
        Some((self.rooms.get_mut(&locator)?, id))
    }
}

/// The link that makes way for a newcomer: the newest of the site with most members, if that has more than the newcomer's would.
fn yields<L>(room: &Room<L>, newcomer: IpAddr) -> Option<LinkNumber> {
    let mut sites: HashMap<Site, (usize, LinkNumber)> = HashMap::new();
    for member in room.values() {
        let site = sites.entry(Site::of(member.address)).or_default();
        site.0 += 1;
        site.1 = site.1.max(member.number);
    }
    let own = sites
        .get(&Site::of(newcomer))
        .map_or(0, |(count, _)| *count);
    let (count, newest) = sites.into_values().max()?;
    (count > own + 1).then_some(newest)
}

#[cfg(test)]
mod tests;
