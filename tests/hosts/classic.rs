//! A C# program that uses the 38 classic functions alone, as mods for the published library do, on both runtimes of such mods.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::tools::{compile_csharp, dotnet, for_coreclr, library, run};

/// Longer than the longest heartbeat timeout: the others lose the member, and get it back.
const PAUSE: Duration = Duration::from_secs(4);

#[test]
fn a_host_of_the_classic_functions_runs_under_mono() {
    let program = compile_csharp(&["tests/hosts/classic/Classic.cs"], "Classic.exe");
    play("mono", &[Path::new("mono"), &program]);
}

#[test]
fn a_host_of_the_classic_functions_runs_under_coreclr() {
    let program = for_coreclr(&compile_csharp(
        &["tests/hosts/classic/Classic.cs"],
        "ClassicCore.exe",
    ));
    play("coreclr", &[&dotnet(), &program]);
}

/// Three processes in one room. None outlives the test.
fn play(name: &str, command: &[&Path]) {
    let session = format!("classic-{name}-{}", std::process::id());
    let mut first = Host::start(command, &session, 0, None);
    let address = first.line_that_starts("address ");
    let second = Host::start(command, &session, 1, Some(&address));
    let mut third = Host::start(command, &session, 2, Some(&address));
    third.line_that_starts("pause me");
    third.signal("-STOP");
    thread::sleep(PAUSE);
    third.signal("-CONT");
    for host in [third, second, first] {
        host.ends_well();
    }
}

struct Host {
    role: u32,
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Host {
    fn start(command: &[&Path], session: &str, role: u32, contact: Option<&str>) -> Self {
        let library = library();
        let mut process = Command::new(command[0])
            .args(&command[1..])
            .args([session, &role.to_string()])
            .args(contact)
            .env("LD_LIBRARY_PATH", library.parent().expect("a folder"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let output = process.stdout.take().expect("piped");
        let lines = BufReader::new(output).lines();
        Self {
            role,
            process,
            lines,
        }
    }

    /// The rest of the next line that starts with `start`. The program itself ends when it waits too long.
    fn line_that_starts(&mut self, start: &str) -> String {
        for line in self.lines.by_ref() {
            let line = line.expect("text");
            if let Some(rest) = line.strip_prefix(start) {
                return rest.to_owned();
            }
        }
        panic!(
            "process {} ended without a line that starts with {start:?}",
            self.role
        );
    }

    fn signal(&self, signal: &str) {
        run(Command::new("kill").args([signal, &self.process.id().to_string()]));
    }

    fn ends_well(mut self) {
        self.line_that_starts("OK");
        let status = self.process.wait().expect("it can be waited for");
        assert!(status.success(), "process {}: {status}", self.role);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // An error does not matter here: the process may have ended before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
