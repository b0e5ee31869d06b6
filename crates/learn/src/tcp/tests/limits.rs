//! Both sides of every limit.

use super::*;

/// A gap of 16 MiB is a gap; a larger jump is another numbering. Data that only a single ACK tells of
/// are missing above 1 MiB.
#[test]
fn of_gaps() {
    for (gap, jumps) in [(1 << 24, 0), ((1 << 24) + 1, 1)] {
        let mut t = open(1, 9);
        data(&mut t, 9, 0, 1_000, 40 * MS);
        data(&mut t, 9, 1_000 + gap, 1_000, 41 * MS);
        assert_eq!(t.halves[1].jumps, jumps, "{gap}");
        assert_eq!(t.halves[1].missing() > 0, jumps == 0, "{gap}");
    }
    for (unseen, missing) in [(1u32 << 20, 0), ((1 << 20) + 1, (1 << 20) + 1)] {
        let mut t = Tracked::new(0);
        let ack = |n: u32| header(Header::ACK, 2, 10 + n, 0);
        t.packet(0, 0, 60, &header(Header::SYN, 1, 0, 0), QUIET);
        t.packet(0, 34 * MS, 52, &ack(0), QUIET);
        t.packet(0, 50 * MS, 52, &ack(unseen), QUIET);
        let half = &t.halves[1];
        assert_eq!(half.missing(), missing, "{unseen}");
        assert_eq!(half.unseen + missing, u64::from(unseen));
    }
}

/// An answer after three seconds is an RTT sample, a later one is not.
#[test]
fn of_round_trips() {
    for (late, known) in [(0, true), (1, false)] {
        let mut t = Tracked::new(0);
        t.packet(0, 0, 60, &header(Header::SYN, 1, 0, 0), QUIET);
        let at = 3_000 * MS + late;
        let answer = t.packet(
            1,
            at,
            60,
            &header(Header::SYN | Header::ACK, 9, 2, 0),
            QUIET,
        );
        assert_eq!(answer.rtt, known.then_some((1, true, at)));
        let then = at + 3_000 * MS + late;
        let ack = t.packet(0, then, 52, &header(Header::ACK, 2, 10, 0), QUIET);
        assert_eq!(ack.rtt, known.then_some((0, true, 3_000 * MS)));
        let mut timed = open(1, 9);
        data(&mut timed, 9, 0, 1_460, 40 * MS);
        data(&mut timed, 9, 1_460, 1_460, 41 * MS);
        let both = header(Header::ACK, 2, 10 + 2_920, 0);
        let data_ack = timed.packet(0, 3_041 * MS + late, 52, &both, QUIET);
        assert_eq!(data_ack.rtt, known.then_some((0, false, 3_000 * MS)));
    }
}

/// The first 16 pairs of a connection count, then 8 of each octave; and segments of at least a thousand bytes, headers
/// included, or full ones where the ends permit no larger. Of 59 pairs, these are 16, 8 and 6.
#[test]
fn of_pairs() {
    let unknown = [(None, 1_460, 30), (None, 960, 30), (None, 959, 0)];
    let known = [
        (Some(1_460), 959, 0),
        (Some(536), 536, 30),
        (Some(536), 535, 0),
        (Some(459), 459, 0),
    ];
    for (mss, payload, pairs) in unknown.into_iter().chain(known) {
        let mut t = open(1, 9);
        t.halves[0].announced = mss;
        let seen = (0..60u32).filter(|&i| {
            let at = 40 * MS + u64::from(i) * 1_200_000;
            data(&mut t, 9, i * payload, payload, at).up.is_some()
        });
        assert_eq!(seen.count(), pairs, "{payload}");
    }
}

/// A server whose data were acknowledged may wait for the network for an RTT of 34 ms plus a delayed
/// ACK, 40 ms. A longer silence is its own. The limit never exceeds `quiet`.
#[test]
fn of_pauses() {
    for (quiet, silence, turns) in [(500, 74, 1), (500, 75, 2), (50, 50, 1), (50, 51, 2)] {
        let mut t = open(1, 9);
        let request = header(Header::ACK, 2, 10, 100);
        t.packet(0, 34 * MS + 1, 152, &request, quiet * MS);
        let send = |to: &mut Tracked, at: u32, time: u64| {
            let h = header(Header::ACK, 10 + at, 102, 1_460);
            to.packet(1, time, 1_500, &h, quiet * MS);
        };
        send(&mut t, 0, 80 * MS);
        t.packet(
            0,
            84 * MS,
            52,
            &header(Header::ACK, 102, 1_470, 0),
            quiet * MS,
        );
        send(&mut t, 1_460, (80 + silence) * MS);
        let found = t.chunks.exchange(34 * MS).0;
        assert_eq!(
            found.units()[1],
            turns,
            "{silence} of {quiet} ms: {found:?}"
        );
    }
}

/// The same segment within half a millisecond is a copy by the capture; later it is a retransmission.
#[test]
fn of_copies() {
    for (later, copies) in [(499_999, 1), (500_000, 0)] {
        let mut t = open(1, 9);
        data(&mut t, 9, 0, 1_000, 40 * MS);
        data(&mut t, 9, 0, 1_000, 40 * MS + later);
        assert_eq!(t.halves[1].duplicates, copies, "{later}");
    }
    let mut t = Tracked::new(0);
    for at in [0, 499_999, 999_999, 2_000_000] {
        t.packet(0, at, 60, &header(Header::SYN, 1, 0, 0), QUIET);
    }
    // The second is a copy of the first; the third is not.
    assert_eq!(t.syns, [0, 999_999, 2_000_000]);
    for i in 0..40 {
        t.packet(
            0,
            (i + 1) * 1_000 * MS,
            60,
            &header(Header::SYN, 1, 0, 0),
            QUIET,
        );
    }
    assert_eq!(t.syns.len(), 16);
}
