//! Whether the traffic of a model yields.

use swell_traffic::Exchange;

use super::Plan;
use crate::kinds::{Data, Part};

impl Plan {
    /// Whether most bytes of a background's model are those of datagrams, which do not slow down.
    pub(crate) fn is_mostly_datagrams(&self, background: &Part) -> bool {
        self.datagram_share(background) > 0.5
    }

    /// Whether a background plays a flow-level model that is mostly datagrams. What is lost of them shows only when it
    /// is measured.
    pub(super) fn plays_datagrams(&self, background: &Part) -> bool {
        let input = self.inputs.get(background.name());
        input.is_some_and(|input| matches!(input.data, Data::Flows(_)))
            && self.is_mostly_datagrams(background)
    }

    /// Share of the bytes of a background's model that datagrams carry; 0 for a background without a model.
    fn datagram_share(&self, background: &Part) -> f64 {
        match self.inputs.get(background.name()).map(|input| &input.data) {
            Some(Data::Flows(model)) => model.datagram_share(),
            Some(Data::Model(model)) => {
                let mut bytes = [0.0; 2];
                for session in &model.sessions {
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
