//! A hash over all events of a run: equal for equal seeds (P17), and cheap enough for every run.

use std::mem::discriminant;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use room_core::node::{Input, Node, Output};
use room_core::time::Time;
use room_core::wire::Message;

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventHash(u64);

impl EventHash {
    /// The hash over all events so far.
    pub fn value(self) -> u64 {
        self.0
    }

    fn add(&mut self, number: u64) {
        // FNV-1a over words, with a rotation so that high bits count.
        self.0 = (self.0 ^ number)
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(23);
    }

    /// An input of the node of `slot`.
    pub fn input(&mut self, now: Time, slot: usize, input: &Input) {
        self.add(now.as_micros());
        self.add(slot as u64);
        self.add(code_of(input));
        if let Input::Message { envelope, .. } = input {
            self.message(&envelope.message);
        }
    }

    fn message(&mut self, message: &Message) {
        self.add(code_of(message));
        if let Message::Election(part) = message {
            for byte in part.as_bytes() {
                self.add((*byte).into());
            }
        }
    }

    /// The node's outputs, and its state after them.
    pub fn after(&mut self, node: &Node, outputs: &[Output]) {
        for output in outputs {
            self.add(code_of(output));
            match output {
                Output::Transmit { envelope, .. } => {
                    self.message(&envelope.message);
                }
                Output::Event(event) => self.add(code_of(event)),
                _ => {}
            }
        }
        let stamp = &node.record().stamp;
        self.add(stamp.epoch.override_seq);
        self.add(stamp.term);
        let leader = node.leader().map_or("", |leader| leader.as_str());
        for byte in leader.bytes() {
            self.add(byte.into());
        }
    }
}

/// A number for each variant of an enum, stable over all runs of one program.
fn code_of<T>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    discriminant(value).hash(&mut hasher);
    hasher.finish()
}
