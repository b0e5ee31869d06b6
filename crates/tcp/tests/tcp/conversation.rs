//! Handshake, close, reset, delayed acknowledgements, and segment boundaries of writes.

use crate::net::{CLIENT, Net, SERVER, deliver, lose, ms, serve};
use swell_base::{Dur, Flags, SackBlocks, Segment, Time};
use swell_tcp::{Config, Endpoint, Event};

fn at_ms(n: u64) -> Time {
    Time::ZERO + ms(n)
}

/// A connection in which the segments of `from` with the given numbers are lost.
fn losing(from: usize, which: Vec<usize>) -> Net {
    Net::new(Config::linux(), ms(50))
        .judge(move |s| {
            if s.from == from && which.contains(&s.index) {
                lose()
            } else {
                deliver()
            }
        })
        .app(serve(1000))
}

#[test]
fn a_handshake_takes_one_round_trip() {
    let mut net = losing(CLIENT, vec![]);
    net.run(50);
    assert_eq!(net.when(CLIENT, Event::Connected), Some(at_ms(100)));
    assert_eq!(net.when(SERVER, Event::Connected), Some(at_ms(150)));
    assert_eq!(net.ends[CLIENT].stats().srtt, Some(ms(100)));
    assert_eq!(net.ends[SERVER].stats().srtt, Some(ms(100)));
}

#[test]
fn lost_syns_are_sent_again_after_1_2_and_3_seconds() {
    // RFC 6298 section 2.1; Linux does not back off at first.
    let mut net = losing(CLIENT, vec![0, 1, 2]);
    net.run(50);
    let syns: Vec<Time> = net
        .log
        .iter()
        .filter(|x| x.2.flags == Flags::SYN)
        .map(|x| x.0)
        .collect();
    assert_eq!(syns, [at_ms(0), at_ms(1000), at_ms(2000), at_ms(3000)]);
    assert_eq!(net.when(CLIENT, Event::Connected), Some(at_ms(3100)));
    assert_eq!(net.received(CLIENT), 1000);
    // One segment after more than one lost SYN; the FIN may have added its byte of window.
    assert_eq!(net.ends[CLIENT].stats().cwnd / 1448, 1);
}

#[test]
fn a_lost_syn_ack_is_repeated_by_either_timer() {
    let mut net = losing(SERVER, vec![0]);
    net.run(50);
    // The client repeats its SYN at 1 s and the server its SYN/ACK at 1.05 s. The first answer to arrive completes
    // the handshake.
    assert_eq!(net.when(CLIENT, Event::Connected), Some(at_ms(1100)));
    assert_eq!(net.received(CLIENT), 1000);
}

#[test]
fn a_lost_last_handshake_segment_is_replaced_by_data() {
    let mut net = Net::new(Config::linux(), ms(50)).judge(|s| {
        if s.from == CLIENT && s.index == 1 {
            lose()
        } else {
            deliver()
        }
    });
    net.ends[CLIENT].send(100);
    net.run_until(at_ms(200));
    assert_eq!(net.when(SERVER, Event::Connected), Some(at_ms(150)));
    assert_eq!(net.received(SERVER), 100);
}

#[test]
fn nobody_answers() {
    let mut net = Net::new(Config::linux(), ms(50)).judge(|_| lose());
    net.run(50);
    // One SYN, four retransmissions that do not count as retries, and six that do (`tcp_syn_retries`).
    assert_eq!(net.log.len(), 11);
    assert_eq!(net.when(CLIENT, Event::Reset), Some(at_ms(131_000)));
    assert_eq!(net.events.last().map(|e| e.2), Some(Event::Closed));
}

#[test]
fn both_sides_may_open() {
    let cfg = std::sync::Arc::new(Config::linux());
    let mut net = Net::new(Config::linux(), ms(50));
    net.ends[SERVER] = Endpoint::client(cfg);
    net.ends[CLIENT].send(10);
    net.ends[SERVER].send(20);
    net.run_until(at_ms(1000));
    assert_eq!((net.received(CLIENT), net.received(SERVER)), (20, 10));
    assert_eq!(net.when(CLIENT, Event::Connected), Some(at_ms(100)));
}

#[test]
fn lost_fins_are_sent_again() {
    // The server's data and FIN are one segment, its second. The client's FIN comes later.
    for (from, index) in [(SERVER, 1), (CLIENT, 2), (CLIENT, 3), (SERVER, 2)] {
        let mut net = losing(from, vec![index]);
        net.run(60);
        for end in [CLIENT, SERVER] {
            assert!(net.when(end, Event::Closed).is_some(), "{from} {index}");
            assert!(net.when(end, Event::Reset).is_none());
        }
    }
}

#[test]
fn both_sides_may_close_at_once_and_without_data() {
    let mut net = Net::new(Config::linux(), ms(50)).app(|_, _, event, e| {
        if event == Event::Connected {
            e.close();
        }
    });
    net.run(20);
    for end in [CLIENT, SERVER] {
        assert_eq!(net.received(end), 0);
        assert!(net.when(end, Event::Eof).is_some());
        assert!(net.when(end, Event::Closed).is_some());
        assert_eq!(net.when(end, Event::Drained), None);
    }
}

#[test]
fn both_sides_may_close_at_the_same_instant() {
    let mut net = Net::new(Config::linux(), ms(50));
    net.run_until(at_ms(500));
    for end in [CLIENT, SERVER] {
        net.ends[end].close();
        net.drain(end);
    }
    net.run(20);
    assert_eq!(net.when(CLIENT, Event::Closed), Some(at_ms(600)));
    assert_eq!(net.when(SERVER, Event::Closed), Some(at_ms(600)));
}

#[test]
fn one_side_may_go_on_sending_after_the_other_closed() {
    let mut net = Net::new(Config::linux(), ms(50)).app(|_, end, event, e| match (end, event) {
        (CLIENT, Event::Connected) => {
            e.send(10);
            e.close();
        }
        (SERVER, Event::Eof) => {
            e.send(100_000);
            e.close();
        }
        _ => {}
    });
    net.run(1000);
    assert_eq!((net.received(CLIENT), net.received(SERVER)), (100_000, 10));
    assert!(net.when(CLIENT, Event::Closed).is_some());
}

#[test]
fn what_is_written_or_sent_after_a_fin_is_ignored() {
    let mut net = Net::new(Config::linux(), ms(50)).app(serve(1000));
    net.run_until(at_ms(160));
    net.ends[SERVER].send(5);
    net.run(50);
    assert_eq!(net.received(CLIENT), 1000);
    // The peer sends data beyond its own FIN.
    let mut e = Endpoint::server(
        Config {
            handshake: false,
            ..Config::linux()
        }
        .into(),
    );
    let data = |seq, flags| Segment {
        seq,
        ack: 1,
        len: 100,
        flags,
        ..Segment::default()
    };
    e.handle_segment(
        Time::ZERO,
        &data(101, Flags::ACK.with(Flags::FIN)),
        &SackBlocks::default(),
    );
    e.handle_segment(Time::ZERO, &data(202, Flags::ACK), &SackBlocks::default());
    e.handle_segment(Time::ZERO, &data(1, Flags::ACK), &SackBlocks::default());
    e.handle_segment(Time::ZERO, &data(202, Flags::ACK), &SackBlocks::default());
    let events: Vec<Event> = std::iter::from_fn(|| e.poll()).collect();
    assert_eq!(events, [Event::Connected, Event::Received(200), Event::Eof]);
    assert_eq!(e.poll_transmit(Time::ZERO).map(|(s, _)| s.ack), Some(202));
}

#[test]
fn an_abort_resets_the_other_side_even_when_the_reset_is_lost() {
    for (aborting, lost) in [
        (CLIENT, false),
        (SERVER, false),
        (CLIENT, true),
        (SERVER, true),
    ] {
        let mut net = Net::new(Config::linux(), ms(50)).judge(move |s| {
            let first_reset = s.seg.flags.has(Flags::RST) && s.at < at_ms(310);
            if lost && first_reset {
                lose()
            } else {
                deliver()
            }
        });
        net.ends[1 - aborting].send(1_000_000);
        net.run_until(at_ms(300));
        net.ends[aborting].abort();
        net.drain(aborting);
        net.run(5000);
        assert!(
            net.when(1 - aborting, Event::Reset).is_some(),
            "{aborting} {lost}"
        );
        assert_eq!(net.when(aborting, Event::Reset), None);
        for end in [CLIENT, SERVER] {
            assert!(net.ends[end].is_closed() && net.when(end, Event::Closed).is_some());
        }
    }
}

#[test]
fn a_closed_door_refuses() {
    let mut net = Net::new(Config::linux(), ms(50));
    net.ends[SERVER].close();
    net.run(10);
    assert_eq!(net.when(CLIENT, Event::Reset), Some(at_ms(100)));
}

#[test]
fn acknowledgements_are_counted_as_the_profile_says() {
    // 101 segments in order in one direction, plus FIN and handshake acknowledgements.
    let count = |cfg: Config| {
        let mut net = Net::new(cfg.clone(), ms(50)).app(move |_, end, event, e| {
            if (end, event) == (SERVER, Event::Connected) {
                e.send(101 * u64::from(cfg.mss));
            }
        });
        net.run(1000);
        let handshake = usize::from(net.ends[CLIENT].config().handshake);
        net.pure_acks(CLIENT).len() - handshake
    };
    let linux = Config {
        window_validation: false,
        recv_tuning: false,
        ..Config::linux()
    };
    let quick0 = Config {
        quick_acks: 0,
        ..linux.clone()
    };
    assert_eq!(
        count(Config {
            delayed_ack: false,
            ..linux.clone()
        }),
        101
    );
    // One per two segments, and one from the timer for the odd segment.
    assert_eq!(count(quick0.clone()), 51);
    // Sixteen at once, then 42 for pairs and one for the last segment.
    assert_eq!(count(linux), 16 + 43);
    assert_eq!(
        count(Config {
            delayed_ack: true,
            ..Config::classic()
        }),
        51
    );
    assert_eq!(
        count(Config {
            handshake: false,
            ..Config::classic()
        }),
        101
    );
}

#[test]
fn a_lone_segment_is_acknowledged_after_the_delay() {
    for (cfg, delay) in [
        (
            Config {
                quick_acks: 0,
                ..Config::linux()
            },
            ms(40),
        ),
        (
            Config {
                delayed_ack: true,
                ..Config::classic()
            },
            ms(100),
        ),
        (Config::classic(), Dur::ZERO),
    ] {
        let mut net = Net::new(cfg, ms(50));
        net.ends[CLIENT].send(100);
        net.run_until(at_ms(1000));
        let arrived = net.when(SERVER, Event::Received(100)).unwrap();
        assert_eq!(
            net.when(CLIENT, Event::Drained),
            Some(arrived + delay + ms(50))
        );
    }
}

#[test]
fn an_answer_carries_the_acknowledgement() {
    let mut net = Net::new(
        Config {
            quick_acks: 0,
            ..Config::linux()
        },
        ms(50),
    )
    .app(|_, end, event, e| {
        if (end, event) == (SERVER, Event::Received(100)) {
            e.send(200);
        }
    });
    net.ends[CLIENT].send(100);
    net.run_until(at_ms(1000));
    assert_eq!(net.pure_acks(SERVER).len(), 0);
    assert_eq!(net.received(CLIENT), 200);
}

#[test]
fn writes_are_packets_only_where_asked() {
    for (packets, nagle, lens) in [
        (false, false, vec![1448, 52]),
        (false, true, vec![1448, 52]),
        (true, false, vec![500, 500, 500]),
    ] {
        let mut net = Net::new(
            Config {
                packets,
                nagle,
                ..Config::linux()
            },
            ms(50),
        );
        for _ in 0..3 {
            net.ends[CLIENT].send(500);
        }
        net.run_until(at_ms(1000));
        let sent: Vec<u32> = net.data(CLIENT).iter().map(|d| d.1.len).collect();
        assert_eq!(sent, lens, "{packets} {nagle}");
    }
}

#[test]
fn nagle_holds_a_short_segment_until_the_first_is_acknowledged() {
    let mut net = Net::new(
        Config {
            nagle: true,
            ..Config::linux()
        },
        ms(50),
    );
    net.ends[CLIENT].send(1500);
    net.run_until(at_ms(1000));
    let sent: Vec<Time> = net.data(CLIENT).iter().map(|d| d.0).collect();
    assert_eq!(sent, [at_ms(100), at_ms(200)]);
}

#[test]
fn sizes_on_the_wire() {
    let (linux, classic) = (Config::linux(), Config::classic());
    let seg = |len, flags| Segment {
        len,
        flags,
        ..Segment::default()
    };
    assert_eq!(linux.wire_size(&seg(1448, Flags::ACK)), 1500);
    assert_eq!(linux.wire_size(&seg(0, Flags::ACK)), 52);
    assert_eq!(linux.wire_size(&seg(0, Flags::SYN)), 60);
    assert_eq!(classic.wire_size(&seg(1460, Flags::ACK)), 1500);
    assert_eq!(classic.wire_size(&seg(0, Flags::ACK)), 40);
    let mut sacked = seg(0, Flags::ACK);
    sacked.sacks = 1;
    assert_eq!(linux.wire_size(&sacked), 52 + 12);
    sacked.sacks = 3;
    assert_eq!(linux.wire_size(&sacked), 52 + 28);
    assert_eq!(linux.wire_size(&seg(u32::MAX, Flags::ACK)), u16::MAX);
}

#[test]
fn a_closed_window_is_probed() {
    let cfg = Config::linux();
    let mut e = Endpoint::client(cfg.into());
    e.send(100);
    let (syn, _) = e.poll_transmit(Time::ZERO).unwrap();
    assert_eq!(syn.flags, Flags::SYN);
    let answer = |seq, flags, window| Segment {
        seq,
        ack: 1,
        window,
        flags,
        ..Segment::default()
    };
    e.handle_segment(
        at_ms(100),
        &answer(0, Flags::SYN.with(Flags::ACK), 0),
        &SackBlocks::default(),
    );
    assert_eq!(
        e.poll_transmit(at_ms(100)).map(|(s, _)| (s.seq, s.len)),
        Some((1, 0))
    );
    assert!(e.poll_transmit(at_ms(100)).is_none());
    let due = e.poll_timeout().unwrap();
    e.handle_timeout(due);
    assert_eq!(
        e.poll_transmit(due).map(|(s, _)| (s.seq, s.len)),
        Some((0, 0)),
        "an old number"
    );
    assert!(e.poll_transmit(due).is_none());
    e.handle_segment(due, &answer(1, Flags::ACK, 50), &SackBlocks::default());
    assert_eq!(
        e.poll_transmit(due).map(|(s, _)| (s.seq, s.len)),
        Some((1, 50))
    );
}
