//! Messages built byte by byte: templates that are late, missing, withdrawn or invalid; sampling information from all
//! sources; clocks.

use std::net::{IpAddr, Ipv4Addr};

use swell_capture::flow::{
    CollectingProcess, FlowRecord, FlowSkip, Layer, Limits, Refused, SamplingSource, Times,
};

const EXPORTER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// A set: number, length, content.
pub fn set(id: u16, body: &[u8]) -> Vec<u8> {
    let mut out = id.to_be_bytes().to_vec();
    out.extend((body.len() as u16 + 4).to_be_bytes());
    out.extend(body);
    out
}

/// A template of fields without enterprise numbers.
pub fn template(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let mut out = id.to_be_bytes().to_vec();
    out.extend((fields.len() as u16).to_be_bytes());
    out.extend(specifiers(fields));
    out
}

fn specifiers(fields: &[(u16, u16)]) -> Vec<u8> {
    let both = fields.iter().flat_map(|(id, len)| [*id, *len]);
    both.flat_map(u16::to_be_bytes).collect()
}

/// An IPFIX message exported at second 1000.
pub fn ipfix(sequence: u32, domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let body = sets.concat();
    let mut out = vec![0, 10];
    out.extend((body.len() as u16 + 16).to_be_bytes());
    for word in [1000, sequence, domain] {
        out.extend(u32::to_be_bytes(word));
    }
    out.extend(body);
    out
}

/// A NetFlow 9 message.
pub fn v9(uptime: u32, seconds: u32, sequence: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![0, 9, 0, sets.len() as u8];
    for word in [uptime, seconds, sequence, 7] {
        out.extend(u32::to_be_bytes(word));
    }
    out.extend(sets.concat());
    out
}

/// Source, destination, packets and bytes, each in four bytes.
pub const PLAIN: [(u16, u16); 4] = [(8, 4), (12, 4), (2, 4), (1, 4)];

pub fn plain(packets: u32, bytes: u32) -> Vec<u8> {
    let mut out = vec![10, 0, 0, 1, 10, 0, 0, 2];
    out.extend(packets.to_be_bytes());
    out.extend(bytes.to_be_bytes());
    out
}

pub struct Run {
    pub process: CollectingProcess,
    pub records: Vec<FlowRecord>,
}

impl Run {
    pub fn new() -> Run {
        Run::limited(Limits::default())
    }

    fn limited(limits: Limits) -> Run {
        Run {
            process: CollectingProcess::with_limits(limits),
            records: Vec::new(),
        }
    }

    pub fn send(&mut self, message: &[u8]) -> Result<(), Refused> {
        self.process
            .message(EXPORTER, 5, message, &mut self.records)
    }

    pub fn skipped(&self, reason: FlowSkip) -> u64 {
        self.process.counts().skipped(reason).times
    }
}

#[test]
fn data_before_its_template_waits_and_is_decoded_when_it_comes() {
    let mut run = Run::new();
    run.send(&ipfix(0, 1, &[set(256, &plain(3, 180))])).unwrap();
    assert_eq!(run.records, []);
    // Another domain's template does not apply.
    let other = ipfix(0, 2, &[set(2, &template(256, &PLAIN))]);
    run.send(&other).unwrap();
    assert_eq!(run.records, []);
    run.send(&ipfix(1, 1, &[set(2, &template(256, &PLAIN))]))
        .unwrap();
    assert_eq!((run.records[0].packets, run.records[0].bytes), (3, 180));
    let counts = run.process.counts();
    assert_eq!((counts.sets_late, counts.templates), (1, 2));
    run.process.finish();
    assert_eq!(run.skipped(FlowSkip::NoTemplate), 0);
}

#[test]
fn what_waits_is_bounded_and_what_never_gets_its_template_is_counted() {
    let mut run = Run::limited(Limits {
        waiting_sets: 2,
        waiting_bytes: 40,
        ..Limits::default()
    });
    let data = |n: u16| ipfix(0, 1, &[set(256 + n, &plain(1, 40))]);
    run.send(&data(0)).unwrap();
    run.send(&data(1)).unwrap();
    // The oldest makes room.
    run.send(&data(2)).unwrap();
    assert_eq!(run.skipped(FlowSkip::BufferLimit), 1);
    let templates: Vec<Vec<u8>> = (0..2).map(|n| set(2, &template(256 + n, &PLAIN))).collect();
    run.send(&ipfix(0, 1, &templates)).unwrap();
    assert_eq!((run.records.len(), run.process.counts().sets_late), (1, 1));
    run.send(&data(3)).unwrap();
    run.send(&data(4)).unwrap();
    assert_eq!(run.skipped(FlowSkip::BufferLimit), 2);
    run.process.finish();
    assert_eq!(run.skipped(FlowSkip::NoTemplate), 2);
    // More than there is room for.
    let long = ipfix(0, 1, &[set(300, &[0; 41])]);
    assert_eq!(run.send(&long).unwrap_err().reason, FlowSkip::BufferLimit);
}

#[test]
fn a_withdrawn_template_is_gone_and_a_changed_one_counts_from_then_on() {
    let mut run = Run::new();
    let sets = [set(2, &template(256, &PLAIN)), set(256, &plain(1, 40))];
    run.send(&ipfix(0, 1, &sets)).unwrap();
    let swapped = [(8, 4), (12, 4), (1, 4), (2, 4)];
    let changed = [set(2, &template(256, &swapped)), set(256, &plain(40, 1))];
    run.send(&ipfix(1, 1, &changed)).unwrap();
    assert_eq!(run.records[0].packets, run.records[1].packets);
    run.send(&ipfix(2, 1, &[set(2, &[1, 0, 0, 0])])).unwrap();
    run.send(&ipfix(2, 1, &[set(256, &plain(1, 40))])).unwrap();
    run.process.finish();
    assert_eq!(run.records.len(), 2);
    let counts = run.process.counts();
    assert_eq!((counts.templates, counts.templates_withdrawn), (2, 1));
    assert_eq!(run.skipped(FlowSkip::NoTemplate), 1);
}

#[test]
fn a_flood_of_templates_stays_within_the_limits() {
    let limits = Limits {
        templates: 1000,
        ..Limits::default()
    };
    let mut run = Run::limited(limits);
    for domain in 0..20 {
        for first in (256..1256).step_by(100) {
            let many: Vec<u8> = (first..first + 100)
                .flat_map(|id| template(id, &PLAIN))
                .collect();
            let _ = run.send(&ipfix(0, domain, &[set(2, &many)]));
        }
    }
    assert_eq!(run.process.counts().templates, 1000);
    assert_eq!(run.skipped(FlowSkip::TemplateLimit), 19_000);
    // The earlier templates still work.
    run.send(&ipfix(0, 0, &[set(256, &plain(1, 40))])).unwrap();
    assert_eq!(run.records.len(), 1);
}

/// A million templates of five fields each (four, plus one that is charged for the template itself), from a thousand
/// domains.
#[test]
fn a_million_templates_are_refused_beyond_the_usual_limits() {
    let limits = Limits::default();
    let mut run = Run::new();
    for domain in 0..1_000 {
        for first in (256..1256).step_by(100) {
            let many: Vec<u8> = (first..first + 100)
                .flat_map(|id| template(id, &PLAIN))
                .collect();
            let _ = run.send(&ipfix(0, domain, &[set(2, &many)]));
        }
    }
    let kept = run.process.counts().templates;
    assert!(kept <= limits.templates as u64, "{kept}");
    assert!(
        kept * (PLAIN.len() as u64 + 1) <= limits.fields as u64,
        "{kept}"
    );
    assert_eq!(kept + run.skipped(FlowSkip::TemplateLimit), 1_000_000);
    run.send(&ipfix(0, 0, &[set(256, &plain(1, 40))])).unwrap();
    assert_eq!(run.records.len(), 1);
}

#[test]
fn domains_beyond_the_limit_are_refused() {
    let mut run = Run::limited(Limits {
        domains: 2,
        ..Limits::default()
    });
    for domain in 0..5 {
        let _ = run.send(&ipfix(0, domain, &[set(2, &template(256, &PLAIN))]));
    }
    assert_eq!(run.skipped(FlowSkip::DomainLimit), 3);
    for domain in 0..5 {
        let _ = run.send(&ipfix(1, domain, &[set(256, &plain(1, 40))]));
    }
    let kept: Vec<_> = run.records.iter().map(|r| r.exporter).collect();
    assert_eq!(kept, [0, 1]);
}

#[test]
fn lying_lengths_are_named_and_what_is_before_them_is_kept() {
    let good = [set(2, &template(256, &PLAIN)), set(256, &plain(1, 40))];
    let mut long = set(256, &plain(2, 80));
    long[3] = 200;
    let mut run = Run::new();
    let refused = run.send(&ipfix(0, 1, &[good.concat(), long])).unwrap_err();
    assert_eq!(refused.reason, FlowSkip::BadSet);
    assert_eq!(refused.offset as usize, 16 + good.concat().len());
    assert_eq!(run.records.len(), 2, "the whole record of it is there");
}

#[test]
fn impossible_templates_are_named() {
    for (bytes, reason) in [
        (vec![1, 0, 0, 2, 0, 8, 0, 4], FlowSkip::BadTemplate),
        (vec![1, 0, 255, 255, 0, 8, 0, 4], FlowSkip::TemplateLimit),
        (vec![1, 0, 0, 1, 0, 8, 0, 0], FlowSkip::BadTemplate),
        (vec![0, 9, 0, 1, 0, 8, 0, 4], FlowSkip::BadTemplate),
    ] {
        let mut run = Run::new();
        let refused = run.send(&ipfix(0, 1, &[set(2, &bytes)])).unwrap_err();
        assert_eq!((refused.reason, refused.offset), (reason, 20));
    }
}

#[test]
fn a_message_that_is_longer_or_shorter_than_it_says_is_named() {
    let good = [set(2, &template(256, &PLAIN)), set(256, &plain(1, 40))];
    let mut cut = ipfix(0, 1, &good);
    cut.truncate(cut.len() - 1);
    let mut run = Run::new();
    assert_eq!(run.send(&cut).unwrap_err().reason, FlowSkip::CutMessage);
    let mut padded = ipfix(0, 1, &good);
    padded.push(0);
    assert_eq!(run.send(&padded).unwrap_err().reason, FlowSkip::BadMessage);
}

#[test]
fn gaps_are_counted_in_what_the_protocol_counts() {
    let mut run = Run::new();
    let first = [
        set(2, &template(256, &PLAIN)),
        set(256, &[plain(1, 40), plain(1, 40)].concat()),
    ];
    run.send(&ipfix(10, 1, &first)).unwrap();
    run.send(&ipfix(12, 1, &[set(256, &plain(1, 40))])).unwrap();
    assert_eq!(run.process.counts().gaps, 0);
    // Seven records are lost, then one message is out of order, then the next one arrives.
    run.send(&ipfix(20, 1, &[set(256, &plain(1, 40))])).unwrap();
    run.send(&ipfix(15, 1, &[set(256, &plain(1, 40))])).unwrap();
    run.send(&ipfix(21, 1, &[set(256, &plain(1, 40))])).unwrap();
    let counts = run.process.counts();
    assert_eq!(
        (counts.gaps, counts.missing, counts.out_of_order),
        (1, 7, 1)
    );
}

#[test]
fn netflow_9_counts_messages() {
    let mut run = Run::new();
    for sequence in [5, 6, 9] {
        let message = v9(0, 1000, sequence, &[set(0, &template(256, &PLAIN))]);
        run.send(&message).unwrap();
    }
    let counts = run.process.counts();
    assert_eq!((counts.gaps, counts.missing), (1, 2));
}

/// An IPFIX options template with one scope field.
pub fn ipfix_options(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let mut out = id.to_be_bytes().to_vec();
    out.extend((fields.len() as u16).to_be_bytes());
    out.extend([0, 1]);
    out.extend(specifiers(fields));
    out
}

#[test]
fn sampling_is_found_in_options_and_in_records() {
    let mut with_sampler = PLAIN.to_vec();
    with_sampler.push((302, 4));
    let record = |id: u32| [plain(1, 40), id.to_be_bytes().to_vec()].concat();
    let mut run = Run::new();
    run.send(&ipfix(
        0,
        1,
        &[
            set(2, &template(256, &with_sampler)),
            set(256, &record(1)),
            // selectorId as the scope, then samplingPacketInterval 1 and samplingPacketSpace 99.
            set(3, &ipfix_options(257, &[(302, 4), (305, 4), (306, 4)])),
            set(257, &[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 99]),
            set(257, &[0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 3, 231]),
            set(256, &[record(1), record(2), record(3)].concat()),
        ],
    ))
    .unwrap();
    let said: Vec<(f64, SamplingSource)> = run
        .records
        .iter()
        .map(|r| (r.sampling.interval, r.sampling.source))
        .collect();
    assert_eq!(
        said,
        [
            (1.0, SamplingSource::Unknown),
            (100.0, SamplingSource::Sampler),
            (1000.0, SamplingSource::Sampler),
            (1.0, SamplingSource::Unknown)
        ]
    );
    let counts = run.process.counts();
    assert_eq!(counts.options_records, 2);
    // The first record names sampler 1 before it is known; nothing is ever said of sampler 3.
    assert_eq!((counts.unknown_sampler, counts.before_sampling), (2, 0));
}

#[test]
fn sampling_of_a_whole_domain_and_of_one_record() {
    // The scope "system", then samplingInterval.
    let mut options = vec![1, 1, 0, 4, 0, 4, 0, 1, 0, 4];
    options.extend([0, 34, 0, 4]);
    let mut own = PLAIN.to_vec();
    own.push((34, 2));
    let own_record = [plain(1, 40), vec![0, 20]].concat();
    let mut run = Run::new();
    run.send(&v9(
        0,
        1000,
        0,
        &[
            set(1, &options),
            set(257, &[0, 0, 0, 0, 0, 0, 0, 50]),
            set(0, &[template(256, &PLAIN), template(258, &own)].concat()),
            set(256, &plain(1, 40)),
            set(258, &own_record),
        ],
    ))
    .unwrap();
    assert_eq!(run.records[0].sampling.interval, 50.0);
    assert_eq!(run.records[0].sampling.source, SamplingSource::Domain);
    assert_eq!(run.records[1].sampling.interval, 20.0);
    assert_eq!(run.records[1].sampling.source, SamplingSource::Record);
}

#[test]
fn the_time_of_zero_uptime_does_not_wander_with_the_whole_seconds_of_netflow_9() {
    // The exporter booted at 990.5 s. It sends at 1000.2 s and 1001.9 s; the headers say 1000 and 1001.
    let fields = [PLAIN.to_vec(), vec![(22, 4), (21, 4)]].concat();
    let record = |first: u32, last: u32| {
        [
            plain(2, 80),
            first.to_be_bytes().to_vec(),
            last.to_be_bytes().to_vec(),
        ]
        .concat()
    };
    let mut run = Run::new();
    let sets = [
        set(0, &template(256, &fields)),
        set(256, &record(1000, 2000)),
    ];
    run.send(&v9(9_700, 1000, 0, &sets)).unwrap();
    run.send(&v9(11_400, 1001, 1, &[set(256, &record(3000, 4000))]))
        .unwrap();
    let (a, b) = (&run.records[0], &run.records[1]);
    assert_eq!(a.times, Times::Uptime);
    assert_eq!(b.first - a.first, 2_000_000_000, "as the uptimes are apart");
    // The boot time computed from the first header, 990.3 s, is closer to the truth than 989.6 s from the second.
    assert_eq!(a.first, 991_300_000_000);
}

#[test]
fn every_kind_of_time_is_read() {
    let at = |fields: &[(u16, u16)], values: &[u8]| {
        let fields = [&PLAIN[..], fields].concat();
        let record = [plain(2, 80), values.to_vec()].concat();
        let mut run = Run::new();
        let sets = [set(2, &template(256, &fields)), set(256, &record)];
        run.send(&ipfix(0, 1, &sets)).unwrap();
        (
            run.records[0].first,
            run.records[0].last,
            run.records[0].times,
        )
    };
    let secs = at(&[(150, 4), (151, 4)], &[0, 0, 3, 0xe0, 0, 0, 3, 0xe2]);
    assert_eq!(secs, (992_000_000_000, 994_000_000_000, Times::Record));
    let millis = [991_500u64.to_be_bytes(), 992_250u64.to_be_bytes()].concat();
    let millis = at(&[(152, 8), (153, 8)], &millis);
    assert_eq!(millis, (991_500_000_000, 992_250_000_000, Times::Record));
    let ntp = |s: u64| ((s + 2_208_988_800) << 32 | 1 << 30).to_be_bytes();
    for (start, end) in [(154, 155), (156, 157)] {
        let micros = at(&[(start, 8), (end, 8)], &[ntp(990), ntp(995)].concat());
        assert_eq!(micros, (990_250_000_000, 995_250_000_000, Times::Record));
    }
    // Microseconds before the export time.
    let deltas = at(&[(158, 4), (159, 4)], &[0, 0x0f, 0x42, 0x40, 0, 0, 0, 10]);
    assert_eq!(deltas, (999_000_000_000, 999_999_990_000, Times::Record));
    // Uptimes, with the time of zero uptime in the record.
    let init = [
        990_000u64.to_be_bytes().to_vec(),
        vec![0, 0, 0, 100, 0, 0, 0, 200],
    ]
    .concat();
    let uptime = at(&[(160, 8), (22, 4), (21, 4)], &init);
    assert_eq!(uptime, (990_100_000_000, 990_200_000_000, Times::Uptime));
    // An end time and a duration.
    let duration = at(&[(151, 4), (161, 4)], &[0, 0, 3, 0xe2, 0, 0, 7, 0xd0]);
    assert_eq!(duration, (992_000_000_000, 994_000_000_000, Times::Record));
    // No absolute time: the export time is used, and uptimes on an unknown scale give the duration.
    assert_eq!(
        at(&[], &[]),
        (1_000_000_000_000, 1_000_000_000_000, Times::Export)
    );
    let lost = at(&[(22, 4), (21, 4)], &[0, 0, 0, 100, 0, 0, 0, 200]);
    assert_eq!(lost, (999_900_000_000, 1_000_000_000_000, Times::Export));
}

#[test]
fn a_biflow_has_both_directions() {
    // Reverse packets and bytes, with enterprise number 29305.
    let mut template = vec![1, 0, 0, 6];
    template.extend(specifiers(&PLAIN));
    for id in [2u16, 1] {
        template.extend((id | 0x8000).to_be_bytes());
        template.extend([0, 4, 0, 0, 0x72, 0x79]);
    }
    let record = [plain(3, 180), vec![0, 0, 0, 2, 0, 0, 8, 0]].concat();
    let mut run = Run::new();
    run.send(&ipfix(0, 1, &[set(2, &template), set(256, &record)]))
        .unwrap();
    let r = run.records[0];
    let reverse = r.reverse.expect("both directions");
    assert_eq!((r.packets, reverse.packets), (3, 2));
    assert_eq!((r.bytes, reverse.bytes), (180, 2048));
    assert_eq!(run.process.counts().biflows, 1);
}

/// Elements 231 and 232 count payload (IANA), in what Cisco's ASA sends, too. They are of one layer with each other, not
/// with element 1, beside which they are the payload.
#[test]
fn counters_of_firewalls_are_those_of_payload() {
    let read = |fields: &[(u16, u16)], counters: &[u32]| {
        let fields = [&[(8, 4), (12, 4)], fields].concat();
        let mut record = vec![10, 0, 0, 1, 10, 0, 0, 2];
        record.extend(counters.iter().flat_map(|n| n.to_be_bytes()));
        let mut run = Run::new();
        let sets = [set(2, &template(256, &fields)), set(256, &record)];
        run.send(&ipfix(0, 1, &sets)).unwrap();
        let r = run.records[0];
        let back = r.reverse.map(|b| (b.packets, b.bytes));
        (r.layer, (r.packets, r.bytes), back, r.payload)
    };
    let payload = Layer::Payload;
    assert_eq!(
        read(&[(231, 4), (232, 4)], &[69, 14_178]),
        (payload, (0, 69), Some((0, 14_178)), None)
    );
    let firewall = [(298, 4), (299, 4), (231, 4), (232, 4)];
    assert_eq!(
        read(&firewall, &[6, 14, 69, 14_178]),
        (payload, (6, 69), Some((14, 14_178)), None)
    );
    // Bytes of packets in one direction, payload in both: those of both are taken.
    let mixed = [(2, 4), (1, 4), (231, 4), (232, 4)];
    assert_eq!(
        read(&mixed, &[6, 400, 69, 14_178]),
        (payload, (6, 69), Some((0, 14_178)), None)
    );
    assert_eq!(read(&[(2, 4), (352, 4)], &[6, 400]).0, Layer::Link);
    // Zeros do not replace bytes. Alone, they are counters.
    let (network, plain) = (Layer::Network, [(2, 4), (1, 4)]);
    let with = |more: &[(u16, u16)]| [&plain, more].concat();
    for zeros in [&[(231, 4), (232, 4)][..], &[(231, 4), (232, 4), (299, 4)]] {
        let counters = [&[6, 5_000], &vec![0; zeros.len()][..]].concat();
        assert_eq!(
            read(&with(zeros), &counters),
            (network, (6, 5_000), None, None)
        );
    }
    assert_eq!(
        read(&with(&[(231, 4), (232, 4), (299, 4)]), &[2, 100, 0, 0, 1]),
        (network, (2, 100), Some((1, 0)), None)
    );
    assert_eq!(
        read(&firewall, &[2, 1, 0, 0]),
        (payload, (2, 0), Some((1, 0)), None)
    );
}

#[test]
fn events_and_records_without_addresses_are_no_flows() {
    let mut run = Run::new();
    let message = ipfix(
        0,
        1,
        &[
            set(2, &template(256, &[(8, 4), (12, 4), (230, 1)])),
            set(256, &[10, 0, 0, 1, 10, 0, 0, 2, 4]),
            set(2, &template(257, &[(56, 6), (1, 4), (2, 4)])),
            set(257, &[2, 0, 0, 0, 0, 1, 0, 0, 0, 60, 0, 0, 0, 1]),
        ],
    );
    run.send(&message).unwrap();
    assert_eq!(run.records, []);
    assert_eq!(run.skipped(FlowSkip::NoCounters), 1);
    assert_eq!(run.skipped(FlowSkip::NoAddresses), 1);
    assert_eq!(run.process.counts().data_records, 2);
}

/// H3C's exporters write field lengths of 65535 in NetFlow 9. Values then have a length as in IPFIX: one byte, or 255
/// and two bytes (RFC 7011 section 7).
#[test]
fn templates_of_version_9_may_have_values_of_variable_length() {
    let mut run = Run::new();
    let fields = [(8, 4), (12, 4), (95, 65_535), (2, 4), (1, 4)];
    let row = |name: &[u8], packets: u32| {
        let plain = plain(packets, 100 * packets);
        [&plain[..8], name, &plain[8..]].concat()
    };
    let long = [&[255, 1, 44][..], &[7; 300]].concat();
    let data = [row(&[3, 1, 2, 3], 5), row(&[0], 6), row(&long, 7)].concat();
    let sets = [set(0, &template(300, &fields)), set(300, &data)];
    run.send(&v9(10_000, 1_000, 0, &sets)).unwrap();
    let read: Vec<_> = run.records.iter().map(|r| (r.packets, r.bytes)).collect();
    assert_eq!(read, [(5, 500), (6, 600), (7, 700)]);
    assert_eq!(run.skipped(FlowSkip::BadTemplate), 0);
    // A length beyond the set is damage; the records before it are kept.
    let cut = set(300, &[row(&[0], 8), row(&[200], 9)].concat());
    assert!(run.send(&v9(10_100, 1_000, 1, &[cut])).is_err());
    assert_eq!(run.records.len(), 4);
}
