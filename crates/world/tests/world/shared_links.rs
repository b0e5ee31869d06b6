//! Shared links have no events in the event queue, yet hosts directly after them are reached in time and in order.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use swell_base::{Dur, Side, Tag, Time};
use swell_path::LinkConfig;
use swell_tcp::Config;
use swell_workload::{Access, Action, Conn, End, Event, Info, Open, Record, Workload};
use swell_world::{PortConfig, World};

const SHARED: Dur = Dur::from_millis(5);
const ACCESS: Dur = Dur::from_millis(1);
/// The instant at which all packets arrive.
const THEN: Time = Time::from_nanos(20_000_000);

/// A datagram flow to a host directly at a shared link, or to one at the end of an access link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Path {
    from_right: bool,
    behind: Dur,
}

/// Sends a datagram over each path so that all arrive at [`THEN`]. A timer may be due at the same instant.
struct Once {
    paths: Vec<Path>,
    timer: bool,
    told: Sender<(Time, Option<usize>)>,
}

const TIMER: u64 = 1000;

impl Workload for Once {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                if self.timer {
                    actions.push(Action::Timer(THEN.since(now), TIMER));
                }
                for (i, path) in self.paths.iter().enumerate() {
                    let open = Open {
                        client_side: Side::of(path.from_right),
                        server: Access {
                            delay: path.behind,
                            ..Access::default()
                        },
                        ..Open::default()
                    };
                    actions.push(Action::Datagrams(Conn(i as u32), Box::new(open)));
                    let takes = SHARED + path.behind;
                    actions.push(Action::Timer(THEN.since(now) - takes, i as u64));
                }
            }
            Event::Timer(TIMER) => self.told.send((now, None)).expect("the test listens"),
            Event::Timer(i) => {
                actions.push(Action::SendDatagram(Conn(i as u32), End::Client, 100));
            }
            Event::Datagram(conn, ..) => {
                let which = Some(conn.0 as usize);
                self.told.send((now, which)).expect("the test listens");
            }
            _ => {}
        }
    }
    fn take_records(&mut self) -> Vec<Record> {
        Vec::new()
    }
    fn finish(&mut self, _: &dyn Fn(Conn) -> Info) {}
}

fn world(paths: &[Path], timer: bool) -> (World, Receiver<(Time, Option<usize>)>) {
    let link = LinkConfig {
        delay: SHARED,
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 1);
    let (told, hears) = channel();
    let paths = paths.to_vec();
    let tcp = Arc::new(Config::classic());
    world.add(Box::new(Once { paths, timer, told }), Tag::Background, tcp);
    (world, hears)
}

const RIGHT_AFTER: Path = Path {
    from_right: false,
    behind: Dur::ZERO,
};
const THE_OTHER_WAY: Path = Path {
    from_right: true,
    ..RIGHT_AFTER
};
const OVER_ACCESS: Path = Path {
    behind: ACCESS,
    ..RIGHT_AFTER
};

#[test]
fn a_host_right_after_a_shared_link_is_reached_at_its_instant() {
    let (mut world, hears) = world(&[RIGHT_AFTER], false);
    let before = THEN - Dur::from_nanos(1);
    world.happen(THEN - Dur::from_millis(1));
    assert_eq!(world.poll_at(), Some(THEN), "it is known when");
    world.happen(before);
    assert_eq!(hears.try_iter().count(), 0);
    world.happen(THEN);
    let told: Vec<_> = hears.try_iter().collect();
    assert_eq!(told, [(THEN, Some(0))]);
    assert_eq!(world.poll_at(), None);
}

/// Packets from access links come first, then packets from the up link, then the down link, then timers. The order of
/// sending does not matter.
#[test]
fn at_one_instant_there_is_one_order() {
    let order = [OVER_ACCESS, RIGHT_AFTER, THE_OTHER_WAY];
    for (a, b, c) in [
        (0, 1, 2),
        (2, 1, 0),
        (1, 0, 2),
        (1, 2, 0),
        (2, 0, 1),
        (0, 2, 1),
    ] {
        let paths = [a, b, c].map(|i: usize| order[i]);
        let (mut world, hears) = world(&paths, true);
        world.advance(THEN);
        let told: Vec<_> = hears.try_iter().map(|(_, which)| which).collect();
        let mut want = order
            .map(|path| paths.iter().position(|p| *p == path))
            .to_vec();
        want.push(None);
        assert_eq!(told, want);
    }
}

#[test]
fn the_end_of_time_is_reached() {
    let (mut world, hears) = world(&[RIGHT_AFTER, OVER_ACCESS], true);
    world.happen(Time::MAX);
    assert_eq!(hears.try_iter().count(), 3);
    world.advance(Time::MAX);
    assert_eq!(world.poll_at(), None);
}

/// With many ports, `ports_due` uses the next event of the whole world instead of polling each port.
#[test]
fn many_ports_are_told_when_something_leaves() {
    let link = LinkConfig {
        delay: SHARED,
        ..LinkConfig::default()
    };
    let mut world = World::new(&[link.clone(), link], 1);
    let port = |right| PortConfig {
        right,
        ..PortConfig::default()
    };
    let ends = [world.add_port(&port(false)), world.add_port(&port(true))];
    for _ in 0..20 {
        world.add_port(&port(true));
    }
    let flow = world.join(ends, Tag::Foreground).expect("two sides");
    world.happen(THEN);
    world.inject(flow, false, 1000, 0, 1);
    let due = world.ports_due().expect("a packet is inside");
    assert!(due <= THEN + SHARED, "{due:?}");
    world.happen(due);
    assert_eq!(world.ports_due().filter(|&at| at > due), None);
    world.happen(THEN + SHARED);
    assert_eq!(world.take_delivery().map(|d| d.at), Some(THEN + SHARED));
}
