//! Cards of rooms in the local network: a room shows one, and browsers of the same game list it without knowing the room.
//!
//! A browser asks by multicast, and the leaders of rooms with a card answer it alone. A room sends to no process that
//! has not asked. mDNS, which discovery uses ([`super::discovery`]), does not serve here: any sender's record replaces or removes
//! another's in its cache, and the crate does not report who sent it. So each answer is signed by the key of the member that
//! shows the card, and made out to the browser that asked.

pub(crate) mod askers;
pub(crate) mod card;
pub(crate) mod group;
pub(crate) mod list;
pub(crate) mod packet;
pub(crate) mod showing;
mod sources;

/// Default UDP port of the questions.
pub(crate) const DEFAULT_PORT: u16 = 15354;
