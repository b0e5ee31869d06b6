//! Rates of backgrounds: their targets, and the native rates of their models.

use std::collections::BTreeMap;

use super::Plan;
use crate::file::RateSpec;
use crate::kinds::Part;
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
            RateSpec::Match(name) => measured.get(name).map(|m| m.down_bps),
        };
        // Packets may flow up only. Then there is nothing to scale.
        target.filter(|&bps| bps > 0.0)
    }

    /// The unscaled mean rate in the down direction, bits per second: of a model or trace with the parameters in the
    /// file, or of packets as specified in the file; zero if it has none.
    pub fn native_bps(&self, background: &Part, measured: &BTreeMap<String, Measured>) -> f64 {
        let input = self.inputs.get(background.name());
        let keys = background.as_keys();
        keys.native_bps(input.map(|i| &i.data), measured, self.seed(0))
    }
}
