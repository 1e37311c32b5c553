//! Keep-alives of leases: one stream for each lease, which stays open between requests.
//!
//! The answers of such a stream carry no number. So a stream has one open request at a time, and is dropped after a
//! request without an answer: a late answer must not pass for that of a later request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use etcd_client::{Client, Error, LeaseKeepAliveStream, LeaseKeeper};
use tokio::time::timeout_at;

use super::endpoints::{Connection, Endpoints};
use super::fault::Fault;
use super::requests::{describe, duration};
use crate::core::election::engine::{Answer, Failure, FailureKind, Lease, Request};

/// Limit of open streams. The strategy revokes leases before it asks for others, so only streams of unrevoked leases
/// could accumulate.
const MAX_STREAMS: usize = 128;

/// The streams without an open request.
#[derive(Debug, Clone, Default)]
pub(super) struct Keepers(Arc<Mutex<HashMap<Lease, Stream>>>);

#[derive(Debug)]
struct Stream {
    connection: Arc<Connection>,
    requests: LeaseKeeper,
    answers: LeaseKeepAliveStream,
}

impl Keepers {
    /// Renews a lease: on its stream, or on a new one if there is none or it does not answer.
    pub(super) async fn keep_alive(
        &self,
        endpoints: &Endpoints,
        lease: Lease,
    ) -> Result<Answer, Failure> {
        let deadline = endpoints.deadline();
        let mut tried = Vec::new();
        let kept = self.lock().remove(&lease);
        if let Some(mut stream) = kept {
            let until = endpoints.first_share(deadline);
            let answer = timeout_at(until, stream.keep_alive())
                .await
                .unwrap_or_else(|_| Err(Fault::unreachable("no answer on the open stream")));
            match answer {
                Ok(seconds) => return Ok(self.answer(lease, seconds, stream)),
                Err(fault) => {
                    if fault.kind == FailureKind::Unreachable {
                        endpoints.give_up(&stream.connection);
                    }
                    tried.push((stream.connection.endpoint(), fault));
                }
            }
        }
        let what = describe(&Request::KeepAlive { lease });
        let begin = |client| begin(client, lease);
        let (begun, connection) = endpoints.ask(&what, deadline, tried, begin).await?;
        match begun {
            None => Ok(Answer::Alive { ttl: duration(0) }),
            Some((seconds, requests, answers)) => {
                let stream = Stream {
                    connection,
                    requests,
                    answers,
                };
                Ok(self.answer(lease, seconds, stream))
            }
        }
    }

    /// Drops the stream of a lease.
    pub(super) fn forget(&self, lease: Lease) {
        self.lock().remove(&lease);
    }

    fn answer(&self, lease: Lease, seconds: i64, stream: Stream) -> Answer {
        if seconds > 0 {
            let mut streams = self.lock();
            if streams.len() >= MAX_STREAMS {
                streams.clear();
            }
            streams.insert(lease, stream);
        }
        Answer::Alive {
            ttl: duration(seconds),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Lease, Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    async fn keep_alive(&mut self) -> Result<i64, Fault> {
        tokio::select! {
            answer = exchange(&mut self.requests, &mut self.answers) => answer,
            () = self.connection.given_up() => Err(Fault::unreachable("no answer to another request")),
        }
    }
}

/// Opens a stream; `None` if there is no such lease. etcd-client keeps the answer to its first request, so a second one
/// follows.
async fn begin(
    mut client: Client,
    lease: Lease,
) -> Result<Option<(i64, LeaseKeeper, LeaseKeepAliveStream)>, Fault> {
    let (mut requests, mut answers) = match client.lease_keep_alive(lease).await {
        Ok(stream) => stream,
        Err(Error::LeaseKeepAliveError(reason)) if reason == "lease not found" => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let seconds = exchange(&mut requests, &mut answers).await?;
    Ok(Some((seconds, requests, answers)))
}

async fn exchange(
    requests: &mut LeaseKeeper,
    answers: &mut LeaseKeepAliveStream,
) -> Result<i64, Fault> {
    requests.keep_alive().await?;
    match answers.message().await? {
        Some(answer) => Ok(answer.ttl()),
        None => Err(Fault::unreachable("the server has ended the stream")),
    }
}
