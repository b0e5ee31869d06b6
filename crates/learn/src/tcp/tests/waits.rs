//! How long ends wait: echoes of timestamps, and activity.

use super::*;

/// A connection is active as long as data move, even where only their ACKs pass the tap.
#[test]
fn data_that_do_not_pass_the_tap_are_activity() {
    let mut t = Tracked::new(0);
    t.packet(0, 0, 60, &header(Header::SYN, 0, 0, 0), QUIET);
    t.packet(0, 10 * MS, 52, &header(Header::ACK, 1, 1, 0), QUIET);
    t.packet(0, 11 * MS, 352, &header(Header::ACK, 1, 1, 300), QUIET);
    for i in 1..=50u32 {
        let h = header(Header::ACK, 301, 1 + i * 2_920, 0);
        t.packet(0, u64::from(i) * 100 * MS, 52, &h, QUIET);
    }
    assert_eq!(t.last_active(), 5_000 * MS);
}

/// A server that pushes a message now and then echoes what it received long before: that is no RTT. The client
/// acknowledges each at once. Keep-alive probes are no answers either.
#[test]
fn pushes_are_no_round_trips() {
    for (period, segments, probe) in [
        (1_000, 1, false),
        (1_000, 4, false),
        (5_000, 1, false),
        (10_000, 1, true),
    ] {
        let mut t = Tracked::new(0);
        let stamp = |h: Header, value: u64, echo: u64| {
            let mut h = h;
            h.options.timestamps = Some(((value / MS) as u32, (echo / MS) as u32));
            h
        };
        let (mut acked, mut seq) = (40 * MS, 10);
        for i in 1..20 {
            let at = i * period * MS;
            for _ in 0..segments {
                let h = stamp(header(Header::ACK, seq, 1, 1_460), at, acked);
                t.packet(1, at, 1_512, &h, QUIET);
                seq += 1_460;
            }
            acked = at + 4 * MS;
            let h = stamp(header(Header::ACK, 1, seq, 0), acked, at);
            t.packet(0, acked, 52, &h, QUIET);
            if probe {
                let at = at + period / 2 * MS;
                let asked = stamp(header(Header::ACK, seq - 1, 1, 0), at, acked);
                t.packet(1, at, 52, &asked, QUIET);
                acked = at + 4 * MS;
                let answer = stamp(header(Header::ACK, 1, seq, 0), acked, at);
                t.packet(0, acked, 52, &answer, QUIET);
            }
        }
        assert_eq!(
            t.echo(1).map(|least| least.took),
            None,
            "{period} {segments}"
        );
    }
}

/// Echoes of timestamps tell the RTT of a connection that began before the capture: 4 ms to the client and 30 ms to the
/// server. Pauses of 33 ms may be round trips, and those of 80 ms are not.
#[test]
fn timestamps_tell_pauses_without_a_handshake() {
    let learnt = |stamped: bool| {
        let mut t = Tracked::new(0);
        let stamp = |h: &Header, value: u64, echo: u64| {
            let mut h = *h;
            h.options.timestamps = stamped.then_some(((value / MS) as u32, (echo / MS) as u32));
            h
        };
        let (mut at, mut acked) = (40 * MS, 0);
        for i in 0..60u32 {
            at += if i % 3 == 0 { 34 } else { 80 } * MS;
            for j in 0..6 {
                let seq = 10 + (i * 6 + j) * 1_460;
                let h = stamp(&header(Header::ACK, seq, 1, 1_460), at, acked);
                t.packet(1, at, 1_512, &h, QUIET);
            }
            acked = at + 4 * MS;
            let h = header(Header::ACK, 1, 10 + (i + 1) * 6 * 1_460, 0);
            t.packet(0, acked, 52, &stamp(&h, acked, at), QUIET);
        }
        let echoes = [0, 1].map(|end| t.echo(end).map(|least| least.took));
        let (_, [_, writes]) = t.chunks.exchange(0);
        (writes.len(), t.chunks.unclear, echoes)
    };
    let (writes, unclear, echoes) = learnt(true);
    assert!(writes > 10 && unclear < 5, "{writes} {unclear}");
    assert_eq!(echoes, [Some(4 * MS), Some(30 * MS)]);
    let (none, pauses, unknown) = learnt(false);
    assert!(none == 0 && pauses > 50, "{none} {pauses}");
    assert_eq!(unknown, [None; 2]);
}
