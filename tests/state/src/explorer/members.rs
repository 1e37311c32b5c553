//! Members by number: the reaction of each to each input is computed once.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;

use bytes::Bytes;
use room_core::id::Incarnation;
use room_core::time::{Duration, Time};
use room_state::ballot::{Ballot, History, MemberId};
use room_state::entry::Request;
use room_state::laboratory::Switches;
use room_state::limits::Options;
use room_state::replica::{Input, Linked, Output, Quorum, Replica, Saved, Settings};
use room_state::wire::{Frame, Lane};

use super::{MEMBERS, Scope};
use crate::world::{HEARTBEAT, HOLD, ROUND_TRIP, STUCK_AFTER, name};

/// The process of a member: the first one has the number 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) member: usize,
    pub(super) starts: u64,
}

impl Process {
    pub(super) fn id(self) -> MemberId {
        let number = 1000 * (self.member as u64 + 1) + self.starts;
        MemberId {
            peer: name(self.member),
            incarnation: Incarnation {
                started_us: self.starts,
                random: number,
            },
        }
    }
}

/// An input of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stimulus {
    /// Its process begins, or another one in its place.
    Starts,
    Linked(Process),
    Lost(usize),
    Gone(Process),
    Leader(Process),
    Leave(usize),
    Submits(u8),
    Frame(usize, u32),
    Tick,
}

/// A member, and what outlives its process.
#[derive(Debug, Clone, Default)]
pub(super) struct Member {
    pub(super) replica: Option<Replica>,
    saved: Saved,
    pub(super) starts: u64,
}

/// A member after an input, and its outputs.
pub(super) struct Reaction {
    pub(super) member: u32,
    pub(super) sends: Vec<(usize, u32)>,
    pub(super) may_end: bool,
}

/// A reaction, or the broken promise.
type Known = Rc<Result<Reaction, String>>;

/// See the module's text.
pub(super) struct Members {
    settings: Settings,
    members: Vec<Member>,
    numbers: HashMap<u128, u32>,
    frames: Vec<Frame>,
    frame_numbers: HashMap<Vec<u8>, u32>,
    reactions: HashMap<(u32, usize, u64, Stimulus), Known>,
}

/// Histories that depend on nothing but the ballot: no two openings have the same, and members in equal states stay equal.
fn history_of(ballot: &Ballot) -> History {
    History(2 + (ballot.number << 16) + ballot.leader.incarnation.random)
}

/// The number of something that shows all of its state.
pub(super) fn fingerprint(shown: &impl fmt::Debug) -> u128 {
    struct Text(DefaultHasher, DefaultHasher);
    impl Write for Text {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            self.1.write(text.as_bytes());
            Ok(())
        }
    }
    let mut text = Text(DefaultHasher::new(), DefaultHasher::new());
    text.1.write_u8(1);
    write!(text, "{shown:?}").expect("nothing fails");
    u128::from(text.0.finish()) << 64 | u128::from(text.1.finish())
}

impl Members {
    pub(super) fn new(scope: &Scope) -> Self {
        let quorum = match scope.is_static {
            true => Quorum::Static((0..MEMBERS).map(name).collect()),
            false => Quorum::Dynamic,
        };
        let mut settings = Settings::new(quorum, Options::default(), HEARTBEAT, STUCK_AFTER, HOLD);
        settings.stuck_after = STUCK_AFTER;
        settings.switches = Switches {
            broken: scope.broken.clone(),
            entries_of_a_frame: scope.entries_of_a_frame,
            bytes_of_a_part: None,
            histories_by_ballot: Some(history_of),
        };
        Self {
            settings,
            members: Vec::new(),
            numbers: HashMap::new(),
            frames: Vec::new(),
            frame_numbers: HashMap::new(),
            reactions: HashMap::new(),
        }
    }

    /// Distinct members.
    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    pub(super) fn get(&self, number: u32) -> &Member {
        &self.members[number as usize]
    }

    pub(super) fn frame(&self, number: u32) -> &Frame {
        &self.frames[number as usize]
    }

    pub(super) fn is_request(&self, frame: u32) -> bool {
        self.frame(frame).lane() == Lane::Requests
    }

    /// The number of a member.
    pub(super) fn number(&mut self, member: Member) -> u32 {
        let next = u32::try_from(self.members.len()).expect("fewer members");
        let number = *self.numbers.entry(fingerprint(&member)).or_insert(next);
        if number == next {
            self.members.push(member);
        }
        number
    }

    fn frame_number(&mut self, frame: Frame) -> u32 {
        let next = u32::try_from(self.frames.len()).expect("fewer frames");
        let number = *self.frame_numbers.entry(frame.encode()).or_insert(next);
        if number == next {
            self.frames.push(frame);
        }
        number
    }

    /// The member after a turn with this input, at whose end it sends what has become due.
    pub(super) fn react(
        &mut self,
        number: u32,
        index: usize,
        now_ms: u64,
        stimulus: Stimulus,
    ) -> Known {
        let key = (number, index, now_ms, stimulus);
        if let Some(known) = self.reactions.get(&key) {
            return Rc::clone(known);
        }
        let reaction = Rc::new(self.compute(number, index, now_ms, stimulus));
        self.reactions.insert(key, Rc::clone(&reaction));
        reaction
    }

    fn compute(
        &mut self,
        number: u32,
        index: usize,
        now_ms: u64,
        stimulus: Stimulus,
    ) -> Result<Reaction, String> {
        let mut member = self.get(number).clone();
        let now = Time::ZERO + Duration::from_millis(now_ms);
        let mut reaction = Reaction {
            member: number,
            sends: Vec::new(),
            may_end: false,
        };
        if stimulus == Stimulus::Starts {
            member.starts += 1;
            let starts = member.starts;
            let me = Process {
                member: index,
                starts,
            };
            let settings = self.settings.clone();
            member.replica = Some(Replica::new(me.id(), settings, member.saved.clone(), 0));
        }
        let Some(replica) = &mut member.replica else {
            return Ok(reaction);
        };
        match stimulus {
            Stimulus::Starts => {}
            Stimulus::Submits(number) => {
                let submitted = replica.submit(request(number));
                submitted.map_err(|error| error.to_string())?;
            }
            _ => {
                let handled = replica.handle(now, self.input(stimulus));
                handled.map_err(|violation| violation.to_string())?;
            }
        }
        replica.flush(now);
        while let Some(output) = replica.poll_output() {
            match output {
                Output::Send { to, frame } => {
                    let to = (0..MEMBERS).find(|at| name(*at) == to).expect("a member");
                    let frame = self.frame_number(frame);
                    reaction.sends.push((to, frame));
                }
                Output::Persist(saved) => member.saved = saved,
                Output::MayEnd => reaction.may_end = true,
            }
        }
        reaction.member = self.number(member);
        Ok(reaction)
    }

    fn input(&self, stimulus: Stimulus) -> Input {
        match stimulus {
            Stimulus::Linked(process) => Input::Linked(Linked {
                member: process.id(),
                is_eligible: true,
                round_trip: ROUND_TRIP,
            }),
            Stimulus::Lost(peer) => Input::Lost(name(peer)),
            Stimulus::Gone(process) => Input::Gone(process.id()),
            Stimulus::Leader(process) => Input::Leader(Some(process.id())),
            Stimulus::Leave(successor) => Input::Leave {
                successor: Some(name(successor)),
            },
            Stimulus::Frame(from, frame) => Input::Frame {
                from: name(from),
                frame: self.frame(frame).clone(),
                largest_number: u64::MAX,
            },
            Stimulus::Starts | Stimulus::Submits(_) | Stimulus::Tick => Input::Tick,
        }
    }
}

/// An action that no other request equals.
pub(super) fn request(number: u8) -> Request {
    Request::Action {
        msg_type: 0x100,
        data: Bytes::copy_from_slice(&[number]),
    }
}
