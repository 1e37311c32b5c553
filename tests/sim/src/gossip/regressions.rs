//! Seeds that once broke a property of rooms that elect by gossip. Every run starts with them.

/// The seeds.
#[rustfmt::skip]
pub const SEEDS: &[u64] = &[
    // Two places that never reach each other: a third between them led for a moment.
    4076, 4776,
    // An observer that does not reach the leader.
    363, 853,
    // A member that cannot receive from the leader has two elections.
    3129,
    // A leader that leaves may not lead any more.
    606, 765,
];
