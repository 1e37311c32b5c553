//! The room's state, which outlives its leader: actions in one order, properties, and snapshots for newcomers.

#[cfg(test)]
mod tests;

use std::ffi::c_char;
use std::ptr;

use bytes::Bytes;

use super::arguments::{checked_peer_id, payload, payload_of, peer_id as peer_id_argument, text};
use super::failure::Failure;
use super::growing::{Growing, fill, read_sized, struct_size};
use super::guard::{command, opened, query};
use super::lifecycle::MmnRoom;
use super::strings::hand_out;
use crate::config::StateOptions;
use crate::dispatch::in_callback;
use crate::error::Code;
use crate::lent::lend;
use crate::quoted::Quoted;
use crate::state::entry::{Expected, Fate, Key, OwnerChange, PropertyChange, Traits, ValueChange};
use crate::state::limits::{MAX_CHANGES, MAX_VALUE_BYTES};

/// MmnPropertyChange.expected_version: any version, or none.
pub const MMN_ANY_VERSION: u64 = u64::MAX;

/// MmnPropertyChange.flags: the property goes.
pub const MMN_PROPERTY_REMOVE: u32 = 1;
/// MmnPropertyChange.flags: the value stays; a new property has an empty one.
pub const MMN_PROPERTY_KEEP_VALUE: u32 = 2;
/// MmnPropertyChange.flags, MmnPropertyInfo.flags: only the owner changes the property, while it has
/// one. Takes effect if the property is new, and stays with it.
pub const MMN_PROPERTY_OWNER_ONLY: u32 = 4;
/// MmnPropertyChange.flags, MmnPropertyInfo.flags: the property goes when its owner leaves the room.
/// Takes effect if the property is new, and stays with it.
pub const MMN_PROPERTY_DIES_WITH_OWNER: u32 = 8;
/// MmnPropertyChange.flags, MmnPropertyInfo.flags: the leader owns the property when its owner leaves
/// the room. Takes effect if the property is new, and stays with it.
pub const MMN_PROPERTY_FALLS_TO_LEADER: u32 = 16;

const ALL_FLAGS: u32 = MMN_PROPERTY_REMOVE
    | MMN_PROPERTY_KEEP_VALUE
    | MMN_PROPERTY_OWNER_ONLY
    | MMN_PROPERTY_DIES_WITH_OWNER
    | MMN_PROPERTY_FALLS_TO_LEADER;

/// The settings of a room's state, for MmnOptions. The same for all members. Begin with the defaults:
///
///     MmnStateOptions state = {0};
///     state.struct_size = sizeof state;
///     mmn_default_state_options(&state);
///
/// The default of each field is in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct MmnStateOptions {
    /// sizeof(MmnStateOptions) as the host was compiled, in bytes.
    pub struct_size: u32,
    /// Most confirmed entries that a member keeps: 256 to 65536 [4096]. A host that takes its events so
    /// late that it lacks older ones begins anew, with a snapshot.
    pub tail_entries: u32,
    /// Most bytes of these entries, 65536 to 67108864 [4194304].
    pub tail_bytes: u32,
    /// Longest snapshot for mmn_provide_snapshot, in bytes, at most 67108864 [8388608].
    pub max_snapshot_bytes: u32,
}

impl MmnStateOptions {
    fn with_size(struct_size: u32) -> Self {
        let StateOptions {
            tail_entries,
            tail_bytes,
            max_snapshot_bytes,
        } = StateOptions::default();
        Self {
            struct_size,
            tail_entries,
            tail_bytes,
            max_snapshot_bytes,
        }
    }

    pub(super) fn limits(&self) -> StateOptions {
        StateOptions {
            tail_entries: self.tail_entries,
            tail_bytes: self.tail_bytes,
            max_snapshot_bytes: self.max_snapshot_bytes,
        }
    }
}

impl Default for MmnStateOptions {
    fn default() -> Self {
        Self::with_size(size_of::<Self>() as u32)
    }
}

impl Growing for MmnStateOptions {
    const NAME: &'static str = "MmnStateOptions";
    const EARLIER: &'static [usize] = &[];
}

/// Fills `options` with the defaults. The caller sets struct_size first. The library writes no byte
/// beyond it, nor beyond the fields that this version knows, and leaves struct_size as it is.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT (`options` is NULL, or struct_size is not a valid size).
/// On failure nothing is written.
///
/// # Safety
/// `options` is NULL, or points to struct_size writable bytes, the first four of which are
/// struct_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_default_state_options(options: *mut MmnStateOptions) -> i32 {
    command("mmn_default_state_options", || {
        // SAFETY: the caller's promise, passed on.
        unsafe { fill("options", options, MmnStateOptions::with_size) }
    })
}

/// Submits an action: `length` bytes at `data`, at most 16384, with a message type of 0x0100 or
/// higher. The leader orders the actions of all members. Once a majority has one, each member's host
/// receives it as MMN_EVENT_ACTION, the author's too, and all hosts in the same order. The library
/// keeps the action over losses of the leader, also while no member leads.
///
/// The call does not wait. `*request`, unless `request` is NULL, receives a number above 0, which no
/// other request of this room gets. One MMN_EVENT_ACTION_RESULT with this number follows, perhaps on
/// another thread before the call returns, unless the room ends first.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_SUPPORTED (the room has no
/// state), MMN_MESSAGE_TOO_LARGE or MMN_SEND_QUEUE_FULL (256 requests of this host, or 262144 bytes
/// of them, have no result yet). On failure no event follows, and `*request` is unchanged.
///
/// # Safety
/// `data` points to `length` readable bytes, or may be NULL when `length` is 0. `request` is NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_submit(
    room: MmnRoom,
    data: *const u8,
    length: i32,
    msg_type: u16,
    request: *mut u64,
) -> i32 {
    command("mmn_submit", || {
        // SAFETY: the caller's promise, passed on.
        let data = unsafe { payload(data, length) }?;
        // SAFETY: as above.
        let note = |number| unsafe { note(request, number) };
        opened(room)?.submit_noting(msg_type, data, note)?;
        Ok(())
    })
}

/// A change of one property, for mmn_set_properties. Set struct_size, key, and expected_version:
/// with 0 the property must not exist.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct MmnPropertyChange {
    /// sizeof(MmnPropertyChange) as the host was compiled, in bytes.
    pub struct_size: u32,
    /// The sum of MMN_PROPERTY_..., or 0. MMN_PROPERTY_REMOVE excludes MMN_PROPERTY_KEEP_VALUE, and
    /// MMN_PROPERTY_DIES_WITH_OWNER excludes MMN_PROPERTY_FALLS_TO_LEADER.
    pub flags: u32,
    /// The name of the property: 1 to 64 bytes without control characters.
    pub key: *const c_char,
    /// The id of its new owner, which must be in the room; "" is no owner. NULL keeps the owner; a new
    /// property then has none.
    pub owner: *const c_char,
    /// Its value, length bytes. NULL is an empty one.
    pub value: *const u8,
    /// Length of value in bytes, at most 8192. 0 with MMN_PROPERTY_REMOVE and
    /// MMN_PROPERTY_KEEP_VALUE.
    pub length: i32,
    /// 0.
    pub reserved: u32,
    /// The version that the property must have: MMN_ANY_VERSION, 0 if it must not exist, or a version
    /// from MMN_EVENT_PROPERTY or mmn_property.
    pub expected_version: u64,
}

impl Default for MmnPropertyChange {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            flags: 0,
            key: ptr::null(),
            owner: ptr::null(),
            value: ptr::null(),
            length: 0,
            reserved: 0,
            expected_version: MMN_ANY_VERSION,
        }
    }
}

impl Growing for MmnPropertyChange {
    const NAME: &'static str = "MmnPropertyChange";
    const EARLIER: &'static [usize] = &[];
}

/// Submits a set of `count` changes of properties, 1 to 32: the room makes all of them or none. They
/// are ordered among the actions, and each member's host receives an MMN_EVENT_PROPERTY for each
/// changed property. The changes lie one after another, as far apart as the struct_size of the first
/// one; the library does not read that of the others. A key is in a set once. Keys, owners and values
/// of a set have at most 32768 bytes together.
///
/// MMN_EVENT_ACTION_RESULT reports the outcome: MMN_OK; MMN_CONFLICT (a property has another version
/// than expected_version, or a new owner is not in the room); MMN_STATE_FULL (more than 1024
/// properties, 128 of one owner, or 524288 bytes of keys and values); MMN_REJECTED (a property with
/// MMN_PROPERTY_OWNER_ONLY has another owner); or MMN_OUTCOME_UNKNOWN. Unless it is MMN_OK, nothing
/// has changed; with MMN_OUTCOME_UNKNOWN something may have. An expected version holds only in the history in
/// which the host read it: if the room takes over another history, the outcome is MMN_CONFLICT.
///
/// `request`, and what the call returns, are as with mmn_submit. MMN_MESSAGE_TOO_LARGE stands for too
/// many changes, too, and MMN_INVALID_ARGUMENT for changes that exclude each other.
///
/// # Safety
/// `changes` is NULL, or points to `count` structs, as far apart as the first four bytes say, whose
/// pointers are NULL or lead to strings that end with a NUL, and to length readable bytes. `request`
/// is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_set_properties(
    room: MmnRoom,
    changes: *const MmnPropertyChange,
    count: i32,
    request: *mut u64,
) -> i32 {
    command("mmn_set_properties", || {
        // SAFETY: the caller's promise, passed on.
        let changes = unsafe { read_changes(changes, count) }?;
        // SAFETY: as above.
        let note = |number| unsafe { note(request, number) };
        opened(room)?.set_properties_noting(changes, note)?;
        Ok(())
    })
}

/// A property beside its value, from mmn_property.
///
/// Later versions only append fields. The caller sets `struct_size` to its own
/// sizeof(MmnPropertyInfo), and the library writes no more than that many bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct MmnPropertyInfo {
    /// Set by the caller: sizeof(MmnPropertyInfo) as it was compiled. mmn_property does not change it.
    pub struct_size: u32,
    /// The sum of MMN_PROPERTY_OWNER_ONLY, MMN_PROPERTY_DIES_WITH_OWNER and
    /// MMN_PROPERTY_FALLS_TO_LEADER, as far as the property has them.
    pub flags: u32,
    /// Its version: the index of the entry that changed it last. Within a history it grows with each
    /// change.
    pub version: u64,
    /// The id of its owner, or "". Never NULL. Valid as long as the value.
    pub owner: *const c_char,
    /// Length of the value in bytes.
    pub length: i32,
    /// 0.
    pub reserved: u32,
}

impl Default for MmnPropertyInfo {
    fn default() -> Self {
        Self {
            struct_size: size_of::<Self>() as u32,
            flags: 0,
            version: 0,
            owner: c"".as_ptr(),
            length: 0,
            reserved: 0,
        }
    }
}

impl Growing for MmnPropertyInfo {
    const NAME: &'static str = "MmnPropertyInfo";
    const EARLIER: &'static [usize] = &[];
}

/// The value of the property `key`, as of the last entry of which this host has received an event;
/// all changes of an entry show with its first event. Writes its length, its owner and more to
/// `info`, whose `struct_size` the caller has set; NULL asks for the value alone. Never waits for the
/// network.
///
/// NULL when the room has no such property, or on failure, which sets mmn_last_error_code: `key` is no
/// key, struct_size is not a valid size, the room has no state, or no room is open. `info` is
/// unchanged then.
///
/// Inside a callback, the value and the owner are valid until the callback returns, whatever it calls.
/// Elsewhere they are valid until this thread's next call of this function or of one that returns a
/// string.
///
/// # Safety
/// `key` is NULL or ends with a NUL. `info` is NULL, or points to struct_size writable bytes, the
/// first four of which are struct_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_property(
    room: MmnRoom,
    key: *const c_char,
    info: *mut MmnPropertyInfo,
) -> *const u8 {
    query("mmn_property", || {
        // SAFETY: the caller's promise, passed on.
        let key = unsafe { text("key", key) }?;
        checked_key("key", key)?;
        if !info.is_null() {
            // SAFETY: as above.
            unsafe { struct_size("info", info) }?;
        }
        let Some(property) = opened(room)?.property(key)? else {
            return Ok(ptr::null());
        };
        let (flags, version) = (flags_of(property.traits), property.version);
        // A value has at most 8 KiB.
        let length = i32::try_from(property.value.len()).unwrap_or(i32::MAX);
        let Some((value, owner)) = lend(property.value, property.owner, in_callback()) else {
            return Ok(ptr::null());
        };
        if !info.is_null() {
            let figures = |struct_size| MmnPropertyInfo {
                struct_size,
                flags,
                version,
                owner,
                length,
                reserved: 0,
            };
            // SAFETY: as above.
            unsafe { fill("info", info, figures) }?;
        }
        Ok(value)
    })
}

/// The names of the properties that `owner` owns, or of all properties if `owner` is NULL, as of the
/// last entry of which this host has received an event: sorted as bytes, joined by '\n'. "" when
/// there are none. NULL when `owner` is not an id, the room has no state, or no room is open; these
/// set mmn_last_error_code.
///
/// The string is valid until this thread's next call that returns a string.
///
/// # Safety
/// `owner` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_property_keys(room: MmnRoom, owner: *const c_char) -> *const c_char {
    query("mmn_property_keys", || {
        let owner = match owner.is_null() {
            true => None,
            // SAFETY: the caller's promise, passed on.
            false => Some(unsafe { peer_id_argument("owner", owner) }?),
        };
        let keys = opened(room)?.property_keys(owner.as_ref())?;
        let lines: Vec<_> = keys.iter().map(Key::as_str).collect();
        Ok(hand_out(lines.join("\n")))
    })
}

/// Answers the MMN_EVENT_SNAPSHOT_WANTED with this number: `length` bytes at `data`, a copy of the
/// host's state as it was inside that event, without the properties, which the library has. The host
/// may answer up to 120 seconds later, from any thread. With NULL `data` and `length` 0 it declines,
/// and the library asks another member's host.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_SUPPORTED (the room has no
/// state), MMN_PEER_NOT_FOUND (no member waits for it any more), MMN_MESSAGE_TOO_LARGE (longer than
/// max_snapshot_bytes; the request goes on) or MMN_SUPERSEDED (the room has taken over another
/// history).
///
/// # Safety
/// `data` points to `length` readable bytes, or may be NULL when `length` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_provide_snapshot(
    room: MmnRoom,
    request: u64,
    data: *const u8,
    length: i32,
) -> i32 {
    command("mmn_provide_snapshot", || {
        // SAFETY: the caller's promise, passed on.
        let snapshot = unsafe { payload(data, length) }?;
        let snapshot = (!data.is_null()).then_some(snapshot);
        Ok(opened(room)?.provide_snapshot(request, snapshot)?)
    })
}

/// Figures of the room's state at this member, from mmn_state_info.
///
/// Later versions only append fields. The caller sets `struct_size` to its own sizeof(MmnStateInfo),
/// and the library writes no more than that many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct MmnStateInfo {
    /// Set by the caller: sizeof(MmnStateInfo) as it was compiled. mmn_state_info does not change it.
    pub struct_size: u32,
    /// Members that count for a majority.
    pub members: u32,
    /// 1 if a majority answered the last leader, or it was the room's first; 0 after a fork.
    pub exclusive: u32,
    /// Requests of this host without a result.
    pub pending: u32,
    /// The history of the state; 0 before the first.
    pub history: u64,
    /// The number of the leadership under which this member follows the state; 0 before the first.
    pub ballot: u64,
    /// The index of the last entry of which this host has received an event.
    pub index: u64,
    /// The index up to which the entries are confirmed.
    pub confirmed: u64,
    /// Upper estimate of the memory in use, in bytes.
    pub bytes: u64,
}

impl Growing for MmnStateInfo {
    const NAME: &'static str = "MmnStateInfo";
    const EARLIER: &'static [usize] = &[];
}

/// Writes figures of the room's state to `info`, whose `struct_size` the caller has set. Writes at
/// most min(struct_size, the size that this library knows) bytes. Never waits for the network.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT (`info` is NULL, or struct_size is not a valid size),
/// MMN_NOT_INITIALIZED or MMN_NOT_SUPPORTED (the room has no state). On failure nothing is written.
///
/// # Safety
/// `info` is NULL, or points to struct_size writable bytes, the first four of which are struct_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_state_info(room: MmnRoom, info: *mut MmnStateInfo) -> i32 {
    command("mmn_state_info", || {
        // SAFETY: the caller's promise, passed on.
        unsafe { struct_size("info", info) }?;
        let state = opened(room)?.state_info()?;
        let figures = |struct_size| MmnStateInfo {
            struct_size,
            members: short(state.roster),
            exclusive: state.is_exclusive.into(),
            pending: short(state.pending),
            history: state.history.map_or(0, |history| history.0),
            ballot: state.ballot,
            index: state.taken,
            confirmed: state.confirmed,
            bytes: state.bytes as u64,
        };
        // SAFETY: as above.
        unsafe { fill("info", info, figures) }
    })
}

/// Writes the number of a request for the host.
///
/// # Safety
/// `request` is NULL or writable.
pub(super) unsafe fn note(request: *mut u64, number: u64) {
    if !request.is_null() {
        // SAFETY: not NULL, so the caller guarantees it. Hosts that build it by hand may not align it.
        unsafe { request.write_unaligned(number) };
    }
}

/// # Safety
/// As `changes` of [`mmn_set_properties`].
unsafe fn read_changes(
    first: *const MmnPropertyChange,
    count: i32,
) -> Result<Vec<PropertyChange>, Failure> {
    let number = usize::try_from(count).ok().filter(|number| *number > 0);
    let number = number.ok_or_else(|| {
        Failure::invalid(format!("count is {count}; give 1 to {MAX_CHANGES} changes"))
    })?;
    if number > MAX_CHANGES {
        return Err(too_large(format!(
            "count is {count}; at most {MAX_CHANGES} changes are allowed"
        )));
    }
    // SAFETY: the caller's promise, passed on.
    let stride = unsafe { struct_size("changes", first) }?;
    let changes = (0..number).map(|place| {
        // SAFETY: the caller guarantees `count` structs of the first one's size.
        let given = unsafe { read_sized(first, stride, place) };
        // SAFETY: as above, for its pointers.
        unsafe { change(&format!("changes[{place}]"), &given) }
    });
    changes.collect()
}

/// # Safety
/// The pointers of `given` are NULL, or lead to strings that end with a NUL, and to length bytes.
unsafe fn change(argument: &str, given: &MmnPropertyChange) -> Result<PropertyChange, Failure> {
    let MmnPropertyChange {
        struct_size: _,
        flags,
        key,
        owner,
        value,
        length,
        reserved,
        expected_version,
    } = *given;
    let has = |flag: u32| flags & flag != 0;
    if has(!ALL_FLAGS) {
        return Err(Failure::invalid(format!(
            "{argument}.flags is {flags}; give a sum of {MMN_PROPERTY_REMOVE} (remove), {MMN_PROPERTY_KEEP_VALUE} (keep value), {MMN_PROPERTY_OWNER_ONLY} (owner only), {MMN_PROPERTY_DIES_WITH_OWNER} (dies with owner) and {MMN_PROPERTY_FALLS_TO_LEADER} (falls to leader), or 0"
        )));
    }
    for (one, other) in [
        (
            (MMN_PROPERTY_REMOVE, "remove"),
            (MMN_PROPERTY_KEEP_VALUE, "keep value"),
        ),
        (
            (MMN_PROPERTY_DIES_WITH_OWNER, "dies with owner"),
            (MMN_PROPERTY_FALLS_TO_LEADER, "falls to leader"),
        ),
    ] {
        if has(one.0) && has(other.0) {
            return Err(Failure::invalid(format!(
                "{argument}.flags is {flags}, which has {} ({}) and {} ({}); give one of them",
                one.0, one.1, other.0, other.1
            )));
        }
    }
    if reserved != 0 {
        return Err(Failure::invalid(format!(
            "{argument}.reserved is {reserved}; give 0"
        )));
    }
    let name = format!("{argument}.key");
    // SAFETY: the caller's promise, passed on.
    let key = checked_key(&name, unsafe { text(&name, key) }?)?;
    let fields = [format!("{argument}.value"), format!("{argument}.length")];
    // SAFETY: as above.
    let value = unsafe { payload_of([&fields[0], &fields[1]], value, length) }?;
    if value.len() > MAX_VALUE_BYTES {
        return Err(too_large(format!(
            "{argument}.length is {length}; at most {MAX_VALUE_BYTES} bytes are allowed"
        )));
    }
    if has(MMN_PROPERTY_REMOVE | MMN_PROPERTY_KEEP_VALUE) && !value.is_empty() {
        return Err(Failure::invalid(format!(
            "{argument}.length is {length}, but its flags is {flags}: with {MMN_PROPERTY_REMOVE} (remove) and {MMN_PROPERTY_KEEP_VALUE} (keep value) give no value, and length 0"
        )));
    }
    let owner = match owner.is_null() {
        true => OwnerChange::Keep,
        false => {
            let name = format!("{argument}.owner");
            // SAFETY: as above.
            match unsafe { text(&name, owner) }? {
                "" => OwnerChange::Nobody,
                id => OwnerChange::To(checked_peer_id(&name, id)?),
            }
        }
    };
    Ok(PropertyChange {
        key,
        value: match flags {
            _ if has(MMN_PROPERTY_REMOVE) => ValueChange::Remove,
            _ if has(MMN_PROPERTY_KEEP_VALUE) => ValueChange::Keep,
            _ => ValueChange::Set(Bytes::copy_from_slice(value)),
        },
        owner,
        traits: Traits {
            owner_only: has(MMN_PROPERTY_OWNER_ONLY),
            fate: match flags {
                _ if has(MMN_PROPERTY_DIES_WITH_OWNER) => Fate::Dies,
                _ if has(MMN_PROPERTY_FALLS_TO_LEADER) => Fate::FallsToLeader,
                _ => Fate::LosesOwner,
            },
        },
        expected: match expected_version {
            MMN_ANY_VERSION => Expected::Any,
            version => Expected::Version(version),
        },
    })
}

fn checked_key(argument: &str, text: &str) -> Result<Key, Failure> {
    Key::new(text).map_err(|error| {
        Failure::invalid(format!(
            "{argument} {} is not allowed: {error}",
            Quoted(text)
        ))
    })
}

fn too_large(sentence: String) -> Failure {
    Failure {
        code: Code::MessageTooLarge,
        sentence,
    }
}

/// The flags of a property that stay with it.
fn flags_of(traits: Traits) -> u32 {
    let owner_only = match traits.owner_only {
        true => MMN_PROPERTY_OWNER_ONLY,
        false => 0,
    };
    let fate = match traits.fate {
        Fate::LosesOwner => 0,
        Fate::Dies => MMN_PROPERTY_DIES_WITH_OWNER,
        Fate::FallsToLeader => MMN_PROPERTY_FALLS_TO_LEADER,
    };
    owner_only | fate
}

/// The number, or the largest that fits.
fn short(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
