//! What once broke a property. It runs first, for ever.
//!
//! A seed means what the plans of its time drew, and no more since they draw something else: the old ones are
//! kept because they cost nothing. A plan means the same for ever, as long as its own steps do.

/// Plans, with what they found.
pub const PLANS: &[(&str, &str)] = &[];

/// Seeds.
#[rustfmt::skip]
pub const SEEDS: &[u64] = &[
    // Allowing elections again and again put the election off for ever.
    2, 5, 7,
    // A SetLeader that met a leader's heartbeat on its way was undone; links that came back counted as gone.
    53, 111, 116, 121, 128, 163,
    // A node that may not campaign never learned of a leader out of its reach.
    44, 186, 1216, 1376, 1510, 1543, 2197, 6128,
    // Two leaders that shared one follower deposed each other for ever.
    4475, 4811, 6463, 8102, 8399,
    // A leader gave up while its new voters were still in their grace, or ran up terms while it waited.
    210_874, 220_094, 237_958,
];
