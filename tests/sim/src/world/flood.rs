//! No input makes a node do more than the size of its room justifies.

use room_core::node::{Event, Node, Output};

/// Outputs of one input, per member; more is a flood.
const MAX_OUTPUTS_PER_MEMBER: usize = 24;

/// The members of a node's room: linked, or lost and waited for. One tick may report the end of all of these.
pub(super) fn places(node: &Node) -> usize {
    node.membership().len() + node.absent_peers().count()
}

/// Number of outputs of one input, if too many for a room of this many other members. A leader's table has as many entries as the
/// room, linked here or not.
pub(super) fn flood(outputs: &[Output], members: usize) -> Option<usize> {
    let is_table = |output: &&Output| matches!(output, Output::Event(Event::MemberState { .. }));
    let count = outputs.iter().filter(|output| !is_table(output)).count();
    (count > MAX_OUTPUTS_PER_MEMBER * (members + 2)).then_some(count)
}

#[cfg(test)]
mod tests {
    use room_core::id::PeerId;
    use room_core::node::{Left, LeftReason};
    use room_core::time::Duration;

    use super::*;
    use crate::trace::Trace;
    use crate::world::{Settings, World};

    #[test]
    fn outputs_without_a_member_that_they_are_about_are_a_flood() {
        let left = |number| {
            let peer = PeerId::new(&format!("p{number}")).expect("a valid name");
            Output::Event(Event::Left(Left::new(peer, LeftReason::Lost)))
        };
        let outputs: Vec<_> = (0..80).map(left).collect();
        assert_eq!(flood(&outputs, 80), None);
        assert_eq!(flood(&outputs, 1), Some(80));
        assert_eq!(flood(&outputs[..48], 0), None);
        assert_eq!(flood(&outputs[..49], 0), Some(49));
    }

    #[test]
    fn a_member_that_is_lost_has_its_place_until_it_is_reported_to_have_left() {
        let mut world = World::new(1, 3, Settings::default(), Trace::off());
        for slot in 0..3 {
            world.start(slot);
        }
        world.connect(0, 1);
        world.connect(0, 2);
        world.run_for(Duration::from_secs(10));
        let known = |world: &World| world.node(0).map(places);
        assert_eq!(known(&world), Some(2));
        world.cut(0, 1);
        world.cut(1, 0);
        world.run_for(Duration::from_secs(5));
        assert_eq!(world.node(0).map(|node| node.membership().len()), Some(1));
        assert_eq!(known(&world), Some(2));
    }
}
