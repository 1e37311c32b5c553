//! Merges of two rooms of random members. Ids belong to two processes, leaders have banned members of the other room,
//! and members crash or fall silent meanwhile. In the end there is one room, or two without a link.

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::wire::{Ban, RoomRules};

/// Number of merges that the test plays; `MMN_MERGES` sets another number, and `MMN_MERGE` plays one.
const SEEDS: u64 = 300;
/// Further seeds that found faults: outvoted leaders that ban, namesakes that only one end knows, bans of leaders that
/// moved.
const FOUND: [u64; 15] = [
    673, 858, 913, 1134, 1152, 1255, 2333, 2736, 4084, 4114, 4226, 5443, 5476, 7925, 11297,
];
/// Seeds that found faults with a liar: namesakes that it makes up, a leadership that it claims after the host's dial,
/// a ban of a leader's key.
const FOUND_WITH_LIAR: [u64; 12] = [
    121, 381, 634, 643, 928, 1153, 2040, 2500, 2673, 3374, 11034, 13665,
];
const LIAR: &str = "m";
/// Time after which a room is settled: the places of lost members are kept for a minute.
const SETTLES_IN: Duration = ms(90_000);

struct Merge {
    net: Net,
    rng: ChaCha8Rng,
    /// The members of both rooms.
    rooms: [Vec<String>; 2],
    /// The place of a process that the leader of the first room has banned.
    banned: Option<String>,
    /// The steps so far, for the text of a failure.
    log: Vec<String>,
    /// Whether both rooms had a link.
    met: bool,
    /// Whether members crashed or fell silent.
    disturbed: bool,
    /// A member that lies. It may not lead.
    liar: Option<PeerId>,
    /// Whether the rooms link while they begin, before they have leaders.
    is_early: bool,
}

impl Merge {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut names: Vec<String> = ('a'..='h').map(|name| name.to_string()).collect();
        names.shuffle(&mut rng);
        let others = names.split_off(4);
        names.truncate(rng.random_range(1..=4));
        let one = names;
        let size = rng.random_range(1..=4);
        let other = others.into_iter().zip(0..size).map(|(name, number)| {
            let namesake = one.get(number).filter(|_| rng.random_bool(0.35));
            namesake.map_or(name, |name| format!("{name}'"))
        });
        let mut other: Vec<String> = other.collect();
        other.shuffle(&mut rng);
        let mut net = Net::new();
        net.links_repeat = true;
        Self {
            net,
            rng,
            rooms: [one, other],
            banned: None,
            log: Vec::new(),
            met: false,
            disturbed: false,
            liar: None,
            is_early: false,
        }
    }

    /// Rooms that link while they begin: all members start within a moment.
    fn early(seed: u64) -> Self {
        Self {
            is_early: true,
            ..Self::new(seed)
        }
    }

    /// Undisturbed rooms. The last member of one of both is a liar.
    fn with_liar(seed: u64) -> Self {
        let mut merge = Self::new(seed);
        let room = merge.rng.random_range(0..2);
        merge.rooms[room].push(LIAR.into());
        merge.liar = Some(id(LIAR));
        merge
    }

    fn found(&mut self, room: usize) {
        let names = self.rooms[room].clone();
        self.log.push(format!("room {names:?}"));
        self.net.start(&names[0]);
        if !self.is_early {
            let leads = |net: &Net| net.leads(&names[0]);
            self.net.wait("the first leads alone", leads);
        }
        for name in &names[1..] {
            match self.liar.as_ref().is_some_and(|liar| liar.as_str() == name) {
                true => self.start_liar(),
                false => self.net.start(name),
            }
            self.net.enter(name, &names[0]);
        }
        let time = match self.is_early {
            true => self.rng.random_range(0..300),
            false => self.rng.random_range(500..3_000),
        };
        self.net.run(ms(time));
    }

    /// Bans the last member of the first room, which starts anew with another key in the second room.
    fn ban(&mut self) {
        let last = self.rooms[0].last().map(|name| id(name));
        if self.is_early
            || self.rooms[0].len() < 2
            || !self.rng.random_bool(0.3)
            || last == self.liar
        {
            return;
        }
        let [first, second] = &mut self.rooms;
        let banned = first.pop().expect("it has two");
        self.log.push(format!("{} bans {banned}", first[0]));
        let ban = Command::Kick {
            peer: id(&banned),
            code: 0,
            bytes: Vec::new(),
            ban: true,
        };
        self.net.order(&first[0], ban);
        self.net.run(ms(200));
        self.net.kill(&banned, true);
        second.retain(|name| name.trim_end_matches('\'') != banned);
        let at = self.rng.random_range(0..=second.len());
        second.insert(at, banned.clone());
        self.banned = Some(banned);
    }

    /// Makes a host in one room dial a member of the other one.
    fn dial(&mut self) {
        let mut ends = self.rooms.clone();
        ends.shuffle(&mut self.rng);
        let [dialler, contact] = ends.map(|room| room.choose(&mut self.rng).cloned());
        let (Some(dialler), Some(contact)) = (dialler, contact) else {
            return;
        };
        let runs = |name: &String| {
            let place = self.net.places.get(&id(name));
            place.is_some_and(|place| !place.node.is_over())
        };
        if !runs(&dialler)
            || !runs(&contact)
            || self.net.is_linked_well(&id(&dialler), &id(&contact))
        {
            return;
        }
        for (newcomer, at) in [(&dialler, &contact), (&contact, &dialler)] {
            if let Err(why) = self.net.check_by_hand(newcomer, at) {
                self.log.push(format!("{at} refuses {newcomer}: {why}"));
                return;
            }
        }
        let ticket = self.net.ask(&dialler, &contact);
        self.net.run(ms(100));
        let verdict = self
            .net
            .places
            .get(&id(&contact))
            .and_then(|_| self.net.verdict(&contact, ticket));
        self.log
            .push(format!("{dialler} dials {contact}: {verdict:?}"));
        if verdict == Some(Verdict::Accepted) && self.net.places.contains_key(&id(&dialler)) {
            self.met = true;
            self.net.invite(&dialler, &contact);
        }
    }

    fn disturb(&mut self) {
        let all: Vec<String> = self.rooms.concat();
        let Some(name) = all.choose(&mut self.rng).cloned() else {
            return;
        };
        if !self.net.places.contains_key(&id(&name)) {
            return;
        }
        self.disturbed = true;
        if self.rng.random_bool(0.5) {
            self.log.push(format!("{name} crashes"));
            let reported = self.rng.random_bool(0.5);
            self.net.kill(&name, reported);
        } else {
            self.log.push(format!("{name} is silent for a while"));
            self.net.mute(&name, true);
            let time = self.rng.random_range(100..4_000);
            self.net.run(ms(time));
            if self.net.places.contains_key(&id(&name)) {
                self.net.mute(&name, false);
            }
        }
    }

    fn start_liar(&mut self) {
        let mut config = self.net.config.clone();
        config.election.eligible = false;
        self.net
            .start_with(LIAR, life(key_at(LIAR), self.net.now.as_micros()), config);
    }

    /// Sends a random lie to a member: the liar follows another leader, introduces another process or a made-up one, or
    /// reports a ban of another process.
    fn lie(&mut self) {
        let liar = self.net.node(LIAR);
        let members: Vec<_> = liar.membership().ids();
        let Some(to) = members.choose(&mut self.rng).cloned() else {
            return;
        };
        let places: Vec<_> = self.net.places.keys().cloned().collect();
        let subject = places.choose(&mut self.rng).expect("the liar runs");
        let made_up = Fingerprint([self.rng.random_range(200..=255); 32]);
        let key = match self.rng.random_bool(0.7) {
            true => self.net.places[subject].life.key,
            false => made_up,
        };
        let (peer, place) = (id_at(subject), &self.net.places[subject]);
        let record = Record {
            leader: Some(peer.clone()),
            leader_key: Some(key),
            ..place.node.record().clone()
        };
        let entry = PeerEntry {
            id: peer.clone(),
            key,
            addresses: vec![place.address],
        };
        let to = to.as_str();
        match self.rng.random_range(0..4) {
            0 => self
                .net
                .forge(LIAR, to, Pulse::Follows { record, live: true }),
            1 => self.net.forge(LIAR, to, Message::PeerList(vec![entry])),
            2 => {
                let other = id(LIAR);
                self.net.forge(LIAR, to, Message::Unlinked { peer, other });
            }
            _ => {
                let ban = Ban {
                    peer,
                    key,
                    version: (record.stamp.clone(), self.rng.random_range(0..9)),
                    by: None,
                    lifted: false,
                };
                let rules = RoomRules {
                    bans: vec![ban],
                    ..RoomRules::default()
                };
                self.net.forge(LIAR, to, Message::RoomRules(rules));
            }
        }
    }

    /// Runs for a while. A liar sends five times a second.
    fn run(&mut self, time: Duration) {
        let until = self.net.now + time;
        while self.net.now < until {
            if self.liar.is_some() {
                self.lie();
                self.net.run(ms(200));
            } else {
                self.net.run(until.since(self.net.now));
            }
        }
    }

    fn play(&mut self) {
        self.found(0);
        self.ban();
        self.found(1);
        let disturbs = self.rng.random_bool(0.3) && self.liar.is_none();
        for _ in 0..self.rng.random_range(1..=3) {
            self.dial();
            if disturbs {
                self.disturb();
            }
            let time = self.rng.random_range(0..2_000);
            self.run(ms(time));
        }
        if self.liar.is_some() {
            self.run(ms(10_000));
        }
        self.net.run(SETTLES_IN);
    }

    /// The place of the process to which a member is linked under that id.
    fn linked(&self, name: &PeerId, peer: &PeerId) -> Option<&PeerId> {
        let key = self.net.places[name].node.membership().get(peer)?.key;
        let mut places = self.net.places.iter();
        let its = places.find(|(place, its)| id_at(place) == *peer && its.life.key == key);
        its.map(|(place, _)| place)
    }

    /// The processes in the room of a member, as it sees it; without the liar.
    fn room_of(&self, name: &PeerId) -> BTreeSet<PeerId> {
        let members = self.net.places[name].node.membership().iter();
        let members = members.filter(|(peer, _)| Some(*peer) != self.liar.as_ref());
        let places = members.map(|(peer, _)| self.linked(name, peer).unwrap_or(peer).clone());
        places.chain([name.clone()]).collect()
    }

    fn leader_of(&self, name: &PeerId) -> Option<PeerId> {
        let node = &self.net.places[name].node;
        match node.leader()? {
            leader if *leader == id_at(name) => Some(name.clone()),
            leader => self.linked(name, leader).cloned(),
        }
    }

    /// Number of members of the second room that the first one cannot keep.
    fn conflicts(&self) -> usize {
        let [one, other] = &self.rooms;
        let is_one = |name: &&String| one.iter().any(|its| name.trim_end_matches('\'') == its);
        other.iter().filter(is_one).count() + usize::from(self.banned.is_some())
    }

    /// The fault of the final state, if any.
    fn fault(&self) -> Option<String> {
        let honest = self.net.places.keys();
        let honest = honest.filter(|name| Some(*name) != self.liar.as_ref());
        let (over, here): (Vec<&PeerId>, Vec<&PeerId>) =
            honest.partition(|name| self.net.places[*name].node.is_over());
        let mut rooms = BTreeSet::new();
        for name in &here {
            let room = self.room_of(name);
            let Some(leader) = self.leader_of(name) else {
                return Some(format!("{name} has no leader"));
            };
            if !self
                .net
                .places
                .get(&leader)
                .is_some_and(|place| place.node.is_leader())
            {
                return Some(format!("{name} follows {leader}, which does not lead"));
            }
            for member in &room {
                if !here.contains(&member) {
                    return Some(format!(
                        "{name} has {member}, whose room is over or that crashed"
                    ));
                }
                if self.room_of(member) != room {
                    return Some(format!(
                        "{name} and {member} are in rooms of different members"
                    ));
                }
                if self.leader_of(member).as_ref() != Some(&leader) {
                    return Some(format!("{name} and {member} follow different leaders"));
                }
            }
            rooms.insert(room);
        }
        for name in over {
            let why = self.net.room_ended(name.as_str());
            let has_namesake = here.iter().any(|other| id_at(other) == id_at(name));
            let rightly = match why {
                Some(EndReason::DuplicateId) => has_namesake,
                Some(EndReason::Kicked) => self.banned.as_deref() == Some(name.as_str()),
                _ => false,
            };
            if !rightly && !self.disturbed {
                return Some(format!("the room of {name} is over: {why:?}"));
            }
        }
        // Where members have namesakes or are banned, two rooms may stay. No member may stay alone; one with a link to the
        // liar is not alone.
        let is_alone = |room: &BTreeSet<PeerId>| {
            let members = |name| self.net.places[name].node.membership().len();
            room.len() == 1 && room.iter().all(|name| members(name) == 0)
        };
        let apart = rooms.len() > 1 && (self.conflicts() == 0 || rooms.iter().any(is_alone));
        (self.met && apart && !self.disturbed).then(|| format!("rooms {rooms:?}"))
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Plays the merges of these seeds, or the one of `MMN_MERGE`, and asserts that all end well.
fn play(seeds: Vec<u64>, merge: impl Fn(u64) -> Merge) {
    let seeds = number("MMN_MERGE").map_or(seeds, |seed| vec![seed]);
    let (mut met, mut faults) = (0, Vec::new());
    for &seed in &seeds {
        let mut merge = merge(seed);
        merge.play();
        met += u64::from(merge.met);
        if let Some(fault) = merge.fault() {
            let state = match seeds.len() {
                1 => merge.net.describe(),
                _ => String::new(),
            };
            faults.push(format!(
                "MMN_MERGE={seed}: {fault}\n  {}{state}",
                merge.log.join("\n  ")
            ));
        }
    }
    let count = faults.len();
    faults.truncate(8);
    assert!(faults.is_empty(), "{count} faults:\n{}", faults.join("\n"));
    assert!(seeds.len() < 100 || met > 50, "only {met} met");
}

#[test]
fn random_rooms_that_merge_become_one_or_stay_apart() {
    let first = 0..number("MMN_MERGES").unwrap_or(SEEDS);
    play(first.chain(FOUND).collect(), Merge::new);
}

#[test]
fn a_liar_among_merging_random_rooms_separates_no_honest_members() {
    let first = 0..number("MMN_MERGES").unwrap_or(SEEDS);
    play(first.chain(FOUND_WITH_LIAR).collect(), Merge::with_liar);
}

#[test]
fn random_rooms_that_merge_while_they_begin_become_one_or_stay_apart() {
    let first = 0..number("MMN_MERGES").unwrap_or(SEEDS);
    play(first.collect(), Merge::early);
}
