//! Members whose leader an etcd cluster decides: a store in virtual time, and machines that ask it over a network that
//! loses, delays and cuts. Machines run without rooms here, since members say nothing to each other.

mod run;
pub mod store;
pub mod world;

pub use run::{Run, run};
