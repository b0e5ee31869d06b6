//! What clients of comparisons read, leave behind and report in runs that are repeated.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::under::emulates;
use crate::{Scratch, swell, text};

/// A comparison with one run, without background, of a bash command.
fn once(dir: &Scratch, client: &str) -> Command {
    let mut command = swell(dir);
    command
        .args([
            "--json",
            "under",
            "none",
            "--compare",
            "1",
            "--duration",
            "30s",
        ])
        .args(["-o", "kept", "--fresh", "--", "bash", "-c", client])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What its client wrote to standard output or to a file.
fn kept(dir: &Scratch, file: &str) -> String {
    let run = dir.0.join("kept/output/00000-bash-none-0");
    std::fs::read_to_string(run.join(file)).unwrap()
}

/// The message of a warning about the runs.
fn warned(said: &Value, code: &str) -> Option<String> {
    let doubts = said["verdict"]["doubts"].as_array().unwrap();
    let found = doubts.iter().find(|d| d["code"] == code)?;
    Some(found["message"].as_str().unwrap().to_owned())
}

#[test]
fn what_a_late_attempt_reported_does_not_count() {
    let dir = Scratch::new("late-attempt");
    if !emulates(&dir) {
        return;
    }
    let client = r#"n=$(ls -d try-* 2>/dev/null | wc -l); mkdir try-$n
echo "{\"took\": $n}" >> {dir}/measures.jsonl; echo $n >> {dir}/own
exec 3<>/dev/tcp/server/80; printf 'GET /200kB?over=1s HTTP/1.0\r\n\r\n' >&3; wc -c <&3"#;
    let child = once(&dir, client).spawn().unwrap();
    let signal = |name: &str| {
        let kill = ["kill", name, &child.id().to_string()].join(" ");
        let status = Command::new("sh").args(["-c", &kill]).status();
        assert!(status.unwrap().success());
    };
    // The emulator stands still in the middle of the transfers of three attempts: the first, its repetition at once, and
    // the one after all other runs, of which there are none. The fourth is the repetition of that one.
    for attempt in ["try-0", "try-1", "try-2"] {
        let begun = Instant::now();
        while !dir.0.join(attempt).exists() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300));
        signal("-STOP");
        std::thread::sleep(Duration::from_millis(500));
        signal("-CONT");
    }
    let out = child.wait_with_output().unwrap();
    let said: Value = serde_json::from_slice(&out.stdout).unwrap();
    let attempts = said["emulation"].as_array().unwrap();
    assert_eq!(attempts.len(), 4, "{attempts:#?}");
    for late in &attempts[..3] {
        assert_eq!(late["too_late"], true, "{attempts:#?}");
    }
    assert_eq!(kept(&dir, "measures.jsonl"), "{\"took\": 3}\n");
    assert_eq!(kept(&dir, "own"), "3\n");
}

#[test]
fn every_client_of_a_comparison_reads_the_file_that_is_standard_input() {
    let dir = Scratch::new("input-file");
    if !emulates(&dir) {
        return;
    }
    let file = dir.write("words", "one\ntwo\n");
    let mut command = once(&dir, "cat; exec 3<&0; cat <&3");
    // A shell has read the first line and goes on after the program.
    let mut words = std::fs::File::open(file).unwrap();
    std::io::Read::read_exact(&mut words, &mut [0; 4]).unwrap();
    let ours = words.try_clone().unwrap();
    let out = command.stdin(words).output().unwrap();
    assert_eq!(kept(&dir, "client-0.out"), "two\n");
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut &ours, &mut rest).unwrap();
    assert_eq!(rest, "two\n");
    let said: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(warned(&said, "input-not-read"), None);
}

#[test]
fn a_pipe_as_standard_input_is_not_waited_for_and_not_lost_in_silence() {
    let dir = Scratch::new("input-pipe");
    if !emulates(&dir) {
        return;
    }
    for written in ["", "one\n"] {
        // It stays open until the program has ended.
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(written.as_bytes()).unwrap();
        let out = once(&dir, "wc -c").stdin(reader).output().unwrap();
        drop(writer);
        assert_eq!(kept(&dir, "client-0.out").trim(), "0");
        let said: Value = serde_json::from_slice(&out.stdout).unwrap();
        let doubt = warned(&said, "input-not-read");
        assert_eq!(doubt.is_some(), !written.is_empty(), "{doubt:?}");
        // It is told before the runs, too.
        let early = text(&out.stderr).contains("[input-not-read]");
        assert_eq!(early, !written.is_empty());
    }
}

#[test]
fn what_a_client_leaves_behind_is_told() {
    let dir = Scratch::new("left-behind");
    if !emulates(&dir) {
        return;
    }
    let said = |client: &str| -> Value {
        let out = once(&dir, client).stdin(Stdio::null()).output().unwrap();
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let left = warned(&said("sleep 60 & setsid sleep 61 & true"), "left-behind");
    let left = left.expect("a warning");
    assert!(left.contains("2 processes behind (sleep, sleep)"), "{left}");
    let none = warned(&said("sleep 0.2 & wait"), "left-behind");
    assert_eq!(none, None);
}

#[test]
fn the_load_that_was_requested_of_a_single_run_is_told() {
    let dir = Scratch::new("requested");
    if !emulates(&dir) {
        return;
    }
    let under = |words: &[&str]| -> Value {
        let mut command = swell(&dir);
        command.args(["--json", "under", "isi-2pm", "--warmup", "0s"]);
        let out = command.args(words).args(["--", "true"]).output().unwrap();
        let said: Value = serde_json::from_slice(&out.stdout).unwrap();
        said["verdict"]["foregrounds"][0]["backgrounds"][0]["requested_bps"].clone()
    };
    assert_eq!(under(&["--load", "9Mbit"]), serde_json::json!([null, 9e6]));
    assert_eq!(under(&[]), serde_json::json!([null, null]));
}

/// A shell ends at once when it is told to. The server that it runs, and a daemon, write their last output later.
#[test]
fn servers_have_time_for_their_last_output() {
    let dir = Scratch::new("last-output");
    if !emulates(&dir) {
        return;
    }
    let script = |name: &str| {
        let text = format!(
            "trap 'sleep 0.3; echo bye from the {name}; exit' TERM; touch {name}.up; while :; do sleep 0.02; done"
        );
        dir.write(name, &text);
    };
    script("server");
    script("daemon");
    let out = swell(&dir)
        .args(["--json", "under", "none", "--duration", "30s", "-o", "kept"])
        .args(["--server", "(setsid sh daemon &); cd . && sh server"])
        .args(["--", "sh", "-c"])
        .arg("until test -e server.up && test -e daemon.up; do sleep 0.02; done")
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let outputs = dir.0.join("kept/output");
    let run = std::fs::read_dir(outputs).unwrap().next().unwrap().unwrap();
    let said = std::fs::read_to_string(run.path().join("server.out")).unwrap();
    for name in ["server", "daemon"] {
        assert!(said.contains(&format!("bye from the {name}")), "{said}");
    }
}

/// What an early run of the client leaves behind goes on beside the later ones.
#[test]
fn what_any_run_of_a_client_leaves_behind_is_told() {
    let dir = Scratch::new("left-beside");
    if !emulates(&dir) {
        return;
    }
    dir.write(
        "two.toml",
        r#"name = "two"
backend = "emulated"
[run]
duration = "20s"
warmup = "0s"
replications = 1
[network]
rate = "10Mbit"
delay = "5ms"
[[foreground]]
name = "clients"
kind = "program"
count = 3
measure = "runs"
[foreground.client]
command = ["sh", "-c", """cd {dir}
n=$(cat runs 2>/dev/null); echo x$n >runs
case $n in
"") setsid sleep 30 & echo $! >pid ;;
xx) kill $(cat pid) ;;
esac"""]
[[background]]
name = "none"
kind = "none"
"#,
    );
    let out = swell(&dir)
        .args(["--json", "run", "two.toml", "-o", "kept"])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let said: Value = serde_json::from_slice(&out.stdout).unwrap();
    let left = warned(&said, "left-behind").expect("a warning");
    assert!(left.contains("a process behind (sleep)"), "{left}");
    assert!(left.contains("ran beside it"), "{left}");
}

/// The client counts its runs in a file, and the second one waits to be interrupted.
#[test]
fn an_interrupted_comparison_goes_on_where_it_is_asked_to() {
    let dir = Scratch::new("resumed");
    if !emulates(&dir) {
        return;
    }
    let log = dir.0.join("log");
    let lines = || std::fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    let client = format!(
        "echo run >> {0}; if [ $(wc -l < {0}) = 2 ]; then sleep 60; fi",
        log.display()
    );
    let compare = |resume: &[&str]| {
        let mut command = swell(&dir);
        command
            .args(["under", "none", "--compare", "3", "-o", "kept"])
            .args(resume)
            .args(["--", "bash", "-c", &client])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let child = compare(&[]).spawn().unwrap();
    let begun = Instant::now();
    while lines() < 2 && begun.elapsed() < Duration::from_secs(50) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = child.id().to_string();
    let kill = Command::new("kill").args(["-INT", &id]).status();
    assert!(kill.unwrap().success());
    let out = child.wait_with_output().unwrap();
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(130), "{said}");
    assert!(said.contains("1 of 3 runs are kept"), "{said}");
    // The first run is there; the second is done again, and the third.
    let out = compare(&["--resume"]).output().unwrap();
    let said = text(&out.stderr);
    assert!(said.contains("1 of 3 runs of the interrupted"), "{said}");
    assert_eq!(lines(), 4);
    // A complete comparison stays until it is thrown away.
    for more in [&["--resume"][..], &[]] {
        let out = compare(more).output().unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(
            said.contains("complete") && said.contains("--fresh"),
            "{said}"
        );
        assert_eq!(lines(), 4);
    }
    compare(&["--fresh"]).output().unwrap();
    assert_eq!(lines(), 7);
}

/// What a command does may have changed, though its words did not.
#[test]
fn comparisons_without_a_directory_have_one_each() {
    let dir = Scratch::new("numbered");
    if !emulates(&dir) {
        return;
    }
    for kept in ["under", "under-2"] {
        let out = swell(&dir)
            .args(["under", "none", "--compare", "1", "--", "true"])
            .output()
            .unwrap();
        let said = text(&out.stderr);
        assert!(said.contains(&format!("kept: runs/{kept}\n")), "{said}");
    }
}

/// A program that reads events must not take lines of the client for them.
#[test]
fn clients_write_nothing_between_events() {
    let dir = Scratch::new("between");
    if !emulates(&dir) {
        return;
    }
    let client = r#"echo '{"event":"error","code":1,"message":"theirs"}' >&2; echo mine; exit 3"#;
    let out = swell(&dir)
        .args(["--events", "--json", "under", "none", "-o", "kept"])
        .args(["--", "bash", "-c", client])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    assert!(!text(&out.stderr).contains("theirs"));
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(document["command"], "under");
    let mut written = Vec::new();
    for run in std::fs::read_dir(dir.0.join("kept/output")).unwrap() {
        let run = run.unwrap().path();
        for stream in ["out", "err"] {
            let file = run.join(format!("client-0.{stream}"));
            written.push(std::fs::read_to_string(file).unwrap());
        }
    }
    assert!(written[0] == "mine\n" && written[1].contains("theirs"));
}
