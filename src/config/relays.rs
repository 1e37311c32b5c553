//! The relays of a room, and which paths its links may take.

use std::sync::Arc;

use room_transport::rendezvous::DEFAULT_PORT;
use room_transport::token::{TokenError, parse_token};
use thiserror::Error;

use super::{Config, ConfigError, DiscoveryMode, Secret, numbered_lines};
use crate::core::id::Fingerprint;
use crate::core::path::MAX_RELAYS;
use crate::core::wire::Strategy;
use crate::quoted::Quoted;
use crate::target::{Target, TargetError, TargetFault, parse_target};

/// A relay, where members meet that cannot reach each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relay {
    /// Its address as the host gave it.
    pub text: Arc<str>,
    /// Its address.
    pub target: Target,
    /// Its key; `None` accepts any.
    pub key: Option<Fingerprint>,
    /// The token that it asks for.
    pub token: Option<Secret>,
}

/// Paths that a member uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paths {
    /// All of them, the best first.
    #[default]
    All,
    /// Relays alone, so that no other member learns an address of this one.
    Relayed,
}

/// Why a text is no list of relays.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RelaysError {
    /// None, or too many.
    #[error("relays names {relays} relays; give 1 to {MAX_RELAYS}, one per line, or NULL for none")]
    Count {
        /// Number of lines that are not empty.
        relays: usize,
    },
    /// A line is malformed.
    #[error("relays, line {line}: {fault}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// Its fault.
        fault: RelayFault,
    },
}

/// Fault of a line. No sentence shows a token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RelayFault {
    /// The address.
    #[error(transparent)]
    Address(#[from] TargetError),
    /// The key is no fingerprint.
    #[error(
        "key {} is not a fingerprint; give the {} hexadecimal digits that the relay shows",
        Quoted(key),
        Fingerprint::DIGITS
    )]
    Key {
        /// The text behind `key=`.
        key: String,
    },
    /// The token is malformed.
    #[error("the token cannot be used: {0}")]
    Token(#[from] TokenError),
    /// A word that is neither the key nor the token.
    #[error(
        "{} is not known; give host:port, and behind it key=FINGERPRINT and token=TOKEN where the relay has them",
        Quoted(word)
    )]
    Unknown {
        /// The word, up to its first equals sign.
        word: String,
    },
    /// The key or the token is there twice.
    #[error("{word}= is there twice; give it once")]
    Twice {
        /// The word, without its equals sign.
        word: &'static str,
    },
    /// An earlier line has the same address.
    #[error("it names the relay of an earlier line again; give another relay, or remove the line")]
    Repeated,
}

impl Relay {
    /// Reads a list of relays: one per line, with spaces around a line and empty lines ignored.
    ///
    /// # Errors
    /// [`RelaysError`] for the first fault.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, RelaysError> {
        let lines = numbered_lines(text);
        if lines.is_empty() || lines.len() > MAX_RELAYS {
            return Err(RelaysError::Count {
                relays: lines.len(),
            });
        }
        let mut relays: Vec<Self> = Vec::new();
        for (number, line) in lines {
            let at_line = |fault| RelaysError::Line {
                line: number,
                fault,
            };
            let relay = Self::parse(line).map_err(at_line)?;
            if relays.iter().any(|other| other.target == relay.target) {
                return Err(at_line(RelayFault::Repeated));
            }
            relays.push(relay);
        }
        Ok(relays)
    }

    fn parse(line: &str) -> Result<Self, RelayFault> {
        let mut words = line.split_whitespace();
        let address = words.next().unwrap_or_default();
        let mut relay = Self {
            text: address.into(),
            target: parse_address(address)?,
            key: None,
            token: None,
        };
        for word in words {
            match word.split_once('=') {
                Some(("key", _)) if relay.key.is_some() => {
                    return Err(RelayFault::Twice { word: "key" });
                }
                Some(("key", text)) => {
                    let key = Fingerprint::parse(text);
                    let malformed = || RelayFault::Key { key: text.into() };
                    relay.key = Some(key.ok_or_else(malformed)?);
                }
                Some(("token", _)) if relay.token.is_some() => {
                    return Err(RelayFault::Twice { word: "token" });
                }
                Some(("token", text)) => relay.token = Secret::new(&parse_token(text)?),
                other => {
                    let word = other.map_or(word, |(name, _)| name).to_owned();
                    return Err(RelayFault::Unknown { word });
                }
            }
        }
        Ok(relay)
    }
}

/// An address whose port may be missing.
fn parse_address(text: &str) -> Result<Target, TargetError> {
    match parse_target(text) {
        Err(TargetError {
            fault: TargetFault::NoPort,
            ..
        }) if !text.ends_with(':') => {
            let whole = format!("{text}:{DEFAULT_PORT}");
            parse_target(&whole).map_err(|error| TargetError {
                text: text.to_owned(),
                ..error
            })
        }
        parsed => parsed,
    }
}

impl Config {
    pub(super) fn check_relays(&self) -> Result<(), ConfigError> {
        if !self.relays.is_empty() && matches!(self.strategy, Strategy::Etcd(_)) {
            return Err(ConfigError::RelaysWithEtcd);
        }
        if self.relays.len() > MAX_RELAYS {
            let relays = self.relays.len();
            return Err(RelaysError::Count { relays }.into());
        }
        if self.paths == Paths::All {
            return Ok(());
        }
        if self.relays.is_empty() {
            return Err(ConfigError::RelayedWithoutRelays);
        }
        if self.discovery != DiscoveryMode::Off {
            return Err(ConfigError::RelayedWithDiscovery);
        }
        if self.port_mapping {
            return Err(ConfigError::RelayedWithPortMapping);
        }
        match self.strategy {
            Strategy::Seeded(_) => Err(ConfigError::RelayedWithSeeds),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdefABCDEF0123456789abcdef0123456789abcdef0123456789";
    const TOKEN: &str = "000g40r40m30e209185gr38e1w";

    fn parsed(text: &str) -> Result<Vec<Relay>, String> {
        Relay::parse_list(text).map_err(|error| error.to_string())
    }

    fn targets(text: &str) -> Vec<String> {
        let relays = parsed(text).expect("relays");
        relays.iter().map(|it| it.target.to_string()).collect()
    }

    #[test]
    fn a_line_has_an_address_and_perhaps_a_key_and_a_token() {
        let text = format!("\n  relay.example token={TOKEN}  key={KEY}\r\n\n[2001:db8::1]:7000 \n");
        let relays = parsed(&text).expect("relays");
        assert_eq!(relays.len(), 2);
        assert_eq!(&*relays[0].text, "relay.example");
        assert_eq!(relays[0].target.to_string(), "relay.example:7843");
        assert_eq!(relays[0].key, Fingerprint::parse(KEY));
        let token: [u8; 16] = std::array::from_fn(|at| at as u8);
        assert_eq!(relays[0].token, Secret::new(&token));
        assert_eq!(&*relays[1].text, "[2001:db8::1]:7000");
        assert_eq!((relays[1].key, &relays[1].token), (None, &None));
        let shown = format!("{relays:?}");
        assert!(!shown.contains("e1w") && !shown.contains("E1W"), "{shown}");
    }

    #[test]
    fn the_port_may_be_missing() {
        for (text, target) in [
            ("192.0.2.1", "192.0.2.1:7843"),
            ("192.0.2.1:1", "192.0.2.1:1"),
            ("[2001:db8::1]", "[2001:db8::1]:7843"),
            ("relay.example", "relay.example:7843"),
            ("relay.example:7844", "relay.example:7844"),
        ] {
            assert_eq!(targets(text), [target]);
        }
    }

    #[test]
    fn an_error_names_the_line_and_its_fault_and_no_token() {
        let key = format!("a key={}", &KEY[1..]);
        let keys = format!("a key={KEY} key={KEY}");
        let short = format!("a token={}", &TOKEN[1..]);
        let tokens = format!("a token={TOKEN} token={TOKEN}");
        let misspelt = format!("a tokens={TOKEN}");
        for (text, sentence) in [
            (
                " \n\n",
                "relays names 0 relays; give 1 to 2, one per line, or NULL for none",
            ),
            (
                "a\nb\nc",
                "relays names 3 relays; give 1 to 2, one per line, or NULL for none",
            ),
            (
                "\na:99999",
                "relays, line 2: the address \"a:99999\" has the port \"99999\", which is not a number from 1 to 65535; give ip:port, [v6]:port or name:port",
            ),
            (
                "a\n\n::1",
                "relays, line 3: the address \"::1\" has a host with ':'; an IPv6 address must be in brackets; give ip:port, [v6]:port or name:port",
            ),
            (
                "a:",
                "relays, line 1: the address \"a:\" has no port; give ip:port, [v6]:port or name:port",
            ),
            (
                &key,
                "relays, line 1: key \"123456789abcdefABCDEF0123456789abcdef0123456789abcdef0123456789\" is not a fingerprint; give the 64 hexadecimal digits that the relay shows",
            ),
            (&keys, "relays, line 1: key= is there twice; give it once"),
            (
                &tokens,
                "relays, line 1: token= is there twice; give it once",
            ),
            (
                &short,
                "relays, line 1: the token cannot be used: it has 25 characters; a token has 26",
            ),
            (
                "a token=uuuu",
                "relays, line 1: the token cannot be used: its character 1 is not one of 0 to 9 and A to Z without U",
            ),
            (
                &misspelt,
                "relays, line 1: \"tokens\" is not known; give host:port, and behind it key=FINGERPRINT and token=TOKEN where the relay has them",
            ),
            (
                "a 7843",
                "relays, line 1: \"7843\" is not known; give host:port, and behind it key=FINGERPRINT and token=TOKEN where the relay has them",
            ),
            (
                "a\na:7843",
                "relays, line 2: it names the relay of an earlier line again; give another relay, or remove the line",
            ),
        ] {
            assert_eq!(parsed(text), Err(sentence.to_owned()), "{text:?}");
        }
    }
}
