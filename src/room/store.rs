//! The external store that elects, if the strategy uses one: etcd, in builds that have it.

#[cfg(test)]
mod tests;

use tokio::sync::mpsc;

use crate::config::EtcdSettings;
use crate::core::election::engine::{Answer, Call, Request};
use crate::error::StartError;

/// Carries requests of the core to the store without blocking. Dropping it ends all running requests.
pub(super) trait Store: Send {
    /// Sends a request; its answers come out of the channel that the store was started with.
    fn request(&mut self, call: Call, request: Request);
}

/// Sender for a store's answers.
pub(super) type Answers = mpsc::UnboundedSender<(Call, Answer)>;

#[cfg(feature = "etcd")]
impl Store for crate::etcd::Store {
    fn request(&mut self, call: Call, request: Request) {
        Self::request(self, call, request);
    }
}

/// Starts the store on the current runtime.
///
/// # Errors
/// [`StartError::Store`] if the settings cannot be used.
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
