//! What once broke a property of rooms that elect by gossip. It runs first, for ever.

/// Seeds.
#[rustfmt::skip]
pub const SEEDS: &[u64] = &[
    // Two places that never reach each other: a third between them led for a moment.
    4076, 4776,
    // An observer that does not reach the leader.
    363, 853,
    // Whoever does not hear the leader has two elections.
    3129,
    // A leader that leaves may not lead any more.
    606, 765,
];
