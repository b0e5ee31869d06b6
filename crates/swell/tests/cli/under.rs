//! Real programs under the emulator.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::{Scratch, ran, run, swell, text};

/// Whether emulation works on this machine. If not, the caller returns: see [`swell_needs::skip`].
#[track_caller]
pub(crate) fn emulates(dir: &Scratch) -> bool {
    let out = run(dir, &["doctor"]);
    if !out.status.success() {
        let (said, complained) = (text(&out.stdout), text(&out.stderr));
        swell_needs::skip(format_args!("no emulation: {said}{complained}"));
        return false;
    }
    swell_needs::programs(&["bash"])
}

/// A bash command that fetches an object and prints the bytes received, headers included.
pub(crate) fn fetch(object: &str) -> String {
    format!(r#"exec 3<>/dev/tcp/server/80; printf 'GET /{object} HTTP/1.0\r\n\r\n' >&3; wc -c <&3"#)
}

#[test]
fn a_program_is_served_and_its_exit_code_is_ours() {
    let dir = Scratch::new("under");
    if !emulates(&dir) {
        return;
    }
    let client = fetch("200kB") + "; exit 7";
    let out = run(
        &dir,
        &[
            "under", "none", "--pcap", "p.pcapng", "--", "bash", "-c", &client,
        ],
    );
    assert_eq!(out.status.code(), Some(7), "{}", text(&out.stderr));
    let bytes: u64 = text(&out.stdout).trim().parse().unwrap();
    assert!((200_000..201_000).contains(&bytes), "{bytes}");
    let said = text(&out.stderr);
    assert!(
        said.contains("exit status: 7") && said.contains("scheduling:"),
        "{said}"
    );
    assert!(said.lines().all(|l| l.chars().count() <= 80), "{said}");
    assert!(std::fs::metadata(dir.0.join("p.pcapng")).unwrap().len() > 200_000);
    // Only the requested files remain.
    let left: Vec<_> = std::fs::read_dir(&dir.0)
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert_eq!(left, ["p.pcapng"]);
}

#[test]
fn a_recorded_run_is_repeated_in_virtual_time_and_a_forged_one_is_not() {
    let dir = Scratch::new("replay");
    if !emulates(&dir) {
        return;
    }
    let client = fetch("300kB");
    let args = [
        "under",
        "access-link",
        "--warmup",
        "5s",
        "-q",
        "--record",
        "-o",
        "kept",
    ];
    let out = swell(&dir)
        .args(args)
        .args(["--", "bash", "-c", &client])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let out = run(&dir, &["replay", "kept"]);
    assert!(
        out.status.success(),
        "{}{}",
        text(&out.stdout),
        text(&out.stderr)
    );
    assert!(text(&out.stdout).contains("packets left as they did, to the nanosecond"));

    // A changed packet size must be detected.
    let output = dir.0.join("kept/output");
    let run_dir = std::fs::read_dir(&output)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let journal = run_dir.join("journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    let arrivals = (16..bytes.len()).step_by(24).filter(|&i| bytes[i] == 1);
    let arrivals: Vec<usize> = arrivals.collect();
    bytes[arrivals[arrivals.len() / 2] + 2] ^= 64;
    std::fs::write(&journal, &bytes).unwrap();
    let out = run(&dir, &["replay", "kept"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        text(&out.stdout).contains("differs first where"),
        "{}",
        text(&out.stdout)
    );
}

#[test]
fn an_experiment_file_runs_a_server_and_clients_and_gives_tables() {
    let dir = Scratch::new("emulated");
    if !emulates(&dir) {
        return;
    }
    let experiment = format!(
        r#"name = "e"
backend = "emulated"
[network]
rate = "20Mbit"
delay = "5ms"
[[foreground]]
name = "fetch"
kind = "program"
count = 3
[foreground.client]
command = ["bash", "-c", '''{}''']
environment = {{ WHO = "{{client}}" }}
[[background]]
name = "none"
kind = "none"
[[background]]
name = "cbr"
kind = "cbr"
rate = "10Mbit"
[run]
replications = 2
warmup = "1s"
duration = "30s"
"#,
        fetch("100kB") + "; echo $WHO"
    );
    dir.write("e.toml", &experiment);
    let out = run(&dir, &["--json", "run", "e.toml"]);
    assert!(ran(&out), "{}", text(&out.stderr));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let backgrounds = &json["verdict"]["foregrounds"][0]["backgrounds"];
    for i in 0..2 {
        assert_eq!(backgrounds[i]["requests"], 6, "{json:#}");
        assert_eq!(backgrounds[i]["failed"], 0);
    }
    // The RTT is 30 ms: 5 ms each way on the bottleneck, and four crossings of access links.
    let median = |i: usize| {
        backgrounds[i]["quantiles"][1]["seconds"]["value"]
            .as_f64()
            .unwrap()
    };
    assert!(
        median(0) > 0.06 && median(1) > median(0),
        "{} {}",
        median(0),
        median(1)
    );
    let kept = dir.0.join("runs/e/output/00000-fetch-none-0/client-0.out");
    assert!(
        std::fs::read_to_string(kept)
            .unwrap()
            .ends_with("198.18.0.1\n")
    );
}

/// A third host on the client's side, reached without crossing the bottleneck, and one on the server's side.
#[test]
fn more_hosts_have_names_addresses_and_programs() {
    let dir = Scratch::new("hosts");
    if !emulates(&dir) || !swell_needs::programs(&["python3"]) {
        return;
    }
    let get = |host: &str, port: u16| {
        format!(
            r#"exec 3<>/dev/tcp/{host}/{port}; printf 'GET /{host} HTTP/1.0\r\n\r\n' >&3; tail -c 100 <&3 | tail -1; "#
        )
    };
    let client = get("near", 8000) + &get("far", 8001) + "echo {near} {far6}";
    let host = |name: &str, side: &str, port: u16| {
        format!(
            r#"[[foreground.host]]
name = "{name}"
side = "{side}"
ready = {port}
command = "mkdir -p {{dir}}/{name} && cd {{dir}}/{name} && echo I am {name} > {name} && exec python3 -m http.server {port}"
"#
        )
    };
    let experiment = format!(
        r#"name = "h"
backend = "emulated"
[network]
rate = "20Mbit"
delay = "5ms"
[[foreground]]
name = "both"
kind = "program"
measure = "runs"
count = 1
[foreground.client]
command = ["bash", "-c", '''{client}''']
{}{}
[[background]]
name = "none"
kind = "none"
[run]
replications = 1
warmup = "1s"
duration = "30s"
"#,
        host("near", "left", 8000),
        host("far", "right", 8001)
    );
    dir.write("h.toml", &experiment);
    let out = run(&dir, &["run", "h.toml"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let kept = dir.0.join("runs/h/output/00000-both-none-0/client-0.out");
    assert_eq!(
        std::fs::read_to_string(kept).unwrap(),
        "I am near\nI am far\n198.18.0.2 2001:2:0:2::3\n"
    );
}

#[test]
fn whole_super_packets_are_told_and_none_come_without_offload() {
    let dir = Scratch::new("offload");
    if !emulates(&dir) {
        return;
    }
    let client = fetch("300kB");
    for (offload, coarse) in [("segment", false), ("off", false), ("pass", true)] {
        let out = swell(&dir)
            .args(["under", "none", "--loss", "0%", "--offload", offload])
            .args(["--pcap", "p.pcapng", "--", "bash", "-c", &client])
            .output()
            .unwrap();
        let said = text(&out.stderr);
        assert!(out.status.success(), "{offload}: {said}");
        assert_eq!(said.contains("super-packets"), coarse, "{offload}: {said}");
        let bytes = std::fs::read(dir.0.join("p.pcapng")).unwrap();
        let mut trace = swell_capture::Reader::new(&bytes[..]).unwrap();
        let mut longest = 0;
        while let Some(packet) = trace.next_packet().unwrap() {
            longest = longest.max(packet.ip_len);
        }
        assert_eq!(longest > 1500, coarse, "{offload}: {longest} bytes");
    }
}

#[test]
fn a_flow_level_model_is_a_background_too() {
    let dir = Scratch::new("flowlevel");
    if !emulates(&dir) {
        return;
    }
    dir.write("flows.csv", &crate::learn::table(0, 30));
    let out = run(&dir, &["learn", "flows.csv", "--interval", "1min"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let args = [
        "under",
        "flows.json",
        "--load",
        "4Mbit",
        "--warmup",
        "5s",
        "--json",
    ];
    let out = run(&dir, &[&args[..], &["--", "sleep", "4"]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let background = &json["verdict"]["foregrounds"][0]["backgrounds"][0];
    assert_eq!(background["background"], "flows", "{json:#}");
    // A session of 40 kbit/s, a hundred times.
    let bps = background["load_bps"][1].as_f64().unwrap();
    assert!((2e6..8e6).contains(&bps), "{json:#}");
}

/// A real program whose path crosses three links, and background on other paths. The background runs with the same seed
/// on simulated endpoints and over kernel sockets.
#[test]
fn a_program_crosses_several_links_and_its_run_is_repeated() {
    let dir = Scratch::new("links");
    if !emulates(&dir) {
        return;
    }
    let experiment = format!(
        r#"name = "l"
backend = "emulated"
[network]
preset = {{ kind = "parking-lot", links = 3 }}
delay = "4ms"
[[foreground]]
name = "fetch"
kind = "program"
count = 2
[foreground.client]
command = ["bash", "-c", '''{}''']
[[background]]
name = "none"
kind = "none"
[[background]]
name = "cross"
kind = "poisson"
transport = "tcp"
sources = 3
rate = "3Mbit"
path = ["link2", "link3"]
reversed = true
[run]
replications = 1
warmup = "1s"
duration = "20s"
"#,
        fetch("30kB")
    );
    dir.write("l.toml", &experiment);
    for stack in ["simulated", "kernel"] {
        let set = format!("run.background_stack={stack}");
        let out = run(
            &dir,
            &[
                "--json", "run", "l.toml", "--fresh", "--record", "--set", &set,
            ],
        );
        assert!(ran(&out), "{}", text(&out.stderr));
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let backgrounds = &json["verdict"]["foregrounds"][0]["backgrounds"];
        for i in 0..2 {
            assert_eq!(backgrounds[i]["requests"], 2, "{stack}: {json:#}");
            assert_eq!(backgrounds[i]["failed"], 0);
            // Three links of 4 ms and two access links of 5 ms each way: the handshake, the request, and at least one
            // more round trip for data beyond the initial window.
            let median = backgrounds[i]["quantiles"][1]["seconds"]["value"].as_f64();
            assert!(median.unwrap() > 3.0 * 0.044, "{json:#}");
        }
        // Load towards the clients, which are on the right.
        let load = backgrounds[1]["load_bps"][1].as_f64().unwrap();
        assert!((1e6..5e6).contains(&load), "{stack}: {load}");
        let replayed = run(&dir, &["replay", json["run"].as_str().unwrap()]);
        let said = text(&replayed.stdout);
        assert!(replayed.status.success(), "{stack}: {said}");
        assert_eq!(said.matches("left as they did").count(), 2, "{said}");
    }
}

#[test]
fn background_over_kernel_sockets_carries_what_the_simulated_one_does() {
    let dir = Scratch::new("kernel");
    if !emulates(&dir) {
        return;
    }
    let experiment = r#"name = "k"
backend = "emulated"
[network]
rate = "20Mbit"
delay = "5ms"
[[foreground]]
name = "web"
kind = "web"
object = "20kB"
think = "200ms"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "poisson"
kind = "poisson"
transport = "tcp"
sources = 4
rate = "8Mbit"
[run]
replications = 1
warmup = "1s"
duration = "4s"
"#;
    dir.write("k.toml", experiment);
    let carried = |stack: &str| {
        let stack = format!("run.background_stack={stack}");
        let out = run(
            &dir,
            &[
                "--json", "run", "k.toml", "--fresh", "--record", "--set", &stack,
            ],
        );
        assert!(ran(&out), "{}", text(&out.stderr));
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let poisson = &json["verdict"]["foregrounds"][0]["backgrounds"][1];
        assert_eq!(poisson["failed"], 0, "{json:#}");
        assert!(poisson["requests"].as_u64().unwrap() > 5, "{json:#}");
        let replayed = run(&dir, &["replay", json["run"].as_str().unwrap()]);
        let said = text(&replayed.stdout);
        assert!(replayed.status.success(), "{stack}: {said}");
        assert_eq!(said.matches("left as they did").count(), 2, "{said}");
        poisson["load_bps"][1].as_f64().unwrap()
    };
    let [simulated, kernel] = ["simulated", "kernel"].map(carried);
    assert!(
        (kernel / simulated - 1.0).abs() < 0.05,
        "{kernel} against {simulated} bit/s"
    );
}

#[test]
fn kill_9_leaves_no_process_and_no_file() {
    let dir = Scratch::new("kill9");
    if !emulates(&dir) {
        return;
    }
    let temporary = dir.0.join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    // An unusual number of seconds, which identifies the program.
    let seconds = format!("{}.5", 70_000 + std::process::id() % 10_000);
    let mut child = swell(&dir)
        .env("TMPDIR", &temporary)
        .args(["under", "none", "-q", "--", "sleep", &seconds])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let sleeps = || {
        std::fs::read_dir("/proc").unwrap().flatten().any(|e| {
            let line = std::fs::read(e.path().join("cmdline")).unwrap_or_default();
            line == format!("sleep\0{seconds}\0").as_bytes()
        })
    };
    let until = |wanted: bool| {
        let begun = Instant::now();
        while sleeps() != wanted && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        sleeps() == wanted
    };
    assert!(until(true), "the program was started");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(until(false), "the program died with the emulator");
    // The next emulation removes the directory.
    let left = || std::fs::read_dir(&temporary).unwrap().count();
    assert_eq!(left(), 1);
    let out = swell(&dir)
        .env("TMPDIR", &temporary)
        .args(["under", "none", "-q", "--", "true"])
        .output();
    assert!(out.unwrap().status.success());
    assert_eq!(left(), 0);
}

/// A program that reports a time in its output, a rate in JSON and a count in a file.
#[test]
fn what_a_program_reports_is_judged_and_tabled() {
    let dir = Scratch::new("under-measure");
    if !emulates(&dir) {
        return;
    }
    let client = "echo 'took 0.25s'; echo '{\"end\": {\"bps\": 9.5e6}}'; echo '{\"frames\": 7}' >> {dir}/measures.jsonl";
    let mut typed = vec![
        "--json",
        "under",
        "isi-2pm",
        "--compare",
        "2",
        "--duration",
        "3s",
        "--warmup",
        "0s",
    ];
    for measure in [
        r"took (ms): took ([\d.]+)(ms|s)",
        "rate (bit/s, higher): json:$.end.bps",
        "frames (higher)=jsonl",
        r"absent: nowhere (\d+)",
    ] {
        typed.extend(["--measure", measure]);
    }
    typed.extend(["--fail-if", "took.value > 300", "--", "bash", "-c", client]);
    let out = run(&dir, &typed);
    let code = out.status.code();
    assert_eq!(code, Some(0), "{}", text(&out.stderr));
    let said: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let verdict = &said["verdict"];
    for b in verdict["foregrounds"][0]["backgrounds"].as_array().unwrap() {
        if b["kind"] == "none" {
            continue;
        }
        let value = |name: &str| {
            let judged = b["judged"].as_array().unwrap();
            let found = judged.iter().find(|j| j["measure"] == name);
            found.unwrap_or_else(|| panic!("{name}: {b}"))["with"]["value"].clone()
        };
        assert_eq!(value("took"), 250.0);
        assert_eq!(value("rate"), 9.5e6);
        assert_eq!(value("frames"), 7.0);
        let open = b["open"].to_string();
        assert!(
            open.contains("absent was reported in 0 of 4 runs"),
            "{open}"
        );
    }
    let doubts = verdict["doubts"].to_string();
    assert!(doubts.contains("matches `nowhere"), "{doubts}");
    let kept = dir.0.join(said["run"].as_str().unwrap());
    assert!(kept.join("measures.parquet").exists());
    // A malformed measure is rejected with a hint before anything runs.
    let wrong = run(
        &dir,
        &[
            "under",
            "none",
            "--compare",
            "--measure",
            "p99: 99%",
            "--",
            "true",
        ],
    );
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("no group says where the number is"));
    // So is a load that exceeds the link's rate.
    let load = run(
        &dir,
        &["under", "isi-2pm", "--load", "200Mbit", "--", "true"],
    );
    assert_eq!(load.status.code(), Some(2));
    assert!(text(&load.stderr).contains("more than the link carries"));
}
