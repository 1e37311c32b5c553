//! A server and its clients on a room.
//!
//! The room's leader is the server. Members ask it to connect, and it gives each a number, which the member keeps as long as it is
//! in the room. When the server is gone, the room elects another. These are the rules of `examples/unity/RoomLink.cs`, which the
//! transports for Unity share.

mod client;
mod message;
mod room;
mod server;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use meta_mystia_network::bytes::Bytes;
use meta_mystia_network::core::id::PeerId;
use meta_mystia_network::error::{Code, Coded};

use client::Client;
use room::Entered;
use server::Server;

pub use message::{MAX_UNRELIABLE, Mode};

/// Packets that wait for the engine, at most; the rest waits in the room, which then takes no more from the network.
pub(crate) const MAX_WAITING: usize = 1024;

/// How a room is entered.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The room's name; with relays a room code.
    pub session: String,
    /// The secret that members must know besides the name; empty for none.
    pub secret: String,
    /// This member's id; empty for a new one.
    pub member: String,
    /// The UDP port of a server; 0 is any free one.
    pub port: u16,
    /// Relays, one per line; empty for none.
    pub relays: String,
    /// How long a client tries to connect.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            session: String::new(),
            secret: String::new(),
            member: String::new(),
            port: 0,
            relays: String::new(),
            timeout: Duration::from_secs(10),
        }
    }
}

/// Why something was refused or has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkError {
    /// One of the library's codes.
    pub code: Code,
    /// A sentence.
    pub text: String,
}

impl LinkError {
    fn new(code: Code, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }

    fn of(error: &impl Coded) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.text, self.code)
    }
}

impl std::error::Error for LinkError {}

/// A packet from another member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The sender's number.
    pub from: i32,
    /// The sender's channel.
    pub channel: u8,
    /// The delivery that the sender chose.
    pub mode: Mode,
    /// The bytes.
    pub data: Bytes,
}

/// An event. Their order is that in which they occurred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// This client is connected, and has this number.
    Connected(i32),
    /// A client is connected to this server.
    PeerConnected(i32),
    /// A client of this server is gone.
    PeerDisconnected(i32),
    /// A packet has come.
    Packet(Packet),
    /// This member is neither server nor client any more; with the reason, unless one of the two sides wanted it.
    Ended(Option<LinkError>),
    /// Another member is the host now. Not for the first host of a room.
    HostChanged {
        /// The new host.
        host: PeerId,
        /// Whether it is this member.
        is_this_member: bool,
    },
    /// An error that ended the connection of one client.
    Warning(String),
}

/// The state of a member: outside of a room, server or client.
#[derive(Debug, Default)]
pub struct Link {
    entered: Option<Entered>,
    /// The last known leader.
    host: Option<PeerId>,
    server: Server,
    client: Client,
    /// Members that asked before this one's server was started: they learn of the new host at the same moment as the host itself.
    waiting: BTreeMap<PeerId, u8>,
    events: VecDeque<LinkEvent>,
}

impl Link {
    /// This member's id; `None` outside of a room.
    pub fn member(&self) -> Option<&PeerId> {
        Some(self.entered.as_ref()?.room().peer_id())
    }

    /// The present host.
    pub fn host(&self) -> Option<PeerId> {
        self.entered.as_ref()?.leader()
    }

    /// An address for newcomers to connect to, which may be any member's.
    pub fn address(&self) -> Option<String> {
        Some(self.entered.as_ref()?.room().local_address().to_string())
    }

    /// The longest reliable packet, in bytes.
    pub fn max_reliable(&self) -> usize {
        let room = self.entered.as_ref().map(Entered::room);
        room.map_or_else(room::max_message_size, |room| room.max_message_size())
    }

    /// The oldest event that was not taken.
    pub fn next_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// Takes the events of the room. Does not wait.
    pub fn poll(&mut self) {
        while self.events.len() < MAX_WAITING {
            let Some(event) = self.entered.as_ref().and_then(Entered::next) else {
                break;
            };
            self.on_event(event);
        }
        self.ask();
        self.give_up(Instant::now());
    }

    /// Leaves the room, as client and as server. The others elect another host at once. Takes at most 2 s.
    pub fn leave(&mut self) {
        self.stop_client();
        self.stop_server();
        self.waiting.clear();
        self.host = None;
        self.entered = None;
    }
}
