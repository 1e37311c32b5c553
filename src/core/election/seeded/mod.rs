//! The seeded strategy.

pub mod paxos;
