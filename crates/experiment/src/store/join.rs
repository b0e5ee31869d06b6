//! Merges runs of one experiment with different seeds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use swell_base::Warning;

use super::{Measured, Results, RunWarning};

/// Why two run directories cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// They hold different experiments, or runs of different programs.
    #[error("{}: its {what} differs from that of the first", dir.display())]
    Different {
        /// The second directory.
        dir: PathBuf,
        /// What differs.
        what: &'static str,
    },
    /// They share a seed: the same runs would count twice.
    #[error("{}: seed {seed} is among those of the others already", dir.display())]
    SharedSeed {
        /// The second directory.
        dir: PathBuf,
        /// The seed.
        seed: u64,
    },
}

impl Results {
    /// Merges these results with those of the same experiment for other seeds, as if all replications had run in one
    /// directory. The replications of `other` are numbered after these. Each directory's own calibration stays in
    /// effect for its runs.
    ///
    /// # Errors
    /// If anything but seeds and replications differs, or a seed is in both.
    pub fn join(mut self, other: Results) -> Result<Results, JoinError> {
        let differs = |what| JoinError::Different {
            dir: other.dir.clone(),
            what,
        };
        let mut same = other.experiment.clone();
        same.run.seed = self.experiment.run.seed;
        same.run.replications = self.experiment.run.replications;
        if same != self.experiment {
            return Err(differs("experiment"));
        }
        if self.manifest.version != other.manifest.version {
            return Err(differs("version"));
        }
        if self.manifest.backend != other.manifest.backend {
            return Err(differs("backend"));
        }
        let hashes = |r: &Results| -> BTreeMap<String, String> {
            let models = r.manifest.models.iter();
            models.map(|(k, m)| (k.clone(), m.hash.clone())).collect()
        };
        if hashes(&self) != hashes(&other) {
            return Err(differs("model"));
        }
        let mine: Vec<u64> = self.manifest.cells.iter().map(|c| c.seed).collect();
        if let Some(cell) = other.manifest.cells.iter().find(|c| mine.contains(&c.seed)) {
            return Err(JoinError::SharedSeed {
                dir: other.dir.clone(),
                seed: cell.seed,
            });
        }

        let before = self.experiment.run.replications;
        let after = other.experiment.run.replications;
        self.experiment.run.replications = before + after;
        self.runs.extend(other.runs.into_iter().map(|mut run| {
            run.cell.replication += before;
            run
        }));
        self.manifest
            .run_warnings
            .extend(
                other
                    .manifest
                    .run_warnings
                    .into_iter()
                    .map(|doubt| RunWarning {
                        cell: crate::observe::Cell {
                            replication: doubt.cell.replication + before,
                            ..doubt.cell
                        },
                        ..doubt
                    }),
            );
        // In the order of a single directory: foregrounds, backgrounds, replications.
        let place = |name: &str, names: &[String]| names.iter().position(|n| n == name);
        let foregrounds: Vec<String> = self.foregrounds().into_iter().map(String::from).collect();
        let backgrounds: Vec<String> = self.backgrounds().into_iter().map(String::from).collect();
        self.runs.sort_by_key(|r| {
            (
                place(&r.cell.foreground, &foregrounds),
                place(&r.cell.background, &backgrounds),
                r.cell.replication,
            )
        });
        self.manifest.cells = self.runs.iter().map(|r| r.cell.clone()).collect();
        for (background, theirs) in other.manifest.measured {
            let unlike = (self.manifest.measured.get(&background))
                .and_then(|ours| matched_apart(&background, ours, &theirs));
            self.manifest.warnings.extend(unlike);
            let ours = self.manifest.measured.entry(background).or_default();
            let (n, m) = (f64::from(before), f64::from(after));
            *ours = together((ours, n), (&theirs, m));
        }
        for doubt in other.manifest.warnings {
            if !self.manifest.warnings.contains(&doubt) {
                self.manifest.warnings.push(doubt);
            }
        }
        for (background, seconds) in other.manifest.run_s {
            *self.manifest.run_s.entry(background).or_default() += seconds;
        }
        self.manifest.wall_s += other.manifest.wall_s;
        Ok(self)
    }
}

/// Rates to which one background was matched differ by more than this share in runs that are not of one load.
const ALIKE: f64 = 0.1;

/// A warning if both directories matched a background to rates of their own that are not alike.
fn matched_apart(background: &str, ours: &Measured, theirs: &Measured) -> Option<Warning> {
    let [a, b] = [ours.target_bps?, theirs.target_bps?];
    ((a - b).abs() > ALIKE * a.min(b)).then(|| {
        Warning::warning(
            "matched-apart",
            format!(
                "background {background} was matched to {:.3} Mbit/s in one directory and to {:.3} in another, so their \
                 replications have unlike loads; one run of all seeds has one, and match = \"per-seed\" one for each seed",
                a / 1e6,
                b / 1e6
            ),
        )
    })
}

/// Means over the replications of both directories.
fn together((a, n): (&Measured, f64), (b, m): (&Measured, f64)) -> Measured {
    let mean = |x: f64, y: f64| (x * n + y * m) / (n + m);
    let both = |x: Option<f64>, y: Option<f64>| x.zip(y).map(|(x, y)| mean(x, y));
    Measured {
        up_bps: mean(a.up_bps, b.up_bps),
        down_bps: mean(a.down_bps, b.down_bps),
        up_bps_each: [&a.up_bps_each[..], &b.up_bps_each].concat(),
        down_bps_each: [&a.down_bps_each[..], &b.down_bps_each].concat(),
        expected_bps: both(a.expected_bps, b.expected_bps),
        target_bps: both(a.target_bps, b.target_bps),
        speed: both(a.speed, b.speed),
        sessions: both(a.sessions, b.sessions),
        factor: both(a.factor, b.factor),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::run::{Ended, Options, run};
    use crate::{Plan, Simulator};

    const EXPERIMENT: &str = r#"
name = "joined"
[network]
rate = "10Mbit"
delay = "5ms"
[[foreground]]
name = "web"
kind = "web"
object = "20kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "6Mbit"
[run]
warmup = "1s"
duration = "6s"
"#;

    fn results(dir: &Path, seed: u64, replications: u32) -> Results {
        let text = format!("{EXPERIMENT}seed = {seed}\nreplications = {replications}\n");
        let plan = Plan::resolve(&text, "test", Path::new("")).unwrap();
        let options = Options {
            dir: dir.join(format!("{seed}-{replications}")),
            threads: 1,
            fresh: false,
            shard: None,
        };
        match run(&plan, &Simulator, &options, &|_| {}, &|| false).unwrap() {
            Ended::Complete(results) => *results,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn batches_of_seeds_are_the_runs_of_one_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let whole = results(scratch.path(), 1, 5);
        let joined = results(scratch.path(), 1, 2)
            .join(results(scratch.path(), 3, 3))
            .unwrap();
        // Compare as text, because missing values are NaN, which is not equal to itself.
        let text = |results: &Results| format!("{:?}", results.runs);
        assert!(text(&joined) == text(&whole));
        assert_eq!(joined.manifest.cells, whole.manifest.cells);
    }

    #[test]
    fn batches_that_were_matched_to_unlike_rates_are_told() {
        let scratch = tempfile::tempdir().unwrap();
        let [one, other] = [results(scratch.path(), 1, 1), results(scratch.path(), 2, 1)];
        let joined = |rate: f64| {
            let [mut one, mut other] = [one.clone(), other.clone()];
            for (results, bps) in [(&mut one, 5e6), (&mut other, rate)] {
                let measured = results
                    .manifest
                    .measured
                    .entry("poisson".into())
                    .or_default();
                measured.target_bps = Some(bps);
            }
            one.join(other).unwrap().manifest
        };
        let codes = |rate: f64| {
            joined(rate)
                .warnings
                .iter()
                .filter(|w| w.code == "matched-apart")
                .count()
        };
        assert_eq!((codes(5.4e6), codes(5.6e6), codes(4.5e6)), (0, 1, 1));
        assert_eq!(joined(6e6).measured["poisson"].target_bps, Some(5.5e6));
    }

    #[test]
    fn a_seed_counts_once_and_experiments_must_be_the_same() {
        let scratch = tempfile::tempdir().unwrap();
        let one = results(scratch.path(), 1, 2);
        let shared = one.clone().join(results(scratch.path(), 2, 2));
        assert!(matches!(shared, Err(JoinError::SharedSeed { seed: 2, .. })));
        let mut other = results(scratch.path(), 9, 1);
        other.experiment.name = "another".into();
        let different = one.join(other);
        assert!(matches!(
            different,
            Err(JoinError::Different {
                what: "experiment",
                ..
            })
        ));
    }
}
