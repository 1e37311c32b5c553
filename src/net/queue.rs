//! Queues of incoming links.

use super::limiter::Source;
use crate::core::virtual_address::VirtualId;

/// Queue of an incoming link: that of the source to which it is charged. Behind a relay, strangers wait apart from known keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Queue {
    /// The source.
    pub(super) source: Source,
    /// The id of a stranger behind a relay.
    pub(super) stranger: Option<VirtualId>,
}

impl Queue {
    /// The queue of a source in which links do not wait apart.
    #[cfg(test)]
    pub(super) fn of(source: Source) -> Self {
        Self {
            source,
            stranger: None,
        }
    }

    /// Whether its links come over a relay.
    pub(super) fn is_relayed(self) -> bool {
        matches!(self.source, Source::Relay(_))
    }

    /// The part that all strangers behind the relay share.
    pub(super) fn shared(self) -> (Source, bool) {
        (self.source, self.stranger.is_some())
    }
}
