//! What exporters and the network do over time: messages that come twice, restarts, options that come late, and uptimes.

use super::messages::{PLAIN, Run, ipfix, ipfix_options, plain, set, template, v9};
use swell_capture::flow::{FlowReader, FlowSkip};

/// Copies of messages, at once and after others, count once.
#[test]
fn a_message_that_comes_twice_counts_once() {
    let mut run = Run::new();
    let first = ipfix(
        0,
        1,
        &[set(2, &template(256, &PLAIN)), set(256, &plain(3, 180))],
    );
    let later: Vec<Vec<u8>> = (1..60)
        .map(|i| ipfix(i, 1, &[set(256, &plain(3, 180))]))
        .collect();
    run.send(&first).unwrap();
    run.send(&first).unwrap();
    for message in &later {
        run.send(message).unwrap();
    }
    run.send(&first).unwrap();
    run.send(&later[40]).unwrap();
    // Another domain may send the same.
    run.send(&ipfix(
        0,
        2,
        &[set(2, &template(256, &PLAIN)), set(256, &plain(3, 180))],
    ))
    .unwrap();
    assert_eq!(run.records.len(), 61);
    assert_eq!(run.skipped(FlowSkip::Repeated), 3);
    let counts = run.process.counts();
    assert_eq!((counts.out_of_order, counts.gaps), (0, 0));
}

/// After a restart, sequence numbers begin anew. If the exporter had sent few messages before, that looks like late ones
/// first.
#[test]
fn an_exporter_that_restarts_early_is_followed() {
    let mut run = Run::new();
    let message = |seconds, n| v9(0, seconds, n, &[set(0, &template(256, &PLAIN))]);
    for n in 0..50 {
        run.send(&message(1_000, n)).unwrap();
    }
    for n in 0..100 {
        run.send(&message(2_000, n)).unwrap();
    }
    assert_eq!(run.process.counts().out_of_order, 8);
    assert_eq!(run.process.counts().gaps, 0);
}

/// A path that delays many messages is no restart: messages that follow them are no gap. One that is lost later is.
#[test]
fn messages_that_return_from_late_ones_are_no_gap() {
    let mut run = Run::new();
    let order = (0..20).chain(40..60).chain(20..40).chain(60..70);
    for n in order {
        let message = v9(0, 1_000, n, &[set(0, &template(256, &PLAIN))]);
        run.send(&message).unwrap();
    }
    let counts = run.process.counts();
    assert_eq!((counts.gaps, counts.missing), (1, 20));
    assert_eq!(counts.out_of_order, 8);
    for n in (71..80).chain([90]) {
        let message = v9(0, 1_000, n, &[set(0, &template(256, &PLAIN))]);
        run.send(&message).unwrap();
    }
    let later = run.process.counts();
    assert_eq!((later.gaps, later.missing), (3, 31));
}

/// Datagrams of sFlow in a file tell when they were sent by the uptime of their agent.
#[test]
fn sflow_without_arrival_times_is_apart_as_its_uptimes() {
    let datagram = |agent: u8, sequence: u32, uptime: u32| {
        let mut out = Vec::new();
        for word in [5, 1, 0x0a00_0000 | u32::from(agent), 0, sequence, uptime, 1] {
            out.extend(u32::to_be_bytes(word));
        }
        // A flow sample with one element, a sampled IPv4 packet.
        let mut sample = Vec::new();
        for word in [7, 1, 100, 700, 0, 1, 2, 1, 3, 32] {
            sample.extend(u32::to_be_bytes(word));
        }
        for word in [100, 17, 0x0a00_0001, 0x0a00_0002, 4_000, 53, 0, 0] {
            sample.extend(u32::to_be_bytes(word));
        }
        out.extend(1u32.to_be_bytes());
        out.extend((sample.len() as u32).to_be_bytes());
        out.extend(sample);
        out
    };
    let file = [
        datagram(1, 0, 50_000),
        datagram(1, 1, 50_700),
        // Another agent, and the first one again, which restarts.
        datagram(2, 0, 9_000_000),
        datagram(1, 2, 52_000),
        datagram(2, 1, 9_001_000),
        datagram(1, 0, 100),
        datagram(1, 1, 1_100),
    ]
    .concat();
    let mut reader = FlowReader::new(&file[..]).unwrap();
    let mut millis = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        millis.push(record.first / 1_000_000);
    }
    assert_eq!(millis, [0, 700, 700, 2_000, 1_700, 2_000, 3_000]);
}

/// Exporters repeat their options every some minutes: data before the first of them are told.
#[test]
fn data_before_the_options_of_a_domain_count_as_not_sampled_and_are_told() {
    for (interval, told) in [(50, 3), (1, 0)] {
        let mut run = Run::new();
        let data = [plain(1, 40), plain(1, 40), plain(1, 40)].concat();
        let options = |first: u32| {
            // selectorId, then samplingPacketInterval 1 and samplingPacketSpace.
            let space: u32 = interval - 1;
            [first, 1, space].map(u32::to_be_bytes).concat()
        };
        run.send(&ipfix(
            0,
            1,
            &[
                set(2, &template(256, &PLAIN)),
                set(256, &data),
                set(3, &ipfix_options(257, &[(302, 4), (305, 4), (306, 4)])),
                set(257, &options(1)),
                set(256, &data),
                set(257, &options(1)),
            ],
        ))
        .unwrap();
        let counts = run.process.counts();
        assert_eq!((counts.records, counts.before_sampling), (6, told));
        assert_eq!(counts.unknown_sampler, 0);
    }
}

/// Cisco's exporters name sampler 0 for records of interfaces that are not sampled: their sampling is known.
#[test]
fn records_of_interfaces_without_a_sampler_are_not_early() {
    let mut fields = PLAIN.to_vec();
    fields.push((302, 4));
    let data = [plain(1, 40), vec![0; 4]].concat();
    let mut run = Run::new();
    let sets = [
        set(2, &template(256, &fields)),
        set(256, &data.repeat(3)),
        set(3, &ipfix_options(257, &[(302, 4), (305, 4), (306, 4)])),
        set(257, &[1u32, 1, 49].map(u32::to_be_bytes).concat()),
        set(256, &data),
    ];
    run.send(&ipfix(0, 1, &sets)).unwrap();
    let counts = run.process.counts();
    assert_eq!((counts.records, counts.before_sampling), (4, 0));
    assert_eq!(counts.unknown_sampler, 0);
}
