//! The trace of a run, in the format of real rooms (`docs/pictures.md`): a section for each incarnation of each peer, and one for
//! facts that only a simulator knows.

use std::fmt::Write as _;

use thiserror::Error;

use room_core::id::PeerId;
use room_core::node::{CommandError, Input, Node, Output};
use room_core::time::Time;
use room_core::trace::{Entry, Header, Tracer, VERSION, What};

/// The wall clock of every simulated room when its time is 0, in microseconds since 1970.
pub const CLOCK_US: u64 = 1_700_000_000_000_000;

/// One incarnation of one peer, or the simulator's own facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub header: Header,
    pub entries: Vec<Entry>,
}

/// Collects the events of a simulated room.
#[derive(Debug)]
pub struct Recorder {
    routine: u64,
    started: Time,
    /// The simulator's own facts come first.
    sections: Vec<Section>,
    /// By slot: its tracer and its section.
    running: Vec<Option<(Tracer, usize)>>,
}

impl Recorder {
    /// A recorder of a room of `size` places that starts now. The larger the room, the fewer of its routine messages it keeps:
    /// their number grows with the pairs.
    pub fn new(seed: u64, size: usize, now: Time) -> Self {
        let pairs = (size * size) as u64;
        let routine = (pairs / 100).max(2);
        let header = Header {
            trace: VERSION,
            peer: None,
            incarnation: None,
            origin_us: CLOCK_US + now.as_micros(),
            routine,
            by: "simulator".into(),
            seed: Some(seed),
        };
        Self {
            routine,
            started: now,
            sections: vec![Section {
                header,
                entries: Vec::new(),
            }],
            running: Vec::new(),
        }
    }

    /// A process starts.
    pub fn start(&mut self, slot: usize, now: Time, node: &Node) {
        let tracer = Tracer::new(now, node, self.routine);
        let header = tracer.header(node, CLOCK_US + now.as_micros(), "simulator");
        if self.running.len() <= slot {
            self.running.resize_with(slot + 1, || None);
        }
        self.running[slot] = Some((tracer, self.sections.len()));
        self.sections.push(Section {
            header,
            entries: Vec::new(),
        });
    }

    /// An input that a node is about to take.
    pub fn input(&mut self, slot: usize, now: Time, node: &Node, input: &Input) {
        if let Some(Some((tracer, _))) = self.running.get_mut(slot) {
            tracer.input(now, node, input);
        }
    }

    /// The node's outcome.
    pub fn outcome(
        &mut self,
        slot: usize,
        now: Time,
        node: &Node,
        result: &Result<(), CommandError>,
        outputs: &[Output],
    ) {
        let Some(Some((tracer, section))) = self.running.get_mut(slot) else {
            return;
        };
        if let Err(error) = result {
            tracer.refused(now, error);
        }
        tracer.state(now, node);
        for output in outputs {
            tracer.output(now, node, output);
        }
        self.sections[*section].entries.append(&mut tracer.take());
    }

    /// An event of a process.
    pub fn note(&mut self, slot: usize, now: Time, what: What) {
        let Some(place) = self.running.get_mut(slot) else {
            return;
        };
        let ends = matches!(what, What::Crashed | What::Stopped | What::End);
        if let Some((tracer, section)) = place {
            tracer.add(now, what);
            self.sections[*section].entries.append(&mut tracer.take());
        }
        if ends {
            *place = None;
        }
    }

    /// An event of the room.
    pub fn room(&mut self, now: Time, what: What) {
        let at = now.as_micros().saturating_sub(self.started.as_micros());
        self.sections[0].entries.push(Entry { at, what });
    }

    /// The whole trace, at the end of the run.
    pub fn finish(mut self, now: Time) -> Vec<Section> {
        for slot in 0..self.running.len() {
            self.note(slot, now, What::End);
        }
        self.room(now, What::End);
        self.sections
    }
}

/// The lines of a trace file.
pub fn to_lines(sections: &[Section]) -> String {
    let mut text = String::new();
    let json = "numbers, words and names are JSON";
    for section in sections {
        let header = serde_json::to_string(&section.header).expect(json);
        let _ = writeln!(text, "{header}");
        for entry in &section.entries {
            let entry = serde_json::to_string(entry).expect(json);
            let _ = writeln!(text, "{entry}");
        }
    }
    text
}

/// The reason why a text is no trace.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error("it is empty")]
    Empty,
    #[error("line 1 is no header of a trace ({0})")]
    NoHeader(serde_json::Error),
    #[error("line {line} is neither a header nor an entry of a trace ({error})")]
    Line {
        line: usize,
        error: serde_json::Error,
    },
    #[error("line {line}: version {version} of the format; this program reads version {VERSION}")]
    Version { line: usize, version: u32 },
}

/// Reads the lines of a trace file. An incarnation that ended in a crash may have half a line at its end, which is left out.
///
/// # Errors
/// [`ReadError`] names the first invalid line.
pub fn from_lines(text: &str) -> Result<Vec<Section>, ReadError> {
    let mut sections: Vec<Section> = Vec::new();
    let mut torn: Option<ReadError> = None;
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        if line.trim().is_empty() {
            continue;
        }
        if let Ok(header) = serde_json::from_str::<Header>(line) {
            if header.trace != VERSION {
                return Err(ReadError::Version {
                    line: line_number,
                    version: header.trace,
                });
            }
            torn = None;
            sections.push(Section {
                header,
                entries: Vec::new(),
            });
            continue;
        }
        if let Some(error) = torn {
            return Err(error);
        }
        let entry = serde_json::from_str::<Entry>(line);
        match (sections.last_mut(), entry) {
            (None, entry) => {
                let error = serde_json::from_str::<Header>(line).err();
                let error = error.or(entry.err()).map(ReadError::NoHeader);
                return Err(error.unwrap_or(ReadError::Empty));
            }
            (Some(section), Ok(entry)) => section.entries.push(entry),
            (Some(_), Err(error)) => {
                torn = Some(ReadError::Line {
                    line: line_number,
                    error,
                });
            }
        }
    }
    match (sections.is_empty(), torn) {
        (true, _) => Err(ReadError::Empty),
        // A line with its end of line was written completely.
        (false, Some(error)) if text.ends_with('\n') => Err(error),
        (false, _) => Ok(sections),
    }
}

/// The peers of a trace, in the order of their names.
pub fn peers(sections: &[Section]) -> Vec<PeerId> {
    let mut peers: Vec<PeerId> = sections
        .iter()
        .filter_map(|section| section.header.peer.clone())
        .collect();
    peers.sort();
    peers.dedup();
    peers
}
