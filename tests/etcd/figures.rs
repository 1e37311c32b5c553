//! Figures of the etcd strategy and of `etcdctl elect`, in one run. `make figures` prints them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Cluster, Directory};
use crate::member::{Member, Settings, now};

const CANDIDATES: usize = 3;
const OBSERVERS: usize = 50;
const ROUNDS: usize = 20;
const IDLE: Duration = Duration::from_secs(20);

/// Messages that the server has received from clients since it started.
fn received(cluster: &Cluster) -> f64 {
    let address = cluster.endpoint(0);
    let address = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).expect("it serves");
    write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("text");
    let counts = text
        .lines()
        .filter(|line| line.starts_with("grpc_server_msg_received_total"));
    let counts = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    counts.sum()
}

/// Messages per second of an idle cluster.
fn idle(cluster: &Cluster) -> f64 {
    let (before, began) = (received(cluster), Instant::now());
    thread::sleep(IDLE);
    (received(cluster) - before) / began.elapsed().as_secs_f64()
}

/// Median, 99th percentile and largest, in milliseconds.
fn spread(mut micros: Vec<u64>) -> String {
    micros.sort_unstable();
    let at = |part: usize| micros[(micros.len() - 1) * part / 100] as f64 / 1000.0;
    format!(
        "p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms",
        at(50),
        at(99),
        at(100)
    )
}

#[test]
#[ignore = "figures: make figures"]
fn figures_of_leadership_changes_and_of_idle_members() {
    let (cluster, directory) = (Cluster::start(1), Directory::new());
    let start = |number: usize| {
        let id = format!("m{number}");
        Member::start(Settings {
            samples: directory.path().join(&id),
            session: id.clone(),
            id,
            endpoints: cluster.endpoints(),
            prefix: "figures".to_owned(),
            ttl: 10,
            campaigns: number < CANDIDATES,
            state: None,
        })
    };
    let mut members = Vec::new();
    for number in 0..CANDIDATES + OBSERVERS {
        let member = start(number);
        member.shows("m0", 0);
        members.push(member);
    }
    let (mut gained, mut seen) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (leader, next) = (round % CANDIDATES, (round + 1) % CANDIDATES);
        thread::sleep(Duration::from_millis(300));
        let yielded = now();
        members[leader].order("yield");
        let name = format!("m{next}");
        gained.push(members[next].shows(&name, yielded).at - yielded);
        for observer in &members[CANDIDATES..] {
            seen.push(observer.shows(&name, yielded).at - yielded);
        }
    }
    println!("{CANDIDATES} candidates, {OBSERVERS} observers, {ROUNDS} changes of the leader");
    println!("  the next one leads after: {}", spread(gained));
    println!("  an observer shows it after: {}", spread(seen));
    println!(
        "  idle: {:.2} messages a second at the server",
        idle(&cluster)
    );
    drop(members);
    of_etcdctl();
}

/// A process of `etcdctl elect`, and its output.
struct Etcdctl {
    process: Child,
    lines: Receiver<(u64, String)>,
}

impl Drop for Etcdctl {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Etcdctl {
    fn start(cluster: &Cluster, arguments: &[&str]) -> Self {
        let mut process = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .arg("elect")
            .arg(format!("--endpoints={}", cluster.endpoint(0)))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcdctl (Debian: etcd-client)");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send((now(), line)).is_err() {
                    return;
                }
            }
        });
        Self { process, lines }
    }

    /// Waits for this line; returns the time of its output.
    fn prints(&self, what: &str) -> u64 {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(30));
            let (at, line) = line.unwrap_or_else(|_| panic!("{what:?} was not printed"));
            if line == what {
                return at;
            }
        }
    }
}

/// Figures of `etcdctl elect`. Its candidates cannot yield: they are interrupted, and another one is started.
fn of_etcdctl() {
    let cluster = Cluster::start(1);
    let observers: Vec<_> = (0..OBSERVERS)
        .map(|_| Etcdctl::start(&cluster, &["--listen", "figures"]))
        .collect();
    let candidate = |number: usize| Etcdctl::start(&cluster, &["figures", &format!("c{number}")]);
    let mut line = Vec::new();
    for number in 0..CANDIDATES {
        line.push(candidate(number));
        thread::sleep(Duration::from_millis(300));
    }
    line[0].prints("c0");
    let (mut gained, mut seen) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        thread::sleep(Duration::from_millis(300));
        let leader = line.remove(0);
        let ended = now();
        let pid = leader.process.id().to_string();
        let status = Command::new("kill").args(["-INT", &pid]).status();
        assert!(status.expect("kill runs").success());
        let name = format!("c{}", round + 1);
        gained.push(line[0].prints(&name) - ended);
        seen.extend(
            observers
                .iter()
                .map(|observer| observer.prints(&name) - ended),
        );
        line.push(candidate(round + CANDIDATES));
    }
    println!("the same with etcdctl elect, whose lease lasts 60 s");
    println!("  the next one leads after: {}", spread(gained));
    println!("  an observer shows it after: {}", spread(seen));
    println!(
        "  idle: {:.2} messages a second at the server",
        idle(&cluster)
    );
}
