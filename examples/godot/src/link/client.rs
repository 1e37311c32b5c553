//! The client's half.

use std::time::Instant;

use meta_mystia_network::bytes::Bytes;
use meta_mystia_network::core::event::ConnectionResult;
use meta_mystia_network::core::id::PeerId;
use meta_mystia_network::error::Code;

use super::message::{self, Mode};
use super::room::Entered;
use super::{Link, LinkError, LinkEvent, MAX_WAITING, Packet, Settings};
use crate::ids;

#[derive(Debug, Default)]
pub(super) struct Client {
    state: State,
    /// Counts the times that this client has asked a host.
    attempt: u8,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Connecting {
        /// The member that was asked.
        asked: Option<PeerId>,
        deadline: Instant,
        settings: Box<Settings>,
        /// Packets that have overtaken the answer on another channel.
        early: Vec<Packet>,
    },
    Connected {
        server: PeerId,
    },
}

impl Client {
    fn server(&self) -> Option<&PeerId> {
        match &self.state {
            State::Idle => None,
            State::Connecting { asked, .. } => asked.as_ref(),
            State::Connected { server } => Some(server),
        }
    }

    fn is_with(&self, member: &PeerId, attempt: u8) -> bool {
        self.attempt == attempt && self.server() == Some(member)
    }
}

impl Link {
    /// Connects to the room's host. Outside of a room, or alone in one, it first enters the room at the address, which may be that
    /// of any member. In a room with others, and with relays, it needs no address.
    ///
    /// # Errors
    /// The room cannot be entered, or this member is server or client already; nothing has changed then.
    pub fn start_client(&mut self, settings: Settings, address: &str) -> Result<(), LinkError> {
        self.must_be_idle()?;
        let finds_members = !address.is_empty() || !settings.relays.is_empty();
        let stays = self
            .entered
            .as_ref()
            .is_some_and(|entered| !entered.is_alone());
        if !stays && !finds_members {
            return Err(LinkError::new(
                Code::InvalidArgument,
                "a client needs the address of a member of the room, or relays",
            ));
        }
        if !stays {
            self.entered = None; // A room without others; the settings may have changed.
            self.host = None;
            let entered = Entered::open(&settings, false)?;
            if !address.is_empty() {
                entered.dial(address)?;
            }
            self.entered = Some(entered);
        }
        self.client.state = State::Connecting {
            asked: None,
            deadline: Instant::now() + settings.timeout,
            settings: Box::new(settings),
            early: Vec::new(),
        };
        self.ask();
        Ok(())
    }

    /// Ends the client's connection, or its attempt; the member stays in the room.
    pub fn stop_client(&mut self) {
        self.withdraw();
        self.end_client(None);
    }

    /// Sends a packet to the server. If a reliable one finds no room in its queue, the connection ends, because the packets after
    /// it would be out of order.
    ///
    /// # Errors
    /// The packet was not sent.
    pub fn send_to_server(
        &mut self,
        data: &Bytes,
        channel: u8,
        mode: Mode,
    ) -> Result<(), LinkError> {
        let State::Connected { server } = &self.client.state else {
            return Err(LinkError::new(
                Code::NotInitialized,
                "this client is not connected",
            ));
        };
        let sent = self.send((server, self.client.attempt), data, channel, mode);
        if let Err(error) = &sent
            && mode == Mode::Reliable
            && error.code != Code::MessageTooLarge
        {
            self.withdraw();
            self.end_client(Some(error.clone()));
        }
        sent
    }

    pub(super) fn must_be_idle(&self) -> Result<(), LinkError> {
        if self.server.serves() || !matches!(self.client.state, State::Idle) {
            return Err(LinkError::new(
                Code::AlreadyInitialized,
                "this member is server or client already; close first",
            ));
        }
        Ok(())
    }

    /// Asks the leader, as soon as there is one and a link to it.
    pub(super) fn ask(&mut self) {
        let (Some(entered), State::Connecting { asked, early, .. }) =
            (&self.entered, &mut self.client.state)
        else {
            return;
        };
        let Some(leader) = entered.leader() else {
            return;
        };
        if asked.is_some() || entered.leads() || !entered.is_connected(&leader) {
            return;
        }
        self.client.attempt = self.client.attempt.wrapping_add(1);
        early.clear();
        if entered.control(&leader, message::connect(self.client.attempt)) {
            *asked = Some(leader);
        }
    }

    /// Ends an attempt that takes too long.
    pub(super) fn give_up(&mut self, now: Instant) {
        let State::Connecting {
            deadline, settings, ..
        } = &self.client.state
        else {
            return;
        };
        if now < *deadline {
            return;
        }
        let why = match self.host() {
            None => "the room has no host".to_owned(),
            Some(host) => format!("the host {host} does not accept this client"),
        };
        let text = format!("{why}; waited {} ms", settings.timeout.as_millis());
        self.withdraw();
        self.end_client(Some(LinkError::new(Code::Timeout, text)));
    }

    fn withdraw(&self) {
        if let (Some(entered), Some(server)) = (&self.entered, self.client.server()) {
            entered.control(server, message::disconnect(self.client.attempt));
        }
    }

    pub(super) fn end_client(&mut self, why: Option<LinkError>) {
        if !matches!(std::mem::take(&mut self.client.state), State::Idle) {
            self.events.push_back(LinkEvent::Ended(why));
        }
    }

    pub(super) fn client_follows(&mut self, leader: &PeerId, is_this_member: bool) {
        let other = self.client.server().is_some_and(|server| server != leader);
        match &mut self.client.state {
            State::Connected { server } if other => {
                let text = format!("the host {server} is gone");
                self.end_client(Some(LinkError::new(Code::PeerNotFound, text)));
            }
            State::Connecting { .. } if is_this_member => {
                let text = "this member is the host now";
                self.withdraw();
                self.end_client(Some(LinkError::new(Code::Rejected, text)));
            }
            State::Connecting { .. } if other => {
                // If that member becomes the host later, it must not treat this client as waiting.
                self.withdraw();
                self.forget_asking();
            }
            _ => {}
        }
        self.ask();
    }

    pub(super) fn server_of_client_left(&mut self, member: &PeerId) {
        if self.client.server() != Some(member) {
            return;
        }
        if let State::Connected { server } = &self.client.state {
            let text = format!("the host {server} is gone");
            self.end_client(Some(LinkError::new(Code::PeerNotFound, text)));
        } else {
            self.forget_asking();
        }
    }

    fn forget_asking(&mut self) {
        if let State::Connecting { asked, .. } = &mut self.client.state {
            *asked = None;
        }
    }

    pub(super) fn on_dial_failed(&mut self, result: &ConnectionResult) {
        let alone = self.entered.as_ref().is_some_and(Entered::is_alone);
        if !matches!(self.client.state, State::Connecting { .. }) || !alone {
            return;
        }
        let code = Code::from_value(result.code).unwrap_or(Code::ConnectionFailed);
        let text = format!(
            "{}: {}",
            result.target,
            code.description().to_string_lossy()
        );
        self.end_client(Some(LinkError::new(code, text)));
    }

    pub(super) fn on_accept(&mut self, from: &PeerId, attempt: u8, id: i32) {
        if !self.client.is_with(from, attempt) {
            return;
        }
        let State::Connecting { early, .. } = &mut self.client.state else {
            return;
        };
        self.events.push_back(LinkEvent::Connected(id));
        self.events.extend(early.drain(..).map(LinkEvent::Packet));
        self.client.state = State::Connected {
            server: from.clone(),
        };
        if let Some(entered) = &self.entered
            // From now on this member may become the host.
            && let Err(error) = entered.room().enable_auto_election(true)
        {
            self.events.push_back(LinkEvent::Warning(error.to_string()));
        }
    }

    /// The server ends the connection.
    pub(super) fn on_server_disconnect(&mut self, from: &PeerId, attempt: u8) {
        if self.client.is_with(from, attempt) {
            self.end_client(None);
        }
    }

    pub(super) fn on_server_data(
        &mut self,
        from: &PeerId,
        attempt: u8,
        (channel, mode, data): (u8, Mode, Bytes),
    ) {
        if !self.client.is_with(from, attempt) {
            return;
        }
        let packet = Packet {
            from: ids::SERVER,
            channel,
            mode,
            data,
        };
        match &mut self.client.state {
            State::Connected { .. } => self.events.push_back(LinkEvent::Packet(packet)),
            State::Connecting { early, .. } if early.len() < MAX_WAITING => early.push(packet),
            _ => {
                let text = format!("more than {MAX_WAITING} packets came before the host's answer");
                self.withdraw();
                self.end_client(Some(LinkError::new(Code::SendQueueFull, text)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> PeerId {
        PeerId::new("alice").expect("an id")
    }

    fn connecting() -> Link {
        let mut link = Link::default();
        link.client.attempt = 3;
        link.client.state = State::Connecting {
            asked: Some(host()),
            deadline: Instant::now(),
            settings: Box::default(),
            early: Vec::new(),
        };
        link
    }

    fn data(link: &mut Link, attempt: u8) {
        let one = Bytes::from_static(b"one");
        link.on_server_data(&host(), attempt, (7, Mode::Reliable, one));
    }

    #[test]
    fn packets_that_overtake_the_answer_follow_it() {
        let mut link = connecting();
        data(&mut link, 2); // of an earlier attempt
        data(&mut link, 3);
        assert_eq!(link.next_event(), None);
        link.on_accept(&host(), 3, 44);
        assert_eq!(link.next_event(), Some(LinkEvent::Connected(44)));
        let packet = link.next_event();
        assert!(matches!(packet, Some(LinkEvent::Packet(it)) if it.channel == 7));
        assert_eq!(link.next_event(), None);
    }

    #[test]
    fn too_many_packets_before_the_answer_end_the_attempt() {
        let mut link = connecting();
        for _ in 0..MAX_WAITING {
            data(&mut link, 3);
        }
        assert_eq!(link.next_event(), None);
        data(&mut link, 3);
        let Some(LinkEvent::Ended(Some(error))) = link.next_event() else {
            panic!("the attempt goes on");
        };
        assert!(error.text.contains("1024"), "{error}");
    }

    #[test]
    fn an_attempt_ends_after_its_time() {
        let mut link = connecting();
        link.give_up(Instant::now());
        let Some(LinkEvent::Ended(Some(error))) = link.next_event() else {
            panic!("the attempt goes on");
        };
        assert_eq!(error.code, Code::Timeout);
        assert!(error.text.contains("10000 ms"), "{error}");
    }
}
