//! Tables off the wire.

use serde::{Deserialize, Serialize};

use super::*;
use crate::ballot::Place;
use crate::limits::{
    MAX_INDEX, MAX_MEMBERS, MAX_OPENINGS, MAX_OWNED, MAX_PROPERTIES, MAX_ROSTER, MAX_ROWS,
    MAX_VALUE_BYTES, ROW_LIFETIME_MS,
};

/// The encoding of tables, without a check.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Raw {
    last: Option<Place>,
    time_ms: u64,
    history: Option<History>,
    is_exclusive: bool,
    is_used: bool,
    actions: u64,
    roster: Vec<MemberId>,
    openings: Vec<Place>,
    here: Vec<(MemberId, u64)>,
    departed: Vec<(MemberId, u64, u64)>,
    properties: Vec<(String, RawProperty)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct RawProperty {
    value: Vec<u8>,
    owner: Option<PeerId>,
    traits: Traits,
    version: u64,
    waits: bool,
}

impl Raw {
    fn of(tables: &Tables) -> Self {
        let bytes = postcard::to_allocvec(tables).expect("they encode");
        postcard::from_bytes(&bytes).expect("the same form")
    }

    fn decoded(&self) -> Result<Tables, postcard::Error> {
        let bytes = postcard::to_allocvec(self).expect("it encodes");
        postcard::from_bytes(&bytes)
    }

    fn last(&mut self) -> &mut Place {
        self.last.as_mut().expect("a last entry")
    }

    fn property(&mut self, name: &str) -> &mut RawProperty {
        let mut properties = self.properties.iter_mut();
        let property = properties.find(|(key, _)| key == name);
        &mut property.expect("the property").1
    }

    fn add(&mut self, count: usize, property: &RawProperty) {
        let names = (0..count).map(|n| (format!("x{n:04}"), property.clone()));
        self.properties.extend(names);
    }
}

/// Tables with something in each part: "a" leads, "b" is here, "c" and "d" have gone.
fn full() -> Tables {
    let mut log = Log::with(&["b", "c", "d"]);
    log.time_ms = 1000;
    let falls = set("falls", "v").with(Fate::FallsToLeader);
    log.must_set("a", &[set("key", "value").to("b"), falls.to("a")]);
    log.act(&member("b", 1), 2);
    log.depart(&member("a", 1));
    log.time_ms += 50;
    log.depart(&member("c", 1));
    log.open(&member("a", 1));
    log.time_ms += 50;
    log.depart(&member("a", 1));
    log.depart(&member("d", 1));
    log.must_set("b", &[set("free", "")]);
    log.tables
}

fn many(count: usize) -> impl Iterator<Item = MemberId> {
    (0..count).map(|n| member(&format!("m{n:04}"), 1))
}

#[test]
fn valid_tables_come_back() {
    for tables in [Tables::default(), Log::with(&[]).tables, full()] {
        assert!(tables.is_valid());
        assert_eq!(Raw::of(&tables).decoded(), Ok(tables));
    }
}

type Damage = (&'static str, fn(&mut Raw));

/// Asserts that each damage makes full tables invalid.
fn assert_refused(damages: &[Damage]) {
    for (name, damage) in damages {
        let mut raw = Raw::of(&full());
        damage(&mut raw);
        assert!(raw.decoded().is_err(), "{name}");
    }
}

#[test]
fn tables_of_no_log_are_refused() {
    assert_refused(&[
        ("state without an entry", |raw| raw.last = None),
        ("no history", |raw| raw.history = None),
        ("a large history", |raw| {
            raw.history = Some(History(History::END))
        }),
        ("an index that overflows", |raw| {
            raw.last().index = MAX_INDEX + 1
        }),
        ("used, and claims not to be", |raw| raw.is_used = false),
        ("no opening", |raw| raw.openings.clear()),
        ("an opening at 0", |raw| raw.openings[0].index = 0),
        ("an opening after the end", |raw| {
            raw.openings[1].index = raw.last().index + 1
        }),
        ("openings at one index", |raw| {
            raw.openings[1].index = raw.openings[0].index
        }),
        ("openings in one ballot", |raw| {
            raw.openings[0].ballot = raw.openings[1].ballot.clone()
        }),
        ("an entry of a ballot without opening", |raw| {
            raw.last().ballot.number += 1
        }),
        ("too many openings", |raw| {
            let mut newest = raw.last().clone();
            let next = |_| {
                newest.index += 1;
                newest.ballot.number += 1;
                newest.clone()
            };
            raw.openings = (0..=MAX_OPENINGS).map(next).collect();
            raw.last = raw.openings.last().cloned();
        }),
    ]);
}

#[test]
fn impossible_members_are_refused() {
    assert_refused(&[
        ("a large roster", |raw| {
            raw.roster = many(MAX_ROSTER + 1).collect()
        }),
        ("a roster out of order", |raw| {
            raw.roster = vec![member("b", 1), member("a", 1)]
        }),
        ("a member twice on the roster", |raw| {
            raw.roster = vec![member("a", 1), member("a", 1)]
        }),
        ("two incarnations here", |raw| {
            raw.here.push((member("b", 2), 0))
        }),
        ("a member twice", |raw| raw.here.push(raw.here[0].clone())),
        ("members out of order", |raw| {
            raw.here.insert(0, (member("z", 1), 0))
        }),
        ("too many members", |raw| {
            raw.here.extend(many(MAX_MEMBERS).map(|member| (member, 0)));
        }),
        ("here and departed", |raw| {
            raw.departed[0].0 = member("b", 1)
        }),
        ("a departed author twice", |raw| {
            raw.departed[1].0 = raw.departed[0].0.clone()
        }),
        ("departures out of order", |raw| raw.departed.swap(0, 1)),
        ("a departure in the future", |raw| {
            raw.departed[2].2 = raw.time_ms + 1
        }),
        ("a row that is over", |raw| raw.time_ms += ROW_LIFETIME_MS),
        ("too many rows", |raw| {
            let at_ms = raw.time_ms;
            let rows = many(MAX_ROWS - 3).map(|member| (member, 0, at_ms));
            raw.departed.extend(rows);
        }),
    ]);
}

#[test]
fn impossible_properties_are_refused() {
    assert_refused(&[
        ("an owner that is not here", |raw| {
            raw.property("key").owner = Some(peer("c"))
        }),
        ("a version of no entry", |raw| {
            raw.property("key").version = 0
        }),
        ("a version in the future", |raw| {
            raw.property("key").version = 1000
        }),
        ("a wait with an owner", |raw| {
            raw.property("falls").owner = Some(peer("b"))
        }),
        ("a wait of a kind that does not wait", |raw| {
            raw.property("free").waits = true
        }),
        ("a long value", |raw| {
            raw.property("key").value = vec![0; MAX_VALUE_BYTES + 1]
        }),
        ("no key", |raw| raw.properties[0].0.clear()),
        ("a long key", |raw| raw.properties[2].0 = "k".repeat(65)),
        ("keys out of order", |raw| raw.properties.reverse()),
        ("a key twice", |raw| {
            raw.properties.insert(0, raw.properties[0].clone())
        }),
        ("too many keys", |raw| {
            let property = raw.property("free").clone();
            raw.add(MAX_PROPERTIES - 2, &property);
        }),
        ("too many bytes", |raw| {
            raw.property("free").value = vec![0; MAX_VALUE_BYTES];
            let property = raw.property("free").clone();
            raw.add(63, &property);
        }),
        ("too many keys of one owner", |raw| {
            let property = raw.property("key").clone();
            raw.add(MAX_OWNED, &property);
        }),
    ]);
}

#[test]
fn tables_at_their_limits_are_valid() {
    let mut raw = Raw::of(&full());
    raw.last().index = MAX_INDEX;
    raw.property("falls").value = vec![0; MAX_VALUE_BYTES];
    raw.roster = many(MAX_ROSTER).collect();
    raw.here
        .extend(many(MAX_MEMBERS - 1).map(|member| (member, 0)));
    let strangers = many(MAX_ROWS).skip(MAX_MEMBERS - 1 + 4);
    let at_ms = raw.time_ms;
    raw.departed
        .extend(strangers.map(|member| (member, 9, at_ms)));
    let (owned, free) = (raw.property("key").clone(), raw.property("free").clone());
    raw.add(MAX_OWNED - 1, &owned);
    let names = raw.properties.len()..MAX_PROPERTIES;
    raw.properties
        .extend(names.map(|n| (format!("y{n:04}"), free.clone())));
    assert!(raw.decoded().is_ok());
    raw.here.retain(|(here, _)| *here != member("m0000", 1));
    raw.departed.push((member("z", 1), 0, at_ms));
    assert!(raw.decoded().is_ok());
    raw.departed.push((member("z", 2), 0, at_ms));
    assert!(raw.decoded().is_err());
}

#[test]
fn a_part_of_an_encoding_is_refused() {
    let bytes = postcard::to_allocvec(&full()).expect("they encode");
    for end in 0..bytes.len() {
        assert!(postcard::from_bytes::<Tables>(&bytes[..end]).is_err());
    }
}

#[test]
fn a_length_without_items_is_refused() {
    let mut raw = Raw::of(&Log::with(&[]).tables);
    raw.roster.clear();
    let mut bytes = postcard::to_allocvec(&raw).expect("it encodes");
    let head = postcard::to_allocvec(&(&raw.last, 0_u64, raw.history, false)).expect("it encodes");
    bytes.truncate(head.len());
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert!(postcard::from_bytes::<Tables>(&bytes).is_err());
}
