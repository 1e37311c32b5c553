//! The parameters of a starting strategy.

use serde::de::DeserializeOwned;

use super::bound::WallClock;
use super::{ElectionConfig, InvalidSavedState};
use crate::id::{Fingerprint, Incarnation, PeerId};
use crate::opaque::Opaque;

/// The parameters of a starting strategy whose state is an `S`.
#[derive(Debug, Clone)]
pub struct Start<S = Opaque> {
    /// The name of this node.
    pub me: PeerId,
    /// Its key.
    pub key: Fingerprint,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// The settings.
    pub config: ElectionConfig,
    /// The state that the incarnation before this one stored last
    /// ([`Extra::Persist`](super::Extra::Persist)).
    pub saved: Option<S>,
    /// The wall clock.
    pub clock: WallClock,
    /// Decides every random choice.
    pub seed: u64,
}

impl Start {
    /// Decodes the saved state as an `S`.
    ///
    /// # Errors
    /// [`InvalidSavedState`].
    pub(super) fn decoded<S: DeserializeOwned>(self) -> Result<Start<S>, InvalidSavedState> {
        let saved = self.saved.map(|saved| saved.decode()).transpose();
        Ok(Start {
            me: self.me,
            key: self.key,
            incarnation: self.incarnation,
            config: self.config,
            saved: saved.map_err(|_| InvalidSavedState)?,
            clock: self.clock,
            seed: self.seed,
        })
    }
}
