//! Networks that change.

use super::*;
use swell_base::Direction;

/// The two directions' capacities of [`FILE`] with `more` at its network, from the table `links`, and
/// the observations.
fn observed(more: &str) -> (Plan, Observations) {
    let scratch = tempfile::tempdir().unwrap();
    // Two packets every three milliseconds: 8 Mbit/s.
    let lines: String = (1..=900u32)
        .filter(|ms| ms % 3 > 0)
        .map(|ms| format!("{ms}\n"))
        .collect();
    std::fs::write(scratch.path().join("cell.down"), lines + "900\n").unwrap();
    let text = FILE.replace("queue = \"50ms\"", &format!("queue = \"50ms\"\n{more}"));
    let plan = match Plan::resolve(&text, "test.toml", scratch.path()) {
        Ok(plan) => plan,
        Err(problems) => panic!("{problems}"),
    };
    // With Poisson traffic of 15 Mbit/s.
    let spec = plan.spec(&plan.cells[4], &BTreeMap::new()).unwrap();
    let observed = Simulator.run(&spec, &|_| {}, &|| false).unwrap();
    (plan, observed)
}

/// Bytes that left the bottleneck downwards in the bins from `from` to `to` seconds.
fn departed(o: &Observations, from: f64, to: f64) -> f64 {
    let within = |b: &&crate::observe::Bin| {
        b.direction == Direction::Down && b.time > from - 1e-6 && b.time < to - 1e-6
    };
    let bins = o.bins.iter().filter(within);
    bins.map(|b| (b.departed[0] + b.departed[1]) as f64).sum()
}

#[test]
fn an_outage_and_a_rate_show_in_the_bins() {
    let (_, o) = observed(
        "[[network.change]]\nat = \"4s\"\noutage = \"1s\"\n\
         [[network.change]]\nat = \"6s\"\ndirection = \"down\"\nrate = \"5Mbit\"",
    );
    assert_eq!(departed(&o, 4.0, 5.0), 0.0);
    assert!(departed(&o, 3.0, 4.0) > 15e6 / 8.0 * 0.9);
    // A saturated link carries its rate, up to a packet that ends in another bin.
    let slow = departed(&o, 7.0, 12.0);
    assert!((slow - 5e6 / 8.0 * 5.0).abs() <= 1500.0, "{slow}");
    // From 2 s on: 20 Mbit/s for 3 of 4 s, 5 Mbit/s for 6 s.
    assert_eq!(o.links[1].rate, 9e6);
    assert_eq!(o.links[0].rate, 18e6);
}

#[test]
fn a_delivery_trace_is_a_rate() {
    let (plan, o) = observed("[network.down]\ndeliveries = \"cell.down\"");
    let carried = departed(&o, 2.0, 12.0) * 8.0 / 10.0;
    assert!((0.97..=1.001).contains(&(carried / 8e6)), "{carried}");
    assert!(
        (o.links[1].rate / 8e6 - 1.0).abs() < 0.01,
        "{}",
        o.links[1].rate
    );
    let codes: Vec<&str> = o.warnings.iter().map(|w| w.code.as_str()).collect();
    assert_eq!(codes, ["deliveries-repeat"]);
    let said = &o.warnings[0].message;
    assert!(
        said.contains("is longer than the 0.9 s of the delivery"),
        "{said}"
    );
    // The resolved file has the absolute path of the trace, and the rate that applies to limits in BDP.
    let again = crate::file::read(&plan.toml, "resolved").unwrap();
    let down = again.network.link.down.unwrap();
    let spec = down.deliveries.unwrap().0;
    assert_eq!(spec.sha256.as_ref().map(String::len), Some(64));
    assert!(Path::new(&spec.file).is_absolute());
    assert_eq!(down.rate.map(|r| r.bps() / 100_000), Some(80));
    // Each seed begins at another offset.
    let phases: Vec<_> = plan.cells[..2]
        .iter()
        .map(|c| {
            plan.spec(c, &BTreeMap::new()).unwrap().links[0].directions[1]
                .deliveries
                .clone()
                .unwrap()
                .phase
        })
        .collect();
    assert!(phases[0].is_some() && phases[0] != phases[1], "{phases:?}");
}

#[test]
fn what_comes_after_the_end_is_doubted() {
    let (_, o) = observed("[[network.change]]\nat = \"12s\"\nqdisc = \"codel\"");
    let codes: Vec<&str> = o.warnings.iter().map(|w| w.code.as_str()).collect();
    assert_eq!(codes, ["change-after-end"]);
}

#[test]
fn what_is_wrong_with_a_trace_is_said_where_it_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("bad"), "1\n5\n4\n").unwrap();
    std::fs::write(scratch.path().join("good"), "1\n5\n").unwrap();
    for (deliveries, key, message) in [
        (
            "\"none\"",
            "network.down.deliveries",
            "no file is called `none`",
        ),
        (
            "\"bad\"",
            "network.down.deliveries",
            "line 3: 4 comes after 5",
        ),
        (
            "{ file = \"good\", phase = \"5ms\" }",
            "network.down.deliveries.phase",
            "lies beyond the trace's 5ms",
        ),
        (
            "{ file = \"good\", sha256 = \"00\" }",
            "network.down.deliveries.sha256",
            "is another file",
        ),
    ] {
        let text = FILE.replace(
            "[[foreground]]",
            &format!("[network.down]\ndeliveries = {deliveries}\n[[foreground]]"),
        );
        let problems = Plan::resolve(&text, "x.toml", scratch.path()).unwrap_err();
        let [problem] = &problems.problems[..] else {
            panic!("{problems}");
        };
        assert_eq!(problem.key, key);
        assert!(problem.message.contains(message), "{problem:?}");
        assert_eq!(problem.line, 8);
    }
}
