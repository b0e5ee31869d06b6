//! Capacities.

use super::*;
use crate::pairs::UNRESOLVED;

/// A server 30 ms away sends two segments for each ACK, and ACKs come 1.2 ms apart: that is not the rate of its line.
/// The same segments without ACKs before them are.
#[test]
fn bursts_that_acks_release_are_not_spaced_by_the_line() {
    for clocked in [true, false] {
        let (mut t, mut rates) = (open(1, 9), Vec::new());
        for i in 0..10 {
            data(&mut t, 9, i * 1_460, 1_460, 40 * MS);
        }
        for i in 0..10u32 {
            let last = 10 + 1_460 * if clocked { i + 1 } else { 10 };
            let ack = header(Header::ACK, 2, last, 0);
            let at = if clocked { 1_200_000 * u64::from(i) } else { 0 };
            t.packet(0, 44 * MS + at, 52, &ack, QUIET);
        }
        for i in 0..20u32 {
            let at = 74 * MS + 1_200_000 * u64::from(i / 2) + 5_000 * u64::from(i % 2);
            rates.extend(data(&mut t, 9, (10 + i) * 1_460, 1_460, at).up);
        }
        // Two segments together say no more than that the line is fast.
        rates.retain(|&kbit| kbit != u64::from(UNRESOLVED));
        assert_eq!(rates.is_empty(), clocked, "{rates:?}");
        assert!(
            rates.iter().skip(1).all(|&kbit| kbit == 20_000),
            "{rates:?}"
        );
    }
}
