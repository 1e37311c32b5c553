//! Links: the endpoint, who may enter, streams and queues.

pub(crate) mod admission;
pub(crate) mod dial;
pub(crate) mod discovery;
pub(crate) mod frame;
pub(crate) mod identity;
pub(crate) mod lane;
pub(crate) mod limiter;
pub(crate) mod link;
pub(crate) mod outbox;
pub(crate) mod packing;
pub(crate) mod relay;
pub(crate) mod socket;
pub(crate) mod tries;
