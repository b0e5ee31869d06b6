//! Merges runs of one experiment with different seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use swell_base::{Code, Warning};

use super::{Measured, Results, RunWarning, unlike};
use crate::file::File;

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
        if anywhere(same) != anywhere(self.experiment.clone()) {
            return Err(differs("experiment"));
        }
        if self.manifest.version != other.manifest.version {
            return Err(differs("version"));
        }
        if self.manifest.backend != other.manifest.backend {
            return Err(differs("backend"));
        }
        if !unlike(&self.manifest.settings, &other.manifest.settings).is_empty() {
            return Err(differs("emulation (such as offload or stretch)"));
        }
        let hashes = |r: &Results| -> BTreeMap<String, String> {
            let models = r.manifest.models.iter();
            models.map(|(k, m)| (k.clone(), m.hash.clone())).collect()
        };
        let [ours, theirs] = [&self, &other].map(hashes);
        if ours != theirs {
            let imitates = |b: &crate::file::Background| {
                b.keys().imitates().is_some() && ours.get(b.name()) != theirs.get(b.name())
            };
            let imitation = self.experiment.background.iter().any(imitates);
            return Err(differs(match imitation {
                true => {
                    "imitation (learnt anew for each first seed, so such runs are never joined)"
                }
                false => "model",
            }));
        }
        let mine: BTreeSet<u64> = self.manifest.cells.iter().map(|c| c.seed).collect();
        if let Some(cell) = other.manifest.cells.iter().find(|c| mine.contains(&c.seed)) {
            return Err(JoinError::SharedSeed {
                dir: other.dir.clone(),
                seed: cell.seed,
            });
        }

        let unlike = matched_apart(&self, &other);
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
        for (background, added) in other.manifest.measured {
            let joined = self.manifest.measured.entry(background).or_default();
            let (n, m) = (f64::from(before), f64::from(after));
            *joined = together((joined, n), (&added, m));
        }
        self.manifest.warnings.extend(unlike);
        for doubt in other.manifest.warnings {
            if !self.manifest.warnings.contains(&doubt) {
                self.manifest.warnings.push(doubt);
            }
        }
        for (background, seconds) in other.manifest.run_s {
            *self.manifest.run_s.entry(background).or_default() += seconds;
        }
        self.manifest.wall_s += other.manifest.wall_s;
        self.joined.push(other.dir);
        self.joined.extend(other.joined);
        Ok(self)
    }
}

/// The experiment without the places of input files, which differ between machines. The hashes of their contents are
/// compared: those of parts are in the manifest, those of delivery traces in the experiment.
fn anywhere(mut experiment: File) -> File {
    let foregrounds = experiment.foreground.iter_mut().map(|f| &mut f.0);
    for part in foregrounds.chain(experiment.background.iter_mut().map(|b| &mut b.0)) {
        if let Some(path) = part.keys_mut().elsewhere() {
            path.clear();
        }
    }
    let named = experiment.links.iter_mut().map(|link| &mut link.keys);
    for keys in named.chain([&mut experiment.network.link]) {
        let sides = [&mut keys.up, &mut keys.down].into_iter().flatten();
        let traces = (keys.deliveries.iter_mut())
            .chain(sides.filter_map(|side| side.deliveries.as_mut()))
            .chain(keys.change.iter_mut().filter_map(|c| c.deliveries.as_mut()));
        for trace in traces.filter(|trace| trace.0.sha256.is_some()) {
            trace.0.file.clear();
        }
    }
    experiment
}

/// Mean rates that differ by more than this share do not make one load.
const ALIKE: f64 = 0.1;

/// Warnings of backgrounds that take the mean rate of another, where both directories measured rates that are not
/// alike.
fn matched_apart(ours: &Results, theirs: &Results) -> Vec<Warning> {
    let mut apart = Vec::new();
    for background in &ours.experiment.background {
        let Some(taken) = background.matches().filter(|_| !background.is_per_seed()) else {
            continue;
        };
        let rate = |r: &Results| r.manifest.measured.get(taken).map(|m| m.down_bps);
        let (Some(a), Some(b)) = (rate(ours), rate(theirs)) else {
            continue;
        };
        if (a - b).abs() > ALIKE * a.min(b) {
            let text = format!(
                "background {} has the mean rate of {taken}, which is {:.3} Mbit/s in some of these directories and \
                 {:.3} in another, so its replications have unlike loads; one run of all seeds has one mean, and \
                 match = \"per-seed\" a rate for each seed",
                background.name(),
                a / 1e6,
                b / 1e6
            );
            apart.push(Warning::warning(Code::MatchedApart, text));
        }
    }
    apart
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
        unyielding: a.unyielding || b.unyielding,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::run::{Options, RunOutcome, run};
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
        results_of(EXPERIMENT, dir, seed, replications)
    }

    fn results_of(experiment: &str, dir: &Path, seed: u64, replications: u32) -> Results {
        let text = format!("{experiment}seed = {seed}\nreplications = {replications}\n");
        let plan = Plan::resolve(&text, "test", Path::new("")).unwrap();
        let options = Options {
            dir: dir.join(format!("{seed}-{replications}")),
            threads: 1,
            fresh: false,
            shard: None,
        };
        match run(&plan, &Simulator, &options, &|_| {}, &|| false).unwrap() {
            RunOutcome::Complete(results) => *results,
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
        assert_eq!(joined.joined, [scratch.path().join("3-3")]);
    }

    #[test]
    fn batches_that_were_matched_to_unlike_rates_are_told() {
        let scratch = tempfile::tempdir().unwrap();
        let matched = |more: &str| {
            let text = EXPERIMENT.replace(
                "[run]",
                &format!("[[background]]\nname = \"cbr\"\nkind = \"cbr\"\nrate = \"match:poisson\"\n{more}\n[run]"),
            );
            let dir = scratch
                .path()
                .join(if more.is_empty() { "mean" } else { "each" });
            [1, 2].map(|seed| results_of(&text, &dir, seed, 1))
        };
        let told = |runs: &[Results; 2], share: f64| {
            let [one, mut other] = runs.clone();
            let measured = other
                .manifest
                .measured
                .get_mut("poisson")
                .expect("it is matched");
            measured.down_bps = one.manifest.measured["poisson"].down_bps * share;
            let warnings = one.join(other).unwrap().manifest.warnings;
            warnings
                .iter()
                .filter(|w| w.code == Code::MatchedApart)
                .count()
        };
        let runs = matched("");
        assert_eq!(
            [1.08, 1.12, 0.88].map(|share| told(&runs, share)),
            [0, 1, 1]
        );
        assert_eq!(told(&matched("match = \"per-seed\""), 2.0), 0);
    }

    #[test]
    fn inputs_may_be_elsewhere_on_another_machine() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("cell"), "1\n2\n3\n").unwrap();
        std::fs::copy(
            concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../experiments/pages/article.har"
            ),
            scratch.path().join("page.har"),
        )
        .unwrap();
        let text = EXPERIMENT
            .replace("rate = \"10Mbit\"", "deliveries = \"cell\"")
            .replace(
                "kind = \"web\"\nobject = \"20kB\"",
                "kind = \"page\"\npage = \"page.har\"",
            );
        let results = |seed: u64| {
            let text = format!("{text}seed = {seed}\nreplications = 1\n");
            let plan = Plan::resolve(&text, "test", scratch.path()).unwrap();
            let options = Options {
                dir: scratch.path().join(format!("{seed}")),
                threads: 1,
                fresh: false,
                shard: None,
            };
            match run(
                &plan,
                &crate::made_up::MadeUp::default(),
                &options,
                &|_| {},
                &|| false,
            ) {
                Ok(RunOutcome::Complete(results)) => *results,
                other => panic!("{other:?}"),
            }
        };
        let (one, mut other) = (results(1), results(2));
        let moved = other
            .experiment_toml
            .replace(&*scratch.path().to_string_lossy(), "/mnt");
        assert_ne!(moved, other.experiment_toml);
        other.experiment = crate::file::read(&moved, "moved").unwrap();
        one.clone().join(other.clone()).unwrap();
        // Other contents are another experiment.
        let mut trace = other.clone();
        let spec = trace.experiment.network.link.deliveries.as_mut().unwrap();
        spec.0.sha256 = Some("0".repeat(64));
        assert!(one.clone().join(trace).is_err());
        for model in other.manifest.models.values_mut() {
            model.hash.push('0');
        }
        let different = one.join(other);
        assert!(matches!(
            different,
            Err(JoinError::Different { what: "model", .. })
        ));
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
