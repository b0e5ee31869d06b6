//! Each queueing discipline, compared with an independent implementation of its paper or RFC.

#[path = "../common/mod.rs"]
mod common;

mod choke;
mod codel;
mod conservation;
mod drr;
mod fq_codel;
mod ns2_red;
mod pie;
mod priority;
mod red;

use swell_base::{DropReason, Dur, FlowId, Head, Packet, QueueLimit, Rate, Time};
use swell_path::Outlet;

/// A link of 10 Mbit/s with an unlimited queue.
fn outlet() -> Outlet {
    Outlet {
        limit: QueueLimit::Packets(u64::MAX),
        rate: Some(Rate::from_bps(10_000_000)),
        overhead: 0,
        delay: Dur::from_millis(10),
    }
}

fn packet(flow: u32, number: u64, size: u16) -> Packet {
    let mut packet = Packet::from(Head {
        flow: FlowId(flow),
        size,
        ..Head::default()
    });
    packet.seg.seq = number;
    packet
}

fn at_ms(ms: u64) -> Time {
    Time::ZERO + Dur::from_millis(ms)
}

/// For disciplines that never drop a packet after accepting it.
fn never(packet: Packet, reason: DropReason) {
    unreachable!("{packet:?} was dropped: {reason:?}");
}

/// Asserts that Pearson's statistic against equal shares is below its 99.9 % quantile (Wilson & Hilferty 1931).
fn assert_equal_shares(counts: &[u64]) {
    let n = counts.len() as f64;
    let expected = counts.iter().sum::<u64>() as f64 / n;
    let chi2: f64 = counts
        .iter()
        .map(|&c| (c as f64 - expected).powi(2) / expected)
        .sum();
    let dof = n - 1.0;
    let cube = 1.0 - 2.0 / (9.0 * dof) + 3.09 * (2.0 / (9.0 * dof)).sqrt();
    let most = dof * cube.powi(3);
    assert!(chi2 < most, "chi-square {chi2}, of {most} at most");
}
