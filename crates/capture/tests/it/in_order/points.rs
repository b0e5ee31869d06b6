//! Several points of capture: copies are left out, packets that are alike or of the same hosts are not.

use super::*;

/// The checksum of the nth packet.
fn sum(n: i64) -> u16 {
    (n * 7_919) as u16 | 1
}

/// A packet of UDP over IPv4 between two hosts: number, last byte of the source, source port.
fn numbered(n: i64, host: u8, port: u16) -> Vec<u8> {
    let mut ip = udp(n as u16 + 1, 64, port, sum(n));
    ip[15] = host;
    ip
}

fn in_file_order(mut packets: Vec<(u32, i64, Vec<u8>)>) -> Vec<u8> {
    packets.sort_by_key(|p| p.1);
    with_interfaces(&packets)
}

/// A member of a link aggregation carries every other flow, and the aggregation all. Or it carries three in four packets of
/// each flow.
#[test]
fn flows_that_another_interface_does_not_see_are_kept() {
    let n = 12_000i64;
    for by_flow in [true, false] {
        let mut all = Vec::new();
        let mut copies = 0;
        for i in 0..n {
            let flow = i % 6;
            let packet = numbered(i, 1, 40_000 + flow as u16);
            let both = if by_flow {
                flow % 2 == 0
            } else {
                i / 6 % 4 != 3
            };
            if both {
                all.push((0, 1_000 * i, packet.clone()));
                copies += 1;
            }
            all.push((1, 1_000 * i + 30, packet));
        }
        let (left, copied, codes) = kept(&in_file_order(all));
        // One packet of each flow may pass for lost on its way, until it is clear that the member carries but some.
        let passed = if by_flow { 0 } else { 6 };
        assert!((copies..=copies + passed).contains(&copied), "{copied}");
        assert_eq!(
            (left + copied, codes),
            (n + copies, vec![Code::CapturedTwice])
        );
    }
}

/// Two interfaces of which one takes over from the other, while both see multicast.
#[test]
fn what_another_interface_took_over_is_kept() {
    let n = 12_000i64;
    let mut all = Vec::new();
    for i in 0..n {
        let active = u32::from(i >= n / 3);
        all.push((active, 1_000 * i, numbered(i, 1, 5_000)));
        if i % 50 == 0 {
            let mut group = numbered(i, 1, 1_900);
            group[16..20].copy_from_slice(&[239, 255, 255, 250]);
            all.extend([(0, 1_000 * i + 1, group.clone()), (1, 1_000 * i + 2, group)]);
        }
    }
    let found = kept(&in_file_order(all));
    assert_eq!(found, (n + 240, 240, vec![Code::CapturedTwice]));
}

/// What is lost between two points is left out as well, as the first does not see it.
#[test]
fn what_is_lost_between_two_points_is_left_out() {
    let n = 12_000i64;
    let mut all = Vec::new();
    for i in 0..n {
        let packet = numbered(i, 1, 5_000 + (i % 6) as u16);
        all.push((1, 1_000 * i, packet.clone()));
        if i % 31 != 30 {
            all.push((0, 1_000 * i + 20_000, packet));
        }
    }
    let (left, copied, _) = kept(&in_file_order(all));
    assert_eq!((left, copied), (n - n / 31, n));
}

/// More pairs of hosts than any table has places for, in a file whose second interface sees the packets first.
#[test]
fn copies_of_many_hosts_are_found() {
    let n = 60_000i64;
    let mut all = Vec::new();
    for i in 0..n {
        let mut packet = numbered(i / 20_000, 1, 5_000);
        let host = (i % 20_000) as u16;
        packet[13..15].copy_from_slice(&host.to_be_bytes());
        all.push((1, 20 * i, packet.clone()));
        all.push((0, 20 * i + 20_000, packet));
    }
    let found = kept(&in_file_order(all));
    assert_eq!(found, (n, n, vec![Code::CapturedTwice]));
}

/// A host computes checksums on its card, after the capture. An identification tells the packets then.
#[test]
fn partial_checksums_hide_no_copies() {
    let n = 8_000i64;
    let partial = |i| {
        let mut packet = numbered(i, 1, 5_000);
        packet[26..28].copy_from_slice(&[0x12, 0x34]);
        packet
    };
    for apart in [20, 20_000] {
        let mut all = Vec::new();
        for i in 0..n {
            all.push((0, 1_000 * i, partial(i)));
            all.push((1, 1_000 * i + apart, numbered(i, 1, 5_000)));
        }
        let found = kept(&in_file_order(all));
        assert_eq!(found, (n, n, vec![Code::CapturedTwice]), "{apart} us");
    }
}

/// Tunnels whose packets nothing tells apart may use two links at once.
#[test]
fn packets_alike_on_two_interfaces_are_kept() {
    let n = 8_000i64;
    let mut all = Vec::new();
    for i in 0..n {
        all.push(((i % 2) as u32, 500 * i, udp(0, 64, 50_000, 0)));
        if i % 10 == 0 {
            let both = numbered(i, 2, 5_000);
            all.extend([(0, 500 * i + 1, both.clone()), (1, 500 * i + 2, both)]);
        }
    }
    let (left, copied, _) = kept(&in_file_order(all));
    assert_eq!((left, copied), (n + n / 10, n / 10));
}

/// Requests that are not answered come again four times, in a capture with few other data at first. Retransmissions of
/// later connections are no copies.
#[test]
fn requests_to_a_dead_server_show_no_copies() {
    let mut all = Vec::new();
    for request in 0..2u32 {
        for ms in [0, 200, 400, 800] {
            let at = i64::from(request) * 100_000 + ms * 1_000;
            all.push((at, segment(request, 7 + request as u16)));
        }
    }
    for i in 0..6_000i64 {
        let mut ack = segment(9, sum(i));
        ack[5] = 20;
        ack.truncate(60);
        all.push((1_000_000 + 300 * i, ack));
    }
    for i in 0..20_000i64 {
        let data = segment(1_000 * i as u32 + 100_000, sum(i));
        all.push((3_000_000 + 300 * i, data.clone()));
        if i % 50 == 0 {
            all.push((3_000_000 + 300 * i + 250_000, data));
        }
    }
    let n = all.len() as i64;
    all.sort_by_key(|p| p.0);
    assert_eq!(kept(&file(all)), (n, 0, vec![]));
}

/// When the second point of a capture falls silent, retransmissions are used again.
#[test]
fn copies_end_with_the_second_point() {
    let n = 30_000i64;
    let mut all = Vec::new();
    for i in 0..n {
        let data = segment(1_000 * i as u32, sum(i));
        all.push((500 * i, data.clone()));
        // Later on, one in ten is lost.
        if i < n / 3 || i % 10 == 0 {
            all.push((500 * i + 200_000, data));
        }
    }
    all.sort_by_key(|p| p.0);
    let (left, copied, codes) = kept(&file(all));
    let resent = n - n / 3 - copied.abs_diff(n / 3) as i64 * 10;
    assert!(
        resent > n / 2 && left + copied == n + n / 3 + n / 15,
        "{copied} and {left}"
    );
    assert_eq!(codes, [Code::CapturedTwice]);
}

/// Equal numbers that come much later than copies do are those of another packet.
#[test]
fn copies_come_after_the_usual_delay() {
    let n = 12_000i64;
    let mut all = Vec::new();
    for i in 0..n {
        let packet = numbered(i, 1, 5_000);
        all.extend([0, 20_000].map(|after| (1_000 * i + after, packet.clone())));
        if i % 20 == 0 {
            all.push((1_000 * i + 700_000, packet));
        }
    }
    all.sort_by_key(|p| p.0);
    let found = kept(&file(all));
    assert_eq!(found, (n + n / 20, n, vec![Code::CapturedTwice]));
}

/// The nth segment without any checksum: with data, or a pure acknowledgement.
fn bare(n: i64, v4: bool, data: bool) -> Vec<u8> {
    let mut v6 = segment(1_000 * n as u32, 0);
    if !data {
        v6[5] = 20;
        v6.truncate(60);
    }
    if !v4 {
        return v6;
    }
    let len = v6.len() as u8 - 20;
    let mut ip = vec![0x45, 0, 0, len, 0, 0, 0x40, 0, 64, 6, 0, 0];
    ip.extend([10, 0, 0, 1, 192, 0, 2, 1]);
    ip.extend(&v6[40..]);
    ip
}

/// The same for TCP where one of the points has no checksum at all.
#[test]
fn missing_checksums_hide_no_copies() {
    let n = 8_000i64;
    let numbered_segment = |i: i64, checksum: u16| {
        let mut packet = bare(i, true, true);
        packet[4..6].copy_from_slice(&(i as u16 + 1).to_be_bytes());
        packet[36..38].copy_from_slice(&checksum.to_be_bytes());
        packet
    };
    let mut all = Vec::new();
    for i in 0..n {
        all.push((0, 1_000 * i, numbered_segment(i, 0)));
        all.push((1, 1_000 * i + 20, numbered_segment(i, sum(i))));
    }
    let found = kept(&in_file_order(all));
    assert_eq!(found, (n, n, vec![Code::CapturedTwice]));
}

/// A mirror port that sends each packet twice, in a capture without checksums and identifications: sequence numbers tell
/// the segments apart.
#[test]
fn copies_without_checksums_are_dropped() {
    let n = 20_000i64;
    for v4 in [false, true] {
        for apart in [1, 10, 1_000] {
            let all = (0..n).flat_map(|i| {
                // The same acknowledgement thrice in a row, as for segments after a hole.
                let packet = bare(if i % 4 == 0 { i } else { i / 4 }, v4, i % 4 == 0);
                [0, apart].map(|after| (2_000 * i + after, packet.clone()))
            });
            let found = kept(&file(all));
            assert_eq!(found, (n, n, vec![Code::CapturedTwice]), "{v4} {apart}");
        }
    }
}

/// Equal acknowledgements within microseconds and one retransmission in twenty segments are no copies, even where no
/// checksum and no identification tells packets apart.
#[test]
fn what_tcp_repeats_without_checksums_is_kept() {
    let n = 20_000i64;
    for v4 in [false, true] {
        let mut all = Vec::new();
        for i in 0..n {
            all.push((2_000 * i, bare(i, v4, true)));
            if i % 20 == 0 {
                all.push((2_000 * i + 900, bare(i, v4, true)));
            }
            all.extend((0..3).map(|k| (2_000 * i + 1_000 + k, bare(i, v4, false))));
        }
        let (left, copied, _) = kept(&file(all));
        assert_eq!((left, copied), (4 * n + n / 20, 0), "{v4}");
    }
}
