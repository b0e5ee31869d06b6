//! Everything the study runs, as cells of one grid.

use swell_base::Dur;
use swell_stats::energies;
use swell_traffic::flowlevel::{FlowModel, Law, Profile};

use super::run::{COARSE, Imitation, Original, RTT, Seen, learn};
use swell_experiment::run::grid::Cell;

/// Vanishing moments of the wavelet.
const MOMENTS: usize = 3;
/// Quantiles of sizes and of gaps.
pub const SIZES: [(&str, f64); 6] = [
    ("size_10", 0.1),
    ("size_25", 0.25),
    ("size_50", 0.5),
    ("size_75", 0.75),
    ("size_90", 0.9),
    ("size_99", 0.99),
];
/// See [`SIZES`].
pub const GAPS: [(&str, f64); 5] = [
    ("gap_10", 0.1),
    ("gap_25", 0.25),
    ("gap_50", 0.5),
    ("gap_75", 0.75),
    ("gap_90", 0.9),
];
/// Most popular servers that are counted.
pub const RANKS: usize = 10;
/// Intervals of [`COARSE`] in an hour.
pub const COARSES: usize = 12;
/// Octaves of bins of a millisecond, up to four minutes.
pub const OCTAVES: usize = 18;

/// Names of the numbers: wire bytes and packets of both directions, connections that carry a file, quantiles of
/// files from servers in bytes and of gaps in seconds, shares of servers in the sessions by rank, wire bytes,
/// packets and connections by interval, and log2 of the energy at each octave.
pub const NUMBERS: &[&str] = &[
    "flows",
    "bytes",
    "packets",
    "packet_size",
    "size_10",
    "size_25",
    "size_50",
    "size_75",
    "size_90",
    "size_99",
    "size_mean",
    "gap_10",
    "gap_25",
    "gap_50",
    "gap_75",
    "gap_90",
    "gap_mean",
    "host_1",
    "host_2",
    "host_3",
    "host_4",
    "host_5",
    "host_6",
    "host_7",
    "host_8",
    "host_9",
    "host_10",
    "bytes_0",
    "bytes_1",
    "bytes_2",
    "bytes_3",
    "bytes_4",
    "bytes_5",
    "bytes_6",
    "bytes_7",
    "bytes_8",
    "bytes_9",
    "bytes_10",
    "bytes_11",
    "packets_0",
    "packets_1",
    "packets_2",
    "packets_3",
    "packets_4",
    "packets_5",
    "packets_6",
    "packets_7",
    "packets_8",
    "packets_9",
    "packets_10",
    "packets_11",
    "flows_0",
    "flows_1",
    "flows_2",
    "flows_3",
    "flows_4",
    "flows_5",
    "flows_6",
    "flows_7",
    "flows_8",
    "flows_9",
    "flows_10",
    "flows_11",
    "energy_1",
    "energy_2",
    "energy_3",
    "energy_4",
    "energy_5",
    "energy_6",
    "energy_7",
    "energy_8",
    "energy_9",
    "energy_10",
    "energy_11",
    "energy_12",
    "energy_13",
    "energy_14",
    "energy_15",
    "energy_16",
    "energy_17",
    "energy_18",
];

/// One run.
#[derive(Clone, Copy)]
pub struct HarpoonCell<'a> {
    /// What is imitated.
    pub original: &'a Original,
    /// How; none for the original itself.
    pub copy: Option<Imitation>,
    /// Of the copy.
    pub seed: u64,
}

/// A column of the ledger: a copy and what it is called.
pub const COPIES: [(&str, Imitation); 6] = [
    ("300 s", PLAIN),
    ("300 s, no RTT", Imitation { rtt: NONE, ..PLAIN }),
    (
        "60 s",
        Imitation {
            interval: MINUTE,
            ..PLAIN
        },
    ),
    (
        "60 s, no RTT",
        Imitation {
            interval: MINUTE,
            rtt: NONE,
            ..PLAIN
        },
    ),
    (
        "sampled 1 in 10",
        Imitation {
            sample: 10,
            ..PLAIN
        },
    ),
    (
        "as released",
        Imitation {
            profile: Profile::Harpoon,
            ..PLAIN
        },
    ),
];

const MINUTE: Dur = Dur::from_secs(60);
/// As near to none as a link's own delays are.
const NONE: Dur = Dur::from_micros(400);
const PLAIN: Imitation = Imitation {
    profile: Profile::Fixed,
    interval: COARSE,
    sample: 1,
    rtt: RTT,
};

/// The original and all copies, each with seeds from 1 on.
pub fn cells(original: &Original, seeds: u64) -> Vec<HarpoonCell<'_>> {
    let whole = HarpoonCell {
        original,
        copy: None,
        seed: 1,
    };
    let copies = COPIES.iter().flat_map(|&(_, copy)| {
        (1..=seeds).map(move |seed| HarpoonCell {
            original,
            copy: Some(copy),
            seed,
        })
    });
    std::iter::once(whole).chain(copies).collect()
}

impl Cell for HarpoonCell<'_> {
    const KEYS: &'static [&'static str] =
        &["what", "profile", "interval_s", "sample", "rtt_us", "seed"];
    const NUMBERS: &'static [&'static str] = NUMBERS;

    fn key(&self) -> Vec<String> {
        let Some(copy) = self.copy else {
            let mut key = vec!["original".to_owned()];
            key.resize(Self::KEYS.len(), "-".to_owned());
            return key;
        };
        vec![
            "copy".to_owned(),
            copy.profile.name().to_owned(),
            copy.interval.as_secs_f64().to_string(),
            copy.sample.to_string(),
            (copy.rtt.as_nanos() / 1_000).to_string(),
            self.seed.to_string(),
        ]
    }

    fn settings(&self) -> String {
        let o = self.original;
        format!("{} {} {} 2", o.model.name, o.sessions, o.duration)
    }

    fn cost(&self) -> f64 {
        match self.copy {
            None => 1.0,
            // The sampled records are of a run of their own.
            Some(copy) => 1.0 + f64::from(u8::from(copy.sample > 1)),
        }
    }

    fn run(&self) -> Vec<f64> {
        match &self.copy {
            None => numbers(self.original.seen()),
            Some(copy) => match self.original.play(copy, self.seed) {
                Some(seen) => numbers(&seen),
                None => vec![f64::NAN; NUMBERS.len()],
            },
        }
    }
}

/// What was seen, in numbers; originals and copies alike, by the same model of their records.
fn numbers(seen: &Seen) -> Vec<f64> {
    let Ok(model) = learn(&seen.records, Profile::Fixed, COARSE) else {
        return vec![f64::NAN; NUMBERS.len()];
    };
    let [bytes, packets]: [f64; 2] = [&seen.bytes, &seen.packets].map(|v| v.iter().sum());
    let mut out = vec![
        model.tcp.down.count() as f64,
        bytes,
        packets,
        bytes / packets,
    ];
    let sizes = model.tcp.down.law();
    let mean = |law: &Option<Law>| law.as_ref().map_or(f64::NAN, Law::mean);
    let at = |law: &Option<Law>, p| law.as_ref().map_or(f64::NAN, |l| l.quantile(p));
    out.extend(SIZES.iter().map(|q| at(&sizes, q.1)));
    out.push(mean(&sizes));
    let gaps = model.gap_law();
    out.extend(GAPS.iter().map(|q| at(&gaps, q.1) / 1e6));
    out.push(mean(&gaps) / 1e6);
    out.extend(shares(&model));
    let flows: Vec<f64> = model
        .tcp
        .intervals
        .iter()
        .map(|i| i.connections as f64)
        .collect();
    for series in [&seen.bytes, &seen.packets, &flows] {
        let padded = series.iter().copied().chain(std::iter::repeat(f64::NAN));
        out.extend(padded.take(COARSES));
    }
    let counts: Vec<f64> = seen.fine.iter().map(|&n| f64::from(n)).collect();
    let octaves = energies(&counts, MOMENTS);
    out.extend((1..=OCTAVES).map(|j| {
        let octave = octaves.iter().find(|o| o.j as usize == j);
        octave.map_or(f64::NAN, |o| o.y())
    }));
    out
}

/// Shares of the most popular servers in all sessions.
fn shares(model: &FlowModel) -> Vec<f64> {
    let popularity = &model.tcp.destinations;
    let total = popularity.total().max(1) as f64;
    let hosts = popularity.ranks.iter().flat_map(|&(count, n)| {
        std::iter::repeat_n(count as f64 / total, n.min(RANKS as u64) as usize)
    });
    hosts.chain(std::iter::repeat(0.0)).take(RANKS).collect()
}
