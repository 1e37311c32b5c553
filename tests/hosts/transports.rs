//! The transports for Netcode for GameObjects and FishNet, compiled against stubs of their APIs: games whose hosts are killed.

use std::path::Path;
use std::time::Instant;

use crate::game_engines::{costs_nothing, sources};
use crate::players::{Player, TIMEOUT, take_host};
use crate::tools::{compile_csharp, compile_csharp_for_coreclr, dotnet};

/// The sources of a game in `examples/FOLDER/tests`.
fn game_of(folder: &str, transport: &[&str]) -> Vec<String> {
    let own: Vec<_> = transport
        .iter()
        .copied()
        .chain(["tests/Stub", "tests/Game"])
        .collect();
    let mut files = sources(folder, &own);
    files.extend(["Talker", "TransportGame"].map(|file| format!("examples/unity/tests/{file}.cs")));
    files
}

fn netcode() -> Vec<String> {
    game_of("netcode", &["NetcodeRoomTransport", "NetcodeHostMigration"])
}

fn fishnet() -> Vec<String> {
    game_of(
        "fishnet",
        &["FishRoomTransport", "FishHostMigration", "LocalQueue"],
    )
}

mod netcode {
    use super::*;

    #[test]
    fn a_game_survives_two_hosts_under_mono() {
        let program = compile_csharp(&netcode(), "NetcodeGame.exe");
        survives_two_hosts("netcode-mono", &[Path::new("mono"), &program]);
    }

    #[test]
    fn a_game_survives_two_hosts_under_coreclr() {
        let program = compile_csharp_for_coreclr(&netcode(), "NetcodeGameCore.exe");
        survives_two_hosts("netcode-coreclr", &[&dotnet(), &program]);
    }

    #[test]
    fn a_host_hands_over_and_ends_single_clients() {
        let program = compile_csharp(&netcode(), "NetcodeGame.exe");
        hands_over("netcode-over", &[Path::new("mono"), &program]);
    }

    #[test]
    fn a_paused_host_returns_as_a_client() {
        let program = compile_csharp(&netcode(), "NetcodeGame.exe");
        returns_as_a_client("netcode-paused", &[Path::new("mono"), &program]);
    }

    #[test]
    fn a_session_ends_when_its_player_leaves_the_room() {
        let program = compile_csharp(&netcode(), "NetcodeGame.exe");
        leaves_its_room("netcode-leaves", &[Path::new("mono"), &program]);
    }

    #[test]
    fn a_message_over_the_limit_is_an_error_with_both_numbers() {
        let program = compile_csharp(&netcode(), "NetcodeGame.exe");
        limits_messages("netcode-limits", &[Path::new("mono"), &program]);
    }

    #[test]
    fn the_round_trip_is_known_at_both_ends() {
        let program = compile_csharp(&netcode(), "NetcodeGame.exe");
        let (mut host, mut clients) = game("netcode-rtt", &[Path::new("mono"), &program], &["ann"]);
        let id = host.id_of("ann");
        clients[0].send("lag 50");
        for (player, to) in [(&mut clients[0], ""), (&mut host, id.as_str())] {
            let start = Instant::now();
            loop {
                player.send(format!("rtt {to}").trim_end());
                let milliseconds: u64 = player.next("rtt ").parse().expect("milliseconds");
                if milliseconds >= 40 {
                    assert!(milliseconds < 1000, "{milliseconds}");
                    break;
                }
                assert!(start.elapsed() < TIMEOUT, "{milliseconds}");
            }
            player.send("rtt 9999");
            assert_eq!(player.next("rtt "), "0", "of no client");
        }
    }
}

mod fishnet {
    use super::*;

    #[test]
    fn a_game_survives_two_hosts_under_mono() {
        let program = compile_csharp(&fishnet(), "FishGame.exe");
        survives_two_hosts("fishnet-mono", &[Path::new("mono"), &program]);
    }

    #[test]
    fn a_game_survives_two_hosts_under_coreclr() {
        let program = compile_csharp_for_coreclr(&fishnet(), "FishGameCore.exe");
        survives_two_hosts("fishnet-coreclr", &[&dotnet(), &program]);
    }

    #[test]
    fn a_host_hands_over_and_ends_single_clients() {
        let program = compile_csharp(&fishnet(), "FishGame.exe");
        hands_over("fishnet-over", &[Path::new("mono"), &program]);
    }

    #[test]
    fn a_paused_host_returns_as_a_client() {
        let program = compile_csharp(&fishnet(), "FishGame.exe");
        returns_as_a_client("fishnet-paused", &[Path::new("mono"), &program]);
    }

    #[test]
    fn a_session_ends_when_its_player_leaves_the_room() {
        let program = compile_csharp(&fishnet(), "FishGame.exe");
        leaves_its_room("fishnet-leaves", &[Path::new("mono"), &program]);
    }

    #[test]
    fn a_message_over_the_limit_is_an_error_with_both_numbers() {
        let program = compile_csharp(&fishnet(), "FishGame.exe");
        limits_messages("fishnet-limits", &[Path::new("mono"), &program]);
    }

    /// It has no link: its messages pass through memory.
    #[test]
    fn the_client_of_a_host_talks_to_its_server() {
        let program = compile_csharp(&fishnet(), "FishGame.exe");
        let session = session("fishnet-alone");
        let command = [Path::new("mono"), &program];
        let mut host = Player::start(&command, "ann", &session, None);
        host.next("client 0 ann");
        costs_nothing(&host.next("echoed "));
        host.send("drop 0");
        host.next("disconnected");
        host.next("client 0 gone");
        host.send("start");
        host.next("client 0 ann");
        costs_nothing(&host.next("echoed "));
        // More than may wait for a frame.
        host.send("big 16777217 reliable");
        host.next_where("log ", |line| {
            line.contains("more than 16777216 bytes wait")
        });
        host.next("disconnected");
        host.next("client 0 gone");
        host.ends_well();
    }
}

/// A host with clients that are connected and have had all kinds of messages echoed.
fn game(name: &str, command: &[&Path], clients: &[&'static str]) -> (Player, Vec<Player>) {
    let session = session(name);
    let mut host = Player::start(command, "server", &session, None);
    let address = host.next("address ");
    host.next("host");
    let mut start = |id: &&'static str| {
        let mut client = Player::start(command, id, &session, Some(&address));
        assert_eq!(client.next("connected to "), "server");
        costs_nothing(&client.next("echoed "));
        client
    };
    let clients: Vec<_> = clients.iter().map(&mut start).collect();
    for client in &clients {
        host.next_where("client ", |line| line.ends_with(client.id));
    }
    // A host with a client of its own may have served that one before.
    costs_nothing(&host.next_of_all("served "));
    (host, clients)
}

fn session(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

/// All of them are clients of the host, and their messages come back.
fn are_clients_of(host: &Player, clients: &mut [Player]) {
    for client in clients {
        assert_eq!(client.next("connected to "), host.id, "{}", client.id);
        costs_nothing(&client.next("echoed "));
    }
}

fn survives_two_hosts(name: &str, command: &[&Path]) {
    let (mut host, mut clients) = game(name, command, &["ann", "bob", "carl"]);
    for score in ["7", "8"] {
        host.send(&format!("score {score}"));
        for player in clients.iter_mut().chain([&mut host]) {
            has_score(player, score);
        }
        // The process is killed: neither it nor the engine closes anything.
        host.kill();
        host = take_host(&mut clients);
        host.send("score");
        assert_eq!(host.next("score "), score);
        for client in &mut clients {
            client.next("disconnected");
        }
        are_clients_of(&host, &mut clients);
        costs_nothing(&host.next_of_all("served "));
    }
    // A newcomer reaches the third host through its client.
    let client = &mut clients[0];
    client.send("address");
    let address = client.next("address ");
    let newcomer = Player::start(command, "dora", &session(name), Some(&address));
    clients.push(newcomer);
    are_clients_of(&host, &mut clients[1..]);
    host.ends_well();
    // The two that remain go on.
    let host = take_host(&mut clients);
    are_clients_of(&host, &mut clients);
    for player in clients.into_iter().chain([host]) {
        player.ends_well();
    }
}

/// Once the room has confirmed it.
fn has_score(player: &mut Player, score: &str) {
    let start = Instant::now();
    loop {
        player.send("score");
        let found = player.next("score ");
        if found == score {
            return;
        }
        assert!(start.elapsed() < TIMEOUT, "{}: {found}", player.id);
    }
}

fn hands_over(name: &str, command: &[&Path]) {
    let (mut host, mut clients) = game(name, command, &["ann", "bob"]);
    let ann = &mut clients[0];

    // A client that returns has its number again, whichever end closed the connection before.
    let id = host.id_of("ann");
    ann.send("stop");
    ann.next("disconnected");
    host.next(&format!("client {id} gone"));
    ann.send("start");
    ann.next("connected to server");
    host.next(&format!("client {id} ann"));
    ann.next("echoed ");
    host.send(&format!("drop {id}"));
    ann.next("disconnected");
    ann.send("start");
    ann.next("connected to server");
    host.next(&format!("client {id} ann"));
    ann.next("echoed ");

    // A host that shuts its session down hands over, and becomes a client.
    host.send("stop");
    host.next("no host any more");
    let next = take_host(&mut clients);
    clients.push(host);
    are_clients_of(&next, &mut clients);
    for player in clients.into_iter().chain([next]) {
        player.ends_well();
    }
}

/// Without a word to the engine: the room is gone, and the session ends with it.
fn leaves_its_room(name: &str, command: &[&Path]) {
    let (mut host, mut clients) = game(name, command, &["ann", "bob"]);
    clients[0].send("leave");
    clients[0].next("disconnected");
    let id = host.id_of("ann");
    host.next(&format!("client {id} gone"));
    host.send("leave");
    host.next("no host any more");
    let mut bob = clients.remove(1);
    bob.next("disconnected");
    bob.next("host");
    for player in clients.into_iter().chain([bob, host]) {
        player.ends_well();
    }
}

fn returns_as_a_client(name: &str, command: &[&Path]) {
    let (former, mut clients) = game(name, command, &["ann", "bob"]);
    former.signal(libc::SIGSTOP);
    let host = take_host(&mut clients);
    are_clients_of(&host, &mut clients);
    former.signal(libc::SIGCONT);
    clients.push(former);
    let former = &mut clients[1];
    former.next("no host any more");
    are_clients_of(&host, &mut clients[1..]);
    for player in clients.into_iter().chain([host]) {
        player.ends_well();
    }
}

fn limits_messages(name: &str, command: &[&Path]) {
    let (mut host, mut clients) = game(name, command, &["ann"]);
    let mut ann = clients.remove(0);
    let id = host.id_of("ann");
    for (largest, kind) in [(262_144, "reliable"), (1100, "unreliable")] {
        let whole = format!("big {largest} ends with 77");
        ann.send(&format!("big {largest} {kind}"));
        host.next(&whole);
        host.send(&format!("big {largest} {kind} {id}"));
        ann.next(&whole);
    }
    // An unreliable one too many is dropped.
    let dropped = "an unreliable message was dropped: it has 1101 bytes; the limit is 1100.";
    for (player, to) in [(&mut ann, ""), (&mut host, id.as_str())] {
        player.send(format!("big 1101 unreliable {to}").trim_end());
        player.next_where("log ", |line| line.contains(dropped));
    }
    // A reliable one leaves a gap: the connection ends, and can begin again.
    let refused = "it has 262145 bytes; the limit is 262144.";
    ann.send("big 262145 reliable");
    ann.next_where("log ", |line| line.contains(refused));
    ann.next("disconnected");
    host.next(&format!("client {id} gone"));
    ann.send("start");
    ann.next("connected to server");
    ann.next("echoed ");
    host.send(&format!("big 262145 reliable {id}"));
    host.next_where("log ", |line| line.contains(refused));
    host.next(&format!("client {id} gone"));
    ann.next("disconnected");
    ann.send("start");
    ann.next("connected to server");
    ann.next("echoed ");
    ann.ends_well();
    host.ends_well();
}
