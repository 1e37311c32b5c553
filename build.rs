//! Generates the C header, and names the shared library.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The files with exported items, in the header's order.
const SOURCES: [&str; 15] = [
    "version",
    "codes",
    "config",
    "options",
    "callbacks",
    "events",
    "lifecycle",
    "errors",
    "peers",
    "members",
    "leader",
    "gossip",
    "send",
    "stats",
    "logs",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    generate_header(&root)?;
    name_shared_library()?;
    Ok(())
}

/// Writes the header to `OUT_DIR`, where `tests/header.rs` compares it with the committed one, and to
/// `include/` when `MMN_UPDATE_HEADER` is set.
fn generate_header(root: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=cbindgen.toml");
    println!("cargo::rerun-if-changed=src/ffi");
    println!("cargo::rerun-if-env-changed=MMN_UPDATE_HEADER");
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml"))?;
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root.join("src/ffi").join(source).with_extension("rs"));
    }
    let mut header = Vec::new();
    builder.generate()?.write(&mut header);
    fs::write(
        PathBuf::from(env::var("OUT_DIR")?).join("meta_mystia_network.h"),
        &header,
    )?;
    if env::var_os("MMN_UPDATE_HEADER").is_some() {
        let include = root.join("include");
        fs::create_dir_all(&include)?;
        fs::write(include.join("meta_mystia_network.h"), &header)?;
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
