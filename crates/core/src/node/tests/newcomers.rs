//! Requests of newcomers for a link, and the answers.

use super::*;

impl Net {
    /// Asks for a link of a newcomer with `contact`. The newcomer may be a running process or only a claim.
    pub(super) fn ask_as(&mut self, newcomer: &str, life: Life, contact: &str) -> u64 {
        self.ask_for(newcomer, life, contact, false)
    }

    pub(super) fn ask(&mut self, newcomer: &str, contact: &str) -> u64 {
        let life = match self.places.get(&id(newcomer)) {
            Some(place) => place.life,
            None => life(key_at(newcomer), self.now.as_micros()),
        };
        self.ask_as(newcomer, life, contact)
    }

    pub(super) fn ask_for(
        &mut self,
        newcomer: &str,
        life: Life,
        contact: &str,
        by_core: bool,
    ) -> u64 {
        self.ask_with(newcomer, life, contact, by_core, false)
    }

    /// The host of `dialler` asks for a link, and its node takes the other end without asking the room.
    pub(super) fn invite(&mut self, dialler: &str, other: &str) {
        let life = self.place(other).life;
        self.ask_with(other, life, dialler, false, true);
    }

    fn ask_with(
        &mut self,
        newcomer: &str,
        life: Life,
        contact: &str,
        by_core: bool,
        invited: bool,
    ) -> u64 {
        self.counted += 1;
        let ticket = self.counted;
        let newcomer = id(newcomer);
        let address = self.places.get(&newcomer).map(|place| place.address);
        let candidate = Candidate {
            entry: PeerEntry {
                id: id_at(&newcomer),
                key: life.key,
                addresses: address.into_iter().collect(),
            },
            incarnation: life.incarnation,
            payload: b"hello".to_vec(),
        };
        self.arrivals.insert(
            ticket,
            Arrival {
                newcomer,
                life,
                by_core,
            },
        );
        let candidate = Box::new(candidate);
        let input = Input::Join {
            ticket,
            candidate,
            invited,
        };
        let _ = self.feed(&id(contact), input);
        ticket
    }

    /// The room's decision, once it has arrived.
    pub(super) fn verdict(&self, contact: &str, ticket: u64) -> Option<Verdict> {
        self.place(contact)
            .answers
            .get(&ticket)
            .map(|(_, verdict)| verdict.clone())
    }

    pub(super) fn verdict_after(
        &mut self,
        time: Duration,
        contact: &str,
        ticket: u64,
    ) -> Option<Verdict> {
        self.run(time);
        self.verdict(contact, ticket)
    }

    pub(super) fn enter(&mut self, newcomer: &str, contact: &str) {
        self.enter_after(DELAY * 4, newcomer, contact);
    }

    pub(super) fn enter_after(&mut self, time: Duration, newcomer: &str, contact: &str) {
        let ticket = self.ask(newcomer, contact);
        self.run(time);
        assert_eq!(self.verdict(contact, ticket), Some(Verdict::Accepted));
    }

    /// The contact's check of the newcomer's Hello, before the room is asked.
    pub(super) fn check(&self, newcomer: &str, contact: &str) -> Result<(), AdmissionRefusal> {
        let place = self.place(newcomer);
        let hello = self.hello(newcomer);
        let contact = self.node(contact);
        contact.check_hello(self.now, &hello, place.life.key, false)
    }

    /// The contact's check if the newcomer's host asked for the link.
    pub(super) fn check_by_hand(
        &self,
        newcomer: &str,
        contact: &str,
    ) -> Result<(), AdmissionRefusal> {
        let place = self.place(newcomer);
        let hello = Hello {
            by_hand: true,
            ..self.hello(newcomer)
        };
        let contact = self.node(contact);
        contact.check_hello(self.now, &hello, place.life.key, false)
    }

    pub(super) fn hello(&self, name: &str) -> Hello {
        let place = self.place(name);
        let (eligible, priority) = place.node.standing_of_myself();
        Hello {
            features: 0,
            peer_id: id_at(&id(name)),
            incarnation: place.life.incarnation,
            generation: 0,
            losses: 0,
            by_hand: false,
            policy: place.node.policy(),
            listen_port: place.address.port(),
            max_message_size: 262_144,
            eligible,
            priority,
            has_leader: place.node.leader().is_some(),
            side: place.node.side(self.now),
            join_payload: Vec::new(),
            state: None,
        }
    }

    /// Whether a place would accept another process with the id of the other one.
    fn takes(&self, place: &PeerId, other: &PeerId) -> bool {
        let Life { key, incarnation } = self.places[other].life;
        let node = &self.places[place].node;
        !node.keeps_id(&id_at(other), key, incarnation)
    }

    pub(super) fn answered(&mut self, contact: &PeerId, ticket: u64, verdict: &Verdict) {
        let Some(arrival) = self.arrivals.remove(&ticket) else {
            return;
        };
        let newcomer = self.places.get(&arrival.newcomer);
        let runs = newcomer.is_some_and(|place| place.life == arrival.life);
        let linked = self.is_linked_well(contact, &arrival.newcomer);
        let is_free = runs
            && self.takes(contact, &arrival.newcomer)
            && self.takes(&arrival.newcomer, contact);
        if *verdict == Verdict::Accepted && is_free && !linked {
            self.link(contact.clone().as_str(), arrival.newcomer.as_str());
        } else if arrival.by_core {
            let peer = id_at(contact);
            let _ = self.feed(
                &arrival.newcomer,
                Input::DialFailed {
                    peer,
                    permanent: false,
                },
            );
        }
    }
}
