//! Workloads over the loopback network.

mod common;
mod endings;
mod namespaces;
mod twins;

use std::time::Duration;

use rustix::net::sockopt;
use swell_base::{Code, Dur, Time};
use swell_tcp::Config;
use swell_workload::{Action, Conn, End, Event, Open};

use self::common::{MS, Script, carrier, run_until};
use super::settings::Settings;
use swell_host::sys::tcp as sys;

#[test]
fn every_byte_arrives_once_in_both_directions_and_is_drained() {
    let sizes = [3_000_000u64, 7_654_321];
    let (script, log) = Script::new(move |_, event, actions| match event {
        Event::Start => {
            actions.push(Action::Connect(Conn(0), Box::default()));
            actions.push(Action::Send(Conn(0), End::Client, 0));
            actions.push(Action::Send(Conn(0), End::Client, sizes[0]));
            actions.push(Action::Send(Conn(0), End::Server, sizes[1]));
        }
        Event::Drained(conn, end) => actions.push(Action::Close(conn, end)),
        _ => {}
    });
    let mut carrier = carrier(script);
    run_until(&mut carrier, || log.has(|e| matches!(e, Event::Closed(..))));
    let events = log.take();
    for (end, sent) in [(End::Server, sizes[0]), (End::Client, sizes[1])] {
        let got = events.iter().map(|e| match e {
            Event::Received(_, at, n) if *at == end => *n,
            _ => 0,
        });
        assert_eq!(got.sum::<u64>(), sent);
        let count = |e: Event| events.iter().filter(|x| **x == e).count();
        assert_eq!(count(Event::Connected(Conn(0), end)), 1);
        assert_eq!(count(Event::Drained(Conn(0), end)), 1);
        assert_eq!(count(Event::Eof(Conn(0), end)), 1);
    }
    let Some(Event::Closed(_, info)) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!(info.received, [sizes[1], sizes[0]]);
    assert!(info.min_rtt.is_some_and(|rtt| rtt < Dur::from_secs(1)));
    assert_eq!(carrier.open_flows(), 0);
    let report = carrier.report();
    assert_eq!(report.counts.late_notices, 0);
    assert_eq!(report.counts.bytes, sizes[0] + sizes[1]);
}

#[test]
fn drained_waits_for_the_acknowledgement_and_is_told_once_per_send() {
    let (script, log) = Script::new(move |_, event, actions| match event {
        Event::Start => {
            actions.push(Action::Connect(Conn(0), Box::default()));
            actions.push(Action::Send(Conn(0), End::Client, 100));
        }
        Event::Drained(conn, end) => actions.push(Action::Send(conn, end, 100)),
        _ => {}
    });
    let mut carrier = carrier(script);
    run_until(&mut carrier, || {
        log.count(|e| matches!(e, Event::Drained(..))) >= 50
    });
    let (mut sent, mut drained) = (1, 0);
    for event in log.take() {
        if let Event::Drained(..) = event {
            drained += 1;
            assert_eq!(
                drained, sent,
                "each is acknowledged before the next is sent"
            );
            sent += 1;
        }
    }
    assert_eq!(carrier.report().counts.late_notices, 0);
}

#[test]
fn timers_are_told_their_own_instants() {
    let (script, log) = Script::new(move |now, event, actions| {
        if event == Event::Start || matches!(event, Event::Timer(_)) {
            let n = now.as_nanos() / MS.as_nanos();
            actions.push(Action::Timer(MS, n));
        }
    });
    let mut carrier = carrier(script);
    let end = Time::from_secs_f64(0.2);
    let ended = carrier.run(end, &Default::default()).unwrap();
    assert_eq!(ended, super::StopReason::Time);
    let tokens: Vec<u64> = log
        .take()
        .into_iter()
        .filter_map(|e| match e {
            Event::Timer(token) => Some(token),
            _ => None,
        })
        .collect();
    // Every millisecond up to the end, however late the machine was.
    assert_eq!(tokens, (0..200).collect::<Vec<_>>());
    assert_eq!(carrier.report().late.count, 200);
}

#[test]
fn the_flag_stops_a_run() {
    let (script, _) = Script::new(|_, _, _| {});
    let mut carrier = carrier(script);
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let other = std::sync::Arc::clone(&stop);
    let setter = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        other.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let ended = carrier.run(Time::MAX, &stop).unwrap();
    setter.join().unwrap();
    assert_eq!(ended, super::StopReason::Stopped);
}

#[test]
fn sockets_have_the_settings_and_pass_them_on() {
    let config = Config {
        mss: 700,
        algorithm: swell_tcp::Algorithm::NewReno,
        recv_buffer: 20_000,
        ..Config::linux()
    };
    let (script, log) = Script::new(move |_, event, actions| {
        if event == Event::Start {
            actions.push(Action::Connect(Conn(0), Box::default()));
            actions.push(Action::Send(Conn(0), End::Client, 5_000_000));
            actions.push(Action::Send(Conn(0), End::Server, 5_000_000));
        }
    });
    let mut carrier = common::carrier_with(script, config);
    run_until(&mut carrier, || {
        log.count(|e| matches!(e, Event::Drained(..))) == 2
    });
    for half in &carrier.slots.peek(0).ends {
        let fd = half.socket().unwrap();
        assert_eq!(sockopt::tcp_congestion(fd).unwrap(), "reno");
        assert!(sockopt::tcp_nodelay(fd).unwrap());
        assert_eq!(sockopt::socket_linger(fd).unwrap(), Some(Duration::ZERO));
        let facts = sys::facts(fd).unwrap();
        assert_eq!(facts.mss, 700);
        assert!(facts.send_window <= 20_000, "{facts:?}");
    }
}

#[test]
fn what_sockets_cannot_be_told_is_said() {
    assert_eq!(Settings::of(&Config::linux()).1, []);
    let (_, warnings) = Settings::of(&Config::classic());
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].message.contains("initial_window"));
    assert!(!warnings[0].message.contains("recv_buffer"));
    let nice = Config {
        algorithm: swell_tcp::Algorithm::Nice,
        ..Config::linux()
    };
    assert_eq!(
        Settings::of(&nice).1[0].code,
        Code::CongestionControlNotInKernel
    );
}

#[test]
fn datagrams_of_every_size_arrive() {
    // Empty, below and above the MTU of Ethernet and of the loopback interface, the largest possible, and larger
    // ones, which are split.
    let sizes = [0u32, 1, 1472, 1473, 20_000, 65_507, 65_508, 140_000];
    let parts = [
        0, 1, 1472, 1473, 20_000, 65_507, 65_507, 1, 65_507, 65_507, 8_986,
    ];
    for ipv6 in [false, true] {
        let (script, log) = Script::new(move |_, event, actions| {
            if event == Event::Start {
                let mut open = Open::default();
                open.wire.ipv6 = ipv6;
                actions.push(Action::Datagrams(Conn(0), Box::new(open)));
                for end in [End::Client, End::Server] {
                    actions.extend(sizes.map(|n| Action::SendDatagram(Conn(0), end, n)));
                }
            }
        });
        let mut carrier = carrier(script);
        let total: u32 = sizes.iter().sum();
        run_until(&mut carrier, || {
            let got = log.sum(|e| match e {
                Event::Datagram(_, _, n, _) => u64::from(*n),
                _ => 0,
            });
            got == 2 * u64::from(total)
        });
        if ipv6 {
            continue;
        }
        let events = log.take();
        for (first, end) in [(11, End::Client), (0, End::Server)] {
            let got = events.iter().filter_map(|e| match e {
                Event::Datagram(_, at, n, number) if *at == end => Some((*n, *number)),
                _ => None,
            });
            // Both ends share one counter, and the client's were sent first. Small datagrams have no space for a
            // number.
            let numbered = (first..)
                .zip(parts)
                .map(|(i, n)| (n, (n >= 8).then_some(i)));
            assert!(got.eq(numbered), "{end:?}");
        }
        assert_eq!(carrier.report().counts.datagrams_refused, 0);
    }
}
