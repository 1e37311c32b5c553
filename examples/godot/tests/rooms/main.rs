//! Sessions in real rooms over loopback.

mod kills;
mod players;

use meta_mystia_network::bytes::Bytes;
use meta_mystia_network::error::Code;
use players::{Player, settings, until};
use room_multiplayer_peer::link::{MAX_UNRELIABLE, Mode, Packet};
use room_multiplayer_peer::session::{Session, Signal, Status};

fn table_of_three() -> (Player, Player, Player) {
    let mut alice = Player::hosting("alice");
    let mut bob = Player::joining("bob", &alice.address());
    until(&mut [&mut alice, &mut bob], "bob is in", |it| {
        it[1].is_connected()
    });
    // Any member's address will do.
    let mut carol = Player::joining("carol", &bob.address());
    until(
        &mut [&mut alice, &mut bob, &mut carol],
        "carol is in",
        |it| it[2].is_connected(),
    );
    (alice, bob, carol)
}

#[test]
fn three_talk_in_both_directions() {
    let (mut alice, mut bob, mut carol) = table_of_three();
    let (b, c) = (bob.session.id(), carol.session.id());
    assert_eq!(alice.session.id(), 1);
    assert!(b > 1 && c > 1 && b != c, "{b}, {c}");
    for id in [b, c] {
        assert!(alice.signals.contains(&Signal::PeerConnected(id)));
    }
    assert_eq!(bob.signals, [Signal::PeerConnected(1)]);
    assert_eq!(
        alice.session.link().member_of(b).map(|it| it.as_str()),
        Some("bob")
    );

    bob.send(1, "from bob");
    carol.send(0, "from carol");
    alice.send(0, "to all");
    alice.send(b, "to bob");
    alice.send(-b, "to all but bob");
    alice.send(0, "end");
    until(
        &mut [&mut alice, &mut bob, &mut carol],
        "all have come",
        |it| {
            it[0].has_text(b, "from bob")
                && it[0].has_text(c, "from carol")
                && it[1].has_text(1, "end")
                && it[2].has_text(1, "end")
        },
    );
    let of = |player: &Player| {
        player
            .texts()
            .into_iter()
            .map(|(_, it)| it)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&bob), ["to all", "to bob", "end"]);
    assert_eq!(of(&carol), ["to all", "to all but bob", "end"]);
}

#[test]
fn channels_and_modes_arrive_as_sent() {
    let mut alice = Player::hosting("alice");
    let mut bob = Player::joining("bob", &alice.address());
    // At once after the answer: packets on other channels may overtake it.
    until(&mut [&mut alice, &mut bob], "alice knows bob", |it| {
        it[0].signals.len() == 1
    });
    let id = alice.session.link().clients()[0];
    for (channel, mode) in [
        (0, Mode::Reliable),
        (7, Mode::Reliable),
        (255, Mode::Unreliable),
        (3, Mode::UnreliableOrdered),
    ] {
        let data = Bytes::from_static(b"one");
        alice.session.send(id, &data, channel, mode).expect("sent");
    }
    until(&mut [&mut alice, &mut bob], "four packets", |it| {
        it[1].packets.len() == 4
    });
    let mut seen: Vec<_> = bob.packets.iter().map(|it| (it.channel, it.mode)).collect();
    seen.sort_by_key(|it| it.0);
    assert_eq!(
        seen,
        [
            (0, Mode::Reliable),
            (3, Mode::UnreliableOrdered),
            (7, Mode::Reliable),
            (255, Mode::Unreliable),
        ]
    );
}

#[test]
fn the_longest_packets_arrive_and_longer_ones_are_errors() {
    let mut alice = Player::hosting("alice");
    let mut bob = Player::joining("bob", &alice.address());
    until(&mut [&mut alice, &mut bob], "bob is in", |it| {
        it[1].is_connected()
    });
    let limit = alice.session.link().max_reliable();
    let id = bob.session.id();
    let long = Bytes::from(vec![9; limit + 1]);
    for (mode, limit) in [(Mode::Reliable, limit), (Mode::Unreliable, MAX_UNRELIABLE)] {
        let whole = long.slice(..limit);
        let above = long.slice(..limit + 1);
        alice.session.send(id, &whole, 0, mode).expect("sent");
        bob.session.send(1, &whole, 0, mode).expect("sent");
        for refused in [
            alice.session.send(id, &above, 0, mode),
            bob.session.send(1, &above, 0, mode),
        ] {
            let error = refused.expect_err("too long");
            assert_eq!(error.code, Code::MessageTooLarge);
            for number in [limit, limit + 1] {
                assert!(error.text.contains(&number.to_string()), "{error}");
            }
        }
    }
    let empty = alice.session.send(id, &Bytes::new(), 0, Mode::Reliable);
    assert_eq!(empty.expect_err("empty").code, Code::InvalidArgument);
    // The connections have not ended.
    alice.send(id, "end");
    bob.send(1, "end");
    let came = |player: &Player, size| {
        player
            .packets
            .iter()
            .any(|it: &Packet| it.data.len() == size)
    };
    until(
        &mut [&mut alice, &mut bob],
        "the longest and the last",
        |it| {
            it[0].has_text(id, "end")
                && it[1].has_text(1, "end")
                && it
                    .iter()
                    .all(|it| came(it, limit) && came(it, MAX_UNRELIABLE))
        },
    );
    assert!(bob.is_connected() && alice.session.link().clients() == [id]);
}

#[test]
fn two_hosts_leave_and_the_last_two_play_on() {
    let (mut alice, mut bob, mut carol) = table_of_three();
    let mut dave = Player::joining("dave", &carol.address());
    until(
        &mut [&mut alice, &mut bob, &mut carol, &mut dave],
        "dave is in",
        |it| it[3].is_connected(),
    );
    let ids = [&bob, &carol, &dave].map(|it| it.session.id());
    let mut players = vec![(bob, ids[0]), (carol, ids[1]), (dave, ids[2])];
    alice.session.close();
    assert_eq!(alice.session.status(), Status::Disconnected);
    loop {
        play_on(&mut players);
        if players.len() == 2 {
            break;
        }
        let host = players.iter().position(|it| it.0.hosts()).expect("a host");
        let (mut host, _) = players.remove(host);
        host.session.close();
    }
}

#[test]
fn a_host_that_hands_over_is_a_client_of_the_next() {
    let (mut alice, mut bob, mut carol) = table_of_three();
    alice.session.link_mut().stop_server();
    let mut all = [&mut alice, &mut bob, &mut carol];
    until(&mut all, "all know the next host", |it| {
        it.iter().all(|it| has_next_host(it))
    });
    for player in &mut all {
        player.session.resume().expect("the game goes on");
    }
    until(&mut all, "all are connected", |it| {
        it.iter().all(|it| it.is_connected())
    });
    assert!(!all[0].hosts() && all[1].hosts() != all[2].hosts());
    all[0].packets.clear();
    for player in &mut all[1..] {
        if player.hosts() {
            player.send(0, "welcome back");
        }
    }
    until(&mut all, "the next host's packet", |it| {
        it[0].has_text(1, "welcome back")
    });
}

fn has_next_host(player: &Player) -> bool {
    let host = |it: &Signal| matches!(it, Signal::HostChanged { .. });
    player.signals.iter().any(host)
}

/// The host is gone: one of the players is the next, the others are its clients with the numbers that they had.
fn play_on(players: &mut [(Player, i32)]) {
    let mut all: Vec<_> = players.iter_mut().map(|it| &mut it.0).collect();
    for player in &mut all {
        player.signals.clear();
        player.packets.clear();
    }
    until(&mut all, "all know the next host", |it| {
        it.iter().all(|it| has_next_host(it))
    });
    for player in &mut all {
        assert_eq!(player.session.status(), Status::Disconnected);
        assert_eq!(player.signals[0], Signal::PeerDisconnected(1));
        player.session.resume().expect("the game goes on");
    }
    until(&mut all, "one host and its clients", |it| {
        it.iter().all(|it| it.is_connected()) && it.iter().filter(|it| it.hosts()).count() == 1
    });
    for player in &mut all {
        let target = if player.hosts() { 0 } else { 1 };
        player.send(target, "still here");
    }
    let others = all.len() - 1;
    until(&mut all, "all have each other's packets", |it| {
        it.iter()
            .all(|it| it.packets.len() == if it.hosts() { others } else { 1 })
    });
    for (player, id) in players {
        if player.hosts() {
            assert!(player.texts().iter().all(|(from, _)| from != id));
        } else {
            assert_eq!(player.session.id(), *id);
        }
    }
}

#[test]
fn a_client_that_returns_has_its_number_again() {
    let (mut alice, mut bob, mut carol) = table_of_three();
    let id = bob.session.id();
    bob.session.disconnect(1, false);
    until(
        &mut [&mut alice, &mut bob, &mut carol],
        "bob is out",
        |it| !it[1].is_connected() && it[0].signals.contains(&Signal::PeerDisconnected(id)),
    );
    bob.session.resume().expect("bob is still in the room");
    until(
        &mut [&mut alice, &mut bob, &mut carol],
        "bob is back",
        |it| it[1].is_connected(),
    );
    assert_eq!(bob.session.id(), id);
    // And by the server's hand, whose own signal `force` leaves out.
    alice.signals.clear();
    alice.session.disconnect(id, true);
    until(
        &mut [&mut alice, &mut bob, &mut carol],
        "bob is out again",
        |it| !it[1].is_connected(),
    );
    assert_eq!(alice.signals, []);
}

#[test]
fn packets_before_the_end_are_read_first() {
    let mut alice = Player::hosting("alice");
    let mut bob = Player::joining("bob", &alice.address());
    until(&mut [&mut alice, &mut bob], "bob is in", |it| {
        it[1].is_connected()
    });
    alice.send(bob.session.id(), "last words");
    alice.session.disconnect(bob.session.id(), false);
    until(&mut [&mut alice, &mut bob], "bob is out", |it| {
        !it[1].is_connected()
    });
    assert_eq!(bob.texts(), [(1, "last words".to_owned())]);
    assert_eq!(
        bob.signals,
        [Signal::PeerConnected(1), Signal::PeerDisconnected(1)]
    );
}

#[test]
fn a_server_that_refuses_lets_no_client_in() {
    let mut alice = Player::hosting("alice");
    alice.session.link_mut().refuse_new_clients(true);
    let mut bob = Player::joining("bob", &alice.address());
    until(&mut [&mut alice, &mut bob], "bob is refused", |it| {
        it[1].session.status() == Status::Disconnected
    });
    assert_eq!(alice.signals, []);
}

#[test]
fn another_secret_is_refused_with_its_reason() {
    let mut alice = Player::hosting("alice");
    let mut bob = Player::default();
    let mut other = settings("bob");
    other.secret = "nettle".into();
    bob.session.join(other, &alice.address()).expect("dialled");
    until(&mut [&mut alice, &mut bob], "bob fails", |it| {
        it[1].session.status() == Status::Disconnected
    });
    let [Signal::Failed(error)] = &bob.signals[..] else {
        panic!("{:?}", bob.signals);
    };
    assert_eq!(error.code, Code::AuthenticationFailed);
}

#[test]
fn bad_settings_are_errors_and_change_nothing() {
    let mut session = Session::default();
    let refused = |result: Result<(), _>, part: &str| {
        let error: room_multiplayer_peer::link::LinkError = result.expect_err("an error");
        assert!(error.text.contains(part), "{error}");
    };
    refused(session.join(settings("bob"), ""), "address");
    refused(session.join(settings("bob"), "no port"), "no port");
    let mut long = settings("alice");
    long.session = "x".repeat(129);
    refused(session.host(long), "128");
    let mut relays = settings("alice");
    relays.relays = "127.0.0.1:4430 colour=red".into();
    refused(session.host(relays.clone()), "colour");
    relays.relays = "127.0.0.1:4430".into();
    refused(session.host(relays), "room code");
    refused(session.resume(), "address");
    assert_eq!(session.status(), Status::Disconnected);
    session.host(settings("alice")).expect("a room opens");
    refused(session.host(settings("alice")), "close");
}
