//! Hosts that are killed: each player is a process of its own.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::players::{LIMIT, Player};
use meta_mystia_network::bytes::Bytes;
use room_multiplayer_peer::link::Mode;
use room_multiplayer_peer::session::{Signal, Status};

const NAME: &str = "PLAYER_NAME";
const ADDRESS: &str = "PLAYER_ADDRESS";

#[test]
fn two_hosts_are_killed_and_the_last_two_play_on() {
    let mut table = Table::default();
    table.seat("alice", "");
    let address = table.line("alice", "address ");
    for name in ["bob", "carol", "dave"] {
        table.seat(name, &address);
        table.line(name, "client ");
    }
    for _ in 0..2 {
        let host = table.host();
        table.kill(&host);
    }
    table.host();
    assert_eq!(table.players.len(), 2);
}

/// The processes, each of which ends with its standard input.
struct Table {
    players: BTreeMap<String, Child>,
    lines: Receiver<(String, String)>,
    sender: Sender<(String, String)>,
    /// Lines of each that no question has taken.
    read: Vec<(String, String)>,
}

impl Default for Table {
    fn default() -> Self {
        let (sender, lines) = channel();
        Self {
            players: BTreeMap::new(),
            lines,
            sender,
            read: Vec::new(),
        }
    }
}

impl Table {
    fn seat(&mut self, name: &str, address: &str) {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "--ignored",
                "--exact",
                "--nocapture",
                "kills::a_player_of_this_test",
            ])
            .env(NAME, name)
            .env(ADDRESS, address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, from) = (self.sender.clone(), name.to_owned());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send((from.clone(), line)).is_err() {
                    break;
                }
            }
        });
        self.players.insert(name.to_owned(), child);
    }

    fn kill(&mut self, name: &str) {
        let mut child = self.players.remove(name).expect("a player");
        child.kill().expect("killed");
        child.wait().expect("ended");
        self.read.clear();
    }

    /// The rest of the player's first line that begins so.
    fn line(&mut self, name: &str, begins: &str) -> String {
        self.take(&format!("{name}: {begins}"), |from, line| {
            Some(line.strip_prefix(begins)?.to_owned()).filter(|_| from == name)
        })
    }

    /// The player whose answer all others have. The first that was elected may have lost its place to another by then.
    fn host(&mut self) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            let answers = |host: &str, to: &str| {
                self.read
                    .contains(&(to.to_owned(), format!("{host} answers {to}")))
            };
            let mut hosts = self.players.keys();
            let others = |host: &str| self.players.keys().filter(move |it| *it != host).count();
            if let Some(host) = hosts.find(|host| {
                let had = self.players.keys().filter(|it| answers(host, it));
                had.count() == others(host)
            }) {
                return host.clone();
            }
            self.read_line(deadline, "one host, and its answers to all");
        }
    }

    fn read_line(&mut self, deadline: Instant, what: &str) {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => self.read.push(line),
            Err(_) => panic!("not within {LIMIT:?}: {what}: {:#?}", self.read),
        }
    }

    fn take(&mut self, what: &str, found: impl Fn(&str, &str) -> Option<String>) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            let at = |(from, line): &(String, String)| found(from, line);
            if let Some(index) = self.read.iter().position(|it| at(it).is_some()) {
                let (from, line) = self.read.remove(index);
                return found(&from, &line).expect("found before");
            }
            self.read_line(deadline, what);
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        for child in self.players.values_mut() {
            // Fails only for one that has ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Hosts, or joins, and goes on with each next host. A client greets its host, which answers with its name.
#[test]
#[ignore = "a process of another test"]
fn a_player_of_this_test() {
    let (Ok(name), Ok(address)) = (std::env::var(NAME), std::env::var(ADDRESS)) else {
        return;
    };
    // Ends with the process that started it.
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let mut player = match address.as_str() {
        "" => Player::hosting(&name),
        address => Player::joining(&name, address),
    };
    println!("\naddress {}", player.address());
    loop {
        player.frame();
        for signal in std::mem::take(&mut player.signals) {
            match signal {
                Signal::PeerConnected(1) => {
                    println!("client {}", player.session.id());
                    send(&mut player, 1, &name);
                }
                Signal::HostChanged { .. } if player.session.status() == Status::Disconnected => {
                    player.session.resume().expect("the game goes on");
                }
                _ => {}
            }
        }
        for packet in std::mem::take(&mut player.packets) {
            let text = String::from_utf8_lossy(&packet.data);
            if player.hosts() {
                send(&mut player, packet.from, &format!("{name} answers {text}"));
            } else {
                println!("{text}");
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// If the receiver is gone, the next host is asked anew.
fn send(player: &mut Player, target: i32, text: &str) {
    let data = Bytes::copy_from_slice(text.as_bytes());
    let _ = player.session.send(target, &data, 0, Mode::Reliable);
}
