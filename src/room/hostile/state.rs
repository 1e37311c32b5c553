//! The room's state under attack and under bad luck: members that break the rules of its frames, that take nothing, that
//! flood; and cut cables, which make histories that must merge.

mod forged;

use std::sync::Mutex;

use super::cut::{cut, heal};
use super::*;
use crate::config::StateOptions;
use crate::core::wire::StateLimits;
use crate::dispatch::Reported;
use crate::net::close;
use crate::net::frame::STATE_LANES;
use crate::room::replication::limits;
use crate::state::ballot::{Ballot, MemberId, Place};
use crate::state::entry::Request;
use crate::state::event::StateEvent;
use crate::state::limits::{MAX_ACTION_BYTES, MAX_FRAME_BYTES};
use crate::state::wire::{Frame, Numbered, Tip};

/// The type of the actions.
const SAY: u16 = 0x0100;

fn with_state() -> Config {
    Config {
        state: Some(StateOptions::default()),
        ..quick()
    }
}

fn default_limits() -> StateLimits {
    limits(StateOptions::default())
}

/// A host's state, as the events have made it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Seen {
    /// The lines of actions, in order.
    lines: Vec<String>,
    /// Lines that were rolled back.
    rolled_back: Vec<String>,
    results: usize,
    /// Openings by a leader that the host has received.
    openings: usize,
}

impl Seen {
    fn take(&mut self, event: &StateEvent) {
        let text = |data: &Bytes| String::from_utf8_lossy(data).into_owned();
        match event {
            StateEvent::Action { data, .. } => self.lines.push(text(data)),
            StateEvent::RolledBack { data, .. } => self.rolled_back.push(text(data)),
            StateEvent::Reset { snapshot, .. } => {
                assert_eq!(*snapshot, None, "the tails are long");
                self.lines.clear();
            }
            StateEvent::ActionResult { .. } => self.results += 1,
            StateEvent::Opened { leader, .. } => self.openings += usize::from(leader.is_some()),
            _ => {}
        }
    }
}

/// A host with a state.
struct Player {
    host: Host,
    seen: Arc<Mutex<Seen>>,
}

impl Player {
    fn open(name: &str, session: &str) -> Self {
        let host = Host::open_with(name, session, with_state());
        let seen = Arc::<Mutex<Seen>>::default();
        let taken = Arc::clone(&seen);
        let handler = move |report: kind::Report<'_>| {
            if let Reported::State(event) = report.event {
                taken.lock().expect("not poisoned").take(event);
            }
        };
        let dispatch = host.room.dispatch();
        dispatch.register::<kind::Everything>(Some(Arc::new(handler)));
        Self { host, seen }
    }

    fn say(&self, line: &str) {
        let submitted = self.host.room.submit(SAY, line.as_bytes());
        submitted.expect("taken");
    }

    fn seen(&self) -> Seen {
        self.seen.lock().expect("not poisoned").clone()
    }

    fn leads(&self) -> bool {
        self.host.room.snapshot().leader.as_ref() == Some(&id(&self.host.name))
    }
}

/// Members that are all linked and agree on a leader.
async fn party(session: &str, names: &[&str]) -> Vec<Player> {
    let players: Vec<_> = names
        .iter()
        .map(|name| Player::open(name, session))
        .collect();
    for (at, player) in players.iter().enumerate() {
        for other in &players[..at] {
            player.host.connect_to(other.host.address());
        }
    }
    for player in &players {
        for other in names.iter().filter(|name| **name != player.host.name) {
            player.host.wait_for(joined(other), 1).await;
        }
    }
    eventually("one leader", || {
        players.iter().filter(|player| player.leads()).count() == 1
    })
    .await;
    players
}

/// Waits until all have these lines, in any order, but the same one.
async fn agree(players: &[&Player], lines: &[&str]) {
    eventually("equal lines", || {
        let seen = players[0].seen().lines;
        let mut sorted = seen.clone();
        sorted.sort();
        sorted == lines && players.iter().all(|player| player.seen().lines == seen)
    })
    .await;
}

fn encoded(frame: &Frame) -> BytesMut {
    let bytes = frame.encode();
    let mut framed = BytesMut::from(&u32::try_from(bytes.len()).expect("short").to_le_bytes()[..]);
    framed.extend_from_slice(&bytes);
    framed
}

fn someone(name: &str) -> MemberId {
    MemberId {
        peer: id(name),
        incarnation: Incarnation {
            started_us: 1,
            random: 1,
        },
    }
}

fn ballot(number: u64, leader: &str) -> Ballot {
    Ballot {
        number,
        leader: someone(leader),
    }
}

fn have(number: u64, index: u64) -> Frame {
    Frame::Have {
        ballot: ballot(number, "m"),
        index,
        is_recovering: false,
    }
}

/// An attacker that has entered a room with a state.
async fn entered(session: &str, player: &Player, state: Option<StateLimits>) -> Member {
    let attacker = Attacker::new("m", session);
    let hello = Hello {
        state,
        ..attacker.hello()
    };
    let member = attacker.join_unseen(&player.host, &hello).await;
    player.host.wait_for(joined("m"), 1).await;
    member
}

#[tokio::test]
async fn a_frame_that_no_member_sends_ends_the_link_and_nothing_else() {
    let session = "offences in the state";
    let players = party(session, &["a", "b"]).await;
    let [log, requests, _] = STATE_LANES;
    let gather = |ballot| encoded(&Frame::Gather { ballot });
    let tip = |number| {
        let place = Place {
            ballot: ballot(number, "m"),
            index: 1,
        };
        encoded(&Frame::Tip(Tip {
            answers: None,
            follows: false,
            history: Some(crate::state::ballot::History(5)),
            last: Some(place.clone()),
            is_used: true,
            oldest: 1,
            openings: vec![place],
            roster: [someone("m")].into(),
            is_recovering: false,
        }))
    };
    let mut malformed = BytesMut::from(&3_u32.to_le_bytes()[..]);
    malformed.extend_from_slice(&[0xff; 3]);
    let too_long = u32::try_from(MAX_FRAME_BYTES + 1).expect("short");
    let offences = [
        ("a malformed frame", log, malformed),
        (
            "a long frame",
            log,
            BytesMut::from(&too_long.to_le_bytes()[..]),
        ),
        ("another lane", requests, gather(ballot(1, "m"))),
        ("another's ballot", log, gather(ballot(1, "b"))),
        ("an incredible ballot", log, tip(1 << 60)),
    ];
    for (what, lane, bytes) in offences {
        let before = players[0].host.times(&left("m"));
        let attacker = Attacker::new("m", session);
        let hello = Hello {
            state: Some(default_limits()),
            by_hand: true,
            ..attacker.hello()
        };
        let member = attacker.join_unseen(&players[0].host, &hello).await;
        let mut lane = member.open_lane(LaneHeader { lane }).await;
        // The other end may have given the link up already.
        let _ = in_time(lane.write_all(&bytes)).await;
        assert_eq!(member.closed().await, close::VIOLATION, "{what}");
        players[0].host.wait_for(left("m"), before + 1).await;
    }
    players[1].say("undisturbed");
    agree(&[&players[0], &players[1]], &["undisturbed"]).await;
}

#[tokio::test]
async fn a_room_without_a_state_takes_none_of_its_lanes() {
    let session = "no state";
    let pair = Pair::settled(session).await;
    let attacker = Attacker::new("m", session);
    let member = attacker.join(&pair.a).await;
    let mut lane = member
        .open_lane(LaneHeader {
            lane: STATE_LANES[0],
        })
        .await;
    let _ = in_time(lane.write_all(&encoded(&have(1, 1)))).await;
    assert_eq!(member.closed().await, close::VIOLATION);
    pair.undisturbed("a lane of a state").await;
}

#[tokio::test]
async fn a_member_that_is_mute_or_claims_too_much_holds_no_other_up() {
    let session = "a mute member";
    let players = party(session, &["a", "b", "c"]).await;
    let leader = players.iter().find(|player| player.leads());
    let member = entered(session, leader.expect("one leads"), Some(default_limits())).await;
    // It follows no leader, and claims entries under a ballot that does not exist.
    let mut lane = member
        .open_lane(LaneHeader {
            lane: STATE_LANES[0],
        })
        .await;
    for number in 0..100 {
        let _ = in_time(lane.write_all(&encoded(&have(number, number)))).await;
    }
    for player in &players {
        player.say(&player.host.name);
    }
    let all: Vec<_> = players.iter().collect();
    agree(&all, &["a", "b", "c"]).await;
}

#[tokio::test]
async fn a_flood_of_requests_waits_where_it_is() {
    let session = "a flood of requests";
    let players = party(session, &["a", "b", "c"]).await;
    let leader = players.iter().find(|player| player.leads());
    let member = entered(session, leader.expect("one leads"), Some(default_limits())).await;
    let requests: Vec<_> = (1..=3)
        .map(|number| Numbered {
            number,
            request: Request::Action {
                msg_type: SAY,
                data: vec![b'x'; MAX_ACTION_BYTES].into(),
            },
        })
        .collect();
    let frame = encoded(&Frame::Submit {
        ballot: ballot(1, "a"),
        requests,
    });
    let mut lane = member
        .open_lane(LaneHeader {
            lane: STATE_LANES[1],
        })
        .await;
    let flood = tokio::spawn(async move {
        // Until QUIC holds it back, or the link ends.
        for _ in 0..2000 {
            if lane.write_all(&frame).await.is_err() {
                return;
            }
        }
    });
    for number in 0..50 {
        for player in &players {
            player.say(&format!("{number:02} {}", player.host.name));
        }
    }
    let all: Vec<_> = players.iter().collect();
    eventually("all actions of the members", || {
        all.iter().all(|player| player.seen().lines.len() == 150)
    })
    .await;
    flood.abort();
}

#[tokio::test]
async fn histories_that_a_cut_made_merge_and_each_loss_is_reported() {
    let session = "a fork and a merge";
    let players = party(session, &["a", "b", "c"]).await;
    players[0].say("0 before");
    let all: Vec<_> = players.iter().collect();
    agree(&all, &["0 before"]).await;
    let (leaders, others): (Vec<&Player>, Vec<&Player>) =
        all.iter().copied().partition(|player| player.leads());
    let alone = leaders[0];
    let ports: Vec<_> = others.iter().map(|other| other.host.port()).collect();
    for port in &ports {
        cut(alone.host.port(), *port);
        cut(*port, alone.host.port());
    }
    // The majority goes on in its history. The former leader forks, and confirms what it does alone.
    eventually("two leaders", || {
        others.iter().filter(|player| player.leads()).count() == 1
    })
    .await;
    others[0].say("1 majority");
    others[1].say("2 majority");
    agree(&others, &["0 before", "1 majority", "2 majority"]).await;
    alone.say("3 alone");
    eventually("the fork goes on", || {
        alone.seen().lines == ["0 before", "3 alone"]
    })
    .await;
    for port in &ports {
        heal(alone.host.port(), *port);
        heal(*port, alone.host.port());
    }
    let merged = ["0 before", "1 majority", "2 majority"];
    agree(&all, &merged).await;
    assert_eq!(alone.seen().rolled_back, ["3 alone"]);
    for other in &others {
        assert_eq!(other.seen().rolled_back, [""; 0], "{}", other.host.name);
    }
    alone.say("4 after");
    agree(&all, &["0 before", "1 majority", "2 majority", "4 after"]).await;
}
