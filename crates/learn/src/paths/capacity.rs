//! What the packets of one host show: its capacity, its pace and its shortest answer.

use swell_base::{Bytes, Rate};

use crate::hosts::{Measured, Sample};
use crate::pairs::UNRESOLVED;

/// Minimum number of pairs for a host to have a capacity.
pub(super) const SOUND_PAIRS: u32 = 15;
/// Minimum number of pairs for a host to help detect a shared link.
pub(super) const FEW_PAIRS: u32 = 5;
/// Capacities within this factor of one another count as equal.
pub(super) const SAME: f64 = 1.3;
/// Minimum share of a host's samples that must equal their mode.
const AGREE: f64 = 1.0 / 3.0;
/// Sizes of a full segment and of its ACK.
pub(super) const FULL: (Bytes, Bytes) = (Bytes(1500), Bytes(52));
/// Minimum number of connections that keep to a pace.
const PACED: u32 = 3;

/// A host's capacity, if it has at least `pairs` samples and they agree.
pub(super) fn capacity(m: &Measured, kind: Sample, pairs: u32) -> Option<Rate> {
    let seen = m.get(kind).filter(|r| r.seen >= pairs)?;
    let least = (f64::from(reached(m, kind)) / SAME) as u32;
    let sound = seen.kept.iter().filter(|k| k.0 >= least).count();
    let few = sound < FEW_PAIRS as usize;
    // Data waited for the line, and those of other connections went between: the line is as fast as they all were.
    if few && kind == Sample::Down && m.steady() {
        return Some(Rate::from_bps(u64::from(reached(m, kind)) * 1000));
    }
    let kbit = seen.mode(least).filter(|_| !few)?;
    let told = kbit < UNRESOLVED && seen.near(kbit, SAME, least) >= AGREE;
    told.then(|| Rate::from_bps(u64::from(kbit) * 1000))
}

/// The rate at which a host paces each of its connections, if it does.
pub(super) fn pace(m: &Measured) -> Option<Rate> {
    // Few hosts have such connections, and this is asked for every connection.
    let kept = m.get(Sample::Pace).filter(|r| r.seen >= PACED)?;
    let pairs = m.get(Sample::Up).filter(|r| r.seen >= SOUND_PAIRS)?;
    let kbit = pairs.mode(0).filter(|kbit| *kbit < UNRESOLVED)?;
    let slower = f64::from(kbit) * SAME < f64::from(reached(m, Sample::Up));
    let agree = pairs.near(kbit, SAME, 0) >= AGREE && kept.near(kbit, SAME, 0) >= 0.5;
    (slower && agree).then(|| Rate::from_bps(u64::from(kbit) * 1000))
}

/// The rate that a host kept up in the direction of a capacity, kbit/s.
pub(super) fn reached(m: &Measured, kind: Sample) -> u32 {
    let [sent, received] = m.peaks();
    if kind == Sample::Up { sent } else { received }
}

/// The shortest answer of any kind, microseconds.
pub(super) fn shortest(m: &Measured) -> Option<u32> {
    let kinds = [
        Sample::Handshake,
        Sample::Data,
        Sample::Bulk,
        Sample::Sending,
        Sample::Echo,
    ];
    let kept = kinds.into_iter().filter_map(|kind| m.get(kind));
    kept.flat_map(|r| r.kept.iter().map(|k| k.0)).min()
}
