//! What a page shows, as plain data: filled from results by `convert`, drawn by `page`.

use crate::human::Quantity;
use crate::palette::Role;

/// A value with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end; infinite where it is not identifiable.
    pub high: f64,
}

/// Everything a page shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportData {
    /// Name of the experiment.
    pub title: String,
    /// What it is about.
    pub note: String,
    /// The answer for each application: does background matter, is a parametric one enough, how
    /// sure are we.
    pub verdict: Vec<Vec<Said>>,
    /// What to doubt, warnings first.
    pub doubts: Vec<Doubt>,
    /// What slowdowns are against: `no background`, or a run that others are compared with.
    pub against: String,
    /// The backgrounds, in the order of the experiment; or the runs that are compared.
    pub backgrounds: Vec<BackgroundData>,
    /// A section for each application.
    pub foregrounds: Vec<ForegroundData>,
    /// The network.
    pub network: NetworkData,
    /// The resolved experiment, TOML.
    pub experiment: String,
    /// How to get the same tables again.
    pub rerun: Rerun,
}

/// An answer, with a line for each background where they are many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// The answer.
    pub text: String,
    /// What it rests on; may be empty.
    pub lines: Vec<String>,
}

/// A doubt, and how many runs share it.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    /// `true`: check before trusting the result.
    pub grave: bool,
    /// Its stable name.
    pub code: String,
    /// What is doubtful.
    pub message: String,
    /// Where it was seen: `12 runs`, a run, a model; may be empty.
    pub place: String,
    /// Whether a model or a trace has it, whatever is made of it here.
    pub of_model: bool,
}

/// A background.
#[derive(Clone, Debug, PartialEq)]
pub struct BackgroundData {
    /// Its name.
    pub name: String,
    /// What it is: `none`, `learnt: campus`, `CBR over UDP`.
    pub what: String,
    /// What it is to the comparison.
    pub role: Role,
}

/// One statistic of one measure of an application, with every background.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureRow {
    /// The measure, and which percentile of it: `time, p95`.
    pub name: String,
    /// How its values are written.
    pub quantity: Quantity,
    /// Unit of plain values; may be empty.
    pub unit: String,
    /// One per background, in their order.
    pub cells: Vec<MeasureCell>,
}

/// A measure with one background.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasureCell {
    /// Its value; `None` if it is not known.
    pub value: Option<Interval>,
    /// With this background over without; `None` for the reference, and if it is not known.
    pub ratio: Option<Interval>,
    /// Whether a difference beyond the margin is shown.
    pub differs: bool,
}

/// An application and what the backgrounds did to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForegroundData {
    /// Its name.
    pub name: String,
    /// What it does, in a few words.
    pub what: String,
    /// What was measured, the most telling first.
    pub measures: Vec<MeasureRow>,
    /// One per background, in their order.
    pub conditions: Vec<Condition>,
}

/// The quantiles every table gives.
pub const QUANTILES: [f64; 4] = [0.05, 0.5, 0.9, 0.95];

/// Fewer samples than this have no tail that is worth a number, and are drawn as what they are.
pub const FEW_SAMPLES: usize = 20;

/// An application against one background.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// Replications that ran.
    pub replications: usize,
    /// Requests, complete or not.
    pub samples: usize,
    /// Requests unfinished at the end of their run.
    pub unfinished: usize,
    /// Requests that failed.
    pub failed: usize,
    /// Completion time at [`QUANTILES`], seconds.
    pub quantiles: [Option<Interval>; 4],
    /// Against no background, at [`QUANTILES`]; none for the reference itself.
    pub slowdown: [Option<Interval>; 4],
    /// Distribution function of the completion time: (seconds, share at or below), rising.
    pub steps: Vec<(f64, f64)>,
    /// (seconds, lower share, upper share): its band over replications.
    pub band: Vec<(f64, f64, f64)>,
    /// Energy of the background's arrivals at the slowest link of its path, up then down.
    pub energies: [Vec<Energy>; 2],
    /// Rates and drops at the bottleneck, up then down.
    pub load: [Load; 2],
    /// The first replications over time, each up then down.
    pub series: Vec<[Series; 2]>,
    /// What requests waited for: name and mean seconds; nothing where it was not kept.
    pub waterfall: Vec<(&'static str, f64)>,
    /// What crossed each link, where there are several.
    pub links: Vec<LinkLoad>,
}

/// A link of several, means over replications after the warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkLoad {
    /// Its name.
    pub name: String,
    /// Up, then down.
    pub ways: [LinkWay; 2],
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkWay {
    /// Share of the capacity that the foreground and the background used.
    pub used: [f64; 2],
    /// Share of the arrived packets that were dropped.
    pub dropped: f64,
}

/// A point of a log-scale diagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Energy {
    /// Seconds.
    pub timescale: f64,
    /// log2 of the wavelet energy of bytes per bin, without the bias of the logarithm.
    pub y: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Wavelet coefficients behind it.
    pub n: u64,
}

/// One direction of the bottleneck, means over replications after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// What was requested of the background, or what it carries when it is alone, bits per second; none where neither
    /// is known.
    pub requested: Option<f64>,
    /// Background that arrived, bits per second.
    pub background: f64,
    /// Its standard deviation over replications; NaN for one.
    pub background_sd: f64,
    /// Background that left, bits per second.
    pub carried: f64,
    /// Foreground that arrived, bits per second.
    pub foreground: f64,
    /// Share of the capacity used.
    pub utilisation: f64,
    /// Share of the arrived packets that were dropped.
    pub dropped: f64,
}

/// One direction of the bottleneck over time. One value per bin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Replication number shown.
    pub replication: u32,
    /// Start of the first bin, seconds.
    pub start: f64,
    /// Width of a bin, seconds.
    pub bin: f64,
    /// Share of the capacity that the foreground and the background used.
    pub used: [Vec<f64>; 2],
    /// Mean queue seen by arrivals, bytes.
    pub queue_mean: Vec<f64>,
    /// Longest queue seen by an arrival, bytes.
    pub queue_max: Vec<f64>,
    /// Packets of the foreground and the background dropped per second.
    pub dropped: [Vec<f64>; 2],
}

/// The network as drawn: short texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkData {
    /// The applications' clients, a line each.
    pub clients: Vec<String>,
    /// The backgrounds, a line each.
    pub users: Vec<String>,
    /// Up direction: rate, delay, queue, loss as far as there is one.
    pub up: Vec<String>,
    /// Down direction, likewise; equal to `up` on a symmetric link.
    pub down: Vec<String>,
    /// The link that is drawn: its name, where there are several.
    pub drawn: String,
    /// Every link, where there are several: its name, then its directions as `up` and `down` say them.
    pub links: Vec<(String, Vec<String>, Vec<String>)>,
    /// Round-trip propagation delay of the applications' paths.
    pub rtt: String,
}

/// How to get the same tables again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rerun {
    /// The command line.
    pub command: String,
    /// Facts, (what, value).
    pub facts: Vec<(String, String)>,
}
