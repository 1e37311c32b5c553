//! The shipped library is built without the laboratory's switches.

use std::process::Command;

/// The features of the core, as `cargo build --release` selects them.
fn features_of_core(edges: &str) -> String {
    let tree = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--offline", "--package", "meta_mystia_network"])
        .args(["--edges", edges, "--invert", "room_core"])
        .output()
        .expect("cargo runs");
    let (text, error) = (tree.stdout, tree.stderr);
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&error));
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn the_switches_of_the_laboratory_are_not_in_what_ships() {
    let ships = features_of_core("normal,build,features");
    assert!(ships.contains("meta_mystia_network"), "{ships}");
    assert!(!ships.contains("laboratory"), "{ships}");
    let tests = features_of_core("normal,build,dev,features");
    assert!(tests.contains("laboratory"), "this test sees it: {tests}");
}
