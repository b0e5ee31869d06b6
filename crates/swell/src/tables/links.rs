//! What two links have in common.

use swell_base::Direction;
use swell_learn::taps::Links;

use super::text::list;

/// Energies of both links and their coherence at each octave, in one direction. Octaves with fewer than `least` wavelet
/// coefficients are left out.
pub(crate) fn coherence(links: &Links, direction: Direction, least: u64) -> String {
    let mut table = list(&[
        "timescale",
        "first, dB",
        "second, dB",
        "coherence (95 % interval)",
        "through alone",
    ]);
    let all = links.coherence[direction].iter().enumerate();
    for (i, octave) in all.filter(|(_, o)| o.n >= least) {
        if octave.energies.contains(&0.0) {
            continue;
        }
        let [first, second] = octave.energies.map(|e| format!("{:.1}", 10.0 * e.log10()));
        let (low, high) = octave.interval();
        let alone = links.explained(direction, i);
        table.add_row([
            octave.timescale(links.bin).to_string(),
            first,
            second,
            format!("{:.2} ({low:.2} to {high:.2})", octave.coherence()),
            alone.map_or_else(|| "-".into(), |c| format!("{c:.2}")),
        ]);
    }
    table.to_string()
}
