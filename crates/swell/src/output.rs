//! The output of `--json` for runs and studies. It has a version and a schema, so that programs can rely on it.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use swell_base::Dur;
use swell_emulate::backend::Conditions;
use swell_experiment::store::Measured;
use swell_study::Study;
use swell_verdict::RunComparison;
use swell_verdict::Verdict;

use crate::out;

/// The version of the output. Removing a field or changing its type raises it; adding a field does not.
/// `scripts/reference` rejects a removal or a change of type without a new version.
const FORMAT: u32 = 1;

/// What `swell --json` prints of runs, comparisons and studies.
///
/// Fields may be added; a program should pass over what it does not know. Numbers that are not known are null.
#[derive(Serialize, JsonSchema)]
struct Document<'a> {
    /// The version of this format: 1.
    format: u32,
    #[serde(flatten)]
    output: Output<'a>,
}

/// Which command printed it, and what.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub(crate) enum Output<'a> {
    /// `swell run`
    Run {
        /// The run directory.
        run: String,
        /// The report.
        report: String,
        /// What the runs say.
        verdict: &'a Verdict,
        /// Rates of backgrounds that were measured alone, by background.
        measured: &'a BTreeMap<String, Measured>,
    },
    /// `swell under`
    Under {
        /// The run directory, if it is kept.
        run: Option<String>,
        /// The report, if there is one.
        report: Option<String>,
        /// What the runs say.
        verdict: &'a Verdict,
        /// How the emulator did, run by run.
        emulation: Vec<Emulation>,
    },
    /// `swell compare`
    Compare {
        /// The run directories.
        runs: Vec<String>,
        /// The page, if one was written.
        report: Option<String>,
        /// What differs from the first to each of the others, in their order.
        comparisons: &'a [RunComparison],
    },
    /// `swell study`
    Study {
        /// Claims, figures and tables.
        study: &'a Study,
        /// The report.
        report: String,
        /// How many findings have each verdict, in words.
        verdicts: [(&'static str, usize); 4],
    },
    /// `swell run --shard` and `swell study --shard`
    Shard {
        /// The directory.
        run: String,
        /// Which shard: K/N.
        shard: &'a str,
        /// Runs that are there.
        finished: usize,
        /// All runs.
        runs: usize,
    },
}

impl Output<'_> {
    /// Prints the document.
    pub(crate) fn print(self) {
        let document = Document {
            format: FORMAT,
            output: self,
        };
        out::json(&serde_json::to_value(document).expect("maps have texts as keys"));
    }
}

/// A path as JSON has it: bytes that are not UTF-8 become U+FFFD, because strings of JSON are Unicode.
pub(crate) fn path(path: impl AsRef<Path>) -> String {
    path.as_ref().to_string_lossy().into_owned()
}

/// The JSON schema of the output.
pub(crate) fn schema() -> serde_json::Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let schema = settings
        .into_generator()
        .into_root_schema_for::<Document<'_>>();
    schema.into()
}

/// How the emulator did.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Emulation {
    /// How late packets left, microseconds.
    late_us: Lateness,
    /// How often the emulator stood still for more than a millisecond.
    stalls: u64,
    /// The longest time that it did, microseconds.
    longest_stall_us: f64,
    /// Whether lateness could have changed the result.
    too_late: bool,
    /// What the kernel granted the thread that drives the world.
    scheduling: String,
    /// By how much time was stretched.
    stretch: f64,
    /// What happened to packets of programs.
    packets: Packets,
    /// Counters of the hosts' kernels that count losses, by host.
    host_losses: BTreeMap<String, BTreeMap<String, u64>>,
    /// What the machine had to give, seconds.
    machine_s: Machine,
    /// Packets that the machine's own backlog queues dropped.
    backlog_drops: u64,
}

/// Percentiles of lateness, microseconds.
#[derive(Serialize, JsonSchema)]
struct Lateness {
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// Packets of programs.
#[derive(Serialize, JsonSchema)]
struct Packets {
    /// Entered the network.
    entered: u64,
    /// Left it.
    left: u64,
    /// Were dropped by it.
    dropped: u64,
    /// Were marked by it (ECN).
    marked: u64,
    /// Went to a host on the same side.
    local: u64,
    /// Had an unknown address.
    unroutable: u64,
    /// Were refused by the receiver's kernel.
    refused: u64,
    /// Were lost because the machine was too slow.
    lost: u64,
    /// Were not IP packets.
    strange: u64,
}

/// What the machine had to give, seconds.
#[derive(Serialize, JsonSchema)]
struct Machine {
    /// How long the run took.
    wall: f64,
    /// What other virtual machines took from its processors.
    stolen: f64,
    /// How long the control group's limit stopped it.
    throttled: f64,
    /// How long the emulator's thread was ready while others had its processor.
    waited: f64,
    /// How long that thread went without real-time priority because it was too busy.
    gave_way: f64,
}

impl Emulation {
    pub(crate) fn of(w: &Conditions) -> Emulation {
        let us = |d: Dur| d.as_secs_f64() * 1e6;
        let of_host = |losses: &[swell_host::HostLoss]| {
            let counters = losses.iter().map(|l| (l.counter.clone(), l.count));
            counters.collect()
        };
        Emulation {
            late_us: Lateness {
                p50: us(w.late.p50),
                p99: us(w.late.p99),
                p999: us(w.late.p999),
                max: us(w.late.max),
            },
            stalls: w.late.stalls,
            longest_stall_us: us(w.late.longest_stall),
            too_late: w.too_late,
            scheduling: w.precision.to_string(),
            stretch: w.stretch,
            packets: Packets {
                entered: w.counts.entered,
                left: w.counts.left,
                dropped: w.counts.dropped,
                marked: w.counts.marked,
                local: w.counts.local,
                unroutable: w.counts.unroutable,
                refused: w.counts.refused,
                lost: w.counts.lost,
                strange: w.counts.strange,
            },
            host_losses: w
                .losses
                .iter()
                .map(|(host, losses)| (host.clone(), of_host(losses)))
                .collect(),
            machine_s: Machine {
                wall: w.wall.as_secs_f64(),
                stolen: w.pressure.stolen.as_secs_f64(),
                throttled: w.pressure.throttled.as_secs_f64(),
                waited: w.waited.as_secs_f64(),
                gave_way: w.gave_way.as_secs_f64(),
            },
            backlog_drops: w.pressure.backlog_drops,
        }
    }
}
