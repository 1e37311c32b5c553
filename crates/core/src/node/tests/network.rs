//! The virtual network: links, the messages on them, and time.

use super::*;
use crate::path::RelayNumber;
use crate::virtual_address::virtual_id;
use crate::wire::{FEATURE_PATHS, FEATURE_SILENT_RELAYS};

/// Commands and links.
impl Net {
    pub(super) fn try_order(&mut self, name: &str, command: Command) -> Result<(), CommandError> {
        self.feed(&id(name), Input::Command(command))
    }

    pub(super) fn order(&mut self, name: &str, command: Command) {
        self.try_order(name, command).expect("accepted");
    }

    /// Links two ends and notifies both.
    pub(super) fn link(&mut self, one: &str, other: &str) {
        for (me, peer) in [(one, other), (other, one)] {
            self.end_session_of_earlier_incarnation(me, peer);
        }
        self.counted += 1;
        let link = self.counted;
        let path = self.best_path(&id(one), &id(other));
        if let Path::Carried(kind) = path {
            for (me, peer) in [(one, other), (other, one)] {
                let (from, to) = (id(me), id(peer));
                let mut carriers = self.carriers_of(&from, &to).into_iter();
                let carrier = carriers.find(|carrier| carrier.kind() == kind);
                let before = self.carriers.entry((from, to, kind));
                if let Some(carrier) = carrier {
                    before.or_insert(carrier);
                }
            }
            self.carried.insert(link, kind);
        }
        let ups = [(one, other), (other, one)].map(|(me, peer)| {
            let (mine, its) = (self.place(me), self.place(peer));
            let (eligible, priority) = its.node.standing_of_myself();
            LinkUp {
                peer: id_at(&id(peer)),
                incarnation: its.life.incarnation,
                key: its.life.key,
                addresses: match path.is_direct() {
                    true => vec![its.address],
                    false => Vec::new(),
                },
                eligible,
                priority,
                is_host: its.is_host,
                path,
                carrier: match path {
                    Path::Direct => None,
                    Path::Carried(kind) => self.carriers.get(&(id(me), id(peer), kind)).cloned(),
                },
                through_turn: false,
                features: match self.old.contains(&id(peer)) {
                    true => 0,
                    false => FEATURE_PATHS | FEATURE_SILENT_RELAYS,
                },
                ours: mine.node.side(self.now),
                theirs: its.node.side(self.now),
            }
        });
        self.ends.insert((id(one), id(other)), link);
        self.ends.insert((id(other), id(one)), link);
        for (up, me) in ups.into_iter().zip([one, other]) {
            let _ = self.feed(&id(me), Input::LinkUp(Box::new(up)));
        }
    }

    pub(super) fn wall(&mut self, one: &str, other: &str) {
        self.walls.insert((id(one), id(other)));
        self.walls.insert((id(other), id(one)));
    }

    pub(super) fn is_walled(&self, one: &PeerId, other: &PeerId) -> bool {
        self.walls.contains(&(one.clone(), other.clone()))
    }

    /// Whether two are linked on the best path between them.
    pub(super) fn is_linked_well(&self, one: &PeerId, other: &PeerId) -> bool {
        let link = self.ends.get(&(one.clone(), other.clone()));
        let link = link.filter(|link| self.ends.get(&(other.clone(), one.clone())) == Some(link));
        link.is_some_and(|link| self.path_of(*link) <= self.best_path(one, other))
    }

    fn path_of(&self, link: u64) -> Path {
        let kind = self.carried.get(&link);
        kind.map_or(Path::Direct, |kind| Path::Carried(*kind))
    }

    /// The best path of two members; over a member if there is no other.
    fn best_path(&self, one: &PeerId, other: &PeerId) -> Path {
        if !self.is_walled(one, other) {
            return Path::Direct;
        }
        let both = |relay: &TestRelay| relay.forwards(one, other) && relay.forwards(other, one);
        match self.relays.iter().any(both) {
            true => Path::Carried(CarrierKind::Relay),
            false => Path::Carried(CarrierKind::Member),
        }
    }

    /// Whether a member forwards packets from the first to the second.
    fn carries(&self, carrier: &PeerId, from: &PeerId, to: &PeerId) -> bool {
        let Some(place) = self.places.get(carrier) else {
            return false;
        };
        // Packets of a member are on their way when its link with the carrier ends.
        let reaches = |end: &PeerId| carrier != end && !self.is_walled(carrier, end);
        let leads_for = |end: &PeerId| {
            let end = self.places.get(end);
            end.is_some_and(|end| end.node.leader() == Some(&id_at(carrier)))
        };
        let is_known = |end: &PeerId| !self.old.contains(end) || leads_for(end);
        let forwards = !self.old.contains(carrier) || place.node.is_leader();
        let drops = (carrier.clone(), from.clone(), to.clone());
        let works = forwards && !place.muted && !self.drops.contains(&drops);
        works && reaches(from) && reaches(to) && is_known(to)
    }

    fn carriers_of(&self, from: &PeerId, to: &PeerId) -> Vec<Carrier> {
        let relays = (0..).zip(&self.relays);
        let relays = relays.filter(|(_, relay)| relay.forwards(from, to));
        let relays = relays.map(|(number, _)| Carrier::Relay(RelayNumber(number)));
        let all = self.places.keys();
        let members = all.filter(|place| self.carries(place, from, to));
        let mut members: Vec<_> = members.cloned().collect();
        members.sort_by_key(|place| !self.places[place].node.is_leader());
        relays
            .chain(members.into_iter().map(Carrier::Member))
            .collect()
    }

    /// Whether a carrier forwards packets from the first to the second.
    fn forwards(&self, carrier: &Carrier, from: &PeerId, to: &PeerId) -> bool {
        match carrier {
            Carrier::Relay(number) => self.relays[usize::from(number.0)].forwards(from, to),
            Carrier::Member(member) => self.carries(member, from, to),
        }
    }

    /// Whether the packets of a carried link arrive.
    fn is_carried(&mut self, from: &PeerId, to: &PeerId, kind: CarrierKind) -> bool {
        let Some(carrier) = self.carriers.get(&(from.clone(), to.clone(), kind)) else {
            return false;
        };
        if self.forwards(carrier, from, to) {
            return true;
        }
        let Some(carrier) = carrier.member().cloned() else {
            return false;
        };
        let is_linked =
            |one: &PeerId, other: &PeerId| self.ends.contains_key(&(one.clone(), other.clone()));
        if is_linked(&carrier, from) && !is_linked(&carrier, to) {
            let target = virtual_id(self.places[to].life.key);
            let from = id_at(from);
            let _ = self.feed(&carrier, Input::CannotCarry { from, target });
        }
        false
    }

    pub(super) fn end_session_of_earlier_incarnation(&mut self, me: &str, peer: &str) {
        let Life { key, incarnation } = self.place(peer).life;
        let peer = id_at(&id(peer));
        let _ = self.feed(
            &id(me),
            Input::LinkReady {
                peer,
                key,
                incarnation,
            },
        );
    }

    /// Ends a link and notifies both ends.
    pub(super) fn unlink(&mut self, one: &str, other: &str, why: LinkEnd) {
        for (me, peer) in [(one, other), (other, one)] {
            self.ends.remove(&(id(me), id(peer)));
        }
        for (me, peer) in [(one, other), (other, one)] {
            if self.places.contains_key(&id(me)) {
                let _ = self.feed(
                    &id(me),
                    Input::LinkDown {
                        peer: id_at(&id(peer)),
                        why,
                    },
                );
            }
        }
    }

    /// The place at the other end of the link that a place has with a peer.
    fn other_end(&self, place: &PeerId, peer: &PeerId) -> Option<PeerId> {
        let mut its = self.ends.keys().filter(|(me, _)| me == place);
        its.find(|(_, other)| id_at(other) == *peer)
            .map(|(_, other)| other.clone())
    }

    pub(super) fn feed(&mut self, name: &PeerId, input: Input) -> Result<(), CommandError> {
        let now = self.now;
        let Some(place) = self.places.get_mut(name) else {
            return Ok(());
        };
        let result = place.node.handle(now, input);
        self.drain(name);
        result
    }

    pub(super) fn drain(&mut self, name: &PeerId) {
        let Some(place) = self.places.get_mut(name) else {
            return;
        };
        let outputs: Vec<_> = std::iter::from_fn(|| place.node.poll_output()).collect();
        for output in outputs {
            self.carry_out(name, output);
        }
    }

    pub(super) fn carry_out(&mut self, name: &PeerId, output: Output) {
        let now = self.now;
        let Some(place) = self.places.get_mut(name) else {
            return;
        };
        if place.node.policy().topology == Topology::Star {
            let entries: Vec<&PeerEntry> = match &output {
                Output::Transmit { envelope, .. } => match &envelope.message {
                    Message::PeerList(entries) => entries.iter().collect(),
                    Message::Admitted { entry, .. } => vec![entry],
                    _ => Vec::new(),
                },
                _ => Vec::new(),
            };
            assert!(
                entries.iter().all(|entry| entry.addresses.is_empty()),
                "{name} reports addresses in a star: {output:?}"
            );
        }
        match output {
            Output::Persist { number, state } => {
                let life = place.life;
                if let Some(write_time) = self.write_time {
                    self.counted += 1;
                    let written = Happening::Written {
                        by: name.clone(),
                        life,
                        number,
                        state,
                    };
                    self.queue.insert((now + write_time, self.counted), written);
                }
            }
            Output::Transmit { to, envelope, .. } => {
                if let Message::PeerList(entries) = &envelope.message {
                    let listed = entries.iter().flat_map(|entry| &entry.addresses);
                    self.listed.extend(listed.copied());
                }
                if !matches!(
                    envelope.message,
                    Message::Heartbeat(_) | Message::PeerList(_)
                ) {
                    place.sent.push((to.clone(), envelope.message.clone()));
                }
                let to = self.other_end(name, &to).unwrap_or(to);
                if let Some(link) = self.ends.get(&(name.clone(), to.clone())).copied() {
                    let from = name.clone();
                    let envelope = Box::new(envelope);
                    self.later(Happening::Message {
                        link,
                        from,
                        to,
                        envelope,
                    });
                }
            }
            Output::Datagram { to, probe } => {
                let to = self.other_end(name, &to).unwrap_or(to);
                if let Some(link) = self.ends.get(&(name.clone(), to.clone())).copied() {
                    let from = name.clone();
                    self.later(Happening::Datagram {
                        link,
                        from,
                        to,
                        probe,
                    });
                }
            }
            Output::Carrier { peer, carrier } => {
                let to = self.other_end(name, &peer).unwrap_or(peer);
                let link = self.ends.get(&(name.clone(), to.clone()));
                let Some(Path::Carried(kind)) = link.map(|link| self.path_of(*link)) else {
                    return;
                };
                let key = (name.clone(), to, kind);
                match carrier {
                    Some(carrier) => {
                        assert_eq!(carrier.kind(), kind, "a link keeps its kind of carriers");
                        self.carriers.insert(key, carrier);
                    }
                    None => drop(self.carriers.remove(&key)),
                }
                // Links repeat over the new carrier what the old one has lost.
                for message in std::mem::take(&mut self.held) {
                    self.later(message);
                }
            }
            Output::Dial(dial) => {
                self.dials.push((now, name.clone(), dial.clone()));
                self.later(Happening::Dialled {
                    from: name.clone(),
                    dial,
                });
            }
            Output::Close { peer, why } => {
                place.closes.push((peer.clone(), why));
                self.hang_up(name, &peer, why);
            }
            Output::JoinAnswer { ticket, verdict } => {
                let known = place.answers.insert(ticket, (now, verdict.clone()));
                assert_eq!(known, None, "a question is answered once");
                self.answered(name, ticket, &verdict);
            }
            Output::Event(event) => {
                place.events.push((now, event.clone()));
                // A link that replaced it stays.
                if let Event::Left(Left { peer, .. }) | Event::Reconnecting(peer) = event
                    && place.node.membership().get(&peer).is_none()
                {
                    self.hang_up(name, &peer, LinkEnd::Closed);
                }
            }
            Output::StaleState { .. } => place.is_stale = true,
            Output::Engine { .. } => panic!("no strategy here asks a store"),
            Output::DialSeeds(_) => {}
            Output::Dropped { from, value, bound } => {
                assert!(value > bound);
                place.dropped.push((now, from));
            }
            Output::Departed => {
                let ends: Vec<_> = self
                    .ends
                    .keys()
                    .filter(|(me, _)| me == name)
                    .cloned()
                    .collect();
                for (_, peer) in ends {
                    self.hang_up(name, &peer, LinkEnd::Closed);
                }
            }
        }
    }

    pub(super) fn hang_up(&mut self, me: &PeerId, peer: &PeerId, why: LinkEnd) {
        let Some(to) = self.other_end(me, peer) else {
            return;
        };
        if let Some(link) = self.ends.remove(&(me.clone(), to.clone())) {
            let from = me.clone();
            let why = match why {
                LinkEnd::Disconnected
                | LinkEnd::Silent
                | LinkEnd::RoomEnded
                | LinkEnd::Moved(_)
                | LinkEnd::OtherRoom => why,
                _ => LinkEnd::Closed,
            };
            self.later(Happening::Closed {
                link,
                from,
                to,
                why,
            });
        }
    }
}

/// Time.
impl Net {
    pub(super) fn later(&mut self, happening: Happening) {
        self.counted += 1;
        self.queue
            .insert((self.now + DELAY, self.counted), happening);
    }

    pub(super) fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let tick = self
                .places
                .iter()
                .filter_map(|(name, place)| Some((place.node.next_deadline()?, name.clone())))
                .min();
            let happens = self.queue.first_key_value().map(|(at, _)| *at);
            match (happens, tick) {
                (Some((at, number)), tick)
                    if at <= until && tick.as_ref().is_none_or(|(due, _)| at <= *due) =>
                {
                    self.now = self.now.max(at);
                    let happening = self.queue.remove(&(at, number)).expect("just seen");
                    self.happen(happening);
                }
                (_, Some((due, name))) if due <= until => {
                    self.now = self.now.max(due);
                    let _ = self.feed(&name, Input::Tick);
                }
                _ => break,
            }
        }
        self.now = until;
    }

    /// Runs until `done`; returns the time that it took.
    pub(super) fn wait(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Duration {
        let from = self.now;
        while !done(self) {
            assert!(
                self.now.since(from) < TIMEOUT,
                "it never came about: {what}"
            );
            self.run(ms(1));
        }
        self.now.since(from)
    }

    pub(super) fn reaches(&mut self, link: u64, from: &PeerId, to: &PeerId) -> bool {
        let is_up = match self.path_of(link) {
            Path::Direct => true,
            Path::Carried(kind) => self.is_carried(from, to, kind),
        };
        self.is_link(link, from, to) && !self.are_muted(from, to) && is_up
    }

    fn are_muted(&self, one: &PeerId, other: &PeerId) -> bool {
        let mut ends = [one, other].into_iter();
        ends.any(|name| self.places.get(name).is_some_and(|place| place.muted))
    }

    fn is_link(&self, link: u64, from: &PeerId, to: &PeerId) -> bool {
        self.ends.get(&(to.clone(), from.clone())) == Some(&link)
    }

    pub(super) fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Message {
                link,
                from,
                to,
                envelope,
            } => {
                if self.reaches(link, &from, &to) {
                    let (from, envelope) = (id_at(&from), *envelope);
                    let _ = self.feed(&to, Input::Message { from, envelope });
                } else if self.links_repeat && self.is_link(link, &from, &to) {
                    self.held.push(Happening::Message {
                        link,
                        from,
                        to,
                        envelope,
                    });
                }
            }
            Happening::Datagram {
                link,
                from,
                to,
                probe,
            } => {
                if self.reaches(link, &from, &to) {
                    let from = id_at(&from);
                    let _ = self.feed(&to, Input::Datagram { from, probe });
                }
            }
            Happening::Closed {
                link,
                from,
                to,
                why,
            } => {
                if self.reaches(link, &from, &to) {
                    self.ends.remove(&(to.clone(), from.clone()));
                    let peer = id_at(&from);
                    let _ = self.feed(&to, Input::LinkDown { peer, why });
                }
            }
            Happening::Dialled { from, dial } => self.dialled(&from, dial),
            Happening::Written {
                by,
                life,
                number,
                state,
            } => {
                if self.places.get(&by).is_some_and(|place| place.life == life) {
                    self.disks.insert(by.clone(), (life.incarnation, state));
                    let _ = self.feed(&by, Input::Persisted { number });
                }
            }
        }
    }

    pub(super) fn dialled(&mut self, from: &PeerId, dial: Dial) {
        let Dial {
            peer,
            key,
            addresses,
            carriers,
            ..
        } = dial;
        let mut places = self.places.iter();
        let its = places.find(|(place, its)| id_at(place) == peer && its.life.key == key);
        let peer = its.map_or(peer, |(place, _)| place.clone());
        let has_path = match self.is_walled(from, &peer) {
            true => {
                let mut carriers = carriers.iter();
                let carrier = carriers.find(|carrier| self.forwards(carrier, from, &peer));
                if let Some(carrier) = carrier {
                    // The other end answers the way that the first packet came.
                    for (one, other) in [(from, &peer), (&peer, from)] {
                        let key = (one.clone(), other.clone(), carrier.kind());
                        self.carriers.insert(key, carrier.clone());
                    }
                }
                carrier.is_some()
            }
            false => !addresses.is_empty(),
        };
        let Some(dialler) = self.places.get(from) else {
            return;
        };
        let life = dialler.life;
        let answers = self.places.get(&peer).is_some_and(|target| {
            let receives = !target.muted && !dialler.muted && self.dials_work;
            receives && has_path && target.life.key == key && !self.is_linked_well(&peer, from)
        });
        // Each end checks the Hello of the other.
        let checked = answers.then(|| {
            let (theirs, ours) = (self.hello(peer.as_str()), self.hello(from.as_str()));
            let target = self.node(peer.as_str());
            target.check_hello(self.now, &ours, life.key, false)?;
            let dialler = self.node(from.as_str());
            dialler.check_hello(self.now, &theirs, key, false)
        });
        let (is_direct, address) = match self.places.get(&peer) {
            Some(target) => (!self.is_walled(from, &peer), Some(target.address)),
            None => (false, None),
        };
        if let Some(address) = address.filter(|_| is_direct && checked.is_some()) {
            let _ = self.feed(from, Input::Answered { address });
        }
        let Some(dialler) = self.places.get(from) else {
            return;
        };
        let peer_id = id_at(&peer);
        let is_lost = || dialler.node.absent().any(|lost| *lost == peer_id);
        let failure = match checked {
            Some(Ok(())) => {
                self.ask_for(from.as_str(), life, peer.as_str(), true);
                return;
            }
            Some(Err(AdmissionRefusal::Kicked(banned)))
                if banned == id_at(from) && dialler.node.membership().is_empty() && is_lost() =>
            {
                Input::KickedOut
            }
            _ => Input::DialFailed {
                peer: peer_id,
                permanent: false,
            },
        };
        let _ = self.feed(from, failure);
    }
}
