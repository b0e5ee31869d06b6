use tempfile::TempDir;

use super::*;
use crate::observe::{
    Bin, Cause, Cell, Coherence, Delay, Estimate, Flow, LinkTotals, MeasureSample, Observations,
    Outcome, PartBin, PartTotals, Request, RoundTrip, Scale, Share, Shown, Synchrony, Wait,
    WindowGap,
};
use crate::store::results::RunResult;
use swell_base::Direction;

fn run(background: &str, replication: u32) -> RunResult {
    let x = f64::from(replication) + 0.25;
    RunResult {
        cell: Cell {
            foreground: "web".into(),
            background: background.into(),
            replication,
            seed: 1 + u64::from(replication),
        },
        observed: Observations {
            requests: [Outcome::Done, Outcome::Unfinished, Outcome::Failed]
                .into_iter()
                .enumerate()
                .map(|(i, outcome)| Request {
                    client: 7,
                    index: i as u32,
                    start: x,
                    connected: x + 0.04,
                    first_byte: x + 0.08,
                    last_byte: x + 1.0 / 3.0,
                    observed_until: x + 0.5,
                    bytes: u64::MAX - 1,
                    retransmissions: u32::MAX,
                    outcome,
                })
                .collect(),
            bins: vec![Bin {
                link: "core".into(),
                time: x,
                direction: Direction::Down,
                arrived: [1, 2],
                arrived_packets: [3, 4],
                departed: [5, 6],
                dropped: [7, 8],
                queue_max: 9,
                queue_mean: 4.5,
            }],
            scales: vec![Scale {
                link: "core".into(),
                direction: Direction::Up,
                traffic: "background".into(),
                quantity: "bytes".into(),
                octave: 3,
                timescale: 0.008,
                n: 1234,
                energy: 1e-300,
            }],
            coherence: vec![Coherence {
                link: "core".into(),
                direction: Direction::Up,
                next: "edge".into(),
                next_direction: Direction::Down,
                traffic: "all".into(),
                octave: 3,
                timescale: 0.008,
                n: 1234,
                correlation: -0.5,
                coherence: 0.25,
            }],
            flows: vec![Flow {
                class: "https, ünïcode".into(),
                start: x,
                end: x + 1.0,
                up: 10,
                down: 20,
                rtt: 0.03,
                retransmissions: 0,
            }],
            links: vec![LinkTotals {
                link: "core".into(),
                direction: Direction::Up,
                rate: 2e7,
                duration: 60.0,
                arrived: [1, 2],
                arrived_packets: [3, 4],
                departed: [5, 6],
                dropped: [7, 8],
                dropped_by: [9, 10, 11],
                marked: 12,
            }],
            waits: vec![Wait {
                link: "core".into(),
                direction: Direction::Down,
                traffic: "foreground".into(),
                from: x,
                to: x * 1.125,
                packets: 12,
                bytes: 13,
                squares: 14.5,
                waited: 12.0 * x,
            }],
            delays: vec![Delay {
                direction: Direction::Down,
                from: x,
                to: x * 1.016,
                packets: 15,
                bytes: 16,
                delayed: 15.0 * x,
            }],
            parts: vec![PartTotals {
                link: "core".into(),
                part: "down".into(),
                role: "background".into(),
                direction: Direction::Down,
                duration: x,
                arrived: 19,
                arrived_packets: 20,
                departed: 21,
                departed_packets: 22,
                dropped: 23,
            }],
            part_bins: vec![PartBin {
                time: x,
                part: "down".into(),
                role: "background".into(),
                link: "core".into(),
                direction: Direction::Down,
                arrived: 24,
                arrived_packets: 25,
                departed: 26,
                dropped: 27,
            }],
            exported: Vec::new(),
            synchrony: vec![Synchrony {
                link: "core".into(),
                direction: Direction::Up,
                flows: 15,
                events: 16,
                share: x,
                independent: x / 2.0,
                acks: 17,
                compressed: 18,
            }],
            measures: vec![MeasureSample {
                measure: "p99 latency".into(),
                value: 12.5,
                at: x,
            }],
            estimates: vec![Estimate {
                at: x,
                range: [24.0, 25.0],
                bytes: 26,
                duration: 27.0,
                timescale: 28.0,
                intervals: 29,
                mean: 30.0,
                sd: 31.0,
                ends: [32.0, 33.0],
            }],
            waterfall: [(Cause::QueueData, "core"), (Cause::Rounds, "")]
                .map(|(cause, link)| Share {
                    client: 34,
                    index: 35,
                    cause,
                    link: link.into(),
                    seconds: x,
                })
                .to_vec(),
            rtts: [Shown::Handshake, Shown::Data]
                .map(|shown| RoundTrip {
                    connection: 36,
                    direction: Direction::Down,
                    shown,
                    at: x,
                    rtt: 37.0,
                })
                .to_vec(),
            gaps: vec![WindowGap {
                connection: 38,
                direction: Direction::Up,
                at: x,
                gap: 39.0,
            }],
            warnings: Vec::new(),
        },
    }
}

#[test]
fn tables_read_back_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let runs = [run("none", 0), run("learnt", 0), run("learnt", 1)];
    write_tables(dir.path(), &runs).unwrap();
    let cells: Vec<Cell> = runs.iter().map(|r| r.cell.clone()).collect();
    let back = results::read_runs(dir.path(), &cells).unwrap();
    assert_eq!(back, runs);
}

#[test]
fn what_did_not_happen_is_null_in_the_table_and_nan_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut one = run("none", 0);
    one.observed.requests[1].first_byte = f64::NAN;
    one.observed.flows[0].rtt = f64::NAN;
    one.observed.flows[0].end = f64::NAN;
    write_cell(dir.path(), &one).unwrap();
    let back = read_cell(dir.path(), &one.cell).unwrap().observed;
    assert_eq!(back.requests[0], one.observed.requests[0]);
    assert!(back.requests[1].first_byte.is_nan());
    assert_eq!(
        back.requests[1].last_byte,
        one.observed.requests[1].last_byte
    );
    assert!(back.flows[0].rtt.is_nan() && back.flows[0].end.is_nan());
}

#[test]
fn equal_rows_give_equal_bytes() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let runs: Vec<RunResult> = (0..20).map(|r| run("learnt", r)).collect();
    write_tables(a.path(), &runs).unwrap();
    write_tables(b.path(), &runs).unwrap();
    for table in TABLES {
        let read = |d: &TempDir| std::fs::read(d.path().join(format!("{table}.parquet"))).unwrap();
        assert!(read(&a) == read(&b), "{table}");
    }
}

#[test]
fn an_empty_table_is_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let mut one = run("none", 0);
    one.observed = Observations::default();
    write_cell(dir.path(), &one).unwrap();
    assert_eq!(read_cell(dir.path(), &one.cell).unwrap(), one);
}

#[test]
fn a_damaged_table_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let one = run("none", 0);
    write_cell(dir.path(), &one).unwrap();
    let path = dir.path().join("bins.parquet");
    let good = std::fs::read(&path).unwrap();
    for cut in [0, 3, good.len() / 2, good.len() - 1] {
        std::fs::write(&path, &good[..cut]).unwrap();
        let message = read_cell(dir.path(), &one.cell).unwrap_err().to_string();
        assert!(message.contains("bins.parquet"), "{message}");
    }
    // A different table under this name.
    std::fs::copy(dir.path().join("links.parquet"), &path).unwrap();
    let message = read_cell(dir.path(), &one.cell).unwrap_err().to_string();
    assert!(message.contains("no column `time_s`"), "{message}");
}

#[test]
fn a_row_of_an_unlisted_run_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    write_tables(dir.path(), &[run("none", 0), run("none", 1)]).unwrap();
    let message = read_cell(dir.path(), &run("none", 0).cell)
        .unwrap_err()
        .to_string();
    assert!(message.contains("replication 1"), "{message}");
}

/// `docs/results.md` lists exactly the existing columns.
#[test]
fn every_column_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
    let text = std::fs::read_to_string(path).unwrap();
    for table in TABLES.into_iter().chain(KEPT) {
        let start = text
            .find(&format!("## `{table}.parquet`"))
            .unwrap_or_else(|| panic!("no chapter on {table}"));
        let chapter = &text[start..];
        let chapter = &chapter[..chapter[3..].find("\n## ").map_or(chapter.len(), |i| i + 3)];
        let listed: Vec<&str> = chapter.lines().filter(|l| l.starts_with("| `")).collect();
        let wanted: Vec<String> = columns(table)
            .unwrap()
            .iter()
            .map(|c| {
                format!(
                    "| `{}` | {} | {} | {} |",
                    c.name,
                    c.kind.name(),
                    c.unit,
                    c.doc
                )
            })
            .collect();
        assert_eq!(
            listed,
            wanted,
            "{table}: the chapter should list\n{}",
            wanted.join("\n")
        );
    }
}

#[test]
fn a_directory_of_live_traffic_is_named_as_such() {
    let dir = TempDir::new().unwrap();
    let load = |text: &str| {
        std::fs::write(dir.path().join(Manifest::FILE), text).unwrap();
        crate::store::Results::load(dir.path())
            .unwrap_err()
            .to_string()
    };
    let live = load(r#"{ "format": 1, "backend": "live", "complete": true }"#);
    assert!(live.contains("a directory of `swell generate`"), "{live}");
    assert!(!load("{}").contains("swell generate"));
}
