//! Parts of rooms with the seeded strategy only: places of voters and of seeds, which are dialled by their addresses.

use std::collections::BTreeSet;
use std::sync::Arc;

use room_core::election::seeded::Seeding;

use super::World;

/// The voters, and the seeds through which members enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeededPlaces {
    pub voters: BTreeSet<usize>,
    /// Some of the voters.
    pub seeds: BTreeSet<usize>,
}

impl World {
    /// The seeding of a place's process.
    pub(super) fn seeding(&self, slot: usize) -> Seeding {
        let Some(places) = &self.settings.seeded else {
            return Seeding::default();
        };
        let address = |slot: &usize| self.slots[*slot].address.to_string();
        Seeding {
            seeds: places
                .seeds
                .iter()
                .map(|seed| address(seed).into())
                .collect(),
            is_seed: places.seeds.contains(&slot),
            address: address(&slot),
        }
    }

    pub(super) fn dial_seeds(&mut self, slot: usize, seeds: &[Arc<str>]) {
        let is_named = |place: usize| {
            let address = self.slots[place].address.to_string();
            seeds.iter().any(|seed| **seed == address)
        };
        let places: Vec<usize> = (0..self.slots.len())
            .filter(|place| is_named(*place))
            .collect();
        for place in places {
            self.connect(slot, place);
        }
    }
}
