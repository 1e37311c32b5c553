//! Static quorums: a majority of a fixed list of voters, and state files that outlive their rooms.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};

use meta_mystia_network::config::{Config, Secret};
use meta_mystia_network::core::election::AssignOutcome;
use meta_mystia_network::core::id::SessionId;
use meta_mystia_network::core::quorum::{Quorum, Roster};
use meta_mystia_network::dispatch::Event;
use meta_mystia_network::error::{Code, Coded, SetLeaderError, StartError};
use meta_mystia_network::room::Room;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};

use crate::harness::{Member, Report, TIMEOUT, eventually, id, quick, settled};

const VOTERS: &str = "a\nb\nc";

/// The state directory of a test.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let name = format!("mmn-quorum-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn config(&self, voters: &str) -> Config {
        Config {
            quorum: Quorum::Static(Roster::parse(voters).expect("a roster")),
            state_directory: Some(self.0.clone()),
            ..quick()
        }
    }

    fn open(&self, name: &str, session: &str) -> Member {
        Member::open_with(name, session, self.config(VOTERS))
    }

    /// Three voters, each linked to the others, that agree on a leader.
    fn three(&self, session: &str) -> (Member, Member, Member) {
        let [a, b, c] = ["a", "b", "c"].map(|name| self.open(name, session));
        b.connect_to(&a);
        c.connect_to(&a);
        settled(&[&a, &b, &c]);
        (a, b, c)
    }

    /// Opens and closes the room of a member; returns its state file.
    fn state_of(&self, name: &str, session: &str) -> PathBuf {
        let others = states(self);
        drop(self.open(name, session));
        let mut all = states(self).into_iter();
        all.find(|path| !others.contains(path)).expect("a new one")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Remains in the temporary directory do no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The state files of all members.
fn states(directory: &Directory) -> Vec<PathBuf> {
    fs::read_dir(&directory.0)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "state"))
        .collect()
}

/// Result of the dial of `other`.
fn dialled(member: &Member, other: &Member) -> (bool, i32) {
    let text = format!("127.0.0.1:{}", other.port());
    member.connect(&text);
    member.wait("the end of the dial", |reported| {
        reported.iter().find_map(|reported| match reported {
            Report::Connection(target, success, code) if *target == text => Some((*success, *code)),
            _ => None,
        })
    })
}

/// The first value that `find` returns for an event.
fn next<T>(events: &mpsc::Receiver<Event>, find: impl Fn(Event) -> Option<T>) -> T {
    loop {
        let event = events.recv_timeout(TIMEOUT).expect("an event in time");
        if let Some(found) = find(event) {
            return found;
        }
    }
}

/// Code and sentence of a refused dial.
fn refusal(member: &Member, other: &Member) -> (i32, String) {
    let events = member.events();
    member.connect_to(other);
    next(&events, |event| match event {
        Event::ConnectionResult(result) => {
            let sentence = String::from_utf8(result.bytes.to_vec()).expect("UTF-8");
            Some((result.code, sentence))
        }
        _ => None,
    })
}

/// Result of the `SetLeader` in `events`.
fn outcome(events: &mpsc::Receiver<Event>) -> (String, AssignOutcome) {
    next(events, |event| match event {
        Event::SetLeaderResult { target, outcome } => Some((target.to_string(), outcome)),
        _ => None,
    })
}

/// Longer than any possible campaign: five of the longest election timeouts.
fn let_them_campaign() {
    std::thread::sleep(quick().election_timeout_max * 5);
}

fn refused_with(config: Config, peer: &str, session: &str) -> StartError {
    let session = SessionId::new(session).expect("valid");
    let room = Room::open(id(peer), session, config);
    room.err().expect("no room")
}

fn refused(directory: &Directory, peer: &str, session: &str) -> StartError {
    refused_with(directory.config(VOTERS), peer, session)
}

fn key() -> Option<Secret> {
    let random = ring::rand::SystemRandom::new();
    let pkcs8 = ring::signature::Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
    Secret::new(pkcs8.as_ref())
}

#[test]
fn two_of_three_elect_and_the_one_that_is_left_stops_leading() {
    let directory = Directory::new("majority");
    let a = Member::open_with("a", "majority", directory.config(VOTERS));
    let b = Member::open_with("b", "majority", directory.config(VOTERS));
    b.connect_to(&a);
    let leader = settled(&[&a, &b]);
    let (stays, goes) = if leader == "a" { (a, b) } else { (b, a) };
    drop(goes);
    stays.wait_for(&Report::Leader(String::new()));
    assert!(!stays.room.snapshot().is_leader);
}

#[test]
fn a_voter_that_starts_again_goes_on_from_its_term() {
    let directory = Directory::new("restart");
    let a = Member::open_with("a", "restart", directory.config(VOTERS));
    let b = Member::open_with("b", "restart", directory.config(VOTERS));
    b.connect_to(&a);
    settled(&[&a, &b]);
    let term = b.room.snapshot().term;
    assert!(term > 0);
    drop((a, b));
    let b = Member::open_with("b", "restart", directory.config(VOTERS));
    assert!(b.room.snapshot().term >= term);
    assert_eq!(b.leader(), None);
    let c = Member::open_with("c", "restart", directory.config(VOTERS));
    assert_eq!(c.room.snapshot().term, 0, "its first start");
    c.connect_to(&b);
    settled(&[&b, &c]);
    assert!(c.room.snapshot().term > term);
}

#[test]
fn a_member_that_is_not_on_the_roster_enters_and_observes() {
    let directory = Directory::new("observer");
    let two = || directory.config("a\nb");
    let a = Member::open_with("a", "observer", two());
    let c = Member::open_with("c", "observer", two());
    c.connect_to(&a);
    c.wait_for(&Report::Joined("a".into()));
    let_them_campaign();
    assert_eq!((a.leader(), c.leader()), (None, None), "one of two voters");
    let b = Member::open_with("b", "observer", two());
    b.connect_to(&a);
    let leader = settled(&[&a, &b, &c]);
    assert_eq!(c.room.set_eligible(true), Ok(()));
    let leading = if leader == "a" { &a } else { &b };
    let refused = leading.room.set_leader(&id("c"));
    assert!(
        matches!(&refused, Err(SetLeaderError::Rejected { .. })),
        "{refused:?}"
    );
    // Nor does it count for a majority.
    let (stays, goes) = if leader == "a" { (a, b) } else { (b, a) };
    drop(goes);
    stays.wait_for(&Report::Leader(String::new()));
    let_them_campaign();
    assert_eq!((stays.leader(), c.leader()), (None, None));
}

#[test]
fn rooms_of_other_quorums_do_not_link() {
    let directory = Directory::new("mismatch");
    let three = Member::open_with("a", "mismatch", directory.config("a\nb\nc"));
    let others = Member::open_with("b", "mismatch", directory.config("a\nb\nd"));
    let dynamic = Member::open("dynamic", "mismatch");
    let code = Code::PolicyMismatch.value();
    let (refused, sentence) = refusal(&others, &three);
    assert_eq!(refused, code);
    let digests = [VOTERS, "a\nb\nd"].map(|voters| {
        let roster = Roster::parse(voters).expect("a roster");
        format!("{:?}", roster.digest())
    });
    for part in ["quorum is", &digests[0], &digests[1]] {
        assert!(sentence.contains(part), "{part} is not in {sentence:?}");
    }
    assert_eq!(dialled(&dynamic, &three), (false, code));
}

/// Regression: a newcomer became a voter on the side of a member that had restarted.
#[test]
fn an_outsider_makes_no_majority_for_a_voter_that_started_again() {
    let directory = Directory::new("outsider");
    let (a, b, c) = directory.three("outsider");
    drop(b);
    let leader = settled(&[&a, &c]);
    let b = directory.open("b", "outsider");
    let d = directory.open("d", "outsider");
    d.connect_to(&b);
    d.wait_for(&Report::Joined("b".into()));
    let_them_campaign();
    let led = |reported: &Report| matches!(reported, Report::Leader(name) if !name.is_empty());
    for member in [&b, &d] {
        assert!(
            !member.reported().iter().any(led),
            "{:?}",
            member.reported()
        );
    }
    assert_eq!(settled(&[&a, &c]), leader);
    let term = a.room.snapshot().term;
    b.connect_to(&a);
    assert_eq!(settled(&[&a, &b, &c, &d]), leader);
    assert_eq!(
        a.room.snapshot().term,
        term,
        "no member was elected meanwhile"
    );
}

/// Starts `stale`, whose state file was lost or is an older copy, without one of the two others. It blocks elections until that
/// one is present; then it votes and leads.
fn does_not_vote_before_it_has_met_all(directory: &Directory, session: &str, stale: Config) {
    let a = directory.open("a", session);
    let b = Member::open_with("b", session, stale);
    b.connect_to(&a);
    b.wait_for(&Report::Joined("a".into()));
    let_them_campaign();
    assert_eq!((a.leader(), b.leader()), (None, None), "one of three votes");
    let c = directory.open("c", session);
    c.connect_to(&a);
    settled(&[&a, &b, &c]);
    transfer_to("b", [&a, &b, &c]);
}

/// Requests it again and again: a voter that does not vote yet is not elected.
fn transfer_to(name: &str, members: [&Member; 3]) {
    eventually("it leads", || {
        // Refused while there is no leader.
        let _ = members[0].room.set_leader(&id(name));
        members
            .iter()
            .all(|member| member.leader().as_deref() == Some(name))
    });
}

/// Elections in which `b` votes or is elected, so that its state file changes.
fn elect_again(members: [&Member; 3]) {
    for name in ["b", "a", "b", "c"] {
        transfer_to(name, members);
    }
}

#[test]
fn a_voter_with_an_older_copy_of_its_state_votes_only_after_links_to_all() {
    let directory = Directory::new("older");
    let state = directory.state_of("b", "older");
    let (a, b, c) = directory.three("older");
    let older = fs::read(&state).expect("there");
    elect_again([&a, &b, &c]);
    drop((b, a, c));
    assert_ne!(fs::read(&state).expect("there"), older);
    fs::write(&state, older).expect("restored");
    let log = Log::start();
    does_not_vote_before_it_has_met_all(&directory, "older", directory.config(VOTERS));
    log.holds("remembers more writes of this member's state file than it held at this start");
}

#[test]
fn a_voter_that_lost_its_state_and_kept_its_key_votes_only_after_links_to_all() {
    let directory = Directory::new("deleted");
    let config = Config {
        identity_key: key(),
        ..directory.config(VOTERS)
    };
    let a = directory.open("a", "deleted");
    let c = directory.open("c", "deleted");
    let others = states(&directory);
    let b = Member::open_with("b", "deleted", config.clone());
    b.connect_to(&a);
    c.connect_to(&a);
    settled(&[&a, &b, &c]);
    elect_again([&a, &b, &c]);
    drop((b, a, c));
    let mut all = states(&directory).into_iter();
    let state = all.find(|path| !others.contains(path)).expect("that of b");
    fs::remove_file(state).expect("removed");
    does_not_vote_before_it_has_met_all(&directory, "deleted", config);
}

#[test]
fn a_voter_with_another_key_is_refused_for_as_long_as_the_session_lives() {
    let directory = Directory::new("key");
    let (a, b, c) = directory.three("key");
    drop(b);
    a.wait_for(&Report::Left("b".into()));
    // Its key was in the file, and was lost with it.
    let elsewhere = Directory::new("key elsewhere");
    let b = elsewhere.open("b", "key");
    for other in [&a, &c] {
        let (code, sentence) = refusal(&b, other);
        assert_eq!(code, Code::DuplicatePeerId.value());
        assert!(
            sentence.contains("b is a voter of this room with another key"),
            "{sentence:?}"
        );
    }
    drop(b);
    let b = directory.open("b", "key");
    b.connect_to(&a);
    settled(&[&a, &b, &c]);
}

#[test]
fn a_roster_that_fixes_another_key_for_this_member_gives_no_room() {
    let directory = Directory::new("fixed");
    let fixed = format!("a {}\nb", "ab".repeat(32));
    for identity_key in [None, key()] {
        let config = Config {
            identity_key,
            ..directory.config(&fixed)
        };
        let error = refused_with(config, "a", "fixed");
        assert_eq!(error.code(), Code::InvalidArgument);
        let error = error.to_string();
        assert!(
            error.contains("fixes the key of \"a\"") && error.contains(&"ab".repeat(32)),
            "{error}"
        );
        assert!(states(&directory).is_empty(), "nothing is kept");
    }
}

#[test]
fn another_roster_at_the_next_start_gives_no_room() {
    let directory = Directory::new("roster");
    drop(directory.open("a", "roster"));
    let error = refused_with(directory.config("a\nb\nd"), "a", "roster");
    assert_eq!(error.code(), Code::InvalidArgument);
    let error = error.to_string();
    assert!(error.contains("it adds \"d\", it lacks \"c\""), "{error}");
    drop(directory.open("a", "roster"));
    // Another session has another list.
    drop(Member::open_with(
        "a",
        "roster 2",
        directory.config("a\nb\nd"),
    ));
}

#[test]
fn set_leader_asks_the_leader_for_a_transfer() {
    let directory = Directory::new("transfer");
    let alone = directory.open("a", "transfer");
    let refused = alone.room.set_leader(&id("a"));
    assert_eq!(refused, Err(SetLeaderError::NoLeader));
    assert_eq!(SetLeaderError::NoLeader.code(), Code::NotLeader);
    drop(alone);
    let (a, b, c) = directory.three("transfer");
    let members = [&a, &b, &c];
    let leader = a.leader().expect("they agree");
    let target = members
        .iter()
        .find(|one| one.leader() != Some(one.room.peer_id().to_string()));
    let target = target.expect("a follower");
    let name = target.room.peer_id().to_string();
    let term = target.room.snapshot().term;
    let reported = target.events();
    target.room.set_leader(&id(&name)).expect("asked");
    assert_eq!(outcome(&reported), (name.clone(), AssignOutcome::Done));
    eventually("all follow it", || {
        members
            .iter()
            .all(|member| member.leader().as_ref() == Some(&name))
    });
    assert!(target.room.snapshot().term > term);
    assert_eq!(target.room.snapshot().epoch, 0, "it was elected");
    assert_ne!(leader, name);
    // An observer is refused at once.
    let d = directory.open("d", "transfer");
    d.connect_to(&a);
    settled(&[&a, &b, &c, &d]);
    let refused = target.room.set_leader(&id("d"));
    assert!(
        matches!(&refused, Err(SetLeaderError::Rejected { .. })),
        "{refused:?}"
    );
    // And the leader refuses a voter that is not linked to it.
    let mut followers = members
        .iter()
        .filter(|one| one.room.peer_id().as_str() != name);
    let (asks, apart) = (
        followers.next().expect("one"),
        followers.next().expect("two"),
    );
    target
        .room
        .disconnect(apart.room.peer_id())
        .expect("linked");
    target.wait_for(&Report::Left(apart.room.peer_id().to_string()));
    let reported = asks.events();
    asks.room.set_leader(apart.room.peer_id()).expect("asked");
    let rejected = AssignOutcome::Rejected;
    assert_eq!(
        outcome(&reported),
        (apart.room.peer_id().to_string(), rejected)
    );
    assert_eq!(target.leader(), Some(name), "it leads on");
}

#[test]
fn a_state_that_is_damaged_or_in_use_gives_no_room_and_stays_as_it_is() {
    let directory = Directory::new("damaged");
    let a = Member::open_with("a", "damaged", directory.config(VOTERS));
    let error = refused(&directory, "a", "damaged");
    assert_eq!(error.code(), Code::DuplicatePeerId, "{error}");
    drop(a);
    let state = states(&directory).remove(0);
    let whole = fs::read(&state).expect("there");
    fs::write(&state, &whole[1..]).expect("damaged");
    for _ in 0..2 {
        let error = refused(&directory, "a", "damaged");
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.to_string().contains("is damaged"), "{error}");
        assert_eq!(fs::read(&state).expect("there"), &whole[1..]);
    }
    fs::write(&state, &whole).expect("mended");
    Member::open_with("a", "damaged", directory.config(VOTERS));
}

#[test]
fn a_voter_whose_disk_takes_nothing_does_not_vote_until_it_does() {
    let directory = Directory::new("disk");
    let a = Member::open_with("a", "disk", directory.config("a\nb"));
    let others = states(&directory);
    let b = Member::open_with("b", "disk", directory.config("a\nb"));
    let states = states(&directory);
    let state = states.iter().find(|state| !others.contains(state));
    // A directory in place of the temporary file: even root cannot write it.
    let in_the_way = state.expect("that of b").with_extension("new");
    eventually("the state is written", || {
        fs::create_dir(&in_the_way).is_ok()
    });
    b.connect_to(&a);
    b.wait_for(&Report::Joined("a".into()));
    // Five of the longest election timeouts.
    std::thread::sleep(quick().election_timeout_max * 5);
    assert_eq!((a.leader(), b.leader()), (None, None));
    fs::remove_dir(&in_the_way).expect("empty");
    settled(&[&a, &b]);
}

#[test]
fn a_disk_that_takes_nothing_gives_no_room() {
    let directory = Directory::new("full");
    drop(Member::open_with(
        "a",
        "full disk",
        directory.config(VOTERS),
    ));
    let in_the_way = states(&directory)[0].with_extension("new");
    fs::create_dir(&in_the_way).expect("a directory");
    let error = refused(&directory, "a", "full disk");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("cannot be written"), "{error}");
    fs::remove_dir(&in_the_way).expect("empty");
    Member::open_with("a", "full disk", directory.config(VOTERS));
}

/// The log of this process from `start` on, at level error.
struct Log(Arc<Mutex<String>>);

impl Log {
    fn start() -> Self {
        let log = Self(Arc::default());
        // One subscriber per process; a single test reads it.
        tracing::subscriber::set_global_default(Self(Arc::clone(&log.0))).expect("the first one");
        log
    }

    fn holds(&self, text: &str) {
        eventually(text, || self.0.lock().expect("not poisoned").contains(text));
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Line(&mut self.0.lock().expect("not poisoned")));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A log line in progress.
struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{value:?}");
    }
}
