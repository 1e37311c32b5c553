//! Programs in C, C++, C# and Python send each other messages in every delivery. Each checks by its events that all of them
//! arrive as their senders asked.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::tools::{
    compile_c, compile_cpp, compile_csharp, compile_csharp_for_coreclr, dotnet, library, root,
};

const CSHARP: [&str; 1] = ["tests/hosts/delivery/Delivery.cs"];

#[test]
fn every_delivery_works_between_all_languages_with_csharp_under_mono() {
    let program = compile_csharp(&CSHARP, "Delivery.exe");
    four_send_each_other("mono", &[Path::new("mono"), &program]);
}

#[test]
fn every_delivery_works_between_all_languages_with_csharp_under_coreclr() {
    let program = compile_csharp_for_coreclr(&CSHARP, "DeliveryCore.exe");
    four_send_each_other("coreclr", &[&dotnet(), &program]);
}

/// No process outlives the test.
fn four_send_each_other(runtime: &str, csharp: &[&Path]) {
    let c = compile_c(
        "tests/hosts/delivery/delivery.c",
        &format!("delivery_c_{runtime}"),
        &[],
    );
    let cpp = compile_cpp(
        "tests/hosts/delivery/delivery.cpp",
        &format!("delivery_cpp_{runtime}"),
        &[],
    );
    let python = root().join("tests/hosts/delivery/delivery.py");
    let session = format!("delivery-{runtime}-{}", std::process::id());
    let mut first = Member::start("c", &[&c], &session, None);
    let address = first.line_that_starts("address ");
    let start = |id, command: &[&Path]| Member::start(id, command, &session, Some(&address));
    let mut members = [
        start("cpp", &[&cpp]),
        start("csharp", csharp),
        start("python", &[Path::new("python3"), &python]),
        first,
    ];
    for member in &mut members {
        member.line_that_starts("OK");
    }
    // No member may leave earlier: another might still wait for its messages.
    for member in members {
        member.ends_well();
    }
}

struct Member {
    id: &'static str,
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Member {
    fn start(id: &'static str, command: &[&Path], session: &str, contact: Option<&str>) -> Self {
        let library = library();
        let mut process = Command::new(command[0])
            .args(&command[1..])
            .args([id, session])
            .args(contact)
            .env("MMN_LIBRARY", &library)
            .env("LD_LIBRARY_PATH", library.parent().expect("a folder"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let output = process.stdout.take().expect("piped");
        let lines = BufReader::new(output).lines();
        Self { id, process, lines }
    }

    /// The rest of the next line that starts with `start`. The program itself ends when it waits too long, and prints the reason
    /// to this test's standard error.
    fn line_that_starts(&mut self, start: &str) -> String {
        let mut printed = Vec::new();
        for line in self.lines.by_ref() {
            let line = line.expect("text");
            if let Some(rest) = line.strip_prefix(start) {
                return rest.to_owned();
            }
            printed.push(line);
        }
        panic!(
            "{} ended without a line that starts with {start:?}: {printed:#?}",
            self.id
        );
    }

    fn ends_well(mut self) {
        drop(self.process.stdin.take());
        let status = self.process.wait().expect("it can be waited for");
        assert!(status.success(), "{}: {status}", self.id);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // An error does not matter here: the process may have ended before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
