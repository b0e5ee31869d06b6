//! What commands refuse to write over, and what they write although something else fails.

use std::io::Write;
use std::process::Stdio;

use crate::learn::{lookup, table};
use crate::{Scratch, run, swell, text};

fn names(dir: &Scratch) -> Vec<String> {
    let entries = std::fs::read_dir(&dir.0).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn learning_never_writes_over_its_input() {
    let dir = Scratch::new("over-input");
    dir.write("hour1.json", "a model\n");
    dir.write("hour2.json", "a model\n");
    std::fs::write(dir.0.join("x.pcap"), lookup()).unwrap();
    dir.write("x-client.xml", "theirs\n");
    dir.write("x-server.xml", "theirs\n");
    let before = names(&dir);
    for args in [
        &["learn", "hour1.json"][..],
        &["learn", "hour1.json", "hour2.json"],
        &["learn", "x.pcap", "-o", "./x.pcap"],
        &["learn", "x-client.xml", "x-server.xml", "-o", "x.xml"],
        &[
            "learn", "--flows", "x.pcap", "-o", "m.json", "--ipfix", "x.pcap",
        ],
    ] {
        let out = run(&dir, args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        let said = text(&out.stderr);
        assert!(said.contains("over the input"), "{args:?}: {said}");
    }
    assert_eq!(std::fs::read(dir.0.join("x.pcap")).unwrap(), lookup());
    let models = ["hour1.json", "hour2.json", "x-client.xml", "x-server.xml"];
    let all = models.map(|name| std::fs::read_to_string(dir.0.join(name)).unwrap());
    assert_eq!(all, ["a model\n", "a model\n", "theirs\n", "theirs\n"]);
    assert_eq!(names(&dir), before);
}

/// Standard input stays open: whoever reads it to its end waits for ever.
#[test]
fn what_cannot_be_written_is_told_before_anything_is_learnt() {
    let dir = Scratch::new("told-before");
    let mut records = lookup();
    records.resize(2 << 20, 0);
    for (args, says) in [
        (&["-o", "no/m.json"][..], "there is no directory no"),
        (&["-o", "."], "s a directory"),
        (
            &["--ipfix", "no/x.ipfix", "--flows"],
            "there is no directory no",
        ),
        (&["--ipfix", "model.json", "--flows"], "two outputs"),
        (&["-o", "m.xml"], "- holds packets"),
    ] {
        let mut child = swell(&dir)
            .args(["learn", "-"])
            .args(args)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // It may end without reading all.
        let _ = pipe.write_all(&records);
        let out = child.wait_with_output().unwrap();
        drop(pipe);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.to_lowercase().contains(says), "{args:?}: {said}");
    }
    assert!(names(&dir).is_empty(), "{:?}", names(&dir));
    dir.write("a.csv", &table(0, 30));
    for (args, says) in [
        (
            &["learn", "--listen", "127.0.0.1:0", "--private", "1"][..],
            "cannot be used with",
        ),
        (
            &["learn", "a.csv", "--private", "1"],
            "a.csv holds flow records",
        ),
    ] {
        let out = run(&dir, args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(text(&out.stderr).contains(says), "{}", text(&out.stderr));
    }
    std::fs::write(dir.0.join("conf.pcap"), lookup()).unwrap();
    // A model of packets has no flow records, and nothing is sampled or cut into intervals.
    for option in [["--ipfix", "f"], ["--sample", "10"], ["--interval", "1min"]] {
        let args = [&["learn", "conf.pcap", "-o", "m.json"], &option[..]].concat();
        let out = run(&dir, &args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        let said = text(&out.stderr);
        assert!(said.contains("conf.pcap holds packets") && said.contains("--flows"));
        assert!(!dir.0.join("m.json").exists() && !dir.0.join("f").exists());
    }
    // Nobody named the file that a model would go to.
    dir.write("conf.json", "{\"mine\": 1}");
    let out = run(&dir, &["learn", "conf.pcap"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("conf.json is there already, and no model"));
    for _ in 0..2 {
        let out = run(&dir, &["learn", "conf.pcap", "-o", "conf.json"]);
        assert!(out.status.success(), "{}", text(&out.stderr));
    }
    assert!(run(&dir, &["learn", "conf.pcap"]).status.success());
}

#[test]
fn a_full_disk_for_the_flow_records_costs_no_model() {
    let dir = Scratch::new("full-disk");
    dir.write("a.csv", &table(0, 30));
    let args = ["learn", "a.csv", "-o", "m.json", "--ipfix", "/dev/full"];
    let out = run(&dir, &args);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(
        said.contains("No space left on device") && said.contains("the model is in m.json"),
        "{said}"
    );
    let shown = run(&dir, &["show", "m.json"]);
    assert!(text(&shown.stdout).contains("30 TCP connections"));
}

#[test]
fn a_model_on_standard_input_is_merged_and_keeps_the_note() {
    let dir = Scratch::new("merge-stdin");
    dir.write("a.csv", &table(0, 30));
    assert!(run(&dir, &["learn", "a.csv"]).status.success());
    let args = ["--json", "learn", "-", "--note", "both", "-o", "m.json"];
    let out = swell(&dir)
        .args(args)
        .stdin(std::fs::File::open(dir.0.join("a.json")).unwrap())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(value["summary"]["tcp_connections"], 30);
    assert_eq!(value["summary"]["note"], "both");
}

#[test]
fn pictures_that_cannot_be_drawn_are_an_error_and_no_table_follows_a_specification() {
    let dir = Scratch::new("pictures");
    dir.write("a.csv", &table(0, 30));
    assert!(run(&dir, &["learn", "a.csv"]).status.success());
    for option in ["--html", "--svg", "--vega"] {
        for what in ["a.json", "a.csv"] {
            let out = run(&dir, &["show", what, option, "picture"]);
            assert_eq!(out.status.code(), Some(2), "{option} {what}");
            let said = text(&out.stderr);
            assert!(said.contains("no pictures of flow-level models"), "{said}");
        }
    }
    std::fs::write(dir.0.join("x.pcap"), lookup()).unwrap();
    let out = run(&dir, &["show", "x.pcap", "--vega", "-"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let specification: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(specification["$schema"].is_string());
}

const SMALL: &str = "name = \"small\"\nnetwork = { rate = \"10Mbit\", rtt = \"20ms\" }\n\
                     foreground = [{ name = \"page\", kind = \"web\", object = \"10kB\" }]\n\
                     background = [{ name = \"none\", kind = \"none\" }]\n\
                     run = { replications = 1, warmup = \"1s\", duration = \"3s\" }\n";

#[test]
fn what_a_run_keeps_is_never_written_over() {
    let dir = Scratch::new("own-files");
    dir.write("small.toml", SMALL);
    let out = run(&dir, &["run", "small.toml", "-o", "out", "--made-up"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    for args in [
        &["report", "out", "-o", "out/experiment.toml"][..],
        &["show", "out", "--html", "out/manifest.json"],
        &["show", "small.toml", "--svg", "out/bins.parquet"],
        &[
            "compare",
            "out",
            "out",
            "--html",
            "out/../out/links.parquet",
        ],
        &[
            "run",
            "small.toml",
            "-o",
            "new",
            "--junit",
            "new/manifest.json",
        ],
    ] {
        let out = run(&dir, args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        let said = text(&out.stderr);
        assert!(said.contains("over the run's own"), "{args:?}: {said}");
    }
    assert!(!dir.0.join("new").exists());
    // From inside, without a directory in the name.
    let mut inside = swell(&dir);
    inside.current_dir(dir.0.join("out"));
    let refused = inside
        .args(["report", ".", "-o", "experiment.toml"])
        .output();
    assert_eq!(refused.unwrap().status.code(), Some(2));
    for page in ["out/report.html", "out/mine.html"] {
        let out = run(&dir, &["report", "out", "-o", page]);
        assert!(out.status.success(), "{}", text(&out.stderr));
    }
}

#[test]
fn options_without_effect_are_refused() {
    let dir = Scratch::new("no-effect");
    dir.write("small.toml", SMALL);
    let out = run(
        &dir,
        &["run", "small.toml", "-o", "out", "--made-up", "--precise"],
    );
    assert!(out.status.success(), "{}", text(&out.stderr));
    let show = |picture, more: &[&'static str]| {
        [
            &["show", "out", "--svg", "a.svg", "--picture", picture],
            more,
        ]
        .concat()
    };
    for (args, says) in [
        (
            vec!["run", "small.toml", "-o", "x", "--record"],
            "--record is for emulated runs",
        ),
        (
            vec!["run", "small.toml", "-o", "x", "--stretch", "2"],
            "--stretch is for emulated runs",
        ),
        (
            vec!["under", "none", "--compare", "--pcap", "p", "--", "true"],
            "cannot be used with",
        ),
        (
            vec!["show", "access-link", "--svg", "a.svg", "--foreground", "x"],
            "only runs have foregrounds",
        ),
        (
            show("network", &["--size", "7x4in"]),
            "`network` is as high",
        ),
        (
            show("waterfall", &[]),
            "`--picture` can be: cdf, network, time",
        ),
    ] {
        let out = run(&dir, &args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        let said = text(&out.stderr).replace('\n', " ");
        assert!(said.contains(says), "{args:?}: {said}");
    }
    assert!(!dir.0.join("x").exists() && !dir.0.join("a.svg").exists());
    for more in [&["--size", "7in"][..], &["--vega", "n.json"]] {
        let out = run(&dir, &show("network", more));
        assert!(out.status.success(), "{}", text(&out.stderr));
    }
}

#[test]
fn every_requested_picture_of_a_run_is_written() {
    let dir = Scratch::new("both-pictures");
    dir.write("small.toml", SMALL);
    let out = run(&dir, &["run", "small.toml", "-o", "out", "--made-up"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let args = ["show", "out", "--svg", "a.svg", "--vega", "b.json"];
    let out = run(&dir, &args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(dir.0.join("a.svg").exists() && dir.0.join("b.json").exists());
    // Made-up numbers and shards give no answer to report.
    for args in [
        &["--made-up", "--fail-if", "p50.slowdown > 1"][..],
        &["--made-up", "--junit", "x.xml"],
        &["--shard", "1/2", "--junit", "x.xml"],
    ] {
        let out = swell(&dir)
            .args(["run", "small.toml", "-o", "out"])
            .args(args)
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(text(&out.stderr).contains("cannot be used with"));
    }
}

/// Suricata's EVE has names and braces like those of models.
#[test]
fn flow_records_in_json_are_shown() {
    let dir = Scratch::new("eve");
    let flow = r#"{"timestamp":"2026-01-01T00:00:10.000000+0000","event_type":"flow","src_ip":"10.0.0.1","src_port":4000,"dest_ip":"192.0.2.1","dest_port":80,"proto":"TCP","flow":{"pkts_toserver":5,"pkts_toclient":10,"bytes_toserver":500,"bytes_toclient":10400,"start":"2026-01-01T00:00:00.000000+0000","end":"2026-01-01T00:00:05.000000+0000"},"tcp":{"tcp_flags":"1b"}}"#;
    dir.write("eve.json", &format!("{flow}\n"));
    let out = run(&dir, &["show", "eve.json", "--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(value["summary"]["records"], 1);
}

#[test]
fn wrong_arguments_are_an_event_where_events_are_wanted() {
    let dir = Scratch::new("argument-events");
    for args in [
        &["--events", "under", "none", "--nosuch"][..],
        &["nosuch", "--events"],
    ] {
        let out = run(&dir, args);
        assert_eq!(out.status.code(), Some(2));
        let event: serde_json::Value = serde_json::from_slice(&out.stderr).unwrap();
        assert_eq!(
            (&event["event"], &event["code"]),
            (&"error".into(), &2.into())
        );
        let message = event["message"].as_str().unwrap();
        assert!(message.contains("nosuch") && !message.starts_with("error:"));
    }
    // Those of the program that is run do not count.
    let out = run(
        &dir,
        &["under", "none", "--nosuch", "--", "true", "--events"],
    );
    assert!(text(&out.stderr).starts_with("error: unexpected argument"));
}

#[test]
fn the_picture_of_a_foreground_without_requests_is_that_of_its_measures() {
    let dir = Scratch::new("no-requests");
    let calls = SMALL
        .replace(
            "kind = \"web\", object = \"10kB\"",
            "kind = \"voice\", calls = 5",
        )
        .replace(
            "kind = \"none\" }]",
            "kind = \"none\" }, { name = \"cbr\", kind = \"cbr\", rate = \"9Mbit\" }]",
        )
        .replace("replications = 1", "replications = 3")
        .replace("duration = \"3s\"", "duration = \"10s\"");
    dir.write("voice.toml", &calls);
    let out = run(&dir, &["run", "voice.toml", "-o", "out"]);
    assert!(
        matches!(out.status.code(), Some(0 | 3)),
        "{}",
        text(&out.stderr)
    );
    let out = run(&dir, &["show", "out", "--svg", "a.svg", "--vega", "a.json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    for file in ["a.svg", "a.json"] {
        let drawn = std::fs::read_to_string(dir.0.join(file)).unwrap();
        assert!(drawn.contains("What was measured"), "{file}");
    }
    let page = std::fs::read_to_string(dir.0.join("out/report.html")).unwrap();
    assert!(page.contains("id=\"f0-effects\""));
    let out = run(&dir, &["show", "out", "--svg", "b.svg", "--picture", "cdf"]);
    assert_eq!(out.status.code(), Some(2));
    let said = text(&out.stderr).replace('\n', " ");
    assert!(said.contains("can be: effects"), "{said}");
    assert!(!dir.0.join("b.svg").exists());
}

#[test]
fn a_file_that_cannot_be_read_is_not_called_missing() {
    let dir = Scratch::new("unreadable");
    std::os::unix::fs::symlink("loop.toml", dir.0.join("loop.toml")).unwrap();
    let out = run(&dir, &["show", "loop.toml"]);
    let said = text(&out.stderr).replace('\n', " ");
    assert_eq!(out.status.code(), Some(2));
    assert!(
        said.contains("symbolic links") && !said.contains("swell run"),
        "{said}"
    );
    dir.write("closed.toml", SMALL);
    let closed = dir.0.join("closed.toml");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o0);
    std::fs::set_permissions(&closed, mode).unwrap();
    // Root reads it all the same.
    if std::fs::File::open(&closed).is_err() {
        let out = run(&dir, &["show", "closed.toml"]);
        let said = text(&out.stderr);
        assert!(
            said.contains("ermission denied") && !said.contains("swell run"),
            "{said}"
        );
    }
}
