//! Values of every type that travels between members: valid encodings with wild fields.
//!
//! The lists below name every variant and every field: a new one does not compile until it is made here, too.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::chance::Chance;
use crate::core::election::etcd::{EtcdRules, LeaderToken};
use crate::core::election::gossip::{Claimed, Leads};
use crate::core::election::raft::saved::{KnownVoter, Saved};
use crate::core::election::raft::wire::{
    Beat, ElectionMessage, LiveLeader, Memory, Pulse, Side, Stamped,
};
use crate::core::election::record::{Epoch, Record, Stamp};
use crate::core::election::seeded::paxos::{Accepted, Acceptor, Ballot, Stage, Vote};
use crate::core::election::seeded::wire::{
    self as seeded, Based, Claim, Greeting, MAX_ADDRESS_BYTES, MAX_LISTED, Observation, Rejection,
    SeededMessage,
};
use crate::core::election::seeded::{Intervals, Listed, MemberState, SeededRules};
use crate::core::id::{Fingerprint, Incarnation, MAX_PEER_ID_BYTES, PeerId};
use crate::core::quorum::{QuorumPolicy, RosterDigest};
use crate::core::wire::{
    Authority, Ban, BanVersion, Candidate, Decider, Echo, Envelope, Heartbeat, Hello, HelloAck,
    HostMode, MAX_JOIN_PAYLOAD_BYTES, MAX_KICKED, MAX_PEER_ADDRESSES, MAX_PEER_LIST_ENTRIES,
    MAX_REASON_BYTES, MergePolicy, Message, NoPlace, Opaque, PeerEntry, Probe, RoomPolicy,
    RoomRules, Strategy, Topology, Undecided, Verdict,
};
use crate::net::frame::{
    ControlFrame, DatagramHeader, DatagramRole, LaneHeader, MAX_ACKED_NUMBERS, MessageHeader,
    MessageRole, Sequence,
};

/// A member as known to a liar.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) id: PeerId,
    pub(crate) key: Fingerprint,
    pub(crate) incarnation: Incarnation,
}

impl Known {
    /// A member whose key and incarnation follow from a number.
    pub(super) fn numbered(name: &str, n: u8) -> Self {
        Self {
            id: PeerId::new(name).expect("valid"),
            key: Fingerprint([n; 32]),
            incarnation: Incarnation {
                started_us: 7,
                random: n.into(),
            },
        }
    }
}

/// Makes values. Its knowledge of the room makes its lies credible.
pub(crate) struct Wild<'a> {
    pub(crate) chance: Chance<'a>,
    /// The sender.
    pub(crate) me: Known,
    /// Other members, honest and not.
    pub(crate) others: Vec<Known>,
    /// The largest record received.
    pub(crate) record: Record,
    /// The rules of the room.
    pub(crate) policy: RoomPolicy,
    /// Addresses at which no process, or a liar, accepts links.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Heartbeats made so far: a receiver ignores an older number than the newest.
    pub(crate) beats: u64,
    /// Whether it avoids messages that cost a member its link at once.
    pub(crate) tame: bool,
    /// Whether it uses the rights of a leader against others: it names known members in its lists of kicked peers, and
    /// closes the room. From a member that may not lead that must have no effect.
    pub(crate) usurps: bool,
}

/// Lists the variants of an enum: `NAMES`, `name_of` a value, and a random value of the `nth`.
macro_rules! variants {
    ($module:ident, $type:ident, |$wild:ident| { $($variant:ident => $value:expr,)* }) => {
        pub(crate) mod $module {
            use super::*;

            pub(crate) const NAMES: &[&str] = &[$(stringify!($variant)),*];

            // Its exhaustive match is its purpose: some lists never call it.
            #[allow(dead_code)]
            pub(crate) fn name_of(value: &$type) -> &'static str {
                match value {
                    $($type::$variant { .. } => stringify!($variant),)*
                }
            }

            pub(crate) fn nth(n: usize, wild: &mut Wild<'_>) -> $type {
                let makers: [fn(&mut Wild<'_>) -> $type; NAMES.len()] =
                    [$(|$wild: &mut Wild<'_>| {
                        let _ = &$wild; // some variants need nothing of it
                        $value
                    }),*];
                makers[n % NAMES.len()](wild)
            }

            #[allow(dead_code)]
            pub(crate) fn any(wild: &mut Wild<'_>) -> $type {
                let n = wild.chance.below(NAMES.len());
                nth(n, wild)
            }
        }
    };
}

variants!(control_frames, ControlFrame, |wild| {
    Ready => ControlFrame::Ready,
    Core => ControlFrame::Core(wild.envelope()),
    Resume => ControlFrame::Resume { missed: wild.number(0) },
    Ack => ControlFrame::Ack {
        lane: wild.small(0) as u16,
        next: wild.number(0),
    },
    AckUnordered => ControlFrame::AckUnordered {
        next: wild.number(0),
        taken: wild.list(MAX_ACKED_NUMBERS, |wild| wild.number(0)),
    },
    Relayed => ControlFrame::Relayed {
        lane: wild.small(0) as u16,
        next: wild.number(0),
    },
    BroadcastAgain => ControlFrame::BroadcastAgain,
});

variants!(datagram_roles, DatagramRole, |wild| {
    Peer => DatagramRole::Peer,
    Central => DatagramRole::Central { token: wild.token() },
    Relayed => {
        let origin = wild.known();
        DatagramRole::Relayed {
            origin: origin.id.clone(),
            incarnation: wild.incarnation_of(&origin),
            token: wild.own_token(),
        }
    },
});

variants!(messages, Message, |wild| {
    PeerList => Message::PeerList(wild.list(MAX_PEER_LIST_ENTRIES, Wild::entry)),
    Heartbeat => Message::Heartbeat(wild.heartbeat()),
    Leave => Message::Leave { successor: wild.maybe_id() },
    LeaveAck => Message::LeaveAck,
    Election => Message::Election(wild.election()),
    JoinRequest => Message::JoinRequest {
        request: wild.number(1),
        candidate: wild.candidate(),
    },
    JoinAnswer => Message::JoinAnswer {
        request: wild.number(1),
        verdict: verdicts::any(wild),
    },
    Admitted => Message::Admitted {
        entry: wild.entry(),
        incarnation: wild.incarnation(),
    },
    Kicked => {
        let (peer, key) = wild.kicked_peer();
        let ban = wild.chance.flip().then(|| wild.ban_version());
        Message::Kicked { peer, key, code: wild.signed(), bytes: wild.reason(), ban }
    },
    RoomRules => Message::RoomRules(wild.room_rules()),
    Standing => Message::Standing {
        // A member that may lead has the rights that it must not usurp.
        eligible: wild.chance.flip() && !wild.usurps,
        priority: wild.signed(),
        successor: wild.maybe_id(),
    },
    Unbanned => Message::Unbanned(wild.list(MAX_KICKED, Wild::ban)),
    Disconnected => Message::Disconnected { code: wild.signed(), bytes: wild.reason() },
    JoinWithdrawn => Message::JoinWithdrawn { request: wild.number(1) },
    Unlinked => Message::Unlinked { peer: wild.id(), other: wild.id() },
    UnlinkedLeft => Message::UnlinkedLeft { peer: wild.id() },
});

variants!(verdicts, Verdict, |wild| {
    Accepted => Verdict::Accepted,
    DuplicatePeerId => Verdict::DuplicatePeerId,
    Full => Verdict::Full(*wild.chance.pick(&[NoPlace::Newcomers, NoPlace::Connections { limit: u32::MAX }, NoPlace::Members { limit: 0 }])),
    Rejected => Verdict::Rejected { reason: wild.signed(), bytes: wild.reason() },
    Timeout => Verdict::Timeout(*wild.chance.pick(&[Undecided::Host, Undecided::HostSilent, Undecided::Leader, Undecided::Leaving])),
    NotLeader => Verdict::NotLeader,
});

variants!(pulses, Pulse, |wild| {
    Follows => Pulse::Follows { record: wild.record(), live: wild.chance.flip() },
    Leads => Pulse::Leads {
        record: wild.own_record(),
        weight: wild.small(3),
        led_ms: wild.number(1000),
        election_timeout_min_ms: wild.small(300),
    },
});

variants!(elections, ElectionMessage, |wild| {
    PreVoteRequest => ElectionMessage::PreVoteRequest {
        round: wild.number(1),
        candidate: wild.own_id(),
        term: wild.number(wild.record.stamp.term),
    },
    PreVoteResponse => ElectionMessage::PreVoteResponse {
        round: wild.number(1),
        voter: wild.own_id(),
        granted: wild.chance.flip(),
        record: wild.record(),
        live: wild.live(),
    },
    VoteRequest => ElectionMessage::VoteRequest {
        round: wild.number(1),
        candidate: wild.own_id(),
        asked_by: wild.maybe_id(),
    },
    VoteResponse => ElectionMessage::VoteResponse {
        round: wild.number(1),
        voter: wild.own_id(),
        granted: wild.chance.flip(),
        record: wild.record(),
        live: wild.live(),
    },
    LeaderAssign => ElectionMessage::LeaderAssign {
        record: wild.assignment(),
        seq: wild.number(1),
    },
    LeaderAssignAck => ElectionMessage::LeaderAssignAck {
        seq: wild.number(1),
        accepted: wild.chance.flip(),
        record: wild.record(),
    },
    Nack => ElectionMessage::Nack { record: wild.record(), live: wild.live() },
    ForeignSide => ElectionMessage::ForeignSide {
        peer: wild.id(),
        ours: wild.side(),
        theirs: wild.side(),
    },
    TimeoutNow => ElectionMessage::TimeoutNow { target: wild.id() },
    TransferRequest => ElectionMessage::TransferRequest {
        seq: wild.number(1),
        target: wild.id(),
    },
    TransferRefused => ElectionMessage::TransferRefused { seq: wild.number(1) },
});

variants!(seeded_messages, SeededMessage, |wild| {
    LeaderQuery => SeededMessage::LeaderQuery { query: wild.number(1) },
    LeaderQueryResponse => SeededMessage::LeaderQueryResponse { query: wild.number(1) },
    JoinClusterRequest => SeededMessage::JoinClusterRequest { request: wild.number(1) },
    JoinClusterResponse => SeededMessage::JoinClusterResponse {
        request: wild.number(1),
        answer: match wild.chance.below(4) {
            0 => Err(Rejection::NotLeader),
            1 => Err(Rejection::OtherVersion),
            _ => Ok(wild.claim()),
        },
    },
    JoiningMember => {
        let of = wild.known();
        SeededMessage::JoiningMember {
            change: wild.number(1),
            member: of.id.clone(),
            incarnation: wild.incarnation_of(&of),
        }
    },
    MemberStatusUpdate => {
        let Listed { id, incarnation, state } = wild.listed();
        let change = wild.number(1);
        SeededMessage::MemberStatusUpdate { change, member: id, incarnation, state }
    },
    ClusterAlignment => SeededMessage::ClusterAlignment {
        change: wild.number(1),
        members: wild.list(MAX_LISTED, Wild::listed),
    },
    LeaderKeepAlive => SeededMessage::LeaderKeepAlive {
        digest: postcard::from_bytes(&[wild.chance.byte(); 16]).expect("16 bytes are one"),
        acked_us: wild.chance.flip().then(|| wild.number(1000)),
    },
    LeaderKeepAliveAck => SeededMessage::LeaderKeepAliveAck { sent_us: wild.number(1000) },
    SeedKeepAlive => SeededMessage::SeedKeepAlive { claim: wild.claim() },
    SeedKeepAliveAck => SeededMessage::SeedKeepAliveAck,
    LeaderRelieve => SeededMessage::LeaderRelieve { winner: wild.claim() },
    ReJoinCluster => SeededMessage::ReJoinCluster { winner: wild.claim() },
    LeaderStatusQuery => SeededMessage::LeaderStatusQuery { query: wild.number(1) },
    LeaderStatusQueryResponse => SeededMessage::LeaderStatusQueryResponse {
        query: wild.number(1),
        healthy: wild.chance.flip(),
    },
    Proposal => SeededMessage::Proposal {
        stage: *wild.chance.pick(&[Stage::Pre, Stage::Formal]),
        ballot: wild.ballot(),
        candidate: wild.own_id(),
    },
    Vote => SeededMessage::Vote { ballot: wild.ballot(), vote: votes::any(wild) },
    LeaderElected => SeededMessage::LeaderElected { claim: wild.claim() },
});

variants!(votes, Vote, |wild| {
    Promised => Vote::Promised(wild.chance.flip().then(|| wild.accepted())),
    Accepted => Vote::Accepted,
    Refused => Vote::Refused(wild.ballot()),
});

variants!(member_states, MemberState, |_wild| {
    Init => MemberState::Init,
    Joining => MemberState::Joining,
    Active => MemberState::Active,
    Unreachable => MemberState::Unreachable,
    Leaving => MemberState::Leaving,
    Removed => MemberState::Removed,
});

variants!(probes, Probe, |wild| {
    Ping => Probe::Ping { nonce: wild.number(1) },
    Pong => Probe::Pong { nonce: wild.number(1) },
});

variants!(roles, MessageRole, |wild| {
    Peer => MessageRole::Peer,
    Leader => MessageRole::Leader(wild.own_token()),
    Relayed => {
        let origin = wild.known();
        MessageRole::Relayed {
            origin: origin.id.clone(),
            incarnation: wild.incarnation_of(&origin),
            origin_seq: wild.number(0),
            token: wild.own_token(),
        }
    },
    Central => {
        let origin_seq = wild.number(0);
        MessageRole::Central {
            origin_seq,
            relayed_before: if wild.tame { origin_seq } else { wild.number(origin_seq) },
            token: wild.token(),
        }
    },
    Forwarded => MessageRole::Forwarded { origin: wild.id(), token: wild.own_token() },
});

variants!(strategies, Strategy, |wild| {
    Raft => Strategy::Raft,
    Gossip => Strategy::Gossip { strict_lowest: wild.chance.flip() },
    Seeded => Strategy::Seeded(SeededRules {
        strict_start: wild.chance.flip(),
        never_alone: wild.chance.flip(),
        intervals: Intervals::default(),
    }),
    Etcd => Strategy::Etcd(EtcdRules { prefix: wild.chance.u64() }),
});

variants!(quorums, QuorumPolicy, |wild| {
    Dynamic => QuorumPolicy::Dynamic,
    Static => QuorumPolicy::Static {
        voters: wild.small(64),
        roster: RosterDigest([wild.chance.byte(); 32]),
    },
});

variants!(merges, MergePolicy, |_wild| {
    LargestSide => MergePolicy::LargestSide,
    HighestTerm => MergePolicy::HighestTerm,
});

variants!(authorities, Authority, |_wild| {
    Anyone => Authority::Anyone,
    LeaderOnly => Authority::LeaderOnly,
});

variants!(host_modes, HostMode, |_wild| {
    Off => HostMode::Off,
    Host => HostMode::Host,
    Guest => HostMode::Guest,
});

variants!(topologies, Topology, |_wild| {
    Mesh => Topology::Mesh,
    Star => Topology::Star,
});

impl Wild<'_> {
    /// A number that may be extreme, or close to `near`.
    pub(crate) fn number(&mut self, near: u64) -> u64 {
        let kinds = if self.tame { 5 } else { 13 };
        match self.chance.below(kinds) {
            0 => 0,
            1 => near,
            2 => near.saturating_add(1),
            3 => near.saturating_sub(1),
            4 => near.saturating_add(u64::from(self.chance.byte())),
            5 => u64::MAX,
            6 => u64::MAX - 1,
            7 => 1 << 63,
            8 => near.saturating_add(1 << 20),
            9 => near.saturating_add((1 << 20) + 1),
            10 => u64::from(u32::MAX) + u64::from(self.chance.flip()),
            11 => 1 << 48,
            _ => self.chance.u64(),
        }
    }

    fn small(&mut self, near: u64) -> u32 {
        let number = self.number(near);
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn signed(&mut self) -> i32 {
        *self.chance.pick(&[0, 1, -1, 100, i32::MAX, i32::MIN])
    }

    fn list<T>(&mut self, limit: usize, make: fn(&mut Self) -> T) -> Vec<T> {
        // Most are short: a long one costs as much as a hundred others.
        let len = match self.chance.one_in(8) {
            true => self.chance.length(limit, !self.tame),
            false => self.chance.below(4),
        };
        (0..len).map(|_| make(self)).collect()
    }

    pub(crate) fn known(&mut self) -> Known {
        match self.chance.below(self.others.len() + 2) {
            0 => self.me.clone(),
            n if n <= self.others.len() => self.others[n - 1].clone(),
            _ => Known {
                id: self.stranger(),
                key: Fingerprint([self.chance.byte(); 32]),
                incarnation: Incarnation {
                    started_us: self.number(1),
                    random: self.number(1),
                },
            },
        }
    }

    fn stranger(&mut self) -> PeerId {
        let text = match self.chance.below(6) {
            0 => "\u{10ffff}".repeat(MAX_PEER_ID_BYTES / 4),
            1 => "!".to_owned(),
            2 => "~".repeat(MAX_PEER_ID_BYTES),
            // A low and a high one of a bounded number.
            n => format!(
                "{}{}",
                if n % 2 == 0 { "0" } else { "x" },
                self.chance.byte()
            ),
        };
        PeerId::new(&text).unwrap_or_else(|_| self.me.id.clone())
    }

    fn id(&mut self) -> PeerId {
        self.known().id
    }

    fn maybe_id(&mut self) -> Option<PeerId> {
        self.chance.flip().then(|| self.id())
    }

    /// Mostly its own id: another's is a violation.
    fn own_id(&mut self) -> PeerId {
        match !self.tame && self.chance.one_in(8) {
            true => self.id(),
            false => self.me.id.clone(),
        }
    }

    fn maybe_known_leader(&mut self) -> Option<(PeerId, Fingerprint)> {
        let known = self.known();
        self.chance.flip().then_some((known.id, known.key))
    }

    /// A member, mostly with its key; or none.
    fn maybe_known(&mut self) -> (Option<PeerId>, Option<Fingerprint>) {
        if self.chance.one_in(4) {
            return (None, None);
        }
        let known = self.known();
        let key = (!self.chance.one_in(8)).then_some(known.key);
        (Some(known.id), key)
    }

    fn incarnation_of(&mut self, of: &Known) -> Incarnation {
        let Incarnation { started_us, random } = of.incarnation;
        match self.chance.below(4) {
            0 | 1 => of.incarnation,
            2 => Incarnation {
                started_us: self.number(started_us),
                random,
            },
            _ => Incarnation {
                started_us: *self.chance.pick(&[0, u64::MAX]),
                random: *self.chance.pick(&[0, u64::MAX]),
            },
        }
    }

    fn incarnation(&mut self) -> Incarnation {
        let of = self.known();
        self.incarnation_of(&of)
    }

    fn address(&mut self) -> SocketAddr {
        const ELSEWHERE: [SocketAddr; 6] = [
            SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 9),
            SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::BROADCAST), 9),
            SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(224, 0, 0, 251)), 5353),
            SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
            SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::LOCALHOST), 65535),
            SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
        ];
        match self.addresses.is_empty() || self.chance.flip() {
            true => *self.chance.pick(&ELSEWHERE),
            false => self.addresses[self.chance.below(self.addresses.len())],
        }
    }

    fn entry(&mut self) -> PeerEntry {
        let of = self.known();
        let key = match self.chance.one_in(4) {
            true => Fingerprint([self.chance.byte(); 32]),
            false => of.key,
        };
        let count = self.chance.length(MAX_PEER_ADDRESSES, !self.tame);
        PeerEntry {
            id: of.id,
            key,
            addresses: (0..count).map(|_| self.address()).collect(),
        }
    }

    /// A member that a leader might kick: a known one only if the sender may not kick.
    fn kicked_peer(&mut self) -> (PeerId, Fingerprint) {
        if self.usurps {
            let of = self.known();
            return (of.id, of.key);
        }
        (self.stranger(), Fingerprint([self.chance.byte(); 32]))
    }

    fn room_rules(&mut self) -> RoomRules {
        RoomRules {
            version: (self.stamp(), self.number(1)),
            set_by: self.decider(),
            max_peers: match self.usurps {
                true => self.small(4),
                false => *self.chance.pick(&[0, 64, u32::MAX]),
            },
            bans: self.list(MAX_KICKED, Self::ban),
        }
    }

    fn ban(&mut self) -> Ban {
        let (peer, key) = self.kicked_peer();
        Ban {
            version: self.ban_version(),
            by: self.decider(),
            lifted: self.chance.flip(),
            ..Ban::new(peer, key)
        }
    }

    fn decider(&mut self) -> Option<Decider> {
        let of = self.known();
        let incarnation = self.incarnation_of(&of);
        let leader = of.id;
        self.chance.flip().then_some(Decider {
            leader,
            incarnation,
        })
    }

    fn ban_version(&mut self) -> BanVersion {
        (self.stamp(), self.number(1) as u32)
    }

    fn reason(&mut self) -> Vec<u8> {
        let len = self.chance.length(MAX_REASON_BYTES, !self.tame);
        self.chance.bytes(len)
    }

    fn candidate(&mut self) -> Candidate {
        let len = match self.chance.one_in(4) {
            true => self.chance.length(MAX_JOIN_PAYLOAD_BYTES, !self.tame),
            false => 0,
        };
        Candidate {
            entry: self.entry(),
            incarnation: self.incarnation(),
            payload: self.chance.bytes(len),
        }
    }

    fn epoch(&mut self) -> Epoch {
        match self.chance.below(3) {
            0 => Epoch::default(),
            1 => self.record.stamp.epoch.clone(),
            _ => {
                let (assigner, assigner_key) = self.maybe_known();
                Epoch {
                    override_seq: self.number(self.record.stamp.epoch.override_seq),
                    assigner,
                    assigner_key,
                }
            }
        }
    }

    fn stamp(&mut self) -> Stamp {
        Stamp {
            epoch: self.epoch(),
            term: self.number(self.record.stamp.term),
        }
    }

    fn record(&mut self) -> Record {
        match self.chance.below(4) {
            0 => Record::default(),
            1 => self.record.clone(),
            _ => {
                let (leader, leader_key) = self.maybe_known();
                Record {
                    stamp: self.stamp(),
                    leader,
                    leader_key,
                    assigned: self.chance.one_in(4),
                }
            }
        }
    }

    /// A record in which the sender leads.
    fn own_record(&mut self) -> Record {
        let record = self.record();
        match !self.tame && self.chance.one_in(8) {
            true => record,
            false => Record {
                leader: Some(self.me.id.clone()),
                leader_key: Some(self.me.key),
                ..record
            },
        }
    }

    /// A record that the sender made by SetLeader.
    fn assignment(&mut self) -> Record {
        let mut record = self.record();
        if self.tame || !self.chance.one_in(8) {
            record.stamp.epoch = Epoch {
                override_seq: self.number(self.record.stamp.epoch.override_seq),
                assigner: Some(self.me.id.clone()),
                assigner_key: Some(self.me.key),
            };
            let leader = self.known();
            record.leader = Some(leader.id);
            record.leader_key = Some(leader.key);
            record.assigned = true;
        }
        record
    }

    fn live(&mut self) -> Option<LiveLeader> {
        if self.chance.one_in(3) {
            return None;
        }
        let of = self.known();
        Some(LiveLeader {
            incarnation: self.incarnation_of(&of),
            id: of.id,
            key: of.key,
            weight: self.small(3),
            led_ms: self.number(1000),
            rest_ms: self.small(1000),
        })
    }

    fn side(&mut self) -> Side {
        Side {
            record: self.record(),
            live: self.live(),
            lone: self.chance.flip(),
            since: self.number(3),
            hold_binds: self.chance.flip(),
        }
    }

    fn heartbeat(&mut self) -> Heartbeat {
        let echo = self.chance.flip().then(|| Echo {
            seq: self.number(10),
            held_us: self.number(1000),
        });
        self.beats += 1;
        Heartbeat {
            seq: match !self.tame && self.chance.one_in(16) {
                true => self.number(self.beats),
                false => self.beats,
            },
            echo,
            host_silent_ms: self.small(20_000),
            pulse: self.part(
                |wild| {
                    Opaque::of(&Beat {
                        writes: wild.number(3),
                        pulse: pulses::any(wild),
                        memory: wild.chance.flip().then(|| Memory {
                            since: wild.number(3),
                            remembered: wild.number(3),
                            sure: wild.chance.flip(),
                        }),
                    })
                },
                |wild| {
                    Opaque::of(&Leads {
                        follows: wild.maybe_known_leader(),
                        leads: wild.chance.flip(),
                    })
                },
                |wild| Opaque::of(&wild.seeded_beat()),
            ),
        }
    }

    /// A part of the room's strategy; else of any strategy, or one that cannot be decoded.
    fn part(
        &mut self,
        of_raft: fn(&mut Self) -> Opaque,
        of_gossip: fn(&mut Self) -> Opaque,
        of_seeded: fn(&mut Self) -> Opaque,
    ) -> Opaque {
        let strategy = match self.tame || self.chance.flip() {
            true => self.policy.strategy,
            false => strategies::any(self),
        };
        if !self.tame && self.chance.one_in(32) {
            let len = self.chance.length(64, true);
            return Opaque::from(&self.chance.bytes(len)[..]);
        }
        match strategy {
            Strategy::Raft => of_raft(self),
            Strategy::Gossip { .. } => of_gossip(self),
            Strategy::Seeded(_) => of_seeded(self),
            // Members with the etcd strategy send each other no election messages.
            Strategy::Etcd(_) => Opaque::of(&()),
        }
    }

    fn observation(&mut self) -> Observation {
        match self.chance.flip() {
            true => Observation {
                leader: self.record.leader.clone(),
                version: self.record.term(),
            },
            false => Observation {
                leader: self.maybe_id(),
                version: self.number(self.record.term()),
            },
        }
    }

    /// A claim, mostly one in which the sender leads.
    fn claim(&mut self) -> Claim {
        let len = self.chance.length(MAX_ADDRESS_BYTES, !self.tame);
        Claim {
            leader: self.own_id(),
            version: self.number(self.record.term()),
            elected: self.chance.flip(),
            address: "~".repeat(len),
        }
    }

    fn listed(&mut self) -> Listed {
        let of = self.known();
        Listed {
            incarnation: self.incarnation_of(&of),
            id: of.id,
            state: member_states::any(self),
        }
    }

    pub(super) fn ballot(&mut self) -> Ballot {
        Ballot {
            counter: self.number(1),
            proposer: self.own_id(),
        }
    }

    fn accepted(&mut self) -> Accepted {
        Accepted {
            ballot: self.ballot(),
            candidate: self.id(),
        }
    }

    fn acceptor(&mut self) -> Acceptor {
        let mut acceptor = Acceptor::default();
        acceptor.decide(self.number(self.record.term()));
        let version = acceptor.open_version();
        if self.chance.flip() {
            let Accepted { ballot, candidate } = self.accepted();
            acceptor.accept(version, &ballot, &candidate);
        }
        if self.chance.flip() {
            acceptor.prepare(version, &self.ballot());
        }
        acceptor
    }

    fn seeded_beat(&mut self) -> seeded::Beat {
        seeded::Beat {
            observed: self.observation(),
            claim: self.chance.flip().then(|| self.claim()),
            decided: self.number(self.record.term()),
            writes: self.number(3),
            since: self.number(3),
            memory: self.chance.flip().then(|| seeded::Memory {
                remembered: self.number(3),
                sure: self.chance.flip(),
                votes: self.chance.flip().then(|| self.acceptor()),
            }),
        }
    }

    /// The election's part of a Hello.
    fn greeting(&mut self) -> Greeting {
        let len = self.chance.length(MAX_ADDRESS_BYTES, !self.tame);
        Greeting {
            beat: self.seeded_beat(),
            is_seed: self.chance.flip(),
            address: "~".repeat(len),
        }
    }

    fn token_of(&mut self, record: fn(&mut Self) -> Record) -> Opaque {
        let record = record(self);
        match self.policy.strategy {
            Strategy::Raft => Opaque::of(&record),
            Strategy::Gossip { .. } => Opaque::of(&record.leader),
            Strategy::Etcd(_) => Opaque::of(&record.leader.as_ref().map(|leader| LeaderToken {
                leader: leader.clone(),
                revision: record.term(),
            })),
            Strategy::Seeded(_) => Opaque::of(&record.leader.as_ref().map(|leader| Claim {
                leader: leader.clone(),
                version: record.term(),
                elected: true,
                address: String::new(),
            })),
        }
    }

    fn token(&mut self) -> Opaque {
        self.token_of(Self::record)
    }

    /// A token in which the sender leads.
    fn own_token(&mut self) -> Opaque {
        self.token_of(Self::own_record)
    }

    /// A message of an election's peer. If it is tame, of the room's own strategy.
    pub(crate) fn election(&mut self) -> Opaque {
        self.part(
            |wild| {
                Opaque::of(&Stamped {
                    stamp: wild.stamp(),
                    writes: wild.number(3),
                    message: elections::any(wild),
                })
            },
            |wild| {
                Opaque::of(&Claimed {
                    sequence: wild.number(1),
                    declares: wild.chance.flip(),
                })
            },
            |wild| {
                Opaque::of(&Based {
                    basis: wild.observation(),
                    writes: wild.number(3),
                    message: seeded_messages::any(wild),
                })
            },
        )
    }

    /// A message with the fields that every control message carries.
    pub(crate) fn envelope(&mut self) -> Envelope {
        let message = messages::any(self);
        self.envelope_of(message)
    }

    pub(crate) fn envelope_of(&mut self, message: Message) -> Envelope {
        let me = self.me.clone();
        Envelope {
            // Receivers ignore another incarnation.
            incarnation: match self.chance.one_in(16) {
                true => self.incarnation_of(&me),
                false => me.incarnation,
            },
            message,
        }
    }

    /// A frame that may travel on the control stream of a linked member.
    pub(crate) fn control_frame(&mut self) -> ControlFrame {
        if !self.tame {
            return control_frames::any(self);
        }
        match self.chance.below(32) {
            0 => ControlFrame::Ack { lane: 0, next: 0 },
            1 => ControlFrame::BroadcastAgain,
            _ => ControlFrame::Core(self.envelope()),
        }
    }

    /// The first frame of a lane.
    pub(crate) fn lane_header(&mut self) -> LaneHeader {
        LaneHeader {
            lane: match self.tame || !self.chance.one_in(8) {
                true => 0,
                false => self.small(0) as u16,
            },
        }
    }

    /// The header of a message; `seq` is the next of its lane.
    pub(crate) fn message_header(&mut self, seq: u64) -> MessageHeader {
        MessageHeader {
            seq: match self.tame || !self.chance.one_in(16) {
                true => seq,
                false => self.number(seq),
            },
            msg_type: match self.tame {
                true => 0x100,
                false => *self.chance.pick(&[0x100, 0xffff, 0x101, 0xff, 0]),
            },
            flags: match self.tame {
                true => 2,
                false => self.chance.byte(),
            },
            channel: match self.tame || !self.chance.one_in(8) {
                true => 0,
                false => self.chance.byte(),
            },
            role: roles::any(self),
        }
    }

    /// The header of a message in a datagram.
    pub(crate) fn datagram_header(&mut self) -> DatagramHeader {
        DatagramHeader {
            channel: self.chance.byte(),
            msg_type: match self.tame {
                true => 0x100,
                false => *self.chance.pick(&[0x100, 0xffff, 0x101, 0xff, 0]),
            },
            flags: self.chance.byte(),
            ttl_ms: self.small(0),
            sequence: match self.chance.flip() {
                true => Some(Sequence {
                    key: self.number(0),
                    number: self.number(0),
                }),
                false => None,
            },
            role: datagram_roles::any(self),
        }
    }

    /// The rules of a room, mostly those of this one, because others are refused.
    fn room_policy(&mut self) -> RoomPolicy {
        if !self.chance.one_in(16) {
            return self.policy;
        }
        RoomPolicy {
            strategy: strategies::any(self),
            quorum: quorums::any(self),
            merge: merges::any(self),
            authority: authorities::any(self),
            host_mode: host_modes::any(self),
            topology: topologies::any(self),
        }
    }

    /// A Hello, mostly in the sender's name.
    pub(crate) fn hello(&mut self, eligible: bool) -> Hello {
        let len = match self.chance.one_in(4) {
            true => self.chance.length(MAX_JOIN_PAYLOAD_BYTES, !self.tame),
            false => 0,
        };
        Hello {
            features: self.chance.u64(),
            peer_id: self.own_id(),
            incarnation: self.me.incarnation,
            generation: self.small(0),
            losses: self.small(0),
            by_hand: self.chance.flip(),
            policy: self.room_policy(),
            listen_port: *self.chance.pick(&[0, 1, 9, 65535]),
            max_message_size: self.small(262_144),
            eligible,
            priority: self.signed(),
            has_leader: self.chance.flip(),
            side: self.part(
                |wild| Opaque::of(&wild.side()),
                |_| Opaque::default(),
                |wild| Opaque::of(&wild.greeting()),
            ),
            join_payload: self.chance.bytes(len),
        }
    }

    /// An answer to a Hello.
    pub(crate) fn hello_ack(&mut self) -> HelloAck {
        HelloAck {
            code: self.signed(),
            kicked: self.chance.flip(),
            reason: self.signed(),
            bytes: self.reason(),
            hello: self.hello(true),
        }
    }

    fn others_known(&mut self) -> BTreeMap<PeerId, KnownVoter> {
        let voters = self.list(2, |wild| {
            let known = KnownVoter {
                key: Fingerprint([wild.chance.byte(); 32]),
                incarnation: wild.incarnation(),
                writes: wild.number(3),
            };
            (wild.id(), known)
        });
        voters.into_iter().collect()
    }

    /// The state that a static quorum keeps on disk.
    pub(crate) fn saved(&mut self) -> Saved {
        Saved {
            writes: self.number(3),
            record: self.record(),
            voted_for: self.maybe_id(),
            forgotten: self.chance.flip().then(|| self.number(3)),
            others: self.others_known(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::tests::speaker as wild;

    #[test]
    fn each_maker_makes_its_own_variant() {
        macro_rules! check {
            ($($module:ident),*) => {
                for seed in 0..8 {
                    $(for (n, name) in $module::NAMES.iter().enumerate() {
                        assert_eq!($module::name_of(&$module::nth(n, &mut wild(seed))), *name);
                    })*
                }
            };
        }
        check!(
            control_frames,
            messages,
            verdicts,
            pulses,
            elections,
            seeded_messages,
            votes,
            member_states,
            probes,
            roles,
            strategies,
            quorums,
            merges,
            authorities,
            host_modes
        );
    }

    #[test]
    fn random_choice_reaches_every_variant_in_each_strategy() {
        for seed in 0..3 {
            let mut wild = wild(seed);
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..20_000 {
                if let ControlFrame::Core(envelope) = wild.control_frame() {
                    seen.insert(messages::name_of(&envelope.message));
                }
            }
            assert!(seen.is_superset(&messages::NAMES.iter().copied().collect()));
        }
    }
}
