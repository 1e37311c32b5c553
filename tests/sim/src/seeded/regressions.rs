//! Seeds that once broke a property of rooms with the seeded strategy. Every run starts with them.
//!
//! A seed means the plan that its generator drew, and another plan since the generator changed.

/// The seeds.
pub const SEEDS: &[u64] = &[
    9_610_001_178, // a leader had a majority between two probes, and led on without one
    9_900_029_867, // a voter whose state file was an older copy waited for a TTL, and its leader had no majority meanwhile
    9_019_441, // the simulator counted an old heartbeat that arrived late and that the node ignored
];
