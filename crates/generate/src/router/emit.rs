//! Sends a pattern.

use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use ipnet::Ipv4Net;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use swell_base::{Code, Dur, Time, Warning};

use super::constant::{Pattern, PatternError};
use swell_host::be_punctual;
use swell_host::sys::batch::{self as sys, AT_ONCE, Numbered};
use swell_host::{Late, Lateness};

/// The port of the discard service (RFC 863), which never answers.
pub const PORT: u16 = 9;
/// Length of the IPv4 and UDP headers in bytes.
const HEADERS: u16 = 28;
/// Shorter waits are spent spinning, because a sleep and the wake-up take longer.
const SPIN: Duration = Duration::from_micros(30);
/// If one packet in a hundred leaves later than this, a warning is issued.
const LATE: Dur = Dur::from_millis(1);

/// What a generator sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Emitted {
    /// Packets handed to the network.
    pub packets: u64,
    /// Packets that the kernel refused.
    pub refused: u64,
    /// Packets that were due before the end but were not sent.
    pub missed: u64,
    /// How late packets left.
    pub late: Late,
}

impl Emitted {
    /// Warnings about the results.
    pub fn doubts(&self) -> Vec<Warning> {
        let mut doubts = Vec::new();
        let short = self.refused + self.missed;
        if short > 0 {
            let all = self.packets + short;
            doubts.push(Warning::warning(
                Code::GeneratorShort,
                format!("{short} of {all} packets were not sent: the generator cannot do so many"),
            ));
        }
        if self.late.p99 > LATE {
            doubts.push(Warning::warning(
                Code::GeneratorBehind,
                format!(
                    "one packet in a hundred left {:.1} ms late or more, the latest {:.1} ms; what was to be spaced \
                     left in trains",
                    self.late.p99.as_millis_f64(),
                    self.late.max.as_millis_f64()
                ),
            ));
        }
        doubts
    }
}

/// Addresses of a prefix in an order in which successive addresses are far apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scattered {
    first: u32,
    mask: u32,
}

impl Scattered {
    pub fn new(prefix: Ipv4Net) -> Scattered {
        Scattered {
            first: prefix.network().to_bits(),
            mask: prefix.hostmask().to_bits(),
        }
    }

    /// The address of packet `n`. The stride is odd and near the golden section of 2^32, so that every address of the
    /// prefix is visited once before any is repeated.
    pub fn address(&self, n: u64) -> u32 {
        const STRIDE: u32 = 0x9e37_79b1;
        self.first | ((n as u32).wrapping_mul(STRIDE) & self.mask)
    }
}

/// A sending socket. It must be created in the network namespace of the sending host.
pub(super) fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    sys::roomy(socket.as_fd());
    Ok(socket)
}

/// Sends a pattern for `span`, as punctually as the kernel schedules this thread. The thread has real-time priority
/// if it mostly sleeps. Packets that are due leave at once, and none is skipped to catch up. Also returns the numbers of
/// the packets that the kernel refused, ascending.
pub(super) fn emit(
    socket: &OwnedFd,
    pattern: &Pattern,
    to: Ipv4Net,
    span: Dur,
    stop: &dyn Fn() -> bool,
) -> Result<(Emitted, Vec<u64>), PatternError> {
    let mut refused = Vec::new();
    let mut due = pattern.emissions()?.enumerate().peekable();
    let to = Scattered::new(to);
    let filling = [0u8; 1 << 16];
    let (mut emitted, mut lateness) = (Emitted::default(), Lateness::default());
    let end = Time::ZERO + span;
    // A thread that sends all the time must not have real-time priority: it would keep all others, including the
    // sink, from running.
    let _ = be_punctual(pattern.wait() > 2 * SPIN);
    let begun = Instant::now();
    let now = || Time::ZERO + Dur::from_nanos(begun.elapsed().as_nanos() as u64);
    let mut batch = Vec::with_capacity(AT_ONCE);
    while !stop() {
        let Some(&(_, next)) = due.peek() else { break };
        if next.at >= end {
            break;
        }
        let before = now();
        if before >= end {
            // Packets that were due and not sent.
            emitted.missed = due.take_while(|(_, e)| e.at < end).count() as u64;
            break;
        }
        if next.at > before {
            let wait = Duration::from_nanos(next.at.since(before).as_nanos());
            match wait.checked_sub(SPIN).filter(|w| !w.is_zero()) {
                Some(long) => thread::sleep(long),
                None => std::hint::spin_loop(),
            }
            continue;
        }
        batch.clear();
        while let Some((n, packet)) = due.next_if(|(_, e)| e.at <= before && e.at < end) {
            batch.push(Numbered {
                to: to.address(n as u64),
                payload: usize::from(packet.size - HEADERS.min(packet.size)),
                number: n as u64,
            });
            lateness.add(before.since(packet.at));
            if batch.len() == AT_ONCE {
                break;
            }
        }
        let mut rest = batch.as_slice();
        while !rest.is_empty() {
            match sys::send(socket.as_fd(), PORT, rest, &filling) {
                Ok(sent) if sent > 0 => {
                    let sent = sent.min(rest.len());
                    emitted.packets += sent as u64;
                    rest = &rest[sent..];
                }
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => {
                    refused.push(rest[0].number);
                    rest = &rest[1..];
                }
            }
        }
    }
    emitted.refused = refused.len() as u64;
    emitted.late = lateness.late();
    Ok((emitted, refused))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::fd::AsFd;

    use swell_base::Rate;

    use super::super::constant::Sizes;
    use super::*;

    #[test]
    fn every_address_has_its_turn_and_neighbours_are_far_apart() {
        let prefix: Ipv4Net = "10.201.0.0/16".parse().unwrap();
        let to = Scattered::new(prefix);
        let all: BTreeSet<u32> = (0..1 << 16).map(|n| to.address(n)).collect();
        assert_eq!(all.len(), 1 << 16);
        assert!(
            all.iter()
                .all(|&a| prefix.contains(&Ipv4Addr::from_bits(a)))
        );
        // Of 32 successive addresses, at most three share a /21.
        for n in 0..1_000u64 {
            let mut blocks: Vec<u32> = (n..n + 32).map(|i| to.address(i) >> 11).collect();
            blocks.sort_unstable();
            let most = blocks.chunk_by(|a, b| a == b).map(<[u32]>::len).max();
            assert!(most <= Some(3), "{n}: {most:?}");
        }
    }

    /// Sends over the loopback to the discard port of unused addresses.
    #[test]
    fn what_a_pattern_says_arrives_with_its_numbers_and_sizes() {
        let Ok(receiver) = UdpSocket::bind(("127.77.0.0", PORT)) else {
            skipped("port 9 cannot be bound");
            return;
        };
        receiver.set_nonblocking(true).unwrap();
        sys::roomy(receiver.as_fd());
        let pattern = Pattern {
            sizes: Sizes::Trimodal,
            burst: 10,
            sources: 1,
            line: Rate::from_bps(100_000_000),
            load: Rate::from_bps(20_000_000),
        };
        let to: Ipv4Net = "127.77.0.0/32".parse().unwrap();
        let span = Dur::from_millis(200);
        let expected: Vec<_> = pattern
            .emissions()
            .unwrap()
            .take_while(|e| e.at < Time::ZERO + span)
            .collect();
        let socket = socket().unwrap();
        let (emitted, refused) = emit(&socket, &pattern, to, span, &|| false).unwrap();
        assert_eq!(emitted.refused, refused.len() as u64);
        assert_eq!(
            emitted.packets + emitted.refused + emitted.missed,
            expected.len() as u64
        );
        let mut arrived = 0;
        let mut room = [0; 2_000];
        while let Ok(length) = receiver.recv(&mut room) {
            let number = u64::from_be_bytes(*room.first_chunk().unwrap());
            let size = expected[number as usize].size;
            assert_eq!(length, usize::from(size) - 28);
            arrived += 1;
        }
        assert_eq!(arrived, emitted.packets);
    }

    #[test]
    fn who_falls_behind_says_so() {
        assert_eq!(Emitted::default().doubts(), []);
        let short = Emitted {
            packets: 90,
            missed: 7,
            refused: 3,
            ..Emitted::default()
        };
        assert!(short.doubts()[0].message.starts_with("10 of 100 packets"));
        let late = Late {
            p99: Dur::from_millis(2),
            ..Late::default()
        };
        assert_eq!(
            Emitted {
                late,
                ..Emitted::default()
            }
            .doubts()[0]
                .code,
            Code::GeneratorBehind
        );
        // More than one thread can send: most packets are missed, and all are accounted for.
        let pattern = Pattern {
            sizes: Sizes::One(40),
            burst: 1,
            sources: 1,
            line: Rate::from_bps(1_000_000_000_000),
            load: Rate::from_bps(1_000_000_000_000),
        };
        let to: Ipv4Net = "127.77.1.0/32".parse().unwrap();
        let (emitted, _) = emit(
            &socket().unwrap(),
            &pattern,
            to,
            Dur::from_micros(500),
            &|| false,
        )
        .unwrap();
        assert!(emitted.missed > 0 && !emitted.doubts().is_empty());
        let due = 500_000 * 1_000 / (54 * 8) + 1;
        assert_eq!(emitted.packets + emitted.refused + emitted.missed, due);
    }

    #[expect(clippy::print_stderr, reason = "a skipped test says why")]
    fn skipped(why: &str) {
        eprintln!("skipped: {why}");
    }
}
