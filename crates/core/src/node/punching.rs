//! Punching: both ends of a carried link dial each other at the same time, so that the first packet of each opens its
//! router for the other. A router that admits only answers admits nothing else.
//!
//! The ends exchange their addresses over the carried link, which the carrier cannot read. The smaller id begins each
//! round with a [`Message::Punch`]; the larger one answers and dials at once, and the smaller one dials when the answer
//! arrives. The packets of the dials are the first ones of ordinary links. A round that fails costs one packet
//! for each address that never answered.

use super::*;
use crate::address::is_of_one_machine;
use crate::wire::MAX_EXCHANGED_ADDRESSES;

/// The waits before the first rounds; further ones follow after the last wait, again and again.
const WAITS: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_secs(2),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];
/// Minimum time between two lists of addresses to one peer, and between two lists of a peer that begin the rounds anew.
const BETWEEN_LISTS: Duration = Duration::from_secs(1);
const BETWEEN_NEW_BEGINNINGS: Duration = Duration::from_secs(10);
/// Minimum time between two rounds of a peer; earlier ones are ignored.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(1500);
/// Longest wait for the answer to a [`Message::Punch`].
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);

impl Node {
    /// Begins to look for a direct path to a peer whose link is carried.
    pub(super) fn begin_punching(&mut self, now: Time, peer: &PeerId) {
        if self.punches_with(peer) {
            self.send_addresses(now, peer);
        }
    }

    fn punches_with(&self, peer: &PeerId) -> bool {
        let member = self.membership.get(peer);
        let is_able = |member: &Member| !member.path.is_direct() && member.knows_paths();
        !self.is_star() && member.is_some_and(is_able)
    }

    /// Sends this node's addresses to the ends of carried links, if they have changed.
    pub(super) fn send_changed_addresses(&mut self, now: Time) {
        for peer in self.membership.ids() {
            if self.punches_with(&peer) {
                self.send_addresses(now, &peer);
            }
        }
    }

    fn send_addresses(&mut self, now: Time, peer: &PeerId) {
        let theirs: Vec<_> = self.introductions.addresses_of(peer).collect();
        let addresses = self.addresses_for(&theirs);
        let Some(member) = self.membership.get_mut(peer) else {
            return;
        };
        let is_due = member
            .punching
            .sent
            .as_ref()
            .is_none_or(|(sent, at)| *sent != addresses && now.since(*at) >= BETWEEN_LISTS);
        if is_due {
            member.punching.sent = Some((addresses.clone(), now));
            self.transmit_with(peer, Message::Addresses(addresses), false);
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
        let punching = &mut member.punching;
        let is_early = punching
            .began
            .is_some_and(|at| now.since(at) < BETWEEN_NEW_BEGINNINGS);
        // Others may have named its addresses even if it knows none.
        let is_first = punching.began.is_none();
        if begins && (is_new || is_first) && !is_early {
            punching.began = Some(now);
            punching.round = 0;
            punching.due = Some(now + WAITS[0]);
        }
        // They may show that both are in one network.
        self.send_addresses(now, from);
    }

    pub(super) fn punching_deadline(&self) -> Option<Time> {
        let members = self.membership.iter();
        members.filter_map(|(_, member)| member.punching.due).min()
    }

    /// Begins the rounds that are due.
    pub(super) fn punches_due(&mut self, now: Time) {
        for peer in self.membership.ids() {
            let Some(member) = self.membership.get_mut(&peer) else {
                continue;
            };
            let punching = &mut member.punching;
            if punching.due.is_none_or(|due| now < due) {
                continue;
            }
            let round = punching.round;
            punching.round = round.saturating_add(1);
            punching.asked = Some((round, now));
            let next = usize::try_from(punching.round).unwrap_or(usize::MAX);
            punching.due = Some(now + WAITS[next.min(WAITS.len() - 1)]);
            let is_answer = false;
            self.transmit(&peer, Message::Punch { round, is_answer });
        }
    }

    /// Handles the beginning of a round, or its answer.
    pub(super) fn punch(&mut self, now: Time, from: &PeerId, round: u32, is_answer: bool) {
        if !self.punches_with(from) || is_answer != (self.me < *from) {
            return;
        }
        let Some(member) = self.membership.get_mut(from) else {
            return;
        };
        let punching = &mut member.punching;
        if is_answer {
            let asked = punching.asked.take_if(|(asked, _)| *asked == round);
            // The peer's first packet has travelled about as long as its answer; this node's first one finds the peer's
            // router open.
            if asked.is_some_and(|(_, at)| now.since(at) < ANSWERED_WITHIN) {
                self.introductions.dial_for_direct(now, from, round);
            }
        } else {
            let last = punching.answered;
            if last.is_some_and(|at| now.since(at) < BETWEEN_ROUNDS) {
                return;
            }
            punching.answered = Some(now);
            let is_answer = true;
            self.transmit(from, Message::Punch { round, is_answer });
            self.introductions.dial_for_direct(now, from, round);
        }
    }
}
