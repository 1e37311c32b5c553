//! The lines by which a script controls the switch.
//!
//! ```text
//! set FROM TO KEY=VALUE...    answers "ok"; settings that are not named stay
//! clear FROM TO               a perfect line again
//! count FROM TO               answers "ok delivered=N ..."
//! ```
//!
//! FROM and TO are names of hosts, or `*`. An invalid command gets the answer "error SENTENCE", and changes nothing.

use std::time::Duration;

use thiserror::Error;

use crate::line::Settings;

/// A command and its hosts; None stands for all.
#[derive(Debug, PartialEq)]
pub(crate) struct Command {
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) verb: Verb,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Verb {
    Set(Vec<Change>),
    Clear,
    Count,
}

/// One setting of a direction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    Delay(Duration),
    Jitter(Duration),
    Loss(f64),
    Duplicate(f64),
    Reorder(f64),
    Rate(Option<u64>),
    Queue(u64),
    Cut(bool),
}

impl Change {
    pub(crate) fn apply(&self, settings: &mut Settings) {
        match *self {
            Self::Delay(delay) => settings.delay = delay,
            Self::Jitter(jitter) => settings.jitter = jitter,
            Self::Loss(loss) => settings.loss = loss,
            Self::Duplicate(duplicate) => settings.duplicate = duplicate,
            Self::Reorder(reorder) => settings.reorder = reorder,
            Self::Rate(rate) => settings.bits_per_second = rate,
            Self::Queue(bytes) => settings.queue_bytes = bytes,
            Self::Cut(cut) => settings.cut = cut,
        }
    }
}

#[derive(Debug, Error, PartialEq)]
pub(crate) enum CommandError {
    #[error("expected set, clear or count, then FROM and TO: {0:?}")]
    Form(String),
    #[error("no such setting: {0:?}")]
    UnknownSetting(String),
    #[error("{0} takes {1}")]
    Value(&'static str, &'static str),
    #[error("no such host: {0:?}")]
    UnknownHost(String),
}

pub(crate) fn parse(text: &str) -> Result<Command, CommandError> {
    let form = || CommandError::Form(text.to_owned());
    let mut words = text.split_whitespace();
    let verb = words.next().ok_or_else(form)?;
    let mut host = || match words.next() {
        None => Err(form()),
        Some("*") => Ok(None),
        Some(name) => Ok(Some(name.to_owned())),
    };
    let (from, to) = (host()?, host()?);
    let verb = match verb {
        "set" => Verb::Set(words.by_ref().map(change).collect::<Result<_, _>>()?),
        "clear" => Verb::Clear,
        "count" => Verb::Count,
        _ => return Err(form()),
    };
    if words.next().is_some() {
        return Err(form());
    }
    Ok(Command { from, to, verb })
}

fn change(word: &str) -> Result<Change, CommandError> {
    let unknown = || CommandError::UnknownSetting(word.to_owned());
    let (key, value) = word.split_once('=').ok_or_else(unknown)?;
    Ok(match key {
        "delay_ms" => Change::Delay(milliseconds("delay_ms", value)?),
        "jitter_ms" => Change::Jitter(milliseconds("jitter_ms", value)?),
        "loss" => Change::Loss(probability("loss", value)?),
        "duplicate" => Change::Duplicate(probability("duplicate", value)?),
        "reorder" => Change::Reorder(probability("reorder", value)?),
        "rate_kbit" => match whole("rate_kbit", value)? {
            0 => Change::Rate(None),
            kilobits => Change::Rate(Some(kilobits.saturating_mul(1000))),
        },
        "queue_bytes" => Change::Queue(whole("queue_bytes", value)?),
        "cut" => Change::Cut(whole("cut", value)? != 0),
        _ => return Err(unknown()),
    })
}

fn milliseconds(key: &'static str, value: &str) -> Result<Duration, CommandError> {
    value
        .parse()
        .ok()
        .filter(|ms: &f64| (0.0..=60_000.0).contains(ms))
        .map(|ms| Duration::from_secs_f64(ms / 1000.0))
        .ok_or(CommandError::Value(key, "milliseconds from 0 to 60000"))
}

fn probability(key: &'static str, value: &str) -> Result<f64, CommandError> {
    value
        .parse()
        .ok()
        .filter(|p: &f64| (0.0..=1.0).contains(p))
        .ok_or(CommandError::Value(key, "a probability from 0 to 1"))
}

fn whole(key: &'static str, value: &str) -> Result<u64, CommandError> {
    value
        .parse()
        .map_err(|_| CommandError::Value(key, "a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_directions_and_settings() {
        let command =
            parse("set ann * delay_ms=2.5 loss=0.02 rate_kbit=50000 cut=1").expect("it is valid");
        assert_eq!((command.from.as_deref(), command.to), (Some("ann"), None));
        assert_eq!(
            command.verb,
            Verb::Set(vec![
                Change::Delay(Duration::from_micros(2500)),
                Change::Loss(0.02),
                Change::Rate(Some(50_000_000)),
                Change::Cut(true),
            ])
        );
    }

    #[test]
    fn an_invalid_command_is_refused() {
        for text in [
            "",
            "set",
            "set ann",
            "sit ann bob",
            "count ann bob more",
            "set ann bob loss",
            "set ann bob loss=2",
            "set ann bob loss=NaN",
            "set ann bob delay_ms=-1",
            "set ann bob rate_kbit=x",
            "set ann bob weather=1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
