//! The program: its files, its output, its end, and its restart.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use room_core::id::Fingerprint;
use room_transport::rendezvous::RELAY_ALPN;
use room_transport::testing::in_time;
use tokio::time::Instant;

use crate::member::{Process, code_of};

/// The program under test: another build of it, if `MMN_RELAY` names one.
fn program() -> OsString {
    let named = std::env::var_os("MMN_RELAY");
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_mmn-relay").into())
}

/// A running program, killed at the end.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
}

impl Program {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(program())
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("read");
        let (address, key) = line
            .trim_end()
            .split_once(" key=")
            .unwrap_or_else(|| panic!("{line:?}"));
        Self {
            address: address.parse().expect("an address"),
            key: key.to_owned(),
            child,
        }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::parse(&self.key).expect("a fingerprint")
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.expect("kill").success());
    }

    /// Ends it as a system does that shuts down.
    pub(crate) fn terminate(self) -> (Option<i32>, String) {
        self.signal("TERM");
        self.end()
    }

    /// Its exit code and what it has written to standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let mut errors = String::new();
        let mut stderr = self.child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut errors).expect("read");
        (self.child.wait().expect("ended").code(), errors)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already if this fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn output(arguments: &[&str]) -> Output {
    let mut program = Command::new(program());
    program.args(arguments).output().expect("started")
}

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mmn-relay-{}-{name}", std::process::id()));
        fs::create_dir(&path).expect("a folder");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_signal_ends_it_and_members_learn_of_that() {
    for signal in ["TERM", "INT"] {
        let program = Program::start(&["--listen", "127.0.0.1:0"]);
        let process = Process::start();
        let expected = Some(program.fingerprint());
        let dialled = process.dial_with(program.address, expected, RELAY_ALPN);
        let link = dialled.await.expect("connected");
        // Before it has the end of the handshake, QUIC carries no code of a close.
        let member = process.enter_on(link, 7, false, None).await;
        let member = member.expect("admitted");
        program.signal(signal);
        assert_eq!(code_of(&in_time(member.connection.closed()).await), -4);
        assert_eq!(program.end(), (Some(0), String::new()));
    }
}

#[tokio::test]
async fn a_relay_that_is_killed_and_started_again_resets_old_links_at_once() {
    let folder = Folder::new("restart");
    let key = folder.file("key");
    let program = Program::start(&["--listen", "127.0.0.1:0", "--key-file", &key]);
    let (address, fingerprint) = (program.address, program.fingerprint());
    let process = Process::start();
    let dialled = process.dial_with(address, Some(fingerprint), RELAY_ALPN);
    let link = dialled.await.expect("connected");
    let member = process.enter_on(link, 7, false, None).await;
    let member = member.expect("admitted");
    drop(program);
    let listen = address.to_string();
    let program = Program::start(&["--listen", &listen, "--key-file", &key]);
    assert_eq!(program.fingerprint(), fingerprint);
    let began = Instant::now();
    // A probe, as members send it.
    member.datagram(bytes::Bytes::from_static(&[0; 64]));
    let end = in_time(member.connection.closed()).await;
    assert!(matches!(end, quinn::ConnectionError::Reset), "{end}");
    assert!(began.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn both_families_reach_it_and_it_shows_each_its_own_address() {
    let program = Program::start(&["--listen", "[::]:0"]);
    let port = program.address.port();
    for (from, to) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1")] {
        let from: SocketAddr = from.parse().expect("an address");
        let to = SocketAddr::new(to.parse().expect("an address"), port);
        let process = Process::start_on(from);
        let expected = Some(program.fingerprint());
        let dialled = process.dial_with(to, expected, RELAY_ALPN).await;
        let member = process.enter_on(dialled.expect("connected"), 7, false, None);
        let observed = member.await.expect("admitted").observed();
        assert_eq!(observed, process.endpoint.local_addr().expect("bound"));
    }
}

#[test]
fn figures_are_shown_on_loopback() {
    let program = Program::start(&[
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        "127.0.0.1:0",
        "--monthly",
        "1G",
    ]);
    let mut line = String::new();
    let mut program = program;
    let stderr = program.child.stderr.take().expect("a pipe");
    BufReader::new(stderr).read_line(&mut line).expect("read");
    let at = line.trim_end().rsplit(' ').next().expect("an address");
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(at).expect("connected");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    };
    let answer = ask("/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\nmmn_relay_links 0\n"), "{answer}");
    assert!(
        answer.contains("\nmmn_relay_quota_bytes 1073741824\n"),
        "{answer}"
    );
    assert!(ask("/").starts_with("HTTP/1.1 404 "));
}

#[tokio::test]
async fn the_log_names_addresses_at_debug_alone() {
    for (level, names) in [("info", false), ("debug", true)] {
        let program = Program::start(&["--listen", "127.0.0.1:0", "--log", level]);
        let process = Process::start();
        let dialled = process.dial_with(program.address, None, RELAY_ALPN).await;
        let link = dialled.expect("connected");
        let member = process.enter_on(link, 7, false, None).await;
        drop(member.expect("admitted"));
        let own = process.endpoint.local_addr().expect("bound").to_string();
        process.endpoint.close(0_u32.into(), b"");
        process.endpoint.wait_idle().await;
        program.signal("TERM");
        let (_, log) = program.end();
        assert_eq!(log.contains(&own), names, "{log}");
    }
}

#[test]
fn a_fault_is_one_sentence() {
    for (arguments, code, sentence) in [
        (
            &["--rate", "x"][..],
            2,
            "mmn-relay: --rate is \"x\"; give bytes a second from 16K to 4095M, or 0 for no limit\n",
        ),
        (
            &["--listen", "127.0.0.1:0", "--key-file", "/dev/null/key"],
            1,
            "mmn-relay: cannot use the file /dev/null/key: Not a directory (os error 20)\n",
        ),
        (
            &["--listen", "192.0.2.1:7843"],
            1,
            "mmn-relay: cannot listen on 192.0.2.1:7843: Cannot assign requested address (os error 99)\n",
        ),
    ] {
        let output = output(arguments);
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(String::from_utf8_lossy(&output.stderr), sentence);
    }
    let version = output(&["--version"]);
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("mmn-relay "));
    assert!(output(&["--help"]).stdout.starts_with(b"mmn-relay: "));
}
