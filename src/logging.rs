//! The library's log on standard error, switched on and off at any time.
//!
//! One subscriber for the process, installed when logging is first switched on. While logging is off, a log
//! line costs one atomic load: the switch is `tracing`'s own level.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// What is logged while logging is on.
const LEVEL: LevelFilter = LevelFilter::INFO;

/// Whether logging is on. Changed under [`INSTALLED`] only.
static ON: AtomicBool = AtomicBool::new(false);
/// Whether the subscriber has been installed.
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// Switches the log on standard error on or off.
///
/// A process that has set a `tracing` subscriber of its own keeps it, and this has no effect there.
pub(crate) fn enable(on: bool) {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if on && !*installed {
        *installed = true;
        let lines = tracing_subscriber::fmt::layer()
            .without_time()
            .with_ansi(false)
            .with_writer(std::io::stderr)
            // Else a closed standard error makes it panic while it reports that it is closed.
            .log_internal_errors(false);
        let subscriber = tracing_subscriber::registry().with(Switch).with(lines);
        // Fails only where the process has its own subscriber, which then gets the lines.
        let _ = tracing::subscriber::set_global_default(subscriber);
    }
    if ON.swap(on, Ordering::SeqCst) != on && *installed {
        tracing::callsite::rebuild_interest_cache();
    }
}

/// Whether the log is on.
fn is_enabled() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Lets everything up to [`LEVEL`] pass while the log is on, and nothing while it is off.
struct Switch;

impl Switch {
    fn level() -> LevelFilter {
        if is_enabled() {
            LEVEL
        } else {
            LevelFilter::OFF
        }
    }
}

impl<S: Subscriber> Layer<S> for Switch {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if *metadata.level() <= Self::level() {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= Self::level()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(Self::level())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_reaches_the_level_that_a_log_line_asks_first() {
        for on in [true, false, true, false] {
            enable(on);
            assert_eq!(is_enabled(), on);
            assert_eq!(LevelFilter::current(), Switch::level());
            assert_eq!(tracing::enabled!(tracing::Level::INFO), on);
            assert!(!tracing::enabled!(tracing::Level::DEBUG));
        }
    }
}
