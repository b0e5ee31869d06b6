//! `swell learn`, and `swell show` of its results.

use sha2::{Digest, Sha256};

use crate::{Scratch, run, swell, text};

#[test]
fn show_of_nothing_says_so() {
    let dir = Scratch::new("show");
    let out = run(&dir, &["show", "nowhere"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).starts_with("error: no file, no run directory and no bundled model"));
    dir.write("x.pcap", "this is no trace");
    let trace = run(&dir, &["show", "x.pcap"]);
    assert_eq!(trace.status.code(), Some(2));
    assert!(
        text(&trace.stderr).contains("x.pcap"),
        "{}",
        text(&trace.stderr)
    );
}

/// A capture that is said to be shorter than its packets span is an error; a longer one counts.
#[test]
fn a_length_shorter_than_the_trace_is_refused() {
    let dir = Scratch::new("length");
    std::fs::write(dir.0.join("lookup.pcap"), lookup()).unwrap();
    let learn = |length| {
        run(
            &dir,
            &["learn", "lookup.pcap", "--length", length, "--json"],
        )
    };
    let short = learn("24ms");
    assert_eq!(short.status.code(), Some(2));
    let error = text(&short.stderr);
    assert!(error.contains("25ms") && error.contains("24ms"), "{error}");
    assert!(learn("25ms").status.success());
    let long = learn("2s");
    let value: serde_json::Value = serde_json::from_slice(&long.stdout).unwrap();
    assert_eq!(value["summary"]["duration_s"], 2.0);
}

/// A hand-made pcap of a DNS lookup is learnt, shown and drawn.
#[test]
fn a_trace_becomes_a_model_becomes_pictures() {
    let dir = Scratch::new("learn");
    std::fs::write(dir.0.join("lookup.pcap"), lookup()).unwrap();
    let learnt = run(
        &dir,
        &[
            "learn",
            "lookup.pcap",
            "-o",
            "lookup.json",
            "--note",
            "by hand",
            "--json",
        ],
    );
    assert!(learnt.status.success(), "{}", text(&learnt.stderr));
    let value: serde_json::Value = serde_json::from_slice(&learnt.stdout).unwrap();
    assert_eq!(value["traces"][0]["udp"], 2);
    assert_eq!(value["summary"]["udp_flows"], 1);
    assert_eq!(value["summary"]["note"], "by hand");
    let shown = run(
        &dir,
        &["show", "lookup.json", "--svg", "p.svg", "--html", "p.html"],
    );
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    assert!(
        text(&shown.stdout).contains("dns"),
        "{}",
        text(&shown.stdout)
    );
    assert!(
        std::fs::read_to_string(dir.0.join("p.svg"))
            .unwrap()
            .starts_with("<svg")
    );
    assert!(dir.0.join("p.html").exists());
    let refused = run(
        &dir,
        &["show", "lookup.json", "--svg", "p.svg", "--picture", "size"],
    );
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("did you mean `sizes`?"),
        "{}",
        text(&refused.stderr)
    );
}

/// Two UDP packets, raw IPv4 (link type 101), microseconds.
pub(crate) fn lookup() -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    let hosts = [[10, 0, 0, 1], [192, 0, 2, 80]];
    for (us, from, payload) in [(0u32, 0usize, 30u16), (25_000, 1, 200)] {
        let ports = if from == 0 { [4000u16, 53] } else { [53, 4000] };
        let mut packet = vec![0x45, 0];
        packet.extend((payload + 28).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        packet.extend(hosts[from]);
        packet.extend(hosts[1 - from]);
        packet.extend(ports[0].to_be_bytes());
        packet.extend(ports[1].to_be_bytes());
        packet.extend((payload + 8).to_be_bytes());
        packet.extend([0, 0]);
        packet.resize(usize::from(payload) + 28, 0);
        for word in [1_700_000_000, us, packet.len() as u32, packet.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// A trace of a tunnel holds nothing that can be modelled: it gives no model, from packets or from flow records.
#[test]
fn a_trace_without_tcp_and_udp_gives_no_model() {
    let dir = Scratch::new("tunnel");
    let mut file = lookup();
    // The protocol of both packets: behind a header of 24 bytes and one of 16 for each packet, in the tenth byte.
    let second = 24 + 16 + 58 + 16 + 9;
    for at in [24 + 16 + 9, second] {
        assert_eq!(file[at], 17);
        file[at] = 47;
    }
    std::fs::write(dir.0.join("gre.pcap"), file).unwrap();
    for (arguments, says) in [
        (
            &["learn", "gre.pcap"][..],
            "2 packets (2 of other protocols",
        ),
        (
            &["learn", "--flows", "gre.pcap"],
            "2 packets are of IP protocol 47",
        ),
    ] {
        let out = run(&dir, arguments);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains(says) && words.contains("\"replay\""),
            "{words}"
        );
        assert!(!dir.0.join("gre.json").exists());
    }
}

/// Two one-packet traces, the second an hour after the first.
fn two_traces(dir: &Scratch) {
    for (name, seconds) in [("early.pcap", 1_000u32), ("late.pcap", 4_600)] {
        // A pcap header (Ethernet, microseconds) and one UDP packet of 42 bytes.
        let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        file.extend([0; 8]);
        file.extend(65_535u32.to_le_bytes());
        file.extend(1u32.to_le_bytes());
        for word in [seconds, 0, 42, 42] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0; 12]);
        file.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
        file.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x30, 0x39, 0, 53, 0, 8, 0, 0]);
        std::fs::write(dir.0.join(name), file).unwrap();
    }
}

/// The model without the names of its files.
fn without_sources(dir: &Scratch, model: &str) -> serde_json::Value {
    let bytes = std::fs::read(dir.0.join(model)).unwrap();
    let mut value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    value["provenance"]["sources"].take();
    value
}

#[test]
fn traces_are_read_in_the_order_of_their_times_and_gaps_are_told() {
    let dir = Scratch::new("order");
    two_traces(&dir);
    let name = ["--name", "two"];
    for (files, model) in [
        (["early.pcap", "late.pcap"], "m.json"),
        (["late.pcap", "early.pcap"], "n.json"),
    ] {
        let args = [&["learn"][..], &files, &name, &["-o", model]].concat();
        let learnt = run(&dir, &args);
        assert_eq!(learnt.status.code(), Some(0), "{}", text(&learnt.stderr));
        assert!(text(&learnt.stderr).contains("[gap-in-trace]"));
    }
    assert_eq!(
        without_sources(&dir, "m.json"),
        without_sources(&dir, "n.json")
    );
    // The first packet of the next file of a rotated capture may be as late as any other.
    let path = dir.0.join("late.pcap");
    let mut file = std::fs::read(&path).unwrap();
    for micros in [950_000u32, 650_000] {
        file[24..28].copy_from_slice(&999u32.to_le_bytes());
        file[28..32].copy_from_slice(&micros.to_le_bytes());
        std::fs::write(&path, &file).unwrap();
        let rotated = run(&dir, &["learn", "early.pcap", "late.pcap", "-o", "r.json"]);
        assert_eq!(rotated.status.code(), Some(0), "{}", text(&rotated.stderr));
    }
}

/// A tap with a file for each direction: the model is that of one file with both.
#[test]
fn a_file_for_each_direction_is_learnt_as_one() {
    let dir = Scratch::new("directions");
    let both = lookup();
    let (header, first) = (24, 16 + 58);
    std::fs::write(dir.0.join("both.pcap"), &both).unwrap();
    let down = [&both[..header], &both[header + first..]].concat();
    std::fs::write(dir.0.join("up.pcap"), &both[..header + first]).unwrap();
    std::fs::write(dir.0.join("down.pcap"), down).unwrap();
    for (files, model) in [
        (&["both.pcap"][..], "m.json"),
        (&["down.pcap", "up.pcap"], "n.json"),
        (&["up.pcap", "down.pcap"], "o.json"),
    ] {
        let args = [&["learn"][..], files, &["--name", "x", "-o", model]].concat();
        let learnt = run(&dir, &args);
        assert!(learnt.status.success(), "{}", text(&learnt.stderr));
    }
    let [both, one, other] = ["m.json", "n.json", "o.json"].map(|m| without_sources(&dir, m));
    assert_eq!(both["totals"]["udp_flows"], 1);
    assert_eq!([&one, &other], [&both; 2]);
}

/// The digests in the model are those of `sha256sum`.
#[test]
fn a_model_names_the_digest_of_every_source_as_it_was_read() {
    let dir = Scratch::new("digest");
    let whole = lookup();
    // The second packet is truncated: bytes that the reader did not use count as well.
    let cut = &whole[..whole.len() - 100];
    let mut damaged = whole.clone();
    // A record length of two gigabytes, followed by more bytes.
    damaged[40 + 58 + 8..][..4].copy_from_slice(&[0, 0, 0, 0x7f]);
    for (name, bytes) in [("whole", &whole[..]), ("cut", cut), ("damaged", &damaged)] {
        std::fs::write(dir.0.join(name), bytes).unwrap();
        let learnt = run(&dir, &["learn", name, "--digest", "-o", "m.json"]);
        assert!(learnt.status.success(), "{}", text(&learnt.stderr));
        assert_eq!(digests(&dir), [sha256(bytes)], "{name}");
    }

    let mut child = swell(&dir)
        .args(["learn", "-", "--digest", "-o", "m.json"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &whole).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(digests(&dir), [sha256(&whole)], "standard input");

    two_traces(&dir);
    run(&dir, &["learn", "early.pcap", "late.pcap", "-o", "m.json"]);
    assert!(digests(&dir).is_empty(), "nobody asked for them");
    run(
        &dir,
        &[
            "learn",
            "early.pcap",
            "late.pcap",
            "--digest",
            "-o",
            "m.json",
        ],
    );
    let each = ["early.pcap", "late.pcap"].map(|f| sha256(&std::fs::read(dir.0.join(f)).unwrap()));
    assert_eq!(digests(&dir), each, "two traces");
}

/// A model says what it reveals; with `--private`, that it hides sessions, and at what cost.
#[test]
fn a_model_says_what_it_reveals() {
    let dir = Scratch::new("private");
    std::fs::write(dir.0.join("t.pcap"), lookup()).unwrap();
    let plain = run(&dir, &["learn", "t.pcap", "-o", "m.json"]);
    assert!(text(&plain.stdout).contains("100 % of the sessions"));
    let args = ["learn", "t.pcap", "--private", "2", "-o", "p.json"];
    let told = run(&dir, &args);
    assert!(told.status.success(), "{}", text(&told.stderr));
    let printed = text(&told.stdout);
    assert!(
        printed.contains("dB off") && printed.contains("octaves"),
        "{printed}"
    );
    let shown = text(&run(&dir, &["show", "p.json"]).stdout);
    assert!(
        shown.contains("epsilon 2") && shown.contains("7.389"),
        "{shown}"
    );
    // The noise differs each time, so it cannot be subtracted.
    let model = std::fs::read(dir.0.join("p.json")).unwrap();
    let differs = (0..8).any(|_| {
        run(&dir, &args);
        std::fs::read(dir.0.join("p.json")).unwrap() != model
    });
    let sessions = |m: &[u8]| {
        let value: serde_json::Value = serde_json::from_slice(m).unwrap();
        value["sessions"].as_array().unwrap().len()
    };
    // A single session may vanish in the noise.
    assert!(differs || sessions(&model) == 0);
    let refused = run(&dir, &["learn", "t.pcap", "--private", "0"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// Ctrl-C while `learn` waits for the rest of a trace.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_learning_at_once_and_leaves_nothing() {
    let dir = Scratch::new("learn-ctrl-c");
    let mut child = swell(&dir)
        .args(["learn", "-", "-o", "m.json"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Once it has consumed more than a pipe holds, the program is running and reading.
    let mut trace = lookup();
    trace.resize(1 << 20, 0);
    let mut pipe = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut pipe, &trace).unwrap();
    let id = child.id().to_string();
    let kill = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    assert!(kill.unwrap().success());
    let out = child.wait_with_output().unwrap();
    drop(pipe);
    assert_eq!(out.status.code(), Some(130));
    assert_eq!(
        text(&out.stderr),
        "error: interrupted; no model was written\nhint: the same command begins anew\n"
    );
    assert_eq!(std::fs::read_dir(&dir.0).unwrap().count(), 0);
}

/// The digests in `m.json`.
fn digests(dir: &Scratch) -> Vec<String> {
    let text = std::fs::read(dir.0.join("m.json")).unwrap();
    let model: serde_json::Value = serde_json::from_slice(&text).unwrap();
    serde_json::from_value(model["provenance"]["digests"].clone()).unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// A table of flow records: learnt from a file and from standard input, shown.
#[test]
fn flow_records_become_a_flow_level_model() {
    let dir = Scratch::new("flows");
    let mut table =
        String::from("start,end,src,src_port,dst,dst_port,protocol,packets,bytes,tcp_flags\n");
    for i in 0..120 {
        let at = 3 * i;
        table += &format!(
            "{at}.0,{at}.5,192.0.2.1,80,10.0.0.1,{},6,10,10400,0x1b\n",
            4000 + i
        );
    }
    dir.write("table.csv", &table);
    let learnt = run(
        &dir,
        &["learn", "table.csv", "--interval", "1min", "--json"],
    );
    assert!(learnt.status.success(), "{}", text(&learnt.stderr));
    let value: serde_json::Value = serde_json::from_slice(&learnt.stdout).unwrap();
    assert_eq!(value["summary"]["tcp_connections"], 120);
    assert_eq!(value["summary"]["bytes_down"], 1_200_000);
    assert_eq!(value["summary"]["gaps_s"]["p50"], 3.0);
    assert_eq!(value["summary"]["intervals"], 6);
    let shown = run(&dir, &["show", "table.json"]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    assert!(
        text(&shown.stdout).contains("120 TCP connections"),
        "{}",
        text(&shown.stdout)
    );
    let refused = run(&dir, &["fidelity", "table.json"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("is a flow-level model"),
        "{}",
        text(&refused.stderr)
    );
    dir.write("none.csv", "start,src,dst,bytes\n");
    let empty = run(&dir, &["learn", "none.csv"]);
    assert_eq!(empty.status.code(), Some(2));
    assert!(
        text(&empty.stderr).contains("there are no flow records"),
        "{}",
        text(&empty.stderr)
    );
    // Metered packets of a capture: a lookup and its answer, one source of datagrams.
    std::fs::write(dir.0.join("lookup.pcap"), lookup()).unwrap();
    let metered = [
        "learn",
        "--flows",
        "lookup.pcap",
        "--ipfix",
        "lookup.ipfix",
        "--json",
    ];
    let metered = run(&dir, &metered);
    assert!(metered.status.success(), "{}", text(&metered.stderr));
    let again = run(&dir, &["learn", "lookup.ipfix", "--json"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let again: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    let metered: serde_json::Value = serde_json::from_slice(&metered.stdout).unwrap();
    assert_eq!(metered["summary"]["udp"][0]["bytes"], 230);
    assert_eq!(metered["summary"]["udp"][0]["answer_bytes"], 200);
    assert_eq!(again["summary"]["udp"], metered["summary"]["udp"]);
}

/// Flow records of files of ten kilobytes, which one client fetches from one server every two seconds from `from` on.
pub(crate) fn table(from: u32, files: u32) -> String {
    let mut table =
        "start,end,src,src_port,dst,dst_port,protocol,packets,bytes,tcp_flags\n".to_string();
    for i in 0..files {
        let start = from + 2 * i;
        table += &format!(
            "{start}.0,{start}.5,192.0.2.1,80,10.0.0.1,{},6,10,10400,0x1b\n",
            4_000 + i
        );
    }
    table
}

#[test]
fn models_of_pieces_are_merged() {
    let dir = Scratch::new("learn-merge");
    dir.write("a.csv", &table(0, 30));
    dir.write("b.csv", &table(120, 20));
    for piece in ["a", "b"] {
        let csv = format!("{piece}.csv");
        let out = run(&dir, &["learn", &csv, "--interval", "60s"]);
        assert!(out.status.success(), "{}", text(&out.stderr));
    }
    let args = ["--json", "learn", "a.json", "b.json", "-o", "whole.json"];
    let out = run(&dir, &args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let summary = &value["summary"];
    assert_eq!(
        (&summary["tcp_connections"], &summary["intervals"]),
        (&50.into(), &3.into())
    );
    assert_eq!(summary["bytes_down"], 500_000);
    let out = run(
        &dir,
        &["learn", "b.csv", "--interval", "50s", "-o", "c.json"],
    );
    assert!(out.status.success(), "{}", text(&out.stderr));
    let out = run(&dir, &["learn", "a.json", "c.json", "-o", "no.json"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("c.json: their intervals do not line up"));
}

#[test]
fn harpoons_configurations_are_written_and_read() {
    let dir = Scratch::new("learn-harpoon");
    dir.write("a.csv", &table(0, 60));
    let out = run(
        &dir,
        &["learn", "a.csv", "--interval", "60s", "-o", "a.xml"],
    );
    assert!(out.status.success(), "{}", text(&out.stderr));
    let both = ["a-client.xml", "a-server.xml"];
    let args = [
        &["--json", "learn", "--interval", "60s", "-o", "back.json"],
        &both[..],
    ]
    .concat();
    let out = run(&dir, &args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let summary = &value["summary"];
    assert_eq!(
        (&summary["profile"], &summary["tcp_connections"]),
        (&"harpoon".into(), &60.into())
    );
    assert_eq!(summary["bytes_down"], 600_000);
    let out = run(&dir, &["learn", "a-client.xml"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(
        text(&out.stderr).contains("no list <file_sizes>"),
        "{}",
        text(&out.stderr)
    );
}
