//! Captures in another order than that of their times.

use swell_base::{Code, Dur};
use swell_capture::Packet;
use swell_learn::{Learner, Options};
use swell_traffic::Model;

use crate::synth::{Exchanges, Host, Tap};

fn learn(packets: &[Packet]) -> Model {
    let mut learner = Learner::new(Options::default());
    packets.iter().for_each(|p| learner.push(p));
    learner.finish()
}

/// Share of the trace's data that is in the model, and whether it was said that load was left out.
fn carried(packets: &[Packet], data: u64) -> (f64, bool) {
    let m = learn(packets);
    let bytes: u64 = m.sessions.iter().flat_map(|s| s.bytes()).sum();
    let told = m.warnings.iter().any(|w| w.code == Code::LoadLeftOut);
    (bytes as f64 / data as f64, told)
}

/// Packets that come up to two seconds after later ones find no place in their connections. That is said, also where gaps
/// that the capture does not hold are.
#[test]
fn data_that_come_too_late_are_told() {
    let mut tap = Tap::new();
    let (client, server) = (
        Host::client(1, Dur::from_millis(2)),
        Host::server(1, Dur::from_millis(40)),
    );
    let page = Exchanges {
        turns: vec![(300, Dur::from_millis(15), 30_000, Dur::ZERO)],
        ..Exchanges::default()
    };
    for i in 0..200 {
        tap.connection(Dur::from_millis(200 * i), client, server, &page);
    }
    let packets = tap.packets();
    let (whole, told) = carried(&packets, 200 * 30_300);
    assert!((0.99..1.01).contains(&whole) && !told, "{whole}");
    // Repeating data is no loss of it.
    let twice: Vec<Packet> = packets.iter().flat_map(|p| [*p; 2]).collect();
    let (again, lost) = carried(&twice, 200 * 30_300);
    assert!((0.99..1.01).contains(&again) && !lost, "{again}");
    let mut late: Vec<(i64, Packet)> = (0..)
        .zip(&packets)
        .map(|(i, p)| (p.time + (i * 7_919 % 2_000) * 1_000_000, *p))
        .collect();
    late.sort_by_key(|p| p.0);
    let mixed: Vec<Packet> = late.into_iter().map(|p| p.1).collect();
    let (part, warned) = carried(&mixed, 200 * 30_300);
    assert!(part < 0.95 && warned, "{part}");
    // What the capture lost is not in the trace either.
    let gaps: Vec<Packet> = (0..)
        .zip(&packets)
        .filter(|(i, _)| i % 5 != 3)
        .map(|(_, p)| *p)
        .collect();
    assert!(!carried(&gaps, 1).1);
}
