//! What a member and a relay send each other: the frames on the one stream that the member opens. Pure.
//!
//! A relay introduces the members of a room to each other and forwards their packets ([`crate::tunnel::packet`], as
//! datagrams). It knows the room by a number that does not give away the room's code, and the members by their keys.
//!
//! A frame is its length (two bytes, little endian, of what follows), its kind (one byte) and its fields as postcard writes
//! them. Each end skips frames of a kind that it does not know, so later versions may add kinds. They may not add fields.

use std::net::SocketAddr;

use bytes::{BufMut, Bytes, BytesMut};
use room_core::id::Fingerprint;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The protocol of a link between a member and a relay.
pub const RELAY_ALPN: &[u8] = b"mmn-relay/1";
/// The UDP port of a relay if its address names none.
pub const DEFAULT_PORT: u16 = 7843;
/// Longest frame, without its length.
pub const MAX_FRAME_BYTES: usize = 1024;
/// Most keys in a [`FromRelay::Present`].
pub const MAX_PRESENT: usize = 8;
/// Number of bits of a locator.
pub const LOCATOR_BITS: u32 = 25;

/// The room's number at a relay: [`LOCATOR_BITS`] bits derived from the room's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Locator(pub u32);

/// HMAC-SHA256 of 32 bytes of keying material of the connection, with the relay's token as key
/// ([`TokenKey`](crate::token::TokenKey)).
pub type TokenProof = [u8; 32];

/// A frame from a member to a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToRelay {
    /// The first frame: the member enters its room.
    Enter {
        /// The room.
        locator: Locator,
        /// Whether the relay names the member to no other one. Members that know its key reach it.
        hidden: bool,
        /// Proof of the relay's token.
        proof: Option<TokenProof>,
    },
    /// The holder of this key failed to prove that it knows the room: the relay forwards nothing more to this member from
    /// it, and from processes at its address that enter later, for ten minutes.
    Block {
        /// The key.
        key: Fingerprint,
    },
    /// Asks for further keys of those who are present.
    More,
}

/// A frame from a relay to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromRelay {
    /// The answer to [`ToRelay::Enter`].
    Welcome {
        /// Where the relay sees the member.
        observed: SocketAddr,
        /// Bytes a second that the relay forwards of this member, and to it; 0 is no limit.
        bytes_per_second: u32,
        /// Number of the others who are present and not hidden.
        present: u32,
    },
    /// The relay sees the member at another address.
    Observed {
        /// The address.
        address: SocketAddr,
    },
    /// Others who are present: at first the ones that have been there longest, then each that comes.
    Present {
        /// Their keys, at most [`MAX_PRESENT`].
        keys: Vec<Fingerprint>,
    },
    /// One of them is gone.
    Gone {
        /// Its key.
        key: Fingerprint,
    },
}

/// Reason why bytes are no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The length exceeds the limit, or is 0.
    #[error("a frame of {0} bytes; 1 to {MAX_FRAME_BYTES} are allowed")]
    Length(usize),
    /// The fields of a known kind cannot be decoded.
    #[error("the fields of a frame of kind {0} cannot be decoded")]
    Malformed(u8),
}

const ENTER: u8 = 1;
const BLOCK: u8 = 2;
const MORE: u8 = 3;
const WELCOME: u8 = 65;
const OBSERVED: u8 = 66;
const PRESENT: u8 = 67;
const GONE: u8 = 68;

/// A frame of one direction.
pub trait Frame: Sized {
    /// The frame as bytes, its length first.
    fn encode(&self) -> Bytes;

    /// The frame in `bytes`, which begin with its kind. `None` for a kind that is not known.
    ///
    /// # Errors
    /// [`FrameError`].
    fn decode(bytes: &[u8]) -> Result<Option<Self>, FrameError>;
}

/// The number of bytes that follow a frame's length.
///
/// # Errors
/// [`FrameError::Length`].
pub fn frame_length(length: [u8; 2]) -> Result<usize, FrameError> {
    match usize::from(u16::from_le_bytes(length)) {
        length @ 1..=MAX_FRAME_BYTES => Ok(length),
        length => Err(FrameError::Length(length)),
    }
}

impl Frame for ToRelay {
    fn encode(&self) -> Bytes {
        match self {
            Self::Enter {
                locator,
                hidden,
                proof,
            } => encoded(ENTER, &(locator, hidden, proof)),
            Self::Block { key } => encoded(BLOCK, key),
            Self::More => encoded(MORE, &()),
        }
    }

    fn decode(bytes: &[u8]) -> Result<Option<Self>, FrameError> {
        let (kind, fields) = split(bytes)?;
        Ok(Some(match kind {
            ENTER => {
                let (locator, hidden, proof) = decoded(kind, fields)?;
                let Locator(number) = locator;
                if number >> LOCATOR_BITS != 0 {
                    return Err(FrameError::Malformed(kind));
                }
                Self::Enter {
                    locator,
                    hidden,
                    proof,
                }
            }
            BLOCK => Self::Block {
                key: decoded(kind, fields)?,
            },
            MORE => {
                decoded::<()>(kind, fields)?;
                Self::More
            }
            _ => return Ok(None),
        }))
    }
}

impl Frame for FromRelay {
    fn encode(&self) -> Bytes {
        match self {
            Self::Welcome {
                observed,
                bytes_per_second,
                present,
            } => encoded(WELCOME, &(observed, bytes_per_second, present)),
            Self::Observed { address } => encoded(OBSERVED, address),
            Self::Present { keys } => encoded(PRESENT, keys),
            Self::Gone { key } => encoded(GONE, key),
        }
    }

    fn decode(bytes: &[u8]) -> Result<Option<Self>, FrameError> {
        let (kind, fields) = split(bytes)?;
        Ok(Some(match kind {
            WELCOME => {
                let (observed, bytes_per_second, present) = decoded(kind, fields)?;
                Self::Welcome {
                    observed,
                    bytes_per_second,
                    present,
                }
            }
            OBSERVED => Self::Observed {
                address: decoded(kind, fields)?,
            },
            PRESENT => {
                let keys: Vec<Fingerprint> = decoded(kind, fields)?;
                if keys.len() > MAX_PRESENT {
                    return Err(FrameError::Malformed(kind));
                }
                Self::Present { keys }
            }
            GONE => Self::Gone {
                key: decoded(kind, fields)?,
            },
            _ => return Ok(None),
        }))
    }
}

fn encoded(kind: u8, fields: &impl Serialize) -> Bytes {
    // Only a sequence of unknown length and an implementation that fails by itself cannot be written; there is neither here.
    let fields = postcard::to_allocvec(fields).unwrap_or_default();
    let mut frame = BytesMut::with_capacity(3 + fields.len());
    frame.put_u16_le(u16::try_from(1 + fields.len()).unwrap_or(u16::MAX));
    frame.put_u8(kind);
    frame.put_slice(&fields);
    frame.freeze()
}

fn split(bytes: &[u8]) -> Result<(u8, &[u8]), FrameError> {
    match bytes {
        [kind, fields @ ..] if bytes.len() <= MAX_FRAME_BYTES => Ok((*kind, fields)),
        _ => Err(FrameError::Length(bytes.len())),
    }
}

fn decoded<T: DeserializeOwned>(kind: u8, fields: &[u8]) -> Result<T, FrameError> {
    match postcard::take_from_bytes(fields) {
        Ok((value, [])) => Ok(value),
        _ => Err(FrameError::Malformed(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: u8) -> Vec<Fingerprint> {
        (0..count).map(|n| Fingerprint([n; 32])).collect()
    }

    #[test]
    fn frames_arrive_as_they_were_sent() {
        let to = [
            ToRelay::Enter {
                locator: Locator((1 << LOCATOR_BITS) - 1),
                hidden: true,
                proof: Some([7; 32]),
            },
            ToRelay::Block {
                key: Fingerprint([3; 32]),
            },
            ToRelay::More,
        ];
        for frame in to {
            let bytes = frame.encode();
            let length = frame_length([bytes[0], bytes[1]]).expect("short");
            assert_eq!(length, bytes.len() - 2);
            assert_eq!(ToRelay::decode(&bytes[2..]), Ok(Some(frame)));
        }
        let from = [
            FromRelay::Welcome {
                observed: "[2001:db8::1]:4711".parse().expect("an address"),
                bytes_per_second: u32::MAX,
                present: u32::MAX,
            },
            FromRelay::Observed {
                address: "192.0.2.1:1".parse().expect("an address"),
            },
            FromRelay::Present {
                keys: keys(MAX_PRESENT as u8),
            },
            FromRelay::Gone {
                key: Fingerprint([9; 32]),
            },
        ];
        for frame in from {
            let bytes = frame.encode();
            assert!(bytes.len() - 2 <= MAX_FRAME_BYTES);
            assert_eq!(FromRelay::decode(&bytes[2..]), Ok(Some(frame)));
        }
    }

    #[test]
    fn unknown_kinds_are_skipped_and_malformed_frames_refused() {
        assert_eq!(ToRelay::decode(&[200, 1, 2, 3]), Ok(None));
        assert_eq!(FromRelay::decode(&[ENTER]), Ok(None));
        assert_eq!(ToRelay::decode(&[]), Err(FrameError::Length(0)));
        assert_eq!(
            ToRelay::decode(&[MORE, 0]),
            Err(FrameError::Malformed(MORE))
        );
        assert_eq!(
            ToRelay::decode(&[BLOCK, 0]),
            Err(FrameError::Malformed(BLOCK))
        );
        let large = ToRelay::Enter {
            locator: Locator(1 << LOCATOR_BITS),
            hidden: false,
            proof: None,
        };
        assert_eq!(
            ToRelay::decode(&large.encode()[2..]),
            Err(FrameError::Malformed(ENTER))
        );
        let many = FromRelay::Present {
            keys: keys(MAX_PRESENT as u8 + 1),
        };
        assert_eq!(
            FromRelay::decode(&many.encode()[2..]),
            Err(FrameError::Malformed(PRESENT))
        );
        assert_eq!(frame_length([0, 0]), Err(FrameError::Length(0)));
        assert_eq!(frame_length([1, 4]), Err(FrameError::Length(1025)));
        assert_eq!(frame_length([0, 4]), Ok(1024));
    }
}
