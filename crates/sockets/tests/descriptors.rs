//! A process without free descriptors. This is a separate test program, because the limit applies to the process.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Resource, Rlimit, setrlimit};
use swell_base::{Bytes, Dur, Time};
use swell_sockets::{Carrier, CarrierConfig};
use swell_tcp::Config;
use swell_workload::{Access, Outcome, Record, Web, WebConfig};

#[test]
fn connections_fail_and_nothing_hangs() {
    let few = Some(300);
    let limit = Rlimit {
        current: few,
        maximum: few,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut carrier = Carrier::new(CarrierConfig::default()).unwrap();
    let web = WebConfig {
        clients: 100,
        objects: vec![Bytes(1000)],
        request: Bytes(100),
        server_think: Dur::from_millis(50),
        think: Dur::ZERO,
        keep: false,
        count: None,
        start: Dur::ZERO,
        client: Access::default(),
        server: Access::default(),
    };
    let tcp = Arc::new(Config::linux());
    carrier.add(Box::new(Web::new(web)), &tcp).unwrap();
    // Other code in the process takes all but a few, which the carrier cannot know.
    let mut others: Vec<File> = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        others.push(file);
    }
    others.truncate(others.len() - 21);
    let stop = AtomicBool::new(false);
    carrier.run(Time::from_secs_f64(0.5), &stop).unwrap();
    let failed = |records: &[Record]| {
        let failed = |r: &&Record| matches!(r, Record::Request(r) if r.outcome == Outcome::Failed);
        records.iter().filter(failed).count()
    };
    let first = carrier.take_records(0);
    assert!(failed(&first) > 0, "{first:?}");
    let report = carrier.report();
    assert!(report.counts.failed + report.counts.without_descriptors > 0);
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.message.contains("ulimit -Hn")),
        "{:?}",
        report.warnings
    );
    // They are released, and the clients, which retry after a second, connect.
    drop(others);
    let mut done = 0;
    for _ in 0..600 {
        carrier
            .run(carrier.now() + Dur::from_millis(100), &stop)
            .unwrap();
        let more = carrier.take_records(0);
        done += more.len() - failed(&more);
        if done >= 100 {
            break;
        }
    }
    assert!(done >= 100, "{done} {:?}", carrier.report());
    carrier.finish();
}
