//! The shared library exports exactly the committed list of functions, and the header declares exactly these. (The bindings'
//! lists are generated: tests/header.rs.)

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::process::Command;

#[path = "abi/library.rs"]
mod library;

use library::library;

const HEADER: &str = include_str!(concat!(
    env!("OUT_DIR"),
    "/abi/include/meta_mystia_network.h"
));
const COMMITTED: &str = include_str!("abi/exports.txt");

#[test]
fn the_library_exports_exactly_the_committed_functions() {
    assert_eq!(exported(), committed());
}

#[test]
fn the_header_declares_exactly_the_committed_functions() {
    assert_eq!(declared(), committed());
}

/// One name a line; `#` begins a comment.
fn committed() -> BTreeSet<String> {
    COMMITTED
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// Every symbol of the library that is visible to the dynamic linker, functions or not.
fn exported() -> BTreeSet<String> {
    let library = library();
    let output = Command::new("nm")
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(&library)
        .output()
        .unwrap_or_else(|error| panic!("nm is needed (apt install binutils): {error}"));
    assert!(
        output.status.success(),
        "nm {}: {}",
        library.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| {
            let mut words = line.split(' ');
            let (name, kind) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            // Functions by their names. Any other symbol shows its kind, so that it is not in the list.
            if kind == "T" {
                name.to_owned()
            } else {
                format!("{name} ({kind})")
            }
        })
        .collect()
}

/// The names before a parameter list, at the beginning of the header's declarations.
fn declared() -> BTreeSet<String> {
    let (mut code, mut rest) = (String::new(), HEADER);
    while let Some((before, after)) = rest.split_once("/*") {
        code.push_str(before);
        rest = after.split_once("*/").expect("a comment ends").1;
    }
    code.push_str(rest);
    let code: String = code
        .lines()
        // The tables repeat the declarations.
        .filter(|line| !line.starts_with('#') && !line.starts_with("  X("))
        .filter(|line| !line.contains("extern \"C\""))
        .collect::<Vec<_>>()
        .join("\n");
    code.split([';', '{', '}'])
        .map(str::trim)
        .filter(|declaration| !declaration.starts_with("typedef"))
        .filter_map(|declaration| declaration.split_once('('))
        .filter_map(|(before, _)| before.rsplit([' ', '*', '\n']).next())
        .map(str::to_owned)
        .collect()
}
