//! The rates of backgrounds: what they are to have, and what models have.

use std::collections::BTreeMap;

use super::Plan;
use crate::file::RateSpec;
use crate::kinds::Part;
use crate::store::Measured;

impl Plan {
    /// The mean rate of the down direction that a background is to have, bits per second, where it is
    /// scaled to one.
    pub(crate) fn target_bps(
        &self,
        background: &Part,
        measured: &BTreeMap<String, Measured>,
    ) -> Option<f64> {
        if !background.is_scaled() {
            return None;
        }
        match background.rate()? {
            RateSpec::Fixed(rate) => Some(rate.bps() as f64),
            RateSpec::Match(name) => measured.get(name).map(|m| m.down_bps),
        }
    }

    /// The mean rate in the down direction of a model or trace itself, with the file's knobs, or of packets
    /// as the file has them, bits per second; zero where it has none.
    pub fn native_bps(&self, background: &Part, measured: &BTreeMap<String, Measured>) -> f64 {
        let input = self.inputs.get(background.name());
        let keys = background.as_keys();
        keys.native_bps(input.map(|i| &i.data), measured, self.seed(0))
    }
}
