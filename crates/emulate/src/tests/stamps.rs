//! Tests of packets that the kernel stamped but that were read late.

use std::collections::VecDeque;

use super::*;
use swell_host::clock::epoch;

/// A device that was not read for a while. Packets have arrival times in milliseconds after `begun`.
struct Late {
    fd: UnixDatagram,
    begun: Option<u64>,
    waiting: VecDeque<(u64, Vec<u8>)>,
    stamp: Option<u64>,
}

impl Nic for Late {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
    fn read(&mut self, each: &mut dyn FnMut(IpPacket<'_>)) -> io::Result<usize> {
        let begun = *self.begun.get_or_insert_with(|| {
            // The loop was stalled: the waiting packets arrived during the stall.
            let now = epoch();
            std::thread::sleep(Duration::from_millis(400));
            now
        });
        let Some((at, packet)) = self.waiting.pop_front() else {
            return Ok(0);
        };
        self.stamp = Some(begun + at * 1_000_000);
        each(IpPacket {
            header: &packet,
            payload: &[],
            checksum: Checksum::Full,
        });
        Ok(1)
    }
    fn write(&mut self, packet: &[u8], _: Checksum) -> u64 {
        u64::from(self.fd.send(packet).is_err())
    }
    fn flush(&mut self) -> u64 {
        0
    }
    fn lost(&self) -> u64 {
        0
    }
    fn stamp(&self) -> Option<u64> {
        self.stamp
    }
    fn stamps(&self) -> bool {
        true
    }
}

#[test]
fn packets_that_were_read_late_come_when_the_kernel_says_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let side = |right: bool, own: u8, other: u8, first: u64| {
        let (end, fd) = UnixDatagram::pair().unwrap();
        // More packets than one batch, so that the last packets of one side are read after those of the other side.
        let waiting = (0..50).map(|k| {
            let packet = packet(own, other, 100, k as u32);
            (first + 6 * k, packet)
        });
        let nic = Late {
            fd,
            begun: None,
            waiting: waiting.collect(),
            stamp: None,
        };
        let host = Host {
            port: PortConfig {
                right,
                ..PortConfig::default()
            },
            prefixes: vec![format!("10.0.{own}.0/24").parse().unwrap()],
            nic: Box::new(nic),
        };
        (end, host)
    };
    // The right side's test clock begins 400 ms later, after the wait for the left one.
    let ((_client, a), (_server, b)) = (side(false, 1, 2, 0), side(true, 2, 1, 0));
    let options = Options {
        journal: Some(path.clone()),
        ..Options::default()
    };
    let quiet = World::new(&[LinkConfig::default(), LinkConfig::default()], 1);
    let running = Emulation::new(quiet, vec![a, b], options)
        .unwrap()
        .start()
        .unwrap();
    while running.snapshot().at < Time::from_secs_f64(1.2) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = running.stop().unwrap();
    assert_eq!(ended.counts.entered, 100);
    let bytes = std::fs::read(&path).unwrap();
    let entries = read_journal(&mut &bytes[..], ended.at).unwrap().entries;
    let arrivals: Vec<(Time, u32)> = entries
        .iter()
        .filter_map(|e| match e {
            Entry::Arrival { at, from, .. } => Some((*at, from.0)),
            _ => None,
        })
        .collect();
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.0));
    for port in 0..2 {
        let of = arrivals.iter().filter(|arrival| arrival.1 == port);
        let of: Vec<Time> = of.map(|arrival| arrival.0).collect();
        assert_eq!(of.len(), 50);
        // Spread over 294 ms as they arrived. Stamped when read, they would all have one arrival time.
        let span = of[49].since(of[0]).as_secs_f64();
        assert!(span > 0.2, "port {port}: {span} s");
    }
}
