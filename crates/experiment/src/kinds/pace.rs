//! What calibration changes.

use crate::store::Measured;

/// The parameter that calibration changes to reach a rate, with its value in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// The number of its sessions, as a multiple of the model's.
    Sessions(f64),
    /// The speed of a replay.
    Speed(f64),
    /// A factor on the rate in the file. Needed only if the rate means the carried load.
    Factor,
}

impl Pace {
    /// The value in the file.
    pub fn given(self) -> Option<f64> {
        match self {
            Pace::Sessions(given) | Pace::Speed(given) => Some(given),
            Pace::Factor => None,
        }
    }

    /// The field for the result of the calibration.
    pub fn place(self, measured: &mut Measured) -> &mut Option<f64> {
        match self {
            Pace::Sessions(_) => &mut measured.sessions,
            Pace::Speed(_) => &mut measured.speed,
            Pace::Factor => &mut measured.factor,
        }
    }
}
