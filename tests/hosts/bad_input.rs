//! Each invalid input of a host returns its code and its sentence.

use std::process::Command;

use crate::tools::{library, root, run};

#[test]
fn bad_input_is_named_and_disturbs_no_member() {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/bad_input.py"))
        .env("MMN_LIBRARY", library()));
    assert_eq!(printed.trim(), "ok");
}
