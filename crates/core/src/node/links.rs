//! The states of a peer: linked, lost with its place kept, returned, gone.

use super::*;
use crate::address::is_of_one_machine;
use crate::introductions::Source;
use crate::path_search::TakeOver;
use crate::wire::{HostMode, MAX_REASON_BYTES};

/// A lost member whose place is kept. There are at most `max_connections`.
#[derive(Debug, Clone)]
pub(super) struct Absent {
    pub(super) incarnation: Incarnation,
    pub(super) key: Fingerprint,
    /// The address at which it accepted links.
    pub(super) address: Option<SocketAddr>,
    pub(super) is_host: bool,
    newest_heartbeat: Option<u64>,
    /// The end of its last link.
    pub(super) since: Time,
    hold_until: Time,
    /// Whether the room is over for it: it does not return. Its departure waits for the reason until `hold_until`.
    pub(super) ended: bool,
}

/// Longest delay of the news of a member: members that enter meanwhile are on the same lists.
const NEWS_DELAY: Duration = Duration::from_millis(50);
/// Longest time for which the departure of a member whose room is over waits for the leader's reason, or for the end of
/// this node's own room: both are under way when the member closes its links.
const REASON_LIMIT: Duration = Duration::from_secs(1);

impl Node {
    /// Lost members whose places are kept.
    pub fn absent(&self) -> impl Iterator<Item = &PeerId> {
        self.absent_peers().map(|(peer, ..)| peer)
    }

    /// Lost members whose places are kept, with their keys and the addresses at which they accepted links.
    pub fn absent_peers(&self) -> impl Iterator<Item = (&PeerId, Fingerprint, Option<SocketAddr>)> {
        self.unlinked(false)
    }

    /// Members whose room is over and whose departure this host is about to receive. To the host they are still here.
    pub fn ended_peers(&self) -> impl Iterator<Item = (&PeerId, Fingerprint, Option<SocketAddr>)> {
        self.unlinked(true)
    }

    fn unlinked(
        &self,
        ended: bool,
    ) -> impl Iterator<Item = (&PeerId, Fingerprint, Option<SocketAddr>)> {
        let absent = self.absent.iter();
        let those = absent.filter(move |(_, absent)| absent.ended == ended);
        those.map(|(peer, absent)| (peer, absent.key, absent.address))
    }

    /// Whether the room is over for that incarnation, whose departure this host is about to receive.
    pub(super) fn has_ended(
        &self,
        peer: &PeerId,
        key: Fingerprint,
        incarnation: Incarnation,
    ) -> bool {
        let absent = self.absent.get(peer);
        absent.is_some_and(|absent| {
            absent.ended && absent.key == key && incarnation <= absent.incarnation
        })
    }

    /// The key and the incarnation to which an id is bound: those of a member, linked or lost.
    pub(super) fn id_holder(&self, peer: &PeerId) -> Option<(Fingerprint, Incarnation)> {
        let linked = self.membership.get(peer);
        let linked = linked.map(|member| (member.key, member.incarnation));
        linked.or_else(|| {
            let lost = self.absent.get(peer)?;
            Some((lost.key, lost.incarnation))
        })
    }

    pub(super) fn absence_deadline(&self) -> Option<Time> {
        self.absent.values().map(|absent| absent.hold_until).min()
    }

    pub(super) fn link_up(&mut self, now: Time, link: LinkUp) {
        if self.takes_over(&link) {
            return self.take_better_path(now, link);
        }
        let peer = link.peer.clone();
        if self.ended {
            self.close(&peer, LinkEnd::RoomEnded);
            return;
        }
        self.link_ready(now, &peer, link.key, link.incarnation);
        if self.keeps_id(&peer, link.key, link.incarnation) {
            return; // `check_hello` refuses such a link
        }
        if self.membership.get(&peer).is_some() {
            // The caller ends a session before it begins the next.
            self.link_down(now, &peer, LinkEnd::Replaced);
        }
        let returning = self.absent.remove(&peer);
        self.forget_parted(link.key);
        self.forget_other_vouchers(&peer, link.key);
        self.recent_leaders.link_changed(now, &peer, true);
        self.kicks.note_member(&peer, link.key);
        self.forget_pairs_of(&peer);
        self.has_entered(&peer);
        let namesake = self.introductions.namesake_of(&peer, link.key);
        let mut member = Member::new(link.incarnation, link.key, Vec::new(), now);
        member.is_host = link.is_host;
        let event = match returning {
            Some(absent) => {
                if absent.key == link.key {
                    self.introductions
                        .side_returned(now, &self.me, absent.since);
                }
                member.returns_after(absent.newest_heartbeat);
                Event::Returned(Returned::new(peer.clone()))
            }
            None => Event::Joined(peer.clone()),
        };
        self.membership.insert(peer.clone(), member);
        self.set_path(now, &link);
        self.event(event);
        if let (Some(namesake), Some(leader)) = (namesake, self.leader().cloned()) {
            // The leader may have the other one as a member: then this one yields to it.
            self.namesake_introduced(now, &leader, &namesake);
        }
        self.begin_punching(now, &peer);
        match link.path.counts_in_elections() {
            true => self.enter_view(now, link),
            false => {
                let incarnation = link.incarnation;
                self.elect(
                    now,
                    Local::PeerReached {
                        peer: peer.clone(),
                        incarnation,
                    },
                );
                self.heartbeat(now, &peer, false);
            }
        }
    }

    /// Whether a link is a better one with a linked member.
    fn takes_over(&self, link: &LinkUp) -> bool {
        let member = self.membership.get(&link.peer);
        member.is_some_and(|member| {
            link.path < member.path
                && (member.key, member.incarnation) == (link.key, link.incarnation)
        })
    }

    /// Handles a better link with a member. Elections notice nothing if it takes part in them already.
    fn take_better_path(&mut self, now: Time, link: LinkUp) {
        let was_in_view = self.view.voters.contains_key(&link.peer);
        let before = self.membership.get(&link.peer);
        let ends = before.and_then(|member| member.punching.ends());
        self.set_path(now, &link);
        if let Some(member) = self.membership.get_mut(&link.peer) {
            member.took_over = was_in_view.then_some(TakeOver { at: now, ends });
        }
        let peer = link.peer.clone();
        self.begin_punching(now, &peer);
        if was_in_view {
            self.standing(now, &peer, link.eligible, link.priority, None);
            self.introduce_to_others(now, [peer.clone()]);
            return self.exchange_again(now, &peer);
        }
        if link.path.counts_in_elections() {
            self.enter_view(now, link);
        }
    }

    /// Handles another link with a member over as good a path. Elections notice nothing, and what the member may have missed is
    /// sent again.
    pub(super) fn relinked(&mut self, now: Time, peer: &PeerId) {
        let Some(member) = self.membership.get_mut(peer) else {
            return;
        };
        member.punching.sent = None;
        self.begin_punching(now, peer);
        self.report_observed_again(peer);
        if self.view.voters.contains_key(peer) {
            self.exchange_again(now, peer);
        }
    }

    /// Sends a member that takes part in elections over its next link what it may have missed.
    fn exchange_again(&mut self, now: Time, peer: &PeerId) {
        self.send_room(now, peer);
        self.elect(now, Local::Relinked { peer: peer.clone() });
        self.heartbeat(now, peer, false);
    }

    /// Notes how the packets of a member's new link travel.
    fn set_path(&mut self, now: Time, link: &LinkUp) {
        let searches = self.searches_direct_paths();
        self.is_carried_by(link);
        self.paths_changed = true;
        let Some(member) = self.membership.get_mut(&link.peer) else {
            return;
        };
        member.path = link.path;
        member.carrier.clone_from(&link.carrier);
        member.through_turn = link.through_turn;
        member.features = link.features;
        member.punching = Punching::default();
        let agrees = member.knows_paths();
        match link.path.counts_in_elections() {
            true => self.view.carried.remove(&link.peer),
            false => self.view.carried.insert(link.peer.clone(), link.key),
        };
        if link.path.is_direct() {
            member.addresses.clone_from(&link.addresses);
            member.addresses.truncate(MAX_PEER_ADDRESSES);
            self.introductions.forget(&link.peer);
            if let Some(address) = link.addresses.first() {
                self.introductions.answered(now, *address);
            }
        } else if searches {
            self.introductions
                .linked_by_carrier(now, &link.peer, link.key, &[], agrees);
            self.introductions.taken_over(&link.peer);
            self.consider_relays_to(now, &link.peer);
        } else {
            self.introductions.forget(&link.peer);
        }
    }

    /// Adds a member to the election; both ends exchange their rules and introductions.
    fn enter_view(&mut self, now: Time, link: LinkUp) {
        let peer = link.peer;
        self.view.voters.insert(
            peer.clone(),
            Voter {
                incarnation: link.incarnation,
                key: link.key,
                eligible: link.eligible
                    && (link.is_host || !self.is_fixed())
                    && self.config.election.quorum.admits(&peer),
                priority: link.priority,
                rtt: None,
            },
        );
        self.send_room(now, &peer);
        self.introduce_to_others(now, [peer.clone()]);
        let violation = self.try_elect(
            now,
            ElectionInput::PeerUp {
                peer: peer.clone(),
                key: link.key,
                ours: link.ours,
                theirs: link.theirs,
            },
        );
        self.heartbeat(now, &peer, false);
        self.weigh_reports();
        if let Err(error) = violation {
            self.punish(now, &peer, error);
        }
    }

    /// Sends a member the rules, introductions and this node's standing over a new link. Messages under way on a former link may be
    /// lost.
    fn send_room(&mut self, now: Time, peer: &PeerId) {
        let known: Vec<_> = self
            .membership
            .iter()
            .filter(|(id, _)| *id != peer)
            .map(entry_of)
            .collect();
        // First: a peer that may enter again is on the list that follows.
        self.send_room_rules_if_any(now, peer);
        self.introduce_to(peer, known);
        // It may have changed since the Hello.
        self.send_standing_to(peer);
    }

    /// Introduces the other members to a member.
    fn introduce_to(&mut self, peer: &PeerId, known: Vec<PeerEntry>) {
        let mut list = known;
        if !self.is_star() {
            // Over a carrier the search for a direct path exchanges addresses.
            let direct = self.membership.direct(peer);
            let mut addresses =
                direct.map_or(Vec::new(), |member| self.addresses_for(&member.addresses));
            addresses.truncate(MAX_PEER_ADDRESSES);
            let myself = PeerEntry {
                id: self.me.clone(),
                key: self.config.key,
                addresses,
            };
            list.insert(0, myself);
        }
        self.introduce(peer, list);
    }

    /// Schedules an introduction of these peers to the other members.
    pub(super) fn introduce_to_others(
        &mut self,
        now: Time,
        peers: impl IntoIterator<Item = PeerId>,
    ) {
        self.news.extend(peers);
        self.news_at.get_or_insert(now + NEWS_DELAY);
    }

    /// Introduces the new members to the others. It batches them: otherwise a room of n that forms would send n times
    /// as many lists.
    pub(super) fn send_news(&mut self, now: Time) {
        if self.news_at.is_none_or(|at| now < at) {
            return;
        }
        self.news_at = None;
        let news = std::mem::take(&mut self.news);
        let members = self.membership.iter();
        let news: Vec<_> = members
            .filter(|(id, member)| news.contains(*id) && member.path.counts_in_elections())
            .map(entry_of)
            .collect();
        for other in self.membership.ids() {
            let others = news.iter().filter(|entry| entry.id != other);
            self.introduce(&other, others.cloned().collect());
        }
    }

    /// Introduces members to a peer. In a star only the host does, without addresses.
    pub(super) fn introduce(&mut self, peer: &PeerId, mut list: Vec<PeerEntry>) {
        if self.is_star() {
            if !self.is_host() {
                return;
            }
            for entry in &mut list {
                entry.addresses.clear();
            }
        }
        for part in list.chunks(MAX_PEER_LIST_ENTRIES) {
            self.transmit_with(peer, Message::PeerList(part.to_vec()), false);
        }
    }

    pub(super) fn link_down(&mut self, now: Time, peer: &PeerId, why: LinkEnd) {
        match why {
            LinkEnd::Disconnected => {
                self.introductions.forget(peer);
                self.bans.disconnect(peer);
            }
            LinkEnd::Violation(_) => self.ban_violator(now, peer),
            _ => {}
        }
        let end = match why {
            LinkEnd::Closed => return self.lose(now, peer, DownReason::Closed),
            LinkEnd::Silent => return self.lose(now, peer, DownReason::Silent),
            LinkEnd::RoomEnded => return self.await_reason(now, peer),
            LinkEnd::Disconnected => SessionEnd::Disconnected {
                code: 0,
                bytes: Vec::new(),
            },
            LinkEnd::Violation(_) => SessionEnd::Violation,
            LinkEnd::Replaced => SessionEnd::Restarted,
            LinkEnd::Kicked => SessionEnd::Kicked {
                code: 0,
                bytes: Vec::new(),
            },
            LinkEnd::Moved(why) => return self.given_up(now, peer, why),
            LinkEnd::OtherRoom => return self.parted(now, peer),
        };
        self.end_session(now, peer, end);
    }

    /// Ends the link with a peer for this host. A lost peer does not receive the reason.
    pub(super) fn disconnect(&mut self, now: Time, peer: &PeerId, code: i32, bytes: Vec<u8>) {
        self.introductions.forget(peer);
        self.bans.disconnect(peer);
        if (code, bytes.as_slice()) != (0, &[]) && self.membership.get(peer).is_some() {
            let bytes = bytes.clone();
            self.transmit(peer, Message::Disconnected { code, bytes });
        }
        if self.is_star() && self.is_host() {
            self.notify_guests_of_removal(peer, code, &bytes);
        }
        self.close(peer, LinkEnd::Disconnected);
        self.end_session(now, peer, SessionEnd::Disconnected { code, bytes });
    }

    /// Notifies the other guests of a star that its host has disconnected a guest, and so removed it from the room:
    /// they do not wait for its return.
    fn notify_guests_of_removal(&mut self, peer: &PeerId, code: i32, bytes: &[u8]) {
        let Some((key, _)) = self.id_holder(peer) else {
            return;
        };
        for guest in self.membership.ids() {
            if guest != *peer {
                let kicked = Message::Kicked {
                    peer: peer.clone(),
                    key,
                    code,
                    bytes: bytes.to_vec(),
                    ban: None,
                };
                self.transmit(&guest, kicked);
            }
        }
    }

    /// Handles a disconnect by the host of a peer, with its reason.
    pub(super) fn disconnected(&mut self, now: Time, from: &PeerId, code: i32, bytes: Vec<u8>) {
        if bytes.len() > MAX_REASON_BYTES {
            self.violation(now, from, "a disconnection is longer than allowed");
            return;
        }
        self.introductions.forget(from);
        self.bans.disconnect(from);
        self.close(from, LinkEnd::Closed);
        self.end_session(now, from, SessionEnd::Disconnected { code, bytes });
    }

    /// Ends the session with a peer, linked or not. `why` is Replaced if a later incarnation of the same key asks.
    pub(super) fn session_over(&mut self, now: Time, peer: &PeerId, why: LeftReason) {
        let Some((key, _)) = self.id_holder(peer) else {
            return;
        };
        if why != LeftReason::Replaced {
            return self.end_session(now, peer, SessionEnd::EndedThere);
        }
        self.end_session(now, peer, SessionEnd::Restarted);
        // The next incarnation of that key asks for a link. It takes the place of this one.
        self.vouch(now, peer, key);
    }

    /// Handles the loss of a member's link: its place is kept for a while, if the settings allow it.
    pub(super) fn lose(&mut self, now: Time, peer: &PeerId, gone: DownReason) {
        if !self.config.auto_reconnect || self.ended {
            self.end_session(now, peer, SessionEnd::NotKept(gone));
            return;
        }
        let hold_until = now + self.config.member_hold;
        self.fell_silent(now, peer);
        self.note_lost_path(now, peer);
        if let Some(member) = self.membership.get(peer) {
            let key = member.key;
            let addresses = (&*member.addresses, !member.path.is_direct());
            let rtt = member.rtt.smoothed().unwrap_or_default();
            self.introductions
                .lost(now, peer, key, addresses, rtt, hold_until);
            self.dial_over_relays(now, peer, key);
            self.event(Event::Reconnecting(peer.clone()));
        }
        self.keep_place(now, peer, gone, (hold_until, false));
    }

    /// Handles the end of the room for a member. The leader gives the reason, or this node's room ends, too: the host's
    /// event waits for that.
    fn await_reason(&mut self, now: Time, peer: &PeerId) {
        self.introductions.forget(peer);
        self.keep_place(now, peer, DownReason::Closed, (now + REASON_LIMIT, true));
    }

    /// Keeps the place of a member without a link for a while.
    fn keep_place(
        &mut self,
        now: Time,
        peer: &PeerId,
        gone: DownReason,
        (hold_until, ended): (Time, bool),
    ) {
        let Some(member) = self.membership.remove(peer) else {
            return;
        };
        self.paths_changed = true;
        self.recent_leaders.link_changed(now, peer, false);
        self.room_rules_unlinked(peer);
        self.view.remove(peer);
        self.absent.insert(
            peer.clone(),
            Absent {
                incarnation: member.incarnation,
                key: member.key,
                address: member.addresses.first().copied(),
                is_host: member.is_host,
                newest_heartbeat: member.newest_heartbeat(),
                since: now,
                hold_until,
                ended,
            },
        );
        self.report_peer_down(now, peer, (member.incarnation, member.path), gone);
        if self.absent.len() > self.config.max_connections {
            // Not the host, with which the room would end.
            let oldest = self
                .absent
                .iter()
                .min_by_key(|(_, absent)| (absent.is_host, absent.hold_until));
            if let Some(oldest) = oldest.map(|(oldest, _)| oldest.clone()) {
                self.end_session(now, &oldest, SessionEnd::HoldOver);
            }
        }
    }

    /// Reports the end of a link to the strategy: of one that has no part in elections only if the process has ended, so
    /// that the strategy takes up no leader that others name and this node knows to be gone.
    pub(super) fn report_peer_down(
        &mut self,
        now: Time,
        peer: &PeerId,
        (incarnation, path): (Incarnation, Path),
        why: DownReason,
    ) {
        if !path.counts_in_elections() && why == DownReason::Silent {
            return;
        }
        self.elect(
            now,
            Local::PeerDown {
                peer: peer.clone(),
                incarnation,
                why,
            },
        );
    }

    /// Ends the sessions of lost members whose hold time is over.
    pub(super) fn end_absences(&mut self, now: Time) {
        let over: Vec<_> = self
            .absent
            .iter()
            .filter(|(_, absent)| now >= absent.hold_until)
            .map(|(peer, _)| peer.clone())
            .collect();
        for peer in over {
            self.end_session(now, &peer, SessionEnd::HoldOver);
        }
    }

    pub(super) fn dial_failed(&mut self, now: Time, peer: &PeerId, permanent: bool) {
        let given_up = self.introductions.dial_failed(now, peer, permanent);
        if given_up && self.absent.contains_key(peer) {
            self.end_session(now, peer, SessionEnd::GaveUp);
        }
    }

    pub(super) fn set_auto_reconnect(&mut self, now: Time, enabled: bool) {
        self.config.auto_reconnect = enabled;
        if !enabled {
            for peer in self.absent.keys().cloned().collect::<Vec<_>>() {
                self.end_session(now, &peer, SessionEnd::GaveUp);
            }
        }
    }

    pub(super) fn introduced(&mut self, now: Time, from: &PeerId, entries: Vec<PeerEntry>) {
        let too_long = entries.len() > MAX_PEER_LIST_ENTRIES
            || entries
                .iter()
                .any(|entry| entry.addresses.len() > MAX_PEER_ADDRESSES);
        if too_long {
            self.violation(now, from, "a peer list is longer than allowed");
            return;
        }
        if !self.introduces(from) {
            return;
        }
        let is_near = self.is_near(from);
        for mut entry in entries {
            let is_direct = !entry.addresses.is_empty();
            // Loopback and link-local addresses mean another machine for each that dials them.
            entry
                .addresses
                .retain(|address| is_near || !is_of_one_machine(*address));
            if entry.id == *from {
                let member = self.membership.get_mut(from);
                if let Some(member) = member.filter(|member| member.path.is_direct()) {
                    merge_addresses(&mut member.addresses, &entry.addresses);
                }
            } else {
                self.introduced_by(now, from, &entry, is_direct);
            }
        }
    }

    /// Handles a member's introduction of a peer, with which it has a direct link or another one.
    pub(super) fn introduced_by(
        &mut self,
        now: Time,
        from: &PeerId,
        entry: &PeerEntry,
        is_direct: bool,
    ) {
        if entry.id == self.me || entry.key == self.config.key {
            return;
        }
        if self.is_kicked(&entry.id, entry.key) {
            self.note_kept_out(from, entry);
            return;
        }
        self.note_reached(from, entry.key, is_direct);
        if let Some(member) = self.membership.get(&entry.id) {
            if member.key != entry.key {
                return self.namesake_introduced(now, from, entry);
            }
            let is_carried = !member.path.is_direct();
            let agrees = member.knows_paths();
            self.holder_introduced(from, &entry.id);
            if is_carried && self.searches_direct_paths() {
                self.introductions.linked_by_carrier(
                    now,
                    &entry.id,
                    entry.key,
                    &entry.addresses,
                    agrees,
                );
                self.introductions.witnessed(from, entry);
            }
            return;
        }
        if let Some(absent) = self.absent.get(&entry.id) {
            let has_ended = absent.ended;
            // Hearsay: the process that has the id now will ask for a link. If the lost member returns, one of both
            // makes way.
            if absent.key != entry.key {
                return self.namesake_introduced(now, from, entry);
            }
            self.holder_introduced(from, &entry.id);
            if has_ended {
                return;
            }
        }
        self.vouch(now, &entry.id, entry.key);
        if self.is_banned(now, &entry.id, entry.key) || self.ended {
            return;
        }
        if self.membership.len() < self.config.max_connections {
            let source = match self.leader() {
                Some(leader) if leader == from => Source::Leader,
                _ => Source::Member,
            };
            self.introductions.introduce(now, &self.me, entry, source);
            self.introductions.witnessed(from, entry);
        } else {
            self.note_without_place(entry);
        }
    }

    /// Whether a member is on this machine or on a link of it, by the address of its own link.
    fn is_near(&self, peer: &PeerId) -> bool {
        let member = self.membership.direct(peer);
        let address = member.and_then(|member| member.addresses.first());
        address.is_some_and(|address| is_of_one_machine(*address))
    }

    /// Whether this node trusts introductions by this member: in a star only the host's.
    pub(super) fn introduces(&self, from: &PeerId) -> bool {
        let member = self.membership.elector(from);
        member.is_some_and(|member| member.is_host || !self.is_star())
    }

    /// Whether this node looks for direct paths to members whose links are carried.
    pub(super) fn searches_direct_paths(&self) -> bool {
        !self.is_star() && !self.config.relayed_only
    }

    /// Whether guests link only to the fixed host.
    pub(super) fn is_star(&self) -> bool {
        self.config.election.policy.topology == Topology::Star
    }

    /// Whether this node is the fixed host.
    pub(super) fn is_host(&self) -> bool {
        self.config.election.policy.host_mode == HostMode::Host
    }

    /// The fixed host of the room, linked or lost, if it is another peer than `peer`.
    pub(super) fn host_other_than(&self, peer: &PeerId) -> Option<&PeerId> {
        let linked = self.membership.iter().filter(|(_, member)| member.is_host);
        let lost = self.absent.iter().filter(|(_, absent)| absent.is_host);
        let mut hosts = linked.map(|(id, _)| id).chain(lost.map(|(id, _)| id));
        hosts.find(|id| *id != peer)
    }

    /// Whether the room has a fixed host, this node or another.
    pub(super) fn is_fixed(&self) -> bool {
        self.config.election.policy.host_mode != HostMode::Off
    }
}
