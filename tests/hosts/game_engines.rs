//! The samples for game engines, compiled against stubs of the engines' APIs: Mirror's transport, which survives its host, and
//! the BepInEx plugin.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::tools::{compile_csharp, compile_csharp_for_coreclr, dotnet, library, run};

const MIRROR: [&str; 4] = [
    "examples/mirror/RoomTransport.cs",
    "examples/mirror/HostMigration.cs",
    "examples/mirror/tests/Stub.cs",
    "examples/mirror/tests/Echo.cs",
];

#[test]
fn a_mirror_game_goes_on_without_its_host_under_mono() {
    let program = compile_csharp(&MIRROR, "MirrorEcho.exe");
    goes_on_without_its_host("mono", &[Path::new("mono"), &program]);
}

#[test]
fn a_mirror_game_goes_on_without_its_host_under_coreclr() {
    let program = compile_csharp_for_coreclr(&MIRROR, "MirrorEchoCore.exe");
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
    let program = compile_csharp(&MIRROR, "MirrorEchoAlone.exe");
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

/// "N messages ... with B bytes". A message that allocates takes at least 24 bytes; an event among them may allocate.
#[track_caller]
fn costs_nothing(line: &str) {
    println!("{line}");
    let words: Vec<_> = line.split(' ').collect();
    let messages: u64 = words[0].parse().expect("messages");
    let bytes: u64 = words[words.len() - 2].parse().expect("bytes");
    assert!(bytes < messages, "{line}");
}

/// The first of them that reports to be the host.
fn take_host(players: &mut Vec<Player>) -> Player {
    let start = Instant::now();
    loop {
        for index in 0..players.len() {
            if players[index].has_printed("host") {
                return players.remove(index);
            }
        }
        assert!(start.elapsed() < TIMEOUT, "no player became the host");
    }
}

const TIMEOUT: Duration = Duration::from_secs(60);

struct Player {
    id: &'static str,
    process: Child,
    lines: Receiver<String>,
    /// Printed lines that `next` has passed or `has_printed` has seen.
    passed: Vec<String>,
    /// Number of these that `next` is done with.
    done: usize,
}

impl Player {
    fn start(command: &[&Path], id: &'static str, session: &str, contact: Option<&str>) -> Self {
        let library = library();
        let mut process = Command::new(command[0])
            .args(&command[1..])
            .args([id, session])
            .args(contact)
            .env("LD_LIBRARY_PATH", library.parent().expect("a folder"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let lines = lines_of(process.stdout.take().expect("piped"));
        Self {
            id,
            process,
            lines,
            passed: Vec::new(),
            done: 0,
        }
    }

    fn send(&mut self, command: &str) {
        let input = self.process.stdin.as_mut().expect("piped");
        writeln!(input, "{command}").expect("it listens");
    }

    /// The rest of the next line that starts with `start`.
    #[track_caller]
    fn next(&mut self, start: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            while self.done < self.passed.len() {
                self.done += 1;
                if let Some(rest) = self.passed[self.done - 1].strip_prefix(start) {
                    return rest.to_owned();
                }
            }
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(line) => self.passed.push(line),
                Err(_) => panic!("{}: no line {start:?} in {:#?}", self.id, self.passed),
            }
        }
    }

    /// Whether it has printed `line` since the last `next`; waits a moment for more.
    fn has_printed(&mut self, line: &str) -> bool {
        match self.lines.recv_timeout(Duration::from_millis(10)) {
            Ok(line) => self.passed.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("{} ended: {:#?}", self.id, self.passed),
        }
        self.passed[self.done..].iter().any(|passed| passed == line)
    }

    /// The server's connection to a client.
    fn id_of(&self, client: &str) -> String {
        let line = self.passed.iter().find(|line| line.ends_with(client));
        let line = line.expect("it has connected");
        line.split(' ').nth(1).expect("a number").to_owned()
    }

    fn kill(mut self) {
        self.process.kill().expect("it can be killed");
    }

    fn ends_well(mut self) {
        drop(self.process.stdin.take());
        let status = self.process.wait().expect("it can be waited for");
        assert!(status.success(), "{}: {status}", self.id);
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // An error does not matter here: the process may have ended before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Read on a thread of its own: the end of a process ends it.
fn lines_of(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
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
