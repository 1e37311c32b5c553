//! The players of a game: processes that obey commands, a line each, and print what happens to them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::tools::library;

/// The first of them that reports to be the host.
pub(crate) fn take_host(players: &mut Vec<Player>) -> Player {
    let start = Instant::now();
    loop {
        for index in 0..players.len() {
            if players[index].has_printed("host") {
                return players.remove(index);
            }
        }
        assert!(start.elapsed() < TIMEOUT, "no player became the host");
    }
}

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Player {
    pub(crate) id: &'static str,
    process: Process,
    lines: Receiver<String>,
    /// Printed lines that `next` has passed or `has_printed` has seen.
    passed: Vec<String>,
    /// Number of these that `next` is done with.
    done: usize,
}

impl Player {
    pub(crate) fn start(
        command: &[&Path],
        id: &'static str,
        session: &str,
        contact: Option<&str>,
    ) -> Self {
        let library = library();
        let mut process = Command::new(command[0])
            .args(&command[1..])
            .args([id, session])
            .args(contact)
            .env("LD_LIBRARY_PATH", library.parent().expect("a folder"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let lines = lines_of(process.stdout.take().expect("piped"));
        Self {
            id,
            process: Process(process),
            lines,
            passed: Vec::new(),
            done: 0,
        }
    }

    pub(crate) fn send(&mut self, command: &str) {
        let input = self.process.0.stdin.as_mut().expect("piped");
        writeln!(input, "{command}").expect("it listens");
    }

    /// The rest of the next line that starts with `start`.
    #[track_caller]
    pub(crate) fn next(&mut self, start: &str) -> String {
        self.next_where(start, |_| true)
    }

    /// The rest of the next line that starts with `start` and of which that holds.
    #[track_caller]
    pub(crate) fn next_where(&mut self, start: &str, holds: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            while self.done < self.passed.len() {
                self.done += 1;
                match self.passed[self.done - 1].strip_prefix(start) {
                    Some(rest) if holds(rest) => return rest.to_owned(),
                    _ => {}
                }
            }
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) => self.passed.push(line),
                Err(_) => panic!("{}: no line {start:?} in {:#?}", self.id, self.passed),
            }
        }
    }

    /// Whether it has printed `line` since the last `next`; waits a moment for more.
    fn has_printed(&mut self, line: &str) -> bool {
        match self.lines.recv_timeout(Duration::from_millis(10)) {
            Ok(line) => self.passed.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("{} ended: {:#?}", self.id, self.passed),
        }
        self.passed[self.done..].iter().any(|passed| passed == line)
    }

    /// The server's connection to a client, once it has printed it.
    #[track_caller]
    pub(crate) fn id_of(&mut self, client: &str) -> String {
        // Among all lines; the next `next` goes on where the last one ended.
        let done = std::mem::take(&mut self.done);
        let line = self.next_where("", |line| line.ends_with(client));
        self.done = done;
        line.split(' ').nth(1).expect("a number").to_owned()
    }

    /// Returns it with all that it has printed.
    pub(crate) fn kill(mut self) -> Self {
        self.process.0.kill().expect("it can be killed");
        self.passed.extend(self.lines.iter());
        self
    }

    pub(crate) fn signal(&self, signal: libc::c_int) {
        let id = libc::pid_t::try_from(self.process.0.id()).expect("a process id");
        // SAFETY: no memory is passed, and the process has not been waited for.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0, "{}", self.id);
    }

    /// As `next`, of all lines that it has ever printed.
    #[track_caller]
    pub(crate) fn next_of_all(&mut self, start: &str) -> String {
        self.done = 0;
        self.next(start)
    }

    /// The rest of the last line that starts with `start`.
    #[track_caller]
    pub(crate) fn last(&self, start: &str) -> &str {
        let mut lines = self.passed.iter().rev();
        lines
            .find_map(|line| line.strip_prefix(start))
            .expect("a line")
    }

    /// The objects of a world's host, once the room has them.
    #[track_caller]
    pub(crate) fn next_saved(&mut self) -> BTreeMap<String, String> {
        self.send("save");
        let line = self.next("world ");
        let objects = line.split(' ').map(|object| {
            let (key, value) = object.split_once('=').expect("a value");
            (key.to_owned(), value.to_owned())
        });
        objects.collect()
    }

    /// A world's objects as this member's room has them, once that holds.
    #[track_caller]
    pub(crate) fn room_until(&mut self, holds: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            self.send("room");
            let room = self.next("room ");
            if holds(&room) {
                return room;
            }
            assert!(start.elapsed() < TIMEOUT, "{}: {room}", self.id);
        }
    }

    pub(crate) fn ends_well(mut self) {
        drop(self.process.0.stdin.take());
        let status = self.process.0.wait().expect("it can be waited for");
        assert!(status.success(), "{}: {status}", self.id);
    }
}

/// A program that is killed at the end.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self(process.unwrap_or_else(|error| panic!("{command:?} does not start: {error}")))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error does not matter here: the process may have ended before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Read on a thread of its own: the end of a process ends it.
fn lines_of(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
