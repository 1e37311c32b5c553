//! Members that hold a leader's openings up. Each frame is allowed, and each comes before the leader gives up.

use std::collections::BTreeSet;

use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use room_core::time::{Duration, Time};
use room_state::ballot::{Ballot, History, MemberId, Place};
use room_state::entry::{Contents, Entry, Request};
use room_state::limits::{LONGEST_GATHERING, MAX_OPENINGS, WAIT_BUDGET};
use room_state::wire::{Frame, Piece, Tip};

use super::{act, led, pass, replica};
use crate::case::Case;
use crate::world::World;

/// The first members keep to the protocol.
const HONEST: usize = 3;
const LEADER: usize = 1;
/// A member that keeps to the protocol and has a request all the time.
const AUTHOR: usize = 0;
const TURN_MS: u64 = 100;
/// Time between two acts of a liar: shorter than the silence after which a leader sets a member aside.
const BETWEEN_ACTS_MS: u64 = 1_500;
/// Requests that the leader's log lacks at the beginning.
const LATER: usize = 7;
/// Entries that its log has beyond the leader's, as a liar claims: it never sends them all.
const CLAIMED: u64 = 5_000;
/// Length of the tables of which a liar sends byte by byte.
const TABLES_BYTES: u32 = 1 << 20;

/// How a liar holds the leader up, beginning with a claim to hold the newest log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// It sends nothing of its log.
    Nothing,
    /// It sends an entry at a time.
    Entries,
    /// It claims a longer log at each act.
    LongerLogs,
    /// It claims a log of its own beginning, and sends a byte of its tables at a time.
    Tables,
    /// It sends another log than it claims, and then, when asked for the whole log, a byte of its tables at a time.
    OtherLog,
    /// Its link ends and comes back.
    Links,
    /// Its process ends and another takes its place.
    Processes,
    /// It claims a history of its own, but only to give the leader a reason to wait for all members.
    History,
    /// It answers nothing, and its link ends and comes back.
    LinksWithoutAnswers,
    /// It has promised a higher ballot, again and again.
    Promises,
    /// One of the acts above, drawn anew each time.
    Anything,
}

const ALL: [Hold; 10] = [
    Hold::Nothing,
    Hold::Entries,
    Hold::LongerLogs,
    Hold::Tables,
    Hold::OtherLog,
    Hold::Links,
    Hold::Processes,
    Hold::History,
    Hold::LinksWithoutAnswers,
    Hold::Promises,
];

/// A member that lies to the leader and has a link with it alone.
struct Liar {
    index: usize,
    hold: Hold,
    does_anything: bool,
    acts_at: Time,
    /// The last gathering.
    gathered: Option<Ballot>,
    /// The last question for entries.
    asked: Option<(Ballot, Option<Place>)>,
    claimed: u64,
    sent_of_tables: u32,
}

impl Liar {
    fn new(index: usize, hold: Hold) -> Self {
        Self {
            index,
            hold,
            does_anything: hold == Hold::Anything,
            acts_at: Time::ZERO,
            gathered: None,
            asked: None,
            claimed: CLAIMED,
            sent_of_tables: 0,
        }
    }

    fn send(&self, world: &mut World, frame: Frame) {
        let frame = Frame::decode(&frame.encode()).expect("it is allowed");
        act(world, |world| {
            world.deliver_in_the_name(self.index, LEADER, frame)
        });
    }

    /// The end of the log that it claims, made from the leader's.
    fn tip(&self, world: &World, answers: Option<Ballot>) -> Tip {
        let leader = replica(world, LEADER);
        let me = world.member(self.index);
        let last = leader.tables().last().expect("the room has a log");
        let (ballot, index) = match self.hold {
            // Its openings are not the leader's.
            Hold::Tables => (above(&last.ballot, &me), last.index + CLAIMED),
            Hold::OtherLog => (last.ballot.clone(), last.index + 1),
            _ => (last.ballot.clone(), last.index + self.claimed),
        };
        let last = Place { ballot, index };
        let openings = match self.hold {
            Hold::Tables | Hold::History => vec![last.clone()],
            _ => leader.tables().openings().cloned().collect(),
        };
        let mut roster = leader.roster().clone();
        if self.hold == Hold::OtherLog {
            roster.insert(world.member(self.index));
            roster.insert(stranger(&me));
        }
        Tip {
            answers,
            follows: true,
            history: match self.hold {
                Hold::History => Some(History(5)),
                _ => leader.history(),
            },
            oldest: match self.hold {
                Hold::Tables => last.index,
                _ => 1,
            },
            last: Some(last),
            is_used: true,
            openings,
            roster: match self.hold {
                Hold::History => [me].into(),
                _ => roster,
            },
            is_recovering: false,
        }
    }

    /// Reads what the leader has sent.
    fn read(&mut self, world: &mut World) {
        let frames = world.links.get_mut(&(LEADER, self.index));
        let frames = frames.map(std::mem::take).unwrap_or_default();
        for frame in frames {
            match frame {
                Frame::Gather { ballot } => {
                    self.gathered = Some(ballot.clone());
                    if self.hold != Hold::LinksWithoutAnswers {
                        let tip = self.tip(world, Some(ballot));
                        self.send(world, Frame::Tip(tip));
                    }
                }
                Frame::Fetch { ballot, previous } => {
                    let is_next = self.asked.is_some() && previous.is_some();
                    self.asked = Some((ballot, previous));
                    if self.hold == Hold::OtherLog && !is_next {
                        self.send_entry(world);
                    }
                }
                _ => {}
            }
        }
    }

    fn send_entry(&mut self, world: &mut World) {
        let Some((ballot, Some(previous))) = self.asked.clone() else {
            return;
        };
        let entry = Entry {
            ballot: previous.ballot.clone(),
            time_ms: 0,
            contents: Contents::Request {
                author: world.member(self.index),
                number: previous.index,
                request: Request::Action {
                    msg_type: 0x100,
                    data: Bytes::from_static(b"forged"),
                },
            },
        };
        let previous = Some(previous);
        let entries = vec![entry];
        self.send(
            world,
            Frame::Entries {
                ballot,
                previous,
                entries,
            },
        );
    }

    fn send_of_tables(&mut self, world: &mut World) {
        let Some(ballot) = self.gathered.clone() else {
            return;
        };
        if self.sent_of_tables == TABLES_BYTES {
            self.sent_of_tables = 0;
        }
        let piece = Piece {
            index: self.claimed,
            total: TABLES_BYTES,
            offset: self.sent_of_tables,
            bytes: Bytes::from_static(&[0]),
        };
        self.sent_of_tables += 1;
        self.send(world, Frame::Tables { ballot, piece });
    }

    /// Its link ends if it has one, and comes up.
    fn link(&mut self, world: &mut World) {
        act(world, |world| world.cut(LEADER, self.index));
        self.sent_of_tables = 0;
        self.asked = None;
        act(world, |world| world.link(LEADER, self.index));
        // It has promised a higher ballot: reason enough to open again.
        let mut tip = self.tip(world, None);
        let me = world.member(self.index);
        tip.last = tip.last.map(|last| Place {
            ballot: above(&last.ballot, &me),
            index: last.index + 1,
        });
        tip.openings.truncate(MAX_OPENINGS - 1);
        tip.openings.extend(tip.last.clone());
        self.send(world, Frame::Tip(tip));
    }

    fn act(&mut self, world: &mut World, rng: &mut ChaCha8Rng) {
        if world.now < self.acts_at {
            return;
        }
        let mut wait = BETWEEN_ACTS_MS;
        if self.does_anything {
            self.hold = ALL[rng.random_range(0..ALL.len())];
            wait = rng.random_range(0..wait);
        }
        self.acts_at = world.now + Duration::from_millis(wait);
        if !world.links.contains_key(&(LEADER, self.index)) {
            return self.link(world);
        }
        match self.hold {
            Hold::Nothing | Hold::History => {}
            Hold::Entries => self.send_entry(world),
            Hold::Tables | Hold::OtherLog => self.send_of_tables(world),
            Hold::LongerLogs => {
                self.claimed += 1;
                let tip = self.tip(world, self.gathered.clone());
                self.send(world, Frame::Tip(tip));
            }
            Hold::Links | Hold::LinksWithoutAnswers => self.link(world),
            Hold::Processes => {
                act(world, |world| world.crash(self.index));
                world.start(self.index);
                self.link(world);
            }
            Hold::Promises => {
                let last = replica(world, LEADER).tables().last().cloned();
                let last = self.gathered.clone().or(last.map(|last| last.ballot));
                let me = world.member(self.index);
                let promised = above(&last.expect("the room has a log"), &me);
                self.send(world, Frame::Behind { promised });
            }
            Hold::Anything => unreachable!("it has drawn what it does"),
        }
    }
}

fn above(ballot: &Ballot, leader: &MemberId) -> Ballot {
    Ballot {
        number: ballot.number + 1,
        leader: leader.clone(),
    }
}

/// A process that never was.
fn stranger(member: &MemberId) -> MemberId {
    let mut stranger = member.clone();
    stranger.incarnation.random = u64::MAX;
    stranger
}

/// The hosts of the honest members take what there is.
fn take_all(world: &mut World) {
    for index in 0..HONEST {
        act(world, |world| world.take(index, usize::MAX));
    }
}

/// A room in which some lie, and the others keep to the protocol.
struct Room {
    world: World,
    liars: Vec<Liar>,
    rng: ChaCha8Rng,
    is_slow: bool,
    case: Case,
    /// The history before the liars began.
    history: Option<History>,
    /// How long the author's request has had no result, and the longest time that one had none.
    open_for: Duration,
    longest: Duration,
    /// The time in which a request had no result for more than a second.
    held_up: Duration,
    /// The leader's openings.
    ballots: BTreeSet<Ballot>,
}

impl Room {
    /// Three members keep to the protocol. The last requests of two are not in the log of the third, which is elected next.
    fn new(case: &Case, holds: &[Hold], seed: u64) -> Self {
        let members = HONEST + holds.len();
        let mut world = led(&Case {
            members,
            ..case.clone()
        });
        world.distrust();
        take_all(&mut world);
        let later = (0..members).filter(|index| *index != LEADER);
        for (one, other) in later.clone().map(|index| (index, LEADER)) {
            act(&mut world, |world| world.cut(one, other));
        }
        for _ in 0..LATER {
            act(&mut world, |world| world.submit_action(AUTHOR));
            act(&mut world, World::deliver_all);
            take_all(&mut world);
        }
        for liar in HONEST..members {
            for other in 0..HONEST {
                act(&mut world, |world| world.cut(liar, other));
            }
        }
        for index in later.filter(|index| *index < HONEST) {
            act(&mut world, |world| world.link(index, LEADER));
        }
        let liars = (HONEST..).zip(holds);
        let liars: Vec<_> = liars.map(|(index, hold)| Liar::new(index, *hold)).collect();
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            history: replica(&world, AUTHOR).history(),
            case: case.clone(),
            world,
            liars,
            is_slow: false,
            open_for: Duration::ZERO,
            longest: Duration::ZERO,
            held_up: Duration::ZERO,
            ballots: BTreeSet::new(),
        }
    }

    /// Frames go from one to another, over a slow line one of each link in a turn.
    fn exchange(&mut self) {
        let world = &mut self.world;
        let rounds = if self.is_slow { 1 } else { 1_000 };
        for _ in 0..rounds {
            for index in 0..HONEST {
                act(world, |world| world.flush(index));
            }
            take_all(world);
            for liar in &mut self.liars {
                liar.read(world);
            }
            let waiting = world.links.iter();
            let waiting = waiting.filter(|((from, to), frames)| {
                !frames.is_empty() && *from < HONEST && *to < HONEST
            });
            let waiting: Vec<_> = waiting.map(|(ends, _)| *ends).collect();
            if waiting.is_empty() {
                return;
            }
            for (from, to) in waiting {
                act(world, |world| world.deliver(from, to));
            }
        }
        assert!(self.is_slow, "frames never end");
    }

    fn turn(&mut self) {
        pass(&mut self.world, TURN_MS);
        for liar in &mut self.liars {
            liar.act(&mut self.world, &mut self.rng);
        }
        self.exchange();
        let turn = Duration::from_millis(TURN_MS);
        match replica(&self.world, AUTHOR).open_requests() {
            0 => {
                self.open_for = Duration::ZERO;
                act(&mut self.world, |world| world.submit_action(AUTHOR));
            }
            _ => self.open_for += turn,
        }
        self.ballots
            .extend(replica(&self.world, LEADER).leads().cloned());
        self.longest = self.longest.max(self.open_for);
        if self.open_for > Duration::from_secs(1) {
            self.held_up += turn;
        }
    }

    /// The leader has waited for each liar, and no longer; nothing that the others had is lost.
    fn is_held_up_once(&self) {
        let liars = u32::try_from(self.liars.len()).expect("they are few");
        let holds: Vec<_> = self.liars.iter().map(|liar| liar.hold).collect();
        let (case, held_up) = (&self.case, self.held_up);
        let shown = format!(
            "{:?}, {held_up:?} in all, beside {holds:?} in {case:?}",
            self.longest
        );
        println!("{shown}");
        assert!(self.longest <= longest(liars), "{shown}");
        assert!(self.held_up <= 2 * longest(liars), "{shown}");
        let seconds = usize::try_from(self.world.now.as_micros() / 1_000_000).expect("it is short");
        let most = self.liars.len() * (3 + seconds / 20);
        assert!(
            self.ballots.len() <= most,
            "{} of {most} openings, {shown}",
            self.ballots.len()
        );
        assert_eq!(
            replica(&self.world, LEADER).history(),
            self.history,
            "{shown}"
        );
    }

    fn over_slow_lines(self) -> Self {
        Self {
            is_slow: true,
            ..self
        }
    }

    /// The leader is elected, and time passes.
    fn lead(mut self, seconds: u64) -> Self {
        act(&mut self.world, |world| world.elect(LEADER));
        for _ in 0..seconds * 1000 / TURN_MS {
            self.turn();
        }
        self
    }
}

/// Rooms whose logs go from one to another in one frame, in several, and behind tables.
fn cases() -> [Case; 6] {
    let (dynamic, fixed) = (Case::dynamic(3), Case::fixed(3));
    [
        dynamic.clone(),
        dynamic.clone().in_pieces(),
        dynamic.forgetful(),
        fixed.clone(),
        fixed.clone().in_pieces(),
        fixed.forgetful(),
    ]
}

/// The budgets of the liars, the wait for their answers if one gives a reason for it, and the time that a change of leaders
/// takes.
fn longest(liars: u32) -> Duration {
    let answers = LONGEST_GATHERING * u32::from(liars > 1);
    WAIT_BUDGET * liars + answers + Duration::from_secs(2)
}

#[test]
fn a_member_holds_the_others_up_for_a_while_only() {
    for case in cases() {
        for hold in ALL {
            Room::new(&case, &[hold], 1).lead(60).is_held_up_once();
            let slow = Room::new(&case, &[hold], 1).over_slow_lines();
            slow.lead(60).is_held_up_once();
        }
    }
}

/// The leader's line breaks again and again while it fetches the newest log. Its members are not to blame.
#[test]
fn the_lost_links_of_a_leader_exclude_none_of_its_members() {
    for case in cases() {
        let mut room = Room::new(&case, &[], 1).over_slow_lines();
        for _ in 0..8 {
            room = room.lead(0);
            room.turn();
            for other in (0..HONEST).filter(|other| *other != LEADER) {
                act(&mut room.world, |world| world.cut(LEADER, other));
            }
            room.turn();
            for other in (0..HONEST).filter(|other| *other != LEADER) {
                act(&mut room.world, |world| world.link(LEADER, other));
            }
        }
        room.longest = Duration::ZERO;
        room.open_for = Duration::ZERO;
        let room = room.lead(10);
        let longest = room.longest;
        assert!(longest <= Duration::from_secs(3), "{longest:?} in {case:?}");
    }
}

/// It has lost the others, and waits for the answers of two that are never linked for long.
#[test]
fn a_leader_forks_beside_members_that_never_answer() {
    let mut room = Room::new(&Case::dynamic(3), &[Hold::LinksWithoutAnswers; 2], 1);
    for other in (0..HONEST).filter(|other| *other != LEADER) {
        act(&mut room.world, |world| world.cut(LEADER, other));
    }
    // One of the two is linked whenever the other is not.
    room.liars[1].acts_at = Time::ZERO + Duration::from_millis(BETWEEN_ACTS_MS / 2);
    for _ in 0..2 * BETWEEN_ACTS_MS / TURN_MS {
        room.turn();
    }
    let room = room.lead(12);
    assert!(replica(&room.world, LEADER).leads().is_some());
    assert_ne!(replica(&room.world, LEADER).history(), room.history);
}

/// One shows another history, so that the leader waits for all members, and the other is never here for long.
#[test]
fn two_members_hold_the_others_up_for_a_while_only() {
    for hold in ALL {
        let room = Room::new(&Case::dynamic(3), &[Hold::History, hold], 1);
        room.lead(60).is_held_up_once();
    }
}

#[test]
fn members_that_do_anything_hold_the_others_up_for_a_while_only() {
    for seed in 1..=8 {
        let holds = [Hold::Anything, Hold::Anything];
        let room = Room::new(&Case::dynamic(3), &holds, seed);
        room.lead(300).is_held_up_once();
    }
}
