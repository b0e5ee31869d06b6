use super::*;
use crate::Algorithm;
use std::mem::offset_of;
use swell_base::Stream;

/// The field order is meant to produce this layout.
#[test]
fn parts_of_an_endpoint_begin_with_a_cache_line() {
    assert_eq!(offset_of!(Endpoint, send), 64);
    Sender::check_layout();
    assert_eq!(size_of::<Endpoint>(), 320);
}

/// All segments of a connection over a path with a delay of 40 ms and losses, and the final statistics of both ends.
fn conversation(cfg: &Config, seed: u64, simple: bool) -> (Vec<(Time, Segment)>, [Stats; 2]) {
    let cfg = Arc::new(cfg.clone());
    let mut ends = [Endpoint::client(cfg.clone()), Endpoint::server(cfg)];
    for end in &mut ends {
        end.send.simple &= simple;
    }
    let mut rng = Stream::new(seed, "conversation");
    let (mut now, mut sent) = (Time::ZERO, Vec::new());
    let mut flying: Vec<(Time, usize, (Segment, SackBlocks))> = Vec::new();
    let mut written = Time::ZERO;
    while now < Time::from_secs_f64(20.0) {
        if now >= written {
            let bytes = [1, 700, 1460, 4000][rng.below(4) as usize];
            ends[0].send(bytes);
            if rng.chance(0.1) {
                ends[1].send(rng.below(3000) + 1);
            }
            written += Dur::from_nanos(rng.below(20_000_000) + 1);
        }
        while let Some(i) = flying.iter().position(|f| f.0 <= now) {
            let (_, to, (seg, sacks)) = flying.remove(i);
            ends[to].handle_segment(now, &seg, &sacks);
        }
        for (e, end) in ends.iter_mut().enumerate() {
            if end.poll_timeout().is_some_and(|due| due <= now) {
                end.handle_timeout(now);
            }
            while let Some(seg) = end.poll_transmit(now) {
                sent.push((now, seg.0));
                if !rng.chance(0.02) {
                    flying.push((now + Dur::from_millis(20), 1 - e, seg));
                }
            }
            while end.poll().is_some() {}
        }
        let timers = ends.iter().filter_map(Endpoint::poll_timeout);
        let arrivals = flying.iter().map(|f| f.0);
        let next = timers.chain(arrivals).chain([written]).min();
        now = next.unwrap_or(written).max(now + Dur::from_nanos(1));
    }
    (sent, ends.map(|e| e.stats()))
}

/// Compares the fast paths with the full path as oracle.
#[test]
fn the_short_ways_come_to_what_the_long_way_comes_to() {
    let mut sent = 0;
    for seed in 0..60 {
        let mut rng = Stream::new(seed, "profile");
        let mut coin = || rng.chance(0.5);
        let cfg = Config {
            algorithm: [Algorithm::Reno, Algorithm::NewReno][usize::from(coin())],
            packets: coin(),
            nagle: coin(),
            delayed_ack: coin(),
            limited_transmit: coin(),
            window_validation: coin(),
            byte_counting: coin(),
            send_window: coin().then_some(7),
            recv_buffer: if coin() { 10_000 } else { 1 << 20 },
            ..Config::classic()
        };
        let short = conversation(&cfg, seed, true);
        assert!(
            short == conversation(&cfg, seed, false),
            "seed {seed}: {cfg:?}"
        );
        sent += short.0.len();
    }
    assert!(sent > 50_000, "{sent}");
}

/// BBR's smallest RTT after eleven seconds in which a client sent `len` bytes each second. The first are acknowledged
/// after 20 ms, the others after 60 ms.
fn smallest_rtt(len: u64) -> Option<Dur> {
    let mut end = Endpoint::client(Arc::new(Config {
        algorithm: Algorithm::Bbr,
        handshake: false,
        ..Config::linux()
    }));
    for k in 0..=11 {
        let now = Time::ZERO + Dur::from_secs(k);
        end.send(len);
        while end.poll_transmit(now).is_some() {}
        let ack = Segment {
            seq: 1,
            ack: end.send.nxt,
            window: 1 << 20,
            flags: Flags::ACK,
            ..Segment::default()
        };
        let rtt = Dur::from_millis(if k == 0 { 20 } else { 60 });
        end.handle_segment(now + rtt, &ack, &SackBlocks::default());
    }
    end.send.window.bbr().map(|b| b.rtprop)
}

/// `bbr_update_min_rtt` and `FLAG_ACK_MAYBE_DELAYED`: when ten seconds are over, a longer RTT replaces the smallest one,
/// unless the acknowledgement may have been delayed.
#[test]
fn bbr_takes_no_delayed_acknowledgement_for_the_path() {
    assert_eq!(smallest_rtt(1448), Some(Dur::from_millis(60)));
    assert_eq!(smallest_rtt(2 * 100), Some(Dur::from_millis(20)));
}

fn at(ms: u64) -> Time {
    Time::ZERO + Dur::from_millis(ms)
}

/// A server whose handshake ends at 1 s and took 20 ms.
fn server(algorithm: Algorithm) -> Endpoint {
    let mut end = Endpoint::server(Arc::new(Config {
        algorithm,
        ..Config::linux()
    }));
    let syn = Segment {
        flags: Flags::SYN,
        window: 65_535,
        ..Segment::default()
    };
    end.handle_segment(at(980), &syn, &SackBlocks::default());
    assert!(end.poll_transmit(at(980)).is_some());
    acknowledge(&mut end, at(1000));
    end
}

/// Everything sent is acknowledged.
fn acknowledge(end: &mut Endpoint, now: Time) {
    let ack = Segment {
        seq: 1,
        ack: end.send.nxt.max(1),
        window: 1 << 20,
        flags: Flags::ACK,
        ..Segment::default()
    };
    end.handle_segment(now, &ack, &SackBlocks::default());
}

fn write(end: &mut Endpoint, now: Time) {
    end.send(1448);
    assert!(end.poll_transmit(now).is_some());
}

/// `bbr_init` takes the RTT of the handshake.
#[test]
fn bbr_begins_with_the_rtt_of_the_handshake() {
    let mut end = server(Algorithm::Bbr);
    let rtprop = end.send.window.bbr().map(|b| b.rtprop);
    assert_eq!(rtprop, Some(Dur::from_millis(20)));
}

/// `cubictcp_acked` and `bictcp_reset`: CUBIC's smallest RTT begins with data, comes from the newest segment
/// acknowledged, stays in the first second of an epoch, and ends with a time-out.
#[test]
fn cubic_has_a_smallest_rtt_of_its_own() {
    let millis = |end: &Endpoint| end.send.delay_min().map(|d| d.as_millis_f64());
    for (age, later) in [(999, 25.0), (1000, 10.0)] {
        let mut end = server(Algorithm::Cubic);
        assert_eq!(millis(&end), None, "no data yet");
        write(&mut end, at(2000));
        write(&mut end, at(2005));
        acknowledge(&mut end, at(2030));
        assert_eq!(millis(&end), Some(25.0));
        assert_eq!(end.send.rtt.min(), Some(Dur::from_millis(20)));
        // An epoch of congestion avoidance is `age` milliseconds old when the next sample comes.
        write(&mut end, at(4000));
        end.send.window.ssthresh = 1.0;
        let (cfg, begun) = (end.cfg.clone(), at(4010 - age));
        end.send.window.on_ack(&cfg, begun, 1448, Dur::ZERO);
        acknowledge(&mut end, at(4010));
        assert_eq!(millis(&end), Some(later), "{age}");
        write(&mut end, at(5000));
        while end.stats().rtos == 0 {
            let due = end.poll_timeout().unwrap();
            end.handle_timeout(due);
            while end.poll_transmit(due).is_some() {}
        }
        assert_eq!(millis(&end), None);
    }
}
