//! A fuzz target: calls of the exported functions in any order, with every kind of invalid argument that a host may
//! pass: NULL, no UTF-8, too long, negative lengths, structs of any size, unknown flags. Pointers are valid where the
//! header demands it, so that a sanitizer finds faults of the library only.
//!
//! The process opens rooms, each alone, in poll mode or not. Every answer must be a known code, and none that
//! of a panic.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use super::browse::*;
use super::classic::callbacks::*;
use super::classic::config::NetworkConfigFFI;
use super::classic::*;
use super::codes::*;
use super::errors::*;
use super::etcd::*;
use super::events::*;
use super::gossip::*;
use super::identity::*;
use super::leader::*;
use super::lifecycle::*;
use super::logs::*;
use super::members::*;
use super::options::*;
use super::peers::*;
use super::room_code::*;
use super::seeded::*;
use super::send::*;
use super::simulation::*;
use super::state::*;
use super::stats::*;
use super::transfers::*;
use super::values::*;
use super::version::*;
use crate::fuzzing::Chance;

/// Limit of the calls of one sequence, and of the rooms that it opens.
const MAX_CALLS: usize = 400;
const MAX_ROOMS: u32 = 3;
/// Longest payload that the host has.
const MAX_DATA_BYTES: usize = 300_000;
/// Length of a string without a NUL: the library may read no more than these bytes.
const ENDLESS_BYTES: usize = 64 * 1024;

/// Functions whose answer may be a number above 0, and -1 without an error.
const COUNTS: [&str; 12] = [
    "mmn_browse_poll",
    "mmn_poll",
    "mmn_generate_identity_key",
    "mmn_generate_room_code",
    "mmn_normalize_room_code",
    "mmn_broadcast",
    "mmn_peer_count",
    "mmn_peer_rtt_ms",
    "mmn_peer_status",
    "mmn_member_state",
    "mmn_strategy",
    "mmn_max_datagram_size",
];

/// Numbers of handlers registered with user data, and of those released.
static HELD: AtomicU32 = AtomicU32::new(0);
static DROPPED: AtomicU32 = AtomicU32::new(0);

/// A host that makes random calls.
struct Host<'a> {
    chance: Chance<'a>,
    /// Memory of strings and payloads, until the next call.
    text: Vec<u8>,
    other_text: Vec<u8>,
    data: Vec<u8>,
    seeded: MmnSeededOptions,
    etcd: MmnEtcdOptions,
    state: MmnStateOptions,
    changes: Vec<MmnPropertyChange>,
    rooms: u32,
    level: i32,
    /// Where the next room's number is written.
    opened: MmnRoom,
    /// The rooms that it has opened, closed ones too.
    handles: Vec<MmnRoom>,
    /// Where the next browser's number is written, and the browsers that it has opened, closed ones too.
    browser_opened: MmnBrowser,
    browsers: Vec<MmnBrowser>,
    /// Whether the present call passes a handler of events.
    offers_handler: bool,
}

/// The result of a function.
enum Answer {
    Code(i32),
    Number(i64),
    Text(*const c_char),
}

impl From<i32> for Answer {
    fn from(code: i32) -> Self {
        Self::Code(code)
    }
}

impl From<u32> for Answer {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u8> for Answer {
    fn from(flag: u8) -> Self {
        assert!(flag <= 1, "{flag} is no flag");
        Self::Number(flag.into())
    }
}

impl From<i64> for Answer {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Answer {
    fn from(room: u64) -> Self {
        assert!(room < 1 << 53, "{room} is no room");
        Self::Number(room.cast_signed())
    }
}

/// A text, or bytes: on some platforms both are of one type.
impl<T> From<*const T> for Answer {
    fn from(text: *const T) -> Self {
        Self::Text(text.cast())
    }
}

/// Takes the calls that the build generates from the exported functions: their names, and the
/// method that makes each argument.
macro_rules! calls {
    (|$host:ident| $($name:ident ( $($argument:expr),* );)*) => {
        pub(crate) const CALLED: &[&str] = &[$(stringify!($name)),*];

        fn call(n: usize, $host: &mut Host<'_>) -> Answer {
            let calls: [fn(&mut Host<'_>) -> Answer; CALLED.len()] = [$(|$host| {
                let _ = &$host; // some functions take no arguments
                #[allow(unused_unsafe)] // some functions are safe
                // SAFETY: the host's arguments meet the function's documentation.
                unsafe { $name($($argument),*).into() }
            }),*];
            calls[n % CALLED.len()]($host)
        }
    };
}

// Every export, in the order of tests/abi/exports.txt.
include!(concat!(env!("OUT_DIR"), "/sequences.rs"));

/// Makes the calls that `bytes` decide, then closes the room and releases everything.
pub(crate) fn check(bytes: &[u8]) {
    let mut host = Host {
        chance: Chance::Bytes(bytes),
        text: Vec::new(),
        other_text: Vec::new(),
        data: Vec::new(),
        seeded: MmnSeededOptions::default(),
        etcd: MmnEtcdOptions::default(),
        state: MmnStateOptions::default(),
        changes: Vec::new(),
        rooms: 0,
        level: 0,
        opened: 0,
        handles: Vec::new(),
        browser_opened: 0,
        browsers: Vec::new(),
        offers_handler: false,
    };
    for _ in 0..MAX_CALLS {
        if host.chance.is_spent() {
            break;
        }
        let n = host.chance.byte().into();
        let name: &str = CALLED[n % CALLED.len()];
        if name.starts_with("Initialize") || name == "mmn_open" {
            if host.rooms == MAX_ROOMS {
                continue;
            }
            host.rooms += 1;
        }
        (host.opened, host.offers_handler) = (0, false);
        let answer = call(n, &mut host);
        // The library takes a handler if the call succeeds.
        let is_taken = host.offers_handler && matches!(answer, Answer::Code(MMN_OK));
        HELD.fetch_add(is_taken.into(), Ordering::SeqCst);
        answered(name, answer);
        host.handles
            .extend((host.opened != 0).then_some(host.opened));
        let browser = std::mem::take(&mut host.browser_opened);
        host.browsers.extend((browser != 0).then_some(browser));
    }
    for browser in host.browsers {
        let code = mmn_browse_close(browser);
        assert!([MMN_OK, MMN_NOT_INITIALIZED].contains(&code), "{code}");
        assert_eq!(mmn_browse_close(browser), MMN_NOT_INITIALIZED);
    }
    for room in host.handles {
        let open = mmn_is_open(room);
        let code = mmn_close(room);
        assert!(open == 0 || code == MMN_OK, "{room}: {code}");
        assert_eq!(
            (mmn_is_open(room), mmn_close(room)),
            (0, MMN_NOT_INITIALIZED)
        );
    }
    let open = IsNetworkInitialized();
    let code = ShutdownNetwork();
    assert!(open == 0 || code == MMN_OK, "{code}");
    assert_eq!(IsNetworkInitialized(), 0);
    // SAFETY: no callback is passed.
    unsafe {
        mmn_set_log(MMN_LOG_OFF, None, null_mut(), None);
    }
    assert_eq!(
        HELD.load(Ordering::SeqCst),
        DROPPED.load(Ordering::SeqCst),
        "what is registered is released once"
    );
}

fn answered(name: &str, answer: Answer) {
    match answer {
        Answer::Code(code) => {
            assert_ne!(code, MMN_INTERNAL_ERROR, "{name}: {}", last_error());
            let count = code > 0
                && (["mmn_poll", "mmn_generate_identity_key"].contains(&name)
                    || name.starts_with("Get")
                    || COUNTS.contains(&name));
            assert!((-21..=0).contains(&code) || count, "{name} gave {code}");
            let is_query = name.starts_with("Get") || COUNTS.contains(&name);
            if code < 0 && name != "mmn_last_error_code" && !is_query {
                assert_eq!(mmn_last_error_code(), code, "{name}");
                let sentence = last_error();
                assert!((1..4096).contains(&sentence.len()), "{name}: {sentence}");
            }
        }
        Answer::Number(number) => assert!(number >= -1, "{name} gave {number}"),
        Answer::Text(text) => {
            // The value of a property ends with its length.
            if !text.is_null() && name != "mmn_property" {
                // SAFETY: the library's strings end with a NUL, and are valid until the next call that returns one.
                let text = unsafe { CStr::from_ptr(text) };
                assert!(text.to_str().is_ok(), "{name} gave {text:?}");
            }
        }
    }
}

fn last_error() -> String {
    let text = mmn_last_error_message();
    // SAFETY: it is never NULL and ends with a NUL.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().expect("UTF-8").to_owned()
}

fn read(pointer: *const c_char) -> usize {
    assert!(!pointer.is_null());
    // SAFETY: strings passed to callbacks end with a NUL.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().expect("UTF-8").len()
}

fn held() -> *mut c_void {
    null_mut()
}

extern "C" fn dropped(_: *mut c_void) {
    DROPPED.fetch_add(1, Ordering::SeqCst);
}

extern "C" fn on_event(_: *mut c_void, event: *const MmnEvent) {
    // SAFETY: it is valid during the call.
    let event = unsafe { &*event };
    read(event.peer);
    read(event.other);
    read(event.owner);
    let len = usize::try_from(event.length).expect("no negative length");
    // SAFETY: `length` bytes, and never NULL.
    let data = unsafe { std::slice::from_raw_parts(event.data, len) };
    assert!(data.len() <= MAX_DATA_BYTES);
    assert_eq!(mmn_is_open(event.room), 1);
    assert_eq!(mmn_close(event.room), MMN_WOULD_DEADLOCK);
}

extern "C" fn on_listed(_: *mut c_void, room: *const MmnListedRoom) {
    // SAFETY: it is valid during the call.
    let room = unsafe { &*room };
    for text in [room.name, room.session_id, room.address, room.fingerprint] {
        read(text);
    }
    assert_eq!(mmn_browse_close(room.browser), MMN_WOULD_DEADLOCK);
}

extern "C" fn on_log(_: *mut c_void, _room: u64, level: i32, message: *const c_char) {
    assert!((MMN_LOG_ERROR..=MMN_LOG_TRACE).contains(&level));
    read(message);
}

extern "C" fn on_receive(peer: *const c_char, data: *const u8, length: i32, msg_type: u16, _: u8) {
    read(peer);
    assert!(length == 0 || !data.is_null());
    assert!(msg_type >= MMN_MIN_MESSAGE_TYPE);
}

extern "C" fn on_connection_result(addr: *const c_char, success: u8, _: i32) {
    read(addr);
    assert!(success <= 1);
}

extern "C" fn on_leader_changed(leader: *const c_char) {
    if !leader.is_null() {
        read(leader);
    }
}

extern "C" fn on_peer_status(peer: *const c_char, _: i32) {
    read(peer);
}

extern "C" fn on_reconnect(peer: *const c_char, _: u8) {
    read(peer);
}

impl Host<'_> {
    fn any_text(&mut self) -> Option<Vec<u8>> {
        let text: &[u8] = match self.chance.below(16) {
            0 => return None,
            1 => b"",
            2 => b"me",
            3 => b"other",
            4 => &[b'x'; 64],
            5 => &[b'x'; 65],
            6 => &[b'x'; 129],
            7 => b"\xff\xfe",
            8 => b" blank",
            9 => b"a\x1b[31m",
            10 => "\u{202e}\u{10ffff}琪露诺".as_bytes(),
            11 => return Some(vec![b'y'; ENDLESS_BYTES]),
            12 => b"127.0.0.1:9",
            _ => {
                let len = self.chance.below(20);
                let mut text = self.chance.bytes(len);
                text.push(0);
                return Some(text);
            }
        };
        Some([text, b"\0"].concat())
    }

    fn text(&mut self) -> *const c_char {
        match self.any_text() {
            Some(text) => {
                self.text = text;
                self.text.as_ptr().cast()
            }
            None => null(),
        }
    }

    fn other(&mut self) -> *const c_char {
        match self.any_text() {
            Some(text) => {
                self.other_text = text;
                self.other_text.as_ptr().cast()
            }
            None => null(),
        }
    }

    /// A name, mostly valid.
    fn name_of_a_room(&mut self) -> *const c_char {
        match self.chance.one_in(8) {
            true => self.text(),
            false => c"me".as_ptr(),
        }
    }

    fn address(&mut self) -> *const c_char {
        let own = GetLocalAddr();
        match self.chance.below(8) {
            0 => c"127.0.0.1:9".as_ptr(),
            1 => c"[::1]:9".as_ptr(),
            2 => c"127.0.0.1:0".as_ptr(),
            3 => c"224.0.0.1:9".as_ptr(),
            4 if !own.is_null() => own,
            _ => {
                // No host names: resolvers are slow.
                let text = self.text();
                let is_name = self.text.contains(&b':') && !self.text.starts_with(b"127");
                if is_name { null() } else { text }
            }
        }
    }

    /// A payload; the next argument is [`Host::length`].
    fn data(&mut self) -> *const u8 {
        let len = match self.chance.below(8) {
            0 => {
                self.data = Vec::new();
                return null();
            }
            1 => 1,
            2 => 16_384,
            3 => 262_144,
            4 => MAX_DATA_BYTES,
            _ => usize::from(self.chance.byte()).max(1),
        };
        self.data = vec![7; len];
        self.data.as_ptr()
    }

    fn length(&mut self) -> i32 {
        let len = i32::try_from(self.data.len()).expect("short");
        match self.chance.below(8) {
            0 => -1,
            1 => i32::MIN,
            2 => 0,
            // A payload at NULL.
            3 if len == 0 => 5,
            _ => len,
        }
    }

    fn message_type(&mut self) -> u16 {
        *self.chance.pick(&[0x100, 0xffff, 0xff, 0, 0x200])
    }

    fn number(&mut self) -> i32 {
        match self.chance.below(10) {
            0 => i32::MIN,
            1 => i32::MAX,
            2 => -1,
            3 => 0,
            4 => 1,
            5 => 3_600_000,
            _ => self.chance.byte().into(),
        }
    }

    fn handler(&mut self) -> MmnEventCallback {
        let handler: MmnEventCallback = self.chance.flip().then_some(on_event);
        self.offers_handler = handler.is_some();
        handler
    }

    fn level(&mut self) -> i32 {
        self.level = self.number();
        self.level
    }

    /// A log callback. Counted where the library takes it: the call fails if its level is invalid.
    fn logger(&mut self) -> MmnLogCallback {
        let logger: MmnLogCallback = self.chance.flip().then_some(on_log);
        let taken = (MMN_LOG_OFF..=MMN_LOG_TRACE).contains(&self.level) && logger.is_some();
        HELD.fetch_add(u32::from(taken), Ordering::SeqCst);
        logger
    }

    /// A room: open, closed, made up, or none.
    fn room(&mut self) -> MmnRoom {
        match self.chance.below(8) {
            0 => 0,
            1 => self.chance.u64(),
            2 => mmn_default_room(),
            n => {
                let known = self.handles.len();
                let handle = self.handles.get(known.saturating_sub(n - 2));
                handle.copied().unwrap_or(n as u64)
            }
        }
    }

    /// A place for the number of a room, or NULL.
    fn room_to_open(&mut self) -> *mut MmnRoom {
        match self.chance.one_in(8) {
            true => null_mut(),
            false => &raw mut self.opened,
        }
    }

    /// A browser: open, closed, or made up.
    fn browser(&mut self) -> MmnBrowser {
        let known = self.chance.below(self.browsers.len() + 1);
        let browser = self.browsers.get(known).copied();
        browser.unwrap_or_else(|| self.chance.u64())
    }

    /// A place for the number of a browser, or NULL.
    fn browser_to_open(&mut self) -> *mut MmnBrowser {
        match self.chance.one_in(8) {
            true => null_mut(),
            false => &raw mut self.browser_opened,
        }
    }

    /// A card, mostly valid.
    fn mmn_card(&mut self) -> MmnCard {
        let mut card = MmnCard {
            flags: u32::from(self.chance.byte() % 3),
            game: self.name_of_a_room(),
            name: self.other(),
            ..MmnCard::default()
        };
        match self.chance.below(8) {
            0 => card.struct_size = self.number() as u32 % 4,
            1 => card.data_length = self.number() as u32,
            2 => (card.data, card.data_length) = (c"data".as_ptr().cast(), 4),
            3 => card.port = self.number() as u32,
            4 => card.reserved = self.number() as u32,
            5 => card.max_players = self.number() as u32,
            _ => card.name = c"a room".as_ptr(),
        }
        card
    }

    /// Options of a browser, mostly valid.
    fn mmn_browse_options(&mut self) -> MmnBrowseOptions {
        let mut options = MmnBrowseOptions {
            game: self.name_of_a_room(),
            dispatch_mode: u32::from(self.chance.byte() % 3),
            on_room: Some(on_listed),
            ..MmnBrowseOptions::default()
        };
        match self.chance.below(8) {
            0 => options.struct_size = self.number() as u32 % 4,
            1 => options.on_room = None,
            2 => options.port = self.number() as u32,
            3 => options.reserved = self.number() as u32,
            _ => {}
        }
        options
    }

    fn mmn_gossip_windows(&mut self) -> MmnGossipWindows {
        let mut windows = MmnGossipWindows::default();
        match self.chance.below(6) {
            0 => windows.struct_size = self.number() as u32,
            1 => windows.startup_grace_ms = self.number() as u32,
            2 => windows.sample_interval_ms = self.number() as u32,
            3 => windows.alive_threshold_ms = self.number() as u32,
            4 => windows.election_duration_ms = self.number() as u32,
            _ => {}
        }
        windows
    }

    /// Options of a send, mostly valid.
    fn mmn_send_options(&mut self) -> MmnSendOptions {
        let mut options = MmnSendOptions {
            delivery: self.chance.byte() % 4,
            channel: self.chance.byte(),
            user_flags: self.chance.byte(),
            ..MmnSendOptions::default()
        };
        match self.chance.below(8) {
            0 => options.struct_size = self.number() as u32,
            1 => options.delivery = self.chance.byte(),
            2 => options.priority = self.chance.byte().cast_signed(),
            3 => options.flags = self.chance.byte() % 3,
            4 => options.ttl_ms = self.number() as u32,
            5 => options.reserved = self.chance.byte(),
            6 => options.key = self.chance.u64(),
            _ => {}
        }
        options
    }

    /// A buffer for bytes; the next argument is [`Host::length`].
    fn u8_to_fill(&mut self) -> *mut u8 {
        self.data();
        self.data.as_mut_ptr()
    }

    /// A place for a number, or NULL.
    fn u64_to_fill(&mut self) -> *mut u64 {
        self.data = vec![0; 8];
        match self.chance.one_in(8) {
            true => null_mut(),
            false => self.data.as_mut_ptr().cast(),
        }
    }

    /// A struct of up to 510 bytes, or NULL.
    fn struct_to_fill<T>(&mut self) -> *mut T {
        let size = u32::from(self.chance.byte()) * 2;
        self.data = vec![0; (size as usize).max(4)];
        self.data[..4].copy_from_slice(&size.to_ne_bytes());
        match self.chance.one_in(8) {
            true => null_mut(),
            false => self.data.as_mut_ptr().cast(),
        }
    }

    /// Changes of properties, mostly valid; the next argument is [`Host::count`].
    fn changes(&mut self) -> *const MmnPropertyChange {
        let number = *self.chance.pick(&[0, 1, 1, 2, 32, 33]);
        self.changes = (0..number).map(|place| self.change(place)).collect();
        match self.changes.as_slice() {
            [] => null(),
            changes => changes.as_ptr(),
        }
    }

    fn change(&mut self, place: usize) -> MmnPropertyChange {
        const KEYS: [&CStr; 4] = [c"a", c"b", c"a/b", c"\xff"];
        const OWNERS: [&CStr; 4] = [c"me", c"other", c"", c" "];
        let mut change = MmnPropertyChange {
            key: KEYS[place % 3].as_ptr(),
            ..MmnPropertyChange::default()
        };
        match self.chance.below(16) {
            0 => change.key = null(),
            1 => change.key = self.chance.pick(&KEYS).as_ptr(),
            2 | 3 => change.owner = self.chance.pick(&OWNERS).as_ptr(),
            4 | 5 => change.flags = u32::from(self.chance.byte() % 64),
            6 => change.expected_version = self.chance.byte().into(),
            7 => change.reserved = self.number() as u32,
            8 => change.length = self.number(),
            // The first one's is the distance between all of them.
            9 if place == 0 => change.struct_size = self.number() as u32 % 4,
            _ => (change.value, change.length) = (c"value".as_ptr().cast(), 5),
        }
        if change.length > 5 {
            change.value = null();
        }
        change
    }

    fn count(&mut self) -> i32 {
        let count = i32::try_from(self.changes.len()).expect("few");
        match self.chance.below(8) {
            0 => -1,
            1 => i32::MIN,
            2 => 0,
            _ => count,
        }
    }

    /// Settings of the room's state, mostly valid.
    fn state_options(&mut self) -> *const MmnStateOptions {
        self.state = MmnStateOptions::default();
        match self.chance.below(8) {
            0 => self.state.struct_size = self.number() as u32 % 4,
            1 => self.state.tail_entries = self.number() as u32,
            2 => self.state.tail_bytes = self.number() as u32,
            3 => self.state.max_snapshot_bytes = self.number() as u32,
            _ => {}
        }
        &raw const self.state
    }

    /// A configuration. One room in three announces itself, which takes another thread, and time.
    fn network_config_ffi(&mut self) -> NetworkConfigFFI {
        let mut config = NetworkConfigFFI {
            mdns_port: if self.chance.one_in(3) { 15353 } else { 0 },
            ..NetworkConfigFFI::default()
        };
        match self.chance.below(8) {
            0 => config.max_connections = self.chance.byte().into(),
            1 => config.send_queue_capacity = self.chance.byte().into(),
            2 => config.incoming_queue_capacity = self.chance.byte().into(),
            3 => config.heartbeat_interval_ms = self.chance.byte().into(),
            4 => {
                config.heartbeat_interval_ms = 1;
                config.election_timeout_min_ms = 2;
                config.election_timeout_max_ms = 3;
            }
            5 => config.handshake_timeout_ms = self.chance.byte().into(),
            6 => config.max_message_size = self.number() as u32,
            _ => config.compression_threshold = self.number() as u32,
        }
        config
    }

    /// Settings of the seeded strategy. Rooms without a state directory refuse them, so that no
    /// call writes a file.
    fn seeded_options(&mut self) -> *const MmnSeededOptions {
        self.seeded = MmnSeededOptions {
            is_seed: self.number() as u32,
            seeds: match self.chance.below(3) {
                0 => null(),
                1 => c"127.0.0.1:9\n[::1]:9".as_ptr(),
                _ => c"unknown".as_ptr(),
            },
            ..MmnSeededOptions::default()
        };
        match self.chance.below(8) {
            0 => self.seeded.struct_size = self.number() as u32 % 4,
            1 => self.seeded.probe_interval_ms = self.number() as u32,
            2 => self.seeded.heartbeat_interval_ms = self.number() as u32,
            3 => self.seeded.heartbeat_timeout_ms = self.number() as u32,
            4 => self.seeded.ttl_timeout_ms = self.number() as u32,
            5 => self.seeded.retry_interval_ms = self.number() as u32,
            6 => self.seeded.reserved = self.number() as u32,
            _ => {}
        }
        &raw const self.seeded
    }

    /// Settings of the etcd strategy, whose endpoints have no server.
    fn etcd_options(&mut self) -> *const MmnEtcdOptions {
        self.etcd = MmnEtcdOptions {
            endpoints: match self.chance.below(3) {
                0 => null(),
                1 => c"http://127.0.0.1:9\nhttp://[::1]:9".as_ptr(),
                _ => c"unknown".as_ptr(),
            },
            prefix: c"rooms/here".as_ptr(),
            ..MmnEtcdOptions::default()
        };
        match self.chance.below(8) {
            0 => self.etcd.struct_size = self.number() as u32 % 4,
            1 => self.etcd.ttl_seconds = self.number() as u32,
            2 => self.etcd.prefix = c"/".as_ptr(),
            3 => self.etcd.address = c"a\nb".as_ptr(),
            4 => self.etcd.ca_file = c"/nowhere/at/all".as_ptr(),
            5 => self.etcd.user = c"somebody".as_ptr(),
            6 => self.etcd.key_file = c"".as_ptr(),
            _ => {}
        }
        &raw const self.etcd
    }

    fn mmn_options(&mut self) -> MmnOptions {
        let mut options = MmnOptions {
            is_default: self.chance.below(2) as u32,
            on_event: self.handler(),
            user_data: held(),
            drop_fn: Some(dropped),
            dispatch_mode: u32::from(self.chance.byte() % 3),
            discovery_mode: MMN_DISCOVERY_OFF,
            host_mode: u32::from(self.chance.byte() % 4),
            strategy: u32::from(self.chance.byte() % 5),
            eligible: self.chance.byte().into(),
            ..self.limits()
        };
        if self.chance.flip() {
            options.state = self.state_options();
        }
        match self.chance.below(16) {
            0 => options.struct_size = self.number() as u32 % 4,
            1 => options.member_hold_ms = self.number() as u32,
            2 => options.queue_bytes = self.number() as u32,
            3 => options.priority = self.number(),
            4 => options.quorum_policy = self.number() as u32,
            5 => options.trace_path = c"/nowhere/at/all".as_ptr(),
            6 => options.bind_address = c"127.0.0.1".as_ptr(),
            7 => {
                options.quorum_roster = c"me".as_ptr();
                options.strategy_flags = self.chance.byte().into();
                options.seeded = self.seeded_options();
            }
            8 => {
                options.strategy = MMN_STRATEGY_ETCD;
                options.etcd = self.etcd_options();
            }
            9 => options.bind_port = self.number() as u32,
            10 => options.handshake_timeout_ms = self.number() as u32,
            11 => options.hold_messages = self.chance.byte().into(),
            12 => options.alive_threshold_ms = self.number() as u32,
            13 => options.reconnect_max_retries = self.number() as u32,
            14 => options.carry_bytes_per_second = self.number() as u32,
            _ => {
                // The call still reads the names.
                if let Some(text) = self.any_text() {
                    self.data = text;
                    options.bind_address = self.data.as_ptr().cast();
                }
            }
        }
        options
    }

    /// Options whose limits and times are mostly valid. One room in three announces itself, which takes another thread,
    /// and time.
    fn limits(&mut self) -> MmnOptions {
        let mut options = MmnOptions {
            mdns_port: if self.chance.one_in(3) { 15353 } else { 0 },
            ..MmnOptions::default()
        };
        match self.chance.below(8) {
            0 => options.max_connections = self.chance.byte().into(),
            1 => options.send_queue_capacity = self.chance.byte().into(),
            2 => options.incoming_queue_capacity = self.chance.byte().into(),
            3 => options.heartbeat_interval_ms = self.chance.byte().into(),
            4 => {
                options.heartbeat_interval_ms = 1;
                options.election_timeout_min_ms = 2;
                options.election_timeout_max_ms = 3;
            }
            5 => options.handshake_timeout_ms = self.chance.byte().into(),
            6 => options.max_message_size = self.number() as u32,
            _ => options.compression_threshold = self.number() as u32,
        }
        options
    }
}
