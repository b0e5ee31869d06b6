//! Suspending the timers of sources with a backlog makes no observable difference.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use swell_base::{Dur, Packet, QueueLimit, Rate, Tag, Time};
use swell_path::{Ledger, LinkConfig, Loss};
use swell_tcp::{Algorithm, Config, Stats};
use swell_workload::{
    Access, Action, Conn, End, Event, Info, Law, Parametric, ParametricConfig, Record, TimedWrite,
    Transport, Workload,
};
use swell_world::{Direction, Parties, Tap, World};

/// A source that may hide that its timer only writes. It counts how often it is asked.
struct Restless {
    source: Parametric,
    alone: bool,
    asked: Sender<()>,
}

impl Workload for Restless {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        self.source.handle(now, event, actions);
    }
    fn timed_write(&mut self, token: u64) -> Option<TimedWrite> {
        let _ = self.asked.send(()); // the receiver may be gone
        let write = self.source.timed_write(token)?;
        Some(TimedWrite {
            alone: write.alone && self.alone,
            ..write
        })
    }
    fn take_records(&mut self) -> Vec<Record> {
        self.source.take_records()
    }
    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        self.source.finish(info);
    }
}

/// Instant, workload, whether the packet goes to the server, packet.
type Sight = (Time, u32, bool, Packet);

/// Records every packet at both ends of the bottleneck.
struct Log(Sender<Sight>);

impl Tap for Log {
    fn packet(&mut self, at: Time, who: &Parties, to_server: bool, packet: &Packet) {
        let sight = (at, who.workload, to_server, *packet);
        self.0.send(sight).expect("the test listens");
    }
    fn arrival(&mut self, at: Time, who: &Parties, to_server: bool, packet: &Packet) {
        self.packet(at, who, to_server, packet);
    }
}

/// All observable results of a run.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// All packets at both ends of the bottleneck, if there is a tap.
    sights: Vec<Sight>,
    ledgers: [Ledger; 2],
    hops: u64,
    packets: u64,
    stats: Vec<Option<[Stats; 2]>>,
}

fn link(mbit: u64, loss: Loss) -> LinkConfig {
    LinkConfig {
        rate: Some(Rate::from_bps(mbit * 1_000_000)),
        delay: Dur::from_millis(20),
        queue: QueueLimit::Packets(12),
        loss,
        ..LinkConfig::default()
    }
}

/// Runs for a number of seconds, in steps, because observing the run must not matter either.
fn run(
    (there, seed): (LinkConfig, u64),
    machines: Vec<Box<dyn Workload>>,
    tcp: &Config,
    (tap, seconds): (bool, u32),
) -> Outcome {
    let back = LinkConfig {
        loss: Loss::None,
        ..there.clone()
    };
    let mut world = World::new(&[there, back], seed);
    let (log, seen) = channel();
    if tap {
        world.set_tap(Box::new(Log(log)));
    }
    let n = machines.len();
    for machine in machines {
        world.add(machine, Tag::Background, Arc::new(tcp.clone()));
    }
    for step in 1..=seconds * 10 {
        world.advance(Time::from_secs_f64(f64::from(step) * 0.1));
    }
    Outcome {
        sights: seen.try_iter().collect(),
        ledgers: [Direction::Up, Direction::Down].map(|d| world.bottleneck(d).ledger()),
        hops: world.hops(),
        packets: world.packets(),
        stats: (0..n).map(|i| world.tcp_stats(i, Conn(0))).collect(),
    }
}

/// Runs five clients at 5 Mbit/s. Also returns how often they were asked.
fn clients(tcp: &Config, law: Law, mbit: u64, alone: bool, tap: bool) -> (Outcome, usize) {
    let (asked, times) = channel();
    let client = |i: u32| {
        let source = ParametricConfig {
            law,
            transport: Transport::Tcp,
            packet: 1400 + i * 20,
            rate: [Rate::from_bps(mbit * 200_000), Rate::from_bps(0)],
            sources: 1,
            left: Access {
                delay: Dur::from_millis(10 + u64::from(i)),
                up: Some(Rate::from_bps(10_000_000)),
                ..Access::default()
            },
            right: Access::default(),
        };
        Box::new(Restless {
            source: Parametric::new(source, u64::from(i)),
            alone,
            asked: asked.clone(),
        }) as Box<dyn Workload>
    };
    let outcome = run(
        (link(5, Loss::None), 7),
        (0..5).map(client).collect(),
        tcp,
        (tap, 10),
    );
    assert!(outcome.ledgers[0].arrived > 300);
    (outcome, times.try_iter().count())
}

#[test]
fn packets_are_the_same_to_the_last_bit_whether_timers_rest_or_not() {
    let with = |algorithm, config: Config| Config {
        algorithm,
        packets: true,
        ..config
    };
    let profiles = [
        with(Algorithm::Reno, Config::classic()),
        with(Algorithm::Cubic, Config::linux()),
        with(Algorithm::Bbr, Config::linux()),
        with(Algorithm::Reno, Config::ns2_era()),
        with(Algorithm::NewReno, Config::ns2_modern()),
        with(Algorithm::Vegas, Config::ns2_modern()),
        Config {
            window_validation: true,
            nagle: true,
            ..with(Algorithm::Reno, Config::classic())
        },
        // Writes are merged into segments here, so timers must not be suspended.
        Config::classic(),
        Config::linux(),
    ];
    for (i, tcp) in profiles.iter().enumerate() {
        // Less than the link carries, the same, and more.
        for mbit in [3, 5, 9] {
            for law in [Law::Poisson, Law::Constant] {
                for tap in [true, false] {
                    let (rests, few) = clients(tcp, law, mbit, true, tap);
                    let (never, many) = clients(tcp, law, mbit, false, tap);
                    assert!(rests == never, "profile {i}, {mbit} Mbit/s, {law:?}");
                    // At 9 Mbit/s half the writes can stay pending. Nagle's rule, pacing and merged writes are
                    // exceptions, because they depend on every write.
                    let minds = tcp.nagle || tcp.algorithm == Algorithm::Bbr || !tcp.packets;
                    assert!(mbit < 9 || minds || few < many, "{few} of {many}");
                }
            }
        }
    }
}

/// A tail loss probe sends new data if the receive window has room for the backlog.
#[test]
fn probes_see_what_would_wait() {
    let lossy = Loss::GilbertElliott {
        to_bad: 0.03,
        to_good: 0.03,
        loss_good: 0.0,
        loss_bad: 1.0,
    };
    let mut probes = 0;
    for seed in 0..80 {
        let tcp = Config {
            packets: true,
            recv_tuning: false,
            recv_buffer: 15_600, // not a whole number of writes
            ..Config::linux()
        };
        let go = |alone| {
            let source = ParametricConfig {
                law: Law::Poisson,
                transport: Transport::Tcp,
                packet: 1352,
                rate: [Rate::from_bps(12_000_000), Rate::from_bps(0)],
                sources: 1,
                left: Access {
                    delay: Dur::from_millis(10),
                    ..Access::default()
                },
                right: Access::default(),
            };
            let machine = Restless {
                source: Parametric::new(source, seed),
                alone,
                asked: channel().0,
            };
            run(
                (link(50, lossy), seed),
                vec![Box::new(machine)],
                &tcp,
                (true, 10),
            )
        };
        let outcome = go(true);
        probes += outcome.stats[0].map_or(0, |s| s[0].probes);
        assert!(outcome == go(false), "seed {seed}");
    }
    assert!(probes > 50, "{probes}");
}

/// A source on whose connection other operations happen as well.
struct Busy {
    what: What,
    over: bool,
    alone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// Another source writes to the other end.
    BothEnds,
    Writes,
    Closes,
    Aborts,
    /// Aborts the connection and ends the timed writes.
    Ends,
}

impl Workload for Busy {
    fn handle(&mut self, _: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                actions.push(Action::Connect(Conn(0), Box::default()));
                actions.push(Action::Timer(Dur::from_millis(100), 0));
                if self.what == What::BothEnds {
                    actions.push(Action::Timer(Dur::from_millis(103), 1));
                }
                actions.push(Action::Timer(Dur::from_millis(2000), 9));
            }
            Event::Timer(9) => match self.what {
                What::BothEnds => {}
                What::Writes => actions.push(Action::Send(Conn(0), End::Client, 333)),
                What::Closes => actions.push(Action::Close(Conn(0), End::Client)),
                What::Aborts | What::Ends => {
                    self.over = true;
                    actions.push(Action::Abort(Conn(0)));
                }
            },
            _ => {}
        }
    }
    fn timed_write(&mut self, token: u64) -> Option<TimedWrite> {
        if token > 1 || (self.over && self.what == What::Ends) {
            return None;
        }
        Some(TimedWrite {
            conn: Conn(0),
            end: [End::Client, End::Server][token as usize],
            bytes: 1000,
            pause: Dur::from_micros(1000 + 77 * token),
            alone: self.alone,
        })
    }
    fn take_records(&mut self) -> Vec<Record> {
        Vec::new()
    }
    fn finish(&mut self, _: &dyn Fn(Conn) -> Info) {}
}

#[test]
fn whatever_else_is_done_to_the_connection() {
    let tcp = Config {
        packets: true,
        ..Config::classic()
    };
    for what in [
        What::BothEnds,
        What::Writes,
        What::Closes,
        What::Aborts,
        What::Ends,
    ] {
        let go = |alone| {
            let machine = Busy {
                what,
                over: false,
                alone,
            };
            run(
                (link(2, Loss::None), 1),
                vec![Box::new(machine)],
                &tcp,
                (true, 60),
            )
        };
        let outcome = go(true);
        assert!(outcome.sights.len() > 500, "{what:?}");
        assert!(outcome == go(false), "{what:?}");
    }
}
