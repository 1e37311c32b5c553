//! What once broke a property of rooms with the seeded strategy. It runs first, for ever.
//!
//! A seed means what the plans of its time drew, and no more since they draw something else.

/// Seeds.
pub const SEEDS: &[u64] = &[
    9_610_001_178, // a leader had a majority between two probes, and led on without one
    9_900_029_867, // a voter whose state file was an older copy waited for a TTL, and its leader had no majority meanwhile
];
