//! Whether the traffic of a background yields.

use std::collections::BTreeMap;

use swell_traffic::Exchange;

use super::Plan;
use crate::kinds::{Data, Part};
use crate::store::Measured;

impl Plan {
    /// Whether a background does not slow down, or most of its bytes do not: those of datagrams in its model, or of such
    /// parts of a mix. `measured` has the rates of the parts.
    pub(crate) fn is_unyielding(
        &self,
        background: &Part,
        measured: &BTreeMap<String, Measured>,
    ) -> bool {
        let [mut unyielding, mut all] = [0.0; 2];
        for leaf in self.file.leaves(background) {
            let share = match leaf.is_open_loop() {
                true => 1.0,
                false => self.datagram_share(leaf),
            };
            // The rate of a single background does not matter.
            let rate = match background.parts().is_empty() {
                true => 1.0,
                false => self.both_bps(leaf, measured),
            };
            // It takes what the network gives, so it yields, and may be most of the mix.
            if rate <= 0.0 && !leaf.is_open_loop() {
                return false;
            }
            unyielding += share * rate;
            all += rate;
        }
        unyielding > 0.5 * all
    }

    /// The rate of a background in both directions, measured alone or as its keys say, bits per second; zero if it is not
    /// known. A model that was not measured counts with its down direction only.
    fn both_bps(&self, background: &Part, measured: &BTreeMap<String, Measured>) -> f64 {
        let known = measured.get(background.name());
        let rates = known.map(|m| [m.up_bps, m.down_bps]);
        let [up, down] = rates
            .or_else(|| background.fixed_bps(&self.file.taken(background, measured)))
            .unwrap_or_else(|| {
                let copies = background.keys().pace().given().unwrap_or(1.0);
                [0.0, self.native_bps(background, measured) * copies]
            });
        up + down
    }

    /// Whether most bytes of a background's model are those of datagrams, which do not slow down. What is lost of them
    /// shows only when it is measured.
    pub(super) fn plays_datagrams(&self, background: &Part) -> bool {
        self.datagram_share(background) > 0.5
    }

    /// Share of the bytes of a background's model that datagrams carry; 0 for a background without a model.
    fn datagram_share(&self, background: &Part) -> f64 {
        match self.inputs.get(background.name()).map(|input| &input.data) {
            Some(Data::Flows(model)) => model.datagram_share(),
            Some(Data::Model(model)) => {
                let mut bytes = [0.0; 2];
                for session in &model.model.sessions {
                    for connection in session.connections() {
                        let datagrams = matches!(connection.exchange, Exchange::Datagrams(_));
                        let both: f64 = connection.exchange.bytes().iter().map(|&b| b as f64).sum();
                        bytes[usize::from(datagrams)] += session.weight * both;
                    }
                }
                bytes[1] / (bytes[0] + bytes[1]).max(1.0)
            }
            _ => 0.0,
        }
    }
}
