//! The event handler, poll mode and the log callback through the C ABI, with rooms that have one member.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use meta_mystia_network::ffi::classic::InitializeNetwork;
use meta_mystia_network::ffi::classic::callbacks::RegisterReceiveCallback;
use meta_mystia_network::ffi::errors::{mmn_last_error_code, mmn_last_error_message};
use meta_mystia_network::ffi::events::*;
use meta_mystia_network::ffi::leader::mmn_is_leader;
use meta_mystia_network::ffi::lifecycle::*;
use meta_mystia_network::ffi::logs::*;
use meta_mystia_network::ffi::members::mmn_set_max_peers;
use meta_mystia_network::ffi::options::MmnOptions;
use meta_mystia_network::ffi::peers::{mmn_connect, mmn_local_id};
use meta_mystia_network::ffi::send::{mmn_broadcast_as_leader, mmn_send};
use meta_mystia_network::ffi::values::{MMN_DISPATCH_POLL, MMN_HOST_MODE_HOST};

/// Far longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// One default room in the process: its tests take turns.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An event: kind, peer, data.
type Received = (u32, String, Vec<u8>);

/// Code to run inside a callback, with the room of its event.
type Inside = Box<dyn FnOnce(MmnRoom) + Send>;

/// The object behind a host's user data. Leaked, so that a call after the last one is noticed and does not crash.
struct Host {
    sender: Sender<Received>,
    calls_inside: AtomicUsize,
    dropped: AtomicUsize,
    /// Run inside the next event, with its room.
    inside: Mutex<Option<Inside>>,
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
    /// Opens a room with this handler.
    fn open(&'static self, options: MmnOptions) -> MmnRoom {
        open(MmnOptions {
            on_event: Some(on_event),
            user_data: self.pointer(),
            drop_fn: Some(on_drop),
            ..options
        })
    }

    fn register(&'static self, room: MmnRoom) -> i32 {
        // SAFETY: the functions fit, and a `Host` may be used on any thread.
        unsafe { mmn_set_event_handler(room, Some(on_event), self.pointer(), Some(on_drop)) }
    }

    fn pointer(&'static self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }

    fn inside_next(&self, run: impl FnOnce(MmnRoom) + Send + 'static) {
        *self.inside.lock().expect("not poisoned") = Some(Box::new(run));
    }

    fn at_drop(&self, run: impl FnOnce() + Send + 'static) {
        *self.at_drop.lock().expect("not poisoned") = Some(Box::new(run));
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

extern "C" fn on_event(user_data: *mut c_void, event: *const MmnEvent) {
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
        run(event.room);
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

fn unregister(room: MmnRoom) -> i32 {
    // SAFETY: NULL needs nothing.
    unsafe { mmn_set_event_handler(room, None, null_mut(), None) }
}

fn try_open(options: &MmnOptions) -> (i32, MmnRoom) {
    let mut room = 0;
    // SAFETY: strings with a NUL, a whole struct, and a place for the number.
    let code = unsafe { mmn_open(c"me".as_ptr(), c"events".as_ptr(), options, &mut room) };
    (code, room)
}

fn open(options: MmnOptions) -> MmnRoom {
    let (code, room) = try_open(&options);
    assert_eq!(code, 0, "{}", last_error());
    room
}

fn polled() -> MmnOptions {
    MmnOptions {
        dispatch_mode: MMN_DISPATCH_POLL,
        ..MmnOptions::default()
    }
}

fn send_to_myself(room: MmnRoom, what: &str) -> i32 {
    let length = i32::try_from(what.len()).expect("short");
    // SAFETY: the id has a NUL, and the data its length; NULL are the default options.
    unsafe { mmn_send(room, c"me".as_ptr(), what.as_ptr(), length, 0x100, null()) }
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
fn poll_until(room: MmnRoom, mut done: impl FnMut() -> bool) -> i32 {
    let started = std::time::Instant::now();
    let mut reported = 0;
    while !done() {
        assert!(started.elapsed() < TIMEOUT, "it never came so far");
        let now = mmn_poll(room, 100);
        assert!(now >= 0, "{now}");
        reported += now;
        thread::yield_now();
    }
    reported
}

fn last_error() -> String {
    text(mmn_last_error_message())
}

#[test]
fn a_handler_in_the_options_receives_the_first_event() {
    let (host, events) = host();
    let room = host.open(MmnOptions::default());
    let first = events.recv_timeout(TIMEOUT).expect("an event");
    assert_eq!(first, (MMN_EVENT_LEADER_CHANGED, "me".into(), vec![]));
    let second = events.recv_timeout(TIMEOUT).expect("an event");
    assert_eq!(second.0, MMN_EVENT_LEADERSHIP_GAINED);
    // It takes messages, too: none waits for a Receive callback.
    assert_eq!(send_to_myself(room, "hello"), 0);
    let message = wait_for(&events, MMN_EVENT_MESSAGE);
    assert_eq!(message, (MMN_EVENT_MESSAGE, "me".into(), b"hello".into()));
    assert_eq!(host.dropped(), 0);
    assert_eq!(mmn_close(room), 0);
    assert_eq!(host.dropped(), 1);
}

#[test]
fn a_fixed_host_is_notified_of_its_leadership_when_it_can_act_on_it() {
    for _ in 0..20 {
        let (host, events) = host();
        let (answers, answered) = channel();
        host.inside_next(move |room| {
            // SAFETY: no bytes.
            let sent = unsafe { mmn_broadcast_as_leader(room, null(), 0, 0x0100, null()) };
            let _ = answers.send((mmn_is_leader(room), sent, mmn_set_max_peers(room, 3)));
        });
        let room = host.open(MmnOptions {
            host_mode: MMN_HOST_MODE_HOST,
            auto_election: 0,
            ..MmnOptions::default()
        });
        assert_eq!(mmn_is_leader(room), 1);
        assert_eq!(answered.recv_timeout(TIMEOUT), Ok((1, 0, 0)));
        let (_, leader, _) = wait_for(&events, MMN_EVENT_LEADER_CHANGED);
        assert_eq!(leader, "me");
        wait_for(&events, MMN_EVENT_LEADERSHIP_GAINED);
        assert_eq!(mmn_close(room), 0);
    }
}

#[test]
fn replaced_or_removed_handlers_are_dropped_once() {
    let hosts: Vec<_> = (0..3).map(|_| host()).collect();
    let dropped = || hosts.iter().map(|(host, _)| host.dropped());
    let room = hosts[0].0.open(MmnOptions::default());
    assert_eq!(hosts[1].0.register(room), 0);
    assert!(dropped().eq([1, 0, 0]));
    // The new handler first receives the present leader.
    wait_for(&hosts[1].1, MMN_EVENT_LEADER_CHANGED);
    assert_eq!((unregister(room), unregister(room)), (0, 0));
    assert!(dropped().eq([1, 1, 0]));
    assert_eq!(hosts[2].0.register(room), 0);
    wait_for(&hosts[2].1, MMN_EVENT_LEADERSHIP_GAINED);
    assert_eq!(mmn_close(room), 0);
    assert!(dropped().eq([1, 1, 1]));
}

#[test]
fn a_handler_that_removes_itself_is_dropped_after_its_call() {
    for options in [MmnOptions::default(), polled()] {
        let (host, _events) = host();
        let (done, is_done) = channel();
        host.at_drop(move || {
            let _ = done.send(());
        });
        host.inside_next(|room| assert_eq!(unregister(room), 0));
        let room = host.open(options);
        if options.dispatch_mode == MMN_DISPATCH_POLL {
            poll_until(room, || host.dropped() == 1);
        }
        is_done.recv_timeout(TIMEOUT).expect("dropped");
        assert_eq!(mmn_close(room), 0);
        assert_eq!(host.dropped(), 1);
    }
}

#[test]
fn the_drop_function_of_a_room_that_closes_runs_under_the_rules_of_a_callback() {
    let _alone = alone();
    let ((old, _), (new, events)) = (host(), host());
    let default = MmnOptions {
        is_default: 1,
        ..MmnOptions::default()
    };
    let room = old.open(default);
    let (send, answers) = channel();
    old.at_drop(move || {
        // SAFETY: both have a NUL.
        let opened = unsafe { InitializeNetwork(c"me".as_ptr(), c"events".as_ptr()) };
        let closed = mmn_close(room);
        let _ = send.send([new.register(room), closed, opened, mmn_poll(room, 1)]);
    });
    assert_eq!(mmn_close(room), 0);
    assert_eq!(answers.recv_timeout(TIMEOUT), Ok([-1, -15, -2, -1]));
    assert_eq!((old.dropped(), new.dropped()), (1, 0));
    let next = new.open(default);
    wait_for(&events, MMN_EVENT_LEADERSHIP_GAINED);
    assert_eq!(mmn_close(next), 0);
    assert_eq!((old.dropped(), new.dropped()), (1, 1));
}

#[test]
fn many_threads_register_and_each_handler_is_dropped_once() {
    let room = open(MmnOptions::default());
    let hosts: Vec<_> = (0..200).map(|_| host().0).collect();
    let registered = AtomicUsize::new(0);
    thread::scope(|scope| {
        for part in hosts.chunks(50) {
            let registered = &registered;
            scope.spawn(move || {
                for host in part {
                    let is_registered = host.register(room) == 0;
                    registered.fetch_add(is_registered.into(), Ordering::SeqCst);
                    let _ = send_to_myself(room, "hello");
                }
            });
        }
        scope.spawn(|| {
            while registered.load(Ordering::SeqCst) < 20 {
                thread::yield_now();
            }
            assert_eq!(mmn_close(room), 0);
        });
    });
    let dropped = hosts.iter().map(|host| host.dropped());
    assert!(dropped.clone().all(|dropped| dropped <= 1));
    assert_eq!(dropped.sum::<usize>(), registered.load(Ordering::SeqCst));
}

#[test]
fn polling_runs_everything_on_the_callers_thread() {
    let _alone = alone();
    let threaded = open(MmnOptions::default());
    assert_eq!(mmn_poll(threaded, 0), -3);
    assert!(last_error().contains("max is 0"));
    assert_eq!(mmn_poll(threaded, -1), -3);
    assert_eq!(mmn_poll(threaded, 1), -3);
    assert!(last_error().contains("dispatch_mode"), "{}", last_error());
    assert_eq!(mmn_close(threaded), 0);
    assert_eq!(mmn_poll(threaded, 1), -1);

    let (host, events) = host();
    let room = host.open(MmnOptions {
        is_default: 1,
        ..polled()
    });
    poll_until(room, || {
        matches!(events.try_recv(), Ok((MMN_EVENT_LEADERSHIP_GAINED, ..)))
    });
    assert_eq!(mmn_poll(room, 100), 0);
    static CLASSIC: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn on_message(_: *const c_char, _: *const u8, _: i32, _: u16, _: u8) {
        CLASSIC.fetch_add(1, Ordering::SeqCst);
    }
    assert_eq!(RegisterReceiveCallback(Some(on_message)), 0);
    for what in ["a", "b", "c"] {
        assert_eq!(send_to_myself(room, what), 0);
    }
    assert!(events.try_recv().is_err());
    // The classic callbacks of the default room run before its event handler.
    host.inside_next(|_| assert_eq!(CLASSIC.load(Ordering::SeqCst), 1));
    assert_eq!(mmn_poll(room, 2), 2);
    assert_eq!(CLASSIC.load(Ordering::SeqCst), 2);
    assert_eq!(events.try_iter().count(), 2);
    // Closing drops queued events without delivering them, and still releases the handler.
    assert_eq!(mmn_close(room), 0);
    assert_eq!(host.dropped(), 1);
    assert_eq!(events.try_iter().count(), 0);
    assert_eq!(mmn_poll(room, 1), -1);
}

#[test]
fn closing_and_polling_are_refused_inside_a_poll() {
    let (host, _events) = host();
    let (send, answers) = channel();
    host.inside_next(move |room| {
        let refused = [mmn_close(room), mmn_poll(room, 1)];
        let _ = send.send((refused, mmn_last_error_code()));
    });
    let room = host.open(polled());
    poll_until(room, || answers.try_recv() == Ok(([-15, -15], -15)));
    assert_eq!(mmn_close(room), 0);
    assert_eq!(host.dropped(), 1);
}

#[test]
fn a_second_poller_is_refused_and_closing_waits_for_the_first() {
    let (host, _events) = host();
    let (begun, begins) = channel();
    let (go, may_go) = channel::<()>();
    host.inside_next(move |_| {
        let _ = begun.send(());
        let _ = may_go.recv();
    });
    let room = host.open(polled());
    let polling = thread::spawn(move || {
        loop {
            match mmn_poll(room, 1) {
                0 => thread::yield_now(),
                reported => return reported,
            }
        }
    });
    begins.recv_timeout(TIMEOUT).expect("it runs");
    assert_eq!(mmn_poll(room, 1), -15);
    static CLOSED: AtomicBool = AtomicBool::new(false);
    let closing = thread::spawn(move || {
        let answer = mmn_close(room);
        CLOSED.store(true, Ordering::SeqCst);
        answer
    });
    while mmn_is_open(room) == 1 {
        thread::yield_now();
    }
    assert!(!CLOSED.load(Ordering::SeqCst));
    assert_eq!(host.dropped(), 0);
    drop(go);
    assert_eq!(closing.join().expect("no panic"), 0);
    assert_eq!(polling.join().expect("no panic"), 1);
    assert_eq!(host.dropped(), 1);
}

/// Records of a log callback: room, level, line, and the library's answers inside it.
type Logged = (MmnRoom, i32, String, [i32; 3], Option<String>);

extern "C" fn on_log(user_data: *mut c_void, room: MmnRoom, level: i32, message: *const c_char) {
    // SAFETY: the registration below gives a leaked sender.
    let sender = unsafe { &*user_data.cast::<Sender<Logged>>() };
    let message = text(message);
    let answers = [
        send_to_myself(room, "x"),
        mmn_close(room),
        mmn_set_log_stderr(9),
    ];
    let id = mmn_local_id(room);
    let id = (!id.is_null()).then(|| text(id));
    let _ = sender.send((room, level, message, answers, id));
}

/// The log is the process's: rooms of other tests write to it, too.
#[test]
fn the_log_callback_receives_the_network_threads_lines_and_cannot_deadlock_it() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn on_log_drop(_: *mut c_void) {
        DROPPED.fetch_add(1, Ordering::SeqCst);
    }
    let register = |level, callback: MmnLogCallback, sender: Sender<Logged>| {
        let sender: &'static _ = Box::leak(Box::new(sender));
        let user_data = std::ptr::from_ref(sender).cast_mut().cast();
        // SAFETY: the functions fit, and a sender may be used on any thread.
        unsafe { mmn_set_log(level, callback, user_data, Some(on_log_drop)) }
    };
    let (sender, logged) = channel();
    for level in [-1, 6] {
        assert_eq!(register(level, Some(on_log), sender.clone()), -3);
        assert!(last_error().contains(&format!("level {level}")));
        assert_eq!(mmn_set_log_stderr(level), -3);
    }
    assert_eq!(DROPPED.load(Ordering::SeqCst), 0, "the call failed");
    assert_eq!(register(3, Some(on_log), sender.clone()), 0);
    let room = open(MmnOptions::default());
    let record = |what: &str| loop {
        let record = logged.recv_timeout(TIMEOUT).expect("a record");
        if record.0 == room && record.2.contains(what) {
            break record;
        }
    };
    // The room elects its member on the network thread, before or after it counts as open.
    let (_, level, line, answers, _) = record("leader=\"me\"");
    assert_eq!((level, answers), (3, [-15, -15, -3]), "{line}");
    // Queries answer inside it. The log shows the result of a dial.
    assert_eq!(register(4, Some(on_log), sender.clone()), 0);
    assert_eq!(DROPPED.load(Ordering::SeqCst), 1);
    // SAFETY: it has a NUL.
    let dialled = unsafe { mmn_connect(room, c"no-such-name.invalid:1".as_ptr()) };
    assert_eq!(dialled, 0);
    let (_, level, line, _, id) = record("connecting ended");
    assert!(line.contains("NameNotResolved"), "{line}");
    assert_eq!((level, id.as_deref()), (3, Some("me")));
    assert_eq!(mmn_close(room), 0);
    assert_eq!(DROPPED.load(Ordering::SeqCst), 1, "it is not the room's");
    // SAFETY: NULL needs nothing.
    assert_eq!(unsafe { mmn_set_log(0, None, null_mut(), None) }, 0);
    assert_eq!(DROPPED.load(Ordering::SeqCst), 2);
}
