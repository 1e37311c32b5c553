//! Rooms in which some pairs have no direct path: walls that open when both ends dial at the same time, or never; members that
//! carry packets, drop them one way, or carry for no member; addresses that change; members of the version before; and liars that
//! name the addresses of others.

mod counts;
mod ends;
mod lies;
mod plan;
pub mod regressions;

pub use counts::Counts;
pub use lies::AddressLie;
pub use plan::{PathsPlan, draw};
