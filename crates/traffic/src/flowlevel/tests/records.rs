//! From records to connections and sources.

use swell_base::Code;

use super::*;

/// The record of a complete connection, cut in two by a time-out.
fn halves(flags: [Option<u8>; 2]) -> [Record; 2] {
    let mut a = file(1, 2, 3_000, 0, 100_000);
    a.forward.flags = flags[0];
    let mut b = a;
    b.forward.flags = flags[1];
    (b.forward.first, b.forward.last) = (SECOND, 2 * SECOND);
    [a, b]
}

#[test]
fn surgery_joins_what_time_outs_cut_and_only_that() {
    // SYN and ACK, then FIN and ACK; and records without flags.
    for flags in [[Some(0x12), Some(0x11)], [None, None]] {
        let model = configure(&halves(flags), options());
        assert_eq!((model.tcp.down.count(), model.totals.joined), (1, 1));
        assert_eq!(model.tcp.down.sum(), 200_000);
    }
    // Both have SYN and FIN: the ports were reused.
    let model = configure(&halves([Some(0x13); 2]), options());
    assert_eq!((model.tcp.down.count(), model.totals.joined), (2, 0));
    // The released program joins no records, and then neither half is well-formed.
    let mut c = Configurator::new(Options {
        profile: Profile::Harpoon,
        ..options()
    });
    halves([Some(0x12), Some(0x11)])
        .iter()
        .for_each(|r| c.add(r));
    assert!(matches!(
        c.finish("cut", Provenance::default()),
        Err(ConfigureError::Nothing { records: 2, .. })
    ));
}

#[test]
fn both_directions_make_one_connection_of_the_one_who_asked() {
    let down = file(80, 5, 40_000, SECOND + 1_000_000, 50_000);
    let mut up = down;
    (up.source, up.destination) = (down.destination, down.source);
    (up.source_port, up.destination_port) = (down.destination_port, down.source_port);
    (up.forward.first, up.forward.packets, up.forward.bytes) = (SECOND, 30, 30 * 52);
    // Thirty ACKs with timestamps: 360 bytes beyond the headers, and no file. The data segments have
    // timestamps, too, and the SYN/ACK has eight more bytes of options.
    let mut stamped = down;
    stamped.forward.bytes += 12 * down.forward.packets + 8;
    let acknowledged = configure(&[stamped, up], options());
    let tcp = &acknowledged.tcp;
    assert_eq!((tcp.up.sum(), tcp.down.sum()), (0, 50_000));
    assert_eq!((acknowledged.totals.small, tcp.up.count()), (1, 1));
    up.forward.bytes = 30 * 40 + 9_000;
    let mut biflow = down;
    biflow.reverse = Some(up.forward);
    // The server's direction as a separate record that begins after the client's record has ended.
    for records in [vec![down, up], vec![up, down], vec![biflow]] {
        let model = configure(&records, options());
        assert_eq!((model.tcp.up.sum(), model.tcp.down.sum()), (9_000, 50_000));
        assert_eq!(
            model.tcp.intervals.iter().map(|i| i.bytes).sum::<u64>(),
            59_000
        );
    }
}

#[test]
fn what_the_end_of_the_trace_cut_off_is_censored() {
    let whole = file(1, 2, 3_000, 0, 10_000);
    let mut cut = file(1, 3, 3_000, 0, 20_000);
    cut.forward.flags = Some(0x12);
    cut.forward.last = 10 * SECOND;
    let model = configure(&[whole, cut], options());
    assert_eq!(
        (model.tcp.down.complete.sum(), model.tcp.down.censored.sum()),
        (10_000, 20_000)
    );
    assert!(model.warnings.iter().any(|w| w.code == Code::Censored));
}

#[test]
fn udp_sources_are_told_apart() {
    let mut s = Stream::new(1, "udp");
    let mut records = Vec::new();
    for client in 0..50 {
        let mut exponential = 0.0;
        for i in 0..100 {
            exponential += s.exponential(3.0);
            records.push(datagrams(client, 53, exponential, 1, 0.0));
            records.push(datagrams(
                client,
                123,
                f64::from(i) * 4.0 + s.uniform() * 0.2,
                1,
                0.0,
            ));
        }
        records.push(datagrams(client, 5_004, 10.0, 1_001, 20.0));
        records.push(datagrams(client, 7_000, 10.0, 1, 0.0));
    }
    records.sort_by_key(|r| r.forward.last);
    let model = configure(&records, options());
    let of = |kind| model.udp.iter().find(|u| u.kind == kind).unwrap();
    assert_eq!(of(UdpKind::ConstantRate).sources, 50);
    assert_eq!(of(UdpKind::Periodic).sources, 50);
    // Two tests at three standard errors miss about one source in a hundred.
    let found = of(UdpKind::Exponential).sources;
    assert!((46..=50).contains(&found), "{found}");
    assert_eq!(of(UdpKind::Other).sources, 100 - found);
    let spacing = |kind| {
        let h = &of(kind).spacing;
        h.sum() as f64 / h.count() as f64 / 1e6
    };
    assert!((spacing(UdpKind::ConstantRate) - 0.02).abs() < 1e-6);
    assert!((spacing(UdpKind::Periodic) - 4.0).abs() < 0.01);
    // 5,000 exponential values: a standard error of 1.4 %.
    assert!((spacing(UdpKind::Exponential) - 3.0).abs() < 0.15);
    assert_eq!(of(UdpKind::ConstantRate).active[0], 50);
    assert_eq!(of(UdpKind::ConstantRate).active[1], 0);
    let payload: u64 = model.udp.iter().map(|u| u.bytes).sum();
    assert_eq!(
        payload,
        records.iter().map(|r| r.forward.packets * 200).sum::<u64>()
    );
}

/// A reply of a server.
fn reply(asks: &Record, packets: u64, after: f64, seconds: f64) -> Record {
    let mut reply = *asks;
    (reply.source, reply.destination) = (asks.destination, asks.source);
    (reply.source_port, reply.destination_port) = (asks.destination_port, asks.source_port);
    let first = asks.forward.first + (after * 1e9) as i64;
    reply.forward = Uniflow {
        packets,
        bytes: packets * 1_228,
        first,
        last: first + (seconds * 1e9) as i64,
        ..asks.forward
    };
    reply
}

/// A client of NFS binds a port that may be a server's (`bindresvport(3)`). Its answers are fragments, of which only
/// the first has ports.
#[test]
fn a_client_with_a_system_port_is_the_client() {
    for over in [1u64, 3_000] {
        let mut records = Vec::new();
        for client in 1..8 {
            let lasts = (over - 1) as f64 * 0.05;
            let mut asks = datagrams(client, 2_049, 0.01 * client as f64, over, lasts);
            asks.source_port = 800;
            let answers = reply(&asks, over, 0.01, lasts);
            let mut rest = reply(&asks, 5 * over, 0.011, lasts);
            (rest.source_port, rest.destination_port) = (0, 0);
            records.extend([asks, answers, rest]);
        }
        records.sort_by_key(|r| r.forward.last);
        let model = configure(&records, options());
        let [nfs] = &model.udp[..] else {
            panic!("{:?}", model.udp)
        };
        assert_eq!((nfs.sources, nfs.flows), (7, 7));
        assert_eq!(nfs.answers, 7 * 6 * over);
        assert_eq!(nfs.answer_bytes, 7 * 6 * over * 1_200);
    }
}

/// Records of both directions are one exchange, whichever ends first, and a record cut by the active time-out goes on.
#[test]
fn records_of_one_flow_are_joined() {
    let mut records = Vec::new();
    for (at, packets, lasts) in [(0.0, 1_501, 30.0), (30.02, 1_500, 29.98)] {
        let asks = datagrams(1, 5_004, at, packets, lasts);
        records.extend([asks, reply(&asks, packets, 0.005, lasts)]);
    }
    // A request that ends long before its answer does, and the next one after a silence.
    for at in [100.0, 160.0] {
        let asks = datagrams(2, 5_004, at, 1, 0.0);
        records.extend([asks, reply(&asks, 1_001, 0.005, 20.0)]);
    }
    records.sort_by_key(|r| r.forward.last);
    let model = configure(&records, options());
    let of = |kind| model.udp.iter().find(|u| u.kind == kind).unwrap();
    assert_eq!(of(UdpKind::ConstantRate).flows, 1);
    assert_eq!(of(UdpKind::ConstantRate).answers, 3_001);
    assert_eq!(of(UdpKind::OnOff).flows, 2);
    assert_eq!(of(UdpKind::OnOff).pauses.sum() / 1_000_000, 39);
    // The answer begins 5 ms after the request.
    assert_eq!(of(UdpKind::OnOff).spacing.sum(), 20_005);
}

#[test]
fn records_of_other_protocols_are_named() {
    let mut tunnel = datagrams(1, 0, 0.0, 900, 5.0);
    tunnel.protocol = 47;
    let mut c = Configurator::new(options());
    c.add(&tunnel);
    let error = c
        .finish("x", Provenance::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("900 packets are of IP protocol 47"),
        "{error}"
    );
    tunnel.protocol = 0;
    let mut unnamed = Configurator::new(options());
    unnamed.add(&tunnel);
    let said = unnamed.finish("x", Provenance::default()).unwrap_err();
    assert!(
        said.to_string().contains("needs a column `protocol`"),
        "{said}"
    );
}

/// Both ends of NTP's symmetric mode use the same port (RFC 5905 section 9.1).
#[test]
fn answers_from_the_same_port_are_no_source_of_their_own() {
    let mut records = Vec::new();
    for i in 0..20 {
        let mut asks = datagrams(1, 123, f64::from(i) * 64.0, 1, 0.0);
        asks.source_port = 123;
        let mut answers = asks;
        (answers.source, answers.destination) = (asks.destination, asks.source);
        records.extend([asks, answers]);
    }
    let model = configure(&records, options());
    let [periodic] = &model.udp[..] else {
        panic!("{:?}", model.udp)
    };
    assert_eq!(periodic.kind, UdpKind::Periodic);
    assert_eq!((periodic.sources, periodic.flows), (1, 20));
    assert_eq!((periodic.packets, periodic.answers), (40, 20));
}

/// A clock that was not set yet stamps its first record decades before the others.
#[test]
fn the_first_record_does_not_decide_what_time_it_is() {
    let now = 1_700_000_000 * SECOND;
    let wrong = file(1, 2, 3_000, 0, 9_000);
    for n in [1u16, 2, 100] {
        let others = (0..n).map(|i| file(1, 2, 3_001 + i, now + i64::from(i) * SECOND, 10_000));
        let records: Vec<Record> = std::iter::once(wrong).chain(others).collect();
        let model = configure(&records, options());
        let n = u64::from(n);
        assert_eq!((model.totals.records, model.totals.refused), (n + 1, 1));
        assert_eq!(model.tcp.down.sum(), n * 10_000);
    }
}

/// A record from a clock that is months ahead does not make the others late.
#[test]
fn a_record_months_ahead_does_not_move_the_clock() {
    let now = 1_700_000_000 * SECOND;
    let month = 30 * 86_400 * SECOND;
    let good: Vec<Record> = (0..200)
        .map(|i| file(1, 2, 3_000 + i as u16, now + i * SECOND, 10_000))
        .collect();
    let clean = configure(&good, options());
    for place in [0, 1, 30, 100, 199, 200] {
        let mut records = good.clone();
        records.insert(place, file(1, 2, 9_000, now + 2 * month, 70_000));
        let model = configure(&records, options());
        assert_eq!(model.totals.refused, 1, "at {place}");
        let told = model.warnings.iter().any(|w| w.code == Code::TimesAhead);
        assert!(told, "at {place}");
        assert_eq!(model.tcp, clean.tcp, "at {place}");
        assert_eq!(model.span, clean.span, "at {place}");
    }
}

/// After a pause of months all records are ahead, and they are taken.
#[test]
fn a_long_pause_is_no_wrong_clock() {
    let now = 1_700_000_000 * SECOND;
    let month = 30 * 86_400 * SECOND;
    let at = |i: i64| now + i * SECOND + i64::from(i >= 100) * 2 * month;
    let records: Vec<Record> = (0..200)
        .map(|i| file(1, 2, 3_000 + i as u16, at(i), 10_000))
        .collect();
    let model = configure(&records, options());
    assert_eq!(model.totals.refused, 0);
    assert_eq!(model.tcp.down.sum(), 200 * 10_000);
    // The last few may be all that there is after the pause.
    let short = configure(&records[50..110], options());
    assert_eq!(
        (short.totals.refused, short.tcp.down.sum()),
        (0, 60 * 10_000)
    );
}

/// What is taken grows with the records, up to the most intervals of a model. What is beyond is told.
#[test]
fn records_in_order_fill_all_intervals_of_a_model() {
    let options = Options {
        interval: Dur::from_secs(1),
        ..options()
    };
    let until = |seconds: i64| {
        let at = (0..seconds).step_by(1_000);
        let records: Vec<Record> = at
            .map(|s| file(1, 2, (s / 1_000) as u16 + 2_000, s * SECOND, 3_000))
            .collect();
        configure(&records, options)
    };
    let told = |model: &FlowModel| model.warnings.iter().any(|w| w.code == Code::OutOfReach);
    let whole = until(199_001);
    assert_eq!((whole.totals.refused, told(&whole)), (0, false));
    assert_eq!(whole.tcp.down.count(), 200);
    let longer = until(250_000);
    assert_eq!((longer.totals.refused, told(&longer)), (50, true));
}

fn tells(model: &FlowModel, code: Code) -> bool {
    model.warnings.iter().any(|w| w.code == code)
}

/// Records of connections that are cut in two, in other orders than that of time.
#[test]
fn records_that_are_not_in_order_are_told() {
    let mut records: Vec<Record> = (0..300i64)
        .flat_map(|i| {
            let mut halves = halves([Some(0x12), Some(0x11)]);
            for half in &mut halves {
                half.destination_port = 3_000 + i as u16;
                half.forward.first += 2 * i * SECOND;
                half.forward.last += 2 * i * SECOND;
            }
            halves
        })
        .collect();
    records.sort_by_key(|r| r.forward.last);
    let told = |all: &[Record]| tells(&configure(all, options()), Code::LateRecords);
    assert!(!told(&records));
    // Files in the wrong order.
    let mut swapped = records[300..].to_vec();
    swapped.extend(&records[..300]);
    assert!(told(&swapped));
    // One in six hundred may come late.
    let late = records.remove(0);
    records.push(late);
    assert!(!told(&records));
    records.reverse();
    assert!(told(&records));
    // Time-outs of half an hour: a record may begin long before those around it, but ends with them.
    let mut long: Vec<Record> = (0..300)
        .map(|i| file(1, 2, 3_000 + i as u16, 10 * i * SECOND, 10_000))
        .collect();
    for record in long.iter_mut().filter(|r| r.destination_port % 3 == 0) {
        record.forward.last += 1_800 * SECOND;
    }
    long.sort_by_key(|r| r.forward.last);
    assert!(!told(&long));
}

#[test]
fn records_that_are_there_twice_are_told() {
    let once: Vec<Record> = (0..100)
        .map(|i| file(1, 2, 3_000 + i as u16, i * SECOND, 10_000))
        .collect();
    let told = |records: &[Record]| tells(&configure(records, options()), Code::RepeatedRecords);
    assert!(!told(&once));
    // Another router sees the same 15 ms later.
    let later = |r: &Record| {
        let mut r = *r;
        r.forward.first += SECOND / 64;
        r.forward.last += SECOND / 64;
        r
    };
    let mut twice: Vec<Record> = once.iter().flat_map(|r| [*r, later(r)]).collect();
    assert!(told(&twice));
    // A quarter of them twice.
    twice.retain(|r| r.forward.first % SECOND == 0 || r.destination_port % 4 == 0);
    assert!(!told(&twice));
    let again: Vec<Record> = once.iter().chain(&once).copied().collect();
    assert!(told(&again));
    // One in a hundred packets of full size, twenty of each connection within a second: the next one is no copy.
    let packets = once.iter().flat_map(|r| (0..20).map(move |n| (r, n)));
    let sampled: Vec<Record> = packets
        .map(|(r, n)| {
            let mut packet = *r;
            packet.sampling = 100.0;
            packet.forward.packets = 1;
            packet.forward.bytes = 1_500;
            packet.forward.flags = Some(0x10);
            packet.forward.first += n * SECOND / 20;
            packet.forward.last = packet.forward.first;
            packet
        })
        .collect();
    assert!(!told(&sampled));
}

/// The directions of connections come from exporters whose clocks differ by two seconds.
#[test]
fn sides_from_clocks_that_differ_are_told() {
    let both = |apart: i64| -> Vec<Record> {
        let one = |i: i64| {
            let down = file(1, 2, 3_000 + i as u16, 5 * i * SECOND + apart, 10_000);
            let mut up = down;
            (up.source, up.destination) = (down.destination, down.source);
            (up.source_port, up.destination_port) = (down.destination_port, down.source_port);
            up.forward.first -= apart;
            up.forward.last -= apart;
            [up, down]
        };
        (0..100).flat_map(one).collect()
    };
    let told = |records: &[Record]| tells(&configure(records, options()), Code::SidesApart);
    assert!(!told(&both(SECOND / 50)));
    assert!(told(&both(2 * SECOND)));
    // All of one direction.
    let down: Vec<Record> = both(0).into_iter().skip(1).step_by(2).collect();
    assert!(!told(&down));
}

/// Greedy senders and sources of datagrams push, so that the opener of a flow is not who receives.
#[test]
fn clients_of_known_networks_are_clients() {
    let networks = [Network {
        host: 1 << 8,
        prefix: 120,
    }; 2];
    let known = Options {
        clients: Some(networks),
        ..options()
    };
    for protocol in [6, 17] {
        // From a port of a client to one of a server.
        let mut pushed = file(7, 0x1ff, 80, 0, 100_000);
        pushed.source_port = 40_000;
        pushed.forward.flags = (protocol == 6).then_some(0x1b);
        pushed.protocol = protocol;
        let sent = |options| {
            let model = configure(&[pushed], options);
            let of = |u: &crate::flowlevel::UdpSources| [u.bytes - u.answer_bytes, u.answer_bytes];
            let udp = model.udp.first().map_or([0; 2], of);
            [model.tcp.up.sum() + udp[0], model.tcp.down.sum() + udp[1]].map(|n| n > 0)
        };
        assert_eq!(sent(options()), [true, false], "{protocol}");
        assert_eq!(sent(known), [false, true], "{protocol}");
    }
}
