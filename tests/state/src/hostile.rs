//! Members that send anything: frames of others with changed bytes, frames again, frames out of order. The others need not keep
//! what a member of a room can undo, but they neither panic nor grow, and they agree once it is gone.

use rand::Rng;
use room_state::wire::Frame;

use crate::world::World;

/// The member that sends anything.
pub const LIAR: usize = 0;

impl World {
    /// Makes something else of a frame of the liar; `None` if no member would decode it.
    pub(crate) fn distort(&mut self, frame: Frame) -> Option<Frame> {
        let rng = self.rng();
        let mut bytes = frame.encode();
        match rng.random_range(0..4) {
            0 => {}
            1 => {
                let at = rng.random_range(0..bytes.len());
                bytes[at] ^= 1 << rng.random_range(0..8);
            }
            2 => {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.random_range(0..5)];
            }
            _ => {
                let at = rng.random_range(0..bytes.len());
                let number = [0xff; 9];
                bytes.splice(at..=at, number.into_iter().chain([1]));
            }
        }
        Frame::decode(&bytes).ok()
    }
}
