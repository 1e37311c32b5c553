//! Requests with one answer.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Client, Compare, CompareOp, GetOptions, GetResponse, KeyValue, PutOptions};
use etcd_client::{ResponseHeader, SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse, TxnResponse};

use super::endpoints::Endpoints;
use super::fault::Fault;
use crate::core::election::engine::{Answer, Entry, Failure, FailureKind, Range, Request};
use crate::core::election::engine::{Lease, Revision};
use crate::quoted::Quoted;

/// Sends a request, and waits for the answer.
pub(super) async fn run(endpoints: &Endpoints, request: Request) -> Result<Answer, Failure> {
    let what = describe(&request);
    let ask = |client| answer(client, request.clone());
    let (answer, _) = endpoints
        .ask(&what, endpoints.deadline(), Vec::new(), ask)
        .await?;
    Ok(answer)
}

/// The request as the subject of a sentence.
pub(super) fn describe(request: &Request) -> String {
    match request {
        Request::Grant { ttl } => format!("granting a lease of {} s", seconds(*ttl)),
        Request::KeepAlive { lease } => format!("keeping lease {lease:x} alive"),
        Request::Revoke { lease } => format!("revoking lease {lease:x}"),
        Request::Create { key, .. } => format!("creating the key {}", Quoted(key)),
        Request::Replace { key, .. } => format!("writing the key {}", Quoted(key)),
        Request::Get { key } => format!("reading the key {}", Quoted(key)),
        Request::First { prefix, .. } | Request::LastBefore { prefix, .. } => {
            format!("reading keys under {}", Quoted(prefix))
        }
        Request::Watch { range, .. } => match range {
            Range::Key(key) => format!("watching the key {}", Quoted(key)),
            Range::Prefix(prefix) => format!("watching keys under {}", Quoted(prefix)),
        },
        Request::Unwatch { .. } => "ending a watch".to_owned(),
    }
}

async fn answer(mut client: Client, request: Request) -> Result<Answer, Fault> {
    match request {
        Request::Grant { ttl } => {
            let granted = client.lease_grant(seconds(ttl), None).await?;
            Ok(Answer::Granted {
                lease: granted.id(),
                ttl: duration(granted.ttl()),
            })
        }
        Request::Revoke { lease } => match client.lease_revoke(lease).await.map_err(Fault::from) {
            Err(fault) if fault.kind != FailureKind::LeaseGone => Err(fault),
            _ => Ok(Answer::Done),
        },
        Request::Create { key, value, lease } => create(client, key, value, lease).await,
        Request::Replace {
            key,
            created,
            value,
            lease,
        } => replace(client, key, created, value, lease).await,
        Request::Get { key } => found(&client.get(&*key, None).await?),
        Request::First { prefix, at } => {
            let options = GetOptions::new()
                .with_prefix()
                .with_sort(SortTarget::Create, SortOrder::Ascend)
                .with_limit(1)
                .with_revision(at.unwrap_or(0));
            found(&client.get(&*prefix, Some(options)).await?)
        }
        Request::LastBefore { prefix, created } => {
            let options = GetOptions::new()
                .with_prefix()
                .with_sort(SortTarget::Create, SortOrder::Descend)
                .with_max_create_revision(created - 1)
                .with_limit(1);
            found(&client.get(&*prefix, Some(options)).await?)
        }
        Request::KeepAlive { .. } | Request::Watch { .. } | Request::Unwatch { .. } => Err(
            Fault::new(FailureKind::Other, "not a request with one answer"),
        ),
    }
}

async fn create(
    mut client: Client,
    key: Arc<str>,
    value: Vec<u8>,
    lease: Lease,
) -> Result<Answer, Fault> {
    let put = TxnOp::put(
        &*key,
        value.clone(),
        Some(PutOptions::new().with_lease(lease)),
    );
    let creation = Txn::new()
        .when([created_at(&key, 0)])
        .and_then([put])
        .or_else([TxnOp::get(&*key, None)]);
    let response = client.txn(creation).await?;
    let revision = revision(response.header())?;
    let entry = if response.succeeded() {
        Some(Entry {
            key,
            value,
            created: revision,
            modified: revision,
        })
    } else {
        standing(&response)
    };
    Ok(Answer::Entry { entry, revision })
}

async fn replace(
    mut client: Client,
    key: Arc<str>,
    created: Revision,
    value: Vec<u8>,
    lease: Lease,
) -> Result<Answer, Fault> {
    let put = TxnOp::put(
        &*key,
        value.clone(),
        Some(PutOptions::new().with_lease(lease)),
    );
    let replacement = Txn::new().when([created_at(&key, created)]).and_then([put]);
    let response = client.txn(replacement).await?;
    let revision = revision(response.header())?;
    let entry = response.succeeded().then_some(Entry {
        key,
        value,
        created,
        modified: revision,
    });
    Ok(Answer::Entry { entry, revision })
}

/// True if the key was created at this revision; 0 means that it does not exist.
fn created_at(key: &str, revision: Revision) -> Compare {
    Compare::create_revision(key, CompareOp::Equal, revision)
}

/// The entry that the `get` of a transaction found.
fn standing(response: &TxnResponse) -> Option<Entry> {
    match response.op_responses().first() {
        Some(TxnOpResponse::Get(found)) => found.kvs().first().map(entry),
        _ => None,
    }
}

fn found(response: &GetResponse) -> Result<Answer, Fault> {
    Ok(Answer::Entry {
        entry: response.kvs().first().map(entry),
        revision: revision(response.header())?,
    })
}

/// A key with its value, as etcd stores them.
pub(super) fn entry(pair: &KeyValue) -> Entry {
    Entry {
        key: String::from_utf8_lossy(pair.key()).into(),
        value: pair.value().to_vec(),
        created: pair.create_revision(),
        modified: pair.mod_revision(),
    }
}

fn revision(header: Option<&ResponseHeader>) -> Result<Revision, Fault> {
    header
        .map(ResponseHeader::revision)
        .ok_or_else(|| Fault::new(FailureKind::Other, "the answer has no revision"))
}

/// Whole seconds, rounded up.
fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000_000)).unwrap_or(i64::MAX)
}

/// A number of seconds from the server; a negative one is zero.
pub(super) fn duration(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
