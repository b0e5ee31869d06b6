//! The cost of losses: fast recovery, time-outs, probes.

use crate::net::{CLIENT, Net, SERVER, deliver, lose, ms, serve};
use swell_base::{Dur, Flags, Time};
use swell_tcp::{Algorithm, Config, Stats};

const RTT: Dur = Dur::from_millis(100);

/// A transfer of `segments` full segments with 100 ms RTT, in which the segments `lost` are lost once.
fn transfer(cfg: &Config, segments: u64, lost: &[usize]) -> Net {
    let bytes = segments * u64::from(cfg.mss);
    let mut net = Net::new(cfg.clone(), ms(50))
        .lose_data(lost)
        .app(serve(bytes));
    net.run(20_000);
    assert_eq!(net.received(CLIENT), bytes);
    net
}

fn server(net: &Net) -> Stats {
    net.ends[SERVER].stats()
}

/// Retransmission time of each lost segment, in sending order.
fn resends(net: &Net) -> Vec<(Time, u64)> {
    let mut high = 0;
    let mut out = Vec::new();
    for (t, seg, _) in net.data(SERVER) {
        if seg.seq < high {
            out.push((t, seg.seq));
        }
        high = high.max(seg.seq + u64::from(seg.len));
    }
    out
}

fn by_count() -> Config {
    Config {
        rack_tlp: false,
        ..Config::linux()
    }
}

/// Classic TCP whose window is limited by congestion control only.
fn classic(algorithm: Algorithm) -> Config {
    Config {
        algorithm,
        send_window: None,
        initial_ssthresh: None,
        tick: Dur::ZERO,
        ..Config::classic()
    }
}

#[test]
fn a_single_loss_costs_one_fast_retransmission_and_no_timeout() {
    let variants = [
        Config::linux(),
        by_count(),
        Config {
            prr: false,
            ..by_count()
        },
        Config {
            sack: false,
            rack_tlp: false,
            ..Config::linux()
        },
        classic(Algorithm::Reno),
        classic(Algorithm::NewReno),
    ];
    for cfg in variants {
        for lost in [15, 40, 77] {
            let net = transfer(&cfg, 200, &[lost]);
            let s = server(&net);
            assert_eq!(
                (s.retransmitted, s.recoveries, s.rtos),
                (1, 1, 0),
                "{lost}: {cfg:?}"
            );
            // It is retransmitted one RTT after it was lost, in the same flight of acknowledgements, because nothing
            // is serialised here.
            let first = net.data(SERVER)[lost].0;
            assert_eq!(resends(&net)[0].0, first + RTT, "{lost}: {cfg:?}");
        }
    }
}

#[test]
fn a_burst_of_losses_is_repaired_in_one_round_trip_with_sack() {
    // Ten holes in the flight of 80 that leaves at 4.5 RTT.
    let lost: Vec<usize> = (80..100).step_by(2).collect();
    for cfg in [
        Config::linux(),
        by_count(),
        Config {
            prr: false,
            ..by_count()
        },
    ] {
        let net = transfer(&cfg, 400, &lost);
        let s = server(&net);
        assert_eq!(
            (s.retransmitted, s.recoveries, s.rtos),
            (10, 1, 0),
            "{cfg:?}"
        );
        let again = resends(&net);
        assert_eq!(
            again[0].0, again[9].0,
            "all ten leave on the same acknowledgements: {cfg:?}"
        );
    }
}

#[test]
fn newreno_repairs_one_hole_per_round_trip() {
    // RFC 6582 section 1. Five holes take five RTTs, and with a long RTO there is no time-out.
    let cfg = Config {
        min_rto: Dur::from_secs(3),
        ..classic(Algorithm::NewReno)
    };
    let lost = [40, 42, 44, 46, 48];
    let net = transfer(&cfg, 300, &lost);
    let s = server(&net);
    assert_eq!((s.retransmitted, s.recoveries, s.rtos), (5, 1, 0));
    let again = resends(&net);
    for pair in again.windows(2) {
        assert_eq!(pair[1].0, pair[0].0 + RTT);
    }
}

#[test]
fn reno_leaves_recovery_at_the_first_hole() {
    // Fall & Floyd 1996 section 3: with several losses in a window Reno reduces repeatedly or waits for its timer;
    // NewReno does neither.
    let lost = [40, 42, 44];
    let reno = server(&transfer(&classic(Algorithm::Reno), 300, &lost));
    let newreno = server(&transfer(&classic(Algorithm::NewReno), 300, &lost));
    assert_eq!((newreno.recoveries, newreno.rtos), (1, 0));
    assert!(reno.recoveries + reno.rtos > 1, "{reno:?}");
}

#[test]
fn the_window_after_recovery_is_the_threshold() {
    // One loss in a flight of 40 segments: Reno halves, CUBIC takes 0.7 (RFC 9438 section 4.6).
    for (algorithm, beta) in [(Algorithm::NewReno, 0.5), (Algorithm::Cubic, 0.7)] {
        for prr in [true, false] {
            let cfg = Config {
                algorithm,
                prr,
                ..by_count()
            };
            let mss = f64::from(cfg.mss);
            let mut net = Net::new(cfg, ms(50))
                .lose_data(&[40])
                .app(serve(10_000_000));
            // Flights of 10, 20 and 40 leave at 1.5, 2.5 and 3.5 RTT. The loss is the eleventh segment of the third
            // flight, so ten acknowledgements have raised the window to 50. The loss is detected at 4.5 RTT, and
            // recovery ends at 5.5 RTT when the retransmission is acknowledged.
            net.run_until(Time::ZERO + ms(451));
            assert_eq!(server(&net).recoveries, 1);
            net.run_until(Time::ZERO + ms(551));
            let s = server(&net);
            let expected = beta * 50.0 * mss;
            assert_eq!(s.ssthresh, expected as u64);
            // The acknowledgement that ends recovery does not grow the window. Later ones in the same flight may, by
            // less than one segment in total.
            let cwnd = s.cwnd as f64;
            assert!(
                cwnd >= expected - 1.0 && cwnd < expected + 1.5 * mss,
                "{expected}: {s:?}"
            );
        }
    }
}

#[test]
fn a_lost_tail_waits_for_the_timer_without_probes() {
    // Flights of 10 and 20; the last segment of 30 is lost.
    let cfg = by_count();
    let net = transfer(&cfg, 30, &[29]);
    let s = server(&net);
    assert_eq!((s.retransmitted, s.rtos, s.probes), (1, 1, 0));
    // All samples are 100 ms except the delayed last ones, so the RTO is at least SRTT + 200 ms.
    let wait = resends(&net)[0].0.since(net.data(SERVER)[29].0);
    assert!(wait >= ms(300) && wait <= ms(550), "{wait}");
}

#[test]
fn a_lost_tail_is_probed_after_two_round_trips() {
    // RFC 8985 section 7.2: PTO = 2 SRTT after the latest transmission or acknowledgement.
    let net = transfer(&Config::linux(), 30, &[28, 29]);
    let s = server(&net);
    assert_eq!((s.rtos, s.probes), (0, 1), "{s:?}");
    // The probe repeats the last segment, and its SACK reveals the other hole.
    assert_eq!(s.retransmitted, 2);
    let last_ack = net.data(SERVER)[27].0 + RTT;
    let probe = resends(&net)[0].0.since(last_ack);
    assert!(probe >= ms(200) && probe < ms(260), "{probe}");
}

#[test]
fn timeouts_back_off_to_the_maximum_and_then_give_up() {
    // Everything the server sends after its handshake is lost.
    for cfg in [
        Config {
            retries: 10,
            ..by_count()
        },
        Config {
            retries: 10,
            ..classic(Algorithm::Reno)
        },
    ] {
        let mut net = Net::new(cfg.clone(), ms(50))
            .judge(|s| {
                if s.from == SERVER && s.index > 0 {
                    lose()
                } else {
                    deliver()
                }
            })
            .app(serve(1));
        net.run(200);
        let data = net.data(SERVER);
        assert_eq!(data.len(), 11, "one transmission and ten retries");
        let gaps: Vec<Dur> = data.windows(2).map(|w| w[1].0.since(w[0].0)).collect();
        for (i, g) in gaps.iter().enumerate() {
            // RFC 6298 section 5.5 (doubling) and 2.5 (maximum). The first RTO is SRTT + 200 ms in Linux and the
            // minimum of 1 s in classic.
            let first = if cfg.sack { ms(300) } else { Dur::from_secs(1) };
            assert_eq!(*g, (first * (1 << i)).min(cfg.max_rto), "{i}");
        }
        assert!(net.when(SERVER, swell_tcp::Event::Reset).is_some());
    }
}

#[test]
fn an_acknowledgement_of_a_retransmission_is_no_sample() {
    // Karn's algorithm: the handshake gives SRTT = 100 ms, and the only data segment is sent twice. Its
    // acknowledgement comes 1.1 s after the first transmission and must not be used as a sample.
    let cfg = Config {
        rtt_every_ack: true,
        ..classic(Algorithm::Reno)
    };
    let net = transfer(&cfg, 1, &[0]);
    let s = server(&net);
    assert_eq!(s.rtos, 1);
    assert_eq!(s.srtt, Some(RTT));
    // The back-off also stays until there is a sample (RFC 6298 section 5.7).
    assert_eq!(s.rto, Dur::from_secs(2));
    let timed = Config {
        rtt_every_ack: false,
        ..cfg
    };
    assert_eq!(server(&transfer(&timed, 1, &[0])).srtt, Some(RTT));
}

#[test]
fn limited_transmit_saves_a_small_window_from_the_timer() {
    // RFC 3042 section 1: a window of four with one loss gives only two duplicates unless new data follows. Three
    // segments follow the hole only with limited transmit.
    for limited_transmit in [false, true] {
        let cfg = Config {
            limited_transmit,
            initial_window: 3,
            initial_ssthresh: Some(3),
            ..classic(Algorithm::NewReno)
        };
        let net = transfer(&cfg, 12, &[0]);
        let s = server(&net);
        assert_eq!(s.rtos, u32::from(!limited_transmit), "{limited_transmit}");
        assert_eq!(s.recoveries, u32::from(limited_transmit));
    }
}

#[test]
fn a_lost_retransmission_is_found_by_time_with_rack() {
    // RFC 8985 section 3.4. The first retransmission is lost too, and much data follows it.
    let lossy = |cfg: Config| {
        let seq = 1 + 40 * u64::from(cfg.mss);
        let mut left = 2;
        let mut net = Net::new(cfg, ms(50))
            .judge(move |s| {
                if s.from == SERVER && s.seg.seq == seq && s.seg.len > 0 && left > 0 {
                    left -= 1;
                    return lose();
                }
                deliver()
            })
            .app(serve(1_000_000));
        net.run(5_000);
        server(&net)
    };
    let rack = lossy(Config::linux());
    assert_eq!((rack.rtos, rack.retransmitted), (0, 2), "{rack:?}");
    let count = lossy(by_count());
    assert!(count.rtos >= 1, "{count:?}");
}

#[test]
fn reordering_within_a_quarter_round_trip_is_no_loss_to_rack() {
    // RFC 8985 section 6.2 step 4. A segment is overtaken by more than three others. Once reordering was seen, later
    // segments are not retransmitted for it.
    let cfg = Config::linux();
    let mut n = 0;
    let mut net = Net::new(cfg, ms(50))
        .judge(move |s| {
            let mut fate = deliver();
            if s.from == SERVER && s.seg.len > 0 {
                n += 1;
                if n % 50 == 20 {
                    fate[0] = ms(10);
                }
            }
            fate
        })
        .rate("50Mbit".parse().unwrap())
        .app(serve(3_000_000));
    net.run(20_000);
    let s = server(&net);
    assert!(
        s.retransmitted <= 1,
        "at most the first is taken for lost: {s:?}"
    );
    assert_eq!(s.rtos, 0);
}

#[test]
fn duplicated_segments_cause_no_retransmission_with_sack() {
    let mut net = Net::new(Config::linux(), ms(50))
        .judge(|_| vec![Dur::ZERO, Dur::ZERO])
        .app(serve(300_000));
    net.run(5_000);
    assert_eq!(net.received(CLIENT), 300_000);
    assert_eq!(resends(&net), []);
    assert_eq!(server(&net).recoveries, 0);
}

#[test]
fn the_sack_blocks_name_the_latest_hole_first() {
    // RFC 2018 section 4. Of a flight of ten, segments 1, 3, 5, 7 arrive after 0, and 2, 4, 6 do not.
    let cfg = by_count();
    let mss = cfg.mss;
    let net = transfer(&cfg, 10, &[1, 3, 5, 7]);
    let at_flight_end = net
        .log
        .iter()
        .rposition(|a| a.1 == CLIENT && a.2.len == 0 && a.2.ack == 1 + u64::from(mss))
        .unwrap();
    let blocks: Vec<(i32, i32)> = net.sacks[at_flight_end]
        .first(net.log[at_flight_end].2.sacks)
        .map(|(s, e)| (s / mss as i32, e / mss as i32))
        .collect();
    // Counted from segment 1: 2, 4, 6, 8 and 9 arrived, the last two adjacent.
    assert_eq!(blocks, [(7, 9), (5, 6), (3, 4)]);
    assert!(net.log.iter().all(|x| !x.2.flags.has(Flags::RST)));
}

/// Linux `bictcp_reset`: after a time-out CUBIC measures the smallest RTT anew. The path moves from 10 to 100 ms in an
/// outage. The new RTT is no sign of a queue, so HyStart leaves the slow start alone until it reaches the threshold.
#[test]
fn slow_start_after_a_time_out_knows_only_the_rtts_since() {
    let cfg = Config {
        send_window: Some(200),
        ..Config::linux()
    };
    let mut net = Net::new(cfg, ms(5))
        .judge(|s| match s.at.as_secs_f64() {
            _ if s.from == CLIENT => deliver(),
            t if t < 1.0 => deliver(),
            t if t < 1.1 => lose(),
            _ => vec![ms(90)],
        })
        .app(serve(1 << 40));
    net.run_until(Time::from_secs_f64(1.3));
    let before = server(&net);
    let threshold = 140 * 1448; // 0.7 of the window
    assert_eq!((before.rtos, before.ssthresh), (1, threshold));
    net.run_until(Time::from_secs_f64(2.3));
    let after = server(&net);
    assert_eq!((after.undone, after.ssthresh), (0, threshold));
    assert!(after.cwnd >= threshold, "{after:?}");
}
