//! Settings of the etcd strategy.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::time::Duration;

/// The rules that all members share: members that differ do not link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EtcdRules {
    /// The first eight bytes of the SHA-256 of the prefix: members with another one elect another leader.
    pub prefix: u64,
}

/// What the strategy needs of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdConfig {
    /// What all keys of the room begin with, without a slash at its end.
    pub prefix: Arc<str>,
    /// How long a lease lives that is not kept alive, in whole seconds; the store may grant more.
    pub ttl: Duration,
    /// Where others reach this node, as they read it while this node leads.
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
