//! Registration of the classic callbacks, and their C signatures.

use std::ffi::c_char;
use std::sync::Arc;

use crate::core::id::PeerId;
use crate::default_room;
use crate::dispatch::kind::{self, Handler, Kind};
use crate::dispatch::{ConnectionResult, Incoming, ReconnectStatus};
use crate::ffi::guard::{command, not_open};
use crate::ffi::strings::{IdText, data_pointer};
use crate::snapshot::PeerStatus;

/// ReconnectCallback: the link is lost and the library is dialling the peer again.
pub const MMN_RECONNECT_RETRYING: u8 = 0;
/// ReconnectCallback: the link is back.
pub const MMN_RECONNECT_RETURNED: u8 = 1;
/// ReconnectCallback: the library has given the peer up.
pub const MMN_RECONNECT_GAVE_UP: u8 = 2;

/// Receives messages. `peer` sent the `length` bytes at `data`, which is never NULL, with
/// `msg_type` and `flags`. The rules for threads, order and calls inside are those of
/// MmnEventCallback: ShutdownNetwork is refused inside a callback.
pub type ReceiveCallback = Option<
    extern "C" fn(peer: *const c_char, data: *const u8, length: i32, msg_type: u16, flags: u8),
>;

/// Receives each change of the leader. `leader` is the leader's peer id, "" when there is none.
pub type LeaderChangedCallback = Option<extern "C" fn(leader: *const c_char)>;

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

/// Sets the callback for messages; NULL removes it. When the call returns, the previous callback is
/// not running and never runs again: the call waits for it, unless it is made from inside that
/// callback.
///
/// Until the first registration, messages wait for up to 5 seconds after the room opens, including
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_numbers_are_the_librarys() {
        assert_eq!(ReconnectStatus::Retrying as u8, MMN_RECONNECT_RETRYING);
        assert_eq!(ReconnectStatus::Returned as u8, MMN_RECONNECT_RETURNED);
        assert_eq!(ReconnectStatus::GaveUp as u8, MMN_RECONNECT_GAVE_UP);
    }
}
