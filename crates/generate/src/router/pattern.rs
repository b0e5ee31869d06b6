//! A packet generator with constant spacing (RFC 2544 section 21; bursts: RFC 2285 section 3.4; RFC 2889 section 5.1).

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use ipnet::Ipv4Net;
use rustix::io::Errno;
use swell_base::{Dur, Rate, Time};
use swell_host::sys::batch::{AT_ONCE, roomy};
use swell_host::sys::datagrams::send_many;
use swell_host::{Late, Lateness, be_punctual};

use super::losses::{Marks, PORT};
use super::settings::BenchError;

/// Length of an Ethernet header in bytes, which counters and rates of cables include.
const LINK_HEADER: u64 = 14;
/// Length of the IPv4 and UDP headers in bytes.
const HEADERS: u16 = 28;
/// Shorter waits are spent spinning, because a sleep and the wake-up take longer.
const SPIN: Duration = Duration::from_micros(30);

/// The traffic of a generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Network-layer sizes that packets have in turn, bytes; 36 at least, for headers and a number.
    pub sizes: Vec<u16>,
    /// Packets per burst, sent back to back at the rate `line`; 1 means even spacing.
    pub burst: u32,
    /// Number of sources that send the same pattern simultaneously, each over a line of its own.
    pub sources: u32,
    /// Rate of a source's line, link-layer headers included.
    pub line: Rate,
    /// Mean rate of all sources together, link-layer headers included.
    pub load: Rate,
}

/// What a generator sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Emitted {
    /// The numbers of the packets that the network took.
    pub sent: Marks,
    /// Packets that the kernel refused.
    pub refused: u64,
    /// Packets that were due before the end but were not sent.
    pub missed: u64,
    /// How late packets left.
    pub late: Late,
}

impl Emitted {
    /// Share of the packets that were not sent.
    pub fn short(&self) -> f64 {
        let unsent = self.refused + self.missed;
        unsent as f64 / (self.sent.count() + unsent).max(1) as f64
    }
}

/// When which packet of a pattern is due.
struct Schedule<'p> {
    pattern: &'p Pattern,
    /// Bits before each packet of the turn, link-layer headers included.
    before: Vec<u64>,
    /// Bits of the whole turn.
    turn: u64,
}

impl Schedule<'_> {
    /// `None` if the pattern has no packets.
    fn new(pattern: &Pattern) -> Option<Schedule<'_>> {
        let (mut before, mut turn) = (Vec::new(), 0);
        for &size in &pattern.sizes {
            before.push(turn);
            turn += 8 * (u64::from(size) + LINK_HEADER);
        }
        let parts = [pattern.burst.into(), pattern.sources.into(), turn];
        let rates = [pattern.line.bps(), pattern.load.bps()];
        let some = parts.into_iter().chain(rates).all(|n| n > 0);
        some.then_some(Schedule {
            pattern,
            before,
            turn,
        })
    }

    /// When packet `n` is due, and its size. It is computed from the number of its burst, so that rounding errors do not
    /// accumulate.
    fn packet(&self, n: u64) -> (Time, u16) {
        let p = self.pattern;
        let sizes = p.sizes.len() as u64;
        let round = n / u64::from(p.sources);
        let first = round - round % u64::from(p.burst);
        let bits_before = |other: u64| {
            let own = self.before[(other % sizes) as usize];
            u128::from(other / sizes * self.turn + own)
        };
        let nanos = |bits: u128, rate: Rate| bits * 1_000_000_000 / u128::from(rate.bps());
        let mean = u128::from(first) * u128::from(self.turn) * u128::from(p.sources);
        let begin = nanos(mean, p.load) / u128::from(sizes);
        let within = nanos(bits_before(round) - bits_before(first), p.line);
        let at = u64::try_from(begin + within).unwrap_or(u64::MAX);
        (Time::from_nanos(at), p.sizes[(round % sizes) as usize])
    }

    /// Mean interval between rounds in which each source sends one packet.
    fn wait(&self) -> Duration {
        let p = self.pattern;
        let bits = self.turn * u64::from(p.sources) / p.sizes.len() as u64;
        Duration::from_secs_f64(bits as f64 / p.load.bps() as f64)
    }
}

/// The address of a prefix for packet `n`: those of successive packets are far apart. The stride is odd and near the
/// golden section of 2^32, so that every address of the prefix is visited once before any is repeated.
fn scattered(prefix: Ipv4Net, n: u64) -> Ipv4Addr {
    const STRIDE: u32 = 0x9e37_79b1;
    let host = (n as u32).wrapping_mul(STRIDE) & prefix.hostmask().to_bits();
    Ipv4Addr::from_bits(prefix.network().to_bits() | host)
}

impl Pattern {
    /// Sends the pattern to all addresses of a prefix for `span`, as punctually as the kernel schedules this thread. The
    /// thread has real-time priority if it mostly sleeps. Packets that are due leave at once, and none is skipped to
    /// catch up. Each payload begins with the packet's number.
    pub(super) fn send(
        &self,
        socket: &UdpSocket,
        to: Ipv4Net,
        span: Dur,
        stop: &dyn Fn() -> bool,
    ) -> Result<Emitted, BenchError> {
        let schedule = Schedule::new(self).ok_or("a pattern without packets")?;
        roomy(socket.as_fd());
        let filling = [0u8; 1 << 16];
        let (mut emitted, mut lateness) = (Emitted::default(), Lateness::default());
        let end = Time::ZERO + span;
        // A thread that sends all the time must not have real-time priority: it would keep all others, including the
        // sink, from running.
        let _ = be_punctual(schedule.wait() > 2 * SPIN);
        let begun = Instant::now();
        let mut next = 0;
        let (mut due, mut size) = schedule.packet(next);
        let (mut names, mut numbers, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        while due < end && !stop() {
            let now = Time::from_nanos(begun.elapsed().as_nanos() as u64);
            if now >= end {
                let left = (next..).take_while(|&n| schedule.packet(n).0 < end);
                emitted.missed = left.count() as u64;
                break;
            }
            if due > now {
                let wait = Duration::from_nanos(due.since(now).as_nanos());
                match wait.checked_sub(SPIN).filter(|w| !w.is_zero()) {
                    Some(long) => thread::sleep(long),
                    None => std::hint::spin_loop(),
                }
                continue;
            }
            let first = next;
            names.clear();
            numbers.clear();
            sizes.clear();
            while due <= now && names.len() < AT_ONCE {
                lateness.add(now.since(due));
                names.push(SocketAddr::from((scattered(to, next), PORT)));
                numbers.push(next.to_be_bytes());
                sizes.push(u32::from(size.saturating_sub(HEADERS)));
                next += 1;
                (due, size) = schedule.packet(next);
            }
            let mut done = 0;
            while done < names.len() {
                let rest = (&names[done..], &numbers[done..], &sizes[done..]);
                match send_many(socket.as_fd(), rest.0, rest.1, rest.2, &filling) {
                    Ok(sent) if sent > 0 => {
                        let taken = first + done as u64..;
                        taken.take(sent).for_each(|n| emitted.sent.add(n));
                        done += sent;
                    }
                    Err(Errno::INTR) => {}
                    Ok(_) | Err(_) => {
                        emitted.refused += 1;
                        done += 1;
                    }
                }
            }
        }
        emitted.late = lateness.late();
        Ok(emitted)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn pattern() -> Pattern {
        Pattern {
            sizes: vec![1500],
            burst: 1,
            sources: 1,
            line: Rate::from_bps(100_000_000),
            load: Rate::from_bps(60_000_000),
        }
    }

    fn times(pattern: &Pattern, n: u64) -> Vec<u64> {
        let schedule = Schedule::new(pattern).unwrap();
        (0..n).map(|n| schedule.packet(n).0.as_nanos()).collect()
    }

    #[test]
    fn packets_are_spaced_evenly_and_the_load_does_not_drift() {
        // 1514 bytes at 60 Mbit/s take 201.866.. us.
        assert_eq!(times(&pattern(), 4), [0, 201_866, 403_733, 605_600]);
        let even = pattern();
        let schedule = Schedule::new(&even).unwrap();
        assert_eq!(schedule.wait().as_nanos(), 201_867);
        // A million packets take 1514 x 8 x 10^6 / 60 000 000 s, exact to the nanosecond.
        assert_eq!(schedule.packet(1_000_000).0.as_nanos(), 201_866_666_666);
    }

    #[test]
    fn bursts_leave_at_the_rate_of_the_line_and_keep_the_load() {
        let bursty = |burst| Pattern { burst, ..pattern() };
        // A packet takes 121.12 us on the line; there is a burst every 605.6 us.
        assert_eq!(
            times(&bursty(3), 5),
            [0, 121_120, 242_240, 605_600, 726_720]
        );
        for burst in [697u32, 930] {
            let pattern = bursty(burst);
            let begin = Schedule::new(&pattern)
                .unwrap()
                .packet(u64::from(burst) * 1_000);
            let exact = u64::from(burst) * 1_000 * 1_514 * 8 * 1_000 / 60;
            assert_eq!(begin.0.as_nanos(), exact);
        }
    }

    #[test]
    fn sources_send_together_and_share_the_load() {
        let two = Pattern {
            sources: 2,
            burst: 2,
            ..pattern()
        };
        // Each source has 30 Mbit/s: a burst of two every 807.466.. us.
        assert_eq!(times(&two, 6), [0, 0, 121_120, 121_120, 807_466, 807_466]);
    }

    #[test]
    fn sizes_come_in_turn_with_the_spacing_of_their_mean() {
        let mixed = Pattern {
            sizes: vec![40, 576, 1500],
            ..pattern()
        };
        let schedule = Schedule::new(&mixed).unwrap();
        let sizes: Vec<u16> = (0..4).map(|n| schedule.packet(n).1).collect();
        assert_eq!(sizes, [40, 576, 1500, 40]);
        // The mean frame has 719.33 bytes: 95.911.. us at 60 Mbit/s.
        assert_eq!(times(&mixed, 4), [0, 95_911, 191_822, 287_733]);
        // Within a burst each takes its own time on the line.
        let burst = Pattern { burst: 3, ..mixed };
        assert_eq!(times(&burst, 4), [0, 4_320, 51_520, 287_733]);
        for nothing in [
            Pattern {
                sizes: Vec::new(),
                ..pattern()
            },
            Pattern {
                burst: 0,
                ..pattern()
            },
            Pattern {
                sources: 0,
                ..pattern()
            },
            Pattern {
                load: Rate::default(),
                ..pattern()
            },
        ] {
            assert!(Schedule::new(&nothing).is_none());
        }
    }

    #[test]
    fn every_address_has_its_turn_and_neighbours_are_far_apart() {
        let prefix: Ipv4Net = "10.201.0.0/16".parse().unwrap();
        let all: BTreeSet<Ipv4Addr> = (0..1 << 16).map(|n| scattered(prefix, n)).collect();
        assert_eq!(all.len(), 1 << 16);
        assert!(all.iter().all(|a| prefix.contains(a)));
        // Of 32 successive addresses, at most three share a /21.
        for n in 0..1_000u64 {
            let mut blocks: Vec<u32> = (n..n + 32)
                .map(|i| scattered(prefix, i).to_bits() >> 11)
                .collect();
            blocks.sort_unstable();
            let most = blocks.chunk_by(|a, b| a == b).map(<[u32]>::len).max();
            assert!(most <= Some(3), "{n}: {most:?}");
        }
    }

    /// Sends over the loopback to the discard port of unused addresses.
    #[test]
    fn what_a_pattern_says_arrives_with_its_numbers_and_sizes() {
        let Ok(receiver) = UdpSocket::bind(("127.77.0.0", PORT)) else {
            return swell_needs::skip("port 9 cannot be bound");
        };
        receiver.set_nonblocking(true).unwrap();
        roomy(receiver.as_fd());
        let pattern = Pattern {
            sizes: vec![40, 1500, 576],
            burst: 10,
            load: Rate::from_bps(20_000_000),
            ..pattern()
        };
        let span = Dur::from_millis(200);
        let schedule = Schedule::new(&pattern).unwrap();
        let due = (0..).take_while(|&n| schedule.packet(n).0 < Time::ZERO + span);
        let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
        let to = "127.77.0.0/32".parse().unwrap();
        let emitted = pattern.send(&socket, to, span, &|| false).unwrap();
        let all = emitted.sent.count() + emitted.refused + emitted.missed;
        assert_eq!(all, due.count() as u64);
        let mut arrived = 0;
        let mut room = [0; 2_000];
        while let Ok(length) = receiver.recv(&mut room) {
            let number = u64::from_be_bytes(*room.first_chunk().unwrap());
            assert_eq!(length, usize::from(schedule.packet(number).1) - 28);
            arrived += 1;
        }
        assert_eq!(arrived, emitted.sent.count());
    }

    #[test]
    fn what_one_thread_cannot_send_is_counted() {
        let pattern = Pattern {
            sizes: vec![40],
            line: Rate::from_bps(1_000_000_000_000),
            load: Rate::from_bps(1_000_000_000_000),
            ..pattern()
        };
        let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
        let to = "127.77.1.0/32".parse().unwrap();
        let sent = pattern.send(&socket, to, Dur::from_micros(500), &|| false);
        let emitted = sent.unwrap();
        let due = 500_000 * 1_000 / (54 * 8) + 1;
        assert_eq!(emitted.sent.count() + emitted.refused + emitted.missed, due);
        assert!(emitted.missed > 0 && emitted.short() > 0.0);
    }
}
