//! Cards of rooms in the local network, and browsers that list them.

use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;

use super::arguments::{bytes, text};
use super::events::MmnDropCallback;
use super::failure::Failure;
use super::growing::{Growing, read};
use super::guard::{command, count, opened};
use super::lifecycle::MmnRoom;
use super::options::dispatch_mode;
use super::strings::data_pointer;
use super::user_data::UserData;
use super::values::MMN_DISPATCH_THREAD;
use crate::browser::{self, Change, Game, Handler, Room, Settings};
use crate::net::cards::DEFAULT_PORT;
use crate::net::cards::card::{MAX_DATA_BYTES, checked_name};
use crate::room::Card;

/// MmnCard.flags: the card holds the session id, so that everybody who reads it can join. Without
/// it the player must know the session id.
pub const MMN_CARD_OPEN: u32 = 1;
/// Longest data of MmnCard, in bytes.
pub const MMN_MAX_CARD_DATA_BYTES: u32 = 400;
/// Longest game and name of MmnCard, in bytes of UTF-8 without the NUL.
pub const MMN_MAX_CARD_NAME_BYTES: u32 = 64;
/// Default UDP port of cards and browsers.
pub const MMN_DEFAULT_CARD_PORT: u32 = 15354;

/// MmnListedRoom.change: the room is new in the list.
pub const MMN_BROWSE_FOUND: u32 = 36;
/// MmnListedRoom.change: the card, the number of players or the address has changed.
pub const MMN_BROWSE_CHANGED: u32 = 37;
/// MmnListedRoom.change: the room is no longer in the list. The other fields are those of the last
/// report.
pub const MMN_BROWSE_GONE: u32 = 38;

/// A browser of this process: a number that is never 0, and that no other browser of the process
/// has. It names no room.
pub type MmnBrowser = u64;

/// The card of a room, for mmn_show_card. Set what you do not use to 0 or NULL. Later
/// versions only append fields.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct MmnCard {
    /// sizeof(MmnCard) as the host was compiled, in bytes.
    pub struct_size: u32,
    /// MMN_CARD_OPEN or 0.
    pub flags: u32,
    /// The game: 1 to 64 bytes of UTF-8, under the rules of a peer id. Browsers of other games do
    /// not list the room.
    pub game: *const c_char,
    /// The room's name for players: 1 to 64 bytes of UTF-8, under the rules of a peer id. It need
    /// not be unique.
    pub name: *const c_char,
    /// Bytes of the game, data_length of them. NULL is none.
    pub data: *const u8,
    /// Length of data, at most MMN_MAX_CARD_DATA_BYTES.
    pub data_length: u32,
    /// Most players, to show; 0 is no number. It limits nothing: mmn_set_max_peers does.
    pub max_players: u32,
    /// UDP port of the browsers' questions, at most 65535; 0 is MMN_DEFAULT_CARD_PORT. Browsers need
    /// the same one.
    pub port: u32,
    /// 0.
    pub reserved: u32,
}

impl Default for MmnCard {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            flags: 0,
            game: ptr::null(),
            name: ptr::null(),
            data: ptr::null(),
            data_length: 0,
            max_players: 0,
            port: 0,
            reserved: 0,
        }
    }
}

impl Growing for MmnCard {
    const NAME: &'static str = "MmnCard";
    const EARLIER: &'static [usize] = &[];
}

/// Settings of a browser, for mmn_browse_open. Set what you do not use to 0 or NULL. Later versions
/// only append fields.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct MmnBrowseOptions {
    /// sizeof(MmnBrowseOptions) as the host was compiled, in bytes.
    pub struct_size: u32,
    /// Thread that runs on_room: MMN_DISPATCH_THREAD (one of the browser) or MMN_DISPATCH_POLL (the
    /// one that calls mmn_browse_poll).
    pub dispatch_mode: u32,
    /// The game whose rooms are listed, as in MmnCard.
    pub game: *const c_char,
    /// Receives the changes of rooms. Not NULL.
    pub on_room: MmnListedRoomCallback,
    /// Passed to on_room.
    pub user_data: *mut c_void,
    /// Called once with user_data, before mmn_browse_close returns. NULL is none.
    pub drop_fn: MmnDropCallback,
    /// UDP port of the questions, at most 65535; 0 is MMN_DEFAULT_CARD_PORT.
    pub port: u32,
    /// 0.
    pub reserved: u32,
}

impl Default for MmnBrowseOptions {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            dispatch_mode: MMN_DISPATCH_THREAD,
            game: ptr::null(),
            on_room: None,
            user_data: ptr::null_mut(),
            drop_fn: None,
            port: 0,
            reserved: 0,
        }
    }
}

impl Growing for MmnBrowseOptions {
    const NAME: &'static str = "MmnBrowseOptions";
    const EARLIER: &'static [usize] = &[];
}

/// A room in the list of a browser. The struct and everything that it points to are valid during the
/// call only. Anybody in the network can show a card: treat its texts and bytes as a stranger's.
///
/// Later versions only append fields. Read the fields that lie within `struct_size`, and ignore
/// changes that you do not know.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct MmnListedRoom {
    /// Bytes of this struct in the loaded library.
    pub struct_size: u32,
    /// The event: MMN_BROWSE_FOUND, MMN_BROWSE_CHANGED or MMN_BROWSE_GONE.
    pub change: u32,
    /// The browser.
    pub browser: MmnBrowser,
    /// The number of the room in this browser. It stays when another member becomes the room's
    /// leader, and no other room gets it.
    pub id: u64,
    /// The room's name for players. Never NULL.
    pub name: *const c_char,
    /// The session id for mmn_open, if the card is MMN_CARD_OPEN; else "". Never NULL.
    pub session_id: *const c_char,
    /// The leader's address for mmn_connect. Never NULL.
    pub address: *const c_char,
    /// The fingerprint of the leader's key, as mmn_peer_fingerprint returns it. Never NULL.
    pub fingerprint: *const c_char,
    /// Bytes of the game. Never NULL.
    pub data: *const u8,
    /// Length of data.
    pub data_length: u32,
    /// Members of the room, at least 1.
    pub players: u32,
    /// Most players; 0 is no number.
    pub max_players: u32,
    /// 1 if a member needs a secret (MmnOptions.secret) besides the session id, else 0.
    pub needs_secret: u32,
}

/// Receives the changes of rooms, one call at a time, in MmnBrowseOptions.dispatch_mode. It may
/// call every function except mmn_browse_close, mmn_browse_poll, mmn_close and mmn_poll, and must
/// not throw.
pub type MmnListedRoomCallback =
    Option<extern "C" fn(user_data: *mut c_void, room: *const MmnListedRoom)>;

/// Shows a card of the room in the local network, in place of an earlier one; NULL takes it down.
/// Browsers of the same game list it for as long as the room has a leader that shows a card. The
/// library adds the number of members, the address, and whether a secret is needed.
///
/// The leader alone shows its card; another member keeps its own for the time when it leads. So call
/// this at every member, with the same card: then the room stays in the lists when its leader goes.
/// A room of which no member has called this answers no browser.
///
/// The card holds the session id only with MMN_CARD_OPEN: anybody in the network can then join,
/// unless a secret is needed.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (mmn_last_error_message names the field),
/// MMN_NOT_INITIALIZED, MMN_NOT_SUPPORTED (MMN_PATHS_RELAYED, or bind_address is an IPv6 address) or
/// MMN_CONNECTION_FAILED (the port cannot be bound). On failure nothing has changed.
///
/// # Safety
/// `card` is NULL, or points to struct_size readable bytes, the first four of which are struct_size.
/// What its pointers refer to is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_show_card(room: MmnRoom, card: *const MmnCard) -> i32 {
    command("mmn_show_card", || {
        let card = match card.is_null() {
            true => None,
            // SAFETY: the caller's promise, passed on.
            false => Some(unsafe { read_card(card) }?),
        };
        Ok(opened(room)?.show_card(card)?)
    })
}

/// # Safety
/// `card` points to a card as [`mmn_show_card`] takes it.
unsafe fn read_card(card: *const MmnCard) -> Result<Card, Failure> {
    // SAFETY: the caller's promise, passed on.
    let card = unsafe { read("card", card) }?;
    // SAFETY: as above.
    let (game, name) = unsafe { (text("game", card.game)?, text("name", card.name)?) };
    // SAFETY: as above.
    let data = unsafe { bytes("data", card.data, card.data_length, MAX_DATA_BYTES) }?;
    if card.flags & !MMN_CARD_OPEN != 0 {
        return Err(Failure::invalid(format!(
            "flags is {}; give 0 or MMN_CARD_OPEN ({MMN_CARD_OPEN})",
            card.flags
        )));
    }
    checked_name("name", name)?;
    is_zero(card.reserved)?;
    Ok(Card {
        game: Game::new(game)?,
        name: name.to_owned(),
        max_players: card.max_players,
        data: data.to_vec(),
        is_open: card.flags & MMN_CARD_OPEN != 0,
        port: port(card.port)?,
    })
}

fn is_zero(reserved: u32) -> Result<(), Failure> {
    match reserved {
        0 => Ok(()),
        _ => Err(Failure::invalid(format!(
            "reserved is {reserved}; set it to 0"
        ))),
    }
}

fn port(given: u32) -> Result<u16, Failure> {
    match given {
        0 => Ok(DEFAULT_PORT),
        _ => u16::try_from(given).map_err(|_| {
            Failure::invalid(format!(
                "port is {given}; give 1 to 65535, or 0 for {DEFAULT_PORT}"
            ))
        }),
    }
}

/// Opens a browser: a list of the rooms of one game in the local network, by the cards that they
/// show (mmn_show_card). It needs no room. At most 16 are open in a process.
///
/// The library writes the number of the browser to `browser` before on_room runs, and only if it
/// returns MMN_OK. mmn_browse_close must follow.
///
/// A browser lists at most 256 rooms, 64 of them at one address, and reports a room at most twice a
/// second. A host that takes no reports is at most one behind for each room.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (mmn_last_error_message names the field),
/// MMN_MAX_CONNECTIONS_REACHED (16 browsers are open), MMN_CONNECTION_FAILED (no socket) or
/// MMN_INTERNAL_ERROR. On failure the library does not use on_room, user_data and drop_fn.
///
/// # Safety
/// `options` is NULL, or points to struct_size readable bytes, the first four of which are
/// struct_size. What its pointers refer to is readable. on_room and drop_fn have these types, and
/// may be called with user_data on any thread. `browser` is NULL or points to 8 writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_browse_open(
    options: *const MmnBrowseOptions,
    browser: *mut MmnBrowser,
) -> i32 {
    command("mmn_browse_open", || {
        // SAFETY: the caller's promise, passed on.
        let options = unsafe { read("options", options) }?;
        // SAFETY: as above.
        let game = Game::new(unsafe { text("game", options.game) }?)?;
        let on_room = options.on_room.ok_or_else(|| {
            Failure::invalid("on_room is NULL; give the function that receives the rooms".into())
        })?;
        if browser.is_null() {
            return Err(Failure::invalid(
                "browser is NULL; give the address of a 64-bit number, which receives that of the browser"
                    .to_owned(),
            ));
        }
        is_zero(options.reserved)?;
        let settings = Settings {
            game,
            port: port(options.port)?,
            dispatch_mode: dispatch_mode(options.dispatch_mode)?,
        };
        let user_data = Arc::new(UserData::borrowed(options.user_data, options.drop_fn));
        let owned = Arc::clone(&user_data);
        let handler: Handler = Arc::new(move |browser, change, room: &Room| {
            notify(browser, change, room, |listed| {
                on_room(user_data.pointer(), listed);
            });
        });
        // Moved: the host's data must not outlive the browser here, which another thread may close at once.
        browser::open(settings, handler, move |number| {
            owned.own();
            // SAFETY: not NULL, so the caller guarantees 8 bytes; hosts may not align it.
            unsafe { browser.write_unaligned(number) };
        })?;
        Ok(())
    })
}

/// In poll mode, runs on_room for up to `max` changes of rooms on the calling thread. Returns at
/// once.
///
/// Returns the number of calls, 0 when there is nothing new, or an error, in which case nothing ran:
/// MMN_INVALID_ARGUMENT (`max` is not above 0, or the browser is not in poll mode),
/// MMN_NOT_INITIALIZED (the browser is not open) or MMN_WOULD_DEADLOCK (inside a callback, or while
/// another thread is in this function).
#[unsafe(no_mangle)]
pub extern "C" fn mmn_browse_poll(browser: MmnBrowser, max: i32) -> i32 {
    count("mmn_browse_poll", || {
        let most = usize::try_from(max)
            .ok()
            .filter(|most| *most > 0)
            .ok_or_else(|| {
                Failure::invalid(format!("max is {max}; give 1 or more changes to report"))
            })?;
        let reported = browser::poll(browser, most)?;
        // At most `max`.
        Ok(i32::try_from(reported).unwrap_or(i32::MAX))
    })
}

/// Closes a browser. It waits for a running on_room, and for nothing else. When it returns, on_room
/// does not run and never runs again, drop_fn has run, and the browser's thread and socket are gone.
///
/// Returns MMN_OK, MMN_NOT_INITIALIZED (the browser is not open) or MMN_WOULD_DEADLOCK (inside a
/// callback; nothing changes).
#[unsafe(no_mangle)]
pub extern "C" fn mmn_browse_close(browser: MmnBrowser) -> i32 {
    command("mmn_browse_close", || Ok(browser::close(browser)?))
}

/// Writes `room` as an [`MmnListedRoom`], and runs `call` on it.
fn notify(browser: u64, change: Change, room: &Room, call: impl FnOnce(*const MmnListedRoom)) {
    // No text of a card holds a NUL: it is a control character.
    let text = |text: String| CString::new(text).unwrap_or_default();
    let session = room.session().map_or_else(String::new, ToString::to_string);
    let (name, session) = (text(room.name().to_owned()), text(session));
    let address = text(room.address.to_string());
    let fingerprint = text(room.key.to_string());
    let listed = MmnListedRoom {
        struct_size: size_of::<MmnListedRoom>() as u32,
        change: match change {
            Change::Found => MMN_BROWSE_FOUND,
            Change::Changed => MMN_BROWSE_CHANGED,
            Change::Gone => MMN_BROWSE_GONE,
        },
        browser,
        id: room.id,
        name: name.as_ptr(),
        session_id: session.as_ptr(),
        address: address.as_ptr(),
        fingerprint: fingerprint.as_ptr(),
        data: data_pointer(room.data()),
        data_length: u32::try_from(room.data().len()).unwrap_or_default(),
        players: room.players(),
        max_players: room.max_players(),
        needs_secret: room.needs_secret().into(),
    };
    call(&raw const listed);
}
