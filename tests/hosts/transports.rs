//! The transports for Netcode for GameObjects and FishNet, compiled against stubs of their APIs: games whose hosts are killed.

use std::path::Path;

use crate::game_engines::{costs_nothing, sources};
use crate::players::{Player, take_host};
use crate::tools::{compile_csharp, compile_csharp_for_coreclr, dotnet};

const NETCODE: [&str; 4] = [
    "NetcodeRoomTransport",
    "NetcodeHostMigration",
    "tests/Stub",
    "tests/Game",
];

fn netcode() -> Vec<String> {
    let mut files = sources("netcode", &NETCODE);
    files.push("examples/unity/tests/Talker.cs".into());
    files
}

#[test]
fn a_netcode_game_survives_two_hosts_under_mono() {
    let program = compile_csharp(&netcode(), "NetcodeGame.exe");
    survives_two_hosts("netcode-mono", &[Path::new("mono"), &program]);
}

#[test]
fn a_netcode_game_survives_two_hosts_under_coreclr() {
    let program = compile_csharp_for_coreclr(&netcode(), "NetcodeGameCore.exe");
    survives_two_hosts("netcode-coreclr", &[&dotnet(), &program]);
}

#[test]
fn a_netcode_host_hands_over_and_ends_single_clients() {
    let program = compile_csharp(&netcode(), "NetcodeGame.exe");
    hands_over("netcode-over", &[Path::new("mono"), &program]);
}

#[test]
fn a_paused_netcode_host_returns_as_a_client() {
    let program = compile_csharp(&netcode(), "NetcodeGame.exe");
    returns_as_a_client("netcode-paused", &[Path::new("mono"), &program]);
}

#[test]
fn a_netcode_message_over_the_limit_is_an_error_with_both_numbers() {
    let program = compile_csharp(&netcode(), "NetcodeGame.exe");
    let kinds = ["ReliableFragmentedSequenced", "UnreliableSequenced"];
    limits_messages("netcode-limits", &[Path::new("mono"), &program], kinds);
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
    let clients = clients.iter().map(&mut start).collect();
    costs_nothing(&host.next("served "));
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
    for _ in 0..2 {
        // The process is killed: neither it nor the engine closes anything.
        host.kill();
        host = take_host(&mut clients);
        for client in &mut clients {
            client.next("disconnected");
        }
        are_clients_of(&host, &mut clients);
        costs_nothing(&host.next("served "));
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

fn hands_over(name: &str, command: &[&Path]) {
    let (mut host, mut clients) = game(name, command, &["ann", "bob"]);
    let ann = &mut clients[0];

    // A client that returns has its number again, whichever end closed the connection before.
    let id = host.id_of("ann");
    ann.send("disconnect");
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

/// Kinds: a reliable one and an unreliable one, as the engine calls them.
fn limits_messages(name: &str, command: &[&Path], [reliable, unreliable]: [&str; 2]) {
    let (mut host, mut clients) = game(name, command, &["ann"]);
    let mut ann = clients.remove(0);
    let id = host.id_of("ann");
    for (largest, kind) in [(262_144, reliable), (1100, unreliable)] {
        let whole = format!("big {largest} ends with 77");
        ann.send(&format!("big {largest} {kind}"));
        host.next(&whole);
        host.send(&format!("big {largest} {kind} {id}"));
        ann.next(&whole);
    }
    // An unreliable one too many is dropped.
    let dropped = "an unreliable message was dropped: it has 1101 bytes; the limit is 1100.";
    for (player, to) in [(&mut ann, ""), (&mut host, id.as_str())] {
        player.send(&format!("big 1101 {unreliable} {to}").trim_end().to_owned());
        player.next_where("log ", |line| line.contains(dropped));
    }
    // A reliable one leaves a gap: the connection ends, and can begin again.
    let refused = "it has 262145 bytes; the limit is 262144.";
    ann.send(&format!("big 262145 {reliable}"));
    ann.next_where("log ", |line| line.contains(refused));
    ann.next("disconnected");
    host.next(&format!("client {id} gone"));
    ann.send("start");
    ann.next("connected to server");
    ann.next("echoed ");
    host.send(&format!("big 262145 {reliable} {id}"));
    host.next_where("log ", |line| line.contains(refused));
    host.next(&format!("client {id} gone"));
    ann.next("disconnected");
    ann.send("start");
    ann.next("connected to server");
    ann.next("echoed ");

    // The round trip is known at both ends, once it is measured.
    for (player, to) in [(&mut ann, ""), (&mut host, id.as_str())] {
        player.send(format!("rtt {to}").trim_end());
        let milliseconds: u64 = player.next("rtt ").parse().expect("milliseconds");
        assert!(milliseconds < 1000, "{milliseconds}");
    }
    ann.ends_well();
    host.ends_well();
}
