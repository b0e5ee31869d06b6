//! The view that expressions have of known tables.

use rhai::Scope;

use super::super::{script, traffic};
use swell_base::Direction;
use swell_experiment::observe::{MeasureSample, Shown};

use super::*;

/// Two packets in even and four in odd bins of 100 ms, for a second; one in four is dropped.
fn tables() -> Tables {
    let bins = (0..10).map(|i| Bin {
        time: f64::from(i) * 0.1,
        arrived: [0, 1000],
        arrived_packets: [1, if i % 2 == 0 { 1 } else { 3 }],
        departed: [500, 250],
        dropped: [0, u32::from(i % 2 == 1)],
        queue_mean: if i < 5 { f64::NAN } else { 100.0 },
        queue_max: 7,
        ..Bin::default()
    });
    let request = |start: f64, took: f64, outcome| Request {
        client: 0,
        index: 0,
        start,
        connected: start,
        first_byte: start,
        last_byte: start + took,
        observed_until: start + 1.0,
        bytes: 10,
        retransmissions: 1,
        outcome,
    };
    let wait = |who: &str, from: f64, packets: u64, size: f64| Wait {
        link: "".into(),
        direction: Direction::Up,
        traffic: who.into(),
        from,
        to: from * 1.125,
        packets,
        bytes: packets * size as u64,
        squares: packets as f64 * size * size,
        waited: packets as f64 * from,
    };
    let scale = |who: &str, energy: f64| Scale {
        link: "".into(),
        direction: Direction::Up,
        traffic: who.into(),
        quantity: "bytes".into(),
        octave: 2,
        timescale: 0.004,
        n: 10,
        energy,
    };
    let observed = Observations {
        scales: vec![scale("background", 4.0), scale("all", 8.0)],
        bins: bins.collect(),
        links: vec![swell_experiment::observe::LinkTotals {
            rate: 12_000.0,
            ..Default::default()
        }],
        waits: vec![
            wait("foreground", 0.0, 2, 100.0),
            wait("foreground", 0.004, 2, 50.0),
            wait("background", 0.016, 1, 500.0),
        ],
        requests: vec![
            request(0.0, 0.1, Outcome::Done),
            request(0.2, 0.2, Outcome::Done),
            request(0.4, f64::NAN, Outcome::Failed),
        ],
        measures: [(0.1, 9.0), (0.2, 4.0), (0.5, 1.0), (0.9, 4.0)]
            .map(|(at, value)| MeasureSample {
                measure: "late".into(),
                value,
                at,
            })
            .to_vec(),
        synchrony: vec![Synchrony {
            flows: 4,
            events: 3,
            share: 0.5,
            independent: 0.25,
            acks: 8,
            compressed: 1,
            ..nothing()
        }],
        rtts: [
            (0.1, Direction::Up),
            (0.3, Direction::Up),
            (0.4, Direction::Down),
            (0.6, Direction::Up),
        ]
        .map(|(at, direction)| RoundTrip {
            connection: 0,
            direction,
            shown: Shown::Data,
            at,
            rtt: at / 2.0,
        })
        .to_vec(),
        gaps: [
            (0.1, Direction::Up),
            (0.3, Direction::Down),
            (0.5, Direction::Up),
        ]
        .map(|(at, direction)| WindowGap {
            connection: 0,
            direction,
            at,
            gap: at / 4.0,
        })
        .to_vec(),
        ..Observations::default()
    };
    let facts = Facts {
        warmup: 0.2,
        seconds: 1.0,
        width: 0.1,
        delays: [0.01, 0.02],
        waits: true,
        records: false,
        synchrony: true,
        rtts: true,
        gaps: true,
    };
    Tables::new(observed, &facts)
}

#[test]
fn numbers_by_hand() {
    let mut engine = script::engine();
    register(&mut engine);
    traffic::register(&mut engine);
    let mut scope = Scope::new();
    let tables = tables();
    scope
        .push("up", tables.up)
        .push("requests", tables.requests)
        .push("measures", tables.measures);
    let mut get = |text: &str| {
        let ast = script::compile(&engine, text).unwrap();
        script::number(&script::value(&engine, &ast, &mut scope, text).unwrap()).unwrap()
    };
    for (text, expected) in [
        ("up.arrived", 24.0),
        // The first value lies in the warm-up.
        ("measures.of(\"late\").count", 3.0),
        ("measures.of(\"late\").mean", 3.0),
        ("measures.of(\"late\").sum", 9.0),
        ("measures.of(\"late\").sd", 3.0_f64.sqrt()),
        ("measures.of(\"late\").quantile(0.25)", 2.5),
        ("measures.of(\"late\").quantile(1)", 4.0),
        ("measures.of(\"late\").within(1)", 1.0 / 3.0),
        ("measures.of(\"late\").cdf[1][1]", 1.0),
        ("measures.of(\"other\").count", 0.0),
        ("up.after(0).arrived", 30.0),
        ("up.after(0.5).arrived_background", 11.0),
        // Bins at 0.4, 0.5, 0.8 and 0.9 s.
        ("up.in_period(0.4, 0.0, 0.2).arrived", 12.0),
        ("up.in_period(0.4, 0.0, 0.2).seconds", 0.4),
        ("up.in_period(0.4, 0.2, 0.4).arrived", 12.0),
        (
            "up.in_period(0.4, 0.0, 0.2).utilisation",
            4.0 * 750.0 * 8.0 / (12_000.0 * 0.4),
        ),
        ("requests.in_period(0.4, 0.0, 0.2).count", 2.0),
        ("requests.in_period(0.4, 0.0, 0.2).done", 1.0),
        ("requests.sd", 0.005_f64.sqrt()),
        ("up.dropped", 4.0),
        ("up.loss", 4.0 / 24.0),
        ("up.seconds", 0.8),
        ("up.utilisation", 8.0 * 750.0 * 8.0 / (12_000.0 * 0.8)),
        // Four bins of 2 and four of 4: mean 3, variance 8/7.
        ("up.cov", (8.0_f64 / 7.0).sqrt() / 3.0),
        // 16 of 24 arrivals are in bins that saw a queue.
        ("up.queue", 100.0 * 16.0 / 24.0),
        ("up.queue_max", 7.0),
        ("up.synchrony", 0.5),
        ("up.synchrony_alone", 0.25),
        ("up.compressed", 0.125),
        // Of those sent this way, without the one in the warm-up.
        ("up.rtts.count", 2.0),
        ("up.rtts.mean", 0.225),
        ("up.rtts.quantile(1)", 0.3),
        ("up.rtts.cdf[1][1]", 1.0),
        ("up.after(0.5).rtts.mean", 0.3),
        ("up.gaps.count", 1.0),
        ("up.gaps.mean", 0.125),
        ("up.foreground.packets", 4.0),
        ("up.foreground.wait", 0.002),
        ("up.foreground.size", 75.0),
        ("up.foreground.delay", 0.002 + 75.0 * 8.0 / 12_000.0 + 0.01),
        ("up.foreground.arrived", 8.0),
        ("up.background.offered", 8000.0 * 8.0 / 0.8),
        ("up.background.loss", 4.0 / 16.0),
        ("up.foreground.quantile(0.5)", 0.0),
        ("up.foreground.quantile(0.9)", 0.0045),
        ("up.foreground.carried", 300.0 * 8.0 / 0.8),
        ("up.foreground.load", 300.0 * 8.0 / 0.8 / 12_000.0),
        (
            "up.background.residual",
            (500.0 * 8.0 / 12_000.0_f64).powi(2) / 2.0 / 0.8,
        ),
        ("up.foreground.longer[0][1]", 0.5),
        ("up.foreground.longer[1][0]", 0.0045),
        ("up.background.series(0, 0.5).len()", 3.0),
        ("up.background.series(0, 1)[0][0]", 0.2),
        ("up.background.series(0, 1)[0][1]", 1000.0 * 8.0 / 0.1),
        ("requests.count", 3.0),
        ("requests.failed", 1.0),
        ("requests.mean", 0.15),
        ("requests.median", 0.2),
        ("requests.within(0.15)", 1.0 / 3.0),
        ("requests.within(1)", 2.0 / 3.0),
        ("requests.cdf.len()", 2.0),
        ("requests.cdf[1][0]", 0.2),
        ("requests.cdf[1][1]", 2.0 / 3.0),
        ("up.energy(0.004)", 3.0),
        // The nearest octave, if it is within half an octave.
        ("up.energy(0.005)", 3.0),
        ("if up.energy(1).is_nan() { 1 } else { 0 }", 1.0),
        ("up.background.energy(0.004)", 2.0),
    ] {
        let found = get(text);
        assert!(
            (found - expected).abs() < 1e-9,
            "{text}: {found} for {expected}"
        );
    }
}

/// 48 000 bits left a link that could send 200 bits less: a packet that began to leave before the first bin.
#[test]
fn a_full_link_is_used_to_its_full_rate_and_no_more() {
    let mut engine = script::engine();
    register(&mut engine);
    traffic::register(&mut engine);
    let mut scope = Scope::new();
    let mut up = tables().up;
    up.rate = (8.0 * 750.0 * 8.0 - 200.0) / 0.8;
    scope.push("up", up);
    let text = "up.utilisation";
    let ast = script::compile(&engine, text).unwrap();
    let found = script::value(&engine, &ast, &mut scope, text).unwrap();
    assert_eq!(script::number(&found).unwrap(), 1.0);
}

#[test]
fn waits_are_not_known_of_a_part() {
    let mut engine = script::engine();
    register(&mut engine);
    traffic::register(&mut engine);
    let mut scope = Scope::new();
    scope.push("up", tables().up);
    let mut ask = |text: &str| {
        let ast = script::compile(&engine, text).unwrap();
        script::value(&engine, &ast, &mut scope, text)
    };
    let Err(script::Trouble::Wrong(why)) = ask("up.after(0.5).background.wait") else {
        panic!("an answer")
    };
    assert!(why.contains("whole run"), "{why}");
    assert!(ask("up.after(0.5).background.loss").is_ok());
    // Nor of the beginning: the whole run's bytes over half a second would be twice the rate.
    for part in [
        "up.before(0.5).background.carried",
        "up.before(0.5).synchrony",
        "up.before(0.5).energy(0.004)",
    ] {
        let Err(script::Trouble::Wrong(reason)) = ask(part) else {
            panic!("an answer of {part}")
        };
        assert!(reason.contains("whole run"), "{part}: {reason}");
    }
    assert!(ask("up.before(1).background.carried").is_ok());
}

/// A request that its own end cut off was observed until then, not until the end of the run.
#[test]
fn unfinished_requests_are_known_as_long_as_they_were_observed() {
    let request = |start: f64, took: f64, outcome| Request {
        client: 0,
        index: 0,
        start,
        connected: start,
        first_byte: start,
        last_byte: start + took,
        observed_until: start + took,
        bytes: 10,
        retransmissions: 0,
        outcome,
    };
    let done = (0..9).map(|i| request(f64::from(i), 0.5 + f64::from(i) / 2.0, Outcome::Done));
    let cut = request(2.0, 1.0, Outcome::Unfinished);
    let requests = Requests {
        rows: Arc::new(done.chain([cut]).collect()),
    };
    // The largest of those observed that long: after 1 s, nine at risk become eight and end one by one.
    assert_eq!(requests.quantile(1.0), 4.5);
    assert_eq!(requests.within(4.5), 1.0);
}
