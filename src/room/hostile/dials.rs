//! Dials on slow lines and to several addresses, and the sentences with which they end.

use std::net::UdpSocket;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use room_transport::closing::close_code;

use super::names::{connect_by_name, open};
use super::*;
use crate::config::Relay;
use crate::dispatch::{Event, FoundBy, Reported, kind};
use crate::net::admission::accept_pake;
use crate::net::names::Lookup;
use crate::simulated::SimulatedNetwork;

/// The results of a host's dials, with their sentences.
pub(super) struct Results(Arc<Mutex<Vec<ConnectionResult>>>);

impl Results {
    pub(super) fn of(host: &Host) -> Self {
        let results = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&results);
        let handler = move |notified: kind::Report<'_>| {
            if let Reported::Room(Event::ConnectionResult(result)) = notified.event {
                let mut results = into.lock().unwrap_or_else(PoisonError::into_inner);
                results.push(result.clone());
            }
        };
        let dispatch = host.room.dispatch();
        dispatch.register::<kind::Everything>(Some(Arc::new(handler)));
        Self(results)
    }

    pub(super) async fn whole(&self, number: usize) -> ConnectionResult {
        let results = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        eventually("a result", || results().len() > number).await;
        results()[number].clone()
    }

    /// The code and the sentence of the `number`th result.
    pub(super) async fn nth(&self, number: usize) -> (i32, String) {
        let result = self.whole(number).await;
        let sentence = String::from_utf8(result.bytes.to_vec());
        (result.code, sentence.expect("UTF-8"))
    }
}

fn with_timeout(handshake_timeout: Duration) -> Config {
    Config {
        handshake_timeout,
        ..quick()
    }
}

/// A port that receives packets and answers none.
fn silent() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("bound")
}

fn at(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().expect("bound")
}

fn finds(addresses: Vec<SocketAddr>) -> Lookup {
    Arc::new(move |_, _| Ok(addresses.clone()))
}

/// Delays a host's packets: a round trip between two such hosts takes twice `lag`.
fn slow_down(host: &Host, lag: Duration) {
    let network = SimulatedNetwork {
        lag,
        ..SimulatedNetwork::default()
    };
    host.room.simulate_network(network).expect("allowed");
}

#[tokio::test]
async fn a_dial_of_four_round_trips_that_are_longer_than_its_timeout_succeeds() {
    let timeout = Duration::from_secs(2);
    let lag = Duration::from_millis(350);
    let (a, b) = (
        Host::open_with("a", "slow", with_timeout(timeout)),
        Host::open_with("b", "slow", with_timeout(timeout)),
    );
    slow_down(&a, lag);
    slow_down(&b, lag);
    let began = Instant::now();
    assert_eq!(b.connect(&a).await, (true, 0));
    assert!(began.elapsed() > timeout, "{:?}", began.elapsed());
    b.wait_for(joined("a"), 1).await;
    a.wait_for(joined("b"), 1).await;
}

#[tokio::test]
async fn a_dial_that_nothing_answers_ends_in_time_with_that_sentence() {
    let timeout = Duration::from_secs(1);
    let host = Host::open_with("a", "unknown", with_timeout(timeout));
    let results = Results::of(&host);
    let silent = silent();
    let began = Instant::now();
    host.connect_to(at(&silent));
    let (code, sentence) = results.nth(0).await;
    assert_eq!(code, -19);
    let expected = format!("{} did not answer within 1.0 s", at(&silent));
    assert!(sentence.starts_with(&expected), "{sentence}");
    assert!(began.elapsed() < timeout * 2, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_dial_that_ends_half_way_has_a_sentence_of_how_far_it_came() {
    let timeout = Duration::from_secs(1);
    let host = Host::open_with("a", "half way", with_timeout(timeout));
    let results = Results::of(&host);
    let attacker = Attacker::new("z", "half way");
    let there = attacker.process.address();
    // It completes the TLS handshake, and nothing more.
    let began = Instant::now();
    host.connect_to(there);
    let connection = attacker.process.accept().await.expect("connected");
    let (code, sentence) = results.nth(0).await;
    assert_eq!(code, -19);
    let expected = format!("{there} answered, but had not shown after ");
    assert!(sentence.starts_with(&expected), "{sentence}");
    assert!(began.elapsed() < timeout * 3, "{:?}", began.elapsed());
    drop(connection);
    // It proves that it knows the room, and never decides.
    host.connect_to(there);
    let connection = attacker.process.accept().await.expect("connected");
    let _streams = in_time(accept_pake(&connection, &attacker.proof))
        .await
        .expect("the room is known");
    let (code, sentence) = results.nth(1).await;
    assert_eq!(code, -19);
    let expected = format!("{there} knows the room, but had not decided after ");
    assert!(sentence.starts_with(&expected), "{sentence}");
}

#[tokio::test]
async fn strangers_hold_an_admission_no_longer_than_the_timeout_and_members_no_longer_than_three() {
    let timeout = Duration::from_secs(1);
    let host = Host::open_with("a", "places", with_timeout(timeout));
    let attacker = Attacker::new("z", "places");
    let began = Instant::now();
    let connection = attacker.connect(&host).await;
    in_time(connection.closed()).await;
    let stranger = began.elapsed();
    assert!(stranger < timeout * 2, "{stranger:?}");
    // A member that sends no Hello is closed when the time granted for its proof is over.
    let began = Instant::now();
    let connection = attacker.connect(&host).await;
    let _streams = in_time(dial_pake(&connection, &attacker.proof))
        .await
        .expect("the room is known");
    in_time(connection.closed()).await;
    let member = began.elapsed();
    assert!(member >= timeout && member < timeout * 3, "{member:?}");
}

#[tokio::test]
async fn silent_addresses_of_a_name_delay_the_others_by_moments() {
    let b = Host::open("b", "names");
    let dead = [silent(), silent(), silent()];
    let mut addresses: Vec<_> = dead.iter().map(at).collect();
    addresses.push(b.address());
    let a = open("a", finds(addresses), Duration::from_secs(5));
    let began = Instant::now();
    connect_by_name(&a, "b.example:9");
    a.wait_for(Report::Connection(true, 0), 1).await;
    // Three staggers of 100 ms, a handshake, and a margin for a busy machine.
    let took = began.elapsed();
    assert!(took < Duration::from_millis(1500), "{took:?}");
    assert_eq!(a.census().links, 1);
}

#[tokio::test]
async fn a_wrong_room_at_all_addresses_of_a_name_costs_one_guess_a_dial() {
    let b = Host::open("b", "another room");
    let a = open("a", finds(vec![b.address(); 3]), Duration::from_secs(5));
    let results = Results::of(&a);
    for number in 0..5 {
        connect_by_name(&a, "b.example:9");
        assert_eq!(results.nth(number).await.0, -10, "dial {number}");
    }
    connect_by_name(&a, "b.example:9");
    let (code, sentence) = results.nth(5).await;
    assert_eq!(code, -22);
    let expected = "asked too often: 127.0.0.1 is not dialled for another ";
    assert!(sentence.starts_with(expected), "{sentence}");
}

#[tokio::test]
async fn a_name_that_is_this_process_is_named_as_such() {
    let lookup: Lookup =
        Arc::new(|_, port| Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))]));
    let own = open("a", lookup, Duration::from_secs(5));
    let results = Results::of(&own);
    connect_by_name(&own, &format!("me.example:{}", own.port()));
    assert_eq!(results.nth(0).await.0, -3);
}

#[tokio::test]
async fn five_wrong_room_names_and_then_the_right_one_have_a_sentence_with_the_seconds() {
    let pair = Pair::settled("right").await;
    // Each is another room of the player, so only the other end counts the guesses.
    for number in 0..5 {
        let guesser = Host::open("c", &format!("wrong {number}"));
        assert_eq!(guesser.connect(&pair.a).await, (false, -10));
    }
    let player = Host::open("c", "right");
    let results = Results::of(&player);
    player.connect_to(pair.a.address());
    let (code, sentence) = results.nth(0).await;
    assert_eq!(code, -22);
    let expected = format!(
        "asked too often: {} takes no attempt from this address for another ",
        pair.a.address()
    );
    let rest = sentence.strip_prefix(&expected);
    let (seconds, _) = rest
        .and_then(|rest| rest.split_once(' '))
        .unwrap_or_else(|| panic!("{sentence}"));
    let seconds: u64 = seconds.parse().expect("a number");
    assert!((30..=61).contains(&seconds), "{sentence}");
}

#[tokio::test]
async fn a_name_that_does_not_resolve_has_its_own_code_and_a_sentence() {
    let lookup: Lookup = Arc::new(|name, _| match name {
        "empty.example" => Ok(Vec::new()),
        _ => Err(std::io::Error::other("Name or service not known")),
    });
    let host = open("a", lookup, Duration::from_secs(5));
    let results = Results::of(&host);
    for (number, (name, expected)) in [
        (
            "unknown.example",
            "the name \"unknown.example\" does not resolve (Name or service not known); check its spelling, or give an IP address",
        ),
        (
            "empty.example",
            "the name \"empty.example\" has no address; check its spelling, or give an IP address",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        connect_by_name(&host, &format!("{name}:9"));
        let (code, sentence) = results.nth(number).await;
        assert_eq!((code, sentence.as_str()), (-23, expected));
    }
}

#[tokio::test]
async fn a_banned_player_that_comes_back_receives_the_reason_of_the_kick_from_each_member() {
    let pair = Pair::settled("banned").await;
    let c = Host::open("c", "banned");
    assert_eq!(c.connect(&pair.a).await, (true, 0));
    for host in [&pair.a, &pair.b] {
        host.wait_for(joined("c"), 1).await;
    }
    let leader = pair.a.room.snapshot().leader.clone();
    let leader = if leader == Some(id("a")) {
        &pair.a
    } else {
        &pair.b
    };
    let kicked = leader.room.kick(&id("c"), 7, b"griefing");
    kicked.expect("it leads");
    for host in [&pair.a, &pair.b] {
        host.wait_for(left("c"), 1).await;
    }
    drop(c);
    let again = Host::open("c", "banned");
    let results = Results::of(&again);
    for (number, host) in [&pair.a, &pair.b].into_iter().enumerate() {
        again.connect_to(host.address());
        let result = results.whole(number).await;
        assert_eq!((result.code, result.reason), (-18, 7));
        assert_eq!(&*result.bytes, b"griefing");
    }
}

#[tokio::test]
async fn a_kick_with_a_code_and_without_data_leaves_the_player_a_sentence() {
    let pair = Pair::settled("no reason").await;
    let c = Host::open("c", "no reason");
    assert_eq!(c.connect(&pair.a).await, (true, 0));
    for host in [&pair.a, &pair.b] {
        host.wait_for(joined("c"), 1).await;
    }
    let leads = |host: &&Host| host.room.snapshot().is_leader;
    let leader = [&pair.a, &pair.b].into_iter().find(leads);
    let kicked = leader.expect("one of both").room.kick(&id("c"), 7, b"");
    kicked.expect("it leads");
    for host in [&pair.a, &pair.b] {
        host.wait_for(left("c"), 1).await;
    }
    drop(c);
    let again = Host::open("c", "no reason");
    let results = Results::of(&again);
    again.connect_to(pair.a.address());
    let result = results.whole(0).await;
    assert_eq!((result.code, result.reason), (-18, 7));
    assert_eq!(&*result.bytes, b"the leader has banned c from this room");
}

#[tokio::test]
async fn another_room_name_and_a_taken_id_have_a_sentence_with_the_remedy() {
    let host = Host::open("a", "tea");
    let stranger = Host::open("b", "Tea");
    let results = Results::of(&stranger);
    stranger.connect_to(host.address());
    let address = host.address();
    let expected = format!(
        "{address} is in a room of another name; compare the session ids of both ends, letter by letter: capitals and blanks count"
    );
    assert_eq!(results.nth(0).await, (-10, expected));
    let namesake = Host::open("a", "tea");
    let results = Results::of(&namesake);
    namesake.connect_to(address);
    let (code, sentence) = results.nth(0).await;
    assert_eq!(code, -11);
    assert!(
        sentence.ends_with("; choose another") || sentence.contains("choose another, or"),
        "{sentence}"
    );
}

#[tokio::test]
async fn a_peer_that_has_not_proved_that_it_knows_the_room_cannot_act_as_a_member() {
    let host = Host::open("a", "unproved");
    for (code, seen) in [
        (-18, -4),
        (-11, -4),
        (-13, -4),
        (-20, -4),
        (-12, -12),
        (-22, -22),
    ] {
        let attacker = Attacker::new("z", "unproved");
        let accept = async {
            let connection = attacker.process.accept().await.expect("dialled");
            connection.close(close_code(code), b"999999999999");
            connection
        };
        let address = attacker.process.address();
        let (result, _connection) = tokio::join!(host.connect_address(address), accept);
        assert_eq!(result, (false, seen), "closed with {code}");
    }
}

#[tokio::test]
async fn two_members_of_one_name_that_connect_receive_that_the_name_is_taken() {
    let refused = Arc::new(Mutex::new(Vec::new()));
    let mut hosts = Vec::new();
    for _ in 0..2 {
        let host = Host::open_with("player", "found", on_the_network(25_411));
        let into = Arc::clone(&refused);
        let handler = move |notified: kind::Report<'_>| {
            if let Reported::Room(Event::DiscoveryRefused(event)) = notified.event {
                let mut refused = into.lock().unwrap_or_else(PoisonError::into_inner);
                refused.push(event.clone());
            }
        };
        let dispatch = host.room.dispatch();
        dispatch.register::<kind::Everything>(Some(Arc::new(handler)));
        hosts.push(host);
    }
    let refused = || refused.lock().unwrap_or_else(PoisonError::into_inner);
    eventually("a refusal", || !refused().is_empty()).await;
    let event = refused()[0].clone();
    assert_eq!(event.found_by, FoundBy::LocalNetwork);
    assert_eq!((event.result.success, event.result.code), (false, -11));
    let ports = hosts.iter().map(Host::port);
    let address: SocketAddr = event.result.target.parse().expect("an address");
    assert!(
        ports.into_iter().any(|port| port == address.port()),
        "{address}"
    );
    // Both dial again and again from 2 s on; one report a minute for each address is enough for a player.
    sleep(Duration::from_secs(7)).await;
    let mut targets: Vec<_> = refused()
        .iter()
        .map(|one| one.result.target.clone())
        .collect();
    let reported = targets.len();
    targets.sort();
    targets.dedup();
    assert_eq!(targets.len(), reported, "{targets:?}");
}

#[tokio::test]
async fn members_with_a_room_code_discover_each_other_by_its_locator() {
    const CODE: &str = "K7QM-3XP9-TRWF";
    // No process is there, and nothing is sent to this address beyond this machine.
    let relays = Relay::parse_list("127.0.0.1:9").expect("a relay");
    let config = Config {
        relays,
        ..on_the_network(25_413)
    };
    let (code, typed) = (Host::open_with("a", CODE, config.clone()), "k7qm3xp9trwf");
    let other = Host::open_with("b", typed, config);
    assert_eq!(other.room.session_id().as_str(), CODE);
    for host in [&code, &other] {
        eventually("a link", || host.room.snapshot().peers.len() == 1).await;
    }
    let stranger = Host::open_with("c", CODE, on_the_network(25_413));
    eventually("an announcement", || stranger.room.is_announced()).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(stranger.room.snapshot().peers.len(), 0);
}

#[tokio::test]
async fn discovery_begins_when_another_program_gives_its_port_up() {
    let taken = UdpSocket::bind("0.0.0.0:25412").expect("bound");
    let host = Host::open_with("a", "taken", on_the_network(25_412));
    sleep(Duration::from_secs(2)).await;
    assert!(!host.room.is_announced());
    drop(taken);
    eventually("an announcement", || host.room.is_announced()).await;
}
