//! Rates of backgrounds: their targets, and the native rates of their models.

use std::collections::BTreeMap;

use super::Plan;
use crate::backend::RunSpec;
use crate::file::RateSpec;
use crate::kinds::{MOST_COPIES, Native, Pace, Part, significant};
use crate::observe::Cell;
use crate::store::Measured;

impl Plan {
    /// The target of a background that is scaled to a rate: its mean rate in the down direction, bits per second.
    pub(crate) fn target_bps(
        &self,
        background: &Part,
        measured: &BTreeMap<String, Measured>,
    ) -> Option<f64> {
        if !background.is_scaled() {
            return None;
        }
        let target = match background.rate()? {
            RateSpec::Fixed(rate) => Some(rate.bps() as f64),
            RateSpec::Match(name) => {
                let taken = self.file.taken(background, measured);
                taken.get(name).map(|m| m.down_bps)
            }
        };
        // Packets may flow up only. Then there is nothing to scale.
        target.filter(|&bps| bps > 0.0)
    }

    /// The multiple of its sessions, of its speed or of its rate with which the calibration of a background begins: what
    /// offers its target, or what the file says. `None` if it has no such multiple.
    pub(crate) fn first_pace(
        &self,
        background: &Part,
        measured: &BTreeMap<String, Measured>,
    ) -> Option<f64> {
        let native = self.native_bps(background, measured);
        match self.target_bps(background, measured) {
            Some(target) if native > 0.0 => Some(target / native),
            _ => background.keys().pace().given(),
        }
    }

    /// Rejects a background that cannot be scaled to its rate: it would be played at its own. The reason names it.
    pub(crate) fn scalable(
        &self,
        background: &Part,
        measured: &BTreeMap<String, Measured>,
    ) -> Result<(), String> {
        let pace = background.keys().pace();
        if !background.is_scaled() || pace == Pace::Factor {
            return Ok(());
        }
        let (name, native) = (background.name(), self.native_bps(background, measured));
        let Some(target) = self.target_bps(background, measured) else {
            return match background.matches() {
                Some(other) if measured.contains_key(other) => Err(format!(
                    "`{name}` takes the rate of `{other}`, which carries nothing down: let it match another background, or give it a rate"
                )),
                _ => Ok(()),
            };
        };
        if native <= 0.0 {
            return Err(format!(
                "`{name}` sends nothing down in a run: no number of sessions and no speed makes it a rate (`first` begins with another interval of a flow-level model)"
            ));
        }
        match pace {
            Pace::Sessions(_) if target / native > MOST_COPIES => Err(format!(
                "the model of `{name}` is too small for {} Mbit/s: its sessions are {} Mbit/s down in a run, and {:.0} copies of them would be needed; at most {MOST_COPIES} are made, or as many as `sessions` says",
                significant(target / 1e6),
                significant(native / 1e6),
                target / native
            )),
            _ => Ok(()),
        }
    }

    /// The first background that cannot be scaled to the rate in the file: its index, and the reason.
    pub(super) fn unscalable(&self) -> Option<(usize, String)> {
        let none = BTreeMap::new();
        let all = self.file.background.iter().enumerate();
        // Those that are learnt from others have no rate of their own yet.
        let mut known = all.filter(|(_, b)| b.keys().imitates().is_none());
        known.find_map(|(i, b)| Some((i, self.scalable(b, &none).err()?)))
    }

    /// The specification of a run without calibration: as many sessions as offer the rates that the file asks for. On a
    /// link that fills they carry less. `None` if the cell is not of this plan.
    ///
    /// # Errors
    /// If a background takes its rate from another one, which only a calibration measures.
    pub fn spec_as_offered(&self, cell: &Cell) -> Result<Option<RunSpec>, String> {
        let none = BTreeMap::new();
        let mut offered = BTreeMap::new();
        let background = self.file.background.iter();
        let background = background.filter(|b| b.name() == cell.background);
        for leaf in background.flat_map(|b| self.file.leaves(b)) {
            if let Some(other) = leaf.matches() {
                return Err(format!(
                    "background `{}` takes its rate from `{other}`, which only `swell run` measures",
                    leaf.name()
                ));
            }
            let native = self.native_bps(leaf, &none);
            if let Some(target) = self.target_bps(leaf, &none)
                && native > 0.0
            {
                let sessions = Measured {
                    down_bps: target,
                    sessions: Some(target / native),
                    ..Measured::default()
                };
                offered.insert(leaf.name().to_owned(), sessions);
            }
        }
        Ok(self.spec(cell, &offered))
    }

    /// The unscaled mean rate in the down direction, bits per second: of a model or trace with the parameters in the
    /// file, or of packets as specified in the file; zero if it has none. Of a flow-level model, of the intervals that a
    /// run plays after its warm-up.
    pub fn native_bps(&self, background: &Part, measured: &BTreeMap<String, Measured>) -> f64 {
        background.keys().native_bps(&Native {
            input: self.inputs.get(background.name()).map(|i| &i.data),
            measured: &self.file.taken(background, measured),
            seed: self.seed(0),
            counted: [self.file.run.warmup, self.file.run.duration],
        })
    }
}
