//! An etcd server as its clients see it: keys with revisions, leases, watches and compaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use room_core::election::engine::{
    Answer, Change, Entry, Failure, FailureKind, Lease, Range, Request, Revision,
};
use room_core::time::{Duration, Time};

/// A store, with its whole state at one moment.
#[derive(Debug)]
pub struct Store {
    revision: Revision,
    keys: BTreeMap<Arc<str>, Stored>,
    /// Every change, compacted ones too, to look at the past.
    history: Vec<(Revision, Change)>,
    /// Changes before this revision are compacted.
    compacted: Revision,
    leases: BTreeMap<Lease, Lived>,
    granted: Lease,
    /// Minimum time to live of every lease.
    pub shortest: Duration,
}

#[derive(Debug, Clone)]
struct Stored {
    entry: Entry,
    lease: Lease,
}

#[derive(Debug)]
struct Lived {
    ttl: Duration,
    until: Time,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            revision: 1,
            keys: BTreeMap::new(),
            history: Vec::new(),
            compacted: 0,
            leases: BTreeMap::new(),
            granted: 0x1000,
            shortest: Duration::from_secs(2),
        }
    }
}

impl Store {
    /// The revision of the last change.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Number of living leases.
    pub fn leases(&self) -> usize {
        self.leases.len()
    }

    /// Keys with this prefix, by the revision of their creation.
    pub fn keys(&self, prefix: &str) -> Vec<&Entry> {
        let keys = self.keys.values().map(|stored| &stored.entry);
        let mut keys: Vec<_> = keys.filter(|entry| entry.key.starts_with(prefix)).collect();
        keys.sort_by_key(|entry| entry.created);
        keys
    }

    /// When the next lease ends.
    pub fn next_deadline(&self) -> Option<Time> {
        self.leases.values().map(|lease| lease.until).min()
    }

    /// Ends the leases whose time is up.
    pub fn expire(&mut self, now: Time) {
        let is_up = |(lease, lived): (&Lease, &Lived)| (lived.until <= now).then_some(*lease);
        let ended: Vec<_> = self.leases.iter().filter_map(is_up).collect();
        for lease in ended {
            self.revoke(lease);
        }
    }

    /// Another server becomes etcd's leader: every lease gets its full time again.
    pub fn promote(&mut self, now: Time) {
        for lease in self.leases.values_mut() {
            lease.until = now + lease.ttl;
        }
    }

    /// Compacts the history up to now.
    pub fn compact(&mut self) {
        self.compacted = self.revision;
    }

    /// An operator deletes a key by hand.
    pub fn delete(&mut self, key: &str) {
        if let Some((key, _)) = self.keys.remove_entry(key) {
            self.revision += 1;
            let revision = self.revision;
            self.history
                .push((revision, Change::Deleted { key, revision }));
        }
    }

    /// An operator writes a key by hand.
    pub fn write(&mut self, key: &Arc<str>, value: Vec<u8>, lease: Lease) -> Entry {
        self.revision += 1;
        let modified = self.revision;
        let created = self.keys.get(key).map_or(modified, |old| old.entry.created);
        let entry = Entry {
            key: Arc::clone(key),
            value,
            created,
            modified,
        };
        let stored = Stored {
            entry: entry.clone(),
            lease,
        };
        self.keys.insert(Arc::clone(key), stored);
        self.history.push((modified, Change::Put(entry.clone())));
        entry
    }

    /// Ends a lease, and deletes its keys in one revision.
    pub fn revoke(&mut self, lease: Lease) -> bool {
        let existed = self.leases.remove(&lease).is_some();
        let keys = self.keys.iter().filter(|(_, stored)| stored.lease == lease);
        let keys: Vec<_> = keys.map(|(key, _)| Arc::clone(key)).collect();
        if !keys.is_empty() {
            self.revision += 1;
        }
        for key in keys {
            self.keys.remove(&key);
            let revision = self.revision;
            self.history
                .push((revision, Change::Deleted { key, revision }));
        }
        existed
    }

    /// Pending changes of a watch: all from `from` on, with its next revision; an error if that is compacted.
    pub fn changes(
        &self,
        range: &Range,
        from: Revision,
    ) -> Result<(Vec<Change>, Revision), Answer> {
        if from <= self.compacted {
            return Err(failed(FailureKind::Compacted));
        }
        let concerns = |key: &str| match range {
            Range::Key(one) => **one == *key,
            Range::Prefix(prefix) => key.starts_with(&**prefix),
        };
        let reported = self.history.iter().filter(|(revision, change)| {
            let key = match change {
                Change::Put(entry) => &entry.key,
                Change::Deleted { key, .. } => key,
            };
            *revision >= from && concerns(key)
        });
        let reported = reported.map(|(_, change)| change.clone()).collect();
        Ok((reported, self.revision.max(from - 1) + 1))
    }

    /// The keys right after a revision.
    fn at(&self, revision: Revision) -> BTreeMap<Arc<str>, Entry> {
        let mut keys: BTreeMap<_, _> = self
            .keys
            .iter()
            .map(|(key, stored)| (Arc::clone(key), stored.entry.clone()))
            .collect();
        // Backwards: removes later keys, and restores earlier values.
        for (at, change) in self.history.iter().rev() {
            if *at <= revision {
                break;
            }
            let key = match change {
                Change::Put(entry) => &entry.key,
                Change::Deleted { key, .. } => key,
            };
            let before = self.history.iter().rev().find_map(|(earlier, change)| {
                if earlier >= at {
                    return None;
                }
                match change {
                    Change::Put(entry) if entry.key == *key => Some(Some(entry.clone())),
                    Change::Deleted { key: gone, .. } if gone == key => Some(None),
                    _ => None,
                }
            });
            match before {
                Some(Some(entry)) => keys.insert(Arc::clone(key), entry),
                _ => keys.remove(key),
            };
        }
        keys
    }

    /// Carries a request out; the world handles watches.
    pub fn handle(&mut self, now: Time, request: &Request) -> Answer {
        match request {
            Request::Grant { ttl } => {
                self.granted += 1;
                let ttl = (*ttl).max(self.shortest);
                let until = now + ttl;
                self.leases.insert(self.granted, Lived { ttl, until });
                Answer::Granted {
                    lease: self.granted,
                    ttl,
                }
            }
            Request::KeepAlive { lease } => {
                let Some(lived) = self.leases.get_mut(lease) else {
                    let ttl = Duration::ZERO;
                    return Answer::Alive { ttl };
                };
                lived.until = now + lived.ttl;
                Answer::Alive { ttl: lived.ttl }
            }
            Request::Revoke { lease } => {
                self.revoke(*lease);
                Answer::Done
            }
            Request::Create { key, value, lease } => {
                if !self.leases.contains_key(lease) {
                    return failed(FailureKind::LeaseGone);
                }
                let entry = match self.keys.get(key) {
                    Some(stored) => stored.entry.clone(),
                    None => self.write(key, value.clone(), *lease),
                };
                self.entry(Some(entry))
            }
            Request::Replace {
                key,
                created,
                value,
                lease,
            } => {
                let stands = self.keys.get(key);
                if stands.is_none_or(|stored| stored.entry.created != *created) {
                    return self.entry(None);
                }
                if !self.leases.contains_key(lease) {
                    return failed(FailureKind::LeaseGone);
                }
                let entry = self.write(key, value.clone(), *lease);
                self.entry(Some(entry))
            }
            Request::Get { key } => {
                let entry = self.keys.get(key).map(|stored| stored.entry.clone());
                self.entry(entry)
            }
            Request::First { prefix, at: None } => {
                let first = self.keys(prefix).first().map(|entry| (*entry).clone());
                self.entry(first)
            }
            Request::First {
                prefix,
                at: Some(revision),
            } => {
                if *revision < self.compacted {
                    return failed(FailureKind::Compacted);
                }
                let keys = self.at(*revision);
                let keys = keys.into_values();
                let first = keys.filter(|entry| entry.key.starts_with(&**prefix));
                self.entry(first.min_by_key(|entry| entry.created))
            }
            Request::LastBefore { prefix, created } => {
                let keys = self.keys(prefix);
                let before = keys.iter().rfind(|entry| entry.created < *created);
                self.entry(before.map(|entry| (*entry).clone()))
            }
            Request::Watch { .. } | Request::Unwatch { .. } => {
                unreachable!("the world carries watches")
            }
        }
    }

    fn entry(&self, entry: Option<Entry>) -> Answer {
        Answer::Entry {
            entry,
            revision: self.revision,
        }
    }
}

/// A failure of this kind.
pub fn failed(kind: FailureKind) -> Answer {
    Answer::Failed(Failure {
        kind,
        text: format!("{kind:?}"),
    })
}
