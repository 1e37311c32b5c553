//! The library's log: on standard error and to a callback of the host, each switched on and off at any time.
//!
//! The process has one subscriber, which is installed when the first of the two is switched on. While both are off, a
//! log line costs one atomic load: the switch is `tracing`'s own level.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::core::id::is_bidi_override;
use crate::current_room;
use crate::dispatch::as_callback;
use crate::fork::{self, Inherit, PerProcess};

/// Limit of a line, in bytes; longer ones are cut.
const MAX_LINE_BYTES: usize = 4096;

/// The verbosity of a log, with the numbers of the C ABI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Verbosity {
    Off = 0,
    Error = 1,
    Warn = 2,
    Info = 3,
    Debug = 4,
    Trace = 5,
}

impl Verbosity {
    const ALL: [Self; 6] = [
        Self::Off,
        Self::Error,
        Self::Warn,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];

    pub(crate) fn from_number(number: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// The lowest verbosity that shows records of `level`.
    fn of(level: Level) -> Self {
        match level {
            Level::ERROR => Self::Error,
            Level::WARN => Self::Warn,
            Level::INFO => Self::Info,
            Level::DEBUG => Self::Debug,
            Level::TRACE => Self::Trace,
        }
    }

    /// The verbosity for the libraries underneath, one step lower: their info and debug records are as many as all of
    /// ours.
    fn of_others(self) -> Self {
        match self {
            Self::Trace => Self::Debug,
            Self::Debug => Self::Info,
            Self::Info | Self::Warn => Self::Warn,
            Self::Error => Self::Error,
            Self::Off => Self::Off,
        }
    }

    /// The verbosity for libraries whose warnings name addresses of members. Logs of players are passed on, and these are their homes.
    fn of_namers_of_addresses(self) -> Self {
        match self {
            Self::Trace | Self::Debug => self.of_others(),
            Self::Info | Self::Warn | Self::Error => Self::Error,
            Self::Off => Self::Off,
        }
    }

    fn filter(self) -> LevelFilter {
        match self {
            Self::Off => LevelFilter::OFF,
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::Trace => LevelFilter::TRACE,
        }
    }

    /// Whether a record with that description is shown.
    fn shows(self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        let is_of = |names: &[&str]| names.iter().any(|name| target.starts_with(name));
        let limit = match () {
            () if is_of(&OURS) => self,
            () if is_of(&NAMERS_OF_ADDRESSES) => self.of_namers_of_addresses(),
            () => self.of_others(),
        };
        Self::of(*metadata.level()) <= limit
    }
}

/// The crates whose records are the library's own.
const OURS: [&str; 2] = [env!("CARGO_CRATE_NAME"), crate::core::LOG_TARGET];

/// The crates of the TURN client.
const NAMERS_OF_ADDRESSES: [&str; 4] = [
    "turn_client_proto",
    "turn_types",
    "stun_proto",
    "stun_types",
];

/// The switch of a log, as the threads that make records see it.
struct Switch(AtomicU8);

impl Switch {
    fn verbosity(&self) -> Verbosity {
        Verbosity::from_number(self.0.load(Ordering::Relaxed).into()).unwrap_or(Verbosity::Off)
    }
}

/// The verbosity of standard error.
static STDERR: Switch = Switch(AtomicU8::new(Verbosity::Off as u8));
/// The verbosity of the callback.
static CALLBACK: Switch = Switch(AtomicU8::new(Verbosity::Off as u8));

/// Whether standard error is on, and its verbosity then. Not behind a lock, because a forked child keeps both.
static STDERR_ON: AtomicBool = AtomicBool::new(false);
static STDERR_LEVEL: Switch = Switch(AtomicU8::new(Verbosity::Info as u8));
/// Whether the subscriber is installed: once, also for forked children.
static INSTALLED: AtomicBool = AtomicBool::new(false);

static LOCKS: PerProcess<Locks> = PerProcess::new(Locks::new());

/// State behind locks. A forked child has locks of its own, and no callback: that belongs to its parent.
struct Locks {
    /// Held while a log is switched.
    switching: Mutex<()>,
    sink: Mutex<Option<Sink>>,
    /// Held while a line is written, on systems where that takes no lock of `std`.
    #[cfg(unix)]
    line: Mutex<()>,
}

impl Locks {
    const fn new() -> Self {
        Self {
            switching: Mutex::new(()),
            sink: Mutex::new(None),
            #[cfg(unix)]
            line: Mutex::new(()),
        }
    }
}

impl Inherit for Locks {
    fn inherit(_: &Self) -> Self {
        Self::new()
    }
}

/// Takes the number of a room, or 0, a level and a line.
pub(crate) type LogHandler = Box<dyn Fn(u64, i32, &CStr) + Send + Sync>;

/// The callback, and the number of threads inside it.
#[derive(Clone)]
struct Sink {
    verbosity: Verbosity,
    handler: Arc<LogHandler>,
    running: Arc<Running>,
}

#[derive(Default)]
struct Running {
    threads: Mutex<usize>,
    ended: Condvar,
}

thread_local! {
    /// The generation of the process in which the thread entered.
    static IN_LOG_CALLBACK: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Whether the calling thread is inside the log callback, or inside its release. A child that was forked there is not.
pub(crate) fn in_log_callback() -> bool {
    IN_LOG_CALLBACK.try_with(Cell::get).ok().flatten() == Some(fork::generation())
}

/// Switches the log on standard error on or off.
///
/// A process that has set a `tracing` subscriber of its own keeps it, and nothing here has an effect there.
pub(crate) fn enable(on: bool) {
    let _switching = lock(&LOCKS.get().switching);
    STDERR_ON.store(on, Ordering::SeqCst);
    apply();
}

/// Sets the verbosity of standard error while it is on.
pub(crate) fn set_level(level: Verbosity) {
    let _switching = lock(&LOCKS.get().switching);
    STDERR_LEVEL.0.store(level as u8, Ordering::SeqCst);
    apply();
}

/// Sets or removes the callback. When this returns, the old one runs on no thread, unless the caller is inside it,
/// and never runs again.
pub(crate) fn register(callback: Option<(Verbosity, LogHandler)>) {
    let locks = LOCKS.get();
    let switching = lock(&locks.switching);
    let (verbosity, sink) = match callback {
        Some((verbosity, handler)) => {
            let handler = Arc::new(handler);
            let running = Arc::default();
            let sink = Sink {
                verbosity,
                handler,
                running,
            };
            (verbosity, Some(sink))
        }
        None => (Verbosity::Off, None),
    };
    let old = std::mem::replace(&mut *lock(&locks.sink), sink);
    CALLBACK.0.store(verbosity as u8, Ordering::SeqCst);
    apply();
    drop(switching);
    let Some(Sink {
        handler, running, ..
    }) = old
    else {
        return;
    };
    // Two callbacks that replace each other must not wait for each other.
    if !in_log_callback() {
        let mut threads = lock(&running.threads);
        while *threads > 0 {
            threads = running
                .ended
                .wait(threads)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
    // Not under a lock: it may run code of the host.
    drop(handler);
}

/// Applies the host's switches. Under the lock `switching`.
fn apply() {
    let stderr = if STDERR_ON.load(Ordering::SeqCst) {
        STDERR_LEVEL.verbosity()
    } else {
        Verbosity::Off
    };
    STDERR.0.store(stderr as u8, Ordering::SeqCst);
    if INSTALLED.load(Ordering::SeqCst) {
        tracing::callsite::rebuild_interest_cache();
    } else if most() > Verbosity::Off {
        // Set before the installation: a child that is forked meanwhile must not meet the locks that it takes.
        INSTALLED.store(true, Ordering::SeqCst);
        // Fails only if the process has its own subscriber, which then receives the lines.
        let _ = tracing::subscriber::set_global_default(Log);
    }
}

/// The higher verbosity of the two logs.
fn most() -> Verbosity {
    STDERR.verbosity().max(CALLBACK.verbosity())
}

/// Passes events on to each log that shows them. Spans are not shown.
struct Log;

impl Subscriber for Log {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if !metadata.is_span() && most().shows(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        !metadata.is_span() && most().shows(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(most().filter())
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let to_stderr = STDERR.verbosity().shows(metadata);
        let to_callback = CALLBACK.verbosity().shows(metadata) && !in_log_callback();
        if !to_stderr && !to_callback {
            return;
        }
        let mut line = Line::default();
        line.add(format_args!("{}:", metadata.target()));
        event.record(&mut line);
        if to_stderr {
            let line = format!("{:>5} {}\n", metadata.level(), line.text);
            // A closed standard error is ignored.
            let _ = write_to_stderr(line.as_bytes());
        }
        if to_callback {
            pass_on(metadata, line);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Writes a line, under a lock of this process: the lock of `std` may be held for ever in a forked child.
#[cfg(unix)]
fn write_to_stderr(line: &[u8]) -> io::Result<()> {
    use std::os::fd::AsFd as _;
    let _alone = lock(&LOCKS.get().line);
    // `as_fd` takes no lock. Each line uses a new duplicate, because the host may replace the descriptor.
    let mut stderr = std::fs::File::from(io::stderr().as_fd().try_clone_to_owned()?);
    stderr.write_all(line)
}

#[cfg(not(unix))]
fn write_to_stderr(line: &[u8]) -> io::Result<()> {
    io::stderr().lock().write_all(line)
}

/// Calls the callback. A panic in it is caught.
fn pass_on(metadata: &Metadata<'_>, line: Line) {
    let generation = fork::generation();
    let sink = {
        let sink = lock(&LOCKS.get().sink);
        // The callback may have been replaced since the first check.
        let Some(sink) = sink.as_ref().filter(|sink| sink.verbosity.shows(metadata)) else {
            return;
        };
        // Under the lock: a call that replaces the callback either finds it running, or it does not run.
        *lock(&sink.running.threads) += 1;
        sink.clone()
    };
    let Sink {
        handler, running, ..
    } = sink;
    let level = Verbosity::of(*metadata.level());
    let text = line.into_c();
    // A thread that is ending cannot record that it is inside, and logs nothing more.
    let entered = IN_LOG_CALLBACK
        .try_with(|inside| inside.set(Some(generation)))
        .is_ok();
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if entered {
            as_callback(|| handler(current_room::number(), level as i32, &text));
        }
        // Dropped before the call counts as ended, so that a replaced callback no longer exists then.
        drop(handler);
    }));
    let _ = IN_LOG_CALLBACK.try_with(|inside| inside.set(None));
    if fork::generation() != generation {
        // A child that was forked in the callback. The locks and the thread belong to its parent.
        if fork::on_own_thread() {
            fork::end_child();
        }
        return;
    }
    *lock(&running.threads) -= 1;
    running.ended.notify_all();
}

/// The text of a record, up to the limit.
#[derive(Default)]
struct Line {
    text: String,
}

impl Line {
    fn add(&mut self, part: fmt::Arguments<'_>) {
        // Fails only if it is too long.
        let _ = self.write_fmt(part);
    }

    fn into_c(self) -> CString {
        // `shown` leaves no NUL.
        CString::new(self.text).unwrap_or_default()
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for character in part.chars() {
            let character = shown(character);
            if self.text.len() + character.len_utf8() > MAX_LINE_BYTES {
                return Err(fmt::Error);
            }
            self.text.push(character);
        }
        Ok(())
    }
}

/// Text from others must not command a terminal, forge a line, or reverse the reading order. Such a character becomes
/// its Unicode control picture if there is one, else a replacement character.
fn shown(character: char) -> char {
    match u32::from(character) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        0x7f => '\u{2421}',
        0x80..=0x9f | 0x2028 | 0x2029 => char::REPLACEMENT_CHARACTER,
        _ if is_bidi_override(character) => char::REPLACEMENT_CHARACTER,
        _ => character,
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.add(format_args!(" {value:?}")),
            // Fields of the `log` crate's bridge.
            name if name.starts_with("log.") => {}
            name => self.add(format_args!(" {name}={value:?}")),
        }
    }
}

/// No code panics while it holds one of these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// The log belongs to the process: one test at a time.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    const TIMEOUT: Duration = Duration::from_secs(20);

    /// Registers a callback that passes on the records that contain `mark`.
    fn listen(verbosity: Verbosity, mark: &'static str) -> Receiver<(i32, String)> {
        let (sender, receiver) = channel();
        let handler: LogHandler = Box::new(move |_, level, line| {
            let line = line.to_str().expect("UTF-8");
            if line.contains(mark) {
                let _ = sender.send((level, line.to_owned()));
            }
        });
        register(Some((verbosity, handler)));
        receiver
    }

    #[test]
    fn warnings_that_name_members_addresses_are_for_developers() {
        for (verbosity, own, others) in [
            (Verbosity::Warn, Verbosity::Error, Verbosity::Warn),
            (Verbosity::Info, Verbosity::Error, Verbosity::Warn),
            (Verbosity::Debug, Verbosity::Info, Verbosity::Info),
        ] {
            assert_eq!(verbosity.of_namers_of_addresses(), own);
            assert_eq!(verbosity.of_others(), others);
        }
    }

    #[test]
    fn the_switches_reach_the_level_that_a_log_line_asks_first() {
        let _alone = lock(&ONE_AT_A_TIME);
        for on in [true, false, true, false] {
            enable(on);
            assert_eq!(LevelFilter::current(), most().filter());
            assert_eq!(tracing::enabled!(Level::INFO), on);
            assert!(!tracing::enabled!(Level::DEBUG));
        }
        set_level(Verbosity::Debug);
        assert_eq!(LevelFilter::current(), LevelFilter::OFF);
        enable(true);
        assert!(tracing::enabled!(Level::DEBUG));
        set_level(Verbosity::Error);
        assert!(!tracing::enabled!(Level::WARN));
        // The callback has a level of its own.
        let _seen = listen(Verbosity::Trace, "nothing");
        assert_eq!(LevelFilter::current(), LevelFilter::TRACE);
        register(None);
        assert_eq!(LevelFilter::current(), LevelFilter::ERROR);
        enable(false);
        set_level(Verbosity::Info);
    }

    #[test]
    fn a_callback_is_passed_one_line_for_each_record_of_its_level() {
        let _alone = lock(&ONE_AT_A_TIME);
        let seen = listen(Verbosity::Info, "mark 1");
        let peer = "琪露诺";
        tracing::info!(%peer, count = 3, "two\nlines\0 of mark 1");
        tracing::debug!("mark 1: too much");
        tracing::info!(target: "room_core::election", "mark 1 of the core");
        tracing::warn!(target: "quinn::endpoint", "mark 1 of others");
        tracing::info!(target: "quinn::endpoint", "mark 1 of others: too much");
        tracing::error!("mark 1 {}", "x".repeat(2 * MAX_LINE_BYTES));
        register(None);
        tracing::info!("mark 1: too late");
        let seen: Vec<_> = seen.try_iter().collect();
        assert_eq!(seen.len(), 4);
        assert_eq!(
            seen[0],
            (
                3,
                format!(
                    "{}: two␊lines␀ of mark 1 peer=琪露诺 count=3",
                    module_path!()
                )
            )
        );
        let of_core = "room_core::election: mark 1 of the core";
        assert_eq!(seen[1], (3, of_core.to_owned()));
        assert_eq!(seen[2], (2, "quinn::endpoint: mark 1 of others".to_owned()));
        assert_eq!((seen[3].0, seen[3].1.len()), (1, MAX_LINE_BYTES));
    }

    #[test]
    fn text_of_peers_cannot_command_a_terminal_forge_a_line_or_turn_the_order() {
        let _alone = lock(&ONE_AT_A_TIME);
        let seen = listen(Verbosity::Info, "mark 4");
        let controls = (0..0x20).chain(0x7f..0xa0);
        let breaks_and_overrides = [0x2028, 0x2029]
            .into_iter()
            .chain(0x202a..=0x202e)
            .chain(0x2066..=0x2069);
        let bad: String = controls
            .chain(breaks_and_overrides)
            .filter_map(char::from_u32)
            .collect();
        // By display, by debug, in the message and in its middle.
        tracing::info!(peer = %bad, "mark 4");
        tracing::info!(peer = ?bad, "mark 4");
        tracing::info!("mark 4 {bad} end");
        tracing::info!(peer = bad.as_str(), "mark 4");
        register(None);
        let seen: Vec<_> = seen.try_iter().collect();
        assert_eq!(seen.len(), 4);
        for (_, line) in &seen {
            assert!(!line.contains(|c: char| bad.contains(c)), "{line:?}");
        }
        // No character is lost, and those with a control picture show it.
        let shown = seen[2].1.chars().filter(|c| *c != ' ').count();
        assert!(shown > bad.chars().count(), "{}", seen[2].1);
        assert!(seen[2].1.contains("␛") && seen[2].1.contains("␡"));
        assert!(seen[2].1.ends_with(" end"), "{}", seen[2].1);
    }

    #[test]
    fn a_callback_that_logs_or_panics_still_receives_log_lines() {
        let _alone = lock(&ONE_AT_A_TIME);
        let (sender, seen) = channel();
        register(Some((
            Verbosity::Info,
            Box::new(move |_, _, line| {
                let line = line.to_str().expect("UTF-8").to_owned();
                if line.contains("mark 2") {
                    assert!(in_log_callback() && crate::dispatch::in_callback());
                    tracing::error!("mark 2 nested");
                    let _ = sender.send(line);
                    panic!("as intended by the test");
                }
            }),
        )));
        tracing::info!("mark 2 a");
        tracing::info!("mark 2 b");
        assert!(!in_log_callback() && !crate::dispatch::in_callback());
        register(None);
        let seen: Vec<_> = seen.try_iter().collect();
        assert_eq!(seen.len(), 2);
        assert!(seen[0].ends_with("mark 2 a") && seen[1].ends_with("mark 2 b"));
    }

    #[test]
    fn unregistering_waits_for_calls_on_other_threads_but_not_inside_one() {
        let _alone = lock(&ONE_AT_A_TIME);
        let (begun, begins) = channel();
        let (go, may_go) = channel::<()>();
        let may_go = Mutex::new(may_go);
        register(Some((
            Verbosity::Info,
            Box::new(move |_, _, line| {
                if line.to_str().is_ok_and(|line| line.contains("mark 3")) {
                    let _ = begun.send(());
                    let _ = lock(&may_go).recv();
                }
            }),
        )));
        let logging = thread::spawn(|| tracing::info!("mark 3"));
        begins.recv_timeout(TIMEOUT).expect("called");
        let unregistering = thread::spawn(|| register(None));
        // The call has taken effect once the callback is gone, and still waits.
        while lock(&LOCKS.get().sink).is_some() {
            thread::yield_now();
        }
        assert!(!unregistering.is_finished());
        drop(go);
        unregistering.join().expect("no panic");
        logging.join().expect("no panic");
        assert!(begins.recv().is_err(), "it is dropped");

        let (sender, seen) = channel();
        register(Some((
            Verbosity::Info,
            Box::new(move |_, _, _| {
                register(None);
                let _ = sender.send(());
            }),
        )));
        tracing::info!("mark 3");
        tracing::info!("mark 3");
        seen.recv_timeout(TIMEOUT).expect("called");
        while lock(&LOCKS.get().sink).is_some() {
            thread::yield_now();
        }
    }
}
