//! What a voter keeps of another one, where a majority of fixed voters elects.

use serde::{Deserialize, Serialize};

use crate::core::id::{Fingerprint, Incarnation};

/// What a voter remembers of another one for as long as the session lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownVoter {
    /// The key that it showed first. Nobody else is that voter.
    pub key: Fingerprint,
    /// Which incarnation of it showed `writes`.
    pub incarnation: Incarnation,
    /// The largest write counter that it showed; 0 if none yet.
    pub writes: u64,
}
