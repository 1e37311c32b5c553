//! The room's state in real rooms: one order of actions, properties, and what survives the leader.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use meta_mystia_network::config::{Config, DispatchMode, StateOptions};
use meta_mystia_network::core::id::PeerId;
use meta_mystia_network::core::quorum::{Quorum, Roster};
use meta_mystia_network::dispatch::{Reported, kind};
use meta_mystia_network::error::{Code, Coded, SubmitError};
use meta_mystia_network::state::ballot::History;
use meta_mystia_network::state::entry::{
    Expected, Fate, Key, OwnerChange, PropertyChange, Traits, ValueChange,
};
use meta_mystia_network::state::event::{Outcome, StateEvent};

use crate::harness::{Member, eventually, id, quick, settled};

/// The type of the actions.
const SAY: u16 = 0x0100;

/// A member with a game: a log of lines, which actions extend.
struct Player {
    member: Member,
    game: Arc<Mutex<Game>>,
}

/// A host's state, and what it has received.
#[derive(Debug, Default)]
struct Game {
    lines: Vec<(String, String)>,
    results: BTreeMap<u64, Outcome>,
    resets: usize,
    rolled_back: usize,
    /// The values of properties, as their events showed them.
    properties: BTreeMap<String, Bytes>,
    here: Vec<String>,
    /// Requests for a snapshot that are not answered, with the state that the host had then.
    wanted: Vec<(u64, Vec<u8>)>,
    incomplete: usize,
}

impl Game {
    fn take(&mut self, event: &StateEvent) {
        match event {
            StateEvent::Action { author, data, .. } => {
                let line = String::from_utf8(data.to_vec()).expect("a line");
                self.lines.push((author.peer.to_string(), line));
            }
            StateEvent::ActionResult {
                request, outcome, ..
            } => {
                let before = self.results.insert(*request, *outcome);
                assert_eq!(before, None, "a second result of request {request}");
            }
            StateEvent::Reset {
                snapshot,
                is_incomplete,
                ..
            } => {
                self.resets += 1;
                self.incomplete += usize::from(*is_incomplete);
                self.lines = decoded(snapshot.as_ref().map_or(&[][..], |bytes| &bytes[..]));
            }
            StateEvent::RolledBack { .. } => self.rolled_back += 1,
            StateEvent::Property { key, property, .. } => {
                let key = key.as_str().to_owned();
                match property {
                    Some(property) => self.properties.insert(key, property.value.clone()),
                    None => self.properties.remove(&key),
                };
            }
            StateEvent::MemberPresence {
                member, presence, ..
            } => {
                let peer = member.peer.to_string();
                self.here.retain(|other| *other != peer);
                if format!("{presence:?}") == "Here" {
                    self.here.push(peer);
                }
            }
            StateEvent::SnapshotWanted { request, .. } => {
                self.wanted.push((*request, encoded(&self.lines)));
            }
            StateEvent::Opened { .. } => {}
        }
    }
}

fn encoded(lines: &[(String, String)]) -> Vec<u8> {
    let lines: Vec<_> = lines.iter().map(|(a, b)| format!("{a}\t{b}")).collect();
    lines.join("\n").into_bytes()
}

fn decoded(bytes: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    let parts = text.lines().filter_map(|line| line.split_once('\t'));
    parts.map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}

impl Player {
    fn open(name: &str, session: &str) -> Self {
        Self::open_with(name, session, with_state(StateOptions::default()))
    }

    fn open_with(name: &str, session: &str, config: Config) -> Self {
        let member = Member::open_with(name, session, config);
        let game = Arc::<Mutex<Game>>::default();
        let dispatch = member.room.dispatch();
        let shared = Arc::clone(&game);
        dispatch.register::<kind::Everything>(Some(Arc::new(move |report: kind::Report<'_>| {
            if let Reported::State(event) = report.event {
                shared.lock().expect("not poisoned").take(event);
            }
        })));
        Self { member, game }
    }

    fn say(&self, line: &str) -> u64 {
        let submitted = self.member.room.submit(SAY, line.as_bytes());
        submitted.expect("taken")
    }

    fn game<T>(&self, read: impl Fn(&Game) -> T) -> T {
        read(&self.game.lock().expect("not poisoned"))
    }

    fn lines(&self) -> Vec<(String, String)> {
        self.game(|game| game.lines.clone())
    }

    /// Waits for the result of a request.
    fn result(&self, request: u64) -> Outcome {
        eventually("a result", || {
            self.game(|game| game.results.contains_key(&request))
        });
        self.game(|game| game.results[&request])
    }

    /// Provides the snapshots that the host was asked for.
    fn provide(&self) {
        let wanted = std::mem::take(&mut self.game.lock().expect("not poisoned").wanted);
        for (request, snapshot) in wanted {
            let provided = self.member.room.provide_snapshot(request, Some(&snapshot));
            provided.expect("asked for");
        }
    }

    fn property(&self, key: &str) -> Option<Bytes> {
        let property = self.member.room.property(key).expect("a state");
        property.map(|property| property.value)
    }
}

fn with_state(options: StateOptions) -> Config {
    Config {
        state: Some(options),
        ..quick()
    }
}

/// Opens members that are linked with each other and agree on a leader, which it names.
fn room(session: &str, names: &[&str]) -> (Vec<Player>, String) {
    let players: Vec<_> = names
        .iter()
        .map(|name| Player::open(name, session))
        .collect();
    for (at, player) in players.iter().enumerate() {
        for other in &players[..at] {
            player.member.connect_to(&other.member);
        }
    }
    let members: Vec<_> = players.iter().map(|player| &player.member).collect();
    let leader = settled(&members);
    (players, leader)
}

/// Waits until all have the same lines, `count` of them. Meanwhile their hosts provide the snapshots that they are asked for.
fn agree(players: &[Player], count: usize) -> Vec<(String, String)> {
    eventually("equal lines", || {
        players.iter().for_each(Player::provide);
        let lines = players[0].lines();
        lines.len() == count && players.iter().all(|player| player.lines() == lines)
    });
    players[0].lines()
}

fn set(key: &str, value: &[u8], expected: Expected) -> PropertyChange {
    PropertyChange {
        key: Key::new(key).expect("a key"),
        value: ValueChange::Set(Bytes::copy_from_slice(value)),
        owner: OwnerChange::Keep,
        traits: Traits::default(),
        expected,
    }
}

#[test]
fn all_hosts_receive_the_same_actions_in_one_order_and_each_author_its_results() {
    let (players, _) = room("one order", &["a", "b", "c"]);
    let mut requests = Vec::new();
    for round in 0..50 {
        for player in &players {
            requests.push((player, player.say(&format!("line {round}"))));
        }
    }
    let lines = agree(&players, 150);
    for name in ["a", "b", "c"] {
        let own = lines.iter().filter(|(author, _)| author == name);
        let own: Vec<_> = own.map(|(_, line)| line.clone()).collect();
        let sent: Vec<_> = (0..50).map(|round| format!("line {round}")).collect();
        assert_eq!(own, sent, "in the order of {name}'s calls");
    }
    for (player, request) in requests {
        assert_eq!(player.result(request), Outcome::Ok);
    }
}

#[test]
fn a_newcomer_receives_what_was_done_before_it_came() {
    let (mut players, _) = room("newcomer", &["a", "b"]);
    for line in 0..10 {
        players[0].say(&line.to_string());
    }
    agree(&players, 10);
    let newcomer = Player::open("c", "newcomer");
    newcomer.member.connect_to(&players[0].member);
    players.push(newcomer);
    agree(&players, 10);
    players[2].say("hello");
    agree(&players, 11);
    eventually("all are here", || {
        players
            .iter()
            .all(|player| player.game(|game| game.here.len() == 3))
    });
}

#[test]
fn a_leader_that_leaves_takes_nothing_with_it() {
    let (mut players, leader) = room("leaver", &["a", "b", "c"]);
    players[1].say("before");
    agree(&players, 1);
    let set_map = vec![set("map", b"forest", Expected::Any)];
    let request = players[0].member.room.set_properties(set_map);
    assert_eq!(players[0].result(request.expect("taken")), Outcome::Ok);
    let at = players
        .iter()
        .position(|player| player.member.room.peer_id().as_str() == leader);
    let gone = players.remove(at.expect("the leader is a member"));
    let last = gone.say("my last words");
    gone.member.room.close();
    drop(gone);
    let _ = last;
    let members: Vec<_> = players.iter().map(|player| &player.member).collect();
    settled(&members);
    players[0].say("after");
    eventually("the members that stay go on", || {
        let lines = players[0].lines();
        lines.last() == Some(&(members[0].room.peer_id().to_string(), "after".into()))
            && players[1].lines() == lines
    });
    for player in &players {
        assert_eq!(player.property("map").as_deref(), Some(&b"forest"[..]));
        assert_eq!(player.game(|game| game.rolled_back), 0);
    }
}

#[test]
fn of_two_compare_and_sets_against_one_version_one_succeeds() {
    let (players, _) = room("compare and set", &["a", "b", "c"]);
    let take = |player: &Player, expected| {
        let change = PropertyChange {
            owner: OwnerChange::To(player.member.room.peer_id().clone()),
            traits: Traits {
                owner_only: false,
                fate: Fate::FallsToLeader,
            },
            ..set("ball", b"", expected)
        };
        let request = player.member.room.set_properties(vec![change]);
        request.expect("taken")
    };
    let requests: Vec<_> = players
        .iter()
        .map(|player| take(player, Expected::Version(0)))
        .collect();
    let outcomes: Vec<_> = players
        .iter()
        .zip(requests)
        .map(|(player, request)| player.result(request))
        .collect();
    let won = |outcome: &&Outcome| **outcome == Outcome::Ok;
    assert_eq!(outcomes.iter().filter(won).count(), 1, "{outcomes:?}");
    let winner = outcomes.iter().position(|outcome| *outcome == Outcome::Ok);
    let owner = players[winner.expect("one won")].member.room.peer_id();
    let has_owner = |player: &Player| {
        let ball = player.member.room.property("ball").expect("a state");
        ball.is_some_and(|ball| ball.owner.as_ref() == Some(owner))
    };
    eventually("all see the owner", || players.iter().all(has_owner));
    let keys = |of: Option<&PeerId>| players[0].member.room.property_keys(of).expect("a state");
    assert_eq!(keys(Some(owner)), [Key::new("ball").expect("a key")]);
    assert_eq!(keys(Some(&id("nobody"))), []);
    assert_eq!(keys(None).len(), 1);
}

#[test]
fn a_newcomer_behind_the_tail_begins_with_the_snapshot_of_another_host() {
    let short = || {
        with_state(StateOptions {
            tail_entries: 256,
            ..StateOptions::default()
        })
    };
    let a = Player::open_with("a", "snapshot", short());
    let b = Player::open_with("b", "snapshot", short());
    b.member.connect_to(&a.member);
    settled(&[&a.member, &b.member]);
    let mut players = vec![a, b];
    for wave in 1..=3 {
        for line in 0..200 {
            players[0].say(&format!("wave {wave}, line {line}"));
        }
        agree(&players, wave * 200);
    }
    let c = Player::open_with("c", "snapshot", short());
    c.member.connect_to(&players[0].member);
    players.push(c);
    agree(&players, 600);
    assert_eq!(
        players[2].game(|game| (game.resets, game.incomplete)),
        (1, 0)
    );
    let unknown = players[0].member.room.provide_snapshot(99, None);
    assert_eq!(
        unknown.expect_err("not asked for").code(),
        Code::PeerNotFound
    );
    players[2].say("hello");
    agree(&players, 601);
}

/// Polls the room of a host that takes events only here, until `done` holds of its game.
fn poll_until(player: &Player, done: impl Fn(&Game) -> bool) {
    eventually("the events of a host that polls", || {
        player.member.room.dispatch().poll(64).expect("it polls");
        player.game(&done)
    });
}

#[test]
fn a_host_that_takes_no_events_holds_no_other_up_and_begins_anew_with_a_snapshot() {
    let options = StateOptions {
        tail_entries: 256,
        ..StateOptions::default()
    };
    let session = "a host that does not poll";
    let awake = ["a", "b"].map(|name| Player::open_with(name, session, with_state(options)));
    let config = Config {
        dispatch_mode: DispatchMode::Poll,
        ..with_state(options)
    };
    let silent = Player::open_with("c", session, config);
    awake[1].member.connect_to(&awake[0].member);
    silent.member.connect_to(&awake[0].member);
    settled(&[&awake[0].member, &awake[1].member, &silent.member]);
    // It has received the state's beginning, and counts.
    poll_until(&silent, |game| game.here.len() == 3);
    let info = || silent.member.room.state_info().expect("a state");
    let before = info();
    assert_eq!(before.roster, 3);
    for wave in 1..=10 {
        for line in 0..200 {
            awake[wave % 2].say(&format!("wave {wave}, line {line}: {}", "x".repeat(200)));
        }
        agree(&awake, wave * 200);
    }
    eventually("the silent host's member has all", || {
        info().confirmed >= before.confirmed + 2000
    });
    // The host has taken nothing, and its member keeps no more than a tail for it.
    assert_eq!((silent.lines().len(), info().taken), (0, before.taken));
    assert!(info().bytes < 256 * 512, "{:?}", info());
    let all = awake[0].lines();
    let resets = silent.game(|game| game.resets);
    eventually("it has begun anew", || {
        silent.member.room.dispatch().poll(64).expect("it polls");
        awake.iter().for_each(Player::provide);
        silent.lines() == all
    });
    assert_eq!(
        silent.game(|game| (game.resets, game.incomplete, game.rolled_back)),
        (resets + 1, 0, 0)
    );
}

#[test]
fn a_newcomer_to_which_hosts_decline_a_snapshot_begins_incomplete_and_goes_on() {
    let options = StateOptions {
        tail_entries: 256,
        max_snapshot_bytes: 1000,
        ..StateOptions::default()
    };
    let open = |name| Player::open_with(name, "declined", with_state(options));
    let mut players = vec![open("a"), open("b")];
    players[1].member.connect_to(&players[0].member);
    settled(&[&players[0].member, &players[1].member]);
    for wave in 1..=2 {
        for line in 0..200 {
            players[0].say(&format!("wave {wave}, line {line}"));
        }
        agree(&players, wave * 200);
    }
    let newcomer = open("c");
    newcomer.member.connect_to(&players[0].member);
    eventually("the state begins without a snapshot", || {
        for player in &players {
            let wanted = std::mem::take(&mut player.game.lock().expect("not poisoned").wanted);
            for (request, snapshot) in wanted {
                let provide = |bytes| player.member.room.provide_snapshot(request, bytes);
                let error = provide(Some(&snapshot)).expect_err("too long");
                assert_eq!(error.code(), Code::MessageTooLarge);
                provide(None).expect("the request goes on");
            }
        }
        newcomer.game(|game| game.incomplete == 1)
    });
    newcomer.say("later");
    players.push(newcomer);
    eventually("actions go on", || {
        let last = ("c".to_owned(), "later".to_owned());
        players
            .iter()
            .all(|player| player.lines().last() == Some(&last))
    });
}

/// Three voters of a static quorum, with their files.
struct Voters {
    directory: PathBuf,
    session: &'static str,
}

impl Voters {
    fn new(session: &'static str) -> Self {
        let name = format!("mmn-room-state-{}-{session}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).expect("a directory");
        Self { directory, session }
    }

    fn open(&self, name: &str) -> Player {
        let config = Config {
            quorum: Quorum::Static(Roster::parse("a\nb\nc").expect("a roster")),
            state_directory: Some(self.directory.clone()),
            ..with_state(StateOptions::default())
        };
        Player::open_with(name, self.session, config)
    }

    fn all(&self) -> Vec<Player> {
        let players = ["a", "b", "c"].map(|name| self.open(name));
        players[1].member.connect_to(&players[0].member);
        players[2].member.connect_to(&players[0].member);
        let members: Vec<_> = players.iter().map(|player| &player.member).collect();
        settled(&members);
        players.into()
    }
}

impl Drop for Voters {
    fn drop(&mut self) {
        // Remains in the temporary directory do no harm.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn a_restarted_voter_receives_the_state_that_a_majority_kept() {
    let voters = Voters::new("one voter again");
    let mut players = voters.all();
    players[0].say("before");
    agree(&players, 1);
    let gone = players.pop().expect("three");
    gone.member.room.close();
    drop(gone);
    players[0].say("meanwhile");
    agree(&players, 2);
    let again = voters.open("c");
    again.member.connect_to(&players[0].member);
    players.push(again);
    agree(&players, 2);
    players[2].say("again");
    agree(&players, 3);
    let histories = |player: &Player| player.member.room.state_info().expect("a state").history;
    assert!(
        players
            .iter()
            .all(|player| histories(player) == Some(History::STATIC))
    );
}

#[test]
fn voters_that_have_all_restarted_go_on_in_a_new_history() {
    let voters = Voters::new("all voters again");
    let players = voters.all();
    players[0].say("lost");
    agree(&players, 1);
    for player in &players {
        player.member.room.close();
    }
    drop(players);
    let players = voters.all();
    let request = players[0].say("new");
    assert_eq!(players[0].result(request), Outcome::Ok);
    agree(&players, 1);
    let info = players[0].member.room.state_info().expect("a state");
    assert_ne!(info.history, Some(History::STATIC));
    assert!(!info.is_exclusive, "no majority remembered");
}

#[test]
fn members_with_other_limits_of_the_state_stay_out() {
    let a = Player::open("a", "limits");
    let others = [
        quick(),
        with_state(StateOptions {
            tail_entries: 100,
            ..StateOptions::default()
        }),
    ];
    for config in others {
        let b = Member::open_with("b", "limits", config);
        b.connect_to(&a.member);
        let code = b.wait("a result", |reported| {
            reported.iter().find_map(|report| match report {
                crate::harness::Report::Connection(_, is_linked, code) => {
                    assert!(!is_linked);
                    Some(*code)
                }
                _ => None,
            })
        });
        assert_eq!(code, Code::PolicyMismatch.value());
    }
}

#[test]
fn a_room_without_a_state_refuses_its_calls() {
    let a = Member::open("a", "no state");
    let refused = a.room.submit(SAY, b"").expect_err("no state");
    assert_eq!(refused.code(), Code::NotSupported);
    assert!(a.room.property("map").is_err());
    assert!(a.room.state_info().is_err());
    let b = Player::open("b", "a state");
    let refused = b.member.room.submit(0x00ff, b"");
    assert_eq!(refused, Err(SubmitError::TypeReserved { msg_type: 0x00ff }));
    let long = b.member.room.submit(SAY, &[0; 16 * 1024 + 1]);
    assert_eq!(long.expect_err("too long").code(), Code::MessageTooLarge);
}
