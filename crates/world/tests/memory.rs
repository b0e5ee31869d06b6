//! Memory of an idle connection, and of learnt traffic.

#![expect(
    unsafe_code,
    reason = "an allocator that counts has to be an allocator"
)]
#![expect(clippy::disallowed_methods, reason = "reads the bundled model file")]
#![expect(clippy::print_stdout, reason = "the figures are what it is about")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::{Algorithm, Config};
use swell_traffic::{Knobs, Model, Network, Schedule};
use swell_workload::{Access, Action, Conn, End, Event, Info, Open, Record, Structural, Workload};
use swell_world::World;

/// The system's allocator, which also counts the bytes in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's obligations are the system allocator's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's obligations are the system allocator's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// So many that the fixed memory of a world, mostly its event queue, hardly matters.
const CONNECTIONS: u32 = 20_000;

/// Opens one connection after another. Each carries a request and a response, then stays idle.
struct Idle {
    access: Access,
    /// Time between two openings, so that few connections are busy at a time.
    apart: Dur,
    request: u64,
    response: u64,
}

impl Workload for Idle {
    fn handle(&mut self, _: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => actions.push(Action::Timer(self.apart, 0)),
            Event::Timer(n) => {
                let conn = Conn(n as u32);
                let open = Open {
                    client: self.access,
                    ..Open::default()
                };
                actions.push(Action::Connect(conn, Box::new(open)));
                actions.push(Action::Send(conn, End::Client, self.request));
                if conn.0 + 1 < CONNECTIONS {
                    actions.push(Action::Timer(self.apart, n + 1));
                }
            }
            Event::Connected(conn, End::Server) if self.response > 0 => {
                actions.push(Action::Send(conn, End::Server, self.response));
            }
            _ => {}
        }
    }
    fn take_records(&mut self) -> Vec<Record> {
        Vec::new()
    }
    fn finish(&mut self, _: &dyn Fn(Conn) -> Info) {}
}

/// Bytes per connection when all are idle, each after a request of 1 kB, and the number of connections with a loss.
/// Responses cross `back`.
fn idle(tcp: &Config, access: Access, back: &LinkConfig, apart: Dur, response: u64) -> [usize; 2] {
    let before = IN_USE.load(Ordering::Relaxed);
    let mut world = World::new(&[gateway(), back.clone()], 1);
    let idle = Idle {
        access,
        apart,
        request: 1_000,
        response,
    };
    let workload = world.add(Box::new(idle), Tag::Foreground, Arc::new(tcp.clone()));
    world.advance(Time::ZERO + apart * u64::from(CONNECTIONS) + Dur::from_secs(60));
    let mut lossy = 0;
    for conn in (0..CONNECTIONS).map(Conn) {
        let [client, server] = world.tcp_stats(workload, conn).expect("it stays open");
        assert_eq!((client.delivered, server.delivered), (response, 1_000));
        assert_eq!((client.in_flight, server.in_flight), (0, 0));
        lossy += usize::from(server.retransmitted > 0);
    }
    let bytes = IN_USE.load(Ordering::Relaxed) - before;
    [bytes / CONNECTIONS as usize, lossy]
}

fn gateway() -> LinkConfig {
    LinkConfig {
        rate: Some(Rate::from_bps(1_000_000_000)),
        delay: Dur::from_millis(10),
        queue: QueueLimit::Packets(1000),
        ..LinkConfig::default()
    }
}

const KIBIBYTE: usize = 1024;

/// One test, because all cases share one counter. The figure includes everything that the world keeps: flows, routes,
/// the workload's table, packets, events.
#[test]
fn an_idle_connection_takes_less_than_a_kibibyte() {
    after_requests_and_responses();
    after_losses();
    of_learnt_traffic();
}

/// Bytes in use since `before`, for each of `many`.
fn each(before: usize, many: usize) -> usize {
    (IN_USE.load(Ordering::Relaxed) - before) / many.max(1)
}

/// Sessions in progress at the beginning keep no copies of the exchanges of the model: many of these are long. An open
/// connection of learnt traffic has access paths of its own, and a script.
fn of_learnt_traffic() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../models/access-link.json.zst"
    );
    let file = std::fs::read(path).expect("the bundled model");
    let model = Arc::new(Model::from_slice(&file).expect("a model"));
    drop(file);
    let knobs = Knobs {
        sessions: 300.0,
        ..Knobs::default()
    };
    let second = Dur::from_secs(1);
    let before = IN_USE.load(Ordering::Relaxed);
    let schedule = Schedule::draw(&model, &knobs, 1, second, &Network::default()).expect("one");
    let entered = schedule.entered.len();
    let drawn = each(before, entered);
    println!("learnt: {drawn} bytes for each of {entered} sessions in progress");
    assert!(drawn < MOST_ENTERED, "{drawn} bytes");
    let machine = Structural::new(Arc::clone(&model), &schedule);
    drop(schedule);
    let kept = each(before, entered);
    println!("learnt: {kept} bytes for each before they go on");
    assert!(kept < MOST_ENTERED, "{kept} bytes");
    let wide = LinkConfig {
        rate: Some(Rate::from_bps(1_000_000_000)),
        ..gateway()
    };
    let mut world = World::new(&[wide.clone(), wide], 1);
    world.add(
        Box::new(machine),
        Tag::Background,
        Arc::new(Config::linux()),
    );
    world.advance(Time::ZERO + second);
    let open = world.open_flows();
    let open_bytes = each(before, open);
    println!("learnt: {open_bytes} bytes for each of {open} open connections");
    assert!(open_bytes < MOST_OPEN, "{open_bytes} bytes");
}

/// Memory of a session in progress before the run, and of an open connection of learnt traffic with all that belongs to
/// it. The budgets of the project.
const MOST_ENTERED: usize = 1_500;
const MOST_OPEN: usize = 2_500;

/// An idle connection keeps space for one segment in flight. Receivers of more than a few bytes also keep the state
/// of the receive window.
fn after_requests_and_responses() {
    let with = |algorithm, base| Config { algorithm, ..base };
    let own_path = Access {
        delay: Dur::from_millis(5),
        up: Some(Rate::from_bps(10_000_000)),
        down: Some(Rate::from_bps(10_000_000)),
        ..Access::default()
    };
    for (name, tcp, most) in [
        ("Reno", with(Algorithm::Reno, Config::classic()), KIBIBYTE),
        ("Linux", Config::linux(), KIBIBYTE),
        ("ns-2 era", Config::ns2_era(), KIBIBYTE),
        ("ns-2 modern", Config::ns2_modern(), KIBIBYTE),
        // Vegas keeps the measurements of one round trip.
        ("Vegas", with(Algorithm::Vegas, Config::ns2_modern()), 1400),
    ] {
        let bytes = |access, response| {
            let apart = Dur::from_millis(1);
            let [bytes, lossy] = idle(&tcp, access, &gateway(), apart, response);
            assert_eq!(lossy, 0, "{name}");
            bytes
        };
        for response in [0, 1_000, 4_000, 30_000] {
            let got = bytes(Access::default(), response);
            println!("{name}: {got} bytes after a response of {response}");
            assert!(got < most, "{name}: {got} bytes after {response}");
        }
        let beside = bytes(own_path, 30_000) - bytes(Access::default(), 30_000);
        println!("{name}: {beside} bytes more with an access path");
        assert!(beside < 544, "{name}: {beside} bytes more");
    }
}

/// Losses in the response leave counters in memory, and CUBIC's record of the window.
fn after_losses() {
    let narrow = LinkConfig {
        rate: Some(Rate::from_bps(10_000_000)),
        queue: QueueLimit::Packets(6),
        ..gateway()
    };
    let reno = Config {
        algorithm: Algorithm::Reno,
        send_window: None,
        initial_ssthresh: None,
        ..Config::classic()
    };
    for (name, tcp) in [("Reno", reno), ("Linux", Config::linux())] {
        let apart = Dur::from_millis(40);
        let [bytes, lossy] = idle(&tcp, Access::default(), &narrow, apart, 40_000);
        assert!(lossy > CONNECTIONS as usize * 9 / 10, "{name}: {lossy}");
        println!("{name}: {bytes} bytes after losses");
        assert!(bytes < KIBIBYTE, "{name}: {bytes} bytes");
    }
}
