//! Wild input for every decoder, and the properties that must hold for any input: one function a target.
//!
//! `make fuzz` runs them under libFuzzer (`fuzz/`), which needs the feature `fuzzing`. `make test` runs them over the
//! checked-in inputs of `fuzz/corpus/` and over mutations of these. Other code should not use this module: it may
//! change with every version.

// Only the tests make inputs; the fuzzer brings its own.
#![cfg_attr(not(test), allow(dead_code))]

mod chance;
mod decoders;
mod node;
#[cfg(test)]
mod state_frames;
pub(crate) mod wild;

pub(crate) use chance::Chance;
pub use decoders::{
    card, compression, control_frame, datagram, discovery, hello, hello_ack, ids, lane, relay,
    relay_frame, state_file, state_frame, target,
};
pub use node::node;

/// Settings of a room as a host passes them.
pub fn options(bytes: &[u8]) {
    crate::ffi::options::check(bytes);
}

/// Calls of the C ABI.
pub fn abi(bytes: &[u8]) {
    crate::ffi::sequences::check(bytes);
}

/// Frames and parts of transfers, with what a host does meanwhile.
pub fn transfer(bytes: &[u8]) {
    crate::transfers::check::check(bytes);
}

/// A target's name, as in `fuzz/fuzz_targets/`, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("abi", abi),
    ("card", card),
    ("control_frame", control_frame),
    ("datagram", datagram),
    ("discovery", discovery),
    ("hello", hello),
    ("hello_ack", hello_ack),
    ("ids", ids),
    ("lane", lane),
    ("node", node),
    ("options", options),
    ("compression", compression),
    ("relay", relay),
    ("relay_frame", relay_frame),
    ("state_file", state_file),
    ("state_frame", state_frame),
    ("target", target),
    ("transfer", transfer),
];

#[cfg(test)]
mod tests;
