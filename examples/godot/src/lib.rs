//! Godot's high-level multiplayer on a room: `RoomMultiplayerPeer`.
//!
//! `session` and what it uses know nothing of Godot; `peer` is the thin layer for the engine.

pub mod ids;
pub mod link;
mod peer;
pub mod session;

use godot::prelude::{ExtensionLibrary, gdextension};

struct Extension;

// SAFETY: the entry point that Godot calls is the one of this macro; the extension keeps no state of its own outside of objects.
#[gdextension]
unsafe impl ExtensionLibrary for Extension {}
