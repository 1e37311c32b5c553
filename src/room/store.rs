//! The external store that elects, where the strategy asks one: etcd, in builds that have it.

#[cfg(test)]
mod tests;

use tokio::sync::mpsc;

use crate::config::EtcdSettings;
use crate::core::election::engine::{Answer, Call, Request};
use crate::error::StartError;

/// Carries requests of the core, without waiting for anything. Dropped, it ends all that is under way.
pub(super) trait Store: Send {
    /// Asks; the answers come out of the channel that it was started with.
    fn request(&mut self, call: Call, request: Request);
}

/// Where a store answers.
pub(super) type Answers = mpsc::UnboundedSender<(Call, Answer)>;

#[cfg(feature = "etcd")]
impl Store for crate::etcd::Store {
    fn request(&mut self, call: Call, request: Request) {
        Self::request(self, call, request);
    }
}

/// Starts on the current runtime.
///
/// # Errors
/// [`StartError::Store`], where the settings cannot be used.
#[cfg(feature = "etcd")]
pub(super) fn start(
    settings: EtcdSettings,
    answers: Answers,
) -> Result<Box<dyn Store>, StartError> {
    match crate::etcd::Store::start(settings, answers) {
        Ok(store) => Ok(Box::new(store)),
        Err(error) => Err(StartError::Store {
            what: error.to_string(),
        }),
    }
}

/// Never called: options with this strategy are refused.
///
/// # Errors
/// Always.
#[cfg(not(feature = "etcd"))]
pub(super) fn start(_: EtcdSettings, _: Answers) -> Result<Box<dyn Store>, StartError> {
    Err(StartError::internal("this build has no etcd"))
}
