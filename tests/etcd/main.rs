//! The client of etcd against real servers: one, and clusters of three, on free ports of loopback.

mod client;
mod cluster;
mod example;
mod failures;
mod figures;
mod harness;
mod intervals;
#[path = "../abi/library.rs"]
mod library;
mod member;
mod pausing;
mod processes;
mod relay;
mod requests;
mod secured;
