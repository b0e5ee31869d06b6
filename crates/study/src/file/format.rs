//! The format of the study file.
//!
//! The types mirror the file key by key. Unknown keys are errors with a hint, because the reader checks the file
//! against the JSON schema of these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use swell_base::{Code, Dur};

pub use super::heat::HeatmapSpec;
pub use super::places::Places;
pub use super::units::Units;

/// A study: experiments, what varies, what is measured, what is claimed and what is drawn.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyFile {
    /// Name of the study; its directory is called after it. Letters, digits, dashes.
    pub name: String,
    /// Heading of the page.
    pub title: String,
    /// What is rerun, or what it is about.
    #[serde(default)]
    pub paper: String,
    /// The experiment file, relative to this one, or a file of a bench. Lines may name others.
    pub experiment: String,
    /// Which foreground of the experiment is run. Default: the only one.
    #[serde(default)]
    pub foreground: Option<String>,
    /// Which background of the experiment is run. Default: the only one.
    #[serde(default)]
    pub background: Option<String>,
    /// Seeds of each run. Default 5.
    #[serde(default = "five")]
    pub seeds: u16,
    /// Whether nothing in the runs hangs on their seeds: then one is enough, and few raise no doubt.
    #[serde(default)]
    pub fixed: bool,
    /// Keys of the experiment to set in every run, as `swell run --set` takes them. What stands in
    /// `${...}` is an expression.
    #[serde(default)]
    pub set: Vec<String>,
    /// Values that expressions know by name.
    #[serde(default)]
    pub with: BTreeMap<String, Scalar>,
    /// Which of those values may be asked for with `--with`. Default: none.
    #[serde(default)]
    pub option: Vec<StudyOption>,
    /// What a first look (`--quick`) changes.
    #[serde(default)]
    pub quick: Quick,
    /// What varies as numbers do.
    #[serde(default)]
    pub axis: Vec<Axis>,
    /// What is compared.
    #[serde(default)]
    pub line: Vec<Line>,
    /// Circumstances under which every claim is asked: the columns of the ledger.
    #[serde(default)]
    pub column: Vec<Column>,
    /// Captures named on the command line: each is one more column.
    #[serde(default)]
    pub capture: Option<Capture>,
    /// Numbers of a run.
    pub measure: Vec<Measure>,
    /// Numbers that somebody else has for the same runs.
    #[serde(default)]
    pub reference: Option<Reference>,
    /// Functions that the expressions of claims, figures and tables may call.
    #[serde(default)]
    pub functions: String,
    /// A file of `[[claim]]` tables, relative to this one.
    #[serde(default)]
    pub claims: Option<String>,
    /// What is claimed. They come before those of the file `claims`.
    #[serde(default)]
    pub claim: Vec<Claim>,
    /// What is drawn.
    #[serde(default)]
    pub figure: Vec<Figure>,
    /// What is tabled beside figures.
    #[serde(default)]
    pub table: Vec<TableSpec>,
    /// What is said of a section of figures.
    #[serde(default)]
    pub section: Vec<Section>,
    /// What to doubt, printed first whatever the numbers are.
    #[serde(default)]
    pub doubt: Vec<Doubt>,
}

/// What is said of a section of figures.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Its title, as figures give it.
    pub title: String,
    /// What it is, in a few sentences.
    pub what: String,
}

/// Something to doubt.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Doubt {
    /// Its name: a word or two, with dashes.
    #[schemars(with = "String")]
    pub code: Code,
    /// What to doubt, and what to do about it.
    pub text: String,
}

/// A file of claims.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimsFile {
    /// What is claimed.
    pub claim: Vec<Claim>,
}

/// A value with a name.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// True or false.
    Switch(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// A value under the study's `with` that may be asked for: `--with NAME=VALUE`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyOption {
    /// Its name under `with`.
    pub name: String,
    /// What it is, in a few words.
    pub what: String,
    /// The least number that is taken.
    #[serde(default)]
    pub from: Option<f64>,
    /// The greatest.
    #[serde(default)]
    pub to: Option<f64>,
}

impl StudyOption {
    /// The bounds in words; empty where there are none.
    pub fn bounds(&self) -> String {
        match (self.from, self.to) {
            (Some(from), Some(to)) => format!("{from} to {to}"),
            (Some(from), None) => format!("at least {from}"),
            (None, Some(to)) => format!("at most {to}"),
            (None, None) => String::new(),
        }
    }

    /// Whether a number is within the bounds.
    pub(super) fn takes(&self, x: f64) -> bool {
        self.from.is_none_or(|from| x >= from) && self.to.is_none_or(|to| x <= to)
    }

    /// The option as a line of a list.
    pub(super) fn in_words(&self) -> String {
        let bounds = self.bounds();
        let separator = if bounds.is_empty() { "" } else { ", " };
        format!("{}: {}{separator}{bounds}", self.name, self.what)
    }
}

/// What a first look changes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quick {
    /// Seeds of each run. Default 1.
    pub seeds: Option<u16>,
    /// Other values of names under the study's `with`. What is asked for with `--with` comes before them.
    pub with: BTreeMap<String, Scalar>,
    /// Keys of the experiment to set, after those of the study.
    pub set: Vec<String>,
    /// The columns that are run. Default: all.
    pub columns: Vec<String>,
    /// How it differs from the whole study, and what that does to the numbers. Default: "fewer or shorter runs".
    pub what: Option<String>,
}

/// Something that varies as numbers do.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What expressions call it.
    pub name: String,
    /// Its values.
    pub values: Vec<f64>,
    /// Its values in a first look. Default: all.
    #[serde(default)]
    pub quick: Option<Vec<f64>>,
    /// Keys of the experiment to set, after those of the column.
    #[serde(default)]
    pub set: Vec<String>,
}

/// One of the things that are compared.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// What expressions and tables call it.
    pub name: String,
    /// What legends call it. Default: the name.
    #[serde(default)]
    pub label: Option<String>,
    /// Another experiment file than the study's.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Another foreground than the study's and the column's.
    #[serde(default)]
    pub foreground: Option<String>,
    /// Another background than the study's and the column's.
    #[serde(default)]
    pub background: Option<String>,
    /// Values that expressions know by name, before those of the study and the column.
    #[serde(default)]
    pub with: BTreeMap<String, Scalar>,
    /// Keys of the experiment to set, after those of the column and the axes.
    #[serde(default)]
    pub set: Vec<String>,
    /// Keys of a bench to set after the runs of all other lines, of which `${...}` knows what claims do.
    #[serde(default)]
    pub late: Vec<String>,
    /// The columns in which it is run. Default: all.
    #[serde(default)]
    pub columns: Option<Vec<String>>,
    /// The measures that mean something of it. It has no number for others: their cells are empty, no expression
    /// finds them, and they are compared with nothing. Default: all.
    #[serde(default)]
    pub measures: Option<Vec<String>>,
    /// Values of axes, by the axis, where they are not the axis's own; of several such tables, all
    /// combinations of each.
    #[serde(default)]
    pub at: Places,
    /// Values of axes in a first look, by the axis; an empty list leaves the line out.
    #[serde(default)]
    pub quick: BTreeMap<String, Vec<f64>>,
}

impl Line {
    /// Whether the line has this measure.
    pub(super) fn has(&self, measure: &str) -> bool {
        let only = self.measures.as_ref();
        only.is_none_or(|names| names.iter().any(|n| n == measure))
    }
}

/// Circumstances under which every claim is asked.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// What expressions and tables call it.
    pub name: String,
    /// What titles of figures call it. Default: the name.
    #[serde(default)]
    pub label: Option<String>,
    /// Another foreground than the study's.
    #[serde(default)]
    pub foreground: Option<String>,
    /// Another background than the study's.
    #[serde(default)]
    pub background: Option<String>,
    /// Values that expressions know by name, before those of the study.
    #[serde(default)]
    pub with: BTreeMap<String, Scalar>,
    /// Keys of the experiment to set, after those of the study.
    #[serde(default)]
    pub set: Vec<String>,
}

/// The column that a capture named on the command line makes. It is called after the file; expressions know
/// `file`, its absolute path; `length`, seconds from its first packet to the last; `rate_up` and `rate_down`,
/// bits per second of network-layer bytes from its inside out and back.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Another foreground than the study's.
    #[serde(default)]
    pub foreground: Option<String>,
    /// Another background than the study's.
    #[serde(default)]
    pub background: Option<String>,
    /// Values that expressions know by name, before those of the study.
    #[serde(default)]
    pub with: BTreeMap<String, Scalar>,
    /// Keys of the experiment to set, after those of the study and of a first look.
    pub set: Vec<String>,
}

/// A number of a run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// What expressions and tables call it.
    pub name: String,
    /// What the page calls it. Default: the name.
    #[serde(default)]
    pub label: Option<String>,
    /// How it follows from the run's tables and from the measures above.
    pub value: String,
    /// Instead of one number: one for each of these whole numbers, which expressions know as `x`, called NAME_0, NAME_1
    /// and so on.
    #[serde(default)]
    pub each: Vec<u32>,
    /// How it is written.
    #[serde(default)]
    pub unit: Units,
    /// How far it may be from the reference.
    #[serde(default)]
    pub bar: Option<Bar>,
}

/// How far a number may be from the reference: either is enough.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bar {
    /// As a share of the reference.
    pub relative: f64,
    /// In the number's own unit.
    pub absolute: f64,
}

/// Numbers that somebody else has for the same runs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// A CSV file, relative to this one, with a header: `column`, `line` and the axes name the runs,
    /// `seeds` says how many runs a mean is over, and each measure has its mean under its name and its
    /// standard deviation under NAME_sd.
    pub file: String,
    /// What the page calls it.
    pub name: String,
    /// How long its runs are, warm-up included, as `run.duration`. Runs of another length are not compared. Default:
    /// its numbers hang on no length, and runs of any are compared.
    #[serde(default)]
    pub duration: Option<Dur>,
    /// Where there is no bar: an expression of `column`, `line`, the axes and `measure`.
    #[serde(default)]
    pub exempt: Option<String>,
    /// What it was measured with and why there is no bar there, in words.
    #[serde(default)]
    pub what: String,
    /// Why numbers miss their bars. The first that speaks of a number counts.
    #[serde(default)]
    pub cause: Vec<Cause>,
    /// Whether a first look is compared too.
    #[serde(default)]
    pub quick: bool,
}

/// Why numbers are not those of the reference.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Of which numbers it speaks: an expression of `column`, `line`, the axes, `measure` and `errors`, how many
    /// standard errors the two are apart.
    #[serde(rename = "where")]
    pub filter: String,
    /// Its name in the list of misses: a word or two.
    pub name: String,
    /// What is known of it.
    pub what: String,
}

/// A claim and its rule.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name, such as `S2.4a`.
    pub id: String,
    /// What is claimed, in a few words.
    pub claim: String,
    /// The paper's figure or words; short.
    #[serde(default)]
    pub paper: String,
    /// The rule in words. The expressions are printed beside it.
    #[serde(default)]
    pub rule: String,
    /// Which ledger it stands in: the ledger's title. Default: "The claims".
    #[serde(default)]
    pub ledger: Option<String>,
    /// The columns in which it is asked. Default: all.
    #[serde(default)]
    pub columns: Option<Vec<String>>,
    /// Statements before the value; what they define is known below.
    #[serde(default)]
    pub given: String,
    /// The number that decides.
    #[serde(default)]
    pub value: String,
    /// How it is written.
    #[serde(default)]
    pub unit: Units,
    /// When the claim holds: true or false, of `value` and what was given.
    #[serde(default)]
    pub holds: String,
    /// When it holds in part. Default: never.
    #[serde(default)]
    pub in_part: Option<String>,
    /// What else is to be said: a text.
    #[serde(default)]
    pub detail: Option<String>,
    /// Why it is not tested, instead of a value and a rule: what is missing for that.
    #[serde(default)]
    pub untested: Option<String>,
    /// Whether it speaks of the reference's own runs: then it is not tested where none of ours is compared with them.
    #[serde(default)]
    pub anchor: bool,
    /// Names of the figures that show it.
    #[serde(default)]
    pub figures: Vec<String>,
}

/// A picture: lines over an axis, or a heat map.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name for files. Letters, digits, dashes.
    pub name: String,
    /// Title.
    pub title: String,
    /// What it shows and what to see in it.
    #[serde(default)]
    pub caption: String,
    /// Title of the section that it stands in. Default: "Figures".
    #[serde(default)]
    pub section: Option<String>,
    /// Which lines are drawn. Default: all.
    #[serde(default)]
    pub lines: Option<Vec<String>>,
    /// Which columns are drawn. Default: all.
    #[serde(default)]
    pub columns: Option<Vec<String>>,
    /// What the lines in the picture are.
    #[serde(default)]
    pub by: By,
    /// Which runs are drawn: true or false. Default: all.
    #[serde(default, rename = "where")]
    pub filter: Option<String>,
    /// The horizontal number of a run.
    #[serde(default)]
    pub x: Option<String>,
    /// Instead of `x`: these values; `y` is then asked for each, with `x` known.
    #[serde(default)]
    pub at: Option<Vec<f64>>,
    /// What the horizontal axis says.
    pub x_title: String,
    /// What its numbers are.
    #[serde(default)]
    pub x_unit: Units,
    /// Whether it is logarithmic.
    #[serde(default)]
    pub x_log: bool,
    /// The vertical number of a run, with its interval. It may ask for other runs of the column as claims do.
    #[serde(default)]
    pub y: Option<String>,
    /// A second number of the same runs, drawn as a curve beside each line: what theory says of them.
    #[serde(default)]
    pub curve: Option<String>,
    /// What the legend adds to a line's name for its curve.
    #[serde(default)]
    pub curve_label: String,
    /// What the legend calls the lines, instead of their names. Their curves are then called `curve_label`.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Instead of `y`: expressions of a run's tables, as measures see them, each a list of [x, y], by what the
    /// legend says, of at most 20 runs for a picture, with their first seed. They are kept as the runs are done; where
    /// `where` asks for numbers of runs, those that are drawn are simulated again.
    #[serde(default)]
    pub points: BTreeMap<String, String>,
    /// Instead of lines: bars. These are the names below the groups, for 0, 1 and so on as `x`.
    #[serde(default)]
    pub bars: Vec<String>,
    /// Instead of lines: a heat map, in which `x` and `y` are the places of a cell.
    #[serde(default)]
    pub heatmap: Option<HeatmapSpec>,
    /// What the vertical axis says.
    pub y_title: String,
    /// What its numbers are.
    #[serde(default)]
    pub y_unit: Units,
    /// Whether it is logarithmic.
    #[serde(default)]
    pub y_log: bool,
    /// A curve beside the lines: an expression of `x` and of the runs of the column, which it asks for as claims do.
    #[serde(default)]
    pub reference: Option<String>,
    /// What the legend calls the curve.
    #[serde(default)]
    pub reference_label: String,
}

/// A table of the page: a row for each run, for each column of the study one table.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Title.
    pub title: String,
    /// Title of the section that it stands in, below its figures.
    pub section: String,
    /// Which lines it has. Default: all.
    #[serde(default)]
    pub lines: Option<Vec<String>>,
    /// Which columns have one. Default: all.
    #[serde(default)]
    pub columns: Option<Vec<String>>,
    /// Which runs it has: true or false. Default: all.
    #[serde(default, rename = "where")]
    pub filter: Option<String>,
    /// Whether its rows are the lines of a column, a table for each column, or columns, in one table.
    #[serde(default)]
    pub by: By,
    /// What a row says after the label of its line.
    pub cell: Vec<CellSpec>,
}

/// A column of a table of the page.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellSpec {
    /// Heading.
    pub head: String,
    /// A number or a text of a run. It may ask for other runs of the column as claims do.
    pub value: String,
    /// How a number is written.
    #[serde(default)]
    pub unit: Units,
}

impl Figure {
    /// The name of its picture, either for one column or for the only picture.
    pub(super) fn picture(&self, column: Option<&Column>) -> String {
        match column {
            Some(column) => format!("{}-{}", self.name, column.name),
            None => self.name.clone(),
        }
    }

    /// The name of the picture in which a column is drawn, if it is.
    pub(super) fn picture_of(&self, study: &StudyFile, column: &Column) -> Option<String> {
        let columns = self.columns.as_ref();
        if columns.is_some_and(|c| !c.contains(&column.name)) {
            return None;
        }
        let own = self.by == By::Line && study.column.len() > 1;
        Some(self.picture(own.then_some(column)))
    }
}

/// What the lines in a picture are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The study's lines, in a picture for each column.
    #[default]
    Line,
    /// The columns, in one picture: all runs of a column on one line.
    Column,
}

fn five() -> u16 {
    5
}
