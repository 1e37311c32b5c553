//! A simulated bad network, as a developer sets it.

use std::time::Duration;

use thiserror::Error;

use crate::error::{Code, Coded};
use crate::quoted::Quoted;

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

/// The networks that have names: lag and jitter in ms, and loss in a thousand, of what each member sends.
const PRESETS: [(&str, [u32; 3]); 5] = [
    ("none", [0, 0, 0]),
    ("home", [12, 6, 2]),
    ("mobile", [40, 30, 10]),
    ("bad-wifi", [5, 90, 40]),
    ("satellite", [300, 20, 10]),
];

impl SimulatedNetwork {
    /// # Errors
    /// [`SimulationError::Preset`]: no network has this name.
    pub fn preset(name: &str) -> Result<Self, SimulationError> {
        let preset = PRESETS.iter().find(|(known, _)| *known == name);
        let (_, [lag, jitter, loss_permille]) =
            *preset.ok_or_else(|| SimulationError::Preset(name.to_owned()))?;
        Ok(Self {
            lag: Duration::from_millis(lag.into()),
            jitter: Duration::from_millis(jitter.into()),
            loss_permille,
        })
    }

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
#[derive(Debug, Clone, PartialEq, Eq, Error)]
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
    /// A name that no network has.
    #[error("preset {} is unknown; give {}", Quoted(.0), names())]
    Preset(String),
}

fn names() -> String {
    PRESETS.map(|(name, _)| name).join(", ")
}

impl Coded for SimulationError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_within_the_limits() {
        for (name, values) in PRESETS {
            let network = SimulatedNetwork::preset(name).expect("a preset");
            network.check().expect("within the limits");
            let is_none = network == SimulatedNetwork::default();
            assert_eq!(is_none, values == [0, 0, 0], "{name}");
        }
    }

    #[test]
    fn an_unknown_preset_is_an_error_that_names_the_known_ones() {
        let error = SimulatedNetwork::preset("Mobile").expect_err("no preset");
        let text = "preset \"Mobile\" is unknown; give none, home, mobile, bad-wifi, satellite";
        assert_eq!(error.to_string(), text);
    }
}
