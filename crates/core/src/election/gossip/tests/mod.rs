//! Peers in virtual time, over links that delay, lose and cut. Ids are numbers; the lowest wins.

use std::collections::{BTreeMap, BTreeSet};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::time::Duration;

mod chaos;
mod figures;
mod rows;
mod units;

type Id = u32;

/// The constants of the public system's own tests: grace 500 ms, samples 100 ms, threshold and election 500 ms.
const SHORT: Windows = Windows {
    startup_grace: ms(500),
    sample_interval: ms(100),
    alive_threshold: ms(500),
    election_duration: ms(500),
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn at(millis: u64) -> Time {
    Time::from_micros(millis * 1000)
}

fn settings(windows: Windows) -> Settings {
    Settings {
        windows,
        strict_lowest: false,
    }
}

/// A peer as its host sees it, and its place in the network.
#[derive(Debug)]
struct Station {
    /// `None` after a crash.
    peer: Option<Peer<Id>>,
    /// Its present incarnation.
    life: u64,
    view: BTreeSet<Id>,
    /// Peers of one part receive each other's messages.
    part: u32,
    paused_until: Option<Time>,
    /// The calls of the callback, over all incarnations of the process without a crash in between.
    callbacks: Vec<bool>,
    /// The calls of the metric.
    metrics: Vec<bool>,
    /// The times at which it declared itself, and at which it proposed itself.
    declared: Vec<Time>,
    proposed: Vec<Time>,
    /// Messages that it accepted.
    taken: Vec<Message<Id>>,
}

struct World {
    now: Time,
    settings: Settings,
    stations: BTreeMap<Id, Station>,
    wire: BTreeMap<(Time, u64), (Id, Message<Id>)>,
    sent: u64,
    rng: ChaCha8Rng,
    delay: (Duration, Duration),
    /// Probability of losing a message, in percent.
    loss: u32,
    /// Directions in which all messages are lost.
    cut: BTreeSet<(Id, Id)>,
}

impl World {
    fn new(seed: u64, settings: Settings) -> Self {
        Self {
            now: Time::ZERO,
            settings,
            stations: BTreeMap::new(),
            wire: BTreeMap::new(),
            sent: 0,
            rng: ChaCha8Rng::seed_from_u64(seed),
            delay: (ms(1), ms(5)),
            loss: 0,
            cut: BTreeSet::new(),
        }
    }

    /// A world of peers that start at once and see each other.
    fn of(ids: impl IntoIterator<Item = Id>, settings: Settings) -> Self {
        let mut world = Self::new(1, settings);
        world.start_all(ids, 0);
        world
    }

    fn start(&mut self, id: Id) {
        self.start_all([id], 0);
    }

    fn start_all(&mut self, ids: impl IntoIterator<Item = Id>, part: u32) {
        let mut fresh = Vec::new();
        for id in ids {
            let life = self.stations.get(&id).map_or(1, |station| station.life + 1);
            let station = Station {
                peer: None,
                life,
                view: BTreeSet::new(),
                part,
                paused_until: None,
                callbacks: Vec::new(),
                metrics: Vec::new(),
                declared: Vec::new(),
                proposed: Vec::new(),
                taken: Vec::new(),
            };
            self.stations.insert(id, station);
            fresh.push(id);
        }
        for id in &fresh {
            let members: BTreeSet<Id> = self.reachable(*id, &fresh);
            let station = self.station(*id);
            station.view = members;
            let incarnation = Incarnation {
                started_us: station.life,
                random: 0,
            };
            let (settings, now) = (self.settings, self.now);
            let station = self.station(*id);
            station.peer = Some(Peer::new(*id, incarnation, settings, now, &station.view));
        }
        self.see_all();
    }

    /// The peers that are alive, or start now, in the part of `id`.
    fn reachable(&self, id: Id, fresh: &[Id]) -> BTreeSet<Id> {
        let part = self.stations[&id].part;
        self.stations
            .iter()
            .filter(|(other, station)| {
                **other != id
                    && station.part == part
                    && (station.peer.is_some() || fresh.contains(other))
            })
            .map(|(other, _)| *other)
            .collect()
    }

    /// Sets every peer's view to the live peers of its part.
    fn see_all(&mut self) {
        for id in self.ids() {
            self.see(id);
        }
    }

    fn see(&mut self, id: Id) {
        let view = self.reachable(id, &[]);
        self.station(id).view = view;
    }

    fn ids(&self) -> Vec<Id> {
        self.stations.keys().copied().collect()
    }

    fn station(&mut self, id: Id) -> &mut Station {
        self.stations.get_mut(&id).expect("started")
    }

    fn crash(&mut self, id: Id) {
        self.station(id).peer = None;
        self.see_all();
    }

    /// Partitions or heals the network; the views follow at once.
    fn part(&mut self, part_of: impl Fn(Id) -> u32) {
        for (id, station) in &mut self.stations {
            station.part = part_of(*id);
        }
        self.see_all();
    }

    fn stop(&mut self, id: Id) {
        self.call(id, |peer, _, _| peer.stop());
    }

    fn yield_leadership(&mut self, id: Id) {
        self.call(id, |peer, now, _| peer.yield_leadership(now));
    }

    fn call(&mut self, id: Id, f: impl FnOnce(&mut Peer<Id>, Time, &BTreeSet<Id>)) {
        let now = self.now;
        let station = self.station(id);
        if let Some(peer) = &mut station.peer {
            f(peer, now, &station.view);
        }
        self.carry_out(id);
    }

    fn carry_out(&mut self, id: Id) {
        loop {
            let now = self.now;
            let station = self.station(id);
            let Some(act) = station.peer.as_mut().and_then(Peer::poll_act) else {
                return;
            };
            match act {
                Act::Send(claim) => {
                    match claim {
                        Claim::Proposal => station.proposed.push(now),
                        Claim::Declaration => station.declared.push(now),
                    }
                    let message = station.peer.as_mut().expect("alive").message(claim);
                    self.gossip(&message);
                }
                Act::Gained => self.callback(id, true),
                Act::Lost => self.callback(id, false),
                Act::Window { leads } => station.metrics.push(leads),
            }
        }
    }

    /// Asserts that callbacks alternate, and that the first reports a gain.
    fn callback(&mut self, id: Id, gained: bool) {
        let station = self.station(id);
        let before = station.callbacks.last().copied().unwrap_or(false);
        assert_ne!(before, gained, "peer {id} at {:?}", self.now);
        self.station(id).callbacks.push(gained);
    }

    fn gossip(&mut self, message: &Message<Id>) {
        for to in self.ids() {
            if to == message.from || !self.carries(message.from, to) {
                continue;
            }
            if self.rng.random_range(0..100) < self.loss {
                continue;
            }
            self.send(to, message.clone());
        }
    }

    fn carries(&self, from: Id, to: Id) -> bool {
        self.stations[&from].part == self.stations[&to].part && !self.cut.contains(&(from, to))
    }

    fn send(&mut self, to: Id, message: Message<Id>) {
        let (least, most) = self.delay;
        let delay = self.rng.random_range(least.as_micros()..=most.as_micros());
        let delay = Duration::from_micros(u64::try_from(delay).expect("short"));
        self.sent += 1;
        self.wire
            .insert((self.now + delay, self.sent), (to, message));
    }

    fn wake_at(&self, station: &Station) -> Option<Time> {
        let deadline = station.peer.as_ref()?.next_deadline()?;
        Some(
            station
                .paused_until
                .map_or(deadline, |until| until.max(deadline)),
        )
    }

    /// Runs all events until `end`.
    fn run_until(&mut self, end: Time) {
        loop {
            let ticks = self
                .stations
                .iter()
                .filter_map(|(id, station)| Some((self.wake_at(station)?, *id)));
            let tick = ticks.min().filter(|(when, _)| *when <= end);
            let arrival = self.wire.first_key_value().map(|(key, _)| *key);
            let arrival = arrival.filter(|(when, _)| *when <= end);
            match (arrival, tick) {
                (Some(key), tick) if tick.is_none_or(|(when, _)| key.0 <= when) => {
                    self.now = key.0.max(self.now);
                    let (to, message) = self.wire.remove(&key).expect("seen above");
                    self.arrive(to, message);
                }
                (_, Some((when, id))) => {
                    self.now = when.max(self.now);
                    self.call(id, |peer, now, view| peer.tick(now, view));
                }
                (_, None) => break,
            }
        }
        self.now = end;
    }

    fn arrive(&mut self, to: Id, message: Message<Id>) {
        let Some(station) = self.stations.get(&to) else {
            return;
        };
        if let Some(until) = station.paused_until.filter(|until| *until > self.now) {
            // It waits in the socket of the paused process.
            self.sent += 1;
            self.wire.insert((until, self.sent), (to, message));
            return;
        }
        if !self.carries(message.from, to) {
            return;
        }
        let mut taken = false;
        self.call(to, |peer, now, view| {
            taken = peer.receive(now, &message, view);
        });
        if taken {
            self.station(to).taken.push(message);
        }
    }

    fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Runs while `going`, checked every millisecond.
    fn run_while(&mut self, limit: Duration, going: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        while going(self) {
            assert!(self.now < end, "not within {limit:?}: {:?}", self.leaders());
            self.run_for(ms(1));
        }
    }

    fn leaders(&self) -> Vec<Id> {
        let leads = |station: &Station| station.peer.as_ref().is_some_and(Peer::is_leader);
        let leading = self.stations.iter().filter(|(_, station)| leads(station));
        leading.map(|(id, _)| *id).collect()
    }

    fn peer(&self, id: Id) -> &Peer<Id> {
        self.stations[&id].peer.as_ref().expect("alive")
    }

    fn callbacks(&self, id: Id) -> &[bool] {
        &self.stations[&id].callbacks
    }

    /// The leader that `id` shows.
    fn shown(&self, id: Id) -> Option<Id> {
        self.peer(id).leader(&self.stations[&id].view).copied()
    }

    /// The number of messages that all peers have sent.
    fn sent(&self) -> usize {
        let sent = |station: &Station| station.declared.len() + station.proposed.len();
        self.stations.values().map(sent).sum()
    }
}
