//! The pure heart of the library: membership and elections without sockets, clocks or threads.
//!
//! [`node::Node`] is fed with inputs and time and gives outputs; the network driver and the seeded simulator
//! are two users of that one contract. Same inputs and same seed give the same outputs, byte for byte.

/// The targets of this crate's log records begin with it.
pub const LOG_TARGET: &str = env!("CARGO_CRATE_NAME");

pub mod bounded;
pub mod election;
pub mod event;
pub mod id;
pub mod introductions;
pub mod membership;
pub mod node;
pub mod opaque;
mod pace;
pub mod path;
pub mod quorum;
pub mod relay;
pub mod time;
pub mod trace;
pub mod virtual_address;
pub mod wire;
