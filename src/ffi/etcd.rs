//! The etcd strategy: its settings, the fencing token, the text that a leader proclaims, and locks.

use std::ffi::c_char;
use std::ptr;
use std::time::Duration;

use super::arguments::text;
use super::failure::Failure;
use super::growing::{Growing, fill};
use super::guard::{command, opened, query};
use super::lifecycle::MmnRoom;
use crate::clock::Moment;
use crate::core::election::etcd::EtcdConfig;

/// The settings of MMN_STRATEGY_ETCD, for MmnOptions. Begin with the defaults:
///
///     MmnEtcdOptions etcd = {0};
///     etcd.struct_size = sizeof etcd;
///     mmn_default_etcd_options(&etcd);
///
/// The default of each field is in brackets. Files are PEM, and read when the room opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct MmnEtcdOptions {
    /// sizeof(MmnEtcdOptions) as the host was compiled, in bytes.
    pub struct_size: u32,
    /// Time for which the leadership, or a lock, of a process survives its crash, in seconds: 2 to
    /// 86400 [10]. The servers may make it longer. A member that cannot reach them for two thirds
    /// of it stops leading.
    pub ttl_seconds: u32,
    /// The client endpoints of the etcd servers, 1 to MMN_MAX_ETCD_ENDPOINTS, one per line:
    /// http://host:port or https://host:port, all of one kind. Spaces around a line and empty lines
    /// are ignored. Required [NULL].
    pub endpoints: *const c_char,
    /// Prefix of the room's keys: 1 to 256 bytes without control characters. The same for all
    /// members: members with another prefix elect a leader of their own, and are refused with
    /// MMN_POLICY_MISMATCH. The library adds a slash, so that "test" has no key of "testa". A slash
    /// at either end is refused, because it would give other keys for a prefix that looks the same.
    /// Required [NULL].
    pub prefix: *const c_char,
    /// Address at which clients reach this member while it leads, as they read it in etcd: any text
    /// of at most 256 bytes without control characters. NULL is the first address of this member
    /// with the port it is bound to [NULL].
    pub address: *const c_char,
    /// The file with the certificates that sign those of the servers. Only with https. NULL is the
    /// system's set of trusted certificates [NULL].
    pub ca_file: *const c_char,
    /// The file with the certificate by which the servers know this client. Only with https, and
    /// with key_file. NULL is none [NULL].
    pub cert_file: *const c_char,
    /// The file with the private key of cert_file [NULL].
    pub key_file: *const c_char,
    /// The etcd user to log in as, with password. NULL is none [NULL].
    pub user: *const c_char,
    /// The password of user [NULL].
    pub password: *const c_char,
}

impl MmnEtcdOptions {
    fn with_size(struct_size: u32) -> Self {
        Self {
            struct_size,
            ttl_seconds: EtcdConfig::DEFAULT_TTL.as_secs() as u32,
            endpoints: ptr::null(),
            prefix: ptr::null(),
            address: ptr::null(),
            ca_file: ptr::null(),
            cert_file: ptr::null(),
            key_file: ptr::null(),
            user: ptr::null(),
            password: ptr::null(),
        }
    }
}

impl Default for MmnEtcdOptions {
    fn default() -> Self {
        Self::with_size(size_of::<Self>() as u32)
    }
}

impl Growing for MmnEtcdOptions {
    const NAME: &'static str = "MmnEtcdOptions";
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
pub unsafe extern "C" fn mmn_default_etcd_options(options: *mut MmnEtcdOptions) -> i32 {
    command("mmn_default_etcd_options", || {
        // SAFETY: the caller's promise, passed on.
        unsafe { fill("options", options, MmnEtcdOptions::with_size) }
    })
}

/// The fencing token of this node's leadership: the revision at which etcd created its key. The
/// token of every later leader is larger. Send it with everything that the leader writes elsewhere,
/// and let the store refuse a token smaller than the largest it has seen. Then a leader that was
/// paused, and does not know yet that another leads, changes nothing.
///
/// 0 while this node does not lead; also when its lease has ended while the process slept. -1 when
/// no room is open or its strategy is not MMN_STRATEGY_ETCD.
#[unsafe(no_mangle)]
pub extern "C" fn mmn_fencing_token(room: MmnRoom) -> i64 {
    query("mmn_fencing_token", || {
        let token = opened(room)?.snapshot().fencing_token(Moment::now);
        Ok(token.map_or(-1, |token| i64::try_from(token).unwrap_or(i64::MAX)))
    })
}

/// Sets the text that clients of etcd read of this node while it leads, at most
/// MMN_MAX_PROCLAIMED_BYTES. The library keeps it for the next time that this node leads. The value
/// of the leader's key is its peer id, its address and the proclaimed text, separated by line
/// feeds. Neither of the first two contains a line feed, so everything behind the second one is the
/// proclaimed text, which may contain more. "" by default.
///
/// The call does not wait for etcd. Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED or
/// MMN_NOT_SUPPORTED (with any strategy but MMN_STRATEGY_ETCD).
///
/// # Safety
/// `value` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_proclaim(room: MmnRoom, value: *const c_char) -> i32 {
    command("mmn_proclaim", || {
        // SAFETY: the caller's promise, passed on.
        let value = unsafe { text("value", value) }?;
        Ok(opened(room)?.proclaim(value)?)
    })
}

/// Acquires the lock `name`, which one process at a time holds among all that use the same etcd
/// prefix, and waits for it for `timeout_ms`: 0 is until it holds the lock or the room ends. Locks
/// are granted in the order of the calls. A name is 1 to MMN_MAX_LOCK_NAME_BYTES bytes without
/// control characters.
///
/// The call does not wait. `*request` receives a number above 0, which no other lock call of this
/// room gets. One MMN_EVENT_LOCK_RESULT with this number follows, perhaps on another thread before
/// the call returns. A process that holds the lock already gets it again with the same token; one
/// mmn_release_lock releases it. MMN_EVENT_LOCK_LOST reports a lock whose lease has ended. A
/// process that slept may take itself for the holder until it receives that event, so the fencing
/// token in the event of the result is what protects a store (see mmn_fencing_token).
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_SUPPORTED (with any strategy
/// but MMN_STRATEGY_ETCD) or MMN_MAX_CONNECTIONS_REACHED (this member holds or waits for too many
/// locks). On failure no event follows, and `*request` is unchanged or 0.
///
/// # Safety
/// `name` is NULL or ends with a NUL. `request` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_acquire_lock(
    room: MmnRoom,
    name: *const c_char,
    timeout_ms: u32,
    request: *mut u64,
) -> i32 {
    command("mmn_acquire_lock", || {
        let wait = match timeout_ms {
            0 => None,
            millis => Some(Duration::from_millis(millis.into())),
        };
        // SAFETY: the caller's promise, passed on.
        unsafe { acquire(room, name, wait, request) }
    })
}

/// Acquires the lock `name` as mmn_acquire_lock does, if none holds it or waits for it. Else the
/// event has the code MMN_REJECTED. Returns what mmn_acquire_lock returns.
///
/// # Safety
/// `name` is NULL or ends with a NUL. `request` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_try_lock(
    room: MmnRoom,
    name: *const c_char,
    request: *mut u64,
) -> i32 {
    command("mmn_try_lock", || {
        // SAFETY: the caller's promise, passed on.
        unsafe { acquire(room, name, Some(Duration::ZERO), request) }
    })
}

/// Releases the lock `name`, or stops waiting for it: each waiting call for it ends with
/// MMN_SUPERSEDED. The call does not wait for etcd. A crash releases all locks of the process after
/// ttl_seconds, and mmn_close releases them at once.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_NOT_INITIALIZED, MMN_NOT_SUPPORTED (with any strategy
/// but MMN_STRATEGY_ETCD) or MMN_REJECTED (this member neither holds nor waits for the lock: its
/// lease may have ended).
///
/// # Safety
/// `name` is NULL or ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmn_release_lock(room: MmnRoom, name: *const c_char) -> i32 {
    command("mmn_release_lock", || {
        // SAFETY: the caller's promise, passed on.
        let name = unsafe { text("name", name) }?;
        Ok(opened(room)?.release_lock(name)?)
    })
}

/// # Safety
/// `name` is NULL or ends with a NUL. `request` is NULL or writable.
unsafe fn acquire(
    room: MmnRoom,
    name: *const c_char,
    wait: Option<Duration>,
    request: *mut u64,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise, passed on.
    let name = unsafe { text("name", name) }?;
    if request.is_null() {
        return Err(Failure::invalid(
            "request is NULL; give the address of a uint64_t, which receives the number of the call"
                .to_owned(),
        ));
    }
    let room = opened(room)?;
    let number = room.next_lock_request();
    let notify = |number: u64| {
        // SAFETY: not NULL, so the caller guarantees it. Hosts that build it by hand may not align it.
        unsafe { request.write_unaligned(number) }
    };
    // The event may precede the return of the call.
    notify(number);
    room.acquire_lock(number, name, wait)
        .inspect_err(|_| notify(0))?;
    Ok(())
}
