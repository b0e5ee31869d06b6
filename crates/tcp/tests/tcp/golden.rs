//! Golden values for results that neither theory nor a kernel can provide ([`crate::kernel`] compares the `linux`
//! profile with Linux). A change of a value changes simulations: record it in the change log, with the reason why it
//! is better.

use crate::net::{CLIENT, Net, SERVER, ms, serve};
use swell_tcp::{Algorithm, Config};

/// 5 MB over 20 Mbit/s with 40 ms RTT and 25 ms of buffer. Arrival of the last byte in nanoseconds, and the sender's
/// segments, retransmissions, recoveries, time-outs and probes.
#[test]
fn transfers_over_a_drop_tail_queue() {
    let linux = Config::linux();
    let classic = Config {
        send_window: None,
        initial_ssthresh: None,
        ..Config::classic()
    };
    let rows = [
        ("cubic", linux.clone()),
        (
            "newreno with sack",
            Config {
                algorithm: Algorithm::NewReno,
                ..linux.clone()
            },
        ),
        (
            "cubic by count",
            Config {
                rack_tlp: false,
                ..linux.clone()
            },
        ),
        (
            "cubic by count, no prr",
            Config {
                rack_tlp: false,
                prr: false,
                ..linux
            },
        ),
        ("classic reno", classic.clone()),
        (
            "classic newreno",
            Config {
                algorithm: Algorithm::NewReno,
                ..classic.clone()
            },
        ),
        (
            "classic newreno, delayed",
            Config {
                algorithm: Algorithm::NewReno,
                delayed_ack: true,
                ..classic
            },
        ),
    ];
    let mut got = String::new();
    for (name, cfg) in rows {
        let sack = cfg.sack;
        let mut net = Net::new(cfg, ms(20))
            .rate("20Mbit".parse().unwrap())
            .queue(ms(25))
            .app(serve(5_000_000));
        net.run(50_000);
        let s = net.ends[SERVER].stats();
        let lost = net.data(SERVER).iter().filter(|d| d.2).count() as u64;
        if sack && s.rtos == 0 {
            // Theory does say this: on a path without reordering, SACK causes no spurious retransmission.
            assert_eq!(s.retransmitted, lost, "{name}");
        }
        if sack {
            continue;
        }
        got += &format!(
            "{name}: {} {} {} {} {} {}\n",
            net.when_received(CLIENT, 5_000_000).unwrap().as_nanos(),
            s.segments,
            s.retransmitted,
            s.recoveries,
            s.rtos,
            s.probes
        );
    }
    assert_eq!(got, GOLDEN, "\n{got}");
}

const GOLDEN: &str = "\
classic reno: 3791782400 3638 212 1 1 0
classic newreno: 8758614400 3598 172 3 0 0
classic newreno, delayed: 5676782400 3518 92 2 0 0
";
