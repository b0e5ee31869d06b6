//! Backgrounds with additional energy at one timescale.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::Dur;
use swell_stats::energies;
use swell_workload::{Clock, Packets};

use crate::file::findings::{Findings, Slot};

/// More energy at one timescale, at the same mean rate: the speed at which a background begins things goes up and down.
/// Packets that depend on nothing get this energy exactly. Users begin sessions and think by it, but transfers take
/// what the network gives: at timescales shorter than transfers take they get less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// The timescale, an octave of a log-scale diagram of milliseconds: 2ms, 4ms, 8ms and so on to 16384ms.
    pub at: Dur,
    /// By how much energy rises there, dB: 6 is four times as much.
    pub db: f64,
}

/// Wavelets of three vanishing moments, as in reports.
const VANISHING: usize = 3;

/// The timescale is octave 4 of the bins, so it consists of 2^4 bins.
const OCTAVE: u32 = 4;

/// Maximum number of bins from which a variance is estimated, 8 bytes each.
const BINS: usize = 20_000_000;

impl Energy {
    /// The shortest run with energy at this timescale.
    pub(crate) fn shortest(self) -> Dur {
        self.at * u64::from(Clock::TURNS)
    }

    /// Rejects timescales that are not an octave, and energy of a part that sends in windows.
    pub(crate) fn check(&self, at: &Slot<'_>, windows: bool, found: &mut Findings) {
        if windows {
            found.add(
                at.key("energy"),
                format!(
                    "a {} that sends in windows has no one timescale",
                    at.role.word()
                ),
                "leave `active` or `energy` out",
            );
        }
        if !(1..=14).any(|k| self.at == Dur::from_millis(1 << k)) {
            found.add(
                at.key("energy.at"),
                format!("{} is no octave", self.at),
                "write 1 ms times a power of two, from 2ms to 16384ms",
            );
        }
        if !(self.db > 0.0 && self.db <= 40.0) {
            found.add(
                at.key("energy.db"),
                format!("energy cannot be raised by {} dB", self.db),
                "write more than 0 and at most 40",
            );
        }
    }
}

/// The contribution of the octave at this timescale to the variance of the bytes of `packets` in a time of `length`,
/// over their squared mean. Of a longer time than [`BINS`] bins its beginning counts. `None` if the time is too short.
pub(super) fn variance(packets: &Packets, length: Dur, timescale: Dur) -> Option<f64> {
    let bin = (timescale / (1 << OCTAVE)).max(Dur::from_nanos(1));
    let bins = usize::try_from(length.as_nanos() / bin.as_nanos()).map_or(BINS, |n| n.min(BINS));
    let mut bytes = vec![0.0; bins];
    for &(at, size) in packets.iter() {
        let place = usize::try_from(at.as_nanos() / bin.as_nanos()).unwrap_or(bins);
        if let Some(own) = bytes.get_mut(place) {
            *own += f64::from(size);
        }
    }
    let mean = bytes.iter().sum::<f64>() / bins as f64;
    let octave = energies(&bytes, VANISHING);
    let energy = octave.get(OCTAVE as usize - 1)?.energy;
    of_octave(energy, OCTAVE, mean)
}

/// The same from the energy of octave `j`; `mean` is that of a bin.
pub(super) fn of_octave(energy: f64, j: u32, mean: f64) -> Option<f64> {
    let variance = energy / f64::from(1u32.checked_shl(j)?) / (mean * mean);
    variance.is_finite().then_some(variance)
}
