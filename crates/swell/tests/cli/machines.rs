//! Interfaces for other programs: events, experiments on standard input, specifications of figures, JUnit.

use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::{Scratch, ran, run, swell, text};

const SMALL: &str = r#"
name = "small"
[network]
rate = "10Mbit"
delay = "5ms"
[[foreground]]
name = "page"
kind = "web"
object = "20kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "6Mbit"
[run]
replications = 2
warmup = "1s"
duration = "5s"
"#;

/// Runs the program with `input` on its standard input.
fn typed(dir: &Scratch, args: &[&str], input: &str) -> Output {
    let mut child = swell(dir)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(input.as_bytes()).unwrap();
    drop(pipe);
    child.wait_with_output().unwrap()
}

fn events(out: &Output) -> Vec<Value> {
    let lines = text(&out.stderr);
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

#[test]
fn an_error_is_an_event_with_its_place_and_hint() {
    let dir = Scratch::new("events");
    let wrong = SMALL.replace("delay =", "dealy =");
    let out = typed(&dir, &["--events", "run", "-"], &wrong);
    assert_eq!(out.status.code(), Some(2));
    let all = events(&out);
    let error = all.iter().find(|e| e["event"] == "error").unwrap();
    assert_eq!(error["file"], "standard input");
    let problem = &error["problems"][0];
    assert_eq!(
        (&problem["line"], &problem["key"]),
        (&5.into(), &"network.dealy".into())
    );
    assert!(problem["hint"].as_str().unwrap().contains("delay"));
}

#[test]
fn talk_is_json_and_a_run_from_standard_input_is_one_from_a_file() {
    let dir = Scratch::new("typed");
    let out = typed(&dir, &["--events", "run", "-", "-o", "typed"], SMALL);
    assert!(ran(&out), "{}", text(&out.stderr));
    assert!(events(&out).iter().all(|e| e["event"].is_string()));
    dir.write("small.toml", SMALL);
    assert!(ran(&run(&dir, &["run", "small.toml", "-o", "file"])));
    let table = |name: &str| std::fs::read(dir.0.join(name).join("requests.parquet")).unwrap();
    assert_eq!(table("typed"), table("file"));
}

#[test]
fn figures_have_specifications_and_conditions_are_test_cases() {
    let dir = Scratch::new("specified");
    dir.write("small.toml", SMALL);
    let args = ["run", "small.toml", "-o", "out", "--junit", "out.xml"];
    let out = run(
        &dir,
        &[&args[..], &["--fail-if", "poisson:p50.slowdown > 0.5"]].concat(),
    );
    assert_eq!(out.status.code(), Some(5), "{}", text(&out.stderr));
    let junit = std::fs::read_to_string(dir.0.join("out.xml")).unwrap();
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
    assert!(junit.contains("name=\"against poisson\""), "{junit}");
    // A place where it cannot be written is refused before anything runs.
    let args = ["run", "small.toml", "-o", "other", "--junit", "no/out.xml"];
    let out = run(&dir, &args);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
    assert!(
        text(&out.stderr).contains("there is no directory no"),
        "{}",
        text(&out.stderr)
    );
    assert!(!dir.0.join("other").join("requests.parquet").exists());

    let shown = run(
        &dir,
        &["show", "out", "--vega", "-", "--picture", "slowdown"],
    );
    let spec: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(spec["title"], "Slowdown");
    let wrong = run(
        &dir,
        &["show", "out", "--vega", "-", "--foreground", "pgae"],
    );
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("did you mean `page`?"));
}
