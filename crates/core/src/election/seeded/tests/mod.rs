//! Members in virtual time, over links that delay, cut and reorder. All members in one part of the network are linked
//! with each other, as introductions link them in a room.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::election::bound::WallClock;
use crate::election::extra::Durable;
use crate::election::{Role as ShownRole, Voter};
use crate::quorum::Quorum;

mod bounds;
mod cases;
mod chaos;
mod leases;
mod lost_files;
mod rows;
mod validation;

/// The intervals of the public system's own tests: 1 s, 2 s, 3 s and 2 s.
const SHORT: Intervals = Intervals {
    probe_interval_ms: 500,
    heartbeat_interval_ms: 1000,
    heartbeat_timeout_ms: 2000,
    ttl_timeout_ms: 3000,
    retry_interval_ms: 2000,
};
/// Interval of the room's heartbeats, which carry the strategy's part.
const BEAT: Duration = Duration::from_millis(500);

fn id(name: &str) -> PeerId {
    PeerId::new(name).expect("a name")
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A place for one member: its processes come and go, its disk stays.
#[derive(Debug)]
struct Station {
    seeded: Option<Seeded>,
    life: u64,
    view: View,
    part: u32,
    is_seed: bool,
    disk: Option<Kept>,
    /// The host's events: member states with versions, and leaders.
    states: Vec<(PeerId, MemberState, u64)>,
    leaders: Vec<(Time, Option<PeerId>, u64)>,
    dials: u32,
    paused_until: Time,
}

#[derive(Debug)]
enum Happening {
    Wake {
        to: String,
        life: u64,
    },
    Message {
        from: String,
        from_life: u64,
        to: String,
        life: u64,
        message: Based,
    },
    Beat {
        from: String,
        from_life: u64,
        to: String,
        life: u64,
        beat: Beat,
    },
    Beats {
        of: String,
        life: u64,
    },
    Link {
        a: String,
        b: String,
    },
    Written {
        of: String,
        life: u64,
        number: u64,
        kept: Kept,
    },
}

struct World {
    now: Time,
    rules: SeededRules,
    roster: Vec<String>,
    stations: BTreeMap<String, Station>,
    queue: BTreeMap<(Time, u64), Happening>,
    queued: u64,
    rng: ChaCha8Rng,
    delay: (Duration, Duration),
    disk: (Duration, Duration),
    /// Arrival time of the last message in each direction.
    last: BTreeMap<(String, String), Time>,
    /// Share of messages that overtake others, in percent.
    strays: u32,
    /// Directions in which all messages are lost.
    cut: BTreeSet<(String, String)>,
    /// The leaders that votes chose, by version.
    chosen: BTreeMap<u64, PeerId>,
    violations: Vec<String>,
    /// Number of messages sent, by kind.
    sent: BTreeMap<&'static str, u64>,
}

impl World {
    /// Voters and other members; the first `seeds` voters are seeds. No member runs yet.
    fn new(seed: u64, voters: &[&str], seeds: usize, others: &[&str]) -> Self {
        let rules = SeededRules {
            intervals: SHORT,
            ..SeededRules::default()
        };
        let mut stations = BTreeMap::new();
        for (index, name) in voters.iter().chain(others).enumerate() {
            let station = Station {
                seeded: None,
                life: 0,
                view: View::default(),
                part: 0,
                is_seed: index < seeds,
                disk: None,
                states: Vec::new(),
                leaders: Vec::new(),
                dials: 0,
                paused_until: Time::ZERO,
            };
            stations.insert((*name).to_owned(), station);
        }
        Self {
            now: Time::from_micros(1_000_000),
            rules,
            roster: voters.iter().map(|name| (*name).to_owned()).collect(),
            stations,
            queue: BTreeMap::new(),
            queued: 0,
            rng: ChaCha8Rng::seed_from_u64(seed),
            delay: (ms(1), ms(5)),
            disk: (ms(1), ms(5)),
            last: BTreeMap::new(),
            strays: 0,
            cut: BTreeSet::new(),
            chosen: BTreeMap::new(),
            violations: Vec::new(),
            sent: BTreeMap::new(),
        }
    }

    fn at(&mut self, time: Time, happening: Happening) {
        self.queued += 1;
        self.queue.insert((time, self.queued), happening);
    }

    fn between(&mut self, (least, most): (Duration, Duration)) -> Duration {
        let (least, most) = (least.as_micros() as u64, most.as_micros() as u64);
        Duration::from_micros(self.rng.random_range(least..=most))
    }

    fn station(&self, name: &str) -> &Station {
        &self.stations[name]
    }

    fn station_mut(&mut self, name: &str) -> &mut Station {
        self.stations.get_mut(name).expect("a place")
    }

    fn member(&self, name: &str) -> &Seeded {
        self.station(name).seeded.as_ref().expect("it runs")
    }

    fn start(&mut self, name: &str) {
        let quorum = Quorum::of(&self.roster.iter().map(String::as_str).collect::<Vec<_>>());
        let seeds = self.stations.iter().filter(|(_, station)| station.is_seed);
        let seeds = seeds.map(|(name, _)| name.as_str().into()).collect();
        let (now, rules, seed) = (self.now, self.rules, self.rng.random());
        let station = self.station_mut(name);
        station.life += 1;
        let life = station.life;
        let incarnation = Incarnation {
            started_us: life,
            random: 0,
        };
        let config = SeededConfig {
            rules,
            seeding: Seeding {
                seeds,
                is_seed: station.is_seed,
                address: name.to_owned(),
            },
            roster: quorum.roster().expect("a roster").clone(),
            eligible: true,
            clock: WallClock::new(now, Duration::ZERO),
        };
        let kept = station.disk.clone();
        station.view = View::default();
        let seeded = Seeded::new(id(name), incarnation, config, kept, seed, now);
        station.disk = Some(seeded.kept().clone());
        station.seeded = Some(seeded);
        self.after(name);
        let first = self.between((Duration::ZERO, BEAT));
        let of = name.to_owned();
        self.at(now + first, Happening::Beats { of, life });
        self.link_all();
    }

    fn start_all(&mut self) {
        for name in self.names() {
            self.start(&name);
        }
    }

    fn names(&self) -> Vec<String> {
        self.stations.keys().cloned().collect()
    }

    /// Ends the process without a leave notice. Its links close.
    fn crash(&mut self, name: &str) {
        self.end(name, &DownReason::Closed);
    }

    /// Leaves with a leave notice.
    fn leave(&mut self, name: &str) {
        self.input(name, Local::Leave.into());
        self.end(name, &DownReason::Left { successor: None });
    }

    fn end(&mut self, name: &str, why: &DownReason) {
        let peers: Vec<_> = self.station(name).view.voters.keys().cloned().collect();
        self.station_mut(name).seeded = None;
        self.station_mut(name).view = View::default();
        for peer in peers {
            self.lose(peer.as_str(), name, why);
        }
    }

    /// `name` sees the link to `peer` end.
    fn lose(&mut self, name: &str, peer: &str, why: &DownReason) {
        let Some(voter) = self.station_mut(name).view.voters.remove(&id(peer)) else {
            return;
        };
        let input = Local::PeerDown {
            peer: id(peer),
            incarnation: voter.incarnation,
            why: why.clone(),
        };
        self.input(name, input.into());
    }

    /// Moves these members into a part of the network of their own; the links to others are lost a while later.
    fn part(&mut self, names: &[&str], part: u32) {
        for name in names {
            self.station_mut(name).part = part;
        }
        for a in self.names() {
            for b in self.names() {
                if self.station(&a).part != self.station(&b).part {
                    self.lose(&a, &b, &DownReason::Silent);
                }
            }
        }
        self.link_all();
    }

    fn heal(&mut self) {
        let names = self.names();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        self.cut.clear();
        self.part(&names, 0);
    }

    fn link_all(&mut self) {
        let names = self.names();
        for (index, a) in names.iter().enumerate() {
            for b in &names[index + 1..] {
                let took = self.between((ms(5), ms(40)));
                let (a, b) = (a.clone(), b.clone());
                self.at(self.now + took, Happening::Link { a, b });
            }
        }
    }

    fn link(&mut self, a: &str, b: &str) {
        let (left, right) = (self.station(a), self.station(b));
        let linked =
            left.view.voters.contains_key(&id(b)) && right.view.voters.contains_key(&id(a));
        if left.part != right.part || linked {
            return;
        }
        let (Some(x), Some(y)) = (&left.seeded, &right.seeded) else {
            return;
        };
        let hello_a = x.hello(self.now, &left.view, self.now);
        let hello_b = y.hello(self.now, &right.view, self.now);
        let lives = (x.incarnation, y.incarnation);
        self.linked(a, b, lives.1, (hello_a.clone(), hello_b.clone()));
        self.linked(b, a, lives.0, (hello_b, hello_a));
    }

    fn linked(
        &mut self,
        name: &str,
        peer: &str,
        incarnation: Incarnation,
        hellos: (Greeting, Greeting),
    ) {
        self.lose(name, peer, &DownReason::Closed);
        let voter = Voter {
            key: Fingerprint([0; 32]),
            incarnation,
            eligible: self.roster.iter().any(|voter| voter == peer),
            priority: 0,
            rtt: None,
        };
        self.station_mut(name).view.voters.insert(id(peer), voter);
        let input = ElectionInput::PeerUp {
            peer: id(peer),
            key: Fingerprint([0; 32]),
            ours: hellos.0,
            theirs: hellos.1,
        };
        self.input(name, input);
    }

    fn input(&mut self, name: &str, input: InputOf<Seeded>) {
        let now = self.now;
        let station = self.station_mut(name);
        let Some(seeded) = &mut station.seeded else {
            return;
        };
        seeded
            .handle(now, &station.view, input)
            .expect("no member breaks the protocol");
        self.after(name);
    }

    fn persisted(&mut self, name: &str, number: u64) {
        let now = self.now;
        let station = self.station_mut(name);
        if let Some(seeded) = &mut station.seeded {
            seeded.persisted(now, &station.view, number);
            self.after(name);
        }
    }

    fn after(&mut self, name: &str) {
        let now = self.now;
        let mut outputs = Vec::new();
        let station = self.station_mut(name);
        let life = station.life;
        let Some(seeded) = &mut station.seeded else {
            return;
        };
        while let Some(output) = seeded.poll_output() {
            outputs.push(output);
        }
        let leadership = seeded.leadership();
        let shown = (leadership.leader.cloned(), leadership.record.term());
        let last = station.leaders.last();
        if last.is_none_or(|(_, leader, _)| *leader != shown.0) {
            station.leaders.push((now, shown.0, shown.1));
        }
        if let Some(at) = seeded.next_deadline() {
            let at = at.max(now).max(station.paused_until);
            let to = name.to_owned();
            self.at(at, Happening::Wake { to, life });
        }
        for output in outputs {
            self.output(name, life, output);
        }
        self.check(name);
    }

    fn output(&mut self, name: &str, life: u64, output: OutputOf<Seeded>) {
        match output {
            ElectionOutput::Send { to, message } => self.transmit(name, to.as_str(), message),
            ElectionOutput::Extra(Extra::Persist { number, state }) => {
                let took = self.between(self.disk);
                let of = name.to_owned();
                let kept = state.decode().expect("its own state");
                let written = Happening::Written {
                    of,
                    life,
                    number,
                    kept,
                };
                self.at(self.now + took, written);
            }
            ElectionOutput::Question(_) => {}
            ElectionOutput::HeartbeatNow => self.beats(name),
            ElectionOutput::Extra(Extra::DialSeeds(_)) => self.station_mut(name).dials += 1,
            ElectionOutput::Extra(Extra::MemberState {
                peer,
                state,
                version,
            }) => self.station_mut(name).states.push((peer, state, version)),
            ElectionOutput::Extra(Extra::StaleState { .. })
            | ElectionOutput::SetLeaderResult { .. } => {}
            ElectionOutput::Extra(other) => panic!("a seeded cluster asks no store: {other:?}"),
        }
    }

    fn transmit(&mut self, name: &str, to: &str, message: Based) {
        let station = self.station(name);
        assert!(station.view.voters.contains_key(&id(to)), "it is linked");
        *self.sent.entry(message.describe().kind).or_default() += 1;
        if let SeededMessage::LeaderElected { claim } = &message.message {
            let chosen = self.chosen.entry(claim.version);
            let chosen = chosen.or_insert_with(|| claim.leader.clone()).clone();
            if chosen != claim.leader {
                let version = claim.version;
                self.violations.push(format!(
                    "votes chose {chosen} and {} for {version}",
                    claim.leader
                ));
            }
        }
        let arrives = self.arrives(name, to);
        let (from_life, life) = (self.station(name).life, self.station(to).life);
        let (from, to) = (name.to_owned(), to.to_owned());
        let happening = Happening::Message {
            from,
            from_life,
            to,
            life,
            message,
        };
        self.at(arrives, happening);
    }

    fn arrives(&mut self, from: &str, to: &str) -> Time {
        let took = self.between(self.delay);
        let key = (from.to_owned(), to.to_owned());
        let last = self.last.get(&key).copied().unwrap_or(Time::ZERO);
        if self.rng.random_range(0..100) < self.strays {
            return self.now + took * 20;
        }
        let arrives = (self.now + took).max(last);
        self.last.insert(key, arrives);
        arrives
    }

    fn beats(&mut self, name: &str) {
        let station = self.station(name);
        let Some(seeded) = &station.seeded else {
            return;
        };
        let from_life = station.life;
        let beats: Vec<_> = station
            .view
            .voters
            .keys()
            .map(|peer| (peer.clone(), seeded.pulse(self.now, &station.view, peer)))
            .collect();
        for (peer, beat) in beats {
            let to = peer.as_str().to_owned();
            let arrives = self.arrives(name, &to);
            let life = self.station(&to).life;
            let from = name.to_owned();
            let happening = Happening::Beat {
                from,
                from_life,
                to,
                life,
                beat,
            };
            self.at(arrives, happening);
        }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > until {
                break;
            }
            let ((at, _), happening) = entry.remove_entry();
            self.now = self.now.max(at);
            self.happen(happening);
        }
        self.now = until;
    }

    fn reaches(&self, from: &str, from_life: u64, to: &str, life: u64) -> bool {
        let (sender, receiver) = (self.station(from), self.station(to));
        sender.life == from_life
            && receiver.life == life
            && sender.part == receiver.part
            && receiver.view.voters.contains_key(&id(from))
            && !self.cut.contains(&(from.to_owned(), to.to_owned()))
    }

    fn happen(&mut self, happening: Happening) {
        let paused = |world: &Self, name: &str| {
            let until = world.station(name).paused_until;
            (until > world.now).then_some(until)
        };
        match happening {
            Happening::Wake { to, life } => {
                if let Some(until) = paused(self, &to) {
                    return self.at(until, Happening::Wake { to, life });
                }
                let station = self.station(&to);
                let due = station.seeded.as_ref().and_then(Election::next_deadline);
                if station.life == life && due.is_some_and(|due| due <= self.now) {
                    self.input(&to, Local::Tick.into());
                }
            }
            Happening::Message {
                from,
                from_life,
                to,
                life,
                message,
            } => {
                if let Some(until) = paused(self, &to) {
                    let later = Happening::Message {
                        from,
                        from_life,
                        to,
                        life,
                        message,
                    };
                    return self.at(until, later);
                }
                if self.reaches(&from, from_life, &to, life) {
                    let from = id(&from);
                    self.input(&to, ElectionInput::Message { from, message });
                }
            }
            Happening::Beat {
                from,
                from_life,
                to,
                life,
                beat,
            } => {
                if self.reaches(&from, from_life, &to, life) && paused(self, &to).is_none() {
                    let (from, pulse) = (id(&from), beat);
                    self.input(&to, ElectionInput::Pulse { from, pulse });
                }
            }
            Happening::Beats { of, life } => {
                if self.station(&of).life == life && self.station(&of).seeded.is_some() {
                    if paused(self, &of).is_none() {
                        self.beats(&of);
                    }
                    self.at(self.now + BEAT, Happening::Beats { of, life });
                }
            }
            Happening::Link { a, b } => self.link(&a, &b),
            Happening::Written {
                of,
                life,
                number,
                kept,
            } => {
                let station = self.station_mut(&of);
                if station.life == life && station.seeded.is_some() {
                    station.disk = Some(kept);
                    self.persisted(&of, number);
                }
            }
        }
    }

    /// Checks the invariants.
    fn check(&mut self, name: &str) {
        let majority = self.roster.len() / 2 + 1;
        let now = self.now;
        let leaders: Vec<_> = self
            .stations
            .iter()
            .filter_map(|(name, station)| Some((name, station.seeded.as_ref()?)))
            .filter(|(_, seeded)| seeded.acknowledged_by(now) >= majority && majority > 1)
            .map(|(name, seeded)| (name.clone(), seeded.observation().version))
            .collect();
        if leaders.len() > 1 {
            self.violations
                .push(format!("{now:?}: a majority acknowledges {leaders:?}"));
        }
        let Some(seeded) = &self.station(name).seeded else {
            return;
        };
        if seeded.observation().version > seeded.decided() {
            self.violations
                .push(format!("{name} shows an open version"));
        }
    }

    fn leaders(&self) -> Vec<&str> {
        let running = self.stations.iter();
        let leads = |station: &Station| {
            let seeded = station.seeded.as_ref();
            seeded.is_some_and(|seeded| Election::role(seeded) == ShownRole::Leader)
        };
        running
            .filter(|(_, station)| leads(station))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// The one leader and version that all running members observe, with equal tables in which all are active.
    fn agreed(&self) -> Result<(PeerId, u64), String> {
        let running: Vec<_> = self
            .stations
            .iter()
            .filter_map(|(name, station)| Some((name, station.seeded.as_ref()?)))
            .collect();
        let mut found = None;
        for (name, seeded) in &running {
            let observed = seeded.observation();
            let Some(leader) = observed.leader.clone() else {
                return Err(format!(
                    "{name} has no leader, version {}",
                    observed.version
                ));
            };
            let seen = (leader, observed.version, seeded.members());
            match &found {
                None => found = Some(seen),
                Some(found) if *found != seen => {
                    return Err(format!("{name} sees {seen:?}, others {found:?}"));
                }
                Some(_) => {}
            }
        }
        let (leader, version, members) = found.ok_or("no member runs")?;
        let active = members
            .iter()
            .all(|listed| listed.state == MemberState::Active);
        if !active || members.len() != running.len() {
            return Err(format!("{} run, and listed are {members:?}", running.len()));
        }
        if !self.violations.is_empty() {
            return Err(format!("{:?}", self.violations));
        }
        Ok((leader, version))
    }

    /// States of `peer` that the host of `name` has received.
    fn reported(&self, name: &str, peer: &str) -> Vec<MemberState> {
        let states = self.station(name).states.iter();
        states
            .filter(|(of, ..)| *of == id(peer))
            .map(|(_, state, _)| *state)
            .collect()
    }
}
