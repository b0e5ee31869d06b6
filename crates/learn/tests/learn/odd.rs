//! Traffic that ordinary traces lack: users that are never idle, hosts without options, clocks that were
//! set.

use crate::synth::{Exchanges, Host, Tap};
use swell_base::{Code, Dur, Severity, Stream, Time};
use swell_capture::{Packet, Tcp, Transport};
use swell_learn::{Learner, Options};
use swell_traffic::{Knobs, MAX_BYTES, Model, Network, Schedule};

fn learn(packets: impl IntoIterator<Item = Packet>) -> Model {
    let mut learner = Learner::new(Options::default());
    for p in packets {
        learner.push(&p);
    }
    let model = learner.finish();
    model.check().expect("a learnt model holds together");
    model
}

fn codes(m: &Model) -> Vec<&str> {
    m.warnings.iter().map(|w| w.code.as_str()).collect()
}

/// Energies of events per second by octave.
fn energies(at: impl Iterator<Item = Time>, seconds: usize) -> Vec<f64> {
    let mut bins = vec![0.0; seconds];
    for t in at {
        if let Some(bin) = bins.get_mut((t.as_nanos() / 1_000_000_000) as usize) {
            *bin += 1.0;
        }
    }
    swell_stats::energies(&bins, 3)
        .iter()
        .map(|o| o.y())
        .collect()
}

/// A resolver asks without a pause, alternately faster and slower. In a replay its queries have the same
/// energy, at the scale of minutes too.
#[test]
fn a_user_who_never_rests_keeps_the_shape_of_its_load() {
    const SECONDS: u64 = 3_000;
    let (client, server) = (
        Host::client(1, Dur::from_millis(2)),
        Host::server(1, Dur::from_millis(40)),
    );
    let mut tap = Tap::new();
    let mut rng = Stream::new(3, "queries");
    let (mut at, mut port, mut asked) = (0.0f64, 1024u16, Vec::new());
    while at < SECONDS as f64 {
        let when = Dur::from_secs_f64(at);
        asked.push(Time::ZERO + when);
        tap.datagram(when, client, server, port, 40);
        port = port.checked_add(1).unwrap_or(1024);
        // Three times as fast in one minute of eight.
        let rate = if ((at / 60.0) as u64).is_multiple_of(8) {
            9.0
        } else {
            3.0
        };
        at += rng.exponential(1.0 / rate);
    }
    assert!(asked.len() > 10_000);
    let m = learn(tap.packets());
    assert!(!codes(&m).contains(&"sessions-cut"));
    let knobs = Knobs {
        phase: Some(Dur::ZERO),
        ..Knobs::default()
    };
    let schedule =
        Schedule::draw(&m, &knobs, 1, Dur::from_secs(SECONDS), &Network::default()).unwrap();
    let played = schedule.starts.iter().flat_map(|start| {
        let mut when = start.at;
        let session = &m.sessions[start.session as usize];
        assert_eq!(session.groups.len(), 1);
        session.connections().map(move |c| {
            when += c.gap;
            when
        })
    });
    let [was, is] = [
        energies(asked.iter().copied(), SECONDS as usize),
        energies(played, SECONDS as usize),
    ];
    // The longest octaves have a handful of coefficients, which a shift alone changes.
    let octaves = was.len() - 2;
    let apart: Vec<f64> = was.iter().zip(&is).map(|(a, b)| (a - b).abs()).collect();
    let mean = apart[..octaves].iter().sum::<f64>() / octaves as f64;
    assert!(mean < 0.4, "octaves of seconds: {apart:.2?}");
}

/// A scan of more hosts than a model has room for: the model is one that can be read again.
#[test]
fn a_scan_becomes_a_model_that_can_be_read() {
    let mut tap = Tap::new();
    for i in 0..210_000u32 {
        let [high, middle, low, last] = i.to_be_bytes();
        let of = |host: Host, network: u8| host.in_network([network + high, middle, low]);
        let client = of(Host::client(last, Dur::from_millis(2)), 10);
        let server = of(Host::server(last, Dur::from_millis(40)), 198);
        tap.syn(Dur::from_millis(3) * u64::from(i), client, server, 40_000);
    }
    let m = learn(tap.packets());
    let mut file = Vec::new();
    m.write(&mut file, false).expect("a size that is read");
    assert_eq!(
        Model::from_slice(&file).expect("the same").sessions.len(),
        m.sessions.len()
    );
    assert!(file.len() < MAX_BYTES * 2 / 3, "{}", file.len());
    let stood = m.sessions.iter().map(|s| s.weight).sum::<f64>();
    assert!((stood - 210_000.0).abs() < 1.0, "{stood}");
    assert!(m.sessions.len() > 50_000);
}

/// A tunnel with a burst every second for half an hour, and as many requests of a QUIC connection. The bursts
/// stay where there is room for them, and what is merged has a warning.
#[test]
fn long_flows_say_what_they_lose() {
    let mut tap = Tap::new();
    let host = |i: u8| {
        (
            Host::client(i, Dur::from_millis(2)),
            Host::server(i, Dur::from_millis(40)),
        )
    };
    let ([client, server], [user, site]) = (host(1).into(), host(2).into());
    for i in 0..2_500u64 {
        let at = Dur::from_secs(i);
        for k in 0..20 {
            tap.datagram(at + Dur::from_millis(k), client, server, 5_000, 1_400);
            tap.give_port(4_500);
        }
        // A padded Initial first, then requests.
        tap.datagram(at, user, site, 6_000, if i == 0 { 1_212 } else { 312 });
        for k in 0..12 {
            tap.datagram(at + Dur::from_millis(50 + k), user, site, 6_000, 1_212);
            tap.turn_last();
        }
    }
    let packets = tap.packets();
    let with = |budget: usize| {
        let m = within(budget, &packets);
        let runs = m.sessions.iter().flat_map(|s| s.connections());
        let runs: usize = runs
            .map(|c| match &c.exchange {
                swell_traffic::Exchange::Datagrams(d) => d.runs.iter().map(Vec::len).sum(),
                _ => 0,
            })
            .sum();
        let of = |code: Code| m.warnings.iter().find(|w| w.code == code).cloned();
        (runs, of(Code::BurstsSpread), of(Code::TurnsMerged))
    };
    let (runs, none, whole) = with(Options::default().budget);
    assert!(runs >= 2_500 && none.is_none(), "{runs} {none:?}");
    assert_eq!(whole, None);
    let (few, spread, merged) = with(4_000);
    let merged = merged.expect("too many turns");
    assert!(
        merged.message.starts_with("1 connections (3")
            && merged
                .message
                .contains("larger by a factor of 2 in the mean"),
        "{merged:?}"
    );
    assert_eq!(merged.severity, Severity::Warning);
    let spread = spread.expect("too many bursts");
    assert!(
        few <= 1_024 && spread.severity == Severity::Warning,
        "{few}"
    );
    assert!(spread.message.starts_with("1 UDP flows ("), "{spread:?}");
}

/// The model of these packets within a budget.
fn within(budget: usize, packets: &[Packet]) -> Model {
    let mut learner = Learner::new(Options {
        budget,
        ..Options::default()
    });
    packets.iter().for_each(|p| learner.push(p));
    let m = learner.finish();
    m.check().expect("a learnt model holds together");
    m
}

/// Six clients, each with a request of its database every 40 ms, at once. While the model has room, all requests stay;
/// a small one has room for some of them, and keeps within it.
#[test]
fn long_connections_share_the_room_of_a_model() {
    const REQUESTS: usize = 3_000;
    let mut tap = Tap::new();
    for i in 1..=6u8 {
        let (client, server) = (
            Host::client(i, Dur::from_millis(2)),
            Host::server(1, Dur::from_millis(10)),
        );
        let rows = Exchanges {
            turns: vec![(200, Dur::from_millis(1), 6_000, Dur::from_millis(40)); REQUESTS],
            ..Exchanges::default()
        };
        tap.connection(Dur::from_millis(7 * u64::from(i)), client, server, &rows);
    }
    let packets = tap.packets();
    let with = |budget: usize| {
        let m = within(budget, &packets);
        let items: usize = m.sessions.iter().map(|s| s.items()).sum();
        assert!(items <= budget, "{items} {budget}");
        let merged = m.warnings.iter().find(|w| w.code == Code::TurnsMerged);
        let turns = |s: &swell_traffic::Session| s.items() > REQUESTS;
        let whole = m.sessions.iter().filter(|s| turns(s)).count();
        (m.sessions.len(), whole, merged.map(|w| w.severity))
    };
    assert_eq!(with(Options::default().budget), (6, 6, None));
    let (sessions, whole, merged) = with(20_000);
    assert!(
        sessions == 6 && (1..6).contains(&whole),
        "{sessions} {whole}"
    );
    assert_eq!(merged, Some(Severity::Note));
    let (fewer, _, _) = with(4_000);
    assert!((1..6).contains(&fewer), "{fewer}");
}

/// A host that offers no options is replayed without them, too: small segments, no SACK.
#[test]
fn hosts_without_options_stay_without() {
    let mut tap = Tap::new();
    let (client, server) = (
        Host::client(1, Dur::from_millis(2)),
        Host::server(1, Dur::from_millis(40)),
    );
    let page = Exchanges {
        turns: vec![(300, Dur::from_millis(15), 30_000, Dur::ZERO)],
        ..Exchanges::default()
    };
    tap.connection(Dur::ZERO, client, server, &page);
    let packets = tap.packets();
    let wire = |seen: &[Packet]| {
        let m = learn(seen.iter().copied());
        let c = m.sessions[0]
            .connections()
            .next()
            .expect("a connection")
            .wire;
        (c.sack, c.ends.map(|e| e.mss))
    };
    // Segments of 1460 bytes pass, although the handshake did not announce an MSS.
    assert_eq!(wire(&packets), (Some(false), [0, 1460]));
    let with = |change: &dyn Fn(&mut Packet, &mut Tcp)| -> Vec<Packet> {
        packets
            .iter()
            .map(|&p| {
                let Transport::Tcp(mut h) = p.transport else {
                    return p;
                };
                let mut p = p;
                if h.has(Tcp::SYN) {
                    change(&mut p, &mut h);
                }
                p.transport = Transport::Tcp(h);
                p
            })
            .collect()
    };
    let permit = |p: &mut Packet, h: &mut Tcp| {
        p.ip_len += 12;
        h.options.mss = Some(1460);
        h.options.sack_permitted = true;
    };
    assert_eq!(wire(&with(&permit)).0, Some(true));
    let one = |p: &mut Packet, h: &mut Tcp| {
        permit(p, h);
        h.options.sack_permitted = !h.has(Tcp::ACK);
    };
    assert_eq!(wire(&with(&one)).0, Some(false));
    // A capture that cuts options off says nothing about them.
    assert_eq!(wire(&with(&|p, _| p.ip_len += 20)).0, None);
}

/// Packets that are not replayed are reported: as a warning if there are many, as a note otherwise.
#[test]
fn what_is_in_no_flow_is_told() {
    let mut tap = Tap::new();
    let (client, server) = (
        Host::client(1, Dur::from_millis(2)),
        Host::server(1, Dur::from_millis(40)),
    );
    for i in 0..200u64 {
        tap.datagram(Dur::from_millis(10 * i), client, server, 5_000, 1_000);
    }
    let packets = tap.packets();
    let pinged = |pings: usize| {
        let ping = Packet {
            ip_len: 84,
            transport: Transport::Icmp,
            ..packets[0]
        };
        let m = learn(packets.iter().copied().chain(vec![ping; pings]));
        let w = m
            .warnings
            .iter()
            .find(|w| w.code == Code::Unmodelled)
            .cloned();
        w.map(|w| (w.severity, w.message.contains(&format!("{pings} ICMP"))))
    };
    assert_eq!(pinged(0), None);
    assert_eq!(pinged(5), Some((swell_base::Severity::Note, true)));
    assert_eq!(pinged(50), Some((swell_base::Severity::Warning, true)));
}

/// A silence counts as time without load or is removed: never both.
#[test]
fn a_gap_and_a_clock_that_was_set_are_told_apart() {
    let (client, server) = (
        Host::client(1, Dur::from_millis(2)),
        Host::server(1, Dur::from_millis(40)),
    );
    let mut tap = Tap::new();
    for i in 0..40u64 {
        tap.datagram(Dur::from_secs(i), client, server, 5_000, 1_000);
    }
    let packets = tap.packets();
    let later = |seconds: i64| {
        let shifted = packets.iter().enumerate().map(move |(i, &p)| Packet {
            time: p.time + if i < 20 { 0 } else { seconds * 1_000_000_000 },
            ..p
        });
        let m = learn(shifted);
        let told = |code| codes(&m).contains(&code);
        (
            told("gap-in-trace"),
            told("clock-set"),
            m.duration.as_secs_f64().round(),
        )
    };
    assert_eq!(later(0), (false, false, 39.0));
    assert_eq!(later(3_600), (true, false, 3_639.0));
    assert_eq!(later(400 * 86_400), (false, true, 639.0 - 1.0));
    // A single stamp in the year 2262 is no silence.
    let mut odd = packets.clone();
    odd[20].time = i64::MAX - 1;
    let m = learn(odd);
    assert!(codes(&m).contains(&"far-off-times"));
    assert!(!codes(&m).contains(&"gap-in-trace") && !codes(&m).contains(&"clock-set"));
}

/// A capture that continued in silence has a lower mean rate. A length shorter than the packets' time is
/// ignored.
#[test]
fn the_silent_end_of_a_capture_counts() {
    let (client, server) = (
        Host::client(1, Dur::from_millis(2)),
        Host::server(1, Dur::from_millis(40)),
    );
    let mut tap = Tap::new();
    for second in 0..=10 {
        tap.datagram(Dur::from_secs(second), client, server, 1024, 1_000);
    }
    let packets = tap.packets();
    let model = |length: Dur| {
        let mut learner = Learner::new(Options {
            length,
            ..Options::default()
        });
        packets.iter().for_each(|p| learner.push(p));
        learner.finish()
    };
    let [said, unsaid, shorter] = [40, 0, 5].map(|s| model(Dur::from_secs(s)));
    assert_eq!(said.duration, Dur::from_secs(40));
    assert_eq!(shorter, unsaid);
    let ratio = unsaid.rates()[0] / said.rates()[0];
    assert!((ratio / 4.0 - 1.0).abs() < 0.01, "{ratio}");
}

/// Programs that poll by the clock lose their common bursts, because each is played with times of its own.
#[test]
fn programs_that_poll_by_the_clock_are_told() {
    let told = |apart: u64| {
        let mut tap = Tap::new();
        for (i, poll) in (0..20_u8).flat_map(|i| (0..12_u64).map(move |k| (i, k))) {
            let (client, server) = (
                Host::client(i + 1, Dur::from_millis(2)),
                Host::server(1, Dur::from_millis(40)),
            );
            let what = Exchanges {
                turns: vec![(200, Dur::from_millis(5), 20_000, Dur::ZERO)],
                ..Exchanges::default()
            };
            let at = Dur::from_millis(500 + 10_000 * poll + apart * u64::from(i));
            tap.connection(at, client, server, &what);
        }
        codes(&learn(tap.packets())).contains(&"sessions-in-step")
    };
    assert!(told(0));
    assert!(!told(490));
}

/// A host records its own download from the middle: packets of 45 segments, of which nothing tells the size. In a
/// replay the profile's segments carry it.
#[test]
fn super_packets_are_told_and_not_played_whole() {
    let mut tap = Tap::new();
    let (client, server) = (
        Host::client(1, Dur::from_millis(2)),
        Host::server(1, Dur::from_millis(40)),
    );
    let page = Exchanges {
        turns: vec![(300, Dur::from_millis(15), 60_000, Dur::ZERO)],
        ..Exchanges::default()
    };
    tap.connection(Dur::ZERO, client, server, &page);
    let packets = tap.packets();
    let learnt = |sizes: &[u32]| {
        let Some(Transport::Tcp(first)) = packets
            .iter()
            .find_map(|p| (p.src > p.dst && p.ip_len > 1_000).then_some(p.transport))
        else {
            panic!("no data");
        };
        let down = packets.iter().find(|p| p.src > p.dst).expect("an answer");
        let mut seq = first.seq;
        let bulk = (0..).zip(sizes).map(|(i, &payload)| {
            let h = Tcp {
                seq,
                payload,
                ..first
            };
            seq = seq.wrapping_add(payload);
            Packet {
                time: down.time + i * 5_000_000,
                ip_len: payload + 40,
                transport: Transport::Tcp(h),
                ..*down
            }
        });
        let m = learn(bulk);
        let c = m.sessions[0].connections().next().expect("a connection");
        let told = m.warnings.iter().find(|w| w.code == Code::SuperPackets);
        let told = told.map(|w| (w.severity, w.message.contains("of 1 connections")));
        (c.wire.ends[1].mss, c.exchange.bytes()[1], told)
    };
    let bulk = [65_160; 40];
    let warning = |unknown| Some((swell_base::Severity::Warning, unknown));
    assert_eq!(learnt(&bulk), (0, 40 * 65_160, warning(true)));
    let mut single = bulk;
    single[3..9].fill(1_448);
    assert_eq!(learnt(&single).0, 1_448);
    assert_eq!(learnt(&single).2, warning(false));
    assert_eq!(learnt(&[8_948; 40]), (8_948, 40 * 8_948, None));
    assert_eq!(learnt(&[1_448; 40]), (1_448, 40 * 1_448, None));
}

/// A connection on ports that nobody knows goes on after 16 minutes of silence: its first packet then opens another,
/// with the same client. Whether other hosts send in the meantime makes no difference.
#[test]
fn a_time_out_does_not_depend_on_other_traffic() {
    let (client, server) = (
        Host::client(1, Dur::from_millis(2)),
        Host::server(1, Dur::from_millis(40)),
    );
    let long = Exchanges {
        turns: vec![
            (300, Dur::from_millis(15), 5_000, Dur::from_secs(960)),
            (400, Dur::from_millis(15), 6_000, Dur::ZERO),
        ],
        ..Exchanges::default()
    };
    let learnt = |other: u64| {
        let mut tap = Tap::new();
        tap.connection(Dur::ZERO, client, server, &long);
        let far = Host::server(9, Dur::from_millis(9));
        for i in 0..other {
            let neighbour = Host::client(2, Dur::from_millis(2));
            tap.datagram(Dur::from_secs(2 * i), neighbour, far, 5_000, 100);
        }
        let mut packets = tap.packets();
        for p in &mut packets {
            if let Transport::Tcp(h) = &mut p.transport {
                for port in [&mut h.src_port, &mut h.dst_port] {
                    *port = if *port == 80 { 20_123 } else { *port };
                }
            }
        }
        let m = learn(packets);
        let tcp = |s: &&swell_traffic::Session| !m.classes[s.class as usize].udp;
        let own = m.sessions.iter().filter(tcp);
        own.flat_map(|s| s.connections())
            .map(|c| c.exchange.bytes())
            .collect::<Vec<_>>()
    };
    let want = [[300, 5_000], [400, 6_000]];
    assert_eq!(learnt(0), want);
    assert_eq!(learnt(600), want);
}

/// Learns two pages of a connection, three seconds apart. Between them comes a packet with these flags. `numbers` changes
/// the sequence numbers after it. Returns the sizes learnt, and the oddities.
fn after_reset(
    numbers: impl Fn(u32) -> u32,
    flags: u8,
) -> (Vec<[u64; 2]>, Option<swell_base::Warning>) {
    let (client, server) = (
        Host::client(1, Dur::from_millis(2)),
        Host::server(1, Dur::from_millis(40)),
    );
    let pages = Exchanges {
        turns: vec![
            (300, Dur::from_millis(15), 5_000, Dur::from_secs(3)),
            (400, Dur::from_millis(15), 60_000, Dur::ZERO),
        ],
        ..Exchanges::default()
    };
    let mut tap = Tap::new();
    tap.connection(Dur::ZERO, client, server, &pages);
    let mut packets = tap.packets();
    let (start, second) = (packets[0].time, 1_000_000_000);
    let last = packets.iter().rposition(|p| p.time < start + 2 * second);
    let mut rst = packets[last.expect("a first page")];
    for p in packets.iter_mut().filter(|p| p.time > rst.time) {
        if let Transport::Tcp(h) = &mut p.transport {
            (h.seq, h.ack) = (numbers(h.seq), numbers(h.ack));
        }
    }
    if let Transport::Tcp(h) = &mut rst.transport {
        (h.flags, h.payload) = (flags, 0);
    }
    rst.time += 1_000_000;
    packets.push(rst);
    packets.sort_by_key(|p| p.time);
    let m = learn(packets);
    let sizes = m.sessions.iter().flat_map(|s| s.connections());
    let sizes = sizes.map(|c| c.exchange.bytes()).collect();
    let oddities = m.warnings.iter().find(|w| w.code == Code::Oddities);
    (sizes, oddities.cloned())
}

/// Data after the end of a connection are another one, or show that it was no end. What comes again is neither.
#[test]
fn data_after_an_end_are_kept() {
    let whole = vec![[700, 65_000]];
    assert_eq!(after_reset(|n| n, Tcp::ACK), (whole, None));
    let two = vec![[300, 5_000], [400, 60_000]];
    assert_eq!(after_reset(|n| n, Tcp::RST).0, two);
    // Another connection on the same ports, without its SYN.
    for shift in [1 << 30, 3 << 30] {
        let (sizes, odd) = after_reset(|n| n.wrapping_add(shift), Tcp::RST);
        assert_eq!((sizes, odd), (two.clone(), None));
    }
    let (sizes, odd) = after_reset(|n| n.wrapping_sub(100_000), Tcp::RST);
    assert_eq!(sizes, two[..1]);
    let odd = odd.expect("a warning");
    assert_eq!(odd.severity, swell_base::Severity::Warning);
    assert!(
        odd.message.contains("after the end of their connection"),
        "{}",
        odd.message
    );
}
