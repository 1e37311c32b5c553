//! The browsers that have asked a room lately: which are answered, and which receive changes. Pure.

use std::net::SocketAddrV4;
use std::time::Duration;

use super::packet::Nonce;
use crate::core::bounded::BoundedMap;
use crate::core::pace::Pace;
use crate::core::time::Time;

/// Browsers remembered, at most. Further ones are answered, and ask again for changes.
const MOST: usize = 64;
/// Browsers remembered at one address, at most.
const MOST_AT_ONE_ADDRESS: usize = 8;
/// Silence after which a browser is forgotten: three questions are missing.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15);
/// Shortest interval between two packets to a browser.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(250);
/// Answers to browsers that are not remembered: as many at once, and one per interval.
const UNKNOWN_BURST: u32 = 32;
const UNKNOWN_INTERVAL: Duration = Duration::from_millis(50);

/// The browsers that have asked lately.
#[derive(Debug)]
pub(crate) struct Askers {
    known: BoundedMap<SocketAddrV4, Asker, MOST>,
    unknown: Pace,
}

#[derive(Debug, Clone)]
struct Asker {
    nonce: Nonce,
    asked_at: Time,
    sent_at: Option<Time>,
    /// Number of the card that it has.
    card: Option<u64>,
}

impl Askers {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            known: BoundedMap::default(),
            unknown: Pace::new(now, UNKNOWN_BURST, UNKNOWN_INTERVAL),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Takes a question. Returns whether it may be answered now; [`Askers::sent`] follows an answer.
    pub(crate) fn ask(&mut self, now: Time, from: SocketAddrV4, nonce: Nonce) -> bool {
        let asker = Asker {
            nonce,
            asked_at: now,
            sent_at: None,
            card: None,
        };
        if let Some(known) = self.known.get_mut(&from) {
            *known = match known.nonce == nonce {
                true => Asker {
                    asked_at: now,
                    ..known.clone()
                },
                false => Asker {
                    sent_at: known.sent_at,
                    ..asker
                },
            };
            return known.may_receive(now);
        }
        let at_its_address = self.known.keys().filter(|asker| asker.ip() == from.ip());
        let is_remembered =
            at_its_address.count() < MOST_AT_ONE_ADDRESS && self.known.insert(from, asker).is_ok();
        is_remembered || self.unknown.take(now)
    }

    /// Card `number` was sent to a browser.
    pub(crate) fn sent(&mut self, now: Time, to: SocketAddrV4, number: u64) {
        if let Some(asker) = self.known.get_mut(&to) {
            asker.sent_at = Some(now);
            asker.card = Some(number);
        }
    }

    /// Forgets browsers that no longer ask.
    pub(crate) fn forget(&mut self, now: Time) {
        self.known
            .retain(|_, asker| now.since(asker.asked_at) < FORGOTTEN_AFTER);
    }

    /// The browsers that do not have card `number` and may receive it now.
    pub(crate) fn behind(&self, now: Time, number: u64) -> Vec<(SocketAddrV4, Nonce)> {
        let behind = self
            .known
            .iter()
            .filter(|(_, asker)| asker.card != Some(number) && asker.may_receive(now));
        behind.map(|(at, asker)| (*at, asker.nonce)).collect()
    }

    /// The browsers that have a card.
    pub(crate) fn holders(&self) -> Vec<(SocketAddrV4, Nonce)> {
        let holders = self.known.iter().filter(|(_, asker)| asker.card.is_some());
        holders.map(|(at, asker)| (*at, asker.nonce)).collect()
    }

    /// No browser has a card any more.
    pub(crate) fn forget_cards(&mut self) {
        for (_, asker) in self.known.iter_mut() {
            asker.card = None;
        }
    }
}

impl Asker {
    fn may_receive(&self, now: Time) -> bool {
        self.sent_at
            .is_none_or(|sent_at| now.since(sent_at) >= SHORTEST_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_micros(ms * 1000)
    }

    fn browser(ip: u8, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new([10, 0, 0, ip].into(), port)
    }

    #[test]
    fn a_browser_is_answered_four_times_a_second_at_most() {
        let mut askers = Askers::new(at(0));
        let answered = (0..2000).filter(|ms| {
            let may = askers.ask(at(*ms), browser(1, 1), [1; 8]);
            if may {
                askers.sent(at(*ms), browser(1, 1), 5);
            }
            may
        });
        assert_eq!(answered.count(), 8);
    }

    #[test]
    fn a_browser_receives_each_change_until_it_no_longer_asks() {
        let mut askers = Askers::new(at(0));
        let it = browser(1, 1);
        assert!(askers.ask(at(0), it, [1; 8]));
        assert_eq!(askers.holders(), []);
        assert_eq!(askers.behind(at(0), 5), [(it, [1; 8])]);
        askers.sent(at(0), it, 5);
        assert_eq!(askers.behind(at(1000), 5), []);
        assert_eq!(askers.behind(at(100), 6), []);
        assert_eq!(askers.behind(at(250), 6), [(it, [1; 8])]);
        assert_eq!(askers.holders(), [(it, [1; 8])]);
        askers.forget(at(14_999));
        assert!(!askers.is_empty());
        askers.forget(at(15_000));
        assert!(askers.is_empty());
    }

    #[test]
    fn a_browser_that_began_anew_has_nothing() {
        let mut askers = Askers::new(at(0));
        let it = browser(1, 1);
        askers.ask(at(0), it, [1; 8]);
        askers.sent(at(0), it, 5);
        askers.ask(at(500), it, [2; 8]);
        assert_eq!(askers.behind(at(500), 5), [(it, [2; 8])]);
    }

    #[test]
    fn a_flood_of_questions_takes_no_answer_from_a_browser_that_is_known() {
        let mut askers = Askers::new(at(0));
        let it = browser(1, 1);
        assert!(askers.ask(at(0), it, [1; 8]));
        askers.sent(at(0), it, 5);
        let mut answered = 0;
        for flood in 0..60_000_u16 {
            let from = browser(2 + (flood % 200) as u8, 1000 + flood / 8);
            let now = at(u64::from(flood) / 60);
            if askers.ask(now, from, [0; 8]) {
                askers.sent(now, from, 5);
                answered += 1;
            }
        }
        // The places, and within a second what everybody shares.
        assert!(answered <= MOST + 32 + 20 + 64 * 4, "{answered}");
        assert!(askers.ask(at(1000), it, [1; 8]));
        assert_eq!(askers.known.len(), MOST);
        let of_one = askers
            .known
            .keys()
            .filter(|asker| asker.ip().octets()[3] == 7);
        assert!(of_one.count() <= MOST_AT_ONE_ADDRESS);
    }
}
