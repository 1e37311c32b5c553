//! Rooms that elect by the seeded strategy: the common world and faults, with their own properties, bounds and trials.

mod bounds;
mod plan;
pub mod regressions;

pub use plan::{SeededPlan, Trial, draw, draw_for};
