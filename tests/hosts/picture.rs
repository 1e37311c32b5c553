//! The picture of a run, as a browser draws it: its lanes match the trace, and they are painted.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use meta_mystia_network::config::{Config, DiscoveryMode};
use meta_mystia_network::core::id;
use meta_mystia_network::room::Room;
use meta_mystia_network::target::parse_target;
use room_core::id::PeerId;
use room_core::trace::{Role, What};
use room_simulator::chaos;
use room_simulator::gossip;
use room_simulator::page::page;
use room_simulator::plan::Plan;
use room_simulator::record::{Section, from_lines, to_lines};
use room_simulator::seeded;
use room_simulator::trace::Trace;
use room_simulator::world::{Settings, World};
use serde_json::{Map, Value};

use crate::tools::output;

const BROWSERS: [&str; 3] = ["chromium-headless-shell", "chromium", "google-chrome"];
/// Timeout of a page on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);
const WINDOW: (u32, u32) = (1200, 900);

/// A role, and its begin and end in microseconds since the run began.
type Span = (String, u64, u64);

fn browser() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = || std::env::split_paths(&path);
    let found = BROWSERS
        .iter()
        .flat_map(|name| places().map(move |place| place.join(name)))
        .find(|program| program.is_file());
    found.expect(
        "no browser; install one: sudo apt-get install -y --no-install-recommends chromium-headless-shell",
    )
}

/// Runs the browser on a page and returns its output.
fn browse(page: &Path, more: &[&str]) -> String {
    let profile = page.with_extension("profile");
    let mut child = Command::new(browser())
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            "--no-first-run",
        ])
        .arg(format!("--window-size={},{}", WINDOW.0, WINDOW.1))
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the browser starts");
    let mut printed = child.stdout.take().expect("it is piped");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        printed.read_to_string(&mut text).map(|_| text)
    });
    let limit = Instant::now() + TIMEOUT;
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            break status;
        }
        if Instant::now() > limit {
            child.kill().expect("it runs");
            panic!("the browser takes more than {TIMEOUT:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "the browser ends with {status}");
    let text = reader.join().expect("no panic").expect("text");
    // Not needed again.
    let _ = std::fs::remove_dir_all(profile);
    text
}

fn write_page(name: &str, text: &str) -> PathBuf {
    let path = output(name);
    std::fs::write(&path, text).expect("target can be written");
    path
}

/// The text of the element of that id in a page's document.
fn element(document: &str, id: &str) -> String {
    let mark = format!("id=\"{id}\">");
    let begin = document.find(&mark).expect("the element") + mark.len();
    let end = document[begin..].find("</script>").expect("its end");
    document[begin..begin + end].to_owned()
}

/// The page's own report of its drawing, without an error.
fn digest(page: &Path) -> Value {
    let document = browse(page, &["--dump-dom"]);
    let digest: Value = serde_json::from_str(&element(&document, "digest")).expect("a digest");
    assert_eq!(digest["errors"], Value::Array(Vec::new()));
    digest
}

fn drawn(digest: &Value) -> BTreeMap<String, Vec<Span>> {
    let lanes = digest["lanes"].as_array().expect("lanes");
    let span = |span: &Value| {
        let role = span[0].as_str().expect("a role").to_owned();
        let number = |index: usize| span[index].as_u64().expect("whole microseconds");
        (role, number(1), number(2))
    };
    let lane = |lane: &Value| {
        let peer = lane["peer"].as_str().expect("a name").to_owned();
        let spans = lane["roles"].as_array().expect("roles");
        (peer, spans.iter().map(span).collect())
    };
    lanes.iter().map(lane).collect()
}

/// The report that the trace implies.
fn expected(sections: &[Section]) -> BTreeMap<String, Vec<Span>> {
    let origin = sections.iter().map(|section| section.header.origin_us);
    let origin = origin.min().expect("a trace");
    let begins = |section: &Section| section.header.origin_us - origin;
    let ends = sections.iter().flat_map(|section| {
        let begins = begins(section);
        section.entries.iter().map(move |entry| begins + entry.at)
    });
    let end = ends.max().expect("a trace");
    // The role of each peer from that time on.
    let mut turns: BTreeMap<String, Vec<(u64, &str)>> = BTreeMap::new();
    for section in sections {
        let Some(peer) = &section.header.peer else {
            continue;
        };
        let turns = turns.entry(peer.to_string()).or_insert(vec![(0, "down")]);
        let (mut role, mut paused) = ("follower", false);
        let mut over = false;
        for entry in &section.entries {
            let at = begins(section) + entry.at;
            match &entry.what {
                What::Role { role: now } => {
                    role = match now {
                        Role::Follower => "follower",
                        Role::PreCandidate => "pre_candidate",
                        Role::Candidate => "candidate",
                        Role::Leader => "leader",
                        Role::Observer => "observer",
                    };
                }
                What::Paused => paused = true,
                What::Resumed => paused = false,
                What::Stalled { late_us } => turns.push((at - late_us, "paused")),
                What::Stopped | What::Crashed => {
                    turns.push((at, "down"));
                    over = true;
                    continue;
                }
                What::End => over = true,
                _ => continue,
            }
            turns.push((at, if paused { "paused" } else { role }));
        }
        if let Some(last) = section.entries.last().filter(|_| !over) {
            turns.push((begins(section) + last.at, "down"));
        }
    }
    let spans = |turns: Vec<(u64, &str)>| {
        let mut spans: Vec<Span> = Vec::new();
        for (index, (from, role)) in turns.iter().enumerate() {
            let to = turns.get(index + 1).map_or(end, |(at, _)| *at);
            match spans.last_mut() {
                _ if to == *from => {}
                Some(last) if last.0 == *role => last.2 = to,
                _ => spans.push(((*role).to_owned(), *from, to)),
            }
        }
        spans
    };
    let lanes = turns.into_iter();
    lanes.map(|(peer, turns)| (peer, spans(turns))).collect()
}

/// Three peers: one leads and is paused later, one is an observer, one crashes.
fn staged() -> Vec<Section> {
    let mut world = World::new(5, 3, Settings::default(), Trace::off());
    world.record(5);
    for (slot, name) in ["anna", "<b>", "</script>"].into_iter().enumerate() {
        world.slots[slot].rename(name);
    }
    world.slots[2].eligible = false;
    for slot in 0..3 {
        world.start(slot);
    }
    world.run_for(Duration::from_secs(5));
    for slot in 1..3 {
        world.connect(slot, 0);
    }
    world.run_for(Duration::from_secs(5));
    world.pause(0);
    world.run_for(Duration::from_secs(10));
    world.resume(0);
    world.run_for(Duration::from_secs(5));
    world.crash(1);
    world.run_for(Duration::from_secs(5));
    let recorder = world.recorder.take().expect("it was put there");
    recorder.finish(world.now)
}

/// The `results` of a script that runs in a trace's page after the page's own, without an error.
fn results(name: &str, sections: &[Section], script: &str) -> Map<String, Value> {
    let publish = r#"
        const said = document.createElement("script");
        said.type = "application/json";
        said.id = "results";
        said.textContent = JSON.stringify({ ...results, errors }).replaceAll("<", "\\u003c");
        document.body.append(said);
    "#;
    let script = format!("<script>const results = {{}};{script}{publish}</script></body>");
    let path = write_page(name, &page(sections).replace("</body>", &script));
    let document = browse(&path, &["--dump-dom"]);
    let mark = "<script type=\"application/json\" id=\"results\">";
    let begin = document.rfind(mark).expect("the script did not end") + mark.len();
    let end = document[begin..].find("</script>").expect("its end");
    let mut results: Map<String, Value> =
        serde_json::from_str(&document[begin..begin + end]).expect("results");
    assert_eq!(results.remove("errors"), Some(Value::Array(Vec::new())));
    results
}

#[test]
fn the_lanes_of_a_seed_are_those_of_its_trace() {
    let plan = Plan::draw_for(7, Some(5));
    let (_, sections) = chaos::recorded(&plan);
    let digest = digest(&write_page("seed.html", &page(&sections)));
    let lanes = drawn(&digest);
    // A trial after the chaos may add a peer.
    assert!(lanes.len() >= 5, "{} lanes", lanes.len());
    assert_eq!(lanes, expected(&sections));
    let led = lanes.values().flatten().any(|(role, ..)| role == "leader");
    assert!(led, "nobody leads in this seed: choose another");
    let messages = &digest["messages"];
    assert!(messages["sent"].as_u64() > Some(100), "{messages}");
    assert_eq!(messages["unmatched"], 0, "{messages}");
}

#[test]
fn a_room_that_elects_by_gossip_is_drawn_with_its_claims_and_without_terms() {
    let sent = |sections: &[Section], kind: &str| {
        let entries = sections.iter().flat_map(|section| &section.entries);
        let of_kind =
            |what: &What| matches!(what, What::Sent { said, .. } if said.kind.as_ref() == kind);
        entries.filter(|entry| of_kind(&entry.what)).count() as u64
    };
    // A seed may draw a room that keeps one leader.
    let mut rooms = (1..50).map(|seed| chaos::recorded(&gossip::draw_for(seed, Some(5))).1);
    let sections = rooms
        .find(|sections| sent(sections, "proposal") > 0)
        .expect("a room with an election");
    let path = write_page("gossip.html", &page(&sections));
    for kind in ["vote_request", "proposal", "declaration"] {
        let part = PathBuf::from(format!("{}#show={kind}", path.display()));
        let digest = digest(&part);
        assert_eq!(digest["terms"], Value::Bool(false));
        assert_eq!(drawn(&digest), expected(&sections));
        assert_eq!(digest["messages"]["unmatched"], 0);
        assert_eq!(
            digest["messages"]["drawn"],
            sent(&sections, kind),
            "of {kind}"
        );
    }
    assert_eq!(sent(&sections, "vote_request"), 0);
    assert!(sent(&sections, "declaration") > 0);
}

#[test]
fn a_hundred_lanes_are_drawn_and_read_back_from_the_file() {
    let mut sections = Vec::new();
    for copy in 0..34 {
        for mut section in staged() {
            if let Some(peer) = &section.header.peer {
                let name = format!("{peer}{copy}");
                section.header.peer = Some(PeerId::new(&name).expect("a valid id"));
            }
            sections.push(section);
        }
    }
    let read = from_lines(&to_lines(&sections)).expect("a trace");
    assert_eq!(read, sections);
    let lanes = drawn(&digest(&write_page("hundred.html", &page(&read))));
    assert_eq!(lanes.len(), 102);
    assert_eq!(lanes, expected(&sections));
}

#[test]
fn the_colours_of_the_roles_are_painted_where_the_trace_has_them() {
    let sections = staged();
    let path = write_page("staged.html", &page(&sections));
    let digest = digest(&path);
    assert_eq!(drawn(&digest), expected(&sections));

    let shot = path.with_extension("png");
    browse(&path, &[&format!("--screenshot={}", shot.display())]);
    let file = std::fs::File::open(&shot).expect("a screenshot");
    let mut decoder = png::Decoder::new(std::io::BufReader::new(file));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    let mut reader = decoder.read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let image = reader.next_frame(&mut pixels).expect("a frame");
    assert_eq!((image.width, image.height), WINDOW);
    let samples = image.color_type.samples();

    let view = &digest["view"];
    let number = |value: &Value| value.as_f64().expect("a number");
    let (left, right) = (number(&view["left"]), number(&view["right"]));
    let (from, to) = (number(&view["from"]), number(&view["to"]));
    let mut seen = BTreeMap::new();
    for lane in digest["lanes"].as_array().expect("lanes") {
        // The lowest row of the bars, which has no text.
        let y = number(&lane["y"]) as usize;
        for (role, begin, end) in &expected(&sections)[lane["peer"].as_str().expect("a name")] {
            let colour: [u8; 3] = match role.as_str() {
                "follower" => [0x8e, 0xca, 0xe6],
                "leader" => [0x00, 0x80, 0x5c],
                "observer" => [0xcc, 0x79, 0xa7],
                // Hatched, dashed, or brief.
                _ => continue,
            };
            let width = (end - begin) as f64 * (right - left) / (to - from);
            if width < 20.0 {
                continue;
            }
            let hits = [0.2, 0.4, 0.6, 0.8].map(|share| {
                let time = *begin as f64 + (end - begin) as f64 * share;
                let x = left + (time - from) / (to - from) * (right - left);
                let at = (y * WINDOW.0 as usize + x as usize) * samples;
                pixels[at..at + 3] == colour
            });
            // An arrow may cross one of them.
            let hits = hits.into_iter().filter(|hit| *hit).count();
            assert!(hits >= 3, "{role} of {lane}: {hits} of 4 pixels");
            *seen.entry(role.clone()).or_insert(0) += 1;
        }
    }
    let seen: Vec<&str> = seen.keys().map(String::as_str).collect();
    assert_eq!(seen, ["follower", "leader", "observer"]);
}

#[test]
fn wheel_keys_pointer_and_kinds_change_what_is_seen() {
    let mut results = results("touched.html", &staged(), include_str!("picture.js"));
    let tip = results.remove("tip").expect("a tip");
    let tip = tip.as_str().expect("text");
    assert!(tip.starts_with("anna at 7."), "{tip}");
    assert!(tip.contains("shows "), "{tip}");
    assert_eq!(results.remove("title"), Some("Seed 5, 3 peers".into()));
    for (name, result) in results {
        assert_eq!(result, Value::Bool(true), "{name}");
    }
}

#[test]
fn a_seeded_room_is_drawn_with_versions_ballots_and_the_states_of_members() {
    let (_, sections) = chaos::recorded(&seeded::draw_for(1, Some(5)));
    let script = r#"
        const of = (kind) => messageText(model.messages.find((message) => message.kind === kind));
        for (const kind of ["pre_proposal", "pre_vote", "proposal", "vote"]) results[kind] = of(kind);
        const leader = model.changes[0];
        results.version = termText(leader.record);
        results.states = stateText(leader.lane, leader.until === null ? model.end : leader.until - 1);
        const seen = leader.lane.entries.find((entry) => entry.what === "member_state");
        results.state = entryText(seen);
    "#;
    let results = results("seeded.html", &sections, script);
    let text = |name: &str| results[name].as_str().expect("text");
    for kind in ["pre_proposal", "pre_vote", "proposal", "vote"] {
        assert!(text(kind).contains(", ballot "), "{}", text(kind));
    }
    assert!(text("version").starts_with('t'), "{results:?}");
    assert!(text("states").contains("\nmembers: "), "{results:?}");
    assert!(text("states").contains(" active"), "{results:?}");
    assert!(text("state").contains(" in t"), "{results:?}");
}

#[test]
fn traces_of_real_rooms_make_one_picture() {
    let open = |name: &str| {
        let path = output(&format!("picture-{name}.jsonl"));
        let config = Config {
            trace_path: Some(path.clone()),
            discovery: DiscoveryMode::Off,
            heartbeat_interval: Duration::from_millis(100),
            election_timeout_min: Duration::from_millis(300),
            election_timeout_max: Duration::from_millis(600),
            ..Config::default()
        };
        let peer = PeerId::new(name).expect("a valid id");
        let session = id::SessionId::new("picture").expect("a valid session");
        (Room::open(peer, session, config).expect("a room"), path)
    };
    let (first, one) = open("one");
    let (second, other) = open("two");
    let address = format!("127.0.0.1:{}", first.local_address().port());
    let target = parse_target(&address).expect("a target");
    second.connect(&address, target).expect("accepted");
    let limit = Instant::now() + Duration::from_secs(30);
    let settled = || {
        let leader = first.snapshot().leader.clone();
        leader.is_some() && leader == second.snapshot().leader && second.snapshot().connected == 1
    };
    while !settled() {
        assert!(Instant::now() < limit, "no leader for both");
        std::thread::sleep(Duration::from_millis(5));
    }
    second.close();
    first.close();

    let mut sections = Vec::new();
    for path in [one, other] {
        let text = std::fs::read_to_string(path).expect("a trace");
        sections.extend(from_lines(&text).expect("a trace"));
    }
    let digest = digest(&write_page("rooms.html", &page(&sections)));
    assert_eq!(drawn(&digest), expected(&sections));
    assert_eq!(digest["messages"]["unmatched"], 0);
    assert!(!digest["leaders"].as_array().expect("leaders").is_empty());
}
