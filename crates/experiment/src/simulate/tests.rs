use std::collections::BTreeMap;
use std::path::Path;

mod access;
mod calibrated;
mod changing;
mod dash;
mod delays;
mod energy;
mod filler;
mod goodput;
mod greedy;
mod links;
mod mixes;
mod page;
mod probe;
mod replay;
mod round_trips;
mod sessions;
mod stream;
mod swarm;
mod synchrony;
mod voice;
mod waterfall;

use swell_base::Direction;

use super::*;
use crate::Plan;
use crate::observe::Outcome;

const FILE: &str = r#"
name = "test"
[network]
rate = "20Mbit"
delay = "10ms"
queue = "50ms"
[[foreground]]
name = "web"
kind = "web"
object = "100kB"
[[background]]
name = "none"
kind = "none"
[[background]]
name = "cbr"
kind = "cbr"
rate = "5Mbit"
[[background]]
name = "poisson"
kind = "poisson"
rate = "15Mbit"
rate_up = "1Mbit"
[run]
replications = 2
warmup = "2s"
duration = "12s"
"#;

fn run(cell: usize) -> (RunSpec, Observations) {
    run_of(FILE, cell)
}

fn run_of(file: &str, cell: usize) -> (RunSpec, Observations) {
    let plan = Plan::resolve(file, "test.toml", Path::new(".")).expect("a good file");
    let spec = plan
        .spec(&plan.cells[cell], &BTreeMap::new())
        .expect("a cell of the plan");
    let observed = Simulator.run(&spec, &|_| {}, &|| false).expect("a run");
    (spec, observed)
}

#[test]
fn a_run_observes_what_the_file_says() {
    let (spec, none) = run(0);
    assert_eq!(spec.cell.background, "none");
    assert!(none.requests.len() > 30, "{}", none.requests.len());
    for r in &none.requests {
        assert!(r.start >= 2.0, "the foreground waits for the warm-up");
        if r.outcome == Outcome::Done {
            assert_eq!(r.bytes, 100_000);
            assert!(r.start < r.connected && r.connected < r.first_byte);
            assert!(r.first_byte < r.last_byte && r.last_byte <= 12.0);
        }
    }
    assert!(none.links.iter().all(|l| l.arrived[1] == 0));
    assert_eq!(none.bins.len(), 2 * 120);
    assert!(none.scales.iter().all(|s| s.traffic == "all"));

    let (_, cbr) = run(2);
    let down = &cbr.links[1];
    let rate = down.arrived[1] as f64 * 8.0 / down.duration;
    assert!((rate / 5e6 - 1.0).abs() < 0.01, "{rate}");
    assert_eq!(down.duration, 10.0);

    let (_, poisson) = run(4);
    let rates: Vec<f64> = poisson
        .links
        .iter()
        .map(|l| l.arrived[1] as f64 * 8.0 / l.duration)
        .collect();
    // 1 Mbit/s in packets of 1000 bytes: 1250 packets in ten seconds, standard deviation 2.8 %.
    assert!((rates[0] / 1e6 - 1.0).abs() < 0.12 && (rates[1] / 15e6 - 1.0).abs() < 0.03);
    let median = |o: &Observations| {
        let done = o.requests.iter().filter(|r| r.outcome == Outcome::Done);
        swell_stats::Ecdf::new(done.map(|r| r.last_byte - r.start).collect()).quantile(0.5)
    };
    assert!(median(&poisson) > median(&cbr) && median(&cbr) > median(&none));
}

#[test]
fn a_run_is_a_function_of_its_spec() {
    assert_eq!(format!("{:?}", run(4).1), format!("{:?}", run(4).1));
    assert_ne!(run(4).1.requests, run(5).1.requests, "another seed");
}

#[test]
fn bins_and_totals_agree_with_conservation() {
    for cell in [0, 2, 4] {
        let (_, o) = run(cell);
        for link in &o.links {
            let bins = o
                .bins
                .iter()
                .filter(|b| b.direction == link.direction && b.time >= 2.0);
            let arrived: u64 = bins.clone().map(|b| b.arrived[0] + b.arrived[1]).sum();
            assert_eq!(arrived, link.arrived[0] + link.arrived[1]);
            let dropped: u64 = bins.map(|b| u64::from(b.dropped[0] + b.dropped[1])).sum();
            assert_eq!(dropped, link.dropped_by.iter().sum::<u64>());
        }
    }
}

/// On a saturated link, every other packet is lost on the wire. A packet is therefore usually in transmission at the
/// end of the warm-up and of the run.
#[test]
fn reasons_add_up_to_the_drops_with_loss_on_the_wire() {
    let file = FILE
        .replace(
            "rate = \"20Mbit\"",
            "rate = \"20Mbit\"\nloss = { kind = \"independent\", p = 0.5 }",
        )
        // The link slows down during the warm-up, because a background above its initial rate would be rejected.
        .replace(
            "[[foreground]]",
            "[[network.change]]\nat = \"1s\"\nrate = \"1Mbit\"\n[[foreground]]",
        )
        .replace("replications = 2", "replications = 6");
    for cell in 12..18 {
        let (_, o) = run_of(&file, cell);
        for link in &o.links {
            let dropped: u64 = link.dropped.iter().sum();
            assert_eq!(dropped, link.dropped_by.iter().sum::<u64>(), "{link:?}");
        }
        let down = &o.links[1];
        let [full, _, _] = down.dropped_by;
        let lost = down.dropped_by[swell_base::DropReason::Loss as usize];
        // 1250 packets of 1000 bytes are sent in ten seconds; half of them are 625, within 5 standard deviations.
        assert!((535..=715).contains(&lost), "{down:?}");
        assert!(full > 10_000, "{down:?}");
    }
}

/// Two greedy connections at a bottleneck of each discipline. The standing queue distinguishes the
/// disciplines: that of a FIFO fills the buffer, that of an AQM is near the target.
#[test]
fn every_discipline_carries_traffic_and_keeps_the_queue_that_it_should() {
    let occupancy = |qdisc: &str| {
        let file = FILE
            .replace(
                "rate = \"20Mbit\"",
                &format!("rate = \"20Mbit\"\nqdisc = {qdisc}"),
            )
            .replace("queue = \"50ms\"", "queue = \"2BDP\"\nrtt = \"40ms\"")
            .replace(
                "kind = \"cbr\"\nrate = \"5Mbit\"",
                "kind = \"greedy\"\nconnections = 2",
            );
        let (spec, o) = run_of(&file, 2);
        let down = &o.links[1];
        let used = (down.departed[0] + down.departed[1]) as f64 * 8.0 / down.duration / 20e6;
        assert!((0.6..=1.001).contains(&used), "{qdisc}: {used}");
        assert!(!o.requests.is_empty(), "{qdisc}");
        let bins = o
            .bins
            .iter()
            .filter(|b| b.direction == Direction::Down && b.time >= 4.0);
        let (sum, n) = bins.fold((0.0, 0u32), |(sum, n), b| {
            if b.queue_mean.is_nan() {
                (sum, n)
            } else {
                (sum + b.queue_mean, n + 1)
            }
        });
        let delay = sum / f64::from(n) * 8.0 / spec.links[0].directions[1].rate.bps() as f64;
        (delay, o)
    };
    let (fifo, _) = occupancy("\"fifo\"");
    assert!((0.02..0.08).contains(&fifo), "{fifo}");
    for (name, low, high) in [
        ("\"red\"", 0.0005, 0.02),
        (
            "{ kind = \"red\", set = \"adaptive\", mean_packet = \"1500B\" }",
            0.001,
            0.03,
        ),
        (
            "{ kind = \"red\", set = \"ns2-era\", mean_packet = \"1500B\" }",
            0.0005,
            0.03,
        ),
        (
            "{ kind = \"red\", set = \"ns2-modern\", mean_packet = \"1500B\" }",
            0.001,
            0.04,
        ),
        ("\"codel\"", 0.0005, 0.03),
        ("\"fq-codel\"", 0.0005, 0.03),
        ("\"pie\"", 0.0005, 0.04),
        ("\"drr\"", 0.005, 0.1),
        (
            "{ kind = \"priority\", limits = [\"1BDP\", \"0.5BDP\"] }",
            0.001,
            0.08,
        ),
    ] {
        let (delay, _) = occupancy(name);
        assert!((low..high).contains(&delay), "{name}: {delay}");
        assert!(
            delay < fifo || name.contains("drr"),
            "{name}: {delay} against {fifo}"
        );
    }
}

/// With ECN at both ends and in the queue, an overloaded link marks packets instead of dropping them.
#[test]
fn marks_take_the_place_of_drops_where_both_sides_say_ecn() {
    let dropped = |queue: bool, ends: bool| {
        let file = FILE
            .replace(
                "rate = \"20Mbit\"",
                &format!("rate = \"20Mbit\"\nqdisc = {{ kind = \"codel\", ecn = {queue} }}"),
            )
            .replace("queue = \"50ms\"", "queue = \"500ms\"")
            .replace(
                "kind = \"cbr\"\nrate = \"5Mbit\"",
                &format!("kind = \"greedy\"\nconnections = 4\ntcp = {{ ecn = {ends} }}"),
            );
        let (_, o) = run_of(&file, 2);
        // Background only, because the application does not use ECN.
        (o.links[1].dropped[1], o.links[1].marked)
    };
    let (lost, marked) = dropped(true, true);
    assert!(lost == 0 && marked > 0, "{lost} {marked}");
    for (queue, ends) in [(false, true), (true, false), (false, false)] {
        let (more, fewer) = dropped(queue, ends);
        assert!(more > 0 && fewer == 0, "{queue} {ends}: {more} {fewer}");
    }
}

/// Limits of bands in bandwidth-delay products use the link's own rate and RTT.
#[test]
fn limits_within_a_discipline_are_resolved_in_the_plan() {
    let file = FILE
        .replace(
            "rate = \"20Mbit\"",
            "rate = \"20Mbit\"\nrtt = \"40ms\"\nqdisc = { kind = \"priority\", limits = [\"1BDP\", \"10pkt\"] }\nup = { rate = \"2Mbit\", qdisc = { kind = \"red\", min = \"0.5BDP\", max = \"1BDP\" } }",
        );
    let plan = Plan::resolve(&file, "test.toml", Path::new(".")).expect("a good file");
    let [mut up, mut down] = plan.links()[0].directions.clone();
    let limits =
        |link: &mut crate::file::Link| -> Vec<_> { link.qdisc.limits_mut().map(|l| *l).collect() };
    use swell_base::{Bytes, QueueLimit};
    let bytes = |b| QueueLimit::Bytes(Bytes(b));
    assert_eq!(limits(&mut down), [bytes(100_000), QueueLimit::Packets(10)]);
    assert_eq!(limits(&mut up), [bytes(5_000), bytes(10_000)]);
}

/// Strict priority protects the application from the background.
#[test]
fn priority_shields_the_application() {
    let fetched = |qdisc: &str| {
        let file = FILE
            .replace(
                "rate = \"20Mbit\"",
                &format!("rate = \"20Mbit\"\nqdisc = {qdisc}"),
            )
            .replace("rate = \"15Mbit\"", "rate = \"20Mbit\"");
        let done = |o: &Observations| {
            o.requests
                .iter()
                .filter(|r| r.outcome == Outcome::Done)
                .count()
        };
        (done(&run_of(&file, 0).1), done(&run_of(&file, 4).1))
    };
    let (alone, shielded) = fetched("\"priority\"");
    assert!(shielded * 10 > alone * 8, "{shielded} of {alone}");
    let (_, exposed) = fetched("\"fifo\"");
    assert!(exposed * 10 < alone * 5, "{exposed} of {alone}");
}

#[test]
fn greedy_connections_fill_their_direction_from_their_start() {
    let file = FILE.replace(
        "kind = \"cbr\"\nrate = \"5Mbit\"",
        "kind = \"greedy\"\nconnections = 3\ndirection = \"up\"\nstart = \"3s\"\nstagger = \"500ms\"\nindependent = false",
    );
    let (_, o) = run_of(&file, 2);
    assert_eq!(o.flows.len(), 3);
    let starts: Vec<f64> = o.flows.iter().map(|f| f.start).collect();
    // The seed draws one common delay of up to a second.
    assert!((3.0..4.0).contains(&starts[0]), "{starts:?}");
    for (i, start) in starts.iter().enumerate() {
        let staggered = starts[0] + 0.5 * i as f64;
        assert!((start - staggered).abs() < 1e-6, "{starts:?}");
    }
    let other = Plan::resolve(&file, "test.toml", Path::new(".")).expect("a good file");
    let mut spec = other
        .spec(&other.cells[2], &BTreeMap::new())
        .expect("a cell of the plan");
    spec.cell.seed += 1;
    let elsewhere = Simulator.run(&spec, &|_| {}, &|| false).expect("a run");
    assert_ne!(elsewhere.flows[0].start, starts[0], "another seed");
    assert!(
        o.flows
            .iter()
            .all(|f| f.up > 1_000_000 && f.down == 0 && f.class == "greedy")
    );
    let up = |from: f64, to: f64| -> u64 {
        o.bins
            .iter()
            .filter(|b| b.direction == Direction::Up && b.time >= from && b.time < to)
            .map(|b| b.departed[1])
            .sum()
    };
    assert_eq!(up(0.0, 2.9), 0);
    let rate = up(6.0, 12.0) as f64 * 8.0 / 6.0;
    assert!((0.9..1.001).contains(&(rate / 20e6)), "{rate}");
}

#[test]
fn every_profile_and_congestion_control_carries_a_web_page() {
    let profiles = ["linux", "classic", "ns2-era", "ns2-modern"];
    let names = &crate::file::schema()["$defs"]["CongestionControl"]["oneOf"];
    let names = names.as_array().expect("an enum").iter();
    let names: Vec<&str> = names.filter_map(|c| c["const"].as_str()).collect();
    let settings = profiles
        .iter()
        .map(|p| format!("profile = \"{p}\""))
        .chain(names.iter().map(|n| format!("congestion = \"{n}\"")));
    for setting in settings {
        let file = FILE.replace(
            "object = \"100kB\"",
            &format!("object = \"100kB\"\ntcp = {{ {setting} }}"),
        );
        // Alone on the link, because some algorithms yield to all other traffic.
        let (_, o) = run_of(&file, 0);
        let done = o.requests.iter().filter(|r| r.outcome == Outcome::Done);
        let bytes: u64 = done.clone().map(|r| r.bytes).sum();
        let n = done.count();
        assert!(n > 10, "{setting}: {n}");
        assert!(bytes.is_multiple_of(100_000), "{setting}");
    }
}

#[test]
fn cancelling_gives_a_run_up() {
    let plan = Plan::resolve(FILE, "test.toml", Path::new(".")).expect("a good file");
    let spec = plan
        .spec(&plan.cells[0], &BTreeMap::new())
        .expect("a cell of the plan");
    assert!(matches!(
        Simulator.run(&spec, &|_| {}, &|| true),
        Err(RunError::Cancelled)
    ));
}

#[test]
fn a_run_ends_when_its_packets_cannot_be_written() {
    let (spec, _) = run(0);
    let spec = RunSpec {
        packets: Some("/dev/full".into()),
        ..spec
    };
    let reached = std::sync::Mutex::new(0.0);
    let progress = |share: f64| *reached.lock().unwrap() = share;
    let failed = Simulator.run(&spec, &progress, &|| false).unwrap_err();
    assert!(matches!(failed, RunError::Failed(_)), "{failed}");
    let reached = *reached.lock().unwrap();
    assert!(reached < 0.9, "{reached}");
}
