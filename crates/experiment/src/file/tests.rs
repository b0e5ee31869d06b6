mod change;
mod filler;
mod impossible;
mod links;
mod mistakes;
mod programs;
mod qdisc;
mod rates;
mod swarm;

use super::*;
use swell_base::{Bytes, QueueLimit, Rate};

const GOOD: &str = r#"
name = "web"
[network]
rate = "20Mbit"
[network.up]
rate = "2Mbit"
queue = "20pkt"
[[foreground]]
name = "a"
kind = "web"
object = ["1MB", "4kB"]
[[background]]
name = "none"
kind = "none"
[[background]]
name = "learnt"
kind = "learnt"
model = "isi-2pm"
rate = "6.6Mbit"
independent = ["response-on-request"]
[[background]]
name = "poisson"
kind = "poisson"
rate = "match:learnt"
[run]
replications = 3
"#;

/// Like [`GOOD`], with the disciplines, transports and backgrounds that it lacks.
const RICH: &str = r#"
name = "rich"
[network]
rate = "20Mbit"
qdisc = { kind = "red", set = "ns2-modern", min = "5pkt", max = "15pkt", weight = 0.002, adaptive = { floor = 0.02 } }
[network.up]
qdisc = "fq-codel"
[[foreground]]
name = "a"
kind = "web"
object = "1MB"
tcp = { profile = "ns2-modern", congestion = "vegas", vegas = { alpha = 2 }, nagle = true }
[[background]]
name = "trace"
kind = "replay"
trace = "monday.pcap"
transport = "tcp"
stretch = 2
grid = "1ms"
phase = "0s"
[[background]]
name = "bulk"
kind = "greedy"
connections = 3
direction = "up"
stagger = "1s"
[[background]]
name = "cbr"
kind = "cbr"
rate = "match:trace"
"#;

fn examples() -> Vec<(String, String)> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    let mut found: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .map(|p| {
            (
                p.display().to_string(),
                std::fs::read_to_string(&p).unwrap(),
            )
        })
        .collect();
    found.sort();
    found
}

/// The message of [`read`] for [`GOOD`] with `from` replaced by `to`.
fn complaint(from: &str, to: &str) -> String {
    complaint_in(GOOD, from, to)
}

fn complaint_in(good: &str, from: &str, to: &str) -> String {
    assert!(good.contains(from), "{from}");
    match read(&good.replacen(from, to, 1), "x.toml") {
        Ok(_) => panic!("no complaint about {to}"),
        Err(problems) => problems.to_string(),
    }
}

#[test]
fn the_example_files_read() {
    let examples = examples();
    assert!(examples.len() >= 2, "{examples:?}");
    for (name, text) in examples {
        if let Err(problems) = read(&text, &name) {
            panic!("{problems}");
        }
    }
}

#[test]
fn a_resolved_file_reads_back_as_itself() {
    for (name, text) in examples()
        .into_iter()
        .chain([("good".into(), GOOD.into()), ("rich".into(), RICH.into())])
    {
        let file = read(&text, &name).unwrap();
        let resolved = file.to_toml();
        assert_eq!(read(&resolved, &name).unwrap(), file, "{resolved}");
    }
}

#[test]
fn directions_override_what_both_share() {
    let [up, down] = read(GOOD, "x").unwrap().network.link.directions();
    assert_eq!(up.rate, Rate::from_bps(2_000_000));
    assert_eq!(up.queue, QueueLimit::Packets(20));
    assert_eq!(down.rate, Rate::from_bps(20_000_000));
    assert_eq!(down.queue, QueueLimit::Bdp(1.0));
    assert_eq!(up.delay, down.delay);
}

#[test]
fn each_direction_has_its_discipline() {
    let [up, down] = read(RICH, "x").unwrap().network.link.directions();
    assert_eq!(
        up.qdisc,
        Qdisc::FqCoDel(swell_path::FqCoDelConfig::default())
    );
    let Qdisc::Red(red) = down.qdisc else {
        panic!("{:?}", down.qdisc)
    };
    assert_eq!(red.set, swell_path::RedSet::Ns2Modern);
    assert_eq!(red.min, Some(QueueLimit::Packets(5)));
    assert_eq!(red.weight, Some(swell_path::RedWeight::Fixed(0.002)));
    assert_eq!(
        red.adaptive,
        Some(swell_path::RedAdaptive {
            floor: Some(0.02),
            ..swell_path::RedAdaptive::default()
        })
    );
}

/// The resolved file contains the defaults of a discipline given by name.
#[test]
fn a_name_resolves_to_its_parameters() {
    let resolved = read(RICH, "x").unwrap().to_toml();
    for line in ["kind = \"fq-codel\"", "quantum = \"1.514kB\"", "ecn = true"] {
        assert!(resolved.contains(line), "{line} in\n{resolved}");
    }
}

#[test]
fn a_list_of_objects_is_taken_in_turn() {
    let file = read(GOOD, "x").unwrap();
    let Part::Web(web) = &file.foreground[0].0 else {
        panic!("a web foreground");
    };
    assert_eq!(web.object.sizes(), [Bytes(1_000_000), Bytes(4_000)]);
}

#[test]
fn keys_can_be_set_from_the_command_line() {
    let set =
        |a: &[&str]| override_keys(GOOD, &a.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
    let text = set(&[
        "network.rate=5Mbit",
        "run.replications=2",
        "background.learnt.rate=1Mbit",
        "foreground.0.think=1s",
    ])
    .unwrap();
    let file = read(&text, "x").unwrap();
    assert_eq!(
        file.network.link.directions()[1].rate,
        Rate::from_bps(5_000_000)
    );
    assert_eq!(file.run.replications, 2);
    let Part::Learnt(learnt) = &file.background[1].0 else {
        panic!("{:?}", file.background[1])
    };
    assert_eq!(
        learnt.rate,
        Some(RateSpec::Fixed(Rate::from_bps(1_000_000)))
    );
    assert!(set(&["network"]).unwrap_err().contains("key=value"));
    assert!(
        set(&["background.9.rate=1Mbit"])
            .unwrap_err()
            .contains("`9`")
    );
    // An unknown key is not an error here, but when the file is read.
    assert!(read(&set(&["network.raet=1"]).unwrap(), "x").is_err());
}

/// Every key, every kind and every definition has a description that an editor can show.
#[test]
fn every_key_is_described() {
    fn walk(schema: &serde_json::Value, path: &str, missing: &mut Vec<String>) {
        if let Some(properties) = schema["properties"].as_object() {
            for (name, sub) in properties {
                if sub["description"].as_str().is_none_or(str::is_empty) {
                    missing.push(format!("{path}.{name}"));
                }
            }
        }
        match schema {
            serde_json::Value::Object(map) => map
                .iter()
                .filter(|(k, _)| *k != "default")
                .for_each(|(k, v)| walk(v, &format!("{path}.{k}"), missing)),
            serde_json::Value::Array(items) => {
                items.iter().for_each(|v| walk(v, path, missing));
            }
            _ => {}
        }
    }
    let mut missing = Vec::new();
    walk(schema(), "", &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}

/// The names that experiment files use for dependencies are those of the model.
#[test]
fn dependencies_have_the_names_of_the_model() {
    let names = schema()["$defs"]["Independence"]["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["const"].as_str().unwrap().to_owned())
        .collect::<Vec<_>>();
    let of_the_model = swell_traffic::Dependency::ALL.map(|d| d.1.to_owned());
    assert_eq!(names, of_the_model);
}
