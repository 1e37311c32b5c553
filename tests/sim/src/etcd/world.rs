//! Members and their store in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use room_core::election::bound::WallClock;
use room_core::election::engine::{Answer, Call, FailureKind, Range, Request, Revision};
use room_core::election::etcd::{EtcdConfig, EtcdRules};
use room_core::election::gossip::Windows;
use room_core::election::guards::Guards;
use room_core::election::seeded::Seeding;
use room_core::election::{
    AnyElection, ElectionConfig, ElectionError, ElectionOutput, Entry, Extra, Local, LockEvent,
    LockOutcome, LockRefusal, OpaqueOutput, Recovery, Start, View,
};
use room_core::id::{Fingerprint, Incarnation, PeerId};
use room_core::quorum::Quorum;
use room_core::time::{Duration, Time};
use room_core::wire::{Opaque, RoomPolicy, Strategy};

use super::store::{Store, failed};

/// Timeout of a request.
pub const TIMEOUT: Duration = Duration::from_millis(1_000);
/// Longest time until a watch notices that its connection is cut.
const NOTICED: Duration = Duration::from_millis(1_500);
/// Duration of a state file's write.
const WRITE: Duration = Duration::from_millis(2);
/// Prefix of all keys.
pub const PREFIX: &str = "game/room";

/// Behaviour of the network between members and store.
#[derive(Debug, Clone, Copy)]
pub struct Net {
    /// One-way delay, from and to, in microseconds.
    pub delay_us: (u64, u64),
    /// Requests in a thousand, and answers in a thousand, that are lost.
    pub lost: u32,
    /// Messages in a thousand that take up to three times the timeout.
    pub late: u32,
}

/// Members and their store.
pub struct World {
    /// The time of the world.
    pub now: Time,
    /// Source of every random choice.
    pub rng: ChaCha8Rng,
    /// The store.
    pub store: Store,
    /// Whether any member can reach it.
    pub is_up: bool,
    /// The network.
    pub net: Net,
    /// The members.
    pub members: Vec<Member>,
    queue: BTreeMap<(Time, u64), Happening>,
    counted: u64,
    watches: Vec<Watching>,
    /// The lease of members.
    pub ttl: Duration,
    /// Prefix of the keys of processes that start now.
    pub prefix: &'static str,
    /// An operator deletes keys by hand; a leader learns that a moment later.
    pub by_hand: bool,
    /// The largest fencing token, and its owner.
    last_token: (u64, Option<usize>),
    lock_tokens: BTreeMap<Arc<str>, u64>,
    lines: Vec<String>,
    requests: u64,
}

/// A member, with or without a process.
#[derive(Debug)]
pub struct Member {
    /// Its name.
    pub id: PeerId,
    /// Its process.
    pub process: Option<Process>,
    starts: u64,
    /// Its state file.
    pub kept: Option<Opaque>,
    /// Whether it cannot reach the store.
    pub is_cut: bool,
    /// It is stopped until then.
    pub paused_until: Time,
    /// Rate of its clock, in thousandths.
    pub rate: u64,
    /// Leaders that its host was shown, each with revision and time.
    pub shown: Vec<(Time, Option<PeerId>, u64)>,
    /// Locks that it holds, according to its host's events.
    pub held: BTreeMap<Arc<str>, u64>,
    /// Pending requests for locks.
    pub asked: BTreeSet<u64>,
    /// Results of its requests for locks.
    pub ended: Vec<(u64, LockOutcome)>,
    /// Locks that its host was notified to have lost.
    pub lost: Vec<(Arc<str>, u64)>,
}

/// A running process.
pub struct Process {
    /// The strategy's machine.
    pub machine: AnyElection,
    life: u64,
    started: Time,
    open: BTreeSet<Call>,
    last_term: u64,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.machine.fmt(f)
    }
}

#[derive(Debug)]
struct Watching {
    member: usize,
    life: u64,
    call: Call,
    range: Range,
    next: Revision,
    /// Changes come in order.
    reported_at: Time,
}

#[derive(Debug)]
enum Happening {
    Request {
        member: usize,
        life: u64,
        call: Call,
        request: Request,
    },
    Answer {
        member: usize,
        life: u64,
        call: Call,
        answer: Answer,
    },
    Written {
        member: usize,
        life: u64,
        number: u64,
        state: Opaque,
    },
    Wake {
        member: usize,
        life: u64,
    },
    Expiry,
}

impl World {
    /// A world of this many members, none of which runs yet.
    pub fn new(seed: u64, members: usize, ttl: Duration, net: Net) -> Self {
        let member = |n: usize| Member {
            id: PeerId::new(&format!("member-{n}")).expect("it is an id"),
            process: None,
            starts: 0,
            kept: None,
            is_cut: false,
            paused_until: Time::ZERO,
            rate: 1000,
            shown: Vec::new(),
            held: BTreeMap::new(),
            asked: BTreeSet::new(),
            ended: Vec::new(),
            lost: Vec::new(),
        };
        Self {
            now: Time::from_micros(1_000_000),
            rng: ChaCha8Rng::seed_from_u64(seed),
            store: Store::default(),
            is_up: true,
            net,
            members: (0..members).map(member).collect(),
            queue: BTreeMap::new(),
            counted: 0,
            watches: Vec::new(),
            ttl,
            prefix: PREFIX,
            by_hand: false,
            last_token: (0, None),
            lock_tokens: BTreeMap::new(),
            lines: Vec::new(),
            requests: 0,
        }
    }

    /// The log, line by line.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Number of requests that the store has answered.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Writes a line of the trace.
    pub fn note(&mut self, text: fmt::Arguments<'_>) {
        let seconds = self.now.as_micros() as f64 / 1e6;
        self.lines.push(format!("{seconds:10.6} {text}"));
    }

    /// Starts a process of a member, with its state file.
    pub fn start(&mut self, slot: usize, campaigns: bool) {
        let member = &mut self.members[slot];
        assert!(member.process.is_none(), "it runs");
        member.starts += 1;
        let start = Start {
            me: member.id.clone(),
            key: Fingerprint([0; 32]),
            incarnation: Incarnation {
                started_us: self.now.as_micros(),
                random: 1,
            },
            config: config(member.id.as_str(), campaigns, self.prefix, self.ttl),
            saved: member.kept.clone(),
            clock: WallClock::new(Time::ZERO, Duration::ZERO),
            seed: self.rng.random(),
        };
        let machine = AnyElection::start(Time::ZERO, start).expect("its own state");
        member.process = Some(Process {
            machine,
            life: member.starts,
            started: self.now,
            open: BTreeSet::new(),
            last_term: 0,
        });
        self.note(format_args!("member-{slot} starts"));
        self.carry_out(slot);
    }

    /// Kills the process of a member.
    pub fn kill(&mut self, slot: usize) {
        let member = &mut self.members[slot];
        member.process = None;
        member.held.clear();
        member.asked.clear();
        self.watches.retain(|watch| watch.member != slot);
        self.note(format_args!("member-{slot} is killed"));
    }

    /// Stops the process of a member for a while.
    pub fn pause(&mut self, slot: usize, time: Duration) {
        self.members[slot].paused_until = self.now + time;
        self.note(format_args!("member-{slot} stands still for {time:?}"));
    }

    /// Cuts a member off from the store, or lets it back.
    pub fn cut(&mut self, slot: usize, is_cut: bool) {
        self.members[slot].is_cut = is_cut;
        self.note(format_args!("member-{slot} is cut off: {is_cut}"));
        if is_cut {
            self.break_watches(|watch| watch.member == slot);
        }
    }

    /// Stops the store, or starts it again, with another server as etcd's leader.
    pub fn set_up(&mut self, is_up: bool) {
        self.is_up = is_up;
        self.note(format_args!("the store is up: {is_up}"));
        if is_up {
            self.store.promote(self.now);
            self.expect_expiry();
        } else {
            self.break_watches(|_| true);
        }
    }

    fn break_watches(&mut self, concerns: impl Fn(&Watching) -> bool) {
        let (broken, rest) = std::mem::take(&mut self.watches)
            .into_iter()
            .partition::<Vec<_>, _>(concerns);
        self.watches = rest;
        for Watching {
            member, life, call, ..
        } in broken
        {
            let after = self.draw(0, NOTICED.as_micros() as u64);
            let answer = failed(FailureKind::Unreachable);
            self.at(
                self.now + Duration::from_micros(after),
                Happening::Answer {
                    member,
                    life,
                    call,
                    answer,
                },
            );
        }
    }

    /// An input of a member's host.
    ///
    /// # Errors
    /// The machine's.
    pub fn order(&mut self, slot: usize, input: Local) -> Result<(), ElectionError> {
        self.note(format_args!("member-{slot} receives {input:?}"));
        self.feed(slot, input)
    }

    /// A member's host wants a lock.
    ///
    /// # Errors
    /// The machine's.
    pub fn acquire(
        &mut self,
        slot: usize,
        request: u64,
        name: &Arc<str>,
        wait: Option<Duration>,
    ) -> Result<(), LockRefusal> {
        self.note(format_args!(
            "member-{slot} wants {name} {request}, {wait:?}"
        ));
        self.members[slot].asked.insert(request);
        let result = self.ask(slot, Ok(()), |machine, now| {
            let locks = machine.locks().expect("etcd has locks");
            locks.acquire(now, request, name, wait)
        });
        if result.is_err() {
            self.members[slot].asked.remove(&request);
        }
        result
    }

    /// A member's host gives a lock back, or waits for it no longer.
    ///
    /// # Errors
    /// The machine's.
    pub fn release(&mut self, slot: usize, name: &Arc<str>) -> Result<(), LockRefusal> {
        self.note(format_args!("member-{slot} releases {name}"));
        self.members[slot].held.remove(name);
        self.ask(slot, Ok(()), |machine, now| {
            let locks = machine.locks().expect("etcd has locks");
            locks.release(now, name)
        })
    }

    /// Sets the text that others read of a member while it leads.
    pub fn proclaim(&mut self, slot: usize, value: &str) {
        self.note(format_args!("member-{slot} proclaims {value:?}"));
        self.ask(slot, (), |machine, now| {
            let client = machine.store_client().expect("etcd is a store");
            client.proclaim(now, value.into());
        });
    }

    fn draw(&mut self, least: u64, most: u64) -> u64 {
        self.rng.random_range(least..=most.max(least))
    }

    fn at(&mut self, time: Time, happening: Happening) {
        self.counted += 1;
        self.queue.insert((time, self.counted), happening);
    }

    /// Runs until that time.
    pub fn run_until(&mut self, until: Time) {
        while let Some((&(time, number), _)) = self.queue.first_key_value()
            && time <= until
        {
            let happening = self.queue.remove(&(time, number)).expect("it is there");
            self.now = self.now.max(time);
            self.happen(happening);
            self.check();
        }
        self.now = self.now.max(until);
    }

    /// Runs for this long.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Request {
                member,
                life,
                call,
                request,
            } => self.arrived(member, life, call, request),
            Happening::Answer {
                member,
                life,
                call,
                answer,
            } => {
                if self.waits(
                    member,
                    |again| Happening::Answer {
                        member,
                        life,
                        call,
                        answer: again,
                    },
                    &answer,
                ) {
                    return;
                }
                let Some(process) = self.process(member, life) else {
                    return;
                };
                let goes_on = matches!(answer, Answer::Changes(_));
                let is_open = match goes_on {
                    true => process.open.contains(&call),
                    false => process.open.remove(&call),
                };
                if is_open {
                    self.note(format_args!("member-{member} receives {call}: {answer:?}"));
                    self.ask(member, (), |machine, now| {
                        let client = machine.store_client().expect("etcd is a store");
                        client.answered(now, call, answer);
                    });
                }
            }
            Happening::Written {
                member,
                life,
                number,
                state,
            } => {
                if self.process(member, life).is_some() {
                    self.members[member].kept = Some(state);
                    self.ask(member, (), |machine, now| {
                        let durable = machine.durable_mut().expect("etcd keeps its lease");
                        durable.persisted(now, &View::default(), number);
                    });
                }
            }
            Happening::Wake { member, life } => {
                let until = self.members[member].paused_until;
                if until > self.now {
                    self.at(until, Happening::Wake { member, life });
                } else if self.process(member, life).is_some() {
                    let result = self.feed(member, Local::Tick);
                    assert_eq!(result, Ok(()));
                }
            }
            Happening::Expiry => {
                if self.is_up {
                    self.store.expire(self.now);
                    self.notify_watches();
                }
            }
        }
    }

    /// Whether a member is stopped: its inputs wait.
    fn waits(
        &mut self,
        member: usize,
        again: impl FnOnce(Answer) -> Happening,
        answer: &Answer,
    ) -> bool {
        let until = self.members[member].paused_until;
        if until > self.now {
            self.at(until, again(answer.clone()));
        }
        until > self.now
    }

    fn process(&mut self, slot: usize, life: u64) -> Option<&mut Process> {
        let process = self.members[slot].process.as_mut();
        process.filter(|process| process.life == life)
    }

    fn arrived(&mut self, member: usize, life: u64, call: Call, request: Request) {
        if !self.is_up || self.members[member].is_cut {
            // The sender of every other request notices by its timeout.
            if let Request::Watch { .. } = request {
                let answer = failed(FailureKind::Unreachable);
                self.at(
                    self.now + NOTICED,
                    Happening::Answer {
                        member,
                        life,
                        call,
                        answer,
                    },
                );
            }
            return;
        }
        self.requests += 1;
        if let Request::Unwatch { call } = request {
            self.watches
                .retain(|watch| (watch.member, watch.life, watch.call) != (member, life, call));
            return;
        }
        self.store.expire(self.now);
        if let Request::Watch { range, from } = request {
            self.watches.push(Watching {
                member,
                life,
                call,
                range,
                next: from,
                reported_at: self.now,
            });
        } else {
            let answer = self.store.handle(self.now, &request);
            if !self.is_lost() {
                let at = self.now + self.delay();
                self.at(
                    at,
                    Happening::Answer {
                        member,
                        life,
                        call,
                        answer,
                    },
                );
            }
        }
        self.notify_watches();
        self.expect_expiry();
    }

    fn expect_expiry(&mut self) {
        if let Some(at) = self.store.next_deadline() {
            self.at(at.max(self.now), Happening::Expiry);
        }
    }

    fn is_lost(&mut self) -> bool {
        self.rng.random_range(0..1000) < self.net.lost
    }

    fn delay(&mut self) -> Duration {
        let most = TIMEOUT.as_micros() as u64 * 3;
        let (from, to) = match self.rng.random_range(0..1000) < self.net.late {
            true => (0, most),
            false => self.net.delay_us,
        };
        Duration::from_micros(self.draw(from, to))
    }

    /// Compacts the store's history.
    pub fn compact(&mut self) {
        self.note(format_args!("compacted at {}", self.store.revision()));
        self.store.compact();
    }

    /// Sends every watch its pending changes.
    pub fn notify_watches(&mut self) {
        let mut watches = std::mem::take(&mut self.watches);
        watches.retain_mut(|watch| {
            let reported = self.store.changes(&watch.range, watch.next);
            let (answer, goes_on) = match reported {
                Ok((changes, next)) => {
                    watch.next = next;
                    if changes.is_empty() {
                        return true;
                    }
                    (Answer::Changes(changes), true)
                }
                Err(answer) => (answer, false),
            };
            watch.reported_at = watch.reported_at.max(self.now + self.delay());
            let (at, member) = (watch.reported_at, watch.member);
            let (life, call) = (watch.life, watch.call);
            self.at(
                at,
                Happening::Answer {
                    member,
                    life,
                    call,
                    answer,
                },
            );
            goes_on
        });
        self.watches = watches;
    }

    fn local(&self, slot: usize) -> Time {
        let member = &self.members[slot];
        let started = member.process.as_ref().map_or(self.now, |one| one.started);
        let micros = self.now.since(started).as_micros() as u64;
        Time::from_micros(micros * member.rate / 1000)
    }

    fn feed(&mut self, slot: usize, input: Local) -> Result<(), ElectionError> {
        self.ask(slot, Ok(()), |machine, now| {
            machine.handle(now, &View::default(), input.into())
        })
    }

    /// Calls a member's machine by its own clock; gives `otherwise` if it does not run.
    fn ask<R>(
        &mut self,
        slot: usize,
        otherwise: R,
        call: impl FnOnce(&mut AnyElection, Time) -> R,
    ) -> R {
        let now = self.local(slot);
        let Some(process) = &mut self.members[slot].process else {
            return otherwise;
        };
        let result = call(&mut process.machine, now);
        self.carry_out(slot);
        result
    }

    fn carry_out(&mut self, slot: usize) {
        while let Some(output) = self.members[slot]
            .process
            .as_mut()
            .and_then(|process| process.machine.poll_output())
        {
            self.output(slot, output);
        }
        self.shows(slot);
        let member = &self.members[slot];
        let Some(process) = &member.process else {
            return;
        };
        if let Some(deadline) = process.machine.next_deadline() {
            let life = process.life;
            let micros = (deadline.as_micros() * 1000).div_ceil(member.rate);
            let at = process.started + Duration::from_micros(micros);
            let at = at.max(self.now).max(member.paused_until);
            self.at(at, Happening::Wake { member: slot, life });
        }
    }

    fn output(&mut self, slot: usize, output: OpaqueOutput) {
        let member = &mut self.members[slot];
        let process = member.process.as_mut().expect("it runs");
        let life = process.life;
        let ElectionOutput::Extra(extra) = output else {
            panic!("etcd elects, and no member gives {output:?}");
        };
        match extra {
            Extra::Engine { call, request } => {
                let is_watch = matches!(request, Request::Watch { .. });
                let is_answered = !matches!(request, Request::Unwatch { .. });
                if is_answered {
                    process.open.insert(call);
                }
                self.note(format_args!("member-{slot} asks {call}: {request:?}"));
                let reaches = is_watch || !self.is_lost();
                let cut = self.members[slot].is_cut || !self.is_up;
                if reaches && !cut {
                    let at = self.now + self.delay();
                    self.at(
                        at,
                        Happening::Request {
                            member: slot,
                            life,
                            call,
                            request,
                        },
                    );
                }
                if is_answered && (!is_watch || cut) {
                    let answer = failed(FailureKind::Unreachable);
                    let at = self.now + TIMEOUT;
                    self.at(
                        at,
                        Happening::Answer {
                            member: slot,
                            life,
                            call,
                            answer,
                        },
                    );
                }
            }
            Extra::Persist { number, state } => {
                self.at(
                    self.now + WRITE,
                    Happening::Written {
                        member: slot,
                        life,
                        number,
                        state,
                    },
                );
            }
            Extra::Lock(LockEvent::Result {
                request,
                name,
                outcome,
            }) => {
                self.note(format_args!("member-{slot}: {name} {request} {outcome:?}"));
                let member = &mut self.members[slot];
                let was_asked = member.asked.remove(&request);
                assert!(was_asked, "request {request} is answered once");
                member.ended.push((request, outcome));
                if let LockOutcome::Held { token } = outcome {
                    self.holds(slot, name, token);
                }
            }
            Extra::Lock(LockEvent::Lost { name, token }) => {
                self.note(format_args!("member-{slot} loses {name} {token}"));
                let member = &mut self.members[slot];
                let held = member.held.remove(&name);
                assert_eq!(held, Some(token), "it held what it lost");
                member.lost.push((name, token));
            }
            other => panic!("etcd wants {other:?}"),
        }
    }

    fn holds(&mut self, slot: usize, name: Arc<str>, token: u64) {
        let before = self.members[slot].held.insert(Arc::clone(&name), token);
        if before == Some(token) {
            return; // it held it already
        }
        let last = self.lock_tokens.insert(Arc::clone(&name), token);
        assert!(
            last.is_none_or(|last| last < token),
            "the tokens of {name} grow: {last:?}, {token}"
        );
        let now = self.now;
        for (other, member) in self.members.iter().enumerate() {
            let awake = member.paused_until <= now;
            assert!(
                other == slot || !awake || !member.held.contains_key(&name),
                "member-{other} and member-{slot} hold {name}"
            );
        }
    }

    /// Records the leader that a member shows now.
    fn shows(&mut self, slot: usize) {
        let now = self.now;
        let member = &mut self.members[slot];
        let Some(process) = &mut member.process else {
            return;
        };
        let leadership = process.machine.leadership();
        let term = leadership.record.term();
        assert!(term >= process.last_term, "terms never decrease");
        process.last_term = term;
        let leader = leadership.leader.cloned();
        let last = member.shown.last();
        if last.is_some_and(|(_, shown, of)| (shown, *of) == (&leader, term)) {
            return;
        }
        let reason = leadership.reason;
        let gained = leader.as_ref() == Some(&member.id);
        member.shown.push((now, leader.clone(), term));
        self.note(format_args!(
            "member-{slot} shows {leader:?} {term} {reason:?}"
        ));
        if gained {
            let (last, holder) = self.last_token;
            assert!(
                term > last || (term == last && holder == Some(slot)),
                "fencing tokens grow: {last}, {term}"
            );
            self.last_token = (term, Some(slot));
        }
    }

    /// Whether a member acts as leader at this moment, as a call of its host would see it.
    pub fn acts(&self, slot: usize) -> Option<u64> {
        let member = &self.members[slot];
        let process = member.process.as_ref()?;
        let leadership = process.machine.leadership();
        let leads = leadership.leader == Some(&member.id);
        let valid = leadership
            .valid_until
            .is_some_and(|until| self.local(slot) < until);
        (leads && valid).then(|| leadership.record.term())
    }

    /// The leaders of this moment.
    pub fn leaders(&self) -> Vec<usize> {
        let slots = 0..self.members.len();
        slots.filter(|slot| self.acts(*slot).is_some()).collect()
    }

    /// Properties of every moment.
    fn check(&mut self) {
        if self.by_hand {
            return;
        }
        let leaders = self.leaders();
        assert!(leaders.len() <= 1, "{leaders:?} lead at a time");
        // A store that no member reaches ends no lease.
        for slot in leaders {
            let token = self.acts(slot).expect("it leads") as Revision;
            let keys = self.store.keys(&format!("{}/election/", self.prefix));
            let first = keys.first().map(|entry| entry.created);
            assert_eq!(
                first,
                Some(token),
                "member-{slot} leads, and its key is first"
            );
        }
    }

    /// The leader that every running member shows, if they agree.
    pub fn agreed(&self) -> Option<PeerId> {
        let running = self.members.iter().filter_map(|one| one.process.as_ref());
        let mut shown: Vec<_> = running
            .map(|process| process.machine.leadership().leader.cloned())
            .collect();
        shown.dedup();
        match &shown[..] {
            [Some(leader)] => Some(leader.clone()),
            _ => None,
        }
    }
}

fn config(id: &str, campaigns: bool, prefix: &str, ttl: Duration) -> ElectionConfig {
    ElectionConfig {
        entry: Entry::Any,
        policy: RoomPolicy {
            strategy: Strategy::Etcd(EtcdRules {
                prefix: u64::from(prefix != PREFIX),
            }),
            ..RoomPolicy::default()
        },
        quorum: Quorum::Dynamic,
        heartbeat_timeout: Duration::from_millis(1500),
        election_timeout_min: Duration::from_millis(1500),
        election_timeout_max: Duration::from_millis(3000),
        auto_election: campaigns,
        eligible: true,
        priority: 0,
        recovery: Recovery::AutoElect,
        windows: Windows::default(),
        seeding: Seeding::default(),
        etcd: EtcdConfig {
            prefix: prefix.into(),
            ttl,
            address: format!("{id}:7000"),
        },
        guards: Guards::ALL,
    }
}
