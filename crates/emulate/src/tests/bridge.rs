//! Tests of frames between the interfaces of a bridge, with socket pairs as interfaces.

use super::*;
use crate::layout::LinkEnd;
use swell_world::{Duplex, Hop};

/// The hardware address of a host.
fn mac(host: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, host]
}

const EVERYBODY: [u8; 6] = [0xff; 6];

fn frame(to: [u8; 6], from: [u8; 6], text: &str) -> Vec<u8> {
    [&to[..], &from, &[0x88, 0xb5], text.as_bytes()].concat()
}

/// Hosts on a bridge.
struct Lab {
    hosts: Vec<UnixDatagram>,
    running: Running,
}

fn hops(links: &[usize]) -> Vec<Hop> {
    let hop = |&link| Hop {
        link,
        reversed: false,
    };
    links.iter().map(hop).collect()
}

const LEFT: LinkEnd = LinkEnd {
    link: 0,
    right: false,
};
const RIGHT: LinkEnd = LinkEnd {
    link: 0,
    right: true,
};

impl Lab {
    /// One host at each of these link ends, in a chain of links with these delays in milliseconds.
    fn new(ends: &[LinkEnd], delays: &[u64], route: Option<Route>, options: Options) -> Lab {
        Lab::with(ends, delays, route, options, |nics| nics)
    }

    /// The same with interfaces that `wrap` has changed.
    fn with(
        ends: &[LinkEnd],
        delays: &[u64],
        route: Option<Route>,
        options: Options,
        wrap: impl FnOnce(Vec<Box<dyn Nic>>) -> Vec<Box<dyn Nic>>,
    ) -> Lab {
        let links: Vec<Duplex> = (delays.iter().enumerate())
            .map(|(i, &delay)| {
                let link = LinkConfig {
                    rate: Some(Rate::from_bps(100_000_000)),
                    delay: Dur::from_millis(delay),
                    ..LinkConfig::default()
                };
                Duplex {
                    name: i.to_string(),
                    directions: [link.clone(), link],
                }
            })
            .collect();
        let all: Vec<usize> = (0..links.len()).collect();
        let layout = Layout::new(ends, links.len(), &[hops(&all)]).unwrap();
        let world = World::with_links(&links, 1);
        let pair = |_| {
            let (theirs, ours) = UnixDatagram::pair().unwrap();
            for socket in [&theirs, &ours] {
                socket.set_nonblocking(true).unwrap();
            }
            let nic: Box<dyn Nic> = Box::new(Pair(ours, Arc::default()));
            (theirs, nic)
        };
        let (hosts, nics): (_, Vec<_>) = ends.iter().map(pair).unzip();
        let nics = wrap(nics);
        let uplink = Rate::from_bps(10_000_000_000);
        let emulation = Emulation::bridge(world, nics, &layout, uplink, route, options);
        Lab {
            hosts,
            running: emulation.unwrap().start().unwrap(),
        }
    }

    fn send(&self, host: usize, frame: &[u8]) {
        self.hosts[host].send(frame).unwrap();
    }

    /// What a host gets until `last` arrives, which must: at most one frame more than was expected would come later.
    fn until(&self, host: usize, last: &[u8]) -> Vec<Vec<u8>> {
        let begun = Instant::now();
        let mut all: Vec<Vec<u8>> = Vec::new();
        let mut buffer = [0; 2048];
        while all.last().is_none_or(|f| f != last) {
            match self.hosts[host].recv(&mut buffer) {
                Ok(n) => all.push(buffer[..n].to_vec()),
                Err(_) if begun.elapsed() > Duration::from_secs(30) => panic!("{all:?}"),
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        all
    }

    /// Host `from` sends a frame, then one to everybody. Returns which other hosts got the first, and how often.
    fn reach(&self, from: usize, frame: &[u8]) -> Vec<usize> {
        self.send(from, frame);
        let mark = self::frame(EVERYBODY, mac(from as u8), "mark");
        // Frames of one interface stay in order, so the mark comes last.
        self.send(from, &mark);
        let others = (0..self.hosts.len()).filter(|&h| h != from);
        let got = others.flat_map(|host| {
            let all = self.until(host, &mark);
            assert!(all[..all.len() - 1].iter().all(|f| f == frame), "{all:?}");
            vec![host; all.len() - 1]
        });
        let got = got.collect();
        assert!(self.hosts[from].recv(&mut [0; 64]).is_err(), "it came back");
        got
    }
}

#[test]
fn frames_cross_a_bridge_whatever_is_in_them() {
    let lab = Lab::new(&[LEFT, RIGHT], &[1], None, Options::default());
    let header = |kind: &[u8]| [&EVERYBODY[..], &mac(1), kind].concat();
    let frames = [
        // ARP; an experimental EtherType; a VLAN tag followed by IPv4; a header alone.
        [header(&[8, 6]), vec![7; 46]].concat(),
        [header(&[0x88, 0xb5]), vec![1; 1000]].concat(),
        [header(&[0x81, 0, 0, 7, 8, 0]), packet(1, 2, 60, 9)].concat(),
        header(&[0x86, 0xdd]),
    ];
    for frame in &frames {
        lab.send(0, frame);
        lab.send(1, frame);
    }
    for host in [1, 0] {
        assert_eq!(lab.until(host, &frames[3]), frames);
    }
    let ended = lab.running.stop().unwrap();
    let c = ended.counts;
    assert_eq!((c.entered, c.left, c.local, c.strange), (8, 8, 0, 0));
    let each = PortCounts {
        received: 4,
        sent: 4,
        ..PortCounts::default()
    };
    assert_eq!(ended.ports, [each; 2]);
}

/// What a fault drops has not left, and neither has what the kernel refuses.
#[test]
fn frames_that_do_not_leave_are_not_counted_as_sent() {
    let lossy = |nics: Vec<Box<dyn Nic>>| {
        let faults = Faults {
            ends: [vec![], vec![Fault::List([1, 3].into())]],
            ..Faults::default()
        };
        let two: [Box<dyn Nic>; 2] = nics.try_into().ok().unwrap();
        Vec::from(faults.between(two, &FaultTally::default()))
    };
    let mut lab = Lab::with(&[LEFT, RIGHT], &[1], None, Options::default(), lossy);
    let udp = |number: u32| [&EVERYBODY[..], &mac(1), &[8, 0], &packet(1, 2, 60, number)].concat();
    let mark = frame(EVERYBODY, mac(1), "mark");
    for number in 1..=4 {
        lab.send(0, &udp(number));
    }
    lab.send(0, &mark);
    let numbers: Vec<u32> = lab.until(1, &mark)[..2]
        .iter()
        .map(|f| u32::from_be_bytes(*f[42..].first_chunk().unwrap()))
        .collect();
    assert_eq!(numbers, [2, 4]);
    // Nobody takes what is written from now on.
    drop(lab.hosts.pop());
    lab.send(0, &mark);
    let begun = Instant::now();
    while lab.running.snapshot().late.count < 4 {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "it was not written"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    let ended = lab.running.stop().unwrap();
    let (received, sent) = (ended.ports[0].received, ended.ports[1].sent);
    assert_eq!((received, sent, ended.ports[1].refused), (6, 3, 1));
}

/// Two interfaces with nothing else at their ends are a cable: no frame is held back, even if a switch would.
#[test]
fn two_interfaces_are_a_cable() {
    let lab = Lab::new(&[LEFT, RIGHT], &[1], None, Options::default());
    lab.reach(0, &frame(EVERYBODY, mac(0), "I am on the left"));
    let to_the_left = frame(mac(0), mac(9), "from the left to the left");
    assert_eq!(lab.reach(0, &to_the_left), [1]);
}

#[test]
fn hosts_on_one_side_talk_directly_and_share_the_link() {
    let ends = [LEFT, LEFT, LEFT, RIGHT, RIGHT];
    let lab = Lab::new(&ends, &[3], None, Options::default());
    let to = |to: u8, from: u8| frame(mac(to), mac(from), "hello");
    // Everybody once; nobody knows host 4 yet; then its answer tells all.
    assert_eq!(lab.reach(0, &frame(EVERYBODY, mac(0), "who")), [1, 2, 3, 4]);
    assert_eq!(lab.reach(0, &to(4, 0)), [1, 2, 3, 4]);
    assert_eq!(lab.reach(4, &to(0, 4)), [0]);
    assert_eq!(lab.reach(0, &to(4, 0)), [4]);
    // A neighbour, which does not cross the link.
    assert_eq!(lab.reach(1, &to(0, 1)), [0]);
    assert_eq!(lab.reach(0, &to(1, 0)), [1]);
    // To itself: nobody.
    assert_eq!(lab.reach(0, &to(0, 0)), Vec::<usize>::new());
    // Host 0 moves from interface 0 to interface 3, on the other side. The mark of `reach` would say otherwise.
    lab.send(3, &frame(EVERYBODY, mac(0), "I moved"));
    for host in [0, 1, 2, 4] {
        lab.until(host, &frame(EVERYBODY, mac(0), "I moved"));
    }
    assert_eq!(lab.reach(4, &to(0, 4)), [3]);
    assert_eq!(lab.reach(1, &to(0, 1)), [3]);
    let ended = lab.running.stop().unwrap();
    let ports = &ended.ports;
    let (sum, c) = (
        |of: fn(&PortCounts) -> u64| ports.iter().map(of).sum::<u64>(),
        ended.counts,
    );
    // Nine calls of `reach` with two frames each, and one frame more.
    assert_eq!(sum(|p| p.received), 19);
    // The marks, the first frame of all and the move go to four others, the unknown one too, six frames to one.
    assert_eq!(sum(|p| p.sent), 12 * 4 + 6);
    // The unknown one, by the switch on either side.
    assert_eq!(sum(|p| p.flooded), 2);
    assert_eq!(sum(|p| p.filtered), 1);
    assert_eq!((sum(|p| p.local), c.local), (15, 15));
    assert_eq!(c.entered, c.left);
    assert_eq!((c.dropped, c.refused), (0, 0));
}

/// A virtual machine that was restarted has a new interface.
#[test]
fn an_interface_is_replaced_by_another() {
    let mut lab = Lab::new(&[LEFT, LEFT, RIGHT], &[1], None, Options::default());
    let to = |to: u8, from: u8| frame(mac(to), mac(from), "hello");
    lab.reach(0, &frame(EVERYBODY, mac(0), "I am here"));
    assert_eq!(lab.reach(1, &to(0, 1)), [0]);
    let (theirs, ours) = UnixDatagram::pair().unwrap();
    for socket in [&theirs, &ours] {
        socket.set_nonblocking(true).unwrap();
    }
    lab.running.replace(0, Box::new(Pair(ours, Arc::default())));
    let old = std::mem::replace(&mut lab.hosts[0], theirs);
    // Until the loop has taken it over, nothing is read from it.
    lab.send(0, &frame(EVERYBODY, mac(7), "another address"));
    for host in [1, 2] {
        lab.until(host, &frame(EVERYBODY, mac(7), "another address"));
    }
    // What was behind the old one is forgotten, so everybody is asked.
    assert_eq!(lab.reach(1, &to(0, 1)), [0, 2]);
    assert_eq!(lab.reach(2, &to(7, 2)), [0]);
    assert!(old.send(b"nobody reads this").is_err());
    assert_eq!(lab.running.stop().unwrap().ports.len(), 3);
}

/// Three links in a row. An interface between the first two gets what passes, and everything keeps the delay of its
/// links to the microsecond, no matter when the loop runs.
#[test]
fn an_interface_between_two_links_is_passed_at_the_right_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let end = |link, right| LinkEnd { link, right };
    let ends = [end(0, false), end(2, true), end(1, false)];
    let options = Options {
        journal: Some(path.clone()),
        ..Options::default()
    };
    let lab = Lab::new(&ends, &[5, 7, 11], None, options);
    let to = |to: u8, from: u8| frame(mac(to), mac(from), "hello");
    assert_eq!(lab.reach(0, &frame(EVERYBODY, mac(0), "who")), [1, 2]);
    assert_eq!(lab.reach(1, &to(0, 1)), [0]);
    assert_eq!(lab.reach(2, &to(1, 2)), [1]);
    assert_eq!(lab.reach(0, &to(1, 0)), [1]);
    let ended = lab.running.stop().unwrap();
    assert_eq!(ended.counts.dropped, 0);
    let bytes = std::fs::read(&path).unwrap();
    let entries = read_journal(&mut &bytes[..], ended.at).unwrap().entries;
    // Ports 0 and 1 are the ends of the first link, 2 and 3 those of the other two. What leaves at 1 from the left
    // enters at 2 at the same instant, and what leaves at 2 from the right enters at 1.
    let entered = |port: u32| -> Vec<Time> {
        let all = entries.iter().filter_map(|e| match e {
            Entry::Arrival { at, from, .. } if from.0 == port => Some(*at),
            _ => None,
        });
        all.collect()
    };
    let (first, second) = (entered(0), entered(2));
    // Everything from host 0 goes on; host 2 sends two frames of its own to the right.
    assert_eq!((first.len(), second.len()), (4, 6));
    for at in first {
        let on = second.iter().filter(|&&on| {
            let took = on.since(at).as_secs_f64();
            (0.005..0.005_001).contains(&took)
        });
        assert_eq!(on.count(), 1, "{at:?}: {second:?}");
    }
    let back = entered(3);
    assert_eq!(back.len(), 2);
    for at in back {
        let on = entered(1).into_iter().filter(|on| {
            let took = on.since(at).as_secs_f64();
            (0.018..0.018_001).contains(&took)
        });
        assert_eq!(on.count(), 1, "{at:?}");
    }
}

/// Routes decide, not hardware addresses.
#[test]
fn a_router_goes_by_addresses() {
    let route: Route = Box::new(|to| match to.to_string().as_str() {
        "10.0.0.1" => Some(0),
        "10.0.1.1" => Some(1),
        "10.0.2.1" => Some(2),
        _ => None,
    });
    let lab = Lab::new(&[LEFT, LEFT, RIGHT], &[1], Some(route), Options::default());
    let to = |net: u8, number: u32| {
        let header = [&mac(9)[..], &mac(1), &[8, 0]].concat();
        [header, packet(7, net, 60, number)].concat()
    };
    for (number, from) in (0..).zip(0..3) {
        for net in [0, 1, 2, 3] {
            lab.send(from, &to(net, 10 * number + u32::from(net)));
        }
    }
    for (host, last) in [(0, 20), (1, 21), (2, 12)] {
        let got = lab.until(host, &to(host as u8, last));
        assert_eq!(got.len(), 2, "{host}");
    }
    let ended = lab.running.stop().unwrap();
    for port in ended.ports {
        // Back to where it came from, and where no route leads.
        assert_eq!((port.received, port.sent, port.filtered), (4, 2, 2));
    }
}
