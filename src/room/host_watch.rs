//! Watches whether the host takes events: a forgotten poll shows in its log.

use std::time::{Duration, Instant};

use crate::config::DispatchMode;
use crate::core::node::HOST_SILENT_AFTER;

/// Shortest interval between two looks.
const INTERVAL: Duration = Duration::from_millis(50);

/// The last look at the host.
#[derive(Debug)]
pub(super) struct HostWatch {
    mode: DispatchMode,
    looked_at: Instant,
    /// Whether the present silence is in the log.
    is_noted: bool,
}

impl HostWatch {
    pub(super) fn new(mode: DispatchMode) -> Self {
        Self {
            mode,
            looked_at: Instant::now(),
            is_noted: false,
        }
    }

    /// Whether a look is due, which counts as one.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.looked_at.elapsed() >= INTERVAL;
        if is_due {
            self.looked_at = Instant::now();
        }
        is_due
    }

    /// A warning for the log, once for each silence that other hosts receive an event for.
    pub(super) fn warning(&mut self, silent: Duration) -> Option<String> {
        let is_silent = silent >= HOST_SILENT_AFTER;
        let was_noted = std::mem::replace(&mut self.is_noted, is_silent);
        let seconds = silent.as_secs();
        (is_silent && !was_noted).then(|| match self.mode {
            DispatchMode::Poll => format!(
                "this room was not polled for {seconds} s, so its callbacks do not run; poll it once per frame, or open it with dispatch_mode 0 (thread)"
            ),
            DispatchMode::Thread => format!(
                "a callback of this room has been running for {seconds} s, and its next events wait for it; let callbacks return at once"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_host_has_one_warning_for_each_silence() {
        let short = HOST_SILENT_AFTER - Duration::from_millis(1);
        for (mode, word) in [
            (DispatchMode::Poll, "was not polled for 5 s"),
            (DispatchMode::Thread, "has been running for 5 s"),
        ] {
            let mut watch = HostWatch::new(mode);
            assert_eq!(watch.warning(short), None);
            for _ in 0..2 {
                let warning = watch.warning(HOST_SILENT_AFTER).expect("silent");
                assert!(warning.contains(word), "{warning}");
                assert_eq!(
                    watch.warning(HOST_SILENT_AFTER * 2),
                    None,
                    "it has it already"
                );
                assert_eq!(watch.warning(Duration::ZERO), None);
            }
        }
    }
}
