//! Losses on either side of the tap.

use super::*;

#[test]
fn losses_before_and_beyond_the_tap_and_reordering() {
    let mut t = open(1, 9);
    for i in [0, 1, 3, 4] {
        data(&mut t, 9, i * 1_000, 1_000, (40 + u64::from(i)) * MS);
    }
    // The third comes more than an RTT later: it was lost before the tap.
    data(&mut t, 9, 2_000, 1_000, 90 * MS);
    assert_eq!((t.halves[1].lost_before, t.halves[1].lost_beyond), (1, 0));
    // Retransmitted although it had passed: lost beyond the tap, once the other end shows that it is still
    // there.
    data(&mut t, 9, 3_000, 1_000, 130 * MS);
    assert_eq!((t.halves[1].lost_before, t.halves[1].lost_beyond), (1, 0));
    t.packet(
        0,
        134 * MS,
        52,
        &header(Header::ACK, 2, 10 + 5_000, 0),
        QUIET,
    );
    assert_eq!((t.halves[1].lost_before, t.halves[1].lost_beyond), (1, 1));
    // The seventh comes before the sixth, 1 ms apart: reordering.
    data(&mut t, 9, 6_000, 1_000, 140 * MS);
    data(&mut t, 9, 5_000, 1_000, 141 * MS);
    assert_eq!((t.halves[1].lost_before, t.halves[1].lost_beyond), (1, 1));
    assert_eq!(t.halves[1].missing(), 0);
    assert_eq!(t.chunks.exchange(0).0.bytes(), [0, 7_000]);
    assert_eq!(t.halves[1].packets, 8);
}

/// A connection in a LAN that began before the capture: RTTs of 1 ms to the client and 2 ms to the server. What comes
/// again after 4 ms was lost, on either side of the tap; what comes 1 ms late was overtaken.
#[test]
fn losses_near_the_tap_need_no_handshake() {
    let lost = |stamped: bool| {
        let mut t = Tracked::new(0);
        let us = 1_000;
        let send =
            |to: &mut Tracked, from: usize, at: u64, [seq, ack, len]: [u32; 3], echo: u64| {
                let mut h = header(Header::ACK, seq, ack, len);
                let stamp = |time: u64| (time / us) as u32;
                h.options.timestamps = stamped.then(|| (stamp(at), stamp(echo)));
                to.packet(from, at, len + 52, &h, QUIET);
            };
        let mut at = 10 * MS;
        let mut acked = at;
        // Pairs of segments, each acknowledged.
        for pair in 0..5u32 {
            let seq = 10 + pair * 2_000;
            send(&mut t, 1, at, [seq, 1, 1_000], acked);
            send(&mut t, 1, at + 10 * us, [seq + 1_000, 1, 1_000], acked);
            acked = at + MS + 10 * us;
            send(&mut t, 0, acked, [1, seq + 2_000, 0], at + 10 * us);
            at = acked + 2 * MS;
        }
        let mut data = |time: u64, segment: u32| {
            send(&mut t, 1, time, [10_010 + segment * 1_000, 1, 1_000], acked);
        };
        // The first is lost before the tap, the fourth is overtaken, the second is lost beyond the tap.
        data(at, 1);
        data(at + 4 * MS, 0);
        data(at + 5 * MS, 4);
        data(at + 6 * MS, 3);
        data(at + 7 * MS, 2);
        data(at + 8 * MS, 1);
        send(&mut t, 0, at + 9 * MS, [1, 15_010, 0], 0);
        let half = &t.halves[1];
        assert_eq!(half.missing(), 0);
        [half.lost_before, half.lost_beyond]
    };
    assert_eq!(lost(true), [1, 1]);
    // Without timestamps nothing tells how far the server is.
    assert_eq!(lost(false), [0, 1]);
}

/// The overshoot of slow start: every second of 500 segments is lost before the tap, and comes an RTT later.
#[test]
fn many_holes_are_all_filled() {
    let mut t = open(1, 9);
    let lost = |i: &u32| i % 2 == 1;
    for i in (0..=500).filter(|i| !lost(i)) {
        data(
            &mut t,
            9,
            i * 1_460,
            1_460,
            40 * MS + u64::from(i) * 100_000,
        );
    }
    assert_eq!(t.halves[1].missing(), 250 * 1_460);
    for i in (0..500).filter(lost) {
        data(
            &mut t,
            9,
            i * 1_460,
            1_460,
            140 * MS + u64::from(i) * 100_000,
        );
    }
    t.packet(
        0,
        240 * MS,
        52,
        &header(Header::ACK, 2, 10 + 501 * 1_460, 0),
        QUIET,
    );
    let half = &t.halves[1];
    assert_eq!(
        (half.missing(), half.lost_before, half.lost_beyond),
        (0, 250, 0)
    );
    assert_eq!(t.chunks.exchange(0).0.bytes(), [0, 501 * 1_460]);
}

/// A retransmission may hold several lost segments, with others between that had arrived, and new data after them.
#[test]
fn retransmissions_fill_all_holes_that_they_span() {
    for (len, lost) in [(5_000, 2), (9_000, 3)] {
        let mut t = open(1, 9);
        for i in [0, 2, 4, 6] {
            data(&mut t, 9, i * 1_000, 1_000, 40 * MS);
        }
        // From the second segment to the fifth; or to the ninth, of which two are new.
        data(&mut t, 9, 1_000, len - 1_000, 140 * MS);
        let half = &t.halves[1];
        let missing = if len == 5_000 { 1_000 } else { 0 };
        assert_eq!((half.missing(), half.lost_before), (missing, lost));
        let all = u64::from(len.max(7_000)) - missing;
        assert_eq!(t.chunks.exchange(0).0.bytes(), [0, all]);
    }
}

/// A host records its own bulk flow: packets of ten segments, of which single ones are retransmitted. The loss
/// ratio is that of the segments.
#[test]
fn super_packets_count_as_their_segments() {
    let mut t = open(1, 9);
    let mut at = 40 * MS;
    for i in 0..100 {
        at += 10 * MS;
        data(&mut t, 9, i * 14_600, 14_600, at);
        // Of every tenth packet one segment is lost beyond the tap.
        if i % 10 == 0 {
            at += 40 * MS;
            data(&mut t, 9, i * 14_600 + 2_920, 1_460, at);
        }
        at += 4 * MS;
        let acked = header(Header::ACK, 2, 10 + (i + 1) * 14_600, 0);
        t.packet(0, at, 52, &acked, QUIET);
    }
    let half = &t.halves[1];
    assert_eq!((half.packets, half.lost_beyond), (1_010, 10));
    // Whole packets that come again are lost segment by segment, on either side of the tap.
    data(&mut t, 9, 101 * 14_600, 14_600, at + 10 * MS);
    data(&mut t, 9, 100 * 14_600, 14_600, at + 50 * MS);
    data(&mut t, 9, 101 * 14_600, 14_600, at + 100 * MS);
    let acked = header(Header::ACK, 2, 10 + 102 * 14_600, 0);
    t.packet(0, at + 104 * MS, 52, &acked, QUIET);
    let whole = &t.halves[1];
    assert_eq!(
        (whole.packets, whole.lost_before, whole.lost_beyond),
        (1_040, 10, 20)
    );
}

#[test]
fn what_had_arrived_or_is_never_answered_was_not_lost() {
    let mut t = open(1, 9);
    let ack = |to_tracked: &mut Tracked, to: u32, time| {
        to_tracked.packet(0, time, 52, &header(Header::ACK, 2, 10 + to, 0), QUIET);
    };
    data(&mut t, 9, 0, 1_000, 40 * MS);
    ack(&mut t, 1_000, 45 * MS);
    // The ACK was still in flight.
    data(&mut t, 9, 0, 1_000, 46 * MS);
    // Retransmitted too early: the ACK answers the first copy, 1 ms after the second.
    data(&mut t, 9, 1_000, 1_000, 100 * MS);
    data(&mut t, 9, 1_000, 1_000, 140 * MS);
    ack(&mut t, 2_000, 141 * MS);
    assert_eq!(t.halves[1].lost_beyond, 0);
    // Lost twice, then received.
    for i in 0..3 {
        data(&mut t, 9, 2_000, 1_000, (200 + 50 * i) * MS);
    }
    ack(&mut t, 3_000, 304 * MS);
    assert_eq!(t.halves[1].lost_beyond, 2);
    // The other end no longer answers.
    for i in 0..6 {
        data(&mut t, 9, 3_000, 1_000, (1_000 << i) * MS);
    }
    assert_eq!(t.halves[1].lost_beyond, 2);
}

/// A receiver that acknowledges every second segment. Of each 40, the 21st is lost beyond the tap: the ACK of its second
/// copy covers all that came after it.
#[test]
fn acks_after_a_loss_tell_nothing_of_their_frequency() {
    let mut t = open(1, 9);
    let mut at = 40 * MS;
    for round in 0..3u32 {
        let segment = |i: u32| (40 * round + i) * 1_460;
        let ack = |to: &mut Tracked, i: u32, time: u64| {
            let h = header(Header::ACK, 2, 10 + segment(i), 0);
            to.packet(0, time, 52, &h, QUIET);
        };
        for i in 0..40 {
            at += MS;
            data(&mut t, 9, segment(i), 1_460, at);
            if i < 20 && i % 2 == 1 {
                ack(&mut t, i + 1, at + 500_000);
            } else if i > 20 {
                ack(&mut t, 20, at + 500_000);
            }
        }
        at += 40 * MS;
        data(&mut t, 9, segment(20), 1_460, at);
        at += 5 * MS;
        ack(&mut t, 40, at);
    }
    assert_eq!(t.wire(false).ends[0].ack_every, 2);
}

/// Of 40 segments through a line of 20 Mbit/s three are lost beyond the tap, and repaired one after the other. Each ACK
/// between covers what had arrived long before: it tells neither what was delivered meanwhile nor the rate of the line.
#[test]
fn acks_between_repairs_tell_no_rate() {
    let mut t = open(1, 9);
    let ack = |to: &mut Tracked, segments: u32, time: u64| {
        let h = header(Header::ACK, 2, 10 + segments * 1_460, 0);
        to.packet(0, time, 52, &h, QUIET)
    };
    for i in 0..40 {
        data(&mut t, 9, i * 1_460, 1_460, 40 * MS);
    }
    let mut rates = Vec::new();
    for i in 1..=5 {
        let observed = ack(&mut t, 2 * i, 44 * MS + 1_200_000 * u64::from(i));
        assert_eq!(observed.delivered, 2 * 1_460);
        rates.extend(observed.down);
    }
    // The 11th, 21st and 31st come again, 10 us apart; the next segments come with them.
    for (nth, lost) in [10u32, 20, 30].into_iter().enumerate() {
        data(
            &mut t,
            9,
            lost * 1_460,
            1_460,
            80 * MS + 10_000 * nth as u64,
        );
    }
    for i in 40..50 {
        data(&mut t, 9, i * 1_460, 1_460, 81 * MS);
    }
    for nth in 1..=3u32 {
        let observed = ack(&mut t, 10 + 10 * nth, 84 * MS + 600_000 * u64::from(nth));
        assert_eq!((observed.delivered, observed.down), (0, None), "{nth}");
    }
    for i in 1..=5 {
        let observed = ack(&mut t, 40 + 2 * i, 87 * MS + 1_200_000 * u64::from(i));
        assert_eq!(observed.delivered, 2 * 1_460);
        rates.extend(observed.down);
    }
    assert!(
        !rates.is_empty() && rates.iter().all(|kbit| kbit.abs_diff(20_000) < 10),
        "{rates:?}"
    );
}

/// Where a queue overflows all the time, as under BBR, a loss is nearly always being repaired. What selective ACKs say
/// meanwhile is what was delivered then, and the repair adds no more than itself.
#[test]
fn selective_acks_tell_what_was_delivered() {
    let mut t = open(1, 9);
    let mut delivered = 0;
    let segment = |i: u32| 10 + i * 1_460;
    // Every tenth segment is lost beyond the tap, and comes again 20 segments later.
    for i in 0..1_000u32 {
        let at = 40 * MS + u64::from(i) * 600_000;
        data(&mut t, 9, i * 1_460, 1_460, at);
        if i >= 20 && i % 10 == 0 {
            data(&mut t, 9, (i - 20) * 1_460, 1_460, at + 1_000);
        }
        if i % 10 == 0 && i < 20 {
            continue;
        }
        let lost = if i < 10 {
            0
        } else {
            (i - 10).next_multiple_of(10)
        };
        let mut ack = header(Header::ACK, 2, segment(lost), 0);
        for (slot, first) in ack.options.sack.iter_mut().zip([lost + 1, lost + 11]) {
            let end = (first + 9).min(i + 1);
            *slot = (first < end).then(|| (segment(first), segment(end)));
        }
        let observed = t.packet(0, at + 4 * MS, 76, &ack, QUIET);
        assert!(
            observed.delivered <= 3 * 1_460,
            "{} at {i}",
            observed.delivered
        );
        delivered += observed.delivered;
    }
    assert!((960..=1_000).contains(&(delivered / 1_460)), "{delivered}");
}

/// Segments that come 10 ms late, after more than a round trip: lost before the tap if the receiver said that it had got
/// later ones, or may have been silent for lack of a way to say so; else they were only late.
#[test]
fn what_the_receiver_does_not_miss_is_late() {
    for (permitted, says, acked, lost) in [
        (true, true, false, 1),
        (true, false, false, 0),
        (false, false, false, 1),
        (false, false, true, 0),
    ] {
        let mut t = open(1, 9);
        t.rtt = [Some(MS), Some(MS)];
        t.sack = [Some(permitted); 2];
        data(&mut t, 9, 0, 1_460, 40 * MS);
        data(&mut t, 9, 2 * 1_460, 1_460, 41 * MS);
        let mut ack = header(Header::ACK, 2, 10 + 1_460 * if acked { 3 } else { 1 }, 0);
        ack.options.sack[0] = says.then_some((10 + 2 * 1_460, 10 + 3 * 1_460));
        t.packet(0, 42 * MS, 64, &ack, QUIET);
        let observed = data(&mut t, 9, 1_460, 1_460, 51 * MS);
        assert_eq!(observed.lost, [lost, 0], "{permitted} {says} {acked}");
    }
}
