//! What can go wrong with the file in which a static quorum keeps its state.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{Code, Coded, Quoted};

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
        "the state file {path:?} is locked: another process is this member of this session; end it, or take another peer id"
    )]
    InUse {
        /// The lock.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("the state file {path:?} cannot be read ({source}); give this program the right to")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error(
        "the state file {path:?} cannot be written ({source}); free the disk, or give this program the right to"
    )]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is not as it was written.
    #[error(
        "the state file {path:?} is damaged: {what}; restore it, or end all members of the session and remove it before they start again: removed while others run, this member could vote twice"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The file was written by another member.
    #[error(
        "the state file {path:?} is that of {} in {}; put back this member's own, or end all members of the session and remove it before they start again",
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
            | Self::Foreign { .. } => Code::InvalidArgument,
        }
    }
}
