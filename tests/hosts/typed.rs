//! Values and requests over a room, in C#.

use std::process::Command;

use crate::tools::{compile_csharp, compile_csharp_for_coreclr, dotnet, passes};

const PROGRAM: [&str; 2] = [
    "bindings/csharp/tests/Typed.cs",
    "bindings/csharp/tests/Checks.cs",
];
const PROMISES: [&str; 7] = [
    "values",
    "requests",
    "failures",
    "ends",
    "strangers",
    "refusals",
    "allocations",
];

#[test]
fn values_arrive_and_requests_are_answered_under_mono() {
    let program = compile_csharp(&PROGRAM, "Typed.exe");
    passes(Command::new("mono").arg(program), &PROMISES);
}

#[test]
fn values_arrive_and_requests_are_answered_under_coreclr() {
    let program = compile_csharp_for_coreclr(&PROGRAM, "TypedCore.exe");
    passes(Command::new(dotnet()).arg(program), &PROMISES);
}
