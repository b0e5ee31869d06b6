use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// Learns a flow of (time in nanoseconds, from the client, payload).
fn learn(packets: &[(u64, bool, u32)]) -> Datagrams {
    let mut f = Flow::new(packets[0].0, None);
    for &(at, client, bytes) in packets {
        f.push(at, client, bytes, 0, Around::default());
    }
    f.finish().0
}

/// Bytes per time bin of one direction, as replayed.
fn envelope(packets: impl Iterator<Item = (u64, u32)>, bin: u64, bins: usize) -> Vec<f64> {
    let mut sums = vec![0.0; bins];
    for (at, bytes) in packets {
        sums[((at / bin) as usize).min(bins - 1)] += f64::from(bytes);
    }
    sums
}

fn played(d: &Datagrams) -> Vec<(u64, bool, u32)> {
    let mut at = 0;
    let packet = |(gap, client, bytes): (Dur, bool, u32)| {
        at += gap.as_nanos();
        (at, client, bytes)
    };
    d.iter().map(packet).collect()
}

#[test]
fn short_flows_are_kept_whole() {
    let packets: Vec<_> = (0..512u64)
        .map(|i| (i * i * 1_000, i % 3 == 0, 100 + i as u32))
        .collect();
    let d = learn(&packets);
    assert!(d.is_whole());
    assert_eq!(played(&d), packets);
}

/// Video over QUIC: a second at 15 Mbit/s, nine seconds of silence, an ACK for every ten packets. Bytes,
/// duration and order of the bursts are kept: each bin of 100 ms holds the same bytes.
#[test]
fn bursts_stay_where_they_were() {
    let mut packets = Vec::new();
    let mut x = 1u64;
    for burst in 0..30u64 {
        // The third burst is twice as long; the tenth is missing.
        let n = [1_500, 3_000, 0][usize::from(burst == 2) + 2 * usize::from(burst == 9)];
        for i in 0..n {
            // Queueing jitter of a tenth of a millisecond.
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = burst * 10_000 * MS + i * 660_000 + (x >> 40) % 100_000;
            packets.push((at, false, 1_250));
            if i % 10 == 9 {
                packets.push((at + 50_000, true, 40));
            }
        }
    }
    packets.sort_unstable();
    let first = packets[0].0;
    packets.iter_mut().for_each(|p| p.0 -= first);
    let d = learn(&packets);
    let again = played(&d);
    assert_eq!(d.count().iter().sum::<u64>(), packets.len() as u64);
    let total = |p: &[(u64, bool, u32)]| p.iter().map(|p| u64::from(p.2)).sum::<u64>();
    assert_eq!(total(&again), total(&packets));
    assert_eq!(again.last().map(|p| p.0), packets.last().map(|p| p.0));
    let bins = |p: &[(u64, bool, u32)]| {
        envelope(p.iter().map(|&(at, _, bytes)| (at, bytes)), 100 * MS, 3_000)
    };
    let (was, is) = (bins(&packets), bins(&again));
    let off: f64 = was.iter().zip(&is).map(|(a, b)| (a - b).abs()).sum();
    assert!(off < 0.01 * total(&packets) as f64, "{off}");
    assert!(d.runs.iter().all(|r| r.len() <= RUNS));
}

/// What a flow is granted of room for `spare` items, what is learnt of it, and how far its packets were moved.
fn with_room(packets: &[(u64, bool, u32)], spare: usize) -> (usize, (Datagrams, u64)) {
    let mut f = Flow::new(0, None);
    for &(at, client, bytes) in packets {
        let around = Around {
            spare: spare.saturating_sub(f.granted()),
            ..Around::default()
        };
        f.push(at, client, bytes, 0, around);
    }
    (f.granted(), f.finish())
}

/// A tunnel: 60 packets of 1 ms once a second, for fifty minutes. With room for its bursts each stays where it
/// was; without, they are spread, and the flow says so.
#[test]
fn bursts_stay_while_there_is_room() {
    let packets: Vec<_> = (0..3_000u64 * 60)
        .map(|i| ((i / 60) * 1_000 * MS + (i % 60) * MS, false, 1_400))
        .collect();
    let with = |spare: usize| with_room(&packets, spare);
    let (granted, (d, moved)) = with(50_000);
    assert_eq!((played(&d), moved), (packets.clone(), 0));
    assert_eq!(granted, RUN_ITEMS * (4_096 - RUNS));
    assert!((3_000..=4_096).contains(&d.runs[1].len()));
    for spare in [0, RUN_ITEMS * 2 * RUNS - 1] {
        let (none, (spread, far)) = with(spare);
        assert!(none == 0 && far > SPREAD, "{none} {far}");
        assert_eq!(spread.runs[1].len(), RUNS);
        // At least as far as they really went.
        let off = packets.iter().zip(played(&spread));
        let off: u64 = off.map(|(was, is)| was.0.abs_diff(is.0)).sum();
        let mean = off / packets.len() as u64;
        assert!(mean > SPREAD && mean <= far, "{mean} {far}");
    }
    // What is even needs no room.
    let mut call = Flow::new(0, None);
    for i in 0..100_000u64 {
        let around = Around {
            spare: 50_000,
            ..Around::default()
        };
        let late = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        call.push(i * 20 * MS + late, true, 160, 0, around);
    }
    assert_eq!(call.granted(), 0);
    let (_, jitter) = call.finish();
    assert!(jitter < SPREAD / 2, "{jitter}");
}

/// Requests and responses over QUIC are not kept as runs, so they take no room from flows that are.
#[test]
fn what_talks_takes_no_room_for_runs() {
    let granted = |quic: Option<bool>| {
        let mut f = Flow::new(0, quic);
        for i in 0..3_000u64 {
            let at = i * 1_000 * MS;
            let around = Around {
                spare: 50_000,
                ..Around::default()
            };
            f.push(at, true, 1_200, 500 * MS, around);
            for k in 0..60 {
                f.push(at + (20 + k) * MS, false, 1_200, 500 * MS, around);
            }
        }
        f.granted()
    };
    // The turns beyond those of every flow.
    assert_eq!(granted(Some(true)), 2_048);
    assert!(granted(None) > 2 * RUN_ITEMS * RUNS);
}

/// A call: packets 20 ms apart for an hour. Even spacing needs few runs and is exact.
#[test]
fn even_spacing_is_exact() {
    let packets: Vec<_> = (0..180_000u64).map(|i| (i * 20 * MS, true, 160)).collect();
    let d = learn(&packets);
    assert_eq!(played(&d), packets);
}

/// With packets of two sizes, both sizes and their ratio are kept.
#[test]
fn sizes_stay_apart() {
    let packets: Vec<_> = (0..50_000u64)
        .map(|i| (i * 5 * MS, false, if i % 4 == 0 { 1_200 } else { 100 }))
        .collect();
    let again = played(&learn(&packets));
    let large = again.iter().filter(|p| p.2 == 1_200).count();
    assert_eq!(large, 12_500);
    assert!(again.iter().filter(|p| p.2 == 100).count() >= 37_000);
}

/// The cost of joining two runs, by hand: bytes times the time by which even spacing and even sizes shift them.
#[test]
fn joining_runs_moves_bytes() {
    let part = |times: [u64; 2], packets: u64, bytes: u64, moved: f64| Part {
        first: times[0],
        last: times[1],
        packets,
        bytes,
        sizes: [10 * packets as u32; 2],
        moved,
    };
    // Packets at 0, 10 and 40 come at 0, 20 and 40: the last packet of the first run comes 10 too late.
    let joined = part([0, 10], 2, 100, 3.0).with(&part([40, 40], 1, 50, 4.0));
    assert_eq!(joined.moved, 3.0 + 4.0 + 100.0 * 10.0);
    assert_eq!((joined.first, joined.last), (0, 40));
    assert_eq!((joined.packets, joined.bytes), (3, 150));
    assert_eq!(joined.sizes, [10, 20]);
    // At 100, 130 and 140: the first packet of the second run comes 10 too early.
    let early = part([100, 100], 1, 25, 0.0).with(&part([130, 140], 2, 50, 0.0));
    assert_eq!(early.moved, 50.0 * 10.0);
    // One size and spacing move nothing.
    let even = part([5, 25], 3, 9, 0.0).with(&part([35, 45], 2, 6, 0.0));
    assert_eq!((even.moved, even.packets), (0.0, 5));
    // Packets of 30 and 60 bytes come with 45 each: 30 bytes of the second run come a run earlier.
    for parts in [[60, 120], [120, 60]] {
        let [one, other] = parts;
        let sizes = part([0, 10], 2, one, 1.0).with(&part([20, 30], 2, other, 2.0));
        assert_eq!(sizes.moved, 1.0 + 2.0 + 30.0 * 30.0);
    }
}

/// Distance of two flows in the mean: the area between the curves of their bytes over time, by their bytes.
fn apart(was: &[(u64, bool, u32)], is: &[(u64, bool, u32)]) -> f64 {
    let sent = |p: &(u64, bool, u32), sign: i64| (p.0, sign * i64::from(p.2));
    let mut steps: Vec<(u64, i64)> = was.iter().map(|p| sent(p, 1)).collect();
    steps.extend(is.iter().map(|p| sent(p, -1)));
    steps.sort_unstable();
    let (mut ahead, mut area) = (0i64, 0.0);
    for pair in steps.windows(2) {
        ahead += pair[0].1;
        area += ahead.abs() as f64 * (pair[1].0 - pair[0].0) as f64;
    }
    area / was.iter().map(|p| f64::from(p.2)).sum::<f64>()
}

/// A clocked stream, a datagram every 4 ms: ten seconds of small ones, ten seconds of large ones. Each of both
/// stays in its time, and needs one run.
#[test]
fn a_clocked_stream_keeps_its_rates() {
    let packets: Vec<_> = (0..150_000u64)
        .map(|i| (i * 4 * MS, false, [60, 1_400][(i / 2_500 % 2) as usize]))
        .collect();
    let d = learn(&packets);
    assert!(d.runs[1].len() <= RUNS);
    assert!(played(&d) == packets, "{:?}", d.runs[1]);
}

/// A game: ticks of 50 ms whose sizes vary at random, and with the number of players. What the runs move is
/// known, so the flow gets more of them where there is room.
#[test]
fn sizes_at_random_get_room() {
    let mut x = 1u64;
    let packets: Vec<_> = (0..20_000u64)
        .map(|i| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let players = [60, 200][(i / 700 % 2) as usize];
            (i * 50 * MS, false, players + ((x >> 40) % 200) as u32)
        })
        .collect();
    let with = |spare: usize| {
        let (granted, (d, moved)) = with_room(&packets, spare);
        (granted, moved, apart(&packets, &played(&d)))
    };
    let (granted, moved, off) = with(50_000);
    assert!(granted > 0 && moved <= SPREAD, "{granted} {moved}");
    // The order of sizes within a run moves them a little more.
    assert!(off < SPREAD as f64, "{off}");
    let (none, far, spread) = with(0);
    assert!(
        none == 0 && far > SPREAD && spread <= far as f64,
        "{far} {spread}"
    );
    assert!(spread > 2.0 * off, "{spread} {off}");
}

proptest! {
    /// Bytes, packets and duration are kept per direction, and time never runs back.
    #[test]
    fn nothing_is_lost(
        gaps in proptest::collection::vec((0..1u64 << 32, any::<bool>(), 0..65_508u32), 1..2_000),
        scale in 0..20u32,
    ) {
        let mut at = 5;
        let packets: Vec<_> = gaps
            .iter()
            .map(|&(gap, client, bytes)| {
                at += gap >> scale;
                (at, client, bytes)
            })
            .collect();
        let d = learn(&packets);
        for client in [true, false] {
            let of = |p: &[(u64, bool, u32)]| {
                let own = p.iter().filter(|x| x.1 == client);
                (own.clone().count(), own.map(|x| u64::from(x.2)).sum::<u64>())
            };
            prop_assert_eq!(of(&played(&d)), of(&packets));
        }
        let span = packets[packets.len() - 1].0 - packets[0].0;
        prop_assert_eq!(d.lasts().as_nanos(), span);
    }
}
