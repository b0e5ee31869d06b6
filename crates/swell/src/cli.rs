//! What may be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Does background traffic matter to my application?
#[derive(Debug, Parser)]
#[command(
    name = "swell",
    version,
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage or a file that does not read, 130 interrupted.\nData goes to standard output, progress and warnings to standard error."
)]
pub(crate) struct Cli {
    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an experiment: foregrounds x backgrounds x seeds, then a report.
    Run(RunArgs),
    /// Write the report of a finished run.
    Report(ReportArgs),
    /// Learn a traffic model from packet traces.
    Learn(LearnArgs),
    /// Show what is in a model, a trace or a run directory.
    Show(ShowArgs),
    /// Play a model and hold what it brings back against its trace.
    Fidelity(FidelityArgs),
    /// Rerun a founding paper and hold what comes out against it.
    #[command(subcommand)]
    Study(StudyCommand),
    /// Print the JSON schema of experiment files.
    Schema,
    /// List the bundled traffic models.
    Models,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The experiment file (TOML). Without one the bundled quick start is run.
    pub experiment: Option<PathBuf>,
    /// The run directory. Default: runs/NAME. A run that was interrupted goes on where it stopped.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Runs at the same time. Default: as many as there are processors. The results are the same.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// A first look: 3 replications of a quarter of the length.
    #[arg(long)]
    pub quick: bool,
    /// Throw away what the run directory holds, and begin anew.
    #[arg(long)]
    pub fresh: bool,
    /// Set a key of the experiment: network.rate=10Mbit, run.replications=3,
    /// background.learnt.rate=5Mbit (items of lists by name or number).
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Write the packets of every run to pcapng files in the run directory, headers only. The same as
    /// --set run.keep.packets=true.
    #[arg(long)]
    pub packets: bool,
    /// Simulate nothing: make numbers up, to try a plan or a pipeline.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run directory.
    pub run: PathBuf,
    /// The page. Default: report.html in the run directory.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LearnArgs {
    /// Traces of one link, in the order of their times: pcap, pcapng or snoop, plain or compressed;
    /// - for standard input.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// The model file; compressed if its name ends in .zst. Default: NAME.json.
    #[arg(short, long, value_name = "MODEL")]
    pub output: Option<PathBuf>,
    /// Name of the model. Default: the first trace's.
    #[arg(long)]
    pub name: Option<String>,
    /// What the trace is and its licence, in free text; kept in the model.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub note: String,
    /// A connection that starts within this of a group of connections belongs to it.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub group_timeout: swell_base::Dur,
    /// A group that starts within this of a session's last one belongs to it.
    #[arg(long, value_name = "TIME", default_value = "5min")]
    pub session_timeout: swell_base::Dur,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A model file or the name of a bundled model, a trace, or a run directory.
    pub what: PathBuf,
    /// Write a self-contained page with all pictures.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a picture as SVG.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write a picture as PNG.
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
    /// Which picture --svg and --png draw; an unknown name lists them. Default: the first.
    #[arg(long, value_name = "NAME")]
    pub picture: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// How bursty is the sum of many TCP connections? Tinnakornsrisuphap, Feng & Philp (2000).
    Burstiness(StudyArgs),
    /// What does traffic that fills idle bandwidth do to the traffic that was there? Feldman (2001).
    Filler(FillerArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FillerArgs {
    /// Packet traces to replay as pre-existing traffic, beside the built-in stand-ins for the paper's.
    #[arg(value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// A first look: stand-ins of one minute instead of ten.
    #[arg(long)]
    pub quick: bool,
    #[command(flatten)]
    pub grid: GridArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// A first look: few settings, short runs, one seed.
    #[arg(long)]
    pub quick: bool,
    /// How many seeds. Default: 5, with --quick 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub seeds: Option<u16>,
    #[command(flatten)]
    pub grid: GridArgs,
}

/// How the runs of a study are run and kept.
#[derive(Debug, Args)]
pub(crate) struct GridArgs {
    /// Runs at the same time. Default: as many as there are processors. The results are the same.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// The study's directory. Default: studies/NAME. A study that was interrupted goes on where it
    /// stopped.
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Throw away the runs that the directory holds, and begin anew.
    #[arg(long)]
    pub fresh: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FidelityArgs {
    /// A model file learnt from packets, or the name of a bundled model.
    pub model: PathBuf,
    /// How many seeds to play.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub seeds: u16,
    /// Rate of the link it is played over, both directions. Default: 100Mbit.
    #[arg(long)]
    pub rate: Option<swell_base::Rate>,
    /// Drop a dependency of the model, to see what that does; an unknown name lists them. May be
    /// repeated.
    #[arg(long, value_name = "NAME")]
    pub independent: Vec<String>,
}
