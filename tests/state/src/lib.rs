//! Rooms whose members replicate a log while everything around it works against them: any member may be named leader at any
//! time, links break and come back, frames wait as long as they like, processes die and start anew.
//!
//! What the log promises is checked after every step ([`ghosts`]). A run is determined by its seed.

pub mod case;
mod counters;
pub mod explorer;
pub mod ghosts;
pub mod hostile;
pub mod hosts;
pub mod sometimes;
pub mod world;

#[cfg(test)]
mod stories;
#[cfg(test)]
mod tests;
