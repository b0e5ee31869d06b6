//! Runs a workload on a clock of varying speed: more energy at one timescale, and the same mean.
//!
//! The clock's speed is 1 + a m(t). Here m is a sum of cosines with random phases and frequencies in the middle of
//! one octave, from 0.6/T to 0.9/T; its variance is one. Every timer of the workload runs on this clock. A source
//! that follows a schedule then has its intensity times the speed, so a Poisson process remains Poisson given the
//! speed (time change of point processes: Daley & Vere-Jones, Introduction to the Theory of Point Processes, section
//! 7.4). Users who wait for responses start sessions and think by this clock. The network keeps real time, so
//! transfers take as long as before.
//!
//! Octave j of a log-scale diagram holds the energy of frequencies from 2^-(j+1) to 2^-j per bin, so T is 2^j bins.
//! The band itself lies within one octave. Daubechies' wavelet with three vanishing moments sees the share [`SEEN`]
//! of its energy at that octave, and leaks the rest to the neighbours: 1.4 dB if the octave has 6 dB more. Haar
//! wavelets leak more.

use std::f64::consts::TAU;

use swell_base::{Dur, Stream, Time};

use crate::windows::moved;
use crate::{Action, Conn, Event, Info, Record, Sample, Workload};

/// Points of the clock's table per T. Between points, linear interpolation of a cosine with period T is accurate to
/// 0.02.
const POINTS: f64 = 32.0;

/// Number of cosines, enough for an approximately normal speed.
const COSINES: usize = 64;

/// The band, in 1/T.
const BAND: [f64; 2] = [0.6, 0.9];

/// Energy that Daubechies' wavelet with three vanishing moments sees at the band's octave, relative to a process of
/// the same variance that fills the octave evenly.
const SEEN: f64 = 0.757;

/// Lowest speed of a clock. It is above zero, so that the clock can be inverted.
const SLOWEST: f64 = 0.02;

/// Largest number of points in the table, 8 bytes each.
const MOST: f64 = 1.6e7;

/// A clock of varying speed.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    /// Nanoseconds between points.
    step: f64,
    /// Clock reading at each point, nanoseconds; the first is zero.
    reads: Vec<f64>,
}

/// Why a clock cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoClock {
    /// The run is too short for several periods.
    #[error("a run of less than 16 times the timescale has no energy there")]
    TooShort,
    /// The table would be too large.
    #[error("the run is more than 500000 times the timescale")]
    TooLong,
}

impl Clock {
    /// Shortest run, as a multiple of the timescale.
    pub const TURNS: u32 = 16;

    /// Standard deviation of the speed that raises the energy at a timescale by `db`. `variance` is the variance of
    /// counts per timescale over their squared mean, in that octave. For Poisson packets this is one over their mean
    /// number.
    pub fn deviation(db: f64, variance: f64) -> f64 {
        libm::sqrt((libm::pow(10.0, db / 10.0) - 1.0) * variance / SEEN)
    }

    /// Whether a run of length `duration` can have a clock at `timescale`.
    ///
    /// # Errors
    /// See [`NoClock`].
    pub fn fits(duration: Dur, timescale: Dur) -> Result<(), NoClock> {
        Clock::size(duration, timescale).map(|_| ())
    }

    /// How often the run has the timescale, and the number of points in the table.
    fn size(duration: Dur, timescale: Dur) -> Result<(f64, f64), NoClock> {
        let turns = duration.as_secs_f64() / timescale.as_secs_f64();
        let points = (turns * POINTS).ceil();
        match turns {
            _ if turns.is_nan() || turns < f64::from(Clock::TURNS) => Err(NoClock::TooShort),
            _ if points > MOST => Err(NoClock::TooLong),
            _ => Ok((turns, points)),
        }
    }

    /// The clock of a run of length `duration`, whose speed has standard deviation `a` at `timescale`. At the end of
    /// the run it agrees with real time. Speeds below the minimum, which a normal speed with large `a` would have,
    /// are cut off.
    ///
    /// # Errors
    /// See [`NoClock`].
    pub fn new(seed: u64, duration: Dur, timescale: Dur, a: f64) -> Result<Clock, NoClock> {
        let (turns, points) = Clock::size(duration, timescale)?;
        let mut rng = Stream::new(seed, "clock");
        // Harmonics of the run, so that the sum is zero over the run and does not repeat within it. The band is
        // divided into as many parts as there are cosines, with one cosine in each.
        let [low, high] = BAND.map(|b| b * turns);
        let wide = high - low;
        let count = COSINES.min(wide as usize);
        let height = a * libm::sqrt(2.0 / count as f64);
        let mut waves: Vec<Wave> = (0..count)
            .map(|i| {
                let part = (i as f64 + rng.uniform()) / count as f64;
                let harmonic = (low + wide * part).floor();
                let turn = TAU * harmonic / points;
                let phase = TAU * rng.uniform();
                Wave {
                    at: [height * libm::cos(phase), height * libm::sin(phase)],
                    turn: [libm::cos(turn), libm::sin(turn)],
                }
            })
            .collect();
        let points = points as usize;
        let mut reads = Vec::with_capacity(points + 1);
        let mut sum = 0.0;
        reads.push(sum);
        for _ in 0..points {
            let speed: f64 = 1.0 + waves.iter_mut().map(Wave::next).sum::<f64>();
            sum += speed.max(SLOWEST);
            reads.push(sum);
        }
        let length = duration.as_nanos() as f64;
        reads.iter_mut().for_each(|r| *r *= length / sum);
        Ok(Clock {
            step: length / points as f64,
            reads,
        })
    }

    /// Clock reading at real time `real`. After the run it equals `real`.
    pub fn read(&self, real: Dur) -> Dur {
        let at = real.as_nanos() as f64 / self.step;
        let i = at as usize;
        match self.reads.get(i..i + 2) {
            Some(ends) => {
                let own = ends[0] + (ends[1] - ends[0]) * (at - i as f64);
                Dur::from_nanos(own as u64)
            }
            None => real,
        }
    }

    /// Real time at which the clock reads `own` or just more, never less. A timer set for it would otherwise find that
    /// it is not yet due, and be set for the same instant for ever.
    pub fn when(&self, own: Dur) -> Dur {
        let nanos = own.as_nanos() as f64;
        let i = self.reads.partition_point(|&r| r <= nanos);
        let mut real = match i.checked_sub(1).and_then(|i| self.reads.get(i..i + 2)) {
            Some(ends) => {
                let part = (nanos - ends[0]) / (ends[1] - ends[0]);
                Dur::from_nanos(((i as f64 - 1.0 + part) * self.step).ceil() as u64)
            }
            None => own,
        };
        // Readings are whole nanoseconds, rounded down: at the lowest speed fifty real ones have the same.
        while self.read(real) < own {
            real += Dur::from_nanos(1);
        }
        real
    }
}

/// A cosine, evaluated point by point.
struct Wave {
    at: [f64; 2],
    turn: [f64; 2],
}

impl Wave {
    fn next(&mut self) -> f64 {
        let ([x, y], [c, s]) = (self.at, self.turn);
        self.at = [x * c - y * s, x * s + y * c];
        x
    }
}

/// A workload whose timers run on a [`Clock`].
pub struct Clocked {
    machine: Box<dyn Workload>,
    clock: Clock,
    start: Time,
}

impl Clocked {
    /// Runs `machine` on `clock`.
    pub fn new(machine: Box<dyn Workload>, clock: Clock) -> Clocked {
        Clocked {
            machine,
            clock,
            start: Time::ZERO,
        }
    }

    fn real(&self, own: Time) -> Time {
        self.start + self.clock.when(own.since(self.start))
    }
}

impl Workload for Clocked {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        if event == Event::Start {
            self.start = now;
        }
        let own = self.start + self.clock.read(now.since(self.start));
        let first = actions.len();
        self.machine.handle(own, event, actions);
        for action in &mut actions[first..] {
            if let Action::Timer(after, _) = action {
                let due = self.start + self.clock.when((own + *after).since(self.start));
                *after = due.since(now);
            }
        }
    }

    fn about(&self, token: u64) -> Option<Conn> {
        self.machine.about(token)
    }

    fn keep_records(&mut self, keep: bool) {
        self.machine.keep_records(keep);
    }

    fn take_records(&mut self) -> Vec<Record> {
        let records = self.machine.take_records().into_iter();
        records.map(|r| moved(r, |t| self.real(t))).collect()
    }

    fn take_samples(&mut self) -> Vec<Sample> {
        let samples = self.machine.take_samples().into_iter();
        let real = |s: Sample| Sample {
            at: self.real(s.at),
            ..s
        };
        samples.map(real).collect()
    }

    fn delivered(&self, info: &dyn Fn(Conn) -> Info) -> Option<[u64; 2]> {
        self.machine.delivered(info)
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        self.machine.finish(info);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OnOff, Packets, Replay, ReplayConfig};

    #[test]
    fn a_clock_is_read_both_ways_and_is_right_in_the_end() {
        for (millis, a) in [(4, 0.3), (64, 0.5), (1000, 0.9)] {
            let (run, t) = (Dur::from_secs(60), Dur::from_millis(millis));
            let clock = Clock::new(3, run, t, a).unwrap();
            assert_eq!(clock.read(Dur::ZERO), Dur::ZERO);
            assert_eq!(clock.read(run), run);
            let mut last = Dur::ZERO;
            for i in 0..5000u64 {
                let real = Dur::from_micros(i * 12_007);
                let own = clock.read(real);
                assert!(own >= last);
                last = own;
                let back = clock.when(own);
                // A nanosecond of the clock is at most fifty real ones.
                let error = back.max(real).saturating_sub(back.min(real));
                assert!(error <= Dur::from_nanos(60), "{real:?} {back:?}");
                assert!(clock.read(back) >= own);
            }
        }
        let short = Clock::new(3, Dur::from_secs(1), Dur::from_secs(1), 0.1);
        assert_eq!(short, Err(NoClock::TooShort));
        let long = Clock::new(3, Dur::from_secs(86_400), Dur::from_millis(1), 0.1);
        assert_eq!(long, Err(NoClock::TooLong));
    }

    /// A source on a clock gets a timer for each of its packets, which then is due. In a run of this length the
    /// rounding of the clock's table is as large as a nanosecond.
    #[test]
    fn every_timer_of_a_source_sends_its_packet() {
        for seed in 0..100 {
            let run = Dur::from_secs(1_000_000);
            let source = OnOff {
                rate: 8.0,
                sizes: vec![(500, 1.0)],
                sources: 5,
                on: Dur::from_secs(5_000),
                off: Dur::from_secs(5_000 * (seed % 2)),
                shape: 1.5,
                steady: true,
            };
            let packets = source.packets(seed, run).expect("some 5000");
            let count = packets.len();
            let (grid, stretch) = (Dur::from_micros(seed % 3), [1.0, 1.01][seed as usize / 50]);
            let replay = Replay::new(ReplayConfig {
                stretch,
                grid,
                ..ReplayConfig::exact([packets, Packets::default()])
            });
            let clock = Clock::new(seed, run, Dur::from_secs(2_560), 0.5).unwrap();
            let mut machine = Clocked::new(Box::new(replay), clock);
            let (mut now, mut event) = (Time::ZERO, Event::Start);
            let (mut sent, mut timers) = (0, 0);
            loop {
                let mut actions = Vec::new();
                machine.handle(now, event, &mut actions);
                let packet = |a: &&Action| matches!(a, Action::SendDatagram(..));
                sent += actions.iter().filter(packet).count();
                let Some(Action::Timer(after, token)) = actions.pop() else {
                    break;
                };
                now += after;
                event = Event::Timer(token);
                timers += 1;
                assert!(timers <= count, "{seed}: {sent} of {count} at {now:?}");
            }
            assert_eq!(sent, count, "{seed}");
        }
    }

    /// The end of a run is after the last point of the table in some, by rounding, and before it in others.
    #[test]
    fn the_end_of_a_run_is_reached_whatever_its_length() {
        let timescale = Dur::from_millis(16_384);
        for tenths in 2_700..6_000 {
            let run = Dur::from_millis(100) * tenths;
            let clock = Clock::new(1, run, timescale, 0.5).unwrap();
            assert!(clock.read(clock.when(run)) >= run, "{run:?}");
        }
    }

    /// Energies of Poisson packets on a clock relative to those without, by octave in dB, and the same for the mean
    /// count. A bin is a sixteenth of the timescale, so the timescale is octave 4.
    fn raised(timescale: Dur, db: f64) -> (Vec<f64>, f64) {
        let bins = 1u64 << 18;
        let bin = timescale / 16;
        let run = bin * bins;
        let mut rng = Stream::new(17, "packets");
        let clock = Clock::new(5, run, timescale, Clock::deviation(db, 1.0 / 20.0)).unwrap();
        let (mut plain, mut clocked) = (vec![0.0; bins as usize], vec![0.0; bins as usize]);
        let mut at = Dur::ZERO;
        loop {
            at += rng.gap(timescale.as_secs_f64() / 20.0);
            if at >= run {
                break;
            }
            let place = |t: Dur| ((t.as_nanos() / bin.as_nanos()) as usize).min(bins as usize - 1);
            plain[place(at)] += 1.0;
            clocked[place(clock.when(at))] += 1.0;
        }
        let sum = |x: &[f64]| x.iter().sum::<f64>();
        let mean = sum(&clocked) / sum(&plain);
        let [before, after] = [plain, clocked].map(|x| swell_stats::energies(&x, 3));
        let pairs = before.iter().zip(&after);
        let over = pairs.map(|(a, b)| 10.0 * (b.energy / a.energy).log10());
        (over.take(9).collect(), mean)
    }

    /// For octaves from 4 ms to 8 s: the requested increase within 1 dB at the octave, at most 2.5 dB beside it and
    /// 0.5 dB elsewhere, and the mean within 1 %.
    #[test]
    fn the_energy_of_one_octave_rises_by_what_was_asked() {
        for k in 2..=13 {
            for asked in [6.0, 3.0] {
                if asked < 6.0 && k % 4 != 0 {
                    continue;
                }
                let (over, mean) = raised(Dur::from_millis(1 << k), asked);
                for (j, db) in (1..).zip(&over) {
                    let ok = match j {
                        4 => (db - asked).abs() <= 1.0,
                        3 | 5 => (-0.5..=2.5).contains(db),
                        _ => db.abs() <= 0.5,
                    };
                    assert!(ok, "2^{k} ms, octave {j}: {over:.2?}");
                }
                assert!((mean - 1.0).abs() < 0.01, "{mean}");
            }
        }
    }

    #[test]
    fn its_speed_has_the_deviation_that_was_asked_for() {
        let t = Dur::from_millis(32);
        let clock = Clock::new(9, Dur::from_secs(100), t, 0.2).unwrap();
        let step = Dur::from_millis(1);
        let speeds = (0..100_000u64).map(|i| {
            let [a, b] = [i, i + 1].map(|k| clock.read(step * k).as_secs_f64());
            (b - a) / step.as_secs_f64() - 1.0
        });
        let squares: f64 = speeds.map(|x| x * x).sum();
        let sd = (squares / 100_000.0).sqrt();
        assert!((sd / 0.2 - 1.0).abs() < 0.03, "{sd}");
    }
}
