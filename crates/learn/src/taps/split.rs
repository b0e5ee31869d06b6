//! The second pass: each packet goes to the model of its traffic, and is counted on its link.

use swell_base::{Code, Direction, Dur, Severity, Warning};
use swell_capture::Packet;
use swell_stats::{Coherence, coherences};
use swell_traffic::{Model, Provenance};

use super::flow::Flow;
use super::matcher::{EARLIER, Matched};
use crate::learner::Learner;
use crate::options::Options;

/// Width of the finest bins.
const FINE: Dur = Dur::from_millis(1);
/// Maximum number of bins: about 35 minutes of milliseconds. Longer captures use bins of 2, 4, … ms.
const MOST_BINS: u64 = 1 << 21;
/// Vanishing moments of the wavelet, as in log-scale diagrams.
const MOMENTS: usize = 3;
/// Clocks that drift farther than this are a warning, nanoseconds.
const DRIFT: i64 = 5_000_000;
/// Connections under other addresses are a warning from this share of the flows that match.
const TRANSLATED: f64 = 0.01;

/// The traffic that a model is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// What passes both taps.
    Through,
    /// What passes the first tap only.
    First,
    /// What passes the second tap only.
    Second,
}

impl Traffic {
    /// All, in the order of their indices.
    pub const ALL: [Traffic; 3] = [Traffic::Through, Traffic::First, Traffic::Second];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Traffic::Through => "through",
            Traffic::First => "first",
            Traffic::Second => "second",
        }
    }
}

/// Bytes in bins, up and down.
type Series = [Vec<u32>; 2];

/// Splits two captures of one path into three models.
#[derive(Debug)]
pub struct Split {
    matched: Matched,
    learners: [Learner; 3],
    width: Dur,
    /// By tap: of through traffic and of cross traffic.
    series: [[Series; 2]; 2],
    /// Packets that a tap saw when the other did not record.
    outside: [u64; 2],
}

/// What two captures became.
#[derive(Clone, Debug)]
pub struct Parted {
    /// Models of through traffic and of the cross traffic of each tap; `None` where there is nothing to model.
    pub models: [Option<Model>; 3],
    /// Whether the second tap's clients are at the other end of the path.
    pub turned: bool,
    /// What both links carried.
    pub links: Links,
}

/// What two links carried in their common time.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// Network-layer bytes by tap: of through traffic and of cross traffic.
    pub bytes: [[u64; 2]; 2],
    /// Packets that a tap saw when the other did not record.
    pub outside: [u64; 2],
    /// Width of the bins that the octaves are of.
    pub bin: Dur,
    /// Bytes per second in the busiest 100 ms, by tap: the more of both directions.
    pub busiest: [f64; 2],
    /// Energies of both links and their coherence at each octave, up and down.
    pub coherence: [Vec<Coherence>; 2],
    /// The same of through traffic alone, as it passes both taps.
    pub through: [Vec<Coherence>; 2],
}

impl Links {
    /// The share of a tap's bytes that is through traffic; zero if it saw none.
    pub fn share(&self, tap: usize) -> f64 {
        let [through, cross] = self.bytes[tap];
        through as f64 / ((through + cross).max(1)) as f64
    }

    /// The coherence that through traffic alone explains, if cross traffic is independent of it: what the octave of
    /// `through` has of the energies of both links. `i` is the index of the octave.
    pub fn explained(&self, direction: Direction, i: usize) -> Option<f64> {
        let all = self.coherence[direction].get(i)?;
        let through = self.through[direction].get(i)?;
        let [a, b] = all.energies;
        Some((through.covariance.powi(2) / (a * b)).min(1.0))
    }
}

impl Split {
    /// Splits by these flows. `options` hold for all models, except name, sources and the delay of the link.
    pub fn new(matched: Matched, options: &Options, sources: &[String; 2]) -> Split {
        let mut width = FINE;
        while matched.duration().as_nanos() / width.as_nanos() >= MOST_BINS {
            width = width * 2;
        }
        let bins = matched.duration().as_nanos() / width.as_nanos() + 1;
        let silent = || -> Series { [0, 1].map(|_| vec![0; bins as usize]) };
        let lag = matched.clocks.lag.map_or(0, |lag| lag.max(0));
        let lag = Dur::from_nanos(lag.unsigned_abs());
        let learners = Traffic::ALL.map(|traffic| {
            let (tap, link_rtt) = match traffic {
                // It crosses the delay between the taps on both ways: that of the first link out, that of the second back.
                // Cross traffic crosses one of them.
                Traffic::Through => (0, lag * 2),
                Traffic::First => (0, lag),
                Traffic::Second => (1, lag),
            };
            let own = Options {
                name: format!("{}-{}", options.name, traffic.name()),
                provenance: Provenance {
                    sources: match traffic {
                        Traffic::Through => sources.to_vec(),
                        _ => vec![sources[tap].clone()],
                    },
                    ..options.provenance.clone()
                },
                link_rtt,
                length: matched.duration(),
                ..options.clone()
            };
            Learner::with_sides(own, matched.sides[tap].clone())
        });
        Split {
            matched,
            learners,
            width,
            series: [0, 1].map(|_| [silent(), silent()]),
            outside: [0; 2],
        }
    }

    /// Takes the next packet of the first tap.
    pub fn first(&mut self, p: &Packet) {
        if let Some(through) = self.count(0, p) {
            let traffic = if through {
                Traffic::Through
            } else {
                Traffic::First
            };
            self.learners[traffic as usize].push(p);
        }
    }

    /// Takes the next packet of the second tap.
    pub fn second(&mut self, p: &Packet) {
        let mut own = *p;
        own.time = self.matched.clocks.by_first(p.time);
        // Through traffic is learnt where the first tap sees it.
        if self.count(1, &own) == Some(false) {
            self.learners[Traffic::Second as usize].push(&own);
        }
    }

    /// Counts a packet of a tap by the first tap's clock. Returns whether it is through traffic; `None` if the other tap
    /// did not record then.
    fn count(&mut self, tap: usize, p: &Packet) -> Option<bool> {
        let [from, to] = self.matched.common;
        if p.time < from || p.time > to {
            self.outside[tap] += 1;
            return None;
        }
        let through = self.matched.through(p);
        let sides = &mut self.matched.sides[tap];
        let ends = sides.witness(p);
        let right = match sides.leaves(ends, p.ip_len) {
            Some(outward) => outward != (tap == 1 && self.matched.turned),
            // Both ends are on one side: the ways of the flow are kept apart, in the same manner at both taps.
            None => !Flow::of(p).1,
        };
        let bin = p.time.abs_diff(from) / self.width.as_nanos();
        let series = &mut self.series[tap][usize::from(!through)][Direction::of(!right)];
        if let Some(bytes) = series.get_mut(bin as usize) {
            *bytes = bytes.saturating_add(p.ip_len);
        }
        Some(through)
    }

    /// Adds a warning that only the caller can know of to the models of a tap, such as packets skipped by the reader.
    pub fn doubt(&mut self, tap: usize, warning: &Warning) {
        let own = match tap {
            0 => [Traffic::Through, Traffic::First].as_slice(),
            _ => [Traffic::Second].as_slice(),
        };
        for &traffic in own {
            self.learners[traffic as usize].doubt(warning.clone());
        }
    }

    /// What the comparison found.
    pub fn matched(&self) -> &Matched {
        &self.matched
    }

    /// The models, and what both links carried.
    pub fn finish(mut self) -> Parted {
        let links = self.links();
        for doubt in self.doubts(&links) {
            for learner in &mut self.learners {
                learner.doubt(doubt.clone());
            }
        }
        let models = self.learners.map(|learner| {
            let model = learner.finish();
            (!model.sessions.is_empty()).then_some(model)
        });
        Parted {
            models,
            turned: self.matched.turned,
            links,
        }
    }

    fn links(&self) -> Links {
        let all = |tap: usize, direction: Direction| -> Vec<f64> {
            let [through, cross] = &self.series[tap];
            let both = through[direction].iter().zip(&cross[direction]);
            both.map(|(&a, &b)| f64::from(a) + f64::from(b)).collect()
        };
        let through = |tap: usize, direction: Direction| -> Vec<f64> {
            let bytes = &self.series[tap][0][direction];
            bytes.iter().map(|&b| f64::from(b)).collect()
        };
        let sum = |ways: &Series| ways.iter().flatten().map(|&b| u64::from(b)).sum();
        let per = (100_000_000 / self.width.as_nanos()).max(1) as usize;
        let seconds = self.width.as_secs_f64() * per as f64;
        let busiest = |tap: usize| {
            let most = Direction::BOTH.map(|d| {
                let pieces = all(tap, d);
                let sums = pieces.chunks(per).map(|c| c.iter().sum::<f64>());
                sums.fold(0.0, f64::max)
            });
            most[0].max(most[1]) / seconds
        };
        Links {
            bytes: [0, 1].map(|tap: usize| self.series[tap].each_ref().map(sum)),
            outside: self.outside,
            bin: self.width,
            busiest: [0, 1].map(busiest),
            coherence: Direction::BOTH.map(|d| coherences(&all(0, d), &all(1, d), MOMENTS)),
            through: Direction::BOTH.map(|d| coherences(&through(0, d), &through(1, d), MOMENTS)),
        }
    }

    /// What the captures cannot show, or hide.
    fn doubts(&self, links: &Links) -> Vec<Warning> {
        let found = &self.matched;
        let mut doubts = Vec::new();
        let mut say = |severity, code, message| {
            doubts.push(Warning {
                severity,
                code,
                message,
            });
        };
        let translated = found.translated as f64;
        if found.translated > 0 {
            let many = translated > TRANSLATED * (translated + found.flows() as f64);
            say(
                weight(many),
                Code::TranslatedBetween,
                format!(
                    "{} connections pass both taps under different addresses: a NAT is between them. They count as cross \
                     traffic at both",
                    found.translated
                ),
            );
        }
        let clocks = found.clocks;
        if clocks.lag.is_none() {
            let what = match clocks.packets {
                0 => {
                    "no packet can be recognised at both taps, so the clocks are compared by when flows began"
                }
                _ => {
                    "packets of one direction only were recognised at both taps, so the delay between the taps counts as an offset of the clocks"
                }
            };
            say(Severity::Warning, Code::TapClocks, what.to_owned());
        }
        let time = |nanos: i64| Dur::from_nanos(nanos.unsigned_abs());
        if let Some(wander) = clocks.wander.filter(|&wander| wander > DRIFT) {
            let text = format!(
                "the clocks of the taps drift apart by {}; coherence at timescales of some times as long and below is too low",
                time(wander)
            );
            say(Severity::Warning, Code::TapClocks, text);
        }
        if let Some(drift) = clocks
            .drift
            .filter(|&drift| clocks.skew != 0 && drift > DRIFT)
        {
            let text = format!(
                "the clocks of the taps drift apart by {}, at a rate of {:.1} ppm: times are corrected by it",
                time(drift),
                clocks.skew as f64 / 1000.0
            );
            say(Severity::Note, Code::TapClocks, text);
        }
        if let Some(lag) = clocks.lag.filter(|&lag| lag < -EARLIER) {
            let text = format!(
                "packets from inside to outside pass the second tap {} before the first: the clocks of the taps drift apart, or \
                 the taps are in the other order. The delay between them counts as zero",
                time(lag)
            );
            say(Severity::Warning, Code::TapClocks, text);
        }
        let first: u64 = links.bytes[0].iter().sum();
        if found.forgotten.flows > 0 {
            let share =
                found.forgotten.bytes as f64 / (first + found.forgotten.bytes).max(1) as f64;
            say(
                weight(share > 0.01),
                Code::FlowsForgotten,
                format!(
                    "{} small flows ({:.1} % of the first tap's bytes) were not compared, because there are too many: they \
                     count as cross traffic",
                    found.forgotten.flows,
                    100.0 * share
                ),
            );
        }
        let [a, b] = self.outside;
        if a + b > 0 {
            say(
                Severity::Note,
                Code::CommonTime,
                format!(
                    "{a} packets of the first tap and {b} of the second are left out: only {:.1} s are in both captures",
                    found.duration().as_secs_f64()
                ),
            );
        }
        doubts
    }
}

/// A warning if it is much, else a note.
fn weight(much: bool) -> Severity {
    match much {
        true => Severity::Warning,
        false => Severity::Note,
    }
}
