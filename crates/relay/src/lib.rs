//! A relay for rooms of `meta_mystia_network`.
//!
//! Members that cannot reach each other enter a relay with a number that follows from their room's code. The relay names their
//! keys to each other, and forwards the packets of the encrypted links between them. It reads none of their messages, and admits
//! no process to a room.

mod accepting;
mod ending;
pub mod figures;
pub mod files;
mod frames;
mod limiter;
mod link;
pub mod log;
mod metrics;
mod networks;
mod quota;
mod relay;
mod rooms;
mod server;
mod udp;
mod uplink;

pub use relay::{Relay, Settings, StartError};
