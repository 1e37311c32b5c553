//! Managed memory of a C# host per message: none, where the binding promises it.

use std::process::Command;

use crate::tools::{compile_csharp, compile_csharp_for_coreclr, dotnet, library, run};

// With the one part of the binding that only some targets have.
const PROGRAM: [&str; 3] = ["-unsafe", "-d:MMN_SPAN", "bindings/csharp/tests/Garbage.cs"];

#[test]
fn views_and_sends_allocate_nothing_under_mono() {
    let program = compile_csharp(&PROGRAM, "Garbage.exe");
    counts(Command::new("mono").arg(program));
}

#[test]
fn views_and_sends_allocate_nothing_under_coreclr() {
    let program = compile_csharp_for_coreclr(&PROGRAM, "GarbageCore.exe");
    counts(Command::new(dotnet()).arg(program));
}

/// The program itself judges its counts; shown with `--nocapture`.
fn counts(command: &mut Command) {
    let library = library();
    let folder = library.parent().expect("a folder");
    let printed = run(command.env("LD_LIBRARY_PATH", folder));
    print!("{printed}");
    assert_eq!(printed.lines().last(), Some("ok garbage"), "{printed}");
}
