//! The command line.

use std::ffi::OsString;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use room_transport::rendezvous::DEFAULT_PORT;
use thiserror::Error;

use mmn_relay::Settings;
use mmn_relay::log::Level;

/// Smallest `--rate` and `--total`: a game in play takes more.
const MIN_RATE: u64 = 16 << 10;
/// Smallest `--monthly`.
const MIN_MONTHLY: u64 = 1 << 30;
/// Most links: each has a few kilobytes, and the longest `Present` of all are searched through for one that makes way.
const MAX_LINKS: usize = 65536;

pub(crate) const HELP: &str = "\
mmn-relay: where the members of rooms of meta_mystia_network meet that cannot reach each other

usage: mmn-relay [FLAG VALUE]...

  --listen ADDRESS   UDP address; [::] means all addresses of IPv6 and IPv4 [[::]:7843]
  --key-file FILE    the relay's private key; made if it is missing. Without it each start has a new key
  --token-file FILE  the token that members must know; made if it is missing. Without it all may enter
  --rate BYTES       a second, of one link, each way; 16K or more, 0 is no limit [512K]
  --total BYTES      a second, that the relay sends on in all; 16K or more, 0 is no limit [4M]
  --monthly BYTES    received and sent in a calendar month of UTC; 1G or more [no limit]
  --max-links COUNT  links of members, 1 to 65536 [4096]
  --metrics ADDRESS  TCP address of loopback for figures, at /metrics [none]
  --log LEVEL        error, warn, info or debug; debug names addresses [info]
  --version
  --help

BYTES may end in K, M, G or T: 1024 bytes, and so on.
";

/// The paths of files, and all other settings.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) settings: Settings,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) token_file: Option<PathBuf>,
}

/// The command line's wish.
#[derive(Debug)]
pub(crate) enum Asked {
    Start(Box<Arguments>),
    Help,
    Version,
}

/// Fault of the command line, in a sentence that names the flag, its value and the allowed values.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum Fault {
    #[error("{0:?} is no flag of mmn-relay; see --help")]
    Unknown(String),
    #[error("{0} is there twice; give it once")]
    Twice(&'static str),
    #[error("{0} needs a value; see --help")]
    NoValue(&'static str),
    #[error("{flag} is {value:?}; {allowed}")]
    Value {
        flag: &'static str,
        value: String,
        allowed: &'static str,
    },
}

const FLAGS: [&str; 9] = [
    "--listen",
    "--key-file",
    "--token-file",
    "--rate",
    "--total",
    "--monthly",
    "--max-links",
    "--metrics",
    "--log",
];

/// Reads the arguments after the program's name.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Asked, Fault> {
    let mut asked = Arguments {
        settings: Settings {
            listen: SocketAddr::from((Ipv6Addr::UNSPECIFIED, DEFAULT_PORT)),
            log: Some(Level::default()),
            ..Settings::default()
        },
        key_file: None,
        token_file: None,
    };
    let mut seen = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy().into_owned();
        match text.as_str() {
            "--help" | "-h" => return Ok(Asked::Help),
            "--version" | "-V" => return Ok(Asked::Version),
            _ => {}
        }
        let (name, joined) = match text.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (text.as_str(), None),
        };
        let known = FLAGS.into_iter().find(|flag| *flag == name);
        let flag = known.ok_or_else(|| Fault::Unknown(name.to_owned()))?;
        if seen.contains(&flag) {
            return Err(Fault::Twice(flag));
        }
        seen.push(flag);
        let value = joined.or_else(|| arguments.next());
        let value = value.filter(|value| !value.is_empty());
        set(&mut asked, flag, value.ok_or(Fault::NoValue(flag))?)?;
    }
    Ok(Asked::Start(Box::new(asked)))
}

fn set(asked: &mut Arguments, flag: &'static str, value: OsString) -> Result<(), Fault> {
    let text = value.to_string_lossy().into_owned();
    let not = |allowed| Fault::Value {
        flag,
        value: text.clone(),
        allowed,
    };
    let settings = &mut asked.settings;
    match flag {
        "--listen" => {
            let parsed = text.parse().ok();
            settings.listen = parsed.ok_or_else(|| not("give ip:port or [v6]:port"))?;
        }
        "--key-file" => asked.key_file = Some(value.into()),
        "--token-file" => asked.token_file = Some(value.into()),
        "--rate" => settings.rate = rate(&text).ok_or_else(|| not(RATES))?,
        "--total" => settings.total = rate(&text).ok_or_else(|| not(RATES))?,
        "--monthly" => {
            let quota = bytes(&text).filter(|quota| *quota >= MIN_MONTHLY);
            settings.monthly = Some(quota.ok_or_else(|| {
                not("give 1G or more bytes a month, as 500G or 1T; leave it out for no limit")
            })?);
        }
        "--max-links" => {
            let count = text.parse().ok();
            let count = count.filter(|count| (1..=MAX_LINKS).contains(count));
            settings.max_links = count.ok_or_else(|| not("give 1 to 65536"))?;
        }
        "--metrics" => {
            let address = text.parse().ok();
            let address = address.filter(|it: &SocketAddr| it.ip().to_canonical().is_loopback());
            settings.metrics =
                Some(address.ok_or_else(|| not("give an address of loopback, as 127.0.0.1:9843"))?);
        }
        _ => {
            let level = Level::parse(&text);
            settings.log = Some(level.ok_or_else(|| not("give error, warn, info or debug"))?);
        }
    }
    Ok(())
}

const RATES: &str = "give bytes a second from 16K to 4095M, or 0 for no limit";

fn rate(text: &str) -> Option<u32> {
    let rate = bytes(text).filter(|rate| *rate == 0 || *rate >= MIN_RATE)?;
    u32::try_from(rate).ok()
}

fn bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.chars().last()? {
        'K' | 'k' => (&text[..text.len() - 1], 10),
        'M' | 'm' => (&text[..text.len() - 1], 20),
        'G' | 'g' => (&text[..text.len() - 1], 30),
        'T' | 't' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Asked, String> {
        let arguments = line.split_whitespace().map(OsString::from);
        parse(arguments).map_err(|fault| fault.to_string())
    }

    fn started(line: &str) -> Arguments {
        match parsed(line) {
            Ok(Asked::Start(arguments)) => *arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_arguments_a_relay_listens_on_all_addresses() {
        let arguments = started("");
        let settings = arguments.settings;
        assert_eq!(settings.listen.to_string(), "[::]:7843");
        assert_eq!((settings.rate, settings.total), (512 << 10, 4 << 20));
        assert_eq!((settings.max_links, settings.monthly), (4096, None));
        assert_eq!((settings.metrics, settings.log), (None, Some(Level::Info)));
        assert_eq!((arguments.key_file, arguments.token_file), (None, None));
    }

    #[test]
    fn every_flag_is_read_and_documented() {
        let arguments = started(
            "--listen 192.0.2.1:1 --key-file=k --token-file t --rate 0 --total=16k --monthly 1T --max-links 7 \
             --metrics [::1]:9 --log debug",
        );
        let settings = arguments.settings;
        assert_eq!(settings.listen.to_string(), "192.0.2.1:1");
        assert_eq!(arguments.key_file, Some("k".into()));
        assert_eq!(arguments.token_file, Some("t".into()));
        assert_eq!((settings.rate, settings.total), (0, 16 << 10));
        assert_eq!(settings.monthly, Some(1 << 40));
        assert_eq!(settings.max_links, 7);
        assert_eq!(settings.metrics, "[::1]:9".parse().ok());
        assert_eq!(settings.log, Some(Level::Debug));
        for flag in FLAGS {
            assert!(HELP.contains(&format!("\n  {flag} ")), "{flag}");
        }
        assert!(matches!(parsed("--help"), Ok(Asked::Help)));
        assert!(matches!(parsed("--version"), Ok(Asked::Version)));
    }

    #[test]
    fn an_error_names_the_flag_the_value_and_what_is_allowed() {
        for (line, sentence) in [
            (
                "--lisen x",
                "\"--lisen\" is no flag of mmn-relay; see --help",
            ),
            ("7843", "\"7843\" is no flag of mmn-relay; see --help"),
            ("--rate", "--rate needs a value; see --help"),
            ("--rate=", "--rate needs a value; see --help"),
            ("--rate 1M --rate 1M", "--rate is there twice; give it once"),
            (
                "--listen 7843",
                "--listen is \"7843\"; give ip:port or [v6]:port",
            ),
            (
                "--rate 1K",
                "--rate is \"1K\"; give bytes a second from 16K to 4095M, or 0 for no limit",
            ),
            (
                "--total 4G",
                "--total is \"4G\"; give bytes a second from 16K to 4095M, or 0 for no limit",
            ),
            (
                "--total 9999999999999999T",
                "--total is \"9999999999999999T\"; give bytes a second from 16K to 4095M, or 0 for no limit",
            ),
            (
                "--rate +20000",
                "--rate is \"+20000\"; give bytes a second from 16K to 4095M, or 0 for no limit",
            ),
            (
                "--monthly 0",
                "--monthly is \"0\"; give 1G or more bytes a month, as 500G or 1T; leave it out for no limit",
            ),
            ("--max-links 0", "--max-links is \"0\"; give 1 to 65536"),
            (
                "--metrics 0.0.0.0:9843",
                "--metrics is \"0.0.0.0:9843\"; give an address of loopback, as 127.0.0.1:9843",
            ),
            (
                "--log loud",
                "--log is \"loud\"; give error, warn, info or debug",
            ),
        ] {
            assert_eq!(parsed(line).err().as_deref(), Some(sentence), "{line}");
        }
    }
}
