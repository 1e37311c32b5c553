//! The replicated state of a room: one log of entries beside any election.
//!
//! A leader gathers the newest log of its members, opens a ballot in it and appends what members ask for. An entry is
//! confirmed when a majority of the roster has adopted it: from then on no loss of fewer members undoes it.

pub mod ballot;
pub mod entry;
pub mod event;
pub mod laboratory;
pub mod limits;
mod log;
pub mod replica;
pub mod tables;
pub mod watch;
pub mod wire;
