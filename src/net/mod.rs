//! Links: the endpoint, who may enter, streams and queues.

pub(crate) mod admission;
pub(crate) mod close;
pub(crate) mod compression;
mod congestion;
mod control;
pub(crate) mod datagrams;
pub(crate) mod dial;
pub(crate) mod discovery;
pub(crate) mod events;
pub(crate) mod frame;
pub(crate) mod identity;
pub(crate) mod in_progress;
mod intake;
pub(crate) mod lane;
pub(crate) mod limiter;
pub(crate) mod link;
pub(crate) mod outbox;
pub(crate) mod received;
mod relay;
pub(crate) mod simulation;
pub(crate) mod socket;
pub(crate) mod timers;
pub(crate) mod tries;
pub(crate) mod tunnel;
pub(crate) mod udp;
