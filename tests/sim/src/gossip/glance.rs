//! The state of a node that elects by gossip before an input, and the possible effects of that input.

use crate::decoded;
use room_core::election::gossip::Gossip;
use room_core::id::PeerId;
use room_core::node::{Command, Input, Node};
use room_core::time::Time;

/// The kind of an input, for the election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Time has passed.
    Tick,
    /// A member proposed itself.
    Proposed(PeerId),
    /// A member declared that it leads.
    Declared(PeerId),
    /// The host yields.
    Yield,
    /// The host forbids its node to lead.
    Ineligible,
    /// The host makes a request that needs votes.
    Foreign,
    /// A link is up.
    Linked,
    Other,
}

/// See the module's text.
#[derive(Debug)]
pub struct Glance {
    pub cause: Cause,
    pub leads: bool,
    /// When the time of its election is over, if it is in one.
    pub election_ends: Option<Time>,
    pub yielding: bool,
    pub leader: Option<PeerId>,
    /// The whole state of the election, if the input must not change it.
    pub all: Option<String>,
    /// Whether the node is out of its room, or leaving it.
    pub over: bool,
}

impl Glance {
    /// Takes a node's state before an input, or before a question about a peer's data; `None` for other strategies.
    pub fn before(node: &Node, input: Option<&Input>) -> Option<Self> {
        let cause = input.map_or(Cause::Other, cause_of);
        let gossip = node.election().of::<Gossip>()?;
        let machine = gossip.peer().machine();
        Some(Self {
            leads: node.is_leader(),
            election_ends: gossip
                .peer()
                .next_deadline()
                .filter(|_| machine.is_electing()),
            yielding: machine.is_yielding(),
            leader: node.leader().cloned(),
            all: (cause == Cause::Foreign).then(|| Self::all(node, gossip)),
            over: node.is_over() || machine.is_stopped(),
            cause,
        })
    }

    /// The whole state of a node's election.
    pub fn all(node: &Node, gossip: &Gossip) -> String {
        format!("{gossip:?} {:?}", node.standing_of_myself())
    }
}

fn cause_of(input: &Input) -> Cause {
    match input {
        Input::Tick => Cause::Tick,
        Input::LinkUp(_) => Cause::Linked,
        Input::Message { from, envelope } => match decoded::claimed(&envelope.message) {
            Some(claimed) if claimed.declares => Cause::Declared(from.clone()),
            Some(_) => Cause::Proposed(from.clone()),
            None => Cause::Other,
        },
        Input::Command(Command::YieldLeadership) => Cause::Yield,
        Input::Command(Command::SetEligible(false)) => Cause::Ineligible,
        Input::Command(
            Command::SetLeader(_) | Command::TransferLeadership(_) | Command::SetPriority(_),
        ) => Cause::Foreign,
        _ => Cause::Other,
    }
}
