//! Studies written as files: a file names experiments, what varies, what is measured, what is claimed and what is
//! drawn.
//!
//! [`FileStudy::read`] reads and checks everything. It resolves every combination as an experiment and evaluates every
//! expression once with made-up numbers, so that mistakes show before hours of runs.
//! [`FileStudy::run`] performs the runs that its table does not hold yet, with the simulator of the experiment engine.
//! [`FileStudy::study`] makes the [`Study`](crate::Study) from the numbers.
//! `docs/studies.md` describes the file; [`format`] defines it key by key.
//!
//! The files of this module form layers, and import from their own layer and those below it. From the bottom up:
//!
//! 1. the files and their parts: `units`, `places`, `heat::keys`, [`format`], [`bench`], `error`, `texts`, `origin`;
//! 2. the expression language: `script`, `template`, and its view of a run: `tables`, `part`, `traffic`, `records`,
//!    `values`;
//! 3. checks and input: `each`, `axes`, `names`, `with`, `captures`, `compiled`, `group`;
//! 4. numbers, and where they come from: `reference`, `results`, `kept`, `source`;
//! 5. runs: `points`, `cells`, `wanted`, and `late` for runs on real hosts;
//! 6. claims and pictures: `claims`, `compare`, `asked`, `again`, `lists`, `heat`, `draw`;
//! 7. the study: `facade`, and `read`, which makes one.

mod again;
mod asked;
mod axes;
pub mod bench;
mod captures;
mod cells;
mod claims;
mod compare;
mod compiled;
mod draw;
mod each;
mod error;
mod facade;
pub mod format;
mod group;
mod heat;
mod kept;
mod late;
mod lists;
mod names;
mod origin;
mod part;
mod places;
mod points;
mod read;
mod records;
mod reference;
mod results;
mod script;
mod source;
mod tables;
mod template;
mod texts;
mod traffic;
mod units;
mod values;
mod wanted;
mod with;

pub use error::StudyError;
pub use facade::{FileStudy, Overrides};
pub use group::Group;
pub use texts::quoted;

#[cfg(test)]
mod tests;
