use swell_traffic::Exchange;

use super::*;

mod capacities;
mod limits;
mod losses;
mod waits;

const MS: u64 = 1_000_000;
const QUIET: u64 = 500 * MS;

pub(super) fn header(flags: u8, seq: u32, ack: u32, payload: u32) -> Header {
    Header {
        seq,
        ack,
        flags,
        payload,
        window: 1_000,
        ..Header::default()
    }
}

/// A connection after its handshake. RTTs from the tap: 4 ms to the client, 30 ms to the server.
fn open(client_isn: u32, server_isn: u32) -> Tracked {
    let mut t = Tracked::new(0);
    let mut syn = header(Header::SYN, client_isn, 0, 0);
    syn.options.window_scale = Some(7);
    t.packet(0, 0, 60, &syn, QUIET);
    let mut syn_ack = header(
        Header::SYN | Header::ACK,
        server_isn,
        client_isn.wrapping_add(1),
        0,
    );
    syn_ack.options.window_scale = Some(3);
    let observed = t.packet(1, 30 * MS, 60, &syn_ack, QUIET);
    assert_eq!(observed.rtt, Some((1, true, 30 * MS)));
    let ack = header(
        Header::ACK,
        client_isn.wrapping_add(1),
        server_isn.wrapping_add(1),
        0,
    );
    let answer = t.packet(0, 34 * MS, 52, &ack, QUIET);
    assert_eq!(answer.rtt, Some((0, true, 4 * MS)));
    assert!(t.handshake);
    t
}

/// A client that acknowledges the SYN/ACK with its request, which it writes 200 ms later: that delay is no RTT,
/// but a pause before the request as soon as an answer shows the RTT.
#[test]
fn a_first_ack_with_data_is_no_sample() {
    let mut t = Tracked::new(0);
    t.packet(0, 0, 60, &header(Header::SYN, 0, 0, 0), QUIET);
    let syn_ack = header(Header::SYN | Header::ACK, 9, 1, 0);
    t.packet(1, 30 * MS, 60, &syn_ack, QUIET);
    let request = header(Header::ACK, 1, 10, 500);
    let observed = t.packet(0, 234 * MS, 552, &request, QUIET);
    assert_eq!((observed.rtt, t.rtt), (None, [Some(30 * MS), None]));
    assert!(t.handshake && t.ready() == 234 * MS);
    let mut found = Vec::new();
    for k in 0..5 {
        let at = (264 + 20 * u64::from(k)) * MS;
        for half in [0, 1_460] {
            let answer = header(Header::ACK, 10 + 2_920 * k + half, 501, 1_460);
            t.packet(1, at, 1_500, &answer, QUIET);
        }
        let ack = header(Header::ACK, 501, 10 + 2_920 * (k + 1), 0);
        found.push(t.packet(0, at + 4 * MS, 52, &ack, QUIET).rtt);
    }
    assert!(
        found.iter().all(|r| *r == Some((0, false, 4 * MS))),
        "{found:?}"
    );
    assert_eq!(t.ready(), 34 * MS);
    let Exchange::Sequential(turns) = t.chunks.exchange(t.ready()).0 else {
        panic!("not in turn");
    };
    assert_eq!(
        (turns[0].request, turns[0].client_think.as_nanos()),
        (0, 200 * MS)
    );
}

/// Sends `len` bytes at stream offset `at` (0 is the first byte) from the server.
fn data(t: &mut Tracked, isn: u32, at: u32, len: u32, time: u64) -> Observed {
    let seq = isn.wrapping_add(1).wrapping_add(at);
    t.passed = t.passed.map(|n| n + 1);
    t.packet(1, time, len + 40, &header(Header::ACK, seq, 1, len), QUIET)
}

#[test]
fn sequence_numbers_wrap() {
    let isn = u32::MAX - 2_000;
    let mut t = open(u32::MAX, isn);
    for i in 0..10 {
        data(&mut t, isn, i * 1_460, 1_460, (40 + u64::from(i)) * MS);
    }
    assert_eq!(t.chunks.exchange(0).0.bytes(), [0, 14_600]);
    assert_eq!((t.halves[1].lost_before, t.halves[1].lost_beyond), (0, 0));
}

/// Bursts of `segments` full segments from the server every 33 ms, each acknowledged when it has reached
/// the client. Returns the writes learnt, and the number of pauses that are not clear.
fn paced(mut t: Tracked, bursts: u32, segments: u32, window: u16) -> (Vec<(u64, u64)>, u32) {
    let acked = |i: u32| header(Header::ACK, 1, 10 + i * 1_460 * segments, 0);
    for i in 0..bursts {
        let at = 40 * MS + u64::from(i) * 33 * MS;
        for j in 0..segments {
            data(&mut t, 9, (i * segments + j) * 1_460, 1_460, at);
        }
        let ack = Header {
            window,
            ..acked(i + 1)
        };
        t.packet(0, at + 4 * MS, 52, &ack, QUIET);
    }
    let (exchange, [_, writes]) = t.chunks.exchange(0);
    assert_eq!(exchange.bytes()[1], u64::from(bursts * segments) * 1_460);
    let place = |w: &swell_traffic::Write| (w.after, w.gap.as_nanos() / MS);
    (writes.iter().map(place).collect(), t.chunks.unclear)
}

#[test]
fn writes_that_fill_their_segments_are_told_by_what_was_in_flight() {
    // The RTT is 34 ms, so two writes are in flight.
    let (writes, unclear) = paced(open(0, 9), 60, 6, 1_000);
    assert!(writes.len() > 45 && unclear == 0, "{writes:?}");
    assert!(writes[1..].iter().all(|w| *w == (8_760, 33)), "{writes:?}");
    // The receiver's window has room for one (8760 of 8832 bytes): each waits for an ACK.
    assert_eq!(paced(open(0, 9), 60, 6, 69), (vec![], 0));
    // Without a handshake the pauses may be round trips.
    let mut began = Tracked::new(0);
    data(&mut began, 9, 0, 1_460, 0);
    let (none, pauses) = paced(began, 60, 6, 1_000);
    assert_eq!(none, []);
    assert!(pauses > 50, "{pauses}");
}

#[test]
fn marks_make_the_window_unknown_as_losses_do() {
    let most = |flags: u8| {
        let mut t = open(0, 9);
        for i in 0..16 {
            data(&mut t, 9, i * 1_460, 1_460, 40 * MS);
        }
        let acked = header(Header::ACK, 1, 10 + 16 * 1_460, 0);
        t.packet(0, 44 * MS, 52, &acked, QUIET);
        let next = header(Header::ACK | flags, 10 + 16 * 1_460, 1, 1_460);
        t.packet(1, 80 * MS, 1_500, &next, QUIET);
        t.halves[1].flight.most()
    };
    assert_eq!(most(0), 16 * 1_460);
    assert_eq!(most(Header::CWR), 0);
}

#[test]
fn windows_are_scaled() {
    let t = open(5, 5);
    assert_eq!(t.halves[0].window.cap(), 0xffff << 7);
}

#[test]
fn segments_and_acknowledgements_tell_their_sizes_and_manners() {
    let mut t = open(0, 9);
    // Four segments, the last of which is short, acknowledged in pairs; a pause of the application; one
    // more.
    for (i, len) in [1_260, 1_260, 1_260, 200].into_iter().enumerate() {
        data(&mut t, 9, 1_260 * i as u32, len, (40 + i as u64) * MS);
    }
    for (to, time) in [(2_520, 60), (3_980, 61)] {
        t.packet(0, time * MS, 52, &header(Header::ACK, 2, 10 + to, 0), QUIET);
    }
    data(&mut t, 9, 3_980, 100, 62 * MS);
    let wire = t.wire(false);
    assert_eq!((wire.ends[1].mss, wire.ends[0].mss), (1_260, 0));
    assert_eq!(
        (wire.ends[0].quick_acks, wire.timestamps),
        (Some(0), Some(false))
    );
    let (_, writes) = t.chunks.exchange(0);
    assert_eq!(writes[1].len(), 1);
    assert_eq!(writes[1][0].after, 3_980);
    // A single segment, acknowledged at once.
    let mut lone = open(1, 9);
    data(&mut lone, 9, 0, 100, 40 * MS);
    lone.packet(0, 44 * MS, 52, &header(Header::ACK, 2, 110, 0), QUIET);
    assert_eq!(lone.wire(true).ends[0].quick_acks, Some(255));
    // Several segments in one packet are acknowledged at once by every end.
    for (len, quick) in [(1_460, Some(255)), (14_600, None)] {
        let mut joined = open(1, 9);
        data(&mut joined, 9, 0, len, 40 * MS);
        joined.packet(0, 44 * MS, 52, &header(Header::ACK, 2, 10 + len, 0), QUIET);
        assert_eq!(joined.wire(true).ends[0].quick_acks, quick, "{len}");
    }
    // One delayed ACK, then small segments acknowledged individually, even if several are outstanding.
    for (small, quick) in [(20, 255), (0, 1)] {
        let mut mixed = open(1, 9);
        data(&mut mixed, 9, 0, 100, 40 * MS);
        mixed.packet(0, 41 * MS, 52, &header(Header::ACK, 2, 110, 0), QUIET);
        data(&mut mixed, 9, 100, 100, 50 * MS);
        data(&mut mixed, 9, 200, 100, 51 * MS);
        mixed.packet(0, 52 * MS, 52, &header(Header::ACK, 2, 310, 0), QUIET);
        for i in 0..small {
            data(
                &mut mixed,
                9,
                300 + 200 * i,
                100,
                u64::from(60 + 4 * i) * MS,
            );
            data(
                &mut mixed,
                9,
                400 + 200 * i,
                100,
                u64::from(61 + 4 * i) * MS,
            );
            for part in [1, 2] {
                let up_to = header(Header::ACK, 2, 310 + 200 * i + 100 * part, 0);
                mixed.packet(0, u64::from(61 + 4 * i + part) * MS, 52, &up_to, QUIET);
            }
        }
        assert_eq!(mixed.wire(true).ends[0].quick_acks, Some(quick), "{small}");
    }
    // A prompt ACK on a data segment says nothing about the ACK policy; a late one does.
    for (answer, quick) in [(46, 255), (100, 0)] {
        let mut chat = open(1, 9);
        data(&mut chat, 9, 0, 100, 40 * MS);
        let along = header(Header::ACK, 2, 110, 50);
        chat.packet(0, answer * MS, 102, &along, QUIET);
        data(&mut chat, 9, 100, 100, 140 * MS);
        chat.packet(0, 144 * MS, 52, &header(Header::ACK, 52, 210, 0), QUIET);
        assert_eq!(chat.wire(false).ends[0].quick_acks, Some(quick));
    }
}

#[test]
fn what_the_capture_misses_is_counted_apart() {
    let mut t = open(1, 9);
    data(&mut t, 9, 0, 1_000, 40 * MS);
    data(&mut t, 9, 5_000, 1_000, 41 * MS);
    assert_eq!(t.halves[1].missing(), 4_000);
    assert_eq!(t.chunks.exchange(0).0.bytes(), [0, 2_000]);
}

/// The capture loses the end of a response, or the route changes: ACKs and the FIN still tell its size.
#[test]
fn what_the_capture_misses_at_the_end_is_counted_too() {
    let close = |acks: &[u32], fin: Option<u32>| {
        let mut t = open(1, 9);
        data(&mut t, 9, 0, 1_000, 40 * MS);
        if let Some(at) = fin {
            let h = header(Header::FIN | Header::ACK, 10 + at, 2, 0);
            t.packet(1, 50 * MS, 40, &h, QUIET);
        }
        for &to in acks {
            t.packet(0, 60 * MS, 52, &header(Header::ACK, 2, 10 + to, 0), QUIET);
        }
        t
    };
    assert_eq!(close(&[1_000], None).halves[1].missing(), 0);
    assert_eq!(close(&[1_001], Some(1_000)).halves[1].missing(), 0);
    // With its FIN, without it, and with the FIN alone.
    assert_eq!(close(&[5_001], None).halves[1].missing(), 4_000);
    assert_eq!(close(&[5_001], Some(5_000)).halves[1].missing(), 4_000);
    assert_eq!(close(&[], Some(5_000)).halves[1].missing(), 4_000);
    // Larger than the largest gap, ACK by ACK.
    let acks: Vec<u32> = (0..50).map(|i| i << 20).collect();
    let mut t = close(&acks, None);
    assert_eq!(t.halves[1].missing(), (49 << 20) - 1_001);
    // The route changes back.
    data(&mut t, 9, 49 << 20, 1_000, 70 * MS);
    let half = &t.halves[1];
    assert_eq!((half.missing(), half.jumps), ((49 << 20) - 1_000, 0));
    // A second FIN after the first.
    let mut twice = close(&[1_001], Some(1_000));
    let again = header(Header::FIN | Header::ACK, 10 + 1_001, 2, 0);
    twice.packet(1, 70 * MS, 40, &again, QUIET);
    assert_eq!(twice.halves[1].missing(), 0);
    // A FIN that overtakes the last data.
    let mut late = close(&[], Some(2_000));
    data(&mut late, 9, 1_000, 1_000, 51 * MS);
    assert_eq!(late.halves[1].missing(), 0);
    assert_eq!(late.chunks.exchange(0).0.bytes(), [0, 2_000]);
}

#[test]
fn copies_and_keep_alives_are_not_losses() {
    let mut t = open(1, 9);
    data(&mut t, 9, 0, 1_000, 40 * MS);
    data(&mut t, 9, 0, 1_000, 40 * MS + 20_000);
    assert_eq!((t.halves[1].duplicates, t.halves[1].lost_beyond), (1, 0));
    data(&mut t, 9, 999, 1, 10_000 * MS);
    assert_eq!((t.halves[1].lost_beyond, t.halves[1].keep_alives), (0, 0));
    // With and without the last byte, once it is acknowledged.
    t.packet(0, 10_004 * MS, 52, &header(Header::ACK, 2, 1_010, 0), QUIET);
    for (i, len) in [(2, 1), (3, 0), (4, 0)] {
        data(&mut t, 9, 999, len, 10_000 * i * MS);
        t.packet(
            0,
            (10_000 * i + 4) * MS,
            52,
            &header(Header::ACK, 2, 1_010, 0),
            QUIET,
        );
    }
    assert_eq!([0, 1].map(|i| t.halves[i].keep_alives), [0, 3]);
    assert_eq!(t.chunks.exchange(0).0.bytes(), [0, 1_000]);
}

/// Sixteen packets per millisecond, delivered in groups of eight and stamped 1.1 us apart: 192 Mbit/s, not
/// 11 Gbit/s. A clock with millisecond ticks yields no capacity.
#[test]
fn spacings_within_a_batch_are_the_captures() {
    for (least_gap, want) in [(LEAST_GAP, true), (10 * MS, false)] {
        let mut t = open(1, 9);
        let mut rates = Vec::new();
        for i in 0..64u32 {
            let batch = u64::from(i / 8);
            let time = 40 * MS + batch * 500_000 + u64::from(i % 8) * 1_100;
            t.least_gap = least_gap;
            rates.extend(data(&mut t, 9, i * 1_460, 1_460, time).up);
        }
        assert_eq!(!rates.is_empty(), want);
        // The first sample precedes the detection of groups.
        assert!(
            rates.iter().skip(1).all(|&kbit| kbit == 192_000),
            "{rates:?}"
        );
        assert_eq!(rates.len() >= 6, want, "{rates:?}");
    }
}

#[test]
fn a_packet_pair_tells_the_capacity() {
    let mut t = open(1, 9);
    data(&mut t, 9, 0, 1_460, 40 * MS);
    // 1500 bytes in 1.2 ms are 10 Mbit/s.
    let observed = data(&mut t, 9, 1_460, 1_460, 40 * MS + 1_200_000);
    assert_eq!(observed.up, Some(10_000));
    // With an ACK in between, the spacing may be the receiver's.
    let ack = header(Header::ACK, 2, 10 + 2_920, 0);
    t.packet(0, 42 * MS, 52, &ack, QUIET);
    assert_eq!(data(&mut t, 9, 2_920, 1_460, 43 * MS).up, None);
    // Packets of other connections, from the server or to the client, took part of the time.
    for other in [[1, 0], [0, 1]] {
        t.passed = [0, 1].map(|i| t.passed[i] + other[i]);
        assert_eq!(data(&mut t, 9, 4_380, 1_460, 45 * MS).up, None);
        assert_eq!(data(&mut t, 9, 5_840, 1_460, 47 * MS).up, Some(6_000));
        t = open(1, 9);
        data(&mut t, 9, 2_920, 1_460, 43 * MS);
    }
}

#[test]
fn only_the_second_segments_acknowledgement_times_the_path() {
    let mut t = open(1, 9);
    data(&mut t, 9, 0, 1_460, 40 * MS);
    let delayed = t.packet(0, 140 * MS, 52, &header(Header::ACK, 2, 1_470, 0), QUIET);
    assert_eq!(delayed.rtt, None);
    data(&mut t, 9, 1_460, 1_460, 150 * MS);
    data(&mut t, 9, 2_920, 1_460, 151 * MS);
    let ack = t.packet(
        0,
        156 * MS,
        52,
        &header(Header::ACK, 2, 10 + 4_380, 0),
        QUIET,
    );
    assert_eq!(ack.rtt, Some((0, false, 5 * MS)));
}

#[test]
fn both_ends_at_once_prove_concurrency() {
    let request = |t: &mut Tracked, seq, ack, time| {
        t.packet(0, time, 140, &header(Header::ACK, seq, ack, 100), QUIET);
    };
    // The client has received the whole response before its next request: turns.
    let mut t = open(1, 9);
    request(&mut t, 2, 10, 40 * MS);
    t.packet(1, 80 * MS, 540, &header(Header::ACK, 10, 102, 500), QUIET);
    request(&mut t, 102, 510, 90 * MS);
    assert!(!t.chunks.concurrent());
    // Here it has not.
    t.packet(1, 130 * MS, 540, &header(Header::ACK, 510, 202, 500), QUIET);
    request(&mut t, 202, 510, 131 * MS);
    assert!(t.chunks.concurrent());
}

#[test]
fn one_direction_is_known_by_its_acknowledgements() {
    let mut t = Tracked::new(0);
    t.packet(0, 0, 60, &header(Header::SYN, 1, 0, 0), QUIET);
    t.packet(0, 50 * MS, 52, &header(Header::ACK, 2, 100, 0), QUIET);
    t.packet(0, 51 * MS, 152, &header(Header::ACK, 2, 100, 100), QUIET);
    t.packet(0, 120 * MS, 52, &header(Header::ACK, 102, 3_020, 0), QUIET);
    t.packet(0, 125 * MS, 52, &header(Header::ACK, 102, 5_940, 0), QUIET);
    t.packet(0, 130 * MS, 52, &header(Header::ACK, 102, 5_941, 0), QUIET);
    assert_eq!(t.chunks.exchange(0).0.bytes(), [100, 5_840]);
    assert_eq!(t.halves[1].unseen, 5_840);
}

/// A RST counts if its number may be the connection's, and if its end then falls silent.
#[test]
fn forged_resets_end_nothing() {
    let reset = |number: u32| {
        let mut t = open(1, 9);
        data(&mut t, 9, 0, 1_000, 40 * MS);
        t.packet(1, 41 * MS, 40, &header(Header::RST, number, 0, 0), QUIET);
        t
    };
    // The next number, one that data behind a gap would have, and one far away.
    assert!(reset(1_010).closed() && reset(60_000).closed());
    assert!(!reset(1 << 30).closed() && !reset(0_u32.wrapping_sub(1 << 30)).closed());
    // Data that were sent before it may pass after it; the other end may not have got it yet.
    let mut t = reset(1_010);
    data(&mut t, 9, 1_000, 1_000, 60 * MS);
    t.packet(0, 90 * MS, 152, &header(Header::ACK, 2, 1_010, 100), QUIET);
    assert!(t.closed());
    data(&mut t, 9, 2_000, 1_000, 90 * MS);
    assert!(!t.closed());
    assert_eq!(t.chunks.exchange(0).0.bytes(), [100, 3_000]);
}

#[test]
fn repeated_syns_give_no_round_trip() {
    let mut t = Tracked::new(0);
    let syn = header(Header::SYN, 1, 0, 0);
    t.packet(0, 0, 60, &syn, QUIET);
    t.packet(0, 1_000 * MS, 60, &syn, QUIET);
    assert!(t.attempt());
    let syn_ack = header(Header::SYN | Header::ACK, 9, 2, 0);
    assert_eq!(t.packet(1, 1_030 * MS, 60, &syn_ack, QUIET).rtt, None);
    assert!(!t.attempt());
    assert_eq!(t.syns, [0, 1_000 * MS]);
}

/// ACKs that wait in a queue beyond the tap: the sender continues late, but not because of its
/// application. Timestamps show that it had not received them.
#[test]
fn what_waits_for_acknowledgements_is_no_new_unit() {
    let turns = |echo: u32| {
        let mut t = open(1, 9);
        let stamped = |flags, seq, ack, len, stamps| {
            let mut h = header(flags, seq, ack, len);
            h.options.timestamps = Some(stamps);
            h
        };
        let request = stamped(Header::ACK, 2, 10, 100, (500, 400));
        t.packet(0, 40 * MS, 152, &request, QUIET);
        for i in 0..4 {
            let segment = stamped(Header::ACK, 10 + 1_000 * i, 102, 1_000, (450, 500));
            t.packet(1, 75 * MS, 1_052, &segment, QUIET);
        }
        for i in 1..5 {
            let ack = stamped(Header::ACK, 102, 10 + 1_000 * i, 0, (510 + i, 450));
            t.packet(0, (80 + u64::from(i)) * MS, 52, &ack, QUIET);
        }
        let late = stamped(Header::ACK, 10 + 4_000, 102, 1_000, (700, echo));
        t.packet(1, 900 * MS, 1_052, &late, QUIET);
        let Exchange::Sequential(turns) = t.chunks.exchange(0).0 else {
            panic!("one after the other")
        };
        turns
            .iter()
            .map(|turn| turn.response)
            .filter(|&r| r > 0)
            .collect::<Vec<u64>>()
    };
    assert_eq!(turns(511), [5_000]);
    assert_eq!(turns(514), [4_000, 1_000], "it had got them all");
}

/// The receiver's line carries a segment in 0.6 ms (20 Mbit/s), and every second one is acknowledged. A sender that
/// paces them at 10 Mbit/s leaves the line idle between, and the spacing of the ACKs says nothing of it. Bursts wait,
/// of small segments too, and where the capture's clock has ticks of 1 ms.
#[test]
fn acks_of_a_paced_sender_are_not_spaced_by_the_line() {
    for (segments, mss, found, tick) in [
        (1u64, 1_460, false, 1),
        (1, 1_460, false, MS),
        (20, 1_460, true, 1),
        (40, 1_460, true, MS),
        (20, 536, true, 1),
        (20, 980, true, 1),
    ] {
        let time = 600_000 * u64::from(mss + 40) / 1_500;
        let mut t = open(1, 9);
        t.halves[0].announced = Some(mss as u16);
        t.least_gap = LEAST_GAP.max(10 * tick);
        let (mut line, mut rates) = (0, Vec::new());
        let mut events: Vec<(u64, bool, u32)> = Vec::new();
        for i in 0..200u32 {
            let at = 40 * MS + u64::from(i) / segments * segments * 2 * time;
            line = line.max(at) + time;
            events.push((at, true, i * mss));
            if i % 2 == 1 {
                events.push((line + 4 * MS, false, (i + 1) * mss));
            }
        }
        events.sort_by_key(|&(at, is_data, _)| (at, !is_data));
        for (exact, is_data, offset) in events {
            let at = exact / tick * tick;
            if is_data {
                data(&mut t, 9, offset, mss, at);
            } else {
                let ack = header(Header::ACK, 2, 10 + offset, 0);
                rates.extend(t.packet(0, at, 52, &ack, QUIET).down);
            }
        }
        assert_eq!(!rates.is_empty(), found, "{rates:?}");
        assert!(
            rates
                .iter()
                .all(|&kbit| kbit.abs_diff(20_000) < if tick > 1 { 2_000 } else { 10 }),
            "{rates:?}"
        );
    }
}
