//! Dials to peers: members that others introduced, and members that were lost.
//!
//! When two members learn of each other, the smaller id dials; the larger one dials if it has no link after 2 s. Dials
//! in a large room are spread out, and [`Attempts`] limits dials of addresses that only other members named. A lost
//! member is dialled by both ends, with waits that grow. A member whose link is carried is dialled when both ends have
//! agreed on a moment ([`super::node`]), or with waits that double if it does not know how to.

use std::net::{IpAddr, SocketAddr};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::address::{ip_of, is_dialable, is_global};
use super::attempts::Attempts;
use super::bounded::BoundedMap;
use super::id::{Fingerprint, PeerId};
use super::path::{Carrier, CarrierKind};
use super::time::{Duration, Time};
use super::wire::{MAX_EXCHANGED_ADDRESSES, MAX_PEER_ADDRESSES, PeerEntry};

pub use super::attempts::REDIAL_INTERVAL;

/// Longest wait between the dials of a lost member within the first minute.
const EARLY_RECONNECT_CAP: Duration = Duration::from_secs(2);
const EARLY: Duration = Duration::from_secs(60);
/// Within the first minute a lost member is dialled again after this part of the time for which it has been lost,
const YOUNG_PART: u32 = 8;
/// but not sooner than this,
const SOONEST: Duration = Duration::from_millis(250);
/// and after this for each lost member: all together are dialled eight times a second.
const YOUNG_SPACING: Duration = Duration::from_millis(125);
/// Time within which a lost member must answer: the next dial follows soon. It grows with the wait, since round trips may have
/// become longer; not beyond a second, in which no other dial could follow a return of its side,
const YOUNG_LASTS: Duration = Duration::from_millis(500);
const YOUNG_LASTS_CAP: Duration = Duration::from_secs(1);
/// but every fourth dial of one that has been lost for longer, and every dial over a line that was as slow as that.
const SLOW_LASTS: Duration = Duration::from_secs(2);
const SLOW_DIAL: u32 = 4;
/// Members that were lost within this time of each other are of one side.
const SIDE_WINDOW: Duration = Duration::from_secs(2);
/// Least time between a dial of a lost member and the next one that another member's return causes.
const WAKE_INTERVAL: Duration = Duration::from_millis(500);
/// Time after which an unreachable peer is forgotten.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(60);
/// Dials at once; after these, `DIALS_PER_SECOND`.
const BURST: u32 = 16;
const DIALS_PER_SECOND: u64 = 16;
/// Longest wait between the dials of a member whose link is carried. The waits begin with `REDIAL_INTERVAL` and double.
const DIRECT_AGAIN_CAP: Duration = Duration::from_secs(30);
/// Time after which the larger id dials a lost peer over a relay, or because of another one's return.
const OTHER_END_WAITS: Duration = Duration::from_millis(250);
/// Most peers that wait to be dialled.
const MAX_CANDIDATES: usize = 1024;
/// One round in this many is for confirmed addresses whose dials are used up, too.
const EXTRA_ROUND: u32 = 4;
/// Time within which an address must answer in the first round, which the second one follows soon, and in later ones.
const FIRST_ROUND_LASTS: Duration = Duration::from_millis(500);
const ROUND_LASTS: Duration = Duration::from_millis(1900);
/// Most IP addresses of one peer that are dialled.
const MAX_IPS: usize = 4;
/// Most members whose word about the address of one peer counts.
const MAX_WITNESSES: usize = 8;

/// Settings for dialling a lost member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// The first wait; the next ones double. Each is random by a quarter up or down.
    pub initial: Duration,
    /// The longest wait; at most 2 s within the first minute.
    pub max: Duration,
    /// Dials before giving up; `None` is unlimited.
    pub max_retries: Option<u32>,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(30),
            max_retries: None,
        }
    }
}

/// A dial to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dial {
    /// The peer.
    pub peer: PeerId,
    /// The key that it must show.
    pub key: Fingerprint,
    /// Its addresses, the likeliest first.
    pub addresses: Vec<DialAddress>,
    /// The carriers to dial it through if no address works, the best first.
    pub carriers: Vec<Carrier>,
    /// Whether the relays among the carriers are dialled at once, besides the addresses: the peer was lost, or no member
    /// has answered at an address that others on the internet may reach, or not. Otherwise they are dialled with the
    /// members, if no address answers soon.
    pub relays_at_once: bool,
    /// Set if another dial follows soon: the time within which an address must answer.
    pub lasts: Option<Duration>,
    /// Set if another dial follows soon: the time within which the peer must answer over a carrier. While a dial is open, one
    /// of the other end may be refused.
    pub carried_lasts: Option<Duration>,
}

/// An address to dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DialAddress {
    /// The address.
    pub at: SocketAddr,
    /// Whether a member has answered there before. An address that has not gets a single packet.
    pub has_answered: bool,
}

/// Ways to reach a peer at present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ways {
    /// At its addresses.
    pub direct: bool,
    /// Over a link that one of these carries, the best first.
    pub carriers: Vec<Carrier>,
}

/// Source of an introduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The leader. Other members cannot replace the peer's key.
    Leader,
    /// This node, which had a link with the peer. Other members cannot replace its key.
    Own,
    /// Another member.
    Member,
}

#[derive(Debug, Clone)]
struct Candidate {
    key: Fingerprint,
    source: Source,
    /// Its addresses according to others.
    addresses: Vec<SocketAddr>,
    /// Its addresses according to itself, over its carried link.
    stated: Vec<SocketAddr>,
    /// The address at which each of these members sees it.
    witnesses: BoundedMap<PeerId, SocketAddr, MAX_WITNESSES>,
    /// `None` waits for both ends to agree on a moment.
    dial_at: Option<Time>,
    /// The time of the last dial.
    dialled_at: Option<Time>,
    /// The next dial over relays alone, of a member whose link another member carries, and the wait before the one after
    /// that.
    over_relays: Option<(Time, Duration)>,
    give_up_at: Time,
    dialing: bool,
    /// Number of dials so far.
    dials: usize,
    /// The last round in which both ends dialled at the same time, or are about to.
    round: Option<u32>,
    /// Set for a lost member.
    lost: Option<Lost>,
    /// Set while the peer's link is carried and it is dialled for a direct one.
    direct_again: Option<Again>,
}

/// The next dial of a member whose link is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// After this wait.
    After(Duration),
    /// When both ends agree on a moment.
    Agreed,
}

impl Candidate {
    fn is_due(&self, now: Time) -> bool {
        !self.dialing && (self.dial_at.is_some_and(|at| now >= at) || self.relays_due(now))
    }

    /// The time of the next dial that another member's return causes, at the earliest.
    fn may_wake_at(&self, at: Time) -> Time {
        self.dialled_at
            .map_or(at, |dialled_at| at.max(dialled_at + WAKE_INTERVAL))
    }

    fn relays_due(&self, now: Time) -> bool {
        self.over_relays_at().is_some_and(|at| now >= at)
    }

    /// The time of the next dial over relays alone.
    fn over_relays_at(&self) -> Option<Time> {
        let (at, _) = self.over_relays?;
        self.direct_again.is_some().then_some(at)
    }

    /// Whether both ends dial in this round even if earlier dials have used up the limit.
    fn is_extra_round(&self) -> bool {
        self.round
            .is_some_and(|round| round.is_multiple_of(EXTRA_ROUND))
    }

    fn rested(&self, address: SocketAddr, attempts: &Attempts) -> Option<Time> {
        attempts.rested_at(address, self.round == Some(1))
    }

    /// Its addresses, the likeliest first.
    fn all_addresses(&self) -> impl Iterator<Item = &SocketAddr> {
        let named = self.stated.iter().chain(self.witnesses.values());
        named.chain(&self.addresses)
    }

    /// Whether a single liar cannot have made up an IP address: the peer and another member name it, or two others do, and
    /// no more members name another one.
    fn is_confirmed(&self, ip: IpAddr) -> bool {
        let count = |ip: IpAddr| {
            let witnesses = self.witnesses.values();
            witnesses.filter(|at| ip_of(**at) == ip).count()
        };
        let its = count(ip);
        let mut others = self.witnesses.values();
        let is_usual = others.all(|at| count(ip_of(*at)) <= its);
        let states = self.stated.iter().any(|at| ip_of(*at) == ip);
        is_usual && its >= if states { 1 } else { 2 }
    }

    /// The addresses to dial now, the likeliest first: of each IP address one port, another one each time.
    fn addresses_due(&self, now: Time, attempts: &Attempts) -> Vec<DialAddress> {
        let mut ports = Vec::<(IpAddr, Vec<SocketAddr>)>::new();
        for address in self.all_addresses() {
            let ip = ip_of(*address);
            match ports.iter().position(|(known, _)| *known == ip) {
                Some(at) if !ports[at].1.contains(address) => ports[at].1.push(*address),
                None if ports.len() < MAX_IPS => ports.push((ip, vec![*address])),
                _ => {}
            }
        }
        let is_rested = |address| self.rested(address, attempts).is_none_or(|at| now >= at);
        let mut due = Vec::new();
        for (ip, ports) in ports {
            let is_confirmed = self.is_confirmed(ip);
            let has_answered = attempts.has_answered(ports[0]);
            // The address of the lost link needs no rest. The others may be those of another member.
            let is_lost = |address: &SocketAddr| {
                let is_its = self.addresses.first() == Some(address);
                self.lost.is_some() && has_answered && (is_its || is_rested(*address))
            };
            let may_dial = |address: &SocketAddr| {
                let has_tries_left = attempts.has_tries_left(*address, is_confirmed)
                    || (is_confirmed && self.is_extra_round());
                // Dials under other names do not hold back one that both ends have agreed on.
                is_lost(address) || (has_tries_left && (is_confirmed || is_rested(*address)))
            };
            let address = |at| DialAddress { at, has_answered };
            if has_answered {
                due.extend(ports.into_iter().filter(may_dial).map(address));
            } else {
                let at = ports[self.dials % ports.len()];
                due.extend(Some(at).filter(may_dial).map(address));
            }
        }
        due
    }

    /// The time from which an address at which a member has answered may be dialled again.
    fn rested_at(&self, attempts: &Attempts) -> Option<Time> {
        let is_usable =
            |at: &&SocketAddr| attempts.has_answered(**at) && attempts.has_tries_left(**at, false);
        let usable = self.all_addresses().filter(is_usable);
        usable.filter_map(|at| self.rested(*at, attempts)).min()
    }
}

#[derive(Debug, Clone, Copy)]
struct Lost {
    since: Time,
    wait: Duration,
    dials: u32,
    /// Its round-trip time.
    rtt: Duration,
    /// Another member of its side has returned since the last dial: the next one follows after this wait.
    woken: Option<Duration>,
}

impl Lost {
    fn is_young(&self, now: Time) -> bool {
        now.since(self.since) < EARLY
    }

    /// Whether its dials are brief and follow soon. With a limit of dials they last as long as the host expects.
    fn is_dialled_often(&self, now: Time, reconnect: Reconnect) -> bool {
        self.is_young(now) && reconnect.max_retries.is_none()
    }

    fn young_wait(&self, now: Time) -> Duration {
        (now.since(self.since) / YOUNG_PART).max(SOONEST)
    }

    /// The time within which an address must answer if the next dial follows soon.
    fn lasts(&self, now: Time) -> Duration {
        let part = now.since(self.since) / YOUNG_PART;
        let is_slow = part > SLOW_LASTS && self.dials.is_multiple_of(SLOW_DIAL);
        let usual = match is_slow {
            true => SLOW_LASTS,
            false => part.clamp(YOUNG_LASTS, YOUNG_LASTS_CAP),
        };
        usual.max((self.rtt * 4).min(SLOW_LASTS))
    }
}

/// The peers to dial; see the module's text.
#[derive(Debug, Clone)]
pub struct Introductions {
    candidates: BoundedMap<PeerId, Candidate, MAX_CANDIDATES>,
    attempts: Attempts,
    tokens: u32,
    refilled_at: Time,
    reconnect: Reconnect,
    /// Whether peers are introduced without addresses and reached by a carrier.
    without_addresses: bool,
    rng: ChaCha8Rng,
}

impl Introductions {
    /// No peers to dial yet. `seed` determines the random part of the waits.
    pub fn new(now: Time, reconnect: Reconnect, seed: u64) -> Self {
        Self {
            candidates: BoundedMap::default(),
            attempts: Attempts::default(),
            tokens: BURST,
            refilled_at: now,
            reconnect,
            without_addresses: false,
            rng: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// Switches to a room in which members learn no addresses, such as a star.
    pub fn without_addresses(self) -> Self {
        Self {
            without_addresses: true,
            ..self
        }
    }

    /// From now on peers without addresses are reached by a carrier.
    pub fn take_without_addresses(&mut self) {
        self.without_addresses = true;
    }

    /// Handles an introduction of a peer that is not linked here.
    pub fn introduce(&mut self, now: Time, me: &PeerId, entry: &PeerEntry, source: Source) {
        let known = self.candidates.get(&entry.id);
        let known = known.filter(|known| known.source != Source::Member);
        if source == Source::Member && known.is_some_and(|known| known.key != entry.key) {
            return;
        }
        let wait = if *me < entry.id {
            Duration::ZERO
        } else {
            REDIAL_INTERVAL
        };
        let dial_at = now + wait;
        let (key, addresses) = (entry.key, &entry.addresses);
        self.add(
            now,
            dial_at,
            &entry.id,
            key,
            addresses,
            self.without_addresses,
        );
        if source != Source::Member
            && let Some(candidate) = self.candidates.get_mut(&entry.id)
        {
            candidate.source = source;
        }
    }

    /// Handles a change of the leader: introductions by the former one are those of any member.
    pub fn leader_changed(&mut self) {
        for (_, candidate) in self.candidates.iter_mut() {
            if candidate.source == Source::Leader {
                candidate.source = Source::Member;
            }
        }
    }

    /// The peer that the present leader introduced under an id, if its key is another one.
    pub fn namesake_of(&self, peer: &PeerId, key: Fingerprint) -> Option<PeerEntry> {
        let candidate = self.candidates.get(peer)?;
        let is_other = candidate.key != key && candidate.source == Source::Leader;
        is_other.then(|| PeerEntry {
            id: peer.clone(),
            key: candidate.key,
            addresses: candidate.addresses.clone(),
        })
    }

    /// Handles the loss of a linked peer with that round-trip time: both ends dial it, until `give_up_at`. A peer with a
    /// direct link has answered at the first address; one that was reached by a carrier `may_lack` addresses.
    pub fn lost(
        &mut self,
        now: Time,
        peer: &PeerId,
        key: Fingerprint,
        (addresses, may_lack): (&[SocketAddr], bool),
        rtt: Duration,
        give_up_at: Time,
    ) {
        if let Some(address) = addresses.first() {
            self.attempts.answered(now, *address);
        }
        let wait = self.reconnect.initial;
        let before = self.candidates.remove(peer);
        // A member whose link was carried has only these addresses, if any.
        let before = before.filter(|before| before.key == key && before.direct_again.is_some());
        let may_lack = may_lack || self.without_addresses || before.is_some();
        let (stated, witnesses, known) = before.map_or_else(Default::default, |before| {
            (before.stated, before.witnesses, before.addresses)
        });
        let addresses = [addresses, &known].concat();
        let dial_at = now + self.jittered(wait);
        self.add(now, dial_at, peer, key, &addresses, may_lack);
        if let Some(candidate) = self.candidates.get_mut(peer) {
            candidate.give_up_at = give_up_at;
            candidate.stated = stated;
            candidate.witnesses = witnesses;
            candidate.lost = Some(Lost {
                since: now,
                wait,
                dials: 0,
                rtt,
                woken: None,
            });
        }
    }

    /// Handles the return of a member that was lost at `since`: what cut off the others of its side may be over. The smaller
    /// id dials at once, the larger one a little later.
    pub fn side_returned(&mut self, now: Time, me: &PeerId, since: Time) {
        for (peer, candidate) in self.candidates.iter_mut() {
            let lost = candidate.lost.as_mut().filter(|lost| {
                lost.is_dialled_often(now, self.reconnect) && are_near(lost.since, since)
            });
            let Some(lost) = lost else {
                continue;
            };
            let wait = match me < peer {
                true => Duration::ZERO,
                false => OTHER_END_WAITS,
            };
            if candidate.dialing {
                lost.woken = Some(wait);
                continue;
            }
            let dial_at = candidate.may_wake_at(now + wait);
            candidate.dial_at = Some(candidate.dial_at.map_or(dial_at, |at| at.min(dial_at)));
        }
    }

    fn jittered(&mut self, wait: Duration) -> Duration {
        jittered(wait, &mut self.rng)
    }

    fn add(
        &mut self,
        now: Time,
        dial_at: Time,
        peer: &PeerId,
        key: Fingerprint,
        addresses: &[SocketAddr],
        may_lack: bool,
    ) {
        let addresses: Vec<_> = addresses
            .iter()
            .copied()
            .filter(|address| is_dialable(*address))
            .take(MAX_PEER_ADDRESSES)
            .collect();
        if addresses.is_empty() && !may_lack {
            return;
        }
        if let Some(known) = self.candidates.get_mut(peer)
            && known.key == key
        {
            for address in addresses {
                if !known.addresses.contains(&address) && known.addresses.len() < MAX_PEER_ADDRESSES
                {
                    known.addresses.push(address);
                }
            }
            if known.lost.is_none() {
                known.give_up_at = now + GIVE_UP_AFTER;
            }
            if known.direct_again != Some(Again::Agreed) {
                known.dial_at = Some(known.dial_at.map_or(dial_at, |at| at.min(dial_at)));
            }
            return;
        }
        let candidate = Candidate {
            key,
            source: Source::Member,
            addresses,
            stated: Vec::new(),
            witnesses: BoundedMap::default(),
            dial_at: Some(dial_at),
            dialled_at: None,
            over_relays: None,
            give_up_at: now + GIVE_UP_AFTER,
            dialing: false,
            dials: 0,
            round: None,
            lost: None,
            direct_again: None,
        };
        // Without room the peer is dialled after the next introduction.
        let _ = self.candidates.insert(peer.clone(), candidate);
    }

    /// Handles a peer whose link is carried: it is dialled for a direct one, at the known addresses and at these. With
    /// `agrees` both ends agree on the moments ([`Introductions::dial_for_direct`]); otherwise the waits between the dials
    /// double.
    pub fn linked_by_carrier(
        &mut self,
        now: Time,
        peer: &PeerId,
        key: Fingerprint,
        addresses: &[SocketAddr],
        agrees: bool,
    ) {
        let known = self.candidates.get(peer);
        let known = known.filter(|known| known.key == key && known.direct_again.is_some());
        let is_known = known.is_some();
        let dial_at = match known.map(|known| known.dial_at) {
            // Hearsay brings no dial forward.
            Some(dial_at) => dial_at,
            None if agrees => None,
            None => Some(now + self.jittered(REDIAL_INTERVAL)),
        };
        self.add(now, now, peer, key, addresses, true);
        if let Some(candidate) = self.candidates.get_mut(peer) {
            candidate.dial_at = dial_at;
            if !is_known {
                candidate.direct_again = Some(match agrees {
                    true => Again::Agreed,
                    false => Again::After(REDIAL_INTERVAL),
                });
                candidate.dialing = false;
                candidate.lost = None;
            }
        }
    }

    /// Dials a peer without a link soon, once: a relay can carry packets to it now. The smaller id dials at once, the larger
    /// one a little later if the peer was lost, and otherwise after the usual wait.
    pub fn reachable(&mut self, now: Time, me: &PeerId, peer: &PeerId, key: Fingerprint) {
        let initial = self.reconnect.initial;
        let candidate = self.candidates.get_mut(peer);
        let Some(candidate) = candidate.filter(|known| known.key == key) else {
            return;
        };
        if candidate.direct_again.is_some() {
            return;
        }
        let wait = match candidate.lost {
            _ if me < peer => Duration::ZERO,
            Some(_) => OTHER_END_WAITS,
            None => REDIAL_INTERVAL,
        };
        // A relay cannot make this node dial as often as it likes.
        let rested_at = candidate.dialled_at.map(|at| at + REDIAL_INTERVAL);
        let dial_at = (now + wait).max(rested_at.unwrap_or(now));
        if candidate.dial_at.is_none_or(|at| dial_at < at) {
            candidate.dial_at = Some(dial_at);
            if let Some(lost) = &mut candidate.lost
                && lost.dials == 0
            {
                // The usual first dial follows.
                lost.wait = initial / 2;
            }
        }
    }

    /// Handles a better link with a peer whose link was carried: the dial that brought it, if this node's did, is over.
    pub fn taken_over(&mut self, peer: &PeerId) {
        if let Some(candidate) = self.candidates.get_mut(peer) {
            candidate.dialing = false;
        }
    }

    /// Dials a peer whose link another member carries over relays, too, with waits that double; with `goes` false no more.
    pub fn dial_over_relays(&mut self, now: Time, me: &PeerId, peer: &PeerId, goes: bool) {
        let Some(candidate) = self.candidates.get_mut(peer) else {
            return;
        };
        let wait = match me < peer {
            true => Duration::ZERO,
            false => REDIAL_INTERVAL,
        };
        let rested_at = candidate.dialled_at.map(|at| at + REDIAL_INTERVAL);
        let at = (now + wait).max(rested_at.unwrap_or(now));
        candidate.over_relays = goes.then_some((at, REDIAL_INTERVAL));
    }

    /// Peers that wait to be dialled and have no link.
    pub fn unlinked(&self) -> Vec<(PeerId, Fingerprint)> {
        let candidates = self.candidates.iter();
        let unlinked = candidates.filter(|(_, candidate)| candidate.direct_again.is_none());
        unlinked
            .map(|(peer, candidate)| (peer.clone(), candidate.key))
            .collect()
    }

    /// Whether the limit of dials without an answer allows no other dial of an address that one member names.
    pub fn has_used_up_dials(&self, address: SocketAddr) -> bool {
        !self.attempts.has_tries_left(address, false)
    }

    /// Handles the addresses that a peer with a carried link states itself, best first. Returns whether they are new.
    pub fn stated(&mut self, peer: &PeerId, addresses: &[SocketAddr]) -> bool {
        let Some(candidate) = self.candidates.get_mut(peer) else {
            return false;
        };
        let addresses = addresses.iter().copied();
        let dialable = addresses.filter(|address| is_dialable(*address));
        let stated: Vec<_> = dialable.take(MAX_EXCHANGED_ADDRESSES).collect();
        let is_new = stated.iter().any(|new| !candidate.stated.contains(new));
        candidate.stated = stated;
        is_new
    }

    /// Notes at which address a member sees a peer that waits to be dialled: the first one of its introduction.
    pub fn witnessed(&mut self, by: &PeerId, entry: &PeerEntry) {
        let address = entry.addresses.first().copied();
        if let Some(address) = address.filter(|address| is_dialable(*address))
            && let Some(candidate) = self.candidates.get_mut(&entry.id)
            && candidate.key == entry.key
        {
            // Without room its word does not count.
            let _ = candidate.witnesses.insert(by.clone(), address);
        }
    }

    /// The addresses of a peer that waits to be dialled.
    pub fn addresses_of(&self, peer: &PeerId) -> impl Iterator<Item = SocketAddr> {
        let candidate = self.candidates.get(peer).into_iter();
        candidate.flat_map(|known| known.all_addresses().copied())
    }

    /// Dials a peer with a carried link at that time: both ends have agreed on this round. In every fourth one both dial a
    /// confirmed address even if they have used up their dials, or one would dial while the other waits.
    pub fn dial_for_direct(&mut self, at: Time, peer: &PeerId, round: u32) {
        if let Some(candidate) = self.candidates.get_mut(peer)
            && candidate.direct_again == Some(Again::Agreed)
        {
            candidate.dial_at = Some(at);
            candidate.round = Some(round);
        }
    }

    /// Records that a member has a direct link at that address.
    pub fn answered(&mut self, now: Time, address: SocketAddr) {
        self.attempts.answered(now, address);
    }

    /// Stops dialling a peer, for example because it is linked.
    pub fn forget(&mut self, peer: &PeerId) {
        self.candidates.remove(peer);
    }

    /// Handles a newer incarnation of a peer that was linked or lost: its addresses stay.
    pub fn restarted(&mut self, now: Time, peer: &PeerId) {
        if let Some(candidate) = self.candidates.get_mut(peer) {
            candidate.lost = None;
            candidate.direct_again = None;
            candidate.over_relays = None;
            candidate.round = None;
            candidate.give_up_at = now + GIVE_UP_AFTER;
            let dial_at = now + REDIAL_INTERVAL;
            candidate.dial_at = Some(candidate.dial_at.map_or(dial_at, |at| at.max(dial_at)));
        }
    }

    /// Stops dialling all peers.
    pub fn forget_all(&mut self) {
        self.candidates.clear();
    }

    /// Handles the end of a dial without a link; the dial is repeated later unless the failure is `permanent`. Returns
    /// whether a lost member is given up.
    #[must_use]
    pub fn dial_failed(&mut self, now: Time, peer: &PeerId, permanent: bool) -> bool {
        let Some(candidate) = self.candidates.get_mut(peer) else {
            return false;
        };
        candidate.dialing = false;
        match &mut candidate.direct_again {
            Some(Again::After(wait)) => {
                *wait = (*wait * 2).min(DIRECT_AGAIN_CAP);
                candidate.dial_at = Some(now + jittered(*wait, &mut self.rng));
                return false;
            }
            Some(Again::Agreed) => return false,
            None => {}
        }
        let Some(lost) = candidate.lost else {
            candidate.dial_at = candidate.dial_at.map(|at| at.max(now));
            if permanent {
                self.candidates.remove(peer);
            }
            return false;
        };
        let woken_at = lost.woken.map(|wait| candidate.may_wake_at(now + wait));
        let retries = self.reconnect.max_retries;
        if permanent || retries.is_some_and(|most| lost.dials >= most) {
            self.candidates.remove(peer);
            return true;
        }
        let cap = if lost.is_young(now) {
            self.reconnect.max.min(EARLY_RECONNECT_CAP)
        } else {
            self.reconnect.max
        };
        let wait = (lost.wait * 2).min(cap);
        let wait = match lost.is_dialled_often(now, self.reconnect) {
            true => self.spaced(wait.min(lost.young_wait(now))),
            false => wait,
        };
        let dial_at = woken_at.unwrap_or_else(|| now + self.jittered(wait));
        if let Some(candidate) = self.candidates.get_mut(peer) {
            candidate.dial_at = Some(dial_at);
            candidate.lost = Some(Lost {
                wait,
                woken: None,
                ..lost
            });
        }
        false
    }

    /// `wait`, or longer if all lost members together would be dialled too often.
    fn spaced(&self, wait: Duration) -> Duration {
        let candidates = self.candidates.values();
        let lost = candidates.filter(|known| known.lost.is_some()).count();
        wait.max(YOUNG_SPACING * u32::try_from(lost).unwrap_or(u32::MAX))
    }

    /// Peers that are being dialled and have no link.
    pub fn dialing(&self) -> impl Iterator<Item = &PeerId> {
        self.candidates
            .iter()
            .filter(|(_, candidate)| candidate.dialing && candidate.direct_again.is_none())
            .map(|(id, _)| id)
    }

    /// The time at which [`Introductions::due`] next returns something.
    pub fn next_deadline(&self) -> Option<Time> {
        let next = self
            .candidates
            .values()
            .filter(|candidate| !candidate.dialing)
            .flat_map(|candidate| {
                let direct = match candidate.direct_again {
                    Some(_) => candidate.dial_at,
                    None => candidate.dial_at.map(|at| at.min(candidate.give_up_at)),
                };
                [direct, candidate.over_relays_at()]
            })
            .flatten()
            .min()?;
        Some(if self.tokens == 0 {
            next.max(self.refilled_at + refill_interval())
        } else {
            next
        })
    }

    /// The peers whose dials are due, with the keys that they must show; none if the limit allows no dial now.
    pub fn waiting(&mut self, now: Time) -> Vec<(PeerId, Fingerprint)> {
        self.refill(now);
        if self.tokens == 0 {
            return Vec::new();
        }
        let due = self.candidates.iter();
        let due = due.filter(|(_, candidate)| candidate.is_due(now));
        due.map(|(peer, candidate)| (peer.clone(), candidate.key))
            .collect()
    }

    /// The dials that are due, as many as the limits allow. `ways` returns the ways to reach each of
    /// [`Introductions::waiting`].
    pub fn due(&mut self, now: Time, ways: impl Fn(&PeerId) -> Option<Ways>) -> Vec<Dial> {
        self.refill(now);
        self.candidates.retain(|_, candidate| {
            candidate.dialing || candidate.direct_again.is_some() || now < candidate.give_up_at
        });
        self.attempts.expire(now);
        // The longest wait goes first, so that names that sort early cannot keep others back.
        let mut due: Vec<_> = self
            .candidates
            .iter_mut()
            .filter(|(_, candidate)| candidate.is_due(now))
            .collect();
        due.sort_by_key(|(_, candidate)| candidate.dial_at);
        let mut dials = Vec::new();
        for (peer, candidate) in due {
            if self.tokens == 0 {
                break;
            }
            let Some(Ways {
                direct,
                mut carriers,
            }) = ways(peer)
            else {
                continue;
            };
            let is_due = candidate.dial_at.is_some_and(|at| now >= at);
            if candidate.direct_again.is_some() {
                let relays_due = candidate.relays_due(now);
                carriers.retain(|carrier| relays_due && carrier.kind() == CarrierKind::Relay);
                let wait = candidate.over_relays.map(|(_, wait)| wait);
                // It goes on when the peer is present at a relay again.
                let wait = wait.filter(|_| !relays_due || !carriers.is_empty());
                candidate.over_relays = match wait {
                    Some(wait) if relays_due => {
                        Some((now + wait, (wait * 2).min(DIRECT_AGAIN_CAP)))
                    }
                    Some(_) => candidate.over_relays,
                    None => None,
                };
            }
            let addresses = match direct && is_due {
                true => candidate.addresses_due(now, &self.attempts),
                false => Vec::new(),
            };
            // An address at which a member has answered needs no carrier: it is dialled as soon as it has rested.
            let rested_at = candidate.rested_at(&self.attempts).filter(|_| direct);
            let must_wait = rested_at.is_some() && candidate.direct_again.is_none();
            if addresses.is_empty() && (carriers.is_empty() || must_wait) {
                candidate.dial_at = match candidate.direct_again {
                    _ if !is_due => candidate.dial_at,
                    Some(Again::Agreed) => None,
                    _ => Some(
                        rested_at
                            .filter(|at| *at > now)
                            .unwrap_or(now + REDIAL_INTERVAL),
                    ),
                };
                continue;
            }
            if let Some(lost) = &mut candidate.lost {
                lost.dials += 1;
            }
            self.tokens -= 1;
            for address in &addresses {
                self.attempts.dialled(now, address.at);
            }
            candidate.dials += 1;
            candidate.dialing = true;
            candidate.dialled_at = Some(now);
            candidate.dial_at = match candidate.direct_again {
                _ if !is_due => candidate.dial_at,
                Some(Again::Agreed) => None,
                _ => Some(now + REDIAL_INTERVAL),
            };
            let answers_soon = |at: &DialAddress| at.has_answered || !is_global(at.at.ip());
            let is_round = is_due && candidate.direct_again == Some(Again::Agreed);
            let often = candidate
                .lost
                .filter(|lost| lost.is_dialled_often(now, self.reconnect));
            let often = often.map(|lost| lost.lasts(now));
            dials.push(Dial {
                peer: peer.clone(),
                key: candidate.key,
                relays_at_once: candidate.lost.is_some() || !addresses.iter().any(answers_soon),
                addresses,
                carriers,
                lasts: often.or_else(|| candidate.round.filter(|_| is_round).map(lasts)),
                // Two links instead of one.
                carried_lasts: often.map(|lasts| lasts * 2),
            });
        }
        dials
    }

    fn refill(&mut self, now: Time) {
        while self.tokens < BURST && self.refilled_at + refill_interval() <= now {
            self.tokens += 1;
            self.refilled_at = self.refilled_at + refill_interval();
        }
        if self.tokens == BURST {
            self.refilled_at = now;
        }
    }
}

fn lasts(round: u32) -> Duration {
    match round {
        0 => FIRST_ROUND_LASTS,
        _ => ROUND_LASTS,
    }
}

/// Whether two losses may have one cause.
fn are_near(one: Time, other: Time) -> bool {
    one.since(other).max(other.since(one)) <= SIDE_WINDOW
}

/// `wait` plus or minus up to a quarter.
fn jittered(wait: Duration, rng: &mut ChaCha8Rng) -> Duration {
    wait * rng.random_range(75..=125) / 100
}

fn refill_interval() -> Duration {
    Duration::from_micros(1_000_000 / DIALS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(_: &PeerId) -> Option<Ways> {
        Some(Ways {
            direct: true,
            carriers: Vec::new(),
        })
    }

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1000)
    }

    fn id(name: &str) -> PeerId {
        PeerId::new(name).expect("valid")
    }

    fn introductions_at_0() -> Introductions {
        Introductions::new(at(0), Reconnect::default(), 1)
    }

    fn entry(name: &str, addresses: &[&str]) -> PeerEntry {
        PeerEntry {
            id: id(name),
            key: Fingerprint([1; 32]),
            addresses: addresses
                .iter()
                .map(|text| text.parse().expect("an address"))
                .collect(),
        }
    }

    #[test]
    fn the_smaller_id_dials_at_once_and_the_larger_after_two_seconds() {
        let mut smaller = introductions_at_0();
        smaller.introduce(
            at(0),
            &id("a"),
            &entry("b", &["127.0.0.1:1"]),
            Source::Member,
        );
        assert_eq!(smaller.due(at(0), direct).len(), 1);
        let mut larger = introductions_at_0();
        larger.introduce(
            at(0),
            &id("c"),
            &entry("b", &["127.0.0.1:1"]),
            Source::Member,
        );
        assert_eq!(larger.due(at(0), direct).len(), 0);
        assert_eq!(larger.next_deadline(), Some(at(2000)));
        assert_eq!(larger.due(at(2000), direct).len(), 1);
    }

    #[test]
    fn a_namesake_is_the_peer_that_the_present_leader_introduced_with_another_key() {
        let (own, other) = (Fingerprint([1; 32]), Fingerprint([2; 32]));
        for (source, is_namesake) in [
            (Source::Leader, true),
            (Source::Own, false),
            (Source::Member, false),
        ] {
            let mut introductions = introductions_at_0();
            introductions.introduce(at(0), &id("a"), &entry("b", &["10.0.0.1:1"]), source);
            assert_eq!(introductions.namesake_of(&id("b"), own), None);
            let namesake = introductions.namesake_of(&id("b"), other);
            assert_eq!(namesake.is_some(), is_namesake, "{source:?}");
            introductions.leader_changed();
            assert_eq!(introductions.namesake_of(&id("b"), other), None);
        }
    }

    #[test]
    fn a_member_does_not_replace_the_key_that_the_leader_introduced() {
        let right = entry("b", &["10.0.0.1:1"]);
        let wrong = PeerEntry {
            key: Fingerprint([2; 32]),
            ..right.clone()
        };
        let sources = [Source::Leader, Source::Member];
        for (order, keys) in [
            ([(&right, sources[0]), (&wrong, sources[1])], right.key),
            ([(&wrong, sources[1]), (&right, sources[0])], right.key),
            ([(&right, sources[1]), (&wrong, sources[1])], wrong.key),
        ] {
            let mut introductions = introductions_at_0();
            for (entry, source) in order {
                introductions.introduce(at(0), &id("a"), entry, source);
            }
            let dialled = introductions.due(at(0), direct);
            assert_eq!(
                dialled.iter().map(|dial| dial.key).collect::<Vec<_>>(),
                [keys]
            );
        }
    }

    #[test]
    fn introductions_are_spread_out() {
        let mut introductions = introductions_at_0();
        for n in 0..100 {
            let address = format!("10.0.0.{n}:1");
            introductions.introduce(
                at(0),
                &id("a"),
                &entry(&format!("p{n:03}"), &[&address]),
                Source::Member,
            );
        }
        assert_eq!(introductions.due(at(0), direct).len(), 16);
        assert_eq!(introductions.due(at(999), direct).len(), 15);
        assert_eq!(introductions.due(at(1000), direct).len(), 1);
    }

    #[test]
    fn names_that_sort_early_do_not_keep_others_back() {
        let mut introductions = introductions_at_0();
        introductions.introduce(
            at(0),
            &id("a"),
            &entry("z", &["10.0.0.2:1"]),
            Source::Member,
        );
        introductions.due(at(0), direct);
        assert!(!introductions.dial_failed(at(0), &id("z"), false));
        for n in 0..200 {
            let address = format!("10.0.0.1:{}", 1000 + n);
            let name = format!("b{n:03}");
            introductions.introduce(at(1), &id("a"), &entry(&name, &[&address]), Source::Member);
        }
        let mut dialled = Vec::new();
        for ms in (1..30_000).step_by(100) {
            for dial in introductions.due(at(ms), direct) {
                assert!(!introductions.dial_failed(at(ms), &dial.peer, false));
                dialled.push(dial.peer);
            }
        }
        assert!(dialled.contains(&id("z")), "16 a second, 200 waiting");
    }

    #[test]
    fn one_address_is_dialled_once_in_two_seconds_under_any_name() {
        let mut introductions = introductions_at_0();
        for name in ["b", "c", "d"] {
            introductions.introduce(
                at(0),
                &id("a"),
                &entry(name, &["192.0.2.1:7"]),
                Source::Member,
            );
        }
        assert_eq!(introductions.due(at(0), direct).len(), 1);
        assert_eq!(introductions.due(at(1999), direct).len(), 0);
        assert_eq!(introductions.due(at(2000), direct).len(), 1);
    }

    #[test]
    fn only_a_first_packet_brings_the_second_round_of_an_unproven_address_forward() {
        let mut introductions = introductions_at_0();
        let (b, unproven) = (id("b"), [address("192.0.2.1:7")]);
        introductions.linked_by_carrier(at(0), &b, entry("b", &[]).key, &unproven, true);
        let mut dial = |ms, round| {
            introductions.dial_for_direct(at(ms), &b, round);
            let dialled = introductions.due(at(ms), direct);
            assert!(!introductions.dial_failed(at(ms), &b, false));
            dialled.first().and_then(|dial| dial.lasts)
        };
        let (first, later) = (Some(FIRST_ROUND_LASTS), Some(ROUND_LASTS));
        // Whatever number a peer gives to its rounds.
        for (ms, round, expected) in [
            (0, 0, first),
            (499, 1, None),
            (500, 1, later),
            (1_000, 1, None),
            (2_499, 1, None),
            (2_500, 1, later),
            (4_500, 0, first),
            (100_000, 1, None),
        ] {
            assert_eq!(dial(ms, round), expected, "round {round} after {ms} ms");
        }
    }

    #[test]
    fn a_dial_over_relays_of_an_earlier_incarnation_is_not_waited_for() {
        let mut introductions = introductions_at_0();
        let (b, known) = (id("b"), [address("192.0.2.1:7")]);
        introductions.linked_by_carrier(at(0), &b, entry("b", &[]).key, &known, true);
        introductions.dial_over_relays(at(0), &id("a"), &b, true);
        introductions.restarted(at(1_000), &b);
        let no_way = |_: &PeerId| {
            Some(Ways {
                direct: true,
                carriers: Vec::new(),
            })
        };
        for ms in (1_000..60_000).step_by(100) {
            for dial in introductions.due(at(ms), no_way) {
                assert!(!introductions.dial_failed(at(ms), &dial.peer, false));
            }
            let next = introductions.next_deadline();
            assert!(next.is_none_or(|next| next > at(ms)), "{next:?} at {ms}");
        }
    }

    #[test]
    fn a_member_linked_through_the_leader_is_dialled_with_waits_that_double_up_to_thirty_seconds() {
        let mut introductions = introductions_at_0();
        let key = entry("b", &[]).key;
        let known = [address("192.0.2.1:7")];
        introductions.answered(at(0), known[0]);
        introductions.linked_by_carrier(at(0), &id("b"), key, &known, false);
        let mut dialled = Vec::new();
        for ms in (0..120_000).step_by(10) {
            for dial in introductions.due(at(ms), direct) {
                assert_eq!(dial.carriers, [] as [Carrier; 0]);
                assert!(!introductions.dial_failed(at(ms), &dial.peer, false));
                dialled.push(ms);
            }
            // Repeated introductions change nothing.
            introductions.linked_by_carrier(at(ms), &id("b"), key, &known, false);
        }
        let waits = dialled.windows(2).map(|pair| pair[1] - pair[0]);
        let expected = [4_000, 8_000, 16_000, 30_000, 30_000];
        assert!((1_500..=2_500).contains(&dialled[0]), "{dialled:?}");
        for (wait, expected) in waits.zip(expected) {
            assert!(
                (expected * 3 / 4..=expected * 5 / 4 + 10).contains(&wait),
                "{dialled:?}"
            );
        }
        assert!(dialled.len() >= 5, "{dialled:?}");
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn some_addresses_are_never_dialled() {
        let mut introductions = introductions_at_0();
        for (n, bad) in [
            "0.0.0.0:5",
            "255.255.255.255:5",
            "224.0.0.1:5",
            "[ff02::1]:5",
            "[::]:5",
            "127.0.0.1:0",
            "[::ffff:224.0.0.1]:5",
        ]
        .into_iter()
        .enumerate()
        {
            introductions.introduce(
                at(0),
                &id("a"),
                &entry(&format!("b{n}"), &[bad]),
                Source::Member,
            );
        }
        assert_eq!(introductions.due(at(5000), direct), vec![]);
    }

    #[test]
    fn the_list_is_bounded_and_the_unreachable_are_forgotten() {
        let mut introductions = introductions_at_0();
        for n in 0..3000 {
            let address = format!("10.0.0.1:{}", 1000 + n);
            introductions.introduce(
                at(0),
                &id("a"),
                &entry(&format!("p{n}"), &[&address]),
                Source::Member,
            );
        }
        assert_eq!(introductions.candidates.len(), MAX_CANDIDATES);
        introductions.due(at(60_000), direct);
        assert_eq!(introductions.candidates.len(), 0);
    }

    #[test]
    fn all_addresses_are_dialled_at_once_and_again_after_two_seconds() {
        let mut introductions = introductions_at_0();
        introductions.introduce(
            at(0),
            &id("a"),
            &entry("b", &["10.0.0.1:1", "10.0.0.2:1"]),
            Source::Member,
        );
        assert_eq!(
            introductions.due(at(0), direct).remove(0).addresses.len(),
            2
        );
        assert!(!introductions.dial_failed(at(100), &id("b"), false));
        assert_eq!(introductions.due(at(100), direct), vec![]);
        assert_eq!(
            introductions
                .due(at(2000), direct)
                .remove(0)
                .addresses
                .len(),
            2
        );
        assert!(!introductions.dial_failed(at(2100), &id("b"), true));
        assert_eq!(introductions.next_deadline(), None);
    }

    /// Times of the dials of a lost member when all dials fail at once.
    fn dials_of_a_lost_member(reconnect: Reconnect, until_ms: u64) -> Vec<u64> {
        let mut introductions = Introductions::new(at(0), reconnect, 1);
        let address = ["10.0.0.1:1".parse().expect("an address")];
        introductions.lost(
            at(0),
            &id("b"),
            Fingerprint([1; 32]),
            (&address, false),
            Duration::ZERO,
            at(until_ms),
        );
        let mut dials = Vec::new();
        while let Some(now) = introductions.next_deadline() {
            for dial in introductions.due(now, direct) {
                dials.push(now.as_micros() / 1000);
                if introductions.dial_failed(now, &dial.peer, false) {
                    return dials;
                }
            }
        }
        dials
    }

    #[test]
    fn a_lost_member_is_dialled_less_often_with_age_and_at_last_every_two_seconds() {
        let reconnect = Reconnect {
            initial: Duration::from_millis(100),
            ..Reconnect::default()
        };
        let dials = dials_of_a_lost_member(reconnect, 40_000);
        let mut before = 0;
        for (number, at) in dials.iter().enumerate() {
            let plain = match number {
                0 => 100,
                1 => 200,
                _ => (before / 8).clamp(250, 2000),
            };
            let (least, most) = (plain * 75 / 100, plain * 125 / 100 + 1);
            assert!((least..=most).contains(&(at - before)), "{dials:?}");
            before = *at;
        }
        assert!(before > 37_000, "{dials:?}");
    }

    #[test]
    fn a_hundred_lost_members_are_dialled_eight_times_a_second() {
        let mut introductions = Introductions::new(at(0), Reconnect::default(), 1);
        let address = ["10.0.0.1:1".parse().expect("an address")];
        for number in 0..100 {
            introductions.lost(
                at(0),
                &id(&format!("p{number}")),
                Fingerprint([1; 32]),
                (&address, false),
                Duration::ZERO,
                at(100_000),
            );
        }
        let mut dials = Vec::new();
        while let Some(now) = introductions
            .next_deadline()
            .filter(|now| *now < at(60_000))
        {
            for dial in introductions.due(now, direct) {
                dials.push(now.as_micros() / 1000);
                let _ = introductions.dial_failed(now, &dial.peer, false);
            }
        }
        // The first ones come together.
        let later = dials.iter().filter(|at| (20_000..60_000).contains(*at));
        let each_second = later.count() / 40;
        assert!((6..=10).contains(&each_second), "{each_second}");
    }

    #[test]
    fn a_lost_member_is_given_up_after_the_last_retry() {
        let reconnect = Reconnect {
            max_retries: Some(3),
            ..Reconnect::default()
        };
        assert_eq!(dials_of_a_lost_member(reconnect, 60_000).len(), 3);
    }

    #[test]
    fn the_wait_for_a_lost_member_grows_beyond_two_seconds_after_the_first_minute() {
        let dials = dials_of_a_lost_member(Reconnect::default(), 200_000);
        let early = dials.iter().filter(|at| **at < 60_000).count();
        let late = dials.iter().filter(|at| **at > 100_000).count();
        assert!(early >= 24 && late <= 5, "{dials:?}");
    }
}
