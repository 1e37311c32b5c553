//! A relay and its members over loopback.

mod forwarding;
mod limits;
#[cfg(target_os = "linux")]
mod load;
mod member;
mod program;
#[cfg(target_os = "linux")]
mod soak;
