//! The parts of the network that a room and a relay share.
//!
//! A relay forwards the packets of tunnels between processes that it does not admit to anything. So it needs the same keys and TLS
//! ([`identity`]), the same use of QUIC ([`quic`], [`congestion`], [`timers`]) and the same packets and queues ([`tunnel`]) as a
//! room, and nothing of membership or elections.

pub mod base32;
pub mod closing;
pub mod congestion;
mod connection_ids;
pub mod identity;
pub mod quic;
pub mod rendezvous;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod timers;
pub mod token;
pub mod tunnel;
