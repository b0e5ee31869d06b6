//! Experiments that are refused, and runs that answer for no later call.

use std::sync::atomic::{AtomicUsize, Ordering};

use swell_experiment::RunSpec;
use swell_experiment::backend::RunError;
use swell_experiment::observe::Observations;

use super::*;
use crate::Kind;

#[test]
fn what_is_no_experiment_is_refused_without_reading_it_to_its_end() {
    // Both are endless.
    let zeros = text(io::repeat(0)).unwrap_err();
    assert_eq!(zeros.to_string(), "byte 0 is zero, so this is no text");
    let long = text(io::repeat(b'#')).unwrap_err();
    assert_eq!(long.to_string(), "more than 4 MB are no experiment");
    let odd = text(&b"name = \"K\xf6ln\""[..]).unwrap_err();
    assert_eq!(odd.to_string(), "byte 9 is not UTF-8");
    assert_eq!(text(&b"a = 1"[..]).unwrap(), "a = 1");
}

/// Windows of five in each fifteen seconds, of which a quarter of a minute has its share. Those of half a minute are
/// never over in it, and those that begin late never begin.
#[test]
fn a_quick_run_keeps_windows_or_is_refused() {
    let plan = |windows: &str, set: &[&str]| {
        let source = Source {
            text: format!(
                "name = \"x\"\nnetwork = {{ rate = \"10Mbit\" }}\n\
                 foreground = [{{ name = \"f\", kind = \"web\", object = \"10kB\" }}]\n\
                 background = [{{ name = \"b\", kind = \"cbr\", rate = \"1Mbit\", active = {windows} }}]\n\
                 run = {{ warmup = \"4s\", duration = \"64s\" }}\n"
            ),
            name: "x.toml".into(),
            base: ".".into(),
        };
        let options = Options {
            quick: true,
            set: set.iter().map(|s| (*s).to_owned()).collect(),
            ..Options::default()
        };
        super::plan(&source, &options).map_err(|e| e.message)
    };
    assert!(plan("{ from = \"3s\", on = \"5s\", off = \"10s\" }", &[]).is_ok());
    let long = "{ on = \"30s\", off = \"30s\" }";
    let said = plan(long, &[]).unwrap_err();
    let expected =
        "`b` sends 50 % of the time that counts, and 100 % in the quarter of it that --quick runs";
    assert_eq!(said, expected);
    let early = plan("{ from = \"0s\", on = \"1s\", off = \"30s\" }", &[]);
    assert!(early.unwrap_err().contains(" and 0 % in "));
    assert!(plan(long, &["background.b.active.on=5s"]).is_ok());
    // Where it sends in no window of the whole run either, this is no matter of --quick.
    assert!(plan("{ from = \"0s\", on = \"1s\" }", &[]).is_ok());
}

/// A backend whose runs no directory describes in full, as those of real programs.
struct Programs;

impl Backend for Programs {
    fn name(&self) -> &'static str {
        "programs"
    }

    fn is_reproducible(&self) -> bool {
        false
    }

    fn run(
        &self,
        spec: &RunSpec,
        progress: &dyn Fn(f64),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Observations, RunError> {
        MadeUp::default().run(spec, progress, cancelled)
    }
}

#[test]
fn runs_of_programs_answer_for_no_later_call_unless_it_says_so() {
    let scratch = swell_host::scratch::Scratch::new().unwrap();
    let experiment = |resume: bool, fresh: bool| {
        let options = Options {
            output: Some(scratch.path().join("run")),
            quick: true,
            made_up: true,
            threads: Some(1),
            resume,
            fresh,
            ..Options::default()
        };
        let source = Source::quick_start().unwrap();
        Experiment {
            backend: Box::new(Programs),
            ..Experiment::new(&source, options, None).unwrap()
        }
    };
    let refused = |said: &str| {
        let Err(error) = experiment(false, false).run(&|_| {}, &|| false) else {
            panic!("an earlier call answers")
        };
        assert!(error.message.contains(said), "{}", error.message);
        assert_eq!(error.kind, Kind::Usage);
    };
    // Where no run is finished, there is nothing to take over.
    for _ in 0..2 {
        let cut = experiment(false, false).run(&|_| {}, &|| true);
        assert!(cut.is_err_and(|e| e.kind == Kind::Interrupted));
    }
    let done = AtomicUsize::new(0);
    let count = |event: Event<'_>| {
        if let Event::Finished(_) = event {
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    let third = || done.load(Ordering::Relaxed) >= 3;
    assert!(experiment(false, false).run(&count, &third).is_err());
    let runs = experiment(false, false).plan.cells.len();
    refused(&format!("has 3 of {runs} runs of an earlier call"));
    assert!(experiment(true, false).run(&count, &|| false).is_ok());
    assert_eq!(done.load(Ordering::Relaxed), runs);
    refused("has the finished runs of an earlier call");
    // The caller says that all is as it was.
    assert!(experiment(true, false).run(&count, &|| false).is_ok());
    assert_eq!(done.load(Ordering::Relaxed), runs);
    assert!(experiment(false, true).run(&count, &|| false).is_ok());
    assert_eq!(done.load(Ordering::Relaxed), 2 * runs);
}
