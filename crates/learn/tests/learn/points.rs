//! Captures at both ends of a link are learnt as one at one end.

use swell_base::Warning;
use swell_capture::{Heading, InOrder, LinkType, Packet, Reader, Record, Writer};
use swell_learn::{Learner, Options};
use swell_traffic::Model;

const MS: u64 = 1_000_000;

/// Frames as they pass two points: time, point, heading there, bytes.
#[derive(Default)]
struct Taps {
    seen: Vec<(u64, u32, Heading, Vec<u8>)>,
    idents: [u16; 2],
}

/// A segment between a client (0) and a server (1), by its sender.
struct Segment {
    from: usize,
    port: u16,
    numbers: [u32; 2],
    flags: u8,
    payload: u16,
    numbered: bool,
}

impl Taps {
    /// A segment that leaves its host at one time, and reaches the other at another one unless it is lost.
    fn pass(&mut self, six: bool, at: u64, arrives: Option<u64>, s: &Segment) {
        let ident = &mut self.idents[s.from];
        *ident += 1;
        let number = if s.numbered { *ident } else { 0 };
        let length = 20 + s.payload;
        let hosts = match six {
            true => [1u8, 2].map(|n| {
                let mut address = vec![0x20, 1, 0xd, 0xb8];
                address.resize(15, 0);
                address.push(n);
                address
            }),
            false => [vec![198, 18, 0, 1], vec![198, 19, 0, 1]],
        };
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        match six {
            true => {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                frame.extend(length.to_be_bytes());
                frame.extend([6, 64]);
            }
            false => {
                frame.extend([8, 0, 0x45, 0]);
                frame.extend((length + 20).to_be_bytes());
                frame.extend(number.to_be_bytes());
                frame.extend([0x40, 0, 64, 6, 0, 0]);
            }
        }
        frame.extend(&hosts[s.from]);
        frame.extend(&hosts[1 - s.from]);
        let ports = [s.port, 80];
        for port in [ports[s.from], ports[1 - s.from]] {
            frame.extend(port.to_be_bytes());
        }
        s.numbers.iter().for_each(|n| frame.extend(n.to_be_bytes()));
        // The checksum is no true one, but differs as true ones do.
        let sum = (s.numbers[0] ^ s.numbers[1].rotate_left(7)) as u16 | 1;
        frame.extend([0x50, s.flags, 0xff, 0xff]);
        frame.extend(sum.to_be_bytes());
        frame.extend([0, 0]);
        frame.resize(frame.len() + usize::from(s.payload), 0);
        let ends = [s.from, 1 - s.from].map(|point| point as u32);
        self.seen
            .push((at, ends[0], Heading::Outbound, frame.clone()));
        if let Some(arrives) = arrives {
            self.seen.push((arrives, ends[1], Heading::Inbound, frame));
        }
    }

    /// A request and its response over a link that delays by so much and takes 0.6 ms per segment. One segment in 40 is
    /// lost, and sent again 200 ms later.
    fn exchange(&mut self, six: bool, start: u64, port: u16, segments: u32, delay: u64) {
        let (client, server) = (u32::from(port) << 16, u32::from(port) << 15);
        let segment = |from: usize, numbers, flags, payload| Segment {
            from,
            port,
            numbers,
            flags,
            payload,
            numbered: flags != 0x12,
        };
        let mut send = |at, arrives, s: &Segment| self.pass(six, at, arrives, s);
        let mut up = |at: u64, s: Segment| {
            send(at, Some(at + delay), &s);
            at + delay
        };
        let at = up(start, segment(0, [client, 0], 0x02, 0));
        let answer = at + MS / 10;
        let back = answer + delay;
        let request = back + MS / 10;
        up(request, segment(0, [client + 1, server + 1], 0x10, 0));
        let asked = up(request + 1, segment(0, [client + 1, server + 1], 0x18, 80));
        self.pass(
            six,
            answer,
            Some(back),
            &segment(1, [server, client + 1], 0x12, 0),
        );
        let mut free = asked + 5 * MS;
        let mut read = 0;
        for i in 0..segments {
            let sent = asked + 5 * MS + u64::from(i) * 2_000;
            let data = segment(1, [server + 1 + 1448 * i, client + 81], 0x10, 1448);
            free = free.max(sent) + 600_000;
            let lost = (i + u32::from(port)) % 40 == 39;
            let arrives = free + delay;
            self.pass(six, sent, (!lost).then_some(arrives), &data);
            let ack = |n: u32| segment(0, [client + 81, server + 1 + 1448 * n], 0x10, 0);
            if lost {
                self.pass(six, sent + 200 * MS, Some(arrives + 200 * MS), &data);
                let all = arrives + 201 * MS;
                self.pass(six, all, Some(all + delay), &ack(segments));
            } else {
                read += 1;
                let acked = arrives + MS / 10;
                self.pass(six, acked, Some(acked + delay), &ack(read));
            }
        }
        let end = free + 2 * delay + 300 * MS;
        let last = server + 1 + 1448 * segments;
        let fin = segment(0, [client + 81, last], 0x11, 0);
        self.pass(six, end, Some(end + delay), &fin);
        let closed = end + delay + MS;
        let fin_back = segment(1, [last, client + 82], 0x11, 0);
        self.pass(six, closed, Some(closed + delay), &fin_back);
    }

    /// A file of what one of the points sees, or both.
    fn file(&self, point: Option<u32>) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), "a test").expect("memory suffices");
        for name in ["client", "server"] {
            let number = writer.interface(name, LinkType::ETHERNET, 65_535);
            number.expect("memory suffices");
        }
        let mut seen: Vec<_> = self.seen.iter().collect();
        seen.sort_by_key(|s| s.0);
        for (time, on, heading, frame) in seen {
            if point.is_none_or(|p| p == *on) {
                let record = Record {
                    interface: *on,
                    time: 1_700_000_000_000_000_000 + time,
                    wire_len: frame.len() as u32,
                    heading: *heading,
                    data: frame,
                };
                writer.packet(&record).expect("memory suffices");
            }
        }
        writer.finish().expect("memory suffices")
    }
}

fn learn(file: &[u8]) -> (Model, Vec<Warning>) {
    let mut reader = InOrder::new(Reader::new(file).expect("it opens"));
    let mut learner = Learner::new(Options::default());
    let mut packet = Packet::default();
    while reader.read_into(&mut packet).expect("it is whole") {
        learner.push(&packet);
    }
    (learner.finish(), reader.doubts())
}

/// A file with an interface for each end holds each packet twice, a delay apart, in either direction first at its
/// sender, and those that were lost once. The model is that of the first end alone.
#[test]
fn both_ends_are_learnt_as_one() {
    for (six, delay, segments) in [
        (false, 15, 90),
        (true, 15, 90),
        (false, 6, 4),
        (true, 300, 30),
        (false, 700, 30),
    ] {
        let mut taps = Taps::default();
        for i in 0..60u16 {
            let start = u64::from(i) * 2_900 * MS;
            taps.exchange(six, start, 40_000 + i, segments, delay * MS);
        }
        let (both, doubts) = learn(&taps.file(None));
        let (one, clean) = learn(&taps.file(Some(0)));
        assert!(
            both == one,
            "{six}, {delay} ms: {:?} and {:?}",
            both.totals,
            one.totals
        );
        let codes: Vec<&str> = doubts.iter().map(|w| w.code.as_str()).collect();
        assert_eq!((codes, clean.len()), (vec!["captured-twice"], 0));
        let rtt = one.client_paths[0].rtt + one.server_paths[0].rtt;
        assert!(rtt.as_nanos() > 2 * delay * MS, "{delay} ms: {rtt}");
    }
}
