//! A member that lies about its log, and otherwise follows the protocol.

use std::collections::BTreeSet;

use tokio::task::JoinHandle;

use super::*;
use crate::state::ballot::History;
use crate::state::entry::{Contents, Entry};

/// Far above every index of these rooms.
const HIGH_INDEX: u64 = 1_000_000;
/// Entries that the leader lacks, and that a liar forges.
const FORGED: u64 = 3;
const FORGED_LINE: &str = "forged";
/// A liar that sends its log slowly waits for so long before each entry: less than a leader waits for a silent member.
const BETWEEN_ENTRIES: Duration = Duration::from_millis(1_500);

/// The log that the liar claims to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// A history of its own, with all members in its roster.
    OtherHistory,
    /// More of the room's history than the leader has. It provides none of it.
    NewerLog,
    /// [`Lie::NewerLog`], and it provides that an entry at a time, slowly.
    SlowEntries,
    /// [`FORGED`] actions that no member has submitted, behind the leader's log.
    ForgedEntries,
}

impl Lie {
    /// The end of its log, made from the leader's.
    fn tip(self, leaders: &Tip, answers: Option<Ballot>) -> Tip {
        let number = leaders.last.as_ref().map_or(1, |last| last.ballot.number);
        let higher = Place {
            ballot: ballot(number + 1, "m"),
            index: HIGH_INDEX,
        };
        let last = match (self, &leaders.last) {
            // The leader has opened because of the higher ballot.
            (Self::ForgedEntries, Some(last)) if answers.is_some() => Place {
                ballot: last.ballot.clone(),
                index: last.index + FORGED,
            },
            _ => higher,
        };
        let (history, openings, roster) = match self {
            Self::OtherHistory => {
                let mut roster: BTreeSet<_> = leaders.roster.iter().cloned().collect();
                roster.insert(someone("m"));
                (
                    Some(History(5)),
                    vec![last.clone()],
                    roster.into_iter().collect(),
                )
            }
            Self::NewerLog | Self::SlowEntries | Self::ForgedEntries => (
                leaders.history,
                leaders.openings.clone(),
                leaders.roster.clone(),
            ),
        };
        Tip {
            answers,
            follows: true,
            history,
            last: Some(last),
            is_used: true,
            oldest: 1,
            openings,
            roster,
            is_recovering: false,
        }
    }

    /// Its answer to the leader's request for entries.
    async fn entries(self, ballot: Ballot, previous: Option<Place>) -> Option<Frame> {
        let count = match self {
            Self::OtherHistory | Self::NewerLog => return None,
            Self::SlowEntries => {
                sleep(BETWEEN_ENTRIES).await;
                1
            }
            Self::ForgedEntries => FORGED,
        };
        let before = previous.as_ref()?;
        let forged = |number| Entry {
            ballot: before.ballot.clone(),
            time_ms: 0,
            contents: Contents::Request {
                author: someone("m"),
                number: before.index + number,
                request: Request::Action {
                    msg_type: SAY,
                    data: Bytes::from_static(FORGED_LINE.as_bytes()),
                },
            },
        };
        let entries = (1..=count).map(forged).collect();
        Some(Frame::Entries {
            ballot,
            previous,
            entries,
        })
    }
}

/// The stream of a link's other end that carries its log.
async fn log_of(connection: &Connection) -> RecvStream {
    loop {
        let mut stream = in_time(connection.accept_uni()).await.expect("a lane");
        let header = in_time(read_frame(&mut stream, 64))
            .await
            .expect("a header");
        let header: LaneHeader = postcard::from_bytes(&header).expect("a header");
        if header.lane == STATE_LANES[0] {
            return stream;
        }
    }
}

/// Answers the leader at the other end of a link until the link ends; counts its gatherings.
async fn answer(
    connection: Connection,
    mut own: SendStream,
    lie: Lie,
    gathered: Arc<watch::Sender<u32>>,
) {
    let mut log = log_of(&connection).await;
    let mut leaders = None;
    while let Ok(frame) = read_frame(&mut log, MAX_FRAME_BYTES).await {
        let answer = match Frame::decode(&frame).expect("the other end is honest") {
            Frame::Tip(tip) => {
                let first = lie.tip(&tip, None);
                leaders = Some(tip);
                Some(Frame::Tip(first))
            }
            Frame::Gather { ballot } => {
                gathered.send_modify(|count| *count += 1);
                let leaders = leaders.as_ref().expect("the first frame is a Tip");
                Some(Frame::Tip(lie.tip(leaders, Some(ballot))))
            }
            Frame::Fetch { ballot, previous } => lie.entries(ballot, previous).await,
            _ => None,
        };
        if let Some(frame) = answer
            && own.write_all(&encoded(&frame)).await.is_err()
        {
            return;
        }
    }
}

/// A liar in the room, for as long as this lives.
struct Liar {
    gathered: Arc<watch::Sender<u32>>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Liar {
    async fn enter(session: &str, leader: &Player, lie: Lie) -> Self {
        let mut member = entered(session, leader, Some(default_limits())).await;
        let log = LaneHeader {
            lane: STATE_LANES[0],
        };
        let own = member.open_lane(log).await;
        let gathered = Arc::new(watch::Sender::new(0));
        let answers = answer(member.connection.clone(), own, lie, Arc::clone(&gathered));
        let beats = async move {
            loop {
                let follows = Pulse::Follows {
                    record: Record::default(),
                    live: false,
                };
                member.notify_core(heartbeat(follows)).await;
                sleep(Duration::from_millis(100)).await;
            }
        };
        Self {
            gathered,
            tasks: [tokio::spawn(answers), tokio::spawn(beats)],
        }
    }

    /// Waits until the leader has asked it for its log.
    async fn was_asked(&self) {
        let mut gathered = self.gathered.subscribe();
        in_time(gathered.wait_for(|count| *count > 0))
            .await
            .expect("it lives");
    }
}

/// Three members have a state when the liar comes. Afterwards all three go on with it.
async fn after(session: &str, lie: Lie) -> Vec<Seen> {
    let players = party(session, &["a", "b", "c"]).await;
    for player in &players {
        player.say(&format!("0 {}", player.host.name));
    }
    let all: Vec<_> = players.iter().collect();
    agree(&all, &["0 a", "0 b", "0 c"]).await;
    let leader = players
        .iter()
        .find(|player| player.leads())
        .expect("one leads");
    let openings = leader.seen().openings;
    let liar = Liar::enter(session, leader, lie).await;
    liar.was_asked().await;
    eventually("an opening after the lie", || {
        leader.seen().openings > openings
    })
    .await;
    for player in &players {
        player.say(&format!("1 {}", player.host.name));
    }
    eventually("all go on", || {
        let seen = leader.seen();
        ["1 a", "1 b", "1 c"]
            .iter()
            .all(|line| seen.lines.iter().any(|seen| seen == line))
            && players
                .iter()
                .all(|player| player.seen().lines == seen.lines)
    })
    .await;
    players.iter().map(Player::seen).collect()
}

#[tokio::test]
async fn a_history_that_one_member_claims_undoes_nothing() {
    for seen in after("another history", Lie::OtherHistory).await {
        assert_eq!((seen.lines.len(), seen.rolled_back.len()), (6, 0));
    }
}

#[tokio::test]
async fn a_log_that_no_member_provides_holds_the_others_up_for_a_while_only() {
    for seen in after("a newer log", Lie::NewerLog).await {
        assert_eq!((seen.lines.len(), seen.rolled_back.len()), (6, 0));
    }
}

#[tokio::test]
async fn a_log_that_comes_slowly_holds_the_others_up_for_a_while_only() {
    for seen in after("slow entries", Lie::SlowEntries).await {
        assert_eq!((seen.lines.len(), seen.rolled_back.len()), (6, 0));
    }
}

/// The room trusts its members with the state: a forged action is one. It divides no hosts, and undoes nothing.
#[tokio::test]
async fn a_forged_entry_reaches_all_hosts_alike() {
    for seen in after("forged entries", Lie::ForgedEntries).await {
        let forged = seen.lines.iter().filter(|line| *line == FORGED_LINE);
        assert_eq!(forged.count() as u64, FORGED);
        assert_eq!(
            (seen.lines.len() as u64, seen.rolled_back.len()),
            (6 + FORGED, 0)
        );
    }
}
