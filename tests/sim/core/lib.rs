//! `src/core`, compiled for the simulator: without sockets, and with a switch for each guard, which the library has not.
//!
//! `cargo test -p room_core` runs the core's unit tests without building the rest of the library.

// What only the rest of the library uses.
#![allow(dead_code, unused_imports)]

#[path = "../../../src/core/mod.rs"]
mod core;

pub use self::core::*;
