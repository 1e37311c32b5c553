//! Parts of messages that only one election strategy writes and reads.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Part of a message that only the room's election strategy reads and writes, encoded with `postcard`.
///
/// All members of a room have one strategy (`RoomPolicy::strategy`). A part that cannot be decoded is a violation.
/// Bytes after the known fields are ignored, so that later versions may append fields.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Opaque(Arc<[u8]>);

impl Opaque {
    /// Encodes `value`.
    pub fn of<T: Serialize>(value: &T) -> Self {
        // `postcard` fails only for types that refuse to serialize and for sequences of unknown length; strategies have
        // neither.
        let bytes = postcard::to_allocvec(value);
        debug_assert!(bytes.is_ok());
        Self(bytes.unwrap_or_default().into())
    }

    /// Decodes the value.
    ///
    /// # Errors
    /// The error of `postcard` if the bytes are no `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, postcard::Error> {
        postcard::from_bytes(&self.0)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Opaque {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", &self.0)
    }
}

impl Serialize for Opaque {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Opaque {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&[u8]>::deserialize(deserializer).map(Self::from)
    }
}
