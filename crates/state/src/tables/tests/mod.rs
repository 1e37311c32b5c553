//! Tests of the tables: a log by hand, and its entries.

use std::collections::BTreeSet;

use bytes::Bytes;
use room_core::id::{Incarnation, PeerId};

use super::{Effects, Presence, Property, Refusal, Tables};
use crate::ballot::{Ballot, History, MemberId};
use crate::entry::{
    Contents, Entry, Expected, Fate, Key, OwnerChange, PropertyChange, Request, Roster, Traits,
    ValueChange,
};

mod members;
mod ownership;
mod properties;
mod random;
mod wire;

fn peer(name: &str) -> PeerId {
    PeerId::new(name).expect("a peer id")
}

/// A member by its name, and the number of its incarnation.
fn member(name: &str, start: u64) -> MemberId {
    let incarnation = Incarnation {
        started_us: start,
        random: 0,
    };
    MemberId {
        peer: peer(name),
        incarnation,
    }
}

fn key(name: &str) -> Key {
    Key::new(name).expect("a key")
}

/// A change that sets a value whatever the version, and leaves the owner.
fn set(name: &str, value: &'static str) -> PropertyChange {
    PropertyChange {
        key: key(name),
        value: ValueChange::Set(Bytes::from_static(value.as_bytes())),
        owner: OwnerChange::Keep,
        traits: Traits::default(),
        expected: Expected::Any,
    }
}

fn keep(name: &str) -> PropertyChange {
    PropertyChange {
        value: ValueChange::Keep,
        ..set(name, "")
    }
}

fn remove(name: &str) -> PropertyChange {
    PropertyChange {
        value: ValueChange::Remove,
        ..set(name, "")
    }
}

impl PropertyChange {
    fn to(self, owner: &str) -> Self {
        let owner = OwnerChange::To(peer(owner));
        Self { owner, ..self }
    }

    fn ownerless(self) -> Self {
        let owner = OwnerChange::Nobody;
        Self { owner, ..self }
    }

    fn at(self, version: u64) -> Self {
        let expected = Expected::Version(version);
        Self { expected, ..self }
    }

    fn with(mut self, fate: Fate) -> Self {
        self.traits.fate = fate;
        self
    }

    fn owner_only(mut self) -> Self {
        self.traits.owner_only = true;
        self
    }
}

/// A log by hand.
struct Log {
    tables: Tables,
    ballot: Ballot,
    time_ms: u64,
    number: u64,
}

impl Log {
    /// A log that this member opened.
    fn of(leader: &MemberId) -> Self {
        let leader = leader.clone();
        let mut log = Self {
            tables: Tables::default(),
            ballot: Ballot { number: 0, leader },
            time_ms: 0,
            number: 0,
        };
        log.open(&log.ballot.leader.clone());
        log
    }

    /// A log of the leader "a", with further members in the room.
    fn with(others: &[&str]) -> Self {
        let mut log = Self::of(&member("a", 1));
        for other in others {
            log.arrive(&member(other, 1));
        }
        log
    }

    fn append(&mut self, contents: Contents) -> Effects {
        let entry = Entry {
            ballot: self.ballot.clone(),
            time_ms: self.time_ms,
            contents,
        };
        assert!(entry.is_valid(), "{entry:?}");
        self.tables.apply(&entry)
    }

    fn open(&mut self, leader: &MemberId) -> Effects {
        self.open_with(leader, BTreeSet::from([leader.clone()]))
    }

    fn open_with(&mut self, leader: &MemberId, roster: Roster) -> Effects {
        self.ballot.number += 1;
        self.ballot.leader = leader.clone();
        self.append(Contents::Open {
            history: History(self.ballot.number),
            exclusive: true,
            roster,
        })
    }

    fn member(&mut self, member: &MemberId, here: bool, counts: bool) -> Effects {
        let member = member.clone();
        self.append(Contents::Member {
            member,
            here,
            counts,
        })
    }

    fn arrive(&mut self, member: &MemberId) -> Effects {
        self.member(member, true, false)
    }

    fn depart(&mut self, member: &MemberId) -> Effects {
        self.member(member, false, false)
    }

    fn request(&mut self, author: &MemberId, number: u64, request: Request) -> Effects {
        let author = author.clone();
        self.append(Contents::Request {
            author,
            number,
            request,
        })
    }

    fn act(&mut self, author: &MemberId, number: u64) -> Effects {
        let (msg_type, data) = (7, Bytes::from_static(b"data"));
        self.request(author, number, Request::Action { msg_type, data })
    }

    /// A property set of the first incarnation of a peer.
    fn set(&mut self, author: &str, changes: &[PropertyChange]) -> Effects {
        self.number += 1;
        let request = Request::Properties(changes.to_vec());
        self.request(&member(author, 1), self.number, request)
    }

    /// A property set that succeeds.
    fn must_set(&mut self, author: &str, changes: &[PropertyChange]) -> Effects {
        let effects = self.set(author, changes);
        assert_eq!(effects.outcome, Some(Ok(())), "{changes:?}");
        effects
    }

    fn property(&self, name: &str) -> Option<&Property> {
        self.tables.property(&key(name))
    }

    fn owner(&self, name: &str) -> Option<&str> {
        let property = self.property(name).expect("the property");
        property.owner.as_ref().map(PeerId::as_str)
    }

    fn version(&self, name: &str) -> u64 {
        self.property(name).expect("the property").version
    }
}

/// The names of the properties that changed, in order.
fn names(effects: &Effects) -> Vec<&str> {
    let keys = effects.properties.iter().map(|(key, _)| key.as_str());
    keys.collect()
}
