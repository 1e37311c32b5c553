//! Members that send everything that can be sent, with wild values, for as long as they are let in, and come back when they
//! are put out: two honest members and a leader must not notice. Each room has a process of its own, so that its memory can
//! be measured.
//!
//! A member may disturb elections, so the test does not ask which member leads meanwhile. A leader has rights, too, and if
//! everybody may name the leader, everybody has them: in those rooms no wild member names the honest ones in its lists of
//! kicked peers, or closes the room. If only the leader may name another, the wild member that may not lead does. In a seeded
//! room the honest ones are the roster, so that none of the wild ones leads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use room_transport::identity::peer_fingerprint;
use tokio::time::timeout;

use super::*;
use crate::config::ManualOverrideRecovery;
use crate::core::election::gossip::Windows;
use crate::core::election::seeded::{Intervals, SeededRules, Seeding};
use crate::core::quorum::{Quorum, Roster};
use crate::core::wire::{PROBE_DATAGRAM, Probe, Strategy};
use crate::dispatch::Event;
use crate::fuzzing::Chance;
use crate::fuzzing::wild::{Known, Wild, probes};
use crate::net::admission::{accept_pake, read_hello, write_hello_ack};
use crate::net::close;
use crate::net::compression::pack;
use crate::net::frame::{OWN_FLAG, datagram};

/// How long the wild members go on, in seconds; MMN_WILD_SECONDS overrides it.
const SECONDS: u64 = 40;
/// Resident memory that may be added after the first quarter of that time.
const ALLOWED_GROWTH_BYTES: u64 = 32 << 20;
/// After the wild members are gone, the others agree and work within this time.
const AFTERMATH: Duration = Duration::from_secs(20);
/// What each link of a wild member gets, in actions and their distance.
const MAX_ACTIONS: usize = 400;
const PACE: Duration = Duration::from_millis(5);
/// Nothing that a wild member waits for takes longer, or it does something else.
const BRIEFLY: Duration = Duration::from_secs(2);
const HONEST: [&str; 3] = ["a", "b", "c"];
const TYPE: u16 = 0x0200;

#[test]
fn wild_members_cost_honest_ones_nothing_where_votes_elect() {
    in_a_process_of_its_own("raft");
}

#[test]
fn wild_members_cost_honest_ones_nothing_where_gossip_elects() {
    in_a_process_of_its_own("gossip");
}

#[test]
fn wild_members_cost_honest_ones_nothing_where_a_roster_elects() {
    in_a_process_of_its_own("seeded");
}

fn in_a_process_of_its_own(strategy: &str) {
    let program = std::env::current_exe().expect("this program");
    let test = "room::hostile::wild::a_room_with_wild_members";
    let output = Command::new(program)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("MMN_WILD_STRATEGY", strategy)
        .output()
        .expect("it runs again");
    let (said, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    println!("{said}{complained}");
    assert!(output.status.success(), "{}", output.status);
    assert!(said.contains("1 passed"), "the test has another name");
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The honest ones are the voters of a seeded room, and nobody else.
fn quorum(strategy: Strategy) -> Quorum {
    match strategy {
        Strategy::Seeded(_) => {
            let voters = HONEST.map(|name| (id(name), None));
            Quorum::Static(Roster::new(voters).expect("three names"))
        }
        _ => Quorum::Dynamic,
    }
}

fn policy(strategy: Strategy) -> RoomPolicy {
    RoomPolicy {
        strategy,
        quorum: quorum(strategy).policy(),
        authority: match strategy {
            Strategy::Gossip { .. } => Authority::LeaderOnly,
            _ => Authority::Anyone,
        },
        ..RoomPolicy::default()
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
        // What is left in the temporary directory disturbs nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn config(strategy: Strategy, name: &str, directory: &Directory) -> Config {
    let ms = Duration::from_millis;
    let seeded = matches!(strategy, Strategy::Seeded(_));
    Config {
        strategy,
        authority: policy(strategy).authority,
        quorum: quorum(strategy),
        state_directory: seeded.then(|| directory.0.clone()),
        seeding: match seeded {
            // The test links them; nobody listens there.
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

/// What went wrong, each kind of it once, with how often.
#[derive(Debug, Default)]
struct Findings(Mutex<BTreeMap<String, u32>>);

impl Findings {
    fn add(&self, what: String) {
        let mut found = self.0.lock().expect("not poisoned");
        *found.entry(what).or_default() += 1;
    }
}

/// What an honest host has taken of the others' numbered messages: the next number of each, on each of two ways.
type Taken = Arc<Mutex<BTreeMap<(String, u8), u32>>>;

/// An honest member that remembers only what matters, so that the memory of its process is the library's.
struct Honest {
    name: &'static str,
    room: Arc<Room>,
    taken: Taken,
}

/// Nobody else can write it: what an honest member sent says so.
fn numbered(secret: u64, way: u8, number: u32) -> Vec<u8> {
    [
        &secret.to_le_bytes()[..],
        &[way],
        &number.to_le_bytes(),
        b"of an honest member",
    ]
    .concat()
}

fn read_numbered(secret: u64, payload: &[u8]) -> Option<(u8, u32)> {
    let rest = payload.strip_prefix(&secret.to_le_bytes())?;
    let (way, rest) = rest.split_first()?;
    let number = rest.first_chunk::<4>()?;
    Some((*way, u32::from_le_bytes(*number)))
}

const DIRECT: u8 = 0;
const CENTRAL: u8 = 1;

impl Honest {
    fn open(
        name: &'static str,
        session: &str,
        config: Config,
        secret: u64,
        findings: &Arc<Findings>,
    ) -> Self {
        let session = SessionId::new(session).expect("valid");
        let room = Room::open(id(name), session, config).expect("a room");
        let taken = Taken::default();
        let (found, numbers) = (Arc::clone(findings), Arc::clone(&taken));
        let joined = Mutex::new(BTreeSet::new());
        let hear = move |event: &Event| match event {
            Event::Message(message) => {
                if let Some((way, number)) = read_numbered(secret, &message.payload) {
                    let mut numbers = numbers.lock().expect("not poisoned");
                    let next = numbers.entry((message.from.to_string(), way)).or_default();
                    if *next != number {
                        found.add(format!(
                            "{name} took another number from {} than the next",
                            message.from
                        ));
                    }
                    *next = number + 1;
                }
            }
            Event::Joined(peer) if HONEST.contains(&peer.as_str()) => {
                let first = joined.lock().expect("not poisoned").insert(peer.clone());
                if !first {
                    found.add(format!("{peer} joined {name} again"));
                }
            }
            Event::Reconnecting(peer) if HONEST.contains(&peer.as_str()) => {
                found.add(format!("{name} lost the link to {peer}"));
            }
            Event::Left(left) if HONEST.contains(&left.peer.as_str()) => {
                found.add(format!("{} left {name}: {:?}", left.peer, left.why));
            }
            Event::RoomEnded { why, .. } => {
                found.add(format!("the room ended for {name}: {why:?}"));
            }
            _ => {}
        };
        room.dispatch().register_event_handler(Some(Arc::new(hear)));
        Self {
            name,
            room: Arc::new(room),
            taken,
        }
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.room.local_address().port()))
    }

    fn connect_to(&self, other: &Self) {
        let text = other.address().to_string();
        let target = parse_target(&text).expect("a target");
        self.room.connect(&text, target).expect("accepted");
    }

    fn has(&self, peer: &str) -> bool {
        let snapshot = self.room.snapshot();
        let view = snapshot.peer(peer);
        view.is_some_and(|view| view.status == PeerStatus::Connected)
    }

    fn leader(&self) -> Option<String> {
        let snapshot = self.room.snapshot();
        snapshot.leader.as_ref().map(ToString::to_string)
    }

    fn taken(&self, from: &str, way: u8) -> u32 {
        let taken = self.taken.lock().expect("not poisoned");
        taken.get(&(from.to_owned(), way)).copied().unwrap_or(0)
    }
}

/// The one that all of them name, where it is one of them.
fn agreed(hosts: &[Honest]) -> Option<String> {
    let leader = hosts[0].leader()?;
    let all = hosts
        .iter()
        .all(|host| host.leader().as_ref() == Some(&leader));
    (all && hosts.iter().any(|host| host.name == leader)).then_some(leader)
}

async fn within(limit: Duration, condition: impl Fn() -> bool) -> bool {
    let look = async {
        while !condition() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(limit, look).await.is_ok()
}

/// Sends numbered messages until it is stopped; how many there were.
async fn talk(
    room: Arc<Room>,
    to: PeerId,
    secret: u64,
    until: Instant,
    found: Arc<Findings>,
) -> u32 {
    let mut next = 0;
    while Instant::now() < until {
        match room.send_to(&to, message_of(numbered(secret, DIRECT, next))) {
            Ok(()) => next += 1,
            Err(SendError::QueueFull { .. }) => {}
            Err(error) => found.add(format!("{} cannot send to {to}: {error}", room.peer_id())),
        }
        sleep(Duration::from_millis(10)).await;
    }
    next
}

fn message_of(payload: Vec<u8>) -> OutMessage {
    OutMessage {
        payload: payload.into(),
        msg_type: TYPE,
        flags: 0,
    }
}

/// Resident memory of this process, where the system tells it.
pub(super) fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// What the wild members of a room did, to show that they did something.
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
    let directory = Directory::new();
    let seconds = setting("MMN_WILD_SECONDS").unwrap_or(SECONDS);
    let seed = setting("MMN_WILD_SEED").unwrap_or(10);
    println!("{strategy:?}, MMN_WILD_SEED={seed}, {seconds} s");
    let session = format!("wild {seed}");
    let secret = 0x5eed_0000_0000_0000 ^ u64::from(std::process::id());
    let findings = Arc::new(Findings::default());
    let hosts = HONEST.map(|name| {
        let config = config(strategy, name, &directory);
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

    let start = Instant::now();
    let until = start + Duration::from_secs(seconds);
    let mut talks = Vec::new();
    for from in &hosts {
        for to in HONEST.iter().filter(|to| **to != from.name) {
            let found = Arc::clone(&findings);
            let talk = talk(Arc::clone(&from.room), id(to), secret, until, found);
            talks.push((from.name, *to, tokio::spawn(talk)));
        }
    }
    let targets: Vec<_> = hosts.iter().map(Honest::address).collect();
    // The first may not lead.
    let kinds = [("o", false), ("A", true), ("z", true)];
    let attacks: Vec<_> = (0..)
        .zip(kinds)
        .map(|(n, (prefix, eligible))| {
            let attack = Attack {
                prefix,
                eligible,
                session: session.clone(),
                targets: targets.clone(),
                policy: policy(strategy),
                honest: Vec::new(),
                chance: Chance::seeded(seed.wrapping_mul(31) + n),
            };
            tokio::spawn(attack.run(until))
        })
        .collect();

    let mut early = None;
    while Instant::now() < until {
        sleep(Duration::from_millis(500)).await;
        if early.is_none() && start.elapsed() > Duration::from_secs(seconds) / 4 {
            early = resident_bytes();
        }
        for host in &hosts {
            // Somebody who led may have closed the room; the leader opens it again.
            let _ = host.room.set_max_peers(0);
        }
    }
    let late = resident_bytes();
    let mut deeds = Vec::new();
    for attack in attacks {
        deeds.push(
            timeout(TIMEOUT, attack)
                .await
                .expect("it ends")
                .expect("no panic"),
        );
    }
    println!("{deeds:?}");
    if let (Some(early), Some(late)) = (early, late) {
        println!("resident: {} KiB, then {} KiB", early >> 10, late >> 10);
        if late > early + ALLOWED_GROWTH_BYTES {
            findings.add(format!("the memory grew by {} KiB", (late - early) >> 10));
        }
    }
    for (from, to, talk) in talks {
        let sent = talk.await.expect("no panic");
        let host = hosts.iter().find(|host| host.name == to).expect("honest");
        if !within(BRIEFLY, || host.taken(from, DIRECT) == sent).await {
            let taken = host.taken(from, DIRECT);
            println!("{to} took {taken} of {sent} messages from {from}");
            findings.add(format!("{to} did not get all messages from {from}"));
        }
    }
    let newcomer = config(strategy, "n", &directory);
    aftermath(&hosts, newcomer, &session, secret, &findings).await;

    for deeds in &deeds {
        if u64::from(deeds.links) < seconds || deeds.actions < 20 * seconds {
            findings.add(format!("a wild member did too little: {deeds:?}"));
        }
    }
    let found = std::mem::take(&mut *findings.0.lock().expect("not poisoned"));
    assert!(found.is_empty(), "MMN_WILD_SEED={seed}: {found:#?}");
}

/// The wild members are gone: the room must be what it was.
async fn aftermath(
    hosts: &[Honest],
    newcomer: Config,
    session: &str,
    secret: u64,
    findings: &Arc<Findings>,
) {
    if !within(AFTERMATH, || agreed(hosts).is_some()).await {
        let leaders: Vec<_> = hosts.iter().map(Honest::leader).collect();
        findings.add(format!("afterwards they name {leaders:?}"));
    }
    if newcomer.strategy == Strategy::Raft {
        let set = hosts[0].room.set_leader(&id("b"));
        let leads = || agreed(hosts).as_deref() == Some("b");
        if set.is_err() || !within(AFTERMATH, leads).await {
            findings.add(format!("afterwards SetLeader does not work: {set:?}"));
        }
    }
    for host in hosts {
        let _ = host.room.set_max_peers(0);
    }
    // What becomes of it is asked for below: in the end it is kicked.
    let its_own = Arc::default();
    let newcomer = Honest::open("n", session, newcomer, secret, &its_own);
    newcomer.connect_to(&hosts[0]);
    let entered = || {
        hosts
            .iter()
            .all(|host| host.has("n") && newcomer.has(host.name))
    };
    let enters = within(AFTERMATH, entered).await;
    sleep(Duration::from_secs(1)).await;
    if !enters || !entered() {
        let have: Vec<&str> = hosts
            .iter()
            .filter(|host| host.has("n"))
            .map(|host| host.name)
            .collect();
        findings.add(format!(
            "afterwards a newcomer does not enter: {have:?} have it"
        ));
    }
    const BROADCASTS: u32 = 20;
    for host in hosts {
        host.room.set_centralized(true);
    }
    for number in 0..BROADCASTS {
        for host in hosts {
            let sent = host
                .room
                .broadcast(message_of(numbered(secret, CENTRAL, number)));
            if let Err(error) = sent {
                findings.add(format!(
                    "afterwards {} cannot broadcast: {error}",
                    host.name
                ));
            }
        }
    }
    for from in hosts {
        for to in hosts.iter().filter(|to| to.name != from.name) {
            let all = || to.taken(from.name, CENTRAL) == BROADCASTS;
            if !within(BRIEFLY, all).await {
                let taken = to.taken(from.name, CENTRAL);
                findings.add(format!(
                    "afterwards {} has {taken} of {BROADCASTS} relayed broadcasts of {}",
                    to.name, from.name
                ));
            }
        }
    }
    let leader = agreed(hosts);
    let leader = hosts
        .iter()
        .find(|host| Some(host.name) == leader.as_deref());
    if let Some(leader) = leader.filter(|_| enters) {
        let kicked = leader.room.kick(&id("n"), 1, b"");
        let gone = || hosts.iter().all(|host| !host.has("n"));
        if kicked.is_err() || !within(AFTERMATH, gone).await {
            findings.add(format!("afterwards KickPeer does not work: {kicked:?}"));
        }
    }
    newcomer.room.close();
}

/// One wild member after the other.
struct Attack {
    prefix: &'static str,
    eligible: bool,
    session: String,
    targets: Vec<SocketAddr>,
    policy: RoomPolicy,
    /// The honest members, as soon as they were seen.
    honest: Vec<Known>,
    chance: Chance<'static>,
}

/// A link of a wild member.
struct WildLink {
    connection: Connection,
    control: SendStream,
    lane: Option<SendStream>,
    next_seq: u64,
    readers: Vec<tokio::task::JoinHandle<()>>,
}

impl Drop for WildLink {
    fn drop(&mut self) {
        for reader in &self.readers {
            reader.abort();
        }
        self.connection.close(VarInt::from_u32(0), b"");
    }
}

impl Attack {
    async fn run(mut self, until: Instant) -> Deeds {
        let mut deeds = Deeds::default();
        let mut attacker = None;
        for n in 0_u64.. {
            if Instant::now() >= until {
                break;
            }
            // Now and then under the same name and key, which may be banned.
            if attacker.is_none() || self.chance.flip() {
                let name = format!("{}{n}", self.prefix);
                attacker = Some(Attacker::new(&name, &self.session));
            }
            if let Some(attacker) = &attacker {
                deeds.sessions += 1;
                self.session(attacker, n, until, &mut deeds).await;
            }
        }
        deeds
    }

    async fn session(&mut self, attacker: &Attacker, n: u64, until: Instant, deeds: &mut Deeds) {
        let me = Known {
            id: id(&attacker.name),
            key: attacker.proof.own_key,
            incarnation: Incarnation {
                started_us: match self.chance.below(8) {
                    0 => u64::MAX,
                    1 => 0,
                    _ => n,
                },
                random: n,
            },
        };
        let mut wild = Wild {
            chance: std::mem::replace(&mut self.chance, Chance::seeded(0)),
            me,
            others: self.honest.clone(),
            record: Record::default(),
            policy: self.policy,
            addresses: vec![attacker.process.address()],
            beats: 0,
            tame: false,
            usurps: !self.eligible && self.policy.authority == Authority::LeaderOnly,
        };
        wild.addresses.extend(self.targets.iter().copied());
        wild.tame = wild.chance.flip();
        let mut hello = wild.hello(self.eligible);
        if wild.chance.flip() {
            hello.listen_port = attacker.process.address().port();
        }
        let heard = Arc::new(Mutex::new(Record::default()));
        let mut links = Vec::new();
        for target in self.targets.clone() {
            let entering = self.enter(attacker, target, &hello, &heard);
            match timeout(BRIEFLY, entering).await.ok().flatten() {
                Some(Ok(link)) => links.push(link),
                Some(Err(code)) => *deeds.refused.entry(code).or_default() += 1,
                None => *deeds.refused.entry(1).or_default() += 1,
            }
        }
        deeds.links += u32::try_from(links.len()).expect("three");
        let actions = match wild.chance.flip() {
            true => 1 + wild.chance.below(20),
            false => 1 + wild.chance.below(MAX_ACTIONS),
        };
        wild.others.clone_from(&self.honest);
        for _ in 0..actions {
            links.retain(|link| link.connection.close_reason().is_none());
            if links.is_empty() || Instant::now() >= until {
                break;
            }
            let newest = heard.lock().expect("not poisoned").clone();
            wild.record = wild.record.clone().max(newest);
            for link in &mut links {
                deeds.actions += 1;
                // It may be closed, or not be read any further.
                let _ = timeout(Duration::from_millis(200), link.act(&mut wild)).await;
            }
            tokio::select! {
                () = sleep(PACE) => {}
                Some(incoming) = attacker.process.endpoint.accept() => {
                    let link = answer(attacker, incoming, &mut wild, self.eligible, &heard);
                    if let Some(link) = timeout(BRIEFLY, link).await.ok().flatten() {
                        links.push(link);
                    }
                }
            }
        }
        self.chance = wild.chance;
    }

    /// Dials and says Hello.
    async fn enter(
        &mut self,
        attacker: &Attacker,
        target: SocketAddr,
        hello: &Hello,
        heard: &Arc<Mutex<Record>>,
    ) -> Option<Result<WildLink, i32>> {
        let config = attacker.process.client(None, ALPN);
        let connecting = attacker
            .process
            .endpoint
            .connect_with(config, target, "mmn");
        let connection = connecting.ok()?.await.ok()?;
        let (mut send, mut recv) = dial_pake(&connection, &attacker.proof).await.ok()?;
        // One that is too long is not written.
        write_hello(&mut send, hello).await.ok()?;
        let ack = read_hello_ack(&mut recv).await.ok()?;
        let key = peer_fingerprint(&connection)?;
        if !self
            .honest
            .iter()
            .any(|known| known.id == ack.hello.peer_id)
        {
            self.honest.push(Known {
                id: ack.hello.peer_id.clone(),
                key,
                incarnation: ack.hello.incarnation,
            });
        }
        if ack.code != 0 {
            return Some(Err(ack.code));
        }
        send.write_all(&first_words()).await.ok()?;
        Some(Ok(WildLink::start(connection, send, recv, heard)))
    }
}

/// Takes the dial of a member that was introduced to this one.
async fn answer(
    attacker: &Attacker,
    incoming: quinn::Incoming,
    wild: &mut Wild<'_>,
    eligible: bool,
    heard: &Arc<Mutex<Record>>,
) -> Option<WildLink> {
    let connection = incoming.await.ok()?;
    let (mut send, mut recv) = accept_pake(&connection, &attacker.proof).await.ok()?;
    read_hello(&mut recv).await.ok()?;
    let mut ack = wild.hello_ack();
    if wild.chance.flip() {
        ack.code = 0;
    }
    ack.hello.eligible = eligible;
    write_hello_ack(&mut send, &ack).await.ok()?;
    send.write_all(&first_words()).await.ok()?;
    Some(WildLink::start(connection, send, recv, heard))
}

impl WildLink {
    fn start(
        connection: Connection,
        control: SendStream,
        mut recv: RecvStream,
        heard: &Arc<Mutex<Record>>,
    ) -> Self {
        let heard = Arc::clone(heard);
        let read_control = async move {
            while let Ok(frame) = read_frame(&mut recv, 1 << 20).await {
                let Ok(ControlFrame::Core(envelope)) = postcard::from_bytes(&frame) else {
                    continue;
                };
                let mut heard = heard.lock().expect("not poisoned");
                let Message::Heartbeat(Heartbeat { pulse, .. }) = envelope.message else {
                    continue;
                };
                let Ok(Beat {
                    pulse: Pulse::Leads { record, .. } | Pulse::Follows { record, .. },
                    ..
                }) = pulse.decode()
                else {
                    continue;
                };
                let record = Record::undecided(record.stamp);
                if record > *heard {
                    *heard = record;
                }
            }
        };
        let lanes = connection.clone();
        let read_lanes = async move {
            while let Ok(mut lane) = lanes.accept_uni().await {
                while let Ok(Some(_)) = lane.read_chunk(1 << 16, true).await {}
            }
        };
        Self {
            connection,
            control,
            lane: None,
            next_seq: 0,
            readers: vec![tokio::spawn(read_control), tokio::spawn(read_lanes)],
        }
    }

    /// Sends one thing.
    async fn act(&mut self, wild: &mut Wild<'_>) -> Option<()> {
        let mut buffer = BytesMut::new();
        match wild.chance.below(16) {
            0 => {
                let probe: Probe = probes::any(wild);
                let bytes = postcard::to_allocvec(&(PROBE_DATAGRAM, probe)).ok()?;
                self.connection.send_datagram(bytes.into()).ok()?;
            }
            1 if wild.chance.flip() => {
                let header = wild.datagram_header();
                let len = wild.chance.below(100);
                let payload = wild.chance.bytes(len);
                let bytes = datagram(&header, &payload).ok()?;
                self.connection.send_datagram(bytes).ok()?;
            }
            1 if wild.chance.one_in(4) => {
                let len = match wild.tame {
                    true => 0,
                    false => wild.chance.below(1400),
                };
                let bytes = wild.chance.bytes(len);
                self.connection.send_datagram(bytes.into()).ok()?;
            }
            1..5 => {
                if self.lane.is_none() {
                    self.lane = Some(self.connection.open_uni().await.ok()?);
                    put_value(&mut buffer, &wild.lane_header()).ok()?;
                }
                let mut header = wild.message_header(self.next_seq);
                let len = match wild.chance.one_in(32) {
                    true => wild.chance.length(quick().max_message_size, !wild.tame),
                    false => wild.chance.below(200),
                };
                let mut payload = wild.chance.bytes(len);
                if header.flags & OWN_FLAG != 0 && wild.chance.flip() {
                    payload = pack(&vec![7; len])?.to_vec();
                } else if wild.tame {
                    header.flags &= !OWN_FLAG;
                }
                self.next_seq = header.seq.saturating_add(1);
                put_message(&mut buffer, &header, &payload).ok()?;
                self.lane.as_mut()?.write_all(&buffer).await.ok()?;
            }
            5 if !wild.tame && wild.chance.one_in(16) => {
                let bytes = wild.chance.bytes(32);
                self.control.write_all(&bytes).await.ok()?;
            }
            _ => {
                put_value(&mut buffer, &wild.control_frame()).ok()?;
                self.control.write_all(&buffer).await.ok()?;
            }
        }
        Some(())
    }
}

/// Found by the above: it ended the room of every dialler.
#[tokio::test]
async fn a_lost_member_that_is_dialled_ends_nobodys_room_by_its_word() {
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
