//! The data of a page: filled from results by `convert`, drawn by `page`.

use swell_base::Code;

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
    /// The answer for each application: whether background traffic matters, whether a parametric one is enough, and how
    /// certain this is.
    pub verdict: Vec<Vec<Said>>,
    /// Doubts, warnings first.
    pub doubts: Vec<Doubt>,
    /// The reference of slowdowns: `no background`, or a run with which others are compared.
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

/// An answer, with a line for each background if there are many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// The answer.
    pub text: String,
    /// Its evidence; may be empty.
    pub lines: Vec<String>,
}

/// A doubt, and how many runs share it.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    /// `true`: check before trusting the result.
    pub grave: bool,
    /// Its stable name.
    pub code: Code,
    /// What is doubtful.
    pub message: String,
    /// Where it was seen: `12 runs`, a run, a model; may be empty.
    pub place: String,
    /// Whether it is inherent in a model or a trace, however these are used.
    pub of_model: bool,
}

/// A background.
#[derive(Clone, Debug, PartialEq)]
pub struct BackgroundData {
    /// Its name.
    pub name: String,
    /// What it is: `none`, `learnt: campus`, `CBR over UDP`.
    pub what: String,
    /// Its role in the comparison.
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
    /// Its value; `None` if unknown.
    pub value: Option<Interval>,
    /// Ratio of the value with this background to that without; `None` for the reference, or if unknown.
    pub ratio: Option<Interval>,
    /// Whether the difference is significantly beyond the margin.
    pub differs: bool,
}

/// An application and the effect of the backgrounds on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForegroundData {
    /// Its name.
    pub name: String,
    /// What it does, in a few words.
    pub what: String,
    /// What was measured, most informative first.
    pub measures: Vec<MeasureRow>,
    /// One per background, in their order.
    pub conditions: Vec<Condition>,
}

/// The quantiles in every table.
pub const QUANTILES: [f64; 4] = [0.05, 0.5, 0.9, 0.95];

/// With fewer samples than this, tail quantiles are meaningless; the samples are drawn as points.
pub const FEW_SAMPLES: usize = 20;

/// An application against one background.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// Replications that ran.
    pub runs: usize,
    /// Those of them that decide: without late ones.
    pub replications: usize,
    /// Requests, complete or not.
    pub samples: usize,
    /// Requests unfinished at the end of their run.
    pub unfinished: usize,
    /// Requests that failed.
    pub failed: usize,
    /// Completion time at [`QUANTILES`], seconds.
    pub quantiles: [Option<Interval>; 4],
    /// Slowdown against no background, at [`QUANTILES`]; none for the reference itself.
    pub slowdown: [Option<Interval>; 4],
    /// Distribution function of the completion time: (seconds, share at or below), ascending.
    pub steps: Vec<(f64, f64)>,
    /// How long the longest request was watched, seconds.
    pub watched: f64,
    /// (seconds, lower share, upper share): its band over replications.
    pub band: Vec<(f64, f64, f64)>,
    /// Energy of the background's arrivals at the slowest link of its path, up then down.
    pub energies: [Vec<Energy>; 2],
    /// Rates and drops at the bottleneck, up then down.
    pub load: [Load; 2],
    /// The first replications over time, each up then down.
    pub series: Vec<[Series; 2]>,
    /// What requests waited for.
    pub waterfall: Waterfall,
    /// The traffic on each link, if there are several.
    pub links: Vec<LinkLoad>,
}

/// What requests that are done waited for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waterfall {
    /// Cause and mean seconds; empty if nothing was recorded.
    pub parts: Vec<(&'static str, f64)>,
    /// Requests whose packets were followed back to the start: these are in the means.
    pub explained: usize,
    /// The others.
    pub left_out: usize,
}

/// One of several links; means over replications after the warm-up.
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
    /// log2 of the wavelet energy of bytes per bin, corrected for the bias of the logarithm.
    pub y: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Number of wavelet coefficients.
    pub n: u64,
}

/// One direction of the bottleneck, means over replications after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Requested rate of the background, or its rate when alone, in bits per second; `None` if neither is known.
    pub requested: Option<f64>,
    /// Arrival rate of the background, bits per second.
    pub background: f64,
    /// Its standard deviation over replications; NaN for one.
    pub background_sd: f64,
    /// Departure rate of the background, bits per second.
    pub carried: f64,
    /// Arrival rate of the foreground, bits per second.
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
    /// Name of the link, if there are several.
    pub link: String,
    /// Start of the first bin, seconds.
    pub start: f64,
    /// Width of a bin, seconds.
    pub bin: f64,
    /// Rate of the link, bits per second, mean over the bin.
    pub rate: Vec<f64>,
    /// Whether that is the rate at the time. Otherwise it is the initial one, or the mean of a delivery trace.
    pub rate_known: bool,
    /// Packets that arrived at the queue.
    pub arrived: Vec<f64>,
    /// Share of the rate that the foreground and the background used.
    pub used: [Vec<f64>; 2],
    /// Mean queue seen by arrivals, bytes.
    pub queue_mean: Vec<f64>,
    /// Longest queue seen by an arrival, bytes.
    pub queue_max: Vec<f64>,
    /// Packets of the foreground and the background dropped per second.
    pub dropped: [Vec<f64>; 2],
    /// The parts of the background, if there are several.
    pub parts: Vec<PartSeries>,
}

/// One part of a background in the bins of a [`Series`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartSeries {
    /// Its name.
    pub name: String,
    /// Share of the rate that it used.
    pub used: Vec<f64>,
    /// Packets dropped per second.
    pub dropped: Vec<f64>,
}

/// The network as short texts for the drawing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkData {
    /// The applications' clients, a line each.
    pub clients: Vec<String>,
    /// The backgrounds, a line each.
    pub users: Vec<String>,
    /// Up direction: rate, delay, queue, and loss if there is any.
    pub up: Vec<String>,
    /// Down direction, likewise; equal to `up` on a symmetric link.
    pub down: Vec<String>,
    /// Name of the link that is drawn, if there are several.
    pub drawn: String,
    /// Every link, if there are several: its name, then its directions in the format of `up` and `down`.
    pub links: Vec<(String, Vec<String>, Vec<String>)>,
    /// Round-trip propagation delay of the applications' paths.
    pub rtt: String,
}

/// How to get the same tables again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rerun {
    /// The command lines.
    pub command: String,
    /// What running it again gives.
    pub what: String,
    /// Facts, (what, value).
    pub facts: Vec<(String, String)>,
}
