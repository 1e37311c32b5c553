//! Limit on the reports of a transfer's progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::core::event::Receipt;

/// Interval between two reports of a transfer.
const INTERVAL: Duration = Duration::from_millis(100);

/// The reports of one transfer: at most ten a second, and one that the host has not received.
#[derive(Default)]
pub(super) struct Progress {
    last: Option<Instant>,
    waits: Arc<AtomicBool>,
}

impl Progress {
    /// The receipt of a report, if one is due now.
    pub(super) fn due(&mut self, now: Instant) -> Option<Receipt> {
        let rests = self
            .last
            .is_some_and(|last| now.saturating_duration_since(last) < INTERVAL);
        if rests || self.waits.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.last = Some(now);
        Some(Receipt::new(Waiting(Arc::clone(&self.waits))))
    }
}

/// A report that the host has not received.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
