//! Actions that a host may take at any time: unregister during events, shut down with events in flight, open and close rooms and
//! the library itself repeatedly, call every function from inside callbacks.

use std::path::Path;
use std::process::Command;

use crate::tools::{
    compile_c, compile_cpp, compile_csharp, compile_csharp_for_coreclr, dotnet, layout, library,
    root, run,
};

fn survives(command: &mut Command, tests: &[&str]) {
    let library = library();
    let folder = library.parent().expect("a folder");
    let printed = run(command
        .current_dir(root())
        .env("MMN_LIBRARY", &library)
        .env("MMN_GUEST", root().join("bindings/python/tests/guest.py"))
        .env("MMN_LAYOUT", layout(Path::new("include")))
        .env("LD_LIBRARY_PATH", folder)
        // One arena, so that the C library's caches for each thread do not count as growth.
        .env("MALLOC_ARENA_MAX", "1"));
    for test in tests {
        let line = format!("ok {test}");
        assert!(
            printed.lines().any(|printed| printed.starts_with(&line)),
            "no line \"{line}\" in:\n{printed}"
        );
    }
}

const EVERYWHERE: [&str; 4] = ["unregister", "shutdown", "restart", "reentry"];

#[test]
fn c() {
    let program = compile_c("bindings/c/tests/survive.c", "survive_c", &[]);
    survives(
        Command::new(&program).args(["--rounds", "100", "shutdown"]),
        &["shutdown"],
    );
    let tests = [
        "reload",
        "unregister",
        "restart",
        "reentry",
        "paths",
        "codes",
        "ending",
    ];
    survives(Command::new(program).args(tests), &tests);
}

#[test]
fn cpp() {
    let program = compile_cpp("bindings/cpp/tests/survive.cpp", "survive_cpp", &[]);
    let mut tests = EVERYWHERE.to_vec();
    tests.extend([
        "reload",
        "rooms",
        "paths",
        "transfers",
        "codes",
        "browse",
        "hold",
        "closed",
        "destroyed",
        "version",
    ]);
    tests.extend(["exceptions", "fork", "seeded", "etcd", "poll"]);
    survives(Command::new(program).args(&tests), &tests);
}

const CSHARP: [&str; 1] = ["bindings/csharp/tests/Survive.cs"];
const CSHARP_TESTS: [&str; 16] = [
    "unregister",
    "shutdown",
    "restart",
    "reentry",
    "exceptions",
    "queue",
    "messages",
    "dials",
    "rooms",
    "paths",
    "codes",
    "browse",
    "seeded",
    "etcd",
    "poll",
    "layout",
];

#[test]
fn csharp_under_mono() {
    let program = compile_csharp(&CSHARP, "Survive.exe");
    survives(
        Command::new("mono").arg(program).args(CSHARP_TESTS),
        &CSHARP_TESTS,
    );
}

#[test]
fn csharp_under_coreclr() {
    let program = compile_csharp_for_coreclr(&CSHARP, "SurviveCore.exe");
    survives(
        Command::new(dotnet()).arg(program).args(CSHARP_TESTS),
        &CSHARP_TESTS,
    );
}

/// Every registration of the bindings, and the scripts that made it unloaded, like Unity's editor.
const RELOADED: [&str; 7] = [
    "SetLog, without a room",
    "SetLog, thread",
    "Happened, poll",
    "ConnectionResult, two rooms",
    "DataReceived, two rooms",
    "ConnectAsync, poll",
    "everything, thread",
];
const RELOAD_SOURCES: [&str; 1] = ["bindings/csharp/tests/Reload.cs"];

#[test]
fn csharp_scripts_are_reloaded_under_mono() {
    let program = compile_csharp(&RELOAD_SOURCES, "Reload.exe");
    survives(Command::new("mono").arg(program), &RELOADED);
}

#[test]
fn csharp_scripts_are_reloaded_under_coreclr() {
    let program = compile_csharp_for_coreclr(&RELOAD_SOURCES, "ReloadCore.exe");
    survives(Command::new(dotnet()).arg(program), &RELOADED);
}

#[test]
fn python() {
    let program = root().join("bindings/python/tests/survive.py");
    let mut tests = EVERYWHERE.to_vec();
    tests.extend([
        "exceptions",
        "clock",
        "rooms",
        "paths",
        "codes",
        "browse",
        "late",
        "ranges",
        "poll",
        "seeded",
        "etcd",
        "layout",
    ]);
    survives(Command::new("python3").arg(program).args(&tests), &tests);
}
