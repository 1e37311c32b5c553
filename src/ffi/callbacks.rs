//! Registration of the classic callbacks, and their C signatures.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use super::guard::{command, not_open};
use crate::core::id::{MAX_PEER_ID_BYTES, PeerId};
use crate::default_room;
use crate::dispatch::kind::{self, Handler, Kind};
use crate::dispatch::{ConnectionResult, Incoming, ReconnectStatus};
use crate::snapshot::PeerStatus;

/// Receives messages. `peer` sent the `length` bytes at `data`, which is never NULL, with
/// `msg_type` and `flags`. Callbacks run one at a time and in order, on a thread of the library or,
/// in poll mode, on the thread that calls PollEvents. Their arguments are valid during the call
/// only. A callback may call every function except ShutdownNetwork and PollEvents, and must not
/// throw.
pub type ReceiveCallback = Option<
    extern "C" fn(peer: *const c_char, data: *const u8, length: i32, msg_type: u16, flags: u8),
>;

/// Receives each change of the leader. `leader` is the leader's peer id, "" when there is none.
pub type LeaderChangedCallback = Option<extern "C" fn(leader: *const c_char)>;

/// Receives 1 when this node becomes the leader and 0 when it stops leading, alternately.
pub type LeadershipCallback = Option<extern "C" fn(is_leader: u8)>;

/// Receives connects and losses. `status` is MMN_PEER_CONNECTED or MMN_PEER_DISCONNECTED.
pub type PeerStatusCallback = Option<extern "C" fn(peer: *const c_char, status: i32)>;

/// Receives the result of a ConnectToPeer. `addr` is the address as passed to that call. `success`
/// is 1 when the peer is connected, else 0. `code` is MMN_OK or the reason (MMN_ALREADY_CONNECTED
/// comes with success 1).
pub type ConnectionResultCallback =
    Option<extern "C" fn(addr: *const c_char, success: u8, code: i32)>;

/// Receives the progress of reconnection to lost peers, while automatic reconnection is on.
/// `status` is MMN_RECONNECT_RETRYING, MMN_RECONNECT_RETURNED or MMN_RECONNECT_GAVE_UP. The
/// PeerStatus callback for the same event runs first.
pub type ReconnectCallback = Option<extern "C" fn(peer: *const c_char, status: u8)>;

/// Releases the `user_data` registered with a callback.
pub type DropCallback = Option<extern "C" fn(user_data: *mut c_void)>;

/// Sets the callback for messages; NULL removes it. When the call returns, the previous callback is
/// not running and never runs again: the call waits for it, unless it is made from inside that
/// callback.
///
/// Until the first registration, messages wait for up to 5 seconds after initialization, including
/// messages that this host sends to itself. After that the library discards messages that find no
/// callback.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn RegisterReceiveCallback(callback: ReceiveCallback) -> i32 {
    let handler = callback.map(|callback| {
        Arc::new(move |message: &Incoming| {
            let data = data_pointer(&message.payload);
            // The sender checked that the length fits into 31 bits.
            let length = i32::try_from(message.payload.len()).unwrap_or(i32::MAX);
            let peer = IdText::new(&message.from);
            callback(peer.as_ptr(), data, length, message.msg_type, message.flags);
        }) as _
    });
    register::<kind::Receive>("RegisterReceiveCallback", handler)
}

/// Sets the callback for changes of the leader; NULL removes it. It replaces the previous one as
/// RegisterReceiveCallback does. The new callback first receives the present leader, if one is
/// known.
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

/// Sets the callback for whether this node leads; NULL removes it. It replaces the previous one as
/// RegisterReceiveCallback does. The new callback first receives 1 if this node leads. From then on
/// it receives each loss and each gain once, alternately, after the LeaderChanged callback of the
/// same change. It does not receive a leadership that ends before the callback could run.
///
/// If the callback directly replaces another, and this node lost its leadership between the two,
/// the new one first receives that loss: 0.
///
/// Returns MMN_OK or MMN_NOT_INITIALIZED.
#[unsafe(no_mangle)]
pub extern "C" fn RegisterLeadershipCallback(callback: LeadershipCallback) -> i32 {
    let handler = callback.map(|callback| Arc::new(move |leads| callback(u8::from(leads))) as _);
    register::<kind::Leadership>("RegisterLeadershipCallback", handler)
}

/// Sets the callback for connects and losses; NULL removes it. It replaces the previous one as
/// RegisterReceiveCallback does. The new callback first receives every connected peer.
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

/// Sets the callback for the results of ConnectToPeer; NULL removes it. It replaces the previous
/// one as RegisterReceiveCallback does. The library discards results that find no callback.
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

/// Sets the callback for the reconnection of lost peers; NULL removes it. It replaces the previous
/// one as RegisterReceiveCallback does.
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
        default_room::room()
            .ok_or_else(|| not_open(0))?
            .dispatch()
            .register::<K>(handler);
        Ok(())
    })
}

/// The address of `data`: C asks for a valid pointer even where it copies nothing.
pub(super) fn data_pointer(data: &[u8]) -> *const u8 {
    match data {
        [] => c"".as_ptr().cast(),
        bytes => bytes.as_ptr(),
    }
}

/// A peer id with the NUL that C needs, without an allocation for every message.
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
