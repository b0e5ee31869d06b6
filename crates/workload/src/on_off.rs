//! Packets of many on/off sources: self-similar traffic by construction, without a trace.
//!
//! The superposition of sources whose on and off times have a heavy tail of shape a is self-similar with a Hurst
//! parameter of (3 - a) / 2 (Willinger, Taqqu, Sherman & Wilson, IEEE/ACM ToN 5(1), 1997). While a source is on, its
//! packets have exponential gaps. Sources that are never off form one Poisson process.
//!
//! The uniform numbers are those of the Mersenne Twister, as Python's `random.Random(seed).random()` returns them, in
//! the order in which the functions below draw. So a Python script of thirty lines can generate the same packets for
//! another simulator. Logarithms and powers come from `libm`. Rounding differences of a microsecond do not matter.

use rand_mt::Mt;
use swell_base::Dur;

use crate::Packets;

/// Packets of on/off sources in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct OnOff {
    /// Mean rate of all sources together, bits per second of network-layer bytes; positive.
    pub rate: f64,
    /// Network-layer sizes in bytes and their shares of the packets; the shares sum to one.
    pub sizes: Vec<(u32, f64)>,
    /// Number of sources, at least one.
    pub sources: u32,
    /// Mean on time of a source; positive.
    pub on: Dur,
    /// Mean off time of a source. Zero means never off; `sources` and `on` are then ignored.
    pub off: Dur,
    /// Shape of the Pareto distribution of both times, above one.
    pub shape: f64,
    /// Whether sources begin in steady state: the first period of each is the rest of one that began earlier, so the
    /// mean rate is the same at all times. Otherwise each begins with a whole period, as in the Python script, and the
    /// rate is not the mean for many periods.
    pub steady: bool,
}

/// On/off sources draw more packets than a run can hold. The mean rate does not prevent this: if a few sources are on
/// for a small share of the time, all of them may be on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "on/off sources draw more than {most} packets in a run: write a lower rate, larger packets, more sources, \
     a shorter `off` or a shorter run"
)]
pub struct TooManyPackets {
    /// Largest number of packets in one direction.
    pub most: usize,
}

impl OnOff {
    /// Largest number of packets in one direction, 16 bytes each: twice the mean that an experiment file may request.
    pub const MOST: usize = 40_000_000;

    /// Mean size of a packet, bytes.
    pub fn mean_size(&self) -> f64 {
        self.sizes.iter().map(|s| f64::from(s.0) * s.1).sum()
    }

    /// The packets of `duration`, at whole microseconds as in captures.
    ///
    /// # Errors
    ///
    /// If there are more than [`OnOff::MOST`].
    pub fn packets(&self, seed: u64, duration: Dur) -> Result<Packets, TooManyPackets> {
        self.draw(seed, duration, OnOff::MOST)
    }

    fn draw(&self, seed: u64, duration: Dur, most: usize) -> Result<Packets, TooManyPackets> {
        let mut random = Random::new(seed);
        let per_second = self.rate / 8.0 / self.mean_size();
        let seconds = duration.as_secs_f64();
        let mut times = Times {
            seconds: Vec::new(),
            most,
        };
        if self.off == Dur::ZERO {
            random.poisson(per_second, seconds, &mut times)?;
        } else {
            self.alternate(&mut random, per_second, seconds, &mut times)?;
        }
        let sized = times.seconds.into_iter().map(|t| {
            let size = self.size(random.uniform());
            (Dur::from_micros((t * 1e6) as u64), size)
        });
        Ok(sized.collect())
    }

    fn size(&self, u: f64) -> u32 {
        let mut sum = 0.0;
        let found = self.sizes.iter().find(|s| {
            sum += s.1;
            u < sum
        });
        found.or(self.sizes.last()).map_or(0, |s| s.0)
    }

    fn alternate(
        &self,
        random: &mut Random,
        per_second: f64,
        seconds: f64,
        times: &mut Times,
    ) -> Result<(), TooManyPackets> {
        let (on, off) = (self.on.as_secs_f64(), self.off.as_secs_f64());
        let gap = 1.0 / (per_second / f64::from(self.sources) * (on + off) / on);
        for _ in 0..self.sources {
            let mut active = random.uniform() < on / (on + off);
            let mut under_way = self.steady;
            let mut t = 0.0;
            while t < seconds {
                let mean = if active { on } else { off };
                let length = match std::mem::take(&mut under_way) {
                    true => random.residual(mean, self.shape),
                    false => random.pareto(mean, self.shape),
                };
                if active {
                    let mut u = t + random.exponential(gap);
                    while u < (t + length).min(seconds) {
                        times.push(u)?;
                        u += random.exponential(gap);
                    }
                }
                t += length;
                active = !active;
            }
        }
        times.seconds.sort_by(f64::total_cmp);
        Ok(())
    }
}

/// Packet times in seconds, at most `most`.
struct Times {
    seconds: Vec<f64>,
    most: usize,
}

impl Times {
    fn push(&mut self, second: f64) -> Result<(), TooManyPackets> {
        if self.seconds.len() >= self.most {
            return Err(TooManyPackets { most: self.most });
        }
        self.seconds.push(second);
        Ok(())
    }
}

/// Python's `random.Random(seed)`.
struct Random(Mt);

impl Random {
    fn new(seed: u64) -> Random {
        // Python seeds with the 32-bit words of the integer, lowest first, without leading zero words.
        let words = [seed as u32, (seed >> 32) as u32];
        let used = if words[1] == 0 { 1 } else { 2 };
        Random(Mt::new_with_key(words.into_iter().take(used)))
    }

    /// 53 bits from two words, as in the reference implementation's `genrand_res53` (Matsumoto & Nishimura).
    fn uniform(&mut self) -> f64 {
        let high = f64::from(self.0.next_u32() >> 5);
        let low = f64::from(self.0.next_u32() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Pareto with the given mean and shape.
    fn pareto(&mut self, mean: f64, shape: f64) -> f64 {
        mean * (shape - 1.0) / shape / libm::pow(1.0 - self.uniform(), 1.0 / shape)
    }

    /// What remains of a Pareto period at a random time, given its mean and shape. Its density is the survival function
    /// of the period over its mean (Cox, Renewal Theory, 1962, section 5.2).
    fn residual(&mut self, mean: f64, shape: f64) -> f64 {
        let u = self.uniform();
        // Periods are longer than the minimum, so the density is constant below it.
        if u < (shape - 1.0) / shape {
            return mean * u;
        }
        let least = mean * (shape - 1.0) / shape;
        least * libm::pow(shape * (1.0 - u), -1.0 / (shape - 1.0))
    }

    fn poisson(
        &mut self,
        per_second: f64,
        seconds: f64,
        times: &mut Times,
    ) -> Result<(), TooManyPackets> {
        let mut t = 0.0;
        loop {
            t += self.exponential(1.0 / per_second);
            if t >= seconds {
                return Ok(());
            }
            times.push(t)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(rate: f64, off: Dur) -> OnOff {
        OnOff {
            rate,
            sizes: vec![(40, 0.5), (552, 0.4), (1500, 0.1)],
            sources: 50,
            on: Dur::from_millis(500),
            off,
            shape: 1.4,
            steady: false,
        }
    }

    /// The first values of `random.Random(1)` and `random.Random(2**40 + 7)` in Python.
    #[test]
    fn the_generator_is_pythons() {
        let draw = |seed| {
            let mut r = Random::new(seed);
            [r.uniform(), r.uniform(), r.uniform()]
        };
        assert_eq!(
            draw(1),
            [
                0.134_364_244_112_401_22,
                0.847_433_736_937_232_7,
                0.763_774_618_976_614
            ]
        );
        assert_eq!(
            draw((1 << 40) + 7),
            [
                0.613_703_777_993_651_1,
                0.814_916_297_330_948_7,
                0.945_011_508_759_287_3
            ]
        );
    }

    /// Statistics that the script which generated the traces for ns-2.35 reported for 600 s.
    #[test]
    fn packets_are_those_that_ns_2_was_given() {
        let heavy = Dur::from_secs(2);
        for (off, mbps, seed, count) in [
            (heavy, 1.35, 1, 279_197),
            (heavy, 0.9, 11, 160_803),
            (heavy, 1.15, 2, 240_811),
            (heavy, 0.8, 12, 160_377),
            (Dur::ZERO, 1.35, 3, 258_648),
            (Dur::ZERO, 0.9, 13, 173_091),
        ] {
            let all = sources(mbps * 1e6, off).packets(seed, Dur::from_secs(600));
            let drawn = all.map(|packets| packets.len());
            assert_eq!(drawn, Ok(count), "seed {seed}");
        }
    }

    #[test]
    fn the_rate_is_the_one_asked_for() {
        // 384 000 packets of independent sizes: the standard deviation is 0.24 %.
        let poisson = sources(2e6, Dur::ZERO);
        let packets = poisson.packets(5, Dur::from_secs(600));
        let packets = packets.expect("far fewer than the most");
        let bytes: u64 = packets.iter().map(|p| u64::from(p.1)).sum();
        let rate = bytes as f64 * 8.0 / 600.0;
        assert!((rate / 2e6 - 1.0).abs() < 0.012, "{rate}");
    }

    /// The rate is the mean from the beginning on. With whole first periods it is 18 % of the mean in the second of
    /// these windows and 145 % in the third.
    #[test]
    fn sources_in_steady_state_have_their_mean_rate_at_all_times() {
        let many = OnOff {
            sources: 20_000,
            steady: true,
            ..sources(2e6, Dur::from_secs(2))
        };
        let packets = many.packets(3, Dur::from_secs(60)).expect("far fewer");
        // At an instant, a fifth of the sources are on: the relative standard deviation of their number is 1.4 %.
        for (from, to) in [
            (0, 200),
            (400, 600),
            (700, 900),
            (2_000, 4_000),
            (40_000, 60_000),
        ] {
            let [from, to] = [from, to].map(Dur::from_millis);
            let within = packets.iter().filter(|p| (from..to).contains(&p.0));
            let bytes: u64 = within.map(|p| u64::from(p.1)).sum();
            let rate = bytes as f64 * 8.0 / (to - from).as_secs_f64();
            // Sizes and times of a few hundred packets add some 6 % in the short windows.
            let off = if to - from < Dur::from_secs(1) {
                0.25
            } else {
                0.06
            };
            assert!((rate / 2e6 - 1.0).abs() < off, "{from}: {rate}");
        }
    }

    /// The survival function of the residual period is the integral of that of the period over its mean.
    #[test]
    fn residual_periods_have_their_closed_form() {
        let (mean, shape) = (0.5, 1.4);
        let least = mean * (shape - 1.0) / shape;
        let mut random = Random::new(9);
        let n = 100_000;
        let drawn: Vec<f64> = (0..n).map(|_| random.residual(mean, shape)).collect();
        for x in [0.05, 0.1, 0.2, 1.0, 10.0, 1_000.0] {
            let survives = match x < least {
                true => 1.0 - x / mean,
                false => libm::pow(least / x, shape - 1.0) / shape,
            };
            let seen = drawn.iter().filter(|&&d| d > x).count() as f64 / f64::from(n);
            // Three standard deviations of a share of 100 000.
            assert!((seen - survives).abs() < 0.0048, "{x}: {seen} {survives}");
        }
    }

    /// A source that is on when the run begins sends ten thousand times the mean rate.
    #[test]
    fn a_source_that_is_rarely_on_ends_at_the_most() {
        let rare = OnOff {
            sources: 1,
            on: Dur::from_secs(10),
            ..sources(1e5, Dur::from_secs(100_000))
        };
        let draw = |most| rare.draw(12_214, Dur::from_secs(10), most);
        // The mean is 32 packets a second.
        assert_eq!(draw(100_000), Err(TooManyPackets { most: 100_000 }));
        let always = sources(1e6, Dur::ZERO);
        let all = always.packets(1, Dur::from_secs(10)).map(|p| p.len());
        let all = all.expect("some 3000");
        let limited = |most| always.draw(1, Dur::from_secs(10), most).map(|p| p.len());
        assert_eq!(limited(all), Ok(all));
        assert_eq!(limited(all - 1), Err(TooManyPackets { most: all - 1 }));
    }
}
