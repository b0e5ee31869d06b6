//! Checks written as scripts, because they need namespaces and external programs.

#![expect(
    clippy::print_stdout,
    reason = "a failed script says more than fits into a message"
)]

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::under::emulates;
use crate::{Scratch, text};

fn script(dir: &Scratch, name: &str, arguments: &[&str]) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/");
    let out = Command::new(format!("{path}{name}"))
        .arg(env!("CARGO_BIN_EXE_swell"))
        .args(arguments)
        .current_dir(&dir.0)
        .output()
        .unwrap();
    let said = text(&out.stdout);
    println!("{said}");
    for line in said.lines().filter(|l| l.starts_with("skipped")) {
        swell_needs::say(format_args!("{name}: {line}"));
    }
    assert!(out.status.success(), "{said}{}", text(&out.stderr));
    said
}

#[test]
fn namespaces_that_know_nothing_of_it_talk_over_a_bridge_until_it_is_killed() {
    let dir = Scratch::new("bridge");
    if emulates(&dir) {
        script(&dir, "bridge-check", &[]);
    }
}

#[test]
fn several_interfaces_at_each_end_are_joined_as_by_switches() {
    let dir = Scratch::new("ports");
    if emulates(&dir) {
        script(&dir, "ports-check", &[]);
    }
}

#[test]
fn the_internet_is_reached_through_nat_and_the_machine_stays_as_it_is() {
    let dir = Scratch::new("uplink");
    if !swell_needs::programs(&["ip", "ping", "python3"]) {
        return;
    }
    if emulates(&dir) {
        script(&dir, "uplink-check", &[]);
    }
}

/// The short version. Without options, `scripts/quic-check` tries all scenarios, and QUIC itself, which
/// `python-tests/test_programs.py` does, too.
#[test]
fn the_scenarios_of_the_quic_interop_runner_do_what_they_say() {
    let dir = Scratch::new("quic");
    if !swell_needs::programs(&["ip", "socat", "tcpdump", "python3"]) {
        return;
    }
    if emulates(&dir) {
        let said = script(&dir, "quic-check", &["--quick"]);
        let good = said.lines().filter(|l| l.starts_with("good")).count();
        assert_eq!(good, 6, "{said}");
    }
}

/// Names of processes with this text in their environment or their command line.
fn that_have(mark: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|e| e.path());
    let has = |path: &std::path::Path| {
        ["environ", "cmdline"].iter().any(|file| {
            let text = std::fs::read(path.join(file)).unwrap_or_default();
            text.windows(mark.len()).any(|w| w == mark.as_bytes())
        })
    };
    let name = |path: std::path::PathBuf| std::fs::read_to_string(path.join("comm")).ok();
    all.filter(|path| has(path)).filter_map(name).collect()
}

#[test]
fn the_benchmark_of_live_generation_ends_what_it_starts_however_it_ends() {
    let dir = Scratch::new("bench-generate");
    if !swell_needs::programs(&["ip", "iperf3", "nginx", "wrk", "openssl", "setpriv"]) {
        return;
    }
    if !emulates(&dir) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        swell_needs::skip("only root starts nginx as another user");
        return;
    }
    // A build would wait for other builds, beyond every time limit. The program is given, so there is nothing to build.
    let tools = dir.0.join("tools");
    std::fs::create_dir(&tools).unwrap();
    let cargo = tools.join("cargo");
    std::fs::write(
        &cargo,
        "#!/bin/sh\necho 'nothing has to be built' >&2; exit 1\n",
    )
    .unwrap();
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", tools.display());
    for signal in ["KILL", "TERM", ""] {
        // nginx overwrites its environment, but its command line names its files.
        let mark = dir.0.join(format!("ends-{signal}"));
        std::fs::create_dir(&mark).unwrap();
        let mark = mark.to_str().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/bench-generate");
        let mut child = Command::new(script)
            .env("PATH", &path)
            // No part is selected: agents and servers start, and nothing is measured.
            .args(["1", "1", "none"])
            .env("SWELL", env!("CARGO_BIN_EXE_swell"))
            .env("TMPDIR", mark)
            .spawn()
            .unwrap();
        let begun = std::time::Instant::now();
        let until = |what: &dyn Fn() -> bool| {
            while !what() {
                assert!(begun.elapsed().as_secs() < 60, "{:?}", that_have(mark));
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        };
        until(&|| {
            let there = that_have(mark);
            ["nginx", "iperf3", "swell"]
                .iter()
                .all(|n| there.iter().any(|c| c.trim() == *n))
        });
        if !signal.is_empty() {
            let killed = Command::new("kill")
                .args(["-s", signal, &child.id().to_string()])
                .status();
            assert!(killed.unwrap().success());
        }
        let status = child.wait().unwrap();
        assert_eq!(status.success(), signal.is_empty(), "{status}");
        until(&|| that_have(mark).is_empty());
    }
}

/// The short version. Without arguments, `scripts/soak` runs for twenty minutes with twenty agents. Clocks that are
/// wrong by up to 5 % show within seconds what those of real machines show within hours.
#[test]
fn agents_that_are_killed_cut_off_and_stalled_come_back_and_account_for_everything() {
    let dir = Scratch::new("soak");
    if !swell_needs::programs(&["ip", "curl", "unshare", "cc"]) {
        return;
    }
    if emulates(&dir) {
        let said = script(&dir, "soak", &["4", "0.4", "7", "50000"]);
        assert!(
            said.lines().filter(|l| l.starts_with("good")).count() == 9,
            "{said}"
        );
    }
}

#[test]
fn agents_behind_nat_dial_in_and_play() {
    let dir = Scratch::new("nat");
    if !swell_needs::programs(&["ip", "unshare", "python3"]) {
        return;
    }
    if emulates(&dir) {
        let said = script(&dir, "nat-check", &[]);
        let good = said.lines().filter(|l| l.starts_with("good")).count();
        assert!(
            good == 11 || said.starts_with("skipped: /dev/net/tun"),
            "{said}"
        );
    }
}

#[test]
fn runs_that_are_killed_leave_nothing_and_take_nothing() {
    let dir = Scratch::new("kills");
    if emulates(&dir) {
        script(&dir, "kill-anywhere", &["6"]);
    }
}
