//! Generates the C header and what the bindings take from it, and names the shared library.

#[path = "bindings/generator/mod.rs"]
mod generator;

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The files with exported items, in the header's order.
const SOURCES: [&str; 21] = [
    "version",
    "codes",
    "values",
    "config",
    "options",
    "callbacks",
    "events",
    "lifecycle",
    "errors",
    "peers",
    "identity",
    "members",
    "leader",
    "gossip",
    "seeded",
    "etcd",
    "send",
    "delivery",
    "stats",
    "simulation",
    "logs",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    describe_abi(&root)?;
    name_shared_library()?;
    Ok(())
}

/// Writes everything that is generated to `OUT_DIR`, where `tests/header.rs` compares it with the committed files, and
/// into those when `MMN_UPDATE_HEADER` is set.
fn describe_abi(root: &Path) -> Result<(), Box<dyn Error>> {
    for source in ["build.rs", "cbindgen.toml", "src/ffi", "bindings/generator"] {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-env-changed=MMN_UPDATE_HEADER");
    let folder = root.join("src/ffi");
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml"))?;
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(folder.join(source).with_extension("rs"));
    }
    let mut header = Vec::new();
    builder.generate()?.write(&mut header);

    let out = PathBuf::from(env::var("OUT_DIR")?);
    let abi = generator::Abi::read(&folder, &SOURCES)?;
    generator::write_for_rust(&abi, &out)?;
    // What an earlier build wrote, and this one does not, would stay.
    let described = out.join("abi");
    if described.exists() {
        fs::remove_dir_all(&described)?;
    }
    for file in generator::written(&abi, &String::from_utf8(header)?)? {
        file.keep(&described)?;
        if env::var_os("MMN_UPDATE_HEADER").is_some() {
            file.update(root)?;
        }
    }
    Ok(())
}

/// Programs that link the shared library look for it by this name, not by the path at their build.
fn name_shared_library() -> Result<(), Box<dyn Error>> {
    match env::var("CARGO_CFG_TARGET_OS")?.as_str() {
        "linux" | "android" => {
            println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmeta_mystia_network.so");
        }
        "macos" => println!(
            "cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libmeta_mystia_network.dylib"
        ),
        _ => {}
    }
    Ok(())
}
