//! Crowds of processes at one address: guesses are limited, and honest newcomers get in.

use std::net::{IpAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::task::JoinSet;

use crate::net::accept::MAX_ADMISSIONS_OF_ONE;
use crate::net::admission::{accept_pake, accept_without_answer};
use crate::net::discovery::{announcement, tag};
use crate::net::socket::Bound;
use crate::room::hostile::cut::{cut, heal};
use crate::room::hostile::*;

/// Opens a room at another address of this machine than the other tests' rooms.
fn open_elsewhere(name: &str, session: &str, config: Config) -> Host {
    let bind_address = Some(IpAddr::from([127, 0, 0, 2]));
    Host::open_with(
        name,
        session,
        Config {
            bind_address,
            ..config
        },
    )
}

impl Pair {
    /// Cuts the cable between the two until both have noticed, and waits until they are linked again.
    async fn lose_and_find_each_other(&self) {
        let ports = [self.a.port(), self.b.port()];
        cut(ports[0], ports[1]);
        cut(ports[1], ports[0]);
        self.a.wait_for(left("b"), 1).await;
        self.b.wait_for(left("a"), 1).await;
        heal(ports[0], ports[1]);
        heal(ports[1], ports[0]);
        self.a.wait_for(joined("b"), 2).await;
        self.b.wait_for(joined("a"), 2).await;
    }
}

/// Guesses allowed to one address since `first`: five, and five more after each minute.
fn allowed_since(first: Instant) -> usize {
    let minutes = first.elapsed().as_secs() / 60;
    5 * (1 + usize::try_from(minutes).expect("few"))
}

/// Dials and tests guesses in a loop; counts the guesses that were answered.
async fn guess_by_dialling(address: SocketAddr, answered: Arc<AtomicUsize>) {
    let guesser = Attacker::new("guesser", "a guess");
    let limit = Duration::from_secs(8);
    loop {
        let config = guesser.process.client(None, ALPN);
        let dialling = guesser
            .process
            .endpoint
            .connect_with(config, address, "mmn");
        let dialling = tokio::time::timeout(limit, dialling.expect("an address"));
        let Ok(Ok(connection)) = dialling.await else {
            continue;
        };
        let guess = dial_pake(&connection, &guesser.proof);
        if let Ok(Err(error)) = tokio::time::timeout(limit, guess).await
            && error.code() == -10
        {
            answered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test]
async fn five_of_250_guessing_ports_are_served_and_honest_ones_get_in() {
    const SESSION: &str = "dialled by guessers";
    let pair = Pair::settled(SESSION).await;
    let member = Attacker::new("member", SESSION);
    let _link = member.join(&pair.a).await;
    let answered = Arc::new(AtomicUsize::new(0));
    let first = Instant::now();
    let mut guessers = JoinSet::new();
    for _ in 0..250 {
        guessers.spawn(guess_by_dialling(pair.a.address(), Arc::clone(&answered)));
    }
    let count = || answered.load(Ordering::Relaxed);
    eventually("five guesses are answered", || count() >= 5).await;
    let began = Instant::now();
    // From another address a newcomer enters at once. From this one only former members do.
    let newcomer = open_elsewhere("newcomer", SESSION, quick());
    let start = Instant::now();
    assert_eq!(newcomer.connect(&pair.a).await, (true, 0));
    assert!(start.elapsed() < quick().handshake_timeout);
    pair.lose_and_find_each_other().await;
    sleep(Duration::from_secs(8).saturating_sub(began.elapsed())).await;
    assert!(count() <= allowed_since(first), "{} guesses", count());
    guessers.shutdown().await;

    // The address is closed for strangers, whatever they know, and open for a known key.
    let honest = Host::open("honest", SESSION);
    let result = loop {
        match honest.connect(&pair.a).await {
            (false, -19) => {} // behind guessers that are still in the queue
            result => break result,
        }
    };
    assert_eq!(result, (false, -22));
    let connection = member.connect(&pair.a).await;
    let admitted = in_time(dial_pake(&connection, &member.proof)).await;
    assert!(admitted.is_ok(), "a known key");
}

/// Accepts links, and tests a guess on every dialler; records the port of each dialler whose confirmation it got.
async fn guess_by_being_dialled(guesser: Attacker, got: Arc<Mutex<Vec<u16>>>) {
    loop {
        let incoming = guesser.process.endpoint.accept().await;
        let Ok(connection) = incoming.expect("open").await else {
            continue;
        };
        if let Err(error) = accept_pake(&connection, &guesser.proof).await
            && error.is_failed_confirmation()
        {
            let dialler = connection.remote_address().port();
            got.lock().expect("not poisoned").push(dialler);
        }
    }
}

#[tokio::test]
async fn of_250_announced_ports_five_learn_whether_they_guessed_and_honest_ones_get_in() {
    const SESSION: &str = "dials guessers";
    const MDNS_PORT: u16 = 25_401;
    let got = Arc::new(Mutex::new(Vec::new()));
    let first = Instant::now();
    let responder = mdns_sd::ServiceDaemon::new_with_port(MDNS_PORT).expect("a responder");
    let tag = tag(SESSION.as_bytes());
    let mut guessers = JoinSet::new();
    for n in 0..250 {
        let guesser = Attacker::new("guesser", "a guess");
        let bound = Bound {
            address: Some(Ipv4Addr::LOCALHOST.into()),
            port: guesser.process.address().port(),
        };
        let service = announcement(&format!("{n:016x}"), &tag, bound).expect("a service");
        while let Err(error) = responder.register(service.clone()) {
            assert!(matches!(error, mdns_sd::Error::Again), "{error}");
            sleep(Duration::from_millis(5)).await;
        }
        guessers.spawn(guess_by_being_dialled(guesser, Arc::clone(&got)));
    }
    let pair = Pair {
        a: Host::open_with("a", SESSION, on_the_network(MDNS_PORT)),
        b: Host::open("b", SESSION),
    };
    assert_eq!(pair.b.connect(&pair.a).await, (true, 0));
    pair.a.wait_for(joined("b"), 1).await;
    let count = || {
        let got = got.lock().expect("not poisoned");
        let of_a = got.iter().filter(|port| **port == pair.a.port());
        of_a.count()
    };
    eventually("a dials what is announced", || count() >= 5).await;
    let began = Instant::now();
    // By hand, and by discovery.
    let newcomer = open_elsewhere("newcomer", SESSION, quick());
    let start = Instant::now();
    assert_eq!(newcomer.connect(&pair.a).await, (true, 0));
    assert!(start.elapsed() < quick().handshake_timeout);
    let _found = open_elsewhere("found", SESSION, on_the_network(MDNS_PORT));
    pair.a.wait_for(joined("found"), 1).await;
    pair.lose_and_find_each_other().await;
    // A host that dials there receives the time until which it cannot.
    let results = watch::Sender::new(Vec::new());
    let mut reported = results.subscribe();
    let notify =
        move |result: &ConnectionResult| results.send_modify(|all| all.push(result.clone()));
    let dispatch = pair.a.room.dispatch();
    dispatch.register::<kind::ConnectionResult>(Some(Arc::new(notify)));
    let outsider = Process::start();
    pair.a.connect_to(outsider.address());
    let result = in_time(reported.wait_for(|all| !all.is_empty())).await;
    let result = result.expect("the room is open")[0].clone();
    assert_eq!((result.success, result.code), (false, -22));
    let sentence = String::from_utf8_lossy(&result.bytes).into_owned();
    assert!(
        sentence.starts_with("asked too often: 127.0.0.1 is not dialled for another "),
        "{sentence}"
    );
    sleep(Duration::from_secs(10).saturating_sub(began.elapsed())).await;
    assert!(count() <= allowed_since(first), "{} guesses", count());
}

#[tokio::test]
async fn of_forty_dials_at_once_five_show_a_silent_acceptor_whether_it_guessed() {
    let config = Config {
        handshake_timeout: Duration::from_secs(2),
        ..quick()
    };
    let host = Host::open_with("host", "silence", config);
    let confirmations = Arc::new(AtomicUsize::new(0));
    let mut acceptors = JoinSet::new();
    for _ in 0..40 {
        let acceptor = Attacker::new("acceptor", "a guess");
        host.connect_to(acceptor.process.address());
        let confirmations = Arc::clone(&confirmations);
        acceptors.spawn(async move {
            let Ok(connection) = acceptor.process.accept().await else {
                return;
            };
            // It reads the confirmation, and then neither answers nor closes.
            let streams = accept_without_answer(&connection, &acceptor.proof).await;
            if streams.is_ok() {
                confirmations.fetch_add(1, Ordering::Relaxed);
            }
            connection.closed().await;
        });
    }
    let results = |reported: &[Report]| {
        let is_result = |reported: &&Report| matches!(reported, Report::Connection(false, _));
        (reported.iter().filter(is_result).count() == 40).then_some(())
    };
    host.wait("forty results", results).await;
    assert_eq!(confirmations.load(Ordering::Relaxed), 5);
}

#[tokio::test]
async fn silent_strangers_at_one_address_leave_a_place_for_another_address() {
    let pair = Pair::settled("places").await;
    let stranger = Process::start();
    let mut dials = JoinSet::new();
    for _ in 0..100 {
        let config = stranger.client(None, ALPN);
        let dialling = stranger
            .endpoint
            .connect_with(config, pair.a.address(), "mmn");
        let dialling = dialling.expect("an address");
        dials.spawn(async move {
            let connection = dialling.await;
            std::future::pending::<()>().await;
            drop(connection);
        });
    }
    eventually("all places of the address are taken", || {
        pair.a.census().connections > MAX_ADMISSIONS_OF_ONE
    })
    .await;
    let newcomer = open_elsewhere("newcomer", "places", quick());
    let start = Instant::now();
    assert_eq!(newcomer.connect(&pair.a).await, (true, 0));
    assert!(start.elapsed() < quick().handshake_timeout / 2);
    pair.undisturbed("silent strangers at one address").await;
}

/// Timers for a thousand links in one process: their heartbeats must leave even a slow machine time for the rest.
fn crowded(config: Config) -> Config {
    Config {
        heartbeat_interval: Duration::from_secs(1),
        election_timeout_min: Duration::from_secs(3),
        election_timeout_max: Duration::from_secs(6),
        handshake_timeout: Duration::from_secs(20),
        ..config
    }
}

/// Opens rooms on one address, all at once.
fn open_many(count: usize, session: &str, config: &Config) -> Vec<Host> {
    (0..count)
        .map(|n| Host::open_with(&format!("p{n:02}"), session, config.clone()))
        .collect()
}

async fn form_a_mesh(hosts: &[Host]) {
    let start = Instant::now();
    while !hosts
        .iter()
        .all(|host| host.room.snapshot().connected == hosts.len() - 1)
    {
        let seen: Vec<_> = hosts.iter().map(|h| h.room.snapshot().connected).collect();
        assert!(start.elapsed() < 3 * TIMEOUT, "no mesh: {seen:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn thirty_two_members_on_one_address_that_dial_one_contact_at_once_form_a_mesh() {
    let hosts = open_many(32, "crowd", &crowded(quick()));
    let mut results = Vec::new();
    for host in &hosts[1..] {
        results.push(host.connect(&hosts[0]));
    }
    for result in futures_in_order(results).await {
        // The mesh may have been faster.
        assert!(matches!(result, (true, 0 | -14)), "{result:?}");
    }
    form_a_mesh(&hosts).await;
    close(&hosts);
}

/// Closes all rooms at once: each leaves all others.
fn close(hosts: &[Host]) {
    std::thread::scope(|scope| {
        for host in hosts {
            scope.spawn(|| host.room.close());
        }
    });
}

/// Drives all of `futures` at once.
async fn futures_in_order<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut results: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_none()
                && let std::task::Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *result = Some(ready);
            }
        }
        match results.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

#[tokio::test]
async fn thirty_two_members_on_one_address_form_a_mesh() {
    let hosts = open_many(32, "found crowd", &crowded(on_the_network(25_402)));
    form_a_mesh(&hosts).await;
    close(&hosts);
}

#[tokio::test]
async fn two_rooms_with_one_tag_on_one_address_do_not_starve_each_other() {
    let mut seen = std::collections::BTreeMap::new();
    let (one, other) = (0..)
        .find_map(|n| {
            let name = format!("typo {n}");
            let other = seen.insert(tag(name.as_bytes()), name.clone())?;
            Some((name, other))
        })
        .expect("16 bits collide");
    let config = on_the_network(25_403);
    let rooms = [open_many(6, &one, &config), open_many(6, &other, &config)];
    for room in &rooms {
        form_a_mesh(room).await;
    }
}

/// A response with 40 forged members, as anyone on the network may send it.
fn forged_records(number: u32) -> Vec<u8> {
    const RECORDS: u16 = 40;
    let mut packet = vec![0, 0, 0x84, 0, 0, 0];
    packet.extend(RECORDS.to_be_bytes());
    packet.extend([0; 4]);
    for record in 0..RECORDS {
        if record == 0 {
            for label in ["_meta-mystia", "_udp", "local"] {
                packet.push(u8::try_from(label.len()).expect("short"));
                packet.extend(label.as_bytes());
            }
            packet.push(0);
        } else {
            packet.extend([0xc0, 12]);
        }
        let name = format!("{number:08x}{record:08x}");
        // PTR, class IN, two minutes.
        packet.extend([0, 12, 0, 1, 0, 0, 0, 120, 0, 19]);
        packet.push(16);
        packet.extend(name.as_bytes());
        packet.extend([0xc0, 12]);
    }
    packet
}

#[tokio::test]
async fn a_flood_of_forged_records_makes_discovery_pause_and_not_end() {
    const MDNS_PORT: u16 = 25_404;
    let a = Host::open_with("a", "flooded", on_the_network(MDNS_PORT));
    eventually("a is announced", || a.room.is_announced()).await;
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    socket2::SockRef::from(&socket)
        .set_multicast_if_v4(&Ipv4Addr::LOCALHOST)
        .expect("loopback");
    let start = Instant::now();
    let mut number = 0;
    while a.room.is_announced() {
        assert!(
            start.elapsed() < 2 * TIMEOUT,
            "{number} packets changed nothing"
        );
        for _ in 0..10 {
            number += 1;
            let packet = forged_records(number);
            let _ = socket.send_to(&packet, ("224.0.0.251", MDNS_PORT));
        }
        sleep(Duration::from_millis(5)).await;
    }
    let b = Host::open_with("b", "flooded", on_the_network(MDNS_PORT));
    eventually("a is announced again", || a.room.is_announced()).await;
    a.wait_for(joined("b"), 1).await;
    b.wait_for(joined("a"), 1).await;
}
