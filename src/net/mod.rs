//! Links: the endpoint, admission, streams and queues.

pub(crate) mod accept;
pub(crate) mod admission;
pub(crate) mod budget;
pub(crate) mod close;
pub(crate) mod closed_ports;
pub(crate) mod compression;
mod control;
pub(crate) mod datagrams;
pub(crate) mod dial;
pub(crate) mod discovery;
pub(crate) mod events;
mod failures;
pub(crate) mod frame;
pub(crate) mod in_progress;
mod intake;
pub(crate) mod lane;
pub(crate) mod limiter;
pub(crate) mod lingering;
pub(crate) mod link;
pub(crate) mod names;
pub(crate) mod outbox;
mod pace;
pub(crate) mod progress;
mod queue;
pub(crate) mod rebinding;
pub(crate) mod received;
mod relay;

pub(crate) mod relay_requests;
pub(crate) mod rendezvous;
pub(crate) mod simulation;
pub(crate) mod socket;
mod state;
mod streams;
pub(crate) mod tries;
pub(crate) mod tunnel;
pub(crate) mod udp;
pub(crate) mod unanswered;

pub(crate) use lane::FIRST_MESSAGE_TYPE;
