//! Stand-ins for the packet traces of the paper, which are not available: three pairs of synthetic
//! traces, the same to the packet as those given to ns-2.35 for the reference figures.
//!
//! The recipe (packet sizes, on/off sources, seeds) and its generator, Python's Mersenne Twister with
//! 53-bit uniforms, are those of the reference runs, so that the two simulators can be compared
//! number by number. Logarithms and powers come from `libm`: of a microsecond's rounding here or
//! there nothing depends.

use rand_mt::Mt;
use swell_base::Dur;
use swell_workload::Packets;

use super::Trace;

/// How packets are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Exponential gaps.
    Poisson,
    /// Fifty on/off sources with Pareto times, shape 1.4: a Hurst parameter of about 0.8.
    SelfSimilar,
}

/// Packet sizes, bytes, with their cumulative probabilities.
const SIZES: [(f64, u32); 3] = [(0.5, 40), (0.9, 552), (1.0, 1500)];
const MEAN_SIZE: f64 = 0.5 * 40.0 + 0.4 * 552.0 + 0.1 * 1500.0;

/// Seed and Mbit/s of a trace.
type Recipe = (u32, f64);

/// Name, kind, and the recipes of the filler's direction and of the other.
const PAIRS: [(&str, Kind, [Recipe; 2]); 3] = [
    ("selfsim1", Kind::SelfSimilar, [(1, 1.35), (11, 0.9)]),
    ("selfsim2", Kind::SelfSimilar, [(2, 1.15), (12, 0.8)]),
    ("poisson", Kind::Poisson, [(3, 1.35), (13, 0.9)]),
];

/// The three pairs, `duration` long.
pub fn stand_ins(duration: Dur) -> Vec<Trace> {
    PAIRS
        .iter()
        .map(|&(name, kind, recipes)| Trace {
            name: name.to_string(),
            packets: recipes.map(|(seed, mbps)| packets(kind, seed, mbps, duration)),
            duration,
            left_out: 0,
            doubts: Vec::new(),
        })
        .collect()
}

fn packets(kind: Kind, seed: u32, mbps: f64, duration: Dur) -> Packets {
    let mut random = Random(Mt::new_with_key([seed]));
    let per_second = mbps * 1e6 / 8.0 / MEAN_SIZE;
    let duration = duration.as_secs_f64();
    let times = match kind {
        Kind::Poisson => random.poisson(per_second, duration),
        Kind::SelfSimilar => random.self_similar(per_second, duration),
    };
    times
        .into_iter()
        .map(|t| {
            let u = random.uniform();
            let size = SIZES.iter().find(|s| u < s.0).map_or(1500, |s| s.1);
            (Dur::from_micros((t * 1e6) as u64), size)
        })
        .collect()
}

/// Python's `random.Random(seed).random()`.
struct Random(Mt);

impl Random {
    /// 53 bits of two words, as in the reference implementation's `genrand_res53`.
    fn uniform(&mut self) -> f64 {
        let high = f64::from(self.0.next_u32() >> 5);
        let low = f64::from(self.0.next_u32() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Pareto of shape 1.4 with this mean.
    fn pareto(&mut self, mean: f64) -> f64 {
        const SHAPE: f64 = 1.4;
        mean * (SHAPE - 1.0) / SHAPE / libm::pow(1.0 - self.uniform(), 1.0 / SHAPE)
    }

    fn poisson(&mut self, per_second: f64, duration: f64) -> Vec<f64> {
        let mut times = Vec::new();
        let mut t = 0.0;
        loop {
            t += self.exponential(1.0 / per_second);
            if t >= duration {
                return times;
            }
            times.push(t);
        }
    }

    fn self_similar(&mut self, per_second: f64, duration: f64) -> Vec<f64> {
        const SOURCES: u32 = 50;
        const ON: f64 = 0.5;
        const OFF: f64 = 2.0;
        let rate = per_second / f64::from(SOURCES) * (ON + OFF) / ON;
        let mut times = Vec::new();
        for _ in 0..SOURCES {
            let mut active = self.uniform() < ON / (ON + OFF);
            let mut t = 0.0;
            while t < duration {
                let length = self.pareto(if active { ON } else { OFF });
                if active {
                    let mut u = t + self.exponential(1.0 / rate);
                    while u < (t + length).min(duration) {
                        times.push(u);
                        u += self.exponential(1.0 / rate);
                    }
                }
                t += length;
                active = !active;
            }
        }
        times.sort_by(f64::total_cmp);
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first values of `random.Random(1)`, as any Python prints them.
    #[test]
    fn the_generator_is_pythons() {
        let mut r = Random(Mt::new_with_key([1]));
        let got: Vec<f64> = (0..3).map(|_| r.uniform()).collect();
        assert_eq!(
            got,
            [
                0.134_364_244_112_401_22,
                0.847_433_736_937_232_7,
                0.763_774_618_976_614
            ]
        );
    }

    /// What the generator of the reference runs reported for 600 s.
    #[test]
    fn the_traces_are_those_of_the_reference_runs() {
        let got: Vec<[usize; 2]> = stand_ins(Dur::from_secs(600))
            .iter()
            .map(|t| t.packets.each_ref().map(|p| p.len()))
            .collect();
        assert_eq!(
            got,
            [[279_197, 160_803], [240_811, 160_377], [258_648, 173_091]]
        );
    }
}
