//! Log lines on standard error. No line above [`Level::Debug`] names an address.

use std::fmt::{self, Arguments};

/// Importance of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// The relay cannot do what it should.
    Error,
    /// Something that the one who runs it can change.
    Warn,
    /// Starts, ends, and what has changed.
    #[default]
    Info,
    /// Every link, with its address.
    Debug,
}

impl Level {
    /// All levels with their names.
    pub const ALL: [(Self, &str); 4] = [
        (Self::Error, "error"),
        (Self::Warn, "warn"),
        (Self::Info, "info"),
        (Self::Debug, "debug"),
    ];

    /// The level of that name.
    pub fn parse(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(level, _)| *level)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[*self as usize].1)
    }
}

/// Writes a line if `level` is wanted.
pub(crate) fn log(wanted: Option<Level>, level: Level, line: Arguments<'_>) {
    if wanted.is_some_and(|wanted| level <= wanted) {
        eprintln!("{level}: {line}");
    }
}
