//! Seeds and plans of rooms with walls that once broke a property. Every run starts with them.

/// Plans, with the faults that they found.
pub const PLANS: &[(&str, &str)] = &[];

/// Seeds.
pub const SEEDS: &[u64] = &[
    // A member that had left stayed the carrier of the links that it had carried.
    6,
    // A link that came up over its only carrier lost it at once, and fell silent again and again.
    80, 105,
    // A restarted member was not dialled directly: its addresses had gone with the session of its earlier incarnation.
    214, // A lost member was not dialled directly: what it had stated counted as hearsay.
    799,
];

/// Seeds of rooms with relays.
pub const RELAY_SEEDS: &[u64] = &[];
