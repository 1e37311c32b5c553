//! Views of the core: the snapshot for the host's queries, and log lines about events.

use std::net::SocketAddr;
use std::time::Duration;

use super::live_node::LiveNode;
use crate::core::event::{ConnectionResult, Event, MappingReport, RelayReport, TurnReport};
use crate::core::id::{Fingerprint, PeerId};
use crate::core::path::LinkPath;
use crate::error::{Code, mapping_code, mapping_sentence};
use crate::snapshot::{PeerStatus, PeerView, Snapshot};

/// A snapshot of the room. `reserved` are the peers in admission.
pub(super) fn snapshot<'a>(
    live: &'a LiveNode,
    reserved: impl Iterator<Item = &'a PeerId>,
) -> Snapshot {
    let node = &live.core;
    let mut peers: Vec<_> = node
        .membership()
        .iter()
        .map(|(id, member)| PeerView {
            id: id.clone(),
            status: PeerStatus::Connected,
            address: member.addresses.first().copied(),
            key: Some(member.key),
            rtt: member.rtt.smoothed(),
            jitter: member.rtt.variation(),
            host_silent: member.host_silent,
            path: node.path_to(id),
        })
        .collect();
    // The host sees them as present until it receives their departure.
    let ended = node.ended_peers();
    peers.extend(ended.map(|peer| without_link(peer, PeerStatus::Connected)));
    peers.sort_by(|a, b| a.id.cmp(&b.id));
    let connected = peers.len();
    let peer_list = list(&peers);
    let absent = node.absent_peers();
    peers.extend(absent.map(|peer| without_link(peer, PeerStatus::Reconnecting)));
    peers.sort_by(|a, b| a.id.cmp(&b.id));
    let member_list = list(&peers);
    for id in node.dialing().chain(reserved) {
        if !peers.iter().any(|peer| peer.id == *id) {
            peers.push(PeerView {
                id: id.clone(),
                status: PeerStatus::Handshaking,
                address: None,
                key: None,
                rtt: None,
                jitter: None,
                host_silent: Duration::ZERO,
                path: None,
            });
        }
    }
    peers.sort_by(|a, b| a.id.cmp(&b.id));
    let stamp = &node.record().stamp;
    let leads_until = node.election().leadership().valid_until;
    Snapshot {
        peers,
        connected,
        peer_list,
        member_list,
        public_address: node.public_address(),
        unlinked: node.unlinked_peers(),
        room_time: Some(live.room_time()),
        leader: node.leader().cloned(),
        is_leader: node.is_leader(),
        leads_until: leads_until.map(|until| live.moment(until)),
        term: stamp.term,
        epoch: stamp.epoch.override_seq,
        strategy: node.policy().strategy,
        cluster: node.election().cluster(),
        leader_token: node.leader_token(),
    }
}

fn without_link(
    (id, key, address): (&PeerId, Fingerprint, Option<SocketAddr>),
    status: PeerStatus,
) -> PeerView {
    PeerView {
        id: id.clone(),
        status,
        address,
        key: Some(key),
        rtt: None,
        jitter: None,
        host_silent: Duration::ZERO,
        path: None,
    }
}

/// Their ids, joined by `\n`.
fn list(peers: &[PeerView]) -> String {
    let ids: Vec<_> = peers.iter().map(|peer| peer.id.as_str()).collect();
    ids.join("\n")
}

/// Logs the result of a dial of the host. The reason given by another host is not logged.
pub(super) fn log_result(result: &ConnectionResult) {
    let (address, code, why) = in_words(result);
    tracing::info!(address, code, why, "connecting ended");
}

fn in_words(result: &ConnectionResult) -> (&str, &'static str, String) {
    let code = Code::from_value(result.code).map_or("", Code::name);
    let why = match result.code == Code::Rejected.value() {
        true => String::new(),
        false => String::from_utf8_lossy(&result.bytes).into_owned(),
    };
    (&result.target, code, why)
}

/// Logs an event of the room.
pub(super) fn log(event: &Event) {
    match event {
        Event::Joined(peer) => tracing::info!(%peer, "joined"),
        Event::Reconnecting(peer) => tracing::info!(%peer, "lost, and being dialled"),
        Event::Returned(returned) => {
            let peer = &returned.peer;
            tracing::info!(%peer, undelivered = returned.undelivered, missed = returned.missed, "returned");
        }
        Event::Left(left) => tracing::info!(peer = %left.peer, why = ?left.why, "left"),
        Event::LeaderChanged(change) => {
            let name = change.new.as_ref().map_or("", PeerId::as_str);
            tracing::info!(leader = name, reason = ?change.reason, "leader");
        }
        Event::SetLeaderResult { target, outcome } => {
            tracing::info!(%target, ?outcome, "naming a leader ended");
        }
        Event::MemberState {
            peer,
            state,
            version,
        } => tracing::info!(%peer, ?state, version, "member state"),
        Event::RoomEnded { why, .. } => tracing::info!(?why, "the room is over"),
        Event::DiscoveryRefused(refused) => {
            let (address, code, why) = in_words(&refused.result);
            let found_by = refused.found_by;
            tracing::warn!(
                address,
                code,
                why,
                ?found_by,
                "a member that was found and this one refuse each other"
            );
        }
        Event::PathChanged { peer, new, .. } => match new {
            LinkPath::Direct => tracing::info!(%peer, "reached directly"),
            LinkPath::Turn => tracing::info!(%peer, "reached through a TURN server"),
            LinkPath::Relay(relay) => tracing::info!(%peer, %relay, "reached over a relay"),
            LinkPath::Leader(carrier) | LinkPath::Member(carrier) => {
                tracing::info!(%peer, %carrier, "reached through another member");
            }
        },
        Event::Relay(RelayReport {
            relay,
            code,
            observed,
        }) => match observed {
            // Logs of players are passed on, and this address is their home.
            Some(_) => tracing::info!(%relay, "entered a relay"),
            None => {
                let code = Code::from_value(*code).map_or("", Code::name);
                tracing::warn!(%relay, code, "not in a relay");
            }
        },
        // Logs of players are passed on, and this address is their home.
        Event::PortMapping(MappingReport::Mapped(_)) => {
            tracing::info!("the router has opened a port");
        }
        Event::PortMapping(MappingReport::Failed(fault)) => {
            let code = mapping_code(*fault).name();
            tracing::warn!(
                code,
                why = mapping_sentence(*fault),
                "no port of the router is open"
            );
        }
        Event::Turn(TurnReport {
            server,
            code,
            address,
            why,
        }) => match address {
            Some(_) => tracing::info!(%server, "a TURN server gives a port"),
            None => {
                let code = Code::from_value(*code).map_or("", Code::name);
                tracing::warn!(%server, code, %why, "no port at a TURN server");
            }
        },
        Event::HostSilent { peer, silent } => {
            tracing::info!(%peer, ?silent, "its host takes no events");
        }
        Event::HostBack(peer) => tracing::info!(%peer, "its host takes events again"),
        Event::NoRoomFound(waited) => tracing::info!(?waited, "no room was found so far"),
        Event::Discovered { address } => tracing::info!(%address, "discovered"),
        _ => {}
    }
}
