//! Values of every type that travels between members: valid encodings with wild fields.
//!
//! The types' own `Deserialize` makes them, from choices instead of bytes: of a variant for each enum, of a length for
//! each list. [`Maker`] names the fields for which a credible lie is known.

use std::cell::OnceCell;
use std::net::SocketAddr;

use postcard::Error;
use postcard::de_flavors::Slice;
use serde::de::{
    DeserializeOwned, DeserializeSeed as Seed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::{Deserializer, Serialize, forward_to_deserialize_any};

use super::chance::Chance;
use super::decoders::someone;
use crate::core::election::Election;
use crate::core::election::gossip::Gossip;
use crate::core::election::raft::Raft;
use crate::core::election::record::{Epoch, Record};
use crate::core::election::seeded::Seeded;
use crate::core::election::seeded::wire::{MAX_ADDRESS_BYTES, MAX_LISTED, Observation};
use crate::core::id::{Fingerprint, Incarnation, MAX_PEER_ID_BYTES, PeerId};
use crate::core::wire::{
    Envelope, Hello, MAX_JOIN_PAYLOAD_BYTES, MAX_KICKED, MAX_PEER_ADDRESSES, MAX_PEER_LIST_ENTRIES,
    MAX_REASON_BYTES, Message, Opaque, RoomPolicy, Strategy,
};
use crate::net::frame::{ControlFrame, MAX_ACKED_NUMBERS, MessageHeader};

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

/// A part of a message that only the room's strategy reads.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// A message of its own.
    Message,
    /// In a heartbeat.
    Pulse,
    Hello,
}

/// A type of the wire.
pub(crate) trait Wire: Serialize + DeserializeOwned {}
impl<T: Serialize + DeserializeOwned> Wire for T {}

impl Wild<'_> {
    /// A value of any variant.
    pub(crate) fn any<T: Wire>(&mut self) -> T {
        self.make(None).0
    }

    /// A value of the `nth` variant of [`names`].
    pub(crate) fn nth<T: Wire>(&mut self, n: usize) -> T {
        self.make(Some(n)).0
    }

    /// A value, and the names of its variants.
    fn make<T: Wire>(&mut self, variant: Option<usize>) -> (T, Names) {
        let mut maker = Maker {
            of: self.me.clone(),
            wild: self,
            kept: &Kept::default(),
            variant,
            names: &[],
            at: ("", ""),
            last: 0,
            some: false,
        };
        let value = T::deserialize(&mut maker).expect("each choice is a value");
        (value, maker.names)
    }

    /// A number that may be extreme, or close to `near`.
    pub(crate) fn number(&mut self, near: u64) -> u64 {
        let kinds = if self.tame { 5 } else { 13 };
        match self.chance.below(kinds) {
            0 => 0,
            1 => near,
            2 => near.saturating_add(1),
            3 => near.saturating_sub(1),
            4 => near.saturating_add(u64::from(self.chance.byte())),
            5..9 => *self
                .chance
                .pick(&[u64::MAX, u64::MAX - 1, 1 << 63, 1 << 48]),
            9 | 10 => near.saturating_add((1 << 20) + u64::from(self.chance.flip())),
            11 => u64::from(u32::MAX) + u64::from(self.chance.flip()),
            _ => self.chance.u64(),
        }
    }

    pub(crate) fn known(&mut self) -> Known {
        match self.chance.below(self.others.len() + 2) {
            0 => self.me.clone(),
            n if n <= self.others.len() => self.others[n - 1].clone(),
            _ => self.unknown(),
        }
    }

    fn unknown(&mut self) -> Known {
        let name = match self.chance.below(6) {
            0 => "\u{10ffff}".repeat(MAX_PEER_ID_BYTES / 4),
            1 => "!".to_owned(),
            2 => "~".repeat(MAX_PEER_ID_BYTES),
            // A low and a high one of a bounded number.
            n => format!("{}{}", ["0", "x"][n % 2], self.chance.byte()),
        };
        let mut known = Known::numbered(&name, self.chance.byte());
        known.incarnation.started_us = self.number(1);
        known.incarnation.random = self.number(1);
        known
    }

    fn address(&mut self) -> SocketAddr {
        const ELSEWHERE: &str =
            "0.0.0.0:9 255.255.255.255:9 224.0.0.251:5353 [::]:0 [::1]:65535 127.0.0.1:0";
        let elsewhere: Vec<_> = ELSEWHERE.split(' ').collect();
        match self.addresses.is_empty() || self.chance.flip() {
            true => self.chance.pick(&elsewhere).parse().expect("an address"),
            false => *self.chance.pick(&self.addresses),
        }
    }

    /// A record that names the sender: as the leader or, by SetLeader, as the assigner.
    fn own_record(&mut self, assigned: bool) -> Record {
        let mut record: Record = self.any();
        if !self.tame && self.chance.one_in(8) {
            return record;
        }
        let mut leader = self.me.clone();
        if assigned {
            let newer = self.number(self.record.stamp.epoch.override_seq);
            let epoch = &mut record.stamp.epoch;
            epoch.override_seq = newer;
            (epoch.assigner, epoch.assigner_key) = (Some(leader.id), Some(leader.key));
            record.assigned = true;
            leader = self.known();
        }
        (record.leader, record.leader_key) = (Some(leader.id), Some(leader.key));
        record
    }

    /// A part of the room's strategy; else of any strategy, or one that cannot be decoded.
    fn part(&mut self, of: Part) -> Opaque {
        let strategy = match self.tame || self.chance.flip() {
            true => self.policy.strategy,
            false => self.any(),
        };
        if !self.tame && self.chance.one_in(32) {
            let len = self.chance.length(64, true);
            return Opaque::from(&self.chance.bytes(len)[..]);
        }
        match strategy {
            Strategy::Raft => self.part_of::<Raft>(of),
            Strategy::Gossip { .. } => self.part_of::<Gossip>(of),
            Strategy::Seeded(_) => self.part_of::<Seeded>(of),
            // Members with the etcd strategy send each other no election messages.
            Strategy::Etcd(_) => Opaque::of(&()),
        }
    }

    fn part_of<E: Election>(&mut self, of: Part) -> Opaque {
        match of {
            Part::Message => Opaque::of(&self.any::<E::Message>()),
            Part::Pulse => Opaque::of(&self.any::<E::Pulse>()),
            Part::Hello => Opaque::of(&self.any::<E::Hello>()),
        }
    }

    /// The token of the leadership of a record.
    fn token(&mut self, record: fn(&mut Self) -> Record) -> Opaque {
        let record = record(self);
        let (leader, term) = (record.leader.clone(), record.term());
        match self.policy.strategy {
            Strategy::Raft => Opaque::of(&record),
            Strategy::Gossip { .. } => Opaque::of(&leader),
            // As the fields of a `LeaderToken`, and of a `Claim`.
            Strategy::Etcd(_) => Opaque::of(&leader.map(|leader| (leader, term))),
            Strategy::Seeded(_) => Opaque::of(&leader.map(|leader| (leader, term, true, ""))),
        }
    }

    /// A message of an election's peer. If it is tame, of the room's own strategy.
    pub(crate) fn election(&mut self) -> Opaque {
        self.part(Part::Message)
    }

    /// The message with the fields that every control message carries.
    pub(crate) fn envelope_of(&mut self, message: Message) -> Envelope {
        let incarnation = self.any();
        Envelope {
            incarnation,
            message,
        }
    }

    /// A frame that may travel on the control stream of a linked member.
    pub(crate) fn control_frame(&mut self) -> ControlFrame {
        if !self.tame {
            return self.any();
        }
        match self.chance.below(32) {
            0 => ControlFrame::Ack { lane: 0, next: 0 },
            1 => ControlFrame::BroadcastAgain,
            _ => ControlFrame::Core(self.any()),
        }
    }

    /// The header of a message; `seq` is the next of its lane.
    pub(crate) fn message_header(&mut self, seq: u64) -> MessageHeader {
        let seq = match self.tame || !self.chance.one_in(16) {
            true => seq,
            false => self.number(seq),
        };
        MessageHeader { seq, ..self.any() }
    }

    /// A Hello, mostly in the sender's name.
    pub(crate) fn hello(&mut self, eligible: bool) -> Hello {
        let mut hello: Hello = self.any();
        hello.eligible = eligible;
        hello
    }
}

/// A deserializer that makes the value it is asked for.
struct Maker<'w, 'a, 'de> {
    wild: &'w mut Wild<'a>,
    kept: &'de Kept,
    /// The variant of the first enum, and the names of its variants.
    variant: Option<usize>,
    names: Names,
    /// The struct or variant that is being made, and its field.
    at: (Name, Name),
    /// The member named last: keys and incarnations belong to it.
    of: Known,
    /// The number made last, and whether the last option has a value.
    last: u64,
    some: bool,
}

/// Bytes that a value borrows while it is made: a list, of which each link is written once.
#[derive(Default)]
struct Kept(OnceCell<(Vec<u8>, Box<Kept>)>);

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("encodes")
}

impl<'de> Maker<'_, '_, 'de> {
    fn keep(&mut self, bytes: Vec<u8>) -> &'de [u8] {
        let (bytes, next) = self.kept.0.get_or_init(|| (bytes, Box::default()));
        self.kept = next;
        bytes
    }

    fn id(&mut self) -> &'de str {
        let wild = &mut *self.wild;
        self.of = match self.at {
            // A leader that usurps nothing kicks no member.
            ("Kicked" | "Ban", "peer") if !wild.usurps => wild.unknown(),
            // The sender: another's name is a violation.
            ("PreVoteRequest" | "VoteRequest" | "Proposal", "candidate")
            | ("Claim", "leader")
            | (_, "voter" | "proposer" | "peer_id")
                if wild.tame || !wild.chance.one_in(8) =>
            {
                wild.me.clone()
            }
            _ => wild.known(),
        };
        let id = self.of.id.as_str().into();
        std::str::from_utf8(self.keep(id)).expect("an id")
    }

    fn number(&mut self) -> u64 {
        let wild = &mut *self.wild;
        let near = match self.at {
            ("Heartbeat", "seq") => {
                wild.beats += 1;
                return match !wild.tame && wild.chance.one_in(16) {
                    true => wild.number(wild.beats),
                    false => wild.beats,
                };
            }
            (_, "features") => return wild.chance.u64(),
            (_, "msg_type") if wild.tame => return 0x100,
            (_, "msg_type") => return *wild.chance.pick(&[0x100, 0xffff, 0x101, 0xff, 0]),
            (_, "listen_port") => return *wild.chance.pick(&[0, 1, 9, 65535]),
            ("LaneHeader", _) if wild.tame || !wild.chance.one_in(8) => return 0,
            (_, "max_peers") if wild.usurps => 4,
            (_, "max_peers") => return *wild.chance.pick(&[0, 64, u32::MAX.into()]),
            (_, "relayed_before") if wild.tame => return self.last,
            (_, "relayed_before") => self.last,
            ("Ban" | "RoomRules" | "Kicked", _) => 1,
            (_, "override_seq") => wild.record.stamp.epoch.override_seq,
            (_, "started_us") => self.of.incarnation.started_us,
            (_, "random") => self.of.incarnation.random,
            (_, "term" | "version" | "decided") => wild.record.term(),
            (_, "writes" | "since" | "remembered" | "forgotten" | "weight") => 3,
            ("Echo", "seq") => 10,
            (_, "voters") => 64,
            (_, "election_timeout_min_ms") => 300,
            (_, "led_ms" | "rest_ms" | "held_us" | "acked_us" | "sent_us") => 1000,
            (_, "host_silent_ms") => 20_000,
            (_, "max_message_size") => 262_144,
            (_, "next" | "missed" | "taken" | "lane" | "origin_seq" | "key" | "number") => 0,
            (_, "generation" | "losses" | "ttl_ms") => 0,
            _ => 1,
        };
        self.last = wild.number(near);
        self.last
    }

    fn flip(&mut self) -> bool {
        let chance = &mut self.wild.chance;
        match self.at {
            ("Hello", "eligible") => true,
            // A member that may lead has the rights that it must not usurp.
            ("Standing", "eligible") => chance.flip() && !self.wild.usurps,
            (_, "assigned") => chance.one_in(4),
            _ => chance.flip(),
        }
    }

    fn byte(&mut self) -> u8 {
        let wild = &mut *self.wild;
        match self.at {
            LAST_OF_HELLO | LAST_OF_HEARTBEAT => 1,
            ("MessageHeader", "flags") if wild.tame => 2,
            ("MessageHeader", "channel") if wild.tame || !wild.chance.one_in(8) => 0,
            _ => wild.chance.byte(),
        }
    }

    fn text(&mut self) -> String {
        let wild = &mut *self.wild;
        "~".repeat(wild.chance.length(MAX_ADDRESS_BYTES, !wild.tame))
    }

    fn bytes(&mut self) -> &'de [u8] {
        let wild = &mut *self.wild;
        let len = match self.at.1 {
            "bytes" => wild.chance.length(MAX_REASON_BYTES, !wild.tame),
            "join_payload" | "payload" if wild.chance.one_in(4) => {
                wild.chance.length(MAX_JOIN_PAYLOAD_BYTES, !wild.tame)
            }
            _ => 0,
        };
        let part = match self.at {
            ("Election", _) => wild.election(),
            (_, "pulse") => wild.part(Part::Pulse),
            (_, "side") => wild.part(Part::Hello),
            ("Central", "token") => wild.token(Wild::any),
            (_, "token") | ("Leader", _) => wild.token(|wild| wild.own_record(false)),
            _ => Opaque::from(&wild.chance.bytes(len)[..]),
        };
        self.keep(part.as_bytes().to_vec())
    }

    fn count(&mut self) -> usize {
        let limit = match self.at {
            ("PeerList", _) => MAX_PEER_LIST_ENTRIES,
            ("Unbanned", _) | (_, "bans") => MAX_KICKED,
            (_, "addresses") => MAX_PEER_ADDRESSES,
            (_, "members") => MAX_LISTED,
            (_, "taken") => MAX_ACKED_NUMBERS,
            _ => 2,
        };
        // Most are few: a long list costs as much as a hundred others.
        match self.at.1 == "addresses" || self.wild.chance.one_in(8) {
            true => self.wild.chance.length(limit, !self.wild.tame),
            false => self.wild.chance.below(4),
        }
    }

    /// A deserializer of a credible value of a type; none if its parts are to be made.
    fn known(&mut self, name: &str) -> Option<postcard::Deserializer<'de, Slice<'de>>> {
        let wild = &mut *self.wild;
        // Receivers refuse a Hello, and ignore a message, with another incarnation. Bytes that have run out make none.
        let is_header = matches!(self.at.0, "Envelope" | "");
        let value = match name {
            "Incarnation" if self.at.0 == "Hello" => encode(&self.of.incarnation),
            "Incarnation" if wild.chance.below(if is_header { 16 } else { 2 }) != 1 => {
                encode(&self.of.incarnation)
            }
            "Fingerprint" if self.at.0 != "PeerEntry" || !wild.chance.one_in(4) => {
                self.of.key.0.into()
            }
            "SocketAddr" => encode(&wild.address()),
            "Record" if self.at.0 == "Leads" => encode(&wild.own_record(false)),
            "Record" if self.at.0 == "LeaderAssign" => encode(&wild.own_record(true)),
            "Record" if wild.chance.one_in(4) => encode(&Record::default()),
            "Record" if wild.chance.one_in(3) => encode(&wild.record),
            "Epoch" if wild.chance.one_in(3) => encode(&Epoch::default()),
            "Epoch" if wild.chance.flip() => encode(&wild.record.stamp.epoch),
            "Observation" if wild.chance.flip() => encode(&Observation {
                leader: wild.record.leader.clone(),
                version: wild.record.term(),
            }),
            // Members with other rules are refused.
            "RoomPolicy" if !wild.chance.one_in(16) => encode(&wild.policy),
            _ => return None,
        };
        Some(postcard::Deserializer::from_bytes(self.keep(value)))
    }

    /// The length of a tuple. The last field of a Hello is one, or absent: members with a state are refused.
    fn length(&mut self, len: usize) -> usize {
        match self.at {
            LAST_OF_HELLO if !self.wild.chance.one_in(16) => 0,
            LAST_OF_HEARTBEAT if self.wild.chance.one_in(4) => 0,
            _ => len,
        }
    }

    /// The fields of a struct or a variant.
    fn fields<V: Visitor<'de>>(&mut self, owner: Name, fields: Names, to: V) -> Made<'de, V> {
        let around = self.at;
        let value = to.visit_seq(Parts(self, owner, fields, fields.len()));
        self.at = around;
        value
    }
}

/// They begin with a 1.
const LAST_OF_HELLO: (Name, Name) = ("Hello", "state");
const LAST_OF_HEARTBEAT: (Name, Name) = ("Heartbeat", "room_time_us");
const SIGNED: [i32; 6] = [0, 1, -1, 100, i32::MAX, i32::MIN];

type Name = &'static str;
type Names = &'static [Name];
type Made<'de, V> = Result<<V as Visitor<'de>>::Value, Error>;

/// Methods of a deserializer that make one plain value.
macro_rules! plain {
    ($($method:ident($($len:ident)?), $visit:ident: |$maker:ident| $value:expr;)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($len: usize,)? to: V) -> Made<'de, V> {
            let $maker = self;
            to.$visit($value)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Maker<'_, '_, 'de> {
    type Error = Error;

    plain! {
        deserialize_bool(), visit_bool: |maker| maker.flip();
        deserialize_u8(), visit_u8: |maker| maker.byte();
        deserialize_u16(), visit_u16: |maker| maker.number() as u16;
        deserialize_u32(), visit_u32: |maker| u32::try_from(maker.number()).unwrap_or(u32::MAX);
        deserialize_u64(), visit_u64: |maker| maker.number();
        deserialize_i32(), visit_i32: |maker| *maker.wild.chance.pick(&SIGNED);
        deserialize_str(), visit_borrowed_str: |maker| maker.id();
        deserialize_string(), visit_string: |maker| maker.text();
        deserialize_bytes(), visit_borrowed_bytes: |maker| maker.bytes();
        deserialize_seq(), visit_seq: |maker| { let count = maker.count(); Parts(maker, "", &[], count) };
        deserialize_tuple(len), visit_seq: |maker| { let len = maker.length(len); Parts(maker, "", &[], len) };
        deserialize_map(), visit_map: |maker| { let count = maker.count(); Parts(maker, "", &[], count) };
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Made<'de, V> {
        unreachable!("no choices are known for {:?}", self.at)
    }

    fn deserialize_option<V: Visitor<'de>>(self, to: V) -> Made<'de, V> {
        let chance = &mut self.wild.chance;
        self.some = match self.at.1 {
            // The leader or assigner comes first.
            "leader_key" | "assigner_key" => self.some && !chance.one_in(8),
            "leader" | "assigner" => !chance.one_in(4),
            "live" => !chance.one_in(3),
            _ => chance.flip(),
        };
        match self.some {
            true => to.visit_some(self),
            false => to.visit_none(),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: Name, to: V) -> Made<'de, V> {
        match self.known(name) {
            Some(mut known) => known.deserialize_newtype_struct(name, to),
            None => to.visit_newtype_struct(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(self, name: Name, fields: Names, to: V) -> Made<'de, V> {
        match self.known(name) {
            Some(mut known) => known.deserialize_struct(name, fields, to),
            None => self.fields(name, fields, to),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(self, name: Name, variants: Names, to: V) -> Made<'de, V> {
        if let Some(mut known) = self.known(name) {
            return known.deserialize_enum(name, variants, to);
        }
        if self.names.is_empty() {
            self.names = variants;
        }
        let n = match self.variant.take() {
            Some(n) => n,
            None => self.wild.chance.below(variants.len()),
        };
        to.visit_enum(Parts(self, variants[n], &[], n))
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        i8 i16 i64 f32 f64 char byte_buf unit unit_struct tuple_struct identifier ignored_any
    }
}

/// A struct's name and fields, or the items of a list, and how many of them are left; or a variant's name and number.
struct Parts<'m, M>(&'m mut M, Name, Names, usize);

impl<'de> SeqAccess<'de> for Parts<'_, Maker<'_, '_, 'de>> {
    type Error = Error;

    fn next_element_seed<T: Seed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Self(maker, owner, fields, left) = self;
        if *left == 0 {
            return Ok(None);
        }
        if !fields.is_empty() {
            maker.at = (owner, fields[fields.len() - *left]);
        }
        *left -= 1;
        seed.deserialize(&mut **maker).map(Some)
    }
}

impl<'de> MapAccess<'de> for Parts<'_, Maker<'_, '_, 'de>> {
    type Error = Error;

    fn next_key_seed<K: Seed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<V: Seed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(&mut *self.0)
    }
}

impl<'de> EnumAccess<'de> for Parts<'_, Maker<'_, '_, 'de>> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: Seed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        Ok((seed.deserialize((self.3 as u32).into_deserializer())?, self))
    }
}

impl<'de> VariantAccess<'de> for Parts<'_, Maker<'_, '_, 'de>> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: Seed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        self.0.at = (self.1, "");
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, to: V) -> Made<'de, V> {
        to.visit_seq(Parts(self.0, "", &[], len))
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: Names, to: V) -> Made<'de, V> {
        self.0.fields(self.1, fields, to)
    }
}

/// The names of an enum's variants.
pub(crate) fn names<T: Wire>() -> Names {
    let mut wild = someone(Chance::Bytes(&[]), RoomPolicy::default());
    wild.make::<T>(None).1
}

/// The name of a value's variant.
pub(crate) fn name_of<T: Wire>(value: &T) -> &'static str {
    names::<T>()[usize::from(encode(value)[0])]
}
