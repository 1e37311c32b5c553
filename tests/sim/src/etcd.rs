//! Members whose leader an etcd cluster decides: a store in virtual time, and machines whose requests cross a network that loses,
//! delays and cuts. Machines run without rooms here, since members send each other nothing.

mod run;
pub mod store;
pub mod world;

pub use run::{Run, run};
