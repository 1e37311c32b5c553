//! The client of etcd: carries a strategy's requests to its store ([`engine`]), and nothing else.
//!
//! Leases, campaigns and locks belong to the strategy (`core::election::etcd`). This module has the connections:
//! several endpoints, of which one is used until it fails (`endpoints`), renewal of logins, TLS, and the meaning of
//! etcd's errors (`fault`). [`Store`] runs on the room's thread and never waits: each request is a task of its own.
//!
//! [`engine`]: crate::core::election::engine

mod endpoints;
mod error;
mod fault;
mod keeper;
mod requests;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{AbortHandle, JoinSet};

use crate::config::EtcdSettings;
use crate::core::election::engine::{Answer, Call, Failure, FailureKind, Request};
use endpoints::Endpoints;
use keeper::Keepers;

pub use error::StoreError;

/// Limit of requests under way, watches included. Further ones fail at once.
const MAX_UNDER_WAY: usize = 512;

/// A client of one etcd cluster. Dropping it cancels all requests under way; no further answer comes.
#[derive(Debug)]
pub struct Store {
    endpoints: Arc<Endpoints>,
    keepers: Keepers,
    answers: UnboundedSender<(Call, Answer)>,
    runtime: Handle,
    tasks: JoinSet<()>,
    watches: HashMap<Call, AbortHandle>,
}

impl Store {
    /// Reads the files that the settings name, and connects with the first request. Answers go to `answers`.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start(
        settings: EtcdSettings,
        answers: UnboundedSender<(Call, Answer)>,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            endpoints: Arc::new(Endpoints::new(settings)?),
            keepers: Keepers::default(),
            answers,
            runtime: Handle::current(),
            tasks: JoinSet::new(),
            watches: HashMap::new(),
        })
    }

    /// Carries a request. Answers come as [`Request`] describes, a failure within the request timeout of the settings.
    pub fn request(&mut self, call: Call, request: Request) {
        while self.tasks.try_join_next().is_some() {}
        if let Request::Unwatch { call } = request {
            if let Some(watch) = self.watches.remove(&call) {
                watch.abort();
            }
            return;
        }
        if self.tasks.len() >= MAX_UNDER_WAY {
            let failure = Failure {
                kind: FailureKind::Unreachable,
                text: format!(
                    "{} was not asked of etcd: {MAX_UNDER_WAY} requests are under way",
                    requests::describe(&request)
                ),
            };
            // The room may have dropped the receiver.
            let _ = self.answers.send((call, Answer::Failed(failure)));
            return;
        }
        let endpoints = Arc::clone(&self.endpoints);
        let answers = self.answers.clone();
        if let Request::Watch { range, from } = request {
            self.watches.retain(|_, watch| !watch.is_finished());
            let reported = watch::run(endpoints, range, from, move |answer| {
                let _ = answers.send((call, answer));
            });
            let task = self.tasks.spawn_on(reported, &self.runtime);
            self.watches.insert(call, task);
            return;
        }
        if let Request::Revoke { lease } = request {
            self.keepers.forget(lease);
        }
        let keepers = self.keepers.clone();
        let answered = async move {
            let answer = match request {
                Request::KeepAlive { lease } => keepers.keep_alive(&endpoints, lease).await,
                request => requests::run(&endpoints, request).await,
            };
            let _ = answers.send((call, answer.unwrap_or_else(Answer::Failed)));
        };
        self.tasks.spawn_on(answered, &self.runtime);
    }
}
