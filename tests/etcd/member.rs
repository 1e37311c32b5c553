//! Election processes, each in a room of its own: this test program runs itself again for each, so that they can be killed and
//! stopped. They use the C ABI.
//!
//! A process takes commands as lines on its standard input, and reports events as lines on its standard output. Every millisecond
//! it records whether it acts as leader.

use std::ffi::{CStr, CString, c_char, c_void};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use meta_mystia_network::ffi::errors::mmn_last_error_message;
use meta_mystia_network::ffi::etcd::*;
use meta_mystia_network::ffi::events::{
    MMN_EVENT_CONNECTION_RESULT, MMN_EVENT_JOINED, MMN_EVENT_LEADER_CHANGED, MMN_EVENT_LOCK_LOST,
    MMN_EVENT_LOCK_RESULT, MMN_EVENT_MESSAGE, MmnEvent,
};
use meta_mystia_network::ffi::leader::{
    mmn_is_leader, mmn_set_auto_election, mmn_set_eligible, mmn_yield_leadership,
};
use meta_mystia_network::ffi::lifecycle::{MmnRoom, mmn_close, mmn_open};
use meta_mystia_network::ffi::options::{MmnOptions, mmn_default_options};
use meta_mystia_network::ffi::peers::{mmn_connect, mmn_local_address};
use meta_mystia_network::ffi::send::mmn_broadcast_as_leader;
use meta_mystia_network::ffi::values::{MMN_DISCOVERY_OFF, MMN_STRATEGY_ETCD};

use crate::intervals::{SAMPLE_BYTES, Sample};
use crate::pausing;

/// Environment variable with a process's settings: one value a line.
const VARIABLE: &str = "MMN_ETCD_MEMBER";
/// Timeout of every wait for a process.
const WITHIN: Duration = Duration::from_secs(30);

/// Settings of a process.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) id: String,
    /// Processes of one session that are connected share a room.
    pub(crate) session: String,
    pub(crate) endpoints: Vec<String>,
    pub(crate) prefix: String,
    pub(crate) ttl: u32,
    pub(crate) campaigns: bool,
    /// Its samples, and its state directory if it keeps one.
    pub(crate) samples: PathBuf,
    pub(crate) state: Option<PathBuf>,
}

impl Settings {
    /// One line for each.
    fn text(&self) -> String {
        let path = |path: &PathBuf| path.to_str().expect("UTF-8").to_owned();
        let lines = [
            self.id.clone(),
            self.session.clone(),
            self.endpoints.join(","),
            self.prefix.clone(),
            self.ttl.to_string(),
            self.campaigns.to_string(),
            path(&self.samples),
            self.state.as_ref().map_or_else(String::new, path),
        ];
        lines.join("\n")
    }

    fn read(text: &str) -> Self {
        let mut lines = text.split('\n').map(str::to_owned);
        let mut line = || lines.next().expect("all lines");
        Self {
            id: line(),
            session: line(),
            endpoints: line().split(',').map(str::to_owned).collect(),
            prefix: line(),
            ttl: line().parse().expect("a number"),
            campaigns: line() == "true",
            samples: line().into(),
            state: Some(line())
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
        }
    }
}

/// The clock of all processes of the machine, in microseconds.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a `timespec` that may be written.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    assert_eq!(result, 0);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

/// A running process; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) settings: Settings,
    process: Child,
    orders: ChildStdin,
    lines: Arc<(Mutex<Vec<Line>>, Condvar)>,
}

/// A line of a process: an event, and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: u64,
    pub(crate) words: Vec<String>,
}

impl Line {
    /// The leader in this line; `None` for every other event.
    pub(crate) fn leader(&self) -> Option<&str> {
        match &self.words[..] {
            [what, leader, ..] if what == "leader" => Some(leader),
            _ => None,
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Member {
    pub(crate) fn start(settings: Settings) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "--exact",
                "member::a_process_of_the_tests",
                "--ignored",
                "--nocapture",
            ])
            .env(VARIABLE, settings.text())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let lines = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let output = BufReader::new(process.stdout.take().expect("piped")).lines();
        let written = Arc::clone(&lines);
        thread::spawn(move || {
            for line in output.map_while(Result::ok) {
                let mut words = line.split('\t').map(str::to_owned);
                // The test runner's own output has no time.
                let Some(at) = words.next().and_then(|at| at.parse().ok()) else {
                    continue;
                };
                let words = words.collect();
                written
                    .0
                    .lock()
                    .expect("no thread panicked")
                    .push(Line { at, words });
                written.1.notify_all();
            }
        });
        Self {
            orders: process.stdin.take().expect("piped"),
            settings,
            process,
            lines,
        }
    }

    /// Sends it a command.
    pub(crate) fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("it runs");
    }

    /// Ends it with SIGKILL.
    pub(crate) fn kill(mut self) -> Settings {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
        self.settings.clone()
    }

    /// Makes it leave, and waits for its end.
    pub(crate) fn leave(mut self) {
        self.order("leave");
        assert!(self.process.wait().expect("it ends").success());
    }

    /// Stops it with SIGSTOP.
    pub(crate) fn pause(&self) {
        pausing::pause(&self.process);
    }

    /// Resumes it.
    pub(crate) fn resume(&self) {
        pausing::resume(&self.process);
    }

    /// Its lines so far.
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.lines.0.lock().expect("no thread panicked").clone()
    }

    /// Waits for a matching line, past or future.
    pub(crate) fn prints(&self, what: impl Fn(&Line) -> bool) -> Line {
        let deadline = Instant::now() + WITHIN;
        let mut lines = self.lines.0.lock().expect("no thread panicked");
        loop {
            if let Some(found) = lines.iter().find(|line| what(line)) {
                return found.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let id = &self.settings.id;
            assert!(!left.is_zero(), "{id} printed only {lines:#?}");
            lines = self
                .lines
                .1
                .wait_timeout(lines, left)
                .expect("no thread panicked")
                .0;
        }
    }

    /// Waits until it shows that leader, at this time or later.
    pub(crate) fn shows(&self, leader: &str, since: u64) -> Line {
        self.prints(|line| line.at >= since && line.leader() == Some(leader))
    }

    /// The last leader that it has shown since that time.
    pub(crate) fn last_leader(&self, since: u64) -> Option<String> {
        let lines = self.lines();
        let shown = lines.iter().filter(|line| line.at >= since);
        shown
            .filter_map(Line::leader)
            .next_back()
            .map(str::to_owned)
    }

    /// Its samples of whether it acts as leader.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        samples(&self.settings.samples)
    }
}

/// The samples that a process has written.
pub(crate) fn samples(path: &Path) -> Vec<Sample> {
    let bytes = std::fs::read(path).unwrap_or_default();
    bytes.chunks_exact(SAMPLE_BYTES).map(Sample::read).collect()
}

/// The main function of a process. Not a test: the tests start it.
#[test]
#[ignore = "a process that the tests start"]
fn a_process_of_the_tests() {
    let settings = std::env::var(VARIABLE).expect("the tests start this");
    let settings = Settings::read(&settings);
    let room = open(&settings);
    // Handlers run from now on; the first event names the present leader.
    let mut samples = File::options()
        .append(true)
        .create(true)
        .open(&settings.samples)
        .expect("a file for samples");
    thread::spawn(move || {
        loop {
            let before = now();
            let (leads, token) = (mmn_is_leader(room), mmn_fencing_token(room));
            let after = now();
            if token > 0 || leads == 1 {
                // Between the two calls the leadership may have begun or ended.
                let token = token.max(0).unsigned_abs();
                samples
                    .write_all(
                        &Sample {
                            before,
                            token,
                            after,
                        }
                        .bytes(),
                    )
                    .expect("a file");
            }
            thread::sleep(Duration::from_millis(1));
        }
    });
    for order in std::io::stdin().lines().map_while(Result::ok) {
        let words: Vec<_> = order.split('\t').collect();
        obey(room, &words);
    }
}

fn open(settings: &Settings) -> MmnRoom {
    let endpoints = text(&settings.endpoints.join("\n"));
    let (prefix, bind) = (text(&settings.prefix), text("127.0.0.1"));
    let state = settings.state.as_ref();
    let state = state.map(|path| text(path.to_str().expect("UTF-8")));
    let mut etcd = MmnEtcdOptions::default();
    let mut options = MmnOptions::default();
    // SAFETY: both are structs of this library, with their sizes set.
    unsafe {
        assert_eq!(mmn_default_etcd_options(&raw mut etcd), 0);
        assert_eq!(mmn_default_options(&raw mut options), 0);
    }
    etcd.endpoints = endpoints.as_ptr();
    etcd.prefix = prefix.as_ptr();
    etcd.ttl_seconds = settings.ttl;
    options.strategy = MMN_STRATEGY_ETCD;
    options.etcd = &raw const etcd;
    options.discovery_mode = MMN_DISCOVERY_OFF;
    options.bind_address = bind.as_ptr();
    options.state_directory = state.as_ref().map_or(ptr::null(), |state| state.as_ptr());
    options.auto_election = settings.campaigns.into();
    options.on_event = Some(reported);
    let (id, session) = (text(&settings.id), text(&settings.session));
    let mut room = 0;
    // SAFETY: all pointers refer to live data, and strings end with a NUL; the handler lives for ever.
    let opened = unsafe { mmn_open(id.as_ptr(), session.as_ptr(), &options, &mut room) };
    assert_eq!(opened, 0, "{:?}", last_error());
    // SAFETY: the library's own string, valid until this thread's next call.
    let address = unsafe { CStr::from_ptr(mmn_local_address(room)) };
    println!("{}\topen\t{}", now(), address.to_string_lossy());
    room
}

fn last_error() -> String {
    let text = mmn_last_error_message();
    // SAFETY: the library's own string, valid until this thread's next call.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

fn text(text: &str) -> CString {
    CString::new(text).expect("no NUL")
}

fn obey(room: MmnRoom, words: &[&str]) {
    let mut request = 0;
    let name = words.get(1).map(|name| text(name));
    let pointer = name.as_ref().map_or(ptr::null(), |name| name.as_ptr());
    // SAFETY: the name lives until the call returns.
    let result = unsafe {
        match words[0] {
            "leave" => {
                assert_eq!(mmn_close(room), 0);
                std::process::exit(0);
            }
            "connect" => mmn_connect(room, pointer),
            "send" => {
                let (data, length) = (words[1].as_ptr(), words[1].len() as i32);
                mmn_broadcast_as_leader(room, data, length, 0x0100, ptr::null())
            }
            "yield" => mmn_yield_leadership(room),
            "auto" => mmn_set_auto_election(room, words[1].parse().expect("a number")),
            "eligible" => mmn_set_eligible(room, words[1].parse().expect("a number")),
            "proclaim" => mmn_proclaim(room, pointer),
            "acquire" => mmn_acquire_lock(
                room,
                pointer,
                words[2].parse().expect("a number"),
                &raw mut request,
            ),
            "try" => mmn_try_lock(room, pointer, &raw mut request),
            "release" => mmn_release_lock(room, pointer),
            other => panic!("no order is called {other}"),
        }
    };
    println!("{}\tdid\t{}\t{result}\t{request}", now(), words[0]);
}

extern "C" fn reported(_: *mut c_void, event: *const MmnEvent) {
    let at = now();
    let read = |text: *const c_char| {
        // SAFETY: events have no NULL strings, and they live as long as the handler runs.
        unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8")
    };
    // SAFETY: the library gives an event that lives as long as the handler runs.
    let event = unsafe { &*event };
    match event.kind {
        MMN_EVENT_LEADER_CHANGED => {
            let (leader, term, reason) = (read(event.peer), event.term, event.reason);
            println!("{at}\tleader\t{leader}\t{term}\t{reason}");
        }
        MMN_EVENT_LOCK_RESULT => {
            let (request, name) = (event.request, read(event.other));
            println!(
                "{at}\tlock\t{name}\t{request}\t{}\t{}",
                event.code, event.count
            );
        }
        MMN_EVENT_JOINED => println!("{at}\tjoined\t{}", read(event.peer)),
        MMN_EVENT_CONNECTION_RESULT => println!("{at}\tconnected\t{}", event.code),
        MMN_EVENT_MESSAGE => {
            // SAFETY: the event's bytes live as long as the handler runs.
            let text = unsafe { std::slice::from_raw_parts(event.data, event.length as usize) };
            println!(
                "{at}\treceived\t{}\t{}",
                read(event.peer),
                String::from_utf8_lossy(text)
            );
        }
        MMN_EVENT_LOCK_LOST => println!("{at}\tlost\t{}\t{}", read(event.other), event.count),
        _ => {}
    }
}
