//! `swell agent`, and `swell generate`, which drives agents.

mod said;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::under::emulates;
use crate::{Scratch, run, swell, text};

const TOKEN: &str = "a token of the tests";

/// An agent on a port of its own.
struct Agent {
    child: Child,
    address: String,
    fingerprint: String,
}

impl Agent {
    fn new(dir: &Scratch, plain: bool) -> Agent {
        Agent::at("127.0.0.1:0", dir, plain)
    }

    fn at(listen: &str, dir: &Scratch, plain: bool) -> Agent {
        dir.secret("token", TOKEN);
        let mut command = swell(dir);
        command.args([
            "--json",
            "agent",
            "--listen",
            listen,
            "--token-file",
            "token",
        ]);
        if plain {
            command.arg("--plain");
        }
        Agent::of(&mut command)
    }

    fn of(command: &mut std::process::Command) -> Agent {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !said.ends_with("}\n") {
            said += &(lines.next().unwrap().unwrap() + "\n");
        }
        let said: Value = serde_json::from_str(&said).unwrap();
        Agent {
            child,
            address: said["listen"].as_str().unwrap().into(),
            fingerprint: said["fingerprint"].as_str().unwrap_or_default().into(),
        }
    }

    /// Kills the agent as kill -9 does.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// Statistics of its first run.
    fn statistics(&self) -> Value {
        let id = &self.get("/v1/status")["runs"][0]["id"];
        self.get(&format!("/v1/runs/{id}/statistics"))
    }

    fn state(&self) -> String {
        let status = self.get("/v1/status");
        status["runs"][0]["state"].as_str().unwrap_or("none").into()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it never happened"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn manifest(dir: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(dir.join("manifest.json")).unwrap()).unwrap()
}

/// Two sessions for three intervals of a second, with a transfer of 300 and 5000 bytes every 100 ms; and a
/// constant-rate source of 1000 bytes every 10 ms.
fn model(dir: &Scratch) {
    let one = |bucket: u64, value: u64| json!([[bucket, 100, 100 * value]]);
    // Bucket 64 s + k holds the values from k 2^s on: see docs/flow-model.md.
    let bucket = |value: u64| {
        let shift = (63 - value.leading_zeros() as u64).saturating_sub(6);
        shift * 64 + (value >> shift)
    };
    let law = |value: u64| one(bucket(value), value);
    let model = json!({
        "format": "swell-flow-model", "version": 1, "name": "small",
        "provenance": { "made_by": "test", "sources": [], "digests": [], "note": "" },
        "warnings": [], "profile": "fixed", "interval": 1_000_000, "start": 0,
        "totals": {
            "records": 1, "refused": 0, "packets": 1, "bytes": 1, "joined": 0, "small": 0,
            "small_bytes": 0, "censored": 0, "evicted": 0, "late": 0,
        },
        "up": { "complete": law(300), "censored": [] },
        "down": { "complete": law(5_000), "censored": [] },
        "gaps": law(100_000),
        "sources": [[3, 1], [1, 2]], "destinations": [[2, 2]],
        "intervals": [[20, 106_000, 2, 2], [20, 106_000, 2, 2], [20, 106_000, 2, 2]],
        "udp": [],
    });
    dir.write("model.json", &model.to_string());
}

#[test]
fn a_model_is_played_between_two_hosts_of_this_machine() {
    let dir = Scratch::new("generate-local");
    if !emulates(&dir) {
        return;
    }
    model(&dir);
    let out = run(
        &dir,
        &[
            "--json",
            "generate",
            "model.json",
            "--local",
            "--compress",
            "2",
        ],
    );
    assert!(out.status.success(), "{}", text(&out.stderr));
    let said: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(said["ended"], "played");
    let counts = &said["clients"][0]["statistics"]["counts"];
    // Two sessions of ten transfers a second, for a second and a half.
    let done = counts["done"].as_u64().unwrap();
    assert!((28..=32).contains(&done), "{said:#}");
    assert_eq!(
        (&counts["failed"], &counts["withheld"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(counts["received_bytes"].as_u64().unwrap(), 5_000 * done);
    assert_eq!(counts["sent_bytes"].as_u64().unwrap(), 300 * done);
    assert_eq!(said["flows"], done);
    let kept = dir.0.join("runs/generate");
    let manifest = manifest(&kept);
    assert_eq!(
        (&manifest["complete"], &manifest["name"]),
        (&json!(true), &json!("small"))
    );
    let flows =
        swell_experiment::store::read_live_flows(&kept.join("flows/00000.parquet")).unwrap();
    assert_eq!(flows.len() as u64, done);
    assert!(flows.iter().all(|f| f.source.starts_with("10.201.0.")));
    assert!(flows.iter().all(|f| f.destination.starts_with("10.202.0.")));
    assert!(kept.join("agents.parquet").exists());
    // A second run does not overwrite the first by accident.
    let again = run(&dir, &["generate", "model.json", "--local"]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("--fresh"));
}

#[test]
fn agents_over_tls_are_driven_by_who_has_token_and_fingerprints() {
    let dir = Scratch::new("generate-tls");
    let (client, server) = (Agent::new(&dir, false), Agent::new(&dir, false));
    let prints = format!("{},{}", client.fingerprint, server.fingerprint);
    let base = [
        "generate",
        "--closed",
        "3",
        "--up",
        "1kB",
        "--down",
        "20kB",
        "--duration",
        "1s",
        "--clients",
        &client.address,
        "--servers",
        &server.address,
        "--token-file",
    ];
    dir.secret("wrong", "not the token of the tests");
    dir.write("open", TOKEN);
    let fails = |more: &[&str]| {
        let out = run(&dir, &[&base, more].concat());
        assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
        text(&out.stderr)
    };
    let said = fails(&["wrong", "--fingerprint", &prints, "-o", "a"]);
    assert!(said.contains("401"), "{said}");
    let said = fails(&["token", "--fingerprint", &client.fingerprint, "-o", "b"]);
    assert!(
        said.contains(&server.fingerprint) && !said.contains("unexpected error"),
        "{said}"
    );
    fails(&["token", "-o", "c"]);
    let out = run(
        &dir,
        &[&base[..], &["open", "--fingerprint", &prints, "-o", "e"]].concat(),
    );
    assert_eq!(out.status.code(), Some(2));
    assert!(
        text(&out.stderr).contains("chmod o-rwx open"),
        "{}",
        text(&out.stderr)
    );
    let good = ["token", "--fingerprint", &prints, "-o", "d"];
    let out = run(&dir, &[&base[..], &good].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).contains("kept: d"),
        "{}",
        text(&out.stdout)
    );
    assert_eq!(manifest(&dir.0.join("d"))["ended"], "duration");
}

/// Starts a run that continues until it is stopped.
fn endless(dir: &Scratch, client: &Agent, server: &Agent, more: &[&str]) -> Child {
    let base = [
        "generate",
        "--closed",
        "4",
        "--down",
        "10kB",
        "--lease",
        "1s",
        "--token-file",
        "token",
        "--clients",
        &client.address,
        "--servers",
        &server.address,
        "-o",
        "kept",
    ];
    let child = swell(dir)
        .args([&base[..], more].concat())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until(|| client.state() == "playing" && server.state() == "playing");
    until(|| client.statistics()["counts"]["done"].as_u64().unwrap() > 10);
    child
}

#[test]
fn kill_9_of_the_controller_ends_the_traffic() {
    let dir = Scratch::new("generate-kill");
    let (client, server) = (Agent::new(&dir, true), Agent::new(&dir, true));
    let mut controller = endless(&dir, &client, &server, &[]);
    controller.kill().unwrap();
    controller.wait().unwrap();
    until(|| client.state() == "expired" && server.state() == "expired");
    assert_eq!(client.statistics()["open"], 0);
    assert_eq!(manifest(&dir.0.join("kept"))["complete"], false);
}

#[test]
fn kill_9_of_a_client_ends_the_run_and_keeps_what_there_is() {
    let dir = Scratch::new("generate-kill-client");
    let (mut client, server) = (Agent::new(&dir, true), Agent::new(&dir, true));
    let mut controller = endless(&dir, &client, &server, &[]);
    std::thread::sleep(Duration::from_secs(1));
    client.kill();
    let status = controller.wait().unwrap();
    assert_eq!(status.code(), Some(1));
    let manifest = manifest(&dir.0.join("kept"));
    assert_eq!(
        (&manifest["complete"], &manifest["ended"]),
        (&json!(false), &json!("gone"))
    );
    assert!(manifest["flows"].as_u64().unwrap() > 0);
    assert!(manifest["warnings"].to_string().contains("agent-away"));
    // The server has no open connection to the client that is gone, and was told to forget the run.
    assert_eq!(server.state(), "none");
}

/// A run of three agents, of which one client is killed after a while and restarted if `comes_back`. Returns its output
/// and exit code.
fn loses_a_client(name: &str, comes_back: bool, more: &[&str]) -> (Value, Option<i32>) {
    let dir = Scratch::new(name);
    let (mut one, two) = (Agent::new(&dir, true), Agent::new(&dir, true));
    let server = Agent::new(&dir, true);
    let clients = format!("{},{}", one.address, two.address);
    let base = [
        "--json",
        "generate",
        "--closed",
        "4",
        "--down",
        "10kB",
        "--lease",
        "500ms",
        "--duration",
        "5s",
        "--token-file",
        "token",
        "--clients",
        &clients,
        "--servers",
        &server.address,
    ];
    let controller = swell(&dir)
        .args([&base[..], more].concat())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // An agent that goes before all have begun is no loss, but an error.
    until(|| [&one, &two, &server].iter().all(|a| a.state() == "playing"));
    one.kill();
    let again = comes_back.then(|| Agent::at(&one.address, &dir, true));
    let out = controller.wait_with_output().unwrap();
    drop(again);
    let said =
        serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{}", text(&out.stderr)));
    (said, out.status.code())
}

#[test]
fn a_lost_agent_is_a_failure_unless_its_loss_is_allowed() {
    let (said, code) = loses_a_client("generate-lost", false, &[]);
    let lost = |said: &Value| {
        said["clients"][0]["lost"] == true && said["lost"].as_array().unwrap().len() == 1
    };
    assert_eq!((code, lost(&said)), (Some(1), true), "{said:#}");
    assert!(said["warnings"].to_string().contains("agent-lost"));
    let (said, code) = loses_a_client("generate-allowed", false, &["--allow-loss", "1"]);
    assert_eq!((code, lost(&said)), (Some(0), true), "{said:#}");
    assert_eq!(said["clients"][1]["lost"], false);
}

/// The server's agent dies when its lease still covers the rest of the run.
#[test]
fn an_agent_that_dies_within_its_last_lease_is_lost() {
    let dir = Scratch::new("generate-last-lease");
    let client = Agent::new(&dir, true);
    let mut server = Agent::new(&dir, true);
    let controller = swell(&dir)
        .args([
            "--json", "generate", "--closed", "2", "--down", "1kB", "--lease", "20s",
        ])
        .args(["--duration", "3s", "--token-file", "token"])
        .args(["--clients", &client.address, "--servers", &server.address])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until(|| server.state() == "playing");
    server.kill();
    let out = controller.wait_with_output().unwrap();
    let said: Value =
        serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{}", text(&out.stderr)));
    assert_eq!(out.status.code(), Some(1), "{said:#}");
    assert_eq!(said["lost"], json!([server.address]), "{said:#}");
    assert_eq!(said["servers"][0]["lost"], true);
    assert_eq!(said["clients"][0]["lost"], false);
}

#[test]
fn an_agent_that_is_started_again_is_admitted_again() {
    let (said, code) = loses_a_client("generate-back", true, &[]);
    assert_eq!((code, &said["lost"]), (Some(0), &json!([])), "{said:#}");
    let one = &said["clients"][0];
    assert_eq!((&one["returns"], &one["lost"]), (&json!(1), &json!(false)));
    assert!(one["away_s"].as_f64().unwrap() > 0.0);
    assert!(
        one["clock"]["uncertainty_s"].as_f64().unwrap() < 1.0,
        "{one:#}"
    );
    assert!(said["warnings"].to_string().contains("agent-returned"));
}

/// Starts an agent with these options, over TLS and on a port of its own.
fn with_options(dir: &Scratch, options: &[&str]) -> Agent {
    let listen = [
        "--json",
        "agent",
        "--listen",
        "127.0.0.1:0",
        "--token-file",
        "token",
    ];
    Agent::of(swell(dir).args([&listen[..], options].concat()))
}

#[test]
fn an_agent_is_named_once() {
    let dir = Scratch::new("generate-twice");
    dir.secret("token", TOKEN);
    let words = [
        "generate",
        "--closed",
        "1",
        "--clients",
        "127.0.0.1:1",
        "--servers",
        "localhost:1,LOCALHOST:1",
        "--token-file",
        "token",
    ];
    let out = run(&dir, &words);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("two agents have the address LOCALHOST:1"));
}

#[test]
fn a_fleet_is_a_file_and_an_authority_vouches_for_its_agents() {
    let dir = Scratch::new("generate-fleet");
    dir.secret("token", TOKEN);
    let done = |words: &[&str]| {
        let out = run(&dir, words);
        assert!(out.status.success(), "{words:?}: {}", text(&out.stderr));
    };
    done(&["agent", "ca", "authority"]);
    let enrolled = [
        "agent",
        "enrol",
        "127.0.0.1",
        "localhost",
        "--ca",
        "authority",
        "-o",
    ];
    done(&[&enrolled[..], &["a"]].concat());
    // An authority and an identity are not overwritten.
    for words in [
        &["agent", "ca", "authority"][..],
        &[&enrolled[..], &["a"]].concat(),
    ] {
        let out = run(&dir, words);
        assert_eq!(out.status.code(), Some(2), "{words:?}");
        assert!(
            text(&out.stderr).contains("already"),
            "{}",
            text(&out.stderr)
        );
    }
    for (words, reason) in [
        (&["z", "--days", "0"][..], "for 0 days"),
        (&["z", "--days", "4000000000"], "1 to 36500 are possible"),
        (&["z", "no spaces"], "`no spaces` is neither a host name"),
    ] {
        let out = run(&dir, &[&enrolled[..], words].concat());
        assert_eq!(out.status.code(), Some(2), "{words:?}");
        assert!(text(&out.stderr).contains(reason), "{}", text(&out.stderr));
    }
    let mode = |path: &str| {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(dir.0.join(path)).unwrap().mode() & 0o777
    };
    assert_eq!(
        [mode("authority/ca.key"), mode("a/agent.key")],
        [0o600, 0o600]
    );
    // One agent has a certificate of the authority, the other is known by its fingerprint, which survives a restart.
    let client = with_options(&dir, &["--state", "a"]);
    let mut server = with_options(&dir, &["--state", "b"]);
    let print = server.fingerprint.clone();
    server.kill();
    server = with_options(&dir, &["--state", "b"]);
    assert_eq!(server.fingerprint, print);
    let fleet = |print: &str, ca: &str| {
        format!(
            "token_file = \"token\"\n{ca}\n[[agents]]\nname = \"left\"\nrole = \"client\"\naddress = \"{}\"\n\
             [[agents]]\nname = \"right\"\nrole = \"server\"\naddress = \"{}\"\nfingerprint = \"{print}\"\n",
            client.address, server.address
        )
    };
    let ca = "ca = \"authority/ca.pem\"";
    let play = |file: &str| {
        let words = [
            "--json", "generate", "--fleet", file, "--closed", "2", "--down", "1kB",
        ];
        run(
            &dir,
            &[&words[..], &["--duration", "500ms", "--fresh"]].concat(),
        )
    };
    dir.write("fleet.toml", &fleet(&print, ca));
    let out = play("fleet.toml");
    assert!(out.status.success(), "{}", text(&out.stderr));
    let said: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        (&said["clients"][0]["agent"], &said["servers"][0]["agent"]),
        (&json!("left"), &json!("right"))
    );
    // The fingerprint of another agent, another authority, none.
    done(&["agent", "ca", "other"]);
    for (wrong, print, ca) in [
        ("fingerprint", client.fingerprint.as_str(), ca),
        ("authority", &print, "ca = \"other/ca.pem\""),
        ("none", &print, ""),
    ] {
        dir.write("wrong.toml", &fleet(print, ca));
        assert_eq!(play("wrong.toml").status.code(), Some(1), "{wrong}");
        // --fresh throws nothing away for a run that does not begin.
        let kept = manifest(&dir.0.join("runs/generate"));
        assert_eq!(kept["complete"], true, "{wrong}");
    }
    // A key that others can read is rejected.
    done(&[&enrolled[..], &["c"]].concat());
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(dir.0.join("c/agent.key"), open).unwrap();
    let out = run(&dir, &["agent", "--token-file", "token", "--state", "c"]);
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn kill_9_of_a_server_leaves_the_client_silent() {
    let dir = Scratch::new("generate-kill-server");
    let (client, mut server) = (Agent::new(&dir, true), Agent::new(&dir, true));
    let mut controller = endless(&dir, &client, &server, &["--duration", "20s"]);
    server.kill();
    until(|| {
        let s = client.statistics();
        s["parties"] == 0 && s["counts"]["lost_parties"] == 1
    });
    // Ctrl-C ends the run and keeps its results.
    let pid = i32::try_from(controller.id()).unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &pid.to_string()])
        .status();
    assert!(killed.unwrap().success());
    assert_eq!(controller.wait().unwrap().code(), Some(130));
    let manifest = manifest(&dir.0.join("kept"));
    assert_eq!(manifest["ended"], "interrupted");
    assert!(manifest["flows"].as_u64().unwrap() > 0);
    assert!(manifest["warnings"].to_string().contains("lost-parties"));
}

#[test]
fn a_full_disk_is_an_error_and_what_there_is_stays() {
    let dir = Scratch::new("generate-full");
    let (client, server) = (Agent::new(&dir, true), Agent::new(&dir, true));
    std::fs::create_dir(dir.0.join("disk")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k tmpfs disk || exit 77; \
         \"$0\" generate --closed 8 --down 1kB --duration 4s --token-file token --clients {} \
         --servers {} -o disk/kept; code=$?; cat disk/kept/manifest.json; exit $code",
        client.address, server.address
    );
    let out = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_swell")])
        .current_dir(&dir.0)
        .stdin(Stdio::null())
        .output();
    let out = match out {
        Ok(out) if out.status.code() != Some(77) => out,
        other => {
            let why = format_args!("no small file system can be mounted: {other:?}");
            return swell_needs::skip(why);
        }
    };
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    assert!(
        text(&out.stderr).contains("No space left"),
        "{}",
        text(&out.stderr)
    );
    let manifest: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(manifest["complete"], false);
    assert_eq!(client.state(), "none", "and the agents were told");
}
