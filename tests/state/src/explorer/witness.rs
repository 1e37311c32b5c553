//! What no member knows, by number: the ghosts, and logs that were compared.

use std::collections::{HashMap, HashSet};

use room_state::replica::Replica;

use super::members::fingerprint;
use crate::ghosts::Ghosts;

/// See the module's text.
#[derive(Default)]
pub(super) struct Witness {
    ghosts: Vec<Ghosts>,
    numbers: HashMap<u128, u32>,
    looks: HashMap<(u32, usize, u32), Result<u32, String>>,
    compared: HashSet<(u32, u32)>,
}

impl Witness {
    /// The number of the ghosts.
    pub(super) fn number(&mut self, ghosts: Ghosts) -> u32 {
        let next = u32::try_from(self.ghosts.len()).expect("fewer ghosts");
        let number = *self.numbers.entry(fingerprint(&ghosts)).or_insert(next);
        if number == next {
            self.ghosts.push(ghosts);
        }
        number
    }

    pub(super) fn get(&self, number: u32) -> &Ghosts {
        &self.ghosts[number as usize]
    }

    /// The ghosts look at a member.
    pub(super) fn look(
        &mut self,
        ghosts: u32,
        index: usize,
        member: u32,
        replica: &Replica,
    ) -> Result<u32, String> {
        let key = (ghosts, index, member);
        if let Some(known) = self.looks.get(&key) {
            return known.clone();
        }
        let mut after = self.get(ghosts).clone();
        let looked = after.look(index, replica);
        let looked = looked.map(|()| self.number(after));
        self.looks.insert(key, looked.clone());
        looked
    }

    /// Logs with an entry of one place are equal up to it; and a member that has adopted a ballot has its opening.
    pub(super) fn compare(
        &mut self,
        (one, replica): (u32, &Replica),
        (other, there): (u32, &Replica),
    ) -> Result<(), String> {
        if !self.compared.insert((one, other)) {
            return Ok(());
        }
        let has_opening = replica.adopted().is_none_or(|ballot| {
            let mut openings = replica.tables().openings();
            openings.any(|opening| opening.ballot == *ballot)
        });
        if !has_opening {
            return Err(format!(
                "{} has adopted {:?} without its opening",
                replica.me().peer,
                replica.adopted()
            ));
        }
        let ballot = |replica: &Replica, at| replica.entry(at).map(|entry| entry.ballot.clone());
        let last = replica.index().min(there.index());
        let is_shared = |at: &u64| ballot(replica, *at) == ballot(there, *at);
        let shared = (1..=last).rev().find(is_shared).unwrap_or(0);
        let differs = |at: &u64| replica.entry(*at) != there.entry(*at);
        match (1..=shared).find(differs) {
            Some(at) => Err(format!(
                "entry {at} is {:?} at {} and {:?} at {}, and entry {shared} has one place",
                replica.entry(at),
                replica.me().peer,
                there.entry(at),
                there.me().peer
            )),
            None => Ok(()),
        }
    }
}
