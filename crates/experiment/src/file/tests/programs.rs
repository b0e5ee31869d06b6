//! Real programs, and packets in place of them.

use super::*;

const PROGRAM: &str = r#"
name = "curl"
backend = "emulated"
[network]
rate = "20Mbit"
[[foreground]]
name = "curl"
kind = "program"
measure = "runs"
[foreground.client]
command = ["curl", "-so", "/dev/null", "http://{server}/1MB"]
[foreground.server]
command = "nginx -c {dir}/nginx.conf"
ready = 80
[[background]]
name = "none"
kind = "none"
"#;

#[test]
fn a_real_program_needs_the_emulator() {
    let file = read(PROGRAM, "x").unwrap();
    let Part::Program(program) = &file.foreground[0].0 else {
        panic!("a program");
    };
    assert_eq!(file.backend, BackendKind::Emulated);
    assert_eq!(program.client.command.arguments()[3], "http://{server}/1MB");
    let server = program.server.as_ref().unwrap();
    assert_eq!(server.command.arguments()[..2], ["/bin/sh", "-c"]);
    assert_eq!(
        (server.ready, program.congestion_control.as_str()),
        (Some(80), "cubic")
    );
    let reporting = PROGRAM.replace(
        "[foreground.client]",
        "[[foreground.reported]]\nname = \"p99\"\nunit = \"ms\"\nbetter = \"lower\"\n[foreground.client]",
    );
    let with = read(&reporting, "x").unwrap();
    let measures = with.foreground[0].measures();
    let names: Vec<&str> = measures.iter().map(|m| &*m.name).collect();
    assert_eq!(names, ["time", "request rate", "failures", "p99"]);
    for (name, why) in [("time", "taken"), (" ", "without a name")] {
        let refused = read(&reporting.replace("p99", name), "x").unwrap_err();
        let refused = &refused.problems[0];
        assert_eq!(refused.key, "foreground[0].reported[0].name");
        assert!(refused.message.contains(why), "{}", refused.message);
    }
    // Reading the resolved file gives the same result.
    assert_eq!(read(&file.to_toml(), "again").unwrap(), file);

    let simulated = PROGRAM.replace("backend = \"emulated\"", "");
    let refused = read(&simulated, "x").unwrap_err().problems;
    assert_eq!(refused[0].key, "foreground[0].kind");
    for (from, to, key) in [
        (
            "command = \"nginx -c {dir}/nginx.conf\"",
            "command = \" \"",
            "foreground[0].server.command",
        ),
        ("measure = \"runs\"", "count = 0", "foreground[0].count"),
        (
            "measure = \"runs\"",
            "timeout = \"0s\"",
            "foreground[0].timeout",
        ),
        ("ready = 80", "ready = 0", "foreground[0].server.ready"),
        ("ready = 80", "redy = 80", "foreground[0].server.redy"),
        (
            "[[background]]",
            "[[foreground.host]]\nname = \"a b\"\ncommand = \"true\"\n[[background]]",
            "foreground[0].host[0].name",
        ),
    ] {
        let problems = read(&PROGRAM.replace(from, to), "x").unwrap_err().problems;
        let keys: Vec<&str> = problems.iter().map(|p| p.key.as_str()).collect();
        assert_eq!(keys, [key]);
    }
}

#[test]
fn what_stands_in_braces_means_one_thing() {
    let with = |names: &[&str]| {
        let hosts: String = names
            .iter()
            .map(|n| format!("[[foreground.host]]\nname = \"{n}\"\ncommand = \"true\"\n"))
            .collect();
        read(
            &PROGRAM.replace("[[background]]", &format!("{hosts}[[background]]")),
            "x",
        )
    };
    assert!(with(&["cache", "cache2", "b6"]).is_ok());
    for names in [
        &["server"][..],
        &["Server"],
        &["client6"],
        &["localhost"],
        &["seed"],
        &["dir"],
        &["cache", "cache"],
        &["cache", "CACHE"],
        &["cache", "cache6"],
        &["cache6", "cache"],
    ] {
        let problems = with(names).unwrap_err().problems;
        let keys: Vec<&str> = problems.iter().map(|p| p.key.as_str()).collect();
        let last = format!("foreground[0].host[{}].name", names.len() - 1);
        assert_eq!(keys, [last], "{names:?}");
    }
}

#[test]
fn packets_may_be_a_foreground_of_the_simulator() {
    let packets = r#"kind = "poisson"
rate = "0bit"
rate_up = "1Mbit"
independent = true
access = "10Mbit"
delay_right = "0s"
tcp = { packets = true, handshake = false, receive_tuning = true }"#;
    let text = GOOD.replacen("kind = \"web\"\nobject = [\"1MB\", \"4kB\"]", packets, 1);
    let file = read(&text, "x.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(file, read(&file.to_toml(), "again").unwrap());
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        read(&text.replacen(from, to, 1), "x.toml")
            .expect_err(to)
            .to_string()
    };
    assert!(refused("access = \"10Mbit\"", "access = \"0bit\"").contains("carries nothing"));
    assert!(refused("rate = \"0bit\"", "rate = \"match:learnt\"").contains("takes no rate"));
    assert!(refused("rate_up = \"1Mbit\"\n", "").contains("no traffic"));
    let emulated = refused("name = \"web\"", "name = \"web\"\nbackend = \"emulated\"");
    assert!(emulated.contains("simulated only"), "{emulated}");
}
