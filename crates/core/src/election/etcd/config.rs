//! Settings of the etcd strategy.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::time::Duration;

/// The rules that all members share; members with different rules do not link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EtcdRules {
    /// The first eight bytes of the SHA-256 of the prefix: members with different prefixes elect different leaders.
    pub prefix: u64,
}

/// This node's settings for the strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdConfig {
    /// The prefix of all keys of the room, without a trailing slash.
    pub prefix: Arc<str>,
    /// The time to live of a lease without keep-alives, in whole seconds; the store may grant more.
    pub ttl: Duration,
    /// This node's address, which others read while this node leads.
    pub address: String,
}

impl EtcdConfig {
    /// The time to live of a lease that the options leave out.
    pub const DEFAULT_TTL: Duration = Duration::from_secs(10);
}

impl Default for EtcdConfig {
    fn default() -> Self {
        Self {
            prefix: Arc::from(""),
            ttl: Self::DEFAULT_TTL,
            address: String::new(),
        }
    }
}
