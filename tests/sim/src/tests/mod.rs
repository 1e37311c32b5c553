//! What rooms do: named situations, and seeds.

mod bad_members;
mod ballots;
mod bounds;
mod ends;
mod entry;
mod etcd;
mod explorer;
mod found;
mod gossip;
mod guards;
mod guards_explored;
mod handshake;
mod hosted;
mod hosts;
mod laboratory;
mod liars;
mod namesakes;
mod rooms;
mod rows;
mod runner;
mod scenarios;
mod seeded;
mod seeds;
mod set_leader;
mod statics;
mod unbanning;
