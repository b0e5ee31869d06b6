//! Learning speed: a header-only pcap (96 bytes per packet) with about a million packets and 20 000
//! connections, made in memory, read and learnt on one core.
//!
//! `cargo bench -p swell-learn` prints three figures for the reader alone and for reader and learner: MB
//! of pcap per second of one core, nanoseconds per packet, and the peak of allocated memory beyond the
//! file itself. It then prints the peak of memory for a scan of a million addresses.
#![expect(clippy::print_stdout, reason = "printing is all a bench does")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
#![expect(unsafe_code, reason = "a counting allocator has to be one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use swell_base::Stream;
use swell_capture::{Packet, Reader, Tcp, Transport};
use swell_learn::{Learner, Options};

/// Counts allocated memory.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CONNECTIONS: usize = 20_000;
const SNAP: usize = 96;

/// A TCP packet of one connection: microseconds, flags, sequence and acknowledgement numbers, payload,
/// from the client.
type Event = (u64, u8, u32, u32, u16, bool);

fn connection(start: u64, size: u32, rtt: u64) -> Vec<Event> {
    let mut e = vec![
        (start, 0x02, 0, 0, 0, true),
        (start + rtt, 0x12, 0, 1, 0, false),
        (start + rtt + 2_000, 0x10, 1, 1, 0, true),
        (start + rtt + 2_100, 0x18, 1, 1, 300, true),
    ];
    let mut t = start + 2 * rtt + 12_000;
    let mut sent = 0;
    while sent < size {
        for i in 0..10u64 {
            let len = (size - sent).min(1_460);
            if len == 0 {
                break;
            }
            e.push((t + i * 120, 0x10, 1 + sent, 301, len as u16, false));
            sent += len;
            if i % 2 == 1 {
                e.push((t + i * 120 + 2_000, 0x10, 301, 1 + sent, 0, true));
            }
        }
        t += rtt + 2_000;
    }
    e.push((t, 0x11, 301, 1 + sent, 0, true));
    e.push((t + rtt, 0x11, 1 + sent, 302, 0, false));
    e
}

fn pcap() -> (Vec<u8>, usize) {
    let mut rng = Stream::new(1, "bench");
    let mut packets: Vec<(u64, u32, Event)> = Vec::new();
    for c in 0..CONNECTIONS as u32 {
        let start = rng.below(300_000_000);
        // Pareto 1.3 from 8 kB: 35 kB on average.
        let size = (8_000.0 * (1.0 - rng.uniform()).powf(-1.0 / 1.3)).min(5e6) as u32;
        let rtt = 5_000 + rng.below(150_000);
        packets.extend(
            connection(start, size, rtt)
                .into_iter()
                .map(|e| (e.0, c, e)),
        );
    }
    packets.sort_unstable_by_key(|p| p.0);
    let mut file = Vec::with_capacity(packets.len() * (SNAP + 16) + 24);
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, SNAP as u32, 1] {
        file.extend(word.to_le_bytes());
    }
    for &(us, c, (_, flags, seq, ack, payload, up)) in &packets {
        let length = 54 + u32::from(payload);
        let captured = length.min(SNAP as u32);
        for word in [
            (us / 1_000_000) as u32,
            (us % 1_000_000) as u32,
            captured,
            length,
        ] {
            file.extend(word.to_le_bytes());
        }
        let mut frame = [0u8; SNAP];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(40 + payload).to_be_bytes());
        frame[22] = 64;
        frame[23] = 6;
        let client = (0x0a00_0000 + c % 500).to_be_bytes();
        let server = (0xc633_0000 + c % 3_000).to_be_bytes();
        let (src, dst) = if up {
            (client, server)
        } else {
            (server, client)
        };
        frame[26..30].copy_from_slice(&src);
        frame[30..34].copy_from_slice(&dst);
        let ports = [(1_024 + c / 500 + c % 40_000) as u16, 443];
        let ports = if up { ports } else { [ports[1], ports[0]] };
        frame[34..36].copy_from_slice(&ports[0].to_be_bytes());
        frame[36..38].copy_from_slice(&ports[1].to_be_bytes());
        frame[38..42].copy_from_slice(&seq.to_be_bytes());
        frame[42..46].copy_from_slice(&ack.to_be_bytes());
        frame[46] = 0x50;
        frame[47] = flags;
        frame[48..50].copy_from_slice(&0xffffu16.to_be_bytes());
        file.extend(&frame[..captured as usize]);
    }
    (file, packets.len())
}

/// CPU time of this thread on Linux, so that other load does not count; elsewhere the elapsed time.
fn core_time(start: Instant) -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|s| s.split(' ').next()?.parse::<f64>().ok())
        .map_or(start.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

const SCANNED: u32 = 1_000_000;

/// A host sends SYNs to a million others within 500 s. Eight in ten do not answer, one refuses, one
/// accepts and is reset.
fn scan() -> usize {
    let mut learner = Learner::new(Options::default());
    let scanner = IpAddr::from([10, 0, 0, 1]);
    for i in 0..SCANNED {
        let target = IpAddr::from((0x1400_0000 + i).to_be_bytes());
        let ports = (1_024 + (i % 60_000) as u16, 443);
        let mut at = i64::from(i) * 500_000;
        let mut push = |from_scanner: bool, flags: u8, seq: u32, ack: u32| {
            let (src, dst) = if from_scanner {
                (scanner, target)
            } else {
                (target, scanner)
            };
            let (src_port, dst_port) = if from_scanner {
                ports
            } else {
                (ports.1, ports.0)
            };
            learner.push(&Packet {
                time: at,
                wire_len: 74,
                captured_len: 74,
                ip_len: 60,
                src,
                dst,
                ttl: 64,
                transport: Transport::Tcp(Tcp {
                    src_port,
                    dst_port,
                    flags,
                    seq,
                    ack,
                    ..Tcp::default()
                }),
                ..Packet::default()
            });
            at += 20_000;
        };
        push(true, Tcp::SYN, i, 0);
        match i % 10 {
            0 => push(false, Tcp::RST | Tcp::ACK, 0, i + 1),
            1 => {
                push(false, Tcp::SYN | Tcp::ACK, 7, i + 1);
                push(true, Tcp::RST, i + 1, 0);
            }
            _ => {}
        }
    }
    learner.finish().sessions.len()
}

fn measure_scan() {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let sessions = scan();
    let peak = PEAK.load(Ordering::Relaxed) - before;
    println!(
        "scan of {SCANNED} addresses: peak {:.0} MB, {} B an address ({sessions} sessions kept)",
        peak as f64 / 1e6,
        peak / SCANNED as usize
    );
}

fn main() {
    measure_scan();
    let begin = Instant::now();
    let (file, packets) = pcap();
    let megabytes = file.len() as f64 / 1e6;
    println!("{megabytes:.0} MB of pcap, {packets} packets, {CONNECTIONS} connections");
    let measure = |what: &str, run: &dyn Fn() -> usize| {
        let mut best = f64::INFINITY;
        let mut peak = 0;
        let mut result = 0;
        for _ in 0..5 {
            let before = NOW.load(Ordering::Relaxed);
            PEAK.store(before, Ordering::Relaxed);
            let start = core_time(begin);
            result = run();
            best = best.min(core_time(begin) - start);
            peak = PEAK.load(Ordering::Relaxed) - before;
        }
        println!(
            "{what}: {:.0} MB/s, {:.0} ns/packet, peak {:.1} MB ({result})",
            megabytes / best,
            best * 1e9 / packets as f64,
            peak as f64 / 1e6
        );
    };
    let read = |each: &mut dyn FnMut(&swell_capture::Packet)| {
        let mut reader = Reader::new(&file[..]).expect("a pcap file of our own");
        let mut packet = swell_capture::Packet::default();
        while let Ok(true) = reader.read_into(&mut packet) {
            each(&packet);
        }
    };
    measure("reader", &|| {
        let mut n = 0;
        read(&mut |p| n += usize::from(p.ip_len > 0));
        n
    });
    measure("reader and learner", &|| {
        let mut learner = Learner::new(Options::default());
        read(&mut |p| learner.push(p));
        learner.finish().sessions.len()
    });
}
