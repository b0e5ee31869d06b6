//! Files of `swell under --pcap`, as others read them.

use std::collections::BTreeMap;
use std::process::Command;

use swell_capture::{Heading, Reader};

use crate::under::{emulates, fetch};
use crate::{Scratch, run, swell, text};

/// Fetches an object under these conditions, with a capture in `p.pcapng`.
fn capture(dir: &Scratch, object: &str, conditions: &[&str]) {
    let client = fetch(object);
    let out = swell(dir)
        .args(["under", "none", "-q", "--pcap", "p.pcapng"])
        .args(conditions)
        .args(["--", "bash", "-c", &client])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
}

/// The largest packet and the number of packets from and to the left side, by direction.
fn packets(dir: &Scratch) -> (u32, BTreeMap<String, u32>) {
    let bytes = std::fs::read(dir.0.join("p.pcapng")).unwrap();
    let mut file = Reader::new(&bytes[..]).unwrap();
    let (mut longest, mut ways, mut last) = (0, BTreeMap::new(), None);
    while let Some(packet) = file.next_packet().unwrap() {
        assert_eq!(packet.interface, 0);
        assert!(last <= Some(packet.time), "not in the order of time");
        last = Some(packet.time);
        longest = longest.max(packet.ip_len);
        let out = packet.heading == Heading::Outbound;
        let from = packet.src.to_string();
        assert_eq!(
            out,
            from == "198.18.0.1" || from == "2001:2:0:1::1",
            "{from}"
        );
        assert!(out || packet.heading == Heading::Inbound);
        *ways.entry(format!("{:?}", packet.heading)).or_default() += 1;
    }
    (longest, ways)
}

/// Every packet is in the file once. So Wireshark finds nothing wrong with a transfer with which nothing is wrong, and
/// finds out what was retransmitted in another.
#[test]
fn a_capture_has_every_packet_once() {
    let dir = Scratch::new("captured");
    if !emulates(&dir) {
        return;
    }
    let path = ["--rate", "20Mbit", "--delay", "10ms", "--queue", "500pkt"];
    capture(&dir, "200kB", &path);
    let (_, ways) = packets(&dir);
    // 138 segments of 1448 bytes, with the handshake and the end.
    assert!((138..156).contains(&ways["Inbound"]), "{ways:?}");
    let installed = swell_needs::programs(&["tshark"]);
    let tshark = |filter: &str| {
        let out = Command::new("tshark")
            .args(["-r", "p.pcapng", "-Y", filter])
            .current_dir(&dir.0)
            .output();
        text(&out.unwrap().stdout).lines().count()
    };
    let odd = "tcp.analysis.retransmission || tcp.analysis.out_of_order || tcp.analysis.duplicate_ack \
               || tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment";
    if installed {
        let all = tshark("tcp");
        assert!(all > 138, "{all}");
        assert_eq!(tshark(odd), 0);
    }

    // A model can be learnt from it: the directions tell the sides.
    let learnt = run(&dir, &["learn", "p.pcapng", "-o", "m.json", "--json"]);
    assert!(learnt.status.success(), "{}", text(&learnt.stderr));
    let value: serde_json::Value = serde_json::from_slice(&learnt.stdout).unwrap();
    assert_eq!(value["summary"]["tcp_connections"], 1, "{value:#}");

    capture(&dir, "200kB", &[&path[..], &["--loss", "5%"]].concat());
    if installed {
        let again = tshark("tcp.analysis.retransmission || tcp.analysis.out_of_order");
        assert!((1..40).contains(&again), "{again}");
    }
}

#[test]
fn packets_are_as_long_as_the_mtu_says() {
    let dir = Scratch::new("mtu");
    if !emulates(&dir) {
        return;
    }
    for (mtu, longest) in [(None, 1500), (Some("1300"), 1300), (Some("9000"), 9000)] {
        let given = mtu.map_or(vec![], |mtu| vec!["--mtu", mtu]);
        capture(&dir, "300kB", &given);
        assert_eq!(packets(&dir).0, longest, "{mtu:?}");
        // Not because the device cuts up what a kernel sends.
        capture(&dir, "300kB", &[&given[..], &["--offload", "off"]].concat());
        assert_eq!(packets(&dir).0, longest, "{mtu:?}");
    }
    let out = run(&dir, &["under", "none", "--mtu", "1279", "--", "true"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("1280"), "{}", text(&out.stderr));
}
