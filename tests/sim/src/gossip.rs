//! Rooms that elect by gossip: the common world and faults, with their own properties, bounds and trials.

mod bounds;
mod counts;
mod glance;
mod plan;
pub mod regressions;

pub use counts::Counts;
pub use glance::{Cause, Glance};
pub use plan::{GossipRules, Trial, draw, draw_for};
