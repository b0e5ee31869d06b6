//! Errors of times and sessions of known flows.

use std::net::Ipv4Addr;

use swell_capture::flow::FlowRecord;

use super::*;

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
    // The ports are reused later by another connection.
    let other = flow(1, 1024, [200 * SECOND, 201 * SECOND]);
    let exported = Exported {
        records: vec![
            record(&one, 5, 50 * SECOND),
            record(&one, 51 * SECOND, 90 * SECOND),
            record(&other, 200 * SECOND, 201 * SECOND),
        ],
        flows: vec![one, other, flow(2, 1, [0, 1])],
        ..Exported::default()
    };
    let all = Times(Arc::new(matched(&exported, false, Dur::ZERO)));
    assert_eq!(all.0.len(), 2, "no record shows the third");
    assert_eq!([0, 1].map(|which| all.late(which).0.mean()), [Some(0.0); 2]);
    let payload = Times(Arc::new(matched(&exported, true, Dur::ZERO)));
    assert_eq!((payload.0.len(), payload.late(1).0.mean()), (1, Some(30.0)));
}

#[test]
fn a_sweep_stamps_with_its_own_time_and_is_late_by_half_its_period_in_the_mean() {
    let second = Dur::from_secs(1);
    assert_eq!(stamped(SECOND / 2, second), SECOND);
    // A packet at the instant of a sweep is stamped by the next one.
    assert_eq!(stamped(SECOND, second), 2 * SECOND);
    assert_eq!(stamped(77, Dur::ZERO), 77);
    // Evenly spread ends: mean and deviation of the uniform distribution.
    let sweep = Dur::from_millis(900);
    let off = (0..100_000).map(|i| {
        let last = i * 7_919_333_123;
        (stamped(last, sweep) - last) as f64 / 1e9
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
        // Starts more than a minute after the previous start.
        timed(1, [120 * SECOND, 130 * SECOND]),
        timed(2, [0, SECOND]),
    ];
    let was = sessions(&flows, 60.0, |f| f.was);
    assert_eq!((was.count, was.lifetimes), (3, 66.0));
    let said = sessions(&flows, 60.0, |f| f.said);
    assert_eq!((said.count, said.lifetimes), (3, 72.0));
}
