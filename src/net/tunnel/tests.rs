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
use room_transport::tunnel::packet::{HEADER_BYTES, Header, TUNNEL_DATAGRAM, encode};
use room_transport::tunnel::queues::MAX_QUEUED_OF_ONE;
use tokio::sync::mpsc;

use super::*;
use crate::core::path::CarrierKind;
use crate::core::virtual_address::id_at;
use crate::core::virtual_address::is_virtual;
use crate::net::simulation::Simulation;
use crate::net::socket;
use crate::net::udp::UdpRuntime;
use crate::simulated::SimulatedNetwork;

/// The MTU of a path whose system reports none.
const LEAST_MTU: u16 = 1200;

/// The links with the member that holds a key.
fn member(key: Fingerprint) -> Via {
    Via::Member(virtual_id(key))
}

/// A process with tunnels.
struct Node {
    identity: Identity,
    endpoint: Endpoint,
    tunnels: Arc<Tunnels>,
    simulation: Arc<Simulation>,
    holds: Mutex<Vec<RouteHold>>,
    violations: mpsc::UnboundedSender<&'static str>,
    violated: mpsc::UnboundedReceiver<&'static str>,
}

impl Node {
    fn start() -> Self {
        Self::start_with(transport_config())
    }

    fn start_with(transport: TransportConfig) -> Self {
        Self::start_carrying(transport, 0)
    }

    fn start_carrying(transport: TransportConfig, carry: u32) -> Self {
        let identity = Identity::generate().expect("a key");
        let tunnels = Arc::new(Tunnels::new(identity.fingerprint(), carry));
        let simulation = Arc::<Simulation>::default();
        let runtime = UdpRuntime {
            simulation: Arc::clone(&simulation),
            ..UdpRuntime::of_a_test(Arc::clone(&tunnels))
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
            holds: Mutex::default(),
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
        self.tunnels.link_up(member(key), connection.clone());
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
        let (dialled, accepted) = self.connect(to).await;
        self.uses(&dialled);
        to.uses(&accepted);
        (dialled, accepted)
    }

    /// A connection that neither end uses.
    async fn connect(&self, to: &Self) -> (Connection, Connection) {
        let address = to.endpoint.local_addr().expect("bound");
        let dial = self
            .endpoint
            .connect(address, SERVER_NAME)
            .expect("dialled");
        let accept = async { to.endpoint.accept().await.expect("open").await };
        let (dialled, accepted) = in_time(async { tokio::join!(dial, accept) }).await;
        (dialled.expect("linked"), accepted.expect("linked"))
    }

    /// The address of `to` over `carrier`; its route stays.
    fn route(&self, to: Fingerprint, carrier: &Self) -> SocketAddr {
        let address = self.tunnels.route(to, member(carrier.key())).expect("room");
        self.hold(address);
        address
    }

    fn hold(&self, address: SocketAddr) {
        let hold = self.tunnels.hold(address).expect("a route");
        self.holds.lock().expect("not poisoned").push(hold);
    }

    /// A link through a tunnel over `carrier`, as seen from both ends.
    async fn link_through(&self, to: &Self, carrier: &Self) -> (Connection, Connection) {
        self.link_through_with(to, carrier, tunnel_transport_config)
            .await
    }

    async fn link_through_with(
        &self,
        to: &Self,
        carrier: &Self,
        transport: fn() -> TransportConfig,
    ) -> (Connection, Connection) {
        let client = client_config(&self.identity, Some(to.key()), Arc::new(transport()));
        let server = server_config(&to.identity, Arc::new(transport()));
        let (client, server) = (client.expect("valid"), server.expect("valid"));
        let server = tunnel_server_config(server);
        let address = self.route(to.key(), carrier);
        let dial = self
            .endpoint
            .connect_with(client, address, SERVER_NAME)
            .expect("an address");
        let accept = async {
            let incoming = to.endpoint.accept().await.expect("open");
            let from = incoming.remote_address();
            assert_eq!(id_at(from), Some(virtual_id(self.key())));
            assert_eq!(to.tunnels.carrier_of(from), Some(member(carrier.key())));
            to.hold(from);
            incoming.accept_with(Arc::new(server)).expect("taken").await
        };
        let (dialled, accepted) = in_time(async { tokio::join!(dial, accept) }).await;
        let (dialled, accepted) = (dialled.expect("linked"), accepted.expect("linked"));
        open_windows(&dialled);
        open_windows(&accepted);
        (dialled, accepted)
    }

    fn leads(&self) {
        self.tunnels.set_leading(true);
    }

    /// Sends what it sends on `link` through another carrier.
    fn moves(&self, link: &Connection, carrier: &Self) {
        let address = link.remote_address();
        self.tunnels
            .set_carrier(address, Some(member(carrier.key())));
    }

    fn forwarded(&self) -> u64 {
        self.tunnels.stats().forwarded
    }

    /// Sends bytes that are no QUIC packet through the tunnel.
    fn send_raw(&self, to: SocketAddr, contents: &[u8], segment_size: Option<usize>) {
        let taken = self.tunnels.take(&Transmit {
            destination: to,
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
    let (at_a, at_b) = a.link_through(&b, &leader).await;
    assert_eq!(peer_fingerprint(&at_a), Some(b.key()));
    assert_eq!(peer_fingerprint(&at_b), Some(a.key()));
    assert_eq!(id_at(at_a.remote_address()), Some(virtual_id(b.key())));
    assert_eq!(id_at(at_b.remote_address()), Some(virtual_id(a.key())));
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
    let (leader, [a, b]) = star(transport_config).await;
    let (at_a, at_b) = a.link_through(&b, &leader).await;
    let sent = noise(8 << 20);
    arrives(&at_a, &at_b, &sent).await;
    arrives(&at_b, &at_a, &sent).await;
    assert_eq!(at_a.stats().path.current_mtu, LEAST_MTU);
}

#[tokio::test]
async fn packets_pass_narrow_paths_in_two_parts() {
    let (leader, [a, b]) = star(narrow).await;
    let (at_a, at_b) = a.link_through(&b, &leader).await;
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
    }
    let (at_a, at_b) = a.link_through(&b, &leader).await;
    arrives(&at_a, &at_b, &noise(1 << 20)).await;
    arrives(&at_b, &at_a, &noise(1 << 20)).await;
}

#[tokio::test]
async fn a_link_lives_on_under_the_next_leader_and_not_without_one() {
    let (first, [a, b]) = star(transport_config).await;
    let (at_a, at_b) = a.link_through_with(&b, &first, hasty).await;
    echoes(&at_a, &at_b).await;
    let next = Node::start();
    next.leads();
    for member in [&a, &b] {
        member.link(&next).await;
    }
    first.endpoint.close(0_u32.into(), b"");
    a.moves(&at_a, &next);
    b.moves(&at_b, &next);
    echoes(&at_a, &at_b).await;
    assert!(next.forwarded() > 0);
    next.tunnels.set_leading(false);
    let mut stream = at_a.open_uni().await.expect("a stream");
    stream.write_all(b"lost").await.expect("taken");
    assert_eq!(in_time(at_a.closed()).await, ConnectionError::TimedOut);
    assert_eq!(in_time(at_b.closed()).await, ConnectionError::TimedOut);
    assert!(next.dropped() > 0);
}

#[tokio::test]
async fn a_stuck_receiver_slows_no_other() {
    let (leader, [a, b, c, d, deaf]) = star(transport_config).await;
    let (at_a, at_b) = a.link_through(&b, &leader).await;
    let (at_c, at_d) = c.link_through(&d, &leader).await;
    // It acknowledges nothing, so the leader may send it no more.
    deaf.simulation.set(SimulatedNetwork {
        lag: Duration::ZERO,
        jitter: Duration::ZERO,
        loss_permille: 1000,
    });
    let flood = {
        let (tunnels, to) = (Arc::clone(&a.tunnels), a.route(deaf.key(), &leader));
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
    let stuck = || leader.tunnels.routes().legs[&member(deaf.key())].waiting();
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
                let full = leader.routes().legs.values().any(|leg| leg.waiting() > 64);
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
        Path::Carried(CarrierKind::Member),
        piece(to_b, b"packet"),
    );
    assert_eq!(nested, Err(NESTED));
    assert_eq!(leader.tunnels.stats(), TunnelStats::default());

    // Over a link the packets are dropped as well.
    let mut at_leader = leader;
    let [at_a, ..] = [&a].map(|node| {
        node.tunnels.links()[&Via::Member(at_leader.tunnels.own)].connections[0].clone()
    });
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
    leader.tunnels.set_leading(false);
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
    // Without a route; too long; without a carrier, or with one that is not linked.
    let to_b = a.route(b.key(), &leader);
    a.send_raw(SocketAddr::new(to_b.ip(), 4711), b"packet", None);
    assert_eq!(a.dropped(), 2);
    a.send_raw(to_b, &[0; MAX_PACKET_BYTES + 1], None);
    assert_eq!(a.dropped(), 3);
    a.tunnels.set_carrier(to_b, None);
    a.send_raw(to_b, &[0; 30], Some(10));
    assert_eq!(a.dropped(), 6);
    a.tunnels.set_carrier(to_b, Some(member(stranger)));
    a.send_raw(to_b, b"packet", None);
    assert_eq!(a.dropped(), 7);
    assert_eq!(leader.forwarded(), 0);
    assert_eq!(a.tunnels.route(a.key(), member(leader.key())), None);
    assert_eq!(a.tunnels.route(b.key(), member(a.key())), None);
}

/// Two members, and others that are linked to both and carry.
async fn between<const N: usize>(carry: u32) -> ([Node; 2], [Node; N]) {
    let ends = [(); 2].map(|()| Node::start());
    let carriers = std::array::from_fn(|_| Node::start_carrying(transport_config(), carry));
    for carrier in &carriers {
        for end in &ends {
            end.link(carrier).await;
        }
    }
    (ends, carriers)
}

/// Enough for what these tests send beside a move.
const PLENTY: u32 = 100 << 20;

#[tokio::test]
async fn two_links_over_two_carriers_do_not_disturb_each_other() {
    let ([a, b], [c, d]) = between(PLENTY).await;
    let over_c = a.link_through(&b, &c).await;
    let over_d = b.link_through_with(&a, &d, hasty).await;
    assert_ne!(over_c.0.remote_address(), over_d.1.remote_address());
    let sent = noise(1 << 20);
    tokio::join!(
        arrives(&over_c.0, &over_c.1, &sent),
        arrives(&over_c.1, &over_c.0, &sent),
        arrives(&over_d.0, &over_d.1, &sent),
    );
    assert!(c.forwarded() > 1700 && d.forwarded() > 850);
    // The second carrier fails.
    d.endpoint.close(0_u32.into(), b"");
    for end in [&over_d.0, &over_d.1] {
        assert_eq!(in_time(end.closed()).await, ConnectionError::TimedOut);
    }
    arrives(&over_c.0, &over_c.1, &sent).await;
}

#[tokio::test]
async fn each_end_of_a_link_chooses_its_carrier_and_may_change_it_under_traffic() {
    let ([a, b], [c, d]) = between(PLENTY).await;
    let (at_a, at_b) = a.link_through(&b, &c).await;
    let addresses = [at_a.remote_address(), at_b.remote_address()];
    let sent = noise(2 << 20);
    let both_ways = async || {
        tokio::join!(arrives(&at_a, &at_b, &sent), arrives(&at_b, &at_a, &sent));
        let now = [at_a.remote_address(), at_b.remote_address()];
        assert_eq!(now, addresses, "no packet moves a link");
    };
    let whole = sent.len() as u64 / 1200;
    // First the client, then the server; then each back, the server first.
    for (end, link, carrier) in [
        (&a, &at_a, &d),
        (&b, &at_b, &d),
        (&b, &at_b, &c),
        (&a, &at_a, &c),
    ] {
        let transfers = both_ways();
        let moves = async {
            let before = at_b.stats().udp_rx.datagrams;
            while at_b.stats().udp_rx.datagrams < before + 100 {
                tokio::task::yield_now().await;
            }
            end.moves(link, carrier);
        };
        tokio::join!(transfers, moves);
        let before = [c.forwarded(), d.forwarded()];
        both_ways().await;
        let [by_c, by_d] = [c.forwarded() - before[0], d.forwarded() - before[1]];
        let [a_by, b_by] = [&a, &b].map(|end| {
            end.tunnels.carrier_of(match end.key() == a.key() {
                true => addresses[0],
                false => addresses[1],
            })
        });
        match a_by == b_by {
            false => assert!(by_c > whole && by_d > whole, "{by_c} {by_d}"),
            true => assert_eq!(by_c.min(by_d), 0, "{by_c} {by_d}"),
        }
    }
}

#[tokio::test]
async fn a_link_moves_to_the_carrier_of_another_link() {
    let ([a, b], [c, d]) = between(PLENTY).await;
    let (at_a, at_b) = a.link_through_with(&b, &c, hasty).await;
    let (other_at_b, other_at_a) = b.link_through_with(&a, &d, hasty).await;
    let addresses = [&at_a, &at_b, &other_at_a, &other_at_b].map(Connection::remote_address);
    let all_live = async || {
        echoes(&at_a, &at_b).await;
        echoes(&at_b, &at_a).await;
        echoes(&other_at_a, &other_at_b).await;
        echoes(&other_at_b, &other_at_a).await;
        let now = [&at_a, &at_b, &other_at_a, &other_at_b].map(Connection::remote_address);
        assert_eq!(now, addresses);
    };
    all_live().await;
    a.moves(&at_a, &d);
    all_live().await;
    b.moves(&at_b, &d);
    all_live().await;
    // A further dial over that carrier finds its answers among the two.
    let (third_at_a, third_at_b) = a.link_through(&b, &d).await;
    echoes(&third_at_a, &third_at_b).await;
    all_live().await;
    // And back, crosswise.
    a.moves(&other_at_a, &c);
    b.moves(&at_b, &c);
    all_live().await;
}

/// A datagram that a carrier delivers.
fn delivery(origin: &Node, piece: &Piece) -> Bytes {
    let header = Header {
        way: Way::From(virtual_id(origin.key())),
        part: piece.part,
        number: piece.number,
    };
    encode(header, &piece.bytes)
}

/// A datagram that asks for a packet to be forwarded.
fn packet_to(target: VirtualId) -> Bytes {
    let header = Header {
        way: Way::To(target),
        part: Part::Whole,
        number: 1,
    };
    encode(header, b"packet")
}

#[tokio::test]
async fn noise_through_another_member_moves_and_ends_no_link() {
    let ([a, b], [c]) = between(PLENTY).await;
    let liar = Node::start();
    liar.link(&b).await;
    let (at_a, at_b) = a.link_through(&b, &c).await;
    let addresses = [at_a.remote_address(), at_b.remote_address()];
    for number in 0..1500_u16 {
        let mut packet = noise(1200);
        packet[0] = number as u8;
        packet.truncate(if number % 2 == 0 { 1200 } else { 40 });
        let part = [Part::Whole, Part::First, Part::Second][usize::from(number % 3)];
        let bytes = packet.into();
        let lie = delivery(
            &a,
            &Piece {
                part,
                number,
                bytes,
            },
        );
        let taken = b.tunnels.received(liar.key(), Path::Direct, lie);
        assert_eq!(taken, Ok(()));
        if number % 64 == 0 {
            echoes(&at_a, &at_b).await;
        }
    }
    echoes(&at_b, &at_a).await;
    assert_eq!([at_a.remote_address(), at_b.remote_address()], addresses);
    let carrier = b.tunnels.carrier_of(addresses[1]);
    assert_eq!(carrier, Some(member(c.key())));
}

#[tokio::test]
async fn a_links_own_packets_repeated_through_another_member_do_not_move_it() {
    let [a, b, liar] = [(); 3].map(|()| Node::start());
    liar.link(&b).await;
    // The test itself is the carrier. A copy of each packet to b comes through the liar first.
    let c = Node::start();
    let ((a_to_c, c_to_a), (b_to_c, c_to_b)) = (a.connect(&c).await, b.connect(&c).await);
    a.uses(&a_to_c);
    b.uses(&b_to_c);
    let carry = async |from: &Connection, to: &Connection, origin: &Node| {
        while let Ok(datagram) = from.read_datagram().await {
            let (_, piece) = decode(datagram).expect("well-formed");
            let datagram = delivery(origin, &piece);
            let is_short = Form::of(&piece.bytes) == Form::Short;
            if origin.key() == a.key() && is_short {
                let early = b
                    .tunnels
                    .received(liar.key(), Path::Direct, datagram.clone());
                assert_eq!(early, Ok(()));
                // quinn reads it before the other one is sent.
                tokio::task::yield_now().await;
            }
            to.send_datagram(datagram).expect("room");
        }
    };
    let exchange = async {
        // b keeps a route through the liar, as if a had dialled over both.
        let other = b.route(a.key(), &liar);
        let (at_a, at_b) = a.link_through(&b, &c).await;
        let addresses = [at_a.remote_address(), at_b.remote_address()];
        for _ in 0..50 {
            echoes(&at_a, &at_b).await;
            echoes(&at_b, &at_a).await;
        }
        assert_eq!([at_a.remote_address(), at_b.remote_address()], addresses);
        assert_ne!(addresses[1], other);
        let carrier = b.tunnels.carrier_of(addresses[1]);
        assert_eq!(carrier, Some(member(c.key())));
    };
    tokio::select! {
        () = carry(&c_to_a, &c_to_b, &a) => panic!("a link ended"),
        () = carry(&c_to_b, &c_to_a, &b) => panic!("a link ended"),
        () = exchange => {}
    }
}

#[tokio::test]
async fn packets_that_come_through_one_member_displace_none_of_another() {
    let ([a, b], [c, liar]) = between(PLENTY).await;
    let arrive = |via: &Node, number: u16| {
        let mut bytes = noise(1200);
        bytes[0] = 0x80;
        let (part, bytes) = (Part::Whole, bytes.into());
        let datagram = delivery(
            &a,
            &Piece {
                part,
                number,
                bytes,
            },
        );
        let taken = b.tunnels.received(via.key(), Path::Direct, datagram);
        assert_eq!(taken, Ok(()));
    };
    // The reader has no time to run meanwhile.
    for number in 0..100 {
        arrive(&c, number);
    }
    for number in 0..10_000 {
        arrive(&liar, number);
    }
    let mut arrived = b.tunnels.arrived();
    assert_eq!(arrived.packets.len(), 100 + MAX_ARRIVED_OF_ONE);
    let first: Vec<_> = (0..4).filter_map(|_| arrived.packets.pop()).collect();
    assert_ne!(first[0].0, first[1].0, "in turn");
    assert_eq!(first[0].0, first[2].0);
    assert_eq!(arrived.packets.clear(Some(member(c.key()))), 98);
    drop(arrived);
    assert_eq!(b.dropped(), 10_000 - MAX_ARRIVED_OF_ONE as u64);
}

#[tokio::test]
async fn a_member_that_does_not_lead_carries_at_its_rate_and_a_leader_at_any() {
    const RATE: u32 = 256 * 1024;
    let ([a, b], [c]) = between(RATE).await;
    let (at_a, at_b) = a.link_through(&b, &c).await;
    let sent = noise(RATE as usize * 2);
    let began = Instant::now();
    arrives(&at_a, &at_b, &sent).await;
    let limited = began.elapsed();
    assert!(limited > Duration::from_millis(1900), "{limited:?}");
    // Beside headers, losses and acknowledgements most of the rate is used.
    assert!(limited < Duration::from_secs(8), "{limited:?}");
    c.tunnels.set_leading(true);
    let began = Instant::now();
    arrives(&at_a, &at_b, &noise(RATE as usize * 40)).await;
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn the_rate_for_others_does_not_hold_back_a_members_own_packets() {
    let ([a, b], [c]) = between(16 * 1024).await;
    let d = Node::start();
    d.link(&b).await;
    b.leads();
    let (at_a, at_b) = a.link_through(&b, &c).await;
    // Over the same leg, from c to b.
    let (at_c, at_d) = c.link_through(&d, &b).await;
    let bulk = noise(64 << 20);
    let own = async {
        let began = Instant::now();
        arrives(&at_c, &at_d, &noise(4 << 20)).await;
        began.elapsed()
    };
    let own = tokio::select! {
        () = send_all(&at_a, &bulk) => panic!("faster than its rate"),
        _ = receive_all(&at_b) => panic!("faster than its rate"),
        own = own => own,
    };
    assert!(own < Duration::from_secs(20), "{own:?}");
    assert!(c.forwarded() > 0);
}

#[tokio::test]
async fn packets_behind_a_transfer_wait_only_as_long_as_packets_are_kept() {
    let ([a, b], [c]) = between(32 * 1024).await;
    let (at_a, at_b) = a.link_through(&b, &c).await;
    let bulk = noise(64 << 20);
    let pings = async {
        let began = Instant::now();
        let mut delays = Vec::new();
        let send = async {
            for _ in 0..40 {
                let at = began.elapsed().as_millis() as u64;
                at_a.send_datagram(at.to_le_bytes().to_vec().into())
                    .expect("room");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let receive = async {
            while let Ok(sent) = at_b.read_datagram().await {
                let sent = u64::from_le_bytes(sent[..].try_into().expect("a time"));
                delays.push(began.elapsed().as_millis() as u64 - sent);
            }
        };
        tokio::select! {
            () = send => {}
            () = receive => panic!("the link ended"),
        }
        delays
    };
    let mut delays = tokio::select! {
        () = send_all(&at_a, &bulk) => panic!("faster than its rate"),
        _ = receive_all(&at_b) => panic!("faster than its rate"),
        delays = pings => delays,
    };
    delays.sort_unstable();
    // A full queue of one sender would take 4.8 s.
    assert!(delays.len() > 10, "{delays:?}");
    assert!(delays[delays.len() - 2] < 1000, "{delays:?}");
    assert!(c.dropped() > 0);
}

#[tokio::test]
async fn ends_that_overload_a_carrier_learn_to_send_less() {
    let ([a, b], [c]) = between(16 * 1024).await;
    let (at_a, at_b) = a.link_through(&b, &c).await;
    let bulk = noise(64 << 20);
    let carried = async {
        while c.forwarded() < 100 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = send_all(&at_a, &bulk) => panic!("faster than its rate"),
        () = send_all(&at_b, &bulk) => panic!("faster than its rate"),
        () = in_time(carried) => {}
    }
    // With 32 packets in flight each way it drops nine times as many as it forwards.
    let (forwarded, dropped) = (c.forwarded(), c.dropped());
    assert!(dropped > 0, "no overload");
    assert!(
        dropped < 6 * forwarded,
        "{dropped} dropped, {forwarded} forwarded"
    );
}

#[tokio::test]
async fn a_pair_that_this_node_cannot_serve_is_reported_once_a_second() {
    let ([a, b], [c]) = between(0).await;
    tokio::time::pause();
    let pair = |target| CannotCarry {
        sender: virtual_id(a.key()),
        target,
    };
    let (to_b, unknown) = (virtual_id(b.key()), [9; 8]);
    let ask = |target| {
        let taken = c.tunnels.received(a.key(), Path::Direct, packet_to(target));
        assert_eq!(taken, Ok(()));
    };
    for _ in 0..10 {
        ask(to_b);
        assert!(
            c.tunnels
                .next_report()
                .is_none_or(|report| report == pair(to_b))
        );
    }
    assert_eq!(c.dropped(), 10);
    ask(unknown);
    assert_eq!(c.tunnels.cannot_carry().await, pair(unknown));
    tokio::time::advance(REPORT_INTERVAL).await;
    ask(to_b);
    assert_eq!(c.tunnels.cannot_carry().await, pair(to_b));
    // It leads now, and serves the pair that it can.
    tokio::time::advance(REPORT_INTERVAL).await;
    c.leads();
    ask(to_b);
    assert_eq!(c.tunnels.next_report(), None);
    ask(unknown);
    assert_eq!(c.tunnels.next_report(), Some(pair(unknown)));
    // A sender without a link is no member.
    let taken = c
        .tunnels
        .received(Fingerprint([8; 32]), Path::Direct, packet_to(unknown));
    assert_eq!((taken, c.tunnels.next_report()), (Ok(()), None));
}

#[tokio::test]
async fn a_member_that_makes_up_targets_causes_few_reports() {
    let c = Node::start();
    let senders = [(); 6].map(|()| Node::start());
    for sender in &senders {
        sender.link(&c).await;
    }
    for sender in &senders {
        for n in 0..1000_u16 {
            let mut target = VirtualId::default();
            target[..2].copy_from_slice(&n.to_le_bytes());
            let taken = c
                .tunnels
                .received(sender.key(), Path::Direct, packet_to(target));
            assert_eq!(taken, Ok(()));
        }
    }
    let reports: Vec<_> = std::iter::from_fn(|| c.tunnels.next_report()).collect();
    assert_eq!(reports.len(), MAX_REPORTS);
    for sender in &senders {
        let sender = virtual_id(sender.key());
        let of_it = reports.iter().filter(|report| report.sender == sender);
        assert!(of_it.count() <= MAX_REPORTS_OF_ONE);
    }
}

#[tokio::test]
async fn a_member_that_may_no_longer_forward_drops_what_waits() {
    let ([a, b], [c]) = between(0).await;
    c.leads();
    for _ in 0..10 {
        let to_b = packet_to(virtual_id(b.key()));
        let taken = c.tunnels.received(a.key(), Path::Direct, to_b);
        assert_eq!(taken, Ok(()));
    }
    // The task of the leg has no time to run meanwhile.
    c.tunnels.set_leading(false);
    assert_eq!(c.dropped(), 10);
}

#[tokio::test]
async fn origins_that_a_member_makes_up_fill_no_memory() {
    let ([a, b], [c, liar]) = between(PLENTY).await;
    let (at_a, at_b) = a.link_through(&b, &c).await;
    for number in 0..10_000_u16 {
        let mut origin = VirtualId::default();
        origin[..2].copy_from_slice(&number.to_le_bytes());
        let header = Header {
            way: Way::From(origin),
            part: Part::Whole,
            number,
        };
        let mut packet = noise(1200);
        packet[0] = 0xc0;
        let datagram = encode(header, &packet);
        let taken = b.tunnels.received(liar.key(), Path::Direct, datagram);
        assert_eq!(taken, Ok(()));
    }
    echoes(&at_a, &at_b).await;
    let (third_at_a, third_at_b) = a.link_through(&b, &c).await;
    echoes(&third_at_a, &third_at_b).await;
    assert!(b.tunnels.routes().table.len() <= 2 + routes::MAX_UNHELD_OF_CARRIER);
}

#[tokio::test]
async fn an_earlier_link_takes_over_when_the_newest_is_down() {
    let (leader, [a, b]) = star(transport_config).await;
    let (dialled, accepted) = b.link(&leader).await;
    let (at_a, at_b) = a.link_through(&b, &leader).await;
    leader.tunnels.link_down(member(b.key()), &accepted);
    b.tunnels.link_down(member(leader.key()), &dialled);
    dialled.close(0_u32.into(), b"");
    echoes(&at_a, &at_b).await;
    // A second removal does nothing.
    leader.tunnels.link_down(member(b.key()), &accepted);
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
    leader.tunnels.link_down(member(a.key()), &from_a);
    assert_eq!(leader.dropped(), 10);
    leader.tunnels.link_down(member(b.key()), &from_b);
    assert!(leader.tunnels.routes().legs.is_empty());
    assert!(leader.tunnels.links().is_empty());
}

/// One run, for the figures.
#[tokio::test]
#[ignore = "it measures"]
async fn throughput() {
    let sent = noise(32 << 20);
    let (leader, [a, b]) = star(transport_config).await;
    let (at_a, at_b) = a.link_through(&b, &leader).await;
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
