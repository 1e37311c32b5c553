//! What the laboratory knows of each election strategy: what is looked at after every input of a node, which faults
//! apply, and which bounds hold when all faults are over.
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

/// How a room elects, as its plan has it.
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

    /// Leaves out the trial of its own, if it has one.
    pub(crate) fn without_trial(&mut self) {
        match self {
            Self::Raft => {}
            Self::Gossip(rules) => rules.trial = Trial::Quiet,
            Self::Seeded(plan) => plan.trial = crate::seeded::Trial::Quiet,
        }
    }

    /// Whether it is what plans have that name none.
    #[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
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

/// What the laboratory knows of one strategy. A world has a value of its own, which may keep what it needs.
pub(crate) trait Profile: Debug {
    /// What a node was before an input, or before a question of the network, as [`check`](Self::check) needs it.
    fn before(&self, _node: &Node, _input: Option<&Input>) -> Box<dyn Any> {
        Box::new(())
    }

    /// Checks the strategy's properties after an input of the node in `slot`, and counts what happened.
    fn check(
        &self,
        world: &mut World,
        slot: usize,
        before: &dyn Any,
        outputs: &[Output],
        result: &Result<(), CommandError>,
    );

    /// Nobody runs in a place, and its state file becomes another one.
    fn disk_replaced(&self, _world: &mut World, _slot: usize, _copy: Option<&File>) {}

    /// A process that was stopped goes on, and has taken no input yet.
    fn resumes(&self, _world: &mut World, _slot: usize) {}

    /// P2: two leaders that are linked both ways are one within this time.
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

    /// P14: whether a leader stays that a majority hears.
    fn keeps_leaders(&self) -> bool {
        false
    }

    /// Whether leaders have terms, which may begin high, and places that are held for them until a host ends that.
    fn has_terms(&self) -> bool {
        false
    }

    /// What a member may say that lies.
    fn lies(&self) -> &'static [Words] {
        &[Words::Limit]
    }

    /// What a node is, in few words.
    fn role(&self, node: &Node) -> String {
        format!("{:?}", node.election().role())
    }
}
