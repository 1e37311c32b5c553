//! Punching: both ends of a carried link dial each other at the same time, so that the first packet of each opens its
//! router for the other. A router that admits only answers admits nothing else.
//!
//! The ends exchange their addresses over the carried link, which the carrier cannot read. The smaller id begins each
//! round with a [`Message::Punch`]; the larger one answers and dials at once, and the smaller one dials when the answer
//! arrives. The packets of the dials are the first ones of ordinary links. A round that fails costs one packet
//! for each address that never answered.

use super::*;
use crate::address::{is_dialable, is_of_one_machine};
use crate::bounded::BoundedMap;
use crate::path_search::{Ends, Flapping, TakeOver};
use crate::wire::MAX_EXCHANGED_ADDRESSES;

/// The waits before the first rounds; further ones follow after the last wait, again and again.
const WAITS: [Duration; 6] = [
    Duration::from_millis(100),
    // Some pairs need two packets of one end: the first of each only opens a router, and one of them cannot pass the other's,
    // which maps its port anew.
    Duration::from_millis(600),
    Duration::from_secs(2),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];
/// Lists of addresses that a peer gets at once, and the time for each further one. The second list of a search often follows
/// the first: the peer's list shows that both are in one network.
const FIRST_LISTS: u32 = 2;
const BETWEEN_LISTS: Duration = Duration::from_secs(1);
/// Most members whose last lists a node remembers.
const MAX_LISTED: usize = 1024;
/// Minimum time between two lists of a peer that begin the rounds anew.
const BETWEEN_NEW_BEGINNINGS: Duration = Duration::from_secs(10);
/// Rounds of a peer that are answered at once, and the time for each further one; earlier ones are ignored.
const FIRST_ROUNDS: u32 = 2;
const BETWEEN_ROUNDS: Duration = Duration::from_millis(1500);
/// Rounds after which a peer gets this node's address at a TURN server, too: a pair that can do without has linked by then.
const ROUNDS_WITHOUT_TURN: u32 = 4;
/// Longest wait for the answer to a [`Message::Punch`].
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);

/// A direct link that took over from one over a relay and is lost sooner than this did not last.
const LASTS: Duration = Duration::from_secs(60);
/// The waits after the first, second and third direct link that did not last, and after each further one.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
];
/// Most members whose direct links did not last that a node remembers.
const MAX_FLAPPING: usize = 256;

/// The rates of the lists of addresses to members. A peer that makes the search begin again, with a new link or a new session,
/// gets no more of them.
#[derive(Debug, Default)]
pub(super) struct Lists(BoundedMap<Fingerprint, Pace, MAX_LISTED>);

impl Lists {
    /// Whether another list may be sent to the holder of a key, which counts as sent then.
    fn take(&mut self, now: Time, key: Fingerprint) -> bool {
        if !self.0.contains_key(&key) {
            let pace = Pace::new(now, FIRST_LISTS, BETWEEN_LISTS);
            self.0.insert_over(key, pace, |_, pace| pace.next());
        }
        self.0.get_mut(&key).is_some_and(|pace| pace.take(now))
    }
}

/// Members whose direct links did not last. Each change between a relay and a direct path may cost an election; a link over
/// the relay costs none.
#[derive(Debug, Default)]
pub(super) struct Pauses(BoundedMap<Fingerprint, Flapping, MAX_FLAPPING>);

impl Pauses {
    /// The time from which a direct path to the holder of a key is looked for.
    pub(super) fn until(&self, key: Fingerprint) -> Option<Time> {
        self.0.get(&key).map(|flapping| flapping.until)
    }

    /// Handles the loss of a direct link that had taken over.
    fn lost(&mut self, now: Time, key: Fingerprint, took_over: TakeOver) {
        if now.since(took_over.at) >= LASTS {
            self.0.remove(&key);
            return;
        }
        let before = self.0.get(&key).map_or(0, |flapping| flapping.count);
        let flapping = Flapping {
            count: before + 1,
            until: now + PAUSES[before.min(PAUSES.len() - 1)],
            ends: took_over.ends,
        };
        self.0
            .insert_over(key, flapping, |_, flapping| flapping.until);
    }

    /// Ends a pause if an address of either end has changed since: that is why the link did not last. Returns whether it
    /// has ended one.
    fn end_if_moved(&mut self, now: Time, key: Fingerprint, ends: &Ends) -> bool {
        let Some(flapping) = self.0.get_mut(&key).filter(|one| now < one.until) else {
            return false;
        };
        let has_moved = flapping.ends.as_ref().is_some_and(|before| before != ends);
        if has_moved {
            flapping.until = now;
        }
        has_moved
    }
}

impl Node {
    /// Handles the loss of a member's link: if it was direct and did not last, the next search for one waits.
    pub(super) fn note_lost_path(&mut self, now: Time, peer: &PeerId) {
        let member = self.membership.direct(peer);
        let took_over = member.and_then(|member| Some((member.key, member.took_over.clone()?)));
        if let Some((key, took_over)) = took_over {
            self.pauses.lost(now, key, took_over);
        }
    }

    /// Begins to look for a direct path to a peer whose link is carried.
    pub(super) fn begin_punching(&mut self, now: Time, peer: &PeerId) {
        if self.punches_with(peer) {
            self.send_addresses(now, peer);
        }
    }

    fn punches_with(&self, peer: &PeerId) -> bool {
        let member = self.membership.get(peer);
        let is_able = |member: &Member| !member.path.is_direct() && member.knows_paths();
        self.searches_direct_paths() && member.is_some_and(is_able)
    }

    /// Sends this node's addresses to the ends of carried links, if they have changed since, or a list had to wait.
    pub(super) fn send_changed_addresses(&mut self, now: Time) {
        for peer in self.membership.ids() {
            if self.punches_with(&peer) {
                self.send_addresses(now, &peer);
            }
        }
    }

    fn send_addresses(&mut self, now: Time, peer: &PeerId) {
        let theirs: Vec<_> = self.introductions.addresses_of(peer).collect();
        let mut addresses = self.addresses_for(&theirs);
        let member = self.membership.get(peer);
        if member.is_some_and(|member| member.punching.needs_turn) {
            self.add_turn_address(&mut addresses, &theirs);
        }
        let mapped = self.mapping.address();
        let Some(member) = self.membership.get_mut(peer) else {
            return;
        };
        let has_changed = member.punching.sent.as_ref() != Some(&addresses);
        if has_changed && !self.lists.take(now, member.key) {
            return;
        }
        // The list may stay: others may have seen this node at the address before the router mapped it.
        let is_newly_mapped = member.punching.note_mapped(mapped);
        let begins = self.me < *peer && member.punching.stated.is_some();
        if has_changed {
            member.punching.sent = Some(addresses.clone());
            self.transmit_with(peer, Message::Addresses(addresses), false);
            self.end_pause_if_moved(now, peer);
        }
        if is_newly_mapped && begins {
            self.begin_rounds(now, peer);
        }
    }

    /// Begins the rounds with a peer anew if an address of either end has changed since their last direct link.
    fn end_pause_if_moved(&mut self, now: Time, peer: &PeerId) {
        let Some(member) = self.membership.get_mut(peer) else {
            return;
        };
        let ends = member.punching.ends();
        if ends.is_some_and(|ends| self.pauses.end_if_moved(now, member.key, &ends))
            && self.me < *peer
        {
            self.begin_anew(now, peer);
        }
    }

    /// Handles the addresses of a peer whose link is carried.
    pub(super) fn addresses_received(
        &mut self,
        now: Time,
        from: &PeerId,
        addresses: Vec<SocketAddr>,
    ) {
        if addresses.len() > MAX_EXCHANGED_ADDRESSES {
            self.violation(now, from, "a list of addresses is longer than allowed");
            return;
        }
        if !self.punches_with(from) {
            return;
        }
        let addresses: Vec<_> = addresses
            .into_iter()
            .filter(|address| !is_of_one_machine(*address))
            .collect();
        let is_new = self.introductions.stated(from, &addresses);
        let begins = self.me < *from;
        let Some(member) = self.membership.get_mut(from) else {
            return;
        };
        member.punching.stated = Some(addresses);
        // Others may have named its addresses even if it knows none.
        let is_first = member.punching.began.is_none();
        if begins && (is_new || is_first) {
            self.begin_rounds(now, from);
        }
        self.end_pause_if_moved(now, from);
        // They may show that both are in one network.
        self.send_addresses(now, from);
    }

    /// Begins the rounds with a peer anew, unless they have begun a short time ago.
    fn begin_rounds(&mut self, now: Time, peer: &PeerId) {
        let began = self
            .membership
            .get(peer)
            .and_then(|member| member.punching.began);
        if began.is_none_or(|at| now.since(at) >= BETWEEN_NEW_BEGINNINGS) {
            self.begin_anew(now, peer);
        }
    }

    /// Begins the rounds with a peer anew, after a pause if there is one.
    fn begin_anew(&mut self, now: Time, peer: &PeerId) {
        if let Some(member) = self.membership.get_mut(peer) {
            let paused_until = self.pauses.until(member.key).unwrap_or(now);
            member.punching.began = Some(now.max(paused_until));
            member.punching.round = 0;
            member.punching.due = Some((now + WAITS[0]).max(paused_until));
        }
    }

    /// Begins the rounds that are due.
    pub(super) fn punches_due(&mut self, now: Time) {
        for peer in self.membership.rounds_due(now) {
            let Some(member) = self.membership.get_mut(&peer) else {
                continue;
            };
            let punching = &mut member.punching;
            let round = punching.round;
            punching.round = round.saturating_add(1);
            punching.asked = Some((round, now));
            let next = usize::try_from(punching.round).unwrap_or(usize::MAX);
            punching.due = Some(now + WAITS[next.min(WAITS.len() - 1)]);
            let is_answer = false;
            self.transmit(&peer, Message::Punch { round, is_answer });
            self.consider_turn(now, &peer, round);
        }
    }

    /// Sends a peer this node's address at a TURN server, if it has one and enough rounds have failed.
    fn consider_turn(&mut self, now: Time, peer: &PeerId, round: u32) {
        if self.turn_address.is_none() || round < ROUNDS_WITHOUT_TURN {
            return;
        }
        if let Some(member) = self.membership.get_mut(peer)
            && !std::mem::replace(&mut member.punching.needs_turn, true)
        {
            self.send_addresses(now, peer);
        }
    }

    /// Handles another address of this node at a TURN server, or the loss of it.
    pub(super) fn turn_changed(&mut self, now: Time, address: Option<SocketAddr>) {
        self.turn_address = address.filter(|at| is_dialable(*at));
        self.send_changed_addresses(now);
    }

    /// Handles the beginning of a round, or its answer.
    pub(super) fn punch(&mut self, now: Time, from: &PeerId, round: u32, is_answer: bool) {
        if !self.punches_with(from) || is_answer != (self.me < *from) {
            return;
        }
        let Some(member) = self.membership.get_mut(from) else {
            return;
        };
        if self.pauses.until(member.key).is_some_and(|at| now < at) {
            return;
        }
        let punching = &mut member.punching;
        if is_answer {
            let asked = punching.asked.take_if(|(asked, _)| *asked == round);
            // The peer's first packet has travelled about as long as its answer; this node's first one finds the peer's
            // router open.
            if asked.is_some_and(|(_, at)| now.since(at) < ANSWERED_WITHIN) {
                self.dial_in_round(now, from, round);
            }
        } else {
            let paced = || Pace::new(now, FIRST_ROUNDS, BETWEEN_ROUNDS);
            if !punching.rounds.get_or_insert_with(paced).take(now) {
                return;
            }
            let is_answer = true;
            self.transmit(from, Message::Punch { round, is_answer });
            self.dial_in_round(now, from, round);
            self.consider_turn(now, from, round);
        }
    }

    fn dial_in_round(&mut self, now: Time, peer: &PeerId, round: u32) {
        if let Some(member) = self.membership.get_mut(peer) {
            member.observations.has_been_dialled = true;
            member.punching.note_round(now);
        }
        self.introductions.dial_for_direct(now, peer, round);
    }
}
