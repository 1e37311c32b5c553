//! T22: two members dial each other at once. In every order of arrivals one link remains, and both ends keep that one.

use std::collections::BTreeSet;

use room_core::node::Event;
use room_core::time::Duration;

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
