//! `docs/scenarios.md` and the tests name equal sets of rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rows of a random suite have names instead of numbers.
const NAMED: &str = "fuzzy_";
const SERIES: [&str; 8] = ["r", "o", "hc", "m", "s", "f", "t", "e"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Row id and the tests that its row names; none for a row that does not apply.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("docs/scenarios.md")).expect("the file is there");
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let &[id, _, _, shown] = &cells[..] else {
            panic!("four cells are in every row, not: {line}");
        };
        if id == "id" {
            continue;
        }
        let tests: BTreeSet<String> = shown
            .split('`')
            .skip(1)
            .step_by(2)
            .map(String::from)
            .collect();
        let excuse = shown.strip_prefix("not here: ");
        assert!(
            tests.is_empty() == excuse.is_some_and(|why| !why.is_empty()),
            "a row names its tests, or the reason why there is none: {line}"
        );
        assert!(
            rows.insert(id.to_owned(), tests).is_none(),
            "{id} is there twice"
        );
    }
    rows
}

/// The names of all test functions under `src`, `crates` and `tests`.
fn test_functions() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders = Vec::from(["src", "crates", "tests"].map(|name| root().join(name)));
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                names.extend(tests_of(&fs::read_to_string(&path).expect("text")));
            }
        }
    }
    names
}

/// Functions right below a line `#[test]`, other attributes in between.
fn tests_of(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        let function = line.strip_prefix("async ").unwrap_or(line);
        if line == "#[test]" || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some(rest) = function.strip_prefix("fn ") {
            if marked {
                let name = rest.split('(').next().expect("there is a first part");
                names.push(name.to_owned());
            }
            marked = false;
        } else if !line.starts_with('#') && !line.starts_with("//") {
            marked = false;
        }
    }
    names
}

/// The rows that a test's name begins with.
fn rows_of(name: &str, table: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    if name.starts_with(NAMED) {
        let mut named = table.keys().filter(|id| id.starts_with(NAMED));
        let row = named.find(|id| name.starts_with(&format!("{id}_")));
        return row.cloned().into_iter().collect();
    }
    let parts = name.split('_').take_while(|part| is_id(part));
    parts.map(str::to_owned).collect()
}

fn is_id(part: &str) -> bool {
    SERIES.iter().any(|series| {
        let number = part.strip_prefix(series).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[test]
fn every_row_of_the_table_and_every_test_with_a_rows_id_name_each_other() {
    let (table, tests) = (table(), test_functions());
    assert!(table.len() > 100 && tests.len() > 300, "nothing was read");
    let mut wrong = Vec::new();
    for (id, named) in &table {
        for name in named {
            if !tests.contains(name) {
                wrong.push(format!("{id} names {name}, which is no test"));
            }
            if !rows_of(name, &table).contains(id) {
                wrong.push(format!("{id} names {name}, which does not begin with it"));
            }
        }
    }
    for name in &tests {
        let rows = rows_of(name, &table);
        if rows.is_empty() && name.starts_with(NAMED) {
            wrong.push(format!("{name} begins with no row's name"));
        }
        for id in rows {
            if !table.get(&id).is_some_and(|named| named.contains(name)) {
                wrong.push(format!("{name} is not in the row of {id}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
