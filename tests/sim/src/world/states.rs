//! The replicated state of a room beside its election: a log, and a host that acts, for each process.
//!
//! The log learns of its room from the real core, as it does in the library. Its frames travel on the control streams of the
//! links. What all members confirm, and what each host receives, is checked after every event
//! ([`Ghosts`](state_simulator::ghosts), [`Host`](state_simulator::hosts)).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use bytes::Bytes;
use room_core::election::gossip::Gossip;
use room_core::id::{Incarnation, PeerId};
use room_core::node::{Event, Node};
use room_core::time::{Duration, Time};
use room_state::ballot::MemberId;
use room_state::entry::{
    Expected, Fate, Key, OwnerChange, PropertyChange, Request, Traits, ValueChange,
};
use room_state::event::StateEvent;
use room_state::laboratory::Switches;
use room_state::limits::Options;
use room_state::replica::{Input, Linked, Output, Quorum, Replica, Saved, Settings, SnapshotError};
use room_state::watch::{Watch, counts};
use room_state::wire::Frame;
use state_simulator::ghosts::Ghosts;
use state_simulator::hostile::distort;
use state_simulator::hosts::Host;

use super::{Happening, MAX_TICKS_AT_ONCE, World};

/// Interval at which hosts act.
const HOSTS_ACT: Duration = Duration::from_millis(40);
/// Probability that a host then submits a request. Checks replay all entries, so that there must not be many.
const ACTS: f64 = 0.02;
/// Requests that a host leaves without a result before it waits.
const MOST_OPEN: usize = 8;

/// See the module's text.
pub struct States {
    rng: ChaCha8Rng,
    options: Options,
    /// Broken rules of the log.
    switches: Switches,
    ghosts: Ghosts,
    members: BTreeMap<usize, Member>,
    /// The disks of static voters.
    disks: BTreeMap<usize, Saved>,
    requests: u64,
    /// Whether hosts still submit requests.
    pub submits: bool,
    /// Frames sent.
    frames: u64,
    /// Changes in the room that a log was shown.
    changes: u64,
    /// Leaders that left, and waited for the others.
    pub leavers: u64,
    /// A member that sends changed frames, or has done so.
    liar: Option<usize>,
    /// Whether it still does.
    lies: bool,
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").finish_non_exhaustive()
    }
}

/// A process with its log and its host.
struct Member {
    life: u64,
    replica: Replica,
    host: Host,
    watch: Watch,
    /// The processes of the peers that it has sessions with.
    processes: BTreeMap<PeerId, Incarnation>,
    /// Events of the room that the log has been shown.
    events: usize,
    /// Requests that wait until the log has room for them.
    waiting: BTreeMap<PeerId, VecDeque<Frame>>,
    wake_at: Option<Time>,
    is_due: bool,
    /// Whether it leaves the room.
    leaves: bool,
    /// The last turn that only a deadline caused, and how many there were at that time.
    ticks: (Time, u32),
}

impl States {
    /// Compares a log with all that was confirmed. A liar may undo that, and make no log grow.
    fn look_at(&mut self, slot: usize) -> Result<(), String> {
        let Some(member) = self.members.get(&slot) else {
            return Ok(());
        };
        match self.liar {
            Some(_) => Ghosts::check_bounds(slot, &member.replica),
            None => self.ghosts.look(slot, &member.replica),
        }
    }

    /// The frames that go out for one: its own, or up to three others.
    fn outgoing(&mut self, slot: usize, frame: Frame) -> Vec<Frame> {
        if !self.lies || self.liar != Some(slot) {
            return vec![frame];
        }
        let count = self.rng.random_range(1..4);
        (0..count)
            .filter_map(|_| distort(&mut self.rng, &frame))
            .collect()
    }
}

impl World {
    /// Lets the room keep a state from now on.
    pub(crate) fn keep_state(&mut self, seed: u64, switches: Switches) {
        self.states = Some(Box::new(States {
            rng: ChaCha8Rng::seed_from_u64(seed),
            options: Options::default(),
            switches,
            ghosts: Ghosts::default(),
            members: BTreeMap::new(),
            disks: BTreeMap::new(),
            requests: 0,
            submits: true,
            frames: 0,
            changes: 0,
            leavers: 0,
            liar: None,
            lies: false,
        }));
        self.at(self.now + HOSTS_ACT, Happening::HostsAct);
    }

    /// This member sends changed frames of the state from now on.
    pub(crate) fn lie_about_the_state(&mut self, slot: usize) {
        if let Some(states) = &mut self.states {
            (states.liar, states.lies) = (Some(slot), true);
        }
    }

    /// The liar is gone: the others must agree without it.
    pub(crate) fn end_lies_about_the_state(&mut self) {
        let Some(states) = &mut self.states else {
            return;
        };
        if std::mem::take(&mut states.lies)
            && let Some(liar) = states.liar
        {
            self.crash(liar);
        }
    }

    /// Shows the logs what has changed in the room, and carries out what they ask for.
    pub(super) fn advance_states(&mut self) {
        let Some(mut states) = self.states.take() else {
            return;
        };
        for slot in 0..self.slots.len() {
            if let Err(broken) = self.advance_state(&mut states, slot) {
                self.violate("state", format!("{}: {broken}", self.slots[slot].id));
            }
        }
        self.states = Some(states);
    }

    /// Shows the log of a process what has changed in the room. Returns the time there, unless no process runs.
    fn show_room(&self, states: &mut States, slot: usize) -> Result<Option<Time>, String> {
        let life = self.slots[slot].life;
        let Some(process) = &self.slots[slot].process else {
            if states.members.remove(&slot).is_some() {
                states.ghosts.forget(slot);
            }
            return Ok(None);
        };
        let known = states.members.get(&slot);
        if known.is_none_or(|member| member.life != life) {
            states.ghosts.forget(slot);
            let member = self.new_member(states, slot);
            states.members.insert(slot, member);
        }
        if process.paused {
            return Ok(None);
        }
        let local = process.clock.local(self.now);
        let inputs = self.inputs_of(states, slot);
        let Some(member) = states.members.get_mut(&slot) else {
            return Ok(None);
        };
        states.changes += inputs.len() as u64;
        member.is_due |= !inputs.is_empty();
        for input in inputs {
            let handled = member.replica.handle(local, input);
            handled.map_err(|error| error.to_string())?;
        }
        Ok(Some(local))
    }

    fn advance_state(&mut self, states: &mut States, slot: usize) -> Result<(), String> {
        let Some(local) = self.show_room(states, slot)? else {
            return Ok(());
        };
        let Some(member) = states.members.get_mut(&slot) else {
            return Ok(());
        };
        let deadline = member.replica.next_deadline();
        if !member.is_due && deadline.is_none_or(|deadline| deadline > local) {
            return Ok(());
        }
        if !std::mem::take(&mut member.is_due) {
            let count = match member.ticks.0 == self.now {
                true => member.ticks.1 + 1,
                false => 1,
            };
            member.ticks = (self.now, count);
            if count > MAX_TICKS_AT_ONCE {
                let due = member.replica.next_deadline();
                return Err(format!(
                    "the log wants tick after tick: {due:?} at {local:?}"
                ));
            }
        }
        let handled = member.replica.handle(local, Input::Tick);
        handled.map_err(|error| error.to_string())?;
        member.replica.flush(local);
        let life = member.life;
        let outputs: Vec<_> = std::iter::from_fn(|| member.replica.poll_output()).collect();
        states.look_at(slot)?;
        for output in outputs {
            match output {
                Output::Send { to, frame } => {
                    for frame in states.outgoing(slot, frame) {
                        states.frames += 1;
                        self.send_state(slot, &to, frame);
                    }
                }
                Output::Persist(saved) => {
                    states.disks.insert(slot, saved);
                }
                Output::MayEnd => {
                    self.at(self.now, Happening::StateLeft { slot, life });
                }
            }
        }
        self.let_requests_in(states, slot);
        self.wake_state(states, slot);
        Ok(())
    }

    /// The log of a process leaves the room; `false` if it keeps none.
    pub(super) fn state_leaves(&mut self, slot: usize) -> bool {
        let life = self.slots[slot].life;
        let (Some(process), Some(states)) = (&self.slots[slot].process, &mut self.states) else {
            return false;
        };
        let local = process.clock.local(self.now);
        let Some(member) = states.members.get_mut(&slot) else {
            return false;
        };
        if member.life != life || std::mem::replace(&mut member.leaves, true) {
            return false;
        }
        states.leavers += u64::from(member.replica.leads().is_some());
        let handled = member
            .replica
            .handle(local, Input::Leave { successor: None });
        member.is_due = true;
        self.at(self.now, Happening::StateWakes);
        handled.is_ok()
    }

    fn new_member(&self, states: &mut States, slot: usize) -> Member {
        let place = &self.slots[slot];
        let node = place.process.as_ref().map(|process| &process.node);
        let node = node.expect("it runs");
        let quorum = match self.quorum().roster() {
            Some(roster) => Quorum::Static(roster.electorate()),
            None => Quorum::Dynamic,
        };
        let mut settings = Settings::new(
            quorum,
            states.options,
            self.settings.heartbeat_interval,
            self.settings.heartbeat_timeout,
            self.settings.member_hold,
        );
        settings.is_eligible = counts(node, node.id());
        settings.switches = states.switches.clone();
        settings.is_fixed_host = self.settings.host == Some(slot);
        let me = MemberId {
            peer: place.id.clone(),
            incarnation: node.incarnation(),
        };
        let saved = states.disks.get(&slot).cloned().unwrap_or_default();
        let watch = Watch::new(&settings);
        Member {
            life: place.life,
            replica: Replica::new(me, settings, saved, states.rng.random()),
            host: Host::new(false),
            watch,
            processes: BTreeMap::new(),
            events: place.events.len(),
            waiting: BTreeMap::new(),
            wake_at: None,
            is_due: true,
            leaves: false,
            ticks: (Time::ZERO, 0),
        }
    }

    /// The changes in the room since the log was shown the last ones.
    fn inputs_of(&self, states: &mut States, slot: usize) -> Vec<Input> {
        let (Some(process), Some(member)) =
            (&self.slots[slot].process, states.members.get_mut(&slot))
        else {
            return Vec::new();
        };
        let node = &process.node;
        let mut inputs = Vec::new();
        let events = &self.slots[slot].events;
        for (_, event) in events.iter().skip(member.events) {
            if let Event::Left(left) = event
                && let Some(incarnation) = member.processes.remove(&left.peer)
            {
                let peer = left.peer.clone();
                member.waiting.remove(&peer);
                inputs.extend(member.watch.gone(MemberId { peer, incarnation }));
            }
        }
        member.events = events.len();
        let mut linked = BTreeSet::new();
        for (other, link) in &process.sessions {
            let peer = &self.slots[*other].id;
            let Some(there) = node.membership().get(peer) else {
                continue;
            };
            linked.insert(peer.clone());
            let incarnation = there.incarnation;
            member.processes.insert(peer.clone(), incarnation);
            let new = member.watch.linked(
                *link,
                Linked {
                    member: MemberId {
                        peer: peer.clone(),
                        incarnation,
                    },
                    is_eligible: counts(node, peer),
                    round_trip: self.max_rtt(),
                },
            );
            if new.is_some() {
                member.waiting.remove(peer);
            }
            inputs.extend(new);
        }
        let lost: Vec<_> = member
            .processes
            .keys()
            .filter(|peer| !linked.contains(*peer))
            .cloned()
            .collect();
        for peer in lost {
            member.waiting.remove(&peer);
            inputs.extend(member.watch.lost(&peer));
        }
        let leader = node.leader().and_then(|leader| {
            let incarnation = match leader == node.id() {
                true => Some(node.incarnation()),
                false => member.processes.get(leader).copied(),
            };
            Some(MemberId {
                peer: leader.clone(),
                incarnation: incarnation?,
            })
        });
        inputs.extend(member.watch.follow(node, leader));
        inputs
    }

    /// A frame arrives on the link that carries a session.
    pub(crate) fn state_arrives(&mut self, slot: usize, from: &PeerId, frame: Frame) {
        let Some(mut states) = self.states.take() else {
            return;
        };
        if let Err(broken) = self.take_frame(&mut states, slot, from, frame) {
            self.violate(
                "state",
                format!("{from} at {}: {broken}", self.slots[slot].id),
            );
        }
        self.states = Some(states);
    }

    fn take_frame(
        &self,
        states: &mut States,
        slot: usize,
        from: &PeerId,
        frame: Frame,
    ) -> Result<(), String> {
        // The link may have come up in this very moment.
        let Some(local) = self.show_room(states, slot)? else {
            return Ok(());
        };
        let (Some(process), Some(member)) =
            (&self.slots[slot].process, states.members.get_mut(&slot))
        else {
            return Ok(());
        };
        if let Frame::Submit { .. } = frame {
            let queue = member.waiting.entry(from.clone()).or_default();
            if !queue.is_empty() || !member.replica.takes_requests_of(from) {
                queue.push_back(frame);
                return Ok(());
            }
        }
        let input = Input::Frame {
            from: from.clone(),
            frame,
            largest_number: process.node.counter_bound(local),
        };
        member.is_due = true;
        let handled = member.replica.handle(local, input);
        let is_lied = states.liar == Some(slot)
            || states.liar.is_some_and(|liar| self.slots[liar].id == *from);
        // A room ends the link; here only the frame is lost.
        match handled {
            Err(_) if is_lied => Ok(()),
            handled => handled.map_err(|error| error.to_string()),
        }
    }

    fn let_requests_in(&mut self, states: &mut States, slot: usize) {
        let (Some(process), Some(member)) =
            (&self.slots[slot].process, states.members.get_mut(&slot))
        else {
            return;
        };
        let local = process.clock.local(self.now);
        for (from, queue) in &mut member.waiting {
            if !member.replica.takes_requests_of(from) {
                continue;
            }
            if let Some(frame) = queue.pop_front() {
                let input = Input::Frame {
                    from: from.clone(),
                    frame,
                    largest_number: process.node.counter_bound(local),
                };
                member.is_due = true;
                // Requests that fit when they came fit now.
                let _ = member.replica.handle(local, input);
            }
        }
    }

    fn wake_state(&mut self, states: &mut States, slot: usize) {
        let (Some(process), Some(member)) =
            (&self.slots[slot].process, states.members.get_mut(&slot))
        else {
            return;
        };
        let deadline = match member.is_due {
            true => Some(self.now),
            false => member
                .replica
                .next_deadline()
                .map(|deadline| process.clock.global(deadline)),
        };
        let Some(at) = deadline else {
            return;
        };
        let at = at.max(self.now);
        if member
            .wake_at
            .is_none_or(|wake_at| at < wake_at || wake_at <= self.now)
        {
            member.wake_at = Some(at);
            self.at(at, Happening::StateWakes);
        }
    }

    /// Hosts take events, submit requests and provide snapshots.
    pub(super) fn hosts_act(&mut self) {
        let Some(mut states) = self.states.take() else {
            return;
        };
        for slot in 0..self.slots.len() {
            let is_awake = self.slots[slot]
                .process
                .as_ref()
                .is_some_and(|process| !process.paused && !process.leaving);
            if is_awake && let Err(broken) = self.host_acts(&mut states, slot) {
                self.violate("state", format!("host {}: {broken}", self.slots[slot].id));
            }
        }
        self.states = Some(states);
        self.at(self.now + HOSTS_ACT, Happening::HostsAct);
    }

    fn host_acts(&mut self, states: &mut States, slot: usize) -> Result<(), String> {
        let Some(process) = &self.slots[slot].process else {
            return Ok(());
        };
        let local = process.clock.local(self.now);
        let Some(member) = states.members.get_mut(&slot) else {
            return Ok(());
        };
        let most = match states.rng.random_bool(0.5) {
            true => usize::MAX,
            false => states.rng.random_range(1..4),
        };
        if states.liar.is_some() {
            Self::takes_anything(member, local, most);
        } else {
            let host = &mut member.host;
            host.take(&mut member.replica, &states.ghosts, most)?;
        }
        if let Some(wanted) = member.host.next_wanted() {
            let data = Some(wanted.data);
            match member.replica.provide_snapshot(local, wanted.request, data) {
                Ok(()) | Err(SnapshotError::UnknownRequest | SnapshotError::HistoryChanged) => {}
                Err(error) => return Err(error.to_string()),
            }
            member.is_due = true;
        }
        let submits =
            states.submits && !member.leaves && member.replica.open_requests() < MOST_OPEN;
        if submits && states.rng.random_bool(ACTS) {
            states.requests += 1;
            let request = request(&mut states.rng, states.requests, &member.replica);
            let number = member
                .replica
                .submit(request.clone())
                .map_err(|error| error.to_string())?;
            let (author, read) = (member.replica.me().clone(), member.replica.seen().clone());
            states.ghosts.note_submitted(author, number, request, read);
            member.host.note_accepted(number);
            member.is_due = true;
        }
        Ok(())
    }

    /// A host that expects nothing of the events: a liar has a part in them.
    fn takes_anything(member: &mut Member, local: Time, most: usize) {
        for event in member.replica.take(most) {
            if let StateEvent::SnapshotWanted { request, .. } = event {
                let data = Some(vec![7; 100].into());
                // The history may have changed meanwhile.
                let _ = member.replica.provide_snapshot(local, request, data);
            }
        }
        member.is_due = true;
    }

    /// At the end of a run without faults: every host has all that its room's log has, and all logs are the same.
    ///
    /// # Errors
    /// The broken promise.
    pub(crate) fn check_states(&self) -> Result<(), String> {
        let Some(states) = &self.states else {
            return Ok(());
        };
        // The members of each leader, which have links with it.
        let mut rooms: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for slot in states.members.keys() {
            if let Some(leader) = self
                .leader_of(*slot)
                .filter(|_| !self.stands_between_leaders(*slot))
            {
                rooms.entry(leader).or_default().push(*slot);
            }
        }
        let rooms = rooms.values();
        for members in rooms.filter(|members| !self.wait_for_voters(states, members)) {
            let checked = self.check_room(states, members);
            checked.map_err(|broken| format!("{broken}\n{}", self.state_summary()))?;
        }
        Ok(())
    }

    /// Whether the members of a leader lack a majority of the voters of a static quorum that hold what they answered for: then
    /// no member orders, until all voters are there.
    fn wait_for_voters(&self, states: &States, members: &[usize]) -> bool {
        let quorum = self.quorum();
        let Some(roster) = quorum.roster() else {
            return false;
        };
        let voters = members.iter().map(|slot| &states.members[slot].replica);
        let there: Vec<_> = voters
            .filter(|replica| roster.contains(&replica.me().peer))
            .collect();
        let whole = there.iter().filter(|replica| !replica.is_recovering());
        whole.count() < roster.majority() && there.len() < roster.len()
    }

    /// How far each member is.
    pub(crate) fn state_summary(&self) -> String {
        let members = self.states.iter().flat_map(|states| &states.members);
        let lines: Vec<_> = members
            .map(|(slot, member)| self.summary(*slot, member))
            .collect();
        lines.join("\n")
    }

    /// The place of the leader that a process has a link with, if that leads: it may be the process itself.
    fn leader_of(&self, slot: usize) -> Option<usize> {
        let leader = self.node(slot)?.leader()?;
        let its = |place: &usize| self.slots[*place].id == *leader;
        let leader = match its(&slot) {
            true => slot,
            false => {
                let linked = self.slots[slot].process.as_ref()?.sessions.keys();
                linked.copied().find(its)?
            }
        };
        let leads = self.node(leader)?.is_leader();
        (leads && (leader == slot || self.is_session_with_present_life(slot, leader)))
            .then_some(leader)
    }

    /// Whether a member of a room of gossip has links that count with two leaders that have none with each other. Each of them leads
    /// on, the member follows each as it declares itself, and its state never rests.
    fn stands_between_leaders(&self, slot: usize) -> bool {
        let Some(node) = self
            .node(slot)
            .filter(|node| node.election().of::<Gossip>().is_some())
        else {
            return false;
        };
        let knows = |node: &Node, other: usize| node.is_eligible(&self.slots[other].id);
        let leads = |place: &usize| self.node(*place).is_some_and(Node::is_leader);
        let leaders: Vec<_> = (0..self.slots.len())
            .filter(|place| *place != slot && leads(place) && knows(node, *place))
            .collect();
        let are_apart = |one: usize, other: usize| {
            let knows = |from, to| self.node(from).is_some_and(|node| knows(node, to));
            !knows(one, other) && !knows(other, one)
        };
        let mut pairs = leaders
            .iter()
            .flat_map(|one| leaders.iter().map(move |other| (*one, *other)));
        pairs.any(|(one, other)| one < other && are_apart(one, other))
    }

    fn check_room(&self, states: &States, members: &[usize]) -> Result<(), String> {
        let mut first: Option<(&PeerId, &Member)> = None;
        for slot in members {
            let (id, member) = (&self.slots[*slot].id, &states.members[slot]);
            let finished = match states.liar {
                Some(_) => Ok(()),
                None => member.host.finish(&member.replica, &states.ghosts),
            };
            finished.map_err(|broken| {
                let all = states.members.iter();
                let all: Vec<_> = all
                    .map(|(slot, member)| self.summary(*slot, member))
                    .collect();
                format!("host {id} at the end: {broken}\n{}", all.join("\n"))
            })?;
            let replica = &member.replica;
            if replica.confirmed() != replica.index() {
                return Err(format!(
                    "{id} knows entries up to {} to be confirmed, of {}",
                    replica.confirmed(),
                    replica.index()
                ));
            }
            if states.liar.is_some() {
                // As leader it may have given each member other entries.
                continue;
            }
            if replica.open_requests() > 0 {
                return Err(format!("{id} has requests without a result"));
            }
            if let Some((other, there)) = first
                && there.replica.tables() != replica.tables()
            {
                return Err(format!("{other} and {id} differ at the end"));
            }
            first = Some((id, member));
        }
        Ok(())
    }

    /// How far a member is.
    fn summary(&self, slot: usize, member: &Member) -> String {
        let replica = &member.replica;
        format!(
            "{}{}: {:?}, adopted {:?}, confirmed {} of {}, taken {}, {} open, gathers {:?}, leads {:?}, here {}, roster {:?}, {:?}",
            self.slots[slot].id,
            if replica.is_recovering() {
                " (recovering)"
            } else {
                ""
            },
            replica.history(),
            replica
                .adopted()
                .map(|ballot| (ballot.number, ballot.leader.peer.as_str())),
            replica.confirmed(),
            replica.index(),
            replica.taken(),
            replica.open_requests(),
            replica.gathers().map(|ballot| ballot.number),
            replica.leads().map(|ballot| ballot.number),
            replica.tables().is_here(replica.me()),
            replica
                .roster()
                .iter()
                .map(|member| member.peer.as_str())
                .collect::<Vec<_>>(),
            member.watch,
        )
    }

    /// Frames of the state that were sent; and changes in the room, and entries, that may be a reason for some. `None` while a
    /// leader gathers, which is a reason of its own.
    pub(crate) fn state_figures(&self) -> Option<(u64, u64)> {
        let states = self.states.as_ref()?;
        let mut members = states.members.values();
        let gathers = members.any(|member| member.replica.gathers().is_some());
        let members = states.members.values();
        let entries: u64 = members.map(|member| member.replica.index()).sum();
        (!gathers).then_some((states.frames, states.changes + entries))
    }
}

/// An action, or a change of one of a few properties.
fn request(rng: &mut ChaCha8Rng, number: u64, replica: &Replica) -> Request {
    let data = Bytes::copy_from_slice(&number.to_le_bytes());
    if rng.random_bool(0.7) {
        return Request::Action {
            msg_type: 0x100,
            data,
        };
    }
    let key = Key::new(&format!("k{}", rng.random_range(0..3))).expect("a key");
    let property = replica.seen().property(&key);
    let version = property.map_or(0, |property| property.version);
    Request::Properties(vec![PropertyChange {
        key,
        value: ValueChange::Set(data),
        owner: match rng.random_bool(0.5) {
            true => OwnerChange::To(replica.me().peer.clone()),
            false => OwnerChange::Keep,
        },
        traits: Traits {
            owner_only: false,
            fate: match rng.random_range(0..3) {
                0 => Fate::Dies,
                1 => Fate::FallsToLeader,
                _ => Fate::LosesOwner,
            },
        },
        expected: match rng.random_bool(0.5) {
            true => Expected::Version(version),
            false => Expected::Any,
        },
    }])
}
