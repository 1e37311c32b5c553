//! Registration of the classic callbacks, and their C signatures.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use super::guard::{command, room};
use crate::core::id::{MAX_PEER_ID_BYTES, PeerId};
use crate::dispatch::kind::{self, Handler, Kind};
use crate::dispatch::{ConnectionResult, Incoming, ReconnectStatus};
use crate::snapshot::PeerStatus;

/// Takes messages. `peer` sent `length` bytes at `data` (never NULL); `msg_type` and `flags` are the sender's.
/// All callbacks run one at a time and in order, on a thread of the library or, in poll mode, on the one that
/// calls PollEvents; their arguments are valid during the call only. A callback may call every function but
/// ShutdownNetwork and PollEvents, and must not throw.
pub type ReceiveCallback = Option<
    extern "C" fn(peer: *const c_char, data: *const u8, length: i32, msg_type: u16, flags: u8),
>;

/// Takes changes of the leader. `leader` is its peer id, "" when there is none.
pub type LeaderChangedCallback = Option<extern "C" fn(leader: *const c_char)>;

/// Takes whether this node leads: 1 when it leads from here on, 0 when it leads no longer, in turn.
pub type LeadershipCallback = Option<extern "C" fn(is_leader: u8)>;

/// Takes connections and losses. `status` is MMN_PEER_CONNECTED or MMN_PEER_DISCONNECTED.
pub type PeerStatusCallback = Option<extern "C" fn(peer: *const c_char, status: i32)>;

/// Takes the result of a ConnectToPeer. `addr` is as it was given there; `success` is 1 when the peer is
/// connected, else 0; `code` is MMN_OK, or says why (MMN_ALREADY_CONNECTED comes with success 1).
pub type ConnectionResultCallback =
    Option<extern "C" fn(addr: *const c_char, success: u8, code: i32)>;

/// Takes what becomes of lost peers, where lost peers are dialled again. `status` is MMN_RECONNECT_RETRYING,
/// MMN_RECONNECT_RETURNED or MMN_RECONNECT_GAVE_UP. The PeerStatus callback of the same event comes first.
pub type ReconnectCallback = Option<extern "C" fn(peer: *const c_char, status: u8)>;

/// Releases what was registered with a callback.
pub type DropCallback = Option<extern "C" fn(user_data: *mut c_void)>;

/// Sets the callback for messages; NULL removes it. When the call returns, the old callback is not running
/// (unless this is called from inside it) and never runs again; a running one is waited for.
///
/// Messages that arrive before the first registration wait for it, for 5 seconds from the initialization on, and so do
/// those that this host sends to itself. After that, messages that find no callback are discarded.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn RegisterReceiveCallback(callback: ReceiveCallback) -> i32 {
    let handler = callback.map(|callback| {
        Arc::new(move |message: &Incoming| {
            let data = data_pointer(&message.payload);
            // Longer ones do not pass the sender's check of a length in 31 bits.
            let length = i32::try_from(message.payload.len()).unwrap_or(i32::MAX);
            let peer = IdText::new(&message.from);
            callback(peer.as_ptr(), data, length, message.msg_type, message.flags);
        }) as _
    });
    register::<kind::Receive>("RegisterReceiveCallback", handler)
}

/// Sets the callback for changes of the leader; NULL removes it. The old one as with RegisterReceiveCallback.
/// The new one is first told the present leader, where one is known.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn RegisterLeaderChangedCallback(callback: LeaderChangedCallback) -> i32 {
    let handler = callback.map(|callback| {
        Arc::new(move |leader: Option<&PeerId>| match leader {
            Some(leader) => callback(IdText::new(leader).as_ptr()),
            None => callback(c"".as_ptr()),
        }) as _
    });
    register::<kind::LeaderChanged>("RegisterLeaderChangedCallback", handler)
}

/// Sets the callback for whether this node leads; NULL removes it. The old one as with RegisterReceiveCallback.
/// The new one is first told 1, where this node leads at present. From there on it is told each loss and each gain
/// once, in turn, and after the LeaderChanged callback of the same change. A leadership that ended before the
/// application could be told of it is not told at all.
///
/// Where the callback replaces another one directly, and this node lost its leadership between the two, it is first told
/// that: 0.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn RegisterLeadershipCallback(callback: LeadershipCallback) -> i32 {
    let handler = callback.map(|callback| Arc::new(move |leads| callback(u8::from(leads))) as _);
    register::<kind::Leadership>("RegisterLeadershipCallback", handler)
}

/// Sets the callback for connections and losses; NULL removes it. The old one as with RegisterReceiveCallback.
/// The new one is first told of every connected peer.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn RegisterPeerStatusCallback(callback: PeerStatusCallback) -> i32 {
    let handler = callback.map(|callback| {
        Arc::new(move |(peer, status): (&PeerId, PeerStatus)| {
            callback(IdText::new(peer).as_ptr(), status as i32);
        }) as _
    });
    register::<kind::PeerStatus>("RegisterPeerStatusCallback", handler)
}

/// Sets the callback for the results of ConnectToPeer; NULL removes it. The old one as with
/// RegisterReceiveCallback. Results that find no callback are discarded.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn RegisterConnectionResultCallback(callback: ConnectionResultCallback) -> i32 {
    let handler = callback.map(|callback| {
        Arc::new(move |result: &ConnectionResult| {
            let mut addr = Vec::with_capacity(result.target.len() + 1);
            addr.extend_from_slice(result.target.as_bytes());
            addr.push(0);
            callback(addr.as_ptr().cast(), result.success.into(), result.code);
        }) as _
    });
    register::<kind::ConnectionResult>("RegisterConnectionResultCallback", handler)
}

/// Sets the callback for what becomes of lost peers; NULL removes it. The old one as with
/// RegisterReceiveCallback.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn RegisterReconnectCallback(callback: ReconnectCallback) -> i32 {
    let handler = callback.map(|callback| {
        Arc::new(move |(peer, status): (&PeerId, ReconnectStatus)| {
            callback(IdText::new(peer).as_ptr(), status as u8);
        }) as _
    });
    register::<kind::Reconnect>("RegisterReconnectCallback", handler)
}

fn register<K: Kind>(function: &str, handler: Option<Handler<K>>) -> i32 {
    command(function, || {
        room(function)?.dispatch().register::<K>(handler);
        Ok(())
    })
}

/// Where `data` begins: C asks for a valid pointer even where it copies nothing.
pub(super) fn data_pointer(data: &[u8]) -> *const u8 {
    match data {
        [] => c"".as_ptr().cast(),
        bytes => bytes.as_ptr(),
    }
}

/// A peer id with the NUL that C wants, without an allocation for every message.
pub(super) struct IdText([u8; MAX_PEER_ID_BYTES + 1]);

impl IdText {
    pub(super) fn new(id: &PeerId) -> Self {
        let mut text = [0; MAX_PEER_ID_BYTES + 1];
        let id = id.as_str().as_bytes();
        text[..id.len()].copy_from_slice(id);
        Self(text)
    }

    pub(super) fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }
}
