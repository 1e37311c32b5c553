//! Rooms that elect by the seeded strategy: the same world and the same faults, with properties, bounds and trials of
//! their own.

mod bounds;
mod plan;
pub mod regressions;

pub use plan::{SeededPlan, Trial, draw, draw_for};
