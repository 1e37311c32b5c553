//! What rooms do: named situations, and seeds.

mod bad_members;
mod found;
mod laboratory;
mod rooms;
mod rows;
mod scenarios;
mod seeds;
mod set_leader;
