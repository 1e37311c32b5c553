//! The C ABI: exported functions by topic, and the only `unsafe` of the library.
//!
//! There is no logic here. Every function checks its arguments, asks the room and translates the answer, inside a guard
//! that stops panics. The header `include/meta_mystia_network.h` and the generated parts of the bindings come from
//! these files, in the order in which `build.rs` lists them. The doc comments become the header's documentation.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "the header gives defaults in brackets, which rustdoc takes for links"
)]

pub mod browse;
#[cfg(feature = "classic")]
pub mod classic;
pub mod codes;
pub mod errors;
pub mod etcd;
pub mod events;
pub mod gossip;
pub mod identity;
pub mod leader;
pub mod lifecycle;
pub mod logs;
pub mod members;
pub mod options;
pub mod peers;
pub mod room_code;
pub mod seeded;
pub mod send;
pub mod simulation;
pub mod state;
pub mod stats;
pub mod transfers;
pub mod values;
pub mod version;

mod arguments;
mod failure;
mod fork;
mod growing;
mod guard;
mod module;
#[cfg(all(any(test, feature = "fuzzing"), feature = "classic"))]
pub(crate) mod sequences;
mod strings;
mod user_data;
