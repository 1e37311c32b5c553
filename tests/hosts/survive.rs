//! What a host may do at any time: unregister while events flow, shut down with events in flight, open and
//! close rooms and the library itself again and again, call everything from inside callbacks.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::{
    compile_c, compile_cpp, compile_csharp, compile_csharp_for_coreclr, dotnet, library, output,
    root, run,
};

fn survives(command: &mut Command, tests: &[&str]) {
    let library = library();
    let folder = library.parent().expect("a folder");
    let printed = run(command
        .current_dir(root())
        .env("MMN_LIBRARY", &library)
        .env("MMN_GUEST", root().join("bindings/python/tests/guest.py"))
        .env("MMN_LAYOUT", layout())
        .env("LD_LIBRARY_PATH", folder)
        // One arena, so that what the C library keeps for each thread is no growth.
        .env("MALLOC_ARENA_MAX", "1"));
    for test in tests {
        let line = format!("ok {test}");
        assert!(
            printed.lines().any(|printed| printed.starts_with(&line)),
            "no line \"{line}\" in:\n{printed}"
        );
    }
}

/// The structs of the header as the C compiler lays them out: a file of lines "struct size" and "struct.field offset".
fn layout() -> PathBuf {
    let header = std::fs::read_to_string(root().join("include/meta_mystia_network.h"));
    let header = header.expect("the header");
    let mut program = String::from(
        "#include <meta_mystia_network.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n",
    );
    for definition in header.split("\ntypedef struct ").skip(1) {
        let (name, rest) = definition.split_once(" {").expect("its fields");
        let (fields, _) = rest.split_once("\n}").expect("its end");
        program += &format!("printf(\"{name} %zu\\n\", sizeof({name}));\n");
        for field in fields.lines().filter_map(|line| line.strip_suffix(';')) {
            let field = field.rsplit([' ', '*']).next().expect("a word");
            program += &format!("printf(\"{name}.{field} %zu\\n\", offsetof({name}, {field}));\n");
        }
    }
    program += "return 0;\n}\n";
    let source = output("layout.c");
    std::fs::write(&source, program).expect("the program");
    let program = compile_c(source.to_str().expect("UTF-8"), "layout", &[]);
    let lines = output("layout.txt");
    std::fs::write(&lines, run(&mut Command::new(program))).expect("the layout");
    lines
}

const EVERYWHERE: [&str; 4] = ["unregister", "shutdown", "restart", "reentry"];

#[test]
fn c() {
    let program = compile_c("bindings/c/tests/survive.c", "survive_c", &[]);
    survives(
        Command::new(program).args(["--rounds", "100", "shutdown"]),
        &["shutdown"],
    );
    let program = Path::new(root()).join("target/hosts/survive_c");
    survives(
        Command::new(program).args(["reload", "unregister", "restart", "reentry", "ending"]),
        &["reload", "unregister", "restart", "reentry", "ending"],
    );
}

#[test]
fn cpp() {
    let program = compile_cpp("bindings/cpp/tests/survive.cpp", "survive_cpp", &[]);
    let mut tests = EVERYWHERE.to_vec();
    tests.extend(["reload", "exceptions", "fork", "poll"]);
    survives(Command::new(program).args(&tests), &tests);
}

#[test]
fn csharp() {
    let sources = [
        "bindings/csharp/tests/Survive.cs",
        "bindings/csharp/NativeMethods.cs",
        "bindings/csharp/Room.cs",
    ];
    let program = compile_csharp(&sources, "Survive.exe");
    let mut tests = EVERYWHERE.to_vec();
    tests.extend(["exceptions", "queue", "poll", "layout"]);
    survives(Command::new("mono").arg(program).args(&tests), &tests);
}

/// Every registration of the bindings, and the scripts that made it unloaded: what Unity's editor does.
const RELOADED: [&str; 5] = [
    "SetLog, without a room",
    "SetLog, thread",
    "Happened, poll",
    "ConnectionResult, queue",
    "everything, thread",
];
const RELOAD_SOURCES: [&str; 3] = [
    "bindings/csharp/tests/Reload.cs",
    "bindings/csharp/NativeMethods.cs",
    "bindings/csharp/Room.cs",
];

#[test]
fn csharp_scripts_are_reloaded_under_mono() {
    let program = compile_csharp(&RELOAD_SOURCES, "Reload.exe");
    survives(Command::new("mono").arg(program), &RELOADED);
}

#[test]
fn csharp_scripts_are_reloaded_under_coreclr() {
    let program = compile_csharp_for_coreclr(&RELOAD_SOURCES, "ReloadCore.dll");
    survives(Command::new(dotnet()).arg(program), &RELOADED);
}

#[test]
fn python() {
    let program = root().join("bindings/python/tests/survive.py");
    let mut tests = EVERYWHERE.to_vec();
    tests.extend(["exceptions", "poll", "layout"]);
    survives(Command::new("python3").arg(program).args(&tests), &tests);
}
