//! Reads messages: the election strategies' opaque parts, and whether a node takes a heartbeat.

use room_core::election::gossip::{Claimed, Leads};
use room_core::election::raft::Raft;
use room_core::election::raft::wire::{Beat, ElectionMessage, Pulse, Side, Stamped};
use room_core::election::record::{Record, Stamp};
use room_core::membership::Member;
use room_core::node::Node;
use room_core::wire::{Envelope, Heartbeat, Message, Opaque};

/// A message of the election by votes.
pub fn voting(message: &Message) -> Option<Stamped> {
    match message {
        Message::Election(part) => part.decode().ok(),
        _ => None,
    }
}

/// Content of a message of the election by votes.
pub fn election(message: &Message) -> Option<ElectionMessage> {
    Some(voting(message)?.message)
}

/// A message of the election by gossip.
pub fn claimed(message: &Message) -> Option<Claimed> {
    match message {
        Message::Election(part) => part.decode().ok(),
        _ => None,
    }
}

/// Content of a heartbeat where votes elect.
pub fn beat(message: &Message) -> Option<Beat> {
    match message {
        Message::Heartbeat(heartbeat) => heartbeat.pulse.decode().ok(),
        _ => None,
    }
}

/// Whether a node takes a heartbeat of this member: the present process sent it, and none that is as new has arrived.
pub fn takes_heartbeat(member: &Member, envelope: &Envelope) -> bool {
    let Message::Heartbeat(heartbeat) = &envelope.message else {
        return false;
    };
    member.incarnation == envelope.incarnation && !member.is_old_heartbeat(heartbeat.seq)
}

/// Its statement of leadership.
pub fn pulse(message: &Message) -> Option<Pulse> {
    Some(beat(message)?.pulse)
}

/// Whether a heartbeat's sender leads, where gossip elects.
pub fn leads(message: &Message) -> Option<bool> {
    match message {
        Message::Heartbeat(heartbeat) => heartbeat
            .pulse
            .decode()
            .ok()
            .map(|Leads { leads, .. }| leads),
        _ => None,
    }
}

/// The epoch and term of votes, or of a heartbeat beside them.
pub fn stamp(message: &Message) -> Option<Stamp> {
    let of_pulse = || {
        let (Pulse::Leads { record, .. } | Pulse::Follows { record, .. }) = pulse(message)?;
        Some(record.stamp)
    };
    voting(message).map(|voting| voting.stamp).or_else(of_pulse)
}

/// Content of a Hello where votes elect.
pub fn side(hello: &Opaque) -> Option<Side> {
    hello.decode().ok()
}

/// A heartbeat where votes elect, of a member that keeps no state on disk.
pub fn heartbeat(pulse: Pulse) -> Message {
    Message::Heartbeat(Heartbeat {
        seq: 0,
        echo: None,
        host_silent_ms: 0,
        room_time_us: None,
        pulse: Opaque::of(&Beat::from(pulse)),
    })
}

/// The record under which a node leads and may claim it, where votes elect.
pub fn led_under(node: &Node) -> Option<Record> {
    node.election().of::<Raft>()?;
    node.leader_token()?.decode().ok()
}
