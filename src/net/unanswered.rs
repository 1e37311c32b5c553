//! Dials of addresses at which no member has answered yet. Such an address may belong to a machine that has nothing to do
//! with the room, so it receives one packet for each dial and no more.
//!
//! quinn repeats the first packet of a connection, and closes a connection that it gives up with another packet. Until a
//! process answers, all of them carry the connection id that this end chose for it (RFC 9000, section 7.2), however late they
//! are. The socket sends the first and drops the others.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quinn::{ClientConfig, ConnectionId};
use ring::error::Unspecified;
use ring::rand::{SystemRandom, generate};

/// Time that a dial waits for an answer if another one follows after two seconds.
pub(crate) const BRIEF_DIAL: Duration = Duration::from_millis(1900);
/// Length of the connection id that such a dial chooses, in bytes: the longest of QUIC's.
const ID_BYTES: usize = 20;
/// Most ended dials that the socket remembers. quinn closes a connection in the turn after its dial has ended.
const MAX_ENDED: usize = 512;
/// Where a packet with a long header has the length of its destination's connection id, and then the id.
const ID_LENGTH_AT: usize = 5;
/// The bit of the first byte that is set in a long header, which only packets of a handshake have.
const LONG_HEADER: u8 = 0x80;

/// The dials of such addresses that no process has answered.
#[derive(Debug, Default)]
pub(crate) struct Unanswered(Mutex<Dials>);

#[derive(Debug, Default)]
struct Dials {
    /// Whether the one packet was sent, or never shall be.
    is_over: BTreeMap<ConnectionId, bool>,
    /// The ended ones among them, oldest first.
    ended: VecDeque<ConnectionId>,
}

impl Unanswered {
    /// Begins a dial, which makes its connection with `config`.
    ///
    /// # Errors
    /// [`Unspecified`]: the system gives no random bytes.
    pub(super) fn begin(
        self: &Arc<Self>,
        config: &mut ClientConfig,
    ) -> Result<LoneDial, Unspecified> {
        let bytes: [u8; ID_BYTES] = generate(&SystemRandom::new())?.expose();
        let id = ConnectionId::new(&bytes);
        config.initial_dst_cid_provider(Arc::new(move || id));
        self.dials().is_over.insert(id, false);
        Ok(LoneDial {
            dials: Arc::clone(self),
            id,
        })
    }

    /// Whether the socket drops this packet.
    pub(super) fn drops(&self, packet: &[u8]) -> bool {
        destination_id(packet).is_some_and(|id| self.dials().is_over.get(&id) == Some(&true))
    }

    /// Notes that the socket has sent this packet.
    pub(super) fn note_sent(&self, packet: &[u8]) {
        if let Some(id) = destination_id(packet)
            && let Some(is_over) = self.dials().is_over.get_mut(&id)
        {
            *is_over = true;
        }
    }

    fn dials(&self) -> MutexGuard<'_, Dials> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dials {
    fn end(&mut self, id: ConnectionId) {
        let Some(is_over) = self.is_over.get_mut(&id) else {
            return;
        };
        *is_over = true;
        self.ended.push_back(id);
        if self.ended.len() > MAX_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.is_over.remove(&oldest);
        }
    }
}

/// The destination's connection id in a packet of a handshake.
fn destination_id(packet: &[u8]) -> Option<ConnectionId> {
    if packet.first()? & LONG_HEADER == 0 {
        return None;
    }
    let (&len, rest) = packet.get(ID_LENGTH_AT..)?.split_first()?;
    let is_ours = usize::from(len) == ID_BYTES;
    is_ours.then(|| rest.get(..ID_BYTES).map(ConnectionId::new))?
}

/// A dial of such an address.
pub(super) struct LoneDial {
    dials: Arc<Unanswered>,
    id: ConnectionId,
}

impl LoneDial {
    /// A process has answered: the packets that follow carry the id that it chose.
    pub(super) fn answered(self) {
        self.dials.dials().is_over.remove(&self.id);
    }
}

impl Drop for LoneDial {
    fn drop(&mut self) {
        self.dials.dials().end(self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use quinn::{Endpoint, EndpointConfig, VarInt};
    use room_transport::identity::{Identity, SERVER_NAME, client_config, server_config};
    use room_transport::quic::transport_config;

    use super::*;
    use crate::net::tunnel::Tunnels;
    use crate::net::udp::UdpRuntime;

    /// An endpoint, the dials of its socket, and settings of a dial whose first packet quinn soon repeats.
    fn dialler() -> (Endpoint, Arc<Unanswered>, ClientConfig) {
        let identity = Identity::generate().expect("an identity");
        let tunnels = Arc::new(Tunnels::new(identity.fingerprint(), 0));
        let runtime = UdpRuntime::of_a_test(tunnels);
        let unanswered = Arc::clone(&runtime.unanswered);
        let mut transport = transport_config();
        transport.initial_rtt(Duration::from_millis(10));
        let transport = Arc::new(transport);
        let server = server_config(&identity, Arc::clone(&transport)).expect("a configuration");
        let client = client_config(&identity, None, transport).expect("a configuration");
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
        let config = EndpointConfig::default();
        let endpoint = Endpoint::new(config, Some(server), socket, Arc::new(runtime));
        (endpoint.expect("an endpoint"), unanswered, client)
    }

    fn packets(silent: &UdpSocket) -> usize {
        let mut packet = [0; 2048];
        std::iter::from_fn(|| silent.recv(&mut packet).ok()).count()
    }

    #[tokio::test]
    async fn a_silent_address_receives_one_packet_for_each_dial_even_if_the_thread_stalls() {
        let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
        silent.set_nonblocking(true).expect("set");
        let at = silent.local_addr().expect("bound");
        let (endpoint, unanswered, config) = dialler();
        for _ in 0..3 {
            let mut config = config.clone();
            let lone = unanswered.begin(&mut config).expect("random bytes");
            let dial = endpoint
                .connect_with(config, at, SERVER_NAME)
                .expect("dialled");
            let ended = tokio::time::timeout(Duration::from_millis(200), dial).await;
            assert!(ended.is_err(), "nobody answers");
            drop(lone);
            // A stall, and not a wait.
            std::thread::sleep(Duration::from_millis(200));
            endpoint.wait_idle().await;
            assert_eq!(packets(&silent), 1);
        }
        let dial = endpoint
            .connect_with(config, at, SERVER_NAME)
            .expect("dialled");
        let ended = tokio::time::timeout(Duration::from_millis(200), dial).await;
        assert!(ended.is_err(), "nobody answers");
        endpoint.wait_idle().await;
        let others = packets(&silent);
        assert!(
            others > 2,
            "quinn repeats and closes any other dial: {others} packets"
        );
    }

    #[tokio::test]
    async fn such_a_dial_links_and_closes_like_any_other() {
        let (one, unanswered, mut config) = dialler();
        let (other, ..) = dialler();
        let at = other.local_addr().expect("bound");
        let lone = unanswered.begin(&mut config).expect("random bytes");
        let dial = one.connect_with(config, at, SERVER_NAME).expect("dialled");
        let accept = async { other.accept().await.expect("dialled").await };
        let (dialled, accepted) = tokio::join!(dial, accept);
        let (dialled, accepted) = (dialled.expect("linked"), accepted.expect("linked"));
        lone.answered();
        assert!(unanswered.dials().is_over.is_empty());
        dialled.close(VarInt::from_u32(7), b"over");
        let closed = accepted.closed().await;
        assert!(matches!(
            closed,
            quinn::ConnectionError::ApplicationClosed(_)
        ));
    }

    #[test]
    fn ended_dials_are_remembered_up_to_a_bound() {
        let (unanswered, mut config) = (Arc::<Unanswered>::default(), config());
        let ids: Vec<_> = (0..=MAX_ENDED)
            .map(|_| unanswered.begin(&mut config).expect("random bytes").id)
            .collect();
        let dials = unanswered.dials();
        assert_eq!(
            (dials.is_over.len(), dials.ended.len()),
            (MAX_ENDED, MAX_ENDED)
        );
        assert!(!dials.is_over.contains_key(&ids[0]) && dials.is_over.contains_key(&ids[1]));
    }

    #[test]
    fn packets_of_other_connections_are_never_dropped() {
        let (unanswered, mut config) = (Arc::<Unanswered>::default(), config());
        let lone = unanswered.begin(&mut config).expect("random bytes");
        let mut first = vec![LONG_HEADER | 0x40, 0, 0, 0, 1, ID_BYTES as u8];
        first.extend_from_slice(&lone.id);
        for len in 0..first.len() {
            unanswered.note_sent(&first[..len]);
            assert!(!unanswered.drops(&first[..len]));
        }
        assert!(!unanswered.drops(&first));
        unanswered.note_sent(&first);
        assert!(unanswered.drops(&first));
        for at in [0, ID_LENGTH_AT, ID_LENGTH_AT + 1, first.len() - 1] {
            let mut other = first.clone();
            other[at] ^= if at == 0 { LONG_HEADER } else { 1 };
            assert!(!unanswered.drops(&other), "{at}");
        }
    }

    fn config() -> ClientConfig {
        let identity = Identity::generate().expect("an identity");
        client_config(&identity, None, Arc::new(transport_config())).expect("a configuration")
    }
}
