//! How much a relay carries: more and more of the rooms at it play, until packets are missing or late, or the members' own thread
//! has no time left. What a packet and a link cost follows from the relay's CPU time and memory; so does what many players need.
//! With RELAY_PROCESSES=2 two processes, each with every other room, carry what one does: each on a core of its own.

use std::iter::Sum;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::{
    Counts, Drain, MAX_WAITED, MEMBERS, PLAY_BYTES, PLAY_HZ, Times, cpu, cpu_of, enter, memory,
    number, pin, play_room, waited,
};
use crate::member::{Member, Process};
use crate::program::Program;

/// Rooms at the relay.
const ROOMS: u32 = 512;
/// Rooms of these that play, by step.
const STEPS: [u32; 6] = [16, 32, 64, 96, 128, 192];
const SECONDS: u32 = 10;
/// Rooms of one address: half of the links and of the handshakes that it may have, so that some may be repeated.
const ROOMS_OF_ONE: u32 = 128 / MEMBERS as u32;
/// Packets that may be missing, and the time that all but one in a hundred may take.
const MAX_MISSING: f64 = 0.01;
const MAX_P99: Duration = Duration::from_millis(50);
/// Part of its core that the members' thread may use.
const MAX_LOAD: f64 = 0.95;
/// Part of a core that a relay is planned for: the rest is for peaks.
const PLANNED: f64 = 0.7;
/// Most links of a relay (`--max-links`).
const MAX_LINKS: f64 = 65_536.0;
/// Part of all pairs that has no direct path: docs/internet.md.
const RELAYED_PAIRS: f64 = 0.3;
/// Bytes of the headers of IPv4 and UDP.
const IP_UDP_BYTES: f64 = 28.0;
const SECONDS_OF_MONTH: f64 = 30.44 * 86_400.0;

type Room = Vec<(Process, Member)>;

/// Counters at one time.
struct Sample {
    at: Instant,
    relay: Duration,
    waited: Duration,
    own: Duration,
    sent: f64,
    arrived: f64,
    packets: f64,
    bytes: f64,
}

impl Sample {
    fn take(relays: &[Program], rooms: &[Room], counts: &Counts) -> Self {
        let (mut packets, mut bytes) = (0, 0);
        for (_, member) in rooms.iter().flatten() {
            let stats = member.connection.stats();
            packets += stats.udp_tx.datagrams + stats.udp_rx.datagrams;
            bytes += stats.udp_tx.bytes + stats.udp_rx.bytes;
        }
        Self {
            at: Instant::now(),
            relay: of_all(relays, cpu),
            waited: of_all(relays, waited),
            own: cpu_of("/proc/thread-self/stat"),
            sent: counts.sent.load(Ordering::Relaxed) as f64,
            arrived: counts.arrived.load(Ordering::Relaxed) as f64,
            packets: packets as f64,
            bytes: bytes as f64,
        }
    }
}

/// A step's figures, of one second where they are no shares.
struct Step {
    rooms: u32,
    messages: f64,
    missing: f64,
    /// Of UDP, both ways together.
    packets: f64,
    /// With headers of IPv4 and UDP, both ways together.
    bytes: f64,
    relay: f64,
    waited: f64,
    own: f64,
    memory: u64,
}

impl Step {
    fn between(rooms: u32, before: &Sample, after: &Sample, memory: u64) -> Self {
        let seconds = (after.at - before.at).as_secs_f64();
        let rate = |of: fn(&Sample) -> f64| (of(after) - of(before)) / seconds;
        let packets = rate(|sample| sample.packets);
        let messages = rate(|sample| sample.arrived);
        Self {
            rooms,
            messages,
            missing: 1.0 - messages / rate(|sample| sample.sent),
            packets,
            bytes: rate(|sample| sample.bytes) + IP_UDP_BYTES * packets,
            relay: rate(|sample| sample.relay.as_secs_f64()),
            waited: rate(|sample| sample.waited.as_secs_f64()),
            own: rate(|sample| sample.own.as_secs_f64()),
            memory,
        }
    }

    fn print(&self, times: &mut Times) {
        let [p50, p99] = [0.5, 0.99].map(|part| 1e3 * times.quantile(part).as_secs_f64());
        println!(
            "{:5} {:8.0} {:9.0} {:6.1} {:6.1} % {:8.1} {:8.1} {:7.1} {:7.2} {:7.2} {:8.2} % {:6.0} % {:6.0} %",
            self.rooms,
            self.messages,
            self.packets,
            self.bytes / 1e6,
            100.0 * self.relay,
            1e6 * self.relay / self.messages,
            1e6 * self.relay / self.packets,
            self.memory as f64 / 1e6,
            p50,
            p99,
            100.0 * self.missing,
            100.0 * self.own,
            100.0 * self.waited,
        );
    }

    /// The reason to stop after this step.
    fn limit(&self, p99: Duration) -> Option<&'static str> {
        if self.own > MAX_LOAD {
            Some("the members' thread has no time left: the relay carries more")
        } else if self.missing > MAX_MISSING {
            Some("packets are missing")
        } else if p99 > MAX_P99 {
            Some("packets are late")
        } else {
            None
        }
    }
}

#[tokio::test]
#[ignore = "a measurement: make relay-load"]
async fn more_and_more_rooms_until_packets_are_late() {
    let (at_relay, hz) = (
        number("RELAY_LADDER_ROOMS", ROOMS),
        number("RELAY_HZ", PLAY_HZ),
    );
    let seconds = Duration::from_secs(number("RELAY_LADDER_SECONDS", SECONDS).into());
    let max_links = MAX_LINKS.to_string();
    let arguments = [
        "--listen",
        "127.0.0.1:0",
        "--total",
        "0",
        "--log",
        "error",
        "--max-links",
        &max_links,
    ];
    let processes = number("RELAY_PROCESSES", 1);
    let relays: Vec<_> = (0..processes).map(|_| Program::start(&arguments)).collect();
    let placed = placed(&relays);
    let rooms = entered(&relays, at_relay, seconds).await;

    println!("{hz} messages a second of {PLAY_BYTES} bytes from each to each other; {placed}");
    println!(
        "rooms messages/s packets/s  MB/s  relay  us/message us/packet     MB   p50 ms  p99 ms   missing  members  relay waited"
    );
    let (start, counts, mut tasks) = (Instant::now(), Arc::<Counts>::default(), JoinSet::new());
    let (times_in, times) = mpsc::unbounded_channel();
    let mut times = Drain(times);
    let (mut playing, mut steps) = (0, Vec::<Step>::new());
    for step in STEPS.into_iter().filter(|step| *step <= at_relay) {
        for room in &rooms[playing..step as usize] {
            let times = times_in.clone();
            let took = move |time| times.send(time).unwrap_or_default();
            play_room(&mut tasks, room, (hz, false), start, &counts, took);
            // Rooms that send at the same moment would cost the relay less for each packet.
            sleep(Duration::from_millis(1)).await;
        }
        playing = step as usize;
        // The search for the MTU takes the first seconds.
        sleep(Duration::from_secs(3)).await;
        times.all();
        let before = Sample::take(&relays, &rooms, &counts);
        sleep(seconds).await;
        let after = Sample::take(&relays, &rooms, &counts);
        let mut times = times.all();
        let figures = Step::between(step, &before, &after, of_all(&relays, memory));
        figures.print(&mut times);
        let limit = figures.limit(times.quantile(0.99));
        steps.push(figures);
        if let Some(limit) = limit {
            println!("{limit}");
            break;
        }
    }
    tasks.abort_all();
    let first = steps.first().expect("a step");
    let is_judged = first.waited <= MAX_WAITED && first.own <= MAX_LOAD;
    assert!(
        !is_judged || first.missing <= MAX_MISSING,
        "packets are missing"
    );
    // CPU time is the relay's own, so a busy machine or a full core of the members does not change what a message costs. A message
    // that was lost has no bytes of its way out.
    let mut whole = steps.iter().filter(|step| step.missing <= MAX_MISSING);
    needs(whole.next_back().unwrap_or(first), hz);
}

/// Gives each process a core if there is one, and names them. This thread is the runtime of all members.
fn placed(relays: &[Program]) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let mut ids = (0..).zip(relays.iter().map(|relay| relay.child.id()));
    let have_cores = ids.all(|(core, id)| core < cores && pin(id, core));
    let of_members = relays.len() as u32;
    let are_apart = have_cores && of_members < cores && pin(own_thread(), of_members);
    match (relays.len(), have_cores, are_apart) {
        (_, false, _) => "not pinned to cores".to_owned(),
        (1, true, true) => "the relay on one core, all members on another".to_owned(),
        (count, true, true) => format!("{count} relays and the members, each on a core"),
        (count, true, false) => format!("{count} relays, each on a core, and the members on any"),
    }
}

/// The sum of a figure over all processes.
fn of_all<T: Sum>(relays: &[Program], of_one: impl Fn(u32) -> T) -> T {
    relays.iter().map(|relay| of_one(relay.child.id())).sum()
}

/// Has rooms enter the relays in turn, and prints what their links cost while no member sends.
async fn entered(relays: &[Program], count: u32, seconds: Duration) -> Vec<Room> {
    let (empty, began) = (of_all(relays, memory), of_all(relays, cpu));
    let mut rooms = Vec::new();
    for (room, relay) in (0..count).zip(relays.iter().cycle()) {
        let site = u8::try_from(room / ROOMS_OF_ONE).expect("fewer rooms");
        let from = Ipv4Addr::new(127, 0, 1, 1 + site);
        let at = (relay.address, relay.fingerprint());
        rooms.push(enter(room, from, at).await);
    }
    let (entering, began) = (of_all(relays, cpu) - began, of_all(relays, cpu));
    // The search for the MTU takes the first seconds.
    sleep(seconds).await;
    let (searching, began) = (of_all(relays, cpu) - began, of_all(relays, cpu));
    sleep(seconds).await;
    let idle = of_all(relays, cpu) - began;
    let loaded = of_all(relays, memory);
    let links = f64::from(count) * MEMBERS as f64;
    println!(
        "{links} idle links: {:.1} MB, {:.1} KB each beside {:.1} MB; {:.2} ms of CPU to enter, {:.2} ms soon after; {:.2} % of a core for all",
        loaded as f64 / 1e6,
        loaded.saturating_sub(empty) as f64 / 1e3 / links,
        empty as f64 / 1e6,
        1e3 * entering.as_secs_f64() / links,
        1e3 * searching.as_secs_f64() / links,
        100.0 * idle.as_secs_f64() / seconds.as_secs_f64(),
    );
    rooms
}

/// Prints what many players need at that cost, in rooms of four that all play at once, for a whole month.
fn needs(cost: &Step, hz: u32) {
    let core = PLANNED * cost.messages / cost.relay;
    let bytes = cost.bytes / cost.messages;
    let of_room = f64::from(hz) * (MEMBERS * (MEMBERS - 1)) as f64;
    println!(
        "at {:.0} % of a core a relay carries {core:.0} messages a second, {:.0} rooms of {MEMBERS} all over it; {bytes:.0} bytes on the \
         wire for each, in and out",
        100.0 * PLANNED,
        core / of_room,
    );
    println!("   players  messages/s  cores  relays  Mbit/s in and out  TB a month in and out");
    for players in [1e3, 1e5, 1e7] {
        let messages = players / MEMBERS as f64 * of_room * RELAYED_PAIRS;
        let cores = messages / core;
        println!(
            "{players:10.0} {messages:11.0} {:6.2} {:7.0} {:18.0} {:22.0}",
            cores,
            cores.max(players / MAX_LINKS).ceil(),
            8e-6 * messages * bytes,
            1e-12 * messages * bytes * SECONDS_OF_MONTH,
        );
    }
}

/// The number of this thread, as the system counts them.
fn own_thread() -> u32 {
    let path = std::fs::read_link("/proc/thread-self").expect("Linux");
    let number = path
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok());
    number.expect("PID/task/TID")
}
