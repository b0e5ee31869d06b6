//! Packets made of arbitrary bytes, and properties that must always hold. Shared with the fuzzer.

use std::net::IpAddr;

use swell_base::Code;
use swell_capture::{Heading, Packet, Tcp, TcpOptions, Transport};
use swell_learn::{Learner, Options};
use swell_traffic::{Exchange, Model};

/// Number of bytes that make one packet.
const EACH: usize = 14;

/// Few hosts and ports, so that packets meet. Times mostly advance, and sometimes jump far ahead or back.
/// Sequence numbers are mostly close to each other, and sometimes arbitrary.
pub fn packets(data: &[u8]) -> Vec<Packet> {
    let mut time = 1_700_000_000_000_000_000i64;
    data.as_chunks::<EACH>()
        .0
        .iter()
        .map(|b| packet(b, &mut time))
        .collect()
}

fn packet(b: &[u8; EACH], time: &mut i64) -> Packet {
    // At most half a second, sometimes a minute: a trace of days has millions of bins.
    let step = i64::from(b[1]) << (b[0] % 12);
    *time = match b[0] >> 5 {
        7 => time.saturating_sub(step),
        6 => time.saturating_add(step * 100_000),
        _ => time.saturating_add(step * 1_000),
    };
    let host = |n: u8| match n % 8 {
        7 => IpAddr::from([0xff02, 0, 0, 0, 0, 0, 0, 1]),
        6 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(n)]),
        5 => IpAddr::from([10, 0, 0, n % 16]),
        _ => IpAddr::from([192, 0, 2, n % 16]),
    };
    let ports = [443, 53, 40_000, 40_001];
    let [src_port, dst_port] = [b[3] & 3, b[3] >> 2 & 3].map(|i| ports[usize::from(i)]);
    let payload = u32::from(u16::from_be_bytes([b[5], b[6]])) >> (b[4] & 7);
    let number = |high: u8, low: u8| match high {
        255 => u32::from(low) << 24,
        _ => u32::from(u16::from_be_bytes([high, low])) * 7,
    };
    let transport = match b[4] >> 3 & 7 {
        0 => Transport::Icmp,
        1 => Transport::Fragment,
        2 | 3 => Transport::Udp {
            src_port,
            dst_port,
            // At most what fits into a datagram over IPv4.
            payload: payload.min(65_507),
        },
        _ => Transport::Tcp(Tcp {
            src_port,
            dst_port,
            seq: number(b[7], b[8]),
            ack: number(b[9], b[10]),
            flags: b[11],
            window: u16::from(b[12]) * 200,
            payload,
            options: TcpOptions {
                window_scale: (b[12] & 1 == 1).then_some(b[12] >> 3),
                mss: (b[12] & 2 == 2).then_some(u16::from(b[12]) * 6),
                ..TcpOptions::default()
            },
        }),
    };
    Packet {
        time: *time,
        ip_len: payload + 40,
        interface: u32::from(b[13] & 3),
        heading: match b[13] >> 2 & 3 {
            1 => Heading::Inbound,
            2 => Heading::Outbound,
            _ => Heading::Unknown,
        },
        stations: [u64::from(b[13] >> 4 & 3), u64::from(b[13] >> 6)],
        mark: 0,
        src: host(b[2] & 15),
        dst: host(b[2] >> 4),
        transport,
        ..Packet::default()
    }
}

/// The checked model of the packets.
///
/// # Panics
/// If it is inconsistent or bytes are lost.
pub fn learnt(packets: &[Packet], preview: usize) -> Model {
    let mut learner = Learner::new(Options {
        preview,
        budget: usize::MAX,
        ..Options::default()
    });
    packets.iter().for_each(|p| learner.push(p));
    let model = learner.finish();
    model.check().expect("a learnt model holds together");
    let again = Model::from_slice(model.to_json().as_bytes()).expect("and can be read");
    assert_eq!(again, model);
    let passed: u64 = packets.iter().map(|p| u64::from(p.ip_len)).sum();
    let counted = model.totals.bytes.iter().sum::<u64>();
    assert_eq!(model.load.bytes.iter().flatten().sum::<u64>(), counted);
    if model
        .warnings
        .iter()
        .any(|w| w.code == Code::RepeatedCapture)
    {
        // Repeated packets count once.
        assert!(counted < passed);
        return model;
    }
    assert_eq!(counted, passed);
    // All datagrams are in flows, to the byte.
    let sent: u64 = packets
        .iter()
        .map(|p| match p.transport {
            Transport::Udp { payload, .. } => u64::from(payload),
            _ => 0,
        })
        .sum();
    let held: u64 = model
        .sessions
        .iter()
        .flat_map(|s| s.connections())
        .filter(|c| matches!(c.exchange, Exchange::Datagrams(_)))
        .map(|c| c.exchange.bytes().iter().sum::<u64>())
        .sum();
    // QUIC's ACKs and headers are not data.
    let quic = |c: &swell_traffic::Connection| c.wire.timestamps == Some(false);
    let talks = |s: &swell_traffic::Session| {
        model.classes[s.class as usize].udp && s.connections().any(quic)
    };
    if model.sessions.iter().any(talks) {
        assert!(held <= sent);
    } else {
        assert_eq!(held, sent);
    }
    model
}
