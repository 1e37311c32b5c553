//! Rooms whose frames take time: how long a request takes, and what a change of leaders costs.

use std::collections::{BTreeMap, VecDeque};

use room_core::time::{Duration, Time};
use room_state::event::Outcome;
use room_state::limits::{GATHERING_ROUND_TRIPS, MIN_GATHERING};
use room_state::replica::Replica;

use super::{act, led, replica};
use crate::case::Case;
use crate::world::{ROUND_TRIP, World};

/// One turn of a member's thread.
const TURN_MS: u64 = 1;

/// A room in which each frame arrives after the same time. A mute member keeps its links, but nothing from it arrives.
struct Timed {
    world: World,
    one_way_ms: u64,
    arrivals: BTreeMap<(usize, usize), VecDeque<Time>>,
    mute: Vec<usize>,
}

impl Timed {
    /// A room with a confirmed request, which the first member leads.
    fn led(case: &Case, one_way_ms: u64) -> Self {
        let mut world = led(case);
        act(&mut world, World::take_all);
        Self {
            world,
            one_way_ms,
            arrivals: BTreeMap::new(),
            mute: Vec::new(),
        }
    }

    /// Frames that have been sent since the last turn are on their way.
    fn send(&mut self) {
        let at = self.world.now + Duration::from_millis(self.one_way_ms);
        for (ends, frames) in &self.world.links {
            if self.mute.contains(&ends.0) {
                continue;
            }
            let arrivals = self.arrivals.entry(*ends).or_default();
            arrivals.resize(frames.len(), at);
        }
    }

    fn arrive(&mut self) {
        let now = self.world.now;
        let links: Vec<_> = self.world.links.keys().copied().collect();
        self.arrivals.retain(|ends, _| links.contains(ends));
        for (from, to) in links {
            let arrivals = self.arrivals.entry((from, to)).or_default();
            let due = arrivals.iter().take_while(|at| **at <= now).count();
            arrivals.drain(..due);
            for _ in 0..due {
                act(&mut self.world, |world| world.deliver_first(from, to));
            }
        }
    }

    /// A millisecond passes; each member has one turn.
    fn turn(&mut self) {
        self.send();
        let turn = Duration::from_millis(TURN_MS);
        act(&mut self.world, |world| world.pass_time(turn));
        self.arrive();
        for index in 0..self.world.nodes.len() {
            act(&mut self.world, |world| world.flush(index));
        }
        self.send();
    }

    /// The time until something is true, in milliseconds.
    fn time_until(&mut self, most_ms: u64, is_true: impl Fn(&mut World) -> bool) -> u64 {
        self.send();
        let began = self.world.now;
        loop {
            let passed = self.world.now.since(began).as_millis();
            let passed = u64::try_from(passed).expect("a short time");
            if is_true(&mut self.world) {
                return passed;
            }
            assert!(passed < most_ms, "not within {most_ms} ms");
            self.turn();
        }
    }

    /// The time from a request of this member's host until the host has the result, in milliseconds.
    fn time_of_a_request(&mut self, author: usize) -> u64 {
        act(&mut self.world, |world| world.submit_action(author));
        act(&mut self.world, |world| world.flush(author));
        self.time_until(60_000, |world| {
            act(world, |world| world.take(author, usize::MAX));
            replica(world, author).open_requests() == 0
        })
    }

    fn passes(&mut self, ms: u64) {
        for _ in 0..ms {
            self.turn();
            act(&mut self.world, World::take_all);
        }
    }
}

fn rooms() -> impl Iterator<Item = Case> {
    let dynamic = (2..=5).map(Case::dynamic);
    dynamic.chain([3, 5].map(Case::fixed))
}

/// Round trips until an author has its result: S14 allows two; the leader needs one, and so does everybody in a small room.
fn round_trips(case: &Case, author: usize) -> u64 {
    match case.members <= 3 || author == 0 {
        true => 1,
        false => 2,
    }
}

fn check_requests(timed: &mut Timed, case: &Case) {
    let authors = (0..case.members).filter(|author| !timed.mute.contains(author));
    for author in authors.collect::<Vec<_>>() {
        let took = timed.time_of_a_request(author);
        let most = round_trips(case, author) * 2 * timed.one_way_ms + TURN_MS;
        let mute = &timed.mute;
        assert!(
            took <= most,
            "{took} ms at {author}, {mute:?} mute, not {most} ms: {case:?}"
        );
    }
}

#[test]
fn a_leader_of_a_linked_majority_confirms_within_two_round_trips() {
    for case in rooms() {
        for one_way_ms in [1, 7, 40] {
            let mut timed = Timed::led(&case, one_way_ms);
            timed.passes(500);
            check_requests(&mut timed, &case);
        }
    }
}

#[test]
fn a_mute_minority_delays_no_request() {
    for case in rooms().filter(|case| case.members >= 3) {
        let mut timed = Timed::led(&case, 7);
        timed.passes(500);
        let last = case.members - 1;
        timed.mute = (0..=last).rev().take(last / 2).collect();
        check_requests(&mut timed, &case);
        timed.passes(3000);
        check_requests(&mut timed, &case);
    }
}

#[test]
fn a_mute_minority_delays_an_opening_by_the_wait_for_it_alone() {
    let one_way_ms = 10;
    let round_trip = Duration::from_millis(2 * one_way_ms);
    assert_eq!(ROUND_TRIP, round_trip);
    let wait = (GATHERING_ROUND_TRIPS * round_trip).max(MIN_GATHERING);
    let wait = u64::try_from(wait.as_millis()).expect("a short time");
    for case in rooms().filter(|case| case.members >= 3) {
        let mut timed = Timed::led(&case, one_way_ms);
        timed.passes(500);
        let last = case.members - 1;
        timed.mute = (0..=last).rev().take(last / 2).collect();
        let before = replica(&timed.world, 1).history();
        act(&mut timed.world, |world| world.elect(1));
        let is_open = |world: &mut World| {
            let leader = replica(world, 1);
            leader.leads().is_some() && leader.confirmed() == leader.index()
        };
        let took = timed.time_until(10_000, is_open);
        // One round trip gathers, and one confirms the opening.
        let most = wait + 2 * 2 * one_way_ms + TURN_MS;
        assert!(took <= most, "{took} ms, not {most} ms: {case:?}");
        assert!(took >= wait, "nobody was waited for: {took} ms, {case:?}");
        assert_eq!(replica(&timed.world, 1).history(), before, "no fork");
    }
}

#[test]
fn an_idle_room_sends_nothing_and_wakes_nobody() {
    for case in rooms() {
        let mut timed = Timed::led(&case, 7);
        timed.passes(1000);
        for index in 0..case.members {
            assert_eq!(replica(&timed.world, index).next_deadline(), None);
        }
        for _ in 0..60_000 {
            timed.turn();
            let mut waiting = timed.world.links.values();
            assert!(waiting.all(VecDeque::is_empty), "{case:?}");
        }
    }
}

/// A change of leaders that reaches the members one by one.
struct Transfer {
    to: usize,
    /// When each member learns of it.
    at: Vec<u64>,
}

/// Requests of all members, and leaders that hand over or leave while they are under way.
fn transfers(case: &Case, seed: u64) {
    let mut timed = Timed::led(case, 1 + seed % 40);
    let history = replica(&timed.world, 0).history();
    let (mut leader, mut transfer) = (0, None::<Transfer>);
    let mut leavers = 0;
    for ms in 0..4200 {
        let draw = timed.world.draw(1000);
        let members = case.members as u64;
        let any = timed.world.draw(members) as usize;
        if draw < 30 && timed.world.is_up(any) {
            act(&mut timed.world, |world| world.submit_action(any));
        }
        if ms % 1000 == 500 && transfer.is_none() {
            let others = (0..case.members).filter(|index| *index != leader);
            let others: Vec<_> = others.filter(|index| timed.world.is_up(*index)).collect();
            let to = others[timed.world.draw(others.len() as u64) as usize];
            let may_leave = case.members - leavers > 2 && !case.is_static;
            let begins = match may_leave && draw.is_multiple_of(2) {
                true => {
                    leavers += 1;
                    act(&mut timed.world, |world| world.leave(leader, to));
                    // The others elect once it has gone.
                    ms + 500
                }
                false => ms,
            };
            let mut learns = |index: usize| match index == to {
                true => begins,
                false => begins + timed.world.draw(100),
            };
            let at = (0..case.members).map(&mut learns).collect();
            transfer = Some(Transfer { to, at });
        }
        if let Some(under_way) = &transfer {
            for (index, _) in under_way.at.iter().enumerate().filter(|(_, at)| **at == ms) {
                act(&mut timed.world, |world| {
                    world.shows_leader(index, under_way.to)
                });
            }
            if under_way.at.iter().all(|at| *at <= ms) {
                leader = under_way.to;
                transfer = None;
            }
        }
        timed.turn();
        if draw.is_multiple_of(5) {
            act(&mut timed.world, |world| world.take(any, usize::MAX));
        }
    }
    timed.passes(2000);
    let mut accepted = 0;
    for (index, node) in timed.world.nodes.iter().enumerate() {
        let Some(replica) = &node.replica else {
            continue;
        };
        assert_eq!(replica.history(), history, "{index} of {case:?}, {seed}");
        assert_eq!(node.host.undone(), 0, "{index} of {case:?}, {seed}");
        for (request, outcome) in node.host.outcomes() {
            accepted += 1;
            assert_eq!(
                outcome,
                Some(Outcome::Ok),
                "{request} of {index} of {case:?}, {seed}"
            );
        }
    }
    let leaders = timed
        .world
        .nodes
        .iter()
        .filter_map(|node| node.replica.as_ref());
    let openings = leaders.map(|replica: &Replica| replica.tables().openings().count());
    assert!(openings.max() >= Some(3), "no transfer: {case:?}, {seed}");
    assert!(accepted > 50, "{accepted} requests of {case:?}, {seed}");
}

#[test]
fn transfers_between_linked_members_lose_nothing() {
    for case in rooms() {
        for seed in 1..=8 {
            transfers(&case, seed);
        }
    }
}

/// Printed by `make figures`.
#[test]
#[ignore = "make figures runs it"]
fn figures_confirmation() {
    const ROUND_TRIPS_MS: [u64; 3] = [20, 60, 150];
    println!("| members | at the leader, round trip 20 / 60 / 150 ms | at another author |");
    println!("|---|---|---|");
    for members in 2..=8 {
        let took = |author: usize| {
            let times = ROUND_TRIPS_MS.map(|round_trip_ms| {
                let mut timed = Timed::led(&Case::dynamic(members), round_trip_ms / 2);
                timed.passes(1000);
                timed.time_of_a_request(author).to_string()
            });
            times.join(" / ")
        };
        println!("| {members} | {} ms | {} ms |", took(0), took(members - 1));
    }
}
