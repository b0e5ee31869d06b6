//! Synthetic packets at a tap: hosts at known distances, no congestion control, and no code shared with
//! the learner.

use std::net::IpAddr;

use swell_base::{Bytes, Dur, Rate};
use swell_capture::{Packet, Tcp, TcpOptions, Transport};

pub const MSS: u32 = 1460;

/// A host at a given RTT from the tap.
#[derive(Clone, Copy)]
pub struct Host {
    address: IpAddr,
    rtt: u64,
    /// Sending rate.
    rate: u64,
}

impl Host {
    pub fn client(i: u8, rtt: Dur) -> Host {
        Host {
            address: IpAddr::from([10, 0, 0, i]),
            rtt: rtt.as_nanos(),
            rate: 100_000_000,
        }
    }
    pub fn server(i: u8, rtt: Dur) -> Host {
        Host {
            address: IpAddr::from([192, 0, 2, i]),
            rtt: rtt.as_nanos(),
            rate: 100_000_000,
        }
    }
    /// The host with the same last byte in another network.
    pub fn in_network(self, [a, b, c]: [u8; 3]) -> Host {
        let last = match self.address {
            IpAddr::V4(v4) => v4.octets()[3],
            IpAddr::V6(_) => 0,
        };
        Host {
            address: IpAddr::from([a, b, c, last]),
            ..self
        }
    }
    pub fn at(self, rate: u64) -> Host {
        Host { rate, ..self }
    }
}

/// The exchanges of a connection: (request, server think, response, client think).
#[derive(Clone, Default)]
pub struct Exchanges {
    pub turns: Vec<(u32, Dur, u32, Dur)>,
    /// Numbers of response packets lost between server and tap, and between tap and client. Each is
    /// retransmitted an RTT later.
    pub lose_before: u32,
    pub lose_beyond: u32,
}

/// The packets that pass a tap.
pub struct Tap {
    packets: Vec<Packet>,
    port: u16,
}

struct Dialogue<'a> {
    tap: &'a mut Tap,
    hosts: [Host; 2],
    port: u16,
    next: [u32; 2],
}

impl Tap {
    pub fn new() -> Tap {
        Tap {
            packets: Vec::new(),
            port: 20_000,
        }
    }

    /// The packets in time order.
    pub fn packets(mut self) -> Vec<Packet> {
        self.packets.sort_by_key(|p| p.time);
        self.packets
    }

    /// One SYN from the given port.
    pub fn syn(&mut self, at: Dur, client: Host, server: Host, port: u16) {
        let mut w = Dialogue {
            tap: self,
            hosts: [client, server],
            port,
            next: [1_000, 0],
        };
        w.send(0, at.as_nanos(), Tcp::SYN, 0);
    }

    /// A datagram from the given client port.
    pub fn datagram(&mut self, at: Dur, client: Host, server: Host, port: u16, payload: u32) {
        self.packets.push(Packet {
            time: 1_700_000_000_000_000_000 + at.as_nanos() as i64,
            wire_len: payload + 42,
            captured_len: 96,
            ip_len: payload + 28,
            src: client.address,
            dst: server.address,
            ttl: 60,
            transport: Transport::Udp {
                src_port: port,
                dst_port: 443,
                payload,
            },
            ..Packet::default()
        });
    }

    /// Gives the last datagram another server port.
    pub fn give_port(&mut self, port: u16) {
        if let Some(p) = self.packets.last_mut()
            && let Transport::Udp { dst_port, .. } = &mut p.transport
        {
            *dst_port = port;
        }
    }

    /// Turns the last datagram round: the server sent it.
    pub fn turn_last(&mut self) {
        if let Some(p) = self.packets.last_mut() {
            std::mem::swap(&mut p.src, &mut p.dst);
            if let Transport::Udp {
                src_port, dst_port, ..
            } = &mut p.transport
            {
                std::mem::swap(src_port, dst_port);
            }
        }
    }

    /// A connection whose SYN passes the tap at `start`.
    pub fn connection(&mut self, start: Dur, client: Host, server: Host, what: &Exchanges) {
        self.port += 1;
        let port = self.port;
        let mut w = Dialogue {
            tap: self,
            hosts: [client, server],
            port,
            next: [u32::from(port) * 77_777, u32::from(port) * 99_991],
        };
        let mut at = start.as_nanos();
        w.send(0, at, Tcp::SYN, 0);
        at += server.rtt;
        w.send(1, at, Tcp::SYN | Tcp::ACK, 0);
        at += client.rtt;
        w.send(0, at, Tcp::ACK, 0);
        for &(request, server_think, response, client_think) in &what.turns {
            w.send(0, at, Tcp::ACK | Tcp::PSH, request);
            at += server.rtt + server_think.as_nanos();
            at = w.response(at, response, what);
            at += client.rtt + client_think.as_nanos();
        }
        w.send(0, at, Tcp::FIN | Tcp::ACK, 0);
        at += server.rtt;
        w.send(1, at, Tcp::FIN | Tcp::ACK, 0);
        w.send(0, at + client.rtt, Tcp::ACK, 0);
    }
}

impl Dialogue<'_> {
    /// Sends the response, with its first packet passing at `at`: in flights of ten packets, an RTT apart,
    /// acknowledged by the client every second segment. Returns when the last packet passes.
    fn response(&mut self, at: u64, bytes: u32, what: &Exchanges) -> u64 {
        let [client, server] = self.hosts;
        let round_trip = client.rtt + server.rtt;
        let spacing = Rate::from_bps(server.rate)
            .transmit(Bytes(u64::from(MSS) + 40))
            .as_nanos();
        let count = bytes.div_ceil(MSS);
        let mut flight = at;
        let mut last = at;
        // When the last lost packet of a flight is retransmitted; nothing after it is acknowledged before.
        let mut whole = at;
        let first_seq = self.next[1];
        for i in 0..count {
            if i % 10 == 0 && i > 0 {
                flight = (flight + round_trip).max(last + spacing);
            }
            let t = flight + u64::from(i % 10) * spacing;
            let len = MSS.min(bytes - i * MSS);
            let seq = first_seq.wrapping_add(i * MSS);
            // Lost packets are inside the flights, every tenth packet: 3, 13, … and 5, 15, ….
            let lost_before = i % 10 == 3 && i / 10 < what.lose_before;
            let lost_beyond = i % 10 == 5 && i / 10 < what.lose_beyond;
            if !lost_before {
                self.data(t, seq, len);
            }
            if lost_before || lost_beyond {
                // Retransmitted before the next flight, an RTT after the packets behind it.
                let again = t + round_trip + 6 * spacing + 1_000_000;
                self.data(again, seq, len);
                last = last.max(again);
                whole = again;
            }
            last = last.max(t);
            if i % 2 == 1 && i % 10 > 6 && i + 1 < count {
                // After the whole flight, because ACKs in between would invalidate the packet pairs, as
                // intended.
                let ack = first_seq.wrapping_add((i + 1) * MSS);
                self.ack(t.max(whole) + client.rtt, ack);
            }
        }
        self.next[1] = first_seq.wrapping_add(bytes);
        last
    }

    fn data(&mut self, at: u64, seq: u32, payload: u32) {
        let ack = self.next[0];
        self.packet(1, at, seq, ack, Tcp::ACK, payload);
    }

    fn ack(&mut self, at: u64, ack: u32) {
        let seq = self.next[0];
        self.packet(0, at, seq, ack, Tcp::ACK, 0);
    }

    fn send(&mut self, from: usize, at: u64, flags: u8, payload: u32) {
        let (seq, ack) = (self.next[from], self.next[1 - from]);
        self.packet(from, at, seq, ack, flags, payload);
        let takes = payload + u32::from(flags & (Tcp::SYN | Tcp::FIN) != 0);
        self.next[from] = seq.wrapping_add(takes);
    }

    fn packet(&mut self, from: usize, at: u64, seq: u32, ack: u32, flags: u8, payload: u32) {
        let ports = [self.port, 80];
        self.tap.packets.push(Packet {
            time: 1_700_000_000_000_000_000 + at as i64,
            wire_len: payload + 54,
            captured_len: 96,
            ip_len: payload + 40,
            interface: 0,
            heading: swell_capture::Heading::Unknown,
            stations: [0; 2],
            fragment: 0,
            mark: 0,
            src: self.hosts[from].address,
            dst: self.hosts[1 - from].address,
            ttl: 60,
            ecn: 0,
            transport: Transport::Tcp(Tcp {
                src_port: ports[from],
                dst_port: ports[1 - from],
                seq,
                ack,
                flags,
                window: 65_535,
                payload,
                options: TcpOptions::default(),
            }),
        });
    }
}
