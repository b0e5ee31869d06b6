//! The keys of a real program: its hosts, their commands and what is measured.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Side};

use crate::file::Route;
use crate::measure::Reported;

/// A real client, and a real server where it needs one. Needs `backend = "emulated"`.
///
/// In commands, environment and directories `{server}` and `{client}` stand for the hosts' IPv4
/// addresses, `{server6}` and `{client6}` for the IPv6 ones, `{seed}` for the seed of the run and
/// `{dir}` for a directory of the run's own, whose files are kept. Inside, the names `server` and
/// `client` resolve too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// What is measured.
    #[serde(default)]
    pub measure: Measure,
    /// Measures that the program reports itself, beside those that the packets show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<Reported>,
    /// How often the client is run, one after the other. Default: until the run is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// A client that takes longer than this is killed, and has failed.
    #[serde(default = "minute")]
    pub timeout: Dur,
    /// Pause between the end of the client and its next run.
    #[serde(default)]
    pub think: Dur,
    /// One-way delay of the access path on each side of the bottleneck. Default: what makes the
    /// network's `rtt`, or its `access_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// Congestion control of both hosts' kernels, whatever this machine's default is.
    #[serde(default = "cubic")]
    pub congestion_control: String,
    /// Both hosts' kernels ask for ECN in TCP (RFC 3168) and accept it (`net.ipv4.tcp_ecn` 1); `false`: neither.
    /// Default: they accept it and do not ask, as Linux comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// Largest packet of every host, bytes of the network layer.
    #[serde(default = "ethernet")]
    pub mtu: u16,
    /// The client, on the left.
    pub client: Client,
    /// The server, on the right. Default: a small HTTP server of our own on port 80, which serves
    /// objects of any size (`http://server/1MB`) and the files of the current directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    /// More hosts, each with a program, that run as long as the run: a swarm's other peers, a cache, a
    /// second server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<Peer>,
    /// Which links it crosses.
    #[serde(flatten)]
    pub route: Route,
}

fn minute() -> Dur {
    Dur::from_secs(60)
}

fn ethernet() -> u16 {
    1500
}

fn cubic() -> String {
    "cubic".into()
}

/// What of a program is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Each request inside the client's connections and datagram flows, as changes of direction in the
    /// packets show it: from the first byte asked to the last byte answered. The first of a connection
    /// includes the opening. The program needs no instruments, and encryption is no obstacle; requests that
    /// overlap in one connection count as one. Runs of the client where there is no request.
    #[default]
    Requests,
    /// Each TCP connection that the client opens: from its SYN to the last byte from the server, as
    /// the packets show them.
    Connections,
    /// Each run of the client: from its start to its end. It has failed if its exit status is not 0.
    Runs,
}

/// A client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// What is run.
    pub command: CommandLine,
    /// Where. Default: the directory in which `swell` was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Variables of the environment beside our own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// What is run.
    pub command: CommandLine,
    /// Where. Default: the directory in which `swell` was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Variables of the environment beside our own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// It is ready when a program listens on this TCP or UDP port; nobody connects. Default: when it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<u16>,
    /// The run fails if it is not ready by then.
    #[serde(default = "ten_seconds")]
    pub ready_timeout: Dur,
}

/// Another host, with a program. Its name resolves in all the others, and `{NAME}` and `{NAME6}` stand
/// for its addresses in commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its name: letters, digits, hyphens.
    pub name: String,
    /// Where it is. Hosts on one side reach each other without crossing the bottleneck.
    #[serde(default = "right")]
    pub side: Side,
    /// What is run.
    pub command: CommandLine,
    /// Where. Default: the directory in which `swell` was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Variables of the environment beside our own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// It is ready when a program listens on this TCP or UDP port; nobody connects. Default: when it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<u16>,
    /// The run fails if it is not ready by then.
    #[serde(default = "ten_seconds")]
    pub ready_timeout: Dur,
}

fn right() -> Side {
    Side::Right
}

impl Peer {
    /// Its command and directory as a server.
    pub fn service(&self) -> Server {
        Server {
            command: self.command.clone(),
            directory: self.directory.clone(),
            environment: self.environment.clone(),
            ready: self.ready,
            ready_timeout: self.ready_timeout,
        }
    }
}

fn ten_seconds() -> Dur {
    Dur::from_secs(10)
}

/// A command: a string for the shell (`/bin/sh -c`), or a list of a program and its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CommandLine {
    /// For the shell.
    Shell(String),
    /// A program and its arguments.
    Arguments(Vec<String>),
}

impl CommandLine {
    /// The program and its arguments.
    pub fn arguments(&self) -> Vec<String> {
        match self {
            CommandLine::Shell(text) => ["/bin/sh", "-c", text].map(str::to_owned).to_vec(),
            CommandLine::Arguments(all) => all.clone(),
        }
    }

    /// Whether the command is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            CommandLine::Shell(text) => text.trim().is_empty(),
            CommandLine::Arguments(all) => all.first().is_none_or(String::is_empty),
        }
    }
}
