//! Generates the C header and the generated parts of the bindings, and names the shared library.

#[path = "bindings/generator/mod.rs"]
#[cfg_attr(not(feature = "header"), allow(dead_code))]
mod generator;

use std::env;
use std::error::Error;
#[cfg(feature = "header")]
use std::fs;
use std::path::{Path, PathBuf};

/// The files with exported items, in the header's order: first the library, then the names of the published one.
const SOURCES: [&str; 22] = [
    "version",
    "codes",
    "values",
    "events",
    "options",
    "lifecycle",
    "errors",
    "peers",
    "browse",
    "identity",
    "room_code",
    "members",
    "leader",
    "gossip",
    "seeded",
    "etcd",
    "send",
    "transfers",
    "state",
    "stats",
    "simulation",
    "logs",
];
const CLASSIC: [&str; 3] = ["classic/config", "classic/callbacks", "classic"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    describe_abi(&root)?;
    name_shared_library()?;
    Ok(())
}

/// Writes the generated parts of the library to `OUT_DIR` and, with the feature `header`, those for other languages:
/// `tests/header.rs` compares these with the committed files. With `MMN_UPDATE_HEADER` set it also writes the committed
/// files.
fn describe_abi(root: &Path) -> Result<(), Box<dyn Error>> {
    for source in ["build.rs", "cbindgen.toml", "src/ffi", "bindings/generator"] {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-env-changed=MMN_UPDATE_HEADER");
    let folder = root.join("src/ffi");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let abi = generator::Abi::read(&folder, &SOURCES, &CLASSIC)?;
    generator::write_for_rust(&abi, &out)?;
    #[cfg(feature = "header")]
    {
        // Removes files that an earlier build wrote and this one does not.
        let described = out.join("abi");
        if described.exists() {
            fs::remove_dir_all(&described)?;
        }
        let config = cbindgen::Config::from_file(root.join("cbindgen.toml"))?;
        let classic = cbindgen::Config {
            header: None,
            include_guard: None,
            sys_includes: Vec::new(),
            ..config.clone()
        };
        let header = generator::Header {
            library: declarations(config, &folder, &SOURCES)?,
            classic: declarations(classic, &folder, &CLASSIC)?,
        };
        for file in generator::written(&abi, &header)? {
            file.keep(&described)?;
            if env::var_os("MMN_UPDATE_HEADER").is_some() {
                file.update(root)?;
            }
        }
    }
    Ok(())
}

/// The declarations that cbindgen generates from `sources`.
#[cfg(feature = "header")]
fn declarations(
    config: cbindgen::Config,
    folder: &Path,
    sources: &[&str],
) -> Result<String, Box<dyn Error>> {
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in sources {
        builder = builder.with_src(folder.join(source).with_extension("rs"));
    }
    let mut text = Vec::new();
    builder.generate()?.write(&mut text);
    Ok(String::from_utf8(text)?)
}

/// Programs that link the shared library look for it by this name, not by its path at their build.
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
