//! Real programs.

use swell_base::Dur;

use super::Findings;
use crate::file::{BackendKind, CommandLine, Program};
use crate::measure::BUILT_IN;
use crate::reported;

/// Hosts beside the client and the server: the fourth byte of an address numbers them.
const MOST_HOSTS: usize = 250;

pub(super) fn check(
    program: &Program,
    backend: BackendKind,
    key: &dyn Fn(&str) -> String,
    found: &mut Findings,
) {
    if backend != BackendKind::Emulated {
        found.add(
            key("kind"),
            "a real program cannot run in virtual time",
            "write backend = \"emulated\" above [network]",
        );
    }
    let server = program.server.as_ref();
    let commands = [
        ("client.command", Some(&program.client.command)),
        ("server.command", server.map(|s| &s.command)),
    ];
    for (name, command) in commands {
        if command.is_some_and(CommandLine::is_empty) {
            found.add(key(name), "an empty command", "write what is to be run");
        }
    }
    // What the text in braces stands for in commands: of each host an IPv4 and an IPv6 address, of the
    // run its seed and its directory.
    let mut taken: Vec<String> = ["client", "server", "localhost"]
        .into_iter()
        .flat_map(placeholders)
        .chain(["seed", "dir"].map(str::to_owned))
        .collect();
    for (i, host) in program.host.iter().enumerate() {
        let at = |what: &str| key(&format!("host[{i}].{what}"));
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if host.name.is_empty() || host.name.len() > 63 || !host.name.chars().all(plain) {
            found.add(
                at("name"),
                "no name for a host",
                "up to 63 letters, digits and hyphens (RFC 1123 section 2.1)",
            );
        } else if let Some(other) = placeholders(&host.name).iter().find(|p| taken.contains(p)) {
            found.add(
                at("name"),
                format!("{{{other}}} in a command would mean two things"),
                "choose another name",
            );
        }
        taken.extend(placeholders(&host.name));
        if host.command.is_empty() {
            found.add(at("command"), "an empty command", "write what is to be run");
        }
        if host.ready == Some(0) {
            found.add(at("ready"), "nothing listens on port 0", "");
        }
    }
    if program.host.len() > MOST_HOSTS {
        found.add(key("host"), format!("more than {MOST_HOSTS} hosts"), "");
    }
    for (i, reported) in program.reported.iter().enumerate() {
        let name = reported.name.as_str();
        let earlier = program.reported[..i].iter().any(|r| r.name == name);
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
        found.add(key(&format!("reported[{i}].name")), problem, hint);
    }
    for (i, measure) in program.reported.iter().enumerate() {
        let at = |what: &str| key(&format!("reported[{i}].{what}"));
        if let Err(wrong) = reported::check(measure) {
            found.add(at(wrong.key), wrong.message, wrong.hint);
        }
        if !(measure.floor >= 0.0 && measure.floor.is_finite()) {
            let message = format!("{} is nothing to add to values", measure.floor);
            found.add(
                at("floor"),
                message,
                "write 0 or more, in the unit of the measure",
            );
        }
    }
    if program.count == Some(0) {
        found.add(
            key("count"),
            "0 runs are nothing to measure",
            "write 1 or more",
        );
    }
    if program.mtu < 1280 {
        found.add(
            key("mtu"),
            format!(
                "{} bytes are below the 1280 that IPv6 needs (RFC 8200 section 5)",
                program.mtu
            ),
            "1500 is Ethernet's, 9000 that of jumbo frames",
        );
    }
    if program.timeout == Dur::ZERO {
        found.add(key("timeout"), "no program ends in no time", "60s is usual");
    }
    if server.is_some_and(|s| s.ready == Some(0)) {
        found.add(key("server.ready"), "nothing listens on port 0", "");
    }
}

/// What stands for the addresses of a host in commands, without the braces. Names know no case (RFC 4343).
fn placeholders(name: &str) -> [String; 2] {
    let name = name.to_ascii_lowercase();
    [format!("{name}6"), name]
}
