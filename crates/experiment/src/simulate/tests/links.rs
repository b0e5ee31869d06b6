//! Several links: properties that hold for any traffic.

use std::collections::BTreeSet;

use swell_base::{Direction, Stream};

use super::*;
use crate::observe::{Bin, LinkTotals};
use crate::store::Measured;

/// An experiment over these links, without a background.
fn over(links: &str, foreground: &str) -> String {
    format!(
        "name = \"test\"\n{links}\n[[foreground]]\nname = \"f\"\n{foreground}\n\
         [[background]]\nname = \"none\"\nkind = \"none\"\n\
         [run]\nreplications = 1\nwarmup = \"1s\"\nduration = \"11s\"\n"
    )
}

fn link(name: &str, rate: &str, delay_ns: u64) -> String {
    format!(
        "[[links]]\nname = \"{name}\"\nrate = \"{rate}\"\ndelay = \"{delay_ns}ns\"\nqueue = \"100ms\"\n"
    )
}

const PAGES: &str = "kind = \"web\"\nobject = \"200kB\"\ncount = 3";

#[test]
fn one_link_with_a_name_is_the_network_without() {
    for loss in ["", "\nloss = { kind = \"independent\", p = 0.02 }"] {
        let keys = format!("rate = \"20Mbit\"\ndelay = \"10ms\"\nqueue = \"50ms\"{loss}");
        let plain = FILE.replace(
            "rate = \"20Mbit\"\ndelay = \"10ms\"\nqueue = \"50ms\"",
            &keys,
        );
        let named = plain.replace("[network]", "[[links]]\nname = \"bottleneck\"");
        for cell in [0, 4] {
            let (_, a) = run_of(&plain, cell);
            let (_, b) = run_of(&named, cell);
            assert!(!a.requests.is_empty());
            // Compare as text, because some values are NaN.
            assert_eq!(format!("{a:?}"), format!("{b:?}"));
        }
    }
}

/// Links that follow each other on a path are compared, and no others.
#[test]
fn neighbouring_links_burst_together() {
    let pages = "kind = \"web\"\nobject = \"200kB\"\nthink = \"200ms\"";
    let chain = ["a", "b", "c"].map(|name| link(name, "100Mbit", 1_000_000));
    let (_, o) = run_of(&over(&chain.concat(), pages), 0);
    let pairs: BTreeSet<(&str, &str)> = (o.coherence.iter())
        .map(|c| {
            assert_eq!(c.direction, c.next_direction);
            assert_eq!((&*c.traffic, c.correlation.powi(2)), ("all", c.coherence));
            (&*c.link, &*c.next)
        })
        .collect();
    assert_eq!(pairs, BTreeSet::from([("a", "b"), ("b", "c")]));
    for direction in Direction::BOTH {
        // The delay between two links is a hundredth of this.
        let at = |c: &&crate::observe::Coherence| c.direction == direction && c.timescale > 0.1;
        let both: Vec<f64> = (o.coherence.iter())
            .filter(|c| at(c) && c.n >= 30)
            .map(|c| c.coherence)
            .collect();
        assert!(
            both.len() >= 2 && both.iter().all(|&c| c > 0.95),
            "{both:?}"
        );
    }
    let (_, alone) = run_of(&over(&chain[0], pages), 0);
    assert!(alone.coherence.is_empty());
}

/// Distributing a delay over several links has no effect, as long as their transmission times are negligible.
#[test]
fn splitting_a_delay_over_fast_links_changes_no_completion() {
    let mut draws = Stream::new(5, "split");
    let whole = 20_000_000;
    let done = |o: &Observations| -> Vec<f64> {
        o.requests.iter().map(|r| r.last_byte - r.start).collect()
    };
    let (_, one) = run_of(&over(&link("slow", "8Mbit", whole), PAGES), 0);
    let expected = done(&one);
    assert_eq!(expected.len(), 3);
    for k in [1, 2, 5, 13] {
        let mut left = whole;
        let mut links = Vec::new();
        for i in 0..k {
            let part = draws.below(left);
            left -= part;
            links.push(link(&format!("fast{i}"), "1000000Gbit", part));
        }
        let place = draws.below(links.len() as u64 + 1) as usize;
        links.insert(place, link("slow", "8Mbit", left));
        let (_, o) = run_of(&over(&links.concat(), PAGES), 0);
        let found = done(&o);
        assert_eq!(found.len(), expected.len());
        for (a, b) in expected.iter().zip(&found) {
            // Rounding: at most a nanosecond for each packet and link.
            assert!((a - b).abs() < 5e-6, "{k} links: {a} and {b}");
        }
    }
}

#[test]
fn every_link_adds_its_delay_and_its_transmission() {
    let connect = |n: usize| {
        let links: String = (1..=n)
            .map(|i| link(&format!("l{i}"), "8Mbit", 1_000_000))
            .collect();
        let (_, o) = run_of(&over(&links, PAGES), 0);
        assert_eq!(o.links.len(), 2 * n);
        assert!(
            o.links.iter().all(|l| l.departed[0] > 600_000 / 100),
            "every link was crossed"
        );
        o.requests[0].connected - o.requests[0].start
    };
    let [one, two, ten, hundred] = [1, 2, 10, 100].map(connect);
    let each = two - one;
    // Round trip: 1 ms each way, plus a SYN and a SYN-ACK of 60 bytes at one microsecond per byte.
    assert!((each - 2.12e-3).abs() < 1e-9, "{each}");
    assert!((ten - one - 9.0 * each).abs() < 1e-6);
    assert!((hundred - one - 99.0 * each).abs() < 1e-5);
}

#[test]
fn a_slower_second_link_is_the_bottleneck() {
    let links = link("a", "20Mbit", 5_000_000) + &link("b", "5Mbit", 5_000_000);
    let (spec, o) = run_of(
        &over(
            &links,
            "kind = \"greedy\"\nconnections = 4\ndirection = \"up\"",
        ),
        0,
    );
    let longest = |name: &str| {
        let own = o
            .bins
            .iter()
            .filter(|b| &*b.link == name && b.direction == Direction::Up && b.time >= 3.0);
        own.map(|b| b.queue_max).max().unwrap()
    };
    // `b` is the second link for upward packets. At the first link only bursts are queued.
    assert!(
        longest("b") > 50_000 && longest("a") < 15_000,
        "{} {}",
        longest("a"),
        longest("b")
    );
    let total = |name: &str| {
        o.links
            .iter()
            .find(|l| &*l.link == name && l.direction == Direction::Up)
            .unwrap()
    };
    let bps = |l: &LinkTotals| l.departed[0] as f64 * 8.0 / l.duration;
    assert!(
        (bps(total("b")) / 5e6 - 1.0).abs() < 0.02,
        "{}",
        bps(total("b"))
    );
    let names = spec
        .narrowest(&spec.foreground_path())
        .map(|q| spec.links[q.link].name.clone());
    assert_eq!(names.each_ref().map(|n| &**n), ["b", "b"]);
}

/// Every packet that leaves a link arrives at the next one of its path; all others are dropped.
#[test]
fn nothing_is_lost_between_links() {
    let file = over("[network]\npreset = { kind = \"parking-lot\", links = 4 }\nqueue = \"20pkt\"", PAGES).replace(
        "[run]",
        "[[background]]\nname = \"cross\"\nkind = \"poisson\"\nrate = \"7Mbit\"\nrate_up = \"2Mbit\"\n\
         path = [\"link2\", \"link3\"]\n[run]",
    );
    let (_, o) = run_of(&file, 1);
    assert_eq!(
        o.requests.len(),
        3,
        "the foreground is over before the run is"
    );
    let sum = |link: &str, direction: Direction, of: fn(&Bin) -> u64| -> u64 {
        let own = o
            .bins
            .iter()
            .filter(|b| &*b.link == link && b.direction == direction);
        own.map(of).sum()
    };
    let names = ["link1", "link2", "link3", "link4"];
    for (direction, order) in [
        (Direction::Up, [0, 1, 2, 3]),
        (Direction::Down, [3, 2, 1, 0]),
    ] {
        for pair in order.windows(2) {
            let left = sum(names[pair[0]], direction, |b| b.departed[0]);
            assert_eq!(left, sum(names[pair[1]], direction, |b| b.arrived[0]));
            assert!(left > 0);
        }
        for name in names {
            let arrived = sum(name, direction, |b| b.arrived[0]);
            let gone = arrived - sum(name, direction, |b| b.departed[0]);
            let dropped = sum(name, direction, |b| u64::from(b.dropped[0]));
            assert!(
                (40 * dropped..=1500 * dropped).contains(&gone),
                "{name}: {gone} B, {dropped}"
            );
            let background = sum(name, direction, |b| b.arrived[1]);
            assert_eq!(background > 0, ["link2", "link3"].contains(&name), "{name}");
        }
    }
    // Two queues are shared: packets are dropped there and nowhere else.
    let dropped: Vec<&str> = o
        .links
        .iter()
        .filter(|l| l.dropped != [0, 0])
        .map(|l| &*l.link)
        .collect();
    assert!(
        dropped.iter().all(|l| ["link2", "link3"].contains(l)),
        "{dropped:?}"
    );
}

#[test]
fn a_reversed_path_is_the_same_from_the_other_end() {
    let [a, b] = [
        link("a", "20Mbit", 4_000_000),
        link("b", "5Mbit", 6_000_000),
    ];
    let links = format!("{a}{b}");
    // In the reversed direction the second link comes first.
    let plain = over(&format!("{b}{a}"), PAGES);
    let turned = over(&links, &format!("{PAGES}\nreversed = true"));
    let written = over(
        &links,
        &format!("{PAGES}\npath = [\"b reversed\", \"a reversed\"]"),
    );
    let up = over(&links, &format!("{PAGES}\ndirection = \"up\""));
    let [plain, turned, written, up] = [plain, turned, written, up].map(|file| run_of(&file, 0).1);
    assert_eq!(format!("{turned:?}"), format!("{written:?}"));
    assert_eq!(format!("{turned:?}"), format!("{up:?}"));
    let times = |o: &Observations| -> Vec<f64> { o.requests.iter().map(|r| r.last_byte).collect() };
    assert_eq!(times(&plain), times(&turned), "links are symmetric");
    let sent_up = |o: &Observations| {
        o.links
            .iter()
            .filter(|l| l.direction == Direction::Up)
            .map(|l| l.departed[0])
            .sum::<u64>()
    };
    assert!(
        sent_up(&turned) > 10 * sent_up(&plain),
        "{} {}",
        sent_up(&turned),
        sent_up(&plain)
    );
}

/// A background is measured in its own directions, at the slowest link of its own path.
#[test]
fn a_background_is_measured_where_it_flows() {
    let links = link("a", "20Mbit", 1_000_000) + &link("b", "10Mbit", 1_000_000);
    for (route, link_direction) in [
        ("path = [\"b\"]", Direction::Down),
        ("path = [\"b\"]\nreversed = true", Direction::Up),
    ] {
        let background = format!(
            "[[background]]\nname = \"cross\"\nkind = \"poisson\"\nrate = \"4Mbit\"\nrate_up = \"1Mbit\"\n{route}\n[run]"
        );
        let file = over(&links, PAGES).replace("[run]", &background);
        let plan = Plan::resolve(&file, "test.toml", Path::new(".")).expect("a good file");
        let alone = plan.alone(&plan.file.background[1], 0, None, &BTreeMap::new());
        let rates = Simulator
            .measure(&alone, &|_| {}, &|| false)
            .expect("a run");
        assert!((rates.down_bps / 4e6 - 1.0).abs() < 0.1, "{rates:?}");
        assert!((rates.up_bps / 1e6 - 1.0).abs() < 0.2, "{rates:?}");
        let (_, o) = run_of(&file, 1);
        let busy = o.links.iter().max_by_key(|l| l.arrived[1]).unwrap();
        assert_eq!((&*busy.link, busy.direction), ("b", link_direction));
        assert!(
            o.links
                .iter()
                .all(|l| (l.arrived[1] > 0) == (&*l.link == "b"))
        );
    }
}

/// 3 Mbit/s come to a link of 4 Mbit/s from another link, and 3 Mbit/s enter there: a third of all packets is lost. Both
/// take their rate from learnt traffic, because a file that gives such rates is refused.
#[test]
fn a_packet_that_crosses_two_links_counts_once_where_losses_are_measured() {
    let links = link("a", "20Mbit", 1_000_000) + &link("b", "4Mbit", 1_000_000);
    let part = |name: &str, rate: &str, path: &str| {
        format!(
            "[[background]]\nname = \"{name}\"\nkind = \"cbr\"\nrate = \"{rate}\"\npath = [{path}]\n"
        )
    };
    let backgrounds = part("base", "3Mbit", "\"b\"")
        .replace("\"cbr\"", "\"learnt\"\nmodel = \"access-link\"")
        + &part("through", "match:base", "\"b\", \"a\"")
        + &part("cross", "match:base", "\"b\"")
        + "[[background]]\nname = \"mix\"\nkind = \"mix\"\nof = [\"through\", \"cross\"]\n[run]";
    let file = over(&links, PAGES).replace("[run]", &backgrounds);
    let plan = Plan::resolve(&file, "test.toml", Path::new(".")).expect("a good file");
    let measured = BTreeMap::from([(
        "base".to_owned(),
        Measured {
            down_bps: 3e6,
            ..Measured::default()
        },
    )]);
    let alone = plan.alone(&plan.file.background[4], 0, None, &measured);
    let rates = Simulator
        .measure(&alone, &|_| {}, &|| false)
        .expect("a run");
    assert!((rates.lost - 1.0 / 3.0).abs() < 0.02, "{rates:?}");
}

#[test]
fn every_link_has_its_file_of_packets() {
    let scratch = tempfile::tempdir().unwrap();
    let links = link("a", "20Mbit", 1_000_000) + &link("b", "10Mbit", 1_000_000);
    let file = over(&links, PAGES);
    let plan = Plan::resolve(&file, "test.toml", Path::new(".")).expect("a good file");
    let mut spec = plan.spec(&plan.cells[0], &BTreeMap::new()).unwrap();
    spec.packets = Some(scratch.path().join("0.pcapng"));
    let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("a run");
    for name in ["a", "b"] {
        let path = scratch.path().join(format!("0.{name}.pcapng"));
        let (mut packets, mut reader) = (0, swell_capture::Reader::open(&path).unwrap());
        while reader.next_packet().unwrap().is_some() {
            packets += 1;
        }
        let arrived = observed.bins.iter().filter(|b| &*b.link == name);
        let arrived: u32 = arrived.map(|b| b.arrived_packets[0]).sum();
        assert_eq!(packets, arrived);
    }
}

/// A trace of one link can be compared with that of another.
#[test]
fn a_connection_has_the_same_addresses_in_the_files_of_all_links() {
    let scratch = tempfile::tempdir().unwrap();
    let links = link("a", "20Mbit", 1_000_000) + &link("b", "10Mbit", 1_000_000);
    // Hosts that the first link never sees.
    let cross = "kind = \"greedy\"\nconnections = 3\npath = [\"b\"]";
    let file = over(&links, PAGES).replace("kind = \"none\"", cross);
    let plan = Plan::resolve(&file, "test.toml", Path::new(".")).expect("a good file");
    let mut spec = plan.spec(&plan.cells[0], &BTreeMap::new()).unwrap();
    spec.packets = Some(scratch.path().join("0.pcapng"));
    Simulator.run(&spec, &|_| {}, &|| false).expect("a run");
    let [a, b] = ["a", "b"].map(|name| {
        let path = scratch.path().join(format!("0.{name}.pcapng"));
        let mut reader = swell_capture::Reader::open(&path).unwrap();
        let mut flows = BTreeSet::new();
        while let Some(packet) = reader.next_packet().unwrap() {
            if let swell_capture::Transport::Tcp(tcp) = packet.transport {
                flows.insert((packet.src, tcp.src_port, packet.dst, tcp.dst_port));
            }
        }
        flows
    });
    assert!(!a.is_empty() && a.is_subset(&b), "{a:?} {b:?}");
    assert_eq!(b.len() - a.len(), 6, "three connections, both ways");
}
