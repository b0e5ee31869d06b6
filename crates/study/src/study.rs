//! The result of a study as plain data: ledgers, pictures, tables. `swell-report` draws it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::Warning;

use crate::{Estimate, Ledger, Verdict};

/// A study that was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Study {
    /// As on the command line.
    pub name: String,
    /// Heading.
    pub title: String,
    /// Which paper, in full.
    pub paper: String,
    /// What to doubt.
    pub doubts: Vec<Warning>,
    /// Ledgers, the main one first.
    pub ledgers: Vec<Ledger>,
    /// Everything else.
    pub sections: Vec<Section>,
    /// The command that runs it again.
    pub command: String,
    /// Facts about the run: name and value.
    pub facts: Vec<(String, String)>,
    /// The name of the reference simulator; empty if there is none.
    pub reference: String,
    /// Measured as time went by, so that the same command gives other numbers.
    pub real_time: bool,
}

impl Study {
    /// How many findings of all ledgers have each verdict.
    pub fn tally(&self) -> [(Verdict, usize); 4] {
        [
            Verdict::Holds,
            Verdict::InPart,
            Verdict::DoesNotHold,
            Verdict::NotTested,
        ]
        .map(|v| (v, self.ledgers.iter().map(|l| l.count(v)).sum()))
    }
}

/// A part of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// What it is, in a few sentences.
    pub what: String,
    /// Pictures.
    pub pictures: Vec<Picture>,
    /// Tables.
    pub tables: Vec<Table>,
}

/// Lines over an axis, with intervals, or a heat map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Picture {
    /// Name for files: letters, digits, `-`. Unique in the study.
    pub name: String,
    /// Title.
    pub title: String,
    /// What it shows and what to see in it.
    pub caption: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The lines; the first may be a reference. A heat map has none.
    pub lines: Vec<Line>,
    /// The groups of bars, which replace lines: a group for each number from 0 on the horizontal axis, a bar in it for
    /// each line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<String>,
    /// The panels of a heat map, whose cells stand at places of both axes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heatmap: Option<Heatmap>,
}

/// Panels of cells: a row of panels for each line, and in it one for each value of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Heatmap {
    /// What varies from panel to panel along a row.
    pub across: Axis,
    /// What the colour of a cell is: a ratio, on a logarithmic scale around one.
    pub value: String,
    /// What a frame around a cell says; empty if no cell can have one.
    pub frame: String,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
}

/// A panel of a heat map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Panel {
    /// The line that its row of panels shows.
    pub row: String,
    /// Its place along the row.
    pub across: f64,
    /// Its cells.
    pub cells: Vec<HeatCell>,
}

/// A cell of a heat map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeatCell {
    /// Its place on the horizontal axis.
    pub x: f64,
    /// Its place on the vertical axis.
    pub y: f64,
    /// The ratio.
    pub value: Estimate,
    /// What it says of the question, if the figure asks one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Whether the cell has a frame.
    pub framed: bool,
}

/// Whether something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The whole interval is beyond the margin.
    Matters,
    /// The whole interval is within the margin.
    DoesNotMatter,
    /// Neither.
    CannotTell,
}

impl Answer {
    /// All answers.
    pub const ALL: [Answer; 3] = [Answer::Matters, Answer::DoesNotMatter, Answer::CannotTell];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Answer::Matters => "matters",
            Answer::DoesNotMatter => "does not matter",
            Answer::CannotTell => "cannot tell",
        }
    }
}

/// An axis of a picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Title without unit.
    pub title: String,
    /// What its numbers are.
    pub unit: Unit,
    /// Logarithmic.
    pub log: bool,
}

/// What numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Counts and numbers without unit.
    Plain,
    /// Shares of one, written in percent.
    Share,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bits per second.
    BitsPerSecond,
}

/// A line of a picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// What the legend says.
    pub name: String,
    /// Look: 0 is the reference, 1 to 7 are series; equal numbers mean the same thing in all
    /// pictures of a study.
    pub slot: usize,
    /// Points joined by straight lines, x rising.
    pub points: Vec<(f64, Estimate)>,
    /// Measured, so drawn with a mark and an interval at each point; else a curve.
    pub measured: bool,
}

/// A table of texts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Table {
    /// Heading; may be empty.
    pub title: String,
    /// Columns.
    pub head: Vec<String>,
    /// Rows, as long as the head.
    pub rows: Vec<Vec<String>>,
}
