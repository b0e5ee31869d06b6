//! Command-line arguments of `swell under`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use groundswell::under::{Keep, Link, Options, Server};
use swell_base::Dur;
use swell_experiment::file::{self, Deliveries, LinkKeys, LinkOverrides, Loss, Named, QdiscSpec};
use toml::{Table, Value};

use super::shell::Client;
use crate::emulation::{EmulationArgs, probability};
use crate::fail::Fail;
use crate::out;
use crate::pairs::pairs;

#[derive(Debug, Args)]
#[command(
    after_help = "Inside, the program's only network is the emulated one: the names `client` and\n`server` resolve, and where no --server is given http://server/1MB is a megabyte\nand http://server/FILE a file of the current directory. The exit code is the\nprogram's: 124 if it took too long, 126 if it cannot be executed, 127 if it does not\nexist, 128 + N if signal N ended it.\n\n  swell under access-link -- curl -o /dev/null http://server/10MB\n  swell under access-link --delay 20ms --compare -- \\\n      curl -so /dev/null http://server/1MB"
)]
pub(crate) struct UnderArgs {
    #[command(flatten)]
    pub link: LinkArgs,
    /// The program and its arguments. Default: a shell.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Largest packet of both hosts, bytes of the network layer.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1280..))]
    pub mtu: Option<u16>,
    /// Both hosts' kernels ask for ECN in TCP, and accept it. Default: they accept it.
    #[arg(long)]
    pub ecn: bool,
    /// A command for the shell that is run on the server's side.
    #[arg(long, value_name = "COMMAND")]
    pub server: Option<String>,
    /// The TCP or UDP port on which --server listens once it is ready. Nobody connects to it before the program does.
    #[arg(long, value_name = "PORT", requires = "server")]
    pub ready: Option<u16>,
    /// How long --server may take until it is ready.
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "ready")]
    pub ready_timeout: Dur,
    /// Congestion control of both hosts' kernels.
    #[arg(long, default_value = "cubic", value_name = "NAME")]
    pub congestion_control: String,
    /// How long the program may take. Default: two minutes; twelve hours for a shell.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Dur>,
    /// Run the command under no background, Poisson packets and the background in turn, N times each,
    /// and say what the background changes. Each run reads the file that is standard input. An interrupted
    /// comparison begins anew unless --resume is given.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    pub compare: Option<u32>,
    /// With --compare: a measure that the program reports itself, as 'NAME (UNIT): PATTERN', such as
    /// 'p99 (ms): Latency\s+([\d.]+)(us|ms|s)'; (UNIT, higher) where more is better, (UNIT, primary) where it is what
    /// the question is about. Or 'NAME: json:PATH' for a JSONPath into its standard output, or 'NAME: jsonl' for lines
    /// of {dir}/measures.jsonl. Again for more.
    #[arg(long, value_name = "MEASURE", requires = "compare")]
    pub measure: Vec<swell_experiment::measure::Reported>,
    /// With --compare: exit with code 5 if this holds of any background, such as
    /// 'p95.slowdown.high > 1.5', or cannot be told. Again for more.
    #[arg(long, value_name = "CONDITION", requires = "compare")]
    pub fail_if: Vec<crate::threshold::Threshold>,
    /// With --compare: write what --fail-if and the verdict say as JUnit test cases, which CI systems show; - for
    /// standard output, which then has nothing else.
    #[arg(long, value_name = "FILE", requires = "compare")]
    pub junit: Option<PathBuf>,
    /// Write the program's packets to a pcapng file, as a capture on its side of the network shows them.
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    pub pcap: Option<PathBuf>,
    /// Write a report.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Keep everything in a run directory: a new one, or that of the same command. A complete comparison is replaced
    /// only with --fresh. Default of comparisons: runs/under, or the next of runs/under-2, ... that is free.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Throw away what that directory holds.
    #[arg(long, requires = "output")]
    pub fresh: bool,
    /// With --compare: keep the runs of the same command that was interrupted, and make the others. The program, its
    /// files and environment, and the machine must be as they were.
    #[arg(long, requires = "compare", conflicts_with = "fresh")]
    pub resume: bool,
    #[command(flatten)]
    pub emulation: EmulationArgs,
    /// Show nothing but what the program shows.
    #[arg(short, long)]
    pub quiet: bool,
}

/// The link and who else is on it.
#[derive(Clone, Debug, Args)]
pub(crate) struct LinkArgs {
    /// The background: the name of a bundled model, a model file (learnt from packets or from flow
    /// records), a packet trace (learnt on the spot), or none.
    pub background: String,
    /// Rate of the link, both directions. Default: 20Mbit, or what --deliveries says.
    #[arg(long)]
    pub rate: Option<swell_base::Rate>,
    /// Rate towards the server.
    #[arg(long, value_name = "RATE")]
    pub up: Option<swell_base::Rate>,
    /// Rate towards the client.
    #[arg(long, value_name = "RATE")]
    pub down: Option<swell_base::Rate>,
    /// Packet-delivery trace instead of a rate, both directions: a file as mahimahi has them, one line per opportunity
    /// to send 1500 bytes, in milliseconds.
    #[arg(long, value_name = "FILE")]
    pub deliveries: Option<String>,
    /// Packet-delivery trace towards the server.
    #[arg(long, value_name = "FILE", conflicts_with = "up")]
    pub deliveries_up: Option<String>,
    /// Packet-delivery trace towards the client.
    #[arg(long, value_name = "FILE", conflicts_with = "down")]
    pub deliveries_down: Option<String>,
    /// One-way delay of the link.
    #[arg(long, default_value = "20ms", value_name = "TIME")]
    pub delay: Option<Dur>,
    /// What the queue holds: packets, bytes, time, or multiples of the bandwidth-delay product. Default:
    /// one of these, and ten packets at least.
    #[arg(long, value_name = "LIMIT")]
    pub queue: Option<swell_base::QueueLimit>,
    /// Queueing discipline: fifo, red, codel, fq-codel, pie, ...
    #[arg(long, value_name = "NAME", value_parser = qdisc)]
    pub qdisc: Option<QdiscSpec>,
    /// Probability that a packet is lost on the wire: 0.001 or 0.1%. Or losses in bursts, as Gilbert and
    /// Elliott model them: ge:P_BAD,P_GOOD[,LOSS_BAD[,LOSS_GOOD]], probabilities per packet of going from
    /// good to bad and back, and of a loss in each state (1 and 0).
    #[arg(long, value_name = "P", value_parser = loss)]
    pub loss: Option<Loss>,
    /// What changes while it runs: 'at=30s rate=5Mbit direction=down', with any of rate, deliveries,
    /// delay, loss, queue, qdisc, outage; every=TIME repeats it. Counted from the start of the program.
    /// Again for more.
    #[arg(long, value_name = "CHANGE")]
    pub change: Vec<Change>,
    /// Mean rate of the background towards the client. Default: six tenths of the link's. The
    /// number of sessions is chosen so that this is their mean rate on a link that is never full.
    #[arg(long, value_name = "RATE")]
    pub load: Option<swell_base::Rate>,
    /// Seed of the background.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How long the background has been there when the program starts; simulated beforehand, in no time.
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<Dur>,
}

impl UnderArgs {
    /// The options to run this client.
    pub(super) fn options(&self, client: Client) -> Result<Options, Fail> {
        Ok(Options {
            environment: client.environment,
            duration: self.duration.unwrap_or(match self.command.is_empty() {
                true => Dur::from_millis(12 * 3_600_000),
                false => Dur::from_millis(120_000),
            }),
            mtu: self.mtu,
            ecn: self.ecn,
            congestion_control: self.congestion_control.clone(),
            server: self.server.clone().map(|command| Server {
                command,
                ready: self.ready.map(|port| (port, self.ready_timeout)),
            }),
            compare: self.compare,
            // A program that reads events has no use for what another program writes among them.
            terminal: !out::events(),
            measures: self.measure.clone(),
            keep: Keep {
                output: self.output.clone(),
                fresh: self.fresh,
                resume: self.resume,
                always: self.emulation.record,
            },
            ..Options::new(self.link.link(), client.argv)
        })
    }
}

impl LinkArgs {
    /// The link given on the command line.
    pub(crate) fn link(&self) -> Link {
        let traced = |file: &Option<String>| {
            file.clone().map(|file| {
                Named(Deliveries {
                    file,
                    phase: None,
                    sha256: None,
                })
            })
        };
        let own = |rate, deliveries| {
            let own = LinkOverrides {
                rate,
                deliveries: traced(deliveries),
                ..LinkOverrides::default()
            };
            (own != LinkOverrides::default()).then_some(own)
        };
        let network = LinkKeys {
            rate: self.rate,
            deliveries: traced(&self.deliveries),
            delay: self.delay,
            queue: self.queue,
            qdisc: self.qdisc.clone(),
            loss: self.loss,
            up: own(self.up, &self.deliveries_up),
            down: own(self.down, &self.deliveries_down),
            change: self.change.iter().map(|c| c.0.clone()).collect(),
            ..LinkKeys::default()
        };
        Link {
            load: self.load,
            seed: self.seed,
            warmup: self.warmup,
            ..Link::new(self.background.as_str(), network)
        }
    }
}

/// Deserializes a value in the notation of experiment files.
fn keys<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    value.try_into().map_err(|e| e.message().to_owned())
}

fn qdisc(name: &str) -> Result<QdiscSpec, String> {
    keys(name.into())
}

/// Parses the loss model of the wire.
pub(crate) fn loss(text: &str) -> Result<Loss, String> {
    let Some(states) = text.strip_prefix("ge:") else {
        return probability(text).map(|p| match p > 0.0 {
            true => Loss::Independent { p },
            false => Loss::None,
        });
    };
    let given: Vec<f64> = states
        .split(',')
        .map(probability)
        .collect::<Result<_, _>>()?;
    let (to_bad, to_good, loss_bad, loss_good) = match given[..] {
        [to_bad, to_good] => (to_bad, to_good, 1.0, 0.0),
        [to_bad, to_good, bad] => (to_bad, to_good, bad, 0.0),
        [to_bad, to_good, bad, good] => (to_bad, to_good, bad, good),
        _ => return Err("two to four probabilities: ge:0.01,0.3".into()),
    };
    Ok(Loss::GilbertElliott {
        to_bad,
        to_good,
        loss_bad,
        loss_good,
    })
}

/// A change of the network while the program runs, counted from the start of the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change(file::Change);

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        let mut table = Table::new();
        let words = text.split([' ', ';']).filter(|p| !p.is_empty());
        for (key, value) in pairs(words)? {
            let value = match key {
                "loss" => Value::try_from(loss(value)?).map_err(|e| e.to_string())?,
                _ => value.into(),
            };
            table.insert(key.into(), value);
        }
        if !table.contains_key("at") {
            return Err("it does not say when: at=10s".into());
        }
        keys(Value::Table(table)).map(Change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_independent_or_in_bursts() {
        assert_eq!(loss("1%"), Ok(Loss::Independent { p: 0.01 }));
        assert_eq!(loss("0"), Ok(Loss::None));
        let bursts = |[to_bad, to_good, loss_bad, loss_good]: [f64; 4]| {
            Ok(Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_bad,
                loss_good,
            })
        };
        assert_eq!(loss("ge:0.01,30%"), bursts([0.01, 0.3, 1.0, 0.0]));
        assert_eq!(loss("ge:0,1,0.5,0.1"), bursts([0.0, 1.0, 0.5, 0.1]));
        for wrong in ["ge:", "ge:0.1", "ge:1,2", "ge:1,1,1,1,1", "gilbert"] {
            assert!(loss(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_change_says_when_and_what() {
        let Change(change) = "at=10s rate=5Mbit direction=down loss=1% qdisc=codel"
            .parse()
            .unwrap();
        assert_eq!(change.at, Dur::from_millis(10_000));
        assert_eq!(change.rate.map(|r| r.bps()), Some(5_000_000));
        assert_eq!(change.loss, Some(Loss::Independent { p: 0.01 }));
        assert!(change.qdisc.is_some() && !change.direction.has(swell_base::Direction::Up));
        for wrong in [
            "rate=5Mbit",
            "at=10s speed=1",
            "at=soon",
            "5Mbit",
            "at=1s rate=5Mbit rate=6Mbit",
        ] {
            assert!(wrong.parse::<Change>().is_err(), "{wrong}");
        }
    }
}
