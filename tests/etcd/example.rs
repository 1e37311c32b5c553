//! `examples/etcd`: two servers that write one world; one is killed and one is stopped.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Cluster, Directory};
use crate::library::library;
use crate::pausing;

const WITHIN: Duration = Duration::from_secs(30);

struct Server {
    process: Child,
    lines: Receiver<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    fn start(id: &str, cluster: &Cluster, store: &Path) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut process = Command::new("python3")
            .arg(root.join("examples/etcd/server.py"))
            .args(["--id", id, "--endpoints", &cluster.endpoint(0)])
            .arg("--store")
            .arg(store)
            .env("MMN_LIBRARY", library())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { process, lines }
    }

    /// Waits for a line that contains this, and returns it.
    fn prints(&self, what: &str) -> String {
        let deadline = Instant::now() + WITHIN;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("{what:?} was not printed"));
            if line.contains(what) {
                return line;
            }
        }
    }

    fn pause(&self) {
        pausing::pause(&self.process);
    }

    /// A process that is stopped in the midst of a write keeps the store locked for as long.
    fn pause_between_writes(&self, store: &Path) {
        let deadline = Instant::now() + WITHIN;
        loop {
            self.pause();
            if !is_locked(store) {
                return;
            }
            assert!(Instant::now() < deadline, "the store is always locked");
            self.resume();
            self.prints("counted to ");
        }
    }

    fn resume(&self) {
        pausing::resume(&self.process);
    }
}

/// Whether a process has a write of this store in progress.
fn is_locked(store: &Path) -> bool {
    let program = "
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    database.execute('BEGIN IMMEDIATE')
except sqlite3.OperationalError as error:
    sys.exit(3 if 'locked' in str(error) else str(error))
";
    let status = Command::new("python3")
        .args(["-c", program])
        .arg(store)
        .status();
    match status.expect("python3").code() {
        Some(0) => false,
        Some(3) => true,
        code => panic!("the store cannot be read: {code:?}"),
    }
}

/// The number after a word.
fn number(line: &str, word: &str) -> u64 {
    let mut words = line.split(' ').skip_while(|one| *one != word).skip(1);
    words.next().expect("a number").parse().expect("a number")
}

#[test]
fn two_servers_of_the_example_write_one_world_one_after_the_other() {
    let (cluster, directory) = (Cluster::start(1), Directory::new());
    let store = directory.path().join("world.db");
    let one = Server::start("one", &cluster, &store);
    one.prints("counted to 3 ");
    let two = Server::start("two", &cluster, &store);
    two.prints("leader is one");

    // Stopped for longer than its lease.
    one.pause_between_writes(&store);
    let line = two.prints("counted to ");
    assert!(
        number(&line, "to") > 3,
        "it goes on where the other stopped: {line}"
    );
    let token = number(&line, "token");
    one.resume();
    one.prints("leader is two");
    while let Ok(line) = one.lines.recv_timeout(Duration::from_millis(500)) {
        assert!(!line.contains("counted"), "{line}");
    }

    // Killed.
    drop(two);
    let line = one.prints("counted to ");
    assert!(number(&line, "token") > token, "{line}");
}

/// A write of a leader that was stopped in the middle of it, and one while another process has the store locked.
#[test]
fn the_store_of_the_example_refuses_an_old_token_and_waits_for_a_lock() {
    let directory = Directory::new();
    let program = "
import sys
sys.path.insert(0, 'examples/etcd')
from store import Busy, OldToken, Store
store = Store(sys.argv[1])
assert store.raise_counter('a', 33) == 1
assert store.raise_counter('b', 34) == 2
try:
    store.raise_counter('a', 33)
except OldToken as error:
    assert '33' in str(error)
else:
    raise AssertionError('it took an old token')
assert store.read() == (2, 'b', 34)
other = Store(sys.argv[1])
other.database.execute('BEGIN IMMEDIATE')
store.database.execute('PRAGMA busy_timeout = 50')
try:
    store.raise_counter('b', 34)
except Busy:
    pass
else:
    raise AssertionError('it wrote while another process has the store locked')
other.database.execute('ROLLBACK')
assert store.raise_counter('b', 34) == 3
";
    let status = Command::new("python3")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["-c", program])
        .arg(directory.path().join("world.db"))
        .status();
    assert!(status.expect("python3").success());
}
