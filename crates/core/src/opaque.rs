//! Parts of messages that only one election strategy writes and reads.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A part of a message that only the election strategy of the room reads and writes, as `postcard` encodes it.
///
/// Members of one room have one strategy (`RoomPolicy::strategy`). What cannot be decoded is a violation. Bytes behind what a
/// version knows are ignored, so that later versions may append fields.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Opaque(Arc<[u8]>);

impl Opaque {
    /// The encoded `value`.
    pub fn of<T: Serialize>(value: &T) -> Self {
        // Only types that refuse themselves, or sequences of unknown length, cannot be encoded, and strategies have neither.
        let bytes = postcard::to_allocvec(value);
        debug_assert!(bytes.is_ok());
        Self(bytes.unwrap_or_default().into())
    }

    /// The decoded value.
    ///
    /// # Errors
    /// That of `postcard`, for bytes that are no `T`.
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
