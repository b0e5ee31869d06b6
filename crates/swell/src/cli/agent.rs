//! Command-line arguments of `swell agent`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Over TLS, with a certificate of its own making unless one is given; its fingerprint is printed, for\nthe controller's --fingerprint. The interface is described at /openapi.json. See docs/generate.md."
)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    pub command: Option<AgentCommand>,
    /// Where to listen for the controller. Default: 0.0.0.0:8471, or nowhere with --dial.
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<std::net::SocketAddr>,
    /// Dial out to a controller (`swell generate --listen`), from behind NAT or a firewall, and again whenever
    /// the connection ends.
    #[arg(
        long,
        value_name = "HOST:PORT",
        conflicts_with = "plain",
        help_heading = "Behind NAT"
    )]
    pub dial: Option<String>,
    /// Authorities that vouch for the controller's certificate (PEM).
    #[arg(
        long,
        value_name = "FILE",
        requires = "dial",
        help_heading = "Behind NAT"
    )]
    pub ca: Option<PathBuf>,
    /// Fingerprint of the controller's certificate, as `swell generate` prints it.
    #[arg(
        long,
        value_name = "HEX",
        requires = "dial",
        conflicts_with = "ca",
        help_heading = "Behind NAT"
    )]
    pub fingerprint: Option<String>,
    /// The token that the controller must have, at least 16 bytes.
    #[arg(long, value_name = "FILE", required = true)]
    pub token_file: Option<PathBuf>,
    /// Where the certificate and its key stay, so that the agent is the same after a restart: what `swell agent
    /// enrol` has put there, or what the first start makes.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["tls_cert", "plain"])]
    pub state: Option<PathBuf>,
    /// Certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// No TLS; on a loopback address alone.
    #[arg(long, conflicts_with = "tls_cert")]
    pub plain: bool,
    /// Prefixes of addresses that traffic may come from and go to here, such as 10.1.0.0/16; they must
    /// be local (`ip route add local PREFIX dev lo`). Default: the host's own address.
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    pub pool: Vec<String>,
    /// Where traffic is to be sent to. Default: the first address of the pool, or where the controller
    /// reaches the agent.
    #[arg(long, value_name = "ADDR")]
    pub address: Option<std::net::IpAddr>,
    /// The port for traffic, TCP and UDP. Default: one of the kernel's choice for every run.
    #[arg(
        long,
        default_value_t = 0,
        hide_default_value = true,
        value_name = "PORT"
    )]
    pub port: u16,
    /// Ask for real-time priority for the threads that send and receive: on a busy machine the
    /// kernel otherwise lets others in for milliseconds.
    #[arg(long)]
    pub precise: bool,
    /// A token that reads /metrics and the description of the interface alone, for Prometheus.
    #[arg(long, value_name = "FILE")]
    pub metrics_token_file: Option<PathBuf>,
    /// Send no more than this, all runs together, headers included.
    #[arg(
        long,
        value_name = "RATE",
        help_heading = "Limits, which no token lifts"
    )]
    pub max_rate: Option<swell_base::Rate>,
    /// Exchange traffic with these prefixes alone. Default: any.
    #[arg(
        long,
        value_name = "PREFIX",
        value_delimiter = ',',
        help_heading = "Limits, which no token lifts"
    )]
    pub allow_peer: Vec<String>,
    /// Play in these hours of the day alone, such as 22:00-06:00 (UTC). Default: always.
    #[arg(
        long,
        value_name = "FROM-UNTIL",
        help_heading = "Limits, which no token lifts"
    )]
    pub hours: Option<swell_generate::Hours>,
    /// Say nothing.
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Make a certificate authority: ca.pem, for the controller's --ca, and ca.key, which stays secret.
    #[command(after_help = "swell agent ca authority")]
    Ca {
        /// The directory; it is made.
        dir: PathBuf,
        /// How long it is valid.
        #[arg(long, default_value_t = 3650, value_name = "N")]
        days: u32,
    },
    /// Make the certificate of an agent, for its --state. A controller that agents dial has one, too.
    #[command(after_help = "swell agent enrol a.example 10.0.0.1 --ca authority -o a-state")]
    Enrol {
        /// Names and addresses by which controllers reach it, or by which a fleet file calls it if it dials out.
        #[arg(required = true)]
        names: Vec<String>,
        /// The directory of the authority.
        #[arg(long, value_name = "DIR")]
        ca: PathBuf,
        /// The directory for certificate and key; it is made.
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
        /// How long it is valid.
        #[arg(long, default_value_t = 825, value_name = "N")]
        days: u32,
    },
}
