//! Real programs as the application under study.

pub mod keys;

use swell_base::{Bytes, Dur};

use super::Traffic;
use super::contract::{
    Fetches, Keys, Machine, Plausible, Plays, Resolving, Role, Setting, Slot, WithDelay, reads,
};
use crate::error::RunError;
use crate::file::BackendKind;
use crate::file::findings::Findings;
use crate::measure::{self, BUILT_IN, COMPLETION_TIME, FAILURES, REQUEST_RATE, Reported};
use crate::reported;
use keys::{CommandLine, Measure, Program};

/// Maximum number of hosts besides the client and the server, numbered by the fourth byte of their addresses.
const MOST_HOSTS: usize = 250;

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
        Some(WithDelay::traffic(self, with.delay))
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

impl Plays for WithDelay<Program> {
    fn machine(&self, _: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let text = format!(
            "{} is a real program: it needs the emulator",
            self.keys.name
        );
        Err(RunError::Failed(text.into()))
    }

    fn class(&self, _: u32) -> String {
        "program".to_owned()
    }

    fn program(&self) -> Option<&Program> {
        Some(&self.keys)
    }

    fn delay(&self) -> Dur {
        self.delay
    }

    fn fetches(&self) -> Option<Fetches> {
        Some(Fetches {
            clients: 1,
            sizes: vec![Bytes(100_000)],
            think: self.keys.think,
            count: self.keys.count.map(u64::from),
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
