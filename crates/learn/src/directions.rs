//! Splits a trace into one packet sequence per direction, as a replay needs.

use swell_base::{Code, Dur, Severity, Warning};
use swell_capture::Packet;

use crate::clock::{Clock, Oddities};
use crate::doubts::{coarse, leaps, percent, repeated, sides_voted, super_packets};
use crate::hosts::Hosts;
use crate::repeats::Repeats;
use crate::sides::Network;
use crate::superpackets::LARGEST_PACKET;

/// Longer silences are reported: the clock was set, or captures were joined.
const SILENCE: Dur = Dur::from_secs(60);

/// Packets whose stamps tell the clock's resolution.
const PREVIEW: usize = 50_000;

/// The packets of a trace by direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Directions {
    /// Packets from inside to outside (left to right, up) and from outside to inside, ordered by time.
    /// Each has the time since the first packet of the trace and the network-layer bytes.
    pub packets: [Vec<(Dur, u32)>; 2],
    /// Time from the first packet to the last.
    pub duration: Dur,
    /// Number of packets between two hosts on the same side; they are in neither sequence.
    pub left_out: u64,
    /// Number of packets that the trace holds twice; they count once.
    pub repeated: u64,
    /// Number of packets stamped more than five seconds before one that came earlier; they have the time of
    /// the latest.
    pub late: u64,
    /// Longest time without a packet.
    pub silence: Dur,
    /// Number of unconnected host groups whose sides were decided by a vote each, and the number of hosts
    /// in them.
    pub voted: (u64, u64),
    clock: Oddities,
    /// Resolution of a coarse clock, nanoseconds.
    tick: Option<u64>,
}

impl Directions {
    /// Network-layer bytes by direction.
    pub fn bytes(&self) -> [u64; 2] {
        self.packets
            .each_ref()
            .map(|way| way.iter().map(|p| u64::from(p.1)).sum())
    }

    /// Time after which an endless replay starts the trace again: its duration plus one mean gap, so that
    /// the mean rate is preserved.
    pub fn period(&self) -> Dur {
        let gaps = (self.packets[0].len() + self.packets[1].len()).saturating_sub(1) as u64;
        // A trace of one packet has no gap; a second is as good as any.
        let gap = match gaps {
            0 => Dur::from_secs(1),
            n => Dur::from_nanos((self.duration.as_nanos() / n).max(1)),
        };
        self.duration + gap
    }

    /// Warnings about the trace.
    pub fn doubts(&self) -> Vec<Warning> {
        let mut doubts = Vec::new();
        let packets = (self.packets[0].len() + self.packets[1].len()) as u64;
        if self.left_out > 0 {
            let share = self.left_out as f64 / (packets + self.left_out) as f64;
            let text = format!(
                "{} packets ({:.2} %) are between hosts of one side and are left out",
                self.left_out,
                share * 100.0
            );
            let severity = if share > 0.05 {
                Severity::Warning
            } else {
                Severity::Note
            };
            doubts.push(Warning {
                severity,
                code: Code::OneSide,
                message: text,
            });
        }
        doubts.extend(sides_voted(self.voted));
        let larger = self.packets.iter().flatten().map(|p| u64::from(p.1));
        let larger: u64 = larger.filter(|&size| size > LARGEST_PACKET.into()).sum();
        let bytes: u64 = self.bytes().iter().sum();
        doubts.extend(super_packets(
            percent(larger as f64, bytes as f64),
            "A replay sends the segments of each at once, in bursts that no link carries",
        ));
        doubts.extend(repeated(self.repeated));
        leaps(&self.clock, &mut doubts);
        doubts.extend(coarse(self.tick));
        if self.late > 0 {
            doubts.push(Warning::warning(
                Code::TimeStepsBack,
                format!(
                    "{} packets are stamped more than 5 s before one that came earlier: they have the time of the \
                     latest",
                    self.late
                ),
            ));
        }
        if self.silence > SILENCE {
            doubts.push(Warning::warning(
                Code::Silence,
                format!(
                    "no packet for {:.0} of {:.0} s: the clock was set, or captures were joined; the replay is silent as long",
                    self.silence.as_secs_f64(),
                    self.duration.as_secs_f64()
                ),
            ));
        }
        doubts
    }
}

/// Assigns a direction to each packet of a trace. It decides the hosts' sides by the same rules as
/// [`Learner`](crate::Learner), and it takes leaps of the clock out by the same rules. So a replay of a
/// trace and traffic from its model flow in the same directions, and last as long.
#[derive(Debug)]
pub struct Splitter {
    hosts: Hosts,
    repeats: Repeats,
    clock: Clock,
    /// A packet stamped far ahead, held until the next one confirms its time.
    leapt: Option<Seen>,
    late: u64,
    packets: Vec<Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    time: i64,
    size: u32,
    from: u32,
    /// [`NOBODY`](crate::hosts::NOBODY) if the destination is a multicast or broadcast address.
    to: u32,
}

impl Splitter {
    /// Creates a splitter that has seen no packets.
    #[expect(
        clippy::new_without_default,
        reason = "the learner beside it has no default either"
    )]
    pub fn new() -> Splitter {
        Splitter::with_inside(Vec::new())
    }

    /// Creates a splitter with these networks inside; all others are outside.
    pub fn with_inside(inside: Vec<Network>) -> Splitter {
        Splitter {
            hosts: Hosts::new(inside),
            repeats: Repeats::new(),
            clock: Clock::default(),
            leapt: None,
            late: 0,
            packets: Vec::new(),
        }
    }

    /// Adds the next packet. About 24 bytes of it are kept.
    pub fn push(&mut self, p: &Packet) {
        if self.repeats.again(p) {
            return;
        }
        if self.packets.len() < PREVIEW {
            self.clock.ticks(p.time);
        }
        let [from, to] = self.hosts.witness(p);
        if let Some(mut leapt) = self.leapt.take() {
            if self.clock.far_off(leapt.time, p.time) {
                leapt.time = self.clock.stamp();
            }
            self.keep(leapt);
        }
        let seen = Seen {
            time: p.time,
            size: p.ip_len,
            from,
            to,
        };
        if self.clock.leaps(p.time) {
            self.leapt = Some(seen);
        } else {
            self.keep(seen);
        }
    }

    /// Keeps a packet, with the leaps of the clock taken out of its time.
    fn keep(&mut self, mut seen: Seen) {
        self.clock.advance(seen.time);
        let own = self.clock.own(seen.time);
        self.late += u64::from(own.is_none());
        seen.time = own.unwrap_or(self.clock.now() as i64);
        self.packets.push(seen);
    }

    /// Returns all packets by direction, sorted by time.
    pub fn finish(mut self) -> Directions {
        // A packet held back has no successor that could confirm its time.
        if let Some(mut leapt) = self.leapt.take() {
            if self.clock.incredible(leapt.time) {
                leapt.time = self.clock.stamp();
            }
            self.keep(leapt);
        }
        self.hosts.decide();
        self.packets.sort_by_key(|p| p.time);
        let mut directions = Directions {
            repeated: self.repeats.packets,
            late: self.late,
            clock: self.clock.odd,
            tick: self.clock.coarse(),
            ..Directions::default()
        };
        let Some(first) = self.packets.first().map(|p| p.time) else {
            return directions;
        };
        let mut before = Dur::ZERO;
        for p in std::mem::take(&mut self.packets) {
            let at = Dur::from_nanos(p.time.abs_diff(first));
            directions.silence = directions.silence.max(at.saturating_sub(before));
            before = at;
            match self.outward(p) {
                Some(outward) => directions.packets[usize::from(!outward)].push((at, p.size)),
                None => directions.left_out += 1,
            }
        }
        directions.duration = before;
        let bytes = directions.bytes().iter().sum();
        directions.voted = self.hosts.voted(bytes);
        directions
    }

    /// Whether a packet goes from inside to outside; `None` if it stays on one side.
    fn outward(&mut self, p: Seen) -> Option<bool> {
        self.hosts.leaves([p.from, p.to], p.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    use swell_capture::{Tcp, Transport};

    fn ip(a: u8, d: u8) -> IpAddr {
        IpAddr::from([a, 0, 0, d])
    }

    fn udp(ms: i64, src: IpAddr, dst: IpAddr, size: u32) -> Packet {
        Packet {
            time: ms * 1_000_000,
            ip_len: size,
            src,
            dst,
            transport: Transport::Udp {
                src_port: 1000,
                dst_port: 2000,
                payload: size - 28,
            },
            ..Packet::default()
        }
    }

    fn split(packets: &[Packet]) -> Directions {
        let mut splitter = Splitter::new();
        packets.iter().for_each(|p| splitter.push(p));
        splitter.finish()
    }

    #[test]
    fn private_addresses_are_inside_and_times_are_put_in_order() {
        let (inside, outside) = (ip(10, 1), ip(198, 9));
        let got = split(&[
            udp(5, outside, inside, 100),
            udp(9, inside, outside, 200),
            udp(7, outside, inside, 300),
        ]);
        let ms = Dur::from_millis;
        assert_eq!(got.packets[0], [(ms(4), 200)]);
        assert_eq!(got.packets[1], [(ms(0), 100), (ms(2), 300)]);
        assert_eq!((got.duration, got.left_out), (ms(4), 0));
        assert_eq!(got.bytes(), [200, 400]);
        assert_eq!(got.period(), ms(6));
        assert_eq!(got.silence, ms(2));
    }

    #[test]
    fn who_opens_connections_is_inside_whatever_its_address() {
        let (opener, server) = (ip(198, 1), ip(10, 2));
        let syn = Packet {
            transport: Transport::Tcp(Tcp {
                src_port: 1,
                dst_port: 80,
                seq: 1,
                ack: 0,
                flags: Tcp::SYN,
                window: 1,
                payload: 0,
                options: swell_capture::TcpOptions::default(),
            }),
            ..udp(1, opener, server, 60)
        };
        let got = split(&[udp(0, server, opener, 500), syn]);
        assert_eq!(got.packets[0].len(), 1);
        assert_eq!(got.packets[1], [(Dur::ZERO, 500)]);
    }

    #[test]
    fn what_stays_on_one_side_is_left_out_and_told() {
        let (a, b, out) = (ip(10, 1), ip(10, 2), ip(198, 9));
        let chat = udp(2, a, b, 80);
        let got = split(&[udp(0, a, out, 100), udp(1, b, out, 100), chat]);
        assert_eq!(got.left_out, 1);
        let doubts = got.doubts();
        assert_eq!((doubts.len(), &doubts[0].code), (1, &Code::OneSide));
    }

    #[test]
    fn messages_to_groups_and_from_routers_follow_who_is_known() {
        let (a, out, router) = (ip(10, 1), ip(198, 9), ip(203, 7));
        let icmp = Packet {
            transport: Transport::Icmp,
            ..udp(1, router, a, 56)
        };
        let group_message = udp(2, a, IpAddr::from([239, 1, 1, 1]), 90);
        let got = split(&[udp(0, a, out, 100), icmp, group_message]);
        assert_eq!(got.packets[0].len(), 2);
        assert_eq!(got.packets[1], [(Dur::from_millis(1), 56)]);
    }

    /// ESP, tunnels, SCTP, ICMP, and what was captured too short for its transport header.
    #[test]
    fn packets_without_ports_have_a_direction_too() {
        let (a, b) = (ip(10, 1), ip(198, 9));
        let kinds = [
            Transport::Other(50),
            Transport::Other(4),
            Transport::Other(132),
            Transport::Icmp,
            Transport::Truncated(6),
            Transport::Fragment,
        ];
        for transport in kinds {
            let of = |p: Packet| Packet { transport, ..p };
            // The peer sends first.
            let trace = [of(udp(0, b, a, 1_300)), of(udp(1, a, b, 60))];
            let got = split(&trace);
            assert_eq!(got.bytes(), [60, 1_300], "{transport:?}");
            assert_eq!(got.doubts(), []);
            let mut other = Splitter::with_inside(vec!["198.0.0.0/8".parse().unwrap()]);
            trace.iter().for_each(|p| other.push(p));
            assert_eq!(other.finish().bytes(), [1_300, 60], "{transport:?}");
            // Nothing tells the sides of two public addresses.
            let (c, d) = (ip(198, 1), ip(203, 2));
            let public = split(&[of(udp(0, c, d, 80)), of(udp(1, d, c, 1_300))]);
            assert_eq!(public.bytes(), [80, 1_300]);
            assert_eq!(public.doubts()[0].code, Code::SidesVoted, "{transport:?}");
            let group = of(udp(0, c, IpAddr::from([239, 1, 1, 1]), 900));
            assert_eq!(split(&[group]).doubts()[0].code, Code::SidesVoted);
            // Little of it beside other traffic is no doubt.
            let mut much: Vec<Packet> = (0..200).map(|i| udp(i, a, d, 900)).collect();
            much.iter_mut().for_each(|p| p.time += 1_000);
            much.push(group);
            assert_eq!(split(&much).doubts(), []);
        }
    }

    #[test]
    fn nothing_is_no_trace() {
        assert_eq!(split(&[]), Directions::default());
        assert!(Directions::default().period() > Dur::ZERO);
    }

    #[test]
    fn long_silence_is_told() {
        let (a, out) = (ip(10, 1), ip(198, 9));
        let got = split(&[udp(0, a, out, 100), udp(61_000, a, out, 100)]);
        assert_eq!(got.doubts()[0].code, Code::Silence);
    }

    #[test]
    fn packets_larger_than_links_carry_are_told() {
        let (a, out) = (ip(10, 1), ip(198, 9));
        let told = |size: u32, more: i64| {
            let mut packets: Vec<Packet> = (0..more).map(|i| udp(i, a, out, 1_000)).collect();
            packets.push(udp(more, a, out, size));
            let found = split(&packets).doubts();
            found.first().map(|w| (w.code.clone(), w.severity))
        };
        let joined = |severity| Some((Code::SuperPackets, severity));
        assert_eq!(told(9_216, 10), None);
        assert_eq!(told(20_000, 10), joined(Severity::Warning));
        assert_eq!(told(20_000, 1_000), joined(Severity::Note));
    }

    #[test]
    fn a_coarse_clock_is_told() {
        let (a, out) = (ip(10, 1), ip(198, 9));
        let doubts = |ms: i64| {
            let packets: Vec<Packet> = (0..200).map(|i| udp(i / 10 * ms, a, out, 100)).collect();
            let found = split(&packets).doubts();
            found.first().map(|w| (w.code.clone(), w.severity))
        };
        let coarse = |severity| Some((Code::CoarseClock, severity));
        assert_eq!(doubts(1_000), coarse(Severity::Warning));
        assert_eq!(doubts(7), coarse(Severity::Note));
    }

    /// Neither a wrong stamp nor a clock that was set stretches the trace over decades.
    #[test]
    fn leaps_of_the_clock_are_taken_out() {
        let (a, out) = (ip(10, 1), ip(198, 9));
        let now = 1_700_000_000_000;
        let trace = |at: i64| (0..20).map(move |i| udp(at + 100 * i, a, out, 100));
        let lasts = Dur::from_millis(1_900);
        for (wrong, place, code) in [
            (0, 0, Code::ClockSet),
            (0, 10, Code::TimeStepsBack),
            (0, 20, Code::TimeStepsBack),
            (2 * now, 10, Code::FarOffTimes),
            (2 * now, 20, Code::FarOffTimes),
        ] {
            let mut packets: Vec<Packet> = trace(now).collect();
            packets.insert(place, udp(wrong, a, out, 100));
            let got = split(&packets);
            assert_eq!(got.packets[0].len(), 21);
            assert_eq!(got.duration, lasts, "{wrong} at {place}");
            let codes: Vec<Code> = got.doubts().into_iter().map(|w| w.code).collect();
            assert_eq!(codes, [code], "{wrong} at {place}");
        }
        let set: Vec<Packet> = trace(0).chain(trace(now)).collect();
        let got = split(&set);
        assert_eq!(got.duration, lasts + lasts + Dur::from_secs(600));
        let codes: Vec<Code> = got.doubts().into_iter().map(|w| w.code).collect();
        assert_eq!(codes, [Code::ClockSet, Code::Silence]);
    }
}
