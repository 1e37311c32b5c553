//! Encoding of a QUIC packet as datagrams of another link: [`TUNNEL_DATAGRAM`], a header, and the
//! packet or one of its two parts.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};
use room_core::virtual_address::{VIRTUAL_ID_BYTES, VirtualId};

/// The first byte of a datagram that holds a packet of a tunnel, or a part of one.
pub const TUNNEL_DATAGRAM: u8 = 2;
/// Longest packet that a tunnel carries. Links through a tunnel send at most 1200 bytes; the rest is for later versions.
pub const MAX_PACKET_BYTES: usize = 1500;
/// The datagram's first byte, direction and part, number, and the member that the direction names.
pub const HEADER_BYTES: usize = 1 + 1 + 2 + VIRTUAL_ID_BYTES;
/// Packets of one sender of which one part has arrived, at most. A part waits only for one that was sent right behind it, so
/// older ones have lost theirs.
pub const MAX_HALVES_OF_ONE: usize = 8;
/// Packets of all senders behind one link of which one part has arrived, at most.
pub const MAX_HALVES: usize = 32;

const FORWARD_BIT: u8 = 1;
const PART_SHIFT: u8 = 1;

/// Direction of a datagram, with the member that its header names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// From a member to its carrier; names the target.
    To(VirtualId),
    /// From the carrier to a member; names the origin.
    From(VirtualId),
}

/// The part of a packet that a datagram holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// The first of two parts.
    First,
    /// The second of two parts.
    Second,
}

/// Header before the packet or its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Where the datagram goes or comes from.
    pub way: Way,
    /// How much of the packet follows.
    pub part: Part,
    /// The sender's number of the packet; both parts of a packet have the same.
    pub number: u16,
}

/// Contents of one datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// How much of the packet it is.
    pub part: Part,
    /// The number of the packet.
    pub number: u16,
    /// The packet, or the part of it.
    pub bytes: Bytes,
}

/// Decodes a datagram; `None` if it is malformed.
pub fn decode(mut datagram: Bytes) -> Option<(Way, Piece)> {
    let header = datagram.get(..HEADER_BYTES)?;
    let [TUNNEL_DATAGRAM, kind, low, high, id @ ..] = header else {
        return None;
    };
    let id = VirtualId::try_from(id).ok()?;
    let way = match kind & FORWARD_BIT {
        0 => Way::From(id),
        _ => Way::To(id),
    };
    let part = match kind >> PART_SHIFT {
        0 => Part::Whole,
        1 => Part::First,
        2 => Part::Second,
        _ => return None,
    };
    let number = u16::from_le_bytes([*low, *high]);
    let bytes = datagram.split_off(HEADER_BYTES);
    let fits = !bytes.is_empty() && bytes.len() <= MAX_PACKET_BYTES;
    fits.then_some((
        way,
        Piece {
            part,
            number,
            bytes,
        },
    ))
}

/// Encodes a datagram.
pub fn encode(header: Header, bytes: &[u8]) -> Bytes {
    let mut datagram = BytesMut::with_capacity(HEADER_BYTES + bytes.len());
    let (forward, id) = match header.way {
        Way::To(id) => (FORWARD_BIT, id),
        Way::From(id) => (0, id),
    };
    let part = match header.part {
        Part::Whole => 0,
        Part::First => 1,
        Part::Second => 2,
    };
    datagram.put_u8(TUNNEL_DATAGRAM);
    datagram.put_u8(part << PART_SHIFT | forward);
    datagram.put_u16_le(header.number);
    datagram.put_slice(&id);
    datagram.put_slice(bytes);
    datagram.freeze()
}

/// The datagrams that carry `piece`, none longer than `max`; `None` if it does not fit. Only a whole packet
/// can be split, into halves that fit any path.
pub fn datagrams(way: Way, piece: &Piece, max: usize) -> Option<(Bytes, Option<Bytes>)> {
    let header = |part| Header {
        way,
        part,
        number: piece.number,
    };
    let bytes = &piece.bytes;
    if HEADER_BYTES + bytes.len() <= max {
        return Some((encode(header(piece.part), bytes), None));
    }
    let half = bytes.len().div_ceil(2);
    if piece.part != Part::Whole || HEADER_BYTES + half > max {
        return None;
    }
    let (first, second) = bytes.split_at(half);
    Some((
        encode(header(Part::First), first),
        Some(encode(header(Part::Second), second)),
    ))
}

/// Reassembles packets that came in parts through one link.
#[derive(Debug, Default)]
pub struct Halves {
    /// Oldest first.
    waiting: VecDeque<(VirtualId, Piece)>,
}

impl Halves {
    /// Takes a piece of the sender `from`. Returns the packet that is complete now, if any, and
    /// whether another one was given up.
    pub fn take(&mut self, from: VirtualId, piece: Piece) -> (Option<Bytes>, bool) {
        if piece.part == Part::Whole {
            return (Some(piece.bytes), false);
        }
        let same = |(of, other): &(VirtualId, Piece)| *of == from && other.number == piece.number;
        if let Some(at) = self.waiting.iter().position(same)
            && let Some((_, other)) = self.waiting.remove(at)
        {
            let (first, second) = match (other.part, piece.part) {
                (Part::First, Part::Second) => (other, piece),
                (Part::Second, Part::First) => (piece, other),
                // A part that arrived twice: it was duplicated, or the numbers have wrapped. The newer one is kept.
                _ => {
                    self.waiting.push_back((from, piece));
                    return (None, false);
                }
            };
            if first.bytes.len() + second.bytes.len() > MAX_PACKET_BYTES {
                return (None, true);
            }
            let whole = [first.bytes, second.bytes].concat();
            return (Some(Bytes::from(whole)), false);
        }
        let of_it = |(of, _): &&(VirtualId, Piece)| *of == from;
        let oldest = if self.waiting.iter().filter(of_it).count() >= MAX_HALVES_OF_ONE {
            self.waiting.iter().position(|waiting| of_it(&waiting))
        } else if self.waiting.len() >= MAX_HALVES {
            Some(0)
        } else {
            None
        };
        if let Some(at) = oldest {
            self.waiting.remove(at);
        }
        self.waiting.push_back((from, piece));
        (None, oldest.is_some())
    }

    /// The number of parts that wait for the other one.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
