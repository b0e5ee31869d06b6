//! Founding papers rerun in simulation: what is run, by which rules a paper's claims are judged, and what
//! ns-2.35 gave in the same scenario.
//!
//! A study is a list of runs, each a [`grid::Cell`]: [`grid::run`] does those that its table does not hold
//! yet, over all cores. What comes back becomes a [`Study`], plain data that `swell-report` draws: ledgers
//! of [`Entry`]s, one [`Finding`] for each set of circumstances, and sections of pictures and tables.
//!
//! ```no_run
//! use swell_study::burstiness::Plan;
//! use swell_study::grid::{self, Ended, Options};
//! let plan = Plan { quick: true, seeds: 1 };
//! let cells = plan.scenarios();
//! let options = Options { file: "runs.csv".into(), jobs: 2, fresh: false };
//! if let Ended::Complete(numbers) = grid::run(&cells, &options, &|_| {}, &|| false)? {
//!     let study = plan.study(&cells, &numbers);
//!     println!("{} holds {}", study.title, study.ledgers[0].count(swell_study::Verdict::Holds));
//! }
//! # Ok::<(), grid::GridError>(())
//! ```
//!
//! [`burstiness`] is Tinnakornsrisuphap, Feng & Philp (2000), [`filler`] is Feldman (2001), [`harpoon`] is
//! Sommers & Barford (2004);
//! `docs/studies.md` has what they found. [`file`] is a study that anybody can write, as a file. ns-2's numbers are tables in the source, measured once: nothing
//! here runs ns-2.

pub mod bundled;
pub mod burstiness;
pub mod file;
pub mod filler;
pub mod grid;
pub mod harpoon;
pub mod router;

mod estimate;
mod ledger;
mod study;
mod words;

pub use estimate::Estimate;
pub use ledger::{Entry, Finding, Ledger, Verdict};
pub use study::{Axis, Line, Picture, Section, Study, Table, Unit};
