//! Errors of the file in which a static quorum keeps its state.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{Code, Coded};
use crate::core::id::{Fingerprint, PeerId};
use crate::quoted::{PeerNames, Quoted};

/// Why a member did not get its state. It then has no room: without its state it could vote twice in a term.
#[derive(Debug, Error)]
pub enum StateError {
    /// There is no such directory, or this process may not use it.
    #[error(
        "state_directory {} cannot be used ({source}); give an existing directory in which this program may write",
        shown(path)
    )]
    Directory {
        /// The directory given.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// Another process, or another room of this one, runs as the same member.
    #[error(
        "the state file {path:?} is locked: another process runs as this member of this session; end that process, or use another peer id"
    )]
    InUse {
        /// The lock file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("the state file {path:?} cannot be read ({source}); let this program read it")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error(
        "the state file {path:?} cannot be written ({source}); free disk space, or let this program write it"
    )]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The file is corrupt.
    #[error(
        "the state file {path:?} is damaged: {what}; use another session id, or stop all members of the session and remove all their state files before they start again. Do not restore an older copy: it has forgotten votes"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Its fault.
        what: &'static str,
    },
    /// Another version of the library wrote the file.
    #[error(
        "the state file {path:?} has version {version}, and this library reads version {readable}; {}",
        if version < readable {
            "an older library wrote it, without a roster: use another session id, or stop all members of the session and remove all their state files before they start again"
        } else {
            "start this member with the newer library"
        }
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The version that this library reads.
        readable: u32,
    },
    /// The settings of this start differ from those of the first.
    #[error("{change} (the state file is {path:?})")]
    Changed {
        /// The file.
        path: PathBuf,
        /// The changed setting.
        change: ChangedMember,
    },
    /// Another member wrote the file.
    #[error(
        "the state file {path:?} belongs to {} in {}; restore this member's own, or stop all members of the session and remove it before they start again",
        Quoted(peer),
        Quoted(session)
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The session id in it.
        session: String,
        /// The peer id in it.
        peer: String,
    },
}

/// Why a member's settings contradict its state file: no start may change these within a session.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChangedMember {
    /// Different voters.
    #[error(
        "quorum_roster differs from the state file: {}; to change the voters, use another session id, or remove the state files of all members while none of them runs",
        changes(added, removed, rekeyed)
    )]
    Roster {
        /// Voters that only the settings name.
        added: Vec<PeerId>,
        /// Voters that only the file names.
        removed: Vec<PeerId>,
        /// Voters in both with different fingerprints.
        rekeyed: Vec<PeerId>,
    },
    /// Another election strategy, for which the file's votes have no meaning.
    #[error(
        "strategy is {given}, but the state file belongs to the strategy {}; to change the strategy, use another session id, or remove the state files of all members while none of them runs",
        Quoted(kept)
    )]
    Strategy {
        /// The strategy of this start.
        given: &'static str,
        /// The strategy of the file.
        kept: String,
    },
    /// A key that differs from the file's.
    #[error(
        "identity_key is not the one in the state file: its fingerprint is {}, and this member's is {}. The other voters know this member by its key: give that one{}, or use another session id",
        given,
        kept,
        if *made_here { " (NULL: the file holds it)" } else { "" }
    )]
    Key {
        /// The key given.
        given: Fingerprint,
        /// The key of the file.
        kept: Fingerprint,
        /// Whether the library made the key of the file.
        made_here: bool,
    },
    /// No key, though the host passed one at an earlier start and the file holds none.
    #[error(
        "identity_key is NULL, and the state file holds only the fingerprint of the key that was given at the first start: {}; give that key again, or use another session id",
        kept
    )]
    KeyMissing {
        /// The fingerprint in the file.
        kept: Fingerprint,
    },
}

/// The differences between two rosters, in words.
fn changes(added: &[PeerId], removed: &[PeerId], rekeyed: &[PeerId]) -> String {
    let parts = [
        ("it adds", added),
        ("it lacks", removed),
        ("it has another fingerprint for", rekeyed),
    ];
    let parts = parts.iter().filter(|(_, voters)| !voters.is_empty());
    let parts: Vec<_> = parts
        .map(|(what, voters)| format!("{what} {}", PeerNames(voters)))
        .collect();
    parts.join(", ")
}

/// The path, quoted as other arguments of the caller.
fn shown(path: &Path) -> String {
    Quoted(&path.to_string_lossy()).to_string()
}

impl Coded for StateError {
    fn code(&self) -> Code {
        match self {
            Self::InUse { .. } => Code::DuplicatePeerId,
            Self::Directory { .. }
            | Self::Unreadable { .. }
            | Self::Unwritable { .. }
            | Self::Damaged { .. }
            | Self::OtherVersion { .. }
            | Self::Changed { .. }
            | Self::Foreign { .. } => Code::InvalidArgument,
        }
    }
}
