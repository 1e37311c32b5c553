//! A simulated bad network, as a developer sets it.

use std::time::Duration;

use thiserror::Error;

use crate::error::{Code, Coded};

/// Longest lag, and longest jitter.
pub const MAX_SIMULATED_DELAY: Duration = Duration::from_secs(10);
/// A loss of every packet, in thousandths.
pub const ALL_LOST: u32 = 1000;

/// Treatment of each packet that this node sends. The default changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimulatedNetwork {
    /// Delay of every packet, to the millisecond.
    pub lag: Duration,
    /// Limit of a random delay on top of the lag, to the millisecond; packets may overtake each
    /// other.
    pub jitter: Duration,
    /// Number of packets in a thousand that are lost.
    pub loss_permille: u32,
}

impl SimulatedNetwork {
    /// # Errors
    /// [`SimulationError`]: a value above its limit.
    pub fn check(self) -> Result<(), SimulationError> {
        for (name, value) in [("lag_ms", self.lag), ("jitter_ms", self.jitter)] {
            if value > MAX_SIMULATED_DELAY {
                return Err(SimulationError::Delay { name, value });
            }
        }
        if self.loss_permille > ALL_LOST {
            return Err(SimulationError::Loss(self.loss_permille));
        }
        Ok(())
    }
}

/// Why no network is simulated. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SimulationError {
    /// A delay above its limit.
    #[error("{name} is {}; at most {}", value.as_millis(), MAX_SIMULATED_DELAY.as_millis())]
    Delay {
        /// The name of the delay.
        name: &'static str,
        /// Its value.
        value: Duration,
    },
    /// More than all packets.
    #[error("loss_permille is {0}; at most {ALL_LOST}")]
    Loss(u32),
}

impl Coded for SimulationError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }
}
