//! The overlay for Unity, on real rooms: what its lines say is so.

use std::path::Path;
use std::process::Command;

use crate::players::{Player, Process};
use crate::tools::{compile_csharp, library, run};

const SOURCES: [&str; 5] = [
    "examples/unity/RoomOverlay.cs",
    "examples/unity/tests/Unity.cs",
    "examples/unity/tests/Gui.cs",
    "examples/unity/tests/Commands.cs",
    "examples/unity/tests/Overlay.cs",
];

#[test]
fn an_overlay_shows_links_loss_the_next_leader_and_the_rooms_around() {
    let program = compile_csharp(&SOURCES, "Overlay.exe");
    let command = [Path::new("mono"), &program];
    let session = format!("overlay-{}", std::process::id());
    let player = |id, contact: Option<&str>| Player::start(&command, id, &session, contact);

    let mut ann = player("ann", None);
    let address = ann.next("address ");
    ann.next("panel 1 member, leader: ann");
    ann.next("panel ann: this member");
    let mut bob = player("bob", Some(&address));
    let mut carl = player("carl", Some(&address));
    for player in [&mut ann, &mut bob, &mut carl] {
        player.next("panel 3 members, leader: ann");
    }
    let link = bob.next("panel ann: ");
    assert!(link.contains(", loss 0.0 %, direct, in "), "{link}");
    let link = bob.next_where("panel ann: ", |link| {
        link.contains("in ") && !link.contains("- B/s")
    });
    println!("{link}");
    let (trip, _) = link.split_once(" ms, ").expect("a round trip");
    let trip: f64 = trip.parse().expect("milliseconds");
    assert!(trip > 0.0 && trip < 1000.0, "{link}");

    // The rate of what a member sends is that of what the other receives: 600 bytes in every frame.
    bob.send("chatter");
    carl.next_where("panel bob: ", |link| {
        rate(link, "in ") > 2.0 * rate(link, "out ")
    });
    bob.next_where("panel carl: ", |link| {
        rate(link, "out ") > 2.0 * rate(link, "in ")
    });

    // One packet in five is lost, on one line and in one direction.
    bob.send("loss 200");
    let lossy = bob.next_where("panel carl: ", |link| loss(link) > 5.0);
    println!("{lossy}");
    let other = carl.next("panel ann: ");
    assert!(loss(&other) < 5.0, "{other}");
    bob.send("loss 0");

    // The leader's process dies: the lines name the next one.
    ann.kill();
    let next = ["bob", "carl"].map(|id| format!("3 members, leader: {id}"));
    let seen = bob.next_where("panel ", |line| next.contains(&line.to_owned()));
    bob.next("panel ann: lost, dialled again");
    carl.next(&format!("panel {seen}"));

    // A key hides it, and shows it again.
    carl.send("key");
    carl.next("panel hidden");
    carl.send("key");
    carl.next(&format!("panel {seen}"));

    // The rooms around, also outside of a room.
    for player in [&mut bob, &mut carl] {
        player.send("card Teatime");
    }
    carl.send("browse");
    let listed = carl.next("panel Teatime: ");
    // A lost member is one until it has had its time to come back.
    assert!(listed.starts_with("3 of 4 players, at "), "{listed}");
    carl.send("leave");
    carl.next("panel the room is closed");
    carl.next("panel Teatime: 2 of 4 players, at ");
    bob.ends_well();
    carl.next("panel no room in the local network");
    carl.ends_well();
}

/// Needs root and nftables. The packets between the two that ann has linked are dropped.
#[test]
fn an_overlay_names_the_member_that_carries_a_link() {
    let program = compile_csharp(&SOURCES, "Overlay.exe");
    let command = [Path::new("mono"), &program];
    let session = format!("overlay-carried-{}", std::process::id());
    let player = |id, contact: Option<&str>| Player::start(&command, id, &session, contact);
    let mut ann = player("ann", None);
    let address = ann.next("address ");
    ann.next("panel 1 member, leader: ann");
    let mut bob = player("bob", Some(&address));
    let [anns, bobs] = [&address, &bob.next("address ")].map(|address| {
        let (_, port) = address.rsplit_once(':').expect("a port");
        port.to_owned()
    });
    for rule in [
        "add table inet t".to_owned(),
        "add chain inet t i { type filter hook input priority 0 ; }".to_owned(),
        format!("add rule inet t i udp dport {bobs} udp sport != {anns} drop"),
        format!("add rule inet t i udp sport {bobs} udp dport != {anns} drop"),
    ] {
        run(Command::new("nft").arg(rule));
    }
    let mut carl = player("carl", Some(&address));
    let carried = ", carried by ann (leader), in ";
    bob.next_where("panel carl: ", |link| link.contains(carried));
    carl.next_where("panel bob: ", |link| link.contains(carried));
    for player in [&mut bob, &mut carl] {
        let link = player.next("panel ann: ");
        assert!(link.contains(", direct, in "), "{link}");
    }
    for player in [carl, bob, ann] {
        player.ends_well();
    }
}

#[test]
fn an_overlay_shows_a_relay() {
    let program = compile_csharp(&SOURCES, "Overlay.exe");
    let command = [Path::new("mono"), &program];
    let relay = std::env::var_os("MMN_RELAY")
        .map_or_else(|| library().with_file_name("mmn-relay"), Into::into);
    let _relay = Process::start(Command::new(relay).args(["--listen", "127.0.0.1:7843"]));
    let contact = Some("relay=127.0.0.1:7843");
    let mut ann = Player::start(&command, "ann", "new", contact);
    let code = ann.next("code ");
    let mut bob = Player::start(&command, "bob", &code, contact);
    ann.next_where("panel bob: ", |link| link.contains(", over a relay, in "));
    bob.next_where("panel ann: ", |link| link.contains(", over a relay, in "));
    ann.ends_well();
    bob.ends_well();
}

/// Bytes a second in one direction of a link's line; 0 without a rate.
fn rate(link: &str, way: &str) -> f64 {
    let part = link.split(", ").find_map(|part| part.strip_prefix(way));
    let (number, unit) = part
        .and_then(|rate| rate.split_once(' '))
        .unwrap_or(("-", ""));
    let factor = if unit == "KB/s" { 1000.0 } else { 1.0 };
    number.parse().map_or(0.0, |number: f64| factor * number)
}

/// The percentage of a link's line; 0 without one.
fn loss(link: &str) -> f64 {
    let part = link.split(", ").find_map(|part| part.strip_prefix("loss "));
    part.and_then(|part| part.strip_suffix(" %"))
        .map_or(0.0, |percent| percent.parse().expect("a number"))
}
