//! The server's half.

use std::collections::BTreeMap;

use meta_mystia_network::bytes::Bytes;
use meta_mystia_network::core::id::PeerId;
use meta_mystia_network::error::Code;

use super::message::{self, Mode};
use super::room::Entered;
use super::{Link, LinkError, LinkEvent, Packet, Settings};
use crate::ids::Ids;

#[derive(Debug, Default)]
pub(super) struct Server {
    serves: bool,
    /// Whether newcomers are left waiting.
    refuses: bool,
    ids: Ids,
    /// The open connections.
    clients: BTreeMap<i32, Connection>,
}

#[derive(Debug, Clone)]
struct Connection {
    member: PeerId,
    attempt: u8,
}

impl Server {
    pub(super) fn serves(&self) -> bool {
        self.serves
    }

    fn id_of(&self, member: &PeerId) -> Option<i32> {
        let mut clients = self.clients.iter();
        clients
            .find(|(_, client)| client.member == *member)
            .map(|(&id, _)| id)
    }

    fn id_with(&self, member: &PeerId, attempt: u8) -> Option<i32> {
        self.id_of(member)
            .filter(|id| self.clients[id].attempt == attempt)
    }
}

impl Link {
    /// Makes this member the host: outside of a room it opens one. After [`LinkEvent::HostChanged`] has named this member, it
    /// accepts the clients that are waiting.
    ///
    /// # Errors
    /// The room cannot be opened, for example because the port is taken, or this member is server or client already.
    pub fn start_server(&mut self, settings: &Settings) -> Result<(), LinkError> {
        self.must_be_idle()?;
        let of_a_client = |entered: &Entered| entered.is_alone() && !entered.leads();
        if self.entered.as_ref().is_some_and(of_a_client) {
            self.entered = None; // The room of a lost host has this member as its leader.
            self.host = None;
        }
        let entered = match self.entered.take() {
            Some(entered) => entered,
            None => Entered::open(settings, true)?,
        };
        let entered = self.entered.insert(entered);
        if !entered.leads() {
            let me = entered.room().peer_id();
            let set = entered.room().set_leader(me);
            set.map_err(|error| LinkError::of(&error))?;
        }
        self.host = Some(entered.room().peer_id().clone());
        self.server.serves = true;
        for (member, attempt) in std::mem::take(&mut self.waiting) {
            self.admit(&member, attempt);
        }
        Ok(())
    }

    /// Stops serving. The room continues: another member, if there is one, becomes the host.
    pub fn stop_server(&mut self) {
        if !self.server.serves {
            return;
        }
        for id in self.clients() {
            self.disconnect(id);
        }
        self.end_server(None);
        if let Some(entered) = &self.entered
            && entered.leads()
            && !entered.is_alone()
            && let Err(error) = entered.room().yield_leadership()
        {
            let text = format!("no member takes over: {error}");
            self.events.push_back(LinkEvent::Warning(text));
        }
    }

    /// The numbers of the connected clients.
    pub fn clients(&self) -> Vec<i32> {
        self.server.clients.keys().copied().collect()
    }

    /// The client's member, also for a while after its connection has ended.
    pub fn member_of(&self, id: i32) -> Option<&PeerId> {
        self.server.ids.member(id)
    }

    /// Sends a packet to a client. If a reliable one finds no room in its queue, the client is disconnected, because the packets
    /// after it would be out of order.
    ///
    /// # Errors
    /// The packet was not sent.
    pub fn send_to_client(
        &mut self,
        id: i32,
        data: &Bytes,
        channel: u8,
        mode: Mode,
    ) -> Result<(), LinkError> {
        let Some(client) = self.server.clients.get(&id) else {
            let text = format!("there is no connected peer {id}");
            return Err(LinkError::new(Code::PeerNotFound, text));
        };
        let sent = self.send((&client.member, client.attempt), data, channel, mode);
        if let Err(error) = &sent
            && mode == Mode::Reliable
            && error.code != Code::MessageTooLarge
        {
            let text = format!("the peer {id} is disconnected: {error}");
            self.events.push_back(LinkEvent::Warning(text));
            self.disconnect(id);
        }
        sent
    }

    /// Ends a client's connection; the member stays in the room. Returns whether there was one.
    pub fn disconnect(&mut self, id: i32) -> bool {
        let was_open = self.drop_client(id);
        if was_open {
            self.events.push_back(LinkEvent::PeerDisconnected(id));
        }
        was_open
    }

    /// [`Link::disconnect`] without an event.
    pub fn drop_client(&mut self, id: i32) -> bool {
        let Some(client) = self.server.clients.remove(&id) else {
            return false;
        };
        if let Some(entered) = &self.entered {
            entered.control(&client.member, message::disconnect(client.attempt));
        }
        true
    }

    /// Whether clients that ask are disconnected at once.
    pub fn refuse_new_clients(&mut self, refuse: bool) {
        self.server.refuses = refuse;
    }

    /// [`Link::refuse_new_clients`].
    pub fn refuses_new_clients(&self) -> bool {
        self.server.refuses
    }

    pub(super) fn admit(&mut self, member: &PeerId, attempt: u8) {
        let Some(entered) = &self.entered else {
            return;
        };
        let before = self.server.id_of(member);
        if self.server.refuses {
            entered.control(member, message::disconnect(attempt));
            before.into_iter().for_each(|id| self.close(id));
            return;
        }
        let id = self.server.ids.of(member);
        let accepted = entered.control(member, message::accept(attempt, id));
        before.into_iter().for_each(|id| self.close(id));
        if accepted {
            let member = member.clone();
            self.server
                .clients
                .insert(id, Connection { member, attempt });
            self.events.push_back(LinkEvent::PeerConnected(id));
        }
    }

    fn close(&mut self, id: i32) {
        if self.server.clients.remove(&id).is_some() {
            self.events.push_back(LinkEvent::PeerDisconnected(id));
        }
    }

    pub(super) fn end_server(&mut self, why: Option<LinkError>) {
        if !self.server.serves {
            return;
        }
        for id in self.clients() {
            self.close(id);
        }
        self.server.serves = false;
        self.server.ids = Ids::default();
        self.events.push_back(LinkEvent::Ended(why));
    }

    pub(super) fn server_lost(&mut self, leader: &PeerId) {
        let text = format!("{leader} is the host now");
        self.end_server(Some(LinkError::new(Code::NotLeader, text)));
    }

    pub(super) fn client_left(&mut self, member: &PeerId) {
        if self.server.serves {
            let id = self.server.ids.of(member);
            self.close(id);
            self.server.ids.remove(id);
        }
    }

    /// A client ends its connection.
    pub(super) fn on_client_disconnect(&mut self, from: &PeerId, attempt: u8) {
        if let Some(id) = self.server.id_with(from, attempt) {
            self.close(id);
        }
    }

    pub(super) fn on_client_data(
        &mut self,
        from: &PeerId,
        attempt: u8,
        (channel, mode, data): (u8, Mode, Bytes),
    ) {
        if let Some(from) = self.server.id_with(from, attempt) {
            self.events.push_back(LinkEvent::Packet(Packet {
                from,
                channel,
                mode,
                data,
            }));
        }
    }
}
