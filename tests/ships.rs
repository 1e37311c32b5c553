//! The shipped library is built without the laboratory's switches and without the processes of tests.

use std::process::Command;

/// The features of a crate of the workspace, as `cargo build --release` selects them.
fn features_of(of: &str, edges: &str) -> String {
    let tree = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--offline", "--package", "meta_mystia_network"])
        .args(["--edges", edges, "--invert", of])
        .output()
        .expect("cargo runs");
    let (text, error) = (tree.stdout, tree.stderr);
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&error));
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn the_switches_of_the_laboratory_are_not_in_what_ships() {
    for (of, feature) in [("room_core", "laboratory"), ("room_transport", "testing")] {
        let ships = features_of(of, "normal,build,features");
        assert!(ships.contains("meta_mystia_network"), "{ships}");
        assert!(!ships.contains(feature), "{ships}");
        let tests = features_of(of, "normal,build,dev,features");
        assert!(tests.contains(feature), "this test sees it: {tests}");
    }
}
