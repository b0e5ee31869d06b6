//! Sources whose timers rest while more waits than can be sent: nobody sees a difference.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use swell_base::{Dur, Packet, QueueLimit, Rate, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::{Algorithm, Config};
use swell_workload::{
    Access, Action, Beat, Conn, Event, Info, Law, Parametric, ParametricConfig, Record, Transport,
    Workload,
};
use swell_world::{Direction, Parties, Tap, World};

/// A source that does not say that its timer does nothing else; counts how often it was asked.
struct Restless {
    source: Parametric,
    alone: bool,
    asked: Sender<()>,
}

impl Workload for Restless {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        self.source.handle(now, event, actions);
    }
    fn beat(&mut self, token: u64) -> Option<Beat> {
        self.asked.send(()).expect("the test listens");
        let beat = self.source.beat(token)?;
        Some(Beat {
            alone: beat.alone && self.alone,
            ..beat
        })
    }
    fn take_records(&mut self) -> Vec<Record> {
        self.source.take_records()
    }
    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        self.source.finish(info);
    }
}

/// When, whose, which way, what.
type Sight = (Time, u32, bool, Packet);

/// Every packet at both ends of the bottleneck.
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

/// All packets of ten seconds, and how often sources were asked.
fn run(tcp: &Config, law: Law, mbit: u64, alone: bool) -> (Vec<Sight>, usize) {
    let link = LinkConfig {
        rate: Some(Rate::from_bps(5_000_000)),
        delay: Dur::from_millis(20),
        queue: QueueLimit::Packets(12),
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 7);
    let (log, seen) = channel();
    world.set_tap(Box::new(Log(log)));
    let (asked, times) = channel();
    for i in 0..5 {
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
        let machine = Restless {
            source: Parametric::new(source, u64::from(i)),
            alone,
            asked: asked.clone(),
        };
        world.add(Box::new(machine), Tag::Background, Arc::new(tcp.clone()));
    }
    // In steps, since who looks on must not matter either.
    for step in 1..=100 {
        world.advance(Time::from_secs_f64(f64::from(step) * 0.1));
    }
    assert!(world.bottleneck(Direction::Up).ledger().arrived > 300);
    (seen.try_iter().collect(), times.try_iter().count())
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
    ];
    for (i, tcp) in profiles.iter().enumerate() {
        // Less than the link carries, as much, and more.
        for mbit in [3, 5, 9] {
            for law in [Law::Poisson, Law::Constant] {
                let (rests, few) = run(tcp, law, mbit, true);
                let (never, many) = run(tcp, law, mbit, false);
                assert!(rests == never, "profile {i}, {mbit} Mbit/s, {law:?}");
                // Twice as much as is sent: many writes have yet to be asked for. Nagle's rule and pacing mind
                // every write.
                let minds = tcp.nagle || tcp.algorithm == Algorithm::Bbr;
                assert!(mbit < 9 || minds || few < many, "{few} of {many}");
            }
        }
    }
}
