//! The run directory: `manifest.json`, `experiment.toml` and the Parquet tables.
//!
//! [`Results::load`] reads one back. Every column is described in `docs/results.md`, in each
//! table's own metadata (key `swell.columns`) and by [`columns`].

mod error;
mod join;
mod live;
mod manifest;
mod results;
mod rows;
mod table;

pub use error::StoreError;
pub use join::JoinError;
pub use live::{AgentRow, LiveFlow, read_live_flows, write_agents, write_live_flows};
pub use manifest::{Host, Manifest, Measured, ModelFacts, RunWarning};
pub use results::{Results, RunResult};
pub use table::{Column, Kind};

pub(crate) use error::at;
pub(crate) use manifest::{is_temporary, temporary, text_hash, unlike, write_atomically};
pub(crate) use results::{read_cell, read_runs, write_cell, write_tables};

/// Names of the tables that every run directory has.
pub const TABLES: [&str; 5] = ["requests", "bins", "scales", "flows", "links"];

/// Names of the tables that exist only if they have rows.
pub const KEPT: [&str; 11] = [
    "coherence",
    "waits",
    "delays",
    "synchrony",
    "measures",
    "parts",
    "part_bins",
    "estimates",
    "waterfall",
    "rtts",
    "gaps",
];

/// The columns of a table of [`TABLES`] or [`KEPT`], in order.
pub fn columns(table: &str) -> Option<Vec<Column>> {
    use crate::observe::{
        Bin, Coherence, Delay, Estimate, Flow, LinkTotals, MeasureSample, PartBin, PartTotals,
        Request, RoundTrip, Scale, Share, Synchrony, Wait, WindowGap,
    };
    match table {
        "requests" => Some(table::all_columns::<Request>()),
        "bins" => Some(table::all_columns::<Bin>()),
        "scales" => Some(table::all_columns::<Scale>()),
        "coherence" => Some(table::all_columns::<Coherence>()),
        "flows" => Some(table::all_columns::<Flow>()),
        "links" => Some(table::all_columns::<LinkTotals>()),
        "waits" => Some(table::all_columns::<Wait>()),
        "delays" => Some(table::all_columns::<Delay>()),
        "synchrony" => Some(table::all_columns::<Synchrony>()),
        "parts" => Some(table::all_columns::<PartTotals>()),
        "part_bins" => Some(table::all_columns::<PartBin>()),
        "measures" => Some(table::all_columns::<MeasureSample>()),
        "estimates" => Some(table::all_columns::<Estimate>()),
        "waterfall" => Some(table::all_columns::<Share>()),
        "rtts" => Some(table::all_columns::<RoundTrip>()),
        "gaps" => Some(table::all_columns::<WindowGap>()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
