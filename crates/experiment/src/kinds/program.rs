//! Real programs as the application under study.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur, Side};

use super::Traffic;
use super::contract::{
    Fetches, Keys, Machine, Plausible, Plays, Resolving, Role, Setting, Slot, reads,
};
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{BackendKind, Route};
use crate::measure::{self, BUILT_IN, COMPLETION_TIME, FAILURES, REQUEST_RATE, Reported};
use crate::reported;

/// Maximum number of hosts besides the client and the server, numbered by the fourth byte of their addresses.
const MOST_HOSTS: usize = 250;

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

/// A program of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramTraffic {
    /// Its keys in the file.
    pub program: Program,
    /// One-way delay of the access path on each side of the bottleneck.
    pub delay: Dur,
}

impl Keys for Program {
    reads!(name, route, delay);

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        if at.backend != BackendKind::Emulated {
            found.add(
                at.key("kind"),
                "a real program cannot run in virtual time",
                "write backend = \"emulated\" above [network]",
            );
        }
        let server = self.server.as_ref();
        let commands = [
            ("client.command", Some(&self.client.command)),
            ("server.command", server.map(|s| &s.command)),
        ];
        for (name, command) in commands {
            if command.is_some_and(CommandLine::is_empty) {
                found.add(at.key(name), "an empty command", "write what is to be run");
            }
        }
        // Placeholders in commands: the IPv4 and IPv6 address of each host, and the seed and directory of the run.
        let mut taken: Vec<String> = ["client", "server", "localhost"]
            .into_iter()
            .flat_map(placeholders)
            .chain(["seed", "dir"].map(str::to_owned))
            .collect();
        for (i, host) in self.host.iter().enumerate() {
            let of = |what: &str| at.key(&format!("host[{i}].{what}"));
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
            if host.name.is_empty() || host.name.len() > 63 || !host.name.chars().all(plain) {
                found.add(
                    of("name"),
                    "no name for a host",
                    "up to 63 letters, digits and hyphens (RFC 1123 section 2.1)",
                );
            } else if let Some(other) = placeholders(&host.name).iter().find(|p| taken.contains(p))
            {
                found.add(
                    of("name"),
                    format!("{{{other}}} in a command would mean two things"),
                    "choose another name",
                );
            }
            taken.extend(placeholders(&host.name));
            if host.command.is_empty() {
                found.add(of("command"), "an empty command", "write what is to be run");
            }
            if host.ready == Some(0) {
                found.add(of("ready"), "nothing listens on port 0", "");
            }
        }
        if self.host.len() > MOST_HOSTS {
            found.add(at.key("host"), format!("more than {MOST_HOSTS} hosts"), "");
        }
        for (i, reported) in self.reported.iter().enumerate() {
            let name = reported.name.as_str();
            let earlier = self.reported[..i].iter().any(|r| r.name == name);
            let (problem, hint) = if name.trim().is_empty() {
                ("a measure without a name", "such as \"p99 latency\"")
            } else if BUILT_IN.contains(&name) {
                (
                    "this name is taken by a measure that needs no definition",
                    "choose another name",
                )
            } else if earlier {
                ("two measures have this name", "choose another name")
            } else {
                continue;
            };
            found.add(at.key(&format!("reported[{i}].name")), problem, hint);
        }
        for (i, measure) in self.reported.iter().enumerate() {
            let of = |what: &str| at.key(&format!("reported[{i}].{what}"));
            if let Err(wrong) = reported::check(measure) {
                found.add(of(wrong.key), wrong.message, wrong.hint);
            }
            if !(measure.floor >= 0.0 && measure.floor.is_finite()) {
                let message = format!("{} is nothing to add to values", measure.floor);
                found.add(
                    of("floor"),
                    message,
                    "write 0 or more, in the unit of the measure",
                );
            }
        }
        if self.count == Some(0) {
            found.add(
                at.key("count"),
                "0 runs are nothing to measure",
                "write 1 or more",
            );
        }
        if self.mtu < 1280 {
            found.add(
                at.key("mtu"),
                format!(
                    "{} bytes are below the 1280 that IPv6 needs (RFC 8200 section 5)",
                    self.mtu
                ),
                "1500 is Ethernet's, 9000 that of jumbo frames",
            );
        }
        if self.timeout == Dur::ZERO {
            found.add(
                at.key("timeout"),
                "no program ends in no time",
                "60s is usual",
            );
        }
        if server.is_some_and(|s| s.ready == Some(0)) {
            found.add(at.key("server.ready"), "nothing listens on port 0", "");
        }
    }

    fn rateless(&self) -> Option<&'static str> {
        Some("is a program: it has no rate to match")
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        Some(Traffic::Program(ProgramTraffic {
            program: self.clone(),
            delay: with.delay,
        }))
    }

    fn measures(&self) -> Vec<measure::Measure> {
        [COMPLETION_TIME, REQUEST_RATE.never_alone(), FAILURES]
            .into_iter()
            .chain(self.reported.iter().map(Reported::measure))
            .collect()
    }

    fn program(&self) -> Option<&Program> {
        Some(self)
    }

    fn describe(&self, _: Role) -> String {
        let what = match self.measure {
            Measure::Requests => "its requests are measured, as the packets show them",
            Measure::Connections => "its TCP connections are measured",
            Measure::Runs => "its runs are measured",
        };
        let command = self.client.command.arguments().join(" ");
        format!("a real program: `{command}`; {what}")
    }
}

impl Plays for ProgramTraffic {
    fn machine(&self, _: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let text = format!(
            "{} is a real program: it needs the emulator",
            self.program.name
        );
        Err(RunError::Failed(text.into()))
    }

    fn class(&self, _: u32) -> String {
        "program".to_owned()
    }

    fn program(&self) -> Option<&Program> {
        Some(&self.program)
    }

    fn delay(&self) -> Dur {
        self.delay
    }

    fn fetches(&self) -> Option<Fetches> {
        Some(Fetches {
            clients: 1,
            sizes: vec![Bytes(100_000)],
            think: self.program.think,
            count: self.program.count.map(u64::from),
        })
    }

    fn plausible(&self, _: &Setting<'_>) -> Plausible {
        Plausible::of([0.0, 0.0], 0.01)
    }
}

/// The placeholders for the addresses of a host in commands, without braces. Names are case-insensitive (RFC 4343).
fn placeholders(name: &str) -> [String; 2] {
    let name = name.to_ascii_lowercase();
    [format!("{name}6"), name]
}
