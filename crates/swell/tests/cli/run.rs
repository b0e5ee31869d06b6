//! `swell run` and the commands that read its results.

use std::path::Path;
use std::process::{Command, Output};

use crate::{Scratch, ran, run, swell, text};

/// One foreground, no background and Poisson packets: an experiment that needs no model.
const EXPERIMENT: &str = r#"name = "small"
[network]
rate = "10Mbit"
rtt = "40ms"
[[foreground]]
name = "web"
kind = "web"
object = "100kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
rate = "5Mbit"
[run]
replications = 6
warmup = "1s"
duration = "11s"
"#;

const TABLES: [&str; 5] = ["requests", "bins", "scales", "flows", "links"];

fn tables(dir: &Path) -> Vec<Vec<u8>> {
    TABLES
        .iter()
        .map(|t| std::fs::read(dir.join(format!("{t}.parquet"))).unwrap())
        .collect()
}

#[test]
fn a_bad_file_is_explained_and_ends_with_2() {
    let dir = Scratch::new("bad");
    let bad = EXPERIMENT
        .replace("rate = \"10Mbit\"", "rate = \"10Mbits\"")
        .replace("replications", "replication");
    dir.write("small.toml", &bad);
    let out = run(&dir, &["run", "small.toml"]);
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(text(&out.stdout), "");
    assert_eq!(
        text(&out.stderr),
        "error: `10Mbits`: unknown unit `Mbits`; use one of bit, kbit, Mbit, Gbit (per second), B/s, kB/s, MB/s, GB/s
 --> small.toml:3:8 (key network.rate)
  |
3 | rate = \"10Mbits\"
  |        ^^^^^^^^^
hint: for example \"10Mbit\"

unknown key `replication`
  --> small.toml:17:1 (key run.replication)
   |
17 | replication = 6
   | ^^^^^^^^^^^
hint: did you mean `replications`?
"
    );
}

#[test]
fn a_missing_file_names_the_one_that_was_meant() {
    let dir = Scratch::new("missing");
    dir.write("small.toml", EXPERIMENT);
    let out = run(&dir, &["run", "smal.toml"]);
    assert_eq!(out.status.code(), Some(2));
    let said = text(&out.stderr);
    assert!(said.starts_with("error: smal.toml: "), "{said}");
    assert!(said.contains("hint: did you mean `small.toml`?"), "{said}");
}

#[test]
fn an_unknown_option_ends_with_2() {
    let dir = Scratch::new("usage");
    assert_eq!(run(&dir, &["run", "--thread", "1"]).status.code(), Some(2));
    assert_eq!(run(&dir, &["run", "--threads", "0"]).status.code(), Some(2));
    assert_eq!(run(&dir, &[]).status.code(), Some(2));
}

/// New processes with one and three threads, made up and simulated, give the same bytes.
#[test]
fn same_seed_same_tables_in_fresh_processes_with_any_number_of_threads() {
    let dir = Scratch::new("determinism");
    dir.write("small.toml", EXPERIMENT);
    for mode in [&["--made-up"][..], &[]] {
        let mut seen = Vec::new();
        for threads in ["1", "3", "1"] {
            let to = format!("out-{}", seen.len());
            let mut args = vec![
                "run",
                "small.toml",
                "--fresh",
                "-o",
                &to,
                "--threads",
                threads,
            ];
            args.extend(mode);
            let out = run(&dir, &args);
            assert!(out.status.success(), "{}", text(&out.stderr));
            seen.push(tables(&dir.0.join(&to)));
        }
        assert!(seen[0] == seen[1], "one thread and three differ ({mode:?})");
        assert!(seen[0] == seen[2], "two processes differ ({mode:?})");
    }
}

#[test]
fn another_seed_gives_other_tables() {
    let dir = Scratch::new("seed");
    dir.write("small.toml", EXPERIMENT);
    for (to, seed) in [("a", "run.seed=1"), ("b", "run.seed=100")] {
        let out = run(&dir, &["run", "small.toml", "--set", seed, "-o", to]);
        assert!(out.status.success(), "{}", text(&out.stderr));
    }
    assert!(tables(&dir.0.join("a"))[1] != tables(&dir.0.join("b"))[1]);
}

#[test]
fn a_run_leaves_what_the_documentation_says_and_prints_the_verdict() {
    let dir = Scratch::new("run");
    dir.write("small.toml", EXPERIMENT);
    let out = run(&dir, &["run", "small.toml", "-o", "here"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(said.contains("report: here/report.html"), "{said}");
    assert!(said.contains("Background traffic"), "{said}");
    let widest = said.lines().map(|l| l.chars().count()).max().unwrap();
    assert!(widest <= 80, "{widest} columns:\n{said}");
    assert!(!said.contains('\x1b'), "colour where none was asked for");
    for file in ["manifest.json", "experiment.toml", "report.html"] {
        assert!(dir.0.join("here").join(file).exists(), "{file}");
    }
    assert!(!dir.0.join("here/cells").exists());

    // A run can be repeated from the file in its directory.
    let again = run(&dir, &["run", "here/experiment.toml", "-o", "again"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(tables(&dir.0.join("here")) == tables(&dir.0.join("again")));

    let json = run(&dir, &["show", "here", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(value["manifest"]["backend"], "simulated");
    assert_eq!(value["verdict"]["foregrounds"][0]["foreground"], "web");
}

/// The command at the end of the report runs unchanged and gives the same tables.
#[test]
fn the_command_in_the_report_repeats_a_quick_run_with_changed_keys() {
    let dir = Scratch::new("rerun");
    dir.write("small.toml", EXPERIMENT);
    let options = ["--quick", "--set", "run.seed=5", "--made-up", "-o", "it's"];
    let out = run(&dir, &[&["run", "small.toml"][..], &options].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let page = std::fs::read_to_string(dir.0.join("it's/report.html")).unwrap();
    let start = page.find("swell run ").expect("the page has a command");
    let end = start + page[start..].find('<').unwrap();
    let command = page[start..end]
        .replace("&#x27;", "'")
        .replace("&#x2f;", "/")
        .replace("&amp;", "&");
    let bin = Path::new(env!("CARGO_BIN_EXE_swell")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let again = Command::new("sh")
        .args(["-c", &command])
        .current_dir(&dir.0)
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(again.status.success(), "{command}\n{}", text(&again.stderr));
    assert!(tables(&dir.0.join("it's")) == tables(&dir.0.join("it's-again")));
}

#[test]
fn quick_runs_keep_to_whole_bins() {
    let dir = Scratch::new("bins");
    dir.write("small.toml", EXPERIMENT);
    // Half of 2.1 s and a quarter of 8.9 s are not multiples of 300 ms.
    let args = "run small.toml --quick --made-up -o x --set run.bins=300ms --set run.warmup=2100ms --set run.duration=11100ms";
    let out = run(&dir, &args.split(' ').collect::<Vec<_>>());
    // --set takes precedence over --quick.
    assert!(out.status.success(), "{}", text(&out.stderr));
    dir.write(
        "odd.toml",
        &EXPERIMENT
            .replace("\"1s\"", "\"2100ms\"")
            .replace("\"11s\"", "\"11100ms\"\nbins = \"300ms\""),
    );
    let out = run(
        &dir,
        &["run", "odd.toml", "--quick", "--made-up", "-o", "y"],
    );
    assert!(out.status.success(), "{}", text(&out.stderr));
    let cut = std::fs::read_to_string(dir.0.join("y/experiment.toml")).unwrap();
    assert!(cut.contains("warmup = \"900ms\""), "{cut}");
    assert!(cut.contains("duration = \"3s\""), "{cut}");
}

#[test]
fn a_missing_parent_directory_is_named_and_not_made() {
    let dir = Scratch::new("parent");
    dir.write("small.toml", EXPERIMENT);
    let out = run(&dir, &["run", "small.toml", "--made-up", "-o", "resluts/a"]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(
        said.starts_with("error: there is no directory resluts"),
        "{said}"
    );
    assert!(!dir.0.join("resluts").exists());
    // For the default directory the parent is created.
    let out = run(&dir, &["run", "small.toml", "--made-up"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(said.contains("every number here is made up"), "{said}");
    let table = said.lines().find(|l| l.contains("slowdown (95 %"));
    assert!(table.unwrap().starts_with("MADE UP: web"), "{said}");
    let shown = run(&dir, &["show", "runs/small-made-up"]);
    assert!(text(&shown.stdout).starts_with("MADE UP: web"));
    let out = run(
        &dir,
        &["report", "runs/small-made-up", "-o", "pgaes/x.html"],
    );
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("there is no directory pgaes"), "{said}");
    assert!(!dir.0.join("pgaes").exists());
}

/// What cannot work is refused before anything runs.
#[test]
fn mistakes_in_options_leave_nothing_behind() {
    let dir = Scratch::new("mistakes");
    dir.write("small.toml", EXPERIMENT);
    dir.write("file", "");
    for (options, said) in [
        (
            &["--fail-if", "poison:p90.slowdown > 2", "-o", "runs"][..],
            "hint: did you mean `poisson`?",
        ),
        (&["-o", "file"], "error: file is a file, not a directory"),
        (
            &["--set", "background.poison.rate=1Mbit", "-o", "runs"],
            "nothing here is called `poison`; did you mean `poisson`?",
        ),
    ] {
        let out = run(&dir, &[&["run", "small.toml"], options].concat());
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{error}");
    }
    let out = run(&dir, &["man", "pages"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(dir.0.join("pages/swell-run.1").is_file());
    let mut left: Vec<_> = std::fs::read_dir(&dir.0)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["file", "pages", "small.toml"]);
}

#[test]
fn warnings_are_wrapped_and_few_samples_are_told_once_per_background() {
    let dir = Scratch::new("wrapped");
    let few = EXPERIMENT.replace("kind = \"web\"", "kind = \"web\"\ncount = 3");
    dir.write("small.toml", &few);
    let out = run(&dir, &["run", "small.toml", "-o", "x"]);
    assert!(ran(&out), "{}", text(&out.stderr));
    let said = text(&out.stderr);
    let widest = said.lines().map(|l| l.chars().count()).max().unwrap();
    assert!(widest <= 80, "{widest} columns:\n{said}");
    // Three requests on an idle link take equally long, so more would add no information.
    assert_eq!(said.matches("[few-samples]").count(), 1, "{said}");
}

#[test]
fn a_directory_of_another_experiment_is_not_overwritten() {
    let dir = Scratch::new("other");
    dir.write("small.toml", EXPERIMENT);
    let first = run(&dir, &["run", "small.toml", "-o", "x", "--made-up"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let out = run(
        &dir,
        &[
            "run",
            "small.toml",
            "-o",
            "x",
            "--made-up",
            "--set",
            "run.seed=9",
        ],
    );
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(
        text(&out.stderr),
        "error: x holds runs of another experiment:\n  run.seed: there 1, here 9\n\
         hint: --fresh throws the old runs away; -o DIR writes elsewhere\n"
    );
}

/// Starts a long run, waits until part of it is on disk, and stops it with `signal`.
#[cfg(unix)]
fn stopped(dir: &Scratch, signal: &str) -> Output {
    let mut child = swell(dir)
        .args(["run", "long.toml", "-o", "cut", "--threads", "1"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let cells = dir.0.join("cut/cells");
    while !cells.join("00001").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let id = child.id().to_string();
    let kill = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(kill.success());
    child.wait_with_output().unwrap()
}

/// An experiment with enough runs to be stopped before the end.
#[cfg(unix)]
fn long() -> String {
    EXPERIMENT.replace("replications = 6", "replications = 60")
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_finished_runs_and_the_next_command_goes_on() {
    let dir = Scratch::new("ctrl-c");
    dir.write("long.toml", &long());
    let out = stopped(&dir, "-INT");
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(130), "{said}");
    assert!(said.contains("of 120 runs are kept in cut"), "{said}");
    assert!(said.contains("hint: the same command goes on"), "{said}");
    assert!(!dir.0.join("cut/requests.parquet").exists());
    goes_on(&dir);
}

#[cfg(unix)]
#[test]
fn a_killed_run_is_resumed_to_the_same_tables() {
    let dir = Scratch::new("kill");
    dir.write("long.toml", &long());
    let out = stopped(&dir, "-KILL");
    assert_eq!(out.status.code(), None);
    goes_on(&dir);
}

#[cfg(unix)]
fn goes_on(dir: &Scratch) {
    let kept = dir.0.join("cut/cells/00000/bins.parquet");
    let before = std::fs::metadata(&kept).unwrap().modified().unwrap();
    let whole = run(dir, &["run", "long.toml", "-o", "whole"]);
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    assert_eq!(
        std::fs::metadata(&kept).unwrap().modified().unwrap(),
        before
    );
    let rest = run(dir, &["run", "long.toml", "-o", "cut"]);
    assert!(rest.status.success(), "{}", text(&rest.stderr));
    assert!(tables(&dir.0.join("whole")) == tables(&dir.0.join("cut")));
}

#[test]
fn schema_is_json_and_names_every_section() {
    let dir = Scratch::new("schema");
    let out = run(&dir, &["schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    for key in ["name", "network", "foreground", "background", "run"] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
}

/// The packets of a run are a trace that our own tools can read, and writing them does not change the tables.
#[test]
fn packets_of_a_run_are_a_trace_to_learn_from() {
    let dir = Scratch::new("packets");
    dir.write("small.toml", EXPERIMENT);
    let short = ["--set", "run.replications=2", "--set", "run.duration=5s"];
    let plain = run(
        &dir,
        &[&["run", "small.toml", "-o", "plain"][..], &short].concat(),
    );
    assert!(ran(&plain), "{}", text(&plain.stderr));
    assert!(!dir.0.join("plain/packets").exists());
    let args = ["run", "small.toml", "--packets", "-o", "traced"];
    let traced = run(&dir, &[&args[..], &short].concat());
    assert!(ran(&traced), "{}", text(&traced.stderr));
    assert!(tables(&dir.0.join("plain")) == tables(&dir.0.join("traced")));

    let mut names: Vec<String> = std::fs::read_dir(dir.0.join("traced/packets"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "00000-web-none-0.pcapng",
            "00001-web-none-1.pcapng",
            "00002-web-poisson-0.pcapng",
            "00003-web-poisson-1.pcapng"
        ]
    );
    let trace = "traced/packets/00000-web-none-0.pcapng";
    let learn = run(&dir, &["learn", trace, "-o", "model.json", "--json"]);
    assert!(learn.status.success(), "{}", text(&learn.stderr));
    let model = std::fs::read_to_string(dir.0.join("model.json")).unwrap();
    let model: serde_json::Value = serde_json::from_str(&model).unwrap();
    // Every object uses a new connection to port 80. If one begins just before the end of the run, the trace has only
    // its SYN.
    let totals = |name: &str| model["totals"][name].as_u64().unwrap();
    let (connections, handshakes) = (totals("tcp_connections"), totals("tcp_handshakes"));
    assert!(connections > 10, "{connections}");
    assert!(
        connections - handshakes <= 1,
        "{handshakes} of {connections}"
    );
    assert_eq!(model["totals"]["udp_flows"], 0);
    assert_eq!(model["classes"][0]["name"], "http");

    // Other options make another experiment.
    let again = run(
        &dir,
        &[&["run", "small.toml", "-o", "traced"][..], &short].concat(),
    );
    assert_eq!(again.status.code(), Some(2));
    let said = text(&again.stderr);
    assert!(
        said.contains("run.keep.packets: there true, here false"),
        "{said}"
    );
}

#[test]
fn a_second_process_is_refused_and_touches_nothing() {
    let dir = Scratch::new("locked");
    dir.write("small.toml", EXPERIMENT);
    let there = dir.0.join("r");
    let held = swell_experiment::run::Lock::take(&there, None).unwrap();
    let refused = run(&dir, &["run", "small.toml", "-o", "r", "--fresh"]);
    assert_eq!(refused.status.code(), Some(1));
    let process = std::process::id();
    assert_eq!(
        text(&refused.stderr),
        format!(
            "error: r is in use by another swell (process {process})\n\
             hint: wait until it is done; -o DIR writes elsewhere\n"
        )
    );
    assert_eq!(
        std::fs::read_dir(&there).unwrap().count(),
        1,
        "the lock alone"
    );
    drop(held);
    assert!(ran(&run(
        &dir,
        &["run", "small.toml", "-o", "r", "--quick"]
    )));
}

#[test]
fn shards_in_processes_of_their_own_give_the_tables_of_one() {
    let dir = Scratch::new("shards");
    dir.write("small.toml", EXPERIMENT);
    let command = ["run", "small.toml", "--quick"];
    assert!(ran(&run(&dir, &[&command[..], &["-o", "one"]].concat())));
    let shard = |k: u32| {
        let part = format!("{k}/3");
        swell(&dir)
            .args(command)
            .args(["-o", "parts", "--shard", &part])
            .output()
            .unwrap()
    };
    // Shards 1 and 3 run concurrently; shard 2 never runs.
    let outputs = std::thread::scope(|scope| {
        let both = [3, 1].map(|k| scope.spawn(move || shard(k)));
        both.map(|t| t.join().unwrap())
    });
    for out in &outputs {
        assert!(out.status.success(), "{}", text(&out.stderr));
        assert!(
            text(&out.stdout).contains("of 6 runs are in parts"),
            "{}",
            text(&out.stdout)
        );
    }
    assert!(ran(&run(&dir, &[&command[..], &["-o", "parts"]].concat())));
    assert!(tables(&dir.0.join("one")) == tables(&dir.0.join("parts")));
    let wrong = run(&dir, &[&command[..], &["--shard", "4/3"]].concat());
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        text(&wrong.stderr).contains("K/N with K from 1 to N"),
        "{}",
        text(&wrong.stderr)
    );
}

/// The suite of backgrounds derives from the file's learnt one; the verdict has a line for each, and so has the JSON.
#[test]
fn a_suite_says_what_is_sufficient_or_what_is_missing() {
    let dir = Scratch::new("suite");
    let learnt = "kind = \"learnt\"\nmodel = \"isi-2pm\"";
    let with = EXPERIMENT.replace("kind = \"poisson\"", learnt);
    dir.write("small.toml", &with);
    let arguments = ["run", "small.toml", "--suite", "--made-up", "-o", "it"];
    let said = text(&run(&dir, &arguments).stdout).replace('\n', " ");
    assert!(said.contains("sufficient for web here"), "{said}");
    assert!(said.contains("Cheapest first:"), "{said}");
    let json = run(&dir, &["show", "it", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let suite = &json["verdict"]["foregrounds"][0]["suite"];
    let all = suite["candidates"].as_array().unwrap();
    let names: Vec<&str> = all
        .iter()
        .filter_map(|c| c["background"].as_str())
        .collect();
    assert_eq!(
        names[..5],
        ["none", "cbr", "poisson'", "on-off", "independent"]
    );
    assert_eq!(suite["target"], "poisson");
    // A suite needs a learnt background.
    dir.write("small.toml", EXPERIMENT);
    let out = run(
        &dir,
        &["run", "small.toml", "--suite", "--made-up", "-o", "other"],
    );
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("no background of kind learnt"));
}
