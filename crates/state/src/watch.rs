//! What happens in a room, as inputs for its replica: links, departures, the leader, who may lead, and who is being dialled.

use std::collections::{BTreeMap, BTreeSet};

use room_core::id::PeerId;
use room_core::node::Node;
use room_core::wire::HostMode;

use crate::ballot::MemberId;
use crate::replica::{Input, Linked, Settings};

/// The room as its replica has been shown it.
#[derive(Debug)]
pub struct Watch {
    is_eligible: bool,
    links: BTreeMap<PeerId, Link>,
    leader: Option<MemberId>,
    dialled: BTreeSet<PeerId>,
}

#[derive(Debug)]
struct Link {
    number: u64,
    is_eligible: bool,
}

impl Watch {
    /// Of a replica that has been shown nothing.
    pub fn new(settings: &Settings) -> Self {
        Self {
            is_eligible: settings.is_eligible,
            links: BTreeMap::new(),
            leader: None,
            dialled: BTreeSet::new(),
        }
    }

    /// The link that carries a member's session is the one of that number.
    pub fn linked(&mut self, number: u64, linked: Linked) -> Option<Input> {
        let peer = &linked.member.peer;
        let is_known = |link: &Link| link.number == number;
        if self.links.get(peer).is_some_and(is_known) {
            return None;
        }
        let link = Link {
            number,
            is_eligible: linked.is_eligible,
        };
        self.links.insert(peer.clone(), link);
        Some(Input::Linked(linked))
    }

    /// No link carries the session any more.
    pub fn lost(&mut self, peer: &PeerId) -> Option<Input> {
        let link = self.links.remove(peer);
        link.map(|_| Input::Lost(peer.clone()))
    }

    /// The session with a member is over.
    pub fn gone(&mut self, member: MemberId) -> impl Iterator<Item = Input> + use<> {
        let lost = self.lost(&member.peer);
        lost.into_iter().chain([Input::Gone(member)])
    }

    /// The changes in the core since the last call. `leader` is the process of its leader, if that is known.
    pub fn follow(&mut self, node: &Node, leader: Option<MemberId>) -> Vec<Input> {
        let mut inputs = Vec::new();
        if leader != self.leader {
            self.leader.clone_from(&leader);
            inputs.push(Input::Leader(leader));
        }
        if !node.dialing().eq(&self.dialled) {
            self.dialled = node.dialing().cloned().collect();
            inputs.push(Input::Dialled(self.dialled.clone()));
        }
        let own = (node.id(), &mut self.is_eligible);
        let links = self.links.iter_mut();
        let all = links.map(|(peer, link)| (peer, &mut link.is_eligible));
        inputs.extend(all.chain([own]).filter_map(|(peer, known)| {
            let is_eligible = counts(node, peer);
            let before = std::mem::replace(known, is_eligible);
            (before != is_eligible).then(|| Input::Eligible(peer.clone(), is_eligible))
        }));
        inputs
    }
}

/// Whether this member or a linked peer may count for a majority of the log: if it may lead, and in a room with a fixed host
/// each guest.
pub fn counts(node: &Node, peer: &PeerId) -> bool {
    match node.policy().host_mode {
        HostMode::Off if peer == node.id() => node.standing_of_myself().0,
        HostMode::Off => node.is_eligible(peer),
        HostMode::Host | HostMode::Guest => true,
    }
}
