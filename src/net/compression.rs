//! LZ4 for payloads: the uncompressed length as a little-endian `u32`, then one LZ4 block.

use std::cell::RefCell;

use bytes::{BufMut, Bytes, BytesMut};
use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

/// Bytes of the uncompressed length before a block.
const LENGTH_BYTES: usize = 4;
/// Upper bound of the compression ratio: each further byte of a length adds at most 255.
const MAX_RATIO: usize = 255;

/// A scratch buffer that has grown beyond this is not kept.
const MAX_KEPT_SCRATCH_BYTES: usize = 64 * 1024;

/// Reusable buffers of the compressor. Setting them up costs more than compressing a short message.
#[derive(Default)]
struct Workspace {
    table: CompressTable,
    scratch: Vec<u8>,
}

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

/// The smallest saving that counts is this part of the payload (1/4). Less hardly saves a packet, and
/// costs both ends as much time.
const LEAST_SAVED_PART: usize = 4;

/// The compressed form of `payload`, if it is shorter by at least a quarter.
pub(crate) fn pack(payload: &[u8]) -> Option<Bytes> {
    let length = u32::try_from(payload.len()).ok()?;
    WORKSPACE.with_borrow_mut(|Workspace { table, scratch }| {
        let longest = get_maximum_output_size(payload.len());
        if scratch.len() < longest {
            scratch.resize(longest, 0);
        }
        let len = compress_into_with_table(payload, scratch, table).ok()?;
        let saves = payload.len().div_ceil(LEAST_SAVED_PART);
        let packed = (LENGTH_BYTES + len + saves <= payload.len()).then(|| {
            let mut packed = BytesMut::with_capacity(LENGTH_BYTES + len); // sized exactly: it waits in queues
            packed.put_u32_le(length);
            packed.put_slice(&scratch[..len]);
            packed.freeze()
        });
        if scratch.len() > MAX_KEPT_SCRATCH_BYTES {
            *scratch = Vec::new();
        }
        packed
    })
}

/// Decides whether to try to compress the next message of a lane. Encrypted data and media do not shrink, and
/// an attempt costs as much as sending. After several failures in a row it skips messages between attempts:
/// at first [`FIRST_PAUSE`], later up to [`LONGEST_PAUSE`].
#[derive(Debug, Default)]
pub(crate) struct CompressionBackoff {
    kinds: [Kind; KINDS],
}

/// Number of message streams with a state of their own; the message type modulo this selects one.
const KINDS: usize = 16;
/// Failures in a row before the first message is skipped.
const FAILURES: u32 = 4;
/// Messages skipped after that.
const FIRST_PAUSE: u32 = 4;
/// Messages skipped at most after further failures.
const LONGEST_PAUSE: u32 = 64;

#[derive(Debug, Default, Clone, Copy)]
struct Kind {
    failures: u32,
    /// Messages still to skip.
    pause: u32,
}

impl CompressionBackoff {
    /// Whether to try to compress the next message of this type.
    pub(crate) fn tries(&mut self, msg_type: u16) -> bool {
        let kind = self.kind(msg_type);
        if kind.pause > 0 {
            kind.pause -= 1;
            return false;
        }
        true
    }

    /// Records whether that attempt saved enough.
    pub(crate) fn tried(&mut self, msg_type: u16, is_shorter: bool) {
        let kind = self.kind(msg_type);
        if is_shorter {
            *kind = Kind::default();
            return;
        }
        kind.failures += 1;
        if let Some(doublings) = kind.failures.checked_sub(FAILURES) {
            let doublings = doublings.min(LONGEST_PAUSE.ilog2());
            kind.pause = LONGEST_PAUSE.min(FIRST_PAUSE << doublings);
        }
    }

    fn kind(&mut self, msg_type: u16) -> &mut Kind {
        &mut self.kinds[usize::from(msg_type) % KINDS]
    }
}

/// Decompresses `packed`. Rejects, before it allocates, a payload longer than `max` or longer than its block can encode.
///
/// # Errors
/// Input that no honest sender sends.
pub(crate) fn unpack(packed: &[u8], max: usize) -> Result<Bytes, &'static str> {
    let (len, block) = parted(packed, max)?;
    let mut payload = vec![0; len];
    match decompress_into(block, &mut payload) {
        Ok(written) if written == len => Ok(payload.into()),
        _ => Err("a compressed message has another length than its header"),
    }
}

/// The uncompressed length of `packed`, without allocating.
///
/// # Errors
/// Input that no honest sender sends.
pub(crate) fn unpacked_len(packed: &[u8], max: usize) -> Result<usize, &'static str> {
    parted(packed, max).map(|(len, _)| len)
}

/// Splits `packed` into the payload's length and its block.
fn parted(packed: &[u8], max: usize) -> Result<(usize, &[u8]), &'static str> {
    let (length, block) = packed
        .split_first_chunk::<LENGTH_BYTES>()
        .ok_or("a compressed message without its length")?;
    let len = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    if len > max {
        return Err("a compressed message is longer than this host takes");
    }
    if len > block.len().saturating_mul(MAX_RATIO) {
        return Err("a compressed message cannot have the length in its header");
    }
    Ok((len, block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framed(len: u32, block: &[u8]) -> Vec<u8> {
        [&len.to_le_bytes(), block].concat()
    }

    #[test]
    fn only_what_becomes_shorter_is_compressed() {
        let text = b"the same words again and again, ".repeat(50);
        let packed = pack(&text).expect("it repeats itself");
        assert!(packed.len() < text.len() / 4);
        assert_eq!(unpack(&packed, text.len()).as_deref(), Ok(&text[..]));
        for short in [&b""[..], b"a", b"abcd", b"aaaaa"] {
            assert_eq!(pack(short), None, "{short:?}");
        }
    }

    #[test]
    fn data_that_saves_less_than_a_quarter_is_sent_uncompressed() {
        let mut bits = 1_u64;
        let mut random = || {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            bits.to_le_bytes()[3]
        };
        let noise: Vec<u8> = std::iter::repeat_with(&mut random).take(1600).collect();
        let with_zeros = |zeros: usize| [&noise[..1600 - zeros], &vec![0; zeros]].concat();
        // The compressed form takes some 20 bytes more: the length of the noise, that of the zeros, and our own length.
        assert_eq!(pack(&with_zeros(400)), None);
        assert!(pack(&with_zeros(440)).is_some());
    }

    #[test]
    fn earlier_compressed_data_leaves_no_trace() {
        let long = b"one and another, ".repeat(10_000);
        let short = b"the same words again and again, ".repeat(50);
        let first = pack(&short);
        assert!(pack(&long).is_some());
        assert_eq!(pack(&short), first);
        assert_eq!(pack(&[7; 3]), None);
    }

    /// The number of these incompressible messages that are tried.
    fn attempts_without_saving(
        backoff: &mut CompressionBackoff,
        msg_type: u16,
        messages: usize,
    ) -> usize {
        let tries = |_: &usize| {
            let tries = backoff.tries(msg_type);
            if tries {
                backoff.tried(msg_type, false);
            }
            tries
        };
        (0..messages).filter(tries).count()
    }

    #[test]
    fn a_stream_that_becomes_no_shorter_is_tried_ever_less_and_never_given_up() {
        let mut backoff = CompressionBackoff::default();
        assert_eq!(attempts_without_saving(&mut backoff, 300, 4), 4);
        assert_eq!(attempts_without_saving(&mut backoff, 300, 4), 0);
        let later = attempts_without_saving(&mut backoff, 300, 1_000_000);
        assert!((15_000..16_000).contains(&later), "{later}");
        // Another type has a state of its own.
        assert_eq!(attempts_without_saving(&mut backoff, 301, 4), 4);
        // After a success every message is tried again; the success comes after 64 messages at most.
        let next = (0..65).position(|_| backoff.tries(300));
        assert!(next.is_some());
        backoff.tried(300, true);
        assert_eq!(attempts_without_saving(&mut backoff, 300, 4), 4);
    }

    #[test]
    fn the_limit_holds_for_the_length_that_is_declared() {
        let zeros = vec![0; 1000];
        let packed = pack(&zeros).expect("zeros");
        assert!(unpack(&packed, 1000).is_ok());
        assert!(unpack(&packed, 999).is_err());
    }

    #[test]
    fn lies_are_refused() {
        let zeros = vec![0; 1000];
        let packed = pack(&zeros).expect("zeros");
        let block = &packed[LENGTH_BYTES..];
        let max = 1 << 20;
        assert!(unpack(b"", max).is_err(), "nothing");
        assert!(unpack(&[1, 0, 0], max).is_err(), "half a length");
        assert!(unpack(&framed(1, b""), max).is_err(), "no block");
        for lie in [0, 1, 999, 1001, 1 << 20] {
            assert!(unpack(&framed(lie, block), max).is_err(), "{lie}");
        }
        for cut in 1..block.len() {
            assert!(unpack(&framed(1000, &block[..cut]), max).is_err(), "{cut}");
        }
        // An offset that reaches before the beginning.
        assert!(unpack(&framed(20, &[0x1f, b'x', 9, 0, 0]), max).is_err());
        assert!(unpack(&framed(u32::MAX, &[0xff; 100]), usize::MAX).is_err());
    }

    proptest! {
        #[test]
        fn packed_bytes_unpack_to_the_original(
            seed in proptest::collection::vec(any::<u8>(), 0..64), times in 1_usize..200,
        ) {
            let payload = seed.repeat(times);
            if let Some(packed) = pack(&payload) {
                prop_assert!(packed.len() < payload.len());
                prop_assert_eq!(unpack(&packed, payload.len()), Ok(Bytes::from(payload)));
            }
        }

        #[test]
        fn every_input_is_refused_or_has_the_declared_length(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), len in 0_u32..5000,
        ) {
            if let Ok(payload) = unpack(&framed(len, &bytes), 4000) {
                prop_assert_eq!(payload.len(), len as usize);
                prop_assert!(payload.len() <= 4000);
            }
        }
    }
}
