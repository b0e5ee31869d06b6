//! Studies: sets of runs, rules that judge claims, and another simulator's results for the same runs. They rerun
//! founding papers, and users can write their own.
//!
//! A study is a file ([`file`]) that names experiments, what varies, measures, claims and figures. The studies of
//! `studies/` are bundled with the program ([`bundled`]). Runs that the study's table does not hold yet are distributed
//! over all cores ([`swell_experiment::run::grid`]). The result is a [`Study`], plain data that `swell-report` draws:
//! ledgers of [`Entry`]s, one [`Finding`] for each set of circumstances, and sections of pictures and tables.
//!
//! ```no_run
//! use swell_study::bundled::Bundled;
//! use swell_study::file::Overrides;
//! use swell_experiment::run::grid::{GridOutcome, Options};
//! # let bundled = Bundled::named("burstiness").unwrap();
//! let study = bundled.study(&Overrides { quick: true, ..Overrides::default() })?;
//! let options = Options { file: "runs.csv".into(), jobs: 2, fresh: false, shard: None };
//! if let GridOutcome::Complete(numbers) = study.run(&options, &|_| {}, &|| false)? {
//!     let study = study.study(&numbers);
//!     println!("{} holds {}", study.title, study.ledgers[0].count(swell_study::Verdict::Holds));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Runs may be on real hosts instead of simulated ([`file::bench`]); the caller performs them. `docs/studies.md` has the
//! findings of all studies. The numbers of ns-2 are tables, measured once: nothing here runs ns-2.

pub mod bundled;
pub mod file;

mod estimate;
mod ledger;
mod study;
mod words;

pub use estimate::Estimate;
pub use ledger::{Entry, Finding, Ledger, Verdict};
pub use study::{
    Answer, Axis, HeatCell, Heatmap, Line, Panel, Picture, Section, Study, Table, Unit,
};
