//! Studies: what is run, by which rules claims are judged, and what another simulator gave in the same
//! runs. Founding papers are rerun so, and studies of one's own.
//!
//! A study is a file ([`file`]) that names experiments, what varies, measures, claims and figures. The program carries
//! those of `studies/` ([`bundled`]). Its runs are done over all cores, those that its table does not hold yet
//! ([`swell_experiment::run::grid`]). What comes back becomes a [`Study`], plain data that `swell-report` draws: ledgers of
//! [`Entry`]s, one [`Finding`] for each set of circumstances, and sections of pictures and tables.
//!
//! ```no_run
//! use swell_study::bundled::Bundled;
//! use swell_study::file::Overrides;
//! use swell_experiment::run::grid::{Ended, Options};
//! # let bundled = Bundled::named("burstiness").unwrap();
//! let study = bundled.study(&Overrides { quick: true, ..Overrides::default() })?;
//! let options = Options { file: "runs.csv".into(), jobs: 2, fresh: false, shard: None };
//! if let Ended::Complete(numbers) = study.run(&options, &|_| {}, &|| false)? {
//!     let study = study.study(&numbers);
//!     println!("{} holds {}", study.title, study.ledgers[0].count(swell_study::Verdict::Holds));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Runs may be on real hosts instead of simulated ([`file::bench`]): then the caller plays them. `docs/studies.md` has what
//! all of them found. ns-2's numbers are tables, measured once: nothing here runs ns-2.

pub mod bundled;
pub mod file;

mod estimate;
mod ledger;
mod study;
mod words;

pub use estimate::Estimate;
pub use ledger::{Entry, Finding, Ledger, Verdict};
pub use study::{Axis, Line, Picture, Section, Study, Table, Unit};
