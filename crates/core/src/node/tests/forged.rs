//! Messages that no honest member sends.

use super::*;
use crate::wire::Decider;

/// A message that a test forges.
#[derive(Debug, Clone)]
pub(super) enum Forged {
    Plain(Message),
    Election(ElectionMessage),
    Heartbeat(Beat),
}

impl Forged {
    pub(super) fn encoded(self, stamp: Stamp, writes: u64, heartbeat: u64) -> Message {
        match self {
            Self::Plain(message) => message,
            Self::Election(message) => Message::Election(Opaque::of(&Stamped {
                stamp,
                writes,
                message,
            })),
            Self::Heartbeat(beat) => Message::Heartbeat(Heartbeat {
                seq: heartbeat,
                echo: None,
                host_silent_ms: 0,
                room_time_us: None,
                pulse: Opaque::of(&Beat { writes, ..beat }),
            }),
        }
    }
}

impl From<Message> for Forged {
    fn from(message: Message) -> Self {
        Self::Plain(message)
    }
}

impl From<ElectionMessage> for Forged {
    fn from(message: ElectionMessage) -> Self {
        Self::Election(message)
    }
}

impl From<Pulse> for Forged {
    fn from(pulse: Pulse) -> Self {
        Self::Heartbeat(pulse.into())
    }
}

impl From<Beat> for Forged {
    fn from(beat: Beat) -> Self {
        Self::Heartbeat(beat)
    }
}

/// The vote election's part of a message, if it has one.
pub(super) fn elects(message: &Message) -> Option<ElectionMessage> {
    let Message::Election(part) = message else {
        return None;
    };
    Some(part.decode::<Stamped>().expect("of votes").message)
}

impl Net {
    /// A running node as the decider of its decisions as leader.
    pub(super) fn decider(&self, name: &str) -> Decider {
        Decider {
            leader: id(name),
            incarnation: self.place(name).life.incarnation,
        }
    }

    /// Forges a message of a member.
    pub(super) fn forge(&mut self, from: &str, to: &str, message: impl Into<Forged>) {
        let stamp = self.node(from).record().stamp.clone();
        self.forge_at(from, to, stamp, 0, message);
    }

    /// Forges a message with any stamp and any write counter.
    pub(super) fn forge_at(
        &mut self,
        from: &str,
        to: &str,
        stamp: Stamp,
        writes: u64,
        message: impl Into<Forged>,
    ) {
        // The sender's own heartbeats get later numbers.
        let sender = self.places.get_mut(&id(from)).expect("a member");
        let heartbeat = sender.node.take_heartbeat_number();
        let envelope = Envelope {
            incarnation: sender.life.incarnation,
            message: message.into().encoded(stamp, writes, heartbeat),
        };
        let from = id(from);
        let _ = self.feed(&id(to), Input::Message { from, envelope });
    }
}
