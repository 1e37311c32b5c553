//! Tests of state files on a real disk.

use std::collections::BTreeMap;

use super::format::MAGIC;
use super::*;
use crate::core::election::raft::saved::{KnownVoter, Saved};
use crate::core::election::record::{Epoch, Record, Stamp};
use crate::core::id::Fingerprint;
use crate::error::{Code, Coded};
use crate::state::ballot::{Ballot, MemberId};

/// A separate directory for each test.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let name = format!("mmn-state-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn open(&self, session: &str, peer: &str) -> Result<(StateFile, Kept), StartError> {
        let member = (&session_id(session), &peer_id(peer));
        let (file, _, saved) = self.take(member, &roster("a\nb\nc"), None)?;
        Ok((file, saved))
    }

    /// Opens the file of "a" in "s" with this roster and key, and writes it; returns the key.
    fn start(&self, voters: &str, given: Option<&Identity>) -> Result<Fingerprint, StartError> {
        let member = (&session_id("s"), &peer_id("a"));
        let (file, identity, _) = self.take(member, &roster(voters), given.cloned())?;
        file.keep(&saved(1))?;
        Ok(identity.fingerprint())
    }

    fn take(
        &self,
        member: (&SessionId, &PeerId),
        roster: &Roster,
        given: Option<Identity>,
    ) -> Result<(StateFile, Identity, Kept), StartError> {
        let now = new_incarnation(1);
        StateFile::open(&self.0, member, Some(roster), Strategy::Raft, given, now)
    }

    /// The only state file.
    fn state(&self) -> PathBuf {
        let entries = fs::read_dir(&self.0).expect("a directory");
        let mut paths = entries.map(|entry| entry.expect("an entry").path());
        let state = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "state");
        paths.find(state).expect("a state file")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn session_id(text: &str) -> SessionId {
    SessionId::new(text).expect("valid")
}

fn peer_id(text: &str) -> PeerId {
    PeerId::new(text).expect("valid")
}

fn roster(text: &str) -> Roster {
    Roster::parse(text).expect("a roster")
}

fn saved(term: u64) -> Kept {
    Kept {
        strategy: Opaque::of(&votes(term)),
        log: Opaque::of(&(term, "promised")),
    }
}

fn votes(term: u64) -> Saved {
    let known = KnownVoter {
        key: Fingerprint([9; 32]),
        incarnation: Incarnation {
            started_us: 5,
            random: 6,
        },
        writes: 8,
    };
    let epoch = Epoch {
        assigner_key: None,
        override_seq: 2,
        assigner: Some(peer_id("琪露诺")),
    };
    Saved {
        writes: term,
        forgotten: Some(3),
        record: Record {
            leader_key: None,
            stamp: Stamp { epoch, term },
            leader: Some(peer_id("b")),
            assigned: true,
        },
        voted_for: Some(peer_id("c")),
        others: BTreeMap::from([(peer_id("b"), known)]),
    }
}

#[test]
fn written_state_is_there_after_a_restart() {
    let directory = Directory::new("restart");
    let (file, found) = directory.open("tea/..\\", "a:b*").expect("a first start");
    assert_eq!(found, Kept::default());
    file.write(&saved(1)).expect("written");
    file.write(&saved(2)).expect("written");
    drop(file);
    let (file, found) = directory.open("tea/..\\", "a:b*").expect("a restart");
    assert_eq!(found, saved(2));
    let names: Vec<_> = fs::read_dir(&directory.0)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names.len(), 2, "the state and the lock: {names:?}");
    drop(file);
}

#[test]
fn each_incarnation_is_newer_than_the_last_at_any_clock() {
    let directory = Directory::new("lives");
    let future = Incarnation {
        started_us: u64::MAX / 2,
        random: 9,
    };
    let (mut file, _) = directory.open("s", "a").expect("opened");
    file.incarnation = future;
    file.keep(&saved(4)).expect("written");
    drop(file);
    let (file, found) = directory.open("s", "a").expect("a restart");
    assert_eq!(found, saved(4), "term and vote are as they were");
    let first = new_incarnation(3);
    assert!(first.started_us > 1_600_000_000_000_000, "{first:?}");
    let next = file.incarnation();
    assert!(next > future, "{next:?}");
}

#[test]
fn the_largest_state_fits() {
    let id = |number: usize| format!("{number:064}");
    let fixed = "f".repeat(64);
    let lines: Vec<_> = (0..64)
        .map(|number| format!("{} {fixed}", id(number)))
        .collect();
    let known = KnownVoter {
        key: Fingerprint([9; 32]),
        incarnation: Incarnation {
            started_us: u64::MAX,
            random: u64::MAX,
        },
        writes: u64::MAX,
    };
    let whole = Saved {
        writes: u64::MAX,
        others: (1..64)
            .map(|number| (peer_id(&id(number)), known))
            .collect(),
        ..votes(u64::MAX)
    };
    let promised = Ballot {
        number: u64::MAX,
        leader: MemberId {
            peer: peer_id(&id(63)),
            incarnation: known.incarnation,
        },
    };
    let whole = Kept {
        strategy: Opaque::of(&whole),
        log: Opaque::of(&(Some(promised), true)),
    };
    let directory = Directory::new("largest");
    let member = (&session_id(&"s".repeat(128)), &peer_id(&id(0)));
    let roster = roster(&lines.join("\n"));
    let open = || directory.take(member, &roster, None);
    let (file, _, _) = open().expect("a first start");
    file.keep(&whole).expect("it fits");
    drop(file);
    assert_eq!(open().expect("a restart").2, whole);
}

#[test]
fn a_key_that_is_made_here_is_the_same_at_every_start() {
    let directory = Directory::new("made");
    let made = directory.start("a\nb", None).expect("a first start");
    let others = Directory::new("made elsewhere");
    assert_ne!(others.start("a\nb", None).expect("a first start"), made);
    assert_eq!(directory.start("b\na", None).expect("a restart"), made);
    let given = Identity::generate().expect("a key");
    let error = directory.start("a\nb", Some(&given));
    let error = error.expect_err("another key").to_string();
    for part in [
        "identity_key is not the one in the state file",
        "(NULL: the file holds it)",
        &Digits(given.fingerprint()).to_string(),
        &Digits(made).to_string(),
    ] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
    assert_eq!(directory.start("a\nb", None).expect("a restart"), made);
}

#[test]
fn of_a_key_that_is_given_only_the_fingerprint_is_kept() {
    let directory = Directory::new("given");
    let private = generate_private().expect("a key");
    let given = Identity::from_private(&private).expect("a key");
    let own = given.fingerprint();
    assert_eq!(directory.start("a", Some(&given)).expect("started"), own);
    let bytes = fs::read(directory.state()).expect("there");
    let holds = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(holds(&own.0));
    assert!(!holds(private.as_slice()), "the private key is on disk");
    let error = directory.start("a", None).expect_err("no key");
    assert_eq!(error.code(), Code::InvalidArgument);
    let error = error.to_string();
    for part in [
        "identity_key is NULL",
        "give that key again",
        &Digits(own).to_string(),
    ] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
    let other = Identity::generate().expect("a key");
    let error = directory.start("a", Some(&other)).expect_err("another key");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(!error.to_string().contains("NULL"), "{error}");
    assert_eq!(directory.start("a", Some(&given)).expect("started"), own);
}

/// A fingerprint as the messages show it.
struct Digits(Fingerprint);

impl std::fmt::Display for Digits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[test]
fn another_roster_than_that_of_the_first_start_is_refused() {
    let directory = Directory::new("roster");
    let key = |digit: &str| digit.repeat(64);
    let first = format!("a\nb\nc {}", key("1"));
    directory.start(&first, None).expect("a first start");
    for (voters, expected) in [
        ("a\nb\nd".to_owned(), "it adds \"d\", it lacks \"c\";"),
        (format!("{first}\nd\ne"), "it adds \"d\", \"e\";"),
        (format!("a\nc {}", key("1")), "it lacks \"b\";"),
        (
            format!("a\nb {}\nc {}", key("3"), key("2")),
            "it has another fingerprint for \"b\", \"c\";",
        ),
    ] {
        let error = directory.start(&voters, None).expect_err(&voters);
        assert_eq!(error.code(), Code::InvalidArgument);
        let error = error.to_string();
        for part in [
            expected,
            "another session id",
            "remove the state files of all members while none of them runs",
        ] {
            assert!(error.contains(part), "{part} is not in {error}");
        }
    }
    directory.start(&first, None).expect("a restart");
}

#[cfg(unix)]
#[test]
fn no_other_user_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = Directory::new("mode");
    let (file, _) = directory.open("s", "a").expect("opened");
    // A file left by a crash keeps its permissions.
    fs::write(&file.beside, b"left behind").expect("written");
    fs::set_permissions(&file.beside, fs::Permissions::from_mode(0o644)).expect("set");
    file.write(&saved(1)).expect("written");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(file.path()), 0o600);
    let beside = create_private(&file.beside).expect("created");
    assert_eq!(mode(&file.beside), 0o600);
    drop(beside);
}

#[test]
fn a_file_of_another_version_is_refused_as_such() {
    let directory = Directory::new("version");
    directory.start("a", None).expect("a first start");
    let path = directory.state();
    let mut bytes = fs::read(&path).expect("there");
    for (version, expected) in [
        (1, "an older library wrote it, without a roster"),
        (5, "newer"),
    ] {
        bytes[MAGIC.len()] = version;
        fs::write(&path, &bytes).expect("written");
        let error = directory.start("a", None).expect_err("another version");
        assert_eq!(error.code(), Code::InvalidArgument);
        let error = error.to_string();
        let version = format!("has version {version}, and this library reads version 4");
        assert!(
            error.contains(&version) && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn a_file_without_a_state_of_the_log_is_one_that_older_libraries_read() {
    let directory = Directory::new("older");
    let (file, _) = directory.open("s", "a").expect("opened");
    let without = Kept {
        log: Opaque::default(),
        ..saved(1)
    };
    for (kept, version) in [(saved(1), 4), (without, 3)] {
        file.write(&kept).expect("written");
        let bytes = fs::read(file.path()).expect("there");
        assert_eq!(bytes[MAGIC.len()], version);
        assert_eq!(decode(&bytes).expect("whole").kept, kept);
    }
}

/// The file of "a" in "tea", the only voter, which voted for itself in term 1; written before
/// the library named strategies.
const VERSION_2: [&str; 3] = [
    "4d4d4e5354415445020000004800000003746561016102610a012dada1413d17b296cde737da5e1f",
    "2f8289ac610ac5706358cc2fecd6be947d09a3bccd97919c9803d29aa0e9a5e185e3760200000101",
    "016100010161000069de15c4a5e0b0d6335aa2e1a43f7cb7abc73e0c71014a4930127309337e191e",
];

#[test]
fn a_file_of_version_2_is_read_as_one_of_raft() {
    let hex = VERSION_2.concat();
    let bytes: Vec<_> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits"))
        .collect();
    let content = decode(&bytes).expect("it is read");
    let owner = &content.owner;
    assert_eq!(
        (owner.peer.as_str(), owner.strategy.as_str()),
        ("a", "raft")
    );
    let votes: Saved = content.kept.strategy.decode().expect("raft's");
    assert_eq!((votes.writes, votes.record.term()), (2, 1));
    assert_eq!(votes.voted_for, Some(peer_id("a")));
    let again = encode(owner, content.incarnation, &content.kept).expect("short");
    let again = decode(&again).expect("of this version");
    assert_eq!(again.incarnation, content.incarnation);
    assert_eq!(again.kept, content.kept);
}

#[test]
fn the_file_of_another_strategy_is_refused() {
    let directory = Directory::new("strategy");
    directory.start("a", None).expect("a first start");
    let member = (&session_id("s"), &peer_id("a"));
    let gossip = Strategy::Gossip {
        strict_lowest: false,
    };
    let now = new_incarnation(1);
    let opened = StateFile::open(&directory.0, member, Some(&roster("a")), gossip, None, now);
    let error = opened.map(drop).expect_err("raft wrote it");
    assert_eq!(error.code(), Code::InvalidArgument);
    let expected = "strategy is gossip, but the state file belongs to the strategy \"raft\"";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn members_and_sessions_have_files_of_their_own() {
    let directory = Directory::new("own");
    let ids = [("s", "a"), ("s", "A"), ("S", "a"), ("sa", "b"), ("s", "ab")];
    let files: Vec<_> = ids
        .iter()
        .zip(1..)
        .map(|((session, peer), term)| {
            let (file, found) = directory.open(session, peer).expect("a first start");
            assert_eq!(found, Kept::default());
            file.write(&saved(term)).expect("written");
            file
        })
        .collect();
    drop(files);
    for ((session, peer), term) in ids.iter().zip(1..) {
        let (_, found) = directory.open(session, peer).expect("a restart");
        assert_eq!(found, saved(term));
    }
}

#[test]
fn a_file_that_is_open_is_not_opened_again() {
    let directory = Directory::new("lock");
    let first = directory.open("s", "a").expect("opened");
    let error = directory
        .open("s", "a")
        .map(drop)
        .expect_err("it is in use");
    assert_eq!(error.code(), Code::DuplicatePeerId);
    assert!(error.to_string().contains(".lock"), "{error}");
    drop(first);
    directory.open("s", "a").expect("free again");
}

#[test]
fn every_damage_is_an_error_and_leaves_the_file_alone() {
    let directory = Directory::new("damage");
    let (file, _) = directory.open("s", "a").expect("opened");
    file.write(&saved(3)).expect("written");
    let path = file.path().to_owned();
    drop(file);
    let whole = fs::read(&path).expect("there");
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|len| whole[..len].to_vec()).collect();
    for index in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[index] ^= 0x10;
        damaged.push(bytes);
    }
    damaged.push([&whole[..], b"x"].concat());
    damaged.push(vec![0; 1 << 20]);
    for bytes in damaged {
        fs::write(&path, &bytes).expect("written");
        let error = directory.open("s", "a").map(drop).expect_err("damaged");
        assert_eq!(error.code(), Code::InvalidArgument);
        let shown = path.display().to_string();
        assert!(error.to_string().contains(&shown), "{error}");
        assert_eq!(fs::read(&path).expect("there"), bytes);
    }
    fs::write(&path, &whole).expect("written");
    assert_eq!(directory.open("s", "a").expect("whole").1, saved(3));
}

#[test]
fn the_file_of_another_member_is_refused() {
    let directory = Directory::new("foreign");
    let (a, _) = directory.open("s", "a").expect("opened");
    let (b, _) = directory.open("s", "b").expect("opened");
    a.write(&saved(1)).expect("written");
    fs::copy(a.path(), b.path()).expect("copied");
    drop((a, b));
    let error = directory.open("s", "b").map(drop).expect_err("it is a's");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(
        error.to_string().contains("belongs to \"a\" in \"s\""),
        "{error}"
    );
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let directory = Directory::new("unusable");
    let plain = directory.0.join("plain");
    fs::write(&plain, b"").expect("written");
    for path in [directory.0.join("missing"), plain] {
        let member = (&session_id("s"), &peer_id("a"));
        let roster = roster("a");
        let now = new_incarnation(1);
        let opened = StateFile::open(&path, member, Some(&roster), Strategy::Raft, None, now);
        let error = opened.map(drop).expect_err("no directory");
        assert_eq!(error.code(), Code::InvalidArgument);
        let shown = format!("{:?} cannot be used", path.display().to_string());
        assert!(error.to_string().contains(&shown), "{error}");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

#[test]
fn of_several_states_that_wait_the_newest_is_written_and_confirmed() {
    let directory = Directory::new("newest");
    let (file, _) = directory.open("s", "a").expect("opened");
    runtime().block_on(async {
        let (writer, mut safe) = StateWriter::start(file, saved(0));
        for number in 1..=9 {
            writer.write_strategy(number, saved(number).strategy);
        }
        // The task has not run yet: there is only one thread.
        assert_eq!(safe.recv().await, Some(Stored::Strategy(9)));
        writer.write_log(1, saved(10).log);
        assert_eq!(safe.recv().await, Some(Stored::Log(1)));
        writer.write_log(2, saved(10).log);
        writer.write_strategy(10, saved(10).strategy);
        assert_eq!(safe.recv().await, Some(Stored::Strategy(10)));
        assert_eq!(safe.recv().await, Some(Stored::Log(2)));
        assert!(safe.try_recv().is_err());
    });
    assert_eq!(directory.open("s", "a").expect("closed").1, saved(10));
}

#[test]
fn a_failed_write_is_repeated_and_not_confirmed_before() {
    let directory = Directory::new("retry");
    let (file, _) = directory.open("s", "a").expect("opened");
    // A directory in place of the temporary file: even root cannot write it.
    let in_the_way = file.beside.clone();
    fs::create_dir(&in_the_way).expect("a directory");
    runtime().block_on(async {
        let (writer, mut safe) = StateWriter::start(file, saved(0));
        writer.write_strategy(1, saved(1).strategy);
        let early = tokio::time::timeout(FIRST_RETRY * 2, safe.recv()).await;
        assert!(early.is_err(), "nothing is safe");
        writer.write_strategy(2, saved(2).strategy);
        writer.write_log(1, saved(2).log);
        fs::remove_dir(&in_the_way).expect("empty");
        let mut first = safe.recv().await;
        if first == Some(Stored::Strategy(1)) {
            // The writer was retrying when the path became free.
            first = safe.recv().await;
        }
        assert_eq!(first, Some(Stored::Strategy(2)));
    });
    assert_eq!(directory.open("s", "a").expect("closed").1, saved(2));
}
