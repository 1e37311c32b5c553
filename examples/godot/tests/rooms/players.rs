//! A player without an engine: polls its session as Godot's `SceneMultiplayer` does.

use std::time::{Duration, Instant};

use meta_mystia_network::bytes::Bytes;
use room_multiplayer_peer::link::{Mode, Packet, Settings};
use room_multiplayer_peer::session::{Session, Signal, Status};

/// Generous: other programs may use the machine, too.
pub const LIMIT: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Player {
    pub session: Session,
    pub signals: Vec<Signal>,
    pub packets: Vec<Packet>,
}

impl Player {
    pub fn hosting(name: &str) -> Self {
        let mut player = Self::default();
        player.session.host(settings(name)).expect("a room opens");
        player
    }

    pub fn joining(name: &str, address: &str) -> Self {
        let mut player = Self::default();
        let joined = player.session.join(settings(name), address);
        joined.expect("a client begins to connect");
        player
    }

    pub fn address(&self) -> String {
        let address = self.session.link().address().expect("a room");
        // The room is bound to every address.
        let port = address.rsplit(':').next().expect("a port");
        format!("127.0.0.1:{port}")
    }

    pub fn is_connected(&self) -> bool {
        matches!(self.session.status(), Status::Connected(_))
    }

    pub fn hosts(&self) -> bool {
        self.session.status() == Status::Connected(1)
    }

    pub fn send(&mut self, target: i32, text: &str) {
        let data = Bytes::copy_from_slice(text.as_bytes());
        let sent = self.session.send(target, &data, 0, Mode::Reliable);
        sent.unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    /// The packets that have come, as sender and text.
    pub fn texts(&self) -> Vec<(i32, String)> {
        let texts = self.packets.iter();
        texts
            .map(|packet| (packet.from, String::from_utf8_lossy(&packet.data).into()))
            .collect()
    }

    pub fn has_text(&self, from: i32, text: &str) -> bool {
        self.texts().contains(&(from, text.to_owned()))
    }

    /// One frame: the signals, then the packets.
    pub fn frame(&mut self) {
        self.session.poll();
        while let Some(signal) = self.session.next_signal() {
            self.signals.push(signal);
        }
        while self.is_connected()
            && let Some(packet) = self.session.next_packet()
        {
            self.packets.push(packet);
        }
    }
}

pub fn settings(name: &str) -> Settings {
    Settings {
        session: "tea".into(),
        secret: "rosehip".into(),
        member: name.into(),
        timeout: LIMIT,
        ..Settings::default()
    }
}

/// Frames of all players until it holds.
pub fn until(players: &mut [&mut Player], what: &str, holds: impl Fn(&[&mut Player]) -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds(players) {
        if Instant::now() > deadline {
            let seen: Vec<_> = players
                .iter()
                .map(|player| (player.session.status(), &player.signals, player.texts()))
                .collect();
            panic!("not within {LIMIT:?}: {what}: {seen:#?}");
        }
        players.iter_mut().for_each(|player| player.frame());
        std::thread::sleep(Duration::from_millis(2));
    }
}
