//! Members that send everything that can be sent, with wild values, for as long as they are let in, and come back when they
//! are put out: two honest members and a leader must not notice. Each room has a process of its own, so that its memory can
//! be measured.
//!
//! A member may disturb elections, so the test does not ask which member leads meanwhile. A leader has rights, too, and if
//! everybody may name the leader, everybody has them: in those rooms no wild member names the honest ones in its lists of
//! kicked peers, or closes the room. If only the leader may name another, the wild member that may not lead does. In a seeded
//! room the honest ones are the roster, so that none of the wild ones leads; but for the room with a wild voter.
//!
//! Wild members have other roles, too: leaders, former leaders, a voter of a roster, and carriers of the link of two honest
//! members. These tests fail as well if the wild members never had their role.

mod carrier;
mod honest;
mod leader;
mod link;
mod member;
mod voter;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use room_transport::identity::peer_fingerprint;
use tokio::time::timeout;

use self::carrier::Carrier;
use self::honest::{DIRECT, Findings, Honest, aftermath, agreed, broadcast_at_times, talk, within};
use self::leader::Leader;
use self::member::{Attack, Conduct};
use self::voter::Voter;
use super::cut::cut;
use super::memory::resident_bytes;
use super::*;
use crate::config::ManualOverrideRecovery;
use crate::core::election::gossip::Windows;
use crate::core::election::seeded::wire as seeded;
use crate::core::election::seeded::{Intervals, SeededRules, Seeding};
use crate::core::quorum::{Quorum, Roster};
use crate::core::wire::{FEATURE_PATHS, PROBE_DATAGRAM, PeerEntry, Probe, Strategy};
use crate::dispatch::Event;
use crate::fuzzing::Chance;
use crate::fuzzing::wild::{Known, Wild};
use crate::net::admission::{accept_pake, read_hello, write_hello_ack};
use crate::net::close;
use crate::net::compression::pack;
use crate::net::frame::{OWN_FLAG, datagram};

/// How long the wild members go on, in seconds; MMN_WILD_SECONDS overrides it. On a slow machine they go on until they did as
/// much as is asked for, up to `SLOWER` times as long.
const SECONDS: u64 = 20;
const SLOWER: u32 = 6;
/// Fewest actions of a wild member for each of its links, on average. One whose every link ends at once shows nothing.
const ACTIONS_OF_A_LINK: u64 = 4;
/// Resident memory that may be added after the first quarter of that time.
const ALLOWED_GROWTH_BYTES: u64 = 32 << 20;
/// After the wild members are gone, the others agree and work within this time.
const AFTERMATH: Duration = Duration::from_secs(20);
/// A lost member is dialled again within this time.
const REDIALLED: Duration = Duration::from_secs(60);
/// Most actions of a wild member on each link.
const MAX_ACTIONS: usize = 400;
const PACE: Duration = Duration::from_millis(5);
/// Nothing that a wild member waits for takes longer, or it does something else.
const BRIEFLY: Duration = Duration::from_secs(2);
const HONEST: [&str; 3] = ["a", "b", "c"];
/// The losses of the link that a leader carries.
const PARTED: [&str; 2] = ["a lost the link to b", "b lost the link to a"];
/// The wild voter of a roster.
const VOTER: &str = "w";
const TYPE: u16 = 0x0200;

#[test]
fn wild_members_cost_honest_ones_nothing_where_votes_elect() {
    in_a_process_of_its_own("raft", "members");
}

#[test]
fn wild_members_cost_honest_ones_nothing_where_gossip_elects() {
    in_a_process_of_its_own("gossip", "members");
}

#[test]
fn wild_members_cost_honest_ones_nothing_where_a_roster_elects() {
    in_a_process_of_its_own("seeded", "members");
}

#[test]
fn wild_leaders_cost_honest_members_nothing() {
    in_a_process_of_its_own("raft", "leaders");
}

#[test]
fn wild_former_leaders_cost_honest_members_nothing() {
    in_a_process_of_its_own("raft", "former leaders");
}

#[test]
fn a_wild_voter_of_a_roster_costs_honest_voters_nothing() {
    in_a_process_of_its_own("seeded", "voter");
}

#[test]
fn a_wild_carrier_of_a_link_costs_its_ends_no_message() {
    in_a_process_of_its_own("raft", "carriers");
}

fn in_a_process_of_its_own(strategy: &str, role: &str) {
    let program = std::env::current_exe().expect("this program");
    let test = "room::hostile::wild::a_room_with_wild_members";
    let output = Command::new(program)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("MMN_WILD_STRATEGY", strategy)
        .env("MMN_WILD_ROLE", role)
        .output()
        .expect("it runs again");
    let (printed, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    println!("{printed}{complained}");
    assert!(output.status.success(), "{}", output.status);
    assert!(printed.contains("1 passed"), "the test has another name");
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The roles of the wild members of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Members,
    Leaders,
    FormerLeaders,
    Voter,
    Carriers,
}

impl Role {
    fn read() -> Self {
        match std::env::var("MMN_WILD_ROLE").as_deref() {
            Ok("leaders") => Self::Leaders,
            Ok("former leaders") => Self::FormerLeaders,
            Ok("voter") => Self::Voter,
            Ok("carriers") => Self::Carriers,
            _ => Self::Members,
        }
    }

    fn leads(self) -> bool {
        matches!(self, Self::Leaders | Self::FormerLeaders | Self::Carriers)
    }

    /// Some of what can be sent ends a leadership: the leader leaves, or is put out.
    fn acts_in_one_of(self) -> usize {
        match self {
            Self::Members => 1,
            Self::Leaders | Self::FormerLeaders | Self::Voter => 4,
            Self::Carriers => 250,
        }
    }

    /// The honest member that is to lead afterwards: one that reaches all others.
    fn next_leader(self) -> &'static str {
        match self {
            Self::Carriers => "c",
            _ => "b",
        }
    }

    /// The missing signs that the wild members had their role: a test without them shows nothing.
    fn lacks(self, hosts: &[Honest], carrier: Option<&Carrier>, seconds: u64) -> Vec<String> {
        let followed: Vec<_> = hosts.iter().map(Honest::wild_leaders).collect();
        let dropped: Vec<_> = hosts
            .iter()
            .map(|host| host.room.dropped_relays())
            .collect();
        let carried = carrier.map_or(0, Carrier::carried);
        let expected = match self {
            Self::Members => 0,
            Self::Voter => 1,
            Self::Leaders | Self::FormerLeaders | Self::Carriers => seconds / 10,
        };
        let mut lacking = Vec::new();
        if followed.iter().any(|count| u64::from(*count) < expected) {
            lacking.push(format!(
                "honest members followed wild ones {followed:?} times"
            ));
        }
        if self == Self::FormerLeaders && dropped.contains(&0) {
            lacking.push(format!("former leaders spoke for others {dropped:?} times"));
        }
        if self == Self::Carriers && carried < 20 * seconds {
            lacking.push(format!("{carried} packets were carried"));
        }
        lacking
    }
}

/// A room: its election, and its wild members.
#[derive(Debug, Clone, Copy)]
struct Scene {
    strategy: Strategy,
    role: Role,
}

impl Scene {
    fn read() -> Self {
        let strategy = match std::env::var("MMN_WILD_STRATEGY").as_deref() {
            Ok("gossip") => Strategy::Gossip {
                strict_lowest: false,
            },
            Ok("seeded") => Strategy::Seeded(SeededRules {
                intervals: Intervals {
                    heartbeat_timeout_ms: 2_000,
                    ttl_timeout_ms: 4_000,
                    ..Intervals::LAN
                },
                ..SeededRules::default()
            }),
            _ => Strategy::Raft,
        };
        let role = Role::read();
        Self { strategy, role }
    }

    /// The voters of a seeded room are the honest members, and the wild voter.
    fn quorum(self) -> Quorum {
        let wild = (self.role == Role::Voter).then_some(VOTER);
        match self.strategy {
            Strategy::Seeded(_) => {
                let voters = HONEST.into_iter().chain(wild);
                let voters = voters.map(|name| (id(name), None));
                Quorum::Static(Roster::new(voters).expect("names"))
            }
            _ => Quorum::Dynamic,
        }
    }

    fn policy(self) -> RoomPolicy {
        RoomPolicy {
            strategy: self.strategy,
            quorum: self.quorum().policy(),
            authority: match self.strategy {
                Strategy::Gossip { .. } => Authority::LeaderOnly,
                _ => Authority::Anyone,
            },
            ..RoomPolicy::default()
        }
    }

    fn config(self, name: &str, directory: &Directory) -> Config {
        let ms = Duration::from_millis;
        let seeded = matches!(self.strategy, Strategy::Seeded(_));
        Config {
            strategy: self.strategy,
            authority: self.policy().authority,
            quorum: self.quorum(),
            state_directory: seeded.then(|| directory.0.clone()),
            seeding: match seeded {
                // The test links them; no process listens there.
                true => Seeding {
                    seeds: vec!["127.0.0.1:9".into()],
                    is_seed: name == HONEST[0],
                    address: String::new(),
                },
                false => Seeding::default(),
            },
            // An assigned leader that never comes back is no fault here.
            manual_override_recovery: ManualOverrideRecovery::AutoElect,
            // The machine that runs the tests may stall.
            heartbeat_timeout_multiplier: 20,
            windows: Windows {
                startup_grace: ms(1000),
                sample_interval: ms(200),
                alive_threshold: ms(2000),
                election_duration: ms(1000),
            },
            ..quick()
        }
    }

    /// Which wild members did too little.
    fn lacks(self, deeds: &[Arc<Mutex<Deeds>>], seconds: u64) -> Vec<String> {
        // Leading takes longer sessions.
        let (links, actions, of_a_link) = match self.role {
            Role::Members => (2 * seconds, 40 * seconds, ACTIONS_OF_A_LINK),
            _ => (seconds / 8, 0, 0),
        };
        let too_little = |deeds: &Deeds| {
            let linked = u64::from(deeds.links);
            linked < links || deeds.actions < actions || deeds.actions < of_a_link * linked
        };
        let deeds = deeds.iter().map(|deeds| deeds.lock().expect("no panic"));
        let idle = deeds.filter(|deeds| too_little(deeds));
        idle.map(|deeds| format!("a wild member did too little: {:?}", *deeds))
            .collect()
    }

    /// The wild members: names, and how each behaves.
    fn attacks(self) -> Vec<(&'static str, bool, Conduct)> {
        let leads = |rests| Conduct::Leads(Leader::new(Duration::from_secs(rests)));
        match self.role {
            // The first may not lead.
            Role::Members => vec![
                ("o", false, Conduct::Member),
                ("A", true, Conduct::Member),
                ("z", true, Conduct::Member),
            ],
            Role::Leaders => vec![("A", true, leads(0)), ("z", true, leads(0))],
            Role::FormerLeaders => vec![("A", true, leads(4)), ("z", true, leads(4))],
            Role::Voter => vec![(VOTER, true, Conduct::Elected(Voter::default()))],
            // Two would take the lead from each other, and the link from its ends.
            Role::Carriers => vec![("z", true, leads(0))],
        }
    }
}

/// Where the voters of a seeded room keep their votes.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("mmn-wild-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Remains in the temporary directory disturb no other test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Counts of the wild members' actions, to show that they acted.
#[derive(Debug, Default)]
struct Deeds {
    sessions: u32,
    links: u32,
    /// With which codes it was refused, and how often; 1 is an admission that failed otherwise.
    refused: BTreeMap<i32, u32>,
    actions: u64,
}

#[tokio::test]
#[ignore = "the tests above run it, each in a process of its own"]
async fn a_room_with_wild_members() {
    let scene = Scene::read();
    let directory = Directory::new();
    let seconds = setting("MMN_WILD_SECONDS").unwrap_or(SECONDS);
    let seed = setting("MMN_WILD_SEED").unwrap_or(10);
    println!("{scene:?}, MMN_WILD_SEED={seed}, {seconds} s");
    let session = format!("wild {seed}");
    let secret = 0x5eed_0000_0000_0000 ^ u64::from(std::process::id());
    let findings = Arc::new(Findings::default());
    let hosts = HONEST.map(|name| {
        let config = scene.config(name, &directory);
        Honest::open(name, &session, config, secret, &findings)
    });
    hosts[1].connect_to(&hosts[0]);
    hosts[2].connect_to(&hosts[0]);
    let whole = || {
        let linked = |host: &Honest| {
            HONEST
                .iter()
                .all(|peer| *peer == host.name || host.has(peer))
        };
        hosts.iter().all(linked) && agreed(&hosts).is_some()
    };
    assert!(within(TIMEOUT, whole).await, "the room never settled");
    if scene.role == Role::Carriers {
        part(&hosts).await;
    }

    let start = Instant::now();
    let length = Duration::from_secs(seconds);
    let is_over = Arc::new(AtomicBool::new(false));
    let mut talks = Vec::new();
    for from in &hosts {
        for to in HONEST.iter().filter(|to| **to != from.name) {
            let found = Arc::clone(&findings);
            let talk = talk(
                Arc::clone(&from.room),
                id(to),
                secret,
                Arc::clone(&is_over),
                found,
            );
            talks.push((from.name, *to, tokio::spawn(talk)));
        }
    }
    let targets: Vec<_> = hosts.iter().map(Honest::address).collect();
    let carrier = (scene.role == Role::Carriers).then(|| Arc::new(Carrier::new(seed)));
    let deeds: Vec<_> = scene.attacks().iter().map(|_| Arc::default()).collect();
    let attacks: Vec<_> = (0..)
        .zip(scene.attacks())
        .zip(&deeds)
        .map(|((n, (prefix, eligible, conduct)), deeds)| {
            let attack = Attack {
                prefix,
                is_voter: scene.role == Role::Voter,
                is_tame: matches!(scene.role, Role::Voter | Role::Carriers),
                acts_in_one_of: scene.role.acts_in_one_of(),
                eligible,
                conduct,
                carrier: carrier.clone(),
                session: session.clone(),
                targets: targets.clone(),
                policy: scene.policy(),
                honest: Vec::new(),
                chance: Chance::seeded(seed.wrapping_mul(31) + n),
                is_over: Arc::clone(&is_over),
                deeds: Arc::clone(deeds),
            };
            tokio::spawn(attack.run())
        })
        .collect();

    let mut early = None;
    let lacking = || {
        let mut lacking = scene.lacks(&deeds, seconds);
        lacking.extend(scene.role.lacks(&hosts, carrier.as_deref(), seconds));
        lacking
    };
    while start.elapsed() < length || (!lacking().is_empty() && start.elapsed() < SLOWER * length) {
        sleep(Duration::from_millis(500)).await;
        if early.is_none() && start.elapsed() > length / 4 {
            early = resident_bytes();
        }
        for host in &hosts {
            // Somebody who led may have closed the room; the leader opens it again.
            let _ = host.room.set_max_peers(0);
            if scene.role.leads() {
                broadcast_at_times(host);
            }
        }
        if scene.role == Role::FormerLeaders {
            let _ = hosts[0].room.set_leader(&id(hosts[0].name));
        }
    }
    let late = resident_bytes();
    is_over.store(true, Ordering::Relaxed);
    for attack in attacks {
        let ended = timeout(TIMEOUT, attack).await;
        ended.expect("it ends").expect("no panic");
    }
    println!("after {} s: {deeds:?}", start.elapsed().as_secs());
    if let Some(carrier) = &carrier {
        println!("{} packets were carried", carrier.carried());
    }
    for what in lacking() {
        findings.add(what);
    }
    if let (Some(early), Some(late)) = (early, late) {
        println!("resident: {} KiB, then {} KiB", early >> 10, late >> 10);
        if late > early + ALLOWED_GROWTH_BYTES {
            findings.add(format!("the memory grew by {} KiB", (late - early) >> 10));
        }
    }
    if scene.role == Role::Carriers {
        // Else one end of the link may lead, and no member carries it.
        let next_leader = &hosts[2];
        let set = next_leader.room.set_leader(&id(next_leader.name));
        set.expect("itself");
    }
    for (from, to, talk) in talks {
        let sent = talk.await.expect("no panic");
        let host = hosts.iter().find(|host| host.name == to).expect("honest");
        // A link that a wild leader carried waits for the next one.
        let limit = match scene.role {
            Role::Carriers => REDIALLED,
            _ => BRIEFLY,
        };
        if !within(limit, || host.taken(from, DIRECT) == sent).await {
            let taken = host.taken(from, DIRECT);
            println!("{to} took {taken} of {sent} messages from {from}");
            findings.add(format!("{to} did not get all messages from {from}"));
        }
    }
    let newcomer = scene.config("n", &directory);
    let next_leader = scene.role.next_leader();
    aftermath(&hosts, next_leader, newcomer, &session, secret, &findings).await;

    let mut found = std::mem::take(&mut *findings.0.lock().expect("not poisoned"));
    if scene.role == Role::Carriers {
        // It is cut at the start, and lost while no leader reaches both ends.
        found.retain(|what, _| !PARTED.contains(&what.as_str()));
    }
    assert!(found.is_empty(), "MMN_WILD_SEED={seed}: {found:#?}");
}

/// Cuts the line between the first two members: the leader carries their link.
async fn part(hosts: &[Honest; 3]) {
    let [a, b, c] = hosts;
    c.room.set_leader(&id(c.name)).expect("itself");
    let leads = || agreed(hosts).as_deref() == Some(c.name);
    assert!(within(TIMEOUT, leads).await, "{} never led", c.name);
    for (from, to) in [(a, b), (b, a)] {
        cut(from.address().port(), to.address().port());
    }
    let carried = || {
        let ends = [(a, b.name), (b, a.name)];
        let is_carried = |(end, other): (&Honest, &str)| end.has(other) && end.is_carried_to(other);
        ends.into_iter().all(is_carried)
    };
    assert!(within(TIMEOUT, carried).await, "no member carries the link");
}

/// Found by the above: it ended the room of every dialler.
#[tokio::test]
async fn a_lost_member_that_is_dialled_ends_no_room_by_its_answer() {
    let pair = Pair::settled("its word").await;
    let attacker = Attacker::new("z", "its word");
    let hello = Hello {
        listen_port: attacker.process.address().port(),
        ..attacker.hello()
    };
    let member = attacker.join_unseen(&pair.a, &hello).await;
    pair.a.wait_for(joined("z"), 1).await;
    member.connection.close(close::LOST, b"");
    loop {
        let connection = attacker.process.accept().await.expect("dialled");
        let admitted = in_time(accept_pake(&connection, &attacker.proof)).await;
        let (mut send, mut recv) = admitted.expect("the room is known");
        let dialler = in_time(read_hello(&mut recv)).await.expect("a Hello");
        let ack = HelloAck {
            code: -18,
            kicked: true,
            reason: 0,
            bytes: Vec::new(),
            hello: attacker.hello(),
        };
        write_hello_ack(&mut send, &ack).await.expect("written");
        in_time(connection.closed()).await;
        // The other one was introduced.
        if dialler.peer_id == id("a") {
            break;
        }
    }
    eventually("it is not dialled again", || {
        pair.a.room.snapshot().peer("z").is_none()
    })
    .await;
    pair.undisturbed("a lost member's word").await;
}
