//! Writes the ABI for other languages. Its one description is the Rust source in `src/ffi`: `model` reads it, and each
//! other module here generates one language. `build.rs` runs it.
//!
//! The rooms of the bindings, and the functions of structs, are written by hand.

mod c;
mod cpp;
mod csharp;
mod events;
mod groups;
mod java;
mod lua;
mod model;
mod node;
mod python;
mod rust;
mod scripts;
mod table;

use std::error::Error;
use std::fs;
use std::path::Path;

pub(crate) use c::Header;
pub(crate) use model::Abi;

/// Generated text of one committed file.
pub(crate) struct Written {
    /// The file, from the root.
    path: &'static str,
    text: String,
    /// Beginning of a comment in the file's language, if the text is only a part between two marks.
    between: Option<&'static str>,
}

/// Every committed file, as generated from the source. `header` comes from cbindgen.
///
/// # Errors
/// A part of the ABI that one of the languages cannot express.
pub(crate) fn written(abi: &Abi, header: &Header) -> Result<Vec<Written>, Box<dyn Error>> {
    let whole = |path, text| Written {
        path,
        text,
        between: None,
    };
    let part = |path, comment, text| Written {
        path,
        text,
        between: Some(comment),
    };
    let python = python::tables(abi)?;
    Ok(vec![
        whole("include/meta_mystia_network.h", c::header(abi, header)?),
        whole("tests/abi/exports.txt", c::exports(abi)),
        whole("tests/abi/tables.h", c::test_tables(abi)),
        whole(
            "bindings/csharp/NativeMethods.cs",
            csharp::native_methods(abi)?,
        ),
        whole("bindings/csharp/RoomEvents.cs", csharp::room_events(abi)?),
        whole(
            "bindings/java/com/metamystia/network/NativeMethods.java",
            java::native_methods(abi)?,
        ),
        whole(
            "bindings/java/com/metamystia/network/Event.java",
            java::events(abi)?,
        ),
        whole("bindings/lua/meta_mystia_network_raw.lua", lua::raw(abi)?),
        whole("bindings/node/meta_mystia_network_raw.cjs", node::raw(abi)?),
        part(
            "bindings/python/meta_mystia_network/__init__.py",
            "#",
            python,
        ),
        part(
            "bindings/cpp/meta_mystia_network.hpp",
            "//",
            cpp::codes(abi) + &cpp::events(abi)?,
        ),
    ])
}

impl Written {
    /// Writes the text into `folder`, for the test that compares it with the committed file.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn keep(&self, folder: &Path) -> Result<(), Box<dyn Error>> {
        let path = folder.join(self.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, self.marked())?;
        Ok(())
    }

    /// Updates the committed file under `root`.
    ///
    /// # Errors
    /// A file that cannot be read or written, that has lost its marks, or an export that vanished.
    pub(crate) fn update(&self, root: &Path) -> Result<(), Box<dyn Error>> {
        let path = root.join(self.path);
        let committed = fs::read_to_string(&path).unwrap_or_default();
        if self.path.ends_with("exports.txt") {
            c::check_exports(&committed, &self.text)?;
        }
        let text = match self.between {
            None => self.text.clone(),
            Some(comment) => {
                let (begin, end) = marks(comment);
                committed
                    .split_once(&begin)
                    .and_then(|(before, rest)| {
                        let (_, after) = rest.split_once(&end)?;
                        Some([before, &self.marked(), after].concat())
                    })
                    .ok_or_else(|| format!("{} has lost its marks: {begin}{end}", self.path))?
            }
        };
        fs::write(path, text)?;
        Ok(())
    }

    /// The text, with its marks if it has any.
    fn marked(&self) -> String {
        let Some(comment) = self.between else {
            return self.text.clone();
        };
        let (begin, end) = marks(comment);
        [&begin, self.text.as_str(), &end].concat()
    }
}

fn marks(comment: &str) -> (String, String) {
    (
        format!("{comment} -- Generated from src/ffi by `make header`: do not edit.\n"),
        format!("{comment} -- End of what is generated.\n"),
    )
}

/// The files that the library and its tests include: the result codes, calls of every function, and the fields of events.
///
/// # Errors
/// A file that cannot be written, or a parameter that the tests have no value for.
pub(crate) fn write_for_rust(abi: &Abi, out: &Path) -> Result<(), Box<dyn Error>> {
    fs::write(out.join("codes.rs"), rust::codes(abi))?;
    fs::write(out.join("calls.rs"), rust::calls(abi)?)?;
    fs::write(out.join("sequences.rs"), rust::sequences(abi)?)?;
    fs::write(out.join("event_fields.rs"), rust::event_fields(abi))?;
    Ok(())
}
