//! QUIC: data beyond a hole, probe time-outs, packet sizes.

use crate::net::{CLIENT, Net, SERVER, Sent, deliver, lose, serve};
use swell_base::{Dur, Rate, Segment, Time};
use swell_tcp::{Algorithm, Config, Event, Stats};

const RTT: Dur = Dur::from_millis(40);

/// A transfer of full packets, with an RTT of 40 ms, for 20 s. `lost` says which data packets are lost, by their
/// order, repeated ones included.
fn transfer(packets: u64, lost: impl Fn(usize) -> bool + 'static) -> Net {
    let bytes = packets * u64::from(Config::quic().mss);
    let mut sent = 0;
    let mut net = Net::new(Config::quic(), RTT / 2)
        .app(move |_, end, event, e| {
            if (end, event) == (SERVER, Event::Connected) {
                e.send(bytes);
            }
        })
        .judge(move |s: &Sent<'_>| {
            let data = s.from == SERVER && s.seg.len > 0;
            sent += usize::from(data);
            if data && lost(sent - 1) {
                lose()
            } else {
                deliver()
            }
        });
    net.run_until(Time::from_secs_f64(20.0));
    assert_eq!(net.received(CLIENT), bytes);
    net
}

fn server(net: &Net) -> Stats {
    net.ends[SERVER].stats()
}

/// Ranges reported as early: when, first byte and one past the last.
fn early(net: &Net) -> Vec<(Time, u64, u64)> {
    let events = net.events.iter();
    let found = events.filter_map(|&(at, end, event)| match event {
        Event::Early(from, to) if end == CLIENT => Some((at, from, to)),
        _ => None,
    });
    found.collect()
}

#[test]
fn data_beyond_a_hole_is_reported_when_it_arrives() {
    let mss = u64::from(Config::quic().mss);
    let net = transfer(10, |n| n == 2);
    let there = Time::ZERO + RTT / 2;
    let whole = |n: u64| (there, n * mss, (n + 1) * mss);
    assert_eq!(early(&net), (3..10).map(whole).collect::<Vec<_>>());
    // Three later packets are acknowledged at the sender after an RTT, and the repair arrives half an RTT later.
    assert_eq!(
        net.when_received(CLIENT, 3 * mss),
        Some(there + RTT),
        "the repair"
    );
    let s = server(&net);
    assert_eq!((s.retransmitted, s.recoveries, s.rtos), (1, 1, 0));
    // Over TCP nothing is.
    let mut tcp = Net::new(Config::linux(), RTT / 2)
        .lose_data(&[2])
        .app(|_, end, event, e| {
            if (end, event) == (SERVER, Event::Connected) {
                e.send(100_000);
            }
        });
    tcp.run_until(Time::from_secs_f64(5.0));
    assert_eq!((tcp.received(CLIENT), early(&tcp)), (100_000, Vec::new()));
}

#[test]
fn every_byte_is_reported_whatever_is_lost() {
    for seed in 0..40u64 {
        let lost = move |n: usize| {
            // A multiplicative hash (Knuth): about one in six.
            let x = (n as u64 + 1 + 1000 * seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            x >> 61 == 0 || x >> 59 == 5
        };
        let net = transfer(200, lost);
        let bytes = 200 * u64::from(Config::quic().mss);
        for (_, from, to) in early(&net) {
            assert!(from < to && to <= bytes, "{seed}: {from} {to}");
        }
        // All that was delivered and not in order was reported at that moment.
        let mut next = 1;
        let mut beyond = Vec::new();
        let mut have = std::collections::BTreeSet::new();
        for (at, seg, is_lost) in net.data(SERVER) {
            if is_lost {
                continue;
            }
            if seg.seq > next && !have.contains(&seg.seq) {
                let from = seg.seq - 1;
                beyond.push((at + RTT / 2, from, from + u64::from(seg.len)));
            }
            have.insert(seg.seq);
            while have.contains(&next) {
                next += u64::from(Config::quic().mss);
            }
        }
        let reported = early(&net);
        for range in &beyond {
            assert!(reported.contains(range), "{seed}: {range:?}");
        }
        assert!(!beyond.is_empty(), "{seed}");
    }
}

/// Slow start overruns a small buffer. What is then sent again must not overrun it once more, so that QUIC takes no
/// longer than TCP.
#[test]
fn repairs_fit_a_small_buffer() {
    let took = |cfg: Config, algorithm, queue| {
        let mut net = Net::new(Config { algorithm, ..cfg }, RTT * 5 / 2)
            .rate(Rate::from_bps(20_000_000))
            .queue(queue)
            .app(serve(6_000_000));
        net.run(100_000);
        (net.when(CLIENT, Event::Eof), server(&net).recoveries)
    };
    for algorithm in [Algorithm::Cubic, Algorithm::NewReno] {
        for queue in [10, 30, 100].map(Dur::from_millis) {
            let (quic, recoveries) = took(Config::quic(), algorithm, queue);
            let (tcp, _) = took(Config::linux(), algorithm, queue);
            assert!(quic.is_some() && quic < tcp, "{queue:?}: {quic:?} {tcp:?}");
            assert_eq!(recoveries, 1, "{algorithm:?} {queue:?}");
        }
    }
}

#[test]
fn a_lost_tail_is_probed_and_the_window_stays() {
    // The last of ten packets is lost. The fifth acknowledgement, of packets 8 and 9, waits for another packet until
    // the 25 ms are over.
    let net = transfer(10, |n| n == 9);
    let data = net.data(SERVER);
    assert_eq!(data.len(), 11);
    // All samples but the last are 40 ms; it is 65. RFC 9002 section 5.3: SRTT 40 + 25/8, deviation 3/4 of what is left
    // of 20 after four samples without any, and 25/4 more.
    let srtt = 40.0 + 25.0 / 8.0;
    let deviation = 20.0 * 0.75f64.powi(3) * 0.75 + 25.0 / 4.0;
    let timeout = srtt + 4.0 * deviation + 25.0;
    let probe = data[10].0.as_secs_f64() * 1e3;
    assert!((probe - 65.0 - timeout).abs() < 0.01, "{probe} {timeout}");
    let s = server(&net);
    assert_eq!((s.probes, s.rtos, s.recoveries), (1, 0, 0));
    let alone = server(&transfer(10, |_| false));
    assert_eq!((s.cwnd, s.ssthresh), (alone.cwnd, alone.ssthresh));
}

#[test]
fn a_lost_flight_is_found_by_one_probe() {
    // The second half of a flight is lost. The probe, the newest packet, shows it, and all is sent again.
    let net = transfer(10, |n| (5..10).contains(&n));
    let s = server(&net);
    assert_eq!((s.probes, s.rtos, s.recoveries), (1, 0, 1));
    let again: Vec<Time> = net.data(SERVER)[10..].iter().map(|x| x.0).collect();
    // Nothing else is in flight. PRR lets the answer to the probe release one packet, and that packet's two.
    let since: Vec<u64> = again[1..]
        .iter()
        .map(|&t| t.since(again[0]).as_nanos() / RTT.as_nanos())
        .collect();
    assert_eq!(since, [1, 2, 2, 3], "the probe, and the other four");
}

#[test]
fn a_repair_lost_below_what_arrived_is_probed() {
    // The ninth of ten packets and its repair are lost. The tenth has arrived, so sending it again would show nothing.
    let net = transfer(10, |n| n == 8 || n == 10);
    let data = net.data(SERVER);
    let ninth = data[8].1.seq;
    let again: Vec<u64> = data[10..].iter().map(|x| x.1.seq).collect();
    assert_eq!(again, [ninth, ninth], "the repair and the probe");
    // RACK waits for a quarter of the RTT after the acknowledgement of the tenth. Five samples are all 40 ms (RFC 9002
    // sections 5.3 and 6.2.1).
    let repair = 40.0 + 10.0;
    let timeout = 40.0 + 4.0 * 20.0 * 0.75f64.powi(4) + 25.0;
    let probe = data[11].0.as_secs_f64() * 1e3;
    assert!((probe - repair - timeout).abs() < 0.01, "{probe}");
    let s = server(&net);
    assert_eq!((s.probes, s.rtos, s.recoveries), (1, 0, 1));
}

#[test]
fn probes_back_off_and_the_third_is_persistent_congestion() {
    // The last packet is lost four times.
    let net = transfer(10, |n| (9..13).contains(&n));
    let times: Vec<f64> = net.data(SERVER)[9..]
        .iter()
        .map(|x| x.0.as_secs_f64())
        .collect();
    let gaps: Vec<f64> = times[1..].windows(2).map(|w| w[1] - w[0]).collect();
    let ratios: Vec<f64> = gaps.windows(2).map(|w| w[1] / w[0]).collect();
    assert!(ratios.iter().all(|r| (r - 2.0).abs() < 1e-6), "{gaps:?}");
    let s = server(&net);
    assert_eq!((s.probes, s.rtos), (2, 2));
    let alone = server(&transfer(10, |_| false));
    assert!(s.ssthresh < alone.cwnd && s.cwnd < alone.cwnd);
    let two = server(&transfer(10, |n| (9..11).contains(&n)));
    assert_eq!((two.probes, two.rtos, two.cwnd), (2, 0, alone.cwnd));
}

#[test]
fn packets_have_the_headers_of_quic() {
    let quic = Config::quic();
    let full = Segment {
        len: quic.mss,
        ..Segment::default()
    };
    assert_eq!(quic.wire_size(&full), 1500);
    let ack = Segment {
        sacks: 2,
        ..Segment::default()
    };
    // IPv4 20, UDP 8, short header 11, tag 16, frame 8, and 4 for each further range.
    assert_eq!(quic.wire_size(&ack), 63 + 2 * 4);
}
