//! Command-line arguments of `swell learn`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct LearnArgs {
    /// Files of one link; - for standard input. Packet traces: pcap, pcapng or snoop; those that overlap in
    /// time are merged. Flow records, in the order of their times: NetFlow, IPFIX or sFlow (in a capture, or one message behind the other),
    /// nfdump files, Zeek's conn.log, Suricata's EVE, Argus, CSV. All plain or compressed. Or flow-level
    /// models of pieces of a trace, to be merged; or Harpoon's configurations, client's and server's.
    #[arg(
        required_unless_present = "listen",
        conflicts_with = "listen",
        value_name = "TRACE"
    )]
    pub traces: Vec<PathBuf>,
    /// Two packet captures of two taps of one path, made at the same time, the tap nearer to the inside first: models of
    /// the traffic that passes both taps and of the cross traffic of each, and an experiment with them over two links.
    /// Flows are matched by addresses and ports; the clocks may differ. -o names a directory (default: through).
    #[arg(long, conflicts_with_all = ["listen", "private", "link_rtt", "length", "flows", "packets", "ipfix", "sample", "interval"])]
    pub through: bool,
    /// Collect NetFlow, IPFIX and sFlow from exporters at this address and UDP port, such as 0.0.0.0:2055,
    /// until Ctrl-C.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Collect for so long.
    #[arg(long = "for", value_name = "TIME", requires = "listen")]
    pub duration: Option<swell_base::Dur>,
    /// The model file; compressed if its name ends in .zst. A flow-level model becomes Harpoon's two
    /// configurations, X-client.xml and X-server.xml, if the name is X.xml. Default: NAME.json.
    #[arg(short, long, value_name = "MODEL")]
    pub output: Option<PathBuf>,
    /// Name of the model. Default: the first trace's.
    #[arg(long)]
    pub name: Option<String>,
    /// What the trace is and its licence, in free text; kept in the model.
    #[arg(long, default_value = "", hide_default_value = true)]
    pub note: String,
    /// A connection that starts within this of a group of connections belongs to it, unless all of them are over.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub group_timeout: swell_base::Dur,
    /// A group that starts within this of a session's last one belongs to it.
    #[arg(long, value_name = "TIME", default_value = "5min")]
    pub session_timeout: swell_base::Dur,
    /// A network that is inside (left of the tapped link), such as 192.0.2.0/24; may be named more than
    /// once, and all others are outside then. Default: what packet traces say themselves, by interfaces,
    /// directions and Ethernet addresses, or who talks to whom. For packets only.
    #[arg(long, value_name = "CIDR")]
    pub inside: Vec<swell_learn::Network>,
    /// Round-trip propagation delay of the tapped link itself, where the tap is before or behind it. It is subtracted from
    /// round trips, at most to zero, because an experiment adds the delay of its own link. For packets only.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub link_rtt: swell_base::Dur,
    /// Rate of the tapped link itself, such as 50Mbit, or towards the inside and away from it, 50Mbit/10Mbit. Hosts have
    /// no capacities of that rate or more then, because an experiment has a link of its own; lower ones are their own.
    /// Default: told from hosts that fill a line together, where several do. For packets only.
    #[arg(long, value_name = "RATE", value_parser = link_rate)]
    pub link_rate: Option<[swell_base::Rate; 2]>,
    /// How long the capture lasted, where it went on without a packet after the last one: rates are means over all of
    /// it. A shorter time is an error. Default: to the last packet. For packets only.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0s",
        hide_default_value = true
    )]
    pub length: swell_base::Dur,
    /// Size of the model file if it is compressed, in kB, at most 4000: sessions are left out beyond it,
    /// and others stand for them. For packets only.
    #[arg(long, value_name = "KB", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=4000))]
    pub budget: u64,
    /// Hide whether any one session, a user's visit, was in the trace: differential privacy. The model is made of
    /// histograms with noise, the more the smaller EPSILON is; 1 to 10 is usual. What it costs is printed. Sides
    /// count as known: name them (--inside). For packets only.
    #[arg(long, value_name = "EPSILON", value_parser = epsilon, conflicts_with_all = ["listen", "flows", "ipfix", "sample", "interval"])]
    pub private: Option<f64>,
    #[command(flatten)]
    pub flows: FlowArgs,
}

/// Parses one rate, or two with a slash between them: right to left, and left to right. Returns left to right first.
fn link_rate(text: &str) -> Result<[swell_base::Rate; 2], String> {
    let rate = |one: &str| -> Result<swell_base::Rate, String> {
        let rate: swell_base::Rate = one.parse().map_err(|e| format!("{e}"))?;
        match rate.bps() {
            0 => Err("it must be positive".into()),
            _ => Ok(rate),
        }
    };
    // Rates in bytes have a slash of their own.
    let second = text
        .match_indices('/')
        .find(|(i, _)| !text[i + 1..].starts_with("s"));
    Ok(match second {
        Some((i, _)) => [rate(&text[i + 1..])?, rate(&text[..i])?],
        None => [rate(text)?; 2],
    })
}

/// Parses the epsilon of differential privacy, 0.001 to 1000; it must be positive.
fn epsilon(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(x) if (0.001..=1000.0).contains(&x) => Ok(x),
        _ => Err("a number from 0.001 to 1000, such as 1".into()),
    }
}

/// How a flow-level model is made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Flow-level models")]
pub(crate) struct FlowArgs {
    /// Keep the SHA-256 of each file in the model, so that it can be told what it was made of.
    #[arg(long, help_heading = "Options")]
    pub digest: bool,
    /// Meter packet traces into flow records, and make a flow-level model of those.
    #[arg(long)]
    pub flows: bool,
    /// Take a capture as one of packets even if they are flow exports.
    #[arg(long, conflicts_with = "flows")]
    pub packets: bool,
    /// Length of the intervals in which volumes are met.
    #[arg(long, value_name = "TIME", default_value = "5min")]
    pub interval: swell_base::Dur,
    /// A longer wait between two connections of a pair of hosts ends the session.
    #[arg(long, value_name = "TIME", default_value = "1min")]
    pub session_gap: swell_base::Dur,
    /// Less payload in one direction of a connection is no file, and a connection without one is dropped (100B in the
    /// paper). 0B: every connection that was accepted, or carries payload, is one.
    #[arg(long, value_name = "SIZE", default_value = "0B")]
    pub min_file: swell_base::Bytes,
    /// Connections, pairs of hosts, hosts and datagram sources that are kept in mind at most, each; some 200 bytes for
    /// each of those that there are.
    #[arg(long, value_name = "N", default_value_t = 1 << 22, value_parser = clap::value_parser!(u32).range(16..=1 << 31))]
    pub table_entries: u32,
    /// Whose arithmetic: `fixed`, or `harpoon` for that of the program released in 2005.
    #[arg(long, value_name = "NAME", default_value = "fixed")]
    pub profile: FlowProfile,
    /// Metering: a flow that goes on is recorded after this long.
    #[arg(long, value_name = "TIME", default_value = "30min")]
    pub active_timeout: swell_base::Dur,
    /// Metering: a flow without a packet for this long has ended.
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub inactive_timeout: swell_base::Dur,
    /// Metering: one packet in so many, each with equal probability.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub sample: u32,
    /// Write the flow records to an IPFIX file (RFC 5655), too.
    #[arg(long, value_name = "FILE")]
    pub ipfix: Option<PathBuf>,
}

impl FlowArgs {
    /// Whether an option has another value than its default that only flow records have a use for.
    pub(crate) fn are_asked_for(&self) -> bool {
        self.ipfix.is_some() || self.sample > 1 || self.interval != swell_base::Dur::from_secs(300)
    }
}

/// Arithmetic of a flow-level model.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum FlowProfile {
    /// What the paper means.
    Fixed,
    /// The released program, faults included.
    Harpoon,
}

#[cfg(test)]
mod tests {
    use super::link_rate;

    #[test]
    fn a_link_has_one_rate_or_two() {
        for (text, mbit) in [
            ("50Mbit", Some([50, 50])),
            ("50Mbit/10Mbit", Some([10, 50])),
            ("10Mbit/s/8Mbit/s", Some([8, 10])),
            ("1MB/s", Some([8, 8])),
            ("1MB/s/8Mbit", Some([8, 8])),
            ("0Mbit", None),
            ("50Mbit/", None),
            ("fast", None),
        ] {
            let found = link_rate(text).ok();
            let found = found.map(|rates| rates.map(|rate| rate.bps() / 1_000_000));
            assert_eq!(found, mbit, "{text}");
        }
    }
}
