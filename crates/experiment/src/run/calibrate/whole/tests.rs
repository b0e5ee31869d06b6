use std::collections::BTreeMap;
use std::sync::Mutex;

use swell_base::{Code, Direction, Dur, Stream};

use super::*;
use crate::backend::{Backend, MeasuredRates, Offered, RunError};
use crate::made_up::MadeUp;
use crate::observe::Observations;
use crate::plan::Plan;
use crate::run::calibrate::search::Search;
use crate::run::{Options, RunOutcome, run};
use crate::store::{Manifest, Measured};
use crate::test_support::{experiment, model};

/// A run that carries `carried` of `drawn`, where all draws offer 8 on average.
fn piece(drawn: f64, carried: f64, lost: f64) -> Piece {
    Piece {
        replication: 0,
        carried: MeasuredRates {
            up_bps: 0.0,
            down_bps: carried,
            lost,
        },
        offered: Some(Offered {
            mean: [0.0, 8.0],
            drawn: [0.0, drawn],
        }),
    }
}

#[test]
fn pieces_show_whether_the_network_shapes_the_traffic() {
    let pieces =
        |share: f64, lost: f64| [piece(6.0, 6.0 * share, 0.0), piece(9.0, 9.0 * share, lost)];
    assert!(!shaped(&pieces(1.0, 0.0)));
    assert!(!shaped(&pieces(0.96, 0.0005)));
    assert!(shaped(&pieces(0.94, 0.0)));
    assert!(shaped(&pieces(1.06, 0.0)));
    assert!(shaped(&pieces(1.0, 0.002)));
    // A draw of almost nothing does not show what share of it is carried.
    assert!(!shaped(&[piece(1.0, 0.5, 0.0)]));
}

/// Much that flows up as it should does not hide what is missing down.
#[test]
fn each_direction_shows_whether_the_network_shapes_it() {
    let both = |down: f64, up: f64, carried: [f64; 2]| Piece {
        replication: 0,
        carried: MeasuredRates {
            up_bps: carried[0],
            down_bps: carried[1],
            lost: 0.0,
        },
        offered: Some(Offered {
            mean: [up, down],
            drawn: [up, down],
        }),
    };
    assert!(!shaped(&[both(8.0, 8.0, [8.0, 7.7])]));
    assert!(shaped(&[both(8.0, 8.0, [8.0, 7.3])]));
    assert!(shaped(&[both(8.0, 8.0, [8.7, 8.0])]));
    // Acknowledgements.
    assert!(!shaped(&[both(8.0, 0.2, [0.18, 8.0])]));
}

#[test]
fn the_mean_over_all_draws_does_not_depend_on_those_at_hand() {
    let runs = |carried: fn(f64) -> f64| {
        let drawn = [3.0, 5.0, 6.0, 30.0];
        drawn.map(|x| piece(x, carried(x), 0.0))
    };
    let near = |x: f64, y: f64| (x - y).abs() < 1e-9;
    let expected = |all: &[Piece], d: Direction| Line::of(all, d).at(8.0);
    assert!(near(expected(&runs(|x| x), Direction::Down), 8.0));
    assert!(near(expected(&runs(|x| 0.8 * x), Direction::Down), 6.4));
    // A link that is full carries the same of any draw.
    assert!(near(expected(&runs(|_| 2.5), Direction::Down), 2.5));
    assert!(near(expected(&runs(|_| 0.0), Direction::Down), 0.0));
    // A draw that happens to be carried badly does not make a negative slope.
    let fallen = [piece(4.0, 4.0, 0.0), piece(6.0, 2.0, 0.0)];
    assert!(near(expected(&fallen, Direction::Down), 3.0));
    // All draws are equal, but not the mean.
    let same = [piece(4.0, 2.0, 0.0); 2];
    assert!(near(expected(&same, Direction::Down), 4.0));
}

#[test]
fn a_target_between_two_tries_is_met_between_their_paces() {
    let mut search = Search::new(Some(8.0), Some(1.0));
    search.learn_runs(&[piece(8.0, 6.0, 0.0)]);
    // Of what is lost, more is offered.
    assert!((search.pace.unwrap() - 8.0 / 6.0).abs() < 1e-9);
    search.learn_runs(&[piece(8.0, 9.0, 0.0)]);
    assert!((search.pace.unwrap() - (1.0 + 2.0 / 9.0)).abs() < 1e-9);
    search.learn_runs(&[piece(8.0, 7.9, 0.0)]);
    assert!(search.done);
    assert!((search.best().unwrap().rate[1] - 7.9).abs() < 1e-9);
}

#[test]
fn a_sample_has_the_smallest_and_the_largest_draw() {
    let drawn = [5.0, 1.0, 9.0, 3.0, 7.0, 2.0, 8.0].map(|x| Some([0.0, 10.0 + x]));
    assert_eq!(sample(&drawn, 2), [1, 2]);
    // Ranks 0, 2, 4 and 6.
    assert_eq!(sample(&drawn, 4), [1, 2, 3, 4]);
    assert_eq!(sample(&drawn, 7), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(sample(&drawn, 9), [0, 1, 2, 3, 4, 5, 6]);
    let mut unknown = drawn;
    unknown[3] = None;
    assert_eq!(sample(&unknown, 2), [0, 1, 2, 3, 4, 5, 6]);
}

/// The line through three draws of nothing and one other goes through all four, and tells nothing.
#[test]
fn all_draws_are_measured_where_they_are_not_alike() {
    let down = |rates: [f64; 6]| rates.map(|x| Some([1.0, x]));
    assert_eq!(sample(&down([6.0, 7.0, 8.0, 12.0, 9.0, 10.0]), 4).len(), 4);
    assert_eq!(sample(&down([6.0, 7.0, 8.0, 13.0, 9.0, 10.0]), 4).len(), 6);
    assert_eq!(sample(&down([0.0, 0.0, 0.0, 0.0, 0.0, 32.0]), 4).len(), 6);
    let mut up = down([7.0; 6]);
    up[2] = Some([3.0, 7.0]);
    assert_eq!(sample(&up, 4).len(), 6);
    let runs = |carried: [f64; 4]| carried.map(|x| piece(7.0, x, 0.0));
    assert!(is_enough(&runs([7.0, 7.0, 7.0, 7.1])));
    assert!(!is_enough(&runs([7.0, 7.0, 7.0, 7.5])));
    assert!(!is_enough(&runs([0.0; 4])));
}

/// What a network carries of what is offered, and how much that scatters.
type Plant = (fn(f64) -> f64, f64);

/// Eighty networks and sixteen replications: where a sample is enough, what it tells of the others is near what they
/// carry.
#[test]
fn a_sample_is_enough_only_where_it_tells_the_rest() {
    let plants: [Plant; 4] = [
        // With room, full, between both, and full with much that nobody knows.
        (|x| 0.97 * x, 0.005),
        (|x| x.min(6.0), 0.005),
        (|x| x.min(8.0) + 0.3 * (x - 8.0).max(0.0), 0.005),
        (|x| x.min(6.0), 0.2),
    ];
    let mut small = [0; 4];
    for (which, (carries, noise)) in plants.into_iter().enumerate() {
        for seed in 0..20 {
            let mut rng = Stream::new(seed, "plant");
            let all: Vec<Piece> = (0..16)
                .map(|replication| {
                    let drawn = 8.0 * (0.3 * (2.0 * rng.uniform() - 1.0)).exp();
                    let scatter = (2.0 * rng.uniform() - 1.0) * noise * 3f64.sqrt();
                    Piece {
                        replication,
                        ..piece(drawn, carries(drawn) * (1.0 + scatter), 0.0)
                    }
                })
                .collect();
            let drawn: Vec<_> = all
                .iter()
                .map(|p| Some([0.0, p.drawn(Direction::Down)]))
                .collect();
            let chosen = sample(&drawn, first(16));
            let seen: Vec<Piece> = chosen.iter().map(|&r| all[r as usize]).collect();
            if !is_enough(&seen) {
                continue;
            }
            small[which] += 1;
            let line = Line::of(&seen, Direction::Down);
            let told: f64 = all.iter().map(|p| line.at(p.drawn(Direction::Down))).sum();
            let came: f64 = all.iter().map(|p| p.rates()[1]).sum();
            assert!((told / came - 1.0).abs() < 0.03, "{which}: {told} {came}");
        }
    }
    let [room, _, between, noisy] = small;
    assert!(room == 20 && between < 20 && noisy == 0, "{small:?}");
}

/// The share of its packets that a run loses, by replication, and by the ratio of its load to the mean load.
type Lost = fn(u32, f64) -> f64;

/// A network that carries what is offered, but for a share of learnt traffic. It keeps the lengths of
/// the measured runs.
struct Clear {
    lengths: Mutex<Vec<Dur>>,
    lost: Lost,
}

impl Backend for Clear {
    fn name(&self) -> &'static str {
        "clear"
    }

    fn run(
        &self,
        spec: &RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Observations, RunError> {
        MadeUp::default().run(spec, progress, cancelled)
    }

    fn measure(
        &self,
        spec: &RunSpec,
        _: &dyn Fn(f64),
        _: &dyn Fn() -> bool,
    ) -> Result<MeasuredRates, RunError> {
        self.lengths.lock().unwrap().push(spec.duration);
        let offered = self.offered(spec)?.unwrap();
        let share = match &*spec.cell.background {
            "learnt" => {
                1.0 - (self.lost)(spec.cell.replication, offered.drawn[1] / offered.mean[1])
            }
            _ => 1.0,
        };
        Ok(MeasuredRates {
            up_bps: share * offered.drawn[0],
            down_bps: share * offered.drawn[1],
            lost: 0.0,
        })
    }
}

/// Calibrates on a network that loses these shares of learnt traffic. Returns what was measured, and the lengths of all
/// measured runs in seconds.
fn calibrated(text: &str, lost: Lost) -> (BTreeMap<String, Measured>, Vec<f64>) {
    let (manifest, lengths) = manifest(text, lost);
    (manifest.measured, lengths)
}

/// The same with all that the manifest says.
fn manifest(text: &str, lost: Lost) -> (Manifest, Vec<f64>) {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("tiny.json"), model(20_000_000)).unwrap();
    let text = text.replace("duration = \"22s\"", "duration = \"100s\"");
    let plan = Plan::resolve(&text, "x.toml", scratch.path()).unwrap();
    let options = Options {
        dir: scratch.path().join("r"),
        threads: 2,
        fresh: false,
        shard: None,
    };
    let clear = Clear {
        lengths: Mutex::default(),
        lost,
    };
    let ended = run(&plan, &clear, &options, &|_| {}, &|| false).unwrap();
    let RunOutcome::Complete(results) = ended else {
        panic!("nobody cancelled it");
    };
    let lengths = clear.lengths.into_inner().unwrap();
    let lengths = lengths.into_iter().map(Dur::as_secs_f64).collect();
    (results.manifest, lengths)
}

/// The rate of each replication is that of learnt traffic, whose largest draws are the only ones that lose nothing.
/// All are scaled alike, and not by the mean of a sample with the largest.
#[test]
fn rates_by_seed_are_scaled_by_the_mean_of_all() {
    let text = experiment(16).replace(
        "rate = \"match:learnt\"",
        "rate = \"match:learnt\"\nmatch = \"per-seed\"\ntransport = \"tcp\"\nload = \"carried\"",
    );
    let (measured, _) = calibrated(&text, |_, load| if load > 1.2 { 0.0 } else { 0.2 });
    let [learnt, poisson] = ["learnt", "poisson"].map(|name| &measured[name]);
    assert_eq!(poisson.factor, Some(1.0));
    for (a, b) in poisson.down_bps_each.iter().zip(&learnt.down_bps_each) {
        assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
    }
}

/// Runs that begin without sessions carry less than the model's mean, and are scaled by what they carry.
#[test]
fn a_cold_background_is_scaled_by_its_own_draws() {
    let text = experiment(8).replace("rate = \"8Mbit\"", "rate = \"8Mbit\"\ncold = true");
    let (measured, _) = calibrated(&text, |_, _| 0.0);
    let learnt = &measured["learnt"];
    let expected = learnt.expected_bps.unwrap();
    assert!(
        (expected / learnt.down_bps - 1.0).abs() < 1e-9,
        "{learnt:?}"
    );
    assert!((expected / 8e6 - 1.0).abs() < 0.1, "{learnt:?}");
    // The model's own load, with sessions in progress, takes four.
    assert!(learnt.sessions.unwrap() > 4.2, "{learnt:?}");
}

/// The part of the trace that all runs play has four times its mean load.
#[test]
fn whole_runs_are_measured_where_the_draws_make_the_link_busy() {
    let text = experiment(4)
        .replace("20Mbit", "200Mbit")
        .replace("duration = \"22s\"", "duration = \"23s\"");
    let phase = text.replace("rate = \"8Mbit\"", "rate = \"8Mbit\"\nphase = \"0s\"");
    let (_, lengths) = calibrated(&phase, |_, _| 0.0);
    assert!(lengths.iter().all(|&length| length == 23.0), "{lengths:?}");
    let (_, others) = calibrated(&text, |_, _| 0.0);
    assert!(others.iter().all(|&length| length < 23.0), "{others:?}");
}

/// A replay of another background is made before that one is scaled to what the network carries of it.
#[test]
fn a_copy_of_another_load_than_its_original_is_doubted() {
    let copy = "[[background]]\nname = \"copy\"\nkind = \"replay\"\nof = \"learnt\"\n[run]\n";
    let text = experiment(4)
        .replace("[run]\n", copy)
        .replace("duration = \"22s\"", "duration = \"23s\"");
    let said = |lost: Lost| {
        let (manifest, _) = manifest(&text, lost);
        let apart = |w: &&swell_base::Warning| w.code == Code::CopiedApart;
        let doubts = manifest.warnings.iter().filter(apart);
        doubts.map(|w| w.message.clone()).collect::<Vec<String>>()
    };
    assert_eq!(said(|_, _| 0.0), Vec::<String>::new());
    let doubts = said(|_, _| 0.2);
    assert_eq!(doubts.len(), 1, "{doubts:?}");
    assert!(
        doubts[0].contains("at 3.861 times its own load, and learnt plays 4.827 times"),
        "{doubts:?}"
    );
}

#[test]
fn pieces_are_short_only_where_the_link_has_room() {
    let lengths = |link: &str, replications: u32, lost: Lost| {
        calibrated(&experiment(replications).replace("20Mbit", link), lost).1
    };
    // 8 of 20 Mbit/s.
    assert_eq!(lengths("20Mbit", 4, |_, _| 0.0), [100.0; 4]);
    // What the others carry follows from four.
    assert_eq!(lengths("20Mbit", 12, |_, _| 0.0), [100.0; 4]);
    // Here it does not, so all are measured, each once a round.
    let uneven = |r: u32, _: f64| 0.5 * Stream::new(r.into(), "loss").uniform();
    let runs = lengths("20Mbit", 12, uneven);
    assert!(runs.len().is_multiple_of(12), "{runs:?}");
    // 8 of 1000 Mbit/s: a quarter of the runs' time at most. There are three backgrounds.
    let short = lengths("1Gbit", 4, |_, _| 0.0);
    let all = 3.0 * 4.0 * 100.0;
    assert!(
        !short.is_empty() && short.iter().sum::<f64>() <= all / 4.0,
        "{short:?}"
    );
}
