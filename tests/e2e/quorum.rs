//! Static quorums: a majority of a fixed number of voters, and states that survive their rooms.

use std::fs;
use std::path::PathBuf;

use meta_mystia_network::config::Config;
use meta_mystia_network::core::id::SessionId;
use meta_mystia_network::core::wire::QuorumPolicy;
use meta_mystia_network::error::{Code, Coded, EligibilityError, StartError};
use meta_mystia_network::room::Room;

use crate::harness::{Member, Told, eventually, id, quick, settled};

/// The state directory of a test.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let name = format!("mmn-quorum-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn config(&self, voters: u32) -> Config {
        Config {
            quorum: QuorumPolicy::Static { voters },
            state_directory: Some(self.0.clone()),
            ..quick()
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What is left in the temporary directory disturbs nobody.
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

/// How the dial of `other` ended.
fn dialled(member: &Member, other: &Member) -> (bool, i32) {
    let text = format!("127.0.0.1:{}", other.port());
    member.connect(&text);
    member.wait("the end of the dial", |told| {
        told.iter().find_map(|told| match told {
            Told::Connection(target, success, code) if *target == text => Some((*success, *code)),
            _ => None,
        })
    })
}

fn refused(directory: &Directory, peer: &str, session: &str) -> StartError {
    let session = SessionId::new(session).expect("valid");
    let room = Room::open(id(peer), session, directory.config(3));
    room.err().expect("no room")
}

#[test]
fn two_of_three_elect_and_the_one_that_is_left_stops_leading() {
    let directory = Directory::new("majority");
    let a = Member::open_with("a", "majority", directory.config(3));
    let b = Member::open_with("b", "majority", directory.config(3));
    b.connect_to(&a);
    let leader = settled(&[&a, &b]);
    let (stays, goes) = if leader == "a" { (a, b) } else { (b, a) };
    drop(goes);
    stays.wait_for(&Told::Leader(String::new()));
    assert!(!stays.room.snapshot().is_leader);
}

#[test]
fn a_voter_that_starts_again_goes_on_from_its_term() {
    let directory = Directory::new("restart");
    let a = Member::open_with("a", "restart", directory.config(3));
    let b = Member::open_with("b", "restart", directory.config(3));
    b.connect_to(&a);
    settled(&[&a, &b]);
    let term = b.room.snapshot().term;
    assert!(term > 0);
    drop((a, b));
    let b = Member::open_with("b", "restart", directory.config(3));
    assert!(b.room.snapshot().term >= term);
    assert_eq!(b.leader(), None);
    let c = Member::open_with("c", "restart", directory.config(3));
    assert_eq!(c.room.snapshot().term, 0, "its first start");
    c.connect_to(&b);
    settled(&[&b, &c]);
    assert!(c.room.snapshot().term > term);
}

#[test]
fn one_voter_too_many_is_refused_and_an_observer_is_not() {
    let directory = Directory::new("too many");
    let a = Member::open_with("a", "full", directory.config(2));
    let b = Member::open_with("b", "full", directory.config(2));
    b.connect_to(&a);
    settled(&[&a, &b]);
    let c = Member::open_with("c", "full", directory.config(2));
    let full = Code::MaxConnectionsReached.value();
    assert_eq!(dialled(&c, &a), (false, full));
    let observer = Config {
        eligible: false,
        ..directory.config(2)
    };
    let d = Member::open_with("d", "full", observer);
    assert_eq!(dialled(&d, &a), (true, 0));
    settled(&[&a, &b, &d]);
    let answer = d.room.set_eligible(true);
    assert_eq!(answer, Err(EligibilityError::VotersFull { voters: 2 }));
}

#[test]
fn rooms_of_other_quorums_do_not_link() {
    let directory = Directory::new("mismatch");
    let three = Member::open_with("three", "mismatch", directory.config(3));
    let five = Member::open_with("five", "mismatch", directory.config(5));
    let dynamic = Member::open("dynamic", "mismatch");
    let code = Code::PolicyMismatch.value();
    assert_eq!(dialled(&five, &three), (false, code));
    assert_eq!(dialled(&dynamic, &three), (false, code));
}

#[test]
fn a_state_that_is_damaged_or_in_use_gives_no_room_and_stays_as_it_is() {
    let directory = Directory::new("damaged");
    let a = Member::open_with("a", "damaged", directory.config(3));
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
    Member::open_with("a", "damaged", directory.config(3));
}

#[test]
fn a_voter_whose_disk_takes_nothing_does_not_vote_until_it_does() {
    let directory = Directory::new("disk");
    let a = Member::open_with("a", "disk", directory.config(2));
    let others = states(&directory);
    let b = Member::open_with("b", "disk", directory.config(2));
    let states = states(&directory);
    let state = states.iter().find(|state| !others.contains(state));
    // A directory in the place of the file that is written beside: even root cannot write it.
    let in_the_way = state.expect("that of b").with_extension("new");
    eventually("the state is written", || {
        fs::create_dir(&in_the_way).is_ok()
    });
    b.connect_to(&a);
    b.wait_for(&Told::Joined("a".into()));
    // Five of the longest election timeouts.
    std::thread::sleep(quick().election_timeout_max * 5);
    assert_eq!((a.leader(), b.leader()), (None, None));
    fs::remove_dir(&in_the_way).expect("empty");
    settled(&[&a, &b]);
}

#[test]
fn a_disk_that_takes_nothing_gives_no_room() {
    let directory = Directory::new("full");
    drop(Member::open_with("a", "full disk", directory.config(3)));
    let in_the_way = states(&directory)[0].with_extension("new");
    fs::create_dir(&in_the_way).expect("a directory");
    let error = refused(&directory, "a", "full disk");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("cannot be written"), "{error}");
    fs::remove_dir(&in_the_way).expect("empty");
    Member::open_with("a", "full disk", directory.config(3));
}
