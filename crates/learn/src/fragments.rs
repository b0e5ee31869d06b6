//! Counts later fragments of datagrams to the flow of the first, which alone has the ports.
//!
//! Fragments of one datagram have source, destination, protocol and identification in common (RFC 791
//! section 3.2, RFC 8200 section 4.5). Each remains a packet of its own size, for so they cross the link.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::net::IpAddr;

use foldhash::fast::FixedState;
use swell_capture::{Packet, Tcp, Transport};

/// Datagrams whose first fragments are remembered: those of a second at 32 Mbit/s of 8 kB each. Later ones
/// take the places of earlier ones.
const PLACES: usize = 512;
/// Fragments that wait for the first one of their datagram: those of some datagrams of 64 KiB.
const MOST: usize = 256;
/// They wait this long, nanoseconds: old kernels send the last fragment first, and packets overtake each
/// other by milliseconds.
const WAIT: i64 = 100_000_000;
/// Nobody waits longer for the rest of a datagram (Linux `ipfrag_time`), nanoseconds.
const REASSEMBLY: i64 = 30_000_000_000;

/// The first fragment of a datagram.
#[derive(Clone, Copy, Debug)]
struct First {
    print: u64,
    time: i64,
    ip_len: u32,
    transport: Transport,
}

/// The datagrams that are arriving in fragments.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    firsts: Vec<Option<First>>,
    waiting: VecDeque<Packet>,
    /// Time of the last packet. Fragments that waited come after it.
    latest: i64,
}

impl Fragments {
    /// Whether the packet and those before it need no attention.
    #[inline]
    pub(crate) fn idle(&self, p: &Packet) -> bool {
        p.fragment == 0 && self.waiting.is_empty()
    }

    /// Takes a packet, and passes on those whose flow is now known, or will not be. A fragment that comes
    /// after its first has that one's transport header.
    pub(crate) fn push(&mut self, p: &Packet, pass: &mut impl FnMut(&Packet)) {
        while let Some(oldest) = self.waiting.front()
            && (p.time.saturating_sub(oldest.time) > WAIT || self.waiting.len() >= MOST)
        {
            // The time of `p` has yet to be confirmed.
            let late = Packet {
                time: self.latest,
                ..*oldest
            };
            self.waiting.pop_front();
            pass(&late);
        }
        self.latest = p.time;
        if p.fragment == 0 {
            return pass(p);
        }
        let print = print(p);
        let place = (print >> 32) as usize % PLACES;
        if p.transport != Transport::Fragment {
            let first = First {
                print,
                time: p.time,
                ip_len: p.ip_len,
                transport: p.transport,
            };
            self.firsts.resize(PLACES, None);
            self.firsts[place] = Some(first);
            pass(p);
            self.waiting.retain(|w| {
                let known = self::print(w) == print;
                if known {
                    pass(&first.with(&Packet { time: p.time, ..*w }));
                }
                !known
            });
            return;
        }
        let first = self.firsts.get(place).copied().flatten();
        match first.filter(|f| f.print == print && p.time.saturating_sub(f.time) < REASSEMBLY) {
            Some(first) => pass(&first.with(p)),
            None => self.waiting.push_back(*p),
        }
    }

    /// The fragments whose first has not come.
    pub(crate) fn finish(&mut self) -> VecDeque<Packet> {
        let time = self.latest;
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        waiting.map(|p| Packet { time, ..p }).collect()
    }
}

impl First {
    /// A later fragment as a packet of the flow.
    fn with(&self, p: &Packet) -> Packet {
        let (ip, fragment_header) = match p.src {
            IpAddr::V4(_) => (20, 0),
            IpAddr::V6(_) => (40, 8),
        };
        let transport = match self.transport {
            Transport::Udp {
                src_port, dst_port, ..
            } => Transport::Udp {
                src_port,
                dst_port,
                // It is played as a datagram of its own, with a header.
                payload: p.ip_len.saturating_sub(ip + 8),
            },
            Transport::Tcp(header) => {
                let own = |ip_len: u32| ip_len.saturating_sub(ip + fragment_header);
                let offset = (p.mark >> 32 & 0xffff) as u32 * 8;
                let after = offset.wrapping_sub(own(self.ip_len));
                Transport::Tcp(Tcp {
                    seq: (header.seq)
                        .wrapping_add(header.payload)
                        .wrapping_add(after),
                    payload: own(p.ip_len),
                    flags: header.flags & Tcp::ACK,
                    ..header
                })
            }
            other => other,
        };
        Packet { transport, ..*p }
    }
}

/// What the fragments of a datagram have in common. Never 0.
fn print(p: &Packet) -> u64 {
    FixedState::with_seed(0).hash_one((p.src, p.dst, p.fragment)) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn udp(payload: u32) -> Transport {
        Transport::Udp {
            src_port: 2049,
            dst_port: 700,
            payload,
        }
    }

    /// A fragment of datagram `id` at `offset` (in 8 bytes).
    fn fragment(ms: i64, id: u64, offset: u64, ip_len: u32) -> Packet {
        Packet {
            time: ms * MS,
            ip_len,
            src: IpAddr::from([10, 0, 0, 1]),
            dst: IpAddr::from([192, 0, 2, 1]),
            fragment: 1 << 40 | 17 << 32 | id,
            mark: id << 48 | offset << 32,
            transport: match offset {
                0 => udp(ip_len - 28),
                _ => Transport::Fragment,
            },
            ..Packet::default()
        }
    }

    /// Transport headers and times (in ms) of what is passed on.
    fn passed(packets: &[Packet]) -> Vec<(i64, Transport)> {
        let mut fragments = Fragments::default();
        let mut out = Vec::new();
        for p in packets {
            fragments.push(p, &mut |on| out.push((on.time / MS, on.transport)));
        }
        out.extend(
            fragments
                .finish()
                .iter()
                .map(|p| (p.time / MS, p.transport)),
        );
        out
    }

    #[test]
    fn later_fragments_belong_to_the_first_in_any_order() {
        let of = |id| {
            [
                fragment(id as i64, id, 0, 1_500),
                fragment(id as i64, id, 185, 1_500),
                fragment(id as i64, id, 370, 220),
            ]
        };
        let sizes = [udp(1_472), udp(1_472), udp(192)];
        let [a, b] = [of(1), of(2)];
        let got = passed(&[a[0], b[0], b[1], a[1], a[2], b[2]]);
        let expected = [0, 0, 1, 1, 2, 2].map(|i| sizes[i]);
        assert_eq!(got.iter().map(|g| g.1).collect::<Vec<_>>(), expected);
        // The last fragment first, as old kernels send them: they have the time of the first.
        let mut late = a[0];
        late.time = 3 * MS;
        let backwards = passed(&[a[2], a[1], late]);
        assert_eq!(backwards, [(3, sizes[0]), (3, sizes[2]), (3, sizes[1])]);
    }

    #[test]
    fn fragments_of_other_datagrams_stay_without_a_flow() {
        let other = Packet {
            dst: IpAddr::from([192, 0, 2, 2]),
            ..fragment(1, 1, 185, 900)
        };
        let got = passed(&[fragment(0, 1, 0, 1_500), fragment(1, 2, 185, 800), other]);
        assert_eq!(got[1..], [(1, Transport::Fragment); 2]);
        // The identification is used again long after.
        let again = passed(&[fragment(0, 1, 0, 1_500), fragment(31_000, 1, 185, 800)]);
        assert_eq!(again[1], (31_000, Transport::Fragment));
        // They do not wait for ever, nor in any number.
        let mut fragments = Fragments::default();
        let mut n = 0;
        for id in 0..1_000 {
            fragments.push(&fragment(0, id, 185, 800), &mut |_| n += 1);
        }
        assert_eq!((n, fragments.waiting.len()), (1_000 - MOST, MOST));
        let whole = Packet {
            time: 200 * MS,
            ..Packet::default()
        };
        // Their own time is over, and that of the packet that tells so may be wrong.
        let mut times = Vec::new();
        fragments.push(&whole, &mut |p| times.push(p.time));
        assert_eq!(times, [&[0; MOST][..], &[200 * MS]].concat());
        assert!(fragments.idle(&whole));
    }

    #[test]
    fn fragments_of_a_segment_continue_its_data() {
        let header = Tcp {
            seq: u32::MAX - 99,
            payload: 1_460,
            flags: Tcp::ACK | Tcp::PSH | Tcp::FIN,
            ..Tcp::default()
        };
        let first = Packet {
            transport: Transport::Tcp(header),
            ..fragment(0, 1, 0, 1_500)
        };
        let got = passed(&[first, fragment(0, 1, 185, 620)]);
        let rest = Tcp {
            seq: 1_360,
            payload: 600,
            flags: Tcp::ACK,
            ..header
        };
        assert_eq!(got[1].1, Transport::Tcp(rest));
    }
}
