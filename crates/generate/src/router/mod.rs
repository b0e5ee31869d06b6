//! Tests a router: the kernel's own forwarding in a network namespace, between a sending and a receiving host.
//!
//! ```no_run
//! use swell_base::{Dur, Rate};
//! use swell_host::{Rights, TokenBucket};
//! use swell_generate::router::{Load, Pattern, Settings, Sizes, bench};
//!
//! let rights = Rights::obtain()?;
//! let limit = TokenBucket { rate: 12_500_000, burst: 8_192, queue: 775_168 };
//! let settings = Settings {
//!     routes: 1_024, limit: Some(limit), window_scaling: true, span: Dur::from_secs(10), every: Dur::from_secs(1),
//! };
//! let load = Load::Constant(Pattern {
//!     sizes: Sizes::One(1500), burst: 1, sources: 2,
//!     line: Rate::from_bps(100_000_000), load: Rate::from_bps(90_000_000),
//! });
//! let seen = bench(&rights, &settings, &load, &|| false)?;
//! let (first, last) = (seen.samples[0], seen.samples[seen.samples.len() - 1]);
//! println!("{} packets in, {} out", last.offered.packets - first.offered.packets, last.forwarded.packets);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! ```text
//! source 10.202.0.1 ── cable ── router ── cable, limited ── sink 10.203.0.1, every address of 10.201.0.0/16
//! ```
//!
//! * **The routing table** has `routes` routes to the sink, which divide its prefix evenly. Packets are sent to all
//!   of it.
//! * **The output line** is a token bucket with a drop-tail queue (`tbf`). This limit does not depend on how work is
//!   divided between processors. Without it, the processor is the limit.
//! * **The router's processor** is the machine's last one. It handles the packets from the router's cables (receive
//!   packet steering). The other processors run what the hosts send, receive and count. So the time that this
//!   processor spends in interrupts is forwarding: receiving, route lookup, queueing, and transmission to the cable.
//!   It cannot be divided further. On a machine with one processor, it cannot be separated from the hosts at all.
//! * **Losses** are known per packet: from the numbers in the datagrams of a [`Pattern`], and for TCP from two taps,
//!   on the source's cable and on the sink's.
//! * **TCP sends single packets**: super-packets of up to 64 KiB do not occur on a real link.
//!
//! *Not supported*: IPv6; several routers in a row; a rate limit on the reverse path.

mod constant;
mod cpu;
mod emit;
mod losses;
mod numbers;
mod testbed;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use swell_base::{Code, Dur, Time, Warning};

pub use constant::{Emission, Emissions, LINK_HEADER, Pattern, PatternError, Sizes};
pub use cpu::Processor;
pub use emit::{Emitted, PORT};
pub use numbers::Numbers;

use crate::{
    Client, Config, Key, Play, Role, Run, RunError, Server, SharedPlan, Statistics, Target,
};
use losses::{Marks, Numbers as Arrived};
use swell_host::{Rights, TokenBucket};
use testbed::{Testbed, clients, prefix};

/// The router, and the duration of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Number of routes to the sink: a power of two, 1 to 65 536.
    pub routes: u32,
    /// Rate limit of the line to the sink; if `None`, the machine is the limit.
    pub limit: Option<TokenBucket>,
    /// Permit receive windows beyond 64 KB (RFC 7323 section 2), as the kernel does by default.
    pub window_scaling: bool,
    /// How long packets are sent.
    pub span: Dur,
    /// Interval between readings of the counters.
    pub every: Dur,
}

/// The traffic from the source to the sink.
pub enum Load {
    /// Packets with constant spacing, or bursts of packets.
    Constant(Pattern),
    /// Sessions over kernel TCP that download from the source.
    Sessions {
        /// The traffic.
        plan: SharedPlan,
        /// Congestion controls that connections use in rotation, by their kernel names; if empty, the kernel's
        /// default.
        congestion: Vec<String>,
    },
}

/// A number of frames, and their bytes including link-layer headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Frames.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Values of the counters at some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Time since the beginning.
    pub at: Time,
    /// Packets that the source sent to the router.
    pub offered: Count,
    /// Packets that left the router for the sink.
    pub forwarded: Count,
    /// Packets that left the router for the source, such as acknowledgements.
    pub back: Count,
    /// Packets dropped because the queue of the rate limit was full.
    pub queue_drops: u64,
    /// Packets dropped because the router's processor was too busy: more than `net.core.netdev_max_backlog` packets
    /// were waiting for it.
    pub not_taken: u64,
    /// Packets that left the router but that the sink was too slow to take.
    pub sink_missed: u64,
    /// Times of the router's processor.
    pub processor: Option<Processor>,
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Counters at the beginning and at each reading.
    pub samples: Vec<Sample>,
    /// Counters when the last packet had come out or was lost.
    pub end: Sample,
    /// For each packet towards the sink, whether it was lost; in the order in which packets reached the router.
    pub lost: Vec<bool>,
    /// What the generator of a pattern sent.
    pub emitted: Option<Emitted>,
    /// Statistics of the generator of sessions.
    pub played: Option<Statistics>,
    /// Warnings about the results.
    pub doubts: Vec<Warning>,
}

/// Why a router could not be tested.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The hosts could not be created.
    #[error(transparent)]
    Host(#[from] swell_host::Error),
    /// The requested number of routes is not possible.
    #[error("{0} routes do not divide a prefix of 65 536 addresses evenly")]
    Routes(u32),
    /// The pattern is not possible.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The traffic is not possible.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The kernel refused an operation.
    #[error("{what}: {error}")]
    Kernel {
        /// The operation.
        what: &'static str,
        /// The error.
        error: std::io::Error,
    },
    /// The client and the server of the traffic could not agree.
    #[error("source and sink did not come to an agreement through the router")]
    Silent,
}

/// Most time that packets may be in flight after the last was sent. It is far longer than any queue here, to allow
/// for a busy machine.
const LONGEST: Duration = Duration::from_secs(5);
/// Time for the sink to take what has left the router.
const LINGER: Duration = Duration::from_millis(200);
/// Time limit for client and server to agree.
const PATIENCE: Duration = Duration::from_secs(10);

/// Creates source, router and sink, sends the load, and measures. `stop` ends the measurement early.
///
/// # Errors
/// If the hosts cannot be created, or a setting or the load is not possible.
pub fn bench(
    rights: &Rights,
    settings: &Settings,
    load: &Load,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Seen, BenchError> {
    // Threads that are started in this scope stay off the router's processor.
    thread::scope(|scope| {
        let work = || {
            let bed = Testbed::new(rights, settings)?;
            match load {
                Load::Constant(pattern) => constant(&bed, settings, pattern, stop),
                Load::Sessions { plan, congestion } => {
                    sessions(&bed, settings, (plan, congestion), stop)
                }
            }
        };
        let thread = thread::Builder::new().name("bench".into());
        let made = thread.spawn_scoped(scope, work);
        let made = made.map_err(kernel("start a thread"))?;
        made.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn kernel<E: Into<std::io::Error>>(what: &'static str) -> impl Fn(E) -> BenchError {
    move |error| BenchError::Kernel {
        what,
        error: error.into(),
    }
}

fn constant(
    bed: &Testbed,
    settings: &Settings,
    pattern: &Pattern,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Seen, BenchError> {
    // Invalid patterns are reported before anything is created.
    pattern.emissions()?;
    let sink = bed
        .sink
        .enter(testbed::discard)
        .map_err(kernel("enter the sink"))?;
    let sink = sink.map_err(kernel("make a socket of the sink"))?;
    let source = bed
        .source
        .enter(emit::socket)
        .map_err(kernel("enter the source"))?;
    let source = source.map_err(kernel("make a socket of the source"))?;
    let (over, mut numbers) = (AtomicBool::new(false), Arrived::default());
    let first = bed.sample(Time::ZERO)?;
    let (mut seen, (emitted, refused)) = thread::scope(|scope| {
        let reader = scope.spawn(|| losses::read(&sink, &over, |front, _| numbers.arrived(front)));
        let sender = scope.spawn(|| emit::emit(&source, pattern, prefix(), settings.span, stop));
        let seen = watch(bed, settings, &first, &|| sender.is_finished() || stop());
        let emitted = sender
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let lingered = linger(bed);
        over.store(true, Ordering::Release);
        let read = reader
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        read.map_err(kernel("receive"))?;
        lingered?;
        Ok::<_, BenchError>((seen?, emitted?))
    })?;
    seen.lost = numbers.lost(emitted.packets + emitted.refused, &refused);
    let dropped = testbed::socket_drops(&sink);
    if dropped > 0 {
        seen.doubts.push(Warning::warning(
            Code::SinkBehind,
            format!("{dropped} packets reached the sink and were not read in time; they count as lost in runs"),
        ));
    }
    reconcile(bed, &first, &mut seen)?;
    seen.doubts.extend(emitted.doubts());
    seen.emitted = Some(emitted);
    Ok(seen)
}

fn sessions(
    bed: &Testbed,
    settings: &Settings,
    (plan, congestion): (&SharedPlan, &[String]),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Seen, BenchError> {
    let key = Key::random().map_err(kernel("make a key"))?;
    let config = |role| Config {
        key,
        lease: Dur::from_secs(5),
        congestion: congestion.to_vec(),
        threads: 1,
        precise: false,
        room: 0,
        elapsed: Dur::ZERO,
        limits: Default::default(),
        role,
    };
    let server = Role::Server(Server {
        clients: vec![clients()],
        ..Server::default()
    });
    let server = bed.source.enter(|| Run::new(config(server)));
    let server = server.map_err(kernel("enter the source"))??;
    let client = Role::Client(Client {
        index: 0,
        of: 1,
        pool: clients(),
        servers: vec![Target {
            address: SocketAddr::new(testbed::SOURCE.into(), server.port()),
            datagrams: server.datagram_port(),
            pool: Default::default(),
        }],
        plan: plan.clone(),
        play: Play::default(),
    });
    let client = bed.sink.enter(|| Run::new(config(client)));
    let client = client.map_err(kernel("enter the sink"))??;
    let longest = settings.span + Dur::from_secs(20);
    server.renew(longest);
    client.renew(longest);
    let asked = Instant::now();
    while client.statistics().parties == 0 {
        if asked.elapsed() > PATIENCE {
            return Err(BenchError::Silent);
        }
        thread::sleep(Duration::from_millis(5));
    }
    let taps: [OwnedFd; 2] = bed.taps()?;
    let first = bed.sample(Time::ZERO)?;
    let over = AtomicBool::new(false);
    let [mut into, mut out] = [Marks::default(), Marks::default()];
    let mut seen = thread::scope(|scope| {
        // The source's tap records sent packets, the sink's received ones.
        let before = scope.spawn(|| {
            losses::read(&taps[0], &over, |front, sent| {
                if sent {
                    into.crossed(front);
                }
            })
        });
        let behind = scope.spawn(|| {
            losses::read(&taps[1], &over, |front, sent| {
                if !sent {
                    out.crossed(front);
                }
            })
        });
        client.start();
        let seen = watch(bed, settings, &first, stop);
        let played = client.stop();
        server.stop();
        let lingered = linger(bed);
        over.store(true, Ordering::Release);
        for tap in [before, behind] {
            let read = tap
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            read.map_err(kernel("read a tap"))?;
        }
        lingered?;
        let mut seen = seen?;
        seen.doubts.extend(played.doubts());
        seen.played = Some(played);
        Ok::<_, BenchError>(seen)
    })?;
    let overflown: u64 = taps.iter().map(losses::overflown).sum();
    if overflown > 0 {
        seen.doubts.push(Warning::warning(
            Code::TapOverflown,
            format!("{overflown} packets were not seen by a tap; runs of losses are not reported"),
        ));
    } else if into.left_out() + out.left_out() > 0 {
        seen.doubts.push(Warning::warning(
            Code::TapOverflown,
            format!(
                "{} packets are more than can be followed: runs of losses are not reported; a shorter span has fewer",
                into.left_out() + out.left_out()
            ),
        ));
    } else {
        seen.lost = into.lost(&out);
        reconcile(bed, &first, &mut seen)?;
    }
    Ok(seen)
}

/// Waits until all packets have come out or were lost, and the sink has had time to take them.
fn linger(bed: &Testbed) -> Result<(), BenchError> {
    let begun = Instant::now();
    loop {
        thread::sleep(LINGER);
        let s = bed.sample(Time::ZERO)?;
        let gone = s.forwarded.packets + s.queue_drops + s.not_taken;
        if gone >= s.offered.packets || begun.elapsed() > LONGEST {
            thread::sleep(LINGER);
            return Ok(());
        }
    }
}

/// Checks that the number of lost packets agrees with the counters. If not, the tap missed some.
fn reconcile(bed: &Testbed, first: &Sample, seen: &mut Seen) -> Result<(), BenchError> {
    seen.end = bed.sample(Time::ZERO)?.since(first);
    let counted = seen.end.queue_drops + seen.end.not_taken + seen.end.sink_missed;
    let known = seen.lost.iter().filter(|l| **l).count() as u64;
    if !seen.lost.is_empty() && known.abs_diff(counted) > counted / 100 + 2 {
        seen.lost.clear();
        seen.doubts.push(Warning::warning(
            Code::LossesNotTold,
            format!("{known} packets did not come out, and {counted} were counted as lost: runs of losses are not reported"),
        ));
    }
    Ok(())
}

/// Reads the counters periodically until the end of the span.
fn watch(
    bed: &Testbed,
    settings: &Settings,
    first: &Sample,
    stop: &dyn Fn() -> bool,
) -> Result<Seen, BenchError> {
    let begun = Instant::now();
    let mut samples = vec![Sample {
        processor: first.processor,
        ..Sample::default()
    }];
    let looks = settings.span.as_nanos() / settings.every.as_nanos().max(1);
    for look in 1..=looks {
        let due = Duration::from_nanos(look * settings.every.as_nanos());
        while let Some(left) = due.checked_sub(begun.elapsed()) {
            if stop() && left > Duration::from_millis(20) {
                break;
            }
            thread::sleep(left.min(Duration::from_millis(10)));
        }
        let at = Time::from_nanos(begun.elapsed().as_nanos() as u64);
        samples.push(bed.sample(at)?.since(first));
        if stop() {
            break;
        }
    }
    Ok(Seen {
        samples,
        doubts: bed.doubts.clone(),
        ..Seen::default()
    })
}

impl Count {
    fn since(&self, before: &Count) -> Count {
        Count {
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

impl Sample {
    /// The difference of the counters since `before`. Time and processor times are kept.
    fn since(&self, before: &Sample) -> Sample {
        Sample {
            at: self.at,
            offered: self.offered.since(&before.offered),
            forwarded: self.forwarded.since(&before.forwarded),
            back: self.back.since(&before.back),
            queue_drops: self.queue_drops.saturating_sub(before.queue_drops),
            not_taken: self.not_taken.saturating_sub(before.not_taken),
            sink_missed: self.sink_missed.saturating_sub(before.sink_missed),
            processor: self.processor,
        }
    }
}
