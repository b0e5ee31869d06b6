//! Packets of the world as a capture on the link would show them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use swell_base::{Flags, Packet, Time, UDP_HEADERS};
use swell_capture::{self as capture, Tcp, TcpOptions, Transport};
use swell_learn::{Learner, server_port};
use swell_traffic::Class;
use swell_workload::Wire;
use swell_world::{Parties, Tap};

use crate::packets::hosts::address;

/// Shift of every window scale option: up to 4 MiB.
const WINDOW_SCALE: u8 = 6;
/// What Ethernet allows (RFC 894: 1500 bytes less 40 of headers), where the model does not say.
const MSS: u16 = 1460;
/// What timestamps take of it in every segment (RFC 7323 appendix A).
const TIMESTAMPS: u16 = 12;
/// Bytes of Ethernet framing in front of a packet.
const ETHERNET: u32 = 14;

/// Shows packets to a learner.
pub(super) struct LearnerTap {
    learner: Arc<Mutex<Learner>>,
    /// Server port and whether it is UDP, by class.
    classes: Vec<(u16, bool)>,
    /// Hosts met on the left and on the right.
    hosts: [BTreeMap<u64, u32>; 2],
}

impl LearnerTap {
    pub fn new(learner: Arc<Mutex<Learner>>, classes: &[Class]) -> LearnerTap {
        let classes = classes
            .iter()
            .map(|c| (server_port(&c.name), c.udp))
            .collect();
        LearnerTap {
            learner,
            classes,
            hosts: Default::default(),
        }
    }

    /// The address of a host by its key.
    fn address(&mut self, right: bool, key: u64, ipv6: bool) -> IpAddr {
        let hosts = &mut self.hosts[usize::from(right)];
        let next = hosts.len() as u32;
        let number = *hosts.entry(key).or_insert(next);
        address(right, number, ipv6)
    }
}

impl Tap for LearnerTap {
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let [client, server] = parties.hosts;
        let ipv6 = parties.wire.ipv6;
        let client = self.address(parties.from_right, client, ipv6);
        let server = self.address(!parties.from_right, server, ipv6);
        let &(port, udp) = self
            .classes
            .get(parties.class as usize)
            .unwrap_or(&(0, false));
        // A host opens far fewer connections within a minute than there are ports.
        let ports = (1024 + (parties.conn.0 % 60_000) as u16, port);
        let (src, dst, (src_port, dst_port)) = if to_server {
            (client, server, ports)
        } else {
            (server, client, (ports.1, ports.0))
        };
        let transport = if parties.tcp {
            Transport::Tcp(header(src_port, dst_port, to_server, &parties.wire, packet))
        } else if udp {
            let payload = u32::from(packet.size).saturating_sub(UDP_HEADERS[usize::from(ipv6)]);
            Transport::Udp {
                src_port,
                dst_port,
                payload,
            }
        } else {
            // A TCP connection that never came to be is played as the sizes of its SYNs and RSTs.
            let flags = if to_server {
                Tcp::SYN
            } else {
                Tcp::RST | Tcp::ACK
            };
            Transport::Tcp(Tcp {
                src_port,
                dst_port,
                flags,
                ..Tcp::default()
            })
        };
        let ip_len = u32::from(packet.size);
        self.learner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(&capture::Packet {
                time: at.as_nanos() as i64,
                wire_len: ip_len + ETHERNET,
                captured_len: ip_len + ETHERNET,
                ip_len,
                // One for each direction: sides are seen, not guessed.
                interface: u32::from(to_server == parties.from_right),
                src,
                dst,
                ttl: 64,
                ecn: packet.seg.ecn,
                transport,
                ..capture::Packet::default()
            });
    }
}

fn header(src_port: u16, dst_port: u16, to_server: bool, wire: &Wire, packet: &Packet) -> Tcp {
    let seg = &packet.seg;
    let syn = seg.flags.has(Flags::SYN);
    let window = if syn {
        seg.window.min(0xffff)
    } else {
        (seg.window >> WINDOW_SCALE).min(0xffff)
    };
    // Sequence numbers wrap as on the wire.
    let ack = seg.ack as u32;
    let timestamps = wire.timestamps.unwrap_or(true);
    let mut options = TcpOptions {
        timestamps: timestamps.then_some((0, 0)),
        ..TcpOptions::default()
    };
    if syn {
        // An end announces what the other may send.
        let allowed = wire.ends[usize::from(to_server)].mss;
        let beside = if timestamps { TIMESTAMPS } else { 0 };
        options.mss = Some(match allowed {
            0 => MSS,
            full => full.saturating_add(beside),
        });
        options.window_scale = Some(WINDOW_SCALE);
        options.sack_permitted = true;
    }
    for (slot, (start, end)) in options.sack.iter_mut().zip(packet.sacks()) {
        *slot = Some((ack.wrapping_add_signed(start), ack.wrapping_add_signed(end)));
    }
    Tcp {
        src_port,
        dst_port,
        seq: seg.seq as u32,
        ack,
        flags: seg.flags.0,
        window: window as u16,
        payload: seg.len,
        options,
    }
}
