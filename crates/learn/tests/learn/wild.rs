//! Whatever packets come, the learner does not panic and loses no bytes.

mod packets;

use packets::{learnt, packets};
use proptest::prelude::*;
use swell_capture::Packet;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_packets_give_a_sound_model(
        data in proptest::collection::vec(any::<u8>(), 0..3_000),
        preview in 0..200usize,
    ) {
        let packets = packets(&data);
        learnt(&packets, preview);
    }

    /// Repeats the same hosts: long connections and flows.
    #[test]
    fn long_flows_give_a_sound_model(
        data in proptest::collection::vec(any::<u8>(), 14..700),
        times in 1..20usize,
    ) {
        let mut one = packets(&data);
        let stamps = || one.iter().map(|p| p.time);
        let span = stamps().max().unwrap_or(0) - stamps().min().unwrap_or(0) + 1_000;
        let many: Vec<_> = (0..times as i64)
            .flat_map(|k| {
                one.iter().map(move |p| Packet {
                    time: p.time + k * span,
                    ..*p
                })
            })
            .collect();
        learnt(&many, 50);
        one.reverse();
        learnt(&one, 50);
    }
}
