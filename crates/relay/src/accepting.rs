//! The endpoint, as far as a dial has no link yet.

use std::sync::Arc;

use quinn::{Endpoint, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ending::End;
use crate::figures::Refusal;
use crate::link::{self, ENTER_TIMEOUT};
use crate::server::Server;

/// Dials that are accepted only to name the reason for which they are refused, at most; further ones are refused without one.
const MAX_EXPLAINING: usize = 64;

/// Accepts until the endpoint closes.
pub(crate) async fn accept_all(server: Arc<Server>, endpoint: Endpoint) {
    let explaining = Arc::new(Semaphore::new(MAX_EXPLAINING));
    while let Some(incoming) = endpoint.accept().await {
        // The relay keeps nothing for an address before it has proved that it receives packets sent to it.
        if !incoming.remote_address_validated() {
            // The only error is that it has come back with a token, and then it is validated.
            let _ = incoming.retry();
            continue;
        }
        let address = incoming.remote_address().ip().to_canonical();
        match server.place(address) {
            Ok(place) => drop(tokio::spawn(link::serve(place, incoming))),
            Err(reason) => {
                server.counters.refuse(reason);
                // An explanation costs a handshake.
                let explains = reason != Refusal::Handshakes;
                match Arc::clone(&explaining).try_acquire_owned() {
                    Ok(permit) if explains => drop(tokio::spawn(explain(incoming, reason, permit))),
                    _ => incoming.refuse(),
                }
            }
        }
    }
}

/// Accepts a dial to close it with a reason.
async fn explain(incoming: Incoming, reason: Refusal, _permit: OwnedSemaphorePermit) {
    let accepted = tokio::time::timeout(ENTER_TIMEOUT, incoming.into_future());
    if let Ok(Ok(connection)) = accepted.await {
        End::Refused(reason).close(&connection);
    }
}
