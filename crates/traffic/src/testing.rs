//! Models for this crate's tests.

use proptest::collection::vec;
use proptest::prelude::*;
use swell_base::{Dur, Rate, Severity, Warning};

use crate::*;

/// A session of one connection with one turn.
pub fn session(class: u32, start: Dur, response: u64) -> Session {
    Session {
        class,
        start,
        weight: 1.0,
        client: 0,
        outside: false,
        lasted: None,
        groups: vec![Group {
            think: Dur::ZERO,
            connections: vec![Connection {
                gap: Dur::ZERO,
                server: 0,
                exchange: Exchange::Sequential(vec![Turn {
                    request: 300,
                    server_think: Dur::from_millis(20),
                    response,
                    client_think: Dur::ZERO,
                }]),
                client_window: 65_535,
                server_window: 65_535,
                wire: Wire::default(),
                writes: Default::default(),
                waits: Vec::new(),
                left_censored: false,
                right_censored: false,
                overlap: None,
            }],
        }],
    }
}

pub const PATH: Path = Path {
    rtt: Dur::from_millis(10),
    up: None,
    down: None,
    loss_up: 0.0,
    loss_down: 0.0,
    rtt_samples: 9,
    capacity_samples: 0,
    loss_samples: 0,
};

/// A model with these sessions, two TCP classes, one UDP class, and one path per side.
pub fn model(duration: Dur, sessions: Vec<Session>) -> Model {
    Model {
        name: "test".into(),
        provenance: Provenance::default(),
        warnings: Vec::new(),
        duration,
        parameters: Parameters {
            group_timeout: Dur::from_secs(30),
            session_timeout: Dur::from_secs(300),
            quiet: Dur::from_millis(500),
        },
        totals: Totals::default(),
        load: Load::default(),
        classes: [("http", false), ("https", false), ("dns", true)]
            .map(|(name, udp)| Class {
                name: name.into(),
                udp,
            })
            .into(),
        client_paths: vec![PATH],
        server_paths: vec![PATH],
        sessions,
    }
}

fn micros() -> impl Strategy<Value = Dur> {
    prop_oneof![Just(0), 0..1_000u64, 0..100_000_000_000u64].prop_map(Dur::from_micros)
}

fn tcp() -> impl Strategy<Value = Exchange> {
    let turn = (any::<u64>(), micros(), 0..1u64 << 40, micros()).prop_map(
        |(request, server_think, response, client_think)| Turn {
            request,
            server_think,
            response,
            client_think,
        },
    );
    let chain = || {
        vec((micros(), 0..1u64 << 50), 0..4).prop_map(|units| {
            let unit = |(pause, bytes)| Unit {
                pause,
                bytes,
                after: 0,
            };
            units.into_iter().map(unit).collect()
        })
    };
    prop_oneof![
        vec(turn, 0..5).prop_map(Exchange::Sequential),
        (chain(), chain()).prop_map(|(up, down)| Exchange::Concurrent { up, down }),
        (vec(micros(), 0..4), any::<bool>())
            .prop_map(|(retries, refused)| Exchange::Attempt { retries, refused }),
    ]
}

fn run() -> impl Strategy<Value = Run> {
    (
        micros(),
        micros(),
        1..2_000u32,
        [0..65_508u32, 0..65_508],
        0.0..=1.0f64,
    )
        .prop_map(|(pause, span, packets, [a, b], share)| {
            let (least, most) = (a.min(b), a.max(b));
            let n = u64::from(packets);
            Run {
                pause,
                span: if packets == 1 { Dur::ZERO } else { span },
                packets,
                bytes: n * u64::from(least) + (share * (n * u64::from(most - least)) as f64) as u64,
                sizes: [least, most],
            }
        })
}

fn udp() -> impl Strategy<Value = Exchange> {
    let whole = vec((micros(), any::<bool>(), 0..65_508u32), 1..6).prop_map(|packets| Datagrams {
        packets,
        ..Datagrams::default()
    });
    let long = [vec(run(), 1..4), vec(run(), 0..4)].prop_map(|runs| Datagrams {
        runs,
        ..Datagrams::default()
    });
    prop_oneof![whole, long].prop_map(Exchange::Datagrams)
}

fn path() -> impl Strategy<Value = Path> {
    let rate = || proptest::option::of((1..1u64 << 40).prop_map(Rate::from_bps));
    (
        micros(),
        rate(),
        rate(),
        0.0..=1.0f64,
        0.0..=1.0f64,
        any::<[u32; 3]>(),
    )
        .prop_map(|(rtt, up, down, loss_up, loss_down, n)| Path {
            rtt,
            up,
            down,
            loss_up,
            loss_down,
            rtt_samples: n[0],
            capacity_samples: n[1],
            loss_samples: n[2],
        })
}

fn wire() -> impl Strategy<Value = Wire> {
    let end = any::<(u16, Option<u8>, u8)>().prop_map(|(mss, quick_acks, ack_every)| WireEnd {
        mss,
        quick_acks,
        ack_every,
    });
    let options = any::<[Option<bool>; 2]>();
    (any::<bool>(), options, [end.clone(), end]).prop_map(|(ipv6, [timestamps, sack], ends)| Wire {
        ipv6,
        timestamps,
        sack,
        ends,
    })
}

fn writes(udp_class: bool) -> impl Strategy<Value = Vec<Write>> + Clone {
    let write = (1..1u64 << 40, 0..1_000_000u64).prop_map(|(after, us)| Write {
        after,
        gap: Dur::from_micros(us),
    });
    vec(write, if udp_class { 0..1 } else { 0..4 })
}

/// Waits of some turns, by the bits of a number.
fn waits(exchange: &Exchange, bits: u64) -> Vec<Wait> {
    let Exchange::Sequential(turns) = exchange else {
        return Vec::new();
    };
    let all =
        (0..turns.len().max(1) as u32).filter(|&turn| turn == 0 || bits >> (turn % 64) & 1 == 1);
    let wait = |turn| Wait {
        turn,
        page: turn / 2 + (bits % 5) as u32,
        pause: Dur::from_micros(bits % 1_000_000 + u64::from(turn)),
    };
    match bits % 3 {
        0 => Vec::new(),
        _ => all.map(wait).collect(),
    }
}

fn connection(udp_class: bool) -> impl Strategy<Value = Connection> {
    let exchange = if udp_class {
        udp().boxed()
    } else {
        tcp().boxed()
    };
    (
        micros(),
        0..3u32,
        exchange,
        any::<[u32; 2]>(),
        any::<[bool; 2]>(),
        wire(),
        [writes(udp_class), writes(udp_class)],
        (any::<Option<[u32; 2]>>(), any::<u64>()),
    )
        .prop_map(
            move |(gap, server, exchange, window, censored, wire, writes, (overlap, bits))| {
                Connection {
                    waits: if udp_class {
                        Vec::new()
                    } else {
                        waits(&exchange, bits)
                    },
                    overlap: overlap.map(|o| {
                        let units = exchange.units();
                        [0, 1].map(|i| o[i].checked_rem(units[i] as u32 + 1).unwrap_or(0))
                    }),
                    gap,
                    server,
                    exchange,
                    client_window: window[0],
                    server_window: window[1],
                    wire,
                    writes,
                    left_censored: censored[0],
                    right_censored: censored[1],
                }
            },
        )
}

fn any_session() -> impl Strategy<Value = Session> {
    (0..3u32).prop_flat_map(|class| {
        let group = (micros(), vec(connection(class == 2), 1..3))
            .prop_map(|(think, connections)| Group { think, connections });
        (
            micros(),
            0..2u32,
            prop_oneof![Just(1.0), 0.001..1e6f64],
            any::<bool>(),
            vec(group, 1..3),
        )
            .prop_map(move |(start, client, weight, outside, groups)| Session {
                class,
                start,
                weight,
                client,
                outside,
                lasted: None,
                groups,
            })
    })
}

/// Any consistent model, in whole microseconds.
pub fn any_model() -> impl Strategy<Value = Model> {
    (
        vec(any_session(), 0..6),
        vec(path(), 2),
        vec(path(), 3),
        vec(("\\PC*", any::<bool>()), 0..3),
        (vec(any::<[u64; 2]>(), 0..5), vec(-1e9..1e9f64, 0..5)),
        ("\\PC*", any::<[u64; 9]>()),
    )
        .prop_map(
            |(mut sessions, clients, servers, warnings, load, (name, t))| {
                sessions.sort_by_key(|s| s.start);
                let last = sessions.last().map_or(Dur::ZERO, |s| s.start);
                Model {
                    provenance: Provenance {
                        made_by: name.clone(),
                        sources: vec![name.clone()],
                        digests: vec!["ab".into()],
                        note: name.clone(),
                        thinning: warnings.first().map(|w| Thinning {
                            kept: 1,
                            seen: t[0],
                            w1_connections: 0.125,
                            w1_bytes: f64::from(u8::from(w.1)),
                        }),
                        private: warnings.get(1).map(|w| if w.1 { 0.5 } else { 3.0 }),
                        certificate: warnings.first().map(|w| Certificate {
                            made_by: name.clone(),
                            seeds: t[0],
                            met: 1,
                            rows: 2,
                            energy: [0.5, f64::from(u8::from(w.1))],
                            halves: [Some(0.25), None],
                            w1: vec![(name.clone(), 0.25)],
                            counts: vec![(name.clone(), 1.0)],
                        }),
                        target: warnings.first().map(|_| [1e6, 2.5]),
                        played: warnings.first().map(|w| Played {
                            made_by: name.clone(),
                            seeds: t[0],
                            rates: [0.5, 3e6],
                            energy_slope: w.1.then_some(-0.25),
                        }),
                    },
                    name,
                    warnings: warnings
                        .into_iter()
                        .map(|(code, severe)| Warning {
                            message: format!("{code}\n\"quoted\""),
                            code: code.into(),
                            severity: if severe {
                                Severity::Warning
                            } else {
                                Severity::Note
                            },
                        })
                        .collect(),
                    totals: Totals {
                        packets: [t[0], t[1]],
                        bytes: [t[2], t[3]],
                        tcp_connections: t[4],
                        tcp_handshakes: t[5],
                        udp_flows: t[6],
                        unmodelled_packets: t[7],
                        unmodelled_bytes: t[8],
                    },
                    load: Load {
                        bin: Dur::from_millis(100),
                        bytes: [0, 1].map(|i| load.0.iter().map(|b| b[i]).collect()),
                        filled: [t[0] % 2 == 0, t[1] % 2 == 0],
                        lsd_bin: Dur::from_millis(1),
                        lsd: [load.1.clone(), load.1],
                    },
                    client_paths: clients,
                    server_paths: servers,
                    ..model(last + Dur::from_micros(1), sessions)
                }
            },
        )
}
