//! Rooms that elect by gossip.

use std::any::Any;

use room_core::election::gossip::Gossip;
use room_core::node::{CommandError, Input, Node, Output};
use room_core::time::Duration;

use super::{Profile, StrategyPlan};
use crate::chaos::Run;
use crate::gossip::Glance;
use crate::liars::Words;
use crate::world::World;

#[derive(Debug)]
pub(super) struct Declarations;

impl Profile for Declarations {
    fn before(&self, node: &Node, input: Option<&Input>) -> Box<dyn Any> {
        Box::new(Glance::before(node, input))
    }

    fn check(
        &self,
        world: &mut World,
        slot: usize,
        before: &dyn Any,
        outputs: &[Output],
        result: &Result<(), CommandError>,
    ) {
        if let Some(Some(before)) = before.downcast_ref::<Option<Glance>>() {
            world.check_gossip(slot, before, outputs, result);
        }
    }

    /// A leader declares itself on every new link: within one trip.
    fn one_of_two_within(&self, world: &World) -> Duration {
        world.max_rtt() / 2
    }

    fn ends(&self, run: &mut Run<'_>) {
        if let StrategyPlan::Gossip(rules) = &run.plan.strategy {
            run.gossip_ends(rules);
        }
    }

    fn lies(&self) -> &'static [Words] {
        &[Words::Claims, Words::Limit]
    }

    fn role(&self, node: &Node) -> String {
        let gossip = node.election().of::<Gossip>();
        gossip.map_or_else(String::new, |gossip| {
            format!("{:?}", gossip.peer().machine())
        })
    }
}
