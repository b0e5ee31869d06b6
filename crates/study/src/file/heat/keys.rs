//! The keys of a heat map.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::units::Units;

/// A heat map: a row of panels for each line, and in it a panel for each value of `across`. Each run is a cell at its `x`
/// and `y`. Cells have the colour of a ratio, orange above one and purple below.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeatmapSpec {
    /// What differs from panel to panel: a number of a run.
    pub across: String,
    /// What it is.
    pub across_title: String,
    /// What its numbers are.
    #[serde(default)]
    pub across_unit: Units,
    /// The ratio of a cell. It may ask for other runs of the column as claims do.
    pub value: String,
    /// What the ratio is.
    pub value_title: String,
    /// What a cell says of a question: "matters", "does not matter" or "cannot tell". Default: no question.
    #[serde(default)]
    pub answer: Option<String>,
    /// Which cells have a frame: true or false. Default: none.
    #[serde(default)]
    pub frame: Option<String>,
    /// What the legend says of a frame.
    #[serde(default)]
    pub frame_label: String,
}
