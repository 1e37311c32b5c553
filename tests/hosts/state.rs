//! Three rooms of a host in C keep one state.

use std::process::Command;

use crate::tools::{compile_c, library, run};

#[test]
fn three_rooms_in_c_receive_one_order_and_their_results() {
    let program = compile_c("tests/hosts/state/state.c", "state", &[]);
    let session = format!("state-{}", std::process::id());
    let printed = run(Command::new(program)
        .arg(session)
        .env("MMN_LIBRARY", library()));
    assert_eq!(printed, "ok\n");
}
