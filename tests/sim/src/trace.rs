//! The events of a run, as lines; formatted only if they are needed.

use crate::decoded;
use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};

use room_core::election::raft::wire::{Beat, ElectionMessage, LiveLeader, Memory, Pulse, Side};
use room_core::election::record::{Record, Stamp};
use room_core::id::PeerId;
use room_core::time::Time;
use room_core::wire::{Envelope, Message, Opaque};

/// Lines of a traced run.
#[derive(Debug, Default)]
pub struct Trace {
    lines: Option<Vec<String>>,
}

impl Trace {
    /// Keeps nothing.
    pub fn off() -> Self {
        Self { lines: None }
    }

    /// Keeps every line.
    pub fn on() -> Self {
        Self {
            lines: Some(Vec::new()),
        }
    }

    /// Adds a line, if the trace is on.
    pub fn add(&mut self, now: Time, line: fmt::Arguments<'_>) {
        if let Some(lines) = &mut self.lines {
            let micros = now.as_micros();
            lines.push(format!(
                "{:4}.{:06} {line}",
                micros / 1_000_000,
                micros % 1_000_000
            ));
        }
    }

    /// All lines.
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }

    /// A hash over all lines (P17).
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.lines().hash(&mut hasher);
        hasher.finish()
    }
}

/// A message in few characters; a record is `override_seq.assigner/term/leader`, with `!` when assigned.
pub struct Brief<'a, T>(pub &'a T);

fn name(id: Option<&PeerId>) -> &str {
    id.map_or("-", PeerId::as_str)
}

impl fmt::Display for Brief<'_, Stamp> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stamp { epoch, term } = self.0;
        if epoch.override_seq > 0 {
            write!(
                f,
                "{}.{}/",
                epoch.override_seq,
                name(epoch.assigner.as_ref())
            )?;
        }
        write!(f, "{term}")
    }
}

impl fmt::Display for Brief<'_, Record> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.0.assigned { "!" } else { "" };
        let leader = name(self.0.leader.as_ref());
        write!(f, "{}/{leader}{mark}", Brief(&self.0.stamp))
    }
}

impl fmt::Display for Brief<'_, Option<LiveLeader>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(live) => write!(
                f,
                "live {} weight {} led {} rest {}",
                live.id, live.weight, live.led_ms, live.rest_ms
            ),
            None => f.write_str("none live"),
        }
    }
}

impl fmt::Display for Brief<'_, Side> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lone = if self.0.lone { " lone" } else { "" };
        write!(
            f,
            "({} {}{lone})",
            Brief(&self.0.record),
            Brief(&self.0.live)
        )
    }
}

impl fmt::Display for Brief<'_, Opaque> {
    /// A Hello's part.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match decoded::side(self.0) {
            Some(side) => write!(f, "{}", Brief(&side)),
            None => write!(f, "{:?}", self.0),
        }
    }
}

impl fmt::Display for Brief<'_, Envelope> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(stamp) = decoded::stamp(&self.0.message) {
            write!(f, "[{}] ", Brief(&stamp))?;
        }
        match &self.0.message {
            Message::PeerList(entries) => {
                write!(f, "PeerList")?;
                for entry in entries {
                    let addresses = entry.addresses.iter().map(ToString::to_string);
                    let addresses: Vec<_> = addresses.collect();
                    write!(f, " {}@{}", entry.id, addresses.join(","))?;
                }
                Ok(())
            }
            message @ Message::Heartbeat(heartbeat) => {
                write!(f, "beat {} ", heartbeat.seq)?;
                match decoded::beat(message) {
                    None => write!(f, "leads {:?}", decoded::leads(message)),
                    Some(beat) => write!(f, "{}", Brief(&beat)),
                }
            }
            message @ Message::Election(_) => match decoded::election(message) {
                Some(message) => write!(f, "{}", Brief(&message)),
                None => write!(f, "{:?}", decoded::claimed(message)),
            },
            other => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Display for Brief<'_, Beat> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.pulse {
            Pulse::Follows { record, live } => {
                write!(f, "follows {} live {live}", Brief(record))?;
            }
            Pulse::Leads {
                record,
                weight,
                led_ms,
                ..
            } => write!(f, "LEADS {} weight {weight} led {led_ms}", Brief(record))?,
        }
        let Some(memory) = &self.0.memory else {
            return Ok(());
        };
        let Memory {
            since,
            remembered,
            sure,
        } = memory;
        let writes = self.0.writes;
        write!(
            f,
            " writes {writes} since {since} sure {sure} remembers {remembered}"
        )
    }
}

impl fmt::Display for Brief<'_, ElectionMessage> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ElectionMessage as M;
        match self.0 {
            M::PreVoteResponse {
                round,
                granted,
                record,
                live,
                ..
            } => {
                write!(
                    f,
                    "PreVoteResponse {round} {granted} {} {}",
                    Brief(record),
                    Brief(live)
                )
            }
            M::VoteResponse {
                round,
                granted,
                record,
                live,
                ..
            } => {
                write!(
                    f,
                    "VoteResponse {round} {granted} {} {}",
                    Brief(record),
                    Brief(live)
                )
            }
            M::LeaderAssign { record, seq } => write!(f, "LeaderAssign {seq} {}", Brief(record)),
            M::LeaderAssignAck {
                seq,
                accepted,
                record,
            } => {
                write!(f, "LeaderAssignAck {seq} {accepted} {}", Brief(record))
            }
            M::Nack { record, live } => write!(f, "Nack {} {}", Brief(record), Brief(live)),
            M::ForeignSide { peer, ours, theirs } => {
                write!(
                    f,
                    "ForeignSide {peer} ours {} theirs {}",
                    Brief(ours),
                    Brief(theirs)
                )
            }
            other => write!(f, "{other:?}"),
        }
    }
}
