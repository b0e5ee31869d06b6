//! Messages about mistakes: line, key and hint.

use super::*;

/// Shared keys are checked although one direction has its own.
#[test]
fn a_shared_mistake_is_told_once_whoever_it_concerns() {
    for up in ["", "[network.up]\nqueue = \"9pkt\""] {
        let text = GOOD.replace(
            "[network.up]\nrate = \"2Mbit\"\nqueue = \"20pkt\"",
            &format!("queue = \"0pkt\"\n{up}"),
        );
        let problems = read(&text, "x.toml").unwrap_err().problems;
        let keys: Vec<&str> = problems.iter().map(|p| p.key.as_str()).collect();
        assert_eq!(keys, ["network.queue"], "{up}");
    }
}

/// Commands take a loss as a share in per cent; a file does not.
#[test]
fn a_share_in_a_string_is_told_as_a_number() {
    for (given, hint) in [
        (
            "0.1%",
            "hint: write loss = { kind = \"independent\", p = 0.001 }",
        ),
        (
            "0.02",
            "hint: write loss = { kind = \"independent\", p = 0.02 }",
        ),
        ("some", "hint: write loss = { kind = \"none\" or"),
    ] {
        let said = complaint("[network.up]", &format!("loss = \"{given}\"\n[network.up]"));
        assert!(said.contains(hint), "{said}");
    }
}

#[test]
fn a_packet_that_arrives_after_the_end_is_told_with_its_key() {
    for (key, value) in [("delay", "1000000s"), ("delay", "60s"), ("rtt", "120s")] {
        let line = format!("{key} = \"{value}\"\n[network.up]");
        let said = complaint("[network.up]", &line);
        assert!(said.contains(&format!("(key network.{key})")), "{said}");
        assert!(said.contains("does not end in a run of"), "{said}");
    }
}

/// A run needs a whole round trip only for foregrounds that wait for answers.
#[test]
fn a_round_trip_is_held_against_foregrounds_that_wait_for_answers() {
    let of = |network: &str, foreground: &str| {
        let text = format!(
            "name = \"x\"\n[network]\nrate = \"20Mbit\"\n{network}\n[[foreground]]\nname = \"f\"\n{foreground}\n\
             [[background]]\nname = \"b\"\nkind = \"cbr\"\nrate = \"1Mbit\"\n\
             [run]\nwarmup = \"0s\"\nduration = \"1s\"\n"
        );
        read(&text, "x.toml").map_err(|found| found.to_string())
    };
    for network in ["delay = \"600ms\"", "rtt = \"1200ms\""] {
        for alone in [
            "kind = \"none\"",
            "kind = \"cbr\"\nrate = \"1Mbit\"",
            "kind = \"poisson\"\nrate = \"1Mbit\"",
        ] {
            of(network, alone).unwrap();
        }
        for waits in ["kind = \"web\"\nobject = \"1kB\"", "kind = \"greedy\""] {
            let alone = of(network, waits).unwrap_err();
            assert!(alone.contains("does not end in a run of 1s"), "{alone}");
            let both = format!("kind = \"none\"\n[[foreground]]\nname = \"g\"\n{waits}");
            let beside = of(network, &both).unwrap_err();
            assert!(
                beside.contains("a round trip of 1.2s does not end"),
                "{beside}"
            );
        }
    }
}

#[test]
fn a_name_is_short_enough_for_a_directory() {
    let long = "x".repeat(201);
    let said = complaint("name = \"web\"", &format!("name = \"{long}\""));
    assert!(said.contains("a name of 201 bytes is too long"), "{said}");
}

#[test]
fn an_unknown_key_is_shown_where_it_stands() {
    assert_eq!(
        complaint("rate = \"20Mbit\"", "raet = \"20Mbit\""),
        "unknown key `raet`
 --> x.toml:4:1 (key network.raet)
  |
4 | raet = \"20Mbit\"
  | ^^^^
hint: did you mean `rate`?"
    );
}

#[test]
fn each_kind_of_mistake_names_line_key_and_way_out() {
    let cases = [
        (
            "rate = \"20Mbit\"",
            "rate = \"20Mbits\"",
            "x.toml:4:8",
            "network.rate",
            "unknown unit `Mbits`; use one of bit, kbit",
        ),
        (
            "rate = \"20Mbit\"",
            "rate = 20",
            "x.toml:4:8",
            "network.rate",
            "hint: write it as a string with its unit, for example \"10Mbit\"",
        ),
        (
            "rate = \"20Mbit\"",
            "rate_up = \"20Mbit\"",
            "x.toml:4:1",
            "network.rate_up",
            "hint: write `up = { rate = ... }`",
        ),
        (
            "kind = \"web\"",
            "kind = \"wep\"",
            "x.toml:10:8",
            "foreground[0].kind",
            "hint: did you mean `web`?",
        ),
        (
            "kind = \"web\"\n",
            "",
            "x.toml:8:1",
            "foreground[0].kind",
            "hint: write kind = \"web\"",
        ),
        (
            "model = \"isi-2pm\"\n",
            "",
            "x.toml:15:1",
            "background[1].model",
            "missing key `model`",
        ),
        (
            "object = [\"1MB\", \"4kB\"]",
            "object = [\"1MB\", \"4k\"]",
            "x.toml:11:18",
            "foreground[0].object[1]",
            "unknown unit `k`",
        ),
        (
            "independent = [\"response-on-request\"]",
            "independent = [\"response-on-requst\"]",
            "x.toml:20:16",
            "background[1].independent[0]",
            "did you mean `response-on-request`?",
        ),
        (
            "replications = 3",
            "replications = \"3\"",
            "x.toml:26:16",
            "run.replications",
            "expected a whole number, found the string \"3\"",
        ),
        (
            "replications = 3",
            "replications = -3",
            "x.toml:26:16",
            "run.replications",
            "-3 is out of range",
        ),
        (
            "replications = 3",
            "replications = 0",
            "x.toml:26:16",
            "run.replications",
            "0 replications run nothing",
        ),
        (
            "replications = 3",
            "replications = 10001",
            "x.toml:26:16",
            "run.replications",
            "10001 replications are out of range",
        ),
        (
            "replications = 3",
            "warmup = \"1.26s\"",
            "x.toml:26:10",
            "run.warmup",
            "hint: write 1.2s or 1.3s",
        ),
        (
            "replications = 3",
            "duration = \"60010ms\"",
            "x.toml:26:12",
            "run.duration",
            "60.01s is no multiple of the bins (100ms)",
        ),
        (
            "replications = 3",
            "duration = \"25h\"",
            "x.toml:26:12",
            "run.duration",
            "hint: write a day (86400s) or less",
        ),
        (
            "replications = 3",
            "bins = \"1ns\"",
            "x.toml:26:8",
            "run.bins",
            "bins of 1ns are too many for a run of 120s",
        ),
        (
            "replications = 3",
            "bins = \"100us\"",
            "x.toml:26:8",
            "run.bins",
            "each of 1200000 is a row of a table",
        ),
        (
            "kind = \"web\"",
            "kind = \"web\"\nclients = 4000000000",
            "x.toml:11:11",
            "foreground[0].clients",
            "hint: write 1 to 100000",
        ),
        (
            "kind = \"web\"",
            "kind = \"web\"\nclients = 0",
            "x.toml:11:11",
            "foreground[0].clients",
            "0 clients are out of range",
        ),
        (
            "kind = \"web\"",
            "kind = \"web\"\ntcp = { min_rto = \"0s\" }",
            "x.toml:11:19",
            "foreground[0].tcp.min_rto",
            "hint: write 1ms or more",
        ),
        (
            "kind = \"web\"",
            "kind = \"web\"\ntcp = { initial_window = 1001 }",
            "x.toml:11:26",
            "foreground[0].tcp.initial_window",
            "hint: write 1 to 1000",
        ),
        (
            "kind = \"web\"",
            "kind = \"web\"\ntcp = { mss = \"63B\" }",
            "x.toml:11:15",
            "foreground[0].tcp.mss",
            "hint: write 64B to 65kB",
        ),
        (
            "rate = \"20Mbit\"",
            "rate = \"20Mbit\"\noverhead = \"100kB\"",
            "x.toml:5:12",
            "network.overhead",
            "hint: write 0B to 65535B",
        ),
        (
            "replications = 3",
            "warmup = \"3min\"",
            "x.toml:26:10",
            "run.warmup",
            "the warm-up (180s) leaves nothing of the run (120s)",
        ),
        (
            "rate = \"2Mbit\"",
            "rate = \"0Mbit\"",
            "x.toml:6:8",
            "network.up.rate",
            "a link of rate 0 carries nothing",
        ),
        (
            "rate = \"2Mbit\"",
            "loss = 0.001",
            "x.toml:6:8",
            "network.up.loss",
            "hint: write loss = { kind = \"independent\", p = 0.001 }",
        ),
        (
            "rate = \"2Mbit\"",
            "loss = \"1%\"",
            "x.toml:6:8",
            "network.up.loss",
            "hint: write loss = { kind = \"independent\", p = 0.01 }",
        ),
        (
            "rate = \"2Mbit\"",
            "loss = { kind = \"independent\", p = 1.5 }",
            "x.toml:6:36",
            "network.up.loss.p",
            "1.5 is no probability",
        ),
        (
            "match:learnt",
            "match:lernt",
            "x.toml:24:8",
            "background[2].rate",
            "hint: did you mean `learnt`?",
        ),
        (
            "match:learnt",
            "match:none",
            "x.toml:24:8",
            "background[2].rate",
            "there is no rate to match",
        ),
        (
            "match:learnt",
            "match:poisson",
            "x.toml:24:8",
            "background[2].rate",
            "`poisson` matches itself",
        ),
        (
            "rate = \"6.6Mbit\"",
            "rate = \"0Mbit\"",
            "x.toml:24:8",
            "background[2].rate",
            "`learnt` sends nothing down",
        ),
        (
            "name = \"poisson\"",
            "name = \"learnt\"",
            "x.toml:22:8",
            "background[2].name",
            "there are two backgrounds called `learnt`",
        ),
        (
            "rate = \"6.6Mbit\"",
            "rate = \"6.6Mbit\"\nsessions = 2.0",
            "x.toml:20:12",
            "background[1].sessions",
            "give one of the two",
        ),
        ("[run]", "[run", "x.toml:25:5", "", "unclosed table"),
    ];
    for (from, to, place, key, words) in cases {
        let text = complaint(from, to);
        assert!(text.contains(place), "{to}: no {place} in\n{text}");
        assert!(
            text.contains(&format!("(key {key})")) || key.is_empty(),
            "{to}: no {key} in\n{text}"
        );
        assert!(text.contains(words), "{to}: no `{words}` in\n{text}");
    }
}

#[test]
fn mistakes_in_disciplines_transports_and_backgrounds_are_shown_where_they_stand() {
    let red = "kind = \"red\", set = \"ns2-modern\", min = \"5pkt\", max = \"15pkt\", weight = 0.002, adaptive = { floor = 0.02 }";
    let up = "\"fq-codel\"";
    let replay = "trace = \"monday.pcap\"";
    let cases = [
        (
            up,
            "\"fq-coddle\"",
            "network.up.qdisc",
            "did you mean `fq-codel`?",
        ),
        (up, "5", "network.up.qdisc", "found the number 5"),
        (
            up,
            "{ target = \"5ms\" }",
            "network.up.qdisc.kind",
            "missing key `kind`",
        ),
        (
            up,
            "{ kind = \"coddle\" }",
            "network.up.qdisc.kind",
            "did you mean `codel`?",
        ),
        (
            up,
            "{ kind = \"codel\", traget = \"5ms\" }",
            "network.up.qdisc.traget",
            "did you mean `target`?",
        ),
        (
            up,
            "{ kind = \"codel\", target = 5 }",
            "network.up.qdisc.target",
            "write it as a string with its unit",
        ),
        (
            up,
            "{ kind = \"codel\", target = \"1s\" }",
            "network.up.qdisc.target",
            "above the interval (100ms)",
        ),
        (
            up,
            "{ kind = \"fifo\", target = \"1s\" }",
            "network.up.qdisc.target",
            "unknown key `target`",
        ),
        (
            up,
            "{ kind = \"choke\", min = \"20pkt\" }",
            "network.up.qdisc.min",
            "the lower threshold (20pkt) is above the upper one (15pkt)",
        ),
        (
            up,
            "{ kind = \"choke\", weight = 2 }",
            "network.up.qdisc.weight",
            "0.002 is usual",
        ),
        (
            up,
            "{ kind = \"fq-codel\", flows = 70000 }",
            "network.up.qdisc.flows",
            "write 1 to 65535",
        ),
        (
            up,
            "{ kind = \"pie\", update = \"1us\" }",
            "network.up.qdisc.update",
            "15ms is usual",
        ),
        (
            up,
            "{ kind = \"pie\", delay = \"departure\" }",
            "network.up.qdisc.delay",
            "unknown value `departure`",
        ),
        (
            up,
            "{ kind = \"priority\", foreground = 2 }",
            "network.up.qdisc.foreground",
            "there is no band 2",
        ),
        (
            up,
            "{ kind = \"priority\", limits = [\"9pkt\", \"0pkt\"] }",
            "network.up.qdisc.limits[1]",
            "write at least 1pkt",
        ),
        (
            up,
            "{ kind = \"drr\", by = \"traffic\", quanta = [\"1B\", \"1B\", \"1B\"] }",
            "network.up.qdisc.quanta",
            "3 quanta for 2 queues",
        ),
        (
            red,
            "kind = \"red\", min = \"5pkt\"",
            "network.qdisc.min",
            "`min` without `max`",
        ),
        (
            red,
            "kind = \"red\", min = \"15pkt\", max = \"5pkt\"",
            "network.qdisc.min",
            "above the upper one (5pkt)",
        ),
        (
            red,
            "kind = \"red\", weight = \"one-minute\"",
            "network.qdisc.weight",
            "known values: one-second, ten-round-trips",
        ),
        (
            red,
            "kind = \"red\", weight = 2",
            "network.qdisc.weight",
            "2 is no weight",
        ),
        (
            red,
            "kind = \"red\", adaptive = true",
            "network.qdisc.adaptive",
            "expected a table, found true",
        ),
        (
            red,
            "kind = \"red\", adaptive = { flor = 0.1 }",
            "network.qdisc.adaptive.flor",
            "did you mean `floor`?",
        ),
        (
            "\"ns2-modern\", cong",
            "\"ns2\", cong",
            "foreground[0].tcp.profile",
            "known values: linux, classic, ns2-era, ns2-modern",
        ),
        (
            "congestion = \"vegas\"",
            "congestion = \"vega\"",
            "foreground[0].tcp.congestion",
            "did you mean `vegas`?",
        ),
        (
            "alpha = 2",
            "alpha = 4",
            "foreground[0].tcp.vegas",
            "alpha (4) is above beta (3)",
        ),
        (
            "nagle = true",
            "send_window = 0",
            "foreground[0].tcp.send_window",
            "write 1 or more",
        ),
        (
            "nagle = true",
            "ack_delay = \"2s\"",
            "foreground[0].tcp.ack_delay",
            "write 500ms or less",
        ),
        (replay, "", "background[0].trace", "of = \"BACKGROUND\""),
        (
            "stretch = 2",
            "stretch = 0",
            "background[0].stretch",
            "2 is half as fast",
        ),
        (
            "stretch = 2",
            "stretch = 2\nrate = \"5Mbit\"",
            "background[0].stretch",
            "give one of the two",
        ),
        (
            "direction = \"up\"",
            "direction = \"left\"",
            "background[1].direction",
            "known values: up, down",
        ),
        (
            "connections = 3",
            "connections = 0",
            "background[1].connections",
            "write 1 to 100000",
        ),
        (
            "connections = 3",
            "start = \"120s\"",
            "background[1].start",
            "when the run is over",
        ),
        (
            "match:trace",
            "match:bulk",
            "background[2].rate",
            "it has no rate to match",
        ),
    ];
    for (from, to, key, words) in cases {
        let text = complaint_in(RICH, from, to);
        assert!(
            text.contains(&format!("(key {key})")),
            "{to}: no {key} in\n{text}"
        );
        assert!(text.contains(words), "{to}: no `{words}` in\n{text}");
    }
}

#[test]
fn nothing_in_a_damaged_file_panics() {
    let mut rng = swell_base::Stream::new(1, "damage");
    let words = [
        "=", "\"", "[", "]", "\n", "{}", "µ", "9e99", "-1", "kind", "[[x]]", "match:", "\0",
    ];
    for i in 0..6_000 {
        let mut text = [GOOD, RICH][i % 2].to_owned();
        for _ in 0..=rng.below(3) {
            let mut cut = |n: usize| {
                let mut at = rng.below(n as u64 + 1) as usize;
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            let (a, b) = (cut(text.len()), cut(text.len()));
            let end = b.clamp(a, (a + 12).min(text.len()));
            if text.is_char_boundary(end) {
                let word = words[rng.below(words.len() as u64) as usize];
                text.replace_range(a..end, word);
            }
        }
        if let Err(problems) = read(&text, "x.toml") {
            assert!(!problems.problems.is_empty());
            assert!(!problems.to_string().is_empty());
        }
    }
}
