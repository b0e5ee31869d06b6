//! `swell learn --listen`: exporters of every protocol on a real socket.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command};

use serde_json::Value;

use super::{Scratch, swell, text};

/// A collector on a port of its own.
struct Collector {
    dir: Scratch,
    child: Child,
    socket: UdpSocket,
}

impl Collector {
    fn new(name: &str) -> Collector {
        let dir = Scratch::new(name);
        let args = ["--json", "learn", "--listen", "127.0.0.1:0"];
        let mut child = swell(&dir)
            .args(args)
            .args(["--interval", "60s"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.as_mut().unwrap())
            .read_line(&mut said)
            .unwrap();
        let address = said.split(' ').nth(2).unwrap().trim_end_matches(';');
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(address).unwrap();
        Collector { dir, child, socket }
    }

    fn send(&self, message: &[u8]) {
        self.socket.send(message).unwrap();
    }

    /// Stops the collector and returns the model's summary and the counts. Everything sent before is included.
    fn finish(self) -> (Value, Value) {
        let id = self.child.id().to_string();
        let kill = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(kill.success());
        let out = self.child.wait_with_output().unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        assert!(self.dir.0.join("collected.json").exists());
        let value: Value = serde_json::from_slice(&out.stdout).unwrap();
        (value["summary"].clone(), value["traces"][0].clone())
    }
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}

fn halves(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}

/// A set: id, length, content.
fn set(id: u16, content: &[u8]) -> Vec<u8> {
    [halves(&[id, 4 + content.len() as u16]), content.to_vec()].concat()
}

/// A record of ten packets from a server, 10 000 bytes of payload: from 192.0.2.1:80 to 10.0.0.1 and `port`. The times
/// are in the protocol's unit: milliseconds of uptime or seconds.
fn flow(port: u16, first: u32, last: u32) -> Vec<u8> {
    [
        vec![192, 0, 2, 1, 10, 0, 0, 1],
        halves(&[80, port]),
        vec![6, 0x1b],
        words(&[10, 10_400, first, last]),
    ]
    .concat()
}

/// The template of [`flow`], whose last two elements are times, and one with an interface in front.
fn template(id: u16, times: [u16; 2], interface: bool) -> Vec<u8> {
    let mut fields = vec![
        (8, 4),
        (12, 4),
        (7, 2),
        (11, 2),
        (4, 1),
        (6, 1),
        (2, 4),
        (1, 4),
    ];
    fields.extend(times.map(|t| (t, 4)));
    if interface {
        fields.insert(0, (10, 2));
    }
    let list: Vec<u16> = fields
        .iter()
        .flat_map(|&(kind, length)| [kind, length])
        .collect();
    halves(&[&[id, fields.len() as u16], &list[..]].concat())
}

#[test]
fn netflow_5() {
    let c = Collector::new("collect-5");
    c.send(b"no message at all");
    // One record per message, of 10 packets and 10400 bytes; uptime 10 s.
    for i in 0..5u8 {
        let mut message = vec![0, 5, 0, 1, 0, 0, 0x27, 0x10, 0, 0, 0x03, 0xe8 + i];
        message.extend([0, 0, 0, 0, 0, 0, 0, i, 0, 0, 0, 0]);
        message.extend([192, 0, 2, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 2]);
        message.extend([
            0, 0, 0, 10, 0, 0, 0x28, 0xa0, 0, 0, 0x26, 0x10, 0, 0, 0x27, 0x10,
        ]);
        message.extend([0, 80, 0x9c, 0x40 + i, 0, 0x1b, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        c.send(&message);
    }
    let (summary, _) = c.finish();
    assert_eq!(
        (&summary["records"], &summary["bytes_down"]),
        (&5.into(), &50_000.into())
    );
}

/// RFC 3954: messages are counted by their sequence numbers.
#[test]
fn netflow_9_of_two_domains_with_a_late_template_and_a_gap() {
    let c = Collector::new("collect-9");
    let message = |domain: u32, sequence: u32, sets: &[Vec<u8>]| {
        let head = [
            halves(&[9, sets.len() as u16]),
            words(&[10_000, 1_000, sequence, domain]),
        ];
        c.send(&[head.concat(), sets.concat()].concat());
    };
    // Domain 1: data before its template. Domain 2 has another template of the same number.
    message(
        1,
        0,
        &[set(
            256,
            &[flow(4_000, 9_000, 9_500), flow(4_001, 9_000, 9_500)].concat(),
        )],
    );
    let with_interface = [vec![0, 7], flow(4_100, 9_000, 9_500)].concat();
    message(
        2,
        50,
        &[
            set(0, &template(256, [22, 21], true)),
            set(256, &with_interface),
        ],
    );
    message(1, 1, &[set(0, &template(256, [22, 21], false))]);
    // Three messages of domain 1 are lost, none of domain 2.
    message(1, 5, &[set(256, &flow(4_002, 9_000, 9_500))]);
    message(
        2,
        51,
        &[set(
            256,
            &[&[0, 8], &flow(4_101, 9_000, 9_500)[..]].concat(),
        )],
    );
    let (summary, counts) = c.finish();
    assert_eq!(
        (&summary["records"], &summary["bytes_down"]),
        (&5.into(), &50_000.into())
    );
    told(
        &counts,
        &[
            ("messages", 5),
            ("sequence_gaps", 1),
            ("missing", 3),
            ("sets_late", 1),
            ("templates", 2),
        ],
    );
}

/// RFC 7011: data records are counted by sequence numbers; lengths are in the header.
#[test]
fn ipfix_of_two_domains_with_a_late_template_and_a_gap() {
    let c = Collector::new("collect-10");
    let message = |domain: u32, sequence: u32, sets: &[Vec<u8>]| {
        let body = sets.concat();
        let head = [
            halves(&[10, 16 + body.len() as u16]),
            words(&[1_000, sequence, domain]),
        ];
        c.send(&[head.concat(), body].concat());
    };
    // Seconds (elements 150 and 151).
    message(
        1,
        0,
        &[set(
            300,
            &[flow(4_000, 900, 901), flow(4_001, 900, 901)].concat(),
        )],
    );
    let with_interface = [vec![0, 7], flow(4_100, 900, 901)].concat();
    message(
        2,
        70,
        &[
            set(2, &template(300, [150, 151], true)),
            set(300, &with_interface),
        ],
    );
    message(1, 2, &[set(2, &template(300, [150, 151], false))]);
    // Eight records of domain 1 are lost, none of domain 2.
    message(1, 10, &[set(300, &flow(4_002, 900, 901))]);
    message(
        2,
        71,
        &[set(300, &[&[0, 8], &flow(4_101, 900, 901)[..]].concat())],
    );
    let (summary, counts) = c.finish();
    assert_eq!(
        (&summary["records"], &summary["bytes_down"]),
        (&5.into(), &50_000.into())
    );
    told(
        &counts,
        &[
            ("messages", 5),
            ("sequence_gaps", 1),
            ("missing", 8),
            ("sets_late", 1),
            ("templates", 2),
        ],
    );
}

/// "sFlow Version 5", section 5: two sub-agents, each of which counts its datagrams.
#[test]
fn sflow_of_two_sub_agents_with_a_gap() {
    let c = Collector::new("collect-sflow");
    let datagram = |agent: u32, sequence: u32, port: u16| {
        // Ethernet, IPv4 and TCP headers of a segment with 1460 bytes; the first 54 bytes of its 1514.
        let mut header = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        header.extend([
            0x45, 0, 0x05, 0xdc, 0, 1, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 10, 0, 0, 1,
        ]);
        header.extend(halves(&[80, port]));
        header.extend(words(&[1, 1]));
        header.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        let length = header.len() as u32;
        header.resize(header.len().next_multiple_of(4), 0);
        let record = [
            words(&[1, 16 + header.len() as u32, 1, 1_514, 0, length]),
            header,
        ]
        .concat();
        // The sampling rate is one packet in ten.
        let sample = [words(&[sequence, 1, 10, 1_000, 0, 1, 2, 1]), record].concat();
        let head = [
            words(&[5, 1]),
            vec![127, 0, 0, 1],
            words(&[agent, sequence, 10_000, 1]),
        ];
        c.send(&[head.concat(), words(&[1, sample.len() as u32]), sample].concat());
    };
    for sequence in 1..=3 {
        datagram(0, sequence, 4_000);
    }
    datagram(1, 90, 4_001);
    // Five datagrams of the first sub-agent are lost, none of the second.
    datagram(0, 9, 4_000);
    datagram(1, 91, 4_001);
    let (summary, counts) = c.finish();
    // Six packets of 1460 bytes, each of which represents ten.
    assert_eq!(
        (&summary["records"], &summary["bytes_down"]),
        (&6.into(), &87_600.into())
    );
    told(
        &counts,
        &[("messages", 6), ("sequence_gaps", 1), ("missing", 5)],
    );
}

fn told(counts: &Value, expected: &[(&str, u64)]) {
    for &(what, n) in expected {
        assert_eq!(counts[what], n, "{what} of {counts}");
    }
}
