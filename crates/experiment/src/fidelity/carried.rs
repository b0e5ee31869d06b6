//! Whether a model carries as much as its trace. Quick enough for every model that is learnt.

use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Dur, Packet, Rate, Time};
use swell_traffic::{DrawError, Model, Network, Schedule};
use swell_world::{Parties, Tap};

use super::play::{Playback, play};

/// Bytes of a trace and of its model's playback, in both directions together, over the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// Network-layer bytes that the trace has in flows.
    pub recorded: f64,
    /// Network-layer bytes that the model plays on an otherwise empty link.
    pub played: f64,
    /// From the beginning of the trace until then.
    pub over: Dur,
}

/// Plays the first `packets` packets of a trace, or all if there are fewer. `None` if the model has no record of the
/// trace's load, or keeps only a sample of its sessions, whose load depends on the draw.
///
/// # Errors
/// If no schedule can be drawn.
pub fn carried(model: &Model, packets: u64) -> Result<Option<Carried>, DrawError> {
    let bin = model.load.bin;
    let bins: Vec<u64> = {
        let [up, down] = &model.load.bytes;
        let longer = up.len().max(down.len());
        let at = |way: &[u64], i: usize| way.get(i).copied().unwrap_or(0);
        (0..longer).map(|i| at(up, i) + at(down, i)).collect()
    };
    let all: f64 = model.totals.bytes.iter().map(|&b| b as f64).sum();
    if bin == Dur::ZERO || all <= 0.0 || model.provenance.thinning.is_some() {
        return Ok(None);
    }
    let total: u64 = model.totals.packets.iter().sum();
    let wanted = all * (packets as f64 / total.max(1) as f64);
    let (mut sum, mut taken) = (0.0, 0);
    for &bytes in &bins {
        if taken > 0 && sum >= wanted {
            break;
        }
        sum += bytes as f64;
        taken += 1;
    }
    let over = bin
        .scale(taken as f64)
        .min(model.duration)
        .max(Dur::from_micros(1));
    let modelled = 1.0 - model.totals.unmodelled_bytes as f64 / all;
    let most = bins.iter().copied().max().unwrap_or(0) as f64 * 8.0 / bin.as_secs_f64();
    // A link that limits nothing.
    let rate = Rate::from_bps_f64((4.0 * most).max(Playback::default().rate.bps() as f64));
    let network = Network::default();
    let knobs = Playback::default().knobs;
    let schedule = Schedule::cold(model, &knobs, 1, over, &network)?;
    let schedule = Schedule {
        lasting: Vec::new(),
        ..schedule
    };
    let bytes = Arc::new(Mutex::new(0.0));
    let tap = Box::new(Sum(Arc::clone(&bytes)));
    play(Arc::new(model.clone()), over, &schedule, rate, 1, tap);
    let played = *bytes.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Some(Carried {
        recorded: sum * modelled,
        played,
        over,
    }))
}

/// Adds up what crosses the link.
struct Sum(Arc<Mutex<f64>>);

impl Tap for Sum {
    fn packet(&mut self, _: Time, _: &Parties, _: bool, packet: &Packet) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += f64::from(packet.size);
    }
}
