//! Properties of all verdicts, and error rates of verdicts on synthetic data with known truth.

use proptest::prelude::*;

use super::*;

/// Logarithms of request times, by condition, replication and request.
pub(super) type Draws = Vec<Vec<Vec<f64>>>;

/// Conditions none, poisson and learnt, with five to seven replications of about forty requests. Half of the shifts are
/// small, so that every answer occurs.
fn draws() -> impl Strategy<Value = Draws> {
    let either = prop_oneof![-0.08f64..0.12, -0.5f64..1.0];
    (
        5usize..8,
        0u64..1 << 40,
        prop::collection::vec(either, 2),
        0.0f64..0.15,
    )
        .prop_map(|(n, seed, shifts, noise)| {
            let mut s = swell_base::Stream::new(seed, "laws");
            [0.0, shifts[0], shifts[1]]
                .map(|shift| {
                    (0..n)
                        .map(|_| {
                            let run = shift + noise * (s.uniform() - 0.5);
                            (0..40).map(|_| run + 0.3 * s.uniform()).collect()
                        })
                        .collect()
                })
                .to_vec()
        })
}

/// Results with request times of 50 ms times e to the power of `draws`. `cut` selects the requests that are censored,
/// and gives the share of their time after which they are.
pub(super) fn made(draws: &Draws, cut: impl Fn(usize, usize, usize) -> Option<f64>) -> Results {
    let n = u32::try_from(draws[0].len()).unwrap();
    let mut results = results(n, |_, _| 1.0);
    for (i, run) in results.runs.iter_mut().enumerate() {
        let (condition, replication) = (i / n as usize, i % n as usize);
        let own = &draws[condition][replication];
        run.observed.requests.truncate(own.len());
        for (k, (request, log)) in run.observed.requests.iter_mut().zip(own).enumerate() {
            let took = 0.05 * log.exp();
            let seen = cut(condition, replication, k);
            request.outcome = match seen {
                Some(_) => Outcome::Unfinished,
                None => Outcome::Done,
            };
            request.last_byte = request.start + took * seen.unwrap_or(1.0);
            request.observed_until = request.last_byte;
        }
    }
    results
}

/// The answer for each background.
fn answers(results: &Results) -> Vec<(String, Option<Answer>)> {
    let v = Verdict::of(results).foregrounds.remove(0);
    let each = v.backgrounds.into_iter();
    let mut all: Vec<_> = each.map(|b| (b.background, b.matters)).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Runs may be in any order, and so may the backgrounds in the file.
    #[test]
    fn the_order_of_runs_and_backgrounds_does_not_matter(draws in draws(), turn in 0usize..20) {
        let mut results = made(&draws, |_, _, _| None);
        let before = answers(&results);
        let all = results.runs.len();
        results.runs.rotate_left(turn % all);
        results.runs.reverse();
        results.experiment.background.rotate_left(turn % 3);
        prop_assert_eq!(answers(&results), before);
    }

    /// A program that reports milliseconds gets the same answer as one that reports seconds.
    #[test]
    fn units_do_not_matter(draws in draws(), k in prop::sample::select(vec![1e-3, 0.37, 60.0, 1e6])) {
        let answer = |factor: f64| {
            let mut results = made(&draws, |_, _, _| None);
            super::open::program(&mut results, &["p99"]);
            let n = draws[0].len();
            for (i, run) in results.runs.iter_mut().enumerate() {
                run.observed.requests.clear();
                run.observed.measures = vec![swell_experiment::observe::MeasureSample {
                    measure: "p99".into(),
                    value: factor * draws[i / n][i % n][0].exp(),
                    at: 1.0,
                }];
            }
            answers(&results)
        };
        prop_assert_eq!(answer(1.0), answer(k));
    }

    /// An additional background neither creates a "yes" for another one, nor creates or removes a "no".
    #[test]
    fn another_background_never_makes_an_answer(draws in draws(), other in -0.5f64..1.0) {
        let mut results = made(&draws, |_, _, _| None);
        let before = answers(&results);
        let extra: Vec<RunResult> = results
            .runs
            .iter()
            .filter(|r| r.cell.background == "poisson")
            .map(|r| {
                let mut run = r.clone();
                run.cell.background = "another".into();
                for request in &mut run.observed.requests {
                    let took = (request.last_byte - request.start) * other.exp();
                    request.last_byte = request.start + took;
                    request.observed_until = request.last_byte;
                }
                run
            })
            .collect();
        results.runs.extend(extra);
        let another = file::read(
            &experiment(5).replace("name = \"poisson\"", "name = \"another\""),
            "x",
        )
        .unwrap();
        results.experiment.background.push(another.background[1].clone());
        let after = answers(&results);
        for (name, old) in before {
            let new = after.iter().find(|a| a.0 == name).unwrap().1;
            prop_assert!(new == old || (old, new) == (Some(Answer::Yes), Some(Answer::Unclear)), "{name}: {old:?} {new:?}");
        }
    }

    /// If most requests never end beside a background, the answer is never "does not matter", however fast the others
    /// are.
    #[test]
    fn what_was_not_seen_to_end_is_not_equal(draws in draws(), part in 0.1f64..0.9) {
        let results = made(&draws, |condition, _, k| (condition == 1 && k % 5 < 3).then_some(part));
        let of = answers(&results);
        let poisson = of.iter().find(|a| a.0 == "poisson").unwrap().1;
        prop_assert_ne!(poisson, Some(Answer::No));
    }
}

/// Standard normal.
pub(super) fn normal(s: &mut swell_base::Stream) -> f64 {
    let (u, v) = (1.0 - s.uniform(), s.uniform());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// The answers for `results` from request times alone: like the verdict, but without the checks of its tables.
fn decided(results: &Results) -> Vec<Answer> {
    let conditions: Vec<Condition<'_>> = results
        .experiment
        .background
        .iter()
        .map(|background| super::condition(results, background))
        .collect();
    let asked = super::asked();
    let of = |c: &Condition<'_>| judgements(&asked, c, &conditions[0]);
    let mut found: Vec<values::Found> = conditions[1..].iter().map(of).collect();
    judge::correct(found.iter_mut().flat_map(|f| &mut f.judged));
    let each = found.iter();
    each.map(|f| weighed(judge::answer(&f.judged), &[], &f.open))
        .collect()
}

/// Answers at true ratios of 1, 1.1 and 1.3: two backgrounds and none, dependent requests, heavy tails, variation
/// between runs, and a share of censored requests. Each kind of wrong answer occurs in at most 5 % of the cases,
/// however many requests are censored. Censoring does not make "does not matter" more frequent.
#[test]
fn answers_err_as_seldom_as_they_claim() {
    let worlds = 150usize;
    let (runs, requests) = (6usize, 40usize);
    let mut s = swell_base::Stream::new(5, "verdicts");
    let room = |p: f64| 3.0 * (p * (1.0 - p) / worlds as f64).sqrt();
    for truth in [1.0, 1.1, 1.3] {
        let mut equal_before = worlds;
        for cut in [0.0, 0.03, 0.3] {
            let (mut matters, mut equal) = (0, 0);
            for _ in 0..worlds {
                let one = |rng: &mut swell_base::Stream, factor: f64| -> Vec<f64> {
                    let run = factor.ln() + 0.05 * normal(rng);
                    let mut level = normal(rng);
                    (0..requests)
                        .map(|_| {
                            level = 0.6 * level + 0.8 * normal(rng);
                            let tail = match rng.uniform() {
                                u if u < 0.05 => -(1.0 - rng.uniform()).ln() / 1.5,
                                _ => 0.0,
                            };
                            run + 0.2 * level + tail
                        })
                        .collect()
                };
                let draws: Draws = [1.0, truth, truth]
                    .map(|factor| (0..runs).map(|_| one(&mut s, factor)).collect())
                    .to_vec();
                let seen: Vec<Option<f64>> = (0..3 * runs * requests)
                    .map(|_| (s.uniform() < cut).then(|| s.uniform()))
                    .collect();
                let results = made(&draws, |c, r, k| seen[(c * runs + r) * requests + k]);
                let answers = decided(&results);
                matters += usize::from(answers.contains(&Answer::Yes));
                equal += usize::from(answers.contains(&Answer::No));
            }
            let share = |k: usize| k as f64 / worlds as f64;
            if truth < 1.2 {
                let said = format!("{truth} {cut}: {matters}");
                assert!(share(matters) <= 0.05 + room(0.05), "{said}");
            }
            if truth > 1.05 {
                // Two backgrounds, each with its own error of 5 %.
                let said = format!("{truth} {cut}: {equal}");
                assert!(share(equal) <= 0.10 + room(0.10), "{said}");
            }
            assert!(
                share(equal) <= share(equal_before) + room(0.25),
                "{truth} {cut}: {equal}, {equal_before} with less cut off"
            );
            equal_before = equal;
            // The test has power: a true difference is found.
            if cut == 0.0 && truth > 1.2 {
                assert!(share(matters) > 0.5, "{matters}");
            }
            if cut == 0.0 && truth == 1.0 {
                assert!(equal > 0, "{equal}");
            }
        }
    }
}
