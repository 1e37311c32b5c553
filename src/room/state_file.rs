//! What a static quorum keeps where it survives the process (C8): one file for each session and peer.
//!
//! A file is `MMNSTATE`, a version, the length of what follows, that (postcard: session, peer, [`Saved`]), and the
//! SHA-256 of all before it. It is replaced whole: written beside, brought to the disk, renamed.

use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, watch};

use super::Shared;
use crate::core::election::record::Saved;
use crate::core::id::{Incarnation, PeerId, SessionId};
use crate::error::{StartError, StateError};
use crate::fork::{self, ClosedInChildren};

const MAGIC: &[u8; 8] = b"MMNSTATE";
const VERSION: u32 = 2;
const HEADER_BYTES: usize = MAGIC.len() + 4 + 4;
const DIGEST_BYTES: usize = 32;
/// Far more than ids and counters need; no other file is read whole.
const MAX_FILE_BYTES: u64 = 16 * 1024;
/// Waits between attempts to write; they double.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    session: String,
    peer: String,
    saved: Saved,
}

/// The file of one member. Nobody else has it for as long as this lives.
#[derive(Debug)]
pub(super) struct StateFile {
    directory: PathBuf,
    path: PathBuf,
    beside: PathBuf,
    session: SessionId,
    peer: PeerId,
    /// Locked until this is dropped.
    lock: File,
    _known: ClosedInChildren,
}

impl Drop for StateFile {
    fn drop(&mut self) {
        // To close it is not enough: a child that was forked has the same lock, until it has closed it, too.
        if let Err(error) = self.lock.unlock() {
            tracing::debug!(%error, "the state file stays locked until the process ends");
        }
    }
}

impl StateFile {
    /// Takes the member's file in `directory`, and gives what an earlier life kept there; `None` is a first start.
    ///
    /// # Errors
    /// [`StateError`]; nothing is kept locked then.
    pub(super) fn open(
        directory: &Path,
        session: &SessionId,
        peer: &PeerId,
    ) -> Result<(Self, Option<Saved>), StateError> {
        let unusable = |source| StateError::Directory {
            path: directory.to_owned(),
            source,
        };
        if !fs::metadata(directory).map_err(unusable)?.is_dir() {
            return Err(unusable(io::ErrorKind::NotADirectory.into()));
        }
        let name = file_name(session, peer);
        let path = directory.join(format!("{name}.state"));
        let lock_path = directory.join(format!("{name}.lock"));
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StateError::InUse { path: lock_path }),
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        let file = Self {
            directory: directory.to_owned(),
            beside: directory.join(format!("{name}.new")),
            path,
            session: session.clone(),
            peer: peer.clone(),
            _known: fork::closed_in_children(&lock),
            lock,
        };
        let saved = file.read()?;
        Ok((file, saved))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self) -> Result<Option<Saved>, StateError> {
        let unreadable = |source| StateError::Unreadable {
            path: self.path.clone(),
            source,
        };
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        let damaged = |what| StateError::Damaged {
            path: self.path.clone(),
            what,
        };
        let content = decode(&bytes).map_err(damaged)?;
        if (content.session.as_str(), content.peer.as_str())
            != (self.session.as_str(), self.peer.as_str())
        {
            return Err(StateError::Foreign {
                path: self.path.clone(),
                session: content.session,
                peer: content.peer,
            });
        }
        Ok(Some(content.saved))
    }

    /// The same before the room is open: the next incarnation must be newer than this one, even if this one never
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
        let bytes = encode(&Content {
            session: self.session.to_string(),
            peer: self.peer.to_string(),
            saved: saved.clone(),
        })?;
        let mut file = File::create(&self.beside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&self.beside, &self.path)?;
        // The rename itself is on the disk with the directory. Other systems cannot open one, and need not.
        #[cfg(unix)]
        File::open(&self.directory)?.sync_all()?;
        Ok(())
    }
}

/// The file in which a static quorum keeps its state, and what is in it.
pub(super) fn take_state(
    shared: &Shared,
) -> Result<(Option<StateFile>, Option<Saved>), StartError> {
    let Some(directory) = &shared.config.state_directory else {
        return Ok((None, None));
    };
    let (file, saved) = StateFile::open(directory, &shared.session_id, &shared.peer_id)?;
    Ok((Some(file), saved))
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

fn encode(content: &Content) -> io::Result<Vec<u8>> {
    let body = postcard::to_allocvec(content).map_err(io::Error::other)?;
    let len = u32::try_from(body.len()).map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len() + DIGEST_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(&body);
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Result<Content, &'static str> {
    let Some((header, rest)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err("it is cut off");
    };
    let (magic, numbers) = header.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err("it is no state file");
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
        return Err("another version of the library wrote it");
    }
    if u64::from(number(4)) + DIGEST_BYTES as u64 != rest.len() as u64 {
        return Err("its length is not what it says");
    }
    let (signed, digest) = bytes.split_at(bytes.len() - DIGEST_BYTES);
    if Sha256::digest(signed).as_slice() != digest {
        return Err("its checksum does not fit");
    }
    postcard::from_bytes(&signed[HEADER_BYTES..]).map_err(|_| "its content cannot be understood")
}

/// A fuzz target: any file is refused or understood, and what is understood is written as the same.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check(bytes: &[u8]) {
    fn understood(bytes: &[u8]) {
        if let Ok(content) = decode(bytes) {
            let again = encode(&content).expect("short");
            let second = decode(&again).expect("just written");
            assert_eq!(encode(&second).expect("short"), again);
        }
    }
    if bytes.len() > usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX) {
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
    use super::*;
    use crate::core::election::record::{Epoch, Stamp};
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
        ) -> Result<(StateFile, Option<Saved>), StateError> {
            StateFile::open(&self.0, &session_id(session), &peer_id(peer))
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

    fn saved(term: u64) -> Saved {
        let epoch = Epoch {
            override_seq: 2,
            assigner: Some(peer_id("琪露诺")),
        };
        Saved {
            incarnation: Incarnation {
                started_us: 7,
                random: u64::MAX,
            },
            record: Record {
                stamp: Stamp { epoch, term },
                leader: Some(peer_id("b")),
                assigned: true,
            },
            voted_for: Some(peer_id("c")),
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
        file.keep_incarnation(Some(&before), future)
            .expect("written");
        drop(file);
        let (_, found) = directory.open("s", "a").expect("a restart");
        assert_eq!(
            found.as_ref(),
            Some(&before),
            "term and vote are as they were"
        );
        let next = new_incarnation(found.as_ref(), 3);
        assert!(next > future, "{next:?}");
        let first = new_incarnation(None, 3);
        assert!(first.started_us > 1_600_000_000_000_000, "{first:?}");
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
        let error = directory.open("s", "a").expect_err("it is in use");
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
            let error = directory.open("s", "a").expect_err("damaged");
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
        let error = directory.open("s", "b").expect_err("it is a's");
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.to_string().contains("of \"a\" in \"s\""), "{error}");
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_named() {
        let directory = Directory::new("unusable");
        let plain = directory.0.join("plain");
        fs::write(&plain, b"").expect("written");
        for path in [directory.0.join("missing"), plain] {
            let error =
                StateFile::open(&path, &session_id("s"), &peer_id("a")).expect_err("no directory");
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
