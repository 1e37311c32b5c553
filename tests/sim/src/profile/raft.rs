//! Rooms that elect by votes.

use std::any::Any;

use room_core::election::raft::Raft;
use room_core::node::{CommandError, Input, Node, Output};
use room_core::time::Duration;

use super::Profile;
use crate::chaos::Run;
use crate::clock::slowest_clock;
use crate::liars::{WORDS, Words};
use crate::sometimes::Moment;
use crate::world::World;

#[derive(Debug)]
pub(super) struct Votes;

impl Profile for Votes {
    fn before(&self, node: &Node, input: Option<&Input>) -> Box<dyn Any> {
        Box::new(Moment::before(node, input))
    }

    fn check(
        &self,
        world: &mut World,
        slot: usize,
        before: &dyn Any,
        outputs: &[Output],
        _result: &Result<(), CommandError>,
    ) {
        if let Some(before) = before.downcast_ref() {
            world.check_votes(slot, before, outputs);
        }
    }

    fn one_of_two_within(&self, world: &World) -> Duration {
        slowest_clock(world.settings.heartbeat_interval) + world.max_rtt() * 2
    }

    fn ends(&self, run: &mut Run<'_>) {
        run.settle();
        run.phase();
        run.settle();
        run.quiet();
    }

    fn keeps_leaders(&self) -> bool {
        true
    }

    fn has_terms(&self) -> bool {
        true
    }

    fn lies(&self) -> &'static [Words] {
        &WORDS
    }

    fn role(&self, node: &Node) -> String {
        let raft = node.election().of::<Raft>();
        raft.map_or_else(String::new, |raft| format!("{:?}", raft.rules().role()))
    }
}
