//! What a relay costs, and what it adds to the way of a packet: `make relay-load`.
//!
//! The program runs in a process of its own, on one core. Members of rooms of four play, and in some rooms one sends a transfer.
//! Beside them the same packets go from one process to another over the relay and directly, so that a busy machine shows in both
//! figures. [`ladder`] has more and more rooms play.

mod ladder;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quinn::Connection;
use room_core::id::Fingerprint;
use room_transport::rendezvous::RELAY_ALPN;
use room_transport::tunnel::packet::{HEADER_BYTES, Header, Part, Way, encode};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::member::{Member, Process};
use crate::program::Program;

const ROOMS: u32 = 64;
const MEMBERS: usize = 4;
/// Messages of play that each member sends each other one in a second.
const PLAY_HZ: u32 = 20;
const PLAY_BYTES: usize = 100;
/// Rooms in which one member sends another a transfer.
const TRANSFERS: u32 = 8;
const TRANSFER_BYTES_PER_SECOND: u32 = 256 << 10;
/// Part of the time that the relay may wait for its core in a run that is judged.
const MAX_WAITED: f64 = 0.2;
/// Packets a second on each of the two lines that are compared.
const PROBE_HZ: u32 = 50;

fn number(name: &str, otherwise: u32) -> u32 {
    let set = std::env::var(name).ok();
    set.map_or(otherwise, |text| text.parse().expect(name))
}

/// A packet of play with the time since `start`.
fn play(start: Instant, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let nanoseconds = start.elapsed().as_nanos() as u64;
    bytes[..8].copy_from_slice(&nanoseconds.to_le_bytes());
    bytes
}

fn took(start: Instant, bytes: &[u8]) -> Option<Duration> {
    let sent = u64::from_le_bytes(*bytes.first_chunk()?);
    start.elapsed().checked_sub(Duration::from_nanos(sent))
}

/// Every nth value of some times.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn quantile(&mut self, part: f64) -> Duration {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        self.0[(last as f64 * part) as usize]
    }
}

#[tokio::test]
#[ignore = "a measurement: make relay-load"]
async fn rooms_in_play_beside_direct_links() {
    let seconds = u64::from(number("RELAY_SECONDS", 20));
    let (rooms, hz) = (number("RELAY_ROOMS", ROOMS), number("RELAY_HZ", PLAY_HZ));
    let program = Program::start(&["--listen", "127.0.0.1:0", "--total", "0"]);
    let id = program.child.id();
    let is_pinned = pin(id, 0);
    let idle = memory(id);

    let start = Instant::now();
    // The rooms have a thread of their own, so that their load delays neither of the two lines that are compared.
    let counts = Arc::new(Counts::default());
    let (ready_in, ready) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let (address, key) = (program.address, program.fingerprint());
    let counted = Arc::clone(&counts);
    let load = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let rooms = play_in(rooms, hz, (address, key), start, counted).await;
            ready_in.send(()).expect("it is waited for");
            let _ = stopped.await;
            drop(rooms);
        });
    });
    ready.await.expect("all have entered");

    let mut tasks = JoinSet::new();
    let (relayed_in, relayed) = mpsc::unbounded_channel();
    // One address has no more links than the rooms.
    let [one, two] = [(); 2].map(|()| Process::start_at(Ipv4Addr::new(127, 0, 0, 2)));
    let mut ends = Vec::new();
    for process in [&one, &two] {
        let dialled = process.dial_with(address, Some(key), RELAY_ALPN).await;
        let link = dialled.expect("connected");
        let member = process.enter_on(link, ROOMS, false, None).await;
        ends.push(member.expect("admitted"));
    }
    let to_two = header(&two);
    let line = ends[0].connection.clone();
    let probes = Arc::new(Counts::default());
    tasks.spawn(send(
        line,
        vec![to_two],
        None,
        start,
        PROBE_HZ,
        Arc::clone(&probes),
    ));
    // A time measured after the end is lost.
    let times = move |took| relayed_in.send(took).unwrap_or_default();
    tasks.spawn(receive(
        ends[1].connection.clone(),
        start,
        HEADER_BYTES,
        times,
    ));

    let (direct_in, direct) = mpsc::unbounded_channel();
    let (_dialler, dialled, _acceptor, accepted) = room_transport::testing::pair().await;
    tasks.spawn(send(dialled, vec![to_two], None, start, PROBE_HZ, probes));
    let times = move |took| direct_in.send(took).unwrap_or_default();
    tasks.spawn(receive(accepted, start, HEADER_BYTES, times));

    // The search for the MTU takes the first seconds.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (mut relayed, mut direct) = (Drain(relayed), Drain(direct));
    relayed.all();
    direct.all();
    let (cpu_before, waited_before, began) = (cpu(id), waited(id), Instant::now());
    let before = counts.arrived.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let (cpu_used, passed) = (cpu(id) - cpu_before, began.elapsed());
    let waited = (waited(id) - waited_before).as_secs_f64() / passed.as_secs_f64();
    let packets = (counts.arrived.load(Ordering::Relaxed) - before) as f64;
    let (mut relayed, mut direct) = (relayed.all(), direct.all());
    let loaded = memory(id);
    tasks.abort_all();
    stop.send(()).expect("it plays");
    load.join().expect("played");

    let links = rooms as usize * MEMBERS + 2;
    let pairs = (MEMBERS * (MEMBERS - 1)) as f64;
    let sent = f64::from(rooms * hz) * pairs * passed.as_secs_f64();
    let share = cpu_used.as_secs_f64() / passed.as_secs_f64();
    let where_to = if is_pinned {
        ", the relay on one core"
    } else {
        ""
    };
    println!(
        "{rooms} rooms of {MEMBERS}, {hz} messages a second of {PLAY_BYTES} bytes from each to each other, {} transfers of {} \
         KiB/s; {seconds} s{where_to}",
        TRANSFERS.min(rooms),
        TRANSFER_BYTES_PER_SECOND >> 10,
    );
    println!(
        "play:    {:.1} % of {sent:.0} packets arrived",
        100.0 * packets / sent
    );
    println!(
        "CPU:     {:.1} % of a core, {:.1} us for each packet of play; it waited for the core {:.1} % of the time",
        100.0 * share,
        1e6 * cpu_used.as_secs_f64() / packets,
        100.0 * waited
    );
    println!(
        "memory:  {:.1} MB idle, {:.1} MB with {links} links ({:.0} KB each)",
        idle as f64 / 1e6,
        loaded as f64 / 1e6,
        loaded.saturating_sub(idle) as f64 / 1e3 / links as f64
    );
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        let (over, beside) = (relayed.quantile(part), direct.quantile(part));
        let ratio = over.as_secs_f64() / beside.as_secs_f64();
        println!(
            "{name}:     {:.2} ms over the relay, {:.2} ms directly: {ratio:.1} times",
            1e3 * over.as_secs_f64(),
            1e3 * beside.as_secs_f64()
        );
    }
    if waited > MAX_WAITED {
        println!("other programs had the relay's core too often to judge that");
        return;
    }
    assert!(packets > 0.98 * sent, "packets of play are missing");
}

/// Packets of play so far.
#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    arrived: AtomicU64,
}

/// Starts the members of the rooms.
async fn play_in(
    rooms: u32,
    hz: u32,
    relay: (SocketAddr, Fingerprint),
    start: Instant,
    counts: Arc<Counts>,
) -> (JoinSet<()>, Vec<Vec<(Process, Member)>>) {
    let mut tasks = JoinSet::new();
    let mut all = Vec::new();
    for room in 0..rooms {
        let members = enter(room, Ipv4Addr::LOCALHOST, relay).await;
        let transfers = room < TRANSFERS;
        play_room(
            &mut tasks,
            &members,
            (hz, transfers),
            start,
            &counts,
            |_| {},
        );
        all.push(members);
    }
    (tasks, all)
}

/// The members of a room enter a relay from an address.
async fn enter(
    room: u32,
    from: Ipv4Addr,
    (relay, key): (SocketAddr, Fingerprint),
) -> Vec<(Process, Member)> {
    let mut members = Vec::new();
    for _ in 0..MEMBERS {
        let process = Process::start_at(from);
        let dialled = process.dial_with(relay, Some(key), RELAY_ALPN).await;
        let link = dialled.expect("connected");
        let member = process.enter_on(link, room, false, None).await;
        members.push((process, member.expect("admitted")));
    }
    members
}

/// The members of a room play that often a second; in one that `transfers`, a member sends another one a transfer. `took` gets the
/// time of each packet.
fn play_room(
    tasks: &mut JoinSet<()>,
    members: &[(Process, Member)],
    (hz, transfers): (u32, bool),
    start: Instant,
    counts: &Arc<Counts>,
    took: impl Fn(Duration) + Clone + Send + 'static,
) {
    for (at, (process, member)) in members.iter().enumerate() {
        let others = members.iter().map(|(other, _)| other);
        let others = others.filter(|other| other.id() != process.id());
        let headers: Vec<_> = others.map(header).collect();
        let transfer = (transfers && at == 0).then(|| headers[0]);
        let connection = member.connection.clone();
        let sent = Arc::clone(counts);
        tasks.spawn(send(connection.clone(), headers, transfer, start, hz, sent));
        let (counts, took) = (Arc::clone(counts), took.clone());
        let count = move |time| {
            counts.arrived.fetch_add(1, Ordering::Relaxed);
            took(time);
        };
        tasks.spawn(receive(connection, start, HEADER_BYTES, count));
    }
}

fn header(target: &Process) -> Header {
    Header {
        way: Way::To(target.id()),
        part: Part::Whole,
        number: 0,
    }
}

struct Drain(mpsc::UnboundedReceiver<Duration>);

impl Drain {
    fn all(&mut self) -> Times {
        Times(std::iter::from_fn(|| self.0.try_recv().ok()).collect())
    }
}

async fn send(
    connection: Connection,
    headers: Vec<Header>,
    transfer: Option<Header>,
    start: Instant,
    hz: u32,
    counts: Arc<Counts>,
) {
    const PIECE: usize = 1200;
    let period = Duration::from_secs(1) / hz;
    let mut plays = interval(period);
    plays.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let pieces = (TRANSFER_BYTES_PER_SECOND / PIECE as u32 / hz) as usize;
    loop {
        plays.tick().await;
        for header in &headers {
            let packet = encode(*header, &play(start, PLAY_BYTES));
            if connection.send_datagram(packet).is_err() {
                return;
            }
            counts.sent.fetch_add(1, Ordering::Relaxed);
        }
        for _ in 0..pieces {
            let Some(header) = transfer else {
                break;
            };
            let piece = encode(header, &[0; PIECE]);
            if connection.send_datagram_wait(piece).await.is_err() {
                return;
            }
        }
    }
}

/// Takes packets of play, which are as long, and reports the time of each. A direct line carries them with the same header.
async fn receive(connection: Connection, start: Instant, skip: usize, times: impl Fn(Duration)) {
    while let Ok(datagram) = connection.read_datagram().await {
        if datagram.len() == skip + PLAY_BYTES
            && let Some(took) = took(start, &datagram[skip..])
        {
            times(took);
        }
    }
}

/// Keeps a process or a thread on one core, if the machine has it.
fn pin(id: u32, core: u32) -> bool {
    let pinned = std::process::Command::new("taskset")
        .args(["--cpu-list", "--pid", &core.to_string(), &id.to_string()])
        .output();
    pinned.is_ok_and(|output| output.status.success())
}

/// CPU time of a process so far.
pub(crate) fn cpu(id: u32) -> Duration {
    cpu_of(&format!("/proc/{id}/stat"))
}

fn cpu_of(path: &str) -> Duration {
    let text = std::fs::read_to_string(path).expect("it runs");
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks = |at: usize| -> u64 {
        let field = fields.split_whitespace().nth(at);
        field.and_then(|text| text.parse().ok()).expect("a number")
    };
    // Linux counts them in hundredths of a second, whatever its own clock.
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

/// Time for which the threads of a process could run and other programs had their core.
fn waited(id: u32) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).expect("it runs");
    let waits = tasks.flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(waits.sum())
}

/// Memory of a process that is in RAM, in bytes.
pub(crate) fn memory(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    1024 * kilobytes
        .and_then(|text| text.parse::<u64>().ok())
        .expect("a number")
}
