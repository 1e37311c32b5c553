//! The targets of `ConnectToPeer`: `ip:port`, `[v6]:port` or `name:port`.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

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
            Host::LinkLocal { ip, zone } => Some(SocketAddrV6::new(ip, self.port, 0, zone).into()),
            Host::Name(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.socket_addr(), &self.host) {
            (_, Host::Name(name)) => write!(f, "{name}:{}", self.port),
            (Some(address), _) => address.fmt(f),
            (None, _) => Err(fmt::Error),
        }
    }
}

/// The machine of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// Its address.
    Ip(IpAddr),
    /// An address that is valid on one network only.
    LinkLocal {
        /// The address, of fe80::/10.
        ip: Ipv6Addr,
        /// The index of this machine's interface to that network, never 0.
        zone: u32,
    },
    /// A name that is not resolved yet.
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
    /// Its fault.
    pub fault: TargetFault,
}

/// Fault of an address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetFault {
    /// White space.
    #[error("contains a blank")]
    Blank,
    /// An invisible character, as programs add them to text of mixed directions.
    #[error("contains the invisible character U+{code:04X}")]
    Invisible {
        /// The code point found.
        code: u32,
    },
    /// A character of Unicode category Cc.
    #[error("contains the control character U+{code:04X}")]
    ControlCharacter {
        /// The code point found.
        code: u32,
    },
    /// No `:port` at the end.
    #[error("has no port")]
    NoPort,
    /// The text behind the last colon is not a number from 1 to 65535.
    #[error("has the port {}, which is not a number from 1 to 65535", Quoted(port))]
    BadPort {
        /// The text in the port's place.
        port: String,
    },
    /// The text before the port is empty.
    #[error("has an empty host")]
    EmptyHost,
    /// A colon in the host, outside of brackets.
    #[error("has a host with ':'; an IPv6 address must be in brackets")]
    ColonInHost,
    /// Brackets around text that is no IPv6 address, or in a wrong place.
    #[error("has brackets that do not hold an IPv6 address")]
    BadBrackets,
    /// A link-local IPv6 address, which several networks of this machine may have.
    #[error(
        "has a link-local IPv6 address without its zone; append this machine's interface to that network, as in [fe80::1%eth0]:4433"
    )]
    NoZone,
    /// A zone that this machine does not have.
    #[error(
        "has the zone {}, which is neither the name nor the number of a network interface of this machine",
        Quoted(zone)
    )]
    UnknownZone {
        /// The text in the zone's place.
        zone: String,
    },
    /// A zone beside an address that is valid everywhere.
    #[error("has a zone, which only link-local IPv6 addresses (fe80::/10) have")]
    ZoneOfGlobalAddress,
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

/// Reads `text` as a target. Resolves no name, but looks up zones among this machine's interfaces.
///
/// # Errors
/// [`TargetError`] for the first fault.
pub fn parse_target(text: &str) -> Result<Target, TargetError> {
    parse_with(text, interface_index)
}

/// [`parse_target`] for text that a player has pasted or typed, see [`tidy`].
///
/// # Errors
/// [`TargetError`] for the first fault.
pub fn parse_pasted_target(text: &str) -> Result<Target, TargetError> {
    parse_target(&tidy(text)).map_err(|error| TargetError {
        text: beginning(text),
        ..error
    })
}

/// `text` without blanks, line ends and invisible characters around it, and with full-width characters of East Asian
/// input methods as their ASCII equivalents.
fn tidy(text: &str) -> Cow<'_, str> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c.is_control() || is_invisible(c));
    if text.is_ascii() {
        return text.into();
    }
    text.chars().map(to_half_width).collect::<String>().into()
}

/// The ASCII character of a full-width form (U+FF01 to U+FF5E) or an ideographic full stop; other characters as they are.
pub(crate) fn to_half_width(c: char) -> char {
    const OFFSET: u32 = 0xFF01 - 0x21;
    match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - OFFSET).unwrap_or(c),
        '\u{3002}' => '.',
        _ => c,
    }
}

/// Characters without a width, as pasted texts contain them: joiners, direction marks, byte order marks.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

/// The index of this machine's interface with this name or number.
fn interface_index(zone: &str) -> Option<u32> {
    let number: Option<u32> = zone.parse().ok();
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let mut indices = interfaces.iter().filter_map(|interface| {
        let index = interface.index?;
        (interface.name == zone || number == Some(index)).then_some(index)
    });
    indices.next().filter(|index| *index != 0)
}

fn parse_with(text: &str, zones: impl Fn(&str) -> Option<u32>) -> Result<Target, TargetError> {
    parse(text, zones).map_err(|fault| TargetError {
        text: beginning(text),
        fault,
    })
}

fn parse(text: &str, zones: impl Fn(&str) -> Option<u32>) -> Result<Target, TargetFault> {
    for c in text.chars() {
        if c.is_control() {
            return Err(TargetFault::ControlCharacter { code: c.into() });
        }
        if c.is_whitespace() {
            return Err(TargetFault::Blank);
        }
        if is_invisible(c) {
            return Err(TargetFault::Invisible { code: c.into() });
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
    let host = parse_host(host, zones)?;
    Ok(Target {
        host,
        port: parse_port(port)?,
    })
}

fn parse_host(host: &str, zones: impl Fn(&str) -> Option<u32>) -> Result<Host, TargetFault> {
    if host.is_empty() {
        return Err(TargetFault::EmptyHost);
    }
    if host.contains(['[', ']']) {
        let inside = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        return parse_ipv6(inside.ok_or(TargetFault::BadBrackets)?, zones);
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

/// An IPv6 address, with its zone (RFC 4007 section 11) where it is link-local.
fn parse_ipv6(text: &str, zones: impl Fn(&str) -> Option<u32>) -> Result<Host, TargetFault> {
    let (ip, zone) = match text.split_once('%') {
        Some((ip, zone)) => (ip, Some(zone)),
        None => (text, None),
    };
    let ip: Ipv6Addr = ip.parse().map_err(|_| TargetFault::BadBrackets)?;
    match (ip.is_unicast_link_local(), zone) {
        (false, None) => Ok(Host::Ip(ip.into())),
        (false, Some(_)) => Err(TargetFault::ZoneOfGlobalAddress),
        (true, None) => Err(TargetFault::NoZone),
        (true, Some(zone)) => match zones(zone) {
            Some(index) => Ok(Host::LinkLocal { ip, zone: index }),
            None => Err(TargetFault::UnknownZone {
                zone: beginning(zone),
            }),
        },
    }
}

fn parse_port(port: &str) -> Result<u16, TargetFault> {
    // `parse` alone would accept a sign.
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(number) if digits && number > 0 => Ok(number),
        _ => Err(TargetFault::BadPort {
            port: beginning(port),
        }),
    }
}

/// The beginning of `text` that an error keeps: [`Quoted`] shows less.
fn beginning(text: &str) -> String {
    text.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with one interface.
    fn parsed(text: &str) -> Result<Target, TargetError> {
        parse_with(text, |zone| matches!(zone, "eth0" | "2").then_some(2))
    }

    fn fault(text: &str) -> TargetFault {
        parsed(text).expect_err(text).fault
    }

    fn ip(text: &str) -> Target {
        let target = parse_target(text).expect(text);
        assert!(matches!(target.host, Host::Ip(_)), "{text}");
        assert_eq!(target.to_string(), text);
        target
    }

    #[test]
    fn addresses_and_names_are_distinguished() {
        assert_eq!(ip("192.168.0.7:4433").port, 4433);
        assert_eq!(ip("[::1]:1").port, 1);
        assert_eq!(ip("[2001:db8::1]:65535").port, 65535);
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
    fn each_malformed_address_gets_its_own_error() {
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
            ("[fe80::1]:1", NoZone),
            ("[fe80::1%]:1", UnknownZone { zone: "".into() }),
            (
                "[fe80::1%eth9]:1",
                UnknownZone {
                    zone: "eth9".into(),
                },
            ),
            ("[fe80::1%3]:1", UnknownZone { zone: "3".into() }),
            ("[2001:db8::1%eth0]:1", ZoneOfGlobalAddress),
            ("[%eth0]:1", BadBrackets),
            ("h\u{202c}:1", Invisible { code: 0x202C }),
            ("h\u{ff1a}1", NoPort),
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
    fn a_link_local_address_keeps_its_interface() {
        let expected = SocketAddrV6::new("fe80::1".parse().expect("IPv6"), 7, 0, 2);
        for text in ["[fe80::1%eth0]:7", "[fe80::1%2]:7"] {
            let target = parsed(text).expect(text);
            assert_eq!(target.socket_addr(), Some(expected.into()), "{text}");
            assert_eq!(target.to_string(), "[fe80::1%2]:7");
        }
    }

    #[test]
    fn a_zone_is_an_interface_of_this_machine() {
        let interfaces = if_addrs::get_if_addrs().expect("interfaces");
        let interface = interfaces.first().expect("at least loopback");
        assert_eq!(interface_index(&interface.name), interface.index);
        let number = interface.index.expect("a number").to_string();
        assert_eq!(interface_index(&number), interface.index);
        for other in ["", "0", "4294967295", "-1", "none"] {
            assert_eq!(interface_index(other), None, "{other}");
        }
    }

    #[test]
    fn pasted_text_is_read_as_it_was_meant() {
        for (text, meant) in [
            (" 192.168.0.7:4433\r\n", "192.168.0.7:4433"),
            ("\u{202a}192.168.0.7:4433\u{202c}", "192.168.0.7:4433"),
            ("\u{feff}\thost:1\u{3000}", "host:1"),
            ("192.168.0.7\u{ff1a}4433", "192.168.0.7:4433"),
            ("１９２。１６８．０．７：４４３３", "192.168.0.7:4433"),
            ("［::1］：5", "[::1]:5"),
            ("主机：99", "主机:99"),
        ] {
            let target = parse_pasted_target(text).expect(text);
            assert_eq!(Ok(target), parse_target(meant), "{text:?}");
        }
    }

    #[test]
    fn blanks_and_line_ends_inside_pasted_text_are_named() {
        let fault = |text: &str| parse_pasted_target(text).expect_err(text).fault;
        assert_eq!(fault("192.168.0.7 :4433"), TargetFault::Blank);
        assert_eq!(
            fault("a:1\nb:2"),
            TargetFault::ControlCharacter { code: 10 }
        );
        assert_eq!(fault(" \r\n"), TargetFault::NoPort);
        let error = parse_pasted_target("host：\n").expect_err("no port");
        assert_eq!(
            error.text, "host：\n",
            "the sentence quotes what the host passed"
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
