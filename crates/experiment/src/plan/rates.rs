//! The rates of backgrounds: what they are to have, and what models have.

use std::collections::BTreeMap;

use swell_base::Rate;
use swell_traffic::Model;

use super::{Complaint, Plan, knobs};
use crate::file::{self, Background, Learnt, Pairing, RateSpec};
use crate::store::Measured;

impl Plan {
    /// The mean rate of the down direction that a background is to have, bits per second, where it is
    /// scaled to one.
    pub(crate) fn target_bps(
        &self,
        background: &Background,
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
    pub fn native_bps(
        &self,
        background: &Background,
        measured: &BTreeMap<String, Measured>,
    ) -> f64 {
        let name = background.name();
        match background {
            Background::None(_) | Background::Greedy(_) => 0.0,
            Background::Learnt(b) => {
                let loaded = self.models.get(name);
                loaded.map_or(0.0, |l| native(b, &l.model, self.seed(0)))
            }
            Background::Sessions(_) => {
                let loaded = self.flow_models.get(name);
                loaded.map_or(0.0, |l| l.model.payload_rates()[1])
            }
            Background::Replay(_) => self.traces.get(name).map_or(0.0, |l| l.trace.bps()[1]),
            Background::Poisson(_) | Background::Cbr(_) | Background::OnOff(_) => {
                match background.rate() {
                    Some(RateSpec::Fixed(rate)) => rate.bps() as f64,
                    Some(RateSpec::Match(other)) => measured.get(other).map_or(0.0, |m| m.down_bps),
                    None => 0.0,
                }
            }
        }
    }
}

/// `pace` times as much.
pub(super) fn times(rate: Rate, pace: Option<f64>) -> Rate {
    pace.map_or(rate, |k| Rate::from_bps_f64(rate.bps() as f64 * k))
}

/// The mean rates up and down of packets, with those of the background that they match.
pub(super) fn matched(
    b: &file::Parametric,
    measured: &BTreeMap<String, Measured>,
    replication: usize,
) -> [Rate; 2] {
    let [up, down] = match &b.rate {
        RateSpec::Fixed(rate) => [Rate::default(), *rate],
        RateSpec::Match(name) => measured.get(name).map_or([Rate::default(); 2], |m| {
            let own = match b.pairing {
                Pairing::Mean => None,
                Pairing::PerSeed => m.each(replication),
            };
            own.unwrap_or([m.up_bps, m.down_bps])
                .map(Rate::from_bps_f64)
        }),
    };
    [b.rate_up.unwrap_or(up), down]
}

/// The mean rate of `model` in the down direction with the file's knobs, bits per second.
pub(super) fn native(learnt: &Learnt, model: &Model, seed: u64) -> f64 {
    model.varied(&knobs(learnt, Some(1.0)), seed).rates()[1]
}

/// More copies of a model's sessions than this are not traffic of that rate any more: a few sessions, over
/// and over.
const MOST_COPIES: f64 = 100.0;

/// Refuses a rate that a model is too small for.
pub(super) fn too_small(learnt: &Learnt, model: &Model, seed: u64) -> Option<Complaint> {
    let Some(RateSpec::Fixed(rate)) = learnt.rate else {
        return None;
    };
    let (own, rate) = (native(learnt, model, seed), rate.bps() as f64);
    let copies = rate / own.max(1e-9);
    let sessions = model.sessions.len();
    (copies > MOST_COPIES).then(|| {
        (
            format!(
                "`{}` is too small for {:.3} Mbit/s: its {sessions} sessions are {:.4} Mbit/s down, and {copies:.0} copies of them would be needed",
                learnt.model,
                rate / 1e6,
                own / 1e6
            ),
            Some(format!(
                "learn from a busier link; at most {MOST_COPIES} copies are made, or as many as `sessions` says"
            )),
        )
    })
}
