//! Rooms that elect by gossip: the same world and the same faults, with properties, bounds and trials of their own.

mod bounds;
mod counts;
mod glance;
mod plan;
pub mod regressions;

pub use counts::Counts;
pub use glance::{Cause, Glance};
pub use plan::{GossipRules, Trial, draw, draw_for};
