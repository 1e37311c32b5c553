//! Two books of transfers, without links.
