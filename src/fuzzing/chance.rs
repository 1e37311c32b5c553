//! Source of choices: a fuzzer's bytes, or a seed.

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Makes choices. Bytes that have run out are zeros, so that every input ends.
pub(crate) enum Chance<'a> {
    /// Bytes that a fuzzer mutates.
    Bytes(&'a [u8]),
    /// A generator with a seed.
    Seeded(Box<ChaCha8Rng>),
}

impl Chance<'static> {
    /// The choices from one seed.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::Seeded(Box::new(ChaCha8Rng::seed_from_u64(seed)))
    }
}

impl Chance<'_> {
    /// Whether no byte is left.
    pub(crate) fn is_spent(&self) -> bool {
        matches!(self, Self::Bytes([]))
    }

    pub(crate) fn byte(&mut self) -> u8 {
        match self {
            Self::Bytes(bytes) => match bytes.split_first() {
                Some((first, rest)) => {
                    *bytes = rest;
                    *first
                }
                None => 0,
            },
            Self::Seeded(random) => random.next_u32().to_le_bytes()[0],
        }
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        if limit <= 1 {
            return 0;
        }
        let number = match limit <= 256 {
            true => u64::from(self.byte()),
            false => u64::from(self.byte()) << 16 | u64::from(self.byte()) << 8,
        };
        // The distribution need not be uniform.
        (number % limit as u64) as usize
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub(crate) fn pick<'v, T>(&mut self, values: &'v [T]) -> &'v T {
        &values[self.below(values.len())]
    }

    /// `len` bytes. Cheap for long ones: one byte is repeated.
    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![self.byte(); len];
        for byte in bytes.iter_mut().take(16) {
            *byte = self.byte();
        }
        bytes
    }

    /// A length from 0 to a little above `limit`, at which most of them lie.
    pub(crate) fn length(&mut self, limit: usize, above: bool) -> usize {
        match self.below(8) {
            0..4 => self.below(8).min(limit),
            4 => limit / 2,
            5 => limit - usize::from(limit > 0),
            6 => limit,
            _ => limit + usize::from(above),
        }
    }
}
