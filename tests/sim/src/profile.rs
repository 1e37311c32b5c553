//! The laboratory's knowledge of each election strategy: the checks after every input of a node, the faults that apply, and the
//! bounds that hold when all faults are over.
//!
//! A new strategy writes a [`Profile`], adds it to [`of`], and itself to [`StrategyPlan`].

mod gossip;
mod raft;
mod seeded;

use std::any::Any;
use std::fmt::Debug;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use room_core::node::{CommandError, Input, Node, Output};
use room_core::time::Duration;
use room_core::wire::Strategy;

use crate::chaos::{Run, VIEW_BOUND};
use crate::clock::slowest_clock;
use crate::gossip::{GossipRules, Trial};
use crate::liars::Words;
use crate::seeded::SeededPlan;
use crate::world::{File, Settings, World};

/// The room's strategy in its plan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StrategyPlan {
    /// By votes.
    #[default]
    Raft,
    /// By gossip.
    Gossip(GossipRules),
    /// By votes, in a cluster that members enter through seeds.
    Seeded(SeededPlan),
}

impl StrategyPlan {
    /// Makes this the strategy of a room.
    pub fn apply(&self, settings: &mut Settings) {
        match self {
            Self::Raft => settings.strategy = Strategy::Raft,
            Self::Gossip(rules) => rules.apply(settings),
            Self::Seeded(plan) => plan.apply(settings),
        }
    }

    /// The profile of the strategy.
    pub(crate) fn profile(&self) -> Rc<dyn Profile> {
        let mut settings = Settings::default();
        self.apply(&mut settings);
        of(settings.strategy)
    }

    /// Removes the strategy's own trial, if it has one.
    pub(crate) fn without_trial(&mut self) {
        match self {
            Self::Raft => {}
            Self::Gossip(rules) => rules.trial = Trial::Quiet,
            Self::Seeded(plan) => plan.trial = crate::seeded::Trial::Quiet,
        }
    }

    /// Whether it is the default of plans.
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The profile of a strategy.
pub(crate) fn of(strategy: Strategy) -> Rc<dyn Profile> {
    match strategy {
        Strategy::Raft => Rc::new(raft::Votes),
        Strategy::Gossip { .. } => Rc::new(gossip::Declarations),
        Strategy::Seeded(rules) => Rc::new(seeded::Clusters::new(rules)),
        Strategy::Etcd(_) => unreachable!("a store of its own simulates what etcd decides"),
    }
}

/// The laboratory's knowledge of one strategy. A world has its own value, which may keep state.
pub(crate) trait Profile: Debug {
    /// The state of a node before an input, or before a question of the network, for [`check`](Self::check).
    fn before(&self, _node: &Node, _input: Option<&Input>) -> Box<dyn Any> {
        Box::new(())
    }

    /// Checks the strategy's properties after an input of the node in `slot`, and counts events.
    fn check(
        &self,
        world: &mut World,
        slot: usize,
        before: &dyn Any,
        outputs: &[Output],
        result: &Result<(), CommandError>,
    );

    /// No process runs in the place, and its state file is replaced.
    fn disk_replaced(&self, _world: &mut World, _slot: usize, _copy: Option<&File>) {}

    /// A stopped process resumes, and has taken no input yet.
    fn resumes(&self, _world: &mut World, _slot: usize) {}

    /// P2: of two leaders linked both ways one remains within this time.
    fn one_of_two_within(&self, world: &World) -> Duration;

    /// P9: all show one leader within this time after healing.
    fn agrees_within(&self, world: &World) -> Duration {
        slowest_clock(world.settings.election_timeout_max * 2) + VIEW_BOUND
    }

    /// After healing: agreement, a trial, and quiet.
    fn ends(&self, run: &mut Run<'_>) {
        run.settle();
        run.quiet();
    }

    /// P14: whether a leader stays while it is linked to a majority.
    fn keeps_leaders(&self) -> bool {
        false
    }

    /// Whether leaders have terms, which may begin high, and places that are held for them until a host ends that.
    fn has_terms(&self) -> bool {
        false
    }

    /// Possible lies of a member.
    fn lies(&self) -> &'static [Words] {
        &[Words::Limit]
    }

    /// A node's role, in few words.
    fn role(&self, node: &Node) -> String {
        format!("{:?}", node.election().role())
    }
}
