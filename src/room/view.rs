//! What the host sees of the core: the snapshot that queries read, and events.

use crate::core::election::AssignOutcome;
use crate::core::id::PeerId;
use crate::core::node::{Event, Node};
use crate::dispatch::{self, Event as HostEvent, JoinRequest, LeaderChange};
use crate::error::Code;
use crate::snapshot::{PeerStatus, PeerView, Snapshot};

/// The room as it is now. `reserved` are those whose admission goes on.
pub(super) fn snapshot<'a>(node: &'a Node, reserved: impl Iterator<Item = &'a PeerId>) -> Snapshot {
    let mut peers: Vec<_> = node
        .membership()
        .iter()
        .map(|(id, member)| PeerView {
            id: id.clone(),
            status: PeerStatus::Connected,
            rtt: member.rtt.smoothed(),
            jitter: member.rtt.variation(),
        })
        .collect();
    let connected = peers.len();
    let ids: Vec<_> = peers.iter().map(|peer| peer.id.as_str()).collect();
    let peer_list = ids.join("\n");
    let lost = node.absent().map(|id| (id, PeerStatus::Reconnecting));
    let entering = node.dialing().chain(reserved);
    let entering = entering.map(|id| (id, PeerStatus::Handshaking));
    for (id, status) in lost.chain(entering) {
        if !peers.iter().any(|peer| peer.id == *id) {
            peers.push(PeerView {
                id: id.clone(),
                status,
                rtt: None,
                jitter: None,
            });
        }
    }
    peers.sort_by(|a, b| a.id.cmp(&b.id));
    let stamp = &node.record().stamp;
    Snapshot {
        peers,
        connected,
        peer_list,
        leader: node.leader().cloned(),
        is_leader: node.is_leader(),
        term: stamp.term,
        epoch: stamp.epoch.override_seq,
        strategy: node.policy().strategy,
        leader_token: node.leader_token(),
    }
}

/// An event of the core as the host receives it.
pub(super) fn host_event(node: &Node, event: Event) -> HostEvent {
    match event {
        Event::Joined(peer) => {
            tracing::info!(%peer, "joined");
            HostEvent::Joined(peer)
        }
        Event::Reconnecting(peer) => {
            tracing::info!(%peer, "lost, and being dialled");
            HostEvent::Reconnecting(peer)
        }
        Event::Returned(peer) => {
            tracing::info!(%peer, "returned");
            HostEvent::Returned(peer)
        }
        Event::Left {
            peer,
            why,
            code,
            bytes,
        } => {
            tracing::info!(%peer, ?why, "left");
            HostEvent::Left(dispatch::Left {
                peer,
                reason: why,
                code,
                bytes: bytes.into(),
                undelivered: 0, // the session counts it when it ends
            })
        }
        Event::LeaderChanged { leader, reason } => {
            let name = leader.as_ref().map_or("", PeerId::as_str);
            tracing::info!(leader = name, ?reason, "leader");
            let stamp = &node.record().stamp;
            HostEvent::LeaderChanged(LeaderChange {
                old: None, // the queue knows what the host was told
                new: leader,
                term: stamp.term,
                epoch: stamp.epoch.override_seq,
                reason,
            })
        }
        Event::SetLeaderResult { target, outcome } => {
            tracing::info!(%target, ?outcome, "SetLeader ended");
            let code = match outcome {
                AssignOutcome::Done => Code::Ok,
                AssignOutcome::Timeout => Code::Timeout,
                AssignOutcome::Superseded => Code::Superseded,
                AssignOutcome::Rejected => Code::Rejected,
            };
            let code = code.value();
            HostEvent::SetLeaderResult { target, code }
        }
        Event::JoinRequest { request, candidate } => HostEvent::JoinRequest(JoinRequest {
            request,
            peer: candidate.entry.id,
            address: candidate
                .entry
                .addresses
                .first()
                .map_or_else(String::new, ToString::to_string),
            payload: candidate.payload.into(),
        }),
        Event::RoomEnded { why, code, bytes } => {
            tracing::info!(?why, "the room is over");
            HostEvent::RoomEnded {
                reason: why,
                code,
                bytes: bytes.into(),
            }
        }
    }
}
