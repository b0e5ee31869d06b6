//! Properties of whole worlds.

mod observers;

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use swell_base::{Bytes, DropReason, Dur, FlowId, Packet, QueueLimit, Rate, Tag, Time};
use swell_path::{
    Change, Discipline, LinkConfig, Loss, NewQueue, PriorityConfig, RedConfig, RedThresholds,
    RedWeight,
};
use swell_tcp::{Algorithm, Config};
use swell_workload::{
    Access, Action, Conn, End, Event, Greedy, GreedyConfig, Info, Law, Open, Outcome, Packets,
    Parametric, ParametricConfig, Record, Replay, ReplayConfig, RequestRecord, Transport, Web,
    WebConfig, Workload,
};
use swell_world::{Direction, Parties, Tap, World};

fn link(rate: &str, delay: Dur, queue: &str) -> LinkConfig {
    LinkConfig {
        rate: Some(rate.parse().unwrap()),
        delay,
        queue: queue.parse().unwrap(),
        ..LinkConfig::default()
    }
}

fn dumbbell(rate: &str, delay_ms: u64, queue: &str, seed: u64) -> World {
    let both = link(rate, Dur::from_millis(delay_ms), queue);
    World::new(&[both.clone(), both], seed)
}

fn web(object: u64, clients: u32, count: Option<u32>) -> WebConfig {
    WebConfig {
        clients,
        objects: vec![Bytes(object)],
        request: Bytes(300),
        server_think: Dur::ZERO,
        think: Dur::ZERO,
        keep: false,
        count,
        start: Dur::ZERO,
        client: Access::default(),
        server: Access::default(),
    }
}

fn udp(law: Law, rate: &str) -> ParametricConfig {
    ParametricConfig {
        law,
        transport: Transport::Udp,
        packet: 1000,
        rate: [Rate::from_bps(0), rate.parse().unwrap()],
        sources: 3,
        left: Access::default(),
        right: Access::default(),
    }
}

fn requests(world: &mut World, index: usize) -> Vec<RequestRecord> {
    world
        .take_records(index)
        .into_iter()
        .filter_map(|r| match r {
            Record::Request(r) => Some(r),
            Record::Flow(_) => None,
        })
        .collect()
}

fn seconds(r: &RequestRecord) -> f64 {
    r.last_byte.expect("finished").since(r.start).as_secs_f64()
}

#[test]
fn transfers_of_4_kb_and_1_mb_take_what_slow_start_takes() {
    // The link is so fast that a window leaves as a burst; RTT 40 ms. IW 10 of 1448 bytes: 4 KB is one flight; 1 MB
    // needs flights of 10, 20, 40, ... segments: 691 segments in 7 flights.
    let tcp = Arc::new(Config {
        algorithm: Algorithm::NewReno,
        ..Config::linux()
    });
    for (object, flights) in [(4_000, 1), (1_000_000, 7)] {
        let mut world = dumbbell("1Gbit", 20, "10000pkt", 1);
        let w = world.add(
            Box::new(Web::new(web(object, 1, Some(1)))),
            Tag::Foreground,
            tcp.clone(),
        );
        world.advance(Time::from_secs_f64(5.0));
        let got = requests(&mut world, w);
        // Handshake, then request up and the first flight down, then a round trip per flight.
        let rounds = 1 + flights;
        let propagation = f64::from(rounds) * 0.040;
        let took = seconds(&got[0]);
        // The rest is transmission at 1 Gbit/s: 12 us a packet, less than the time of the whole object.
        let transmission = (object as f64 + 100_000.0) * 8.0 / 1e9;
        assert!(
            took >= propagation && took < propagation + transmission,
            "{object} bytes: {took} against {propagation}"
        );
    }
}

#[test]
fn a_window_limited_transfer_runs_at_window_per_round_trip() {
    let tcp = Arc::new(Config {
        recv_buffer: 64_000,
        ..Config::linux()
    });
    let mut world = dumbbell("100Mbit", 50, "10000pkt", 1);
    let w = world.add(
        Box::new(Web::new(web(20_000_000, 1, Some(1)))),
        Tag::Foreground,
        tcp,
    );
    world.advance(Time::from_secs_f64(100.0));
    let took = seconds(&requests(&mut world, w)[0]);
    let rate = 20_000_000.0 / took;
    let window = (64_000 / 1448 * 1448) as f64;
    // The ACK of the window's last segment arrives after a round trip and the segment's own transmission time.
    let law = window / (0.100 + 64_000.0 * 8.0 / 100e6);
    assert!((rate / law - 1.0).abs() < 0.07, "{rate} against {law}");
}

#[test]
fn constant_rate_below_capacity_loses_nothing() {
    let mut world = dumbbell("10Mbit", 10, "5pkt", 1);
    let tcp = Arc::new(Config::linux());
    world.add(
        Box::new(Parametric::new(udp(Law::Constant, "9.9Mbit"), 1)),
        Tag::Background,
        tcp,
    );
    world.advance(Time::from_secs_f64(60.0));
    let ledger = world.bottleneck(Direction::Down).ledger();
    assert_eq!(ledger.dropped_total(), 0);
    assert!(
        (ledger.arrived as f64 - 9.9e6 / 8000.0 * 60.0).abs() < 2.0,
        "{}",
        ledger.arrived
    );
}

#[test]
fn equal_flows_share_equally() {
    // Jain's index of eight equal NewReno flows over a minute (Jain, Chiu & Hawe 1984).
    let tcp = Arc::new(Config {
        algorithm: Algorithm::NewReno,
        ..Config::linux()
    });
    let mut world = dumbbell("20Mbit", 20, "100kB", 3);
    let w = world.add(
        Box::new(Web::new(web(u64::MAX / 4, 8, Some(1)))),
        Tag::Foreground,
        tcp,
    );
    world.advance(Time::from_secs_f64(120.0));
    world.finish();
    let got: Vec<f64> = requests(&mut world, w)
        .iter()
        .map(|r| r.bytes as f64)
        .collect();
    assert_eq!(got.len(), 8);
    let (sum, squares) = got.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    let jain = sum * sum / (8.0 * squares);
    assert!(jain > 0.95, "{jain}: {got:?}");
    // Together they fill the link: 1448 of 1500 bytes are payload.
    let used = sum * 8.0 / 120.0 / 20e6 * 1500.0 / 1448.0;
    assert!(used > 0.95, "{used}");
}

/// All results of a run, as text.
fn story(seed: u64, steps: u64) -> String {
    let mut config = link("8Mbit", Dur::from_millis(10), "30pkt");
    config.loss = Loss::Independent { p: 0.01 };
    let mut world = World::new(&[config.clone(), config], seed);
    world.meter(Dur::from_millis(1), Dur::from_millis(100));
    let tcp = Arc::new(Config::linux());
    let path = Access {
        delay: Dur::from_millis(3),
        loss_up: 0.02,
        ..Access::default()
    };
    let fg = WebConfig {
        client: path,
        ..web(50_000, 3, None)
    };
    let a = world.add(Box::new(Web::new(fg)), Tag::Foreground, tcp.clone());
    let poisson = Parametric::new(udp(Law::Poisson, "3Mbit"), seed);
    let b = world.add(Box::new(poisson), Tag::Background, tcp.clone());
    let over_tcp = ParametricConfig {
        transport: Transport::Tcp,
        left: Access {
            up: Some(Rate::from_bps(2_000_000)),
            ..path
        },
        ..udp(Law::Poisson, "1Mbit")
    };
    let c = world.add(
        Box::new(Parametric::new(over_tcp, seed)),
        Tag::Background,
        tcp,
    );
    for i in 1..=steps {
        world.advance(Time::from_nanos(20_000_000_000 / steps * i));
    }
    world.finish();
    let records = [a, b, c].map(|i| world.take_records(i));
    let meters = [Direction::Up, Direction::Down].map(|d| world.bottleneck(d).meter().cloned());
    let ledgers = [Direction::Up, Direction::Down].map(|d| world.bottleneck(d).ledger());
    // Ledger and meter count the same packets independently.
    for (l, meter) in ledgers.iter().zip(&meters) {
        let bins = &meter.as_ref().expect("metered").bins;
        let count = |of: fn(&swell_path::CoarseBin) -> [u32; 2]| -> u64 {
            bins.iter().flat_map(of).map(u64::from).sum()
        };
        assert_eq!(count(|bin| bin.arrived_packets), l.arrived);
        assert_eq!(count(|bin| bin.dropped), l.dropped_total());
    }
    format!(
        "{records:?} {meters:?} {ledgers:?} {} {}",
        world.hops(),
        world.packets()
    )
}

#[test]
fn a_run_is_a_function_of_its_seed_however_often_it_is_polled() {
    let once = story(5, 1);
    assert_eq!(once, story(5, 1));
    // 16, 625 and 100 000 steps divide 20 s exactly.
    for steps in [16, 625, 100_000] {
        assert_eq!(once, story(5, steps), "{steps} steps");
    }
    assert_ne!(once, story(6, 1));
}

#[test]
fn flows_and_access_paths_are_given_back() {
    let mut world = dumbbell("50Mbit", 5, "100pkt", 1);
    let path = Access {
        delay: Dur::from_millis(2),
        up: Some(Rate::from_bps(5_000_000)),
        ..Access::default()
    };
    let config = WebConfig {
        client: path,
        server: path,
        ..web(2_000, 4, None)
    };
    let w = world.add(
        Box::new(Web::new(config)),
        Tag::Foreground,
        Arc::new(Config::linux()),
    );
    world.advance(Time::from_secs_f64(120.0));
    let got = requests(&mut world, w);
    assert!(
        got.len() > 5_000 && got.iter().all(|r| r.outcome == Outcome::Done),
        "{}",
        got.len()
    );
    assert!(
        world.open_flows() <= 12,
        "{} flows open",
        world.open_flows()
    );
    // Access links are kept for ten seconds after a flow, four per flow. They must not accumulate for ever.
    assert!(
        world.links() < got.len(),
        "{} links for {} flows",
        world.links(),
        got.len()
    );
}

#[test]
fn a_queue_limit_in_packets_is_what_waits() {
    let limit = QueueLimit::Packets(7);
    let mut world = dumbbell("1Mbit", 300, &limit.to_string(), 1);
    world.meter(Dur::from_millis(1), Dur::from_millis(100));
    let tcp = Arc::new(Config::linux());
    world.add(
        Box::new(Parametric::new(udp(Law::Constant, "2Mbit"), 1)),
        Tag::Background,
        tcp,
    );
    world.advance(Time::from_secs_f64(5.0));
    let meter = world.bottleneck(Direction::Down).meter().expect("metered");
    assert_eq!(meter.bins.iter().map(|b| b.queue_max).max(), Some(7_000));
}

#[test]
fn packets_that_outlive_their_flow_disturb_nobody() {
    // Access links are so slow that packets of a flow remain in the network for a minute after it has ended.
    // Meanwhile new flows open.
    let mut world = dumbbell("10Mbit", 5, "100pkt", 1);
    let slow = Access {
        up: Some(Rate::from_bps(12_000)),
        down: Some(Rate::from_bps(12_000)),
        ..Access::default()
    };
    let tcp = Arc::new(Config::linux());
    let bursts = Bursts {
        path: slow,
        packets: 60,
        opened: 0,
    };
    world.add(Box::new(bursts), Tag::Background, tcp);
    world.advance(Time::from_secs_f64(300.0));
    for direction in [Direction::Up, Direction::Down] {
        let l = world.bottleneck(direction).ledger();
        assert_eq!(l.held(), 0, "{l:?}");
    }
    assert_eq!(world.open_flows(), 0);
    assert_eq!(world.pooled(), 0, "so is the place of every packet");
    assert_eq!(
        world.links(),
        2,
        "every access link is given back, each once"
    );
}

#[test]
fn no_packet_leaves_its_place_behind() {
    // Losses of every kind: by a full queue, early drop and on the wire, at the bottleneck and before it.
    let slow = Access {
        up: Some(Rate::from_bps(1_500_000)),
        loss_down: 0.01,
        ..Access::default()
    };
    let red = Discipline::Red(RedConfig {
        thresholds: RedThresholds::Packets { min: 1.0, max: 5.0 },
        weight: RedWeight::Fixed(0.1),
        ..RedConfig::default()
    });
    for (discipline, reason) in [
        (Discipline::Fifo, DropReason::QueueFull),
        (red, DropReason::Aqm),
    ] {
        let config = LinkConfig {
            discipline,
            loss: Loss::Independent { p: 0.02 },
            ..link("1Mbit", Dur::from_millis(10), "10pkt")
        };
        let shorter = Change {
            at: Time::from_secs_f64(1.0),
            queue: Some(NewQueue {
                discipline: Discipline::Fifo,
                limit: QueueLimit::Packets(5),
                rate: config.rate,
            }),
            ..Change::default()
        };
        let changes = LinkConfig {
            changes: vec![shorter],
            ..config.clone()
        };
        let mut world = World::new(&[config, changes], 1);
        let fetches = WebConfig {
            client: slow,
            ..web(100_000, 8, Some(3))
        };
        let tcp = Arc::new(Config::linux());
        let w = world.add(Box::new(Web::new(fetches)), Tag::Foreground, tcp.clone());
        let bursts = Bursts {
            path: slow,
            packets: 100, // more than the access link can queue
            opened: 0,
        };
        world.add(Box::new(bursts), Tag::Background, tcp);
        world.advance(Time::from_secs_f64(0.5));
        assert!(world.pooled() > 0);
        world.advance(Time::from_secs_f64(400.0));
        assert_eq!(requests(&mut world, w).len(), 24);
        assert_eq!(world.open_flows(), 0);
        let ledgers = [Direction::Up, Direction::Down].map(|d| world.bottleneck(d).ledger());
        for (l, full) in ledgers.iter().zip([reason, DropReason::QueueFull]) {
            assert_eq!(l.held(), 0, "{l:?}");
            for why in [full, DropReason::Loss] {
                assert!(l.dropped[why as usize] > 0, "{why:?} {l:?}");
            }
        }
        assert_eq!(world.pooled(), 0, "{ledgers:?}");
    }
}

/// Opens a datagram flow every two seconds, sends a burst on it and aborts it at once.
#[derive(Debug)]
struct Bursts {
    path: Access,
    packets: u32,
    opened: u32,
}

impl Workload for Bursts {
    fn handle(&mut self, _: Time, event: Event, actions: &mut Vec<Action>) {
        if !matches!(event, Event::Start | Event::Timer(_)) || self.opened == 50 {
            return;
        }
        let conn = Conn(self.opened);
        self.opened += 1;
        let open = Open {
            client: self.path,
            server: self.path,
            ..Open::default()
        };
        actions.push(Action::Datagrams(conn, Box::new(open)));
        for _ in 0..self.packets {
            actions.push(Action::SendDatagram(conn, End::Client, 1000));
        }
        actions.push(Action::Abort(conn));
        actions.push(Action::Timer(Dur::from_secs(2), 0));
    }
    fn take_records(&mut self) -> Vec<Record> {
        Vec::new()
    }
    fn finish(&mut self, _: &dyn Fn(Conn) -> Info) {}
}

#[test]
fn a_replay_arrives_at_its_own_times_and_loses_nothing_on_a_wide_link() {
    let up: Packets = (0..1000u64)
        .map(|i| {
            (
                Dur::from_micros(i * i % 977 + 1000 * i),
                40 + (i % 1461) as u32,
            )
        })
        .collect();
    let down: Packets = Arc::new([(Dur::from_millis(3), 1500), (Dur::from_millis(3), 40)]);
    let bytes: u64 = up.iter().map(|p| u64::from(p.1)).sum();
    let mut world = dumbbell("1Gbit", 1, "1000pkt", 1);
    world.take_census();
    let w = world.add(
        Box::new(Replay::new(ReplayConfig::exact([up.clone(), down]))),
        Tag::Background,
        Arc::new(Config::linux()),
    );
    // Exact to the nanosecond: nothing queues, so the packets that have arrived are those that were due.
    for i in [0, 1, 500, 999] {
        world.advance(Time::ZERO + up[i].0);
        let due = up.iter().filter(|p| p.0 <= up[i].0).count() as u64;
        assert_eq!(world.bottleneck(Direction::Up).ledger().arrived, due);
    }
    world.advance(Time::from_secs_f64(2.0));
    let tally = world
        .bottleneck(Direction::Up)
        .census()
        .expect("taken")
        .tally(w as u32);
    assert_eq!(
        (tally.arrived, tally.sent_bytes, tally.dropped),
        (1000, bytes, 0)
    );
    assert_eq!(world.bottleneck(Direction::Down).ledger().arrived, 2);
}

#[test]
fn a_stretched_replay_on_a_grid_keeps_the_order_and_the_grid() {
    let packets: Packets = (0..100u64)
        .map(|i| (Dur::from_micros(i * 730), 100))
        .collect();
    let config = ReplayConfig {
        stretch: 2.0,
        grid: Dur::from_millis(1),
        ..ReplayConfig::exact([packets, Arc::new([])])
    };
    let mut world = dumbbell("1Gbit", 0, "1000pkt", 1);
    world.meter(Dur::from_micros(500), Dur::from_secs(1));
    world.add(
        Box::new(Replay::new(config)),
        Tag::Background,
        Arc::new(Config::linux()),
    );
    world.advance(Time::from_secs_f64(1.0));
    let meter = world.bottleneck(Direction::Up).meter().expect("metered");
    let bins = &meter.fine_packets[1];
    // Half-millisecond bins: all packets lie on the millisecond grid, so only even bins are used.
    assert!(bins.iter().skip(1).step_by(2).all(|&n| n == 0));
    assert_eq!(bins.iter().sum::<u32>(), 100);
    assert_eq!(bins.len() / 2, 99 * 730 * 2 / 1000 + 1);
}

#[test]
fn a_greedy_transfer_fills_the_link() {
    let mut world = dumbbell("10Mbit", 20, "100pkt", 1);
    let w = world.add(
        Box::new(Greedy::new(GreedyConfig::default())),
        Tag::Foreground,
        Arc::new(Config::linux()),
    );
    world.advance(Time::from_secs_f64(60.0));
    world.finish();
    let Some(Record::Flow(flow)) = world.take_records(w).pop() else {
        panic!("a greedy connection is one record");
    };
    let payload_share = 1448.0 / 1500.0;
    let rate = flow.up as f64 * 8.0 / 60.0;
    assert!(rate > 0.97 * payload_share * 10e6, "{rate}");
    assert!(rate < payload_share * 10e6, "{rate}");
}

/// Two classes in strict priority without preemption. The mean wait of the upper class is the mean residual
/// transmission time divided by one minus its own load (Cobham 1954).
#[test]
fn the_wait_under_priority_is_the_formula_of_m_g_1() {
    let fast = |rate| LinkConfig {
        discipline: Discipline::Priority(PriorityConfig::default()),
        ..link(rate, Dur::from_millis(5), "100000pkt")
    };
    let mut world = World::new(&[fast("10Mbit"), fast("10Mbit")], 3);
    world.take_census();
    let tcp = Arc::new(Config::linux());
    let poisson = |packet, rate: &str| ParametricConfig {
        packet,
        rate: [rate.parse().unwrap(), Rate::from_bps(0)],
        sources: 1,
        ..udp(Law::Poisson, "1bit")
    };
    let upper = world.add(
        Box::new(Parametric::new(poisson(400, "3Mbit"), 1)),
        Tag::Foreground,
        tcp.clone(),
    );
    let lower = world.add(
        Box::new(Parametric::new(poisson(1500, "5Mbit"), 2)),
        Tag::Background,
        tcp,
    );
    world.advance(Time::from_secs_f64(2000.0));
    let census = world.bottleneck(Direction::Up).census().expect("taken");
    let (s_upper, s_lower) = (400.0 * 8.0 / 10e6, 1500.0 * 8.0 / 10e6);
    let residual = (0.3 * s_upper + 0.5 * s_lower) / 2.0;
    for (who, formula) in [
        (upper, residual / (1.0 - 0.3)),
        (lower, residual / ((1.0 - 0.3) * (1.0 - 0.8))),
    ] {
        let tally = census.tally(who as u32);
        let wait = tally.wait as f64 / tally.sent as f64 / 1e9;
        // A million packets. The waits of the lower class are correlated, so its mean is less precise.
        assert!(
            (wait / formula - 1.0).abs() < 0.02,
            "{wait} against {formula}"
        );
    }
}
