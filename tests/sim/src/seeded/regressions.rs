//! What once broke a property of rooms with the seeded strategy. It runs first, for ever.

/// Seeds.
pub const SEEDS: &[u64] = &[];
