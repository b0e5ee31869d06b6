//! What a model plays that has no trace to be compared with.

use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Dur, Packet, Time};
use swell_traffic::{DrawError, Knobs, Load, Model, Network, Played, Schedule};
use swell_world::{Parties, Tap};

use super::play::{Playback, play};

/// Vanishing moments of the wavelet, as in the learner.
const MOMENTS: usize = 3;
/// Width of the bins below the log-scale diagram.
const BIN: Dur = Dur::from_millis(1);

/// Network-layer bytes in bins of [`BIN`], left to right and right to left.
type Bins = [Vec<f64>; 2];

/// What a model plays in steady state on an otherwise empty link, mean over `seeds` seeds.
///
/// # Errors
/// If no schedule can be drawn.
pub fn played(model: &Model, seeds: u64) -> Result<Played, DrawError> {
    let loads: Vec<(Load, [f64; 2])> = (1..=seeds)
        .map(|seed| load(model, seed))
        .collect::<Result<_, _>>()?;
    let runs = seeds as f64;
    let rates = [0, 1].map(|way| (loads.iter().map(|l| l.1[way]).sum::<f64>() / runs).round());
    let larger = usize::from(rates[1] > rates[0]);
    let slopes = loads
        .iter()
        .map(|l| l.0.energy_slope(larger).unwrap_or(f64::NAN));
    let slope = slopes.sum::<f64>() / runs;
    Ok(Played {
        made_by: concat!("swell ", env!("CARGO_PKG_VERSION")).into(),
        seeds,
        rates,
        energy_slope: slope.is_finite().then_some((slope * 1e3).round() / 1e3),
    })
}

/// The log-scale diagrams of what a seed plays, and its mean rates in bits per second.
fn load(model: &Model, seed: u64) -> Result<(Load, [f64; 2]), DrawError> {
    let knobs = Knobs::default();
    let schedule = Schedule::draw(model, &knobs, seed, model.duration, &Network::default())?;
    let count = model.duration.as_nanos() / BIN.as_nanos();
    let bins = Arc::new(Mutex::new([0, 1].map(|_| vec![0.0; count as usize])));
    let tap = BinsTap(Arc::clone(&bins));
    let rate = Playback::default().rate;
    play(
        Arc::new(model.clone()),
        model.duration,
        &schedule,
        rate,
        seed,
        Box::new(tap),
    );
    let bins = bins.lock().unwrap_or_else(PoisonError::into_inner);
    let seconds = model.duration.as_secs_f64();
    let rates = [0, 1].map(|way| bins[way].iter().sum::<f64>() * 8.0 / seconds);
    let lsd = [0, 1].map(|way| {
        let octaves = swell_stats::energies(&bins[way], MOMENTS);
        octaves.iter().map(swell_stats::Octave::y).collect()
    });
    let load = Load {
        lsd_bin: BIN,
        lsd,
        ..Load::default()
    };
    Ok((load, rates))
}

/// Adds up what crosses the link.
struct BinsTap(Arc<Mutex<Bins>>);

impl Tap for BinsTap {
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let way = parties.direction(to_server);
        let bin = (at.as_nanos() / BIN.as_nanos()) as usize;
        let mut bins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = bins[way].get_mut(bin) {
            *bytes += f64::from(packet.size);
        }
    }
}
