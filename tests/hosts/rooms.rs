//! Rooms of many processes.

use std::process::Command;

use crate::tools::{compile_c, library, root, run};

fn member_program() -> std::path::PathBuf {
    compile_c("tests/hosts/member/member.c", "member", &[])
}

#[test]
fn sixteen_processes_form_a_room_from_one_contact_and_again_after_it_died() {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/member/sixteen.py"))
        .arg(member_program())
        .arg("30")
        .env("MMN_LIBRARY", library()));
    print!("{printed}");
    assert_eq!(printed.lines().last(), Some("ok"), "{printed}");
}

/// The long run is `make soak`; this one shows that the program works, and that a member survives half a minute of disturbances.
#[test]
fn a_member_stays_flat_while_others_join_leave_crash_and_pause() {
    let printed = run(Command::new("python3")
        .arg(root().join("tests/hosts/member/soak.py"))
        .arg(member_program())
        .env("SOAK_SECONDS", "30")
        .env("MMN_LIBRARY", library()));
    print!("{printed}");
    assert_eq!(printed.lines().last(), Some("ok"), "{printed}");
}
