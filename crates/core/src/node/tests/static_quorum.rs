//! Rooms whose voters are a fixed list (C2, C8, G9, O14, X5a).

mod lost_files;
mod majority;
mod restarts;
mod set_leader;

use super::*;
use crate::election::raft::wire::{Memory, Side};
use crate::election::record::Epoch;
use crate::election::{AssignOutcome, InvalidSavedState, LeaderReason};
use crate::quorum::Roster;
use crate::wire::Authority;

fn static_net(voters: &[&str]) -> Net {
    let mut net = Net::new();
    net.config.election.quorum = Quorum::of(voters);
    net
}

/// A settled room of the whole roster with a leader.
fn static_room(names: &[&str]) -> Net {
    let mut net = static_net(names);
    for name in names {
        net.start(name);
    }
    for name in &names[1..] {
        net.enter(name, names[0]);
    }
    net.settle();
    net
}

fn leader(net: &Net) -> String {
    let leader = net.places.values().find(|place| place.node.is_leader());
    let leader = leader.map(|place| place.node.id().as_str().to_owned());
    leader.expect("somebody leads")
}

fn others<'a>(names: &[&'a str], except: &str) -> Vec<&'a str> {
    names
        .iter()
        .copied()
        .filter(|name| *name != except)
        .collect()
}
