//! LZ4 for payloads: the uncompressed length as a little-endian `u32`, then one LZ4 block.

use bytes::Bytes;
use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

/// Bytes of the uncompressed length before a block.
const LENGTH_BYTES: usize = 4;
/// No byte of an LZ4 block stands for more bytes than this (each further byte of a length adds at most 255).
const MAX_RATIO: usize = 255;

/// The compressed form of `payload`, where that is shorter.
pub(crate) fn pack(payload: &[u8]) -> Option<Bytes> {
    let length = u32::try_from(payload.len()).ok()?;
    let mut packed = vec![0; LENGTH_BYTES + get_maximum_output_size(payload.len())];
    packed[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    let len = LENGTH_BYTES + compress_into(payload, &mut packed[LENGTH_BYTES..]).ok()?;
    if len >= payload.len() {
        return None;
    }
    packed.truncate(len);
    packed.shrink_to_fit(); // it waits in queues
    Some(packed.into())
}

/// The payload whose compressed form is `packed`. Nothing is allocated for one that is longer than `max`, or
/// that cannot be as long as it says.
///
/// # Errors
/// What no honest sender sends.
pub(crate) fn unpack(packed: &[u8], max: usize) -> Result<Bytes, &'static str> {
    let (length, block) = packed
        .split_first_chunk::<LENGTH_BYTES>()
        .ok_or("a compressed message without its length")?;
    let len = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    if len > max {
        return Err("a compressed message is longer than this host takes");
    }
    if len > block.len().saturating_mul(MAX_RATIO) {
        return Err("a compressed message cannot be as long as it says");
    }
    let mut payload = vec![0; len];
    match decompress_into(block, &mut payload) {
        Ok(written) if written == len => Ok(payload.into()),
        _ => Err("a compressed message is not what it says"),
    }
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
        fn what_is_packed_comes_out_again(
            seed in proptest::collection::vec(any::<u8>(), 0..64), times in 1_usize..200,
        ) {
            let payload = seed.repeat(times);
            if let Some(packed) = pack(&payload) {
                prop_assert!(packed.len() < payload.len());
                prop_assert_eq!(unpack(&packed, payload.len()), Ok(Bytes::from(payload)));
            }
        }

        #[test]
        fn whatever_comes_is_refused_or_has_the_declared_length(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), len in 0_u32..5000,
        ) {
            if let Ok(payload) = unpack(&framed(len, &bytes), 4000) {
                prop_assert_eq!(payload.len(), len as usize);
                prop_assert!(payload.len() <= 4000);
            }
        }
    }
}
