use std::any::Any;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use quinn::congestion::{Controller, ControllerFactory};
use quinn::{ConnectionError, Endpoint, EndpointConfig, IdleTimeout};
use tokio::sync::mpsc;

use super::packet::{HEADER_BYTES, Header, MAX_HALVES, MAX_HALVES_OF_ONE, datagrams, encode};
use super::queues::{MAX_QUEUED, MAX_QUEUED_OF_ONE, Queues};
use super::*;
use crate::core::virtual_address::{is_virtual, virtual_address};
use crate::net::frame::TUNNEL_DATAGRAM;
use crate::net::identity::testing::in_time;
use crate::net::identity::{
    Identity, SERVER_NAME, client_config, open_windows, peer_fingerprint, server_config,
};
use crate::net::rebinding;
use crate::net::simulation::Simulation;
use crate::net::socket;
use crate::net::timers::Timers;
use crate::net::udp::UdpRuntime;
use crate::simulated::SimulatedNetwork;

/// What a path may carry, where the system does not say more.
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

    /// As a link of a room does: tunnels lead over it, and its datagrams are read.
    fn uses(&self, connection: &Connection) {
        let key = peer_fingerprint(connection).expect("shown");
        self.tunnels.link_up(key, connection.clone());
        let connection = connection.clone();
        let tunnels = Arc::clone(&self.tunnels);
        let violations = self.violations.clone();
        tokio::spawn(async move {
            while let Ok(datagram) = connection.read_datagram().await {
                if let Err(what) = tunnels.received(key, true, datagram) {
                    let _ = violations.send(what);
                }
            }
        });
    }

    /// A direct link, as both ends see it.
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

    /// A link through a tunnel, as both ends see it.
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

    /// Sends what is no QUIC packet through the tunnel.
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

/// A leader and members that are linked to it alone.
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

/// Paths of the least size that QUIC takes: packets travel in two parts.
fn narrow() -> TransportConfig {
    let mut transport = transport_config();
    transport.initial_mtu(LEAST_MTU).mtu_discovery_config(None);
    transport
}

/// A window that is always full: less than a tunnel would fill alone.
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
    let (mut ask, mut hear) = in_time(dialled.open_bi()).await.expect("a stream");
    ask.write_all(b"question").await.expect("written");
    ask.finish().expect("open");
    let (mut answer, mut asked) = in_time(accepted.accept_bi()).await.expect("a stream");
    let question = in_time(asked.read_to_end(64)).await.expect("read");
    answer.write_all(&question).await.expect("written");
    answer.finish().expect("open");
    assert_eq!(
        in_time(hear.read_to_end(64)).await.expect("read"),
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
    // Each is two for the leader, but the acknowledgements.
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
async fn who_takes_nothing_slows_nobody_else() {
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
    // The window of the link is the limit, not this machine.
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
                        .received(origin, true, datagram.clone())
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
    // About as many packets of each. Without turns the streams had what fits beside a datagram, a seventh.
    assert!(
        forwarded > own / 8 && forwarded < own * 3,
        "{forwarded} beside {own}"
    );
    assert!(!flood.is_finished());
    flood.abort();
}

#[tokio::test]
async fn what_no_member_sends_is_a_violation() {
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
        (piece(from_leader, b"packet"), IN_OUR_NAME),
    ] {
        let taken = leader.tunnels.received(a.key(), true, datagram.clone());
        assert_eq!(taken, Err(what), "{datagram:?}");
    }
    let nested = leader
        .tunnels
        .received(a.key(), false, piece(to_b, b"packet"));
    assert_eq!(nested, Err(NESTED));
    assert_eq!(leader.tunnels.stats(), TunnelStats::default());

    // The same over a link.
    let mut at_leader = leader;
    let [at_a, ..] =
        [&a].map(|node| node.tunnels.links()[&at_leader.tunnels.own].connections[0].clone());
    at_a.send_datagram(piece(to_a, b"packet")).expect("room");
    assert_eq!(in_time(at_leader.violated.recv()).await, Some(TO_ITSELF));
}

#[tokio::test]
async fn what_leads_nowhere_is_dropped_and_counted() {
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
    // Unknown target; an origin without a link; not the leader any more.
    leader
        .tunnels
        .received(a.key(), true, to(stranger))
        .expect("allowed");
    leader
        .tunnels
        .received(stranger, true, to(b.key()))
        .expect("allowed");
    leader.tunnels.set_relaying(false);
    leader
        .tunnels
        .received(a.key(), true, to(b.key()))
        .expect("allowed");
    assert_eq!(leader.dropped(), 3);
    // A delivery by who is not linked.
    let from = Header {
        way: Way::From(virtual_id(b.key())),
        part: Part::Whole,
        number: 1,
    };
    a.tunnels
        .received(stranger, true, encode(from, b"packet"))
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

/// A packet that claims to be b's, through `relay` to `receiver`.
fn from_b(receiver: &Node, relay: &Node, b: &Node) {
    let header = Header {
        way: Way::From(virtual_id(b.key())),
        part: Part::Whole,
        number: 1,
    };
    let taken = receiver
        .tunnels
        .received(relay.key(), true, encode(header, b"packet"));
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
    // Following it once more does not begin the moment anew.
    tokio::time::pause();
    tokio::time::advance(LAST_RELAY_COUNTS_FOR / 2).await;
    a.follows(&next);
    assert!(counts(&first));
    tokio::time::advance(LAST_RELAY_COUNTS_FOR / 2).await;
    assert!(counts(&next) && !counts(&first));
    // Without a leader there is only the last one.
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
    // Once more is nothing.
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
            .received(a.key(), true, encode(to_b, b"packet"))
            .expect("allowed");
    }
    leader.tunnels.link_down(a.key(), &from_a);
    assert_eq!(leader.dropped(), 10);
    leader.tunnels.link_down(b.key(), &from_b);
    assert!(leader.tunnels.routes().legs.is_empty());
    assert!(leader.tunnels.links().is_empty());
}

#[test]
fn queues_are_bounded_and_served_in_turn() {
    let way = |n: u16| {
        let mut id = VirtualId::default();
        id[..2].copy_from_slice(&n.to_be_bytes());
        Way::From(id)
    };
    let piece = |number| Piece {
        part: Part::Whole,
        number,
        bytes: Bytes::from_static(b"packet"),
    };
    let mut queues = Queues::default();
    let mut dropped = 0;
    for number in 0..1000 {
        dropped += queues.push(way(1), piece(number));
    }
    assert_eq!((queues.len(), dropped), (MAX_QUEUED_OF_ONE, 1000 - 128));
    queues.push(way(2), piece(1));
    queues.push(way(3), piece(1));
    let turns: Vec<_> = (0..4).filter_map(|_| queues.pop()).collect();
    let ways: Vec<_> = turns.iter().map(|(way, _)| *way).collect();
    assert_eq!(ways, [way(1), way(2), way(3), way(1)]);
    assert_eq!(turns[0].1.number, 1000 - 128, "the oldest that is left");
    assert_eq!(queues.clear(way(1)), 126);
    assert!(queues.is_empty() && queues.pop().is_none());

    let mut pushed = 0;
    for n in 0..64 {
        for number in 0..100 {
            pushed += 1 - queues.push(way(n), piece(number));
        }
    }
    assert_eq!((queues.len(), pushed as usize), (MAX_QUEUED, MAX_QUEUED));
    // The last ones found room, at the cost of the longest.
    assert!(queues.clear(way(63)) > 20);
}

#[test]
fn parts_that_wait_are_bounded() {
    let half = |number| Piece {
        part: Part::First,
        number,
        bytes: Bytes::from_static(b"half"),
    };
    let mut halves = Halves::default();
    let mut given_up = 0;
    for number in 0..100 {
        given_up += u32::from(halves.take([1; 8], half(number)).1);
    }
    assert_eq!((halves.len(), given_up), (MAX_HALVES_OF_ONE, 92));
    for origin in 2..100 {
        halves.take([origin; 8], half(0));
    }
    assert_eq!(halves.len(), MAX_HALVES);
    let second = |number| Piece {
        part: Part::Second,
        ..half(number)
    };
    assert_eq!(
        halves.take([1; 8], second(99)),
        (None, true),
        "given up before"
    );
    let whole = halves.take([99; 8], second(0)).0;
    assert_eq!(whole.as_deref(), Some(&b"halfhalf"[..]));
    let long = Piece {
        part: Part::First,
        number: 5,
        bytes: vec![0; MAX_PACKET_BYTES].into(),
    };
    halves.take([1; 8], long);
    assert_eq!(
        halves.take([1; 8], second(5)),
        (None, true),
        "too long together"
    );
}

/// What the network does with one datagram.
#[derive(Debug, Clone)]
struct Fortune {
    copies: usize,
    delay: usize,
}

proptest! {
    #[test]
    fn packets_arrive_whole_or_not_at_all(
        packets in prop::collection::vec((0..4_u8, 1..=MAX_PACKET_BYTES), 1..40),
        fortunes in prop::collection::vec((0..3_usize, 0..6_usize), 80),
        max in HEADER_BYTES + MAX_PACKET_BYTES / 2..HEADER_BYTES + MAX_PACKET_BYTES + 10,
    ) {
        let mut on_the_way = Vec::new();
        let mut sent = BTreeMap::new();
        let mut certain = Vec::new();
        let mut fortunes = fortunes.into_iter().map(|(copies, delay)| Fortune { copies, delay });
        for (number, (origin, len)) in packets.into_iter().enumerate() {
            let number = u16::try_from(number).expect("few");
            let from = [origin; 8];
            let bytes = Bytes::from(noise(len + usize::from(number)).split_off(usize::from(number)));
            let piece = Piece { part: Part::Whole, number, bytes: bytes.clone() };
            let (first, second) = datagrams(Way::From(from), &piece, max).expect("it fits");
            let is_whole = second.is_none();
            let mut copies = usize::MAX;
            for datagram in [Some(first), second].into_iter().flatten() {
                prop_assert!(datagram.len() <= max);
                let fortune = fortunes.next().expect("enough");
                copies = copies.min(fortune.copies);
                for copy in 0..fortune.copies {
                    on_the_way.push((on_the_way.len() + fortune.delay * (copy + 1), datagram.clone()));
                }
            }
            if is_whole && copies > 0 {
                certain.push(number);
            }
            sent.insert(number, (from, bytes));
        }
        on_the_way.sort_by_key(|(at, _)| *at);
        let mut halves = Halves::default();
        let mut arrived = BTreeMap::<u16, usize>::new();
        for (_, datagram) in on_the_way {
            let (way, piece) = decode(datagram).expect("well-formed");
            let number = piece.number;
            let Way::From(from) = way else { panic!("turned around") };
            if let (Some(whole), _) = halves.take(from, piece) {
                prop_assert_eq!(&(from, whole), &sent[&number]);
                *arrived.entry(number).or_default() += 1;
            }
            prop_assert!(halves.len() <= MAX_HALVES);
        }
        for number in certain {
            prop_assert!(arrived.contains_key(&number));
        }
    }

    #[test]
    fn a_datagram_says_what_was_put_into_it(
        forward: bool,
        id: VirtualId,
        part in 0..3_usize,
        number: u16,
        bytes in prop::collection::vec(any::<u8>(), 1..MAX_PACKET_BYTES),
    ) {
        let way = if forward { Way::To(id) } else { Way::From(id) };
        let part = [Part::Whole, Part::First, Part::Second][part];
        let decoded = decode(encode(Header { way, part, number }, &bytes));
        prop_assert_eq!(decoded, Some((way, Piece { part, number, bytes: bytes.into() })));
    }
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
