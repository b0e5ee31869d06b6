//! Errors and sessions of flows that are known.

use std::net::Ipv4Addr;

use swell_capture::flow::FlowRecord;

use super::claims::ledger;
use super::*;
use crate::Verdict;

const SECOND: i64 = 1_000_000_000;

fn ends(host: u8, port: u16) -> [(IpAddr, u16); 2] {
    let address = |last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last));
    [(address(host), port), (address(200), 80)]
}

fn flow(host: u8, port: u16, packets: [i64; 2]) -> TrueFlow {
    TrueFlow {
        ends: ends(host, port),
        packets,
        payload: None,
    }
}

fn record(flow: &TrueFlow, first: i64, last: i64) -> FlowRecord {
    let [(src, src_port), (dst, dst_port)] = flow.ends;
    FlowRecord {
        first,
        last,
        src,
        src_port,
        dst,
        dst_port,
        ..FlowRecord::BLANK
    }
}

#[test]
fn a_flow_in_two_records_begins_with_the_first_and_ends_with_the_last() {
    let mut one = flow(1, 1024, [5, 90 * SECOND]);
    one.payload = Some([7, 60 * SECOND]);
    // The ports come again later, for somebody else.
    let other = flow(1, 1024, [200 * SECOND, 201 * SECOND]);
    let records = [
        record(&one, 5, 50 * SECOND),
        record(&one, 51 * SECOND, 90 * SECOND),
        record(&other, 200 * SECOND, 201 * SECOND),
    ];
    let flows = [one, other, flow(2, 1, [0, 1])];
    let all = matched(&records, &flows, false, Dur::ZERO);
    assert_eq!(all.len(), 2, "nobody has a record of the third");
    assert!(all.iter().all(|f| f.off(0) == 0.0 && f.off(1) == 0.0));
    let payload = matched(&records, &flows, true, Dur::ZERO);
    assert_eq!((payload.len(), payload[0].off(1)), (1, 30.0));
    assert!((payload[0].off(0) + 2e-9).abs() < 1e-15);
}

#[test]
fn a_sweep_stamps_with_its_own_time_and_is_late_by_half_its_period_in_the_mean() {
    let second = Dur::from_secs(1);
    assert_eq!(stamped(SECOND / 2, second), SECOND);
    // What comes with the sweep is seen by the next.
    assert_eq!(stamped(SECOND, second), 2 * SECOND);
    assert_eq!(stamped(77, Dur::ZERO), 77);
    // Ends that are spread evenly: mean and deviation of the uniform distribution.
    let off = (0..100_000).map(|i| {
        let last = i * 7_919_333_123;
        (stamped(last, SWEEP) - last) as f64 / 1e9
    });
    let off = Ecdf::new(off.collect());
    let (mean, sd) = (off.mean().unwrap(), off.sd().unwrap());
    assert!(
        (mean - 0.45).abs() < 0.002 && (sd - 0.9 / 12f64.sqrt()).abs() < 0.002,
        "{mean} {sd}"
    );
}

#[test]
fn sessions_go_from_the_first_begin_to_the_last_end() {
    let timed = |host, was: [i64; 2]| Timed {
        hosts: ends(host, 1).map(|e| e.0),
        said: [was[0], was[1] + 2 * SECOND],
        was,
    };
    let flows = [
        timed(1, [0, 10 * SECOND]),
        timed(1, [50 * SECOND, 55 * SECOND]),
        // More than a minute after the start before it.
        timed(1, [120 * SECOND, 130 * SECOND]),
        timed(2, [0, SECOND]),
    ];
    let was = sessions(&flows, |f| f.was).unwrap();
    assert_eq!((was.count, was.lifetimes), (3, 66.0));
    let said = sessions(&flows, |f| f.said).unwrap();
    assert_eq!((said.count, said.lifetimes), (3, 72.0));
    assert_eq!(sessions(&[], |f| f.was), None);
}

#[test]
fn the_paper_s_own_numbers_hold_and_exact_ones_do_not() {
    let numbers = |end: [f64; 3], volume: f64| -> Vec<f64> {
        let value = |name: &&str| match *name {
            "end_mean" => end[0],
            "end_50" => end[1],
            "end_sd" => end[2],
            "volume" => volume,
            "begin_50" => 0.0,
            "sessions" => 10.0 * volume,
            "true_sessions" => 10.0,
            _ => 1.0,
        };
        NUMBERS.iter().map(value).collect()
    };
    let mut all = vec![numbers([0.0; 3], 1.0); 2];
    all.extend(vec![numbers([0.454, 0.461, 0.254], 1.2); SWEEPS.len() - 1]);
    let ledger = ledger(&all);
    let of = |column: usize| -> Vec<Verdict> {
        ledger
            .entries
            .iter()
            .map(|e| e.findings[column].verdict)
            .collect()
    };
    let (holds, fails) = (Verdict::Holds, Verdict::DoesNotHold);
    assert_eq!(of(2), [holds; 4]);
    assert_eq!(of(0), [holds, fails, fails, fails]);
    assert!(
        super::claims::ledger(&[]).entries[0]
            .findings
            .iter()
            .all(|f| f.verdict == Verdict::NotTested)
    );
}
