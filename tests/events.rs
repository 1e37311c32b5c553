//! The event handler, poll mode and the log callback through the C ABI, with a room that has one member.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use meta_mystia_network::config::{Config, DiscoveryMode, DispatchMode};
use meta_mystia_network::core::id::{PeerId, SessionId};
use meta_mystia_network::core::wire::HostMode;
use meta_mystia_network::default_room;
use meta_mystia_network::ffi::callbacks::RegisterReceiveCallback;
use meta_mystia_network::ffi::classic::*;
use meta_mystia_network::ffi::events::*;
use meta_mystia_network::ffi::old::*;

/// Far longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// One room and one log in the process: tests take turns.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An event: kind, peer, data.
type Received = (u32, String, Vec<u8>);

/// The object behind a host's user data. Leaked, so that a call after the last one is noticed and does not crash.
struct Host {
    sender: Sender<Received>,
    calls_inside: AtomicUsize,
    dropped: AtomicUsize,
    /// Run inside the next event.
    inside: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// Run inside the drop function.
    at_drop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

fn host() -> (&'static Host, Receiver<Received>) {
    let (sender, events) = channel();
    let host = Host {
        sender,
        calls_inside: AtomicUsize::new(0),
        dropped: AtomicUsize::new(0),
        inside: Mutex::new(None),
        at_drop: Mutex::new(None),
    };
    (Box::leak(Box::new(host)), events)
}

impl Host {
    fn register(&'static self) -> i32 {
        // SAFETY: the functions fit, and a `Host` may be used on any thread.
        unsafe { RegisterEventHandler(Some(on_event), self.pointer(), Some(on_drop)) }
    }

    fn pointer(&'static self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }

    fn inside_next(&self, run: impl FnOnce() + Send + 'static) {
        *self.inside.lock().expect("not poisoned") = Some(Box::new(run));
    }
}

fn of(user_data: *mut c_void) -> &'static Host {
    // SAFETY: every registration of this file gives a leaked `Host`.
    unsafe { &*user_data.cast::<Host>() }
}

fn text(text: *const c_char) -> String {
    // SAFETY: the library's strings are NUL-terminated, and valid here.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().expect("UTF-8").to_owned()
}

extern "C" fn on_event(user_data: *mut c_void, event: *const NetworkEvent) {
    let host = of(user_data);
    host.calls_inside.fetch_add(1, Ordering::SeqCst);
    assert_eq!(host.dropped(), 0, "no call comes after the drop");
    // SAFETY: it is valid during the call.
    let event = unsafe { &*event };
    let length = usize::try_from(event.length).expect("not negative");
    // SAFETY: never NULL, and `length` bytes long.
    let data = unsafe { std::slice::from_raw_parts(event.data, length) };
    let _ = host
        .sender
        .send((event.kind, text(event.peer), data.to_vec()));
    let inside = host.inside.lock().expect("not poisoned").take();
    if let Some(run) = inside {
        run();
    }
    assert_eq!(host.dropped(), 0, "the drop waits for the call");
    host.calls_inside.fetch_sub(1, Ordering::SeqCst);
}

extern "C" fn on_drop(user_data: *mut c_void) {
    let host = of(user_data);
    assert_eq!(host.calls_inside.load(Ordering::SeqCst), 0);
    host.dropped.fetch_add(1, Ordering::SeqCst);
    let at_drop = host.at_drop.lock().expect("not poisoned").take();
    if let Some(run) = at_drop {
        run();
    }
}

fn unregister() -> i32 {
    // SAFETY: NULL needs nothing.
    unsafe { RegisterEventHandler(None, null_mut(), None) }
}

fn initialize() -> i32 {
    // SAFETY: both have a NUL.
    unsafe { InitializeNetwork(c"me".as_ptr(), c"events".as_ptr()) }
}

fn initialize_polled() {
    let config = Config {
        dispatch_mode: DispatchMode::Poll,
        ..Config::default()
    };
    let peer = PeerId::new("me").expect("valid");
    let session = SessionId::new("events").expect("valid");
    default_room::open(peer, session, config, None, |_| ()).expect("a room");
}

fn send_to_myself(what: &str) -> i32 {
    let length = i32::try_from(what.len()).expect("short");
    // SAFETY: the id has a NUL, and the data its length.
    unsafe { SendToPeer(c"me".as_ptr(), what.as_ptr(), length, 0x100, 0) }
}

fn wait_for(events: &Receiver<Received>, kind: u32) -> Received {
    loop {
        let sender = events.recv_timeout(TIMEOUT).expect("an event in time");
        if sender.0 == kind {
            return sender;
        }
    }
}

/// Polls until `done`; returns the number of events.
fn poll_until(mut done: impl FnMut() -> bool) -> i32 {
    let started = std::time::Instant::now();
    let mut reported = 0;
    while !done() {
        assert!(started.elapsed() < TIMEOUT, "it never came so far");
        let now = PollEvents(100);
        assert!(now >= 0, "{now}");
        reported += now;
        thread::yield_now();
    }
    reported
}

fn last_error() -> String {
    text(GetLastErrorMessage())
}

#[test]
fn a_handler_that_is_registered_before_the_room_receives_its_first_event() {
    let _alone = alone();
    let (host, events) = host();
    assert_eq!(host.register(), 0);
    assert_eq!(initialize(), 0);
    let first = events.recv_timeout(TIMEOUT).expect("an event");
    assert_eq!(first, (MMN_EVENT_LEADER_CHANGED, "me".into(), vec![]));
    let second = events.recv_timeout(TIMEOUT).expect("an event");
    assert_eq!(second.0, MMN_EVENT_LEADERSHIP_GAINED);
    // It takes messages, too: none waits for a Receive callback.
    assert_eq!(send_to_myself("hello"), 0);
    let message = wait_for(&events, MMN_EVENT_MESSAGE);
    assert_eq!(message.1, "me");
    assert_eq!(message.2, b"hello");
    assert_eq!(host.dropped(), 0);
    assert_eq!(ShutdownNetwork(), 0);
    assert_eq!(host.dropped(), 1);
    // The next room starts without it.
    assert_eq!(initialize(), 0);
    assert_eq!(ShutdownNetwork(), 0);
    assert_eq!(host.dropped(), 1);
}

#[test]
fn a_fixed_host_is_notified_of_its_leadership_when_it_can_act_on_it() {
    let _alone = alone();
    for _ in 0..20 {
        let (host, events) = host();
        let (answers, answered) = channel();
        host.inside_next(move || {
            // SAFETY: no bytes.
            let sent = unsafe { SendFromLeader(null(), 0, 0x0100, 0) };
            let _ = answers.send((IsLeader(), sent, SetMaxPeers(3)));
        });
        assert_eq!(host.register(), 0);
        let config = Config {
            host_mode: HostMode::Host,
            auto_election_enabled: false,
            discovery: DiscoveryMode::Off,
            ..Config::default()
        };
        let (me, session) = (PeerId::new("me"), SessionId::new("at once"));
        default_room::open(
            me.expect("an id"),
            session.expect("an id"),
            config,
            None,
            |_| (),
        )
        .expect("a room");
        assert_eq!(IsLeader(), 1);
        assert_eq!(answered.recv_timeout(TIMEOUT), Ok((1, 0, 0)));
        let (_, leader, _) = wait_for(&events, MMN_EVENT_LEADER_CHANGED);
        assert_eq!(leader, "me");
        wait_for(&events, MMN_EVENT_LEADERSHIP_GAINED);
        assert_eq!(ShutdownNetwork(), 0);
    }
}

#[test]
fn replaced_or_removed_handlers_are_dropped_once_with_and_without_a_room() {
    let _alone = alone();
    let hosts: Vec<_> = (0..4).map(|_| host()).collect();
    let dropped = || {
        hosts
            .iter()
            .map(|(host, _)| host.dropped())
            .collect::<Vec<_>>()
    };
    assert_eq!(hosts[0].0.register(), 0);
    assert_eq!(hosts[1].0.register(), 0);
    assert_eq!(dropped(), [1, 0, 0, 0]);
    assert_eq!(unregister(), 0);
    assert_eq!(unregister(), 0);
    assert_eq!(dropped(), [1, 1, 0, 0]);
    assert_eq!(initialize(), 0);
    assert_eq!(hosts[2].0.register(), 0);
    wait_for(&hosts[2].1, MMN_EVENT_LEADERSHIP_GAINED);
    assert_eq!(hosts[3].0.register(), 0);
    assert_eq!(dropped(), [1, 1, 1, 0]);
    // The new handler first receives the present leader.
    wait_for(&hosts[3].1, MMN_EVENT_LEADER_CHANGED);
    assert_eq!(unregister(), 0);
    assert_eq!(dropped(), [1, 1, 1, 1]);
    assert_eq!(ShutdownNetwork(), 0);
    assert_eq!(dropped(), [1, 1, 1, 1]);
}

#[test]
fn a_handler_that_removes_itself_is_dropped_after_its_call() {
    let _alone = alone();
    for polled in [false, true] {
        let (host, _events) = host();
        let (done, is_done) = channel();
        *host.at_drop.lock().expect("not poisoned") = Some(Box::new(move || {
            let _ = done.send(());
        }));
        host.inside_next(|| {
            assert_eq!(unregister(), 0);
        });
        host.register();
        if polled {
            initialize_polled();
            poll_until(|| host.dropped() == 1);
        } else {
            assert_eq!(initialize(), 0);
        }
        is_done.recv_timeout(TIMEOUT).expect("dropped");
        assert_eq!(ShutdownNetwork(), 0);
        assert_eq!(host.dropped(), 1);
    }
}

#[test]
fn a_handler_survives_an_initialization_that_fails() {
    let _alone = alone();
    let (host, events) = host();
    host.register();
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { InitializeNetwork(null(), null()) }, -3);
    assert_eq!(host.dropped(), 0);
    assert_eq!(initialize(), 0);
    assert_eq!(initialize(), -2);
    wait_for(&events, MMN_EVENT_LEADERSHIP_GAINED);
    assert_eq!(ShutdownNetwork(), 0);
    assert_eq!(host.dropped(), 1);
}

#[test]
fn a_handler_registered_while_the_room_closes_is_for_the_next_one() {
    let _alone = alone();
    let ((old, _), (new, events)) = (host(), host());
    static ANSWERS: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    *old.at_drop.lock().expect("not poisoned") = Some(Box::new(|| {
        let answers = [
            new.register(),
            ShutdownNetwork(),
            initialize(),
            PollEvents(1),
        ];
        ANSWERS.lock().expect("not poisoned").extend(answers);
    }));
    old.register();
    assert_eq!(initialize(), 0);
    assert_eq!(ShutdownNetwork(), 0);
    assert_eq!((old.dropped(), new.dropped()), (1, 0));
    // The drop function runs under the rules of a callback.
    assert_eq!(*ANSWERS.lock().expect("not poisoned"), [0, -15, -2, -1]);
    assert_eq!(initialize(), 0);
    wait_for(&events, MMN_EVENT_LEADERSHIP_GAINED);
    assert_eq!(ShutdownNetwork(), 0);
    assert_eq!(new.dropped(), 1);
}

#[test]
fn many_threads_register_and_each_handler_is_dropped_once() {
    let _alone = alone();
    assert_eq!(initialize(), 0);
    let hosts: Vec<_> = (0..200).map(|_| host().0).collect();
    thread::scope(|scope| {
        for part in hosts.chunks(50) {
            scope.spawn(move || {
                for host in part {
                    assert_eq!(host.register(), 0);
                    let _ = send_to_myself("hello");
                }
            });
        }
        scope.spawn(|| {
            thread::yield_now();
            assert_eq!(ShutdownNetwork(), 0);
        });
    });
    assert_eq!(unregister(), 0);
    assert!(hosts.iter().all(|host| host.dropped() == 1));
}

#[test]
fn polling_runs_everything_on_the_callers_thread() {
    let _alone = alone();
    assert_eq!(PollEvents(0), -3);
    assert!(last_error().contains("max is 0"));
    assert_eq!(PollEvents(-1), -3);
    assert_eq!(PollEvents(1), -1);
    assert_eq!(initialize(), 0);
    assert_eq!(PollEvents(1), -3);
    assert!(last_error().contains("Poll"), "{}", last_error());
    assert_eq!(ShutdownNetwork(), 0);

    let (host, events) = host();
    host.register();
    initialize_polled();
    poll_until(|| matches!(events.try_recv(), Ok((MMN_EVENT_LEADERSHIP_GAINED, ..))));
    assert_eq!(PollEvents(100), 0);
    static CLASSIC: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn on_message(_: *const c_char, _: *const u8, _: i32, _: u16, _: u8) {
        CLASSIC.fetch_add(1, Ordering::SeqCst);
    }
    assert_eq!(RegisterReceiveCallback(Some(on_message)), 0);
    for what in ["a", "b", "c"] {
        assert_eq!(send_to_myself(what), 0);
    }
    assert!(events.try_recv().is_err());
    assert_eq!(PollEvents(2), 2);
    assert_eq!(CLASSIC.load(Ordering::SeqCst), 2);
    assert_eq!(events.try_iter().count(), 2);
    // A shutdown drops queued events without delivering them, and still releases the handler.
    assert_eq!(ShutdownNetwork(), 0);
    assert_eq!(host.dropped(), 1);
    assert_eq!(events.try_iter().count(), 0);
    assert_eq!(PollEvents(1), -1);
}

#[test]
fn shutting_down_and_polling_are_refused_inside_a_poll() {
    let _alone = alone();
    let (host, _events) = host();
    static ANSWERS: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    host.inside_next(|| {
        let mut answers = ANSWERS.lock().expect("not poisoned");
        answers.extend([ShutdownNetwork(), PollEvents(1), initialize()]);
        assert_eq!(GetLastErrorCode(), -2);
    });
    host.register();
    initialize_polled();
    poll_until(|| !ANSWERS.lock().expect("not poisoned").is_empty());
    assert_eq!(*ANSWERS.lock().expect("not poisoned"), [-15, -15, -2]);
    assert_eq!(ShutdownNetwork(), 0);
    assert_eq!(host.dropped(), 1);
}

#[test]
fn a_second_poller_is_refused_and_a_shutdown_waits_for_the_first() {
    let _alone = alone();
    let (host, _events) = host();
    let (begun, begins) = channel();
    let (go, may_go) = channel::<()>();
    host.inside_next(move || {
        let _ = begun.send(());
        let _ = may_go.recv();
    });
    host.register();
    initialize_polled();
    let polling = thread::spawn(|| {
        loop {
            match PollEvents(1) {
                0 => thread::yield_now(),
                reported => return reported,
            }
        }
    });
    begins.recv_timeout(TIMEOUT).expect("it runs");
    assert_eq!(PollEvents(1), -15);
    static CLOSED: AtomicBool = AtomicBool::new(false);
    let closing = thread::spawn(|| {
        let answer = ShutdownNetwork();
        CLOSED.store(true, Ordering::SeqCst);
        answer
    });
    while default_room::is_open() {
        thread::yield_now();
    }
    assert!(!CLOSED.load(Ordering::SeqCst));
    assert_eq!(host.dropped(), 0);
    drop(go);
    assert_eq!(closing.join().expect("no panic"), 0);
    assert_eq!(polling.join().expect("no panic"), 1);
    assert_eq!(host.dropped(), 1);
}

/// Records of a log callback: level, line and the library's answers inside it.
type Logged = (i32, String, [i32; 3], String);

extern "C" fn on_log(user_data: *mut c_void, level: i32, message: *const c_char) {
    // SAFETY: the registration below gives a leaked sender.
    let sender = unsafe { &*user_data.cast::<Sender<Logged>>() };
    let message = text(message);
    let answers = [send_to_myself("x"), ShutdownNetwork(), SetLogLevel(9)];
    let id = GetLocalPeerId();
    let id = if id.is_null() {
        String::new()
    } else {
        text(id)
    };
    let _ = sender.send((level, message, answers, id));
}

#[test]
fn the_log_callback_receives_the_network_threads_lines_and_cannot_deadlock_it() {
    let _alone = alone();
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn on_log_drop(_: *mut c_void) {
        DROPPED.fetch_add(1, Ordering::SeqCst);
    }
    let register = |level, callback: LogCallback, sender: Sender<Logged>| {
        let sender: &'static _ = Box::leak(Box::new(sender));
        let user_data = std::ptr::from_ref(sender).cast_mut().cast();
        // SAFETY: the functions fit, and a sender may be used on any thread.
        unsafe { RegisterLogCallback(level, callback, user_data, Some(on_log_drop)) }
    };
    let (sender, logged) = channel();
    for level in [-1, 6] {
        assert_eq!(register(level, Some(on_log), sender.clone()), -3);
        assert!(last_error().contains(&format!("level {level}")));
        assert_eq!(SetLogLevel(level), -3);
    }
    assert_eq!(DROPPED.load(Ordering::SeqCst), 0, "the call failed");
    assert_eq!(register(3, Some(on_log), sender.clone()), 0);
    assert_eq!(initialize(), 0);
    // The room elects its member on the network thread, before or after it counts as open.
    let (level, line, answers, _) = loop {
        let record = logged.recv_timeout(TIMEOUT).expect("a record");
        if record.1.contains("leader=\"me\"") {
            break record;
        }
    };
    assert_eq!(level, 3, "{line}");
    assert_eq!(answers, [-15, -15, -3]);
    // Queries answer inside it. The log shows the result of a dial.
    assert_eq!(register(4, Some(on_log), sender.clone()), 0);
    assert_eq!(DROPPED.load(Ordering::SeqCst), 1);
    // SAFETY: it has a NUL.
    let dialled = unsafe { ConnectToPeer(c"no-such-name.invalid:1".as_ptr()) };
    assert_eq!(dialled, 0);
    loop {
        let (level, line, _, id) = logged.recv_timeout(TIMEOUT).expect("a record");
        if line.contains("ConnectToPeer ended") {
            assert!(line.contains("NameNotResolved"), "{line}");
            assert_eq!((level, id.as_str()), (3, "me"));
            break;
        }
    }
    assert_eq!(ShutdownNetwork(), 0);
    assert_eq!(DROPPED.load(Ordering::SeqCst), 1, "it is not the room's");
    // SAFETY: NULL needs nothing.
    assert_eq!(unsafe { RegisterLogCallback(0, None, null_mut(), None) }, 0);
    assert_eq!(DROPPED.load(Ordering::SeqCst), 2);
}
