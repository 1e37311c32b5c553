//! T22: two members dial each other at once. In every order of arrivals one link remains, and both ends keep that one.

use std::collections::BTreeSet;

use room_core::node::Event;
use room_core::time::Duration;

use crate::plan::Hosts;
use crate::trace::Trace;
use crate::world::{Settings, World};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The second dial begins `later` than the first, which is that of `first`; each direction takes this long. Returns the end that
/// dialled the remaining link.
fn dial_each_other(first: usize, later: u64, there: u64, back: u64) -> usize {
    let settings = Settings {
        delay: (ms(1), ms(1)),
        ..Settings::default()
    };
    let mut world = World::new(1, 2, settings, Trace::off());
    world.slots[0].rename("aaa");
    world.slots[1].rename("bbb");
    world.slow.insert((0, 1), ms(there));
    world.slow.insert((1, 0), ms(back));
    world.start(0);
    world.start(1);
    world.connect(first, 1 - first);
    world.run_for(ms(later));
    world.connect(1 - first, first);
    world.run_for(Duration::from_secs(3));
    let what = format!("{first} first, the other {later} ms later, {there} and {back} ms");
    kept_link(&world, &what)
}

/// The end that dialled the only link of two members, which both ends hold and no host lost.
fn kept_link(world: &World, what: &str) -> usize {
    assert_eq!(world.violation, None, "{what}");
    let held = |slot: usize| {
        let process = world.slots[slot].process.as_ref().expect("it runs");
        process.sessions.clone()
    };
    let link = held(0)[&1];
    assert_eq!(held(1)[&0], link, "{what}");
    let alive: BTreeSet<u64> = world.links.keys().copied().collect();
    assert_eq!(alive, [link].into(), "{what}");
    for slot in &world.slots {
        let joined = |(_, event): &&(_, Event)| matches!(event, Event::Joined(_));
        assert_eq!(slot.events.iter().filter(joined).count(), 1, "{what}");
        let lost =
            |(_, event): &(_, Event)| matches!(event, Event::Reconnecting(_) | Event::Left(_));
        assert!(!slot.events.iter().any(lost), "{what}");
    }
    world.links[&link].dialler()
}

#[test]
fn t22_two_that_dial_each_other_have_one_link_in_every_order_of_arrival() {
    let mut crossed = 0;
    for first in [0, 1] {
        for later in [0, 2, 5, 9, 14, 22, 40] {
            for there in [0, 3, 8, 20] {
                for back in [0, 3, 8, 20] {
                    let dialler = dial_each_other(first, later, there, back);
                    // The first dial has not arrived when the second begins: they cross.
                    let trip = 1 + if first == 0 { there } else { back };
                    if later < trip {
                        crossed += 1;
                        assert_eq!(
                            dialler, 0,
                            "the smaller id's: {first} {later} {there} {back}"
                        );
                    }
                }
            }
        }
    }
    assert!(crossed > 50);
}

/// The end of the larger id dials first, and the other end's host takes its time to let it in. The end of the smaller id dials
/// meanwhile, and its link may be up at one end when the first dial becomes one, too.
#[test]
fn two_dials_that_both_become_links_leave_the_one_of_the_smaller_id() {
    let mut second_links = 0;
    for seed in 1..=600 {
        let settings = Settings {
            delay: (ms(130), ms(150)),
            hosts: Hosts {
                asked: true,
                decide: true,
                talk: false,
            },
            ..Settings::default()
        };
        let mut world = World::new(seed, 2, settings, Trace::off());
        world.slots[0].rename("aaa");
        world.slots[1].rename("bbb");
        world.start(0);
        world.start(1);
        world.run_for(Duration::from_secs(5));
        world.connect(1, 0);
        world.run_for(ms(800));
        world.connect(0, 1);
        world.run_for(Duration::from_secs(5));
        if world.sometimes.joins_refused > 0 {
            continue;
        }
        let dialler = kept_link(&world, &format!("seed {seed}"));
        if world.sometimes.second_links > 0 {
            second_links += 1;
            assert_eq!(dialler, 0, "seed {seed}");
        }
    }
    assert!(second_links >= 10, "{second_links}");
}
