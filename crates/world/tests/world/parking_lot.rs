//! A parking lot of three links compared with ns-2. Eight long flows cross all links, and four flows cross each link
//! alone.
//!
//! `benches/peers/parking-lot.tcl` is the scenario for ns-2.35; `parking-lot.csv` beside it holds its results from 20
//! different starts. TCP over full queues is chaotic, so the test compares means, not single runs.

use std::sync::Arc;

use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::{Algorithm, Config};
use swell_workload::{Access, Conn, Greedy, GreedyConfig};
use swell_world::{Direction, Duplex, Hop, World};

const LINKS: usize = 3;
const SECONDS: u64 = 200;
const RUNS: u64 = 6;
/// Bits per second. The rates differ. With equal rates, arrivals from one link would always coincide with departures
/// from the next, and the order at ties would decide which flow loses.
const RATES: [u64; LINKS] = [10_000_000, 10_070_000, 9_960_000];
/// Columns of the table: bytes delivered by the long flows; then for each link the delivery of its own flows,
/// arrivals and drops.
const COLUMNS: usize = 1 + 3 * LINKS;

fn ns2() -> Vec<[f64; COLUMNS]> {
    let table = include_str!("../../../../benches/peers/parking-lot.csv");
    let row = |line: &str| {
        let numbers = line.split(',').skip(1);
        let numbers: Vec<f64> = numbers.map(|n| n.parse().expect("a number")).collect();
        numbers.try_into().expect("all columns")
    };
    table.lines().skip(1).map(row).collect()
}

fn world(run: u64) -> (World, Vec<(Option<usize>, usize)>) {
    let duplex = |i: usize| {
        let queue = |packets| LinkConfig {
            rate: Some(Rate::from_bps(RATES[i])),
            delay: Dur::from_millis(5 * (i as u64 + 1)),
            queue: QueueLimit::Packets(packets),
            ..LinkConfig::default()
        };
        Duplex {
            name: format!("link {i}"),
            directions: [queue(30), queue(u64::MAX)],
        }
    };
    let links: Vec<Duplex> = (0..LINKS).map(duplex).collect();
    let mut world = World::with_links(&links, run);
    let tcp = Arc::new(Config {
        algorithm: Algorithm::Reno,
        mss: 1460,
        send_window: Some(64),
        initial_ssthresh: Some(64),
        ..Config::ns2_era()
    });
    let long = std::iter::repeat_n(None, 8);
    let cross = (0..LINKS).flat_map(|i| [Some(i); 4]);
    let mut flows = Vec::new();
    for (j, link) in long.chain(cross).enumerate() {
        let j = j as u64;
        let host = Access {
            delay: Dur::from_millis(1 + j % 5),
            up: Some(Rate::from_bps(100_000_000)),
            down: Some(Rate::from_bps(100_000_000)),
            ..Access::default()
        };
        let jitter = (j * 7919 + run * 104_729) % 1000;
        let flow = Greedy::new(GreedyConfig {
            start: Dur::from_millis(100 * j) + Dur::from_micros(100 * jitter),
            sender: host,
            receiver: host,
            ..GreedyConfig::default()
        });
        let path = match link {
            None => None,
            Some(link) => world.add_path(&[Hop {
                link,
                reversed: false,
            }]),
        };
        let path = path.unwrap_or_default();
        let index = world.add_on(path, Box::new(flow), Tag::Background, Arc::clone(&tcp));
        flows.push((link, index));
    }
    (world, flows)
}

fn ours(run: u64) -> [f64; COLUMNS] {
    let (mut world, flows) = world(run);
    world.advance(Time::ZERO + Dur::from_secs(SECONDS));
    let mut row = [0.0; COLUMNS];
    for (link, index) in flows {
        let [client, _] = world.tcp_stats(index, Conn(0)).expect("it is open");
        row[link.map_or(0, |i| 1 + 3 * i)] += client.acked as f64 / 1460.0;
    }
    for link in 0..LINKS {
        let ledger = world.link(link, Direction::Up).ledger();
        row[2 + 3 * link] = ledger.arrived as f64;
        row[3 + 3 * link] = ledger.dropped_total() as f64;
    }
    row
}

/// Mean and standard deviation of a column.
fn moments(rows: &[[f64; COLUMNS]], column: usize) -> (f64, f64) {
    let n = rows.len() as f64;
    let mean = rows.iter().map(|r| r[column]).sum::<f64>() / n;
    let squares = rows.iter().map(|r| (r[column] - mean).powi(2)).sum::<f64>();
    (mean, (squares / (n - 1.0)).sqrt())
}

/// Every column agrees with ns-2's, within four standard errors of the difference of the means or within 2 %.
#[test]
fn a_parking_lot_is_shared_as_in_ns2() {
    let theirs = ns2();
    assert_eq!(theirs.len(), 20);
    let mine: Vec<[f64; COLUMNS]> = (0..RUNS).map(ours).collect();
    let mut far = Vec::new();
    for column in 0..COLUMNS {
        let ((a, sa), (b, sb)) = (moments(&theirs, column), moments(&mine, column));
        let error = (sa * sa / theirs.len() as f64 + sb * sb / mine.len() as f64).sqrt();
        if (a - b).abs() > (4.0 * error).max(0.02 * a) {
            far.push(format!(
                "column {column}: ns-2 {a:.0} ± {sa:.0}, here {b:.0} ± {sb:.0}"
            ));
        }
    }
    assert!(far.is_empty(), "{}", far.join("\n"));
}
