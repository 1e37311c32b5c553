//! The time until which the acknowledgements of a majority let a leader lead.

use super::role::{Acknowledged, Contact};
use super::*;

/// "a" leads "b", "c" and "x", and a majority acknowledges it.
fn world() -> World {
    let mut world = World::new(1, &["a", "b", "c"], 1, &["x"]);
    world.start_all();
    world.run(secs(15));
    assert_eq!(world.agreed(), Ok((id("a"), 1)));
    world
}

impl World {
    /// Sets acknowledgements: (voter, time since it showed an answer, time since "a" sent that
    /// answer), in milliseconds.
    fn acknowledged(&mut self, shown: &[(&str, u64, u64)]) {
        let now = self.now;
        let ago = |millis| Time::ZERO + now.since(Time::ZERO + ms(millis));
        let contacts = shown.iter().map(|(name, at, answered_at)| {
            let shown = Acknowledged {
                at: ago(*at),
                answered_at: ago(*answered_at),
            };
            let contact = Contact {
                at: shown.at,
                acknowledged: Some(shown),
            };
            (id(name), contact)
        });
        let contacts: Vec<_> = contacts.collect();
        let seeded = self.station_mut("a").seeded.as_mut().expect("it runs");
        let leader = seeded.leading_mut().expect("it leads");
        leader.contacts = Default::default();
        for (voter, contact) in contacts {
            let _ = leader.contacts.insert(voter, contact);
        }
    }

    fn leads_for(&self) -> Option<Duration> {
        let until = self.member("a").leads_until(self.now)?;
        Some(until.since(self.now))
    }
}

#[test]
fn a_leader_leads_until_the_acknowledgements_of_a_majority_end() {
    let mut world = world();
    // The heartbeat timeout is 2 s, and the lease 2.5 s.
    world.acknowledged(&[("b", 200, 400), ("c", 1500, 1600)]);
    assert_eq!(world.leads_for(), Some(ms(1800)));
    world.acknowledged(&[("c", 1500, 1600), ("x", 0, 0)]);
    assert_eq!(world.leads_for(), Some(ms(500)), "of voters");
    for (itself_in, leads_for) in [(10_000, 500), (600, 500), (500, 1800), (400, 1800)] {
        world.acknowledged(&[("b", 200, 400), ("c", 1500, 1600)]);
        let grace_until = world.now + ms(itself_in);
        let seeded = world.station_mut("a").seeded.as_mut().expect("it runs");
        seeded.grace_until = grace_until;
        assert_eq!(world.leads_for(), Some(ms(leads_for)), "{itself_in}");
    }
}

/// The voter waits for no longer than a TTL after that answer, and then chooses another leader.
#[test]
fn an_acknowledgement_ends_before_the_ttl_of_the_answer_that_it_shows() {
    let mut world = world();
    world.acknowledged(&[("b", 0, 1900)]);
    assert_eq!(world.leads_for(), Some(ms(600)));
    let counted = |after| world.member("a").acknowledged_by(world.now + ms(after));
    assert_eq!((counted(599), counted(600)), (2, 1));
}

#[test]
fn a_new_leader_has_a_heartbeat_timeout_to_be_acknowledged() {
    let mut world = world();
    world.crash("a");
    let mut elected_at = None;
    for _ in 0..1000 {
        world.run(ms(10));
        if world.leaders().is_empty() {
            continue;
        }
        elected_at = Some(world.now);
        break;
    }
    let elected_at = elected_at.expect("votes choose one");
    let leader = world.leaders()[0].to_owned();
    let until = world.member(&leader).leadership().valid_until;
    let until = until.expect("it needs a majority");
    assert!(until.since(elected_at) > ms(1900), "{until:?}");
    assert!(until.since(elected_at) <= ms(2000), "{until:?}");
}

#[test]
fn a_seed_that_leads_alone_leads_without_an_end_until_it_had_a_majority() {
    let mut world = World::new(1, &["a", "b", "c"], 1, &[]);
    world.start("a");
    world.run(secs(15));
    assert_eq!(world.leaders(), ["a"]);
    assert_eq!(world.member("a").leadership().valid_until, None);
    world.start("b");
    world.run(secs(5));
    let until = world.member("a").leadership().valid_until;
    assert!(until.is_some_and(|until| until > world.now));
}

/// The process was suspended: messages that waited for it arrive before its first tick.
#[test]
fn a_leader_that_was_suspended_beyond_its_acknowledgements_leads_no_more_whatever_arrives_first() {
    let world = world();
    let until = world.member("a").leadership().valid_until;
    let until = until.expect("it needs a majority");
    assert!(until > world.now && until <= world.now + ms(2000));
    let before = Time::from_micros(until.as_micros() - 1);
    let claims = |at| {
        let view = &world.station("a").view;
        world.member("a").hello(at, view, at).beat.claim
    };
    assert!(claims(before).is_some());
    assert_eq!(claims(until), None, "nor does its Hello");
    let observed = world.member("a").observation();
    let digest = world.member("a").members.digest(&observed);
    let keep_alive = Based {
        basis: observed,
        writes: 0,
        message: SeededMessage::LeaderKeepAlive {
            digest,
            acked_us: Some(before.as_micros()),
        },
    };
    for (at, leads) in [(before, true), (until, false)] {
        let mut world = self::world();
        world.now = at;
        let message = ElectionInput::Message {
            from: id("b"),
            message: keep_alive.clone(),
        };
        world.input("a", message);
        let leader = world.member("a");
        assert_eq!(leader.leader_token().is_some(), leads);
        assert_eq!(world.leaders().contains(&"a"), leads);
        let (_, shown, _) = world.station("a").leaders.last().expect("it led");
        assert_eq!(shown.is_some(), leads);
    }
}
