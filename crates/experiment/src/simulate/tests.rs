use std::collections::BTreeMap;
use std::path::Path;

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
    // A thousand-byte packet at 1 Mbit/s: 1250 in ten seconds, standard deviation 2.8 %.
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

/// On a link that always transmits, every other packet is lost on the wire: at most ends of the
/// warm-up and of the run one is under way.
#[test]
fn reasons_add_up_to_the_drops_with_loss_on_the_wire() {
    let file = FILE
        .replace(
            "rate = \"20Mbit\"",
            "rate = \"1Mbit\"\nloss = { kind = \"independent\", p = 0.5 }",
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
        // 1250 packets of 1000 bytes pass in ten seconds; half of them are some 625, within 5 sd.
        assert!((535..=715).contains(&lost), "{down:?}");
        assert!(full > 10_000, "{down:?}");
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
