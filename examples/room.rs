//! A room in Rust: its members, its leader, and a chat.
//!
//! ```sh
//! cargo run --example room -- alice tea
//! cargo run --example room -- bob tea ADDRESS_OF_ALICE
//! ```
//!
//! The lines that you type go to all members; the end of input leaves the room. A program of its own needs the library
//! without the C header: `meta_mystia_network = { ..., default-features = false }`.

use std::error::Error;
use std::io::BufRead as _;
use std::sync::Arc;

use meta_mystia_network::bytes::Bytes;
use meta_mystia_network::config::{Config, DiscoveryMode};
use meta_mystia_network::core::id::{PeerId, SessionId};
use meta_mystia_network::dispatch::{ConnectionResult, Incoming, kind};
use meta_mystia_network::room::{OutMessage, Room};
use meta_mystia_network::snapshot::PeerStatus;
use meta_mystia_network::target::parse_target;

/// The library reserves types below this one.
const CHAT: u16 = 0x0100;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, session, contact) = match arguments.as_slice() {
        [name, session] => (name, session, None),
        [name, session, contact] => (name, session, Some(contact.as_str())),
        _ => return Err("usage: room NAME SESSION [ADDRESS]".into()),
    };
    let room = join(name, session, contact, |line| println!("{line}"))?;
    println!("others can join at {}", room.local_address());
    for line in std::io::stdin().lock().lines() {
        send(&room, &line?)?;
    }
    room.close();
    Ok(())
}

/// Joins a room, and dials the member at `contact`, if there is one. Reports its events line by line, on a thread of
/// the library.
pub(crate) fn join(
    name: &str,
    session: &str,
    contact: Option<&str>,
    notify: impl Fn(String) + Send + Sync + 'static,
) -> Result<Room, Box<dyn Error>> {
    let config = Config {
        discovery: DiscoveryMode::Off,
        ..Config::default()
    };
    let room = Room::open(PeerId::new(name)?, SessionId::new(session)?, config)?;
    let notify = Arc::new(notify);
    let handlers = room.dispatch();
    handlers.register::<kind::PeerStatus>(Some(Arc::new({
        let notify = Arc::clone(&notify);
        move |(peer, status): (&PeerId, PeerStatus)| match status {
            PeerStatus::Connected => notify(format!("{peer} is here")),
            _ => notify(format!("{peer} is gone")),
        }
    })));
    handlers.register::<kind::LeaderChanged>(Some(Arc::new({
        let notify = Arc::clone(&notify);
        move |leader: Option<&PeerId>| match leader {
            Some(leader) => notify(format!("{leader} leads")),
            None => notify("no member leads".into()),
        }
    })));
    handlers.register::<kind::ConnectionResult>(Some(Arc::new({
        let notify = Arc::clone(&notify);
        move |result: &ConnectionResult| {
            if !result.success {
                notify(format!("{}: error {}", result.target, result.code));
            }
        }
    })));
    handlers.register::<kind::Receive>(Some(Arc::new(move |message: &Incoming| {
        let text = String::from_utf8_lossy(&message.payload);
        notify(format!("{}: {text}", message.from));
    })));
    if let Some(contact) = contact {
        room.connect(contact, parse_target(contact)?)?;
    }
    Ok(room)
}

/// Sends a line to all members, reliably and in order.
pub(crate) fn send(room: &Room, line: &str) -> Result<(), Box<dyn Error>> {
    room.broadcast(OutMessage {
        payload: Bytes::copy_from_slice(line.as_bytes()),
        msg_type: CHAT,
        flags: 0,
    })?;
    Ok(())
}
