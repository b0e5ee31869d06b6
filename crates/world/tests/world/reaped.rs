//! Packets of a closed flow whose access link has been reassigned to another flow.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use swell_base::{Dur, QueueLimit, Rate, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_workload::{Access, Action, Conn, End, Event, Info, Open, Record, Workload};
use swell_world::{Direction, World};

/// Sends 20 datagrams at once and aborts the flow. After the world has released its access links, opens another flow
/// to a similar host.
struct Reborn;

impl Workload for Reborn {
    fn handle(&mut self, _: Time, event: Event, actions: &mut Vec<Action>) {
        let server = Access {
            delay: Dur::from_millis(7),
            down: Some(Rate::from_bps(64_000)),
            ..Access::default()
        };
        let open = Box::new(Open {
            server,
            ..Open::default()
        });
        let datagrams =
            |conn, n, bytes| (0..n).map(move |_| Action::SendDatagram(conn, End::Client, bytes));
        match event {
            Event::Start => {
                actions.push(Action::Datagrams(Conn(0), open));
                actions.extend(datagrams(Conn(0), 20, 972));
                actions.push(Action::Timer(Dur::from_millis(100), 0));
                actions.push(Action::Timer(Dur::from_millis(10_300), 1));
            }
            Event::Timer(0) => actions.push(Action::Abort(Conn(0))),
            Event::Timer(1) => {
                actions.push(Action::Datagrams(Conn(1), open));
                actions.extend(datagrams(Conn(1), 3, 472));
            }
            _ => {}
        }
    }
    fn take_records(&mut self) -> Vec<Record> {
        Vec::new()
    }
    fn finish(&mut self, _: &dyn Fn(Conn) -> Info) {}
}

/// At 8 kbit/s one datagram of the first flow crosses each second. Ten cross before the flow is released, over their
/// access link. The later ones must not enter the link.
#[test]
fn packets_of_a_flow_that_is_over_stay_off_links_that_became_another_flows() {
    let link = LinkConfig {
        rate: Some(Rate::from_bps(8_000)),
        queue: QueueLimit::Packets(100),
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 1);
    let tcp = Arc::new(Config::linux());
    world.add(Box::new(Reborn), Tag::Background, tcp);
    world.advance(Time::from_secs_f64(60.0));
    assert_eq!(world.bottleneck(Direction::Up).ledger().departed, 23);
    // 11 datagrams of the first flow, the last of which begins at 10 s, and 3 of the second cross the bottleneck and
    // the access link. The other 9 cross the bottleneck only.
    assert_eq!(world.hops(), 2 * (11 + 3) + 9);
    assert_eq!(world.pooled(), 0);
}

/// The longest waits are those of the last packets. Without them, a window that closes would make delays shorter.
#[test]
fn datagrams_under_way_when_their_flow_closes_have_delays() {
    let link = LinkConfig {
        rate: Some(Rate::from_bps(8_000)),
        queue: QueueLimit::Packets(100),
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 1);
    let tcp = Arc::new(Config::linux());
    let workload = world.add(Box::new(Reborn), Tag::Foreground, tcp);
    world.count_delays(workload, Time::ZERO);
    world.advance(Time::from_secs_f64(10.05));
    let counted = |then: &World| -> u64 {
        let delays = then.delays(workload, Direction::Up);
        delays.iter().map(|d| d.packets).sum()
    };
    // One each second, after 132 ms more on the access link.
    assert_eq!(counted(&world), 9);
    // The other three are those of the second flow.
    world.advance(Time::from_secs_f64(60.0));
    assert_eq!(counted(&world), 12);
}

const GROUP: u32 = 6;

/// Every second, six hosts send one datagram each at the same instant. Each flow is aborted when its datagram arrives.
struct Groups(Sender<u32>);

impl Workload for Groups {
    fn handle(&mut self, _: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => actions.push(Action::Timer(Dur::ZERO, 0)),
            Event::Timer(group) => {
                for n in 0..GROUP {
                    let conn = Conn(group as u32 * GROUP + n);
                    let client = Access {
                        delay: Dur::from_millis(5),
                        ..Access::default()
                    };
                    let open = Open {
                        client,
                        ..Open::default()
                    };
                    actions.push(Action::Datagrams(conn, Box::new(open)));
                    actions.push(Action::SendDatagram(conn, End::Client, 972));
                }
                actions.push(Action::Timer(Dur::from_secs(1), group + 1));
            }
            Event::Datagram(conn, ..) => {
                self.0.send(conn.0).expect("the test listens");
                actions.push(Action::Abort(conn));
            }
            _ => {}
        }
    }
    fn take_records(&mut self) -> Vec<Record> {
        Vec::new()
    }
    fn finish(&mut self, _: &dyn Fn(Conn) -> Info) {}
}

/// After ten seconds, new hosts reuse the slots of former ones. The order of packets must not change.
#[test]
fn packets_that_meet_keep_the_order_of_their_hosts_however_places_are_reused() {
    let link = LinkConfig {
        rate: Some(Rate::from_bps(1_000_000)),
        queue: QueueLimit::Packets(100),
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 1);
    let (arrives, arrived) = channel();
    let tcp = Arc::new(Config::linux());
    world.add(Box::new(Groups(arrives)), Tag::Background, tcp);
    world.advance(Time::from_secs_f64(30.5));
    let order: Vec<u32> = arrived.try_iter().collect();
    assert_eq!(order, (0..31 * GROUP).collect::<Vec<_>>());
}
