//! Persistent state of a strategy (C2, C8): one file for each session and peer.
//!
//! A file (`format`) is replaced as a whole: a new file beside it is written, synced and renamed. It may hold
//! a private key: on Unix only its user may read it, and copies in memory are wiped.

mod format;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use room_transport::identity::{Identity, PrivateKey, generate_private};
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, watch};
use zeroize::Zeroizing;

use super::shared::Shared;
use crate::config::Secret;
use crate::core::id::{Incarnation, PeerId, SessionId};
use crate::core::quorum::Roster;
use crate::core::wire::{Opaque, Strategy};
use crate::error::{ChangedMember, StartError, StateError};
use crate::fork::{self, ClosedInChildren};
pub(super) use format::Kept;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use format::check;
use format::{Content, KeptKey, MAX_FILE_BYTES, Owner, Undecodable, VERSION, decode, encode};

/// First wait before a write is retried; the waits double.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(2);

/// The file of one member, locked for as long as this lives.
pub(super) struct StateFile {
    directory: PathBuf,
    path: PathBuf,
    beside: PathBuf,
    owner: Owner,
    incarnation: Incarnation,
    _lock: Lock,
}

/// Keeps other processes, and other rooms of this process, from running as the same member.
struct Lock {
    file: File,
    _known: ClosedInChildren,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a forked child holds the same lock until it closes its file, too.
        if let Err(error) = self.file.unlock() {
            tracing::debug!(%error, "the state file stays locked until the process ends");
        }
    }
}

impl Lock {
    /// Locks the file with that name in `directory`.
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
    /// Locks and reads the member's file in `directory`, for an incarnation that starts `now`. Returns its
    /// key, and what an earlier incarnation kept; it is empty at a first start. Writes nothing.
    ///
    /// # Errors
    /// [`StartError`]; no lock is held then.
    pub(super) fn open(
        directory: &Path,
        (session, peer): (&SessionId, &PeerId),
        roster: Option<&Roster>,
        strategy: Strategy,
        given: Option<Identity>,
        now: Incarnation,
    ) -> Result<(Self, Identity, Kept), StartError> {
        let name = file_name(session, peer);
        let path = directory.join(format!("{name}.state"));
        let lock = Lock::take(directory, &name)?;
        let content = read(&path, session, peer)?;
        let changed = |change| StateError::Changed {
            path: path.clone(),
            change,
        };
        if let Some(content) = &content {
            same_strategy(&content.owner.strategy, strategy.name()).map_err(changed)?;
            if let Some(roster) = roster {
                same_voters(&content.owner.roster, roster).map_err(changed)?;
            }
        }
        let (kept, incarnation, saved) = match content {
            Some(content) => {
                let incarnation = now.after(content.incarnation);
                (Some(content.owner.key), incarnation, content.kept)
            }
            None => (None, now, Kept::default()),
        };
        let (key, identity) = take_key(kept, given, changed)?;
        let file = Self {
            directory: directory.to_owned(),
            beside: directory.join(format!("{name}.new")),
            owner: Owner {
                session: session.to_string(),
                peer: peer.to_string(),
                roster: roster.map_or_else(String::new, Roster::to_text),
                key,
                strategy: strategy.name().to_owned(),
            },
            incarnation,
            path,
            _lock: lock,
        };
        Ok((file, identity, saved))
    }

    /// The incarnation that holds the file, which is newer than all that held it before.
    pub(super) fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The file's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The error for an intact state that the room's strategy cannot read.
    pub(super) fn not_understood(&self) -> StateError {
        StateError::Damaged {
            path: self.path.clone(),
            what: "its state cannot be understood",
        }
    }

    /// [`StateFile::write`] before the room is open. The next incarnation must be newer than this one, even
    /// if this one never votes. And the host learns of a failing disk before it has a room.
    ///
    /// # Errors
    /// [`StateError`]; the file is unchanged.
    pub(super) fn keep(&self, kept: &Kept) -> Result<(), StateError> {
        self.write(kept).map_err(|source| StateError::Unwritable {
            path: self.path.clone(),
            source,
        })
    }

    /// Replaces what the file keeps. When this returns, it survives a loss of power.
    pub(super) fn write(&self, kept: &Kept) -> io::Result<()> {
        let bytes = encode(&self.owner, self.incarnation, kept)?;
        let mut file = create_private(&self.beside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        drop(file);
        replace(&self.beside, &self.path, &self.directory)
    }
}

/// Creates a file that only this user may read, in place of one that a crash may have left there.
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

/// Renames `from` to `to`, both in `directory`. The rename is on disk when this returns.
#[cfg(not(windows))]
fn replace(from: &Path, to: &Path, directory: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    File::open(directory)?.sync_all()
}

/// Renames a file where directories cannot be synced: uses MOVEFILE_WRITE_THROUGH.
#[cfg(windows)]
fn replace(from: &Path, to: &Path, _directory: &Path) -> io::Result<()> {
    atomicwrites::replace_atomic(from, to)
}

/// The key of this process, and an incarnation that starts `now`. With a state directory also the file of its
/// state, and what that keeps.
pub(super) fn take_member(
    shared: &Shared,
    now: Incarnation,
) -> Result<(Identity, Option<StateFile>, Kept), StartError> {
    let config = &shared.config;
    let given = config.identity_key.as_ref().map(given_identity);
    let given = given.transpose()?;
    let Some(directory) = &config.state_directory else {
        let identity = given.map_or_else(Identity::generate, Ok);
        let identity = identity.map_err(StartError::internal)?;
        return Ok((identity, None, Kept::default()));
    };
    let roster = config.quorum.roster();
    let member = (&shared.session_id, &shared.peer_id);
    let (file, identity, saved) =
        StateFile::open(directory, member, roster, config.strategy, given, now)?;
    match roster.and_then(|roster| roster.key_of(&shared.peer_id)) {
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
    // It must not grow: the buffers that it outgrows would not be wiped.
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

/// Checks that `given` equals the list stored as `kept`.
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

fn same_strategy(kept: &str, given: &'static str) -> Result<(), ChangedMember> {
    if kept == given {
        return Ok(());
    }
    let kept = kept.to_owned();
    Err(ChangedMember::Strategy { given, kept })
}

/// Selects the key of a start with the identity `given` and the stored `kept`, and what to store from now on.
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

/// An incarnation that starts now.
pub(super) fn new_incarnation(random: u64) -> Incarnation {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    Incarnation {
        started_us: since_1970.map_or(0, |since| since.as_micros().try_into().unwrap_or(u64::MAX)),
        random,
    }
}

/// A file name derived from a hash: ids may contain characters that file names must not, and two
/// ids may differ only in case.
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

/// The newest states to store, each with its number.
#[derive(Debug, Clone, Default)]
struct Tasks {
    kept: Kept,
    numbers: Numbers,
}

/// The number of each part's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Numbers {
    strategy: Option<u64>,
    log: Option<u64>,
}

/// A state that is safe on disk, with the number under which it was to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// Of the strategy.
    Strategy(u64),
    /// Of the log.
    Log(u64),
}

/// Writes states to disk, one after the other, off the network thread.
#[derive(Debug)]
pub(super) struct StateWriter {
    newest: watch::Sender<Tasks>,
}

impl StateWriter {
    /// Starts the writer on the current runtime, with the states that `file` has. The receiver yields the states that are
    /// safe.
    pub(super) fn start(file: StateFile, kept: Kept) -> (Self, mpsc::UnboundedReceiver<Stored>) {
        let numbers = Numbers::default();
        let (newest, tasks) = watch::channel(Tasks { kept, numbers });
        // At most one for each requested write.
        let (done, safe) = mpsc::unbounded_channel();
        tokio::spawn(write_all(Arc::new(file), tasks, done));
        (Self { newest }, safe)
    }

    /// Stores the strategy's state, unless a newer one arrives before its turn.
    pub(super) fn write_strategy(&self, number: u64, state: Opaque) {
        self.newest.send_modify(|tasks| {
            tasks.kept.strategy = state;
            tasks.numbers.strategy = Some(number);
        });
    }

    /// Stores the log's state, unless a newer one arrives before its turn.
    pub(super) fn write_log(&self, number: u64, state: Opaque) {
        self.newest.send_modify(|tasks| {
            tasks.kept.log = state;
            tasks.numbers.log = Some(number);
        });
    }
}

/// Writes states. Of several that wait it writes only the newest. It retries a failed write.
async fn write_all(
    file: Arc<StateFile>,
    mut tasks: watch::Receiver<Tasks>,
    done: mpsc::UnboundedSender<Stored>,
) {
    let mut retry = FIRST_RETRY;
    let mut stored = Numbers::default();
    while tasks.changed().await.is_ok() {
        loop {
            let Tasks { kept, numbers } = tasks.borrow_and_update().clone();
            let at = Arc::clone(&file);
            let written = tokio::task::spawn_blocking(move || at.write(&kept)).await;
            match written.unwrap_or_else(|failed| Err(io::Error::other(failed))) {
                Ok(()) => {
                    if retry > FIRST_RETRY {
                        tracing::info!(path = %file.path().display(), "the state is written again");
                    }
                    retry = FIRST_RETRY;
                    let before = std::mem::replace(&mut stored, numbers);
                    let strategy = numbers
                        .strategy
                        .filter(|_| numbers.strategy != before.strategy);
                    let log = numbers.log.filter(|_| numbers.log != before.log);
                    let safe = [strategy.map(Stored::Strategy), log.map(Stored::Log)];
                    for safe in safe.into_iter().flatten() {
                        // Fails only after the room is closed.
                        let _ = done.send(safe);
                    }
                    break;
                }
                Err(error) => {
                    let path = file.path().display();
                    tracing::error!(%path, %error, "the state could not be written; until it is, this member neither votes nor stands for election: free disk space, or let this program write there");
                    tokio::time::sleep(retry).await;
                    retry = (retry * 2).min(LAST_RETRY);
                }
            }
        }
    }
}
