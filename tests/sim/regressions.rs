//! Seeds that once broke a property. They run first, for ever.

/// The seeds.
pub(crate) const SEEDS: &[u64] = &[];
