//! `meta_mystia_network`: one room for the players of a game.
//!
//! Every player's process joins one room: encrypted QUIC links to the other players, live membership with round-trip
//! times, messages, and one agreed leader, with host migration when the leader goes. Games use it through the C ABI in
//! `include/meta_mystia_network.h`; `docs/architecture.md` describes how the parts fit.

/// The crate of `Bytes`, the type of messages' payloads.
pub use bytes;
/// Membership and elections.
pub use room_core as core;
/// The log of a room's state.
pub use room_state as state;

pub mod browser;
pub mod clock;
pub mod config;
mod current_room;
pub mod default_room;
pub mod dispatch;
pub mod error;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod ffi;
mod fork;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod glance;
pub mod gossip;
mod lent;
mod logging;
mod net;
mod quoted;
pub mod registry;
pub mod room;
pub mod room_code;
pub mod simulated;
pub mod snapshot;
pub mod target;
mod transfers;
