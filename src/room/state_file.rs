//! What a static quorum keeps where it survives the process (C2, C8): one file for each session and peer.
//!
//! A file is `MMNSTATE`, a version, the length of what follows, that (postcard: whose it is ([`Owner`]) and [`Saved`]),
//! and the SHA-256 of all before it. It is replaced whole: written beside, brought to the disk, renamed. It may hold a
//! private key: on Unix nobody else may read it, and what was in memory of it is wiped.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, watch};
use zeroize::Zeroizing;

use super::shared::Shared;
use crate::config::Secret;
use crate::core::election::record::Saved;
use crate::core::id::{Fingerprint, Incarnation, PeerId, SessionId};
use crate::core::quorum::Roster;
use crate::error::{ChangedMember, StartError, StateError};
use crate::fork::{self, ClosedInChildren};
use crate::net::identity::{Identity, PrivateKey, generate_private};

const MAGIC: &[u8; 8] = b"MMNSTATE";
const VERSION: u32 = 2;
const HEADER_BYTES: usize = MAGIC.len() + 4 + 4;
const DIGEST_BYTES: usize = 32;
/// Far more than a roster, and what is known of its voters, need; no other file is read whole.
const MAX_FILE_BYTES: usize = 32 * 1024;
/// Waits between attempts to write; they double.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(2);

/// A whole file; [`encode`] writes it from references.
#[derive(Serialize, Deserialize)]
struct Content {
    owner: Owner,
    saved: Saved,
}

/// Whose file it is: what no start of the member may change within the session.
#[derive(Serialize, Deserialize)]
struct Owner {
    session: String,
    peer: String,
    /// As [`Roster::parse`] reads it.
    roster: String,
    key: KeptKey,
}

/// The key of the member. The other voters know it by that.
#[derive(Serialize, Deserialize)]
enum KeptKey {
    /// The library made it at the first start.
    Made(PrivateKey),
    /// The host gives it at each start, and keeps it.
    Given(Fingerprint),
}

/// The file of one member. Nobody else has it for as long as this lives.
pub(super) struct StateFile {
    directory: PathBuf,
    path: PathBuf,
    beside: PathBuf,
    owner: Owner,
    _lock: Lock,
}

/// Keeps other processes, and other rooms of this one, from being the same member.
struct Lock {
    file: File,
    _known: ClosedInChildren,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // To close it is not enough: a child that was forked has the same lock, until it has closed it, too.
        if let Err(error) = self.file.unlock() {
            tracing::debug!(%error, "the state file stays locked until the process ends");
        }
    }
}

impl Lock {
    /// Locks the file of that name in `directory`.
    fn take(directory: &Path, name: &str) -> Result<Self, StateError> {
        let unusable = |source| StateError::Directory {
            path: directory.to_owned(),
            source,
        };
        if !fs::metadata(directory).map_err(unusable)?.is_dir() {
            return Err(unusable(io::ErrorKind::NotADirectory.into()));
        }
        let path = directory.join(format!("{name}.lock"));
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => Ok(Self {
                _known: fork::closed_in_children(&file),
                file,
            }),
            Err(TryLockError::WouldBlock) => Err(StateError::InUse { path }),
            Err(TryLockError::Error(source)) => Err(unusable(source)),
        }
    }
}

impl StateFile {
    /// Takes the member's file in `directory`. Gives its key, and what an earlier incarnation kept there; `None` is a first
    /// start. Nothing is written.
    ///
    /// # Errors
    /// [`StartError`]; nothing is kept locked then.
    pub(super) fn open(
        directory: &Path,
        (session, peer): (&SessionId, &PeerId),
        roster: &Roster,
        given: Option<Identity>,
    ) -> Result<(Self, Identity, Option<Saved>), StartError> {
        let name = file_name(session, peer);
        let path = directory.join(format!("{name}.state"));
        let lock = Lock::take(directory, &name)?;
        let content = read(&path, session, peer)?;
        let changed = |change| StateError::Changed {
            path: path.clone(),
            change,
        };
        if let Some(content) = &content {
            same_voters(&content.owner.roster, roster).map_err(changed)?;
        }
        let (kept, saved) = match content {
            Some(content) => (Some(content.owner.key), Some(content.saved)),
            None => (None, None),
        };
        let (key, identity) = take_key(kept, given, changed)?;
        let file = Self {
            directory: directory.to_owned(),
            beside: directory.join(format!("{name}.new")),
            owner: Owner {
                session: session.to_string(),
                peer: peer.to_string(),
                roster: roster.to_text(),
                key,
            },
            path,
            _lock: lock,
        };
        Ok((file, identity, saved))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// As [`StateFile::write`], before the room is open: the next incarnation must be newer than this one, even if this one never
    /// votes. And a disk that takes nothing is told to the host before it has a room.
    ///
    /// # Errors
    /// [`StateError`]; the file is as it was.
    pub(super) fn keep(&self, saved: &Saved) -> Result<(), StateError> {
        self.write(saved).map_err(|source| StateError::Unwritable {
            path: self.path.clone(),
            source,
        })
    }

    /// Replaces what is kept. When this returns, it survives a loss of power.
    pub(super) fn write(&self, saved: &Saved) -> io::Result<()> {
        let bytes = encode(&self.owner, saved)?;
        let mut file = create_private(&self.beside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        drop(file);
        replace(&self.beside, &self.path, &self.directory)
    }
}

/// A new file that only this user may read, in the place of what a crash may have left there.
fn create_private(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Renames `from` to `to`, both in `directory`. The rename is on the disk when this returns.
#[cfg(not(windows))]
fn replace(from: &Path, to: &Path, directory: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    File::open(directory)?.sync_all()
}

/// The same where no directory can be brought to the disk: by MOVEFILE_WRITE_THROUGH.
#[cfg(windows)]
fn replace(from: &Path, to: &Path, _directory: &Path) -> io::Result<()> {
    atomicwrites::replace_atomic(from, to)
}

/// The key of this process; and where the quorum is static, the file in which it keeps its state, and what is in it.
pub(super) fn take_member(
    shared: &Shared,
) -> Result<(Identity, Option<StateFile>, Option<Saved>), StartError> {
    let config = &shared.config;
    let given = config.identity_key.as_ref().map(given_identity);
    let given = given.transpose()?;
    let (Some(directory), Some(roster)) = (&config.state_directory, config.quorum.roster()) else {
        let identity = given.map_or_else(Identity::generate, Ok);
        return Ok((identity.map_err(StartError::internal)?, None, None));
    };
    let member = (&shared.session_id, &shared.peer_id);
    let (file, identity, saved) = StateFile::open(directory, member, roster, given)?;
    match roster.key_of(&shared.peer_id) {
        Some(fixed) if fixed != identity.fingerprint() => Err(StartError::RosterKey {
            peer: shared.peer_id.clone(),
            fixed,
            own: identity.fingerprint(),
        }),
        _ => Ok((identity, Some(file), saved)),
    }
}

fn given_identity(key: &Secret) -> Result<Identity, StartError> {
    Identity::from_pkcs8(key.bytes()).map_err(|error| StartError::IdentityKey {
        len: key.bytes().len(),
        reason: error.to_string(),
    })
}

fn read(path: &Path, session: &SessionId, peer: &PeerId) -> Result<Option<Content>, StateError> {
    let unreadable = |source| StateError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    // It never grows: what it grew out of would not be wiped.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * MAX_FILE_BYTES));
    file.take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    let content = decode(&bytes).map_err(|error| match error {
        Undecodable::Version(version) => StateError::OtherVersion {
            path: path.to_owned(),
            version,
            readable: VERSION,
        },
        Undecodable::Damaged(what) => StateError::Damaged {
            path: path.to_owned(),
            what,
        },
    })?;
    let owner = &content.owner;
    if (owner.session.as_str(), owner.peer.as_str()) != (session.as_str(), peer.as_str()) {
        return Err(StateError::Foreign {
            path: path.to_owned(),
            session: content.owner.session,
            peer: content.owner.peer,
        });
    }
    Ok(Some(content))
}

/// Whether `given` is the list that was kept as `kept`.
fn same_voters(kept: &str, given: &Roster) -> Result<(), ChangedMember> {
    let kept = Roster::parse(kept).ok();
    if kept.as_ref() == Some(given) {
        return Ok(());
    }
    let (before, now) = (
        kept.as_ref().map(Roster::electorate).unwrap_or_default(),
        given.electorate(),
    );
    let difference = |of: &BTreeSet<PeerId>, without: &BTreeSet<PeerId>| {
        of.difference(without).cloned().collect()
    };
    let key_before = |voter: &PeerId| kept.as_ref().and_then(|kept| kept.key_of(voter));
    Err(ChangedMember::Roster {
        added: difference(&now, &before),
        removed: difference(&before, &now),
        rekeyed: before
            .intersection(&now)
            .filter(|voter| key_before(voter) != given.key_of(voter))
            .cloned()
            .collect(),
    })
}

/// The key of a start with the identity `given`, where an earlier one kept `kept`, and what is kept of it now.
fn take_key(
    kept: Option<KeptKey>,
    given: Option<Identity>,
    changed: impl Fn(ChangedMember) -> StateError,
) -> Result<(KeptKey, Identity), StartError> {
    match (kept, given) {
        (None, None) => own_key(generate_private().map_err(StartError::internal)?),
        (Some(KeptKey::Made(private)), None) => own_key(private),
        (Some(KeptKey::Given(kept)), None) => {
            Err(changed(ChangedMember::KeyMissing { kept }).into())
        }
        (None, Some(identity)) => Ok((KeptKey::Given(identity.fingerprint()), identity)),
        (Some(kept), Some(identity)) => {
            let made_here = matches!(kept, KeptKey::Made(_));
            let kept = match kept {
                KeptKey::Made(private) => own_key(private)?.1.fingerprint(),
                KeptKey::Given(kept) => kept,
            };
            let given = identity.fingerprint();
            if given != kept {
                let change = ChangedMember::Key {
                    given,
                    kept,
                    made_here,
                };
                return Err(changed(change).into());
            }
            Ok((KeptKey::Given(given), identity))
        }
    }
}

fn own_key(private: PrivateKey) -> Result<(KeptKey, Identity), StartError> {
    let identity = Identity::from_private(&private).map_err(StartError::internal)?;
    Ok((KeptKey::Made(private), identity))
}

/// The name of an incarnation that starts now.
pub(super) fn new_incarnation(random: u64) -> Incarnation {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    Incarnation {
        started_us: since_1970.map_or(0, |since| since.as_micros().try_into().unwrap_or(u64::MAX)),
        random,
    }
}

/// Ids may hold what no file name may, and two of them may differ in case alone.
fn file_name(session: &SessionId, peer: &PeerId) -> String {
    let mut hash = Sha256::new();
    for id in [session.as_str(), peer.as_str()] {
        hash.update((id.len() as u64).to_le_bytes());
        hash.update(id);
    }
    let mut name = String::from("mmn-");
    for byte in &hash.finalize()[..16] {
        // Writing to a string does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

fn encode(owner: &Owner, saved: &Saved) -> io::Result<Zeroizing<Vec<u8>>> {
    // Of its full length at once: what it grew out of would not be wiped.
    let mut bytes = Zeroizing::new(vec![0; MAX_FILE_BYTES]);
    let room = &mut bytes[HEADER_BYTES..MAX_FILE_BYTES - DIGEST_BYTES];
    let body = postcard::to_slice(&(owner, saved), room).map_err(io::Error::other)?;
    let len = body.len();
    sign(&mut bytes, len)?;
    Ok(bytes)
}

/// Writes what stands around a body of `len` bytes, and cuts off the rest.
fn sign(bytes: &mut Vec<u8>, len: usize) -> io::Result<()> {
    let header = [
        &MAGIC[..],
        &VERSION.to_le_bytes(),
        &u32::try_from(len).map_err(io::Error::other)?.to_le_bytes(),
    ]
    .concat();
    bytes[..HEADER_BYTES].copy_from_slice(&header);
    bytes.truncate(HEADER_BYTES + len);
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    Ok(())
}

/// Why a file is no state.
#[derive(Debug, PartialEq, Eq)]
enum Undecodable {
    /// Another version of the library wrote it.
    Version(u32),
    /// It is not as it was written.
    Damaged(&'static str),
}

fn decode(bytes: &[u8]) -> Result<Content, Undecodable> {
    use Undecodable::{Damaged, Version};
    let Some((header, rest)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(Damaged("it is cut off"));
    };
    let (magic, numbers) = header.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(Damaged("it is no state file"));
    }
    let number = |at: usize| {
        let bytes = [
            numbers[at],
            numbers[at + 1],
            numbers[at + 2],
            numbers[at + 3],
        ];
        u32::from_le_bytes(bytes)
    };
    if number(0) != VERSION {
        return Err(Version(number(0)));
    }
    if u64::from(number(4)) + DIGEST_BYTES as u64 != rest.len() as u64 {
        return Err(Damaged("its length is not what it says"));
    }
    let (signed, digest) = bytes.split_at(bytes.len() - DIGEST_BYTES);
    if Sha256::digest(signed).as_slice() != digest {
        return Err(Damaged("its checksum does not fit"));
    }
    let content: Content = postcard::from_bytes(&signed[HEADER_BYTES..])
        .map_err(|_| Damaged("its content cannot be understood"))?;
    match Roster::parse(&content.owner.roster) {
        Ok(_) => Ok(content),
        Err(_) => Err(Damaged("its roster cannot be understood")),
    }
}

/// A fuzz target: any file is refused or understood, and what is understood is written as the same.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check(bytes: &[u8]) {
    fn understood(bytes: &[u8]) {
        if let Ok(content) = decode(bytes) {
            let again = encode(&content.owner, &content.saved).expect("short");
            let second = decode(&again).expect("just written");
            assert_eq!(encode(&second.owner, &second.saved).expect("short"), again);
        }
    }
    if bytes.len() > MAX_FILE_BYTES - HEADER_BYTES - DIGEST_BYTES {
        return; // no more is read
    }
    understood(bytes);
    // Nobody hits a checksum by chance: as the body of a file that is otherwise right.
    let len = u32::try_from(bytes.len()).expect("short");
    let mut file = [
        &MAGIC[..],
        &VERSION.to_le_bytes(),
        &len.to_le_bytes(),
        bytes,
    ]
    .concat();
    let digest = Sha256::digest(&file);
    file.extend_from_slice(&digest);
    understood(&file);
}

/// What is to be kept, with the number under which the core asked for it.
type Task = (u64, Saved);

/// Brings states to the disk, one after the other, off the network thread.
#[derive(Debug)]
pub(super) struct StateWriter {
    newest: watch::Sender<Option<Task>>,
}

impl StateWriter {
    /// Starts on the current runtime. The numbers of what is safe come out of the receiver.
    pub(super) fn start(file: StateFile) -> (Self, mpsc::UnboundedReceiver<u64>) {
        let (newest, tasks) = watch::channel(None);
        // One number for every write that was asked for, at most.
        let (done, safe) = mpsc::unbounded_channel();
        tokio::spawn(write_all(Arc::new(file), tasks, done));
        (Self { newest }, safe)
    }

    /// Keeps `saved`, unless something newer comes before its turn.
    pub(super) fn write(&self, number: u64, saved: Saved) {
        // The task lives as long as the sender.
        let _ = self.newest.send(Some((number, saved)));
    }
}

/// Of several that wait, only the newest is written. What cannot be written is tried again.
async fn write_all(
    file: Arc<StateFile>,
    mut tasks: watch::Receiver<Option<Task>>,
    done: mpsc::UnboundedSender<u64>,
) {
    let mut retry = FIRST_RETRY;
    while tasks.changed().await.is_ok() {
        loop {
            let Some((number, saved)) = tasks.borrow_and_update().clone() else {
                break;
            };
            let at = Arc::clone(&file);
            let written = tokio::task::spawn_blocking(move || at.write(&saved)).await;
            match written.unwrap_or_else(|failed| Err(io::Error::other(failed))) {
                Ok(()) => {
                    if retry > FIRST_RETRY {
                        tracing::info!(path = %file.path().display(), "the state is written again");
                    }
                    retry = FIRST_RETRY;
                    // Nobody listens any more: the room is closed.
                    let _ = done.send(number);
                    break;
                }
                Err(error) => {
                    let path = file.path().display();
                    tracing::error!(%path, %error, "the state could not be written: until it is, this member neither votes nor stands for election; free the disk or give the right to write there");
                    tokio::time::sleep(retry).await;
                    retry = (retry * 2).min(LAST_RETRY);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::core::election::record::{Epoch, KnownVoter, Record, Stamp};
    use crate::error::{Code, Coded};

    /// A directory of its own for each test.
    struct Directory(PathBuf);

    impl Directory {
        fn new(test: &str) -> Self {
            let name = format!("mmn-state-{}-{test}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).expect("a directory");
            Self(path)
        }

        fn open(
            &self,
            session: &str,
            peer: &str,
        ) -> Result<(StateFile, Option<Saved>), StartError> {
            let member = (&session_id(session), &peer_id(peer));
            let (file, _, saved) = StateFile::open(&self.0, member, &roster("a\nb\nc"), None)?;
            Ok((file, saved))
        }

        /// Opens the file of "a" in "s" with this roster and key, and writes it; gives the key.
        fn start(&self, voters: &str, given: Option<&Identity>) -> Result<Fingerprint, StartError> {
            let member = (&session_id("s"), &peer_id("a"));
            let given = given.cloned();
            let (file, identity, _) = StateFile::open(&self.0, member, &roster(voters), given)?;
            file.keep(&saved(1))?;
            Ok(identity.fingerprint())
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

    fn saved(term: u64) -> Saved {
        let known = KnownVoter {
            key: Fingerprint([9; 32]),
            incarnation: Incarnation {
                started_us: 5,
                random: 6,
            },
            writes: 8,
        };
        let epoch = Epoch {
            override_seq: 2,
            assigner: Some(peer_id("琪露诺")),
        };
        Saved {
            incarnation: Incarnation {
                started_us: 7,
                random: u64::MAX,
            },
            writes: term,
            forgotten: Some(3),
            record: Record {
                stamp: Stamp { epoch, term },
                leader: Some(peer_id("b")),
                assigned: true,
            },
            voted_for: Some(peer_id("c")),
            others: BTreeMap::from([(peer_id("b"), known)]),
        }
    }

    #[test]
    fn what_was_written_is_there_after_a_restart() {
        let directory = Directory::new("restart");
        let (file, found) = directory.open("tea/..\\", "a:b*").expect("a first start");
        assert_eq!(found, None);
        file.write(&saved(1)).expect("written");
        file.write(&saved(2)).expect("written");
        drop(file);
        let (file, found) = directory.open("tea/..\\", "a:b*").expect("a restart");
        assert_eq!(found, Some(saved(2)));
        let names: Vec<_> = fs::read_dir(&directory.0)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names.len(), 2, "the state and the lock: {names:?}");
        drop(file);
    }

    #[test]
    fn each_life_is_newer_than_the_one_before_it_whatever_the_clock_says() {
        let directory = Directory::new("lives");
        let future = Incarnation {
            started_us: u64::MAX / 2,
            random: 9,
        };
        let (file, _) = directory.open("s", "a").expect("opened");
        let before = Saved {
            incarnation: future,
            ..saved(4)
        };
        file.keep(&before).expect("written");
        drop(file);
        let (_, found) = directory.open("s", "a").expect("a restart");
        assert_eq!(
            found.as_ref(),
            Some(&before),
            "term and vote are as they were"
        );
        let first = new_incarnation(3);
        assert!(first.started_us > 1_600_000_000_000_000, "{first:?}");
        let next = Saved::of_next_incarnation(found, first).incarnation;
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
            ..saved(u64::MAX)
        };
        let directory = Directory::new("largest");
        let member = (&session_id(&"s".repeat(128)), &peer_id(&id(0)));
        let roster = roster(&lines.join("\n"));
        let open = || StateFile::open(&directory.0, member, &roster, None);
        let (file, _, _) = open().expect("a first start");
        file.keep(&whole).expect("it fits");
        drop(file);
        assert_eq!(open().expect("a restart").2, Some(whole));
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
            "identity_key is not that of the state file",
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

    /// A fingerprint as the sentences show it.
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
        for (voters, says) in [
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
                says,
                "another session id",
                "removed while none of them runs",
            ] {
                assert!(error.contains(part), "{part} is not in {error}");
            }
        }
        directory.start(&first, None).expect("a restart");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_read_the_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = Directory::new("mode");
        let (file, _) = directory.open("s", "a").expect("opened");
        // What a crash left behind has the rights that it has.
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
        for (version, says) in [(1, "an older one wrote it, without a roster"), (3, "newer")] {
            bytes[MAGIC.len()] = version;
            fs::write(&path, &bytes).expect("written");
            let error = directory.start("a", None).expect_err("another version");
            assert_eq!(error.code(), Code::InvalidArgument);
            let error = error.to_string();
            let version = format!("is of version {version}, and this library reads version 2");
            assert!(error.contains(&version) && error.contains(says), "{error}");
        }
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
                assert_eq!(found, None);
                file.write(&saved(term)).expect("written");
                file
            })
            .collect();
        drop(files);
        for ((session, peer), term) in ids.iter().zip(1..) {
            let (_, found) = directory.open(session, peer).expect("a restart");
            assert_eq!(found, Some(saved(term)));
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
        assert_eq!(directory.open("s", "a").expect("whole").1, Some(saved(3)));
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
        assert!(error.to_string().contains("of \"a\" in \"s\""), "{error}");
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_named() {
        let directory = Directory::new("unusable");
        let plain = directory.0.join("plain");
        fs::write(&plain, b"").expect("written");
        for path in [directory.0.join("missing"), plain] {
            let member = (&session_id("s"), &peer_id("a"));
            let opened = StateFile::open(&path, member, &roster("a"), None);
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
            let (writer, mut safe) = StateWriter::start(file);
            for number in 1..=9 {
                writer.write(number, saved(number));
            }
            // The task has not run yet: there is one thread.
            assert_eq!(safe.recv().await, Some(9));
            writer.write(10, saved(10));
            assert_eq!(safe.recv().await, Some(10));
            assert!(safe.try_recv().is_err());
        });
        assert_eq!(directory.open("s", "a").expect("closed").1, Some(saved(10)));
    }

    #[test]
    fn what_cannot_be_written_is_tried_again_and_not_confirmed_before() {
        let directory = Directory::new("retry");
        let (file, _) = directory.open("s", "a").expect("opened");
        // A directory in the place of the file beside: even root cannot write it.
        let in_the_way = file.beside.clone();
        fs::create_dir(&in_the_way).expect("a directory");
        runtime().block_on(async {
            let (writer, mut safe) = StateWriter::start(file);
            writer.write(1, saved(1));
            let early = tokio::time::timeout(FIRST_RETRY * 2, safe.recv()).await;
            assert!(early.is_err(), "nothing is safe");
            writer.write(2, saved(2));
            fs::remove_dir(&in_the_way).expect("empty");
            assert_eq!(safe.recv().await, Some(2));
        });
        assert_eq!(directory.open("s", "a").expect("closed").1, Some(saved(2)));
    }
}
