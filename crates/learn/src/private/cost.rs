//! The cost of privacy: how far a released model is from the learnt one.

use swell_base::Dur;
use swell_traffic::{Exchange, Knobs, Marginals, Model, Network, Quantity, Schedule};

/// The quantities to compare.
const QUANTITIES: [Quantity; 6] = [
    Quantity::ConnectionBytes,
    Quantity::ServerThink,
    Quantity::ClientThink,
    Quantity::GroupThink,
    Quantity::ClientRtt,
    Quantity::ServerRtt,
];
/// Bins of the load: a tenth of a second, wider for long traces.
const BIN: u64 = 100_000_000;
const MOST_BINS: u64 = 36_000;
/// Vanishing moments of the wavelet.
const MOMENTS: usize = 3;

/// How far a released model is from the learnt one. It is computed from the trace without noise, so only
/// the holder of the trace may see it. It is not part of any model.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Wasserstein distances of the binary logarithms, in octaves, of quantities that both models have.
    pub octaves: Vec<(Quantity, f64)>,
    /// Difference of the energies of the offered load over an ideal network: mean over the octaves from
    /// 0.2 s to an eighth of the trace, dB.
    pub decibels: f64,
    /// Sessions, and application bytes, as ratios to those of the learnt model.
    pub sessions: f64,
    /// See `sessions`.
    pub bytes: f64,
}

impl Cost {
    /// The cost of `released`, which was made from `learnt`.
    pub fn of(learnt: &Model, released: &Model) -> Cost {
        let all = Marginals::of(learnt).distances(&Marginals::of(released));
        let octaves = all
            .into_iter()
            .filter(|d| d.class.is_empty() && QUANTITIES.contains(&d.quantity))
            .filter_map(|d| Some((d.quantity, d.octaves?)))
            .collect();
        let [a, b] = [learnt, released].map(energies);
        let apart: Vec<f64> = a
            .iter()
            .zip(&b)
            .map(|(x, y)| (x - y).abs() * 10.0 * std::f64::consts::LOG10_2)
            .filter(|d| d.is_finite())
            .collect();
        let ratio = |of: fn(&Model) -> f64| of(released) / of(learnt);
        Cost {
            octaves,
            decibels: apart.iter().sum::<f64>() / apart.len().max(1) as f64,
            sessions: ratio(|m| m.sessions.iter().map(|s| s.weight).sum()),
            bytes: ratio(|m| {
                let bytes = |s: &swell_traffic::Session| {
                    s.bytes().map(|sum| sum as f64).iter().sum::<f64>()
                };
                m.sessions.iter().map(|s| s.weight * bytes(s)).sum()
            }),
        }
    }
}

/// Binary logarithms of the energies of a model's offered load, by octave.
fn energies(model: &Model) -> Vec<f64> {
    let duration = model.duration.as_nanos();
    let width = BIN.max(duration / MOST_BINS).max(1);
    let mut bins = vec![0.0; (duration / width) as usize + 1];
    let knobs = Knobs {
        phase: Some(Dur::ZERO),
        ..Knobs::default()
    };
    let Ok(schedule) = Schedule::draw(model, &knobs, 1, model.duration, &Network::default()) else {
        return Vec::new();
    };
    for start in &schedule.starts {
        let session = &model.sessions[start.session as usize];
        let mut at = start.at.as_nanos();
        let mut put = |when: u64, bytes: u64| {
            if let Some(bin) = bins.get_mut((when / width) as usize) {
                *bin += bytes as f64;
            }
        };
        for group in &session.groups {
            at = at.saturating_add(group.think.as_nanos());
            let (mut begin, mut end) = (at, at);
            for c in &group.connections {
                begin = begin.saturating_add(c.gap.as_nanos());
                let mut now = begin;
                match &c.exchange {
                    Exchange::Sequential(turns) => {
                        for t in turns {
                            put(now, t.request);
                            now = now.saturating_add(t.server_think.as_nanos());
                            put(now, t.response);
                            now = now.saturating_add(t.client_think.as_nanos());
                        }
                    }
                    Exchange::Concurrent { up, down } => {
                        for chain in [up, down] {
                            now = begin;
                            for u in chain {
                                now = now.saturating_add(u.pause.as_nanos());
                                put(now, u.bytes);
                            }
                        }
                    }
                    Exchange::Attempt { .. } => {}
                    Exchange::Datagrams(d) => {
                        // A flow may be listed packet by packet in one model and in wider runs in the
                        // other.
                        for runs in &d.runs {
                            now = begin;
                            for run in runs {
                                now = now.saturating_add(run.pause.as_nanos());
                                spread(now, run.span.as_nanos(), run.bytes, width, &mut put);
                                now = now.saturating_add(run.span.as_nanos());
                            }
                        }
                        now = begin;
                        for &(pause, _, bytes) in &d.packets {
                            now = now.saturating_add(pause.as_nanos());
                            put(now, u64::from(bytes));
                        }
                    }
                }
                end = end.max(begin.saturating_add(c.awaited_pauses().as_nanos()));
            }
            at = end;
        }
    }
    let octaves = swell_stats::energies(&bins, MOMENTS);
    octaves.iter().map(|o| o.y()).collect()
}

/// Spreads bytes evenly over a span.
fn spread(at: u64, span: u64, bytes: u64, width: u64, put: &mut impl FnMut(u64, u64)) {
    let n = (span / width).clamp(1, MOST_BINS);
    for i in 0..n {
        let upto = |part: u64| (u128::from(bytes) * u128::from(part) / u128::from(n)) as u64;
        put(at.saturating_add(i * (span / n)), upto(i + 1) - upto(i));
    }
}
