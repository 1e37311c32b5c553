//! The class for Godot.

use std::time::Duration;

use godot::classes::multiplayer_peer::{ConnectionStatus, TransferMode};
use godot::classes::{IMultiplayerPeerExtension, MultiplayerPeerExtension};
use godot::global::{Error, godot_error, godot_warn};
use godot::obj::WithBaseField as _;
use godot::prelude::{Base, GString, GodotClass, PackedByteArray, ToGodot as _, godot_api};
use meta_mystia_network::bytes::Bytes;
use meta_mystia_network::error::Code;

use crate::ids;
use crate::link::{LinkError, Mode, Settings};
use crate::session::{Session, Signal, Status};

/// A room as Godot's multiplayer peer. The room's leader is the server.
#[derive(GodotClass)]
#[class(init, tool, base = MultiplayerPeerExtension)]
pub struct RoomMultiplayerPeer {
    /// The room's name, at most 128 bytes; with relays a room code.
    #[var]
    session_id: GString,
    /// The secret that members must know besides the name; empty for none.
    #[var]
    secret: GString,
    /// This player's id in the room, at most 64 bytes; empty for a new one.
    #[var]
    member_id: GString,
    /// The UDP port of a host; 0 is any free one.
    #[var]
    port: i32,
    /// Relays, one per line; empty for none.
    #[var]
    relays: GString,
    /// How long a client tries to connect, in milliseconds.
    #[var]
    #[init(val = 10_000)]
    timeout_ms: i32,
    /// The sentence of the last error.
    #[var(get)]
    last_error: GString,

    session: Session,
    target: i32,
    channel: i32,
    #[init(val = TransferMode::RELIABLE)]
    mode: TransferMode,
    base: Base<MultiplayerPeerExtension>,
}

#[godot_api]
impl RoomMultiplayerPeer {
    /// Another member of the room is the host now, after the session with the previous one has ended. Call `resume()`, and give
    /// this peer to the `multiplayer` once more.
    #[signal]
    fn host_changed(host: GString, is_this_member: bool);

    /// The session has ended for this reason; `code` is one of the library's.
    #[signal]
    fn session_failed(code: i32, text: GString);

    /// Opens a room, with this member as its host.
    #[func]
    fn host(&mut self) -> Error {
        let result = self.settings().and_then(|it| self.session.host(it));
        self.report(result)
    }

    /// Enters the room that the member at `address` is in. Empty with relays.
    #[func]
    fn join(&mut self, address: GString) -> Error {
        let result = self.settings();
        let result = result.and_then(|it| self.session.join(it, &address.to_string()));
        self.report(result)
    }

    /// Goes on with the room's present host, after `host_changed`: as server if it is this member, else as client.
    #[func]
    fn resume(&mut self) -> Error {
        let result = self.session.resume();
        self.report(result)
    }

    /// An address for others to join, which may be any member's. Empty outside of a room.
    #[func]
    fn room_address(&self) -> GString {
        text(self.session.link().address())
    }

    /// This player's id in the room. Empty outside of one.
    #[func]
    fn room_member(&self) -> GString {
        text(self.session.link().member())
    }

    /// The id of the room's host. Empty while there is none.
    #[func]
    fn room_host(&self) -> GString {
        text(self.session.link().host())
    }

    /// At the server, the id in the room of the client with this number. Empty without one.
    #[func]
    fn member_of(&self, peer: i32) -> GString {
        text(self.session.link().member_of(peer))
    }

    fn settings(&self) -> Result<Settings, LinkError> {
        let number = |name: &str, value: i32, max: i32| match value {
            value if (0..=max).contains(&value) => Ok(value),
            _ => Err(LinkError {
                code: Code::InvalidArgument,
                text: format!("{name} is {value}; give 0 to {max}"),
            }),
        };
        let port = number("port", self.port, u16::MAX.into())?;
        let timeout = number("timeout_ms", self.timeout_ms, i32::MAX)?;
        Ok(Settings {
            session: self.session_id.to_string(),
            secret: self.secret.to_string(),
            member: self.member_id.to_string(),
            port: port as u16,
            relays: self.relays.to_string(),
            timeout: Duration::from_millis(timeout as u64),
        })
    }

    fn report(&mut self, result: Result<(), LinkError>) -> Error {
        let Err(error) = result else {
            return Error::OK;
        };
        godot_error!("RoomMultiplayerPeer: {error}");
        self.last_error = text(Some(&error));
        match error.code {
            Code::AlreadyInitialized => Error::ERR_ALREADY_IN_USE,
            Code::NotInitialized | Code::NotLeader => Error::ERR_UNCONFIGURED,
            Code::InvalidArgument | Code::MessageTooLarge | Code::PeerNotFound => {
                Error::ERR_INVALID_PARAMETER
            }
            Code::SendQueueFull => Error::ERR_OUT_OF_MEMORY,
            Code::ConnectionFailed => Error::ERR_CANT_CONNECT,
            _ => Error::FAILED,
        }
    }

    /// `base_mut` lets the handlers call this object.
    fn signal(&mut self, signal: Signal) {
        match signal {
            Signal::PeerConnected(id) => self.emit("peer_connected", &[id.to_variant()]),
            Signal::PeerDisconnected(id) => self.emit("peer_disconnected", &[id.to_variant()]),
            Signal::HostChanged {
                host,
                is_this_member,
            } => self.emit(
                "host_changed",
                &[host.to_variant(), is_this_member.to_variant()],
            ),
            Signal::Failed(error) => {
                self.last_error = text(Some(&error));
                let arguments = [error.code.value().to_variant(), error.text.to_variant()];
                self.emit("session_failed", &arguments);
            }
            Signal::Warning(text) => godot_warn!("RoomMultiplayerPeer: {text}"),
        }
    }

    fn emit(&mut self, name: &str, arguments: &[godot::builtin::Variant]) {
        self.base_mut().emit_signal(name, arguments);
    }
}

#[godot_api]
impl IMultiplayerPeerExtension for RoomMultiplayerPeer {
    fn poll(&mut self) {
        self.session.poll();
        while let Some(signal) = self.session.next_signal() {
            self.signal(signal);
        }
    }

    fn close(&mut self) {
        self.session.close();
    }

    fn disconnect_peer(&mut self, peer: i32, force: bool) {
        self.session.disconnect(peer, force);
    }

    fn get_available_packet_count(&self) -> i32 {
        i32::try_from(self.session.packets().len()).unwrap_or(i32::MAX)
    }

    fn get_max_packet_size(&self) -> i32 {
        i32::try_from(self.session.link().max_reliable()).unwrap_or(i32::MAX)
    }

    // Without pointers; Godot copies the bytes.
    fn get_packet_script(&mut self) -> PackedByteArray {
        let packet = self.session.next_packet();
        packet.map_or_else(PackedByteArray::new, |packet| packet.data.as_ref().into())
    }

    fn put_packet_script(&mut self, buffer: PackedByteArray) -> Error {
        let Ok(channel) = u8::try_from(self.channel) else {
            let text = format!("the channel is {}; give 0 to 255", self.channel);
            return self.report(Err(LinkError {
                code: Code::InvalidArgument,
                text,
            }));
        };
        let mode = match self.mode {
            TransferMode::UNRELIABLE => Mode::Unreliable,
            TransferMode::UNRELIABLE_ORDERED => Mode::UnreliableOrdered,
            _ => Mode::Reliable,
        };
        let data = Bytes::copy_from_slice(buffer.as_slice());
        let sent = self.session.send(self.target, &data, channel, mode);
        self.report(sent)
    }

    fn get_packet_channel(&self) -> i32 {
        let next = self.session.packets().front();
        next.map_or(0, |packet| packet.channel.into())
    }

    fn get_packet_mode(&self) -> TransferMode {
        match self.session.packets().front().map(|packet| packet.mode) {
            Some(Mode::Unreliable) => TransferMode::UNRELIABLE,
            Some(Mode::UnreliableOrdered) => TransferMode::UNRELIABLE_ORDERED,
            Some(Mode::Reliable) | None => TransferMode::RELIABLE,
        }
    }

    fn get_packet_peer(&self) -> i32 {
        let next = self.session.packets().front();
        next.map_or(0, |packet| packet.from)
    }

    fn set_transfer_channel(&mut self, channel: i32) {
        self.channel = channel;
    }

    fn get_transfer_channel(&self) -> i32 {
        self.channel
    }

    fn set_transfer_mode(&mut self, mode: TransferMode) {
        self.mode = mode;
    }

    fn get_transfer_mode(&self) -> TransferMode {
        self.mode
    }

    fn set_target_peer(&mut self, peer: i32) {
        self.target = peer;
    }

    fn is_server(&self) -> bool {
        self.session.id() == ids::SERVER
    }

    fn is_server_relay_supported(&self) -> bool {
        true
    }

    fn get_unique_id(&self) -> i32 {
        self.session.id()
    }

    fn set_refuse_new_connections(&mut self, refuse: bool) {
        self.session.link_mut().refuse_new_clients(refuse);
    }

    fn is_refusing_new_connections(&self) -> bool {
        self.session.link().refuses_new_clients()
    }

    fn get_connection_status(&self) -> ConnectionStatus {
        match self.session.status() {
            Status::Disconnected => ConnectionStatus::DISCONNECTED,
            Status::Connecting => ConnectionStatus::CONNECTING,
            Status::Connected(_) => ConnectionStatus::CONNECTED,
        }
    }
}

fn text(value: Option<impl ToString>) -> GString {
    value.map_or_else(GString::new, |value| GString::from(&value.to_string()))
}
