//! All settings of a room in one struct that may grow: `NetworkOptions`.

use std::ffi::c_char;
use std::net::IpAddr;
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

use super::arguments::{
    bytes as bytes_argument, peer_id as peer_id_argument, session_id as session_id_argument, text,
};
use super::config::{NetworkConfigFFI, bytes};
use super::failure::Failure;
use super::guard::command;
use super::lifecycle::refuse_second_room;
use super::values::*;
use crate::config::{
    Config, ConfigError, DEFAULT_MEMBER_HOLD, DEFAULT_QUEUE_BYTES, DEFAULT_QUEUE_MESSAGES,
    DiscoveryMode, DispatchMode, MAX_IDENTITY_KEY_BYTES, MAX_SECRET_BYTES, Secret,
};
use crate::core::quorum::{Quorum, Roster, RosterError};
use crate::core::wire::{Authority, HostMode, MergePolicy, Strategy};
use crate::quoted::Quoted;
use crate::runtime;

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

/// What the pointers of the options lead to.
struct Pointed {
    bind_address: Option<IpAddr>,
    secret: Option<Secret>,
    identity_key: Option<Secret>,
    state_directory: Option<PathBuf>,
    trace_path: Option<PathBuf>,
    quorum_roster: Option<String>,
}

impl Pointed {
    /// # Safety
    /// Each pointer is NULL, or leads to a NUL-terminated string or to as many bytes as its length says.
    unsafe fn read(options: &NetworkOptions) -> Result<Self, Failure> {
        let bind_address = if options.bind_address.is_null() {
            None
        } else {
            // SAFETY: the caller's promise, passed on.
            let text = unsafe { text("bind_address", options.bind_address) }?;
            let address = text.parse::<IpAddr>().map_err(|_| {
                Failure::invalid(format!(
                    "bind_address {} is not an IPv4 or IPv6 address; give one without port and brackets, or NULL for every address",
                    Quoted(text)
                ))
            })?;
            Some(address.to_canonical())
        };
        // SAFETY: the caller's promise, passed on.
        let secret = unsafe {
            bytes_argument(
                "secret",
                options.secret,
                options.secret_length,
                MAX_SECRET_BYTES,
            )
        }?;
        // SAFETY: the same.
        let identity_key = unsafe {
            bytes_argument(
                "identity_key",
                options.identity_key,
                options.identity_key_length,
                MAX_IDENTITY_KEY_BYTES,
            )
        }?;
        Ok(Self {
            bind_address,
            secret: Secret::new(secret),
            identity_key: Secret::new(identity_key),
            // SAFETY: the same.
            state_directory: unsafe { path("state_directory", options.state_directory) }?,
            // SAFETY: the same.
            trace_path: unsafe { path("trace_path", options.trace_path) }?,
            quorum_roster: match options.quorum_roster.is_null() {
                true => None,
                // SAFETY: the same.
                false => Some(unsafe { text("quorum_roster", options.quorum_roster) }?.to_owned()),
            },
        })
    }
}

/// The path at `pointer`; NULL is none.
///
/// # Safety
/// `pointer` is NULL or ends with a NUL.
unsafe fn path(argument: &str, pointer: *const c_char) -> Result<Option<PathBuf>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise, passed on.
    let text = unsafe { text(argument, pointer) }?;
    if text.is_empty() {
        return Err(Failure::invalid(format!(
            "{argument} is empty; give a path, or NULL for none"
        )));
    }
    Ok(Some(PathBuf::from(text)))
}

/// Fails with the first broken rule: those of the classic struct, then the others in the order of their fields.
fn config(options: &NetworkOptions, pointed: Pointed) -> Result<Config, ConfigError> {
    let classic = Config::try_from(&options.config)?;
    for (field, value) in [
        ("member_hold_ms", options.member_hold_ms),
        ("queue_bytes", options.queue_bytes),
    ] {
        if value == 0 {
            return Err(ConfigError::Zero { field });
        }
    }
    if ![MMN_STRATEGY_RAFT, MMN_STRATEGY_GOSSIP].contains(&options.strategy) {
        return Err(ConfigError::UnknownStrategy {
            strategy: options.strategy,
        });
    }
    let discovery = match options.discovery_mode {
        MMN_DISCOVERY_OFF => DiscoveryMode::Off,
        MMN_DISCOVERY_REPORT => DiscoveryMode::Report,
        MMN_DISCOVERY_CONNECT => DiscoveryMode::Connect,
        value => {
            return Err(ConfigError::NotAllowed {
                field: "discovery_mode",
                value: value.into(),
                allowed: "0 (off), 1 (report) and 2 (connect)",
            });
        }
    };
    if discovery != DiscoveryMode::Off && classic.mdns_port.is_none() {
        return Err(ConfigError::DiscoveryWithoutPort {
            discovery_mode: options.discovery_mode,
        });
    }
    let dispatch_mode = match options.dispatch_mode {
        MMN_DISPATCH_THREAD => DispatchMode::Thread,
        MMN_DISPATCH_POLL => DispatchMode::Poll,
        value => {
            return Err(ConfigError::NotAllowed {
                field: "dispatch_mode",
                value: value.into(),
                allowed: "0 (thread) and 1 (poll)",
            });
        }
    };
    let merge_policy = match options.merge_policy {
        MMN_MERGE_LARGEST_SIDE => MergePolicy::LargestSide,
        MMN_MERGE_HIGHEST_TERM => MergePolicy::HighestTerm,
        value => {
            return Err(ConfigError::NotAllowed {
                field: "merge_policy",
                value: value.into(),
                allowed: "0 (largest side) and 1 (highest term)",
            });
        }
    };
    let authority = match options.set_leader_authority {
        MMN_AUTHORITY_ANYONE => Authority::Anyone,
        MMN_AUTHORITY_LEADER_ONLY => Authority::LeaderOnly,
        value => {
            return Err(ConfigError::NotAllowed {
                field: "set_leader_authority",
                value: value.into(),
                allowed: "0 (anyone) and 1 (leader only)",
            });
        }
    };
    let host_mode = match options.host_mode {
        MMN_HOST_MODE_OFF => HostMode::Off,
        MMN_HOST_MODE_HOST => HostMode::Host,
        MMN_HOST_MODE_GUEST => HostMode::Guest,
        value => {
            return Err(ConfigError::NotAllowed {
                field: "host_mode",
                value: value.into(),
                allowed: "0 (off), 1 (host) and 2 (guest)",
            });
        }
    };
    let quorum = quorum(
        options.quorum_policy,
        options.quorum_voters,
        pointed.quorum_roster.as_deref(),
    )?;
    let strategy = strategy(options.strategy, options.strategy_flags)?;
    for (field, value) in [
        ("reserved", options.reserved),
        ("reserved2", options.reserved2),
    ] {
        if value != 0 {
            return Err(ConfigError::NotAllowed {
                field,
                value,
                allowed: "0 alone",
            });
        }
    }
    Config {
        discovery,
        bind_address: pointed.bind_address,
        bind_port: options.bind_port,
        secret: pointed.secret,
        identity_key: pointed.identity_key,
        dispatch_mode,
        strategy,
        merge_policy,
        quorum,
        state_directory: pointed.state_directory,
        trace_path: pointed.trace_path,
        authority,
        host_mode,
        max_peers: options.max_peers,
        member_hold: Duration::from_millis(options.member_hold_ms.into()),
        queue_bytes: bytes(options.queue_bytes),
        eligible: options.eligible != 0,
        priority: options.priority,
        ..classic
    }
    .validated()
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

/// Who counts for a majority: by a policy, a number of voters (0 where the list says it) and a list.
fn quorum(policy: u32, voters: u32, roster: Option<&str>) -> Result<Quorum, ConfigError> {
    match (policy, voters, roster) {
        (MMN_QUORUM_DYNAMIC, 0, None) => Ok(Quorum::Dynamic),
        (MMN_QUORUM_DYNAMIC, 0, Some(_)) => Err(ConfigError::RosterWithoutStatic),
        (MMN_QUORUM_DYNAMIC, voters, _) => Err(ConfigError::VotersWithoutStatic { voters }),
        (MMN_QUORUM_STATIC, _, None) => Err(ConfigError::StaticWithoutRoster),
        (MMN_QUORUM_STATIC, voters, Some(text)) => {
            let roster = roster_of(text)?;
            match (bytes(voters), roster.len()) {
                (given, named) if given == 0 || given == named => Ok(Quorum::Static(roster)),
                (_, named) => Err(ConfigError::QuorumVoters { voters, named }),
            }
        }
        (value, _, _) => Err(ConfigError::NotAllowed {
            field: "quorum_policy",
            value,
            allowed: "0 (dynamic) and 1 (static)",
        }),
    }
}

fn roster_of(text: &str) -> Result<Roster, ConfigError> {
    Roster::parse(text).map_err(|source| {
        let line = match &source {
            RosterError::Id { line, .. } => text.lines().nth(line - 1).map(str::to_owned),
            _ => None,
        };
        ConfigError::Roster { source, line }
    })
}

/// The strategy of a number that is one, with its flags.
fn strategy(strategy: u32, flags: u32) -> Result<Strategy, ConfigError> {
    match (strategy, flags) {
        (MMN_STRATEGY_GOSSIP, 0 | MMN_GOSSIP_STRICT_LOWEST) => Ok(Strategy::Gossip {
            strict_lowest: flags == MMN_GOSSIP_STRICT_LOWEST,
        }),
        (MMN_STRATEGY_GOSSIP, value) => Err(ConfigError::NotAllowed {
            field: "strategy_flags",
            value,
            allowed: "0 and 1 (strict lowest)",
        }),
        (_, 0) => Ok(Strategy::Raft),
        (_, flags) => Err(ConfigError::FlagsWithoutGossip { flags }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Code, Coded};

    fn nothing() -> Pointed {
        Pointed {
            bind_address: None,
            secret: None,
            identity_key: None,
            state_directory: None,
            trace_path: None,
            quorum_roster: None,
        }
    }

    fn roster(text: &str) -> Pointed {
        Pointed {
            quorum_roster: Some(text.to_owned()),
            ..nothing()
        }
    }

    /// The same in a room with a static quorum of these voters.
    fn static_broken(text: &str, change: impl FnOnce(&mut NetworkOptions)) -> ConfigError {
        let mut options = NetworkOptions {
            quorum_policy: MMN_QUORUM_STATIC,
            ..NetworkOptions::default()
        };
        change(&mut options);
        config(&options, roster(text)).expect_err("a broken rule")
    }

    fn broken(change: impl FnOnce(&mut NetworkOptions)) -> ConfigError {
        let mut options = NetworkOptions::default();
        change(&mut options);
        config(&options, nothing()).expect_err("a broken rule")
    }

    /// The same in a room that elects by gossip.
    fn gossip_broken(change: impl FnOnce(&mut NetworkOptions)) -> ConfigError {
        broken(|options| {
            options.strategy = MMN_STRATEGY_GOSSIP;
            change(options);
        })
    }

    #[test]
    fn the_struct_has_no_hidden_padding() {
        let pointers = 3 * size_of::<usize>();
        let second = 2 * size_of::<usize>() + 8;
        let third = 48 + pointers + 32 + second;
        assert_eq!(size_of::<NetworkOptions>(), third + 16 + size_of::<usize>());
        assert_eq!(FIRST_VERSION_BYTES, 48 + pointers + 32);
        assert_eq!(THIRD_VERSION_BYTES, third);
        assert_eq!(FOURTH_VERSION_BYTES, third + 8);
        assert_eq!(FIFTH_VERSION_BYTES, third + 16);
        macro_rules! at {
            ($($field:ident: $offset:expr),* $(,)?) => {
                $(assert_eq!(
                    std::mem::offset_of!(NetworkOptions, $field),
                    $offset,
                    stringify!($field)
                );)*
            };
        }
        let rest = 48 + pointers;
        at!(
            struct_size: 0,
            config: 4,
            bind_address: 48,
            secret: 48 + size_of::<usize>(),
            identity_key: 48 + 2 * size_of::<usize>(),
            secret_length: rest,
            identity_key_length: rest + 4,
            member_hold_ms: rest + 8,
            queue_bytes: rest + 12,
            strategy: rest + 16,
            priority: rest + 20,
            bind_port: rest + 24,
            discovery_mode: rest + 26,
            dispatch_mode: rest + 27,
            merge_policy: rest + 28,
            set_leader_authority: rest + 29,
            host_mode: rest + 30,
            eligible: rest + 31,
            state_directory: rest + 32,
            trace_path: rest + 32 + size_of::<usize>(),
            quorum_policy: rest + 32 + pointers - size_of::<usize>(),
            quorum_voters: rest + 36 + pointers - size_of::<usize>(),
            strategy_flags: third,
            reserved: third + 4,
            max_peers: third + 8,
            reserved2: third + 12,
            quorum_roster: third + 16,
        );
    }

    #[test]
    fn the_defaults_are_those_of_a_room_without_options_but_without_discovery() {
        let expected = Config {
            discovery: DiscoveryMode::Off,
            ..Config::default()
        };
        assert_eq!(config(&NetworkOptions::default(), nothing()), Ok(expected));
    }

    #[test]
    fn the_first_broken_rule_is_told_with_the_value_and_what_is_allowed() {
        let sentences = [
            (
                broken(|options| options.config.max_connections = 0),
                "max_connections is 0; it must be at least 1",
            ),
            (
                broken(|options| options.member_hold_ms = 0),
                "member_hold_ms is 0; it must be at least 1",
            ),
            (
                broken(|options| options.queue_bytes = 0),
                "queue_bytes is 0; it must be at least 1",
            ),
            (
                broken(|options| options.discovery_mode = 3),
                "discovery_mode is 3; allowed are 0 (off), 1 (report) and 2 (connect)",
            ),
            (
                broken(|options| options.dispatch_mode = 2),
                "dispatch_mode is 2; allowed are 0 (thread) and 1 (poll)",
            ),
            (
                broken(|options| options.merge_policy = 255),
                "merge_policy is 255; allowed are 0 (largest side) and 1 (highest term)",
            ),
            (
                broken(|options| options.set_leader_authority = 2),
                "set_leader_authority is 2; allowed are 0 (anyone) and 1 (leader only)",
            ),
            (
                broken(|options| {
                    options.host_mode = MMN_HOST_MODE_HOST;
                    options.eligible = 0;
                }),
                "eligible is 0 while host_mode is 1 (host), and nobody else leads such a room; give eligible 1, or another host_mode",
            ),
            (
                broken(|options| options.reserved2 = 1),
                "reserved2 is 1; allowed are 0 alone",
            ),
            (
                broken(|options| options.host_mode = 3),
                "host_mode is 3; allowed are 0 (off), 1 (host) and 2 (guest)",
            ),
            (
                broken(|options| options.quorum_policy = 2),
                "quorum_policy is 2; allowed are 0 (dynamic) and 1 (static)",
            ),
            (
                broken(|options| options.quorum_voters = 3),
                "quorum_voters is 3 while quorum_policy is 0 (dynamic), which counts the members that are connected; give 0, or quorum_policy 1",
            ),
            (
                config(&NetworkOptions::default(), roster("a")).expect_err("a list for nobody"),
                "quorum_roster is set while quorum_policy is 0 (dynamic), which counts the members that are connected; give NULL, or quorum_policy 1",
            ),
            (
                broken(|options| options.quorum_policy = MMN_QUORUM_STATIC),
                "quorum_roster is NULL while quorum_policy is 1 (static); give the ids of all voters of the room, one a line, 1 to 64",
            ),
            (
                static_broken("a\nb\nc", |options| options.quorum_voters = 2),
                "quorum_voters is 2 while quorum_roster names 3; give 0, which is the number of its voters, or 3",
            ),
            (
                static_broken("\n", |_| {}),
                "quorum_roster cannot be used: it names no voter; give 1 to 64, one a line",
            ),
            (
                static_broken("a\nb\na", |_| {}),
                "quorum_roster cannot be used: it names \"a\" twice",
            ),
            (
                static_broken("a\n\nb\u{7}", |_| {}),
                "quorum_roster cannot be used: line 3 is no peer id: it contains the control character U+0007; remove it (the line is \"b\\u{7}\")",
            ),
            (
                static_broken("a\nb\nc", |options| options.quorum_voters = 3),
                "state_directory is NULL while quorum_policy is 1 (static); give an existing directory of this member, in which term and vote survive the process",
            ),
            (
                static_broken("a", |options| options.host_mode = MMN_HOST_MODE_GUEST),
                "quorum_policy is 1 (static) while host_mode is 2; a room with a fixed host elects nobody: give host_mode 0, or quorum_policy 0",
            ),
            (
                broken(|options| options.strategy_flags = MMN_GOSSIP_STRICT_LOWEST),
                "strategy_flags is 1 while strategy is 0 (raft), which has none; give 0, or strategy 1",
            ),
            (
                broken(|options| options.reserved = 7),
                "reserved is 7; allowed are 0 alone",
            ),
            (
                gossip_broken(|options| options.strategy_flags = 2),
                "strategy_flags is 2; allowed are 0 and 1 (strict lowest)",
            ),
            (
                gossip_broken(|options| options.strategy_flags = u32::MAX),
                "strategy_flags is 4294967295; allowed are 0 and 1 (strict lowest)",
            ),
            (
                gossip_broken(|options| options.priority = -5),
                "priority is -5 while strategy is 1 (gossip), which knows none; give 0, or strategy 0",
            ),
            (
                static_broken("a", |options| options.strategy = MMN_STRATEGY_GOSSIP),
                "quorum_policy is 1 (static) while strategy is 1 (gossip), which counts no votes; give quorum_policy 0, or strategy 0",
            ),
        ];
        for (error, sentence) in sentences {
            assert_eq!(error.to_string(), sentence);
            assert_eq!(error.code(), Code::InvalidArgument, "{sentence}");
        }
        let error = broken(|options| options.strategy = 2);
        assert_eq!(error.code(), Code::NotSupported);
        assert_eq!(
            error.to_string(),
            "strategy is 2; this build has 0 (raft) and 1 (gossip)"
        );
    }

    #[test]
    fn discovery_needs_a_port_only_where_it_is_on() {
        let mut options = NetworkOptions::default();
        options.config.mdns_port = 0;
        assert!(config(&options, nothing()).is_ok());
        options.discovery_mode = MMN_DISCOVERY_REPORT;
        let error = config(&options, nothing()).expect_err("no port");
        assert!(error.to_string().contains("while discovery_mode is 1"));
    }

    #[test]
    fn a_state_directory_goes_with_a_static_quorum_alone() {
        let pointed = Pointed {
            state_directory: Some("here".into()),
            ..nothing()
        };
        let error = config(&NetworkOptions::default(), pointed).expect_err("nothing to keep");
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(
            error.to_string(),
            "state_directory is set while quorum_policy is 0 (dynamic), which keeps nothing; give NULL, or quorum_policy 1"
        );
    }

    #[test]
    fn a_program_of_an_older_version_gets_its_own_fields_and_the_defaults_of_the_rest() {
        let first = FIRST_VERSION_BYTES as u32;
        let third = THIRD_VERSION_BYTES as u32;
        let fourth = FOURTH_VERSION_BYTES as u32;
        let fifth = FIFTH_VERSION_BYTES as u32;
        for size in [fifth, fifth + 1, size_of::<NetworkOptions>() as u32 - 1] {
            let options = NetworkOptions {
                struct_size: size,
                max_peers: 77,
                quorum_roster: ptr::dangling(),
                ..NetworkOptions::default()
            };
            // SAFETY: the struct is longer than it says.
            let read = unsafe { read(&options) }.expect("a size");
            let expected = NetworkOptions {
                struct_size: size,
                max_peers: 77,
                ..NetworkOptions::default()
            };
            assert_eq!(read, expected, "{size}");
        }
        for size in [fourth, fourth + 1, fifth - 1] {
            let options = NetworkOptions {
                struct_size: size,
                strategy_flags: 77,
                max_peers: 77,
                reserved2: 77,
                ..NetworkOptions::default()
            };
            // SAFETY: the struct is longer than it says.
            let read = unsafe { read(&options) }.expect("a size");
            let expected = NetworkOptions {
                struct_size: size,
                strategy_flags: 77,
                ..NetworkOptions::default()
            };
            assert_eq!(read, expected, "{size}");
        }
        for size in [third, third + 1, fourth - 1] {
            let options = NetworkOptions {
                struct_size: size,
                quorum_voters: 77,
                strategy_flags: 77,
                reserved: 77,
                ..NetworkOptions::default()
            };
            // SAFETY: the struct is longer than it says.
            let read = unsafe { read(&options) }.expect("a size");
            let expected = NetworkOptions {
                struct_size: size,
                quorum_voters: 77,
                ..NetworkOptions::default()
            };
            assert_eq!(read, expected, "{size}");
        }
        for size in [first, first + 1, third - 1] {
            let options = NetworkOptions {
                struct_size: size,
                priority: 5,
                quorum_policy: 77,
                quorum_voters: 77,
                state_directory: ptr::dangling(),
                trace_path: ptr::dangling(),
                ..NetworkOptions::default()
            };
            // SAFETY: the struct is longer than it says.
            let read = unsafe { read(&options) }.expect("a size");
            let expected = NetworkOptions {
                struct_size: size,
                priority: 5,
                ..NetworkOptions::default()
            };
            assert_eq!(read, expected, "{size}");
        }
    }

    #[test]
    fn every_field_arrives() {
        let options = NetworkOptions {
            member_hold_ms: 1500,
            queue_bytes: 77,
            priority: -4,
            max_peers: 6,
            bind_port: 4433,
            discovery_mode: MMN_DISCOVERY_CONNECT,
            dispatch_mode: MMN_DISPATCH_POLL,
            merge_policy: MMN_MERGE_HIGHEST_TERM,
            set_leader_authority: MMN_AUTHORITY_LEADER_ONLY,
            eligible: 0,
            quorum_policy: MMN_QUORUM_STATIC,
            quorum_voters: 3,
            ..NetworkOptions::default()
        };
        let pointed = Pointed {
            bind_address: Some(IpAddr::from([127, 0, 0, 1])),
            secret: Secret::new(b"s"),
            identity_key: Secret::new(b"k"),
            state_directory: Some("state".into()),
            trace_path: Some("trace".into()),
            quorum_roster: Some("c\na\nb\n".into()),
        };
        let expected = Config {
            member_hold: Duration::from_millis(1500),
            queue_bytes: 77,
            priority: -4,
            max_peers: 6,
            bind_port: 4433,
            bind_address: Some(IpAddr::from([127, 0, 0, 1])),
            secret: Secret::new(b"s"),
            identity_key: Secret::new(b"k"),
            discovery: DiscoveryMode::Connect,
            dispatch_mode: DispatchMode::Poll,
            merge_policy: MergePolicy::HighestTerm,
            authority: Authority::LeaderOnly,
            quorum: Quorum::of(&["a", "b", "c"]),
            state_directory: Some("state".into()),
            trace_path: Some("trace".into()),
            eligible: false,
            ..Config::default()
        };
        assert_eq!(config(&options, pointed), Ok(expected));
        // Gossip goes with no priority and no static quorum.
        for (flags, strict_lowest) in [(0, false), (MMN_GOSSIP_STRICT_LOWEST, true)] {
            let options = NetworkOptions {
                strategy: MMN_STRATEGY_GOSSIP,
                strategy_flags: flags,
                ..NetworkOptions::default()
            };
            let expected = Config {
                discovery: DiscoveryMode::Off,
                strategy: Strategy::Gossip { strict_lowest },
                ..Config::default()
            };
            assert_eq!(config(&options, nothing()), Ok(expected));
        }
        // A fixed host goes with no static quorum.
        let options = NetworkOptions {
            host_mode: MMN_HOST_MODE_GUEST,
            ..NetworkOptions::default()
        };
        let expected = Config {
            discovery: DiscoveryMode::Off,
            host_mode: HostMode::Guest,
            ..Config::default()
        };
        assert_eq!(config(&options, nothing()), Ok(expected));
    }
}
