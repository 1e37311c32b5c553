//! Rooms in which some pairs have no direct path: walls that open when both ends dial at the same time, or never; members that
//! carry packets, drop them one way, or carry for no member; addresses that change; members of the version before; and liars that
//! name the addresses of others. Some rooms have relays, too, which fall, return, drop and lie.

mod counts;
mod ends;
mod lies;
mod plan;
pub mod regressions;
mod restarts;

pub use counts::{Counts, RelayCounts};
pub use lies::{AddressLie, RelayLie};
pub use plan::{PathsPlan, draw, draw_with_relays};
