//! `manifest.json`: facts about the runs, their inputs, and doubts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::Warning;

use super::{StoreError, at};
use crate::hash::Hash;
use crate::observe::Cell;

/// Facts about the runs, their inputs, and doubts. Wall-clock facts are here and not in the tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format: [`Manifest::FORMAT`].
    pub format: u32,
    /// Version of the program.
    pub version: String,
    /// Name of the experiment.
    pub name: String,
    /// Hash of the resolved experiment, its model files, the backend and the version: simulated runs of equal hash have
    /// equal tables.
    pub hash: String,
    /// Hash of the text of `experiment.toml`. Directories of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// Name of the backend, such as `simulated`; `made-up` if nothing was run.
    pub backend: String,
    /// Settings of the backend that are not in the experiment, by name. Simulated runs have none, nor have directories
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The experiment file, as it was named on the command line.
    pub source: String,
    /// Whether every run finished and the tables exist.
    pub complete: bool,
    /// The runs, in the order of the tables.
    pub cells: Vec<Cell>,
    /// The models of learnt and the traces of replayed backgrounds, by background.
    pub models: BTreeMap<String, ModelFacts>,
    /// Measured mean rates of backgrounds alone, by background: those that another one matches
    /// and those that were scaled to a rate.
    pub measured: BTreeMap<String, Measured>,
    /// Doubts about the experiment as a whole. The report prints them first.
    pub warnings: Vec<Warning>,
    /// Doubts about single runs.
    pub run_warnings: Vec<RunWarning>,
    /// The machine.
    pub host: Host,
    /// When it was started, seconds since the Unix epoch.
    pub started: u64,
    /// How long it took on the wall clock, seconds: the sum over all sessions of a resumed run, and over shards.
    pub wall_s: f64,
    /// How long its runs took on the wall clock, seconds, by background. Several may have run at once.
    pub run_s: BTreeMap<String, f64>,
}

/// The settings that differ, each with the values there and here; nothing if one side does not know its settings.
pub(crate) fn unlike<'m>(
    there: &'m BTreeMap<String, String>,
    here: &'m BTreeMap<String, String>,
) -> Vec<(&'m str, &'m str, &'m str)> {
    if there.is_empty() || here.is_empty() {
        return Vec::new();
    }
    let names: BTreeSet<&String> = there.keys().chain(here.keys()).collect();
    let value = |of: &'m BTreeMap<String, String>, name| of.get(name).map_or("", String::as_str);
    names
        .into_iter()
        .map(|name| (&**name, value(there, name), value(here, name)))
        .filter(|(_, before, now)| before != now)
        .collect()
}

/// A model or a trace that a background used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// Its own name.
    pub name: String,
    /// `bundled`, or the path of the file.
    pub source: String,
    /// Hash of the file's bytes; of a trace: of the times and sizes of its packets.
    pub hash: String,
    /// Its source data and licence.
    pub note: String,
    /// Its doubts.
    pub warnings: Vec<Warning>,
}

/// Measured mean rates of a background that had the network to itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Up direction, bits per second of network-layer bytes that leave the bottleneck after the warm-up;
    /// mean over the replications, each as its own draw of sessions has it.
    pub up_bps: f64,
    /// Down direction, likewise.
    pub down_bps: f64,
    /// Up direction of each replication: measured, or told by what its draw offers where only a sample was measured.
    #[serde(default)]
    pub up_bps_each: Vec<f64>,
    /// Down direction of each replication.
    pub down_bps_each: Vec<f64>,
    /// Down direction, in the mean over all draws that there could be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_bps: Option<f64>,
    /// The rate asked for, down direction, where the background was scaled to it.
    pub target_bps: Option<f64>,
    /// How much faster than at its own times a trace was replayed, that gave these rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Sessions, as a multiple of the model's, that gave these rates.
    pub sessions: Option<f64>,
    /// What the rates of packets were multiplied by to give these rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Whether it does not slow down, or most of its bytes do not, so that nothing it loses is sent again: datagrams.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unyielding: bool,
}

impl Measured {
    /// The factor found by calibration: a multiple of the model's sessions, of the trace's speed or of the requested
    /// rate.
    pub fn pace(&self) -> Option<f64> {
        self.sessions.or(self.speed).or(self.factor)
    }

    /// The same with all rates multiplied by `k`.
    pub(crate) fn scaled(&self, k: f64) -> Measured {
        let each = |rates: &[f64]| rates.iter().map(|bps| bps * k).collect();
        Measured {
            up_bps: self.up_bps * k,
            down_bps: self.down_bps * k,
            up_bps_each: each(&self.up_bps_each),
            down_bps_each: each(&self.down_bps_each),
            expected_bps: self.expected_bps.map(|bps| bps * k),
            target_bps: self.target_bps.map(|bps| bps * k),
            ..self.clone()
        }
    }

    /// Rates up and down of one replication.
    pub fn each(&self, replication: usize) -> Option<[f64; 2]> {
        let of = |each: &[f64]| each.get(replication).copied();
        Some([of(&self.up_bps_each)?, of(&self.down_bps_each)?])
    }
}

/// A doubt about one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunWarning {
    /// Which run.
    pub cell: Cell,
    /// The doubt.
    pub warning: Warning,
}

/// The machine that ran it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Operating system.
    pub os: String,
    /// Processor architecture.
    pub arch: String,
    /// Threads that can run at once.
    pub parallelism: usize,
    /// Threads used.
    pub threads: usize,
}

impl Host {
    /// This machine.
    pub fn here(threads: usize) -> Host {
        Host {
            os: std::env::consts::OS.into(),
            arch: std::env::consts::ARCH.into(),
            parallelism: std::thread::available_parallelism().map_or(1, usize::from),
            threads,
        }
    }
}

impl Manifest {
    /// File name inside the run directory.
    pub const FILE: &'static str = "manifest.json";
    /// Version of the format.
    pub const FORMAT: u32 = 2;

    /// Reads the manifest of a run directory.
    ///
    /// # Errors
    /// If the file is missing or is not a manifest.
    pub fn load(dir: &Path) -> Result<Manifest, StoreError> {
        let path = dir.join(Manifest::FILE);
        let text = fs::read(&path).map_err(at(&path))?;
        let manifest: Manifest = match serde_json::from_slice(&text) {
            Ok(manifest) => manifest,
            Err(source) => return Err(StoreError::Manifest { path, source }),
        };
        match manifest.format {
            Manifest::FORMAT => Ok(manifest),
            format => Err(StoreError::Content {
                path,
                reason: format!(
                    "format {format} is not {}, which this version reads",
                    Manifest::FORMAT
                ),
            }),
        }
    }

    /// Writes it atomically.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn save(&self, dir: &Path) -> Result<(), StoreError> {
        let path = dir.join(Manifest::FILE);
        let mut text = serde_json::to_vec_pretty(self).map_err(|source| StoreError::Manifest {
            path: path.clone(),
            source,
        })?;
        text.push(b'\n');
        write_atomically(&path, &text)
    }
}

/// The hash of the text of a resolved experiment, as [`Manifest::experiment`] has it.
pub(crate) fn text_hash(toml: &str) -> String {
    Hash::new().part(toml.as_bytes()).hex()
}

/// Beginning and end of the names of temporary files. They are hidden, and the user has none of such names.
const TEMPORARY: [&str; 2] = [".swell-", ".partial"];
/// Most characters of a file's name in that of its temporary file. UTF-8 takes up to 4 bytes for each, and file systems
/// take names of 255 bytes.
const MOST_CHARS: usize = 60;

/// The temporary file, in the same directory, of a file that is being written.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(MOST_CHARS).collect();
    let [begin, end] = TEMPORARY;
    path.with_file_name(format!("{begin}{name}{end}"))
}

/// Whether this is the name of a temporary file of the program.
pub(crate) fn is_temporary(name: &str) -> bool {
    let [begin, end] = TEMPORARY;
    name.starts_with(begin) && name.ends_with(end)
}

/// Writes a file atomically: readers see all of it or nothing.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let partial = temporary(path);
    let write = || {
        let mut file = fs::File::create(&partial)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&partial, path)
    };
    write().map_err(at(path))
}
