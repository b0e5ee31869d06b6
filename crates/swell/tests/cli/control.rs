//! `swell set` and `swell top`.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::under::{emulates, fetch};
use crate::{Scratch, run, swell, text};

#[test]
fn a_link_is_set_while_a_program_runs_and_its_flows_are_seen() {
    let dir = Scratch::new("set");
    if !emulates(&dir) {
        return;
    }
    // Emulations of other tests must stay invisible.
    let inside = |args: &[&str]| {
        let mut command = swell(&dir);
        command.env("TMPDIR", &dir.0).args(args);
        command
    };
    let nobody = inside(&["set", "rate=1Mbit"]).output().unwrap();
    assert_eq!(nobody.status.code(), Some(2), "{}", text(&nobody.stderr));
    // At this rate the program would take an hour; it ends because the test sets another rate.
    let client = fetch("2MB");
    let mut args = vec![
        "under", "none", "--rate", "5kbit", "--delay", "5ms", "--record",
    ];
    args.extend([
        "-o",
        "kept",
        "--duration",
        "60s",
        "--",
        "bash",
        "-c",
        &client,
    ]);
    let mut under = inside(&args);
    let under = under.stdout(Stdio::piped()).stderr(Stdio::piped());
    let under = under.spawn().unwrap();
    let begun = Instant::now();
    let seen = loop {
        let out = inside(&["--json", "top", "--once"]).output().unwrap();
        let seen: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
        let flows = seen["flows"].as_array();
        if flows.is_some_and(|f| !f.is_empty()) || begun.elapsed() > Duration::from_secs(40) {
            break seen;
        }
    };
    let flow = &seen["flows"][0];
    let name = flow["name"].as_str().unwrap_or_default();
    assert!(name.starts_with("tcp ") && name.ends_with(":80"), "{seen}");
    let wrong = inside(&["set", "speed=1"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let set = inside(&["set", "rate=90Mbit", "queue=100pkt", "delay=1ms"]);
    let set = { set }.output().unwrap();
    assert!(set.status.success(), "{}", text(&set.stderr));
    let out = under.wait_with_output().unwrap();
    let bytes: u64 = text(&out.stdout).trim().parse().unwrap_or(0);
    assert!(bytes > 2_000_000, "{bytes}: {}", text(&out.stderr));
    assert!(text(&out.stderr).contains("[set-while-running]"));
    let out = run(&dir, &["replay", "kept"]);
    assert!(out.status.success(), "{}", text(&out.stdout));
}

/// Another emulation runs on the machine, here around both.
#[test]
fn a_program_sets_the_network_around_it_and_no_other() {
    let dir = Scratch::new("own");
    if !emulates(&dir) {
        return;
    }
    let me = env!("CARGO_BIN_EXE_swell");
    let set = format!("{me} under none --rate 10Mbit -q -- {me} set rate=2Mbit");
    // A comparison does not change, and its program does not change the network outside it.
    let refused = format!("{me} set rate=2Mbit; test $? = 2");
    let compared = format!(
        "{me} under none --rate 10Mbit -q --compare 1 -o c -- sh -c '{refused}'; test $? != 1"
    );
    let outer = format!("{set} && {compared} && {me} set delay=7ms");
    let args = [
        "under", "none", "--rate", "20Mbit", "-q", "-o", "kept", "--", "sh", "-c",
    ];
    let out = swell(&dir)
        .env("TMPDIR", &dir.0)
        .args(args)
        .arg(&outer)
        .output();
    let out = out.unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(
        text(&out.stderr).matches("set at").count() == 2,
        "{}",
        text(&out.stderr)
    );
}
