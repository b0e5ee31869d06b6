//! Tests a router: the kernel's own forwarding in a network namespace, between a sending and a receiving host.
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
//! * **Losses** are known per packet: a tap on the sink's cable shows which packets came out. What was sent is known from
//!   the numbers in the datagrams of a [`Pattern`], and for TCP from a tap on the source's cable.
//! * **TCP sends single packets**: super-packets of up to 64 KiB do not occur on a real link.
//!
//! *Not supported*: IPv6; several routers in a row; a rate limit on the reverse path.

mod losses;
mod pattern;
mod seen;
mod settings;
mod testbed;

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use swell_base::{Dur, Time, Warning};
use swell_host::{CABLE, Late, Rights};

pub use pattern::Pattern;
pub use seen::{Number, Sample, Seen};
pub use settings::{BenchError, Settings};

use crate::{Addresses, Client, Config, Key, Play, Role, Run, Server, SharedPlan, Target};
use losses::{Marks, PORT, mark, number};
use testbed::Testbed;

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

/// Most time that packets may be in flight after the last was sent. It is far longer than any queue here, to allow
/// for a busy machine.
const LONGEST: Duration = Duration::from_secs(5);
/// Time for the sink to take what has left the router.
const LINGER: Duration = Duration::from_millis(200);
/// Time limit for client and server to agree.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often what is awaited is looked for.
const LOOK: Duration = Duration::from_millis(10);

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
        joined(scope.spawn(work))
    })
}

/// The result of a thread; its panic goes on in this one.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What was sent, and how.
struct Played {
    /// The marks of all packets that were sent, unless a tap has to see them.
    sent: Option<Marks>,
    late: Late,
    /// Share of its packets that the generator did not send.
    short: f64,
    doubts: Vec<Warning>,
}

fn constant(
    bed: &Testbed,
    settings: &Settings,
    pattern: &Pattern,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Seen, BenchError> {
    let any = ("0.0.0.0", 0);
    let source = bed.source.enter(|| UdpSocket::bind(any))??;
    // Datagrams to a port that nobody has would be answered.
    let _discarding = bed.sink.enter(|| UdpSocket::bind((any.0, PORT)))??;
    let play = |_: &AtomicBool| {
        let emitted = pattern.send(&source, testbed::prefix(), settings.span, stop)?;
        Ok(Played {
            short: emitted.short(),
            sent: Some(emitted.sent),
            late: emitted.late,
            doubts: Vec::new(),
        })
    };
    measure(bed, settings, true, play, stop)
}

fn sessions(
    bed: &Testbed,
    settings: &Settings,
    (plan, congestion): (&SharedPlan, &[String]),
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Seen, BenchError> {
    let key = Key::random()?;
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
    let clients = Addresses::parse(&[testbed::prefix().to_string()]).unwrap_or_default();
    let server = Role::Server(Server {
        clients: vec![clients.clone()],
        ..Server::default()
    });
    let server = bed.source.enter(|| Run::new(config(server)))??;
    let client = Role::Client(Client {
        index: 0,
        of: 1,
        pool: clients,
        servers: vec![Target {
            address: SocketAddr::new(testbed::SOURCE.into(), server.port()),
            datagrams: server.datagram_port(),
            pool: Default::default(),
        }],
        plan: plan.clone(),
        play: Play::default(),
    });
    let client = bed.sink.enter(|| Run::new(config(client)))??;
    let longest = settings.span + Dur::from_secs(20);
    server.renew(longest);
    client.renew(longest);
    let asked = Instant::now();
    while client.statistics().parties == 0 {
        if asked.elapsed() > PATIENCE {
            return Err("source and sink did not come to an agreement through the router".into());
        }
        thread::sleep(LOOK);
    }
    let play = |over: &AtomicBool| {
        client.start();
        while !over.load(Ordering::Acquire) {
            thread::sleep(LOOK);
        }
        let played = client.stop();
        server.stop();
        Ok(Played {
            sent: None,
            late: played.late,
            short: 0.0,
            doubts: played.doubts(),
        })
    };
    measure(bed, settings, false, play, stop)
}

/// Watches the router while `play` sends, until it has ended or the span is over. Packets are `numbered`, or taps on both
/// sides of the router tell which of them came out.
fn measure(
    bed: &Testbed,
    settings: &Settings,
    numbered: bool,
    play: impl FnOnce(&AtomicBool) -> Result<Played, BenchError> + Send,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Seen, BenchError> {
    let source = (!numbered).then(|| bed.source.tap(CABLE)).transpose()?;
    let sink = bed.sink.tap(CABLE)?;
    let mark = if numbered { number } else { mark };
    let (over, gone) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut samples = vec![bed.sample(Time::ZERO)?];
    let (into, out, played) = thread::scope(|scope| {
        let gone = &gone;
        let into = source
            .as_ref()
            .map(|tap| scope.spawn(move || losses::read(tap, true, mark, gone)));
        let out = scope.spawn(|| losses::read(&sink, false, mark, gone));
        let player = scope.spawn(|| play(&over));
        let watched = watch(bed, settings, &mut samples, &|last| {
            stop() || (player.is_finished() && !last)
        });
        over.store(true, Ordering::Release);
        let played = joined(player);
        let lingered = linger(bed);
        gone.store(true, Ordering::Release);
        let (into, out) = (into.map(joined).transpose(), joined(out));
        watched.and(lingered)?;
        Ok::<_, BenchError>((into?, out?, played?))
    })?;
    let mut seen = Seen {
        end: bed.sample(Time::ZERO)?,
        samples,
        late: played.late,
        short: played.short,
        doubts: bed.doubts.clone(),
        ..Seen::default()
    };
    seen.doubts.extend(played.doubts);
    if let Some(into) = played.sent.or(into) {
        seen.compare(&into, &out);
    }
    Ok(seen)
}

/// Reads the counters periodically until the end of the span, or until `stop`, which knows whether the last interval is
/// read: a generator with bursts has nothing to send at its end.
fn watch(
    bed: &Testbed,
    settings: &Settings,
    samples: &mut Vec<Sample>,
    stop: &dyn Fn(bool) -> bool,
) -> Result<(), BenchError> {
    let begun = Instant::now();
    let looks = settings.span.as_nanos() / settings.every.as_nanos().max(1);
    for look in 1..=looks {
        let due = Duration::from_nanos(look * settings.every.as_nanos());
        while let Some(left) = due.checked_sub(begun.elapsed()) {
            if stop(look == looks) && left > 2 * LOOK {
                break;
            }
            thread::sleep(left.min(LOOK));
        }
        let at = Time::from_nanos(begun.elapsed().as_nanos() as u64);
        samples.push(bed.sample(at)?);
        if stop(look == looks) {
            break;
        }
    }
    Ok(())
}

/// Waits until all packets have come out or were lost, and the sink has had time to take them.
fn linger(bed: &Testbed) -> Result<(), BenchError> {
    let begun = Instant::now();
    loop {
        thread::sleep(LINGER);
        let s = bed.sample(Time::ZERO)?;
        if s.forwarded + s.dropped() >= s.offered || begun.elapsed() > LONGEST {
            thread::sleep(LINGER);
            return Ok(());
        }
    }
}
