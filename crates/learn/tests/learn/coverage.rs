//! Checks how often the intervals of sampled models contain the truth: 200 synthetic traces, each sampled
//! at random and every n-th packet. `cargo test -p swell-learn --test learn coverage -- --nocapture` prints the
//! table of docs/flow-model.md.
#![expect(clippy::print_stderr, reason = "figures for docs/flow-model.md")]

use std::net::{IpAddr, Ipv4Addr};

use swell_base::Stream;
use swell_capture::flow::{FlowRecord, Metering, MeteringProcess, Sampling, SamplingSource};
use swell_learn::FlowLearner;
use swell_traffic::Provenance;
use swell_traffic::flowlevel::{FlowModel, Options};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// Parameters of a trace.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    connections: u64,
    /// Share of connections with timestamps.
    stamps: f64,
    /// Pareto exponent of responses, and their minimum.
    tail: f64,
    least: f64,
    /// Mean number of exchanges per connection.
    exchanges: f64,
    /// Refused or unanswered attempts per connection.
    attempts: f64,
    /// Seconds over which connections begin.
    seconds: f64,
}

/// The packets of a trace, and its true counts.
struct Trace {
    packets: Vec<FlowRecord>,
    connections: u64,
    bytes: [u64; 2],
}

struct Maker {
    packets: Vec<FlowRecord>,
    ends: [(IpAddr, u16); 2],
    options: u64,
    at: f64,
}

impl Maker {
    fn packet(&mut self, server: bool, payload: u64, flags: u8) {
        let [from, to] = [server, !server].map(|s| self.ends[usize::from(s)]);
        let options = match flags & SYN {
            0 => self.options,
            // 12 bytes without timestamps, 20 with them.
            _ => 12 + self.options * 8 / 12,
        };
        let at = (self.at * 1e9) as i64;
        self.packets.push(FlowRecord {
            first: at,
            last: at,
            packets: 1,
            bytes: 40 + options + payload,
            src: from.0,
            src_port: from.1,
            dst: to.0,
            dst_port: to.1,
            protocol: 6,
            tcp_flags: Some(flags),
            ..FlowRecord::BLANK
        });
    }
}

fn trace(kind: &Kind, seed: u64) -> Trace {
    let mut s = Stream::new(seed, kind.name);
    let mut bytes = [0, 0];
    let mut maker = Maker {
        packets: Vec::new(),
        ends: [(Ipv4Addr::UNSPECIFIED.into(), 0); 2],
        options: 0,
        at: 0.0,
    };
    let attempts = (kind.attempts * kind.connections as f64) as u64;
    for i in 0..kind.connections + attempts {
        let client = Ipv4Addr::from_bits(10 << 24 | s.below(2_000) as u32);
        let server = Ipv4Addr::from_bits(11 << 24 | s.below(50) as u32);
        let port = 1_024 + (i % 60_000) as u16;
        maker.ends = [(client.into(), port), (server.into(), 443)];
        maker.options = if s.chance(kind.stamps) { 12 } else { 0 };
        maker.at = kind.seconds * s.uniform();
        let rtt = 0.01 + s.exponential(0.05);
        maker.packet(false, 0, SYN);
        if i >= kind.connections {
            maker.at += rtt;
            match s.chance(0.5) {
                true => maker.packet(true, 0, RST | ACK),
                false => maker.packet(false, 0, SYN),
            }
            continue;
        }
        maker.at += rtt / 2.0;
        maker.packet(true, 0, SYN | ACK);
        maker.at += rtt / 2.0;
        maker.packet(false, 0, ACK);
        let exchanges = 1 + (s.exponential(kind.exchanges)) as u64;
        for _ in 0..exchanges {
            let request = 20 + s.below(600);
            bytes[0] += request;
            maker.packet(false, request, PSH | ACK);
            maker.at += rtt;
            let size = kind.least * (1.0 - s.uniform()).powf(-1.0 / kind.tail);
            let mut left = size.min(3e6) as u64;
            bytes[1] += left;
            let mss = 1_460 - maker.options;
            let mut sent = 0;
            while left > 0 {
                let payload = left.min(mss);
                left -= payload;
                let last = if left == 0 { PSH } else { 0 };
                maker.packet(true, payload, ACK | last);
                sent += 1;
                maker.at += 0.0002;
                // Every second segment, and the last, is acknowledged.
                if sent % 2 == 0 || left == 0 {
                    maker.packet(false, 0, ACK);
                }
            }
            maker.at += s.exponential(0.2);
        }
        maker.packet(false, 0, FIN | ACK);
        maker.packet(true, 0, FIN | ACK);
        maker.packet(false, 0, ACK);
    }
    maker.packets.sort_by_key(|p| p.first);
    Trace {
        packets: maker.packets,
        connections: kind.connections,
        bytes,
    }
}

fn learn(packets: impl Iterator<Item = FlowRecord>, n: u32) -> FlowModel {
    let mut metering = MeteringProcess::new(Metering::default());
    let mut records = Vec::new();
    for packet in packets {
        metering.packet(packet, &mut records);
    }
    metering.finish(&mut records);
    let mut learner = FlowLearner::new(Options::default());
    for mut record in records {
        record.sampling = Sampling {
            interval: n.into(),
            source: SamplingSource::Metering,
            scaled: false,
        };
        learner.push(&record);
    }
    learner
        .finish("sampled", Provenance::default())
        .expect("something was sampled")
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "web, half with time stamps",
        connections: 1_500,
        stamps: 0.5,
        tail: 1.2,
        least: 2_000.0,
        exchanges: 2.0,
        attempts: 0.2,
        seconds: 300.0,
    },
    Kind {
        name: "logins of under 100 bytes, all with time stamps",
        connections: 3_000,
        stamps: 1.0,
        tail: 4.0,
        least: 20.0,
        exchanges: 3.0,
        attempts: 0.05,
        seconds: 45.0,
    },
    Kind {
        name: "few large files, without time stamps",
        connections: 300,
        stamps: 0.0,
        tail: 1.1,
        least: 30_000.0,
        exchanges: 1.0,
        attempts: 1.0,
        seconds: 600.0,
    },
    Kind {
        name: "one after the other",
        connections: 800,
        stamps: 1.0,
        tail: 1.5,
        least: 3_000.0,
        exchanges: 1.0,
        attempts: 0.0,
        seconds: 4_000.0,
    },
];

#[test]
fn intervals_cover_random_and_systematic_samples() {
    // Connections, bytes up, bytes down; per quantity: intervals that contained the truth, and intervals
    // checked.
    let mut all = [[0u32; 2]; 3];
    eprintln!(
        "95 % intervals that held the truth, of 50 traces each: connections, bytes up, bytes down"
    );
    for kind in &KINDS {
        for n in [10, 50] {
            let mut held = [[0u32; 3]; 2];
            for seed in 0..25 {
                // With two sampling intervals: 50 traces of a kind, 200 in all.
                let trace = trace(kind, 1_000 * u64::from(n) + seed);
                let mut s = Stream::new(seed, "sampling");
                let phase = s.below(n.into()) as usize;
                let mut random = || s.chance(1.0 / f64::from(n));
                let chosen: Vec<FlowRecord> =
                    trace.packets.iter().filter(|_| random()).copied().collect();
                let every = trace.packets.iter().skip(phase).step_by(n as usize);
                let models = [learn(chosen.into_iter(), n), learn(every.copied(), n)];
                let truth = [trace.connections, trace.bytes[0], trace.bytes[1]];
                for (model, to) in models.iter().zip(&mut held) {
                    let known = model.sampled[0];
                    let connections = known.connections.unwrap_or_default();
                    let estimates = [connections, known.bytes[0], known.bytes[1]];
                    for ((estimate, number), count) in estimates.iter().zip(truth).zip(to) {
                        let [low, high] = estimate.interval();
                        *count += u32::from((low..=high).contains(&(number as f64)));
                    }
                }
            }
            eprintln!(
                "1 in {n}, {}: random {:?}, every n-th {:?}",
                kind.name, held[0], held[1]
            );
            for of in held {
                for (sum, count) in all.iter_mut().zip(of) {
                    sum[0] += count;
                    sum[1] += 25;
                }
            }
        }
    }
    for ([held, asked], what) in all
        .into_iter()
        .zip(["connections", "bytes up", "bytes down"])
    {
        let share = f64::from(held) / f64::from(asked);
        eprintln!("{what}: {:.1} % of {asked}", 100.0 * share);
        assert!(share >= 0.93, "{what}: {held} of {asked}");
    }
}

/// The same rule for all packets and for samples of them: connections that were accepted, whatever their
/// size.
#[test]
fn what_is_a_connection_does_not_depend_on_sampling() {
    for kind in &KINDS {
        let trace = trace(kind, 9);
        let mut metering = MeteringProcess::new(Metering::default());
        let mut records = Vec::new();
        trace
            .packets
            .iter()
            .for_each(|p| metering.packet(*p, &mut records));
        metering.finish(&mut records);
        let mut learner = FlowLearner::new(Options::default());
        records.iter().for_each(|r| learner.push(r));
        let whole = learner
            .finish("whole", Provenance::default())
            .expect("a model");
        assert_eq!(whole.tcp.down.count(), trace.connections, "{}", kind.name);
        let attempts = (kind.attempts * kind.connections as f64) as u64;
        assert_eq!(whole.totals.dropped, attempts, "{}", kind.name);
        let off = |got: u64, want: u64| (got as f64 / want as f64 - 1.0).abs();
        let sums = [whole.tcp.up.sum(), whole.tcp.down.sum()];
        eprintln!("{}: payload {sums:?} of {:?}", kind.name, trace.bytes);
        // Header lengths are inferred from sizes. If half of the connections have timestamps, those of
        // short connections are guesses.
        let bar = if kind.stamps == 0.5 { 0.05 } else { 0.02 };
        for (got, want) in sums.into_iter().zip(trace.bytes) {
            assert!(off(got, want) < bar, "{}: {got} {want}", kind.name);
        }
    }
}
