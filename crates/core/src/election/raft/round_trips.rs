//! Measured round trips to voters.

use super::{View, Voter};
use crate::time::Duration;

/// Assumed round trip of a link that is not measured yet.
pub(super) const UNKNOWN_RTT: Duration = Duration::from_millis(100);

/// The longest round trip to a voter.
pub(super) fn slowest_rtt(view: &View) -> Duration {
    slowest_of(view.eligible().map(|(_, voter)| voter))
}

/// The longest round trip to one of these peers.
pub(super) fn slowest_of<'a>(peers: impl Iterator<Item = &'a Voter>) -> Duration {
    peers
        .map(|peer| peer.rtt.unwrap_or(UNKNOWN_RTT))
        .max()
        .unwrap_or(UNKNOWN_RTT)
}

/// The mean of the measured round trips to voters; zero when none is measured.
pub(super) fn mean_rtt(view: &View) -> Duration {
    let measured: Vec<_> = view.eligible().filter_map(|(_, voter)| voter.rtt).collect();
    let count = u32::try_from(measured.len()).unwrap_or(u32::MAX).max(1);
    measured.into_iter().sum::<Duration>() / count
}
