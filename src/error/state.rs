//! What can go wrong with the file in which a static quorum keeps its state.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{Code, Coded};
use crate::core::id::{Fingerprint, PeerId};
use crate::quoted::{PeerNames, Quoted};

/// Why a member did not get its state. It has no room then: without its state it could vote twice in a term.
#[derive(Debug, Error)]
pub enum StateError {
    /// The directory is none, or may not be used.
    #[error(
        "state_directory {} cannot be used ({source}); give an existing directory in which this program may write",
        shown(path)
    )]
    Directory {
        /// The directory given.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Another process, or another room of this one, is the same member.
    #[error(
        "the state file {path:?} is locked: another process runs as this member of this session; end that process, or use another peer id"
    )]
    InUse {
        /// The lock.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("the state file {path:?} cannot be read ({source}); let this program read it")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error(
        "the state file {path:?} cannot be written ({source}); free disk space, or let this program write it"
    )]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is not as it was written.
    #[error(
        "the state file {path:?} is damaged: {what}; use another session id, or stop all members of the session and remove all their state files before they start again. Do not restore an older copy: it has forgotten votes"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
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
    /// The settings of this start are not those of the first.
    #[error("{change} (the state file is {path:?})")]
    Changed {
        /// The file.
        path: PathBuf,
        /// What is not as it was.
        change: ChangedMember,
    },
    /// The file was written by another member.
    #[error(
        "the state file {path:?} belongs to {} in {}; restore this member's own, or stop all members of the session and remove it before they start again",
        Quoted(peer),
        Quoted(session)
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Whose session it names.
        session: String,
        /// Whom it names.
        peer: String,
    },
}

/// Why a member's settings do not go with its state file: what no start may change within a session.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChangedMember {
    /// Other voters.
    #[error(
        "quorum_roster differs from the state file: {}; to change the voters, use another session id, or remove the state files of all members while none of them runs",
        changes(added, removed, rekeyed)
    )]
    Roster {
        /// Voters that the file does not name.
        added: Vec<PeerId>,
        /// Voters that the file alone names.
        removed: Vec<PeerId>,
        /// Voters of both whose fingerprints differ.
        rekeyed: Vec<PeerId>,
    },
    /// Another election strategy, to which the file's votes mean nothing.
    #[error(
        "strategy is {given}, but the state file belongs to the strategy {}; to change the strategy, use another session id, or remove the state files of all members while none of them runs",
        Quoted(kept)
    )]
    Strategy {
        /// That of this start.
        given: &'static str,
        /// That of the file.
        kept: String,
    },
    /// Another key than that of the file.
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
    /// No key where the file holds none, since the host gave it at an earlier start.
    #[error(
        "identity_key is NULL, and the state file holds only the fingerprint of the key that was given at the first start: {}; give that key again, or use another session id",
        kept
    )]
    KeyMissing {
        /// The key of the file.
        kept: Fingerprint,
    },
}

/// What has become of a list of voters.
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

/// As other arguments of the caller are shown.
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
