//! Checks what this machine permits to emulations, and whether earlier ones left anything, which they should not.

use super::helper::{HELPER, INIT, PROBE};
use super::{Precision, be_punctual};
use rustix::process::{Pid, Signal};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// The state of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Good,
    /// Emulations work, but not as well as they could.
    Limited,
    /// Emulations do not work.
    Missing,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the check.
    pub what: &'static str,
    /// Whether it is as it should be.
    pub state: State,
    /// What was found, and what would help if something is missing.
    pub detail: String,
}

/// Checks everything that emulations need. `helper` is the executable that calls [`helper_main`](super::helper_main),
/// usually `/proc/self/exe`. Tests with side effects run in processes and threads that end at once.
pub fn examine(helper: &Path) -> Vec<Finding> {
    let mut findings = vec![kernel()];
    findings.extend(probe(helper));
    findings.push(punctuality());
    findings.push(congestion_controls());
    findings.push(leftovers());
    findings
}

fn kernel() -> Finding {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let tick = tick(&release).map_or("tick unknown".into(), |hz| format!("HZ = {hz}"));
    Finding {
        what: "kernel",
        state: State::Good,
        detail: format!("{} {release}, {tick}", name.sysname().to_string_lossy()),
    }
}

/// The frequency of the scheduler's tick, if the distribution installs the kernel's configuration.
fn tick(release: &str) -> Option<u32> {
    fs::read_to_string(format!("/boot/config-{release}"))
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok())
}

/// Runs a helper for the check, because entering a user namespace changes the calling process.
fn probe(helper: &Path) -> Vec<Finding> {
    let answer = Command::new(helper)
        .args([HELPER, PROBE])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = match answer {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(e) => {
            return vec![Finding {
                what: "namespaces",
                state: State::Missing,
                detail: format!("{} cannot be executed: {e}", helper.display()),
            }];
        }
    };
    let mut parts = text.split('\0');
    ["namespaces", "device"]
        .into_iter()
        .map(
            |what| match parts.next().unwrap_or_default().split_once('\n') {
                Some(("good", detail)) => Finding {
                    what,
                    state: State::Good,
                    detail: detail.into(),
                },
                Some((_, detail)) => Finding {
                    what,
                    state: State::Missing,
                    detail: detail.into(),
                },
                None => Finding {
                    what,
                    state: State::Missing,
                    detail: "not tried".into(),
                },
            },
        )
        .collect()
}

fn punctuality() -> Finding {
    // Tried on a separate thread, because it cannot be undone.
    let precision = thread::Builder::new()
        .spawn(|| be_punctual(true))
        .ok()
        .and_then(|thread| thread.join().ok())
        .unwrap_or(Precision::Fair);
    let (state, advice) = match precision {
        Precision::RealTime { .. } => (State::Good, ""),
        _ => (
            State::Limited,
            "; a real-time priority (root, or `rtprio` in /etc/security/limits.conf) makes busy machines punctual",
        ),
    };
    Finding {
        what: "scheduling",
        state,
        detail: format!("{precision}{advice}"),
    }
}

fn congestion_controls() -> Finding {
    let read = |name: &str| {
        fs::read_to_string(Path::new("/proc/sys/net/ipv4").join(name))
            .map(|text| text.trim().to_owned())
            .unwrap_or_default()
    };
    let available = read("tcp_available_congestion_control");
    let state = if available.split_whitespace().any(|name| name == "cubic") {
        State::Good
    } else {
        State::Limited
    };
    Finding {
        what: "congestion control",
        state,
        detail: format!(
            "{available}; the machine's default is {}",
            read("tcp_congestion_control")
        ),
    }
}

fn leftovers() -> Finding {
    let left = orphans().len();
    Finding {
        what: "leftovers",
        state: if left == 0 {
            State::Good
        } else {
            State::Limited
        },
        detail: match left {
            0 => "none".into(),
            n => format!("{n} hosts without the process that made them"),
        },
    }
}

/// Kills hosts whose creator is gone, if there are any, and returns their number.
pub fn clean_up() -> usize {
    orphans()
        .into_iter()
        .filter(|pid| rustix::process::kill_process(*pid, Signal::KILL).is_ok())
        .count()
}

/// First processes of hosts that were reparented to process 1. If process 1 runs this executable, as in a container
/// with nothing else, they belong to a live run and are excluded.
fn orphans() -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let file = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let first = file("1");
    let is_orphan = |pid: &i32| {
        if first.is_some() && file(&pid.to_string()) == first {
            return false;
        }
        let read =
            |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let arguments = read("cmdline");
        let mut arguments = arguments.split('\0').skip(1);
        arguments.next() == Some(HELPER)
            && arguments.next() == Some(INIT)
            && read("status").lines().any(|line| line == "PPid:\t1")
    };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(is_orphan)
        .filter_map(Pid::from_raw)
        .collect()
}
