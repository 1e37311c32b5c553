//! Members that send anything: frames of others with changed bytes, frames again, frames out of order, and frames about
//! snapshots that no member asked for or has. The others need not keep what a member of a room can undo, but they neither panic
//! nor grow, and they agree once it is gone.

use bytes::Bytes;
use rand::Rng;
use room_state::ballot::History;
use room_state::limits::{MAX_INDEX, Options};
use room_state::replica::Input;
use room_state::wire::{Frame, Piece};

use crate::world::{World, name};

/// The member that sends anything.
pub const LIAR: usize = 0;
/// The largest number of a ballot that is credible in a room with a liar.
const CREDIBLE: u64 = 1_000_000;

/// Makes something else of a frame; `None` if no member would decode it.
pub fn distort<R: Rng>(rng: &mut R, frame: &Frame) -> Option<Frame> {
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

impl World {
    /// Delivers a frame in the name of a member; one that breaks the protocol ends its link.
    pub(crate) fn deliver_in_the_name(
        &mut self,
        from: usize,
        to: usize,
        frame: Frame,
    ) -> Result<(), String> {
        let now = self.now;
        let input = Input::Frame {
            from: name(from),
            frame,
            largest_number: CREDIBLE,
        };
        let Some(replica) = &mut self.nodes[to].replica else {
            return Ok(());
        };
        match replica.handle(now, input) {
            Ok(()) => self.carry_out(to),
            Err(_) => self.cut(from, to),
        }
    }

    /// Frames about snapshots for a member: many questions, and parts and answers that fit nothing, or almost.
    pub(crate) fn forge(&mut self, to: usize) -> Vec<Frame> {
        let Some(replica) = &self.nodes[to].replica else {
            return Vec::new();
        };
        let (history, confirmed) = (replica.history(), replica.confirmed());
        let history = history.unwrap_or(History(1));
        let rng = self.rng();
        let index = |rng: &mut rand_chacha::ChaCha8Rng| match rng.random_range(0..4) {
            0 => 0,
            1 => confirmed,
            2 => confirmed + rng.random_range(0..20),
            _ => MAX_INDEX,
        };
        let count = rng.random_range(1..20);
        let frame = |_| match rng.random_range(0..3) {
            0 => Frame::Want {
                history,
                from: index(rng),
            },
            1 => Frame::Part {
                history,
                piece: piece(rng, index),
            },
            _ => Frame::PartArrived {
                history,
                index: index(rng),
                received: rng.random_range(0..2000),
            },
        };
        (0..count).map(frame).collect()
    }
}

/// A part of a snapshot, short or as long as a snapshot may be, at its beginning or anywhere.
fn piece<R: Rng>(rng: &mut R, index: impl Fn(&mut R) -> u64) -> Piece {
    let longest = Options::default().max_snapshot_bytes;
    let total = [0, 1, 100, 300, longest, longest + 1][rng.random_range(0..6)];
    let offset = match rng.random_bool(0.7) {
        true => 0,
        false => rng.random_range(0..=total.min(300)),
    };
    let length = (total - offset).min(rng.random_range(0..200));
    Piece {
        index: index(rng),
        total,
        offset,
        bytes: Bytes::from(vec![7; length as usize]),
    }
}
