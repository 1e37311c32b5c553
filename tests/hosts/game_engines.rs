//! The samples for game engines, compiled against stubs of the engines' APIs: Mirror's transport, which survives its host, and
//! the BepInEx plugin.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::players::{Player, take_host};
use crate::tools::{compile_csharp, compile_csharp_for_coreclr, dotnet, library, run};

/// Shared by the transports, with the stub of Unity.
const UNITY: [&str; 3] = ["RoomLink", "tests/Unity", "tests/Commands"];

/// Sources in `examples/FOLDER`, and the shared ones.
pub(crate) fn sources(folder: &str, files: &[&str]) -> Vec<String> {
    let own = files.iter().map(|file| (folder, file));
    let shared = UNITY.iter().map(|file| ("unity", file));
    own.chain(shared)
        .map(|(folder, file)| format!("examples/{folder}/{file}.cs"))
        .collect()
}

/// The sources of a program in `examples/mirror/tests`.
fn mirror(program: &str) -> Vec<String> {
    let ours = [
        "RoomTransport",
        "HostMigration",
        "RoomWorld",
        "RoomClaim",
        "RoomChanges",
        "RoomObject",
        "Chest",
        "tests/Stub",
        program,
    ];
    sources("mirror", &ours)
}

#[test]
fn a_mirror_game_goes_on_without_its_host_under_mono() {
    let program = compile_csharp(&mirror("tests/Echo"), "MirrorEcho.exe");
    goes_on_without_its_host("mono", &[Path::new("mono"), &program]);
}

#[test]
fn a_mirror_game_goes_on_without_its_host_under_coreclr() {
    let program = compile_csharp_for_coreclr(&mirror("tests/Echo"), "MirrorEchoCore.exe");
    goes_on_without_its_host("coreclr", &[&dotnet(), &program]);
}

fn goes_on_without_its_host(runtime: &str, command: &[&Path]) {
    let session = format!("mirror-{runtime}-{}", std::process::id());
    let player = |id, contact: Option<&str>| Player::start(command, id, &session, contact);

    // Both channels, in order, and no garbage.
    let mut server = player("server", None);
    let address = server.next("address ");
    let mut ann = player("ann", Some(&address));
    let mut bob = player("bob", Some(&address));
    for client in [&mut ann, &mut bob] {
        assert_eq!(client.next("connected to "), "server");
        costs_nothing(&client.next("echoed "));
    }
    costs_nothing(&server.next("served "));

    // A client that returns is the same connection, whichever end closed the previous one.
    let bobs = server.id_of("bob");
    bob.send("disconnect");
    bob.next("disconnected");
    server.next(&format!("client {bobs} gone"));
    bob.send("connect");
    bob.next("connected to server");
    server.next(&format!("client {bobs} bob"));
    server.send(&format!("drop {bobs}"));
    bob.next("disconnected");
    bob.send("connect");
    bob.next("connected to server");
    bob.next("echoed ");

    // The host's process is killed. One client becomes the host, the other connects to it.
    server.kill();
    let mut clients = vec![ann, bob];
    let mut host = take_host(&mut clients);
    let mut client = clients.pop().expect("the other");
    assert_eq!(client.next("connected to "), host.id);
    costs_nothing(&client.next("echoed "));
    costs_nothing(&host.next("served "));

    // A newcomer reaches the host through any member.
    client.send("address");
    let address = client.next("address ");
    let mut carl = player("carl", Some(&address));
    assert_eq!(carl.next("connected to "), host.id);
    carl.next("echoed ");

    // A host that stops serving transfers its leadership, and becomes a client.
    let former = host.id;
    host.send("stop");
    let mut others = vec![client, carl];
    let mut next = take_host(&mut others);
    let mut last = others.pop().expect("the other");
    for client in [&mut host, &mut last] {
        assert_eq!(client.next("connected to "), next.id, "after {former}");
        client.next("echoed ");
    }
    costs_nothing(&next.next("served "));
    for player in [host, last, next] {
        player.ends_well();
    }
}

#[test]
fn a_mirror_player_without_a_host_can_host() {
    let program = compile_csharp(&mirror("tests/Echo"), "MirrorEchoAlone.exe");
    let command = [Path::new("mono"), &program];
    let session = format!("mirror-alone-{}", std::process::id());
    let unknown = Some("127.0.0.1:9");
    let mut ann = Player::start(&command, "ann", &session, unknown);
    let mut bob = Player::start(&command, "bob", &session, unknown);
    for player in [&mut ann, &mut bob] {
        player.next("error ");
        player.next("disconnected");
    }
    ann.send("serve");
    let address = ann.next("address ");
    bob.send(&format!("connect {address}"));
    bob.next("connected to ann");
    costs_nothing(&bob.next("echoed "));
    // Both others leave: the remaining one has no host to connect to, and may serve.
    ann.ends_well();
    bob.next("host");
    bob.ends_well();
}

#[test]
fn a_mirror_world_survives_two_hosts_under_mono() {
    let program = compile_csharp(&mirror("tests/World"), "MirrorWorld.exe");
    world_survives_two_hosts("mono", &[Path::new("mono"), &program]);
}

#[test]
fn a_mirror_world_survives_two_hosts_under_coreclr() {
    let program = compile_csharp_for_coreclr(&mirror("tests/World"), "MirrorWorldCore.exe");
    world_survives_two_hosts("coreclr", &[&dotnet(), &program]);
}

fn world_survives_two_hosts(runtime: &str, command: &[&Path]) {
    let session = format!("mirror-world-{runtime}-{}", std::process::id());
    let (mut host, mut clients) = world(command, &session, &["bob", "carl", "dora"]);
    let earned = BTreeMap::from([("bob", "7"), ("carl", "8"), ("dora", "9")]);
    for client in &mut clients {
        let coins = earned[client.id];
        client.send(&format!("earn {coins}"));
        client.next(&format!("coins {coins}"));
    }
    host.send("fill chest 20");
    host.next_saved();
    // An object that becomes too large is reported, and the rest is kept.
    host.send("label chest1 9000");
    let failed = host.next("failed Chest(Clone) (chest1) has ");
    assert!(
        failed.starts_with("9050 bytes; the room keeps up to 8192 "),
        "{failed}"
    );
    host.send("label chest1 5");
    // One that the host has spawned, and one of the scene.
    host.send("destroy chest3");
    host.send("destroy a17a");
    let saved = host.next_saved();
    assert_eq!(saved["object/chest1"], "1000@2000/5");

    for _ in 0..2 {
        host.send("work");
        for _ in 0..3 {
            host.next("confirmed ");
        }
        let confirmed: u32 = host.kill().last("confirmed ").parse().expect("coins");
        host = take_host(&mut clients);
        assert_eq!(host.next("coins "), earned[host.id]);
        host.next("known world");
        for client in &mut clients {
            assert_eq!(client.next("connected to "), host.id);
            assert_eq!(client.next("coins "), earned[client.id]);
        }
        let world = host.next_saved();
        let first = coins(&world["object/chest0"]);
        assert!(
            first >= confirmed,
            "{first} coins after {confirmed} were confirmed"
        );
        let mut expected: BTreeMap<_, _> = (0..20)
            .filter(|chest| *chest != 3)
            .map(|chest| {
                let (coins, place) = (1000 * chest + first, 2000 * chest);
                let label = if chest == 1 { 5 } else { 0 };
                (
                    format!("object/chest{chest}"),
                    format!("{coins}@{place}/{label}"),
                )
            })
            .collect();
        for player in clients.iter().chain([&host]) {
            expected.insert(
                format!("player/{}", player.id),
                format!("{}@0/0", earned[player.id]),
            );
        }
        assert_eq!(world, expected);
    }

    // A host that hands over keeps its world, too. The state of a player who leaves goes.
    let world = host.next_saved();
    host.send("stop");
    let mut next = take_host(&mut clients);
    assert_eq!(host.next("connected to "), next.id);
    assert_eq!(next.next_saved(), world);
    let left = format!("player/{}=", host.id);
    host.ends_well();
    next.room_until(|room| !room.contains(&left));
    next.ends_well();
}

#[test]
fn a_paused_mirror_host_overwrites_nothing_under_mono() {
    let program = compile_csharp(&mirror("tests/World"), "MirrorPaused.exe");
    paused_host_overwrites_nothing("mono", &[Path::new("mono"), &program]);
}

#[test]
fn a_paused_mirror_host_overwrites_nothing_under_coreclr() {
    let program = compile_csharp_for_coreclr(&mirror("tests/World"), "MirrorPausedCore.exe");
    paused_host_overwrites_nothing("coreclr", &[&dotnet(), &program]);
}

fn paused_host_overwrites_nothing(runtime: &str, command: &[&Path]) {
    let session = format!("mirror-paused-{runtime}-{}", std::process::id());
    let (mut former, mut clients) = world(command, &session, &["bob", "carl"]);
    former.send("fill chest 10");
    former.next_saved();
    former.send("work");
    former.next("confirmed ");
    former.signal(libc::SIGSTOP);
    let mut host = take_host(&mut clients);
    let mut client = clients.pop().expect("the other");
    assert_eq!(client.next("connected to "), host.id);
    host.send("destroy chest5");
    host.send("spawn extra 5");
    host.send("set chest6 1");
    let saved = host.next_saved();

    // It wakes up as the host that it was, with changes of its own.
    for command in ["rest", "spawn stale 1", "set chest7 1", "destroy chest8"] {
        former.send(command);
    }
    former.signal(libc::SIGCONT);
    assert_eq!(former.next("connected to "), host.id);
    former.next_of_all("refused -25");
    let objects = |world: &BTreeMap<String, String>| {
        let objects = world.iter().filter(|(key, _)| key.starts_with("object/"));
        objects
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(objects(&host.next_saved()), objects(&saved));
    let room = host.room_until(|_| true);
    client.room_until(|other| other == room);
    for player in [former, client, host] {
        player.ends_well();
    }
}

/// The host counts for more than a player who was cut off from it, and played on alone.
#[test]
fn of_two_mirror_players_cut_apart_the_hosts_world_stays() {
    let program = compile_csharp(&mirror("tests/World"), "MirrorApart.exe");
    let command = [Path::new("mono"), &program];
    let session = format!("mirror-apart-{}", std::process::id());
    let (mut ann, mut clients) = world(&command, &session, &["bob"]);
    let bob = &mut clients[0];
    ann.send("fill chest 3");
    ann.next_saved();
    let objects = |room: &str| {
        let objects = room.split(' ').filter(|text| text.starts_with("object/"));
        objects.collect::<Vec<_>>().join(" ")
    };
    let saved = objects(&ann.room_until(|_| true));
    ann.signal(libc::SIGSTOP);
    bob.next("known world");
    bob.send("destroy chest0");
    bob.send("spawn extra 5");
    bob.next_saved();
    assert_ne!(objects(&bob.room_until(|_| true)), saved);
    bob.send("work");
    ann.signal(libc::SIGCONT);
    assert_eq!(bob.next("connected to "), "ann");
    bob.room_until(|room| objects(room) == saved);
    ann.room_until(|room| objects(room) == saved);
    ann.next_saved();
    assert_eq!(objects(&ann.room_until(|_| true)), saved);
}

/// A merge of two parts of a room does this to a host whose part gives way.
#[test]
fn a_mirror_host_follows_what_another_has_written() {
    let program = compile_csharp(&mirror("tests/World"), "MirrorFollows.exe");
    let command = [Path::new("mono"), &program];
    let session = format!("mirror-follows-{}", std::process::id());
    let (mut ann, mut clients) = world(&command, &session, &["bob"]);
    ann.send("fill chest 3");
    let mut expected = ann.next_saved();
    clients[0].send("usurp");
    ann.next("known world");
    expected.remove("object/chest0");
    for key in ["object/chest1", "object/copy"] {
        expected.insert(key.into(), "2000@4000/0".into());
    }
    assert_eq!(ann.next_saved(), expected);
}

#[test]
fn a_mirror_host_that_starts_anew_has_its_world() {
    let program = compile_csharp(&mirror("tests/World"), "MirrorAnew.exe");
    let command = [Path::new("mono"), &program];
    let session = format!("mirror-anew-{}", std::process::id());
    let (mut ann, _) = world(&command, &session, &[]);
    ann.send("earn 7");
    ann.send("fill chest 3");
    let saved = ann.next_saved();
    ann.send("restart");
    ann.next("known world");
    assert_eq!(ann.next_saved(), saved);
}

#[test]
fn a_full_mirror_world_reports_what_it_cannot_keep() {
    let program = compile_csharp(&mirror("tests/World"), "MirrorFull.exe");
    let command = [Path::new("mono"), &program];
    let session = format!("mirror-full-{}", std::process::id());
    let (mut ann, mut clients) = world(&command, &session, &["bob"]);
    // Beside the claim, the scene's object and two players: one too many.
    ann.send("fill chest 1021");
    let failed = ann.next("failed Chest(Clone) (chest1020) cannot be kept now: ");
    println!("{failed}");
    let bob = &mut clients[0];
    bob.room_until(|room| room.split(' ').count() == 1023);
    // The next one has its place.
    ann.send("destroy chest0");
    ann.next_saved();
    bob.room_until(|room| room.contains("object/chest1020=1020000"));
}

/// A host with a new world, and its clients.
fn world(command: &[&Path], session: &str, clients: &[&'static str]) -> (Player, Vec<Player>) {
    let mut host = Player::start(command, "ann", session, None);
    let address = host.next("address ");
    host.next("new world");
    let mut start = |id: &&'static str| {
        let mut client = Player::start(command, id, session, Some(&address));
        assert_eq!(client.next("connected to "), "ann");
        client
    };
    let clients = clients.iter().map(&mut start).collect();
    (host, clients)
}

/// Of an object as it is printed: COINS@PLACE/LABEL.
fn coins(object: &str) -> u32 {
    let (coins, _) = object.split_once('@').expect("a place");
    coins.parse().expect("coins")
}

/// "N messages ... with B bytes". A message that allocates takes at least 24 bytes; an event among them may allocate.
#[track_caller]
pub(crate) fn costs_nothing(line: &str) {
    println!("{line}");
    let words: Vec<_> = line.split(' ').collect();
    let messages: u64 = words[0].parse().expect("messages");
    let bytes: u64 = words[words.len() - 2].parse().expect("bytes");
    assert!(bytes < messages, "{line}");
}

const BEPINEX: [&str; 3] = [
    "examples/bepinex/CoopPlugin.cs",
    "examples/bepinex/tests/Stub.cs",
    "examples/bepinex/tests/Load.cs",
];

/// The runtime of a mod for an IL2CPP game.
#[test]
fn the_bepinex_plugin_loads_and_unloads_under_coreclr() {
    let program = compile_csharp_for_coreclr(&BEPINEX, "CoopPlugin.exe");
    let library = library();
    let folder = library.parent().expect("a folder");
    let printed = run(Command::new(dotnet())
        .arg(program)
        .env("LD_LIBRARY_PATH", folder));
    assert_eq!(printed.lines().last(), Some("ok"), "{printed}");
}
