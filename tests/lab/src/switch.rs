//! Carries Ethernet frames between TAP devices, each direction over a [`Line`]. One thread, no allocation per frame.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::command::{Command, CommandError, Verb, parse};
use crate::line::{Fate, Line};

/// The largest frame of a TAP device at its usual MTU, with room to spare.
const MAX_FRAME_BYTES: usize = 2048;
/// Frames under way in the whole lab: 50 Mbit/s at a second of delay is 4,200. Further ones are dropped.
const MAX_FRAMES: usize = 65_536;
/// Frames read from one device before other devices and due frames have their turn.
const READ_BATCH: usize = 64;
/// An arrival later than this counts as late.
const LATE: Duration = Duration::from_millis(1);

/// The EtherType of address resolution (RFC 826).
const ARP: [u8; 2] = [0x08, 0x06];

type Mac = [u8; 6];

/// The switch's end of a host's cable.
pub(crate) struct Port<Device> {
    pub(crate) name: String,
    pub(crate) device: Device,
}

pub(crate) struct Switch<Device> {
    ports: Vec<Port<Device>>,
    /// From the port with the first index to the port with the second.
    lines: Vec<Vec<Line>>,
    /// The port behind which an address was seen last.
    addresses: HashMap<Mac, usize>,
    frames: Vec<Frame>,
    free: Vec<usize>,
    arrivals: BinaryHeap<Reverse<Arrival>>,
    /// Orders arrivals at equal times.
    arrival_count: u64,
    began: Instant,
}

#[derive(Clone, Copy)]
struct Frame {
    bytes: [u8; MAX_FRAME_BYTES],
    length: usize,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: Duration,
    number: u64,
    from: usize,
    to: usize,
    frame: usize,
}

impl<Device: AsFd> Switch<Device> {
    pub(crate) fn new(ports: Vec<Port<Device>>, seed: u64) -> Self {
        // Each direction draws from its own stream, so that traffic on one does not change another.
        let line = |from: usize, to: usize| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream((from * ports.len() + to) as u64);
            Line::new(random)
        };
        let range = 0..ports.len();
        let lines = range
            .clone()
            .map(|from| range.clone().map(|to| line(from, to)).collect())
            .collect();
        Self {
            ports,
            lines,
            addresses: HashMap::new(),
            frames: Vec::new(),
            free: Vec::new(),
            arrivals: BinaryHeap::new(),
            arrival_count: 0,
            began: Instant::now(),
        }
    }

    /// Runs until the commands end.
    pub(crate) fn run(
        &mut self,
        commands: BorrowedFd<'_>,
        mut answer: impl FnMut(String) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut pending = Vec::new();
        let mut ready = vec![false; self.ports.len()];
        loop {
            self.deliver_due();
            let timeout = self.arrivals.peek().map(|Reverse(first)| {
                let left = first.at.saturating_sub(self.began.elapsed());
                Timespec {
                    tv_sec: left.as_secs() as i64,
                    tv_nsec: left.subsec_nanos().into(),
                }
            });
            let mut fds = vec![PollFd::new(&commands, PollFlags::IN)];
            fds.extend(
                self.ports
                    .iter()
                    .map(|port| PollFd::new(&port.device, PollFlags::IN)),
            );
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let commanded = !fds[0].revents().is_empty();
            for (ready, fd) in ready.iter_mut().zip(&fds[1..]) {
                *ready = fd.revents().contains(PollFlags::IN);
            }
            drop(fds);
            for (port, ready) in ready.iter().enumerate() {
                if *ready {
                    self.read(port)?;
                }
            }
            if commanded {
                let mut bytes = [0; 4096];
                match rustix::io::read(commands, &mut bytes)? {
                    0 => return Ok(()),
                    length => pending.extend_from_slice(&bytes[..length]),
                }
                while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = pending.drain(..=end).collect();
                    answer(match self.obey(&String::from_utf8_lossy(&line)) {
                        Ok(counts) => format!("ok{counts}"),
                        Err(error) => format!("error {error}"),
                    })?;
                }
            }
        }
    }

    fn obey(&mut self, text: &str) -> Result<String, CommandError> {
        let Command { from, to, verb } = parse(text)?;
        let (from, to) = (self.indices(from)?, self.indices(to)?);
        let mut counts = String::new();
        for from in from {
            for to in to.clone().filter(|to| *to != from) {
                let line = &mut self.lines[from][to];
                match &verb {
                    Verb::Set(changes) => {
                        for change in changes {
                            change.apply(&mut line.settings);
                        }
                    }
                    Verb::Clear => line.settings = crate::line::Settings::default(),
                    Verb::Count => {
                        let (one, other) = (&self.ports[from].name, &self.ports[to].name);
                        let counters = &line.counters;
                        counts += &format!(
                            " {one}>{other}:delivered={},bytes={},lost={},dropped={},duplicated={},cut={},late={}",
                            counters.delivered,
                            counters.delivered_bytes,
                            counters.lost,
                            counters.dropped,
                            counters.duplicated,
                            counters.cut,
                            counters.late,
                        );
                    }
                }
            }
        }
        Ok(counts)
    }

    fn indices(&self, name: Option<String>) -> Result<std::ops::Range<usize>, CommandError> {
        let Some(name) = name else {
            return Ok(0..self.ports.len());
        };
        match self.ports.iter().position(|port| port.name == name) {
            Some(index) => Ok(index..index + 1),
            None => Err(CommandError::UnknownHost(name)),
        }
    }

    /// Reads the frames that a host has sent.
    fn read(&mut self, from: usize) -> io::Result<()> {
        for _ in 0..READ_BATCH {
            let Some(frame) = self.free_frame() else {
                return Ok(());
            };
            match rustix::io::read(&self.ports[from].device, &mut self.frames[frame].bytes) {
                Ok(length) => {
                    self.frames[frame].length = length;
                    self.forward(from, frame);
                    self.free.push(frame);
                }
                Err(error) => {
                    self.free.push(frame);
                    return match error {
                        Errno::AGAIN | Errno::INTR => Ok(()),
                        // The host's interface is down.
                        Errno::IO => Ok(()),
                        error => Err(error.into()),
                    };
                }
            }
        }
        Ok(())
    }

    /// Puts a frame on the lines to its receivers. Each gets a copy.
    fn forward(&mut self, from: usize, frame: usize) {
        let (to, source): (Mac, Mac) = match self.frames[frame].bytes.first_chunk::<12>() {
            Some([a, b, c, d, e, f, source @ ..]) => ([*a, *b, *c, *d, *e, *f], *source),
            None => return,
        };
        self.addresses.insert(source, from);
        let group = to[0] & 1 != 0;
        match self.addresses.get(&to) {
            Some(to) if !group => self.put(from, *to, frame),
            // A group, or an unknown address.
            _ => (0..self.ports.len()).for_each(|to| self.put(from, to, frame)),
        }
    }

    fn put(&mut self, from: usize, to: usize, frame: usize) {
        if from == to {
            return;
        }
        let now = self.began.elapsed();
        let Frame { bytes, length } = self.frames[frame];
        let line = &mut self.lines[from][to];
        let fate = if bytes[12..14] == ARP {
            line.resolve(now)
        } else {
            line.send(now, length)
        };
        let Fate::Arrives(at, duplicate) = fate else {
            return;
        };
        for at in [Some(at), duplicate].into_iter().flatten() {
            let Some(copy) = self.free_frame() else {
                self.lines[from][to].counters.dropped += 1;
                return;
            };
            self.frames[copy] = Frame { bytes, length };
            self.arrival_count += 1;
            self.arrivals.push(Reverse(Arrival {
                at,
                number: self.arrival_count,
                from,
                to,
                frame: copy,
            }));
        }
    }

    /// None if [`MAX_FRAMES`] are under way.
    fn free_frame(&mut self) -> Option<usize> {
        if let Some(frame) = self.free.pop() {
            return Some(frame);
        }
        if self.frames.len() == MAX_FRAMES {
            return None;
        }
        self.frames.push(Frame {
            bytes: [0; MAX_FRAME_BYTES],
            length: 0,
        });
        Some(self.frames.len() - 1)
    }

    fn deliver_due(&mut self) {
        while let Some(Reverse(first)) = self.arrivals.peek() {
            let now = self.began.elapsed();
            if first.at > now {
                return;
            }
            let Some(Reverse(arrival)) = self.arrivals.pop() else {
                return;
            };
            self.deliver(&arrival, now);
            self.free.push(arrival.frame);
        }
    }

    fn deliver(&mut self, arrival: &Arrival, now: Duration) {
        let line = &mut self.lines[arrival.from][arrival.to];
        if line.settings.cut {
            line.counters.cut += 1;
            return;
        }
        let Frame { bytes, length } = &self.frames[arrival.frame];
        // Refused if the host's interface is down or has no carrier: that counts as a cut, too.
        match rustix::io::write(&self.ports[arrival.to].device, &bytes[..*length]) {
            Ok(_) => {
                line.counters.delivered += 1;
                line.counters.delivered_bytes += *length as u64;
            }
            Err(_) => line.counters.cut += 1,
        }
        if now - arrival.at > LATE {
            line.counters.late += 1;
        }
    }
}
