//! Members in Lua (LuaJIT), Node and Java beside members in Python: `scripts.py`.

use std::path::Path;
use std::process::Command;

use crate::stories::{play_with, stories};
use crate::tools::{layout, output, root, run};

const JNA: &str = "/usr/share/java/jna.jar";

/// With the structs as C lays them out.
#[track_caller]
fn in_a_script(file: &str, story: &str) {
    play_with(file, story, &[("MMN_LAYOUT", layout(Path::new("include")))]);
}

stories! { in_a_script, "scripts.py":
    lua_meets_python_and_survives_the_leader
    lua_names_errors
    lua_has_the_whole_abi
    lua_example_of_a_room
    node_meets_python_and_survives_the_leader
    node_names_errors
    node_has_the_whole_abi
    node_example_of_a_room
}

/// Compiles the binding, the example and the member of the tests, warnings as errors.
#[track_caller]
fn in_java(file: &str, story: &str) {
    let classes = output("classes");
    let binding = root().join("bindings/java/com/metamystia/network");
    let sources = std::fs::read_dir(binding).expect("the binding");
    run(Command::new("javac")
        .current_dir(root())
        .args([
            "-Xlint:all",
            "-Werror",
            "-encoding",
            "UTF-8",
            "-cp",
            JNA,
            "-d",
        ])
        .arg(&classes)
        .args(sources.map(|entry| entry.expect("an entry").path()))
        .args(["examples/java/Room.java", "tests/hosts/scripts/Puppet.java"]));
    let variables = [
        ("MMN_LAYOUT", layout(Path::new("include"))),
        ("CLASSES", classes),
    ];
    play_with(file, story, &variables);
}

stories! { in_java, "scripts.py":
    java_meets_python_and_survives_the_leader
    java_names_errors
    java_has_the_whole_abi
    java_example_of_a_room
}
