//! The targets over the checked-in inputs, and over mutations of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use room_transport::identity::Identity;
use room_transport::rendezvous::{Frame, FromRelay, Locator, MAX_PRESENT, ToRelay};

use super::wild::{Known, Wild, Wire, name_of};
use super::*;
use crate::core::election::Election;
use crate::core::election::gossip::Gossip;
use crate::core::election::raft::Raft;
use crate::core::election::raft::saved::Saved;
use crate::core::election::raft::wire::{Beat, ElectionMessage, Pulse, Stamped};
use crate::core::election::record::Stamp;
use crate::core::election::seeded::paxos::{Ballot, Stage, Vote};
use crate::core::election::seeded::wire::{Based, Observation, Rejection, SeededMessage};
use crate::core::election::seeded::{MemberState, Seeded, SeededRules};
use crate::core::quorum::QuorumPolicy;
use crate::core::wire::{
    Authority, Heartbeat, HelloAck, HostMode, MergePolicy, Message, NoPlace, Opaque,
    PROBE_DATAGRAM, Probe, RoomPolicy, Strategy, Topology, Undecided, Verdict,
};
use crate::net::cards::packet::{Answer, tests as packet_tests};
use crate::net::compression::pack;
use crate::net::frame::{
    ControlFrame, DatagramHeader, DatagramRole, LaneHeader, MessageRole, OWN_FLAG, datagram,
    put_message, put_value,
};

/// Mutations of each input. `make fuzz` tries far more.
const MUTATIONS: usize = 200;
/// Mutations of each input that opens rooms.
const MUTATIONS_OF_CALLS: usize = 3;
/// Longest mutated input.
const MAX_INPUT_BYTES: usize = 1 << 17;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target)
}

/// The inputs of a target, by name.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = corpus(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut inputs: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).expect("readable"))
        })
        .collect();
    inputs.sort();
    inputs
}

/// Names the input when a target panics, and writes a mutated one to a file.
struct Trying<'a> {
    target: &'a str,
    name: &'a str,
    input: &'a [u8],
    mutation: usize,
}

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self {
                target,
                name,
                mutation,
                ..
            } = self;
            let path = std::env::temp_dir().join(format!("mmn-{target}-{name}-{mutation}"));
            // The panic matters more than a full disk.
            let _ = fs::write(&path, self.input);
            eprintln!(
                "{target}: {name}, mutation {mutation}; the input is in {}",
                path.display()
            );
        }
    }
}

fn replay(target: &str, mutations: usize) {
    let (_, run) = TARGETS
        .iter()
        .find(|(name, _)| *name == target)
        .expect("a target");
    let inputs = inputs(target);
    assert!(!inputs.is_empty(), "{target} has no inputs");
    let mut chance = Chance::seeded(10);
    for (name, input) in &inputs {
        for mutation in 0..=mutations {
            let mut input = input.clone();
            if mutation > 0 {
                let other = &inputs[chance.below(inputs.len())].1;
                mutate(&mut input, other, &mut chance);
            }
            let _trying = Trying {
                target,
                name,
                input: &input,
                mutation,
            };
            run(&input);
        }
    }
}

/// Mutates as a fuzzer does, without its feedback.
fn mutate(input: &mut Vec<u8>, other: &[u8], chance: &mut Chance<'_>) {
    for _ in 0..1 + chance.below(4) {
        let at = chance.below(input.len() + 1);
        match chance.below(7) {
            0 => input.truncate(at),
            1 => input.insert(at, chance.byte()),
            2 if at < input.len() => {
                input.remove(at);
            }
            3 if at < input.len() => input[at] ^= 1 << chance.below(8),
            4 if at < input.len() => input[at] = *chance.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            5 => {
                let from = chance.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => {
                let bytes = chance.u64().to_le_bytes();
                input.splice(at..at, bytes);
            }
        }
        input.truncate(MAX_INPUT_BYTES);
    }
}

#[test]
fn every_target_takes_its_inputs_and_mutations_of_them() {
    for (target, _) in TARGETS.iter().filter(|(name, _)| *name != "abi") {
        replay(target, MUTATIONS);
    }
}

/// The calls use the room of the process, so they have a process of their own.
#[test]
fn calls_in_any_order_get_their_answers() {
    let program = std::env::current_exe().expect("this program");
    let test = "fuzzing::tests::calls";
    let output = Command::new(program)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .output()
        .expect("it runs again");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{}: {printed}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
#[ignore = "the test above runs it in a process of its own"]
fn calls() {
    // A panic of a library thread is as bad as one here.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        hook(panic);
        std::process::abort();
    }));
    replay("abi", MUTATIONS_OF_CALLS);
}

#[test]
fn each_target_has_a_program_and_inputs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let names = |folder: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(root.join(folder)).expect("a folder");
        entries
            .map(|entry| {
                let path = entry.expect("an entry").path();
                path.file_stem()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    };
    let targets: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("fuzz_targets"), targets);
    assert_eq!(names("corpus"), targets);
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("a manifest");
    for target in targets {
        let text = fs::read_to_string(root.join(format!("fuzz_targets/{target}.rs")));
        assert!(text.expect("text").contains(&format!("fuzzing::{target}(")));
        assert!(
            manifest.contains(&format!("name = \"{target}\"")),
            "{target}"
        );
    }
}

/// A target that refuses every input at once would find nothing.
#[test]
fn runs_of_a_node_reach_every_outcome() {
    let mut seen = std::collections::BTreeMap::new();
    for (_, input) in inputs("node") {
        for (what, times) in node::watched(&input) {
            *seen.entry(what).or_insert(0) += times;
        }
    }
    let expected = [
        "joined",
        "returned",
        "lost",
        "leads",
        "another leads",
        "member state",
        "Heartbeat",
        "Kicked",
    ];
    for what in expected.iter().chain(wild::names::<Message>()) {
        assert!(seen.contains_key(what), "no {what}: {seen:#?}");
    }
    println!("{seen:#?}");
}

#[test]
fn every_variant_of_every_wire_enum_is_made() {
    fn check<T: Wire>() {
        for mut wild in (0..8).map(speaker) {
            let names = wild::names::<T>();
            let made: Vec<_> = each(&mut wild).map(|value: T| name_of(&value)).collect();
            assert_eq!(made, names);
            let by_chance: BTreeSet<_> = (0..400).map(|_| name_of(&wild.any::<T>())).collect();
            assert_eq!(by_chance, names.iter().copied().collect());
        }
    }
    macro_rules! check {
        ($($type:ident)*) => { $(check::<$type>();)* };
    }
    check! {
        ControlFrame DatagramRole MessageRole Message Verdict NoPlace Undecided Probe Pulse ElectionMessage
        SeededMessage Rejection Stage Vote MemberState Strategy QuorumPolicy MergePolicy Authority HostMode Topology
    }
}

/// Else honest members of that strategy would refuse every wild one.
#[test]
fn the_parts_that_a_tame_member_makes_are_of_its_rooms_strategy() {
    fn check<E: Election>(mut wild: Wild<'_>) {
        wild.tame = true;
        let mut seen = BTreeSet::new();
        for _ in 0..2_000 {
            let side = wild.hello(true).side;
            assert!(side.decode::<E::Hello>().is_ok(), "{side:?}");
            let (kind, is_valid) = match wild.any() {
                Message::Election(part) => ("message", part.decode::<E::Message>().is_ok()),
                Message::Heartbeat(beat) => ("pulse", beat.pulse.decode::<E::Pulse>().is_ok()),
                _ => continue,
            };
            assert!(is_valid, "a {kind}");
            seen.insert(kind);
        }
        for _ in 0..200 {
            let (MessageRole::Leader(token) | MessageRole::Central { token, .. }) = wild.any()
            else {
                continue;
            };
            assert!(token.decode::<E::Token>().is_ok(), "{token:?}");
            seen.insert("token");
        }
        assert_eq!(seen, BTreeSet::from(["message", "pulse", "token"]));
    }
    check::<Raft>(speaker(0));
    check::<Gossip>(speaker(1));
    check::<Seeded>(speaker(2));
}

/// Writes first inputs: of every variant of every type, and of every call. MMN_UPDATE_CORPUS=1 makes it write the
/// committed ones.
#[test]
fn the_first_inputs_can_be_made_again() {
    let update = std::env::var("MMN_UPDATE_CORPUS").is_ok();
    for (target, run) in TARGETS.iter().filter(|(name, _)| *name != "abi") {
        for (n, input) in seeds(target).into_iter().enumerate() {
            run(&input);
            if update {
                write_seed(target, n, &input);
            }
        }
    }
    if update {
        for (n, input) in seeds("abi").into_iter().enumerate() {
            write_seed("abi", n, &input);
        }
    }
}

fn write_seed(target: &str, n: usize, input: &[u8]) {
    let folder = corpus(target);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(format!("seed-{n:03}")), input).expect("written");
}

fn encode<T: serde::Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("encodes")
}

/// A value of each variant.
fn each<T: Wire>(wild: &mut Wild<'_>) -> impl Iterator<Item = T> + use<T> {
    let values: Vec<T> = (0..wild::names::<T>().len()).map(|n| wild.nth(n)).collect();
    values.into_iter()
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let random = |len: usize, count: u64| -> Vec<Vec<u8>> {
        (0..count)
            .map(|seed| {
                let mut chance = Chance::seeded(seed);
                (0..len).map(|_| chance.byte()).collect()
            })
            .collect()
    };
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    match target {
        "control_frame" => {
            for seed in 0..3 {
                let mut wild = speaker(seed);
                seeds.extend(each::<ControlFrame>(&mut wild).map(|frame| encode(&frame)));
                let mut messages: Vec<Message> = each(&mut wild).collect();
                let elections = each::<ElectionMessage>(&mut wild);
                messages.extend(
                    elections.map(|message| Stamped::new(Stamp::default(), message).into()),
                );
                let ballot: Ballot = wild.any();
                let votes = each::<Vote>(&mut wild).map(|vote| SeededMessage::Vote {
                    ballot: ballot.clone(),
                    vote,
                });
                for message in each(&mut wild).chain(votes) {
                    let basis = Observation::default();
                    messages.push(Message::Election(Opaque::of(&Based {
                        basis,
                        writes: 1,
                        message,
                    })));
                }
                for pulse in each::<Pulse>(&mut wild) {
                    messages.push(Message::Heartbeat(Heartbeat {
                        seq: 1,
                        echo: None,
                        host_silent_ms: 0,
                        room_time_us: None,
                        pulse: Opaque::of(&Beat::from(pulse)),
                    }));
                }
                for verdict in each::<Verdict>(&mut wild) {
                    messages.push(Message::JoinAnswer {
                        request: 1,
                        verdict,
                    });
                }
                for message in messages {
                    seeds.push(encode(&ControlFrame::Core(wild.envelope_of(message))));
                }
            }
        }
        "hello" => seeds.extend((0..16).map(|seed| encode(&speaker(seed).hello(true)))),
        "hello_ack" => seeds.extend((0..16).map(|seed| encode(&speaker(seed).any::<HelloAck>()))),
        "datagram" => {
            for seed in 0..4 {
                for probe in each::<Probe>(&mut speaker(seed)) {
                    seeds.push(encode(&(PROBE_DATAGRAM, probe)));
                }
                for role in each::<DatagramRole>(&mut speaker(seed)) {
                    let header = DatagramHeader {
                        role,
                        ..speaker(seed).any()
                    };
                    seeds.push(datagram(&header, b"payload").expect("encodes").to_vec());
                }
            }
        }
        "lane" => {
            for seed in 0..24 {
                let mut wild = speaker(seed);
                let mut buffer = bytes::BytesMut::new();
                buffer.extend_from_slice(&[wild.chance.byte()]);
                put_value(&mut buffer, &wild.any::<LaneHeader>()).expect("encodes");
                for role in each::<MessageRole>(&mut wild) {
                    let mut header = wild.message_header(0);
                    header.role = role;
                    let len = wild.chance.below(100);
                    let payload = match pack(&vec![7; len]) {
                        Some(packed) if header.flags & OWN_FLAG != 0 => packed.to_vec(),
                        _ => wild.chance.bytes(len),
                    };
                    put_message(&mut buffer, &header, &payload).expect("encodes");
                }
                seeds.push(buffer.to_vec());
            }
        }
        "compression" => {
            for len in [0, 1, 13, 64, 1000, 5000] {
                let payload = vec![b'a'; len];
                let packed = pack(&payload).map_or(payload, |packed| packed.to_vec());
                for max in [len, len.saturating_sub(1)] {
                    let max = u16::try_from(max).expect("short").to_le_bytes();
                    seeds.push([&max[..], &packed].concat());
                }
            }
        }
        "state_file" => {
            for seed in 0..8 {
                let saved: Saved = speaker(seed).any();
                seeds.push(encode(&("session", "peer", saved)));
            }
            seeds.push(b"MMNSTATE\x01\0\0\0\0\0\0\0".to_vec());
        }
        "target" => {
            seeds = texts(&[
                "192.168.0.7:4433",
                "[::1]:1",
                "[fe80::1]:65535",
                "localhost:99",
                "主机:99",
                "",
                "h:",
                "h:0",
                "h:+1",
                "::1:80",
                "[]:1",
                "[::1]x:1",
                "[fe80::1%3]:1",
                "256.1.1.1:1",
                "127.1:1",
                " h:1",
                "h\t:1",
                "h\u{202e}:1",
                "::ffff:1.2.3.4:5",
                "[::ffff:1.2.3.4]:5",
            ]);
            seeds.push([&[b'n'; 254][..], b":1"].concat());
        }
        "ids" => {
            for text in [
                "p",
                "琪露诺 ⑨",
                " a",
                "a\u{85}",
                "\u{202e}x",
                "\u{2066}",
                "",
            ] {
                seeds.push(text.as_bytes().to_vec());
                seeds.push(encode(&text));
            }
            for len in [63, 64, 65, 127, 128, 129] {
                seeds.push(encode(&"x".repeat(len)));
                seeds.push("x".repeat(len).into_bytes());
            }
        }
        "options" => {
            for (n, fields) in (0_u16..).zip(random(200, 24)) {
                let sizes = [0, 4, 95, 96, 112, 120, 128, 136, 144, 152, 160, 168, 0xffff];
                let size: u16 = sizes[usize::from(n) % sizes.len()];
                let fields = if n % 2 == 0 { fields } else { vec![1; 200] };
                seeds.push([&size.to_le_bytes()[..], &fields].concat());
            }
            seeds.extend(crate::ffi::options::seeded_inputs());
            seeds.extend(crate::ffi::options::etcd_inputs());
            seeds.extend(crate::ffi::options::state_inputs());
        }
        "card" => {
            let identity = Identity::from_private(&Default::default()).expect("a key");
            let (question, answer) = (packet_tests::question(), packet_tests::answer(&identity));
            seeds.push(question.write().to_vec());
            let over = Answer {
                shown: None,
                ..answer.clone()
            };
            seeds.extend([answer, over].map(|answer| answer.write(&identity).expect("signed")));
        }
        "relay" => seeds = random(400, 12),
        "relay_frame" => {
            let key = crate::core::id::Fingerprint([7; 32]);
            let proofs = [None, Some([3; 32])];
            let enters = proofs.map(|proof| ToRelay::Enter {
                locator: Locator(4711),
                hidden: proof.is_some(),
                proof,
            });
            let to = enters
                .into_iter()
                .chain([ToRelay::Block { key }, ToRelay::More]);
            let addresses = ["192.0.2.1:7", "[2001:db8::1]:7843"].map(str::parse);
            let from = addresses.into_iter().flatten().flat_map(|address| {
                let welcome = FromRelay::Welcome {
                    observed: address,
                    bytes_per_second: 512 << 10,
                    present: 300,
                };
                [welcome, FromRelay::Observed { address }]
            });
            let keys = vec![key; MAX_PRESENT];
            let from = from.chain([FromRelay::Present { keys }, FromRelay::Gone { key }]);
            let frames = to.map(|it| it.encode()).chain(from.map(|it| it.encode()));
            seeds.extend(frames.map(|frame| frame[2..].to_vec()));
        }
        "state_frame" => {
            let frames = state_frames::all();
            seeds.extend(frames.iter().map(crate::state::wire::Frame::encode));
        }
        "transfer" => seeds = crate::transfers::check::inputs(),
        "discovery" => seeds = random(600, 12),
        "node" => seeds = random(1500, 32),
        "abi" => {
            // Every call, before a room, in a room of each kind, and after it; then random calls.
            let calls = crate::ffi::sequences::CALLED;
            let open: Vec<u8> = (0_u8..)
                .zip(calls)
                .filter(|(_, name)| name.starts_with("Initialize"))
                .map(|(n, _)| n)
                .collect();
            for (n, open) in open.into_iter().enumerate() {
                let mut sequence = Vec::new();
                let mut chance = Chance::seeded(n as u64);
                for call in 0..calls.len() {
                    sequence.push(u8::try_from(call).expect("few"));
                    sequence.extend(std::iter::repeat_with(|| chance.byte()).take(3));
                    sequence.extend([open, 1, 2, 3, 4, 5, 6]);
                }
                seeds.push(sequence);
            }
            seeds.extend(random(500, 12));
        }
        other => panic!("{other} has no seeds"),
    }
    seeds
}

/// A sender in a room with one of the strategies, tame or not.
pub(super) fn speaker(seed: u64) -> Wild<'static> {
    let strategy = match seed % 3 {
        0 => Strategy::Raft,
        1 => Strategy::Gossip {
            strict_lowest: false,
        },
        _ => Strategy::Seeded(SeededRules::default()),
    };
    let policy = RoomPolicy {
        strategy,
        ..RoomPolicy::default()
    };
    Wild {
        me: Known::numbered("m", 9),
        others: vec![Known::numbered("a", 1), Known::numbered("b", 2)],
        tame: seed % 4 < 2,
        usurps: seed % 8 < 4,
        ..decoders::someone(Chance::seeded(seed), policy)
    }
}
