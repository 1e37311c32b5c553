//! Rooms in virtual time: the laboratory of the elections.
//!
//! The simulator is one of the two users of the core's contract (the driver in `src/room/` is the other): it feeds real
//! [`Node`](room_core::node::Node)s with messages, faults and time, and checks their outputs and state after every input. One
//! `u64` decides a whole run.

pub mod bounds;
pub mod chaos;
pub mod checks;
pub mod clock;
pub mod decoded;
pub mod etcd;
pub mod explorer;
pub mod fingerprint;
pub mod gossip;
pub mod harm;
pub mod held;
pub mod liars;
pub mod links;
pub mod namesakes;
pub mod page;
pub mod paths;
pub mod plan;
pub mod profile;
pub mod record;
pub mod regressions;
pub mod seeded;
pub mod shrink;
pub mod sometimes;
pub mod stability;
pub mod statics;
pub mod trace;
pub mod wider;
pub mod world;

#[cfg(test)]
mod tests;
