//! Several rooms in one process, by their handles.

use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use meta_mystia_network::ffi::classic::{InitializeNetwork, IsNetworkInitialized, ShutdownNetwork};
use meta_mystia_network::ffi::codes::*;
use meta_mystia_network::ffi::errors::{mmn_last_error_code, mmn_last_error_message};
use meta_mystia_network::ffi::events::*;
use meta_mystia_network::ffi::leader::{mmn_is_leader, mmn_leader};
use meta_mystia_network::ffi::lifecycle::*;
use meta_mystia_network::ffi::options::MmnOptions;
use meta_mystia_network::ffi::peers::*;
use meta_mystia_network::ffi::send::mmn_broadcast;
use meta_mystia_network::ffi::values::{MMN_DISPATCH_POLL, MMN_DISPATCH_THREAD};

/// Longest wait for what must happen.
const LIMIT: Duration = Duration::from_secs(20);

/// A host of one room: the events that it received.
struct Host {
    events: Mutex<VecDeque<Seen>>,
    drops: AtomicU32,
}

/// An event as the host received it.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    room: MmnRoom,
    kind: u32,
    peer: String,
    data: Vec<u8>,
}

extern "C" fn on_event(user_data: *mut c_void, event: *const MmnEvent) {
    // SAFETY: the host outlives its room, and the event is valid during the call.
    let (host, event) = unsafe { (&*user_data.cast::<Host>(), &*event) };
    assert_eq!(
        mmn_is_open(event.room),
        1,
        "the handle precedes the first callback"
    );
    let length = usize::try_from(event.length).expect("not negative");
    // SAFETY: never NULL; the string ends with a NUL, and the data has its length.
    let (peer, data) = unsafe {
        let data = std::slice::from_raw_parts(event.data, length);
        (CStr::from_ptr(event.peer), data.to_vec())
    };
    host.events.lock().expect("no panic").push_back(Seen {
        room: event.room,
        kind: event.kind,
        peer: peer.to_string_lossy().into_owned(),
        data,
    });
}

extern "C" fn on_drop(user_data: *mut c_void) {
    // SAFETY: the host outlives its room.
    let host = unsafe { &*user_data.cast::<Host>() };
    host.drops.fetch_add(1, Ordering::SeqCst);
}

impl Host {
    fn new() -> &'static Self {
        Box::leak(Box::new(Self {
            events: Mutex::default(),
            drops: AtomicU32::new(0),
        }))
    }

    fn options(&'static self, dispatch_mode: u32) -> MmnOptions {
        MmnOptions {
            on_event: Some(on_event),
            user_data: std::ptr::from_ref(self).cast_mut().cast(),
            drop_fn: Some(on_drop),
            dispatch_mode,
            ..MmnOptions::default()
        }
    }

    fn has(&self, is_it: impl Fn(&Seen) -> bool) -> bool {
        self.events.lock().expect("no panic").iter().any(is_it)
    }

    fn drops(&self) -> u32 {
        self.drops.load(Ordering::SeqCst)
    }
}

fn try_open(peer: &str, session: &str, options: &MmnOptions) -> (i32, MmnRoom) {
    let (peer, session) = (CString::new(peer), CString::new(session));
    let (peer, session) = (peer.expect("no NUL"), session.expect("no NUL"));
    let mut room = 0;
    // SAFETY: strings with a NUL, a whole struct, and a place for the number.
    let code = unsafe { mmn_open(peer.as_ptr(), session.as_ptr(), options, &mut room) };
    (code, room)
}

fn open(peer: &str, session: &str, options: &MmnOptions) -> MmnRoom {
    let (code, room) = try_open(peer, session, options);
    assert_eq!(code, MMN_OK, "{}", last_error());
    assert!((1..1 << 53).contains(&room), "{room}");
    room
}

fn last_error() -> String {
    // SAFETY: never NULL, and valid until this thread's next call that returns a string.
    let text = unsafe { CStr::from_ptr(mmn_last_error_message()) };
    text.to_string_lossy().into_owned()
}

fn connect(from: MmnRoom, to: MmnRoom) {
    // SAFETY: the room is open, and the string ends with a NUL.
    let address = unsafe { CStr::from_ptr(mmn_local_address(to)) }.to_owned();
    // SAFETY: a string with a NUL.
    let code = unsafe { mmn_connect(from, address.as_ptr()) };
    assert_eq!(code, MMN_OK, "{}", last_error());
}

fn broadcast(room: MmnRoom, data: &[u8]) -> i32 {
    let length = i32::try_from(data.len()).expect("short");
    // SAFETY: the data has its length; NULL are the default options.
    unsafe { mmn_broadcast(room, data.as_ptr(), length, 0x100, std::ptr::null()) }
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn two_players_of_one_room_and_another_room_live_in_one_process() {
    let (ann, ben, other) = (Host::new(), Host::new(), Host::new());
    let a = open("ann", "a room", &ann.options(MMN_DISPATCH_THREAD));
    let b = open("ben", "a room", &ben.options(MMN_DISPATCH_POLL));
    let c = open("ann", "another room", &other.options(MMN_DISPATCH_THREAD));
    assert!(a != b && b != c && a != c);
    connect(a, b);
    eventually("one leader of two players", || {
        mmn_poll(b, 100);
        let led = [a, b].map(|room| mmn_is_leader(room));
        [a, b].map(|room| mmn_peer_count(room)) == [1, 1] && led[0] + led[1] == 1
    });
    assert_eq!(mmn_peer_count(c), 0);
    eventually("the lone member leads", || mmn_is_leader(c) == 1);
    assert_eq!(broadcast(a, b"for ben"), MMN_OK);
    let arrived = Seen {
        room: b,
        kind: MMN_EVENT_MESSAGE,
        peer: "ann".into(),
        data: b"for ben".to_vec(),
    };
    eventually("the message arrives in its room", || {
        mmn_poll(b, 100);
        ben.has(|seen| *seen == arrived)
    });
    assert!(!other.has(|seen| seen.kind == MMN_EVENT_MESSAGE));
    for (host, room) in [(ann, a), (ben, b), (other, c)] {
        assert!(!host.has(|seen| seen.room != room));
    }
    // The end of one room leaves the others alone.
    assert_eq!(mmn_close(a), MMN_OK);
    assert_eq!((ann.drops(), ben.drops()), (1, 0));
    eventually("ben leads alone", || {
        mmn_poll(b, 100);
        mmn_peer_count(b) == 0 && mmn_is_leader(b) == 1
    });
    assert_eq!((mmn_is_open(a), mmn_is_open(b), mmn_is_open(c)), (0, 1, 1));
    for room in [b, c] {
        assert_eq!(mmn_close(room), MMN_OK);
    }
    assert_eq!([ann, ben, other].map(Host::drops), [1, 1, 1]);
}

#[test]
fn handles_that_name_no_open_room_are_errors() {
    let host = Host::new();
    let room = open("a", "handles", &host.options(MMN_DISPATCH_THREAD));
    assert_eq!(mmn_close(room), MMN_OK);
    let next = open("a", "handles", &host.options(MMN_DISPATCH_THREAD));
    assert_ne!(room, next, "no handle is used twice");
    for stale in [0, 1, room, room ^ 1, next + (1 << 12), 1 << 53, u64::MAX] {
        assert_eq!(mmn_close(stale), MMN_NOT_INITIALIZED, "{stale}");
        assert_eq!(mmn_leave(stale), MMN_NOT_INITIALIZED, "{stale}");
        assert_eq!(broadcast(stale, b"x"), MMN_NOT_INITIALIZED, "{stale}");
        assert_eq!(
            (mmn_peer_count(stale), mmn_last_error_code()),
            (-1, MMN_NOT_INITIALIZED)
        );
        assert!(mmn_leader(stale).is_null());
        assert_eq!((mmn_is_leader(stale), mmn_is_open(stale)), (0, 0));
        let sentence = last_error();
        assert!(
            stale == 0 || sentence.contains(&format!("the room {stale} ")),
            "{sentence}"
        );
    }
    assert_eq!(mmn_is_open(next), 1);
    assert_eq!(mmn_close(next), MMN_OK);
}

#[test]
fn a_failed_open_does_not_use_the_handler() {
    let host = Host::new();
    let options = MmnOptions {
        bind_port: 65_536,
        ..host.options(MMN_DISPATCH_THREAD)
    };
    assert_eq!(try_open("a", "fails", &options), (MMN_INVALID_ARGUMENT, 0));
    let taken = open("a", "fails", &host.options(MMN_DISPATCH_THREAD));
    // SAFETY: the room is open.
    let address = unsafe { CStr::from_ptr(mmn_local_address(taken)) };
    let port = address
        .to_str()
        .expect("ASCII")
        .rsplit_once(':')
        .expect("a port")
        .1;
    let second = Host::new();
    let options = MmnOptions {
        bind_port: port.parse().expect("a number"),
        ..second.options(MMN_DISPATCH_THREAD)
    };
    assert_eq!(try_open("b", "fails", &options), (MMN_CONNECTION_FAILED, 0));
    assert_eq!(second.drops(), 0);
    assert!(!second.has(|_| true));
    assert_eq!(mmn_close(taken), MMN_OK);
    assert_eq!(host.drops(), 1);
}

/// Where the callbacks of the next test report what they were answered.
static ANSWERS: Mutex<Option<mpsc::Sender<[i32; 4]>>> = Mutex::new(None);

extern "C" fn closes_inside(user_data: *mut c_void, event: *const MmnEvent) {
    // SAFETY: the event is valid during the call, and the other room's number outlives the rooms.
    let (event, other) = unsafe { (&*event, *user_data.cast::<MmnRoom>()) };
    let Some(answers) = ANSWERS.lock().expect("no panic").take() else {
        return;
    };
    let answer = [
        mmn_close(event.room),
        mmn_close(other),
        mmn_poll(other, 1),
        mmn_leave(other),
    ];
    answers.send(answer).expect("the test waits");
}

#[test]
fn inside_a_callback_no_room_can_be_closed_and_any_can_be_left() {
    let host = Host::new();
    let other = open("b", "inside", &host.options(MMN_DISPATCH_POLL));
    let (send, answers) = mpsc::channel();
    *ANSWERS.lock().expect("no panic") = Some(send);
    let number = Box::leak(Box::new(other));
    let options = MmnOptions {
        on_event: Some(closes_inside),
        user_data: std::ptr::from_mut(number).cast(),
        ..MmnOptions::default()
    };
    let room = open("a", "inside", &options);
    let answer = answers.recv_timeout(LIMIT).expect("an event");
    let expected = [
        MMN_WOULD_DEADLOCK,
        MMN_WOULD_DEADLOCK,
        MMN_WOULD_DEADLOCK,
        MMN_OK,
    ];
    assert_eq!(answer, expected);
    assert_eq!(
        (mmn_is_open(other), mmn_leave(other)),
        (0, MMN_NOT_INITIALIZED)
    );
    assert_eq!((mmn_close(other), mmn_close(room)), (MMN_OK, MMN_OK));
    assert_eq!(host.drops(), 1);
}

#[test]
fn the_default_room_is_one_of_the_rooms() {
    let host = Host::new();
    let other = open(
        "a",
        "beside the default",
        &host.options(MMN_DISPATCH_THREAD),
    );
    assert_eq!((mmn_default_room(), IsNetworkInitialized()), (0, 0));
    // SAFETY: strings with a NUL.
    let code = unsafe { InitializeNetwork(c"a".as_ptr(), c"default".as_ptr()) };
    assert_eq!(code, MMN_OK, "{}", last_error());
    let default = mmn_default_room();
    assert_eq!((mmn_is_open(default), IsNetworkInitialized()), (1, 1));
    let second = MmnOptions {
        is_default: 1,
        ..host.options(MMN_DISPATCH_THREAD)
    };
    assert_eq!(
        try_open("b", "default", &second),
        (MMN_ALREADY_INITIALIZED, 0)
    );
    assert_eq!(ShutdownNetwork(), MMN_OK);
    assert_eq!((mmn_is_open(default), mmn_is_open(other)), (0, 1));
    assert_eq!(mmn_default_room(), 0);
    let room = open("b", "default", &second);
    assert_eq!((mmn_default_room(), IsNetworkInitialized()), (room, 1));
    assert_eq!(mmn_close(room), MMN_OK);
    assert_eq!(
        (IsNetworkInitialized(), ShutdownNetwork()),
        (0, MMN_NOT_INITIALIZED)
    );
    // A default room that began to leave makes room for the next one.
    let left = open("b", "default", &second);
    assert_eq!((mmn_leave(left), IsNetworkInitialized()), (MMN_OK, 0));
    let next = open("b", "default", &second);
    assert_eq!((mmn_close(left), mmn_default_room()), (MMN_OK, next));
    assert_eq!(ShutdownNetwork(), MMN_OK);
    assert_eq!(mmn_close(other), MMN_OK);
    assert_eq!(host.drops(), 4);
}

#[test]
fn rooms_open_and_close_on_many_threads_and_nobody_meets_anothers_room() {
    let started = Instant::now();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            thread::spawn(move || {
                let mut stale = Vec::new();
                for round in 0..25 {
                    let host = Host::new();
                    let name = format!("{thread}-{round}");
                    let room = open("me", &name, &host.options(MMN_DISPATCH_POLL));
                    // SAFETY: the room is open; a string ends with a NUL.
                    let session = unsafe { CStr::from_ptr(mmn_session_id(room)) };
                    assert_eq!(session.to_str(), Ok(&*name));
                    for old in &stale {
                        assert!(mmn_session_id(*old).is_null());
                    }
                    assert_eq!(mmn_close(room), MMN_OK);
                    assert_eq!(host.drops(), 1);
                    stale.push(room);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    println!("200 rooms in {:?}", started.elapsed());
}

#[test]
fn many_rooms_that_begin_to_leave_together_are_closed_together() {
    let host = Host::new();
    let rooms: Vec<_> = (0..50)
        .map(|n| {
            open(
                &format!("m{n}"),
                "together",
                &host.options(MMN_DISPATCH_POLL),
            )
        })
        .collect();
    for room in &rooms[1..] {
        connect(*room, rooms[0]);
    }
    eventually("some are linked", || mmn_peer_count(rooms[0]) > 20);
    for room in &rooms {
        assert_eq!(mmn_leave(*room), MMN_OK);
    }
    for room in rooms {
        assert_eq!(mmn_close(room), MMN_OK);
    }
    assert_eq!(host.drops(), 50);
}

#[test]
fn a_handler_is_replaced_and_its_data_released_once() {
    let (first, second) = (Host::new(), Host::new());
    let room = open("a", "replaced", &first.options(MMN_DISPATCH_THREAD));
    let data = std::ptr::from_ref(second).cast_mut().cast();
    // SAFETY: the host outlives the room.
    let code = unsafe { mmn_set_event_handler(room, Some(on_event), data, Some(on_drop)) };
    assert_eq!((code, first.drops(), second.drops()), (MMN_OK, 1, 0));
    eventually("the new handler receives the leader", || {
        second.has(|seen| seen.kind == MMN_EVENT_LEADER_CHANGED && seen.room == room)
    });
    // SAFETY: no handler.
    let code = unsafe { mmn_set_event_handler(room, None, null_mut(), None) };
    assert_eq!((code, second.drops()), (MMN_OK, 1));
    assert_eq!(mmn_close(room), MMN_OK);
    // SAFETY: the host outlives the call, which fails.
    let code = unsafe { mmn_set_event_handler(room, Some(on_event), data, Some(on_drop)) };
    assert_eq!((code, second.drops()), (MMN_NOT_INITIALIZED, 1));
}
