//! The targets of `ConnectToPeer`: `ip:port`, `[v6]:port` or `name:port`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

use crate::quoted::Quoted;

/// Longest host name, in bytes (RFC 1035 section 2.3.4, without the root's dot).
pub const MAX_HOST_NAME_BYTES: usize = 253;

/// A host and a port to dial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The machine.
    pub host: Host,
    /// The UDP port, never 0.
    pub port: u16,
}

impl Target {
    /// The socket address, unless a name has to be resolved first.
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        match self.host {
            Host::Ip(ip) => Some(SocketAddr::new(ip, self.port)),
            Host::Name(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

/// How a target names its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// By address.
    Ip(IpAddr),
    /// By a name that is still to be resolved.
    Name(String),
}

/// Why a text is not a target.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the address {} {fault}; give ip:port, [v6]:port or name:port",
    Quoted(text)
)]
pub struct TargetError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub fault: TargetFault,
}

/// What is wrong with an address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetFault {
    /// White space, anywhere.
    #[error("contains a blank")]
    Blank,
    /// A character of Unicode category Cc.
    #[error("contains the control character U+{code:04X}")]
    ControlCharacter {
        /// The code point found.
        code: u32,
    },
    /// No `:port` at the end.
    #[error("has no port")]
    NoPort,
    /// What follows the last colon is not a number from 1 to 65535.
    #[error("has the port {}, which is not a number from 1 to 65535", Quoted(port))]
    BadPort {
        /// The text in the port's place.
        port: String,
    },
    /// Nothing before the port.
    #[error("has an empty host")]
    EmptyHost,
    /// A colon in the host, outside of brackets.
    #[error("has a host with ':'; an IPv6 address must be in brackets")]
    ColonInHost,
    /// Brackets around something that is no IPv6 address, or in a wrong place.
    #[error("has brackets that do not hold an IPv6 address")]
    BadBrackets,
    /// Digits and dots that are no IPv4 address.
    #[error("has a host of digits and dots that is not an IPv4 address")]
    BadIpv4,
    /// The host name is too long.
    #[error("has a host name of {len} bytes; at most {MAX_HOST_NAME_BYTES} are allowed")]
    NameTooLong {
        /// The length found, in bytes.
        len: usize,
    },
}

/// Reads `text` as a target. Nothing is resolved.
///
/// # Errors
/// [`TargetError`] naming the first thing that is wrong.
pub fn parse_target(text: &str) -> Result<Target, TargetError> {
    parse(text).map_err(|fault| TargetError {
        text: beginning(text),
        fault,
    })
}

fn parse(text: &str) -> Result<Target, TargetFault> {
    for c in text.chars() {
        if c.is_control() {
            return Err(TargetFault::ControlCharacter { code: c.into() });
        }
        if c.is_whitespace() {
            return Err(TargetFault::Blank);
        }
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        // Its last group would otherwise pass for a port.
        return Err(TargetFault::ColonInHost);
    }
    let (host, port) = text.rsplit_once(':').ok_or(TargetFault::NoPort)?;
    if port.ends_with(']') || port.is_empty() {
        return Err(TargetFault::NoPort);
    }
    let host = parse_host(host)?;
    Ok(Target {
        host,
        port: parse_port(port)?,
    })
}

fn parse_host(host: &str) -> Result<Host, TargetFault> {
    if host.is_empty() {
        return Err(TargetFault::EmptyHost);
    }
    if host.contains(['[', ']']) {
        return host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .and_then(|v6| v6.parse::<Ipv6Addr>().ok())
            .map(|v6| Host::Ip(v6.into()))
            .ok_or(TargetFault::BadBrackets);
    }
    if host.contains(':') {
        return Err(TargetFault::ColonInHost);
    }
    if let Ok(v4) = host.parse::<Ipv4Addr>() {
        return Ok(Host::Ip(v4.into()));
    }
    if host
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        // Resolvers read "127.1" and "2130706433" each in their own way.
        return Err(TargetFault::BadIpv4);
    }
    if host.len() > MAX_HOST_NAME_BYTES {
        return Err(TargetFault::NameTooLong { len: host.len() });
    }
    Ok(Host::Name(host.to_owned()))
}

fn parse_port(port: &str) -> Result<u16, TargetFault> {
    // `parse` alone would take a sign.
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(number) if digits && number > 0 => Ok(number),
        _ => Err(TargetFault::BadPort {
            port: beginning(port),
        }),
    }
}

/// As much of `text` as an error keeps: [`Quoted`] shows less.
fn beginning(text: &str) -> String {
    text.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> TargetFault {
        parse_target(text).expect_err(text).fault
    }

    fn ip(text: &str) -> Target {
        let target = parse_target(text).expect(text);
        assert!(matches!(target.host, Host::Ip(_)), "{text}");
        assert_eq!(target.to_string(), text);
        target
    }

    #[test]
    fn addresses_and_names_are_told_apart() {
        assert_eq!(ip("192.168.0.7:4433").port, 4433);
        assert_eq!(ip("[::1]:1").port, 1);
        assert_eq!(ip("[fe80::1]:65535").port, 65535);
        for name in ["localhost", "game.example.org", "a-b_c", "9lives", "主机"] {
            assert_eq!(
                parse_target(&format!("{name}:99")),
                Ok(Target {
                    host: Host::Name(name.into()),
                    port: 99
                })
            );
        }
        let longest = "n".repeat(253);
        assert!(parse_target(&format!("{longest}:1")).is_ok());
    }

    #[test]
    fn each_malformed_address_is_told_what_is_wrong() {
        use TargetFault::*;
        let bad_port = |port: &str| BadPort { port: port.into() };
        for (text, expected) in [
            ("", NoPort),
            ("127.0.0.1", NoPort),
            ("host", NoPort),
            ("host:", NoPort),
            ("[::1]", NoPort),
            (":1", EmptyHost),
            ("h:0", bad_port("0")),
            ("h:65536", bad_port("65536")),
            ("h:-1", bad_port("-1")),
            ("h:+1", bad_port("+1")),
            ("h:99999999999999999999", bad_port("99999999999999999999")),
            ("h:http", bad_port("http")),
            ("::1:80", ColonInHost),
            ("fe80::1", ColonInHost),
            ("2001:db8:1:2:3:4:5:6:80", ColonInHost),
            ("http://host:80", ColonInHost),
            ("[]:1", BadBrackets),
            ("[::1:1", BadBrackets),
            ("[127.0.0.1]:1", BadBrackets),
            ("[::1]x:1", BadBrackets),
            ("[fe80::1%3]:1", BadBrackets),
            ("256.1.1.1:1", BadIpv4),
            ("127.1:1", BadIpv4),
            (" h:1", Blank),
            ("h:1 ", Blank),
            ("h :1", Blank),
            ("h\u{a0}:1", Blank),
            ("h\t:1", ControlCharacter { code: 9 }),
            ("h:1\n", ControlCharacter { code: 10 }),
        ] {
            assert_eq!(fault(text), expected, "{text:?}");
        }
        assert_eq!(
            fault(&format!("{}:1", "n".repeat(254))),
            NameTooLong { len: 254 }
        );
    }

    #[test]
    fn the_sentence_stays_short_whatever_is_passed() {
        let text = format!("h:{}", "9".repeat(60_000));
        let error = parse_target(&text).expect_err("a port of 60000 digits");
        assert!(error.to_string().len() < 400, "{error}");
        assert!(error.to_string().contains("not a number from 1 to 65535"));
    }
}
