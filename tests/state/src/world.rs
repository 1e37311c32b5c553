//! The adversary: members, their links, and what happens to them.

mod peace;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use room_core::id::{Incarnation, PeerId};
use room_core::time::{Duration, Time};
use room_state::ballot::MemberId;
use room_state::entry::{
    Expected, Fate, Key, OwnerChange, PropertyChange, Request, Traits, ValueChange,
};
use room_state::event::StateEvent;
use room_state::limits::Options;
use room_state::replica::{Input, Linked, Output, Quorum, Replica, Saved, Settings, SnapshotError};
use room_state::wire::{Frame, Lane};

use crate::case::Case;
use crate::ghosts::Ghosts;
use crate::hostile::{LIAR, distort};
use crate::hosts::Host;
use crate::sometimes::Sometimes;

pub(crate) const HEARTBEAT: Duration = Duration::from_millis(100);
/// Shortest time between two Ticks.
const CLOCK_STEP: Duration = Duration::from_millis(1);
pub(crate) const STUCK_AFTER: Duration = Duration::from_millis(1000);
pub(crate) const HOLD: Duration = Duration::from_secs(5);
pub(crate) const ROUND_TRIP: Duration = Duration::from_millis(20);
/// The fixed host of a room that has one: it alone leads, and the others have links with it alone.
const HOST: usize = 0;
/// No number of a ballot is refused here.
const ANY_NUMBER: u64 = u64::MAX;

/// A member's process, if it runs, and what outlives it.
pub struct Node {
    /// The process.
    pub replica: Option<Replica>,
    pub(crate) host: Host,
    saved: Saved,
    starts: u64,
    is_leaving: bool,
    /// Whether its host answers no request for a snapshot, until peace comes.
    is_silent: bool,
}

/// See the module's text.
pub struct World {
    case: Case,
    rng: ChaCha8Rng,
    pub(crate) now: Time,
    /// The members.
    pub nodes: Vec<Node>,
    /// Frames on their way, by sender and receiver, of pairs with a link.
    pub(crate) links: BTreeMap<(usize, usize), VecDeque<Frame>>,
    ghosts: Ghosts,
    /// The rare situations that came up.
    pub sometimes: Sometimes,
    /// The events, for the comparison of runs.
    pub trace: Vec<u64>,
    next_uid: u64,
    /// Whether the liar lies.
    lies: bool,
    /// Whether it prints each input.
    pub prints: bool,
}

/// The name of a member.
pub fn name(index: usize) -> PeerId {
    PeerId::new(&format!("m{index}")).expect("a name")
}

impl World {
    /// A room before its first step.
    pub fn new(case: &Case, seed: u64) -> Self {
        let mut world = Self {
            case: case.clone(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            now: Time::ZERO,
            nodes: Vec::new(),
            links: BTreeMap::new(),
            ghosts: Ghosts::default(),
            sometimes: Sometimes::default(),
            trace: Vec::new(),
            next_uid: 0,
            lies: case.has_liar,
            prints: std::env::var_os("MMN_SIM_PRINT").is_some(),
        };
        for index in 0..case.members {
            world.nodes.push(Node {
                replica: None,
                host: Host::default(),
                saved: Saved::default(),
                starts: 0,
                is_leaving: false,
                is_silent: false,
            });
            world.start(index);
        }
        world
    }

    /// A whole run: the adversary's steps, then peace, in which the room must agree.
    ///
    /// # Errors
    /// The first broken property.
    pub fn run(&mut self) -> Result<(), String> {
        self.disturb()?;
        self.settle()
    }

    /// The adversary's steps.
    pub(crate) fn disturb(&mut self) -> Result<(), String> {
        for step in 0..self.case.steps {
            self.step()
                .map_err(|broken| format!("step {step}: {broken}"))?;
        }
        Ok(())
    }

    fn settings(&self, index: usize) -> Settings {
        Settings {
            quorum: match self.case.is_static {
                true => Quorum::Static((0..self.case.members).map(name).collect()),
                false => Quorum::Dynamic,
            },
            options: Options {
                tail_entries: self.case.tail_entries,
                ..Options::default()
            },
            is_eligible: true,
            is_fixed_host: self.case.is_hosted && index == HOST,
            heartbeat_interval: HEARTBEAT,
            stuck_after: STUCK_AFTER,
            member_hold: HOLD,
            switches: self.case.switches.clone(),
        }
    }

    pub(crate) fn start(&mut self, index: usize) {
        let settings = self.settings(index);
        let node = &mut self.nodes[index];
        node.starts += 1;
        node.is_leaving = false;
        node.is_silent = self.rng.random_bool(0.1);
        let me = MemberId {
            peer: name(index),
            incarnation: Incarnation {
                started_us: node.starts,
                random: node.starts,
            },
        };
        let seed = self.rng.random();
        node.replica = Some(Replica::new(me, settings, node.saved.clone(), seed));
        node.host = Host::new(self.case.tail_entries > self.case.steps);
        self.ghosts.forget(index);
        self.sometimes.forget(index);
    }

    pub(crate) fn is_up(&self, index: usize) -> bool {
        self.nodes[index].replica.is_some()
    }

    pub(crate) fn member(&self, index: usize) -> MemberId {
        let node = &self.nodes[index];
        MemberId {
            peer: name(index),
            incarnation: Incarnation {
                started_us: node.starts,
                random: node.starts,
            },
        }
    }

    fn any_node(&mut self) -> usize {
        self.rng.random_range(0..self.case.members)
    }

    /// In a calm room the adversary seldom disturbs, and hosts act more often.
    fn any_kind_of_step(&mut self) -> u32 {
        let kind = self.rng.random_range(0..1000);
        let disturbs = kind < 20 || (130..190).contains(&kind);
        match self.case.is_calm && disturbs && self.rng.random_bool(0.8) {
            true => self.rng.random_range(280..370),
            false => kind,
        }
    }

    /// One step of the adversary.
    fn step(&mut self) -> Result<(), String> {
        let index = self.any_node();
        if self.lies && self.rng.random_bool(0.02) {
            let forged = self.forge(index);
            if let Some(frames) = self.links.get_mut(&(LIAR, index)) {
                frames.extend(forged);
            }
        }
        match self.any_kind_of_step() {
            0..15 => self.name_leader(index)?,
            15..20 => self.handle(index, Input::Leader(None))?,
            20..90 => self.submit(index)?,
            90..130 => self.pass_some_time()?,
            130..150 => {
                let other = self.any_node();
                self.toggle_link(index, other)?;
            }
            150..155 => self.partition()?,
            155..160 => self.heal()?,
            160..163 if self.case.restarts => self.crash(index)?,
            163..168 if self.case.restarts => self.restart(index)?,
            168..180 if !self.is_up(index) => self.start(index),
            180..185 => {
                let member = self.any_former_member();
                self.handle(index, Input::Gone(member))?;
            }
            185..187 if !self.case.is_static && !self.case.is_hosted => {
                let (other, eligible) = (self.any_node(), self.rng.random());
                for node in 0..self.case.members {
                    self.handle(node, Input::Eligible(name(other), eligible))?;
                }
            }
            187..190 if self.case.restarts => {
                let successor = self.any_node();
                self.leave(index, successor)?;
            }
            190..280 => self.flush(index)?,
            280..300 => self.answer_host(index)?,
            300..370 => {
                let most = self.most_events();
                self.take(index, most)?;
            }
            _ => self.deliver_any()?,
        }
        Ok(())
    }

    /// The election names a member, to itself and most others that are linked with it.
    fn name_leader(&mut self, index: usize) -> Result<(), String> {
        if !self.is_up(index) || (self.case.is_hosted && index != HOST) {
            return Ok(());
        }
        let leader = Some(self.member(index));
        self.handle(index, Input::Leader(leader.clone()))?;
        for other in 0..self.case.members {
            if other != index
                && self.links.contains_key(&(other, index))
                && self.rng.random_bool(0.85)
            {
                self.handle(other, Input::Leader(leader.clone()))?;
            }
        }
        Ok(())
    }

    pub(crate) fn submit(&mut self, index: usize) -> Result<(), String> {
        if self.rng.random_bool(0.7) {
            return self.submit_action(index);
        }
        self.next_uid += 1;
        let changes = self.changes(index, self.next_uid);
        self.submit_request(index, Request::Properties(changes))
    }

    pub(crate) fn submit_action(&mut self, index: usize) -> Result<(), String> {
        self.next_uid += 1;
        let data = Bytes::copy_from_slice(&self.next_uid.to_le_bytes());
        let msg_type = 0x100;
        self.submit_request(index, Request::Action { msg_type, data })
    }

    fn submit_request(&mut self, index: usize, request: Request) -> Result<(), String> {
        let Some(replica) = &mut self.nodes[index].replica else {
            return Ok(());
        };
        if replica.open_requests() < 8 {
            let number = replica
                .submit(request.clone())
                .map_err(|error| error.to_string())?;
            let (author, read) = (replica.me().clone(), replica.seen().clone());
            self.ghosts.note_submitted(author, number, request, read);
            self.nodes[index].host.note_accepted(number);
        }
        Ok(())
    }

    /// Most hosts take what there is, some take event by event.
    fn most_events(&mut self) -> usize {
        match self.rng.random_bool(0.5) {
            true => usize::MAX,
            false => self.rng.random_range(1..4),
        }
    }

    /// The host of a member takes events.
    pub(crate) fn take(&mut self, index: usize, most: usize) -> Result<(), String> {
        let node = &mut self.nodes[index];
        let Some(replica) = &mut node.replica else {
            return Ok(());
        };
        if self.prints {
            eprintln!("{} {index}: take {most}", self.now.as_micros() / 1000);
        }
        if self.case.has_liar {
            let wanted = |event: &StateEvent| match event {
                StateEvent::SnapshotWanted { request, .. } => Some(*request),
                _ => None,
            };
            let wanted: Vec<_> = replica.take(most).iter().filter_map(wanted).collect();
            for request in wanted {
                let data = vec![7; self.rng.random_range(0..1000)].into();
                let provided = replica.provide_snapshot(self.now, request, Some(data));
                provided.map_err(|error| format!("host {index}: {error}"))?;
            }
            return self.carry_out(index);
        }
        let overruns = node.host.overruns();
        let taken = node.host.take(replica, &self.ghosts, most);
        self.sometimes.tails_overrun += node.host.overruns() - overruns;
        self.trace.push(replica.taken());
        taken.map_err(|broken| format!("host {index}: {broken}"))
    }

    /// A host provides the snapshot that it was asked for, or declines; some never answer.
    fn answer_host(&mut self, index: usize) -> Result<(), String> {
        if self.nodes[index].is_silent {
            return Ok(());
        }
        let declines = self.rng.random_bool(0.1);
        self.provide(index, declines)
    }

    pub(crate) fn provide(&mut self, index: usize, declines: bool) -> Result<(), String> {
        let node = &mut self.nodes[index];
        let (Some(replica), Some(wanted)) = (&mut node.replica, node.host.next_wanted()) else {
            return Ok(());
        };
        let data = (!declines).then_some(wanted.data);
        if self.prints {
            eprintln!("{} {index}: provides {data:?}", self.now.as_micros() / 1000);
        }
        match replica.provide_snapshot(self.now, wanted.request, data) {
            Ok(()) | Err(SnapshotError::UnknownRequest | SnapshotError::HistoryChanged) => {}
            Err(error) => return Err(format!("host {index}: {error}")),
        }
        self.carry_out(index)
    }

    /// All hosts take everything, and provide what they are asked for.
    pub(crate) fn take_all(&mut self) -> Result<(), String> {
        for index in 0..self.case.members {
            self.take(index, usize::MAX)?;
            self.provide(index, false)?;
        }
        Ok(())
    }

    /// Every host has all that its member has.
    fn check_hosts(&self) -> Result<(), String> {
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(replica) = &node.replica {
                let finished = node.host.finish(replica, &self.ghosts);
                finished.map_err(|broken| format!("host {index} at the end: {broken}"))?;
            }
        }
        Ok(())
    }

    /// Changes of one or two properties, most of them by compare-and-set.
    fn changes(&mut self, index: usize, uid: u64) -> Vec<PropertyChange> {
        let count = self.rng.random_range(1..3);
        let keys: BTreeSet<_> = (0..count).map(|_| self.rng.random_range(0..4)).collect();
        let rng = &mut self.rng;
        let seen = self.nodes[index].replica.as_ref().map(Replica::seen);
        let change = |key: i32| {
            let key = Key::new(&format!("k{key}")).expect("a key");
            let version = seen
                .and_then(|seen| seen.property(&key))
                .map_or(0, |property| property.version);
            PropertyChange {
                value: match rng.random_range(0..8) {
                    0 => ValueChange::Remove,
                    1 => ValueChange::Keep,
                    _ => ValueChange::Set(Bytes::copy_from_slice(&uid.to_le_bytes())),
                },
                owner: match rng.random_range(0..4) {
                    0 => OwnerChange::To(name(index)),
                    1 => OwnerChange::Nobody,
                    _ => OwnerChange::Keep,
                },
                traits: Traits {
                    owner_only: rng.random_bool(0.2),
                    fate: match rng.random_range(0..3) {
                        0 => Fate::Dies,
                        1 => Fate::FallsToLeader,
                        _ => Fate::LosesOwner,
                    },
                },
                expected: match rng.random_bool(0.7) {
                    true => Expected::Version(version),
                    false => Expected::Any,
                },
                key,
            }
        };
        keys.into_iter().map(change).collect()
    }

    fn pass_some_time(&mut self) -> Result<(), String> {
        let ms = match self.rng.random_range(0..10) {
            0 if self.case.is_long => {
                let ms = self.rng.random_range(60_000..660_000);
                return self.stand_still(Duration::from_millis(ms));
            }
            0 if self.case.is_calm => self.rng.random_range(100..600),
            _ if self.case.is_calm => self.rng.random_range(1..20),
            0 => self.rng.random_range(500..3000),
            _ => self.rng.random_range(1..120),
        };
        match self.rng.random_bool(0.1) {
            true => self.stand_still(Duration::from_millis(ms)),
            false => self.pass_time(Duration::from_millis(ms)),
        }
    }

    /// From now on the test itself makes the first member lie.
    #[cfg(test)]
    pub(crate) fn distrust(&mut self) {
        self.case.has_liar = true;
    }

    /// A random number below this one.
    #[cfg(test)]
    pub(crate) fn draw(&mut self, below: u64) -> u64 {
        self.rng.random_range(0..below)
    }

    /// Time passes, and each member gets a Tick at its deadlines.
    pub(crate) fn pass_time(&mut self, time: Duration) -> Result<(), String> {
        let until = self.now + time;
        while self.now < until {
            let replicas = self.nodes.iter().filter_map(|node| node.replica.as_ref());
            let next = replicas.filter_map(Replica::next_deadline).min();
            let next = next.unwrap_or(until).max(self.now + CLOCK_STEP);
            self.stand_still(next.min(until).since(self.now))?;
        }
        Ok(())
    }

    /// Time passes in one step, as if all processes stood still: each whose deadline has passed gets one Tick.
    pub(crate) fn stand_still(&mut self, time: Duration) -> Result<(), String> {
        self.now = self.now + time;
        for index in 0..self.case.members {
            let due = self.nodes[index]
                .replica
                .as_ref()
                .and_then(Replica::next_deadline);
            if due.is_some_and(|due| due <= self.now) {
                self.handle(index, Input::Tick)?;
            }
        }
        Ok(())
    }

    fn toggle_link(&mut self, one: usize, other: usize) -> Result<(), String> {
        match self.links.contains_key(&(one, other)) {
            true => self.cut(one, other),
            false => self.link(one, other),
        }
    }

    pub(crate) fn link(&mut self, one: usize, other: usize) -> Result<(), String> {
        let is_of_guests = self.case.is_hosted && one != HOST && other != HOST;
        if one == other
            || is_of_guests
            || !self.is_up(one)
            || !self.is_up(other)
            || self.links.contains_key(&(one, other))
        {
            return Ok(());
        }
        self.links.insert((one, other), VecDeque::new());
        self.links.insert((other, one), VecDeque::new());
        for (end, far) in [(one, other), (other, one)] {
            let linked = Linked {
                member: self.member(far),
                is_eligible: true,
                round_trip: ROUND_TRIP,
            };
            self.handle(end, Input::Linked(linked))?;
        }
        Ok(())
    }

    pub(crate) fn cut(&mut self, one: usize, other: usize) -> Result<(), String> {
        if self.links.remove(&(one, other)).is_none() {
            return Ok(());
        }
        self.links.remove(&(other, one));
        self.handle(one, Input::Lost(name(other)))?;
        self.handle(other, Input::Lost(name(one)))
    }

    fn cut_all(&mut self, index: usize) -> Result<(), String> {
        for other in 0..self.case.members {
            self.cut(index, other)?;
        }
        Ok(())
    }

    fn partition(&mut self) -> Result<(), String> {
        let side: u32 = self.rng.random();
        for one in 0..self.case.members {
            for other in one + 1..self.case.members {
                match (side >> one & 1) == (side >> other & 1) {
                    true => self.link(one, other)?,
                    false => self.cut(one, other)?,
                }
            }
        }
        Ok(())
    }

    pub(crate) fn heal(&mut self) -> Result<(), String> {
        for one in 0..self.case.members {
            for other in one + 1..self.case.members {
                self.link(one, other)?;
            }
        }
        Ok(())
    }

    /// Whether the room may lose another member's memory: a static one, that of a minority at a time, unless it loses all.
    fn may_lose_one(&self) -> bool {
        let counts = |node: &&Node| {
            let replica = node.replica.as_ref();
            replica.is_some_and(|replica| !replica.is_recovering()) && !node.is_leaving
        };
        let whole = self.nodes.iter().filter(counts).count();
        !self.case.is_static || self.case.loses_all || 2 * whole > self.case.members + 1
    }

    /// A member begins to leave; its process ends when it may.
    pub(crate) fn leave(&mut self, index: usize, successor: usize) -> Result<(), String> {
        let ends_the_room = self.case.is_hosted && index == HOST;
        if !self.is_up(index) || !self.may_lose_one() || ends_the_room {
            return Ok(());
        }
        self.nodes[index].is_leaving = true;
        let successor = (successor != index).then(|| name(successor));
        self.handle(index, Input::Leave { successor })
    }

    pub(crate) fn crash(&mut self, index: usize) -> Result<(), String> {
        if !self.is_up(index) || !(self.nodes[index].is_leaving || self.may_lose_one()) {
            return Ok(());
        }
        self.nodes[index].replica = None;
        self.ghosts.forget(index);
        self.sometimes.forget(index);
        for other in 0..self.case.members {
            if self.links.remove(&(index, other)).is_some() {
                self.links.remove(&(other, index));
                self.handle(other, Input::Lost(name(index)))?;
            }
        }
        Ok(())
    }

    /// A member has left: the others learn of that.
    fn end(&mut self, index: usize) -> Result<(), String> {
        let member = self.member(index);
        self.crash(index)?;
        for other in 0..self.case.members {
            if self.rng.random_bool(0.8) {
                self.handle(other, Input::Gone(member.clone()))?;
            }
        }
        Ok(())
    }

    /// A process dies, and its member starts anew at once; most of its links come back.
    fn restart(&mut self, index: usize) -> Result<(), String> {
        let linked = |other: &usize| self.links.contains_key(&(index, *other));
        let linked: Vec<_> = (0..self.case.members).filter(linked).collect();
        self.crash(index)?;
        if self.is_up(index) {
            return Ok(());
        }
        self.start(index);
        for other in linked {
            if self.rng.random_bool(0.8) {
                self.link(index, other)?;
            }
        }
        Ok(())
    }

    /// A process that has ended, or one without a link to some member.
    fn any_former_member(&mut self) -> MemberId {
        let index = self.any_node();
        let mut member = self.member(index);
        if self.is_up(index) {
            let former = member.incarnation.started_us.saturating_sub(1);
            member.incarnation = Incarnation {
                started_us: former,
                random: former,
            };
        }
        member
    }

    fn deliver_any(&mut self) -> Result<(), String> {
        let waiting = self.links.iter().filter(|(_, frames)| !frames.is_empty());
        let waiting: Vec<_> = waiting.map(|(ends, _)| *ends).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let (from, to) = waiting[self.rng.random_range(0..waiting.len())];
        self.deliver(from, to)?;
        match self.rng.random_bool(0.7) {
            true => self.flush(to),
            false => Ok(()),
        }
    }

    pub(crate) fn deliver(&mut self, from: usize, to: usize) -> Result<(), String> {
        let takes = |replica: &Replica| replica.takes_requests_of(&name(from));
        let takes_requests = self.nodes[to].replica.as_ref().is_some_and(takes);
        let Some(frames) = self.links.get_mut(&(from, to)) else {
            return Ok(());
        };
        // Each lane is a stream of its own; requests wait.
        let is_ready = |lane: &Lane| takes_requests || *lane != Lane::Requests;
        let lanes: BTreeSet<_> = frames.iter().map(Frame::lane).filter(is_ready).collect();
        let lane = match lanes.len() {
            0 => return Ok(()),
            1 => lanes.first().copied(),
            count => lanes.into_iter().nth(self.rng.random_range(0..count)),
        };
        let at = frames.iter().position(|frame| Some(frame.lane()) == lane);
        let Some(frame) = at.and_then(|at| frames.remove(at)) else {
            return Ok(());
        };
        self.arrive(from, to, frame)
    }

    /// Delivers the frame that was sent first; requests wait for room.
    #[cfg(test)]
    pub(crate) fn deliver_first(&mut self, from: usize, to: usize) -> Result<(), String> {
        let takes = |replica: &Replica| replica.takes_requests_of(&name(from));
        let takes_requests = self.nodes[to].replica.as_ref().is_some_and(takes);
        let is_ready = |frame: &Frame| takes_requests || frame.lane() != Lane::Requests;
        let frames = self.links.get_mut(&(from, to));
        let first = frames.and_then(|frames| frames.remove(frames.iter().position(is_ready)?));
        match first {
            Some(frame) => self.arrive(from, to, frame),
            None => Ok(()),
        }
    }

    fn arrive(&mut self, from: usize, to: usize, frame: Frame) -> Result<(), String> {
        if self.lies && from == LIAR {
            return self.deliver_distorted(to, frame);
        }
        let encoded = frame.encode();
        let frame = Frame::decode(&encoded).map_err(|error| format!("{frame:?}: {error}"))?;
        let from = name(from);
        let largest_number = ANY_NUMBER;
        self.handle(
            to,
            Input::Frame {
                from,
                frame,
                largest_number,
            },
        )
    }

    /// Delivers frames of the liar: one of them ends its link, if it breaks the protocol.
    fn deliver_distorted(&mut self, to: usize, frame: Frame) -> Result<(), String> {
        for _ in 0..self.rng.random_range(1..4) {
            if !self.links.contains_key(&(LIAR, to)) {
                return Ok(());
            }
            let Some(frame) = distort(&mut self.rng, &frame) else {
                continue;
            };
            self.deliver_in_the_name(LIAR, to, frame)?;
        }
        Ok(())
    }

    pub(crate) fn rng(&mut self) -> &mut ChaCha8Rng {
        &mut self.rng
    }

    pub(crate) fn flush(&mut self, index: usize) -> Result<(), String> {
        // The ghosts see the confirmed entries before the log forgets them.
        self.handle(index, Input::Tick)?;
        let now = self.now;
        if let Some(replica) = &mut self.nodes[index].replica {
            replica.flush(now);
        }
        self.carry_out(index)
    }

    pub(crate) fn handle(&mut self, index: usize, input: Input) -> Result<(), String> {
        let now = self.now;
        let provides_nothing = self.nodes[index].is_silent;
        self.sometimes
            .note_input(index, now, &input, provides_nothing);
        let shown = format!("{input:?}");
        if self.prints {
            eprintln!("{} {index}: {shown}", now.as_micros() / 1000);
        }
        let Some(replica) = &mut self.nodes[index].replica else {
            return Ok(());
        };
        if let Err(violation) = replica.handle(now, input) {
            // The others take what the liar's process did not mean.
            return match self.lies && index == LIAR {
                true => self.cut_all(LIAR),
                false => Err(format!("{violation} at {index} after {shown}")),
            };
        }
        if !self.case.has_liar {
            self.ghosts.look(index, replica)?;
        }
        self.carry_out(index)
    }

    pub(crate) fn carry_out(&mut self, index: usize) -> Result<(), String> {
        let mut ends = false;
        let all_restarted = self.nodes.iter().all(|node| node.starts > 1);
        let Some(replica) = &mut self.nodes[index].replica else {
            return Ok(());
        };
        match self.case.has_liar {
            true => Ghosts::check_bounds(index, replica)?,
            false => self.ghosts.look(index, replica)?,
        }
        self.sometimes.look(index, self.now, replica, all_restarted);
        let state = [index as u64, replica.index(), replica.confirmed()];
        self.trace.extend(state);
        let outputs: Vec<_> = std::iter::from_fn(|| replica.poll_output()).collect();
        for output in &outputs {
            self.sometimes.note_output(index, self.now, replica, output);
        }
        for output in outputs {
            match output {
                Output::Send { to, frame } => {
                    let to = (0..self.case.members)
                        .find(|at| name(*at) == to)
                        .expect("a member");
                    if let Some(frames) = self.links.get_mut(&(index, to)) {
                        frames.push_back(frame);
                    }
                }
                Output::Persist(saved) => self.nodes[index].saved = saved,
                Output::MayEnd => ends = true,
            }
        }
        if ends {
            return self.end(index);
        }
        Ok(())
    }
}
