//! Hosts that were compiled against older headers run with today's library: every declaration of those headers still holds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::tools::{compile_c, layout, library, root, run};

/// The classic functions of ABI version 5, and all of version 100: a folder below `tests/abi` with the host and its header.
const OLD_HOSTS: [&str; 2] = ["old_host", "old_host_100"];

#[test]
fn an_old_host_runs_with_this_library() {
    for name in OLD_HOSTS {
        let program = compile_c(&format!("tests/abi/{name}/{name}.c"), name, &[]);
        let printed = run(Command::new(program).env("MMN_LIBRARY", library()));
        assert_eq!(printed, "ok\n", "{name}");
    }
}

/// Structs may only grow at their end.
#[test]
fn no_field_of_an_old_header_has_moved() {
    let new = layout_of("include");
    for (old, least) in old_folders().zip([24, 150]) {
        let old = layout_of(&old);
        assert!(old.len() >= least, "{old:?}");
        for (what, value) in &old {
            let today = new.get(what);
            let grows = !what.contains('.') && what != "NetworkConfigFFI";
            let holds = today == Some(value) || (grows && today > Some(value));
            assert!(holds, "{what} was {value}, and is {today:?}");
        }
    }
}

#[test]
fn no_number_of_an_old_header_has_changed() {
    let new = numbers("include");
    for (old, least) in old_folders().zip([38, 140]) {
        let old = numbers(&old);
        assert!(old.len() >= least, "{old:?}");
        for (name, value) in &old {
            // It counts the headers.
            let may_grow = name == "MMN_ABI_VERSION";
            let today = new.get(name);
            assert!(
                may_grow || today == Some(value),
                "{name} was {value}, and is {today:?}"
            );
        }
    }
}

#[test]
fn no_function_of_an_old_header_has_another_signature() {
    let new = functions("include");
    for (old, least) in old_folders().zip([48, 120]) {
        let old = functions(&old);
        assert!(old.len() >= least, "{old:?}");
        for signature in &old {
            assert!(new.contains(signature), "{signature} is gone");
        }
    }
}

fn old_folders() -> impl Iterator<Item = String> {
    OLD_HOSTS.iter().map(|name| format!("tests/abi/{name}"))
}

fn text(folder: &str) -> String {
    let header = root().join(folder).join("meta_mystia_network.h");
    fs::read_to_string(header).expect("a header")
}

/// "struct" and its size, "struct.field" and its offset, as the C compiler lays them out.
fn layout_of(folder: &str) -> BTreeMap<String, usize> {
    let lines = fs::read_to_string(layout(Path::new(folder))).expect("the layout");
    let pair = |line: &str| {
        let (what, value) = line.split_once(' ').expect("two words");
        (what.to_owned(), value.parse().expect("a number"))
    };
    lines.lines().map(pair).collect()
}

fn numbers(folder: &str) -> BTreeMap<String, String> {
    let text = text(folder);
    let defines = text
        .lines()
        .filter_map(|line| line.strip_prefix("#define MMN_"));
    let defines = defines.filter_map(|line| line.split_once(' '));
    defines
        .map(|(name, value)| (name, value.trim_matches(['(', ')'])))
        .filter(|(_, value)| value.parse::<i64>().is_ok())
        .map(|(name, value)| (format!("MMN_{name}"), value.to_owned()))
        .collect()
}

/// The entries of MMN_FUNCTIONS, without parameter names: those may change.
fn functions(folder: &str) -> Vec<String> {
    let text = text(folder);
    let (_, table) = text
        .split_once("#define MMN_FUNCTIONS(X)")
        .expect("the table");
    let entries = table
        .lines()
        .filter_map(|line| line.trim().strip_prefix("X("));
    entries.map(without_parameter_names).collect()
}

fn without_parameter_names(entry: &str) -> String {
    let (head, parameters) = entry.rsplit_once('(').expect("parameters");
    let parameters = parameters.trim_end_matches([' ', '\\', ')']);
    let kinds = parameters.split(", ").map(|parameter| {
        let name = parameter.rfind([' ', '*']).map_or(0, |at| at + 1);
        if parameter == "void" {
            parameter
        } else {
            parameter[..name].trim_end()
        }
    });
    format!("{head}({})", kinds.collect::<Vec<_>>().join(", "))
}
