//! Command-line arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use crate::bridge::BridgeArgs;
use crate::emulation::EmulationArgs;
pub(crate) use crate::under::args::UnderArgs;

#[cfg(feature = "agents")]
mod agent;
mod learn;
mod size;

#[cfg(feature = "agents")]
pub(crate) use agent::{AgentArgs, AgentCommand};
pub(crate) use learn::{FlowProfile, LearnArgs};
pub(crate) use size::Size;

/// Does background traffic matter to my application?
#[derive(Debug, Parser)]
#[command(
    name = "swell",
    version,
    after_help = "Exit codes: 0 done or answered, 1 failed, 2 wrong usage or a file that does not read,\n3 not settled, 4 the application fails without background traffic, 5 a --fail-if holds,\n130 interrupted. `swell under` ends with the program's code: 124 it took too long,\n126 it cannot be executed, 127 it does not exist, 128 + N ended by signal N.\nData goes to standard output, progress and warnings to standard error."
)]
pub(crate) struct Cli {
    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    pub json: bool,
    /// Report progress, warnings and errors as JSON, a line each, on standard error: for programs.
    #[arg(long, global = true)]
    pub events: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an experiment: foregrounds x backgrounds x seeds, then a report.
    Run(RunArgs),
    /// Run any program, unmodified, behind an emulated link with background traffic on it.
    Under(Box<UnderArgs>),
    /// Join network interfaces by an emulated link with background traffic on it.
    Bridge(Box<BridgeArgs>),
    /// Set the rate, delay, loss or queue of an emulated link while it runs.
    Set(crate::control::SetArgs),
    /// Show the flows of an emulation that runs, and what its link carries.
    Top(crate::control::TopArgs),
    /// Repeat emulated runs from their journals in virtual time: everything must leave as it did.
    Replay(ReplayArgs),
    /// Write the report of a finished run.
    Report(ReportArgs),
    /// Show how far a run, a study or a generation is, on a page that follows it.
    Watch(WatchArgs),
    /// Compare run directories: what differs from the first to the others, with intervals.
    Compare(CompareArgs),
    /// Learn a traffic model from packet traces, or a flow-level model from flow records.
    #[command(
        after_help = "swell learn trace.pcap.zst             a model of users, sessions and exchanges\nswell learn nfcapd.202611221000        a flow-level model, from whatever flow records there are\nswell learn --flows trace.pcap.zst     a flow-level model of a packet trace\nnfdump -r FILE -o csv | swell learn -  the same from standard input\nswell learn --through a.pcap b.pcap    what passes two taps, and what passes one of them"
    )]
    Learn(LearnArgs),
    /// Show what is in a model, a trace or a run directory.
    Show(ShowArgs),
    /// Play a model and hold what it brings back against its trace.
    Fidelity(FidelityArgs),
    /// Rerun a founding paper and hold what comes out against it.
    #[command(subcommand)]
    Study(StudyCommand),
    /// Play traffic between real hosts, each of which runs an agent.
    #[cfg(feature = "agents")]
    Generate(Box<GenerateArgs>),
    /// Wait on this host for orders to play traffic.
    #[cfg(feature = "agents")]
    Agent(AgentArgs),
    /// What this machine grants to emulations, and what earlier ones left behind.
    Doctor(DoctorArgs),
    /// Print a JSON schema: of experiment files, or of what run, under, compare and study print with --json.
    Schema(SchemaArgs),
    /// List the bundled traffic models.
    Models(ModelsArgs),
    /// Print the completions of a shell: bash, elvish, fish, powershell or zsh.
    #[command(
        after_help = "swell completions bash > ~/.local/share/bash-completion/completions/swell"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one a command, to a directory.
    #[command(after_help = "swell man ~/.local/share/man/man1")]
    Man {
        /// The directory; it is made if there is none.
        dir: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// By what they differ: energy over timescales, round trips, elasticity, fidelity.
    #[arg(long)]
    pub bench: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// What it describes.
    #[arg(value_enum, default_value = "experiment")]
    pub of: Schema,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Schema {
    /// Experiment files.
    Experiment,
    /// What run, under, compare and study print with --json.
    Output,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The experiment file (TOML); - for standard input. Without one the bundled quick start is run.
    pub experiment: Option<PathBuf>,
    /// The run directory. Default: runs/NAME. A simulated run that was interrupted goes on where it stopped.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Runs at the same time. Default: as many as there are processors. The results are the same.
    #[arg(long, alias = "jobs", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// A first look: 3 replications of a quarter of the length.
    #[arg(long)]
    pub quick: bool,
    /// Find the cheapest background that is enough: run against none, CBR, Poisson, on/off sources, a replay that the
    /// file has, and the learnt background with its dependencies dropped. Default: the file's first learnt background.
    #[arg(long, value_name = "LEARNT", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub suite: Option<String>,
    /// Throw away what the run directory holds, and begin anew.
    #[arg(long)]
    pub fresh: bool,
    /// Take the emulated runs that the run directory has, and do the missing ones. The program, its files and its
    /// environment must be as they were. Simulated runs go on by themselves.
    #[arg(long, conflicts_with = "fresh")]
    pub resume: bool,
    /// Do only part K of N of the runs: 2/4 is every fourth, from the second on. Shards can run at the same time, in one
    /// directory or in copies of it. Then run the same command without --shard: it runs what is missing and merges all
    /// shards.
    #[arg(long, value_name = "K/N", conflicts_with_all = ["fresh", "fail_if"])]
    pub shard: Option<swell_experiment::run::Shard>,
    /// Set a key of the experiment: network.rate=10Mbit, run.replications=3,
    /// background.learnt.rate=5Mbit (items of lists by name or number).
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Write the packets of every run to pcapng files in the run directory, headers only. The same as
    /// --set run.keep.packets=true.
    #[arg(long)]
    pub packets: bool,
    /// Exit with code 5 if this holds of any foreground and background, such as 'p95.slowdown.high > 1.5',
    /// 'poisson:p50.seconds > 0.3', 'web:goodput.ratio < 0.5' or 'web:poisson:p50.slowdown > 2'; or cannot be told.
    /// Again for more.
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<crate::threshold::Threshold>,
    /// Write what --fail-if and the verdict say as JUnit test cases, which CI systems show; - for
    /// standard output, which then has nothing else.
    #[arg(long, value_name = "FILE", conflicts_with = "shard")]
    pub junit: Option<PathBuf>,
    /// Simulate nothing: write numbers that are made up, and marked so, to try a plan or a pipeline. They answer nothing.
    #[arg(long, conflicts_with_all = ["fail_if", "junit"])]
    pub made_up: bool,
    /// Do not look whether backgrounds with `energy` have it. For sweeps, in which an earlier batch of the same cell did.
    #[arg(long, hide = true)]
    pub energy_known: bool,
    #[command(flatten, next_help_heading = "Emulated runs")]
    pub emulation: EmulationArgs,
}

#[cfg(feature = "agents")]
#[derive(Debug, Args)]
#[command(
    after_help = "While traffic is played, a number typed on a line of its own is the new load. Ctrl-C ends it and\nkeeps what there is. See docs/generate.md.\n\nswell generate model.json --local --duration 1min\nswell generate model.json --clients a:8471 --servers b:8471,c:8471 --token-file token --fingerprint ..."
)]
pub(crate) struct GenerateArgs {
    /// A flow-level model.
    pub model: Option<PathBuf>,
    /// Agents that are clients.
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_delimiter = ',',
        required_unless_present_any = ["local", "fleet"]
    )]
    pub clients: Vec<String>,
    /// Agents that are servers.
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_delimiter = ',',
        required_unless_present_any = ["local", "fleet"]
    )]
    pub servers: Vec<String>,
    /// Make two hosts on this machine, with an agent on each and a cable between them.
    #[arg(long, conflicts_with_all = ["clients", "servers", "fleet", "token_file", "fingerprint", "ca"])]
    pub local: bool,
    /// A file (TOML) that says which agents there are, where, what they are, and whom to trust to be they.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["clients", "servers", "fingerprint"])]
    pub fleet: Option<PathBuf>,
    /// Where to listen for agents that dial out to here, from behind NAT or a firewall (`dial = true` in the
    /// fleet file).
    #[arg(long, value_name = "ADDR:PORT", requires_all = ["fleet", "state"])]
    pub listen: Option<std::net::SocketAddr>,
    /// Where the certificate and key that are shown to these agents stay: what `swell agent enrol` has put there,
    /// or what the first use makes.
    #[arg(long, value_name = "DIR", requires = "listen")]
    pub state: Option<PathBuf>,
    /// The token that all agents have.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Fingerprints of the agents' certificates, as they print them.
    #[arg(long, value_name = "HEX", value_delimiter = ',')]
    pub fingerprint: Vec<String>,
    /// Authorities that vouch for the agents' certificates (PEM).
    #[arg(long, value_name = "FILE", conflicts_with = "fingerprint")]
    pub ca: Option<PathBuf>,
    /// How long. Default: until the model is over, or with --closed until Ctrl-C.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<swell_base::Dur>,
    /// Sessions and sources per one of the model's.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub load: f64,
    /// Let intervals pass so many times faster; rates stay what they are.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    pub compress: f64,
    /// The interval to begin with.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub first: u32,
    /// Begin anew after the last interval.
    #[arg(long)]
    pub cycle: bool,
    /// So many agents may be lost while traffic is played; more, and the exit code is 1.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub allow_loss: usize,
    /// Seed of all draws.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// No model: so many sessions, each of which makes the same transfer again and again, for measuring
    /// hosts and network.
    #[arg(long, value_name = "SESSIONS", conflicts_with_all = ["model", "load", "compress", "first", "cycle", "seed"])]
    pub closed: Option<u32>,
    /// Bytes to the server of each transfer of --closed. Default: 100B.
    #[arg(long, value_name = "SIZE", requires = "closed")]
    pub up: Option<swell_base::Bytes>,
    /// Bytes to the client of each transfer of --closed. Default: 0B.
    #[arg(long, value_name = "SIZE", requires = "closed")]
    pub down: Option<swell_base::Bytes>,
    /// Keep connections for the next transfer of their session between the same hosts.
    #[arg(long)]
    pub keep: bool,
    /// Code points (DSCP, 0 to 63) that connections take turns in.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(..64))]
    pub dscp: Vec<u8>,
    /// Congestion controls that connections take turns in, by the kernel's names.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub congestion: Vec<String>,
    /// Count transfers, but keep no table of them.
    #[arg(long)]
    pub counts_only: bool,
    /// Threads of every agent.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: u16,
    /// Everything ends when agents have not heard of this command, or of each other, for so long: 500ms to 60s.
    #[arg(long, default_value = "5s", value_name = "TIME")]
    pub lease: swell_base::Dur,
    /// The directory for the results. Default: runs/generate.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Throw away what the directory holds.
    #[arg(long)]
    pub fresh: bool,
    /// Say nothing but warnings and errors.
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// End whatever an earlier emulation left behind; there should never be anything.
    #[arg(long)]
    pub fix: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The run directory of an emulated run that was recorded.
    pub run: PathBuf,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The page is served to this machine alone, until Ctrl-C. It follows what other processes do there,\nshards and comparisons among them.\n\nswell watch runs/quickstart\nswell watch runs/study-burstiness\nswell watch runs/generate"
)]
pub(crate) struct WatchArgs {
    /// The directory of a run, of a study or of `swell generate`.
    pub run: PathBuf,
    /// The port on 127.0.0.1. Default: one that is free.
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub port: u16,
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
#[command(
    after_help = "Replications of equal seed are pairs; with fewer than five in common, or half, runs are independent samples.\n\nswell compare runs/fifo runs/fq-codel --by network.qdisc --html compared.html"
)]
pub(crate) struct CompareArgs {
    /// The run directories; the others are compared with the first.
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// What is meant to differ, such as network.queue or background.learnt: it is an error if anything else does.
    #[arg(long, value_name = "KEY")]
    pub by: Option<String>,
    /// Write a self-contained page with the figures of all, one over the other.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("drawn").multiple(true)))]
pub(crate) struct ShowArgs {
    /// A model file or the name of a bundled model, a trace, or the directory of a run or of a study: NAME is also
    /// runs/NAME.
    pub what: PathBuf,
    /// More run directories of the same experiment with other seeds: their replications are judged together.
    #[arg(value_name = "RUN")]
    pub more: Vec<PathBuf>,
    /// Write a self-contained page with all pictures; - for standard output, as with all pictures below.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a picture as SVG.
    #[arg(long, value_name = "FILE", group = "drawn")]
    pub svg: Option<PathBuf>,
    /// Write a picture as PNG.
    #[arg(long, value_name = "FILE", group = "drawn")]
    pub png: Option<PathBuf>,
    /// Write a picture as PDF, a page of its own size.
    #[arg(long, value_name = "FILE", group = "drawn")]
    pub pdf: Option<PathBuf>,
    /// Write a picture as a Vega-Lite specification, with its data, to be changed.
    #[arg(long, value_name = "FILE", group = "drawn")]
    pub vega: Option<PathBuf>,
    /// Width of the picture, such as 3.3in or 84mm for a column of a paper; or width and height: 3.3x2.5in.
    #[arg(long, value_name = "SIZE", requires = "drawn", conflicts_with = "vega")]
    pub size: Option<Size>,
    /// Which foreground of a run the picture is about. Default: the first.
    #[arg(long, value_name = "NAME", requires = "drawn")]
    pub foreground: Option<String>,
    /// Which picture is drawn; an unknown name lists them. Default: the one that shows the answer.
    #[arg(long, value_name = "NAME", requires = "drawn")]
    pub picture: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// Does background traffic matter to a distributed system? Vishwanath & Vahdat (2008).
    #[command(mut_arg("seeds", |a| a.help("How many seeds. Default: 5, and 1 with --quick")))]
    #[command(mut_arg("with", |a| a.hide(true)))]
    Background(BundledArgs),
    /// How bursty is the sum of many TCP connections? Tinnakornsrisuphap, Feng & Philp (2000).
    #[command(mut_arg("seeds", |a| a.help("How many seeds. Default: 5, and 1 with --quick")))]
    #[command(mut_arg("with", |a| a.hide(true)))]
    Burstiness(BundledArgs),
    /// How much buffer does a link need? Appenzeller, Keslassy & McKeown (2004), in small: a study to start your own from.
    #[command(mut_arg("seeds", |a| a.help("How many seeds. Default: 5, and 1 with --quick")))]
    #[command(mut_arg("with", |a| a.hide(true)))]
    Buffers(BundledArgs),
    /// What does traffic that fills idle bandwidth do to the traffic that was there? Feldman (2001).
    #[command(mut_arg("seeds", |a| a.help("How many seeds. Default: 1, for nothing is random there")))]
    #[command(mut_arg("with", |a| a.help("Another value than the study's own. minutes: length of the stand-ins, 1 to 120")))]
    Filler(TracesArgs),
    /// What does a household's own traffic do to its pages? Nychis & Licata.
    #[command(mut_arg("seeds", |a| a.help("How many seeds. Default: 10, and 1 with --quick")))]
    #[command(mut_arg("with", |a| a.hide(true)))]
    Residential(BundledArgs),
    /// How wrong is a verdict from one bottleneck, where a path has several and their backgrounds are correlated?
    #[command(mut_arg("seeds", |a| a.help("How many seeds. Default: 10, and 3 with --quick")))]
    #[command(mut_arg("with", |a| a.hide(true)))]
    Hops(BundledArgs),
    /// Where does the verdict flip? Backgrounds of equal mean rate over the link's rate, load, round trip and object size.
    #[command(mut_arg("seeds", |a| a.help("How many seeds. Default: 5, and 1 with --quick")))]
    #[command(mut_arg("with", |a| a.help("Another value than the study's own. model: the learnt model, by name or path")))]
    Atlas(BundledArgs),
    /// At which timescales does an application feel bursts? Its spectrum.
    #[command(mut_arg("seeds", |a| a.help("How many seeds. Default: 5, and 3 with --quick")))]
    #[command(mut_arg("with", |a| a.help("Another value than the study's own. deviation: standard deviation of the rate over its mean, 0.05 to 0.49; fill: share of the link that the background fills beside objects and pages, 0.1 to 0.9; paced: the same beside streams and voice, 0.1 to 0.9")))]
    Sensitivity(SensitivityArgs),
    /// Does traffic come back from nothing but its flow records? Sommers & Barford (2004).
    #[command(mut_arg("seeds", |a| a.help("How many seeds. Default: 3, and 1 with --quick")))]
    #[command(mut_arg("with", |a| a.help("Another value than the study's own. model: the structural model whose users are the original; sessions: its users, as a multiple of the model's, 0.001 to 1000")))]
    Harpoon(BundledArgs),
    /// Does a router treat learnt traffic as it treats a packet generator's? The same, section 6: in real time, with the
    /// kernel's forwarding between hosts on this machine.
    #[command(mut_arg("seeds", |a| a.help("How many seeds. Default: 1")), mut_arg("shard", |a| a.hide(true)), mut_arg("jobs", |a| a.hide(true)))]
    #[command(mut_arg("with", |a| a.help("Another value than the study's own. model: the users whose flow records are learnt from: a bundled structural model, or the file of one; rate: rate of the router's output line; today: hosts as the kernel makes them, instead of such as the paper's: Reno, and receive windows of 64 KB at most")))]
    Router(BundledArgs),
    /// Run a study of your own: a file of experiments, lines, measures, claims and figures.
    File(StudyFileArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "The repository's studies/ has examples, docs/studies.md describes the file.\n\nswell study file studies/buffers/study.toml --quick\nswell study file studies/buffers/study.toml --list"
)]
pub(crate) struct StudyFileArgs {
    /// The study file (TOML).
    #[arg(value_name = "FILE", required_unless_present = "schema")]
    pub file: Option<PathBuf>,
    /// Captures, each one more column, where the study takes them ([capture]).
    #[arg(value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Check the file and print for each combination the command that does its first run by itself; run
    /// nothing.
    #[arg(long)]
    pub list: bool,
    /// Print the JSON schema of study files.
    #[arg(long, conflicts_with = "list")]
    pub schema: bool,
    /// A first look: what the file says under [quick].
    #[arg(long)]
    pub quick: bool,
    /// Another value than the file's own, of one of its options ([[option]]). Again for more.
    #[arg(long, value_name = "NAME=VALUE")]
    pub with: Vec<String>,
    /// How many seeds. Default: the file's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub seeds: Option<u16>,
    #[command(flatten)]
    pub grid: GridArgs,
}

/// A study that is a file, carried by the program, and takes captures.
#[derive(Debug, Args)]
pub(crate) struct TracesArgs {
    /// Captures, each one more column.
    #[arg(value_name = "TRACE", conflicts_with = "write")]
    pub traces: Vec<PathBuf>,
    #[command(flatten)]
    pub bundled: BundledArgs,
}

/// The spectrum of applications.
#[derive(Debug, Args)]
pub(crate) struct SensitivityArgs {
    /// An application: 4kB, 1MB (objects of this size), page, stream or voice. Again for more. Default: all.
    #[arg(long, value_name = "NAME", conflicts_with = "write")]
    pub foreground: Vec<String>,
    #[command(flatten)]
    pub bundled: BundledArgs,
}

/// A study that is a file, carried by the program.
#[derive(Debug, Args)]
pub(crate) struct BundledArgs {
    /// A first look: fewer settings, shorter runs or fewer seeds.
    #[arg(long)]
    pub quick: bool,
    /// How many seeds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub seeds: Option<u16>,
    /// Another value than the study's own.
    #[arg(long, value_name = "NAME=VALUE")]
    pub with: Vec<String>,
    #[command(flatten)]
    pub grid: GridArgs,
    /// Run nothing: write the study's files to this directory, to be changed and run with `swell study
    /// file`.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["quick", "seeds", "with", "jobs", "out", "fresh", "shard"]
    )]
    pub write: Option<PathBuf>,
}

/// How the runs of a study are run and kept.
#[derive(Debug, Args)]
pub(crate) struct GridArgs {
    /// Runs at the same time. Default: as many as there are processors. The results are the same.
    #[arg(long = "threads", alias = "jobs", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// The study's directory. Default: runs/study-NAME. A study that was interrupted goes on where it
    /// stopped.
    #[arg(short, long = "output", alias = "out", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Throw away the runs that the directory holds, and begin anew.
    #[arg(long)]
    pub fresh: bool,
    /// Do only part K of N of the runs: 2/4 is every fourth, from the second on. Shards can run at the same time, in one
    /// directory or in copies of it. Then run the same command without --shard: it runs what is missing and merges all
    /// shards.
    #[arg(long, value_name = "K/N", conflicts_with_all = ["fresh"])]
    pub shard: Option<swell_experiment::run::Shard>,
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
