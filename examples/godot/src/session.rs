//! A link as the engine sees it: its state changes where the events before it were taken.

use std::collections::VecDeque;

use meta_mystia_network::bytes::Bytes;
use meta_mystia_network::error::Code;

use crate::ids;
use crate::link::{Link, LinkError, LinkEvent, MAX_WAITING, Mode, Packet, Settings};

/// The state that the engine sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// Neither server nor client.
    #[default]
    Disconnected,
    /// A client without a server yet.
    Connecting,
    /// A server, or a client with this number.
    Connected(i32),
}

/// A signal for the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// A peer is connected.
    PeerConnected(i32),
    /// A peer is gone.
    PeerDisconnected(i32),
    /// The session is over, for this reason.
    Failed(LinkError),
    /// Another member of the room is the host now.
    HostChanged {
        /// Its id.
        host: String,
        /// Whether it is this member.
        is_this_member: bool,
    },
    /// For the log.
    Warning(String),
}

/// A link, and the packets that the engine has not read.
#[derive(Debug, Default)]
pub struct Session {
    link: Link,
    settings: Settings,
    status: Status,
    packets: VecDeque<Packet>,
    /// An event that waits until the packets before it are read.
    next: Option<LinkEvent>,
    signals: VecDeque<Signal>,
}

impl Session {
    /// The link, for questions.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The link, for what needs no regard to the order.
    pub fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }

    /// The state.
    pub fn status(&self) -> Status {
        self.status
    }

    /// This member's number; 0 without one.
    pub fn id(&self) -> i32 {
        match self.status {
            Status::Connected(id) => id,
            _ => 0,
        }
    }

    /// Opens a room, or serves the room that has this member as its leader.
    ///
    /// # Errors
    /// Nothing has changed then.
    pub fn host(&mut self, settings: Settings) -> Result<(), LinkError> {
        self.must_be_disconnected()?;
        self.link.start_server(&settings)?;
        self.settings = settings;
        self.status = Status::Connected(ids::SERVER);
        Ok(())
    }

    /// Enters a room as a client.
    ///
    /// # Errors
    /// Nothing has changed then.
    pub fn join(&mut self, settings: Settings, address: &str) -> Result<(), LinkError> {
        self.must_be_disconnected()?;
        self.link.start_client(settings.clone(), address)?;
        self.settings = settings;
        self.status = Status::Connecting;
        Ok(())
    }

    /// Goes on with the room's present host, after [`Signal::HostChanged`]: as server if it is this member, else as client.
    ///
    /// # Errors
    /// Nothing has changed then.
    pub fn resume(&mut self) -> Result<(), LinkError> {
        let settings = self.settings.clone();
        match self.link.host().as_ref() {
            Some(host) if Some(host) == self.link.member() => self.host(settings),
            _ => self.join(settings, ""),
        }
    }

    fn must_be_disconnected(&self) -> Result<(), LinkError> {
        match self.status {
            Status::Disconnected => Ok(()),
            _ => Err(LinkError {
                code: Code::AlreadyInitialized,
                text: "this peer is connected already, or connecting; close it first".into(),
            }),
        }
    }

    /// Takes what has happened in the room. Does not wait.
    pub fn poll(&mut self) {
        if self.packets.len() < MAX_WAITING {
            self.link.poll();
        }
    }

    /// The next signal, with the state from then on. The end of a connection waits until the packets before it are read.
    pub fn next_signal(&mut self) -> Option<Signal> {
        while self.signals.is_empty() {
            let event = self.next.take().or_else(|| self.link.next_event())?;
            let waits = matches!(
                event,
                LinkEvent::PeerDisconnected(_)
                    | LinkEvent::Ended(_)
                    | LinkEvent::HostChanged { .. }
            );
            if waits && !self.packets.is_empty() {
                self.next = Some(event);
                return None;
            }
            self.apply(event);
        }
        self.signals.pop_front()
    }

    fn apply(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Packet(packet) => self.packets.push_back(packet),
            LinkEvent::Connected(id) => {
                self.status = Status::Connected(id);
                self.signals.push_back(Signal::PeerConnected(ids::SERVER));
            }
            LinkEvent::PeerConnected(id) => self.signals.push_back(Signal::PeerConnected(id)),
            LinkEvent::PeerDisconnected(id) => self.signals.push_back(Signal::PeerDisconnected(id)),
            LinkEvent::Ended(why) => {
                if matches!(self.status, Status::Connected(id) if id != ids::SERVER) {
                    self.signals
                        .push_back(Signal::PeerDisconnected(ids::SERVER));
                }
                self.status = Status::Disconnected;
                self.signals.extend(why.map(Signal::Failed));
            }
            LinkEvent::HostChanged {
                host,
                is_this_member,
            } => self.signals.push_back(Signal::HostChanged {
                host: host.as_str().to_owned(),
                is_this_member,
            }),
            LinkEvent::Warning(text) => self.signals.push_back(Signal::Warning(text)),
        }
    }

    /// The packets that wait.
    pub fn packets(&self) -> &VecDeque<Packet> {
        &self.packets
    }

    /// The next packet.
    pub fn next_packet(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }

    /// Sends a packet: with a positive target to this peer, with 0 to all, with a negative one to all but that. A client reaches
    /// the server alone; the engine relays the rest.
    ///
    /// # Errors
    /// The first refusal; other receivers may have got the packet.
    pub fn send(
        &mut self,
        target: i32,
        data: &Bytes,
        channel: u8,
        mode: Mode,
    ) -> Result<(), LinkError> {
        if data.is_empty() {
            return Err(LinkError {
                code: Code::InvalidArgument,
                text: "the packet is empty; send at least 1 byte".into(),
            });
        }
        if self.id() != ids::SERVER {
            return match target {
                ids::SERVER | 0 => self.link.send_to_server(data, channel, mode),
                target if target < 0 && -target != ids::SERVER => {
                    self.link.send_to_server(data, channel, mode)
                }
                target if target < 0 => Ok(()),
                target => Err(LinkError {
                    code: Code::PeerNotFound,
                    text: format!("a client reaches the peer 1 alone, not {target}"),
                }),
            };
        }
        if target > 0 {
            return self.link.send_to_client(target, data, channel, mode);
        }
        let mut result = Ok(());
        for id in self.link.clients() {
            if id != -target {
                let sent = self.link.send_to_client(id, data, channel, mode);
                result = result.and(sent);
            }
        }
        result
    }

    /// Ends the connection to a peer; a client's with 1. With `force` no signal follows, and the peer's packets are dropped.
    pub fn disconnect(&mut self, id: i32, force: bool) {
        if self.id() != ids::SERVER {
            if id == ids::SERVER {
                self.link.stop_client();
            }
            return;
        }
        if force {
            self.packets.retain(|packet| packet.from != id);
            self.link.drop_client(id);
        } else {
            self.link.disconnect(id);
        }
    }

    /// Leaves the room. Takes at most 2 s.
    pub fn close(&mut self) {
        self.link.leave();
        *self = Self::default();
    }
}
