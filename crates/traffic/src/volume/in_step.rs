//! Whether sessions send at the same times, which is lost when each of them gets times of its own.

use std::collections::BTreeMap;

use swell_base::{Direction, Dur, Stream};

use super::{Model, Network, Session};

/// Width of the finest bins, seconds.
const FINE: f64 = 0.02;
/// Octaves of the finest bins: up to 5.12 s.
const OCTAVES: usize = 9;
/// At most so many bins: longer models have wider ones.
const MOST_BINS: f64 = 1_048_576.0;
/// A longer piece, in bins, is too smooth to have energy.
const SMOOTH: u64 = 256;
/// With which the recorded times are compared: random ones, drawn so often.
const DRAWS: usize = 9;
/// What chance does not do, as a factor of the energy and as one of the most of all draws.
const MUCH: [f64; 2] = [2.0, 1.5];
/// Bursts below this share of the mean load harm nobody.
const LEAST_BURST: f64 = 0.25;

/// Bytes by bin, left to right and right to left.
type Sparse = BTreeMap<u64, [f64; 2]>;

/// Bursts that exist because sessions send at the same times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InStep {
    /// Direction of the link.
    pub direction: Direction,
    /// Length of the bursts.
    pub bin: Dur,
    /// Energy of the recorded times divided by the mean energy of random times.
    pub factor: f64,
}

impl Model {
    /// Bursts that vanish when each session starts at a time of its own, as all are played. `None` if there are none,
    /// or if chance explains them. The energy is that of Haar wavelets, which do not see trends of the load; the
    /// octave with the largest factor is returned. Times are estimated over a network that delays nothing. `tick` is the
    /// resolution of the clock that recorded them: bursts shorter than four of it may be the clock's.
    pub fn in_step(&self, tick: Dur) -> Option<InStep> {
        let seconds = self.duration.as_secs_f64();
        let mut fine = FINE;
        while seconds / fine > MOST_BINS {
            fine *= 2.0;
        }
        let bins = (seconds / fine).ceil() as u64;
        if self.sessions.len() < 2 || bins < 2 {
            return None;
        }
        let network = Network::default();
        let mut total = [0.0; 2];
        let sessions = self.sessions.iter();
        let sessions: Vec<Sparse> = sessions
            .map(|s| sparse(self, s, &network, fine, bins, &mut total))
            .collect();
        let recorded = energies(&sessions, bins, |_| 0);
        let mut rng = Stream::new(1, "in-step");
        let draws: Vec<_> = (0..DRAWS)
            .map(|_| energies(&sessions, bins, |_| rng.below(bins)))
            .collect();
        let mut found: Option<InStep> = None;
        for direction in Direction::BOTH {
            for (octave, energy) in recorded.iter().enumerate() {
                let width = 1_u64 << octave;
                let drawn = || draws.iter().map(|d| d[octave][direction]);
                let mean = drawn().sum::<f64>() / DRAWS as f64;
                let most = drawn().fold(0.0, f64::max);
                let pairs = (bins / (2 * width)) as f64;
                let burst = (energy[direction] / pairs.max(1.0)).sqrt();
                let load = total[direction] / bins as f64 * width as f64;
                let chance = energy[direction] < (MUCH[0] * mean).max(MUCH[1] * most);
                let clock = fine * (width as f64) < 4.0 * tick.as_secs_f64();
                // Fewer than eight pairs of bins tell nothing.
                if mean <= 0.0 || chance || clock || pairs < 8.0 || burst < LEAST_BURST * load {
                    continue;
                }
                let factor = energy[direction] / mean;
                if found.is_none_or(|f| f.factor < factor) {
                    found = Some(InStep {
                        direction,
                        bin: Dur::from_secs_f64(fine * width as f64),
                        factor,
                    });
                }
            }
        }
        found
    }
}

/// The bytes of a session in bins of the trace; `total` gets all its bytes.
fn sparse(
    model: &Model,
    session: &Session,
    network: &Network,
    fine: f64,
    bins: u64,
    total: &mut [f64; 2],
) -> Sparse {
    let mut sparse = Sparse::new();
    let begin = session.start.as_secs_f64();
    for (start, piece) in session.pieces(model, network) {
        let start = begin + start;
        let [from, to] = [piece.from, piece.to].map(|t| start + t.as_secs_f64());
        let [first, last] = [from, to].map(|t| (t / fine) as u64);
        let mut add = |bin: u64, bytes: [f64; 2]| {
            if bin < bins {
                let sum = sparse.entry(bin).or_default();
                (0..2).for_each(|d| sum[d] += bytes[d]);
            }
        };
        (0..2).for_each(|d| total[d] += piece.bytes[d]);
        if first == last {
            add(first, piece.bytes);
        } else if u64::from(piece.instants) > 1 && last - first >= u64::from(piece.instants) {
            // Packets with more than a bin between them.
            let n = piece.instants;
            let gap = (to - from) / f64::from(n - 1);
            let bytes = piece.bytes.map(|b| b / f64::from(n));
            (0..n).for_each(|i| add(((from + gap * f64::from(i)) / fine) as u64, bytes));
        } else if last - first <= SMOOTH {
            for bin in first..=last {
                let at = bin as f64 * fine - start;
                add(bin, piece.between(at, at + fine));
            }
        }
    }
    sparse
}

/// Energy by octave and direction of all sessions, each later by a number of bins; what leaves at the end comes back
/// at the beginning.
fn energies(sessions: &[Sparse], bins: u64, mut later: impl FnMut(usize) -> u64) -> Vec<[f64; 2]> {
    let mut sum = vec![[0.0; 2]; bins as usize];
    for (i, session) in sessions.iter().enumerate() {
        let later = later(i);
        for (bin, bytes) in session {
            let at = ((bin + later) % bins) as usize;
            (0..2).for_each(|d| sum[at][d] += bytes[d]);
        }
    }
    let mut energies = Vec::with_capacity(OCTAVES);
    while energies.len() < OCTAVES && sum.len() > 1 {
        let mut energy = [0.0; 2];
        let pairs = sum.chunks_exact(2);
        sum = pairs
            .map(|pair| {
                std::array::from_fn(|d| {
                    energy[d] += (pair[1][d] - pair[0][d]).powi(2);
                    pair[0][d] + pair[1][d]
                })
            })
            .collect();
        energies.push(energy);
    }
    energies
}

#[cfg(test)]
mod tests {
    use super::super::tests::{datagrams, one};
    use super::*;
    use crate::testing::model;

    /// Programs that poll every ten seconds for five minutes, each so many milliseconds after the one before.
    fn polls(programs: u64, apart: u64) -> Model {
        let sessions = (0..programs).map(|i| {
            let mut polls = [(10_000, false, 20_000); 29];
            polls[0].0 = 0;
            Session {
                start: Dur::from_millis(1_000 + apart * i),
                ..one(datagrams(&polls))
            }
        });
        model(Dur::from_secs(300), sessions.collect())
    }

    #[test]
    fn programs_that_poll_together_are_told() {
        let found = polls(20, 0).in_step(Dur::ZERO).expect("they are in step");
        assert_eq!(found.direction, Direction::Down);
        // All are there at once, where random times have each alone.
        assert!((10.0..40.0).contains(&found.factor), "{found:?}");
        // A clock of whole seconds puts together what was not, up to four of them.
        let coarse = polls(20, 0).in_step(Dur::from_secs(1)).map(|f| f.bin);
        assert!(
            coarse.is_none_or(|bin| bin >= Dur::from_secs(4)),
            "{coarse:?}"
        );
    }

    #[test]
    fn programs_with_times_of_their_own_are_not() {
        // The times are spread evenly over the ten seconds.
        assert_eq!(polls(20, 497).in_step(Dur::ZERO), None);
        assert_eq!(polls(1, 0).in_step(Dur::ZERO), None);
        // Without a session there is nothing to compare.
        assert_eq!(
            model(Dur::from_secs(300), Vec::new()).in_step(Dur::ZERO),
            None
        );
    }

    #[test]
    fn bursts_that_the_load_hides_harm_nobody() {
        // A hundred times as much in one download that lasts as long.
        let mut m = polls(20, 0);
        let download = Session {
            start: Dur::from_secs(1),
            ..one(datagrams(&[(1, false, 65_000); 280_000]))
        };
        m.sessions.push(download);
        assert_eq!(m.in_step(Dur::ZERO), None);
    }
}
