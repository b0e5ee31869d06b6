//! `swell learn --through`: two links with known traffic, their captures, and the models played over two links again.

use std::path::{Path, PathBuf};

use swell_capture::{Heading, LinkType, Reader, Record, Writer};
use swell_experiment::Results;
use swell_experiment::observe::Observations;
use swell_experiment::store::RunResult;

use crate::{Scratch, ran, run, text};

/// Two links. Half of the first one's traffic, and two thirds of the second one's, crosses both.
const TRUTH: &str = r#"
name = "truth"
[network]
[[links]]
name = "first"
rate = "20Mbit"
delay = "5ms"
[[links]]
name = "second"
rate = "20Mbit"
delay = "5ms"
[[foreground]]
name = "nothing"
kind = "none"
[[background]]
name = "through"
kind = "learnt"
model = "access-link"
rate = "4Mbit"
[[background]]
name = "cross-first"
kind = "learnt"
model = "access-link"
rate = "4Mbit"
path = ["first"]
[[background]]
name = "cross-second"
kind = "learnt"
model = "access-link"
rate = "2Mbit"
path = ["second"]
[[background]]
name = "all"
kind = "mix"
of = ["through", "cross-first", "cross-second"]
[run]
replications = 1
warmup = "10s"
duration = "130s"
"#;

/// The end of the warm-up, nanoseconds.
const WARM_UP: i64 = 10_000_000_000;
/// By how much the clock of the second tap is ahead, nanoseconds.
const AHEAD: u64 = 7_250_000_000;

// The bars, written down before the first comparison. A playback draws sessions anew, so it is compared as the fidelity of
// a model is: its mean energy over octaves is within 1.5 dB.
/// Octaves that are compared, seconds: below, the delay between the links decides; above, there are few coefficients.
const OCTAVES: std::ops::RangeInclusive<f64> = 0.015..=2.1;
/// What the captures show, against what the run counted itself: the same packets.
const SEEN_SHARE: f64 = 0.005;
const SEEN_DB: f64 = 0.3;
const SEEN_COHERENCE: f64 = 0.05;
/// A playback against the truth, each as the mean of three seeds: the mean over the octaves, and each of them.
const MEAN_DB: f64 = 1.5;
const EACH_DB: f64 = 3.0;
const MEAN_COHERENCE: f64 = 0.1;
const EACH_COHERENCE: f64 = 0.25;

/// An octave.
#[derive(Debug)]
struct Octave {
    /// Timescale, seconds.
    timescale: f64,
    /// Energies of both links, dB.
    db: [f64; 2],
    coherence: f64,
}

/// The octaves of a run in one direction, by the run's own tables.
fn of_run(observed: &Observations, direction: &str) -> Vec<Octave> {
    let energy = |link: &str, octave: u32| {
        let wanted = (link, direction, "all", "bytes");
        let own = observed.scales.iter().filter(|s| s.octave == octave);
        let mut own =
            own.filter(|s| wanted == (&*s.link, s.direction.name(), &*s.traffic, &*s.quantity));
        own.next().unwrap().energy
    };
    let all = observed.coherence.iter();
    let own = all.filter(|c| c.traffic == "all" && c.direction.name() == direction);
    own.map(|c| Octave {
        timescale: c.timescale,
        db: ["first", "second"].map(|link| 10.0 * energy(link, c.octave).log10()),
        coherence: c.coherence,
    })
    .filter(|o| OCTAVES.contains(&o.timescale))
    .collect()
}

/// The same as the learner printed them.
fn learnt(value: &serde_json::Value, direction: &str) -> Vec<Octave> {
    let all = value["octaves"][direction].as_array().unwrap().iter();
    let number = |v: &serde_json::Value| v.as_f64().unwrap();
    all.map(|o| Octave {
        timescale: number(&o["timescale_s"]),
        db: [0, 1].map(|i| 10.0 * number(&o["energies"][i]).log10()),
        coherence: number(&o["coherence"]),
    })
    .filter(|o| OCTAVES.contains(&o.timescale))
    .collect()
}

/// Distances of octaves from the truth.
#[derive(Debug)]
struct Distance {
    /// Mean and largest one of energies, dB.
    db: [f64; 2],
    /// The same of coherence.
    coherence: [f64; 2],
}

impl Distance {
    fn of(found: &[Octave], truth: &[Octave]) -> Distance {
        assert_eq!(found.len(), truth.len());
        assert!(truth.len() >= 8);
        let both = || found.iter().zip(truth);
        let most = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        let db: Vec<f64> = both()
            .flat_map(|(a, b)| [0, 1].map(|i| (a.db[i] - b.db[i]).abs()))
            .collect();
        let off = |(a, b): (&Octave, &Octave)| (a.coherence - b.coherence).abs();
        let coherence: Vec<f64> = both().map(off).collect();
        Distance {
            db: [mean(&db), most(&db)],
            coherence: [mean(&coherence), most(&coherence)],
        }
    }
}

/// The mean of runs, octave by octave.
fn mean(runs: &[Vec<Octave>]) -> Vec<Octave> {
    let n = runs.len() as f64;
    let mean_of = |i: usize| {
        let sum = |f: &dyn Fn(&Octave) -> f64| runs.iter().map(|r| f(&r[i])).sum::<f64>() / n;
        let power = |link: usize| 10.0 * sum(&|o| 10f64.powf(o.db[link] / 10.0)).log10();
        Octave {
            timescale: runs[0][i].timescale,
            db: [power(0), power(1)],
            coherence: sum(&|o| o.coherence),
        }
    };
    (0..runs[0].len()).map(mean_of).collect()
}

/// Whether a run has all traffic.
fn is_all(run: &&RunResult) -> bool {
    run.cell.background == "all"
}

/// The packet file of a link in the run with all traffic.
fn capture(dir: &Path, link: &str) -> PathBuf {
    let all = std::fs::read_dir(dir.join("truth/packets")).unwrap();
    let mut all = all.map(|e| e.unwrap().path());
    let end = format!("-all-0.{link}.pcapng");
    all.find(|p| p.to_string_lossy().ends_with(&end)).unwrap()
}

/// The capture after the warm-up, by a clock that is ahead: the run's own tables are without the warm-up, too.
fn after_warm_up(from: &Path, to: &Path, ahead: u64) {
    let mut reader = Reader::open(from).unwrap();
    let mut writer = Writer::create(to, "a test").unwrap();
    for way in ["up", "down"] {
        writer.interface(way, LinkType::RAW, 100).unwrap();
    }
    while let Some(()) = reader
        .next_frame(|frame| {
            if frame.time < WARM_UP {
                return;
            }
            let record = Record {
                interface: frame.interface,
                time: frame.time as u64 + ahead,
                wire_len: frame.wire_len,
                heading: Heading::Outbound,
                data: frame.data,
            };
            writer.packet(&record).unwrap();
        })
        .unwrap()
    {}
    writer.finish().unwrap();
}

#[test]
fn two_captures_are_split_and_played_over_both_links() {
    let dir = Scratch::new("through");
    dir.write("truth.toml", TRUTH);
    let made = run(&dir, &["run", "truth.toml", "-o", "truth", "--packets"]);
    assert!(ran(&made), "{}", text(&made.stderr));
    let results = Results::load(&dir.0.join("truth")).unwrap();
    let captured = &results.runs.iter().find(is_all).unwrap().observed;
    // One capture is a draw: two more seeds tell what the traffic is like.
    let more = run(
        &dir,
        &[
            "run",
            "truth.toml",
            "-o",
            "more",
            "--set",
            "run.seed=2",
            "--set",
            "run.replications=2",
        ],
    );
    assert!(ran(&more), "{}", text(&more.stderr));
    let more = Results::load(&dir.0.join("more")).unwrap();
    for (link, clock) in [("first", 0), ("second", AHEAD)] {
        let cut = dir.0.join(format!("{link}.pcapng"));
        after_warm_up(&capture(&dir.0, link), &cut, clock);
    }
    let arguments = [
        "learn",
        "--through",
        "first.pcapng",
        "second.pcapng",
        "-o",
        "split",
        "--json",
    ];
    let split = run(&dir, &arguments);
    assert!(split.status.success(), "{}", text(&split.stderr));
    let value: serde_json::Value = serde_json::from_slice(&split.stdout).unwrap();

    // Who went where is known to the run.
    for (i, link) in ["first", "second"].into_iter().enumerate() {
        let bytes = |part: Option<&str>| -> u64 {
            let own = captured.parts.iter().filter(|p| &*p.link == link);
            let own = own.filter(|p| part.is_none_or(|part| p.part == part));
            own.map(|p| p.arrived).sum()
        };
        let share = bytes(Some("through")) as f64 / bytes(None) as f64;
        let found = value["through_share"][i].as_f64().unwrap();
        assert!(
            (found - share).abs() < SEEN_SHARE,
            "{link}: {found} for {share}"
        );
    }
    let clocks = &value["clocks"];
    let near = |key: &str, truth: f64| {
        let found = clocks[key].as_f64().unwrap();
        assert!((found - truth).abs() < 0.0005, "{key}: {found} for {truth}");
    };
    near("offset_s", AHEAD as f64 / 1e9);
    near("delay_s", 0.005);

    // The models over two links. The taps do not tell their rates.
    let experiment = std::fs::read_to_string(dir.0.join("split/experiment.toml")).unwrap();
    let silent = experiment.replace("kind = \"web\"\nobject = \"100kB\"", "kind = \"none\"");
    dir.write("split/play.toml", &silent);
    let rates = ["links.first.rate=20Mbit", "links.second.rate=20Mbit"];
    let played = run(
        &dir,
        &[
            "run",
            "split/play.toml",
            "-o",
            "play",
            "--set",
            rates[0],
            "--set",
            rates[1],
            "--set",
            "run.duration=130s",
            "--set",
            "run.replications=3",
        ],
    );
    assert!(ran(&played), "{}", text(&played.stderr));
    let played = Results::load(&dir.0.join("play")).unwrap();
    let compared = ["up", "down"].map(|direction| {
        let octaves = |results: &Results| -> Vec<Vec<Octave>> {
            let all = results.runs.iter().filter(is_all);
            all.map(|r| of_run(&r.observed, direction)).collect()
        };
        let own = of_run(captured, direction);
        let seen = Distance::of(&learnt(&value, direction), &own);
        let mut draws = octaves(&more);
        draws.push(own);
        let (wanted, again) = (mean(&draws), mean(&octaves(&played)));
        let found = Distance::of(&again, &wanted);
        (direction, seen, found)
    });
    for (direction, seen, played) in compared {
        let exact = seen.db[1] < SEEN_DB && seen.coherence[1] < SEEN_COHERENCE;
        assert!(exact, "{direction}: {seen:?}");
        let energy = played.db[0] < MEAN_DB && played.db[1] < EACH_DB;
        assert!(energy, "{direction}: {played:?}");
        let common = played.coherence[0] < MEAN_COHERENCE && played.coherence[1] < EACH_COHERENCE;
        assert!(common, "{direction}: {played:?}");
    }
}

#[test]
fn what_cannot_be_split_says_why() {
    let dir = Scratch::new("through-wrong");
    std::fs::write(dir.0.join("a.pcap"), crate::learn::lookup()).unwrap();
    let mut other = crate::learn::lookup();
    // The client's address, in both packets: another host, as behind a NAT.
    let client = [10, 0, 0, 1];
    for at in 0..other.len() - 4 {
        if other[at..at + 4] == client {
            other[at] = 11;
        }
    }
    std::fs::write(dir.0.join("b.pcap"), other).unwrap();
    let refused = |arguments: &[&str]| {
        let out = run(&dir, arguments);
        assert_eq!(out.status.code(), Some(2));
        text(&out.stderr)
    };
    let said = refused(&["learn", "--through", "a.pcap", "b.pcap", "-o", "x"]);
    assert!(
        said.contains("no flow passes both taps") && said.contains("NAT"),
        "{said}"
    );
    assert!(!dir.0.join("x").exists(), "nothing is written");
    let said = refused(&["learn", "--through", "a.pcap", "-o", "x"]);
    assert!(said.contains("takes two captures, not 1"), "{said}");
    let said = refused(&["learn", "--through", "a.pcap", "-", "-o", "x"]);
    assert!(said.contains("twice"), "{said}");
}
