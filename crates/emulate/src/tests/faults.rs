use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;

use super::*;

const CLIENT: [u8; 4] = [10, 0, 0, 100];
const SERVER: [u8; 4] = [10, 0, 9, 100];

/// An IPv4 UDP packet in an Ethernet frame with a partial UDP checksum, and the matching [`Checksum`].
fn frame(from: ([u8; 4], u16), to: ([u8; 4], u16), payload: &[u8]) -> (Vec<u8>, Checksum) {
    let mut f = [
        &[2; 12][..],
        &[8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 9, 17, 0, 0],
    ]
    .concat();
    f.extend([from.0, to.0].concat());
    for word in [from.1, to.1, 8 + payload.len() as u16, 0] {
        f.extend(word.to_be_bytes());
    }
    f.extend(payload);
    Checksum::Partial {
        start: 14,
        offset: 10,
    }
    .complete(&mut f[..34]);
    // The field holds the sum over the pseudo-header (RFC 768), as for checksum offload.
    let pseudo = [
        &from.0[..],
        &to.0,
        &[0, 17],
        &(8 + payload.len() as u16).to_be_bytes(),
    ]
    .concat();
    let sum = !summed(&pseudo);
    f[40..42].copy_from_slice(&(!sum).to_be_bytes());
    (
        f,
        Checksum::Partial {
            start: 34,
            offset: 6,
        },
    )
}

/// The one's complement sum of RFC 1071.
fn summed(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for w in bytes.chunks(2) {
        sum += u32::from(w[0]) << 8 | w.get(1).map_or(0, |b| u32::from(*b));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Whether both checksums of an IPv4 UDP packet are correct.
fn valid(frame: &[u8]) -> bool {
    let pseudo = [&frame[26..34], &[0, 17], &frame[38..40], &frame[34..]].concat();
    summed(&frame[14..34]) == 0xffff && summed(&pseudo) == 0xffff
}

struct Kept(UnixDatagram, Arc<Mutex<Vec<Vec<u8>>>>);

impl Nic for Kept {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
    fn read(&mut self, _: &mut dyn FnMut(IpPacket<'_>)) -> io::Result<usize> {
        Ok(0)
    }
    fn write(&mut self, packet: &[u8], checksum: Checksum) -> u64 {
        assert_eq!(checksum, Checksum::Full);
        self.1.lock().unwrap().push(packet.to_vec());
        0
    }
    fn flush(&mut self) -> u64 {
        0
    }
    fn lost(&self) -> u64 {
        0
    }
}

type Out = Arc<Mutex<Vec<Vec<u8>>>>;

fn ends(faults: &Faults) -> ([Box<dyn Nic>; 2], [Out; 2], FaultTally) {
    let outs = [Out::default(), Out::default()];
    let tally = FaultTally::default();
    let nics = outs.clone().map(|out| {
        let (socket, _) = UnixDatagram::pair().unwrap();
        Box::new(Kept(socket, out)) as Box<dyn Nic>
    });
    (faults.between(nics, &tally), outs, tally)
}

fn one(fault: Fault) -> Faults {
    Faults {
        ends: [Vec::new(), vec![fault]],
        seed: 3,
        ..Faults::default()
    }
}

/// Sends `count` numbered packets to the right. Returns the packets that left and the counts.
fn through(faults: &Faults, count: u32) -> (Vec<Vec<u8>>, FaultCounts) {
    let ([_, mut right], [_, out], tally) = ends(faults);
    for k in 0..count {
        let payload = [&k.to_be_bytes()[..], &[7; 61]].concat();
        let (frame, checksum) = frame((CLIENT, 5000), (SERVER, 443), &payload);
        assert_eq!(right.write(&frame, checksum), 0);
    }
    let all = std::mem::take(&mut *out.lock().unwrap());
    assert!(all.iter().all(|f| valid(f)));
    let counts = tally.lock().unwrap()[1];
    assert_eq!(counts.packets, u64::from(count));
    (all, counts)
}

fn numbers(frames: &[Vec<u8>]) -> Vec<u32> {
    let number = |f: &Vec<u8>| u32::from_be_bytes(*f[42..].first_chunk().unwrap());
    frames.iter().map(number).collect()
}

#[test]
fn losses_have_their_share_and_their_greatest_run() {
    let (out, counts) = through(&one(Fault::Drop { share: 0.3, run: 3 }), 20_000);
    // With probability p and at most three drops in a row, one packet passes in a cycle of 1 + p + p^2 + p^3 packets
    // on average.
    let p: f64 = 0.3;
    let passes = 1.0 / (1.0 + p + p * p + p * p * p);
    let share = out.len() as f64 / 20_000.0;
    assert!((share - passes).abs() < 0.015, "{share} {passes}");
    assert_eq!(counts.dropped, 20_000 - out.len() as u64);
    let longest = numbers(&out).windows(2).map(|w| w[1] - w[0] - 1).max();
    assert_eq!(longest, Some(3));
}

#[test]
fn listed_packets_are_lost_and_no_others() {
    let list = BTreeSet::from([1, 3, 4, 900]);
    let (out, _) = through(&one(Fault::List(list)), 6);
    assert_eq!(numbers(&out), [1, 4, 5]);
}

#[test]
fn corruption_changes_one_of_the_first_bytes_and_keeps_the_checksum() {
    let (out, counts) = through(&one(Fault::Corrupt { share: 0.5, run: 9 }), 4000);
    assert_eq!(out.len(), 4000);
    let (mut changed, mut places) = (0, BTreeSet::new());
    for (k, f) in out.iter().enumerate() {
        let payload = [&(k as u32).to_be_bytes()[..], &[7; 61]].concat();
        let differ: Vec<usize> = (0..65).filter(|&i| f[42 + i] != payload[i]).collect();
        assert!(differ.len() <= 1);
        changed += differ.len();
        places.extend(differ);
    }
    assert_eq!(counts.corrupted, changed as u64);
    assert!((1900..2100).contains(&changed), "{changed}");
    assert_eq!(places, (0..50).collect());
    // Version Negotiation packets (RFC 9000 section 17.2.1) and packets without payload are never changed.
    let ([_, mut right], [_, always], _) = ends(&one(Fault::Corrupt { share: 1.0, run: 9 }));
    for payload in [&[0x80, 0, 0, 0, 0, 1, 2][..], &[]] {
        let (f, checksum) = frame((CLIENT, 1), (SERVER, 2), payload);
        right.write(&f, checksum);
        assert_eq!(always.lock().unwrap().pop().unwrap()[42..], *payload);
    }
}

/// Ethernet frames have at least 60 bytes, and no receiver reads what follows a shorter packet.
#[test]
fn the_padding_of_a_frame_is_not_what_is_corrupted() {
    let fault = Fault::Corrupt {
        share: 1.0,
        run: 1000,
    };
    let ([_, mut right], [_, out], tally) = ends(&one(fault));
    // With zeros after it, the second payload would be Version Negotiation.
    for payload in [&b"abc"[..], &[0x80]].into_iter().cycle().take(100) {
        let (mut f, checksum) = frame((CLIENT, 1), (SERVER, 2), payload);
        checksum.complete(&mut f);
        let whole = f.len();
        f[16..18].copy_from_slice(&(whole as u16 - 14).to_be_bytes());
        f.resize(60, 0);
        right.write(&f, Checksum::Full);
        let left = out.lock().unwrap().pop().unwrap();
        assert_ne!(left[42..whole], f[42..whole]);
        assert_eq!(left[whole..], f[whole..]);
    }
    assert_eq!(tally.lock().unwrap()[1].corrupted, 100);
}

#[test]
fn no_more_packets_are_dropped_than_were_counted() {
    let hole = Fault::Blackhole {
        on: Dur::ZERO,
        off: Dur::from_secs(3600),
        times: 1,
    };
    let ([_, mut right], [_, out], tally) = ends(&one(hole));
    let (mut f, checksum) = frame((CLIENT, 1), (SERVER, 2), b"payload");
    right.write(&f, checksum);
    f[23] = crate::ip::TCP;
    right.write(&f, Checksum::Full);
    assert!(out.lock().unwrap().is_empty());
    let counts = tally.lock().unwrap()[1];
    assert_eq!((counts.packets, counts.dropped), (2, 2));
    // Other faults concern UDP alone.
    let ([_, mut lossy], [_, passed], seen) = ends(&one(Fault::List(BTreeSet::from([1]))));
    lossy.write(&f, Checksum::Full);
    assert_eq!(passed.lock().unwrap().len(), 1);
    assert_eq!(seen.lock().unwrap()[1], FaultCounts::default());
}

/// Applies a fault to one packet at each instant. Returns which packets pass.
fn passing(fault: Fault, instants: &[f64]) -> Vec<bool> {
    let mut course = Course {
        faults: vec![(fault, 0)],
        rng: Stream::new(1, "test"),
    };
    let (mut frame, _) = frame((CLIENT, 1), (SERVER, 2), &[1; 9]);
    let header = Header::of(&frame[14..]).unwrap();
    let counts = &mut FaultCounts::default();
    let at = instants.iter().map(|&s| Dur::from_secs_f64(s));
    at.map(|at| course.passes(at, &mut frame[14..], &header, counts))
        .collect()
}

#[test]
fn a_black_hole_closes_as_often_as_it_is_told() {
    let hole = |times| Fault::Blackhole {
        on: Dur::from_secs(5),
        off: Dur::from_secs(2),
        times,
    };
    let instants = [
        0.0, 4.99, 5.0, 6.99, 7.0, 11.9, 12.1, 13.9, 14.1, 19.5, 26.5,
    ];
    let (open, shut) = (true, false);
    let once = [
        open, open, shut, shut, open, open, open, open, open, open, open,
    ];
    assert_eq!(passing(hole(1), &instants), once);
    let twice = [
        open, open, shut, shut, open, open, shut, shut, open, open, open,
    ];
    assert_eq!(passing(hole(2), &instants), twice);
}

#[test]
fn a_nat_that_forgets_gives_new_ports_and_finds_senders_again() {
    for address in [false, true] {
        let rebind = Rebind {
            first: Dur::from_secs(1),
            every: Some(Dur::from_secs(5)),
            address,
        };
        let mut nat = Nat::new(rebind, 1);
        let (client, other) = (Ipv4Addr::from(CLIENT), Ipv4Addr::new(10, 0, 0, 7));
        let flows = [(client, 5000), (client, 5001), (other, 5000)];
        let secs = Dur::from_secs_f64;
        assert_eq!(nat.forget(secs(0.5)), 0);
        // Nothing changes before the first rebinding.
        assert!(flows.iter().all(|&f| nat.translate(true, f) == Some(f)));
        let mut outside = flows.to_vec();
        for (at, rebound) in [(1.0, 3), (2.0, 0), (6.1, 3), (30.0, 3)] {
            assert_eq!(nat.forget(secs(at)), rebound, "{at}");
            let now: Vec<PortAddress> = flows
                .iter()
                .map(|&f| nat.translate(true, f).unwrap())
                .collect();
            for k in 0..3 {
                assert_eq!(nat.translate(false, now[k]), Some(flows[k]));
                assert_eq!(now[k] == outside[k], rebound == 0);
                assert_eq!(now[k].0 == flows[k].0, !address);
                assert_eq!(now[k].0.octets()[..3], [10, 0, 0]);
                if rebound > 0 {
                    assert_eq!(nat.translate(false, outside[k]), None, "{at}");
                }
            }
            outside = now;
        }
    }
}

#[test]
fn a_nat_knows_so_many_senders_and_finds_a_port_for_each() {
    let rebind = Rebind {
        first: Dur::from_secs(1),
        every: None,
        address: false,
    };
    let mut nat = Nat::new(rebind, 1);
    let sender = |n: usize| (Ipv4Addr::from(CLIENT), n as u16);
    for n in 0..MOST_SENDERS {
        assert!(nat.translate(true, sender(n)).is_some(), "{n}");
    }
    assert_eq!(nat.translate(true, sender(MOST_SENDERS)), None);
    assert_eq!(nat.forget(Dur::from_secs(2)), MOST_SENDERS as u64);
    assert_eq!(nat.back.len(), MOST_SENDERS);
    assert!(nat.translate(true, sender(0)).is_some());
}

#[test]
fn translated_packets_are_whole() {
    let rebind = Rebind {
        first: Dur::ZERO,
        every: None,
        address: true,
    };
    let faults = Faults {
        rebind: Some(rebind),
        ..Faults::default()
    };
    let ([mut left, mut right], [back, out], tally) = ends(&faults);
    let write = |end: &mut Box<dyn Nic>, from, to, payload: &[u8]| {
        let (whole, sum) = frame(from, to, payload);
        end.write(&whole, sum);
    };
    write(&mut right, (CLIENT, 5000), (SERVER, 443), b"odd");
    let sent = out.lock().unwrap().pop().unwrap();
    // The binding is created after the only rebinding, so it keeps the original port.
    let header = Header::of(&sent[14..]).unwrap();
    assert!(valid(&sent));
    assert_eq!((&sent[26..30], header.ports[0]), (&CLIENT[..], 5000));
    write(&mut left, (SERVER, 443), (CLIENT, 5000), b"back");
    let answer = back.lock().unwrap().pop().unwrap();
    assert!(valid(&answer));
    assert_eq!(answer[42..], *b"back");
    // An answer without a binding is dropped and counted.
    write(&mut left, (SERVER, 443), (CLIENT, 99), b"?");
    assert!(back.lock().unwrap().is_empty());
    assert_eq!(tally.lock().unwrap()[0].dropped, 1);

    let mut nat = Nat::new(rebind, 9);
    nat.translate(true, (CLIENT.into(), 5000));
    nat.forget(Dur::from_secs(1));
    for payload in [&b"even"[..], b"odd", b""] {
        let (mut f, checksum) = frame((CLIENT, 5000), (SERVER, 443), payload);
        checksum.complete(&mut f);
        let own = Header::of(&f[14..]).unwrap();
        assert!(nat.passes(true, &mut f[14..], &own));
        assert!(valid(&f) && f[26..30] != CLIENT);
        let outside = (
            <[u8; 4]>::try_from(&f[26..30]).unwrap(),
            Header::of(&f[14..]).unwrap().ports[0],
        );
        let (mut b, sum) = frame((SERVER, 443), outside, payload);
        sum.complete(&mut b);
        let theirs = Header::of(&b[14..]).unwrap();
        assert!(nat.passes(false, &mut b[14..], &theirs));
        assert!(valid(&b));
        assert_eq!(b[30..34], CLIENT);
        assert_eq!(Header::of(&b[14..]).unwrap().ports[1], 5000);
    }
}
