//! The room that the calling thread works for: log records name it.

use std::cell::Cell;

thread_local! {
    /// The number of the room, or 0.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// The number of the calling thread's room, or 0.
pub(crate) fn number() -> u64 {
    // A thread that is ending has no room.
    NUMBER.try_with(Cell::get).unwrap_or(0)
}

/// Sets the room of the calling thread; returns the one before.
pub(crate) fn set(number: u64) -> u64 {
    NUMBER
        .try_with(|present| present.replace(number))
        .unwrap_or(0)
}
