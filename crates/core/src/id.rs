//! Identifiers: peers, sessions (rooms), process incarnations, keys.
//!
//! Every value of these types is valid: strings are checked once, on construction.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Longest peer id, in bytes of UTF-8.
pub const MAX_PEER_ID_BYTES: usize = 64;
/// Longest session id, in bytes of UTF-8.
pub const MAX_SESSION_ID_BYTES: usize = 128;

/// Reason why a string is not an id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdError {
    /// The string is empty.
    #[error("it is empty; give 1 to {max} bytes")]
    Empty {
        /// The longest length allowed, in bytes.
        max: usize,
    },
    /// The string is longer than allowed.
    #[error("it has {len} bytes; at most {max} are allowed")]
    TooLong {
        /// The length found, in bytes.
        len: usize,
        /// The longest length allowed, in bytes.
        max: usize,
    },
    /// A character of Unicode category Cc.
    #[error("it contains the control character U+{code:04X}; remove it")]
    ControlCharacter {
        /// The code point found.
        code: u32,
    },
    /// A character that changes the direction of the text around it: the id would be displayed as another.
    #[error("it contains the bidirectional override U+{code:04X}; remove it")]
    BidiOverride {
        /// The code point found.
        code: u32,
    },
    /// White space at the beginning or the end.
    #[error("it begins or ends with a blank; remove it")]
    Blank,
}

fn check(text: &str, max: usize) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty { max });
    }
    if text.len() > max {
        return Err(IdError::TooLong {
            len: text.len(),
            max,
        });
    }
    if let Some(c) = text.chars().find(|c| c.is_control()) {
        return Err(IdError::ControlCharacter { code: c.into() });
    }
    if let Some(c) = text.chars().find(|c| is_bidi_override(*c)) {
        return Err(IdError::BidiOverride { code: c.into() });
    }
    if text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace) {
        return Err(IdError::Blank);
    }
    Ok(())
}

/// Whether a character changes the direction of the text after it (Unicode's embeddings, overrides and isolates).
pub fn is_bidi_override(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The first eight bytes as a number, with zeros behind a shorter text. Numbers in this order are texts in their order, and
/// most comparisons of ids, which are the keys of most maps, end here.
fn head(text: &str) -> u64 {
    let mut head = [0; 8];
    for (to, from) in head.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    u64::from_be_bytes(head)
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $max:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            /// See [`head`].
            head: u64,
            text: Arc<str>,
        }

        impl $name {
            /// Checks `text` and takes it as an id.
            ///
            /// # Errors
            /// [`IdError`] when `text` is empty, too long, has a control character, a bidirectional override, or a
            /// blank at either end.
            pub fn new(text: &str) -> Result<Self, IdError> {
                check(text, $max)?;
                Ok(Self {
                    head: head(text),
                    text: text.into(),
                })
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.text
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.text)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.text, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <&str>::deserialize(deserializer)?;
                Self::new(text).map_err(serde::de::Error::custom)
            }
        }
    };
}

text_id!(
    /// The name of a member: 1 to 64 bytes of UTF-8, no control characters, no bidirectional overrides, no blank at
    /// either end.
    ///
    /// Compared and sorted as bytes; nothing is normalised.
    PeerId,
    MAX_PEER_ID_BYTES
);
text_id!(
    /// The name of a room: 1 to 128 bytes of UTF-8, no control characters, no bidirectional overrides, no blank at
    /// either end.
    SessionId,
    MAX_SESSION_ID_BYTES
);

/// One incarnation of a process: every initialization starts a new one.
///
/// A later start orders after an earlier one of the same key. The random part distinguishes two starts at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Incarnation {
    /// Time at which the process started the room, in microseconds since the Unix epoch.
    pub started_us: u64,
    /// 64 random bits.
    pub random: u64,
}

impl Incarnation {
    /// Moves this incarnation after `previous`, which an earlier one left on disk: the new one must not become the
    /// older one because the clock was set back.
    #[must_use]
    pub fn after(self, previous: Self) -> Self {
        Self {
            started_us: self.started_us.max(previous.started_us.saturating_add(1)),
            random: self.random,
        }
    }
}

/// The SHA-256 of a peer's public key (SubjectPublicKeyInfo, DER).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Number of hexadecimal digits of a fingerprint.
    pub const DIGITS: usize = 64;

    /// Reads the form in which a fingerprint is shown, in either case. `None` if `text` is none.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != Self::DIGITS || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut key = [0; Self::DIGITS / 2];
        for (byte, at) in key.iter_mut().zip((0..Self::DIGITS).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self(key))
    }
}

/// The form used in rosters, and by hosts for comparison: 64 hexadecimal digits.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in &self.0[..8] {
            write!(f, "{byte:02x}")?;
        }
        f.write_str("..")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the first bytes decide most comparisons.
    #[test]
    fn ids_are_in_the_order_of_their_bytes() {
        let texts = [
            "a",
            "ab",
            "abcdefg",
            "abcdefgh",
            "abcdefgha",
            "abcdefghb",
            "abcdefgz",
            "b",
            "z",
            "é",
            "琪",
            "琪露诺",
            "琪露诺 ⑨",
        ];
        let ids = texts.map(|text| PeerId::new(text).expect("an id"));
        for (one, text) in ids.iter().zip(texts) {
            for (other, than) in ids.iter().zip(texts) {
                assert_eq!(one.cmp(other), text.cmp(than), "{text} and {than}");
                assert_eq!(one == other, text == than, "{text} and {than}");
            }
        }
    }

    #[test]
    fn ids_hold_only_what_is_allowed() {
        assert!(PeerId::new("p").is_ok());
        assert!(PeerId::new(&"x".repeat(64)).is_ok());
        assert!(PeerId::new("琪露诺 ⑨").is_ok());
        assert_eq!(PeerId::new(""), Err(IdError::Empty { max: 64 }));
        assert_eq!(
            PeerId::new(&"x".repeat(65)),
            Err(IdError::TooLong { len: 65, max: 64 })
        );
        for control in ["a\nb", "a\u{0}b", "a\u{7f}", "\u{85}a"] {
            assert!(matches!(
                PeerId::new(control),
                Err(IdError::ControlCharacter { .. })
            ));
        }
        for turns in ["a\u{202e}b", "\u{202a}a", "a\u{2066}", "\u{2069}"] {
            let error = PeerId::new(turns).expect_err("an override");
            assert!(matches!(error, IdError::BidiOverride { .. }));
            assert!(SessionId::new(turns).is_err());
        }
        let error = PeerId::new("a\u{202e}b").expect_err("an override");
        let sentence = "it contains the bidirectional override U+202E; remove it";
        assert_eq!(error.to_string(), sentence);
        // Marks, joiners and right-to-left scripts are allowed in names.
        for name in [
            "\u{200f}שלום",
            "مرحبا",
            "a\u{200d}b",
            "\u{202f}a\u{202f}b".trim(),
        ] {
            assert!(PeerId::new(name).is_ok(), "{name:?}");
        }
        for blank in [" a", "a ", "\u{3000}a", "a\u{a0}"] {
            assert_eq!(PeerId::new(blank), Err(IdError::Blank));
        }
        assert!(SessionId::new(&"s".repeat(128)).is_ok());
        assert!(SessionId::new(&"s".repeat(129)).is_err());
    }

    #[test]
    fn a_fingerprint_is_64_hexadecimal_digits() {
        let text = "0123456789abcdef".repeat(4);
        let key = Fingerprint::parse(&text).expect("a fingerprint");
        assert_eq!(key.to_string(), text);
        assert_eq!(Fingerprint::parse(&text.to_uppercase()), Some(key));
        for none in ["", &text[1..], &format!("{text}0"), &text.replace('0', "g")] {
            assert_eq!(Fingerprint::parse(none), None);
        }
        // As long, and not ASCII.
        assert_eq!(Fingerprint::parse(&"é".repeat(32)), None);
    }

    #[test]
    fn a_bad_id_does_not_come_off_the_wire() {
        let bytes = postcard::to_allocvec(" padded").expect("a string");
        assert!(postcard::from_bytes::<PeerId>(&bytes).is_err());
        let bytes = postcard::to_allocvec("ana\u{202e}lem").expect("a string");
        assert!(postcard::from_bytes::<PeerId>(&bytes).is_err());
        let bytes = postcard::to_allocvec("plain").expect("a string");
        assert_eq!(
            postcard::from_bytes::<PeerId>(&bytes),
            Ok(PeerId::new("plain").expect("valid"))
        );
    }
}
