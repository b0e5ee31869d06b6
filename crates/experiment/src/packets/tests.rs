//! Reads packet files of the simulator with tshark and with the project's own reader.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use swell_base::{Dur, QueueLimit, Rate, Side, Tag};
use swell_capture::{Reader, Tcp, Transport};
use swell_path::{LinkConfig, Loss};
use swell_tcp::{Algorithm, Config};
use swell_workload::{
    Access, Action, Conn, End, Event, Info, Law, Open, Parametric, ParametricConfig, Workload,
};
use swell_world::{Direction, World};

use tempfile::TempDir;

use super::*;

/// Transfers both ways that begin one after the other and end properly.
struct Transfers {
    connections: u32,
    bytes: u64,
    access: Access,
    ipv6: bool,
    answered: Vec<bool>,
    ended: Arc<ClosedCounts>,
}

/// Counts of both endpoints when their connections close.
#[derive(Default)]
struct ClosedCounts {
    connections: AtomicU64,
    retransmissions: AtomicU64,
}

impl Workload for Transfers {
    fn handle(&mut self, _now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => actions.push(Action::Timer(Dur::ZERO, 0)),
            Event::Timer(n) => {
                let conn = Conn(n as u32);
                self.answered.push(false);
                let mut open = Open {
                    client_side: Side::of(n % 2 == 1),
                    client: self.access,
                    server: self.access,
                    ..Open::default()
                };
                open.wire.ipv6 = self.ipv6;
                actions.push(Action::Connect(conn, Box::new(open)));
                actions.push(Action::Send(conn, End::Client, self.bytes / 3));
                if n + 1 < u64::from(self.connections) {
                    actions.push(Action::Timer(Dur::from_millis(700), n + 1));
                }
            }
            Event::Received(conn, End::Server, _) if !self.answered[conn.0 as usize] => {
                self.answered[conn.0 as usize] = true;
                actions.push(Action::Send(conn, End::Server, self.bytes));
                actions.push(Action::Close(conn, End::Server));
            }
            Event::Eof(conn, End::Client) => actions.push(Action::Close(conn, End::Client)),
            Event::Closed(_, info) => {
                let both = info.client_retransmissions + info.server_retransmissions;
                self.ended.connections.fetch_add(1, Ordering::Relaxed);
                let sum = &self.ended.retransmissions;
                sum.fetch_add(u64::from(both), Ordering::Relaxed);
            }
            _ => {}
        }
    }

    fn take_records(&mut self) -> Vec<swell_workload::Record> {
        Vec::new()
    }

    fn finish(&mut self, _info: &dyn Fn(Conn) -> Info) {}
}

/// A small queue that overflows and a link that loses one packet in a hundred, in both directions.
fn lossy() -> [LinkConfig; 2] {
    let link = LinkConfig {
        rate: Some(Rate::from_bps(10_000_000)),
        delay: Dur::from_millis(15),
        queue: QueueLimit::Packets(20),
        loss: Loss::Independent { p: 0.01 },
        ..LinkConfig::default()
    };
    [link.clone(), link]
}

/// Runs transfers and UDP packets beside them; gives the endpoints' own count of retransmissions and
/// how many packets arrived at the bottleneck.
fn run(path: &Path, tcp: Config, ipv6: bool, access: Access) -> (u64, u64) {
    let tcp = Arc::new(tcp);
    let mut world = World::new(&lossy(), 3);
    let source = |port| Source {
        tcp: Arc::clone(&tcp),
        classes: Vec::new(),
        port,
    };
    let recorder = Recorder::create(
        path,
        "bottleneck",
        SharedHeaders::new(vec![source(80), source(5001)], 3),
    )
    .unwrap();
    world.set_tap(recorder.tap());
    let ended = Arc::new(ClosedCounts::default());
    let transfers = Transfers {
        connections: 20,
        bytes: 900_000,
        access,
        ipv6,
        answered: Vec::new(),
        ended: Arc::clone(&ended),
    };
    world.add(Box::new(transfers), Tag::Foreground, Arc::clone(&tcp));
    let datagrams = ParametricConfig {
        law: Law::Poisson,
        transport: swell_workload::Transport::Udp,
        packet: 500,
        rate: [Rate::from_bps(100_000); 2],
        sources: 2,
        left: access,
        right: access,
    };
    world.add(
        Box::new(Parametric::new(datagrams, 3)),
        Tag::Background,
        tcp,
    );
    world.advance(Time::from_secs_f64(120.0));
    recorder.finish().unwrap();
    assert_eq!(ended.connections.load(Ordering::Relaxed), 20, "all ended");
    let arrived = [Direction::Up, Direction::Down].map(|d| world.bottleneck(d).ledger().arrived);
    (
        ended.retransmissions.load(Ordering::Relaxed),
        arrived[0] + arrived[1],
    )
}

/// Fields in which tshark reports anomalies.
const REMARKS: [&str; 11] = [
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.lost_segment",
    "tcp.analysis.ack_lost_segment",
    "tcp.analysis.keep_alive",
    "tcp.analysis.reused_ports",
    "tcp.analysis.zero_window",
    "_ws.malformed",
    "tcp.options.timestamp.tsval",
];
const CHECKSUMS: [&str; 3] = [
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
];

const PLACE: [&str; 4] = ["tcp.stream", "frame.interface_id", "tcp.seq", "tcp.nxtseq"];

/// What tshark says of a trace.
#[derive(Debug, Default)]
struct Analysis {
    /// Packets by remark, and by checksum and its status.
    counts: BTreeMap<String, u64>,
    /// Packets with a remark that says retransmission.
    again: u64,
    /// Packets said to be out of order all of whose sequence numbers the trace has before.
    repeated: u64,
}

impl Analysis {
    fn of(scratch: &TempDir, path: &Path) -> Analysis {
        let mut command = Command::new("tshark");
        // Ignore the user's configuration.
        command.env("WIRESHARK_CONFIG_DIR", scratch.path());
        command.arg("-r").arg(path);
        for option in [
            "ip.check_checksum:TRUE",
            "tcp.check_checksum:TRUE",
            "udp.check_checksum:TRUE",
        ] {
            command.args(["-o", option]);
        }
        command.args(["-T", "fields", "-E", "separator=;", "-E", "occurrence=f"]);
        let columns = || REMARKS.into_iter().chain(CHECKSUMS).chain(PLACE);
        for field in columns() {
            command.args(["-e", field]);
        }
        let out = command.output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{said}");

        let mut analysis = Analysis::default();
        // Next sequence number by stream and interface.
        let mut next: BTreeMap<(String, String), u64> = BTreeMap::new();
        for line in String::from_utf8(out.stdout).unwrap().lines() {
            let row: BTreeMap<&str, &str> = columns().zip(line.split(';')).collect();
            let mut count = |key: String| *analysis.counts.entry(key).or_default() += 1;
            count("packets".into());
            for name in REMARKS.into_iter().filter(|n| !row[n].is_empty()) {
                count(name.into());
            }
            for name in CHECKSUMS.into_iter().filter(|n| !row[n].is_empty()) {
                count(format!("{name}={}", row[name]));
            }
            let again = REMARKS[..3].iter().any(|name| !row[name].is_empty());
            analysis.again += u64::from(again);
            let Ok(end) = row["tcp.nxtseq"].parse::<u64>() else {
                continue;
            };
            let way = (row["tcp.stream"].into(), row["frame.interface_id"].into());
            let seen = next.entry(way).or_default();
            let out_of_order = !row["tcp.analysis.out_of_order"].is_empty();
            analysis.repeated += u64::from(out_of_order && end <= *seen);
            *seen = end.max(*seen);
        }
        analysis
    }

    fn count(&self, key: &str) -> u64 {
        self.counts.get(key).copied().unwrap_or(0)
    }
}

/// The trace with payload of zeros in full, so that every checksum can be verified.
fn in_full(from: &Path, to: &Path) {
    let mut reader = Reader::open(from).unwrap();
    let mut writer = Writer::create(to, "a test").unwrap();
    writer.interface("all", LinkType::RAW, 0).unwrap();
    while let Some(()) = reader
        .next_frame(|frame| {
            let mut data = frame.data.to_vec();
            data.resize(frame.wire_len as usize, 0);
            let record = swell_capture::Record {
                interface: 0,
                time: frame.time as u64,
                wire_len: frame.wire_len,
                heading: Heading::Unknown,
                data: &data,
            };
            writer.packet(&record).unwrap();
        })
        .unwrap()
    {}
    writer.finish().unwrap();
}

fn profiles() -> [(&'static str, Config); 6] {
    let with = |algorithm| Config {
        algorithm,
        ..Config::classic()
    };
    [
        ("reno", with(Algorithm::Reno)),
        ("newreno", with(Algorithm::NewReno)),
        ("ns2", Config::ns2_modern()),
        ("cubic-sack", Config::linux()),
        (
            "cubic-ecn",
            Config {
                ecn: true,
                ..Config::linux()
            },
        ),
        (
            "cubic-delayed",
            Config {
                sack: false,
                rack_tlp: false,
                ..Config::linux()
            },
        ),
    ]
}

/// libpcap wants all interfaces of a file to be of one type, and compares the file's number with its own.
#[test]
fn tcpdump_reads_both_interfaces() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("two.pcapng");
    let recorder =
        Recorder::create(&path, "bottleneck", SharedHeaders::new(Vec::new(), 1)).unwrap();
    recorder.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let mut types = Vec::new();
    let mut at = 0;
    while at + 10 <= bytes.len() {
        let word = |i: usize| u32::from_le_bytes(bytes[at + i..at + i + 4].try_into().unwrap());
        if word(0) == 1 {
            types.push(word(8) & 0xffff);
        }
        at += word(4) as usize;
    }
    // DLT_RAW of pcap/dlt.h on all systems but OpenBSD.
    assert_eq!(types, [12, 12]);
    let ran = Command::new("tcpdump").arg("-nr").arg(&path).output();
    if let Ok(ran) = ran {
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{said}");
    }
}

/// tshark calls a segment that does not advance the sequence number "out of order" instead of "retransmission" if the
/// last advancing segment is more recent than the handshake's RTT (3 ms without a handshake). It does so whether or not
/// it has seen the same bytes before (`tcp_analyze_sequence_number` of Wireshark 4.0). On a link that keeps the order,
/// and without missing sequence numbers, both mean a retransmission. The test therefore counts both, and checks for the
/// former that its bytes had been seen before.
#[test]
fn tshark_counts_the_retransmissions_that_the_endpoints_count() {
    if !swell_needs::programs(&["tshark"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let far = Access {
        delay: Dur::from_millis(10),
        ..Access::default()
    };
    for (name, tcp) in profiles() {
        let path = scratch.path().join(format!("{name}.pcapng"));
        let (retransmitted, arrived) = run(&path, tcp.clone(), false, far);
        let found = Analysis::of(&scratch, &path);
        assert!(retransmitted > 100, "{name}: a lossy run, {retransmitted}");
        assert_eq!(found.count("packets"), arrived, "{name}: all are there");
        let out_of_order = found.count("tcp.analysis.out_of_order");
        assert_eq!(
            found.again + out_of_order,
            retransmitted,
            "{name}: {found:?}"
        );
        assert_eq!(found.repeated, out_of_order, "{name}: {found:?}");
        for complaint in [
            "tcp.analysis.lost_segment",
            "tcp.analysis.ack_lost_segment",
            "tcp.analysis.keep_alive",
            "tcp.analysis.reused_ports",
            "tcp.analysis.zero_window",
            "_ws.malformed",
            "ip.checksum.status=0",
            "tcp.checksum.status=0",
            "udp.checksum.status=0",
        ] {
            assert_eq!(found.count(complaint), 0, "{name}, {complaint}: {found:?}");
        }
        assert_eq!(found.count("ip.checksum.status=1"), arrived, "{name}");
        let stamped = found.count("tcp.options.timestamp.tsval") > 0;
        assert_eq!(stamped, tcp.timestamps, "{name}");
    }
}

/// Compares options and ECN as read by tshark with the simulation: each echo is a timestamp sent by the other end,
/// timestamps never decrease, and windows are those of the endpoints.
#[test]
fn tshark_reads_stamps_windows_and_ecn_as_they_were_simulated() {
    if !swell_needs::programs(&["tshark"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("x.pcapng");
    let tcp = Config {
        ecn: true,
        recv_tuning: false,
        recv_buffer: 300_000,
        ..Config::linux()
    };
    run(&path, tcp, false, Access::default());
    let columns = [
        "tcp.stream",
        "frame.interface_id",
        "tcp.flags.syn",
        "tcp.flags.ack",
        "tcp.flags.ece",
        "tcp.flags.cwr",
        "ip.dsfield.ecn",
        "tcp.options.timestamp.tsval",
        "tcp.options.timestamp.tsecr",
        "tcp.options.wscale.shift",
        "tcp.window_size",
        "tcp.len",
    ];
    let mut command = Command::new("tshark");
    command.env("WIRESHARK_CONFIG_DIR", scratch.path());
    command.arg("-r").arg(&path).args(["-Y", "tcp"]);
    command.args(["-o", "tcp.relative_sequence_numbers:FALSE"]);
    command.args(["-T", "fields", "-E", "separator=;", "-E", "occurrence=f"]);
    for field in columns {
        command.args(["-e", field]);
    }
    let out = command.output().unwrap();
    assert!(out.status.success());
    // Stamps sent, by stream and interface.
    let mut sent: BTreeMap<(u64, u64), Vec<u64>> = BTreeMap::new();
    let (mut syns, mut echoes, mut capable) = (0, 0, 0);
    for line in String::from_utf8(out.stdout).unwrap().lines() {
        let row: Vec<Option<u64>> = (line.split(';'))
            .map(|field| match field {
                "True" => Some(1),
                "False" => Some(0),
                other => other.parse().ok(),
            })
            .collect();
        let flag = |i: usize| row[i] == Some(1);
        let (stream, way) = (row[0].unwrap(), row[1].unwrap());
        let (value, echo) = (row[7].unwrap(), row[8].unwrap());
        if flag(3) {
            let other = &sent[&(stream, 1 - way)];
            assert!(other.contains(&echo), "{line}");
            echoes += 1;
        } else {
            assert_eq!(echo, 0, "{line}");
        }
        let own = sent.entry((stream, way)).or_default();
        assert!(own.last().is_none_or(|&last| last <= value), "{line}");
        own.push(value);
        if flag(2) {
            syns += 1;
            // RFC 3168 section 6.1.1: ECE and CWR in the SYN, ECE alone in its answer.
            assert_eq!((flag(4), flag(5)), (true, !flag(3)), "{line}");
            // 300 000 = 2^18.2: three bits more than 16.
            assert_eq!((row[9], row[10]), (Some(3), Some(65_535)), "{line}");
            assert_eq!(row[6], Some(0), "{line}");
        } else {
            // Scaled windows are multiples of eight.
            assert_eq!(row[10], Some(300_000 >> 3 << 3), "{line}");
            if row[11] > Some(0) && row[6] == Some(2) {
                capable += 1;
            }
        }
    }
    assert!(
        syns >= 40 && echoes > 10_000 && capable > 10_000,
        "{syns} {echoes} {capable}"
    );
}

#[test]
fn every_checksum_is_right_for_payload_of_zeros() {
    if !swell_needs::programs(&["tshark"]) {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    for ipv6 in [false, true] {
        let (path, full) = (
            scratch.path().join("cut.pcapng"),
            scratch.path().join("full.pcapng"),
        );
        let (_, arrived) = run(&path, Config::linux(), ipv6, Access::default());
        in_full(&path, &full);
        let found = Analysis::of(&scratch, &full);
        let good = ["tcp", "udp"].map(|p| found.count(&format!("{p}.checksum.status=1")));
        assert!(good[0] > 10_000 && good[1] > 1_000, "{found:?}");
        assert_eq!(good[0] + good[1], arrived, "ipv6 {ipv6}: {found:?}");
    }
}

/// Compares the headers with the simulation.
#[test]
fn our_reader_finds_sizes_ports_options_and_times() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("x.pcapng");
    let (_, arrived) = run(&path, Config::linux(), false, Access::default());
    let mut reader = Reader::open(&path).unwrap();
    let (mut syns, mut sacks, mut last) = (BTreeMap::new(), 0, 0);
    let (mut largest, mut widest) = (0, 0);
    while let Some(packet) = reader.next_packet().unwrap() {
        assert!(packet.time >= last, "in the order of time");
        last = packet.time;
        assert_eq!(packet.wire_len, packet.ip_len);
        let left = |a: std::net::IpAddr| a.to_string().starts_with("10.");
        assert_eq!(left(packet.src), packet.interface == 0, "up goes right");
        assert_ne!(left(packet.src), left(packet.dst));
        match packet.transport {
            Transport::Tcp(tcp) => {
                assert!(tcp.src_port == 80 || tcp.dst_port == 80);
                assert!(tcp.options.timestamps.is_some());
                if tcp.options.sack[0].is_some() {
                    sacks += 1;
                } else {
                    // Blocks come on top of a full segment.
                    largest = largest.max(packet.ip_len);
                }
                if tcp.has(Tcp::SYN) {
                    // 6 MiB of receive window: 2^22.6 needs a shift of 7.
                    assert_eq!(tcp.options.window_scale, Some(7));
                    assert_eq!(tcp.options.mss, Some(1460));
                    assert!(tcp.options.sack_permitted && tcp.window == 64_240);
                    if !tcp.has(Tcp::ACK) {
                        let flow = (packet.src, tcp.src_port, packet.dst);
                        let same = *syns.entry(flow).or_insert(tcp.seq) == tcp.seq;
                        assert!(same, "two connections of one name");
                    }
                } else if !tcp.has(Tcp::RST) {
                    let window = u32::from(tcp.window) << 7;
                    assert!((64_240 >> 7 << 7..=6 << 20).contains(&window), "{window}");
                    widest = widest.max(window);
                }
            }
            Transport::Udp { payload, .. } => assert_eq!(payload + 28, packet.ip_len),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(reader.counts().packets, arrived);
    assert_eq!((syns.len(), largest), (20, 1500));
    assert!(sacks > 100, "{sacks}");
    assert!(widest > 0xffff, "a window that grows: {widest}");
    let again = scratch.path().join("again.pcapng");
    run(&again, Config::linux(), false, Access::default());
    assert!(std::fs::read(&path).unwrap() == std::fs::read(&again).unwrap());
}

/// A segment is stamped when its sender sends it: before it waits for the sender's own access link, if that is slow, and
/// within its jitter of some milliseconds, if there is none.
#[test]
fn timestamps_are_those_of_the_ends() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("x.pcapng");
    let slow = Access {
        up: Some(Rate::from_bps(2_000_000)),
        ..Access::default()
    };
    for (access, waits) in [(Access::default(), 0..=3), (slow, 50..=300)] {
        run(&path, Config::linux(), false, access);
        let mut reader = Reader::open(&path).unwrap();
        // The shortest and the longest time since the stamp, by sender: its clock has an offset of its own.
        let mut since: BTreeMap<_, (i64, i64)> = BTreeMap::new();
        while let Some(packet) = reader.next_packet().unwrap() {
            if let Transport::Tcp(tcp) = packet.transport {
                let (value, _) = tcp.options.timestamps.unwrap();
                let now = (packet.time / 1_000_000) as u32;
                let sender = (packet.src, tcp.src_port, tcp.dst_port);
                let took = i64::from(now.wrapping_sub(value) as i32);
                let seen = since.entry(sender).or_insert((took, took));
                *seen = (seen.0.min(took), seen.1.max(took));
            }
        }
        let longest = since.values().map(|s| s.1 - s.0).max().unwrap();
        assert!(waits.contains(&longest), "{longest} ms");
    }
}

#[test]
fn a_file_that_cannot_be_made_is_named() {
    let sources = Vec::new();
    let missing = Path::new("/nowhere/at/all.pcapng");
    let error =
        Recorder::create(missing, "bottleneck", SharedHeaders::new(sources, 1)).unwrap_err();
    assert!(
        error.to_string().starts_with("/nowhere/at/all.pcapng: "),
        "{error}"
    );
}
