//! How much one address may cost a browser. Pure.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::core::bounded::BoundedMap;
use crate::core::pace::Pace;
use crate::core::time::Time;

/// Addresses counted one by one, at most; further ones count together.
const MOST: usize = 512;
/// Answers of an address in the list that are checked: as many at once, and then one per interval.
const ANSWERS: (u32, Duration) = (256, Duration::from_millis(8));
/// Answers of an address without a room in the list that are checked.
const FIRST_ANSWERS: (u32, Duration) = (16, Duration::from_millis(250));
/// Answers of all these addresses together that are checked.
const STRANGERS: (u32, Duration) = (512, Duration::from_millis(1));
/// Rooms of one address that may be new.
const NEW_ROOMS: (u32, Duration) = (64, Duration::from_millis(250));
/// Silence after which an address begins anew: its buckets are full again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30);

/// The recent costs of addresses.
#[derive(Debug)]
pub(super) struct Sources {
    each: BoundedMap<Ipv4Addr, Source, MOST>,
    others: Source,
    strangers: Pace,
}

#[derive(Debug)]
struct Source {
    answers: Pace,
    first_answers: Pace,
    new_rooms: Pace,
    seen_at: Time,
}

impl Source {
    fn new(now: Time) -> Self {
        Self {
            answers: Pace::new(now, ANSWERS.0, ANSWERS.1),
            first_answers: Pace::new(now, FIRST_ANSWERS.0, FIRST_ANSWERS.1),
            new_rooms: Pace::new(now, NEW_ROOMS.0, NEW_ROOMS.1),
            seen_at: now,
        }
    }
}

impl Sources {
    pub(super) fn new(now: Time) -> Self {
        Self {
            each: BoundedMap::default(),
            others: Source::new(now),
            strangers: Pace::new(now, STRANGERS.0, STRANGERS.1),
        }
    }

    /// Whether another answer from there is worth a check of its signature. `is_listed`: it has a room in the list.
    pub(super) fn may_answer(&mut self, now: Time, from: Ipv4Addr, is_listed: bool) -> bool {
        let source = self.source(now, from);
        match is_listed {
            true => source.answers.take(now),
            // In this order: one address takes nothing from the others.
            false => source.first_answers.take(now) && self.strangers.take(now),
        }
    }

    /// Whether another room from there may be new.
    pub(super) fn may_have_new_room(&mut self, now: Time, from: Ipv4Addr) -> bool {
        self.source(now, from).new_rooms.take(now)
    }

    /// Forgets addresses that have cost nothing lately.
    pub(super) fn forget(&mut self, now: Time) {
        self.each
            .retain(|_, source| now.since(source.seen_at) < FORGOTTEN_AFTER);
    }

    fn source(&mut self, now: Time, from: Ipv4Addr) -> &mut Source {
        let is_counted =
            self.each.contains_key(&from) || self.each.insert(from, Source::new(now)).is_ok();
        let source = match is_counted {
            true => self.each.get_mut(&from),
            false => None,
        };
        let source = source.unwrap_or(&mut self.others);
        source.seen_at = now;
        source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1000)
    }

    #[test]
    fn an_address_that_floods_takes_nothing_from_another() {
        let mut sources = Sources::new(at(0));
        let (real, liar) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let mut checked = |is_listed| {
            let floods = (0..100_000).filter(|n| sources.may_answer(at(n / 100), liar, is_listed));
            floods.count()
        };
        assert!((18..=20).contains(&checked(false)));
        assert!((380..=385).contains(&checked(true)));
        assert!(sources.may_answer(at(1000), real, false));
        assert!(sources.may_answer(at(1000), real, true));
        let new = (0..1000).filter(|_| sources.may_have_new_room(at(1000), liar));
        assert_eq!(new.count(), 64);
        assert!(sources.may_have_new_room(at(1000), real));
    }

    #[test]
    fn any_number_of_addresses_has_a_bound() {
        let mut sources = Sources::new(at(0));
        let forged = (0..100_000_u32).filter(|n| {
            let from = Ipv4Addr::from(0x0a00_0000 + n);
            sources.may_answer(at(u64::from(*n) / 100), from, false)
        });
        let forged = forged.count();
        assert!(forged <= 512 + 1000, "{forged}");
        assert!(sources.each.len() <= MOST);
        sources.forget(at(40_000));
        assert_eq!(sources.each.len(), 0);
    }
}
