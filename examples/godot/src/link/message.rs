//! The messages between a server and its clients.

use meta_mystia_network::bytes::Bytes;
use meta_mystia_network::core::event::{Delivery, Incoming};
use meta_mystia_network::room::{DEFAULT_PRIORITY, OutMessage, Reliable, SendMode, Unreliable};

/// The unreliable size that every path carries, in bytes.
pub const MAX_UNRELIABLE: usize = 1100;

const CONNECT: u16 = 0x0100;
const ACCEPT: u16 = 0x0101;
const DISCONNECT: u16 = 0x0102;
/// The lower byte is the attempt: packets of one channel can overtake the answers on another.
const DATA: u16 = 0x0200;

/// Delivery of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Once or never, up to [`MAX_UNRELIABLE`] bytes.
    Unreliable,
    /// As [`Mode::Unreliable`]; one that is older than the newest of its channel is dropped.
    UnreliableOrdered,
    /// In the order of the calls with the same channel.
    Reliable,
}

impl Mode {
    pub(super) fn on(self, channel: u8) -> SendMode {
        let key = match self {
            Self::Reliable => {
                return SendMode::Reliable(Reliable {
                    channel,
                    ..Reliable::default()
                });
            }
            Self::Unreliable => None,
            Self::UnreliableOrdered => Some(u64::from(channel)),
        };
        SendMode::Unreliable(Unreliable {
            channel,
            priority: DEFAULT_PRIORITY,
            ttl: None,
            key,
        })
    }

    fn of(delivery: Delivery) -> Self {
        match delivery {
            Delivery::Unreliable => Self::Unreliable,
            Delivery::Sequenced => Self::UnreliableOrdered,
            Delivery::ReliableOrdered | Delivery::ReliableUnordered => Self::Reliable,
        }
    }
}

/// A message. The attempt is the client's: it counts the times that it has asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    Connect {
        attempt: u8,
    },
    Accept {
        attempt: u8,
        id: i32,
    },
    Disconnect {
        attempt: u8,
    },
    Data {
        attempt: u8,
        channel: u8,
        mode: Mode,
        data: Bytes,
    },
}

impl Message {
    /// `None` for a message of another kind, or a malformed one.
    pub(super) fn read(incoming: Incoming) -> Option<Self> {
        let payload = &incoming.payload;
        match incoming.msg_type {
            CONNECT => Some(Self::Connect {
                attempt: only(payload)?,
            }),
            DISCONNECT => Some(Self::Disconnect {
                attempt: only(payload)?,
            }),
            ACCEPT => {
                let (&attempt, id) = payload.split_first()?;
                let id = i32::from_le_bytes(id.try_into().ok()?);
                (id > crate::ids::SERVER).then_some(Self::Accept { attempt, id })
            }
            data if data & 0xFF00 == DATA && !payload.is_empty() => Some(Self::Data {
                attempt: (data & 0xFF) as u8,
                channel: incoming.channel,
                mode: Mode::of(incoming.delivery),
                data: incoming.payload,
            }),
            _ => None,
        }
    }
}

fn only(payload: &[u8]) -> Option<u8> {
    match payload {
        [byte] => Some(*byte),
        _ => None,
    }
}

pub(super) fn connect(attempt: u8) -> OutMessage {
    message(CONNECT, Bytes::copy_from_slice(&[attempt]))
}

pub(super) fn disconnect(attempt: u8) -> OutMessage {
    message(DISCONNECT, Bytes::copy_from_slice(&[attempt]))
}

pub(super) fn accept(attempt: u8, id: i32) -> OutMessage {
    let mut payload = vec![attempt];
    payload.extend(id.to_le_bytes());
    message(ACCEPT, payload.into())
}

pub(super) fn data(attempt: u8, data: Bytes) -> OutMessage {
    message(DATA | u16::from(attempt), data)
}

fn message(msg_type: u16, payload: Bytes) -> OutMessage {
    OutMessage {
        payload,
        msg_type,
        flags: 0,
    }
}
