//! A UDP socket that has failed is replaced by another one on its port, under the links that use it.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use quinn::Endpoint;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, timeout};

use super::socket::{self, Bound};
use super::udp::Failed;

/// The wait before the second try. Each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A new socket that has not failed within this long works.
const SETTLED: Duration = Duration::from_secs(2);

/// A queue for the one report of a socket that counts.
pub(crate) fn reports() -> (mpsc::Sender<Failed>, mpsc::Receiver<Failed>) {
    mpsc::channel(1)
}

/// Replaces the socket of `endpoint` whenever it fails, one try at a time, and notifies `rebound` then. Ends with its runtime.
pub(crate) async fn rebind_what_fails(
    endpoint: Endpoint,
    bound: Bound,
    mut reports: mpsc::Receiver<Failed>,
    rebound: Arc<Notify>,
) {
    while let Some(failed) = reports.recv().await {
        if !failed.is_open() {
            continue;
        }
        let (port, began) = (bound.port, Instant::now());
        tracing::warn!(error = %failed.error, port, "the room's UDP socket gives nothing but errors; the room binds its port anew");
        replace_until_it_works(&endpoint, bound, failed, &mut reports).await;
        let after_ms = (began.elapsed().saturating_sub(SETTLED)).as_millis();
        tracing::info!(port, after_ms, "the room's UDP socket works again");
        rebound.notify_one();
    }
}

async fn replace_until_it_works(
    endpoint: &Endpoint,
    bound: Bound,
    mut failed: Failed,
    reports: &mut mpsc::Receiver<Failed>,
) {
    let mut tries = Tries::default();
    loop {
        failed.close().await;
        while let Err(error) = rebind(endpoint, bound) {
            let wait = tries.next_wait();
            if tries.is_first_to_fail() {
                warn_that_it_is_not_bound(bound, &error);
            }
            sleep(wait).await;
        }
        match timeout(SETTLED, next_failure(reports)).await {
            Ok(Some(again)) => failed = again,
            Ok(None) | Err(_) => return,
        }
        sleep(tries.next_wait()).await;
    }
}

/// A report of a socket that is closed already is of an earlier one.
async fn next_failure(reports: &mut mpsc::Receiver<Failed>) -> Option<Failed> {
    loop {
        let failed = reports.recv().await?;
        if failed.is_open() {
            return Some(failed);
        }
    }
}

fn rebind(endpoint: &Endpoint, bound: Bound) -> io::Result<()> {
    endpoint.rebind(socket::bind(bound.address, bound.port)?)
}

fn warn_that_it_is_not_bound(bound: Bound, error: &io::Error) {
    let port = bound.port;
    match error.kind() {
        ErrorKind::AddrInUse => tracing::warn!(
            port,
            "another process has taken the room's UDP port; the room tries again until it is free"
        ),
        _ => {
            tracing::warn!(%error, port, "the room's UDP port cannot be bound; the room tries again")
        }
    }
}

/// The tries to replace a socket, until one works.
#[derive(Debug, Default)]
struct Tries {
    waits: u32,
    failed: bool,
}

impl Tries {
    fn next_wait(&mut self) -> Duration {
        let doublings = self.waits.min(16);
        self.waits += 1;
        (FIRST_WAIT * (1 << doublings)).min(LONGEST_WAIT)
    }

    /// Whether no try has failed before: the log names one.
    fn is_first_to_fail(&mut self) -> bool {
        !std::mem::replace(&mut self.failed, true)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

    use quinn::{Connection, EndpointConfig};
    use room_transport::identity::{Identity, SERVER_NAME, client_config, server_config};
    use room_transport::quic::{open_windows, transport_config};
    use room_transport::testing::in_time;
    use socket2::{Domain, Protocol, Socket, Type};

    use super::*;
    use crate::net::closed_ports;
    use crate::net::tunnel::Tunnels;
    use crate::net::udp::{UdpRuntime, shut_down};

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn endpoint_of(udp: UdpSocket) -> Endpoint {
        endpoint_with(udp, Arc::default())
    }

    /// An endpoint that replaces its socket, and notifies.
    fn endpoint_with(udp: UdpSocket, rebound: Arc<Notify>) -> Endpoint {
        let identity = Identity::generate().expect("an identity");
        let (failed, reports) = reports();
        let tunnels = Arc::new(Tunnels::new(identity.fingerprint(), 0));
        let runtime = UdpRuntime {
            failed,
            refused: Some(closed_ports::reports().0),
            ..UdpRuntime::of_a_test(tunnels)
        };
        let transport = Arc::new(transport_config());
        let server = server_config(&identity, Arc::clone(&transport)).expect("a configuration");
        let client = client_config(&identity, None, transport).expect("a configuration");
        let bound = Bound {
            address: Some(LOOPBACK),
            port: udp.local_addr().expect("bound").port(),
        };
        let config = EndpointConfig::default();
        let mut endpoint =
            Endpoint::new(config, Some(server), udp, Arc::new(runtime)).expect("an endpoint");
        endpoint.set_default_client_config(client);
        tokio::spawn(rebind_what_fails(endpoint.clone(), bound, reports, rebound));
        endpoint
    }

    fn working() -> Endpoint {
        endpoint_of(socket::bind(Some(LOOPBACK), 0).expect("bound"))
    }

    /// A socket that fails to send and to receive: it is one of TCP, and not connected. Its UDP port is free.
    fn failing() -> UdpSocket {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).expect("one");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&any.into()).expect("bound");
        socket.into()
    }

    /// Both ends of a link from `one` to `other`.
    async fn linked(one: &Endpoint, other: &Endpoint) -> (Connection, Connection) {
        let address = socket::canonical(other.local_addr().expect("bound"));
        let dial = one.connect(address, SERVER_NAME).expect("dialled");
        let accept = async { other.accept().await.expect("dialled").await };
        let (dialled, accepted) = in_time(async { tokio::join!(dial, accept) }).await;
        let (dialled, accepted) = (dialled.expect("linked"), accepted.expect("linked"));
        open_windows(&accepted);
        open_windows(&dialled);
        (dialled, accepted)
    }

    async fn carries(from: &Connection, to: &Connection) {
        let send = async {
            let mut stream = from.open_uni().await.expect("a stream");
            stream.write_all(b"still here").await.expect("written");
            stream.finish().expect("open");
        };
        let receive = async {
            let mut stream = to.accept_uni().await.expect("a stream");
            stream.read_to_end(64).await.expect("read")
        };
        let ((), received) = in_time(async { tokio::join!(send, receive) }).await;
        assert_eq!(received, b"still here");
    }

    #[tokio::test(start_paused = true)]
    async fn a_socket_that_receives_nothing_but_errors_is_replaced_on_its_port() {
        let rebound = Arc::<Notify>::default();
        let failing = endpoint_with(failing(), Arc::clone(&rebound));
        let before = failing.local_addr().expect("bound");
        let one = working();
        let (dialled, accepted) = linked(&one, &failing).await;
        carries(&dialled, &accepted).await;
        in_time(rebound.notified()).await;
        assert_eq!(failing.local_addr().expect("bound"), before);
    }

    /// Linux refuses to shut a socket down that is not connected, and does it all the same: it sends nothing any more.
    #[cfg(target_os = "linux")]
    #[tokio::test(start_paused = true)]
    async fn links_survive_a_socket_that_stops_sending_in_either_role() {
        for dials in [true, false] {
            let (breaks, stays) = (working(), working());
            let before = breaks.local_addr().expect("bound");
            let (one, other) = match dials {
                true => linked(&breaks, &stays).await,
                false => linked(&stays, &breaks).await,
            };
            shut_down(before.port());
            carries(&one, &other).await;
            carries(&other, &one).await;
            assert_eq!(breaks.local_addr().expect("bound"), before);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_port_that_another_process_has_taken_is_bound_when_it_is_free() {
        let broken = failing();
        let port = broken.local_addr().expect("bound").port();
        let other = UdpSocket::bind((LOOPBACK, port)).expect("free");
        let endpoint = endpoint_of(broken);
        // Longer than the socket takes to fail, and the second try to come.
        sleep(Duration::from_millis(1200)).await;
        drop(other);
        let one = working();
        let (dialled, accepted) = linked(&one, &endpoint).await;
        carries(&dialled, &accepted).await;
    }

    #[test]
    fn tries_become_rarer_and_the_log_names_one() {
        let mut tries = Tries::default();
        let waits: Vec<_> = (0..8).map(|_| tries.next_wait().as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
        assert!(tries.is_first_to_fail() && !tries.is_first_to_fail());
    }
}
