//! Sampled and unsampled records of the same traffic give models that agree.
#![expect(clippy::print_stderr, reason = "figures for docs/flow-records.md")]

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use crate::common::trace;
use swell_base::Stream;
use swell_capture::flow::{
    FlowReader, FlowRecord, Metering, MeteringProcess, Sampling, SamplingSource,
};
use swell_learn::FlowLearner;
use swell_traffic::Provenance;
use swell_traffic::flowlevel::{FlowModel, Options};

const FIN: u8 = 1;
const SYN: u8 = 2;
const PSH: u8 = 8;
const ACK: u8 = 16;
/// Payload of a full segment, and headers.
const SEGMENT: u64 = 1_460;
const HEADERS: u64 = 40;
const MILLISECOND: i64 = 1_000_000;

/// A connection: a request, a file, an ACK for every second segment, and FINs of both ends.
struct Connection {
    start: i64,
    client: IpAddr,
    port: u16,
    request: u64,
    file: u64,
}

impl Connection {
    /// Connection number `i` of `of` in an hour. Sizes are Pareto distributed (1.2), as in the notes on
    /// the method.
    fn draw(i: u64, of: u64, s: &mut Stream) -> Connection {
        let client = Ipv4Addr::from_bits(10 << 24 | (i % 65_000) as u32).into();
        let file = (2_000.0 * (1.0 - s.uniform()).powf(-1.0 / 1.2)).min(1e8);
        Connection {
            start: (3.6e12 * i as f64 / of as f64) as i64,
            client,
            port: 1_024 + (i / 65_000) as u16,
            request: 200 + s.below(1_000),
            file: file as u64,
        }
    }

    fn segments(&self) -> u64 {
        self.file.div_ceil(SEGMENT)
    }

    /// Packets of the client and of the server.
    fn packets(&self) -> [u64; 2] {
        [4 + self.segments() / 2, 2 + self.segments()]
    }

    /// Packet `i` of a direction.
    fn packet(&self, server: bool, i: u64) -> FlowRecord {
        let last = self.packets()[usize::from(server)] - 1;
        let (payload, flags) = match (server, i) {
            (false, 0) => (0, SYN),
            (true, 0) => (0, SYN | ACK),
            (_, i) if i == last => (0, FIN | ACK),
            (false, 2) => (self.request, PSH | ACK),
            (false, _) => (0, ACK),
            (true, i) if i == last - 1 => (self.file - SEGMENT * (i - 1), PSH | ACK),
            (true, _) => (SEGMENT, ACK),
        };
        let at = self.start + MILLISECOND * (i as i64 + i64::from(server));
        self.record(server, at, at, 1, payload + HEADERS, flags)
    }

    /// The record of a whole direction.
    fn whole(&self, server: bool) -> FlowRecord {
        let n = self.packets()[usize::from(server)];
        let payload = if server { self.file } else { self.request };
        let first = self.start + MILLISECOND * i64::from(server);
        let last = first + MILLISECOND * (n as i64 - 1);
        let flags = SYN | ACK | PSH | FIN;
        self.record(server, first, last, n, payload + HEADERS * n, flags)
    }

    fn record(
        &self,
        server: bool,
        first: i64,
        last: i64,
        packets: u64,
        bytes: u64,
        flags: u8,
    ) -> FlowRecord {
        let ends = [
            (self.client, self.port),
            (Ipv4Addr::new(11, 0, 0, 1).into(), 80),
        ];
        let [from, to] = [ends[usize::from(server)], ends[usize::from(!server)]];
        FlowRecord {
            first,
            last,
            packets,
            bytes,
            src: from.0,
            src_port: from.1,
            dst: to.0,
            dst_port: to.1,
            protocol: 6,
            tcp_flags: Some(flags),
            ..FlowRecord::BLANK
        }
    }
}

fn learn(records: impl IntoIterator<Item = FlowRecord>) -> FlowModel {
    let mut learner = FlowLearner::new(Options::default());
    records.into_iter().for_each(|r| learner.push(&r));
    learner
        .finish("sampled", Provenance::default())
        .expect("there are files")
}

/// Samples each packet with probability 1 in `n` (RFC 5475, section 5.2.2.1). Waits between samples are
/// geometric.
fn sampled(connections: &[Connection], n: u32, seed: u64) -> Vec<FlowRecord> {
    let mut s = Stream::new(seed, "packet sampling");
    let mut chosen = Vec::new();
    let mut wait = 0;
    for c in connections {
        for server in [false, true] {
            let packets = c.packets()[usize::from(server)];
            while wait < packets {
                chosen.push(c.packet(server, wait));
                let skipped = (1.0 - s.uniform()).ln() / (1.0 - 1.0 / f64::from(n)).ln();
                wait += 1 + skipped as u64;
            }
            wait -= packets;
        }
    }
    chosen.sort_by_key(|p| p.first);
    let mut metering = MeteringProcess::new(Metering::default());
    let mut records = Vec::new();
    for packet in chosen {
        metering.packet(packet, &mut records);
    }
    metering.finish(&mut records);
    for record in &mut records {
        record.sampling = Sampling {
            interval: n.into(),
            source: SamplingSource::Metering,
            scaled: false,
        };
    }
    records
}

/// Connections, payload, and payload per connection.
fn numbers(model: &FlowModel) -> [f64; 3] {
    let count = model.tcp.down.count() as f64;
    let bytes = (model.tcp.up.sum() + model.tcp.down.sum()) as f64;
    [count, bytes, bytes / count]
}

/// The requirement: counts, bytes and mean size within 2 % at one in a hundred. Of 1.5 million connections
/// some 13 000 leave nothing but a SYN: a standard error of 0.9 %.
#[test]
fn a_large_trace_sampled_one_in_a_hundred_is_met_within_two_percent() {
    let n = 1_500_000;
    let mut s = Stream::new(1, "connections");
    let connections: Vec<Connection> = (0..n).map(|i| Connection::draw(i, n, &mut s)).collect();
    let whole = learn(
        connections
            .iter()
            .flat_map(|c| [c.whole(false), c.whole(true)]),
    );
    assert_eq!(whole.tcp.down.count(), n);
    let truth = numbers(&whole);
    for seed in 1..=2 {
        let some = learn(sampled(&connections, 100, seed));
        let ratio: Vec<f64> = numbers(&some)
            .iter()
            .zip(truth)
            .map(|(a, b)| a / b - 1.0)
            .collect();
        eprintln!("seed {seed}: connections, bytes, mean size off by {ratio:?}");
        assert!(ratio.iter().all(|r| r.abs() < 0.02), "{ratio:?}");
    }
}

/// With fewer connections, estimates scatter around the values of all packets as their errors say.
#[test]
fn estimates_are_unbiased_and_their_errors_true() {
    let n = 20_000;
    let mut s = Stream::new(2, "connections");
    let connections: Vec<Connection> = (0..n).map(|i| Connection::draw(i, n, &mut s)).collect();
    let bytes: u64 = connections.iter().map(|c| c.file).sum();
    let (mut scores, seeds) = ([Vec::new(), Vec::new()], 60);
    for seed in 0..seeds {
        let known = learn(sampled(&connections, 100, seed)).sampled[0];
        let count = known.connections.expect("SYNs were sampled");
        let files = known.bytes[1];
        for (to, (estimate, truth)) in scores
            .iter_mut()
            .zip([(count, n as f64), (files, bytes as f64)])
        {
            to.push((estimate.value - truth) / estimate.error);
        }
    }
    for of in scores {
        let k = of.len() as f64;
        let mean = of.iter().sum::<f64>() / k;
        let spread = (of.iter().map(|x| x * x).sum::<f64>() / k).sqrt();
        // Standard scores: a mean of 0 within three of its errors, and a root mean square of 1 within
        // three of its own, 1 / sqrt(2 k).
        assert!(mean.abs() < 3.0 / k.sqrt(), "{mean} {spread}");
        assert!(
            (spread - 1.0).abs() < 3.0 / (2.0 * k).sqrt(),
            "{mean} {spread}"
        );
    }
}

/// Records that an exporter sampled, and its records of all packets of the same five minutes: the values
/// lie where the estimates say. At one in ten, bytes are within 2 %; a thousand connections have too few
/// SYNs for more.
#[test]
fn an_exporters_samples_agree_with_its_records_of_everything() {
    let model = |name: &str| {
        let path = trace(&format!("derived/netflow/{name}.pcap"))?;
        let mut reader = FlowReader::open(&path).expect("it opens");
        let mut learner = FlowLearner::new(Options::default());
        // SYNs identify the connections that began here; more than a tenth had begun before.
        let mut accepted = BTreeSet::new();
        while let Some(r) = reader.next_record().expect("it reads") {
            learner.push(&r);
            let flags = r.tcp_flags.unwrap_or(0);
            if flags & SYN != 0 && flags & ACK != 0 {
                let mut ends = [(r.src, r.src_port), (r.dst, r.dst_port)];
                ends.sort();
                accepted.insert(ends);
            }
        }
        let model = learner.finish(name, Provenance::default());
        Some((model.expect("a model"), accepted.len() as f64))
    };
    for (all, some, n) in [
        ("v5", "v5-s10", 10.0),
        ("ipfix", "ipfix-s10", 10.0),
        ("v9", "v9-s100", 100.0),
    ] {
        let (Some((whole, count)), Some((part, _))) = (model(all), model(some)) else {
            continue;
        };
        let [_, bytes, mean] = numbers(&whole);
        let [_, part_bytes, part_mean] = numbers(&part);
        let known = part.sampled[0];
        assert_eq!(known.interval, n);
        let connections = known.connections.expect("SYNs were sampled");
        let error = known.bytes[0].error.hypot(known.bytes[1].error);
        eprintln!(
            "{some}: {:.0} +- {:.0} connections of {count:.0}; bytes {:+.1} % +- {:.1}; mean size {:+.1} %",
            connections.value,
            connections.error,
            100.0 * (part_bytes / bytes - 1.0),
            100.0 * error / bytes,
            100.0 * (part_mean / mean - 1.0),
        );
        let [low, high] = connections.interval();
        assert!(
            low <= count && count <= high,
            "{some}: {connections:?} {count}"
        );
        assert!(
            (part_bytes - bytes).abs() < 1.96 * error,
            "{some}: {part_bytes} {bytes} {error}"
        );
        assert!(
            n > 10.0 || (part_bytes / bytes - 1.0).abs() < 0.02,
            "{some}"
        );
    }
}
