//! Building and running other programs.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Moves this test and its processes to a network with loopback alone. Tests run side by side, and rooms in one network would
/// discover each other. Without root they share the network of `scripts/test.sh`, which then runs them one at a time.
fn own_network() {
    thread_local!(static MOVED: bool = move_to_own_network().is_ok());
    MOVED.with(|_| ());
}

/// The thread's network is new; its processes and threads inherit it.
fn move_to_own_network() -> io::Result<()> {
    // SAFETY: no memory is passed.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let status = Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status()?;
    assert!(status.success(), "loopback is up: {status}");
    Ok(())
}

/// The library under test: `MMN_LIBRARY`, else that of `make build`.
pub(crate) fn library() -> PathBuf {
    own_network();
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

/// A path for the program `name`, in a folder of this test: others may run at the same time.
pub(crate) fn output(name: &str) -> PathBuf {
    own_network();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("main").replace("::", ".");
    let folder = root().join("target/hosts").join(test);
    std::fs::create_dir_all(&folder).expect("target can be written");
    folder.join(name)
}

/// Runs a command to its end and returns its output. A failure shows all of it.
pub(crate) fn run(command: &mut Command) -> String {
    own_network();
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

/// The sources of the C# lobby.
pub(crate) fn lobby_sources() -> Vec<PathBuf> {
    csharp_files("csharp-sample")
}

/// Compiles C# sources and the binding with Mono's compiler, warnings as errors.
pub(crate) fn compile_csharp<S: AsRef<OsStr>>(sources: &[S], name: &str) -> PathBuf {
    compile_csharp_with(&[], sources, name)
}

/// Runs tests of a program that prints "ok NAME" for each, and nothing else.
#[track_caller]
pub(crate) fn passes(program: &mut Command, tests: &[&str]) {
    let library = library();
    let folder = library.parent().expect("a folder");
    let printed = run(program
        .args(tests)
        .env("MMN_LIBRARY", &library)
        .env("LD_LIBRARY_PATH", folder));
    let expected: String = tests.iter().map(|test| format!("ok {test}\n")).collect();
    assert_eq!(printed, expected);
}

/// Compiles against CoreCLR's assemblies: an assembly that names Mono's finds only a part of their types there.
pub(crate) fn compile_csharp_for_coreclr<S: AsRef<OsStr>>(sources: &[S], name: &str) -> PathBuf {
    let versions = dotnet()
        .with_file_name("shared")
        .join("Microsoft.NETCore.App");
    let mut folders = std::fs::read_dir(versions).expect("the runtime's folder");
    let folder = folders.next().expect("a version").expect("an entry").path();
    let assemblies = std::fs::read_dir(folder).expect("its assemblies");
    let mut options: Vec<_> = assemblies
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // Native libraries have no place in a compilation.
            name.starts_with("System.") && name.ends_with(".dll") && !name.contains("Native")
        })
        .map(|path| format!("-r:{}", path.display()))
        .collect();
    // mcs warns with these of assemblies that refer to others by another version.
    options.extend(["-nostdlib", "-noconfig", "-nowarn:1701,1702"].map(str::to_owned));
    for_coreclr(&compile_csharp_with(&options, sources, name))
}

/// Each file of the binding is written for C# 7.0, and compiles without unsafe code.
fn compile_csharp_with<S: AsRef<OsStr>>(options: &[String], sources: &[S], name: &str) -> PathBuf {
    let program = output(name);
    run(Command::new("mcs")
        .current_dir(root())
        .args(["-langversion:7", "-warnaserror"])
        .args(options)
        .arg(format!("-out:{}", program.display()))
        .args(sources)
        .args(csharp_files("bindings/csharp")));
    program
}

/// All C# files of a folder.
fn csharp_files(folder: &str) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(root().join(folder)).expect("the folder");
    let mut sources: Vec<_> = folder
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cs"))
        .collect();
    sources.sort();
    sources
}

/// The structs of the header in `folder` as the C compiler lays them out: a file of lines "struct size" and "struct.field
/// offset".
pub(crate) fn layout(folder: &Path) -> PathBuf {
    let header = folder.join("meta_mystia_network.h");
    let header = root().join(header);
    let name = folder.to_string_lossy().replace('/', "_");
    let text = std::fs::read_to_string(&header).expect("the header");
    let mut program = format!(
        "#include {header:?}\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{\n"
    );
    for definition in text.split("\ntypedef struct ").skip(1) {
        let (name, rest) = definition.split_once(" {").expect("its fields");
        let (fields, _) = rest.split_once("\n}").expect("its end");
        program += &format!("printf(\"{name} %zu\\n\", sizeof({name}));\n");
        for field in fields.lines().filter_map(|line| line.strip_suffix(';')) {
            let field = field.rsplit([' ', '*']).next().expect("a word");
            program += &format!("printf(\"{name}.{field} %zu\\n\", offsetof({name}, {field}));\n");
        }
    }
    program += "return 0;\n}\n";
    let source = output(&format!("layout_{name}.c"));
    std::fs::write(&source, program).expect("the program");
    let program = compile_c(
        source.to_str().expect("UTF-8"),
        &format!("layout_{name}"),
        &[],
    );
    let lines = output(&format!("layout_{name}.txt"));
    std::fs::write(&lines, run(&mut Command::new(program))).expect("the layout");
    lines
}

/// An assembly for CoreCLR, which requires the name .dll and a runtime configuration.
pub(crate) fn for_coreclr(exe: &Path) -> PathBuf {
    let program = exe.with_extension("dll");
    std::fs::rename(exe, &program).expect("it can be renamed");
    std::fs::write(
        exe.with_extension("runtimeconfig.json"),
        r#"{"runtimeOptions": {
            "framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},
            "configProperties": {"System.Globalization.Invariant": true}
        }}"#,
    )
    .expect("it can be written");
    program
}

/// The runtime of `scripts/install-tools.sh`.
pub(crate) fn dotnet() -> PathBuf {
    let path = root().join("target/tools/dotnetcore2/bin/dotnet");
    assert!(
        path.is_file(),
        "{} is missing; run scripts/install-tools.sh first",
        path.display()
    );
    path
}
