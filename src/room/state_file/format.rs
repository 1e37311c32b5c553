//! Format of a state file.
//!
//! A file is `MMNSTATE`, a version, the length of the body, the body (postcard: [`Content`]), and the SHA-256 of
//! everything before it. Version 2 named no strategy, since only raft stored anything; its state had no length before it.
//! Version 4 adds the state of the log. A file without one is of version 3, which older libraries read.

use std::io;

use room_transport::identity::PrivateKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::core::id::{Fingerprint, Incarnation};
use crate::core::quorum::Roster;
use crate::core::wire::{Opaque, Strategy};

pub(super) const MAGIC: &[u8; 8] = b"MMNSTATE";
pub(super) const VERSION: u32 = 4;
/// The version of a file that has no state of the log.
const WITHOUT_LOG: u32 = 3;
/// The oldest version that can be read.
const OLDEST_VERSION: u32 = 2;
const HEADER_BYTES: usize = MAGIC.len() + 4 + 4;
const DIGEST_BYTES: usize = 32;
/// Size limit: far more than a roster and the knowledge about its voters need. A larger file is not read.
pub(super) const MAX_FILE_BYTES: usize = 32 * 1024;

/// Contents of a file; [`encode`] writes it from references.
#[derive(Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) owner: Owner,
    /// The incarnation that wrote it; the next one is newer, whatever the clock shows.
    pub(super) incarnation: Incarnation,
    pub(super) kept: Kept,
}

/// The kept state of each part of a member, which only that part can read. Empty if the part has nothing to keep.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::room) struct Kept {
    /// The state of the election strategy.
    pub(in crate::room) strategy: Opaque,
    /// The state of the log of the room's state.
    pub(in crate::room) log: Opaque,
}

/// Owner of a file: the values that no start of the member may change within the session.
#[derive(Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) session: String,
    pub(super) peer: String,
    /// The roster's text, as [`Roster::parse`] reads it; empty without voters.
    pub(super) roster: String,
    pub(super) key: KeptKey,
    /// The name of the election strategy.
    pub(super) strategy: String,
}

/// The key of the member, by which the other voters know it.
#[derive(Serialize, Deserialize)]
pub(super) enum KeptKey {
    /// The library made it at the first start.
    Made(PrivateKey),
    /// The host stores it, and passes it at each start.
    Given(Fingerprint),
}

pub(super) fn encode(
    owner: &Owner,
    incarnation: Incarnation,
    kept: &Kept,
) -> io::Result<Zeroizing<Vec<u8>>> {
    // Allocated in full: buffers that it outgrows would not be wiped.
    let mut bytes = Zeroizing::new(vec![0; MAX_FILE_BYTES]);
    let room = &mut bytes[HEADER_BYTES..MAX_FILE_BYTES - DIGEST_BYTES];
    let (version, body) = match kept.log.as_bytes().is_empty() {
        true => (
            WITHOUT_LOG,
            postcard::to_slice(&(owner, incarnation, &kept.strategy), room),
        ),
        false => (
            VERSION,
            postcard::to_slice(&(owner, incarnation, kept), room),
        ),
    };
    let len = body.map_err(io::Error::other)?.len();
    sign(&mut bytes, version, len)?;
    Ok(bytes)
}

/// Writes the header and the digest around a body of `len` bytes, and truncates the buffer.
fn sign(bytes: &mut Vec<u8>, version: u32, len: usize) -> io::Result<()> {
    let header = [
        &MAGIC[..],
        &version.to_le_bytes(),
        &u32::try_from(len).map_err(io::Error::other)?.to_le_bytes(),
    ]
    .concat();
    bytes[..HEADER_BYTES].copy_from_slice(&header);
    bytes.truncate(HEADER_BYTES + len);
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    Ok(())
}

/// Reason why a file is not a state.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Undecodable {
    /// Another version of the library wrote it.
    Version(u32),
    /// Its contents are not as written.
    Damaged(&'static str),
}

pub(super) fn decode(bytes: &[u8]) -> Result<Content, Undecodable> {
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
    let version = number(0);
    if !(OLDEST_VERSION..=VERSION).contains(&version) {
        return Err(Version(version));
    }
    if u64::from(number(4)) + DIGEST_BYTES as u64 != rest.len() as u64 {
        return Err(Damaged("its length differs from its header"));
    }
    let (signed, digest) = bytes.split_at(bytes.len() - DIGEST_BYTES);
    if Sha256::digest(signed).as_slice() != digest {
        return Err(Damaged("its checksum does not fit"));
    }
    let body = &signed[HEADER_BYTES..];
    let content = match version {
        2 => decode_version_2(body),
        WITHOUT_LOG => decode_version_3(body),
        _ => postcard::from_bytes(body),
    };
    let content = content.map_err(|_| Damaged("its content cannot be understood"))?;
    let roster = &content.owner.roster;
    match roster.is_empty() || Roster::parse(roster).is_ok() {
        true => Ok(content),
        false => Err(Damaged("its roster cannot be understood")),
    }
}

fn decode_version_2(body: &[u8]) -> postcard::Result<Content> {
    let ((session, peer, roster, key, incarnation), state) = postcard::take_from_bytes(body)?;
    let owner = Owner {
        session,
        peer,
        roster,
        key,
        strategy: Strategy::Raft.name().to_owned(),
    };
    Ok(Content {
        owner,
        incarnation,
        kept: Kept::of_strategy(state.into()),
    })
}

fn decode_version_3(body: &[u8]) -> postcard::Result<Content> {
    let (owner, incarnation, strategy) = postcard::from_bytes(body)?;
    Ok(Content {
        owner,
        incarnation,
        kept: Kept::of_strategy(strategy),
    })
}

impl Kept {
    fn of_strategy(strategy: Opaque) -> Self {
        Self {
            strategy,
            log: Opaque::default(),
        }
    }
}

/// Fuzz target: any file is refused or understood, and an understood one is written back unchanged.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check(bytes: &[u8]) {
    fn understood(bytes: &[u8]) {
        let written = |content: &Content| {
            encode(&content.owner, content.incarnation, &content.kept).expect("short")
        };
        if let Ok(content) = decode(bytes) {
            let again = written(&content);
            let second = decode(&again).expect("just written");
            assert_eq!(written(&second), again);
        }
    }
    if bytes.len() > MAX_FILE_BYTES - HEADER_BYTES - DIGEST_BYTES {
        return; // larger files are not read
    }
    understood(bytes);
    // Random input never matches a checksum, so it is also tried as the body of a valid file.
    let len = u32::try_from(bytes.len()).expect("short");
    for version in OLDEST_VERSION..=VERSION {
        let mut file = [
            &MAGIC[..],
            &version.to_le_bytes(),
            &len.to_le_bytes(),
            bytes,
        ]
        .concat();
        let digest = Sha256::digest(&file);
        file.extend_from_slice(&digest);
        understood(&file);
    }
}
