//! How long a leader's openings may wait for each peer in vain, and how often a peer may cause one. A peer has one budget for all
//! its links and processes.

use super::*;
use crate::limits::{MAX_MEMBERS, WAIT_BUDGET};

/// One member makes a leader open again at once, and then after waits that double.
const BETWEEN_OPENINGS: Duration = Duration::from_secs(5);
const LONGEST_BETWEEN_OPENINGS: Duration = Duration::from_secs(320);
/// A peer with a new link waits at most this long: it may have been in another part of the room meanwhile.
const LONGEST_AFTER_LINKING: Duration = Duration::from_secs(20);
/// A peer that has cost nothing for this long begins anew.
const FORGOTTEN_AFTER: Duration = LONGEST_BETWEEN_OPENINGS;
/// Each wait in vain costs this much at least: it may have interrupted the fetch of another log.
const LEAST_COST: Duration = Duration::from_secs(1);

/// The budgets of all peers; it keeps [`MAX_MEMBERS`] that are not whole.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitBudgets {
    costs: BTreeMap<PeerId, Cost>,
}

/// The time that a peer has cost this leader.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// When it may make this leader open again, and how long it waits after that.
    next_opening: Time,
    wait: Duration,
    /// How long openings have waited for it in vain.
    wasted: Duration,
    /// When it last cost something.
    at: Time,
}

impl WaitBudgets {
    /// When a peer may make this leader open again.
    pub(super) fn next_opening(&self, peer: &PeerId) -> Time {
        self.costs
            .get(peer)
            .map_or(Time::ZERO, |cost| cost.next_opening)
    }

    /// A peer has made this leader open again.
    pub(super) fn note_opening(&mut self, now: Time, peer: &PeerId) {
        let cost = self.cost(now, peer);
        cost.next_opening = now + cost.wait;
        cost.wait = (2 * cost.wait).min(LONGEST_BETWEEN_OPENINGS);
    }

    /// A peer has a new link.
    pub(super) fn note_linked(&mut self, now: Time, peer: &PeerId) {
        if let Some(cost) = self.costs.get_mut(peer) {
            cost.next_opening = cost.next_opening.min(now + LONGEST_AFTER_LINKING);
        }
    }

    /// An opening has waited for a peer in vain.
    pub(super) fn note_wasted(&mut self, now: Time, peer: &PeerId, time: Duration) {
        let cost = self.cost(now, peer);
        cost.wasted += time.max(LEAST_COST);
    }

    /// How long openings may still wait for a peer.
    pub(super) fn left(&self, now: Time, peer: &PeerId) -> Duration {
        let cost = self.costs.get(peer).filter(|cost| !cost.is_old(now));
        let wasted = cost.map_or(Duration::ZERO, |cost| cost.wasted);
        WAIT_BUDGET.saturating_sub(wasted)
    }

    /// Openings wait for all peers anew, because without one of them none succeeds.
    pub(super) fn forgive(&mut self) {
        for cost in self.costs.values_mut() {
            cost.wasted = Duration::ZERO;
        }
    }

    /// All peers begin anew.
    pub(super) fn clear(&mut self) {
        self.costs.clear();
    }

    fn cost(&mut self, now: Time, peer: &PeerId) -> &mut Cost {
        self.costs.retain(|_, cost| !cost.is_old(now));
        if self.costs.len() >= MAX_MEMBERS && !self.costs.contains_key(peer) {
            let oldest = self.costs.iter().min_by_key(|(_, cost)| cost.at);
            let oldest = oldest.map(|(peer, _)| peer.clone());
            oldest.and_then(|oldest| self.costs.remove(&oldest));
        }
        let cost = self.costs.entry(peer.clone()).or_insert(Cost {
            next_opening: Time::ZERO,
            wait: BETWEEN_OPENINGS,
            wasted: Duration::ZERO,
            at: now,
        });
        cost.at = now;
        cost
    }
}

impl Cost {
    fn is_old(&self, now: Time) -> bool {
        now.since(self.at.max(self.next_opening)) >= FORGOTTEN_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: usize) -> PeerId {
        PeerId::new(&format!("m{number}")).expect("a name")
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_peer_that_costs_nothing_for_long_begins_anew() {
        let mut budgets = WaitBudgets::default();
        budgets.note_wasted(at(1), &peer(1), WAIT_BUDGET);
        let end = at(1) + FORGOTTEN_AFTER;
        assert_eq!(budgets.left(at(320), &peer(1)), Duration::ZERO);
        assert_eq!(budgets.left(end, &peer(1)), WAIT_BUDGET);
        budgets.note_wasted(end, &peer(1), Duration::ZERO);
        let left = WAIT_BUDGET.saturating_sub(LEAST_COST);
        assert_eq!(
            budgets.left(end, &peer(1)),
            left,
            "each time costs something"
        );
    }

    #[test]
    fn a_link_shortens_the_wait_for_another_opening_but_does_not_end_it() {
        let mut budgets = WaitBudgets::default();
        for _ in 0..10 {
            budgets.note_opening(at(1), &peer(1));
        }
        assert_eq!(budgets.next_opening(&peer(1)), at(321));
        budgets.note_linked(at(2), &peer(1));
        assert_eq!(budgets.next_opening(&peer(1)), at(22));
        budgets.note_linked(at(20), &peer(1));
        assert_eq!(budgets.next_opening(&peer(1)), at(22));
    }

    #[test]
    fn it_keeps_a_bounded_number_of_peers_and_forgets_the_one_that_was_quiet_longest() {
        let mut budgets = WaitBudgets::default();
        for number in 0..=MAX_MEMBERS {
            let now = at(number as u64 / 10);
            budgets.note_wasted(now, &peer(number), WAIT_BUDGET);
        }
        let (now, full) = (at(30), WAIT_BUDGET);
        assert_eq!(budgets.costs.len(), MAX_MEMBERS);
        assert_eq!(budgets.left(now, &peer(0)), full);
        assert_eq!(budgets.left(now, &peer(1)), Duration::ZERO);
        assert_eq!(budgets.left(now, &peer(MAX_MEMBERS)), Duration::ZERO);
    }
}
