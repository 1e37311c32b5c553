//! Values and requests over a room, in C#.

use std::process::Command;

use crate::tools::{compile_csharp, compile_csharp_for_coreclr, dotnet, library, run};

const PROGRAM: [&str; 2] = [
    "bindings/csharp/tests/Typed.cs",
    "bindings/csharp/tests/Checks.cs",
];

#[test]
fn values_arrive_and_requests_are_answered_under_mono() {
    let program = compile_csharp(&PROGRAM, "Typed.exe");
    keeps_promises(Command::new("mono").arg(program));
}

#[test]
fn values_arrive_and_requests_are_answered_under_coreclr() {
    let program = compile_csharp_for_coreclr(&PROGRAM, "TypedCore.exe");
    keeps_promises(Command::new(dotnet()).arg(program));
}

fn keeps_promises(command: &mut Command) {
    let library = library();
    let folder = library.parent().expect("a folder");
    let printed = run(command.env("LD_LIBRARY_PATH", folder));
    let promises =
        "ok values\nok requests\nok failures\nok ends\nok strangers\nok refusals\nok allocations\n";
    assert_eq!(printed, promises);
}
