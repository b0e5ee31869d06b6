//! What is QUIC, and what its acknowledgements do to requests.

use super::*;

#[test]
fn acknowledgements_of_quic_neither_begin_nor_end_anything() {
    let mut tap = Tap::new();
    tap.crosses(0, &quic(true, 4000, 1200));
    tap.crosses(15, &quic(false, 4000, 1200));
    tap.crosses(100, &datagram(true, 4000, 400));
    tap.crosses(112, &datagram(false, 4000, 1200));
    tap.crosses(113, &datagram(false, 4000, 900));
    // The client acknowledges; much later, the server acknowledges an old packet.
    tap.crosses(124, &datagram(true, 4000, 35));
    tap.crosses(400, &datagram(false, 4000, 35));
    let all = tap.finish(1000);
    let answered = Outcome::Answered;
    assert_eq!(
        times(&all[0]),
        [(0, Some(25), answered), (100, Some(123), answered)]
    );
    // In other protocols, small datagrams count as data.
    let mut other = Tap::new();
    other.crosses(0, &datagram(true, 4000, 35));
    other.crosses(15, &datagram(false, 4000, 35));
    assert_eq!(times(&other.finish(100)[0]), [(0, Some(25), answered)]);
}

/// A download over QUIC of which datagrams are lost. Acknowledgements of 80 bytes report them, the last one when
/// everything has come.
#[test]
fn acknowledgements_that_report_losses_do_not_cut_a_download() {
    for request in [400, 90] {
        let mut tap = Tap::new();
        tap.crosses(0, &quic(true, 4000, 1200));
        tap.crosses(15, &quic(false, 4000, 1200));
        tap.crosses(100, &datagram(true, 4000, 400));
        for k in 110..160 {
            match k {
                120..130 => tap.sent(k, &datagram(false, 4000, 1200)),
                _ => tap.crosses(k, &datagram(false, 4000, 1200)),
            }
            if k > 140 {
                tap.crosses(k, &datagram(true, 4000, 80));
            }
        }
        tap.crosses(170, &datagram(true, 4000, 80));
        // The next request is small, too.
        tap.crosses(2000, &datagram(true, 4000, request));
        tap.crosses(2010, &datagram(false, 4000, 1200));
        // The last one has no answer.
        tap.crosses(3000, &datagram(true, 4000, request));
        let all = tap.finish(3100);
        let answered = Outcome::Answered;
        assert_eq!(
            times(&all[0]),
            [
                (0, Some(25), answered),
                (100, Some(169), answered),
                (2000, Some(2020), answered),
                (3000, None, Outcome::CutOff)
            ]
        );
    }
}

#[test]
fn an_acknowledgement_is_not_open_at_the_end() {
    let mut tap = Tap::new();
    tap.crosses(0, &quic(true, 4000, 1200));
    for k in 0..20 {
        tap.sent(15 + k, &datagram(false, 4000, 1200));
    }
    tap.crosses(35, &datagram(false, 4000, 1200));
    tap.crosses(46, &datagram(true, 4000, 80));
    assert_eq!(
        times(&tap.finish(1000)[0]),
        [(0, Some(45), Outcome::Answered)]
    );
}

/// With a small window, the server goes on only when an acknowledgement has come.
#[test]
fn acknowledgements_do_not_cut_a_download_with_a_small_window() {
    let mut tap = Tap::new();
    tap.crosses(0, &quic(true, 4000, 1200));
    tap.crosses(15, &quic(false, 4000, 1200));
    tap.crosses(100, &datagram(true, 4000, 400));
    for k in 0..10 {
        let at = 110 + 20 * k;
        tap.sent(at, &datagram(false, 4000, 1200));
        tap.crosses(at, &datagram(false, 4000, 1200));
        tap.crosses(at + 10, &datagram(true, 4000, 64));
    }
    // A request right after it, larger than an acknowledgement of ten losses.
    tap.crosses(301, &datagram(true, 4000, 101));
    tap.crosses(311, &datagram(false, 4000, 1200));
    // Its packet is acknowledged, and the losses before it are no longer reported.
    tap.crosses(322, &datagram(true, 4000, 90));
    tap.crosses(332, &datagram(false, 4000, 1200));
    let all = tap.finish(1000);
    let answered = Outcome::Answered;
    assert_eq!(
        times(&all[0]),
        [
            (0, Some(25), answered),
            (100, Some(300), answered),
            (301, Some(321), answered),
            (322, Some(342), answered)
        ]
    );
    let labels: Vec<Label> = all[0].exchanges.iter().map(|e| e.label).collect();
    assert_eq!(labels[1], Label::Merged);
}

/// Large datagrams alone do not make QUIC: this is a stream with a report at its end, as iperf 2 sends.
#[test]
fn a_stream_of_large_datagrams_is_not_quic() {
    for (first, initial) in [
        ([0u8, 0, 0, 0, 1], false),
        // RTP (RFC 3550 section 5.1) and a version that nobody speaks.
        ([0x80, 96, 0, 0, 1], false),
        ([0xc0, 9, 9, 9, 9], false),
        ([0xc0, 0, 0, 0, 1], true),
        ([0xd3, 0x6b, 0x33, 0x43, 0xcf], true),
        ([0xff, 0x1a, 0x2a, 0xfa, 0x0a], true),
    ] {
        let mut tap = Tap::new();
        for k in 0..300 {
            let mut p = datagram(true, 4000, 1470);
            p[28..33].copy_from_slice(&first);
            tap.crosses(10 * k, &p);
            // A server of QUIC acknowledges.
            if initial && k % 2 == 1 {
                tap.crosses(10 * k + 10, &datagram(false, 4000, 35));
            }
        }
        tap.crosses(3010, &datagram(false, 4000, 1470));
        let all = tap.finish(4000);
        let label = match initial {
            true => Label::Request,
            false => Label::OneWay,
        };
        let labels: Vec<Label> = all[0].exchanges.iter().map(|e| e.label).collect();
        assert_eq!(labels, [label], "{first:x?}");
    }
    // The device gave headers and payload apart.
    let mut all = Datagrams::new(CROSSING);
    let p = quic(true, 4000, 1200);
    let (head, rest) = p.split_at(28);
    all.sent(ms(0), &Header::of(&p).unwrap(), head, rest);
    assert_eq!(all.all[0].kind, Kind::Quic);
}
