//! Time-outs, real and spurious, and how timers back off.

use super::*;

/// `cubic/cubic-rto-ss-ca-cwnd-bump.pkt`: a probe at the time of the first RTO, then the RTO. CUBIC forgets its last
/// maximum and grows by one segment for twenty acknowledged.
#[test]
fn cubic_begins_anew_after_a_timeout() {
    let mut s = Script::new(linux(), 100.0);
    s.write(1.0);
    s.ack_at(100.0, 1.0, &[]);
    assert_eq!(s.windows().0, 10, "the window was not the limit");
    s.write(1.0);
    s.until(810.0);
    let sent = s.sent_at();
    assert_eq!(sent[..2], [(0.0, 0.0), (100.0, 1.0)]);
    // 100 + 200 ms: smoothed RTT plus the minimum of the variance term.
    assert_eq!(sent[2..], [(400.0, 1.0), (700.0, 1.0)]);
    s.ack_at(810.0, 2.0, &[]);
    assert_eq!(s.windows(), (2, 7));
    s.write(200.0);
    assert_eq!(s.sent(), [2.0, 3.0]);
    let mut now = 910.0;
    // Slow start up to the threshold: two segments for each acknowledgement.
    for acked in 3..8 {
        s.ack_at(now, f64::from(acked), &[]);
        assert_eq!(s.sent().len(), 2, "{acked}");
        now += 2.0;
    }
    assert_eq!(s.windows(), (7, 7));
    let mut grown = Vec::new();
    for acked in 8..30 {
        s.ack_at(now, f64::from(acked), &[]);
        if s.sent().len() == 2 {
            grown.push(acked);
        }
        now += 15.0;
    }
    // The value of the kernel's script.
    assert_eq!(grown, [22]);
}

/// RFC 5682 section 3 and `tcp_process_loss`: after a time-out the first acknowledgement releases new data. If the
/// next one covers data that was not retransmitted, the time-out was spurious and the previous state is restored.
#[test]
fn a_spurious_timeout_is_found_by_frto() {
    let mut s = Script::new(
        Config {
            rack_tlp: false,
            ..linux()
        },
        100.0,
    );
    s.write(40.0);
    s.sent();
    // The path stalls.
    s.until(310.0);
    assert_eq!(s.sent_at(), [(300.0, 0.0)]);
    assert_eq!(s.windows(), (1, 7));
    // The original of the first segment arrives.
    s.ack_at(400.0, 1.0, &[]);
    assert_eq!(s.sent(), [10.0, 11.0], "new data, not what was in flight");
    assert_eq!(s.windows(), (2, 7));
    s.ack_at(410.0, 2.0, &[]);
    let after = s.windows();
    assert!(after.0 >= 10 && after.1 > 1000, "{after:?}");
    assert_eq!((s.stats().rtos, s.stats().undone), (1, 1));
    for k in 3..10 {
        s.ack_at(410.0 + f64::from(k), f64::from(k), &[]);
    }
    assert!(s.sent().iter().all(|&x| x >= 12.0), "nothing is sent twice");
    assert_eq!(s.stats().retransmitted, 1);
}

/// The same with a real loss: a selective acknowledgement of the new data ends F-RTO.
#[test]
fn a_real_timeout_is_not_undone_by_frto() {
    let mut s = Script::new(
        Config {
            rack_tlp: false,
            ..linux()
        },
        100.0,
    );
    s.write(40.0);
    s.until(310.0);
    s.sent();
    s.ack_at(410.0, 1.0, &[]);
    assert_eq!(s.sent(), [10.0, 11.0]);
    s.ack_at(510.0, 1.0, &[(10.0, 11.0)]);
    assert_eq!(s.sent(), [1.0], "the conventional recovery goes on");
    s.ack_at(511.0, 1.0, &[(10.0, 12.0)]);
    assert_eq!(s.sent(), [2.0]);
    assert_eq!((s.windows().1, s.stats().undone), (7, 0));
}

/// Without new data F-RTO falls back to retransmission at once (step 2b).
#[test]
fn frto_without_new_data_retransmits() {
    let mut s = Script::new(
        Config {
            rack_tlp: false,
            ..linux()
        },
        100.0,
    );
    s.write(10.0);
    s.until(310.0);
    s.sent();
    s.ack_at(410.0, 1.0, &[]);
    assert_eq!(s.sent(), [1.0, 2.0]);
}

/// RFC 4015 and `tcp_packet_delayed`: the first acknowledgement echoes a timestamp older than the retransmission.
#[test]
fn a_spurious_timeout_is_found_by_the_first_time_stamp() {
    for (echo, spurious) in [(0.0, true), (300.0, false)] {
        let mut s = Script::new(
            Config {
                timestamps: true,
                frto: false,
                rack_tlp: false,
                ..linux()
            },
            100.0,
        );
        s.write(40.0);
        s.until(310.0);
        s.sent();
        s.echo_at(400.0, 1.0, &[], echo);
        let after = s.windows();
        if spurious {
            assert!(after.0 >= 10 && after.1 > 1000, "{after:?}");
            assert!(s.sent().iter().all(|&x| x >= 10.0));
        } else {
            assert_eq!(after, (2, 7));
            assert_eq!(s.sent(), [1.0, 2.0]);
        }
        assert_eq!(s.stats().undone, u32::from(spurious));
    }
}

/// RFC 7323 section 4 and `tcp_ack_update_rtt`: a segment sent twice is measured by its timestamp, so the RTO adapts
/// to an RTT that exceeds it.
#[test]
fn a_round_trip_longer_than_the_timeout_is_measured_by_time_stamps() {
    for timestamps in [true, false] {
        let mut s = Script::new(
            Config {
                timestamps,
                frto: false,
                dsack: false,
                rack_tlp: false,
                ..linux()
            },
            100.0,
        );
        // It is retransmitted after 300 and 900 ms.
        s.write(1.0);
        s.echo_at(999.0, 1.0, &[], 0.0);
        assert_eq!(s.stats().retransmitted, 2);
        // Karn's algorithm gives no sample and keeps the back-off. With timestamps SRTT takes an eighth of the
        // sample, and RTTVAR is three quarters of the old value plus a quarter of the difference; the RTO adds four
        // times RTTVAR.
        let (srtt, rto) = if timestamps {
            let srtt = (100.0 * 7.0 + 999.0) / 8.0;
            (srtt, srtt + 150.0 + 899.0)
        } else {
            (100.0, 1200.0)
        };
        let s = s.stats();
        assert!((s.srtt.unwrap().as_secs_f64() * 1000.0 - srtt).abs() < 0.01);
        assert!(
            (s.rto.as_secs_f64() * 1000.0 - rto).abs() < 0.01,
            "{}",
            s.rto
        );
    }
}

/// RFC 9293 section 3.8.6.1 and `tcp_send_probe0`: probes of a zero window back off, starting from the RTO.
#[test]
fn a_closed_window_is_probed_with_back_off() {
    let mut s = Script::within(linux(), 100.0, 2000);
    s.write(2.0);
    s.sent();
    s.window = 0;
    s.ack_at(100.0, 2.0, &[]);
    s.write(1.0);
    s.until(5_000.0);
    let probes = s.sent_at();
    let times: Vec<f64> = probes.iter().map(|p| p.0).collect();
    assert_eq!(times, [400.0, 1000.0, 2200.0, 4600.0]);
    // An old sequence number, which the peer must answer.
    assert!(probes.iter().all(|p| p.1 == 2.0 - 1.0 / MSS as f64));
    s.window = 10_000;
    s.ack_at(5_000.0, 2.0, &[]);
    assert_eq!(s.sent(), [2.0]);
}

/// `tcp_retransmit_timer` with `tcp_syn_linear_timeouts` of 4 and `tcp_syn_retries` of 6.
#[test]
fn syns_are_repeated_every_second_at_first_and_then_back_off() {
    let mut end = Endpoint::client(Arc::new(Config::linux()));
    let mut times = Vec::new();
    let mut now = Time::ZERO;
    loop {
        while let Some((seg, _)) = end.poll_transmit(now) {
            assert_eq!(seg.flags, Flags::SYN);
            times.push(now.as_secs_f64());
        }
        let Some(due) = end.poll_timeout() else { break };
        now = due;
        end.handle_timeout(now);
    }
    // Documentation/networking/ip-sysctl.rst: the last SYN after 67 s, and the end after 131 s.
    let wanted = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 11.0, 19.0, 35.0, 67.0];
    assert_eq!(times, wanted);
    assert_eq!(now.as_secs_f64(), 131.0, "given up");
}

/// RFC 6298 section 5.7, `TCP_TIMEOUT_FALLBACK` and `tcp_try_undo_spurious_syn`. After a repeated SYN/ACK the first
/// RTO is 3 s if there is no RTT sample, even if no timer expired here. With a timestamp, the RTO follows from its
/// sample.
#[test]
fn after_a_repeated_handshake_the_first_timeout_is_three_seconds_or_measured() {
    for (timestamps, rto) in [(false, 3_000), (true, 2_100)] {
        let cfg = Config {
            timestamps,
            ..linux()
        };
        let mut end = Endpoint::server(Arc::new(cfg));
        let syn = Segment {
            flags: Flags::SYN,
            window: 65_535,
            ..Segment::default()
        };
        // The SYN arrives twice, because the path takes 700 ms and the client repeated it.
        for ms in [0.0, 400.0] {
            end.handle_segment(at(ms), &syn, &SackBlocks::default());
            while end.poll_transmit(at(ms)).is_some() {}
        }
        let ack = Segment {
            seq: 1,
            ack: 1,
            window: 65_535,
            flags: Flags::ACK,
            stamps: Stamps::new(700, 0),
            ..Segment::default()
        };
        end.handle_segment(at(700.0), &ack, &SackBlocks::default());
        assert_eq!(end.stats().rto, Dur::from_millis(rto), "{timestamps}");
    }
}
