//! What a connection takes in memory when nothing happens on it.

#![expect(
    unsafe_code,
    reason = "an allocator that counts has to be an allocator"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::{Algorithm, Config};
use swell_workload::{Access, Action, Conn, End, Event, Info, Open, Record, Workload};
use swell_world::World;

/// The system's allocator, which counts what is in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it came.
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

const CONNECTIONS: u32 = 10_000;
/// Between the openings of two connections: few are busy at a time.
const APART: Dur = Dur::from_millis(1);

/// Opens connection after connection; on each goes a request and a response, and then nothing.
struct Idle {
    access: Access,
    request: u64,
    response: u64,
}

impl Workload for Idle {
    fn handle(&mut self, _: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => actions.push(Action::Timer(APART, 0)),
            Event::Timer(n) => {
                let conn = Conn(n as u32);
                let open = Open {
                    client: self.access,
                    ..Open::default()
                };
                actions.push(Action::Connect(conn, Box::new(open)));
                actions.push(Action::Send(conn, End::Client, self.request));
                if conn.0 + 1 < CONNECTIONS {
                    actions.push(Action::Timer(APART, n + 1));
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

/// Bytes per connection when all are idle.
fn bytes_per_connection(tcp: Config, access: Access, request: u64, response: u64) -> usize {
    let gateway = LinkConfig {
        rate: Some(Rate::from_bps(1_000_000_000)),
        delay: Dur::from_millis(10),
        queue: QueueLimit::Packets(1000),
        ..LinkConfig::default()
    };
    let before = IN_USE.load(Ordering::Relaxed);
    let mut world = World::new(&[gateway.clone(), gateway], 1);
    let idle = Idle {
        access,
        request,
        response,
    };
    let workload = world.add(Box::new(idle), Tag::Foreground, Arc::new(tcp));
    world.advance(Time::ZERO + APART * u64::from(CONNECTIONS) + Dur::from_secs(60));
    for conn in (0..CONNECTIONS).map(Conn) {
        let [client, server] = world.tcp_stats(workload, conn).expect("it stays open");
        assert_eq!((client.delivered, server.delivered), (response, request));
    }
    (IN_USE.load(Ordering::Relaxed) - before) / CONNECTIONS as usize
}

/// A request of one segment and a response of many leave most behind: buffers at both ends. With all that the
/// world has beside: flows, routes, the workload's table, packets, events.
#[test]
fn idle_connections_of_simple_profiles_take_less_than_a_kibibyte_and_others_half_more() {
    let with = |algorithm, base| Config { algorithm, ..base };
    let at_bottleneck = Access::default();
    let own_path = Access {
        delay: Dur::from_millis(5),
        up: Some(Rate::from_bps(10_000_000)),
        down: Some(Rate::from_bps(10_000_000)),
        ..Access::default()
    };
    for (name, tcp, most) in [
        ("Reno", with(Algorithm::Reno, Config::classic()), 1024),
        ("ns-2 era", Config::ns2_era(), 1024),
        ("ns-2 modern", Config::ns2_modern(), 1024),
        // A round trip's worth of measurements.
        ("Vegas", with(Algorithm::Vegas, Config::ns2_modern()), 1400),
        // CUBIC, RACK, the last flight, a tuned receive window.
        ("Linux", Config::linux(), 1600),
    ] {
        let bytes = bytes_per_connection(tcp.clone(), at_bottleneck, 1_000, 30_000);
        let beside = bytes_per_connection(tcp, own_path, 1_000, 30_000) - bytes;
        let all = format!("{name}: {bytes} bytes, {beside} more for its access path");
        assert!(bytes < most && beside < 544, "{all}");
    }
}
