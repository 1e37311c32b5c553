//! Strangers at the relay, who know the room's number there.

use room_transport::rendezvous::{Frame, Locator, RELAY_ALPN, ToRelay};

use super::*;
use crate::core::virtual_address::virtual_id;

/// Processes that are present, and answer nothing.
async fn squat(relay: &TestRelay, count: usize) -> Vec<(Process, Connection, SendStream)> {
    let mut squatters = Vec::new();
    for _ in 0..count {
        let process = Process::start();
        let config = process.client(None, RELAY_ALPN);
        let dialled = process.dial_with(config, relay.address).await;
        let connection = dialled.expect("connected");
        let (mut send, _recv) = connection.open_bi().await.expect("a stream");
        let enter = ToRelay::Enter {
            locator: Locator(0),
            hidden: false,
            proof: None,
        };
        send.write_all(&enter.encode()).await.expect("written");
        squatters.push((process, connection, send));
    }
    squatters
}

#[tokio::test]
async fn two_rooms_of_one_number_refuse_each_other_once_and_stay_apart() {
    let relay = TestRelay::start(Rules { is_one_room: true });
    let config = entering(&[relay.line()]);
    let [tea, coffee] = [code(), code()];
    let a = Host::open_with("a", &tea, config.clone());
    let c = Host::open_with("c", &coffee, config.clone());
    let events = [&a, &c].map(events_of);
    eventually("they have met", || {
        let refused = |events: &Mutex<Vec<Event>>| {
            lock(events).iter().any(|event| match event {
                Event::DiscoveryRefused(refused) => {
                    assert_eq!(refused.found_by, FoundBy::Relay);
                    assert_eq!(refused.result.target, relay.line());
                    refused.result.code == abi::SESSION_MISMATCH
                }
                _ => false,
            })
        };
        events.iter().any(|events| refused(events))
    })
    .await;
    let b = Host::open_with("b", &tea, config.clone());
    let d = Host::open_with("d", &coffee, config);
    for (one, other) in [(&a, &b), (&c, &d)] {
        cut_direct(one, other);
        settled(one, other).await;
        exchange(one, other, b"in one room").await;
    }
    // Whatever was under way has ended: from here on nothing goes between the rooms.
    sleep(Duration::from_secs(5)).await;
    let room_of = |host: &Host| virtual_id(host.room.key());
    let tea = [room_of(&a), room_of(&b)];
    let between = Arc::<Mutex<usize>>::default();
    let noted = Arc::clone(&between);
    relay.bends(move |sender, target, piece| {
        if tea.contains(&sender) != tea.contains(&target) {
            *lock(&noted) += 1;
        }
        vec![(sender, target, piece)]
    });
    sleep(Duration::from_secs(6)).await;
    assert_eq!(*lock(&between), 0, "they dial each other no more");
    let blocked = |by: &Host| {
        let asked = relay.asked();
        let blocks = asked.into_iter().filter_map(|(key, frame)| match frame {
            ToRelay::Block { key: blocked } if key == by.room.key() => Some(blocked),
            _ => None,
        });
        blocks.collect::<Vec<_>>()
    };
    for (one, friend) in [(&a, &b), (&b, &a), (&c, &d), (&d, &c)] {
        assert!(!blocked(one).contains(&friend.room.key()));
        assert_eq!(one.comings_and_goings(), [joined(&friend.name)]);
    }
    assert!(
        [&a, &b, &c, &d]
            .iter()
            .any(|host| !blocked(host).is_empty())
    );
}

#[tokio::test]
async fn a_crowd_that_is_present_and_answers_nothing_keeps_no_friends_apart() {
    let relay = TestRelay::start(Rules { is_one_room: true });
    let _squatters = squat(&relay, 40).await;
    let (config, code) = (entering(&[relay.line()]), code());
    let a = Host::open_with("a", &code, config.clone());
    let _later = squat(&relay, 10).await;
    let b = Host::open_with("b", &code, config);
    cut_direct(&a, &b);
    let start = Instant::now();
    settled(&a, &b).await;
    // Each of the crowd gets a moment to answer, and there may be one before the friend.
    assert!(
        start.elapsed() < Duration::from_secs(8),
        "{:?}",
        start.elapsed()
    );
    exchange(&a, &b, b"friends").await;
}

#[tokio::test]
async fn guesses_at_the_relay_are_paced_and_close_no_address() {
    let relay = TestRelay::start(Rules { is_one_room: true });
    let config = entering(&[relay.line()]);
    let tea = code();
    let a = Host::open_with("a", &tea, config.clone());
    // Each guesses another code, and so is a room of its own.
    let guessers: Vec<_> = (0..5)
        .map(|n| Host::open_with(&format!("g{n}"), &code(), config.clone()))
        .collect();
    eventually("several were blocked", || {
        let is_block = |(key, frame): &(Fingerprint, ToRelay)| {
            *key == a.room.key() && matches!(frame, ToRelay::Block { .. })
        };
        relay.asked().iter().filter(|asked| is_block(asked)).count() >= 5
    })
    .await;
    // They came from this address, and it is open.
    let newcomer = Host::open("n", &tea);
    assert_eq!(newcomer.connect(&a).await, (true, 0));
    let b = Host::open_with("b", &tea, config);
    cut_direct(&a, &b);
    settled(&a, &b).await;
    for guesser in &guessers {
        assert_eq!(guesser.comings_and_goings(), []);
    }
}
