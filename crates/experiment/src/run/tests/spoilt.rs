//! Runs that their conditions spoil.

use std::sync::Mutex;

use super::*;
use crate::observe::Observations;

/// Spoils the first `attempts` attempts at the run of one replication beside `poisson`.
struct Disturbed {
    attempts: usize,
    /// The runs in their order: background and replication.
    seen: Mutex<Vec<(String, u32)>>,
}

const SPOILT: (&str, u32) = ("poisson", 1);

impl Backend for Disturbed {
    fn name(&self) -> &'static str {
        MadeUp::NAME
    }

    fn run(
        &self,
        spec: &RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Observations, RunError> {
        let mut observed = MadeUp::default().run(spec, progress, cancelled)?;
        let cell = (spec.cell.background.clone(), spec.cell.replication);
        let mut seen = self.seen.lock().unwrap();
        seen.push(cell.clone());
        let before = seen.iter().filter(|c| **c == cell).count();
        if (&*cell.0, cell.1) == SPOILT && before <= self.attempts {
            observed
                .warnings
                .push(Warning::warning(Code::EmulatorLate, ""));
        }
        Ok(observed)
    }

    fn is_spoilt(&self, observed: &Observations) -> bool {
        observed
            .warnings
            .iter()
            .any(|w| w.code == Code::EmulatorLate)
    }

    fn measure(
        &self,
        spec: &RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<crate::backend::MeasuredRates, RunError> {
        MadeUp::default().measure(spec, progress, cancelled)
    }
}

#[test]
fn a_spoilt_run_is_repeated_once_after_all_others() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(2));
    let whole = options(&scratch, "whole", 1);
    complete(&plan, &whole);
    for (attempts, repeated, still) in [(0, 0, false), (1, 1, false), (2, 1, true)] {
        let options = options(&scratch, &format!("s{attempts}"), 1);
        let backend = Disturbed {
            attempts,
            seen: Mutex::default(),
        };
        let ended = run(&plan, &backend, &options, &|_| {}, &|| false).unwrap();
        let RunOutcome::Complete(results) = ended else {
            panic!("{ended:?}")
        };
        let seen = backend.seen.into_inner().unwrap();
        assert_eq!(seen.len(), plan.cells.len() + repeated);
        if repeated > 0 {
            assert_eq!(*seen.last().unwrap(), (SPOILT.0.to_owned(), SPOILT.1));
        }
        let warned = &results.manifest.run_warnings;
        assert_eq!(
            warned.iter().any(|w| w.warning.code == Code::EmulatorLate),
            still
        );
        assert!(tables(&whole.dir) == tables(&options.dir));
    }
}

/// The call that did the spoilt run was interrupted before the repeats; the next one repeats it, once.
#[test]
fn a_spoilt_run_of_an_interrupted_call_is_repeated() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(2));
    let whole = options(&scratch, "whole", 1);
    complete(&plan, &whole);
    let options = options(&scratch, "cut", 1);
    let backend = Disturbed {
        attempts: 1,
        seen: Mutex::default(),
    };
    let times = || {
        let seen = backend.seen.lock().unwrap();
        let own = seen.iter().filter(|c| (&*c.0, c.1) == SPOILT);
        own.count()
    };
    let cut = run(&plan, &backend, &options, &|_| {}, &|| times() == 1).unwrap();
    assert!(matches!(cut, RunOutcome::Interrupted { .. }), "{cut:?}");
    assert_eq!(times(), 1);
    for _ in 0..2 {
        let ended = run(&plan, &backend, &options, &|_| {}, &|| false).unwrap();
        let RunOutcome::Complete(results) = ended else {
            panic!("{ended:?}")
        };
        assert_eq!(times(), 2);
        let warned = &results.manifest.run_warnings;
        assert!(warned.iter().all(|w| w.warning.code != Code::EmulatorLate));
        assert!(tables(&whole.dir) == tables(&options.dir));
    }
}

/// A repetition that fails leaves the first result, which is still to be repeated.
#[test]
fn a_spoilt_run_is_forgotten_only_when_it_has_been_repeated() {
    let scratch = tempfile::tempdir().unwrap();
    let plan = plan(&scratch, &experiment(2));
    let options = options(&scratch, "r", 1);
    let backend = Disturbed {
        attempts: 1,
        seen: Mutex::default(),
    };
    let spoilt = |cell: &Cell| (&*cell.background, cell.replication) == SPOILT;
    let index = plan.cells.iter().position(spoilt).unwrap();
    // All runs but the repetition are done when something is in the way of the repetition.
    let cut = |event: Event<'_>| {
        if let Event::Stage {
            name: "repeating", ..
        } = event
        {
            let partial = options
                .dir
                .join("cells")
                .join(format!("{index:05}.partial"));
            std::fs::write(partial, "in the way").unwrap();
        }
    };
    run(&plan, &backend, &options, &cut, &|| false).unwrap_err();
    let cell = options.dir.join("cells").join(format!("{index:05}"));
    assert!(cell.join("to-repeat").exists());
    std::fs::remove_file(cell.with_extension("partial")).unwrap();
    let ended = run(&plan, &backend, &options, &|_| {}, &|| false).unwrap();
    let RunOutcome::Complete(results) = ended else {
        panic!("{ended:?}")
    };
    let warned = &results.manifest.run_warnings;
    assert!(warned.iter().all(|w| w.warning.code != Code::EmulatorLate));
}
