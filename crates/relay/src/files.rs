//! The files of a relay: its key, its token, and what it has used of its quota.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};
use room_transport::identity::{IdentityError, PrivateKey, generate_private};
use room_transport::token::{TOKEN_BYTES, TokenError, parse_token, token_text};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::quota::Used;

/// Longest content that is read of a file; what a relay writes is shorter.
const MAX_FILE_BYTES: u64 = 4096;

/// Reason why there is no key or token.
#[derive(Debug, Error)]
pub enum FileError {
    /// The system.
    #[error("cannot use the file {}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("the file {} does not hold a relay's key: 64 hexadecimal digits; give the right file, or a name that is free", _0.display())]
    NoKey(PathBuf),
    /// The file holds something else.
    #[error("the token in the file {} cannot be used: {fault}", path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
        /// Its fault.
        fault: TokenError,
    },
    /// A new key, or a new token.
    #[error(transparent)]
    Random(#[from] IdentityError),
}

/// The private key in `path`, which is made if it is missing.
///
/// # Errors
/// [`FileError`]
pub fn key(path: &Path) -> Result<PrivateKey, FileError> {
    let made = || {
        let key = generate_private()?;
        Ok(Zeroizing::new(hexadecimal(key.as_slice())))
    };
    let text = read_or_make(path, made)?;
    let mut key = PrivateKey::default();
    let digits = text.trim_ascii().as_bytes();
    let is_key = digits.len() == 2 * key.len();
    let filled = key.iter_mut().zip(digits.chunks(2)).all(|(byte, pair)| {
        let values = pair.iter().map(|digit| char::from(*digit).to_digit(16));
        let value = values.reduce(|high, low| Some(high? << 4 | low?)).flatten();
        *byte = value.unwrap_or_default() as u8;
        value.is_some()
    });
    match is_key && filled {
        true => Ok(key),
        false => Err(FileError::NoKey(path.to_owned())),
    }
}

/// The token in `path`, which is made if it is missing.
///
/// # Errors
/// [`FileError`]
pub fn token(path: &Path) -> Result<[u8; TOKEN_BYTES], FileError> {
    let made = || {
        let mut token = [0; TOKEN_BYTES];
        let filled = SystemRandom::new().fill(&mut token);
        filled.map_err(|_| IdentityError::NoRandomness)?;
        Ok(Zeroizing::new(token_text(&token)))
    };
    let text = read_or_make(path, made)?;
    parse_token(text.trim()).map_err(|fault| FileError::NoToken {
        path: path.to_owned(),
        fault,
    })
}

/// The text in a file. A missing file is made, such that its owner alone may read it.
fn read_or_make(
    path: &Path,
    made: impl FnOnce() -> Result<Zeroizing<String>, IdentityError>,
) -> Result<Zeroizing<String>, FileError> {
    let at = |source| FileError::System {
        path: path.to_owned(),
        source,
    };
    match read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        read => return read.map_err(at),
    }
    let made = made()?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let write = |mut file: File| {
        file.write_all(made.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    };
    options.open(path).and_then(write).map_err(at)?;
    Ok(made)
}

fn read(path: &Path) -> io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::with_capacity(MAX_FILE_BYTES as usize));
    File::open(path)?
        .take(MAX_FILE_BYTES)
        .read_to_string(&mut text)?;
    Ok(text)
}

fn hexadecimal(key: &[u8]) -> String {
    // With its capacity first, so that no copy of a part of it stays behind.
    let mut text = String::with_capacity(2 * key.len());
    for byte in key {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The used part of the quota; `None` if the file is missing.
pub(crate) fn read_used(path: &Path) -> io::Result<Option<Used>> {
    match read(path) {
        Ok(text) => match Used::parse(&text) {
            Some(used) => Ok(Some(used)),
            None => Err(io::Error::new(
                ErrorKind::InvalidData,
                "it does not hold what a relay has used of its quota",
            )),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces what the file holds.
pub(crate) fn write_used(path: &Path, used: Used) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    fs::write(&new, used.line())?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("mmn-relay-{}-{name}", std::process::id()));
            fs::create_dir(&path).expect("a folder");
            Self(path)
        }

        fn file(&self) -> PathBuf {
            self.0.join("file")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_key_is_made_once_and_its_owner_alone_may_read_it() {
        let folder = Folder::new("key");
        let first = key(&folder.file()).expect("made");
        assert_eq!(key(&folder.file()).expect("read"), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(folder.file()).expect("there").permissions();
            assert_eq!(mode.mode() & 0o777, 0o600);
        }
        fs::write(folder.file(), format!("  {}\r\n", "0F".repeat(32))).expect("written");
        let read = key(&folder.file()).expect("read");
        assert_eq!(**read, [15; 32]);
    }

    #[test]
    fn a_file_with_something_else_is_not_replaced() {
        let folder = Folder::new("else");
        for text in [
            "",
            "notes",
            &"0".repeat(63),
            &"0".repeat(66),
            &"x".repeat(64),
        ] {
            fs::write(folder.file(), text).expect("written");
            let error = key(&folder.file()).expect_err("no key");
            assert!(matches!(error, FileError::NoKey(_)), "{error}");
            let error = token(&folder.file()).expect_err("no token");
            assert!(matches!(error, FileError::NoToken { .. }), "{error}");
            let error = read_used(&folder.file()).expect_err("no quota");
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            let kept = fs::read_to_string(folder.file()).expect("there");
            assert_eq!(kept, text);
        }
        let missing = folder.0.join("none").join("file");
        assert!(matches!(key(&missing), Err(FileError::System { .. })));
    }

    #[test]
    fn a_token_is_made_once_and_read_as_hosts_write_it() {
        let folder = Folder::new("token");
        let made = token(&folder.file()).expect("made");
        assert_eq!(token(&folder.file()).expect("read"), made);
        let text = fs::read_to_string(folder.file()).expect("there");
        assert_eq!(parse_token(text.trim()), Ok(made));
    }
}
