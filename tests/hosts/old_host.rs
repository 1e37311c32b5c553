//! A host that was compiled against an old header runs with today's library: every declaration of that header still holds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::tools::{compile_c, layout, library, root, run};

const OLD_HEADER: &str = "tests/abi/old_host/meta_mystia_network.h";
const HEADER: &str = "include/meta_mystia_network.h";
/// The only constant that has changed, its old value and its new one. Before version 1.0 a number of voters became a list of
/// voters. A program that passes only the number has no list, so its static quorum room does not open (-3), whatever the limit
/// is.
const LOWERED: (&str, &str, &str) = ("MMN_MAX_QUORUM_VOTERS", "1024", "64");

#[test]
fn an_old_host_runs_with_this_library() {
    let program = compile_c("tests/abi/old_host/old_host.c", "old_host", &[]);
    let printed = run(Command::new(program).env("MMN_LIBRARY", library()));
    assert_eq!(printed, "ok\n");
}

/// Structs may only grow at their end.
#[test]
fn no_field_of_an_old_header_has_moved() {
    let (old, new) = (layout_of(OLD_HEADER), layout_of(HEADER));
    assert!(old.len() >= 78, "{old:?}");
    for (what, value) in &old {
        let today = new.get(what);
        let grows = !what.contains('.') && what != "NetworkConfigFFI";
        let holds = today == Some(value) || (grows && today > Some(value));
        assert!(holds, "{what} was {value}, and is {today:?}");
    }
}

#[test]
fn no_number_of_an_old_header_has_changed() {
    let (old, new) = (numbers(OLD_HEADER), numbers(HEADER));
    assert!(old.len() > 80, "{old:?}");
    for (name, value) in &old {
        // It counts the headers.
        let may_grow = name == "MMN_ABI_VERSION";
        let today = new.get(name).map(String::as_str);
        let lowered = LOWERED == (name.as_str(), value.as_str(), today.unwrap_or_default());
        assert!(
            may_grow || lowered || today == Some(value),
            "{name} was {value}, and is {today:?}"
        );
    }
}

#[test]
fn no_function_of_an_old_header_has_another_signature() {
    let (old, new) = (functions(OLD_HEADER), functions(HEADER));
    assert!(old.len() > 70, "{old:?}");
    for signature in &old {
        assert!(new.contains(signature), "{signature} is gone");
    }
}

fn text(header: &str) -> String {
    fs::read_to_string(root().join(header)).expect("a header")
}

/// "struct" and its size, "struct.field" and its offset, as the C compiler lays them out.
fn layout_of(header: &str) -> BTreeMap<String, usize> {
    let folder = Path::new(header).parent().expect("a folder");
    let lines = fs::read_to_string(layout(folder)).expect("the layout");
    let pair = |line: &str| {
        let (what, value) = line.split_once(' ').expect("two words");
        (what.to_owned(), value.parse().expect("a number"))
    };
    lines.lines().map(pair).collect()
}

fn numbers(header: &str) -> BTreeMap<String, String> {
    let text = text(header);
    let defines = text
        .lines()
        .filter_map(|line| line.strip_prefix("#define MMN_"));
    let defines = defines.filter_map(|line| line.split_once(' '));
    defines
        .filter(|(_, value)| value.parse::<i64>().is_ok())
        .map(|(name, value)| (format!("MMN_{name}"), value.to_owned()))
        .collect()
}

/// The entries of MMN_FUNCTIONS, without parameter names: those may change.
fn functions(header: &str) -> Vec<String> {
    let text = text(header);
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
