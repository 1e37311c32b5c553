//! The card as the host gives it.

use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::core::id::{IdError, PeerId};
use crate::quoted::Quoted;

/// Longest data of the game in a card, in bytes.
pub(crate) const MAX_DATA_BYTES: usize = 400;

/// Why a text is no name of a game or a card.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} {} is not allowed: {why}", Quoted(text))]
pub struct BadName {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub text: String,
    /// Its fault.
    pub why: IdError,
}

/// A name of 1 to 64 bytes, under the rules of a peer id.
pub(crate) fn checked_name(field: &'static str, text: &str) -> Result<(), BadName> {
    let checked = PeerId::new(text).map(drop);
    checked.map_err(|why| BadName {
        field,
        text: text.to_owned(),
        why,
    })
}

/// A game as packets name it: games do not see each other's rooms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Game(pub(crate) [u8; 8]);

impl Game {
    /// The game with this name.
    ///
    /// # Errors
    /// [`BadName`].
    pub fn new(name: &str) -> Result<Self, BadName> {
        checked_name("game", name)?;
        let hash = Sha256::digest(name.as_bytes());
        Ok(Self(hash.first_chunk().copied().unwrap_or_default()))
    }
}

/// A card as the host gives it. The library adds what it knows itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// The game.
    pub game: Game,
    /// Name for players.
    pub name: String,
    /// Most players that the host wants to show; 0 for none.
    pub max_players: u32,
    /// Bytes of the game.
    pub data: Vec<u8>,
    /// Whether the card holds the session id.
    pub is_open: bool,
    /// UDP port of the questions.
    pub port: u16,
}
