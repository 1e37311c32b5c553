use std::any::Any;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerFactory};
use quinn::{ConnectionError, Endpoint, EndpointConfig, IdleTimeout};
use room_transport::identity::{
    Identity, SERVER_NAME, client_config, peer_fingerprint, server_config,
};
use room_transport::quic::open_windows;
use room_transport::testing::in_time;
use room_transport::timers::Timers;
use room_transport::tunnel::packet::{HEADER_BYTES, Header, TUNNEL_DATAGRAM, encode};
use room_transport::tunnel::queues::MAX_QUEUED_OF_ONE;
use tokio::sync::mpsc;

use super::*;
use crate::core::path::Carrier;
use crate::core::virtual_address::{is_virtual, virtual_address};
use crate::net::rebinding;
use crate::net::simulation::Simulation;
use crate::net::socket;
use crate::net::udp::UdpRuntime;
use crate::simulated::SimulatedNetwork;

/// The MTU of a path whose system reports none.
const LEAST_MTU: u16 = 1200;

/// A process with tunnels.
struct Node {
    identity: Identity,
    endpoint: Endpoint,
    tunnels: Arc<Tunnels>,
    simulation: Arc<Simulation>,
    violations: mpsc::UnboundedSender<&'static str>,
    violated: mpsc::UnboundedReceiver<&'static str>,
}

impl Node {
    fn start() -> Self {
        Self::start_with(transport_config())
    }

    fn start_with(transport: TransportConfig) -> Self {
        let identity = Identity::generate().expect("a key");
        let tunnels = Arc::new(Tunnels::new(identity.fingerprint()));
        let simulation = Arc::<Simulation>::default();
        let runtime = UdpRuntime {
            timers: Timers::start(),
            simulation: Arc::clone(&simulation),
            tunnels: Arc::clone(&tunnels),
            seed: 1,
            failed: rebinding::reports().0,
        };
        let transport = Arc::new(transport);
        let server = server_config(&identity, Arc::clone(&transport)).expect("a configuration");
        let client = client_config(&identity, None, transport).expect("a configuration");
        let udp = socket::bind(Some(Ipv4Addr::LOCALHOST.into()), 0).expect("bound");
        let config = EndpointConfig::default();
        let mut endpoint =
            Endpoint::new(config, Some(server), udp, Arc::new(runtime)).expect("an endpoint");
        endpoint.set_default_client_config(client);
        let (violations, violated) = mpsc::unbounded_channel();
        Self {
            identity,
            endpoint,
            tunnels,
            simulation,
            violations,
            violated,
        }
    }

    fn key(&self) -> Fingerprint {
        self.identity.fingerprint()
    }

    /// Uses a connection as a room does: tunnels lead over it, and its datagrams are read.
    fn uses(&self, connection: &Connection) {
        let key = peer_fingerprint(connection).expect("shown");
        self.tunnels.link_up(key, connection.clone());
        let connection = connection.clone();
        let tunnels = Arc::clone(&self.tunnels);
        let violations = self.violations.clone();
        tokio::spawn(async move {
            while let Ok(datagram) = connection.read_datagram().await {
                if let Err(what) = tunnels.received(key, Path::Direct, datagram) {
                    let _ = violations.send(what);
                }
            }
        });
    }

    /// A direct link, as seen from both ends.
    async fn link(&self, to: &Self) -> (Connection, Connection) {
        let address = to.endpoint.local_addr().expect("bound");
        let dial = self
            .endpoint
            .connect(address, SERVER_NAME)
            .expect("dialled");
        let accept = async { to.endpoint.accept().await.expect("open").await };
        let (dialled, accepted) = in_time(async { tokio::join!(dial, accept) }).await;
        let (dialled, accepted) = (dialled.expect("linked"), accepted.expect("linked"));
        self.uses(&dialled);
        to.uses(&accepted);
        (dialled, accepted)
    }

    /// A link through a tunnel, as seen from both ends.
    async fn link_through(&self, to: &Self) -> (Connection, Connection) {
        self.link_through_with(to, tunnel_transport_config).await
    }

    async fn link_through_with(
        &self,
        to: &Self,
        transport: fn() -> TransportConfig,
    ) -> (Connection, Connection) {
        let client = client_config(&self.identity, Some(to.key()), Arc::new(transport()));
        let server = server_config(&to.identity, Arc::new(transport()));
        let (client, server) = (client.expect("valid"), server.expect("valid"));
        let address = virtual_address(to.key());
        let dial = self
            .endpoint
            .connect_with(client, address, SERVER_NAME)
            .expect("an address");
        let accept = async {
            let incoming = to.endpoint.accept().await.expect("open");
            assert_eq!(incoming.remote_address(), virtual_address(self.key()));
            incoming.accept_with(Arc::new(server)).expect("taken").await
        };
        let (dialled, accepted) = in_time(async { tokio::join!(dial, accept) }).await;
        let (dialled, accepted) = (dialled.expect("linked"), accepted.expect("linked"));
        open_windows(&dialled);
        open_windows(&accepted);
        (dialled, accepted)
    }

    fn leads(&self) {
        self.tunnels.set_relaying(true);
    }

    fn follows(&self, leader: &Self) {
        self.tunnels.set_relay(Some(leader.key()));
    }

    /// Sends bytes that are no QUIC packet through the tunnel.
    fn send_raw(&self, to: Fingerprint, contents: &[u8], segment_size: Option<usize>) {
        let taken = self.tunnels.take(&Transmit {
            destination: virtual_address(to),
            ecn: None,
            contents,
            segment_size,
            src_ip: None,
        });
        assert!(taken);
    }

    fn dropped(&self) -> u64 {
        self.tunnels.stats().dropped
    }
}

/// A leader and members that are linked only to it.
async fn star<const N: usize>(transport: fn() -> TransportConfig) -> (Node, [Node; N]) {
    let leader = Node::start_with(transport());
    leader.leads();
    let members = std::array::from_fn(|_| Node::start_with(transport()));
    for member in &members {
        member.link(&leader).await;
        member.follows(&leader);
    }
    (leader, members)
}

/// Paths of the smallest size that QUIC allows: packets travel in two parts.
fn narrow() -> TransportConfig {
    let mut transport = transport_config();
    transport.initial_mtu(LEAST_MTU).mtu_discovery_config(None);
    transport
}

/// A window that is always full: less than a tunnel alone would fill.
#[derive(Debug, Clone)]
struct FixedWindow;

impl ControllerFactory for FixedWindow {
    fn build(self: Arc<Self>, _now: Instant, _mtu: u16) -> Box<dyn Controller> {
        Box::new(Self)
    }
}

impl Controller for FixedWindow {
    fn on_congestion_event(
        &mut self,
        _now: Instant,
        _sent: Instant,
        _persistent: bool,
        _lost: u64,
    ) {
    }

    fn on_mtu_update(&mut self, _new_mtu: u16) {}

    fn window(&self) -> u64 {
        40_000
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

fn limited() -> TransportConfig {
    let mut transport = transport_config();
    transport.congestion_controller_factory(Arc::new(FixedWindow));
    transport
}

fn hasty() -> TransportConfig {
    let mut transport = tunnel_transport_config();
    let soon = IdleTimeout::try_from(Duration::from_millis(500)).expect("short");
    transport.max_idle_timeout(Some(soon));
    transport
}

fn noise(len: usize) -> Vec<u8> {
    (0..len as u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

async fn send_all(connection: &Connection, sent: &[u8]) {
    let mut stream = connection.open_uni().await.expect("a stream");
    stream.write_all(sent).await.expect("written");
    stream.finish().expect("open");
}

async fn receive_all(connection: &Connection) -> Vec<u8> {
    let mut stream = connection.accept_uni().await.expect("a stream");
    stream.read_to_end(64 << 20).await.expect("read")
}

async fn arrives(from: &Connection, to: &Connection, sent: &[u8]) {
    let transfer = async { tokio::join!(send_all(from, sent), receive_all(to)).1 };
    assert!(in_time(transfer).await == sent, "something else arrived");
}

/// A question and its answer.
async fn echoes(dialled: &Connection, accepted: &Connection) {
    let (mut ask, mut receive) = in_time(dialled.open_bi()).await.expect("a stream");
    ask.write_all(b"question").await.expect("written");
    ask.finish().expect("open");
    let (mut answer, mut asked) = in_time(accepted.accept_bi()).await.expect("a stream");
    let question = in_time(asked.read_to_end(64)).await.expect("read");
    answer.write_all(&question).await.expect("written");
    answer.finish().expect("open");
    assert_eq!(
        in_time(receive.read_to_end(64)).await.expect("read"),
        b"question"
    );
}

#[tokio::test]
async fn two_without_a_path_hold_a_link_through_the_leader() {
    let (leader, [a, b]) = star(transport_config).await;
    let (at_a, at_b) = a.link_through(&b).await;
    assert_eq!(peer_fingerprint(&at_a), Some(b.key()));
    assert_eq!(peer_fingerprint(&at_b), Some(a.key()));
    assert_eq!(at_a.remote_address(), virtual_address(b.key()));
    assert_eq!(at_b.remote_address(), virtual_address(a.key()));
    echoes(&at_a, &at_b).await;
    at_b.send_datagram(Bytes::from_static(b"now"))
        .expect("room");
    assert_eq!(in_time(at_a.read_datagram()).await.expect("read"), "now");
    assert!(leader.tunnels.stats().forwarded > 8);
    assert_eq!(leader.tunnels.stats().delivered, 0);
    assert_eq!([&leader, &a, &b].map(Node::dropped), [0; 3]);
    at_a.close(7_u32.into(), b"done");
    let end = in_time(at_b.closed()).await;
    assert!(
        matches!(end, ConnectionError::ApplicationClosed(_)),
        "{end}"
    );
}

#[tokio::test]
async fn much_arrives_as_it_was_sent() {
    let (_leader, [a, b]) = star(transport_config).await;
    let (at_a, at_b) = a.link_through(&b).await;
    let sent = noise(8 << 20);
    arrives(&at_a, &at_b, &sent).await;
    arrives(&at_b, &at_a, &sent).await;
    assert_eq!(at_a.stats().path.current_mtu, LEAST_MTU);
}

#[tokio::test]
async fn packets_pass_narrow_paths_in_two_parts() {
    let (leader, [a, b]) = star(narrow).await;
    let (at_a, at_b) = a.link_through(&b).await;
    arrives(&at_a, &at_b, &noise(8 << 20)).await;
    let packets = b.tunnels.stats().delivered;
    // Each packet but the acknowledgements is two for the leader.
    assert!(leader.tunnels.stats().forwarded > packets * 3 / 2);
}

#[tokio::test]
async fn the_leader_splits_what_came_whole() {
    let leader = Node::start();
    let (a, b) = (Node::start(), Node::start_with(narrow()));
    leader.leads();
    for member in [&a, &b] {
        member.link(&leader).await;
        member.follows(&leader);
    }
    let (at_a, at_b) = a.link_through(&b).await;
    arrives(&at_a, &at_b, &noise(1 << 20)).await;
    arrives(&at_b, &at_a, &noise(1 << 20)).await;
}

#[tokio::test]
async fn a_link_lives_on_under_the_next_leader_and_not_without_one() {
    let (first, [a, b]) = star(transport_config).await;
    let (at_a, at_b) = a.link_through_with(&b, hasty).await;
    echoes(&at_a, &at_b).await;
    let next = Node::start();
    next.leads();
    for member in [&a, &b] {
        member.link(&next).await;
    }
    first.endpoint.close(0_u32.into(), b"");
    a.follows(&next);
    b.follows(&next);
    echoes(&at_a, &at_b).await;
    assert!(next.tunnels.stats().forwarded > 0);
    next.tunnels.set_relaying(false);
    let mut stream = at_a.open_uni().await.expect("a stream");
    stream.write_all(b"lost").await.expect("taken");
    assert_eq!(in_time(at_a.closed()).await, ConnectionError::TimedOut);
    assert_eq!(in_time(at_b.closed()).await, ConnectionError::TimedOut);
    assert!(next.dropped() > 0);
}

#[tokio::test]
async fn a_stuck_receiver_slows_no_other() {
    let (leader, [a, b, c, d, deaf]) = star(transport_config).await;
    let (at_a, at_b) = a.link_through(&b).await;
    let (at_c, at_d) = c.link_through(&d).await;
    // It acknowledges nothing, so the leader may send it no more.
    deaf.simulation.set(SimulatedNetwork {
        lag: Duration::ZERO,
        jitter: Duration::ZERO,
        loss_permille: 1000,
    });
    let flood = {
        let (tunnels, to) = (Arc::clone(&a.tunnels), virtual_address(deaf.key()));
        tokio::spawn(async move {
            loop {
                tunnels.take(&Transmit {
                    destination: to,
                    ecn: None,
                    contents: &[9; 8 * 1200],
                    segment_size: Some(1200),
                    src_ip: None,
                });
                tokio::task::yield_now().await;
            }
        })
    };
    let stuck = || {
        leader.tunnels.routes().legs[&virtual_id(deaf.key())]
            .queues()
            .len()
    };
    in_time(async {
        while stuck() < MAX_QUEUED_OF_ONE {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let sent = noise(2 << 20);
    tokio::join!(arrives(&at_a, &at_b, &sent), arrives(&at_c, &at_d, &sent));
    assert!(stuck() > 0, "the deaf one has taken what was sent to it");
    assert!(!flood.is_finished());
    flood.abort();
}

#[tokio::test]
async fn the_leaders_own_streams_have_their_turn() {
    let (leader, [a]) = star(limited).await;
    let b = Node::start();
    let (at_leader, at_b) = leader.link(&b).await;
    open_windows(&at_b);
    // The link's window limits the transfer, not this machine.
    leader.simulation.set(SimulatedNetwork {
        lag: Duration::from_millis(5),
        jitter: Duration::ZERO,
        loss_permille: 0,
    });
    let flood = {
        let (leader, origin) = (Arc::clone(&leader.tunnels), a.key());
        let datagram = encode(
            Header {
                way: Way::To(virtual_id(b.key())),
                part: Part::Whole,
                number: 0,
            },
            &[9; 1200],
        );
        tokio::spawn(async move {
            loop {
                let full = leader
                    .routes()
                    .legs
                    .values()
                    .any(|leg| leg.queues().len() > 64);
                if !full {
                    leader
                        .received(origin, Path::Direct, datagram.clone())
                        .expect("well-formed");
                }
                tokio::task::yield_now().await;
            }
        })
    };
    let sent = noise(2 << 20);
    let before = leader.tunnels.stats().forwarded;
    arrives(&at_leader, &at_b, &sent).await;
    let forwarded = leader.tunnels.stats().forwarded - before;
    let own = sent.len() as u64 / 1400;
    // About as many packets of each. Without turns the streams get only the space beside a datagram, a seventh.
    assert!(
        forwarded > own / 8 && forwarded < own * 3,
        "{forwarded} beside {own}"
    );
    assert!(!flood.is_finished());
    flood.abort();
}

#[tokio::test]
async fn packets_that_no_member_sends_are_violations() {
    let (leader, [a, b]) = star(transport_config).await;
    let piece = |way, bytes: &[u8]| {
        let part = Part::Whole;
        encode(
            Header {
                way,
                part,
                number: 1,
            },
            bytes,
        )
    };
    let [to_a, to_b] = [&a, &b].map(|node| Way::To(virtual_id(node.key())));
    let from_leader = Way::From(virtual_id(leader.key()));
    let mut unknown_kind = piece(to_b, b"packet").to_vec();
    unknown_kind[1] = 6;
    for (datagram, what) in [
        (Bytes::from_static(&[TUNNEL_DATAGRAM]), MALFORMED),
        (piece(to_b, b""), MALFORMED),
        (piece(to_b, &[0; MAX_PACKET_BYTES + 1]), MALFORMED),
        (piece(to_b, b"").slice(..HEADER_BYTES - 1), MALFORMED),
        (unknown_kind.into(), MALFORMED),
        (piece(to_a, b"packet"), TO_ITSELF),
        (piece(from_leader, b"packet"), FORGED_ORIGIN),
    ] {
        let taken = leader
            .tunnels
            .received(a.key(), Path::Direct, datagram.clone());
        assert_eq!(taken, Err(what), "{datagram:?}");
    }
    let nested = leader.tunnels.received(
        a.key(),
        Path::Carried(Carrier::Member),
        piece(to_b, b"packet"),
    );
    assert_eq!(nested, Err(NESTED));
    assert_eq!(leader.tunnels.stats(), TunnelStats::default());

    // Over a link the packets are dropped as well.
    let mut at_leader = leader;
    let [at_a, ..] =
        [&a].map(|node| node.tunnels.links()[&at_leader.tunnels.own].connections[0].clone());
    at_a.send_datagram(piece(to_a, b"packet")).expect("room");
    assert_eq!(in_time(at_leader.violated.recv()).await, Some(TO_ITSELF));
}

#[tokio::test]
async fn packets_without_a_target_are_dropped_and_counted() {
    let (leader, [a, b]) = star(transport_config).await;
    let stranger = Fingerprint([9; 32]);
    let to = |key| {
        let way = Way::To(virtual_id(key));
        let part = Part::Whole;
        encode(
            Header {
                way,
                part,
                number: 1,
            },
            b"packet",
        )
    };
    // Unknown target; an origin without a link; a node that no longer leads.
    leader
        .tunnels
        .received(a.key(), Path::Direct, to(stranger))
        .expect("allowed");
    leader
        .tunnels
        .received(stranger, Path::Direct, to(b.key()))
        .expect("allowed");
    leader.tunnels.set_relaying(false);
    leader
        .tunnels
        .received(a.key(), Path::Direct, to(b.key()))
        .expect("allowed");
    assert_eq!(leader.dropped(), 3);
    // A delivery by a member without a link.
    let from = Header {
        way: Way::From(virtual_id(b.key())),
        part: Part::Whole,
        number: 1,
    };
    a.tunnels
        .received(stranger, Path::Direct, encode(from, b"packet"))
        .expect("allowed");
    assert_eq!(a.dropped(), 1);
    // To this node itself; too long; without a relay, or with one that is not linked.
    a.send_raw(a.key(), b"packet", None);
    assert_eq!(a.dropped(), 2);
    a.send_raw(b.key(), &[0; MAX_PACKET_BYTES + 1], None);
    assert_eq!(a.dropped(), 3);
    a.tunnels.set_relay(None);
    a.send_raw(b.key(), &[0; 30], Some(10));
    assert_eq!(a.dropped(), 6);
    a.tunnels.set_relay(Some(stranger));
    a.send_raw(b.key(), b"packet", None);
    assert_eq!(a.dropped(), 7);
    assert_eq!(leader.tunnels.stats().forwarded, 0);
}

/// Delivers a packet that claims to be b's, through `relay` to `receiver`.
fn from_b(receiver: &Node, relay: &Node, b: &Node) {
    let header = Header {
        way: Way::From(virtual_id(b.key())),
        part: Part::Whole,
        number: 1,
    };
    let taken = receiver
        .tunnels
        .received(relay.key(), Path::Direct, encode(header, b"packet"));
    assert_eq!(taken, Ok(()), "another leader may be known there");
}

#[tokio::test]
async fn packets_of_others_come_through_the_present_relay_and_for_a_moment_through_the_last() {
    let (first, [a, b, liar]) = star(transport_config).await;
    let next = Node::start();
    a.link(&next).await;
    a.link(&liar).await;
    let counts = |relay: &Node| {
        let before = a.tunnels.stats();
        from_b(&a, relay, &b);
        let after = a.tunnels.stats();
        let taken = after.delivered - before.delivered;
        assert_eq!(taken + after.dropped - before.dropped, 1);
        taken == 1
    };
    assert!(counts(&first));
    for _ in 0..40 {
        assert!(!counts(&liar), "a member that does not lead");
    }
    a.follows(&next);
    assert!(counts(&next) && counts(&first) && !counts(&liar));
    // Setting the same relay again does not restart the moment.
    tokio::time::pause();
    tokio::time::advance(LAST_RELAY_COUNTS_FOR / 2).await;
    a.follows(&next);
    assert!(counts(&first));
    tokio::time::advance(LAST_RELAY_COUNTS_FOR / 2).await;
    assert!(counts(&next) && !counts(&first));
    // Without a leader only the last relay counts.
    a.tunnels.set_relay(None);
    assert!(counts(&next) && !counts(&first) && !counts(&liar));
    tokio::time::advance(LAST_RELAY_COUNTS_FOR).await;
    assert!(!counts(&next));
}

#[tokio::test]
async fn an_earlier_link_takes_over_when_the_newest_is_down() {
    let (leader, [a, b]) = star(transport_config).await;
    let (dialled, accepted) = b.link(&leader).await;
    let (at_a, at_b) = a.link_through(&b).await;
    leader.tunnels.link_down(b.key(), &accepted);
    b.tunnels.link_down(leader.key(), &dialled);
    dialled.close(0_u32.into(), b"");
    echoes(&at_a, &at_b).await;
    // A second removal does nothing.
    leader.tunnels.link_down(b.key(), &accepted);
    echoes(&at_a, &at_b).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_member_that_is_gone() {
    let leader = Node::start();
    leader.leads();
    let (a, b) = (Node::start(), Node::start());
    let (_, from_a) = a.link(&leader).await;
    let (_, from_b) = b.link(&leader).await;
    let to_b = Header {
        way: Way::To(virtual_id(b.key())),
        part: Part::Whole,
        number: 1,
    };
    // The task of the leg has no time to run meanwhile.
    for _ in 0..10 {
        leader
            .tunnels
            .received(a.key(), Path::Direct, encode(to_b, b"packet"))
            .expect("allowed");
    }
    leader.tunnels.link_down(a.key(), &from_a);
    assert_eq!(leader.dropped(), 10);
    leader.tunnels.link_down(b.key(), &from_b);
    assert!(leader.tunnels.routes().legs.is_empty());
    assert!(leader.tunnels.links().is_empty());
}

/// One run, for the figures.
#[tokio::test]
#[ignore = "it measures"]
async fn throughput() {
    let sent = noise(32 << 20);
    let (leader, [a, b]) = star(transport_config).await;
    let (at_a, at_b) = a.link_through(&b).await;
    let began = Instant::now();
    arrives(&at_a, &at_b, &sent).await;
    let through = began.elapsed();
    assert!(is_virtual(at_a.remote_address()));
    let (at_a, at_b) = a.link(&b).await;
    open_windows(&at_b);
    let began = Instant::now();
    arrives(&at_a, &at_b, &sent).await;
    let direct = began.elapsed();
    println!(
        "through {through:?}, direct {direct:?}, {:?}",
        leader.tunnels.stats()
    );
}
