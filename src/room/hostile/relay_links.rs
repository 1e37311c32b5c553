//! Rooms that meet at relays: honest ones, dead ones and lying ones, and strangers who know the room's number.

mod lies;
mod relay;
mod strangers;

use std::net::UdpSocket;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use mmn_relay::{Relay, Settings};
use room_transport::closing::abi;
use room_transport::identity::generate_private;

use self::relay::{Rules, TestRelay};
use super::cut::{cut, heal};
use super::*;
use crate::config::{Paths, Relay as RelayOption};
use crate::core::election::Entry;
use crate::core::event::{Event, FoundBy, RelayReport};
use crate::core::path::{LinkPath, RelayNumber};
use crate::core::wire::{HostMode, Topology};
use crate::error::Code;
use crate::room_code::RoomCode;

const RELAY: LinkPath = LinkPath::Relay(RelayNumber(0));

/// A new code.
fn code() -> String {
    let code = RoomCode::generate().expect("a code");
    code.as_str().to_owned()
}

/// Settings of a member that enters these relays, each in its option's form.
fn entering(relays: &[String]) -> Config {
    Config {
        relays: RelayOption::parse_list(&relays.join("\n")).expect("relays"),
        reconnect_initial: Duration::from_millis(50),
        // A relay's silence is noticed first, also on a busy machine.
        heartbeat_timeout_multiplier: 20,
        ..quick()
    }
}

pub(super) fn start_relay() -> Relay {
    Relay::start(Settings::default()).expect("a relay")
}

pub(super) fn line(relay: &Relay) -> String {
    relay.address().to_string()
}

pub(super) fn path(from: &Host, to: &str) -> Option<LinkPath> {
    let snapshot = from.room.snapshot();
    snapshot.peer(to)?.path.clone()
}

/// Cuts the direct way between two members.
fn cut_direct(one: &Host, other: &Host) {
    cut(one.port(), other.port());
    cut(other.port(), one.port());
}

pub(super) fn heal_direct(one: &Host, other: &Host) {
    heal(one.port(), other.port());
    heal(other.port(), one.port());
}

async fn exchange(one: &Host, other: &Host, what: &[u8]) {
    for (from, to) in [(one, other), (other, one)] {
        from.send(&to.name, what).await;
        to.wait_for(reported(&from.name, what), 1).await;
    }
}

async fn settled(one: &Host, other: &Host) {
    one.wait_for(joined(&other.name), 1).await;
    other.wait_for(joined(&one.name), 1).await;
    eventually("one leader", || {
        let leader = one.room.snapshot().leader.clone();
        leader.is_some() && leader == other.room.snapshot().leader
    })
    .await;
}

/// Members that met at a relay and have a direct link.
async fn directly_linked() -> (TestRelay, Host, Host) {
    let relay = TestRelay::start(Rules::default());
    let (config, code) = (entering(&[relay.line()]), code());
    let a = Host::open_with("a", &code, config.clone());
    let b = Host::open_with("b", &code, config);
    settled(&a, &b).await;
    assert!(a.connect(&b).await.0);
    eventually("a direct link", || {
        path(&a, "b") == Some(LinkPath::Direct) && path(&b, "a") == Some(LinkPath::Direct)
    })
    .await;
    (relay, a, b)
}

/// [`linked`], with one relay.
pub(super) async fn relayed(relay: String) -> (Host, Host) {
    let (a, b) = linked(&[relay]).await;
    assert_eq!((path(&a, "b"), path(&b, "a")), (Some(RELAY), Some(RELAY)));
    (a, b)
}

/// Two members without a direct path that are linked over relays.
async fn linked(relays: &[String]) -> (Host, Host) {
    let code = code();
    // Only one leads at first, so the leader and the term stay.
    let enters = |entry| Config {
        entry,
        ..entering(relays)
    };
    let a = Host::open_with("a", &code, enters(Entry::Create));
    let b = Host::open_with("b", &code, enters(Entry::Join));
    cut_direct(&a, &b);
    settled(&a, &b).await;
    (a, b)
}

/// All events of a host from now on.
fn events_of(host: &Host) -> Arc<Mutex<Vec<Event>>> {
    let events = Arc::<Mutex<Vec<Event>>>::default();
    let noted = Arc::clone(&events);
    let handler = move |event: &Event| lock(&noted).push(event.clone());
    let dispatch = host.room.dispatch();
    dispatch.register_event_handler(Some(Arc::new(handler)));
    events
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reports of relays that a host received.
fn reports(events: &Mutex<Vec<Event>>) -> Vec<RelayReport> {
    let events = lock(events);
    let reports = events.iter().filter_map(|event| match event {
        Event::Relay(report) => Some(report.clone()),
        _ => None,
    });
    reports.collect()
}

/// The first report of a relay that a lone member receives.
async fn first_report(relay: String) -> RelayReport {
    let host = Host::open_with("a", &code(), entering(&[relay]));
    let events = events_of(&host);
    eventually("a report", || !reports(&events).is_empty()).await;
    reports(&events).remove(0)
}

#[tokio::test]
async fn two_members_meet_at_a_relay_and_a_direct_link_takes_over() {
    let relay = start_relay();
    let (a, b) = relayed(line(&relay)).await;
    exchange(&a, &b, b"over the relay").await;
    heal_direct(&a, &b);
    assert_eq!(a.connect(&b).await, (true, 0));
    eventually("a direct link", || {
        path(&a, "b") == Some(LinkPath::Direct) && path(&b, "a") == Some(LinkPath::Direct)
    })
    .await;
    relay.stop();
    exchange(&a, &b, b"directly").await;
    for (one, other) in [(&a, "b"), (&b, "a")] {
        assert_eq!(one.comings_and_goings(), [joined(other)]);
    }
}

/// Sends numbered messages both ways while `meanwhile` runs, and checks that each arrives once and in order, that no host
/// loses the other, and that the leader stays.
async fn carries_through(a: &Host, b: &Host, meanwhile: impl Future<Output = ()>) {
    const MESSAGES: u32 = 300;
    let leader = a.room.snapshot().leader.clone();
    let term = a.room.snapshot().term;
    let send = async |from: &Host, to: &Host| {
        for number in 0..MESSAGES {
            from.send(&to.name, &number.to_be_bytes()).await;
            sleep(Duration::from_millis(15)).await;
        }
        to.wait_for(reported(&from.name, &(MESSAGES - 1).to_be_bytes()), 1)
            .await;
    };
    tokio::join!(send(a, b), send(b, a), meanwhile);
    for (one, other) in [(a, b), (b, a)] {
        let expected: Vec<_> = (0..MESSAGES).map(|n| n.to_be_bytes().to_vec()).collect();
        assert_eq!(one.messages_from(&other.name), expected);
        assert_eq!(one.comings_and_goings(), [joined(&other.name)]);
        let snapshot = one.room.snapshot();
        assert_eq!((&snapshot.leader, snapshot.term), (&leader, term));
    }
}

#[tokio::test]
async fn a_relay_that_restarts_while_it_carries_loses_no_message_and_elects_nobody() {
    let key = generate_private().expect("a key");
    let settings = Settings {
        key: Some(key),
        ..Settings::default()
    };
    let relay = Relay::start(settings.clone()).expect("a relay");
    let again = Settings {
        listen: relay.address(),
        ..settings
    };
    let (a, b) = relayed(line(&relay)).await;
    carries_through(&a, &b, async {
        sleep(Duration::from_millis(500)).await;
        relay.stop();
        sleep(Duration::from_millis(1500)).await;
        let relay = Relay::start(again).expect("its port is free");
        sleep(Duration::from_millis(4000)).await;
        drop(relay);
    })
    .await;
}

#[tokio::test]
async fn a_relay_that_falls_silent_while_it_carries_is_noticed_and_taken_up_again() {
    let relay = start_relay();
    let (a, b) = relayed(line(&relay)).await;
    let events = events_of(&a);
    carries_through(&a, &b, async {
        for silent_ms in [900, 2200] {
            sleep(Duration::from_millis(500)).await;
            for host in [&a, &b] {
                cut(host.port(), relay.address().port());
            }
            sleep(Duration::from_millis(silent_ms)).await;
            for host in [&a, &b] {
                heal(host.port(), relay.address().port());
            }
            sleep(Duration::from_millis(1500)).await;
        }
    })
    .await;
    assert_eq!(path(&a, "b"), Some(RELAY));
    // The host is not bothered with what ends by itself.
    let events = lock(&events);
    let is_about_a_loss = |event: &&Event| matches!(event, Event::Reconnecting(_) | Event::Left(_));
    assert_eq!(events.iter().find(is_about_a_loss), None);
}

#[tokio::test]
async fn links_move_to_the_other_relay_when_theirs_dies() {
    let relays = [start_relay(), start_relay()];
    let (a, b) = linked(&relays.each_ref().map(line)).await;
    // Each end chooses the way of its own packets.
    let used = path(&a, "b");
    let [first, second] = relays;
    let (dies, stays, other) = match used {
        Some(RELAY) => (first, second, RelayNumber(1)),
        _ => (second, first, RelayNumber(0)),
    };
    carries_through(&a, &b, async {
        sleep(Duration::from_millis(1000)).await;
        dies.stop();
    })
    .await;
    let other = Some(LinkPath::Relay(other));
    assert_eq!((path(&a, "b"), path(&b, "a")), (other.clone(), other));
    drop(stays);
}

#[tokio::test]
async fn the_host_learns_that_its_member_is_in_the_relay_or_why_not() {
    let relay = start_relay();
    let report = first_report(line(&relay)).await;
    assert_eq!((report.code, &*report.relay), (0, &*line(&relay)));
    let observed = report.observed.expect("entered");
    assert_eq!(observed.ip(), Ipv4Addr::LOCALHOST);

    let other_key = Fingerprint([7; 32]);
    let report = first_report(format!("{} key={other_key}", line(&relay))).await;
    assert_eq!(
        (report.code, report.observed),
        (abi::AUTHENTICATION_FAILED, None)
    );
    let own_key = relay.fingerprint();
    let report = first_report(format!("{} key={own_key}", line(&relay))).await;
    assert_eq!(report.code, 0);

    // A socket keeps the port: the free one of a stopped relay could become another test's.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let nothing = silent.local_addr().expect("an address").to_string();
    assert_eq!(first_report(nothing).await.code, abi::TIMEOUT);

    let settings = Settings {
        token: Some([0; 16]),
        ..Settings::default()
    };
    let closed = Relay::start(settings).expect("a relay");
    let report = first_report(line(&closed)).await;
    assert_eq!(report.code, abi::AUTHENTICATION_FAILED);
    let [right, wrong] = ['0', 'A'].map(|first| format!("{first}{}", "0".repeat(25)));
    for (token, code) in [(wrong, abi::AUTHENTICATION_FAILED), (right, 0)] {
        let report = first_report(format!("{} token={token}", line(&closed))).await;
        assert_eq!(report.code, code);
    }

    let settings = Settings {
        max_links: 0,
        ..Settings::default()
    };
    let full = Relay::start(settings).expect("a relay");
    let report = first_report(line(&full)).await;
    assert_eq!(report.code, Code::MaxConnectionsReached.value());
}

#[tokio::test]
async fn a_member_that_uses_relays_alone_is_found_and_shows_no_address() {
    let relay = start_relay();
    let config = Config {
        paths: Paths::Relayed,
        ..entering(&[line(&relay)])
    };
    let code = code();
    let a = Host::open_with("a", &code, config.clone());
    let b = Host::open_with("b", &code, config);
    settled(&a, &b).await;
    exchange(&a, &b, b"hello").await;
    let direct = Config {
        handshake_timeout: Duration::from_millis(1500),
        ..entering(&[line(&relay)])
    };
    let c = Host::open_with("c", &code, direct);
    assert_eq!(c.connect(&a).await, (false, abi::TIMEOUT));
    for (one, other) in [(&a, &b), (&b, &a), (&c, &a), (&a, &c), (&c, &b)] {
        one.wait_for(joined(&other.name), 1).await;
        exchange(
            one,
            other,
            format!("{} to {}", one.name, other.name).as_bytes(),
        )
        .await;
        assert_eq!(path(one, &other.name), Some(RELAY));
        let snapshot = one.room.snapshot();
        let view = snapshot.peer(&other.name).expect("linked");
        assert_eq!(view.address, None);
    }
}

#[tokio::test]
async fn guests_of_a_star_hide_at_the_relay_and_link_over_it() {
    let relay = TestRelay::start(Rules::default());
    let in_star = |host_mode| Config {
        host_mode,
        topology: Topology::Star,
        ..entering(&[relay.line()])
    };
    let code = code();
    let host = Host::open_with("h", &code, in_star(HostMode::Host));
    let guests = ["g1", "g2"].map(|name| Host::open_with(name, &code, in_star(HostMode::Guest)));
    for guest in &guests {
        cut_direct(&host, guest);
    }
    cut_direct(&guests[0], &guests[1]);
    for (one, other) in [(&host, 0), (&host, 1)] {
        one.wait_for(joined(&guests[other].name), 1).await;
    }
    for (one, other) in [(0, 1), (1, 0)] {
        let (one, other) = (&guests[one], &guests[other]);
        one.wait_for(joined("h"), 1).await;
        one.wait_for(joined(&other.name), 1).await;
    }
    exchange(&guests[0], &guests[1], b"guest to guest").await;
    exchange(&host, &guests[0], b"host and guest").await;
    let mut hidden: Vec<_> = relay.entries().iter().map(|(_, hidden)| *hidden).collect();
    hidden.sort_unstable();
    assert_eq!(hidden, [false, true, true]);
}

/// Waits for real time: what a member sends while nothing happens.
#[tokio::test]
async fn a_member_whose_links_are_direct_costs_a_relay_next_to_nothing() {
    let (relay, _a, _b) = directly_linked().await;
    // The relayed link is closed, and its packets are gone.
    sleep(Duration::from_secs(3)).await;
    let members = relay.entered();
    let packets = || {
        let stats = members.iter().map(|member| member.connection.stats());
        stats.map(|stats| (stats.udp_rx.datagrams, stats.udp_tx.datagrams))
    };
    let before: Vec<_> = packets().collect();
    sleep(Duration::from_secs(12)).await;
    for (before, after) in before.into_iter().zip(packets()) {
        let (received, sent) = (after.0 - before.0, after.1 - before.1);
        assert!(received <= 4 && sent <= 4, "{received} and {sent} in 12 s");
    }
}
