//! What a background offers, before it runs.

use swell_base::Dur;
use swell_workload::Packets;

use super::build::{learnt, on_off_packets, phase};
use crate::backend::{BackgroundSpec, Offered, RunError, RunSpec};

/// What the background of `run` offers, where that is known before it runs.
pub(super) fn offered(run: &RunSpec) -> Result<Option<Offered>, RunError> {
    let (from, to) = (run.warmup, run.duration);
    let seconds = (to.saturating_sub(from)).as_secs_f64().max(1e-9);
    let always = |rates: [f64; 2]| Offered {
        mean: rates,
        drawn: rates,
    };
    Ok(match &run.background {
        // A flow-level model says what its files hold and not what carries them.
        BackgroundSpec::None | BackgroundSpec::Greedy(_) | BackgroundSpec::Sessions { .. } => None,
        BackgroundSpec::Parametric(p) => Some(always(p.rates.map(|r| r.bps() as f64))),
        BackgroundSpec::Learnt { model, knobs, .. } => {
            let (played, schedule, network) = learnt(run, model, knobs)?;
            let volume = schedule.volume(&played, &network, from, to);
            Some(Offered {
                mean: played.rates().map(|bps| bps * knobs.sessions),
                drawn: volume.map(|bytes| bytes * 8.0 / seconds),
            })
        }
        BackgroundSpec::Replay {
            replay,
            trace,
            stretch,
        } => {
            let phase = replay.phase.unwrap_or_else(|| phase(trace, run.cell.seed));
            let at = |t: Dur| phase + t.scale(1.0 / stretch);
            let drawn = trace.packets.each_ref().map(|way| {
                let until = |t| until(way, t, (!replay.once).then_some(trace.period));
                (until(at(to)) - until(at(from))) * 8.0 / seconds
            });
            let mean = trace.bps().map(|bps| bps / stretch);
            Some(Offered { mean, drawn })
        }
        BackgroundSpec::OnOff(own) => {
            let ways = on_off_packets(own, to, run.cell.seed)?;
            let drawn =
                ways.map(|way| (until(&way, to, None) - until(&way, from, None)) * 8.0 / seconds);
            let mean = [own.rate_up, own.rate.fixed()].map(|r| r.bps() as f64);
            Some(Offered { mean, drawn })
        }
    })
}

/// Bytes of packets before `t`, which begin again after each `period`.
fn until(packets: &Packets, t: Dur, period: Option<Dur>) -> f64 {
    let sum = |before: Dur| -> f64 {
        let of = packets.iter().take_while(|p| p.0 < before);
        of.map(|p| f64::from(p.1)).sum()
    };
    match period.map(Dur::as_nanos) {
        Some(ns) if ns > 0 => {
            let rounds = t.as_nanos() / ns;
            rounds as f64 * sum(Dur::from_nanos(ns)) + sum(Dur::from_nanos(t.as_nanos() % ns))
        }
        _ => sum(t),
    }
}
