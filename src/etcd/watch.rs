//! Watches, each with a stream of its own.

use std::sync::Arc;

use etcd_client::{Client, Event, EventType, WatchOptions, WatchResponse, WatchStream};

use super::endpoints::{Connection, Endpoints};
use super::fault::Fault;
use super::requests::{describe, entry};
use crate::core::election::engine::{Answer, Change, FailureKind, Range, Request, Revision};

/// Watches, and answers through `notify`, until the watch fails.
pub(super) async fn run(
    endpoints: Arc<Endpoints>,
    range: Range,
    from: Revision,
    notify: impl Fn(Answer),
) {
    let begin = |client| begin(client, range.clone(), from);
    let what = describe(&Request::Watch {
        range: range.clone(),
        from,
    });
    let deadline = endpoints.deadline();
    let begun = endpoints.ask(&what, deadline, Vec::new(), begin).await;
    let (stream, connection) = match begun {
        Ok(begun) => begun,
        Err(failure) => return notify(Answer::Failed(failure)),
    };
    let fault = follow(stream, &connection, &notify).await;
    if fault.kind == FailureKind::Unreachable {
        endpoints.give_up(&connection);
    }
    let tried = [(connection.endpoint(), fault)];
    notify(Answer::Failed(endpoints.failure(&what, &tried)));
}

async fn begin(mut client: Client, range: Range, from: Revision) -> Result<WatchStream, Fault> {
    let options = WatchOptions::new()
        .with_start_revision(from)
        // Without it, many changes at once could exceed the limit of a message.
        .with_fragment();
    let (key, options) = match range {
        Range::Key(key) => (key, options),
        Range::Prefix(prefix) => (prefix, options.with_prefix()),
    };
    let mut stream = client.watch(&*key, Some(options)).await?;
    // The first message shows whether the watch has begun.
    match stream.message().await? {
        Some(begun) if begun.canceled() => Err(cancelled(&begun)),
        Some(_) => Ok(stream),
        None => Err(Fault::unreachable("the server has ended the watch")),
    }
}

/// Reports changes until the watch ends. Returns the reason of the end.
async fn follow(
    mut stream: WatchStream,
    connection: &Connection,
    notify: &impl Fn(Answer),
) -> Fault {
    loop {
        let message = tokio::select! {
            message = stream.message() => message,
            () = connection.given_up() => {
                return Fault::unreachable("no answer to another request");
            }
        };
        match message {
            Ok(Some(message)) if message.canceled() => return cancelled(&message),
            Ok(Some(message)) => {
                let changes: Vec<_> = message.events().iter().filter_map(change).collect();
                if !changes.is_empty() {
                    notify(Answer::Changes(changes));
                }
            }
            Ok(None) => return Fault::unreachable("the server has ended the watch"),
            Err(error) => return error.into(),
        }
    }
}

fn cancelled(message: &WatchResponse) -> Fault {
    Fault::cancelled(message.compact_revision(), message.cancel_reason())
}

fn change(event: &Event) -> Option<Change> {
    let entry = entry(event.kv()?);
    Some(match event.event_type() {
        EventType::Put => Change::Put(entry),
        EventType::Delete => Change::Deleted {
            key: entry.key,
            revision: entry.modified,
        },
    })
}
