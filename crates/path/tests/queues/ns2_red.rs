//! RED compared with ns-2.35. `benches/peers/red.tcl` feeds ns-2's RED queue from an open-loop source; these tests
//! compare its results with ours.

use swell_base::{Bytes, Dur, QueueLimit, Rate, Stream, Time};
use swell_path::{
    Outlet, Qdisc, Red, RedAdaptive, RedConfig, RedThresholds, RedWeight, RedWeightRule,
};

use crate::{never, packet};

const RATE: Rate = Rate::from_bps(10_000_000);

/// A RED queue in front of a serializer of 10 Mbit/s.
struct Served {
    red: Red,
    free_at: Time,
    /// Integral of the queue length, packets times seconds.
    area: f64,
    last: Time,
}

impl Served {
    fn new(config: &RedConfig, delay: Dur, limit: u64, seed: u64) -> Served {
        let outlet = Outlet {
            limit: QueueLimit::Packets(limit),
            rate: Some(RATE),
            overhead: 0,
            delay,
        };
        Served {
            red: Red::new(config, &outlet, Stream::new(seed, "red")),
            free_at: Time::ZERO,
            area: 0.0,
            last: Time::ZERO,
        }
    }

    fn pass_to(&mut self, now: Time) {
        self.area += self.red.backlog().packets as f64 * now.since(self.last).as_secs_f64();
        self.last = now;
    }

    fn serve(&mut self, until: Time) {
        while self.free_at <= until && self.red.backlog().packets > 0 {
            let start = self.free_at;
            self.pass_to(start);
            if let Some(p) = self.red.dequeue(start, &mut never) {
                self.free_at = start + RATE.transmit(Bytes(u64::from(p.size)));
            }
        }
    }

    /// Returns false if the packet is dropped.
    fn arrive(&mut self, at: Time, size: u16) -> bool {
        self.serve(at);
        self.free_at = self.free_at.max(at);
        self.pass_to(at);
        let accepted = self.red.enqueue(at, packet(0, 0, size), &mut never);
        self.serve(at);
        accepted.is_ok()
    }
}

#[test]
fn the_average_is_ns2s_at_every_arrival() {
    let high = |config| RedConfig {
        thresholds: RedThresholds::Packets {
            min: 100.0,
            max: 300.0,
        },
        ..config
    };
    let packets = RedConfig {
        weight: RedWeight::Fixed(0.02),
        mean_packet: 1000,
        ..high(RedConfig::ns2_era())
    };
    let bytes = high(RedConfig::ns2_modern());
    let mut by_packets = Served::new(&packets, Dur::from_millis(10), 1000, 1);
    let mut by_bytes = Served::new(&bytes, Dur::from_millis(50), 1000, 1);
    let mut compared = 0;
    for line in include_str!("data/ns2_red_average.tsv").lines() {
        if line.starts_with('#') {
            continue;
        }
        let fields: Vec<f64> = line
            .split('\t')
            .map(|f| f.parse().expect("a number in our own file"))
            .collect();
        let at = Time::from_secs_f64(fields[0]);
        assert!(by_packets.arrive(at, fields[1] as u16));
        assert!(by_bytes.arrive(at, fields[1] as u16));
        for (ours, theirs) in [
            (by_packets.red.average(), fields[2]),
            (by_bytes.red.average(), fields[3]),
        ] {
            // ns-2 prints six digits.
            assert!(
                (ours - theirs).abs() <= 1e-5 * theirs,
                "at {at}: {ours} against {theirs}"
            );
        }
        compared += 1;
    }
    assert_eq!(compared, 1200);
}

/// Results of ns-2.35: mean and standard error over seeds, for the share of packets dropped and for the mean queue in
/// packets, in 300 s at this load.
struct Row {
    load: f64,
    dropped: (f64, f64),
    queue: (f64, f64),
}

const fn row(load: f64, dropped: (f64, f64), queue: (f64, f64)) -> Row {
    Row {
        load,
        dropped,
        queue,
    }
}

fn mean_and_error(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let square = x.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (square / n).sqrt())
}

/// Runs the same scenario as ns-2, with Poisson arrivals whose sizes cycle through `sizes`, and compares the results.
fn compare(name: &str, config: &RedConfig, limit: u64, sizes: &[u16], rows: &[Row]) {
    let mean = sizes.iter().map(|&s| f64::from(s)).sum::<f64>() / sizes.len() as f64;
    for row in rows {
        let gap = mean * 8.0 / RATE.bps() as f64 / row.load;
        let (mut dropped, mut queue) = (Vec::new(), Vec::new());
        for seed in 0..12 {
            let mut served = Served::new(config, Dur::from_millis(10), limit, seed);
            let mut rng = Stream::new(seed, "source");
            let (mut now, mut n, mut lost) = (0.0, 0usize, 0usize);
            while now < 300.0 {
                now += rng.exponential(gap);
                let size = sizes[n % sizes.len()];
                lost += usize::from(!served.arrive(Time::from_secs_f64(now), size));
                n += 1;
            }
            dropped.push(lost as f64 / n as f64);
            queue.push(served.area / 300.0);
        }
        for (what, ours, theirs) in [
            ("dropped", mean_and_error(&dropped), row.dropped),
            ("queue", mean_and_error(&queue), row.queue),
        ] {
            // 3.3 standard errors: exceeded by chance once in a thousand times.
            let error = ours.1.hypot(theirs.1);
            assert!(
                (ours.0 - theirs.0).abs() < 3.3 * error,
                "{name} {} {what}: {ours:?} against {theirs:?}",
                row.load
            );
        }
    }
}

const TEN_TO_FORTY: RedThresholds = RedThresholds::Packets {
    min: 10.0,
    max: 40.0,
};

#[test]
fn drops_and_queue_are_those_of_the_era() {
    let config = RedConfig {
        thresholds: TEN_TO_FORTY,
        mean_packet: 1000,
        ..RedConfig::ns2_era()
    };
    let rows = [
        row(0.95, (0.001932, 0.000121), (8.2100, 0.0963)),
        row(1.1, (0.092655, 0.000411), (35.2697, 0.0611)),
        row(1.3, (0.231993, 0.000285), (39.6096, 0.0082)),
    ];
    compare("era", &config, 50, &[1000], &rows);
}

#[test]
fn drops_and_queue_are_those_of_the_release() {
    // Sizes of 40 to 1500 bytes; average in bytes, drops by size, thresholds in mean packets.
    let config = RedConfig {
        thresholds: TEN_TO_FORTY,
        ..RedConfig::ns2_modern()
    };
    let rows = [
        row(0.95, (0.004045, 0.000145), (7.5361, 0.0333)),
        row(1.1, (0.062635, 0.000222), (17.7044, 0.0421)),
        row(1.3, (0.140411, 0.000198), (27.3227, 0.0202)),
    ];
    let sizes = [40, 1500, 552, 40, 1500, 1500];
    compare("modern", &config, 1000, &sizes, &rows);
}

#[test]
fn drops_and_queue_are_those_of_the_adaptation() {
    let config = RedConfig {
        thresholds: RedThresholds::Packets {
            min: 20.0,
            max: 60.0,
        },
        weight: RedWeight::Rule(RedWeightRule::OneSecond), // qw=0
        mean_packet: 1000,
        gentle: true,
        adaptive: Some(RedAdaptive {
            floor: None,
            ..RedAdaptive::default()
        }),
        ..RedConfig::ns2_era()
    };
    let rows = [row(1.1, (0.093678, 0.000358), (46.6641, 0.0875))];
    compare("adaptive", &config, 200, &[1000], &rows);
}
