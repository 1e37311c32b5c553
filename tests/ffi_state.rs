//! The room's state through the C ABI, in rooms of one member.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::thread::sleep;
use std::time::{Duration, Instant};

use meta_mystia_network::ffi::errors::mmn_last_error_message;
use meta_mystia_network::ffi::events::*;
use meta_mystia_network::ffi::lifecycle::*;
use meta_mystia_network::ffi::options::MmnOptions;
use meta_mystia_network::ffi::state::*;
use meta_mystia_network::ffi::values::MMN_DISPATCH_POLL;

/// Far longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// An event: kind, other, data, request, count, code.
type Received = (u32, String, Vec<u8>, u64, u64, i32);

thread_local! {
    /// The events of this thread's room, which it polls.
    static RECEIVED: RefCell<Vec<Received>> = const { RefCell::new(Vec::new()) };
}

extern "C" fn on_event(_: *mut c_void, event: *const MmnEvent) {
    // SAFETY: it is valid during the call.
    let event = unsafe { &*event };
    let data = bytes(event.data, event.length);
    if event.kind == MMN_EVENT_PROPERTY {
        let key = c"map".as_ptr();
        // Neither other properties nor other functions end the time of a value inside a callback.
        let (first, info) = property(event.room, key);
        let (other, _) = property(event.room, c"b".as_ptr());
        // SAFETY: the text has a NUL.
        unsafe { mmn_property_keys(event.room, null()) };
        property(event.room, c"none".as_ptr());
        assert_eq!(bytes(first, info.length), data);
        assert_eq!((info.version, info.flags), (event.count, 4 | 16));
        assert_eq!(
            (text(info.owner), text(event.owner)),
            ("me".into(), "me".into())
        );
        assert!(other.is_null());
    }
    let received = (
        event.kind,
        text(event.other),
        data,
        event.request,
        event.count,
        event.code,
    );
    RECEIVED.with_borrow_mut(|all| all.push(received));
}

fn text(text: *const c_char) -> String {
    assert!(!text.is_null());
    // SAFETY: the library's strings are NUL-terminated, and valid here.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().expect("UTF-8").to_owned()
}

fn bytes(data: *const u8, length: i32) -> Vec<u8> {
    assert!(!data.is_null());
    let length = usize::try_from(length).expect("not negative");
    // SAFETY: `length` bytes, valid here.
    unsafe { std::slice::from_raw_parts(data, length) }.to_vec()
}

fn property(room: MmnRoom, key: *const c_char) -> (*const u8, MmnPropertyInfo) {
    let mut info = MmnPropertyInfo::default();
    // SAFETY: the key has a NUL, and the struct the size in its struct_size.
    let value = unsafe { mmn_property(room, key, &raw mut info) };
    (value, info)
}

fn last_message() -> String {
    text(mmn_last_error_message())
}

fn open(session: &CStr, state: Option<&MmnStateOptions>) -> MmnRoom {
    let options = MmnOptions {
        dispatch_mode: MMN_DISPATCH_POLL,
        on_event: Some(on_event),
        state: state.map_or(null(), std::ptr::from_ref),
        ..MmnOptions::default()
    };
    let mut room = 0;
    // SAFETY: the strings have a NUL, the structs the sizes in their struct_size, and the number can be written.
    let code = unsafe { mmn_open(c"me".as_ptr(), session.as_ptr(), &options, &raw mut room) };
    assert_eq!(code, 0, "{}", last_message());
    room
}

/// Polls until the request has its result, which is the code.
fn result_of(room: MmnRoom, request: u64) -> i32 {
    let end = Instant::now() + TIMEOUT;
    loop {
        assert!(mmn_poll(room, 100) >= 0);
        let found = RECEIVED.with_borrow(|all| {
            let result = all
                .iter()
                .find(|event| (event.0, event.3) == (MMN_EVENT_ACTION_RESULT, request));
            result.map(|event| event.5)
        });
        if let Some(code) = found {
            return code;
        }
        assert!(Instant::now() < end, "no result: {RECEIVED:?}");
        sleep(Duration::from_millis(2));
    }
}

fn set(room: MmnRoom, change: MmnPropertyChange) -> i32 {
    let mut request = 0;
    // SAFETY: the strings have a NUL, and the number can be written.
    let code = unsafe { mmn_set_properties(room, &raw const change, 1, &raw mut request) };
    assert_eq!(code, 0, "{}", last_message());
    assert_ne!(request, 0);
    result_of(room, request)
}

fn map(value: &'static CStr) -> MmnPropertyChange {
    MmnPropertyChange {
        key: c"map".as_ptr(),
        owner: c"me".as_ptr(),
        value: value.as_ptr().cast(),
        length: i32::try_from(value.count_bytes()).expect("short"),
        flags: MMN_PROPERTY_OWNER_ONLY | MMN_PROPERTY_FALLS_TO_LEADER,
        ..MmnPropertyChange::default()
    }
}

#[test]
fn a_room_of_one_confirms_its_own_requests_and_lends_its_properties() {
    let room = open(c"state-alone", Some(&MmnStateOptions::default()));
    let (mut action, data) = (0, b"hello");
    // SAFETY: the bytes are there, and the number can be written.
    let code = unsafe { mmn_submit(room, data.as_ptr(), 5, 0x100, &raw mut action) };
    assert_eq!(code, 0, "{}", last_message());
    assert_eq!(result_of(room, action), 0);
    let is_received = |all: &Vec<Received>| {
        all.iter()
            .any(|event| (event.0, &event.2[..], event.3) == (MMN_EVENT_ACTION, b"hello", action))
    };
    assert!(RECEIVED.with_borrow(is_received));

    assert_eq!(set(room, map(c"forest")), 0);
    // Elsewhere a value stays until the thread's next call, whatever happens to the property.
    let (value, info) = property(room, c"map".as_ptr());
    assert_eq!(
        set(
            room,
            MmnPropertyChange {
                expected_version: info.version,
                ..map(c"sea")
            }
        ),
        0
    );
    assert_eq!(bytes(value, info.length), b"forest");
    assert_eq!(text(info.owner), "me");
    let stale = MmnPropertyChange {
        expected_version: info.version,
        ..map(c"moon")
    };
    assert_eq!(set(room, stale), -25);
    let (value, info) = property(room, c"map".as_ptr());
    assert_eq!(bytes(value, info.length), b"sea");

    // SAFETY: the strings have a NUL.
    let keys = |owner| text(unsafe { mmn_property_keys(room, owner) });
    assert_eq!(
        (keys(null()), keys(c"me".as_ptr())),
        ("map".into(), "map".into())
    );
    assert_eq!(keys(c"other".as_ptr()), "");
    let mut state = MmnStateInfo {
        struct_size: size_of::<MmnStateInfo>() as u32,
        ..MmnStateInfo::default()
    };
    // SAFETY: the struct has the size in its struct_size.
    assert_eq!(unsafe { mmn_state_info(room, &raw mut state) }, 0);
    assert_eq!((state.members, state.exclusive, state.pending), (1, 1, 0));
    assert!(state.index > 0 && state.history > 0 && state.bytes > 0);
    // The library appends no result of a refused call.
    let long = [0_u8; 16_385];
    // SAFETY: the bytes are there.
    let code = unsafe { mmn_submit(room, long.as_ptr(), 16_385, 0x100, null_mut()) };
    assert_eq!(code, -8);
    assert_eq!(
        last_message(),
        "the action has 16385 bytes; at most 16384 are allowed"
    );
    assert_eq!(mmn_close(room), 0);
}

#[test]
fn a_room_without_a_state_refuses_its_functions() {
    let room = open(c"state-none", None);
    let mut request = 7;
    let change = map(c"forest");
    let mut state = MmnStateInfo {
        struct_size: size_of::<MmnStateInfo>() as u32,
        ..MmnStateInfo::default()
    };
    let expected = "this room has no state; open it with MmnOptions.state";
    // SAFETY: the strings have a NUL, the structs the sizes in their struct_size, and the numbers can be written.
    unsafe {
        for code in [
            mmn_submit(room, null(), 0, 0x100, &raw mut request),
            mmn_set_properties(room, &raw const change, 1, &raw mut request),
            mmn_provide_snapshot(room, 1, null(), 0),
            mmn_state_info(room, &raw mut state),
        ] {
            assert_eq!((code, last_message().as_str()), (-16, expected));
        }
        assert!(mmn_property(room, c"map".as_ptr(), null_mut()).is_null());
        assert!(mmn_property_keys(room, null()).is_null());
    }
    assert_eq!((request, last_message().as_str()), (7, expected));
    assert_eq!(mmn_close(room), 0);
}
