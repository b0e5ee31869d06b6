//! The checks that are scripts, since they need namespaces and programs of others.

#![expect(clippy::print_stdout, reason = "a skipped test says why")]

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

/// Those of the list that show a kind each; `scripts/odd-programs` tries all.
#[test]
fn programs_of_every_kind_run() {
    let dir = Scratch::new("programs");
    if !emulates(&dir) {
        return;
    }
    let some = [
        "ping-nowhere",
        "bash",
        "curl-http2",
        "iperf3-one-shot",
        "iperf3-daemon",
        "nc-udp",
        "term-ignored-by-client",
        "stdin",
        "nested",
        "no-such-program",
        "server-dies",
        "killed-by-signal",
    ];
    let said = script(&dir, "odd-programs", &some);
    assert!(said.lines().count() > some.len() - 1, "{said}");
}

#[test]
fn runs_that_are_killed_leave_nothing_and_take_nothing() {
    let dir = Scratch::new("kills");
    if emulates(&dir) {
        script(&dir, "kill-anywhere", &["6"]);
    }
}
