//! Building and running other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The library under test: `MMN_LIBRARY`, else that of `make build`.
pub(crate) fn library() -> PathBuf {
    let path = std::env::var_os("MMN_LIBRARY").map_or_else(
        || root().join("target/release/libmeta_mystia_network.so"),
        PathBuf::from,
    );
    assert!(
        path.is_file(),
        "{} is missing; run `make build` first",
        path.display()
    );
    path
}

/// A place for the program `name`, made anew by whoever builds it.
pub(crate) fn output(name: &str) -> PathBuf {
    let folder = root().join("target/hosts");
    std::fs::create_dir_all(&folder).expect("target can be written");
    folder.join(name)
}

/// Runs to the end; gives what was printed. A failure shows all of it.
pub(crate) fn run(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let stdout = String::from_utf8_lossy(&stdout).into_owned();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(
        status.success(),
        "{command:?}: {status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
    );
    stdout
}

/// Compiles a C program, warnings as errors.
pub(crate) fn compile_c(source: &str, name: &str, more: &[&str]) -> PathBuf {
    compile("gcc", &["-std=gnu11"], source, name, more)
}

/// Compiles a C++ program, warnings as errors.
pub(crate) fn compile_cpp(source: &str, name: &str, more: &[&str]) -> PathBuf {
    compile("g++", &["-std=c++17", "-Ibindings/cpp"], source, name, more)
}

fn compile(compiler: &str, flags: &[&str], source: &str, name: &str, more: &[&str]) -> PathBuf {
    let program = output(name);
    run(Command::new(compiler)
        .current_dir(root())
        .args([
            "-O2",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
            "-Iinclude",
        ])
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .args(more)
        .arg("-ldl"));
    program
}

/// Compiles C# sources with Mono's compiler, warnings as errors.
pub(crate) fn compile_csharp(sources: &[&str], name: &str) -> PathBuf {
    let program = output(name);
    run(Command::new("mcs")
        .current_dir(root())
        .args(["-langversion:7", "-warnaserror"])
        .arg(format!("-out:{}", program.display()))
        .args(sources));
    program
}

/// Compiles C# sources against the class library of CoreCLR, which has types that Mono's has elsewhere.
pub(crate) fn compile_csharp_for_coreclr(sources: &[&str], name: &str) -> PathBuf {
    let shared = root().join("target/tools/dotnetcore2/bin/shared/Microsoft.NETCore.App");
    let version = std::fs::read_dir(&shared)
        .expect("the runtime of scripts/install-tools.sh")
        .next()
        .expect("one version")
        .expect("it can be read");
    let program = output(name);
    let mut compiler = Command::new("mcs");
    compiler.current_dir(root()).args([
        "-langversion:7",
        "-warnaserror",
        "-nostdlib",
        "-noconfig",
        // Of two references to one assembly, which the runtime's own are full of.
        "-nowarn:1702",
    ]);
    for assembly in [
        "System.Private.CoreLib",
        "System.Runtime",
        "System.Runtime.Extensions",
        "System.Console",
        "System.Collections",
        "System.ComponentModel.Primitives",
        "System.Diagnostics.Process",
    ] {
        let path = version.path().join(format!("{assembly}.dll"));
        compiler.arg(format!("-r:{}", path.display()));
    }
    run(compiler
        .arg(format!("-out:{}", program.display()))
        .args(sources));
    tell_runtime(&program);
    program
}

/// CoreCLR's, of `scripts/install-tools.sh`.
pub(crate) fn dotnet() -> PathBuf {
    let path = root().join("target/tools/dotnetcore2/bin/dotnet");
    assert!(
        path.is_file(),
        "{} is missing; run scripts/install-tools.sh first",
        path.display()
    );
    path
}

/// CoreCLR wants to be told beside a program which runtime it is for.
pub(crate) fn tell_runtime(program: &Path) {
    std::fs::write(
        program.with_extension("runtimeconfig.json"),
        r#"{"runtimeOptions": {
            "framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},
            "configProperties": {"System.Globalization.Invariant": true}
        }}"#,
    )
    .expect("it can be written");
}
