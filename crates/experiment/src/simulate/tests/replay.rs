//! Replays of captures written by the tests.

use std::fs;

use tempfile::TempDir;

use swell_base::{Code, Direction};

use super::*;

/// A packet: time in milliseconds, whether it goes outwards, network-layer bytes.
type Sent = (u32, bool, u16);

/// A pcap file (raw IP, microseconds) of UDP packets between 10.0.0.1 and 198.51.100.1, with headers only.
fn pcap(packets: &[Sent]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([96, 0, 0, 0, 101, 0, 0, 0]);
    for &(ms, out, size) in packets {
        let (inside, outside) = ([10, 0, 0, 1], [198, 51, 100, 1]);
        let (src, dst) = if out {
            (inside, outside)
        } else {
            (outside, inside)
        };
        file.extend((1_000 + ms / 1000).to_le_bytes());
        file.extend((ms % 1000 * 1000).to_le_bytes());
        file.extend(28u32.to_le_bytes());
        file.extend(u32::from(size).to_le_bytes());
        file.extend([0x45, 0]);
        file.extend(size.to_be_bytes());
        file.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        file.extend(src);
        file.extend(dst);
        file.extend([0x0f, 0xa0, 0x0f, 0xa1]);
        file.extend((size - 20).to_be_bytes());
        file.extend([0, 0]);
    }
    file
}

/// Ten seconds: a packet of 1000 bytes down every 2 ms in the first half of each second, and one of
/// 100 bytes up every 10 ms. The mean is 2 Mbit/s down, 0.08 Mbit/s up.
fn bursts() -> Vec<Sent> {
    (0..10_000)
        .flat_map(|ms| {
            let up = (ms % 10 == 1).then_some((ms, true, 100));
            let down = (ms % 2 == 0 && ms % 1000 < 500).then_some((ms, false, 1000));
            [up, down]
        })
        .flatten()
        .collect()
}

fn file(background: &str) -> String {
    format!(
        r#"
name = "test"
[network]
rate = "20Mbit"
[[foreground]]
name = "web"
kind = "web"
object = "10kB"
count = 1
[[background]]
name = "trace"
kind = "replay"
trace = "t.pcap"
{background}
[[background]]
name = "poisson"
kind = "poisson"
rate = "match:trace"
[run]
replications = 2
warmup = "1s"
duration = "11s"
"#
    )
}

fn plan(packets: &[Sent], background: &str) -> (TempDir, Result<Plan, String>) {
    let scratch = tempfile::tempdir().expect("a temporary directory can be made");
    fs::write(scratch.path().join("t.pcap"), pcap(packets)).expect("it can be written");
    let plan = Plan::resolve(&file(background), "x.toml", scratch.path());
    (scratch, plan.map_err(|p| p.to_string()))
}

fn observed(plan: &Plan, cell: usize) -> Observations {
    let spec = plan
        .spec(&plan.cells[cell], &BTreeMap::new())
        .expect("a cell of the plan");
    Simulator.run(&spec, &|_| {}, &|| false).expect("a run")
}

/// Background bytes that arrived per bin of 100 ms in a direction.
fn arrived(o: &Observations, direction: Direction) -> Vec<u64> {
    let bins = o.bins.iter().filter(|b| b.direction == direction);
    bins.map(|b| b.arrived[1]).collect()
}

#[test]
fn packets_come_at_their_own_times_in_both_directions() {
    let (_keep, plan) = plan(&bursts(), "phase = \"0s\"\ndelay = \"0s\"");
    let plan = plan.expect("a good file");
    let o = observed(&plan, 0);
    let down = arrived(&o, Direction::Down);
    // 50 packets in each tenth of a second in the first half of each second.
    for (i, &bytes) in down[..99].iter().enumerate() {
        assert_eq!(bytes, if i % 10 < 5 { 50_000 } else { 0 }, "bin {i}");
    }
    // The trace repeats after its last packet and a mean gap: 9.991 s and 9.991 s / 3499.
    assert_eq!(down[99..101], [4_000, 50_000]);
    let up: u64 = arrived(&o, Direction::Up)[..99].iter().sum();
    assert_eq!(up, 99_000);
    let codes: Vec<&str> = o.warnings.iter().map(|w| w.code.as_str()).collect();
    assert!(codes.contains(&"trace-repeats"), "{codes:?}");
    assert_eq!(o.flows.len(), 2);
    assert!(o.flows.iter().all(|f| f.class == "replay"));
}

#[test]
fn a_replay_can_be_stretched_put_on_a_grid_and_turned_round() {
    let settings = "phase = \"0s\"\ndelay = \"0s\"\nstretch = 2\ngrid = \"200ms\"\nreversed = true";
    let (_keep, plan) = plan(&bursts(), settings);
    let o = observed(&plan.expect("a good file"), 0);
    let up = arrived(&o, Direction::Up);
    let down: u64 = arrived(&o, Direction::Down).iter().sum();
    assert!(down < 70_000, "the trace's up direction: {down}");
    // At half speed, each burst lasts for the first of two seconds. On the grid its packets move to multiples of 200
    // ms: one packet at 0, and the others at five later instants.
    assert_eq!(up[0], 1_000);
    for (i, &bytes) in up.iter().enumerate().skip(1).take(18) {
        let want = match i {
            2 | 4 | 6 | 8 => 50_000,
            10 => 49_000,
            _ => 0,
        };
        assert_eq!(bytes, want, "bin {i}");
    }
}

#[test]
fn every_seed_begins_elsewhere_unless_told() {
    let (_keep, drawn) = plan(&bursts(), "");
    let drawn = drawn.expect("a good file");
    let first = arrived(&observed(&drawn, 0), Direction::Down);
    assert_eq!(
        first,
        arrived(&observed(&drawn, 0), Direction::Down),
        "the same seed"
    );
    assert_ne!(
        first,
        arrived(&observed(&drawn, 1), Direction::Down),
        "another seed"
    );
    // The period is that of the trace: every ten seconds contain all of it, except possibly the last packet.
    let bytes: u64 = first[..100].iter().sum();
    assert!(bytes.abs_diff(2_500_000) <= 5_000, "{bytes}");
    let (_keep_too, fixed) = plan(&bursts(), "phase = \"3s\"");
    let fixed = fixed.expect("a good file");
    assert_eq!(
        arrived(&observed(&fixed, 0), Direction::Down),
        arrived(&observed(&fixed, 1), Direction::Down)
    );
}

#[test]
fn over_tcp_everything_arrives_and_something_is_acknowledged() {
    let settings = "phase = \"0s\"\ntransport = \"tcp\"\ntcp = { profile = \"classic\" }";
    let (_keep, plan) = plan(&bursts(), settings);
    let o = observed(&plan.expect("a good file"), 0);
    let [up, down] = [0, 1].map(|d| {
        let flow = o.flows.iter().find(|f| [f.up, f.down][d] > 0);
        flow.map_or(0, |f| [f.up, f.down][d])
    });
    // Eleven seconds of payload: packets without 52 bytes of headers, with one more burst.
    assert_eq!(down, 2_750 * (1000 - 52));
    assert!(up.abs_diff(1_100 * (100 - 52)) < 2 * 48, "{up}");
}

#[test]
fn a_rate_is_reached_by_stretching_and_others_can_match_it() {
    let scratch = tempfile::tempdir().expect("a temporary directory can be made");
    fs::write(scratch.path().join("t.pcap"), pcap(&bursts())).expect("it can be written");
    let plan =
        Plan::resolve(&file("rate = \"3Mbit\""), "x.toml", scratch.path()).expect("a good file");
    let options = crate::run::Options {
        dir: scratch.path().join("run"),
        threads: 2,
        fresh: false,
        shard: None,
    };
    let ended = crate::run::run(&plan, &Simulator, &options, &|_| {}, &|| false).expect("it runs");
    let crate::run::RunOutcome::Complete(results) = ended else {
        panic!("{ended:?}")
    };
    let measured = &results.manifest.measured["trace"];
    assert!((measured.down_bps / 3e6 - 1.0).abs() < 0.05, "{measured:?}");
    let speed = measured.speed.expect("a replay has a speed");
    assert!((speed / 1.5 - 1.0).abs() < 0.2, "{speed}");
    assert_eq!(measured.sessions, None);
    let poisson: Vec<f64> = results
        .of("web", "poisson")
        .flat_map(|r| &r.observed.links)
        .filter(|l| l.direction == Direction::Down)
        .map(|l| l.arrived[1] as f64 * 8.0 / l.duration)
        .collect();
    // 3750 packets in ten seconds: standard deviation 1.6 % each.
    let mean = poisson.iter().sum::<f64>() / poisson.len() as f64;
    assert!((mean / measured.down_bps - 1.0).abs() < 0.06, "{poisson:?}");
    let facts = &results.manifest.models["trace"];
    assert_eq!(facts.name, "t.pcap");
    assert!(
        facts.note.contains("1000 packets up and 2500 down"),
        "{}",
        facts.note
    );
    // The experiment file in the run directory leads to the same capture, with the same hash.
    let again =
        Plan::resolve(&results.experiment_toml, "again", &options.dir).expect("it resolves");
    assert_eq!(again.hash("simulated"), plan.hash("simulated"));
}

#[test]
fn what_is_wrong_with_a_capture_is_said_at_its_key() {
    let refused = |dir: &TempDir, background: &str, words: &str, key: &str| {
        let text = Plan::resolve(&file(background), "x.toml", dir.path())
            .map(|_| ())
            .expect_err(words)
            .to_string();
        assert!(text.contains(words), "{text}");
        assert!(
            text.contains(&format!("(key background[0].{key})")),
            "{text}"
        );
    };
    let scratch = tempfile::tempdir().expect("a temporary directory can be made");
    let capture = scratch.path().join("t.pcap");
    refused(&scratch, "", "no file is called `t.pcap`", "trace");
    fs::write(&capture, b"not a capture at all, but some text").expect("it can be written");
    refused(&scratch, "", "t.pcap", "trace");
    fs::write(&capture, pcap(&[])).expect("it can be written");
    refused(&scratch, "", "no packet leads", "trace");
    fs::write(&capture, pcap(&bursts())).expect("it can be written");
    refused(&scratch, "phase = \"11s\"", "beyond the trace's", "phase");
    let upward: Vec<Sent> = bursts().into_iter().filter(|p| p.1).collect();
    fs::write(&capture, pcap(&upward)).expect("it can be written");
    refused(
        &scratch,
        "rate = \"1Mbit\"",
        "no packets in the down",
        "rate",
    );
}

/// A replay of `original`, a background with the name `one`.
fn replayed(original: &str) -> Plan {
    let text = file("");
    let (network, _) = text.split_once("[[background]]").expect("backgrounds");
    let (_, run) = text.split_once("[run]").expect("a run");
    let copy = "name = \"copy\"\nkind = \"replay\"\nof = \"one\"\nphase = \"0s\"\ndelay = \"0s\"";
    let both = format!(
        "{network}[[background]]\nname = \"one\"\n{original}\n[[background]]\n{copy}\n[run]{run}"
    );
    Plan::resolve(&both, "x.toml", std::path::Path::new("")).expect("a good file")
}

#[test]
fn another_backgrounds_packets_come_again_as_they_came_to_the_link() {
    for transport in ["udp", "tcp"] {
        let plan = replayed(&format!(
            "kind = \"poisson\"\nrate = \"5Mbit\"\nrate_up = \"1Mbit\"\ntransport = \"{transport}\""
        ));
        let alone = |name: &str| {
            let part = plan.file.background.iter().find(|b| b.name() == name);
            let spec = plan.alone(part.expect("it is there"), 0, None, &BTreeMap::new());
            Simulator.run(&spec, &|_| {}, &|| false).expect("a run")
        };
        let (original, copy) = (alone("one"), alone("copy"));
        for direction in Direction::BOTH {
            // The capture begins at the end of the warm-up.
            let came = &arrived(&original, direction)[10..];
            assert_eq!(
                arrived(&copy, direction)[..came.len()],
                *came,
                "{transport}"
            );
            assert!(came.iter().sum::<u64>() > 500_000, "{came:?}");
        }
    }
    let plan = replayed("kind = \"learnt\"\nmodel = \"access-link\"\nrate = \"8Mbit\"");
    let copy = plan.file.background.iter().find(|b| b.name() == "copy");
    let bps = plan.native_bps(copy.expect("it is there"), &BTreeMap::new());
    assert!(
        (3e6..16e6).contains(&bps),
        "the model itself has 0.8e6: {bps}"
    );
}

/// The original's servers send to its clients, and so do those of the replay, whichever way round a path has a link.
#[test]
fn another_backgrounds_packets_keep_their_direction_on_the_link() {
    let loads = |original: &str, copy: &str| -> [Vec<u8>; 2] {
        let text = format!(
            r#"
name = "x"
[[links]]
name = "a"
rate = "10Mbit"
[[links]]
name = "b"
rate = "20Mbit"
[[foreground]]
name = "web"
kind = "web"
object = "10kB"
path = ["a reversed", "b"]
[[background]]
name = "one"
kind = "poisson"
rate = "4Mbit"
rate_up = "1Mbit"
{original}
[[background]]
name = "copy"
kind = "replay"
of = "one"
{copy}
[run]
replications = 1
warmup = "1s"
duration = "11s"
"#
        );
        let plan = Plan::resolve(&text, "x.toml", std::path::Path::new("")).expect("a good file");
        let alone = |name: &str| {
            let part = plan.file.background.iter().find(|b| b.name() == name);
            let spec = plan.alone(part.expect("it is there"), 0, None, &BTreeMap::new());
            let run = Simulator.run(&spec, &|_| {}, &|| false).expect("a run");
            let link = if copy.contains("\"b\"") { "b" } else { "a" };
            let busy = run.links.iter().filter(|l| &*l.link == link);
            let mbit = busy.map(|l| (l.arrived[1] as f64 * 8e-6 / l.duration).round() as u8);
            mbit.collect::<Vec<u8>>()
        };
        ["one", "copy"].map(alone)
    };
    let (ahead, back) = ("path = [\"a\"]", "path = [\"a reversed\"]");
    for (one, copy, direction) in [
        (ahead, ahead, [1, 4]),
        (back, back, [4, 1]),
        (ahead, back, [1, 4]),
        (back, ahead, [4, 1]),
    ] {
        assert_eq!(
            loads(one, copy),
            [direction; 2].map(Vec::from),
            "{one} {copy}"
        );
    }
    // On another link, its clients receive what those of the original did.
    assert_eq!(loads(back, "path = [\"b\"]")[1], [1, 4]);
}

#[test]
fn a_trace_that_is_played_once_begins_with_its_first_packet() {
    let played = |keys: &str, cell| {
        let (_keep, plan) = plan(&bursts(), keys);
        let plan = plan.expect("a good file");
        let spec = plan.spec(&plan.cells[cell], &BTreeMap::new());
        let observed = Simulator.run(&spec.expect("a run"), &|_| {}, &|| false);
        let observed = observed.expect("it runs");
        let same = observed.warnings.iter().any(|w| w.code == Code::SamePhase);
        (arrived(&observed, Direction::Down), same)
    };
    let first = played("once = true\nphase = \"0s\"", 0).0;
    assert_eq!(played("once = true", 0), (first.clone(), false));
    assert_eq!(played("once = true", 1), (first, true));
}
