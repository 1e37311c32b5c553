//! All settings of a room in one struct that may grow: `NetworkOptions`.

mod settings;
#[cfg(test)]
mod tests;

use std::ffi::c_char;
use std::ptr;

use super::arguments::{peer_id as peer_id_argument, session_id as session_id_argument};
use super::config::{NetworkConfigFFI, bytes};
use super::failure::Failure;
use super::guard::command;
use super::lifecycle::refuse_second_room;
use super::values::*;
use crate::config::{DEFAULT_MEMBER_HOLD, DEFAULT_QUEUE_BYTES, DEFAULT_QUEUE_MESSAGES};
#[cfg(any(test, feature = "fuzzing"))]
use crate::config::{MAX_IDENTITY_KEY_BYTES, MAX_SECRET_BYTES};
use crate::runtime;
use settings::{Pointed, config};

/// Settings for InitializeNetworkWithOptions. Later versions of the library append fields; what an older
/// program does not know keeps its default. Begin with the defaults:
///
///     NetworkOptions options = {0};
///     options.struct_size = sizeof options;
///     GetDefaultNetworkOptions(&options);
///
/// What the pointers lead to is copied during the call. The default of each field is in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct NetworkOptions {
    /// sizeof(NetworkOptions) where the program was compiled, in bytes.
    pub struct_size: u32,
    /// The settings of InitializeNetworkWithConfig, with the same rules [the same defaults, but
    /// send_queue_capacity and incoming_queue_capacity 4096]. mdns_port counts where discovery_mode is not
    /// MMN_DISCOVERY_OFF, and must then be above 0.
    pub config: NetworkConfigFFI,
    /// The one address of this machine to use: IPv4 or IPv6, without port and brackets. NULL is every address of
    /// both kinds [NULL].
    pub bind_address: *const c_char,
    /// What members must know beside the session id: secret_length bytes. Dialling a member that has another one
    /// fails with MMN_AUTHENTICATION_FAILED. NULL is none [NULL].
    pub secret: *const u8,
    /// The key by which others know this member, if it is to be the same in its next room: an Ed25519 private key
    /// in PKCS#8 (DER), identity_key_length bytes. NULL makes a new one at every start [NULL].
    pub identity_key: *const u8,
    /// Bytes of secret, at most MMN_MAX_SECRET_BYTES. 0 is no secret [0].
    pub secret_length: u32,
    /// Bytes of identity_key, at most 1024. 0 makes a new key [0].
    pub identity_key_length: u32,
    /// How long the place of a lost member is kept, in milliseconds [60000]. Above 0.
    pub member_hold_ms: u32,
    /// Bytes that wait for one peer at most, and for the host, beside the limits in messages [4194304]. Above 0. An
    /// empty queue takes one message of any allowed size.
    pub queue_bytes: u32,
    /// How the leader is elected: MMN_STRATEGY_RAFT or, since version 4 of the ABI, MMN_STRATEGY_GOSSIP
    /// [MMN_STRATEGY_RAFT]. Others are MMN_NOT_SUPPORTED. The same for all members. With gossip there are no votes:
    /// election_timeout_min_ms, election_timeout_max_ms, manual_override_recovery, merge_policy and set_leader_authority
    /// have no effect, and SetLeaderAliveThreshold and its like set the times.
    pub strategy: u32,
    /// Whom elections prefer: the higher priority [0]. With MMN_STRATEGY_GOSSIP 0.
    pub priority: i32,
    /// The UDP port to bind [0]. 0 is any free one.
    pub bind_port: u16,
    /// Discovery in the local network: MMN_DISCOVERY_OFF, MMN_DISCOVERY_REPORT or MMN_DISCOVERY_CONNECT
    /// [MMN_DISCOVERY_OFF].
    pub discovery_mode: u8,
    /// Who runs the callbacks: MMN_DISPATCH_THREAD or MMN_DISPATCH_POLL [MMN_DISPATCH_THREAD].
    pub dispatch_mode: u8,
    /// Which leader stays when two parts of a room meet: MMN_MERGE_LARGEST_SIDE or MMN_MERGE_HIGHEST_TERM
    /// [MMN_MERGE_LARGEST_SIDE]. The same for all members.
    pub merge_policy: u8,
    /// Who may call SetLeader: MMN_AUTHORITY_ANYONE or MMN_AUTHORITY_LEADER_ONLY [MMN_AUTHORITY_ANYONE]. The same
    /// for all members.
    pub set_leader_authority: u8,
    /// Whether one fixed member leads: MMN_HOST_MODE_OFF, MMN_HOST_MODE_HOST or MMN_HOST_MODE_GUEST
    /// [MMN_HOST_MODE_OFF]. The host leads when InitializeNetworkWithOptions returns, whatever auto_election_enabled says.
    pub host_mode: u8,
    /// Whether this member may lead: 0 no, it observes; else yes [1].
    pub eligible: u8,
    /// Where a static quorum keeps what must survive the process: the path of an existing directory in which this member
    /// may write, in a file of its own for each session id and peer id. The file holds the roster, the votes and, where
    /// identity_key is NULL, the private key, which is made at the first start and used again at every other. Another
    /// quorum_roster or identity_key than that of the file is MMN_INVALID_ARGUMENT. Two processes cannot be the same
    /// member with the same directory. Needed with MMN_QUORUM_STATIC, else NULL [NULL]. Since version 3 of the ABI.
    pub state_directory: *const c_char,
    /// The path of a file for a trace of the room's elections, of which `examples/simulate.rs` makes a picture. It is written
    /// anew, up to 256 MiB, and holds nothing that the application sends. One that cannot be written is
    /// MMN_INVALID_ARGUMENT. NULL is none [NULL]. Since version 3 of the ABI.
    pub trace_path: *const c_char,
    /// A majority of whom elects: MMN_QUORUM_DYNAMIC or MMN_QUORUM_STATIC [MMN_QUORUM_DYNAMIC]. The same for all members.
    /// A static quorum never has two leaders, and no leader without a majority of the voters of quorum_roster; it goes with
    /// no host_mode, and with MMN_STRATEGY_RAFT alone. Since version 3 of the ABI.
    pub quorum_policy: u32,
    /// 0, or with MMN_QUORUM_STATIC the number of voters in quorum_roster, at most MMN_MAX_QUORUM_VOTERS [0]. Since
    /// version 3 of the ABI.
    pub quorum_voters: u32,
    /// How the strategy elects, in bits [0]. With MMN_STRATEGY_GOSSIP MMN_GOSSIP_STRICT_LOWEST or 0, the same for all
    /// members; else 0. Since version 4 of the ABI.
    pub strategy_flags: u32,
    /// 0. Since version 4 of the ABI.
    pub reserved: u32,
    /// Most other members of any member, as SetMaxPeers sets it, from the room's first leader on; 0 is no limit [0].
    /// The leader's own value counts until SetMaxPeers is called: give it to all members that may lead. Since version 5
    /// of the ABI.
    pub max_peers: u32,
    /// 0. Since version 5 of the ABI.
    pub reserved2: u32,
    /// The voters of a static quorum: their peer ids, one a line, 1 to MMN_MAX_QUORUM_VOTERS. After an id may follow a blank
    /// and the fingerprint of its key: the SHA-256 of the public key (SubjectPublicKeyInfo, DER) in 64 hexadecimal digits. Nobody
    /// with another key is that voter then. Blanks around a line and empty lines are ignored. The same voters for all
    /// members and for as long as the session lives. A member that is not on it never leads and has no vote. Needed with
    /// MMN_QUORUM_STATIC, else NULL [NULL]. Since version 6 of the ABI.
    pub quorum_roster: *const c_char,
}

/// Bytes of [`NetworkOptions`] in the first version that had it. Never changes.
const FIRST_VERSION_BYTES: usize = std::mem::offset_of!(NetworkOptions, eligible) + 1;
/// Bytes of it in version 3 of the ABI. Never changes.
const THIRD_VERSION_BYTES: usize = std::mem::offset_of!(NetworkOptions, strategy_flags);
/// Bytes of it in version 4 of the ABI. Never changes.
const FOURTH_VERSION_BYTES: usize = std::mem::offset_of!(NetworkOptions, max_peers);
/// Bytes of it in version 5 of the ABI. Never changes.
const FIFTH_VERSION_BYTES: usize = std::mem::offset_of!(NetworkOptions, quorum_roster);
/// A `struct_size` above this is no size: whoever passed it did not set it.
const MAX_STRUCT_BYTES: usize = 64 * 1024;

impl Default for NetworkOptions {
    fn default() -> Self {
        const MEMBER_HOLD_MS: u32 = DEFAULT_MEMBER_HOLD.as_millis() as u32;
        const QUEUE_MESSAGES: u16 = DEFAULT_QUEUE_MESSAGES as u16;
        Self {
            struct_size: size_of::<Self>() as u32,
            config: NetworkConfigFFI {
                send_queue_capacity: QUEUE_MESSAGES,
                incoming_queue_capacity: QUEUE_MESSAGES,
                ..NetworkConfigFFI::default()
            },
            bind_address: ptr::null(),
            secret: ptr::null(),
            identity_key: ptr::null(),
            secret_length: 0,
            identity_key_length: 0,
            member_hold_ms: MEMBER_HOLD_MS,
            queue_bytes: DEFAULT_QUEUE_BYTES as u32,
            strategy: MMN_STRATEGY_RAFT,
            priority: 0,
            bind_port: 0,
            discovery_mode: MMN_DISCOVERY_OFF,
            dispatch_mode: MMN_DISPATCH_THREAD,
            merge_policy: MMN_MERGE_LARGEST_SIDE,
            set_leader_authority: MMN_AUTHORITY_ANYONE,
            host_mode: MMN_HOST_MODE_OFF,
            eligible: 1,
            state_directory: ptr::null(),
            trace_path: ptr::null(),
            quorum_policy: MMN_QUORUM_DYNAMIC,
            quorum_voters: 0,
            strategy_flags: 0,
            reserved: 0,
            max_peers: 0,
            reserved2: 0,
            quorum_roster: ptr::null(),
        }
    }
}

/// Fills `options` with the defaults. The caller has set struct_size; bytes beyond it, and beyond what this
/// version of the library knows, are left alone, and struct_size stays.
///
/// Returns MMN_OK or MMN_INVALID_ARGUMENT (NULL, or a struct_size that is none).
///
/// # Safety
/// `options` is NULL, or points to struct_size bytes that can be written, the first four being struct_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GetDefaultNetworkOptions(options: *mut NetworkOptions) -> i32 {
    command("GetDefaultNetworkOptions", || {
        // SAFETY: the caller's promise, passed on.
        let size = unsafe { struct_size(options) }?;
        let defaults = NetworkOptions {
            struct_size: size,
            ..NetworkOptions::default()
        };
        // SAFETY: no more than struct_size bytes, for which the caller vouches, and no more than a NetworkOptions
        // has; they are copied as bytes, because hosts that build the struct by hand may not align it.
        unsafe {
            ptr::copy_nonoverlapping(
                (&raw const defaults).cast::<u8>(),
                options.cast::<u8>(),
                known(size),
            );
        }
        Ok(())
    })
}

/// Opens the process's room as InitializeNetwork does, with the given options.
///
/// `options` is read during the call only. NULL, a struct_size that is none, or the first field that breaks its
/// rule gives MMN_INVALID_ARGUMENT, and GetLastErrorMessage names the field.
///
/// Returns MMN_OK, MMN_INVALID_ARGUMENT, MMN_ALREADY_INITIALIZED, MMN_NOT_SUPPORTED (a strategy that this build
/// does not have), MMN_CONNECTION_FAILED (the address or the port cannot be bound: GetLastErrorMessage names
/// both) or MMN_INTERNAL_ERROR.
///
/// # Safety
/// Both strings are NULL or end with a NUL; `options` is NULL, or points to struct_size bytes that can be read, the
/// first four being struct_size; and what its pointers lead to can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeNetworkWithOptions(
    peer_id: *const c_char,
    session_id: *const c_char,
    options: *const NetworkOptions,
) -> i32 {
    command("InitializeNetworkWithOptions", || {
        // SAFETY: the caller's promise, passed on.
        let peer = unsafe { peer_id_argument("peer_id", peer_id) }?;
        // SAFETY: the same.
        let session = unsafe { session_id_argument("session_id", session_id) }?;
        // SAFETY: the same.
        let options = unsafe { read(options) }?;
        // SAFETY: the same.
        let pointed = unsafe { Pointed::read(&options) }?;
        refuse_second_room()?;
        Ok(runtime::initialize(
            peer,
            session,
            config(&options, pointed)?,
        )?)
    })
}

/// How many bytes of a struct of `size` bytes this version of the library knows: all of them, or those of an earlier
/// version. A size between two versions is that of the earlier one, so that no field is read by half.
fn known(size: u32) -> usize {
    let versions = [
        size_of::<NetworkOptions>(),
        FIFTH_VERSION_BYTES,
        FOURTH_VERSION_BYTES,
        THIRD_VERSION_BYTES,
    ];
    versions
        .into_iter()
        .find(|known| *known <= bytes(size))
        .unwrap_or(FIRST_VERSION_BYTES)
}

/// The checked size of the struct at `options`.
///
/// # Safety
/// `options` is NULL or points to four bytes that can be read.
unsafe fn struct_size(options: *const NetworkOptions) -> Result<u32, Failure> {
    if options.is_null() {
        return Err(Failure::invalid(
            "options is NULL; give a NetworkOptions with its struct_size set".to_owned(),
        ));
    }
    // SAFETY: not NULL, so that the caller vouches for the first four bytes.
    let size = unsafe { options.cast::<u32>().read_unaligned() };
    if !(FIRST_VERSION_BYTES..=MAX_STRUCT_BYTES).contains(&bytes(size)) {
        return Err(Failure::invalid(format!(
            "struct_size is {size}; set it to sizeof(NetworkOptions), which is {FIRST_VERSION_BYTES} or more"
        )));
    }
    Ok(size)
}

/// The options at `options`; what an older program does not know has its default.
///
/// # Safety
/// `options` is NULL, or points to struct_size bytes that can be read, the first four being struct_size.
unsafe fn read(options: *const NetworkOptions) -> Result<NetworkOptions, Failure> {
    // SAFETY: the caller's promise, passed on.
    let size = unsafe { struct_size(options) }?;
    let mut read = NetworkOptions::default();
    // SAFETY: no more than struct_size bytes, for which the caller vouches, and no more than a NetworkOptions
    // has; every pattern of bytes is one. Hosts that build it by hand may not align it.
    unsafe {
        ptr::copy_nonoverlapping(
            options.cast::<u8>(),
            (&raw mut read).cast::<u8>(),
            known(size),
        );
    }
    Ok(read)
}

/// A fuzz target: a struct of any size with any values in it becomes settings, or a sentence. The first two bytes are its
/// size.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check(input: &[u8]) {
    let Some((size, fields)) = input.split_first_chunk::<2>() else {
        return;
    };
    let size = u32::from(u16::from_le_bytes(*size));
    // Exactly as long as it says, so that a sanitizer sees what is read beyond.
    let mut given = vec![0_u8; bytes(size).max(4)];
    let some = fields.len().min(given.len().saturating_sub(4));
    given[4..][..some].copy_from_slice(&fields[..some]);
    let texts: [&[u8]; 5] = [
        b"127.0.0.1\0",
        b"\0",
        b"\xff\0",
        b"::ffff:1.2.3.4\0",
        b"a\n b \n\n\x07\0",
    ];
    for (offset, length) in [
        (std::mem::offset_of!(NetworkOptions, bind_address), None),
        (std::mem::offset_of!(NetworkOptions, state_directory), None),
        (std::mem::offset_of!(NetworkOptions, trace_path), None),
        (std::mem::offset_of!(NetworkOptions, quorum_roster), None),
        (
            std::mem::offset_of!(NetworkOptions, secret),
            Some(std::mem::offset_of!(NetworkOptions, secret_length)),
        ),
        (
            std::mem::offset_of!(NetworkOptions, identity_key),
            Some(std::mem::offset_of!(NetworkOptions, identity_key_length)),
        ),
    ] {
        let Some(place) = given.get_mut(offset..offset + size_of::<usize>()) else {
            continue;
        };
        // Only pointers that a host may pass: NULL, or to what is there.
        let text = texts[usize::from(place[0] % 5)];
        let pointer = match place[0] < 64 {
            true => 0,
            false => text.as_ptr().addr(),
        };
        place.copy_from_slice(&pointer.to_ne_bytes());
        if let Some(length) = length
            && let Some(length) = given.get_mut(length..length + 4)
            && u32::from_ne_bytes([length[0], length[1], length[2], length[3]])
                <= MAX_SECRET_BYTES.max(MAX_IDENTITY_KEY_BYTES) as u32
        {
            let len = text.len() as u32 % (u32::from(length[0]) + 1);
            length.copy_from_slice(&len.to_ne_bytes());
        }
    }
    given[..4].copy_from_slice(&size.to_ne_bytes());
    let options = given.as_ptr().cast::<NetworkOptions>();
    // SAFETY: `struct_size` bytes, at least four, and pointers as above.
    let read = unsafe { read(options) };
    let Ok(options) = read else {
        assert!(!(FIRST_VERSION_BYTES..=MAX_STRUCT_BYTES).contains(&given.len()));
        return;
    };
    // SAFETY: the same.
    if let Ok(pointed) = unsafe { Pointed::read(&options) }
        && let Err(error) = config(&options, pointed)
    {
        assert!(error.to_string().len() < 512, "a long sentence");
    }
    // And the other way: no byte beyond the size is written.
    let mut defaults = vec![0x5a_u8; bytes(size).max(4)];
    defaults[..4].copy_from_slice(&size.to_ne_bytes());
    let pointer = defaults.as_mut_ptr().cast::<NetworkOptions>();
    // SAFETY: `struct_size` bytes that can be written.
    let code = unsafe { GetDefaultNetworkOptions(pointer) };
    let right = (FIRST_VERSION_BYTES..=MAX_STRUCT_BYTES).contains(&bytes(size));
    assert_eq!(
        code == crate::ffi::codes::MMN_OK,
        right,
        "a struct of {size} bytes"
    );
}
