//! Trace of a room as a file: derived on the network thread, written on a thread of its own.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::core::node::{CommandError, Input, Node, Output};
use crate::core::time::{Duration, Time};
use crate::core::trace::{DEFAULT_ROUTINE, Entry, Header, Tracer, What};
use crate::fork;

/// Longest trace, in bytes.
const LIMIT: u64 = 256 * 1024 * 1024;
/// Longest last line of a full file, in bytes.
const LAST_LINE: u64 = 128;
/// Batches that may wait for the disk, one batch per input.
const QUEUE: usize = 1024;

/// The network thread's end of a trace. Costs one test if there is none.
#[derive(Default)]
pub(super) struct Trace(Option<Running>);

struct Running {
    tracer: Tracer,
    dropped: u64,
    queue: Option<SyncSender<Vec<Entry>>>,
    writer: Option<JoinHandle<()>>,
}

impl Trace {
    /// Creates `path` anew and writes the state of `node` at `now`, which is also the wall clock's present time.
    ///
    /// # Errors
    /// The system's, if the file cannot be created; a device or a pipe is refused.
    pub(super) fn open(path: &Path, now: Time, node: &Node) -> Result<Self, io::Error> {
        // Opening a pipe would wait for its reader.
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let kind = io::ErrorKind::InvalidInput;
            return Err(io::Error::new(kind, "there is something that is no file"));
        }
        let file = File::create(path)?;
        let tracer = Tracer::new(now, node, DEFAULT_ROUTINE);
        let clock = SystemTime::now().duration_since(UNIX_EPOCH);
        let clock_us = clock.map_or(0, |since| since.as_micros().try_into().unwrap_or(0));
        let header = tracer.header(node, clock_us, "room");
        let (queue, batches) = sync_channel(QUEUE);
        let known = fork::closed_in_children(&file);
        let writer = thread::Builder::new()
            .name("mmn-trace".into())
            .spawn(move || {
                let _known = known;
                write(BufWriter::new(file), LIMIT, &header, &batches);
            })?;
        let mut running = Running {
            tracer,
            dropped: 0,
            queue: Some(queue),
            writer: Some(writer),
        };
        running.pass_on();
        Ok(Self(Some(running)))
    }

    /// Records an input before the node gets it.
    pub(super) fn input(&mut self, now: Time, node: &Node, input: &Input) {
        if let Some(running) = &mut self.0 {
            running.tracer.input(now, node, input);
        }
    }

    /// Records that the node refused its last command.
    pub(super) fn refused(&mut self, now: Time, error: &CommandError) {
        if let Some(running) = &mut self.0 {
            running.tracer.refused(now, error);
        }
    }

    /// Records the node's state.
    pub(super) fn state(&mut self, now: Time, node: &Node) {
        if let Some(running) = &mut self.0 {
            running.tracer.state(now, node);
        }
    }

    /// Records an output of the node.
    pub(super) fn output(&mut self, now: Time, node: &Node, output: &Output) {
        if let Some(running) = &mut self.0 {
            running.tracer.output(now, node, output);
        }
    }

    /// Records that the loop was so late that its process must have been stopped.
    pub(super) fn stalled(&mut self, now: Time, late: Duration) {
        if let Some(running) = &mut self.0 {
            let late_us = late.as_micros().try_into().unwrap_or(u64::MAX);
            running.tracer.add(now, What::Stalled { late_us });
        }
    }

    /// Passes the collected entries to the writer. Never waits.
    pub(super) fn pass_on(&mut self) {
        if let Some(running) = &mut self.0 {
            running.pass_on();
        }
    }

    /// Finishes the trace of a room that was left: the entries are in the file when this returns, and the
    /// writer's thread has ended.
    pub(super) fn finish(mut self, now: Time) {
        if let Some(running) = &mut self.0 {
            running.tracer.add(now, What::Stopped);
            let last = running.batch();
            if let Some(queue) = &running.queue {
                // Fails only if the writer has ended.
                let _ = queue.send(last);
            }
        }
    }
}

impl Running {
    /// The collected entries, after an entry about those dropped before them.
    fn batch(&mut self) -> Vec<Entry> {
        let mut batch = self.tracer.take();
        let entries = self.dropped;
        if let Some(Entry { at, .. }) = batch.first().filter(|_| entries > 0) {
            let at = *at;
            let what = What::Dropped { entries };
            batch.insert(0, Entry { at, what });
        }
        batch
    }

    fn pass_on(&mut self) {
        let missing = self.dropped;
        let batch = self.batch();
        if batch.is_empty() {
            return;
        }
        let Some(queue) = &self.queue else {
            return;
        };
        match queue.try_send(batch) {
            Ok(()) => self.dropped = 0,
            Err(TrySendError::Full(batch)) => {
                // The entry about dropped ones is not one of the node's.
                let reported = usize::from(missing > 0);
                self.dropped = missing + (batch.len() - reported) as u64;
            }
            // The writer has logged why it gave up.
            Err(TrySendError::Disconnected(_)) => self.queue = None,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the writer of the trace panicked");
        }
    }
}

/// Runs the writer's thread: ends with the queue, or at an error of the disk.
fn write(mut file: impl Write, limit: u64, header: &Header, batches: &Receiver<Vec<Entry>>) {
    if let Err(error) = write_all(&mut file, limit, header, batches) {
        tracing::warn!(%error, "the trace cannot be written, and ends here");
    }
}

fn write_all(
    file: &mut impl Write,
    limit: u64,
    header: &Header,
    batches: &Receiver<Vec<Entry>>,
) -> io::Result<()> {
    let mut line = serde_json::to_string(header)?;
    line.push('\n');
    file.write_all(line.as_bytes())?;
    let mut written = line.len() as u64;
    loop {
        let batch = match batches.try_recv() {
            Ok(batch) => batch,
            Err(TryRecvError::Empty) => {
                // Flushed before it waits: a killed process leaves every entry that got here.
                file.flush()?;
                match batches.recv() {
                    Ok(batch) => batch,
                    Err(_) => break,
                }
            }
            Err(TryRecvError::Disconnected) => break,
        };
        for entry in batch {
            let mut line = serde_json::to_string(&entry)?;
            line.push('\n');
            if written + line.len() as u64 + LAST_LINE > limit {
                let at = entry.at;
                let what = What::Full { limit };
                let last = serde_json::to_string(&Entry { at, what })?;
                writeln!(file, "{last}")?;
                return file.flush();
            }
            file.write_all(line.as_bytes())?;
            written += line.len() as u64;
        }
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::{Incarnation, PeerId};
    use crate::core::node::NodeConfig;
    use crate::core::trace::VERSION;
    use std::sync::{Arc, Mutex};

    fn header() -> Header {
        Header {
            trace: VERSION,
            peer: None,
            incarnation: None,
            origin_us: 0,
            routine: 1,
            by: "room".into(),
            seed: None,
        }
    }

    fn entry(at: u64) -> Entry {
        let what = What::Persist { number: at };
        Entry { at, what }
    }

    fn lines(file: &[u8]) -> Vec<Entry> {
        let text = String::from_utf8(file.to_vec()).expect("text");
        let entries = text.lines().skip(1);
        entries
            .map(|line| serde_json::from_str(line).expect("an entry"))
            .collect()
    }

    #[test]
    fn a_full_file_ends_with_a_note_below_its_limit() {
        let (queue, batches) = sync_channel(QUEUE);
        for at in 0..100 {
            queue.send(vec![entry(at)]).expect("room");
        }
        drop(queue);
        let mut file = Vec::new();
        write(&mut file, 1000, &header(), &batches);
        assert!(file.len() <= 1000, "{} bytes", file.len());
        let lines = lines(&file);
        let (last, before) = lines.split_last().expect("lines");
        assert_eq!(last.what, What::Full { limit: 1000 });
        assert!(before.len() > 5 && before.len() < 100);
        assert_eq!(before[3], entry(3));
    }

    /// A disk that writes only when the test allows it.
    struct Slow {
        gate: Receiver<()>,
        file: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Without a sender the gate is open.
            let _ = self.gate.recv();
            let mut file = self.file.lock().expect("not poisoned");
            file.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_slow_disk_costs_entries_that_are_counted_and_no_time() {
        let (open, gate) = sync_channel(0);
        let file = Arc::<Mutex<Vec<u8>>>::default();
        let slow = Slow {
            gate,
            file: Arc::clone(&file),
        };
        let (queue, batches) = sync_channel(4);
        let writer = thread::spawn(move || write(slow, LIMIT, &header(), &batches));
        let id = PeerId::new("a").expect("a valid id");
        let incarnation = Incarnation {
            started_us: 1,
            random: 1,
        };
        let node = Node::new(id, incarnation, NodeConfig::for_tests(), 1, Time::ZERO);
        let node = node.expect("it starts for the first time");
        let mut running = Running {
            tracer: Tracer::new(Time::ZERO, &node, 1),
            dropped: 0,
            queue: Some(queue),
            writer: Some(writer),
        };
        let sent = running.tracer.take().len() as u64;
        assert!(sent > 0);
        for number in 0..50 {
            running.tracer.add(Time::ZERO, What::Persisted { number });
            // Would wait forever if it waited.
            running.pass_on();
        }
        drop(open);
        Trace(Some(running)).finish(Time::ZERO);
        let lines = lines(&file.lock().expect("not poisoned"));
        let count = |wanted: fn(&What) -> Option<u64>| -> u64 {
            lines.iter().filter_map(|line| wanted(&line.what)).sum()
        };
        let kept = count(|what| matches!(what, What::Persisted { .. }).then_some(1));
        let dropped = count(|what| match what {
            What::Dropped { entries } => Some(*entries),
            _ => None,
        });
        assert!(kept <= 5, "{kept} kept");
        assert_eq!(kept + dropped, 50);
        assert_eq!(lines.last().map(|line| &line.what), Some(&What::Stopped));
    }
}
