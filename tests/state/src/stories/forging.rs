//! Leaders that change others' entries: what a member can undo, it must not make hang.

use room_state::entry::Contents;
use room_state::event::{Outcome, StateEvent};
use room_state::limits::MAX_INDEX;
use room_state::wire::Frame;

use super::{act, led, replica};
use crate::case::Case;
use crate::world::World;

fn room() -> World {
    let mut world = led(&Case::dynamic(2));
    world.distrust();
    results(&mut world);
    world
}

/// The leader's frames to the author, with another number of the author's request.
fn forge(world: &mut World, forged: u64) {
    let frames = world.links.get_mut(&(0, 1)).expect("a link");
    for frame in frames {
        if let Frame::Append { entries, .. } = frame {
            for entry in entries {
                if let Contents::Request { number, .. } = &mut entry.contents {
                    *number = forged;
                }
            }
        }
    }
}

fn results(world: &mut World) -> Vec<(u64, Outcome)> {
    let author = world.nodes[1].replica.as_mut().expect("it runs");
    let result = |event| match event {
        StateEvent::ActionResult {
            request, outcome, ..
        } => Some((request, outcome)),
        _ => None,
    };
    author
        .take(usize::MAX)
        .into_iter()
        .filter_map(result)
        .collect()
}

/// The author's request, whose number the leader changes on its way back; returns its number.
fn request_with(world: &mut World, forged: u64) -> u64 {
    let author = world.nodes[1].replica.as_mut().expect("it runs");
    let data = bytes::Bytes::from_static(b"an action");
    let request = room_state::entry::Request::Action {
        msg_type: 0x100,
        data,
    };
    let number = author.submit(request).expect("taken");
    act(world, |world| world.flush(1));
    act(world, |world| world.deliver(1, 0));
    act(world, |world| world.flush(0));
    if forged > 0 {
        forge(world, forged);
    }
    act(world, World::deliver_all);
    number
}

#[test]
fn a_forged_number_of_an_author_leaves_no_request_without_a_result() {
    let mut world = room();
    let passed = request_with(&mut world, 1_000);
    assert_eq!(results(&mut world), [(passed, Outcome::OutcomeUnknown)]);
    let next = request_with(&mut world, 0);
    assert!(next > 1_000, "{next}");
    assert_eq!(results(&mut world), [(next, Outcome::Ok)]);
    assert_eq!(replica(&world, 1).open_requests(), 0);
}

#[test]
fn a_number_beyond_all_credible_ones_makes_no_request_hang() {
    for forged in [MAX_INDEX, u64::MAX] {
        let mut world = room();
        let passed = request_with(&mut world, forged);
        assert_eq!(results(&mut world), [(passed, Outcome::OutcomeUnknown)]);
        let next = request_with(&mut world, 0);
        assert_eq!(results(&mut world), [(next, Outcome::OutcomeUnknown)]);
    }
}
