//! The pure core of the library: membership and elections without sockets, clocks or threads.
//!
//! [`node::Node`] takes inputs with the time and returns outputs. The network driver and the seeded simulator are two
//! users of that contract. Equal inputs and an equal seed give equal outputs, byte for byte.

/// Prefix of the targets of this crate's log records.
pub const LOG_TARGET: &str = env!("CARGO_CRATE_NAME");

pub mod address;
pub mod attempts;
pub mod bounded;
pub mod election;
pub mod event;
pub mod id;
pub mod introductions;
pub mod membership;
pub mod node;
pub mod opaque;
pub mod pace;
pub mod path;
pub mod path_search;
pub mod quorum;
pub mod relay;
pub mod room_time;
pub mod time;
pub mod trace;
pub mod virtual_address;
pub mod wire;
