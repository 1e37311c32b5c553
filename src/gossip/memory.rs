//! A network of peers in one process: for tests, trials and the example.
//!
//! Peers belong to groups, and a peer reaches only those of its own group. The network can be cut into parts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use super::{
    LeaderElectionAdapter, MAX_QUEUED_MESSAGES, Message, MessageCreator, PeerId, Receiver, Sender,
    channel,
};

/// Most peers of one network.
pub const MAX_PEERS: usize = 4096;

/// Why a peer cannot enter a network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EnterError {
    /// Another peer has the id.
    #[error("a peer with the id {0} is there already")]
    Taken(PeerId),
    /// The network has [`MAX_PEERS`].
    #[error("the network has {MAX_PEERS} peers, which is the limit")]
    Full,
}

/// The network. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Network(Arc<Mutex<Stations>>);

#[derive(Debug, Default)]
struct Stations {
    by_id: BTreeMap<PeerId, Station>,
    /// Number of peers that ever entered.
    entered: u64,
}

#[derive(Debug)]
struct Station {
    /// Distinguishes a peer from an earlier one with its id, whose adapter may still exist.
    number: u64,
    group: String,
    part: u32,
    /// `None` before [`Adapter::accept`].
    inbox: Option<Sender<Message>>,
}

impl Stations {
    /// The adapter's station, unless it has left.
    fn of(&self, adapter: &Adapter) -> Option<&Station> {
        let station = self.by_id.get(adapter.creator.id())?;
        (station.number == adapter.number).then_some(station)
    }

    /// The stations that it reaches.
    fn others(&self, adapter: &Adapter) -> impl Iterator<Item = (&PeerId, &Station)> {
        let me = self.of(adapter);
        self.by_id.iter().filter(move |(_, other)| {
            me.is_some_and(|me| me.number != other.number && me.reaches(other))
        })
    }
}

impl Station {
    fn reaches(&self, other: &Self) -> bool {
        self.group == other.group && self.part == other.part
    }
}

impl Network {
    /// Adds a peer, in part 0.
    ///
    /// # Errors
    /// [`EnterError`]; the network is unchanged.
    pub fn enter(&self, id: impl Into<PeerId>, group: &str) -> Result<Adapter, EnterError> {
        let id = id.into();
        let mut stations = self.stations();
        if stations.by_id.contains_key(&id) {
            return Err(EnterError::Taken(id));
        }
        if stations.by_id.len() >= MAX_PEERS {
            return Err(EnterError::Full);
        }
        stations.entered += 1;
        let number = stations.entered;
        let station = Station {
            number,
            group: group.to_owned(),
            part: 0,
            inbox: None,
        };
        stations.by_id.insert(id.clone(), station);
        Ok(Adapter {
            number,
            network: self.clone(),
            creator: MessageCreator::new(id),
        })
    }

    /// Moves a peer into a part: peers of different parts do not reach each other. Does nothing for a peer that is not
    /// in the network.
    pub fn set_part(&self, id: &PeerId, part: u32) {
        if let Some(station) = self.stations().by_id.get_mut(id) {
            station.part = part;
        }
    }

    /// Removes a peer, as when its process crashes: from then on it neither reaches others nor is reached.
    pub fn remove(&self, id: &PeerId) {
        self.stations().by_id.remove(id);
    }

    fn stations(&self) -> MutexGuard<'_, Stations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adapter of one peer. It leaves the network when it is dropped.
#[derive(Debug)]
pub struct Adapter {
    number: u64,
    network: Network,
    creator: MessageCreator,
}

impl Adapter {
    /// Leaves the network. Does nothing after the first call.
    pub fn stop(&self) {
        let mut stations = self.network.stations();
        if stations.of(self).is_some() {
            stations.by_id.remove(self.creator.id());
        }
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        self.stop();
    }
}

impl LeaderElectionAdapter for Adapter {
    type Msg = Message;
    type Peer = PeerId;

    fn gossip(&self, message: Message) {
        let stations = self.network.stations();
        for (_, other) in stations.others(self) {
            if let Some(inbox) = &other.inbox {
                // A full queue loses the message.
                inbox.send(message.clone());
            }
        }
    }

    /// A second call replaces the first, whose receiver gets nothing more.
    fn accept(&self) -> Receiver<Message> {
        let (sender, receiver) = channel(MAX_QUEUED_MESSAGES);
        let mut stations = self.network.stations();
        if let Some(me) = stations.by_id.get_mut(self.creator.id())
            && me.number == self.number
        {
            me.inbox = Some(sender);
        }
        receiver
    }

    fn create_message(&self, is_declaration: bool) -> Message {
        self.creator.create(is_declaration)
    }

    fn peers(&self) -> Vec<PeerId> {
        let stations = self.network.stations();
        stations.others(self).map(|(id, _)| id.clone()).collect()
    }
}
