//! The library that cargo built with a test.

use std::path::PathBuf;

const LIBRARY: &str = "libmeta_mystia_network.so";

/// The newest shared library beside this test or above it, where cargo puts it.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let directories: Vec<_> = test.ancestors().skip(1).take(2).collect();
    directories
        .iter()
        .map(|directory| directory.join(LIBRARY))
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .max()
        .map(|(_, path)| path)
        .unwrap_or_else(|| {
            panic!("no {LIBRARY} in {directories:?}: run `cargo build` with the same profile first")
        })
}
