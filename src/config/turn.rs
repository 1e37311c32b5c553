//! The TURN servers of a member.

use std::sync::Arc;

use thiserror::Error;

use super::{Config, ConfigError, Secret, numbered_lines};
use crate::core::id::Fingerprint;
use crate::core::wire::Strategy;
use crate::error::{Code, Coded};
use crate::quoted::Quoted;
use crate::target::{Target, TargetError, TargetFault, parse_target};

/// Most TURN servers of one member.
pub const MAX_TURN_SERVERS: usize = 4;
/// Longest user name, in bytes (RFC 8489 section 14.3).
const MAX_TURN_USERNAME_BYTES: usize = 508;
/// Longest password, in bytes.
const MAX_TURN_PASSWORD_BYTES: usize = 508;
/// Ports of servers that name none (RFC 7065).
const PORT: u16 = 3478;
const TLS_PORT: u16 = 5349;

/// A TURN server (RFC 8656), and the credentials for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnServer {
    /// Its URL as the host gave it, without the credentials.
    pub text: Arc<str>,
    /// Its address.
    pub target: Target,
    /// How this member talks with it.
    pub transport: TurnTransport,
    /// The user name.
    pub username: String,
    /// The password.
    pub password: Secret,
    /// The key of its certificate; `None` accepts the certificates that the system trusts.
    pub key: Option<Fingerprint>,
}

/// How a member talks with a TURN server. The server forwards UDP in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnTransport {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// TLS over TCP.
    Tls,
}

/// Why a text is no list of TURN servers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TurnError {
    /// None, or too many.
    #[error(
        "turn names {servers} servers; give 1 to {MAX_TURN_SERVERS}, one per line, or NULL for none"
    )]
    Count {
        /// Number of lines that are not empty.
        servers: usize,
    },
    /// A line is malformed.
    #[error("turn, line {line}: {fault}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// Its fault.
        fault: TurnLineFault,
    },
}

impl Coded for TurnError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }
}

/// Fault of a line. No sentence shows a password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TurnLineFault {
    /// No scheme of a TURN server.
    #[error("{} begins with neither turn: nor turns:", Quoted(url))]
    Scheme {
        /// The first word.
        url: String,
    },
    /// Another transport.
    #[error(
        "{} is no transport of its scheme; turn: has ?transport=udp and ?transport=tcp, turns: has ?transport=tcp",
        Quoted(query)
    )]
    Transport {
        /// The text behind the question mark.
        query: String,
    },
    /// The address.
    #[error(transparent)]
    Address(#[from] TargetError),
    /// A word is missing.
    #[error("it has no {word}=; give username= and password= behind the address")]
    Missing {
        /// The word, without its equals sign.
        word: &'static str,
    },
    /// A user name or a password has a wrong length.
    #[error("the {word} has {bytes} bytes; allowed are 1 to {most}")]
    Length {
        /// The word, without its equals sign.
        word: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The key is no fingerprint.
    #[error(
        "key {} is not a fingerprint; give the {} hexadecimal digits of the SHA-256 of the certificate's public key",
        Quoted(key),
        Fingerprint::DIGITS
    )]
    Key {
        /// The text behind `key=`.
        key: String,
    },
    /// A key, and no certificate.
    #[error("key= is of a certificate, which only turns: has")]
    KeyWithoutTls,
    /// A word that is none of the known ones.
    #[error(
        "{} is not known; give turn:host:port or turns:host:port, and behind it username=, password= and perhaps key=",
        Quoted(word)
    )]
    Unknown {
        /// The word, up to its first equals sign.
        word: String,
    },
    /// A word without an equals sign.
    #[error(
        "a word behind the address has no equals sign; give username=, password= and perhaps key=, each without spaces"
    )]
    NoWord,
    /// A word is there twice.
    #[error("{word}= is there twice; give it once")]
    Twice {
        /// The word, without its equals sign.
        word: &'static str,
    },
}

/// The words behind the address, as far as they have been read.
#[derive(Default)]
struct Words<'a> {
    username: Option<&'a str>,
    password: Option<&'a str>,
    key: Option<&'a str>,
}

impl<'a> Words<'a> {
    fn read(words: impl Iterator<Item = &'a str>) -> Result<Self, TurnLineFault> {
        let mut read = Self::default();
        for word in words {
            // Without an equals sign it may be the rest of a password.
            let (name, value) = word.split_once('=').ok_or(TurnLineFault::NoWord)?;
            let (name, place) = match name {
                "username" => ("username", &mut read.username),
                "password" => ("password", &mut read.password),
                "key" => ("key", &mut read.key),
                _ => return Err(TurnLineFault::Unknown { word: name.into() }),
            };
            if place.replace(value).is_some() {
                return Err(TurnLineFault::Twice { word: name });
            }
        }
        Ok(read)
    }
}

impl TurnServer {
    /// Reads a list of servers: one per line, with spaces around a line and empty lines ignored.
    ///
    /// # Errors
    /// [`TurnError`] for the first fault.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, TurnError> {
        let lines = numbered_lines(text);
        if lines.is_empty() || lines.len() > MAX_TURN_SERVERS {
            return Err(TurnError::Count {
                servers: lines.len(),
            });
        }
        let server = |(number, line): (usize, &str)| {
            Self::parse(line).map_err(|fault| TurnError::Line {
                line: number,
                fault,
            })
        };
        lines.into_iter().map(server).collect()
    }

    fn parse(line: &str) -> Result<Self, TurnLineFault> {
        let mut words = line.split_whitespace();
        let url = words.next().unwrap_or_default();
        let (transport, address) = split_url(url)?;
        let words = Words::read(words)?;
        let key = words.key.map(|text| {
            let malformed = || TurnLineFault::Key { key: text.into() };
            Fingerprint::parse(text).ok_or_else(malformed)
        });
        let key = key.transpose()?;
        if key.is_some() && transport != TurnTransport::Tls {
            return Err(TurnLineFault::KeyWithoutTls);
        }
        let username = check("username", words.username, MAX_TURN_USERNAME_BYTES)?;
        let password = check("password", words.password, MAX_TURN_PASSWORD_BYTES)?;
        let missing = TurnLineFault::Missing { word: "password" };
        Ok(Self {
            text: url.into(),
            target: parse_address(address, transport)?,
            transport,
            username: username.to_owned(),
            password: Secret::new(password.as_bytes()).ok_or(missing)?,
            key,
        })
    }
}

fn check<'a>(
    word: &'static str,
    value: Option<&'a str>,
    most: usize,
) -> Result<&'a str, TurnLineFault> {
    let value = value.ok_or(TurnLineFault::Missing { word })?;
    match value.len() {
        bytes if bytes == 0 || bytes > most => Err(TurnLineFault::Length { word, bytes, most }),
        _ => Ok(value),
    }
}

/// The transport and the address of a URL (RFC 7065).
fn split_url(url: &str) -> Result<(TurnTransport, &str), TurnLineFault> {
    let (is_tls, rest) = match (url.strip_prefix("turns:"), url.strip_prefix("turn:")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => {
            // A word in a wrong place may be a password.
            let end = url.find(['=', ':']).map_or(url.len(), |at| at + 1);
            let url = url.get(..end).unwrap_or_default().into();
            return Err(TurnLineFault::Scheme { url });
        }
    };
    let (address, query) = match rest.split_once('?') {
        Some((address, query)) => (address, Some(query)),
        None => (rest, None),
    };
    let transport = match (is_tls, query) {
        (true, None | Some("transport=tcp")) => TurnTransport::Tls,
        (false, None | Some("transport=udp")) => TurnTransport::Udp,
        (false, Some("transport=tcp")) => TurnTransport::Tcp,
        (_, Some(query)) => {
            let query = query.into();
            return Err(TurnLineFault::Transport { query });
        }
    };
    Ok((transport, address))
}

/// An address whose port may be missing.
fn parse_address(text: &str, transport: TurnTransport) -> Result<Target, TargetError> {
    let port = match transport {
        TurnTransport::Tls => TLS_PORT,
        TurnTransport::Udp | TurnTransport::Tcp => PORT,
    };
    match parse_target(text) {
        Err(TargetError {
            fault: TargetFault::NoPort,
            ..
        }) if !text.ends_with(':') => {
            parse_target(&format!("{text}:{port}")).map_err(|error| TargetError {
                text: text.to_owned(),
                ..error
            })
        }
        parsed => parsed,
    }
}

impl Config {
    pub(super) fn check_turn(&self) -> Result<(), ConfigError> {
        if self.turn.len() > MAX_TURN_SERVERS {
            let servers = self.turn.len();
            return Err(TurnError::Count { servers }.into());
        }
        match self.strategy {
            Strategy::Etcd(_) if !self.turn.is_empty() => Err(ConfigError::TurnWithEtcd),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdefABCDEF0123456789abcdef0123456789abcdef0123456789";

    fn parsed(text: &str) -> Result<Vec<TurnServer>, String> {
        TurnServer::parse_list(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_has_a_url_and_credentials_and_perhaps_a_key() {
        let text = format!(
            "\n turns:turn.example:443 username=1790000000:ann password=a/b+c= key={KEY}\r\n\n\
             turn:192.0.2.1 password=p username=u\nturn:[2001:db8::1]:7?transport=tcp username=u password=p\n\
             turns:turn.example?transport=tcp username=u password=p"
        );
        let servers = parsed(&text).expect("servers");
        let shown = |server: &TurnServer| (server.target.to_string(), server.transport);
        let expected = [
            ("turn.example:443".to_owned(), TurnTransport::Tls),
            ("192.0.2.1:3478".to_owned(), TurnTransport::Udp),
            ("[2001:db8::1]:7".to_owned(), TurnTransport::Tcp),
            ("turn.example:5349".to_owned(), TurnTransport::Tls),
        ];
        assert_eq!(servers.iter().map(shown).collect::<Vec<_>>(), expected);
        let first = &servers[0];
        assert_eq!(&*first.text, "turns:turn.example:443");
        assert_eq!(first.username, "1790000000:ann");
        assert_eq!(first.password.bytes(), b"a/b+c=");
        assert_eq!(first.key, Fingerprint::parse(KEY));
        assert_eq!(servers[1].key, None);
        assert!(!format!("{servers:?}").contains("a/b"));
    }

    #[test]
    fn an_error_names_the_line_and_its_fault_and_no_password() {
        let long = format!("turn:a username={} password=p", "u".repeat(509));
        let short_key = format!("turns:a username=u password=p key={}", &KEY[1..]);
        let key_of_udp = format!("turn:a username=u password=p key={KEY}");
        for (text, sentence) in [
            (
                " \n",
                "turn names 0 servers; give 1 to 4, one per line, or NULL for none",
            ),
            (
                "a\nb\nc\nd\ne",
                "turn names 5 servers; give 1 to 4, one per line, or NULL for none",
            ),
            (
                "\nstun:a:1",
                "turn, line 2: \"stun:\" begins with neither turn: nor turns:",
            ),
            (
                "turns:a?transport=udp username=u password=p",
                "turn, line 1: \"transport=udp\" is no transport of its scheme; turn: has ?transport=udp and ?transport=tcp, turns: has ?transport=tcp",
            ),
            (
                "turn:a\npassword=secret username=u",
                "turn, line 1: it has no username=; give username= and password= behind the address",
            ),
            (
                "password=secret turn:a",
                "turn, line 1: \"password=\" begins with neither turn: nor turns:",
            ),
            (
                "turn:a username=u password=my secret",
                "turn, line 1: a word behind the address has no equals sign; give username=, password= and perhaps key=, each without spaces",
            ),
            (
                "turn:a:0 username=u password=p",
                "turn, line 1: the address \"a:0\" has the port \"0\", which is not a number from 1 to 65535; give ip:port, [v6]:port or name:port",
            ),
            (
                "turn:a password=secret",
                "turn, line 1: it has no username=; give username= and password= behind the address",
            ),
            (
                "turn:a username=u",
                "turn, line 1: it has no password=; give username= and password= behind the address",
            ),
            (
                "turn:a username=u password=",
                "turn, line 1: the password has 0 bytes; allowed are 1 to 508",
            ),
            (
                &long,
                "turn, line 1: the username has 509 bytes; allowed are 1 to 508",
            ),
            (
                &short_key,
                "turn, line 1: key \"123456789abcdefABCDEF0123456789abcdef0123456789abcdef0123456789\" is not a fingerprint; give the 64 hexadecimal digits of the SHA-256 of the certificate's public key",
            ),
            (
                &key_of_udp,
                "turn, line 1: key= is of a certificate, which only turns: has",
            ),
            (
                "turn:a user=u password=secret",
                "turn, line 1: \"user\" is not known; give turn:host:port or turns:host:port, and behind it username=, password= and perhaps key=",
            ),
            (
                "turn:a password=secret password=other",
                "turn, line 1: password= is there twice; give it once",
            ),
        ] {
            assert_eq!(parsed(text), Err(sentence.to_owned()), "{text:?}");
        }
    }
}
