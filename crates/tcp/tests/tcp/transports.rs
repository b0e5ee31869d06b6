//! The purpose of each congestion control, on a path of 10 Mbit/s and 20 ms each way with one greedy sender.

use swell_base::{Dur, Flags, Rate, SackBlocks, Segment, Time};
use swell_tcp::{Algorithm, Config, Endpoint, Event};

use crate::net::{CLIENT, Net, SERVER, ms};

const RATE: Rate = Rate::from_bps(10_000_000);
/// Payload per packet size: 1448 of 1500 bytes.
const HEADERS: f64 = 1448.0 / 1500.0;

fn linux(algorithm: Algorithm) -> Config {
    Config {
        algorithm,
        ..Config::linux()
    }
}

/// The server sends without limit.
fn greedy(_: Time, end: usize, event: Event, e: &mut Endpoint) {
    if (end, event) == (SERVER, Event::Connected) {
        e.send(1 << 40);
    }
}

struct Steady {
    /// Goodput as a share of the rate minus headers, in the last 30 s of a minute.
    share: f64,
    /// Mean and maximum queueing delay, in milliseconds.
    mean: f64,
    most: f64,
    lost: usize,
}

fn steady(cfg: Config, buffer: Dur) -> Steady {
    let mut net = Net::new(cfg, ms(20)).rate(RATE).queue(buffer).app(greedy);
    net.run_until(Time::from_secs_f64(30.0));
    let before = net.ends[CLIENT].stats().delivered;
    let (mut sum, mut most) = (0.0, 0.0f64);
    for k in 0..3000 {
        net.run_until(Time::from_secs_f64(30.0 + f64::from(k) * 0.01));
        let queue = net.backlog(SERVER).as_millis_f64();
        sum += queue;
        most = most.max(queue);
    }
    let bytes = net.ends[CLIENT].stats().delivered - before;
    let since = Time::from_secs_f64(30.0);
    Steady {
        share: bytes as f64 * 8.0 / (30.0 * RATE.bps() as f64 * HEADERS),
        mean: sum / 3000.0,
        most,
        lost: net
            .data(SERVER)
            .iter()
            .filter(|s| s.2 && s.0 > since)
            .count(),
    }
}

/// Brakmo & Peterson 1995: between alpha and beta packets are queued in the network, and none is lost.
#[test]
fn vegas_keeps_one_to_three_packets_queued() {
    for base in [Config::linux(), Config::ns2_modern(), Config::ns2_era()] {
        let cfg = Config {
            algorithm: Algorithm::Vegas,
            send_window: None,
            initial_ssthresh: None,
            packets: false,
            ..base
        };
        let packet = RATE.transmit(swell_base::Bytes(1500)).as_millis_f64();
        let s = steady(cfg, ms(400));
        assert!(s.share > 0.99, "{}", s.share);
        // Vegas rounds its estimate of queued packets to whole packets.
        let bounds = 0.5 * packet..3.5 * packet;
        assert!(bounds.contains(&s.mean), "{}", s.mean);
        assert_eq!(s.lost, 0);
    }
}

/// BBR fills the path and keeps its mean queue below a third of the bandwidth-delay product, whatever the buffer.
/// Linux 6.18 over this path: 98.2 % of the rate, 7.2 packets (8.7 ms) in the mean and 23 (28 ms) at most. Without
/// the pairs of segments from segmentation offload and the allowance for ACK aggregation, it would be 0.7 packets.
#[test]
fn bbr_finds_the_rate_and_keeps_the_queue_that_linux_keeps() {
    for buffer in [ms(40), ms(400)] {
        let s = steady(linux(Algorithm::Bbr), buffer);
        // Two tenths of a second in every ten are spent in PROBE_RTT, and the pacing rate is one per cent low.
        assert!(s.share > 0.95, "{}", s.share);
        assert!((6.0..12.0).contains(&s.mean), "{}", s.mean);
        assert!(s.most <= 28.0, "{}", s.most);
        assert_eq!(s.lost, 0);
    }
}

/// Linux does not pace the first ten segments (`tcp_update_skb_after_send`) and then sends in pairs. A response of 10
/// kB leaves at once; of 100 kB the next ten segments leave in pairs, at 2.885 times the initial window per RTT.
#[test]
fn bbr_paces_after_the_first_ten_segments_and_in_pairs() {
    let mut net = Net::new(linux(Algorithm::Bbr), ms(20)).app(crate::net::serve(100_000));
    net.run(1000);
    let sent: Vec<Time> = net.data(SERVER).iter().map(|d| d.0).collect();
    assert!(sent[..10].iter().all(|&t| t == sent[0]));
    let second = &sent[10..20];
    assert!(second[0] >= sent[0] + ms(40));
    for pair in second.chunks(2) {
        assert_eq!(pair[0], pair[1]);
    }
    // Ten segments in 40 ms, times 2.885, minus one per cent: a pair every 2.8 ms. The first pair is late and makes
    // up for half a gap.
    let gaps: Vec<f64> = second
        .chunks(2)
        .zip(second.chunks(2).skip(1))
        .map(|(a, b)| b[0].since(a[0]).as_millis_f64())
        .collect();
    assert!((gaps[0] - 1.4).abs() < 0.03, "{gaps:?}");
    assert!(gaps[1..].iter().all(|g| (g - 2.8).abs() < 0.03), "{gaps:?}");
}

/// Without a handshake the first flight leaves before any RTT is known. Its acknowledgement gives the first sample, and
/// the pacing rate starts over from it (Linux `bbr_set_pacing_rate`, `has_seen_rtt`).
#[test]
fn bbr_paces_by_the_first_rtt_without_a_handshake() {
    let cfg = Config {
        algorithm: Algorithm::Bbr,
        ..Config::quic()
    };
    let mut net = Net::new(cfg, ms(20)).app(greedy);
    net.run_until(Time::from_secs_f64(0.079));
    let sent: Vec<Time> = net.data(SERVER).iter().map(|d| d.0).collect();
    let again = sent.partition_point(|&t| t == Time::ZERO);
    assert_eq!(again, 10, "the initial window");
    // Ten segments in 40 ms, times 2.885: a pair every 2.8 ms.
    let pairs: Vec<Time> = sent[again..].chunks(2).map(|pair| pair[0]).collect();
    assert!(pairs.len() >= 10, "{pairs:?}");
    for two in pairs[1..].windows(2) {
        let gap = two[1].since(two[0]).as_millis_f64();
        assert!((gap - 2.8).abs() < 0.03, "{gap}");
    }
}

/// On a path of 10 ms the 200 ms of PROBE_RTT are more than the ten rounds of the bandwidth filter. The samples of that
/// time are not taken for the bandwidth (Linux `bbr_update_min_rtt`: "ignore low rate samples during this mode").
#[test]
fn bbr_remembers_the_bandwidth_through_probe_rtt() {
    let rate = Rate::from_bps(100_000_000);
    let mut net = Net::new(linux(Algorithm::Bbr), ms(5))
        .rate(rate)
        .queue(ms(50))
        .app(greedy);
    let mut delivered = |s: f64| {
        net.run_until(Time::from_secs_f64(s));
        net.ends[CLIENT].stats().delivered as f64
    };
    // Two periods of 10.2 s, each with one PROBE_RTT: 200 ms at 5 % of the rate, and at most two RTTs to drain the
    // queue and to fill the pipe again. The pacing rate is one per cent low.
    let before = delivered(5.0);
    let bytes = delivered(25.4) - before;
    let share = bytes * 8.0 / (20.4 * rate.bps() as f64 * HEADERS);
    assert!((0.97..0.982).contains(&share), "{share}");
}

/// An RTT that only equals the smallest one does not postpone PROBE_RTT (Linux 5.10, `bbr_update_min_rtt`). A receive
/// window of eight segments keeps the queue empty, so every RTT is the smallest.
#[test]
fn bbr_probes_the_rtt_after_ten_seconds_of_equal_rtts() {
    let cfg = Config {
        delayed_ack: false,
        recv_tuning: false,
        recv_buffer: 8 * 1448,
        ..linux(Algorithm::Bbr)
    };
    let mut net = Net::new(cfg, ms(20)).app(greedy);
    let mut smallest_window = |from: f64, to: f64| {
        let mut least = u64::MAX;
        let mut at = from;
        while at < to {
            net.run_until(Time::from_secs_f64(at));
            least = least.min(net.ends[SERVER].stats().cwnd / 1448);
            at += 0.01;
        }
        least
    };
    // The server has its first RTT after 60 ms.
    assert!(smallest_window(1.0, 10.0) > 4);
    assert_eq!(smallest_window(10.0, 10.4), 4);
    assert!(smallest_window(10.5, 20.0) > 4);
}

/// Five per cent loss stops loss-based congestion control, but not BBR.
#[test]
fn bbr_does_not_take_every_loss_for_congestion() {
    let share = |algorithm| {
        let mut stream = swell_base::Stream::new(1, "losses");
        let mut net = Net::new(linux(algorithm), ms(20))
            .rate(RATE)
            .queue(ms(100))
            .judge(move |s| {
                if s.from == SERVER && stream.chance(0.05) {
                    crate::net::lose()
                } else {
                    crate::net::deliver()
                }
            })
            .app(greedy);
        net.run_until(Time::from_secs_f64(30.0));
        net.ends[CLIENT].stats().delivered as f64 * 8.0 / (30.0 * RATE.bps() as f64)
    };
    assert!(share(Algorithm::Bbr) > 0.75, "{}", share(Algorithm::Bbr));
    assert!(
        share(Algorithm::Cubic) < 0.35,
        "{}",
        share(Algorithm::Cubic)
    );
}

/// RFC 6817: the queue stays at the target of 100 ms if the buffer allows it. The draft's target is 60 ms.
#[test]
fn ledbat_keeps_its_target_delay() {
    let s = steady(linux(Algorithm::Ledbat), ms(400));
    assert!(s.share > 0.99, "{}", s.share);
    assert!((97.0..=102.5).contains(&s.mean), "{}", s.mean);
    assert_eq!(s.lost, 0);
    let plus = steady(linux(Algorithm::LedbatPlusPlus), ms(400));
    assert!(plus.share > 0.9, "{}", plus.share); // slowdowns take a tenth of the time
    assert!((45.0..=61.0).contains(&plus.mean), "{}", plus.mean);
    assert!(plus.most < 66.0, "{}", plus.most);
    assert_eq!(plus.lost, 0);
}

/// With data in both directions acknowledgements ride on data, and still report delays: each direction is used, and its
/// queue stays at the target.
#[test]
fn those_that_measure_one_way_delays_do_so_with_data_both_ways() {
    for (algorithm, bar, queue) in [
        (Algorithm::Ledbat, 0.95, 105.0),
        (Algorithm::Lp, 0.8, 100.0),
    ] {
        let mut net = Net::new(linux(algorithm), ms(20))
            .rate(RATE)
            .queue(ms(400))
            .app(|_, _, event, e| {
                if event == Event::Connected {
                    e.send(1 << 40);
                }
            });
        net.run_until(Time::from_secs_f64(30.0));
        let delivered = |of: &Net| [CLIENT, SERVER].map(|end| of.ends[end].stats().delivered);
        let before = delivered(&net);
        let mut sums = [0.0; 2];
        for k in 0..3000 {
            net.run_until(Time::from_secs_f64(30.0 + f64::from(k) * 0.01));
            for end in [CLIENT, SERVER] {
                sums[end] += net.backlog(end).as_millis_f64();
            }
        }
        for (after, first) in delivered(&net).into_iter().zip(before) {
            let share = (after - first) as f64 * 8.0 / (30.0 * RATE.bps() as f64 * HEADERS);
            assert!(share > bar, "{algorithm:?}: {share}");
        }
        for sum in sums {
            assert!(sum / 3000.0 < queue, "{algorithm:?}: {} ms", sum / 3000.0);
        }
    }
}

/// Low-priority transports use a path that is otherwise idle.
#[test]
fn those_that_give_way_fill_an_idle_path() {
    for algorithm in [Algorithm::Lp, Algorithm::Nice, Algorithm::Westwood] {
        let s = steady(linux(algorithm), ms(100));
        assert!(s.share > 0.8, "{algorithm:?} {}", s.share);
    }
}

/// They also yield when the receiver's window, and not a loss, ends their growth. If they waited for a loss before
/// looking at delays, they would share Reno's queue of half a second.
#[test]
fn those_that_give_way_do_so_below_a_small_receive_window() {
    let queue = |algorithm| {
        let cfg = Config {
            recv_buffer: 65_535,
            recv_tuning: false,
            ..linux(algorithm)
        };
        let mut net = Net::new(cfg, ms(20))
            .rate(Rate::from_bps(1_000_000))
            .queue(ms(2000))
            .app(greedy);
        net.run_until(Time::from_secs_f64(30.0));
        let before = net.ends[CLIENT].stats().delivered;
        let mut sum = 0.0;
        for k in 0..3000 {
            net.run_until(Time::from_secs_f64(30.0 + f64::from(k) * 0.01));
            sum += net.backlog(SERVER).as_millis_f64();
        }
        let bytes = net.ends[CLIENT].stats().delivered - before;
        (sum / 3000.0, bytes as f64 * 8.0 / (30.0 * 1e6 * HEADERS))
    };
    assert!(queue(Algorithm::NewReno).0 > 400.0);
    for algorithm in [
        Algorithm::Lp,
        Algorithm::Nice,
        Algorithm::Ledbat,
        Algorithm::LedbatPlusPlus,
    ] {
        let (mean, share) = queue(algorithm);
        assert!(mean < 120.0, "{algorithm:?}: {mean} ms");
        assert!(share > 0.6, "{algorithm:?}: {share}");
    }
}

/// Westwood's threshold after a single loss fills the path without a queue. Reno's is half the window, which on a
/// path without buffers is half the rate.
#[test]
fn westwood_sets_the_threshold_to_what_fits_in_flight() {
    let mut net = Net::new(
        Config {
            send_window: Some(20),
            ..linux(Algorithm::Westwood)
        },
        ms(20),
    )
    .lose_data(&[2000])
    .app(greedy);
    net.run_until(Time::from_secs_f64(10.0));
    let s = net.ends[SERVER].stats();
    assert_eq!(s.recoveries, 1);
    // Twenty segments per RTT; a measurement round may contain one more or one less window.
    let segments = s.ssthresh as f64 / 1448.0;
    assert!((17.0..=23.0).contains(&segments), "{segments}");
}

/// Westwood measures the bandwidth in recovery, too, so that random losses cost it little. Without that, it would reach
/// 51 % of the rate at a loss of 1 %; Reno reaches 33 %.
#[test]
fn westwood_takes_no_random_loss_for_congestion() {
    for (loss, bar) in [(0.002, 0.97), (0.01, 0.75)] {
        let share = |algorithm| {
            let mut stream = swell_base::Stream::new(1, "losses");
            let mut net = Net::new(linux(algorithm), ms(20))
                .rate(RATE)
                .queue(ms(40))
                .judge(move |s| {
                    if s.from == SERVER && stream.chance(loss) {
                        crate::net::lose()
                    } else {
                        crate::net::deliver()
                    }
                })
                .app(greedy);
            net.run_until(Time::from_secs_f64(60.0));
            let bytes = net.ends[CLIENT].stats().delivered as f64;
            bytes * 8.0 / (60.0 * RATE.bps() as f64 * HEADERS)
        };
        assert!(
            share(Algorithm::Westwood) > bar,
            "{}",
            share(Algorithm::Westwood)
        );
    }
}

fn ecn(base: Config) -> Config {
    Config { ecn: true, ..base }
}

/// A path that marks segments which would wait longer than `mark`, instead of dropping them.
fn marking(cfg: Config, mark: Dur, until: f64) -> Net {
    let mut net = Net::new(cfg, ms(20)).rate(RATE).mark(mark).app(greedy);
    net.run_until(Time::from_secs_f64(until));
    net
}

/// RFC 3168: marks keep the queue short without losses, and reduce the window once per RTT.
#[test]
fn marks_take_the_place_of_losses() {
    let reno = Config {
        prr: false,
        ..linux(Algorithm::NewReno)
    };
    // With PRR the segment that carries CWR leaves at once, joins the queue that marks, and so causes a second
    // reduction. Without PRR it leaves when half of that queue has drained.
    for (base, bar) in [(reno, 0.9), (Config::linux(), 0.85)] {
        let net = marking(ecn(base), ms(20), 30.0);
        let s = net.ends[SERVER].stats();
        assert_eq!((s.retransmitted, s.rtos, s.recoveries), (0, 0, 0));
        assert!(s.marks > 10, "{}", s.marks);
        let data = net.data(SERVER);
        // Each reduction is signalled once, with new data, at least one RTT after the last.
        let told: Vec<Time> = data
            .iter()
            .filter(|d| d.1.flags.has(Flags::CWR))
            .map(|d| d.0)
            .collect();
        assert_eq!(told.len(), s.marks as usize);
        assert!(told.windows(2).all(|w| w[1].since(w[0]) >= ms(40)));
        assert!(data.iter().all(|d| d.1.ecn == 2), "ECT(0) on all new data");
        let goodput = net.ends[CLIENT].stats().delivered as f64 * 8.0 / 30.0;
        assert!(goodput > bar * RATE.bps() as f64, "{goodput}");
    }
}

/// RFC 3168 section 6.1.3: ECE on every acknowledgement until CWR, none after.
#[test]
fn a_mark_is_echoed_until_it_is_answered() {
    let cfg = std::sync::Arc::new(Config {
        handshake: false,
        delayed_ack: false,
        ..ecn(Config::linux())
    });
    let mut end = Endpoint::server(cfg);
    let mut echo = |k: u64, ecn, flags: Flags| {
        let seg = Segment {
            seq: 1 + k * 100,
            len: 100,
            ack: 1,
            window: 10_000,
            flags: Flags::ACK.with(flags),
            ecn,
            ..Segment::default()
        };
        end.handle_segment(Time::ZERO, &seg, &SackBlocks::default());
        let (answer, _) = end
            .poll_transmit(Time::ZERO)
            .expect("no delayed acknowledgements");
        answer.flags.has(Flags::ECE)
    };
    let (ect, ce) = (2, 3);
    assert!(!echo(0, ect, Flags::default()));
    assert!(echo(1, ce, Flags::default()));
    assert!(echo(2, ect, Flags::default()));
    assert!(!echo(3, ect, Flags::CWR));
    assert!(!echo(4, ect, Flags::default()));
    assert!(
        echo(5, ce, Flags::CWR),
        "a new mark on the segment that answers the old one"
    );
}

/// A modem's buffer of 64 KiB before 384 kbit/s. The losses in slow start are real, and one-way delays in the stamp
/// field must not make them look spurious. After that the queue stays short.
#[test]
fn those_that_measure_one_way_delays_take_losses_for_losses() {
    for algorithm in [Algorithm::Lp, Algorithm::Ledbat] {
        let mut net = Net::new(linux(algorithm), ms(20))
            .rate(Rate::from_bps(384_000))
            .queue(ms(1365))
            .app(greedy);
        net.run_until(Time::from_secs_f64(20.0));
        let before = net.ends[SERVER].stats().recoveries;
        let mut sum = 0.0;
        for k in 0..1000 {
            net.run_until(Time::from_secs_f64(20.0 + f64::from(k) * 0.1));
            sum += net.backlog(SERVER).as_millis_f64();
        }
        assert_eq!(net.ends[SERVER].stats().recoveries, before, "{algorithm:?}");
        assert!(sum / 1000.0 < 250.0, "{algorithm:?}: {} ms", sum / 1000.0);
    }
}
