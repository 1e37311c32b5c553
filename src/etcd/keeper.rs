//! Keeping leases alive: one stream for each lease, kept open from one request to the next.
//!
//! The answers of such a stream carry no number. So a stream has one request open at a time, and one that failed to answer is
//! thrown away: its late answer cannot pass for that of a later request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use etcd_client::{Client, Error, LeaseKeepAliveStream, LeaseKeeper};
use tokio::time::timeout_at;

use super::endpoints::{Connection, Endpoints};
use super::fault::Fault;
use super::requests::{describe, duration};
use crate::core::election::engine::{Answer, Failure, FailureKind, Lease, Request};

/// Most streams kept open. Leases are revoked before others are granted; those that end unrevoked would stay.
const MAX_STREAMS: usize = 128;

/// The streams that no request uses now.
#[derive(Debug, Clone, Default)]
pub(super) struct Keepers(Arc<Mutex<HashMap<Lease, Stream>>>);

#[derive(Debug)]
struct Stream {
    connection: Arc<Connection>,
    requests: LeaseKeeper,
    answers: LeaseKeepAliveStream,
}

impl Keepers {
    /// Asks for another length of a lease: on its stream, or on a new one where there is none or it does not answer.
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

/// Opens a stream; `None` where there is no such lease. The client keeps the answer to its first request to itself, so that
/// a second one follows.
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
