//! The room that a member is in.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use meta_mystia_network::bytes::Bytes;
use meta_mystia_network::clock::Moment;
use meta_mystia_network::config::{
    Config, DiscoveryMode, DispatchMode, ManualOverrideRecovery, Relay, Secret,
};
use meta_mystia_network::core::event::{Event, LeaderChange, Left};
use meta_mystia_network::core::id::{PeerId, SessionId};
use meta_mystia_network::error::{Code, SendError};
use meta_mystia_network::room::{OutMessage, Room, SendMode};
use meta_mystia_network::snapshot::PeerStatus;
use meta_mystia_network::target::parse_pasted_target;

use super::message::{self, MAX_UNRELIABLE, Message, Mode};
use super::{Link, LinkError, LinkEvent, Settings};

pub(super) fn max_message_size() -> usize {
    Config::default().max_message_size
}

/// A room, and the events that its handler has received during a poll.
pub(super) struct Entered {
    room: Room,
    taken: Arc<Mutex<VecDeque<Event>>>,
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entered({})", self.room.peer_id())
    }
}

impl Entered {
    /// Opens the room. A client does not campaign: alone it would elect itself before it has found the others.
    pub(super) fn open(settings: &Settings, serves: bool) -> Result<Self, LinkError> {
        let mut config = Config {
            bind_port: if serves { settings.port } else { 0 },
            auto_election_enabled: serves,
            // The first host is set, so that it leads at once; after it, the room elects.
            manual_override_recovery: ManualOverrideRecovery::AutoElect,
            discovery: DiscoveryMode::Off,
            dispatch_mode: DispatchMode::Poll,
            secret: Secret::new(settings.secret.as_bytes()),
            ..Config::default()
        };
        if !settings.relays.is_empty() {
            config.relays = Relay::parse_list(&settings.relays).map_err(rejected)?;
        }
        let member = match settings.member.as_str() {
            "" => new_member()?,
            member => PeerId::new(member).map_err(rejected)?,
        };
        let session = SessionId::new(&settings.session).map_err(rejected)?;
        let config = config.validated().map_err(|error| LinkError::of(&error))?;
        let room = Room::open(member, session, config).map_err(|error| LinkError::of(&error))?;
        let taken = Arc::<Mutex<VecDeque<Event>>>::default();
        let handler = Arc::clone(&taken);
        room.dispatch()
            .register_event_handler(Some(Arc::new(move |event: &Event| {
                let mut taken = handler.lock().unwrap_or_else(PoisonError::into_inner);
                taken.push_back(event.clone());
            })));
        Ok(Self { room, taken })
    }

    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// The next event.
    pub(super) fn next(&self) -> Option<Event> {
        loop {
            let taken = self.taken().pop_front();
            if taken.is_some() {
                return taken;
            }
            // Fails only inside a handler, or in a forked process.
            if self.room.dispatch().poll(1).unwrap_or(0) == 0 {
                return self.taken().pop_front();
            }
        }
    }

    fn taken(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn leader(&self) -> Option<PeerId> {
        self.room.snapshot().leader_at(Moment::now).cloned()
    }

    pub(super) fn leads(&self) -> bool {
        self.room.snapshot().leads(Moment::now)
    }

    pub(super) fn is_alone(&self) -> bool {
        self.room.snapshot().peers.is_empty()
    }

    pub(super) fn is_connected(&self, member: &PeerId) -> bool {
        let snapshot = self.room.snapshot();
        let peer = snapshot.peer(member.as_str());
        peer.is_some_and(|peer| peer.status == PeerStatus::Connected)
    }

    /// Dials a member.
    pub(super) fn dial(&self, address: &str) -> Result<(), LinkError> {
        let target = parse_pasted_target(address).map_err(rejected)?;
        let dialled = self.room.connect(address, target);
        dialled.map_err(|error| LinkError::of(&error))
    }

    /// Sends a message of this protocol; false if it cannot be sent.
    pub(super) fn control(&self, member: &PeerId, message: OutMessage) -> bool {
        self.room
            .send_with(member, message, SendMode::default())
            .is_ok()
    }

    /// Sends a packet.
    pub(super) fn packet(
        &self,
        to: (&PeerId, u8),
        data: &Bytes,
        channel: u8,
        mode: Mode,
    ) -> Result<(), SendError> {
        let (member, attempt) = to;
        let message = message::data(attempt, data.clone());
        self.room.send_with(member, message, mode.on(channel))
    }
}

fn rejected(error: impl fmt::Display) -> LinkError {
    LinkError::new(Code::InvalidArgument, error.to_string())
}

/// An id that no other member has.
fn new_member() -> Result<PeerId, LinkError> {
    PeerId::new(&format!(
        "{:016x}",
        RandomState::new().build_hasher().finish()
    ))
    .map_err(rejected)
}

impl Link {
    pub(super) fn on_event(&mut self, event: Event) {
        match event {
            Event::LeaderChanged(LeaderChange {
                new: Some(leader), ..
            }) => self.on_leader(leader),
            // Without a leader for now: it may come back. If another member is elected, the host is gone.
            Event::Left(Left { peer, .. }) => self.on_left(&peer),
            Event::ConnectionResult(result) if !result.success => self.on_dial_failed(&result),
            Event::RoomEnded { why, .. } => self.on_room_ended(&format!("{why:?}")),
            Event::Message(incoming) => {
                let from = incoming.from.clone();
                if let Some(message) = Message::read(incoming) {
                    self.on_message(&from, message);
                }
            }
            _ => {}
        }
    }

    fn on_leader(&mut self, leader: PeerId) {
        let is_this_member = self.member() == Some(&leader);
        let before = self.host.replace(leader.clone());
        if !is_this_member {
            self.server_lost(&leader);
        }
        self.client_follows(&leader, is_this_member);
        if before.is_some_and(|before| before != leader) {
            self.events.push_back(LinkEvent::HostChanged {
                host: leader,
                is_this_member,
            });
        }
    }

    fn on_left(&mut self, member: &PeerId) {
        self.waiting.remove(member);
        self.client_left(member);
        self.server_of_client_left(member);
    }

    fn on_room_ended(&mut self, why: &str) {
        let error = LinkError::new(
            Code::PeerNotFound,
            format!("the room has ended for this member: {why}"),
        );
        self.end_client(Some(error.clone()));
        self.end_server(Some(error));
        self.waiting.clear();
        self.host = None;
        self.entered = None;
    }

    fn on_message(&mut self, from: &PeerId, message: Message) {
        match message {
            Message::Connect { attempt } if self.server.serves() => self.admit(from, attempt),
            Message::Connect { attempt } => {
                self.waiting.insert(from.clone(), attempt);
            }
            Message::Accept { attempt, id } => self.on_accept(from, attempt, id),
            Message::Disconnect { attempt } => {
                if self.waiting.get(from) == Some(&attempt) {
                    self.waiting.remove(from);
                }
                self.on_client_disconnect(from, attempt);
                self.on_server_disconnect(from, attempt);
            }
            Message::Data {
                attempt,
                channel,
                mode,
                data,
            } => {
                if self.server.serves() {
                    self.on_client_data(from, attempt, (channel, mode, data));
                } else {
                    self.on_server_data(from, attempt, (channel, mode, data));
                }
            }
        }
    }

    /// Sends a packet to a member of the room.
    pub(super) fn send(
        &self,
        to: (&PeerId, u8),
        data: &Bytes,
        channel: u8,
        mode: Mode,
    ) -> Result<(), LinkError> {
        let Some(entered) = &self.entered else {
            return Err(LinkError::new(Code::NotInitialized, "there is no room"));
        };
        if mode != Mode::Reliable && data.len() > MAX_UNRELIABLE {
            return Err(LinkError::new(
                Code::MessageTooLarge,
                format!(
                    "the unreliable packet has {} bytes; the limit is {MAX_UNRELIABLE}: send less at a time, or send it reliably",
                    data.len()
                ),
            ));
        }
        let sent = entered.packet(to, data, channel, mode);
        sent.map_err(|error| LinkError::of(&error))
    }
}
