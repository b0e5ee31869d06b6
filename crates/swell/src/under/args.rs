//! What may be typed after `swell under`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use toml::{Table, Value};

use crate::emulation::{EmulationArgs, probability};

#[derive(Debug, Args)]
#[command(
    after_help = "Inside, the program's only network is the emulated one: the names `client` and\n`server` resolve, and where no --server is given http://server/1MB is a megabyte\nand http://server/FILE a file of the current directory. The exit code is the\nprogram's; 124 if it took too long.\n\n  swell under access-link -- curl -o /dev/null http://server/10MB\n  swell under access-link --delay 20ms --compare -- \\\n      curl -so /dev/null http://server/1MB"
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
    pub ready_timeout: swell_base::Dur,
    /// Congestion control of both hosts' kernels.
    #[arg(long, default_value = "cubic", value_name = "NAME")]
    pub congestion_control: String,
    /// How long the program may take. Default: two minutes; twelve hours for a shell.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<swell_base::Dur>,
    /// Run the command under no background, Poisson packets and the background in turn, N times each,
    /// and say what the background changes.
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
    /// With --compare: write what --fail-if and the verdict say as JUnit test cases, which CI systems show.
    #[arg(long, value_name = "FILE", requires = "compare")]
    pub junit: Option<PathBuf>,
    /// Write the program's packets, as its host and the server's see them, to a pcapng file.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Write a report.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Keep everything in a run directory: a new one, or that of the same command.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Throw away what another command left in that directory.
    #[arg(long, requires = "output")]
    pub fresh: bool,
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
    pub delay: Option<swell_base::Dur>,
    /// What the queue holds: packets, bytes, time, or multiples of the bandwidth-delay product. Default:
    /// one of these, and ten packets at least.
    #[arg(long, value_name = "LIMIT")]
    pub queue: Option<swell_base::QueueLimit>,
    /// Queueing discipline: fifo, red, codel, fq-codel, pie, ...
    #[arg(long, value_name = "NAME")]
    pub qdisc: Option<String>,
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
    /// Mean rate of the background towards the client. Default: six tenths of the link's. It has
    /// as many sessions as make this rate on a link that is never full.
    #[arg(long, value_name = "RATE")]
    pub load: Option<swell_base::Rate>,
    /// Seed of the background.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How long the background has been there when the program starts; simulated beforehand, in no time.
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<swell_base::Dur>,
}

/// How packets are lost on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Loss {
    /// Each on its own.
    Independent(f64),
    /// In two states: into the bad one, back, lost in the bad one, lost in the good one.
    GilbertElliott([f64; 4]),
}

impl Loss {
    /// As a link has it.
    pub fn process(self) -> swell_experiment::file::Loss {
        match self {
            Loss::Independent(p) if p > 0.0 => swell_experiment::file::Loss::Independent { p },
            Loss::Independent(_) => swell_experiment::file::Loss::None,
            Loss::GilbertElliott([to_bad, to_good, loss_bad, loss_good]) => {
                swell_experiment::file::Loss::GilbertElliott {
                    to_bad,
                    to_good,
                    loss_bad,
                    loss_good,
                }
            }
        }
    }

    /// As experiment files have it.
    pub(super) fn value(self) -> Value {
        let pairs = match self {
            Loss::Independent(p) if p > 0.0 => {
                vec![("kind", "independent".into()), ("p", Value::Float(p))]
            }
            Loss::Independent(_) => vec![("kind", "none".into())],
            Loss::GilbertElliott([p_bad, p_good, loss_bad, loss_good]) => vec![
                ("kind", "gilbert-elliott".into()),
                ("p_bad", Value::Float(p_bad)),
                ("p_good", Value::Float(p_good)),
                ("loss_bad", Value::Float(loss_bad)),
                ("loss_good", Value::Float(loss_good)),
            ],
        };
        Value::Table(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
    }
}

pub(crate) fn loss(text: &str) -> Result<Loss, String> {
    let Some(states) = text.strip_prefix("ge:") else {
        return probability(text).map(Loss::Independent);
    };
    let given: Vec<f64> = states
        .split(',')
        .map(probability)
        .collect::<Result<_, _>>()?;
    match given[..] {
        [p_bad, p_good] => Ok(Loss::GilbertElliott([p_bad, p_good, 1.0, 0.0])),
        [p_bad, p_good, bad] => Ok(Loss::GilbertElliott([p_bad, p_good, bad, 0.0])),
        [p_bad, p_good, bad, good] => Ok(Loss::GilbertElliott([p_bad, p_good, bad, good])),
        _ => Err("two to four probabilities: ge:0.01,0.3".into()),
    }
}

/// A change of the network while the program runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// When, from the start of the program.
    pub at: swell_base::Dur,
    /// The rest of it, as experiment files have it.
    pub rest: Table,
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        let mut at = None;
        let mut rest = Table::new();
        for pair in text.split([' ', ';']).filter(|p| !p.is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("`{pair}` is no KEY=VALUE"))?;
            let value = match key {
                "at" => {
                    at = Some(
                        value
                            .parse()
                            .map_err(|e: swell_base::UnitError| e.to_string())?,
                    );
                    continue;
                }
                "loss" => loss(value)?.value(),
                "rate" | "deliveries" | "delay" | "queue" | "qdisc" | "outage" | "direction"
                | "every" | "outage_packets" => value.into(),
                _ => {
                    return Err(format!(
                        "nothing is called `{key}`: at, every, direction, rate, deliveries, delay, loss, queue, qdisc, outage, outage_packets"
                    ));
                }
            };
            rest.insert(key.into(), value);
        }
        let at = at.ok_or("it does not say when: at=10s")?;
        Ok(Change { at, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_independent_or_in_bursts() {
        assert_eq!(loss("1%"), Ok(Loss::Independent(0.01)));
        assert_eq!(
            loss("ge:0.01,30%"),
            Ok(Loss::GilbertElliott([0.01, 0.3, 1.0, 0.0]))
        );
        assert_eq!(
            loss("ge:0,1,0.5,0.1"),
            Ok(Loss::GilbertElliott([0.0, 1.0, 0.5, 0.1]))
        );
        for wrong in ["ge:", "ge:0.1", "ge:1,2", "ge:1,1,1,1,1", "gilbert"] {
            assert!(loss(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_change_says_when_and_what() {
        let change: Change = "at=10s rate=5Mbit direction=down loss=1%".parse().unwrap();
        assert_eq!(change.at, swell_base::Dur::from_millis(10_000));
        assert_eq!(change.rest["rate"].as_str(), Some("5Mbit"));
        assert_eq!(change.rest["loss"]["p"].as_float(), Some(0.01));
        for wrong in ["rate=5Mbit", "at=10s speed=1", "at=soon", "5Mbit"] {
            assert!(wrong.parse::<Change>().is_err(), "{wrong}");
        }
    }
}
